"""State that a compiled function reads and writes, and gradients through compiled functions."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.tape.versions import sample_elements

T = cr.tensor
rng = np.random.default_rng(0)
X, Y = T(rng.standard_normal((10, 3))), T(rng.standard_normal((10, 1)))


def parameters():
    numbers = np.random.default_rng(1)
    return [T(numbers.standard_normal(shape), requires_grad=True) for shape in ((3, 4), (4,), (4, 1))]


def network(weights):
    return lambda x: cr.tanh(x @ weights[0] + weights[1]) @ weights[2]


def same(a, b):
    return all(np.array_equal(p.detach(), q.detach()) for p, q in zip(a, b, strict=True))


def steps_are_same(make_step, count=4):
    """Run a training step eagerly and compiled, and check that parameters and losses are identical bit for bit."""
    ours, theirs = parameters(), parameters()
    step, compiled = make_step(theirs), cr.compile(make_step(ours))
    for _ in range(count):
        assert compiled(X, Y).item() == step(X, Y).item()
        assert same(ours, theirs)
        for p, q in zip(ours, theirs, strict=True):
            assert (p.grad is None) is (q.grad is None) and (p.grad is None or same([p.grad], [q.grad]))
    assert not compiled._eager
    return compiled


def test_a_training_step():
    def make(weights):
        def step(x, y):
            loss = ((network(weights)(x) - y) ** 2).mean()
            loss.backward()
            with cr.no_grad():
                for p in weights:
                    p -= 0.1 * p.grad
                    p.grad = None
            return loss

        return step

    assert len(steps_are_same(make).recordings) == 1


def test_gradients_that_add_up_and_are_zeroed():
    def make(weights):
        def step(x, y):
            loss = ((network(weights)(x) - y) ** 2).mean()
            loss.backward()
            return loss.detach()

        return step

    assert len(steps_are_same(make).recordings) == 2  # without and with a .grad

    def make_zeroing(weights):
        def step(x, y):
            for p in weights:
                if p.grad is not None:
                    p.grad.zero_()
            return make(weights)(x, y)

        return step

    steps_are_same(make_zeroing)


def test_momentum_is_written_where_it_lies():
    def make(weights):
        momenta = [cr.zeros_like(p) for p in weights]

        def step(x, y):
            loss = ((network(weights)(x) - y) ** 2).mean()
            gradients = cr.autograd.grad(loss, weights)
            with cr.no_grad():
                for p, m, g in zip(weights, momenta, gradients, strict=True):
                    m.mul_(0.9).add_(g)
                    p.sub_(0.1 * m)
            return loss

        return step

    assert len(steps_are_same(make).recordings) == 1


def test_writes_through_data():
    """A backward pass that reads overwritten memory runs eagerly; other writes are replayed."""

    def before_backward(w0, x):
        w = cr.tensor(w0, requires_grad=True)
        y = (w * w * x).sum()
        w.data.add_(1.0)
        y.backward()
        return w.grad * 1

    def steps(w0, x):
        w = cr.tensor(w0, requires_grad=True)
        for _ in range(2):
            ((w * x - 1) ** 2).sum().backward()
            w.data -= 0.1 * w.grad
            w.grad = None
        return w.detach() * 1

    w0, x = np.array([1.0, 2.0]), np.array([0.5, 0.25])
    compiled = cr.compile(before_backward)
    with pytest.warns(UserWarning, match="through .data"):
        first = compiled(w0, x)
    for found in (first, compiled(w0, x)):
        assert np.array_equal(found, before_backward(w0, x)) and np.array_equal(found, 2 * (w0 + 1) * x)
    compiled = cr.compile(steps)
    for _ in range(3):
        assert np.array_equal(compiled(w0, x), steps(w0, x))
    assert len(compiled.recordings) == 1


def test_data_that_is_assigned():
    def make(weights):
        def step(x, y):
            loss = ((network(weights)(x) - y) ** 2).mean()
            gradients = cr.autograd.grad(loss, weights)
            for p, g in zip(weights, gradients, strict=True):
                p.data = p.data - 0.1 * g
            return loss

        return step

    steps_are_same(make)


def test_parameters_as_arguments():
    def step(p, x):
        loss = ((x @ p) ** 2).mean()
        loss.backward()
        with cr.no_grad():
            p -= 0.1 * p.grad
            p.grad = None
        return loss.detach()

    compiled, (ours, *_), (theirs, *_) = cr.compile(step), parameters(), parameters()
    for _ in range(3):
        assert compiled(ours, X).item() == step(theirs, X).item() and same([ours], [theirs])
    assert len(compiled.recordings) == 1 and not compiled._eager


# -- captured state ------------------------------------------------------------------------------------------------------


def test_what_is_captured_is_read_where_it_lies():
    A = np.ones(3)
    compiled = cr.compile(lambda x: x * A)
    gradient = cr.compile(cr.grad(lambda x: np.sum(x * x * A)))
    compiled(np.ones(3)), gradient(np.ones(3))
    A[:] = 5
    assert compiled(np.ones(3)).tolist() == [5.0] * 3 and gradient(np.ones(3)).tolist() == [10.0] * 3

    W = T([1.0, 2.0])
    compiled = cr.compile(lambda x: x * W)
    gradient = cr.compile(cr.grad(lambda x: (x * x * W).sum()))
    compiled(cr.ones(2)), gradient(cr.ones(2))
    W.mul_(3)
    assert compiled(cr.ones(2)).tolist() == [3.0, 6.0] and gradient(cr.ones(2)).tolist() == [6.0, 12.0]
    W.data = T([7.0, 7.0])
    assert compiled(cr.ones(2)).tolist() == [7.0, 7.0]
    W.data = T([7.0, 7.0, 1.0])
    assert compiled(cr.ones(3)).tolist() == [7.0, 7.0, 1.0]


def test_names_that_are_bound_anew_are_seen():
    module = {"np": np, "rate": 0.5, "A": np.ones(3)}
    exec(compile("def scaled(x): return x * rate\ndef f(x): return scaled(x) + A", __file__, "exec"), module)
    compiled = cr.compile(module["f"])
    for rate, A in ((0.5, np.ones(3)), (0.25, np.ones(3)), (0.25, np.zeros(3))):
        module |= {"rate": rate, "A": A}
        for _ in range(2):
            assert compiled(np.ones(3)).tolist() == (np.ones(3) * rate + A).tolist()
    module["scaled"] = lambda x: x - 1
    assert compiled(np.ones(3)).tolist() == [0.0] * 3

    class Model:
        def __init__(self):
            self.w, self.k = np.ones(2), 2

        def hidden(self, x):
            return x * self.w

        def __call__(self, x):
            return self.hidden(x) * self.k

    class Slotted(Model):
        __slots__ = ("k", "w")  # the object has both, and a dictionary

    class OfSlots:
        __slots__ = ("k", "w")
        __init__, hidden, __call__ = Model.__init__, Model.hidden, Model.__call__

    for model in (Model(), Slotted(), OfSlots()):
        compiled = cr.compile(model)
        for name, value in (("w", np.ones(2)), ("w", np.full(2, 5.0)), ("k", 7)):
            setattr(model, name, value)
            for _ in range(2):
                assert compiled(np.ones(2)).tolist() == model(np.ones(2)).tolist()

    weights = [np.ones(2)]
    compiled = cr.compile(cr.grad(lambda x: np.sum(weights[0] * x)))
    assert compiled(np.ones(2)).tolist() == [1.0, 1.0]
    weights[0] = np.zeros(2)
    assert compiled(np.ones(2)).tolist() == compiled(np.ones(2)).tolist() == [0.0, 0.0]


def test_what_python_keeps_from_call_to_call_is_left_to_python():
    class Adam:
        def __init__(self):
            self.w = T([1.0, 2.0], requires_grad=True)
            self.m, self.v, self.t = cr.zeros(2), cr.zeros(2), 0

        def step(self, x):
            self.w.grad = None
            loss = ((self.w * x) ** 2).sum()
            loss.backward()
            self.t += 1
            with cr.no_grad():
                g = self.w.grad
                self.m.mul_(0.9).add_(0.1 * g)
                self.v.mul_(0.99).add_(0.01 * g * g)
                self.w.sub_(0.1 * (self.m / (1 - 0.9**self.t)) / ((self.v / (1 - 0.99**self.t)).sqrt() + 1e-8))
            return loss.detach()

    ours, theirs = Adam(), Adam()
    compiled = cr.compile(ours.step)
    with pytest.warns(UserWarning, match="it changes t, which is Python state"):
        for k in range(6):
            assert compiled(T([1.0, k])).item() == theirs.step(T([1.0, k])).item()
            assert ours.t == theirs.t == k + 1 and same([ours.w], [theirs.w])

    history = []

    def noting(x):
        history.append(len(history))
        return x.sum()

    compiled = cr.compile(noting)
    with pytest.warns(UserWarning, match="a list or dictionary"):
        for _ in range(6):
            compiled(np.ones(2))
    assert history == [0, 1, 2, 3, 4, 5]


def test_what_is_made_in_the_first_call_alone():
    class Lazy:
        def __call__(self, x):
            if not hasattr(self, "sum"):
                self.sum = cr.zeros(2)
            self.sum.add_(x)
            return self.sum * 2

    ours, theirs = Lazy(), Lazy()
    compiled = cr.compile(ours)
    for _ in range(4):
        assert compiled(cr.ones(2)).tolist() == theirs(cr.ones(2)).tolist()
    assert len(compiled.recordings) == 1 and not compiled._eager


def test_gradients_that_are_dropped_at_the_beginning():
    def make(weights):
        def step(x, y):
            for p in weights:
                p.grad = None
            loss = ((network(weights)(x) - y) ** 2).mean()
            loss.backward()
            with cr.no_grad():
                for p in weights:
                    p -= 0.1 * p.grad
            return loss.detach()

        return step

    assert len(steps_are_same(make, 6).recordings) == 2


def test_whether_an_argument_requires_grad_is_seen():
    compiled = cr.compile(lambda x: x * 2)
    assert not compiled(cr.ones(2)).requires_grad
    assert compiled(cr.ones(2, requires_grad=True)).requires_grad
    w = cr.ones(2)
    compiled = cr.compile(lambda x: x * w)
    assert not compiled(cr.ones(2)).requires_grad
    w.requires_grad_()
    assert compiled(cr.ones(2)).requires_grad


def test_what_is_computed_from_plain_arrays_alone_is_computed_anew():
    W, V, x = np.arange(1.0, 4.0), np.ones(3), np.ones(3)
    functions = {
        lambda x: np.sum(2.0 * W * x): 4,
        lambda x: np.sqrt(V) * x: 4,
        lambda x: x * V.sum(): 4,
        lambda x: x * V[0]: 4,
        lambda x: x * W: 1,  # which itself uses W
        cr.grad(lambda x: np.sum(np.linalg.solve(np.outer(x, x) + np.eye(3), V))): 1,
    }
    for function, recordings in functions.items():
        W[:], V[:] = np.arange(1.0, 4.0), 1.0
        compiled = cr.compile(function)
        for _ in range(4):
            assert np.array_equal(compiled(x), function(x))
            assert np.array_equal(compiled(x), function(x))
            W[:] += 1
            V[:] += 1
        assert len(compiled.recordings) == recordings


@pytest.mark.parametrize(
    "array", [np.ones(10**5), np.ones((2, 10**5)).T, np.ones((2, 10**5))[:, ::3], np.ones((9,) * 5).T[::2]]
)
def test_a_few_elements_from_everywhere_stand_for_a_large_array(array):
    some = sample_elements(array)
    assert np.may_share_memory(some, array) and 100 < some.size < 3000


def test_settings_are_seen():
    settings = types.SimpleNamespace(scale=1.0)

    class Constants:
        offset = 2.0

    class Optimizer:
        def __init__(self):
            self.rate = 1.0

        def step(self, x):
            return x * self.rate * settings.scale + Constants.offset

    class Trainer:
        def __init__(self):
            self.optimizer = Optimizer()

        @cr.compile
        def run(self, x):
            return self.optimizer.step(x)

    trainer = Trainer()
    for holder, name in ((settings, "scale"), (Constants, "offset"), (trainer.optimizer, "rate")):
        for value in (3.0, 5.0):
            setattr(holder, name, value)
            assert trainer.run(np.ones(1)) == trainer.optimizer.step(np.ones(1))


def test_arguments_that_may_change_unseen_are_left_to_eager():
    compiled, some = cr.compile(lambda x, s: x * len(s)), {1}
    assert compiled(np.ones(1), some) == 1
    some.add(2)
    assert compiled(np.ones(1), some) == 2
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    assert type(cr.compile(lambda x: x * 2)(masked)) is type(masked)


def test_writes_at_indices_happen_once():
    def function(x):
        y = x * 1
        np.add.at(y, np.array([0, 0, 1]), 1.0)
        return y

    compiled = cr.compile(function)
    assert [compiled(np.ones(3)).tolist() for _ in range(2)] == [[3.0, 2.0, 1.0]] * 2


def test_plain_arrays_that_plain_code_writes_are_left_to_python():
    decaying, wanted = np.ones(3), np.ones(3)

    def function(x):
        decaying[1:] *= 0.5
        return x * 2

    compiled = cr.compile(function)
    with pytest.warns(UserWarning, match="it changes a plain array, without its traced values"):
        for _ in range(6):
            compiled(np.ones(2))
            wanted[1:] *= 0.5
            assert np.array_equal(decaying, wanted)


def test_what_is_met_between_two_reads():
    captured = np.array([1.0, 2.0, 3.0, 4.0])

    def function(x, y):
        b = y * 1.0
        if x.sum() > 0:
            b = b + 1
        b = b + cr.from_numpy(captured)
        if x.sum() > -5:
            b = b + 1
        return b * 1

    compiled = cr.compile(function)
    for sign in (1.0, 1.0, -1.0, -1.0, 1.0, -20.0, -20.0, 1.0, -1.0):
        x, y = T(np.full(4, sign)), T(np.arange(4.0) * sign)
        assert compiled(x, y).tolist() == function(x, y).tolist()
    assert len(compiled.recordings) == 3


def test_values_read_of_what_is_captured_are_guarded():
    flag, scale = T(1.0), T(2.0, requires_grad=True)
    compiled = cr.compile(lambda x: x * (2 if flag > 0 else 3) * scale.item())
    assert compiled(cr.ones(1)).item() == 4
    flag.neg_()
    assert compiled(cr.ones(1)).item() == 6
    with cr.no_grad():
        scale.mul_(10)
    assert compiled(cr.ones(1)).item() == 60


def test_writes_reach_arguments_and_views():
    def write(x):
        x[0] = 5.0
        x *= 2
        return x.sum()

    compiled, a, b = cr.compile(write), np.ones(3), np.ones(3)
    for _ in range(3):
        assert compiled(a) == write(b) and a.tolist() == b.tolist()
    part = np.ones(6)
    compiled(part[::2])
    assert part.tolist() == [10.0, 1.0, 2.0, 1.0, 2.0, 1.0]

    def make(w):
        def g(x):
            w[1] += x
            v = w[2]
            v.copy_(x * 2)
            return w.sum()

        return g

    u, v = cr.zeros(3, 3), cr.zeros(3, 3)
    first = u[1]
    compiled, step = cr.compile(make(u)), make(v)
    for _ in range(3):
        assert compiled(cr.ones(3)).item() == step(cr.ones(3)).item() and bool((u == v).all())
    assert first.tolist() == [3.0] * 3 and not compiled._eager


def test_memory_that_overlaps_what_is_written_is_left_to_eager():
    def shift(x, y):
        x += y
        return y.sum()

    compiled = cr.compile(shift)
    compiled(np.ones(3), np.ones(3))
    a, b = np.arange(4.0), np.arange(4.0)
    assert compiled(a[1:], a[:-1]) == shift(b[1:], b[:-1]) and a.tolist() == b.tolist()
    with pytest.warns(UserWarning, match="shift .* runs eagerly"):
        assert compiled(a, a) == shift(b, b) and a.tolist() == b.tolist()


def test_the_tape_sees_writes_of_a_compiled_function():
    w = T([1.0, 2.0])
    compiled = cr.compile(lambda x: w.add_(x).sum())
    compiled(cr.ones(2))
    y = (w * T([1.0, 1.0], requires_grad=True)).sum()
    compiled(cr.ones(2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_an_array_that_python_writes_is_not_taken_for_a_constant():
    def function(x):
        buffer, y = np.zeros(3), 0
        for i in range(3):
            buffer[0] = i
            y = y + buffer * x
        return y

    compiled = cr.compile(function)
    with pytest.warns(UserWarning, match="written by code that is not recorded"):
        compiled(np.ones(3))
    assert compiled(np.ones(3)).tolist() == function(np.ones(3)).tolist()


def test_outputs_are_the_callers_own():
    compiled = cr.compile(lambda x: (x, x[1:], x * 2))
    x = np.ones(3)
    first, second = compiled(x), compiled(x)
    for array in (*first, *second):
        assert array.flags.owndata and array.flags.writeable
        array[...] = 7
    assert x.tolist() == [1.0] * 3 and [a.tolist() for a in compiled(x)] == [[1.0] * 3, [1.0] * 2, [2.0] * 3]


def test_everything_goes_with_the_function():
    def make():
        held = np.zeros(1000)
        return weakref.ref(held), cr.compile(lambda x: x + held)

    weak, compiled = make()
    compiled(np.ones(1000)), compiled(np.ones(1000))
    gone = weakref.ref(compiled)
    del compiled
    gc.collect()
    assert gone() is None and weak() is None


# -- recording in graphs ----------------------------------------------------------------------------------------------------


def test_gradients_flow_through_a_compiled_model():
    ours, theirs = parameters(), parameters()
    model, plain = cr.compile(network(ours)), network(theirs)
    for _ in range(3):
        for net, weights in ((model, ours), (plain, theirs)):
            ((net(X) - Y) ** 2).mean().backward()
            with cr.no_grad():
                for p in weights:
                    p -= 0.1 * p.grad
        assert same(ours, theirs) and same([p.grad for p in ours], [p.grad for p in theirs])
    assert len(model.recordings) == 1 and not model._eager


def test_gradients_of_arguments_and_of_gradients():
    compiled = cr.compile(lambda x: (x**3).sum())
    for _ in range(3):
        x = T([1.0, 2.0], requires_grad=True)
        compiled(x).backward()
        assert x.grad.tolist() == [3.0, 12.0]
        (g,) = cr.autograd.grad(compiled(x * 2), x, create_graph=True)
        assert g.tolist() == [24.0, 96.0]
        assert cr.autograd.grad(g.sum(), x)[0].tolist() == [48.0, 96.0]
    assert not compiled._eager


def test_without_gradient_mode_nothing_is_on_the_tape():
    weights = parameters()
    model = cr.compile(network(weights))
    assert model(X).requires_grad
    with cr.no_grad():
        assert not model(X).requires_grad
    assert not model(X).detach().requires_grad


def test_overwriting_a_parameter_between_forward_and_backward_is_an_error():
    (w, *_) = parameters()
    model = cr.compile(lambda x: ((x @ w) ** 2).sum())
    model(X)
    loss = model(X)
    with cr.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# -- threads -------------------------------------------------------------------------------------------------------------


def test_threads_may_call_at_the_same_time():
    gradient = cr.grad(lambda x: np.sum(np.tanh(x) ** 2 * x))
    compiled = cr.compile(gradient)
    arrays = [rng.standard_normal(50) for _ in range(20)]
    wanted = [gradient(x) for x in arrays]
    right = []

    def work():
        right.append(all(np.array_equal(compiled(x), w) for _ in range(5) for x, w in zip(arrays, wanted, strict=True)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 4 and len(compiled.recordings) == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_a_signal_handler_may_call_it():
    gradient = cr.grad(lambda x: np.sum(np.linalg.solve(np.eye(5) + np.outer(x, x), np.tanh(x))))
    compiled, x = cr.compile(gradient), np.linspace(0.0, 1.0, 5)
    compiled(x)
    wanted, met = gradient(x), []

    def handler(*_):
        met.append(np.array_equal(compiled(2 * x), gradient(2 * x)))

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.002)
    try:
        while len(met) < 10:
            assert np.array_equal(compiled(x), wanted)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert all(met)


def test_a_function_that_waits_for_threads_of_its_own_is_no_deadlock(monkeypatch):
    monkeypatch.setattr("chainrule._src.compiling.compiled.PATIENCE", 0.05)
    inner = cr.compile(lambda x: x * 2)

    def outer(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(inner(np.ones(2))))
        thread.start()
        thread.join()
        return x + found[0]

    with pytest.warns(UserWarning, match="runs eagerly"):
        assert cr.compile(outer)(np.ones(2)).tolist() == [3.0, 3.0]


def test_while_a_debugger_watches_nothing_is_recorded():
    seen, compiled = [], cr.compile(lambda x: x * 2)
    trace = lambda frame, event, arg: seen.append(frame.f_code.co_name)
    if hasattr(sys, "monitoring"):
        pytest.skip("Python 3.12 and later: debuggers are not in the way")
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        compiled(np.ones(2))
    finally:
        sys.settrace(before)
    assert "<lambda>" in seen and not compiled.recordings
    assert compiled(np.ones(2)).tolist() == compiled(np.ones(2)).tolist() == [2.0, 2.0] and compiled.recordings


def test_a_promise_costs_nothing_and_is_taken_at_its_word():
    scale = [2.0]

    @cr.compile(pure=True)
    def f(x):
        return x * scale[0]

    assert f(np.ones(1)) == 2.0
    scale[0] = 5.0
    assert f(np.ones(1)) == 2.0  # as declared
    assert [guard.key for guard in f.recordings[0].guard_sets.guards] == ["_default"]  # the dtype of new tensors


def test_what_is_refused_is_put_back():
    class State:
        k = 1.0

    state, numbers, names, kept = State(), [1.0], {"a": 1.0}, np.ones(2)

    def f(x):
        state.k += 1
        state.new = 3
        numbers.append(2.0)
        names["b"] = names.pop("a")
        kept[0] = 7.0
        State.j = 4.0
        open("/nonexistent")  # noqa: SIM115

    with (
        pytest.warns(UserWarning, match=r"it calls _?io.open, which depends on, or changes, .*\(`open\("),
        pytest.raises(FileNotFoundError),
    ):
        cr.compile(f)(np.ones(2))
    assert state.k == 2.0 and numbers == [1.0, 2.0] and names == {"b": 1.0} and kept.tolist() == [7.0, 1.0]  # once


def test_attributes_that_are_set_on_tensors_are_kept():
    x = cr.tensor([1.0, 2.0])

    @cr.compile
    def f(x):
        y = x * 2
        x.seen = y.tag = 3.0
        return y

    with pytest.warns(UserWarning, match="it sets a new attribute, seen, on a tensor"):
        assert f(x).tag == x.seen == 3.0


def test_paths_that_read_different_names():
    first, second = [1.0], [2.0]

    @cr.compile
    def f(x):
        return x * first[0] if x[0] > 0 else x * second[0]

    assert f(np.ones(1)) == 1.0 and f(-np.ones(1)) == -2.0
    second[0] = 5.0
    assert f(np.ones(1)) == 1.0 and f(-np.ones(1)) == -5.0
    first[0] = 7.0
    assert f(-np.ones(1)) == -5.0 and f(np.ones(1)) == 7.0


SCALES = {"of": 1.0}


@pytest.mark.parametrize("in_python", [False, True])
def test_functions_of_one_code_read_what_each_has(in_python, monkeypatch):
    if in_python:
        monkeypatch.setattr("chainrule._src.native.LOOPS", None)

    def scaled(name):
        by = 1.0

        def apply(x):
            return x * by * SCALES["of"]

        def change(to):
            nonlocal by
            by = to

        apply.__name__ = name
        return apply, change

    pairs = [scaled(name) for name in ("first", "second")]
    f = cr.compile(lambda x: sum(pairs[k % 2][0](x) for k in range(6)))
    x = np.ones(1)
    assert f(x) == 6.0
    for k, (_, change) in enumerate(pairs):
        change(2.0 + k)
        assert f(x) == sum(pairs[k % 2][0](x) for k in range(6))
    SCALES["of"] = 3.0
    try:
        assert f(x) == 45.0
    finally:
        SCALES["of"] = 1.0


def test_what_a_function_reads_after_an_array_is_looked_at_whatever_the_instruction_is():
    data = np.ones(2)

    @cr.compile
    def f(x):
        for _ in range(3):
            plain = data + 1.0  # its use is known at the next instruction, which stores it
        return x * plain.sum()

    assert f(np.ones(1)) == 4.0
    data[0] = 2.0
    assert f(np.ones(1)) == 5.0


@pytest.mark.parametrize(
    "program",
    [
        lambda s, x: cr.scan(lambda c, _: (c * s[0], c), x, np.ones(3))[0],
        lambda s, x: x * cr.scan(lambda c, _: (c * s[0], c), np.float64(1.0), np.ones(3))[0],
        lambda s, x: cr.scan(lambda c, _: (c * 2.0, c), x, np.ones(3))[0] * s[0],
        lambda s, x: cr.scan(lambda c, _: (c * np.sqrt(np.array(s)), c), x, np.ones(3))[0],
        lambda s, x: cr.fori_loop(0, 3, lambda i, c: cr.fori_loop(0, 2, lambda i, d: d * s[0], c), x),
        lambda s, x: cr.grad(lambda y: np.sum(cr.fori_loop(0, 3, lambda i, c: c * s[0], y)))(x) + s[0],
    ],
)
def test_state_is_seen_in_the_bodies_of_loops_and_after_them(program):
    s, x = [2.0], np.ones(2)
    compiled = cr.compile(lambda x: program(s, x))
    for value in (2.0, 2.0, 5.0):
        s[0] = value
        assert np.array_equal(compiled(x), program(s, x))
    assert len(compiled.recordings) == 2


def test_a_number_that_is_nan_is_unchanged():
    """A missing observation, which the loop skips."""
    data = [1.0, float("nan"), 3.0]

    def loss(x):
        return sum([(x - y) ** 2 for y in data if y == y])

    compiled = cr.compile(loss)
    for x in (1.0, 2.0):
        assert compiled(np.float64(x)) == loss(np.float64(x))
    assert len(compiled.recordings) == 1
    data[0] = float("nan")
    assert compiled(np.float64(1.0)) == loss(np.float64(1.0))


def test_a_refusal_without_source_has_one_pair_of_brackets():
    names = {"np": np, "counts": {"calls": 0}}
    exec(compile("def f(x):\n    counts['calls'] += 1\n    return x * 2", "missing.py", "exec"), names)
    compiled = cr.compile(names["f"])
    with pytest.warns(UserWarning, match=r"[^(] \(missing.py:2\)"):
        for _ in range(5):
            compiled(np.ones(2))
