"""Eager operations in C have the effects of those in Python, also after errors and with reentrant code (see also ``make fuzz``)."""

from __future__ import annotations

import gc
import operator
import os
import subprocess
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

import chainrule as cr
from chainrule._src import native
from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.messages.errors import GRADIENT
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape import engine, trial
from chainrule._src.tape.accumulate import KEPT_PASSES
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.levels import open_level
from chainrule._src.tape.node import Freed, Leaf
from chainrule._src.tape.saved import check_saved
from chainrule._src.tape.tensor import wrap
from chainrule._src.tape.versions import BEFORE_WRITE
from chainrule.nn import functional as F
from chainrule.primitive import elementwise

pytestmark = pytest.mark.skipif(LOOPS is None, reason="the extension is not there")


@pytest.fixture
def python():
    """Return a function that runs another one with all operations in Python."""

    def off(function):
        before = LOOPS.switch_on(False)
        try:
            return function()
        finally:
            LOOPS.switch_on(before)

    return off


def leaves(*shape, dtype=np.float64):
    rng = np.random.default_rng(0)
    return [cr.tensor(rng.uniform(0.3, 1.5, shape).astype(dtype)).requires_grad_() for _ in range(2)]


def calls(function):
    """Return the names of the Python functions that a call calls."""
    names = []

    def profile(frame, event, arg):
        if event == "call":
            names.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names


# -- the fast path is used ----------------------------------------------------------------------------------------------


def test_the_extension_is_on():
    assert native.AVAILABLE and native.why_not == "" and LOOPS.switch_on(True)


def test_operations_call_no_python():
    x, z = leaves(4, 4)
    row = cr.ones(4, dtype=cr.float64)
    everything = [
        lambda: x * z, lambda: x * 2.0, lambda: 2 - x, lambda: x + row, lambda: x.tanh(), lambda: cr.exp(x), lambda: x**2, lambda: x.relu(),
        lambda: row * 2, lambda: np.sin(x), lambda: -x, lambda: x.sum(), lambda: x.mean(), lambda: x.sigmoid(),
        lambda: x > z, lambda: row <= 0.5, lambda: (x > 0) & mask, lambda: cr.where(mask, x, z), lambda: cr.where(mask, 0.5, x),
        lambda: x.clamp(0.1, 1), lambda: cr.clamp(row, min=0.0), lambda: cr.addcmul(x, z, z, value=0.1), lambda: cr.lerp(x, z, row),
        lambda: cr.add(x, z), lambda: x.sub(z, alpha=2), lambda: x.pow(2), lambda: x.abs(), lambda: F.gelu(x, approximate="tanh"),
        lambda: F.silu(x),
        lambda: F.softplus(x), lambda: F.leaky_relu(x, 0.1), lambda: F.logsigmoid(x), lambda: x.softmax(-1), lambda: x.log_softmax(1),
        lambda: x.sum(0), lambda: x.mean(-1, keepdim=True), lambda: cr.stack([x, z]), lambda: cr.cat([x, z, x], dim=1),
        lambda: x[0], lambda: x[1:, None], lambda: x[..., -1], lambda: x[::2, 1], lambda: x[places], lambda: x[:, places],
        lambda: x[[0, 2]], lambda: x * np.float64(2), lambda: np.float32(2) - x, lambda: np.multiply(x, np.float64(2)),
    ]  # fmt: skip
    mask, places = x > 0.6, cr.tensor([0, 3])
    for call in everything:
        call()
        assert calls(call)[1:] == []
    with cr.no_grad():
        for call in everything:
            call(), call()
            assert calls(call)[1:] == []


@pytest.fixture
def no_write_callbacks():
    """Remove the callbacks that compiled functions of other tests registered for writes."""
    listening = BEFORE_WRITE[:]
    BEFORE_WRITE.clear()
    yield
    BEFORE_WRITE[:] = listening


@pytest.mark.usefixtures("no_write_callbacks")
def test_writes_call_no_python():
    x, z = leaves(4, 4)
    constant, mask = cr.ones(4, 4, dtype=cr.float64), x > 0.6
    everything = [
        lambda y: y.add_(1), lambda y: y.mul_(z), lambda y: operator.iadd(y, x), lambda y: y.sub_(x, alpha=0.5), lambda y: y.tanh_(),
        lambda y: y.lerp_(x, z), lambda y: operator.ipow(y, 2),
    ]  # fmt: skip
    outside = [lambda y: y.zero_(), lambda y: y.fill_(2.0), lambda y: y.copy_(constant), lambda y: y.div_(constant)]
    for write in everything:
        for y in (constant.clone(), x * z):
            write(y)
            assert calls(lambda y=y, write=write: write(y))[2:] == []  # after two lambdas
    for write in [*everything[:1], *outside]:
        write(constant)
        assert calls(lambda write=write: write(constant))[2:] == []
    with cr.no_grad():
        for write in [*everything, *outside]:
            write(x)
            assert calls(lambda write=write: write(x))[2:] == []
    assert x._version == 2 * len([*everything, *outside]) and mask.any()


@pytest.mark.parametrize("factor", [1, 3, -0.5])
@pytest.mark.parametrize("shape", [(3,), (1,), ()])
def test_a_write_with_a_factor_sets_the_cut_that_python_sets(factor, shape, python):
    x, _ = leaves(3)
    with cr.no_grad():
        halved = x[:1].expand(3)[:1].reshape(shape) / 2 if shape != (3,) else x / 2

    def run():
        kinds = []
        for other in (halved, cr.ones(shape, dtype=cr.float64)):
            y = (x * 2).detach()
            y.sub_(other, alpha=factor)
            kinds.append(getattr(y._cut, "kind", None))
        return kinds

    assert run() == python(run)


def test_a_hook_moves_one_node_to_python_but_not_the_whole_pass():
    x, z = leaves(3)
    seen = []

    def run(hooked):
        y = x
        for i in range(40):
            y = (y * z).tanh()
            if i == 20 and hooked:
                y.register_hook(seen.append)
        end = y.sum()
        return calls(lambda: end.backward())

    run(True), run(False)
    assert len(run(True)) < len(run(False)) + 25
    assert len(seen) == 2


def test_a_user_defined_op_gets_a_program():
    @elementwise(d={"x": lambda x, y: 2 * x * y, "y": lambda x: x * x}, accepts="f")
    def squared_times(x, y):
        """x²y"""
        return x * x * y

    x, z = leaves(5)
    squared_times(x, z).sum().backward()
    assert np.array_equal(x.grad.numpy(), 2 * x.detach().numpy() * z.detach().numpy())


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "relu", "exp", "log1p", "atan"])
def test_rules_run_as_programs(name):
    x, _ = leaves(5)
    getattr(cr, name)(x).sum().backward()
    programs, _ = TABLE[name].c_op.programs
    assert programs


def test_the_self_test_finds_a_difference(monkeypatch):
    before = trial._leaves()
    answers = [before, [*before[:-1], "other"]]
    monkeypatch.setattr(trial, "_leaves", lambda: answers.pop(0))
    monkeypatch.setattr(native, "why_not", "")
    try:
        trial.register_self_test()
        with pytest.warns(RuntimeWarning, match="without its C extension: operations run in Python, because in C they"):
            trial.run_self_test()
        assert native.why_not.startswith("operations run in Python, because in C they record")
        assert LOOPS.switch_on(False) is False
        x, z = leaves(2)
        (x * z).sum().backward()
        assert x.grad.tolist() == z.tolist()
    finally:
        LOOPS.switch_on(True)


def test_the_version_prints_where_operations_run():
    for on, words in (
        ("0", "in Python (the extension is not loaded: CHAINRULE_NATIVE=0 in the environment)"),
        ("1", "in C"),
    ):
        environment = {**os.environ, "CHAINRULE_NATIVE": on, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run(
            [sys.executable, "-m", "chainrule", "--version"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.stdout.startswith(f"chainrule {cr.__version__}, operations {words}; matrix products: ")


# -- the garbage collector ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="later collectors walk the tape")
def test_nodes_are_untracked():
    x, z = leaves(3)
    y = (x * z).tanh().sum()
    assert not gc.is_tracked(y._edge) and not gc.is_tracked(y._edge.edges[0])


def cycle_by_a_hook():
    x, z = leaves(3)
    y = x * z
    w = (y * 2).tanh()  # created before the hook that closes the cycle
    y.register_hook(lambda g: w)
    return y, w


def cycle_by_metadata():
    x, z = leaves(3)
    y = x * z
    w = (y * 2).sum()
    y.grad_fn.metadata["end"] = w
    return y, w


class Holder(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.kept = []
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def cycle_by_a_function():
    x, _ = leaves(3)
    y = Holder.apply(x)
    w = y.tanh().exp()
    y.grad_fn.kept.append(w)
    return y, w


@pytest.mark.parametrize("make", [cycle_by_a_hook, cycle_by_metadata, cycle_by_a_function])
def test_cycles_through_user_objects_are_collected(make):
    gc.collect()
    found = [weakref.ref(tensor._edge) for tensor in make()]
    assert all(ref() is not None for ref in found)
    gc.collect()
    assert all(ref() is None for ref in found)


def test_the_garbage_collector_may_run_where_nothing_can_be_imported():
    program = """import gc; gc.disable()
import chainrule as cr
y = cr.ones(2, requires_grad=True) * 2
y.register_hook(print)
eval("lambda collect: collect()", {"__builtins__": {}})(gc.collect)"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0 and not run.stderr


def test_a_long_tape_needs_no_recursion():
    x, _ = leaves(2)
    y = x
    for _ in range(200_000):
        y = y * 1.0
    del y


# -- reentrant code ----------------------------------------------------------------------------------------------


def test_a_backward_pass_in_a_hook():
    x, z = leaves(4)

    def hook(g):
        with cr.enable_grad():
            inner = (z.detach().requires_grad_() ** 2).sum()
            inner.backward()
            return cr.autograd.grad((x * x).sum(), x)[0] * 0 + g

    y = (x * z).tanh()
    y.register_hook(hook)
    y.sum().backward()
    expected = (1 - np.tanh((x * z).detach().numpy()) ** 2) * z.detach().numpy()
    assert np.allclose(x.grad.numpy(), expected)


def test_operations_in_a_warnings_handler(python):
    x, z = leaves(4)
    made = []

    def shown(*args, **kwargs):
        made.append((x * z).tanh())

    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = shown
            return (x / (z * 0)).detach().numpy().tobytes()

    assert run() == python(run)
    assert len(made) == 2 and made[0]._edge is not None


def test_del_during_an_operation():
    class Chatty:
        def __init__(self):
            self.me = self

        def __del__(self):
            x, z = leaves(3)
            (x * z).tanh().sum().backward()

    x, z = leaves(3)
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        y = x
        for _ in range(50):
            Chatty()
            y = (y * z).tanh()
        y.sum().backward()
    finally:
        gc.set_threshold(*threshold)
    expected = x.grad.tolist()
    x.grad = None
    y = x
    for _ in range(50):
        y = (y * z).tanh()
    y.sum().backward()
    assert x.grad.tolist() == expected


def test_threads():
    x, z = leaves(64)
    (expected,) = cr.autograd.grad(((x * z).tanh() / 2).sum(), x)
    wrong = []

    def run():
        for _ in range(200):
            (g,) = cr.autograd.grad(((x * z).tanh() / 2).sum(), x)
            if g.numpy().tobytes() != expected.numpy().tobytes():
                wrong.append(g)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_write_in_another_thread_during_a_large_operation():
    x = cr.ones(300_000).requires_grad_()
    held = cr.ones(300_000)
    stop = threading.Event()

    def replace():
        while not stop.is_set():
            held.data = cr.ones(300_000)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(100):
            assert (x * held).detach()[0].item() == 1
    finally:
        stop.set()
        thread.join()


# -- out of memory ----------------------------------------------------------------------------------------------------------
#
# Python leaks if it runs out of memory in a Python function, so these functions call C only.


def operations(x, z, row):
    return lambda: ((x * z).tanh() + x * 2.0 + row - (1 - z) / x).sum() + (x @ z).mean() + np.sin(x).sum()


def sweep(x, z, row):
    end = operations(x, z, row)()
    freed = Freed()
    freed.code, freed.lasti = None, 0
    one = np.ones(())

    def run():
        order = [[end._edge], [one], None, None, {}, freed, True, False, check_saved, None, None, None]
        arrived = LOOPS.sweep(*order)
        assert LOOPS.write_grads(arrived, freed, GRADIENT, set(), KEPT_PASSES)

    return run


def recorded_sweep(x, z, row):
    end = ((x * z).tanh() + x * 2.0 - (1 - z)).square()
    freed = Freed()
    freed.code, freed.lasti = end._edge.code, end._edge.lasti

    g = cr.ones(3, 3, dtype=cr.float64)

    def run():
        found = LOOPS.sweep(
            [end._edge], [g], None, None, {}, freed, True, True, check_saved, None, cr.Tensor.__add__, None
        )
        assert found is not None

    return run


def more_operations(x, z, row):
    mask = x > 0.7

    def run():
        y = cr.where(mask, x, z).clamp(0.4, 1.2) + cr.where(mask, 0.5, z)
        y = cr.addcmul(y, x, z, value=0.25).softmax(-1) + y.sum(0) * z.mean(-1, keepdim=True)
        y.mul_(x)
        y = cr.cat([cr.stack([y, z]).sum(0), x]).relu()
        (y.sum() + (y > x.sum()).sum() * 0).backward()

    return run


def at_indices(x, z, row):
    places, array = cr.tensor([2, 0]), cr.Array(x)

    def run():
        return x[0, ..., None], z[1:, 2], x[places], z[:, places], x[[1, 1]], array[1, 2], array[[0, 2]], x[1][0]

    return run


def cached_calls(x, z, row):
    array, parts = cr.Array(x), [x, z]

    def run():
        bind(TABLE["cat"], parts, {"axis": -1})
        return array.sum(axis=0), array.reshape(9), array.swapaxes(0, 1), cr.stack(parts), x.unbind(0)

    return run


def unrecorded(x, z, row):
    constant, other = cr.ones(3, 3, dtype=cr.float64), cr.zeros(3, 3, dtype=cr.float64)

    def run():
        found = ((x * z).tanh() > row) & (x < 2)
        other.copy_(constant).mul_(2.0).add_(x, alpha=-0.5).zero_()
        cr.where(found, x, 0.5).sum(-1).reshape(3, 1).exp()

    return run


def transformed(x, z, row):
    """Operations on a dual and a batched tensor, and their backward passes, at levels that stay open."""
    values, one, freed = [], np.ones(()), Freed()
    for interpreter, parts in ((Dual, (x._raw, z._raw)), (Batched, (np.stack([x._raw, z._raw]),))):
        with open_level("test", interpreter, size=2) as level:
            values.append(wrap(interpreter(*parts, level)))
        level.alive = True
        values[-1]._edge = Leaf(values[-1])

    def run():
        for a in values:
            y = ((a @ a * row).tanh() + a / 3).mean()
            LOOPS.sweep(
                [y._edge], [one], None, {a._edge}, {}, freed, False, False, check_saved, None, engine._sum, None
            )

    return run


@np.errstate()  # restores the error state, which Python code may fail to do without memory
@pytest.mark.parametrize(
    "make", [operations, sweep, recorded_sweep, more_operations, at_indices, cached_calls, unrecorded, transformed]
)
def test_running_out_of_memory_leaks_nothing(make, monkeypatch):
    testcapi = pytest.importorskip("_testcapi")
    monkeypatch.setattr(
        sys, "unraisablehook", lambda raised: None
    )  # pytest's hook would keep the objects of the traceback alive
    x, z = leaves(3, 3)
    run = make(x, z, cr.ones(3, dtype=cr.float64))
    for _ in range(3):
        x.grad = z.grad = None
        run()
    expected = [None if t.grad is None else t.grad.numpy().tobytes() for t in (x, z)]
    watched = [
        x._raw,
        z._raw,
        x._edge,
        z._edge,
        TABLE["mul"],
        TABLE["mul"].pullback,
        TABLE["tanh"].c_op,
    ]
    kept = sys.getrefcount(np.dtype(float))
    np.dot(np.ones((2, 2)), np.ones((2, 2)))
    if sys.getrefcount(np.dtype(float)) == kept:  # NumPy 2.5 leaks a reference
        watched.append(np.dtype(float))
    leaked, failed = [], 0
    gc.collect()
    gc.freeze()  # do not traverse the objects of other tests each time
    mode = cr.set_grad_enabled(make is not unrecorded)
    try:
        for start in range(150):
            x.grad = z.grad = None
            gc.collect()
            before = [sys.getrefcount(each) for each in watched]
            try:
                testcapi.set_nomemory(start, start + 1)
                run()
                done = True
            except (MemoryError, SystemError):  # NumPy sometimes raises SystemError
                done = False
            finally:
                testcapi.remove_mem_hooks()
            grads = [None if t.grad is None else t.grad.numpy().tobytes() for t in (x, z)]
            assert grads == expected if done else grads == [None, None]
            failed += not done
            x.grad = z.grad = None
            gc.collect()
            after = [sys.getrefcount(each) for each in watched]
            if after != before:
                leaked.append((start, after, before))
    finally:
        mode.__exit__()  # no gc.unfreeze(), or the next test would traverse the objects of all tests
    assert failed > 10 and not leaked
    run()
    assert [None if t.grad is None else t.grad.numpy().tobytes() for t in (x, z)] == expected


def test_axes_of_length_one_keep_their_strides(python):
    """A cached view is for arrays with default strides. NumPy keeps other strides of axes of length 1."""
    for x in (np.ones((1, 3)), np.ones((3, 1)).T, np.ones((4, 3))[:1], np.ones((1, 3))):
        tensor = cr.from_numpy(x).requires_grad_()
        moves = [lambda t=tensor: t.transpose(0, 1), lambda t=tensor: t.unsqueeze(0), lambda t=tensor: t.permute(1, 0)]
        for move in moves:
            assert move()._raw.strides == python(move)._raw.strides
    for shape in ((4, 0), (0, 4), (1, 4)):  # joins check the strides of all axes
        for other in (cr.ones(shape[0], 1), cr.ones(1, shape[0]).T, cr.ones(shape)):
            x = cr.from_numpy(np.ones((4, 4), np.float32).T[: shape[0], : shape[1]])
            for join in (lambda t: cr.cat(t, -1), cr.vstack):
                tensors = [other.requires_grad_(), x]
                try:
                    expected = python(lambda join=join, tensors=tensors: join(tensors)._raw.strides)
                except RuntimeError:
                    continue
                assert join(tensors)._raw.strides == expected


def test_pieces_have_their_origin():
    """Several views of one tensor are cached with their origins, also if the tensor is a view itself."""
    x = cr.ones(4, 3).requires_grad_()
    for times in range(3):
        inner = x.split(2)[1].split(1)
        outer = (x * 2).split(1)
        assert [piece._view.origin for piece in inner] == [(1, "Split")] * 2
        assert [piece._view.origin for piece in outer] == [(k, "Split") for k in range(4)]
        assert [piece.tolist() for piece in x.chunk(2)] == [[[1.0] * 3] * 2] * 2
        assert not times or calls(lambda: x.unbind(0))[1:] == []
        assert [row.requires_grad for row in x.unbind(0)] == [True] * 4
        with cr.no_grad():
            assert [piece._view.origin for piece in x.split(1)] == ["no_grad"] * 4
    with pytest.raises(RuntimeError, match="view"):
        (x * 2).chunk(2)[0].add_(1)


def test_a_trial_call_for_the_cache_does_not_warn_again():
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        cr.ones(3).clamp(max=-1e39)
    assert [str(w.message) for w in noted] == ["overflow encountered in cast"]


@pytest.mark.parametrize("number", [-90.0, -700.0])
def test_underflow_warns(number):
    x = cr.full((600,), number).requires_grad_()
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="underflow"):
        cr.nn.functional.softplus(x, 2, 5)


def test_an_operation_that_fails_for_its_shapes_warns_once(python):
    """Also if a part of the value is computed before the failure, such as a product that does not broadcast with the addend."""
    x, large = cr.ones(3), cr.full((1, 4), 1e30)

    def run():
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            with pytest.raises(RuntimeError, match="must match the size"):
                cr.addcmul(x, large, large)
        return [str(w.message) for w in noted]

    assert run() == python(run) == ["overflow encountered in multiply"]


@pytest.mark.parametrize("part", ["x[0]", "x[1]", "x[:1]", "x[0, 0]", "x[0, 0, :1]", "x[0, 0, 0]", "x[:, :1]", "x"])
@pytest.mark.parametrize("name", ["mul_", "add_", "sub_", "div_"])
def test_a_tensor_written_with_a_view_of_itself(name, part):
    start = np.arange(1.0, 13.0).reshape(2, 2, 3)
    expected = getattr(cr.tensor(start), name)(eval(part, {"x": cr.tensor(start)}))
    x = cr.tensor(start)
    assert getattr(x, name)(eval(part, {"x": x})).tolist() == expected.tolist()


@pytest.mark.parametrize("shape", [(5,), (2, 3), (), (1,), (0,), (2, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_recorded_rule_of_a_sum(shape, dtype, python):
    def names(node):
        return None if node is None else (node.name(), [names(edge) for edge, _ in node.next_functions])

    def run():
        x = cr.tensor(np.ones(shape, dtype), requires_grad=True)
        factor = cr.tensor(np.array(1.5, dtype), requires_grad=True)
        (g,) = cr.autograd.grad((cr.sin(x) * x).sum() * factor, x, create_graph=True)
        (direct,) = cr.autograd.grad(x.sum(), x, grad_outputs=factor * 2, create_graph=True)
        second = cr.autograd.grad(g.sum() + direct.sum(), (x, factor))
        views = [v._base is not None for v in (g, direct)], direct._raw.flags.writeable, direct._raw.strides
        return (
            [v.numpy(force=True).tobytes() for v in (g, direct, *second)],
            names(g.grad_fn),
            names(direct.grad_fn),
            views,
        )

    assert run() == python(run)
