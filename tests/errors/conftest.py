"""Run programs in files, to test messages about their lines and variables."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Ran:
    """The outcome of a program: its variables, exception, warnings and output."""

    names: dict[str, Any]
    error: Exception | None = None
    warnings: list[str] = field(default_factory=list)
    printed: str = ""

    def raised(self, kind: type[Exception], words: str) -> str:
        """Return the error message after checking its type and beginning."""
        assert self.error is not None, "nothing was raised"
        assert type(self.error).__name__ == kind.__name__, repr(self.error)
        text = str(self.error)
        assert text.startswith(words), text
        assert len(text.splitlines()) <= 6, text
        return text


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Ran]:
    """Run a program as t.py, after two imports."""

    def run(source: str) -> Ran:
        lines = ["import numpy as np", "import chainrule as cr", *source.strip("\n").splitlines()]
        path = tmp_path / "t.py"
        path.write_text("\n".join(lines) + "\n")
        ran = Ran({"__name__": "__main__"})
        out = io.StringIO()
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
            warnings.simplefilter("default")
            try:
                exec(compile(path.read_text(), str(path), "exec"), ran.names)
            except Exception as error:
                ran.error = error
        ran.warnings = [str(w.message) for w in caught if w.filename == str(path)]
        ran.printed = out.getvalue()
        return ran

    return run
