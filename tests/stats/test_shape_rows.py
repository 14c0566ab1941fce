"""The primitives of distributions that are not in ``scipy.special``."""

import numpy as np
import pytest

from chainrule import func, stats
from chainrule._src.rules.primitive import Primitive
from chainrule.testing import rulecheck
from chainrule.testing.rulecheck import CHECKS, every_sample
from tests.table.chosen import chosen_samples

pytest.importorskip("scipy")
rows = pytest.importorskip("chainrule.stats.rows")

#: All except samples, whose value does not depend on the parameters, and quantiles, for which SciPy uses a slow search: both
#: are compared with differences and with each other in the tests of distributions.
ROWS = [row for row in vars(rows).values() if isinstance(row, Primitive) and not row.name.endswith(("_sample", "_ppf"))]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row):
    check_row(row, chosen_samples(row))


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_sample_of_a_row(row):
    check_row(row, every_sample(row))


def check_row(row, samples):
    rulecheck(row, [name for name in CHECKS if name not in ("dtype", "face")], samples)
    rulecheck(row, ["dtype"], [s for s in samples if len(s.arrays) == len(s.shapes) and not s.complex])


def test_von_mises_quantile():
    x = stats.vonmises.ppf(0.3, 1.6)
    slope = func.grad(lambda q: stats.vonmises.ppf(q, 1.6))(0.3)
    assert np.isclose(stats.vonmises.cdf(x, 1.6), 0.3) and np.isclose(slope, 1 / stats.vonmises.pdf(x, 1.6))
