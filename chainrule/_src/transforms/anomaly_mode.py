"""The search for the first NaN: in the forward pass, in the backward pass and in forward mode."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.watch import Watch
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params, TensorLike
from chainrule._src.interpreters.batched import Batched
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.node import Node
from chainrule._src.tape.tensor import Tensor

_INFINITY = "the first infinite gradient"  # a note of the sweep


class _Anomaly(Watch):
    """What watches a thread in the mode.

    Attributes:
        check_nan: whether results are looked at, or only the lines of the program remembered.
        at_once: whether a NaN born in the forward pass raises there.
        born: where the first NaN of the forward pass was born or came in, as text.
    """

    def __init__(self) -> None:
        self.check_nan = True
        self.at_once = False
        self.born: str | None = None
        self.parent: Node | None = None  # the node whose rule is running

    def forward(self, prim: Primitive, datas: tuple[TensorLike, ...] | list[TensorLike], params: Params) -> Any:
        out = super().forward(prim, datas, params)
        if self.check_nan and self.parent is None and (self.born is None or self.at_once):
            self._look(prim, datas, out)
        return out

    def _look(self, prim: Primitive, datas: tuple[TensorLike, ...] | list[TensorLike], out: TensorLike) -> None:
        operands = [x for x in _flat(datas) if type(x) is np.ndarray and x.dtype.kind in "fc"]
        for result in out if isinstance(out, tuple) else (out,):
            new = _where(np.isnan, result)
            if new is None:
                continue
            came_in = any(_where(np.isnan, x) is not None for x in operands)
            if prim.kind == "elementwise":
                for x in operands:
                    new = new & ~np.isnan(x)
                came_in = not new.any()
            if came_in:
                self.born = self.born or errors.nan_came_in(prim, errors.call_stack())
                continue
            index = _first(new)
            text = errors.nan_born(prim, index, _operands_at(prim, datas, result, index), errors.call_stack())
            self.born = self.born or text
            if self.at_once:
                raise RuntimeError(f"Function '{prim.name}' returned nan values in the forward pass. {text}")

    def recorded(self, node: Node) -> None:
        super().recorded(node)
        node.metadata["traceback_"] = errors.call_stack()
        if self.parent is not None:
            node.metadata["parent_"] = self.parent

    def backward(self, node: Node, g: Any, saved: tuple[object, ...], edges: tuple[object, ...]) -> tuple[Any, ...]:
        outer, self.parent = self.parent, node
        try:
            grads = super().backward(node, g, saved, edges)
        except Exception as error:
            _warned(node, error)
            raise
        finally:
            self.parent = outer
        notes = LOCAL.sweep.notes
        cotangents = g if type(g) in (tuple, list) else (g,)
        for i, (edge, grad) in enumerate(zip(edges, grads) if self.check_nan else ()):
            if edge is None:
                continue
            shape = np.shape(_raw(grad))
            new = _where(np.isnan, grad)
            if new is not None:
                index = _first(new)
                values = _elements(getattr(node.prim, "saves", ()), saved, shape, index)
                upstream = None if type(g) is tuple else _at(g, shape, index)
                arrived = any(_where(np.isnan, part) is not None for part in cotangents)
                infinity = notes.get(_INFINITY)
                raise _warned(node, errors.nan_gradient(node, i, index, values, upstream, arrived, self.born, infinity))
            infinite = None if _INFINITY in notes else _where(np.isinf, grad)
            if infinite is not None and all(_where(np.isinf, part) is None for part in cotangents):
                index = _first(infinite)
                values = _elements(getattr(node.prim, "saves", ()), saved, shape, index)
                notes[_INFINITY] = errors.infinity_born(node, index, values)
        return grads

    def tangent(self, prim: Any, primals: list[AnyArray], tangents: list[AnyArray], out: Any, params: Params) -> Any:
        tangent = super().tangent(prim, primals, tangents, out, params)
        several = isinstance(tangent, tuple)
        for t, value in zip(tangent if several else (tangent,), out if several else (out,)) if self.check_nan else ():
            new = _where(np.isnan, t)
            if new is None or any(_where(np.isnan, x) is not None for x in _flat([*primals, *tangents])):
                continue
            if _where(np.isnan, value) is not None and not self.at_once:
                continue  # the value is nan as well: that is where it was born
            index = _first(new)
            values, moved = (_operands_at(prim, xs, _raw(t), index) for xs in (primals, tangents))
            raise errors.nan_tangent(prim, index, values, moved, errors.call_stack(), self.born)
        return tangent


def _warned(node: object, error: Exception) -> Exception:
    """The error, once it was shown where the node's operation was called; where warnings are errors, as a note to it."""
    try:
        errors.warn_detected(node)
    except Warning as warning:
        error.add_note(str(warning))
    return error


def _raw(x: object) -> Any:
    """The array in a tensor; under ``vmap`` with the axis of the examples in front."""
    while isinstance(x, (Tensor, Batched)):
        x = x._raw if isinstance(x, Tensor) else x.payload
    return x


def _flat(xs: Any) -> list[Any]:
    """The operands, where those of an operation on any number may be together in a tuple."""
    return [y for x in xs for y in (x if type(x) in (tuple, list) else (x,))]


def _where(test: AnyFunction, x: object) -> Any:
    """Where the elements pass a test; None where none does, and for everything but arrays."""
    x = _raw(x)
    if isinstance(x, np.generic):
        x = np.asarray(x)
    if type(x) is not np.ndarray or x.dtype.kind not in "fc":
        return None
    found = test(x)
    return found if found.any() else None


def _first(mask: Any) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(mask.argmax()), mask.shape))


def _at(x: TensorLike | None, shape: tuple[int, ...], index: tuple[int, ...]) -> Any:
    """The element that belongs to the index of an array of this shape; None if there is no such thing."""
    x = _raw(x)
    if isinstance(x, (int, float, complex)):
        return x
    if type(x) is not np.ndarray or x.ndim > len(shape):
        return None
    own = index[len(index) - x.ndim :]
    if any(n not in (1, m) for n, m in zip(x.shape, shape[len(shape) - x.ndim :])):
        return None
    return x[tuple(0 if n == 1 else i for i, n in zip(own, x.shape))].item()


def _elements(names: Any, values: Any, shape: tuple[int, ...], index: Any) -> dict[str, Any]:
    """What a rule has read, by name, at an index of what it returned."""
    found = {name: _at(value, shape, index) for name, value in zip(names, values)}
    return {name: value for name, value in found.items() if value is not None}


def _operands_at(
    prim: Primitive, datas: Sequence[TensorLike] | tuple[AnyArray, ...], out: TensorLike, index: object
) -> dict[str, Any]:
    """The elements of an elementwise operation's operands that an element of its result is made of."""
    return _elements(prim.operands, datas, np.shape(out), index) if prim.kind == "elementwise" else {}


# -- the mode --------------------------------------------------------------------------------------------------------


class _Thread(threading.local):
    watch: _Anomaly | None = None


_THREAD = _Thread()


def _state() -> tuple[bool, bool, bool]:
    watch = _THREAD.watch
    return (False, True, False) if watch is None else (True, watch.check_nan, watch.at_once)


def _set(mode: bool, check_nan: bool, at_once: bool) -> None:
    watch = _THREAD.watch
    if mode:
        if watch is None:
            watch = _THREAD.watch = _Anomaly()
            watch.__enter__()
        watch.check_nan, watch.at_once = check_nan, at_once
    elif watch is not None:
        _THREAD.watch = None
        watch.__exit__()


def is_anomaly_enabled() -> bool:
    """Whether this thread is in anomaly mode.

    >>> import chainrule as cr
    >>> cr.autograd.anomaly_mode.is_anomaly_enabled()
    False
    """
    return _THREAD.watch is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, in this thread, looks for NaN (and not only remembers lines)."""
    return _state()[1]


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch this thread's anomaly mode on or off."""
    set_detect_anomaly(mode, check_nan)


class set_detect_anomaly:
    """Switch this thread's anomaly mode: at once when called, and back at the end when used with ``with``.

    Args:
        mode: whether it is on.
        check_nan: look for NaN; without it the mode only says where the operation was called whose rule raised.
        forward: raise also where a NaN is born in the forward pass, at once.
    """

    __module__ = "chainrule.autograd.anomaly_mode"

    def __init__(self, mode: bool, check_nan: bool = True, *, forward: bool = False) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_detect_anomaly(): argument 'mode' must be bool, not {type(mode).__name__}")
        self.previous = _state()
        _set(mode, bool(check_nan), bool(forward))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        _set(*self.previous)


class detect_anomaly(set_detect_anomaly):
    """In this context a backward pass that makes a NaN raises, and says where it came from.

    Every node then remembers the lines that made it, so the forward pass has to be in the context, too. If a rule raises an
    error of its own, a warning shows the lines of the operation that it belongs to. The mode is the thread's.

    Args:
        check_nan: look for NaN in gradients.
        forward: raise also where a NaN is born in the forward pass, at once. Without it the error of the backward pass
            says where that was.

    Raises:
        RuntimeError: in the backward pass: "Function 'SqrtBackward0' returned nan values in its 0th output", with the
            index, the numbers there, the line of the forward pass, and what helps; and likewise for a tangent in forward
            mode.

    >>> import chainrule as cr, warnings
    >>> warnings.simplefilter("ignore")  # it warns that it is slow
    >>> x = cr.tensor([4., 0.], requires_grad=True)
    >>> with cr.autograd.detect_anomaly():
    ...     y = cr.where(x > 0, cr.sqrt(x), 0)
    ...     y.sum().backward()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output...
    """

    __module__ = "chainrule.autograd.anomaly_mode"

    def __init__(self, check_nan: bool = True, *, forward: bool = False) -> None:
        self.previous = _state()
        self.check_nan = bool(check_nan)
        self.at_once = bool(forward)
        errors.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
        )

    def __enter__(self) -> None:
        _set(True, self.check_nan, self.at_once)
