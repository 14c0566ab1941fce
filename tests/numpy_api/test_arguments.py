"""Every argument of NumPy's functions means on tensors what it means on arrays, or is refused: none is passed over."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr

ARRAYS: dict[str, np.ndarray] = {
    "v": np.array([0.3, 2.0, -1.0]),
    "n": np.array([1.0, np.nan, 3.0]),
    "x": np.array([[0.2, 1.5, -0.3], [2.0, 0.1, 0.7]]),
    "u": np.array([[np.nan, 1.5, -0.3], [2.0, np.nan, 0.7]]),
    "f": np.array([0.5, 1.5, -2.0], np.float32),
    "i": np.array([15, -27, 3]),
    "b": np.array([True, False, True]),
    "c": np.array([1 + 2j, 3.0, np.nan]),
}
SAME = """
np.pad(x,1,constant_values=((1,2),(3,4))) | np.pad(v,(1,2),constant_values=(5,6)) | np.pad(x,1,mode='reflect')
np.median(n) | np.median(u,axis=0) | np.median(u,axis=1,keepdims=True) | np.quantile(n,[0,.5,1]) | np.percentile(n,50)
np.median(v[:0]) | np.imag(n) | np.imag(b) | np.angle(i) | np.angle(b) | np.sinc(i) | np.i0(i) | np.i0(b)
np.round(i,-1) | np.around(i,1) | np.sum(i,initial=2.) | np.prod(i,initial=2.) | np.max(i,initial=0.) | np.min(b,initial=0)
np.sum(f,initial=None) | np.max(f,initial=None) | np.trace(x,dtype=np.float32) | np.mean(f,dtype=int)
np.mean(i,dtype=np.float32) | np.var(x,mean=.5) | np.var(x,axis=0,mean=x.mean(),ddof=1) | np.std(i,mean=1)
np.nanvar(c) | np.nanstd(c) | np.nanvar(n,ddof=2) | np.nanstd(u,axis=0,ddof=1) | np.nanvar(f)
np.meshgrid(v,f,sparse=True)[0] | np.meshgrid(v,f,sparse=True,indexing='ij')[1] | np.meshgrid(v,f,v,sparse=True)[2]
np.concatenate([f,f],dtype=np.float64) | np.stack([f,i],dtype=np.float32,casting='unsafe') | np.hstack([f,f],dtype=float)
np.linalg.matrix_rank(v) | np.linalg.matrix_rank(v[0]) | np.linalg.matrix_rank(np.stack([i,i])) | np.convolve(v[0],v)
np.convolve(v,n) | np.convolve(n,v,'same') | np.convolve([np.inf,1.],v) | np.correlate(v,n,'full')
np.linalg.cross(v,np.eye(3)*v,axis=0) | np.linalg.cross(i,f)
np.nanmean(n,where=b) | np.nanmean(u,axis=1,where=b,keepdims=True) | np.nanmean(f,where=b,dtype=float) | np.nanmean(i,where=b)
np.nanvar(n,mean=0.) | np.nanvar(u,axis=0,where=b) | np.nanvar(u,where=b,ddof=1) | np.nanvar(f,mean=np.mean(v),where=b)
np.nanstd(u,axis=1,where=b) | np.nanstd(u,correction=1) | np.nanstd(i,ddof=1,where=b) | np.nanvar(c,where=b) | np.nanvar(n,mean=True)
np.nansum(u,axis=1,where=b,initial=2.) | np.nanprod(u,where=b,initial=.5) | np.nanmax(u,axis=1,where=b,initial=-9.)
np.nanmin(u,initial=-2.,where=b) | np.max(i,where=b,initial=2.) | np.min(i,where=b,initial=-3.) | np.var(v[:0],where=b[:0],ddof=1)
np.delete(v,i[2]-2) | np.delete(v,[0,1]) | np.searchsorted(v,.5,sorter=i.argsort())
"""
REFUSED = """
np.pad(x,1,mode='median') | np.pad(x,1,mode='empty') | np.pad(x,1,mode='reflect',reflect_type='odd')
np.pad(x,1,stat_length=2) | np.pad(x,1,mode='edge',constant_values=1) | np.quantile(v,2) | np.percentile(v,-1)
np.quantile(v,.5,weights=v*v) | np.quantile(c,.5) | np.inner(v,v[:2]) | np.inner(v,v[:1]) | np.linalg.outer(x,v)
np.convolve(x,v) | np.correlate(v,x) | np.convolve(v[:0],v)
np.broadcast_to(v,(-1,3)) | np.var(c,dtype=float) | np.nanstd(c,dtype=float) | np.linalg.cross(x,x,axis=0) | np.take_along_axis(v,1,0)
np.roll(v,1,axis=(0,1)) | np.cumsum(v,axis=(0,0)) | np.argsort(v,axis=(0,)) | np.i0(c)
"""


def _split(text: str) -> list[str]:
    return [case.strip() for line in text.strip().splitlines() for case in line.split(" | ")]


def _tracked(array: np.ndarray) -> cr.Tensor:
    return cr.from_numpy(array.copy()).requires_grad_(array.dtype.kind in "fc")


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("case", _split(SAME))
def test_an_argument_means_what_it_means_to_numpy(case: str) -> None:
    expected = np.asarray(eval(case, {"np": np, **ARRAYS}))
    for wrap in (lambda a: cr.from_numpy(a.copy()), _tracked):
        got = eval(case, {"np": np, **{name: wrap(array) for name, array in ARRAYS.items()}})
        got = got.detach().numpy() if isinstance(got, cr.Tensor) else np.asarray(got)
        assert got.dtype == expected.dtype and got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("case", _split(REFUSED))
def test_what_is_not_possible_is_refused(case: str) -> None:
    with pytest.raises((TypeError, ValueError, IndexError)):
        eval(case, {"np": np, **{name: _tracked(array) for name, array in ARRAYS.items()}})


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"])
def test_gradients_of_what_takes_part_and_is_a_number(name: str) -> None:
    """Those of the function without ``nan`` in its name, of these elements alone."""
    u, where = ARRAYS["u"], np.array([[True, True, False], [True, True, True]])
    options: Any = {"initial": -9.0 if name == "nanmax" else 9.0} if name in ("nanmax", "nanmin") else {}
    here = where & ~np.isnan(u)
    expected = cr.grad(lambda x: getattr(np, name[3:])(x[here]))(np.nan_to_num(u))
    np.testing.assert_allclose(cr.grad(lambda x: getattr(np, name)(x, where=where, **options))(u), expected)
    mapped = cr.vmap(cr.grad(lambda x, w: getattr(np, name)(x, where=w, **options)))(
        np.stack([u, u]), np.stack([where] * 2)
    )
    np.testing.assert_allclose(mapped[1], expected)


def test_nan_in_a_quantile_and_its_gradient() -> None:
    x = cr.tensor([[1.0, 2.0, 5.0], [1.0, float("nan"), 3.0]], requires_grad=True)
    np.median(x, axis=1)[0].backward()
    assert x.grad is not None and x.grad.tolist() == [[0, 1, 0], [0, 0, 0]]
    mapped = cr.vmap(np.median)(x.detach())
    assert mapped[0].item() == 2 and bool(mapped[1].isnan())
