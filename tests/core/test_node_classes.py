"""The class of a node has the node's name."""

from __future__ import annotations

import pytest

from behaviour import torch


def made():
    x = torch.ones(2, 3, requires_grad=True)
    return {
        "MulBackward0": x * 2,
        "SumBackward0": x.sum(),
        "SumBackward1": x.sum(0),
        "ExpBackward0": x.exp(),
        "MaxBackward0": x.max(0).values,
        "TBackward0": x.t(),
        "ViewBackward0": x.view(6),
    }


@pytest.mark.parametrize("name", list(made()))
def test_the_class_has_the_name_of_the_operation(name):
    fn = made()[name].grad_fn
    assert type(fn).__name__ == fn.name() == name
    assert str(type(fn)) == f"<class '{name}'>"


def test_along_the_graph():
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    product = y.grad_fn.next_functions[0][0]
    assert type(product).__name__ == "MulBackward0"
    assert [type(fn).__name__ for fn, _ in product.next_functions] == ["AccumulateGrad"] * 2


def test_looking_changes_nothing():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    middle = x * 3
    y = middle.exp().sum()
    fn = middle.grad_fn
    assert fn is middle.grad_fn
    assert type(fn) is type((x * 5).grad_fn)
    seen = []
    fn.register_hook(lambda grad_inputs, grad_outputs: seen.append(len(grad_inputs)))
    y.backward()
    assert seen == [2]
    torch.testing.assert_close(x.grad, 3 * torch.exp(3 * x.detach()))


def test_a_custom_function():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    y = Twice.apply(torch.ones(1, requires_grad=True))
    assert type(y.grad_fn).__name__ == "TwiceBackward"
