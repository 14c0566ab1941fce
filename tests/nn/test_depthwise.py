"""Convolutions of single channels: the bits of the extension and of compiled code, derivatives, batches, and exceptions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.interpreters.same_bits import same_bits
from chainrule._src.native import LOOPS
from chainrule._src.table import convolution as primitives
from chainrule._src.table import depthwise

F = cr.nn.functional

#: (examples, channels, output channels), size, kernel, stride, padding, dilation
CASES = [
    ((2, 3, 3), (7, 6), (3, 2), (1, 1), (1, 0), (1, 1)),
    ((1, 2, 6), (9, 10), (2, 3), (2, 3), (2, 1), (2, 1)),
    ((3, 1, 1), (19,), (4,), (3,), (0,), (2,)),
    ((2, 2, 2), (4, 5, 6), (2, 1, 3), (1, 2, 1), (0, 1, 2), (1, 1, 2)),
    ((2, 4, 4), (1, 1), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((2, 2, 4), (5, 5), (2, 2), (3, 4), (4, 0), (1, 3)),
    ((1, 1, 2), (130, 80), (2, 2), (1, 1), (0, 0), (1, 1)),
]


def operands(case, dtype):
    (n, channels, out), size, kernel, stride, padding, dilation = case
    numbers = np.random.default_rng(0)
    x = numbers.standard_normal((n, channels, *size)).astype(dtype)
    weight = numbers.standard_normal((out, 1, *kernel)).astype(dtype)
    params = {"stride": stride, "padding": padding, "dilation": dilation, "groups": channels}
    g = numbers.standard_normal(primitives.convolution(x, weight, **params).shape).astype(dtype)
    return x, weight, g, params


def by_definition(x, weight, stride, padding, dilation, groups):
    """Sum each product of a window and a weight, one window at a time, in float64."""
    x, weight = x.astype(np.float64), weight.astype(np.float64)
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    kernel, each = weight.shape[2:], weight.shape[0] // groups
    counts = [(m - d * (k - 1) - 1) // s + 1 for m, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)]
    out = np.zeros((x.shape[0], weight.shape[0], *counts))
    for at in np.ndindex(*counts):
        window = [
            slice(a * s, a * s + d * (k - 1) + 1, d) for a, s, d, k in zip(at, stride, dilation, kernel, strict=True)
        ]
        for o in range(weight.shape[0]):
            part = x[(slice(None), o // each, *window)] * weight[o, 0]
            out[(slice(None), o, *at)] = part.reshape(len(x), -1).sum(1)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
def test_values_and_adjoints(case, dtype):
    x, weight, g, params = operands(case, dtype)
    rtol = 1e-4 if dtype is np.float32 else 1e-10
    found = primitives.convolution(x, weight, **params)
    np.testing.assert_allclose(found, by_definition(x, weight, **params), rtol, rtol)
    to_x = primitives.convolution_input(g, weight, size=x.shape[2:], **params)
    to_weight = primitives.convolution_weight(g, x, kernel=weight.shape[2:], **params)
    assert found.dtype == to_x.dtype == to_weight.dtype == dtype
    product = np.sum(found.astype(np.float64) * g)
    np.testing.assert_allclose(np.sum(to_x.astype(np.float64) * x), product, rtol, rtol)
    np.testing.assert_allclose(np.sum(to_weight.astype(np.float64) * weight), product, rtol, rtol)


@pytest.mark.skipif(LOOPS is None, reason="needs the extension")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
def test_bits_of_the_extension(case, dtype):
    x, weight, g, params = operands(case, dtype)
    options = params["stride"], params["padding"], params["dilation"]
    x.flat[::7], weight.flat[0], g.flat[::5] = -0.0, -0.0, 0.0
    found = LOOPS.depthwise(x, weight, *options)
    assert same_bits(found, depthwise.value_in_numpy(x, weight, *options, g.shape[2:]))
    found = LOOPS.depthwise_input(g, weight, *options, x.shape[2:], x.shape[1])
    assert same_bits(found, depthwise.input_in_numpy(g, weight, *options, x.shape[2:], x.shape[1]))
    parts = LOOPS.depthwise_weight(g, x, *options, weight.shape[2:])
    expected = depthwise.weight_in_numpy(g, x, *options, weight.shape[2:])
    assert same_bits(np.add.reduce(parts, axis=-1) + 0, expected)
    apart = np.repeat(x, 2, axis=-1)[..., ::2]
    assert same_bits(LOOPS.depthwise(apart, weight, *options), LOOPS.depthwise(x, weight, *options))


@pytest.mark.skipif(LOOPS is None, reason="needs the extension")
def test_calls_that_python_computes():
    x, weight, g, params = operands(CASES[0], np.float32)
    options = params["stride"], params["padding"], params["dilation"]
    assert LOOPS.depthwise(x, weight.astype(np.float64), *options) is None
    assert LOOPS.depthwise(x[:0], weight, *options) is None
    assert LOOPS.depthwise(x, weight[:2], *options) is None
    assert LOOPS.depthwise(x, weight, (0, 1), *options[1:]) is None
    assert LOOPS.depthwise(x, weight, (1,), *options[1:]) is None
    assert LOOPS.depthwise_input(g, weight, *options, (3, 3), 3) is None
    assert LOOPS.depthwise_input(g, weight, *options, x.shape[2:], 2) is None
    weight[0, 0, 0, 0] = np.nan
    assert LOOPS.depthwise_input(g, weight, *options, x.shape[2:], 3) is None
    with pytest.raises(TypeError, match="takes 5 arguments"):
        LOOPS.depthwise(x, weight)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES[:4])
def test_compiled_functions_give_the_same_bits(case, dtype):
    x, weight, g, params = operands(case, dtype)

    def gradients(x, weight):
        return cr.grad(
            lambda x, weight: (primitives.convolution(x, weight, **params) * g).sum() + (x * x).sum(), argnums=(0, 1)
        )(x, weight)

    compiled = cr.compile(gradients)
    expected = gradients(x, weight)
    for _ in range(3):
        assert all(map(same_bits, map(np.asarray, compiled(x, weight)), map(np.asarray, expected)))
    x, weight = x[::-1] + 1, weight + 1
    assert all(map(same_bits, map(np.asarray, compiled(x, weight)), map(np.asarray, gradients(x, weight))))


@pytest.mark.parametrize("case", CASES[:5])
def test_derivatives_of_first_and_second_order(case):
    x, weight, _, params = operands(case, np.float64)
    x, weight = (cr.tensor(v, requires_grad=True) for v in (x, weight))

    def f(x, weight):
        return primitives.convolution(x, weight, **params)

    assert cr.autograd.gradcheck(f, (x, weight), fast_mode=True)
    assert cr.autograd.gradgradcheck(f, (x, weight), fast_mode=True)


def test_batches():
    x, weight, _, params = operands(CASES[1], np.float64)
    xs, weights = np.stack([x, x + 1, -x]), np.stack([weight, 2 * weight, weight + 1])

    def f(x, weight):
        return primitives.convolution(x, weight, **params)

    for axes in ((0, 0), (0, None), (None, 0)):
        a, b = (v if axis == 0 else v[0] for v, axis in zip((xs, weights), axes, strict=True))
        found = cr.vmap(cr.grad(lambda x, w: np.sin(f(x, w)).sum(), argnums=(0, 1)), axes)(a, b)
        for k in range(3):
            pair = a[k] if axes[0] == 0 else a, b[k] if axes[1] == 0 else b
            one = cr.grad(lambda x, w: np.sin(f(x, w)).sum(), argnums=(0, 1))(*pair)
            for many, single in zip(found, one, strict=True):
                np.testing.assert_allclose(np.asarray(many)[k], np.asarray(single), 1e-12, 1e-12)


def test_empty_batches_and_noncontiguous_operands():
    weight = cr.rand(3, 1, 2, 2, requires_grad=True)
    out = F.conv2d(cr.zeros(0, 3, 4, 4), weight, groups=3)
    out.sum().backward()
    assert out.shape == (0, 3, 3, 3) and weight.grad.abs().sum() == 0
    x = cr.rand(2, 3, 6, 5)
    weight = cr.rand(2, 2, 1, 3).permute(3, 2, 0, 1)
    for left, right in ((x, weight), (x.mT, weight), (x.flip(0), weight.mT)):
        assert cr.equal(F.conv2d(left, right, groups=3), F.conv2d(left.contiguous(), right.contiguous(), groups=3))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_values_that_are_not_finite(value):
    """Padding is multiplied with the weight, so an infinite weight gives nan there, as in a matrix product."""
    x, weight, g, params = operands(CASES[0], np.float64)
    weight[1, 0, 0, 1] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = primitives.convolution(x, weight, **params)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(by_definition(x, weight, **params)))
        to_x = primitives.convolution_input(g, weight, size=x.shape[2:], **params)
    assert np.isfinite(found[:, 0]).all() and np.isfinite(to_x[:, 2]).all() and not np.isfinite(to_x[:, 1]).all()


def test_overflows_warn_as_numpy_does():
    x = cr.full((1, 2, 3, 3), 1e30)
    with pytest.warns(RuntimeWarning, match="overflow encountered"):
        out = F.conv2d(x, cr.full((2, 1, 2, 2), 1e30), groups=2)
    assert cr.isinf(out).all()


def test_overflows_of_elements_that_belong_to_no_window_do_not_warn():
    x = np.zeros((1, 1, 3, 3), np.float32)
    x[0, 0, :, 2] = 1e30  # the stride passes over the last column
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = primitives.convolution(
            x, np.full((1, 1, 1, 1), 1e30, np.float32), stride=(1, 3), padding=(0, 0), dilation=(1, 1), groups=1
        )
    assert not out.any()
