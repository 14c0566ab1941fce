"""``jacobian``, ``hessian`` and ``jacobian_plan``: check arguments, trace the function, choose a strategy and a layout."""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Real
from typing import Any, Never, TypeVar, overload

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.arrays.tree import tree_leaves, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, P, TensorLike
from chainrule._src.jacobians.checking import check as check_terms
from chainrule._src.jacobians.compute_terms import TermGrid, dense_jacobian, plan_of, terms_by_colours, terms_of
from chainrule._src.jacobians.layouts import SPARSE, blocks, check_dense, matrix
from chainrule._src.jacobians.operator import operators
from chainrule._src.jacobians.result import Jacobian
from chainrule._src.jacobians.strategy import STRATEGIES, Plan
from chainrule._src.jacobians.trace import JacobianTrace, Recipe
from chainrule._src.messages import errors
from chainrule._src.tape.modes import recording
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms import jacobian as dense
from chainrule._src.transforms.arguments import names_keywords
from chainrule._src.transforms.dense import MEMORY
from chainrule._src.transforms.grad import gradient_function
from chainrule._src.transforms.jacrev import hessian as hessian_function

T = TypeVar("T")

LAYOUTS = ("dense", "csr", "csc", "coo", "operator", "structured", "auto")


@overload
def jacobian(
    y: np.ufunc, x: None = None, *, layout: str = "dense", strategy: str | None = None, create_graph: bool | None = None,
    hstack: bool = False, mode: str = "auto", chunk_size: int | None = None, sparsity: object = None, check: bool = False,
    memory: int = MEMORY,
) -> AnyFunction: ...  # fmt: skip
@overload
def jacobian(
    y: Callable[[T], Any], x: None = None, *, layout: str = "dense", strategy: str | None = None, create_graph: bool | None = None,
    hstack: bool = False, mode: str = "auto", chunk_size: int | None = None, sparsity: object = None, check: bool = False,
    memory: int = MEMORY,
) -> Callable[[T], Any]: ...  # fmt: skip
@overload
def jacobian(
    y: object, x: object = None, *more: Never, layout: str = "dense", strategy: str | None = None, create_graph: bool | None = None,
    hstack: bool = False, mode: str = "auto", chunk_size: int | None = None, sparsity: object = None, check: bool = False,
    memory: int = MEMORY,
) -> Any: ...  # fmt: skip
@names_keywords
def jacobian(
    y: object,
    x: object = None,
    *more: Never,
    layout: str = "dense",
    strategy: str | None = None,
    create_graph: bool | None = None,
    hstack: bool = False,
    mode: str = "auto",
    chunk_size: int | None = None,
    sparsity: object = None,
    check: bool = False,
    memory: int = MEMORY,
) -> Any:
    """Compute the generalized Jacobian ∂y/∂x, of shape ``(*y.shape, *x.shape)``, of a function at a point or of computed tensors.

    Without ``x``, return the function of ``x`` that computes the Jacobian of ``y`` with these options.

    Args:
        y: a function; or a tensor, or a tree of tensors, computed from ``x``. The graph of these tensors is retained, and
            ``.grad`` is not written.
        x: the point, if ``y`` is a function: an array, a tensor, a number, or a tree of them. A tuple holds the arguments of a
            function of several. If ``y`` was computed: a tensor that requires grad, or a tree of them.
        layout: the type of the result. "dense": an array or tensor. "csr", "csc", "coo": a SciPy sparse array of shape
            (elements of y, elements of x), with the entries that the program can make nonzero. "structured": a
            :class:`Jacobian`, which stores its entries as terms and computes with them. "operator": products with vectors,
            computed on demand. "auto": "csr" if less than 30 % of the elements are entries, else "dense". Computed tensors
            have dense Jacobians only.
        strategy: "forward terms" or "reverse terms" (propagate the structure through the program), "jvps" or "vjps" (column by
            column, row by row). Default: the strategy with the lowest estimated cost.
        create_graph: record the result, so that it can be differentiated. Default: a dense Jacobian of a function is recorded
            if ``x``, or another value that the function uses, is on the tape.
        hstack: return one matrix for all outputs and all inputs, in the order of their leaves, as solvers expect.
        mode: with ``layout="dense"``: "forward" is column by column, "reverse" row by row, "auto" the smaller number of passes.
        chunk_size: number of rows or columns in one batched pass. Default: as many as fit into ``memory``.
        sparsity: the sparsity pattern of the matrix of one output and one input, if known: a sparse array, or an array, of
            shape (elements of y, elements of x). The entries are then computed by few products with vectors, without using the
            program's structure: for custom functions that are sparse but do not declare a structure.
        check: compare the result's products with a random vector, from both sides, with a JVP and a VJP.
        memory: most bytes that one pass may produce. The result itself is extra; a dense result may take 4 GiB, or 16 times
            this number.

    Returns:
        The Jacobian in the given layout: arrays if a function was given only arrays, else tensors. With several outputs or
        inputs: the outputs' tree, with the inputs' tree of Jacobians for each output. For complex ``x`` and ``y`` it is the
        complex derivative, which must exist; for complex ``x`` and real ``y`` the gradient of each element, as defined by
        ``backward``.

    Raises:
        RuntimeError: a computed ``y`` does not depend on a tensor that requires grad, or ``x`` does not require grad.
        TypeError: ``x`` or ``y`` has an integer dtype; several points are not in a tuple; a keyword is unknown.
        ValueError: an option has an unknown value, options cannot be combined, or a dense result is too large.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> cr.jacobian(lambda x: np.outer(x, x)[0], np.array([1., 2.]))
    array([[2., 0.],
           [2., 1.]])
    >>> b = cr.tensor([4., 5., 6.], requires_grad=True)
    >>> c = cr.tensor([1., 2., 3.]) * b
    >>> cr.jacobian(c, b)
    tensor([[1., 0., 0.],
            [0., 2., 0.],
            [0., 0., 3.]])
    >>> J = cr.jacobian(lambda x: np.diff(x) ** 2, np.array([1., 2., 4.]), layout="csr")
    >>> J.nnz, J.toarray()
    (4, array([[-2.,  2.,  0.],
           [ 0., -4.,  4.]]))
    """
    if more:
        raise errors.jacobian_several("jacobian", 1 + len(more))
    if x is None and callable(y) and not isinstance(y, Tensor):
        return functools.partial(
            jacobian, y, layout=layout, strategy=strategy, create_graph=create_graph, hstack=hstack, mode=mode,
            chunk_size=chunk_size, sparsity=sparsity, check=check, memory=memory,
        )  # fmt: skip
    check_layout("jacobian", layout, create_graph)
    check_strategy("jacobian", strategy)
    if not isinstance(memory, Real):
        raise errors.jacobian_memory(memory)
    if layout != "dense" and (mode != "auto" or chunk_size is not None):
        raise errors.jacobian_dense_only(layout)
    if not callable(y) or isinstance(y, Tensor):
        if layout != "dense" or strategy is not None or sparsity is not None or check:
            raise errors.jacobian_layout_needs_function(layout)
        return dense.jacobian(y, x, mode=mode, create_graph=create_graph, chunk_size=chunk_size, memory=memory)
    plain = sparsity is None and not check
    if layout == "dense" and strategy in (None, "vjps", "jvps") and not hstack and plain:
        if strategy is None and mode == "auto" and chunk_size is None and not create_graph:
            found = dense_jacobian(y, x, memory)
            if found is not None:
                return found
        mode = {"vjps": "reverse", "jvps": "forward"}.get(strategy or "", mode)
        return dense.jacobian(y, x, mode=mode, create_graph=create_graph, chunk_size=chunk_size, memory=memory)
    if layout == "operator":
        return operators(y, x, hstack, create_graph)
    if layout in SPARSE and create_graph is None:
        _check_unrecorded("jacobian", layout, x)
    trace = JacobianTrace(y, x, False if layout in SPARSE else create_graph)
    if layout == "dense":
        check_dense(trace.results, trace.variables, hstack, memory)
    if sparsity is not None:
        terms = terms_by_colours(trace, y, x, sparsity, memory)
    else:
        terms = terms_of(trace, y, x, api="jacobian", memory=memory, strategy=strategy, wants_dense=layout == "dense")
    if check:
        check_terms(trace, y, x, terms)
    return _with_recipes(_laid_out(trace, terms, layout, hstack, memory), trace, y, x, memory, "y")


def jacobian_plan(
    function: AnyFunction, x: object, *, layout: str = "dense", strategy: str | None = None, memory: int = MEMORY
) -> Plan:
    """Return the plan of ``jacobian(function, x, layout=..., strategy=...)`` and the costs of other strategies; print it.

    The function is called once to trace its steps; no derivative is computed.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> plan = cr.jacobian_plan(lambda x: np.diff(x) ** 2, np.ones(1000), layout="csr")
    >>> plan.strategy, plan.shape, plan.nnz
    ('forward terms', (999, 1000), 1998.0)
    """
    check_layout("jacobian_plan", layout, False)
    check_strategy("jacobian_plan", strategy)
    return plan_of(function, x, layout == "dense", strategy, memory)


def check_strategy(api: str, strategy: str | None) -> None:
    """Raise ValueError for an unknown strategy."""
    if strategy is not None and strategy not in STRATEGIES:
        raise ValueError(f"{api}(): strategy is one of {', '.join(map(repr, STRATEGIES))}, not {strategy!r}")


def check_layout(api: str, layout: str, create_graph: bool | None) -> None:
    """Raise ValueError for an unknown layout, or for a layout that cannot be recorded with ``create_graph``."""
    if layout not in LAYOUTS:
        raise errors.jacobian_layout(api, layout, LAYOUTS)
    if layout in SPARSE and create_graph:
        raise errors.jacobian_layout_create_graph(api, layout)


def _check_unrecorded(api: str, layout: str, x: TensorLike) -> None:
    """Raise inside a function that is being differentiated, which would treat SciPy's arrays as constants."""
    if recording() and any([type(leaf) is Array and leaf._tensor._edge is not None for leaf in tree_leaves(x)]):
        raise errors.jacobian_layout_create_graph(api, layout)


def _laid_out(
    trace: JacobianTrace, found: TermGrid, layout: str, hstack: bool, memory: int, symmetric: bool = False
) -> Any:
    """Return the Jacobians of a trace in a layout, in the outputs' tree of the inputs' trees; or all as one matrix."""
    made = (found, trace.results, trace.variables, layout, not trace.arrays, symmetric, memory)
    if hstack:
        return matrix(*made)
    return tree_unflatten([tree_unflatten(row, trace.inner) for row in blocks(*made)], trace.outer)


def _with_recipes(
    made: AnyArray, trace: JacobianTrace, function: AnyFunction, x: TensorLike, memory: int, name: str
) -> AnyArray:
    """Attach to structured Jacobians the recipe to compute them again, for ``explain``."""
    found = [J for J in tree_leaves(made) if isinstance(J, Jacobian)]
    width = len(trace.variables)
    if len(found) == width * len(trace.results):
        for k, J in enumerate(found):
            J.made_by = Recipe(function, x, k // width, k % width, trace.strategy, memory, name)
    return made


@overload
def hessian(
    func: np.ufunc, x: int | tuple[int, ...] = 0, *, argnums: int | tuple[int, ...] | None = None
) -> AnyFunction: ...
@overload
def hessian(
    func: Callable[P, Any], x: int | tuple[int, ...] = 0, *, argnums: int | tuple[int, ...] | None = None
) -> Callable[P, Any]: ...
@overload
def hessian(
    func: AnyFunction, x: Any, *more: Never, layout: str = "dense", strategy: str | None = None,
    create_graph: bool | None = None, hstack: bool = False, sparsity: object = None, check: bool = False, memory: int = MEMORY,
) -> Any: ...  # fmt: skip
@names_keywords
def hessian(
    func: AnyFunction,
    x: Any = 0,
    *more: Never,
    argnums: int | tuple[int, ...] | None = None,
    layout: str = "dense",
    strategy: str | None = None,
    create_graph: bool | None = None,
    hstack: bool = False,
    sparsity: object = None,
    check: bool = False,
    memory: int = MEMORY,
) -> Any:
    """Compute the Hessian of a scalar function at a point; without a point, return the function that computes it.

    Args:
        func: a function of arrays or tensors (or nested containers of them) that returns a scalar.
        x: the point, as for :func:`jacobian`. An int, or a tuple of ints, is ``argnums``.
        argnums: without a point: the arguments to differentiate with respect to.
        layout, strategy, create_graph, hstack, sparsity, check, memory: as for :func:`jacobian` of the gradient.

    Returns:
        With a point, for a function of one array the Hessian of shape ``(*x.shape, *x.shape)``, exactly symmetric; for a
        tree of arrays a tree of trees. Without a point, the function of the point; without options it is
        ``chainrule.func.hessian(func, argnums)``.

    Raises:
        RuntimeError: the function's result is not a scalar.
        ValueError, TypeError: as for :func:`jacobian`.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> cr.hessian(lambda x: (x ** 3).sum(), np.array([1., 2.]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    >>> cr.hessian(lambda x: (np.diff(x) ** 2).sum(), np.ones(1000), layout="csr").nnz
    2998
    """
    if more:
        raise errors.jacobian_several("hessian", 1 + len(more))
    if argnums is not None or _says_argnums(x):
        options = (layout, strategy, create_graph, hstack, check, memory)
        if sparsity is None and options == ("dense", None, None, False, False, MEMORY):
            return hessian_function(func, x if argnums is None else argnums)
        if argnums is not None or x != 0:
            raise errors.hessian_options()
        return functools.partial(
            hessian, func, layout=layout, strategy=strategy, create_graph=create_graph, hstack=hstack, sparsity=sparsity,
            check=check, memory=memory,
        )  # fmt: skip
    check_layout("hessian", layout, create_graph)
    check_strategy("hessian", strategy)
    several = type(x) is tuple
    gradient = gradient_function("hessian(f, x)", func, tuple(range(len(x))) if several else 0)
    if layout == "operator":
        return operators(gradient, x, hstack, create_graph)
    if layout in SPARSE and create_graph is None:
        _check_unrecorded("hessian", layout, x)
    trace = JacobianTrace(gradient, x, False if layout in SPARSE else create_graph, "hessian")
    if layout == "dense":
        check_dense(trace.results, trace.variables, hstack, memory)
    if sparsity is not None:
        found = terms_by_colours(trace, gradient, x, sparsity, memory)
    else:
        found = terms_of(
            trace, gradient, x, api="hessian", memory=memory, strategy=strategy, wants_dense=layout == "dense"
        )
    if check:
        check_terms(trace, gradient, x, found)
    made = _laid_out(trace, found, layout, hstack, memory, symmetric=True)
    return _with_recipes(made, trace, gradient, x, memory, "gradient")


def _says_argnums(x: object) -> bool:
    return type(x) is int or (type(x) is tuple and bool(x) and all([type(i) is int for i in x]))
