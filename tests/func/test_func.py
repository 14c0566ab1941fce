"""Transformations of functions: every name of torch.func, every argument, and the errors."""

import collections
import functools

import numpy as np
import pytest

from behaviour import differs, torch

grad, grad_and_value, vjp, jvp, vmap = (
    getattr(torch.func, n) for n in ("grad", "grad_and_value", "vjp", "jvp", "vmap")
)
jacrev, jacfwd, hessian, linearize = (getattr(torch.func, n) for n in ("jacrev", "jacfwd", "hessian", "linearize"))

Point = collections.namedtuple("Point", "x y")


def t(values, **kw):
    return torch.tensor(values, dtype=torch.float64, **kw)


def close(got, expected):
    np.testing.assert_allclose(got.detach().numpy(), np.asarray(expected), rtol=1e-8, atol=1e-12)


x = t([1.0, 2.0, 3.0])
A = t([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


# -- grad ------------------------------------------------------------------------------------------------------------


def test_grad_argnums():
    f = lambda a, b: (a * b**2).sum()
    close(grad(f)(x, 2 * x), 4 * x**2)
    close(grad(f, argnums=1)(x, 2 * x), 4 * x**2)
    close(grad(f, argnums=-1)(x, x), 2 * x**2)
    both = grad(f, argnums=(1, 0))(x, x)
    assert isinstance(both, tuple) and len(both) == 2
    close(both[0], 2 * x**2)
    close(both[1], x**2)
    (only,) = grad(f, argnums=(0,))(x, x)
    close(only, x**2)


def test_grad_keywords_are_not_differentiated():
    close(grad(lambda a, k=1.0: (a * k).sum())(x, k=3.0), [3.0, 3.0, 3.0])


def test_grad_has_aux():
    g, aux = grad(lambda a: ((a**2).sum(), a * 3), has_aux=True)(x)
    close(g, 2 * x)
    close(aux, 3 * x)
    assert not aux.requires_grad
    g, (value, aux) = grad_and_value(lambda a: ((a**2).sum(), {"k": a * 3}), has_aux=True)(x)
    close(value, 14.0)
    close(aux["k"], 3 * x)


@differs("auxiliary output must be tensors")
def test_aux_can_be_anything():
    _, aux = grad(lambda a: ((a**2).sum(), ("name", None, 3)), has_aux=True)(x)
    assert aux == ("name", None, 3)


def test_grad_and_value():
    g, value = grad_and_value(lambda a: (a**2).sum())(x)
    close(g, 2 * x)
    close(value, 14.0)
    assert not value.requires_grad and not g.requires_grad


def test_grad_of_containers():
    def f(p):
        return (p["w"] * p["b"][0]).sum() + p["b"][1].sum() ** 2

    g = grad(f)({"w": x, "b": [2 * x, x]})
    assert list(g) == ["w", "b"] and isinstance(g["b"], list)
    close(g["w"], 2 * x)
    close(g["b"][0], x)
    close(g["b"][1], [12.0, 12.0, 12.0])
    p = grad(lambda p: (p.x * p.y).sum())(Point(x, 2 * x))
    assert isinstance(p, Point)
    close(p.x, 2 * x)
    ordered = grad(lambda d: d["a"].sum())(collections.OrderedDict(a=x))
    assert isinstance(ordered, collections.OrderedDict)


def test_unused_argument_gets_zeros():
    _, b = grad(lambda a, b: a.sum(), argnums=(0, 1))(x, A)
    close(b, np.zeros((2, 3)))


def test_grad_nested():
    close(grad(grad(torch.sin))(t(0.5)), -np.sin(0.5))
    close(grad(lambda a: a * grad(lambda b: a + b)(a))(t(2.0)), 1.0)
    close(grad(grad(grad(lambda a: a**4)))(t(1.0)), 24.0)


def test_grad_is_connected_to_what_is_outside():
    w = t([2.0, 3.0, 4.0], requires_grad=True)
    g = grad(lambda a: (a**2 * w).sum())(x)
    assert g.requires_grad
    g.sum().backward()
    close(w.grad, 2 * x)
    inside = t(3.0, requires_grad=True)
    second = grad(lambda a: a**3)(inside)
    second.backward()
    close(inside.grad, 18.0)


def test_modes():
    with torch.no_grad():
        close(grad(lambda a: (a**2).sum())(x), 2 * x)

    def f(a):
        with torch.no_grad():
            c = a**2
        return (a - c).sum()

    close(grad(f)(x), [1.0, 1.0, 1.0])  # the mode inside applies
    close(jvp(f, (x,), (x,))[1], (x - 2 * x**2).sum())  # and only affects reverse mode
    close(grad(lambda a: (a.detach() * a).sum())(x), x)


def test_hooks_inside_grad():
    def f(a):
        a.register_hook(lambda g: 2 * g)
        y = a**2
        y.register_hook(lambda g: 10 * g)
        return y.sum()

    close(grad(f)(x), 40 * x)


def test_autograd_grad_inside():
    def f(a):
        (g,) = torch.autograd.grad((a**3).sum(), a, create_graph=True)
        return g.sum()

    close(grad(f)(x), 6 * x)


def test_in_place_inside():
    def f(a):
        y = a * 1
        y[0] = y[1] * 2
        y.mul_(3)
        return (y * y).sum()

    close(grad(f)(x), [0.0, 18 * 5 * 2.0, 18 * 3.0])
    close(vmap(grad(f))(torch.stack([x, x]))[1], [0.0, 180.0, 54.0])
    close(jvp(f, (x,), (t([1.0, 1.0, 0.0]),))[1], 180.0)


@pytest.mark.parametrize(
    "f, words",
    [
        (lambda a: a, "Expected f\\(\\*args\\) to return a scalar Tensor, got tensor with 1 dims"),
        (lambda a: 1.0, "Expected f\\(\\*args\\) to return a Tensor, got <class 'float'>"),
        (lambda a: (a.sum(), 1), "to return a Tensor, got <class 'tuple'>"),
    ],
)
def test_grad_of_what_is_no_scalar(f, words):
    with pytest.raises(RuntimeError, match=words):
        grad(f)(x)


def test_grad_errors():
    f = lambda a: a.sum()
    with pytest.raises(RuntimeError, match="Got argnum=1, but only 1 positional inputs"):
        grad(f, argnums=1)(x)
    with pytest.raises(RuntimeError, match="Got argnum=-2, but only 1 positional inputs"):
        grad(f, argnums=(0, -2))(x)
    with pytest.raises(RuntimeError, match="argnums must be int or Tuple"):
        grad(f, argnums=[0])(x)
    with pytest.raises(RuntimeError, match="argnums must be non-empty"):
        grad(f, argnums=())(x)
    with pytest.raises(RuntimeError, match="argnums elements must be unique"):
        grad(lambda a, b: a.sum(), argnums=(0, -2))(x, x)
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require gradients"):
        grad(f)(torch.arange(3))
    with pytest.raises(ValueError, match="Thing passed to transform API must be Tensor, got <class 'str'>"):
        grad(f)("text")
    with pytest.raises(RuntimeError, match="output of function f should be a tuple: \\(output, aux\\)"):
        grad(f, has_aux=True)(x)
    with pytest.raises(RuntimeError, match="output of function f should be a tuple"):
        grad(lambda a: (a.sum(), 1, 2), has_aux=True)(x)


def test_integer_output_gives_zeros():
    close(grad(lambda a: a.sum().long())(x), np.zeros(3))


# -- vjp -------------------------------------------------------------------------------------------------------------


def test_vjp():
    y, pull = vjp(lambda a, b: (a * b, a.sum()), x, 2 * x)
    close(y[0], 2 * x**2)
    ga, gb = pull((x, t(1.0)))
    close(ga, 2 * x**2 + 1)
    close(gb, x**2)
    ga, _ = pull((2 * x, t(0.0)))  # called again
    close(ga, 4 * x**2)


def test_vjp_of_containers_with_aux():
    y, pull, aux = vjp(lambda d: ({"o": d["a"] ** 2}, d["a"] + 1), {"a": x}, has_aux=True)
    (g,) = pull({"o": x})
    close(g["a"], 2 * x**2)
    close(aux, x + 1)
    assert list(y) == ["o"] and not y["o"].requires_grad


def test_vjp_fn_inside_other_transformations():
    _, pull = vjp(torch.sin, x)
    close(vmap(pull)(torch.eye(3, dtype=torch.float64))[0], np.diag(np.cos(x.numpy())))
    close(jvp(lambda u: pull(u)[0], (x,), (t([1.0, 0, 0]),))[1], [np.cos(1.0), 0, 0])
    close(grad(lambda u: pull(u)[0].sum())(x), np.cos(x.numpy()))


def test_vjp_complex():
    z = torch.tensor([1 + 2j, -0.5j], dtype=torch.complex128)
    _y, pull = vjp(lambda a: a * a.conj() * (1 + 1j) + a**2, z)
    ct = torch.tensor([1j, 2.0 + 0j], dtype=torch.complex128)
    # the adjoint under the real inner product
    _, push = jvp(lambda a: a * a.conj() * (1 + 1j) + a**2, (z,), (ct,))
    (g,) = pull(ct)
    left = (push.conj() * ct).real.sum()
    right = (ct.conj() * g).real.sum()
    close(left, right.numpy())


def test_vjp_errors():
    with pytest.raises(RuntimeError, match="expected f\\(\\*primals\\) to return only tensors, got unsupported type"):
        vjp(lambda a: 1.0, x)
    with pytest.raises(RuntimeError, match="All outputs of f must be floating-point or complex Tensors"):
        vjp(lambda a: a.long(), x)
    with pytest.raises(RuntimeError, match="Expected f to be a function that has non-empty output"):
        vjp(lambda a: (), x)
    with pytest.raises(RuntimeError, match="output of function f should be a tuple"):
        vjp(lambda a: a, x, has_aux=True)
    _, pull = vjp(lambda a: (a, a * 2), x)
    with pytest.raises(RuntimeError, match="Expected pytree structure of cotangents to be the same"):
        pull(x)
    with pytest.raises(RuntimeError, match="Expected pytree structure of cotangents to be the same"):
        pull([x, x])
    with pytest.raises(RuntimeError, match="Mismatch in shape: grad_output\\[0\\] has a shape of"):
        pull((x[:2], x))


# -- jvp and linearize -----------------------------------------------------------------------------------------------


def test_jvp():
    y, dy = jvp(lambda a, b: a * b, (x, 2 * x), (t([1.0, 0, 0]), t([0.0, 1.0, 0])))
    close(y, 2 * x**2)
    close(dy, [2.0, 2.0, 0])
    y, dy, aux = jvp(lambda a: (a**2, a + 1), (x,), (x,), has_aux=True)
    close(dy, 2 * x**2)
    close(aux, x + 1)


def test_jvp_of_containers():
    _y, dy = jvp(lambda d: {"o": d["a"] ** 2, "c": (t(1.0),)}, ({"a": x},), ({"a": x},))
    close(dy["o"], 2 * x**2)
    close(dy["c"][0], 0.0)


def test_jvp_strict_and_integer_outputs():
    with pytest.raises(RuntimeError, match="The output of f is independent of the inputs"):
        jvp(lambda a: torch.ones(3), (x,), (x,), strict=True)
    _y, dy = jvp(lambda a: (a * 2).long(), (x,), (x,))
    assert dy.dtype == torch.int64 and not dy.any()


def test_control_flow_on_values_inside_jvp():
    f = lambda a: a**2 if a.sum() > 0 else -a
    close(jvp(f, (x,), (x,))[1], 2 * x**2)
    close(jvp(lambda a: a * a.sum().item(), (x,), (x,))[1], 6 * x)


def test_jvp_errors():
    f = lambda a: a
    with pytest.raises(RuntimeError, match="Expected primals to be a tuple"):
        jvp(f, x, x)
    with pytest.raises(RuntimeError, match="Expected primals and tangents to have the same python structure"):
        jvp(f, (x,), (x, x))
    with pytest.raises(RuntimeError, match="forward gradient that has a different size"):
        jvp(f, (x,), (x[:2],))
    with pytest.raises(ValueError, match="Expected tangent to be floating point or complex"):
        jvp(f, (x,), (torch.arange(3),))
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
        jvp(f, (torch.arange(3),), (x,))
    with pytest.raises(RuntimeError, match="expected f\\(\\*primals\\) to return only tensors"):
        jvp(lambda a: 1.0, (x,), (x,))
    with pytest.raises(RuntimeError, match="output of function f should be a tuple"):
        jvp(f, (x,), (x,), has_aux=True)
    with pytest.raises(RuntimeError, match="to contain at least one Tensor"):
        jvp(lambda: x, (), ())


def test_linearize():
    y, push = linearize(lambda a, b: torch.sin(a) * b, x, 2 * x)
    close(y, np.sin(x.numpy()) * 2 * x.numpy())
    for v in (x, t([1.0, 0, 0])):
        close(push(v, v), v.numpy() * (np.cos(x.numpy()) * 2 * x.numpy() + np.sin(x.numpy())))


def test_linearize_errors():
    _, push = linearize(torch.sin, x)
    with pytest.raises(RuntimeError, match=r"tangent:0 with shape .* doesn't match the shape"):
        push(x[:2])
    with pytest.raises(RuntimeError, match=r"tangent:0 with dtype .* doesn't match the dtype"):
        push(x.float())
    with pytest.raises(RuntimeError, match="to have the same argspec as the primals"):
        push(x, x)


# -- vmap ------------------------------------------------------------------------------------------------------------

B = t(np.arange(12.0).reshape(2, 3, 2).tolist())


@pytest.mark.parametrize("in_dim", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("out_dim", [0, 1, -1, -2])
def test_vmap_dims(in_dim, out_dim):
    got = vmap(lambda a: a * 2, in_dims=in_dim, out_dims=out_dim)(B)
    close(got, np.moveaxis(2 * B.numpy(), in_dim, out_dim))


def test_vmap_in_dims_trees():
    f = lambda d, k: d["a"] * d["b"][0] * k
    got = vmap(f, in_dims=({"a": 1, "b": (None,)}, None))({"a": A, "b": (t([10.0, 100.0]),)}, 2)
    close(got, 2 * A.numpy().T * [10.0, 100.0])
    got = vmap(f, in_dims=({"a": 0, "b": None}, None))({"a": A, "b": (x,)}, 2)
    close(got, 2 * A.numpy() * x.numpy())
    got = vmap(lambda p: p.x * p.y, in_dims=(Point(0, None),))(Point(A, x))
    close(got, A.numpy() * x.numpy())


def test_vmap_out_dims_trees():
    a, b = vmap(lambda r: (r, r * 2), out_dims=(0, 1))(A)
    close(a, A.numpy())
    close(b, 2 * A.numpy().T)
    d = vmap(lambda r: {"p": r, "q": [r, r]}, out_dims={"p": 1, "q": 0})(A)
    close(d["p"], A.numpy().T)
    close(d["q"][1], A.numpy())
    lst = vmap(lambda r: [r, r], out_dims=[0, 1])(A)
    assert isinstance(lst, list)
    close(lst[1], A.numpy().T)
    close(vmap(lambda r: r, out_dims=(1,))(A), A.numpy().T)


def test_vmap_out_dims_none():
    assert vmap(lambda r: 3, out_dims=None)(A) == 3
    a, b = vmap(lambda r: (r, "text"), out_dims=(0, None))(A)
    close(a, A.numpy())
    assert b == "text"
    with pytest.raises(ValueError, match="can not return a BatchedTensor when out_dim is None"):
        vmap(lambda r: r, out_dims=None)(A)


def test_vmap_keywords_are_shared():
    close(vmap(lambda r, k: (r * k).sum())(A, k=x), (A * x).sum(1).numpy())


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 100])
def test_vmap_chunk_size(chunk_size):
    f = lambda r, s: (torch.dot(r, s), r * 2)
    a, b = vmap(f, in_dims=(0, None), out_dims=(0, 1), chunk_size=chunk_size)(
        t(np.arange(15.0).reshape(5, 3).tolist()), x
    )
    close(a, np.arange(15.0).reshape(5, 3) @ x.numpy())
    close(b, 2 * np.arange(15.0).reshape(5, 3).T)
    w = t([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    vmap(lambda r: (r**2).sum(), chunk_size=chunk_size)(w).sum().backward()
    close(w.grad, 2 * w.detach().numpy())


def test_vmap_of_a_partial_and_nested():
    f = functools.partial(lambda k, r: r * k, 3)
    close(vmap(f)(A), 3 * A.numpy())
    close(vmap(vmap(torch.dot, in_dims=(None, 0)), in_dims=(0, None))(A, A), A.numpy() @ A.numpy().T)


def test_vmap_per_sample_gradients():
    w, b = t([[1.0, -1.0, 0.5], [0.2, 0.3, -0.4]]), t([0.1, 0.2])
    data, target = t([[1.0, 2, 3], [0, 1, -1], [2, 0, 1], [1, 1, 1]]), t([[0.0, 1], [1, 0], [1, 1], [0, 0]])
    loss = lambda p, r, y: ((torch.tanh(p[0] @ r + p[1]) - y) ** 2).sum()
    gw, gb = vmap(grad(loss), in_dims=(None, 0, 0))((w, b), data, target)
    assert gw.shape == (4, 2, 3) and gb.shape == (4, 2)
    for i in range(4):
        ew, eb = grad(loss)((w, b), data[i], target[i])
        close(gw[i], ew.numpy())
        close(gb[i], eb.numpy())


def test_vmap_in_dims_errors():
    f = lambda *a: a[0]
    for dims in ([0], "a", None):
        with pytest.raises(ValueError, match="expected `in_dims` to be int or a \\(potentially nested\\) tuple"):
            vmap(f, in_dims=dims)(A)
    with pytest.raises(ValueError, match="Expected at least one Tensor to vmap over"):
        vmap(f, in_dims=(None,))(A)
    for dim in (2, -3):
        with pytest.raises(ValueError, match="dimensionality 2 so expected in_dim to satisfy -2 <= in_dim < 2"):
            vmap(f, in_dims=dim)(A)
    with pytest.raises(ValueError, match="in_dims is not compatible with the structure of `inputs`"):
        vmap(f, in_dims=(0, 0))(A)
    with pytest.raises(ValueError, match="We cannot vmap over non-Tensor arguments"):
        vmap(f)(A, 1.0)
    with pytest.raises(ValueError, match="in_dim must be either an integer dimension or None"):
        vmap(f, in_dims=(0.5,))(A)
    with pytest.raises(ValueError, match="got no inputs"):
        vmap(f)()
    with pytest.raises(
        ValueError, match="Expected all tensors to have the same size in the mapped dimension, got sizes"
    ):
        vmap(f)(A, A.T)
    with pytest.raises(ValueError, match="dimensionality 0"):
        vmap(f)(t(1.0))


def test_vmap_out_dims_errors():
    with pytest.raises(ValueError, match="must only return Tensors, got type <class 'float'>"):
        vmap(lambda r: 1.0)(A)
    with pytest.raises(ValueError, match="must only return Tensors, got type <class 'NoneType'>"):
        vmap(lambda r: None)(A)
    with pytest.raises(ValueError, match="`out_dims` must be an int, None or a python collection of ints"):
        vmap(lambda r: r, out_dims=0.5)(A)
    with pytest.raises(ValueError, match="out_dims is not compatible with the structure of `outputs`"):
        vmap(lambda r: r, out_dims=(0, 0))(A)
    with pytest.raises(ValueError, match="out_dims is not compatible with the structure of `outputs`"):
        vmap(lambda r: (r, r), out_dims=(0,))(A)
    with pytest.raises(IndexError, match="Dimension out of range"):
        vmap(lambda r: r, out_dims=5)(A)
    with pytest.raises(ValueError, match="chunk_size should be None or greater than 0"):
        vmap(lambda r: r, chunk_size=0)(A)


def test_data_dependent_code_inside_vmap():
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        vmap(lambda r: r if r.sum() > 0 else -r)(A)
    for f in (lambda r: r * r.sum().item(), lambda r: r * float(r.sum())):
        with pytest.raises(RuntimeError, match=r"It looks like you're calling \.item\(\) on a Tensor"):
            vmap(f)(A)
    with pytest.raises(RuntimeError, match="Cannot access data pointer of Tensor that doesn't have storage"):
        vmap(lambda r: torch.as_tensor(r.numpy()))(A)
    for f in (lambda r: r[r > 0], lambda r: r.nonzero(), lambda r: r.unique()):
        with pytest.raises(RuntimeError, match="dynamic shape"):
            vmap(f)(A)


def test_what_escapes_from_a_transformation():
    kept = []

    def f(r):
        kept.append(r * 2)
        return r.sum()

    vmap(f)(A)
    with pytest.raises(RuntimeError, match="escaped from inside a function being vmapped"):
        kept[0] + 1
    repr(kept[0])
    kept.clear()
    jvp(f, (x,), (x,))
    close(kept[0] + 1, 2 * x.numpy() + 1)
    kept.clear()
    grad(f)(x)
    close(kept[0] + 1, 2 * x.numpy() + 1)


# -- randomness ------------------------------------------------------------------------------------------------------

DRAWS = {
    "rand": lambda r: torch.rand(3),
    "randn": lambda r: torch.randn(3),
    "randint": lambda r: torch.randint(0, 1000, (3,)),
    "randperm": lambda r: torch.randperm(20),
    "rand_like": lambda r: torch.rand_like(r),
    "randn_like": lambda r: torch.randn_like(r),
    "normal": lambda r: torch.normal(0.0, 1.0, (3,)),
    "dropout": lambda r: torch.nn.functional.dropout(torch.ones_like(r).repeat(20)),
    "bernoulli": lambda r: torch.bernoulli(torch.full((50,), 0.5)),
    "normal_": lambda r: torch.empty_like(r).normal_(),
    "uniform_": lambda r: torch.empty_like(r).uniform_(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_randomness(name):
    draw = DRAWS[name]
    rows = t(np.ones((4, 3)).tolist())
    torch.manual_seed(0)
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        vmap(draw)(rows)
    same = vmap(draw, randomness="same")(rows)
    assert all(bool((same[i] == same[0]).all()) for i in range(4))
    different = vmap(draw, randomness="different")(rows)
    assert not bool((different[0] == different[1]).all()) and different.shape == same.shape


def test_randomness_of_batched_probabilities():
    p = t([[0.0, 1.0, 0.5], [1.0, 0.0, 0.5]])
    got = vmap(torch.bernoulli, randomness="different")(p)
    close(got[:, :2], [[0.0, 1.0], [1.0, 0.0]])
    picks = vmap(lambda w: torch.multinomial(w, 1), randomness="different")(t([[0.0, 1.0], [1.0, 0.0]]))
    assert picks.tolist() == [[1], [0]]
    picks = vmap(lambda w: torch.multinomial(w, 6, replacement=True), randomness="different")(
        t([[0.0, 1.0], [1.0, 0.0]])
    )
    assert picks.tolist() == [[1] * 6, [0] * 6]


def test_randomness_of_nested_vmaps():
    torch.manual_seed(0)
    draw = lambda r: torch.rand(())
    got = vmap(vmap(draw, randomness="same"), randomness="different")(A)
    assert bool((got[0] == got[0, 0]).all()) and got[0, 0] != got[1, 0]
    got = vmap(vmap(draw, randomness="different"), randomness="same")(A)
    assert bool((got[0] == got[1]).all()) and got[0, 0] != got[0, 1]
    got = vmap(vmap(draw, randomness="different"), randomness="different")(A)
    assert len(set(got.flatten().tolist())) == 6
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(vmap(draw, randomness="different"))(A)


def test_randomness_with_derivatives_and_chunks():
    torch.manual_seed(0)
    f = lambda r: (r * torch.rand(3, dtype=torch.float64)).sum()
    rows = t(np.ones((4, 3)).tolist())
    g = vmap(grad(f), randomness="different")(rows)
    assert not bool((g[0] == g[1]).all())
    same = vmap(lambda r: torch.rand(2), randomness="same", chunk_size=2)(rows)
    assert all(bool((same[i] == same[0]).all()) for i in range(4))
    with pytest.raises(RuntimeError, match="Only allowed values for randomness are 'error', 'different', or 'same'"):
        vmap(f, randomness="other")(rows)


def test_no_random_numbers_no_error():
    close(vmap(lambda r: torch.nn.functional.dropout(r, training=False))(A), A.numpy())


# -- Jacobians -------------------------------------------------------------------------------------------------------

JACOBIANS = pytest.mark.parametrize("jac", [jacrev, jacfwd], ids=["jacrev", "jacfwd"])


@JACOBIANS
def test_jacobian_shapes(jac):
    close(jac(lambda a: torch.sin(a))(x), np.diag(np.cos(x.numpy())))
    close(jac(lambda a: a.sum())(A), np.ones((2, 3)))
    close(jac(lambda a: a * 2)(t(1.0)), 2.0)
    j = jac(lambda a: torch.outer(a, a))(x)
    assert j.shape == (3, 3, 3)
    e = np.eye(3)
    v = x.numpy()
    close(j, np.einsum("ik,j->ijk", e, v) + np.einsum("i,jk->ijk", v, e))
    assert jac(lambda a: a[:0])(x).shape == (0, 3)
    assert jac(lambda a: a.sum(0, keepdim=True))(A[:1, :1]).shape == (1, 1, 1, 1)


@JACOBIANS
def test_jacobian_argnums(jac):
    f = lambda a, b: a * b**2
    close(jac(f)(x, x), np.diag(x.numpy() ** 2))
    close(jac(f, argnums=1)(x, x), np.diag(2 * x.numpy() ** 2))
    close(jacrev(f, argnums=-1)(x, x), np.diag(2 * x.numpy() ** 2))
    _ja, jb = jac(f, argnums=(0, 1))(x, x)
    close(jb, np.diag(2 * x.numpy() ** 2))
    ((only),) = jac(f, argnums=(1,))(x, x)
    close(only, np.diag(2 * x.numpy() ** 2))


@differs("jacfwd with a negative argnum returns zeros")
def test_jacfwd_counts_arguments_from_the_end():
    close(jacfwd(lambda a, b: a * b**2, argnums=-1)(x, x), np.diag(2 * x.numpy() ** 2))


@JACOBIANS
def test_jacobian_trees(jac):
    def f(d):
        return {"s": d["w"].sum() * d["b"], "t": (d["w"] ** 2,)}

    w, b = A, x
    j = jac(f)({"w": w, "b": b})
    assert sorted(j) == ["s", "t"] and sorted(j["s"]) == ["b", "w"] and isinstance(j["t"], tuple)
    close(j["s"]["w"], np.broadcast_to(b.numpy()[:, None, None], (3, 2, 3)))
    close(j["s"]["b"], 21 * np.eye(3))
    assert j["t"][0]["w"].shape == (2, 3, 2, 3)
    close(j["t"][0]["b"], np.zeros((2, 3, 3)))


@JACOBIANS
def test_jacobian_has_aux(jac):
    j, aux = jac(lambda a: (a**2, (a + 1, t(5.0))), has_aux=True)(x)
    close(j, np.diag(2 * x.numpy()))
    close(aux[0], x.numpy() + 1)
    close(aux[1], 5.0)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 50])
def test_jacrev_chunk_size(chunk_size):
    f = lambda a: (torch.outer(a, a).flatten(), a.sum(), a**2)
    for got, want in zip(jacrev(f, chunk_size=chunk_size)(x), jacrev(f)(x)):
        close(got, want.numpy())
    with pytest.raises(ValueError, match="`chunk_size` should be greater than 0"):
        jacrev(f, chunk_size=0)


def test_jacfwd_randomness():
    f = lambda a: a * torch.rand(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        jacfwd(f)(x)
    j = jacfwd(f, randomness="same")(x)
    assert float(j.sum() - j.diagonal().sum()) == 0


@JACOBIANS
def test_jacobian_of_what_does_not_depend(jac):
    close(jac(lambda a: torch.ones(2, dtype=torch.float64))(x), np.zeros((2, 3)))


@JACOBIANS
def test_jacobian_errors(jac):
    z = torch.tensor([1 + 1j])
    with pytest.raises(
        RuntimeError, match="Expected all inputs to be real but received complex tensor at flattened input idx: 0"
    ):
        jac(lambda a: a)(z)
    with pytest.raises(RuntimeError, match="Expected all outputs to be real but received complex"):
        jac(lambda a: a * z)(x)
    with pytest.raises(RuntimeError, match="Got argnum=2, but only 1 positional inputs"):
        jac(lambda a: a, argnums=2)(x)
    with pytest.raises(RuntimeError, match="output of function f should be a tuple"):
        jac(lambda a: a, has_aux=True)(x)
    with pytest.raises(RuntimeError, match="to return only tensors, got unsupported type"):
        jac(lambda a: (a, 2.0))(x)


def test_hessian():
    close(hessian(lambda a: (a**3).sum())(x), np.diag(6 * x.numpy()))
    hs = hessian(lambda a, b: (a**2 * b).sum(), argnums=(0, 1))(x, 2 * x)
    close(hs[0][0], np.diag(4 * x.numpy()))
    close(hs[0][1], np.diag(2 * x.numpy()))
    close(hs[1][1], np.zeros((3, 3)))
    tree = hessian(lambda d: (d["a"] * d["b"]).sum())({"a": x, "b": x})
    close(tree["a"]["b"], np.eye(3))
    vector = hessian(lambda a: a**3)(x)
    assert vector.shape == (3, 3, 3)


def test_jacobians_inside_other_transformations():
    close(vmap(jacrev(torch.sin))(A)[1], np.diag(np.cos(A[1].numpy())))
    close(vmap(jacfwd(torch.sin))(A)[1], np.diag(np.cos(A[1].numpy())))
    close(vmap(hessian(lambda a: (a**3).sum()))(A)[1], np.diag(6 * A[1].numpy()))
    for f in (
        jacfwd(jacrev(torch.sin)),
        jacrev(jacfwd(torch.sin)),
        jacfwd(jacfwd(torch.sin)),
        jacrev(jacrev(torch.sin)),
    ):
        second = f(x)
        for i in range(3):
            assert abs(second[i, i, i].item() + np.sin(x[i].item())) < 1e-12
        assert abs(second.sum().item() + np.sin(x.numpy()).sum()) < 1e-12
    w = t(2.0, requires_grad=True)
    jacrev(lambda a: a * w**2)(x).sum().backward()
    close(w.grad, 12.0)
    w.grad = None
    jacfwd(lambda a: a * w**2)(x).sum().backward()
    close(w.grad, 12.0)


def test_derivatives_keep_dtypes():
    s = x.float()
    assert grad(lambda a: (a**2).sum())(s).dtype == torch.float32
    assert jacrev(torch.sin)(s).dtype == jacfwd(torch.sin)(s).dtype == torch.float32
    assert jacrev(lambda a: a.double())(s).dtype == torch.float32


# -- others ----------------------------------------------------------------------------------------------------------


def test_debug_unwrap():
    seen = []

    def f(r):
        seen.append(torch.func.debug_unwrap(r))
        return r

    vmap(vmap(f))(A)
    assert seen[0].shape == (2, 3)
    close(seen[0], A.numpy())
    jvp(f, (x,), (x,))
    close(seen[1], x.numpy())
    close(torch.func.debug_unwrap(x), x.numpy())


@pytest.mark.parametrize(
    "pattern, lengths, shape",
    [
        ("a b c -> c b a", {}, (4, 3, 2)),
        ("a b c -> (a b) c", {}, (6, 4)),
        ("a b (c d) -> d a b c", {"d": 2}, (2, 2, 3, 2)),
        ("a ... -> ... a", {}, (3, 4, 2)),
        ("... -> (...)", {}, (24,)),
        ("a b c -> a 1 b c", {}, (2, 1, 3, 4)),
        ("a b c -> a () (b c)", {}, (2, 1, 12)),
    ],
)
def test_rearrange(pattern, lengths, shape):
    y = torch.arange(24).reshape(2, 3, 4)
    got = torch.func.rearrange(y, pattern, **lengths)
    assert tuple(got.shape) == shape and sorted(got.flatten().tolist()) == list(range(24))
    if pattern == "a b (c d) -> d a b c":
        assert got[1, 0, 0].tolist() == [1, 3]


def test_rearrange_errors():
    y = torch.ones(2, 3)
    for pattern in ("a b", "a b -> a", "a a -> a", "(a b -> a b", "a b c -> a b c"):
        with pytest.raises(ValueError):
            torch.func.rearrange(y, pattern)
