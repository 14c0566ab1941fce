"""Elements written at indices: ties, nan, and what is refused."""

from __future__ import annotations

import math

import pytest

from behaviour import OURS, differs, torch


def matrix(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_a_gradient_through_nan_is_nan(reduce):
    x = matrix(1.0, 2.0).requires_grad_()
    src = matrix(math.nan, 5.0, 7.0).requires_grad_()
    x.scatter_reduce(0, torch.tensor([0, 1, 1]), src, reduce).sum().backward()
    assert math.isnan(x.grad[0]) and not math.isnan(x.grad[1])
    assert math.isnan(src.grad[0]) and not src.grad[1:].isnan().any()


def test_what_is_replaced_gets_no_gradient_even_beside_nan():
    x = matrix(1.0, 2.0).requires_grad_()
    x.scatter_reduce(0, torch.tensor([0]), matrix(math.nan), "amax", include_self=False).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]


@differs("it counts what is replaced among the best, and loses its share of the gradient")
def test_ties_share_all_of_the_gradient():
    src = matrix(0.0, 0.0).requires_grad_()
    matrix(0.0).scatter_reduce(0, torch.tensor([0, 0]), src, "amax", include_self=False).sum().backward()
    assert src.grad.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("name", ["index_add", "index_copy"])
def test_a_number_is_no_source(name):
    with pytest.raises(TypeError, match=r"argument 'source' .*must be Tensor, not float"):
        getattr(torch.ones(3), name)(0, torch.tensor([0]), 1.0)


@pytest.mark.parametrize("name, error", [("index_add", RuntimeError), ("index_copy", IndexError)])
@pytest.mark.parametrize("index", [3, -1])
def test_an_index_outside(name, error, index):
    with pytest.raises(error, match=f"index {index} is out of bounds for dimension 1 with size 3"):
        getattr(torch.ones(2, 3), name)(1, torch.tensor([index]), torch.ones(2, 1))


def test_scatter_needs_something_to_write():
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        torch.ones(3).scatter(0, torch.tensor([0]))


def test_as_strided_refuses_negative_sizes():
    with pytest.raises(RuntimeError):
        torch.ones(4).as_strided((-2,), (1,))


@pytest.mark.parametrize(
    "zeros", [[0.0, 4.0], [3.0, 4.0], pytest.param([0.0, 0.0], marks=differs("cut off where two meet"))]
)
@pytest.mark.parametrize("name", ["scatter_reduce", "index_reduce"])
def test_the_second_derivative_of_a_product_that_meets_zeros(name, zeros):
    def product(src):
        return getattr(torch.full((1,), 2.0, dtype=torch.float64), name)(0, torch.tensor([0, 0]), src, "prod").sum()

    src = matrix(*zeros).requires_grad_()
    (g,) = torch.autograd.grad(product(src), src, create_graph=True)
    expected = [[0.0, 2.0], [2.0, 0.0]]
    assert [torch.autograd.grad(part, src, retain_graph=True)[0].tolist() for part in g] == expected
    if OURS:  # PyTorch has neither a batching nor a forward rule
        assert torch.func.jacrev(torch.func.jacrev(product))(src.detach()).tolist() == expected
        assert torch.func.hessian(product)(src.detach()).tolist() == expected
        assert torch.func.jacfwd(torch.func.jacfwd(product))(src.detach()).tolist() == expected


@pytest.mark.parametrize(
    "index", [([True, False], [0, 0]), ([[True, False, True]] * 2,), ([1, 1], [True, False, True])]
)
def test_a_mask_beside_numbers(index):
    """What an index names twice gets both cotangents."""
    items = tuple(torch.tensor(i) for i in index)
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    picked = x[items]
    expected = torch.zeros(2, 3).index_put(items, torch.ones(picked.shape), accumulate=True)
    picked.sum().backward()
    assert x.grad.tolist() == expected.tolist()


@differs("nan wherever the tensor was")
@pytest.mark.parametrize("include_self", [True, False])
def test_what_nothing_is_scattered_to_keeps_its_gradient_even_where_it_is_nan(include_self):
    x = matrix(math.nan, 2.0, 3.0).requires_grad_()
    src = matrix(5.0).requires_grad_()
    out = x.scatter_reduce(0, torch.tensor([1]), src, "amax", include_self=include_self)
    (out * matrix(7.0, 11.0, 13.0)).sum().backward()
    assert x.grad.tolist() == [7.0, 0.0, 13.0] and src.grad.tolist() == [11.0]
