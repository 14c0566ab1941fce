"""Custom Functions: forward, backward and the methods of ctx."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from behaviour import OURS, differs, torch
from behaviour import leaf as doubles

if OURS:
    import chainrule.autograd.function
    import chainrule.autograd.graph  # noqa: F401
Function = torch.autograd.Function
once_differentiable = torch.autograd.function.once_differentiable


def function(forward: Any, backward: Any = None, **methods: Any) -> Any:
    """Return a Function class with these methods."""
    members: dict[str, Any] = {"forward": staticmethod(forward)}
    if backward is not None:
        members["backward"] = staticmethod(backward)
    members.update({k: staticmethod(v) if callable(v) else v for k, v in methods.items()})
    return type("F", (Function,), members)


def twice(ctx: Any, x: Any) -> Any:
    return x * 2


def leaf(*values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def gradient(f: Any, x: Any, *others: Any) -> Any:
    y = f.apply(x, *others)
    y = y[0] if isinstance(y, tuple) else y
    return torch.autograd.grad(y.sum(), x, allow_unused=True)[0]


class Exp(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y


class Mul(Function):
    """A new-style Function with an argument that is not a tensor."""

    @staticmethod
    def forward(x: Any, y: Any, factor: float = 1.0) -> Any:
        return x * y * factor

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, y, factor = inputs
        ctx.save_for_backward(x, y)
        ctx.factor = factor

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y * ctx.factor, g * x * ctx.factor, None


# -- the two styles ---------------------------------------------------------------------------------------------------


def test_forward_with_ctx() -> None:
    x = leaf(0.0, 1.0)
    y = Exp.apply(x)
    y.sum().backward()
    assert torch.allclose(x.grad, x.detach().exp())
    assert y.requires_grad and not y.is_leaf


def test_forward_and_setup_context() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    out = Mul.apply(x, y, 10.0)
    assert out.tolist() == [30.0, 80.0]
    out.sum().backward()
    assert x.grad.tolist() == [30.0, 40.0] and y.grad.tolist() == [10.0, 20.0]


def test_keywords_and_defaults_with_setup_context() -> None:
    x, y = leaf(1.0), leaf(3.0)
    assert Mul.apply(x, y).tolist() == [3.0]
    assert Mul.apply(x, y, factor=2.0).tolist() == [6.0]
    assert Mul.apply(x, y=y, factor=2.0).tolist() == [6.0]
    with pytest.raises(TypeError):
        Mul.apply(x)


def test_no_keyword_where_forward_needs_a_ctx_only() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        function(lambda ctx, x: x * 2, lambda ctx, g: g).apply(leaf(), k=3)


def test_forward_is_not_recorded_and_sees_the_tensors_themselves() -> None:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        seen.append((x, x.requires_grad, torch.is_grad_enabled(), (x * 2).requires_grad, ctx.needs_input_grad))
        return x * 2

    x = leaf()
    function(forward, lambda ctx, g: g).apply(x)
    ((same, *rest),) = seen
    assert same is x and rest == [True, False, False, (True,)]
    assert torch.is_grad_enabled()


def test_grad_mode_comes_back_after_an_exception() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        raise ZeroDivisionError

    f = function(forward, lambda ctx, g: g)
    with pytest.raises(ZeroDivisionError):
        f.apply(leaf())
    assert torch.is_grad_enabled() and (leaf() * 2).requires_grad
    f = function(twice, lambda ctx, g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        f.apply(leaf()).sum().backward()
    assert torch.is_grad_enabled() and (leaf() * 2).requires_grad


def test_backward_is_recorded_only_with_create_graph() -> None:
    seen = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append((torch.is_grad_enabled(), g.requires_grad))
        return g * 2

    f = function(twice, backward)
    x = leaf()
    f.apply(x).sum().backward()
    torch.autograd.grad((f.apply(x) ** 2).sum(), x, create_graph=True)
    assert seen == [(False, False), (True, True)]


def test_needs_input_grad() -> None:
    seen = []

    def forward(ctx: Any, *args: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return args[0] * 2

    f = function(forward, lambda ctx, g: (g * 2, None, None, None))
    x, c = leaf(), torch.ones(3)
    y = f.apply(x, c, 3.0, [x])
    assert seen == [(True, False, False, False)] and y.grad_fn.needs_input_grad == (True, False, False, False)
    assert not f.apply(c, 1, 2, 3).requires_grad and seen[-1] == (False,) * 4
    with torch.no_grad():
        assert not f.apply(x, c, 1, 2).requires_grad
    assert seen[-1] == (True, False, False, False)


# -- saved values -----------------------------------------------------------------------------------------------------


def test_saved_tensors_may_be_none_and_come_back_with_their_history() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        assert ctx.saved_tensors == ()
        y = x * x
        ctx.save_for_backward(x, None, y, x > 1)
        return y

    seen = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(ctx.saved_tensors)
        return 2 * g * ctx.saved_tensors[0]

    x = leaf()
    y = function(forward, backward).apply(x)
    y.sum().backward()
    ((a, none, b, mask),) = seen
    assert a.requires_grad and a.is_leaf and none is None and mask.tolist() == [False, True, True]
    assert b.requires_grad and b.grad_fn is y.grad_fn
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("value", [3, "text", [1.0]])
def test_only_tensors_are_saved(value: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, value)
        return x * 2

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 1 is of type"):
        function(forward, lambda ctx, g: g).apply(leaf())


def test_the_last_save_counts() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_backward(x, x)
        return x * 2

    y = function(forward, lambda ctx, g: g).apply(leaf())
    assert len(y.grad_fn.saved_tensors) == 2


def test_attributes_of_any_name() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.factor, ctx.names = 3.0, ["a"]
        return x * 3

    y = function(forward, lambda ctx, g: g * ctx.factor).apply(leaf())
    assert y.grad_fn.factor == 3.0 and y.grad_fn.names == ["a"]
    with pytest.raises(AttributeError):
        _ = y.grad_fn.missing


def test_a_saved_tensor_that_was_overwritten() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    f = function(forward, lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf()
    z = x * 1
    y = f.apply(z)
    z.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*is at version 1; expected version 0"):
        y.sum().backward()
    assert x.grad is None


def test_freed_saved_tensors() -> None:
    x = leaf()
    y = Exp.apply(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = y.grad_fn.saved_tensors


def test_nothing_saved_nothing_freed() -> None:
    x = leaf()
    y = function(twice, lambda ctx, g: g * 2).apply(x)
    y.sum().backward()
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_hooks_on_saved_tensors() -> None:
    packed = []

    def pack(t: Any) -> Any:
        packed.append(t.tolist())
        return len(packed) - 1

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda i: torch.tensor(packed[i])):
        x = leaf(0.0)
        y = Exp.apply(x)
    assert packed == [[1.0]]
    y.backward(torch.ones(1))
    assert x.grad.tolist() == [1.0]


# -- the node ---------------------------------------------------------------------------------------------------------


def test_the_node() -> None:
    x = leaf()
    z = x * 1
    y = Exp.apply(z)
    node = y.grad_fn
    assert node.name() == "ExpBackward"
    assert torch.equal(node.saved_tensors[0], y) and node.next_functions == ((z.grad_fn, 0),)
    seen = []
    node.register_hook(lambda gi, go: seen.append((gi[0].tolist(), go[0].tolist())))
    node.register_prehook(lambda go: seen.append(go[0].tolist()))
    y.backward(torch.ones(3))
    assert seen[0] == [1.0, 1.0, 1.0] and seen[1][1] == [1.0, 1.0, 1.0] and torch.allclose(
        torch.tensor(seen[1][0]), x.exp()
    )  # fmt: skip
    assert "ExpBackward" in repr(y)


def test_only_tensors_have_edges() -> None:
    x, y = leaf(), leaf()
    node = Mul.apply(x, y, 2.0).grad_fn
    assert len(node.next_functions) == 2


def test_tensor_hooks_and_retain_grad() -> None:
    x = leaf()
    y = Exp.apply(x)
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [10.0, 10.0, 10.0] and torch.allclose(x.grad, 10 * x.exp())


def test_nothing_leaks() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf()
        y = Exp.apply(x)
        gone = weakref.ref(y)
        node = weakref.ref(y.grad_fn) if OURS else None
        del y
        assert gone() is None and (node is None or node() is None)
        outputs = function(lambda ctx, a: (ctx.save_for_backward(a * 2), a * 2, a * 3)[1:], lambda ctx, g, h: g).apply(
            x
        )
        gone = weakref.ref(outputs[1])
        del outputs
        assert gone() is None
    finally:
        gc.enable()


# -- outputs ----------------------------------------------------------------------------------------------------------


def test_several_outputs_and_what_is_no_tensor() -> None:
    seen = []

    def backward(ctx: Any, *g: Any) -> Any:
        seen.append(g)
        return g[0] * 2 + g[3] * 3

    f = function(lambda ctx, x: (x * 2, "text", None, x * 3), backward)
    x = leaf()
    a, text, none, b = f.apply(x)
    assert text == "text" and none is None and a.grad_fn is b.grad_fn and b.output_nr == 3
    b.sum().backward()
    ((ga, gt, gn, gb),) = seen
    assert ga.tolist() == [0.0] * 3 and gt is None and gn is None and gb.tolist() == [1.0] * 3
    assert x.grad.tolist() == [3.0] * 3


def test_without_materialized_gradients() -> None:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        seen.append(h)
        return g * 2

    x = leaf()
    function(forward, backward).apply(x)[0].sum().backward()
    assert seen == [None] and x.grad.tolist() == [2.0] * 3


def test_a_tuple_of_one_stays_a_tuple() -> None:
    out = function(lambda ctx, x: (x * 2,), lambda ctx, g: g).apply(leaf())
    assert isinstance(out, tuple) and out[0].requires_grad
    assert function(lambda ctx, x: 3, lambda ctx, g: g).apply(leaf()) == 3


def test_integer_outputs_have_no_gradient() -> None:
    x = leaf()
    values, order = function(lambda ctx, x: (x * 1, x.long()), lambda ctx, g, h: g).apply(x)
    assert values.requires_grad and not order.requires_grad
    values.sum().backward()
    assert x.grad.tolist() == [1.0] * 3


def test_mark_non_differentiable() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(a)
        return a, b

    x = leaf()
    a, b = function(forward, lambda ctx, g, h: g + h).apply(x)
    assert not a.requires_grad and b.requires_grad
    b.sum().backward()
    assert x.grad.tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="mark_non_differentiable only accepts variable arguments"):
        function(lambda ctx, x: ctx.mark_non_differentiable(3), lambda ctx, g: g).apply(leaf())


def test_returning_an_input() -> None:
    x = leaf()
    y = function(lambda ctx, x: x, lambda ctx, g: g * 5).apply(x)
    assert y is not x and y._is_view() and y._base is x
    y.sum().backward()
    assert x.grad.tolist() == [5.0] * 3
    c = torch.ones(2)
    assert function(lambda ctx, x: x, lambda ctx, g: g).apply(c) is not c


@pytest.mark.parametrize("forward", [lambda ctx, x: x, lambda ctx, x: x.view(-1), lambda ctx, x: x[:2]])
def test_views_of_inputs_cannot_be_written_to(forward: Any) -> None:
    z = leaf() * 1
    y = function(forward, lambda ctx, g: g).apply(z)
    assert y._is_view()
    with pytest.raises(RuntimeError, match=r"is a view and is being modified inplace.*custom Function"):
        y.add_(1)


def test_writing_to_the_base_of_an_output() -> None:
    x = leaf()
    z = x * 1
    y = function(lambda ctx, x: x[:2], lambda ctx, g: torch.cat([g, torch.zeros(1)])).apply(z)
    z.mul_(2)
    with pytest.raises(RuntimeError, match=r"or another view of it|base or another view of its base"):
        y.sum().backward()


def test_an_output_may_be_written_to_where_it_is_no_view() -> None:
    x = leaf()
    y = function(twice, lambda ctx, g: g * 2).apply(x)
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [6.0] * 3


def test_mark_dirty() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    f = function(forward, lambda ctx, g: g * 2)
    x = leaf()
    z = x * 1
    y = f.apply(z)
    assert y is z and z.grad_fn.name() == "FBackward" and z.tolist() == [2.0, 4.0, 6.0]
    z.sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    z = x * 1
    v = z[:2]
    assert f.apply(v) is v and z.tolist() == [2.0, 4.0, 3.0]
    x.grad = None
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 1.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        f.apply(leaf())
    c = torch.ones(2)
    assert f.apply(c) is c and not c.requires_grad


def test_mark_dirty_of_what_is_not_returned() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2) * 1

    with pytest.raises(RuntimeError, match="marked as dirty during the forward method were not returned"):
        function(forward, lambda ctx, g: g).apply(leaf() * 1)
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables"):
        function(lambda ctx, x: ctx.mark_dirty(3), lambda ctx, g: g).apply(leaf())

    def two(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2), x * 1

    with pytest.raises(RuntimeError, match="your Function cannot return more than one Tensor"):
        function(two, lambda ctx, g, h: g).apply((leaf() * 1)[:2])


# -- results of backward ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backward", "message"),
    [
        (lambda ctx, g: (g, g), "incorrect number of gradients .expected 1, got 2"),
        (lambda ctx, g: (), "incorrect number of gradients .expected 1, got 0"),
        (lambda ctx, g: 1.0, "expected Variable or None .got float"),
        (lambda ctx, g: [g], "expected Variable or None .got list"),
        (lambda ctx, g: g.numpy(), "expected Variable or None .got"),
        (lambda ctx, g: torch.ones(4), r"FBackward returned an invalid gradient at index 0 - got \[4\] but expected"),
        (
            lambda ctx, g: torch.ones(1),
            r"invalid gradient at index 0 - got \[1\] but expected shape compatible with \[3\]",
        ),
        (lambda ctx, g: torch.tensor(1.0), r"invalid gradient at index 0 - got \[\]"),
    ],
)
def test_wrong_gradients(backward: Any, message: str) -> None:
    x = leaf()
    with pytest.raises(RuntimeError, match=message):
        function(twice, backward).apply(x).sum().backward()
    assert x.grad is None


def test_too_few_gradients_and_gradients_of_constants() -> None:
    x = leaf()
    with pytest.raises(RuntimeError, match="expected 2, got 1"):
        gradient(function(lambda ctx, x, y: x * y, lambda ctx, g: g), x, leaf())
    with pytest.raises(RuntimeError, match="returned a gradient different than None at position 2"):
        gradient(function(lambda ctx, x, c: x * c, lambda ctx, g: (g, g)), x, 3.0)


def test_surplus_none_and_no_gradient() -> None:
    x = leaf()
    assert gradient(function(twice, lambda ctx, g: (g, None, None)), x).tolist() == [1.0] * 3
    assert gradient(function(twice, lambda ctx, g: None), x) is None
    y = function(twice, lambda ctx, g: None).apply(x) + x  # None next to a gradient
    y.sum().backward()
    assert x.grad.tolist() == [1.0] * 3


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_gradients_are_cast(dtype: str) -> None:
    g = gradient(function(twice, lambda ctx, g: g.to(getattr(torch, dtype))), leaf())
    assert g.dtype == torch.float32 and g.tolist() == [1.0] * 3


def test_a_complex_gradient_of_a_real_input() -> None:
    with pytest.raises(RuntimeError):
        gradient(function(twice, lambda ctx, g: g * 1j), leaf())


def test_gradients_are_summed_over_what_was_broadcast() -> None:
    assert gradient(function(twice, lambda ctx, g: torch.ones(2, 3)), leaf()).tolist() == [2.0] * 3


def test_gradients_do_not_share_memory_with_what_others_hold() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return (x * x) / 2

    x = leaf()
    function(forward, lambda ctx, g: ctx.saved_tensors[0]).apply(x).sum().backward()
    x.grad.zero_()
    assert x.tolist() == [1.0, 2.0, 3.0]
    constant = torch.ones(3)
    x.grad = None
    function(twice, lambda ctx, g: constant).apply(x).sum().backward()
    x.grad.zero_()
    assert constant.tolist() == [1.0] * 3
    g, x.grad = torch.ones(3), None
    function(twice, lambda ctx, g: g).apply(x).backward(g)
    x.grad.zero_()
    assert g.tolist() == [1.0] * 3


def test_missing_methods() -> None:
    with pytest.raises(NotImplementedError, match="must implement the forward function"):
        type("F", (Function,), {}).apply(leaf())
    with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
        function(twice).apply(leaf()).sum().backward()


def test_vjp_is_another_name_of_backward() -> None:
    assert gradient(function(twice, vjp=lambda ctx, g: g * 3), leaf()).tolist() == [3.0] * 3
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        gradient(function(twice, lambda ctx, g: g, vjp=lambda ctx, g: g), leaf())


# -- second backward --------------------------------------------------------------------------------------------------


def test_double_backward() -> None:
    x = leaf(0.5, 1.0)
    (g,) = torch.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    (t,) = torch.autograd.grad(h.sum(), x)
    assert torch.allclose(g, x.exp()) and torch.allclose(h, x.exp()) and torch.allclose(t, x.exp())


def test_gradcheck() -> None:
    x, y = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in ([0.3, -1.0], [2.0, 0.5]))
    assert torch.autograd.gradcheck(Exp.apply, (x,)) and torch.autograd.gradgradcheck(Exp.apply, (x,))
    assert torch.autograd.gradcheck(Mul.apply, (x, y, 3.0)) and torch.autograd.gradgradcheck(Mul.apply, (x, y, 3.0))
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(function(twice, lambda ctx, g: g * 3).apply, (x,))


def test_once_differentiable() -> None:
    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        assert not torch.is_grad_enabled()
        return 2 * g * ctx.saved_tensors[0]

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    f = function(forward, backward)
    x = leaf()
    assert gradient(f, x).tolist() == [2.0, 4.0, 6.0]
    (g,) = torch.autograd.grad((f.apply(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked with @once_differentiable"):
        g.sum().backward()


@differs("it takes the gradient for a constant, where its cotangent is one, and gives a wrong second derivative")
def test_once_differentiable_never_gives_a_wrong_second_derivative() -> None:
    f = function(
        lambda ctx, x: (ctx.save_for_backward(x), x**3)[1],
        once_differentiable(lambda ctx, g: 3 * g * ctx.saved_tensors[0] ** 2),
    )
    x = leaf()
    (g,) = torch.autograd.grad(f.apply(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        torch.autograd.grad((g * x).sum(), x)


def test_backward_inside_backward() -> None:
    """Like checkpoints: recompute with recording enabled, and differentiate the recomputation."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.sin()

    def backward(ctx: Any, g: Any) -> Any:
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = x.sin()
        return torch.autograd.grad(y, x, g)[0]

    x = leaf()
    assert torch.allclose(gradient(function(forward, backward), x), x.cos())


def test_subclasses_inherit() -> None:
    class Negative(Exp):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return -Exp.backward(ctx, g)

    x = leaf(0.0)
    y = Negative.apply(x)
    assert y.grad_fn.name() == "NegativeBackward"
    assert gradient(Negative, x).tolist() == [-1.0]


@differs("it warns that the class should not be instantiated")
def test_functions_are_not_instantiated() -> None:
    with pytest.raises(RuntimeError, match="should not be instantiated"):
        Exp()


@differs("its node refuses to be called")
def test_the_node_can_be_called() -> None:
    assert Exp.apply(leaf(0.0)).grad_fn(torch.ones(1)).tolist() == [1.0]


@differs("NestedIOFunction has the non-static forward that PyTorch itself refuses")
def test_old_names() -> None:
    assert issubclass(torch.autograd.function.InplaceFunction, Function)
    with pytest.raises(NotImplementedError, match="separately"):
        torch.autograd.function.NestedIOFunction.apply(leaf())


# -- saved and overwritten values --------------------------------------------------------------------------------------


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

    point, weight = doubles(2.0), doubles(3.0)
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
    x = doubles(3.0)
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

    y = Cube.apply(doubles(2.0)).sum()
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
        Double.apply(doubles(1.0)).sum().backward()


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
        y = Fresh.apply(doubles(1.0), False)
    assert y.tolist() == [3.0]
    with pytest.raises(RuntimeError, match="received a tensor that was not an input"):
        Fresh.apply(doubles(1.0), True)


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
        view += doubles(1.0)


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
    base = doubles(1.0, 2.0, 3.0)
    base = base if of_a_leaf else base * 1
    with mode():
        view = base[:2]
    with pytest.raises(RuntimeError):
        Doubled.apply(view)


def test_function_that_writes_a_view():
    x = doubles(1.0, 2.0, 3.0)
    y = x * 1
    Doubled.apply(y[:2])
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 1.0]
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        Doubled.apply((x * 1).split(2)[0])
