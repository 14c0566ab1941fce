"""First and second derivatives of composites against finite differences, in float64."""

from __future__ import annotations

from typing import Any

import cases
import numpy as np
import pytest

import chainrule as cr
from chainrule.testing import gradcheck, gradgradcheck

EXPRESSIONS = cases.split("""
x.var(0) | x.std(1) | m.var_mean(x, 1)[0] | x.norm() | m.norm(x, 3, 1) | x.logsumexp(1) | x.softmax(1)
x.log_softmax(0) | x.cumsum(0) | x.cumprod(1) | x.logcumsumexp(1) | x.prod() | x.prod(0) | x.max(1).values
x.median(1).values | x.sort(0).values | x.topk(2).values | x.quantile(0.3, 1) | m.aminmax(x)[1] | m.dist(x, y)
m.logit(p) | m.xlogy(p, q) | p ** q | 2 ** x | 1 - x | x / q | m.lerp(x, y, p) | m.addcmul(x, y, p)
m.addcdiv(x, y, q) | m.hypot(x, y) | m.atan2(x, y) | m.logaddexp(x, y) | m.where(y > 0, x * x, x) | x.clamp(-1, 1)
m.maximum(x, y) | x[1:, ::2] | x[[0, 0, 2]] | x[x > 0] | x.gather(1, i.abs() % 4) | x.scatter_add(0, i.abs() % 3, y)
x.index_select(1, m.tensor([1, 1])) | x.masked_fill(y > 0, 0.0) | m.cat([x, y], 1) | m.stack([x, y], 1)
x.repeat(2, 2) | x.roll(1, 0) | x.flip(0) | x.tril() | x.diagonal() | x[0].diag() | x.unfold(1, 2, 1)
x.expand(2, 3, 4) | x.T @ y | m.einsum('ij,kj->ik', x, y) | m.einsum('ii', a) | m.tensordot(a, b, 1) | m.kron(a, b)
m.outer(x[0], y[1]) | x.diff(dim=0) | m.pad_(x) | m.trace(a) | m.chain_matmul(a, b, c) | x.movedim(0, 1)
m.polar(p, q).abs() | x.sgn() * x
""")


class _Library:
    """The library, and the functions that have no name of their own there."""

    def __getattr__(self, name: str) -> Any:
        return getattr(cr, name)

    @staticmethod
    def pad_(x: Any) -> Any:
        from chainrule.ops.joining import pad

        return pad(x, (1, 2, 0, 1), value=1.5)


@pytest.mark.parametrize("case", EXPRESSIONS)
def test_derivatives(case: str) -> None:
    arrays = cases.arrays()
    used = [k for k in arrays if k != "i" and any(k == word for word in _words(case))]
    tensors = [cr.from_numpy(arrays[k]).requires_grad_() for k in used]
    other = {"i": cr.from_numpy(arrays["i"])}

    def function(*inputs: Any) -> Any:
        return cases.run(_Library(), case, {**other, **dict(zip(used, inputs, strict=True))})

    with np.errstate(all="ignore"):
        assert gradcheck(function, tensors)
        assert gradgradcheck(function, tensors)


def _words(case: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in case.replace("'", " ")).split()
