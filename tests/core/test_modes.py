"""The flags for threads in a special mode: one per mode, for all orders of leaving modes."""

import gc
import inspect
import itertools
import os
import random
import sys
import threading

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.api.watch import Watch
from chainrule._src.tape import accumulate, node, versions
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL, MODES, WATCHES
from chainrule._src.transforms import graph
from chainrule.utils import randomness
from chainrule.utils.checkpoint import checkpoint

USUAL = MODES[True, False, False]


def watches():
    found = []
    watch = LOCAL.watch
    while watch is not None:
        found.append(watch)
        watch = watch.inner
    return found


def consistent():
    on = watches()
    entries = (not LOCAL.mode.records) + len(LOCAL.saved_hooks) + len(on)
    return (len(ACTIVE_MODES), len(WATCHES)) == (entries, len(on))


@pytest.fixture(autouse=True)
def usual():
    gc.collect()
    assert LOCAL.mode is USUAL and not ACTIVE_MODES and not WATCHES
    yield
    gc.collect()
    assert LOCAL.mode is USUAL and not ACTIVE_MODES and not WATCHES


def hooks():
    return cr.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)


MAKERS = [cr.no_grad, cr.enable_grad, cr.inference_mode, lambda: cr.inference_mode(False), hooks, Watch]


@pytest.mark.parametrize("first", range(0, 50, 10))
def test_contexts_left_in_any_order(first):
    for seed in range(first, first + 10):
        contexts_left_in_any_order(random.Random(seed))


def contexts_left_in_any_order(choose):
    entered = []
    for _ in range(16):
        if choose.random() < 0.55 or not entered:
            entered.append(choose.choice(MAKERS)())
            entered[-1].__enter__()
        else:
            entered.pop(choose.randrange(len(entered))).__exit__(None, None, None)
        assert consistent()
    for context in entered:
        context.__exit__(None, None, None)
        assert consistent()
    cr.inference_mode(False).__enter__()  # leaves the usual mode, independent of open modes
    assert LOCAL.mode is USUAL


def test_a_thread_that_ends_in_special_modes_leaves_nothing():
    entries = []

    def work():
        cr.set_grad_enabled(False)
        for make in (hooks, Watch, Watch, cr.inference_mode):
            make().__enter__()
        entries.append((len(ACTIVE_MODES), len(WATCHES)))

    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        gc.collect()
        assert not ACTIVE_MODES and not WATCHES
    assert entries == [(4, 2)] * 3


def test_a_watch_is_entered_once():
    with Watch() as outer, Watch(), pytest.raises(RuntimeError, match="create another"):
        outer.__enter__()


def test_inference_mode_opened_by_a_forward_and_closed_outside():
    opened = cr.inference_mode()

    class Open(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            opened.__enter__()
            return x * 2

    Open.apply(cr.ones(2))
    opened.__exit__(None, None, None)
    assert not LOCAL.mode.silent
    cr.set_grad_enabled(True)


# -- interruptions ---------------------------------------------------------------------------------------------------


class Both(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        return x * 2, y * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * ctx.saved_tensors[0], h * 3


def plain(x, y):
    cr.tanh(x * y).sum().backward()


def recorded(x, y):
    cr.tanh(x * y).sum().backward(create_graph=True)


def function(x, y):
    a, b = Both.apply(x, y)
    (a * b).sum().backward()


def hooked(x, y):
    x.register_hook(lambda g: g * 2)
    y.register_post_accumulate_grad_hook(lambda t: None)
    z = x * y
    z.retain_grad()
    z.grad_fn.register_prehook(lambda gs: None)
    cr.tanh(z).sum().backward()


def moded(x, y):
    with cr.no_grad():
        x * y
    with cr.inference_mode(), hooks(), Watch():
        x * y
    plain(x, y)


def checkpointed(x, y):
    checkpoint(lambda x, y: cr.tanh(x * y).exp(), x, y, use_reentrant=False).sum().backward()


def reentrant(x, y):
    checkpoint(lambda x, y: cr.tanh(x * y).exp(), x, y, use_reentrant=True).sum().backward()


def packed(x, y):
    node = cr.tanh(x * y).grad_fn
    node._raw_saved_result.register_hooks(lambda t: t * 1, lambda t: t + 0)
    node(cr.ones(3))


def gradient(x, y):
    cr.func.grad(lambda x: (x * y.detach()).tanh().sum())(x.detach())


def second(x, y):
    cr.func.hessian(lambda x: np.sum(np.tanh(x)))(np.ones(2))


def batch(x, y):
    cr.vmap(cr.func.grad(lambda x: (x * x).sum()))(np.ones((2, 2)))


def tangent(x, y):
    cr.func.jvp(lambda x: (x * x).sum(), (np.ones(2),), (np.ones(2),))


def product(x, y):
    cr.autograd.functional.hvp(lambda x: (x**3).sum(), x.detach(), y.detach())


def interrupted(program, at):
    """Run a program that is interrupted (Ctrl-C) at the n-th signal check; return whether it reached it.

    Python checks for signals when a function starts and when a C function has returned, but not when a generator is closed.
    """
    x, y = cr.ones(3, requires_grad=True), cr.ones(3, requires_grad=True)
    left = itertools.count(at, -1)
    hit = raised = False

    def profile(frame, event, function):
        nonlocal hit
        starts = event == "call" and not frame.f_code.co_flags & inspect.CO_GENERATOR
        if (starts or event == "c_return") and function is not sys.setprofile and next(left) == 0:
            sys.setprofile(None)
            hit = True
            raise KeyboardInterrupt

    try:
        sys.setprofile(profile)
        program(x, y)
    except KeyboardInterrupt:
        raised = True
    finally:
        sys.setprofile(None)
    return hit, x, y, raised


def written(x, y):
    for _ in range(2):
        z = cr.ones(3)
        z.add_(1)
        z = z.mul_(2) + x


def guarded(x, y):
    for _ in range(2):
        z = np.ones(20_000)  # saved without a copy
        (cr.ones(20_000) * y[:1] * z).sum()


def anomalous(x, y):
    with cr.autograd.detect_anomaly():
        for _ in range(2):
            (cr.log(-x.detach()) + 1).sum()


@pytest.mark.parametrize("program", [written, guarded, anomalous])
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:Anomaly Detection", "ignore:invalid value"
)
def test_ctrl_c_is_not_lost_as_memory_is_freed(program):
    """Information about an array is removed with it in a callback, whose exceptions are not propagated."""
    program(cr.ones(3, requires_grad=True), cr.ones(3, requires_grad=True))
    for at in itertools.count():
        with np.errstate():  # one may be interrupted
            hit, *_, raised = interrupted(program, at)
        LOCAL.mode, LOCAL.saved_hooks, LOCAL.watch = USUAL, (), None
        ACTIVE_MODES.clear()
        WATCHES.clear()
        assert raised == hit
        if not hit:
            break
    assert at > 5


@pytest.mark.parametrize("program", [plain, recorded, function, hooked, moded])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_anywhere_divides_no_gradients_and_hides_no_mode(program):
    program(cr.ones(3, requires_grad=True), cr.ones(3, requires_grad=True))
    for at in itertools.count():
        hit, x, y, _ = interrupted(program, at)
        assert (x.grad is None) == (y.grad is None)
        assert LOCAL.sweep is None
        assert np.geterr()["divide"] == "warn"
        on = watches()
        entries = (not LOCAL.mode.records) + len(LOCAL.saved_hooks) + len(on)
        assert len(ACTIVE_MODES) >= entries and len(WATCHES) >= len(on)
        LOCAL.mode, LOCAL.saved_hooks, LOCAL.watch = USUAL, (), None  # a context may have been interrupted
        ACTIVE_MODES.clear()
        WATCHES.clear()
        if not hit:
            break
    assert at > 10  # there are only a few checks in C


@pytest.mark.parametrize(
    "program",
    [recorded, function, hooked, checkpointed, reentrant, packed, gradient, second, batch, tangent, product],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_anywhere_leaves_nothing_switched(program):
    """Internal switches of the library are reset: gradients, packing, observers and levels are as before."""
    program(cr.ones(3, requires_grad=True), cr.ones(3, requires_grad=True))
    for at in itertools.count():
        hit, *_ = interrupted(program, at)
        state = LOCAL.mode, LOCAL.saved_hooks, LOCAL.watch, LOCAL.sweep, LOCAL.traced, STACK.levels, ACTIVE_MODES
        try:
            assert state == (USUAL, (), None, None, False, [], [])
            assert not randomness._LOCK._is_owned()
            assert np.geterr()["divide"] == "warn"
        finally:
            LOCAL.mode, LOCAL.saved_hooks, LOCAL.watch, STACK.levels = USUAL, (), None, []
            ACTIVE_MODES.clear()
            WATCHES.clear()
        if not hit:
            break
    assert at > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("lock", [accumulate._ACCUMULATE, node._FIRST_HOOK, versions.WRITING, graph._SHARED_LOCK])
def test_a_fork_while_another_thread_holds_a_lock(lock):
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        child_ended = threading.Timer(20, os._exit, (1,))
        child_ended.daemon = True
        child_ended.start()
        x = cr.ones(3, requires_grad=True)
        y = x + 0
        y.register_hook(lambda g: g * 2)
        with graph.allow_mutation_on_saved_tensors():
            z = y**2
            y.add_(1)
        z.sum().backward()
        os._exit(0 if x.grad.tolist() == [4, 4, 4] else 1)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_the_clock_of_writes_never_goes_back(monkeypatch):
    """One thread has its number, but stores it only after another thread has taken a later one."""
    slow, fast, between = cr.ones(3), cr.ones(3), threading.Event()
    usual, numbers = versions.next_seq, []

    def number():
        numbers.append(usual())
        if len(numbers) == 1:
            between.set()
            other.join(0.2)
        return numbers[0] if threading.current_thread() is not other else numbers[-1]

    def later():
        between.wait()
        fast.add_(1)

    monkeypatch.setattr(versions, "next_seq", number)
    other = threading.Thread(target=later)
    other.start()
    versions.note_write(slow._raw, "add_", None)  # like Python; a write in C waits for it, too
    other.join()
    assert len(numbers) == 2 and versions.CLOCK.latest == max(numbers)
