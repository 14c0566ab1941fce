"""Structured Jacobians: a value together with the origin of its Jacobian.

``Jac(primal, origin, level)`` passes through NumPy code like a ``Dual``, but its Jacobian is computed later. Each operation
computes its value and records a :class:`JacStep`. ``chainrule._src.jacobians`` walks the steps when all are recorded, and
propagates the terms of the Jacobian.
"""

from __future__ import annotations

import functools
import sys
from types import CodeType
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import scalar_to_array
from chainrule._src.arrays.shapes import dtype_of
from chainrule._src.arrays.types import AnyArray, Params
from chainrule._src.interpreters.primal import WithPrimal
from chainrule._src.messages import errors
from chainrule._src.messages.source_locations import note_frame
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.dispatch import INTERPRETERS, bind
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL
from chainrule._src.tape.node import next_seq
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import CLOCK, saveable_array, writes_of

ndarray = np.ndarray


class JacStep:
    """One operation on values that have a Jacobian.

    Attributes:
        prim, params: the primitive and its static parameters.
        operands: the values of the operands, without their Jacobians.
        origins: the origin of each operand's Jacobian; None for a constant.
        outs: the values of the results, as a tuple.
        seq: the sequence number; operands have origins with smaller ones.
        code, lasti: the source location in the user's program.
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
        if ACTIVE_MODES and LOCAL.watch is not None:
            LOCAL.watch.jacobian_step(self)

    def out(self) -> Any:
        """Return the result in the form that the primitive's rules get: a value, or a tuple for several outputs."""
        return self.outs if len(self.prim.outputs) > 1 else self.outs[0]

    def check_unwritten(self) -> None:
        """Raise if the memory of a constant operand has been written since.

        Raises:
            RuntimeError: the memory was written, so the values differ from the values that the step used.
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
    """Return the names of the operands whose values no derivative of the primitive reads."""
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
        origin: a variable of the Jacobian; or a pair (step, index of its output); or None for a constant.
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
    """Apply a primitive to operands of which at least one is a Jac of ``level``."""
    primals: list[Any] = []
    origins: list[Any] = []
    constants: list[int] = []
    depends = False
    arrays = not ACTIVE_MODES
    for x in operands:
        kind = type(x)
        if kind is Jac and x.level == level:
            own_level = x.level
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
    if type(own_level) is not int and not own_level.alive:
        raise errors.escaped_tensor(own_level, prim.name)
    has_jacobian = depends and prim.differentiable
    if has_jacobian:
        for i in constants:  # after computing ``out``: a copy may have other strides, and so would the result
            primals[i] = saveable_array(primals[i])
    if not isinstance(out, tuple):
        if type(out) is not ndarray:
            out = scalar_to_array(out)
        step = JacStep(prim, primals, origins, (out,), params) if has_jacobian and dtype_of(out).kind in "fc" else None
        return Jac(out, None if step is None else (step, 0), own_level)
    outs = tuple([x if type(x) is ndarray else scalar_to_array(x) for x in out])
    step = JacStep(prim, primals, origins, outs, params) if has_jacobian else None
    return tuple(
        [
            Jac(x, None if step is None or dtype_of(x).kind not in "fc" else (step, i), own_level)
            for i, x in enumerate(outs)
        ]
    )


INTERPRETERS[Jac] = _handle
