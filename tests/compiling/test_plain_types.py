"""Type queries and integer arithmetic in compiled functions equal those of plain code, or prevent the recording."""

import numbers
import warnings

import numpy as np
import pytest

import chainrule as cr

X, S = np.ones(2), 2.5


def matched(x, s):
    match s:
        case float():
            return x * 2
        case _:
            return x * 3


def kind(condition):
    """Return a function with a branch."""
    return lambda x, s: x * 2 if condition(x, s) else x * 3


ASKED = {
    "a float": (kind(lambda x, s: isinstance(s, float)), (X, S)),
    "what comes of it": (kind(lambda x, s: isinstance(s * 2, float)), (X, S)),
    "no integer": (kind(lambda x, s: isinstance(s, int)), (X, S)),
    "an integer": (kind(lambda x, s: isinstance(s, int)), (X, 2)),
    "a real number": (kind(lambda x, s: isinstance(s, numbers.Real)), (X, S)),
    "a complex number": (kind(lambda x, s: isinstance(s, complex)), (X, 2j)),
    "a scalar of NumPy's": (kind(lambda x, s: isinstance(s, float)), (X, np.float64(2))),
    "one in single precision": (kind(lambda x, s: isinstance(s, np.floating)), (X, np.float32(2))),
    "an element": (kind(lambda x, s: isinstance(x[0], float)), (X, S)),
    "a sum": (kind(lambda x, s: isinstance(x.sum(), np.float64)), (X, S)),
    "an array": (kind(lambda x, s: isinstance(x, np.ndarray)), (X, S)),
    "no Array": (kind(lambda x, s: isinstance(x, cr.Array)), (X, S)),
    "an array without axes": (kind(lambda x, s: isinstance(s, np.ndarray)), (X, np.array(2.0))),
    "match": (matched, (X, S)),
    "np.isscalar": (kind(lambda x, s: np.isscalar(s) and np.isscalar(x[0]) and not np.isscalar(x)), (X, S)),
    "np.iterable": (kind(lambda x, s: np.iterable(s)), (X, S)),
    "base": (kind(lambda x, s: x.base is None), (X, S)),
    "base of a view": (kind(lambda x, s: x.base is None), (X[:1], S)),
    "__class__": (kind(lambda x, s: s.__class__ is float and x.__class__ is np.ndarray), (X, S)),
    "type of a float": (kind(lambda x, s: type(s) is float), (X, S)),
    "type of an element": (kind(lambda x, s: type(x[0]) is np.float64), (X, S)),
    "type of an array": (kind(lambda x, s: type(x) is np.ndarray), (X, S)),
    "hasattr": (kind(lambda x, s: hasattr(s, "dtype") or hasattr(s, "__len__")), (X, S)),
    "hasattr, of a float's": (kind(lambda x, s: hasattr(s, "hex")), (X, S)),
    "getattr": (kind(lambda x, s: getattr(s, "ndim", 5) == 0), (X, S)),
    "an attribute that floats lack": (lambda x, s: x * s.sum(), (X, S)),
}


def outcome(call, *args):
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        try:
            result = call(*args)
        except (AttributeError, TypeError, ValueError, FloatingPointError) as error:
            return type(error), ()
    said = {str(w.message).partition(" encountered")[0] for w in log if w.category is RuntimeWarning}
    return repr(result), said


@pytest.mark.parametrize("name", ASKED)
def test_types_are_those_of_plain_code(name):
    function, args = ASKED[name]
    compiled = cr.compile(function)
    for _ in range(3):
        assert outcome(compiled, *args) == outcome(function, *args)


@pytest.mark.parametrize("name", ["a float", "an element", "an array", "match", "no integer"])
def test_types_where_state_is_not_looked_at(name):
    function, args = ASKED[name]
    compiled = cr.compile(function, pure=True)
    for _ in range(3):
        assert outcome(compiled, *args) == outcome(function, *args)


def test_isinstance_is_recorded():
    compiled = cr.compile(ASKED["a float"][0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for s in (1.5, 2.5, 3.5):
            np.testing.assert_array_equal(compiled(X, s), X * 2)


def first_written(x):
    y = np.array([x[0], x[1]])
    y[0] = 2.7
    return y


def added_to(x):
    y = np.array([x[0], x[1]])
    y += 1.5
    return y


HOLDERS = {
    "written": first_written,
    "added to": added_to,
    "dtype": lambda x: np.array([x[0], x[1]]).dtype == x.dtype,
    "returned": lambda x: np.array([x[1], x[0]]),
}


@pytest.mark.parametrize("x", [np.array([1, 2]), np.array([1.0, 2.0]), np.array([1.0, 2.0], np.float32)])
@pytest.mark.parametrize("name", HOLDERS)
def test_arrays_of_values_have_a_dtype(name, x):
    compiled = cr.compile(HOLDERS[name])
    for _ in range(3):
        assert outcome(compiled, x) == outcome(HOLDERS[name], x)


INTEGERS = {
    "add": lambda a: a[0] + a[1],
    "subtract": lambda a: a[1] - a[0] - a[0],
    "multiply": lambda a: a[0] * a[0],
    "negative": lambda a: -(-a[0] - a[1]),
    "absolute": lambda a: abs(-a[0] - a[1]),
    "power": lambda a: a[0] ** 2,
    "floor_divide": lambda a: a[0] // (a[1] - 1),
    "a number": lambda a: a[0] + 1,
    "a ufunc": lambda a: np.add(a[0], a[1]),
    "arrays": lambda a: a + a,
    "no overflow": lambda a: a[0] - a[1],
}


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("name", INTEGERS)
def test_overflow_of_integers_is_warned_of(name, dtype):
    a = np.array([np.iinfo(dtype).max, 1], dtype)
    compiled = cr.compile(INTEGERS[name])
    for _ in range(3):
        assert outcome(compiled, a) == outcome(INTEGERS[name], a)
    with np.errstate(all="raise"):
        assert outcome(compiled, a) == outcome(INTEGERS[name], a)


def test_elements_that_are_added_lie_as_in_eager():
    x, index, source = cr.arange(12.0).reshape(3, 4).T, cr.tensor([0, 2]), cr.ones(2, 3)
    compiled = cr.compile(lambda x, index, source: x.index_add(0, index, source))
    for _ in range(3):
        assert compiled(x, index, source).stride() == x.index_add(0, index, source).stride() == (1, 4)


def test_derivatives_by_arrays_made_inside_have_the_type_of_an_array():
    def f(x):
        return cr.vjp(lambda v: v * 3 if isinstance(v, np.ndarray) else v * 2, np.zeros(2))[1](x)[0]

    compiled = cr.compile(f)
    for _ in range(2):
        assert np.array_equal(compiled(np.ones(2)), f(np.ones(2)))


def test_what_a_method_of_a_scalar_writes_to_is_an_array():
    def clipped(a):
        v = np.reciprocal(a)
        v.clip(0, 0.7, out=a)
        return v, a

    compiled = cr.compile(clipped)
    for _ in range(2):
        found, expected = compiled(np.array(0.5)), clipped(np.array(0.5))
        assert [type(x) for x in found] == [type(x) for x in expected] and found == expected
