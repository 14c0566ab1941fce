"""Writes of a function to its arguments of PyTorch's face: they reach the tensors of the caller.

Inside a transformation an argument is a value that is never written; each write makes new ones. When the function has
returned, these go into the caller's memory, and the argument and its views are taken from there again, so that results
that are views of it share that memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.core import inplace
from chainrule.core.tensor import Tensor, hold, wrapped


class Handed:
    """An argument as a function got it.

    Args:
        api: what the user called.
        given: the caller's.
        inner: the tensor in its place.
        leave: what the caller's tensor holds, from the data of the one inside.
        enter: the data inside, from that of the caller's.
    """

    __slots__ = ("api", "data", "enter", "given", "inner", "leave")

    def __init__(
        self, api: str, given: Any, inner: Tensor, leave: Callable[[Any], Any], enter: Callable[[Any], Any]
    ) -> None:
        self.api = api
        self.given = given
        self.inner = inner
        self.data = inner._raw
        self.leave = leave
        self.enter = enter

    def write_back(self) -> None:
        """Give the caller's tensor what was written to the one inside.

        Raises:
            RuntimeError: it cannot be written to.
        """
        x, inner = self.given, self.inner
        if not isinstance(x, Tensor) or inner._raw is self.data:
            return
        value = wrapped(self.leave(inner._raw))
        if tuple(value._raw.shape) != tuple(x._raw.shape):  # it was given other data
            return
        inplace.check_writable(x, self.api)
        inplace.update(x, value, self.api)
        hold(inner, self.enter(inner._raw))
        inplace.refresh(inner)
