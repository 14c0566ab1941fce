"""A recorded program as a plan that is run again and again.

The program is simplified, its calls become steps on planned buffers, and an executor runs these: native loops where the extension
is there, otherwise NumPy's functions, called by Python. Both give the bits that the recorded calls gave, which is tried once when
the plan is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.grouping import LoopGroup
from chainrule._src.compiling.layout import ARENA, Buffer, BufferView, arrange
from chainrule._src.compiling.loop_detection import LoopFinder
from chainrule._src.compiling.looped_lowering import LoopedLowering
from chainrule._src.compiling.lowering import LoopLowerer
from chainrule._src.compiling.native_executor import Native, NativePlan
from chainrule._src.compiling.printing import table
from chainrule._src.compiling.python_executor import Executor, Failed, Report
from chainrule._src.compiling.simplify import Simplified
from chainrule._src.compiling.steps import Lowering, PlanStep, note_uses
from chainrule._src.compiling.trace import TraceArrays
from chainrule._src.interpreters.recorded import Program, Var
from chainrule._src.interpreters.same_bits import same_bits
from chainrule._src.native import AVAILABLE

ndarray = np.ndarray
LOWERER = LoopLowerer()


class ExecutionPlan:
    """What computes the outputs of a recorded program from its inputs, with the same bits as the recorded calls.

    Args:
        program: a recorded program. Its Vars have their recorded arrays, which the plan does not keep.
        native: whether it may use native loops.

    Attributes:
        steps: what is computed, in order.
        memory: bytes that a call needs besides its outputs; constants are not counted.
        constant_bytes: bytes of the constants.
        executor: "native", "python", or "mixed": native loops, with steps between them that Python runs.
        inputs, outputs: the Values that are given and returned.
        loops: of those that are rolled up, the first and last step of the body, and how often it is done; ``steps`` has it once.
        groups, private: loops that are done block by block, and the buffers that live in their blocks only.
        dropped, merged, folded: how many calls are not needed, equal to others, constant.
    """

    def __init__(self, program: Program, native: bool = AVAILABLE) -> None:
        simplified = Simplified(program)
        self._whole: NativePlan | None = None
        self.steps: list[PlanStep] = []
        self.groups: list[LoopGroup] = []
        self.private: set[Buffer] = set()
        self.loops: list[tuple[PlanStep, PlanStep, int]] = []
        self.dropped, self.merged, self.folded = simplified.dropped, simplified.merged, simplified.folded
        try:
            made = native and self._make_native(program, simplified)
        except Failed:  # a loop that does otherwise than what was recorded
            made = False
        if not made:
            self._make_python(program, simplified)

    def run(self, arrays: list[NumpyArray], report: Report | None = None) -> list[NumpyArray]:
        """The outputs, as arrays of the caller's own; then the writes to inputs are made.

        Args:
            arrays: one for each input, with its recorded shape, dtype and strides, aligned.
            report: called with the names of the floating-point exceptions that were met and that ``np.geterr()`` does not
                ignore, before inputs are written.
        """
        return self._executor.run(arrays, report)

    def entry(self, report: Report) -> tuple[Any, Any] | None:
        """``(code, reporting)``: ``code(arrays, reporting)`` gives the outputs, or None for arrays of another layout.

        None if Python takes part.
        """
        return None if self._whole is None else self._whole.entry(report)

    @property
    def may_fail(self) -> bool:
        """Whether a native step may find no result: of a singular matrix, for one."""
        return any([step.template is not None and step.template.may_fail for step in self.steps])

    @property
    def runs(self) -> int:
        """How often it was run, also by others that have its :meth:`entry`."""
        return self._executor.runs

    def __str__(self) -> str:
        return table(self)

    # -- making it ---------------------------------------------------------------------------------------------------

    def _make_python(self, program: Program, simplified: Simplified) -> None:
        lowering = self._lowered(Lowering(program, simplified))
        executor = _python(lowering)
        self.executor, self.memory, self._whole = "python", executor.memory, None
        self.groups, self.private, self.loops = [], set(), []
        self._executor: Executor | NativePlan = executor

    def _make_native(self, program: Program, simplified: Simplified) -> bool:
        """Use native loops, if there are any and they give what was recorded."""
        trace = TraceArrays(program, simplified, LOWERER)
        lowering = self._lowered(LoopedLowering(program, simplified, LOWERER, trace, LoopFinder(trace)))
        native = Native(lowering)
        if not native.segments:
            return False
        self.memory, self.groups, self.private = native.memory, native.groups, native.private
        if native.whole:
            self.executor, whole = "native", NativePlan(native, lowering)
            self._executor = self._whole = whole
            found = whole.replay(program)
        else:
            self.executor, executor = "mixed", native.executor()
            self._executor = executor
            found = executor.replay(_arrays(program.inputs), _recorded(lowering))
            if not found and program.outputs:
                return False
        if not _all_same(found, _arrays(program.outputs)) and not _all_same(found, _called(program, simplified)):
            return False
        self.steps, self.loops = native.shown()
        return True

    def _lowered(self, lowering: Lowering) -> Lowering:
        self.steps = lowering.steps
        self.inputs, self.outputs = lowering.inputs, lowering.outputs
        self.constant_bytes = sum([value.array.nbytes for value in lowering.constants if value.array is not None])
        return lowering


def _python(lowering: Lowering) -> Executor:
    note_uses(lowering.steps)
    memory = arrange([buffer for buffer in lowering.buffers if buffer.kind == ARENA])
    main = len(lowering.steps) - lowering.commits
    return Executor(lowering, memory, lowering.steps[:main], lowering.steps[main:])


def _called(program: Program, simplified: Simplified) -> list[NumpyArray]:
    """The outputs by Python's calls at the inputs as they are now: somebody may have changed them since they were recorded."""
    lowering = Lowering(program, simplified)
    found = _python(lowering).replay(_arrays(program.inputs), _recorded(lowering))
    return found or _arrays(program.outputs)


def _arrays(variables: list[Var]) -> list[NumpyArray]:
    return [var.array for var in variables]


def _recorded(lowering: Lowering) -> dict[BufferView, NumpyArray]:
    return {value: var.array for var, value in lowering.values.items()}


def _all_same(found: list[NumpyArray], wanted: list[NumpyArray]) -> bool:
    return all([same_bits(x, y) for x, y in zip(found, wanted, strict=True)])
