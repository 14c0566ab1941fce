"""A recorded program as a plan that is run again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.compiling.layout import ARENA, arrange
from chainrule.compiling.python_executor import Executor, Report
from chainrule.compiling.simplify import Simplified
from chainrule.compiling.steps import Lowering, Step


class Plan:
    """What computes the outputs of a recorded program from its inputs, with the same bits as the recorded calls.

    Args:
        program: a recorded program. Its Vars have their recorded arrays, which the plan does not keep.

    Attributes:
        steps: what is computed, in order.
        memory: bytes that a call needs besides its outputs; constants are not counted.
        executor: "native" or "python".
    """

    def __init__(self, program: Any) -> None:
        simplified = Simplified(program)
        lowering = Lowering(program, simplified)
        self.dropped, self.merged, self.folded = simplified.dropped, simplified.merged, simplified.folded
        self.inputs, self.outputs = lowering.inputs, lowering.outputs
        self.memory = arrange([buffer for buffer in lowering.buffers if buffer.kind == ARENA])
        self.executor = "python"
        self.steps: list[Step] = lowering.steps
        self._run = Executor(self.steps, self.inputs, self.outputs, lowering.owners, self.memory).run

    def run(self, arrays: list[np.ndarray[Any, Any]], report: Report | None = None) -> list[np.ndarray[Any, Any]]:
        """The outputs, as arrays of the caller's own; then the writes to inputs are made.

        Args:
            arrays: one for each input, with its recorded shape, dtype and strides, aligned.
            report: called with the names of floating-point exceptions that were met and that ``np.geterr()`` does not ignore.
        """
        return self._run(arrays, report)
