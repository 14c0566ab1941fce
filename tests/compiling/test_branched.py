"""The fast path for recordings that read values gives eager results for all branches."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule._src import native
from chainrule._src.compiling.branched import Branched

X = np.linspace(-1, 1, 6)
R = np.random.default_rng(0)


def same(compiled, function, *args):
    got, want = compiled(*args), function(*args)
    assert type(got) is type(want)
    for x, y in zip(got, want, strict=True) if isinstance(got, (tuple, list)) else [(got, want)]:
        assert type(x) is type(y)
        assert np.asarray(x).dtype == np.asarray(y).dtype and np.asarray(x).tobytes() == np.asarray(y).tobytes()


def short(compiled):
    return isinstance(compiled._shortcut, Branched) or not native.AVAILABLE


def test_either_way():
    def f(x):
        if x[0] > 0:
            return np.tanh(x)
        return x * 2.0

    compiled = cr.compile(f)
    for sign in (1, 1, 1, -1, -1, 1, -1, 1):
        same(compiled, f, sign * X)
    assert short(compiled) and len(compiled.recordings) == 2


def test_as_often_as_it_takes():
    def halve(x):
        count = 0
        while np.sum(x * x) > 1e-2:
            x, count = x * 0.5, count + 1
        return x, np.sum(x)

    compiled = cr.compile(halve)
    for _ in range(30):
        same(compiled, halve, R.standard_normal(4) * 10.0 ** R.integers(-3, 2))
    assert short(compiled)


def test_what_was_computed_before_is_used_behind():
    scale = np.full(6, 3.0)

    def f(x, t):
        y = np.tanh(x)
        part = y[1:4]
        turned = np.outer(x, y).T
        if t > 0.5:
            return part * scale[:3], turned @ x
        if t > 0.0:
            return (y * scale,)
        return [x, np.sum(part)]

    compiled = cr.compile(f)
    for t in (1.0, 0.2, -1.0, 1.0, 1.0, 0.2, 0.2, -1.0, -1.0):
        same(compiled, f, R.standard_normal(6), t)
    scale *= 2.0
    same(compiled, f, X, 1.0)
    same(compiled, f, X, 0.2)
    assert short(compiled)


def test_other_arguments():
    def f(x, t):
        return x * t if t > 1.0 else x

    compiled = cr.compile(f)
    for _ in range(3):
        same(compiled, f, X, 2.0)
    for x in (X[:3], X.astype("f4"), X[::2], X.reshape(2, 3)):
        for t in (2.0, 0.5):
            same(compiled, f, x, t)
            same(compiled, f, X, t)
    same(compiled, f, X, np.float64(2.0))
    same(compiled, f, X, np.array(2.0))
    same(compiled, f, X, 2)
    same(compiled, f, X, 2.0)
    with pytest.raises(TypeError):
        compiled(X)


def test_an_argument_that_is_read_alone():
    """Only the shape of the second argument is used."""

    def f(x, other):
        return x * other.ndim if x[0] > 0 else x

    compiled = cr.compile(f)
    for other in (X, X.reshape(2, 3), np.ones(()), X):
        for sign in (1, -1):
            same(compiled, f, sign * X, other)
            same(compiled, f, sign * X, other)


def test_gradients_of_functions_that_branch():
    def loss(x):
        return np.sum(x**3) if np.max(x) > 1.0 else np.sum(np.sin(x))

    eager = cr.func.value_and_grad(loss)
    compiled = cr.compile(eager)
    for size in (0.5, 0.7, 2.0, 3.0, 0.1, 2.0):
        same(compiled, eager, size * np.abs(X))
    assert len(compiled.recordings) == 2


def test_tensors_of_the_surrounding_program():
    w = cr.tensor([1.0, 2.0])

    def f(x):
        return x * w if x[0] > 0 else x + w

    compiled = cr.compile(f)
    for _ in range(3):
        for x in (np.ones(2), -np.ones(2)):
            assert compiled(x).tolist() == f(x).tolist()
    w.mul_(2.0)
    for x in (np.ones(2), -np.ones(2)):
        assert compiled(x).tolist() == f(x).tolist()


def test_one_end_that_changes_something():
    seen = cr.zeros(2)

    def f(x):
        if x[0] > 0:
            seen.add_(1.0)
            return x * 2.0
        return x

    compiled = cr.compile(f)
    for k in range(4):
        compiled(np.ones(2))
        compiled(-np.ones(2))
        assert seen.tolist() == [k + 1.0] * 2


def test_floating_point_exceptions():
    compiled = cr.compile(lambda x: 1.0 / x if x[0] < 2.0 else x)
    for _ in range(3):
        compiled(X)
        compiled(X + 10.0)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        compiled(np.zeros(6))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        compiled(np.zeros(6))


def test_an_error_comes_as_it_is():
    def f(x):
        if x[0] > 0:
            raise ValueError("positive")
        return x

    compiled = cr.compile(f)
    for _ in range(3):
        same(compiled, f, -np.ones(2))
    with pytest.raises(ValueError, match="positive"):
        compiled(np.ones(2))


def test_results_are_the_callers_own():
    compiled = cr.compile(lambda x: (x, np.tanh(x)) if x[0] > 0 else x)
    x = np.ones(3)
    for _ in range(3):
        compiled(x)
    first, second = compiled(x)
    first += 1.0
    second += 1.0
    assert x.tolist() == [1.0] * 3
    assert compiled(x)[1].tolist() == np.tanh(x).tolist()
