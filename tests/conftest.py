"""What several folders of tests use."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest


@pytest.fixture
def calls() -> Callable[[Callable[[], object]], int]:
    """How many functions a function calls, Python's and C's: the work it does, whatever else the machine has to do."""

    def count(function: Callable[[], object]) -> int:
        found = 0

        def profile(frame: object, event: str, argument: object) -> None:
            nonlocal found
            found += event in ("call", "c_call")

        sys.setprofile(profile)
        try:
            function()
        finally:
            sys.setprofile(None)
        return found

    return count
