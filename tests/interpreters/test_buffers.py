"""Buffers filled inside a transformed function, for which no single array exists."""

import numpy as np

import chainrule as cr


def filled(x):
    buffer = cr.zeros(3, dtype=cr.float64)
    buffer[0] = x[0] * 2
    buffer[1:] = x[:2] ** 2
    buffer.mul_(3)
    buffer[1].add_(x[0])
    return buffer


def by_hand(x):
    return np.array([6 * x[0], 3 * x[0] ** 2 + x[0], 3 * x[1] ** 2])


X = np.array([[0.5, 2.0, 1.0], [3.0, -1.0, 4.0]])


def test_vmap():
    np.testing.assert_allclose(cr.vmap(filled)(X), [by_hand(x) for x in X])


def test_jvp():
    value, tangent = cr.func.jvp(filled, (X[0],), (np.array([1.0, 10.0, 100.0]),))
    np.testing.assert_allclose(value, by_hand(X[0]))
    np.testing.assert_allclose(tangent, [6.0, 6 * 0.5 + 1, 6 * 2.0 * 10])


def test_gradient_of_each_example():
    rows = cr.vmap(cr.func.grad(lambda x: filled(x).sum()))(X)
    np.testing.assert_allclose(rows, [[6 + 6 * x[0] + 1, 6 * x[1], 0] for x in X])


def test_gradient_through_vmap():
    x = cr.tensor(X, requires_grad=True)
    cr.vmap(filled)(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[7 + 6 * r[0], 6 * r[1], 0] for r in X])


def test_views_taken_before_the_write_see_it():
    def f(x):
        buffer = cr.zeros(2, dtype=cr.float64)
        first = buffer[0]
        buffer[:] = x[:2]
        return first * 2

    np.testing.assert_allclose(cr.vmap(f)(X), 2 * X[:, 0])
