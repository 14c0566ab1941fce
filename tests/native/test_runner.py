"""Runner and execute: programs give the bits of the NumPy calls that they replace."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

from chainrule._src import native
from chainrule._src.arrays import settings
from chainrule._src.native.code import ARENA, FIRST_INPUT, SCRATCH, group, group_step, kernel_step, program

D = np.dtype(np.float64)


def loop(ufunc: np.ufunc, types: str) -> tuple[int, int]:
    return native.loop(ufunc, ufunc.types.index(types))


def layout(array: np.ndarray) -> Any:
    return array.shape, array.dtype, array.strides


def square_then_tanh(x: np.ndarray) -> Any:
    """Return a runner of tanh(x * x), with the square in the arena."""
    steps = [
        kernel_step(*loop(np.multiply, "dd->d"), x.size, [(FIRST_INPUT, 0), (FIRST_INPUT, 0), (ARENA, 64)], [8, 8, 8]),
        kernel_step(*loop(np.tanh, "d->d"), x.size, [(ARENA, 64), (FIRST_INPUT + 1, 0)], [8, 8]),
    ]
    return native.Runner(program(steps), 64 + x.nbytes, [layout(x)], [], [layout(x)])


def test_a_program_returns_a_new_array_with_the_bits_of_numpy():
    x = np.linspace(-3, 3, 101)
    run = square_then_tanh(x)
    first, second = run((x,))[0], run([x])[0]
    assert first.tobytes() == np.tanh(x * x).tobytes() == second.tobytes()
    assert first is not second and first.flags.owndata


def test_arrays_of_other_layouts_are_refused():
    x = np.linspace(-3, 3, 100)
    run = square_then_tanh(x)
    others = [
        x[::-1],
        x.astype("f4"),
        x.reshape(10, 10),
        x[:99],
        x.view(np.matrix)[0],
        x.byteswap().view(">f8"),
        list(x),
    ]
    assert [run((other,)) for other in others] == [None] * len(others)
    unaligned = np.frombuffer(b" " + x.tobytes(), np.uint8)[1:].view(D)
    assert run((unaligned,)) is None


def test_the_stride_of_a_dimension_of_one_element_does_not_matter():
    x = np.arange(6.0).reshape(1, 6)
    code = program([kernel_step(*loop(np.negative, "d->d"), 6, [(2, 0), (3, 0)], [8, 8])])
    run = native.Runner(code, 0, [((1, 6), D, (8, 8))], [], [layout(x)])
    assert np.array_equal(run((x,))[0], -x)


def test_run_into():
    x, out = np.linspace(-3, 3, 101), np.empty(101)
    run = square_then_tanh(x)
    assert run.run_into((x,), (out,)) is True
    assert np.array_equal(out, np.tanh(x * x))
    out.flags.writeable = False
    assert run.run_into((x,), (out,)) is None


def test_constants_and_written_inputs():
    total, step = np.zeros(5), np.arange(5.0)
    add = loop(np.add, "dd->d")
    code = program([kernel_step(*add, 5, [(2, 0), (3, 0), (2, 0)], [8, 8, 8])])
    run = native.Runner(code, 0, [layout(total)], [step], [], writes=[0])
    assert run((total,)) == [] == run((total,))
    assert np.array_equal(total, 2 * step)
    total.flags.writeable = False
    assert run((total,)) is None


def test_outer_dimensions_iterate_over_views():
    x = np.arange(24.0).reshape(2, 3, 4)
    view = x.transpose(2, 0, 1)
    out = np.empty(view.shape)
    outer = [(n, (a, b)) for n, a, b in zip(view.shape[:-1], view.strides, out.strides)]
    code = program(
        [kernel_step(*loop(np.sqrt, "d->d"), 3, [(2, 0), (3, 0)], [view.strides[2], out.strides[2]], outer=outer)]
    )
    run = native.Runner(code, 0, [layout(view)], [], [layout(out)])
    assert np.array_equal(run((view,))[0], np.sqrt(view))


def test_a_gufunc_has_core_dimensions():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    out = np.empty((2, 4))
    strides = [0, 0, 0, *a.strides, *b.strides, *out.strides]
    code = program([kernel_step(*loop(np.matmul, "dd->d"), 1, [(2, 0), (3, 0), (4, 0)], strides, core=[2, 3, 4])])
    run = native.Runner(code, 0, [layout(a), layout(b)], [], [layout(out)])
    assert np.array_equal(run((a, b))[0], a @ b)


def chain(rows: int, n: int, block: int, split: bool) -> Any:
    """Return a runner of tanh(x + bias) * x for ``rows`` rows, with the sum and its tanh in scratch memory."""
    x, out, bias, one, other = (2, 0, 8 * n, 8 * n), (4, 0, 8 * n, 8 * n), (3, 0, 0, 0), (SCRATCH, 0, 0, 8 * n), None
    other = (SCRATCH, 8 * n * block, 0, 8 * n)
    steps = [
        group_step(*loop(np.add, "dd->d"), [x, bias, one], [8, 8, 8], n, flat=False),
        group_step(*loop(np.tanh, "d->d"), [one, other], [8, 8], n),
        group_step(*loop(np.multiply, "dd->d"), [other, x, out], [8, 8, 8], n),
    ]
    words = group(steps, rows=rows, n=n, block=block, scratch=2 * 8 * n * block, split=split)
    whole = ((rows, n), D, (8 * n, 8))
    return native.Runner(program([words]), 0, [whole, ((n,), D, (8,))], [], [whole])


def test_a_kernel_of_a_group_can_be_called_several_times_for_each_row():
    """Row by row: sums over the middle axis of x * y, whose product is in scratch memory."""
    x, y = np.random.default_rng(0).standard_normal((2, 50, 7, 4))
    product = (SCRATCH, 0, 0, 28 * 8)
    multiply = group_step(*loop(np.multiply, "dd->d"), [(2, 0, 224, 224), (3, 0, 224, 224), product], [8, 8, 8], 28)
    total = (4, 0, 32, 32)
    add = group_step(*loop(np.add, "dd->d"), [total, product, total], [8, 8, 8], 4, (7, [0, 32, 0]), flat=False)
    words = group([multiply, add], rows=50, n=28, block=16, scratch=16 * 224)
    fill = kernel_step(*loop(np.subtract, "dd->d"), 200, [(2, 0), (2, 0), (4, 0)], [0, 0, 8])
    out = np.empty((50, 4))
    run = native.Runner(program([fill, words]), 0, [layout(x), layout(y)], [], [layout(out)])
    assert np.array_equal(run((x, y))[0], np.sum(x * y, axis=1))


@pytest.mark.parametrize("rows, n, block", [(1, 1, 1), (7, 5, 3), (64, 3, 64), (5, 2, 100), (5000, 16, 37)])
@pytest.mark.parametrize("split", [False, True])
def test_a_group_runs_block_by_block(rows, n, block, split):
    x = np.linspace(-2, 2, rows * n).reshape(rows, n)
    bias = np.linspace(0, 1, n)
    assert chain(rows, n, block, split)((x, bias))[0].tobytes() == (np.tanh(x + bias) * x).tobytes()


def test_a_range_of_a_program_on_given_pointers():
    x, y = np.arange(4.0), np.empty(4)
    steps = [kernel_step(*loop(np.negative, "d->d"), 4, [(2, 0), (3, 0)], [8, 8])]
    steps += [kernel_step(*loop(np.square, "d->d"), 4, [(3, 0), (3, 0)], [8, 8])]
    code = program(steps)
    bases = np.array([0, 0, x.ctypes.data, y.ctypes.data], np.intp)
    assert native.execute(code, 0, len(steps[0]), bases) == 0
    assert np.array_equal(y, -x)
    native.execute(code, len(steps[0]), code.size, bases)
    assert np.array_equal(y, x * x)


# ---- floating-point exceptions


def test_exceptions_are_reported_once_even_if_a_later_kernel_clears_them():
    z = np.zeros(4)
    divide, maximum = loop(np.divide, "dd->d"), loop(np.maximum, "dd->d")
    steps = [kernel_step(*divide, 4, [(2, 0), (2, 0), (3, 0)], [8] * 3)]
    steps += [kernel_step(*maximum, 4, [(2, 0), (2, 0), (3, 0)], [8] * 3)]
    run = native.Runner(program(steps), 0, [layout(z)], [], [layout(z)])
    seen: list[int] = []
    run((z,), seen.append)
    assert seen == [8]
    run((z + 1,), seen.append)
    assert seen == [8]


def test_exceptions_of_all_threads_are_reported():
    x = np.ones(300_000)
    square = group_step(*loop(np.square, "d->d"), [(2, 0, 8, 8), (3, 0, 8, 8)], [8, 8], 1)
    code = program([group([square], rows=x.size, block=512, split=True)])
    run = native.Runner(code, 0, [layout(x)], [], [layout(x)])
    seen: list[int] = []
    for place in range(0, x.size, 10_007):
        x[place] = 1e200
        run((x,), seen.append)
        x[place] = 1.0
        run((x,), seen.append)
    assert seen == [2] * 30


def test_steps_after_commit_do_not_run_if_the_report_raises():
    z, total = np.zeros(4), np.zeros(4)
    first = kernel_step(*loop(np.divide, "dd->d"), 4, [(2, 0), (2, 0), (ARENA, 0)], [8] * 3)
    write = kernel_step(*loop(np.add, "dd->d"), 4, [(3, 0), (ARENA, 0), (3, 0)], [8] * 3)
    run = native.Runner(program([first, write]), 32, [layout(z), layout(total)], [], [], writes=[1], commit=len(first))

    def refuse(mask: int) -> None:
        raise FloatingPointError(mask)

    with pytest.raises(FloatingPointError):
        run((z, total), refuse)
    assert np.array_equal(total, np.zeros(4))
    run((z + 1, total), refuse)
    assert np.array_equal(total, np.ones(4))


# ---- threads


def test_threads_may_call_one_runner():
    x = np.linspace(-3, 3, 40_000)
    run = square_then_tanh(x)
    wanted, wrong = [np.tanh((x + k) * (x + k)).tobytes() for k in range(4)], []

    def call(k: int) -> None:
        for _ in range(20):
            if run((x + k,))[0].tobytes() != wanted[k]:
                wrong.append(k)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_set_num_threads_sets_the_pool():
    before = settings.get_num_threads()
    try:
        for count in (1, 3):
            settings.set_num_threads(count)
            assert native.get_threads() == count == settings.get_num_threads()
            test_a_group_runs_block_by_block(5000, 16, 37, True)
    finally:
        settings.set_num_threads(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_child_of_a_fork_starts_its_own_threads():
    test_a_group_runs_block_by_block(5000, 16, 37, True)
    child = os.fork()
    if child == 0:
        try:
            test_a_group_runs_block_by_block(5000, 16, 37, True)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_helpers_that_join_and_leave_at_the_same_time_are_counted():
    """A wrong count would make the calling thread wait forever. In a subprocess, because it starts many threads."""
    x, threads, n = np.zeros(1), 64, 4096
    step = kernel_step(
        *loop(np.negative, "d->d"),
        n,
        [(FIRST_INPUT, 0), (FIRST_INPUT + 1, 0)],
        [0, 0],
        outer=[(threads * 65536 // n, [0, 0])],
        split=True,
    )
    run = native.Runner(program([step]), 0, [layout(x)], [], [layout(x)])
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)
            native.set_threads(threads)
            for _ in range(250):
                run((x,))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_report_may_call_the_runner_again():
    x = np.zeros(100)
    divide = kernel_step(*loop(np.divide, "dd->d"), 100, [(2, 0), (2, 0), (ARENA, 0)], [8] * 3)
    out = kernel_step(*loop(np.add, "dd->d"), 100, [(ARENA, 0), (2, 0), (3, 0)], [8] * 3)
    run = native.Runner(program([divide, out]), 800, [layout(x)], [], [layout(x)], commit=len(divide))
    inner = []
    (outer,) = run((x,), lambda mask: inner.append(run((x + 1,))[0]))
    assert np.isnan(outer).all() and np.array_equal(inner[0], np.full(100, 2.0))


# ---- malformed programs


def test_malformed_code_is_refused():
    x = np.arange(4.0)
    good = program([kernel_step(*loop(np.negative, "d->d"), 4, [(2, 0), (3, 0)], [8, 8])])
    for place, value in [
        (0, 7),
        (1, 3),
        (1, 10**9),
        (1, -1),
        (2, 0),
        (4, 0),
        (4, 99),
        (5, -1),
        (6, 1),
        (7, 5),
        (9, -1),
    ]:
        bad = good.copy()
        bad[place] = value
        with pytest.raises(ValueError):
            native.Runner(bad, 0, [layout(x)], [], [layout(x)])
    step = group_step(*loop(np.negative, "d->d"), [(2, 0, 8, 8), (3, 0, 8, 8)], [8, 8], 1)
    for rows, block in ((2, 2**63 - 1), (2**63 - 1, 2)):
        with pytest.raises(ValueError, match="rows"):
            native.Runner(program([group([step], rows=rows, block=block)]), 0, [layout(x)], [], [layout(x)])
    with pytest.raises(ValueError, match="base"):
        native.Runner(good, 0, [layout(x)], [], [])
    with pytest.raises(ValueError, match="must be dense"):
        native.Runner(good, 0, [layout(x)], [], [layout(x[::2])])
    for huge in (((2**40, 2**40), x.dtype, (2**43, 8)), ((2**62,), x.dtype, (8,))):
        with pytest.raises(ValueError, match="must be dense"):
            native.Runner(good, 0, [layout(x)], [], [huge])


def test_loops_of_objects_have_no_address():
    assert native.loop(np.add, np.add.types.index("OO->O")) is None
    assert native.loop(np.add, -1) is None and native.loop(np.add, 1000) is None
    with pytest.raises(TypeError):
        native.loop(np.sum, 0)
