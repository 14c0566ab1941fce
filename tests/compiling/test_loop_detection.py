"""Detection of loops in the integer arrays of a trace: their extent, the motion of operands, and the buffers of results."""

import operator

import numpy as np
import pytest
from compiling.recording import ProgramBuilder, large_elementwise

from chainrule._src.compiling import loop_detection, plan
from chainrule._src.compiling.loop_detection import CARRIED, ONE, RING, SAVED, STRIDED, TABLE, LoopFinder
from chainrule._src.compiling.plan import LOWERER, ExecutionPlan
from chainrule._src.compiling.simplify import Simplified
from chainrule._src.compiling.trace import TraceArrays
from chainrule._src.native import AVAILABLE

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="the extension is not built")
A, X = np.linspace(0.1, 0.9, 4), np.linspace(-1.0, 1.0, 80).reshape(20, 4)


def found(program):
    return LoopFinder(TraceArrays(program, Simplified(program), LOWERER))


def check(program):
    """Check that the plan of a program has eager bits, also at other inputs; return its loops."""
    plan = ExecutionPlan(program)
    assert plan.executor == "native"
    for scale in (1.0, -0.3):
        given = [scale * var.array for var in program.inputs]
        assert [x.tobytes() for x in plan.run(given)] == [x.tobytes() for x in program.eager(*given)]
    return found(program).in_order


def tanh_of_rows(count, operand=lambda p, k, row: row, result=lambda p, k, a: None):
    """``a = tanh(a + row) * a`` for each row."""
    p = ProgramBuilder(A, np.resize(X, (count, 4)), X[0])
    a, x, _ = p.inputs
    for k in range(count):
        a = p(np.multiply, p(np.tanh, p(np.add, a, operand(p, k, p(operator.getitem, x, k)))), a)
        result(p, k, a)
    p.outputs.append(a)
    return p


def test_the_operands_and_buffers_of_a_body():
    (loop,) = check(tanh_of_rows(20))
    assert (loop.period, loop.count) == (3, 19)  # the first iteration starts with the argument
    assert loop.relation.tolist() == [CARRIED, STRIDED, CARRIED, CARRIED, CARRIED]
    kinds = {call % 3: buffer.kind for (call, _), buffer in loop.buffers.items()}
    assert sorted(kinds.values()) == [ONE, ONE, RING]


def test_an_array_that_is_read_after_the_loop_has_a_slot_per_iteration():
    p = tanh_of_rows(20, result=lambda p, k, a: p.outputs.append(a))
    (loop,) = check(p)
    assert sorted(buffer.kind for buffer in loop.buffers.values()) == [ONE, ONE, SAVED]


def test_a_loop_goes_through_what_another_one_saved():
    p = ProgramBuilder(A)
    (a,) = p.inputs
    saved = [a := p(np.sin, p(np.multiply, a, 0.9)) for _ in range(20)]
    for x in reversed(saved):
        a = p(np.add, p(np.cos, a), x)
    p.outputs = [a]
    forward, backward = check(p)
    assert SAVED in [buffer.kind for buffer in forward.buffers.values()]
    assert backward.relation.tolist() == [CARRIED, CARRIED, STRIDED] and backward.count >= 18


def test_numbers_and_constants_become_tables():
    p = ProgramBuilder(A)
    p.constants = [p.var(np.sin(A + k)) for k in range(20)]
    (a,) = p.inputs
    for k in range(20):
        a = p(np.add, p(np.multiply, p(np.tanh, a), 0.1 * k + 0.5), p.constants[k])
    p.outputs = [a]
    (loop,) = check(p)
    assert TABLE in loop.relation.tolist() and loop.count >= 19


def swapped(p, k, row):
    return p.inputs[2] if k == 11 else row


@pytest.mark.parametrize(
    "program, counts",
    [
        (lambda: tanh_of_rows(30, swapped), [10, 18]),  # one operand of one iteration has another position
        (lambda: tanh_of_rows(30, result=lambda p, k, a: k == 11 and p.outputs.append(p(np.sin, a))), [11, 17]),
        (lambda: tanh_of_rows(4), []),  # few kernel calls
        (lambda: tanh_of_rows(3), []),
    ],
    ids=["operand", "call", "few", "three iterations"],
)
def test_irregular_iterations_stay_outside(program, counts):
    assert [loop.count for loop in check(program())] == counts


def reversed_copy(x):
    return x[::-1].copy()


def test_calls_by_python_are_in_no_loop():
    p = ProgramBuilder(A)
    (a,) = p.inputs
    for _ in range(20):
        a = p(np.add, p(np.multiply, p(reversed_copy, p(np.negative, a)), 0.5), a)
    p.outputs = [a]
    assert found(p).loops == []
    assert [x.tobytes() for x in ExecutionPlan(p).run([A])] == [x.tobytes() for x in p.eager(A)]


def test_large_elementwise_bodies_are_left_to_blocks():
    assert check(large_elementwise()) == []


def test_much_unused_memory_is_not_saved(monkeypatch):
    monkeypatch.setattr(loop_detection, "MAX_UNREAD_BYTES", 100)
    p = tanh_of_rows(30, result=lambda p, k, a: k in (5, 12) and p.outputs.append(p(np.sin, a)))
    assert all(SAVED not in [b.kind for b in loop.buffers.values()] for loop in check(p))


def test_operands_that_were_separate_arrays_stay_separate():
    """Equal calls are merged; a matrix product of an array with itself is another BLAS routine."""
    p = ProgramBuilder(np.linspace(-0.4, 0.5, 16).reshape(4, 4))
    (a,) = p.inputs
    for _ in range(12):
        x, y = p(np.sin, a), p(np.sin, a)
        a = p(np.multiply, p(np.matmul, x, p(np.transpose, y)), 0.3)
    p.outputs = [a]
    check(p)


def test_equal_constants_are_two_operands_of_a_product():
    """A constant and another one of the same content share memory in a plan, but not in one product."""
    p = ProgramBuilder(np.linspace(-0.4, 0.5, 16).reshape(4, 4))
    m = np.sin(np.arange(16.0)).reshape(4, 4)
    p.constants = [p.var(m), p.var(m.copy())]
    (a,) = p.inputs
    for _ in range(12):
        product = p(np.matmul, p.constants[0], p.constants[1], pure=False)
        a = p(np.multiply, p(np.add, a, product), 0.3)
    p.outputs = [a]
    check(p)


def times(factor, x):
    return factor * x


def test_steps_of_python_read_views_of_iterations_that_are_not_lowered():
    p = tanh_of_rows(20)
    rows = [call.results[0] for call in p.calls if call.function is operator.getitem]
    p.outputs += [p(times, 0.5, row) for row in rows[3:6]]
    plan = ExecutionPlan(p)
    assert plan.executor == "mixed" and plan.loops
    given = [-0.3 * var.array for var in p.inputs]
    assert [x.tobytes() for x in plan.run(given)] == [x.tobytes() for x in p.eager(*given)]


@pytest.mark.parametrize("length", [1, 2, 4, 16])
def test_the_distances_between_equal_windows(length):
    random = np.random.default_rng(length)
    signature = np.concatenate([random.integers(0, 3, 200), np.tile(random.integers(0, 9, 20), 8)]).astype(np.int32)
    windows = [signature[k : k + length].tobytes() for k in range(len(signature) - length + 1)]
    last, expected = {}, []
    for k, window in enumerate(windows):
        if window in last:
            expected.append(k - last[window])
        last[window] = k
    assert loop_detection.LOOPS.repeat_distances(signature, length).tolist() == expected
    assert loop_detection.LOOPS.repeat_distances(signature[:0], length).tolist() == []


def test_the_period_of_signatures():
    signature = np.array([3, 1, 4, 1, 5, 9, 2, 6] * 9, np.int32)
    assert loop_detection._periods(signature)[0] == 8


@pytest.mark.parametrize("count", [3, 4, 6, 8, 9, 10, 12, 15, 16, 20])
def test_small_programs_have_the_loops_that_are_found_in_them(count):
    for program in (tanh_of_rows(count), tanh_of_rows(count, result=lambda p, k, a: k == 5 and p(np.sin, a))):
        assert len(ExecutionPlan(program).loops) == len(found(program).loops)


def test_no_loops_are_searched_in_small_programs_that_repeat_nothing(monkeypatch):
    p = ProgramBuilder(A)
    (a,) = p.inputs
    names = """
        sin cos tan tanh arctan sinh cosh arcsinh exp exp2 expm1 log1p square sqrt cbrt negative positive absolute fabs floor ceil trunc
        rint sign deg2rad rad2deg reciprocal
    """
    for name in names.split():
        a = p(getattr(np, name), p(np.add, a, 1.5) if len(name) > 4 else a)
    p.outputs = [a]
    assert found(p).loops == []
    expected = p.eager(A)
    monkeypatch.setattr(plan, "LoopFinder", None)
    assert [x.tobytes() for x in ExecutionPlan(p).run([A])] == [x.tobytes() for x in expected]
    with pytest.raises(TypeError):
        ExecutionPlan(tanh_of_rows(12))
