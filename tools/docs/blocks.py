"""Run the code blocks of documentation pages, and compare their output with the pages or insert it.

The blocks of a page form one program with a shared namespace:

- a ``python`` block is run. A ``text`` block directly after it contains its output, warnings, and the error that ends it.
  Without a ``text`` block it must neither warn nor fail;
- a ``python`` block with ``>>>`` is a doctest (``...`` matches any text);
- messages refer to the page as a file (``jacobian.py:5``), counting its lines of code; ``title="train.py"`` makes a
  block a separate file;
- ``{.python .other title="JAX"}`` is code for another library, run separately if that library is installed, and in a
  separate process if the library reads environment variables at import (``ENVIRONMENTS``);
- ``<!-- native -->`` marks a page whose output depends on the extension; without the extension it is not tested;
- ``<!-- picture: expression -->`` and ``<!-- explained: expression | title -->`` insert the SVG and the HTML page of
  an explanation into the site.

``python tools/docs/blocks.py [pages]`` compares; with ``--update`` it inserts the outputs into the pages. ``--other=jax``
runs the blocks for another library.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^```(?P<info>python\b[^\n]*|\{\.python[^\n]*\})\n(?P<code>.*?)^```$(?:\n\n?```text\n(?P<shown>.*?)^```$)?"
    r"|^<!-- (?P<made>picture|explained): (?P<expression>[^|\n]*?)(?: \| (?P<title>[^\n]*?))? -->$",
    re.MULTILINE | re.DOTALL,
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
LIBRARIES = {
    "HIPS autograd": "autograd", "Ipopt": "casadi", "JAX": "jax", "PyTorch": "torch", "SciPy and scikit-learn": "sklearn",
}  # fmt: skip
#: the environment variables that a library's blocks set, which must be set before the library is imported
ENVIRONMENTS = {"sklearn": {"SCIPY_ARRAY_API": "1"}}


@dataclass
class Block:
    """A code block or marker of a page; ``kind`` is python, doctest, other, picture or explained."""

    kind: str
    source: str
    line: int
    title: str | None
    shown: str | None
    at: slice = field(repr=False)  # the position of the shown output in the page, or of the whole marker
    value: object = None


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> list[Block]:
    return [_block(match, text) for match in FENCE.finditer(text)]


def _block(match: re.Match[str], text: str) -> Block:
    if match["made"]:
        line = text.count("\n", 0, match.start()) + 1
        return Block(match["made"], match["expression"], line, match["title"], None, slice(*match.span()))
    kind = "other" if ".other" in match["info"] else "doctest" if ">>>" in match["code"] else "python"
    title = re.search(r'title="([^"]*)"', match["info"])
    line = text.count("\n", 0, match.start("code")) + 1
    return Block(kind, match["code"], line, title and title[1], match["shown"], slice(*match.span("shown")))


def library(block: Block) -> str:
    """Return the name of the module that a block for another library needs."""
    return LIBRARIES[(block.title or "").split(",")[0]]


class Mismatch(AssertionError):
    """Raised if the output in a page differs from the output of its code."""


def run(text: str, name: str, *, update: bool = False, other: str | None = None) -> tuple[str, list[Block]]:
    """Run a page's blocks, or those for another library; return the page, and the blocks with their values."""
    found = [block for block in blocks(text) if (block.kind == "other" and library(block)) == (other or False)]
    names: dict[str, object] = {"__name__": "__page__"}
    page = f"{Path(name).stem}.py"
    program, before = _program(found)
    _remember(page, program)
    printed: list[tuple[Block, str]] = []
    for block in found:
        if block.kind in ("picture", "explained"):
            block.value = eval(compile(block.source, page, "eval"), names)
        elif block.kind == "doctest":
            _run_doctest(block, name, names)
        elif block.shown is None:
            try:
                _run(block, before, page, names)
            except Exception as error:
                error.add_note(f"in the block at {name}:{block.line}")
                raise
        else:
            printed.append((block, _printed(block, before, page, names)))
    if update:
        for block, output in reversed(printed):
            text = text[: block.at.start] + output + text[block.at.stop :]
    else:
        for block, output in printed:
            if block.shown != output:
                raise Mismatch(f"{name}:{block.line} prints\n{output}\nand the page shows\n{block.shown}")
    return text, found


def _program(found: list[Block]) -> tuple[str, dict[int, int]]:
    """Return the page's code as one file, and the number of lines before each block."""
    lines: list[str] = []
    before: dict[int, int] = {}
    for block in found:
        if block.kind == "python" and not _file(block):
            before[block.line] = len(lines)
            lines += [*block.source.splitlines(), ""]
    return "\n".join(lines), before


def _remember(file: str, source: str) -> None:
    """Store the source in linecache, so that messages and explanations can quote its lines."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)


def _file(block: Block) -> str | None:
    return block.title if block.title and block.title.endswith(".py") else None


def _run(block: Block, before: dict[int, int], page: str, names: dict[str, object]) -> None:
    """Run a block under a file name by which its lines can be found."""
    file = _file(block)
    if file:
        _remember(file, block.source)
    source = "\n" * before.get(block.line, 0) + block.source
    exec(compile(source, file or page, "exec"), names)


def _printed(block: Block, before: dict[int, int], page: str, names: dict[str, object]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, *_: print(f"{category.__name__}: {message}", file=out)
        try:
            _run(block, before, page, names)
        except Exception as error:
            if error.__cause__ is not None:
                print(f"{_format_error(error.__cause__)}\n\n{_CAUSE}\n", file=out)
            print(_format_error(error), file=out)
    text = _FOREIGN.sub("", out.getvalue())
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


_CAUSE = "The above exception was the direct cause of the following exception:"
# Traceback frames outside the page.
_FOREIGN = re.compile(r'^  File "(?:[/\\<]|[A-Z]:)[^"]*", line .*\n(?:[ ]*\n|    .*\n)*', re.MULTILINE)


def _format_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _run_doctest(block: Block, name: str, names: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(block.source, names, name, name, block.line - 1)
    test.globs = names  # a doctest works on a copy; the next block needs what this one defined
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    if result.failed:
        raise Mismatch("".join(report))


@contextlib.contextmanager
def surroundings() -> Iterator[None]:
    """Provide a fixed seed, a temporary working directory and strict warnings, and restore the table afterwards."""
    import chainrule.fft
    import chainrule.nn.functional  # load all primitives before the table is copied
    from chainrule._src.rules.primitive import TABLE

    rows, here = dict(TABLE), Path.cwd()
    chainrule.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)
            TABLE.clear()
            TABLE.update(rows)
            chainrule.set_default_dtype(chainrule.float32)


def main(arguments: list[str]) -> int:
    update = "--update" in arguments
    other = next((name.removeprefix("--other=") for name in arguments if name.startswith("--other=")), None)
    os.environ.update(ENVIRONMENTS.get(other or "", {}))
    chosen = [Path(name).resolve() for name in arguments if not name.startswith("--")] or pages()
    failures = 0
    for page in chosen:
        text = page.read_text(encoding="utf-8")
        try:
            with surroundings():
                new, _ = run(text, page.name, update=update, other=other)
        except Exception as error:
            failures += 1
            print(f"{page.name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(f"written: {page.relative_to(ROOT)}")
    return min(failures, 1)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
