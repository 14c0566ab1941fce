"""Derivatives of composites compared with differences; of all recorded cases in both modes, and of batches.

All entries of the Jacobians, and second derivatives of two of three composites, are slow tests.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from pathlib import Path
from typing import Any

import cases
import numpy as np
import observe
import pytest

import chainrule as cr
from chainrule.testing import gradcheck, gradgradcheck

PART = 3  # the fraction of composites whose second derivatives are tested in every run

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text())
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
m.outer(x[0], y[1]) | x.diff(dim=0) | F.pad(x, (1, 2, 0, 1), value=1.5) | m.trace(a) | m.chain_matmul(a, b, c)
x.movedim(0, 1) | m.polar(p, q).abs() | x.sgn() * x | m.cdist(x, y, 1.5) | m.cdist(x, y, 2.0) | m.renorm(x, 2, 0, 1.0)
m.cov(x, aweights=q[0].detach())
""")
COMPOSITES = [case for block in cases.PRECISE for case in cases.BLOCKS[block]]
#: Their gradient intentionally differs from the derivative: a clamped variance has one, a padding row has none.
NOT_DERIVATIVES = {
    "F.gaussian_nll_loss(x, y, p, full=True, eps=0.3)",
    "F.embedding(i.abs() % 4, A[0], padding_idx=1)",
}
DIFFERENTIABLE = [case for case in EXPRESSIONS + COMPOSITES if case not in NOT_DERIVATIVES]
#: All recorded cases with gradients, and those above.
ALL = list(
    dict.fromkeys([case for block in RECORDED.values() for case in block if "grads" in block[case]] + EXPRESSIONS)
)


#: Cases that vmap rejects with an error: their shape or control flow depends on numbers, or they draw some.
DEPENDS_ON_VALUES = [
    "x[x>0]", "x[x > 0]", "x[x[:,0]>0]", "x[:,x[0]>0]", "x.masked_select(x>0)", "x.masked_select(x[0]>0)",
    "x.index_put((x>0,),m.tensor(1.))", "max(x[0])", "z[z.detach()>0]=0.", "z[z.detach()>0]*=2", "z.uniform_();z=z*0",
    "z.exponential_();z=z*0", "m.quantile(at(x, [1.0, 4.0, 9.0]), at(p, [0.25, 0.75]))",
    "m.nanquantile(at(x, [1.0, nan, 9.0, 4.0]), at(p, [0.2, 0.7]))",
]  # fmt: skip
#: Tangents that are nan, as in PyTorch.
NAN = ["x[:0].mean(0)", "F.lp_pool1d(at(x, [[0.0] * 4]), 2.0, 2)", "F.lp_pool2d(at(A, [[[0.0] * 4] * 4]), 2.0, 2)"]


def by_turns(found: list[str], turn: int) -> list[Any]:
    """Return the cases with all but those of this turn marked slow: each case always runs in one way, and here in two."""
    return [
        case if zlib.crc32(case.encode()) % 2 == turn else pytest.param(case, marks=pytest.mark.slow) for case in found
    ]


def inputs_of(case: str, dtype: Any = np.float64) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the differentiated inputs of a case, and the others."""
    words = set(re.findall(r"(?<![\w.])\w+", case)) - {"i", *re.findall(r"(\w+)(?:\[[^]]*\])?\.detach", case)}
    words |= {"x"} if case in cases.PROGRAMS else set()  # which begin with a clone of x
    arrays = {k: cr.from_numpy(v.astype(dtype) if v.dtype.kind == "f" else v) for k, v in cases.arrays().items()}
    for name in {"V", "K"} & words:  # long ones: only the part that the case uses
        shapes = re.findall(rf"of\({name}, ([\d, ]+)\)", case)
        arrays[name] = arrays[name][: max(math.prod(map(int, shape.split(","))) for shape in shapes)]
    return {k: x for k, x in arrays.items() if k in words}, {k: x for k, x in arrays.items() if k not in words}


def function_of(case: str, dtype: Any = np.float64) -> Any:
    """Return a function of the inputs that a case differentiates, in their order."""
    names, others = inputs_of(case, dtype)
    return lambda *xs: cases.run(cr, case, {**others, **dict(zip(names, xs, strict=True))})


@pytest.mark.parametrize("case", DIFFERENTIABLE)
def test_derivatives(case: str) -> None:
    leaves = [t.requires_grad_() for t in inputs_of(case)[0].values()]
    with np.errstate(all="ignore"):
        assert gradcheck(function_of(case), leaves, check_forward_ad=True, fast_mode=True)


@pytest.mark.slow
@pytest.mark.parametrize("case", DIFFERENTIABLE)
def test_every_entry_of_the_jacobian(case: str) -> None:
    leaves = [t.requires_grad_() for t in inputs_of(case)[0].values()]
    with np.errstate(all="ignore"):
        assert gradcheck(function_of(case), leaves, check_forward_ad=True)


@pytest.mark.parametrize(
    "case",
    [
        case if number % PART == 0 else pytest.param(case, marks=pytest.mark.slow)
        for number, case in enumerate(DIFFERENTIABLE)
        if case != "L.matrix_power(A[0], 5)"  # too large for second differences
    ],
)
def test_second_derivatives(case: str) -> None:
    leaves = [t.requires_grad_() for t in inputs_of(case)[0].values()]
    large = "V, " in case  # up to sixty numbers: use one direction
    with np.errstate(all="ignore"):
        assert gradgradcheck(function_of(case), leaves, atol=1e-4 if "L." in case else 1e-5, fast_mode=large)


@pytest.mark.parametrize("case", COMPOSITES)
def test_float32_stays_float32(case: str) -> None:
    case = case.replace(".double()", "")
    leaves = [t.requires_grad_() for t in inputs_of(case, np.float32)[0].values()]
    out = function_of(case, np.float32)(*leaves)
    assert out.dtype == np.float32
    grads = cr.autograd.grad(out.sum(), leaves, allow_unused=True)
    assert {g.dtype for g in grads if g is not None} == {cr.float32}


def numbers_of(case: str) -> Any:
    """Return the floating-point numbers in the results of a case, as a function of its inputs."""

    def function(*xs: Any) -> Any:
        parts = [x for x in observe.flat(function_of(case)(*xs)) if isinstance(x, cr.Tensor) and x.is_floating_point()]
        return cr.cat([x.flatten().double() for x in parts])

    return function


def is_single(case: str) -> bool:
    return any(word in case for word in ("float32", "float()", "half", "m.zeros(3,4)"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # some cases are at singular points
@pytest.mark.parametrize("case", by_turns(ALL, 0))
def test_gradients_of_a_batch_are_a_loops(case: str) -> None:
    batch = [cr.stack([x, x + 0.02 * x.cos(), 1.03 * x]) for x in inputs_of(case)[0].values()]
    gradient = cr.func.grad(lambda *xs: (numbers_of(case)(*xs) ** 2).sum(), tuple(range(len(batch))))
    loop = [gradient(*[x[i].clone() for x in batch]) for i in range(3)]  # some write into them
    try:
        batched = cr.func.vmap(gradient)(*batch)
    except RuntimeError as error:
        assert "vmap" in str(error)
        assert case in DEPENDS_ON_VALUES
        return
    for i, one in enumerate(loop):
        for all_of_them, g in zip(batched, one, strict=True):
            all_of_them, g = all_of_them.detach(), g.detach()  # of leaves created inside
            bound = 1e-9 * max(1, float(abs(g.nan_to_num(0, 0, 0)).max()))
            np.testing.assert_allclose(all_of_them[i].numpy(), g.numpy(), rtol=1e-8, atol=bound)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", by_turns([case for case in ALL if case not in {*NOT_DERIVATIVES, *NAN}], 1))
def test_forward_mode_is_reverse_mode(case: str) -> None:
    """⟨g, Jt⟩ = ⟨Jᵀg, t⟩, to the last digits."""
    primals = tuple(inputs_of(case)[0].values())
    tangents = tuple(cr.from_numpy(np.cos(3 + np.arange(x.numel())).reshape(x.shape)) for x in primals)
    with np.errstate(all="ignore"):
        out, moved = cr.func.jvp(numbers_of(case), primals, tangents)
        g = cr.from_numpy(np.sin(2 + np.arange(out.numel())))
        pulled = cr.func.vjp(numbers_of(case), *primals)[1](g)
    back = [(a * b).sum().item() for a, b in zip(pulled, tangents, strict=True)]
    scale = max(1.0, *map(abs, back))
    rel, tiny = (1e-5, 1e-3) if is_single(case) else (1e-9, 1e-10)
    assert (g * moved).sum().item() == pytest.approx(sum(back), rel=rel, abs=tiny * scale, nan_ok=True)
