"""HIPS autograd's differential operators (``grad``, ``jacobian``, ...), built from ``make_vjp`` and ``make_jvp``."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import OrderedDict
from typing import Any

import numpy as np

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.tree import tree_map
from chainrule._src.arrays.types import AnyArray, AnyFunction, TensorLike
from chainrule._src.tape import engine
from chainrule._src.transforms.arguments import as_caller_type
from chainrule._src.transforms.dense import Limits, compute_rows, pass_bound
from chainrule.compat.autograd import tracing
from chainrule.compat.autograd.extend import Applied
from chainrule.compat.autograd.tracing import public_result, record_run, vjp_from_trace
from chainrule.compat.autograd.values import conjugate
from chainrule.compat.autograd.vspaces import vspace
from chainrule.compat.autograd.wrap_util import unary_to_nary
from chainrule.utils import checkpoint as checkpoints

__all__ = [
    "checkpoint",
    "deriv",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "jacobian",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_jvp_reversemode",
    "make_vjp",
    "multigrad_dict",
    "tensor_jacobian_product",
    "value_and_grad",
    "vector_jacobian_product",
]

_make_vjp, _make_jvp = tracing.make_vjp, tracing.make_jvp  # programs import these names, too
make_vjp = unary_to_nary(tracing.make_vjp)
make_jvp = unary_to_nary(tracing.make_jvp)


def _unit_cotangent(y: TensorLike | None, name: str) -> Any:
    """Return the initial cotangent 1 of a result with a single real element; raise for other results."""
    space = vspace(y)
    if space.size != 1:
        raise TypeError(
            f"{name.capitalize()} only applies to real scalar-output functions. Try jacobian, elementwise_grad or "
            f"holomorphic_grad. The function returned {space!r}"
        )
    return space.ones()


@unary_to_nary
def grad(fun: AnyFunction, x: object) -> Any:
    """Return a function that computes the gradient of ``fun`` with respect to the argument at ``argnum``.

    Args:
        fun: a function that returns one real number, in an array of any shape.
        argnum: the position of an argument, or a tuple or list of positions. Each argument is an array, a number, or a
            tuple, list or dict of them.

    Returns:
        A function of the same arguments. Its result has the structure of the argument.

    Raises:
        TypeError: the result of ``fun`` is not one real number.

    >>> from chainrule.compat.autograd import grad
    >>> grad(lambda x, y: x * y**2, argnum=(0, 1))(2.0, 3.0)
    (np.float64(9.0), np.float64(12.0))
    """
    vjp, y = tracing.make_vjp(fun, x)
    return vjp(_unit_cotangent(y, "grad"))


@unary_to_nary
def value_and_grad(fun: AnyFunction, x: AnyArray) -> tuple[AnyArray, ...]:
    """Return a function that computes ``(value, gradient)``, as for ``scipy.optimize.minimize(jac=True)``; see :func:`grad`."""
    vjp, y = tracing.make_vjp(fun, x)
    return y, vjp(_unit_cotangent(y, "value_and_grad"))


@unary_to_nary
def grad_and_aux(fun: AnyFunction, x: AnyArray) -> tuple[AnyArray, ...]:
    """Return a function that computes ``(gradient, aux)``, for a function that returns ``(output, aux)``; see :func:`grad`."""
    aux = []

    def main_output(x: AnyArray) -> Any:
        y, *rest = fun(x)
        aux.extend(rest)
        return y

    run, trace = record_run("grad_and_aux(fun)(x)", main_output, x)
    vjp, y = vjp_from_trace(run, trace, x)
    return vjp(_unit_cotangent(y, "grad_and_aux")), public_result(run, tree_map(trace.value, aux[0]))


@unary_to_nary
def elementwise_grad(fun: AnyFunction, x: object) -> Any:
    """Return the gradient of the sum of the elements of ``fun``: the derivative of an elementwise function.

    >>> import numpy as np
    >>> from chainrule.compat.autograd import elementwise_grad
    >>> elementwise_grad(np.square)(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    vjp, y = tracing.make_vjp(fun, x)
    space = vspace(y)
    if any(dtype.kind == "c" for _, dtype in space.leaves):
        raise TypeError("Elementwise_grad only applies to real-output functions.")
    return vjp(space.ones())


@unary_to_nary
def deriv(fun: AnyFunction, x: TensorLike) -> Any:
    """Return the derivative in the direction of ones, by forward mode."""
    return tracing.make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun: AnyFunction, x: object) -> Any:
    """Return the Jacobian ``(*fun(x).shape, *x.shape)`` of a function from one array to another.

    Rows are computed in batches. They are computed one by one if the function calls user-defined primitives, whose rules
    may not support batches.

    >>> import numpy as np
    >>> from chainrule.compat.autograd import jacobian
    >>> jacobian(np.cumsum)(np.array([0.0, 1.0]))
    array([[1., 0.],
           [1., 1.]])
    """
    run, trace = record_run("jacobian", fun, x)
    shape = vspace(run.constant if run.is_constant else trace.result).shape + vspace(x).shape
    if run.is_constant:
        return np.zeros(shape)
    (y,), _ = trace.outputs()
    if y.is_complex():
        raise TypeError(
            "jacobian() of a complex result: differentiate its real and imaginary parts, np.real and np.imag"
        )
    if y._edge is None or not y.numel():
        return np.zeros(shape, y._raw.dtype)

    def pull(g: AnyArray, more: bool = True) -> list[AnyArray]:
        return trace.sweep_to_inputs([y], [g], more)

    has_user_primitives = any(
        getattr(getattr(node, "prim", None), "function", None) is Applied for node in engine.reachable([y._edge])
    )
    unit = np.zeros(y._raw.shape, y._raw.dtype)
    step = 1 if has_user_primitives else Limits().chunk(y.numel(), pass_bound([y]), lambda: pull(unit))
    (found,) = compute_rows(pull, y, trace.starts, step, "jacobian", lift_leaves=True)
    return run.outside_of_run(conjugate(as_caller_type(found, False)))


@unary_to_nary
def hessian(fun: AnyFunction, x: AnyArray) -> Any:
    """Return the matrix of second derivatives, as the Jacobian of the Jacobian."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def holomorphic_grad(fun: AnyFunction, x: object) -> Any:
    """Return the derivative of a holomorphic function from one complex number to another."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=2)
    return grad(lambda x: np.real(fun(x)))(x)


def grad_named(fun: AnyFunction, argname: str) -> AnyFunction:
    """Return the gradient with respect to the argument named ``argname``."""
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


def multigrad_dict(fun: AnyFunction) -> AnyFunction:
    """Return the gradients with respect to all arguments, as a dict by name."""
    signature = inspect.signature(fun)

    def gradfun(*args: object, **kwargs: object) -> object:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_dict(arguments: dict[str, AnyArray]) -> object:
            call = inspect.BoundArguments(signature, OrderedDict(arguments))
            return fun(*call.args, **call.kwargs)

        return OrderedDict(grad(of_dict)(dict(bound.arguments)))

    return gradfun


# -- products ----------------------------------------------------------------------------------------------------------


@unary_to_nary
def make_hvp(fun: AnyFunction, x: AnyArray) -> tuple[AnyArray | AnyFunction, ...]:
    """Return ``(hvp, gradient)``; ``hvp(v)`` is the product of the Hessian and v."""
    return tracing.make_vjp(grad(fun), x)


def hessian_tensor_product(fun: AnyFunction, argnum: int = 0) -> AnyFunction:
    """Return a function of ``(*args, tensor)``: the Hessian, contracted with a tensor of the argument's shape."""
    gradient = grad(fun, argnum)

    def directional_derivative(*args: object, **kwargs: object) -> Any:
        return np.sum(gradient(*args[:-1], **kwargs) * args[-1])

    return grad(directional_derivative, argnum)


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: AnyFunction, argnum: int = 0) -> AnyFunction:
    """Return a function of ``(*args, tensor)``: the Jacobian, contracted with a tensor along its first axes."""

    def product(*args: Any, **kwargs: Any) -> Any:
        return np.tensordot(args[-1], fun(*args[:-1], **kwargs), np.ndim(args[-1]))

    return jacobian(product, argnum)


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: AnyFunction, x: object) -> AnyFunction:
    """Return ``jvp(t)``, computed by two reverse passes, for primitives without a JVP rule."""
    vjp, y = tracing.make_vjp(fun, x)
    return tracing.make_vjp(vjp, vspace(y).zeros())[0]


def _half_square(x: AnyArray) -> AnyArray:
    return np.sum(x**2, axis=-1) / 2


def make_ggnvp(f: AnyFunction, g: AnyFunction = _half_square, f_argnum: int = 0) -> AnyFunction:
    """Return the generalized Gauss–Newton product: ``make_ggnvp(f, g)(x)(v)`` is Jᵀ H J v.

    J is the Jacobian of f at x, and H the Hessian of g at f(x).
    """

    @unary_to_nary
    def ggnvp(f: AnyFunction, x: object) -> AnyFunction:
        pull, y = tracing.make_vjp(f, x)
        hessian_product = tracing.make_vjp(grad(g), y)[0]
        push = tracing.make_vjp(pull, vspace(y).zeros())[0]
        return lambda v: pull(hessian_product(push(v)))

    return ggnvp(f, f_argnum)


def checkpoint(fun: AnyFunction) -> AnyFunction:
    """Return a function that drops its intermediate values and recomputes them in the backward pass."""

    @functools.wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return checkpoints.checkpoint(fun, *args, use_reentrant=False, **kwargs)

    return checkpointed


show(globals())
