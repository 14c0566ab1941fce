"""Measure the worst-case overhead of ``compile`` with adversarial patterns of calls, compared with eager calls.

    python benchmarks/compile_policy.py [--seconds 1] [pattern ...]

For each pattern the table shows the seconds of eager and compiled calls, their ratio after subtracting the longest
compiled call (one plan may be useless), the number of traces, the calls that ran eagerly, and the cached bytes. The
documented bound of the ratio is 2; the exit status is 1 if it is exceeded.

The times are CPU times of the thread. Results are compared bit for bit at intervals.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the time of its other threads is not measured

import numpy as np

import chainrule as cr

#: a function and the arguments of its calls
Pattern = tuple[Callable[..., Any], Iterator[tuple[Any, ...]]]
PATTERNS: dict[str, Callable[[np.random.Generator], Pattern]] = {}
STATE: dict[str, Any] = {"scale": 1.0, "table": list(range(100_000))}


def pattern(make: Callable[[np.random.Generator], Pattern]) -> Callable[[np.random.Generator], Pattern]:
    PATTERNS[make.__name__] = make
    return make


def endless(make: Callable[[], tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    while True:
        yield make()


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def switches(x: Any) -> Any:
    for k in range(12):
        x = np.tanh(x * 1.3 + 0.1)
        if x[k] > 0:
            x = x[::-1] * 0.9
    return np.sum(x)


def clipped(x: Any, rows: Any) -> Any:
    t = np.sum(x) * 0.1
    for row in rows:
        x = np.tanh(x + row)
        t = t * 0.9 + np.max(x) * 0.1
        if t > 0.5:
            x = x * 0.5
    return np.sum(x) + t


def newton(a: Any) -> Any:
    y = a
    while np.max(np.abs(y * y - a) / a) > 1e-10:
        y = 0.5 * (y + a / y)
    return y


def unrolled(x: Any, n: int) -> Any:
    for k in range(n):
        x = (np.sin, np.cos, np.tanh)[k * k % 7 % 3](x) * (k + 0.5)
    return np.sum(x)


# -- patterns ----------------------------------------------------------------------------------------------------------


@pattern
def one_shape(rng: np.random.Generator) -> Pattern:
    return cr.grad(rosenbrock), endless(lambda: (rng.normal(size=20),))


@pattern
def twenty_shapes(rng: np.random.Generator) -> Pattern:
    return cr.grad(rosenbrock), endless(lambda: (rng.normal(size=rng.integers(2, 22)),))


@pattern
def a_new_shape_in_each_call(rng: np.random.Generator) -> Pattern:
    sizes = iter(range(2, 10**9))
    return cr.grad(rosenbrock), endless(lambda: (rng.normal(size=next(sizes)),))


@pattern
def shapes_of_which_few_come_often(rng: np.random.Generator) -> Pattern:
    return cr.grad(rosenbrock), endless(lambda: (rng.normal(size=min(1 + rng.zipf(1.5), 5000)),))


@pattern
def dtypes_and_shapes(rng: np.random.Generator) -> Pattern:
    dtypes = ["f4", "f8", "c8", "c16"]
    return (lambda x: np.sum(np.tanh(x) * x[::-1])), endless(
        lambda: (rng.normal(size=rng.integers(1, 60)).astype(rng.choice(dtypes)),)
    )


@pattern
def twelve_switches(rng: np.random.Generator) -> Pattern:
    return switches, endless(lambda: (rng.normal(size=12),))


@pattern
def gradient_of_a_loop_with_a_branch(rng: np.random.Generator) -> Pattern:
    return cr.grad(clipped), endless(lambda: (rng.normal(size=3), rng.normal(size=(40, 3))))


@pattern
def trip_counts_that_depend_on_values(rng: np.random.Generator) -> Pattern:
    return newton, endless(lambda: (np.exp(rng.normal(size=4) * rng.integers(1, 12)),))


@pattern
def trip_counts_that_are_arguments(rng: np.random.Generator) -> Pattern:
    return cr.grad(unrolled), endless(lambda: (rng.normal(size=4), int(rng.integers(1, 150))))


@pattern
def a_number_that_python_reads(rng: np.random.Generator) -> Pattern:
    return (lambda x: np.sin(x) / float(np.max(x)) + np.cos(x)), endless(lambda: (rng.normal(size=8),))


@pattern
def an_integer_that_changes(rng: np.random.Generator) -> Pattern:
    numbers = iter(range(10**9))
    return (lambda x, k: np.sum(np.sin(x * k) ** 2)), endless(lambda: (rng.normal(size=8), next(numbers)))


@pattern
def a_function_that_changes(rng: np.random.Generator) -> Pattern:
    def make() -> tuple[Any, ...]:
        by = rng.normal()
        return rng.normal(size=8), lambda x: np.sin(x) * by

    return (lambda x, f: np.sum(f(f(f(x))))), endless(make)


@pattern
def captured_state_that_changes(rng: np.random.Generator) -> Pattern:
    def make() -> tuple[Any, ...]:
        STATE["scale"] = float(rng.normal())
        return (rng.normal(size=8),)

    return cr.grad(lambda x: np.sum(np.sin(x * STATE["scale"]) ** 2)), endless(make)


@pattern
def captured_arrays_that_change(rng: np.random.Generator) -> Pattern:
    weights = np.ones(2000)

    def make() -> tuple[Any, ...]:
        weights[rng.integers(2000)] += 1
        return (rng.normal(size=2000),)

    return (lambda x: np.sum(np.sqrt(weights) * x)), endless(make)


@pattern
def state_that_takes_long_to_compare(rng: np.random.Generator) -> Pattern:
    return (lambda x: np.sum(np.sin(x)) * STATE["table"].index(1)), endless(lambda: (rng.normal(size=8),))


@pattern
def exceptions_in_the_middle(rng: np.random.Generator) -> Pattern:
    def f(x: Any, k: int) -> Any:
        y = np.sum(np.tanh(x) ** 2)
        if k % 3 == 0:
            raise KeyError(k)
        return np.sum(np.sin(x) * y)

    return f, endless(lambda: (rng.normal(size=8), int(rng.integers(1000))))


@pattern
def functions_that_cannot_be_traced(rng: np.random.Generator) -> Pattern:
    noise = np.random.default_rng(0)

    def f(x: Any) -> Any:
        y = np.sum(np.tanh(x) ** 2)
        return y + 0 * noise.normal()

    return f, endless(lambda: (rng.normal(size=rng.integers(1, 1000)),))


@pattern
def functions_that_call_compiled_ones(rng: np.random.Generator) -> Pattern:
    inner = cr.compile(lambda x: np.sum(np.sin(x) * np.tanh(x)))
    other = cr.compile(lambda x, k: np.sum(np.cos(x * k)))
    return (lambda x, k: inner(x) + other(x, k % 50)), endless(
        lambda: (rng.normal(size=rng.integers(1, 40)), int(rng.integers(1000)))
    )


@pattern
def kinds_that_come_in_phases(rng: np.random.Generator) -> Pattern:
    def calls() -> Iterator[tuple[Any, ...]]:
        while True:
            size = int(rng.integers(2, 10**6)) % 3000 + 2
            for _ in range(int(rng.integers(1, 150))):
                yield (rng.normal(size=size),)

    return cr.grad(rosenbrock), calls()


@pattern
def small_functions_in_turn(rng: np.random.Generator) -> Pattern:
    return (lambda x: np.stack([x[1], -np.sin(x[0]) - 0.2 * x[1]]).sum()), endless(
        lambda: (rng.normal(size=rng.integers(2, 30)),)
    )


@pattern
def containers_that_change(rng: np.random.Generator) -> Pattern:
    names = "abcdefgh"

    def make() -> tuple[Any, ...]:
        return ({name: rng.normal(size=4) for name in names if rng.random() < 0.5},)

    return (lambda d: sum([np.sum(np.sin(x)) for x in d.values()], np.zeros(()))), endless(make)


@pattern
def methods_of_new_objects(rng: np.random.Generator) -> Pattern:
    class Model:
        def __init__(self) -> None:
            self.w = rng.normal(size=4)

    return (lambda model, x: np.sum(np.tanh(x * model.w))), endless(lambda: (Model(), rng.normal(size=4)))


@pattern
def training_steps_with_and_without_gradients(rng: np.random.Generator) -> Pattern:
    parameters = [cr.randn(4, 4, requires_grad=bool(k % 2)) for k in range(6)]

    def step(x: Any) -> Any:
        for p in parameters:
            x = cr.tanh(x @ p)
        loss = (x**2).sum()
        loss.backward()
        return loss.detach()

    def make() -> tuple[Any, ...]:
        for p in parameters[1::2]:
            if rng.random() < 0.5:
                p.grad = None
        return (cr.tensor(rng.normal(size=(4, 4)), dtype=cr.float32),)

    return step, endless(make)


# -- measurement -------------------------------------------------------------------------------------------------------


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, float]:
    begin = time.thread_time()
    try:
        result = function(*args)
    except KeyError as error:
        result = str(error)
    return result, time.thread_time() - begin


def measure(name: str, seconds: float, seed: int) -> float:
    rng = np.random.default_rng(seed)
    function, calls = PATTERNS[name](rng)
    compiled = cr.compile(function)
    eager = total = longest = 0.0
    for k, args in enumerate(calls):
        if k % 2:
            expected, first = outcome(function, args)
            found, second = outcome(compiled, args)
        else:
            found, second = outcome(compiled, args)
            expected, first = outcome(function, args)
        if name != "training_steps_with_and_without_gradients":
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes(), (name, k, found, expected)
        eager, total, longest = eager + first, total + second, max(longest, second)
        if eager > seconds:
            break
    ratio = (total - longest) / eager
    budget = compiled.budget
    print(
        f"{name:42} {k + 1:6} calls, eager {eager:6.2f} s, compiled {total:6.2f} s, one plan {longest:6.3f} s, ratio {ratio:5.2f}, "
        f"{budget.traces:3} traces, {compiled.memory / 1e6:6.1f} MB",
        flush=True,
    )
    return ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds of eager calls for each pattern")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("patterns", nargs="*", help=", ".join(PATTERNS))
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ratios = {name: measure(name, options.seconds, options.seed) for name in options.patterns or PATTERNS}
    worst = max(ratios, key=lambda name: ratios[name])
    print(f"worst ratio: {ratios[worst]:.2f} ({worst})")
    return int(ratios[worst] > 2)


if __name__ == "__main__":
    sys.exit(main())
