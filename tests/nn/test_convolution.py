"""Convolutions by all algorithms, and in batches (values, derivatives, errors: ops/cases.py)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from behaviour import differs, torch

F = torch.nn.functional


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng((seed, *shape)).normal(size=shape))


def leaf(*shape, **options):
    return numbers(*shape, **options).requires_grad_()


def test_batches_of_examples_and_of_weights():
    """Test vmap over the input, over the weight, and over both."""
    vmap = torch.func.vmap
    x, w = numbers(3, 2, 4, 6), numbers(3, 5, 2, 3, seed=1)

    def layer(x, w):
        return F.conv1d(x, w, None, 2, 1, 1, 2)

    expected = torch.stack([layer(a, b) for a, b in zip(x, w[:, :4])])
    np.testing.assert_allclose(vmap(layer)(x, w[:, :4]).numpy(), expected.numpy(), rtol=1e-12)
    for i, j in itertools.product((0, None), repeat=2):
        if (i, j) != (None, None):
            got = vmap(layer, (i, j))(x if i == 0 else x[0], w[:, :4] if j == 0 else w[0, :4])
            loop = [layer(x[k] if i == 0 else x[0], w[k, :4] if j == 0 else w[0, :4]) for k in range(3)]
            np.testing.assert_allclose(got.numpy(), torch.stack(loop).numpy(), rtol=1e-12)
    each = vmap(torch.func.grad(lambda w, x: layer(x, w).square().sum()), (None, 0))(w[0, :4], x)
    for k in range(3):
        one = torch.func.grad(lambda w, x: layer(x, w).square().sum())(w[0, :4], x[k])
        np.testing.assert_allclose(each[k].numpy(), one.numpy(), rtol=1e-10)


def test_one_node():
    out = F.conv2d(leaf(1, 1, 3, 3), leaf(1, 1, 2, 2))
    assert out.grad_fn.name() == "ConvolutionBackward0"


@differs("its message says nothing about it")
def test_channels_in_the_last_axis_are_noticed():
    images = numbers(1, 6, 6, 3)
    with pytest.raises(RuntimeError, match=r"images\.movedim\(-1, 1\)"):
        F.conv2d(images, numbers(4, 3, 2, 2))


# -- large images, single channels and invalid operands ---------------------------------------------------------------


def test_an_image_whose_columns_are_many_is_convolved_a_few_rows_at_a_time():
    x, w = leaf(1, 3, 300, 301), leaf(2, 3, 3, 3)
    out = F.conv2d(x, w, stride=(2, 1), padding=1)
    g = numbers(*out.shape, seed=3)
    to_x, to_w = torch.autograd.grad(out, (x, w), g)
    for i in (1, 70, 149):
        alone = F.conv2d(x[:, :, 2 * i - 1 : 2 * i + 2], w, padding=(0, 1))
        torch.testing.assert_close(out[:, :, i], alone[:, :, 0])
    torch.testing.assert_close((to_w * w).sum(), (out * g).sum())  # linear in the weight, and in the input
    torch.testing.assert_close((to_x * x).sum(), (out * g).sum())


def test_single_channels_give_the_gradients_of_as_many_convolutions():
    x, w = leaf(2, 3, 6, 5), leaf(3, 1, 3, 2)
    whole = F.conv2d(x, w, padding=1, groups=3)
    g = numbers(*whole.shape, seed=4)
    found = torch.autograd.grad(whole, (x, w), g)
    parts = torch.cat([F.conv2d(x[:, i : i + 1], w[i : i + 1], padding=1) for i in range(3)], 1)
    for a, b in zip(found, torch.autograd.grad(parts, (x, w), g)):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("groups, channels, out", [(1, 1, 3), (1, 6, 2), (1, 2, 9), (3, 6, 3), (4, 4, 4), (2, 2, 10)])
@pytest.mark.parametrize("stride, padding, dilation", [(1, 0, 1), (1, 1, 2), (2, 1, 1), (1, 3, 1)])
def test_every_way_to_compute_a_convolution(groups, channels, out, stride, padding, dilation):
    """Different algorithms compute few or many channels, with or without groups and strides."""
    x, w = leaf(2, channels, 4, 5), leaf(out, channels // groups, 3, 2)

    def convolved(x, w):
        return F.conv2d(x, w, None, stride, padding, dilation, groups)

    def transposed(y, w):
        return F.conv_transpose2d(y, w, None, stride, padding, 0, groups, dilation)

    assert torch.autograd.gradcheck(convolved, (x, w), fast_mode=True)
    assert torch.autograd.gradcheck(transposed, (leaf(1, out, 5, 7), w), fast_mode=True)
    y = convolved(x, w)
    g = numbers(*y.shape, seed=5)
    by_hand = torch.zeros_like(y)  # <g, conv(x, w)>: every product of the definition, once
    wide = F.pad(x.detach(), (padding,) * 4)
    for o in range(out):
        group = o // (out // groups)
        for c in range(channels // groups):
            for i in range(3):
                for j in range(2):
                    plane = wide[:, group * (channels // groups) + c, i * dilation :, j * dilation :]
                    part = plane[:, ::stride, ::stride][:, : y.shape[2], : y.shape[3]]
                    by_hand[:, o] += part * w.detach()[o, c, i, j]
    torch.testing.assert_close(y.detach(), by_hand)
    (gx,) = torch.autograd.grad(y, x, g)
    assert torch.allclose((gx * x).sum(), (g * y).sum())


def test_the_gradient_of_relu_is_zero_where_the_result_is():
    x = torch.tensor([-1.0, 0.0, 1.0, float("nan"), float("inf")], requires_grad=True)
    g = torch.tensor([float("inf"), float("nan"), 2.0, 3.0, float("inf")])
    (grad,) = torch.autograd.grad(F.relu(x), x, g)
    assert grad.tolist() == [0.0, 0.0, 2.0, 3.0, float("inf")] and not torch.signbit(grad).any()
