"""Repeated calls of a compiled function with other numbers, identical objects, and invalid arguments, compared with eager."""

import gc
import time
import warnings

import numpy as np
import pytest

import chainrule as cr

TURNS = ([1.0, 2.0], [3.5, -2.0], [0.0, 0.5], [4.0, 5.0], [1.0, 2.0])
OF_NUMBERS = {
    "str": lambda x: x * len(str(x)),
    "repr": lambda x: x * len(repr(x)),
    "str of an element": lambda x: str(x[0]),
    "repr of an element": lambda x: repr(x[0]),
    "%": lambda x: "%s" % x,  # noqa: UP031
    "str.format": lambda x: "{} {}".format(x, x[1]),  # noqa: UP032
    "f-string": lambda x: f"{x} {x[0]} {x[1]!r}",
    "in a tuple": lambda x: str((x[0], 1)),
    "in a list": lambda x: str([x]),
    "in an exception": lambda x: str(ValueError(x)),
    "np.array2string": np.array2string,
    "of a gradient": lambda x: cr.grad(lambda y: np.sum(y * len(str(y))))(x),
    "number of what where() finds": lambda x: x * np.where(x > 1)[0].size,
    "length of what where() finds": lambda x: x * len(np.where(x > 1)[0]),
    "as many as where() finds": lambda x: np.arange(np.where(x > 1)[0].size) * 1.0,
    "np.arange": lambda x: np.arange(abs(x[1])),
    "base": lambda x: x * (2 if x[:1].base is x else 3),
}


def outcome(call, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call(*args)
        except (ValueError, TypeError, OverflowError) as error:
            return type(error), str(error)[:20], args
    return repr(result), getattr(result, "dtype", None), [(repr(x), getattr(x, "flags", None)) for x in args]


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_other_numbers(name, pure):
    compiled = cr.compile(OF_NUMBERS[name], pure=pure)
    for numbers in TURNS:
        for dtype in (float, np.float32):
            x = np.array(numbers, dtype)
            assert outcome(compiled, x) == outcome(OF_NUMBERS[name], x)


def test_text_of_tensors():
    compiled = cr.compile(lambda x: str(x * 2))
    for numbers in TURNS:
        assert compiled(cr.tensor(numbers)) == str(cr.tensor(numbers) * 2)


def twice():
    x = np.array([1.0, 2.0])
    return x, x


def two():
    return np.array([1.0, 2.0]), np.array([3.0, 4.0])


def overlapping():
    x = np.arange(3.0)
    return x[1:], x[:-1]


OF_TWO = {
    "is": lambda x, y: x * (2 if x is y else 3),
    "is not": lambda x, y: x * (2 if x is not y else 3),
    "shares_memory": lambda x, y: x * (2 if np.shares_memory(x, y) else 3),
    "may_share_memory": lambda x, y: x * (2 if np.may_share_memory(x, y) else 3),
}


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("name", OF_TWO)
def test_arguments_that_are_one(name, pure):
    compiled = cr.compile(OF_TWO[name], pure=pure)
    for make in (two, twice, overlapping, two):
        assert outcome(compiled, *make()) == outcome(OF_TWO[name], *make())


def test_where_tensors_lie():
    compiled = cr.compile(lambda x, y: x * (2 if x.data_ptr() == y.data_ptr() else 3), pure=True)
    x, y = cr.ones(2), cr.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [compiled(x, y).tolist(), compiled(x, x).tolist()] == [[3.0, 3.0], [2.0, 2.0]]


def put(x, value):
    x[0] = value
    return x * 1


def frozen(x):
    x.flags.writeable = False
    return x * 2


WRITES = {
    "a float": (lambda s: put(s, 5.0), lambda: (2.5,)),
    "a scalar": (lambda s: put(s, 5.0), lambda: (np.float64(2.5),)),
    "a float, by out=": (lambda s: np.add(s, 1, out=s), lambda: (2.5,)),
    "nan in integers": (lambda x: put(x, np.nan), lambda: (np.array([1, 2]),)),
    "a number too large for integers": (lambda x: put(x, 1e300), lambda: (np.array([1, 2]),)),
    "nans in integers": (lambda x: put(x, [np.nan, 1.0]), lambda: (np.array([[1, 2]]),)),
    "a float in integers": (lambda x: put(x, 2.7), lambda: (np.array([1, 2]),)),
    "flags": (frozen, lambda: (np.array([1.0, 2.0]),)),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_cannot_be_written(name):
    function, make = WRITES[name]
    compiled = cr.compile(function)
    for _ in range(3):
        ours, theirs = make(), make()
        assert str(outcome(compiled, *ours)) == str(outcome(function, *theirs))


def test_no_integer_is_made_of_nan():
    x = cr.Array(np.array([1, 2]))
    with pytest.raises(ValueError, match="NaN to integer"):
        x[0] = np.nan
    assert x.tolist() == [1, 2]


HISTORIES = {
    "requires_grad_": lambda x: x.requires_grad_() * 2,
    "detach_": lambda x: x.detach_() * 2,
    ".grad": lambda x: [x * 2, setattr(x, "grad", x.detach() * 3)][0],
    "a product with what has one": lambda x: x.mul_(WEIGHT) * 2 if not x.requires_grad else x * 2,
}
WEIGHT = cr.ones(2, requires_grad=True)


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("name", HISTORIES)
def test_histories_of_arguments_are_changed_as_in_eager(name):
    compiled = cr.compile(HISTORIES[name])
    for requires_grad in (False, True, False):
        found = []
        for call in (compiled, HISTORIES[name]):
            x = cr.ones(2, requires_grad=requires_grad)
            y = call(x)
            grad = x._grad
            found.append(
                (y.tolist(), y.requires_grad, x.tolist(), x.requires_grad, None if grad is None else grad.tolist())
            )
        assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["function", "object"])
def test_who_watches_the_collector_is_no_part_of_a_function(kind):
    times = []

    def watch(phase, info):
        times.append((phase, time.perf_counter()))

    class Watch:
        def __call__(self, phase, info):
            watch(phase, info)

    callback = watch if kind == "function" else Watch()

    def step(x):
        callback("start", {})  # like the collector calls it, between any two instructions
        return x * 2

    compiled = cr.compile(step)
    gc.callbacks.append(callback)
    try:
        assert compiled(np.ones(2)).tolist() == [2, 2]
    finally:
        gc.callbacks.remove(callback)
    assert times and len(compiled.recordings) == 1
