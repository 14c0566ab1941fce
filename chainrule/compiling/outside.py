"""What a function can reach outside of itself and use without anybody noticing: NumPy's generators of random numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

ndarray = np.ndarray
_DEEPEST = 4


class Generators:
    """The random generators of NumPy's that a function may draw from, and their states when it was looked at.

    Their numbers are plain arrays, which would be recorded as constants.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._states: list[tuple[Any, Any]] = []
        if "numpy.random" in sys.modules:
            sources = [*_reachable(function, set(), 0), np.random.get_bit_generator()]  # type: ignore[attr-defined]
            self._states = [(source, source.state) for source in sources]

    def changed(self) -> bool:
        """Whether one of them was drawn from since."""
        return any(not _same(source.state, state) for source, state in self._states)

    def rewind(self) -> None:
        for source, state in self._states:
            source.state = state


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, dict):
        return all(_same(x[key], y[key]) for key in x)
    return bool(np.array_equal(x, y)) if isinstance(x, ndarray) else bool(x == y)


def _reachable(x: Any, seen: set[int], depth: int) -> Iterator[Any]:
    """The bit generators among what a function closes over, its globals and defaults, and the attributes of these."""
    if id(x) in seen or depth > _DEEPEST:
        return
    seen.add(id(x))
    if isinstance(x, (np.random.Generator, np.random.RandomState)):
        yield x.bit_generator if isinstance(x, np.random.Generator) else x._bit_generator
        return
    for part in _parts(x):
        yield from _reachable(part, seen, depth + 1)


def _parts(x: Any) -> list[Any]:
    """What something refers to, as far as a function may use it."""
    kind = type(x)
    if kind is FunctionType:
        cells = [_content(cell) for cell in x.__closure__ or ()]
        names = _names(x.__code__)
        used = [x.__globals__[name] for name in names if name in x.__globals__]
        return [
            *cells,
            *(x.__defaults__ or ()),
            *(x.__kwdefaults__ or {}).values(),
            *used,
            getattr(x, "__wrapped__", None),
        ]
    if kind is MethodType:
        return [x.__func__, x.__self__]
    if kind in (list, tuple) and len(x) <= 64:
        return list(x)
    if kind is dict and len(x) <= 64:
        return list(x.values())
    if isinstance(x, (ModuleType, type, ndarray)) or type(x).__module__.startswith(("numpy", "chainrule", "builtins")):
        return []
    return list(getattr(x, "__dict__", {}).values())[:64]


def _names(code: CodeType) -> set[str]:
    """The names that a function's code looks up, those of functions within it as well."""
    return set(code.co_names).union(*[_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)])


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
