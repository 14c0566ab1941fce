"""Floating-point warnings of NumPy's name the user's line, and not the one in this package that computed.

NumPy warns about the innermost frame. While functions of this package run, warnings are therefore written to a ``Writer``, by NumPy's
own means (the mode "log" of ``np.errstate``), which warns about the line of the user's that called, or, in a backward pass, about that of
the operation whose rule it is. What is ignored, raised, printed or called stays so, and filters of warnings hold as ever.
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
from chainrule._src.messages.places import Where, is_internal
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.node import Node

Registry = dict[str | tuple[str, type[Warning], int], int]  # of a module: what was warned of in it
_umath: Any = importlib.import_module("numpy._core.umath") if hasattr(np, "_core") else None
#: NumPy's context variable of how errors are treated; None before NumPy 2
VARIABLE: Any = getattr(_umath, "_extobj_contextvar", None)
_KINDS = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}
_twins: dict[
    int, tuple[object, object]
] = {}  # by the identity of how errors are treated: that, and how they are while we compute
_registries: dict[str, Registry] = {}  # what was warned of in files whose module is not known


class Writer:
    """What NumPy writes warnings to. What the user had there is asked where it was asked before.

    Args:
        modes: how the user has errors treated.
        treatment: what stands for that in NumPy's context variable.
    """

    __slots__ = ("modes", "treatment")

    def __init__(self, modes: Params, treatment: object) -> None:
        self.modes, self.treatment = modes, treatment

    def __call__(self, kind: str, flag: int) -> object:
        return self.modes["call"](kind, flag)

    def write(self, text: str) -> object:
        text = text.removeprefix("Warning: ").rstrip()
        if self.modes[_KINDS[text.partition(" encountered")[0]]] == "log":
            return self.modes["call"].write(f"Warning: {text}\n")
        warnings.warn_explicit(text, RuntimeWarning, *_place(sys._getframe(1)))
        return None


def twin_of(treatment: object) -> object:
    """How errors are treated while this package computes, where the user has them treated as said; None: the same."""
    known = _twins.get(id(treatment))
    if known is None or known[0] is not treatment:
        known = (treatment, _made(treatment))
        if len(_twins) >= 16:
            _twins.clear()
        _twins[id(treatment)] = known
    return known[1]


def _made(treatment: object) -> object:
    modes = _umath._get_extobj_dict()
    ours = {kind: "log" for kind in _KINDS.values() if modes[kind] == "warn"}
    return (
        _umath._make_extobj(**ours, call=Writer(modes, treatment))
        if ours and type(modes["call"]) is not Writer
        else None
    )


def treatment(**how: object) -> object:
    """How errors are treated, as ``VARIABLE`` takes it, with the words of ``np.errstate``; None where there is no such variable."""
    return None if VARIABLE is None else _umath._make_extobj(**how)


def given() -> object:
    """What stands for how the user has errors treated: another object in each block of ``np.errstate``."""
    if VARIABLE is None:
        return tuple(np.geterr().items())
    writer: Any = np.geterrcall()
    return writer.treatment if type(writer) is Writer else VARIABLE.get()


def modes() -> dict[str, str]:
    """How the user has errors treated: ``np.geterr()`` outside of this package."""
    writer: Any = np.geterrcall()
    how: Any = writer.modes if type(writer) is Writer else np.geterr()
    return {kind: how[kind] for kind in _KINDS.values()}


def is_ours(prim: Primitive) -> bool:
    """Whether what a row computes is of this package, and not a function of the user's."""
    return prim.listed and prim.kind != "function"


def at_users_line(function: AnyFunction, *args: object) -> Any:
    """Call a function; what NumPy warns of in it names a line of the user's."""
    given = None if VARIABLE is None else VARIABLE.get()
    twin = None if VARIABLE is None else twin_of(given)
    if twin is None:
        return function(*args)
    try:
        VARIABLE.set(twin)
        return function(*args)
    finally:
        VARIABLE.set(given)


def located(function: AnyFunction) -> AnyFunction:
    """The function, whose warnings name lines of the user's."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return at_users_line(functools.partial(function, **kwargs) if kwargs else function, *args)

    return call


def _place(frame: FrameType | None) -> tuple[str, int, str, Registry]:
    """File, line, module and registry of the innermost frame of the user's; of a node, if its rule is run before that is met."""
    while frame is not None and is_internal(frame.f_code.co_filename):
        node = frame.f_locals.get("node") if "node" in frame.f_code.co_varnames else None
        if type(node) is Node and (code := getattr(node, "code", None)) is not None:
            where = Where(code, node.lasti)
            return (where.file, where.line, *_registry(code, frame))
        frame = frame.f_back
    if frame is None:
        return "chainrule", 1, "chainrule", {}
    return (frame.f_code.co_filename, frame.f_lineno, *_registry(frame.f_code, frame))


def _registry(code: CodeType, frame: FrameType | None) -> tuple[str, Registry]:
    """The name of a code's module, and what was warned of in it."""
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
