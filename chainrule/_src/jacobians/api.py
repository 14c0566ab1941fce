"""``jacobian``, ``hessian`` and ``jacobian_plan``: check arguments, trace the function, choose a strategy and a layout.

``chainrule`` exports these functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple, Never, TypeVar, overload

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.arrays.tree import tree_leaves, unflatten_rows
from chainrule._src.arrays.types import AnyArray, AnyFunction, P, TensorLike
from chainrule._src.jacobians.assemble import KnownPatterns
from chainrule._src.jacobians.checking import check_products
from chainrule._src.jacobians.compute_terms import MODES, dense_jacobian, plan_for, terms_by_colours, terms_of
from chainrule._src.jacobians.layouts import SPARSE, check_dense, lay_out_blocks, lay_out_matrix
from chainrule._src.jacobians.operator import jacobian_operators
from chainrule._src.jacobians.plan_cache import lookup_plan
from chainrule._src.jacobians.result import Jacobian
from chainrule._src.jacobians.strategy import FORWARD, JVPS, STRATEGIES, VJPS, Plan
from chainrule._src.jacobians.trace import JacobianCall, JacobianTrace
from chainrule._src.messages import errors
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.arguments import names_keywords
from chainrule._src.transforms.dense import MEMORY, Limits
from chainrule._src.transforms.grad import gradient_function
from chainrule._src.transforms.jacobian import jacobian_of_function, jacobian_of_tensors
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
        x: the point, if ``y`` is a function: an array, a tensor, a number, or a tree of them. A tuple holds several arguments
            of the function. If ``y`` was computed: a tensor that requires grad, or a tree of them.
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
        return _function_of_x(
            jacobian, y, layout=layout, strategy=strategy, create_graph=create_graph, hstack=hstack, mode=mode,
            chunk_size=chunk_size, sparsity=sparsity, check=check, memory=memory,
        )  # fmt: skip
    options = _Options(layout, strategy, create_graph, hstack, sparsity, check, memory)
    options.validate("jacobian")
    if not isinstance(memory, Real):
        raise errors.jacobian_memory(memory)
    if layout != "dense" and (mode != "auto" or chunk_size is not None):
        raise errors.jacobian_dense_only(layout)
    if mode not in ("auto", "forward", "reverse"):
        raise ValueError(f"jacobian(): mode is 'auto', 'forward' or 'reverse', not {mode!r}")
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(f"jacobian(): chunk_size must be a positive int, not {chunk_size!r}")
    limits = Limits(chunk_size, memory)
    if not callable(y) or isinstance(y, Tensor):
        if layout != "dense" or strategy is not None or sparsity is not None or check:
            raise errors.jacobian_layout_needs_function(layout)
        if mode == "forward":
            raise errors.jacobian_needs_function()
        return jacobian_of_tensors(y, x, bool(create_graph), limits)
    if layout == "dense" and strategy in (None, VJPS, JVPS) and not hstack and sparsity is None and not check:
        if strategy is None and mode == "auto" and chunk_size is None and not create_graph:
            found = dense_jacobian(y, x, memory)
            if found is not None:
                return found
        return jacobian_of_function(y, x, MODES.get(strategy, mode), create_graph, limits)
    return options.compute("jacobian", y, x)


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
    _Options(layout, strategy).validate("jacobian_plan")
    return plan_for(function, x, layout == "dense", strategy, memory)


class _Options(NamedTuple):
    """The options that ``jacobian`` and ``hessian`` share."""

    layout: str
    strategy: str | None
    create_graph: bool | None = False
    hstack: bool = False
    sparsity: object = None
    check: bool = False
    memory: int = MEMORY

    def validate(self, api: str) -> None:
        """Raise ValueError for an unknown layout or strategy, or for a layout that cannot be recorded."""
        layout, strategy = self.layout, self.strategy
        if layout not in LAYOUTS:
            raise errors.jacobian_choice(api, "layout", layout, LAYOUTS)
        if layout in SPARSE and self.create_graph:
            raise errors.jacobian_layout_create_graph(api, layout)
        if strategy is not None and strategy not in STRATEGIES:
            raise errors.jacobian_choice(api, "strategy", strategy, STRATEGIES)

    def compute(self, api: str, function: AnyFunction, x: Any) -> Any:
        """Trace ``function``, compute the terms of its Jacobian at ``x``, and return them in the layout.

        Args:
            api: "jacobian"; or "hessian" for a gradient, whose Jacobian is made exactly symmetric.
        """
        layout, strategy, create_graph, hstack, sparsity, check, memory = self
        if layout == "operator":
            return jacobian_operators(function, x, hstack, create_graph)
        if layout in SPARSE:
            if create_graph is None:
                _check_unrecorded(api, layout, x)
            create_graph = False
        trace = JacobianTrace(function, x, create_graph, api)
        dense = layout == "dense"
        if dense:
            check_dense(trace.results, trace.variables, hstack, memory)
        patterns: KnownPatterns | None = None
        if sparsity is not None:
            terms = terms_by_colours(trace, sparsity, memory)
        else:
            lookup = lookup_plan(trace, memory) if strategy in (None, FORWARD) else None
            planned = None if lookup is None else lookup.terms((api, strategy, dense))
            if lookup is None or planned is None:
                terms = terms_of(trace, api=api, memory=memory, strategy=strategy, wants_dense=dense)
            else:
                terms, patterns = planned, lookup.patterns
            if lookup is not None and planned is None:
                lookup.note_propagated(terms)
        if check:
            check_products(trace, terms)
        symmetric = api == "hessian"
        parts = terms, trace.results, trace.variables, layout, not trace.arrays, symmetric, memory, patterns
        if hstack:
            made = lay_out_matrix(*parts)
        else:
            made = unflatten_rows(lay_out_blocks(*parts), trace.inner, trace.outer)
        _attach_calls(made, trace, memory, "gradient" if symmetric else "y")
        return made


def _check_unrecorded(api: str, layout: str, x: TensorLike) -> None:
    """Raise inside a function that is being differentiated, which would treat SciPy's arrays as constants."""
    if is_recording() and any([type(leaf) is Array and leaf._tensor._edge is not None for leaf in tree_leaves(x)]):
        raise errors.jacobian_layout_create_graph(api, layout)


def _attach_calls(made: AnyArray, trace: JacobianTrace, memory: int, name: str) -> None:
    """Attach to structured Jacobians the call that computes them again, for ``explain``."""
    found = [J for J in tree_leaves(made) if isinstance(J, Jacobian)]
    width = len(trace.variables)
    if len(found) == width * len(trace.results):
        for k, J in enumerate(found):
            J.made_by = JacobianCall(trace.function, trace.x, k // width, k % width, trace.strategy, memory, name)


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
    func: Callable[[T], Any], *, layout: str = "dense", strategy: str | None = None, create_graph: bool | None = None,
    hstack: bool = False, sparsity: object = None, check: bool = False, memory: int = MEMORY,
) -> Callable[[T], Any]: ...  # fmt: skip
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
    if argnums is not None or _is_argnums(x):
        given = (layout, strategy, create_graph, hstack, check, memory)
        if sparsity is None and given == ("dense", None, None, False, False, MEMORY):
            return hessian_function(func, x if argnums is None else argnums)
        if argnums is not None or x != 0:
            raise errors.hessian_options()
        return _function_of_x(
            hessian, func, layout=layout, strategy=strategy, create_graph=create_graph, hstack=hstack, sparsity=sparsity,
            check=check, memory=memory,
        )  # fmt: skip
    options = _Options(layout, strategy, create_graph, hstack, sparsity, check, memory)
    options.validate("hessian")
    several = type(x) is tuple
    gradient = gradient_function("hessian(f, x)", func, tuple(range(len(x))) if several else 0)
    return options.compute("hessian", gradient, x)


def _function_of_x(api: AnyFunction, f: AnyFunction, **options: Any) -> Any:
    """Return ``jacobian`` or ``hessian`` as a function of x; messages call it ``hessian(f)``."""
    found = functools.partial(api, f, **options)
    found.__name__ = f"{api.__name__}({errors.function_name(f)})"  # type: ignore[attr-defined]
    return found


def _is_argnums(x: object) -> bool:
    return type(x) is int or (type(x) is tuple and bool(x) and all([type(i) is int for i in x]))
