"""The five documents from which the project started, run unchanged.

If ``../shared/seeds`` exists next to the checkout, all code blocks are extracted and run with only their imports changed
(``torch`` becomes ``chainrule``), and their output is compared with the document. ``test_cases.py`` contains the same
cases for other checkouts.

Errors and gaps in the documents, and their treatment here:

- All: PyTorch then wrote ``ExpBackward`` for ``ExpBackward0``.
- 000: the text says Z = X @ Y instead of X @ W. Its code is correct, and is run unchanged.
- 000: the value of an assignment is shown at the prompt, which Python does not print. Here it is printed.
- 001: the second of the printed matrices is the result that the author expected; no code prints it.
- 001: the last block continues from ``out = a * a``, but there ``out`` is a scalar and ``a`` has a gradient. Both are
  created anew.
- 003: ``2*x.sum()*ones_like(x)`` is shown without its ``grad_fn``.
- 003 writes the Jacobian with the input's axes first, 004 with the output's. Here the output's axes are always first.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

import chainrule

SEEDS = Path(__file__).parents[2].parent / "shared" / "seeds"
BLOCKS = {"000": 5, "001": 3, "002": 1, "003": 4, "004": 5}

pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason="../shared/seeds is not beside this checkout")


# -- finding the code --------------------------------------------------------------------------------------------------


def is_output(line: str) -> bool:
    return re.match(r"(>>> )?(\(?tensor\(|RuntimeError|None)", line) is not None


def is_program(source: str) -> bool:
    """Return whether it is a Python statement: not a word, a formula or a number that happens to parse."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return False

    def acts(statement: ast.stmt) -> bool:
        if isinstance(statement, ast.Assign):
            return all(isinstance(target, ast.Name) for target in statement.targets)
        if isinstance(statement, ast.Expr):
            call = statement.value
            return isinstance(call, ast.Call) and re.match(r"print$|.*\.", ast.unparse(call.func)) is not None
        return isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.For))

    return all(acts(statement) for statement in body)


def statement_at(lines: list[str], i: int) -> int:
    """Return the end of the statement that starts at line i, or i itself if there is none."""
    if not lines[i].strip() or lines[i][0] == " ":
        return i
    for end in range(i + 1, min(i + 12, len(lines)) + 1):
        if is_program("\n".join(lines[i:end])):
            longer = end
            while longer < len(lines) and lines[longer].startswith(" "):
                longer += 1
            return longer if is_program("\n".join(lines[i:longer])) else end
    return i


def output_at(lines: list[str], i: int) -> int:
    """Return the end of the output that starts at line i: a line at which all brackets are closed."""
    depth = 0
    for end in range(i, len(lines)):
        depth += lines[end].count("(") - lines[end].count(")")
        if depth <= 0:
            return end + 1
    raise AssertionError("an output that does not end")


def pieces(text: str) -> list[tuple[str, str]]:
    """Return the document's ("code", ...), ("prompt", ...) and ("output", ...) pieces, in order."""
    lines = text.splitlines()
    found: list[tuple[str, str]] = []
    i, joined = 0, False  # joined: only blank lines since the last piece
    while i < len(lines):
        if is_output(lines[i]):
            end = output_at(lines, i)
            found.append(("output", "\n".join(lines[i:end]).removeprefix(">>> ")))
        elif lines[i].startswith(">>> "):
            end = i + 1
            found.append(("prompt", lines[i].removeprefix(">>> ")))
        elif (end := statement_at(lines, i)) > i:
            source = "\n".join(lines[i:end])
            if joined and found[-1][0] == "code":
                found[-1] = ("code", f"{found[-1][1]}\n{source}")
            else:
                found.append(("code", source))
        else:
            joined = joined and not lines[i].strip()
            i += 1
            continue
        i, joined = end, True
    return found


def blocks(text: str) -> list[tuple[str, bool, list[str]]]:
    """Return (code, whether it was typed at a prompt, the outputs below it); consecutive prompts are one block."""
    found: list[tuple[str, bool, list[str]]] = []
    for kind, piece in pieces(text):
        if kind == "output":
            found[-1][2].append(piece)
        elif kind == "prompt" and found and found[-1][1] and not found[-1][2]:
            found[-1] = (f"{found[-1][0]}\n{piece}", True, [])
        else:
            found.append((piece, kind == "prompt", []))
    return found


# -- running the code --------------------------------------------------------------------------------------------------


def ours(source: str) -> str:
    source = re.sub(r"^import torch$", "import chainrule as torch", source, flags=re.MULTILINE)
    return re.sub(r"^from torch\.", "from chainrule.", source, flags=re.MULTILINE)


def run(source: str, at_prompt: bool, names: dict[str, object]) -> str:
    """Return the output of the block; for an error its type and the first line of its message."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            *before, last = ast.parse(ours(source)).body
            if at_prompt:
                value = ast.unparse(last.value)
                if isinstance(last, ast.Assign):
                    value = f"({ast.unparse(last.targets[0])} := {value})"
                last = ast.parse(f"print(repr({value}))").body[0]
            exec(compile(ast.Module([*before, last], []), "<block>", "exec"), names)
    except RuntimeError as error:
        print("RuntimeError:", str(error).splitlines()[0], file=printed)
    return printed.getvalue()


def document(number: str) -> list[tuple[str, bool, list[str]]]:
    (path,) = SEEDS.glob(f"{number}_*.txt")
    found = blocks(path.read_text(encoding="utf-8"))
    assert len(found) == BLOCKS[number], [code for code, _, _ in found]
    return found


def same(printed: str, shown: list[str]) -> None:
    expected = "\n".join(shown).replace("ExpBackward>", "ExpBackward0>")
    assert printed.rstrip().rstrip(".") == expected.rstrip().rstrip(".")


@pytest.mark.parametrize("number", BLOCKS)
def test_document(number: str) -> None:
    names: dict[str, object] = {"torch": chainrule}
    for i, (code, at_prompt, shown) in enumerate(document(number)):
        if (number, i) == ("001", 0):
            shown = shown[:1]
        elif (number, i) == ("001", 2):
            run("a = torch.tensor([[1., 2., 3.], [4., 5., 6.]], requires_grad=True)\nout = a * a", False, names)
        printed = run(code, at_prompt, names)
        if (number, i) == ("003", 3):
            printed = printed.replace(", grad_fn=<MulBackward0>", "")
        if shown:
            same(printed, shown)
