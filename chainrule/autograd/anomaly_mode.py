"""Find the first NaN of a forward pass, a backward pass or forward mode.

The first NaN is the result of an operation whose operands have none. In anomaly mode every operation's result is checked
and every node stores the source lines that created it. A rule that returns NaN raises an error. The error names the
operation, its source location, the index and operand values that gave the NaN, and a fix.
"""

from chainrule._src.api.public_modules import show
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
