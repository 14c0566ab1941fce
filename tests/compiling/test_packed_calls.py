"""The calls of a long trace are packed into integers: they are the same calls, with the same passes over them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fuzz.compiled import packing

import chainrule as cr
from chainrule._src import native
from chainrule._src.compiling.encoding import EncodedCalls
from chainrule._src.compiling.fingerprints import Fingerprint
from chainrule._src.interpreters.recorder import Recorder
from chainrule._src.interpreters.trace_types import (
    CallRange,
    Forms,
    TracedCall,
    Var,
    calls_between,
    new_call,
    results_by_number,
)

pytestmark = pytest.mark.skipif(native.LOOPS is None, reason="only the extension packs calls")
X = np.linspace(0.2, 1.7, 6)


class Number(float):
    """A number of another type."""


def steps(x: Any) -> Any:
    """Make calls of ufuncs, templates and views, with numbers that differ in each iteration."""
    total = 0.0
    for i in range(12):
        y = np.exp(-x) * (0.5 + i) + x[1:].sum()
        total = total + np.dot(y[:3], x[i % 4 : i % 4 + 3]) ** 2
        x = np.stack([y[0] + j * x[j] for j in range(6)]) / np.linalg.norm(y)
    return total + np.sort(x)[0]


def with_reads(x: Any) -> Any:
    while x.sum() > 1.0:
        x = x * 0.9 - 0.01 * np.sin(x)
    return x


FUNCTIONS = [
    steps,
    cr.grad(steps),
    with_reads,
    lambda x: np.cumsum(np.einsum("i,j->ij", x, x) @ np.tanh(x)) / (1 + np.cos(x)[0]),
]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Return a function that traces a function, packs calls each time after ``size`` calls, and returns ``look(calls)``."""
    kept: list[Any] = []
    looks: list[Callable[[Any], Any]] = []
    end = Recorder.end

    def keep(self: Recorder) -> None:
        if not kept:
            kept.append(looks[-1](calls_between(self.calls, 0, len(self.calls))))
        end(self)

    monkeypatch.setattr(Recorder, "end", keep)

    def look_at(function: Any, size: int, look: Callable[[Any], Any]) -> Any:
        kept.clear()
        looks.append(look)
        with packing(size, 1 << 40):
            cr.compile(function)(X)
        return kept[0]

    yield look_at


def described(calls: Any) -> list[Any]:
    order: dict[int, int] = {}
    found = []
    for call in calls:
        encoded = EncodedCalls([call])
        arrays = [
            (order.setdefault(var.number, len(order)), var.shape, var.dtype, var.array.strides)
            for var in (*encoded.operands_of(0), *call.results)
        ]
        function = getattr(call.function, "__name__", str(call.function))
        code = call.code and call.code.co_name
        found.append((function, call.method, call.op_name, code, call.lasti, call.pure, call.kept, arrays))
    return found


IDS = ["value", "gradient", "reads", "einsum"]


@pytest.mark.parametrize("function", FUNCTIONS, ids=IDS)
@pytest.mark.parametrize("size", [1, 3])
def test_packed_calls_are_those_of_objects(function: Any, size: int, recorded: Any) -> None:
    kind, objects = recorded(function, 1 << 40, lambda calls: (type(calls), described(calls)))
    packed_kind, packed = recorded(function, size, lambda calls: (type(calls), described(calls)))
    assert (kind, packed_kind) == (list, CallRange)
    assert packed == objects


#: the arrays of encoded calls, except layouts
ARRAYS = (
    "number", "address", "starts", "operands", "result_starts", "results", "form", "signature", "flags", "first", "first_of_form",
    "hashes",
)  # fmt: skip


def arrays_of(encoded: EncodedCalls) -> Any:
    arrays = {name: getattr(encoded, name).tolist() for name in ARRAYS}
    layouts = [*encoded.layouts]
    return arrays, [layouts[k] for k in encoded.layout], [encoded.variables[k] for k in range(len(encoded.variables))]


def compared(calls: Any) -> list[tuple[Any, Any]]:
    """Return pairs that must be equal: from ranges of packed calls, and from lists of the same calls."""
    pairs: list[tuple[Any, Any]] = []
    for begin, end in ((0, len(calls)), (0, len(calls) // 2), (len(calls) // 3, len(calls)), (4, 4)):
        part = calls[begin:end]
        found, expected = EncodedCalls(part), EncodedCalls(list(part))
        pairs.append((arrays_of(found), arrays_of(expected)))
        n = len(expected.variables)
        pairs.append((found.indices(expected.variables).tolist(), [*range(n)]))
        pairs.append((Fingerprint(found), Fingerprint(expected)))
        pairs.append((found.inputs(), expected.inputs()))
        others = [Var(-1, X), Var(0, X)]
        found.add([*others, *expected.variables[:3]])
        pairs.append((found.indices(others).tolist(), [n, n + 1]))
        pairs.append(([found.variables[n], found.variables[n + 1]], others))
    return pairs


@pytest.mark.parametrize("function", FUNCTIONS, ids=IDS)
def test_arrays_are_those_of_objects(function: Any, recorded: Any) -> None:
    pairs = recorded(function, 3, compared)
    assert len(pairs) == 24
    for found, expected in pairs:
        assert found == expected


def test_a_call_takes_less_than_fifty_bytes(recorded: Any) -> None:
    def f(x: Any) -> Any:
        for _ in range(3000):
            x = x + 0.01 * np.sin(x)
        return x

    count, nbytes = recorded(f, 1000, lambda calls: (len(calls), calls.calls.nbytes))
    assert count == 9000
    assert nbytes < 50 * count


def test_released_variables_are_made_again(recorded: Any) -> None:
    def look(calls: Any) -> list[bool]:
        call, again = calls[20], calls[20]
        (result,) = call.results
        with pytest.raises(IndexError):
            calls[len(calls)]
        with pytest.raises(ValueError, match="no step"):
            calls[::2]
        return [
            call is not again and call.results == again.results,
            calls.result(result.number) is result,
            results_by_number(calls, {result.number, -5}) == {result.number: result},
            calls[-1].results == calls[len(calls) - 1].results,
        ]

    assert recorded(steps, 1, look) == [True] * 4


def simple_calls(n: int) -> tuple[list[TracedCall], Recorder]:
    """Return calls in a chain, and a recorder with them."""
    recorder, calls = Recorder(), []
    before = recorder.new(X)
    for k in range(n):
        after = recorder.new(X + k)
        calls.append(new_call(np.add, "__call__", (before, float(k % 3)), (after,)))
        before = after
    return calls, recorder


def test_calls_are_removed_and_replaced() -> None:
    with packing(4, 1 << 40):
        calls, recorder = simple_calls(10)
        for call in calls:
            recorder.calls.append(call)
        recorder.new(X)
        packed = recorder.calls
        assert packed.packed() == len(packed) == 10
        args = [call.args for call in calls]
        assert packed.producer(calls[7].results[0]) == 7
        assert packed.producer(Var(7, X)) == -1
        del packed[7]
        assert packed.packed() == 9
        assert packed.producer(calls[7].results[0]) == -1
        assert packed.producer(calls[8].results[0]) == 7
        del args[7]
        assert [call.args for call in packed] == args
        packed[3:] = packed[4:6]
        assert [call.args for call in packed] == [*args[:3], *args[4:6]]
        recorder.pack_calls()
        assert packed.packed() == 5
        assert [call.args for call in packed] == [*args[:3], *args[4:6]]
        assert EncodedCalls(CallRange(packed, 0, 5)).number.tolist() == EncodedCalls(list(packed)).number.tolist()
        with pytest.raises(ValueError, match="up to the end"):
            packed[1:2] = []
        with pytest.raises(ValueError, match="up to the end"):
            packed[0] = calls[0]
        with pytest.raises(IndexError, match="fewer calls"):
            packed[5]


def test_a_call_without_results_is_not_packed() -> None:
    with packing(2, 1 << 40):
        calls, recorder = simple_calls(5)
        results, calls[3].results = calls[3].results, None  # type: ignore[assignment]
        for call in calls:
            recorder.calls.append(call)
        recorder.new(X)
        assert recorder.calls.packed() == 3
        assert calls_between(recorder.calls, 0, 5)[3] is calls[3]
        calls[3].results = results
        recorder.pack_calls()
        assert recorder.calls.packed() == 5


def test_calls_with_two_arrays_of_one_number_stay_objects() -> None:
    with packing(2, 1 << 40):
        calls, recorder = simple_calls(6)
        for call in calls[:3]:
            recorder.calls.append(call)
        recorder.new(X)
        assert recorder.calls.packed() == 3
        args = [call.args for call in calls]
        calls[4].results[0].number = calls[1].results[0].number
        for call in calls[3:]:
            recorder.calls.append(call)
        recorder.new(X)
        assert recorder.calls.packed() == 0
        assert [call.args for call in recorder.calls] == args
        assert type(calls_between(recorder.calls, 1, 3)) is list


def test_calls_of_other_types_are_refused() -> None:
    calls = native.LOOPS.CallList(Forms())
    with pytest.raises(TypeError, match="TracedCall"), packing(1, 1):
        recorder = Recorder()
        recorder.calls.append(3)
        recorder.new(X)
    with pytest.raises(TypeError, match="Var"):
        calls.find(3)
    with pytest.raises(IndexError):
        calls.variable(0)
    with pytest.raises(IndexError):
        calls.encode(0, 1)


def test_a_trace_is_freed_with_its_recorder() -> None:
    with packing(1, 1):
        calls, recorder = simple_calls(5)
        for call in calls:
            recorder.calls.append(call)
        recorder.pack_calls()
        made = recorder.calls[2].results[0]
        ref = weakref.ref(recorder)
        cycle = [recorder.calls]
        cycle.append(cycle)
        del recorder, cycle
        gc.collect()
        assert ref() is None
        assert made.shape == X.shape


@pytest.mark.parametrize("sizes", [(1, 1), (3, 1 << 40), (1 << 40, 1 << 40)], ids=["at once", "later", "never"])
@pytest.mark.parametrize(
    "numbers",
    [(np.nan, -np.nan), (0.0, -0.0), (Number(0.0), Number(-0.0)), (np.float64(np.nan), -np.float64(np.nan))],
    ids=["nan", "zero", "subclass", "scalar"],
)
def test_numbers_with_other_bits_are_other_numbers(numbers: Any, sizes: Any) -> None:
    def f(x: Any) -> Any:
        for i in range(30):
            x = np.copysign(x, numbers[i * i % 3 % 2], dtype=np.float64) * 1.5 + 0.25 * np.copysign(x, numbers[i % 2])
        return np.pad(x, 1, constant_values=numbers[0]), np.pad(x, 1, constant_values=numbers[1])

    compiled = cr.compile(f)
    with packing(*sizes):
        for x in (X, X, -X):
            for found, expected in zip(compiled(x), f(x), strict=True):
                assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


@pytest.mark.parametrize("function", [np.divmod, np.modf, np.frexp], ids=lambda f: f.__name__)
def test_several_results_of_constants_are_not_folded_from_released_values(function: Any) -> None:
    n = 6144  # each of two results has fewer bytes than the largest folded constant, and both have more
    others = (3.0,) if function is np.divmod else ()

    def f(x: Any) -> Any:
        constant = np.zeros_like(x) + np.linspace(1, 40, n)
        first, second = function(constant, *others)
        return x + np.where(x > 1e3, first * 3 + second, 0 * x)

    compiled, x = cr.compile(f), np.linspace(0.0, 1.0, n)
    with packing(1, 1):
        for given in (x, x, x + 2000):  # the traced numbers do not need the constants
            assert np.asarray(compiled(given)).tobytes() == np.asarray(f(given)).tobytes()


def test_a_list_of_calls_stays_right_after_a_memory_error() -> None:
    testcapi = pytest.importorskip("_testcapi")
    if not hasattr(testcapi, "set_nomemory"):
        pytest.skip("this Python cannot let allocations fail")
    for failing in range(60):
        with packing(1, 1 << 40):
            calls, recorder = simple_calls(12)
            for call in calls[:10]:
                recorder.calls.append(call)
            recorder.new(X)
            recorder.calls.append(new_call(np.multiply, "__call__", (calls[9].results[0], 2.0), calls[10].results))
            recorder.calls.append(calls[11])
            args = [call.args for call in recorder.calls]
            testcapi.set_nomemory(failing, failing + 1)
            try:
                recorder.pack_calls()
            except MemoryError:
                pass
            finally:
                testcapi.remove_mem_hooks()
            recorder.pack_calls()
            assert [call.args for call in recorder.calls] == args
