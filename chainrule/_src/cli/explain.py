"""``chainrule explain``: run a script, then explain the gradients of one of its tensors."""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile
import webbrowser
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import nullcontext, redirect_stdout
from typing import Any

import numpy as np

import chainrule
from chainrule import explaining
from chainrule._src.arrays.types import Params
from chainrule._src.cli.observers import BackwardPass, ExplainAtBackward, GraphKeeper, StopScript
from chainrule._src.cli.options import FILES
from chainrule._src.cli.outcome import CHECK_FAILED, OK, BadUsage
from chainrule._src.cli.script import as_main, execute, exit_text, is_path, literal, look_up, read, root_of
from chainrule._src.cli.show import Console, note
from chainrule._src.tape.node import grad_fn_of
from chainrule._src.tape.tensor import Tensor

_USAGE_ERRORS = (RuntimeError, TypeError, ValueError)  # errors that `explain` raises about its arguments


def run(options: Namespace) -> int:
    """Run the script, print the explanation, and write files."""
    files = _files(options)
    options.path = os.path.abspath(options.script)  # scripts may change the working directory
    read(options.script)  # raises before any output if the script cannot be read
    piped = "-" in files.values()
    here = os.getcwd()
    with redirect_stdout(sys.stderr) if piped else nullcontext():  # keeps the script's output out of the pipe
        explanation = _run_script(options)
    if not piped:
        Console().rich(explanation if options.by is None else options.parts)
    for kind, path in files.items():
        _write(kind, path, here, explanation)
    if options.open:
        _open(files.get("html", "-"), here, explanation)
    return OK if explanation.check() else CHECK_FAILED


def _run_script(options: Namespace) -> Any:
    script = options.script
    with as_main(script, options.arguments) as module, GraphKeeper() as kept:
        stop = ExplainAtBackward(options.at_backward or 0, lambda started: _explain_pass(options, started))
        note(f"running {script}" + (f" to its backward pass number {stop.count}" if stop.count else ""))
        try:
            with stop:
                execute(script, module)
        except StopScript:
            pass
        except SystemExit as ended:
            exit_text(script, ended)
    if stop.failure is not None:
        raise stop.failure
    if stop.explanation is not None:
        return stop.explanation
    if stop.count:
        raise BadUsage(
            f"{script} ended after {stop.seen} backward passes: there is no backward pass number {stop.count}"
        )
    kept.restore()
    return _explain_variable(options, vars(module), kept.last)


# -- choosing the tensors ------------------------------------------------------------------------------------------------


def _explain_variable(options: Namespace, names: Params, last: BackwardPass | None) -> Any:
    """Explain the outputs of the script's last backward pass, or another variable of the script."""
    script = options.script
    outputs = [] if last is None else last.outputs_among([names])
    Y: Any = None if options.out is None else [_tensor(options.out, names, script, "--out")]
    G: Any = None
    if (
        last is not None
        and outputs
        and len(outputs) == len(last.roots)
        and (Y is None or Y[0]._edge is outputs[0]._edge)
    ):
        Y, G = outputs, None if last.is_default() else last.cotangents
    if Y is None:
        Y = [_tensor(_computed_last(names, script), names, script, "--out")]
    if options.grad is not None:
        G = [_gradient(options.grad, Y[0], names, script)]
    wrt = None if options.wrt is None else [_tensor(name, names, script, "--wrt") for name in _each(options.wrt)]

    # Call `explain` from a line after the script's last one: it reads the names of tensors from the calling frame.
    lines = read(options.path).count(b"\n") + 1
    code = compile("\n" * lines + "__explain__()", options.path, "eval")
    names["__explain__"] = lambda: explaining.explain(Y, grad=G, wrt=wrt)
    try:
        return _with_usage_errors(lambda: eval(code, names), options)
    finally:
        del names["__explain__"]


def _explain_pass(options: Namespace, started: BackwardPass) -> Any:
    """Explain a backward pass while it runs."""
    names, script = started.names(), options.script
    if options.out is None:
        Y: Any = started.outputs()
        if len(Y) < len(started.roots):
            raise BadUsage(
                "the backward pass starts from an edge of the graph, not from a tensor: name a tensor with --out"
            )
        G: Any = None if started.is_default() else started.cotangents
    else:
        Y = [_tensor(options.out, names, script, "--out")]
        G = [g for root, g in zip(started.roots, started.cotangents) if root is Y[0]._edge] or None
    if options.grad is not None:
        G = [_gradient(options.grad, Y[0], names, script)]
    wrt = None if options.wrt is None else [_tensor(name, names, script, "--wrt") for name in _each(options.wrt)]
    return _with_usage_errors(lambda: explaining.explain(Y, grad=G, wrt=wrt), options)


def _with_usage_errors(explained: Callable[[], Any], options: Namespace) -> Any:
    try:
        explanation = explained()
        options.parts = None if options.by is None else explanation.contributions(options.by)
        return explanation
    except _USAGE_ERRORS as error:
        raise BadUsage(f"{error}{_hint(str(error), options)}") from error


def _hint(message: str, options: Namespace) -> str:
    """Return a hint for errors that the script caused."""
    if options.at_backward:
        return ""
    if "inplace operation" in message:
        return (
            f"\nThe script overwrote it later: `chainrule explain {options.script} --at-backward 1` explains the first "
            "backward pass while it runs."
        )
    if "second time" in message:
        return "\n(Another thread's backward pass freed it; only graphs freed in the main thread can be explained.)"
    return ""


def _computed_last(names: Mapping[str, object], script: str) -> str:
    """Return the name of the variable whose tensor was computed last."""
    last, newest = "", -1
    for name, value in names.items():
        node = grad_fn_of(value._edge) if isinstance(value, Tensor) and not name.startswith("_") else None
        if node is not None and node.seq >= newest:
            last, newest = name, node.seq
    if not last:
        raise BadUsage(
            f"{script} has no variable with a tensor that was computed from one that requires grad. Did you forget "
            "requires_grad=True? Local variables of functions no longer exist when the script ends: use --at-backward 1 "
            "to read them during the first backward pass."
        )
    return last


def _each(given: list[str]) -> list[str]:
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def _tensor(path: str, names: Mapping[str, object], script: str, option: str) -> Tensor:
    value = look_up(path, names, script)
    if not isinstance(value, Tensor):
        raise BadUsage(f"{option} {path}: expected a tensor, but it is of type {type(value).__name__}")
    return value


def _gradient(text: str, Y: Tensor, names: Mapping[str, object], script: str) -> Any:
    """Return the gradient for --grad: a variable, ``ones``, or a literal."""
    if is_path(text) and (root_of(text) in names or text.strip() != "ones"):
        value = look_up(text, names, script)
    elif text.strip() == "ones":
        return chainrule.ones_like(Y.detach())
    else:
        value = literal(text, "--grad")
    if isinstance(value, Tensor):
        return value
    try:
        array = np.asarray(value)
    except ValueError:
        raise BadUsage(f"--grad {text}: its rows have different lengths") from None
    if array.dtype.kind not in "biufc":
        raise BadUsage(f"--grad {text}: expected an array of numbers, but it is a {type(value).__name__}")
    return array


# -- files ---------------------------------------------------------------------------------------------------------------


def _files(options: Namespace) -> dict[str, str]:
    """Return the files to write, by kind; raise for unwritable paths before the script runs."""
    files = {kind: path for kind in FILES if (path := getattr(options, kind)) is not None}
    for kind, path in files.items():
        if path != "-" and (os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or ".")):
            what = "it is a directory" if os.path.isdir(path) else f"there is no directory {os.path.dirname(path)}"
            raise BadUsage(f"--{kind} {path}: {what}")
        if path != "-" and _same(path, options.script):
            raise BadUsage(f"--{kind} {path}: that is the script itself")
        twice = [other for other in files if other != kind and path != "-" and _same(files[other], path)]
        if twice:
            raise BadUsage(f"--{kind} {path}: --{twice[0]} would be written there, too")
        if path.endswith((".py", ".ipynb")):
            raise BadUsage(f"--{kind} {path}: this suffix is for programs; use {path}.{kind}")
    if options.at_backward is not None and options.at_backward < 1:
        raise BadUsage("--at-backward counts from 1")
    return files


def _same(path: str, other: str) -> bool:
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def _write(kind: str, path: str, folder: str, explanation: object) -> None:
    text = _text(kind, explanation)
    if path == "-":
        print(text)
        return
    try:
        with open(os.path.join(folder, path), "w", encoding="utf-8", newline="\n") as file:
            file.write(text if text.endswith("\n") else text + "\n")
    except OSError as error:
        raise BadUsage(f"cannot write {path}: {error.strerror}") from None
    note(f"wrote {path}")


def _open(path: str, folder: str, explanation: object) -> None:
    """Open the page in a browser, from the written file or a temporary one."""
    if path == "-":
        handle, path = tempfile.mkstemp(prefix="chainrule-", suffix=".html")
        os.close(handle)
        _write("html", path, folder, explanation)
    webbrowser.open(pathlib.Path(folder, path).as_uri())


def _text(kind: str, explanation: Any) -> str:
    if kind == "html":
        return str(explanation.to_html())
    if kind == "json":
        return json.dumps(explanation.to_dict(), ensure_ascii=False, allow_nan=False)
    graph = explanation.graph
    return str(graph.to_svg() if kind == "svg" else graph.to_dot())
