"""Compiled equals eager, bit for bit: all primitives with their samples, forward and under transformations."""

from __future__ import annotations

import importlib
import pkgutil
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fuzz.comparing import compare

import chainrule as cr
import chainrule._src.table
from chainrule._src.rules.primitive import TABLE, Primitive, unsupported
from chainrule.testing.rulecheck import every_sample
from chainrule.testing.samples import Sample

for _module in pkgutil.iter_modules(chainrule._src.table.__path__):
    importlib.import_module(f"chainrule._src.table.{_module.name}")

#: A decomposition that fails is not recorded, but runs eagerly.
EAGER = {"cholesky_info"}
PART = 36  # the fraction of a primitive's cases in a default run
func = cr.func
Function = Callable[..., Any]


def like(seed: int, results: Any) -> Any:
    """Return random cotangents, or tangents, for a tensor or a tuple of tensors."""
    rng = np.random.default_rng(seed)

    def one(x: Any) -> Any:
        numbers = rng.normal(size=tuple(x.shape))
        if x.is_complex():
            numbers = numbers + 1j * rng.normal(size=tuple(x.shape))
        return cr.tensor(np.asarray(numbers)).to(x.dtype)

    return tuple(map(one, results)) if isinstance(results, tuple) else one(results)


def forms(row: Primitive, sample: Sample) -> dict[str, Function]:
    """Return functions of a primitive's operands by name: its value, and derivatives."""
    function = row.function if row.function is not None and not row.parameters else row

    def forward(*operands: Any) -> Any:
        return function(*operands, **sample.params)

    at = [i for i in sample.floating if row.differentiable and not isinstance(_rule(row, i), unsupported)]
    if not at:
        return {"forward": forward}

    def of_some(operands: Any) -> tuple[Function, tuple[Any, ...]]:
        """Return a function of the operands that can be differentiated."""

        def f(*some: Any) -> Any:
            given = dict(zip(at, some, strict=True))
            return forward(*[given.get(i, x) for i, x in enumerate(operands)])

        return f, tuple(operands[i] for i in at)

    def gradient(*operands: Any) -> Any:
        f, some = of_some(operands)
        out, pullback = func.vjp(f, *some)
        return out, pullback(like(1, out))

    def jvp(*operands: Any) -> Any:
        f, some = of_some(operands)
        return func.jvp(f, some, like(2, some))

    def hvp(*operands: Any) -> Any:
        _, some = of_some(operands)
        return func.jvp(lambda *some: gradient(*_put(operands, at, some))[1], some, like(3, some))

    def grad_of_grad(*operands: Any) -> Any:
        _, some = of_some(operands)
        grads, pullback = func.vjp(lambda *some: gradient(*_put(operands, at, some))[1], *some)
        return pullback(like(4, grads))

    return {"forward": forward, "gradient": gradient, "jvp": jvp, "hvp": hvp, "grad of grad": grad_of_grad}


def _rule(row: Primitive, position: int) -> Any:
    return row.vjps.get(row.operands[min(position, len(row.operands) - 1)].lstrip("*"))


def _put(operands: Any, at: list[int], some: Any) -> list[Any]:
    given = dict(zip(at, some, strict=True))
    return [given.get(i, x) for i, x in enumerate(operands)]


def cases(row: Primitive) -> Iterator[tuple[str, Sample, str]]:
    for sample in every_sample(row):
        for form in forms(row, sample):
            for dtype in ("float32", "float64"):
                yield form, sample, dtype
                if form in ("forward", "gradient"):
                    yield f"vmap {form}", sample, dtype


def difference(row: Primitive, form: str, sample: Sample, dtype: str) -> str:
    """Describe the difference between compiled and eager in one case; "" if there is none."""
    f = forms(row, sample)[form.removeprefix("vmap ")]
    if not form.startswith("vmap "):
        return compare(f, *[tuple(map(_tensor, sample.draw(seed, dtype))) for seed in (0, 1)])
    dims = tuple(0 if i in sample.arrays else None for i in range(len(sample.shapes)))

    def stacked(seed: int) -> tuple[Any, ...]:
        columns = zip(*[sample.draw(seed + k, dtype) for k in range(3)], strict=True)
        return tuple(x[0] if dim is None else cr.tensor(np.stack(x)) for x, dim in zip(columns, dims, strict=True))

    return compare(func.vmap(f, in_dims=dims), stacked(0), stacked(5))


def _tensor(x: Any) -> Any:
    """Return an operand as a tensor with the same layout."""
    return cr.from_numpy(np.asarray(x)) if isinstance(x, (np.ndarray, np.generic)) else x


@pytest.mark.parametrize("part", [PART, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("name", sorted(TABLE))
def test_row(name: str, part: int) -> None:
    row = TABLE[name]
    differences = {
        f"{form} of {name}{sample} in {dtype}": found
        for form, sample, dtype in list(cases(row))[zlib.crc32(name.encode()) % part :: part]
        if (found := difference(row, form, sample, dtype))
    }
    if name in EAGER:
        differences = {case: found for case, found in differences.items() if not found.startswith("not compiled")}
    assert not differences
