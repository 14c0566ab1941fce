"""Run the commands in docs/cli.md and compare their output with the page.

``python tests/cli/test_docs.py`` writes the current output into the page.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tempfile
from pathlib import Path

import pytest

from chainrule._src.cli.main import main
from chainrule._src.cli.options import parser

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
FILE = re.compile(r'^```python title="(\w+\.py)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, str]]:
    """Return a block's commands with their output."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2]))


def write_files(page: str, folder: Path) -> None:
    for name, text in FILE.findall(page):
        (folder / name).write_text(text, encoding="utf-8")


def printed(command: str, folder: Path) -> str:
    """Return the output of a command in a terminal, standard output and messages interleaved."""
    program, *words = shlex.split(command)
    assert program == "chainrule"
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(out),
        contextlib.suppress(SystemExit),
    ):
        patch.chdir(folder)
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", "80")
        main(words)
    return out.getvalue()


EXAMPLES = [pair for block in CONSOLE.findall(PAGE.read_text(encoding="utf-8")) for pair in commands(block)]


@pytest.mark.parametrize(("command", "expected"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_example(command: str, expected: str, tmp_path: Path) -> None:
    write_files(PAGE.read_text(encoding="utf-8"), tmp_path)
    assert printed(command, tmp_path).split() == expected.split()


def test_there_is_an_example_of_each_command() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in parser()._subparsers._group_actions[0].choices:  # type: ignore[union-attr]
        assert f"## {name}\n" in text
    assert {command.split()[1] for command, _ in EXAMPLES} == {"explain", "ops", "check"}


def test_every_option_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for command in parser()._subparsers._group_actions[0].choices.values():  # type: ignore[union-attr]
        for option in command._actions:
            assert option.option_strings[-1:] in ([], ["--help"]) or option.option_strings[-1] in text


def rewrite() -> None:
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        write_files(text, Path(folder))

        def run(block: re.Match[str]) -> str:
            pairs = re.findall(r"^\$ (.*)$", block[1], re.MULTILINE)
            shown = [f"$ {command}\n{printed(command, Path(folder)).rstrip()}\n" for command in pairs]
            return "```console\n" + "\n".join(shown) + "```"

        PAGE.write_text(CONSOLE.sub(run, text), encoding="utf-8")


if __name__ == "__main__":
    rewrite()
