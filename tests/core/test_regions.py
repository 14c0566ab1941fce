"""Elementwise regions of backward passes: in C, in Python, and as single nodes they give the same bits."""

import importlib
import os
import pkgutil
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
import chainrule._src.table
from chainrule._src import native
from chainrule._src.api.functions import general
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape import engine, regions
from chainrule._src.tape.eager import LOOPS
from chainrule.primitive import elementwise
from chainrule.testing import samples_of

for module in pkgutil.iter_modules(chainrule._src.table.__path__):
    importlib.import_module(f"chainrule._src.table.{module.name}")

SIZE = 40_003  # large enough for two threads, and not a multiple of any vector length
ROWS = sorted(
    name
    for name, row in TABLE.items()
    if row.kind == "elementwise" and row.differentiable and "f" in row.accepts and row.domain != "complex"
)
needs_extension = pytest.mark.skipif(not native.AVAILABLE, reason="the extension is not built")


@pytest.fixture(autouse=True)
def region_size():
    """Disable the regions of the pass in C, and restore them afterwards."""
    if LOOPS is None:
        yield
        return
    before = LOOPS.set_region_size(sys.maxsize)
    yield
    LOOPS.set_region_size(before)


@pytest.fixture(params=["C", "C, one thread", "blocks"])
def way(request, monkeypatch, region_size):
    """Enable regions of any length and size with one implementation; ``plainly`` disables them."""
    monkeypatch.setattr(engine, "REGION_SIZE", 1)
    monkeypatch.setattr(regions, "BLOCK", 9_000)
    if request.param != "blocks" and not native.AVAILABLE:
        pytest.skip("the extension is not built")
    on = LOOPS.switch_on(request.param != "blocks") if LOOPS is not None else None
    threads = native.get_threads() if native.AVAILABLE else None
    if threads is not None:
        native.set_threads(1 if "one thread" in request.param else 2)
    if request.param.startswith("C"):
        LOOPS.set_region_size(1)
    yield request.param
    if threads is not None:
        native.set_threads(threads)
    if on is not None:
        LOOPS.switch_on(on)


def plainly(run):
    large, size = engine.REGION_SIZE, None if LOOPS is None else LOOPS.set_region_size(sys.maxsize)
    engine.REGION_SIZE = sys.maxsize
    try:
        return run()
    finally:
        engine.REGION_SIZE = large
        if LOOPS is not None:
            LOOPS.set_region_size(size)


def same(run):
    """Check that the arrays returned by ``run`` are the same bit for bit if the nodes run separately."""
    expected = plainly(run)
    for _ in range(2):  # creating programs, and using programs
        found = run()
        assert [x.tobytes() for x in found] == [x.tobytes() for x in expected]


def drawn(domain, size, dtype, seed):
    rng = np.random.default_rng(seed)
    low, high = domain if isinstance(domain, tuple) else (-2, 2)
    return rng.uniform(low, high, size).astype(dtype)


@pytest.mark.parametrize("way", ["C", "blocks"], indirect=True)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_row(name, dtype, way):
    row = TABLE[name]
    seen = []
    for sample in samples_of(row):
        if sample.params in seen or sample.complex or not all(isinstance(shape, tuple) for shape in sample.shapes):
            continue
        seen.append(sample.params)
        size = 10_007
        data = []
        for k, domain in enumerate(sample.domains):
            data.append(drawn(domain, size, bool if domain == "bool" else dtype, k))
        g = drawn((-1, 1), size, dtype, 9)

        def run(data=data, g=g, params=sample.params):
            leaves = [cr.tensor(x) for x in data]
            wanted = [t.requires_grad_() for t in leaves if t.is_floating_point()]
            y = general(row, tuple(leaves), dict(params))
            (y * y).backward(cr.tensor(g))
            return [t.grad.numpy() for t in wanted if t.grad is not None]

        same(run)


def program_of_many(shape=(SIZE,), dtype=np.float64):
    rng = np.random.default_rng(0)
    x = cr.tensor(rng.uniform(0.5, 1.5, shape).astype(dtype)).requires_grad_()
    w = cr.tensor(rng.uniform(0.5, 1.5, shape).astype(dtype)).requires_grad_()
    h = cr.exp(-x * w)
    y = (cr.sin(h) * w + h / (x + 2) - cr.sqrt(x * 3.0)) * h
    z = cr.where(y > 0.1, y, y * 2).tanh()
    return x, w, h, z


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(SIZE,), (203, 199), (40, 1, 1009), (1024,)])
def test_a_program_with_branches(shape, dtype, way):
    def run():
        x, w, _, z = program_of_many(shape, dtype)
        (z.sum() + (x * w).clip(0.7, 1.2).sum()).backward()
        return x.grad.numpy(), w.grad.numpy()

    same(run)


def test_what_is_wanted_on_the_way_arrives(way):
    def run():
        x, w, h, z = program_of_many()
        kept = h * 1.5
        kept.retain_grad()
        (z + kept).sum().backward(retain_graph=True)
        found = cr.autograd.grad(z.sum(), [x, h], retain_graph=True)
        return [x.grad.numpy(), w.grad.numpy(), kept.grad.numpy(), *[g.numpy() for g in found]]

    same(run)


def test_hooks_see_their_gradients(way):
    def run():
        seen = []
        x, w, h, z = program_of_many()
        h.register_hook(lambda g: seen.append(g.numpy().copy()))
        z.register_hook(lambda g: g * 2)
        z.sum().backward()
        return [x.grad.numpy(), w.grad.numpy(), *seen]

    same(run)


def test_saved_values_are_freed_unless_they_are_retained(way):
    x, _, _, z = program_of_many()
    z.backward(cr.ones(SIZE, dtype=cr.float64), retain_graph=True)
    first = x.grad.numpy().copy()
    z.backward(cr.ones(SIZE, dtype=cr.float64))
    np.testing.assert_array_equal(x.grad.numpy(), 2 * first)
    with pytest.raises(RuntimeError, match="second time"):
        z.backward(cr.ones(SIZE, dtype=cr.float64))


def test_gradients_of_two_leaves_do_not_share_memory(way):
    x, y = (cr.ones(SIZE, dtype=cr.float64).requires_grad_() for _ in range(2))
    for _ in range(2):
        x.grad = y.grad = None
        ((x + y) * 2.0).backward(cr.ones(SIZE, dtype=cr.float64))
        assert not np.shares_memory(x.grad.numpy(), y.grad.numpy())
        x.grad.zero_()
        assert (y.grad == 2).all()


def test_numbers_are_told_apart_by_their_sign_and_type(way):
    x = cr.ones(SIZE, dtype=cr.float64).requires_grad_()
    for number in (0.0, -0.0, 2, 2.0, 3.5, float("nan"), 0.0):
        x.grad = None
        (x * number * 1.0).backward(cr.ones(SIZE, dtype=cr.float64))
        expected = np.full(SIZE, 1.0) * 1.0 * number
        assert x.grad.numpy().tobytes() == expected.tobytes()


def test_saved_values_that_were_overwritten_are_refused(way):
    x = cr.ones(SIZE, dtype=cr.float64).requires_grad_()
    y = cr.exp(x * 2)
    z = y * 3 * y
    y.detach().zero_()
    with pytest.raises(RuntimeError, match=r"overwritten|modified"):
        z.sum().backward()


def warned(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return sorted({(w.category, str(w.message), w.filename) for w in caught}, key=str)


def test_floating_point_warnings_are_those_of_the_rules(way):
    def run():
        x = cr.tensor(np.full(SIZE, 1e200)).requires_grad_()
        y = cr.log(x * 1.0) * 1e150 * 1.0
        y.backward(cr.tensor(np.full(SIZE, 1e200)))

    expected = plainly(lambda: warned(run))
    assert any("overflow" in text for _, text, _ in expected)
    assert warned(run) == expected
    assert warned(run) == expected
    with np.errstate(over="ignore"):
        assert warned(run) == []


def test_samples_of_a_region_raise_nothing(way):
    x = cr.ones(SIZE, dtype=cr.float32).requires_grad_()
    with np.errstate(all="raise"):
        cr.sin(x * 2.0).backward(cr.ones(SIZE))
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos(2), rtol=1e-6)


def test_an_exception_leaves_no_gradient(way):
    x = cr.tensor(np.full(SIZE, 1.0)).requires_grad_()
    y = x * 1e200 * 1.0
    g = cr.tensor(np.full(SIZE, 1e200))
    for _ in range(2):
        with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
            y.backward(g, retain_graph=True)
        assert x.grad is None
    with np.errstate(over="ignore"):
        y.backward(g)
    assert np.isinf(x.grad.numpy()).all()


STEPS = {
    "mul": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "div": lambda a, b: a / b,
    "where": lambda a, b: cr.where(a > b, a, b),
    "clip": lambda a, b: a.clip(-0.5, 0.75),
    "number": lambda a, b: 1.5 - a * 2,
    "cube": lambda a, b: a**3,
    "detach": lambda a, b: a + b.detach(),
    "tanh": lambda a, b: cr.tanh(a),
    "sin": lambda a, b: cr.sin(a),
    "exp": lambda a, b: cr.exp(a),
    "sqrt": lambda a, b: cr.sqrt(a),
}
LAYOUTS = st.sampled_from(["plain", "transposed", "strided", "row", "one"])


def laid_out(layout, shape, dtype, seed):
    """Return an array of a memory layout; its shape broadcasts to ``shape``."""
    rng = np.random.default_rng(seed)
    if layout == "row":
        shape = shape[1:]
    elif layout == "one":
        return np.broadcast_to(rng.normal(size=()).astype(dtype), shape)
    x = rng.normal(size=shape[::-1] if layout == "transposed" else shape).astype(dtype)
    x.flat[:: max(1, x.size // 7)] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38])
    if layout == "strided":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    return x.T if layout == "transposed" else x


@needs_extension
@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12
    ),
    layouts=st.tuples(LAYOUTS, LAYOUTS, LAYOUTS),
    shape=st.sampled_from([(0, 3), (1, 1), (3, 5), (130, 65), (97, 100), (3, 11_000)]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 99),
    mode=st.sampled_from(["ignore", "warn", "raise"]),
)
def test_random_programs_in_c(steps, layouts, shape, dtype, seed, mode):
    leaves = [laid_out(layout, shape, dtype, seed + k) for k, layout in enumerate(layouts)]

    def run():
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            tensors = [cr.from_numpy(x.copy() if k else x).requires_grad_() for k, x in enumerate(leaves)]
            values = list(tensors)
            for name, i, j in steps:
                values.append(STEPS[name](values[i % len(values)], values[-1 - j % len(values)]))
            y = values[-1] * tensors[0] + values[len(values) // 2]
            try:
                with np.errstate(all=mode):
                    y.sum().backward()
            except FloatingPointError as error:
                return str(error), [t.grad for t in tensors], []
        grads = [None if t.grad is None else t.grad.numpy() for t in tensors]
        return (
            [None if g is None else (g.shape, g.dtype, np.where(np.isnan(g), np.nan, g).astype(dtype).tobytes()) for g in grads],
            [len({id(g) for g in grads if g is not None})],
            sorted({(str(w.message), w.lineno) for w in caught}),
        )  # fmt: skip

    expected = plainly(run)
    before = LOOPS.set_region_size(1)
    try:
        assert run() == expected
    finally:
        LOOPS.set_region_size(before)


def test_rules_of_the_users_own_get_whole_arrays(way):
    factor = np.arange(float(SIZE))
    scaled = elementwise(d={"x": lambda: factor})(lambda x, y: x * factor + np.round(y))
    x, y = (cr.ones(SIZE, dtype=cr.float64).requires_grad_() for _ in range(2))
    for _ in range(3):
        x.grad = None
        (scaled(x * 2.0, y * 1.5) * 3.0).backward(cr.ones(SIZE, dtype=cr.float64))
        np.testing.assert_array_equal(x.grad.numpy(), 6 * factor)
        assert y.grad is None


def test_threads_share_programs(way):
    expected = plainly(lambda: _gradient(SIZE))
    found = []

    def run():
        found.extend(_gradient(SIZE).tobytes() == expected.tobytes() for _ in range(5))

    workers = [threading.Thread(target=run) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [True] * 20


def _gradient(size):
    x = cr.tensor(np.linspace(-1, 1, size)).requires_grad_()
    y = x
    for _ in range(8):
        y = cr.tanh(y * x)
    y.backward(cr.ones(size, dtype=cr.float64))
    return x.grad.numpy()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_the_child_of_a_fork_computes():
    done = _python(
        """
        import os, warnings
        import numpy as np, chainrule as cr
        warnings.simplefilter("ignore", DeprecationWarning)
        def gradient():
            x = cr.tensor(np.linspace(-1, 1, 300_000)).requires_grad_()
            cr.tanh(cr.sin(x) * x).backward(cr.ones(300_000, dtype=cr.float64))
            return x.grad.numpy().tobytes()
        expected = [gradient() for _ in range(6)][-1]
        child = os.fork()
        if child == 0:
            os._exit(0 if gradient() == expected else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert gradient() == expected
        """
    )
    assert done.returncode == 0, done.stderr


def _python(program):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
