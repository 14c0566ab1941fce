"""Whole derivatives: Jacobians, Hessians and products with Hessians.

A Jacobian is one sweep (or one forward pass) with a batch of basis vectors in the place of one cotangent (or tangent).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core.array import faced
from chainrule.core.levels import entered, within
from chainrule.core.modes import inference_mode
from chainrule.core.tensor import Tensor, wrap
from chainrule.func.arguments import (
    bare,
    chosen,
    data_of,
    dressed,
    has_tensor,
    is_array,
    outputs_of,
    real_only,
    with_aux,
)
from chainrule.func.forward import taken_apart, tangent_like
from chainrule.func.reverse import Trace, differentiable_outputs, scalar_of
from chainrule.func.vectorize import left
from chainrule.interpreters.batched import Batched
from chainrule.interpreters.dual import Dual
from chainrule.tree import leaves_like, tree_flatten, tree_map, tree_unflatten

ndarray = np.ndarray


def _nested(blocks: list[list[Any]], out_spec: Any, in_specs: list[Any], single: bool) -> Any:
    """Blocks (for each output one for each input) as a tree of outputs, whose leaves are trees of inputs."""
    rows = [_by_input(row, in_specs) for row in blocks]
    return tree_unflatten([row[0] if single else tuple(row) for row in rows], out_spec)


def _by_input(leaves: list[Any], specs: list[Any]) -> list[Any]:
    """A flat list as the trees of several inputs."""
    rest = iter(leaves)
    return [tree_unflatten(itertools.islice(rest, spec.num_leaves), spec) for spec in specs]


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """The function that computes the Jacobian of ``func`` by reverse mode: best where outputs are few.

    Args:
        func: from arrays or tensors (or nested containers of them) to the same.
        argnums: which arguments to differentiate with respect to; for a tuple each block is a tuple.
        has_aux: ``func`` returns ``(output, aux)``, and so does the result: ``(jacobian, aux)``.
        chunk_size: the number of rows computed at once (all of them without it), to use less memory.

    Returns:
        A function of the same arguments. For an output y and an argument x the Jacobian has the shape
        ``(*y.shape, *x.shape)``. Where they are containers, it is a container like y of containers like x.

    Raises:
        RuntimeError: something is complex or not differentiable.

    >>> import chainrule as cr
    >>> cr.func.jacrev(lambda x: x ** 2)(cr.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    errors.check_function("jacrev", func)
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        trace = Trace("jacrev", func, chosen(argnums, args), args, kwargs, has_aux)
        real_only("jacrev", "inputs", trace.given)
        outputs, spec = differentiable_outputs(trace, "jacrev", "f(*args)")
        real_only("jacrev", "outputs", outputs)
        blocks = [_rows(trace, outputs, k, chunk_size) for k in range(len(outputs))]
        jacobian = _nested(blocks, spec, trace.specs, isinstance(argnums, int))
        return (jacobian, tree_map(trace.value, trace.aux)) if has_aux else jacobian

    return wrapper


@within
def _rows(trace: Trace, outputs: list[Tensor], k: int, chunk_size: int | None) -> list[Any]:
    """The blocks of the k-th output: for each input ∂y/∂x, of shape (*y.shape, *x.shape)."""
    y = outputs[k]
    shape, n = tuple(y._raw.shape), y.numel()
    later = k + 1 < len(outputs)
    parts = []
    if n == 1:
        parts.append(trace.pull([y], [np.ones(shape, y._raw.dtype)], later))
    else:
        step = chunk_size or max(n, 1)
        for begin in range(0, n, step):
            rows = min(step, n - begin)
            basis = np.zeros((rows, n), y._raw.dtype)
            more = later or begin + rows < n
            if rows == 1:  # nothing to vectorize, so nothing that could refuse to be
                basis[0, begin] = 1
                found = trace.pull([y], [basis.reshape(shape)], more)
                parts.append([None if g is None else g[None] for g in found])
                continue
            basis.reshape(-1)[begin :: n + 1] = 1
            with entered("jacrev", Batched, size=rows) as level:
                found = trace.pull([y], [Batched(basis.reshape(rows, *shape), level)], more)
                parts.append([None if g is None else left(g, level) for g in found])
    blocks = []
    for i, (x, given) in enumerate(zip(trace.starts, trace.given, strict=True)):
        block = _joined([part[i] for part in parts], (*shape, *x._raw.shape), x._raw.dtype)
        blocks.append(dressed(block, isinstance(given, Tensor)))
    return blocks


def _joined(pieces: list[Any], shape: tuple[int, ...], dtype: Any) -> Any:
    """Rows of a block, found a chunk at a time, as one array-like in memory of its own."""
    if not pieces or pieces[0] is None:
        return np.zeros(shape, dtype)
    block = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    if tuple(block.shape) != shape:
        block = np.reshape(block, shape)
    if type(block) is ndarray and block.base is not None:
        base = block.base
        if not block.flags.writeable or not isinstance(base, ndarray) or base.size != block.size:
            block = block.copy()
    return block


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The function that computes the Jacobian of ``func`` by forward mode: best where inputs are few.

    Args:
        func: from arrays or tensors (or nested containers of them) to the same.
        argnums: which arguments to differentiate with respect to; for a tuple each block is a tuple.
        has_aux: ``func`` returns ``(output, aux)``, and so does the result: ``(jacobian, aux)``.
        randomness: what random functions do inside, as for :func:`vmap`.

    Returns:
        A function of the same arguments; what it returns is as for :func:`jacrev`.

    Raises:
        RuntimeError: something is complex or not differentiable.

    >>> import chainrule as cr
    >>> cr.func.jacfwd(lambda x: x ** 2)(cr.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    errors.check_function("jacfwd", func)
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")

    @within
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        positions = chosen(argnums, args)
        flat = [tree_flatten(args[i]) for i in positions]
        specs = [spec for _, spec in flat]
        points = [x for leaves, _ in flat for x in leaves]
        real_only("jacfwd", "inputs", points)
        tensors = has_tensor(points)
        datas = [bare(x) for x in points]
        shapes = [tuple(d.shape) for d in datas]
        bounds = list(itertools.accumulate([math.prod(shape) for shape in shapes], initial=0))
        with (
            entered("jacfwd", Batched, size=bounds[-1], randomness=randomness) as batch,
            entered("jacfwd", Dual) as level,
        ):
            columns = [_columns(d, begin, bounds[-1]) for d, begin in zip(datas, bounds, strict=False)]
            alone = bounds[-1] == 1  # nothing to vectorize
            tangents = [c[0] if alone else Batched(c, batch) for c in columns]
            duals = [faced(wrap(Dual(d, t, level)), x) for x, d, t in zip(points, datas, tangents, strict=True)]
            inner = list(args)
            for i, tree in zip(positions, _by_input(duals, specs), strict=True):
                inner[i] = tree
            result = func(*inner, **kwargs)
            aux = None
            if has_aux:
                result, aux = with_aux(result, "jacfwd")
            outputs, out_spec = outputs_of(result, "jacfwd", "f(*args)")
            real_only("jacfwd", "outputs", outputs)
            blocks = []
            taken: set[int] = set()
            for y in outputs:
                tangent = taken_apart(y, level)[1]
                if tangent is not None:
                    tangent = tangent[..., None] if alone else np.moveaxis(left(tangent, batch), 0, -1)
                blocks.append([dressed(b, tensors, taken) for b in _split(tangent, y, shapes, bounds)])
            if has_aux:
                taken.update(map(id, points))
                aux = tree_map(lambda a: _off(a, level, batch, tensors, taken), aux)
        jacobian = _nested(blocks, out_spec, specs, isinstance(argnums, int))
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


def _columns(data: Any, begin: int, total: int) -> Any:
    """Tangents of one input: the basis vectors of all inputs, of which its own start at ``begin``."""
    if data.dtype.kind != "f":
        raise ValueError(
            f"Expected primal to be floating point or complex, but got: {data.dtype}. Use .float() or .double()."
        )
    n = math.prod(data.shape)
    basis = np.zeros((total, n), data.dtype)
    basis.reshape(-1)[begin * n :: n + 1][:n] = 1
    return basis.reshape(total, *data.shape)


def _split(columns: Any, y: Any, shapes: list[tuple[int, ...]], bounds: list[int]) -> list[Any]:
    """The blocks of an output, from its tangents along all basis vectors (along the last axis; None: zeros)."""
    shape = tuple(y._raw.shape)
    if columns is None:
        return [np.zeros((*shape, *x), y._raw.dtype) for x in shapes]
    if len(shapes) == 1 and len(shapes[0]) == 1:
        return [columns]
    pairs = zip(shapes, itertools.pairwise(bounds), strict=True)
    return [np.reshape(columns[..., begin:end], (*shape, *x)) for x, (begin, end) in pairs]


def _off(a: Any, level: int, batch: Any, tensors: bool, taken: set[int]) -> Any:
    """An auxiliary output, off the levels of ``jacfwd``: its value at the point."""
    if not is_array(a):
        return a
    primal = taken_apart(a, level)[0]
    data = primal._raw if isinstance(primal, Tensor) else primal
    if type(data) is Batched and data.level == batch:
        primal = data.payload if data.shared else data.payload[0]
    return dressed(primal, tensors, taken)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that computes the Hessian of ``func``: the Jacobian of its Jacobian, forward over reverse.

    Where an operation has no forward mode it is reverse over reverse.

    Args:
        func: from arrays or tensors (or nested containers of them) to a scalar (or anything else :func:`jacrev` takes).
        argnums: which arguments to differentiate with respect to; for a tuple the result is a tuple of tuples.

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
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(errors.NoForwardMode):
            return forward(*args, **kwargs)
        return reverse(*args, **kwargs)

    return wrapper


def hvp(func: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """The product of the Hessian of a scalar function and a vector, at the cost of a few gradients.

    Args:
        func: from arrays or tensors (or nested containers of them) to a 0-d tensor.
        primals: its argument, or a tuple with its arguments.
        tangents: the vector: as ``primals``, with the same shapes.

    Returns:
        H · tangents, in the structure of ``primals``.

    Raises:
        RuntimeError: the function's result is not a 0-d tensor; primals and tangents don't match.

    >>> import chainrule as cr
    >>> cr.func.hvp(lambda x: (x ** 3).sum(), cr.tensor([1., 2.]), cr.tensor([1., 1.]))
    tensor([ 6., 12.])
    """
    args = primals if isinstance(primals, tuple) else (primals,)
    vectors = tangents if isinstance(primals, tuple) else (tangents,)
    points, spec = tree_flatten(args)
    try:
        leaves = leaves_like(spec, vectors, strict=True)
    except ValueError as error:
        raise RuntimeError(
            "hvp(f, primals, tangents): Expected primals and tangents to have the same python structure: " + str(error)
        ) from None
    vs = [tangent_like(p, v, i, spec) for i, (p, v) in enumerate(zip(points, leaves, strict=True))]
    trace = Trace("hvp(f, primals, tangents)", func, range(len(args)), args, {})
    y = scalar_of(trace)
    with inference_mode(False):
        gradients = trace.pull([y], [np.ones((), y._raw.dtype)], True, create_graph=True)
    pairs = [
        (g, v if isinstance(v, Tensor) else data_of(v)) for g, v in zip(gradients, vs, strict=True) if g is not None
    ]
    products = trace.pull([g for g, _ in pairs], [v for _, v in pairs], False)
    found = trace.arranged(products, False)
    return found if isinstance(primals, tuple) else found[0]
