"""Decorators that define new operations from a value and its differentiation rules.

They are the decorators that chainrule's own operations use (see docs/author/writing_rules.md). They return a function of
arrays and tensors that supports reverse and forward mode, vmap, and derivatives of any order. ``function.row`` is its
primitive, and ``chainrule.testing.rulecheck(function)`` checks its rules.

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

The new operations are independent of chainrule's: they may reuse the name of an existing operation, and a notebook cell
that defines one can be run again. Explanations show their docstring and their rules: the source of a rule that is one
expression, or the text in ``formula``.

If the environment variable ``CHAINRULE_CHECK_ROWS`` is 1, an operation is checked when it is defined, if it is elementwise
without parameters or has ``samples``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src import config
from chainrule._src.api import functions as public_modules
from chainrule._src.api.array import takes_arrays
from chainrule._src.api.operands import operand
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.messages import errors
from chainrule._src.rules import kinds
from chainrule._src.rules.batching import each_example, leading_axes
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
        public = _function(kind(*args, listed=False, **options)(function), function)
        prim = public.row  # type: ignore[attr-defined]
        if ufunc is not None:
            UFUNCS[ufunc] = prim
        if config.CHECK_ROWS and (prim.samples or (prim.kind == "elementwise" and not prim.parameters)):
            rulecheck(prim)
        return public

    return declare


def _check_ufunc(function: AnyFunction, ufunc: object) -> None:
    if not isinstance(ufunc, np.ufunc):
        raise TypeError(f"primitive {function.__name__}: 'ufunc' must be a NumPy ufunc, not {type(ufunc).__name__}")
    existing = UFUNCS.get(ufunc)
    if existing is not None and getattr(existing, "listed", True):
        raise TableError(f"primitive {function.__name__}: chainrule already has a rule for {ufunc.__name__}")


def _function(prim: Primitive, function: AnyFunction) -> AnyFunction:
    """Return the public function of a primitive."""
    plain = (
        public_modules.public_function(prim) if prim.kind == "elementwise" else functools.partial(bind_checked, prim)
    )
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
    """Apply a primitive that is not elementwise to tensors, arrays and numbers."""
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
    """Define an elementwise operation: each output element depends on the same element of each (broadcast) operand.

    Args:
        d: the partial derivative for each differentiable operand: a rule, a number, or ``unsupported(why)``.
        formula: their VJPs as NumPy expressions, for explanations.
        ufunc: a NumPy or SciPy ufunc that this operation implements: its calls on tensors are recorded, too. It
            computes the value unless ``value`` is given.
        value: a function that computes the value, instead of the decorated function.
        vjp, jvp: rules that replace the derived ones.
        options: ``domain``, ``samples``, ``accepts``, ``promotion``, ``aliases``, ``naming``.

    Raises:
        TableError: a rule is missing, or reads an unknown name.

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
    """Define an operation that is linear in its differentiable operands by its transposed maps.

    Args:
        transpose: for each of them the map from output cotangent to operand cotangent.
        formula: the same maps as NumPy expressions, for explanations.
        batch: the batching rule, as for :func:`opaque`.

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
    """Define a product of two operands summed over subscripts, as in ``@contraction("ik,jk->ij")``; it needs no rules."""
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
    """Define an operation by explicit VJP and JVP rules (or ``unsupported(why)``).

    Args:
        vjp: for each differentiable operand the rule from the output's cotangent ``g`` to the operand's.
        jvp: for each operand the rule from its tangent ``t`` to the output's.
        formula: the VJPs as NumPy expressions, for explanations.
        batch: the batching rule of ``vmap``. By default the function is called for one example after the other. With
            ``batch=leading_axes`` it is called once: it must accept extra leading axes, like functions that count their
            axes from the end. Otherwise a rule ``(primitive, payloads, batched, size, params) -> payload``: the
            operands that are ``batched`` have the batch axis 0, and so must the result.

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
    """Define an operation with integer or boolean results, which passes no gradient.

    Args:
        batch: the batching rule, as for :func:`opaque`.
    """
    return _decorator(kinds.discrete, value=value, batch=batch, **options)


show(globals())
