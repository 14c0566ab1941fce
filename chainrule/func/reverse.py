"""Reverse mode: grad and vjp, and what they share, the trace of one call of a function.

No level is entered. The function's arguments get a fresh start on the tape, and the sweep goes from its results to these
starts only; whatever else the function used is reached by other edges and is constant. See docs/architecture.md.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core import engine
from chainrule.core.array import Array, faced, unfaced
from chainrule.core.levels import STACK
from chainrule.core.modes import LOCAL, MODES, SPECIAL, recording, switch
from chainrule.core.node import Leaf, next_seq
from chainrule.core.protocol import ArrayLike
from chainrule.core.tensor import Tensor, wrap, wrapped
from chainrule.core.versions import protected
from chainrule.func.arguments import bare, chosen, data_of, dressed, has_tensor, is_array, outputs_of, own, with_aux
from chainrule.interpreters.dual import Dual
from chainrule.table.shape import alias
from chainrule.tree import leaf_paths, leaves_like, tree_flatten, tree_leaves, tree_map, tree_unflatten

ndarray = np.ndarray


def start(x: Any, linked: bool = True) -> Tensor:
    """A fresh place on the tape for an argument: connected to the argument (if ``linked``), if that is on the tape itself.

    Inside vmap or jvp it is a place of their level, also where the argument is from outside: results mix it with values
    of that level, and a tape of a lower level ends there.
    """
    data = data_of(x)
    given, x = x, unfaced(x)
    if data.dtype.kind not in "fc":
        raise errors.func_integer_argument(data)
    level = STACK.levels[-1] if STACK.levels else None
    if level is not None and getattr(data, "level", 0) < level:
        fresh = wrap(level.constant(bare(x)))
    elif linked and isinstance(x, Tensor) and x._edge is not None:
        fresh = alias(x)
        if given is not x:  # NumPy's face: what the function writes into its argument is its own
            fresh._view = None
        return fresh  # type: ignore[no-any-return]
    else:
        fresh = wrap(protected(data) if isinstance(x, ndarray) else data)
    fresh._edge = leaf = Leaf(fresh)
    leaf.seq = next_seq()
    return fresh


class Trace:
    """One call of a function, recorded: where its arguments start on the tape, and its results.

    The function is recorded also where nothing is (in ``no_grad`` and ``inference_mode``); what it returned depends on
    nothing outside, then, unless ``linked`` says that cotangents may be asked for later, where it can.

    Attributes:
        given: the leaves of the arguments it is differentiated by, as the caller gave them.
        specs: the structure of each of these arguments.
        starts: the tensors that the function got in their place.
        result, aux: what it returned.
    """

    __slots__ = ("api", "args", "aux", "edges", "given", "inputs", "result", "since", "specs", "starts")

    def __init__(
        self,
        api: str,
        func: Callable[..., Any],
        positions: Any,
        args: Any,
        kwargs: Any,
        has_aux: bool = False,
        linked: bool = False,
    ) -> None:
        self.api = api
        self.args = args
        self.since = next_seq()
        self.given: list[Any] = []
        self.starts: list[Tensor] = []
        self.specs: list[Any] = []
        if SPECIAL:
            outer, before = LOCAL.mode, LOCAL.traced
            try:
                LOCAL.traced = before or outer.inference
                linked = linked or recording()
                switch(MODES[True, False, outer.quiet])
                result = self.run(func, positions, kwargs, linked)
            finally:
                left, LOCAL.mode, LOCAL.traced = LOCAL.mode, outer, before
                if left.grad is not outer.grad:
                    SPECIAL.pop() if outer.grad else SPECIAL.append(None)
        else:
            result = self.run(func, positions, kwargs, True)
        self.aux = None
        if has_aux:
            result, self.aux = with_aux(result, api)
        if isinstance(result, (ndarray, np.generic)) and not has_tensor(self.given):
            result = wrapped(
                unfaced(result)
            )  # a plain array depends on no argument: NumPy's face refuses to leave the graph
        self.result = result

    def run(self, func: Callable[..., Any], positions: Any, kwargs: Any, linked: bool) -> Any:
        """Call the function on starts in the place of the arguments at ``positions``."""
        inner = list(self.args)
        for i in positions:
            leaves, spec = tree_flatten(inner[i])
            starts = [start(x, linked) for x in leaves]
            inner[i] = tree_unflatten([faced(begin, x) for begin, x in zip(starts, leaves, strict=True)], spec)
            self.given += leaves
            self.starts += starts
            self.specs.append(spec)
        self.edges = [x._edge for x in self.starts]
        try:
            return func(*inner, **kwargs)
        except TypeError as error:
            errors.noted(error)
            raise

    def set_starts(self, seq: int) -> None:
        """Give the starts that are leaves another number: what is numbered later does not take them for its own outside."""
        for edge in self.edges:
            if type(edge) is Leaf:
                edge.seq = seq

    def outside(self, order: list[Any], own: Any = ()) -> bool:
        """Whether a graph (oldest first) reaches something that was on the tape before the function was called."""
        ours = self.edges
        for edge in order:
            if edge.seq >= self.since:
                return False
            if type(edge) is Leaf and edge not in ours and edge not in own:
                return True
        return False

    def pull(
        self,
        outputs: list[Tensor],
        cotangents: list[Any],
        keep: bool,
        create_graph: bool | None = None,
        targets: list[Any] | None = None,
        own: Any = (),
    ) -> list[Any]:
        """The cotangents at the starts, None where none arrived.

        They are recorded if they can depend on anything else that is recorded, unless ``create_graph`` says.
        """
        targets = self.edges if targets is None else targets
        roots: list[Any] = []
        gs: list[Any] = []
        linked = False
        for y, g in zip(outputs, cotangents, strict=True):
            if y._edge is not None:
                roots.append(y._edge)
                gs.append(g)
                linked = linked or (isinstance(g, Tensor) and g._edge is not None)
        if not roots:
            return [None] * len(targets)
        order = engine.reachable(roots)
        if create_graph is None:
            create_graph = recording() and (linked or self.outside(order, own))
        for i, g in enumerate(gs):
            if isinstance(g, Tensor):
                if not create_graph:
                    gs[i] = g._raw
            elif create_graph and type(g) is ndarray:
                gs[i] = wrap(g)
        return engine.sweep(
            roots,
            gs,
            targets,
            retain_graph=keep or create_graph,
            create_graph=create_graph,
            accumulate=False,
            order=order,
        )

    def arranged(self, gradients: list[Any], single: bool) -> Any:
        """Gradients (one for each start) in the structure of the arguments."""
        taken: set[int] = set()
        formed = [_formed(g, x, given, taken) for g, x, given in zip(gradients, self.starts, self.given, strict=True)]
        if single:
            return tree_unflatten(formed, self.specs[0])
        trees = []
        at = 0
        for spec in self.specs:
            trees.append(tree_unflatten(formed[at : at + spec.num_leaves], spec))
            at += spec.num_leaves
        return tuple(trees)

    def value(self, result: Any) -> Any:
        """A result as the caller gets it: off the tape, unless it depends on something outside."""
        given = result
        result = unfaced(result)
        if not isinstance(result, Tensor):
            return result
        leaves = tree_leaves(self.args)
        tensors = not leaves or has_tensor(leaves)
        if result._edge is not None and recording() and self.outside(engine.reachable([result._edge])):
            return given if type(given) is Array else dressed(result, tensors)
        value = settled(result._raw)
        return dressed(value, tensors, {id(value)})  # which the tape may have saved, or the caller have given


def _formed(g: Any, begin: Tensor, given: Any, taken: set[int]) -> Any:
    """A gradient in the form its argument had, in memory of its own: ndarray for ndarray, tensor for tensor."""
    if g is None:
        g = np.zeros(begin._raw.shape, begin._raw.dtype)
    return dressed(settled(own(g, taken)), isinstance(given, Tensor))


def settled(x: Any) -> Any:
    """A value of ``jvp`` or of forward mode that has no tangent, as the value it is to everybody."""
    while type(x) is Dual and x.tangent is None:
        x = x.primal
    return x


def scalar_of(trace: Trace) -> Tensor:
    """The result of a function whose gradient is asked for: a 0-d tensor of a real dtype."""
    result = unfaced(trace.result)
    if not isinstance(result, Tensor):
        raise errors.func_result_type(trace.api, result)
    if result._raw.shape:
        raise errors.func_result_shape(trace.api, result)
    if result._raw.dtype.kind == "c":
        raise errors.implicit_not_real(result.dtype)
    return result


def _gradient(trace: Trace, argnums: Any) -> Any:
    y = scalar_of(trace)
    seed = np.ones((), y._raw.dtype)
    found = trace.pull([y], [seed], False)
    return trace.arranged(found, isinstance(argnums, int))


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """As :func:`grad`, returning ``(gradient, value)`` (``(gradient, (value, aux))`` with ``has_aux``).

    >>> import chainrule as cr
    >>> cr.func.grad_and_value(lambda x: (x ** 2).sum())(cr.tensor([1., 2.]))
    (tensor([2., 4.]), tensor(5.))
    """
    return _with_value("grad_and_value", func, argnums, has_aux)


def _with_value(api: str, func: Callable[..., Any], argnums: Any, has_aux: bool) -> Callable[..., Any]:
    errors.check_function(api, func)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        trace = Trace(f"{api}(f)(*args)", func, chosen(argnums, args), args, kwargs, has_aux)
        scalar_of(trace)
        value = trace.value(trace.result)
        gradient = _gradient(trace, argnums)
        if has_aux:
            return gradient, (value, tree_map(trace.value, trace.aux))
        return gradient, value

    return wrapper


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
    both = _with_value("value_and_grad", func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return value, gradient

    return wrapper


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that computes the gradient of ``func``, which must return a scalar.

    Args:
        func: from arrays or tensors (or nested containers of them) to a 0-d tensor.
        argnums: which arguments to differentiate with respect to; for a tuple the result is a tuple.
        has_aux: ``func`` returns ``(output, aux)``, and so does the result: ``(gradient, aux)``.

    Returns:
        A function of the same arguments. An array or a number gets an ndarray as its gradient (float64 stays float64), a
        tensor gets a tensor.

    Raises:
        RuntimeError: the function's result is not a 0-d tensor, an argument is not of floating point or complex
            dtype, or there is no such argument.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> cr.func.grad(lambda x: np.sum(np.sin(x)))(np.array([0., np.pi]))
    array([ 1., -1.])
    """
    errors.check_function("grad", func)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        trace = Trace("grad(f)(*args)", func, chosen(argnums, args), args, kwargs, has_aux)
        gradient = _gradient(trace, argnums)
        return (gradient, tree_map(trace.value, trace.aux)) if has_aux else gradient

    return wrapper


def differentiable_outputs(trace: Trace, api: str, call: str = "f(*primals)") -> tuple[list[Tensor], Any]:
    """The leaves of a trace's result and their structure: tensors of floating point or complex dtype."""
    outputs, spec = outputs_of(trace.result, api, call)
    for y in outputs:
        if y._raw.dtype.kind not in "fc":
            raise RuntimeError(
                f"{api}: All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {y.dtype}. "
                "Return it as (output, aux), with has_aux=True."
            )
    return outputs, spec


def cotangents_like(outputs: list[Tensor], spec: Any, cotangents: tuple[Any, ...]) -> list[Any]:
    """The leaves of the cotangents that were given, checked against the outputs."""
    tree = cotangents[0] if len(cotangents) == 1 else cotangents
    try:
        leaves = leaves_like(spec, tree, strict=True)
    except ValueError as error:
        raise RuntimeError(
            "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
            f"cotangents: {tree_flatten(tree)[1]}, primal output: {spec}: {error}"
        ) from None
    paths = leaf_paths(spec)
    leaves = [unfaced(g) for g in leaves]
    for i, (g, y) in enumerate(zip(leaves, outputs, strict=True)):
        if not is_array(g):
            if not isinstance(g, (int, float, complex)):
                raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}{_at(paths[i])}")
            g = np.asarray(g, y._raw.dtype)
        data = data_of(g)
        if tuple(data.shape) != tuple(y._raw.shape):
            raise errors.gradient_shape(i, wrapped(g), y)
        if data.dtype.kind == "c" and y._raw.dtype.kind != "c":
            raise RuntimeError(
                f"vjp: the cotangent{_at(paths[i])} is complex ({data.dtype}) and the output is real ({y.dtype}): pass its "
                "real part"
            )
        if data.dtype != y._raw.dtype:
            g = data = np.astype(g, y._raw.dtype)
        leaves[i] = g if isinstance(g, (Tensor, ArrayLike)) else data
    return leaves


def _at(path: str) -> str:
    return f" at {path}" if path else ""


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``func(*primals)`` and the function that pulls a cotangent of its output back to the primals.

    Args:
        func: from arrays or tensors (or nested containers of them) to the same.
        primals: the point.
        has_aux: ``func`` returns ``(output, aux)``; only ``output`` is differentiated.

    Returns:
        ``(output, vjp_fn)``, or ``(output, vjp_fn, aux)``. ``vjp_fn(cotangent)`` takes what has the structure and shapes
        of the output and returns a tuple with one gradient for each primal. It can be called any number of times
        (``retain_graph=False`` lets go of the graph).

    Raises:
        RuntimeError: the output holds something that has no derivative; the cotangent has another structure or shape.

    >>> import chainrule as cr
    >>> y, pull = cr.func.vjp(cr.exp, cr.zeros(2))
    >>> pull(cr.tensor([1., 3.]))
    (tensor([1., 3.]),)
    """
    errors.check_function("vjp", func)
    trace = Trace("vjp(f, *primals)", func, range(len(primals)), primals, {}, has_aux, linked=True)
    outputs, spec = differentiable_outputs(trace, "vjp(f, *primals)")
    trace.set_starts(sys.maxsize)  # the function has returned: nobody else can want a derivative by them

    def vjp_fn(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        gs = cotangents_like(outputs, spec, cotangents)
        try:
            trace.set_starts(trace.since)
            found = trace.pull(outputs, gs, retain_graph, create_graph)
        finally:
            trace.set_starts(sys.maxsize)
        used = {id(g) for g in gs}
        found = [g.copy() if type(g) is ndarray and id(g) in used else g for g in found]
        return trace.arranged(found, False)

    value = tree_unflatten([trace.value(y) for y in outputs], spec)
    if has_aux:
        return value, vjp_fn, tree_map(trace.value, trace.aux)
    return value, vjp_fn
