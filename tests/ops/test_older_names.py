"""Linear algebra and histograms under PyTorch's top-level names; windows; special functions."""

from __future__ import annotations

import math
import warnings

import pytest

from behaviour import OURS, torch

A = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 1.0], [2.0, 1.0, 5.0]], dtype=torch.float64)
B = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)


def test_lu():
    packed, pivots = torch.lu(A)
    assert torch.allclose(A @ torch.lu_solve(B, packed, pivots), B)
    assert torch.allclose(B.lu_solve(*A.lu()), torch.linalg.solve(A, B))
    assert len(torch.lu(A, get_infos=True)) == 3
    x = A.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: torch.lu_solve(B, *torch.lu(x)), x)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_triangular_solve(upper, transpose):
    triangle = torch.triu(A) if upper else torch.tril(A)
    out = torch.triangular_solve(B, A, upper=upper, transpose=transpose)
    assert torch.allclose((triangle.T if transpose else triangle) @ out.solution, B)
    assert out.cloned_coefficient.tolist() == A.tolist()


@pytest.mark.parametrize(("bins", "options"), [([2, 3], {}), (2, {"range": [0.0, 4.0, 0.0, 4.0], "density": True})])
def test_histogramdd(bins, options):
    points = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.5, 2.0]])
    out = torch.histogramdd(points, bins, **options)
    assert out.hist.sum().item() == (0.25 if options else 4)
    assert [len(e) for e in out.bin_edges] == ([3, 3] if bins == 2 else [3, 4])
    edges = [torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 2.0])]
    assert torch.histogramdd(points, edges, weight=torch.tensor([1.0, 2.0, 3.0, 4.0])).hist.tolist() == [[5.0], [5.0]]


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett"])
def test_windows(name):
    window, old = getattr(torch.signal.windows, name), getattr(torch, f"{name}_window")
    assert torch.allclose(old(7), window(7, sym=False), atol=1e-6)
    assert torch.allclose(old(7, False), window(7), atol=1e-6)
    assert old(0).shape == (0,) and old(1).tolist() == [1.0]
    assert torch.allclose(torch.hamming_window(7, False, 0.5, 0.5), torch.hann_window(7, False), atol=1e-6)


def test_spherical_bessel():
    x = torch.tensor([0.0, 2.0, math.inf])
    assert torch.special.spherical_bessel_j0(x).tolist() == pytest.approx([1.0, math.sin(2) / 2, 0.0])


@pytest.mark.parametrize(
    ("name", "at_1"),  # from tables of DLMF, and Wolfram Alpha
    [
        ("airy_ai", 0.1352924163),
        ("bessel_j0", 0.7651976866),
        ("bessel_j1", 0.4400505857),
        ("bessel_y0", 0.0882569642),
        ("bessel_y1", -0.7812128213),
        ("modified_bessel_k0", 0.4210244382),
        ("modified_bessel_k1", 0.6019072302),
        ("scaled_modified_bessel_k0", 1.1444630797),
        ("scaled_modified_bessel_k1", 1.6361534863),
    ],
)
def test_functions_that_scipy_computes(name, at_1):
    pytest.importorskip("scipy")
    function = getattr(torch.special, name)
    assert function(torch.tensor([1.0, 1.0], dtype=torch.float64)).tolist() == pytest.approx([at_1] * 2, rel=1e-8)
    assert function(torch.tensor(1)).dtype == torch.float32
    if OURS:
        x = torch.tensor([0.7, 2.5], dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(function, x) and torch.autograd.gradgradcheck(function, x)
        assert function(torch.ones(1, dtype=torch.float16)).dtype == torch.float16


def test_igamma():
    pytest.importorskip("scipy")
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.allclose(torch.igamma(torch.ones(1, dtype=torch.float64), x), 1 - torch.exp(-x))
    assert torch.allclose(x.igammac(x) + torch.special.gammainc(x, x), torch.ones_like(x))
    assert torch.autograd.gradcheck(lambda x: torch.special.gammaincc(torch.full_like(x.detach(), 1.5), x), x)
    ones = torch.ones(2, dtype=torch.float64)
    if OURS:
        assert torch.autograd.gradcheck(lambda x: torch.igamma(x, ones), x)
    else:
        with pytest.raises((NotImplementedError, RuntimeError)):
            torch.igamma(x, ones).sum().backward()


@pytest.mark.parametrize("name", ["addmm", "addmv", "addr", "baddbmm", "addbmm"])
def test_the_factors_before_what_they_multiply(name):
    shapes = {"addmm": "22 22", "addmv": "22 2", "addr": "2 2", "baddbmm": "322 322", "addbmm": "322 322"}[name].split()
    x, y = [torch.arange(1.0, 1 + math.prod(map(int, s))).reshape([int(n) for n in s]) for s in shapes]
    into = torch.ones(3, 2, 2) if name == "baddbmm" else torch.ones(2) if name == "addmv" else torch.ones(2, 2)
    function = getattr(torch, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found, factors in (
            (function(2, into, 3, x, y), {"beta": 2, "alpha": 3}),
            (function(2, into, x, y), {"beta": 2}),
            (getattr(into, name)(2, 3, x, y), {"beta": 2, "alpha": 3}),
            (getattr(into.clone(), f"{name}_")(2, x, y), {"beta": 2}),
        ):
            assert found.tolist() == function(into, x, y, **factors).tolist()
    for wrong in ((into, x, y, 2), (2, into, 3, x, y, y)):
        with pytest.raises(TypeError):
            function(*wrong)
    if OURS:
        with pytest.warns(UserWarning, match=f"overload of {name} is deprecated"):
            function(2, into, x, y)


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("add", 1, [2.0, 8.0]),
        ("sub", 1, [0.0, -4.0]),
        ("addcmul", 2, [4.0, 26.0]),
        ("addcdiv", 2, [1 + 1 / 3, 2 + 3 / 2]),
    ],
)
def test_the_factor_first(name, operands, expected):
    """``p.add_(-lr, grad)``, as in optimizers of old programs."""
    x, others = torch.tensor([1.0, 2.0]), [torch.tensor([0.5, 3.0]), torch.tensor([3.0, 4.0])][:operands]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found in (
            getattr(x, name)(2, *others),
            getattr(torch, name)(x, 2, *others),
            getattr(x.clone(), f"{name}_")(2, *others),
        ):
            torch.testing.assert_close(found, torch.tensor(expected))
    with pytest.raises(TypeError):
        getattr(x, name)(*others, 2)
    with pytest.raises(TypeError):
        getattr(x, name)(2, *others, **{"alpha" if operands == 1 else "value": 3})
    if OURS:
        with pytest.warns(UserWarning, match=f"overload of {name} is deprecated") as told:
            getattr(x, name)(2, *others)
        assert told[0].filename == __file__
