"""Operations of your own: a value and its rules, and everything else is derived.

The decorators are those of the table (see docs/author/writing_rules.md). What they return is a function, for arrays as
for tensors, in reverse and forward mode, under vmap, and for derivatives of any order. Its row is ``function.row``, which
``chainrule.testing.rulecheck(function)`` checks.

>>> import math
>>> import numpy as np
>>> import chainrule as cr
>>> from chainrule.primitive import elementwise
>>> @elementwise(d={"x": lambda x: 1 / (1 + np.exp(-x))}, formula={"x": "g / (1 + np.exp(-x))"}, promotion="float", accepts="f")
... def softplus(x):
...     "log(1 + exp(x)), without overflow."
...     return np.logaddexp(x, 0)
>>> x = cr.tensor([0., 100.], requires_grad=True)
>>> y = softplus(x)
>>> y
tensor([  0.6931, 100.0000], grad_fn=<SoftplusBackward0>)
>>> cr.autograd.grad(y.sum(), x)
(tensor([0.5000, 1.0000]),)
>>> softplus(np.array([0.])) == math.log(2)
array([ True])
>>> cr.testing.rulecheck(softplus)

Rows of yours are apart from chainrule's: a name that an operation has already is no obstacle, and a cell of a notebook
can be run again. Explanations say what they do by their docstring, and show their rules: as they are, where they are one
expression, or as ``formula`` says.

With ``CHAINRULE_CHECK_ROWS=1`` in the environment a row is checked when it is declared, if ``rulecheck`` knows what to call
it with: elementwise rows without parameters, and rows with ``samples``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src import config
from chainrule._src.api import functions as faces
from chainrule._src.api.array import takes_arrays
from chainrule._src.api.operands import operand
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.messages import errors
from chainrule._src.rules import kinds
from chainrule._src.rules.batching import batch_leading as leading_axes
from chainrule._src.rules.batching import each_example
from chainrule._src.rules.primitive import Primitive, TableError, unsupported
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.protocol import UFUNCS, ArrayLike
from chainrule._src.tape.tensor import Tensor

if config.CHECK_ROWS:
    from chainrule.testing.rulecheck import rulecheck

__all__ = ["TableError", "contraction", "discrete", "elementwise", "leading_axes", "linear", "opaque", "unsupported"]

_KINDS = "fciub"


def _decorator(
    kind: AnyFunction, *args: object, ufunc: Any = None, **options: object
) -> Callable[[AnyFunction], AnyFunction]:
    def declare(function: AnyFunction) -> AnyFunction:
        if not inspect.isfunction(function):
            raise TypeError(f"{kind.__name__}() decorates a function that computes the value, not {function!r}")
        if ufunc is not None:
            _check_ufunc(function, ufunc)
        if ufunc is not None:
            options["ufunc"] = ufunc
        made = _function(kind(*args, listed=False, **options)(function), function)
        prim = made.row  # type: ignore[attr-defined]
        if ufunc is not None:
            UFUNCS[ufunc] = prim
        if config.CHECK_ROWS and (prim.samples or (prim.kind == "elementwise" and not prim.parameters)):
            rulecheck(prim)
        return made

    return declare


def _check_ufunc(function: AnyFunction, ufunc: object) -> None:
    if not isinstance(ufunc, np.ufunc):
        raise TypeError(f"row {function.__name__}: 'ufunc' must be a NumPy ufunc, not {type(ufunc).__name__}")
    taken = UFUNCS.get(ufunc)
    if taken is not None and getattr(taken, "listed", True):
        raise TableError(f"row {function.__name__}: {ufunc.__name__} has a rule in chainrule already")


def _function(prim: Primitive, function: AnyFunction) -> AnyFunction:
    """Return the user's function for a row."""
    plain = faces.public_function(prim) if prim.kind == "elementwise" else functools.partial(bind_checked, prim)
    signature = inspect.signature(function)
    defaults = function.__kwdefaults__ or {}

    @functools.wraps(function)
    def call(*operands: object, **params: object) -> Any:
        if params or defaults or (len(operands) != len(prim.operands) and not prim.variadic):
            bound = signature.bind(*operands, **params)
            bound.apply_defaults()
            operands, params = bound.args, bound.kwargs
        for x in operands:
            if isinstance(x, (Tensor, ArrayLike)):
                return plain(*operands, **params)
        for i, x in enumerate(operands):
            if (
                not isinstance(x, (int, float, complex, np.ndarray, np.generic))
                or np.asarray(x).dtype.kind not in _KINDS
            ):
                raise errors.wrong_operand(prim.name, i, x)
        return prim.value(*operands, **params)

    public = takes_arrays(call)
    public.row = prim  # type: ignore[attr-defined]
    return public


def bind_checked(prim: Primitive, *operands: object, **params: object) -> Any:
    """Return a row that is not elementwise, on tensors, arrays and numbers."""
    checked = [operand(prim.name, i, x) for i, x in enumerate(operands)]
    for x in checked:
        if hasattr(x, "dtype") and x.dtype.kind not in prim.accepts and prim.kind != "discrete":
            raise errors.no_kernel(prim.name, x.dtype, prim.accepts, prim.on_bools)
    return bind(prim, checked, params)


def elementwise(
    *,
    d: AnyFunction | dict[str, AnyFunction | int | unsupported] | None = None,
    formula: object = None,
    ufunc: AnyFunction | None = None,
    value: AnyFunction | None = None,
    vjp: object = None,
    jvp: object = None,
    **options: object,
) -> Callable[[AnyFunction], AnyFunction]:
    """Return a function whose output element depends on the same element of each operand (after broadcasting).

    Args:
        d: for each differentiable operand its partial derivative: a rule, a number, or ``unsupported(why)``.
        formula: for each of them its VJP in NumPy, as text, for explanations.
        ufunc: a NumPy or SciPy ufunc that this row answers for: calling it on tensors is recorded, too. It computes the
            value, unless ``value`` does.
        value: what computes the value, instead of the decorated function.
        vjp, jvp: rules that replace the derived ones.
        options: ``domain``, ``samples``, ``accepts``, ``promotion``, ``aliases``, ``naming``.

    Raises:
        TableError: a cell is missing, or a rule reads a name that does not exist.

    >>> import chainrule as cr
    >>> from chainrule.primitive import elementwise
    >>> @elementwise(d={"x": lambda x: 3 * x * x})
    ... def cube(x):
    ...     return x * x * x
    >>> cr.func.grad(cr.func.grad(cube))(cr.tensor(2.0))
    tensor(12.)
    """
    value = value or ufunc
    return _decorator(kinds.elementwise, d=d, formula=formula, value=value, vjp=vjp, jvp=jvp, ufunc=ufunc, **options)


def linear(
    *,
    transpose: dict[str, AnyFunction],
    formula: object = None,
    value: object = None,
    batch: AnyFunction = each_example,
    jvp: object = None,
    **options: object,
) -> Callable[[AnyFunction], AnyFunction]:
    """Return a function that is linear in its differentiable operands: give the transposed maps.

    Args:
        transpose: for each of them the map from output cotangent to operand cotangent.
        formula: the same in NumPy, as text, for explanations.
        batch: what ``vmap`` does, as for :func:`opaque`.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> from chainrule.primitive import leading_axes, linear
    >>> @linear(transpose={"x": lambda g: np.flip(g, -1)}, batch=leading_axes)
    ... def reverse(x):
    ...     return np.flip(x, -1)
    >>> cr.vmap(reverse)(np.array([[1., 2.], [3., 4.]]))
    array([[2., 1.],
           [4., 3.]])
    """
    return _decorator(
        kinds.linear, transpose=transpose, formula=formula, value=value, batch=batch, jvp=jvp, **options
    )  # fmt: skip


def contraction(subscripts: str, *, value: object = None, **options: object) -> Callable[[AnyFunction], AnyFunction]:
    """Return a product of two operands, summed over shared subscripts, as in ``@contraction("ik,jk->ij")``: no rule is needed."""
    return _decorator(kinds.contraction, subscripts, value=value, **options)


def opaque(
    *,
    vjp: AnyFunction | dict[str, AnyFunction],
    jvp: AnyFunction | dict[str, AnyFunction],
    formula: object = None,
    value: object = None,
    batch: AnyFunction = each_example,
    **options: object,
) -> Callable[[AnyFunction], AnyFunction]:
    """Return a function whose rules are written by hand: VJP and JVP (or ``unsupported(why)``).

    Args:
        vjp: for each differentiable operand the rule from the output's cotangent ``g`` to the operand's.
        jvp: for each the rule from its tangent ``t`` to the output's.
        formula: for each its VJP in NumPy, as text, for explanations.
        batch: what ``vmap`` does. By default the function is called for one example after the other;
            ``batch=leading_axes`` says that it accepts extra leading axes, as functions do that count their axes from
            the end, and is called once. Or a rule ``(row, payloads, batched, size, params) -> payload``: the operands
            that are ``batched`` have their examples along axis 0, and so has what it returns.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> from chainrule.primitive import opaque
    >>> @opaque(vjp={"x": lambda g, x: 2 * g * np.sum(x)}, jvp={"x": lambda t, x: 2 * np.sum(x) * np.sum(t)})
    ... def squared_sum(x):
    ...     return np.sum(x) ** 2
    >>> cr.vmap(squared_sum)(np.array([[1., 2.], [3., 4.]]))
    array([ 9., 49.])
    """
    return _decorator(kinds.opaque, vjp=vjp, jvp=jvp, formula=formula, value=value, batch=batch, **options)


def discrete(
    *, value: object = None, batch: AnyFunction = each_example, **options: object
) -> Callable[[AnyFunction], AnyFunction]:
    """Return a function whose results are integers or booleans, through which no gradient passes.

    Args:
        batch: what ``vmap`` does, as for :func:`opaque`.
    """
    return _decorator(kinds.discrete, value=value, batch=batch, **options)
