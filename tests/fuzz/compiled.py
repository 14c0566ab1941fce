"""Random programs, compiled: recorded and replayed calls give the same bits as eager calls.

A program is of one of the three other kinds or contains loops, depending on its seed: the inputs become the arguments of a
function, with various layouts, and the other statements become its body.
"""

from __future__ import annotations

import contextlib
import random
import textwrap
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import chainrule
from chainrule._src import native
from chainrule._src.arrays.any_array import with_strides

from . import loops, making
from .comparing import compare
from .judging import Failure, Outcome
from .making import Statement

# Operations that work in eager execution but not in a recording.
#: after how many calls, or bytes of new arrays, the calls of a trace are packed in half of the programs
PACK_SIZES = [(1, 1), (7, 1 << 40), (1 << 40, 2000)]
DOCUMENTED = [
    ("not compiled", "it is run as it is"),
    ("for RuntimeError: one of the variables needed for gradient computation", "nothing is overwritten in a recording"),
]


def program(seed: int) -> list[Statement]:
    """Return a program; its seed is a comment of the first statement and determines the layouts."""
    kind = seed % 4
    if kind == 3:
        made = loops.program(seed)
    elif kind == 0:
        made = making.numpy_program(seed)
    else:
        made = making.torch_program(chainrule, seed) if kind == 1 else making.plain_program(chainrule, seed)
    return [Statement("input", f"# {seed}"), *made]


def against_eager(program: list[Statement]) -> Outcome:
    """Call a program's function eagerly and compiled: twice with the same numbers, then with other numbers and other shapes."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = _function(program)
        if made is None:
            return Outcome([], [])
        text, function, arguments = made
        rng = random.Random(program[0].text)
        first = {name: _laid_out(x, rng) for name, x in arguments.items()}
        calls = [first, _changed(first, 1.01), _changed(first, -0.7)]
        if len(first) == 1:
            calls += [{name: x[:1]} for name, x in first.items() if isinstance(x, np.ndarray) and x.ndim]
        # in half of the programs, recorded values are released as soon as possible
        with packing(*rng.choice(PACK_SIZES)) if rng.random() < 0.5 else contextlib.nullcontext():
            found = compare(function, *[(call,) for call in calls])
    if not found:
        return Outcome([Statement("program", text)], [])
    for begin, why in DOCUMENTED:
        if begin in found:
            return Outcome([], [], documented=f"{why}: {found[:160]}" if begin == "not compiled" else why)
    return Outcome([], [], Failure("program", text, found))


@contextlib.contextmanager
def packing(calls: int, nbytes: int) -> Iterator[None]:
    """While tracing, pack calls each time after so many were appended, or so many bytes allocated."""
    if native.LOOPS is None:
        yield
        return
    before = native.LOOPS.set_pack_sizes(calls, nbytes)
    try:
        yield
    finally:
        native.LOOPS.set_pack_sizes(*before)


def _function(program: list[Statement]) -> Any:
    """Return a program as the source of a function of its inputs, the function, and the inputs, or None if nothing runs."""
    env: dict[str, Any] = {"torch": chainrule, "np": np, "log": []}
    inputs: dict[str, Any] = {}
    body = []
    for statement in program:
        before = set(env)
        try:
            exec(statement.text, env)
        except Exception:
            continue
        new = [name for name in env if name not in before and name[0] in "vx"]
        if statement.kind == "input" and new:
            inputs |= {name: env[name] for name in new}
        elif statement.kind != "input" or "total" in statement.text:
            body.append(statement.text)
    if not inputs:
        return None
    if "f" in env or "def f" in program[-1].text:
        body.append(_derivatives(program[-1].text))
    lines = [f"{', '.join(inputs)}, = [inputs[name] for name in {list(inputs)}]", "log = []", *body]
    text = "def main(inputs):\n" + textwrap.indent("\n".join([*lines, "return results(locals())"]), "    ")
    scope = {"torch": chainrule, "np": np, "results": _results}
    exec(text, scope)
    return text, scope["main"], {name: _detached(x) for name, x in inputs.items()}


def _derivatives(definition: str) -> str:
    """Return statements that differentiate the function at the end of a program."""
    name = definition.rpartition("\ndef ")[2].removeprefix("def ").partition("(")[0]
    along = "torch.cos(x) if isinstance(x, torch.Tensor) else np.cos(x)"
    return (
        f"v_value, v_slope = torch.func.value_and_grad({name})(x)\nv_along = torch.func.jvp({name}, (x,), ({along},))"
    )


def _results(variables: dict[str, Any]) -> Any:
    """Return the numbers and tensors of a program, and the gradients of its inputs."""
    found = [
        _plain(x) for name, x in sorted(variables.items()) if name[0] in "v" or name in ("total", "first", "logged")
    ]
    inputs = [x for x in variables["inputs"].values() if isinstance(x, chainrule.Tensor)]
    return found, [None if x.grad is None else x.grad.detach() for x in inputs]


def _plain(x: Any) -> Any:
    if isinstance(x, chainrule.Tensor):
        return x.detach()
    if isinstance(x, (list, tuple)):
        return [_plain(item) for item in x]
    known = isinstance(x, (np.ndarray, np.generic, bool, int, float, complex, type(None)))
    return x if known or hasattr(x, "_tensor") else type(x).__name__


def _detached(x: Any) -> Any:
    return x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, chainrule.Tensor) else x


def _laid_out(x: Any, rng: random.Random) -> Any:
    """Copy numbers to other memory with another layout."""
    array = x.detach().numpy() if isinstance(x, chainrule.Tensor) else x
    order = rng.choice(["same", "same", "F", "every other", "backwards"]) if array.ndim else "same"
    if order == "F":
        array = np.asfortranarray(array)
    elif order == "every other":
        array = with_strides(array, tuple(2 * stride for stride in array.strides))
    elif order == "backwards" and array is x:
        array = np.ascontiguousarray(array[::-1])[::-1]
    return _as(x, array)


def _as(x: Any, array: Any) -> Any:
    """Convert an array to an argument of the type of x."""
    return chainrule.from_numpy(array).requires_grad_(x.requires_grad) if isinstance(x, chainrule.Tensor) else array


def _changed(arguments: dict[str, Any], factor: float) -> dict[str, Any]:
    """Change the numbers in place."""

    def changed(x: Any) -> Any:
        array = x.detach().numpy() if isinstance(x, chainrule.Tensor) else x
        new = with_strides(array, array.strides)
        if array.dtype.kind in "fc":
            new *= new.dtype.type(factor)
        return _as(x, new)

    return {name: changed(x) for name, x in arguments.items()}
