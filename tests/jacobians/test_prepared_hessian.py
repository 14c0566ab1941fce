"""Prepared Hessians, and further arguments of prepared Jacobians and Hessians."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import chainrule as cr

pytest.importorskip("scipy.sparse")
R = np.random.default_rng(0)


def dynamics(z: Any) -> Any:
    """Equality constraints of an optimal control problem: 20 steps of a pendulum, states and controls in the rows of z."""
    z = z.reshape(20, 3)
    angle, speed, torque = z[:, 0], z[:, 1], z[:, 2]
    residuals = [
        angle[1:] - angle[:-1] - 0.1 * speed[:-1],
        speed[1:] - speed[:-1] - 0.1 * (torque - np.sin(angle))[:-1],
    ]
    return np.concatenate(residuals)


def lagrangian(z: Any, sigma: Any, multipliers: Any) -> Any:
    return sigma * np.sum(z**4) + np.sum(multipliers * dynamics(z))


FUNCTIONS = {
    "chain": (lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), (7,)),
    "diagonal": (lambda x: np.sum(np.exp(x) * x), (2, 3)),
    "dense": (lambda x: np.sum(x) ** 3 + np.prod(x), (4,)),
    "blocks": (lambda x: np.sum(np.sum(x, 1) ** 4), (3, 2)),
    "partly zero": (lambda x: np.sum(x[::2] ** 3) + x[1], (5,)),
    "linear": (lambda x: np.sum(x), (3,)),
    "0-d": (lambda x: x**3, ()),
    "asymmetric rounding": (lambda x: np.sum(np.sin(x[:-1] * x[1:]) / (1 + x[1:] ** 2)), (30,)),
    "symmetric only after averaging": (
        lambda x: np.sum((x[1:].detach() if hasattr(x, "detach") else x[1:]) * x[:-1] ** 2),
        (5,),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_numbers_as_hessian(name: str) -> None:
    function, shape = FUNCTIONS[name]
    prepared = cr.prepare_hessian(function, R.standard_normal(shape))
    dense = cr.prepare_hessian(function, R.standard_normal(shape), "dense")
    for _ in range(3):
        x = R.standard_normal(shape)
        found, anew = prepared(x), cr.hessian(function, x, layout="csr")
        assert np.array_equal(found.indptr, anew.indptr) and np.array_equal(found.indices, anew.indices)
        assert np.array_equal(found.data, anew.data) and found.dtype == anew.dtype
        assert np.array_equal(found.toarray(), found.toarray().T)
        np.testing.assert_array_equal(dense(x), found.toarray().reshape(shape * 2))
    assert prepared.patterns == 1 and prepared.plan is not None


def test_finite_differences() -> None:
    x = R.standard_normal(60)
    multipliers = R.standard_normal(38)
    H = cr.prepare_hessian(lagrangian, np.zeros(60), args=(1.0, np.zeros(38)))(x, 0.7, multipliers).toarray()
    gradient = lambda z: 0.7 * 4 * z**3 + cr.func.jacrev(dynamics)(z).T @ multipliers
    step = 1e-5
    wanted = [(gradient(x + step * e) - gradient(x - step * e)) / (2 * step) for e in np.eye(60)]
    np.testing.assert_allclose(H, wanted, atol=1e-6)


def test_multipliers_change_without_a_new_trace() -> None:
    x = R.standard_normal(60)
    prepared = cr.prepare_hessian(lagrangian, x, args=(1.0, np.zeros(38)))
    jacobian = cr.prepare_jacobian(lambda z, c: c * dynamics(z), x, args=2.0)
    for k in range(4):
        multipliers, sigma = R.standard_normal(38), float(k)
        wanted = cr.hessian(functools.partial(lagrangian, sigma=sigma, multipliers=multipliers), x, layout="csr")
        np.testing.assert_array_equal(prepared(x, sigma, multipliers).toarray(), wanted.toarray())
        wanted = cr.jacobian(lambda z, sigma=sigma: sigma * dynamics(z), x, layout="csr")
        np.testing.assert_array_equal(jacobian(x, sigma).toarray(), wanted.toarray())
    assert len(prepared._compiled.recordings) == len(jacobian._compiled.recordings) == 1


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "structured"])
def test_layouts(layout: str) -> None:
    function, shape = FUNCTIONS["chain"]
    x = R.standard_normal(shape)
    found = cr.prepare_hessian(function, x, layout)(x)
    if layout == "structured":
        assert found.symmetric and found.T is found
        found = found.to_scipy()
    else:
        assert found.format == layout
    np.testing.assert_array_equal(found.toarray(), cr.hessian(function, x))


@pytest.mark.parametrize("hstack", [False, True])
def test_trees(hstack: bool) -> None:
    def function(p: Any, t: Any, args: Any) -> Any:
        return np.sum(p["a"] ** 2 * t) * args["scale"] + np.sum(np.sin(p["b"][:2] * t[:2] * args["shift"]))

    def point() -> Any:
        return {"a": R.standard_normal(3), "b": R.standard_normal(4)}, R.standard_normal(3)

    args = {"scale": np.array(3.0), "shift": np.array([1.0, 2.0])}
    prepared = cr.prepare_hessian(function, point(), args=args, hstack=hstack)
    x = point()
    new = {"scale": np.array(-2.0), "shift": np.array([0.3, 0.4])}
    found = prepared(x, new)
    wanted = cr.hessian(lambda p, t: function(p, t, new), x, layout="csr", hstack=hstack)
    for a, b in zip(cr.tree.tree_leaves(found), cr.tree.tree_leaves(wanted), strict=True):
        assert np.array_equal(a.indices, b.indices) and np.array_equal(a.data, b.data)
    if not hstack:
        assert np.array_equal(found[0]["a"][1].toarray(), found[1][0]["a"].toarray().T)


def test_float32_points_keep_weak_numbers() -> None:
    x = np.array([1.0, 2.0], np.float32)
    prepared = cr.prepare_hessian(lambda x, c: np.sum(c * x**3), x, args=0.1)
    for c in (0.1, 0.3):
        found, wanted = prepared(x, c), cr.hessian(lambda x, c=c: np.sum(c * x**3), x)
        assert found.dtype == wanted.dtype == np.float32
        np.testing.assert_array_equal(found.toarray(), wanted)


def test_arguments_of_other_types() -> None:
    """Strings, booleans and None are part of the signature; integer arrays and tensors are arguments."""
    x = np.array([1.0, 2.0, 3.0])

    def function(x: Any, power: int, at: Any, name: Any, w: Any) -> Any:
        y = x[at] ** power
        y = y if name == "plain" else np.exp(y)
        return np.sum(y * w.detach().numpy() if isinstance(w, cr.Tensor) else y * w)

    w = cr.tensor([1.0, 2.0, 3.0], dtype=cr.float64)
    prepared = cr.prepare_jacobian(function, x, args=(2, np.array([0, 1, 2]), "plain", np.ones(3)))
    for power, name in ((2, "plain"), (3, "plain"), (2, None), (2, "exp")):
        for at in ([0, 1, 2], [2, 0, 1]):
            given = power, np.array(at), name, w.numpy()
            if name is None:
                with pytest.raises(ValueError, match="args is a structure"):
                    prepared(x, *given)
                continue
            wanted = cr.jacobian(lambda x, given=given: function(x, *given), x)
            np.testing.assert_allclose(prepared(x, *given).toarray()[0], wanted, rtol=1e-12)


def test_integer_arguments_that_are_indices_change_the_pattern() -> None:
    x = np.arange(1.0, 5.0)
    prepared = cr.prepare_jacobian(lambda x, at: x[at] ** 2, x, args=np.array([0, 1]), on_change="record")
    for at in ([0, 1], [3, 1], [2, 2], [0, 1]):
        wanted = np.zeros((2, 4))
        wanted[[0, 1], at] = 2 * x[at]
        np.testing.assert_array_equal(prepared(x, np.array(at)).toarray(), wanted)
    strict = cr.prepare_hessian(lambda x, at: np.sum(x[at] ** 3), x, args=np.array([0, 1]))
    with pytest.raises(RuntimeError, match=r"prepared Hessian.*prepare_hessian\(..., on_change='record'\)"):
        strict(x, np.array([1, 2]))


def test_tensors() -> None:
    x, c = cr.tensor([1.0, 2.0, 3.0]), cr.tensor([2.0, 3.0])
    prepared = cr.prepare_hessian(lambda x, c: (x[1:] ** 2 * x[:-1] * c).sum(), x, "dense", args=c)
    for scale in (1.0, 3.0):
        found = prepared(x, scale * c)
        wanted = cr.hessian(lambda x, scale=scale: (x[1:] ** 2 * x[:-1] * (scale * c)).sum(), x)
        assert type(found) is cr.Tensor and not found.requires_grad
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)
    with pytest.raises(RuntimeError, match="prepared Hessian: an array of args is on the tape"):
        prepared(x, c.clone().requires_grad_())


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (
            (np.ones(3), np.ones(3)),
            r"an array of args is float64 of shape \(3,\), and it was prepared for float64 of shape",
        ),
        ((np.ones(3), np.ones(2, np.float32)), "an array of args is float32"),
        ((np.ones(4), np.ones(2)), r"the point is float64 of shape \(4,\)"),
        ((np.ones(3),), "the number of args is 0, and it was prepared for 1"),
        ((np.ones(3), np.ones(2), 1.0), "the number of args is 2, and it was prepared for 1"),
        ((np.ones(3), [np.ones(2)]), "args is a structure"),
        ((np.ones(3), "no array"), "args is of type str, and it was prepared for an array"),
    ],
)
def test_other_arguments(point: Any, message: str) -> None:
    prepared = cr.prepare_hessian(lambda x, c: np.sum(x[1:] ** 3 * c), np.ones(3), args=np.ones(2))
    with pytest.raises(ValueError, match=message):
        prepared(*point)
    np.testing.assert_array_equal(prepared(np.ones(3), np.ones(2)).diagonal(), [0, 6, 6])


def test_numbers_stay_numbers() -> None:
    prepared = cr.prepare_hessian(lambda x, c: np.sum(x**3 * c), np.ones(3), args=2.0)
    with pytest.raises(ValueError, match="an array, and it was prepared for a number"):
        prepared(np.ones(3), np.array([1.0, 2.0, 3.0]))


def test_functions_that_are_no_scalar() -> None:
    with pytest.raises(RuntimeError, match="scalar"):
        cr.prepare_hessian(lambda x: x**2, np.ones(3))
    with pytest.raises(ValueError, match=r"prepare_hessian\(\): layout is one of"):
        cr.prepare_hessian(np.sum, np.ones(3), "ell")


def test_nothing_is_recorded_silently() -> None:
    x = np.ones(3)
    prepared = cr.prepare_hessian(lambda x, c: np.sum(c * x**3), x, "dense", args=x)
    for call in (
        lambda: cr.grad(lambda c: prepared(x, c).sum())(x),
        lambda: cr.jvp(lambda c: prepared(x, c), (x,), (x,)),
        lambda: cr.vmap(lambda c: prepared(x, c))(np.ones((2, 3))),
    ):
        with pytest.raises(RuntimeError, match=r"call chainrule.hessian|stands for all|derivative"):
            call()


def test_compile_names_prepare_hessian() -> None:
    f = FUNCTIONS["chain"][0]
    x = R.standard_normal(7)
    for name, function in (
        ("prepare_hessian", lambda x: cr.hessian(f, x, layout="csr")),
        ("prepare_hessian", cr.hessian(f, layout="csr")),
        ("prepare_jacobian", cr.jacobian(lambda x: x[1:] ** 2, layout="csr")),
    ):
        with pytest.warns(UserWarning, match=rf"runs eagerly.*chainrule\.{name}\(f, x\)"):
            found = cr.compile(function)(x)
        assert found.format == "csr"


def test_hessian_without_a_point_keeps_its_options() -> None:
    f, x = FUNCTIONS["chain"][0], R.standard_normal(7)
    assert cr.hessian(f, layout="csr")(x).nnz == 19
    assert cr.hessian(f, strategy="vjps")(x).shape == (7, 7)
    np.testing.assert_array_equal(cr.hessian(f)(x), cr.hessian(f, 0)(x))
    for options in ({"argnums": 0}, {"x": 1}):
        with pytest.raises(ValueError, match="need a point"):
            cr.hessian(f, layout="csr", **options)


def test_repr() -> None:
    prepared = cr.prepare_hessian(lagrangian, np.zeros(60), args=(1.0, np.zeros(38)))
    assert repr(prepared) == "<prepared Hessian of 60 × 60: 60 entries>"
    assert prepared.sparsity.nnz == 60


#: the functions that a message about layout="csr" inside compile names, by their APIs
PRODUCTS: dict[str, tuple[str, Any]] = {
    "hessian": ("chainrule.func.hvp(f, (x,), (v,))", lambda f, x, v: cr.func.hvp(f, (x,), (v,))[0]),
    "jacobian": ("chainrule.func.jvp(f, (x,), (v,))", lambda f, x, v: cr.func.jvp(f, (x,), (v,))[1]),
}


@pytest.mark.parametrize("api", PRODUCTS)
def test_a_compiled_csr_layout_names_functions_that_work(api: str) -> None:
    x, v = np.linspace(0.5, 1.5, 7), np.arange(7.0)
    f: Any = FUNCTIONS["chain"][0] if api == "hessian" else lambda x: x[1:] * x[:-1]
    compiled = cr.compile(getattr(cr, api)(f, layout="csr"))
    with pytest.warns(UserWarning, match=rf"^compile: {api}\(<lambda>\) runs eagerly in every call") as caught:
        matrix = compiled(x)
    J, message = api[0].upper(), str(caught[0].message)
    assert f"Write {J} = chainrule.prepare_{api}(f, x) once, and call {J}(x)" in message
    prepared = getattr(cr, f"prepare_{api}")(f, x)(x)
    np.testing.assert_allclose(prepared.toarray(), matrix.toarray())
    text, product = PRODUCTS[api]
    assert text in message
    fast: Any = cr.compile(lambda x, v: product(f, x, v))
    fast(x, v)
    np.testing.assert_allclose(fast(x, v), matrix @ v)
