"""Moves of elements as users call them. Composites show in the graph as the rows they are made of."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core import dtypes
from chainrule.core.dispatch import bind, cast
from chainrule.core.faces import operand
from chainrule.core.protocol import ArrayLike
from chainrule.core.shapes import shape_of
from chainrule.core.tensor import Tensor, wrap
from chainrule.table import reduction
from chainrule.table import shape as rows

ndarray = np.ndarray


def _ints(function: str, sizes: Any) -> tuple[int, ...]:
    """Sizes given one by one, or as one sequence."""
    if len(sizes) == 1 and not isinstance(sizes[0], (int, np.integer)) and hasattr(sizes[0], "__iter__"):
        sizes = tuple(sizes[0])
    try:
        return tuple(s.__index__() for s in sizes)
    except (AttributeError, TypeError):
        raise TypeError(
            f"{function}(): argument 'size' must be ints or a tuple of ints, not {sizes!r}"
        ) from None


def _filled(function: str, have: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """A target shape with its -1 worked out."""
    total = 1
    for n in have:
        total *= n
    unknown = shape.count(-1)
    known = 1
    for n in shape:
        if n != -1:
            known *= n
    if unknown > 1:
        raise RuntimeError("only one dimension can be inferred")
    if builtins.any(n < -1 for n in shape):
        raise RuntimeError(f"invalid shape dimension {builtins.min(shape)} in {list(shape)}")
    if unknown:
        if known == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
                "can be any value and is ambiguous"
            )
        if total % known:
            raise errors.reshape_size(function, have, shape, total)
        shape = tuple(total // known if n == -1 else n for n in shape)
    elif known != total:
        raise errors.reshape_size(function, have, shape, total)
    return shape


def reshape(input: Any, *shape: Any) -> Tensor:
    """The same elements in another shape: a view where memory allows, else a copy. One size may be -1.

    >>> import chainrule as cr
    >>> cr.arange(4).reshape(2, -1)
    tensor([[0, 1],
            [2, 3]])
    """
    x = _tensor("reshape", input)
    target = _filled("reshape", x._data.shape, _ints("reshape", shape))
    if type(x._data) is ndarray and not _viewable(x._data, target):
        return bind(rows.view, (rows.clone(x) if x._edge is not None else wrap(x._data.copy()),), {
            "shape": target, "name": "UnsafeViewBackward0"})
    return bind(rows.view, (x,), {"shape": target})


def _viewable(array: Any, target: tuple[int, ...]) -> bool:
    if array.flags.c_contiguous:
        return True
    try:
        array.reshape(target, copy=False)
    except ValueError:
        return False
    except TypeError:  # NumPy 2.0 has no copy=
        return builtins.bool(np.shares_memory(array.reshape(target), array)) or array.size == 0
    return True


def view(input: Any, *shape: Any) -> Tensor:
    """As :func:`reshape`, but never a copy.

    Raises:
        RuntimeError: memory does not allow a view in that shape.
    """
    x = _tensor("view", input)
    if len(shape) == 1 and isinstance(shape[0], (np.dtype, type)):
        return wrap(x._array().view(dtypes.as_dtype(shape[0])))
    target = _filled("view", x._data.shape, _ints("view", shape))
    if type(x._data) is ndarray and not _viewable(x._data, target):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return bind(rows.view, (x,), {"shape": target})


def _tensor(function: str, x: Any) -> Any:
    if not isinstance(x, Tensor):
        x = operand(function, 0, x)
        if not hasattr(x, "dtype"):
            raise errors.wrong_operand(function, 0, x)
    return x


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of ``other``."""
    return view(input, *other.shape)


def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Reshaped to the shape of ``other``."""
    return reshape(input, *other.shape)


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes from ``start_dim`` to ``end_dim`` joined into one."""
    x = _tensor("flatten", input)
    if not x.ndim:
        return reshape(x, 1)
    start, end = errors.check_dim("flatten", start_dim, x.ndim), errors.check_dim("flatten", end_dim, x.ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if start == end:
        return x
    shape = x._data.shape
    n = 1
    for length in shape[start : end + 1]:
        n *= length
    return reshape(x, *shape[:start], n, *shape[end + 1 :])


def ravel(input: Any) -> Tensor:
    """All elements along one axis."""
    return reshape(input, -1)


def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One axis split into several."""
    d = errors.check_dim("unflatten", dim, input.ndim)
    shape = tuple(input.shape)
    return reshape(input, *shape[:d], *_filled("unflatten", (shape[d],), tuple(sizes)), *shape[d + 1 :])


def permute(input: Any, *dims: Any) -> Tensor:
    """The axes in another order."""
    x = _tensor("permute", input)
    order = _ints("permute", dims)
    if len(order) != x.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {x.ndim} is not equal to len(dims) = {len(order)}"
        )
    axes = tuple(errors.check_dim("permute", d, x.ndim) for d in order)
    if len(set(axes)) != len(axes):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return bind(rows.permute, (x,), {"axes": axes})


def transpose(input: Any, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged."""
    x = _tensor("transpose", input)
    n = x.ndim
    a, b = errors.check_dim("transpose", dim0, n), errors.check_dim("transpose", dim1, n)
    return bind(rows.transpose, (x,), {"axis0": a - n, "axis1": b - n}) if n else x


def t(input: Any) -> Tensor:
    """The transpose of a matrix (a vector or number is returned as it is)."""
    x = _tensor("t", input)
    if x.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D: use .mT or permute")
    return bind(rows.t, (x,), {}) if x.ndim == 2 else x


def T(input: Any) -> Tensor:
    """All axes in reverse order (``tensor.T``)."""
    x = _tensor("T", input)
    return bind(rows.permute, (x,), {"axes": tuple(range(x.ndim - 1, -1, -1))})


def mT(input: Any) -> Tensor:
    """The last two axes exchanged (``tensor.mT``)."""
    x = _tensor("mT", input)
    if x.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {x.ndim}-D tensor."
        )
    return bind(rows.transpose, (x,), {"axis0": -2, "axis1": -1})


def movedim(input: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places, the others kept in order."""
    x = _tensor("movedim", input)
    n = x.ndim
    src = [errors.check_dim("movedim", d, n) for d in ([source] if isinstance(source, int) else source)]
    dst = [errors.check_dim("movedim", d, n) for d in ([destination] if isinstance(destination, int) else destination)]
    if len(src) != len(dst):
        raise RuntimeError("movedim: Invalid source or destination dims: they should contain the same number of dims")
    order = [i for i in range(n) if i not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return bind(rows.permute, (x,), {"axes": tuple(order)})


def squeeze(input: Any, dim: Any = None) -> Tensor:
    """Axes of length 1 removed: all of them, or those of ``dim`` that are."""
    x = _tensor("squeeze", input)
    shape = x._data.shape
    n = len(shape)
    if dim is None:
        axes = [i for i, length in enumerate(shape) if length == 1]
    else:
        dims = [dim] if not isinstance(dim, (tuple, list)) else dim
        axes = [i for i in (errors.check_dim("squeeze", d, n) for d in dims) if n and shape[i] == 1]
    return bind(rows.squeeze, (x,), {"axis": tuple(a - n for a in axes)})


def unsqueeze(input: Any, dim: int) -> Tensor:
    """A new axis of length 1 at ``dim``."""
    x = _tensor("unsqueeze", input)
    n = x.ndim + 1
    return bind(rows.unsqueeze, (x,), {"axis": (errors.check_dim("unsqueeze", dim, n) - n,)})


def expand(input: Any, *sizes: Any) -> Tensor:
    """Axes of length 1 stretched to the given sizes, without copying; -1 keeps a size."""
    x = _tensor("expand", input)
    have = x._data.shape
    want = _ints("expand", sizes)
    extra = len(want) - len(have)
    if extra < 0:
        raise RuntimeError(
            f"expand(torch.FloatTensor{list(have)}, size={list(want)}): the number of sizes provided ({len(want)}) must be "
            f"greater or equal to the number of dimensions in the tensor ({len(have)})"
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
                f"The expanded size of the tensor ({n}) must match the existing size ({old}) at non-singleton dimension {i}. "
                f" Target sizes: {list(want)}.  Tensor sizes: {list(have)}"
            )
        else:
            target.append(n)
    return bind(rows.expand, (x,), {"shape": tuple(target)})


def expand_as(input: Any, other: Tensor) -> Tensor:
    """Expanded to the shape of ``other``."""
    return expand(input, *other.shape)


def broadcast_to(input: Any, size: Any) -> Tensor:
    """Broadcast to a shape, without copying."""
    return expand(input, *_ints("broadcast_to", (size,)))


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Several tensors broadcast to their common shape."""
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(expand(t, *shape) for t in tensors)


def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that the given ones broadcast to."""
    from chainrule.core.size import Size

    try:
        return Size(np.broadcast_shapes(*[s if isinstance(s, int) else tuple(s) for s in shapes]))
    except ValueError:
        raise RuntimeError(
            f"Shape mismatch: objects cannot be broadcast to a single shape: {', '.join(str(tuple(s)) for s in shapes)}"
        ) from None


def repeat(input: Any, *repeats: Any) -> Tensor:
    """Copies of the tensor side by side along every axis (``np.tile``)."""
    x = _tensor("repeat", input)
    times = _ints("repeat", repeats)
    if len(times) < x.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
            f"{len(times)} repeats for shape {tuple(x.shape)}"
        )
    if builtins.any(n < 0 for n in times):
        raise RuntimeError(f"Trying to create tensor with negative dimension {builtins.min(times)}")
    shape = (1,) * (len(times) - x.ndim) + tuple(x._data.shape)
    paired = [n for length in shape for n in (1, length)]
    stretched = [n for r, length in zip(times, shape, strict=True) for n in (r, length)]
    joined = [r * length for r, length in zip(times, shape, strict=True)]
    return reshape(expand(reshape(x, *paired), *stretched), *joined)


def tile(input: Any, *dims: Any) -> Tensor:
    """As :func:`repeat`, with missing repeats counted as 1."""
    times = _ints("tile", dims)
    return repeat(input, *(1,) * (input.ndim - len(times)), *times)


def repeat_interleave(input: Any, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> Tensor:
    """Every element (or entry along ``dim``) repeated in place."""
    x = _tensor("repeat_interleave", input)
    if dim is None:
        x, dim = reshape(x, -1), 0
    d = errors.check_dim("repeat_interleave", dim, x.ndim)
    counts = repeats._array() if isinstance(repeats, Tensor) else np.asarray(repeats)
    index = np.repeat(np.arange(x.shape[d]), counts)
    return index_select(x, d, index)


def flip(input: Any, *dims: Any) -> Tensor:
    """The order along axes reversed (a copy)."""
    x = _tensor("flip", input)
    order = [errors.check_dim("flip", d, x.ndim) for d in _ints("flip", dims)]
    if len(set(order)) != len(order):
        raise RuntimeError(f"dim {order[-1]} appears multiple times in the list of dims")
    return bind(rows.flip, (x,), {"axis": tuple(a - x.ndim for a in order)}) if x.ndim else rows.clone(x)


def fliplr(input: Any) -> Tensor:
    """Columns in reverse order."""
    return flip(input, 1)


def flipud(input: Any) -> Tensor:
    """Rows in reverse order."""
    return flip(input, 0)


def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Rotated by k quarter turns in the plane of two axes."""
    a, b = dims
    k %= 4
    if k == 0:
        return rows.clone(input)
    if k == 2:
        return flip(input, a, b)
    return flip(transpose(input, a, b), a) if k == 1 else transpose(flip(input, a), a, b)


def roll(input: Any, shifts: Any, dims: Any = None) -> Tensor:
    """Elements shifted along axes, around the ends; without ``dims`` as if flattened."""
    x = _tensor("roll", input)
    if dims is None:
        n = x.numel()
        shift = shifts if isinstance(shifts, int) else shifts[0]
        flat = bind(rows.roll, (reshape(x, n),), {"shift": (shift,), "axis": (-1,)})
        return reshape(flat, *x._data.shape)
    shift = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    axes = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(shift) != len(axes):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shift)}, dims:{len(axes)}")
    axes = tuple(errors.check_dim("roll", d, x.ndim) - x.ndim for d in axes)
    return bind(rows.roll, (x,), {"shift": shift, "axis": axes})


def _list(function: str, tensors: Any) -> list[Any]:
    if isinstance(tensors, (Tensor, ndarray)):
        raise TypeError(
            f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}: write "
            f"{function}([a, b])"
        )
    xs = [operand(function, i, x) for i, x in enumerate(tensors)]
    if not xs:
        raise RuntimeError(f"{function}(): expected a non-empty list of Tensors")
    for i, x in enumerate(xs):
        if not hasattr(x, "dtype"):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    if builtins.all(x.dtype == xs[0].dtype for x in xs):
        return xs
    target = xs[0].dtype
    zero = xs[0].ndim == 0
    for x in xs[1:]:
        target = dtypes.result_dtype(target, zero, x.dtype, x.ndim == 0)
        zero = zero and x.ndim == 0
    return [cast(x, target) for x in xs]


def cat(tensors: Any, dim: int = 0, *, axis: Any = None, out: Any = None) -> Tensor:
    """Tensors one after another along ``dim``.

    Raises:
        RuntimeError: their shapes differ in another axis.
    """
    xs = _list("cat", tensors)
    dim = dim if axis is None else axis
    full = [x for x in xs if shape_of(x) != (0,)] or xs[:1]  # PyTorch lets an empty vector join anything
    n = full[0].ndim
    if n == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated: use stack")
    d = errors.check_dim("cat", dim, n)
    for i, x in enumerate(full):
        a, b = shape_of(full[0]), shape_of(x)
        if len(a) != len(b):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(a)} and {len(b)}")
        for k in range(n):
            if k != d and a[k] != b[k]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {a[k]} but got size {b[k]} for "
                    f"tensor number {i} in the list: shapes {tuple(a)} and {tuple(b)}."
                )
    result = bind(rows.cat, tuple(full), {"axis": d - n})
    return result if out is None else out.copy_(result)


concat = concatenate = cat


def stack(tensors: Any, dim: int = 0, *, axis: Any = None, out: Any = None) -> Tensor:
    """Tensors of one shape, side by side along a new axis.

    >>> import chainrule as cr
    >>> cr.stack([cr.tensor(1.), cr.tensor(2.)])
    tensor([1., 2.])
    """
    xs = _list("stack", tensors)
    dim = dim if axis is None else axis
    for i, x in enumerate(xs):
        if shape_of(x) != shape_of(xs[0]):
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape_of(xs[0]))} at entry 0 and "
                f"{list(shape_of(x))} at entry {i}"
            )
    n = xs[0].ndim + 1
    result = bind(rows.stack, tuple(xs), {"axis": errors.check_dim("stack", dim, n) - n})
    return result if out is None else out.copy_(result)


def hstack(tensors: Any) -> Tensor:
    """Side by side: along the second axis (the first, of vectors)."""
    xs = [atleast_1d(x) for x in tensors]
    return cat(xs, 0 if xs[0].ndim == 1 else 1)


def vstack(tensors: Any) -> Tensor:
    """One above another: along the first axis (vectors become rows)."""
    return cat([atleast_2d(x) for x in tensors], 0)


row_stack = vstack


def dstack(tensors: Any) -> Tensor:
    """Along the third axis."""
    return cat([atleast_3d(x) for x in tensors], 2)


def column_stack(tensors: Any) -> Tensor:
    """Vectors as columns of a matrix, matrices side by side."""
    return cat([reshape(x, x.numel(), 1) if x.ndim <= 1 else x for x in tensors], 1)


def atleast_1d(*tensors: Any) -> Any:
    """Numbers become vectors of length 1."""
    return _each(tensors, lambda x: x if x.ndim else reshape(x, 1))


def atleast_2d(*tensors: Any) -> Any:
    """Vectors become matrices of one row."""
    return _each(tensors, lambda x: x if x.ndim > 1 else reshape(x, 1, -1))


def atleast_3d(*tensors: Any) -> Any:
    """At least three axes."""

    def widen(x: Any) -> Any:
        if x.ndim >= 3:
            return x
        return unsqueeze(x, -1) if x.ndim == 2 else reshape(x, 1, -1, 1)

    return _each(tensors, widen)


def _each(tensors: Any, function: Any) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(function(_tensor("atleast", x)) for x in tensors[0])
    done = tuple(function(_tensor("atleast", x)) for x in tensors)
    return done[0] if len(done) == 1 else done


def narrow(input: Any, dim: int, start: Any, length: int) -> Tensor:
    """A stretch of ``length`` entries along ``dim``, as a view."""
    x = _tensor("narrow", input)
    d = errors.check_dim("narrow", dim, x.ndim)
    n = x._data.shape[d]
    begin = int(start)
    begin = begin + n if begin < 0 else begin
    if not 0 <= begin <= n or length < 0 or begin + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return x[(slice(None),) * d + (slice(begin, begin + length),)]


def select(input: Any, dim: int, index: int) -> Tensor:
    """The entry at ``index`` along ``dim``, which is removed; a view."""
    x = _tensor("select", input)
    if not x.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    return x[(slice(None),) * errors.check_dim("select", dim, x.ndim) + (index,)]


def unbind(input: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """All entries along ``dim``, each a view."""
    x = _tensor("unbind", input)
    if not x.ndim:
        raise RuntimeError("Dimension specified as 0 but tensor has no dimensions")
    lead = (slice(None),) * errors.check_dim("unbind", dim, x.ndim)
    return tuple(x[(*lead, i)] for i in range(x._data.shape[len(lead)]))


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces along ``dim``: of a size (the last may be smaller), or of the sizes listed. Each is a view."""
    x = _tensor("split", tensor)
    d = errors.check_dim("split", dim, x.ndim)
    n = x._data.shape[d]
    if isinstance(split_size_or_sections, (int, np.integer)):
        size = int(split_size_or_sections)
        if size < 0 or (size == 0 and n):
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
        sizes = [builtins.min(size, n - i) for i in range(0, n, size)] if n else [0]
    else:
        sizes = list(split_size_or_sections)
        if builtins.sum(sizes) != n:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {d}), but got "
                f"split_sizes={sizes}"
            )
    pieces = []
    start = 0
    for size in sizes:
        pieces.append(x[(slice(None),) * d + (slice(start, start + size),)])
        start += size
    return tuple(pieces)


def split_with_sizes(tensor: Any, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of the sizes listed, along ``dim``."""
    return split(tensor, list(split_sizes), dim)


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` pieces of equal size along ``dim``; the last may be smaller."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input.shape[dim]
    return split(input, builtins.max(-(-n // chunks), 1), dim)


def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces as ``np.array_split`` makes them: so many of nearly equal size, or cut at indices."""
    d = errors.check_dim("tensor_split", dim, input.ndim)
    n = input.shape[d]
    if isinstance(indices_or_sections, int):
        k = indices_or_sections
        if k <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {k}")
        sizes = [n // k + (i < n % k) for i in range(k)]
        cuts = np.cumsum([0, *sizes]).tolist()
    else:
        cuts = [0, *[int(i) for i in indices_or_sections], n]
    lead = (slice(None),) * d
    return tuple(input[(*lead, slice(a, b))] for a, b in zip(cuts[:-1], cuts[1:], strict=True))


def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """Padding around the last axes: ``(left, right)`` of the last one, then of the one before, and so on.

    Args:
        mode: "constant" (filled with ``value``; negative widths cut), "reflect", "replicate" or "circular".
    """
    x = _tensor("pad", input)
    widths = [int(w) for w in pad]
    if len(widths) % 2 or len(widths) // 2 > x.ndim:
        raise RuntimeError(
            f"Padding length must be divisible by 2 and at most twice the number of dimensions of the input; got {len(widths)} "
            f"for {x.ndim} dimensions"
        )
    pairs = tuple((widths[i], widths[i + 1]) for i in range(len(widths) - 2, -1, -2))
    for (a, b), n in zip(pairs, x._data.shape[x.ndim - len(pairs) :], strict=True):
        if n + a + b < 0:
            raise RuntimeError(f"The input size {n}, plus negative padding {a} and {b}, resulted in a negative output size")
    if mode == "constant":
        return bind(rows.pad, (x,), {"widths": pairs, "value": 0.0 if value is None else value})
    kinds = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in kinds:
        raise NotImplementedError(f"Unrecognised padding mode {mode}: use constant, reflect, replicate or circular")
    for k, (a, b) in enumerate(pairs):
        d = x.ndim - len(pairs) + k
        n = x._data.shape[d]
        if mode == "reflect" and (a >= n or b >= n):
            raise RuntimeError(
                f"Padding size should be less than the corresponding input dimension, but got: padding ({a}, {b}) at "
                f"dimension {d} of input {list(x.shape)}"
            )
        if a or b:
            x = index_select(x, d, np.pad(np.arange(n), (a, b), mode=kinds[mode]))
    return x


def index_select(input: Any, dim: int, index: Any) -> Tensor:
    """Entries at indices along ``dim`` (a copy; indices may repeat)."""
    from chainrule.table import indexing

    x = _tensor("index_select", input)
    where = index if isinstance(index, (Tensor, ndarray, ArrayLike)) else np.asarray(index)
    if where.dtype.kind not in "iu":
        raise RuntimeError(f"index_select(): Expected dtype int32 or int64 for index, but got {where.dtype}")
    if where.ndim > 1:
        raise IndexError(f"index_select(): Index is supposed to be a vector, but got shape {tuple(where.shape)}")
    if not x.ndim:
        return rows.clone(x)
    d = errors.check_dim("index_select", dim, x.ndim)
    n = x._data.shape[d]
    plain = where._data if isinstance(where, Tensor) else where
    if type(plain) is ndarray and plain.size and (plain.max() >= n or plain.min() < 0):
        raise IndexError(f"index out of range in self: index_select along a dimension of size {n}")
    if where.ndim == 0:
        where = where.reshape(1)
    return bind(indexing.take, (x, where), {"axis": d - x.ndim})


def tril(input: Any, diagonal: int = 0) -> Tensor:
    """The lower triangle of matrices, up to a diagonal; zeros elsewhere."""
    return bind(rows.tril, (_matrix("tril", input),), {"k": diagonal})


def triu(input: Any, diagonal: int = 0) -> Tensor:
    """The upper triangle of matrices, from a diagonal; zeros elsewhere."""
    return bind(rows.triu, (_matrix("triu", input),), {"k": diagonal})


def _matrix(name: str, x: Any) -> Any:
    x = _tensor(name, x)
    if x.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return x


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A diagonal of two axes, as the last axis (a view)."""
    x = _tensor("diagonal", input)
    n = x.ndim
    a, b = errors.check_dim("diagonal", dim1, n), errors.check_dim("diagonal", dim2, n)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return bind(rows.diagonal, (x,), {"offset": offset, "axis1": a - n, "axis2": b - n})


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last axis put on the diagonal of a new pair of axes; zeros elsewhere."""
    x = _tensor("diag_embed", input)
    n = x.ndim + 1
    a, b = errors.check_dim("diag_embed", dim1, n), errors.check_dim("diag_embed", dim2, n)
    length = x._data.shape[-1] + builtins.abs(offset)
    return bind(
        rows.undiagonal, (x,), {"offset": offset, "axis1": a - n, "axis2": b - n, "sizes": (length, length)}
    )


def diag(input: Any, diagonal: int = 0) -> Tensor:
    """A matrix with that diagonal, of a vector; the diagonal, of a matrix."""
    x = _tensor("diag", input)
    if x.ndim == 1:
        return diag_embed(x, diagonal)
    if x.ndim == 2:
        return globals()["diagonal"](x, diagonal)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D")


def diagflat(input: Any, offset: int = 0) -> Tensor:
    """A matrix with the flattened elements on a diagonal."""
    return diag_embed(reshape(input, -1), offset)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids: the i-th result varies along axis i (along the other, for the first two, with "xy")."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    shape = [t.numel() for t in tensors]
    n = len(tensors)
    grids = [expand(reshape(t, *[-1 if i == k else 1 for i in range(n)]), *shape) for k, t in enumerate(tensors)]
    return tuple(transpose(g, 0, 1) for g in grids) if indexing == "xy" and n > 1 else tuple(grids)


def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of one element of each vector, one a row."""
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(g, -1) for g in meshgrid(*tensors)], 1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of r elements of a vector, one a row."""
    import itertools

    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    picks = np.array(list(choose(range(input.numel()), r)), dtype=np.int64).reshape(-1, r)
    return input[picks]


def block_diag(*tensors: Any) -> Tensor:
    """Matrices along the diagonal of a large one."""
    blocks = [atleast_2d(t) for t in tensors]
    width = builtins.sum(b.shape[1] for b in blocks)
    done = []
    start = 0
    for b in blocks:
        done.append(pad(b, (start, width - start - b.shape[1])))
        start += b.shape[1]
    return cat(done, 0)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector's elements, as columns."""
    n = x.shape[0] if N is None else N
    powers = np.arange(n) if increasing else np.arange(n)[::-1]
    return stack([x ** int(p) for p in powers], -1) if n else x.new_zeros((x.shape[0], 0))


def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours along ``dim``, n times."""
    parts = [p for p in (prepend, input, append) if p is not None]
    x = cat(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        length = x.shape[dim]
        if length == 0:
            return x
        later, earlier = narrow(x, dim, 1, length - 1), narrow(x, dim, 0, length - 1)
        x = later ^ earlier if x.dtype == np.bool_ else later - earlier
    return x


def clone(input: Any, *, memory_format: Any = None) -> Tensor:
    """A copy; gradients flow through it."""
    return rows.clone(_tensor("clone", input))


def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself if its memory is in row order, else a copy that is."""
    if type(input._data) is not ndarray or input._data.flags.c_contiguous:
        return input
    copy = rows.clone(input)
    copy._data = np.ascontiguousarray(copy._data)
    return copy


def unfold(input: Any, dimension: int, size: int, step: int) -> Tensor:
    """Windows of ``size`` along a dimension, every ``step``, as a new last axis (a copy)."""
    x = _tensor("unfold", input)
    d = errors.check_dim("unfold", dimension, x.ndim)
    n = x._data.shape[d] if x.ndim else 1
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    starts = np.arange(0, n - size + 1, step)
    windows = x[(slice(None),) * d + (starts[:, None] + np.arange(size),)]
    return movedim(windows, d + 1, -1)


swapaxes = swapdims = transpose
moveaxis = movedim


def adjoint(input: Any) -> Tensor:
    """The conjugate transpose of matrices."""
    from chainrule.ops.elementwise import conj

    return conj(mT(input))


_ = reduction
