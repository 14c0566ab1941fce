"""Messages about Arrays, NumPy's face of a tensor."""

from __future__ import annotations

import difflib
import re
from typing import Any

import numpy as np

from chainrule.errors.libraries import taken_by_library
from chainrule.errors.places import program_line, user_line
from chainrule.errors.words import UnknownName

#: PyTorch's methods and what an ndarray has in their place
_NUMPYS = {
    "unsqueeze": "np.expand_dims(x, axis), or x[:, None]",
    "permute": "x.transpose(axes)",
    "view_as": "x.reshape(other.shape)",
    "expand": "np.broadcast_to(x, shape)",
    "cat": "np.concatenate([...])",
    "clone": "x.copy()",
    "numpy": "np.asarray(x.detach())",
    "t": "x.T",
    "dim": "x.ndim",
    "numel": "x.size",
    "add_": "x += ...",
    "sub_": "x -= ...",
    "mul_": "x *= ...",
    "div_": "x /= ...",
    "zero_": "x.fill(0)",
    "fill_": "x.fill(value)",
    "mm": "x @ y",
    "bmm": "x @ y",
    "matmul": "x @ y",
    "norm": "np.linalg.norm(x)",
    "float": "x.astype(np.float32)",
    "double": "x.astype(np.float64)",
    "to": "x.astype(dtype)",
}


def no_array_attribute(name: str) -> AttributeError:
    return UnknownName(f"'Array' object has no attribute {name!r}", lambda error: _instead(name))


def _instead(name: str) -> str:
    if name in _NUMPYS:
        return f": it has NumPy's methods; here it is {_NUMPYS[name]}. (x.tensor has PyTorch's.)"
    if callable(getattr(np, name, None)):
        return f": in NumPy it is a function, np.{name}(x, ...)."
    close = difflib.get_close_matches(name, [n for n in dir(np.ndarray) if not n.startswith("_")], 1, 0.7)
    return (
        f". Did you mean {close[0]!r}?" if close else ": it has the methods of a NumPy array; x.tensor has PyTorch's."
    )


_NOT_OF_OBJECTS = re.compile(r"dtype\('O'\)|not supported for the input types")


def noted(error: TypeError) -> None:
    """Say of an error of NumPy's, where it is about an array of objects, what may have made it."""
    note = (
        "np.array([...]) of values that carry a derivative is an array of objects, which NumPy's compiled functions don't take. "
        "Write np.array([...], like=x), where x is an argument of your function, or chainrule.Array([...]), or np.stack([...])."
    )
    if _NOT_OF_OBJECTS.search(str(error)) and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _in_brackets(where: Any) -> str:
    return f" ({where})" if where is not None else ""


def array_to_numpy(array: Any, what: str = "np.asarray()", carries: bool = True) -> RuntimeError:
    line = _in_brackets(program_line())
    text = (
        f"{what} would drop the derivative of an array of shape {array.shape}{line}: a plain NumPy array cannot carry it.\n"
        if carries
        else f"{what} of an array of shape {array.shape}{line} that stands for all examples of a vmap: there is no one array of "
        "its numbers.\n"
    )
    taken = taken_by_library(array)
    if taken:
        x, instead = taken
        return RuntimeError(text + instead.replace(f"{x}.detach().numpy()", f"np.asarray({x}.detach())"))
    return RuntimeError(
        f"{text}Functions of numpy and scipy.special keep it. To put values together: np.stack([...]), "
        "np.concatenate([...]) or np.array([...], like=x), or write them into out = np.zeros_like(x). "
        "For a function without a rule: chainrule.primitive. For plain values, without a derivative: np.asarray(x.detach())."
    )


def array_to_number(what: str) -> TypeError:
    line = _in_brackets(program_line())
    return TypeError(
        f"{what} of an array that carries a derivative{line} would drop it silently.\n"
        "NumPy's functions keep it: np.sin(x) in place of math.sin(x). A plain array or list cannot hold it: in place of "
        "`buf = np.zeros(n); buf[i] = x`, make the buffer np.zeros_like(x), or collect the parts and np.stack() them. "
        "Comparisons work as they are (`if x > 0:`). For a plain number: float(x.detach())."
    )


def array_leaf_in_place(op: str) -> RuntimeError:
    line = _in_brackets(user_line())
    return RuntimeError(
        f"a leaf that requires grad is written in place: {op}{line} would overwrite the values whose gradient you asked for.\n"
        "Write y = x + ... in place of x += ..., or begin with y = x.copy()."
    )


def array_output_shape(op: str, shape: Any, result: Any) -> ValueError:
    return ValueError(
        f"non-broadcastable output operand with shape {shape} doesn't match the broadcast shape {result}: {op} keeps the "
        "array's shape; write x = x + ... for a larger one"
    )


def array_output_dtype(op: str, dtype: Any, result: Any) -> TypeError:
    return TypeError(
        f"Cannot cast ufunc output from {result!r} to {dtype!r} with casting rule 'same_kind' ({op}): begin with "
        f"x = x.astype({result.name!r}), or write x = x + ..."
    )


def array_index(item: Any) -> IndexError:
    kind = getattr(item, "dtype", None)
    if kind is not None:
        return IndexError(f"arrays used as indices must be of integer (or boolean) type, not {kind}")
    return IndexError(
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid "
        f"indices, not {type(item).__name__}"
    )


def array_of_objects(array: Any) -> TypeError:
    kinds = ", ".join(sorted({type(item).__name__ for item in array.flat}))
    return TypeError(
        f"an array of objects ({kinds}) of shape {array.shape} stands among arrays of numbers: make it one of numbers first, "
        "such as with .astype(float)"
    )


def array_setter(name: str) -> AttributeError:
    fix = {"shape": "x = x.reshape(shape)", "dtype": "x = x.astype(dtype)"}.get(name, f"make x again with that {name}")
    return AttributeError(f"x.{name} cannot be assigned to: {fix}")
