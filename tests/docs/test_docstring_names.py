"""Check that docstrings and comments of C files name things that exist: a rename must not leave an old name in a sentence."""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import re
from collections.abc import Iterator
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


def _definitions(node: ast.AST) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef]:
    """Yield the module, the classes and the functions of a tree; only statements can contain them."""
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
        yield node
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(node, field, ()) if not isinstance(node, ast.expr) else ():
            yield from _definitions(statement)


@functools.cache  # two tests read each file
def _docstrings(text: str) -> list[ast.Constant]:
    return [
        node.body[0].value
        for node in _definitions(ast.parse(text))
        if node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
        if isinstance(node.body[0].value.value, str)
    ]


def _missing(texts: dict[str, str], known: set[str]) -> list[str]:
    """Return the names in docstrings that occur in no code of ``texts`` (file to source), with their files."""
    named = []
    known = set(known)
    for file, text in texts.items():
        known.update(re.findall(r"\w+", file))
        docs = _docstrings(text)
        lines = text.split("\n")
        for doc in docs:
            named += [(file, name) for name in re.findall(r"``([A-Za-z_]\w*)``", str(doc.value))]
            lines[doc.lineno - 1 : doc.end_lineno] = [""] * (doc.end_lineno - doc.lineno + 1)  # type: ignore[operator]
        known.update(re.findall(r"\w+", "\n".join(lines)))
    return [f"{file}: {name}" for file, name in named if name not in known]


def _raised(text: str) -> list[str]:
    """Return the names under ``Raises:`` in the docstrings of a source text."""
    found = []
    for doc in _docstrings(text):
        for section in re.findall(r"\n *Raises:\n((?: +\S.*\n)+)", f"{doc.value!s}\n"):
            indent = len(section) - len(section.lstrip())
            found += re.findall(rf"^ {{{indent}}}([A-Z]\w*|numpy\.\S+\.\w+):", section, re.MULTILINE)
    return found


#: dotted names in comments of C files that are not names of the package
NOT_OURS = {"dtype.names", "fenv.h", "hamt.c"}


def _missing_in_comments(texts: dict[str, str], modules: dict[str, str]) -> list[str]:
    """Return the dotted names in comments of C files (file to source) that are missing in ``modules`` (module or class to code)."""
    missing = []
    for file, text in texts.items():
        for comment in re.findall(r"/\*.*?\*/", text, re.DOTALL):
            for dotted in re.findall(r"(?:\w+\.)+\w+", comment):
                parts = dotted.split(".")
                if parts[-1] in ("py", "c", "h"):
                    pairs = [] if dotted in modules or dotted in NOT_OURS else [dotted]
                else:
                    pairs = [
                        f"{owner}.{name}"
                        for owner, name in itertools.pairwise(parts)
                        if owner in modules and not re.search(rf"\b{name}\b", modules[owner])
                    ]
                missing += [f"{file}: {pair}" for pair in pairs if pair not in NOT_OURS]
    return missing


def test_a_missing_name_is_found() -> None:
    assert _missing({"a.py": '"""Call ``there`` and ``gone``."""\ndef there(): ...'}, set()) == ["a.py: gone"]


def test_docstrings_name_what_exists() -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    known = {*dir(builtins), *dir(np), *dir(np.linalg), *dir(np.ndarray), *ELSEWHERE}
    for path in (PACKAGE / "_src" / "native").glob("*.[ch]"):
        known.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    assert not _missing(texts, known)


def test_a_missing_exception_is_found() -> None:
    doc = "Return.\n\n    Raises:\n        ValueError: no.\n            Or: not.\n        Gone: yes.\n    "
    assert _raised(f'def f():\n    """{doc}"""') == ["ValueError", "Gone"]


def test_docstrings_name_exceptions_that_exist() -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    known = {*dir(builtins), *dir(np.linalg), *dir(np.exceptions)}
    for text in texts.values():
        known.update(re.findall(r"^ *class (\w+)", text, re.MULTILINE))
    raised = [(file, name) for file, text in texts.items() for name in _raised(text)]
    assert len(raised) > 300
    assert [f"{file}: {name}" for file, name in raised if name.rpartition(".")[2] not in known] == []


def test_a_missing_name_in_a_comment_is_found() -> None:
    comment = "/* tape.node.old, Node.name, tape/node.py, tape.gone.new, x.y */ node.old; /* gone.c */"
    modules = {"tape": " node ", "node": "def new(): ...", "Node": "name", "node.py": ""}
    assert _missing_in_comments({"a.c": comment}, modules) == ["a.c: node.old", "a.c: tape.gone", "a.c: gone.c"]


def test_comments_of_c_files_name_what_exists() -> None:
    native = PACKAGE / "_src" / "native"
    comments = {path.name: path.read_text(encoding="utf-8") for path in sorted(native.glob("*.[ch]"))}
    modules = dict(comments)
    for text in comments.values():
        modules |= dict.fromkeys(re.findall(r"^} (\w+);", text, re.MULTILINE), "".join(comments.values()))
    for path in [*(PACKAGE / "_src").rglob("*.py"), *native.glob("*.pyi")]:
        text = path.read_text(encoding="utf-8")
        for key in (path.name, path.stem, *re.findall(r"^class (\w+)", text, re.MULTILINE)):
            modules[key] = modules.get(key, "") + text
        for part, package in ((path.stem, path.parent.name), (path.parent.name, path.parent.parent.name)):
            modules[package] = modules.get(package, "") + f" {part} "
    assert _missing_in_comments(comments, modules) == []
