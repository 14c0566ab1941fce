"""Fast paths of indexing, stacking and products for ordinary operands give the same results as the general paths."""

from __future__ import annotations

import pytest

from behaviour import torch

X = torch.arange(24.0, dtype=torch.float64).reshape(2, 3, 4)
INDICES = [
    0, -1, None, ..., slice(1, None), slice(None, -1, 1), slice(0, 3, 2), slice(5, 1), (1, 2, 3), (-1, ..., 0),
    (slice(None), 1), (..., None, 2), (None, 0, None), (slice(0, 1), slice(None), slice(1, 3)), (),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_a_basic_index_is_a_view_with_a_gradient(index):
    x = X.clone().requires_grad_()
    part = x[index]
    assert part.tolist() == X.numpy()[index].tolist()
    assert part._base is x and part.requires_grad
    (part * part).sum().backward()
    expected = torch.zeros_like(X)
    expected[index] = 2 * X[index]
    assert torch.equal(x.grad, expected)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_what_is_written_through_a_basic_index_arrives(index):
    base = torch.zeros(2, 3, 4, requires_grad=True) * 1
    part = base[index]
    part.fill_(7.0)
    assert torch.equal(base.detach() == 7, _mask(index))
    with torch.no_grad():
        view = base[index]
        view.zero_()
    assert not base.detach().any()


def _mask(index):
    mask = torch.zeros(2, 3, 4, dtype=torch.bool)
    mask[index] = True
    return mask


@pytest.mark.parametrize("index", [5, (0, 3), (0, 0, 0, 0)], ids=str)
def test_an_index_that_does_not_fit(index):
    with pytest.raises(IndexError):
        X[index]


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_stack(dim):
    a, b = X[0].clone().requires_grad_(), X[1].clone().requires_grad_()
    stacked = torch.stack([a, b, X[0]], dim)
    assert torch.equal(stacked.select(dim, 1), b) and torch.equal(stacked.select(dim, 2), X[0])
    stacked.select(dim, 1).sum().backward()
    assert torch.equal(b.grad, torch.ones(3, 4, dtype=torch.float64)) and not a.grad.any()


def test_cat_of_vectors_some_of_them_empty():
    a, empty = torch.ones(2, requires_grad=True), torch.ones(0, requires_grad=True)
    assert torch.cat([empty, a, empty]).shape == (2,) and torch.cat([empty, empty]).shape == (0,)
    assert torch.cat([empty, torch.ones(2, 3)]).shape == (2, 3)


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,))])
def test_products_of_vectors(shapes):
    x, y = (torch.rand(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    product = x @ y
    assert product.grad_fn.name() == ("DotBackward0" if len(shapes[0]) == 1 else "MvBackward0")
    assert product.shape == shapes[0][:-1]
    assert torch.autograd.gradcheck(torch.matmul, (x, y)) and torch.autograd.gradgradcheck(torch.matmul, (x, y))
