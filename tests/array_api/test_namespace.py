"""``chainrule.array_api``: NumPy's functions on Arrays and tensors. (``make conformance`` runs the standard's public tests.)"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import chainrule as cr

xp = cr.array_api
FACES = {"array": cr.Array, "tensor": lambda data: cr.tensor(np.asarray(data))}
both = pytest.mark.parametrize("make", FACES.values(), ids=FACES)
info = pytest.mark.skipif(not hasattr(np, "__array_namespace_info__"), reason="NumPy 2.1 has it")


@both
def test_found_by_the_array(make):
    assert make([1.0]).__array_namespace__() is xp
    assert make([1.0]).__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match=r"unsupported version .*'2031.12'.*2024.12"):
        make([1.0]).__array_namespace__(api_version="2031.12")


def test_not_loaded_before_it_is_asked_for():
    code = "import sys, chainrule; assert 'chainrule.array_api' not in sys.modules and 'numpy.fft' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@both
def test_functions_are_numpys_and_give_arrays(make):
    values = np.array([[3.0, 1.0], [2.0, 5.0]])
    x = make(values)
    for function, arguments in {
        "std": {}, "sum": {"axis": 0}, "sort": {"axis": 0}, "cumulative_sum": {"axis": 1}, "matrix_transpose": {},
    }.items():  # fmt: skip
        if hasattr(np, function):
            result = getattr(xp, function)(x, **arguments)
            assert type(result) is cr.Array
            assert np.array_equal(np.asarray(result), getattr(np, function)(values, **arguments))
    assert type(xp.linalg.eigh(x).eigenvalues) is cr.Array
    assert type(xp.fft.fft(x)) is cr.Array


@both
def test_derivatives_go_through(make):
    x = make([1.0, 2.0, 4.0])
    x.requires_grad = True
    a = xp.asarray(x)
    xp.sum(xp.stack([a * a, xp.clip(x, 1.5, 3.0)])).backward()
    assert x.grad.tolist() == [2.0, 5.0, 8.0]


@both
def test_writing_over_what_a_rule_saved(make):
    """Libraries write ``s -= 1`` after ``s * s`` was computed."""
    values = np.array([1.0, 2.0, 4.0])

    def function(x):
        s = xp.exp(x)
        y = s * s
        s -= 1
        s[0] = 0.0
        return xp.sum(y * s)

    s = np.exp(values)
    expected = np.where(np.arange(3) == 0, 0, 2 * s * s * (s - 1) + s**3)
    slope = cr.grad(function)(make(values))
    assert np.allclose(np.asarray(slope), expected, rtol=1e-12)
    assert np.allclose(np.asarray(cr.compile(cr.grad(function))(make(values))), expected, rtol=1e-12)


@both
def test_integers_promote_as_numpys(make):
    assert xp.mean(make(np.arange(3))).dtype == np.float64
    assert xp.linalg.outer(make(np.arange(3)), make(np.ones(2, np.float32))).dtype == np.float64


def test_asarray():
    t = cr.tensor([1.0, 2.0])
    a = cr.Array([1.0, 2.0])
    assert xp.asarray(t).tensor is t and xp.asarray(a) is a
    assert not np.shares_memory(xp.asarray(a, copy=True), a)
    assert xp.asarray(t, dtype=cr.float64).dtype == np.float64 == xp.asarray(t, dtype=xp.float64).dtype
    plain = np.arange(3.0)
    shared = xp.asarray(plain)
    plain[0] = 7
    assert shared[0] == 7 and xp.asarray(plain, copy=True).tolist() == [7, 1, 2]
    assert xp.asarray([[a[0], 3.0]]).tolist() == [[1.0, 3.0]] and xp.asarray(True).dtype == xp.bool
    with pytest.raises(ValueError, match="float64 cannot be converted to float32 without a copy"):
        xp.asarray(a, dtype=xp.float32, copy=False)
    with pytest.raises(ValueError, match="list of arrays cannot be converted to one array"):
        xp.asarray([a, a], copy=False)
    with pytest.raises(ValueError, match="'word'"):
        xp.asarray(["word"])


def test_asarray_keeps_the_tape():
    x = cr.Array([1.0, 2.0], requires_grad=True)
    (xp.asarray([x[0], x[1]]) * xp.asarray(x, copy=True)).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


@both
def test_what_asks_about_dtypes_takes_arrays(make):
    x = make(np.ones(2, np.float32))
    x.requires_grad = True
    assert xp.can_cast(x, xp.float64) and not xp.can_cast(x, xp.float16)
    assert xp.result_type(x, cr.float64) == np.float64 == xp.result_type(x.dtype, xp.float64)
    assert xp.isdtype(x.dtype, "real floating") and xp.finfo(x).bits == 32


def test_arrays_are_made_as_arrays():
    for made in (
        xp.zeros(3),
        xp.arange(3),
        xp.eye(2),
        xp.linspace(0, 1, 3),
        xp.full((2,), 7.0),
        xp.ones(2, device="cpu"),
    ):
        assert type(made) is cr.Array
    assert xp.zeros_like(cr.tensor([1.0])).dtype == np.float32
    with pytest.raises(RuntimeError, match="cuda"):
        xp.zeros(3, device="cuda")


def test_where_the_standard_differs_from_numpy():
    x = xp.asarray([2.0, 1.0, 2.0, 3.0])
    assert xp.argsort(x, descending=True).tolist() == [3, 0, 2, 1] and xp.argsort(x).tolist() == [1, 0, 2, 3]
    assert xp.sort(x, descending=True).tolist() == [3.0, 2.0, 2.0, 1.0]
    assert type(xp.broadcast_arrays(x, xp.ones((2, 1)))) is list
    assert type(xp.finfo(x).eps) is float and xp.finfo(xp.float32).bits == 32 and xp.iinfo(cr.int8).max == 127
    assert xp.fft.fftfreq(3, dtype=xp.float32).dtype == np.float32
    assert cr.grad(lambda x: xp.sort(x, descending=True)[0])(np.array([1.0, 3.0])).tolist() == [0.0, 1.0]


@info
def test_info():
    found = xp.__array_namespace_info__()
    assert found.default_device() == "cpu" and found.devices() == ["cpu"]
    assert found.default_dtypes(device=cr.device("cpu"))["real floating"] == np.float64
    assert set(found.dtypes(kind="bool", device="cpu")) == {"bool"}


def test_devices():
    x = cr.Array([1.0])
    assert x.device == "cpu" and x.to_device("cpu") is x and x.to_device(cr.device("cpu")) is x
    with pytest.raises(RuntimeError, match="cuda"):
        x.to_device("cuda")
    with pytest.raises(ValueError, match="stream"):
        x.to_device("cpu", stream=1)


def test_functions_without_a_rule_compute_on_constants():
    assert np.allclose(np.sort(np.asarray(xp.roots(xp.asarray([1.0, -3.0, 2.0])))), [1, 2])
    with pytest.raises(TypeError, match=r"np\.roots has no rule"):
        cr.grad(lambda x: xp.sum(xp.roots(x)))(np.array([1.0, -3.0, 2.0]))


def test_special():
    special = pytest.importorskip("scipy.special")
    x = np.array([0.5, 1.5])
    assert np.allclose(cr.grad(lambda x: xp.sum(xp.special.gammaln(x)))(x), special.psi(x))
    assert np.allclose(np.asarray(xp.special.ellipk(xp.asarray(x - 1))), special.ellipk(x - 1))  # no rule, a constant
    assert not hasattr(xp, "absent") and xp.lib is np.lib


# -- NumPy functions in which the public tests found defects --------------------------------------------------------------


def test_vecdot_does_not_broadcast_the_summed_axis():
    with pytest.raises(ValueError):
        np.vecdot(cr.Array(np.ones(3)), cr.Array(np.ones(1)))
    x, y = np.arange(6, dtype=np.uint8).reshape(2, 3), np.arange(2, dtype=np.uint8)
    for function in (np.vecdot, np.linalg.vecdot):
        result = function(cr.Array(x), cr.Array(y), axis=0)
        assert result.dtype == np.uint8 and result.tolist() == function(x, y, axis=0).tolist()
    z = np.array([1 + 2j, 3.0])
    assert np.vecdot(cr.Array(z), cr.Array(z)).item() == np.vecdot(z, z)
    slope = cr.grad(lambda x: np.sum(np.vecdot(x, np.array([1.0, 2.0]), axis=0)))(np.ones((2, 3)))
    assert slope.tolist() == [[1.0] * 3, [2.0] * 3]


def test_sign_of_complex_zeros():
    z = np.array([complex(-0.0, -0.0), 3 + 4j])
    assert str(np.sign(cr.Array(z))) == str(np.sign(z))


def test_tolerances_for_each_matrix():
    a = np.stack([np.diag([1.0, 0.5]), np.diag([1.0, 0.001])])
    x = cr.Array(a)
    for options in ({}, {"rtol": np.array([0.9, 1e-4])}, {"tol": np.array([0.6, 1e-4])}, {"rtol": 0.1}):
        assert np.linalg.matrix_rank(x, **options).tolist() == np.linalg.matrix_rank(a, **options).tolist()
    for options in ({}, {"rtol": np.array([0.9, 1e-4])}, {"rtol": None}, {"rcond": 0.1}):
        assert np.allclose(np.asarray(np.linalg.pinv(x, **options)), np.linalg.pinv(a, **options))
    with pytest.raises(ValueError, match="both"):
        np.linalg.pinv(x, 0.1, rtol=0.1)
    with pytest.raises(ValueError, match="both"):
        np.linalg.matrix_rank(x, 0.1, rtol=0.1)


def test_the_package_says_what_it_can_do():
    info = cr.__array_namespace_info__()
    assert info.default_device() == "cpu" and "float64" in info.dtypes()
