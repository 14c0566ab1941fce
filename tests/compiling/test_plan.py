"""Plans compute the same as their programs, bit for bit, with new outputs."""

import gc
import operator
import threading
import weakref

import numpy as np
import pytest
from compiling.recording import ProgramBuilder

from chainrule._src.compiling.layout import ARENA, Buffer, assign_arena_offsets
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.compiling.python_executor import Changed
from chainrule._src.native import AVAILABLE

R = np.random.default_rng(0)


def normal(*shape, dtype="f8"):
    return R.standard_normal(shape).astype(dtype)


def same(got, want):
    assert len(got) == len(want)
    for x, y in zip(got, want):
        assert x.shape == y.shape and x.dtype == y.dtype
        assert np.ascontiguousarray(x).tobytes() == np.ascontiguousarray(y).tobytes()


def check(program, *others):
    """Run a plan at the recorded inputs and at others, which are lists of arrays."""
    plan = ExecutionPlan(program)
    recorded = [var.array for var in program.inputs]
    for inputs in (recorded, *others, recorded):
        held = [x.copy() for x in inputs]
        got = plan.run(list(inputs))
        same(got, program.eager(*inputs))
        same(inputs, held)
        for x in got:
            assert not any(np.shares_memory(x, y) for y in inputs)
        again = plan.run(list(inputs))
        for x, y in zip(got, again):
            assert not np.shares_memory(x, y)
        same(got, program.eager(*inputs))
    return plan


def chain(x, length=5):
    p = ProgramBuilder(x)
    y = p.inputs[0]
    for _ in range(length):
        y = p(np.tanh, p(np.multiply, y, p.inputs[0]))
    p.outputs = [y]
    return p


def test_chain():
    p = chain(normal(7))
    plan = check(p, [normal(7)])
    assert plan.memory <= 3 * 64


def test_dead_equal_and_constant_calls_are_not_steps():
    p = ProgramBuilder(normal(3), constants=[np.arange(3.0)])
    x = p.inputs[0]
    a, b = p(np.exp, x), p(np.exp, x)
    p(np.sin, x)
    c = p(np.multiply, p.constants[0], 2.0)
    p.outputs = [p(np.add, p(np.add, a, b), c)]
    plan = check(p, [normal(3)])
    assert (plan.dropped, plan.merged, plan.folded) == (1, 1, 1)
    assert [step.name for step in plan.steps] == ["exp", "add", "add"]


def test_numbers_that_are_equal_are_not_always_the_same():
    p = ProgramBuilder(np.array([1.0, -1.0]))
    x = p.inputs[0]
    p.outputs = [
        p(np.multiply, x, 0.0),
        p(np.multiply, x, -0.0),
        p(np.add, x, 1),
        p(np.add, x, True),
        p(np.add, x, 1.0),
    ]
    check(p, [np.array([-2.0, 3.0])])


def test_views_are_no_copies():
    p = ProgramBuilder(normal(4, 6))
    x = p.inputs[0]
    y = p(np.exp, x)
    z = p(
        np.multiply,
        p(np.transpose, y),
        p(np.reshape, p(operator.getitem, x, (slice(None), slice(None, None, -1))), (6, 4)),
    )
    w = p(
        np.add,
        p(operator.getitem, z, (Ellipsis, slice(1, 3))),
        p(np.broadcast_to, p(operator.getitem, y, (0, slice(0, 2))), (6, 2)),
    )
    p.outputs = [w, p(np.swapaxes, z, 0, 1), p(np.transpose, x), x, p(operator.getitem, y, 1)]
    check(p, [normal(4, 6)])


def test_outputs_may_repeat_and_be_inputs_and_constants():
    p = ProgramBuilder(normal(3), constants=[np.arange(3)])
    x = p.inputs[0]
    y = p(np.negative, x)
    p.outputs = [x, y, y, p.constants[0], p(np.broadcast_to, y, (2, 3)), p(operator.getitem, y, slice(None))]
    check(p, [normal(3)])


@pytest.mark.skipif(not hasattr(np, "astype"), reason="NumPy 2.0 has no np.astype")
@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("dtype", ["f4", "i8", "c16", "?"])
def test_casts(dtype):
    p = ProgramBuilder(normal(3, 4))
    y = p(np.astype, p.inputs[0], np.dtype(dtype))
    p.outputs = [y, p(np.astype, p(np.transpose, y), np.float32)]
    check(p, [normal(3, 4)])


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(axis, keepdims):
    p = ProgramBuilder(normal(3, 4, 5))
    x = p.inputs[0]
    p.outputs = [
        p(np.add, x, method="reduce", axis=axis, keepdims=keepdims),
        p(np.sum, x, axis=axis, keepdims=keepdims),
        p(np.max, x, axis, keepdims=keepdims),
        p(np.any, x, axis=axis),
        p(np.maximum, x, method="reduce", axis=axis, keepdims=keepdims, initial=-np.inf),
        p(np.add, x, method="reduce", axis=axis, initial=0.5),
        p(np.sum, x, axis=axis, initial=2),
        p(np.mean, x, axis=axis),
        p(np.add, x, method="accumulate", axis=1),
    ]
    check(p, [normal(3, 4, 5)])


def test_calls_of_all_kinds():
    p = ProgramBuilder(normal(4, 4), normal(4, 4), np.array([1, 0, 3]))
    x, y, i = p.inputs
    low, high = p(np.divmod, x, y)
    joined = p(np.concatenate, [x, p(np.exp, y), p(np.linalg.solve, x, y)], axis=1)
    row = p(operator.getitem, y, 0)
    p.outputs = [
        low,
        high,
        joined,
        *p(np.linalg.qr, x),
        p(np.stack, (x, y), -1),
        p(np.where, p(np.less, x, y), x, 0.5),
        p(operator.getitem, joined, i),
        p(operator.getitem, joined, (i, i)),
        p(operator.getitem, joined, (slice(1, None), i)),
        p(np.sort, y),
        p(np.copy, p(np.transpose, joined)),
        p(np.dot, x, y),
        p(np.einsum, "ij,kj->ik", x, y),
        p(np.broadcast_arrays, x, row)[1],
        *p(np.split, p(np.cos, x), 2),
    ]
    check(p, [normal(4, 4), normal(4, 4), np.array([2, 2, 0])])


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "?"])
@pytest.mark.parametrize("count", [2, 5, 31, 40])
def test_parts_of_length_one(dtype, count):
    """Arrays that are adjacent in the result are written in one pass: also broadcast, reversed and transposed ones."""

    def draw():
        return np.asarray(normal(3, 70) > 0) if dtype == "?" else normal(3, 70).astype(dtype)

    p = ProgramBuilder(draw(), draw().T.copy())
    x, y = p.inputs
    rows = [x, p(np.transpose, y), p(operator.getitem, x, (slice(None), slice(None, None, -1)))]
    rows.append(p(np.broadcast_to, p(operator.getitem, x, (slice(1, 2),)), (3, 70)))
    parts = [rows[i % 4] for i in range(count)]
    columns = [p(operator.getitem, part, (..., None)) for part in parts]
    p.outputs = [
        p(np.stack, parts, -1),
        p(np.stack, parts, 1),
        p(np.concatenate, columns, -1),
        p(np.stack, [p(operator.getitem, part, (0, 0)) for part in parts]),
        p(np.stack, [p(operator.getitem, part, 2) for part in parts]),
    ]
    check(p, [draw(), draw().T.copy()])


def test_equal_operands_of_a_product_stay_two_arrays():
    """BLAS uses another routine for ``A @ A.T``, with other rounding."""
    x = normal(40, 40, dtype="f4")
    p = ProgramBuilder(x)
    a, b = p(np.tanh, p.inputs[0]), p(np.tanh, p.inputs[0])
    p.outputs = [p(np.matmul, a, p(np.transpose, b))]
    check(p, [normal(40, 40, dtype="f4")])


def test_effects_are_neither_merged_nor_dropped():
    drawn = []

    def draw(n):
        drawn.append(n)
        return np.full(n, float(len(drawn)))

    p = ProgramBuilder(normal(3))
    a, b = p(draw, 3, pure=False), p(draw, 3, pure=False)
    p(draw, 2, pure=False)
    p.outputs = [p(np.add, p(np.add, a, p.inputs[0]), p(np.multiply, b, 10.0))]
    plan = ExecutionPlan(p)
    del drawn[:]
    (got,) = plan.run([np.zeros(3)])
    assert drawn == [3, 3, 2]
    assert got.tolist() == [21.0] * 3


def test_what_a_function_keeps_is_copied():
    kept = np.zeros(2)

    def count(x):
        kept[...] += x
        return kept

    p = ProgramBuilder(np.ones(2))
    a, b = p(count, p.inputs[0], pure=False), p(count, p.inputs[0], pure=False)
    p.outputs = [a, b]
    plan = ExecutionPlan(p)
    kept[...] = 0
    a, b = plan.run([np.ones(2)])
    assert (a.tolist(), b.tolist()) == ([1.0, 1.0], [2.0, 2.0])


def test_writes_come_last():
    p = ProgramBuilder(np.ones(3), np.full(3, 2.0))
    x, y = p.inputs
    p.writes = [(x, p(np.add, x, y)), (y, p(operator.getitem, x, slice(None, None, -1)))]
    p.outputs = [p(np.multiply, x, 3.0)]
    plan = ExecutionPlan(p)
    a, b = np.arange(3.0), np.ones(3)
    (got,) = plan.run([a, b])
    assert got.tolist() == [0.0, 3.0, 6.0]
    assert a.tolist() == [1.0, 2.0, 3.0]


def test_swapping_inputs():
    p = ProgramBuilder(np.ones(3), np.full(3, 2.0))
    p.writes = [(p.inputs[0], p.inputs[1]), (p.inputs[1], p.inputs[0])]
    plan = ExecutionPlan(p)
    a, b = np.arange(3.0), np.ones(3)
    plan.run([a, b])
    assert (a.tolist(), b.tolist()) == ([1.0] * 3, [0.0, 1.0, 2.0])


def test_a_result_of_another_shape_is_an_error():
    p = ProgramBuilder(np.array([1.0, 0.0, 2.0]))
    p.outputs = [p(np.multiply, p(operator.getitem, p.inputs[0], p(np.greater, p.inputs[0], 0.0)), 2.0)]
    plan = ExecutionPlan(p)
    same(plan.run([np.array([0.0, 4.0, 5.0])]), [np.array([8.0, 10.0])])
    with pytest.raises(Changed, match=r"shape \(3,\).*when it was recorded, \(2,\)"):
        plan.run([np.ones(3)])
    same(plan.run([np.array([0.0, 4.0, 5.0])]), [np.array([8.0, 10.0])])


def test_floating_point_exceptions_are_reported_once():
    p = ProgramBuilder(np.ones(3))
    x = p.inputs[0]
    p.outputs = [p(np.add, p(np.log, x), p(np.divide, 1.0, x))]
    plan = ExecutionPlan(p)
    found = []
    plan.run([np.ones(3)], found.append)
    assert found == []
    plan.run([np.array([0.0, -1.0, 1.0])], found.append)
    assert found == [{"divide", "invalid"}]
    with np.errstate(divide="ignore"):
        plan.run([np.array([0.0, -1.0, 1.0])], found.append)
    assert found[1:] == [{"invalid"}]


def test_threads_and_calls_within_calls():
    p = chain(normal(1000), 20)
    plan = ExecutionPlan(p)
    inner = ProgramBuilder(np.ones(1000))
    inner.outputs = [inner(lambda x: plan.run([x])[0] if inner.outputs else x, inner.inputs[0], pure=False)]
    outer = ExecutionPlan(inner)
    inputs = [normal(1000) for _ in range(8)]
    want = [p.eager(x)[0] for x in inputs]
    wrong = []

    def work(k):
        for _ in range(20):
            if not np.array_equal(outer.run([inputs[k]])[0], want[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_plan_keeps_no_array_of_a_call():
    p = chain(normal(10))
    plan = ExecutionPlan(p)
    x = normal(10)
    ref = weakref.ref(x)
    (out,) = plan.run([x])
    del x
    gc.collect()
    assert ref() is None
    ref = weakref.ref(out)
    del out
    assert ref() is None


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("python_too", [False, True])
def test_a_read_only_input_is_not_written(native, python_too):
    p = ProgramBuilder(np.ones(3), np.eye(3))
    x, y = p.inputs
    p.writes = [(x, p(np.add, x, p(np.linalg.det, y) if python_too else 1.0))]
    plan = ExecutionPlan(p, native and AVAILABLE)
    a = np.zeros(3)
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        plan.run([a, np.eye(3)])
    assert a.tolist() == [0.0] * 3


def test_results_take_the_place_of_operands_that_are_not_needed_any_more():
    p = ProgramBuilder(normal(50))
    x = p.inputs[0]
    y = p(np.add, x, 1.0)
    for _ in range(4):
        y = p(np.multiply, y, 2.0)
    reversed_ = p(operator.getitem, y, slice(None, None, -1))
    p.outputs = [p(np.negative, p(np.add, y, reversed_))]  # not in the buffer of y, which it also reads in reverse
    plan = check(p, [normal(50)])
    if AVAILABLE:
        assert plan.memory == 2 * 448


def test_places_in_the_arena_do_not_overlap():
    r = np.random.default_rng(1)
    for _ in range(50):
        buffers = []
        for _ in range(60):
            buffer = Buffer(ARENA, int(r.choice([8, 64, 100, 640, 1000, 5000])))
            buffer.first = int(r.integers(100))
            buffer.last = buffer.first + int(r.integers(20))
            buffers.append(buffer)
        size = assign_arena_offsets(buffers)
        assert size >= max(sum(b.nbytes for b in buffers if b.first <= time <= b.last) for time in range(120))
        for k, a in enumerate(buffers):
            assert 0 <= a.offset <= size - a.nbytes and a.offset % 64 == 0
            for b in buffers[:k]:
                if a.first <= b.last and b.first <= a.last:
                    assert a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset


def test_objects_among_the_inputs():
    p = ProgramBuilder(np.ones(3), np.array([None, 1], object))
    x, y = p.inputs
    p.outputs = [p(np.exp, x), y]
    plan = ExecutionPlan(p)
    got = plan.run([np.zeros(3), np.array([2, "a"], object)])
    assert got[0].tolist() == [1.0] * 3 and got[1].tolist() == [2, "a"]


@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum])
def test_zeros_of_both_signs(ufunc):
    p = ProgramBuilder(np.zeros((3, 37)), np.zeros(37), np.zeros((3, 1)))
    x, y, z = p.inputs
    p.outputs = [
        p(ufunc, x, y),
        p(ufunc, z, x),
        p(ufunc, x, -0.0),
        *[p(ufunc, x, method="reduce", axis=axis) for axis in (0, 1, None)],
    ]
    check(
        p, [-np.zeros((3, 37)), np.zeros(37), np.zeros((3, 1))], [np.zeros((3, 37)), -np.zeros(37), -np.zeros((3, 1))]
    )


@pytest.mark.parametrize("native", [False, AVAILABLE])
def test_a_plan_goes_when_the_last_reference_to_it_goes(native):
    p = chain(normal(10))
    y = p(np.linalg.norm, p.outputs[0])
    p.outputs = [p(np.add, p(np.add, y, 1.0), p.inputs[0])]
    plan = ExecutionPlan(p, native)
    plan.run([normal(10)], lambda kinds: None)
    ref = weakref.ref(plan)
    space = [weakref.ref(x) for x in plan._executor._idle]
    assert len(space) == 1
    gc.disable()
    try:
        del plan
        assert ref() is None and space[0]() is None
    finally:
        gc.enable()
