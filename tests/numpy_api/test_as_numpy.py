"""NumPy's functions on tensors: NumPy's values and dtypes; gradients compared with finite differences."""

# ruff: noqa: SIM905 -- lists of names read better as words

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr

UNARY = """
exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh sqrt cbrt square
absolute fabs sign floor ceil trunc rint negative positive reciprocal conjugate deg2rad rad2deg degrees radians
isnan isinf isfinite signbit logical_not sinc nan_to_num real imag angle round fix modf
""".split()

BINARY = """
add subtract multiply divide true_divide power maximum minimum fmax fmin arctan2 hypot copysign logaddexp logaddexp2
remainder mod fmod floor_divide heaviside nextafter equal not_equal less less_equal greater greater_equal
logical_and logical_or logical_xor float_power divmod
""".split()

REDUCTIONS = """
sum prod mean std var max min amax amin ptp any all argmax argmin cumsum cumprod count_nonzero median nansum nanmean
nanmax nanmin average sort argsort nanvar nanstd nanprod
""".split()

# x, y, z: (3, 4); v: (4,); s: (3, 3); all float64. f: float32, i: int64, c: complex128, b: bool.
# A name that ends in 0 is the plain array.
EXPRESSIONS = """
np.var(z,ddof=1) | np.std(z,axis=0,ddof=1) | np.average(z,weights=x0) | np.average(z,axis=1,weights=v0)
np.sum(x,initial=2.) | np.prod(x,axis=0,initial=2.) | np.add.reduce(x) | np.add.reduce(x,axis=1)
np.add.reduce(x,axis=None) | np.multiply.reduce(x,axis=(0,1)) | np.maximum.reduce(x,axis=1) | np.minimum.reduce(x)
np.logaddexp.reduce(x) | np.logical_or.reduce(x>.5) | np.add.accumulate(x) | np.add.accumulate(x,axis=1)
np.multiply.accumulate(x,axis=1) | np.add.outer(v,v) | np.multiply.outer(v,v) | np.subtract.outer(x,v)
np.maximum.outer(v,v) | np.power.outer(v,v) | np.concatenate([x,y]) | np.concatenate([x,y],axis=1)
np.concatenate([x,y],axis=None) | np.concatenate([x,x0]) | np.concatenate([x0,x]) | np.concatenate([v,[1.,2.]])
np.stack([x,y]) | np.stack([x,y],axis=-1) | np.stack([x,x0],1) | np.vstack([x,v]) | np.hstack([x,y])
np.hstack([v,v]) | np.dstack([x,y]) | np.column_stack([v,v]) | np.append(x,y) | np.append(x,y,axis=0)
np.block([[x,y],[y,x]]) | np.split(x,3) | np.split(x,[1],axis=0) | np.split(x,2,axis=1) | np.array_split(x,2)
np.array_split(v,3) | np.hsplit(x,2) | np.vsplit(x,3) | np.tile(x,2) | np.tile(v,(2,1)) | np.repeat(x,2)
np.repeat(x,2,axis=1) | np.repeat(x,[1,2,1],axis=0) | np.pad(x,1) | np.pad(x,((1,0),(0,2)))
np.pad(v,2,constant_values=3.) | np.pad(v,2,mode='edge') | np.pad(v,2,mode='reflect') | np.pad(v,1,mode='wrap')
np.pad(v,1,mode='symmetric') | np.pad(v,(1,2),constant_values=(1.,2.)) | np.reshape(x,(4,3)) | np.reshape(x,-1)
np.reshape(x,(2,-1)) | np.ravel(x) | np.transpose(x) | np.transpose(x,(1,0)) | np.swapaxes(x,0,1)
np.moveaxis(x,0,-1) | np.rollaxis(x,1) | np.expand_dims(x,0) | np.expand_dims(x,(0,2)) | np.squeeze(x[None])
np.squeeze(x[None],0) | np.broadcast_to(v,(3,4)) | np.broadcast_arrays(x,v) | np.flip(x)
np.flip(x,0) | np.fliplr(x) | np.flipud(x) | np.roll(x,1) | np.roll(x,1,axis=1) | np.roll(x,(1,2),axis=(0,1))
np.rot90(x) | np.rot90(x,2) | np.atleast_1d(x[0,0]) | np.atleast_2d(v) | np.atleast_3d(x) | np.tril(x)
np.triu(x,1) | np.diag(x) | np.diag(v) | np.diag(v,1) | np.diagonal(x) | np.diagonal(x,1) | np.trace(s)
np.trace(x,1) | np.diagflat(v) | np.meshgrid(v,v) | np.meshgrid(v,v,indexing='ij') | np.take(x,[0,2])
np.take(x,[0,2],axis=1) | np.take(v,[[0,1],[1,3]]) | np.take_along_axis(x,i0%3,axis=0)
np.take_along_axis(x,i0%4,axis=1) | np.where(x0>.5,x,y) | np.where(x>.5,x,0) | np.where(x>.5,1.,0.) | np.where(x>.5)
np.clip(x,.3,.6) | np.clip(x,None,.6) | np.clip(x,v0,None) | np.clip(x,min=.3) | np.clip(i,1,3)
np.select([x0>.5,x0>.3],[x,y]) | np.compress([True,False,True],x,axis=0) | np.extract(x0>.5,x) | np.nonzero(x>.5)
np.argwhere(x>.5) | np.flatnonzero(x>.5) | np.searchsorted(np.sort(v),.5) | np.diff(x) | np.diff(x,axis=0)
np.diff(x,n=2) | np.diff(v,prepend=0.) | np.cross(s[0],s[1]) | np.convolve(v,v) | np.correlate(v,v)
np.polyval([1.,2.],v) | np.polyval(v,2.) | np.digitize(x,[.3,.6]) | np.dot(x,y.T) | np.dot(v,v) | np.dot(x,v)
np.dot(x,2.) | np.matmul(x,y.T) | x@y.T | x0@y.T | x@y0.T | np.vdot(v,v) | np.inner(v,v) | np.inner(x,y)
np.outer(v,v) | np.outer(x,v) | np.kron(v,v) | np.tensordot(x,y) | np.tensordot(x,y,axes=([1],[1]))
np.tensordot(x,y.T,1) | np.einsum('ij,kj->ik',x,y) | np.einsum('ij->',x) | np.einsum('ii',s) | np.einsum('ij,j',x,v)
x0*y | x0+y | x0-y | x0/y | x0**y | y**x0 | 2.*x | np.float64(2)*x | x*np.float64(2) | np.float32(2)*x | 1/x | 1-x
x0>y | x>y0 | x==x0 | -x | abs(x) | x[0] | x[:,1] | x[x>.5] | x[[0,1]] | x[None] | x.T | x.shape | np.shape(x)
np.ndim(x) | np.size(x) | np.size(x,0) | np.zeros_like(x) | np.ones_like(x) | np.full_like(x,2.)
np.empty_like(x).shape | np.zeros_like(x,dtype=int) | np.copy(x) | np.isclose(x,x) | np.allclose(x,x)
np.array_equal(x,x) | np.iscomplexobj(x) | np.isrealobj(x) | np.isscalar(x) | np.may_share_memory(x,x)
np.float32(1)*x | np.exp(i) | np.sqrt(i) | np.sin(f) | f*x | np.add(f,x) | np.multiply(f,2.) | np.multiply(f,x0)
x0*f | np.exp(x,dtype=np.float32) | np.add(x,y,dtype=np.float32) | np.exp(c) | np.abs(c) | np.conj(c) | np.real(c)
np.median(np.rollaxis(np.stack([x,y]),-1),-1,keepdims=True) | np.median(np.stack([x,y]).T,axis=-1,keepdims=True)
np.angle(v*-0.) | np.angle(f*-0.,True) | np.angle(-x)
np.imag(c) | np.angle(c) | np.sum(c) | c*c | np.maximum(x,y) | np.mean(i,axis=0) | np.var(i) | np.round(x,2)
np.around(x,1) | np.round(i,1) | np.arange(4)*v | np.isneginf(x) | np.nan_to_num(x) | np.percentile(x,30)
np.quantile(x,.3) | np.quantile(x,.3,axis=0) | np.median(x,axis=0) | np.delete(v,1)
np.quantile(x,.3,axis=0,method='hazen') | np.percentile(x,[30,70],method='lower') | np.pad(x,{0:(1,2)},mode='edge')
np.pad(x,((1,2),(0,3)),mode='mean',stat_length=2) | np.pad(x,2,mode='maximum')
np.pad(x,((1,0),(0,2)),mode='minimum',stat_length=((1,3),))
np.pad(x,(1,2),mode='linear_ramp',end_values=(1,3)) | np.pad(i,2,mode='mean') | np.pad(i,2,mode='linear_ramp')
np.pad(v,{-1:1},mode='mean')
"""


def _split(text: str) -> list[str]:
    return [case.strip() for line in text.strip().splitlines() for case in line.split(" | ")]


def _cases() -> list[str]:
    cases = [f"np.{name}(x)" for name in UNARY]
    for name in BINARY:
        cases += [f"np.{name}(x, y)", f"np.{name}(x, 2)", f"np.{name}(2.0, y)", f"np.{name}(x, v)"]
    for name in REDUCTIONS:
        scans = name in ("cumsum", "cumprod", "sort", "argsort")
        cases += [f"np.{name}(z)", f"np.{name}(z, axis=0)", f"np.{name}(z, axis=-1)"]
        if not scans:
            cases.append(f"np.{name}(z, axis=1, keepdims=True)")
        if not scans and not name.startswith("arg"):
            cases.append(f"np.{name}(z, axis=(0, 1))")
        if name in ("sum", "prod", "mean", "std", "var", "cumsum", "cumprod"):
            cases += [f"np.{name}(i)", f"np.{name}(b)"]
            cases += [f"np.{name}(x, dtype=np.float32)", f"np.{name}(i, dtype=np.float64)"]
    return list(dict.fromkeys([*cases, *_split(EXPRESSIONS)]))


def _arrays() -> dict[str, np.ndarray]:
    wave = np.arange(12.0)
    x = 0.2 + 0.7 * np.abs(np.sin(1.1 * wave + 0.3)).reshape(3, 4)
    return {
        "x": x,
        "y": 0.25 + 0.6 * np.abs(np.cos(1.7 * wave)).reshape(3, 4),
        "v": 0.3 + 0.5 * np.abs(np.sin(wave[:4] + 1)),
        "z": np.sin(2.1 * wave + 0.5).reshape(3, 4),
        "s": 0.3 + 0.5 * np.abs(np.cos(1.3 * wave[:9])).reshape(3, 3),
        "i": (np.arange(12) * 5 % 7).reshape(3, 4),
        "c": x + 1j * np.cos(wave).reshape(3, 4),
        "b": x > 0.5,
        "f": x.astype(np.float32),
    }


def _evaluate(case: str, arrays: dict[str, np.ndarray], wrap: Any) -> Any:
    scope = {**{k: wrap(a.copy()) for k, a in arrays.items()}, **{f"{k}0": a for k, a in _arrays().items()}}
    return eval(case, {"np": np, **scope}), scope


def _flat(result: Any) -> list[Any]:
    return [p for item in result for p in _flat(item)] if isinstance(result, (list, tuple)) else [result]


def _tracked(array: np.ndarray) -> cr.Tensor:
    return cr.from_numpy(array).requires_grad_(array.dtype.kind in "fc")


@pytest.mark.parametrize("case", _cases())
def test_as_numpy(case: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        _compare(case)


def _compare(case: str) -> None:
    expected = _flat(_evaluate(case, _arrays(), lambda a: a)[0])
    for wrap in (cr.from_numpy, _tracked):
        result, scope = _evaluate(case, _arrays(), wrap)
        got = _flat(result)
        assert len(got) == len(expected)
        for want, have in zip(expected, got):
            plain = have.detach().numpy() if isinstance(have, cr.Tensor) else np.asarray(have)
            if isinstance(want, (np.ndarray, np.generic)):
                assert plain.dtype == want.dtype
            assert plain.shape == np.shape(want)
            tolerance = 1e-5 if plain.dtype.itemsize <= 4 else 1e-10
            np.testing.assert_allclose(plain, want, rtol=tolerance, atol=tolerance)
    if not any(np.asarray(w).dtype == np.float32 for w in expected) and "f" not in scope_names(case):
        _differentiate(case, got, scope)


def scope_names(case: str) -> set[str]:
    """Return the one-letter inputs that a case uses."""
    return set("".join(c if c.isalnum() or c in "_." else " " for c in case).split())


def _differentiate(case: str, got: list[Any], scope: dict[str, Any]) -> None:
    picks = [k for k, t in enumerate(got) if isinstance(t, cr.Tensor) and t.requires_grad and t.dtype == cr.float64]
    names = [k for k in "xyvzs" if k in scope_names(case)]
    if not picks or not names:
        return
    weights = [np.cos(1.0 + np.arange(got[k].numel())).reshape(got[k].shape) for k in picks]
    grads = cr.autograd.grad(
        [got[k] for k in picks],
        [scope[n] for n in names],
        [cr.from_numpy(np.asarray(w)) for w in weights],
        allow_unused=True,
    )

    def total(arrays: dict[str, np.ndarray]) -> float:
        parts = _flat(_evaluate(case, arrays, lambda a: a)[0])
        return float(sum(np.sum(np.asarray(parts[k]) * w) for k, w in zip(picks, weights)))

    for name, grad in zip(names, grads):
        arrays = _arrays()
        direction = np.sin(3.0 + np.arange(arrays[name].size)).reshape(arrays[name].shape)
        step = 1e-6
        up = total({**arrays, name: arrays[name] + step * direction})
        down = total({**arrays, name: arrays[name] - step * direction})
        found = 0.0 if grad is None else float((grad.detach().numpy() * direction).sum())
        assert found == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-5)


BLOCK = np.sin(np.arange(24.0) * 1.7).reshape(2, 3, 4)
LAYOUTS = [BLOCK, BLOCK.T, np.rollaxis(BLOCK, -1), BLOCK.swapaxes(0, 1), BLOCK[::-1, :, ::-1], np.asfortranarray(BLOCK)]


@pytest.mark.parametrize(
    "name",
    "sum mean max min prod std var median ptp all any argmax argmin nansum nanmean nanmedian nanstd nanmax count_nonzero".split(),
)
@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2, (0, 1), (0, -1), (-1, -2)], ids=str)
def test_reductions_along_any_axis_however_the_array_lies(name: str, axis: Any) -> None:
    if name.startswith("arg") and isinstance(axis, tuple):
        return
    reduce = getattr(np, name)
    for x in LAYOUTS:
        for keepdims in (False, True):
            want, seen = reduce(x, axis=axis, keepdims=keepdims), []
            cr.grad(lambda a: (seen.append(reduce(a, axis=axis, keepdims=keepdims)), np.sum(a))[1])(x)  # noqa: B023
            have = np.asarray(seen[0].detach() if isinstance(seen[0], cr.Array) else seen[0])
            assert have.dtype == np.asarray(want).dtype and have.shape == np.shape(want)
            np.testing.assert_allclose(have, want, rtol=1e-14, atol=1e-15)
