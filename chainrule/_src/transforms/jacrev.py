"""Transformations that return Jacobians, Hessians and products with Hessians: jacrev, jacfwd, hessian, hvp.

``chainrule.func`` exports these functions.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from chainrule._src.api.array import in_api_of_argument
from chainrule._src.api.grad_mode import inference_mode
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.tree import tree_flatten, tree_map, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, P
from chainrule._src.messages import errors
from chainrule._src.tape.foreign import ones_of
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.arguments import (
    array_id,
    as_caller_type,
    check_randomness,
    check_real,
    data_if_unrecorded,
    data_of,
    flatten_like,
    flatten_outputs,
    has_tensor,
    is_array,
    names_keywords,
    not_floating,
    positions_of,
    split_aux,
    tangent_like,
    without_objects,
)
from chainrule._src.transforms.dense import compute_columns, compute_rows
from chainrule._src.transforms.pushforward import write_back_duals
from chainrule._src.transforms.trace import Trace, unflatten_each

T = TypeVar("T")


def _nested(blocks: list[list[Any]], out_spec: Any, in_specs: list[Any], single: bool) -> Any:
    """Return the blocks (one list per output, with one block per input) as a tree of outputs of trees of inputs."""
    by_output = [unflatten_each(row, in_specs) for row in blocks]
    return tree_unflatten([row[0] if single else tuple(row) for row in by_output], out_spec)


@overload
def jacrev(
    func: np.ufunc, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> AnyFunction: ...
@overload
def jacrev(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[P, Any]: ...
@names_keywords
def jacrev(
    func: Callable[P, Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of ``func`` by reverse mode: best for few outputs.

    Args:
        func: a function from arrays or tensors (or nested containers of them) to arrays or tensors.
        argnums: the positions of the arguments to differentiate with respect to; for a tuple, each block is a tuple.
        has_aux: ``func`` returns ``(output, aux)``, and the new function returns ``(jacobian, aux)``.
        chunk_size: the number of rows to compute at once, to use less memory; by default all.

    Returns:
        A function of the same arguments. For an output y and an argument x the Jacobian has the shape
        ``(*y.shape, *x.shape)``. If y or x is a container, the Jacobian is a container like y of containers like x.

    Raises:
        RuntimeError: an input or output is complex or not differentiable.

    >>> import chainrule as cr
    >>> cr.func.jacrev(lambda x: x ** 2)(cr.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    errors.check_function("jacrev", func)
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
        trace = Trace("jacrev", func, positions_of(argnums, args), args, kwargs, has_aux)
        check_real("jacrev", "inputs", trace.leaves)
        outputs, spec = trace.outputs("f(*args)")
        check_real("jacrev", "outputs", outputs)
        blocks = []
        for y in outputs:

            def pull(g: AnyArray, more: bool, y: Tensor = y) -> list[Any]:
                return trace.sweep_to_inputs([y], [g], more or y is not outputs[-1])

            found = compute_rows(pull, y, trace.starts, chunk_size or max(y.numel(), 1), "jacrev", lift_leaves=True)
            blocks.append([as_caller_type(x, isinstance(leaf, Tensor)) for x, leaf in zip(found, trace.leaves)])
        jacobian = _nested(blocks, spec, trace.specs, isinstance(argnums, int))
        return (jacobian, tree_map(trace.value, trace.aux)) if has_aux else jacobian

    return wrapper


@overload
def jacfwd(
    func: np.ufunc, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> AnyFunction: ...
@overload
def jacfwd(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[P, Any]: ...
@names_keywords
def jacfwd(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of ``func`` by forward mode: best for few inputs.

    Args:
        func: a function from arrays or tensors (or nested containers of them) to arrays or tensors.
        argnums: the positions of the arguments to differentiate with respect to; for a tuple, each block is a tuple.
        has_aux: ``func`` returns ``(output, aux)``, and the new function returns ``(jacobian, aux)``.
        randomness: how random functions behave inside, as in :func:`vmap`.

    Returns:
        A function of the same arguments. Its result has the structure described at :func:`jacrev`.

    Raises:
        RuntimeError: an input or output is complex or not differentiable.

    >>> import chainrule as cr
    >>> cr.func.jacfwd(lambda x: x ** 2)(cr.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    errors.check_function("jacfwd", func)
    check_randomness(randomness)

    @functools.wraps(func)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
        positions = positions_of(argnums, args)
        flattened = [tree_flatten(args[i]) for i in positions]
        specs = [spec for _, spec in flattened]
        points = [x for leaves, _ in flattened for x in leaves]
        check_real("jacfwd", "inputs", points)
        tensors = has_tensor(points)
        primals = [data_if_unrecorded(x) for x in points]
        for p in primals:
            if p.dtype.kind != "f":
                raise not_floating("primal", p.dtype)
        aux = out_spec = None

        def flat(*duals: Any) -> list[Tensor]:
            nonlocal aux, out_spec
            inner: list[Any] = list(args)
            datas = [dual._raw for dual in duals]
            caller_typed = [in_api_of_argument(dual, x) for dual, x in zip(duals, points, strict=True)]
            for i, tree in zip(positions, unflatten_each(caller_typed, specs), strict=True):
                inner[i] = tree
            call: AnyFunction = func
            result = call(*inner, **kwargs)
            write_back_duals("jacfwd", points, duals, datas)
            if has_aux:
                result, aux = split_aux(without_objects(result), "jacfwd")
            outputs, out_spec = flatten_outputs(result, "jacfwd", "f(*args)")
            check_real("jacfwd", "outputs", outputs)
            return outputs

        all_columns = (0, sum([math.prod(shape_of(p)) for p in primals]))
        found, run = compute_columns(flat, primals, [all_columns], "jacfwd", randomness)
        foreign: set[int] = set()
        blocks = [[as_caller_type(block, tensors, foreign) for block in row] for row in found]
        jacobian = _nested(blocks, out_spec, specs, isinstance(argnums, int))
        if not has_aux:
            return jacobian
        foreign.update(map(array_id, points))
        return jacobian, tree_map(lambda a: as_caller_type(run.primal(a), tensors, foreign) if is_array(a) else a, aux)

    return wrapper


@overload
def hessian(func: np.ufunc, argnums: int | tuple[int, ...] = 0) -> AnyFunction: ...
@overload
def hessian(func: Callable[P, Any], argnums: int | tuple[int, ...] = 0) -> Callable[P, Any]: ...
@names_keywords
def hessian(func: Callable[P, Any], argnums: int | tuple[int, ...] = 0) -> Callable[P, Any]:
    """Return a function that computes the Hessian of ``func``: the Jacobian of its Jacobian, forward over reverse.

    If an operation has no forward mode, the Hessian is computed as reverse over reverse.

    Args:
        func: a function from arrays or tensors (or nested containers of them) to a scalar (or to any other output that
            :func:`jacrev` accepts).
        argnums: the positions of the arguments to differentiate with respect to; for a tuple, the result is a tuple of
            tuples.

    Returns:
        A function of the same arguments. For a scalar function of x the Hessian has the shape ``(*x.shape, *x.shape)``.

    >>> import chainrule as cr
    >>> cr.func.hessian(lambda x: (x ** 3).sum())(cr.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    errors.check_function("hessian", func)
    inner = jacrev(func, argnums)
    forward, reverse = jacfwd(inner, argnums, randomness="same"), jacrev(inner, argnums)

    @functools.wraps(func)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
        with contextlib.suppress(errors.NoForwardMode):
            return forward(*args, **kwargs)
        return reverse(*args, **kwargs)

    return wrapper


@names_keywords
def hvp(func: AnyFunction, primals: T, tangents: object) -> T:
    """Compute the product of the Hessian of a scalar function and a vector, at the cost of a few gradients.

    Args:
        func: a function from arrays or tensors (or nested containers of them) to a 0-d tensor.
        primals: the argument of ``func``, or a tuple of its arguments.
        tangents: the vector, with the structure and shapes of ``primals``.

    Returns:
        H · tangents, in the structure of ``primals``.

    Raises:
        RuntimeError: the function's result is not a 0-d tensor; primals and tangents don't match.

    >>> import chainrule as cr
    >>> cr.func.hvp(lambda x: (x ** 3).sum(), cr.tensor([1., 2.]), cr.tensor([1., 1.]))
    tensor([ 6., 12.])
    """
    single = not isinstance(primals, tuple)
    args: Any = (primals,) if single else primals
    vectors: Any = (tangents,) if single else tangents
    points, spec = tree_flatten(args)
    api = "hvp(f, primals, tangents)"
    leaves = flatten_like(spec, vectors, f"{api}: Expected primals and tangents to have the same python structure")
    vs = [tangent_like(p, v, i, spec) for i, (p, v) in enumerate(zip(points, leaves, strict=True))]
    trace = Trace(api, func, range(len(args)), args, {})
    y = trace.scalar()
    with inference_mode(False):
        gradients = trace.sweep_to_inputs([y], [ones_of(y._raw)], True, create_graph=True)
    pairs = [(g, v if isinstance(v, Tensor) else data_of(v)) for g, v in zip(gradients, vs) if g is not None]
    products = trace.sweep_to_inputs([g for g, _ in pairs], [v for _, v in pairs], False)
    return trace.unflatten_gradients(products, single, foreign=vs)
