"""``np.take`` and indexing by constant positions, bit for bit."""

import operator

import numpy as np
import pytest
from compiling.recording import ProgramBuilder

import chainrule as cr
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.native import AVAILABLE, KERNELS

pytestmark = pytest.mark.skipif("gather8" not in KERNELS, reason="the extension is not built")
POSITIONS = {
    "line": np.array([3, 0, 3, 1]),
    "grid": np.array([[3, 0], [1, 2], [2, 2]]),
    "strided": np.arange(8)[::-2] // 2,
    "none": np.zeros((2, 0), np.intp),
}


FORMS = {
    "take all": (np.take, lambda i: (i,), (3, 4)),
    "take 0": (np.take, lambda i: (i, 0), (4, 3)),
    "take 1": (np.take, lambda i: (i, 1), (2, 4, 3)),
    "take -1": (np.take, lambda i: (i, -1), (3, 4)),
    "x[i]": (operator.getitem, lambda i: (i,), (4, 3)),
    "x[:, i]": (operator.getitem, lambda i: ((slice(None), i),), (2, 4, 3)),
    "x[..., i]": (operator.getitem, lambda i: ((..., i),), (2, 3, 4)),
    "x[..., i, :]": (operator.getitem, lambda i: ((..., i, slice(None)),), (5, 4, 3)),
}


@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "f8", "c16"])
@pytest.mark.parametrize("form", FORMS)
def test_same_bits(form, dtype):
    function, arguments, shape = FORMS[form]
    r = np.random.default_rng(0)
    for order in ("C", "F", "strided"):
        draws = [(10 * r.standard_normal((2, *shape))).astype(dtype) for _ in range(2)]
        draws = [x[::2][0] if order == "strided" else np.asarray(x[1], order=order) for x in draws]
        for positions in POSITIONS.values():
            p = ProgramBuilder(draws[0], constants=[positions])
            p.outputs = [p(function, p.inputs[0], *arguments(p.constants[0]))]
            plan = ExecutionPlan(p)
            assert plan.executor == ("native" if order != "F" or form != "take all" else "mixed")
            for x in draws:
                (found,), (wanted,) = plan.run([x]), p.eager(x)
                assert found.tobytes() == wanted.tobytes() and found.shape == wanted.shape


@pytest.mark.parametrize("positions", [[-1, 0], [4, 5]])
def test_positions_that_count_from_the_end(positions):
    """Only positions known to be in bounds are used without a check; others are checked in each call."""
    x, i = np.arange(6.0), np.array(positions)
    p = ProgramBuilder(x, constants=[i])
    p.outputs = [p(operator.getitem, p.inputs[0], p.constants[0])]
    plan = ExecutionPlan(p)
    assert plan.run([x + 1])[0].tolist() == (x + 1)[i].tolist()
    assert plan.executor == "native"
    assert plan.may_fail is (positions[0] < 0)


def test_long_runs_are_taken_in_blocks():
    x = np.random.default_rng(0).standard_normal(1000)
    for length in (32767, 32768, 50001):
        i = np.arange(length) * 7 % 1000
        p = ProgramBuilder(x, constants=[i])
        p.outputs = [p(np.take, p.inputs[0], p.constants[0])]
        assert np.array_equal(ExecutionPlan(p).run([-x])[0], -x[i])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_of_segments(dtype):
    """Long ones are summed in NumPy's order; signed zeros, infinities and nan reveal other orders."""
    r = np.random.default_rng(0)
    lengths = np.concatenate([np.arange(1, 40), [127, 128, 129, 130, 137, 255, 256, 257, 258, 300, 1000, 1, 1]])
    begins = np.concatenate([[0], np.cumsum(r.permutation(lengths))])
    for positions in (begins[:-1], begins[1:-1], begins[:1]):
        x = r.standard_normal(begins[-1]) * np.exp(5 * r.standard_normal(begins[-1]))
        draws = [x, np.where(r.random(x.shape) < 0.99, -0.0, x), np.where(r.random(x.shape) < 0.99, x, np.inf)]
        p = ProgramBuilder(x.astype(dtype), constants=[positions])
        p.outputs = [p(np.add, p.inputs[0], p.constants[0], method="reduceat")]
        plan = ExecutionPlan(p)
        assert plan.executor == "native"
        with np.errstate(all="ignore"):
            for x in draws:
                (found,), (wanted,) = plan.run([x.astype(dtype)]), p.eager(x.astype(dtype))
                assert np.array_equal(found, wanted, equal_nan=True)
                assert np.array_equal(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))


def test_many_segments():
    x = np.random.default_rng(0).standard_normal(100_000)
    for step in (2, 3):
        p = ProgramBuilder(x, constants=[np.arange(0, len(x), step)])
        p.outputs = [p(np.add, p.inputs[0], p.constants[0], method="reduceat")]
        assert np.array_equal(ExecutionPlan(p).run([-x])[0], np.add.reduceat(-x, np.arange(0, len(x), step)))


@pytest.mark.parametrize("positions", [[0, 2, 2, 5], [3, 1, 4], [2, 0]])
def test_segments_that_do_not_ascend(positions):
    x = np.random.default_rng(0).standard_normal(6)
    p = ProgramBuilder(x, constants=[np.array(positions)])
    p.outputs = [p(np.add, p.inputs[0], p.constants[0], method="reduceat")]
    plan = ExecutionPlan(p)
    assert plan.executor in ("mixed", "python")
    assert np.array_equal(plan.run([-x])[0], np.add.reduceat(-x, positions))


def test_positions_that_may_change_are_read_in_every_call():
    i = np.array([0, 2, 1])
    f = cr.compile(lambda x: np.take(x, i) * 2)
    x = np.arange(3.0)
    for _ in range(3):
        assert f(x).tolist() == [0, 4, 2]
    i[0] = 1
    assert f(x).tolist() == [2, 4, 2]
    i[0] = 5
    with pytest.raises(IndexError):
        f(x)


def test_positions_made_on_the_way_are_constants():
    f = cr.compile(lambda x: np.take(np.exp(x), np.array([2, 2, 0])))
    x = np.arange(3.0)
    assert f(x).tolist() == f(x).tolist() == np.exp(x)[[2, 2, 0]].tolist()
    assert f.plan(x).executor == "native" or not AVAILABLE


@pytest.mark.parametrize(("shift", "axis"), [(1, 0), (-2, 1), ((1, -1), (0, 1)), ((2, 2), (1, 1)), (7, -1), (0, 0)])
def test_rolls(shift, axis):
    draws = [np.random.default_rng(k).standard_normal((4, 5, 3)) for k in range(2)]
    for turn in (lambda x: x, lambda x: x.T, lambda x: x[::2, ::-1], lambda x: x[:0]):
        p = ProgramBuilder(turn(draws[0]))
        p.outputs = [p(np.roll, p.inputs[0], shift, axis)]
        plan = ExecutionPlan(p)
        assert plan.executor == "native"
        for x in draws:
            assert np.array_equal(plan.run([turn(x)])[0], np.roll(turn(x), shift, axis))


def test_rolls_of_a_line():
    p = ProgramBuilder(np.arange(6.0))
    p.outputs = [p(np.roll, p.inputs[0], -2)]
    assert ExecutionPlan(p).executor == "native" and ExecutionPlan(p).run([np.arange(6.0)])[0].tolist() == [
        2,
        3,
        4,
        5,
        0,
        1,
    ]


INDICES = {
    "two arrays": lambda i, j: (slice(None), i, i),
    "a mask": lambda i, j: (slice(None), i[:1], j == 0),
    "behind an ellipsis": lambda i, j: (..., i),
    "a part": lambda i, j: (slice(1, None), i),
    "apart": lambda i, j: (i, slice(None), i),
}


@pytest.mark.parametrize("order", ["C", "F", "gaps"])
@pytest.mark.parametrize("name", INDICES)
def test_elements_at_computed_positions_have_the_strides_of_eager_mode(name, order):
    strides = []

    def f(x):
        y = x[INDICES[name](cr.tensor([-2, 1]), cr.tensor([0, 1, 0]))]
        strides.append([step for step, n in zip(y.stride(), y.shape, strict=True) if n > 1])
        return y.square().sum()

    x = np.arange(27.0).reshape(3, 3, 3)
    x = cr.from_numpy({"C": x, "F": np.asfortranarray(x), "gaps": np.repeat(x, 2, -1)[..., ::2]}[order])
    f(x)
    cr.compile(f, pure=True)(x)
    cr.compile(cr.func.grad(f), pure=True)(x)
    assert strides[0] == strides[1] == strides[2]
