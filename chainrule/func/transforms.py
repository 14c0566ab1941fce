"""grad, vjp, jvp and vmap: each wraps its arguments, calls the function, and unwraps the result.

vmap and jvp enter a new level, whose values hide (Batched) or carry (Dual) something. grad and vjp need none: they
start a fresh path on the tape at the level their arguments are on.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core import engine
from chainrule.core.modes import enable_grad, no_grad, recording
from chainrule.core.node import Leaf, next_seq
from chainrule.core.protocol import ArrayLike
from chainrule.core.tensor import Tensor, wrap
from chainrule.interpreters.batched import Batched
from chainrule.interpreters.dual import Dual
from chainrule.table.shape import alias

ndarray = np.ndarray


class _Levels(threading.local):
    def __init__(self) -> None:
        self.lifts: list[Callable[[Any, int], Any]] = []  # one for each level entered


_LEVELS = _Levels()


class _level:
    """A new transformation level, for the duration of a ``with`` block; ``lift`` makes a value of it from a lower one."""

    def __init__(self, lift: Callable[[Any, int], Any]) -> None:
        self.lift = lift

    def __enter__(self) -> int:
        _LEVELS.lifts.append(self.lift)
        return len(_LEVELS.lifts)

    def __exit__(self, *exc: object) -> None:
        _LEVELS.lifts.pop()


def _is_array(x: Any) -> bool:
    return isinstance(x, (Tensor, ndarray, np.generic, ArrayLike))


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply a function to the leaves of nested tuples, lists and dicts."""
    if isinstance(tree, (tuple, list)):
        parts = [tree_map(function, *items) for items in zip(tree, *others, strict=True)]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, dict):
        return {key: tree_map(function, tree[key], *(o[key] for o in others)) for key in tree}
    return None if tree is None else function(tree, *others)


def tree_leaves(tree: Any) -> list[Any]:
    leaves: list[Any] = []
    tree_map(leaves.append, tree)
    return leaves


def _bare(x: Any) -> Any:
    """A tensor's data where nothing is recorded by it, else the tensor."""
    if isinstance(x, Tensor):
        return x._data if x._edge is None or not recording() else x
    return np.asarray(x) if not isinstance(x, ArrayLike) else x


def _start(x: Any) -> Tensor:
    """A fresh place on the tape for an argument: connected to the argument, if that is on the tape itself.

    Inside vmap or jvp it is a place of their level, also where the argument is from outside: results mix it with values
    of that level, and a tape of a lower level ends there.
    """
    level = len(_LEVELS.lifts)
    data = x._data if isinstance(x, Tensor) else np.asarray(x) if not isinstance(x, ArrayLike) else x
    if level and data.dtype.kind in "fc" and getattr(data, "level", 0) < level:
        fresh = wrap(_LEVELS.lifts[-1](_bare(x), level))
        fresh._edge = Leaf(fresh)
        return fresh
    if isinstance(x, Tensor) and x._edge is not None and recording():
        return alias(x)
    fresh = wrap(data)
    if fresh._data.dtype.kind not in "fc":
        raise RuntimeError(
            f"grad: the argument to differentiate has dtype {fresh.dtype}; only floating point and complex values have "
            "gradients: pass 1. instead of 1, or use .float()"
        )
    fresh._edge = Leaf(fresh)
    return fresh


def _end(g: Any, like: Any) -> Any:
    """A gradient in the form its argument had: ndarray for ndarray, tensor for tensor."""
    if isinstance(g, Tensor):
        return g
    if type(g) is ndarray and g.base is not None:
        g = g.copy()
    return wrap(g) if isinstance(like, Tensor) or isinstance(g, ArrayLike) else g


def _pull(outputs: list[Tensor], cotangents: list[Any], starts: list[Tensor], since: int, keep: bool) -> list[Any]:
    """The cotangents at ``starts``. Recorded if the result can depend on anything else that is recorded."""
    pairs = [
        (y._edge, g) for y, g in zip(outputs, cotangents, strict=True) if isinstance(y, Tensor) and y._edge is not None
    ]
    if not pairs:
        return [None] * len(starts)
    roots = [edge for edge, _ in pairs]
    targets = [x._edge for x in starts]
    ours = set(targets)
    order = engine.reachable(roots)
    record = recording() and (
        any(
            (type(edge) is Leaf or edge.seq < since or type(targets[0]) is not Leaf) and edge not in ours
            for edge in order
        )
        or any(isinstance(g, Tensor) and g._edge is not None for _, g in pairs)
    )
    gs = [
        (g if isinstance(g, Tensor) else wrap(g)) if record else (g._data if isinstance(g, Tensor) else g)
        for _, g in pairs
    ]
    return engine.sweep(
        roots, gs, targets, retain_graph=keep or record, create_graph=record, accumulate=False, order=order
    )


def _argnums(argnums: int | tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for i in numbers:
        if not -len(args) <= i < len(args):
            raise RuntimeError(f"Got argnums={argnums}, but only {len(args)} positional inputs")
    return tuple(i % len(args) for i in numbers)


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """As :func:`grad`, returning ``(gradient, value)`` (``(gradient, (value, aux))`` with ``has_aux``)."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        chosen = _argnums(argnums, args)
        outer = recording()
        since = next_seq()
        trees = [tree_map(_start, args[i]) for i in chosen]
        starts = [leaf for tree in trees for leaf in tree_leaves(tree)]
        inner = list(args)
        for i, tree in zip(chosen, trees, strict=True):
            inner[i] = tree
        with enable_grad():
            result = func(*inner, **kwargs)
        aux = None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise RuntimeError(
                    "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
                )
            result, aux = result
        if not isinstance(result, Tensor):
            raise RuntimeError(
                f"grad_and_value(f)(*args): Expected f(*args) to return a tensor, got {type(result).__name__}. Use NumPy or "
                "chainrule functions on the arguments all the way (float() and math.* leave the graph)."
            )
        if result.numel() != 1 or result.ndim:
            raise RuntimeError(
                f"grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with {result.ndim} dims. Maybe "
                f"you wanted to use the vjp or jacrev APIs instead? (shape {tuple(result.shape)})"
            )
        if outer:
            found = _pull([result], [np.ones((), result.dtype)], starts, since, False)
        else:
            with no_grad():
                found = _pull([result], [np.ones((), result.dtype)], starts, since, False)
        grads = iter(found)
        shaped = [
            tree_map(lambda leaf, given: _zero_if_none(next(grads), leaf, given), tree, args[i])
            for i, tree in zip(chosen, trees, strict=True)
        ]
        gradient = shaped[0] if isinstance(argnums, int) else tuple(shaped)
        value = _value(result, args, since)
        if has_aux:
            return gradient, (value, tree_map(lambda a: _value(a, args, since), aux))
        return gradient, value

    return wrapper


def _zero_if_none(g: Any, leaf: Tensor, given: Any) -> Any:
    return _end(np.zeros(leaf.shape, leaf.dtype) if g is None else g, given)


def _value(result: Any, args: Any, since: int) -> Any:
    """The function's value, off the tape unless it depends on something outside."""
    if not isinstance(result, Tensor):
        return result
    outside = (
        recording()
        and result._edge is not None
        and any(
            (type(edge) is Leaf and any(isinstance(a, Tensor) and a._edge is edge for a in tree_leaves(list(args))))
            or (edge.seq < since and type(edge) is not Leaf)
            for edge in engine.reachable([result._edge])
        )
    )
    if outside:
        return result
    if not any(isinstance(a, Tensor) for a in tree_leaves(list(args))) and type(result._data) is ndarray:
        return result._data
    return wrap(result._data)


def value_and_grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """As :func:`grad`, returning ``(value, gradient)``: what ``scipy.optimize.minimize(..., jac=True)`` wants.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> value, gradient = cr.func.value_and_grad(lambda x: np.sum(x**2))(np.array([1., 2.]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return value, gradient

    return wrapper


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that computes the gradient of ``func``, which must return a scalar.

    Args:
        func: from arrays or tensors (or nested containers of them) to a 0-d tensor.
        argnums: which arguments to differentiate with respect to.
        has_aux: ``func`` returns ``(output, aux)``, and so does the result: ``(gradient, aux)``.

    Returns:
        A function of the same arguments. An ndarray argument gets an ndarray gradient (float64 stays float64).

    >>> import numpy as np
    >>> import chainrule as cr
    >>> cr.func.grad(lambda x: np.sum(np.sin(x)))(np.array([0., np.pi]))
    array([ 1., -1.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``func(*primals)`` and the function that pulls a cotangent of its output back to the primals.

    Returns:
        ``(output, vjp_fn)``, or ``(output, vjp_fn, aux)``; ``vjp_fn(cotangent)`` returns one gradient for each primal.

    >>> import chainrule as cr
    >>> y, pull = cr.func.vjp(cr.exp, cr.zeros(2))
    >>> pull(cr.tensor([1., 3.]))
    (tensor([1., 3.]),)
    """
    since = next_seq()
    trees = [tree_map(_start, p) for p in primals]
    starts = [leaf for tree in trees for leaf in tree_leaves(tree)]
    with enable_grad():
        result = func(*trees)
    aux = None
    if has_aux:
        result, aux = result
    outputs = tree_leaves(result)

    def vjp_fn(*cotangents: Any, retain_graph: bool = True) -> Any:
        gs = tree_leaves(cotangents[0] if len(cotangents) == 1 else cotangents)
        if len(gs) != len(outputs):
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as of outputs: {len(outputs)} outputs, {len(gs)} cotangents"
            )
        for g, y in zip(gs, outputs, strict=True):
            if tuple(np.shape(g)) != tuple(y.shape):
                raise errors.gradient_shape(0, g if isinstance(g, Tensor) else wrap(np.asarray(g)), y)
        gs = [
            g if isinstance(g, (Tensor, ArrayLike)) else np.asarray(g, y.dtype)
            for g, y in zip(gs, outputs, strict=True)
        ]
        found = iter(_pull(outputs, gs, starts, since, True))
        return tuple(
            tree_map(lambda leaf, given: _zero_if_none(next(found), leaf, given), tree, primal)
            for tree, primal in zip(trees, primals, strict=True)
        )

    value = tree_map(lambda y: _value(y, primals, since), result)
    return (value, vjp_fn, tree_map(lambda a: _value(a, primals, since), aux)) if has_aux else (value, vjp_fn)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """``func(*primals)`` and its directional derivative along ``tangents``, in one forward pass.

    Returns:
        ``(output, output_tangent)``, or ``(output, output_tangent, aux)``.

    >>> import chainrule as cr
    >>> cr.func.jvp(cr.sin, (cr.zeros(2),), (cr.tensor([1., 2.]),))
    (tensor([0., 0.]), tensor([1., 2.]))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to be tuples, as in jvp(f, (x,), (t,))"
        )
    if len(primals) != len(tangents):
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected primals and tangents to have the same length: {len(primals)}, {len(tangents)}"
        )
    tensors = any(isinstance(leaf, Tensor) for leaf in tree_leaves([primals, tangents]))
    with _level(lambda x, level: Dual(x, None, level)) as level:

        def dual(x: Any, t: Any) -> Tensor:
            p, d = _bare(x), _bare(t)
            if tuple(np.shape(p)) != tuple(np.shape(d)):
                raise RuntimeError(
                    f"jvp: a tangent has shape {tuple(np.shape(d))}, its primal {tuple(np.shape(p))}: they must be equal"
                )
            return wrap(Dual(p, d, level))

        result = func(*[tree_map(dual, p, t) for p, t in zip(primals, tangents, strict=True)])
        aux = None
        if has_aux:
            result, aux = result

        def form(x: Any) -> Any:
            return x if isinstance(x, Tensor) or (not tensors and type(x) is ndarray) else wrap(x)

        def part(y: Any, tangent: bool) -> Any:
            data = y._data if isinstance(y, Tensor) else y
            if type(data) is Dual and data.level == level:
                if not tangent:
                    return form(data.primal)
                return form(np.zeros(data.shape, data.dtype) if data.tangent is None else data.tangent)
            return form(np.zeros(np.shape(y), y.dtype)) if tangent else y

        values = tree_map(lambda y: part(y, False), result)
        derivatives = tree_map(lambda y: part(y, True), result)
        if has_aux:
            return values, derivatives, tree_map(lambda a: part(a, False), aux)
    return values, derivatives


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that applies ``func`` to every entry along an axis of its arguments, all at once.

    Args:
        func: written for one example.
        in_dims: the axis to map over, for each argument: an int, None (the argument is shared), or nested like the arguments.
        out_dims: where the mapped axis goes in the outputs.

    >>> import chainrule as cr
    >>> cr.vmap(cr.dot)(cr.ones(3, 2), cr.ones(3, 2))
    tensor([2., 2., 2.])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        dims = _spread_dims(in_dims, args)
        sizes = {
            np.shape(x)[d]
            for x, d in zip(tree_leaves(list(args)), tree_leaves_with_none(dims), strict=True)
            if d is not None
        }
        if not sizes:
            raise ValueError("vmap: at least one argument must be mapped over (an in_dim that is not None)")
        if len(sizes) > 1:
            raise ValueError(
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                f"{sorted(sizes)} for the mapped dimension"
            )
        (size,) = sizes
        tensors = any(isinstance(x, Tensor) for x in tree_leaves(list(args)))
        flags = itertools.chain(tree_leaves_with_none(dims))
        with _level(lambda x, level: Batched(np.broadcast_to(x, (size, *np.shape(x))), level)) as level:

            def enter(x: Any) -> Any:
                d = next(flags)
                if d is None:
                    return x
                data = _bare(x)
                if d % max(len(np.shape(data)), 1):
                    data = np.moveaxis(data, d, 0)
                return wrap(Batched(data, level))

            inner = [tree_map(enter, a) for a in args]
            kw = {k: v for k, v in kwargs.items()}
            result = func(*inner, **kw)

            def leave(y: Any, d: int = 0) -> Any:
                if not _is_array(y):
                    raise ValueError(f"vmap: func must only return Tensors, got type {type(y).__name__}")
                data = y._data if isinstance(y, Tensor) else y
                if type(data) is Batched and data.level == level:
                    payload = data.payload
                else:
                    payload = np.broadcast_to(
                        y if isinstance(y, Tensor) and y._edge is not None else data, (size, *np.shape(y))
                    )
                if d:
                    payload = np.moveaxis(payload, 0, d)
                if isinstance(payload, Tensor) or (not tensors and type(payload) is ndarray):
                    return payload
                return wrap(payload)

            if isinstance(out_dims, int):
                return tree_map(lambda y: leave(y, out_dims), result)
            return type(result)(leave(y, d) for y, d in zip(result, out_dims, strict=True))

    return wrapper


def tree_leaves_with_none(dims: Any) -> list[Any]:
    if isinstance(dims, (tuple, list)):
        return [d for item in dims for d in tree_leaves_with_none(item)]
    if isinstance(dims, dict):
        return [d for item in dims.values() for d in tree_leaves_with_none(item)]
    return [dims]


def _spread_dims(in_dims: Any, args: tuple[Any, ...]) -> list[Any]:
    """in_dims in the structure of the arguments."""
    if isinstance(in_dims, int):
        in_dims = (in_dims,) * len(args)
    if not isinstance(in_dims, (tuple, list)) or len(in_dims) != len(args):
        raise ValueError(
            f"vmap: in_dims is not compatible with the structure of inputs: in_dims={in_dims} for {len(args)} arguments"
        )

    def spread(dim: Any, tree: Any) -> Any:
        if isinstance(tree, (tuple, list)):
            parts = dim if isinstance(dim, (tuple, list)) else [dim] * len(tree)
            return [spread(d, t) for d, t in zip(parts, tree, strict=True)]
        if isinstance(tree, dict):
            return {k: spread(dim[k] if isinstance(dim, dict) else dim, tree[k]) for k in tree}
        if isinstance(dim, int):
            n = len(np.shape(tree)) if _is_array(tree) else 0
            if not n:
                raise ValueError(
                    f"vmap: in_dim {dim} given for a number or 0-d tensor: use None for arguments that are shared"
                )
            if not -n <= dim < n:
                raise ValueError(f"vmap: in_dim {dim} is out of range for an argument of {n} dimensions")
            return dim
        return None

    return [spread(d, a) for d, a in zip(in_dims, args, strict=True)]
