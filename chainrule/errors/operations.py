"""Calling operations: dtypes, shapes, dimensions, indices, names."""

from __future__ import annotations

import itertools
from typing import Any

from chainrule.errors.transforms import dynamic_shape, escaped_tensor
from chainrule.errors.words import TYPE_NAMES, name_of, shape_of, user_line


def wrong_operand(function: str, position: int, value: Any) -> TypeError:
    argument = ("input", "other")[position] if position < 2 else f"argument {position + 1}"
    what = type(value).__name__
    if hasattr(value, "dtype"):
        what = f"an array of dtype {value.dtype}"
    return TypeError(
        f"{function}(): argument '{argument}' (position {position + 1}) must be Tensor, not {what}"
        + (": wrap it in tensor(...)" if isinstance(value, (list, tuple)) else "")
    )


def not_broadcastable(function: str, *operands: Any) -> RuntimeError:
    shapes = [shape_of(x) for x in operands]
    for a, b in itertools.combinations(shapes, 2):
        for i in range(1, min(len(a), len(b)) + 1):
            if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
                return RuntimeError(
                    f"The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) at non-singleton dimension "
                    f"{max(len(a), len(b)) - i}.\n{function} got shapes {a} and {b}; from the right, sizes must be equal or "
                    "1. Insert an axis with x[:, None], or transpose one operand."
                )
    return RuntimeError(f"{function}: shapes {' and '.join(map(str, shapes))} do not broadcast")


def matmul_shapes(function: str, x: Any, y: Any) -> RuntimeError:
    a, b = shape_of(x), shape_of(y)
    names = name_of(x) or "X", name_of(y) or "W"
    if len(a) == 2 and len(b) == 2:
        text = f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})"
        inner = f"inner sizes {a[1]} ≠ {b[0]}"
    elif len(a) == 2 and len(b) == 1:
        text = f"size mismatch, got input ({a[0]}), mat ({a[0]}x{a[1]}), vec ({b[0]})"
        inner = f"inner sizes {a[1]} ≠ {b[0]}"
    elif len(a) == 1 and len(b) == 1:
        text = (
            f"inconsistent tensor size, expected tensor {list(a)} and src {list(b)} to have the same number of elements"
        )
        inner = f"lengths {a[0]} ≠ {b[0]}"
    else:
        text = f"Expected size for first two dimensions of batch2 tensor to match; got shapes {a} and {b}"
        inner = "the last size of the first must equal the second last of the second, and batch sizes must broadcast"
    fixes = []
    if len(a) >= 2 and len(b) >= 2:
        if a[-1] == b[-1]:
            fixes.append(f"{names[0]} @ {names[1]}.T has shape {(*a[:-1], b[-2])}")
        if a[-2] == b[-2]:
            fixes.append(f"{names[0]}.T @ {names[1]} has shape {(a[-1], b[-1])}")
    fix = f" {'; '.join(fixes)}." if fixes else ""
    return RuntimeError(f"{text}.\n{function}: {a} @ {b}, {inner}.{fix}")


_KINDS = {"b": "booleans", "i": "integers", "u": "unsigned integers", "f": "real floats", "c": "complex numbers"}

_ON_BOOLS = {
    "sub": "Subtraction, the `-` operator, with two bool tensors is not supported, use the `^` or `logical_xor()` "
    "operator instead.",
    "neg": "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
    "`~` or `logical_not()` operator instead.",
}


def no_kernel(function: str, dtype: Any, accepts: str) -> NotImplementedError:
    if dtype == "bool" and function in _ON_BOOLS:
        return NotImplementedError(_ON_BOOLS[function])
    name = TYPE_NAMES.get(str(dtype), str(dtype))
    takes = [_KINDS[kind] for kind in accepts]
    return NotImplementedError(
        f"\"{function}_cpu\" not implemented for '{name}': {function} does not take {_KINDS[dtype.kind]}, only "
        f"{', '.join(takes)}. Convert first, with .to(dtype)."
    )


def zero_division(function: str) -> RuntimeError:
    return RuntimeError(
        f"ZeroDivisionError: {function} of integers by zero has no answer. Divide floats (x.float()) to get inf or nan."
    )


def dim_range(function: str, dim: Any, ndim: int) -> IndexError:
    low, high = (-ndim, ndim - 1) if ndim else (-1, 0)
    return IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim}): {function}")


def check_dim(function: str, dim: Any, ndim: int) -> int:
    """A dimension as an index from the front; PyTorch's errors for what is not one."""
    try:
        if type(dim) is bool:
            raise TypeError
        index: int = dim.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{function}(): argument 'dim' must be int, not {type(dim).__name__}") from None
    bound = ndim or 1
    if not -bound <= index < bound:
        raise dim_range(function, dim, ndim)
    return index % bound


def reshape_size(function: str, shape: Any, target: Any, numel: int) -> RuntimeError:
    return RuntimeError(f"shape '{list(target)}' is invalid for input of size {numel}: {function} from {tuple(shape)}")


def no_rule_for_numpy(name: str, inputs: Any) -> TypeError:
    shapes = ", ".join(str(shape_of(x)) for x in inputs if hasattr(x, "shape"))
    return TypeError(
        f"np.{name} has no rule for tensors (operand shapes {shapes}). If no gradient has to pass through it, call it on "
        f"x.detach().numpy(). If one has to, write it with functions that have a rule, or give it one."
    )


def numpy_keyword(name: str, keyword: str) -> TypeError:
    return TypeError(f"np.{name} on tensors does not take {keyword!r}")


def out_is_plain_array(name: str, target: Any) -> RuntimeError:
    buffer = name_of(target) or "the buffer"
    return RuntimeError(
        f"np.{name} would write a tensor into {buffer}, a plain NumPy array of shape {shape_of(target)}, which cannot carry "
        f"gradients. Make it a tensor (chainrule.zeros(...)), or collect the parts and stack() them."
    )


def escaped_to_numpy(kind: str) -> TypeError:
    return TypeError(
        f"a value inside a transformation ({kind}) cannot become a plain array: NumPy code that needs the numbers "
        "(np.asarray, .item(), float()) sees no single array there. Return it from the function instead."
    )


def inside_transformation(tensor: Any) -> RuntimeError:
    kind = type(tensor._data).__name__
    inside = {"Batched": "vmap", "Dual": "jvp"}.get(kind, kind)
    level = getattr(tensor._data, "level", 0)
    if not getattr(level, "alive", True):
        return escaped_tensor(level, ".numpy()")
    where = user_line()
    return RuntimeError(
        f"Cannot access data pointer of Tensor that doesn't have storage{f' ({where})' if where else ''}: this tensor lives "
        f"inside {inside} and has no single NumPy array there, so .numpy(), np.asarray() and other code that needs the "
        "numbers cannot work on it. Compute with tensors all the way and return the value from the function: outside it "
        "is an ordinary one."
    )


def data_dependent(tensor: Any, what: str) -> RuntimeError:
    level = getattr(tensor._data, "level", 0)
    if not getattr(level, "alive", True):
        return escaped_tensor(level, what)
    where = user_line()
    at = f" ({where})" if where else ""
    many = "inside vmap each example has a value of its own, so there is no one number to go on with."
    if what == "bool()":
        return RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow"
            f"{at}: {many} Use torch.where(condition, a, b), which computes both and chooses."
        )
    if what.startswith(("a boolean mask", "nonzero", "unique")):
        return dynamic_shape(what, "Use torch.where(mask, x, 0.) or multiply by the mask, which keep the size.")
    return RuntimeError(
        f"vmap: It looks like you're calling .item() on a Tensor ({what}{at}): {many} Keep it a tensor (a 0-d tensor works "
        "in arithmetic as a number does), or return it and call this outside."
    )


def unsupported_rule(name: str, column: str, why: str) -> NotImplementedError:
    return NotImplementedError(f"{name} has no {column}: {why}")
