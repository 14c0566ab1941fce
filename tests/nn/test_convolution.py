"""Convolutions, their transposes and blocks: values against loops, gradients against differences, and errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from behaviour import differs, torch

F = torch.nn.functional
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def numbers(*shape, complex=False, seed=0):
    rng = np.random.default_rng((seed, *shape))
    x = rng.normal(size=shape)
    return torch.from_numpy(x + 1j * rng.normal(size=shape) if complex else x)


def leaf(*shape, **options):
    return numbers(*shape, **options).requires_grad_()


def by_loops(x, w, stride, padding, dilation, groups):
    """The definition, one output at a time."""
    x, w = x.detach().numpy(), w.detach().numpy()
    k = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    counts = [(x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(k)]
    out = np.zeros((x.shape[0], w.shape[0], *counts), np.result_type(x, w))
    inner, per = w.shape[0] // groups, x.shape[1] // groups
    for n, o, *at in np.ndindex(*out.shape):
        for c, *tap in np.ndindex(per, *w.shape[2:]):
            place = tuple(a * s + t * d for a, s, t, d in zip(at, stride, tap, dilation))
            out[(n, o, *at)] += x[(n, o // inner * per + c, *place)] * w[(o, c, *tap)]
    return out


FORMS = [
    ((2, 3, 7), (4, 3, 3), (1,), (0,), (1,), 1),
    ((2, 4, 9), (6, 2, 3), (2,), (1,), (2,), 2),
    ((1, 3, 5), (3, 1, 2), (1,), (2,), (1,), 3),
    ((2, 2, 5, 6), (3, 2, 3, 2), (1, 1), (0, 0), (1, 1), 1),
    ((1, 4, 7, 6), (4, 2, 2, 3), (2, 3), (1, 2), (2, 1), 2),
    ((2, 3, 4, 4), (6, 1, 1, 1), (1, 1), (0, 0), (1, 1), 3),
    ((1, 2, 4, 3, 5), (2, 2, 2, 2, 3), (1, 2, 1), (1, 0, 1), (1, 1, 2), 1),
]


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_values(form, complex):
    x_shape, w_shape, stride, padding, dilation, groups = form
    x, w = numbers(*x_shape, complex=complex), numbers(*w_shape, complex=complex, seed=1)
    out = CONV[len(stride)](x, w, None, stride, padding, dilation, groups)
    np.testing.assert_allclose(out.numpy(), by_loops(x, w, stride, padding, dilation, groups), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_gradients(form):
    x_shape, w_shape, *parameters = form
    x, w, b = leaf(*x_shape), leaf(*w_shape, seed=1), leaf(w_shape[0], seed=2)
    function = CONV[len(parameters[0])]
    assert torch.autograd.gradcheck(lambda *a: function(*a, *parameters), (x, w, b))


@pytest.mark.parametrize("form", FORMS[:5])
def test_second_derivatives(form):
    x_shape, w_shape, *parameters = form
    x, w = leaf(*x_shape), leaf(*w_shape, seed=1)
    function = CONV[len(parameters[0])]
    assert torch.autograd.gradgradcheck(lambda x, w: function(x, w, None, *parameters), (x, w))


def test_complex_gradients():
    x, w = leaf(1, 2, 5, complex=True), leaf(2, 1, 2, complex=True, seed=1)
    assert torch.autograd.gradcheck(lambda x, w: F.conv1d(x, w, None, 2, 1, 1, 2), (x, w))
    x, w = leaf(1, 2, 3, complex=True), leaf(2, 1, 2, complex=True, seed=1)
    assert torch.autograd.gradcheck(lambda x, w: F.conv_transpose1d(x, w, None, 2, 1, 0, 2), (x, w))


@pytest.mark.parametrize(
    "x_shape, w_shape, stride, padding, extra, groups, dilation",
    [
        ((2, 3, 4), (3, 2, 3), (1,), (0,), (0,), 1, (1,)),
        ((1, 4, 3), (4, 3, 2), (3,), (1,), (2,), 2, (2,)),
        ((1, 2, 2), (2, 1, 3), (1,), (0,), (2,), 1, (3,)),  # the output padding is larger than the stride
        ((1, 2, 3, 2), (2, 2, 2, 3), (2, 1), (1, 0), (1, 0), 2, (1, 2)),
        ((1, 1, 2, 2, 2), (1, 2, 2, 1, 2), (1, 2, 1), (0, 0, 1), (0, 1, 0), 1, (1, 1, 1)),
    ],
)
def test_transposed(x_shape, w_shape, stride, padding, extra, groups, dilation):
    """⟨conv(y), x⟩ = ⟨y, transposed(x)⟩."""
    k = len(stride)
    x, w = numbers(*x_shape), numbers(*w_shape, seed=1)
    function = TRANSPOSED[k]
    out = function(x, w, None, stride, padding, extra, groups, dilation)
    y = numbers(*out.shape, seed=3)
    forward = CONV[k](y, w, None, stride, padding, dilation, groups)
    forward = forward[(slice(None), slice(None), *[slice(n) for n in x_shape[2:]])]
    np.testing.assert_allclose((forward * x).sum().item(), (y * out).sum().item(), rtol=1e-10)
    leaves = leaf(*x_shape), leaf(*w_shape, seed=1), leaf(w_shape[1] * groups, seed=2)
    assert torch.autograd.gradcheck(lambda *a: function(*a, stride, padding, extra, groups, dilation), leaves)


@pytest.mark.parametrize("kernel, dilation", [(3, 1), (4, 1), (3, 2), (2, 3), (1, 1)])
def test_padding_same(kernel, dilation):
    x, w = numbers(1, 2, 8), numbers(3, 2, kernel)
    out = F.conv1d(x, w, padding="same", dilation=dilation)
    total = dilation * (kernel - 1)
    left = total // 2
    padded = F.pad(x, (left, total - left))
    assert out.shape == (1, 3, 8)
    np.testing.assert_allclose(out.numpy(), F.conv1d(padded, w, dilation=dilation).numpy(), rtol=1e-12)
    valid = F.conv1d(x, w, padding="valid", dilation=dilation)
    np.testing.assert_allclose(valid.numpy(), F.conv1d(x, w, dilation=dilation).numpy())
    assert torch.autograd.gradcheck(
        lambda x, w: F.conv1d(x, w, padding="same", dilation=dilation), (leaf(1, 2, 8), leaf(3, 2, kernel))
    )


def test_without_a_batch():
    x, w, b = numbers(2, 5, 6), numbers(3, 2, 2, 2), numbers(3)
    np.testing.assert_allclose(F.conv2d(x, w, b).numpy(), F.conv2d(x.unsqueeze(0), w, b)[0].numpy())
    x = numbers(3, 5, 6)
    np.testing.assert_allclose(F.conv_transpose2d(x, w).numpy(), F.conv_transpose2d(x.unsqueeze(0), w)[0].numpy())
    assert F.conv1d(numbers(0, 2, 5), numbers(3, 2, 2)).shape == (0, 3, 4)
    assert F.conv1d(torch.zeros(1, 1, 4, dtype=torch.float32), torch.ones(1, 1, 2)).dtype == torch.float32
    assert F.conv1d(torch.tensor([[[1, 2, 3]]]), torch.tensor([[[1, 1]]])).tolist() == [[[3, 5]]]


def test_batches_of_examples_and_of_weights():
    """vmap over the input, over the weight, and over both."""
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


def test_unfold_and_fold():
    x = numbers(2, 3, 5, 6)
    columns = F.unfold(x, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2))
    assert columns.shape == (2, 18, 10)
    w = numbers(4, 3, 2, 3, seed=1)
    product = w.reshape(4, 18) @ columns
    convolved = F.conv2d(x, w, None, (1, 2), (1, 0), (2, 1))  # sums of 18 terms, in an order of its own
    terms = w.reshape(4, 18).abs() @ columns.abs()
    assert ((product - convolved.reshape(2, 4, 10)).abs() <= 18 * 2**-53 * terms).all()
    ones = F.fold(F.unfold(torch.ones(1, 1, 3, 3), 2), (3, 3), 2)
    assert ones.tolist() == [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]]
    assert torch.autograd.gradcheck(lambda x: F.unfold(x, 2, 1, 1, 2), leaf(1, 2, 3, 4))
    assert torch.autograd.gradcheck(lambda x: F.fold(x, (3, 4), 2, 1, 1, 2), leaf(1, 8, 6))
    assert F.unfold(numbers(3, 4, 4), 2).shape == (12, 9)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: F.conv2d(numbers(1, 2, 5, 5), numbers(2, 2)), "2-dimensional|weight"),
        (lambda: F.conv1d(numbers(1, 2, 5), numbers(1, 3, 2)), "to have 3 channels, but got 2 channels instead"),
        (lambda: F.conv1d(numbers(1, 2, 3), numbers(1, 2, 4)), "Kernel size can't be greater than actual input size"),
        (lambda: F.conv1d(numbers(1, 2, 3), numbers(1, 2, 2), stride=0), "non-positive stride is not supported"),
        (lambda: F.conv1d(numbers(1, 2, 3), numbers(1, 2, 2), padding=-1), "negative padding is not supported"),
        (lambda: F.conv1d(numbers(1, 2, 3), numbers(1, 2, 2), dilation=0), "dilation should be greater than zero"),
        (lambda: F.conv1d(numbers(1, 2, 3), numbers(1, 2, 2), stride=2, padding="same"), "not supported for strided"),
        (lambda: F.conv1d(numbers(1, 2, 3), numbers(1, 2, 2), padding="full"), "padding string"),
        (lambda: F.conv1d(numbers(1, 2, 3), numbers(3, 1, 2), groups=2), "divisible by"),
        (lambda: F.conv1d(numbers(1, 2, 3), numbers(3, 2, 2), numbers(2)), "expected bias to be 1-dimensional"),
        (lambda: F.conv_transpose1d(numbers(1, 2, 3), numbers(3, 2, 2)), "to have 3 channels, but got 2"),
        (lambda: F.conv_transpose1d(numbers(1, 2, 3), numbers(2, 2, 2), output_padding=1), "output padding must be"),
        (lambda: F.fold(numbers(1, 7, 4), 3, 2), "divisible by the product of kernel_size"),
        (lambda: F.fold(numbers(1, 8, 5), 3, 2), "number of sliding blocks"),
    ],
)
def test_errors(call, words):
    with pytest.raises(RuntimeError, match=words):
        call()


def test_dtypes_must_agree():
    with pytest.raises(RuntimeError):
        F.conv1d(numbers(1, 1, 3), torch.ones(1, 1, 2))


def test_one_node():
    out = F.conv2d(leaf(1, 1, 3, 3), leaf(1, 1, 2, 2))
    assert out.grad_fn.name() == "ConvolutionBackward0"


@differs("its message says nothing about it")
def test_channels_in_the_last_axis_are_noticed():
    images = numbers(1, 6, 6, 3)
    with pytest.raises(RuntimeError, match=r"images\.movedim\(-1, 1\)"):
        F.conv2d(images, numbers(4, 3, 2, 2))


# -- what a large image, single channels and bad operands need -------------------------------------------------------


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


@pytest.mark.parametrize("weight", [None, [[1.0]], 2.0])
def test_a_weight_that_is_no_tensor_is_refused(weight):
    with pytest.raises(TypeError, match="conv2d"):
        F.conv2d(numbers(1, 3, 4, 4), weight)


def test_a_bias_that_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match="conv2d"):
        F.conv2d(numbers(1, 3, 4, 4), numbers(2, 3, 2, 2), 1.0)


@pytest.mark.parametrize("groups", [1.0, "1"])
def test_groups_must_be_an_int(groups):
    with pytest.raises(TypeError, match="groups"):
        F.conv2d(numbers(1, 3, 4, 4), numbers(2, 3, 2, 2), groups=groups)


def test_a_kernel_of_no_elements_is_refused():
    with pytest.raises(RuntimeError, match="kernel size should be greater than zero"):
        F.conv1d(numbers(2, 3, 4), numbers(2, 3, 0), padding=1)


def test_booleans_are_not_convolved():
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        F.conv2d(torch.ones(1, 1, 3, 3, dtype=torch.bool), torch.ones(1, 1, 2, 2, dtype=torch.bool))


@pytest.mark.parametrize("groups, channels, out", [(1, 1, 3), (1, 6, 2), (1, 2, 9), (3, 6, 3), (4, 4, 4), (2, 2, 10)])
@pytest.mark.parametrize("stride, padding, dilation", [(1, 0, 1), (1, 1, 2), (2, 1, 1), (1, 3, 1)])
def test_every_way_to_compute_a_convolution(groups, channels, out, stride, padding, dilation):
    """Few or many channels, in groups or not, strided or not: these are computed in different ways."""
    x, w = leaf(2, channels, 4, 5), leaf(out, channels // groups, 3, 2)

    def convolved(x, w):
        return F.conv2d(x, w, None, stride, padding, dilation, groups)

    def transposed(y, w):
        return F.conv_transpose2d(y, w, None, stride, padding, 0, groups, dilation)

    assert torch.autograd.gradcheck(convolved, (x, w)) and torch.autograd.gradcheck(transposed, (leaf(1, out, 5, 7), w))
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
