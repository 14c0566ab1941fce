"""Elements that are read, and arrays that are zero but for a part: what differentiating an index comes to."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from compiling.recording import Written

from chainrule.compiling.plan import Plan
from chainrule.interpreters.traced import Whole
from chainrule.native import AVAILABLE
from chainrule.rows.primitive import TABLE

R = np.random.default_rng(0)


def check(program, *others):
    """Plans of both kinds give the bits of NumPy, at the recorded inputs and at others."""
    plans = [Plan(program), Plan(program, native=False)]
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
    p = Written(x)
    y = p.inputs[0] if of == "an input" else p(np.multiply, p.inputs[0], p.inputs[0])
    element = p(operator.getitem, y, index)
    p.outputs = [p(np.multiply, element, y), element, p(np.negative, element)]
    plan = check(p, [normal(shape, dtype)])
    if AVAILABLE:
        assert plan.executor == "native"


def test_elements_of_a_transposed_array():
    x = normal((3, 4))
    p = Written(x.T, x[::-1, ::2])
    elements = [p(operator.getitem, p.inputs[0], (3, 1)), p(operator.getitem, p.inputs[1], (0, 1))]
    p.outputs = [p(np.add, *elements), *elements]
    y = normal((3, 4))
    check(p, [y.T, y[::-1, ::2]])


def test_an_element_that_a_mask_gives():
    p = Written(normal(()))
    p.outputs = [p(np.add, p(operator.getitem, p.inputs[0], (True,)), 1.0)]
    check(p, [normal(())])


def test_an_element_of_memory_that_is_written_afterwards():
    x = normal(3)
    p = Written(x)
    element = p(operator.getitem, p.inputs[0], 1)
    p.outputs = [element]
    p.writes = [(p.inputs[0], p(np.multiply, p.inputs[0], element))]
    for native in (True, False):
        plan = Plan(p, native=native and AVAILABLE)
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

    embed = Whole(TABLE["embed"], {"shape": shape, "index": index})
    p = Written(array(), array())
    x, y = p.inputs
    first, second = p(embed, p(np.multiply, x, y)), p(embed, x)
    total = p(np.add, first, second)
    p.outputs = [total, p(np.tanh, total), p(operator.getitem, second, index), first]
    plan = check(p, [array(), array()], [np.asarray(-array()), np.zeros(part, dtype)])
    if AVAILABLE:
        assert plan.executor == "native"


def test_parts_of_one_shape_at_other_places():
    """Calls that differ in their parameters alone are not taken for one another."""
    p = Written(np.array(3.0))
    (x,) = p.inputs
    parts = [p(Whole(TABLE["embed"], {"shape": (3,), "index": (k,)}), x) for k in (0, 1, 2, -1)]
    longer = p(Whole(TABLE["embed"], {"shape": (4,), "index": (0,)}), x)
    p.outputs = [*parts, longer]
    check(p, [np.array(-1.0)])
