"""The cases for comparisons of operations: expressions in ``m`` (the library) and the inputs of ``inputs``.

``record.py`` evaluates them with PyTorch and writes the results to ``recorded.json``; the tests compare.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def arrays() -> dict[str, np.ndarray]:
    """Return the inputs, in float64 (``i`` in int64), without a random generator."""
    wave = np.arange(24.0)
    return {
        "x": np.sin(1.7 * wave[:12] + 0.4).reshape(3, 4) * 1.9,
        "y": np.cos(2.3 * wave[:12] + 0.1).reshape(3, 4) * 1.3,
        "p": 0.15 + 0.7 * np.abs(np.sin(1.1 * wave[:12] + 0.3)).reshape(3, 4),
        "q": 0.55 + 0.4 * np.cos(0.9 * wave[:12]).reshape(3, 4),
        "i": (np.arange(12) * 7 % 11 - 4).reshape(3, 4),
        "a": np.sin(0.7 * wave[:9] + 1).reshape(3, 3),
        "b": np.cos(1.9 * wave[:9]).reshape(3, 3),
        "c": np.sin(2.9 * wave[:9]).reshape(3, 3),
        "A": _irregular(2, 4, 4) + 3 * np.eye(4),
        "W": _irregular(2, 3, 5) + 3 * np.eye(3, 5),
        "V": _irregular(60),
        "K": _irregular(100)[60:],
    }


def _irregular(*shape: int) -> np.ndarray:
    """Return numbers whose matrices have full rank (those of a sine at equal steps have rank 2)."""
    return 1.5 * np.sin(np.arange(np.prod(shape)) ** 1.5 * 1.37 + 0.3).reshape(shape)


def split(text: str) -> list[str]:
    """Return the cases of a block, which are separated by bars."""
    return [case.strip() for line in text.strip().splitlines() for case in line.split(" | ")]


def run(m: Any, case: str, inputs: dict[str, Any]) -> Any:
    """Evaluate an expression, or run a program (with ``;``), whose result is ``z``, initially a clone of ``x``.

    Text after ``!!`` is the error that it raises. ``at(x, [1.0, 2.0])`` is a tensor of these elements whose
    gradient is that of the first elements of x; ``of(x, 2, 3)`` are those elements in this shape; ``t(1, 2)`` is
    ``m.tensor([1, 2])``, and ``u8(1, 2)`` the same in uint8.
    """

    def at(tensor: Any, values: Any) -> Any:
        made = m.tensor(values, dtype=tensor.dtype)
        part = tensor.flatten()[: made.numel()].reshape(made.shape)
        return part - part.detach() + made

    def of(tensor: Any, *shape: int) -> Any:
        return tensor.flatten()[: int(np.prod(shape))].reshape(shape)

    scope = {"m": m, "L": m.linalg, "F": m.nn.functional, "at": at, "of": of, "t": lambda *values: m.tensor(values)}
    scope |= {"u8": lambda *values: m.tensor(values, dtype=m.uint8), "nan": float("nan"), "inf": float("inf"), **inputs}
    case = case.partition(" !! ")[0]
    if ";" not in case and case not in PROGRAMS:
        return eval(case, scope)
    scope["z"] = inputs["x"].clone()
    exec(case.replace(";", "\n"), scope)
    return scope["z"]


ELEMENTWISE = """
m.exp(p) | m.exp2(p) | m.expm1(p) | m.log(p) | m.log2(p) | m.log10(p) | m.log1p(p) | m.sigmoid(p) | m.sin(p)
m.cos(p) | m.tan(p) | m.asin(p) | m.acos(p) | m.atan(p) | m.sinh(p) | m.cosh(p) | m.tanh(p) | m.asinh(p)
m.atanh(p) | m.sinc(p) | m.deg2rad(p) | m.rad2deg(p) | m.neg(p) | m.abs(p) | m.square(p) | m.sqrt(p) | m.rsqrt(p)
m.reciprocal(p) | m.relu(p) | m.sign(p) | m.floor(p) | m.ceil(p) | m.trunc(p) | m.round(p) | m.frac(p) | m.logit(p)
m.isnan(p) | m.isfinite(p) | m.signbit(p) | m.logical_not(p) | m.nan_to_num(p) | m.exp(i) | m.sqrt(i) | m.neg(i)
m.abs(i) | m.sign(i) | m.floor(i) | m.round(i) | m.relu(i) | m.square(i) | m.reciprocal(i) | m.sin(i) | m.add(p, q)
m.sub(p, q) | m.mul(p, q) | m.div(p, q) | m.pow(p, q) | m.maximum(p, q) | m.minimum(p, q) | m.fmax(p, q)
m.fmin(p, q) | m.atan2(p, q) | m.hypot(p, q) | m.copysign(p, q) | m.logaddexp(p, q) | m.logaddexp2(p, q)
m.remainder(p, q) | m.fmod(p, q) | m.floor_divide(p, q) | m.heaviside(p, q) | m.eq(p, q) | m.ne(p, q) | m.lt(p, q)
m.le(p, q) | m.gt(p, q) | m.ge(p, q) | m.logical_and(p, q) | m.logical_or(p, q) | m.logical_xor(p, q)
m.xlogy(p, q) | m.float_power(p, q) | i + 2 | 2.5 + p | i + p | i - 2 | 2.5 - p | i - p | i * 2 | 2.5 * p | i * p
i / 2 | 2.5 / p | i / p | i // 2 | 2.5 // p | i // p | i % 2 | 2.5 % p | i % p | i ** 2 | 2.5 ** p | i ** p | i == 2
2.5 == p | i == p | i < 2 | 2.5 < p | i < p | i >= 2 | 2.5 >= p | i >= p | x + y[0] | x[:, :1] * y | x - i | i / i
i & 3 | i ^ 1 | ~i | i << 1 | ~(x > 0) | (x > 0) & (y > 0) | -x | +x | x // 2 | x % 2 | x ** 2 | 2 ** p | 1 - x
x / 2 | x > 0 | x == x | i * 2.5 | i * m.tensor(2.5) | x * m.tensor(2) | m.tensor(2.0) * i | i + True | x + 1j
(x > 0) + 1 | (x > 0) * x | (x > 0) - (y > 0) | -(x > 0) | ~x | i // 0 | i % 0 | x // 0 | x / 0 | m.floor(x > 0)
m.maximum(x, 1j) | x + 's' | x + None | x + [1.0] | x * y[:, :2] | x < y[:2] | m.exp('a') | m.exp([1.0]) | m.add(x)
x.add(y, alpha=2) | m.round(x, decimals=1) | m.clamp(x) | x.clamp(0, 'a') | m.where(x > 0, x, y)
m.where(x > 0, x, 0.0) | m.where(x, x, x) | m.lerp(x, y, 0.25) | m.addcmul(x, y, y, value=2)
m.div(i, 2, rounding_mode='trunc') | m.div(i, 3, rounding_mode='floor') | m.div(x, 2, rounding_mode='up')
m.polar(p, q) | m.complex(p, q).abs() | m.isclose(x, x) | m.allclose(x, y) | m.equal(x, x)
"""

REDUCTIONS = """
x.max(0).values | x.max(0)[1] | x.max(dim=1,keepdim=True).indices | x.sum(0,True) | x.sum(-1,keepdim=True)
x.sum((0,1)) | x.sum(0,1) | x.mean(0,dtype=m.float64) | x.all(0) | x.any((0,1)) | x.any(dim=(0,)) | x.norm(dim=1)
x.norm(2,1) | x.norm(2,1,True) | x.std(0) | x.var(1,keepdim=True) | x.argmax() | x.argmax(1) | x.argmax(1,True)
x.argmin(dim=0,keepdim=True) | x.logsumexp(0) | x.logsumexp((0,1)) | x.amax((0,1)) | x.amax() | m.sum(x,0)
m.sum(input=x,dim=0) | x.cumsum(0).sum() | x.prod(0) | m.argmax(x,keepdim=True) | x.sum(axis=(0,1))
m.max(input=x,dim=0)[0] | m.sum(x,(0,),True,dtype=m.float64) | x.median() | x.median(0)[0] | m.aminmax(x).min
x.sum() | x.sum(0) | x.sum(-1, keepdim=True) | m.sum(x, axis=1) | x.sum((0, 1)) | x.mean() | x.mean(0)
x.mean(-1, keepdim=True) | m.mean(x, axis=1) | x.mean((0, 1)) | x.prod() | x.prod(-1, keepdim=True)
m.prod(x, axis=1) | x.amax(0) | x.amax(-1, keepdim=True) | m.amax(x, axis=1) | x.amax((0, 1)) | x.amin() | x.amin(0)
x.amin(-1, keepdim=True) | m.amin(x, axis=1) | x.amin((0, 1)) | x.var() | x.var(0) | x.var(-1, keepdim=True)
m.var(x, axis=1) | x.var((0, 1)) | x.std() | x.std(-1, keepdim=True) | m.std(x, axis=1) | x.std((0, 1)) | i.sum()
i.sum(0) | i.prod() | i.prod(0) | i.max() | i.max(0) | i.min() | i.min(0) | x.var(0, unbiased=False)
x.var(correction=0) | x.std(1, False) | m.var_mean(x, 1) | m.std_mean(x) | x.max() | x.min() | x.max(0) | x.min(1)
x.max(1, keepdim=True) | m.max(x, y) | m.min(x, y) | x.median(1) | x.kthvalue(2) | x.mode() | x.sort()
x.sort(0, descending=True) | x.argsort(1) | x.topk(2) | x.topk(2, 0, largest=False) | x.argmin(1)
x.argmax(0, keepdim=True) | x.logsumexp((0, 1)) | x.softmax(1) | x.log_softmax(0) | x.norm() | x.norm(1)
x.norm(3, 1) | x.norm(float('inf')) | m.norm(x, dim=0) | m.dist(x, y) | x.cumsum(1) | x.cumprod(0)
x.logcumsumexp(1) | x.cummax(1) | x.cummin(0) | i.cumsum(0) | (x > 0).any() | (x > 0).all(1) | x.any() | i.all()
m.count_nonzero(i) | m.count_nonzero(i, 0) | x.quantile(0.3) | x.quantile(0.5, 1)
m.quantile(x, m.tensor([0.1, 0.9], dtype=m.float64), dim=0) | m.nansum(x) | m.nanmean(x) | m.aminmax(x) | x.sum(5)
x.sum((0, 0)) | i.mean() | i.var() | i.norm() | i.softmax(0) | x.max(7) | x.topk(9) | x.kthvalue(0) | x[:0].max()
x[:0].max(0) | x[:0].amax(0) | x[:0].argmax() | x[:0].sum() | x[:0].mean(0) | x[:0].prod(0) | x.cumsum()
x.cumsum(3) | m.sum([1.0]) | m.max(2.0) | x.sum(0, dtype=m.float32) | i.sum(dtype=m.float32)
"""

READING = """
x.T | x.t() | x.mT | x.H | x.mH | x.adjoint() | x[0] | x[1:] | x[:, 1] | x[...,None] | x[None] | x[-1] | x[::2]
x[:, ::2] | x[1,2] | x[...] | x[:] | x[()] | x[0:0] | x[5:] | x[-2:] | x[:-1] | x[True] | x[False] | x[None,:,None]
x[...,0] | x[0,...] | x[7] | x[-5] | x[0,0,0] | x[0,9] | x[1.5] | x[::-1] | x[::0] | x[m.tensor(1)]
x[m.tensor([0,2,0])] | x[[0,2]] | x[[0,-1]] | x[m.tensor([0,1]),m.tensor([1,2])] | x[:,m.tensor([0,0,3])]
x[m.tensor([[0],[1]]),m.tensor([0,1])] | x[x>0] | x[x[:,0]>0] | x[:,x[0]>0] | x[m.tensor([True,False,True])]
x[m.tensor([True,False])] | x[[True,False,True]] | x[[True,False]] | x[m.tensor([0.5])] | x[m.tensor([9])]
x[m.tensor([0,1]),0] | x[0,m.tensor([0,1])] | x[m.tensor([0,1]),1:] | x[1:,m.tensor([0,1])]
x[None,m.tensor([0,1])] | x[m.tensor([0,1]),None] | x[m.tensor([0,1]),...,None] | x[range(2)]
x[m.tensor(1,dtype=m.uint8)] | x[m.tensor([1,0,1],dtype=m.uint8)] | x[(0,1)] | x[[0,1],[1,2]] | x[[[0,1],[1,2]]]
x[m.tensor([],dtype=m.int64)] | x[[]] | x[m.tensor(True)] | x[m.tensor([0,1]),m.tensor([0,1,2])] | x[0][1]
x[x.argmax()] if x.numel()<4 else x[0] | x[:,None,1:3] | x[m.tensor([0,1]),:][:,m.tensor([1,1])]
x[slice(None,None,2)] | x[slice(0,2),] | x[m.tensor([-1,-2])] | x[m.tensor([0,1],dtype=m.int32)]
"""

SHAPING = """
x.view(-1) | x.view(4,3) | x.view(2,6) | x.view((12,)) | x.view(5) | x.view(-1,-1) | x.view(2,-1) | x.t().view(-1)
x.reshape(-1) | x.reshape(4,3) | x.reshape((2,6)) | x.reshape([2,-1]) | x.reshape(5) | x.reshape(-1,-1)
x.reshape(-2) | x.t().reshape(-1) | x.t().reshape(12) | x.reshape(3,4) | x.reshape(1.5) | x.reshape(m.Size([4,3]))
x.reshape(shape=(4,3)) | m.reshape(x,(4,3)) | m.reshape(x,4,3) | x.flatten() | x.flatten(1) | x.flatten(0,1)
x.flatten(1,0) | x.flatten(3) | x.ravel() | x.t().ravel() | x.t().flatten() | x.unflatten(1,(2,2))
x.unflatten(1,(-1,2)) | x.unflatten(1,(3,2)) | x.unflatten(-1,[2,2]) | x.permute(1,0) | x.permute((1,0))
x.permute([1,0]) | x.permute(-1,0) | x.permute(0,0) | x.permute(0) | x.permute(0,2) | m.permute(x,(1,0))
x.transpose(0,1) | x.transpose(-1,-2) | x.transpose(0,2) | x.swapaxes(0,1) | x.swapdims(0,1) | x.movedim(0,1)
x.movedim((0,1),(1,0)) | x.movedim(0,(0,1)) | x.moveaxis(0,-1) | x[None].movedim(0,2) | x[None].squeeze()
x[None].squeeze(0) | x[None].squeeze(1) | x[None].squeeze(-1) | x[None].squeeze((0,1)) | x[None].squeeze(5)
x.squeeze() | x.squeeze(0) | x.unsqueeze(0) | x.unsqueeze(-1) | x.unsqueeze(2) | x.unsqueeze(3) | x.unsqueeze(-4)
x.expand(3,4) | x.expand(2,3,4) | x.expand(-1,4) | x.expand(5,4) | x.expand(4) | x.expand(-1,3,4)
x[:1].expand(3,-1) | x[:1].expand(3,4).sum(0) | x[:, :1].expand(3,4) | x.expand((2,3,4))
x.expand_as(m.zeros(2,3,4)) | x.broadcast_to((2,3,4)) | m.broadcast_to(x,(2,3,4))
m.broadcast_tensors(x,m.zeros(4)) | x.repeat(2,1) | x.repeat(2) | x.repeat(2,1,2) | x.repeat((2,2)) | x.repeat(0,1)
x.repeat(-1,1) | x.tile(2) | x.tile((2,1,1)) | x.tile(2,2) | m.tile(x,(2,)) | x.repeat_interleave(2)
x.repeat_interleave(2,0) | x.repeat_interleave(2,dim=1) | x.repeat_interleave(m.tensor([1,0,2]),0)
x.repeat_interleave(m.tensor([1,0]),0) | m.repeat_interleave(x,2,dim=0) | x.flip(0) | x.flip(0,1) | x.flip((0,1))
x.flip(-1) | x.flip(0,0) | x.flip(2) | m.flip(x,(0,)) | m.flip(x,dims=[0]) | x.fliplr() | x.flipud() | x.rot90()
x.rot90(2) | x.rot90(-1,(0,1)) | m.rot90(x,1,[1,0]) | x.roll(1) | x.roll(1,0) | x.roll((1,2),(0,1)) | x.roll(1,5)
x.roll((1,2),0) | m.roll(x,-1,1) | m.roll(x,shifts=1,dims=0)
"""

JOINING = """
m.cat([x,x]) | m.cat((x,x),1) | m.cat([x,x],dim=-1) | m.cat([x,x],2) | m.cat([x,x[:, :2]],1) | m.cat([x,x[:, :2]],0)
m.cat([x,x[0]]) | m.cat([]) | m.cat(x) | m.cat([x,m.tensor([])]) | m.cat([x,x.double()]) | m.cat([x,x.long()])
m.cat([x[0,0],x[0,0]]) | m.cat([x,2]) | m.cat([x,x],axis=1) | m.concat([x,x]) | m.concatenate([x,x],axis=0)
m.cat(tensors=[x,x],dim=0) | m.stack([x,x]) | m.stack([x,x],1) | m.stack([x,x],-1) | m.stack([x,x],3)
m.stack([x,x[0]]) | m.stack([]) | m.stack([x[0,0],x[1,1]]) | m.stack(x) | m.stack([x,1.]) | m.stack((x,x),dim=2)
m.stack([x,x.double()]) | m.hstack([x,x]) | m.vstack([x,x]) | m.dstack([x,x]) | m.column_stack([x,x[:,0]])
m.hstack([x[0],x[0]]) | m.vstack([x[0],x[0]]) | m.dstack([x[0],x[0]]) | m.row_stack([x,x]) | m.atleast_1d(x[0,0])
m.atleast_2d(x[0]) | m.atleast_3d(x[0]) | m.atleast_3d(x) | m.atleast_2d(x[0],x[0,0]) | x.narrow(0,1,2)
x.narrow(1,-2,2) | x.narrow(0,2,2) | x.narrow(2,0,1) | m.narrow(x,0,0,1) | x.select(0,1) | x.select(1,-1)
x.select(0,5) | x.select(2,0) | m.select(x,0,0) | x.unbind() | x.unbind(1) | m.unbind(x,-1) | x.unbind(2)
x.split(2) | x.split(2,1) | x.split([1,2]) | x.split([1,1]) | x.split([1,3],1) | x.split(0) | x.split(-1)
m.split(x,1,dim=1) | x.split(5) | m.split(x,[2,2],-1) | x.chunk(2) | x.chunk(3,1) | x.chunk(5) | x.chunk(0)
m.chunk(x,2,dim=1) | x.tensor_split(2) | x.tensor_split((1,2)) | x.tensor_split(3,1) | x.tensor_split(0)
x.hsplit(2) | x.vsplit(3) | m.tensor_split(x,m.tensor([1,2]))
"""

MATRICES = """
x.tril() | x.triu() | x.tril(1) | x.triu(-1) | x[0].tril() | m.tril(x,diagonal=1) | x.diagonal() | x.diagonal(1)
x.diagonal(-1) | x.diagonal(0,1,0) | x.diagonal(0,0,0) | x[0].diagonal() | x[None].diagonal(dim1=1,dim2=2)
x.diag() | x.diag(1) | x[0].diag() | x[0].diag(-1) | x[0,0].diag() | m.diag(x[0],1) | x.diag_embed()
x[0].diag_embed(1) | x.diag_embed(0,0,1) | m.diagflat(x) | m.diagflat(x[0],1) | x.diff() | x.diff(n=2)
x.diff(dim=0) | m.diff(x,prepend=x[:, :1]) | x.clone() | x.contiguous() | x.t().contiguous() | x.unfold(1,2,1)
x.unfold(0,2,1) | x.unfold(1,2,2) | x.unfold(1,5,1) | x.unfold(-1,3,1) | m.meshgrid(x[0],x[1],indexing="ij")
m.meshgrid(x[0],x[1],indexing="xy") | m.meshgrid([x[0],x[:,0]],indexing="ij") | m.combinations(x[0])
m.combinations(x[0],3) | m.block_diag(x,x[0],x[:1]) | m.vander(x[0]) | m.vander(x[0],3,True)
x.view_as(m.zeros(4,3)) | x.reshape_as(m.zeros(4,3)) | x.numel() | m.numel(x) | x.size() | x.size(1) | x.size(-1)
x.size(3) | x.shape | x.ndim | x.dim() | x.stride() | x.t().stride() | x.is_contiguous() | x.t().is_contiguous()
len(x) | x.nelement() | x.element_size() | x.nbytes
"""

GATHERING = """
x.gather(0,m.tensor([[0,1,2,0]])) | x.gather(1,m.tensor([[0],[1],[3]])) | x.gather(1,m.tensor([[4]]))
x.gather(1,m.tensor([0])) | x.gather(1,m.tensor([[-1]])) | x.gather(2,m.tensor([[0]]))
x.gather(1,m.tensor([[0.]])) | x.gather(0,m.tensor([[0,1,2,0,1]]))
m.gather(x,dim=1,index=m.tensor([[0,0,1],[2,2,2]])) | x.take(m.tensor([0,5,-1])) | x.take(m.tensor([99]))
m.take_along_dim(x,m.tensor([[0],[1],[2]]),1) | m.take_along_dim(x,m.tensor([[0,1,0,1]]),0)
m.take_along_dim(x,m.tensor([0,5])) | m.take_along_dim(x,x.argsort(1),dim=1) | m.take_along_dim(x,m.tensor([0]),1)
x.index_select(0,m.tensor([0,2,0])) | x.index_select(1,m.tensor([3])) | x.index_select(0,m.tensor([5]))
x.index_select(0,m.tensor([-1])) | x.index_select(0,m.tensor([[0]])) | x.index_select(0,m.tensor([0.]))
x.index_select(2,m.tensor([0])) | m.index_select(x,0,m.tensor(1)) | x.masked_fill(x>0,5.)
x.masked_fill(x>0,m.tensor(5.)) | x.masked_fill(x[0]>0,0) | x.masked_fill(x,0.)
x.masked_fill(x>0,m.tensor([1.,2.])) | x.masked_fill(m.ones(5,dtype=m.bool),0.) | x.masked_select(x>0)
x.masked_select(x[0]>0) | x.masked_select(x) | x.masked_scatter(x>0,m.arange(12.))
x.masked_scatter(x>0,m.arange(1.)) | x.nonzero() | x.nonzero(as_tuple=True) | m.nonzero(x>0) | m.argwhere(x>0)
m.where(x>0,x,-x) | m.where(x>0,x,0.) | m.where(x>0,0.,x) | m.where(x>0,1.,0.) | m.where(x>0,1,0) | m.where(x>0)
m.where(x,x,x) | m.where(x>0,x,m.zeros(4)) | m.where(x>0,x,m.zeros(3)) | m.where(x[0]>0,x,x)
m.where(x>0,x.double(),x) | m.where(x>0,m.tensor(1),x) | x.where(x>0,m.zeros(())) | x.where(x>0,0.)
m.where(x>0,2,x) | m.where(x.long()>0,x.long(),1.5) | m.scatter(x,1,m.tensor([[0],[1],[2]]),5.)
x.scatter(1,m.tensor([[0],[1],[2]]),m.ones(3,1)) | x.scatter(0,m.tensor([[0,1,2,0]]),x)
x.scatter(0,m.tensor([[0,9]]),x) | x.scatter(0,m.tensor([[0,1]]),m.ones(1,2,dtype=m.int64))
x.scatter(1,m.tensor([[0,0]]),value=2.) | x.scatter(1,m.tensor([0]),2.) | x.scatter(3,m.tensor([[0]]),2.)
x.scatter_add(1,m.tensor([[0,0,1]]),m.ones(1,3)) | x.scatter_add(0,m.tensor([[0,0,0,0],[1,1,1,1]]),m.ones(2,4))
x.scatter_add(0,m.tensor([[0]]),m.ones(1,1,dtype=m.float64)) | x.scatter_add(0,m.tensor([[0,0]]),m.ones(1,1))
x.scatter(1,m.tensor([[0,1]]),m.ones(1,2),reduce='add') | x.index_add(0,m.tensor([0,0]),m.ones(2,4))
x.index_add(1,m.tensor([1]),m.ones(3,1),alpha=2) | x.index_add(0,m.tensor([0,0]),m.ones(1,4))
x.index_add(0,m.tensor([7]),m.ones(1,4)) | x.index_copy(0,m.tensor([0,2]),m.ones(2,4))
x.index_copy(0,m.tensor([0,2]),m.ones(1,4)) | x.index_fill(0,m.tensor([0,2]),3.) | x.index_fill(1,m.tensor([9]),3.)
x.index_put((m.tensor([0,1]),m.tensor([1,2])),m.tensor([1.,2.]))
x.index_put((m.tensor([0,0]),),m.ones(4),accumulate=True) | x.index_put((x>0,),m.tensor(1.))
m.unique(m.tensor([3,1,3])) | m.unique(m.tensor([3,1,3]),return_inverse=True,return_counts=True)
m.bincount(m.tensor([1,1,3])) | m.bincount(m.tensor([1,1,3]),m.tensor([1.,2.,3.]))
m.bincount(m.tensor([1]),minlength=4) | m.bincount(m.tensor([-1])) | m.bucketize(m.tensor([1.5]),m.tensor([1.,2.]))
m.isin(m.tensor([1,2]),m.tensor([2])) | m.flatten(x,1) | m.squeeze(x[None],0) | m.unsqueeze(x,0) | m.t(x)
m.t(x[None]) | m.t(x[0]) | m.transpose(x,0,1) | m.clone(x) | m.ravel(x) | m.movedim(x,0,1) | m.moveaxis(x,0,1)
x[0].T | x[0,0].T | x[0].mT | x[None].mT | x[None].T | m.cumsum(x,0)[0] | m.broadcast_shapes((3,1),(4,))
m.broadcast_shapes((3,),(4,)) | x.is_floating_point() | m.is_tensor(x) | x.type() | x.is_complex() | x.dtype
m.is_floating_point(x) | m.is_complex(x) | m.result_type(x,1.5) | m.result_type(x,x.double())
m.can_cast(m.float32,m.int64) | m.promote_types(m.int32,m.float16)
"""

PRODUCTS = """
m.addmm(c,a,b) | m.addmm(c,a,b,beta=2,alpha=.5) | m.addmm(c,a,b,beta=0) | c.addmm(a,b) | m.addmv(c[0],a,b[:,0])
m.addr(c,a[0],b[0]) | m.baddbmm(c[None],a[None],b[None]) | m.addbmm(c,a[None],b[None]) | a.matmul(b) | a.mm(b)
a.mv(b[:,0]) | a[0].dot(b[:,0]) | a.trace() | m.trace(a[0]) | m.chain_matmul(a,b,c) | m.linalg.multi_dot([a,b,c])
m.tensordot(a,b) | m.tensordot(a,b,1) | m.tensordot(a,b,0) | m.tensordot(a,b,dims=([1],[0]))
m.tensordot(a,b,([0,1],[0,1])) | m.tensordot(a,b,3) | m.tensordot(a,b,([0],[0,1])) | m.tensordot(a,b[:2],1)
m.einsum('ij,jk->ik',a,b) | m.einsum('ij,jk',a,b) | m.einsum('ij->ji',a) | m.einsum('ij->',a) | m.einsum('ij->i',a)
m.einsum('ii',a) | m.einsum('ii->i',a) | m.einsum('ij,ij->ij',a,b) | m.einsum('ij,ij',a,b)
m.einsum('i,j->ij',a[0],b[0]) | m.einsum('i,i',a[0],b[0]) | m.einsum('bij,bjk->bik',a[None],b[None])
m.einsum('...ij,...jk->...ik',a[None],b) | m.einsum('ij,jk,kl->il',a,b,c) | m.einsum('ij,kj->ik',a,b)
m.einsum('ij,kl->ijkl',a,b) | m.einsum('ij,jk->ki',a,b) | m.einsum(' ij , jk -> ik ',a,b)
m.einsum('ij,jk->ik',[a,b]) | m.einsum('ij,jk->iz',a,b) | m.einsum('ij,jk->ik',a) | m.einsum('ijk->i',a)
m.einsum('ij,jk->ii',a,b) | m.einsum('ij,jk->ik',a,b[:2]) | m.einsum('i1->i',a) | m.einsum('ij,j->i',a,b[0])
m.einsum('ij...,j...->i...',a,b) | m.einsum('...i->...',a) | m.einsum('...',a) | m.einsum('bi,bj->bij',a,b)
m.einsum('ij,ik,il->jkl',a,b,c) | m.einsum('Ij,jK->IK',a,b) | m.einsum('ji',a) | m.einsum('ij,jk->ik',a,2)
m.einsum('i,i->i',a[0],b[0,:1]) | m.einsum('...ij->...ji',a[None]) | m.einsum('ij->j...',a)
m.einsum('bhld,bhmd->bhlm',a.reshape(1,1,3,3),b.reshape(1,1,3,3)) | a@b@c | a.T@b | (a@b).T | a@b[0] | a[0]@b
a[0]@b[0] | a@2 | 2@a | a@[1.] | a.double()@b | m.vdot(a[0],b[0]) | m.inner(a,b) | m.outer(a,b) | m.outer(a[0],b[0])
a.outer(b) | a[0].outer(b[0]) | m.bmm(a,b) | m.mm(a[0],b)
"""

CREATION = """
m.tensor(1) | m.tensor(1.) | m.tensor(True) | m.tensor([1,2]) | m.tensor([1,2.]) | m.tensor([True,2])
m.tensor([True,False]) | m.tensor([]) | m.tensor([[]]) | m.tensor([[1,2],[3]]) | m.tensor(None) | m.tensor({})
m.tensor(x) | m.tensor(x[0,0].detach()) | m.tensor([x[0,0].item()]) | m.tensor([1,2],dtype=m.float64)
m.tensor([1.5,2],dtype=m.int64) | m.tensor([1,2],dtype=m.bool) | m.tensor([1.],requires_grad=True)
m.tensor([1],requires_grad=True) | m.tensor([1,2],dtype='x') | m.tensor([1],device='cpu') | m.tensor(range(3))
m.tensor((1,2)) | m.tensor([(1,2),(3,4)]) | m.tensor([1+2j,1]) | m.tensor([[1,2],[3,4]],dtype=m.float16)
m.tensor(data=[1.]) | m.as_tensor([1.]) | m.as_tensor(x) | m.as_tensor(x,dtype=m.float64) | m.as_tensor(3)
m.asarray([1.]) | m.asarray([1,2],dtype=m.float32) | m.scalar_tensor(3) | m.zeros(2,3) | m.zeros((2,3))
m.zeros([2,3]) | m.zeros(2,dtype=m.int64) | m.zeros(()) | m.zeros(0) | m.zeros(-1) | m.zeros(2.5)
m.zeros(size=(2,)) | m.zeros(m.Size([2])) | m.zeros(2,requires_grad=True) | m.ones(2,3) | m.ones((2,),dtype=m.bool)
m.ones(2,dtype=m.complex64) | m.full((2,3),5) | m.full((2,),5.) | m.full((2,),True) | m.full((),2)
m.full((2,),5,dtype=m.float64) | m.full(2,5.) | m.full([2],m.tensor(3.)) | m.full((-1,),1)
m.full((2,),fill_value=3) | m.zeros_like(x) | m.ones_like(x) | m.zeros_like(x,dtype=m.int64) | m.full_like(x,3)
m.full_like(x.long(),3.5) | m.zeros_like(x,requires_grad=True) | m.zeros_like(3) | m.ones_like([1]) | m.eye(3)
m.eye(2,3) | m.eye(0) | m.eye(-1) | m.eye(2,dtype=m.int64) | m.arange(5) | m.arange(5.) | m.arange(1,5)
m.arange(1,5,2) | m.arange(0,1,.3) | m.arange(5,1,-1) | m.arange(5,1) | m.arange(1,5,0)
m.arange(3,dtype=m.float32) | m.arange(0,3,.5,dtype=m.int64) | m.arange(0) | m.arange(-3) | m.arange(start=1,end=4)
m.arange(end=4) | m.arange(1,2.5) | m.arange(m.tensor(4)) | m.arange(1e9,1e9+4) | m.arange(0,1,.1)
m.linspace(0,1,5) | m.linspace(0,1,1) | m.linspace(0,1,0) | m.linspace(0,1,-1) | m.linspace(0,10,5,dtype=m.int64)
m.linspace(3,-3,7) | m.linspace(m.tensor(0.),m.tensor(1.),3) | m.linspace(start=0,end=1,steps=3) | m.linspace(0,1)
m.logspace(0,2,3) | m.logspace(0,2,3,base=2) | m.tril_indices(3,3) | m.triu_indices(3,4,1)
m.triu_indices(3,3,offset=-1) | m.complex(m.tensor(1.),m.tensor(2.)) | m.complex(m.tensor(1),m.tensor(2))
m.polar(m.tensor(1.),m.tensor(.5)) | m.is_tensor(3)
"""

OLD_NAMES = """
m.FloatTensor([1,2]) | m.FloatTensor(2,3).shape | m.FloatTensor() | m.LongTensor([1,2]) | m.LongTensor([1.5])
m.DoubleTensor([1]) | m.IntTensor([1]) | m.ByteTensor([1,0]) | m.BoolTensor([1,0]) | m.Tensor([1,2])
m.Tensor(2,3).shape | m.Tensor() | m.Tensor(5).shape | m.Tensor(x.detach()) | m.Tensor([[1.,2.]])
m.HalfTensor([1]) | m.autograd.Variable(m.tensor([1.]),requires_grad=True) | m.autograd.Variable(m.tensor([1.]))
m.autograd.Variable([1.]) | m.autograd.Variable(x).requires_grad | x.new_tensor([1,2]) | x.new_zeros(2)
x.new_zeros((2,3)) | x.new_ones(2,3) | x.new_full((2,),3) | x.new_zeros(2,dtype=m.int64)
x.new_tensor([1.],requires_grad=True) | x.new_tensor(x.detach())
"""

CONVERSION = """
x.item() | x[0,0].item() | x[:1,:1].item() | x[0:0].item() | x.tolist() | x[0,0].tolist() | x.float() | x.double()
x.half() | x.long() | x.int() | x.bool() | x.short() | x.char() | x.abs().byte() | x.cfloat() | x.cdouble()
x.to(m.float64) | x.to(m.float32) | x.to('cpu') | x.to('cpu',m.float64) | x.to(m.device('cpu'))
x.to(m.zeros(1,dtype=m.int64)) | x.to(dtype=m.float64) | x.to(device='cpu',dtype=m.float32) | x.to(3)
x.to(m.float32,copy=True) | x.to(m.float64,True) | x.type(m.float64) | x.type(m.DoubleTensor)
x.type_as(m.zeros(1,dtype=m.float64)) | x.cpu() | str(x.device) | x.float().dtype | x.to(float) | x.to(int)
"""

PROTOCOLS = """
bool(x) | bool(x[0,0]>-9) | bool(x[0:0]) | bool(x[:1,:1]) | int(x[0,0]) | float(x[0,0]) | float(x) | float(x[:1,:1])
int(x) | complex(x[0,0]) | len(x[0]) | [1,2,3][m.tensor(1)] | [1,2,3][m.tensor(1.)] | 'abc'[m.tensor([1])]
range(m.tensor(3)) | f"{x[0,0].detach():.3f}" | f"{x[0,0]:.3f}" | f"{x.detach():.3f}" | f"{m.tensor(3):d}"
"%.2f"%x[0,0] | "%d"%m.tensor(3) | format(m.tensor(2.5),'') | round(float(x[0,0]),2) | round(x[0,0].detach(),2)
list(x) | [a for a in x][1] | tuple(x[0]) | list(reversed(x[0])) | sum(x[0]) | max(x[0]) | min(x[0].detach())
1. in m.tensor([1.,2.]) | 5. in m.tensor([1.,2.]) | m.tensor(1.) in m.tensor([1.]) | x==x | x is x | x!=None
x==None | x in [1] | divmod(x.detach(),2.) | abs(x) | ~x.bool() | not x[0,0] | x and 1 | x.foo | x.sum_
x.requires_grad | x.is_leaf | x.grad | x.grad_fn | (x*2).requires_grad | x.data | x.data.requires_grad
x.detach().requires_grad | x.shap | x.Transpose() | m.foo | m.summ | m.resahpe | x[0].is_leaf | x.retains_grad
x.is_sparse | x.itemsize | x.real | x.__len__() | x.size(0) | x.T.is_contiguous() | x._version
x.output_nr | m.numel(3) | m.is_nonzero(m.tensor(1)) | x.is_nonzero() | x.equal(x) | m.equal(x,x.clone())
m.equal(x,x[0]) | m.allclose(x,x+1e-9) | m.allclose(x,x+1) | m.isclose(x,x) | x.isclose(x+1e-9)
m.allclose(x,x.double()) | x.allclose(x) | x.clamp(0) | x.clamp(max=0) | x.clamp(0,1) | x.clamp(min=0,max=1)
x.clamp(1,0) | x.clamp() | x.clamp(m.zeros(4),m.ones(4)) | x.clamp(m.tensor(0.),1.) | x.clamp(m.zeros(4))
m.clamp(x,0.5) | x.clip(0,1) | m.clamp_min(x,0.) | m.clamp_max(x,0.) | x.clamp_min(m.zeros(4)) | x.long().clamp(0,1)
x.long().clamp(0.5) | m.lerp(x,x+1,.3) | m.lerp(x,x+1,m.full((4,),.5)) | x.lerp(x*2,0.5) | m.lerp(x,2.,.5)
m.lerp(x,x.double(),.5) | m.addcmul(x,x,x,value=2) | m.addcdiv(x,x,x+5) | x.addcmul(x,x) | m.add(x,1,alpha=2)
m.add(x,x,alpha=.5) | x.add(2) | x.sub(x,alpha=3) | m.rsub(x,1) | m.div(x,2,rounding_mode='floor')
m.div(x,2,rounding_mode='trunc') | m.div(x,2,rounding_mode='x') | m.div(x.long(),2,rounding_mode='floor')
m.div(x.long(),2,rounding_mode='trunc') | m.div(x.long(),m.tensor(3),rounding_mode='trunc') | x.div(m.zeros(4))
m.pow(2,x) | m.pow(x,2) | x.pow(0.5) | m.pow(2,3) | m.float_power(x.abs(),2) | m.round(x,decimals=1)
x.round(decimals=2) | x.nan_to_num(1.) | m.nan_to_num(m.tensor([float('inf')]),posinf=7.) | m.sigmoid(x) | m.relu(x)
x.relu() | x.sigmoid() | m.neg(x) | 1-x | 2*x | x/2 | 2/x | x**2 | x-1 | x+x | x*x | x@x.T | x//1 | x%1 | x.square()
m.square(x) | x.sqrt() | x.exp() | m.nextafter(x,x+1).dtype | m.logaddexp(x,x) | m.hypot(x,x) | m.atan2(x,x)
m.xlogy(x,x.abs()) | x.softmax(0) | x.log_softmax(1) | m.max(x,0)[0] | x.requires_grad_(1)
x.detach().requires_grad_() | x.retain_grad()
"""

# Programs: they write in place, through views, by index.
IN_PLACE = """
z.add_(y) | z+=y | z*=y | z-=y | z/=y | z**=2 | z//=2. | z%=.7 | z.mul_(2) | z.sub_(y,alpha=2) | z.add_(y,alpha=3)
z.div_(y) | z.pow_(2) | z.exp_() | z.sin_() | z.tanh_() | z.sqrt_() | z.neg_() | z.abs_() | z.relu_() | z.sigmoid_()
z.clamp_(0,1) | z.clamp_(min=0.3) | z.zero_() | z.fill_(3.) | z.fill_(y.sum()) | z.copy_(y) | z.copy_(y[0])
z.copy_(y.double()) | z.copy_(y[:2]) | z.copy_(3) | z.masked_fill_(z.detach()>0,5.)
z.masked_fill_(y.detach()>0,y.mean()) | z.lerp_(y,.3) | z.addcmul_(y,y,value=2) | z.addcdiv_(y,y+4) | z.cumsum_(0)
z.tril_() | z.floor_() | z.round_() | z.index_fill_(0,m.tensor([0]),2.) | z.index_add_(0,m.tensor([0,0]),y[:2])
z.index_copy_(0,m.tensor([0,2]),y[:2]) | z.scatter_(0,m.tensor([[0,1,2,0]]),y)
z.scatter_add_(0,m.tensor([[0,0,0,0],[1,1,1,1]]),y) | z.scatter_(1,m.tensor([[0],[1],[2]]),9.)
z.index_put_((m.tensor([0,1]),m.tensor([1,2])),y[0,:2]) | z.masked_scatter_(y.detach()>0,y) | z.t_()
z.transpose_(0,1) | z.unsqueeze_(0) | z.squeeze_() | z.fill_diagonal_(0.) | z[0]=1. | z[0]=y[1] | z[:,1]=y[:,2]
z[0,0]=y[1,1] | z[...]=y | z[:]=y | z[:]=0 | z[1:]=y[1:] | z[::2]=y[::2] | z[z.detach()>0]=0.
z[y.detach()>0]=y.mean() | z[y.detach()>0]=y[y.detach()>0] | z[m.tensor([0,2])]=y[:2] | z[[0,2]]=y[:2]
z[:,m.tensor([0,1])]=y[:,:2] | z[m.tensor([0,1]),m.tensor([1,2])]=y[0,:2] | z[None]=y
z[0,None]=y[0] | z[...,0]=y[:,0] | z[-1]=y[0] | z[0]=y | z[0]=y[0,:2] | z[5]=1. | z[0,0]=y[0] | z[0:0]=y[0:0]
z[0]=[1.,2.,3.,4.] | z[0]=m.arange(4) | z[0]=m.arange(4).double() | z[0]=y[0:1] | z[0]=y[None,0:1]
z[m.tensor([9])]=1. | z[m.tensor(1)]=y[0] | z[True]=y | z[m.tensor([True,False,True])]=y[:2]
z[m.tensor([True,False])]=1. | z[:,0]+=y[:,0] | z[0]*=y[0] | z[0]+=1 | z[0][1]=y[2,2] | z[m.tensor([0,1])]+=y[:2]
z[z.detach()>0]*=2 | z[0,1:3]=y[1,2] | z[[True,False,True]]=0. | v=z[0];v.add_(y[0]) | v=z[0];v.mul_(2);z.mul_(y)
v=z.view(-1);v[0]=y[0,0] | v=z.view(-1);v.mul_(y.view(-1)) | v=z.t();v.add_(y.t()) | v=z[:,1];v.fill_(7.)
v=z[:,1];v.copy_(y[:,1]) | v=z[1:];w=v[0];w.mul_(3) | v=z[1:];w=v[0];w.mul_(3);v.add_(y[1:])
v=z[0];z.mul_(2);z=z+v | v=z[0];z[0]=y[1];z=z*v | v=z[0];v+=1;z=z*z | v=z.diagonal();v.add_(y.diagonal())
v=z.unsqueeze(0);v.mul_(2) | v=z.squeeze();v.mul_(2) | v=z.expand(3,4);v.add_(1) | v=z[0].expand(3,4);v.add_(1)
a,b=z[0],z[1];a.add_(b) | a,b=z[0],z[0];a.mul_(2);z=b+0 | v=z.detach();v.mul_(2) | w=z*2;z.add_(1);z=w+z
w=z*z;z.add_(1);z=w+z | w=z.exp();w.add_(1);z=w | w=z.exp();w2=w*2;w.add_(1);z=w2 | w=z.sin();z.add_(1);z=w
u=z.split(2,1)[0];u.mul_(2) | u=z.unbind(0)[0];u.mul_(2) | u=z.chunk(2,1)[0];u.add_(1) | z.requires_grad_(False)
z.detach_() | x.add_(1) | x[0]=1. | x.zero_() | x.copy_(y) | x.view(-1).add_(1) | x[0].add_(1) | x.data.add_(1)
x.detach().mul_(2) | z=x.detach();z[0]=y[0] | z=x.detach().clone();z+=y | z=x.detach().clone();z[0]=y[0];z=z*2
z=x.detach().clone();v=z[0];v.copy_(y[0]) | z=x.detach().clone();v=z[0];z[1]=y[1];z=v*1
z=m.zeros(3,4);z[y.detach()>0]=y[y.detach()>0] | z=m.zeros(3,4);z[1]=x[1];z[2]=y[2] | z+=y[:2] | z+=m.ones(2,3,4)
z.add_(y.double()) | z=z.long();z+=1.5 | z=z.long();z*=2 | z=z.long();z/=2 | z=z.long();z.add_(y)
z.bitwise_and_(1) | z=z.long();z<<=1 | z=z.long();z>>=1 | z=z@z.t();z.t_() | z@=y.t()
z.index_add_(0,m.tensor([0]),y[:1],alpha=2) | z.uniform_();z=z*0 | z.exponential_();z=z*0 | z.clamp_(max=y)
z.clip_(0,1) | z.data=y.detach()*2 | z=x.detach().clone();z.requires_grad_();w=z*1;w.add_(y);z=w
"""

LINALG = """
L.inv(A) | A[0].inverse() | L.solve(A, W[:, :, :4].mT) | L.solve(A[0], x[0]) | L.solve(A, x[:2]) | L.solve(A, x.T)
L.solve(A[0], x, left=False) | L.solve_triangular(A, W[:, :, :4].mT, upper=True)
L.solve_triangular(A[0], x, upper=False, left=False, unitriangular=True) | L.det(A) | L.slogdet(A).logabsdet
(A @ A.mT).logdet() | L.cholesky(A @ A.mT) | L.cholesky(A[0] @ A[0].mT, upper=True) | L.eigvalsh(A + A.mT)
L.eigh(A[0] + A[0].mT).eigenvalues | L.eigh(A[0] + A[0].mT, "U").eigenvectors ** 2
L.eigh(A + A.mT)[1][..., :1] @ L.eigh(A + A.mT)[1][..., :1].mT | L.svdvals(W[0].mT) | L.svdvals(W) | L.svd(W).S
L.svd(W.mT, full_matrices=False).U[..., :1] @ L.svd(W.mT, full_matrices=False).Vh[..., :1, :]
L.svd(W, full_matrices=False).U[..., :1] @ L.svd(W, full_matrices=False).Vh[..., :1, :] | L.qr(W[0].mT).Q
L.qr(W[0].mT).R | L.qr(W).Q | L.qr(W, "complete").R | L.pinv(W.mT) | L.pinv(W) | L.lstsq(W[0].mT, W[1].mT).solution
L.lstsq(W[0].mT, W[1].mT, driver="gels").residuals | L.matrix_exp(A) | L.matrix_power(A[0], 5)
L.matrix_power(A[0], -2) | L.multi_dot([x, A[0], y[0]]) | L.cond(A) | L.cond(A, -2) | L.norm(A) | L.norm(A, 3, 1)
L.norm(W[0], "nuc") | L.vector_norm(A, 1.5, (0, 2), True) | L.matrix_norm(A, "fro", (0, -1), keepdim=True)
L.matrix_norm(A, "nuc", (0, -1), keepdim=True) | L.matrix_norm(A, 1, (0, -1), keepdim=True)
L.matrix_norm(A, -1, (0, -1), keepdim=True) | L.matrix_norm(A, 2, (0, -1), keepdim=True)
L.matrix_norm(A, -2, (0, -1), keepdim=True) | L.matrix_norm(A, float("inf"), (0, -1), keepdim=True)
L.matrix_norm(A, -float("inf"), (0, -1), keepdim=True) | L.cross(a, b) | L.vecdot(x, y, dim=0) | L.diagonal(A, offset=1)
L.tensorinv(A[0].reshape(4, 2, 2), ind=1)
L.tensorsolve(A[0].reshape(2, 2, 4), x[0].reshape(2, 2))
"""

ACTIVATIONS = """
F.relu(2 * x) | F.relu6(4 * x) | F.leaky_relu(2 * x) | F.elu(2 * x) | F.elu(x, 0.6) | F.selu(2 * x) | F.celu(2 * x)
F.silu(2 * x) | F.mish(2 * x) | F.gelu(2 * x) | F.gelu(2 * x, approximate="tanh") | F.softplus(2 * x)
F.softplus(x, beta=2.0, threshold=1.5) | F.softsign(2 * x) | F.hardtanh(2 * x) | F.hardswish(2 * x)
F.logsigmoid(2 * x) | F.tanhshrink(2 * x) | F.hardshrink(2 * x) | F.softshrink(2 * x) | F.sigmoid(2 * x)
F.tanh(2 * x) | F.glu(2 * x) | F.prelu(x.reshape(2, 3, 2), p[:, 0]) | F.threshold(x, 0.1, 7.0) | F.softmax(x, 0)
F.softmin(x, -1) | F.log_softmax(x, 1)
"""

# PyTorch stores 1/6 and 1/alpha as float32.
SINGLE_CONSTANTS = "F.hardsigmoid(2 * x) | F.celu(x, 0.6)"

LAYERS = """
F.linear(x, A[0], y[0]) | F.linear(W, W[0, :, :], y[:, 0]) | F.linear(x[0], A[0], y[0]) | F.linear(x, A[0])
F.bilinear(x[:, :2], y[:, :3], W[:, :2, :3], y[0, :2]) | F.embedding(i.abs() % 4, A[0])
F.embedding(i.abs() % 4, A[0], padding_idx=1) | F.layer_norm(x, (4,), y[0], y[1]) | F.rms_norm(x, (4,), y[0])
F.batch_norm(W, None, None, y[:, 0], y[:, 1], True)
F.batch_norm(W[0].T, c[0].detach(), p[:, 0].detach(), a[1], a[2])
F.instance_norm(W) | F.group_norm(A, 2, y[0], y[1]) | F.normalize(x)
F.normalize(x, 3.0, 0) | F.cosine_similarity(x, y) | F.pairwise_distance(x, y)
F.scaled_dot_product_attention(W[:, :2], W, A[:, :3])
F.scaled_dot_product_attention(A, W[:, :, :4].mT @ W[:, :, :4], A[..., :2], is_causal=True, scale=0.4)
F.scaled_dot_product_attention(x, y, A[0, :3, :2], m.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 1]]).bool())
"""

LOSSES = """
F.mse_loss(x, y) | F.mse_loss(x, y, reduction="sum") | F.mse_loss(x, y, reduction="none")
F.mse_loss(x, y, weight=p.detach()) | F.l1_loss(x, y) | F.smooth_l1_loss(x, y, beta=0.5) | F.huber_loss(x, y, delta=0.5)
F.huber_loss(x, y, weight=p.detach()) | F.nll_loss(x, m.tensor([0, 3, 1]))
F.nll_loss(x, m.tensor([0, -100, 2]), p[0].detach()) | F.cross_entropy(x, m.tensor([0, 3, 1]))
F.cross_entropy(x[0], m.tensor(2)) | F.cross_entropy(W, m.tensor([[0, 1, 2, 0, 2], [1, 1, 0, 2, 1]]))
F.cross_entropy(W, m.tensor([[0, 1, 2, 0, 2], [1, 1, 0, 2, 1]]), reduction="none")
F.cross_entropy(x, m.tensor([0, 3, 1]), reduction="sum") | F.cross_entropy(x, m.tensor([0, -100, 2]))
F.cross_entropy(x, m.tensor([0, 3, 1]), ignore_index=3) | F.cross_entropy(x, m.tensor([0, 3, 1]), p[0].detach())
F.cross_entropy(x, m.tensor([0, -100, 2]), label_smoothing=0.2)
F.cross_entropy(x, m.tensor([0, -100, 2]), p[0].detach(), label_smoothing=0.2)
F.cross_entropy(x, p, q[0].detach(), label_smoothing=0.1) | F.binary_cross_entropy(p, q)
F.binary_cross_entropy_with_logits(5 * x, p)
F.binary_cross_entropy_with_logits(x, p, q[0].detach(), pos_weight=2 * q[0].detach())
F.kl_div(x, p, reduction="batchmean") | F.kl_div(x, y, reduction="sum", log_target=True)
F.gaussian_nll_loss(x, y, p, full=True, eps=0.3) | F.gaussian_nll_loss(x, y, p + 0.4, full=True)
F.poisson_nll_loss(x, 5 * p.detach(), full=True)
F.poisson_nll_loss(p, q, log_input=False) | F.hinge_embedding_loss(x[0], m.tensor([1.0, -1.0, 1.0, -1.0]).double())
F.margin_ranking_loss(x[0], y[0], m.tensor([1.0, -1.0, 1.0, -1.0]).double(), 0.3)
F.soft_margin_loss(x[0], m.tensor([1.0, -1.0, 1.0, -1.0]).double())
F.triplet_margin_loss(x, y, A[0, :3], swap=True)
"""

# Numbers, empty tensors, booleans, ties, nan, and invalid arguments.
SCATTERING = """
m.zeros(3, 4).double().scatter(1, m.tensor([[3, 0], [1, 2]]), at(x, [[1.0, 1.0], [1.0, 1.0]]))
at(x, [[0.0] * 4] * 3).scatter(1, m.tensor([[3, 0], [1, 2]]), at(y, [[1.0, 1.0], [1.0, 1.0]]))
at(x, [[0.0] * 4] * 3).scatter_add(1, m.tensor([[3, 0], [1, 2]]), at(y, [[1.0, 1.0], [1.0, 1.0]]))
m.arange(5.0).scatter(0, m.tensor(2), m.tensor(9.0)) | m.tensor(3.0).scatter(0, t(0), t(9.0))
m.arange(5.0).scatter(0, m.zeros(2, 0, dtype=m.int64), 9.0)
m.ones(3, 5).scatter(0, m.zeros(2, 2).long(), m.ones(2, 5, 2)) !! same number of dimensions as src
m.full((3,), 2.0).scatter(0, t(0, 0, 2), t(3.0, 5.0, 7.0), reduce="multiply")
m.full((3,), 2.0).scatter(0, t(1), 4.0, reduce="multiply")
m.full((3,), 2.0).scatter(0, t(1), 4.0, reduce="divide") !! reduce argument must be either add or multiply
at(x, [1.0, 3.0, 2.0]).scatter_reduce(0, t(0, 0, 2), at(y, [2.0, 4.0, 4.0]), "sum")
at(x, [1.0, 3.0, 2.0]).scatter_reduce(0, t(0, 0, 2), at(y, [2.0, 4.0, 4.0]), "sum", include_self=False)
at(x, [1.0, 3.0, 2.0]).scatter_reduce(0, t(0, 0, 2), at(y, [2.0, 4.0, 4.0]), "prod")
at(x, [1.0, 3.0, 2.0]).scatter_reduce(0, t(0, 0, 2), at(y, [2.0, 4.0, 4.0]), "prod", include_self=False)
at(x, [1.0, 3.0, 2.0]).scatter_reduce(0, t(0, 0, 2), at(y, [2.0, 4.0, 4.0]), "mean")
at(x, [1.0, 3.0, 2.0]).scatter_reduce(0, t(0, 0, 2), at(y, [2.0, 4.0, 4.0]), "mean", include_self=False)
at(x, [1.0, 3.0, 2.0]).scatter_reduce(0, t(0, 0, 2), at(y, [2.0, 4.0, 4.0]), "amax")
at(x, [1.0, 3.0, 2.0]).scatter_reduce(0, t(0, 0, 2), at(y, [2.0, 4.0, 4.0]), "amin")
at(x, [1.0, 3.0, 2.0]).scatter_reduce(0, t(0, 0, 2), at(y, [2.0, 4.0, 4.0]), "amin", include_self=False)
at(x, [0.0, 0.0]).scatter_reduce(0, t(0, 0, 1), at(y, [5.0, 5.0, 1.0]), "amax")
at(x, [1.0, 1.0]).scatter_reduce(0, t(0, 0, 1), at(y, [0.0, 5.0, 0.0]), "prod")
at(x, [1.0, 2.0]).scatter_reduce(0, t(0, 1, 1), at(y, [nan, 5.0, 7.0]), "amax")
at(x, [1.0, 2.0]).scatter_reduce(0, t(0, 1, 1), at(y, [nan, 5.0, 7.0]), "amin")
at(x, [1.0, 2.0]).scatter_reduce(0, t(0), t(nan).double(), "amax", include_self=False)
t(5, 7, 9).scatter_reduce(0, t(0, 0, 1), t(-3, -9, 4), "mean")
t(5, 7, 9).scatter_reduce(0, t(0, 0, 1), t(-3, -9, 4), "amax", include_self=False)
t(5, 7, 9).scatter_reduce_(0, t(0, 0, 1), t(-3, -9, 4), "sum")
t(5, 7).scatter_reduce(0, t(0), t(-3), "median") !! reduce argument must be either sum, prod, mean, amax or amin, got median
m.ones(3).scatter(0, t(0)) !! invalid combination of arguments
at(x, [[1.0] * 2] * 3).index_reduce(0, t(2, 2), at(y, [[2.0, 3.0], [4.0, 5.0]]), "prod")
m.ones(3).index_reduce(0, t(0), m.ones(1), "sum") !! Expected reduce to be one of prod, mean, amax or amin but got sum
x[0, 0].index_fill(0, t(0), 1.0) | x[0, 0].index_add(0, t(0), m.ones(()).double(), alpha=2)
x[0, 0].index_copy(0, t(0), y[0, :1]) | m.zeros(3).double().index_fill(0, t(1, 1, 2), y[0, 0])
m.ones(3, 2).index_add(0, t(0), m.ones(1, 1)) !! source tensor shape must match self tensor shape
m.ones(3, 2).index_copy(0, t(0), m.ones(1, 1)) | m.ones(3).index_fill(0, t(0), 1j) !! complex Scalar to non-complex
m.ones(3).index_add(0, t(0), 1.0) !! must be Tensor, not float
m.ones(3).index_copy(0, t(0), 1.0) !! must be Tensor, not float
m.ones(2, 3).index_add(1, t(3), m.ones(2, 1)) !! index 3 is out of bounds for dimension 1 with size 3
m.ones(2, 3).index_add(1, t(-1), m.ones(2, 1)) !! index -1 is out of bounds for dimension 1 with size 3
m.ones(2, 3).index_copy(1, t(3), m.ones(2, 1)) !! index 3 is out of bounds for dimension 1 with size 3
m.ones(2, 3).index_copy(1, t(-1), m.ones(2, 1)) !! index -1 is out of bounds for dimension 1 with size 3
x.put(t(0, -1), y[0, :2]) | m.arange(3.0).put_(t(0, 0), t(9.0, 8.0), accumulate=True)
m.ones(6).put(t(7), m.ones(1)) !! tried to access index 7 on a tensor of 6 elements
m.ones(6).put(t(1), m.ones(2)) !! same number of elements
m.zeros(2).double().masked_scatter(m.tensor([[True, False], [True, True]]), y[0, :3])
m.zeros(2).masked_scatter(m.ones(2), m.ones(3)) !! only supports boolean masks
m.zeros(2).masked_scatter_(m.tensor([[True, False], [True, True]]), m.ones(3)) | m.select_scatter(x, y[0], 0, 1)
m.slice_scatter(x, y[:, :2], 1, 0, 3, 2) | m.diagonal_scatter(x, y[0, :3], 1)
m.select_scatter(x, m.zeros(2).double(), 0, 1) !! expected src to have a size equal to the slice
m.fill(x, y[0, 0]) | m.fill(x, m.ones(2)) !! only supports 0-dimension value
x[[True, False, True], [0, 0]] | x[m.tensor([[True, False, True, False]] * 3)] | x[[1, 1, 2], [True, False, True, True]]
"""

GATHERED = """
x[0].gather(0, m.tensor(2)) | x[0, 0].gather(0, t(0, 0)) | x[0].gather(0, m.zeros(2, 0, dtype=m.int64))
m.take_along_dim(x, m.tensor([[-1]]), 1)
m.ones(2).masked_fill(t(True, False), 1j) !! without overflow
m.take(m.arange(6.0), t(0, 1, 2), out=m.ones(1).expand(3)) !! more than one element of the written-to tensor
m.ones(1, 0, 1).expand(2, 0, 3).exp_()
m.searchsorted(m.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), m.tensor([[2.0], [7.0]]))
m.searchsorted(m.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), m.tensor([[2.0], [7.0]]), side="right", out_int32=True)
m.searchsorted(t(3.0, 2.0, 1.0), t(1.5), sorter=t(2, 1, 0)) | m.searchsorted(t(1.0, nan), t(nan))
m.searchsorted(t(3.0, 2.0), t(1.0), side="middle") !! side can only be 'left' or 'right'
m.searchsorted(t(3.0, 2.0), t(1.0), side="left", right=True) !! side and right can't be set to opposites
m.searchsorted(t(3.0, 2.0, 1.0), t(1.0), sorter=t(0, 1, 9)) !! sorter index out of range
m.searchsorted(t(3.0, 2.0, 1.0), t(1.0), sorter=t(0, 1)) !! boundary and sorter must have the same size
m.searchsorted(m.ones(2, 3), t(2.0)) !! first N-1 dimensions
m.searchsorted(m.tensor(1.0), t(2.0)) !! positive dimension
m.bucketize(t(2.0), m.ones(2, 3)) !! boundaries tensor must be 1 dimension
m.bucketize(t(1.0), [0.0, 2.0]) !! bucketize | m.nonzero([1, 0]) !! nonzero | m.bincount(t(1), [1.0]) !! bincount
m.unique_consecutive(t(1, 1, 2, 2, 2, 1), return_inverse=True, return_counts=True)
m.unique_consecutive(m.tensor([[1, 2], [1, 2], [3, 2]]), dim=0) | m.unique_consecutive(m.empty(0))
m.unique_consecutive(m.tensor(3.0), return_inverse=True, return_counts=True)
m.unique(t(nan, 1.0, nan), return_counts=True)
m.unique(m.tensor(3.0), dim=0) !! tensor has no dimensions
m.unique_consecutive(m.tensor(3.0), dim=0) !! tensor has no dimensions
m.unique(m.ones(2, 3), dim=5) !! Dimension out of range
m.unique_consecutive(m.ones(2, 3), dim=5) !! Dimension out of range
m.unique(m.ones(2, 0), dim=0) !! There are 0 sized dimensions
m.unique_consecutive(m.ones(2, 0), dim=0) !! There are 0 sized dimensions
m.isin(t(1, 2), t(2), invert=True) | m.isin(t(1, 2), t(2), assume_unique=True) | m.isin(1, t(1, 2)) | m.isin(t(1, 2), 2)
m.histc(t(1.0, 2.0, 2.5, 4.0, 9.0), 4, 0, 8) | m.histc(m.ones(3), 3) | m.histc(t(1.0, 2.0), 0) !! bins must be > 0
m.histogram(t(1.0, 2.0, 2.5, 4.0, 9.0), 3) | m.histogram(m.tensor([]), 2)
m.histogram(t(1.0, 2.0, 2.5, 4.0, 9.0), t(0.0, 2.0, 9.0), weight=m.arange(5.0))
m.histogram(m.ones(3), 2, weight=m.ones(2)) !! same shape
m.bincount(t(0, 1, 1), t(1, 2, 3)) | m.bincount(t(0, 1, 1), t(1.0, 2.0, 3.0))
m.bincount(t(0, 1, 1), m.ones(2)) !! same length as input
m.nonzero_static(m.tensor([[0, 1], [1, 1]]), size=2)
m.nonzero_static(m.tensor([[0, 1], [1, 1]]), size=4, fill_value=-7) | m.unravel_index(t(5, 7), (2, 4))
m.unravel_index(m.tensor(1.0), (2, 4)) !! integer dtype
"""

NUMBERS = """
t(2, -1, 1, -1) ** t(-1, -3, -2, 2) | (-1) ** t(-1, -2, 3) | 2 ** t(-1, 2)
t(2, -1) ** -1 !! Integers to negative integer powers are not allowed
u8(1, 250) + (-3) | -1 * u8(1, 250) | u8(1, 250) - 300 | u8(1, 250) & -1 | m.add(u8(1, 250), u8(1, 250), alpha=-3)
m.where(u8(1, 250) > 5, -3, u8(1, 250)) | u8(1, 250).masked_fill(u8(1, 250) > 5, -3) | u8(1, 250).scatter(0, t(0), -3)
u8(1, 250).index_add(0, t(0), u8(1), alpha=-1) | m.full_like(u8(1, 250), -9) | m.full((1,), -9, dtype=m.uint8)
u8(1, 250).fill_(-3) | u8(1, 250).add_(-3) | m.tensor([1, 100], dtype=m.int8) + 200
m.full((1,), 300, dtype=m.uint8) !! cannot be converted to type uint8_t without overflow
u8(1, 250).fill_(300) !! cannot be converted to type uint8_t without overflow
m.einsum("ij->i", m.tensor([[1, 100]], dtype=m.uint8)) | m.einsum("ik,j->ij", u8(1, 100)[None], u8(1, 100))
m.tril_indices(2, 2, dtype=m.int32) | m.unravel_index(u8(1, 100), (20, 20))
m.addbmm(m.ones(2, 2).int(), m.ones(1, 2, 2).int(), m.ones(1, 2, 2).int()) | m.nanmedian(m.ones(3).half())
m.sign(t(True, False)) | m.sgn(t(True, False)) | m.isclose(t(True, False), t(True, True))
m.addr(m.zeros(2, 2).bool(), t(True, False), t(True, True), beta=2, alpha=3)
m.addr(m.ones(2, 2).bool(), t(True, False), t(True, True), beta=0)
m.isclose(x, x, rtol=-1) !! rtol must be greater than or equal to zero, but got -1
m.isclose(x, x, atol=-1) !! atol must be greater than or equal to zero, but got -1
m.addmm(m.ones(2, 2).long(), m.ones(2, 2).long(), m.ones(2, 2).long(), beta=2.7, alpha=1.6)
m.addmv(m.ones(2).long(), m.ones(2, 2).long(), m.ones(2).long(), beta=2.7, alpha=1.6)
m.addbmm(m.ones(2, 2).long(), m.ones(1, 2, 2).long(), m.ones(1, 2, 2).long(), beta=2.7, alpha=1.6)
m.baddbmm(m.ones(1, 2, 2).long(), m.ones(1, 2, 2).long(), m.ones(1, 2, 2).long(), beta=2.7, alpha=1.6)
m.addr(t(1, 1), t(1, 1), t(1, 1), beta=0.5) !! beta must not be a floating point number
m.arange(0.1, -7.9, -4.0, dtype=m.int64) | m.arange(0.5, 5, 1.5, dtype=m.int32)
m.linspace(4.3, 0, 7, dtype=m.int64) | m.logspace(4.3, -3, 4, 3.0, dtype=m.int64)
m.arange(inf) !! unsupported range | m.arange(0, 5, 0.5, dtype=m.int64) !! step must be nonzero
m.logsumexp(t(4j, 2 + 4j), 0) | m.view_as_real(m.logaddexp(m.complex(x, y), m.complex(y, p)))
m.frexp(t(3.0, -0.75, 0.0)) | m.frexp(m.tensor([1e-40])).exponent | m.frexp(6 * x).mantissa
m.ldexp(*m.frexp(t(3.0, -0.75, 0.0))) | m.ldexp(t(1, 3), t(3, -1)) | m.isposinf(t(inf, -inf, nan, 0.0))
m.isneginf(t(inf, -inf, nan, 0.0)) | m.isreal(t(1j, 1.0)) | m.isreal(t(inf, nan))
m.isposinf(t(1j)) !! does not support complex inputs
"""

SHAPES = """
m.diff(x, -1) !! order must be non-negative but got -1
m.diag_embed(x, dim1=1, dim2=1) !! diagonal dimensions cannot be identical 1, 1
m.fliplr(x[0]) !! Input must be >= 2-d | m.flipud(m.tensor(1.0)) !! Input must be >= 1-d
m.roll(x, ()) !! `shifts` required | m.roll(x, (1, 2)) !! shifts and dimensions must align
m.roll(m.tensor(1.0), 0, 0) !! has no dimensions | m.rot90(x, 1, (0,)) !! expected total rotation dims == 2
m.rot90(x[0]) !! expected total dims >= 2 | m.rot90(x, 1, (1, -1)) !! expected rotation dims to be different
x.narrow(0, 4, 0) !! start out of range (expected to be in range of [-3, 3]
x.narrow(0, 1, -1) !! length must be non-negative
x.narrow(0, m.tensor(True), 1) !! start must be an 0-dim integral Tensor
x.narrow(0, 0.5, 1) !! narrow( | x.narrow(0, 0, 1.5) !! narrow( | x.select(0, 0.5) !! select( | x.split(1.5) !! split
x.chunk(1.5) !! chunk( | x.tensor_split(1.5) !! split( | m.ones(5).split([-1, 6]) !! non-negative
m.movedim(x, (0, 0), (0, 1)) !! repeated dim in `source` | m.movedim(x, (0, 1), (0, 0)) !! repeated dim in `destination`
m.tensor_split(x, t(1.0)) !! dtype of long | m.tensor_split(m.tensor(1.0), 2) !! at least a 1-dimensional tensor
m.hsplit(x, "ab") !! hsplit | m.dsplit(x, 1) !! requires a tensor with at least 3 dimension
m.hstack([]) !! hstack expects a non-empty TensorList
m.column_stack([]) !! column_stack expects a non-empty TensorList
m.complex(x, 2) !! must be Tensor, not int | m.norm(x, "nuclear") !! Order nuclear not supported
m.quantile(x, t(0.5)) !! same dtype as the input | m.quantile(x, x[:1]) !! must be a scalar or 1D tensor
x.sum_to_size(2) !! is not expandable to size | m.tensor_split(x[0], m.tensor(2)) | m.tensor_split(x[0], t(1, 3))
m.dsplit(m.ones(1, 2, 4), 2) | x[0, 0].unfold(0, 1, 1) | x[:, :0].softmax(-1) | x[:, :0].log_softmax(-1)
x.sum_to_size(1, 4) | x.sum_to_size((4,)) | x.sum_to_size(3, 1) | m.tensordot(x[:1, :1], y, 1)
m.view_as_real(m.complex(x, y)) | m.view_as_complex(x[:, :2].contiguous()) | m.view_as_complex(x.reshape(6, 2)).abs()
z=m.zeros(2, dtype=m.complex64);m.view_as_real(z)[:, 1] = 3
v=m.zeros(4, dtype=m.complex128);m.view_as_real(v)[:, 1] = 2 * x[0];z=(v * v).real
m.view_as_complex(m.ones(3)) !! last dimension of size 2
m.view_as_complex(m.ones(4)[::2]) !! last dimension with stride 1
m.view_as_complex(m.tensor(1.0)) !! must have one or more dimensions
m.view_as_real(m.ones(2)) !! only supported for complex tensors | m.as_strided(x * 1, (2, 2), (1, 1), 1)
z=m.zeros(4);z.as_strided((2,), (2,)).add_(1) | m.arange(4.0)[2:].as_strided((2,), (1,))
m.zeros(4)[2:].storage_offset()
m.zeros(4).as_strided((3,), (2,)) !! out of bounds
m.zeros(4).as_strided((2,), (-1,), 3) !! Negative strides are not supported
m.zeros(4).as_strided((2,), (1, 1)) !! mismatch in length | m.zeros(4).as_strided((-2,), (1,))
z=m.ones(1).repeat(3);z[0]=5
"""

STATISTICS = """
m.cov(x) | m.cov(x, aweights=q[0].detach())
m.cov(x, correction=0, fweights=t(1, 2, 1, 3), aweights=p[0].detach()) | m.corrcoef(x[:2, :3]) | m.cov(t(3, 4, 6))
m.cov(x, fweights=m.ones(4)) !! expected fweights to have integral dtype
m.cov(x, aweights=t(1, 2, 1, 3)) !! expected aweights to have floating point dtype
m.cov(x, fweights=t(1, -1, 2, 3)) !! fweights cannot be negative
m.cov(x, fweights=t(1, 2)) !! same numel as there are observations | m.cov(m.ones(2, 2, 2)) !! two or fewer dimensions
m.quantile(at(x, [1.0, 4.0, 9.0]), at(p, [0.25, 0.75])) | m.quantile(t(1.0, nan, 3.0), 0.0)
m.quantile(m.tensor(3.0), 0.5, dim=0, keepdim=True) | m.nanmedian(at(x, [1.0, nan, 3.0, 2.0]))
m.nanmedian(at(x, [[1.0, nan, 3.0, 2.0], [nan] * 4]), 1)[0][:1]
m.nanmedian(m.tensor([[1.0, nan, 3.0, 2.0], [nan] * 4]), 1)[0]
m.nanquantile(at(x, [[1.0, nan, 3.0, 2.0], [nan] * 4]), t(0.5, 0.25).double(), dim=1)[:, 0]
m.nanquantile(m.tensor([[1.0, nan, 3.0, 2.0], [nan] * 4]), t(0.5, 0.25), dim=1)
m.nanquantile(at(x, [1.0, nan, 9.0, 4.0]), at(p, [0.2, 0.7]))
m.nanquantile(t(1.0, nan, 5.0), 0.5, interpolation="lower")
m.trapezoid(x) | m.trapz(x, dx=2) | m.cumulative_trapezoid(x, y) | m.trapezoid(x, y)
m.trapezoid(x, m.ones(5)) !! one `x` value for each sample point
m.trapezoid(t(True, False)) !! bool is not supported | m.trapezoid(x, y, dx=1) !! invalid combination
m.gradient(x) | m.gradient(x, spacing=(t(0.0, 1.0, 5.0, 6.0).double(),), dim=1)
m.gradient(x, spacing=2, dim=1, edge_order=2)
m.gradient(x, edge_order=3) !! only supports edge_order=1 and edge_order=2
m.gradient(x, dim=(0, 0)) !! appears multiple times
m.gradient(x, spacing=[1.0, 2.0, 3.0]) !! list of length | m.gradient(x[:2], edge_order=2) !! at least edge_order
m.cdist(x, y, 0.0) | m.cdist(x, y, 1.0) | m.cdist(x, y, 1.5) | m.cdist(x, y, 2.0) | m.cdist(x, y, inf)
m.cdist(at(x, [[0.0, 0.0], [1.0, 2.0]]), at(y, [[3.0, 4.5], [0.0, 0.0]]), 2.0)
m.cdist(at(x, [[0.0, 0.0], [1.0, 2.0]]), at(y, [[3.0, 4.5], [0.0, 0.0]]), 1.5)
m.cdist(m.ones(4, 2, 0), m.ones(3, 0)) | m.cdist(x, x[:, :2]) !! must have the same number of columns. X1: 4 X2: 2
m.cdist(x[0], x) !! only supports at least 2D tensors, X1 got: 1D
m.cdist(x, x, -1.0) !! only supports non-negative p values
m.cdist(x.long(), x) !! only supports floating-point dtypes | m.cross(a, b, dim=1) | m.cross(x, y) | a.cross(b, 1)
m.cross(m.ones(2), m.ones(2)) !! no dimension of size 3 | m.renorm(x, 2, 0, 1.0)
m.renorm(x, 0, 0, 1.0) !! non-positive-norm not supported | m.renorm(x[0], 2, 0, 1.0) !! at least 2 dimensions
m.norm(A[0], "nuc") | m.norm(A, "nuc", dim=(1, 2), keepdim=True)
"""

CONVOLUTION = """
F.conv1d(of(V, 2, 3, 7), of(K, 4, 3, 3)) | F.conv1d(of(V, 1, 4, 9), of(K, 6, 2, 3), None, 2, 1, 2, 2)
F.conv1d(of(V, 1, 3, 5), of(K, 3, 1, 2), x[0, :3], 1, 2, 1, 3)
F.conv2d(of(V, 1, 2, 5, 6), of(K, 3, 2, 3, 2), x[0, :3])
F.conv2d(of(V, 1, 4, 5, 3), of(K, 4, 2, 2, 2), x[0], (2, 3), (1, 2), (2, 1), 2)
F.conv2d(of(V, 1, 3, 4, 4), of(K, 6, 1, 1, 1), groups=3)
F.conv3d(of(V, 1, 2, 3, 2, 5), of(K, 1, 2, 2, 2, 3), x[0, :1], (1, 2, 1), (1, 0, 1), (1, 1, 2))
F.conv1d(of(V, 1, 2, 8), of(K, 3, 2, 3), padding="same") | F.conv1d(of(V, 1, 2, 8), of(K, 3, 2, 4), padding="same")
F.conv1d(of(V, 1, 2, 8), of(K, 3, 2, 3), padding="same", dilation=2)
F.conv1d(of(V, 1, 2, 8), of(K, 3, 2, 1), padding="same")
F.conv1d(of(V, 1, 2, 8), of(K, 3, 2, 2), padding="same", dilation=3)
F.conv1d(of(V, 1, 2, 8), of(K, 3, 2, 3), padding="valid")
F.conv2d(of(V, 2, 5, 6), of(K, 3, 2, 2, 2), x[0, :3]) | F.conv_transpose2d(of(V, 3, 4, 5), of(K, 3, 2, 2, 2))
F.conv_transpose1d(of(V, 2, 3, 4), of(K, 3, 2, 3))
F.conv_transpose1d(of(V, 1, 4, 3), of(K, 4, 3, 2), None, 3, 1, 2, 2, 2)
F.conv_transpose1d(of(V, 1, 2, 2), of(K, 2, 1, 3), x[0, :1], 1, 0, 2, 1, 3)
F.conv_transpose2d(of(V, 1, 2, 3, 2), of(K, 2, 2, 2, 3), x[0], (2, 1), (1, 0), (1, 0), 2, (1, 2))
F.conv_transpose3d(of(V, 1, 1, 2, 2, 2), of(K, 1, 2, 2, 1, 2), x[0, :2], (1, 2, 1), (0, 0, 1), (0, 1, 0))
m.view_as_real(F.conv1d(m.complex(of(V, 1, 2, 5), of(K, 1, 2, 5)), m.complex(of(x, 2, 1, 2), of(y, 2, 1, 2)), None, 2, 1, 1, 2))
m.view_as_real(F.conv_transpose1d(m.complex(of(V, 1, 2, 3), of(K, 1, 2, 3)), m.complex(of(x, 2, 1, 2), of(y, 2, 1, 2)), None, 2, 1, 0, 2))
m.view_as_real(F.conv2d(m.complex(of(V, 1, 2, 4, 3), of(K, 1, 2, 4, 3)), m.complex(of(x, 1, 2, 2, 3), of(y, 1, 2, 2, 3)), None, 1, 1))
F.unfold(of(V, 1, 2, 5, 6), (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2))
F.unfold(of(V, 1, 2, 3, 4), 2, 1, 1, 2)
F.fold(of(V, 1, 8, 6), (3, 4), 2, 1, 1, 2) | F.fold(F.unfold(of(V, 1, 1, 3, 3), 2), (3, 3), 2)
F.unfold(of(V, 3, 4, 4), 2)
"""

POOLING = """
F.max_pool1d(of(V, 2, 3, 7), 3, 2, 1) | F.max_pool1d(of(V, 1, 2, 8), 2, 1) | F.max_pool2d(of(V, 1, 2, 5, 6), 3, 2, 1)
F.max_pool3d(of(V, 1, 1, 4, 3, 4), 2, 2, 1) | F.max_pool1d(of(V, 1, 2, 9), 3, 2, 1, 2)
F.avg_pool1d(of(V, 2, 3, 7), 3, 2, 1) | F.avg_pool1d(of(V, 2, 3, 7), 3, 2, 1, False, False)
F.avg_pool2d(of(V, 1, 2, 5, 6), 3, 2, 1) | F.avg_pool2d(of(V, 1, 2, 5, 6), 3, 2, 1, False, False)
F.avg_pool3d(of(V, 1, 1, 4, 3, 4), 2, 2, 1) | F.avg_pool3d(of(V, 1, 1, 4, 3, 4), 2, 2, 1, False, False)
F.max_pool1d(of(V, 1, 1, 7), 3, 3, ceil_mode=True) | F.avg_pool1d(of(V, 1, 1, 7), 3, 3, ceil_mode=True)
F.max_pool1d(of(V, 1, 1, 5), 2, 2, 1, ceil_mode=True) | F.avg_pool2d(of(V, 1, 3, 3), 2, divisor_override=1)
F.adaptive_avg_pool1d(of(V, 2, 3, 7), 1) | F.adaptive_avg_pool1d(of(V, 2, 3, 7), 3)
F.adaptive_avg_pool1d(of(V, 2, 3, 7), 5)
F.adaptive_avg_pool1d(of(V, 1, 2, 7), 9) | F.adaptive_max_pool1d(of(V, 2, 3, 7), 1)
F.adaptive_max_pool1d(of(V, 2, 3, 7), 3)
F.adaptive_max_pool1d(of(V, 2, 3, 7), 5) | F.adaptive_max_pool1d(of(V, 1, 2, 7), 9)
F.adaptive_avg_pool2d(of(V, 1, 2, 5, 6), 1)
F.adaptive_avg_pool2d(of(V, 1, 2, 5, 6), (None, 2)) | F.adaptive_max_pool3d(of(V, 1, 1, 3, 4, 5), (2, 2, 3))
F.adaptive_avg_pool3d(of(V, 1, 1, 3, 4, 2), (2, 3, 1)) | F.max_unpool1d(*F.max_pool1d(x[:1], 2, return_indices=True), 2)
F.max_unpool1d(*F.max_pool1d(x[:1], 2, return_indices=True), 2, output_size=(5,))
F.max_unpool2d(*F.max_pool2d(of(V, 1, 2, 4, 6), 2, return_indices=True), 2) | F.lp_pool1d(of(V, 2, 3, 7), 2, 2)
F.lp_pool2d(of(V, 1, 2, 5, 6).abs(), 3, 2) | F.lp_pool3d(of(V, 1, 1, 2, 2, 4), 2, (1, 2, 2))
F.lp_pool2d(of(V, 1, 2, 4, 4), inf, 2)
F.lp_pool2d(of(V, 1, 2, 4, 4), -inf, 2)
"""

RESAMPLING = """
F.interpolate(of(V, 1, 2, 3), scale_factor=2) | F.interpolate(of(V, 1, 2, 3), 2) | F.interpolate(of(V, 1, 2, 3), 5)
F.interpolate(of(V, 1, 2, 3), 2, mode="nearest-exact") | F.interpolate(of(V, 1, 1, 2, 3), (4, 3))
F.interpolate(of(V, 1, 2, 4), 7, mode="linear") | F.interpolate(of(V, 1, 2, 4), 7, mode="linear", align_corners=True)
F.interpolate(of(V, 1, 2, 5), 2, mode="linear") | F.interpolate(of(V, 1, 2, 6), 1, mode="linear", align_corners=True)
F.interpolate(of(V, 1, 2, 1), 4, mode="linear") | F.interpolate(of(V, 1, 2, 3, 4), (5, 2), mode="bilinear")
F.interpolate(of(V, 1, 2, 3, 4), (5, 2), mode="bilinear", align_corners=True)
F.interpolate(of(V, 1, 1, 3, 4), (5, 2), mode="bicubic")
F.interpolate(of(V, 1, 1, 4, 5), (7, 9), mode="bicubic", align_corners=True)
F.interpolate(of(V, 1, 1, 2, 3, 2), (3, 2, 4), mode="trilinear")
F.interpolate(of(V, 1, 1, 5, 4), (2, 3), mode="area")
F.interpolate(of(V, 1, 1, 5, 6), (2, 3), mode="bilinear", antialias=True)
F.interpolate(of(V, 1, 1, 5, 6), (2, 3), mode="bicubic", antialias=True)
F.interpolate(of(V, 1, 1, 5), scale_factor=1.5, mode="linear")
F.interpolate(of(V, 1, 1, 5), scale_factor=1.5, mode="linear", recompute_scale_factor=True)
F.pixel_shuffle(of(V, 1, 8, 3, 2), 2)
F.pixel_unshuffle(of(V, 1, 2, 6, 4), 2) | F.local_response_norm(of(V, 1, 4, 3), 3, 0.1, 0.75, 2.0)
F.affine_grid(of(V, 1, 2, 3), (1, 1, 3, 4), align_corners=False)
F.affine_grid(of(V, 1, 3, 4), (1, 2, 2, 2, 3), align_corners=True)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), align_corners=False)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), align_corners=True)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), "bilinear", "border", False)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), "bilinear", "border", True)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), "bilinear", "reflection", False)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), "bilinear", "reflection", True)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), "bicubic", "zeros", False)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), "bicubic", "zeros", True)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), "bicubic", "border", False)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), "bicubic", "border", True)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), "bicubic", "reflection", False)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), "bicubic", "reflection", True)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), "nearest", align_corners=False)
F.grid_sample(of(V, 1, 2, 3, 4), of(K, 1, 2, 3, 2), "nearest", "border", True)
F.grid_sample(of(V, 1, 1, 2, 3, 4), of(K, 1, 1, 2, 3, 3), align_corners=False)
F.grid_sample(of(V, 1, 1, 2, 3, 4), of(K, 1, 1, 2, 3, 3), "nearest", align_corners=False)
"""

BAGS_AND_MARGINS = """
F.embedding_bag(t(0, 2, 2, 5, 1), of(V, 6, 3), t(0, 3, 3), mode="sum")
F.embedding_bag(t(0, 2, 2, 5, 1), of(V, 6, 3), t(0, 3, 3), mode="mean")
F.embedding_bag(t(0, 2, 2, 5, 1), of(V, 6, 3), t(0, 3, 3), mode="max")
F.embedding_bag(m.tensor([[0, 2], [3, 3]]), of(V, 6, 3), mode="sum")
F.embedding_bag(m.tensor([[0, 2], [3, 3]]), of(V, 6, 3), mode="mean")
F.embedding_bag(m.tensor([[0, 2], [3, 3]]), of(V, 6, 3), mode="max")
F.embedding_bag(t(0, 2, 2, 5, 1), of(V, 6, 3), t(0, 3, 3), mode="sum", per_sample_weights=of(K, 5))
F.embedding_bag(t(0, 2, 2, 5, 1), of(V, 6, 3), t(0, 3, 5), mode="sum", include_last_offset=True)
F.pdist(x, 1) | F.pdist(x, 1.5) | F.pdist(x, 2) | F.pdist(x, inf)
F.multi_margin_loss(x, t(0, 2, 1), 1, 0.5) | F.multi_margin_loss(x, t(0, 2, 1), 2, 0.5, reduction="none")
F.multi_margin_loss(x, t(0, 2, 1), weight=p[0].detach(), reduction="none")
F.multilabel_margin_loss(x[0], t(3, 0, -1, 1))
F.multilabel_margin_loss(x[:2], m.tensor([[3, 0, -1, 1]] * 2), reduction="none")
F.multilabel_soft_margin_loss(x[:1], m.tensor([[1.0, 0.0, 1.0, 0.0]]).double())
F.cosine_embedding_loss(x, y, t(1, -1, 1), 0.2)
F.cosine_embedding_loss(x, y, t(1, -1, 1), 0.2, reduction="none") | F.triplet_margin_with_distance_loss(x, y, p)
F.triplet_margin_with_distance_loss(x, y, p, distance_function=lambda a, b: (a - b).abs().sum(-1), margin=2.0, swap=True, reduction="none")
"""

SPATIAL_EDGES = """
F.max_pool2d(of(V, 1, 2, 5, 6), 3, 2, 1, return_indices=True)[1] | F.lp_pool1d(at(x, [[0.0] * 4]), 2.0, 2)
F.max_pool3d(of(V, 1, 1, 4, 3, 4), 2, 2, 1, return_indices=True)[1]
F.adaptive_max_pool1d(of(V, 1, 2, 7), 5, return_indices=True)[1]
F.conv1d(m.zeros(0, 2, 5), m.ones(3, 2, 2)) | F.conv1d(m.tensor([[[1, 2, 3]]]), m.tensor([[[1, 1]]])) | F.pdist(x, 0)
F.max_pool1d(at(x, [[1.0, 1.0, 0.0, 0.0]]), 2) | F.max_pool1d(m.tensor([[1.0, nan, 3.0]]), 3, return_indices=True)
F.max_pool1d(m.full((1, 1, 3), -inf), 3, 1, 1, return_indices=True)
F.max_pool1d(m.tensor([[-inf, -inf]]), 1, return_indices=True)
F.max_pool1d(m.tensor([[[nan, 1.0, 2.0, 2.0, -inf, -inf, 3.0, nan]]]), 2, return_indices=True)
F.max_pool2d(u8(0, 0, 0, 0).reshape(1, 2, 2), 2)
F.max_pool2d(m.tensor([[[[-5, -3], [-9, -3]]]]), 2) | F.adaptive_avg_pool2d(m.ones(1, 0, 4, 4), (2, 3))
F.adaptive_max_pool1d(m.ones(2, 3, 4), 0)
F.avg_pool2d(m.tensor([[[1, 2], [4, 8]]]), 2) | F.lp_pool2d(at(A, [[[0.0] * 4] * 4]), 2.0, 2)
F.grid_sample(m.ones(0, 2, 3, 3), m.ones(0, 4, 5, 2), align_corners=False)
F.embedding_bag(t(0, 2, 2, 5, 1), of(V, 6, 3), t(0, 3, 3), padding_idx=2)
F.embedding_bag(m.tensor([]).long(), of(V, 4, 2), t(0), mode="max")
F.conv1d(m.ones(1, 2, 5), m.ones(1, 3, 2)) !! to have 3 channels, but got 2 channels instead
F.conv1d(m.ones(1, 2, 3), m.ones(1, 2, 4)) !! Kernel size can't be greater than actual input size
F.conv1d(m.ones(1, 2, 3), m.ones(1, 2, 2), stride=0) !! non-positive stride is not supported
F.conv1d(m.ones(1, 2, 3), m.ones(1, 2, 2), padding=-1) !! negative padding is not supported
F.conv1d(m.ones(1, 2, 3), m.ones(1, 2, 2), dilation=0) !! dilation should be greater than zero
F.conv1d(m.ones(1, 2, 3), m.ones(1, 2, 2), stride=2, padding="same") !! not supported for strided
F.conv1d(m.ones(1, 2, 3), m.ones(1, 2, 2), padding="full") !! padding string
F.conv1d(m.ones(1, 2, 3), m.ones(3, 1, 2), groups=2) !! divisible by
F.conv1d(m.ones(1, 2, 3), m.ones(3, 2, 2), m.ones(2)) !! expected bias to be 1-dimensional
F.conv_transpose1d(m.ones(1, 2, 3), m.ones(3, 2, 2)) !! to have 3 channels, but got 2
F.conv_transpose1d(m.ones(1, 2, 3), m.ones(2, 2, 2), output_padding=1) !! output padding must be
F.fold(m.ones(1, 7, 4), 3, 2) !! divisible by the product of kernel_size
F.fold(m.ones(1, 8, 5), 3, 2) !! number of sliding blocks
F.conv1d(m.ones(1, 1, 3).double(), m.ones(1, 1, 2)) | F.conv2d(m.ones(1, 3, 4, 4), None) !! conv2d
F.conv2d(m.ones(1, 3, 4, 4), [[1.0]]) !! conv2d
F.conv2d(m.ones(1, 3, 4, 4), 2.0) !! conv2d | F.conv2d(m.ones(1, 3, 4, 4), m.ones(2, 3, 2, 2), 1.0) !! conv2d
F.conv2d(m.ones(1, 3, 4, 4), m.ones(2, 3, 2, 2), groups=1.0) !! groups
F.conv2d(m.ones(1, 3, 4, 4), m.ones(2, 3, 2, 2), groups="1") !! groups
F.conv1d(m.ones(2, 3, 4).double(), m.ones(2, 3, 0).double(), padding=1) !! kernel size should be greater than zero
F.conv2d(m.ones(1, 1, 3, 3).bool(), m.ones(1, 1, 2, 2).bool()) !! not implemented for 'Bool'
F.max_pool1d(m.ones(4), 2) !! Expected 2D or 3D
F.max_pool2d(m.ones(1, 2, 2), 3) !! Output size is too small
F.max_pool2d(m.ones(1, 4, 4), 2, padding=2) !! at most half of effective kernel size
F.avg_pool2d(m.ones(1, 4, 4), 2, divisor_override=0) !! divisor must be not zero
F.adaptive_avg_pool2d(m.ones(4, 4), (2, 2)) !! Input dimension should be at least 3
F.adaptive_avg_pool2d(m.ones(4, 4), 2) !! Expected 3D or 4D tensor, but got
F.adaptive_avg_pool1d(m.ones(4, 4, 4), 1.5)
F.adaptive_avg_pool2d(m.ones(4, 4, 4), 1.5) | F.adaptive_max_pool2d(m.ones(4, 4, 4), 1.5)
F.max_unpool2d(m.ones(1, 1, 2, 2), m.tensor([[[[0, 6], [12, 16]]]]), 2) !! Found an invalid max index: 16
F.max_unpool2d(m.ones(1, 1, 2, 2), m.tensor([[[[0, 6], [12, -1]]]]), 2) !! Found an invalid max index: -1
F.max_unpool2d(m.ones(1, 1, 2, 2), [[[[0, 6], [12, 1]]]], 2) !! must be Tensor, not list
F.interpolate(m.ones(1, 1, 4)) !! either size or scale_factor should be defined
F.interpolate(m.ones(1, 1, 4), 2, 2.0) !! only one of size or scale_factor
F.interpolate(m.ones(1, 1, 4), 2, align_corners=True) !! align_corners option can only
F.interpolate(m.ones(1, 1, 4), 2, mode="linear", antialias=True) !! Anti-alias option
F.interpolate(m.ones(1, 1, 4), (2, 2)) !! same number of spatial dimensions
F.pixel_shuffle(m.ones(1, 3, 2, 2), 2) !! divisible by the square of
F.pixel_unshuffle(m.ones(1, 3, 3, 2), 2) !! expects height to be divisible by
F.grid_sample(m.ones(1, 1, 2, 2), m.ones(1, 1, 1, 2), "linear") !! expected mode to be
F.grid_sample(m.ones(1, 1, 2, 2), m.ones(1, 1, 1, 2), padding_mode="wrap") !! expected padding_mode to be
F.grid_sample(m.ones(1, 1, 2, 2), m.ones(1, 1, 1, 3))
F.grid_sample(m.ones(1, 1, 2, 2, 2), m.ones(1, 1, 1, 1, 3), "bicubic") !! bicubic
F.grid_sample(m.ones(1, 2, 3, 3).double(), m.ones(1, 4, 5, 2), align_corners=False)
F.affine_grid(m.ones(2, 2, 3), (3, 1, 4, 5), False)
F.affine_grid(m.ones(2, 2, 3).long(), (2, 1, 4, 5), False) !! floating point
F.affine_grid(m.ones(2, 2, 3), (2, 1, 0, 5), False) !! positive output size
F.embedding_bag(t(1), m.ones(4, 2)) | F.embedding_bag(m.tensor([[1]]), m.ones(4, 2), t(0))
F.embedding_bag(m.tensor([[1]]), m.ones(4, 2), mode="median")
F.embedding_bag(t(1, 2), m.ones(4, 2), t(1))
F.embedding_bag(m.tensor([[1]]), m.ones(4, 2), per_sample_weights=m.ones(1, 1))
F.embedding_bag(t(1, 9), m.ones(9, 3).double(), t(0)) !! Expected idx >= 0 && idx < num_embeddings but found idx to be 9
F.embedding_bag(t(1), m.ones(10), t(0)) !! weight has to be a 2D Tensor
F.embedding_bag(t(1), m.ones(10, 2), t(0), mode="max", scale_grad_by_freq=True) !! max mode does not support scaling
F.embedding_bag(t(1), m.ones(10, 2), t(0), padding_idx=10) !! padding_idx must be within | F.pdist(m.ones(3)) !! 2D
F.multi_margin_loss(x, t(0, 2, 1), 3) !! only p == 1 and p == 2
F.triplet_margin_loss(x, y, p, margin=-1.0) !! margin must be greater than 0
"""

PROGRAMS = frozenset(split(IN_PLACE))

BLOCKS = {
    "elementwise": split(ELEMENTWISE),
    "reductions": split(REDUCTIONS),
    "reading": split(READING),
    "shaping": split(SHAPING),
    "joining": split(JOINING),
    "matrices": split(MATRICES),
    "gathering": split(GATHERING),
    "products": split(PRODUCTS),
    "creation": split(CREATION),
    "old_names": split(OLD_NAMES),
    "conversion": split(CONVERSION),
    "protocols": split(PROTOCOLS),
    "in_place": split(IN_PLACE),
    "scattering": split(SCATTERING),
    "gathered": split(GATHERED),
    "numbers": split(NUMBERS),
    "shapes": split(SHAPES),
    "statistics": split(STATISTICS),
    "linalg": split(LINALG),
    "activations": split(ACTIVATIONS),
    "single_constants": split(SINGLE_CONSTANTS),
    "layers": split(LAYERS),
    "losses": split(LOSSES),
    "convolution": split(CONVOLUTION),
    "pooling": split(POOLING),
    "resampling": split(RESAMPLING),
    "bags_and_margins": split(BAGS_AND_MARGINS),
    "spatial_edges": split(SPATIAL_EDGES),
}

#: Cases recorded with thirteen digits, and their tolerance (others: six digits, and 2e-5).
PRECISE = {"linalg": 1e-8, "activations": 1e-9, "single_constants": 1e-7, "layers": 1e-9, "losses": 1e-9}
PRECISE |= {"convolution": 1e-10, "pooling": 1e-10, "resampling": 1e-10, "bags_and_margins": 1e-9}
