"""``checkpoint(..., budget=bytes)``: values within the budget are saved, the others are recomputed."""

import functools
import gc
import tracemalloc

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.api.watch import Watch
from chainrule.utils.checkpoint import checkpoint, checkpoint_sequential

LAYERS, BATCH, WIDTH = 24, 256, 64
BYTES = BATCH * WIDTH * 4  # of one layer's output


class Computed(Watch):
    """Counts actual computations."""

    def __init__(self):
        self.names = []

    def forward(self, prim, datas, params):
        self.names.append(prim.name)
        return super().forward(prim, datas, params)


def network(activation=cr.tanh, width=WIDTH, batch=BATCH, layers=LAYERS):
    cr.manual_seed(0)
    weights = [(cr.randn(width, width) / width**0.5).requires_grad_() for _ in range(layers)]
    functions = [lambda x, w=w: activation(x @ w) for w in weights]
    return functions, cr.randn(batch, width), weights


def run_all(functions, x):
    for function in functions:
        x = function(x)
    return x


def gradients(y, weights):
    for w in weights:
        w.grad = None
    y.sum().backward()
    return [w.grad.numpy() for w in weights]


def recomputed(y):
    """Return the names of the operations that a backward pass recomputes."""
    loss = y.sum()
    with Computed() as computed:
        loss.backward()
    return computed.names


@pytest.mark.parametrize("budget", [0, 1, BYTES, 5 * BYTES + 17, 10**9])
def test_gradients_do_not_depend_on_the_budget(budget):
    functions, x, weights = network(layers=6)
    expected = gradients(run_all(functions, x), weights)
    found = gradients(checkpoint(lambda x: run_all(functions, x), x, budget=budget), weights)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a, b)


def test_without_a_budget_all_is_computed_again():
    functions, x, _ = network(layers=6)
    names = recomputed(checkpoint(lambda x: run_all(functions, x), x, budget=0))
    assert names.count("mm") == 6 and names.count("tanh") == 6


def test_products_are_kept_before_elementwise_results():
    functions, x, _ = network(layers=6)
    names = recomputed(checkpoint(lambda x: run_all(functions, x), x, budget=4 * BYTES))
    assert names.count("mm") == 2 and names.count("tanh") == 6


def test_with_room_for_everything_nothing_is_computed_again():
    functions, x, _ = network(layers=6)
    assert recomputed(checkpoint(lambda x: run_all(functions, x), x, budget=100 * BYTES)) == []


def test_the_budget_is_a_limit():
    functions, x, _ = network()
    forward = functools.partial(run_all, functions)

    def held(budget):
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        y = checkpoint(forward, x, budget=budget)
        gc.collect()
        now = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert y.requires_grad
        return now - before

    overhead = 60_000
    assert held(0) < BYTES + overhead  # the output
    for layers in (3, 10):
        assert (layers - 1) * BYTES < held(layers * BYTES) < (layers + 1) * BYTES + overhead


def test_several_backward_passes_and_gradients_of_gradients():
    x = cr.tensor([0.3, 0.7], dtype=cr.float64, requires_grad=True)

    def f(x):
        return (x.exp().sin() * x).tanh()

    y = checkpoint(f, x, budget=40).sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * first.numpy())
    found = []
    for run in (f, lambda x: checkpoint(f, x, budget=40)):
        (g,) = cr.autograd.grad(run(x).sum(), x, create_graph=True)
        found.append(cr.autograd.grad(g.sum(), x)[0].numpy())
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("budget", [0, 50, 10**6])
def test_results_that_the_function_overwrites_are_computed_again(budget):
    x = cr.tensor([0.3, 0.7], dtype=cr.float64, requires_grad=True)

    def f(x):
        y = x * 3
        y.add_(x)
        z = y * x
        z[0] = 5
        return (z * y).sin()

    expected = cr.autograd.grad(f(x).sum(), x)[0].numpy()
    y = checkpoint(f, x, budget=budget).sum()
    for _ in range(2):
        np.testing.assert_array_equal(cr.autograd.grad(y, x, retain_graph=True)[0].numpy(), expected)


def test_inside_transformations():
    x = cr.randn(3, 4, dtype=cr.float64)

    def f(x):
        return (x.exp().sin() * x).tanh()

    def kept(x):
        return checkpoint(f, x, budget=64)

    for transform in (
        lambda f: cr.func.grad(lambda x: f(x).sum())(x),
        lambda f: cr.func.vmap(cr.func.grad(lambda x: f(x).sum()))(x),
        lambda f: cr.func.grad(lambda x: cr.func.vmap(f)(x).sum())(x),
        lambda f: cr.func.jvp(cr.func.grad(lambda x: f(x).sum()), (x,), (x,))[1],
    ):
        np.testing.assert_allclose(transform(kept).numpy(), transform(f).numpy(), rtol=1e-14)


def test_random_numbers_with_a_budget():
    x = cr.ones(20, requires_grad=True)
    f = lambda x: cr.nn.functional.dropout(x.exp(), 0.5).sin()
    cr.manual_seed(1)
    expected = cr.autograd.grad(f(x).sum(), x)[0].tolist()
    for budget in (0, 80, 160, 10**6):
        cr.manual_seed(1)
        assert cr.autograd.grad(checkpoint(f, x, budget=budget).sum(), x)[0].tolist() == expected


def test_the_budget_of_a_sequence_is_shared():
    functions, x, weights = network(layers=8)
    expected = gradients(run_all(functions, x), weights)
    found = gradients(checkpoint_sequential(functions, 4, x, budget=3 * BYTES), weights)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a, b)
    assert recomputed(checkpoint_sequential(functions, 4, x, budget=0)).count("mm") == 6
    assert recomputed(checkpoint_sequential(functions, 4, x, budget=3 * BYTES)).count("mm") == 3


def test_a_budget_needs_the_other_variant():
    x = cr.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="use_reentrant=False"):
        checkpoint(cr.exp, x, use_reentrant=True, budget=3)
    with pytest.raises(ValueError, match="number of bytes"):
        checkpoint(cr.exp, x, budget=-1)
    with pytest.raises(ValueError, match="both `context_fn` and `budget`"):
        checkpoint(cr.exp, x, budget=1, context_fn=lambda: None)


# -- memory ----------------------------------------------------------------------------------------------------------


def peak(run, weights):
    """Return the peak memory of a step, without the final gradients of the weights."""
    for w in weights:
        w.grad = None
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    run().sum().backward()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most - before - sum(w.nbytes for w in weights)


def gelu(x):
    return x * 0.5 * (1 + cr.erf(x * 0.7071067811865476))


def test_peak_memory_of_a_deep_network():
    functions, x, weights = network(batch=1024)
    plain = peak(lambda: run_all(functions, x), weights)
    segments = peak(lambda: checkpoint_sequential(functions, 8, x, use_reentrant=False), weights)
    assert segments < 0.47 * plain  # the plain pass keeps no cotangents of elementwise runs


def test_peak_memory_where_layers_save_several_values():
    functions, x, weights = network(gelu, batch=1024)
    plain = peak(lambda: run_all(functions, x), weights)
    segments = peak(lambda: checkpoint_sequential(functions, 8, x, use_reentrant=False), weights)
    assert segments < 0.35 * plain


def on_tapes():
    return sum(type(thing).__name__ in ("Node", "Packed", "PackedValue") for thing in gc.get_objects())


def test_a_checkpoint_leaves_no_cycles_and_no_memory():
    functions, x, weights = network(layers=4)

    def step():
        for options in ({"use_reentrant": False}, {"budget": 2 * BYTES}, {"use_reentrant": True}):
            checkpoint(lambda h: run_all(functions, h), x.clone().requires_grad_(), **options).sum().backward()
        for w in weights:
            w.grad = None

    step()
    gc.collect()
    others = on_tapes()
    gc.disable()
    try:
        tracemalloc.start()
        step()
        assert gc.collect() == 0  # this also empties the interpreter's free lists of tuples, which fill slowly
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            step()
        assert gc.collect() == 0
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert grown < 5_000
        assert on_tapes() == others
    finally:
        gc.enable()
