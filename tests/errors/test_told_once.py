"""No two files raise the same literal message: shared messages are functions in ``messages/``."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "chainrule"
#: Python's messages, for errors that Python itself raises
PYTHON = {"module {} has no attribute {}", "{} object has no attribute {}", "len() of unsized object"}


def told(statement: ast.Raise) -> tuple[str, str] | None:
    """Return type and text of ``raise SomeError("words {value}")``, or None for other statements and very short texts."""
    match statement.exc:
        case ast.Call(func=ast.Name(kind), args=[ast.Constant(value=str(words)), *_]):
            pass
        case ast.Call(func=ast.Name(kind), args=[ast.JoinedStr(values=parts), *_]):
            words = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in parts)
        case _:
            return None
    return (kind, words) if len(words) > 12 else None


def test_a_message_is_told_in_one_file() -> None:
    files = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "raise " in text else ():
            if isinstance(node, ast.Raise) and (said := told(node)):
                files[said].add(path.relative_to(PACKAGE).as_posix())
    assert len(files) > 500
    assert {said: where for said, where in files.items() if len(where) > 1 and said[1] not in PYTHON} == {}


def test_what_is_told_is_read() -> None:
    same, other = (ast.parse(f'raise TypeError(f"expected a {{kind}} and got {{{name}!r}}")').body[0] for name in "xy")
    assert isinstance(same, ast.Raise) and isinstance(other, ast.Raise)
    assert told(same) == told(other) == ("TypeError", "expected a {} and got {}")
