"""Large arrays begin at cache lines after a backward pass that met some, and only then."""

from __future__ import annotations

import contextvars
import ctypes
import gc
import os
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import chainrule as cr
from chainrule.backends.alignment import ALIGNMENT, HUGE, LARGE, _Handler

OURS, USUAL = "chainrule_aligned", "default_allocator"

pytestmark = pytest.mark.skipif(
    not (sys.platform == "linux" and sys.implementation.name == "cpython"), reason="NumPy's handler is used as it is"
)


def sweep(size: int) -> cr.Tensor:
    x = cr.ones(size, requires_grad=True)
    cr.tanh(x * 2).sum().backward()
    return x.grad


@pytest.fixture(autouse=True)
def usual_handler():
    sweep(2)
    yield
    sweep(2)


def name() -> str:
    return get_handler_name(np.empty(3))


def test_handler_is_to_be_had_here():
    sweep(LARGE)
    assert ALIGNMENT.switch is not None


def test_a_large_backward_pass_switches_on_and_a_small_one_off():
    assert name() == USUAL
    grad = sweep(LARGE)
    assert name() == OURS
    assert grad._raw.ctypes.data % 64 == 0
    for size in (LARGE, LARGE + 1, 10 * LARGE + 7):
        assert (np.ones(size) * 2).ctypes.data % 64 == 0
    sweep(2)
    assert name() == USUAL


def test_contexts_leave_one_by_one():
    first, second = contextvars.copy_context(), contextvars.copy_context()
    for size in (LARGE, 2):
        first.run(sweep, size)
        second.run(sweep, size)
    assert first.run(name) == second.run(name) == USUAL


def test_very_large_arrays_are_left_to_numpy():
    sweep(HUGE)
    assert name() == OURS
    sweep(HUGE + 1)
    assert name() == USUAL
    x = cr.ones(LARGE, requires_grad=True)
    y = x * 2
    (y.sum() + y.expand(HUGE // LARGE + 1, LARGE).exp().sum()).backward()  # from a middling one to a very large one
    assert name() == USUAL


def test_numbers_are_the_same():
    first, second = sweep(LARGE), sweep(LARGE)
    assert np.array_equal(first._raw, second._raw)
    assert np.allclose(first._raw, 2 * (1 - np.tanh(2) ** 2))


def test_threads_have_handlers_of_their_own():
    sweep(LARGE)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(name()))
    thread.start()
    thread.join()
    assert seen == [USUAL]
    assert name() == OURS

    def small_sweep():
        sweep(2)
        seen.append(name())

    thread = threading.Thread(target=small_sweep)
    thread.start()
    thread.join()
    assert seen == [USUAL, USUAL]
    assert name() == OURS  # another thread's small backward pass is no reason to leave


def test_arrays_of_either_handler_can_be_resized_copied_and_freed_under_the_other():
    before = np.arange(float(LARGE))
    sweep(LARGE)
    during = np.arange(float(LARGE))
    before.resize(2 * LARGE, refcheck=False)
    sweep(2)
    during.resize(2 * LARGE, refcheck=False)
    assert get_handler_name(before) == USUAL and get_handler_name(during) == OURS
    assert np.array_equal(before, during)
    del before, during
    gc.collect()


PROGRAM = """
import numpy as np
{setup}
import chainrule as cr
x = cr.ones(100_000, requires_grad=True)
(x * x).sum().backward()
from numpy._core.multiarray import get_handler_name
print(get_handler_name(np.empty(3)), get_handler_name(x.grad._raw))
keep = np.empty(100_000)
"""


def run(setup: str = "", **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(setup=setup)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_arrays_may_outlive_the_library():
    assert run() == [OURS, OURS]


def test_left_alone_on_request():
    assert run(CHAINRULE_KEEP_MEMORY="0") == [USUAL, USUAL]


def test_a_context_has_its_own_handler():
    context = contextvars.copy_context()
    context.run(sweep, LARGE)
    assert context.run(name) == OURS and name() == USUAL
    sweep(2)
    assert context.run(name) == OURS
    context.run(sweep, 2)
    assert context.run(name) == USUAL


def test_a_handler_set_later_is_left_alone():
    sweep(LARGE)
    assign, usual, _ = ALIGNMENT.switch
    handler = _Handler.from_buffer_copy(
        _Handler.from_address(ctypes.pythonapi.PyCapsule_GetPointer(usual, b"mem_handler"))
    )
    handler.name = b"mine"
    mine = ctypes.pythonapi.PyCapsule_New(ctypes.addressof(handler), b"mem_handler", None)

    def checked(first):
        sweep(first)
        assign(mine)
        for size in (LARGE, 2, LARGE):
            sweep(size)
            assert name() == "mine"
        assign(usual)

    for first in (2, LARGE):
        contextvars.copy_context().run(checked, first)
    gc.collect()  # arrays of this handler go before it does
    assert ctypes.sizeof(handler)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_arrays_live_on_in_a_forked_process():
    grad = sweep(LARGE)
    child = os.fork()
    if not child:
        total = float(grad.sum()._raw)
        sweep(10 * LARGE)
        del grad
        sweep(2)
        os._exit(0 if total > 0 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_traced_memory_is_given_back():
    sweep(LARGE)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        array = np.ones(100 * LARGE)
        array.resize(200 * LARGE, refcheck=False)
        assert tracemalloc.get_traced_memory()[0] - before >= array.nbytes
        del array
        assert tracemalloc.get_traced_memory()[0] - before < LARGE
    finally:
        tracemalloc.stop()
