"""HIPS autograd's versions of Python's ``isinstance``, ``type``, ``tuple``, ``list`` and ``dict``.

``isinstance`` and ``type`` use the value of an Array. Calling ``tuple``, ``list`` and ``dict`` creates Python's built-in
containers, which may contain Arrays.
"""

from __future__ import annotations

import builtins
from typing import Any

from chainrule._src.api.public_modules import show
from chainrule.compat.autograd.extend import notrace_primitive
from chainrule.compat.autograd.values import getval

__all__ = ["DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]


class _BuiltinContainer(builtins.type):
    def __instancecheck__(cls, x: object) -> bool:
        return builtins.isinstance(x, cls.__mro__[1])


class tuple(builtins.tuple[Any, ...], metaclass=_BuiltinContainer):
    def __new__(cls, xs: Any = ()) -> builtins.tuple[Any, ...]:  # type: ignore[misc]
        return builtins.tuple(xs)


class list(builtins.list[Any], metaclass=_BuiltinContainer):
    def __new__(cls, xs: Any = ()) -> builtins.list[Any]:  # type: ignore[misc]
        return builtins.list(xs)


class dict(builtins.dict[Any, Any], metaclass=_BuiltinContainer):
    def __new__(cls, *args: object, **kwargs: object) -> builtins.dict[Any, Any]:  # type: ignore[misc]
        return builtins.dict(*args, **kwargs)


class SequenceBox(builtins.tuple[Any, ...]):
    """The result of ``new_box`` for a tuple or list: Arrays, and the number of their trace."""

    _trace = -1


class DictBox(builtins.dict[Any, Any]):
    """A class that exists for programs that import its name: dicts of Arrays are plain dicts."""


def isinstance(x: object, classes: Any) -> bool:
    return builtins.isinstance(getval(x), classes)


type = notrace_primitive(builtins.type)

show(globals())
