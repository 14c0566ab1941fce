"""torch.autograd.forward_ad: levels, dual tensors, operations that propagate tangents, and both modes combined."""

import pytest

from behaviour import OURS, differs, torch

fw = torch.autograd.forward_ad
X = torch.tensor([1.0, 2.0])
V = torch.tensor([3.0, 4.0])


@pytest.fixture
def level():
    with fw.dual_level():
        yield


def dual(x=None, v=None):
    return fw.make_dual((X if x is None else x).clone(), (V if v is None else v).clone())


def tangent(x):
    return fw.unpack_dual(x).tangent


def same(got, want):
    assert torch.allclose(got, torch.as_tensor(want, dtype=got.dtype), atol=1e-5), (got, want)


# -- levels ----------------------------------------------------------------------------------------------------------


def test_a_level_is_needed():
    with pytest.raises(RuntimeError, match="no level exists, make sure to enter_dual_level"):
        fw.make_dual(X, V)
    with pytest.raises(RuntimeError, match="forward AD level with an invalid index"):
        fw.make_dual(X, V, level=0)
    assert fw.unpack_dual(X).tangent is None


def test_levels_do_not_nest():
    with fw.dual_level(), pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
        fw.enter_dual_level()
    with fw.dual_level():
        same(tangent(dual() * 2), [6.0, 8.0])


def test_entering_and_leaving_by_hand():
    assert fw.enter_dual_level() == 0
    try:
        same(tangent(dual()), [3.0, 4.0])
        with pytest.raises(RuntimeError, match="not the last one that was created"):
            fw.exit_dual_level(level=3)
    finally:
        fw.exit_dual_level(level=0)
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fw.exit_dual_level()


def test_the_level_closes_after_an_error():
    with pytest.raises(ZeroDivisionError), fw.dual_level():
        raise ZeroDivisionError
    with fw.dual_level() as number:
        assert number == 0


def test_as_a_decorator():
    @fw.dual_level()
    def slope(x):
        return tangent(fw.make_dual(x, torch.ones(2)) ** 2)

    same(slope(X), [2.0, 4.0])
    same(slope(X), [2.0, 4.0])


# -- creating and unpacking -------------------------------------------------------------------------------------------


def test_unpacking(level):
    unpacked = fw.unpack_dual(dual())
    assert type(unpacked) is fw.UnpackedDualTensor and unpacked._fields == ("primal", "tangent")
    primal, t = unpacked
    same(primal, X)
    same(t, V)
    assert tangent(primal) is None and tangent(t) is None and tangent(X) is None


@pytest.mark.parametrize(
    ("primal", "t", "error", "words"),
    [
        (X, torch.ones(3), RuntimeError, "forward gradient that has a different size than that of the original Tensor"),
        (torch.tensor([1, 2]), V, ValueError, "Expected primal to be floating point or complex, but got: torch.int64"),
        (X, torch.tensor([1, 2]), ValueError, "Expected tangent to be floating point or complex, but got: torch.int64"),
        (X, None, (TypeError, AttributeError), None),
        (1.0, V, (TypeError, AttributeError), None),
    ],
)
def test_what_make_dual_refuses(level, primal, t, error, words):
    with pytest.raises(error, match=words):
        fw.make_dual(primal, t)


def test_a_dual_tensor_is_not_made_dual_again(level):
    with pytest.raises(RuntimeError, match="already has a forward gradient at the same level"):
        fw.make_dual(dual(), V)


def test_unpack_dual_takes_tensors_only(level):
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        fw.unpack_dual(1.0)


def test_the_tangent_may_be_expanded(level):
    same(tangent(fw.make_dual(X, torch.tensor(2.0).expand(2)) * 1), [2.0, 2.0])


def test_complex_primals(level):
    z = fw.make_dual(torch.tensor([1 + 2j]), torch.tensor([1j]))
    same(tangent(z * z), [-4 + 2j])


@differs("a complex tangent of a real tensor is kept")
def test_complex_tangents_of_real_tensors_are_refused(level):
    with pytest.raises(RuntimeError, match="complex forward gradient"):
        fw.make_dual(X, torch.ones(2, dtype=torch.complex64))


# -- propagation of tangents ------------------------------------------------------------------------------------------


def test_operations(level):
    x = dual()
    same(tangent(x.exp()), X.exp() * V)
    same(tangent((x * x).sum()), 22.0)
    same(tangent(x @ x), 22.0)
    same(tangent(torch.stack([x, X])), [[3.0, 4.0], [0.0, 0.0]])
    same(tangent(x.view(2, 1)), [[3.0], [4.0]])
    same(tangent(x.max(0).values), 4.0)
    same(tangent(x[1]), 4.0)
    same(tangent(torch.linalg.inv(torch.diag(x))), torch.diag(-V / X**2))
    assert tangent(x.double()).dtype == torch.float64
    assert tangent(x > 1) is None
    assert tangent(x.clone()) is not None


def test_cutting_the_path_drops_the_tangent(level):
    x = dual()
    assert tangent(x.detach()) is None
    assert tangent(x.data) is None
    y = x * 1
    assert tangent(y.detach_()) is None


def test_gradient_mode_does_not_matter_and_inference_mode_does(level):
    x = dual()
    with torch.no_grad():
        same(tangent(x * 2), [6.0, 8.0])
    with torch.inference_mode():
        assert tangent(x) is None
        y = x * 2
    assert tangent(y) is None
    same(tangent(x), [3.0, 4.0])


def test_the_switch(level):
    x = dual()
    with fw._set_fwd_grad_enabled(False):
        assert not fw._is_fwd_grad_enabled()
        assert tangent(x) is None
        y = x * 2
        z = fw.make_dual(X, V)
    assert tangent(y) is None
    same(tangent(x), [3.0, 4.0])
    same(tangent(z), [3.0, 4.0])


def test_numbers_of_a_dual_tensor(level):
    x = dual()
    assert x.tolist() == [1.0, 2.0]
    assert x[0].item() == 1.0 and float(x[1]) == 2.0 and int(x[1]) == 2
    assert bool(x[0] > 0)
    assert f"{x[0]:.2f}" == "1.00"
    assert len(x) == 2 and [tangent(e).item() for e in x] == [3.0, 4.0]
    assert x.detach().numpy().tolist() == [1.0, 2.0]
    assert (x.shape, x.dtype, x.stride(), x.is_contiguous()) == ((2,), torch.float32, (1,), True)


@differs("numpy() of a dual tensor is its primal")
def test_numpy_does_not_lose_the_tangent_silently(level):
    with pytest.raises(RuntimeError, match=r"detach\(\).numpy\(\)"):
        dual().numpy()


def test_writing_in_place(level):
    x = dual()
    x.mul_(2)
    same(tangent(x), [6.0, 8.0])
    y = torch.zeros(2)
    y.copy_(dual())
    same(tangent(y), [3.0, 4.0])
    y = torch.zeros(3)
    y[1:] = dual()
    same(tangent(y), [0.0, 3.0, 4.0])
    y = X.clone()
    y.mul_(dual())
    same(tangent(y), [3.0, 8.0])
    x = dual()
    x[0] = 7.0
    same(tangent(x), [0.0, 4.0])


def test_writing_into_views(level):
    x = dual()
    x[1:].mul_(10)
    same(x, [1.0, 20.0])
    same(tangent(x), [3.0, 40.0])
    x = dual() * 1
    part = x[1:]
    x.mul_(10)
    same(tangent(part), [40.0])


def test_printing(level):
    assert repr(dual()) == "tensor([1., 2.], tangent=tensor([3., 4.]))"
    assert repr(dual().sum()) == "tensor(3., tangent=7.0)"
    leaf = dual().requires_grad_()
    assert repr(leaf) == "tensor([1., 2.], requires_grad=True, tangent=tensor([3., 4.]))"
    assert repr((leaf * 2).detach()) == "tensor([2., 4.])"


# -- after the level -------------------------------------------------------------------------------------------------


def test_dual_tensors_become_ordinary_ones():
    with fw.dual_level():
        x = dual()
        y = x * 2
        w = X.clone()
        w.mul_(x)
        part = y[1:]
    for tensor, values in ((x, [1.0, 2.0]), (y, [2.0, 4.0]), (w, [1.0, 4.0]), (part, [4.0])):
        assert tensor.numpy().tolist() == values
        assert tangent(tensor) is None and "tangent" not in repr(tensor)
    same(y * 3 + X, [7.0, 14.0])
    with fw.dual_level():
        assert tangent(y) is None and tangent(x * y) is None
        same(tangent(y * dual()), [6.0, 16.0])


def test_history_outlives_the_level():
    x = X.clone().requires_grad_()
    with fw.dual_level():
        y = (fw.make_dual(x, V) ** 3).sum()
        t = tangent(y)
    assert y.requires_grad and y.grad_fn is not None and not y.is_leaf
    same(torch.autograd.grad(y, x)[0], [3.0, 12.0])
    same(torch.autograd.grad(t, x)[0], [18.0, 48.0])


def test_a_dual_leaf_outlives_the_level():
    with fw.dual_level():
        x = dual().requires_grad_()
        y = (x**2).sum()
    y.backward()
    assert x.is_leaf and x.requires_grad
    same(x.grad, [2.0, 4.0])


# -- with reverse mode -----------------------------------------------------------------------------------------------


def test_what_requires_grad(level):
    x, v = X.clone().requires_grad_(), V.clone().requires_grad_()
    d = fw.make_dual(x, V)
    assert (d.requires_grad, d.is_leaf, d.grad_fn is not None) == (True, False, True)
    d = fw.make_dual(X, v)
    assert (d.requires_grad, d.is_leaf, d.grad_fn) == (False, True, None)
    assert tangent(d).requires_grad and not fw.unpack_dual(d).primal.requires_grad
    d = dual().requires_grad_()
    assert (d.requires_grad, d.is_leaf, d.grad_fn) == (True, True, None)
    d.requires_grad_(False)
    assert not d.requires_grad and tangent(d) is not None


def test_reverse_over_forward(level):
    x, v = X.clone().requires_grad_(), V.clone().requires_grad_()
    t = tangent((fw.make_dual(x, v) ** 3).sum())
    gx, gv = torch.autograd.grad(t, (x, v))
    same(gx, 6 * X * V)
    same(gv, 3 * X**2)


@pytest.mark.parametrize("create_graph", [False, True])
def test_forward_over_reverse(level, create_graph):
    x = X.clone().requires_grad_()
    d = fw.make_dual(x, V)
    for wrt in (d, x):
        (g,) = torch.autograd.grad((d**3).sum(), wrt, create_graph=create_graph)
        primal, t = fw.unpack_dual(g)
        same(primal, 3 * X**2)
        same(t, 6 * X * V)
        assert (primal.requires_grad, t.requires_grad) == (create_graph, create_graph)
    if create_graph:
        same(torch.autograd.grad(t.sum(), x)[0], 6 * V)


def test_forward_over_reverse_for_a_computed_input(level):
    x = X.clone().requires_grad_()
    d = fw.make_dual(x, V)
    e = torch.exp(d)
    (g,) = torch.autograd.grad((e * e).sum(), e)
    same(fw.unpack_dual(g).primal, 2 * X.exp())
    same(tangent(g), 2 * X.exp() * V)


def test_forward_over_reverse_for_several_inputs(level):
    x = X.clone().requires_grad_()
    d = fw.make_dual(x, V)
    e = d * d
    gd, ge = torch.autograd.grad((e * e * d).sum(), (d, e))
    same(tangent(ge), 6 * X**2 * V)
    same(tangent(gd), 20 * X**3 * V)


def test_a_moving_cotangent(level):
    x = X.clone().requires_grad_()
    d = fw.make_dual(x, V)
    (g,) = torch.autograd.grad((d**3).sum(), d, grad_outputs=fw.make_dual(torch.tensor(1.0), torch.tensor(1.0)))
    same(tangent(g), 6 * X * V + 3 * X**2)
    y = x**3  # has no tangent itself
    (g,) = torch.autograd.grad(y, x, grad_outputs=fw.make_dual(torch.ones(2), V))
    same(tangent(g), 3 * X**2 * V)


def test_weights_that_do_not_move(level):
    w = X.clone().requires_grad_()
    y = (w * dual(V, X)).sum()
    assert y.requires_grad
    same(tangent(y), 5.0)
    (g,) = torch.autograd.grad(y, w, retain_graph=True)
    same(fw.unpack_dual(g).primal, V)
    same(tangent(g), X)
    same(torch.autograd.grad(tangent(y), w)[0], X)


def test_backward_collects_primals(level):
    x = X.clone().requires_grad_()
    y = fw.make_dual(x, V) ** 3
    seen = []
    y.register_hook(seen.append)
    y.retain_grad()
    y.sum().backward()
    same(x.grad, 3 * X**2)
    same(y.grad, torch.ones(2))
    assert len(seen) == 1 and tangent(x.grad) is None
    leaf = dual().requires_grad_()
    (leaf**3).sum().backward()
    same(leaf.grad, 3 * X**2)


def test_batched_gradients_of_dual_tensors(level):
    x = X.clone().requires_grad_()
    d = fw.make_dual(x, V)
    (g,) = torch.autograd.grad(d**3, d, torch.eye(2), is_grads_batched=True)
    same(fw.unpack_dual(g).primal if OURS else g, torch.diag(3 * X**2))


def test_errors_of_grad_for_dual_tensors(level):
    d = dual()
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        torch.autograd.grad((d * d).sum(), d)
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        (d * d).sum().backward()
    w = X.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        torch.autograd.grad((w * d).sum(), (w, d))
    other = X.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad((w * d).sum(), other)
    assert torch.autograd.grad((w * d).sum(), other, allow_unused=True) == (None,)


# -- with transformations --------------------------------------------------------------------------------------------


def test_grad_and_vmap_inside(level):
    d = dual()
    same(tangent(torch.func.vmap(lambda z: z**3)(d)), 3 * X**2 * V)
    g = torch.func.grad(lambda z: (z**3).sum())(d)
    same(tangent(g), 6 * X * V)


@differs("forward mode does not nest, and make_dual has no batching rule")
def test_levels_compose_with_transformations():
    def slope(z):
        with fw.dual_level():
            return tangent(fw.make_dual(z, torch.ones_like(z)) ** 3)

    y, t = torch.func.jvp(slope, (X,), (V,))
    same(y, 3 * X**2)
    same(t, 6 * X * V)
    same(torch.func.grad(lambda z: slope(z).sum())(X), 6 * X)
    same(torch.func.vmap(slope)(X), 3 * X**2)
    with fw.dual_level():
        y, t = torch.func.jvp(lambda z: z**3, (dual(),), (torch.ones(2),))
        same(tangent(t), 6 * X * V)


def test_tangent_that_has_a_tangent():
    x, t = torch.ones(2), torch.ones(2)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        with pytest.raises(RuntimeError, match="has a forward gradient at the same level"):
            fw.make_dual(torch.ones(2), dual)
