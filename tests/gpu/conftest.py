"""A substitute for CuPy, for the tests in this directory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import chainrule._src.arrays.gpu as gpu

from . import standin


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Install the substitute as the module ``cupy``."""
    with monkeypatch.context() as patch:
        for name in [name for name in sys.modules if name.partition(".")[0] in ("cupy", "cupyx")]:
            patch.delitem(sys.modules, name)
        for name, module in standin.MODULES.items():
            patch.setitem(sys.modules, name, module)
        gpu._import_cupy.cache_clear()
        yield standin.cupy
    gpu._import_cupy.cache_clear()
    gpu.seed_generators(0)
