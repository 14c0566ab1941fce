"""Compile elementwise regions of eager backward passes to native code.

``tape.regions`` calls ``compile_region`` with a region. The VJP rules of its nodes are traced once, on a sample of its arrays.
The calls become one group of kernel calls, which runs block by block on several threads. The group does not depend on the
number of elements, so it is reused for arrays of any shape.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from chainrule._src.api.operations import call_instead
from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.grouping import KernelCall, LoopGroup
from chainrule._src.compiling.layout import CONSTANT
from chainrule._src.compiling.lowering import LoopLowerer
from chainrule._src.compiling.native_executor import Native
from chainrule._src.compiling.simplify import Simplified
from chainrule._src.compiling.steps import Lowering
from chainrule._src.interpreters.recorder import Recorder
from chainrule._src.interpreters.same_bits import same_bits
from chainrule._src.interpreters.trace_types import Program
from chainrule._src.interpreters.traced import Traced
from chainrule._src.native import AVAILABLE, ParallelUfunc, Runner
from chainrule._src.native.code import GROUP_ROWS
from chainrule._src.tape import regions
from chainrule._src.tape.levels import open_level
from chainrule._src.tape.node import Edge
from chainrule._src.tape.regions import Arrays, Region

#: the number of elements of samples: enough for the kernel calls to be grouped
SAMPLE = 4096
_FLAGS = {"divide": 1, "over": 2, "under": 4, "invalid": 8}
_SPECIAL = np.array([0.0, np.nan, 1.0, -0.0, np.inf, -1.0, -np.inf, 2.0, 1e-45, -1e-39, 3e38, 0.5, -90.0, 88.0])


class RegionProgram:
    """The native code of a region, from the arrays that its rules read to the cotangents that leave it.

    Args:
        native: the traced rules, as one group of kernel calls.
        lowering: the lowered program, with its inputs and outputs.
    """

    def __init__(self, native: Native, lowering: Lowering) -> None:
        encoder = native.encode()
        self._code, self._constants = np.array(encoder.code, np.intp), encoder.constants()
        self._inputs = [value.dtype for value in lowering.inputs]
        self._made = [value.dtype for value in lowering.owners]
        self._outputs = [lowering.owners.index(value) for value in lowering.outputs]

    def __call__(self, arrays: Arrays) -> Arrays | None:
        """Return the cotangents; None if Python has to run the rules, because of a floating-point warning."""
        flags: list[int] = []
        outputs = self._runner(arrays[0].shape)(arrays, flags.append)
        if outputs is None or (
            flags and flags[0] & sum([_FLAGS[kind] for kind, way in np.geterr().items() if way != "ignore"])
        ):
            return None
        if len(outputs) < len(self._outputs):  # two edges get the same cotangent
            return [outputs[i].copy() if i in self._outputs[:k] else outputs[i] for k, i in enumerate(self._outputs)]
        return [outputs[i] for i in self._outputs]

    @functools.lru_cache(maxsize=64)  # noqa: B019 -- shared by all programs, which are few
    def _runner(self, shape: tuple[int, ...]) -> Runner:
        """Return the runner for arrays of a shape."""
        code = self._code.copy()
        code[GROUP_ROWS] = size = math.prod(shape)
        if size >= regions.SINGLE:
            _share_ufuncs()
        inputs, outputs = [
            [(shape, dtype, np.empty(shape, dtype).strides) for dtype in dtypes]
            for dtypes in (self._inputs, self._made)
        ]
        return Runner(code, 0, inputs, self._constants, outputs)


def compile_region(region: Region) -> RegionProgram | None:
    """Compile a region; return None if native code does not give the bits of its rules."""
    if not AVAILABLE or region.dtype.char not in "fd":
        return None
    leaving = region.leaving()
    with np.errstate(all="ignore"):
        samples = [_sample_elements(array, k) for k, array in enumerate(region.arrays)]
        recorded = _trace_region(region, samples, leaving)
        found = None if recorded is None else _compile_traced_region(recorded)
        if found is None:
            return None
        outputs, expected = found(samples), region.rules(samples, leaving)
    if outputs is None or not all(same_bits(x, y) for x, y in zip(outputs, expected, strict=True)):
        return None
    return found


@functools.cache
def _share_ufuncs() -> None:
    """Let large eager operations use several threads from now on."""
    call_instead(ParallelUfunc)


def _sample_elements(array: NumpyArray, k: int) -> NumpyArray:
    """Return some elements of an array, mixed with special values that coincide with those of other samples."""
    sample = np.resize(array.reshape(-1)[:SAMPLE], SAMPLE)
    places = sample[k % 7 :: 7 + 2 * k]
    places[...] = np.resize(_SPECIAL, places.shape)
    return sample


def _trace_region(region: Region, samples: Arrays, leaving: list[Edge]) -> Program | None:
    recorder = Recorder()
    with open_level("compile", Traced) as level:
        recorder.level = level
        level.recorder = recorder
        with recorder:
            inputs = [Traced(recorder.var_of(sample), level) for sample in samples]
            try:
                outputs = [recorder.traced(out).var for out in region.rules(inputs, leaving)]
            except Exception:  # a rule that cannot be traced
                return None
    if recorder.guards:
        return None
    given = [traced.var for traced in inputs]
    constants = [var for var in recorder.roots() if var not in given]
    return Program(given, constants, recorder.calls, outputs, [])


def _compile_traced_region(recorded: Program) -> RegionProgram | None:
    """Compile a traced region, if it becomes one group of contiguous elementwise kernel calls; else return None."""
    lowering = Lowering(recorded, Simplified(recorded), LoopLowerer())
    native = Native(lowering)
    segments = native.segments
    if native.memory or len(segments) != 1 or len(native.units) != 1 or len(segments[0].items) != 1:
        return None
    (group,) = segments[0].items
    if type(group) is not LoopGroup or not all(
        [_is_plain(kernel_call, k) for kernel_call in group.kernel_calls for k in range(len(kernel_call.args))]
    ):
        return None
    return RegionProgram(native, lowering)


def _is_plain(kernel_call: KernelCall, k: int) -> bool:
    """Return whether an argument of a kernel call is a number, or an array that is read element by element."""
    buffer, itemsize = kernel_call.args[k][0], kernel_call.loop.itemsizes[k]
    if buffer is None or buffer.kind == CONSTANT:
        return kernel_call.pattern(k)[1:] == (0, 0, 0)
    return kernel_call.pattern(k) == (0, itemsize, 0, 0) and buffer.nbytes == itemsize * SAMPLE


regions.COMPILE = compile_region if AVAILABLE else None
