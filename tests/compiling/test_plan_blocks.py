"""Blocked loops: which loops are blocked, and the memory of their blocks."""

import numpy as np
import pytest
from compiling.recording import ProgramBuilder

from chainrule._src.compiling.native_executor import Native, ProgramEncoder, rows_of_block
from chainrule._src.compiling.plan import LOWERER, ExecutionPlan
from chainrule._src.compiling.simplify import Simplified
from chainrule._src.compiling.steps import Lowering
from chainrule._src.native import AVAILABLE

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="the extension is not built")


def normalized(rows, row):
    """Return elementwise steps on a matrix and a row of it, with an independent sum in between."""
    r = np.random.default_rng(0)
    p = ProgramBuilder(r.standard_normal((rows, row)), r.standard_normal(row))
    x, y = p.inputs
    a = p(np.add, p(np.multiply, x, 2.0), y)
    total = p(np.add, a, method="reduce", axis=0)
    b = p(np.tanh, p(np.subtract, a, y))
    p.outputs = [p(np.multiply, b, b), total]
    return p


@pytest.mark.parametrize(
    "shape", [(40, 500), (3000, 64), (7, 1001), (2, 100_003), (100_003, 2), (1, 50_000), (50_000, 1)]
)
def test_rows(shape):
    p = normalized(*shape)
    plan = ExecutionPlan(p)
    for x, y in zip(plan.run([v.array for v in p.inputs]), p.eager(*[v.array for v in p.inputs]), strict=True):
        assert x.tobytes() == y.tobytes()


def test_what_waits_for_nothing_is_in_one_group():
    plan = ExecutionPlan(normalized(400, 64))
    (group,) = plan.groups
    assert [work.loop.name for work in group.kernel_calls] == ["multiply", "add", "subtract", "tanh", "multiply"]
    assert plan.memory == 400 * 64 * 8  # the operand of the sum; the others are in blocks


@pytest.mark.parametrize("row", [64, 100, 1001, 4096, 65_536, 100_003])
def test_blocks_are_small(row):
    p = normalized(300_000 // row + 1, row)
    native = Native(Lowering(p, Simplified(p), LOWERER))
    for group in native.groups:
        rows = rows_of_block(group, 24)
        assert rows * (group.row or 1) <= 1 << 16 and rows <= group.total // (group.row or 1)
        assert rows * (group.row or 1) % 64 == 0 or rows == group.total // (group.row or 1)
    assert native.groups
    assert isinstance(native.encode(), ProgramEncoder)


def reduced(shape, axis, function=np.add, dtype=float, **options):
    """Return the program of a reduction of ``x * y + x``."""
    r = np.random.default_rng(0)
    x, y = (r.standard_normal((2, *shape)) * 10).astype(dtype)
    p = ProgramBuilder(x, y)
    a, b = p.inputs
    p.outputs = [p(function, p(np.add, p(np.multiply, a, b), a), method="reduce", axis=axis, **options)]
    return p


SHAPES = [(400, 64), (64, 400), (3000, 7), (5, 60, 30), (26, 54, 22, 4), (4, 5, 6, 70), (9000, 2), (2, 9000), (1, 8000)]


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i8"])
@pytest.mark.parametrize("function", [np.add, np.multiply, np.maximum])
@pytest.mark.parametrize("shape", SHAPES)
def test_reductions_of_products(shape, function, dtype):
    for axis in [*range(len(shape)), (0, len(shape) - 1), tuple(range(1, len(shape)))]:
        if function is np.maximum and type(axis) is tuple:
            continue
        p = reduced(shape, axis, function, dtype, keepdims=len(shape) == 3)
        with np.errstate(all="ignore"):
            (got,), (want,) = ExecutionPlan(p).run([v.array for v in p.inputs]), p.eager(*[v.array for v in p.inputs])
        assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("shape, axis", [((400, 64), 1), ((3000, 9), 1), ((5, 60, 30), (1, 2)), ((26, 54, 22, 4), 2)])
def test_a_product_that_is_only_summed_needs_no_memory(shape, axis):
    plan = ExecutionPlan(reduced(shape, axis))
    (group,) = plan.groups
    assert [kernel_call.loop.name for kernel_call in group.kernel_calls] == ["multiply", "add", "add.reduce"]
    assert plan.memory == 0


def test_other_reductions_do_not_join():
    """Over the outermost axis: every block would write the same results. Or of another array, or into an array that the group reads."""
    for p in (reduced((400, 64), 0), reduced((400, 64), (0, 1)), normalized(400, 64)):
        for group in ExecutionPlan(p).groups:
            assert not any([kernel_call.loop.reduces for kernel_call in group.kernel_calls])
