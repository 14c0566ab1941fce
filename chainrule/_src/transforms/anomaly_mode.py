"""Anomaly mode: find the operation that computed the first NaN, in the forward pass, the backward pass and forward mode.

``chainrule.autograd`` exports the public functions.

Each array that contains a NaN or an infinity is registered with the operation that computed it (its *origin*). A result of such an
array inherits the origin. So an error names the cause of its own NaN, not that of another computation. The texts are in
``explaining/diagnosis/anomalies``.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.watch import Watch
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, Params, TensorLike
from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import like_value
from chainrule._src.interpreters.jac import JacStep
from chainrule._src.interpreters.primal import WithPrimal
from chainrule._src.messages import errors
from chainrule._src.messages.kinds import NanFound
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.node import Leaf, Node, Pending
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import entry_remover

_INFINITY = "the first infinite gradient"  # key in the notes of a sweep


class _Origins:
    """Maps arrays that are alive to the origin of their NaN (or infinity)."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[weakref.ref[NumpyArray], Any]] = {}

    def of(self, arrays: Sequence[object]) -> Any:
        """Return the origin of the first array that has one; None if none has."""
        for x in arrays:
            array, origin = self.entries.get(id(_raw(x)), _UNKNOWN)
            if origin is not None and array() is _raw(x):
                return origin
        return None

    def note(self, x: object, origin: object) -> None:
        """Register the origin of an array."""
        array, key = _raw(x), id(_raw(x))
        self.entries[key] = weakref.ref(array, entry_remover(self.entries, key)), origin


_UNKNOWN: Any = (None, None)


class _Anomaly(Watch):
    """The watch of a thread in anomaly mode.

    Attributes:
        check_nan: whether to check results; otherwise only the lines of the program are recorded.
        at_once: whether the first NaN in the forward pass raises immediately.
        nans, infinities: the origins of those in values, as text.
        tangent_nans, tangent_infinities: the origins of those in tangents, as text.
        parent: the node whose rule is running.
        latest: metadata for the node of the last operation: the origins and the masks of the NaN and the infinity in its result.
    """

    def __init__(self) -> None:
        self.check_nan = True
        self.at_once = False
        self.nans, self.infinities = _Origins(), _Origins()
        self.tangent_nans, self.tangent_infinities = _Origins(), _Origins()
        self.parent: Node | None = None
        self.latest: dict[str, tuple[str, Any]] = {}

    def forward(self, prim: Primitive, datas: tuple[TensorLike, ...] | list[TensorLike], params: Params) -> Any:
        out = super().forward(prim, datas, params)
        self.latest = {}
        if not self.check_nan or self.parent is not None:
            return out
        if isinstance(out, tuple):
            return tuple([self._looked_at(prim, datas, result) for result in out])
        return self._looked_at(prim, datas, out)

    def _looked_at(self, prim: Primitive, datas: tuple[TensorLike, ...] | list[TensorLike], result: Any) -> Any:
        """Register a result that is not finite, and return it; a NumPy scalar is converted to an array in that case."""
        if _where(_not_finite, result) is None:
            return result
        result = np.asarray(result) if isinstance(result, np.generic) else result
        operands = [x for x in map(_array, _flat(datas)) if x is not None]
        aligned = _keeps_places(prim, operands, result)
        infinite, new = _new(aligned, operands, result, np.isinf)
        infinity = self.infinities.of(operands)
        for x in operands if infinity is None else ():
            if _where(np.isinf, x) is not None:
                infinity = errors.infinite_operand(prim, x, _first(_where(np.isinf, x)), self._stack())
                break
        if infinite is not None:
            if infinity is None and new is not None:
                index = _first(new)
                values = _operands_at(prim, datas, result, index) if aligned else {}
                infinity = errors.infinite_value(prim, index, values, result, self._stack())
            if infinity is not None:
                self.infinities.note(result, infinity)
                self.latest.setdefault("inf_", (infinity, infinite))
        nan, new = _new(aligned, operands, result, np.isnan)
        if nan is None:
            return result
        origin = self.nans.of(operands)
        if new is not None and (origin is None or self.at_once):
            index = _first(new)
            values = _operands_at(prim, datas, result, index) if aligned else {}
            own = errors.first_nan(prim, index, values, self._stack(), infinity)
            if self.at_once:
                raise NanFound(f"Function '{prim.name}' returned nan values in the forward pass. {own}")
            origin = origin or own
        if origin is None:
            came_in = next(x for x in operands if _where(np.isnan, x) is not None)
            origin = errors.nan_operand(prim, came_in, _first(_where(np.isnan, came_in)), self._stack())
        self.nans.note(result, origin)
        self.latest.setdefault("nan_", (origin, nan))
        return result

    def _stack(self) -> Any:
        """Return the running lines; in a rule of the backward pass, the lines that recorded the operation."""
        known = None if self.parent is None else self.parent.metadata.get("traceback_")
        return errors.call_stack() if known is None else known

    def recorded(self, node: Node) -> None:
        super().recorded(node)
        node.metadata["traceback_"] = errors.call_stack()
        node.metadata.update(self.latest)
        self.latest = {}
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
        for i, (edge, grad) in enumerate(zip(edges, grads) if self.check_nan else ()):
            if edge is not None:
                self._look_at_gradient(node, i, grad, g, saved)
        return grads

    def _look_at_gradient(self, node: Node, i: int, grad: Any, g: Any, saved: tuple[object, ...]) -> None:
        """Raise if a rule returned NaN for an operand; record the first infinity."""
        notes, shape = LOCAL.sweep.notes, np.shape(_raw(grad))
        cotangents = g if type(g) in (tuple, list) else (g,)
        endless = any(_where(np.isinf, part) is not None for part in cotangents)
        nan = _where(np.isnan, grad)
        if nan is not None:
            index = _first(nan)
            incoming_nan = any(_where(np.isnan, part) is not None for part in cotangents)
            forward_message = _origin_at(node, "nan_", shape, index)
            infinity = notes.get(_INFINITY) if incoming_nan or endless else None
            if infinity is None and forward_message is None:
                infinity = self.infinities.of(_operands_of(node, saved))
            error = errors.nan_gradient(
                node,
                i,
                index,
                values=_saved_at(node, saved, shape, index),
                upstream=None if type(g) is tuple or not _is_aligned(node.prim) else _at(g, shape, index),
                incoming_nan=incoming_nan,
                forward_message=forward_message,
                infinity=infinity,
                overflow=_origin_at(node, "inf_", shape, index),
            )
            raise _warned(node, error)
        infinite = None if _INFINITY in notes or endless else _where(np.isinf, grad)
        if infinite is not None:
            index = _first(infinite)
            operand = self.infinities.of(_operands_of(node, saved))
            notes[_INFINITY] = errors.first_infinity(node, index, _saved_at(node, saved, shape, index), operand)

    def leaf_gradients(self, arrived: Pending) -> None:
        super().leaf_gradients(arrived)
        for edge, g in arrived.items() if self.check_nan else ():
            new = _where(np.isnan, g)
            if type(edge) is Leaf and new is not None:
                raise errors.nan_sum(edge, _first(new), LOCAL.sweep.notes.get(_INFINITY))

    def tangent(self, prim: Any, primals: list[AnyArray], tangents: list[AnyArray], out: Any, params: Params) -> Any:
        tangent = super().tangent(prim, primals, tangents, out, params)
        if tangent is None or not self.check_nan:
            return tangent
        several = isinstance(tangent, tuple)
        pairs = zip(tangent, out, strict=True) if several else [(tangent, out)]
        pairs = [(t if t is None else like_value(t, value), value) for t, value in pairs]
        for t, value in pairs:
            for test, origins in ((np.isinf, self.tangent_infinities), (np.isnan, self.tangent_nans)):
                new = _where(test, t)
                if new is not None:
                    index = _first(new)
                    origin = origins.of(_flat(tangents))
                    if origin is None:
                        at_index = [_operands_at(prim, xs, _raw(t), index) for xs in (primals, tangents)]
                        origin = self._first_tangent(test, prim, primals, tangents, value, index, at_index)
                    origins.note(t, origin)
        return tuple([t for t, _ in pairs]) if several else pairs[0][0]

    def _first_tangent(
        self,
        test: AnyFunction,
        prim: Any,
        primals: list[AnyArray],
        tangents: list[AnyArray],
        value: object,
        index: tuple[int, ...],
        at_index: list[dict[str, Any]],
    ) -> Any:
        """Return the message about the tangent that this operation made nan or infinite."""
        stack, (values, operand_tangents) = self._stack(), at_index
        if test is np.isinf:
            return errors.infinite_tangent(prim, index, values, stack)
        forward_message = self.nans.of([value]) or self.nans.of(_flat(primals))
        infinity = self.tangent_infinities.of(_flat(tangents)) or self.infinities.of([value, *_flat(primals)])
        incoming_nan = any(_where(np.isnan, x) is not None for x in _flat(tangents))
        return errors.nan_tangent(
            prim, index, values, operand_tangents, stack, forward_message, infinity, incoming_nan, self.parent
        )

    def result_tangent(self, tangent: object) -> None:
        super().result_tangent(tangent)
        nan = _where(np.isnan, tangent) if self.check_nan else None
        if nan is not None:
            raise NanFound(self.tangent_nans.of([tangent]) or errors.nan_result(_first(nan)))

    def jacobian_step(self, step: JacStep) -> None:
        super().jacobian_step(step)
        if self.parent is not None:
            step.code, step.lasti = self.parent.code, self.parent.lasti

    def jacobian_terms(self, step: JacStep, outs: list[list[Any]], origins: Any) -> None:
        super().jacobian_terms(step, outs, origins)
        for i, terms in enumerate(outs if self.check_nan else ()):
            for test, known in ((np.isinf, origins.infinities), (np.isnan, origins.nans)):
                if any(_where(test, term.vals) is not None for term in terms):
                    origin = next((known[place] for place in step.origins if place in known), None)
                    known[step, i] = origin or self._first_terms(test, step, i, origins.infinities)

    def _first_terms(self, test: AnyFunction, step: JacStep, output: int, infinities: dict[Any, str]) -> Any:
        """Return the message about the Jacobian entries that this step made nan or infinite."""
        if test is np.isinf:
            return errors.infinite_terms(step)
        infinity = next((infinities[place] for place in step.origins if place in infinities), None)
        values = [step.outs[output], *_flat(step.operands)]
        return errors.nan_terms(step, output, self.nans.of(values), infinity or self.infinities.of(values))


def _array(x: object) -> NumpyArray | None:
    """Return an operand as an array if its dtype has NaN; else None."""
    x = np.asarray(x) if isinstance(x, (float, complex)) else _raw(x)
    return x if type(x) is np.ndarray and x.dtype.kind in "fc" else None


def _keeps_places(prim: Any, operands: list[NumpyArray], result: Any) -> bool:
    """Return whether an element of the result depends only on the operands' elements at its index, after broadcasting."""
    if prim.kind != "batched":
        return bool(prim.kind == "elementwise")
    return prim.prim.kind == "elementwise" and all(x.ndim in (0, np.ndim(result)) for x in operands)


def _new(aligned: bool, operands: list[NumpyArray], result: object, test: AnyFunction) -> tuple[Any, Any]:
    """Return where a result passes a test, and where it does although its operands do not; None instead of empty masks."""
    found = _where(test, result)
    if found is None:
        return None, None
    new = found
    if aligned:
        for x in operands:
            new = new & ~test(x)
    elif any(_where(test, x) is not None for x in operands):
        return found, None
    return found, new if new.any() else None


def _origin_at(node: Node, key: str, shape: tuple[int, ...], index: tuple[int, ...]) -> str | None:
    """Return the origin of the NaN (or infinity) in a node's value at the index of an operand's gradient, if there is one."""
    origin, mask = node.metadata.get(key, _UNKNOWN)
    return origin if origin is not None and (mask.shape != shape or mask[index]) else None


def _operands_of(node: Node, saved: tuple[object, ...]) -> list[object]:
    """Return the operands among a node's saved values."""
    prim = node.prim
    return _flat([x for name, x in zip(getattr(prim, "saves", ()), saved) if name in prim.operands])


def _warned(node: object, error: Exception) -> Exception:
    """Warn with the lines that recorded the node, and return the error; if warnings raise, add the warning as a note."""
    try:
        errors.warn_detected(node)
    except Warning as warning:
        error.add_note(str(warning))
    return error


def _raw(x: object) -> Any:
    """Return the array in a tensor: the primal of a dual; under ``vmap`` with the leading batch axis."""
    while True:
        if isinstance(x, Tensor):
            x = x._raw
        elif isinstance(x, Batched):
            x = x.payload
        elif isinstance(x, WithPrimal):
            x = x.primal
        else:
            return x


def _flat(xs: Any) -> list[Any]:
    """Flatten the operands of a variadic operation, which may be in a tuple."""
    return [y for x in xs for y in (x if type(x) in (tuple, list) else (x,))]


def _where(test: AnyFunction, x: object) -> Any:
    """Return the mask of elements that pass a test; None if none does, or if x is not an array."""
    x = _raw(x)
    if isinstance(x, np.generic):
        x = np.asarray(x)
    if type(x) is not np.ndarray or x.dtype.kind not in "fc":
        return None
    found = test(x)
    return found if found.any() else None


def _not_finite(x: Any) -> Any:
    return ~np.isfinite(x)


def _first(mask: Any) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(mask.argmax()), mask.shape))


def _at(x: TensorLike | None, shape: tuple[int, ...], index: tuple[int, ...]) -> Any:
    """Return the element of x that broadcasts to the index of an array of this shape; None if x does not broadcast."""
    x = _raw(x)
    if isinstance(x, (int, float, complex)):
        return x
    if type(x) is not np.ndarray or x.ndim > len(shape):
        return None
    own = index[len(index) - x.ndim :]
    if any(n not in (1, m) for n, m in zip(x.shape, shape[len(shape) - x.ndim :])):
        return None
    return x[tuple(0 if n == 1 else i for i, n in zip(own, x.shape))].item()


def _is_aligned(prim: Any) -> bool:
    """Return whether elements of a gradient correspond to elements of the cotangent and of saved values by index."""
    return prim.kind in ("elementwise", "function")


def _saved_at(node: Node, saved: tuple[object, ...], shape: tuple[int, ...], index: tuple[int, ...]) -> dict[str, Any]:
    """Return the values that the rule of an elementwise node read at an index of a gradient, by name."""
    return _elements(node.prim.saves, saved, shape, index) if node.prim.kind == "elementwise" else {}


def _elements(names: Any, values: Any, shape: tuple[int, ...], index: Any) -> dict[str, Any]:
    """Return the elements of values at an index of a result, by name."""
    found = {name: _at(value, shape, index) for name, value in zip(names, values)}
    return {name: value for name, value in found.items() if value is not None}


def _operands_at(
    prim: Primitive, datas: Sequence[TensorLike] | tuple[AnyArray, ...], out: TensorLike, index: object
) -> dict[str, Any]:
    """Return the elements of an elementwise operation's operands at an index of its result, by name."""
    kind = getattr(prim, "prim", prim).kind
    return _elements(prim.operands, datas, np.shape(out), index) if kind == "elementwise" else {}


# -- the mode --------------------------------------------------------------------------------------------------------


def _watch() -> _Anomaly | None:
    """Return the watch of this thread's anomaly mode; None if the mode is off."""
    watch = LOCAL.watch
    while watch is not None and type(watch) is not _Anomaly:
        watch = watch.inner
    return watch


def _state() -> tuple[bool, bool, bool]:
    watch = _watch()
    return (False, True, False) if watch is None else (True, watch.check_nan, watch.at_once)


def _set(mode: bool, check_nan: bool, at_once: bool) -> None:
    watch = _watch()
    if mode:
        if watch is None:
            watch = _Anomaly()
            watch.__enter__()
        watch.check_nan, watch.at_once = check_nan, at_once
    elif watch is not None:
        watch.__exit__()


def is_anomaly_enabled() -> bool:
    """Return whether this thread is in anomaly mode.

    >>> import chainrule as cr
    >>> cr.autograd.anomaly_mode.is_anomaly_enabled()
    False
    """
    return _watch() is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode, in this thread, checks for NaN (and does not only record lines)."""
    return _state()[1]


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch this thread's anomaly mode on or off."""
    set_detect_anomaly(mode, check_nan)


class set_detect_anomaly:
    """Switch this thread's anomaly mode when called, and switch it back at the end of a ``with`` block.

    Args:
        mode: whether the mode is on.
        check_nan: check for NaN; without it, the mode only shows the lines of an operation whose rule raised.
        forward: also raise immediately when an operation of the forward pass computes the first NaN.
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
    """A context in which a backward pass, or forward mode, that computes a NaN raises and names the operation.

    Forward mode (``jvp``, ``jacfwd``, dual tensors) and structured Jacobians raise if a result contains NaN, and name the
    operation that computed it. A NaN that a mask drops before the result is not an error there.

    Every node records the lines that made it, so the forward pass must run in the context, too. If a rule itself raises, a
    warning shows the lines of its operation. The mode applies to the current thread.

    Args:
        check_nan: check gradients for NaN.
        forward: also raise immediately when an operation of the forward pass computes the first NaN. Without it, the error
            of the backward pass names that operation.

    Raises:
        RuntimeError: in the backward pass: "Function 'SqrtBackward0' returned nan values in its 0th output", with the
            index, the numbers there, the line of the forward pass, and advice. Forward mode raises a similar error for
            tangents.

    >>> import chainrule as cr, warnings
    >>> warnings.simplefilter("ignore")  # the mode warns that it is slow
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
