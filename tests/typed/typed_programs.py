"""Programs whose types mypy checks: ``make lint`` does, and so does ``test_types.py``, which also runs ``right``.

Lines in ``wrong`` must be errors: mypy reports an unused ``type: ignore``.
"""

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np

import chainrule as cr
from chainrule.compiler import Compiled

Vector = np.ndarray[Any, np.dtype[np.float64]]


def energy(x: Vector, power: int = 2) -> float:
    """Return Σ xᵖ."""
    return (x**power).sum()


@cr.compile
def compiled(x: Vector, power: int = 2) -> float:
    return energy(x, power)


@cr.compile(pure=True)
def pure(x: Vector, power: int = 2) -> float:
    return energy(x, power)


@cr.no_grad()
def constant(x: Vector) -> Vector:
    return x


@cr.inference_mode()
def inferred(x: Vector) -> Vector:
    return x


@cr.implicit.custom_root(lambda x, a: x**2 - a)
def root(x: Vector, a: float) -> Vector:
    return np.sqrt(a * np.ones_like(x))


@cr.compiler.disable
def eager(x: Vector) -> Vector:
    return x


@cr.compiler.disable(recursive=False)
def also_eager(x: Vector) -> Vector:
    return x


class Model:
    """A class with a compiled method."""

    scale = 2.0

    @cr.compile
    def loss(self, x: Vector) -> float:
        return self.scale * energy(x)


def right() -> None:
    """Call every wrapped function with the arguments of the function that it wraps."""
    x = np.ones(3)
    for gradient in (
        cr.grad(energy),
        cr.func.grad(energy),
        cr.compile(cr.grad(energy)),
        cr.jacrev(energy),
        cr.jacfwd(energy),
    ):
        gradient(x)
        gradient(x, power=3)
    assert_type(cr.value_and_grad(energy)(x, power=3), tuple[float, Any])
    assert_type(cr.grad_and_value(energy)(x, 3), tuple[Any, float])
    cr.hessian(energy)(x, power=3)
    cr.func.hessian(energy)(x, 3)
    cr.hessian(energy, x, layout="dense")
    cr.hessian(energy, layout="csr")(x)
    cr.jacobian(energy)(x)
    cr.jacobian(energy, x, layout="csr")
    assert_type(cr.vmap(energy)(np.ones((2, 3))), float)
    assert_type(cr.jvp(energy, (x,), (x,)), tuple[float, float])
    assert_type(cr.vjp(energy, x)[0], float)
    assert_type(cr.utils.checkpoint.checkpoint(energy, x, use_reentrant=False), float)
    assert_type(cr.compile(energy)(x, power=3), float)
    assert_type(compiled(x, power=3), float)
    assert_type(pure(x, 3), float)
    assert_type(Model().loss(x), float)
    assert_type(compiled.explain(), str)
    compiled.plan(x, power=3)
    # NumPy's stubs give a ufunc many overloads, of which a ParamSpec would keep the first
    assert_type(cr.grad(np.sin), Callable[..., Any])
    cr.vmap(np.sin)(x)
    cr.jacobian(np.sin)(x)
    cr.compile(np.sin)(x)
    assert_type(cr.compile(np.sin), Compiled[..., Any])
    assert_type(constant(x), Vector)
    assert_type(root(x, 4.0), Vector)
    assert_type(eager(x), Vector)
    assert_type(also_eager(x), Vector)
    assert_type(inferred(x), Vector)

    assert_type(cr.ones(2) + 1, cr.Tensor)
    assert_type(cr.tensor([1.0]).sum(), cr.Tensor)
    assert_type(cr.randn(2, dtype=cr.float64), cr.Tensor)
    layer = cr.nn.Linear(3, 2)
    assert_type(layer.forward(cr.ones(3)), cr.Tensor)
    cr.func.functional_call(layer, dict(layer.named_parameters()), cr.ones(3))
    assert_type(layer, cr.nn.Linear)
    assert_type(cr.compile(layer), cr.nn.Linear)
    assert_type(cr.nn.ReLU(inplace=True), cr.nn.ReLU)
    assert_type(cr.nn.Conv2d(1, 2, 3).forward(cr.ones(1, 1, 4, 4)), cr.Tensor)
    assert_type(cr.nn.MSELoss(reduction="sum").forward(cr.ones(2), cr.ones(2)), cr.Tensor)


def wrong() -> None:
    """Type errors."""
    compiled("x")  # type: ignore[arg-type]
    pure(np.ones(3), exponent=3)  # type: ignore[call-arg]
    Model().loss()  # type: ignore[call-arg]
    cr.grad(energy)(3)  # type: ignore[arg-type]
    cr.value_and_grad(energy)("x")  # type: ignore[arg-type]
    cr.vmap(energy)("x")  # type: ignore[arg-type]
    cr.jacobian(energy)("x")  # type: ignore[arg-type]
    compiled.plan("x")  # type: ignore[arg-type]
    cr.nn.ReLU(in_place=True)  # type: ignore[call-arg]
    cr.nn.Linear("3", 2)  # type: ignore[arg-type]
    cr.nn.Linaer  # type: ignore[attr-defined]
    cr.optim.Adamm  # type: ignore[attr-defined]
    cr.autograd.bakcward  # type: ignore[attr-defined]
