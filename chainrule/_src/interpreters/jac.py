"""Structured Jacobians: a value together with where its Jacobian comes from.

``Jac(primal, origin, level)`` is a Dual whose tangent is every direction at once, and not computed yet: each operation on it
computes its value and leaves a :class:`JacStep`. ``chainrule.jacobians`` walks the steps afterwards, when it is known what is
made of each value, and carries the Jacobian's terms along.
"""

from __future__ import annotations

import functools
import sys
from types import CodeType
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import unscalar
from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.arrays.types import AnyArray, Params
from chainrule._src.interpreters.primal import WithPrimal
from chainrule._src.messages import errors
from chainrule._src.messages.places import note_frame
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.dispatch import INTERPRETERS, bind
from chainrule._src.tape.modes import LOCAL, SPECIAL
from chainrule._src.tape.node import next_seq
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import CLOCK, protected, writes_of

ndarray = np.ndarray


class JacStep:
    """One operation on values that have a Jacobian.

    Attributes:
        prim, params: the row, and its static parameters.
        operands: the values it was given, without their Jacobians.
        origins: where each operand's Jacobian comes from; None for a constant.
        outs: the values it gave, as a tuple.
        seq: its time; a step's operands come from earlier ones.
        code, lasti: the place in the user's program.
    """

    __slots__ = ("code", "lasti", "operands", "origins", "outs", "params", "prim", "seq")

    code: CodeType | None
    lasti: int

    def __init__(
        self, prim: Primitive, operands: list[Any], origins: list[Any], outs: tuple[Any, ...], params: Params
    ) -> None:
        self.prim = prim
        self.params = params
        self.operands = operands
        self.origins = origins
        self.outs = outs
        self.seq = next_seq()
        note_frame(self, sys._getframe(2))
        if SPECIAL and LOCAL.watch is not None:
            LOCAL.watch.jacobian_step(self)

    def out(self) -> Any:
        """What the row's rules know as its result."""
        return self.outs if len(self.prim.outputs) > 1 else self.outs[0]

    def check_unwritten(self) -> None:
        """Raise if a constant operand's memory was written since: its values are not those that were used.

        Raises:
            RuntimeError: it was.
        """
        if self.seq > CLOCK.latest:
            return
        for name, x, origin in zip(self.prim.operands, self.operands, self.origins, strict=False):
            data = x._raw if isinstance(x, Tensor) else x
            if origin is None and type(data) is ndarray and name not in _unread(self.prim):
                writes = writes_of(data)
                if writes is not None and writes.since(self.seq):
                    raise errors.jacobian_constant_written(self.prim.name, name)


@functools.cache
def _unread(prim: Primitive) -> frozenset[str]:
    """The operands whose values no derivative of a row depends on."""
    if prim.kind == "linear":
        return frozenset(prim.vjps)
    if prim.kind == "elementwise":
        cells = prim.declared[2]
        rules = [rule for column in ("d", "vjp", "jvp") for rule in cells[column].values() if callable(rule)]
        return frozenset(prim.operands).difference(*[prim.names_read(rule) for rule in rules])
    return frozenset()


class Jac(WithPrimal):
    """An array-like of the primal's shape and dtype.

    Attributes:
        origin: a variable that Jacobians are taken with respect to; or a step, and which of its outputs; None for a constant.
    """

    __slots__ = ("origin",)

    def __init__(self, primal: AnyArray, origin: Any, level: int) -> None:
        super().__init__(primal, origin, level)
        self.origin = origin

    @property
    def change(self) -> Any:
        return self.origin

    def __repr__(self) -> str:
        return f"Jac(level {int(self.level)}, {self.primal!r})"


def _handle(prim: Primitive, operands: Any, params: Params, level: int) -> Any:
    primals: list[Any] = []
    origins: list[Any] = []
    constants: list[int] = []
    depends = False
    arrays = not SPECIAL
    for x in operands:
        kind = type(x)
        if kind is Jac and x.level == level:
            own = x.level
            origins.append(x.origin)
            depends = depends or x.origin is not None
            x = x.primal
            arrays = arrays and type(x) is ndarray
        else:
            origins.append(None)
            if kind is ndarray:
                constants.append(len(primals))
            elif kind is not float and kind is not int:
                arrays = False
        primals.append(x)
    out = prim.value(*primals, **params) if arrays else bind(prim, primals, params)
    if type(own) is not int and not own.alive:
        raise errors.escaped_tensor(own, prim.name)
    moves = depends and prim.differentiable
    if moves:
        for i in constants:  # not before: a copy may lie otherwise in memory, and so would the value
            primals[i] = protected(primals[i])
    if not isinstance(out, tuple):
        if type(out) is not ndarray:
            out = unscalar(out)
        step = JacStep(prim, primals, origins, (out,), params) if moves and dtype_of(out).kind in "fc" else None
        return Jac(out, None if step is None else (step, 0), own)
    outs = tuple([x if type(x) is ndarray else unscalar(x) for x in out])
    step = JacStep(prim, primals, origins, outs, params) if moves else None
    return tuple(
        [Jac(x, None if step is None or dtype_of(x).kind not in "fc" else (step, i), own) for i, x in enumerate(outs)]
    )


INTERPRETERS[Jac] = _handle
