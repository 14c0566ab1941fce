"""Reading elements, and arrays that are zero except for a part, as in derivatives of indexing."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from compiling.recording import ProgramBuilder

import chainrule as cr
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.interpreters.trace_types import PrimitiveFunction
from chainrule._src.native import AVAILABLE
from chainrule._src.rules.primitive import TABLE

R = np.random.default_rng(0)


def check(program, *others):
    """Check that both kinds of plans give NumPy's bits, for the recorded inputs and for others."""
    plans = [ExecutionPlan(program), ExecutionPlan(program, native=False)]
    recorded = [var.array for var in program.inputs]
    for inputs in (recorded, *others, recorded):
        want = program.eager(*inputs)
        for plan in plans:
            got = plan.run(list(inputs))
            assert [x.shape for x in got] == [x.shape for x in want]
            assert [x.tobytes() for x in got] == [x.tobytes() for x in want]
            assert not any(np.shares_memory(x, y) for x in got for y in inputs)
    return plans[0]


def normal(shape, dtype="f8"):
    return np.asarray(R.standard_normal(shape) * 5).astype(dtype)


INDICES = [
    ((4,), 2),
    ((4,), (-1,)),
    ((3, 4), (1, -2)),
    ((3, 4), (Ellipsis, 1, 2)),
    ((3, 4), (-1, Ellipsis, 0)),
    ((), ()),
    ((2, 1, 3), (1, 0, 2)),
]


@pytest.mark.parametrize(("shape", "index"), INDICES)
@pytest.mark.parametrize("of", ["an input", "a result"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8"])
def test_elements(shape, index, of, dtype):
    x = normal(shape, dtype)
    p = ProgramBuilder(x)
    y = p.inputs[0] if of == "an input" else p(np.multiply, p.inputs[0], p.inputs[0])
    element = p(operator.getitem, y, index)
    p.outputs = [p(np.multiply, element, y), element, p(np.negative, element)]
    plan = check(p, [normal(shape, dtype)])
    if AVAILABLE:
        assert plan.executor == "native"


def test_elements_of_a_transposed_array():
    x = normal((3, 4))
    p = ProgramBuilder(x.T, x[::-1, ::2])
    elements = [p(operator.getitem, p.inputs[0], (3, 1)), p(operator.getitem, p.inputs[1], (0, 1))]
    p.outputs = [p(np.add, *elements), *elements]
    y = normal((3, 4))
    check(p, [y.T, y[::-1, ::2]])


def test_an_element_that_a_mask_gives():
    p = ProgramBuilder(normal(()))
    p.outputs = [p(np.add, p(operator.getitem, p.inputs[0], (True,)), 1.0)]
    check(p, [normal(())])


def test_an_element_of_memory_that_is_written_afterwards():
    x = normal(3)
    p = ProgramBuilder(x)
    element = p(operator.getitem, p.inputs[0], 1)
    p.outputs = [element]
    p.writes = [(p.inputs[0], p(np.multiply, p.inputs[0], element))]
    for native in (True, False):
        plan = ExecutionPlan(p, native=native and AVAILABLE)
        y = np.array([1.0, 2.0, 3.0])
        (got,) = plan.run([y])
        assert got == 2.0
        np.testing.assert_array_equal(y, [2.0, 4.0, 6.0])


PARTS = [
    ((4,), (), (2,)),
    ((4,), (3,), (slice(1, None),)),
    ((4,), (2,), (slice(None, None, -2),)),
    ((4,), (4,), (slice(None),)),
    ((3, 4), (4,), (1,)),
    ((3, 4), (3, 2), (Ellipsis, slice(1, 3))),
    ((3, 4), (3, 1, 2), (slice(None), None, slice(0, 4, 2))),
    ((3, 4), (0, 4), (slice(2, 2),)),
    ((3, 4), (1,), (None, 1, 1)),
]


@pytest.mark.parametrize(("shape", "part", "index"), PARTS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c8"])
def test_arrays_that_are_zero_but_for_a_part(shape, part, index, dtype):
    def array():
        return normal(part, dtype)

    embed = PrimitiveFunction(TABLE["embed"], {"shape": shape, "index": index})
    p = ProgramBuilder(array(), array())
    x, y = p.inputs
    first, second = p(embed, p(np.multiply, x, y)), p(embed, x)
    total = p(np.add, first, second)
    p.outputs = [total, p(np.tanh, total), p(operator.getitem, second, index), first]
    plan = check(p, [array(), array()], [np.asarray(-array()), np.zeros(part, dtype)])
    if AVAILABLE:
        assert plan.executor == "native"


def test_parts_of_one_shape_at_other_places():
    """Calls that differ only in their parameters are distinguished."""
    p = ProgramBuilder(np.array(3.0))
    (x,) = p.inputs
    parts = [p(PrimitiveFunction(TABLE["embed"], {"shape": (3,), "index": (k,)}), x) for k in (0, 1, 2, -1)]
    longer = p(PrimitiveFunction(TABLE["embed"], {"shape": (4,), "index": (0,)}), x)
    p.outputs = [*parts, longer]
    check(p, [np.array(-1.0)])


def whole(name, **params):
    return PrimitiveFunction(TABLE[name], params)


STEPS = [
    ((4,), (), [("getitem", {"index": (2,)})]),
    ((4,), (3,), [("getitem", {"index": (slice(1, None),)})]),
    (
        (3, 4),
        (2, 3),
        [("getitem", {"index": (slice(None), slice(None, None, 2))}), ("transpose", {"axis0": -2, "axis1": -1})],
    ),
    ((3, 3), (3,), [("diagonal", {"offset": 0, "axis1": -2, "axis2": -1})]),
    ((3, 4), (4, 3), [("transpose", {"axis0": -2, "axis1": -1})]),
    ((3, 4), (0, 4), [("getitem", {"index": (slice(3, None),)})]),
    ((2, 3), (), [("getitem", {"index": (1,)}), ("getitem", {"index": (-1,)})]),
]


@pytest.mark.parametrize(("shape", "part", "steps"), STEPS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_parts_that_are_replaced(shape, part, steps, dtype):
    replace = whole("copy_slices", steps=tuple((TABLE[name], params) for name, params in steps))
    p = ProgramBuilder(normal(shape, dtype), normal(part, dtype))
    base, x = p.inputs
    doubled = p(np.multiply, base, 2.0)
    first = p(replace, base, x)
    second = p(replace, doubled, p(np.negative, x))
    p.outputs = [p(np.add, first, second), first, p(np.tanh, second)]
    plan = check(p, [normal(shape, dtype), normal(part, dtype)])
    if AVAILABLE:
        assert plan.executor == "native"


def test_a_part_that_is_copied_is_no_view():
    """A region of a base that no view of that shape covers."""
    steps = ((TABLE["view"], {"shape": (12,)}), (TABLE["getitem"], {"index": (slice(0, 12, 5),)}))
    base = normal((4, 3)).T
    p = ProgramBuilder(base, normal(3))
    p.outputs = [p(whole("copy_slices", steps=steps), *p.inputs)]
    check(p, [normal((4, 3)).T, normal(3)])


@pytest.mark.parametrize("shift", [slice(1, None), slice(None, -1)])
def test_a_part_that_overlaps_what_it_is_copied_from(shift):
    other = slice(None, -1) if shift.start else slice(1, None)
    p = ProgramBuilder(normal(50))
    y = p(np.tanh, p.inputs[0])
    for _ in range(3):
        part = p(operator.getitem, y, (other,))
        y = p(whole("copy_slices", steps=((TABLE["getitem"], {"index": (shift,)}),)), y, part)
    p.outputs = [p(np.negative, y)]
    check(p, [normal(50)])


@pytest.mark.parametrize(
    "index", [(1,), (slice(1, 3),), (Ellipsis, 0), (np.array([0, 2]),), (slice(None), np.array([1, 0]))]
)
@pytest.mark.parametrize("accumulate", [False, True])
def test_values_put_at_an_index(index, accumulate):
    p = ProgramBuilder(normal((3, 4)), normal(()))
    p.outputs = [p(whole("index_put", index=index, accumulate=accumulate), *p.inputs)]
    plan = check(p, [normal((3, 4)), normal(())])
    if AVAILABLE and not accumulate and not any(isinstance(item, np.ndarray) for item in index):
        assert plan.executor == "native"


@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("f4", "f8"), ("c16", "c16"), ("i8", "f4"), ("i4", "i4")])
@pytest.mark.parametrize(("n", "m"), [(3, 5), (1, 4), (4, 1), (1, 1), (0, 3), (70, 300)])
def test_outer_products(dtypes, n, m):
    def pair():
        return [normal(n, dtypes[0]), normal(m, dtypes[1])]

    p = ProgramBuilder(*pair())
    p.outputs = [
        p(np.outer, *p.inputs),
        p(np.outer, p(operator.getitem, p.inputs[0], (slice(None, None, -1),)), p.inputs[1]),
    ]
    check(p, pair())


def test_assignments_in_a_compiled_function():
    def van_der_pol(y):
        d = np.zeros_like(y)
        d[0] = y[1]
        d[1] = (1 - y[0] ** 2) * y[1] - y[0]
        d[:] += y[::-1]
        return d

    compiled = cr.compile(van_der_pol)
    gradient = cr.compile(cr.func.jacrev(van_der_pol))
    for _ in range(4):
        y = normal(2)
        assert compiled(y).tobytes() == van_der_pol(y).tobytes()
        assert gradient(y).tobytes() == cr.func.jacrev(van_der_pol)(y).tobytes()
    assert len(compiled.recordings) == len(gradient.recordings) == 1


def set_at(x, i):
    x[i] = x[i] * 2
    return np.sum(x)


def set_within(x, i):
    x[1:][...] = x[:-1] + 0.5
    return x[i] * 1.0


def added_at(x, i):
    np.add.at(x, i, x[i] * 0.5)
    return x * 1.0


def put_along(x, i):
    np.put_along_axis(x, np.expand_dims(i, tuple(range(1, x.ndim))), 7.0, 0)
    return x + 1


def in_a_loop(x, i):
    total = np.zeros(())
    for k in range(8):
        x[i] = x[i] * 0.5 + k
        total = total + np.sum(x)
    return total


#: memory layouts of arrays: reversed views, with gaps, both orders, one or no element
LAYOUTS = {
    "reversed": lambda m: m[::-1],
    "every third": lambda m: m[::3],
    "every third, reversed": lambda m: m[::-3],
    "rows reversed": lambda m: m.reshape(33, 40)[::-1],
    "columns reversed": lambda m: m.reshape(33, 40)[:, ::-1],
    "gaps and signs": lambda m: m.reshape(33, 40)[2::2, 30:3:-3],
    "Fortran": lambda m: m.reshape(33, 40)[::-2, 1::2].T,
    "three axes": lambda m: m.reshape(11, 10, 12)[::-1, ::3, 5::-2],
    "one row": lambda m: m.reshape(33, 40)[5:6, ::-1],
    "no columns": lambda m: m.reshape(33, 40)[::-2, 3:3],
}


@pytest.mark.parametrize("function", [set_at, set_within, added_at, put_along, in_a_loop], ids=lambda f: f.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_writes_to_arrays_that_lie_otherwise_than_in_one_run(layout, function):
    compiled = cr.compile(function)
    for start in range(3):
        memory = np.arange(1320.0) + start
        expected = memory.copy()
        lies = LAYOUTS[layout]
        positions = np.array([1, 0, -1, 0])[: 2 + start % 2] * (len(lies(memory)) > 1)
        found, wanted = compiled(lies(memory), positions), function(lies(expected), positions)
        np.testing.assert_array_equal(memory, expected)
        assert found.tobytes() == wanted.tobytes() and found.strides == wanted.strides
    assert compiled.recordings


def test_values_at_positions_that_are_read_from_their_end():
    """If positions and values are read like this, NumPy writes the last one first, and another one of equal positions remains."""

    def function(x, i, j, values):
        x = x * 1.0
        x[i, j] = values
        return x

    compiled, x = cr.compile(function), np.zeros((3, 3))
    i, j, values = np.array([0, 1, 0, 2, 0]), np.array([2, 1, 2, 0, 2]), np.arange(1.0, 6.0)
    for step in (1, -1):
        for other in (1, -1):
            for way in (1, -1):
                given = x, i[::step], j[::other], values[::way]
                for _ in range(2):
                    np.testing.assert_array_equal(compiled(*given), function(*given))


def _added_at(x):
    y = x.index_put((cr.tensor([0, 0, 1]),), x, accumulate=True)
    other = y.fmod(0.3) + y.diff(dim=1, prepend=y[:, :1])
    y[..., ::2].sin_()  # index_put allocates its own memory
    return (x.gather(0, x.argmax(0, keepdim=True)).sin().sum() + y.tanh().sum()) + other.tanh().sum()


def _filled(x):
    return x.masked_scatter(x > 0.1, x.flip(0)).tanh()


def _filled_sum(x):
    return _filled(x).square().sum()


@pytest.mark.parametrize(
    "function, order",
    [
        (cr.func.grad(_added_at), "C"),
        *[(f, order) for order in "CF" for f in (_filled, _filled_sum, cr.func.grad(_filled_sum))],
    ],
)
def test_sums_go_in_the_order_of_eager(function, order):
    compiled = cr.compile(function)
    for _ in range(60):
        x = cr.from_numpy(np.asarray(R.normal(size=(3, 5)), order=order))
        assert compiled(x).numpy().tobytes() == function(x).numpy().tobytes()
        assert compiled(x).stride() == function(x).stride()
