"""torch.special: values that are known exactly, identities between functions, gradients, special points and dtypes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from behaviour import OURS, differs, torch

S = torch.special
INF, NAN = math.inf, math.nan


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


def line(low, high, n=41):
    return torch.from_numpy(np.linspace(low, high, n))


def close(a, b, rtol=1e-12, atol=0.0):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=atol)


EULER = 0.57721566490153286
KNOWN = [
    (S.gammaln, [0.5, 1, 2, 5, 11], [math.log(math.pi) / 2, 0, 0, math.log(24), math.log(3628800)]),
    (S.digamma, [1, 2, 0.5], [-EULER, 1 - EULER, -EULER - 2 * math.log(2)]),
    (lambda x: S.polygamma(1, x), [1, 0.5], [math.pi**2 / 6, math.pi**2 / 2]),
    (lambda x: S.polygamma(0, x), [1], [-EULER]),
    (lambda x: S.zeta(x, t(1.0)), [2, 4], [math.pi**2 / 6, math.pi**4 / 90]),
    (S.i0, [0, 1, 30], [1, 1.2660658777520083356, 781672297823.97748972]),
    (S.i1, [0, 1, -1], [0, 0.56515910399248502721, -0.56515910399248502721]),
    (S.i0e, [0, 1000], [1, 0.012617240455891256]),
    (S.i1e, [0, 1000], [0, 0.012610930256928630]),
    (S.erfinv, [0, 0.5, -0.999], [0, 0.47693627620446987338, -2.3267537655135246]),
    (S.erfcx, [0, 1, 50], [1, 0.42758357615580700442, 0.011281536265323773]),
    (S.ndtr, [0, 1, -10], [0.5, 0.84134474606854294859, 7.6198530241605260660e-24]),
    (S.ndtri, [0.5, 0.975, 1e-20], [0, 1.9599639845400542355, -9.2623400897985]),
    (S.log_ndtr, [0, -40, 10], [-math.log(2), -804.6084420137538, -7.6198530241605e-24]),
    (S.entr, [0, 1, 0.5, -1], [0, 0, math.log(2) / 2, -INF]),
]


@pytest.mark.parametrize("function, x, expected", KNOWN)
def test_known_values(function, x, expected):
    close(
        function(t(*x)), t(*expected), rtol=1e-12 if OURS else 1e-9, atol=1e-15
    )  # (PyTorch's trigamma has this accuracy)


IDENTITIES = [
    ("Γ(x + 1) = x·Γ(x)", lambda x: S.gammaln(x + 1), lambda x: S.gammaln(x) + x.log(), (0.1, 20)),
    ("ψ(x + 1) = ψ(x) + 1/x", lambda x: S.digamma(x + 1), lambda x: S.digamma(x) + 1 / x, (-7.6, 9.7)),
    ("reflection", lambda x: S.digamma(1 - x) - S.digamma(x), lambda x: math.pi / torch.tan(math.pi * x), (0.1, 0.9)),
    ("ζ(s, q) − q⁻ˢ", lambda x: S.zeta(t(3.0), x + 1), lambda x: S.zeta(t(3.0), x) - x**-3, (0.2, 30)),
    ("erf after its inverse", lambda x: torch.erf(S.erfinv(x)), lambda x: x, (-0.9999, 0.9999)),
    ("ndtr after its inverse", lambda x: S.ndtr(S.ndtri(x)), lambda x: x, (1e-6, 0.9999)),
    ("log_ndtr", lambda x: S.log_ndtr(x).exp(), S.ndtr, (-20, 5)),
    ("erfcx", lambda x: S.erfcx(x), lambda x: torch.exp(x * x) * torch.erfc(x), (-4, 5)),
    ("i0e", lambda x: S.i0e(x) * x.abs().exp(), S.i0, (-40, 40)),
    ("the derivative of I₁", lambda x: S.i1(x), lambda x: torch.func.grad(lambda x: S.i0(x).sum())(x), (-25, 25)),
    ("multigammaln", lambda x: S.multigammaln(x, 2), lambda x: math.log(math.pi) / 2 + S.gammaln(x) + S.gammaln(x - 0.5), (2, 9)),
]  # fmt: skip


@pytest.mark.parametrize("name, left, right, interval", IDENTITIES)
def test_identities(name, left, right, interval):
    close(left(line(*interval)), right(line(*interval)), rtol=1e-10, atol=1e-13)


SMOOTH = [
    (S.gammaln, (0.2, 6)), (S.digamma, (0.2, 6)), (lambda x: S.polygamma(2, x), (0.5, 6)), (S.i0, (-4, 4)),
    (S.i0e, (0.1, 30)), (S.i1, (-4, 4)), (S.i1e, (0.1, 30)), (S.erfinv, (-0.9, 0.9)), (S.erfcx, (-2, 9)),
    (S.ndtr, (-4, 4)), (S.ndtri, (0.05, 0.95)), (S.log_ndtr, (-30, 4)), (S.entr, (0.1, 4)),
    (lambda x: S.zeta(t(2.5), x), (0.3, 9)), (lambda x: S.xlog1py(x, x), (-0.7, 4)),
    (lambda x: S.multigammaln(x, 3), (2, 5)),
]  # fmt: skip


@pytest.mark.parametrize("function, interval", SMOOTH)
def test_gradients(function, interval):
    x = line(*interval, 7).requires_grad_()
    assert torch.autograd.gradcheck(function, x, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("function", [S.gammaln, S.i0, S.erfinv, S.ndtr, S.log_ndtr, S.erfcx])
def test_second_derivatives(function):
    assert torch.autograd.gradgradcheck(function, line(0.2, 0.8, 4).requires_grad_())


def test_edges():
    for function, x, expected in [
        (S.gammaln, [0, -1, INF, NAN], [INF, INF, INF, NAN]),
        (S.digamma, [0.0, -0.0, -1, INF, NAN], [-INF, INF, NAN, INF, NAN]),
        (S.erfinv, [1, -1, 1.5, NAN], [INF, -INF, NAN, NAN]),
        (S.ndtri, [0, 1, -0.5, NAN], [-INF, INF, NAN, NAN]),
        (S.i0, [800, -800, NAN], [INF, INF, NAN]),
        (S.i1, [800, -800, NAN], [INF, -INF, NAN]),
        (S.i1e, [0, INF, -INF], [0, 0, -0.0]),
        (S.erfcx, [-30, INF, NAN], [INF, 0, NAN]),
        (S.log_ndtr, [INF, -INF, NAN], [0, -INF, NAN]),
        (lambda x: S.zeta(x, t(1.0)), [1, 0.5, INF], [INF, NAN, 1]),
        (lambda x: S.xlog1py(t(0.0), x), [-1, -2, 3, NAN], [0, 0, 0, NAN]),
    ]:
        close(function(t(*x)), t(*expected))


def test_the_derivative_of_i1_at_zero():
    x = t(0.0, 1e-9).requires_grad_()
    S.i1(x).sum().backward()
    close(x.grad, t(0.5, 0.5))
    y = t(0.0).requires_grad_()
    S.i1e(y).sum().backward()
    close(y.grad, t(0.5))


def test_dtypes():
    for name in (
        "gammaln",
        "digamma",
        "i0",
        "i0e",
        "i1",
        "i1e",
        "erfinv",
        "erfcx",
        "ndtr",
        "ndtri",
        "log_ndtr",
        "entr",
    ):
        function = getattr(S, name)
        assert function(torch.tensor([0.25])).dtype == torch.float32
        assert function(torch.tensor([1, 0])).dtype == torch.float32
        x = torch.from_numpy(np.linspace(0.1, 0.9, 500).astype(np.float32))
        close(function(x), function(x.double()).float(), rtol=3e-6, atol=1e-6)
    assert S.zeta(torch.tensor([2]), 1.0).dtype == torch.float32
    assert S.xlog1py(torch.tensor([2]), 1).dtype == torch.float32


def test_methods_and_names():
    x = t(0.3, 0.7)
    for method, function in (("lgamma", S.gammaln), ("digamma", S.digamma), ("erfinv", S.erfinv), ("i0", S.i0)):
        close(getattr(x, method)(), function(x))
        y = x.clone()
        getattr(y, method + "_")()
        close(y, function(x))
    close(x.polygamma(1), S.polygamma(1, x))
    close(S.psi(x), S.digamma(x))
    assert S.polygamma(1, x.requires_grad_()).grad_fn.name() == "PolygammaBackward0"


def test_errors():
    with pytest.raises(RuntimeError, match="negative n"):
        S.polygamma(-1, t(1.0))
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        S.multigammaln(t(3.0), 0)
    with pytest.raises(NotImplementedError):
        S.zeta(t(2.0).requires_grad_(), t(1.0)).backward()


POLYNOMIALS = {
    "chebyshev_polynomial_t": lambda n, x: np.polynomial.chebyshev.chebval(x, np.eye(n + 1)[n]),
    "hermite_polynomial_h": lambda n, x: np.polynomial.hermite.hermval(x, np.eye(n + 1)[n]),
    "hermite_polynomial_he": lambda n, x: np.polynomial.hermite_e.hermeval(x, np.eye(n + 1)[n]),
    "laguerre_polynomial_l": lambda n, x: np.polynomial.laguerre.lagval(x, np.eye(n + 1)[n]),
    "legendre_polynomial_p": lambda n, x: np.polynomial.legendre.legval(x, np.eye(n + 1)[n]),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    x = line(-0.9, 0.95, 9)
    function = getattr(S, name)
    for n in range(6):
        close(function(x, n), torch.from_numpy(POLYNOMIALS[name](n, x.numpy())), rtol=1e-9, atol=1e-12)
    degrees = torch.arange(9) - 2
    each = torch.stack([function(x[i], int(n)) for i, n in enumerate(degrees)])
    close(function(x, degrees), each)
    assert each[:2].tolist() == [0, 0] and each[2] == 1
    assert function(torch.tensor([1, 2]), 3).dtype == torch.float32


def test_chebyshev_polynomials_of_the_other_kinds():
    angle = line(0.1, 3.0, 7)
    x = torch.cos(angle)
    for n in range(5):
        close(S.chebyshev_polynomial_u(x, n), torch.sin((n + 1) * angle) / torch.sin(angle), rtol=1e-9, atol=1e-12)
        close(
            S.chebyshev_polynomial_v(x, n), torch.cos((n + 0.5) * angle) / torch.cos(angle / 2), rtol=1e-9, atol=1e-12
        )
        close(
            S.chebyshev_polynomial_w(x, n), torch.sin((n + 0.5) * angle) / torch.sin(angle / 2), rtol=1e-9, atol=1e-12
        )
        close(S.shifted_chebyshev_polynomial_t(x, n), S.chebyshev_polynomial_t(2 * x - 1, n), rtol=1e-9, atol=1e-12)


@differs("its polynomials are cut from the graph")
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_derivatives_of_polynomials(name):
    assert torch.autograd.gradcheck(lambda x: getattr(S, name)(x, 4), line(-0.9, 0.9, 5).requires_grad_())


# -- large arguments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n, at, value", [
    (1, -150000.25, 19.73920213554538), (2, -150000.25, 124.02510672115483),
])  # fmt: skip
def test_polygamma_of_very_negative_numbers(n, at, value):
    torch.testing.assert_close(S.polygamma(n, t(at)), t(value), rtol=1e-9, atol=0)


def test_bessel_functions_of_the_largest_numbers():
    x = t(1e308, -1e308)
    torch.testing.assert_close(S.i0e(x), t(3.989422804014327e-155, 3.989422804014327e-155), rtol=1e-12, atol=0)
    torch.testing.assert_close(S.i1e(x), t(3.989422804014327e-155, -3.989422804014327e-155), rtol=1e-12, atol=0)
    assert S.i0(x).tolist() == [INF, INF]
    assert S.i1(x).tolist() == [INF, -INF]


def test_ndtri_of_numbers_that_are_hardly_there():
    torch.testing.assert_close(
        S.ndtri(t(1e-310, 5e-324)), t(-37.663060331949524, -38.467405617144344), rtol=1e-12, atol=0
    )


def test_ldexp_reaches_as_far_as_the_result():
    out = torch.ldexp(t(1e-300, 1.0, -0.75), torch.tensor([1500, -1074, 1023]))
    assert out.tolist() == [math.ldexp(1e-300, 1500), 5e-324, -0.75 * 2.0**1023]


@differs("its gradient takes 2**exponent as an integer, so that it is 0 for negative exponents")
def test_the_gradient_of_ldexp():
    x = t(1.0, 2.0).requires_grad_()
    torch.ldexp(x, torch.tensor([-2, 3])).sum().backward()
    assert x.grad.tolist() == [0.25, 8.0]


def test_polynomials_of_no_number_of_degrees():
    out = S.chebyshev_polynomial_t(t(0.5, 0.5), t(1.0, NAN))
    assert out.tolist() == [0.5, 0.0]
