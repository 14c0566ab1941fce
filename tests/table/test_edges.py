"""Derivatives at points without derivative, or where a formula is 0/0: PyTorch's choice, in forward and reverse mode.

The expected numbers are PyTorch 2.13's.
"""

import numpy as np
import pytest

import chainrule as torch
import chainrule.linalg
import chainrule.nn.functional as F
from chainrule._src.rules.primitive import TABLE

inf, nan = float("inf"), float("nan")


def gradients(f, *values):
    leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    with np.errstate(all="ignore"):
        f(*leaves).sum().backward()
    return [leaf.grad.tolist() for leaf in leaves]


UNARY = [
    ("abs", torch.abs, [0.0, -0.0, 2.0], [0.0, 0.0, 1.0]),
    ("sqrt", torch.sqrt, [0.0, 4.0], [inf, 0.25]),
    ("relu", torch.relu, [0.0, -0.0, 1.0], [0.0, 0.0, 1.0]),
    (
        "clamp at both bounds",
        lambda x: torch.clamp(x, -1.0, 1.0),
        [-1.0, 1.0, 0.0, 2.0, -2.0],
        [1.0, 1.0, 1.0, 0.0, 0.0],
    ),
    ("clamp from below", lambda x: torch.clamp(x, min=0.0), [0.0, -1.0], [1.0, 0.0]),
    ("x**0", lambda x: x**0, [0.0, 2.0, -1.0], [0.0, 0.0, 0.0]),
    ("x**0.", lambda x: x**0.0, [0.0, 2.0], [0.0, 0.0]),
    ("x**1", lambda x: x**1, [0.0, -2.0], [1.0, 1.0]),
    ("x**2", lambda x: x**2, [0.0, -3.0], [0.0, -6.0]),
    ("x**3", lambda x: x**3, [0.0, -2.0], [0.0, 12.0]),
    ("x**0.5", lambda x: x**0.5, [0.0], [inf]),
    ("x**-1", lambda x: x**-1, [0.0], [-inf]),
    ("x**tensor(0)", lambda x: x ** torch.tensor([0.0, 0.0], dtype=torch.float64), [0.0, 3.0], [0.0, 0.0]),
    ("2**x", lambda x: 2.0**x, [0.0], [np.log(2.0)]),
    ("0**x", lambda x: 0.0**x, [0.0, 2.0], [0.0, 0.0]),
    ("norm at 0", lambda x: torch.linalg.vector_norm(x), [0.0, 0.0], [0.0, 0.0]),
    ("1-norm", lambda x: torch.linalg.vector_norm(x, 1), [0.0, -2.0], [0.0, -1.0]),
    ("3-norm at 0", lambda x: torch.linalg.vector_norm(x, 3), [0.0, 0.0], [0.0, 0.0]),
    ("max-norm, tied", lambda x: torch.linalg.vector_norm(x, inf), [2.0, -2.0, 1.0], [0.5, -0.5, 0.0]),
    ("prod with a zero", torch.prod, [2.0, 0.0, 3.0], [0.0, 6.0, 0.0]),
    ("prod with two zeros", torch.prod, [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ("cumprod with a zero", lambda x: torch.cumprod(x, 0), [2.0, 0.0, 3.0], [1.0, 8.0, 0.0]),
    ("cumprod with two zeros", lambda x: torch.cumprod(x, 0), [2.0, 0.0, 3.0, 0.0], [1.0, 8.0, 0.0, 0.0]),
    ("amax, tied", torch.amax, [1.0, 3.0, 3.0], [0.0, 0.5, 0.5]),
    ("amin, tied", torch.amin, [1.0, 1.0, 3.0], [0.5, 0.5, 0.0]),
    ("max(), tied", torch.max, [1.0, 3.0, 3.0], [0.0, 0.5, 0.5]),
    ("max(dim), tied", lambda x: torch.max(x, 0).values, [1.0, 3.0, 3.0], [0.0, 1.0, 0.0]),
    ("sinc at 0", torch.sinc, [0.0], [0.0]),
    ("elu of nan", F.elu, [nan], [1.0]),
    ("hardtanh of nan", F.hardtanh, [nan], [1.0]),
    ("hardswish of nan", F.hardswish, [nan], [1.0]),
    ("logit of nan", lambda x: torch.logit(x, 0.1), [nan, 0.05, 0.5], [nan, 0.0, 4.0]),
    ("norm of one large number", lambda x: x[:, None].norm(dim=1), [1e200, -1e-200], [1.0, -1.0]),
    ("division by 0, cut", lambda x: torch.div(x, 0.0, rounding_mode="trunc"), [1.0, 0.0], [0.0, 0.0]),
    ("sign", torch.sign, [0.0, 2.0], [0.0, 0.0]),
    ("floor at a step", torch.floor, [1.0], [0.0]),
    ("round at a half", torch.round, [0.5], [0.0]),
    ("std of a constant", lambda x: torch.std(x), [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
    ("var of a constant", lambda x: torch.var(x), [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
    ("log at 0", torch.log, [0.0], [inf]),
    ("logsumexp of -inf", lambda x: torch.logsumexp(x, 0), [-inf, 0.0], [0.0, 1.0]),
    ("softmax, weighted, of large numbers", lambda x: torch.softmax(x, 0)[1], [1000.0, 1000.0], [-0.25, 0.25]),
    ("sigmoid far out", torch.sigmoid, [-800.0, 800.0, 0.0], [0.0, 0.0, 0.25]),
    (
        "softplus far out",
        lambda x: TABLE["softplus"](x, beta=1.0, threshold=20.0),
        [-800.0, 800.0, 0.0],
        [0.0, 1.0, 0.5],
    ),
    ("nan_to_num", torch.nan_to_num, [nan, inf, 1.0], [0.0, 0.0, 1.0]),
    ("asin at 1", torch.asin, [1.0], [inf]),
    ("tanh far out", torch.tanh, [40.0], [0.0]),
    ("reciprocal of 0", torch.reciprocal, [0.0], [-inf]),
    ("where hides", lambda x: torch.where(x > 0, x, torch.zeros_like(x)), [0.0, 1.0, -1.0], [0.0, 1.0, 0.0]),
]


@pytest.mark.parametrize("f, at, expected", [case[1:] for case in UNARY], ids=[case[0] for case in UNARY])
def test_unary(f, at, expected):
    (got,) = gradients(f, at)
    np.testing.assert_allclose(got, expected, rtol=1e-14, atol=0)


BINARY = [
    ("maximum, tied", torch.maximum, ([1.0, 2.0, 0.0], [1.0, 1.0, 3.0]), ([0.5, 1.0, 0.0], [0.5, 0.0, 1.0])),
    ("minimum, tied", torch.minimum, ([1.0, 2.0, 0.0], [1.0, 1.0, 3.0]), ([0.5, 0.0, 1.0], [0.5, 1.0, 0.0])),
    ("fmax, tied", torch.fmax, ([1.0, nan, 2.0], [1.0, 1.0, nan]), ([1.0, 0.0, 1.0], [0.0, 1.0, 0.0])),
    ("fmin, tied", torch.fmin, ([1.0, nan, 2.0], [1.0, 1.0, nan]), ([1.0, 0.0, 1.0], [0.0, 1.0, 0.0])),
    ("atan2 at the origin", torch.atan2, ([0.0, 0.0], [0.0, 1.0]), ([0.0, 1.0], [0.0, 0.0])),
    ("0**y", torch.pow, ([0.0, 0.0, 0.0], [2.0, 0.0, 1.0]), ([0.0, 0.0, 1.0], [0.0, 0.0, 0.0])),
    ("pow of a negative base", torch.pow, ([-2.0], [2.0]), ([-4.0], [nan])),
    ("hypot at the origin", torch.hypot, ([0.0], [0.0]), ([nan], [nan])),
    ("copysign of 0", torch.copysign, ([0.0, -2.0], [1.0, 1.0]), ([0.0, -1.0], [0.0, 0.0])),
    ("0/0", torch.div, ([0.0], [0.0]), ([inf], [nan])),
    ("xlogy at 0", torch.xlogy, ([0.0, 0.0], [0.0, 2.0]), ([0.0, np.log(2.0)], [nan, 0.0])),
    ("remainder", torch.remainder, ([-7.0], [3.0]), ([1.0], [3.0])),
    ("fmod", torch.fmod, ([-7.0], [3.0]), ([1.0], [2.0])),
    ("logaddexp of equal -inf", torch.logaddexp, ([0.0], [-inf]), ([1.0], [0.0])),
]


@pytest.mark.parametrize("f, at, expected", [case[1:] for case in BINARY], ids=[case[0] for case in BINARY])
def test_binary(f, at, expected):
    for got, wanted in zip(gradients(f, *at), expected):
        np.testing.assert_allclose(got, wanted, rtol=1e-14, atol=0)


@pytest.mark.parametrize("f, at, expected", [case[1:] for case in UNARY], ids=[case[0] for case in UNARY])
def test_forward_mode_agrees(f, at, expected):
    """The JVP along each axis, summed, is the gradient of the sum (0·inf aside, which is nan)."""
    if not np.all(np.isfinite(expected)):
        pytest.skip("an infinite derivative times the zeros of a unit vector is nan")
    x = torch.tensor(at, dtype=torch.float64)
    for i, wanted in enumerate(expected):
        unit = torch.zeros_like(x)
        unit[i] = 1.0
        with np.errstate(all="ignore"):
            _, tangent = torch.func.jvp(f, (x,), (unit,))
        assert float(tangent.sum()) == pytest.approx(wanted, rel=1e-14, nan_ok=True)


@pytest.mark.parametrize(
    "f, at, expected",
    [
        (lambda x: torch.prod(x), [2.0, 0.0, 3.0], [[0.0, 3.0, 0.0], [3.0, 0.0, 2.0], [0.0, 2.0, 0.0]]),
        (lambda x: x[0] ** 2 * x[1] ** 3, [0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]),
        (lambda x: torch.cumprod(x, 0)[2], [2.0, 0.0, 3.0], [[0.0, 3.0, 0.0], [3.0, 0.0, 2.0], [0.0, 2.0, 0.0]]),
        (lambda x: torch.relu(x).sum() ** 2, [0.0, 1.0], [[0.0, 0.0], [0.0, 2.0]]),
        (lambda x: (torch.abs(x) * x).sum(), [0.0, -1.0], [[0.0, 0.0], [0.0, -2.0]]),
    ],
)
def test_second_derivatives(f, at, expected):
    x = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    with np.errstate(all="ignore"):
        (g,) = torch.autograd.grad(f(x), x, create_graph=True)
        rows = [torch.autograd.grad(part, x, retain_graph=True, materialize_grads=True)[0].tolist() for part in g]
    np.testing.assert_allclose(rows, expected, atol=1e-15)


ONE = np.ones(2)
SIGNED = [
    ("relu", torch.relu, -0.0, -0.0),
    ("relu6", F.relu6, -0.0, -0.0),
    ("elu", F.elu, -0.0, -0.0),
    ("selu", F.selu, -0.0, -0.0),
    ("celu", lambda x: F.celu(x, 0.5), -0.0, -0.0),
    ("hardtanh", lambda x: F.hardtanh(x, 0.0, 1.0), -0.0, -0.0),
    ("softshrink", F.softshrink, -0.25, 0.0),
    ("clamp from below", lambda x: x.clamp(min=0.0), -0.0, -0.0),
    ("clamp from above", lambda x: x.clamp(max=0.0), -0.0, -0.0),
    ("clamp", lambda x: x.clamp(0.0, 1.0), -0.0, -0.0),
    ("clamp at -0", lambda x: x.clamp(min=-0.0), 0.0, 0.0),
    ("slope of sinc", lambda x: torch.func.vmap(torch.func.grad(torch.sinc))(x), 0.0, 0.0),
]


@pytest.mark.parametrize("f, at, expected", [case[1:] for case in SIGNED], ids=[case[0] for case in SIGNED])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_signs_of_zeros(f, at, expected, dtype):
    for n in (1, 2, 9, 33):  # loops over complete registers, and over the remainder
        y = f(torch.full((n,), at, dtype=dtype)).numpy()
        assert (y == 0).all() and (np.signbit(y) == np.signbit(expected)).all()


@pytest.mark.parametrize(
    "clip",
    [
        lambda x: np.clip(x, 0, 1), lambda x: np.clip(x, 0, None), lambda x: np.clip(x, None, 0),
        lambda x: np.clip(x, 0 * ONE, ONE), lambda x: np.clip(x, None, 0 * ONE),
    ],
)  # fmt: skip
def test_clip_keeps_the_signs_of_numpy(clip):
    x = np.array([-0.0, 0.0])
    seen = []
    torch.func.grad(lambda a: seen.append(clip(a).detach()) or np.sum(a))(x)
    assert np.signbit(np.asarray(seen[0])).tolist() == np.signbit(clip(x)).tolist()


def test_cut_quotients_of_integers_are_exact():
    x, y = torch.tensor([16777217, -7, 2**62 + 1]), torch.tensor([1, 2, 3])
    assert torch.div(x, y, rounding_mode="trunc").tolist() == [16777217, -3, 1537228672809129301]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.div(x, 0, rounding_mode="trunc")


def test_abs_of_complex_zero():
    z = torch.tensor([0j, 3 + 4j], requires_grad=True)
    torch.abs(z).sum().backward()
    assert z.grad.tolist() == pytest.approx([0j, 0.6 + 0.8j])
