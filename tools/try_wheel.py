"""Try an installed wheel with only NumPy: a gradient, a compiled function and a backward pass. Warnings are errors.

python tools/try_wheel.py [--extension]    with --extension, operations must run in C
"""

import sys
import warnings

import numpy as np

warnings.simplefilter("error")
warnings.filterwarnings("ignore", "chainrule runs without its C extension", RuntimeWarning)

import chainrule as cr  # noqa: E402
from chainrule._src import native  # noqa: E402


def f(x: np.ndarray) -> np.ndarray:
    return np.sum(np.sin(x) * x)


x = np.linspace(0.0, 1.0, 5)
gradient, compiled = cr.grad(f), cr.compile(cr.grad(f))
assert all(np.allclose(function(x), np.cos(x) * x + np.sin(x)) for function in (gradient, compiled, compiled))
t = cr.tensor([1.0, 2.0], requires_grad=True)
(t * t).sum().backward()
assert t.grad.tolist() == [2.0, 4.0]
print(f"NumPy {np.__version__}, operations in {f'Python: {native.why_not}' if native.why_not else 'C'}")
sys.exit(bool(native.why_not) and "--extension" in sys.argv)
