"""Arrays that a compiled or transformed function captures, writes and returns."""

import gc
import types

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.compiling.guards import guards

# functions that run eagerly, and attributes whose assignment newer NumPy versions deprecate
pytestmark = [pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("UserWarning", "DeprecationWarning")]

X = np.array([1.0, 2.0])


def described(x):
    """Return the type, dtype, shape and bytes of each array in a result."""
    if isinstance(x, (tuple, list)):
        return [type(x).__name__, *map(described, x)]
    if isinstance(x, dict):
        return [{name: described(value) for name, value in x.items()}]
    return type(x).__name__, str(getattr(x, "dtype", "")), np.shape(x), np.asarray(x).tobytes()


def outcome(f, *args):
    try:
        return described(f(*args))
    except (TypeError, ValueError, RuntimeError) as error:
        return type(error).__name__


# -- captured arrays -----------------------------------------------------------------------------------------------------


def table():
    rows = np.array([(2.0, 3.0)], [("a", float), ("b", float)])
    return types.SimpleNamespace(rows=rows, first=rows[0])


def fill(value):
    return lambda s: s.__setitem__(..., value)


#: a captured object, a function of it, an in-place change
CAPTURED = {
    "view whose base nothing refers to": (lambda: np.arange(9.0)[:2], lambda x, s: x * s + np.sum(s), fill(5.0)),
    "parts of a view": (lambda: np.arange(9.0)[1:5], lambda x, s: x * s[1:3] * np.sum(s[2:]), fill(5.0)),
    "views of one memory": (
        lambda: (lambda base: [base[:2], base[:2]])(np.arange(5.0)),
        lambda x, s: x * s[0] + x * s[1],
        lambda s: setattr(s[1], "shape", (2, 1)),
    ),
    "shape": (lambda: np.ones(2), lambda x, s: x * s, lambda s: setattr(s, "shape", (2, 1))),
    "float32": (lambda: np.ones(2, "f4"), lambda x, s: x * s * s, fill(3.0)),
    "float32 without axes": (lambda: np.ones((), "f4"), lambda x, s: x**2 * s, fill(3.0)),
    "other byte order": (lambda: np.ones(2, ">f8"), lambda x, s: x * s, fill(3.0)),
    "integers": (lambda: np.ones(2, int), lambda x, s: x * s, fill(3)),
    "strides of its own": (
        lambda: np.arange(4.0),
        lambda x, s: x * np.lib.stride_tricks.as_strided(s, (2,), (16,)),
        fill(5.0),
    ),
    "over a bytearray": (lambda: bytearray(16), lambda x, s: x * np.frombuffer(s), lambda s: s.__setitem__(15, 64)),
    "over a memoryview": (
        lambda: memoryview(X.copy()),
        lambda x, s: x * np.asarray(s),
        lambda s: s.__setitem__(0, 5.0),
    ),
    "over a row": (table, lambda x, s: x * np.asarray(s.first)["a"], lambda s: s.rows["a"].fill(5.0)),
    "over DLPack": (X.copy, lambda x, s: x * np.from_dlpack(s), fill(5.0)),
    "names of fields": (table, lambda x, s: x * s.rows["a"], lambda s: setattr(s.rows.dtype, "names", ("b", "a"))),
}
DIFFERENTIATED = {
    "itself": lambda f: f,
    "grad": lambda f: cr.grad(lambda x: np.sum(f(x))),
    "jvp": lambda f: lambda x: cr.jvp(f, (x,), (np.ones(2),)),
    "vmap": lambda f: lambda x: cr.vmap(f)(np.stack([x, x])),
}


def follows(make, read, change, transform, **options):
    """Return whether a compiled function equals the function itself, before and after a change."""
    state = make()
    f = transform(lambda x: read(x, state))
    compiled = cr.compile(f, **options)
    for k in range(6):
        if k == 3:
            change(state)
        assert outcome(compiled, X.copy()) == outcome(f, X.copy()), f"call {k}"
    return compiled


@pytest.mark.parametrize("transform", DIFFERENTIATED)
@pytest.mark.parametrize("name", CAPTURED)
def test_changes_of_captured_arrays_are_seen(name, transform):
    assert not follows(*CAPTURED[name], DIFFERENTIATED[transform])._eager


@pytest.mark.parametrize("name", ["views of one memory", "shape", "float32", "names of fields"])
def test_functions_declared_pure_follow_what_they_capture(name):
    follows(*CAPTURED[name], DIFFERENTIATED["grad"], pure=True)


@pytest.mark.parametrize(
    "name", ["view whose base nothing refers to", "views of one memory", "shape", "names of fields"]
)
def test_guards_of_arrays_hold_in_python_as_in_c(name, monkeypatch):
    in_python = guards._first_broken_in_python
    found = []

    def both(tested, begin, missing):
        found.append((in_python(tested, begin, missing), guards.native.first_broken(tested, begin, missing)))
        return found[-1][0]

    monkeypatch.setattr(guards, "_first_broken", both)
    compiled = follows(*CAPTURED[name], DIFFERENTIATED["itself"])
    arrays = [g for r in compiled.recordings for g in r.guard_sets.guards if g.kind == guards.GuardKind.ARRAY]
    assert arrays
    if guards.native.AVAILABLE:
        assert all(a == -1 or b >= 0 for a, b in found)
        assert guards.native.first_broken(tuple([g for g in arrays if g.holds()]), 0, guards.MISSING) == -1


def test_parts_that_a_function_makes_are_not_looked_at():
    data = np.ones((10, 2))
    f = cr.compile(lambda x: sum([x * data[k] for k in range(10)]))
    assert np.array_equal(f(X), X * data.sum(0))
    (found,) = f.recordings
    gc.collect()
    assert [g.target is data for g in found.guard_sets.guards if g.kind == guards.GuardKind.ARRAY] == [True]


# -- changes of state --------------------------------------------------------------------------------------------------

#: functions of x and a number, which compute the same and return different objects
OUTCOMES = {
    "another array": lambda x, k: (x * 2, x * 3)[k],
    "another order": lambda x, k: (x * 2, x * 3)[:: 1 - 2 * k],
    "another container": lambda x, k: [list, tuple][k]([x * 2]),
    "another key": lambda x, k: {"ab"[k]: x * 2},
    "another type of key": lambda x, k: {[1, True][k]: x * 2},
    "another constant": lambda x, k: (x * 2, [1, True][k]),
    "another plain array": lambda x, k: (x * 2, np.array([-0.0, 0.0][k])),
    "another dtype": lambda x, k: np.ones(2, ["f8", "f4"][k]),
    "the argument or a copy": lambda x, k: [x, x * 2][k],
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_recordings_differ_by_what_they_return(name):
    k = [0]
    f = lambda x: OUTCOMES[name](x, k[0])
    compiled = cr.compile(f)
    for k[0] in (0, 0, 1, 1, 0, 1):
        assert outcome(compiled, X) == outcome(f, X)


def test_recordings_differ_by_what_they_write():
    a, b, k = cr.zeros(2), cr.zeros(2), [0]

    def f(x):
        y = x * 2
        (a, b)[k[0]].copy_(y)
        return y

    compiled, x = cr.compile(f), cr.ones(2)
    for count, k[0] in enumerate((0, 0, 1, 1, 0)):
        compiled(x * (count + 1))
        assert (a, b)[k[0]].tolist() == [2.0 * (count + 1)] * 2


# -- results -------------------------------------------------------------------------------------------------------------

KEPT = np.array([1.0, 2.0])
PLAIN = {
    "made by it": lambda x: np.arange(2.0),
    "in a tuple": lambda x: (x * 2, np.zeros(2))[::-1],
    "gradient that depends on no argument": cr.grad(lambda x: x @ np.array([1, 2])),
    "of objects": lambda x: (np.array([1, 2], object), x * 2),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_arrays_that_it_returns_are_the_callers_own(name):
    f = cr.compile(PLAIN[name])
    for _ in range(3):
        result = f(X)
        assert described(result) == described(PLAIN[name](X))
        (result[0] if type(result) is tuple else result)[...] = 7


def test_captured_arrays_that_it_returns_are_themselves():
    f = cr.compile(lambda x: (x * 2, KEPT, KEPT[1:]))
    for _ in range(2):
        _, whole, part = f(X)
        assert whole is KEPT and np.shares_memory(part, KEPT)
        part.shape = (1, 1)  # belongs to the caller
    assert f(X)[2].shape == (1,)


#: a function of an array and a number of any type, whose result is not always an array
NUMBERS = {
    "of both": lambda x, b: np.sum(x) * b + x[0],
    "of the number": lambda x, b: b,
    "an element of it": lambda x, b: np.atleast_1d(b)[0] * 1,
    "an empty index": lambda x, b: b[()],
}
TYPES = {
    "value_and_grad": lambda f: cr.value_and_grad(lambda x, b: (f(x, b), (b * 2, x[0], b, np.sum(b))), has_aux=True),
    "jvp": lambda f: lambda x, b: cr.jvp(lambda x: (f(x, b), (b * 2, x[0], b)), (x,), (np.ones_like(x),), has_aux=True),
    "jacfwd": cr.jacfwd,
    "vmap": lambda f: lambda x, b: cr.vmap(f, (0, None))(np.stack([x, x]), b),
    "an element of a gradient": lambda f: lambda x, b: cr.grad(f)(x, b)[0] * 2,
}


@pytest.mark.parametrize("transform", TYPES)
@pytest.mark.parametrize("name", NUMBERS)
def test_results_have_the_types_of_eager(name, transform):
    f = TYPES[transform](NUMBERS[name])
    for number in (np.array(7.0), np.float32(7.0), 7.0, np.array([7.0])):
        compiled = cr.compile(f)
        assert [outcome(compiled, X, number) for _ in range(2)] == [outcome(f, X, number)] * 2


# -- writes into arguments -----------------------------------------------------------------------------------------------


def iadd(b):
    b += 2.5


#: statements that write into a 0-d array
WRITES = {
    "reshape": lambda b: b.reshape(-1).__setitem__(0, 2.5),
    "transpose": lambda b: b.T.__setitem__(..., 2.5),
    "new axis": lambda b: b[None].__setitem__(0, 2.5),
    "atleast_1d, twice": lambda b: [np.atleast_1d(b).__setitem__(0, value) for value in (2.5, 3.5)],
    "squeeze": lambda b: b.squeeze().__setitem__((), 2.5),
    "+=": iadd,
    "+= after an element": lambda b: [b.reshape(-1).__setitem__(0, 2.5), iadd(b)],
    "out": lambda b: np.add(b, 1, out=b),
    "copyto": lambda b: np.copyto(b, 2.5),
    "fill of a scalar": lambda b: (b < b).std().argmax().fill(2),
    "copyto of a scalar": lambda b: np.copyto(np.sqrt(b), 2.5),
}
OF_BOTH = {
    "itself": lambda f: f,
    "value_and_grad": cr.value_and_grad,
    "jacfwd": cr.jacfwd,
    "jvp": TYPES["jvp"],
    "vmap": lambda f: cr.vmap(f, (0, None)),
}


@pytest.mark.parametrize("transform", OF_BOTH)
@pytest.mark.parametrize("name", WRITES)
def test_writes_into_an_array_without_axes(name, transform):
    def f(x, b):
        WRITES[name](b)
        return np.sum(x**2 * b)

    eager = OF_BOTH[transform](f)
    compiled = cr.compile(eager)
    for k in range(3):
        found, wanted = np.array(7.0 + k), np.array(7.0 + k)
        assert outcome(compiled, X, found) == outcome(eager, X, wanted)
        assert found == wanted


@pytest.mark.parametrize("transform", OF_BOTH)
def test_functions_write_with_their_own_bits(transform):
    def f(x, b):
        np.exp(b, out=b, where=b < 1)
        np.power(b, 0.3, out=b)
        return np.sum(x) * b.mean()

    eager = OF_BOTH[transform](f)
    compiled = cr.compile(eager)
    for k in range(4):
        found, wanted = np.random.default_rng(k).normal(size=(2, 3, 4)).astype("f4")[:1].repeat(2, 0)
        assert outcome(compiled, X, found) == outcome(eager, X, wanted)
        assert found.tobytes() == wanted.tobytes()


def test_integers_are_not_made_of_nan():
    f = cr.compile(lambda b, c: (b.__setitem__(0, c), b * 1.0)[1])
    with pytest.raises(ValueError, match="NaN"):
        f(np.ones(1, int), np.float64(np.nan))
