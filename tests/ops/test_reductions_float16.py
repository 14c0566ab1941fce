"""Reductions of float16, whose intermediate sums and squares overflow early: computed in float32, as in PyTorch."""

from __future__ import annotations

import pytest

import chainrule as cr

BIG = 60000.0


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x.mean(), BIG),
        (lambda x: x.var(), 0.0),
        (lambda x: x.std(), 0.0),
        (lambda x: (x / 200).norm(), 600.0),
        (lambda x: cr.mean(x.reshape(2, 2), 0)[0], BIG),
    ],
)
def test_no_overflow_on_the_way(function, expected):
    x = cr.full((4,), BIG, dtype=cr.float16, requires_grad=True)
    y = function(x)
    assert y.dtype == cr.float16 and y.item() == expected
    y.backward()
    assert x.grad.dtype == cr.float16 and cr.isfinite(x.grad).all()
