"""The memory of recorded values is released while a function is traced, without an effect on plans."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fuzz.comparing import compare
from fuzz.compiled import packing

import chainrule as cr
from chainrule._src import native
from chainrule._src.compiling.simplify import is_released
from chainrule._src.tape.modes import LOCAL

ITERATIONS = 60
X = np.linspace(0.0, 1.0, 20_000)

needs_extension = pytest.mark.skipif(native.LOOPS is None, reason="only the extension releases values")


def diffused(u: Any) -> Any:
    for _ in range(ITERATIONS):
        u = u + 0.01 * (np.roll(u, 1) - 2 * u + np.roll(u, -1)) - 0.001 * u * np.sin(u)
    return np.sum(u)


def peak_bytes(call: Callable[[], object]) -> int:
    """Return the peak of the bytes that a call allocates."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@needs_extension
@pytest.mark.parametrize("function", [diffused, cr.grad(diffused)], ids=["value", "gradient"])
def test_first_call_needs_little_more_memory_than_eager(function: Any) -> None:
    eager = peak_bytes(lambda: function(X))
    cr.compile(cr.grad(diffused))(X[:100])  # imports modules, and fills caches
    with packing(1 << 40, 1 << 20):
        first = peak_bytes(lambda: cr.compile(function)(X))
    assert first < 2.5 * eager + (8 << 20)


@needs_extension
def test_values_are_kept_below_the_threshold_and_released_above_it() -> None:
    def kept(size: int) -> int:
        """Return the number of values that are not released at the end of a function."""
        counts = []

        def f(x: Any) -> Any:
            for _ in range(40):
                x = np.sin(x)
            calls = LOCAL.recorder.calls
            counts.append(sum([not is_released(var.array) for call in calls for var in call.results]))
            return x

        with packing(1 << 40, 4096):
            cr.compile(f, pure=True)(np.linspace(0.0, 1.0, size))
        return counts[0]

    assert kept(10) == 40
    assert kept(1000) < 5


def parts(x: Any) -> Any:
    first, rest = x[:2], x[2:]
    total = np.sum(first)
    for i in range(5):
        rest = rest * 1.5 + total
        first = np.concatenate([first, rest[i : i + 1]])
    return first, rest[::-1].reshape(2, -1)


def with_reads(x: Any) -> Any:
    half = x[::2]
    y = np.exp(half)
    if np.sum(y) > 0:
        y = y * 2.0
    z = half + y[::-1]
    while np.max(z) < 40.0:
        z = z * 1.7
    return z * half + y


def with_constants(x: Any) -> Any:
    total = np.zeros_like(x)
    weights = np.broadcast_to(np.arange(4.0) / 7.0, (2, 4)).copy()
    for k in range(6):
        total = total + np.sin(x) * np.ones_like(x) * weights[k % 2, k % 4] + np.full_like(x, k) @ np.ones((8, 8))
    return total + weights.reshape(-1)


def with_python_steps(x: Any) -> Any:
    for _ in range(3):
        x = np.sort(np.cumsum(x)) / np.median(x)
        x = x + np.interp(np.sin(x), [0.0, 1.0], [1.0, 2.0])
    return x


def with_broadcasts(x: Any) -> Any:
    rows = np.broadcast_to(x, (3, 8))
    for _ in range(4):
        rows = rows * np.cos(rows.T[:, :1].T)
    return rows.sum(0) @ rows.T


def with_draws(x: Any) -> Any:
    t = cr.as_tensor(x)
    for _ in range(3):
        t = t.tanh() + cr.rand(8, dtype=cr.float64) * t.cumsum(0)
    return t


def through_tensors(x: Any) -> Any:
    t = cr.tensor(np.asarray(x), requires_grad=True) if isinstance(x, np.ndarray) else x
    y = (t * t)[1:].cumsum(0).exp()
    for _ in range(3):
        y = y / y.norm() + t[:-1]
    return y


PROGRAMS = [parts, with_reads, with_constants, with_python_steps, with_broadcasts]


@pytest.fixture(params=[(1, 1), (16, 200), (5, 1 << 40)], ids=["at once", "after some bytes", "after some calls"])
def sizes(request: Any) -> Iterator[None]:
    with packing(*request.param):
        yield


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_same_bits(function: Any) -> None:
    x = np.linspace(0.1, 1.3, 8)
    assert not compare(function, (x,), (x * 1.01,), (x[::-1],))


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("function", [parts, with_reads, with_constants, with_broadcasts], ids=lambda f: f.__name__)
def test_same_bits_of_gradients(function: Any) -> None:
    def total(x: Any) -> Any:
        found = function(x)
        return sum(np.sum(part) for part in found) if isinstance(found, tuple) else np.sum(found)

    x = np.linspace(0.1, 1.3, 8)
    assert not compare(cr.grad(total), (x,), (x * 1.01,))


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("sizes")
def test_same_bits_with_random_draws() -> None:
    compiled = cr.compile(with_draws)
    for scale in (1.0, 1.01):
        found = []
        for function in (with_draws, compiled):
            cr.manual_seed(3)
            found.append(function(cr.from_numpy(np.linspace(0.1, 1.3, 8) * scale)).numpy())
        assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("sizes")
def test_same_bits_of_backward_passes() -> None:
    compiled = cr.compile(through_tensors)
    for scale in (1.0, 1.01):
        grads = []
        for function in (through_tensors, compiled):
            x = cr.tensor(np.linspace(0.1, 1.3, 8) * scale, requires_grad=True)
            function(x).sum().backward()
            assert x.grad is not None
            grads.append(x.grad.numpy())
        assert grads[0].tobytes() == grads[1].tobytes()


@needs_extension
@pytest.mark.parametrize(
    "function", [*PROGRAMS, with_draws, cr.grad(diffused)], ids=lambda f: getattr(f, "__name__", "gradient")
)
def test_same_plan(function: Any) -> None:
    """Check that plans do not depend on released values: no step runs in Python that ran in native code."""
    x = np.linspace(0.1, 1.3, 8)
    plans = []
    for size in (1, 1 << 40):
        with packing(size, size):
            plans.append(re.sub(r" at [\d,]+ *", " ", str(cr.compile(function).plan(x))))  # without offsets
    assert plans[0] == plans[1]
    assert "native loop" in plans[0]


def test_function_runs_eagerly_if_its_trace_needs_too_much_memory() -> None:
    def f(x: Any) -> Any:
        if LOCAL.recorder is not None:
            raise MemoryError
        return np.sin(x)

    compiled = cr.compile(f, pure=True)
    with pytest.warns(UserWarning, match="its trace needs more memory than there is"):
        found = compiled(X)
    assert found.tobytes() == np.sin(X).tobytes()


def test_memory_error_of_a_function_is_raised() -> None:
    def f(x: Any) -> Any:
        return x * np.zeros(1 << 50)

    with pytest.warns(UserWarning, match="needs more memory"), pytest.raises(MemoryError):
        cr.compile(f)(X)
