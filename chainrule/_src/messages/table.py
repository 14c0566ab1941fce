"""Parse the table of messages (``messages.py``) and make a function of each entry.

An entry has a name, parameters, an error type (or ``warning``) and a text. ``errors`` calls ``message(name)``; the returned
function formats the text with its arguments and returns the exception, or gives the warning.

A field of the text is a parameter, or an attribute or item of one. A format after a colon is a key of ``SHOWN``. The lines
of a text are one paragraph; ``|`` begins a new line of the message. Fields that are not parameters:

- ``{here}``: the user's line in brackets; installed libraries count as the user
- ``{program}``: the same, but skipping installed libraries
- ``{loop}``: the first argument of the running call, and the values of the loop variables around it
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
from chainrule._src.messages.message_parts import dtype_word, shape_of, tensor_type, torch_size
from chainrule._src.messages.messages import TABLE
from chainrule._src.messages.reading import step_of_loop
from chainrule._src.messages.source_locations import bracketed, program_line, user_line, warn

#: formats of fields
SHOWN: dict[str, Callable[[Any], Any]] = {
    "type": lambda value: type(value).__name__,
    "class": type,
    "list": list,
    "tuple": tuple,
    "len": len,
    "commas": ", ".join,
    "reprs": lambda values: ", ".join(map(repr, values)),
    "lower": str.lower,
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
    """Parse the table: map each name to its parameters, type and text."""
    found = {}
    for row in re.split(r"\n(?=[a-z_]+\()", re.sub(r"\n*# -- .*", "", TABLE).strip()):
        header, *lines = row.split("\n")
        (name, parameters, kind), *_ = re.findall(r"^(\w+)\((.*)\) -> (\w+)$", header)
        text = " ".join(line.strip() for line in lines).replace(" | ", "\n")
        found[name] = (parameters, kind, text)
    return found


def message(name: str) -> Callable[..., Any] | None:
    """Return the function that makes the error of an entry, or gives its warning; None if there is no such entry."""
    if name not in rows():
        return None
    parameters, kind, text = rows()[name]
    arguments_ast = ast.parse(f"def f({parameters}): ...").body[0].args  # type: ignore[attr-defined]
    defaults = [inspect.Parameter.empty] * (len(arguments_ast.args) - len(arguments_ast.defaults))
    defaults += [ast.literal_eval(value) for value in arguments_ast.defaults]
    signature = inspect.Signature(
        [
            inspect.Parameter(argument.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
            for argument, default in zip(arguments_ast.args, defaults, strict=True)
        ]
    )

    def entry_message(*args: object, **kwargs: object) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        places = {"here": user_line, "program": program_line}
        shown = {key: bracketed(place()) for key, place in places.items() if f"{{{key}}}" in text}
        if "{loop}" in text:
            shown["loop"] = step_of_loop()
        formatted = _FIELDS.vformat(text, (), {**bound.arguments, **shown})
        if kind == "warning":
            return warn(formatted)
        return (getattr(kinds, kind, None) or getattr(builtins, kind))(formatted)

    entry_message.__name__ = entry_message.__qualname__ = name
    vars(entry_message)["__signature__"] = signature
    return entry_message


def table_error(name: str, *args: object) -> Any:
    """Return the error of the entry ``name``."""
    say = message(name)
    assert say is not None, name
    return say(*args)
