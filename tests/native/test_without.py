"""Tests that also apply without the extension."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
import numpy as np
import chainrule
assert not [name for name in sys.modules if name.startswith(("chainrule._src.native._loops", "chainrule._src.compiling"))]
f = chainrule.compile(chainrule.grad(lambda x: np.sum(np.tanh(x) * x)))
x = np.linspace(-1.0, 1.0, 5)
assert f(x).tobytes() == f(x + 0).tobytes() == chainrule.grad(lambda x: np.sum(np.tanh(x) * x))(x).tobytes()
from chainrule._src import native
print(native.AVAILABLE, native.why_not)
try:
    native.loop(np.add, 0)
except RuntimeError as error:
    print(error)
"""


def test_the_environment_can_say_so_and_importing_chainrule_loads_nothing_of_it():
    environment = {**os.environ, "CHAINRULE_NATIVE": "0"}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.splitlines()
    assert first == "False the extension is not loaded: CHAINRULE_NATIVE=0 in the environment"
    assert (
        second
        == "chainrule._src.native is not available: the extension is not loaded: CHAINRULE_NATIVE=0 in the environment"
    )


@pytest.mark.parametrize(
    "extension, message",
    [
        ("None", "the extension was not built: there was no C compiler when chainrule was installed"),
        (
            "types.SimpleNamespace(VERSION=0)",
            "the extension is not loaded: it was built from other sources: `make native`, or install chainrule again",
        ),
    ],
)
def test_an_extension_that_is_not_there_or_of_other_sources(extension, message):
    program = f"""
import sys, types
sys.modules["chainrule._src.native._loops"] = {extension}
import chainrule
from chainrule._src import native
x = chainrule.tensor([1.0, 2.0], requires_grad=True)
(x * x).sum().backward()
assert x.grad.tolist() == [2, 4]
print(native.why_not)
"""
    environment = {name: value for name, value in os.environ.items() if name != "CHAINRULE_NATIVE"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == message, run.stderr


@pytest.mark.parametrize(
    "folders, chosen, at_least",
    [
        ("core interpreters seeds optim", ["-k", "not (warned or modes or regions or dtype or printing)"], 900),
        pytest.param("core interpreters autograd seeds optim linalg", ["-m", ""], 3000, marks=pytest.mark.slow),
    ],
    ids=["quick", "all"],
)
def test_what_everything_rests_on_passes_without_it(folders, chosen, at_least):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *chosen]
    command += [f"tests/{name}" for name in folders.split()]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(
        command, cwd=ROOT, env={**environment, "CHAINRULE_NATIVE": "0"}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-4000:]
    assert int(re.search(r"(\d+) passed", run.stdout)[1]) > at_least
