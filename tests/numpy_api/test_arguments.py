"""All arguments of NumPy's functions have the same meaning for tensors as for arrays, or are rejected: none is ignored."""

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
np.average(np.stack([x,x+1]),axis=(0,2),weights=x) | np.average(np.stack([x,x+1]),axis=(2,0),weights=x.T)
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
    """The results of the function without ``nan`` in its name, of the other elements."""
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


#: calls that NumPy rejects; s is a number, x is (2, 3), v (3,), w (4,), m (3, 3), t (2, 2, 2), e empty
WRONG = """
np.dot(x,x) | np.dot(v,w) | x@x | v@w | np.matmul(x,s) | np.matmul(s,x) | np.vdot(v,w) | np.tensordot(x,x,1) | np.inner(x,w)
np.einsum('ij,jk',x,x) | np.einsum('ij,jk->iz',x,x.T) | np.einsum('ijk',x) | np.einsum('i',x) | np.einsum('ij->ijj',x)
np.reshape(x,(4,2)) | x.reshape(5) | x.reshape(-1,-1) | x.reshape(-1,4) | v.reshape(2) | x.T.reshape(2,3,copy=False)
np.reshape(x.T,6,copy=False) | np.concatenate([x,v]) | np.concatenate([x,x],axis=2) | np.concatenate([s,s]) | np.stack([x,v])
np.hstack([x,v]) | np.vstack([x,w]) | np.column_stack([x,v]) | np.block([[x,x],[x]]) | x+w | np.maximum(x,w) | np.where(x>0,w,x)
np.broadcast_to(v,(2,4)) | np.transpose(x,(0,0)) | np.moveaxis(x,0,3) | np.squeeze(x,axis=0) | np.expand_dims(x,5)
np.sum(x,axis=2) | np.sum(x,axis=(0,0)) | np.mean(x,keepdims='x') | np.max(e) | np.median(x,axis=2) | np.sort(v,kind='bogus')
np.quantile(v,.5,method='bogus') | np.take(v,[5]) | np.take(v,[0],mode='bogus') | np.add.accumulate(s) | np.logaddexp.accumulate(s)
np.linalg.norm(x,axis=5) | np.linalg.norm(x,ord='bogus') | np.linalg.vector_norm(x,axis=4) | np.linalg.matrix_power(m,1.5)
np.linalg.inv(x) | np.linalg.inv(0*m) | np.linalg.qr(x,mode='bogus') | np.linalg.lstsq(x,w) | np.linalg.solve(m,w)
np.linalg.solve(m,v.astype('f2'))
np.linalg.multi_dot([x]) | np.linalg.multi_dot([x,x]) | np.diag(t) | np.diag(s) | np.hsplit(s,2) | np.vsplit(v,3) | np.dsplit(x,1)
np.tile(v,-1) | np.repeat(v,-1) | np.repeat(v,[1,2]) | np.roll(x,1,axis=3) | np.rot90(v) | np.pad(v,-1) | np.pad(v,1,mode='bogus')
np.convolve(v,v,mode='bogus') | np.convolve(v,e) | np.trapezoid(v,w) | np.linspace(v,w) | np.logspace(v,w)
np.average(v,weights=w) | np.average(v,weights=0*v) | np.average(x,weights=w,axis=1) | np.average(t,weights=x,axis=(0,1))
np.meshgrid(x,indexing='bogus') | np.copyto(v.copy(),w) | np.matvec(x,w) | np.vecmat(w,x) | np.vecdot(v,w) | v.dot(w) | v[5] | v[0,0]
np.fft.fft(v,n=0) | np.fft.fft(x,axis=4) | np.interp(v,v,w) | np.polyfit(v,w,1) | np.cov(v,w) | np.split(v,2) | np.insert(v,7,1.)
"""


def _wrong(call: str, arrays: dict[str, Any]) -> Exception | None:
    try:
        eval(call, {"np": np, **arrays})
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("case", _split(WRONG))
def test_a_wrong_call_raises_what_numpy_raises(case):
    shapes = {"s": (), "x": (2, 3), "v": 3, "w": 4, "m": (3, 3), "t": (2, 2, 2), "e": 0}
    plain = {name: np.arange(1.0, 1 + np.prod(shape)).reshape(shape) for name, shape in shapes.items()}
    theirs, ours = _wrong(case, plain), []

    def within(x: Any) -> Any:
        ours.append(_wrong(case, {name: array + x for name, array in plain.items()}))
        return x

    cr.grad(within)(0.0)
    cr.vmap(within)(np.zeros(2))
    assert theirs is not None
    assert len(ours) == 2 and all(isinstance(error, type(theirs)) for error in ours), ours


def test_a_copy_that_is_asked_for_is_no_view():
    def f(x: Any) -> Any:
        y = x * 1
        np.reshape(y, (2, 2), copy=True)[0] = 0
        y.reshape(2, 2, copy=True)[1] = 0
        return np.sum(y)

    assert cr.value_and_grad(f)(np.ones(4))[0] == 4
    compiled = cr.compile(f)
    assert [compiled(np.ones(4)) for _ in range(3)] == [4, 4, 4]


OUTS = """np.sum(x, axis=0, out=o) | np.mean(x, axis=0, out=o) | np.max(x, 0, out=o) | np.std(x, 0, out=o) | np.dot(x, v, out=o)
np.add.reduce(x, 0, out=o) | np.matmul(x, m, out=o) | np.take(v, [0, 1], out=o)
np.concatenate([v, v], out=o) | np.stack([v, v], out=o) | np.negative(x, out=o) | np.add(v, v, out=o) | np.add(v, 1, out=o, where=v > 2)
np.clip(v, 1, 2, out=o) | x.sum(0, out=o) | np.median(x, 0, out=o) | np.add.outer(v, v, out=o) | np.exp(x[:1], out=o)"""


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (2, 2, 3), (3, 3), (6,)])
@pytest.mark.parametrize("case", _split(OUTS))
def test_an_output_of_another_shape_is_refused_where_numpy_refuses_it(case, shape):
    results = []
    for array in (np.array, cr.Array):
        arrays = {
            name: array(np.arange(1.0, 1 + np.prod(n)).reshape(n))
            for name, n in {"x": (2, 3), "v": (3,), "m": (3, 3)}.items()
        }
        arrays["o"] = array(np.zeros(shape))
        error = _wrong(case, arrays)
        results.append((np.asarray(arrays["o"]).tolist(), isinstance(error, ValueError)))
    assert results[0] == results[1]
