"""Calling operations: dtypes, shapes, dimensions, indices, names."""

from __future__ import annotations

import inspect
import itertools
import math
from typing import Any

import numpy as np

from chainrule.errors.libraries import instead_of_arrays, taken_by_library
from chainrule.errors.names import name_of
from chainrule.errors.places import user_frame, user_line, warn
from chainrule.errors.reading import operands, out_of_place, running, with_arrays
from chainrule.errors.transforms import dynamic_shape, escaped_tensor
from chainrule.errors.words import TYPE_NAMES, shape_of, torch_size


def wrong_operand(function: str, position: int, value: Any, argument: str = "") -> TypeError:
    argument = argument or (("input", "other")[position] if position < 2 else f"argument {position + 1}")
    what = type(value).__name__
    if isinstance(value, (np.ndarray, np.generic)):
        what = f"an array of dtype {value.dtype}"
    return TypeError(
        f"{function}(): argument '{argument}' (position {position + 1}) must be Tensor, not {what}"
        + (": wrap it in tensor(...)" if isinstance(value, (list, tuple, np.ndarray)) else "")
    )


def no_tensor(function: Any, args: Any, kwargs: Any) -> TypeError | None:
    """The first argument of a call that is declared a tensor and is none; None where there is no such argument."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return None
    position = 0
    for position, (name, declared) in enumerate(inspect.signature(function).parameters.items()):
        kind = str(declared.annotation)
        if name not in given or "Tensor" not in kind:
            continue
        for i, value in enumerate(given[name] if declared.kind is declared.VAR_POSITIONAL else (given[name],)):
            if not hasattr(value, "_edge") and not (value is None and "None" in kind):
                return wrong_operand(function.__name__.lstrip("_"), position + i, value, name)
    return None


def not_broadcastable(function: str, *several: Any) -> RuntimeError:
    shapes = [shape_of(x) for x in several]
    for (i, a), (j, b) in itertools.combinations(enumerate(shapes), 2):
        for k in range(1, min(len(a), len(b)) + 1):
            if a[-k] != b[-k] and 1 not in (a[-k], b[-k]):
                return RuntimeError(
                    f"The size of tensor a ({a[-k]}) must match the size of tensor b ({b[-k]}) at non-singleton dimension "
                    f"{max(len(a), len(b)) - k}.\n{function} got shapes {_shaped(several[i])} and {_shaped(several[j])}; from "
                    f"the right, sizes must be equal or 1.{_alignment(function, several[i], several[j])}"
                )
    return RuntimeError(f"{function}: shapes {' and '.join(map(str, shapes))} do not broadcast")


def _shaped(x: Any) -> str:
    name = name_of(x)
    return f"{shape_of(x)}{f' ({name})' if name else ''}"


def _alignment(function: str, x: Any, y: Any) -> str:
    """What would make two shapes fit."""
    a, b = shape_of(x), shape_of(y)
    p, q = operands(function, x, y, ("a", "b"))
    if len(a) == 2 and len(b) == 1 and a[0] == b[0]:
        return f" {q}[:, None], of shape {(*b, 1)}, lines up with the rows of {p}."
    if len(b) == 2 and len(a) == 1 and a[0] == b[0]:
        return f" {p}[:, None], of shape {(*a, 1)}, lines up with the rows of {q}."
    if len(a) == len(b) == 2 and a == b[::-1]:
        return f" {q}.T has shape {a}."
    if len(a) == len(b) == 1:
        return f" For all pairs: {p}[:, None] and {q} give {(*a, *b)}."
    return " Insert an axis with x[:, None], or transpose one operand."


def matmul_shapes(function: str, x: Any, y: Any) -> RuntimeError:
    a, b = shape_of(x), shape_of(y)
    p, q = operands(function, x, y, ("input", "other"))
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
    for flipped in (False, True):
        left, right = (_transposed(p, a), (q, b)) if flipped else ((p, a), _transposed(q, b))
        shape = _product(left[1], right[1])
        if shape is not None:
            fixes.append(f"{left[0]} @ {right[0]} has shape {shape}")
    fix = f" {'; '.join(fixes)}." if fixes else ""
    return RuntimeError(f"{text}.\n{function}: {p} @ {q} is {a} @ {b}, {inner}.{fix}")


def _transposed(name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    return f"{name}.{'T' if len(shape) < 3 else 'mT'}", (*shape[:-2], *shape[:-3:-1])


def _product(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of a matrix product; None if there is none."""
    if not a or not b or a[-1] != b[-2:][0]:
        return None
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        return None
    return (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def slice_type(item: slice) -> TypeError:
    wrong = next(p for p in (item.start, item.stop, item.step) if p is not None and not hasattr(p, "__index__"))
    return TypeError(
        f"slice indices must be integers or None or have an __index__ method, not {type(wrong).__name__} {wrong!r}"
    )


def bound_type(function: str, argument: str, value: Any) -> TypeError:
    return TypeError(f"{function}(): argument '{argument}' must be Number or Tensor, not {type(value).__name__}")


def where_condition(condition: Any) -> Exception:
    if not hasattr(condition, "dtype"):
        return TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    return RuntimeError(
        f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}: compare first, as "
        "in where(x > 0, ...)"
    )


def target_type(function: str, value: Any) -> TypeError:
    wrap = ": wrap it in tensor(...)" if isinstance(value, (list, tuple, int, float)) else ""
    return TypeError(f"{function}(): argument 'target' (position 2) must be Tensor, not {type(value).__name__}{wrap}")


def reduction_name(given: Any) -> ValueError:
    return ValueError(f"{given} is not a valid value for reduction: it is 'mean', 'sum' or 'none'")


def bias_shape(bias: Any, weight: Any) -> RuntimeError:
    name, out = name_of(bias) or "bias", shape_of(weight)[0]
    return RuntimeError(
        f"The size of tensor a ({out}) must match the size of tensor b ({(shape_of(bias) or (1,))[-1]}) at non-singleton "
        f"dimension 1.\nlinear adds one number per output: {name} must have shape ({out},), the first size of weight, and "
        f"it has shape {shape_of(bias)}."
    )


def linear_shapes(x: Any, weight: Any) -> RuntimeError:
    a, w = shape_of(x), shape_of(weight)
    p, q = name_of(x) or "input", name_of(weight) or "weight"
    rows = math.prod(a[:-1])
    fix = f" {q}.T has the shape it takes." if w[0] == a[-1] else ""
    return RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a[-1]} and {w[1]}x{w[0]}).\n"
        f"linear computes {p} @ {q}.T: {p} is {a}, so {q} must be (out_features, {a[-1]}), and it is {w}.{fix}"
    )


def warn_target_size(x: Any, y: Any) -> None:
    """A loss of an input and a target of different shapes, which are broadcast."""
    text = (
        f"Using a target size ({torch_size(shape_of(y))}) that is different to the input size ({torch_size(shape_of(x))}). "
        "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
    )
    try:
        shape = np.broadcast_shapes(shape_of(x), shape_of(y))
    except ValueError:
        shape = None
    if shape is not None:
        p, q = name_of(x) or "input", name_of(y) or "target"
        text += f"\n{p} {shape_of(x)} and {q} {shape_of(y)} are stretched to {shape}: "
        if math.prod(shape) > math.prod(shape_of(x)) and math.prod(shape) > math.prod(shape_of(y)):
            text += "every prediction is compared with every target. "
        else:
            text += "some numbers are compared more than once. "
        if math.prod(shape_of(x)) == math.prod(shape_of(y)):
            text += f"Use {q}.reshape({p}.shape)."
    warn(text)


_KINDS = {"b": "booleans", "i": "integers", "u": "unsigned integers", "f": "real floats", "c": "complex numbers"}


def no_kernel(function: str, dtype: Any, accepts: str, on_bools: str = "") -> NotImplementedError:
    if dtype == "bool" and on_bools:
        return NotImplementedError(on_bools)
    name = TYPE_NAMES.get(dtype.name, str(dtype))
    takes = [_KINDS[kind] for kind in accepts]
    return NotImplementedError(
        f"\"{function}_cpu\" not implemented for '{name}': {function} does not take {_KINDS.get(dtype.kind, f'the dtype {dtype}')}, only "
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
    tensors = [x for x in inputs if hasattr(x, "_edge")]
    names = list(dict.fromkeys(filter(None, map(name_of, tensors))))
    of = f" ({', '.join(names)})" if names else ""
    module = "np." if hasattr(np, name.split(".")[0]) else "np.linalg." if hasattr(np.linalg, name) else ""
    call = with_arrays() or f"{module}{name}({names[0] if names else 'x'}.detach().numpy(), ...)"
    if not all(isinstance(getattr(x, "_raw", None), np.ndarray) for x in tensors):
        call = "call it outside of the transformation, where there are plain arrays"
    return TypeError(
        f"{module}{name} has no rule for tensors{of}. If no gradient has to flow through it: {call}.\n"
        "If one has to: write it with functions that have a rule, or give it one with chainrule.primitive."
    )


def numpy_keyword(name: str, keyword: str) -> TypeError:
    return TypeError(f"np.{name} on tensors does not take {keyword!r}")


def out_is_plain_array(name: str, target: Any) -> RuntimeError:
    taken = taken_by_library(target)  # np.full_like writes into what it has made itself
    if taken:
        return RuntimeError(f"a plain array cannot carry the gradient of a tensor. {taken[1]}")
    buffer = name_of(target)
    tensor = f"{buffer} = chainrule.tensor({buffer})" if buffer else "chainrule.tensor(...)"
    anew = out_of_place(running(user_frame()).text)
    return RuntimeError(
        f"np.{name} would write a tensor into {buffer or 'the buffer'}, a plain NumPy array of shape {shape_of(target)}, "
        f"which cannot carry gradients. {anew + ' Or make' if anew else 'Make'} it a tensor first: {tensor}."
    )


def escaped_to_numpy(kind: str) -> TypeError:
    return TypeError(
        f"a value inside a transformation ({kind}) cannot become a plain array: NumPy code that needs the numbers "
        "(np.asarray, .item(), float()) sees no single array there. Return it from the function instead."
    )


def inside_transformation(tensor: Any) -> RuntimeError:
    kind = type(tensor._raw).__name__
    inside = {"Batched": "vmap", "Dual": "jvp"}.get(kind, kind)
    level = getattr(tensor._raw, "level", 0)
    if not getattr(level, "alive", True):
        return escaped_tensor(level, ".numpy()")
    where = user_line()
    return RuntimeError(
        f"Cannot access data pointer of Tensor that doesn't have storage{f' ({where})' if where else ''}: this tensor lives "
        f"inside {inside} and has no single NumPy array there, so .numpy(), np.asarray() and other code that needs the "
        "numbers cannot work on it. "
        + (
            instead_of_arrays(tensor, "tensor", detach=False)
            or "Compute with tensors all the way and return the value from the function: outside it is an ordinary one."
        )
    )


def data_dependent(tensor: Any, what: str) -> RuntimeError:
    level = getattr(tensor._raw, "level", 0)
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
    if what == "the truth of an array":
        return RuntimeError(
            f"vmap: {what} in if, while, and, or, min() or max(){at}: {many} np.where(condition, a, b), np.minimum and "
            "np.maximum compute both and choose; a loop whose end depends on the values runs a fixed number of times."
        )
    if what.endswith("of an array"):
        return RuntimeError(
            f"vmap: {what}{at}: {many} Keep it an array (a 0-d array works in arithmetic, as an index and in "
            "np.take_along_axis as a number does), or return it and call this outside."
        )
    if what.startswith(("a boolean mask", "nonzero", "unique")):
        return dynamic_shape(what, "Use torch.where(mask, x, 0.) or multiply by the mask, which keep the size.")
    return RuntimeError(
        f"vmap: It looks like you're calling .item() on a Tensor ({what}{at}): {many} Keep it a tensor (a 0-d tensor works "
        "in arithmetic as a number does), or return it and call this outside."
    )


class NoForwardMode(NotImplementedError):
    """An operation that has no tangents; it may well have gradients."""


def unsupported_rule(name: str, column: str, why: str) -> NotImplementedError:
    kind = NoForwardMode if column.startswith("JVP") else NotImplementedError
    return kind(f"{name} has no {column}: {why}")


def needs_scipy(function: str) -> ImportError:
    return ImportError(f"{function} is computed by SciPy, which is not installed: pip install chainrule[scipy]")
