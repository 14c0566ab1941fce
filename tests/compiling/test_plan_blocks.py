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
