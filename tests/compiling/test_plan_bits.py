"""Random programs: native loops and Python calls give the bits of NumPy's calls, for the recorded inputs and for others."""

import operator

import numpy as np
import pytest
from compiling.recording import ProgramBuilder

from chainrule._src.arrays.any_array import with_strides
from chainrule._src.compiling import grouping, native_executor
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.native import AVAILABLE

UNARY = [
    np.tanh,
    np.exp,
    np.negative,
    np.square,
    np.sin,
    np.absolute,
    np.sqrt,
    np.reciprocal,
    np.conjugate,
    np.log1p,
    np.cbrt,
]
BINARY = [
    np.add,
    np.multiply,
    np.subtract,
    np.divide,
    np.maximum,
    np.power,
    np.arctan2,
    np.less,
    np.minimum,
    np.logaddexp,
]
REDUCTIONS = [np.add, np.maximum, np.multiply, np.minimum, np.sum, np.max, np.prod, np.any, np.all]


class Maker:
    """Generates random programs."""

    def __init__(self, seed, size):
        self.r = np.random.default_rng(seed)
        self.size = size
        self.n = [int(self.r.integers(1, size)) for _ in range(3)]
        if self.r.random() < 0.1:
            self.n[0] = 1
        self.dtypes = self.pick(
            [["f4"], ["f8"], ["f4", "f8"], ["c16", "f8"], ["c8"], ["i8", "f8", "?"], ["f4", "i4", "f2"]]
        )
        inputs = [self.array() for _ in range(3)]
        self.p = ProgramBuilder(*inputs, constants=[self.array()])
        self.vars = [*self.p.inputs, *self.p.constants]
        for _ in range(int(self.r.integers(1, 25))):
            try:
                self.step()
            except (ValueError, TypeError, np.exceptions.AxisError):
                del self.p.calls[self.whole :]
            self.whole = len(self.p.calls)
        count = int(self.r.integers(1, 4))
        self.p.outputs = [self.pick(self.vars[-6:]) for _ in range(count)]

    whole = 0

    def pick(self, items):
        return items[int(self.r.integers(len(items)))]

    def array(self):
        shape = [self.n[0], self.n[1], self.n[2]][int(self.r.integers(4)) :]
        kind = int(self.r.integers(4))
        if kind == 0:  # every second column of a larger array
            return self.fill([*shape[:-1], 2 * shape[-1]])[..., ::2] if shape else self.fill(shape)
        if kind == 1:
            return self.fill(shape[::-1]).T
        return self.fill(shape)

    def fill(self, shape):
        x = self.r.standard_normal(shape) * 2
        dtype = np.dtype(self.pick(self.dtypes))
        if dtype.kind == "c":
            x = x + 1j * self.r.standard_normal(shape)
        return (
            x.astype(dtype)
            if dtype.kind not in "ib"
            else np.asarray(x > 0 if dtype.kind == "b" else x * 5).astype(dtype)
        )

    def step(self):
        kind = int(self.r.integers(10))
        x = self.pick(self.vars[-5:]) if self.r.random() < 0.7 else self.pick(self.vars)
        y = self.pick(self.vars[-4:])
        p = self.p
        ndim = len(x.shape)
        if kind <= 1:
            made = p(self.pick(UNARY), x)
        elif kind <= 4:
            binary = [f for f in BINARY if f is not np.power or x.dtype.kind not in "ib"]
            made = p(self.pick(binary), *self.pick([(x, y), (y, x), (x, self.pick([2, 0.5, -1.0])), (x, x)]))
        elif kind == 5:
            axis = self.pick([None, *range(-ndim, ndim), *([(0, ndim - 1)] if ndim > 1 else [])])
            f = self.pick(REDUCTIONS)
            method = "reduce" if isinstance(f, np.ufunc) else None
            made = p(f, x, axis=axis, keepdims=bool(self.r.integers(2)), **({"method": method} if method else {}))
        elif kind == 6:
            index = [
                self.pick([slice(None), slice(None, None, -1), slice(1, None), slice(None, None, 2)])
                for _ in range(ndim)
            ]
            made = self.pick(
                [
                    lambda: p(np.transpose, x),
                    lambda: p(operator.getitem, x, tuple(index)),
                    lambda: p(np.reshape, x, -1),
                    lambda: p(np.swapaxes, x, 0, -1),
                    lambda: p(np.expand_dims, x, int(self.r.integers(ndim + 1))),
                    lambda: p(np.broadcast_to, x, (2, *x.shape)),
                    lambda: p(np.real, x),
                ]
            )()
        elif kind == 7:
            made = self.pick(
                [
                    lambda: p(np.where, p(np.greater, x, 0), x, y),
                    lambda: p(np.where, p(np.greater, x, 0), x, 0.0),
                    lambda: (
                        p(np.astype, x, np.dtype(self.pick(["f4", "f8"]))) if hasattr(np, "astype") else p(np.copy, x)
                    ),
                    lambda: p(np.copy, x),
                    lambda: p(np.concatenate, [x, y], axis=int(self.r.integers(max(ndim, 1)))),
                    lambda: p(np.stack, [x, y], axis=-1),
                ]
            )()
        elif kind == 8:
            made = p(np.matmul, x, p(np.swapaxes, y, -1, -2) if len(y.shape) > 1 and self.r.random() < 0.5 else y)
        else:
            axis = int(self.r.integers(-ndim, ndim)) if ndim else -1
            made = self.pick(
                [
                    lambda: p(self.pick([np.cumsum, np.cumprod, np.sort]), x, axis),
                    lambda: p(np.mean, x, axis=self.pick([None, axis]), keepdims=bool(self.r.integers(2))),
                    lambda: p(operator.pow, x, self.pick([2, 3, 0.5, -1, 1.5])),
                    lambda: p(operator.getitem, x, tuple([int(self.r.integers(-n, n)) for n in x.shape])),
                    lambda: p(self.pick([np.zeros_like, np.ones_like]), x),
                    lambda: p(np.full_like, x, 0.5),
                ]
            )()
        self.vars.append(made)

    def others(self):
        """Return other inputs with the same layouts."""
        found = []
        for var in self.p.inputs:
            x = var.array
            other = (
                self.fill(x.shape).astype(x.dtype)
                if x.dtype.kind != "c"
                else (self.fill(x.shape) * 1.5).astype(x.dtype)
            )
            base = x.base if x.base is not None else x
            copy = np.lib.stride_tricks.as_strided(
                np.empty(base.nbytes + 64, np.uint8).view(x.dtype), x.shape, x.strides
            )
            copy[...] = other
            found.append(copy)
        return found


def same(x, y):
    if x.dtype.kind in "fc":
        assert np.array_equal(x, y, equal_nan=True), (x, y)
        for part in ("real", "imag")[: 1 + (x.dtype.kind == "c")]:
            a, b = getattr(x, part), getattr(y, part)
            assert np.array_equal(np.signbit(a) | np.isnan(a), np.signbit(b) | np.isnan(b))
    else:
        assert np.array_equal(x, y)
    assert x.dtype == y.dtype


def check(maker):
    plan = ExecutionPlan(maker.p)
    for inputs in ([var.array for var in maker.p.inputs], maker.others(), maker.others()):
        held = [x.copy() for x in inputs]
        want = maker.p.eager(*inputs)
        for _ in range(2):
            for x, y in zip(plan.run(inputs), want, strict=True):
                same(x, y)
        for x, y in zip(inputs, held):
            same(x, y)
    return plan


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("grouping_from", [2, 2048])
def test_random_programs(block, grouping_from, monkeypatch):
    monkeypatch.setattr(grouping, "LARGE", grouping_from)
    monkeypatch.setattr(native_executor, "SHORTEST", 64)
    monkeypatch.setattr(native_executor, "CACHED", 64 * 50)
    native = 0
    for seed in range(20):
        maker = Maker(1000 * block + seed, 8 if grouping_from == 2048 or seed % 2 else 40)
        try:
            native += check(maker).executor != "python"
        except Exception:
            print("seed", 1000 * block + seed)
            raise
    assert native >= 10 or not AVAILABLE


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("content", ["numbers", "zeros", "nan", "Fortran order", "backwards"])
def test_sums_of_short_rows(content, dtype):
    """These are additions of columns, with the bits of NumPy's sums: also the signs of zeros and the payloads of NaN."""
    r = np.random.default_rng(0)
    for count in range(1, 10):
        for shape, axis in (
            ((50, count), 1),
            ((5, 12, count), -1),
            ((20, count, 6), 1),
            ((count, 50), 0),
            ((3, count), 1),
        ):
            x = (r.standard_normal(shape) * 10.0 ** r.integers(-8, 8, shape)).astype(dtype)
            if content == "zeros":
                x = np.where(r.random(shape) < 0.7, np.where(r.random(shape) < 0.5, -0.0, 0.0), x).astype(dtype)
            elif content == "nan":
                x[r.random(shape) < 0.2] = np.nan
                x[r.random(shape) < 0.1] = np.inf
            elif content == "Fortran order":
                x = np.asfortranarray(x)
            p = ProgramBuilder(x[::-1, ..., ::-1] if content == "backwards" else x)
            p.outputs = [
                p(np.add, p.inputs[0], method="reduce", axis=axis, keepdims=len(shape) == 3),
                p(np.mean, p.inputs[0], axis=axis),
            ]
            with np.errstate(all="ignore"):
                plan = ExecutionPlan(p)
                for given in (p.inputs[0].array, (p.inputs[0].array * 1.37).astype(dtype, order="K")):
                    given = with_strides(given, p.inputs[0].array.strides)
                    for got, want in zip(plan.run([given]), p.eager(given), strict=True):
                        assert got.tobytes() == want.tobytes()
