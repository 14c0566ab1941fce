"""Find the name of the user's variable that holds a value, by comparing objects in the running frames.

``name_of(value)`` returns the name, for messages. ``scopes`` and ``variables`` list all variables, nearest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any

from chainrule._src.messages.source_locations import PACKAGE, user_frame

_FRAMES = 3
_ITEMS = 1000
_SESSION_RESULT = r"_+\d*"  # names of the latest results in interactive sessions

FrameScope = tuple[list[tuple[str, Any]], FrameType, bool]


def scopes(frame: FrameType | None = None) -> list[FrameScope]:
    """Return the variables of a frame (the user's running frame by default) and its callers, at most three frames.

    All locals come first, then the globals. Each entry has its frame, and whether it holds globals.
    """
    frame = user_frame() if frame is None else frame
    running: list[Any] = []
    while frame is not None and len(running) < _FRAMES:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            running.append(frame)
        frame = frame.f_back
    found: list[FrameScope] = [(_variables(f.f_locals), f, f.f_locals is f.f_globals) for f in running]
    seen = [id(f.f_globals) for _, f, whole in found if whole]
    for f in running:
        if id(f.f_globals) not in seen:
            seen.append(id(f.f_globals))
            found.append((_variables(f.f_globals), f, True))
    return found


def _variables(scope: Any) -> list[tuple[str, Any]]:
    """Return names with their values. Names that begin with an underscore come last; a session's ``_`` is left out."""
    names = [(str(name), value) for name, value in list(scope.items()) if str(name).isidentifier()]
    names = [pair for pair in names if not re.fullmatch(_SESSION_RESULT, pair[0])]
    return sorted(names, key=lambda pair: pair[0].startswith("_"))


def inside(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return the contents of a variable, one level deep: ``net.w``, ``params["w"]``, ``ws[0]``; all parameters of a module."""
    skipped = isinstance(value, (type, ModuleType, FunctionType)) or hasattr(type(value), "_edge")
    if skipped or name in ("In", "Out") or name.startswith("__"):
        return []
    if isinstance(value, dict):
        return [(f"{name}[{_key_text(k)}]", v) for k, v in list(value.items())] if len(value) <= _ITEMS else []
    if isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", None)
        if isinstance(value, tuple) and isinstance(fields, tuple):
            return [(f"{name}.{field}", v) for field, v in zip(fields, value)]
        return [(f"{name}[{i}]", v) for i, v in enumerate(value[:_ITEMS])]
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    is_module = "_parameters" in attributes and hasattr(type(value), "named_parameters")
    parameters = list(value.named_parameters())[:_ITEMS] if is_module else []
    return [(f"{name}.{k}", v) for k, v in [*parameters, *list(attributes.items())[:_ITEMS]] if isinstance(k, str)]


def _key_text(key: object) -> str:
    """Return the source of a key: text in double quotes if it needs no escapes, else its repr."""
    return f'"{key}"' if isinstance(key, str) and key.isprintable() and not set(key) & set('"\\') else repr(key)


def variables(frame: FrameType | None = None) -> Iterator[tuple[str, Any, FrameType]]:
    """Yield all variables, nearest first, then their contents."""
    found = scopes(frame)
    for pairs, frame, _ in found:
        yield from ((name, value, frame) for name, value in pairs)
    for pairs, frame, _ in found:
        for name, value in pairs:
            yield from ((deeper, item, frame) for deeper, item in inside(name, value))


def name_of(thing: object) -> str:
    """Return the name of the user's variable that holds ``thing``, or ''."""
    return next((name for name, value, _ in variables() if value is thing), "") if thing is not None else ""
