"""Fixed points x = f(a)(x), differentiated implicitly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, AnyFunction, IntoArray
from chainrule.compat.autograd.extend import defvjp, primitive
from chainrule.compat.autograd.tracing import make_vjp
from chainrule.compat.autograd.vspaces import vspace

__all__ = [
    "fixed_point",
]


@primitive
def fixed_point(f: Callable[[Any], Any], a: object, x0: object, distance: Callable[[Any, Any], Any], tol: float) -> Any:
    """Iterate ``x = f(a)(x)`` from x0 until two iterates are closer than ``tol``."""
    step = f(a)
    x, before = step(x0), x0
    while distance(x, before) > tol:
        x, before = step(x), x
    return x


def _vjp(
    ans: object, f: AnyFunction, a: IntoArray, x0: object, distance: AnyFunction, tol: float
) -> Callable[[AnyArray], AnyArray]:
    """Return the VJP with respect to a, from w = (I − ∂f/∂x)⁻ᵀ g, which is the fixed point of w = (∂f/∂x)ᵀ w + g."""

    def adjoint(given: tuple[IntoArray, ...]) -> Callable[[AnyArray], AnyArray]:
        a, x, g = given
        pull, _ = make_vjp(f(a), x)
        return lambda w: vspace(x).add(pull(w), g)

    pull, _ = make_vjp(lambda a: f(a)(ans), a)
    return lambda g: pull(fixed_point(adjoint, (a, ans, g), vspace(x0).zeros(), distance, tol))


defvjp(fixed_point, None, _vjp, None)

show(globals())
