"""Vectorization: an array-like that hides the mapped axis of ``vmap``.

``Batched(payload, level)`` has the shape of one example; its payload has all examples along axis 0. ``_handle`` runs each
operation once, on the payload, by the primitive's batching rule. The payload can be an array, a tensor or another
array-like of a lower level.

If all examples share a value, it is ``shared``: its payload has no mapped axis. Operations on shared values run once,
without a batching rule. ``vmap`` makes the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import scalar_to_array
from chainrule._src.arrays.shapes import dtype_of, shape_of
from chainrule._src.arrays.types import AnyArray, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.dispatch import INTERPRETERS, bind, rank
from chainrule._src.tape.inplace import with_numbers
from chainrule._src.tape.levels import Level, is_level_closed
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL
from chainrule._src.tape.protocol import ArrayLike, array_ufunc, on_numbers, strides_of, strip_derivatives
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray


class Batched(ArrayLike):
    """An array-like with the payload's dtype, and its shape without the leading axis."""

    __slots__ = ("dtype", "level", "payload", "shape", "shared")
    wraps = True

    def __init__(self, payload: Any, level: int, shared: bool = False) -> None:
        self.payload = payload
        self.level = level
        self.shared = shared
        shape = payload.shape if type(payload) is ndarray else tuple(shape_of(payload))
        self.shape = shape if shared else shape[1:]
        self.dtype = payload.dtype if type(payload) is ndarray else dtype_of(payload)

    @classmethod
    def constant(cls, data: AnyArray, level: int) -> Batched:
        """Return a value that all examples share."""
        return cls(data, level, True)

    @property
    def inside(self) -> Any:
        return self.payload

    def with_inside(self, inside: Any) -> Batched:
        return Batched(inside, self.level, self.shared)

    @property
    def own_strides(self) -> tuple[int, ...]:
        steps = strides_of(self.payload)
        if self.shared:
            return steps
        example_step, size = abs(steps[0]), shape_of(self.payload)[0]
        return tuple(
            [step // size if size and 0 < example_step < abs(step) and not step % size else step for step in steps[1:]]
        )

    def on_numbers(self, function: Callable[[Any], object]) -> Batched:
        if is_level_closed(self):
            raise errors.escaped_tensor(self.level, getattr(function, "__name__", "a function"))
        return Batched(on_numbers(self.payload, function), self.level, self.shared)

    def detached(self) -> Batched:
        return Batched(strip_derivatives(self.payload), self.level, self.shared)

    @classmethod
    def with_numbers(cls, x: Any, numbers: Any, level: Any) -> Batched:
        old, new = (y if type(y) is cls and y.level == level else cls(y, level, True) for y in (x, numbers))
        if old.shared and new.shared:
            return cls(with_numbers(old.payload, new.payload), level, True)
        return cls(with_numbers(old.materialize(level.size), new.materialize(level.size)), level)

    def concrete(self) -> Any:
        data = self._shared_data()
        return data.concrete() if isinstance(data, ArrayLike) else data

    def read(self) -> Any:
        data = self._shared_data()
        return data.read() if isinstance(data, ArrayLike) else data

    @property
    def readable(self) -> bool:
        data = self._shared_data()
        return data.readable if isinstance(data, ArrayLike) else data is not None

    def _shared_data(self) -> Any:
        """Return the data that all examples share; None if each example has its own."""
        if not self.shared:
            return None
        return self.payload._raw if isinstance(self.payload, Tensor) else self.payload

    def materialize(self, size: int) -> Any:
        """Return the payload with the mapped axis, broadcast if all examples share it."""
        return np.broadcast_to(self.payload, (size, *self.shape)) if self.shared else self.payload

    def __repr__(self) -> str:
        return f"Batched(level {int(self.level)}, {self.payload!r})"

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, out: object = None, **kwargs: object
    ) -> Any:
        """Apply simple arithmetic directly to the payloads, as a fast path without the op table."""
        if out is None and not kwargs and method == "__call__" and ufunc in _DIRECT and len(inputs) == 2:
            x, y = inputs
            direct = _direct(ufunc, x, y)
            if direct is not None:
                return direct
        return array_ufunc(self, ufunc, method, *inputs, out=out, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        payload = self.payload
        if type(payload) is ndarray and not self.shared and _indexes_trailing_axes(index):
            return Batched(payload[index], self.level)
        return super().__getitem__(index)


def _indexes_trailing_axes(index: object) -> bool:
    """Return whether an index is an ellipsis followed by new axes, slices and integers, so that it keeps leading axes."""
    if type(index) is not tuple or not index or index[0] is not Ellipsis:
        return False
    return all(item is None or type(item) is slice or type(item) is int for item in index[1:])


_DIRECT = frozenset({np.add, np.subtract, np.multiply, np.true_divide})


def _direct(ufunc: np.ufunc, x: Any, y: Any) -> Any:
    """Return the result if one payload is an array and the other operand a number, an array or such a payload; else None."""
    a: Any
    b: Any
    if type(x) is Batched:
        if x.shared or type(x.payload) is not ndarray:
            return None
        level, a, n = x.level, x.payload, len(x.shape)
        if type(y) is ndarray:
            if y.ndim > n or y.dtype != a.dtype:
                return None
            b = y
        elif type(y) is Batched:
            b = y.payload
            if y.level != level or y.shared or type(b) is not ndarray or b.ndim != n + 1 or b.dtype != a.dtype:
                return None
        elif type(y) is float or type(y) is int:
            b = y
        else:
            return None
    elif type(x) is ndarray:
        if y.shared or type(y.payload) is not ndarray or x.ndim > len(y.shape) or x.dtype != y.dtype:
            return None
        level, a, b = y.level, x, y.payload
    elif type(x) is float or type(x) is int:
        if y.shared or type(y.payload) is not ndarray:
            return None
        level, a, b = y.level, x, y.payload
    else:
        return None
    if type(level) is Level and not level.alive:
        return None
    if ufunc is np.multiply and type(a) is ndarray and a.ndim == 3 and _are_outer_products(a, b):
        return Batched(np.einsum("bi,bj->bij", a[:, :, 0], b[:, 0]), level)
    return Batched(ufunc(a, b), level)


def _are_outer_products(a: AnyArray, b: TensorLike) -> bool:
    """Return whether a product consists of one large outer product for each example."""
    return (
        type(b) is ndarray
        and b.ndim == 3
        and a.shape[2] == b.shape[1] == 1
        and a.shape[0] == b.shape[0]
        and a.size * b.shape[2] > _LARGE
    )


_LARGE = 4096  # number of elements above which einsum is faster than a broadcast product


class _BatchedCall:
    """A primitive's batching rule in the form of a primitive, for watches."""

    __slots__ = ("batched", "prim", "size")
    kind = "batched"

    def __init__(self, prim: Primitive, batched: list[bool], size: int) -> None:
        self.prim = prim
        self.batched = batched
        self.size = size

    def __getattr__(self, name: str) -> Any:
        return getattr(self.prim, name)

    def value(self, *payloads: TensorLike, **params: object) -> Any:
        return self.prim.batch(self.prim, payloads, self.batched, self.size, params)


def _handle(prim: Primitive, operands: Any, params: Params, level: int) -> Any:
    """Apply a primitive to operands of which at least one is a Batched of ``level``."""
    payloads = []
    batched = []
    size = -1
    for x in operands:
        if type(x) is Batched and x.level == level:
            payloads.append(x.payload)
            if x.shared:
                batched.append(False)
            else:
                batched.append(True)
                if size < 0:
                    payload = x.payload
                    size = payload.shape[0] if type(payload) is ndarray else shape_of(payload)[0]
            own_level = x.level
        else:
            payloads.append(x)
            batched.append(False)
    if type(own_level) is Level and not own_level.alive:
        raise errors.escaped_tensor(own_level, prim.name)
    if size < 0:
        out = bind(prim, payloads, params)
    elif prim.kind == "function":
        out = params["call"].batch(payloads, batched, size, own_level)
    elif ACTIVE_MODES and LOCAL.watch is not None and not any(isinstance(p, (Tensor, ArrayLike)) for p in payloads):
        out = LOCAL.watch.forward(_BatchedCall(prim, batched, size), payloads, params)
    else:
        out = prim.batch(prim, payloads, batched, size, params)
    if type(out) is ndarray:
        return Batched(out, own_level, size < 0)
    if isinstance(out, tuple):
        return tuple(_batched(o, own_level, size < 0) for o in out)
    return _batched(out, own_level, size < 0)


def _batched(x: Any, level: Any, shared: bool) -> Batched:
    if type(x) is Batched and x.level == level:  # a custom Function decides which of its outputs are shared
        return x
    return Batched(scalar_to_array(x), level, shared)


INTERPRETERS[Batched] = _handle
__all__ = ["Batched", "rank"]
