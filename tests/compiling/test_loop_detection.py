"""Detection of loops in the integer arrays of a trace: their extent, the motion of operands, and the buffers of results."""

import operator

import numpy as np
import pytest
from compiling.recording import ProgramBuilder, large_elementwise

from chainrule._src.compiling import loop_detection, looped_lowering
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


def kinds(loop):
    """Return the kinds of the buffers of a loop."""
    return [buffer.axes[-1].kind for buffer in loop.buffers.values()]


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
    assert sorted(kinds(loop)) == [ONE, ONE, RING]


def test_an_array_that_is_read_after_the_loop_has_a_slot_per_iteration():
    p = tanh_of_rows(20, result=lambda p, k, a: p.outputs.append(a))
    (loop,) = check(p)
    assert sorted(kinds(loop)) == [ONE, ONE, SAVED]


def test_a_loop_goes_through_what_another_one_saved():
    p = ProgramBuilder(A)
    (a,) = p.inputs
    saved = [a := p(np.sin, p(np.multiply, a, 0.9)) for _ in range(20)]
    for x in reversed(saved):
        a = p(np.add, p(np.cos, a), x)
    p.outputs = [a]
    forward, backward = check(p)
    assert SAVED in kinds(forward)
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
    assert all(SAVED not in kinds(loop) for loop in check(p))


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
    monkeypatch.setattr(looped_lowering, "LoopFinder", None)
    assert [x.tobytes() for x in ExecutionPlan(p).run([A])] == [x.tobytes() for x in expected]
    with pytest.raises(TypeError):
        ExecutionPlan(tanh_of_rows(12))


# -- loops within loops ------------------------------------------------------------------------------------------------

ROWS = np.sin(np.arange(400.0)).reshape(100, 4)


def nest(operand, outer=8, inner=9, within=lambda p, i, j, a: None, after=lambda p, i, a: None):
    """``a = tanh(a + operand) * 0.9`` in an inner loop, ``a = cos(a) * 0.5`` after it."""
    p = ProgramBuilder(A, ROWS, np.linspace(-0.5, 0.5, 100))
    a = p.inputs[0]
    for i in range(outer):
        for j in range(inner):
            x = operand(p, i, j)
            a = p(np.multiply, p(np.tanh, p(np.add, a, x)), 0.9)
            within(p, i, j, a)
        a = p(np.multiply, p(np.cos, a), 0.5)
        after(p, i, a)
    p.outputs.append(a)
    return p


def row(index):
    return lambda p, i, j: p(operator.getitem, p.inputs[1], index(i, j))


def constant(index, rows=()):
    """Return an operand that is a constant of its own for each index, or a row of it."""

    def make(p, i, j):
        k = index(i, j)
        if not p.constants:
            p.constants = [p.var(np.sin(ROWS[:60] + n)) for n in range(30)]
            p.constants += [p.var(np.cos(ROWS[n])) for n in range(100)]
        return p(operator.getitem, p.constants[k], rows(i, j)) if rows else p.constants[30 + k]

    return make


def motions(loop):
    """Return for each operand of the body its relation in each loop, outermost first."""
    return [tuple(row[:: loop_detection.MOTIONS]) for row in loop.motion.tolist()]


@pytest.mark.parametrize(
    "operand, relations",
    [
        (row(lambda i, j: 9 * i + j), (STRIDED, STRIDED)),
        (row(lambda i, j: 90 - 2 * i - 3 * j), (STRIDED, STRIDED)),
        (row(lambda i, j: j), (STRIDED, STRIDED)),
        (row(lambda i, j: i), (STRIDED, STRIDED)),
        (constant(lambda i, j: 9 * i + j), (TABLE, TABLE)),
        (constant(lambda i, j: j), (STRIDED, TABLE)),
        (constant(lambda i, j: i), (TABLE, TABLE)),
        (constant(lambda i, j: i, lambda i, j: 1), (TABLE, TABLE)),
        (constant(lambda i, j: j, lambda i, j: 1), (STRIDED, TABLE)),
    ],
    ids=["rows", "backwards", "j", "i", "table", "table-j", "table-i", "row-of-table-i", "row-of-table-j"],
)
def test_operands_of_an_inner_loop(operand, relations):
    (loop,) = [loop for loop in check(nest(operand)) if loop.inner]
    (inner,) = loop.inner
    assert loop.count >= 7 and inner.count >= 8 and inner.around is loop
    assert relations in motions(inner) and (CARRIED, CARRIED) in motions(inner)


@pytest.mark.parametrize(
    "operand",
    [
        row(lambda i, j: i * j + j),  # the first iteration of the outer loop has a constant distance
        row(lambda i, j: i * j),
        row(lambda i, j: i + j if i < 7 else j * j),  # all but the last one
        constant(lambda i, j: i, lambda i, j: j % 3),
        constant(lambda i, j: j, lambda i, j: i % 3),
        constant(lambda i, j: j, lambda i, j: i * j),
        constant(lambda i, j: i if i == 0 else 0, lambda i, j: min(j, 2)),
    ],
)
def test_distances_that_differ_in_later_iterations(operand):
    assert all(not loop.inner for loop in check(nest(operand)) if loop.count > 7)


def element(p, x, k):
    return p(operator.getitem, x, slice(k, k + 1))


@pytest.mark.parametrize(
    "index, found", [(lambda i, j: j, True), (lambda i, j: 3 * i + 2 * j, True), (lambda i, j: i * j, False)]
)
def test_elements_of_an_array_of_the_outer_loop(index, found):
    """The array is carried in the outer loop, and its elements are strided in the inner loop."""
    p = ProgramBuilder(A, np.linspace(-0.5, 0.5, 100))
    a, x = p.inputs
    for i in range(8):
        x = p(np.multiply, p(np.sin, x), 0.9)
        for j in range(9):
            a = p(np.multiply, p(np.tanh, p(np.add, a, element(p, x, index(i, j)))), 0.9)
    p.outputs = [a]
    loops = check(p)
    inner = [inner for loop in loops for inner in loop.inner]
    assert bool(inner) == found and all((CARRIED, STRIDED) in motions(loop) for loop in inner)


def test_numbers_of_both_loops_become_one_table():
    for number in (lambda i, j: 0.1 * i + j, lambda i, j: 0.1 * i, lambda i, j: 0.1 * j, lambda i, j: float(i * j)):
        (loop,) = [loop for loop in check(nest(lambda p, i, j, number=number: number(i, j))) if loop.inner]
        assert len(loop.inner) == 1


def test_values_of_inner_iterations_that_are_read_later():
    kept = {}

    def keep(p, i, j, a):
        kept[i, j] = a

    def read_in_reverse(p, i, j):
        return kept[7 - i, 8 - j]

    p = nest(row(lambda i, j: 9 * i + j), within=keep)
    a = p.outputs.pop()
    for i in range(8):
        for j in range(9):
            a = p(np.negative, p(np.multiply, p(np.sin, p(np.add, a, read_in_reverse(p, i, j))), 0.8))
        a = p(np.absolute, a)
    p.outputs = [a]
    forward, backward = [loop for loop in check(p) if loop.inner]
    axes = [[axis.kind for axis in buffer.axes] for buffer in forward.inner[0].buffers.values()]
    assert [SAVED, SAVED] in axes and [ONE, ONE] in axes
    assert (STRIDED, STRIDED) in motions(backward.inner[0])


def test_values_that_are_read_after_an_inner_loop():
    kept = []

    def keep(p, i, j, a):
        kept[:] = [*kept[-2:], a] if j else [a]

    def add(p, i, a):
        p.outputs.append(p(np.add, p(np.add, kept[0], kept[1]), a))

    p = nest(row(lambda i, j: i + j), within=keep, after=add)
    (loop,) = [loop for loop in check(p) if loop.inner]
    axes = [[axis.kind for axis in buffer.axes] for buffer in loop.inner[0].buffers.values()]
    assert [ONE, SAVED] in axes or [ONE, RING] in axes


def test_values_of_the_last_outer_iteration():
    """Its inner iterations are read after both loops, but those of all other outer iterations are not."""
    kept = {}

    def keep(p, i, j, a):
        kept[i, j] = a

    p = nest(row(lambda i, j: i + j), within=keep)
    p.outputs += [kept[7, j] for j in range(2, 9)]
    (loop,) = [loop for loop in check(p) if loop.inner]
    axes = [[axis.kind for axis in buffer.axes] for buffer in loop.inner[0].buffers.values()]
    assert [RING, SAVED] in axes


def test_values_of_one_outer_iteration_that_all_read():
    """In that iteration they look carried."""
    p = ProgramBuilder(A, ROWS)
    a, rows = p.inputs
    kept = {}
    for i in range(9):
        for j in range(9):
            x = p(np.tanh, p(np.add, a, p(operator.getitem, rows, 9 * i + j)))
            if i == 1:
                kept[j] = x
            a = p(np.multiply, p(np.sin, x), kept.get(j, a))
        a = p(np.cos, a)
    p.outputs = [a]
    assert all(not loop.inner for loop in check(p) if loop.count >= 7)


def test_values_of_the_previous_outer_iteration():
    """A state per inner iteration, as of layers: it stays unrolled, or has the right values."""
    p = ProgramBuilder(A, ROWS)
    hidden = [p.inputs[0]] * 8
    for i in range(8):
        x = p(operator.getitem, p.inputs[1], i)
        for j in range(8):
            hidden[j] = x = p(np.multiply, p(np.tanh, p(np.add, x, hidden[j])), 0.9)
    p.outputs = [x, hidden[3]]
    check(p)


def test_three_loops_within_each_other():
    p = ProgramBuilder(A, ROWS)
    a, rows = p.inputs
    kept = []
    for i in range(6):
        for j in range(7):
            for k in range(9):
                x = p(operator.getitem, rows, 11 * i + 3 * j + 2 * k)
                a = p(np.multiply, p(np.tanh, p(np.add, a, x)), 0.1 * k + 0.01 * j)
            a = p(np.sin, a)
        a = p(np.cos, a)
        kept.append(a)
    p.outputs = [a, kept[2]]
    loop = check(p)[-1]
    (middle,) = [inner for inner in loop.inner if inner.inner]
    (inner,) = middle.inner
    assert (STRIDED, STRIDED, STRIDED) in motions(inner)


def test_a_loop_begins_with_any_call_of_its_body():
    """The operands of the first and of the last operation differ."""
    p = ProgramBuilder(A, ROWS)
    a, rows = p.inputs
    for k in range(10):
        a = p(np.tanh, p(np.add, a, p(operator.getitem, rows, k)))
        a = p(np.multiply, a, p(operator.getitem, rows, 60 if k == 9 else 50))
    p.outputs = [a]
    (loop,) = check(p)
    assert (loop.begin, loop.period, loop.count) == (1, 3, 9)
