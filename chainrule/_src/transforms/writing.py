"""Writes of a function to its arguments of PyTorch's face: they reach the tensors of the caller.

Inside a transformation an argument is a value that is never written; each write makes new ones. When the function has
returned, these go into the caller's memory, and the argument and its views are taken from there again, so that results
that are views of it share that memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule._src.arrays.types import AnyArray
from chainrule._src.tape import inplace
from chainrule._src.tape.tensor import Tensor, hold, wrapped


def write_back(api: str, given: AnyArray, inner: Tensor, value: AnyArray, enter: Callable[[Any], Any]) -> None:
    """Give the caller's tensor what was written to the one that the function got.

    Args:
        api: what the user called.
        given: the caller's argument.
        inner: the tensor in its place.
        value: what is in it now, as the caller has it.
        enter: what ``inner`` holds, from the caller's data.

    Raises:
        RuntimeError: the caller's tensor cannot be written to.
    """
    if not isinstance(given, Tensor):  # what a function writes into an array is its own
        return
    value = wrapped(value)
    if tuple(value._raw.shape) != tuple(given._raw.shape):  # it was given other data
        return
    inplace.check_writable(given, api)
    inplace.update(given, value, api)
    hold(inner, enter(given if given._edge is not None else given._raw))
    inplace.refresh(inner)
