"""The examples of solvers run, on small problems."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_brusselator(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    runpy.run_path(str(EXAMPLES / "brusselator.py"))["main"](8)
    said = capsys.readouterr().out
    assert "128 unknowns; the Jacobian has 768 entries of 16384" in said and "BDF with differences" in said


def test_bundle_adjustment(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    runpy.run_path(str(EXAMPLES / "bundle_adjustment.py"))["main"](20)
    said = capsys.readouterr().out
    assert "192 unknowns, 160 residuals, 2080 entries in the Jacobian" in said
    assert float(said.split(" to ")[1].split()[0]) < 0.3
