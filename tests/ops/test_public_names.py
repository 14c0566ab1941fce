"""The public API: exported names, lazy loading, docstrings."""

from __future__ import annotations

import subprocess
import sys
import types

import chainrule as cr

MODULES = [
    "accelerator",
    "amp",
    "array_api",
    "backends",
    "compat",
    "compiler",
    "config",
    "distributions",
    "autograd",
    "cuda",
    "distributions",
    "explaining",
    "fft",
    "func",
    "implicit",
    "jacobians",
    "jit",
    "linalg",
    "masked",
    "nn",
    "optim",
    "primitive",
    "random",
    "return_types",
    "scipy",
    "serialization",
    "signal",
    "sparse",
    "special",
    "stats",
    "testing",
    "tree",
    "utils",
]


def test_all_lists_what_is_there() -> None:
    missing = [name for name in cr.__all__ if not hasattr(cr, name)]
    assert missing == []
    assert len(cr.__all__) == len(set(cr.__all__))
    modules = {name for name in cr.__all__ if isinstance(getattr(cr, name), types.ModuleType)}
    assert modules == set(MODULES), "the package's own floors are not for users"
    public = {
        name
        for name, thing in vars(cr).items()
        if not name.startswith("_") and not isinstance(thing, types.ModuleType) and name not in _INTERNAL
    }
    assert public - set(cr.__all__) == set()


_INTERNAL = {"load_ipython_extension"}


def test_every_function_has_a_docstring() -> None:
    bare = [name for name in cr.__all__ if callable(getattr(cr, name)) and not getattr(cr, name).__doc__]
    assert bare == []


def test_submodules_load_when_first_used() -> None:
    code = (
        "import sys, chainrule as cr\n"
        "assert 'chainrule.nn' not in sys.modules and 'chainrule.testing' not in sys.modules\n"
        "cr.linalg, cr.nn.functional, cr.testing.gradcheck\n"
        "assert {'linalg', 'nn', 'testing'} <= set(dir(cr))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
