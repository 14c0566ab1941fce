"""The stubs of the public namespaces are up to date."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "stubs.py"
SPEC = importlib.util.spec_from_file_location("stubs", TOOL)
assert SPEC is not None and SPEC.loader is not None
stubs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(stubs)


@pytest.mark.parametrize("path, text", stubs.stubs().items(), ids=lambda value: getattr(value, "stem", ""))
def test_stubs_are_up_to_date(path: Path, text: str) -> None:
    assert path.read_text() == text, "run python tools/stubs.py"


def test_a_stub_shows_signatures_as_users_call_the_functions() -> None:
    text = stubs.stubs()[stubs.ROOT / "chainrule" / "__init__.pyi"]
    assert (
        "def cumsum(input: TensorLike, dim: builtins.int, *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:"
        in text
    )
    assert "from chainrule._src.tape.tensor import Tensor as Tensor" in text
    assert "def erf(" in text
