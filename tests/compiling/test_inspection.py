"""Information about compiled functions, and their errors."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import chainrule as cr


def branching(x):
    if x.sum() > 0:
        x = x * 2
    return np.linalg.solve(np.eye(3) + np.outer(x, x), x)


def test_a_plan_has_a_line_for_each_step_and_says_what_python_reads():
    compiled = cr.compile(branching)
    plan = compiled.plan(np.ones(3))
    text = str(plan)
    assert "solve" in text and "test_inspection.py:" in text and "Python reads %3" in text
    assert len(plan.plans) == 2 and len(plan.steps) >= 5
    assert plan.memory <= compiled.memory
    assert plan.executor == ("native" if cr.compile.executor == "native" else "python")
    assert len(compiled.recordings) == 1
    assert compiled.plan(-np.ones(3)).plans[0] is plan.plans[0]
    assert len(compiled.recordings) == 2


def test_looking_at_a_plan_changes_nothing():
    w = cr.tensor([1.0, 2.0])
    compiled = cr.compile(lambda x: w.add_(x + cr.rand(2)).sum())
    cr.manual_seed(0)
    before = cr.get_rng_state()
    compiled.plan(cr.ones(2)), compiled.plan(cr.ones(2))
    assert w.tolist() == [1.0, 2.0] and cr.get_rng_state() == before
    assert "in Python" in str(compiled.plan(cr.ones(2))) or cr.compile.executor != "native"


def test_explain_accounts_for_all_recordings():
    compiled = cr.compile(branching)
    compiled(np.ones(3)), compiled(-np.ones(3))
    text = compiled.explain()
    steps = "11 of 11" if cr.compile.executor == "native" else "0 of 11"
    assert text.startswith(f"compiled branching: executor {cr.compile.executor}; {steps} steps native\n")
    assert text.count("trace for float64[3]") == 2 and "if x.sum() > 0:" in text


@pytest.mark.skipif(cr.compile.executor != "native", reason="the extension is not built")
def test_a_step_in_a_loop_that_is_not_native_is_named_once():
    def powers(x):
        for _ in range(70):
            x = np.tanh(np.linalg.matrix_power(x, 2))
        return x

    compiled = cr.compile(powers)
    with pytest.warns(
        UserWarning, match=r"powers runs matrix_power \(test_inspection.py:\d+\) 70 times, each as a call from Python"
    ) as found:
        compiled(np.eye(2)), compiled(np.eye(2)), compiled(np.eye(3))
    assert len(found) == 1
    text = compiled.explain()
    assert text.startswith("compiled powers: executor native; 140 of 280 steps native")
    assert "calls matrix_power in Python, 70 times: `x = np.tanh(np.linalg.matrix_power(x, 2))`" in text


def test_numpys_own_random_numbers_are_not_taken_for_constants():
    rng = np.random.default_rng(0)

    def noisy(x):
        return x + rng.standard_normal(3) + np.random.rand(3)

    compiled = cr.compile(noisy)
    np.random.seed(0)
    with pytest.warns(UserWarning, match="a generator of NumPy or Python: draw with"):
        ours = [compiled(np.zeros(3)) for _ in range(3)]
    rng = np.random.default_rng(0)
    np.random.seed(0)
    assert np.array_equal(ours, [noisy(np.zeros(3)) for _ in range(3)])
    with pytest.raises(RuntimeError, match="has no plan for these arguments, because it runs eagerly"):
        compiled.plan(np.zeros(3))
    assert "runs eagerly: it draws random numbers" in compiled.explain()


def test_random_numbers_of_an_argument_are_noticed():
    compiled, source = cr.compile(lambda x, rng: x + rng.normal(size=3)), np.random.default_rng(0)
    with pytest.warns(UserWarning, match="draws random numbers"):
        first = compiled(np.zeros(3), source)
    assert not np.array_equal(first, compiled(np.zeros(3), source))


def test_options_of_other_compilers():
    for option in ("static_argnums", "donate_argnums"):
        with pytest.raises(TypeError, match=f"takes only the function, not {option}="):
            cr.compile(branching, **{option: 0})
    with pytest.warns(UserWarning, match=r"mode='max-autotune', fullgraph=True has no effect") as found:
        compiled = cr.compile(branching, fullgraph=True, mode="max-autotune")
    assert found[0].filename == __file__ and compiled.function is branching
    with pytest.warns(UserWarning, match=r"dynamic=False, backend='eager', options={} has no effect"):

        @cr.compile(dynamic=False, backend="eager", options={})
        def double(x):
            return 2 * x

    assert double(np.ones(2)).tolist() == [2.0, 2.0] and double.recordings
    assert cr.compile(branching, disable=True) is branching


def held(function, x):
    """Return the memory that a compiled function reports, and its allocated memory."""
    cr.compile(function)(x)  # objects shared by all functions exist from now on
    compiled = cr.compile(function)
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(3):
            compiled(x)
        gc.collect()
        return compiled.memory, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


WEIGHTS = np.ones(100_000)


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (cr.grad(lambda x: np.sum(np.tanh(x @ x) @ x)), np.ones((150, 150))),  # Python steps between native ones
        (lambda x: np.sqrt(WEIGHTS) * x, WEIGHTS),  # a guard with a copy of an array
    ],
    ids=["workspace", "guard"],
)
def test_memory_is_what_is_kept(function, x):
    reported, allocated = held(function, x)
    assert abs(reported - allocated) < 0.1 * allocated
