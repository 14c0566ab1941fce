"""Run the examples in the docstrings of all modules."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import chainrule

MODULES = ["chainrule", *(found.name for found in pkgutil.walk_packages(chainrule.__path__, "chainrule."))]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


class Finder(doctest.DocTestFinder):
    """Assigns functions to the file that defines them, and classes with their methods to their public module."""

    def _from_module(self, module: ModuleType, object: object) -> bool:
        if not inspect.isfunction(object) or hasattr(object, "__wrapped__"):
            written = getattr(inspect.unwrap(object), "__globals__", None) if inspect.isfunction(object) else None
            return super()._from_module(module, object) or written is module.__dict__
        return object.__globals__ is module.__dict__ or "." in object.__qualname__.rpartition("<locals>.")[2]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_examples(name: str) -> None:
    chainrule.manual_seed(0)
    if name.endswith("_arrays"):  # skip sample data of another library
        pytest.importorskip(name.rpartition(".")[2].removesuffix("_arrays"))
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for test in Finder().find(importlib.import_module(name), name):
        if test.examples:  # each run checks all cached source files
            runner.run(test)
    result = runner.summarize(verbose=False)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples; the report is above"


@pytest.mark.parametrize(
    "example",
    ["chainrule.autograd.grad", "chainrule.Tensor.backward", "chainrule.Array", "chainrule.jacobians.Jacobian",
     "chainrule._src.transforms.grad.grad", "chainrule.autograd.function.Function", "chainrule.compiler.Compiled.into"],
)  # fmt: skip
def test_examples_are_found(example: str) -> None:
    name = next(name for name in sorted(MODULES, key=len, reverse=True) if example.startswith(name + "."))
    assert any(test.name == example and test.examples for test in Finder().find(importlib.import_module(name), name))
