"""Test utilities: check derivatives (gradcheck), op definitions (rulecheck), and closeness (assert_close)."""

from chainrule._src.api.public_modules import show
from chainrule._src.transforms.gradcheck import GradcheckError, gradcheck, gradgradcheck
from chainrule.testing.close import assert_allclose, assert_close
from chainrule.testing.rulecheck import CHECKS, rulecheck
from chainrule.testing.samples import Sample, samples_of

__all__ = [
    "CHECKS",
    "GradcheckError",
    "Sample",
    "assert_allclose",
    "assert_close",
    "gradcheck",
    "gradgradcheck",
    "rulecheck",
    "samples_of",
]

show(globals())
