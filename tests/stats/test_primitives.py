"""The primitives of distributions that are not in ``scipy.special``."""

import numpy as np
import pytest

from chainrule import func, stats
from chainrule._src.rules.primitive import Primitive
from chainrule.stats import primitives
from chainrule.testing import rulecheck
from chainrule.testing.rulecheck import CHECKS, every_sample
from tests.table.chosen import chosen_samples

#: All except samples, whose value does not depend on the parameters, and quantiles, for which SciPy uses a slow search: both
#: are compared with differences and with each other in the tests of distributions.
PRIMITIVES = [
    p for p in vars(primitives).values() if isinstance(p, Primitive) and not p.name.endswith(("_sample", "_ppf"))
]


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda primitive: primitive.name)
def test_rules(primitive):
    check_rules(primitive, chosen_samples(primitive))


@pytest.mark.slow
@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda primitive: primitive.name)
def test_rules_at_every_sample(primitive):
    check_rules(primitive, every_sample(primitive))


def check_rules(primitive, samples):
    rulecheck(primitive, [name for name in CHECKS if name not in ("dtype", "public_function")], samples)
    rulecheck(primitive, ["dtype"], [s for s in samples if len(s.arrays) == len(s.shapes) and not s.complex])


def test_von_mises_quantile():
    x = stats.vonmises.ppf(0.3, 1.6)
    slope = func.grad(lambda q: stats.vonmises.ppf(q, 1.6))(0.3)
    assert np.isclose(stats.vonmises.cdf(x, 1.6), 0.3) and np.isclose(slope, 1 / stats.vonmises.pdf(x, 1.6))
