"""Functions of SciPy and scikit-learn on Arrays and tensors: those of the guide's table have correct gradients."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

HERE = Path(__file__).parent
GUIDE = HERE.parents[1] / "docs" / "guide" / "array_api.md"


def version(package: str) -> tuple[int, ...]:
    """Return the version of an installed package without importing it, or ()."""
    try:
        return tuple(int(n) for n in re.findall(r"\d+", metadata.version(package))[:2])
    except metadata.PackageNotFoundError:
        return ()


def table() -> dict[str, list[set[str]]]:
    """Return the guide's table: module -> functions with correct gradients, functions that raise."""
    rows = re.findall(r"^\| ((?:scipy|sklearn)\S*) \| (.*) \| (.*) \|$", GUIDE.read_text(), re.MULTILINE)
    return {module: [set(re.findall(r"`([^`]+)`", cell)) for cell in cells] for module, *cells in rows}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, str]]:
    if version("numpy") < (2, 1) or version("scipy") < (1, 17) or version("scikit-learn") < (1, 9):
        pytest.skip("the guide's table is of NumPy 2.1, SciPy 1.17, scikit-learn 1.9 and later")
    ran = subprocess.run([sys.executable, HERE / "dispatching.py"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, dict[str, str]] = {}
    for line in ran.stdout.splitlines():
        module, name, word = line.split(": ", 2)
        found.setdefault(module, {})[name] = word
    return found


def test_gradients_of_the_table(outcomes):
    works = {(module, name) for module, (names, _) in table().items() for name in names}
    wrong = {key: outcomes[key[0]].get(key[1]) for key in works if outcomes[key[0]].get(key[1]) != "ok"}
    assert not wrong
    assert len(works) > 200


def test_what_does_not_work_says_so(outcomes):
    """An error that mentions the derivative, or nan; never another number."""
    told = re.compile(
        r"(RuntimeError|TypeError|NotImplementedError): .*(derivative|no rule|gradient)|nan: |ok$|constant$"
    )
    silent = [(m, name, word) for m, found in outcomes.items() for name, word in found.items() if not told.match(word)]
    assert not silent


def test_every_call_is_in_the_table(outcomes):
    for module, (works, raises) in table().items():
        listed = works | raises
        assert listed == {name for name, word in outcomes[module].items() if word != "constant"}
