"""Device placement: move the operands of an operation to one device.

``dispatch`` calls ``on_one_device`` for operands of other libraries.
"""

from __future__ import annotations

import sys
from typing import Any

from chainrule._src.messages import errors
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape.foreign import gpu_number


def on_one_device(operands: Any) -> Any:
    """Return the operands. If some are on a GPU, move 0-d operands and constants of rules there.

    Raises:
        RuntimeError: other operands are on several devices.
    """
    devices = [(gpu_number(x), x) for x in operands if hasattr(x, "dtype")]
    (target, on_target) = next((pair for pair in devices if pair[0] is not None), (None, None))
    if target is None:
        return operands
    for number, x in devices:
        if number != target and (number is not None or x.ndim) and not _called_by_rule():
            raise errors.mixed_devices(on_target, target, x, number)
    move = TABLE["to_device"]
    return [
        move.bind(move, (x,), {"source": None, "target": target})
        if hasattr(x, "dtype") and gpu_number(x) is None
        else x
        for x in operands
    ]


def _called_by_rule() -> bool:
    """Return whether a rule of the op table, and no user or public function, called the current operation."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith(_RULES) and name != "chainrule._src.rules.primitive":
            return True
        if not name.startswith(_BETWEEN):
            return False
        frame = frame.f_back
    return False


_RULES = (
    "chainrule._src.table",
    "chainrule._src.rules",
    "chainrule._src.ops.scipy_special",
    "chainrule._src.ops.incomplete",
)
#: modules whose frames may be between an operation and the rule that called it
_BETWEEN = (
    "chainrule._src.tape", "chainrule._src.api", "chainrule._src.interpreters", "chainrule._src.rules", "chainrule._src.ops.numpy_",
    "chainrule._src.ops.methods",
)  # fmt: skip
