"""Hooks for traces: operations call them where ``compile`` must record more than NumPy calls.

While ``compile`` traces a thread, each hook calls the method of the same name of the thread's recorder (``interpreters.recorder``,
``interpreters.captured_arrays``). Otherwise it does nothing, or returns what eager code needs. Operations therefore do not depend on the
recorder. Only code that differs in a trace tests ``is_tracing``. Hot functions call hooks only if ``ACTIVE_MODES`` is not empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL


def is_tracing() -> bool:
    """Return whether ``compile`` traces this thread."""
    return bool(ACTIVE_MODES) and LOCAL.recorder is not None


def current_recorder() -> Any:
    """Return the recorder of this thread, or None."""
    return LOCAL.recorder if ACTIVE_MODES else None


# -- tensors -----------------------------------------------------------------------------------------------------------


def lift(tensor: Any) -> None:
    """In a trace, replace the data of a tensor by a traced value, because an operation reads it."""
    if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None:
        recorder.lift(tensor)


def lift_all(operands: Sequence[Any]) -> Sequence[Any]:
    """Return the operands of an operation; in a trace, with traced values in place of data and plain arrays."""
    return recorder.lift_all(operands) if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None else operands


def wrap_new_data(tensor: Any, data: NumpyArray) -> Any:
    """Return the data of a tensor that is created from an array: the array, or in a trace a traced value."""
    return recorder.wrap_new_data(tensor, data) if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None else data


def note_new_data(tensor: Any, data: Any) -> Any:
    """Return the data to store in a tensor whose data are replaced, and note that the tensor holds them."""
    if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None:
        data = recorder.note_new_data(tensor, data)
        recorder.note_holder(tensor)
    return data


def note_holder(tensor: Any) -> None:
    """Note that a tensor got its data. Several tensors may hold the same memory."""
    if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None:
        recorder.note_holder(tensor)


def note_grad_read(tensor: Any) -> None:
    """Note that the program reads ``.grad`` of a tensor."""
    if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None:
        recorder.note_grad_read(tensor)


def rebind(tensor: Any, value: Any) -> None:
    """Note that ``tensor.data = value`` is about to run."""
    if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None:
        recorder.rebind(tensor, value)


# -- writes: in a trace, raise if the write cannot be recorded, or fails in eager code ---------------------------------


def check_writable(data: AnyArray) -> None:
    """Check a write into the data of a tensor."""
    if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None:
        recorder.check_writable(data)


def check_reshaped(tensor: Any) -> None:
    """Check an in-place operation that changes the shape of a tensor with views."""
    if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None:
        recorder.check_reshaped(tensor)


def check_unboxed(tensor: Any) -> None:
    """Check the use of an element of an object array."""
    if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None:
        recorder.check_unboxed(tensor)


# -- NumPy scalars and 0-d arrays, which an Array does not distinguish -------------------------------------------------


def eager_type(data: Any) -> type | None:
    """Return the type of a value in eager code (``float``, a NumPy scalar type or ``ndarray``); None if it is not traced."""
    return recorder.eager_type(data) if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None else None


def is_array(data: Any) -> bool:
    """Return whether a 0-d value of the trace is an array in eager code, not a NumPy scalar."""
    return bool(recorder.is_array(data)) if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None else False


def is_scalar(data: Any) -> bool:
    """Return whether a value of the trace is a NumPy scalar in eager code."""
    return bool(recorder.is_scalar(data)) if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None else False


def keep_array(data: Any) -> None:
    """Mark a 0-d value as an array."""
    if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None:
        recorder.keep_array(data)


def as_array(data: Any) -> Any:
    """Return a NumPy scalar or Python float of the trace as a 0-d array, and any other value unchanged."""
    return recorder.as_array(data) if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None else data


# -- random numbers ----------------------------------------------------------------------------------------------------


def register_generator(generator: Any) -> None:
    """Register a random number generator before its use. None is a generator that a trace cannot restore: raise in a trace."""
    if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None:
        recorder.register_generator(generator)


def record_draw(draw: AnyFunction, *args: object) -> Any:
    """Return ``draw(*args)``. A trace records the call, so each call of the compiled function draws new numbers."""
    return (
        recorder.record_draw(draw, *args) if ACTIVE_MODES and (recorder := LOCAL.recorder) is not None else draw(*args)
    )
