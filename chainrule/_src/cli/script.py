"""Run a user's file as Python would, and look up variables named on the command line.

``explain`` and ``check`` call these functions.
"""

from __future__ import annotations

import ast
import builtins
import io
import os
import sys
import traceback
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from chainrule._src.cli.outcome import BadUsage, ScriptRaised, did_you_mean
from chainrule._src.messages.errors import PACKAGE


@contextmanager
def as_main(path: str, arguments: Sequence[str]) -> Iterator[types.ModuleType]:
    """Provide a new ``__main__`` module for a script, with the script's ``sys.argv`` and ``sys.path``."""
    module = types.ModuleType("__main__")
    vars(module).update(__file__=os.path.abspath(path), __cached__=None, __builtins__=builtins)
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    sys.argv = [path, *arguments]
    sys.path[:] = [_directory(path), *_path_without_command()]
    sys.modules["__main__"] = module
    try:
        yield module
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before


def _directory(path: str) -> str:
    return os.path.dirname(os.path.realpath(path))


def _path_without_command() -> list[str]:
    """Return ``sys.path`` without the first entry, which Python added for the command itself."""
    command_entries = {"", os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0]))}
    return sys.path[1:] if sys.path and sys.path[0] in command_entries and not sys.flags.safe_path else list(sys.path)


def execute(path: str, module: types.ModuleType) -> None:
    """Compile the file and run it in the module.

    Raises:
        ScriptRaised: the file raised an exception; the traceback starts in the file.
        SystemExit: raised by the file.
    """
    source = read(path)
    try:
        exec(compile(source, str(module.__file__), "exec", dont_inherit=True), vars(module))
    except Exception as error:
        raise ScriptRaised(traceback_of(error)) from None


def exit_text(path: str, ended: SystemExit) -> None:
    """Check the exit code of a script that called sys.exit.

    Raises:
        ScriptRaised: the exit code is not 0.
    """
    if ended.code not in (None, 0, False):
        message = f"{ended.code}\n" if not isinstance(ended.code, int) else ""
        raise ScriptRaised(f"{message}({path} called sys.exit({ended.code!r}))\n") from None


def read(path: str) -> bytes:
    try:
        with io.open_code(os.path.abspath(path)) as file:
            return file.read()
    except IsADirectoryError:
        raise BadUsage(f"{path} is a directory: give a Python file") from None
    except OSError as error:
        raise BadUsage(f"cannot read {path}: {error.strerror}") from None


def traceback_of(error: BaseException) -> str:
    """Return the traceback as Python would print it, without this package's frames above the user's code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(PACKAGE):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


@contextmanager
def importing(path: str) -> Iterator[types.ModuleType]:
    """Import a file under its own name, so that code under ``__name__ == "__main__"`` does not run.

    Raises:
        ScriptRaised: the file raised an exception.
    """
    name = os.path.splitext(os.path.basename(path))[0]
    module = types.ModuleType(name)
    vars(module).update(__file__=os.path.abspath(path), __builtins__=builtins)
    before = list(sys.path)
    sys.path[:] = [_directory(path), *_path_without_command()]
    is_new = name not in sys.modules  # dataclasses and pickle look the module up
    if is_new:
        sys.modules[name] = module
    try:
        execute(path, module)
        yield module
    except SystemExit as ended:
        raise BadUsage(f"{path} called sys.exit({ended.code!r}) while it was imported") from None
    finally:
        sys.path[:] = before
        if is_new:
            del sys.modules[name]


_STEPS = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.UnaryOp, ast.USub, ast.Load)


def is_path(text: str) -> bool:
    """Return whether the text is a variable, or attributes and items of one: ``Y``, ``net.weight``, ``ys[-1]``.

    >>> from chainrule._src.cli.script import is_path
    >>> [is_path(text) for text in ("Y", "net.layers[0].weight", "f(x)", "[1, 2]", "3")]
    [True, True, False, False, False]
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return False
    root: Any = tree
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    return isinstance(root, ast.Name) and all(isinstance(node, _STEPS) for node in ast.walk(tree))


def root_of(path: str) -> str:
    """Return the variable that a path starts from."""
    return path.replace("[", ".").split(".")[0].strip()


def look_up(text: str, names: Mapping[str, object], where: str) -> Any:
    """Return the value of a path.

    Raises:
        BadUsage: the variable, an attribute or an item does not exist.
    """
    if not is_path(text):
        raise BadUsage(f"{text!r} is not a variable of {where}, nor an expression such as net.weight or ys[0]")
    root = root_of(text)
    if root not in names:
        known = [name for name in names if not name.startswith("__")]
        hint = did_you_mean(root, known) or f" It has: {', '.join(known[:12]) or 'none'}."
        raise BadUsage(f"{where} has no variable {root!r}.{hint}")
    try:
        return eval(compile(text.strip(), "<command line>", "eval"), {"__builtins__": {}}, {root: names[root]})
    except Exception as error:
        raise BadUsage(f"{text!r} does not exist: {type(error).__name__}: {error}") from None


def literal(text: str, option: str) -> object:
    """Parse a number, list or other literal.

    Raises:
        BadUsage: the text is not a literal.
    """
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise BadUsage(f"{option} {text!r} is not a literal such as 2.5 or '[[1, 2], [3, 4]]'") from None
