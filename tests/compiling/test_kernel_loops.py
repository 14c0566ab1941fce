"""Detected loops of kernel calls: the plan of a repeated body, eager bits, and irregular code that must stay unrolled."""

import gc
import operator
import tracemalloc

import numpy as np
import pytest
from compiling.recording import ProgramBuilder, large_elementwise
from native.random_loops import LoopMaker

import chainrule as cr
from chainrule._src.arrays.any_array import with_strides
from chainrule._src.compiling import kernel_loops, looped_lowering
from chainrule._src.compiling import plan as plan_module
from chainrule._src.compiling.factors import Memories
from chainrule._src.compiling.kernel_loops import RepeatedCalls
from chainrule._src.compiling.layout import Arena, arena_nbytes
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.compiling.steps import Lowering
from chainrule._src.native import AVAILABLE, Runner, code

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="the extension is not built")
A, X = np.linspace(0.1, 0.9, 4), np.linspace(-1.0, 1.0, 80).reshape(20, 4)
M = np.linspace(-0.4, 0.5, 16).reshape(4, 4)


def carried(a, x):
    for _ in range(20):
        a = np.tanh(a * 0.9 + x[0]) * a
    return np.sum(a)


def rows(a, x):
    for row in x:
        a = np.tanh(a + row) * 0.9 + np.sin(a)
    return np.sum(a * a)


def columns_backwards(a, x):
    for k in range(20):
        a = a + np.tanh(a) * x.T[:, -1 - k]
    return np.sum(a)


def two_rounds_back(a, x):
    b = a * 2.0
    for row in x:
        a, b = b, np.cos(a) * b + row
    return np.sum(a * b)


def numbers(a, x):
    for k in range(20):
        a = a + np.sin(a) * (0.05 * k) + x[k] * 0.5**k
    return np.sum(a)


def first_and_last_differ(a, x):
    for k in range(20):
        a = np.tanh(a * x[k])
        if k == 0:
            a = a + x[1]
        if k == 19:
            a = a * x[2]
    return np.sum(a)


def layers(a, x):
    w = [M + 0.1 * k for k in range(3)]
    hidden = [a, a, a]
    for row in x:
        for k in range(3):
            hidden[k] = row = np.tanh(w[k] @ row + hidden[k])
    return np.sum(hidden[2])


def steps_within_steps(a, x):
    for k in range(10):
        b = a
        for _ in range(8):
            b = b - 0.1 * (np.sin(b) - a + x[k] * np.cos(b))
        a = b
    return np.sum(a)


def saved_and_stacked(a, x):
    path = []
    for row in x:
        a = np.tanh(a * row) + a
        path.append(a)
    return np.sum(np.stack(path) ** 2) + np.sum(path[3])


def blocks_of_a_matrix(a, x):
    p = np.outer(a, a) + np.eye(4)
    for row in x:
        p = np.tanh(M @ p @ M.T) + np.outer(row, row)
    return np.sum(p)


LOOPS = [
    carried, rows, columns_backwards, two_rounds_back, numbers, first_and_last_differ, layers, steps_within_steps,
    saved_and_stacked, blocks_of_a_matrix,
]  # fmt: skip


def of(function):
    compiled = cr.compile(function)
    compiled(A, X)
    (plan,) = compiled.plan(A, X).plans
    return compiled, plan


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("transformed", [lambda f: f, cr.grad, lambda f: cr.grad(f, 1)], ids=["value", "grad", "rows"])
def test_same_bits(function, transformed):
    function = transformed(function)
    compiled, plan = of(function)
    assert plan.loops and plan.executor == "native"
    for a, x in ((A, X), (A[::-1].copy(), 0.3 * X), (-A, X - 0.1)):
        assert np.asarray(compiled(a, x)).tobytes() == np.asarray(function(a, x)).tobytes()


@pytest.mark.parametrize("function", [rows, layers, steps_within_steps])
def test_a_plan_does_not_grow_with_its_loop(function):
    sizes = []
    for count in (20, 200):
        compiled, x = cr.compile(cr.grad(function)), np.resize(X, (count, 4))
        compiled(A, x)
        sizes.append(len(compiled.plan(A, x).steps))
    assert sizes[0] == sizes[1]


def test_a_plan_shows_the_views_of_one_iteration():
    def squares(a, x):  # the backward pass reads the rows of the stacked array
        path = []
        for row in x:
            a = np.tanh(a * row) + a
            path.append(a)
        return np.sum((np.stack(path) - x) ** 2)

    sizes = []
    for count in (20, 60):
        compiled, x = cr.compile(cr.grad(squares)), np.resize(X, (count, 4))
        compiled(A, x)
        sizes.append(len(compiled.plan(A, x).steps))
    assert sizes[0] == sizes[1]


def test_what_nobody_needs_later_has_one_place():
    forward, backward = of(rows)[1], of(cr.grad(rows))[1]
    assert forward.memory < 20 * 64 < backward.memory


def test_a_loop_around_another_one():
    plan = of(steps_within_steps)[1]
    assert [count for _, _, count in plan.loops] == [9, 6]  # the first iterations differ: they start with arguments
    assert "loop 1: " in str(plan) and "9 times" in str(plan) and "6 times" in str(plan)


def test_numbers_of_a_loop_within_another_one():
    def function(a, x):
        for row in x:
            for k in range(8):
                a = np.tanh(a * (0.1 * k) + 0.5) - 0.01 * k
            a = a + row
        return a

    compiled, plan = of(function)
    assert plan.loops and plan.executor == "native"
    assert compiled(-A, X).tobytes() == function(-A, X).tobytes()


def repeated(count, irregular=None):
    """``a = tanh(a + row) * a`` for each row, with one exception."""
    p = ProgramBuilder(A, np.resize(X, (count, 4)), X[0])
    a, x, other = p.inputs
    for k in range(count):
        row = other if k == irregular else p(operator.getitem, x, k)
        a = p(np.multiply, p(np.tanh, p(np.add, a, row)), a)
    p.outputs = [a]
    return p


@pytest.mark.parametrize("irregular", [None, *range(0, 30, 3)])
def test_one_time_round_is_irregular(irregular):
    p = repeated(30, irregular)
    plan = ExecutionPlan(p)
    assert plan.loops
    given = [np.flip(var.array).copy() for var in p.inputs]
    assert [x.tobytes() for x in plan.run(given)] == [x.tobytes() for x in p.eager(*given)]


def test_few_or_short_ones_stay():
    assert not ExecutionPlan(repeated(7)).loops and ExecutionPlan(repeated(12)).loops


def test_elementwise_loops_of_large_arrays_stay_one_group():
    plan = ExecutionPlan(large_elementwise())
    assert not plan.loops and len(plan.groups) == 1


def test_places_are_used_again_where_only_the_last_rounds_are_read():
    p = ProgramBuilder(A, A)
    older, a = p.inputs
    for _ in range(40):
        older, a = a, p(np.add, p(np.tanh, older), a)
    p.outputs = [p(np.add, a, older)]
    plan = ExecutionPlan(p)
    assert plan.loops and plan.memory <= 8 * 64
    assert plan.run([A, A])[0].tobytes() == p.eager(A, A)[0].tobytes()


@pytest.mark.parametrize("first", [0, *[pytest.param(first, marks=pytest.mark.slow) for first in (20, 40)]])
@pytest.mark.parametrize("nested", [0.1, 0.3])
def test_random_loops(first, nested):
    with np.errstate(all="ignore"):
        for seed in range(first, first + 20):
            maker = LoopMaker(seed, nested)
            p = maker.make()
            given = [maker.rng.standard_normal(var.shape).astype(var.dtype) for var in p.inputs]
            given = [with_strides(x, var.array.strides) for x, var in zip(given, p.inputs)]
            made = ExecutionPlan(p).run(given)
            assert [x.tobytes() for x in made] == [x.tobytes() for x in p.eager(*given)], seed


def test_words_that_are_wrong_are_not_run():
    arrays = [((4,), np.dtype(float), (8,))]
    step = code.kernel_step(1, 0, 4, [(2, 0)], [8])
    for words in (
        code.loop_body_step([step], -1, [], 4),
        code.loop_body_step([step], 2, [(9, 8, 0, 0)], 4),
        code.loop_body_step([step], 2, [(2, 8, -1, 0)], 4),
        code.loop_body_step([step], 2, [(2, 8, 0, 0)], 2),
        [2, 5, 3, 7, 4],
    ):
        with pytest.raises(ValueError):
            Runner(np.array(words, np.intp), 0, arrays, [], arrays)


def test_free_memory_is_joined():
    arena, r = Arena(), np.random.default_rng(0)
    taken = {}
    for _ in range(2000):
        if taken and r.random() < 0.5:
            start = list(taken)[r.integers(len(taken))]
            arena.release(start, taken.pop(start))
        else:
            nbytes = int(r.integers(1, 2000))
            start = arena.take(nbytes)
            assert all(start + arena_nbytes(nbytes) <= s or s + arena_nbytes(n) <= start for s, n in taken.items())
            taken[start] = nbytes
    for start, nbytes in taken.items():
        arena.release(start, nbytes)
    assert arena.take(arena.size) == 0


def test_the_recording_is_let_go_of():
    compiled, x = cr.compile(cr.grad(rows)), np.resize(X, (300, 4))
    gc.collect()
    before = len(gc.get_objects())
    compiled(A, x)
    gc.collect()
    assert len(gc.get_objects()) - before < 3000  # of 6,000 calls
    assert compiled(A, x).tobytes() == cr.grad(rows)(A, x).tobytes()


def test_equal_constants_are_one():
    p = ProgramBuilder(A)
    (a,) = p.inputs
    for _ in range(30):
        p.constants.append(p.var(X[0].copy()))
        a = p(np.multiply, p(np.add, a, p.constants[-1]), 0.5)
    p.outputs = [a]
    assert ExecutionPlan(p).loops
    assert str(ExecutionPlan(p)).count("f8[4]") < 20


def test_loops_repeat_the_kernel_calls_of_a_program():
    """The kernel calls of a loop, times its trip count and those of the loops around, are those of its iterations."""
    counted = []

    def noted(program, simplified, lowerer):
        lowering = looped_lowering.lower_with_loops(program, simplified, lowerer)
        unrolled = Lowering(program, simplified, lowerer)
        numbers = [k for k, step in enumerate(lowering.steps) if not step.view]
        memories = Memories([lowering.steps[k] for k in numbers])
        calls = looped_lowering.kernel_calls_of(numbers, lowering.steps, lowering.loops, memories)
        added = sum(len(step.template.loops) for step in lowering.steps if step.call is None)
        added -= sum(len(step.template.loops) for step in unrolled.steps if step.call is None)
        loops = [len(step.template.loops) for step in unrolled.steps if not step.view]
        counted.append((_length(calls) - added, sum(loops), _depth(calls)))
        return lowering

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_module, "lower_with_loops", noted)
        for function in LOOPS:
            cr.compile(cr.grad(function))(A, X)
    assert len(counted) == len(LOOPS) and all(looped == unrolled for looped, unrolled, _ in counted)
    assert [depth for _, _, depth in counted].count(2) == 1


def _length(calls):
    """Return the number of kernel calls that run."""
    return sum(call.count * _length(call.calls) if type(call) is RepeatedCalls else 1 for call in calls)


def _depth(calls):
    return max([1 + _depth(call.calls) for call in calls if type(call) is RepeatedCalls], default=0)


def scan_of_steps(a, x):
    def body(carry, row):
        for k in range(12):
            carry = np.tanh(carry * 0.9 + row) - 0.01 * k
        return carry, carry * row

    return np.sum(cr.scan(body, a, x)[1])


def scan_of_solutions(a, x):
    """A template of ``solve`` has a temporary that only its variant with shared factors uses."""

    def body(carry, row):
        for k in range(12):
            matrix = 3 * np.eye(4) + np.outer(row, row) * (0.1 * k)
            carry = np.tanh(np.linalg.solve(matrix, carry + row))
        return carry, carry * row

    return np.sum(cr.scan(body, a, x)[1])


@pytest.mark.parametrize("function", [scan_of_steps, scan_of_solutions])
@pytest.mark.parametrize("transformed", [lambda f: f, cr.grad], ids=["value", "grad"])
def test_a_python_loop_in_the_body_of_a_scan(function, transformed, monkeypatch):
    found = []
    original = kernel_loops.KernelLoop.__init__

    def noted(self, body, depth):
        original(self, body, depth)
        found.append((depth, self.count))

    function = transformed(function)
    monkeypatch.setattr(kernel_loops.KernelLoop, "__init__", noted)
    expected = [np.asarray(function(a, x)).tobytes() for a, x in ((A, X), (-A, X - 0.1))]
    # the first iteration starts with the carry of the scan; the backward pass saves each value in an array of its own
    assert (0, 20) in found and (transformed is cr.grad or (1, 11) in found)
    monkeypatch.undo()
    compiled = cr.compile(function)
    compiled(A, X)
    assert [np.asarray(compiled(a, x)).tobytes() for a, x in ((A, X), (-A, X - 0.1))] == expected


def scanned(A, x):
    return np.sum(cr.scan(lambda carry, row: (np.tanh(A * np.sin(carry) + row), np.sin(carry * row)), x[0], x)[1])


@pytest.mark.parametrize(
    "function, length", [pytest.param(rows, 640, marks=pytest.mark.slow), (layers, 240), (scanned, 640)]
)
def test_memory_is_what_is_kept(function, length):
    x = np.resize(X, (length, 4))
    first = cr.compile(cr.grad(function))
    first(A, x)  # objects shared by all functions exist from now on
    compiled = cr.compile(cr.grad(function))
    gc.collect()
    tracemalloc.start()
    try:
        compiled(A, x)
        compiled(A, x)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert abs(compiled.memory - kept) < 0.1 * kept


def test_small_saved_values_share_lines_of_cache():
    def decay(x):
        for _ in range(100):
            x = np.sin(x) * 0.5
        return x

    x = np.array(0.3)
    compiled = cr.compile(cr.grad(decay))
    assert compiled(x) == cr.grad(decay)(x)
    assert compiled.plan(x).memory < 100 * 64  # a cache line for each number


# -- rows of arrays from outside ---------------------------------------------------------------------------------------

DATA = np.sin(np.arange(240.0)).reshape(60, 4)


def each_row(a):
    for row in DATA[:20]:
        a = np.tanh(a - row) * 0.9
    return np.sum(a)


def by_number(a):
    for k in range(20):
        a = a + np.sin(a) * DATA[k] - DATA[59 - k] ** 2
    return np.sum(a)


def columns_of_a_transpose(a):
    turned = DATA.T
    for k in range(20):
        a = np.cos(turned[:, 3 * k] * a) + turned[::-1, k]
    return np.sum(a)


def pairs_of_rows(a):
    for before, after in zip(DATA[:30:2], DATA[1:31:2], strict=True):
        a = np.where(before > 0, a + after, a * np.exp(-a * a))
    return np.sum(a)


@pytest.mark.parametrize("function", [each_row, by_number, columns_of_a_transpose, pairs_of_rows])
@pytest.mark.parametrize("transformed", [lambda f: f, cr.grad], ids=["value", "grad"])
def test_rows_of_an_array_from_outside(function, transformed):
    function = transformed(function)
    compiled = cr.compile(function)
    compiled(A)
    (plan,) = compiled.plan(A).plans
    assert plan.loops and plan.executor == "native" and len(plan.inputs) == 2
    before = DATA.copy()
    try:
        for _ in range(2):
            assert np.asarray(compiled(A)).tobytes() == np.asarray(function(A)).tobytes()
            DATA[...] *= 0.7  # it is read without a copy
    finally:
        DATA[...] = before


def test_rows_beside_a_tensor_of_the_same_memory():
    table = np.arange(20.0).reshape(5, 4)
    t = cr.from_numpy(table)
    function = lambda w: sum([(t[k] * table[k] * w).sum() for k in range(5)])
    compiled, w = cr.compile(function), cr.tensor(A)
    assert compiled(w).item() == function(w).item()
    t.data = cr.ones(5, 4, dtype=cr.float64)
    assert compiled(w).item() == function(w).item()
    table[...] += 1.0
    assert compiled(w).item() == function(w).item()


def test_a_row_that_is_written_is_no_view_of_what_is_read():
    table = np.ones((3, 4))

    def add(w):
        row = cr.from_numpy(table[1])
        first = (row * w).sum()
        if w.sum() > 2.0:  # Python reads, before and after
            w = w + 1.0
        row.add_(w)
        return first + (row * w).sum()

    compiled, w = cr.compile(add, pure=True), cr.tensor(A)
    found = [compiled(w).item() for _ in range(3)], table.copy()
    table[...] = 1.0
    assert ([add(w).item() for _ in range(3)], table.tolist()) == (found[0], found[1].tolist())
