"""Pooling and resampling: values against loops and known cases, gradients against differences, and errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from behaviour import torch

F = torch.nn.functional
MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng((seed, *shape)).normal(size=shape))


def leaf(*shape, **options):
    return numbers(*shape, **options).requires_grad_()


def by_loops(x, kernel, stride, padding, reduce, dilation=1):
    """Every window's elements that are inside, reduced."""
    x = x.detach().numpy()
    k = x.ndim - 2
    counts = [(n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for n in x.shape[2:]]
    out = np.zeros((*x.shape[:2], *counts))
    for n, c, *at in np.ndindex(*out.shape):
        inside = []
        for tap in np.ndindex(*(kernel,) * k):
            place = tuple(a * stride - padding + t * dilation for a, t in zip(at, tap))
            if all(0 <= p < size for p, size in zip(place, x.shape[2:])):
                inside.append(x[(n, c, *place)])
        out[(n, c, *at)] = reduce(inside, kernel**k)
    return out


FORMS = [((2, 3, 7), 3, 2, 1), ((1, 2, 8), 2, 1, 0), ((2, 2, 5, 6), 3, 2, 1), ((1, 2, 4, 5, 4), 2, 2, 1)]


@pytest.mark.parametrize("shape, kernel, stride, padding", FORMS)
def test_max(shape, kernel, stride, padding):
    axes = len(shape) - 2
    out, index = MAX[axes](numbers(*shape), kernel, stride, padding, return_indices=True)
    expected = by_loops(numbers(*shape), kernel, stride, padding, lambda inside, _: max(inside))
    np.testing.assert_array_equal(out.numpy(), expected)
    assert index.dtype == torch.int64
    picked = numbers(*shape).flatten(2).gather(2, index.flatten(2))
    np.testing.assert_array_equal(picked.numpy(), out.flatten(2).numpy())
    assert torch.autograd.gradcheck(lambda x: MAX[axes](x, kernel, stride, padding), leaf(*shape))


@pytest.mark.parametrize("shape, kernel, stride, padding", FORMS)
@pytest.mark.parametrize("include", [True, False])
def test_mean(shape, kernel, stride, padding, include):
    axes = len(shape) - 2
    out = AVG[axes](numbers(*shape), kernel, stride, padding, False, include)
    expected = by_loops(
        numbers(*shape), kernel, stride, padding, lambda inside, n: sum(inside) / (n if include else len(inside))
    )
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-14)
    assert torch.autograd.gradcheck(lambda x: AVG[axes](x, kernel, stride, padding, False, include), leaf(*shape))


def test_dilation():
    x = numbers(1, 2, 9)
    expected = by_loops(x, 3, 2, 1, lambda inside, _: max(inside), 2)
    np.testing.assert_array_equal(F.max_pool1d(x, 3, 2, 1, 2).numpy(), expected)


def test_ceil_mode():
    x = torch.arange(7.0).reshape(1, 1, 7)
    assert F.max_pool1d(x, 3, 3).tolist() == [[[2, 5]]]
    assert F.max_pool1d(x, 3, 3, ceil_mode=True).tolist() == [[[2, 5, 6]]]
    assert F.avg_pool1d(x, 3, 3, ceil_mode=True).tolist() == [[[1, 4, 6]]]
    assert F.max_pool1d(x[..., :5], 2, 2, 1, ceil_mode=True).tolist() == [[[0, 2, 4]]]  # the last one starts inside
    assert F.avg_pool2d(torch.ones(1, 3, 3), 2, divisor_override=1).tolist() == [[[4]]]
    assert F.avg_pool2d(torch.tensor([[[1, 2], [4, 8]]]), 2).tolist() == [[[3]]]


def test_ties_and_nan():
    x = torch.tensor([[1.0, 1.0, 0.0, 0.0]], requires_grad=True)
    F.max_pool1d(x, 2).sum().backward()
    assert x.grad.tolist() == [[1, 0, 1, 0]]
    out, index = F.max_pool1d(torch.tensor([[1.0, math.nan, 3.0]]), 3, return_indices=True)
    assert math.isnan(out.item()) and index.item() == 1
    low = torch.full((1, 1, 3), -math.inf)
    assert F.max_pool1d(low, 3, 1, 1, return_indices=True)[1].tolist() == [[[0, 0, 1]]]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 9])
def test_adaptive(size):
    x = numbers(2, 3, 7)
    windows = [(math.floor(i * 7 / size), math.ceil((i + 1) * 7 / size)) for i in range(size)]
    means = torch.stack([x[..., a:b].mean(-1) for a, b in windows], -1)
    highs = torch.stack([x[..., a:b].amax(-1) for a, b in windows], -1)
    np.testing.assert_allclose(F.adaptive_avg_pool1d(x, size).numpy(), means.numpy(), rtol=1e-12)
    out, index = F.adaptive_max_pool1d(x, size, return_indices=True)
    np.testing.assert_array_equal(out.numpy(), highs.numpy())
    np.testing.assert_array_equal(x.gather(-1, index).numpy(), highs.numpy())
    assert torch.autograd.gradcheck(lambda x: F.adaptive_avg_pool1d(x, size), leaf(1, 2, 7))
    assert torch.autograd.gradcheck(lambda x: F.adaptive_max_pool1d(x, size), leaf(1, 2, 7))


def test_adaptive_over_several_axes():
    x = numbers(2, 3, 5, 6)
    np.testing.assert_allclose(F.adaptive_avg_pool2d(x, 1).numpy(), x.mean((2, 3), keepdim=True).numpy())
    assert F.adaptive_avg_pool2d(x, (None, 2)).shape == (2, 3, 5, 2)
    assert F.adaptive_max_pool3d(numbers(1, 2, 3, 4, 5), (2, 2, 3)).shape == (1, 2, 2, 2, 3)
    assert torch.autograd.gradcheck(lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)), leaf(1, 1, 3, 4, 2))


def test_unpool():
    x = torch.tensor([[1.0, 3.0, 2.0, 4.0]], requires_grad=True)
    out, index = F.max_pool1d(x, 2, return_indices=True)
    back = F.max_unpool1d(out, index, 2)
    assert back.tolist() == [[0, 3, 0, 4]]
    back.sum().backward()
    assert x.grad.tolist() == [[0, 1, 0, 1]]
    assert F.max_unpool1d(out, index, 2, output_size=(5,)).tolist() == [[0, 3, 0, 4, 0]]
    image, index = F.max_pool2d(numbers(1, 2, 4, 6), 2, return_indices=True)
    assert F.max_unpool2d(image, index, 2).shape == (1, 2, 4, 6)


def test_power_means():
    x = torch.tensor([[3.0, 4.0, 6.0, 8.0]], dtype=torch.float64)
    np.testing.assert_allclose(F.lp_pool1d(x, 2, 2).numpy(), [[5, 10]])
    np.testing.assert_allclose(F.lp_pool2d(x.reshape(1, 2, 2), 1, 2).numpy(), [[[21]]])
    np.testing.assert_allclose(F.lp_pool3d(x.reshape(1, 1, 2, 2), 1, (1, 2, 2)).numpy(), [[[[21]]]])


def test_pooling_inside_vmap():
    x = numbers(3, 2, 4, 4)
    for pool in (lambda x: F.max_pool2d(x, 2), lambda x: F.avg_pool2d(x, 2), lambda x: F.adaptive_avg_pool2d(x, 3)):
        got = torch.func.vmap(pool)(x)
        np.testing.assert_allclose(got.numpy(), torch.stack([pool(one) for one in x]).numpy(), rtol=1e-12)


# -- resampling ------------------------------------------------------------------------------------------------------


def test_nearest():
    x = torch.tensor([[[1.0, 2.0, 3.0]]])
    assert F.interpolate(x, scale_factor=2).tolist() == [[[1, 1, 2, 2, 3, 3]]]
    assert F.interpolate(x, 2).tolist() == [[[1, 2]]]
    assert F.interpolate(x, 2, mode="nearest-exact").tolist() == [[[1, 3]]]
    assert F.interpolate(torch.ones(1, 1, 2, 3), (4, 3)).shape == (1, 1, 4, 3)


@pytest.mark.parametrize("old, new", [(4, 7), (5, 2), (3, 3), (1, 4), (6, 1)])
def test_linear_keeps_lines(old, new):
    """Interpolation of a straight line is that line, between the centres of the first and the last element."""
    x = torch.arange(float(old), dtype=torch.float64).reshape(1, 1, old)
    centres = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    np.testing.assert_allclose(F.interpolate(x, new, mode="linear").numpy()[0, 0], centres, atol=1e-12)
    corners = np.linspace(0, old - 1, new) if new > 1 else [0]
    got = F.interpolate(x, new, mode="linear", align_corners=True).numpy()[0, 0]
    np.testing.assert_allclose(got, corners, atol=1e-12)


def test_two_axes_are_one_after_the_other():
    x = numbers(1, 2, 4, 5)
    rows = F.interpolate(x.flatten(1, 2), 8, mode="linear").reshape(1, 2, 4, 8)
    both = F.interpolate(rows.movedim(2, 3).flatten(1, 2), 3, mode="linear").reshape(1, 2, 8, 3).movedim(3, 2)
    np.testing.assert_allclose(F.interpolate(x, (3, 8), mode="bilinear").numpy(), both.numpy(), rtol=1e-12)


def test_cubic_goes_through_the_elements():
    x = numbers(1, 1, 4, 5)
    got = F.interpolate(x, (7, 9), mode="bicubic", align_corners=True)
    np.testing.assert_allclose(got[..., ::2, ::2].numpy(), x.numpy(), atol=1e-12)
    between = F.interpolate(x[..., :1, :].contiguous(), (1, 9), mode="bicubic", align_corners=True)[0, 0, 0, 3]
    weights = np.array([-3, 19, 19, -3]) / 32  # of the kernel with a = −3/4, half-way between two elements
    np.testing.assert_allclose(between.item(), weights @ x.numpy()[0, 0, 0, :4], rtol=1e-12)
    flat = F.interpolate(torch.ones(1, 1, 5, 5), (9, 3), mode="bicubic")
    np.testing.assert_allclose(flat.numpy(), 1, rtol=1e-6)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialias(mode):
    x = torch.zeros(1, 1, 8, 8)
    x[..., ::2, :] = 1.0
    smooth = F.interpolate(x, (2, 2), mode=mode, antialias=True)
    assert float((smooth - 0.5).abs().max()) < 0.15
    assert torch.autograd.gradcheck(lambda x: F.interpolate(x, (2, 3), mode=mode, antialias=True), leaf(1, 1, 4, 5))


@pytest.mark.parametrize(
    "mode, shape, size",
    [
        ("nearest", (1, 2, 3), 5),
        ("linear", (1, 2, 3), 5),
        ("bilinear", (1, 2, 3, 4), (5, 2)),
        ("bicubic", (1, 1, 3, 4), (5, 2)),
        ("trilinear", (1, 1, 2, 3, 2), (3, 2, 4)),
        ("area", (1, 1, 5, 4), (2, 3)),
    ],
)
def test_resampling_gradients(mode, shape, size):
    assert torch.autograd.gradcheck(lambda x: F.interpolate(x, size, mode=mode), leaf(*shape))


def test_scale_factor():
    x = numbers(1, 1, 5)
    a = F.interpolate(x, scale_factor=1.5, mode="linear")
    b = F.interpolate(x, scale_factor=1.5, mode="linear", recompute_scale_factor=True)
    assert a.shape == b.shape == (1, 1, 7)
    np.testing.assert_allclose(b.numpy(), F.interpolate(x, 7, mode="linear").numpy())
    assert np.abs(a.numpy() - b.numpy()).max() > 1e-3


# -- channels --------------------------------------------------------------------------------------------------------


def test_moves_of_channels():
    x = numbers(2, 8, 3, 2)
    up = F.pixel_shuffle(x, 2)
    assert up.shape == (2, 2, 6, 4)
    np.testing.assert_array_equal(up[:, 0, ::2, 1::2].numpy(), x[:, 1].numpy())
    np.testing.assert_array_equal(F.pixel_unshuffle(up, 2).numpy(), x.numpy())
    mixed = torch.native_channel_shuffle(x, 2) if hasattr(torch, "native_channel_shuffle") else F.channel_shuffle(x, 2)
    np.testing.assert_array_equal(mixed.numpy(), x[:, [0, 4, 1, 5, 2, 6, 3, 7]].numpy())
    assert torch.autograd.gradcheck(lambda x: F.pixel_shuffle(x, 2), leaf(1, 4, 2, 1))


def test_local_response_norm():
    x = numbers(1, 4, 3)
    squares = x**2
    near = torch.stack([squares[:, max(0, c - 1) : c + 2].sum(1) for c in range(4)], 1) / 3
    np.testing.assert_allclose(
        F.local_response_norm(x, 3, 0.1, 0.75, 2.0).numpy(), (x / (2 + 0.1 * near) ** 0.75).numpy(), rtol=1e-12
    )


def test_dropping_channels():
    torch.manual_seed(3)
    out = F.dropout2d(torch.ones(20, 10, 3, 3), 0.5)
    each = out.flatten(2)
    assert bool((each == each[..., :1]).all()) and set(each.unique().tolist()) == {0, 2}
    assert F.dropout2d(torch.ones(2, 2, 1, 1), 1.0).abs().sum() == 0
    x = torch.randn(20000)
    out = F.alpha_dropout(x, 0.2, training=True)
    assert abs(float(out.mean())) < 0.1 and abs(float(out.std()) - 1) < 0.1
    assert F.rrelu(torch.tensor([-3.0, 2.0]), 0.1, 0.3).tolist() == pytest.approx([-0.6, 2.0])


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: F.max_pool1d(numbers(4), 2), RuntimeError, r"Expected 2D or 3D"),
        (lambda: F.max_pool2d(numbers(1, 2, 2), 3), RuntimeError, "Output size is too small"),
        (lambda: F.max_pool2d(numbers(1, 4, 4), 2, padding=2), RuntimeError, "at most half of effective kernel size"),
        (lambda: F.avg_pool2d(numbers(1, 4, 4), 2, divisor_override=0), RuntimeError, "divisor must be not zero"),
        (lambda: F.adaptive_avg_pool2d(numbers(4, 4), (2, 2)), ValueError, "Input dimension should be at least 3"),
        (lambda: F.adaptive_avg_pool2d(numbers(4, 4), 2), RuntimeError, "Expected 3D or 4D tensor, but got"),
        (lambda: F.interpolate(numbers(1, 1, 4)), ValueError, "either size or scale_factor should be defined"),
        (lambda: F.interpolate(numbers(1, 1, 4), 2, 2.0), ValueError, "only one of size or scale_factor"),
        (lambda: F.interpolate(numbers(1, 1, 4), 2, align_corners=True), ValueError, "align_corners option can only"),
        (lambda: F.interpolate(numbers(1, 1, 4), 2, mode="linear", antialias=True), ValueError, "Anti-alias option"),
        (lambda: F.interpolate(numbers(1, 1, 4), (2, 2)), ValueError, "same number of spatial dimensions"),
        (lambda: F.pixel_shuffle(numbers(1, 3, 2, 2), 2), RuntimeError, "divisible by the square of"),
        (lambda: F.pixel_unshuffle(numbers(1, 3, 3, 2), 2), RuntimeError, "expects height to be divisible by"),
    ],
)
def test_errors(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_windows_that_hold_nothing_finite():
    x = torch.tensor([[-math.inf, -math.inf]])
    assert F.max_pool1d(x, 1, return_indices=True)[1].tolist() == [[0, 1]]


# -- ends of the range ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p, pick", [(math.inf, "amax"), (-math.inf, "amin")])
def test_an_infinite_power_picks_one_element(p, pick):
    x = numbers(2, 3, 4, 4).requires_grad_()
    out = F.lp_pool2d(x, p, 2)
    blocks = x.abs().reshape(2, 3, 2, 2, 2, 2)
    torch.testing.assert_close(out, getattr(blocks, pick)((3, 5)))
    assert F.lp_pool1d(x[0], p, 2).shape == (3, 4, 2)
    (g,) = torch.autograd.grad(out.sum(), x)
    assert int((g != 0).sum()) == out.numel()


@pytest.mark.parametrize("pool", [F.lp_pool1d, F.lp_pool2d])
def test_where_a_sum_of_powers_is_zero_the_gradient_is_zero(pool):
    x = torch.zeros(1, 4, 4, requires_grad=True)
    (g,) = torch.autograd.grad(pool(x, 2.0, 2).sum(), x)
    assert torch.equal(g, torch.zeros(1, 4, 4))


def test_windows_of_nan_ties_and_infinities():
    x = torch.tensor([[[math.nan, 1.0, 2.0, 2.0, -math.inf, -math.inf, 3.0, math.nan]]])
    values, where = F.max_pool1d(x, 2, return_indices=True)
    assert where.tolist() == [[[0, 2, 4, 7]]]
    assert values.isnan().tolist() == [[[True, False, False, True]]]


def test_the_largest_of_unsigned_and_negative_integers():
    small = torch.tensor([[[[0, 0], [0, 0]]]], dtype=torch.uint8)
    assert F.max_pool2d(small, 2).item() == 0
    assert F.max_pool2d(torch.tensor([[[[-5, -3], [-9, -3]]]]), 2).item() == -3


def test_adaptive_pooling_of_no_channels_and_to_no_windows():
    assert F.adaptive_avg_pool2d(torch.ones(1, 0, 4, 4), (2, 3)).shape == (1, 0, 2, 3)
    assert F.adaptive_max_pool1d(torch.ones(2, 3, 4), 0).shape == (2, 3, 0)


@pytest.mark.parametrize("pool", [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_max_pool2d])
def test_a_fraction_is_no_output_size(pool):
    with pytest.raises(TypeError):
        pool(torch.ones(4, 4, 4), 1.5)


def test_unpooling_names_an_index_outside_and_refuses_lists():
    x = torch.ones(1, 1, 2, 2)
    for index in (16, -1):
        with pytest.raises(RuntimeError, match=f"Found an invalid max index: {index} .*4x4"):
            F.max_unpool2d(x, torch.tensor([[[[0, 6], [12, index]]]]), 2)
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        F.max_unpool2d(x, [[[[0, 6], [12, 1]]]], 2)
