"""Making errors from the table of messages (``messages.py``): a row has a name, parameters, an error type, and a text.

A field of the text is a parameter, or an attribute or item of one, and may say after a colon how it is shown (``SHOWN``).
``{here}`` is the user's line in brackets, ``{program}`` that of the program that somebody writes, ``{loop}`` the first argument of its
call and where its loops are. The lines of a text are one
paragraph; ``|`` begins a new line of the message.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
import string
from collections.abc import Callable
from typing import Any

from chainrule._src.messages import kinds
from chainrule._src.messages.messages import TABLE
from chainrule._src.messages.places import bracketed, program_line, user_line, warn
from chainrule._src.messages.reading import step_of_loop
from chainrule._src.messages.words import dtype_word, shape_of, tensor_type, torch_size

#: how a field may be shown
SHOWN: dict[str, Callable[[Any], Any]] = {
    "type": lambda value: type(value).__name__,
    "class": type,
    "list": list,
    "tuple": tuple,
    "len": len,
    "commas": ", ".join,
    "reprs": lambda values: ", ".join(map(repr, values)),
    "by": lambda values: " x ".join(map(str, values)),
    "layouts": lambda arrays: ", ".join(f"{x.dtype}{list(x.shape)}" for x in arrays),
    "bracketed": bracketed,
    "first": lambda values: repr(next(iter(values))),
    "shape": shape_of,
    "sizes": lambda value: list(shape_of(value)),
    "dims": lambda value: len(shape_of(value)),
    "mxn": lambda value: "x".join(map(str, shape_of(value)[-2:])),
    "m by n": lambda value: " by ".join(map(str, shape_of(value)[-2:])),
    "torch_size": lambda value: torch_size(getattr(value, "shape", value)),
    "word": dtype_word,
    "old_type": tensor_type,
    "node": lambda node: node.name(),
    "last": lambda written: "{}, {}".format(*written.last),
    "quoted node": lambda node: repr(node.name()),
    "number": lambda array: array.flat[0].item(),
    "function": lambda function: getattr(function, "__name__", "f"),
    "shapes": lambda values: ", ".join(str(shape_of(value)) for value in values),
    "called": lambda level: f" (called at {level.where})" if level.where else "",
    "cut": lambda tensor: "" if getattr(tensor, "_cut", None) is None else f" {tensor._cut}.",
    "hook": lambda hook: repr(getattr(hook, "__name__", type(hook).__name__)),
    "writer": lambda written: written.last[0] + (f" at {written.last[1]}" if written.last[1] else ""),
}


class _Fields(string.Formatter):
    def format_field(self, value: Any, spec: str) -> str:
        if spec.startswith("?"):
            return spec[1:].split("|")[0 if value else 1]
        if spec.startswith("+"):
            return str(value + int(spec))
        return str(SHOWN[spec](value) if spec else value)


_FIELDS = _Fields()


@functools.cache
def rows() -> dict[str, tuple[str, str, str]]:
    """For each name the parameters, the type and the text."""
    found = {}
    for row in re.split(r"\n(?=[a-z_]+\()", re.sub(r"\n*# -- .*", "", TABLE).strip()):
        header, *lines = row.split("\n")
        (name, parameters, kind), *_ = re.findall(r"^(\w+)\((.*)\) -> (\w+)$", header)
        text = " ".join(line.strip() for line in lines).replace(" | ", "\n")
        found[name] = (parameters, kind, text)
    return found


def message(name: str) -> Callable[..., Any] | None:
    """The function that makes the error of a row, or gives its warning; None where there is no such row."""
    if name not in rows():
        return None
    parameters, kind, text = rows()[name]
    made = ast.parse(f"def f({parameters}): ...").body[0].args  # type: ignore[attr-defined]
    defaults = [inspect.Parameter.empty] * (len(made.args) - len(made.defaults))
    defaults += [ast.literal_eval(value) for value in made.defaults]
    signature = inspect.Signature(
        [
            inspect.Parameter(argument.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
            for argument, default in zip(made.args, defaults, strict=True)
        ]
    )

    def say(*args: object, **kwargs: object) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        places = {"here": user_line, "program": program_line}
        shown = {key: bracketed(place()) for key, place in places.items() if f"{{{key}}}" in text}
        if "{loop}" in text:
            shown["loop"] = step_of_loop()
        said = _FIELDS.vformat(text, (), {**given.arguments, **shown})
        if kind == "warning":
            return warn(said)
        return (getattr(kinds, kind, None) or getattr(builtins, kind))(said)

    say.__name__ = say.__qualname__ = name
    vars(say)["__signature__"] = signature
    return say


def made(name: str, *args: object) -> Any:
    """The error of a row."""
    say = message(name)
    assert say is not None, name
    return say(*args)
