"""Keys of arguments that are not arrays, for the signatures of compiled functions.

Immutable values have keys by type and value, other objects by identity. ``==`` is not used, since equal values may compute differently:
``1`` and ``1.0``, ``Decimal("1.0")`` and ``Decimal("1.000")``.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.tree import TreeSpec

#: functions that return a key of a value, by type
_PARTS: dict[type, Callable[[Any], Any]] = {
    float: repr,  # 0.0 == -0.0, nan != nan
    complex: repr,
    range: lambda x: (x.start, x.stop, x.step),
    slice: lambda x: tuple([key_of(part) for part in (x.start, x.stop, x.step)]),
    frozenset: lambda x: frozenset([key_of(item) for item in x]),
    tuple: lambda x: tuple([key_of(item) for item in x]),
    decimal.Decimal: lambda x: x.as_tuple(),
    fractions.Fraction: lambda x: (x.numerator, x.denominator),
    datetime.timedelta: repr,
    datetime.date: repr,
    datetime.datetime: repr,
}
_PLAIN = frozenset({int, bool, str, bytes, type(None)})


class Same:
    """A key by identity. It keeps the object alive, so that its id is not reused."""

    __slots__ = ("content",)

    def __init__(self, content: object) -> None:
        self.content = content

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and other.content is self.content

    def __hash__(self) -> int:
        return id(self.content)


def key_of(x: object) -> Any:
    """Return a key that is equal for two objects if they have the same type and value, or are identical.

    Raises:
        TypeError: the object has no hash, so it may change unnoticed.
    """
    kind = type(x)
    if kind in _PLAIN:
        return kind, x
    if isinstance(x, np.generic):
        return kind, x.dtype, x.tobytes()
    parts = _PARTS.get(kind)
    if parts is not None:
        return kind, parts(x)
    hash(x)
    return Same(x)


def keys_within(spec: TreeSpec) -> tuple[Any, ...]:
    """Return typed keys of the contexts of containers, such as dictionary keys, which ``==`` of structures compares without types."""
    found = [inner for child in spec.children if child.kind is not None and (inner := keys_within(child))]
    context = spec.context
    if context is None or (spec.kind is dict and all([type(name) is str for name in context])):
        return tuple(found)
    of_keys = spec.kind is dict or spec.kind is OrderedDict
    return (tuple([key_of(name) for name in context]) if of_keys else _typed(context), *found)


def _typed(context: Any) -> Any:
    """Return the types and values in the context of a container; None for parts that are not plain values."""
    kind = type(context)
    if kind is tuple or kind is list:
        return tuple([_typed(part) for part in context])
    return key_of(context) if kind in _PLAIN or kind in _PARTS or isinstance(context, np.generic) else None
