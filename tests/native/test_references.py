"""Other code that runs during a call in C, and changes the lists, slots and caches that the call reads.

``tools/sanitize.py`` also runs these tests, with an allocator that reports each use of freed memory.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import warnings
import weakref
from contextlib import contextmanager

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.messages.source_locations import PACKAGE
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape import fp_warnings
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.node import Node
from chainrule.primitive import opaque

pytestmark = pytest.mark.skipif(LOOPS is None, reason="the extension is not there")


def leaf(*shape, seed=0):
    return cr.tensor(np.random.default_rng(seed).uniform(0.3, 1.5, shape)).requires_grad_()


def values_of(result):
    return np.asarray(getattr(result, "_tensor", result).detach())


# -- a list that other code empties -------------------------------------------------------------------------------------------


def concatenate(parts):
    return np.concatenate(parts)


def stack(parts):
    return cr.stack(parts)


def bind_cat(parts):
    if hasattr(TABLE["cat"], "c_op"):
        del TABLE["cat"].c_op  # so that Python is called
    return bind(TABLE["cat"], parts, {"axis": -1})


def parts_for(function, x):
    parts = [x * 2.0, x * 3.0, x * 4.0]
    return [cr.Array(part) for part in parts] if function is concatenate else parts


def expected_of(function, x, count):
    parts = [values_of(x) * k for k in (2.0, 3.0, 4.0)[:count]]
    return np.stack(parts) if function is stack else np.concatenate(parts)


@pytest.mark.parametrize("function", [concatenate, stack, bind_cat])
@pytest.mark.parametrize("hook", [sys.setprofile, sys.settrace])
def test_a_list_emptied_by_a_profiler_or_tracer(hook, function):
    """The hook empties the list when a Python function returns to C, which must hold references to the operands."""
    function(parts_for(function, leaf(2)))  # loads what is loaded on first use
    x = leaf(11 if hook is sys.setprofile else 12)
    before = sys.getprofile() if hook is sys.setprofile else sys.gettrace()
    for call in range(2):  # the first call of a NumPy function runs in Python; the second is cached
        parts = parts_for(function, x)
        operands = [weakref.ref(getattr(part, "_tensor", part)) for part in parts]

        def empty(
            frame, event, arg, parts=parts, operands=operands, must_hold=call == 1 or function is not concatenate
        ):
            outermost = frame.f_back is not None and frame.f_back.f_code is function.__code__
            outermost = (
                outermost and frame.f_code.co_name != "internal_error_state"
            )  # C calls it before the operands are read
            if event == "return" and parts and outermost and frame.f_code.co_filename.startswith(PACKAGE):
                parts.clear()
                assert not must_hold or all([operand() is not None for operand in operands])
            return empty

        hook(empty)
        try:
            result = function(parts)
        finally:
            hook(before)
        assert np.array_equal(values_of(result), expected_of(function, x, 3))
        assert parts == [] or (call, function) == (1, stack)  # cached by the first call


@pytest.mark.parametrize("function", [concatenate, bind_cat])
def test_a_list_filled_and_emptied_by_another_thread(function):
    shared, length, stop = [], 20, threading.Event()

    def change():
        for count in itertools.cycle((3, 3, 3, 0)):
            shared[:] = parts_for(function, cr.ones(length, dtype=cr.float64).requires_grad_())[:count]
            if stop.is_set():
                return

    thread = threading.Thread(target=change)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    found = []
    try:
        for _ in range(100_000):
            length = 20 + len(found) // 2  # the second call with a length is cached
            if length == 40:
                break
            try:
                result = values_of(function(shared)).reshape(-1)
            except (ValueError, RuntimeError, TypeError, IndexError):
                continue  # it was empty
            _, counts = np.unique(result, return_counts=True)
            # a list that is emptied while Python iterates over it ends there
            assert np.array_equal(result, np.repeat([2.0, 3.0, 4.0][: len(counts)], counts))
            if counts.tolist() == [length] * 3:  # else parts of two lists
                found.append(result)
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert length == 40


# -- slots and caches that other code changes --------------------------------------------------------------------------------


@contextmanager
def at_every_allocation(run):
    """Call a function whenever the garbage collector may run: in Python 3.11 at each allocation of a container."""

    def start(phase, info):
        if phase == "start":
            run()

    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.callbacks.append(start)
    gc.set_threshold(1)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(start)
        gc.unfreeze()


def nodes_of(tensor):
    nodes = [tensor._edge]
    for node in nodes:  # the list grows during the loop
        nodes += [edge for edge in node.edges if type(edge) is Node and edge not in nodes]
    return nodes


def renew(tensors, nodes):
    """Replace the object in each slot by an equal one."""
    for tensor in tensors:
        tensor._raw = tensor._raw.copy()
    for node in nodes:
        node.edges, node.params = tuple([*node.edges]), {**node.params}
        if node.in_avals is not None:
            node.in_avals = tuple([(tuple([*shape]), dtype) for shape, dtype in node.in_avals])
        if type(node.saved) is tuple:
            node.saved = tuple([*node.saved])


def elementwise(x, z):
    return (
        (x * z).tanh() + x * 2.0 + (1 - z) / x,
        cr.where(x > z, x, 0.5).clamp(0.1, 1.2),
        cr.addcmul(x, x, z, value=0.5),
    )


def moves(x, z):
    parts = cr.stack([x, z]), cr.cat([x, z]), x.unbind(0)[1]
    return *parts, x[0], x[1:, None], x[[0, 2]], x.sum(0), z.mean(-1, keepdim=True), x @ z


def arrays(x, z):
    x, z = cr.Array(x), cr.Array(z)
    return x[1, 2], x[[0, 2]], np.concatenate([x, z]), x.sum(axis=0), np.multiply(x, np.float64(2)), np.sin(x)


def writes(x, z):
    y = cr.zeros(3, 3, dtype=cr.float64)
    return y.add_(1).mul_(2.0).sub_(x.detach(), alpha=0.5), cr.zeros(3, 3, dtype=cr.float64).copy_(z.detach())


@pytest.mark.parametrize("operations", [elementwise, moves, arrays, writes])
def test_arrays_of_tensors_replaced_during_operations(operations):
    x, z = leaf(3, 3), leaf(3, 3, seed=1)
    expected = [values_of(found).tolist() for found in operations(x, z)]
    for _ in range(3):
        with at_every_allocation(lambda: renew((x, z), ())):
            found = operations(x, z)
        assert [values_of(each).tolist() for each in found] == expected


@pytest.mark.parametrize("create_graph", [False, True])
def test_slots_of_nodes_replaced_during_a_backward_pass(create_graph):
    x, z = leaf(3, 3), leaf(3, 3, seed=1)

    def gradients(renewed):
        y = (
            sum([part.sum() for part in elementwise(x, z)], (x @ z).mean(0).sum())
            + cr.stack([x, z]).mean(1).square().sum()
        )
        y = y + cr.cat([x, z[:1]]).exp().sum(-1).prod()
        nodes = nodes_of(y) if renewed else ()
        with at_every_allocation(lambda: renew((x, z) if renewed else (), nodes)):
            return [g.tolist() for g in cr.autograd.grad(y, (x, z), create_graph=create_graph)]

    assert gradients(True) == gradients(True) == gradients(False)


def test_a_destructor_indexes_while_the_parameters_of_an_index_are_replaced():
    x, made = leaf(600), []

    class Late:
        def __del__(self):
            made.append(x[37])

    x[37]._edge.params["late"] = Late()
    x[37 + 512]  # its parameters have the same cache slot as those of x[37]
    assert [value.item() for value in made] == [values_of(x)[37]] and [*made[0]._edge.params] == ["index"]


def test_a_destructor_computes_while_error_states_are_replaced():
    if fp_warnings.VARIABLE is None:
        pytest.skip("this NumPy keeps error states elsewhere")
    x, found = leaf(3), []
    outside = fp_warnings.VARIABLE.get()

    class Late:
        def __call__(self, *args):
            pass

        def __del__(self):
            for _ in range(5):
                with np.errstate(divide="warn", call=print), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.append((x / 0.0).detach())

    for make in [*[Late] * 8, *[lambda: print] * 6]:  # the last ones replace all of the first
        fp_warnings._internal_states.clear()  # the cache in Python would keep them alive
        with np.errstate(divide="raise", call=make()), pytest.raises(FloatingPointError):
            x / 0.0
    assert len(found) == 40 and fp_warnings.VARIABLE.get() is outside


# -- kernels that call Python ---------------------------------------------------------------------------------------------


def test_a_kernel_that_warns_or_raises():
    """SciPy's kernels call Python to warn. The warning handler runs another program, which needs more scratch memory."""
    special = pytest.importorskip("scipy.special")
    x, large, shown = cr.tensor([2.5, -1.0, 0.5, -2.0, 3.5], dtype=cr.float64).requires_grad_(), leaf(8000), []

    def gradient(x, y=None):
        return cr.autograd.grad((cr.lgamma(x) * 2.0).sum() if y is None else y, x)[0].numpy()

    expected = gradient(x)
    with special.errstate(all="warn"), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *args, **kwargs: shown.append(gradient(large))
        assert np.array_equal(gradient(x), expected, equal_nan=True) and shown
    y = (cr.lgamma(x) * 2.0).sum()
    with special.errstate(all="raise"):
        for call in (lambda: cr.lgamma(x), lambda: gradient(x, y)):
            with pytest.raises(special.SpecialFunctionError):
                call()


# -- a cotangent from a user's rule -------------------------------------------------------------------------------------


@opaque(vjp={"x": lambda g, x: np.ones((1, 2))}, jvp={"x": lambda t, x: t}, accepts="f")
def wrong(x):
    """Return a value whose rule returns a cotangent of another shape."""
    return x * 1.0


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x.sum(0),
        lambda x: x.mean((0, 1), keepdim=True)[0],
        lambda x: cr.cat([x[0], x[1]]),
        lambda x: cr.cat([x[0], x[1]], 1),
        lambda x: cr.stack([x[0, 0], x[1, 0]]),
    ],
)
def test_a_cotangent_of_another_shape_is_an_error(move):
    with pytest.raises((ValueError, RuntimeError)):
        wrong(move(leaf(40, 30, 20))).sum().backward()
