"""The command itself: versions, help, exit codes, imported modules."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import chainrule
from chainrule._src.cli.options import parser


def python(*words: str, **kwargs: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        **kwargs,
    )  # type: ignore[call-overload,no-any-return]


def test_version_loads_little() -> None:
    ran = python("-X", "importtime", "-m", "chainrule", "--version")
    assert ran.returncode == 0 and ran.stdout.startswith(f"chainrule {chainrule.__version__}, operations in ")
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "chainrule._src.cli.main" in loaded
    heavy = ("rich", "chainrule._src.explaining", "chainrule.testing", "chainrule.nn", "chainrule._src.cli.ops")
    assert [name for name in loaded if name.split(".")[0] == "rich" or name.startswith(heavy)] == []


@pytest.mark.parametrize("command", [[], ["explain"], ["ops"], ["check"], ["demo"]])
def test_help_has_examples_and_exit_codes(run, command) -> None:
    ran = run(*command, "--help")
    assert ran.code == 0 and "exit codes:" in ran.out and "your program raised" in ran.out
    assert not command or f"  chainrule {command[0]}" in ran.out


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["opps"],
        ["ops", "--nope"],
        ["check"],
        ["explain"],
        ["check", "f.py::f", "--order", "3"],
        ["ops", "--", "exp"],
    ],
)
def test_bad_usage(run, words) -> None:
    ran = run(*words)
    assert ran.code == 2 and ran.out == "" and "usage: chainrule" in ran.err


def test_every_option_is_described() -> None:
    for action in parser()._subparsers._group_actions[0].choices.values():  # type: ignore[union-attr]
        assert all(option.help for option in action._actions)


def test_output_that_nobody_reads() -> None:
    code = (
        "import os, sys; from chainrule._src.cli.main import main\n"
        "reader, writer = os.pipe(); os.close(reader); os.dup2(writer, 1); sys.exit(main(['ops']))"
    )
    ran = python("-c", code)
    assert ran.returncode == 0 and ran.stderr == ""


def test_a_terminal_that_lacks_signs() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ran = subprocess.run([sys.executable, "-m", "chainrule", "ops", "exp"], capture_output=True, env=environment)
    assert ran.returncode == 0 and rb"\u2202L/\u2202x  g * out" in ran.stdout
