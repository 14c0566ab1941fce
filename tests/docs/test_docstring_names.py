"""Check that docstrings name things that exist: a rename must not leave an old name in a sentence."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "chainrule"

#: Names of other libraries, and names that programs make.
ELSEWHERE = {
    *(
        "OMP_NUM_THREADS",
        "generic_filter1d",
        "PPoly",
        "OdeResult",
        "x_scale",
        "half_normal",
        "permute_copy",
        "params_w",
    ),
    *("_ex", "ExpBackward0", "MulBackward0", "_saved_self", "_saved_other", "_saved_result"),
}


def _docstrings(tree: ast.Module) -> list[ast.Constant]:
    return [
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node)
        if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
    ]


def _missing(texts: dict[str, str], known: set[str]) -> list[str]:
    """Return the names in docstrings that occur in no code of ``texts`` (file to source), with their files."""
    named = []
    known = set(known)
    for file, text in texts.items():
        known.update(re.findall(r"\w+", file))
        docs = _docstrings(ast.parse(text))
        lines = text.split("\n")
        for doc in docs:
            named += [(file, name) for name in re.findall(r"``([A-Za-z_]\w*)``", str(doc.value))]
            lines[doc.lineno - 1 : doc.end_lineno] = [""] * (doc.end_lineno - doc.lineno + 1)  # type: ignore[operator]
        known.update(re.findall(r"\w+", "\n".join(lines)))
    return [f"{file}: {name}" for file, name in named if name not in known]


def test_a_missing_name_is_found() -> None:
    assert _missing({"a.py": '"""Call ``there`` and ``gone``."""\ndef there(): ...'}, set()) == ["a.py: gone"]


def test_docstrings_name_what_exists() -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    known = {*dir(builtins), *dir(np), *dir(np.linalg), *dir(np.ndarray), *ELSEWHERE}
    for path in (PACKAGE / "_src" / "native").glob("*.[ch]"):
        known.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    assert not _missing(texts, known)
