"""SciPy is loaded at the first call of a solver."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
import chainrule as cr
import chainrule.scipy, chainrule.implicit
assert "scipy" not in sys.modules, "loaded"
a = np.array([4.0])
assert abs(cr.jacrev(lambda a: cr.implicit.root(lambda x, a: x**2 - a, np.ones(1), a))(a)[0, 0] - 0.25) < 1e-12
assert "scipy" not in sys.modules, "loaded for a small dense system"
sys.modules["scipy"] = None  # as if it was not installed
try:
    cr.scipy.minimize(lambda x: np.sum(x), np.ones(2))
except ModuleNotFoundError as error:
    assert "pip install chainrule[scipy]" in str(error) and "chainrule.scipy.minimize" in str(error)
else:
    raise AssertionError("no error")
n = 80
chain = lambda k: cr.implicit.root(lambda x, k: k * (3 * x - np.roll(x, 1) - np.roll(x, -1)) - 1, np.zeros(n), k)
assert np.allclose(cr.jacfwd(chain)(2.0), -0.25)
"""


def test_scipy_loads_when_it_is_used_and_need_not_be_there() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
