"""Ufunc inner loops: the C functions that NumPy runs for its ufuncs, with the axes and strides that they are called on.

``lowering`` makes the ``Template`` of a call: the ``InnerLoop`` objects that compute its results. ``native_executor`` encodes them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import lcm
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray, NumpyDType, Shape
from chainrule._src.compiling.iteration import ArrayLayout, LoopAxis, size_of_shape
from chainrule._src.native import KERNELS, loop
from chainrule._src.native.code import kernel_step

READ, WRITE, TEMPORARY, NUMBER, MEMORY = range(5)
#: the kind of an argument and its index; for MEMORY, the size of the matrices whose factors are stored there
Slot = tuple[int, int]
#: the number of elements by which block sizes are divisible, so that SIMD vectors end as in one long run; and the maximum number of
#: elements of the shortest block of whole rows
ROUND, LONGEST_ROWS = 64, 1 << 16
#: dtype kinds with loops
KINDS = "fciub"


class InnerLoop:
    """One inner loop, which is called along the first axis for every index of the others.

    Attributes:
        name: the name of the function.
        address, data: the addresses of the C function and of its data.
        axes: the axes, innermost first, with a stride for each argument.
        args: (slot, offset in bytes) of each argument.
        core, core_strides: the core lengths and strides of a gufunc.
        outputs: the number of arguments that are written. They come last.
        elementwise: whether each element of the outputs is written once, from elements at the same index.
        in_place: whether the result may be written into the memory of an operand.
        checked: whether it may fail; it then raises the "invalid" FP exception flag.
        shared: a loop that computes the same with cached factors of a matrix, if there is one.
        itemsizes: the itemsize of each argument.
        total, row: the number of elements if the loop may be in a group, else 0; the length of a row, or 0 for any.
        reduces: whether it reduces each row of an array to results of its own, so that it may end a group.
    """

    def __init__(
        self,
        name: str,
        found: tuple[int, int],
        axes: list[LoopAxis],
        args: list[tuple[Slot, int]],
        itemsizes: list[int],
        outputs: int = 1,
        elementwise: bool = False,
        in_place: bool = False,
        core: Shape = (),
        core_strides: Shape = (),
        checked: bool = False,
        reduces: bool = False,
    ) -> None:
        self.name = name
        self.address, self.data = found
        self.axes = axes
        self.args = args
        self.itemsizes = itemsizes
        self.outputs = outputs
        self.elementwise = elementwise
        self.in_place = in_place and outputs == 1 and len(set(itemsizes)) == 1
        self.core = core
        self.core_strides = core_strides
        self.checked = checked
        self.shared: InnerLoop | None = None
        self.total = self.row = 0
        if elementwise and len(axes) <= 2:
            row = axes[0].length if len(axes) == 2 else 0
            if lcm(row, ROUND) <= LONGEST_ROWS:
                self.row = row
                self.total = size_of_shape(tuple([axis.length for axis in axes]))
        row = size_of_shape(tuple([axis.length for axis in axes[:-1]]))
        self.reduces = reduces and len(axes) in (2, 3) and axes[-1].strides[0] != 0 and lcm(row, ROUND) <= LONGEST_ROWS
        if self.reduces:
            self.row = row

    @functools.cached_property
    def code_parts(self) -> tuple[list[int], list[int]]:
        """The integers that encode the loop, before and after the locations of its arguments."""
        inner, *outer = self.axes
        count = len(self.args)
        shared = bool(outer) and all(outer[-1].strides[count - self.outputs :])
        step = kernel_step(
            self.address,
            self.data,
            inner.length,
            [(0, 0)] * count,
            (*inner.strides, *self.core_strides),
            core=self.core,
            outer=outer[::-1],
            split=shared and not self.checked,
            checked=self.checked,
        )
        end = len(step) - len(outer) * (1 + count)
        return step[: end - 2 * count], step[end:]


class Template:
    """The inner loops of a call, for operands of given layouts.

    Attributes:
        loops: the loops, in order.
        temporaries: the bytes of each temporary array.
        numbers: 0-d constants.
    """

    __slots__ = ("loops", "numbers", "temporaries")

    def __init__(self) -> None:
        self.loops: list[InnerLoop] = []
        self.temporaries: list[int] = []
        self.numbers: list[NumpyArray] = []

    @property
    def may_fail(self) -> bool:
        """Whether the call may fail for some operands."""
        return any([loop.checked for loop in self.loops])

    def temporary(self, nbytes: int) -> Slot:
        self.temporaries.append(nbytes)
        return TEMPORARY, len(self.temporaries) - 1

    def number(self, array: NumpyArray) -> Slot:
        self.numbers.append(array)
        return NUMBER, len(self.numbers) - 1


class Operand:
    """An array, or a part of one, as an operand of loops."""

    __slots__ = ("dtype", "layout", "offset", "slot")

    def __init__(self, slot: Slot, shape: Shape, strides: Shape, dtype: NumpyDType, offset: int = 0) -> None:
        self.slot = slot
        self.layout = ArrayLayout(shape, strides, dtype.itemsize)
        self.dtype = dtype
        self.offset = offset


class Unlowered(Exception):
    """Raised for a call that cannot be lowered: no inner loops are known to give the same bits."""


# -- the loops of ufuncs -----------------------------------------------------------------------------------------------


def type_of(x: object) -> Any:
    """Return the type of an argument for type resolution: a dtype, or the type of a Python number."""
    if isinstance(x, Operand):
        return x.dtype
    if type(x) in (int, float, complex):
        return type(x)
    if type(x) is bool:
        return np.dtype(bool)
    if isinstance(x, np.generic) and x.dtype.kind in KINDS:
        return x.dtype
    raise Unlowered


_LOOPS: dict[Any, Any] = {}


def ufunc_loop(ufunc: np.ufunc, types: Sequence[object]) -> tuple[tuple[NumpyDType, ...], tuple[int, int]]:
    """Return the dtypes that a ufunc computes in, and its loop for them."""
    key = (ufunc, *types)
    cached = _LOOPS.get(key)
    if cached is None:
        dtypes = resolved_dtypes(ufunc, (*types, *[None] * ufunc.nout), False)
        cached = _LOOPS[key] = dtypes, loop_of(ufunc, dtypes)
    return cached


def resolved_dtypes(ufunc: np.ufunc, types: tuple[Any, ...], reduction: bool) -> tuple[NumpyDType, ...]:
    try:
        return ufunc.resolve_dtypes(types, reduction=reduction)
    except (TypeError, ValueError):
        raise Unlowered from None


def loop_of(ufunc: np.ufunc, dtypes: tuple[NumpyDType, ...]) -> tuple[int, int]:
    """Return the addresses of a ufunc's loop for these dtypes and of its data."""
    if any(dtype.kind not in KINDS or not dtype.isnative for dtype in dtypes) or _raises(ufunc, dtypes):
        raise Unlowered
    chars = [dtype.char for dtype in dtypes]
    types = "".join(chars[: ufunc.nin]) + "->" + "".join(chars[ufunc.nin :])
    if types not in ufunc.types:
        raise Unlowered
    found = loop(ufunc, ufunc.types.index(types))
    if found is None:
        raise Unlowered
    return found


def is_exact(ufunc: np.ufunc, dtype: NumpyDType) -> bool:
    """Return whether the results of a loop do not depend on strides and alignment: each is rounded correctly."""
    return ufunc in EXACT and (dtype.kind != "c" or ufunc in _EXACT_COMPLEX)


def _raises(ufunc: np.ufunc, dtypes: tuple[NumpyDType, ...]) -> bool:
    """Return whether a loop may raise a Python exception."""
    return ufunc is np.power and dtypes[0].kind in "iu"


def own_loop(name: str) -> tuple[int, int]:
    """Return a loop of chainrule's C extension."""
    address = KERNELS.get(name)
    if address is None:
        raise Unlowered
    return address, 0


def initial_of(ufunc: np.ufunc, dtype: NumpyDType) -> NumpyArray | None:
    """Return the initial value of a reduction, or None if NumPy starts with the first elements."""
    if ufunc.identity is None:
        return None
    if ufunc is np.add and dtype.kind in "fc":  # it is -0.0 in some versions
        return np.asarray(np.add.reduce(np.array([-0.0], dtype)))
    return np.asarray(ufunc.identity, dtype) if ufunc.identity != -1 else np.asarray(ufunc.reduce(np.empty(0, dtype)))


def numpy_functions(names: str) -> frozenset[Any]:
    """Return the NumPy functions of these names that this version of NumPy has."""
    return frozenset(getattr(np, name) for name in names.split() if hasattr(np, name))


#: ufuncs whose results are determined bit by bit for real numbers, and those for complex numbers. (maximum of 0.0 and -0.0 is not.)
#: negative, isnan, isinf, isfinite and signbit are left out: some versions of NumPy are wrong for outputs that are not contiguous
EXACT = numpy_functions(
    """
    add subtract multiply divide true_divide positive absolute fabs sqrt square reciprocal sign copysign
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not logical_xor bitwise_and bitwise_or
    bitwise_xor invert floor ceil trunc rint conjugate floor_divide
    """
)
_EXACT_COMPLEX = numpy_functions("add subtract positive conjugate equal not_equal")
#: gufuncs whose loops need only their operands
GENERALIZED = numpy_functions("matmul vecdot matvec vecmat")
