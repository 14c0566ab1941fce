"""User-defined primitives and their rules (``primitive``, ``defvjp``, ``defjvp`` ...).

A call of a primitive records one node, a ``Function``. Its rules get Arrays while recording, and plain values otherwise.
Rules written with ``autograd.numpy`` are therefore differentiable themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, array_of, as_arrays, is_plain
from chainrule._src.api.grad_mode import is_grad_enabled
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.tree import TreeSpec, leaves_like, tree_flatten, tree_leaves, tree_map, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params, TensorLike
from chainrule._src.messages.source_locations import warn
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.function import Function
from chainrule.compat.autograd.kinds import TYPE_MAPPINGS
from chainrule.compat.autograd.runs import Run, current_run
from chainrule.compat.autograd.util import subval
from chainrule.compat.autograd.values import (
    conjugate,
    differentiable,
    getval,
    match_containers,
    stack_objects,
    zeros_like,
)
from chainrule.compat.autograd.vspaces import VSpace, vspace
from chainrule.compat.autograd.wrap_util import get_name, wraps

__all__ = [
    "Box",
    "SparseObject",
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "notrace_primitive",
    "primitive",
    "register_notrace",
    "vspace",
]

#: primitive -> rule(argnums, ans, args, kwargs), which returns a function of g: the gradients of these arguments
primitive_vjps: dict[object, AnyFunction] = {}
#: primitive -> rule(argnums, tangents, ans, args, kwargs), which returns the tangent of the result
primitive_jvps: dict[object, AnyFunction] = {}
_notrace: set[object] = set()


# -- the node ----------------------------------------------------------------------------------------------------------


class PrimitiveCall:
    """One call of a primitive: its arguments, the leaves that are operands, and the structure of the result."""

    spec: TreeSpec

    def __init__(self, wrapped: Any, args: tuple[object, ...], kwargs: Params) -> None:
        self.wrapped = wrapped
        self.args = tree_map(stack_objects, args)
        self.kwargs = kwargs
        self.argnums = tuple(i for i, x in enumerate(self.args) if _is_traced(x))

    def operands(self) -> list[Tensor]:
        return [x.tensor for x in tree_leaves(self.args) if type(x) is Array]

    def fill_arguments(self, values: Iterable[TensorLike]) -> tuple[Any, ...]:
        """Return the arguments with the Arrays replaced by values."""
        given = iter(values)
        return tree_map(lambda x: next(given) if type(x) is Array else x, self.args)

    def group_by_argument(self, leaves: Iterable[object]) -> list[TensorLike]:
        """Group leaves, one for each operand (None for zeros), to the structure of the arguments at ``argnums``."""
        given = iter(leaves)

        def one(x: Array) -> Any:
            found = next(given) if type(x) is Array else None
            return zeros_like(x) if found is None else found

        return [tree_map(one, self.args[i]) for i in self.argnums]

    def rule(self, rules: dict[Any, AnyFunction], kind: str) -> AnyFunction:
        if self.wrapped not in rules:
            raise NotImplementedError(
                f"{kind} of {get_name(self.wrapped)} wrt argnums {self.argnums} not defined: declare one with def{kind.lower()}()"
            )
        return rules[self.wrapped]


def _is_traced(x: object) -> bool:
    return any(type(leaf) is Array for leaf in tree_leaves(x))


def _rule_argument(tensor: Tensor, run: Run | None = None) -> TensorLike:
    """Convert a value for a rule: to an Array (outside of ``run``) while recording, else to a plain value."""
    if not is_grad_enabled():
        if type(tensor._raw) is np.ndarray:
            return tensor._raw[()]
        tensor = tensor.detach()
    array = array_of(tensor)
    return getval(array) if is_plain(array) else array if run is None else run.outside_of_run(array)


class Applied(Function):
    """The ``Function`` that records a call of a primitive."""

    @staticmethod
    def forward(call: PrimitiveCall, *operands: Tensor) -> tuple[Any, ...]:
        values = [getval(array_of(x)) for x in operands]
        leaves, call.spec = tree_flatten(call.wrapped.fun(*call.fill_arguments(values), **call.kwargs))
        return tuple(
            wrap(np.array(getval(y))) if hasattr(y, "dtype") or isinstance(y, float | complex) else y for y in leaves
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.call, *operands = inputs
        ctx.others = [None if isinstance(y, Tensor) else y for y in output]
        ctx.save_for_backward(*operands, *(y for y in output if isinstance(y, Tensor)))
        ctx.save_for_forward(*operands, *(y for y in output if isinstance(y, Tensor)))
        ctx.count = len(operands)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> tuple[Tensor | None, ...] | None:
        run = current_run()
        call, operands, _, args, ans = Applied._values(ctx, run)
        rule = call.rule(primitive_vjps, "VJP")
        g = tree_unflatten(
            [y if g is None else conjugate(_rule_argument(g, run)) for g, y in zip(gs, ctx.others)], call.spec
        )
        found: list[Any] = []
        for i, gradient in zip(call.argnums, rule(call.argnums, ans, args, call.kwargs)(g), strict=True):
            leaves, spec = tree_flatten(call.args[i])
            parts = leaves_like(spec, match_containers(spec, _dense(gradient)), strict=True)
            found += [part for x, part in zip(leaves, parts, strict=True) if type(x) is Array]
        return (None, *[_gradient(conjugate(part), x) for part, x in zip(found, operands, strict=True)])

    @staticmethod
    def jvp(ctx: object, *tangents: Any) -> Any:
        call, _, outputs, args, ans = Applied._values(ctx)
        rule = call.rule(primitive_jvps, "JVP")
        gs = call.group_by_argument(None if t is None else _rule_argument(t) for t in tangents[1:])
        tangent = match_containers(call.spec, _dense(rule(call.argnums, gs, ans, args, call.kwargs)))
        leaves = leaves_like(call.spec, tangent, strict=True)
        differentiable_outputs = [y.is_floating_point() or y.is_complex() for y in outputs]
        return tuple(
            [
                _gradient(t, y) if moves else None
                for t, y, moves in zip(leaves, outputs, differentiable_outputs, strict=True)
            ]
        )

    @staticmethod
    def _values(ctx: Any, run: Run | None = None) -> tuple[PrimitiveCall, Any, Any, tuple[Any, ...], Any]:
        """Return the call, its operands and results as tensors, and its arguments and result converted for rules."""
        saved = ctx.saved_tensors
        operands, outputs = saved[: ctx.count], saved[ctx.count :]
        results = iter([_rule_argument(y, run) for y in outputs])
        leaves = [next(results) if y is None else y for y in ctx.others]
        args = ctx.call.fill_arguments([_rule_argument(x, run) for x in operands])
        return ctx.call, operands, outputs, args, tree_unflatten(leaves, ctx.call.spec)


def _gradient(g: Any, like: Tensor) -> Tensor:
    """Convert a rule's result to a tensor; take the real part for a real operand."""
    g = np.real(g) if np.iscomplexobj(g) and not like.is_complex() else g
    return g.tensor if type(g) is Array else wrap(differentiable(g))


# -- primitives --------------------------------------------------------------------------------------------------------


def primitive(f_raw: AnyFunction) -> AnyFunction:
    """Make a function a primitive, which is called with plain values. ``defvjp`` and ``defjvp`` declare its rules."""

    @wraps(f_raw)
    def f_wrapped(*args: object, **kwargs: object) -> object:
        call = PrimitiveCall(f_wrapped, args, kwargs)
        if not call.argnums:
            return f_raw(*args, **kwargs)
        if f_wrapped in _notrace:
            return f_raw(*tree_map(getval, args), **kwargs)
        return tree_unflatten(as_arrays(Applied.apply(call, *call.operands())), call.spec)

    vars(f_wrapped).update(
        fun=f_raw,
        _is_autograd_primitive=True,
        **{name: partial(_deprecated_rule, f_wrapped, {}, name) for name in ("defvjp", "defgrad")},
        defvjp_is_zero=lambda argnums=(0,): defvjp(f_wrapped, *[None] * len(argnums), argnums=argnums),
    )
    return f_wrapped


def _deprecated_rule(
    f: AnyFunction, rules: dict[int, AnyFunction], name: str, maker: AnyFunction, argnum: int = 0
) -> None:
    """Declare a rule with the deprecated methods: defgrad(ans, *args) -> rule, and defvjp(g, ans, vs, gvs, *args)."""
    warnings.warn(f"The {name} method is deprecated: declare rules with autograd.extend.defvjp()", stacklevel=2)

    def vjpmaker(ans: object, *args: object, **kwargs: object) -> AnyFunction:
        return lambda g: maker(g, ans, vspace(args[argnum]), vspace(g), *args, **kwargs)

    rules[argnum] = maker if name == "defgrad" else vjpmaker
    defvjp(f, *rules.values(), argnums=list(rules))


def notrace_primitive(f_raw: AnyFunction) -> AnyFunction:
    """Return a function that is called with plain values and has no derivative."""

    @wraps(f_raw)
    def f_wrapped(*args: AnyArray, **kwargs: object) -> object:
        return f_raw(*tree_map(getval, args), **kwargs)

    return f_wrapped


def register_notrace(trace_type: object, primitive_fun: AnyFunction) -> None:
    """Declare that a primitive has no derivative."""
    if _has_rules(primitive_fun):
        raise TypeError(_BUILTIN_RULES.format("register_notrace()", get_name(primitive_fun)))
    _notrace.add(primitive_fun)


_BUILTIN_RULES = (
    "{0}: chainrule has its own rules for NumPy's and SciPy's functions, including {1}, which cannot be replaced. Declare "
    "your rule for primitive({1}), and call that"
)


def _has_rules(f: AnyFunction) -> bool:
    return isinstance(f, np.ufunc) or str(getattr(f, "__module__", "")).partition(".")[0] in ("numpy", "scipy")


def _declare(rules: dict[object, AnyFunction], f: Any, rule: AnyFunction) -> None:
    """Register a rule for a user's function. Rules for functions that are not primitives have no effect."""
    if _has_rules(f):
        warn(_BUILTIN_RULES.format("a rule is declared", get_name(f)))
    else:
        rules[f] = rule


# -- rules -------------------------------------------------------------------------------------------------------------


def defvjp_argnums(fun: AnyFunction, vjpmaker: AnyFunction) -> None:
    """Declare ``vjpmaker(argnums, ans, args, kwargs)``, which returns a function of g: the gradients of all arguments."""
    _declare(primitive_vjps, fun, vjpmaker)


def defvjp_argnum(fun: AnyFunction, vjpmaker: AnyFunction) -> None:
    """Declare ``vjpmaker(argnum, ans, args, kwargs)``, which returns a function of g: the gradient of one argument."""

    def maker(argnums: Iterable[int], *rest: object) -> AnyFunction:
        vjps = [vjpmaker(argnum, *rest) for argnum in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(fun, maker)


def defvjp(fun: AnyFunction, *vjpmakers: AnyFunction | None, argnums: Iterable[int] | None = None) -> None:
    """Declare for each argument ``vjpmaker(ans, *args)``, which returns a function of g: the gradient; None means zero."""
    table = dict(zip(count() if argnums is None else argnums, vjpmakers))

    def maker(argnum: int, ans: object, args: tuple[object, ...], kwargs: Params) -> AnyFunction:
        found = _rule(table, argnum, fun, "VJP")
        return (lambda g: zeros_like(args[argnum])) if found is None else found(ans, *args, **kwargs)

    defvjp_argnum(fun, maker)


def defjvp_argnums(fun: object, jvpmaker: AnyFunction) -> None:
    """Declare ``jvpmaker(argnums, tangents, ans, args, kwargs)``, which returns the tangent of the result."""
    _declare(primitive_jvps, fun, jvpmaker)


def defjvp_argnum(fun: object, jvpmaker: AnyFunction) -> None:
    """Declare ``jvpmaker(argnum, tangent, ans, args, kwargs)``: one argument's contribution to the result's tangent."""

    def maker(argnums: Iterable[int], gs: Iterable[TensorLike], *rest: object) -> object:
        first, *others = [_dense(jvpmaker(argnum, g, *rest)) for argnum, g in zip(argnums, gs)]
        for part in others:
            first = tree_map(np.add, first, part)
        return first

    defjvp_argnums(fun, maker)


def defjvp(fun: AnyFunction, *jvpfuns: AnyFunction | str | None, argnums: Iterable[int] | None = None) -> None:
    """Declare for each argument ``jvp(tangent, ans, *args)``; ``"same"`` for a linear argument, None for zero."""
    table = dict(zip(count() if argnums is None else argnums, jvpfuns))

    def maker(argnum: int, g: Any, ans: object, args: tuple[object, ...], kwargs: Params) -> object:
        found = _rule(table, argnum, fun, "JVP")
        if found == "same":
            return fun(*subval(args, argnum, g), **kwargs)
        return zeros_like(ans) if found is None else found(g, ans, *args, **kwargs)

    defjvp_argnum(fun, maker)


def def_linear(fun: Any) -> None:
    """Declare the JVP of a function that is linear in each argument."""
    defjvp_argnum(fun, lambda argnum, g, ans, args, kwargs: fun(*subval(args, argnum, g), **kwargs))


def _rule(table: dict[int, Any], argnum: int, fun: AnyFunction, kind: str) -> Any:
    if argnum not in table:
        raise NotImplementedError(f"{kind} of {get_name(fun)} wrt argnum {argnum} not defined")
    return table[argnum]


# -- results of rules --------------------------------------------------------------------------------------------------


class SparseObject:
    """A gradient that a rule represents by a function: ``mut_add(array)`` returns the array plus the gradient."""

    def __init__(self, vs: VSpace, mut_add: AnyFunction) -> None:
        self.vs = vs
        self.mut_add = mut_add


def _dense(x: object) -> Any:
    return x.mut_add(x.vs.zeros()) if isinstance(x, SparseObject) else x


class Box:
    """HIPS autograd's class of traced values. Here Arrays are traced; user-defined box classes are not supported.

    Attributes:
        type_mappings: array classes, and the functions that check whether their values are differentiable.
    """

    type_mappings = TYPE_MAPPINGS

    @classmethod
    def register(cls, value_type: type) -> None:
        Box.type_mappings[value_type] = cls


show(globals())
