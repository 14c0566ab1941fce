"""Operations that PyTorch refuses inside its transformations, but chainrule supports: leaves, backward, checkpoints, hooks."""

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, hessian, hvp, jacfwd, jacrev, jvp, linear_transpose, linearize, vjp, vmap
from chainrule.utils.checkpoint import checkpoint

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
x = cr.from_numpy(X)


def close(got, expected):
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-12)


def masked(q):
    return q[q > 0] ** 2


def placed(q):
    return q[np.argsort(-q)] * np.arange(3.0)


@pytest.mark.parametrize(
    "transformation", [jacfwd, jacrev, lambda f: jacfwd(lambda q: jacrev(lambda r: f(r).sum())(q))]
)
@pytest.mark.parametrize("function", [masked, placed])
@pytest.mark.parametrize("face", [np.asarray, cr.from_numpy])
def test_indices_that_depend_on_the_values(face, function, transformation):
    """With a single value, comparisons give masks of one size, and sorting gives one order."""
    point = np.array([1.0, -2.0, 3.0])
    slopes = {masked: np.diag(2 * point)[[0, 2]], placed: np.diag([1.0, 2.0, 0.0])[[2, 0, 1]]}[function]
    curvature = np.diag([2.0, 0.0, 2.0]) if function is masked else np.zeros((3, 3))
    got = np.asarray(transformation(function)(face(point)))
    np.testing.assert_allclose(got, slopes if transformation in (jacfwd, jacrev) else curvature)
    if transformation is jacfwd:
        value, tangent = jvp(function, (face(point),), (face(np.ones(3)),))
        np.testing.assert_allclose(np.asarray(value), np.asarray(function(point)))
        np.testing.assert_allclose(np.asarray(tangent), slopes.sum(1))


def test_a_checkpoint_runs_again_as_it_ran_first():
    """The recording of an inner derivative must not depend on the mode of the outer one."""

    def f(r):
        return grad(lambda c: (c * r).sin().sum())(x[1]) * r

    _, pull = vjp(lambda r: checkpoint(f, r, use_reentrant=False), x[0])
    close(pull(x[1])[0], vjp(f, x[0])[1](x[1])[0].numpy())


def leaf_and_backward(r):
    """Make w require grad inside, combine it with r, and differentiate there: 2 w r at w = 1."""
    w = cr.ones(3, dtype=cr.float64).requires_grad_()
    (w * w * r).sum().backward()
    return w.grad


def leaf_and_grad(r):
    """The same with autograd.grad; w passes through an operation before it is combined with r."""
    w = cr.ones(3, dtype=cr.float64, requires_grad=True)
    doubled = w * w
    (g,) = cr.autograd.grad((doubled * r**2).sum(), w, create_graph=True)
    return g


def test_leaves_made_inside():
    close(vmap(leaf_and_backward)(x), 2 * X)
    close(vmap(leaf_and_grad)(x), 2 * X**2)
    close(jvp(leaf_and_backward, (x[0],), (x[1],))[1], 2 * X[1])
    close(vmap(vmap(lambda r: leaf_and_grad(r).sum()))(x), 6 * X**2)
    close(vmap(grad(lambda r: leaf_and_grad(r).sum()))(x), 4 * X)
    close(vmap(lambda r: jvp(leaf_and_grad, (r,), (r,))[1])(x), 4 * X**2)
    close(jacfwd(leaf_and_grad)(x[0]), np.diag(4 * X[0]))


def test_an_argument_made_to_require_grad():
    cube = lambda r: cr.autograd.grad((r.requires_grad_() ** 3).sum(), r)[0]
    close(vmap(cube)(x), 3 * X**2)
    assert not x.requires_grad


def test_a_captured_tensor_gets_its_own_data_back():
    w = cr.ones(3, dtype=cr.float64)

    def f(r):
        w.requires_grad_()
        return (w * r).sum()

    close(vmap(f)(x), X.sum(1))
    assert w.requires_grad and w.numpy(force=True).tolist() == [1.0, 1.0, 1.0]
    (w * 2).sum().backward()
    close(w.grad, [2.0, 2.0, 2.0])


def test_retain_grad_inside():
    def f(r):
        y = r * 1
        y.retain_grad()
        (y**2).sum().backward(retain_graph=True)
        return (y.grad.detach() * r).sum()

    close(grad(f)(x[0]), 2 * X[0])
    close(vmap(grad(f))(x), 2 * X)


def test_hooks_inside_nested_transformations():
    def f(r):
        y = r**2
        y.register_hook(lambda g: 3 * g)
        return (y * r).sum()

    close(grad(f)(x[0]), 3 * 2 * X[0] ** 2 + X[0] ** 2)
    close(vmap(grad(f))(x), 7 * X**2)


@pytest.mark.parametrize(
    "transform, expected",
    [
        (lambda f: grad(f)(x[0]), 3 * X[0] ** 2),
        (lambda f: vmap(grad(f))(x), 3 * X**2),
        (lambda f: jvp(f, (x[0],), (x[1],))[1], (3 * X[0] ** 2) @ X[1]),
        (lambda f: hessian(f)(x[0]), np.diag(6 * X[0])),
        (lambda f: linearize(f, x[0])[1](x[1]), (3 * X[0] ** 2) @ X[1]),
        (lambda f: hvp(f, x[0], x[1]), 6 * X[0] * X[1]),
        (lambda f: jacrev(jacfwd(f))(x[0]), np.diag(6 * X[0])),
        (lambda f: vjp(f, x[0])[1](2.0)[0], 6 * X[0] ** 2),
    ],
)
@pytest.mark.parametrize("how", ["checkpoint", "saved hooks", "function"])
def test_checkpoints_hooks_and_functions(transform, expected, how):
    class Cube(cr.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(a):
            return a**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.save_for_forward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return g * 3 * a**2

        @staticmethod
        def jvp(ctx, t):
            (a,) = ctx.saved_tensors
            return t * 3 * a**2

    kept = []

    def pack(value):
        kept.append(value)
        return value

    def f(a):
        if how == "checkpoint":
            return checkpoint(lambda b: (b**3).sum(), a, use_reentrant=False)
        if how == "function":
            return Cube.apply(a).sum()
        with cr.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
            return (a**3).sum()

    close(transform(f), expected)


def test_dual_level_around_transformations():
    forward_ad = cr.autograd.forward_ad
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x[0], x[1])
        tangent = lambda y: forward_ad.unpack_dual(y).tangent
        close(tangent(grad(lambda a: (a**3).sum())(d)), 6 * X[0] * X[1])
        close(tangent(vmap(lambda a: a**3)(d)), 3 * X[0] ** 2 * X[1])
        close(tangent(jacrev(lambda a: a**3)(d)), np.diag(6 * X[0] * X[1]))
        close(tangent(jacfwd(lambda a: a**3)(d)), np.diag(6 * X[0] * X[1]))


def test_batched_gradients_inside_vmap():
    def f(r):
        y = r.clone().requires_grad_()
        (rows,) = cr.autograd.grad(y**2, y, cr.eye(3, dtype=cr.float64), is_grads_batched=True)
        return rows

    close(vmap(f)(x), np.stack([np.diag(2 * r) for r in X]))


def test_values_that_all_examples_share_have_numbers():
    """Branches on values that are independent of the mapped argument are allowed."""

    def f(w, r):
        scale = 2.0 if w.sum() > 0 else 1.0
        return (w * r).sum() * scale * w[0].item()

    g = vmap(grad(f), in_dims=(None, 0))(cr.ones(3, dtype=cr.float64), x)
    close(g, 2 * X)


def test_shared_parameters_are_not_repeated():
    from chainrule._src.interpreters.batched import Batched

    seen = []

    def loss(w, r):
        seen.append((w * 2)._raw)
        return (w * 2 * r).sum()

    vmap(grad(loss), in_dims=(None, 0))(cr.ones(3, dtype=cr.float64), x)
    assert type(seen[0]) is Batched and seen[0].shared and seen[0].payload.shape == (3,)


@pytest.mark.parametrize(
    "derivative",
    [
        lambda f, x: cr.autograd.functional.jacobian(f, x),
        lambda f, x: cr.autograd.functional.jacobian(f, x, vectorize=True),
        lambda f, x: cr.autograd.functional.jacobian(f, x, vectorize=True, strategy="forward-mode"),
        lambda f, x: cr.jacobian(f, x, mode="reverse"),
        lambda f, x: cr.jacobian(f, x, mode="forward"),
        lambda f, x: cr.func.jacrev(f)(x),
        lambda f, x: cr.autograd.functional.vjp(f, x, x)[1],
        lambda f, x: cr.autograd.functional.jvp(f, x, x)[1],
        lambda f, x: cr.autograd.functional.hvp(lambda x: (x * f(x)).sum(), x, x)[1],
        lambda f, x: cr.autograd.functional.vhp(lambda x: (x * f(x)).sum(), x, x)[1],
        lambda f, x: cr.autograd.functional.hessian(lambda x: (x * f(x)).sum(), x),
    ],
)
def test_derivatives_by_what_all_examples_share(derivative):
    x = cr.tensor([1.0, 2.0])
    examples = cr.tensor([[1.0, 2.0], [3.0, 4.0], [0.0, -1.0]])

    def of_one(v):
        return derivative(lambda x: cr.sin(x) * v, x)

    together = vmap(of_one)(examples)
    one_by_one = cr.stack([of_one(v) for v in examples])
    assert one_by_one.any() and cr.allclose(together, one_by_one)


def test_no_result_shares_memory_with_another_or_with_a_cotangent():
    one, other = jacrev(lambda x, y: x + y, (0, 1))(np.ones(2), np.ones(2))
    assert not np.shares_memory(one, other)
    g = cr.ones(2)
    (pulled,) = vjp(lambda x: x, cr.ones(2))[1](g)
    assert not np.shares_memory(pulled.numpy(), g.numpy())
    x, rows = cr.ones(2, requires_grad=True), cr.ones(3, 2)
    (batched,) = cr.autograd.grad(x.view(2), x, rows, is_grads_batched=True)
    assert not np.shares_memory(batched.numpy(), rows.numpy())


def test_the_transpose_of_the_identity_conjugates_nothing():
    c = np.array([1 + 2j, 3 - 1j])
    assert (linear_transpose(lambda x: x, np.zeros(2, complex))(c)[0] == c).all()
