"""``tensor[index]`` with PyTorch's semantics: integers are applied first, then arrays. (``array[index]`` is NumPy's.)"""

import numpy as np
import pytest

import chainrule as cr

ROWS = [1, 0, 1, 2]
INDICES = [  # an index of a tensor of shape (3, 4, 5, 6); the same in steps; the resulting shape in PyTorch
    (np.s_[0, :, ROWS], [np.s_[0], np.s_[:, ROWS]], (4, 4, 6)),
    (np.s_[:, ROWS, :, 1], [np.s_[..., 1], np.s_[:, ROWS]], (3, 4, 5)),
    (np.s_[0, 1:3, :, ROWS], [np.s_[0], np.s_[1:3], np.s_[:, :, ROWS]], (2, 5, 4)),
    (np.s_[-1, ..., ROWS], [np.s_[-1], np.s_[..., ROWS]], (4, 5, 4)),
    (np.s_[0, None, ROWS], [np.s_[0], np.s_[None, ROWS]], (1, 4, 5, 6)),
    (np.s_[0, :, [True, False, True, False, True]], [np.s_[0], np.s_[:, [0, 2, 4]]], (4, 3, 6)),
    (np.s_[:, [[True, False, True, False, True]] * 4, 2], [np.s_[..., 2], np.s_[:, np.repeat(range(4), 3), [0, 2, 4] * 4]], (3, 12)),
    (np.s_[cr.tensor(2), :, ROWS], [np.s_[2], np.s_[:, ROWS]], (4, 4, 6)),
    (np.s_[np.array(2), :, ROWS], [np.s_[2], np.s_[:, ROWS]], (4, 4, 6)),
    (np.s_[1, :, ROWS, ROWS], [np.s_[1], np.s_[:, ROWS, ROWS]], (4, 4)),
    (np.s_[ROWS, :, 1, ROWS], [np.s_[:, :, 1], np.s_[ROWS, :, ROWS]], (4, 4)),
    (np.s_[:, ROWS, ..., ROWS, :], [np.s_[:, ROWS, ROWS]], (3, 4, 6)),
]  # fmt: skip


@pytest.mark.parametrize(("index", "steps", "shape"), INDICES, ids=range(len(INDICES)))
def test_integers_choose_before_arrays_meet(index, steps, shape):
    x = np.random.default_rng(0).standard_normal((3, 4, 5, 6))
    x = cr.tensor(x, requires_grad=True)
    expected = x
    for step in steps:
        expected = expected[step]
    got = x[index]
    assert got.shape == expected.shape == shape and cr.equal(got, expected)
    weights = cr.arange(got.numel(), dtype=cr.float64).reshape(shape)
    (grad,), (grad_expected,) = (cr.autograd.grad((y * weights).sum(), x) for y in (got, expected))
    assert cr.equal(grad, grad_expected)
    assert cr.equal(cr.func.jvp(lambda x: x[index], (x,), (2 * x,))[1], 2 * expected)
    assert cr.equal(cr.vmap(lambda x: x[index])(cr.stack([x, 3 * x]))[1], 3 * expected)


@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
def test_what_is_written_has_the_shape_that_is_read(recorded):
    x, value = cr.zeros(2, 3, 4), cr.arange(9.0).reshape(3, 3).requires_grad_(recorded)
    x[0, :, [3, 0, 2]] = value
    assert cr.equal(x[0][:, [3, 0, 2]], value) and x._version == 1 and not x[1].any()
    if recorded:
        x.sum().backward()
        assert cr.equal(value.grad, cr.ones(3, 3))


def test_arrays_keep_the_index_of_numpy():
    shapes = []

    def f(x):
        shapes.append((x[0, :, [1, 0, 1, 2]].shape, x[:, 0, ..., [1, 0, 1, 2]].shape))
        return x.sum()

    cr.grad(f)(np.zeros((3, 4, 5)))
    assert shapes == [((4, 4), (4, 3))]
