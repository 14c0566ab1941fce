"""Execution plans: recorded programs compiled for repeated runs.

``ExecutionPlan`` takes a recorded program. ``Simplified`` drops calls, ``Lowering`` turns the rest into steps on planned buffers,
and an executor runs the steps: NumPy's inner loops with the extension, else NumPy's functions called from Python. A new plan is
run once, to check that it gives the recorded bits. ``tree``, ``differentiable`` and the control flow functions make plans.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.compiling.encoding import EncodedCalls
from chainrule._src.compiling.grouping import LoopGroup
from chainrule._src.compiling.layout import ARENA, Buffer, BufferView, assign_arena_offsets
from chainrule._src.compiling.looped_lowering import lower_with_loops
from chainrule._src.compiling.lowering import LoopLowerer
from chainrule._src.compiling.native_executor import Native, NativePlan
from chainrule._src.compiling.printing import plan_table
from chainrule._src.compiling.python_executor import Executor, NativeLoopFailed, Report
from chainrule._src.compiling.simplify import Simplified, is_released
from chainrule._src.compiling.steps import Lowering, PlanStep, note_uses
from chainrule._src.compiling.value_checks import ValueDiffers
from chainrule._src.interpreters.same_bits import same_bits
from chainrule._src.interpreters.trace_types import Program, Var
from chainrule._src.native import AVAILABLE

ndarray = np.ndarray
LOWERER = LoopLowerer()


class ExecutionPlan:
    """A plan that computes the outputs of a recorded program from its inputs, with the bits of the recorded calls.

    Args:
        program: a recorded program. Its Vars have their recorded arrays, which the plan does not keep.
        native: whether the plan may use native loops.
        encoded: the calls of the program, if they are encoded.

    Attributes:
        steps: the steps, in order.
        memory: the bytes that a run needs besides outputs and constants.
        constant_bytes: the bytes of the constants.
        executor: "native", "python", or "mixed": native loops with Python steps between them.
        inputs, outputs: the BufferViews of inputs and outputs.
        loops: the first step, last step and trip count of each detected loop; ``steps`` has the body once.
        groups, private: ufunc loops that run block by block, and the buffers that exist only within a block.
        dropped, merged, folded: the number of calls that are not needed, equal to others, constant.
    """

    def __init__(self, program: Program, native: bool = AVAILABLE, encoded: EncodedCalls | None = None) -> None:
        simplified = Simplified(program, encoded)
        self._whole: NativePlan | None = None
        self.steps: list[PlanStep] = []
        self.groups: list[LoopGroup] = []
        self.private: set[Buffer] = set()
        self.loops: list[tuple[PlanStep, PlanStep, int]] = []
        self.dropped, self.merged, self.folded = simplified.dropped, simplified.merged, simplified.folded
        try:
            is_native = native and self._make_native(program, simplified)
        except (NativeLoopFailed, ValueDiffers):  # a native step failed in the check run
            is_native = False
        if not is_native:
            self._make_python(program, simplified)

    def run(self, arrays: list[NumpyArray], report: Report | None = None) -> list[NumpyArray]:
        """Compute and return the outputs as new arrays, then write to inputs.

        Args:
            arrays: the inputs, aligned, with their recorded shapes, dtypes and strides.
            report: called before inputs are written, with the names of the floating-point exceptions that occurred and that
                ``np.geterr()`` does not ignore.

        Raises:
            ValueDiffers: a value that Python has read in the recorded call differs. Nothing is written to inputs.
        """
        return self._executor.run(arrays, report)

    def entry(self, report: Report) -> tuple[Any, Any] | None:
        """Return ``(code, reporting)``, or None if the plan has Python steps.

        ``code(arrays, reporting)`` returns the outputs, or None for arrays of another layout.
        """
        return None if self._whole is None else self._whole.entry(report)

    @property
    def may_fail(self) -> bool:
        """Whether a native step may fail, for example on a singular matrix."""
        return any([step.template is not None and step.template.may_fail for step in self.steps])

    @property
    def runs(self) -> int:
        """The number of runs, including those by :meth:`entry`."""
        return self._executor.runs

    def __str__(self) -> str:
        return plan_table(self)

    # -- construction ------------------------------------------------------------------------------------------------

    def _make_python(self, program: Program, simplified: Simplified) -> None:
        lowering = self._lowered(Lowering(program, simplified))
        executor = _python(lowering)
        self.executor, self.memory, self._whole = "python", executor.memory, None
        self.groups, self.private, self.loops = [], set(), []
        self._executor: Executor | NativePlan = executor

    def _make_native(self, program: Program, simplified: Simplified) -> bool:
        """Make a native or mixed plan; return whether there are native loops and they give the recorded bits."""
        lowering = self._lowered(lower_with_loops(program, simplified, LOWERER))
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
            found = executor.replay(_arrays(program.inputs), _recorded_values(lowering))
            if not found and program.outputs:
                return False
        if not _all_same(found, _arrays(program.outputs)) and not _all_same(
            found, _outputs_of_python_calls(program, simplified)
        ):
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
    memory = assign_arena_offsets([buffer for buffer in lowering.buffers if buffer.kind == ARENA])
    main = len(lowering.steps) - lowering.commits
    return Executor(lowering, memory, lowering.steps[:main], lowering.steps[main:])


def _outputs_of_python_calls(program: Program, simplified: Simplified) -> list[NumpyArray]:
    """Return the outputs computed by Python calls from the current inputs, which may have changed since the trace was recorded."""
    lowering = Lowering(program, simplified)
    found = _python(lowering).replay(_arrays(program.inputs), _recorded_values(lowering))
    return found or _arrays(program.outputs)


def _arrays(variables: list[Var]) -> list[NumpyArray]:
    return [var.array for var in variables]


def _recorded_values(lowering: Lowering) -> dict[BufferView, NumpyArray]:
    """Return the recorded values, except those whose memory was released."""
    return {value: var.array for var, value in lowering.values.items() if not is_released(var.array)}


def _all_same(found: list[NumpyArray], expected: list[NumpyArray]) -> bool:
    return all([same_bits(x, y) for x, y in zip(found, expected, strict=True)])
