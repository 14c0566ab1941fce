"""On which device an operation is done whose operands are on several."""

from __future__ import annotations

import sys
from typing import Any

from chainrule._src.messages import errors
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape.foreign import gpu_number


def on_one_device(operands: Any) -> Any:
    """The operands of an operation; where some are on a GPU, so are those without dimensions, and the constants of rules.

    Raises:
        RuntimeError: others are on several devices.
    """
    places = [(gpu_number(x), x) for x in operands if hasattr(x, "dtype")]
    (target, found) = next((pair for pair in places if pair[0] is not None), (None, None))
    if target is None:
        return operands
    for place, x in places:
        if place != target and (place is not None or x.ndim) and not _called_by_rule():
            raise errors.mixed_devices(found, target, x, place)
    move = TABLE["to_device"]
    return [
        move.bind(move, (x,), {"source": None, "target": target})
        if hasattr(x, "dtype") and gpu_number(x) is None
        else x
        for x in operands
    ]


def _called_by_rule() -> bool:
    """Whether a rule of the table, and no user or function for users, has called the operation that is at work."""
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
_BETWEEN = (
    "chainrule._src.tape", "chainrule._src.api", "chainrule._src.interpreters", "chainrule._src.rules", "chainrule._src.ops.numpy_",
    "chainrule._src.ops.methods",
)  # fmt: skip
