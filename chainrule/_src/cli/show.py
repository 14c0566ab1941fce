"""Print plain text, with colours if rich is installed and the output is a terminal.

All commands print with these functions.

The environment variable ``NO_COLOR`` turns colours off.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

WIDTH = 80
_CONTROL = {c: f"\\x{c:02x}" for c in (*range(9), *range(11, 32), 127)}  # except tab and newline


def note(text: str) -> None:
    """Print a message to stderr."""
    sys.stdout.flush()
    print(f"chainrule: {clean(text)}", file=sys.stderr, flush=True)


def clean(text: str) -> str:
    """Escape control characters in untrusted text, which a terminal could interpret.

    >>> from chainrule._src.cli.show import clean
    >>> clean("a\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return text.translate(_CONTROL)


class Console:
    """The output of a command."""

    def __init__(self) -> None:
        self.console = _console()

    def line(self, text: str = "", style: str = "") -> None:
        """Print a line without interpreting markup."""
        if self.console is None or not style:
            print(clean(text))
        else:
            rich_text = importlib.import_module("rich.text")
            self.console.print(rich_text.Text(clean(text), style=style), soft_wrap=True)

    def heading(self, text: str) -> None:
        self.line(text, "bold")

    def text(self, text: str, indent: int = 2) -> None:
        """Print text, wrapped between words."""
        for line in _wrapped(text, WIDTH - indent):
            self.line(f"{' ' * indent}{line}".rstrip())

    def pairs(self, rows: Iterable[tuple[str, object]], indent: int = 2, width: int = 0, style: str = "") -> None:
        """Print pairs of a word and a text in two columns, the first at least ``width`` wide."""
        rows = list(rows)
        width = max([width, *(len(word) for word, _ in rows)])
        for word, text in rows:
            for i, part in enumerate(_wrapped(str(text), WIDTH - width - indent - 2)):
                self.line(f"{' ' * indent}{word if i == 0 else '':{width}}  {part}".rstrip(), style)

    def columns(self, words: Sequence[str], indent: int = 2) -> None:
        """Print words in as many columns as fit, in column order."""
        for count in range(len(words), 0, -1):
            rows = -(-len(words) // count)
            columns = [words[i : i + rows] for i in range(0, len(words), rows)]
            widths = [max(map(len, column)) + 2 for column in columns]
            if indent + sum(widths) - 2 <= WIDTH or count == 1:
                break
        for i in range(rows):
            cells = [f"{column[i]:{width}}" for column, width in zip(columns, widths) if i < len(column)]
            self.line(" " * indent + "".join(cells).rstrip())

    def rich(self, thing: object) -> None:
        """Print an object with a ``__rich_console__`` method, or its plain text without colours."""
        if self.console is None:
            print(thing)
        else:
            self.console.print(thing)


def _console() -> Any:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty():
        return None
    if importlib.util.find_spec("rich") is None:
        return None
    return importlib.import_module("rich.console").Console(highlight=False, markup=False)


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap each line of the text between words, to at most ``width`` characters."""
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False, replace_whitespace=False)
    return [line for paragraph in text.splitlines() or [""] for line in wrapper.wrap(paragraph) or [""]]
