"""Fixtures that run commands in this process, in a temporary directory."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from chainrule._src.cli.main import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Folder:
    """A directory with files, and commands run in it."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self.capsys = capsys

    def write(self, name: str, text: str) -> str:
        (self.path / name).write_text(textwrap.dedent(text), encoding="utf-8")
        return name

    def read(self, name: str) -> str:
        return (self.path / name).read_text(encoding="utf-8")

    def run(self, *words: str) -> Ran:
        self.capsys.readouterr()
        try:
            code = main(words)
        except SystemExit as ended:
            code = ended.code  # type: ignore[assignment]
        out, err = self.capsys.readouterr()
        return Ran(code, out, err)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Folder:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return Folder(tmp_path, capsys)


@pytest.fixture
def run(folder: Folder) -> Callable[..., Ran]:
    return folder.run
