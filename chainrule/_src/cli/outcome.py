"""How a command can end."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

OK, CHECK_FAILED, BAD_USAGE, SCRIPT_RAISED = range(4)


class BadUsage(Exception):
    """The command line asks for something that is not there, or cannot be."""


class ScriptRaised(Exception):
    """The user's program raised; ``text`` is its traceback, and what else there is to say."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` Did you mean ...?``, or nothing.

    >>> from chainrule._src.cli.outcome import did_you_mean
    >>> did_you_mean("softmaks", ["softmax", "exp"])
    ' Did you mean softmax?'
    """
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, names, 3) or [n for n in names if n.lower() == name.lower()]
    return f" Did you mean {' or '.join(close)}?" if close else ""
