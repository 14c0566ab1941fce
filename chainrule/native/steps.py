"""From NumPy's calls to steps: which loops a ufunc, a reduction or a gufunc runs, in which order, on operands that lie where.

Everything here gives NumPy's bits, or None where that is not known.

Elementwise, the order of the elements does not matter, but the layout can: a vectorised tanh, or a product of complex
numbers, may round otherwise than the loop of single elements that NumPy has for reversed or overlapping operands, and the
iterator may gather elements in a buffer first. Loops that round exactly are the same in any layout. Others are used where
their vectorised form is sure to run: it does on any stride that is not negative (half and complex: on contiguous operands
alone). They also want operands that do not overlap, other than exactly, and start 64 bytes apart.

For sums it matters which elements one call of the loop adds up: NumPy's iterator sorts the axes by stride, the smallest
innermost, joins those that one stride covers, and calls the loop for each row of the innermost. The loop adds a row
pairwise, and the rows one after the other. So:

| reduced | loop along | outer dimensions |
|---|---|---|
| all of a contiguous array (in any order of its axes) | all elements | none |
| the axis with the smallest stride | this axis | the others |
| others | the axis with the smallest stride | the others, each reduced one from its first element to its last |

A reduction starts from the ufunc's identity (0 for add, so that a sum of -0.0 is 0.0), or, if it has none, from a copy of
the first elements, and leaves these out. Its loop is called with the result as first and last argument. Where the iterator
would gather elements in a buffer first (two innermost axes that both are reduced and have no common stride), how many it
takes at a time differs between NumPy's versions, and ``reduce_steps`` returns None. Before NumPy 2.3 a row that is longer
than the buffer size, 8192 elements, is reduced in pieces of that size.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from chainrule.native.code import Words, group, group_step, loop_step
from chainrule.native.extension import OWN, loop

#: elements from which a loop goes in blocks that threads share, and elements of a block
SHARED = 32_768
BLOCK = 4_096

_ROWS_IN_PIECES = np.lib.NumpyVersion(np.__version__) < "2.3.0"


class Operand(NamedTuple):
    """Where an array is: base, offset of its first element in bytes, shape, strides in bytes."""

    base: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Axis(NamedTuple):
    """A dimension of an iteration: its length, and the stride of each operand along it."""

    length: int
    strides: tuple[int, ...]


# ---- axes


def broadcast_strides(operand: Operand, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The operand's strides along the axes of ``shape``: 0 where it is repeated, and where there is one element."""
    missing = len(shape) - len(operand.shape)
    own = (s if n != 1 else 0 for n, s in zip(operand.shape, operand.strides))
    return (0,) * missing + tuple(own)


def iteration(shape: tuple[int, ...], strides: list[tuple[int, ...]]) -> list[Axis]:
    """The axes in the iterator's order, the outermost first; adjacent ones that one stride covers are joined."""
    axes = [Axis(n, tuple(s[k] for s in strides)) for k, n in enumerate(shape) if n != 1]
    return joined(in_order_of_strides(axes)) or [Axis(1, (0,) * len(strides))]


def in_order_of_strides(axes: list[Axis]) -> list[Axis]:
    """The iterator's stable insertion sort: by all operands that move along both axes; where they disagree, as given."""
    inner_first: list[Axis] = []
    for axis in reversed(axes):
        place = len(inner_first)
        for k in reversed(range(len(inner_first))):
            verdict = _belongs_inside(axis, inner_first[k])
            if verdict is False:
                break
            if verdict:
                place = k
        inner_first.insert(place, axis)
    return inner_first[::-1]


def _belongs_inside(axis: Axis, other: Axis) -> bool | None:
    """Whether the strides want ``axis`` inside ``other``; None if no operand moves along both."""
    votes = [abs(a) < abs(b) for a, b in zip(axis.strides, other.strides) if a and b]
    return all(votes) if votes else None


def joined(axes: list[Axis]) -> list[Axis]:
    """Adjacent axes that one stride covers for every operand, made one."""
    out: list[Axis] = []
    for axis in axes:
        if out and all(o == i * axis.length for o, i in zip(out[-1].strides, axis.strides)):
            axis = Axis(out.pop().length * axis.length, axis.strides)
        out.append(axis)
    return out


def _nest(fn: int, data: int, operands: list[Operand], axes: list[Axis], split: bool) -> Words:
    """A loop along the innermost axis, for each index of the others."""
    *outer, inner = axes
    args = [(operand.base, operand.offset) for operand in operands]
    return loop_step(fn, data, inner.length, args, inner.strides, outer=outer, split=split and bool(outer))


# ---- elementwise

_EXACT_NAMES = """
    absolute add ceil conjugate copysign divide equal fabs floor fmax fmin greater greater_equal heaviside isfinite isinf isnan
    less less_equal logical_and logical_not logical_or logical_xor maximum minimum multiply negative not_equal positive
    reciprocal rint sign signbit sqrt square subtract trunc
"""
#: ufuncs whose result is an operand, exact, or exactly rounded: every loop gives the same
_EXACT = frozenset(_EXACT_NAMES.split())
_EXACT_FOR_COMPLEX = _EXACT & {
    "add",
    "conjugate",
    "equal",
    "isfinite",
    "isinf",
    "isnan",
    "not_equal",
    "positive",
    "subtract",
}
#: strides from which vectorised loops may leave it to others
_FAR = 1 << 20


def _same_in_this_layout(ufunc: np.ufunc, types: str, axes: list[Axis]) -> bool:
    """Whether the loop has NumPy's bits on operands with such axes, however NumPy's iterator would go over them."""
    letters = types.replace("->", "")
    is_complex = not {"F", "D", "G"}.isdisjoint(letters)
    if ufunc.__name__ in (_EXACT_FOR_COMPLEX if is_complex else _EXACT) or {
        "e",
        "f",
        "d",
        "g",
        "F",
        "D",
        "G",
    }.isdisjoint(letters):
        return True
    if is_complex or "e" in letters:
        (axis, *others) = axes
        return not others and all(s in (0, np.dtype(c).itemsize) for s, c in zip(axis.strides, letters))
    return all(0 <= s < _FAR for axis in axes for s in axis.strides)


def loop_steps(fn: int, data: int, operands: list[Operand]) -> list[Words]:
    """An elementwise loop over operands that broadcast to the last, which is written."""
    return [_loop_over(fn, data, operands, _axes_of(operands))]


def _axes_of(operands: list[Operand]) -> list[Axis]:
    shape = operands[-1].shape
    return iteration(shape, [broadcast_strides(operand, shape) for operand in operands])


def _loop_over(fn: int, data: int, operands: list[Operand], axes: list[Axis]) -> Words:
    if len(axes) > 1 or axes[0].length < SHARED:
        return _nest(fn, data, operands, axes, split=True)
    ((length, strides),) = axes
    args = [(operand.base, operand.offset, s, s) for operand, s in zip(operands, strides)]
    return group([group_step(fn, data, args, strides)], rows=length, block=BLOCK, split=True)


def ufunc_steps(ufunc: np.ufunc, index: int, operands: list[Operand]) -> list[Words] | None:
    """``ufunc(*inputs, out=outputs)`` by its loop ``ufunc.types[index]``; the operands have that loop's dtypes.

    Outputs all have the shape that the inputs broadcast to, and overlap inputs only where they are the same array.
    """
    address = loop(ufunc, index)
    if ufunc.signature is not None or address is None:
        return None
    axes = _axes_of(operands)
    if not _same_in_this_layout(ufunc, ufunc.types[index], axes):
        return None
    return [_loop_over(*address, operands, axes)]


def copy_steps(source: Operand, target: Operand, itemsize: int) -> list[Words] | None:
    """``target[...] = source``, of one dtype."""
    address = OWN.get(f"copy{itemsize}")
    return None if address is None else loop_steps(address, 0, [source, target])


# ---- reductions


def reduction_start(ufunc: np.ufunc, dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """What ``ufunc.reduce`` starts from, as an array of one element; None if from the first elements."""
    identity = ufunc.identity
    return None if identity is None else np.array(identity).astype(dtype)


def reduce_steps(
    ufunc: np.ufunc,
    index: int,
    source: Operand,
    axes: tuple[int, ...],
    target: Operand,
    start: Operand | None,
    dtype: np.dtype[Any],
) -> list[Words] | None:
    """``ufunc.reduce(source, axes)`` by its loop ``ufunc.types[index]``, or None where the order is not known.

    Args:
        source, dtype: what is reduced; ``dtype`` is that of the loop, so nothing has to be cast.
        axes: not negative, without repetition.
        target: the result, with the reduced axes left out (without ``keepdims``).
        start: where ``reduction_start`` lies; None if it is None.
    """
    address = loop(ufunc, index)
    if address is None or ufunc.nin != 2 or ufunc.nout != 1 or ufunc.signature is not None:
        return None
    first = copy_steps(
        _first_elements(source, axes) if start is None else start._replace(shape=(), strides=()), target, dtype.itemsize
    )
    if first is None or 0 in source.shape:
        return None if start is None else first
    whole = _with_reduced_axes(target, source.shape, axes)
    order = _reduction_order(source, whole, exact=dtype.kind in "biu")
    if order is None or (start is None and (_is_in_pieces(order) or not (_reorders(ufunc) or len(axes) == 1))):
        return None
    operands = [whole, source, whole]
    if start is None:
        return first + _without_first_elements(address, operands, order)
    return first + [_reduce_nest(address, part, axes) for part, axes in _pieces(operands, order)]


def _with_reduced_axes(target: Operand, shape: tuple[int, ...], axes: tuple[int, ...]) -> Operand:
    """The result, repeated along the axes that are reduced."""
    left = iter(target.strides)
    return target._replace(shape=shape, strides=tuple(0 if k in axes else next(left) for k in range(len(shape))))


def _first_elements(source: Operand, axes: tuple[int, ...]) -> Operand:
    kept = [k for k in range(len(source.shape)) if k not in axes]
    return source._replace(shape=tuple(source.shape[k] for k in kept), strides=tuple(source.strides[k] for k in kept))


def _reorders(ufunc: np.ufunc) -> bool:
    """Whether NumPy reduces several axes at once with it, although it has no identity."""
    return ufunc.__name__ in ("maximum", "minimum", "fmax", "fmin")


def _reduction_order(source: Operand, whole: Operand, exact: bool) -> list[Axis] | None:
    """The axes, the outermost first, with strides of (result, source, result); None where NumPy would buffer."""
    if any(n > 1 and s <= 0 for n, s in zip(source.shape, source.strides)):
        return None
    axes = [
        Axis(n, (r, s, r))
        for n, r, s in zip(source.shape, whole.strides, broadcast_strides(source, source.shape))
        if n != 1
    ]
    axes.sort(
        key=lambda axis: -axis.strides[1]
    )  # the result has no strides yet when the iterator sorts; stable, as it is
    order = joined(axes) or [Axis(1, (0, 0, 0))]
    rows = [k for k, axis in enumerate(order) if axis.strides[0] == 0]
    if len(order) > 1 and not exact and {len(order) - 1, len(order) - 2}.issubset(rows):
        return None
    if _is_in_pieces(order) and len(rows) > 1 and not exact:
        return None
    return order


def _is_in_pieces(order: list[Axis]) -> bool:
    return _ROWS_IN_PIECES and order[-1].strides[0] == 0 and order[-1].length > np.getbufsize()


def _pieces(operands: list[Operand], order: list[Axis]) -> list[tuple[list[Operand], list[Axis]]]:
    """The nest, or where rows go in pieces that of the whole pieces and that of what is left."""
    if not _is_in_pieces(order):
        return [(operands, order)]
    *outer, (length, (_, stride, _)) = order
    size = np.getbufsize()
    count, left = divmod(length, size)
    parts = [(operands, [*outer, Axis(count, (0, size * stride, 0)), Axis(size, (0, stride, 0))])]
    if left:
        result, source, _ = operands
        source = source._replace(offset=source.offset + count * size * stride)
        parts.append(([result, source, result], [*outer, Axis(left, (0, stride, 0))]))
    return parts


def _reduce_nest(address: tuple[int, int], operands: list[Operand], order: list[Axis]) -> Words:
    """Threads may share the first axis where each index of it has results of its own."""
    return _nest(*address, operands, order, split=order[0].strides[0] != 0)


def _without_first_elements(address: tuple[int, int], operands: list[Operand], order: list[Axis]) -> list[Words]:
    """The nests that leave out index 0 of all reduced axes: of the innermost alone, then of the next, and so on."""
    steps: list[Words] = []
    reduced = [k for k, axis in enumerate(order) if axis.strides[0] == 0]
    for k in reversed(reduced):
        if order[k].length == 1:
            continue
        part = [Axis(1, axis.strides) if j in reduced and j < k else axis for j, axis in enumerate(order)]
        part[k] = Axis(order[k].length - 1, order[k].strides)
        moved = operands[1]._replace(offset=operands[1].offset + order[k].strides[1])
        steps.append(_reduce_nest(address, [operands[0], moved, operands[2]], part))
    return steps


# ---- generalised ufuncs


@cache
def _core_names(signature: str) -> list[list[str]]:
    """The core dimensions of each operand, "?" left in: ``(m?,n),(n,p?)->(m?,p?)``."""
    inside = re.findall(r"\(([^()]*)\)", signature)
    return [[name.strip() for name in part.split(",") if name.strip()] for part in inside]


def gufunc_steps(ufunc: np.ufunc, index: int, operands: list[Operand]) -> list[Words] | None:
    """``ufunc(*inputs, out=outputs)`` of a gufunc, over the stack of its leading dimensions.

    The operands are where NumPy would have them: the same memory for two of them only where it is so in the call, because
    ``matmul`` of a matrix and its own transpose calls another function of the BLAS than of two matrices that are equal.
    """
    address = loop(ufunc, index)
    if address is None or ufunc.signature is None:
        return None
    names = _core_names(ufunc.signature)
    missing = _missing_names(names, operands)
    sizes: dict[str, int] = {}
    core_strides: list[int] = []
    stacks: list[Operand] = []
    for operand, own in zip(operands, names):
        split = len(operand.shape) - sum(name not in missing for name in own)
        if split < 0:
            return None
        present_axes = iter(zip(operand.shape[split:], operand.strides[split:]))
        for name in own:
            length, stride = (1, 0) if name in missing else next(present_axes)
            if sizes.setdefault(name, length) != length:
                return None
            core_strides.append(stride if length != 1 else 0)
        stacks.append(operand._replace(shape=operand.shape[:split], strides=operand.strides[:split]))
    shape = np.broadcast_shapes(*(stack.shape for stack in stacks))
    *outer, inner = iteration(shape, [broadcast_strides(stack, shape) for stack in stacks])
    args = [(operand.base, operand.offset) for operand in operands]
    core = list(sizes.values())
    return [loop_step(*address, inner.length, args, [*inner.strides, *core_strides], core=core, outer=outer)]


def _missing_names(names: list[list[str]], operands: list[Operand]) -> set[str]:
    """Dimensions that may be absent (``n?``) and are: matmul's, of vectors."""
    missing: set[str] = set()
    for operand, own in zip(operands, names):
        for name in own:
            if name.endswith("?") and len(operand.shape) < len([n for n in own if n not in missing]):
                missing.add(name)
    return missing
