"""Moves of elements: each is linear, and its transpose moves the elements back.

``ops.shaping``, ``ops.joining`` and ``ops.splitting`` apply them.

Axes are counted from the end. A primitive marked ``view`` shares memory with its operand where NumPy's function does.
"""

from __future__ import annotations

import importlib
from typing import Any, SupportsIndex

import numpy as np

from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.device import gpu
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, NumpyDType, Params, TensorLike
from chainrule._src.rules.batching import batch_parameters, broadcast_batch, insert_axes, prepend_size
from chainrule._src.rules.batching import reshape_any as to_shape
from chainrule._src.rules.kinds import call, linear, unbroadcast
from chainrule._src.rules.primitive import Primitive
from chainrule._src.table.reduction import broadcast_to
from chainrule._src.tape.foreign import zeros_on_device_of
from chainrule._src.tape.protocol import as_plain_array, strides_of

ndarray = np.ndarray


def functional_scatter() -> Any:
    """Return ``table.functional_scatter``, which is imported with the first read-only array of another library."""
    return importlib.import_module("chainrule._src.table.functional_scatter")


@linear(
    transpose=lambda g, x_shape: to_shape(g, x_shape),
    batch=batch_parameters(shape=prepend_size),
    view=True,
    moves=True,
    samples=[call((2, 3), shape=(3, 2)), call((2, 3), shape=(6,)), call((), shape=(1, 1)), call((0, 3), shape=(3, 0))],
)
def view(x: AnyArray, *, shape: tuple[int, ...]) -> Any:
    """Return the same elements in the same order, in another shape."""
    return to_shape(x, shape)


@linear(
    transpose=lambda g, x_shape: to_shape(g, x_shape),
    batch=batch_parameters(shape=prepend_size),
    moves=True,
    samples=[call((2, 3), shape=(3, 2))],
)
def unsafe_view(x: AnyArray, *, shape: tuple[int, ...]) -> AnyArray:
    """Apply ``view`` to an array that has no other references (the copy made by a reshape)."""
    return to_shape(x, shape)


@linear(
    transpose=lambda g, *, axes: np.transpose(g, tuple(axes.index(i) for i in range(len(axes)))),
    formula="np.transpose(g, np.argsort(axes))",
    batch=batch_parameters(axes=lambda axes, size: (0, *[a + 1 for a in axes])),
    view=True,
    moves=True,
    samples=[call((2, 3), axes=(1, 0)), call((2, 3, 2), axes=(2, 0, 1))],
)
def permute(x: AnyArray, *, axes: tuple[int, ...]) -> AnyArray:
    """Permute the axes."""
    return x.transpose(axes) if type(x) is ndarray else np.transpose(x, axes)


@linear(
    transpose=lambda g, *, axis0, axis1: np.swapaxes(g, axis0, axis1),
    view=True,
    moves=True,
    samples=[call((2, 3), axis0=-1, axis1=-2), call((2, 3, 4), axis0=-3, axis1=-1)],
)
def transpose(x: AnyArray, *, axis0: int, axis1: int) -> AnyArray:
    """Exchange two axes."""
    return x.swapaxes(axis0, axis1) if type(x) is ndarray else np.swapaxes(x, axis0, axis1)


@linear(transpose=lambda g: np.swapaxes(g, -1, -2), formula="g.T", view=True, moves=True, samples=[call((2, 3))])
def t(x: AnyArray) -> AnyArray:
    """Transpose a matrix."""
    return x.swapaxes(-1, -2) if type(x) is ndarray else np.swapaxes(x, -1, -2)


@linear(
    transpose=lambda g, x_shape: to_shape(g, x_shape),
    view=True,
    moves=True,
    samples=[call((2, 3), axis=(-2,)), call((), axis=(-1,)), call((3,), axis=(-3, -1))],
)
def unsqueeze(x: AnyArray, *, axis: tuple[int, ...]) -> AnyArray:
    """Insert axes of length 1."""
    if len(axis) == 1:  # the fast path
        return x[(..., None, *(slice(None),) * (-axis[0] - 1))]
    return np.expand_dims(x, axis)


@linear(
    transpose=lambda g, x_shape: to_shape(g, x_shape),
    view=True,
    moves=True,
    samples=[call((2, 1, 3), axis=(-2,)), call((1, 1), axis=(-1, -2))],
    naming=lambda params: f"SqueezeBackward{params.get('overload', 0)}",
)
def squeeze(x: AnyArray, *, axis: tuple[int, ...], overload: int = 0) -> AnyArray:
    """Remove axes of length 1."""
    return np.squeeze(x, axis)


def _expand_batch(
    prim: Primitive, payloads: list[AnyArray], batched: list[bool], size: int, params: Params
) -> AnyArray:
    (x,), shape = payloads, params["shape"]
    return prim(insert_axes(x, len(shape) - len(shape_of(x)) + 1), shape=(size, *shape))


@linear(
    transpose=lambda g, x_shape: unbroadcast(g, x_shape, g.dtype),
    batch=_expand_batch,
    view=True,
    moves=True,
    samples=[
        call((3, 1), shape=(2, 3, 4)),
        call((), shape=(2,)),
        call((1, 2), shape=(0, 2)),
        call((1, 1), shape=(2, 1, 1)),
        call((2, 3), shape=(2, 3)),
    ],
)
def expand(x: AnyArray, *, shape: tuple[int, ...]) -> AnyArray:
    """Broadcast to a shape, without copying."""
    out: Any = broadcast_to(x, shape)
    if type(x) is ndarray and x.size != 1 and out is not x:
        out.flags.writeable = x.flags.writeable  # a part without repeated elements may be written to
    return out


@linear(
    transpose=lambda g, *, axis: np.flip(g, axis),
    moves=True,
    samples=[call((2, 3), axis=(-1,)), call((2, 3), axis=(-2, -1)), call((), axis=())],
)
def flip(x: AnyArray, *, axis: tuple[int, ...]) -> AnyArray:
    """Reverse the order of the elements along axes."""
    flipped = np.flip(x, axis)
    return flipped.copy("C" if 0 in flipped.strides else "K") if isinstance(flipped, ndarray) else flipped


@linear(
    transpose=lambda g, *, shift, axis: np.roll(g, tuple([-s for s in shift]), axis),
    moves=True,
    samples=[call((2, 3), shift=(1,), axis=(-1,)), call((3, 3), shift=(2, -1), axis=(-2, -1))],
)
def roll(x: AnyArray, *, shift: tuple[int, ...], axis: tuple[int, ...]) -> AnyArray:
    """Shift the elements cyclically along axes."""
    if len(axis) == 1 and type(x) is ndarray and x.size and x.flags.c_contiguous:  # np.roll, without its checks
        tail = (slice(None),) * (-axis[0] - 1)
        cut = -shift[0] % x.shape[axis[0]]
        return np.concatenate([x[(..., slice(cut, None), *tail)], x[(..., slice(cut), *tail)]], axis[0])
    return np.roll(x, shift, axis)


@linear(
    transpose=lambda g, *, widths: pad(g, widths=tuple([(-a, -b) for a, b in widths]), value=0.0),
    jvp=lambda operands, tangents, out, params: pad(tangents[0], widths=params["widths"], value=0.0),
    naming="ConstantPadNdBackward0",
    samples=[
        call((2, 3), widths=((1, 2),), value=0.0),
        call((2, 3), widths=((0, 1), (2, 0)), value=1.5),
        call((3, 4), widths=((-1, 2), (1, -2)), value=0.0),
    ],
    structure="selection",
)
def pad(x: AnyArray, *, widths: tuple[tuple[int, ...], ...], value: TensorLike) -> Any:
    """Pad the last ``len(widths)`` axes with a constant; negative widths crop."""
    shape = shape_of(x)
    n = len(shape) - len(widths)
    cut = tuple(slice(max(-a, 0), length - max(-b, 0)) for (a, b), length in zip(widths, shape[n:], strict=True))
    if any(a < 0 or b < 0 for a, b in widths):
        x = x[(..., *cut)]
    add = ((0, 0),) * n + tuple((max(a, 0), max(b, 0)) for a, b in widths)
    return np.pad(x, add, constant_values=value) if any(a or b for a, b in add) else clone.value(x)


def _cat_vjp(g: AnyArray, xs_shape: tuple[tuple[int, ...], ...], *, axis: int) -> tuple[AnyArray, ...]:
    parts = []
    start = 0
    tail = (slice(None),) * (-axis - 1)
    for shape in xs_shape:
        stop = start + shape[axis]
        parts.append(g[(..., slice(start, stop), *tail)])
        start = stop
    return tuple(parts)


@linear(
    transpose=_cat_vjp,
    formula="tuple(np.split(g, np.cumsum([s[axis] for s in xs_shape])[:-1], axis))",
    samples=[call((2, 3), (2, 1), axis=-1), call((1, 2), (3, 2), (0, 2), axis=-2)],
    structure="selection",
)
def cat(*xs: AnyArray, axis: int) -> AnyArray | None:
    """Concatenate arrays along an axis."""
    return np.concatenate(xs, axis=axis)


@linear(
    transpose=lambda g, *, axis: tuple(np.moveaxis(g, axis, 0)),
    samples=[call((2, 3), (2, 3), axis=-1), call((2,), (2,), (2,), axis=-2), call((), (), axis=-1)],
    structure="selection",
)
def stack(*xs: Any, axis: SupportsIndex) -> Any:
    """Stack arrays of one shape along a new axis."""
    new_axis = (..., None, *(slice(None),) * (-axis - 1))
    return np.concatenate([x[new_axis] for x in xs], axis=axis)  # np.stack, without its checks


@linear(
    transpose=lambda g, *, k: np.tril(g, k), samples=[call((3, 3), k=0), call((2, 3, 4), k=-1)], structure="selection"
)
def tril(x: AnyArray, *, k: int) -> AnyArray:
    """Return the lower triangle of matrices, with zeros elsewhere."""
    return np.tril(x, k)


@linear(
    transpose=lambda g, *, k: np.triu(g, k),
    samples=[call((3, 3), k=0), call((2, 3, 4), k=1), call((4, 2), k=-2)],
    structure="selection",
)
def triu(x: AnyArray, *, k: int) -> AnyArray:
    """Return the upper triangle of matrices, with zeros elsewhere."""
    return np.triu(x, k)


@linear(
    transpose=lambda g, x_shape, *, offset, axis1, axis2: undiagonal(
        g, offset=offset, axis1=axis1, axis2=axis2, sizes=(x_shape[axis1], x_shape[axis2])
    ),
    view=True,
    moves=True,
    samples=[
        call((3, 3), offset=0, axis1=-2, axis2=-1),
        call((2, 3, 4), offset=1, axis1=-3, axis2=-1),
        call((4, 2), offset=-1, axis1=-1, axis2=-2),
    ],
)
def diagonal(x: AnyArray, *, offset: int, axis1: int, axis2: int) -> AnyArray:
    """Return a diagonal of two axes as a last axis."""
    part = np.diagonal(x, offset, axis1, axis2)
    if type(x) is ndarray:
        part.flags.writeable = x.flags.writeable  # a future NumPy will do so itself
    return part


@linear(
    transpose=lambda g, *, offset, axis1, axis2: diagonal(g, offset=offset, axis1=axis1, axis2=axis2),
    formula="np.diagonal(g, offset, axis1, axis2)",
    naming="DiagEmbedBackward0",
    samples=[
        call((3,), offset=0, axis1=-2, axis2=-1, sizes=(3, 3)),
        call((2, 2), offset=-1, axis1=-1, axis2=-2, sizes=(3, 2)),
    ],
    structure="selection",
)
def undiagonal(x: AnyArray, *, offset: int, axis1: int, axis2: int, sizes: tuple[int, ...]) -> AnyArray | None:
    """Return zeros of ``sizes`` along two axes, with the last axis of x on one of their diagonals."""
    if not is_array(x):
        return _undiagonal_of(x, offset, axis1, axis2, sizes)
    batch = shape_of(x)[:-1]
    ndim = len(batch) + 2
    positions = (axis1 % ndim, axis2 % ndim)
    shape = list(batch)
    for position, size in sorted(zip(positions, sizes, strict=True)):
        shape.insert(position, size)
    out = np.zeros(shape, x.dtype)
    n = shape_of(x)[-1]
    i = np.arange(n)
    matrices = np.moveaxis(out, positions, (-2, -1))
    matrices[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return out


def _undiagonal_of(x: AnyArray, offset: int, axis1: int, axis2: int, sizes: tuple[int, int]) -> AnyArray:
    """Compute ``undiagonal`` without writing: each row of the matrix has one nonzero element."""
    n = shape_of(x)[-1]
    which = np.arange(sizes[0]) - max(-offset, 0)
    on = (which[:, None] == np.arange(sizes[1]) - max(offset, 0)) & ((which >= 0) & (which < n))[:, None]
    if n:
        rows = np.take(x, np.clip(which, 0, n - 1), axis=-1)
    else:
        rows = zeros_on_device_of(x, (*shape_of(x)[:-1], sizes[0]), x.dtype)
    return np.moveaxis(np.where(on, rows[..., None], np.zeros((), x.dtype)), (-2, -1), (axis1, axis2))


# -- copies and casts ------------------------------------------------------------------------------------------------


@linear(transpose=lambda g: g, samples=[call((2, 3)), call(())], structure="diagonal", moves=True)
def clone(x: Any) -> Any:
    """Return a copy with the memory order of x; broadcast axes are materialized in C order."""
    if not is_array(x):
        return np.positive(x)
    is_broadcast = 0 in x.strides and any([s == 0 and n > 1 for s, n in zip(x.strides, x.shape, strict=True)])
    return x.copy(order="C" if is_broadcast else "K")


@linear(
    transpose=lambda g, *, order, ndim: g,
    naming="CloneBackward0",
    samples=[call((2, 3), order="F", ndim=2), call((2, 3), order="C", ndim=2)],
    structure="diagonal",
    moves=True,
)
def laid(x: AnyArray, *, order: str, ndim: int) -> AnyArray:
    """Return a copy whose last ``ndim`` axes are in row-major ("C") or column-major ("F") order in memory."""
    lead = len(x.shape) - ndim
    axes = (*range(lead), *range(lead, lead + ndim)[:: 1 if order == "C" else -1])
    return np.transpose(np.copy(np.transpose(x, axes), order="C"), axes)


def with_memory_order(a: AnyArray, order: list[int]) -> AnyArray:
    """Return the array, or a copy if its axes do not have this memory order (slowest first)."""
    shape = shape_of(a)
    if [k for k in order if shape[k] != 1] == [k for k in memory_order(a) if shape[k] != 1]:
        return a
    back = sorted(range(len(order)), key=order.__getitem__)
    return np.transpose(laid(np.transpose(a, order), order="C", ndim=len(order)), back)


def memory_order(a: AnyArray) -> list[int]:
    """Return the axes in memory order, slowest first."""
    steps = strides_of(a)
    return sorted(range(len(steps)), key=lambda k: -abs(steps[k]))


@linear(
    transpose=lambda g, *, source, target: to_device(g, source=target, target=source),
    naming="ToCopyBackward0",
    samples=[call((2, 3), source=None, target=None)],
    structure="diagonal",
)
def to_device(x: AnyArray, *, source: object, target: object) -> AnyArray:
    """Copy x from one device to another: the number of a GPU, or None for the host."""
    return clone.value(x) if source == target else as_plain_array(gpu().copy_to(getattr(x, "payload", x), target))


@linear(transpose=lambda g: g, samples=[call((2, 3))], view=True, moves=True, structure="diagonal")
def alias(x: AnyArray) -> AnyArray:
    """Return the tensor itself, as a view."""
    return x[...] if type(x) is ndarray else np.reshape(x, shape_of(x))


@linear(
    transpose=lambda g, x_dtype: unbroadcast(g, g.shape, x_dtype),
    formula="g.astype(x_dtype)",
    naming="ToCopyBackward0",
    samples=[call((2, 3), dtype=np.dtype(np.float64)), call((), dtype=np.dtype(np.complex128))],
    structure="diagonal",
)
def cast(x: AnyArray, *, dtype: NumpyDType) -> AnyArray:
    """Cast the elements to another dtype."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = np.real(x)
    return x.astype(dtype)


class _RecordingPrimitive:
    """Takes the place of a primitive in its batching rule, and records the primitives that the rule applies to a payload."""

    def __init__(self, row: Primitive, x: AnyArray, steps: list[Any]) -> None:
        self.row, self.x, self.steps = row, x, steps

    def __call__(self, y: AnyArray, **params: Any) -> Any:
        if shape_of(y) != shape_of(self.x):  # the rule inserted axes first
            self.steps.append((view, {"shape": shape_of(y)}))
        self.steps.append((self.row, params))
        return self.row(y, **params)

    value = __call__

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, name)


def _steps_batch(x: AnyArray, steps: Any, size: int) -> tuple[tuple[Primitive, Params], ...]:
    """Return the steps that select from a payload what ``steps`` select from each example."""
    under_batch: list[Any] = []
    for row, params in steps:
        x = row.batch(_RecordingPrimitive(row, x, under_batch), (x,), (True,), size, params)
    return tuple(under_batch)


def _slices_batch(
    prim: Primitive, payloads: list[AnyArray], batched: list[bool], size: int, params: Params
) -> AnyArray:
    base, part = (p if b else broadcast_batch(p, size) for p, b in zip(payloads, batched, strict=True))
    return prim(base, part, steps=_steps_batch(base, params["steps"], size))


def _apply_steps(x: AnyArray, steps: Any) -> AnyArray:
    for row, params in steps:
        x = row(x, **params)
    return x


@linear(
    transpose={
        "base": lambda g, part_shape, part_dtype, *, steps: copy_slices(
            g, np.zeros(part_shape, part_dtype), steps=steps
        ),
        "part": lambda g, *, steps: _apply_steps(g, steps),
    },
    formula={"base": "copy_slices(g, np.zeros(part_shape), steps=steps)"},
    naming="CopySlices",
    batch=_slices_batch,
    samples=[
        call((2, 3), (3, 2), steps=((transpose, {"axis0": -2, "axis1": -1}),)),
        call((3, 3), (3,), steps=((diagonal, {"offset": 0, "axis1": -2, "axis2": -1}),)),
        call(
            (2, 3),
            (1, 2),
            steps=(
                (view, {"shape": (3, 2)}),
                (diagonal, {"offset": 0, "axis1": -2, "axis2": -1}),
                (unsqueeze, {"axis": (-2,)}),
            ),
        ),
    ],
    structure=lambda params: "selection" if all(row.moves for row, _ in params["steps"]) else "dense",
)
def copy_slices(base: AnyArray, part: AnyArray, *, steps: Any) -> AnyArray:
    """Return the base with the region of a view replaced by ``part``; ``steps`` take the view."""
    if not (is_array(base) and is_array(part)):
        return functional_scatter().replace_region(base, part, steps)
    out: Any = np.array(base, order="K", copy=True)
    region: Any = _apply_steps(out, steps)
    if np.may_share_memory(region, out):
        region[...] = part
    elif region.size:  # with the memory order of a cotangent, a view may have become a copy
        out = np.array(base, order="C", copy=True)
        out.reshape(-1)[_apply_steps(np.arange(out.size).reshape(out.shape), steps)] = part
    return out
