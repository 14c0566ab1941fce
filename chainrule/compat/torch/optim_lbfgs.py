"""Functions that other libraries import from ``torch.optim.lbfgs``: the line search and its interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule._src.ops.creation import as_tensor
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.lbfgs import _cubic_minimum, _LineSearch, _Trial


def _strong_wolfe(
    obj_func: Callable[[Any, Any, Tensor], tuple[Any, Tensor]], x: object, t: object, d: Tensor, f: Any, g: Tensor, gtd: Any,
    c1: float = 1e-4, c2: float = 0.9, tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[Any, Tensor, Any, int]:  # fmt: skip
    """Find a step along ``d`` with the strong Wolfe conditions; return its loss, gradient, length, and the evaluations."""

    def trial(step: object) -> _Trial:
        loss, grad = obj_func(x, step, d)
        return _Trial(step, loss, grad, grad.dot(d))

    search = _LineSearch(trial, _Trial(0, f, g, gtd), d, tolerance_change)
    search.c1, search.c2 = c1, c2
    found = search.run(t, max_ls)
    return found.loss, found.grad, found.t, search.evaluations


def _cubic_interpolate(x1: object, f1: Any, g1: object, x2: object, f2: Any, g2: object, bounds: Any = None) -> Any:
    """Return the minimizer, within bounds (by default the points), of the cubic through two points with their slopes."""
    ends = tuple(as_tensor(x, dtype="float64") for x in (x1, x2))
    slopes = tuple(as_tensor(g, dtype="float64") for g in (g1, g2))
    a, b = (_Trial(x, f, slopes[0], g) for x, f, g in zip(ends, (f1, f2), slopes, strict=True))
    return float(_cubic_minimum(a, b, bounds or tuple(sorted(map(float, ends)))))
