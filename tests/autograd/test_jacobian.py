"""chainrule.jacobian: functions and computed tensors, either mode, in chunks under a limit on memory."""

import tracemalloc
import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule.core.kinds import opaque
from chainrule.core.primitive import TABLE, unsupported
from chainrule.testing.differences import numerical_jacobian if False else None  # noqa
