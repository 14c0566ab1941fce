"""The remarks of ``explain`` on operands that broadcast unintentionally."""

import numpy as np
import pytest

import chainrule as cr

X, Y = cr.ones(5, 2), cr.arange(5.0)
SQUARE = cr.ones(3, 3)


def kinds(e):
    return [lesson.kind for lesson in e.lessons if lesson.kind in ("stretched_to_square", "reduced_without_keepdims")]


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda out: ((out[:, :1] - Y) ** 2).mean(), "out[:, :1] (5, 1) and Y (5,) are broadcast to (5, 5)"),
        (lambda out: ((Y - out[:, :1]) ** 2).sum(1).mean(), "Use Y.reshape(out[:, :1].shape)."),
        (lambda out: cr.sub(out[:, :1], Y).abs().mean(), "sub combines every element of one with every element"),
        (lambda out: (out[:, :1] * Y).sum(), "mul combines every element of one with every element"),
        (lambda out: np.mean(np.tanh(out[:, :1] - np.arange(5.0)) ** 2), "np.arange(5.0) (5,) are broadcast to (5, 5)"),
    ],
)
def test_a_column_that_meets_a_row_before_a_sum(loss, said):
    w = cr.ones(2, 3, requires_grad=True)
    e = cr.explain(lambda w: loss(X @ w))(w)
    assert kinds(e) == ["stretched_to_square"]
    (text,) = [lesson.text for lesson in e.lessons if lesson.kind == "stretched_to_square"]
    assert said in text and "nearly always a mistake" in text
    assert said.split()[0] in str(e) and e.to_dict()["lessons"][0]["kind"] == "stretched_to_square"


@pytest.mark.parametrize(
    "loss",
    [
        lambda out: ((out[:, :1] - Y[:, None]) ** 2).mean(),
        lambda out: ((out[:, 0] - Y) ** 2).mean(),
        lambda out: ((out[:, 0][:, None] - Y) ** 2).mean(),  # all pairs are intended
        lambda out: ((out[:, 0].reshape(5, 1) - Y) ** 2).mean(),
        lambda out: (cr.exp(out[:, :1] - Y) @ Y).sum(),  # a matrix is intended
        lambda out: ((out - out.mean(1, keepdim=True)) ** 2).mean(),
        lambda out: ((out[:, :1] - 1) ** 2).mean(),
        lambda out: ((out[:1, :1] - Y[:1]) ** 2).mean(),
    ],
)
def test_what_is_meant_is_no_mistake(loss):
    e = cr.explain(lambda w: loss(X @ w))(cr.ones(2, 3))
    assert kinds(e) == []


def test_all_pairs_of_a_column_with_a_name():
    x = cr.arange(5.0, requires_grad=True)
    column = x[:, None]
    difference = column - x
    assert kinds(cr.explain((difference**2).sum())) == []


@pytest.mark.parametrize(
    ("function", "lost"),
    [
        (lambda W: (W / W.sum(1)).square().sum(), True),
        (lambda W: np.sum((W - np.mean(W, axis=-1)) ** 2), True),
        (lambda W: (W / W.sum(0)).square().sum(), False),
        (lambda W: (W / W.sum(1, keepdim=True)).square().sum(), False),
        (lambda W: (W / (2 * W).sum(1)).square().sum(), False),
    ],
)
def test_a_reduction_of_a_square_without_keepdims(function, lost):
    e = cr.explain(function)(SQUARE)
    assert kinds(e) == ["reduced_without_keepdims"] * lost
    if lost:
        assert "has one number for each row of W, but is broadcast along its columns" in e.lessons[0].text
