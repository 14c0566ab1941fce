"""The examples in the docstrings of all modules are run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import chainrule

MODULES = ["chainrule", *(found.name for found in pkgutil.walk_packages(chainrule.__path__, "chainrule."))]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_examples(name: str) -> None:
    chainrule.manual_seed(0)
    if name.endswith("_arrays"):  # what is to be known of another library's
        pytest.importorskip(name.rpartition(".")[2].removesuffix("_arrays"))
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples; the report is above"


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    found = sum(bool(test.examples) for name in ("chainrule._src.transforms.grad", "chainrule._src.transforms.backward")
                for test in finder.find(importlib.import_module(name)))  # fmt: skip
    assert found >= 5
