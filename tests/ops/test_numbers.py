"""Special numbers: NaN in extrema, numbers outside a dtype's range, products with NumPy arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest

from behaviour import OURS, differs, leaf, torch

NAN = float("nan")


@pytest.mark.parametrize("name", ["max", "min", "median"])
def test_the_nans_share_the_gradient_of_an_extremum_that_is_one(name):
    x = torch.tensor([1.0, NAN, 3.0, NAN], requires_grad=True)
    getattr(x, name)().backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.0, 0.5]


@differs("NaN for all of the row")
@pytest.mark.parametrize("name", ["amax", "amin"])
def test_also_along_an_axis(name):
    x = torch.tensor([[1.0, NAN], [2.0, 2.0]], requires_grad=True)
    getattr(x, name)(1).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("numbers", "dtype"), [([300], "uint8"), ([-300], "uint8"), (2**40, "int32"), ([1e30], "int32"), ([NAN], "int64")]
)
def test_a_number_that_the_dtype_does_not_have(numbers, dtype):
    with pytest.raises(RuntimeError, match=f"cannot be converted to type {dtype} without overflow"):
        torch.tensor(numbers, dtype=getattr(torch, dtype))


def test_a_complex_number_for_a_real_tensor():
    with pytest.raises(TypeError, match="must be real number, not complex"):
        torch.tensor([1 + 2j], dtype=torch.float32)


def test_numbers_that_are_rounded_or_wrapped():
    assert torch.tensor([3.7], dtype=torch.uint8).tolist() == [3]
    assert torch.tensor(-1, dtype=torch.uint8).item() == 255
    assert torch.tensor([], dtype=torch.int8).tolist() == []
    assert torch.tensor(np.array([300]), dtype=torch.uint8).tolist() == [44]  # an array is converted
    assert torch.tensor([2, 0], dtype=torch.bool).tolist() == [True, False]


@pytest.mark.skipif(not OURS, reason="PyTorch takes no arrays here")
def test_products_with_arrays_promote_from_either_side():
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    whole = np.arange(6).reshape(3, 2)
    left, right = x @ whole, np.ones((4, 2), np.int64) @ x
    assert left.dtype == right.dtype == torch.float64
    (left.sum() + right.sum()).backward()
    assert x.grad.tolist() == [[5.0, 9.0, 13.0]] * 2
    assert (torch.ones(2, 3, dtype=torch.float32) @ whole).dtype == torch.float64  # like NumPy
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.ones(2, 2) @ torch.ones(2, 2).double()


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_a_quotient_by_the_number_zero(zero):
    x = torch.ones(2, requires_grad=True)
    with np.errstate(divide="ignore"):
        _, tangent = torch.func.jvp(lambda x: x / zero, (x.detach(),), (torch.ones(2),))
        (x / zero).sum().backward()
    assert tangent.tolist() == x.grad.tolist() == [float("-inf") if str(zero)[0] == "-" else float("inf")] * 2


INF = math.inf
#: function, dtype, point, and its derivative there
DERIVATIVES = {
    "relu of nan": (torch.relu, "float64", [NAN, -1.0], [1.0, 0.0]),
    "softplus far out": (torch.nn.functional.softplus, "float32", [-20.0, -80.0], [2.0611537e-9, 1.8048513e-35]),
    "digamma near 0": (torch.digamma, "float64", [-1e-8, -1e-12], [1e16, 1e24]),
    "lgamma near 0": (torch.lgamma, "float64", [-1e-8, -1e-300], [1e8 - 0.5772156649, 1e300]),
    "logit": (torch.logit, "float64", [-0.5, 0.0, 0.5, 1.0, 1.5], [NAN, INF, 4.0, INF, NAN]),
    "logit within eps": (
        lambda x: torch.logit(x, 0.1),
        "float64",
        [0.05, 0.1, 0.9, 2.0],
        [0.0, 1 / 0.09, 1 / 0.09, 0.0],
    ),
    "x**0 of what is not finite": (lambda x: x**0, "float64", [INF, NAN], [0.0, 0.0]),
    "remainder by the divisor": (lambda y: torch.remainder(y.new_ones(1), y), "float64", [0.1, 0.3], [-9.0, -3.0]),
    "copysign by an infinite sign": (lambda y: torch.copysign(y.new_ones(2), y), "float64", [INF, NAN], [0.0, 0.0]),
    "std beyond the squares": (torch.std, "float32", [1e20, 0.0], [0.70710678, -0.70710678]),
    "std below the squares": (torch.std, "float32", [1e-30, 0.0], [0.70710678, -0.70710678]),
    "norm -1 with a zero": (lambda x: torch.linalg.vector_norm(x, -1), "float64", [1.0, 0.0], [0.0, 0.0]),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("function", "dtype", "at", "expected"), DERIVATIVES.values(), ids=DERIVATIVES)
def test_derivatives_at_the_edge(function, dtype, at, expected):
    x = torch.tensor(at, dtype=getattr(torch, dtype), requires_grad=True)
    function(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=2e-6 if dtype == "float32" else 1e-7)


#: function, the operands, and both derivatives
DERIVATIVES_BY_TWO = {
    "logaddexp": (torch.logaddexp, "float32", [1e7, INF], [1e7, 0.0], [0.5, 1.0], [0.5, 0.0]),
    "logaddexp, wide": (torch.logaddexp, "float64", [1e17, 0.0], [1e17, INF], [0.5, 0.0], [0.5, 1.0]),
    "logaddexp2": (torch.logaddexp2, "float32", [1e7, 3.0], [1e7, 1.0], [0.5, 0.8], [0.5, 0.2]),
    "maximum beside nan": (torch.maximum, "float64", [0.0, NAN], [NAN, 0.0], [1.0, 1.0], [1.0, 1.0]),
    "minimum beside nan": (torch.minimum, "float64", [0.0, NAN], [NAN, 0.0], [1.0, 1.0], [1.0, 1.0]),
    "clamp from below": (torch.clamp_min, "float64", [0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [1.0, 0.0, 0.0]),
    "clamp from above": (torch.clamp_max, "float64", [0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]),
    "nextafter": (torch.nextafter, "float64", [1.0, 1.0], [1.0, 2.0], [0.0, 1.0], [0.0, 0.0]),
    "bce of infinite scores": (
        lambda x, y: torch.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none"),
        "float64", [INF, 0.0], [0.0, 1.0], [1.0, -0.5], [-INF, 0.0],
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("function", "dtype", "x", "y", "by_x", "by_y"), DERIVATIVES_BY_TWO.values(), ids=DERIVATIVES_BY_TWO
)
def test_derivatives_by_two_at_the_edge(function, dtype, x, y, by_x, by_y):
    x, y = (torch.tensor(v, dtype=getattr(torch, dtype), requires_grad=True) for v in (x, y))
    for create_graph in (False, True):
        got = torch.autograd.grad(function(x, y).sum(), (x, y), create_graph=create_graph)
        assert [g.dtype for g in got] == [x.dtype, x.dtype]
        for g, expected in zip(got, (by_x, by_y), strict=True):
            np.testing.assert_allclose(g.detach().numpy(), expected, rtol=1e-6)


def test_clamp_between_two_tensors():
    x, low, high = (
        torch.tensor(v, requires_grad=True)
        for v in ([0.0, 1.0, 2.0, 3.0, 1.0, 0.5], [1.0, 1.0, 1.0, 1.0, 2.0, 1.0], [2.0, 2.0, 2.0, 2.0, 1.0, 1.0])
    )
    y = x.clamp(low, high)
    assert y.tolist() == [1.0, 1.0, 2.0, 2.0, 1.0, 1.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert low.grad.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert high.grad.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 0.0]


@differs("some of these are nan there")
def test_atan2_whose_squares_are_out_of_range():
    y, x = (torch.tensor(v, requires_grad=True) for v in ([1e-30, 0.0, 1e30], [0.0, 1e-30, 1e30]))
    torch.atan2(y, x).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), [0.0, 1e30, 5e-31], rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), [-1e30, 0.0, -5e-31], rtol=1e-6)


@differs("exp(x - out) is taken for the share, however out was rounded")
def test_shares_of_a_logsumexp_of_large_numbers():
    x = torch.tensor([1e7, 1e7], requires_grad=True)
    torch.logsumexp(x, 0).backward()
    assert x.grad.tolist() == [0.5, 0.5]
    x = torch.tensor([1e20, 0.0, 1e20], requires_grad=True)
    torch.logcumsumexp(x, 0).sum().backward()
    assert x.grad.tolist() == [2.5, 0.0, 0.5]


def test_a_cross_entropy_of_large_scores():
    x = torch.tensor([[1e17, 1e17]], dtype=torch.float64, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(x, torch.tensor([0]))
    assert loss.item() == pytest.approx(math.log(2))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "function",
    [
        torch.relu, torch.max, torch.median, torch.tanh, torch.angle, torch.nn.functional.hardtanh,
        torch.nn.functional.hardshrink, torch.nn.functional.softshrink, lambda x: x.clamp(-0.5, 0.5),
        lambda x: torch.nn.functional.threshold(x, 0.0, 0.0), lambda x: torch.fmax(x, x.new_zeros(3)),
        lambda x: torch.minimum(x, x.new_zeros(3)),
    ],
)  # fmt: skip
def test_an_infinite_cotangent_leaves_what_was_not_chosen_at_0(function):
    """As in ``sqrt(relu(x))``, where relu is 0."""
    x = torch.tensor([0.25, 4.0, -4.0], dtype=torch.float64, requires_grad=True)
    y = function(x)
    (g,) = torch.autograd.grad(y, x, torch.full_like(y, INF))
    assert not g.isnan().any() and g.isfinite().any() == (function is not torch.tanh)


@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_no_second_derivative_at_the_kink(name):
    x = torch.tensor([0.0], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(getattr(torch.nn.functional, name)(x).sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].item() == 0


@differs("nan there")
def test_sinc_near_0():
    x = torch.tensor([0.0, 1e-300, 1e-20, 1e-8], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(torch.sinc(x).sum(), x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), -(math.pi**2) / 3 * x.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(torch.autograd.grad(g.sum(), x)[0].numpy(), -(math.pi**2) / 3, rtol=1e-12)


def test_lerp_is_exact_at_its_ends():
    x, y = torch.tensor([1e8], dtype=torch.float64), torch.tensor([0.1], dtype=torch.float64)
    assert torch.lerp(x, y, 1.0)[0].item() == 0.1
    assert torch.quantile(torch.tensor([-INF, 1.0, 3.0]), 0.4).item() == -INF


def test_a_product_of_nothing_has_a_graph():
    x = torch.ones(2, 0, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(x.prod(0).sum(), x, create_graph=True)
    assert g.shape == (2, 0)


def test_a_mode_beside_nan():
    assert torch.tensor([1.0, NAN, 1.0]).mode().values.item() == 1.0


@differs("nan or a number, by the length of the array")
@pytest.mark.parametrize("name", ["elu", "selu", "celu", "hardswish", "hardtanh"])
def test_the_slope_at_nan_is_a_number(name):
    x = torch.tensor([NAN, 4.0], requires_grad=True)
    getattr(torch.nn.functional, name)(x).sum().backward()
    assert x.grad.isnan().tolist() == [False, False]


RESULTS = {
    "a / b": lambda a, b: a / b,
    "1 / a": lambda a, b: 1 / a,
    "softsign": lambda a, b: torch.nn.functional.softsign(a),
    "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2,
    "erfinv": lambda a, b: torch.erfinv(a),
    "layer_norm": lambda a, b: torch.nn.functional.layer_norm(a, (3,)),
    "batch_norm": lambda a, b: torch.nn.functional.batch_norm(a, None, None, training=True),
    "normalize": lambda a, b: torch.nn.functional.normalize(a),
}


@pytest.mark.parametrize("function", RESULTS.values(), ids=RESULTS)
def test_a_result_may_be_written_to_where_the_rule_needs_none(function):
    leaves = [
        torch.tensor(v, dtype=torch.float64, requires_grad=True)
        for v in ([[0.3, 0.5, 0.7], [0.2, 0.6, 0.1]], [[0.9, 0.4, 0.8], [0.7, 0.3, 0.5]])
    ]
    weights = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]], dtype=torch.float64)
    expected = torch.autograd.grad((function(*leaves) * 2 * weights).sum(), leaves, allow_unused=True)
    y = function(*leaves)
    y.mul_(2)
    got = torch.autograd.grad((y * weights).sum(), leaves, allow_unused=True)
    for g, wanted in zip(got, expected, strict=True):
        assert (g is None and wanted is None) or torch.allclose(g, wanted, rtol=1e-12)


@differs("nan where more than one singular value is 0")
@pytest.mark.parametrize(
    "matrix", [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]]], ids=["rank 1", "0", "2"]
)
def test_the_second_derivative_of_a_determinant(matrix):
    hessian = [[[[0, 0], [0, 1]], [[0, 0], [-1, 0]]], [[[0, -1], [0, 0]], [[1, 0], [0, 0]]]]
    x = torch.tensor(matrix, dtype=torch.float64)
    for second in (torch.func.hessian, lambda f: torch.func.jacrev(torch.func.jacrev(f))):
        np.testing.assert_allclose(second(torch.linalg.det)(x).numpy(), hessian, atol=1e-12)


@pytest.mark.parametrize("name", ["eig", "eigvals"])
def test_eigenvalues_of_nothing(name):
    def values(x):
        return getattr(torch.linalg, name)(x)[0] if name == "eig" else torch.linalg.eigvals(x)

    x = torch.zeros(0, 0, dtype=torch.float64, requires_grad=True)
    assert [tuple(part.shape) for part in torch.func.jvp(values, (x.detach(),), (x.detach(),))] == [(0,), (0,)]
    (g,) = torch.autograd.grad(values(x).abs().sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].shape == (0, 0)


def test_the_dtype_of_nothing_padded():
    assert torch.nn.functional.pad(torch.tensor([True, False]), (0, -1)).dtype == torch.bool


@pytest.mark.skipif(not OURS, reason="PyTorch takes no arrays here")
@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4"])
def test_arrays_in_another_byte_order(dtype):
    x, swapped = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True), np.array([3, 4], dtype)
    for y in (x * swapped, swapped * x, torch.mul(swapped, x), np.multiply(x, swapped)):
        assert y.tolist() == [3.0, 8.0] and y.dtype == torch.float64
        assert torch.autograd.grad(y.sum(), x)[0].tolist() == [3.0, 4.0]
    assert (x - swapped).tolist() == [-2.0, -2.0]
    assert torch.func.vmap(lambda a: a * 2)(swapped).dtype.isnative
    if dtype != ">i4":
        assert torch.func.grad(lambda a: (a**2).sum())(swapped).tolist() == [6.0, 8.0]


@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((100_000, 10), 0),
        ((3, 5001, 4), 1),
        pytest.param((5000, 3, 4), (0, 2), marks=differs("it rounds more often")),
        ((300, 4), 0),
    ],
)
@pytest.mark.parametrize("name", ["sum", "mean", "var"])
def test_sums_of_many_rows_are_as_exact_as_pairwise_ones(name, shape, dim):
    x = torch.tensor(np.random.default_rng(0).random(shape, np.float32), requires_grad=True)
    exact = getattr(x.detach().double(), name)(dim).numpy()
    got = getattr(x, name)(dim)
    np.testing.assert_allclose(got.detach().numpy(), exact, rtol=2e-6)
    assert tuple(getattr(x, name)(dim, keepdim=True).squeeze().shape) == tuple(got.squeeze().shape)


def test_the_gradient_of_what_is_broadcast_to_many_rows():
    weights = np.random.default_rng(1).random((50_000, 3), np.float32)
    bias = torch.zeros(3, requires_grad=True)
    ((torch.zeros(50_000, 3) + bias) * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(bias.grad.numpy(), weights.sum(0, dtype=np.float64), rtol=2e-6)


@pytest.mark.parametrize("dim", [0, 1])
def test_cumulative_sums_are_computed_in_double_precision(dim):
    x = torch.tensor(np.random.default_rng(0).random((3000, 7) if dim == 0 else (7, 3000), np.float32))
    exact = x.double().cumsum(dim)
    np.testing.assert_allclose(x.cumsum(dim).numpy(), exact.numpy(), rtol=1e-7)
    backwards = x.clone().requires_grad_()
    backwards.cumsum(0)[-1].sum().backward()
    assert backwards.grad.eq(1).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_cumulative_products_beyond_the_range():
    assert torch.tensor([1e30, 1e30, 1e-30]).cumprod(0)[2].item() == pytest.approx(1e30)
    assert torch.tensor([60000.0, 60000.0, -60000.0], dtype=torch.float16).cumsum(0)[2].item() == pytest.approx(60000)


def test_renorm_leaves_what_is_short_alone():
    x = torch.tensor([[NAN, 0.5], [3.0, 4.0], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    x.renorm(2, 0, 1.0)[:, 1].sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0.0, 1.0], [-0.096, 0.072], [0.0, 1.0]], rtol=1e-6)


def test_the_angle_of_0_has_no_slope():
    z = torch.tensor([0j, 1j], dtype=torch.complex128, requires_grad=True)
    z.angle().sum().backward()
    assert z.grad.tolist() == [0j, -1 + 0j]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@differs("it divides what went out of range")
def test_products_beyond_the_range_have_their_derivatives_still():
    x = torch.tensor([1e30, 1e30], requires_grad=True)
    x.prod().backward()
    assert x.grad.tolist() == pytest.approx([1e30, 1e30])
    x = torch.tensor([1e-30, 1e-30], requires_grad=True)
    x.cumprod(0)[1].backward()
    assert x.grad.tolist() == pytest.approx([1e-30, 1e-30])


@differs("compares and bounds with the number wrapped around, too")
def test_comparisons_and_bounds_do_not_wrap_around():
    u = torch.tensor([1, 250], dtype=torch.uint8)
    assert (u > -3).tolist() == [True, True]
    assert u.clamp(min=-3, max=300).tolist() == [1, 250]


def test_covariance_of_too_few_observations_warns():
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        out = torch.cov(torch.tensor(3.0))
    assert math.isnan(out.item())


def test_covariances_of_too_few_observations_have_tangents():
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    with pytest.warns(UserWarning, match="degrees of freedom"):
        value, tangent = torch.func.jvp(lambda x: torch.cov(x, correction=3), (x,), (torch.ones(2, 2),))
    assert value.isinf().all() and tangent.isnan().all()


@pytest.mark.parametrize("base", [-1.0, -0.5, 2.0])
def test_real_base_with_a_complex_exponent(base):
    def z():
        return torch.tensor([0.3 + 0.7j, -1.2 + 0.1j], dtype=torch.complex128, requires_grad=True)

    x = torch.full((2,), base, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda z: torch.pow(x, z), (z(),))
    assert torch.autograd.gradcheck(lambda z: torch.pow(base, z), (z(),))


@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_distinct_elements_require_grad(name, dim):
    x = torch.tensor([[1.0, 1.0, 2.0], [3.0, 3.0, 2.0], [1.0, 1.0, 2.0], [1.0, 1.0, 2.0]], requires_grad=True)
    values, inverse, counts = getattr(torch, name)(x, return_inverse=True, return_counts=True, dim=dim)
    plain = getattr(torch, name)(x.detach(), dim=dim)
    assert values.requires_grad and not inverse.requires_grad and not counts.requires_grad
    assert values.tolist() == plain.tolist() and not plain.requires_grad


@differs("its derivative is not implemented")
def test_the_first_of_equal_elements_gets_the_gradient():
    x = leaf(3.0, 1.0, 3.0, 2.0)
    (torch.unique(x) * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 0.0, 10.0]
    y = leaf(3.0, 3.0, 1.0, 3.0)
    (torch.unique_consecutive(y) * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert y.grad.tolist() == [1.0, 0.0, 10.0, 100.0]
    rows = torch.tensor([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]], requires_grad=True)
    (torch.unique(rows, dim=0) * torch.tensor([[1.0], [10.0]])).sum().backward()
    assert rows.grad.tolist() == [[10.0, 10.0], [0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("dtype", "weight", "bits"),
    [  # PyTorch's
        ("float32", 0.1, ["0x1.47ae160000000p-2", "0x1.2e147a0000000p-1", "0x1.428f5c0000000p+0"]),
        ("float32", 0.3, ["0x1.851eba0000000p-1", "0x1.7ae1460000000p-2", "0x1.2e147a0000000p+0"]),
        ("float16", 0.3, ["0x1.8540000000000p-1", "0x1.7b00000000000p-2", "0x1.2e00000000000p+0"]),
        ("float16", 0.7, ["0x1.a400000000000p+0", "-0x1.1e40000000000p-4", "0x1.0500000000000p+0"]),
        ("float16", 1, ["0x1.2680000000000p+1", "-0x1.9980000000000p-2", "0x1.ccc0000000000p-1"]),
    ],
)
def test_lerp_by_a_number_is_computed_in_the_dtype(dtype, weight, bits):
    x, y = (torch.tensor(v).to(getattr(torch, dtype)) for v in ([0.1, 0.7, 1.3], [2.3, -0.4, 0.9]))
    assert [float(v).hex() for v in torch.lerp(x, y, weight)] == bits
