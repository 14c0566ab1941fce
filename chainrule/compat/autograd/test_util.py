"""Check derivatives against finite differences."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyFunction
from chainrule.compat.autograd.tracing import make_jvp, make_vjp
from chainrule.compat.autograd.vspaces import vspace
from chainrule.compat.autograd.wrap_util import get_name, unary_to_nary

__all__ = [
    "check_equivalent",
    "check_grads",
    "check_jvp",
    "check_vjp",
    "combo_check",
    "make_numerical_jvp",
    "scalar_close",
]

TOL = RTOL = EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def make_numerical_jvp(f: AnyFunction, x: object) -> AnyFunction:
    """Return a function that computes the derivative along a tangent by central differences."""
    points, values = vspace(x), vspace(f(x))

    def jvp(v: object) -> object:
        ahead, behind = (f(points.add(x, points.scalar_mul(v, step))) for step in (EPS / 2, -EPS / 2))
        return values.scalar_mul(values.add(ahead, values.scalar_mul(behind, -1.0)), 1 / EPS)

    return jvp


def check_vjp(f: AnyFunction, x: object) -> None:
    """Compare ⟨t, vjp(g)⟩ with ⟨J t, g⟩, for random t and g.

    Raises:
        AssertionError: they differ, or the gradient's structure differs from that of x.
    """
    vjp, y = make_vjp(f, x)
    points, values = vspace(x), vspace(y)
    t, g = points.randn(), values.randn()
    gradient = points.covector(vjp(values.covector(g)))
    assert vspace(gradient) == points, f"the gradient is in {vspace(gradient)}, but the argument in {points}"
    exact = points.inner_prod(t, gradient)
    numeric = values.inner_prod(g, make_numerical_jvp(f, x)(t))
    assert scalar_close(numeric, exact), (
        f"Derivative (VJP) check of {get_name(f)} failed with arg {x}:\nanalytic: {exact}\nnumeric:  {numeric}"
    )


def check_jvp(f: AnyFunction, x: object) -> None:
    """Compare the derivative along a random tangent with finite differences."""
    t = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(t)[1], make_numerical_jvp(f, x)(t))


def check_equivalent(x: object, y: object) -> None:
    """Compare the inner products of two values with a random one.

    Raises:
        AssertionError: the values or their vector spaces differ.
    """
    space = vspace(x)
    assert space == vspace(y), f"VSpace mismatch:\nx: {space}\ny: {vspace(y)}"
    v = space.randn()
    assert scalar_close(space.inner_prod(x, v), space.inner_prod(y, v)), f"Value mismatch:\nx: {x}\ny: {y}"


@unary_to_nary
def check_grads(f: AnyFunction, x: object, modes: Iterable[str] | None = None, order: int = 2) -> None:
    """Check the derivatives of a function at a point, up to an order.

    Args:
        modes: ``"fwd"``, ``"rev"``, or both (the default).

    Raises:
        AssertionError: a derivative is wrong.
    """
    modes = ["fwd", "rev"] if modes is None else list(modes)
    assert all(mode in ("fwd", "rev") for mode in modes), modes
    if "fwd" in modes:
        check_jvp(f, x)
        if order > 1:
            _check_derivative(f"jvp_{get_name(f)}", lambda x, t: make_jvp(f, x)(t)[1], x, x, modes, order)
    if "rev" in modes:
        check_vjp(f, x)
        if order > 1:
            _check_derivative(f"vjp_{get_name(f)}", lambda x, g: make_vjp(f, x)[0](g), x, f(x), modes, order)


def _check_derivative(
    name: str, derivative: AnyFunction, x: object, like: object, modes: list[str], order: int
) -> None:
    """Check the derivatives of a derivative (a function of the point and a direction)."""
    derivative.__name__ = name
    check_grads(derivative, (0, 1), modes, order=order - 1)(x, vspace(like).randn())


def combo_check(fun: AnyFunction, *args: object, **kwargs: object) -> AnyFunction:
    """Return a function of lists of arguments that calls ``check_grads`` for every combination."""

    def check(*choices: Any, **named: Any) -> None:
        for chosen in product(*choices):
            for values in product(*named.values()):
                options = dict(zip(named, values, strict=True))
                check_grads(lambda *xs, options=options: fun(*xs, **options), *args, **kwargs)(*chosen)

    return check


show(globals())
