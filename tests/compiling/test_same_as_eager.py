"""Errors that replays could make although the first call is correct: the second and later calls are compared with eager."""

from __future__ import annotations

import copy
import decimal
import operator
import pickle
import sys
import threading
import warnings

import numpy as np
import pytest
from compiling.recording import ProgramBuilder
from compiling.test_compile import assert_same

import chainrule as cr
from chainrule._src.arrays.any_array import with_strides
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.interpreters.trace_types import Program
from chainrule._src.native import AVAILABLE

R = np.random.default_rng(0)
M = np.arange(6.0).reshape(2, 3)
ONE, F4 = np.array([1, 2, 3], "f4"), np.array([0.5, -1.25, 3.0], "f4")
HELD = np.arange(3.0) + 1


def held(function, *calls, how=None):
    """Compare calls with eager calls: results, and arguments afterwards."""
    compiled = cr.compile(function)
    with warnings.catch_warnings(), np.errstate(**(how or {})):
        warnings.simplefilter("ignore")
        for args in calls * 2:
            outcomes = []
            for run in (function, compiled):
                given = [with_strides(x, x.strides) if type(x) is np.ndarray else copy.deepcopy(x) for x in args]
                HELD[:] = [1, 2, 3]
                try:
                    result = run(*given)
                except Exception as error:
                    result = type(error).__name__
                outcomes.append((result, given))
            (wanted, right), (found, after) = outcomes
            if isinstance(wanted, str):
                assert found == wanted
            else:
                assert_same(found, wanted)
            assert_same(after, right)
    return compiled


@pytest.mark.parametrize(
    "function",
    [
        lambda b: np.cumsum(np.ravel(b, "F")),
        lambda b: np.diff(b.ravel("F")),
        lambda b: np.cumsum(np.reshape(b, (3, 2), "F"), 0),
        lambda b: np.sort(b.reshape(-1, order="F")),
        lambda b: b.astype("f4", order="F").ravel("K"),
        lambda b: b.copy("F").ravel("K") + b.flatten("F"),
        lambda b: b.copy().sum(),
        lambda b: np.flip(b).reshape(-1, 2, order="A"),
        lambda b: np.ravel(b[::-1], "A"),
    ],
)
@pytest.mark.parametrize("order", "CF")
def test_orders_of_copies(function, order):
    b = np.asarray(R.standard_normal((2, 3)), order=order)
    assert not held(function, (b,), (b * 2,))._eager


@pytest.mark.parametrize(
    "function",
    [
        lambda a, s: np.dot(a, s),
        lambda a, s: np.outer(a, s),
        lambda a, s: np.kron(a, s),
        lambda a, s: np.einsum("i,->i", a, s),
        lambda a, s: np.append(a, s),
        lambda a, s: np.polyval(a, s),
        lambda a, s: np.add(s, 1) * a,
        lambda a, s: np.select([a > 1], [a], s),
        lambda a, s: round(s, 1) * a,
        lambda a, s: np.trapezoid(a, dx=s),
        lambda a, s: np.sum(a, initial=s),
        lambda a, s: np.concatenate([a, [s]]) if s > 1 else np.stack([a, a * s]),
        lambda a, s: (s < 1) + (s < 2) + a,
        lambda a, s: (-s, abs(-s), s * 2 + 1, s // 0.3, s**2, a**s, s**a, np.clip(a, -s, s), np.where(a > s, s, a)),
        lambda a, s: cr.grad(lambda y: np.sum(np.dot(y, y) * s + y**s))(abs(a)),
    ],
)
@pytest.mark.parametrize("a", [ONE, F4, F4.astype("f8"), F4.astype("c8"), np.arange(3)])
def test_floats_of_pythons_beside_arrays(function, a):
    with np.errstate(all="ignore"):
        compiled = held(function, (a, 0.7), (a * 2, 1.3), (a, 2.0))
    assert not compiled._eager


@pytest.mark.filterwarnings("ignore:compile. <lambda> .* share memory")
@pytest.mark.parametrize(
    "layout",
    [
        lambda: np.lib.stride_tricks.as_strided(np.arange(5.0), (3, 3), (8, 8)),
        lambda: np.lib.stride_tricks.as_strided(np.arange(3.0), (3, 3), (0, 8)),
    ],
)
def test_writing_where_elements_share_memory(layout):
    def f(a):
        a[0] = 7
        return np.cumsum(a)

    with pytest.warns(UserWarning, match="runs eagerly"):
        assert_same(cr.compile(f)(layout()), f(layout()))
    F = cr.value_and_grad(lambda a: np.sum((a.__setitem__(0, 0), a**2)[1]))
    compiled = cr.compile(F)
    for function in (F, compiled, compiled):
        with pytest.raises(ValueError, match="read-only"):
            function(layout())


def _divided(b):
    b /= 3
    return b + HELD.sum()


def _set(b):
    b[0] = 9
    return HELD[0] * b


@pytest.mark.parametrize("function", [_divided, _set])
def test_memory_of_an_argument_that_is_captured(function):
    compiled = cr.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in (np.ones(3), HELD, HELD[:], HELD):
            HELD[:] = [1, 2, 3]
            wanted = function(given.copy() if given.base is None and given is not HELD else given)
            HELD[:] = [1, 2, 3]
            assert_same(compiled(given), wanted)


def _through_asarray(x):
    v = np.asarray(x)
    v[0] = 100
    return v * 1


def _after_asarray(x):
    v = np.ascontiguousarray(x)
    x[0] = 100
    return v * 1


def _of_order(x):
    np.require(x, requirements="F")[0] = 4


def _plus_one(b):
    b += 1
    c = b
    c *= 2
    return b, b[...], b.sum()


@pytest.mark.parametrize("function", [_through_asarray, _after_asarray, _of_order, _plus_one])
@pytest.mark.parametrize("x", [np.zeros(2), np.zeros((2, 2), order="F"), np.array(1.5)])
def test_writes_reach_arguments(function, x):
    if x.ndim or function is _plus_one:
        held(function, (x,), (x + 1,))
    else:
        held(lambda a: np.copyto(np.asarray(a), 7.0), (x,), (x + 1,))


def test_a_tensor_over_a_plain_array():
    a = np.array([1.0, 2.0])
    t = cr.from_numpy(a)

    def h(x):
        t.add_(x)
        return x * float(a.sum())

    compiled = cr.compile(h)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(3):
            assert_same(compiled(cr.ones(2, dtype=cr.float64)), cr.ones(2, dtype=cr.float64) * (3.0 + 2 * k + 2))


def _caught(a):
    try:
        with np.errstate(divide="raise"):
            return 1 / a
    except FloatingPointError:
        return a * 0 - 1


def _caught_from_around(a):
    try:
        1 / a
    except FloatingPointError:
        return a * 0 - 1
    return a


def _warned(a):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        np.log(a)
    return np.full(2, float(len(found)))


def _inverse(a):
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(a)


def _midway(a):
    a[0] = 5
    b = 1 / a[1]
    a[2] = b
    return a * 2


@pytest.mark.parametrize("how", [{}, {"all": "raise"}, {"divide": "raise"}, {"all": "ignore"}])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("function", [_caught, _caught_from_around, _warned, _inverse, _midway])
def test_exceptions_that_are_handled(function, first, how):
    calls = [(np.ones(2),), (np.zeros(2),)]
    if function is _inverse:
        calls = [(np.eye(2),), (np.zeros((2, 2)),)]
    if function is _midway:
        calls = [(np.ones(3),), (np.array([1.0, 0.0, 3.0]),)]
    held(function, *calls[:: -1 if first else 1], how=how)


class Named:
    def __init__(self, name, value):
        self.name, self.value = name, value

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


@pytest.mark.parametrize(
    ("function", "first", "second"),
    [
        (lambda p: ONE * p.value, Named("a", 2.0), Named("a", 3.0)),
        (lambda p: ONE * p.stop, range(0, 3, 2), range(0, 4, 2)),
        (lambda p: np.arange(3) * next(iter(p)), frozenset({1}), frozenset({1.0})),
        (lambda p: np.arange(3) * next(iter(next(iter(p)))), frozenset({(1,)}), frozenset({(1.0,)})),
        (lambda p: sum(k * v for k, v in p.items()), {1: np.arange(3)}, {1.0: np.arange(3)}),
        (lambda p: sum(k * v for k, v in p["x"].items()), {"x": {1: np.arange(3)}}, {"x": {True: np.arange(3)}}),
        (lambda p: ONE * len(str(p)), decimal.Decimal("1.0"), decimal.Decimal("1.000")),
        (lambda p: np.arange(3) * p, 1, True),
        (lambda p: np.arange(9)[p], slice(0, 4, 2), slice(0, 4, 1)),
        (lambda p: np.arange(3) * p, np.int8(1), np.int64(1)),
    ],
)
def test_arguments_that_are_equal_and_not_the_same(function, first, second):
    compiled = cr.compile(lambda p, x: (function(p), x * 2))
    for p in (first, second, first, second):
        assert_same(compiled(p, ONE)[0], function(p))


def test_no_call_fails_while_branches_are_recorded():
    def f(a):
        y = a
        while np.abs(y).max() > 1:
            y = y * 0.5
        return y if y[0] > 0 else -y

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    failed = []
    try:
        for run in range(8):
            compiled = cr.compile(f)
            compiled(np.ones(3))

            def work(k, compiled=compiled, run=run):
                r = np.random.default_rng(run * 100 + k)
                for _ in range(20):
                    a = r.normal(size=3) * 10.0 ** r.integers(-2, 6)
                    try:
                        if not np.array_equal(compiled(a), f(a)):
                            failed.append(a)
                    except Exception as error:
                        failed.append(error)

            threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not compiled._eager
    finally:
        sys.setswitchinterval(before)
    assert not failed


def _next(p, x):
    p["w"] = p["w"] - 0.1 * x
    return np.sum(p["w"] * x)


def _push(p, x):
    p["l"].append(p["l"][-1] * 2)
    return p["l"][-1]


def _drop(p, x):
    del p["w"]
    return x * len(p)


@pytest.mark.parametrize("function", [_next, _push, _drop])
def test_containers_among_the_arguments(function):
    compiled = cr.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p, q = ({"w": np.ones(2), "l": [np.ones(1)]} for _ in range(2))
        for _ in range(6 if function is not _drop else 1):
            assert_same(compiled(p, np.ones(2)), function(q, np.ones(2)))
            assert_same(p, q)


@pytest.mark.parametrize(
    "function",
    [
        lambda v: np.clip(v * 1, 0, 1, out=v),
        lambda v: np.exp(v, out=v, where=v < 0.5),
        lambda v: np.exp(v, out=v),
        lambda v: np.cumsum(v, out=v),
        lambda v: np.power(v, 2.5, out=v, where=v > 0),
        lambda v: np.add(v, 1, out=v),
        lambda v: np.sum(v[None] * 1, axis=0, out=v),
        lambda v: v.__ipow__(3),
        lambda v: np.add.at(v, [0, 0], 0.1),
        lambda v: np.put(v, [0], 2),
    ],
)
def test_bits_of_what_is_written(function):
    v = R.standard_normal(9)
    v[0] = -0.0

    def f(v):
        function(v)
        return v * 1

    for x in (v, v.astype("f4"), with_strides(v.astype("f4"), (8,))):
        assert not held(f, (x,), (x * 1.5,))._eager


def test_arrays_without_axes_and_scalars():
    def f(a):
        s = a.sum()
        return a[...], a[()], a * 1, s.copy(), np.copy(s), s.T, a.T, s.reshape(1), np.square(s * 1j), abs(s + 1j)

    held(f, (np.array(2.5),), (np.array(-0.3),))
    held(lambda a: (np.square(a[0] + 1), abs(a[0] * 2), a[0] * a[1]), *[(R.normal(size=2) + 1j,) for _ in range(40)])


def test_positions_outside_of_bounds():
    def write(a, i):
        v = a[1:]
        v[i] = 0.5
        return v

    good, bad = np.array([0, 1, 0]), np.array([0, 1, 2])
    held(write, (np.ones((3, 1)), good), (np.ones((3, 1)), bad))
    compiled = cr.compile(lambda x, i: cr.grad(lambda y: np.sum(y[i] * y[i]))(x))
    compiled(np.ones(2), good)
    with pytest.raises(IndexError):
        compiled(np.ones(2), bad)
    held(lambda a: (a.__setitem__(a > 1, 0.5), a)[1], (np.arange(4.0),), (np.arange(4.0)[::-1],))
    held(lambda a, b: b.__setitem__(0, a[0]), (np.ones(2), np.arange(3)), (np.full(2, np.nan), np.arange(3)))


RAISE = {
    "a singular matrix": (np.linalg.inv, (np.eye(2),), (np.zeros((2, 2)),)),
    "one that is not positive definite": (np.linalg.cholesky, (np.eye(2),), (-np.eye(2),)),
    "no convergence": (np.linalg.svd, (np.eye(2),), (np.full((2, 2), np.nan),)),
    "a position": (lambda x, i: x[i], (ONE, np.array([0, 1])), (ONE, np.array([0, 5]))),
    "a position that is written": (
        lambda x, i: (x * 1).__setitem__(i, 0),
        (ONE, np.array([0, 1])),
        (ONE, np.array([0, 5])),
    ),
    "a choice": (lambda x, i: np.choose(i, [x, x]), (ONE, np.array([0, 1, 1])), (ONE, np.array([0, 1, 5]))),
    "a negative power": (np.power, (np.arange(2), np.arange(2)), (np.arange(2), -np.arange(2))),
    "a negative number of repeats": (np.repeat, (ONE, np.array([1, 0, 2])), (ONE, np.array([4, 0, -1]))),
    "weights without a sum": (lambda x, w: np.average(x, weights=w), (ONE, ONE), (ONE, 0 * ONE)),
    "too few elements": (
        cr.masked_scatter,
        (cr.ones(2), cr.tensor([True, False]), cr.ones(1)),
        (cr.ones(2), cr.ones(2) > 0, cr.ones(1)),
    ),
    "a negative deviation": (cr.normal, (cr.zeros(2), cr.ones(2)), (cr.zeros(2), -cr.ones(2))),
}


@pytest.mark.parametrize(("call", "good", "bad"), RAISE.values(), ids=RAISE)
def test_what_nobody_needs_raises_as_it_does_in_eager(call, good, bad):
    held(lambda *args: [call(*args), args[0] + 1][1], good, bad)


def test_elements_of_what_vmap_does_not_map_are_scalars():
    def f(x):
        first, total = cr.vmap(lambda a, _: (a[0], a.sum()), (None, 0), None)(x, x)
        first.reshape(-1)[0:1].fill(7.0)
        total.reshape(-1)[0:1].fill(7.0)
        return first, total

    held(f, (np.arange(3.0) + 1,), (np.arange(3.0) - 4,))


def test_order_of_sums_over_what_examples_share():
    def f(x):
        shared = cr.vmap(lambda a: cr.vmap(lambda _: a * 1, out_dims=-1)(a), in_dims=1, out_dims=-1)(x)
        alone = cr.vmap(lambda _: x * 1, out_dims=-1)(x)
        return (shared - 0.5).sum(), (alone - 0.5).sum()

    held(f, *[(cr.from_numpy(R.normal(size=(2, 3, 2))),) for _ in range(8)])


def test_one_number_that_lies_backwards_is_rounded_as_such():
    def f(a):
        a += 0
        return a**2, np.log(a)

    held(f, *[((R.normal(size=1) + 1j * R.normal(size=1)).astype("c8")[::-1],) for _ in range(9)])
    held(f, *[(R.uniform(size=1)[::-1],) for _ in range(9)])


def test_no_element_of_what_is_read_only_is_not_written_either():
    def f(a):
        none = np.require(a, requirements="F")[1:]
        none += 1
        return a * 2

    compiled, one = cr.compile(f), np.broadcast_to(1.0, (1,))
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            compiled(one)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3,)], ids=str)
@pytest.mark.parametrize(
    "write", [lambda a: a.__ipow__(2), lambda a: a.__setitem__(..., 1), lambda a: np.add(a, 1, out=a)]
)
def test_read_only_arguments_are_not_written(write, shape):
    compiled = cr.compile(lambda a: [write(a), a][1])
    compiled(np.ones(shape))
    locked = np.ones(shape)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(locked)


def _buffered(write):
    def f(x, y):
        buffer = np.zeros_like(y)
        write(buffer, x)
        return (buffer * y * x[0]).sum()

    return f


@pytest.mark.parametrize("transform", [cr.grad, cr.jacfwd, lambda f: cr.vmap(f, (0, None))])
@pytest.mark.parametrize(
    "write",
    [
        lambda b, x: b.__setitem__(0, x),
        lambda b, x: b.__iadd__(x),
        np.copyto,
        lambda b, x: np.add(b, x, out=b),
        lambda b, x: np.put(b, 0, x[0]),
        lambda b, x: np.add.at(b, 0, x),
        lambda b, x: b.__setitem__(0, 1.0),
    ],
)
def test_derivatives_are_not_written_into_plain_arrays(transform, write):
    held(transform(_buffered(write)), (np.ones((2, 2)), np.ones((3, 2))))


@pytest.mark.parametrize("function", [np.gradient, lambda b: np.quantile(b, 0.5), lambda b: np.modf(b, b * 1.0)])
@pytest.mark.parametrize("b", [np.eye(3, dtype=bool), np.eye(3)], ids=["bool", "float"])
def test_functions_of_numpy_raise_as_they_do_in_eager(function, b):
    held(function, (b,))


def test_what_rules_ask_of_numbers_is_asked_again():
    x = R.standard_normal(5)
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    held(cr.grad(lambda m: np.linalg.det(m)), (np.eye(2),), (singular,))
    held(lambda v: cr.grad(lambda y: np.sum(np.convolve(y, v)))(x), (np.ones(2),), (np.array([1.0, np.inf]),))
    held(cr.grad(lambda y: np.quantile(y, 0.3)), (x,), (np.where(x > 0, np.nan, x),))


def test_exceptions_of_constants_are_met():
    f = lambda a: np.full_like(a, 3).var()
    compiled = cr.compile(f)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled(np.ones(0))
        compiled(np.ones(0))
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            compiled(np.ones(0))


def test_what_pickle_cannot_find():
    with pytest.raises(TypeError, match="pickle its inputs, and compile again"):
        pickle.dumps(cr.compile(cr.grad(np.sin)))
    again = copy.copy(cr.compile(cr.grad(np.sin)))
    assert again(1.0) == np.cos(1.0)


def test_a_plan_that_would_hand_other_arrays_to_python_is_not_taken():
    written = ProgramBuilder(M)
    turned = written(np.square, written.inputs[0])
    written.outputs.append(written(np.partition, turned, 1))

    def planned():
        return ExecutionPlan(Program(written.inputs, [], written.calls, written.outputs, []))

    assert planned().executor == ("mixed" if AVAILABLE else "python")
    turned.array = turned.array + 1.0
    assert planned().executor == "python"


def test_functions_that_tell_scalars_from_arrays():
    z = np.array([1 + 2j, -3 + 1j])
    held(lambda a: (np.nanmax(a.sum()), np.nanmin(a[0]), np.nanmax(a)), (z,), (z + complex(np.nan, 1),))


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge], ids=lambda f: f.__name__)
@pytest.mark.parametrize("half", [complex(np.inf, np.nan), complex(-np.inf, np.nan), complex(np.nan, 1)])
def test_the_order_of_complex_scalars(compare, half):
    """NumPy's scalars compare real parts if there is a nan, its ufuncs do not."""

    def f(a, b):
        s = a.sum()
        return compare(s, 0), compare(0, s), compare(s, b[0]), compare(b[0], s), compare(a, 0), 1 if s > 0 else 2

    held(f, (np.ones(2) + 1j, np.ones(2)), (np.array([half, 1]), np.ones(2)), (np.array([half, half]), np.zeros(2)))


@pytest.mark.parametrize("function", [np.dot, np.inner, np.vdot], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_products_of_vectors_of_one_number(function, dtype):
    zero, other = np.zeros(1, dtype), np.array([-0.0], dtype)
    held(function, (zero + 1, zero + 2), (zero, other), (other, other))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.add.reduce(np.require(a, requirements="F")),
        lambda a: np.fix(np.asarray(a)),
        lambda a: (np.floor(np.asanyarray(a)), np.ceil(np.asarray(a * 2)), np.trunc(np.asarray(a + 1))),
        lambda a: (np.max(np.asarray(a * 2)), np.asarray(a * 3)),
    ],
)
def test_what_asarray_gives_for_an_array_without_axes(function):
    held(function, (np.array(1.5),), (np.array(-2.5),))


@pytest.mark.parametrize("power", [lambda s: F4**s, lambda s: (F4 + 1j) ** s, lambda s: pow(F4 + 1j, s)])
def test_powers_of_arrays_from_outside_by_a_float(power):
    held(power, (0.5,), (2.0,), (0.7,), (-1.0,))


def caught(attempt):
    def function(a):
        try:
            return attempt(a)
        except ValueError:
            return a * 2
        except LookupError:
            return a * 3

    return function


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "attempt",
    [
        lambda a: np.fft.rfft(a.mean()),
        lambda a: np.take(a, [9]),
        lambda a: a.squeeze(0),
        lambda a: a[7],
        lambda a: a.item(9),
    ],
)
def test_exceptions_that_are_handled_are_those_of_plain_arrays(attempt):
    held(caught(attempt), (np.arange(4.0),), (np.arange(4.0) + 1,))


@pytest.mark.parametrize(
    "function", [np.isfinite, np.isnan, np.isinf, np.signbit, np.negative], ids=lambda f: f.__name__
)
def test_loops_that_are_wrong_where_results_do_not_lie_side_by_side(function):
    a = np.arange(51, dtype="f4").reshape(17, 3)[::-1]
    b = a * 1
    b[5, 2] = np.nan
    held(lambda a: function(a), (a,), (np.flip(np.flip(b, 0).copy(), 0),))


def test_each_of_many_branches_has_its_own_arrays():
    def function(a):
        read = np.array(a)
        return np.matmul(a, read.T)

    held(function, *[(R.standard_normal(8)[::2],) for _ in range(4)])


def test_saved_values_are_copied_in_the_order_of_the_memory_that_is_written_to():
    def f(x):
        v = cr.block_diag(x, x).T
        v.mul_(x[-1, -1])
        return v.sin().sum()

    gradient = cr.func.grad(f)
    compiled = cr.compile(gradient)
    for x in R.normal(size=(30, 2, 2)):
        assert cr.equal(compiled(cr.tensor(x)), gradient(cr.tensor(x)))
