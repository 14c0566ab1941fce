"""Differences, interpolation, samples, selections and writes with NumPy's values and dtypes on tensors.

Derivatives in both modes and of second order are compared with finite differences, and batches with single examples.
"""

# ruff: noqa: SIM905 -- lists of names read better as words

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.interpreters.dual import Dual
from chainrule.testing import gradcheck, gradgradcheck

# v, w, p: (5,), p rising, n: with NaN; x, y: (3, 4), u: (3, 4) with NaN; a: (2, 3, 2); s: (3, 3); all float64.
# f: float32 (4,), i: int64 (5,), j: int64 (3, 4), c: complex128 (4,), b: bool (5,). A name with 0: the plain array.
CALCULUS = """
np.gradient(v) | np.gradient(v,edge_order=2) | np.gradient(v,.5) | np.gradient(v,p0) | np.gradient(v,p)
np.gradient(v,p,edge_order=2) | np.gradient(v0,p) | np.gradient(v0,p,edge_order=2) | np.gradient(x)
np.gradient(x,2.) | np.gradient(v,p[0]) | np.gradient(x,.5,2.) | np.gradient(x,p[:3],v0[:4].cumsum())
np.gradient(x,axis=0) | np.gradient(x,axis=-1) | np.gradient(x,axis=(1,0)) | np.gradient(x,.5,axis=1,edge_order=2)
np.gradient(v,[0,1,3,4,9]) | np.gradient(v,[0,1,2,3,4]) | np.gradient(a,axis=1,edge_order=2) | np.gradient(v[:2])
np.gradient(c) | np.interp(v,p0,w0) | np.interp(v,p,w) | np.interp(v0,p,w0) | np.interp(v0,p0,w) | np.interp(x,p,w)
np.interp(v[0],p,w) | np.interp(.3,p,w) | np.interp(x,p[1:4],w[1:4]) | np.interp(x,p[1:4],w[1:4],left=-1.)
np.interp(x,p[1:4],w[1:4],right=7.) | np.interp(x,p[1:4],w[1:4],left=v[0],right=v[1]) | np.interp(x,p[:1],w[:1])
np.interp(x,p[2:3],w[:1],left=0.,right=1.) | np.interp(p0,p0,w) | np.interp(n,p,w) | np.interp(x,v,w,period=.31)
np.interp(x,p,w,period=-2.) | np.interp(i,p,w) | np.interp(f,p,w) | np.interp(p0,[0.,.2,.2,.7],w[:4])
np.interp([.1,.2,.7,.8],[0.,.2,.2,.7,.7],w) | np.interp(v,p,w*1j+1) | np.ediff1d(v) | np.ediff1d(x)
np.ediff1d(v,to_end=w) | np.ediff1d(v,to_begin=[0.,1.]) | np.ediff1d(v,1.,2.) | np.ediff1d(v[0]) | np.unwrap(v*9)
np.unwrap(x*9) | np.unwrap(x*9,axis=0) | np.unwrap(v,.1,period=.25) | np.unwrap(w*np.pi*i0)
np.unwrap(v*9,period=p[3]+3) | np.cumulative_sum(v) | np.cumulative_sum(v,include_initial=True)
np.cumulative_sum(x,axis=0,include_initial=True) | np.cumulative_sum(x,axis=-1) | np.cumulative_prod(x,axis=1)
np.cumulative_prod(v,include_initial=True) | np.cumulative_sum(v[0]) | np.nancumsum(n) | np.nancumsum(u,axis=0)
np.nancumprod(n) | np.nancumprod(u,axis=1) | np.nancumsum(u)
"""

GRIDS = """
np.linspace(v[0],v[1]) | np.linspace(v[0],2.,5) | np.linspace(0,v[0],5) | np.linspace(v[0],v[1],1)
np.linspace(v[0],v[1],0) | np.linspace(v,w,4) | np.linspace(v,w,4,axis=1) | np.linspace(v,w,4,axis=-1)
np.linspace(v,0.,4,endpoint=False) | np.linspace(v[0],v[1],5,retstep=True)
np.linspace(v[0],v[1],5,endpoint=False,retstep=True) | np.linspace(x,v[0],3) | np.linspace(f[0],v[0],3)
np.linspace(v[0],v[0],3) | np.logspace(v[0],v[1],4) | np.logspace(v,w,3,base=2) | np.logspace(v[0],v[1],4,base=w[0]+1)
np.logspace(v[0],1.,3,base=p[1:]) | np.logspace(v,w,3,axis=1) | np.geomspace(v[0],v[1]+2,4) | np.geomspace(v,w+1,3)
np.geomspace(-v,-w,3,axis=1) | np.geomspace(v[0],8.,4,endpoint=False) | np.geomspace(c[0],c[1],3)
np.geomspace(v[0],v[1],1) | np.geomspace(v[0],v[1],0) | np.vander(v) | np.vander(v,3) | np.vander(v,3,increasing=True)
np.vander(v,1) | np.vander(v,0) | np.vander(c) | np.vander(v*0,3) | np.polyfit(v,w,2) | np.polyfit(v0,w,1)
np.polyfit(v,w0,1) | np.polyfit(p,x.T[[0,1,2,3,0]],2) | np.polyfit(v,w,1,w=p+1) | np.polyfit(p,w,1,cov=True)
np.polyfit(p,w,1,cov='unscaled') | np.polyfit(p,x.T[[0,1,2,3,0]],1,w=v,cov=True) | np.polyfit(p,w,1,full=True)[:4]
np.polyfit(i,w,0) | np.matvec(x,f) | np.matvec(s,v[:3]) | np.matvec(a.swapaxes(1,2),x[:2,:3]) | np.vecmat(v[:3],x)
np.vecmat(x[:2,:3],a) | np.vecmat(c,x.T) | np.ldexp(v,i) | np.ldexp(v,-2) | np.linalg.tensorsolve(s+2*np.eye(3),v[:3])
np.linalg.tensorsolve((x[:2,:2]+np.eye(2)).reshape(1,2,2),v[:2].reshape(1,2))
np.linalg.tensorsolve(np.eye(6).reshape(2,3,6)+a.sum(),x[:2,:3])
np.linalg.tensorsolve(np.eye(4).reshape(4,2,2)*3+x[:2,:2],s[:2,1:],axes=(0,)) | np.polyadd(v,w[:3]) | np.polyadd(2.,v)
np.polysub(w[1:],v) | np.polymul(v,w[:3]) | np.polymul(v*(i0>0),w) | np.polyder(v) | np.polyder(v,2) | np.polyder(v,9)
np.polyint(v) | np.polyint(v,2) | np.polyint(v,2,k=[1.,2.]) | np.polyint(v,2,3.) | np.polyint(v,1,w[0]) | np.poly(v)
np.poly(c) | np.linalg.tensordot(x,y) | np.linalg.tensordot(x,y,axes=([1],[1])) | np.linalg.vecdot(x,y)
np.linalg.vecdot(c,c,axis=0) | np.linalg.tensorinv(s+np.eye(3),ind=1)
np.linalg.tensorinv((np.eye(4)+x[0]).reshape(2,2,4))
"""

SAMPLES = """
np.cov(x) | np.cov(x,rowvar=False) | np.cov(x,bias=True) | np.cov(x,ddof=0) | np.cov(x,ddof=2) | np.cov(v,w)
np.cov(v) | np.cov(x,y) | np.cov(x,y,rowvar=False) | np.cov(v0,w) | np.cov(x,v0[:4]) | np.cov(x,fweights=[1,2,1,3])
np.cov(x,aweights=v[:4]) | np.cov(x,aweights=v0[:4],fweights=[1,2,1,3]) | np.cov(x,aweights=v[:4],ddof=0) | np.cov(c)
np.cov(c,x[0]) | np.cov(x,aweights=v[:4],fweights=[1,2,1,3],bias=True) | np.cov(v[:,None],rowvar=False)
np.corrcoef(x) | np.corrcoef(x,rowvar=False) | np.corrcoef(v,w) | np.corrcoef(v) | np.corrcoef(x,y)
np.corrcoef(c,x[0]) | np.nanmedian(n) | np.nanmedian(u) | np.nanmedian(u,axis=0)
np.nanmedian(u,axis=1,keepdims=True) | np.nanmedian(u,axis=(0,1)) | np.nanquantile(u,.3)
np.nanquantile(u,[.1,.9],axis=0) | np.nanquantile(u,[[.1,.9]],axis=1,keepdims=True) | np.nanpercentile(u,30)
np.nanpercentile(u,[25,50],axis=1) | np.nanquantile(n,.4) | np.nanmedian(v[0]) | np.nanquantile(a,.7,axis=(0,2))
np.bincount(i,v) | np.bincount(i0,weights=v) | np.bincount(i,v,12) | np.histogram(v) | np.histogram(x,4)
np.histogram(v,4,density=True) | np.histogram(v,3,weights=w) | np.histogram(v0,3,weights=w)
np.histogram(x,[.2,.4,.8],weights=y) | np.histogram(v,3,weights=w0) | np.histogram(x,4,weights=y,density=True)
np.histogram(v,[.3,.5,.9],weights=w,density=True) | np.histogram(i,[0,2,3],weights=w) | np.histogram(v,p)
np.histogram_bin_edges(v,3) | np.unique(v) | np.unique(v[i0%3]) | np.unique(x) | np.unique(v[i0%3],return_index=True)
np.unique(v[i0%3],return_inverse=True) | np.unique(v[i0%3],True,True,True) | np.unique(x[[0,1,0]],axis=0)
np.unique(x[:,[0,1,1]],axis=1,return_counts=True) | np.unique(n) | np.unique(n,equal_nan=False)
np.unique_all(v[i0%3]) | np.unique_counts(v) | np.unique_inverse(x) | np.sort(np.unique_values(v)) | np.union1d(v,w)
np.union1d(v,v[:2]) | np.intersect1d(v,v[1:3]) | np.intersect1d(v[:3],v,return_indices=True) | np.setdiff1d(v,v[1:3])
np.setdiff1d(v,v[1:3],assume_unique=True) | np.setxor1d(v,np.append(v[1:3],9.))
"""

SELECTIONS = """
np.insert(v,1,2.) | np.insert(v,1,w[0]) | np.insert(v,[1,3],w[:2]) | np.insert(v,[3,1],w[:2])
np.insert(v,[1,1],[7.,8.]) | np.insert(v,2,w) | np.insert(v,[2],w) | np.insert(v,-1,w[0])
np.insert(v,slice(0,4,2),w[:2]) | np.insert(v,b,3.) | np.insert(x,1,v[:4],axis=0) | np.insert(x,1,2.,axis=1)
np.insert(x,[1],v[:3,None],axis=1) | np.insert(x,1,v[:3],axis=1) | np.insert(x,[0,2],y[:,:2],axis=1)
np.insert(x,5,1.) | np.insert(v0,1,w[0]) | np.insert(v,[],[]) | np.insert(v,i%4,p) | np.insert(x,[1,2],v[:4],axis=0)
np.insert(v,5,1.) | np.resize(v,3) | np.resize(v,(3,4)) | np.resize(x,(2,2)) | np.resize(v,(0,2))
np.resize(v,(2,3,2)) | np.trim_zeros(v*(i0>1)) | np.trim_zeros(v*(i0>1),'f') | np.trim_zeros(v*(i0>1),'b')
np.trim_zeros(v*0) | np.trim_zeros(x*np.array([0.,1.,1.,0.])) | np.trim_zeros(x*np.array([0.,1.,1.,0.]),axis=0)
np.trim_zeros(x*np.array([0.,1.,1.,0.]),'f',axis=-1) | np.partition(v,2) | np.partition(x,1)
np.partition(x,1,axis=0) | np.partition(x,5,axis=None) | np.partition(v,[1,3]) | np.partition(v,-1)
np.add.reduceat(v,[0,2]) | np.add.reduceat(v,[0,3,1,1]) | np.add.reduceat(x,[0,2],axis=1) | np.add.reduceat(x,[1,0,2])
np.choose([0,1,1,0,1],[v,w]) | np.choose(i,[v,w],mode='wrap') | np.choose(i,[v,w],mode='clip') | np.choose(i%2,[v,w0])
np.choose([1,0],[v[:2],2.]) | np.choose([[0],[1]],[v,w]) | np.choose([0,2,1,0],x) | np.choose(1,[v,w])
np.real_if_close(c) | np.real_if_close(c.real+0j) | np.real_if_close(v) | np.real_if_close(c+1e-18j)
np.piecewise(v,[v>.5,v<=.5],[lambda z:z**2,lambda z:3*z]) | np.piecewise(v,[v>.5],[lambda z:z**2,lambda z:3*z])
np.piecewise(v,v>.5,[lambda z:z**2]) | np.piecewise(v,[v>.5,v>.6],[np.sqrt,np.exp])
np.piecewise(v,[v0>.5],[1.,lambda z,k:k*z],4) | np.piecewise(x,[x>.5,x<.3],[np.log,2.,np.sin])
np.piecewise(v[0],[v[0]>9,v[0]<=9],[np.exp,np.sin]) | np.apply_along_axis(lambda r:r*2,0,x)
np.apply_along_axis(np.sum,1,x) | np.apply_along_axis(lambda r:np.outer(r,r),1,x)
np.apply_along_axis(lambda r:np.outer(r,r[:2]),1,a) | np.apply_along_axis(np.sort,-1,x)
np.apply_along_axis(lambda r,k:r[:k],0,x,2) | np.apply_along_axis(np.diff,0,v)
np.apply_along_axis(np.polyval,0,x,2.) | np.apply_over_axes(np.sum,a,[0,2]) | np.apply_over_axes(np.cumsum,x,0)
np.apply_over_axes(np.prod,a,1) | np.select([v0>.5,v0>.3],[v,w],7.) | np.select([v>.5],[v])
"""

# Without gradients: integers, booleans, and results that are constant (or too coarse for finite differences).
WITHOUT = """
np.gradient(i) | np.gradient(f) | np.gradient(f,[0.,1.,3.,4.]) | np.ediff1d(i) | np.unwrap(i,period=4)
np.unwrap(i,period=5) | np.unwrap(f*9) | np.cumulative_sum(i) | np.cumulative_sum(f,dtype=np.float64)
np.nancumsum(i) | np.linspace(f[0],f[1],3) | np.linspace(f[0],1.,3) | np.linspace(i[0],i[1],4)
np.linspace(i[0],9,4,dtype=int) | np.logspace(f[0],f[1],3) | np.vander(i) | np.vander(f,2) | np.ldexp(f,3)
np.ldexp(v0,i) | np.cov(f) | np.cov(i) | np.cov(x,dtype=np.float32) | np.corrcoef(f) | np.corrcoef(x,dtype=np.float32)
np.nanmedian(i) | np.nanmedian(f) | np.bincount(i) | np.bincount(i,minlength=9) | np.bincount(i,weights=v0)
np.bincount(i,weights=i) | np.histogram(v,[.2,.4,.8]) | np.histogram(v,4,(0,1)) | np.unique(i)
np.intersect1d(i,[1,2,3]) | np.setdiff1d(i,[1]) | np.setxor1d(i,[1,2,8]) | np.setdiff1d(v0,v[1:3]) | np.isin(i,[1,2])
np.isin(v,v[:2],invert=True) | np.isin([1,2,9],i) | np.lexsort((v,i)) | np.nanargmax(n) | np.nanargmin(u,axis=0)
np.array_equiv(x,x) | np.isreal(c) | np.iscomplex(c) | np.insert(i,1,2.7) | np.insert(f,0,v[0]) | np.partition(i,2)
np.argpartition(v,2) | np.argpartition(x,1,axis=0) | np.add.reduceat(i,[0,2,3])
np.add.reduceat(f,[0,1],dtype=np.float64) | np.choose(i,[1,2,3],mode='clip') | np.piecewise(i,[i>1],[2.7,0])
np.piecewise(v,[v>9],[np.sin]) | np.piecewise(f,[f>.5],[1.,np.exp]) | np.apply_along_axis(len,0,x) | np.polyadd(i,1)
np.polymul(i,[1,2]) | np.polyder(i) | np.polyint(i) | np.poly(i) | np.unravel_index(i,(2,4))
np.add.reduceat(b,[0,2])
"""

# Statements that write into z, a copy of x (k: of i; of the base of a view: q = z.T).
WRITING = """
np.put(z,[0,5],1.) | np.put(z,[0,5],v[:2]) | np.put(z,[0,5,0],v) | np.put(z,[1,-1],w[0])
np.put(z,[0,40],v,mode='wrap') | np.put(z,[0,40],v,mode='clip') | np.put(z.T,[1,2],v) | np.put(z[1],0,v[0])
np.put(z,[0,5,7],v[:2]) | np.put(z,[],v) | np.put(z,[[0],[1]],v) | np.put(k,[0,2],[7,8]) | np.put(z,k,v)
np.place(z,z>.5,1.) | np.place(z,x0>.5,v) | np.place(z,x>.5,[1.,2.]) | np.place(z,x0>9,[]) | np.putmask(z,x0>.5,y)
np.putmask(z,z>.5,v) | np.putmask(z,x>.5,0.) | np.copyto(z,1.) | np.copyto(z,y) | np.copyto(z,v[:4])
np.copyto(z,y,where=x0>.5) | np.copyto(z,y*2,where=x>.5) | np.copyto(z[1],v[:4]) | np.copyto(k,3) | np.copyto(z,k[:4])
np.copyto(z,f) | np.copyto(z,y0) | np.fill_diagonal(z,0.) | np.fill_diagonal(z,v) | np.fill_diagonal(z.T,v[0])
np.fill_diagonal(z.T,v,wrap=True) | np.fill_diagonal(z[:,:2].reshape(6,1),v,wrap=True)
np.put_along_axis(z,x0.argsort(1)[:,:1],9.,axis=1) | np.put_along_axis(z,np.array([[0,1,2,0]]),v[:4],axis=0)
np.put_along_axis(z,np.array([[0,-1,2,0]]),v[:4],0) | np.put_along_axis(z,np.array([1,2]),v[:2],axis=None)
np.add.at(z,[0,0,1],1.) | np.add.at(z,[0,0,1],y) | np.add.at(z,([0,0,1],[1,1,2]),v[:3]) | np.add.at(z,k%3,1.)
np.subtract.at(z,[0,0],v[:4]) | np.add.at(z,(slice(None),[0,0]),2) | np.add.at(k,[0,0],5)
np.add.at(z[1],[0,0],w[:2]) | np.add.at(z,[0],f)
"""


def _split(text: str) -> list[str]:
    return [case.strip() for line in text.strip().splitlines() for case in line.split(" | ")]


def _arrays() -> dict[str, np.ndarray]:
    wave = np.arange(12.0)
    x = 0.2 + 0.7 * np.abs(np.sin(1.1 * wave + 0.3)).reshape(3, 4)
    v = 0.25 + 0.6 * np.abs(np.sin(wave[:5] + 1))
    return {
        "v": v,
        "w": 0.3 + 0.5 * np.abs(np.cos(2.1 * wave[:5])),
        "p": np.array([0.05, 0.31, 0.52, 0.71, 1.13]),
        "n": np.where(np.arange(5) == 2, np.nan, v),
        "x": x,
        "y": 0.25 + 0.6 * np.abs(np.cos(1.7 * wave)).reshape(3, 4),
        "u": np.where((wave.reshape(3, 4) % 5 == 1), np.nan, x),
        "a": 0.2 + 0.5 * np.abs(np.sin(1.3 * wave + 0.7)).reshape(2, 3, 2),
        "s": 0.3 + 0.5 * np.abs(np.cos(1.3 * wave[:9])).reshape(3, 3),
        "i": np.array([0, 2, 5, 2, 1]),
        "j": (np.arange(12) * 5 % 7).reshape(3, 4),
        "f": x[0].astype(np.float32),
        "c": x[0] + 1j * np.cos(wave[:4]),
        "b": v > 0.5,
    }


def _names(case: str) -> list[str]:
    """Return the one-letter inputs that a case uses."""
    words = "".join(c if c.isalnum() or c in "_.'" else " " for c in case).split()
    return [name for name in _arrays() if any(word.split(".")[0] == name for word in words)]


def _run(case: str, **values: Any) -> Any:
    constants = {f"{k}0": a for k, a in _arrays().items()}
    if case in _split(WRITING):
        z, k = values.get("x", _arrays()["x"]), values.get("i", _arrays()["i"])
        scope = {"z": z.copy() if isinstance(z, np.ndarray) else z.clone(), **_arrays(), **values}
        scope["k"] = k.copy() if isinstance(k, np.ndarray) else k.clone()
        exec(case, {"np": np, **constants, **scope}, scope)
        return scope["z"], scope["k"]
    return eval(case, {"np": np, **constants, **_arrays(), **values})


def _flat(result: Any) -> list[Any]:
    return [part for item in result for part in _flat(item)] if isinstance(result, (list, tuple)) else [result]


FLOWING = _split(CALCULUS) + _split(GRIDS) + _split(SAMPLES) + _split(SELECTIONS) + _split(WRITING)
CASES = FLOWING + _split(WITHOUT)


def _inputs(case: str) -> list[str]:
    return sorted({*_names(case), *(["x", "i"] if case in _split(WRITING) else [])})


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("recorded", [False, True])
def test_values_and_dtypes_are_numpys(case: str, recorded: bool) -> None:
    expected = _flat(_run(case))
    tensors = {name: cr.from_numpy(_arrays()[name]) for name in _inputs(case)}
    for tensor in tensors.values():
        tensor.requires_grad_(recorded and tensor.dtype in (cr.float64, cr.float32, cr.complex128))
    got = _flat(_run(case, **tensors))
    assert len(got) == len(expected)
    for want, have in zip(expected, got):
        plain = have.detach().numpy() if isinstance(have, cr.Tensor) else np.asarray(have)
        want = np.asarray(want)
        assert plain.dtype == want.dtype and plain.shape == want.shape
        tolerance = 1e-5 if plain.dtype.itemsize <= 4 else 1e-12
        np.testing.assert_allclose(plain, want, rtol=tolerance, atol=tolerance)


def _filled(array: np.ndarray) -> np.ndarray:
    """Replace NaN by distinct numbers."""
    return np.where(np.isnan(array), 0.41 + 0.013 * np.arange(array.size).reshape(array.shape), array)


def _function(case: str) -> tuple[Callable[..., Any], list[cr.Tensor]]:
    """Return the case as a function of its double-precision inputs, with the results that depend on them."""
    names = [name for name in _inputs(case) if _arrays()[name].dtype in (np.float64, np.complex128)]
    inputs = [cr.from_numpy(_filled(_arrays()[name])).requires_grad_() for name in names]

    def function(*tensors: cr.Tensor) -> Any:
        results = _flat(_run(case, **dict(zip(names, tensors))))
        return tuple(r for r in results if isinstance(r, cr.Tensor) and r.requires_grad and r.dtype.itemsize >= 8)

    return function, inputs


@pytest.mark.parametrize("case", FLOWING)
def test_derivatives(case: str) -> None:
    function, inputs = _function(case)
    assert function(*inputs)
    assert gradcheck(function, inputs, check_forward_ad=True, check_undefined_grad=False, fast_mode=True)
    assert gradgradcheck(function, inputs, atol=1e-4, fast_mode=True)


@pytest.mark.slow
@pytest.mark.parametrize("case", FLOWING)
def test_every_entry_of_the_jacobian(case: str) -> None:
    function, inputs = _function(case)
    assert gradcheck(function, inputs, check_forward_ad=True, check_undefined_grad=False)


@pytest.mark.parametrize("case", _split(WITHOUT))
def test_nothing_flows(case: str) -> None:
    function, inputs = _function(case)
    assert function(*inputs) == ()


# The number of elements of the result, or its contents, depend on the numbers: vmap has no single answer.
OF_THE_NUMBERS = "histogram unique union1d intersect1d setdiff1d setxor1d trim_zeros lexsort array_equiv".split()


def _examples(case: str) -> tuple[Callable[..., Any], list[cr.Tensor]]:
    """Return the case as a function of its float64 inputs, and batches of two for each of them."""
    names = [name for name in _inputs(case) if _arrays()[name].dtype == np.float64]
    batches = []
    for name in names:
        one = _arrays()[name]
        other = one * 1.05 if name == "p" else one + 0.07 * np.cos(1.0 + np.arange(one.size)).reshape(one.shape)
        batches.append(cr.from_numpy(np.stack([one, other])))

    def function(*tensors: cr.Tensor) -> Any:
        results = _flat(_run(case, **dict(zip(names, tensors))))
        return tuple(r for r in results if isinstance(r, cr.Tensor))

    return function, batches


MAPPED = [case for case in CASES if any(_arrays()[name].dtype == np.float64 for name in _inputs(case))]
# Constants inside vmap of known size; and zeros that vmap cannot remove.
EXCEPT = ("np.histogram(v0,3,weights=w)", "np.histogram(i,[0,2,3],weights=w)", "np.polymul(v*(i0>0),w)")


@pytest.mark.parametrize("case", [c for c in MAPPED if c not in EXCEPT and any(name in c for name in OF_THE_NUMBERS)])
def test_vmap_says_what_it_cannot_map(case: str) -> None:
    function, batches = _examples(case)
    with pytest.raises(RuntimeError, match="vmap"):
        cr.func.vmap(function)(*batches)


@pytest.mark.parametrize("case", [c for c in MAPPED if c not in EXCEPT[2:] and not any(n in c for n in OF_THE_NUMBERS)])
def test_vmap_is_a_loop(case: str) -> None:
    function, batches = _examples(case)
    got = cr.func.vmap(function)(*batches)
    each = [function(*(batch[k] for batch in batches)) for k in range(2)]
    for k, result in enumerate(got):
        want = np.stack([one[k].numpy() for one in each])
        assert result.numpy().dtype == want.dtype
        np.testing.assert_allclose(result.numpy(), want, rtol=1e-10, atol=1e-10)


# Without writes, and without methods that only tensors have.
INSIDE = [
    case
    for case in FLOWING
    if case not in _split(WRITING)
    and not any(method in case for method in (".sum()", ".reshape(1", ".reshape(2,2,4))", ".swapaxes", ".cumsum"))
    and any(_arrays()[name].dtype == np.float64 for name in _inputs(case))
]


@pytest.mark.parametrize("case", INSIDE)
def test_rules_may_call_them(case: str) -> None:
    names = [name for name in _inputs(case) if _arrays()[name].dtype == np.float64]
    values = [_filled(_arrays()[name]) for name in names]
    tangents = [np.cos(1.0 + np.arange(value.size)).reshape(value.shape) for value in values]

    def function(*inputs: Any) -> Any:
        return tuple(_flat(_run(case, **dict(zip(names, inputs)))))

    def of_tensors(*inputs: Any) -> Any:
        return tuple(r for r in function(*inputs) if isinstance(r, cr.Tensor))

    got = function(*(Dual(value, tangent, 10) for value, tangent in zip(values, tangents)))
    _, expected = cr.func.jvp(of_tensors, tuple(map(cr.from_numpy, values)), tuple(map(cr.from_numpy, tangents)))
    got = [result for result in got if isinstance(result, (Dual, cr.Tensor))]
    for result, want in zip(got, expected, strict=True):
        tangent = result.tangent if isinstance(result, Dual) else None
        np.testing.assert_allclose(0 * want.numpy() if tangent is None else tangent, want.numpy(), atol=1e-12)


A = np.array([[1.0, 2.0], [3.0, 4.0]])
V = np.array([1.0, 2.0, 4.0])


def leaf(array: np.ndarray = V) -> cr.Tensor:
    return cr.tensor(array, requires_grad=True)


ERRORS = """
np.gradient(t,edge_order=3) | np.gradient(t,1.,2.) | np.gradient(t,[1.,2.]) | np.gradient(t,[[1.]]) | np.gradient(t[:1])
np.gradient(t,axis=2) | np.interp(t,[1.,2.],[1.]) | np.interp(t,[],[]) | np.interp(1.,t,t[:2]) | np.interp(t,t,t,period=0)
np.cumulative_sum(m) | np.cumulative_prod(m) | np.vander(m)
np.linspace(t[0],t[1],-1) | np.linspace(t[0],t[1],2.5) | np.geomspace(t*0,t) | np.polyfit(t,t,-1) | np.polyfit(m,t,1)
np.polyfit(t,t[:2],1) | np.polyfit(t[:0],t[:0],1) | np.polyfit(t,t,1,w=t[:2]) | np.polyfit(t,t,2,cov=True) | np.cov(m[None])
np.cov(t,ddof=.5) | np.cov(t,fweights=[1,2]) | np.cov(t,fweights=[1.5,1,1]) | np.cov(t,aweights=-t) | np.cov(t,aweights=m)
np.nanquantile(t,1.5) | np.nanquantile(t,.5,axis=1) | np.bincount([-1],weights=t[:1]) | np.bincount([1],weights=t)
np.histogram(t,weights=t[:2]) | np.histogram(t,[3,1]) | np.insert(t,9,1.) | np.insert(t,[0,1],t) | np.insert(m,0,t,axis=1)
np.partition(t,7) | np.partition(t,0,axis=2) | np.choose([0,5,0],[t,t]) | np.resize(t,(-1,2)) | np.trim_zeros(t,'x')
np.piecewise(t,[t>1],[1,2,3]) | np.apply_along_axis(np.sum,2,m) | np.apply_along_axis(np.sum,0,t[:,None][:,:0])
np.add.reduceat(t,[0,7]) | np.put(w,[9],1.) | np.place(w,[True],1.) | np.place(w,w>0,[]) | np.putmask(w,[True],1.)
np.copyto(w,t*1j) | np.copyto(w,m) | np.fill_diagonal(w,0.) | np.put_along_axis(w,np.array([9]),1.,0) | np.nanargmax(t*np.nan)
np.linalg.tensorsolve(m,t) | np.linalg.tensorinv(m,0) | np.polyder(t,-1) | np.polyint(t,-1) | np.polyint(t,3,[1.,2.])
np.ldexp(t,t) | np.unwrap(m,axis=5)
"""


@pytest.mark.parametrize("call", _split(ERRORS))
def test_errors_are_numpys(call: str) -> None:
    with pytest.raises(Exception) as expected:
        eval(call, {"np": np, "t": V.copy(), "m": A.copy(), "w": V.copy()})
    written = leaf() * 1
    with pytest.raises(type(expected.value)):
        eval(call, {"np": np, "t": leaf(), "m": leaf(A), "w": written})
    assert written.tolist() == V.tolist()


def test_writing_continues_the_history() -> None:
    x, value = leaf(A), leaf(np.array([5.0, 7.0]))
    z = x * 2
    np.fill_diagonal(z, value)
    np.add.at(z, (np.array([0, 0]), np.array([1, 1])), value)
    z.sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0], [2.0, 0.0]] and value.grad.tolist() == [2.0, 2.0]


def test_of_values_for_one_place_the_last_counts() -> None:
    z, value = cr.zeros(3, dtype=cr.float64), leaf()
    np.put(z, [1, 1, 1], value)
    assert z.tolist() == [0.0, 4.0, 0.0]
    z.sum().backward()
    assert value.grad.tolist() == [0.0, 0.0, 1.0]


def test_writing_reaches_the_base_of_a_view() -> None:
    base, value = cr.zeros(2, 2, dtype=cr.float64), leaf()
    np.copyto(base[0], value[:2])
    np.put(base.T, [1], value[2])
    assert base.tolist() == [[1.0, 2.0], [4.0, 0.0]] and base.requires_grad


@pytest.mark.parametrize(
    "call",
    ["np.put(x,[0],1.)", "np.place(x,x>1,1.)", "np.copyto(x,1.)", "np.putmask(x,x>1,0.)", "np.add.at(x,[0],1.)"],
)
def test_a_leaf_is_not_written(call: str) -> None:
    x = leaf()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        eval(call, {"np": np, "x": x})
    assert x.tolist() == V.tolist()


@pytest.mark.parametrize(
    "call",
    [
        "np.put(buffer,[0],x)",
        "np.place(buffer,V>1,x)",
        "np.copyto(buffer,x)",
        "np.putmask(buffer,V>1,x)",
        "np.add.at(buffer,[0],x[0])",
        "np.put_along_axis(buffer,np.array([0]),x[:1],0)",
    ],
)
def test_a_plain_array_takes_no_tensor(call: str) -> None:
    buffer = np.zeros(3)
    with pytest.raises(RuntimeError, match="buffer, a plain NumPy array"):
        eval(call, {"np": np, "x": leaf(), "V": V, "buffer": buffer})
    assert not buffer.any()


@pytest.mark.parametrize(
    "call",
    """
np.put(buffer,k,5.) | np.put(buffer,k,k) | np.place(buffer,m,[7.]) | np.putmask(buffer,m,7.) | np.copyto(buffer,9.,where=m)
np.add.at(buffer,k,1.) | np.subtract.at(buffer,(k,),1.) | np.put_along_axis(buffer,k,3.,0) | np.copyto(dst=buffer,src=k)
""".replace(" | ", "\n").split("\n")[1:-1],
)
def test_a_plain_array_takes_plain_numbers_where_integer_tensors_say(call: str) -> None:
    k, m = np.array([2, 0, 2]), np.array([True, False, True])
    expected, buffer = np.zeros(3), np.zeros(3)
    eval(call, {"np": np, "buffer": expected, "k": k, "m": m})
    eval(call, {"np": np, "buffer": buffer, "k": cr.from_numpy(k), "m": cr.from_numpy(m)})
    assert expected.any() and buffer.tolist() == expected.tolist()


def test_files(tmp_path: Any) -> None:
    plain = cr.tensor(V)
    np.save(tmp_path / "one.npy", plain)
    np.savetxt(tmp_path / "one.txt", plain)
    np.savez(tmp_path / "two.npz", plain, named=plain * 2)
    assert np.load(tmp_path / "one.npy").tolist() == np.loadtxt(tmp_path / "one.txt").tolist() == V.tolist()
    with np.load(tmp_path / "two.npz") as both:
        assert both["arr_0"].tolist() == V.tolist() and both["named"].tolist() == (2 * V).tolist()
    for save in (np.save, np.savetxt, np.savez, np.savez_compressed):
        with pytest.raises(RuntimeError, match=r"requires grad. Use tensor.detach"):
            save(tmp_path / "no", leaf())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.npy", "one.txt", "two.npz"]


def test_text() -> None:
    assert np.array2string(leaf(), precision=2, separator=",") == np.array2string(V, precision=2, separator=",")


def test_vectorize_names_vmap() -> None:
    with pytest.raises(RuntimeError, match=r"requires grad(.|\n)*func.vmap"):
        np.vectorize(lambda a: a * 2)(leaf())


def test_piecewise_does_not_look_where_it_is_not_asked() -> None:
    x = leaf(np.array([-1.0, 4.0]))
    np.piecewise(x, [x > 0], [np.sqrt, 0.0]).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


def test_a_knot_has_the_slope_to_its_right() -> None:
    x = leaf(np.array([1.0, 2.0]))
    np.interp(x, [0.0, 1.0, 2.0], [0.0, 10.0, 40.0]).sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]


def test_edges_of_a_histogram_move_with_the_extremes() -> None:
    x = leaf(np.array([1.0, 1.5, 3.0]))
    counts, edges = np.histogram(x, 2)
    assert not counts.requires_grad
    edges[1].backward()
    assert x.grad.tolist() == [0.5, 0.0, 0.5]


def test_warnings_are_numpys() -> None:
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        assert np.isnan(np.cov(leaf(), ddof=3).detach().numpy()) == np.isnan(np.cov(V, ddof=3))
    with pytest.warns(np.exceptions.RankWarning, match="poorly conditioned"):
        np.polyfit(leaf(), leaf(), 5)


def test_each_example_leaves_out_its_own_nan() -> None:
    x = cr.tensor(np.array([[1.0, np.nan, 3.0], [4.0, 5.0, np.nan]]), requires_grad=True)
    assert cr.func.vmap(np.nanmedian)(x).tolist() == [2.0, 4.5]


@pytest.mark.parametrize("n", [0, 2])
def test_diff_beside_lists_and_of_order_zero(n):
    x = cr.Array([1.0, 2.0, 4.0], requires_grad=True)
    v = x.detach().tolist()
    np.testing.assert_array_equal(np.diff(x, n, prepend=0.0).detach(), np.diff(v, n, prepend=0.0))
    np.testing.assert_array_equal(np.diff(x, n, append=[7.0, 9.0]).detach(), np.diff(v, n, append=[7.0, 9.0]))
    if n:
        np.testing.assert_array_equal(np.diff(v, n, append=x).detach(), np.diff(v, n, append=v))


def test_diff_refuses_negative_orders_and_numbers():
    x = cr.Array([1.0, 2.0], requires_grad=True)
    with pytest.raises(ValueError, match="order must be non-negative but got -1"):
        np.diff(x, -1)
    with pytest.raises(ValueError, match="at least one dimensional"):
        np.diff(x.sum())
