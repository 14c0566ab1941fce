"""Corners of autograd in which the two libraries were once found to differ: several small areas, a section each."""

import contextlib
import gc
import importlib
import warnings
import weakref

import numpy as np
import pytest

from behaviour import differs, torch

autograd = torch.autograd
Function = autograd.Function
graph = importlib.import_module(torch.__name__ + ".autograd.graph")
forward_ad = importlib.import_module(torch.__name__ + ".autograd.forward_ad")
checkpoints = importlib.import_module(torch.__name__ + ".utils.checkpoint")


def leaf(*data):
    return torch.tensor(list(data), dtype=torch.float64, requires_grad=True)


def same(t):
    return t


# -- checkpoints: a backward pass inside the function ---------------------------------------------------------------------


def slope(f):
    """The derivative of a scalar function, which can be differentiated again."""

    def derivative(x):
        with torch.enable_grad():
            (g,) = autograd.grad(f(x), x, create_graph=True)
        return g

    return derivative


def checkpointed(f):
    return lambda x: checkpoints.checkpoint(f, x, use_reentrant=False)


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
    with checkpoints.set_checkpoint_early_stop(early_stop):
        y = kept(x)
    expected = plain(x)
    assert y.item() == pytest.approx(expected.item())
    assert autograd.grad(y, x)[0].item() == pytest.approx(autograd.grad(expected, x)[0].item())


def test_checkpoint_around_a_backward_pass_of_what_was_written_earlier():
    x = torch.ones(3, dtype=torch.float64)
    x.mul_(2.0)
    x.requires_grad_()
    w = torch.ones(3, dtype=torch.float64)
    w.add_(1)

    def f(x):
        (g,) = autograd.grad((x * x * w).sum(), x, create_graph=True)
        return (g * g).sum()

    (g,) = autograd.grad(checkpoints.checkpoint(f, x, use_reentrant=False), x)
    assert g.tolist() == [64.0, 64.0, 64.0]


def test_checkpoint_debug_says_why_it_lists_operations():
    runs = []

    def changing(x):
        runs.append(x)
        return x.sin().exp() if len(runs) == 1 else x.sin() * torch.ones(2, dtype=torch.float64)

    y = checkpoints.checkpoint(changing, leaf(1.0), use_reentrant=False, debug=True)
    with pytest.raises(RuntimeError, match="You are seeing this error because you passed `debug=True` to checkpoint"):
        y.sum().backward()


# -- Functions -----------------------------------------------------------------------------------------------------------


def test_function_keeps_the_graph_of_an_attribute_when_its_gradient_is_a_number():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = ctx.x**3
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                ctx.y.backward()
            return g * ctx.x.grad

    x = torch.tensor(2.0, requires_grad=True)
    (Inner.apply(x) * torch.tensor(5.0, requires_grad=True)).backward()  # 0-d arrays multiply to a NumPy number
    assert x.grad.item() == 60.0


def test_function_saves_the_leaf_itself():
    class Weight(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            assert w is weight and x is point
            w.grad = g * x
            return g * w, None

    point, weight = leaf(2.0), leaf(3.0)
    Weight.apply(point, weight).sum().backward()
    assert weight.grad.tolist() == [2.0] and point.grad.tolist() == [3.0]


class Square(Function):
    clear_saved_tensors_on_access = True

    @staticmethod
    def forward(ctx, x, times):
        ctx.save_for_backward(x)
        ctx.times = times
        return x * x

    @staticmethod
    def backward(ctx, g):
        for _ in range(ctx.times):
            (x,) = ctx.saved_tensors
        return 2 * x * g, None


def test_saved_tensors_that_can_be_asked_for_once():
    x = leaf(3.0)
    Square.apply(x, 1).sum().backward()
    assert x.grad.tolist() == [6.0]
    with pytest.raises(RuntimeError, match="can only be accessed once"):
        Square.apply(x, 2).sum().backward()


def test_ctx_that_was_kept_says_that_its_tensors_were_freed():
    kept = []

    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            kept.append(ctx)
            return 3 * ctx.saved_tensors[0] ** 2 * g

    y = Cube.apply(leaf(2.0)).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        kept[0].saved_tensors


def test_old_name_of_saved_tensors_warns():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert ctx.saved_variables[0].tolist() == [1.0]
            return g * 2

    with pytest.warns(DeprecationWarning, match="saved_variables"):
        Double.apply(leaf(1.0)).sum().backward()


def test_mark_dirty_of_what_is_no_input():
    class Fresh(Function):
        @staticmethod
        def forward(ctx, x, view):
            y = x * 3
            y = y.view_as(y) if view else y
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 3, None

    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        y = Fresh.apply(leaf(1.0), False)
    assert y.tolist() == [3.0]
    with pytest.raises(RuntimeError, match="received a tensor that was not an input"):
        Fresh.apply(leaf(1.0), True)


def test_writing_a_view_that_a_function_took_of_a_constant():
    class View(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g

    view = View.apply(torch.ones(2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        view += leaf(1.0)


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("of_a_leaf", [True, False])
def test_function_that_writes_an_unrecorded_view(mode, of_a_leaf):
    base = leaf(1.0, 2.0, 3.0)
    base = base if of_a_leaf else base * 1
    with mode():
        view = base[:2]
    with pytest.raises(RuntimeError):
        Doubled.apply(view)


def test_function_that_writes_a_view():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    Doubled.apply(y[:2])
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 1.0]
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        Doubled.apply((x * 1).split(2)[0])


# -- hooks ---------------------------------------------------------------------------------------------------------------


def test_post_accumulate_hook_returns_no_tensor_either():
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match=r"hooks should return None\."):
        (x * 2).sum().backward()


def test_multi_grad_hook_counts_only_what_the_pass_reaches():
    a, b, c = leaf(1.0) * 1, leaf(2.0) * 1, leaf(3.0) * 1
    calls = []
    graph.register_multi_grad_hook([a, b, c], lambda grads: calls.append([g is not None for g in grads]))
    y = (b * c).sum()
    y.backward(inputs=[a], retain_graph=True)
    assert calls == []
    y.backward(inputs=[a, c], retain_graph=True)
    y.backward(inputs=[b, c])
    assert calls == [[False, False, True], [False, True, True]]


def test_node_takes_a_gradient_for_each_output():
    y = leaf(3.0) ** 2
    for given in ((), (torch.ones(1, dtype=torch.float64),) * 2):
        with pytest.raises(TypeError, match=r"expected 1 arguments, got \d instead"):
            y.grad_fn(*given)


@differs("an assertion of PyTorch's own fails")
def test_leaving_saved_tensors_hooks_twice_is_harmless():
    hooks = graph.saved_tensors_hooks(same, same)
    with hooks:
        pass
    hooks.__exit__()
    x = leaf(2.0)
    with torch.no_grad():
        hooks.__exit__()
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


# -- retained gradients and views ----------------------------------------------------------------------------------------


def test_retained_gradient_of_a_base_whose_view_is_written():
    x = leaf(1.0, 2.0).clone()
    x.retain_grad()
    view = x[:1]
    view *= 2
    x *= 2
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_retained_gradients_of_two_views():
    base = leaf(1.0).clone()
    one, two = base[:], base[:]
    one.retain_grad()
    two.retain_grad()
    one.mul_(2)
    (one + two).sum().backward()
    assert one.grad.tolist() == [1.0] and two.grad.tolist() == [1.0]


def test_retained_gradient_of_a_view_whose_base_is_written():
    base = leaf(1.0, 2.0).clone()
    view = base[:1]
    view.retain_grad()
    base.mul_(3)
    (base.sum() + view.sum()).backward()
    assert view.grad.tolist() == [1.0]


# -- modes ---------------------------------------------------------------------------------------------------------------


def test_decorating_a_class_warns():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Model:
            def __init__(self):
                self.recorded = torch.is_grad_enabled()

    assert not Model().recorded


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("move", [lambda v: v.t_(), lambda v: v.unsqueeze_(0), lambda v: v.transpose_(0, 1)])
def test_turning_a_view_that_was_made_unrecorded(mode, move):
    base = leaf(1.0, 2.0).reshape(1, 2).clone()
    with mode():
        view = base.view_as(base)
    with pytest.raises(
        RuntimeError, match=r"A view was created in (no_grad|inference) mode and is being modified inplace"
    ):
        move(view)
    with mode():
        move(view)


def test_inference_tensor_as_out():
    with torch.inference_mode():
        out = torch.ones(2, dtype=torch.float64)
    x = torch.ones(2, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        torch.mul(x, x, out=out)


def test_unrecorded_view_of_a_result_as_out():
    base = leaf(1.0, 2.0) * 1
    with torch.no_grad():
        view = base[:1]
    x = torch.ones(1, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.mul(x, x, out=view)
    with torch.no_grad():
        torch.mul(x, x, out=view)
    assert base.tolist() == [1.0, 2.0]


# -- grad ----------------------------------------------------------------------------------------------------------------


def test_materialized_zeros_can_be_differentiated_again():
    x, y = leaf(0.5), leaf(1.0)
    (unused,) = autograd.grad((x * x).sum(), y, create_graph=True, materialize_grads=True)
    assert unused.tolist() == [0.0] and unused.requires_grad
    assert autograd.grad(unused.sum(), y, materialize_grads=True)[0].tolist() == [0.0]
    (plain,) = autograd.grad((x * x).sum(), y, materialize_grads=True)
    assert not plain.requires_grad


def test_gradient_edge_of_a_scalar_is_an_output():
    x = leaf(1.0, 2.0)
    edge = graph.get_gradient_edge((x * x).sum())
    assert autograd.grad(edge, x, retain_graph=True)[0].tolist() == [2.0, 4.0]
    autograd.backward(edge)
    assert x.grad.tolist() == [2.0, 4.0]


def test_gradient_edge_knows_the_shape_of_its_tensor():
    x = leaf(1.0, 2.0)
    edge = graph.get_gradient_edge(x * x)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar output"):
        autograd.grad(edge, x)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        autograd.grad(edge, x, grad_outputs=torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="required to have the same dtype"):
        autograd.grad(edge, x, grad_outputs=torch.ones(2, dtype=torch.complex128))
    assert autograd.grad(edge, x, grad_outputs=torch.ones(2, dtype=torch.float64))[0].tolist() == [2.0, 4.0]


def test_gradient_edge_does_not_keep_the_values():
    x = leaf(1.0, 2.0)
    y = x + 1
    edge = graph.get_gradient_edge(y)
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None
    assert autograd.grad(edge, x, grad_outputs=torch.ones(2, dtype=torch.float64))[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("base", [-1.0, -0.5, 2.0])
def test_real_base_with_a_complex_exponent(base):
    def z():
        return torch.tensor([0.3 + 0.7j, -1.2 + 0.1j], dtype=torch.complex128, requires_grad=True)

    x = torch.full((2,), base, dtype=torch.float64)
    assert autograd.gradcheck(lambda z: torch.pow(x, z), (z(),))
    assert autograd.gradcheck(lambda z: torch.pow(base, z), (z(),))


# -- anomaly mode, gradcheck, forward mode -------------------------------------------------------------------------------


def test_anomaly_mode_shows_the_operation_whose_value_was_overwritten():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with autograd.detect_anomaly():
            a = leaf(1.0, 2.0)
            b = a + 1
            c = b**2
            b += 1
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                autograd.grad(c.sum(), a)
    texts = [str(w.message) for w in caught]
    assert len(texts) == 2 and "Error detected in PowBackward0" in texts[1] and "c = b**2" in texts[1]


@pytest.mark.parametrize("fast_mode", [True, False])
@pytest.mark.parametrize(
    ("what", "other"), [("shape", lambda x: torch.cat([x, x])), ("dtype", lambda x: x.to(torch.float32))]
)
def test_gradcheck_of_a_function_whose_output_changes(fast_mode, what, other):
    def f(x):
        return other(x) if x.item() >= 1 else x * 1

    with pytest.raises(AssertionError, match=f"outputs with the same {what} when inputs are perturbed"):
        autograd.gradcheck(f, (leaf(1.0),), fast_mode=fast_mode)


def test_tangent_that_has_a_tangent():
    x, t = torch.ones(2), torch.ones(2)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        with pytest.raises(RuntimeError, match="has a forward gradient at the same level"):
            forward_ad.make_dual(torch.ones(2), dual)


def test_array_of_a_parameter_in_no_grad():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    with torch.no_grad():
        assert isinstance(x.numpy(), np.ndarray) and x.numpy().tolist() == [1.0, 2.0]


def test_number_of_calls_of_an_event():
    profiler = importlib.import_module(torch.__name__ + ".autograd.profiler")
    with contextlib.redirect_stdout(None), profiler.profile() as profile, profiler.record_function("region"):
        torch.ones(2) * 2
    assert [e.count for e in profile.function_events if "region" in e.name] == [1]


# -- distinct elements ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_distinct_elements_require_grad(name, dim):
    x = torch.tensor([[1.0, 1.0, 2.0], [3.0, 3.0, 2.0], [1.0, 1.0, 2.0], [1.0, 1.0, 2.0]], requires_grad=True)
    values, inverse, counts = getattr(torch, name)(x, return_inverse=True, return_counts=True, dim=dim)
    plain = getattr(torch, name)(x.detach(), dim=dim)
    assert values.requires_grad and not inverse.requires_grad and not counts.requires_grad
    assert values.tolist() == plain.tolist() and not plain.requires_grad


@differs("its derivative is not implemented")
def test_the_first_of_equal_elements_gets_the_gradient():
    x = leaf(3.0, 1.0, 3.0, 2.0)
    (torch.unique(x) * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 0.0, 10.0]
    y = leaf(3.0, 3.0, 1.0, 3.0)
    (torch.unique_consecutive(y) * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert y.grad.tolist() == [1.0, 0.0, 10.0, 100.0]
    rows = torch.tensor([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]], requires_grad=True)
    (torch.unique(rows, dim=0) * torch.tensor([[1.0], [10.0]])).sum().backward()
    assert rows.grad.tolist() == [[10.0, 10.0], [0.0, 0.0], [1.0, 1.0]]
