"""The search for the first NaN: in the forward pass, in the backward pass and in forward mode.

A NaN is *born* where an operation makes one from operands that had none. In the mode every operation's result is looked
at, every node remembers the lines of the program that made it, and a rule that returns NaN raises an error that says
which operation it belongs to, where that was called, at which index and with which numbers it happened, and what helps.
"""

from chainrule._src.api.faces import show
from chainrule._src.transforms.anomaly_mode import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_anomaly_enabled,
    set_detect_anomaly,
)

__all__ = [
    "detect_anomaly",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "set_anomaly_enabled",
    "set_detect_anomaly",
]

show(globals())
