"""The policy for tracing: the budget of seconds, with a simulated clock, and its use by compiled functions."""

from __future__ import annotations

import contextlib
import copy
import pickle

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.compiling import compiled as compiled_module
from chainrule._src.compiling import policy
from chainrule._src.compiling.policy import ReplaySpeed, TraceBudget


class Clock:
    """A clock that tests advance."""

    now = 0.0

    def __call__(self):
        return self.now


class Costs(Clock):
    """A clock that sets the cost of complete traces, eager calls, lookups and replays."""

    def __init__(self, trace=50.0, eager=1.0, lookup=0.0, replay=0.0):
        self.trace, self.eager, self.lookup, self.replay = trace, eager, lookup, replay
        self.bought = 0.0


@pytest.fixture
def costs(monkeypatch):
    """Simulate the passing of time in newly compiled functions."""
    costs = Costs()
    monkeypatch.setattr(policy, "perf_counter", costs)

    def taking(name, owner, before=True):
        original = getattr(owner, name)

        def wrapper(*args, **kwargs):
            costs.now += getattr(costs, seconds)
            return original(*args, **kwargs)

        seconds = {"trace_function": "trace", "end_eager": "eager", "_signature": "lookup", "record_replay": "replay"}[
            name
        ]
        monkeypatch.setattr(owner, name, wrapper)

    taking("trace_function", compiled_module)
    taking("end_eager", TraceBudget)
    taking("_signature", compiled_module.Compiled)
    monkeypatch.setattr(
        TraceBudget, "record_replay", lambda self, speed, seconds, calls, book=TraceBudget.record_replay: (
            setattr(costs, "now", costs.now + costs.replay), book(self, speed, seconds + costs.replay, calls)
        )
    )  # fmt: skip
    return costs


# -- the budget --------------------------------------------------------------------------------------------------------


def spend(budget, seconds, kind=None, lookup=0.0):
    """Make an eager call."""
    start = budget.start_eager()
    budget.clock.now += seconds
    budget.end_eager(start, lookup, kind)


def test_another_trace_is_made_when_eager_calls_have_paid_for_the_first():
    budget = TraceBudget(clock=Clock())
    assert budget.may_trace(1)
    budget.record_trace(6.0, 1)
    calls = 0
    while not budget.may_trace(2):
        spend(budget, 1.0, 2)
        calls += 1
    assert 6 <= calls < 10


def test_cheap_traces_need_no_payment():
    budget = TraceBudget(clock=Clock())
    for kind in range(policy.TRUSTED):
        assert budget.may_trace(kind)
        budget.record_trace(policy.ALLOWANCE / 1000, kind)
    assert not budget.may_trace(99)  # none was replayed
    budget.record_faster_replay()
    assert budget.may_trace(99)


def test_traces_of_kinds_that_do_not_come_again_get_rarer():
    budget = TraceBudget(clock=Clock())
    made = []
    for call in range(20_000):
        if budget.may_trace(call):
            budget.record_trace(10.0, call)
            made.append(call)
        else:
            spend(budget, 1.0, call)
    assert len(made) == policy.TRUSTED
    assert len(budget._kinds) <= policy.KINDS + 1
    again = 0  # calls of another kind, which is profitable
    while not budget.may_trace(-1):
        spend(budget, 1.0, -1)
        again += 1
    assert 10 <= again < 20_000 / (policy.SHARE - 1) + 1


@pytest.mark.parametrize("seed", range(6))
def test_purchases_are_bounded_for_any_sequence_of_calls(seed):
    """Traces and lookups of any cost, replays of any speed, recurring and new kinds."""
    rng = np.random.default_rng(seed)
    clock = Clock()
    budget = TraceBudget(clock=clock)
    scale = 10.0 ** rng.uniform(-5, 2)
    eager = total = longest = 0.0
    traced: dict[int, ReplaySpeed] = {}
    for _ in range(3000):
        kind = int(rng.geometric(0.02)) if rng.random() < 0.7 else int(rng.integers(10**9))
        seconds = scale * (1 + kind % 5)
        eager += seconds
        begin = clock.now
        lookup = scale * rng.choice([0.01, 0.5, 4.0])
        if not budget.may_look_up():
            spend(budget, seconds)
        elif kind in traced and not traced[kind].is_slower:
            clock.now += lookup
            speed = traced[kind]
            if budget.wants_eager_run(speed):
                spend(budget, seconds, lookup=lookup)
                budget.record_comparison(speed, seconds)
            else:
                clock.now += seconds * (0.1 if kind % 3 else 5.0)
                budget.record_replay(speed, clock.now - begin, 1)
        else:
            clock.now += lookup
            if budget.may_trace(kind):
                cost = seconds * rng.choice([3.0, 60.0, 400.0])
                clock.now += cost
                longest = max(longest, cost)
                budget.record_trace(cost, kind)
                traced[kind] = budget.speed_of(kind)
            else:
                spend(budget, seconds, kind, lookup)
        total += clock.now - begin
    assert total <= 2 * eager + longest + policy.ALLOWANCE


def test_eager_calls_within_eager_calls_and_traces_count_once():
    clock = Clock()
    outer, inner = TraceBudget(clock=clock), TraceBudget(clock=clock)
    start = outer.start_eager()
    spend(outer, 1.0)  # it calls itself
    clock.now += 5.0
    inner.record_trace(5.0, 1)  # and another compiled function, which is traced
    outer.end_eager(start)
    assert outer.eager == 1.0


def test_a_slow_replay_is_compared_with_eager_calls():
    budget, speed = TraceBudget(clock=Clock()), ReplaySpeed()
    for _ in range(policy.JUDGED + 1):
        budget.record_replay(speed, 1.0, calls=10)
    assert budget.wants_eager_run(speed) and not budget.may_look_up()
    budget.record_comparison(speed, 1.0)
    assert budget.wants_eager_run(speed)  # the first eager call may be slow
    budget.record_comparison(speed, 0.1)
    assert speed.is_slower and not speed.is_faster(10)
    for _ in range(2):
        budget.record_comparison(other := ReplaySpeed(), 3.0)
        budget.record_replay(other, 1.0, calls=10)
    assert other.is_known and other.is_faster(10)
    assert ReplaySpeed(eager=2.0, eager_runs=2).is_known


def test_max_slowdown_is_checked():
    with pytest.raises(ValueError, match="max_slowdown is at least 1"):
        cr.compile(np.sin, max_slowdown=0.5)


def test_without_a_bound_each_new_kind_of_call_is_traced(costs):
    f = cr.compile(lambda x: x * 2, max_slowdown=None)
    for n in range(1, 40):
        f(np.ones(n))
    assert len(f.recordings) == 39


# -- compiled functions ------------------------------------------------------------------------------------------------


def often(function, x):
    """Loop and read a value in each iteration."""
    for row in x:
        if row.sum() > 0.5:
            x = function(x)
    return x


PATTERNS = {
    "other branches in every call": (
        lambda x: often(np.tanh, x),
        lambda k: np.random.default_rng(k).normal(size=(20, 2)),
    ),
    "other shapes in every call": (np.tanh, lambda k: np.ones(k + 1)),
    "another integer in every call": (lambda x: x * 2, lambda k: k),
    "another function in every call": (lambda f: f(np.ones(2)), lambda k: lambda x: x * k),
}


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("name", PATTERNS)
def test_calls_that_do_not_come_again_are_not_traced(name, costs):
    function, argument = PATTERNS[name]
    compiled = cr.compile(function)
    for k in range(2000):
        x = argument(k)
        assert np.array_equal(compiled(x), function(x))
    budget = compiled.budget
    assert budget.traces < 30 and costs.now < 2 * 2000 + 50


def test_a_few_shapes_and_branches_are_all_traced(costs):
    @cr.compile
    def f(x):
        for k in range(3):
            x = np.tanh(x) if x[k] > 0 else x * 2
        return x

    costs.trace = 20.0
    for k in range(2000):
        f(np.random.default_rng(k).normal(size=3 + k % 3))
    assert len(f.recordings) == 24
    misses = f.budget.misses
    for k in range(100):
        f(np.random.default_rng(k).normal(size=3 + k % 3))
    assert f.budget.misses == misses and costs.now < 2 * 2100


def test_a_trace_is_found_at_once_where_tracing_is_cheap(costs):
    costs.trace = 0.001
    f = cr.compile(lambda x: np.tanh(x))
    for n in range(1, 6):
        f(np.ones(n))
    assert len(f.recordings) == 5


def test_a_plan_that_is_slower_than_eager_is_dropped(costs):
    costs.replay = 2.0
    f = cr.compile(lambda x: x[1:])
    x = np.ones(3)
    for _ in range(200):
        assert not np.shares_memory(f(x), x)
    assert not f.recordings and "takes longer" in f.explain() and costs.now < 50 + 2 * 200
    with pytest.raises(RuntimeError, match="takes longer"):
        f.plan(x)


def test_lookups_are_left_out_where_they_cost_more_than_they_save(costs):
    costs.lookup = 10.0
    f = cr.compile(lambda x, n: x + n)
    for k in range(1000):
        f(np.ones(2), k)
    assert costs.now < 50 + 2 * 1000


def test_failed_tries_are_paid_for(costs):
    def f(x, k):
        if k % 2:
            raise KeyError(k)
        return x + np.random.default_rng(0).normal()  # cannot be traced

    compiled = cr.compile(f)
    for k in range(1000):
        with contextlib.suppress(KeyError):
            compiled(np.ones(2), k)
    assert costs.now < 50 + 2 * 1000


def test_asking_for_a_plan_traces_whatever_it_costs(costs):
    f = cr.compile(lambda x: x * 2)
    f(np.ones(2))
    f(np.ones(3))
    assert len(f.recordings) == 1
    f.plan(np.ones(3))
    assert len(f.recordings) == 2
    if cr.compile.executor == "native":
        pytest.importorskip("scipy")
        f.as_low_level_callable(1.0)


def test_explain_says_what_was_paid(costs):
    f = cr.compile(lambda x: x * 2)
    for n in range(1, 4):
        f(np.ones(n))
    assert "- 1 trace took 50 s; 2 calls without a trace ran eagerly, in 2 s" in f.explain()


def test_options_are_copied_and_pickled():
    f = copy.copy(cr.compile(np.tanh, max_slowdown=3.0, max_bytes=10))
    for each in (f, copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert each.budget.max_slowdown == 3.0 and each.max_bytes == 10


def test_a_prepared_jacobian_pays_for_what_it_prepares_again(costs):
    pytest.importorskip("scipy")
    places = np.arange(4)
    prepared = cr.prepare_jacobian(lambda x: x[places] ** 2, np.ones(6), on_change="record")
    for k in range(200):
        places[0] = k % 6
        assert prepared(np.ones(6)).sum() == 8
    assert costs.now < 50 + 2 * 200


# -- results of eager calls --------------------------------------------------------------------------------------------


OUTSIDE = {np.ndarray: np.ones(3), cr.Tensor: cr.ones(3)}


def eager_results(x, kind):
    """Return the results of a call that has a trace, and of one that has none."""
    results = {
        "view": lambda x: x[1:],
        "argument": lambda x: x,
        "list": lambda x: [x, x + 1, None],
        "outside": lambda _: OUTSIDE[type(x)],
    }

    def f(x, n):
        return results[kind](x)

    f = cr.compile(f)
    return f(x, 1), f(x, 2), f(x, 1)


@pytest.mark.parametrize("kind", ["view", "argument", "list", "outside"])
@pytest.mark.parametrize("tensor", [False, True])
def test_results_are_yours_whether_a_call_is_traced_or_not(kind, tensor, costs):
    x = cr.ones(3, requires_grad=True) if tensor else np.ones(3)
    for found in eager_results(x, kind):
        found = found[0] if kind == "list" else found
        assert type(found) is type(x)
        for other in (x, OUTSIDE[type(x)]) if tensor else (x,):
            assert not np.shares_memory(*[t.detach().numpy() if tensor else t for t in (found, other)])
        assert not tensor or found.requires_grad is (kind != "outside")


def test_results_that_cannot_be_returned_raise_whether_a_call_is_traced_or_not(costs):
    f = cr.compile(lambda x, n: object() if n > 1 else x + n)
    f(np.ones(2), 1)
    for n in (2, 3):
        with pytest.raises(TypeError, match="a compiled function returns arrays"):
            f(np.ones(2), n)


def test_new_results_are_not_copied():
    x = np.ones(3)

    def made():
        result = function(x)
        number = id(result)
        return compiled_module.own_results(result, "f", (x,)), number

    for function in (np.tanh, lambda x: np.tanh(x)[1:], cr.tanh):
        found, number = made()
        assert id(found) == number
        x = cr.ones(3) if function is cr.tanh else x


# -- memory ------------------------------------------------------------------------------------------------------------


def test_traces_that_were_used_least_lately_are_dropped():
    f = cr.compile(lambda x: np.tanh(x) * 2, max_slowdown=None, max_bytes=200_000)
    for n in range(1, 60):
        f(np.ones(n))
        f(np.ones(1))
        (first,) = [r for r in f.recordings if r.describe() == "trace for float64[1]"]
        kept = first if n == 1 else kept  # noqa: F821
        assert kept is first
    assert f.memory < 300_000 and 3 < len(f.recordings) < 59


def test_branches_that_were_used_least_lately_are_dropped():
    f = cr.compile(lambda x: [np.tanh(x) + k for k in range(9) if x[k] > 0], max_slowdown=None, max_bytes=400_000)
    for k in range(60):
        for signs in (k, 0):
            x = np.array([1.0 if signs >> i & 1 else -1.0 for i in range(9)])
            assert len(f(x)) == (x > 0).sum()
    assert f.memory < 600_000 and 3 < len(f.recordings) < 60


def test_one_signature_has_no_more_trees_than_can_be_looked_through():
    scale = 0
    f = cr.compile(lambda x: x * scale, max_slowdown=None)
    for scale in range(compiled_module.TREES + 9):  # noqa: B007
        f(np.ones(2))
    assert len(f.recordings) == compiled_module.TREES


# -- warnings ----------------------------------------------------------------------------------------------------------

SCALE = {"by": 0}


def reading(x):
    return x * float(x.sum())


def reading_in_a_loop(x):
    for _ in range(5):
        x = x * float(x.sum())
    return x


WASTED = {
    "other values in .* .in this call from iteration 1 on.": (reading_in_a_loop, lambda k: (np.ones(2) / (k + 1),)),
    "other values in `return x [*] float.x.sum...` .test_policy": (reading, lambda k: (np.ones(2) + k,)),
    "the argument x has another shape": (lambda x: x * 2, lambda k: (np.ones(k + 1),)),
    "the argument n has another value": (lambda x, n: x * n, lambda k: (np.ones(2), k)),
    "the argument x has another memory layout": (
        lambda x: x * 2, lambda k: (np.lib.stride_tricks.as_strided(np.ones(9999), (2, 2), (8, 8 * k + 8)),)
    ),
    "the argument rate has another value": (lambda x, rate: x * rate, lambda k: (cr.ones(2), 0.1 * k)),
    "the arguments have another structure": (lambda x: x[0] * 2, lambda k: ([np.ones(2)] * (k + 1),)),
    "`SCALE`|`by`": (lambda x: x * SCALE["by"], lambda k: (SCALE.update(by=k), (np.ones(2),))[1]),
}  # fmt: skip


@pytest.mark.parametrize("text", WASTED)
def test_what_causes_new_traces_is_named_once(text, costs):
    function, arguments = WASTED[text]
    compiled = cr.compile(function)
    costs.trace = 20.0
    with pytest.warns(UserWarning, match=f"because .*{text}.* in nearly every call. [A-Z].*\\.") as warned:
        for k in range(300):
            compiled(*arguments(k))
    assert len(warned) == 1


def test_a_function_whose_calls_come_again_has_no_warning(costs, recwarn):
    f = cr.compile(lambda x: x * 2 if x[0] > 0 else x)
    for k in range(900):
        f(np.array([(-1.0) ** k] * (1 + k % 3)))
    assert len(f.recordings) == 6 and not recwarn.list
