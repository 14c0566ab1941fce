"""Change shapes and reorder axes, as views wherever the memory layout allows.

``op`` makes these functions public: ``chainrule.reshape``, ``chainrule.permute`` …
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays import dtypes
from chainrule._src.arrays.any_array import compact_strides, empty_with_strides, is_array
from chainrule._src.arrays.device import contiguous_format
from chainrule._src.arrays.size import Size
from chainrule._src.arrays.types import Dims, NumpyArray, ShapeLike, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops.arguments import takes_tensors, tensor_of
from chainrule._src.table import shape as primitives
from chainrule._src.table import windows
from chainrule._src.tape import inplace
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.protocol import memory_of
from chainrule._src.tape.tensor import Tensor, wrap

ndarray = np.ndarray


def _ints(function: str, sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Return sizes given as separate arguments or as one sequence."""
    if len(sizes) == 1 and not isinstance(sizes[0], (int, np.integer)) and hasattr(sizes[0], "__iter__"):
        sizes = sizes if getattr(sizes[0], "ndim", 1) == 0 else tuple(sizes[0])
    try:
        return tuple(s.__index__() for s in sizes)
    except (AttributeError, TypeError):
        raise TypeError(f"{function}(): argument 'size' must be ints or a tuple of ints, not {sizes!r}") from None


def _resolved_shape(function: str, have: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Resolve -1 in a target shape."""
    total = math.prod(have)
    unknown = shape.count(-1)
    known_size = math.prod(shape) if not unknown else math.prod([n for n in shape if n != -1])
    if unknown > 1:
        raise RuntimeError("only one dimension can be inferred")
    if shape and min(shape) < -1:
        raise RuntimeError(f"invalid shape dimension {builtins.min(shape)} in {list(shape)}")
    if unknown:
        if known_size == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size "
                "-1 can be any value and is ambiguous"
            )
        if total % known_size:
            raise errors.reshape_size(function, have, shape, total)
        shape = tuple(total // known_size if n == -1 else n for n in shape)
    elif known_size != total:
        raise errors.reshape_size(function, have, shape, total)
    return shape


@op(method=True, cached=True)
def reshape(input: Any, *sizes: ShapeLike, shape: Any = None) -> Tensor:
    """Return the same elements in another shape: a view if the memory layout allows, else a copy. One size may be -1.

    >>> import chainrule as cr
    >>> cr.arange(4).reshape(2, -1)
    tensor([[0, 1],
            [2, 3]])
    """
    x = tensor_of("reshape", input)
    target = _resolved_shape("reshape", x._raw.shape, _ints("reshape", sizes if shape is None else (shape,)))
    if not _viewable(layout(x), target):
        copy = primitives.clone(x) if x._edge is not None or type(x._raw) is not ndarray else wrap(x._raw.copy())
        return bind(primitives.unsafe_view, (copy,), {"shape": target})
    return bind(primitives.view, (x,), {"shape": target})


def layout(x: Tensor) -> NumpyArray:
    """Return an array with x's memory layout; inside a transformation, with that of one example."""
    raw, view = x._raw, x._view
    if is_array(raw):
        return memory_of(raw)
    if view is not None and not inplace.has_function_step(view.steps):
        return inplace.replay_view(layout(view.base), view.steps)
    steps = raw.own_strides
    return empty_with_strides(raw.shape, raw.dtype, compact_strides(raw.shape, steps, raw.dtype.itemsize) or steps)


def _viewable(array: Any, target: tuple[int, ...]) -> bool:
    if array.flags.c_contiguous:
        return True
    try:
        array.reshape(target, copy=False)
    except ValueError:
        return False
    except TypeError:  # NumPy 2.0 has no ``copy=``
        try:
            array[...].shape = target
        except AttributeError:
            return False
    return True


@op("Tensor.view", also={"dtype": "size"}, sample="rand(2, 3), (6,)", cached=True)
def view(input: TensorLike, *sizes: Any, size: Any = None) -> Tensor:
    """Return a view with the same elements in another shape.

    Raises:
        RuntimeError: the memory layout does not allow a view in that shape.
    """
    x = tensor_of("view", input)
    sizes = sizes if size is None else (size,)
    if len(sizes) == 1 and isinstance(sizes[0], (np.dtype, type)):
        return wrap(x._array().view(dtypes.as_dtype(sizes[0])))
    target = _resolved_shape("view", x._raw.shape, _ints("view", sizes))
    if is_array(x._raw) and not _viewable(memory_of(x._raw), target):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return bind(primitives.view, (x,), {"shape": target})


@op("Tensor.view_as")
@takes_tensors
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view with the shape of ``other``."""
    return view(input, *other.shape)


@op("Tensor.reshape_as")
@takes_tensors
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Reshape to the shape of ``other``."""
    return reshape(input, *other.shape)


@op(method=True, cached=True)
def flatten(input: TensorLike, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the axes from ``start_dim`` to ``end_dim`` into one."""
    x = tensor_of("flatten", input)
    if not x.ndim:
        errors.check_dim("flatten", start_dim, 1), errors.check_dim("flatten", end_dim, 1)
        return reshape(x, 1)
    start, end = errors.check_dim("flatten", start_dim, x.ndim), errors.check_dim("flatten", end_dim, x.ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if start == end:
        return x
    shape = x._raw.shape
    return reshape(x, *shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :])


@op(method=True, cached=True)
def ravel(input: TensorLike) -> Tensor:
    """Return all elements along one axis, contiguous: a view if the tensor is contiguous, else a copy."""
    return reshape(contiguous(tensor_of("ravel", input)), -1)


@op(method=True, sample="rand(2, 6), 1, (2, 3)")
@takes_tensors
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Split one axis into several."""
    d = errors.check_dim("unflatten", dim, input.ndim)
    shape = tuple(input.shape)
    return reshape(input, *shape[:d], *_resolved_shape("unflatten", (shape[d],), tuple(sizes)), *shape[d + 1 :])


@op(method=True, sample="rand(2, 3), (1, 0)", cached=True)
def permute(input: TensorLike, *order: Any, dims: Dims = None) -> Tensor:
    """Permute the axes."""
    x = tensor_of("permute", input)
    order = _ints("permute", order if dims is None else (dims,))
    if len(order) != x.ndim:
        raise RuntimeError(
            f"permute: number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {x.ndim} is not equal to len(dims) = {len(order)}"
        )
    axes = tuple(errors.check_dim("permute", d, x.ndim) for d in order)
    if len(set(axes)) != len(axes):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return bind(primitives.permute, (x,), {"axes": axes})


@op(
    "transpose swapaxes swapdims",
    method=True,
    in_place="view",
    also={"axis0": "dim0", "axis1": "dim1"},
    cached=True,
    sample="rand(2, 3), 0, 1",
)
def transpose(input: TensorLike, dim0: object, dim1: object = None) -> Tensor:
    """Exchange two axes; a tuple of all axes permutes them, as in NumPy."""
    if dim1 is None and isinstance(dim0, (tuple, list)):
        return permute(input, dim0)
    x = tensor_of("transpose", input)
    n = x.ndim
    a, b = errors.check_dim("transpose", dim0, n), errors.check_dim("transpose", dim1, n)
    return bind(primitives.transpose, (x,), {"axis0": a - n, "axis1": b - n}) if n else alias(x)


def alias(x: Tensor) -> Tensor:
    """Return a view of the tensor itself, for operations on axes that it lacks."""
    return bind(primitives.alias, (x,), {})


@op(method=True, in_place="view", sample="rand(2, 3)", cached=True)
def t(input: TensorLike) -> Tensor:
    """Transpose a matrix (a vector or number is returned unchanged)."""
    x = tensor_of("t", input)
    if x.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D: use .mT or permute")
    return bind(primitives.t, (x,), {}) if x.ndim == 2 else alias(x)


def T(input: Tensor) -> Tensor:
    """Reverse the order of all axes (``tensor.T``)."""
    x = tensor_of("T", input)
    return bind(primitives.permute, (x,), {"axes": tuple(range(x.ndim - 1, -1, -1))})


def mT(input: Tensor) -> Tensor:
    """Exchange the last two axes (``tensor.mT``)."""
    x = tensor_of("mT", input)
    if not x.ndim:
        return x
    if x.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {x.ndim}-D tensor.")
    return bind(primitives.transpose, (x,), {"axis0": -2, "axis1": -1})


@op("movedim moveaxis", method=True, sample="rand(2, 3, 4), 0, 2")
def movedim(input: TensorLike, source: Any, destination: Any) -> Tensor:
    """Move axes to other positions; the others keep their order."""
    x = tensor_of("movedim", input)
    n = x.ndim
    if not n:
        return alias(x)
    src = [errors.check_dim("movedim", d, n) for d in ([source] if isinstance(source, int) else source)]
    dst = [errors.check_dim("movedim", d, n) for d in ([destination] if isinstance(destination, int) else destination)]
    if len(src) != len(dst):
        raise RuntimeError("movedim: Invalid source or destination dims: they should contain the same number of dims")
    for name, axes, dims in (("source", source, src), ("destination", destination, dst)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(axes)})")
    order = [i for i in range(n) if i not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return bind(primitives.permute, (x,), {"axes": tuple(order)})


@op(method=True, in_place="view", sample="rand(2, 1)", cached=True)
def squeeze(input: TensorLike, dim: Any = None) -> Tensor:
    """Remove axes of length 1: all of them, or those in ``dim``."""
    x = tensor_of("squeeze", input)
    shape = x._raw.shape
    n = len(shape)
    several = isinstance(dim, (tuple, list))
    if dim is None:
        axes = [i for i, length in enumerate(shape) if length == 1]
    else:
        dims = dim if several else [dim]
        axes = [i for i in (errors.check_dim("squeeze", d, n) for d in dims) if n and shape[i] == 1]
    overload = 0 if dim is None else 2 if several else 1
    return bind(primitives.squeeze, (x,), {"axis": tuple(a - n for a in axes), "overload": overload})


@op(method=True, in_place="view", sample="rand(2, 3), 0", cached=True)
def unsqueeze(input: TensorLike, dim: int) -> Tensor:
    """Insert an axis of length 1 at ``dim``."""
    x = tensor_of("unsqueeze", input)
    n = x.ndim + 1
    return bind(primitives.unsqueeze, (x,), {"axis": (errors.check_dim("unsqueeze", dim, n) - n,)})


@op("Tensor.expand", sample="rand(2, 1), (2, 3)", cached=True)
def expand(input: TensorLike, *sizes: ShapeLike, size: Any = None) -> Tensor:
    """Expand axes of length 1 to the given sizes, without copying; -1 keeps a size."""
    x = tensor_of("expand", input)
    have = x._raw.shape
    want = _ints("expand", sizes if size is None else (size,))
    extra = len(want) - len(have)
    if extra < 0:
        raise RuntimeError(
            f"expand(torch.FloatTensor{list(have)}, size={list(want)}): the number of sizes provided ({len(want)}) "
            f"must be greater or equal to the number of dimensions in the tensor ({len(have)})"
        )
    target = []
    for i, n in enumerate(want):
        old = have[i - extra] if i >= extra else None
        if n == -1:
            if old is None:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {i}"
                )
            target.append(old)
        elif old is not None and old not in (1, n):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({old}) at non-singleton "
                f"dimension {i}.  Target sizes: {list(want)}.  Tensor sizes: {list(have)}"
            )
        else:
            target.append(n)
    return bind(primitives.expand, (x,), {"shape": tuple(target)})


@op("Tensor.expand_as")
@takes_tensors
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Expand to the shape of ``other``."""
    return expand(input, *other.shape)


@op(method=True, sample="rand(3), (2, 3)")
def broadcast_to(input: TensorLike, size: Any) -> Tensor:
    """Broadcast to a shape, without copying."""
    return expand(input, *_ints("broadcast_to", (size,)))


@op(sample="rand(2, 1), rand(3)")
@takes_tensors
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Broadcast several tensors to their common shape."""
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t if t.shape == shape else expand(t, *shape) for t in tensors)


@op(sample="(2, 1), (3,)")
def broadcast_shapes(*shapes: Any) -> Any:
    """Return the common shape that the given shapes broadcast to."""
    try:
        return Size(np.broadcast_shapes(*[s if isinstance(s, int) else tuple(s) for s in shapes]))
    except ValueError:
        raise RuntimeError(
            f"Shape mismatch: objects cannot be broadcast to a single shape: {', '.join(str(tuple(s)) for s in shapes)}"
        ) from None


@op(method=True, sample="rand(3, 3)", cached=True)
def diagonal(input: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a diagonal of two axes as the last axis (a view)."""
    x = tensor_of("diagonal", input)
    n = x.ndim
    a, b = errors.check_dim("diagonal", dim1, n), errors.check_dim("diagonal", dim2, n)
    if a == b:
        raise errors.same_diagonal_axes(dim1, dim2)
    return bind(primitives.diagonal, (x,), {"offset": offset, "axis1": a - n, "axis2": b - n})


@op(method=True, cached=True)
def clone(input: TensorLike, *, memory_format: object = None) -> Tensor:
    """Return a copy with the tensor's memory order, or (``contiguous_format``) in C order. Gradients flow through it."""
    x = tensor_of("clone", input)
    if memory_format is not contiguous_format or layout(x).flags.c_contiguous:
        return primitives.clone(x)
    return contiguous(x)


def apart(result: Tensor, input: Tensor) -> Tensor:
    """Return the result, or a copy if it shares memory with the input or is its view in a transformation."""
    shared = Foreign in (type(result._raw), type(input._raw)) or np.may_share_memory(
        memory_of(result), memory_of(input)
    )
    return clone(result) if shared or result._view is not None else result


@op("Tensor.contiguous")
def contiguous(input: Tensor, memory_format: object = None) -> Tensor:
    """Return the tensor itself if it is contiguous in C order, else a contiguous copy."""
    if layout(input).flags.c_contiguous:
        return input
    if not is_array(input._raw):
        flat = bind(primitives.unsafe_view, (primitives.clone(input),), {"shape": (input.numel(),)})
        return bind(primitives.unsafe_view, (flat,), {"shape": tuple(input._raw.shape)})
    copy = primitives.clone(input)
    if not copy._raw.flags.c_contiguous:
        copy._raw = copy._raw.copy()
    return copy


@op(method=True, sample="rand(4), 0, 2, 1")
def unfold(input: TensorLike, dimension: int, size: int, step: int) -> Tensor:
    """Return windows of ``size`` along a dimension, one every ``step``, as a new last axis (a view)."""
    x = tensor_of("unfold", input)
    d = errors.check_dim("unfold", dimension, x.ndim)
    if not x.ndim:
        return reshape(x, 1).unfold(0, size, step).reshape(-1)
    n = x._raw.shape[d]
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    return bind(windows.unfold, (x,), {"axis": d - x.ndim, "size": size, "step": step})


swapaxes = swapdims = transpose
moveaxis = movedim


@op(method=True)
@takes_tensors
def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transpose of matrices."""
    return ew.conj(mT(input)) if input.dtype.kind == "c" else mT(input)
