"""Plans check the values that Python reads in a loop: the bits are those of eager calls on every path."""

from __future__ import annotations

import re
import threading
import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule._src import native
from chainrule._src.compiling import plan as plan_module
from chainrule._src.compiling.branched import Branched

R = np.random.default_rng(0)


def same(got, want):
    for x, y in zip(got, want, strict=True) if isinstance(got, (tuple, list)) else [(got, want)]:
        assert type(x) is type(y)
        assert np.asarray(x).dtype == np.asarray(y).dtype and np.asarray(x).tobytes() == np.asarray(y).tobytes()


def compiled_as(function, inputs, **options):
    """Compile a function and compare its calls with eager ones, each twice."""
    compiled = cr.compile(function, max_slowdown=None, **options)
    for x in inputs:
        for _ in range(2):
            same(compiled(x), function(x))
    return compiled


def trees_of(compiled):
    return [tree for trees in compiled._trees.values() for tree in trees]


def halved(x):
    while np.sum(x * x) > 1e-2:
        x = np.tanh(x) * 0.5
    return np.sum(x)


def damped(x):
    v = np.zeros_like(x)
    for _ in range(40):
        a = -x - 0.1 * v
        if np.sum(a * a) > 0.4:
            a = a * 0.5
        v = v + 0.1 * a
        x = x + 0.1 * v
    return np.sum(x * x)


def ended(x):
    for _ in range(30):
        step = (x * x - 2.0) / (2.0 * x)
        x = x - step
        if np.max(np.abs(step)) < 1e-9:
            break
    return np.sum(x)


def of_items(x):
    total = x * 0.0
    for _ in range(6):
        total = total * x + np.max(x).item()
        x = x * 0.5
    return total


def of_complex_numbers(x):
    z = x + 0.5j
    for _ in range(6):
        if np.sum(z).real > 1.0:
            z = z * 0.5j
        z = z * z
        if (z[0] * 1.0).item() == 3 + 4j:
            z = z + 1
    return z


def of_masks(x):
    for _ in range(5):
        x = x + np.sum(x[x > 0]) * 0.1
    return x


INPUTS = [R.standard_normal(5) * s for s in (0.1, 1.0, 1.0, 4.0)] + [np.linspace(0.5, 9, 5)]


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("function", [halved, damped, ended, of_items, of_masks], ids=lambda f: f.__name__)
def test_every_path(function, gradient):
    if gradient:
        if function is of_items:
            pytest.skip("item() of a differentiated array is refused")
        function = cr.grad(lambda x, inner=function: np.sum(inner(x)))
    compiled_as(function, INPUTS + INPUTS[::-1])


def test_complex_values():
    compiled_as(of_complex_numbers, INPUTS)


def test_a_loop_with_a_condition_is_one_plan_with_one_body():
    compiled = compiled_as(cr.grad(damped), INPUTS[:1])
    (tree,) = trees_of(compiled)
    assert len(tree.segments()) == 1 and len(tree.root.checks) == 40
    if native.AVAILABLE:
        counts = [count for _, _, count in tree.root.plan.loops]
        assert sum(counts) > 60  # forward and backward, without peeled iterations


def test_a_few_values_on_different_lines_divide_the_trace():
    def f(x):
        if np.sum(x) > 0:
            x = x * 2
        if np.max(x) > 1:
            x = x - 1
        return x

    compiled = compiled_as(f, INPUTS)
    assert all([not segment.checks for tree in trees_of(compiled) for segment in tree.segments()])


def test_the_shortcut_finds_the_path():
    compiled = cr.compile(halved, max_slowdown=None)
    inputs = [np.full(3, 10.0**k) for k in range(-2, 5)]
    for x in inputs:
        compiled(x)
    for _ in range(3):
        for k in R.permutation(len(inputs)):
            same(compiled(inputs[k]), halved(inputs[k]))
            same(compiled(inputs[k]), halved(inputs[k]))
    assert isinstance(compiled._shortcut, Branched) or not native.AVAILABLE
    recordings = len(compiled.recordings)
    for x in inputs:
        same(compiled(x), halved(x))
    assert len(compiled.recordings) == recordings


@pytest.mark.parametrize("function", [halved, damped, ended, of_masks], ids=lambda f: f.__name__)
def test_without_native_code(function, monkeypatch):
    monkeypatch.setattr(plan_module.ExecutionPlan, "_make_native", lambda *args: False)
    compiled = compiled_as(function, INPUTS)
    assert all([segment.plan.executor == "python" for tree in trees_of(compiled) for segment in tree.segments()])


def test_plans_with_steps_in_python():
    def f(x):
        for _ in range(8):
            x = np.interp(x, [-1.0, 0.0, 1.0, 2.0], [0.5, 0.1, 0.3, 0.2]) + x * 0.5
            if np.sum(x) > 1.0:
                x = x - 0.2
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of steps that Python runs
        compiled_as(f, INPUTS)


def test_iterations_after_another_value_do_not_run():
    """Their floating-point exceptions and singular matrices are not those of the call."""

    def f(x):
        for _ in range(10):
            if np.min(x) <= 0.0:
                return x
            x = np.sqrt(np.log(x + 1.0) - 0.05)
        return np.linalg.solve(np.diag(x), x)

    inputs = [np.full(3, 30.0), np.full(3, 50.0), np.full(3, 0.2), np.zeros(3), np.full(3, -2.0)]
    compiled = cr.compile(f, max_slowdown=None)
    with np.errstate(all="raise"):
        for x in [*inputs, *inputs]:
            try:
                want = f(x)
            except FloatingPointError as error:
                with pytest.raises(FloatingPointError, match=str(error)):
                    compiled(x)
            else:
                same(compiled(x), want)


def test_random_numbers_are_drawn_again():
    def f(x):
        for _ in range(6):
            x = x + 0.1 * np.asarray(cr.randn(x.shape[0], dtype=cr.float64))
            if np.sum(x) > 0.5:
                x = x * 0.5
        return x

    compiled = cr.compile(f, max_slowdown=None)
    for seed in range(12):
        cr.manual_seed(seed % 4)
        want, after = f(INPUTS[seed % 3]), cr.rand(1).item()
        cr.manual_seed(seed % 4)
        same(compiled(INPUTS[seed % 3]), want)
        assert cr.rand(1).item() == after


def test_written_arrays_are_written_only_on_the_right_path():
    memory = cr.zeros(5, dtype=cr.float64)

    def f(x):
        for _ in range(6):
            if memory.sum() < 3.0:
                memory.add_(x)
        return memory.sum()

    compiled = cr.compile(f, max_slowdown=None)
    for x in [cr.tensor(x) for x in INPUTS * 2]:
        memory.zero_()
        want, content = f(x), memory.clone()
        memory.zero_()
        assert compiled(x).equal(want) and memory.equal(content)
    assert len(compiled.recordings) > 1
    assert all([not segment.checks for tree in trees_of(compiled) for segment in tree.segments()])


def test_signed_zeros_and_nan_are_different_values():
    def f(x):
        for _ in range(4):
            x = x * 1.0 + np.copysign(1.0, x[0].item())
            x = x - np.copysign(1.0, x[0])
        return x

    compiled_as(f, [np.array([0.0, 1.0]), np.array([-0.0, 1.0]), np.array([np.nan, 1.0]), np.array([-np.nan, 1.0])])


def test_threads():
    compiled = cr.compile(cr.grad(halved))
    inputs = [np.full(3, 10.0**k) for k in range(-2, 4)]
    wanted = [cr.grad(halved)(x) for x in inputs]
    problems = []

    def work(seed):
        try:
            for k in np.random.default_rng(seed).integers(0, len(inputs), 150):
                same(compiled(inputs[k]), wanted[k])
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_dropped_traces():
    compiled = cr.compile(cr.grad(halved), max_slowdown=None, max_bytes=60_000)
    for k in R.integers(-2, 5, 60):
        x = np.full(3, 10.0**k)
        same(compiled(x), cr.grad(halved)(x))


def test_an_error_in_an_iteration():
    def f(x):
        for i in range(12):
            if np.sum(x) > 1e3:
                raise OverflowError(f"in iteration {i}")
            x = x * 2.0
        return x

    compiled = cr.compile(f, max_slowdown=None)
    for x in (np.full(2, 1e-3), np.full(2, 3.0), np.full(2, 1e-3), np.full(2, 90.0)):
        try:
            want = f(x)
        except OverflowError as error:
            with pytest.raises(OverflowError, match=str(error)):
                compiled(x)
        else:
            same(compiled(x), want)


def test_messages():
    compiled = compiled_as(damped, INPUTS[:1])
    assert re.search(r"reads `if np.sum\(a \* a\) > 0.4:` \(test_value_checks.py:\d+\), 40 times", compiled.explain())
    assert "check" in str(compiled.plan(INPUTS[0]))
    if native.AVAILABLE:
        pytest.importorskip("scipy")

        def f(x):
            while x > 1.0:
                x = x * 0.5
            return x

        with pytest.raises(RuntimeError, match="Python reads a value in it"):
            cr.compile(f).as_low_level_callable(100.0)


def test_a_shortcut_tries_the_traces_of_other_states():
    scale = {"by": 1.0}

    def f(x):
        for _ in range(6):
            if np.sum(x) > 1.0:
                x = x * 0.5
        return x * scale["by"]

    compiled = cr.compile(f, max_slowdown=None)
    for k in range(24):
        scale["by"] = 1.0 + k // 2 % 3
        same(compiled(INPUTS[1] + k % 2), f(INPUTS[1] + k % 2))
    assert isinstance(compiled._shortcut, Branched) or not native.AVAILABLE
    shortcut, recordings = compiled._shortcut, len(compiled.recordings)
    for k in range(12):
        scale["by"] = 1.0 + k % 3
        if shortcut:
            same(shortcut.call((INPUTS[1],)), f(INPUTS[1]))
        same(compiled(INPUTS[1]), f(INPUTS[1]))
    assert len(compiled.recordings) == recordings
