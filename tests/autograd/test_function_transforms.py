"""Custom Functions inside vmap, grad, vjp, jvp and forward_ad, in every nesting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from behaviour import OURS, differs, torch

if OURS:
    import chainrule.autograd.function  # noqa: F401
Function = torch.autograd.Function
once_differentiable = torch.autograd.function.once_differentiable
func = torch.func
fw = torch.autograd.forward_ad
no_jvp = "it wants a jvp; here the tangent is derived from backward"
no_vmap = "it wants a vmap staticmethod or generate_vmap_rule; here forward runs on the batch"
old_style = "it takes only Functions with setup_context into its transformations"


class Exp(Function):
    """A Function that saves its output."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x.exp()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (y,) = ctx.saved_tensors
        return t * y


class OldExp(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y


class OldCube(Function):
    """A Function that stores its input as an attribute."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.x, ctx.power = x, 3
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.power * ctx.x**2


class Product(Function):
    """A Function with two operands, one number, and two outputs."""

    @staticmethod
    def forward(x: Any, y: Any, factor: float) -> Any:
        return x * y * factor, x + y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, y, ctx.factor = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y * ctx.factor + h, g * x * ctx.factor + h, None


class StraightThrough(Function):
    """A step function whose rule is not the derivative of its forward code: it is 7."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 7


def values(x: Any) -> Any:
    return np.asarray(x.detach().numpy() if isinstance(x, torch.Tensor) else x)


def same(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(values(got), values(expected), rtol=1e-6)


def data(*shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.asarray(np.random.default_rng(seed).normal(size=shape) * 0.5))


@pytest.fixture
def x() -> Any:
    return data(3)


# -- behaviour of both libraries --------------------------------------------------------------------------------------


def test_grad_vjp_and_jacrev(x: Any) -> None:
    same(func.grad(lambda x: Exp.apply(x).sum())(x), x.exp())
    y, pull = func.vjp(Exp.apply, x)
    same(y, x.exp())
    same(pull(torch.ones(3, dtype=torch.float64))[0], x.exp())
    same(func.jacrev(Exp.apply)(x), np.diag(np.exp(values(x))))
    same(func.grad(lambda x: func.grad(lambda x: Exp.apply(x).sum())(x).sum())(x), x.exp())


def test_jvp_and_jacfwd(x: Any) -> None:
    t = data(3, seed=1)
    same(func.jvp(Exp.apply, (x,), (t,))[1], x.exp() * t)
    same(func.jacfwd(Exp.apply)(x), np.diag(np.exp(values(x))))


def test_vmap(x: Any) -> None:
    same(func.vmap(Exp.apply)(x), x.exp())
    same(func.vmap(func.grad(Exp.apply))(x), x.exp())
    same(func.grad(lambda x: func.vmap(Exp.apply)(x).sum())(x), x.exp())


def test_forward_ad_uses_jvp(x: Any) -> None:
    t = data(3, seed=1)
    with fw.dual_level():
        primal, tangent = fw.unpack_dual(Exp.apply(fw.make_dual(x, t)))
        same(primal, x.exp())
        same(tangent, x.exp() * t)


def test_jvp_reads_what_was_saved_for_forward(x: Any) -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            ctx.save_for_forward(x)
            ctx.factor = factor
            return x * factor

        @staticmethod
        def jvp(ctx: Any, t: Any, none: Any) -> Any:
            (x,) = ctx.saved_tensors
            assert none is None and torch.equal(x, x) and x.shape == t.shape
            return t * ctx.factor * 10  # a recognizable factor

    with fw.dual_level():
        dual = Twice.apply(fw.make_dual(x, torch.ones_like(x)), 2.0)
        same(fw.unpack_dual(dual).tangent, [20.0] * 3)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda t: (t, t), r"invalid number of forward gradients .expected 1 but got 2"),
        (lambda t: t[:2], "different size than that of the original Tensor"),
        (lambda t: 3.0, "expected Variable or None .got float"),
    ],
)
def test_wrong_results_of_jvp(x: Any, result: Callable[..., Any], message: str) -> None:
    class Bad(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return result(t)

    with fw.dual_level(), pytest.raises(RuntimeError, match=message):
        Bad.apply(fw.make_dual(x, torch.ones_like(x)))


def with_vmap(rule: Callable[..., Any], **more: Any) -> Any:
    class WithVmap(Exp):
        generate_vmap_rule = more.get("generate", False)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
            return rule(info, in_dims, *args)

    return WithVmap


def test_the_vmap_staticmethod(x: Any) -> None:
    seen = []

    def rule(info: Any, in_dims: Any, a: Any) -> Any:
        seen.append((info.batch_size, info.randomness, in_dims, tuple(a.shape)))
        return Exp.apply(a), 0

    f = with_vmap(rule)
    same(func.vmap(f.apply)(x), x.exp())
    assert seen == [(3, "error", (0,), (3,))]
    same(func.vmap(func.grad(f.apply))(x), x.exp())
    same(func.grad(lambda x: func.vmap(f.apply)(x).sum())(x), x.exp())
    two = data(2, 3)
    same(func.vmap(func.vmap(f.apply))(two), two.exp())


def test_out_dims_of_the_vmap_staticmethod() -> None:
    two = data(2, 3)

    class Both(Function):
        @staticmethod
        def forward(x: Any, k: int) -> Any:
            return x * k, x + k

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

        @staticmethod
        def vmap(info: Any, in_dims: Any, a: Any, k: int) -> Any:
            assert in_dims == (0, None)
            return ((a * k).movedim(0, 1), a + k), (1, 0)

    a, b = func.vmap(lambda x: Both.apply(x, 3))(two)
    same(a, two * 3)
    same(b, two + 3)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda info, dims, a: a.exp(), "Expected the vmap staticmethod to have two returns"),
        (lambda info, dims, a: ((a, a), (0,)), "incompatible .output, out_dims. tuple"),
    ],
)
def test_wrong_results_of_the_vmap_staticmethod(x: Any, rule: Callable[..., Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        func.vmap(with_vmap(rule).apply)(x)


def test_a_vmap_rule_of_ones_own_and_a_generated_one(x: Any) -> None:
    with pytest.raises(RuntimeError, match="both generate_vmap_rule=True and an overridden vmap staticmethod"):
        func.vmap(with_vmap(lambda info, dims, a: (a, 0), generate=True).apply)(x)


# -- errors in PyTorch ------------------------------------------------------------------------------------------------


NESTINGS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: func.grad(lambda x: f(x).sum())(x),
    "grad grad": lambda f, x: func.grad(lambda x: func.grad(lambda x: f(x).sum())(x).sum())(x),
    "vmap": lambda f, x: func.vmap(f)(x),
    "vmap grad": lambda f, x: func.vmap(func.grad(f))(x),
    "vmap grad grad": lambda f, x: func.vmap(func.grad(func.grad(f)))(x),
    "grad vmap": lambda f, x: func.grad(lambda x: func.vmap(f)(x).sum())(x),
    "grad vmap grad": lambda f, x: func.grad(lambda x: func.vmap(func.grad(f))(x).sum())(x),
    "grad grad vmap": lambda f, x: NESTINGS["grad grad"](func.vmap(f), x),
    "grad vmap vmap": lambda f, x: func.grad(lambda x: func.vmap(func.vmap(f))(x.reshape(3, 1)).sum())(x),
    "jvp": lambda f, x: func.jvp(f, (x,), (torch.ones_like(x),))[1],
    "jvp jvp": lambda f, x: NESTINGS["jvp"](lambda x: NESTINGS["jvp"](f, x), x),
    "jvp grad": lambda f, x: NESTINGS["jvp"](lambda x: NESTINGS["grad"](f, x), x),
    "grad jvp": lambda f, x: NESTINGS["grad"](lambda x: NESTINGS["jvp"](f, x), x),
    "jvp vmap": lambda f, x: NESTINGS["jvp"](func.vmap(f), x),
    "vmap jvp": lambda f, x: func.vmap(lambda x: NESTINGS["jvp"](f, x))(x),
    "jvp vmap grad": lambda f, x: NESTINGS["jvp"](func.vmap(func.grad(f)), x),
    "vmap jvp grad": lambda f, x: func.vmap(lambda x: NESTINGS["jvp"](func.grad(f), x))(x),
    "grad vmap jvp": lambda f, x: NESTINGS["grad"](func.vmap(lambda x: NESTINGS["jvp"](f, x)), x),
    "grad jvp vmap": lambda f, x: NESTINGS["grad"](lambda x: NESTINGS["jvp"](func.vmap(f), x), x),
    "jacrev": lambda f, x: func.jacrev(f)(x),
    "jacfwd": lambda f, x: func.jacfwd(f)(x),
    "hessian": lambda f, x: func.hessian(lambda x: f(x).sum())(x),
    "jacrev vmap": lambda f, x: func.jacrev(func.vmap(f))(x),
    "jacrev jacrev": lambda f, x: func.jacrev(func.jacrev(f))(x),
    "jacfwd jacrev": lambda f, x: func.jacfwd(func.jacrev(f))(x),
    "tape vmap": lambda f, x: on_the_tape(func.vmap(f), x),
    "tape vmap grad": lambda f, x: on_the_tape(func.vmap(func.grad(f)), x),
    "tape jvp": lambda f, x: on_the_tape(lambda x: NESTINGS["jvp"](f, x), x),
}


def on_the_tape(f: Any, x: Any) -> Any:
    x = x.clone().requires_grad_()
    return torch.autograd.grad(f(x).sum(), x)[0]


@differs(old_style)
@pytest.mark.parametrize("name", NESTINGS)
@pytest.mark.parametrize(
    ("custom", "plain"),
    [(Exp, lambda x: x.exp()), (OldExp, lambda x: x.exp()), (OldCube, lambda x: x**3)],
    ids=["Exp", "OldExp", "OldCube"],
)
def test_nestings(name: str, custom: Any, plain: Any, x: Any) -> None:
    nest = NESTINGS[name]
    same(nest(custom.apply, x), nest(plain, x))


@differs(no_vmap)
@pytest.mark.parametrize("name", NESTINGS)
def test_nestings_by_a_vmap_staticmethod(name: str, x: Any) -> None:
    nest = NESTINGS[name]
    f = with_vmap(lambda info, dims, a: (Exp.apply(a), 0))
    same(nest(f.apply, x), nest(lambda x: x.exp(), x))


@differs(old_style)
@pytest.mark.parametrize("name", ["grad", "vmap grad", "grad vmap", "jvp", "grad vmap vmap", "jvp vmap", "vmap jvp",
                                  "tape vmap"])  # fmt: skip
def test_forwards_code_is_never_differentiated(name: str, x: Any) -> None:
    same(NESTINGS[name](StraightThrough.apply, x), [7.0] * 3)


@differs(no_vmap)
def test_operands_that_all_examples_share(x: Any) -> None:
    shared = data(seed=2)

    def custom(x: Any, y: Any) -> Any:
        a, b = Product.apply(x, y, 2.0)
        return a * b

    def plain(x: Any, y: Any) -> Any:
        return x * y * 2.0 * (x + y)

    for dims in ((0, None), (None, 0)):
        args = (x, shared) if dims[0] == 0 else (shared, x)
        same(func.vmap(custom, dims)(*args), func.vmap(plain, dims)(*args))
        for i in (0, 1):
            got, expected = (
                func.grad(lambda *a, f=f, d=dims: func.vmap(f, d)(*a).sum(), argnums=i)(*args) for f in (custom, plain)
            )
            same(got, expected)
            got, expected = (func.vmap(func.grad(f, argnums=i), dims)(*args) for f in (custom, plain))
            same(got, expected)


@differs(no_jvp)
def test_tangents_of_several_operands_and_outputs(x: Any) -> None:
    y, t, s = data(3, seed=3), data(3, seed=4), data(3, seed=5)
    got = func.jvp(lambda x, y: Product.apply(x, y, 2.0), (x, y), (t, s))[1]
    same(got[0], 2 * (t * y + x * s))
    same(got[1], t + s)
    got = func.jvp(lambda x: Product.apply(x, y, 2.0), (x,), (t,))[1]
    same(got[0], 2 * t * y)


@differs(no_jvp)
def test_matrices_are_transposed_right() -> None:
    a, b = data(2, 3), data(3, 4, seed=1)
    t = data(2, 3, seed=2)

    class Matmul(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g @ b.mT, a.mT @ g

    same(func.jvp(lambda a: Matmul.apply(a, b), (a,), (t,))[1], t @ b)
    same(func.jvp(lambda b: Matmul.apply(a, b), (b,), (b,))[1], a @ b)
    same(func.vmap(Matmul.apply, (0, None))(torch.stack([a, t]), b), torch.stack([a @ b, t @ b]))
    with fw.dual_level():
        same(fw.unpack_dual(Matmul.apply(fw.make_dual(a, t), b)).tangent, t @ b)


def impossible(backward: Callable[..., Any]) -> Any:
    class Impossible(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

    Impossible.backward = staticmethod(backward)
    return Impossible


@differs(no_jvp)
@pytest.mark.parametrize(
    "backward",
    [
        once_differentiable(lambda ctx, g: 2 * g * ctx.saved_tensors[0]),
        lambda ctx, g: torch.from_numpy(2 * g.numpy() * ctx.saved_tensors[0].detach().numpy()),
        lambda ctx, g: torch.from_numpy(2 * g.detach().numpy() * ctx.saved_tensors[0].detach().numpy()),
        lambda ctx, g: 2 * g.detach() * ctx.saved_tensors[0],
    ],
)
def test_a_backward_that_is_not_recorded_has_no_tangent(x: Any, backward: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"must implement the jvp function.*\n.*Impossible.*Define jvp"):
        func.jvp(impossible(backward).apply, (x,), (x,))


@differs(no_jvp)
def test_a_gradient_that_is_none_or_zero_has_no_tangent(x: Any) -> None:
    for backward in (lambda ctx, g: None, lambda ctx, g: torch.zeros(3, dtype=torch.float64)):
        same(func.jvp(impossible(backward).apply, (x,), (x,))[1], np.zeros(3))


@differs(no_vmap)
def test_numpy_code_inside_vmap(x: Any) -> None:
    class Outside(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return torch.from_numpy(np.sin(x.detach().numpy()))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    same(Outside.apply(x), np.sin(values(x)))
    with pytest.raises(RuntimeError, match=r"Outside.forward converted a tensor to plain numbers.*vmap staticmethod"):
        func.vmap(Outside.apply)(x)
    same(func.jvp(Outside.apply, (x,), (x,))[1], x)  # forward itself receives ordinary arrays there


@differs("it needs setup_context from the beginning")
def test_a_vmap_staticmethod_without_setup_context(x: Any) -> None:
    class NoSetup(OldExp):
        @staticmethod
        def vmap(info: Any, in_dims: Any, a: Any) -> Any:
            return a.exp(), 0

    same(func.vmap(NoSetup.apply)(x), x.exp())
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        func.vmap(func.grad(NoSetup.apply))(x)


@differs("it takes any size")
def test_the_vmap_staticmethod_returns_the_batch(x: Any) -> None:
    with pytest.raises(RuntimeError, match="no axis of the batch size 3"):
        func.vmap(with_vmap(lambda info, dims, a: (a[:2], 0)).apply)(x)


@differs(old_style)
def test_marks_inside_transformations(x: Any) -> None:
    class Marked(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            step, y = x * 5, x * x
            ctx.mark_non_differentiable(step)
            ctx.save_for_backward(x)
            ctx.set_materialize_grads(False)
            return step, y

        @staticmethod
        def backward(ctx: Any, none: Any, g: Any) -> Any:
            assert none is None
            return 2 * g * ctx.saved_tensors[0]

    same(func.vmap(func.grad(lambda x: sum(Marked.apply(x))))(x), 2 * x)
    same(func.jvp(lambda x: sum(Marked.apply(x)), (x,), (torch.ones_like(x),))[1], 2 * x)


@differs(old_style)
class Asks(Function):
    """A Function that checks whether its input requires grad, like old programs."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        if inputs[0].requires_grad:
            ctx.save_for_backward(inputs[0])
        else:
            ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x


class OldAsks(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        y = x * x
        if not x.requires_grad:
            ctx.mark_non_differentiable(y)
        return y

    backward = Asks.backward


@pytest.mark.parametrize("custom", [Asks, OldAsks])
def test_inputs_say_that_they_require_grad_inside_transformations(custom: Any) -> None:
    if not OURS and custom is OldAsks:
        pytest.skip(old_style)
    x = torch.tensor([1.0, 2.0, 3.0])
    X = torch.stack([x, 2 * x])

    def loss(v: Any) -> Any:
        return custom.apply(v).sum()

    assert func.grad(loss)(x).tolist() == [2, 4, 6]
    assert func.vmap(func.grad(loss))(X).tolist() == [[2, 4, 6], [4, 8, 12]]
    assert func.grad(lambda v: func.vmap(loss)(v).sum())(X).tolist() == [[2, 4, 6], [4, 8, 12]]
    assert func.vmap(loss)(X.requires_grad_()).requires_grad
    assert func.grad(lambda v: func.grad(loss)(v).sum())(x).tolist() == [2, 2, 2]
    if OURS:
        assert func.jvp(loss, (x,), (x,))[1].item() == 28
        compiled = torch.compile(loss)
        for _ in range(2):
            w = x.detach().requires_grad_()
            compiled(w).backward()
            assert w.grad.tolist() == [2, 4, 6]
        assert not compiled(x).requires_grad


def test_mark_dirty_inside_transformations(x: Any) -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    def f(x: Any) -> Any:
        y = x * 1
        z = Double.apply(y)
        assert z is y
        return y * y

    same(func.vmap(f)(x), 4 * x * x)
    same(func.vmap(func.grad(f))(x), 8 * x)
    same(func.jvp(f, (x,), (torch.ones_like(x),))[1], 8 * x)


@differs(old_style)
def test_wrong_gradients_inside_transformations(x: Any) -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.ones(4, dtype=torch.float64)

    two = data(2, 3)
    for nest in (
        lambda: func.vmap(func.grad(lambda x: Wrong.apply(x).sum()))(two),
        lambda: func.grad(lambda x: func.vmap(Wrong.apply)(x).sum())(two),
        lambda: func.jvp(func.grad(lambda x: Wrong.apply(x).sum()), (x,), (x,)),
    ):
        with pytest.raises((RuntimeError, NotImplementedError), match="invalid gradient at index 0"):
            nest()


@differs(no_vmap)
def test_an_intermediate_value_may_be_saved(x: Any) -> None:
    class Intermediate(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(2 * x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    for name in ("vmap grad", "grad vmap", "jvp", "jvp vmap", "vmap jvp", "grad vmap vmap", "tape vmap"):
        same(NESTINGS[name](Intermediate.apply, x), 2 * x)


@differs(old_style)
@pytest.mark.parametrize("custom", [Exp, OldExp, OldCube])
@pytest.mark.parametrize("name", ["grad", "jacrev", "vmap grad", "grad vmap", "jvp", "jacfwd", "hessian"])
def test_results_are_on_no_tape(name: str, custom: Any, x: Any) -> None:
    assert not NESTINGS[name](custom.apply, x).requires_grad


@differs(old_style)
def test_cotangents_are_differentiated_too(x: Any) -> None:
    """Return the gradient of Σ w·(v·J) with respect to v, through a batch of vectors v."""
    w, v = data(2, 3, seed=7), data(2, 3, seed=8).requires_grad_()
    for f in (OldExp, Exp, OldCube):
        pull = func.vjp(f.apply, x)[1]
        (rows,) = func.vmap(pull)(v)
        (g,) = torch.autograd.grad((rows * w).sum(), v)
        same(g, w * func.vmap(func.grad(f.apply))(x))


@differs("numpy arrays are no tensors to it")
def test_arrays_come_back_as_arrays(x: Any) -> None:
    a = values(x)
    out = func.grad(lambda x: Exp.apply(x).sum())(a)
    assert type(out) is np.ndarray
    same(out, np.exp(a))
