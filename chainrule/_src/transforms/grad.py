"""Reverse mode on functions: ``grad``, ``value_and_grad``, ``grad_and_value`` and ``vjp``.

``chainrule.func`` exports these functions.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from chainrule._src.arrays.tree import TreeSpec, leaf_paths, tree_map, tree_unflatten
from chainrule._src.arrays.types import AnyFunction, P, R
from chainrule._src.messages import errors
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, tensor_of
from chainrule._src.transforms.arguments import data_of, flatten_like, is_array, names_keywords, positions_of
from chainrule._src.transforms.trace import Trace


@overload
def grad_and_value(func: np.ufunc, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> AnyFunction: ...
@overload
def grad_and_value(
    func: Callable[P, R], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, tuple[Any, R]]: ...
@names_keywords
def grad_and_value(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, Any]:
    """Return a function like that of :func:`grad` that returns ``(gradient, value)`` (with ``has_aux``: ``(gradient, (value, aux))``).

    >>> import chainrule as cr
    >>> cr.func.grad_and_value(lambda x: (x ** 2).sum())(cr.tensor([1., 2.]))
    (tensor([2., 4.]), tensor(5.))
    """
    return _with_value("grad_and_value", func, argnums, has_aux)


def _with_value(
    api: str, func: Callable[P, Any], argnums: int | tuple[int, ...], has_aux: bool, value_first: bool = False
) -> Callable[P, Any]:
    errors.check_function(api, func)

    @functools.wraps(func)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
        trace = Trace(f"{api}(f)(*args)", func, positions_of(argnums, args), args, kwargs, has_aux)
        trace.scalar()
        value = tree_map(trace.value, trace.result)
        gradient = trace.gradient(isinstance(argnums, int))
        if has_aux:
            value = (value, tree_map(trace.value, trace.aux))
        return (value, gradient) if value_first else (gradient, value)

    return wrapper


@overload
def value_and_grad(func: np.ufunc, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> AnyFunction: ...
@overload
def value_and_grad(
    func: Callable[P, R], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, tuple[R, Any]]: ...
@names_keywords
def value_and_grad(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, Any]:
    """Return a function like that of :func:`grad` that returns ``(value, gradient)``, as ``scipy.optimize.minimize(..., jac=True)`` needs.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> value, gradient = cr.func.value_and_grad(lambda x: np.sum(x**2))(np.array([1., 2.]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    """
    return _with_value("value_and_grad", func, argnums, has_aux, value_first=True)


@overload
def grad(func: np.ufunc, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> AnyFunction: ...
@overload
def grad(func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[P, Any]: ...
@names_keywords
def grad(func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[P, Any]:
    """Return the function that computes the gradient of ``func``, which must return a scalar.

    Args:
        func: a function of arrays or tensors (or nested containers of them) that returns a scalar.
        argnums: the positions of the arguments to differentiate with respect to; for a tuple the result is a tuple.
        has_aux: ``func`` returns ``(output, aux)``, and the new function returns ``(gradient, aux)``.

    Returns:
        A function of the same arguments. The gradient of an array or a number is an ndarray (float64 stays float64), the
        gradient of a tensor is a tensor.

    Raises:
        RuntimeError: the function's result is not a scalar, an argument does not have a floating point or complex dtype, or
            ``argnums`` is out of range.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> cr.func.grad(lambda x: np.sum(np.sin(x)))(np.array([0., np.pi]))
    array([ 1., -1.])
    """
    errors.check_function("grad", func)
    return gradient_function("grad(f)(*args)", func, argnums, has_aux)


def gradient_function(
    api: str, func: Callable[P, Any], argnums: int | tuple[int, ...], has_aux: bool = False
) -> Callable[P, Any]:
    """Return the function that :func:`grad` returns; error messages name ``api``."""

    @functools.wraps(func)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
        trace = Trace(api, func, positions_of(argnums, args), args, kwargs, has_aux)
        gradient = trace.gradient(isinstance(argnums, int))
        return (gradient, tree_map(trace.value, trace.aux)) if has_aux else gradient

    return wrapper


@overload
def vjp(func: Callable[..., R], *primals: object, has_aux: Literal[False] = False) -> tuple[R, AnyFunction]: ...
@overload
def vjp(func: AnyFunction, *primals: object, has_aux: bool) -> Any: ...
@names_keywords
def vjp(func: AnyFunction, *primals: object, has_aux: bool = False) -> Any:
    """Return ``func(*primals)`` and the function that pulls a cotangent of its output back to the primals.

    Args:
        func: from arrays or tensors (or nested containers of them) to the same.
        primals: the point.
        has_aux: ``func`` returns ``(output, aux)``; only ``output`` is differentiated.

    Returns:
        ``(output, vjp_fn)``, or ``(output, vjp_fn, aux)``. ``vjp_fn(cotangent)`` takes a cotangent with the structure and shapes
        of the output and returns a tuple with one gradient for each primal. It can be called any number of times
        (``retain_graph=False`` frees the graph).

    Raises:
        RuntimeError: the output contains a leaf without derivative, or the cotangent has another structure or shape.

    >>> import chainrule as cr
    >>> y, pull = cr.func.vjp(cr.exp, cr.zeros(2))
    >>> pull(cr.tensor([1., 3.]))
    (tensor([1., 3.]),)
    """
    errors.check_function("vjp", func)
    trace = Trace("vjp(f, *primals)", func, range(len(primals)), primals, {}, has_aux, linked=True)
    value, vjp_fn = result_and_pullback(trace)
    return (value, vjp_fn, tree_map(trace.value, trace.aux)) if has_aux else (value, vjp_fn)


def result_and_pullback(trace: Trace) -> tuple[Any, AnyFunction]:
    """Return the result of a trace's function, and the function that pulls its cotangents back."""
    outputs, spec = trace.outputs()
    trace.set_starts(sys.maxsize)  # the function has returned: only vjp_fn differentiates with respect to the starts

    def vjp_fn(*cotangents: object, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        gs = cotangents_like(outputs, spec, cotangents)
        try:
            trace.set_starts(trace.began)
            found = trace.sweep_to_inputs(outputs, gs, retain_graph, create_graph)
        finally:
            trace.set_starts(sys.maxsize)
        return trace.unflatten_gradients(found, foreign=gs)

    return tree_unflatten([trace.value(y) for y in outputs], spec), vjp_fn


def cotangents_like(outputs: list[Tensor], spec: TreeSpec, cotangents: tuple[object, ...]) -> list[Any]:
    """Return the leaves of the caller's cotangents, checked against the outputs and cast to their dtypes."""
    leaves = flatten_like(
        spec,
        cotangents[0] if len(cotangents) == 1 else cotangents,
        "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
        "cotangents: {got}, primal output: {spec}",
    )
    for i, (g, y) in enumerate(zip(leaves, outputs, strict=True)):
        shape, dtype = y._raw.shape, y._raw.dtype
        if not is_array(g):
            if not isinstance(g, (int, float, complex)):
                at = _at(leaf_paths(spec)[i])
                raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}{at}")
            g = np.asarray(g, dtype)
        data = data_of(g)
        if tuple(data.shape) != tuple(shape):
            raise errors.gradient_shape(i, tensor_of(g), y)
        if data.dtype.kind == "c" and dtype.kind != "c":
            raise RuntimeError(
                f"vjp: the cotangent{_at(leaf_paths(spec)[i])} is complex ({data.dtype}), but the output is real "
                f"({y.dtype}): pass its real part"
            )
        if data.dtype != dtype:
            g = data = np.astype(g, dtype)
        leaves[i] = g if isinstance(g, (Tensor, ArrayLike)) else data
    return leaves


def _at(path: str) -> str:
    return f" at {path}" if path else ""
