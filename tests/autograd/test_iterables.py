"""``backward`` and ``grad`` accept any iterable of tensors, like PyTorch, which converts them to tuples."""

from __future__ import annotations

import pytest

from behaviour import leaf, torch


@pytest.mark.parametrize(
    "form", [list, tuple, iter, lambda xs: (x for x in xs), lambda xs: dict(enumerate(xs)).values()]
)
def test_inputs_outputs_and_gradients(form):
    x, y = leaf(2.0), leaf(3.0)
    results = [x * y, x * x]
    found = torch.autograd.grad(form(results), form([x, y]), form([torch.ones_like(x), torch.ones_like(x)]))
    assert [g.tolist() for g in found] == [[3 + 4], [2]]
    results = [x * y, x * x]
    torch.autograd.backward(form(results), form([torch.ones_like(x), torch.ones_like(x)]), inputs=form([x]))
    assert x.grad.tolist() == [7] and y.grad is None


def test_parameters_of_modules():
    layer = torch.nn.Linear(2, 1)
    weight, bias = torch.autograd.grad(layer(torch.ones(2)), layer.parameters())
    assert weight.tolist() == [[1, 1]] and bias.tolist() == [1]


def test_an_iterator_of_nothing():
    with pytest.raises((RuntimeError, ValueError)):
        torch.autograd.grad(leaf(1.0).sum(), iter(()))
