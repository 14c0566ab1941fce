"""All transformations of functions with all kinds of results, compared with finite differences of NumPy."""

from collections import namedtuple

import numpy as np
import pytest

import chainrule as cr
from chainrule.tree import tree_flatten, tree_leaves, tree_unflatten

pytestmark = pytest.mark.filterwarnings("ignore:compile.*runs eagerly")
Pair = namedtuple("Pair", "one two")
POINT, ALONG = np.array([0.7, 1.3]), np.array([1.0, 2.0])
CONSTANT = np.array([3.0, 4.0])


def product(x):
    return x[0] * x[1]


def sine(x):
    return -np.sin(x[0])


def filled(x):
    out = np.empty(2, object)
    out[0], out[1] = product(x), 3.0
    return out


def written(x):
    out = np.zeros_like(x)
    out[0], out[1:] = product(x), sine(x)
    return out


WAYS = {
    "np.stack": lambda x: np.stack([product(x), sine(x)]),
    "np.array": lambda x: np.array([product(x), sine(x)]),
    "np.array, constants": lambda x: np.array([product(x), 2.0]),
    "np.array, nested": lambda x: np.array([[product(x), sine(x)], [x[1], 1.0]]),
    "np.array, objects": lambda x: np.array([product(x), sine(x)], dtype=object),
    "np.array, objects of an array": lambda x: np.array(x * 2, dtype=object),
    "np.array, 0-d": lambda x: np.array(product(x)),
    "np.asarray": lambda x: np.asarray([product(x), sine(x)]),
    "np.asanyarray, 0-d": lambda x: np.asanyarray(product(x)),
    "np.full": lambda x: np.full(2, product(x)),
    "np.full_like": lambda x: np.full_like(x, product(x)),
    "filled": filled,
    "written": written,
    "np.array, reshaped": lambda x: np.array([product(x), sine(x)]).reshape(1, 2),
    "np.array, times": lambda x: np.array([product(x), sine(x)]) * x[1],
    "np.array, a ufunc": lambda x: np.sin(np.array([product(x), sine(x)])),
    "np.array, matmul": lambda x: np.array([[1.0, 2.0], [3.0, 4.0]]) @ np.array([product(x), sine(x)]),
    "np.array, summed": lambda x: np.sum(np.array([product(x), sine(x)])),
    "np.array, concatenated": lambda x: np.concatenate([np.array([product(x)]), x]),
    "list": lambda x: [product(x), sine(x)],
    "lists": lambda x: [[product(x)], [np.array([sine(x)]), [x]]],
    "tuple": lambda x: (product(x), np.array([sine(x)])),
    "dict": lambda x: {"a": product(x), "b": np.array([sine(x), x[0]])},
    "nested": lambda x: {"a": [product(x), (x, np.full(2, sine(x)))]},
    "namedtuple": lambda x: Pair(product(x), np.array([sine(x)])),
    "0-d": product,
    "sum": lambda x: np.sum(x * x),
    "view": lambda x: x[::-1],
    "reshaped": lambda x: x.reshape(2, 1),
    "argument": lambda x: x,
    "argument, twice": lambda x: (x, x),
    "constant": lambda x: np.array([1.0, 2.0]),
    "captured": lambda x: CONSTANT,
    "beside a constant": lambda x: (product(x), CONSTANT),
    "objects, constant": lambda x: np.array([1.0, 2.0], dtype=object),
    "np.float64": lambda x: np.float64(2.0),
    "float": lambda x: 2.0,
    "beside a float": lambda x: (product(x), 2.0),
}
REFUSED = {
    "objects, none": lambda x: np.empty(2, object),
    "object, among others": lambda x: (x, np.array(["a", None], object)),
    "nothing": lambda x: None,
    "none of it": lambda x: (),
    "text": lambda x: "text",
}


def flat(tree):
    return np.concatenate([np.asarray(leaf, float).reshape(-1) for leaf in tree_leaves(tree)])


def example(tree, k):
    return flat([np.asarray(leaf)[k] for leaf in tree_leaves(tree)])


def rows(tree):
    leaves = [leaf.toarray() if hasattr(leaf, "toarray") else np.asarray(leaf) for leaf in tree_leaves(tree)]
    return np.concatenate([leaf.reshape(-1, 2) for leaf in leaves])


def differences(f, x=POINT, h=1e-6):
    return np.stack([(flat(f(x + h * e)) - flat(f(x - h * e))) / (2 * h) for e in np.eye(2)], 1)


def weights(f):
    return 1 + np.arange(flat(f(POINT)).size) / 2


def weighted(f):
    """Return a weighted sum of a function's results."""

    def total(x):
        elements = [e for leaf in tree_leaves(f(x)) for e in np.reshape(leaf, -1)]
        return np.sum(x) * 0 + sum([w * e for w, e in zip(weights(f), elements, strict=True)])

    return total


def cotangent(f):
    leaves, spec = tree_flatten(f(POINT))
    parts = np.split(weights(f), np.cumsum([np.size(leaf) for leaf in leaves])[:-1])
    return tree_unflatten([p.reshape(np.shape(leaf)) for p, leaf in zip(parts, leaves, strict=True)], spec)


def twice(f):
    """Call a function twice: compiled functions record in the first call."""
    return f() + f()


def jvp(f):
    value, tangent = cr.jvp(f, (POINT,), (ALONG,))
    return flat(value), flat(tangent)


def vjp(f):
    value, pull = cr.vjp(f, POINT)
    return flat(value), *pull(cotangent(f))


def linearized(f):
    value, push = cr.func.linearize(f, POINT)
    return flat(value), flat(push(ALONG))


def along(f):
    return flat(f(POINT)), differences(f) @ ALONG


def against(f):
    return flat(f(POINT)), weights(f) @ differences(f)


def matrix(f):
    return (differences(f),)


def curvature(f):
    return (differences(cr.grad(weighted(f))),)


def compiled(transform):
    def run(f):
        call = cr.compile(transform(f))
        return rows(call(POINT)), rows(call(POINT))

    return run


def compiled_pair(f):
    call = cr.compile(lambda x, t: cr.jvp(f, (x,), (t,)))
    return twice(lambda: tuple(map(flat, call(POINT, ALONG))))


BATCH = np.stack([POINT, POINT + 1, 2 * POINT])
LAYOUTS = ["dense", "structured", "csr"]
#: transformation -> its result, and that of finite differences
TRANSFORMATIONS = {
    "jvp": (jvp, along),
    "vjp": (vjp, against),
    "linearize": (linearized, along),
    "jvp, no_grad": (cr.no_grad()(jvp), along),
    "vjp, no_grad": (cr.no_grad()(vjp), against),
    "jacfwd": (lambda f: (rows(cr.jacfwd(f)(POINT)),), matrix),
    "jacrev": (lambda f: (rows(cr.jacrev(f)(POINT)),), matrix),
    "grad": (lambda f: (cr.grad(weighted(f))(POINT),), lambda f: against(f)[1:]),
    "value_and_grad": (
        lambda f: cr.value_and_grad(weighted(f))(POINT),
        lambda f: (weights(f) @ flat(f(POINT)), against(f)[1]),
    ),
    "hessian": (lambda f: (cr.hessian(weighted(f))(POINT),), curvature),
    "hvp": (lambda f: (cr.func.hvp(weighted(f), POINT, ALONG),), lambda f: (curvature(f)[0] @ ALONG,)),
    "vmap": (
        lambda f: [example(cr.vmap(f)(BATCH), k) for k in range(3)],
        lambda f: [flat(f(x)) for x in BATCH],
    ),
    **{
        f"jacobian, {layout}": (
            lambda f, layout=layout: (rows(cr.jacobian(f, POINT, layout=layout, check=True)),),
            matrix,
        )
        for layout in LAYOUTS
    },
    "jacobian, forward": (lambda f: (rows(cr.jacobian(f, POINT, mode="forward")),), matrix),
    "vmap of jvp": (
        lambda f: [example(cr.vmap(lambda t: cr.jvp(f, (POINT,), (t,))[1])(np.eye(2)), k) for k in range(2)],
        lambda f: [*differences(f).T],
    ),
    "jvp of vmap": (lambda f: [example(y, 0) for y in cr.jvp(cr.vmap(f), (POINT[None],), (ALONG[None],))], along),
    "jvp of jvp": (
        lambda f: (flat(cr.jvp(lambda x: cr.jvp(f, (x,), (ALONG,))[0], (POINT,), (ALONG,))[1]),),
        lambda f: along(f)[1:],
    ),
    "jvp of the tangent": (
        lambda f: (flat(cr.jvp(lambda x: cr.jvp(f, (x,), (ALONG,))[1], (POINT,), (ALONG,))[1]),),
        lambda f: (differences(lambda x: cr.jvp(f, (x,), (ALONG,))[1]) @ ALONG,),
    ),
    "grad of jvp": (
        lambda f: (cr.grad(weighted(lambda x: cr.jvp(f, (x,), (ALONG,))[0]))(POINT),),
        lambda f: against(f)[1:],
    ),
    "jacfwd of jacrev": (lambda f: (rows(cr.jacfwd(cr.jacrev(f))(POINT)),), lambda f: (differences(cr.jacrev(f)),)),
    "jacrev of jacfwd": (lambda f: (rows(cr.jacrev(cr.jacfwd(f))(POINT)),), lambda f: (differences(cr.jacrev(f)),)),
    "compile": (
        lambda f: [flat(y) for call in [cr.compile(f)] for y in (call(POINT), call(POINT), call(ALONG))],
        lambda f: [flat(f(x)) for x in (POINT, POINT, ALONG)],
    ),
    "compile of jvp": (compiled_pair, lambda f: twice(lambda: along(f))),
    "compile of jacfwd": (compiled(cr.jacfwd), lambda f: twice(lambda: matrix(f))),
    "compile of jacrev": (compiled(cr.jacrev), lambda f: twice(lambda: matrix(f))),
    "compile of hessian": (compiled(lambda f: cr.hessian(weighted(f))), lambda f: twice(lambda: curvature(f))),
    "compile of vmap": (
        lambda f: [example(y, 0) for call in [cr.compile(cr.vmap(f))] for y in (call(BATCH), call(BATCH))],
        lambda f: [flat(f(POINT))] * 2,
    ),
}
#: transformations that treat a Python float, the result of a derivative, as a number
TAKE_FLOATS = {name for name in TRANSFORMATIONS if name.startswith("jacobian,")} | {
    "grad", "value_and_grad", "hessian", "hvp", "compile", "compile of hessian",
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_every_way_to_return(name):
    found, wanted = TRANSFORMATIONS[name]
    for way, f in WAYS.items():
        if way in ("float", "beside a float") and name not in TAKE_FLOATS:
            with pytest.raises((RuntimeError, ValueError), match="float"):
                found(f)
            continue
        for have, want in zip(found(f), wanted(f), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-8, err_msg=f"{name}: {way}")


@pytest.mark.parametrize("name", [*TRANSFORMATIONS])
def test_what_is_no_number_is_refused(name):
    transform = TRANSFORMATIONS[name][0]
    if name == "compile":  # compile returns any result unchanged
        return
    for f in REFUSED.values():
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            transform(f)


TENSOR_WAYS = {
    "stack": lambda x: cr.stack([product(x), -cr.sin(x[0])]),
    "0-d": product,
    "view": lambda x: x.flip(0),
    "argument": lambda x: x,
    "argument, twice": lambda x: (x, x),
    "constant": lambda x: cr.ones(2, dtype=cr.float64),
    "tuple": lambda x: (product(x), x * 2),
    "full": lambda x: product(x).expand(2),
}
functional = cr.autograd.functional
FUNCTIONAL = {
    "jvp": (lambda f: tuple(map(flat, functional.jvp(f, cr.tensor(POINT), cr.tensor(ALONG)))), along),
    "vjp": (
        lambda f: tuple(map(flat, functional.vjp(f, cr.tensor(POINT), cr.tree.tree_map(cr.tensor, cotangent(f))))),
        against,
    ),
    "jacobian": (lambda f: (rows(functional.jacobian(f, cr.tensor(POINT))),), matrix),
    "jacobian, vectorized": (lambda f: (rows(functional.jacobian(f, cr.tensor(POINT), vectorize=True)),), matrix),
    "jacobian, forward": (
        lambda f: (rows(functional.jacobian(f, cr.tensor(POINT), vectorize=True, strategy="forward-mode")),),
        matrix,
    ),
    "func.jvp": (lambda f: tuple(map(flat, cr.func.jvp(f, (cr.tensor(POINT),), (cr.tensor(ALONG),)))), along),
    "func.jacfwd": (lambda f: (rows(cr.func.jacfwd(f)(cr.tensor(POINT))),), matrix),
}


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_every_way_to_return_tensors(name):
    found, wanted = FUNCTIONAL[name]
    for way, f in TENSOR_WAYS.items():

        def plain(x, f=f):
            return f(cr.tensor(x))

        def point_of(x, f=f):
            return f(x if isinstance(x, cr.Tensor) else cr.tensor(x))

        for have, want in zip(found(point_of), wanted(plain), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-8, err_msg=f"{name}: {way}")
