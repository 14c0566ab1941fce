"""Source locations of NumPy's floating-point warnings: the user's line instead of a line in this package.

NumPy attributes warnings to the innermost frame. While a function of this package runs (``at_users_line``), mode "log" of
``np.errstate`` sends warnings to a ``Writer``, which warns at the user's line. In a backward pass that is the line of the operation whose
VJP rule runs. The modes "ignore", "raise", "print" and "call"
and warning filters work as in NumPy.

An *error state* here is the object that NumPy's context variable holds for ``np.errstate``.
"""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from types import CodeType, FrameType
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.messages.source_locations import Where, is_internal
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.node import Node

Registry = dict[str | tuple[str, type[Warning], int], int]  # a module's ``__warningregistry__``
_umath: Any = importlib.import_module("numpy._core.umath") if hasattr(np, "_core") else None
#: NumPy's context variable of the error state; None before NumPy 2
VARIABLE: Any = getattr(_umath, "_extobj_contextvar", None)
_KINDS = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}
#: id of the user's error state -> that error state, and the one to set while this package computes
_internal_states: dict[int, tuple[object, object]] = {}
_registries: dict[str, Registry] = {}  # file -> warning registry, for files whose module is not loaded


class Writer:
    """The log object to which NumPy writes warnings. It forwards calls and logs to the user's callback or log object.

    Args:
        modes: the user's settings of ``np.errstate``.
        error_state: the user's error state.
    """

    __slots__ = ("error_state", "modes")

    def __init__(self, modes: Params, error_state: object) -> None:
        self.modes, self.error_state = modes, error_state

    def __call__(self, kind: str, flag: int) -> object:
        return self.modes["call"](kind, flag)

    def write(self, text: str) -> object:
        text = text.removeprefix("Warning: ").rstrip()
        if self.modes[_KINDS[text.partition(" encountered")[0]]] == "log":
            return self.modes["call"].write(f"Warning: {text}\n")
        warnings.warn_explicit(text, RuntimeWarning, *_user_location(sys._getframe(1)))
        return None


def internal_error_state(error_state: object) -> object:
    """Return the error state to set while this package computes, given the user's; None if the user's needs no change."""
    entry = _internal_states.get(id(error_state))
    if entry is None or entry[0] is not error_state:
        entry = (error_state, _state_with_writer(error_state))
        if len(_internal_states) >= 16:
            _internal_states.clear()
        _internal_states[id(error_state)] = entry
    return entry[1]


def _state_with_writer(error_state: object) -> object:
    modes = _umath._get_extobj_dict()
    logged = {kind: "log" for kind in _KINDS.values() if modes[kind] == "warn"}
    return (
        _umath._make_extobj(**logged, call=Writer(modes, error_state))
        if logged and type(modes["call"]) is not Writer
        else None
    )


def raising_error_state(error_state: object) -> object:
    """Return the error state that raises where the current one, given as argument, warns; None if it needs no change.

    C computes values of transformations in it. After an exception the Python functions compute them again, and warn.
    """
    current = np.geterr()
    raising = {kind: "raise" for kind, mode in current.items() if mode not in ("ignore", "raise")}
    return _umath._make_extobj(**raising) if raising else None


def new_error_state(**settings: object) -> object:
    """Return an error state with these settings of ``np.errstate``, for ``VARIABLE``; None before NumPy 2."""
    return None if VARIABLE is None else _umath._make_extobj(**settings)


def users_error_state() -> object:
    """Return an object that identifies the user's error state: a different one in each block of ``np.errstate``."""
    if VARIABLE is None:
        return tuple(np.geterr().items())
    writer: Any = np.geterrcall()
    return writer.error_state if type(writer) is Writer else VARIABLE.get()


def user_error_modes() -> dict[str, str]:
    """Return the user's settings of ``np.errstate``: the value of ``np.geterr()`` outside of this package."""
    writer: Any = np.geterrcall()
    settings: Any = writer.modes if type(writer) is Writer else np.geterr()
    return {kind: settings[kind] for kind in _KINDS.values()}


def is_ours(prim: Primitive) -> bool:
    """Return whether this package, and not the user, defines the primitive."""
    return prim.listed and prim.kind != "function"


def at_users_line(function: AnyFunction, *args: object) -> Any:
    """Call a function. NumPy's warnings in it name the user's line."""
    outer_state = None if VARIABLE is None else VARIABLE.get()
    package_state = None if VARIABLE is None else internal_error_state(outer_state)
    if package_state is None:
        return function(*args)
    try:
        VARIABLE.set(package_state)
        return function(*args)
    finally:
        VARIABLE.set(outer_state)


def with_user_location(function: AnyFunction) -> AnyFunction:
    """Wrap a function so that NumPy's warnings in it name the user's line."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return at_users_line(functools.partial(function, **kwargs) if kwargs else function, *args)

    return call


def _user_location(frame: FrameType | None) -> tuple[str, int, str, Registry]:
    """Return file, line, module and registry of the user's innermost frame, or of the node whose rule runs inside it."""
    while frame is not None and is_internal(frame.f_code.co_filename):
        names = frame.f_code.co_varnames
        node = frame.f_locals.get("node") if "node" in names else None
        if type(node) is not Node and "state" in names:  # ``engine._visit``, in which C visits the nodes
            node = getattr(frame.f_locals.get("state"), "node", None)
        if type(node) is Node and (code := getattr(node, "code", None)) is not None:
            where = Where(code, node.lasti)
            return (where.file, where.line, *_registry(code, frame))
        frame = frame.f_back
    if frame is None:
        return "chainrule", 1, "chainrule", {}
    return (frame.f_code.co_filename, frame.f_lineno, *_registry(frame.f_code, frame))


def _registry(code: CodeType, frame: FrameType | None) -> tuple[str, Registry]:
    """Return the name of the module of a code object, and the module's warning registry."""
    names: dict[str, Any] | None = None
    while frame is not None and names is None:
        names = frame.f_globals if frame.f_code.co_filename == code.co_filename else None
        frame = frame.f_back
    if names is None:
        modules = [*sys.modules.values()]
        names = next((vars(m) for m in modules if getattr(m, "__file__", None) == code.co_filename), None)
    if names is None:
        return code.co_filename.removesuffix(".py"), _registries.setdefault(code.co_filename, {})
    return names.get("__name__") or "<string>", names.setdefault("__warningregistry__", {})
