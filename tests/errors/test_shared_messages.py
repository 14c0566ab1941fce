"""No two files raise the same literal message: shared messages are functions in ``messages/``."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "chainrule"
#: Python's messages, for errors that Python itself raises
PYTHON = {"module {} has no attribute {}", "{} object has no attribute {}", "len() of unsized object"}


def raised_message(statement: ast.Raise) -> tuple[str, str] | None:
    """Return type and text of ``raise SomeError("words {value}")``, or None for other statements and very short texts."""
    match statement.exc:
        case ast.Call(func=ast.Name(kind), args=[ast.Constant(value=str(text)), *_]):
            pass
        case ast.Call(func=ast.Name(kind), args=[ast.JoinedStr(values=parts), *_]):
            text = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in parts)
        case _:
            return None
    return (kind, text) if len(text) > 12 else None


def test_a_message_is_raised_in_one_file() -> None:
    files = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "raise " in text else ():
            if isinstance(node, ast.Raise) and (message := raised_message(node)):
                files[message].add(path.relative_to(PACKAGE).as_posix())
    assert len(files) > 500
    assert {message: where for message, where in files.items() if len(where) > 1 and message[1] not in PYTHON} == {}


def test_messages_are_read_from_raise_statements() -> None:
    same, other = (ast.parse(f'raise TypeError(f"expected a {{kind}} and got {{{name}!r}}")').body[0] for name in "xy")
    assert isinstance(same, ast.Raise) and isinstance(other, ast.Raise)
    assert raised_message(same) == raised_message(other) == ("TypeError", "expected a {} and got {}")
