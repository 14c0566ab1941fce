"""``explain``: make an explanation from tensors and gradients, or from a function and its arguments.

``chainrule`` exports it. The result is an ``Explanation``, ``Contributions`` or a ``JacobianExplanation``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chainrule._src.api.grad_mode import enable_grad
from chainrule._src.arrays.libraries import is_foreign
from chainrule._src.arrays.tree import leaf_paths, tree_flatten, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.explaining.calls import named_arguments
from chainrule._src.explaining.contributions import WAYS, Contributions
from chainrule._src.explaining.diagnosis.names import Names
from chainrule._src.explaining.explanation import Explanation
from chainrule._src.explaining.jacobian_explanation import JacobianExplanation
from chainrule._src.explaining.lessons import lessons_of
from chainrule._src.explaining.sweep import leaves_below, record_sweep
from chainrule._src.explaining.values import Values
from chainrule._src.explaining.watching import FunctionWatch
from chainrule._src.jacobians.result import Jacobian
from chainrule._src.messages import errors
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.node import Edge, Leaf, Node
from chainrule._src.tape.protocol import as_plain_array
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.backward import first_cotangent

ndarray = np.ndarray


def explain(Y: object, grad: object = None, wrt: object = None, *, by: str | None = None) -> Any:
    """Explain what ``Y.backward(grad)`` computes: every step's rule, shapes and numbers.

    It runs the rules of the backward pass and applies hooks, but writes no ``.grad``, frees no saved values and does not change
    the tensors.

    Args:
        Y: a tensor that requires grad, a sequence of such tensors, a function, or a structured Jacobian.
        grad: ∂L/∂Y, of Y's shape (any numbers; for several outputs a sequence). Default: ones, so that L = Y.sum().
        wrt: the tensors whose gradients are explained. Default: all leaves that require grad. For a function, names of its
            parameters are allowed.
        by: "term", "line" or "module": return only the parts of the gradients (see :meth:`Explanation.contributions`).

    Returns:
        An :class:`Explanation`, or with ``by`` its :class:`Contributions`. For a function, a function of the same arguments
        that returns one: floating-point arrays among the arguments become leaves named after the parameters. For a Jacobian, a
        :class:`JacobianExplanation`.

    Raises:
        RuntimeError: ``Y`` does not require grad; ``grad`` does not have Y's shape; the graph was freed; inside a
            transformation.
        ValueError: ``by`` is unknown.

    >>> import chainrule as cr
    >>> a = cr.tensor([1., 2., 3.], requires_grad=True, dtype=cr.float64)
    >>> y = a * a
    >>> e = cr.explain(y, grad=cr.ones(3))
    >>> e.steps[0].op, e.steps[0].arrows[0].jacobian_shape, e.steps[0].arrows[0].structure
    ('mul', (3, 3), 'diagonal')
    >>> e.gradients["a"]
    array([2., 4., 6.])
    >>> bool(e.check())
    True
    """
    if by is not None and by not in WAYS:
        raise errors.explained_by(by, WAYS)
    names = Names(errors.user_frame())
    if isinstance(Y, Jacobian):
        if grad is not None or wrt is not None or by is not None:
            raise errors.explained_jacobian_arguments()
        return JacobianExplanation(Y, names)
    if type(Y).__module__.startswith(("chainrule._src.jacobians.", "chainrule.jacobians", "scipy.sparse")):
        raise errors.explained_other(Y)
    if callable(Y) and not isinstance(Y, Tensor):
        return _of_function(Y, grad, wrt, names, by)
    tensors = tuple(Y) if isinstance(Y, (tuple, list)) else (Y,)
    explanation = explain_tensors(tensors, grad, wrt, names, {}, {})
    return explanation if by is None else explanation.contributions(by)


def explain_tensors(
    tensors: tuple[Tensor, ...],
    grad: object,
    wrt: Any,
    names: Names,
    called: dict[Edge, str],
    known: dict[Edge, AnyArray],
    wanted: Sequence[Tensor] = (),
    stacks: Mapping[Node, tuple[object, ...]] | None = None,
) -> Explanation:
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise errors.not_a_tensor("explain", "Y", tensor)
        if type(tensor._raw) is Foreign:
            raise errors.explain_foreign(tensor._raw)
        if type(tensor._raw) is not ndarray:
            raise errors.explain_inside()
        if tensor._edge is None:
            raise errors.no_grad_fn(i, tensor)
    if not tensors:
        raise errors.empty_inputs("explain")
    gradients = _gradients(grad, len(tensors))
    seeds = [
        np.ones(t._raw.shape, t._raw.dtype) if g is None else first_cotangent(i, t, g, False)
        for i, (t, g) in enumerate(zip(tensors, gradients))
    ]
    roots = [t._edge for t in tensors]
    for tensor in tensors:
        known.setdefault(tensor._edge, tensor._raw)
    if wrt is not None:
        wanted = tuple(wrt) if isinstance(wrt, (tuple, list)) else (wrt,)
        for i, tensor in enumerate(wanted):
            if not isinstance(tensor, Tensor):
                raise errors.not_a_tensor("explain", "wrt", tensor)
            if tensor._edge is None:
                raise errors.input_requires_no_grad(i, tensor)
    else:
        asked = {t._edge for t in wanted}
        wanted = (*wanted, *(leaf.variable for leaf in leaves_below(roots) if leaf not in asked))
    for tensor in wanted:
        known.setdefault(tensor._edge, tensor._raw)
    records, found = record_sweep(roots, seeds, [t._edge for t in wanted])
    values = Values(names, called, known, stacks or {})
    explanation = Explanation(tensors, seeds, wanted, values, records, found, grad is None)
    explanation.lessons = list(lessons_of(explanation, gradients))
    return explanation


def _gradients(grad: Any, count: int) -> list[Any]:
    """Return one gradient (or None) for each output; convert numbers and lists of numbers."""
    if grad is None:
        return [None] * count
    listed = isinstance(grad, (tuple, list))
    if count == 1 and not (listed and len(grad) == 1 and isinstance(grad[0], (Tensor, ndarray, np.generic))):
        return [_array(grad)]
    if not listed or len(grad) != count:
        raise errors.gradient_count(count, len(grad) if listed else 1)
    return [None if g is None else _array(g) for g in grad]


def _array(g: object) -> Any:
    if isinstance(g, (Tensor, ndarray)):
        return g
    try:
        array = np.asarray(g)
    except ValueError:  # nested lists of different lengths
        array = None
    if array is None or array.dtype.kind not in "biufc":
        raise errors.gradient_numbers(g)
    return array


def _of_function(
    function: AnyFunction, grad: object, wrt: object, names: Names, by: str | None
) -> Callable[..., Explanation | Contributions]:
    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Explanation | Contributions:
        called: dict[Any, str] = {}
        leaves: list[Tensor] = []
        given: dict[int, Tensor] = {}
        tree = []
        for name, argument in named_arguments(function, args, kwargs):
            flat, spec = tree_flatten(argument)
            inner = []
            for path, leaf in zip(leaf_paths(spec), flat):
                fresh = _leaf(leaf)
                if fresh is not None:
                    called[fresh._edge] = name + path
                    leaves.append(fresh)
                    given[id(leaf)] = fresh
                inner.append(leaf if fresh is None else fresh)
            tree.append(tree_unflatten(inner, spec))
        n = len(args)
        with enable_grad(), FunctionWatch() as watch:
            result = function(*tree[:n], **dict(zip(kwargs, tree[n:])))
        tensors = [t for t in tree_flatten(result)[0] if isinstance(t, Tensor)]
        if not tensors:
            raise errors.explained_result(function, result, bool(leaves))
        watch.name(called, tensors)
        asked = None if wrt is None else _asked(function, wrt, called, leaves, given)
        explanation = explain_tensors(
            tuple(tensors), grad, asked, names, called, dict(watch.known), leaves, watch.stacks
        )
        return explanation if by is None else explanation.contributions(by)

    return call


def _asked(
    function: object, wrt: object, called: dict[Any, str], leaves: list[Tensor], given: dict[int, Tensor]
) -> list[Any]:
    """Return the leaves of ``wrt``: given by a parameter's name, as an argument, or as a tensor that f uses from outside."""
    asked: list[Any] = []
    for one in wrt if isinstance(wrt, (tuple, list)) else (wrt,):
        if not isinstance(one, str):
            asked.append(given.get(id(one), one))
            continue
        found = [t for t in leaves if called[t._edge] == one or called[t._edge].startswith((one + ".", one + "["))]
        if not found:
            raise errors.explained_parameter(function, one, [called[t._edge] for t in leaves])
        asked += found
    return asked


def _leaf(x: object) -> Tensor | None:
    """Return a new leaf with a copy of a floating-point argument; None for other arguments."""
    data = x._raw if isinstance(x, Tensor) else x
    if isinstance(data, float):
        data = np.asarray(data)
    if type(data) is Foreign or is_foreign(type(data)):
        raise errors.explain_foreign(as_plain_array(data))
    if type(data) is not ndarray and isinstance(x, Tensor):
        raise errors.explain_inside()
    if type(data) is not ndarray or data.dtype.kind not in "fc":
        return None
    fresh = wrap(data.copy())
    fresh._edge = Leaf(fresh)
    return fresh
