"""Forward mode: call a function with tangents, or with a batch of tangents.

``jvp``, ``jacrev`` and ``dense`` make a ``JvpRun``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, TensorLike
from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.tape.levels import Level, open_level, restoring_levels
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.arguments import tensor_in, without_objects
from chainrule._src.transforms.writing import write_back


class JvpRun:
    """Call ``func(*duals)``, and extract primals and tangents from its results.

    Args:
        func: a function of one tensor for each primal.
        primals: arrays, or tensors that are on the tape.
        tangents: for each primal a tangent of its shape, or None. With ``size``, the tangents have a leading axis of
            this length; for a size of 1 no batch is used.
        api: the name of the function that the user called.
        randomness, lift_leaves: the arguments of ``open_level``.
    """

    __slots__ = ("batch", "level", "result", "size")

    batch: Level | None

    @restoring_levels
    def __init__(
        self,
        func: AnyFunction,
        primals: Sequence[TensorLike],
        tangents: Sequence[Any],
        api: str,
        size: int | None = None,
        randomness: str = "same",
        lift_leaves: bool = True,
    ) -> None:
        self.size = size
        self.batch = None
        if size is None:
            self._call(func, primals, tangents, api, lift_leaves)
            return
        with open_level(api, Batched, size, randomness, lift_leaves) as batch:
            self.batch = batch
            if size == 1:
                tangents = [None if t is None else t[0] for t in tangents]
            else:
                tangents = [None if t is None else Batched(t, batch) for t in tangents]
            self._call(func, primals, tangents, api, lift_leaves)

    def _call(
        self, func: AnyFunction, primals: Sequence[TensorLike], tangents: Sequence[object], api: str, lift_leaves: bool
    ) -> None:
        with open_level(api, Dual, None, "same", lift_leaves) as level:
            self.level = level
            primals = [p.as_variable() if isinstance(p, ArrayLike) else p for p in primals]
            self.result = without_objects(
                func(*[wrap(Dual(p, t, level)) for p, t in zip(primals, tangents, strict=True)])
            )

    def split(self, y: object) -> tuple[Any, Any]:
        """Return the primal and the tangent of a result; the tangent is None if it is known to be zero."""
        data, tangent = self._parts(y)
        if ACTIVE_MODES and LOCAL.watch is not None:
            LOCAL.watch.result_tangent(tangent)
        return data, tangent

    def _parts(self, y: object) -> tuple[Any, Any]:
        y = tensor_in(y)
        data = y._raw if isinstance(y, Tensor) else y
        if type(data) is Dual and data.level == self.level:
            return data.primal, data.tangent
        return y, None

    def tangents(self, y: Tensor) -> Any:
        """Return the tangents of a result along a leading axis, or None."""
        tangent = self.split(y)[1]
        if tangent is None or self.batch is None:
            return tangent
        return tangent[None] if self.size == 1 else exit_level(tangent, self.batch)

    def primal(self, y: object) -> Any:
        """Return the primal of a result, without the batch axis."""
        primal = self._parts(y)[0]
        data = primal._raw if isinstance(primal, Tensor) else primal
        if self.batch is not None and type(data) is Batched and data.level == self.batch:
            return data.payload if data.shared else data.payload[0]
        return primal


def write_back_duals(api: str, given: Sequence[TensorLike], duals: Sequence[Tensor], datas: Sequence[AnyArray]) -> None:
    """Call ``write_back`` for every argument that the function modified: its dual's data is no longer that in ``datas``."""
    for x, dual, before in zip(given, duals, datas, strict=True):
        data = dual._raw
        if data is before or not isinstance(x, Tensor):
            continue
        value = data.primal
        while type(value) is Batched and value.level > getattr(
            x._raw, "level", 0
        ):  # the level of the batch of tangents
            value = value.payload if value.shared else value.payload[0]

        def enter(primal: AnyArray, data: Any = data) -> Dual:
            return Dual(primal, data.tangent, data.level)

        write_back(api, x, dual, value, enter)


def exit_level(y: AnyArray, level: Level) -> Any:
    """Return the values of a result for all examples of a batch, with the batch axis first."""
    data = y._raw if isinstance(y, Tensor) else y
    if type(data) is Batched and data.level == level:
        if not data.shared:
            return data.payload
        data = data.payload
    elif isinstance(y, Tensor) and y._edge is not None:
        data = y
    repeated = np.broadcast_to(data, (level.size or 0, *shape_of(data)))
    return repeated.copy() if is_array(repeated) else repeated  # a copy, so that the caller can modify it
