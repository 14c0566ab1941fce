"""Check that the files in the reading order of the architecture page are the ones that run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import chainrule as cr
from chainrule._src.tape.eager import LOOPS

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "chainrule" / "_src"
TEXT = (ROOT / "docs" / "architecture.md").read_text()
SECTION = TEXT[TEXT.index("## Reading order") : TEXT.index("## The op table")]
FILES = re.findall(r"^\d\. `([a-z_/]+\.py)`", SECTION, re.M)


def test_the_files_exist() -> None:
    assert len(FILES) == 5
    assert all((PACKAGE / file).is_file() for file in FILES)


def test_a_product_and_its_backward_pass_run_in_them() -> None:
    x, z = cr.tensor([1.0, 2.0], requires_grad=True), cr.tensor([3.0, 4.0], requires_grad=True)
    seed = cr.ones(2)
    seen = set()

    def profile(frame: Any, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            seen.add(str(path.relative_to(PACKAGE)))

    before = LOOPS is not None and LOOPS.switch_on(False)
    sys.setprofile(profile)
    try:
        y = x * z
        y.backward(seed)
    finally:
        sys.setprofile(None)
        if before:
            LOOPS.switch_on(True)
    assert x.grad.tolist() == [3.0, 4.0]
    others = {
        "transforms/backward.py",
        "tape/node.py",
        "tape/protocol.py",
        "tape/tensor.py",
        "tape/versions.py",
        "tape/fp_warnings.py",
        "messages/source_locations.py",
    }  # checks of arguments, and source locations of nodes and warnings
    assert set(FILES) <= seen <= set(FILES) | others
