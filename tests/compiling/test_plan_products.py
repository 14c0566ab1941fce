"""``np.dot`` of rows and columns, bit for bit."""

import itertools

import numpy as np
import pytest
from compiling.recording import ProgramBuilder

from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.native import AVAILABLE
from chainrule._src.native.blas import blas_function

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="the extension is not built")
SHAPES = [
    ((8, 16), (16, 1)),
    ((200, 301), (301, 1)),
    ((1, 16), (16, 8)),
    ((1, 300), (300, 201)),
    ((8, 1), (1, 16)),
    ((300, 1), (1, 40)),
    ((1, 9), (9, 1)),
    ((5, 1), (1, 1)),
    ((1,), (1, 7)),
    ((7, 1), (1,)),
    ((1, 7), (7,)),
    ((7,), (7, 1)),
]


def draw(r, shape, letter):
    x = r.standard_normal(shape) * np.exp(3 * r.standard_normal(shape))
    return np.where(r.random(shape) < 0.1, -0.0, x).astype(letter)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_rows_and_columns(shapes):
    r, executors = np.random.default_rng(0), []
    for letter, turned in itertools.product("fd", itertools.product([False, True], repeat=2)):
        draws = [[draw(r, shape, letter) for shape in shapes] for _ in range(3)]
        draws = [[np.asfortranarray(x) if turn else x for x, turn in zip(xs, turned)] for xs in draws]
        p = ProgramBuilder(*draws[0])
        p.outputs = [p(np.dot, *p.inputs)]
        plan = ExecutionPlan(p)
        for inputs in draws:
            assert plan.run(inputs)[0].tobytes() == p.eager(*inputs)[0].tobytes()
        executors.append(plan.executor)
    without_blas = any(shape in ((1, 1), (1,)) for shape in shapes) and blas_function("cblas_daxpy") is None
    assert executors == ["python" if without_blas else "native"] * 8
