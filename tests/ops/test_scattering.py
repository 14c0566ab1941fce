"""Scattered elements: differences from PyTorch, and second derivatives."""

from __future__ import annotations

import math

import pytest

from behaviour import OURS, differs, torch


def matrix(*values):
    return torch.tensor(values, dtype=torch.float64)


@differs("it counts what is replaced among the best, and loses its share of the gradient")
def test_ties_share_all_of_the_gradient():
    src = matrix(0.0, 0.0).requires_grad_()
    matrix(0.0).scatter_reduce(0, torch.tensor([0, 0]), src, "amax", include_self=False).sum().backward()
    assert src.grad.tolist() == [0.5, 0.5]


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


@differs("nan wherever the tensor was")
@pytest.mark.parametrize("include_self", [True, False])
def test_what_nothing_is_scattered_to_keeps_its_gradient_even_where_it_is_nan(include_self):
    x = matrix(math.nan, 2.0, 3.0).requires_grad_()
    src = matrix(5.0).requires_grad_()
    out = x.scatter_reduce(0, torch.tensor([1]), src, "amax", include_self=include_self)
    (out * matrix(7.0, 11.0, 13.0)).sum().backward()
    assert x.grad.tolist() == [7.0, 0.0, 13.0] and src.grad.tolist() == [11.0]


@differs("its gradient keeps what is overwritten, and drops what is kept")
def test_strided_part_exchanged():
    x, src = torch.ones(2, 3, requires_grad=True), torch.tensor([8.0, 9.0], requires_grad=True)
    out = torch.as_strided_scatter(x, src, (2,), (3,), 1)
    assert out.tolist() == [[1.0, 8.0, 1.0], [1.0, 9.0, 1.0]]
    grads = torch.autograd.grad(out, (x, src), torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert [g.tolist() for g in grads] == [[[1.0, 0.0, 3.0], [4.0, 0.0, 6.0]], [2.0, 5.0]]


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (1, 1, 1), (3,)])
def test_values_broadcast_to_what_the_index_takes_and_no_further(shape, accumulate):
    x, values = torch.zeros(3, dtype=torch.float64), torch.ones(*shape, dtype=torch.float64)
    with pytest.raises(RuntimeError, match=rf"value tensor of shape \{[*shape]}.* indexing result of shape \[2\]"):
        x.index_put((torch.tensor([0, 1]),), values, accumulate)
    with pytest.raises(RuntimeError, match="indexing result of shape"):
        x.index_put_((torch.tensor([0, 1]),), values, accumulate)
    assert x.tolist() == [0, 0, 0]


def test_each_row_of_indices_adds_its_values():
    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    values = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = x.index_put((torch.tensor([[0, 1], [1, 0]]),), values, accumulate=True)
    assert y.tolist() == [3, 3, 0]  # 1 + 2 at either position; np.add.at of NumPy 2.4 gives 1 and 2
    (y * y).sum().backward()
    assert values.grad.tolist() == [12, 12] and x.grad.tolist() == [6, 6, 0]


def test_one_value_at_a_mask_may_have_any_number_of_axes():
    x = torch.zeros(3, dtype=torch.float64)
    mask = torch.tensor([True, False, True])
    assert x.index_put((mask,), torch.tensor([[5.0]])).tolist() == [5, 0, 5]
    with pytest.raises(RuntimeError, match="shape mismatch"):
        x.index_put((mask,), torch.tensor([[5.0, 6.0]], dtype=torch.float64))


WRITES = {
    "slice_scatter": lambda x, s: x.slice_scatter(s, 0, 0, 2),
    "select_scatter": lambda x, s: x.select_scatter(s[0], 0, 1),
    "diagonal_scatter": lambda x, s: x.diagonal_scatter(s[0]),
    "as_strided_scatter": lambda x, s: x.as_strided_scatter(s, (2, 3), (3, 1)),
    "masked_fill": lambda x, s: x.masked_fill(x > 2, s[0, 0]),
    "index_fill": lambda x, s: x.index_fill(0, torch.tensor([0, 1]), s[0, 0]),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_gradient_is_not_cut_by_an_integer_tensor(name):
    integers = torch.arange(9).reshape(3, 3)
    values = torch.full((2, 3), 1.5, requires_grad=True)
    with pytest.raises(RuntimeError, match="Autograd not support dtype: Long"):
        WRITES[name](integers, values)
    assert WRITES[name](integers, values.detach()).dtype == torch.int64
    with torch.no_grad():
        assert 1 in WRITES[name](integers, values)
    assert WRITES[name](integers.float(), values).requires_grad


def test_masked_fill_gives_a_contiguous_copy():
    x = torch.arange(6.0).reshape(2, 3).T
    assert x.masked_fill(x > 2, 0.5).stride() == (2, 1)
    assert x.masked_fill(x > 2, torch.tensor(0.5)).stride() == (2, 1)
