"""Compiled equals eager, bit for bit: public functions with gradients, for the cases of the comparison of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzz.comparing import compare
from ops import cases

import chainrule as cr
from chainrule._src.api.declare import OPERATIONS
from chainrule.tree import tree_map

PART = 8  # the fraction of cases in a default run

#: known differences, with reasons
NOT_THE_SAME = {
    # A recording stores values, so nothing is overwritten that a rule needs: it computes cases in which eager raises.
    "w=z*z;z.add_(1);z=w+z": "structure",
    "w=z.exp();w.add_(1);z=w": "structure",
    "w=z.exp();w2=w*2;w.add_(1);z=w2": "structure",
    "w=z.sin();z.add_(1);z=w": "structure",
    # Argument checks that compare memory.
    "m.take(m.arange(6.0), t(0, 1, 2), out=m.ones(1).expand(3)) !! more than one element of the written-to tensor": "for RuntimeError",
    "m.searchsorted(t(3.0, 2.0, 1.0), t(1.0), sorter=t(0, 1)) !! boundary and sorter must have the same size": "for RuntimeError",
    # Random numbers whose number depends on values, and powers of integers run eagerly.
    "z.uniform_();z=z*0": "not compiled",
    "z.exponential_();z=z*0": "not compiled",
    "t(2, -1, 1, -1) ** t(-1, -3, -2, 2)": "not compiled",
    "(-1) ** t(-1, -2, 3)": "not compiled",
    "2 ** t(-1, 2)": "not compiled",
}


def flat(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)) and not isinstance(result, cr.Size):
        return [part for item in result for part in flat(item)]
    return [result]


def with_gradients(function: Callable[..., Any], leaves: list[Any]) -> Any:
    """Return the results of a function, and the gradients of a weighted sum of them."""
    parts = flat(function())
    roots = [t for t in parts if isinstance(t, cr.Tensor) and t.requires_grad and not t.is_leaf and not t.is_complex()]
    grads: Any = ()
    if roots:
        weights = [np.cos(1 + np.arange(t.numel(), dtype=float)).reshape(tuple(t.shape)) for t in roots]
        cotangents = [cr.from_numpy(w).to(t.dtype) for w, t in zip(weights, roots, strict=True)]
        try:
            grads = cr.autograd.grad(roots, leaves, cotangents, allow_unused=True)
        except RuntimeError as error:
            grads = type(error).__name__
    known = (cr.Tensor, bool, int, float, complex)
    return [p.detach() if isinstance(p, cr.Tensor) else p if isinstance(p, known) else repr(p) for p in parts], grads


def case_function(case: str) -> Callable[..., Any]:
    def f(inputs: Any) -> Any:
        own = {name: t if name == "i" else t.detach().requires_grad_() for name, t in inputs.items()}
        return with_gradients(lambda: cases.run(cr, case, dict(own)), [t for name, t in own.items() if name != "i"])

    return f


def inputs(dtype: str, factor: float) -> dict[str, Any]:
    return {
        name: cr.from_numpy(x.copy() if name == "i" else (x * factor).astype(dtype))
        for name, x in cases.arrays().items()
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", [PART, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("block", cases.BLOCKS)
def test_cases(block: str, part: int) -> None:
    differences = {}
    for number, case in enumerate(cases.BLOCKS[block][::part]):
        dtype = ("float32", "float64")[number % 2]
        found = compare(case_function(case), (inputs(dtype, 1),), (inputs(dtype, 1.01),))
        if found and not (case in NOT_THE_SAME and NOT_THE_SAME[case] in found):
            differences[case] = found
    assert not differences


SAMPLED = {op.names[0]: op for op in OPERATIONS.values() if op.sample and op.names}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(SAMPLED))
def test_sample_of(name: str) -> None:
    """Public functions with arguments from their declarations, forward and backward."""
    operation = SAMPLED[name]

    def drawn(seed: int) -> tuple[Any, ...]:
        cr.manual_seed(seed)
        return eval(
            f"_take({operation.sample})",
            {**{name: getattr(cr, name) for name in cr.__all__}, "_take": lambda *args, **kwargs: (args, kwargs)},
        )

    def f(args: Any, kwargs: Any) -> Any:
        leaves = []

        def leaf(x: Any) -> Any:
            if isinstance(x, cr.Tensor) and x.is_floating_point():
                leaves.append(x.detach().requires_grad_())
                return leaves[-1]
            return x

        args, kwargs = tree_map(leaf, (args, kwargs))
        return with_gradients(lambda: operation.public(*args, **kwargs), leaves)

    assert not compare(f, drawn(0), drawn(1))
