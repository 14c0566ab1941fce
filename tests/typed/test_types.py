"""Type checkers see the public API: functions that transformations return keep their parameters and results."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typed_programs

import chainrule as cr

ROOT = Path(__file__).parents[2]


def test_the_programs_run():
    typed_programs.right()


def test_mypy_finds_the_marked_errors_only():
    pytest.importorskip("mypy", reason="make lint runs mypy, too")
    command = [sys.executable, "-m", "mypy", "tests/typed/typed_programs.py"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize(
    "transform",
    [cr.grad, cr.value_and_grad, cr.grad_and_value, cr.vmap, cr.jacrev, cr.jacfwd, cr.func.hessian, cr.compile],
)
def test_wrapped_functions_keep_their_signature_name_and_docstring(transform):
    made = transform(typed_programs.energy)
    assert inspect.signature(made) == inspect.signature(typed_programs.energy)
    assert made.__name__ == "energy" and made.__doc__ == "Return Σ xᵖ."
    with pytest.raises(TypeError, match="exponent"):
        made(np.ones((2, 3)), exponent=3)
