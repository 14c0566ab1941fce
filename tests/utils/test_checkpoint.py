"""``utils.checkpoint``: the same gradients with less memory."""

import functools
import gc
import importlib
import warnings
import weakref

import pytest

from behaviour import OURS, differs, leaf, torch

module = importlib.import_module(torch.__name__ + ".utils.checkpoint")
importlib.import_module(torch.__name__ + ".autograd.graph")
checkpoint = functools.partial(module.checkpoint, use_reentrant=False)
reentrant = functools.partial(module.checkpoint, use_reentrant=True)
both = pytest.mark.parametrize("run", [checkpoint, reentrant], ids=["non-reentrant", "reentrant"])


def f(x):
    return (x.exp().sin() * x).tanh()


class Counted:
    def __init__(self, function=f):
        self.function = function
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


def gradient(y, *leaves):
    for x in leaves:
        x.grad = None
    y.sum().backward()
    return [x.grad for x in leaves]


# -- the same values and gradients -----------------------------------------------------------------------------------


@both
def test_value_and_gradient(run):
    x, function = leaf(0.3, 0.7), Counted()
    y = run(function, x)
    assert function.calls == 1
    torch.testing.assert_close(y, f(x))
    torch.testing.assert_close(gradient(y, x), gradient(f(x), x))
    assert function.calls == 2


@both
def test_several_arguments_and_results(run):
    x, z, constant = leaf(0.3, 0.7), leaf(1.0, 2.0), torch.ones(2, dtype=torch.float64)

    def several(x, z, constant, factor, none):
        assert none is None
        return x * z.exp() * factor, z.sin() + constant, "text"

    a, b, text = run(several, x, z, constant, 3, None)
    assert text == "text"
    expected = several(x, z, constant, 3, None)
    torch.testing.assert_close(gradient(a * b, x, z), gradient(expected[0] * expected[1], x, z))


@both
def test_what_the_function_closes_over_gets_its_gradient(run):
    x, w = leaf(0.3, 0.7), leaf(2.0, 3.0)
    function = lambda x: (x * w).sin() * w
    torch.testing.assert_close(gradient(run(function, x), x, w), gradient(function(x), x, w))


def test_keyword_arguments():
    x, w = leaf(0.3, 0.7), leaf(2.0, 3.0)
    y = checkpoint(lambda x, *, w: x.sin() * w.exp(), x, w=w)
    torch.testing.assert_close(gradient(y, x, w), gradient(x.sin() * w.exp(), x, w))


def test_arguments_in_containers():
    x, w = leaf(0.3, 0.7), leaf(2.0, 3.0)
    y = checkpoint(lambda parts: parts["x"].sin() * parts["w"][0].exp(), {"x": x, "w": [w]})
    torch.testing.assert_close(gradient(y, x, w), gradient(x.sin() * w.exp(), x, w))


@both
def test_non_leaf_arguments_and_a_graph_around(run):
    x = leaf(0.3, 0.7)
    torch.testing.assert_close(gradient(run(f, run(f, x * 2).cos()).exp(), x), gradient(f(f(x * 2).cos()).exp(), x))


@both
def test_without_gradient_mode_it_is_just_a_call(run):
    x, function = leaf(0.3), Counted()
    with torch.no_grad():
        y = run(function, x)
    assert not y.requires_grad and function.calls == 1


def test_no_grad_inside():
    x = leaf(0.3, 0.7)

    def function(x):
        with torch.no_grad():
            scale = x.exp()
        return (x * scale).sin()

    torch.testing.assert_close(gradient(checkpoint(function, x), x), gradient(function(x), x))


def test_views_and_in_place_operations_inside():
    x = leaf(0.3, 0.7, 0.9)

    def function(x):
        y = x * 3
        y[1:] *= x[:2].sin()
        y.mul_(2)
        return y * y.clone()

    torch.testing.assert_close(gradient(checkpoint(function, x), x), gradient(function(x), x))


@differs("the gradient is wrong without a word")
def test_a_saved_value_overwritten_inside():
    x = leaf(0.3, 0.7)
    y = checkpoint(lambda x: x.exp().mul_(2).sin(), x)
    with pytest.raises(RuntimeError, match="an operation in a checkpointed function saved"):
        y.sum().backward()
    assert x.grad is None


def test_gradient_of_chosen_inputs():
    x, w = leaf(0.3, 0.7), leaf(2.0, 3.0)
    y = checkpoint(lambda x: (x * w).sin() * x, x)
    (g,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(g, torch.autograd.grad(((x * w).sin() * x).sum(), x)[0])
    y = checkpoint(lambda x: (x * w).sin() * x, x)
    y.sum().backward(inputs=[w])
    assert x.grad is None and w.grad is not None


def test_a_graph_can_go_twice():
    x, function = leaf(0.3, 0.7), Counted()
    y = checkpoint(function, x).sum()
    y.backward(retain_graph=True)
    once = x.grad.clone()
    y.backward()
    torch.testing.assert_close(x.grad, 2 * once)
    assert function.calls == 3
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_double_backward():
    x = leaf(0.3, 0.7)
    found = []
    for run in (checkpoint, lambda f, x: f(x)):
        (g,) = torch.autograd.grad(run(f, x).sum(), x, create_graph=True)
        found.append(torch.autograd.grad((g * g).sum(), x)[0])
    torch.testing.assert_close(*found)


def test_nested():
    x, innermost = leaf(0.3, 0.7), Counted()

    def middle(x):
        return checkpoint(innermost, x.sin()).exp()

    def outer(x):
        return checkpoint(middle, x * 2) * x

    def plain(x):
        return f((x * 2).sin()).exp() * x

    torch.testing.assert_close(gradient(checkpoint(outer, x), x), gradient(plain(x), x))
    assert innermost.calls >= 3


@pytest.mark.skipif(not OURS, reason="torch.func.grad does not allow hooks on saved values")
@pytest.mark.parametrize(
    "transform", ["grad", "vmap", "jvp", "vmap grad", "grad vmap", "grad grad", "jvp grad", "vjp vmap"]
)
def test_inside_transformations(transform):
    func = torch.func
    x = torch.tensor([[0.3, 0.7], [0.1, -0.4]], dtype=torch.float64)
    t = torch.tensor([[1.0, -1.0], [0.5, 2.0]], dtype=torch.float64)
    ways = {
        "grad": lambda f: func.grad(lambda x: f(x).sum())(x),
        "vmap": lambda f: func.vmap(f)(x),
        "jvp": lambda f: func.jvp(f, (x,), (t,))[1],
        "vmap grad": lambda f: func.vmap(func.grad(lambda x: f(x).sum()))(x),
        "grad vmap": lambda f: func.grad(lambda x: (func.vmap(f)(x) * t).sum())(x),
        "grad grad": lambda f: func.grad(lambda x: func.grad(lambda x: f(x).sum())(x).sin().sum())(x),
        "jvp grad": lambda f: func.jvp(func.grad(lambda x: f(x).sum()), (x,), (t,))[1],
        "vjp vmap": lambda f: func.vjp(func.vmap(f), x)[1](t)[0],
    }
    run = ways[transform]
    torch.testing.assert_close(run(lambda x: checkpoint(f, x)), run(f))


@pytest.mark.skipif(not OURS, reason="PyTorch's vmap does not allow it")
def test_recomputation_after_a_transformation_has_ended():
    x = torch.tensor([[0.3, 0.7], [0.1, -0.4]], dtype=torch.float64, requires_grad=True)
    g = torch.func.vmap(lambda row: checkpoint(f, row))(x)
    torch.testing.assert_close(gradient(g, x), gradient(f(x), x))


# -- memory ----------------------------------------------------------------------------------------------------------


def test_nothing_inside_is_kept():
    alive = []

    class Spy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            alive.append(weakref.ref(y))
            return y.clone()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(0.3, 0.7)
    y = checkpoint(lambda x: Spy.apply(x).sin(), x)
    gc.collect()
    assert [ref() for ref in alive] == [None]
    torch.testing.assert_close(gradient(y, x), gradient(x.exp().sin(), x))


def test_arguments_go_with_the_graph():
    class Token:
        pass

    token = Token()
    gone = weakref.ref(token)
    x = leaf(0.3)
    y = checkpoint(lambda x, token: x.exp().sin(), x, token)
    del token
    gc.collect()
    gc.disable()
    try:
        assert gone() is not None
        y.sum().backward()
        if OURS:
            assert gone() is None  # used up, and not available again
        del y
        gc.collect()
        assert gone() is None
    finally:
        gc.enable()


# -- random numbers --------------------------------------------------------------------------------------------------


@both
def test_the_same_random_numbers_again(run):
    x = torch.ones(50, dtype=torch.float64, requires_grad=True)
    masks = []

    def function(x):
        mask = (torch.rand(50) > 0.5).to(torch.float64)
        masks.append(mask)
        return (x * mask).sin()

    torch.manual_seed(3)
    y = run(function, x)
    following = torch.rand(4)
    y.sum().backward()
    torch.testing.assert_close(masks[0], masks[1])
    torch.manual_seed(3)
    torch.rand(50)
    torch.testing.assert_close(torch.rand(4), following)


def test_the_backward_pass_leaves_the_generator_as_it_was():
    x = torch.ones(5, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(3)
    y = checkpoint(lambda x: (x * torch.rand(5)).sin(), x)
    state = torch.get_rng_state()
    y.sum().backward()
    after = torch.get_rng_state()
    assert after == state if OURS else bool((after == state).all())


def test_random_numbers_may_differ_on_request():
    x = torch.ones(5, dtype=torch.float64, requires_grad=True)
    drawn = []

    def function(x):
        drawn.append(torch.rand(5))
        return (x * drawn[-1]).sin()

    checkpoint(function, x, preserve_rng_state=False).sum().backward()
    assert drawn[0].tolist() != drawn[1].tolist()


@differs("NumPy's generator is not its own")
def test_numpys_global_generator_is_restored_too():
    import numpy as np

    drawn = []

    def function(x):
        drawn.append(np.random.rand(2))
        return (x * drawn[-1]).sin()

    checkpoint(function, leaf(1.0, 2.0)).sum().backward()
    assert drawn[0].tolist() == drawn[1].tolist()


# -- errors ----------------------------------------------------------------------------------------------------------


def changing(first, second):
    calls = []

    def function(x):
        calls.append(1)
        return (first if len(calls) == 1 else second)(x)

    return function


def test_fewer_values_the_second_time():
    x = leaf(0.3)
    y = checkpoint(changing(lambda x: x.exp().sin(), lambda x: x.exp()), x)
    with pytest.raises(module.CheckpointError, match=r"(?s)different number of tensors.*forward: 2.*recomputation: 1"):
        y.sum().backward()
    assert x.grad is None


def test_more_values_the_second_time():
    x = leaf(0.3)
    function = changing(lambda x: x.exp().sin(), lambda x: x.exp().sin().sin())
    checkpoint(function, x).sum().backward()  # it stops before the difference
    with module.set_checkpoint_early_stop(False):
        y = checkpoint(changing(lambda x: x.exp().sin(), lambda x: x.exp().sin().sin()), x)
    with pytest.raises(module.CheckpointError, match="more tensors during recomputation"):
        y.sum().backward()


def test_values_of_another_shape_or_dtype():
    x = leaf(0.3, 0.7)
    y = checkpoint(changing(lambda x: x.exp().sin(), lambda x: x[:1].exp().sin()), x)
    with pytest.raises(module.CheckpointError, match=r"(?s)different metadata.*position 0"):
        y.sum().backward()
    y = checkpoint(changing(lambda x: x.exp().sin(), lambda x: x.float().exp().sin()), x)
    with pytest.raises(module.CheckpointError, match=r"(?s)different metadata.*float64.*float32"):
        y.sum().backward()


def test_debug_lists_the_operations():
    x = leaf(0.3)
    y = checkpoint(changing(lambda x: x.exp().sin(), lambda x: x.exp()), x, debug=True)
    with pytest.raises(module.CheckpointError, match=r"(?s)exp.*sin.*exp"):
        y.sum().backward()
    with module.set_checkpoint_debug_enabled(True):
        y = checkpoint(changing(lambda x: x.exp().sin(), lambda x: x.exp()), x)
    with pytest.raises(module.CheckpointError, match=r"(?s)exp.*sin.*exp"):
        y.sum().backward()


def test_an_argument_overwritten_since():
    x = leaf(0.3, 0.7)
    z = x * 1
    y = checkpoint(f, z)
    with torch.no_grad():
        z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    assert x.grad is None


@differs("what the function closes over is not looked at")
def test_a_closed_over_value_overwritten_since():
    x, w = leaf(0.3, 0.7), leaf(2.0, 3.0)
    y = checkpoint(lambda x: (x * w).sin(), x)
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="which a checkpointed function reads"):
        y.sum().backward()


def test_an_exception_in_the_second_run():
    x = leaf(0.3)

    def fail(x):
        raise ValueError("second")

    y = checkpoint(changing(lambda x: x.exp().sin(), fail), x)
    with pytest.raises(ValueError, match="second"):
        y.sum().backward()
    assert x.grad is None and torch.is_grad_enabled()
    torch.testing.assert_close(gradient(f(x), x), gradient(checkpoint(f, x), x))


def test_an_exception_in_the_first_run():
    with pytest.raises(ZeroDivisionError):
        checkpoint(lambda x: 1 / 0, leaf(1.0))
    count = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: count.append(1) or t, lambda t: t):
        leaf(1.0).exp()
    assert count == [1]


@both
def test_the_function_must_not_hide_the_end_of_the_second_run(run):
    x = leaf(0.3)

    def careful(x):
        try:
            return x.exp().sin()
        except Exception:
            return x * 0

    torch.testing.assert_close(gradient(run(careful, x), x), gradient(x.exp().sin(), x))


def test_arguments_of_checkpoint_itself():
    x = leaf(0.3)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(f, x, determinism_check="strict")
    with pytest.raises(ValueError, match="Unexpected keyword arguments: k"):
        reentrant(lambda x, k: x, x, k=1)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        reentrant(f, x, debug=True)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        reentrant(f, x, context_fn=lambda: module.noop_context_fn())


def test_not_choosing_a_variant_warns_and_is_reentrant():
    x = leaf(0.3)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        y = module.checkpoint(f, x)
    assert "Checkpoint" in y.grad_fn.name() or "Reentrant" in y.grad_fn.name()


def test_reentrant_knows_all_leaves_only():
    x = leaf(0.3)
    with pytest.raises(RuntimeError, match=r"incompatible with \.grad"):
        torch.autograd.grad(reentrant(f, x).sum(), x)
    with pytest.raises(RuntimeError, match="passing an `inputs` parameter"):
        reentrant(f, x).sum().backward(inputs=[x])
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        reentrant(f, torch.ones(2))


# -- contexts --------------------------------------------------------------------------------------------------------


def test_contexts_are_entered_around_each_run():
    x, seen = leaf(0.3), []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name + " in")

        def __exit__(self, *exc):
            seen.append(self.name + " out")

    y = checkpoint(f, x, context_fn=lambda: (Note("first"), Note("again")))
    assert seen == ["first in", "first out"]
    y.sum().backward()
    assert seen == ["first in", "first out", "again in", "again out"]


@differs("operations are ATen's there")
@pytest.mark.parametrize("wanted", [["exp"], lambda ctx, op, *args, **kwargs: op.name == "exp"])
def test_selected_results_are_kept(wanted):
    from chainrule._src.api.watch import Watch

    computed = []

    class Names(Watch):
        def forward(self, prim, datas, params):
            computed.append(prim.name)
            return super().forward(prim, datas, params)

    contexts = functools.partial(module.create_selective_checkpoint_contexts, wanted)
    x = leaf(0.3, 0.7)
    y = checkpoint(f, x, context_fn=contexts).sum()
    with Names():
        y.backward(retain_graph=True)
    assert "exp" not in computed and "sin" in computed
    torch.testing.assert_close(x.grad, gradient(f(x), x)[0])


@differs("operations are ATen's there")
def test_a_kept_result_must_not_be_overwritten():
    def function(x):
        y = x * 3
        return (y.add_(2) * x).sin()

    for allowed in (False, True):
        x = leaf(0.3, 0.7)
        contexts = functools.partial(module.create_selective_checkpoint_contexts, ["mul"], allowed)
        y = checkpoint(function, x, context_fn=contexts)
        if allowed:
            torch.testing.assert_close(gradient(y, x), gradient(((3 * x + 2) * x).sin(), x))
        else:
            with pytest.raises(RuntimeError, match="has been mutated"):
                y.sum().backward()


# -- sequences -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use_reentrant", [True, False])
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential(segments, use_reentrant):
    functions = [torch.sin, torch.exp, f, torch.tanh, torch.cos]
    x = leaf(0.3, 0.7)

    def plain(x):
        for function in functions:
            x = function(x)
        return x

    y = module.checkpoint_sequential(functions, segments, x, use_reentrant=use_reentrant)
    torch.testing.assert_close(gradient(y, x), gradient(plain(x), x))


def test_all_but_the_last_segment_are_run_again():
    functions = [Counted(torch.sin) for _ in range(7)]
    x = leaf(0.3)
    y = module.checkpoint_sequential(functions, 3, x, use_reentrant=False)
    y.sum().backward()
    assert [function.calls for function in functions] == [2, 2, 2, 2, 1, 1, 1]


def test_sequential_arguments():
    with pytest.raises(ValueError):
        module.checkpoint_sequential([torch.sin], 4, leaf(0.3), use_reentrant=False)
    with pytest.warns(UserWarning, match="use_reentrant"):
        module.checkpoint_sequential([torch.sin, torch.exp], 2, leaf(0.3))


def test_no_warning_where_the_variant_is_chosen():
    x = leaf(0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint(f, x).sum().backward()
        reentrant(f, x).sum().backward()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.func.hessian(lambda y: (y**3).sum())(x),
        lambda x: torch.func.jacfwd(torch.func.grad(lambda y: (y**3).sum()))(x) + x,
        lambda x: torch.func.jvp(lambda y: y**3, (x,), (x,))[1],
        lambda x: torch.func.vmap(torch.func.grad(lambda y: y**3))(x),
    ],
)
@differs("saved values of a transformation are not values of the tape")
def test_functions_that_transform_something(function):
    x = torch.tensor([0.3, 0.5], requires_grad=True)
    for early_stop in (True, False):
        y = checkpoint(function, x, use_reentrant=False, early_stop=early_stop)
        (got,) = torch.autograd.grad((y * y.detach()).sum(), x)
        want = function(x)
        assert torch.equal(y, want)
        assert torch.allclose(got, torch.autograd.grad((want * want.detach()).sum(), x)[0])


# -- a backward pass inside the function -------------------------------------------------------------------------------


def slope(f):
    """Return the derivative of a scalar function, which can be differentiated again."""

    def derivative(x):
        with torch.enable_grad():
            (g,) = torch.autograd.grad(f(x), x, create_graph=True)
        return g

    return derivative


def checkpointed(f):
    return lambda x: checkpoint(f, x)


def wave(x):
    return x.sin().exp().sin()


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize(
    ("plain", "kept"),
    [
        (slope(slope(wave)), slope(checkpointed(slope(wave)))),
        (slope(slope(wave)), checkpointed(slope(slope(checkpointed(wave))))),
        (slope(slope(slope(wave))), slope(checkpointed(slope(checkpointed(slope(checkpointed(wave))))))),
    ],
)
def test_checkpoint_around_a_backward_pass(early_stop, plain, kept):
    x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    with module.set_checkpoint_early_stop(early_stop):
        y = kept(x)
    expected = plain(x)
    assert y.item() == pytest.approx(expected.item())
    assert torch.autograd.grad(y, x)[0].item() == pytest.approx(torch.autograd.grad(expected, x)[0].item())


def test_checkpoint_around_a_backward_pass_of_what_was_written_earlier():
    x = torch.ones(3, dtype=torch.float64)
    x.mul_(2.0)
    x.requires_grad_()
    w = torch.ones(3, dtype=torch.float64)
    w.add_(1)

    def f(x):
        (g,) = torch.autograd.grad((x * x * w).sum(), x, create_graph=True)
        return (g * g).sum()

    (g,) = torch.autograd.grad(checkpoint(f, x), x)
    assert g.tolist() == [64.0, 64.0, 64.0]


def test_checkpoint_debug_says_why_it_lists_operations():
    runs = []

    def changing(x):
        runs.append(x)
        return x.sin().exp() if len(runs) == 1 else x.sin() * torch.ones(2, dtype=torch.float64)

    y = checkpoint(changing, leaf(1.0), debug=True)
    with pytest.raises(RuntimeError, match="You are seeing this error because you passed `debug=True` to checkpoint"):
        y.sum().backward()
