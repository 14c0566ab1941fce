"""Hooks on single saved values: ``grad_fn._raw_saved_…`` and its method ``register_hooks``."""

import pytest

from behaviour import leaf, torch

autograd = torch.autograd
Function = autograd.Function


def same(t):
    return t


def test_hooks_of_one_saved_value():
    x = leaf(1.0, 2.0)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: 2 * t, same)
    assert y.grad_fn._saved_self.tolist() == [2.0, 4.0] and y.grad_fn._saved_other.tolist() == [1.0, 2.0]
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 6.0]
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_self.register_hooks(same, same)


def test_hooks_of_one_saved_value_and_gradients_of_gradients():
    x = leaf(2.0)
    y = x**3
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.detach().numpy().copy(), torch.from_numpy)
    assert y.grad_fn._raw_saved_self.data.tolist() == [2.0]
    (g,) = autograd.grad(y.sum(), x, create_graph=True)
    assert autograd.grad(g.sum(), x)[0].tolist() == [12.0]


def test_what_hooks_of_one_saved_value_refuse():
    x = leaf(1.0)
    y = x.exp()
    saved = y.grad_fn._raw_saved_result
    assert saved.unpack_hook is None
    for wrong in ((same,), (1, 1)):
        with pytest.raises(TypeError):
            saved.register_hooks(*wrong)
    with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"):
        saved.register_hooks(lambda t: t.add_(1), same)
    saved = x.exp().grad_fn._raw_saved_result
    y = x.exp()
    saved = y.grad_fn._raw_saved_result
    saved.register_hooks(same, same)
    assert saved.unpack_hook is same
    with pytest.raises(RuntimeError, match="already been set"):
        saved.register_hooks(same, same)


def test_the_other_saved_values_of_a_node_with_hooks_are_still_watched():
    a, b = leaf(1.0) * 1, leaf(2.0) * 1
    y = a * b
    y.grad_fn._raw_saved_self.register_hooks(same, same)
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_hooks_of_what_a_function_saved():
    class Times(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x, nothing = ctx.saved_tensors
            assert nothing is None
            return 2 * x * g

    x = leaf(3.0)
    y = Times.apply(x)
    first, second = y.grad_fn._raw_saved_tensors
    with pytest.raises(RuntimeError, match="None is forbidden"):
        second.register_hooks(same, same)
    first.register_hooks(lambda t: t * 10, lambda t: t / 5)
    y.sum().backward()
    assert x.grad.tolist() == [12.0]
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._raw_saved_tensors
