"""Differences, interpolation, samples, selections and writing, as NumPy does them: its values and dtypes on tensors,
derivatives in both modes and twice against finite differences, and whole batches against one example at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.testing import gradcheck, gradgradcheck

# v, w, p: (5,), p rising, n: with NaN; x, y: (3, 4), u: (3, 4) with NaN; a: (2, 3, 2); s: (3, 3); all float64.
# f: float32 (4,), i: int64 (5,), j: int64 (3, 4), c: complex128 (4,), b: bool (5,). A name with 0: the plain array.
CALCULUS = """
np.gradient(v) | np.gradient(v,edge_order=2) | np.gradient(v,.5) | np.gradient(v,p0) | np.gradient(v,p)
np.gradient(v,p,edge_order=2) | np.gradient(v0,p) | np.gradient(v0,p,edge_order=2) | np.gradient(x) | np.gradient(x,2.)
np.gradient(v,p[0]) | np.gradient(x,.5,2.) | np.gradient(x,p[:3],v0[:4].cumsum()) | np.gradient(x,axis=0)
np.gradient(x,axis=-1) | np.gradient(x,axis=(1,0)) | np.gradient(x,.5,axis=1,edge_order=2) | np.gradient(i) | np.gradient(f)
np.gradient(f,[0.,1.,3.,4.]) | np.gradient(v,[0,1,3,4,9]) | np.gradient(v,[0,1,2,3,4]) | np.gradient(a,axis=1,edge_order=2)
np.gradient(v[:2]) | np.gradient(c) | np.interp(v,p0,w0) | np.interp(v,p,w) | np.interp(v0,p,w0) | np.interp(v0,p0,w)
np.interp(x,p,w) | np.interp(v[0],p,w) | np.interp(.3,p,w) | np.interp(x,p[1:4],w[1:4]) | np.interp(x,p[1:4],w[1:4],left=-1.)
np.interp(x,p[1:4],w[1:4],right=7.) | np.interp(x,p[1:4],w[1:4],left=v[0],right=v[1]) | np.interp(x,p[:1],w[:1])
np.interp(x,p[2:3],w[:1],left=0.,right=1.) | np.interp(p0,p0,w) | np.interp(n,p,w) | np.interp(x,v,w,period=.31)
np.interp(x,p,w,period=-2.) | np.interp(i,p,w) | np.interp(f,p,w) | np.interp(p0,[0.,.2,.2,.7],w[:4])
np.interp([.1,.2,.7,.8],[0.,.2,.2,.7,.7],w) | np.interp(v,p,w*1j+1) | np.ediff1d(v) | np.ediff1d(x)
np.ediff1d(v,to_end=w) | np.ediff1d(v,to_begin=[0.,1.]) | np.ediff1d(v,1.,2.) | np.ediff1d(i) | np.ediff1d(v[0])
np.unwrap(v*9) | np.unwrap(x*9) | np.unwrap(x*9,axis=0) | np.unwrap(v,.1,period=.25) | np.unwrap(i,period=4)
np.unwrap(i,period=5) | np.unwrap(f*9) | np.unwrap(w*np.pi*i0) | np.unwrap(v*9,period=p[3]+3) | np.cumulative_sum(v)
np.cumulative_sum(v,include_initial=True) | np.cumulative_sum(x,axis=0,include_initial=True) | np.cumulative_sum(x,axis=-1)
np.cumulative_prod(x,axis=1) | np.cumulative_prod(v,include_initial=True) | np.cumulative_sum(i) | np.cumulative_sum(v[0])
np.cumulative_sum(f,dtype=np.float64) | np.nancumsum(n) | np.nancumsum(u,axis=0) | np.nancumprod(n) | np.nancumprod(u,axis=1)
np.nancumsum(i) | np.nancumsum(u)
"""

GRIDS = """
np.linspace(v[0],v[1]) | np.linspace(v[0],2.,5) | np.linspace(0,v[0],5) | np.linspace(v[0],v[1],1) | np.linspace(v[0],v[1],0)
np.linspace(v,w,4) | np.linspace(v,w,4,axis=1) | np.linspace(v,w,4,axis=-1) | np.linspace(v,0.,4,endpoint=False)
np.linspace(v[0],v[1],5,retstep=True) | np.linspace(v[0],v[1],5,endpoint=False,retstep=True) | np.linspace(x,v[0],3)
np.linspace(f[0],f[1],3) | np.linspace(f[0],1.,3) | np.linspace(f[0],v[0],3) | np.linspace(i[0],i[1],4)
np.linspace(i[0],9,4,dtype=int) | np.linspace(v[0],v[0],3) | np.logspace(v[0],v[1],4) | np.logspace(v,w,3,base=2)
np.logspace(v[0],v[1],4,base=w[0]+1) | np.logspace(v[0],1.,3,base=p[1:]) | np.logspace(f[0],f[1],3) | np.logspace(v,w,3,axis=1)
np.geomspace(v[0],v[1]+2,4) | np.geomspace(v,w+1,3) | np.geomspace(-v,-w,3,axis=1) | np.geomspace(v[0],8.,4,endpoint=False)
np.geomspace(c[0],c[1],3) | np.geomspace(v[0],v[1],1) | np.geomspace(v[0],v[1],0) | np.vander(v) | np.vander(v,3)
np.vander(v,3,increasing=True) | np.vander(v,1) | np.vander(v,0) | np.vander(i) | np.vander(f,2) | np.vander(c) | np.vander(v*0,3)
np.polyfit(v,w,2) | np.polyfit(v0,w,1) | np.polyfit(v,w0,1) | np.polyfit(p,x.T[[0,1,2,3,0]],2) | np.polyfit(v,w,1,w=p+1)
np.polyfit(p,w,1,cov=True) | np.polyfit(p,w,1,cov='unscaled') | np.polyfit(p,x.T[[0,1,2,3,0]],1,w=v,cov=True)
np.polyfit(p,w,1,full=True)[:4] | np.polyfit(i,w,0) | np.matvec(x,f) | np.matvec(s,v[:3]) | np.matvec(a.swapaxes(1,2),x[:2,:3])
np.vecmat(v[:3],x) | np.vecmat(x[:2,:3],a) | np.vecmat(c,x.T) | np.ldexp(v,i) | np.ldexp(v,-2) | np.ldexp(f,3) | np.ldexp(v0,i)
np.linalg.tensorsolve(s+2*np.eye(3),v[:3]) | np.linalg.tensorsolve((x[:2,:2]+np.eye(2)).reshape(1,2,2),v[:2].reshape(1,2))
np.linalg.tensorsolve(np.eye(6).reshape(2,3,6)+a.sum(),x[:2,:3]) | np.linalg.tensorsolve(np.eye(4).reshape(4,2,2)*3+x[:2,:2],s[:2,1:],axes=(0,))
np.polyadd(v,w[:3]) | np.polyadd(2.,v) | np.polysub(w[1:],v) | np.polymul(v,w[:3])
np.polymul(v*(i0>0),w) | np.polymul(i,[1,2]) | np.polyder(v) | np.polyder(v,2) | np.polyder(i) | np.polyder(v,9) | np.polyint(v)
np.polyint(v,2) | np.polyint(v,2,k=[1.,2.]) | np.polyint(v,2,3.) | np.polyint(v,1,w[0]) | np.polyint(i) | np.poly(v) | np.poly(c)
np.linalg.tensordot(x,y) | np.linalg.tensordot(x,y,axes=([1],[1])) | np.linalg.vecdot(x,y) | np.linalg.vecdot(c,c,axis=0)
np.linalg.tensorinv(s+np.eye(3),ind=1) | np.linalg.tensorinv((np.eye(4)+x[0]).reshape(2,2,4))
"""

SAMPLES = """
np.cov(x) | np.cov(x,rowvar=False) | np.cov(x,bias=True) | np.cov(x,ddof=0) | np.cov(x,ddof=2) | np.cov(v,w) | np.cov(v)
np.cov(x,y) | np.cov(x,y,rowvar=False) | np.cov(v0,w) | np.cov(x,v0[:4]) | np.cov(x,fweights=[1,2,1,3])
np.cov(x,aweights=v[:4]) | np.cov(x,aweights=v0[:4],fweights=[1,2,1,3]) | np.cov(x,aweights=v[:4],ddof=0) | np.cov(f) | np.cov(i)
np.cov(x,dtype=np.float32) | np.cov(c) | np.cov(c,x[0]) | np.cov(x,aweights=v[:4],fweights=[1,2,1,3],bias=True)
np.cov(v[:,None],rowvar=False) | np.corrcoef(x) | np.corrcoef(x,rowvar=False) | np.corrcoef(v,w) | np.corrcoef(v)
np.corrcoef(x,y) | np.corrcoef(f) | np.corrcoef(c,x[0]) | np.corrcoef(x,dtype=np.float32) | np.nanmedian(n) | np.nanmedian(u)
np.nanmedian(u,axis=0) | np.nanmedian(u,axis=1,keepdims=True) | np.nanmedian(u,axis=(0,1)) | np.nanquantile(u,.3)
np.nanquantile(u,[.1,.9],axis=0) | np.nanquantile(u,[[.1,.9]],axis=1,keepdims=True) | np.nanpercentile(u,30)
np.nanpercentile(u,[25,50],axis=1) | np.nanmedian(i) | np.nanmedian(f) | np.nanquantile(n,.4) | np.nanmedian(v[0])
np.nanquantile(a,.7,axis=(0,2)) | np.bincount(i) | np.bincount(i,minlength=9) | np.bincount(i,v) | np.bincount(i0,weights=v)
np.bincount(i,weights=v0) | np.bincount(i,weights=i) | np.bincount(i,v,12)
np.histogram(v) | np.histogram(x,4) | np.histogram(v,[.2,.4,.8]) | np.histogram(v,4,(0,1)) | np.histogram(v,4,density=True)
np.histogram(v,3,weights=w) | np.histogram(v0,3,weights=w) | np.histogram(x,[.2,.4,.8],weights=y) | np.histogram(v,3,weights=w0)
np.histogram(x,4,weights=y,density=True) | np.histogram(v,[.3,.5,.9],weights=w,density=True) | np.histogram(i,[0,2,3],weights=w)
np.histogram(v,p) | np.histogram_bin_edges(v,3) | np.unique(i) | np.unique(v) | np.unique(v[i0%3]) | np.unique(x)
np.unique(v[i0%3],return_index=True) | np.unique(v[i0%3],return_inverse=True) | np.unique(v[i0%3],True,True,True)
np.unique(x[[0,1,0]],axis=0) | np.unique(x[:,[0,1,1]],axis=1,return_counts=True) | np.unique(n) | np.unique(n,equal_nan=False)
np.unique_all(v[i0%3]) | np.unique_counts(v) | np.unique_inverse(x) | np.sort(np.unique_values(v)) | np.union1d(v,w) | np.union1d(v,v[:2])
np.intersect1d(v,v[1:3]) | np.intersect1d(v[:3],v,return_indices=True) | np.intersect1d(i,[1,2,3]) | np.setdiff1d(v,v[1:3])
np.setdiff1d(i,[1]) | np.setdiff1d(v,v[1:3],assume_unique=True) | np.setxor1d(v,np.append(v[1:3],9.)) | np.setxor1d(i,[1,2,8])
np.setdiff1d(v0,v[1:3]) | np.isin(i,[1,2]) | np.isin(v,v[:2],invert=True) | np.isin([1,2,9],i) | np.lexsort((v,i))
np.nanargmax(n) | np.nanargmin(u,axis=0) | np.array_equiv(x,x) | np.isreal(c) | np.iscomplex(c)
"""

SELECTIONS = """
np.insert(v,1,2.) | np.insert(v,1,w[0]) | np.insert(v,[1,3],w[:2]) | np.insert(v,[3,1],w[:2]) | np.insert(v,[1,1],[7.,8.])
np.insert(v,2,w) | np.insert(v,[2],w) | np.insert(v,-1,w[0]) | np.insert(v,slice(0,4,2),w[:2]) | np.insert(v,b,3.) | np.insert(x,1,v[:4],axis=0)
np.insert(x,1,2.,axis=1) | np.insert(x,[1],v[:3,None],axis=1) | np.insert(x,1,v[:3],axis=1) | np.insert(x,[0,2],y[:,:2],axis=1)
np.insert(x,5,1.) | np.insert(v0,1,w[0]) | np.insert(i,1,2.7) | np.insert(f,0,v[0]) | np.insert(v,[],[]) | np.insert(v,i%4,p)
np.insert(x,[1,2],v[:4],axis=0) | np.insert(v,5,1.) | np.resize(v,3) | np.resize(v,(3,4)) | np.resize(x,(2,2)) | np.resize(v,(0,2))
np.resize(v,(2,3,2)) | np.trim_zeros(v*(i0>1)) | np.trim_zeros(v*(i0>1),'f') | np.trim_zeros(v*(i0>1),'b') | np.trim_zeros(v*0)
np.trim_zeros(x*np.array([0.,1.,1.,0.])) | np.trim_zeros(x*np.array([0.,1.,1.,0.]),axis=0) | np.trim_zeros(x*np.array([0.,1.,1.,0.]),'f',axis=-1)
np.partition(v,2) | np.partition(x,1) | np.partition(x,1,axis=0) | np.partition(x,5,axis=None) | np.partition(v,[1,3]) | np.partition(i,2)
np.partition(v,-1) | np.argpartition(v,2) | np.argpartition(x,1,axis=0) | np.add.reduceat(v,[0,2]) | np.add.reduceat(v,[0,3,1,1])
np.add.reduceat(x,[0,2],axis=1) | np.add.reduceat(x,[1,0,2]) | np.add.reduceat(i,[0,2,3]) | np.add.reduceat(f,[0,1],dtype=np.float64)
np.choose([0,1,1,0,1],[v,w]) | np.choose(i,[v,w],mode='wrap') | np.choose(i,[v,w],mode='clip') | np.choose(i%2,[v,w0])
np.choose([1,0],[v[:2],2.]) | np.choose([[0],[1]],[v,w]) | np.choose([0,2,1,0],x) | np.choose(1,[v,w]) | np.choose(i,[1,2,3],mode='clip')
np.real_if_close(c) | np.real_if_close(c.real+0j) | np.real_if_close(v) | np.real_if_close(c+1e-18j)
np.piecewise(v,[v>.5,v<=.5],[lambda z:z**2,lambda z:3*z]) | np.piecewise(v,[v>.5],[lambda z:z**2,lambda z:3*z])
np.piecewise(v,v>.5,[lambda z:z**2]) | np.piecewise(v,[v>.5,v>.6],[np.sqrt,np.exp]) | np.piecewise(v,[v0>.5],[1.,lambda z,k:k*z],4)
np.piecewise(x,[x>.5,x<.3],[np.log,2.,np.sin]) | np.piecewise(v[0],[v[0]>9,v[0]<=9],[np.exp,np.sin]) | np.piecewise(i,[i>1],[2.7,0])
np.piecewise(v,[v>9],[np.sin]) | np.piecewise(f,[f>.5],[1.,np.exp])
np.apply_along_axis(lambda r:r*2,0,x) | np.apply_along_axis(np.sum,1,x) | np.apply_along_axis(lambda r:np.outer(r,r),1,x)
np.apply_along_axis(lambda r:np.outer(r,r[:2]),1,a) | np.apply_along_axis(np.sort,-1,x) | np.apply_along_axis(lambda r,k:r[:k],0,x,2)
np.apply_along_axis(len,0,x) | np.apply_along_axis(np.diff,0,v) | np.apply_along_axis(np.polyval,0,x,2.)
np.apply_over_axes(np.sum,a,[0,2]) | np.apply_over_axes(np.cumsum,x,0) | np.apply_over_axes(np.prod,a,1)
np.select([v0>.5,v0>.3],[v,w],7.) | np.select([v>.5],[v])
"""

# Statements that write into z, a copy of x (k: of i; of the base of a view: q = z.T).
WRITING = """
np.put(z,[0,5],1.) | np.put(z,[0,5],v[:2]) | np.put(z,[0,5,0],v) | np.put(z,[1,-1],w[0]) | np.put(z,[0,40],v,mode='wrap')
np.put(z,[0,40],v,mode='clip') | np.put(z.T,[1,2],v) | np.put(z[1],0,v[0]) | np.put(z,[0,5,7],v[:2]) | np.put(z,[],v) | np.put(z,[[0],[1]],v)
np.put(k,[0,2],[7,8]) | np.put(z,k,v) | np.place(z,z>.5,1.) | np.place(z,x0>.5,v) | np.place(z,x>.5,[1.,2.]) | np.place(z,x0>9,[])
np.putmask(z,x0>.5,y) | np.putmask(z,z>.5,v) | np.putmask(z,x>.5,0.) | np.copyto(z,1.) | np.copyto(z,y) | np.copyto(z,v[:4])
np.copyto(z,y,where=x0>.5) | np.copyto(z,y*2,where=x>.5) | np.copyto(z[1],v[:4]) | np.copyto(k,3) | np.copyto(z,k[:4])
np.copyto(z,f) | np.copyto(z,y0) | np.fill_diagonal(z,0.) | np.fill_diagonal(z,v) | np.fill_diagonal(z.T,v[0])
np.fill_diagonal(z.T,v,wrap=True) | np.fill_diagonal(z[:,:2].reshape(6,1),v,wrap=True) | np.put_along_axis(z,x0.argsort(1)[:,:1],9.,axis=1)
np.put_along_axis(z,np.array([[0,1,2,0]]),v[:4],axis=0) | np.put_along_axis(z,np.array([[0,-1,2,0]]),v[:4],0) | np.put_along_axis(z,np.array([1,2]),v[:2],axis=None)
np.add.at(z,[0,0,1],1.) | np.add.at(z,[0,0,1],y) | np.add.at(z,([0,0,1],[1,1,2]),v[:3]) | np.add.at(z,k%3,1.)
np.subtract.at(z,[0,0],v[:4]) | np.add.at(z,(slice(None),[0,0]),2) | np.add.at(k,[0,0],5) | np.add.at(z[1],[0,0],w[:2]) | np.add.at(z,[0],f)
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
    """The one-letter inputs that a case uses."""
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


CASES = _split(CALCULUS) + _split(GRIDS) + _split(SAMPLES) + _split(SELECTIONS) + _split(WRITING)


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
    """With numbers, none of them twice, for NaN."""
    return np.where(np.isnan(array), 0.41 + 0.013 * np.arange(array.size).reshape(array.shape), array)


def _differentiable(case: str) -> tuple[Callable[..., Any], list[cr.Tensor]] | None:
    """The case as a function of its float64 inputs, with the results that depend on them."""
    names = [name for name in _inputs(case) if _arrays()[name].dtype == np.float64]
    inputs = [cr.from_numpy(_filled(_arrays()[name])).requires_grad_() for name in names]

    def function(*tensors: cr.Tensor) -> Any:
        results = _flat(_run(case, **dict(zip(names, tensors))))
        return tuple(r for r in results if isinstance(r, cr.Tensor) and r.requires_grad and r.dtype != cr.float32)

    return (function, inputs) if inputs and function(*inputs) else None


@pytest.mark.parametrize("case", CASES)
def test_derivatives(case: str) -> None:
    found = _differentiable(case)
    if found is None:
        pytest.skip("integers, or a dtype without digits to spare")
    function, inputs = found
    assert gradcheck(function, inputs, check_forward_ad=True, check_undefined_grad=False)
    assert gradgradcheck(function, inputs, atol=1e-4, fast_mode=True)
