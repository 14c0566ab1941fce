"""SciPy's special functions on tensors: all primitives compared with their values, and calls by users."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import chainrule as cr
from chainrule import func
from chainrule.testing import rulecheck
from chainrule.testing.rulecheck import CHECKS, every_sample
from tests.table.chosen import chosen_samples

special = pytest.importorskip("scipy.special")
ROWS = pytest.importorskip("chainrule._src.ops.scipy_special").ROWS

# SciPy determines the dtypes: some of its functions compute in float64 if an argument is a number or an integer.
WITHOUT_DTYPES = [name for name in CHECKS if name not in ("dtype", "public_function")]


@pytest.mark.parametrize("name", ROWS)
def test_row(name):
    check_row(ROWS[name], chosen_samples(ROWS[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_every_sample_of_a_row(name):
    check_row(ROWS[name], every_sample(ROWS[name]))


def check_row(row, samples):
    rulecheck(row, WITHOUT_DTYPES, samples)
    if "int" not in (row.domain or ()):
        rulecheck(row, ["dtype"], [s for s in samples if len(s.arrays) == len(s.shapes) and not s.complex])


@pytest.mark.parametrize("name", ["cbrt", "exp2", "expm1", "log1p"])
def test_what_numpy_has_too(name):
    x = np.array([0.3, 1.7])
    slope = func.grad(lambda x: np.sum(getattr(special, name)(x)))(x)
    assert np.allclose(slope, func.grad(lambda x: np.sum(getattr(np, name)(x)))(x), rtol=1e-14)
    t = cr.tensor(x, requires_grad=True)
    assert np.allclose(getattr(special, name)(t).detach().numpy(), getattr(special, name)(x), rtol=1e-14)


def test_xlogy_at_zero():
    value, slope = func.value_and_grad(lambda x: special.xlogy(x, 2.0))(0.0)
    assert value == 0 and slope == np.log(2.0)


def test_recorded_under_its_name_and_computed_by_scipy():
    x = np.array([0.5, 3.0])
    t = cr.tensor(x, requires_grad=True)
    y = special.gammaln(t)
    assert y.grad_fn.name() == "GammalnBackward0"
    assert np.array_equal(y.detach().numpy(), special.gammaln(x))
    assert special.gammaln(cr.tensor(x)).grad_fn is None


def test_functions_that_scipy_builds_from_ufuncs():
    assert np.isclose(func.grad(lambda q: special.zeta(2.0, q))(1.5), -2 * special.zeta(3.0, 1.5))
    assert np.isclose(func.grad(special.digamma)(1.5), special.polygamma(1, 1.5))
    assert np.isclose(func.grad(func.grad(func.grad(special.gammaln)))(1.5), special.polygamma(2, 1.5))


def test_transformations():
    x = np.array([0.5, 1.0, 2.5])
    assert np.allclose(func.vmap(func.grad(special.j0))(x), -special.j1(x))
    assert np.allclose(func.jvp(special.ndtr, (x,), (np.ones(3),))[1], np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))
    assert np.allclose(func.hessian(lambda x: np.sum(special.betaln(x, 2.0)))(x).diagonal(),
                       special.polygamma(1, x) - special.polygamma(1, x + 2))  # fmt: skip


def test_complex_argument():
    z = np.array(0.3 + 0.4j)
    slope = func.grad(lambda z: np.real(special.erf(z)))(z)
    assert np.isclose(slope, np.conj(2 / np.sqrt(np.pi) * np.exp(-(z**2))))


def test_no_derivative_by_the_order():
    with pytest.raises(NotImplementedError, match="jv with respect to v"):
        func.grad(lambda v: special.jv(v, 2.0))(1.5)
    assert np.isclose(func.grad(lambda x: special.jv(1.5, x))(2.0), special.jvp(1.5, 2.0))


def test_a_row_of_the_user_comes_first():
    code = """
import numpy as np, scipy.special as special, chainrule as cr
from chainrule.primitive import elementwise

@elementwise(d={"x": lambda x: 7.0}, formula={"x": "g * 7"}, ufunc=special.erf)
def mine(x):
    "The error function, with a derivative that can be recognised."

assert cr.func.grad(special.gammaln)(2.0) > 0  # chainrule's own rows load here
assert cr.func.grad(special.erf)(0.5) == 7.0

@elementwise(d={"x": lambda x: 8.0}, formula={"x": "g * 8"}, ufunc=special.erfc)
def late(x):
    "The same, after they are there."

assert cr.func.grad(special.erfc)(0.5) == 8.0
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_scipy_is_not_loaded_for_its_own_sake():
    code = "import sys, numpy as np, chainrule as cr; x = cr.tensor([1.0])\n" \
           "try: np.frompyfunc(abs, 1, 1)(x)\nexcept TypeError: assert 'scipy' not in sys.modules\nelse: raise SystemExit(1)"  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_scipy():
    """Functions that NumPy can compute remain, with derivatives; for the others the message names the extra."""
    code = """
import sys
sys.modules["scipy"] = sys.modules["scipy.special"] = None
import numpy as np, pytest, chainrule as cr

for name in ("erf", "erfc", "erfinv", "entr", "i0", "i1"):
    x = cr.tensor([0.25], dtype=cr.float64, requires_grad=True)
    assert cr.autograd.gradcheck(getattr(cr.special, name), x), name
assert np.isclose(cr.func.grad(lambda x: np.i0(x).sum())(np.ones(1))[0], 0.565159103992485)
assert cr.special.xlog1py(0.0, cr.ones(1)).item() == 0
x = cr.ones(2)
for name in ("digamma", "lgamma", "zeta", "ndtr", "ndtri", "log_ndtr", "erfcx", "i0e", "bessel_j0", "gammainc"):
    operands = (x, x) if name in ("zeta", "gammainc") else (x,)
    with pytest.raises(ImportError, match=rf"{name}.*pip install chainrule\\[scipy\\]"):
        getattr(cr.special if hasattr(cr.special, name) else cr, name)(*operands)
with pytest.raises(ImportError, match="polygamma"):
    x.polygamma(1)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_chainrule_leaves_scipy_alone():
    code = "import sys, chainrule; assert not [name for name in sys.modules if name.startswith('scipy')]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_steep_derivatives():
    """Where the derivative's own formula would cancel, or sum many terms."""
    x = np.array([50.0, -20.0])
    slope = func.vmap(func.grad(special.erfcx))(x)
    assert np.allclose(slope[0], -2.2554056e-4, rtol=1e-6) and np.isclose(slope[1], 2 * x[1] * special.erfcx(x[1]))
    assert np.isclose(func.grad(special.log_ndtr)(-1e4), 1e4, rtol=1e-7)
    far = cr.tensor(-1e15 - 0.5, dtype=cr.float64)
    assert np.isclose(cr.polygamma(1, far).item(), np.pi**2)


def test_a_ufunc_without_a_row_says_so():
    with pytest.raises(TypeError, match="ellipk has no rule for tensors"):
        special.ellipk(cr.tensor([0.5], requires_grad=True))


def test_with_scipys_array_api():
    """Then ``scipy.special`` has functions around its ufuncs; these are still recognized."""
    code = (
        "import chainrule as cr, numpy as np, scipy.special as s\n"
        "assert not isinstance(s.erf, np.ufunc)\n"
        "t = cr.tensor([0.5], dtype=cr.float64, requires_grad=True)\n"
        "for name in ('erf', 'gammaln', 'xlogy', 'j1'):\n"
        "    f = getattr(s._ufuncs, name)\n"
        "    y = f(t, t) if f.nin == 2 else f(t)\n"
        "    assert cr.autograd.gradcheck(lambda x: f(x, x) if f.nin == 2 else f(x), t), name\n"
        "assert cr.special.bessel_j0(t).requires_grad\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "SCIPY_ARRAY_API": "1"})


A = np.random.default_rng(0).standard_normal((3, 4))
B = np.array([1.0, 0.0, 2.0, 0.5])
IN_PYTHON = {
    "logsumexp": (lambda f, x: f(x), (A,)),
    "logsumexp along an axis": (lambda f, x: f(x, 1, keepdims=True), (A,)),
    "logsumexp along two": (lambda f, x: f(x, axis=(0, 1)), (A,)),
    "logsumexp of factors": (lambda f, x, b: f(x, 0, b), (A, np.abs(A[0]))),
    "logsumexp of factors of which one is 0": (lambda f, x: f(x, axis=1, b=B), (A,)),
    "logsumexp of factors alone": (lambda f, b: f(A, b=b, axis=1), (np.abs(A[0]),)),
    "logsumexp with its sign": (lambda f, x: f(x, 1, np.array([-3.0, 1, 1, 1]), return_sign=True), (A,)),
    "logsumexp of large ones": (lambda f, x: f(x), (np.array([900.0, 901.0, -np.inf]),)),
    "softmax": (lambda f, x: f(x), (A,)),
    "softmax along an axis": (lambda f, x: f(x, axis=1), (A,)),
    "log_softmax": (lambda f, x: f(x), (A,)),
    "log_softmax along an axis": (lambda f, x: f(x, 0), (A,)),
    "polygamma": (lambda f, x: f(2, x), (np.abs(A) + 0.5,)),
    "multigammaln": (lambda f, x: f(x, 2), (np.abs(A) + 2.0,)),
}


@pytest.mark.parametrize("case", IN_PYTHON)
def test_functions_that_scipy_wrote_in_python(case):
    call, args = IN_PYTHON[case]
    name = case.partition(" ")[0]
    ours, scipys = getattr(cr.scipy.special, name), getattr(special, name)
    expected = call(scipys, *args)
    plain = call(ours, *args)
    leaves = [cr.tensor(x, requires_grad=True) for x in args]
    found = call(ours, *leaves)
    for got, same, want in zip(*(x if type(x) is tuple else (x,) for x in (found, plain, expected)), strict=True):
        assert np.array_equal(same, want)
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-13)

    def first(*xs):
        result = call(ours, *xs)
        return result[0] if type(result) is tuple else result

    if np.isfinite(args[0]).all():
        assert cr.autograd.gradcheck(first, leaves) and cr.autograd.gradgradcheck(first, leaves)
    total = cr.value_and_grad(lambda x: np.sum(first(x, *args[1:])))
    again = cr.compile(total)
    for scale in (1.0, 1.0, 1.1):
        assert all(map(np.array_equal, again(args[0] * scale), total(args[0] * scale)))


def test_the_other_names_are_scipys():
    assert cr.scipy.special.gammaln is special.gammaln and "jv" in dir(cr.scipy.special)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        cr.scipy.special.nothing_like_it
