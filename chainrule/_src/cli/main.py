"""The entry point of the command line: parse the arguments, run a command, return the exit code.

The module of a command loads when the command runs; ``chainrule --version`` loads none of them.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from chainrule._src.cli.options import parser
from chainrule._src.cli.outcome import BAD_USAGE, OK, SCRIPT_RAISED, BadUsage, ScriptRaised


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: the arguments after the program's name; by default ``sys.argv[1:]``.

    Returns:
        The exit code: 0 ok, 1 a check failed, 3 the user's program raised. Bad usage exits with 2.

    >>> from chainrule._src.cli.main import main
    >>> main(["ops", "exp", "--formula"])
    x: g * out
    0
    """
    words = list(sys.argv[1:] if argv is None else argv)
    words, rest = _split(words)
    commands = parser()
    options = commands.parse_args(words)
    if rest is not None and options.command != "explain":
        commands.error("only `chainrule explain script.py ... -- arguments` takes arguments after --")
    options.arguments = rest or []
    _never_fail_to_print()
    try:
        code: int = importlib.import_module(f"chainrule._src.cli.{options.command}").run(options)
        sys.stdout.flush()
        return code
    except BadUsage as error:
        sys.stdout.flush()
        print(f"chainrule {options.command}: {error}", file=sys.stderr)
        return BAD_USAGE
    except ScriptRaised as raised:
        sys.stdout.flush()
        sys.stderr.write(raised.text)
        return SCRIPT_RAISED
    except BrokenPipeError:  # the reader closed the pipe, as in `chainrule ops | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _split(words: list[str]) -> tuple[list[str], list[str] | None]:
    """Return the arguments before and after ``--`` (None if there is no ``--``)."""
    if "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _never_fail_to_print() -> None:
    """Print characters that the terminal's encoding lacks as escapes, instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
