"""chainrule without the C extension."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.compiling.guards import frames
from chainrule._src.native import AVAILABLE, why_not

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


def test_the_environment_disables_the_extension():
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
def test_a_missing_or_outdated_extension(extension, message):
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
    assert f"<string>:4: RuntimeWarning: chainrule runs without its C extension: {message}" in run.stderr


@pytest.mark.parametrize(
    "arguments, disabled",
    [([], "0"), (["-W", "ignore:chainrule runs without its C extension:RuntimeWarning"], "")],
    ids=["environment", "filter"],
)
def test_the_warning_can_be_disabled(arguments, disabled):
    program = 'import sys; sys.modules["chainrule._src.native._loops"] = None; import chainrule'
    environment = {**os.environ, "CHAINRULE_NATIVE": disabled}
    run = subprocess.run(
        [sys.executable, *arguments, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stderr == ""


_SELF_TEST = """
import sys
import chainrule as cr
from chainrule._src import native
from chainrule._src.native import LOOPS
from chainrule._src.tape import trial
if {broken}:
    trial._bits = lambda x, count=iter(range(100)): next(count)
x = cr.tensor([1.0, 2.0], requires_grad=True)
with cr.no_grad():
    x * x
assert "chainrule._src.rules.programs" not in sys.modules, "the self-test must not run in another mode"
(x * x).sum().backward()
assert x.grad.tolist() == [2, 4]
print(LOOPS.switch_on(False), native.why_not)
"""


@pytest.mark.parametrize("broken", [False, True])
def test_the_first_recorded_operation_runs_the_self_test(broken):
    if not AVAILABLE:
        pytest.skip(f"no extension: {why_not}")
    program = _SELF_TEST.format(broken=broken)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    if not broken:
        assert (run.stdout, run.stderr) == ("True \n", "")
    else:
        assert run.stdout.startswith("False operations run in Python, because in C they record ")
        assert "<string>:13: RuntimeWarning: chainrule runs without its C extension" in run.stderr


@pytest.mark.parametrize(
    "folders, chosen, at_least",
    [
        ("core interpreters seeds optim", ["-k", "not (warned or modes or regions or dtype or printing)"], 900),
        pytest.param("core interpreters autograd seeds optim linalg", ["-m", ""], 3000, marks=pytest.mark.slow),
    ],
    ids=["quick", "all"],
)
def test_the_basic_tests_pass_without_the_extension(folders, chosen, at_least):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *chosen]
    command += [f"tests/{name}" for name in folders.split()]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(
        command, cwd=ROOT, env={**environment, "CHAINRULE_NATIVE": "0"}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-4000:]
    assert int(re.search(r"(\d+) passed", run.stdout)[1]) > at_least


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="later versions have sys.monitoring")
def test_compile_without_frames_of_a_known_layout(monkeypatch):
    """C traces frames only on CPython 3.11, and only if it finds the code objects of frames; else sys.settrace does."""
    monkeypatch.setattr(frames, "native", types.SimpleNamespace(LOOPS=None))
    scale = {"a": 2.0}

    def f(x):
        return np.sum(np.sin(x) * scale["a"])

    compiled, x = cr.compile(cr.grad(f)), np.linspace(0.0, 1.0, 4)
    for scale["a"] in (2.0, 2.0, 3.0):
        assert compiled(x).tobytes() == cr.grad(f)(x).tobytes()
    assert len(compiled.recordings) == 2
