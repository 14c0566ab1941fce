"""The printed form of plans."""

import operator

import numpy as np
import pytest
from compiling.recording import ProgramBuilder

from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.native import AVAILABLE


def program(n):
    p = ProgramBuilder(np.linspace(0.0, 1.0, n), np.eye(3, dtype=np.float32), constants=[np.arange(3.0)])
    x, y = p.inputs
    a = p(np.exp, x)
    p.calls[-1].op_name = "exp"
    b = p(np.multiply, a, 2.0)
    p.calls[-1].op_name = "mul"
    p.calls[-1].code, p.calls[-1].lasti = program.__code__, 0
    c = p(np.add, b, p(operator.getitem, x, slice(None, None, -1)))
    squared = p(np.linalg.matrix_power, y, 2)
    p(np.sin, x)
    p.outputs = [c, p(np.add, squared, p.constants[0])]
    return p


def lines(plan):
    return str(plan).split("\n")


def test_calls_by_python():
    text = lines(ExecutionPlan(program(5), native=False))
    assert text[0] == "inputs: %1 f8[5], %2 f4[3, 3]; constants: %8 f8[3]"
    assert text[1].split() == ["operation", "operands", "result", "memory", "line"]
    assert text[2].split() == ["%3", "exp", "%1", "f8[5]", "40", "at", "0"]
    assert text[3].split()[:7] == ["%4", "mul:", "multiply", "%3,", "2.0", "f8[5]", "40"]
    assert text[3].endswith(f"test_plan_printing.py:{program.__code__.co_firstlineno}")
    assert text[4].split() == ["%5", "getitem", "%1,", "::-1", "f8[5]", "view"]
    assert text[-2] == "outputs: %6, %9"
    assert text[-1].startswith("5 Python calls; ") and text[-1].endswith("; calls left out: 1 not needed")


@pytest.mark.skipif(not AVAILABLE, reason="the extension is not built")
def test_native_loops_and_blocks():
    plan = ExecutionPlan(program(100_000))
    text = lines(plan)
    assert text[2].split() == ["%3", "exp", "%1", "f8[100000]", "block", "1"]
    assert text[5].split()[-4:] == ["output", "0,", "block", "1"]
    assert text[6].split()[:2] == ["%7", "matrix_power"] and text[6].endswith("new array, in Python")
    assert text[-2] == "block 1: 3 loops over 100,000 elements, block by block"
    assert "native loops, 1 Python call" in text[-1]
    assert plan.memory < 10_000


@pytest.mark.parametrize("count", [2, 3004])
def test_constants_of_one_kind_are_counted(count):
    p = ProgramBuilder(np.ones(2), constants=[np.full(2, float(k)) for k in range(count)] + [np.ones((2, 1))])
    total = p.inputs[0]
    for constant in p.constants:
        total = p(np.add, total, constant)
    p.outputs = [total]
    text = lines(ExecutionPlan(p, native=False))[0]
    assert len(text) < 120 and text.count("f8[2]") == 1 + (count if count < 5 else 1)
    assert (" × 3,004" in text) == (count == 3004) and text.endswith("f8[2, 1]")
