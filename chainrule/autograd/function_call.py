"""One application of a custom Function inside transformations: what is computed, and how the user's methods see it.

A :class:`Call` goes down the levels of vmap and remembers which axes to hide again (``lifts``), so that backward and jvp,
too, see tensors as batched as forward saw them. Each rank makes its own ctx from its own inputs and outputs: with
``setup_context``, or from forward's ctx by exchanging the tensors in it.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from chainrule import errors
from chainrule.autograd.function_rule import _SETUP_CONTEXT, counted, fitted, run_backward, run_forward
from chainrule.core.levels import entered
from chainrule.core.modes import no_grad
from chainrule.core.protocol import ArrayLike
from chainrule.core.shapes import shape_of
from chainrule.core.tensor import Tensor, wrap, wrapped
from chainrule.interpreters.batched import Batched
from chainrule.interpreters.dual import Dual

ndarray = np.ndarray
new = object.__new__


class Lift(NamedTuple):
    """An axis that a Batched level hides: which operands have it, and how long it is."""

    level: Any
    batched: tuple[bool, ...]
    size: int
    former: tuple[Any, ...] = ()


@dataclass
class Outcome:
    """What an application gave at one rank: the outputs' data (other things as they are), and what ctx marked."""

    values: list[Any]
    several: bool
    ctx: Any = None  # forward's own, where forward ran
    inputs: tuple[Any, ...] = ()  # the arguments and the outputs as that ctx knows them
    outputs: tuple[Any, ...] = ()
    constant: frozenset[int] = field(default_factory=frozenset)  # outputs marked non-differentiable
    materialize: bool = True

    def again(self, values: list[Any]) -> Outcome:
        return Outcome(values, self.several, self.ctx, self.inputs, self.outputs, self.constant, self.materialize)

    def is_array(self, i: int) -> bool:
        return isinstance(self.values[i], (ndarray, ArrayLike, Tensor))


class Call:
    """One application of a Function: the class, its arguments, and the axes hidden on the way down."""

    def __init__(self, cls: Any, args: tuple[Any, ...], at: tuple[int, ...], lifts: tuple[Lift, ...] = ()) -> None:
        self.cls = cls
        self.args = args
        self.at = at
        self.lifts = lifts

    def below(self, lift: Lift) -> Call:
        return Call(self.cls, self.args, self.at, (lift, *self.lifts))

    # -- between a rank and what the user's methods see -----------------------------------------------------------

    def shown(self, datas: Any) -> tuple[Any, ...]:
        """All arguments as forward sees them: operands of this rank as tensors."""
        args = list(self.args)
        for n, (i, data) in enumerate(zip(self.at, datas, strict=True)):
            for lift in self.lifts:
                if lift.batched[n]:
                    data = Batched(data, lift.level)
            args[i] = wrapped(data)
        return tuple(args)

    def shown_output(self, data: Any) -> Any:
        """An output (or a cotangent or tangent of one) as the user's methods see it."""
        if data is None or not isinstance(data, (ndarray, np.generic, ArrayLike, Tensor)):
            return data
        for lift in self.lifts:
            data = Batched(data, lift.level)
        return wrapped(data)

    def taken(self, tensor: Tensor, operand: int | None = None) -> Any:
        """What a tensor of the user's methods is at this rank: an output, or the gradient of an operand."""
        if not self.lifts:
            return tensor
        data = tensor._raw
        for lift in reversed(self.lifts):
            mine = type(data) is Batched and data.level == lift.level
            if operand is None or lift.batched[operand]:
                data = data.spread(lift.size) if mine else np.broadcast_to(data, (lift.size, *shape_of(data)))
            elif mine:  # an operand that all examples share gets the sum of their gradients
                data = np.sum(data.spread(lift.size), axis=0)
            else:
                data = data * lift.size
        return data

    # -- the user's methods ---------------------------------------------------------------------------------------

    def forward(self, datas: Any) -> Outcome:
        """Run forward on data without history."""
        cls = self.cls
        args = self.shown(datas)
        ctx = new(cls._backward_cls)
        ctx.needs_input_grad = self.needs()
        old = cls.setup_context is _SETUP_CONTEXT
        try:
            output = run_forward(cls, ctx, args, old)
        except (RuntimeError, TypeError) as error:
            raise self.explained(error, "forward") from error
        outputs = output if isinstance(output, tuple) else (output,)
        values = [data_of(self.taken(o)) if isinstance(o, Tensor) else o for o in outputs]
        outcome = Outcome(values, isinstance(output, tuple), ctx, args, outputs)
        self.marks(outcome, ctx, outputs)
        return outcome

    def marks(self, outcome: Outcome, ctx: Any, outputs: tuple[Any, ...]) -> None:
        """Take over what the ctx says about the outputs."""
        outcome.materialize = ctx.materialize_grads
        outcome.constant = frozenset(
            i for i, o in enumerate(outputs) if any(o is t for t in ctx.non_differentiable)
        )  # fmt: skip

    def needs(self) -> tuple[bool, ...]:
        return tuple(isinstance(x, Tensor) and x.requires_grad for x in self.args)

    def explained(self, error: Exception, where: str) -> Exception:
        text = str(error)
        if "doesn't have storage" in text or "cannot become a plain array" in text:
            return errors.function_numpy_inside(self.cls.__name__, where)
        return error

    def anew(self, stack: ExitStack) -> Call:
        """The same call, with its hidden axes at levels of their own: backward may run when vmap has ended."""
        lifts = []
        for lift in self.lifts:
            old = lift.level
            fresh = stack.enter_context(entered(old.name, old.interpreter, size=old.size, randomness=old.randomness))
            lifts.append(Lift(fresh, lift.batched, lift.size, (*lift.former, old)))
        return Call(self.cls, self.args, self.at, tuple(lifts))

    def relevelled(self, data: Any) -> Any:
        """A value that forward computed, at the levels that its axes are hidden at now."""
        if isinstance(data, Tensor):
            return wrap(self.relevelled(data._raw))
        if type(data) is Batched:
            level = next((lift.level for lift in self.lifts if data.level in lift.former), data.level)
            return Batched(self.relevelled(data.payload), level, data.shared)
        return data

    def context(self, outcome: Outcome, datas: Any, values: Any) -> Any:
        """A ctx whose tensors are those of this rank."""
        cls = self.cls
        inputs = self.shown(datas)
        outputs = tuple(self.shown_output(v) for v in values)
        if cls.setup_context is not _SETUP_CONTEXT:
            ctx = new(cls._backward_cls)
            ctx.needs_input_grad = self.needs()
            with no_grad():
                cls.setup_context(ctx, inputs, outputs if outcome.several else outputs[0])
            return ctx
        if outcome.ctx is None:
            raise errors.function_needs_setup(cls.__name__)
        here = {id(o): t for o, t in zip(outcome.outputs, outputs, strict=True) if isinstance(o, Tensor)}
        here.update({id(x): t for x, t in zip(outcome.inputs, inputs, strict=True) if isinstance(x, Tensor)})

        def moved(value: Any) -> Any:
            if isinstance(value, Tensor):
                return here[id(value)] if id(value) in here else self.relevelled(value) if self.lifts else value
            if type(value) in (tuple, list):
                return type(value)(map(moved, value))
            return value

        ctx = new(cls._backward_cls)
        ctx.__dict__.update({name: moved(value) for name, value in outcome.ctx.__dict__.items()})
        return ctx

    def backward(self, ctx: Any, gs: tuple[Any, ...]) -> list[Any]:
        """The gradient for each argument (None where there is none), as the user's method sees it.

        Gradient mode stays as it is: without ``create_graph`` nothing here has an edge of this rank, but values below
        may be on tapes of their own.
        """
        ctx._now = ctx.to_save
        try:
            results = run_backward(ctx, gs, True)
        except (RuntimeError, TypeError) as error:
            raise self.explained(error, "backward") from error
        return list(counted(self.cls, results, self.at, len(self.args)))

    def fitted(self, results: list[Any], shown: tuple[Any, ...]) -> list[Any]:
        name = self.cls.__name__
        found = []
        for i in self.at:
            result, like = results[i], shown[i]._raw
            if result is not None:
                if not isinstance(result, Tensor):
                    raise errors.function_grad_type(name, i, result)
                if tuple(shape_of(result)) != tuple(like.shape) or result.dtype != like.dtype:
                    result = fitted(name, i, result, tuple(like.shape), like.dtype)
            found.append(result)
        return found


# -- values -----------------------------------------------------------------------------------------------------------


def data_of(x: Any) -> Any:
    return x._raw if isinstance(x, Tensor) else np.asarray(x) if isinstance(x, np.generic) else x


def bare(x: Any) -> Any:
    """A tensor's data where nothing is recorded by it, else the tensor."""
    return x._raw if isinstance(x, Tensor) and x._edge is None else x


def raw(x: Any) -> Any:
    """The array inside everything."""
    while not isinstance(x, ndarray):
        x = x._raw if isinstance(x, Tensor) else x.payload if isinstance(x, Batched) else x.primal
    return x


def filled(x: Any, fill: Any) -> Any:
    """An array-like built as another is, without history and tangents, whose numbers are ``fill(array)``."""
    if isinstance(x, Tensor):
        return filled(x._raw, fill)
    if isinstance(x, Batched):
        return Batched(filled(x.payload, fill), x.level, x.shared)
    if isinstance(x, Dual):
        return Dual(filled(x.primal, fill), None, x.level)
    return fill(np.asarray(x))


def zeros(x: Any) -> Any:
    return filled(x, np.zeros_like)


def probe(x: Any) -> Any:
    """A gradient to try backward with: no linear map of interest is zero on it by chance."""
    return filled(x, lambda a: np.cos(np.arange(1, a.size + 1)).reshape(a.shape).astype(a.dtype))
