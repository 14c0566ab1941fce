"""The operations agree with PyTorch: values, dtypes, shapes, nodes, gradients, exception types."""

from __future__ import annotations

import json
import pathlib
import warnings

import cases
import numpy as np
import observe
import pytest

from behaviour import torch

RECORDED = json.loads(pathlib.Path(__file__).with_name("recorded.json").read_text())


@pytest.mark.parametrize("block", RECORDED)
def test_cases(block: str) -> None:
    differences = {}
    for case, recorded in RECORDED[block].items():
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            got = observe.observe(torch, case, 17)
        found = observe.difference(recorded, got, cases.PRECISE.get(block))
        if found:
            differences[case] = found
    assert not differences


def test_every_recorded_case_is_listed() -> None:
    listed = {case for items in cases.BLOCKS.values() for case in items}
    assert {case for found in RECORDED.values() for case in found} <= listed
