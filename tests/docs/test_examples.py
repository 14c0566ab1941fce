"""The example of compiled functions, which compares its results itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "compiled_fit.py"


def test_compiled_fit() -> None:
    pytest.importorskip("sklearn")
    surroundings = os.environ | {
        "OPENBLAS_NUM_THREADS": "1"
    }  # SciPy's products of small matrices do not benefit from two threads
    ran = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, env=surroundings)
    assert ran.returncode == 0, ran.stderr
    assert "one recording: True" in ran.stdout and "the same weights, to the last bit: True" in ran.stdout
