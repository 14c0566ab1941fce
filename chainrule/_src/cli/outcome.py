"""Exit codes and exceptions of the commands. The commands raise the exceptions, and ``main`` returns the exit codes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

OK, CHECK_FAILED, BAD_USAGE, SCRIPT_RAISED = range(4)


class BadUsage(Exception):
    """An error of the command line: an option, file or name that is missing or invalid."""


class ScriptRaised(Exception):
    """The user's program raised an exception; ``text`` is its traceback, with a hint."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean ...?``, or an empty string.

    >>> from chainrule._src.cli.outcome import did_you_mean
    >>> did_you_mean("softmaks", ["softmax", "exp"])
    ' Did you mean softmax?'
    """
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, names, 3) or [n for n in names if n.lower() == name.lower()]
    return f" Did you mean {' or '.join(close)}?" if close else ""
