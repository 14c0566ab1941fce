"""Writing in place where transformations are nested: values of one level into arrays of another."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jacfwd, jacrev, jvp, vmap

X = np.array([1.0, 2.0, 3.0])


def _into_outer(a, b):
    y = a * 1
    y[0] = b[0]
    return (y * b).sum()


def _into_outer_view(a, b):
    y = a * 1
    y[:2] *= b[:2]
    return (y * b).sum()


def _into_outer_rows(a, b):
    y = (a * a[:, None]) * 1
    row = y[1]
    row *= b
    return (y * y * b).sum()


def _whole(a, b):
    y = a * 1
    y *= b
    return (y * b).sum()


def _into_inner(a, b):
    y = b * 1
    y[0] = a[0]
    return (y * b).sum()


def _all_of_inner(a, b):
    y = b * 1
    y[...] = a * 2
    return (y * b).sum()


def _indices_of_inner(a, b):
    y = b * 1
    y[[0]] = a[0]
    y[1:2] += a[1:2]
    return (y * b).sum()


WRITES = [_into_outer, _into_outer_view, _into_outer_rows, _whole, _into_inner, _all_of_inner, _indices_of_inner]


def _slopes(f, x):
    return np.array([(f(x + d) - f(x - d)) / 2e-6 for d in 1e-6 * np.eye(len(x))])


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("face", [np.asarray, cr.tensor])
@pytest.mark.parametrize("outer", [grad, jacrev, jacfwd])
def test_both_derivatives_survive_a_write(write, face, outer) -> None:
    ones = face(np.ones(3))
    forward = lambda a: jvp(lambda b: write(a, b), (a,), (ones,))[1]
    reverse = lambda a: (grad(lambda b: write(a, b))(a) * ones).sum()
    mapped = lambda a: vmap(lambda k: write(a, k * a))(a).sum()
    for f in (forward, reverse, mapped):
        values = cr.Array if face is np.asarray else cr.tensor
        by_numbers = _slopes(lambda x, f=f, values=values: float(f(values(x))), X)
        np.testing.assert_allclose(np.asarray(outer(f)(face(X.copy()))), by_numbers, rtol=1e-6)


@pytest.mark.parametrize("make", [lambda a: a * 1, np.zeros_like])
@pytest.mark.parametrize("face", [np.asarray, cr.tensor])
def test_what_a_jvp_wrote_outside_cannot_be_used_as_if_it_were_plain(make, face) -> None:
    def f(a):
        y = make(a)

        def inner(b):
            y[:] = b * 2
            return (y * b).sum()

        jvp(inner, (a,), (a,))
        return (y * y).sum()

    with pytest.raises(RuntimeError, match="escaped from inside a function: it was written or made inside jvp"):
        grad(f)(face(X))
