"""Messages about the shapes, dimensions and dtypes of operands."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.messages.kinds import NoForwardMode
from chainrule._src.messages.message_parts import dtype_word, shape_of, torch_size
from chainrule._src.messages.names import name_of
from chainrule._src.messages.reading import operands
from chainrule._src.messages.source_locations import warn


def matrix_dtype(function: str, x: Any) -> RuntimeError:
    if x.dtype == "float16":
        return RuntimeError(f"{function}: Low precision dtypes not supported. Got Half: convert with .float() first")
    return RuntimeError(
        f"{function}: Expected a floating point or complex tensor as input. Got {dtype_word(x.dtype)}: convert with "
        ".float() or .double() first"
    )


def fft_norm(norm: object, kind: type[Exception] = RuntimeError) -> Exception:
    text = f'Invalid normalization mode: "{norm}".' if kind is RuntimeError else f"Invalid norm value {norm}."
    return kind(
        f'{text} Use "backward" (scales the inverse), "forward" (scales the transform) or "ortho" (scales both)'
    )


def fft_points(function: str, n: int, kind: type[Exception] = RuntimeError) -> Exception:
    why = ""
    if function.startswith(("irfft", "hfft")):
        why = ". Along the last axis, m frequencies give 2·(m − 1) points by default"
    return kind(
        f"Invalid number of {'' if kind is RuntimeError else 'FFT '}data points ({n}) specified: {function} needs at "
        f"least 1 along every axis that it transforms{why}"
    )


def fft_needs_real(function: str, x: Any, kind: type[Exception] = RuntimeError) -> Exception:
    word, name = dtype_word(x.dtype), function.rpartition(".")[2]
    if name == "ihfftn":
        text = f"Only supports floating-point dtypes, but found: {word} for {function}"
    else:
        text = f"{function} expects a real{'' if name.endswith('t') else '-valued'} input tensor, but got {word}"
    whole = name.replace("rfft", "fft").replace("hfft", "fft")
    return kind(f"{text}. Use {whole} for complex numbers, or take .real first")


def of_shapes(error: ValueError, function: str, several: list[object]) -> ValueError:
    """Append chainrule's explanation to NumPy's error about shapes that do not fit together; return other errors unchanged."""
    text = str(error)
    if text.startswith("all the input array") and "\n" not in text:
        return ValueError(f"{text}\n{_not_joinable(function, several[0])}")
    if not text.startswith("operands could not be broadcast together with shapes") or "\n" in text:
        return error
    why = str(not_broadcastable(function, *several)).partition("\n")[2]
    return ValueError(f"{text.rstrip()}\n{why}") if why else error


def not_broadcastable(function: str, *several: object) -> RuntimeError:
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


def _not_joinable(function: str, arrays: Any) -> str:
    """Name the first array of a list that does not fit to array 0, and suggest an axis."""
    arrays = list(arrays)
    first = arrays[0]
    ndim = len(shape_of(first))
    k = next((k for k, x in enumerate(arrays) if len(shape_of(x)) != ndim), 0)
    if not k:
        k = next((k for k, x in enumerate(arrays) if shape_of(x) != shape_of(first)), 0)
    text = f"{function}: array 0 has shape {_shaped(first)} and array {k} has shape {_shaped(arrays[k])}."
    low, high = sorted((first, arrays[k]), key=lambda x: len(shape_of(x)))
    if shape_of(low) == shape_of(high)[1:]:
        return f"{text} {name_of(low) or 'x'}[None] has shape {(1, *shape_of(low))}."
    return text


def einsum_sizes(equation: str, letter: str, x: object, y: object, sizes: tuple[int, int]) -> RuntimeError:
    return RuntimeError(
        f"einsum(): subscript {letter} has size {sizes[1]} for an operand, which does not broadcast with previously seen size "
        f"{sizes[0]} in {equation!r}.\neinsum: in {equation!r}, {letter} is {sizes[0]} in {_shaped(x)} and {sizes[1]} in "
        f"{_shaped(y)}."
    )


def einsum_rank(term: str, named: int, position: int, x: object) -> RuntimeError:
    ndim = len(shape_of(x))
    return RuntimeError(
        f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions ({ndim}) for "
        f"operand {position} of shape {shape_of(x)}.\neinsum: {term!r} needs an array of {named} axes, and operand {position} "
        f"has shape {_shaped(x)}."
    )


def _shaped(x: Any) -> str:
    name = name_of(x)
    return f"{shape_of(x)}{f' ({name})' if name else ''}"


def _alignment(function: str, x: Any, y: Any) -> str:
    """Suggest a change that makes two shapes broadcast."""
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
    """Return the shape of a matrix product; None if the shapes do not match."""
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


def where_condition(condition: object) -> Exception:
    if not hasattr(condition, "dtype"):
        return target_type("where", condition, "condition", 1)
    return RuntimeError(
        f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}: compare first, as "
        "in where(x > 0, ...)"
    )


def target_type(function: str, value: object, argument: str = "target", position: int = 2) -> TypeError:
    wrap = ": wrap it in tensor(...)" if isinstance(value, (list, tuple, int, float)) else ""
    what = f"{type(value).__name__}{wrap}"
    return TypeError(f"{function}(): argument '{argument}' (position {position}) must be Tensor, not {what}")


def bias_shape(bias: object, weight: object) -> RuntimeError:
    name, out = name_of(bias) or "bias", shape_of(weight)[0]
    return RuntimeError(
        f"The size of tensor a ({out}) must match the size of tensor b ({(shape_of(bias) or (1,))[-1]}) at non-singleton "
        f"dimension 1.\nlinear adds one number per output: {name} must have shape ({out},), the first size of weight, but "
        f"it has shape {shape_of(bias)}."
    )


def linear_shapes(x: Any, weight: object) -> RuntimeError:
    a, w = shape_of(x), shape_of(weight)
    p, q = name_of(x) or "input", name_of(weight) or "weight"
    rows = math.prod(a[:-1])
    fix = f" {q}.T has that shape." if w[0] == a[-1] else ""
    return RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a[-1]} and {w[1]}x{w[0]}).\n"
        f"linear computes {p} @ {q}.T: {p} is {a}, so {q} must be (out_features, {a[-1]}), but it is {w}.{fix}"
    )


def target_size(text: str, target: Any, want: Sequence[int]) -> str:
    """Append a suggested reshape to PyTorch's message about a target of another shape."""
    fits = math.prod(shape_of(target)) == math.prod(want)
    return f"{text}: write {name_of(target) or 'target'}.reshape({tuple(want)})" if fits else text


def warn_target_size(x: Any, y: Any) -> None:
    """Warn about a loss whose input and target have different shapes, which are broadcast."""
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
        text += f"\n{p} {shape_of(x)} and {q} {shape_of(y)} are broadcast to {shape}: "
        a, b = math.prod(shape_of(x)), math.prod(shape_of(y))
        if math.prod(shape) > max(a, b):
            text += "every prediction is compared with every target. "
        else:
            text += "some numbers are compared more than once. "
        if a == b:
            text += f"Use {q}.reshape({p}.shape)."
    warn(text)


_KINDS = {"b": "booleans", "i": "integers", "u": "unsigned integers", "f": "real floats", "c": "complex numbers"}


def no_kernel(function: str, dtype: Any, accepts: str, on_bools: str = "") -> NotImplementedError:
    if dtype == "bool" and on_bools:
        return NotImplementedError(on_bools)
    refused, takes = _KINDS.get(dtype.kind, f"the dtype {dtype}"), ", ".join(_KINDS[kind] for kind in accepts)
    return NotImplementedError(
        f"\"{function}_cpu\" not implemented for '{dtype_word(dtype)}': {function} takes {takes}, not {refused}. "
        "Convert first with .to(dtype)."
    )


def unsupported_rule(name: str, column: str, why: str) -> NotImplementedError:
    kind = NoForwardMode if column.startswith("JVP") else NotImplementedError
    return kind(f"{name} has no {column}: {why}")


def convolution_channels(function: str, x: Any, weight: object, groups: int, transposed: bool) -> RuntimeError:
    w, shape = shape_of(weight), shape_of(x)
    expected = w[0] if transposed else w[1] * groups
    each = f" (weight.shape[1]·groups = {w[1]}·{groups})" if groups > 1 and not transposed else ""
    name = name_of(x) or "input"
    last = f" {name}.movedim(-1, 1) moves the last axis there." if shape[-1] == expected else ""
    return RuntimeError(
        f"Given {'transposed=1' if transposed else f'groups={groups}'}, weight of size {list(w)}, expected input"
        f"{list(shape)} to have {expected} channels{each}, but got {shape[1]} channels instead: in {function}, axis 1 of a "
        f"batch is the channel axis.{last}"
    )


def adaptive_rank(function: str, x: Any, axes: int, several: bool) -> Exception:
    kind = ValueError if several and len(shape_of(x)) <= axes else RuntimeError
    shape = shape_of(x)
    return kind(
        f"Input dimension should be at least {axes + 1}, got {len(shape)}: {function}: Expected {axes + 1}D or "
        f"{axes + 2}D tensor, but got {list(shape)}"
    )
