"""The cheat sheet: every entry is run with the other library's code and with chainrule's, and both results are equal.

PyTorch's code also runs with chainrule under its name, and that of HIPS autograd with ``chainrule.compat``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.testing import gradcheck

TEXT = (Path(__file__).parents[2] / "docs" / "cheat_sheet.md").read_text(encoding="utf-8")
OURS, *SECTIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)
BLOCK = re.compile(r"^```[{ .\w]*python.*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([^`]+)`[^|`]* \| `([^`]+)` \|$", re.MULTILINE)
STANDS_IN = {
    "PyTorch": ("import torch", "import chainrule as torch"),
    "HIPS autograd": ("autograd", "chainrule.compat.autograd"),
}
TABLES = {section.partition("\n")[0]: section for section in SECTIONS}
LIBRARIES = {"NumPy": "numpy", "SciPy": "scipy", "PyTorch": "torch", "JAX": "jax", "HIPS autograd": "autograd.numpy"}
CASES = [
    (library, by, there, here)
    for library, section in TABLES.items()
    for by in (library, *(["chainrule"] if library in STANDS_IN else []))
    for there, here in ROW.findall(section)
]


def numbers(value: Any) -> Any:
    """Convert a result to arrays for comparison, in lists for containers, by sorted keys for dictionaries."""
    if isinstance(value, dict):
        return [numbers(value[key]) for key in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [numbers(part) for part in value]
    return np.asarray(value.detach().numpy() if hasattr(value, "detach") else value)


def same(found: Any, expected: Any) -> None:
    assert isinstance(found, list) == isinstance(expected, list)
    if isinstance(found, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    else:
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_no_row_is_left_out() -> None:
    assert list(TABLES) == list(LIBRARIES)
    for library, section in TABLES.items():
        lines = [line for line in section.splitlines() if line.startswith("|")]
        assert len(ROW.findall(section)) == len(lines) - 2, library


@pytest.mark.parametrize(("library", "by", "there", "here"), CASES)
def test_row(library: str, by: str, there: str, here: str) -> None:
    pytest.importorskip("scipy")
    ours: dict[str, Any] = {}
    exec(BLOCK.findall(OURS)[0], ours)
    theirs = dict(ours)
    for setup in BLOCK.findall(TABLES[library]):
        if by == "chainrule":
            setup = setup.replace(*STANDS_IN[library])
        else:
            pytest.importorskip(LIBRARIES[library])
        theirs = {}
        exec(setup, theirs)
    same(numbers(eval(here, ours)), numbers(eval(there, theirs)))


@pytest.mark.parametrize("here", sorted({here for *_, here in CASES if "cr." not in here and "f(x)" not in here}))
def test_what_is_written_as_in_numpy_has_a_derivative(here: str) -> None:
    pytest.importorskip("scipy")
    ours: dict[str, Any] = {}
    exec(BLOCK.findall(OURS)[0], ours)
    known = {name: ours[name] for name in "xtA" if re.search(rf"\b{name}\b", here)}
    assert gradcheck(lambda *values: eval(here, ours | dict(zip(known, values, strict=True))), tuple(known.values()))
