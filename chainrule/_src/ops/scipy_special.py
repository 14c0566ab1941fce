"""SciPy's special functions for tensors: SciPy computes values, and ``scipy.special.gammaln(t)`` is recorded.

Loaded when one of them is first called with a tensor, or by ``chainrule.special``, so chainrule itself needs only NumPy. Each
primitive is declared in a line: its name, the domain of its arguments, and for each argument the partial derivative, in terms
of the arguments, the result ``out``, and other functions of ``scipy.special``. The derivatives are from DLMF
(https://dlmf.nist.gov), chapters 5 to 10. None means that SciPy has no function for the derivative. A pair is used where the
formula would cancel for some arguments: the formula to show, and the rule.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from scipy import special

from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, Params
from chainrule._src.ops import incomplete
from chainrule._src.rules.kinds import elementwise
from chainrule._src.rules.primitive import TABLE, unsupported
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.protocol import UFUNCS

#: SciPy's ufuncs: with SCIPY_ARRAY_API=1, ``scipy.special`` has wrappers of them.
UFUNCS_OF_SCIPY = {name: f for name, f in vars(getattr(special, "_ufuncs", special)).items() if isinstance(f, np.ufunc)}
#: Names that the partial derivatives may use.
NAMES: Params = {
    **vars(special),
    **UFUNCS_OF_SCIPY,
    "zeta": UFUNCS_OF_SCIPY["_zeta"],
    **{f.__name__: f for f in incomplete.PARTIALS},
    "np": np,
    "root2": math.sqrt(2),
    "rootpi": math.sqrt(math.pi),
    "root2pi": math.sqrt(2 * math.pi),
    "ln10": math.log(10),
    "degree": math.pi / 180,
}
#: Name of SciPy's function -> primitive.
ROWS: dict[str, Any] = {}


def row(name: str, domain: Any, value: Any = None, accepts: str = "fc", **partials: Any) -> None:
    """Declare the primitive of a SciPy ufunc (or of ``value``), unless SciPy lacks the ufunc or the user has declared one."""
    value = value or UFUNCS_OF_SCIPY.get(name)
    if value is None:
        return
    function = _stand_in(name, partials)
    reason = f"scipy.special has no function for the derivative of {name} with respect to "
    pairs = {x: cell if isinstance(cell, tuple) else (cell, None) for x, cell in partials.items()}
    rules = {
        x: unsupported(reason + x) if text is None else rule or _rule(text, partials)
        for x, (text, rule) in pairs.items()
    }
    formula = {x: f"g * ({text})" for x, (text, _) in pairs.items() if text is not None}
    options = {"domain": domain, "accepts": accepts, "promotion": "float", "listed": False}
    prim = ROWS[name] = elementwise(value=value, d=rules, formula=formula, **options)(function)
    if isinstance(value, np.ufunc):
        UFUNCS.setdefault(value, prim)


def _function_of(name: str, x: AnyArray) -> AnyArray:
    """Apply a primitive that is not a ufunc, for use in partial derivatives."""
    return bind(ROWS[name], (x,), {})


def _stand_in(name: str, operands: Params) -> AnyFunction:
    """Return a function with the ufunc's name and argument names, to declare the primitive with."""
    function = eval(f"lambda {', '.join(operands)}: None")
    function.__name__ = name
    function.__doc__ = f"Compute {name} of scipy.special, by SciPy."
    return function


def _rule(text: str, operands: Params) -> AnyFunction:
    """Compile a partial derivative to a function of the names that occur in it."""
    named = compile(text, "<scipy.special>", "eval").co_names
    parameters = ", ".join(x for x in (*operands, "out") if x in named)
    return eval(compile(f"lambda {parameters}: {text}", __file__, "eval"), NAMES)


POSITIVE, UNIT, REAL = (0.3, 3.0), (0.1, 0.9), (-2.0, 2.0)

# -- error functions, and the normal distribution's ------------------------------------------------------------------

row("erf", REAL, x="2 / rootpi * np.exp(-x * x)")
row("erfc", REAL, x="-2 / rootpi * np.exp(-x * x)")
row("erfcx", REAL, x=("2 * x * out - 2 / np.sqrt(np.pi)", lambda x, out: _erfcx_derivative(x, out)))
row("erfi", REAL, x="2 / rootpi * np.exp(x * x)")
row("erfinv", (-0.9, 0.9), x="rootpi / 2 * np.exp(out * out)")
row("erfcinv", (0.1, 1.9), x="-rootpi / 2 * np.exp(out * out)")
row("dawsn", REAL, x="1 - 2 * x * out")
row("ndtr", REAL, x="np.exp(-x * x / 2) / root2pi")
row("log_ndtr", REAL, x=("np.exp(-x * x / 2 - out) / np.sqrt(2 * np.pi)", lambda x, out: _log_ndtr_derivative(x, out)))
row("ndtri", UNIT, x="root2pi * np.exp(out * out / 2)")
row("ndtri_exp", (-3.0, -0.1), x="root2pi * np.exp(out * out / 2 + x)")
row("owens_t", (REAL, REAL), h="-np.exp(-h * h / 2) * erf(a * h / root2) / (2 * root2pi)",
    a="np.exp(-h * h * (1 + a * a) / 2) / (2 * np.pi * (1 + a * a))")  # fmt: skip


def _erfcx_derivative(x: AnyArray, out: Any) -> AnyArray:
    """Return 2x·erfcx(x) − 2/√π; where the difference cancels, by the asymptotic series of the remainder (DLMF 7.12.1)."""
    large = np.real(x) > 12
    z = 0.5 / np.square(np.where(large, x, 12))
    series: Any = 1.0
    for k in range(19, 1, -2):
        series = 1 - k * z * series
    two_over_root_pi = 2 / math.sqrt(math.pi)
    return np.where(large, -two_over_root_pi * z * series, 2 * np.where(large, 0, x) * out - two_over_root_pi)


def _log_ndtr_derivative(x: AnyArray, out: Any) -> AnyArray:
    """Return density / distribution function; for x > 0 erfcx would overflow, for x < 0 the exponents would cancel."""
    positive = np.real(x) > 0
    right, left = np.where(positive, x, 0), np.where(positive, 0, x)
    density = np.exp(-0.5 * np.square(right) - np.where(positive, out, 0)) / math.sqrt(2 * math.pi)
    return np.where(positive, density, math.sqrt(2 / math.pi) / UFUNCS_OF_SCIPY["erfcx"](-math.sqrt(0.5) * left))


# -- logistic functions, entropies, losses ---------------------------------------------------------------------------

row("expit", REAL, x="out * (1 - out)")
row("log_expit", REAL, x="expit(-x)")
row("logit", UNIT, x="1 / (x * (1 - x))")
row("entr", POSITIVE, x="-np.log(x) - 1")
row("rel_entr", POSITIVE, x="np.log(x / y) + 1", y="-x / y")
row("kl_div", POSITIVE, x="np.log(x / y)", y="1 - x / y")
row("xlog1py", POSITIVE, x="np.log1p(y)", y="x / (1 + y)")
row("huber", ((0.5, 1.0), (-2.0, 2.0)), delta="np.maximum(abs(r) - delta, 0)", r="np.clip(r, -delta, delta)")
row("pseudo_huber", ((0.5, 1.0), (-2.0, 2.0)),
    delta="2 * delta * (np.hypot(1, r / delta) - 1) - r * r / np.hypot(delta, r)", r="r / np.hypot(1, r / delta)")  # fmt: skip
row("boxcox", ((0.3, 3.0), (0.5, 2.0)), x="x ** (lmbda - 1)", lmbda="(x ** lmbda * np.log(x) - out) / lmbda")
row("inv_boxcox", ((0.3, 3.0), (0.5, 2.0)), y="out ** (1 - lmbda)", lmbda=None)

# -- exponential functions and integrals -----------------------------------------------------------------------------

row("exp10", REAL, x="ln10 * out")
row("cosm1", REAL, x="-np.sin(x)")
row("sindg", (-90.0, 90.0), x="degree * cosdg(x)")
row("cosdg", (-90.0, 90.0), x="-degree * sindg(x)")
row("tandg", (-80.0, 80.0), x="degree * (1 + out * out)")
row("cotdg", (10.0, 90.0), x="-degree * (1 + out * out)")
row("exp1", POSITIVE, x="-np.exp(-x) / x")
row("expi", POSITIVE, x="np.exp(x) / x")


def _zeta(s: Any, x: AnyArray) -> NumpyArray:
    """Compute SciPy's zeta, except that SciPy sums −x terms one by one for x < 0, and has no limit for s = ∞."""
    zeta = UFUNCS_OF_SCIPY["_zeta"]
    if np.iscomplexobj(s):
        return zeta(s, x)
    below = (x < -1e5) & (x != np.floor(x)) & (s > 1) & (s < np.inf) & (s == np.floor(s))
    if np.any(below):  # the sum over k ≥ 0, and the terms below 0, which up to sign are those from there to −x
        fraction = np.where(below, np.ceil(x) - x, 1)
        mirrored = zeta(s, fraction) - zeta(s, np.where(below, 1 - x, 1))
        out = zeta(s, np.where(below, 1 - fraction, x)) + np.where(below, np.where(s % 2, -mirrored, mirrored), 0)
    else:
        out = zeta(s, x)
    return np.where(np.isposinf(s) & (x > 1), 0, out).astype(out.dtype)


# -- gamma and beta functions ----------------------------------------------------------------------------------------

row("gamma", POSITIVE, accepts="f", x="out * psi(x)")
row("gammaln", POSITIVE, x="psi(x)")
row("loggamma", POSITIVE, accepts="f", x="psi(x)")
row("rgamma", POSITIVE, accepts="f", x="-out * psi(x)")
row("gammasgn", POSITIVE, x="0 * x")
row("psi", POSITIVE, accepts="f", x="zeta(2, x)")
row("lgamma", POSITIVE, UFUNCS_OF_SCIPY.get("gammaln"), x="digamma(x)")  # PyTorch's names for gammaln and psi
row("digamma", POSITIVE, UFUNCS_OF_SCIPY.get("psi"), "f", x="zeta(2, x)")
row("zeta", ((1.5, 4.0), POSITIVE), _zeta, s=None, x="-s * zeta(s + 1, x)")
_density = "np.exp(xlogy(a - 1, {0}) - {0} - gammaln(a))"
row("gammainc", ((0.5, 3.0), POSITIVE), a="gammainc_by_a(a, x)", x=_density.format("x"))
row("gammaincc", ((0.5, 3.0), POSITIVE), a="-gammainc_by_a(a, x)", x="-" + _density.format("x"))
row("gammaincinv", ((0.5, 3.0), UNIT), a="gamma_quantile_by_a(a, out)", y="1 / " + _density.format("out"))
row("gammainccinv", ((0.5, 3.0), UNIT), a="gamma_quantile_by_a(a, out)", y="-1 / " + _density.format("out"))
row("beta", POSITIVE, a="out * (psi(a) - psi(a + b))", b="out * (psi(b) - psi(a + b))")
row("betaln", POSITIVE, a="psi(a) - psi(a + b)", b="psi(b) - psi(a + b)")
_density = "np.exp(xlogy(a - 1, {0}) + xlog1py(b - 1, -{0}) - betaln(a, b))"
_shapes = ((0.5, 3.0), (0.5, 3.0), UNIT)
_by_a, _by_b = "betainc_by_a(a, b, x, 1 - x)", "betainc_by_a(b, a, 1 - x, x)"
row("betainc", _shapes, a=_by_a, b="-" + _by_b, x=_density.format("x"))
row("betaincc", _shapes, a="-" + _by_a, b=_by_b, x="-" + _density.format("x"))
_inverse = {"a": "beta_quantile_by_a(a, b, out, 1 - out)", "b": "-beta_quantile_by_a(b, a, 1 - out, out)"}
row("betaincinv", _shapes, **_inverse, y="1 / " + _density.format("out"))
row("betainccinv", _shapes, **_inverse, y="-1 / " + _density.format("out"))
row("stdtr", ((1.0, 5.0), REAL), df="stdtr_by_df(df, x)", x="student_density(df, x)")
row(
    "stdtrit",
    ((1.0, 5.0), UNIT),
    df="-stdtr_by_df(df, out) / student_density(df, out)",
    p="1 / student_density(df, out)",
)
row("poch", POSITIVE, z="out * (psi(z + m) - psi(z))", m="out * psi(z + m)")
row("binom", ((3.0, 5.0), POSITIVE), n="out * (psi(n + 1) - psi(n - k + 1))", k="out * (psi(n - k + 1) - psi(k + 1))")

# -- distribution functions, whose derivatives are densities -------------------------------------------------------------

_poisson = "np.exp(xlogy(np.floor(k), m) - m - gammaln(np.floor(k) + 1))"
row("pdtr", ("int", POSITIVE), k=None, m="-" + _poisson)
row("pdtrc", ("int", POSITIVE), k=None, m=_poisson)
_chi2 = "np.exp(xlogy(v / 2 - 1, {0} / 2) - {0} / 2 - gammaln(v / 2)) / 2"
row("chdtr", ((1.0, 5.0), POSITIVE), v="gammainc_by_a(v / 2, x / 2) / 2", x=_chi2.format("x"))
row("chdtrc", ((1.0, 5.0), POSITIVE), v="-gammainc_by_a(v / 2, x / 2) / 2", x="-" + _chi2.format("x"))
_by_v = "-gammainc_by_a(v / 2, out / 2) / 2 / (" + _chi2.format("out") + ")"
row("chdtri", ((1.0, 5.0), UNIT), v=_by_v, p="-1 / (" + _chi2.format("out") + ")")
_f = (
    "np.exp(xlogy(dfn / 2 - 1, dfn / dfd * {0}) - (dfn + dfd) / 2 * np.log1p(dfn / dfd * {0}) - betaln(dfn / 2, dfd / 2)) "
    "* dfn / dfd"
)
row("fdtr", ((1.0, 5.0), (1.0, 5.0), POSITIVE), dfn=None, dfd=None, x=_f.format("x"))
row("fdtrc", ((1.0, 5.0), (1.0, 5.0), POSITIVE), dfn=None, dfd=None, x="-" + _f.format("x"))
row("fdtri", ((1.0, 5.0), (1.0, 5.0), UNIT), dfn=None, dfd=None, p="1 / (" + _f.format("out") + ")")
_gamma = "np.exp(xlogy(b - 1, a * x) - a * x - gammaln(b))"
row("gdtr", POSITIVE, a="x * " + _gamma, b="gammainc_by_a(b, a * x)", x="a * " + _gamma)
row("gdtrc", POSITIVE, a="-x * " + _gamma, b="-gammainc_by_a(b, a * x)", x="-a * " + _gamma)

# -- Bessel functions ------------------------------------------------------------------------------------------------

row("j0", POSITIVE, x="-j1(x)")
row("j1", POSITIVE, x="(j0(x) - jv(2, x)) / 2")
row("y0", POSITIVE, x="-y1(x)")
row("y1", POSITIVE, x="(y0(x) - yv(2, x)) / 2")
row("i0", REAL, x="i1(x)")
row("i1", REAL, x="(i0(x) + iv(2, x)) / 2")
row("i0e", POSITIVE, x="i1e(x) - np.sign(x) * out")
row("i1e", POSITIVE, x="(i0e(x) + ive(2, x)) / 2 - np.sign(x) * out")
row("k0", POSITIVE, x="-k1(x)")
row("k1", POSITIVE, x="-(k0(x) + kv(2, x)) / 2")
row("k0e", POSITIVE, x="out - k1e(x)")
row("k1e", POSITIVE, x="out - (k0e(x) + kve(2, x)) / 2")
_order = ((0.5, 3.0), POSITIVE)
row("jv", _order, v=None, x="(jv(v - 1, x) - jv(v + 1, x)) / 2")
row("yv", _order, v=None, x="(yv(v - 1, x) - yv(v + 1, x)) / 2")
row("yn", ("int", POSITIVE), n=None, x="(yn(n - 1, x) - yn(n + 1, x)) / 2")
row("iv", _order, v=None, x="(iv(v - 1, x) + iv(v + 1, x)) / 2")
row("kv", _order, v=None, x="-(kv(v - 1, x) + kv(v + 1, x)) / 2")
row("kn", ("int", POSITIVE), n=None, x="-(kn(n - 1, x) + kn(n + 1, x)) / 2")
row("ive", _order, v=None, x="(ive(v - 1, x) + ive(v + 1, x)) / 2 - np.sign(x) * out")
row("kve", _order, v=None, x="out - (kve(v - 1, x) + kve(v + 1, x)) / 2")


def _airy(which: int) -> AnyFunction:
    return lambda x: special.airy(x)[which]


row("airy_ai", REAL, _airy(0), "f", x="airy_aip(x)")  # scipy.special.airy has four results
row("airy_aip", REAL, _airy(1), "f", x="x * airy_ai(x)")
NAMES.update({name: functools.partial(_function_of, name) for name in ("airy_ai", "airy_aip")})


# -- combinations of several functions of SciPy ----------------------------------------------------------------------


@elementwise(
    d={"x": lambda x, *, n: ROWS["polygamma"](x, n=n + 1)},
    formula={"x": "g * polygamma(x, n=n + 1)"},
    samples=[{"n": 0}, {"n": 1}, {"n": 3}],
    domain=POSITIVE,
    promotion="float",
    accepts="f",
    listed=False,
)
def polygamma(x: AnyArray, *, n: int) -> AnyArray:
    """Return the derivative of order n of psi."""
    wide = x.astype(np.float64)
    if n == 0:
        return UFUNCS_OF_SCIPY["psi"](wide).astype(x.dtype)
    factor = float(math.factorial(n)) if n <= 170 else np.inf  # overflows beyond
    return ((factor if n % 2 else -factor) * _zeta(float(n + 1), wide)).astype(x.dtype)


ROWS["polygamma"] = polygamma
UFUNCS.setdefault(UFUNCS_OF_SCIPY["_zeta"], ROWS["zeta"])


def _map_shared_ufuncs(names: list[str]) -> None:
    """Map SciPy's ufuncs that NumPy or chainrule also has to the primitives in ``TABLE``."""
    for name in names:
        if name in UFUNCS_OF_SCIPY:
            UFUNCS.setdefault(UFUNCS_OF_SCIPY[name], TABLE[name])


_map_shared_ufuncs(["cbrt", "exp2", "expm1", "log1p", "xlogy"])
