"""User-defined primitives: rules in all forms, of all orders, in both modes."""

from collections import namedtuple

import numpy as onp
import pytest

import chainrule.compat.autograd.numpy as np
from chainrule import Array
from chainrule.compat.autograd import grad, hessian, jacobian, make_jvp
from chainrule.compat.autograd.core import backward_pass, primitive_vjps
from chainrule.compat.autograd.extend import (
    Box,
    SparseObject,
    VSpace,
    def_linear,
    defjvp,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    notrace_primitive,
    primitive,
    register_notrace,
    vspace,
)
from chainrule.compat.autograd.misc import flatten
from chainrule.compat.autograd.test_util import check_grads
from chainrule.compat.autograd.tracer import (
    JVPNode,
    Node,
    VJPNode,
    getval,
    isbox,
    new_box,
    trace,
    trace_stack,
)

X = onp.array([0.5, 2.0, 3.0])
Z = onp.array([1 + 2j, 0.5 - 1j])


def plain(*args):
    """Return the plain arguments of a primitive."""
    assert all(type(x) in (onp.ndarray, onp.float64, onp.complex128, float) for x in args), args


@primitive
def scaled(x, y, power=1):
    plain(x, y)
    return x * y**power


defvjp(
    scaled,
    lambda ans, x, y, power=1: lambda g: g * y**power,
    lambda ans, x, y, power=1: lambda g: np.sum(g * x * power * y ** (power - 1)),
)
defjvp(scaled, "same", lambda t, ans, x, y, power=1: x * power * y ** (power - 1) * t)


@primitive
def split(x):
    plain(x)
    return x[:1], {"rest": x[1:] * 2}


def split_rule(ans, x):
    assert len(ans) == 2
    return lambda g: np.concatenate([g[0], g[1]["rest"] * 2])


defvjp(split, split_rule)
defjvp(split, lambda t, ans, x: (t[:1], {"rest": t[1:] * 2}))


@primitive
def weighted(layers, x):
    return sum(np.sum(w) for w, _ in layers) * x


defvjp_argnums(weighted, lambda argnums, ans, args, kwargs: lambda g: [
    [(g * args[1] * np.ones(np.shape(w)), 0.0 * np.ones(np.shape(b))) for w, b in args[0]] if i == 0
    else g * sum(np.sum(w) for w, _ in args[0]) for i in argnums])  # fmt: skip


@primitive
def picked(x):
    return x[1]


defvjp(picked, lambda ans, x: lambda g: SparseObject(vspace(x), lambda array: array + g * np.eye(3)[1]))

turned = primitive(lambda z: z * (1 + 2j))
defvjp_argnum(turned, lambda argnum, ans, args, kwargs: lambda g: g * (1 + 2j))
def_linear(turned)


@primitive
def of_dict(d):
    return np.sum(d["a"]) * d["b"]


defvjp(of_dict, lambda ans, d: lambda g: {"b": g * np.sum(d["a"]), "a": g * d["b"] * np.ones(np.shape(d["a"]))})

LAYERS = [(X, X), (X[:1], 2 * X)]
CHECKED = {
    "both arguments": (scaled, (X, 2.0), {"argnum": (0, 1)}),
    "a keyword": (lambda x, y: scaled(x, y, power=3), (X, 2.0), {"argnum": (0, 1)}),
    "one argument": (lambda y: scaled(X, y), (2.0,), {}),
    "several results": (lambda x: split(x)[0] * np.sum(split(x)[1]["rest"]) ** 2, (X,), {}),
    "containers of arguments": (weighted, (LAYERS, 2.0), {"argnum": (0, 1), "modes": ["rev"]}),
    "a dict, and its gradient in another order": (of_dict, ({"a": X, "b": 2.0},), {"modes": ["rev"]}),
    "sparse gradients": (lambda x: picked(x) ** 2, (X,), {"modes": ["rev"], "order": 1}),
    "complex": (lambda z: np.abs(turned(z)) ** 2, (Z,), {}),
    "complex results of a real argument": (lambda x: turned(x * (1 + 0j)), (X,), {}),
    "elements in a list": (lambda x: scaled(onp.array([x[0], x[1]]), x[2]), (X,), {}),
}


@pytest.mark.parametrize("name", CHECKED)
def test_derivatives(name):
    function, args, options = CHECKED[name]
    check_grads(function, **options)(*args)


def test_jacobians_and_orders():
    cube = lambda x: scaled(x, 1.0, power=2) * x**2
    assert onp.allclose(jacobian(cube)(X), onp.diag(3 * X**2))
    assert onp.allclose(hessian(lambda x: np.sum(cube(x)))(X), onp.diag(6 * X))
    assert onp.allclose(grad(grad(grad(lambda y: scaled(1.0, y, power=4))))(2.0), 48.0)


def test_arguments_without_a_derivative():
    @primitive
    def rounded(x, y):
        return np.round(x) * y

    defvjp(rounded, None, lambda ans, x, y: lambda g: g * np.round(x))
    assert grad(rounded, (0, 1))(1.6, 3.0) == (0.0, 2.0)
    register_notrace(VJPNode, rounded)
    with pytest.warns(UserWarning, match="independent"):
        assert grad(rounded, 1)(1.6, 3.0) == 0.0
    assert notrace_primitive(lambda x: type(x))(X) is onp.ndarray


def test_rules_at_once_for_forward_mode():
    multiplied = primitive(lambda x, y: x * y)
    defjvp_argnums(multiplied, lambda argnums, ts, ans, args, kwargs: sum(t * args[1 - i] for i, t in zip(argnums, ts)))
    assert make_jvp(multiplied, (0, 1))(2.0, 3.0)((1.0, 10.0)) == (6.0, 23.0)


Pair = namedtuple("Pair", "a b")
#: an argument, and the same numbers in other containers as the result of a rule
CONTAINERS = {
    "an array for a list": ([1.0, 3.0], lambda g: np.array([2 * g, 3 * g])),
    "a tuple for a list": ([1.0, 3.0], lambda g: (2 * g, 3 * g)),
    "a list for a tuple": ((1.0, 3.0), lambda g: [2 * g, 3 * g]),
    "a tuple for a named one": (Pair(1.0, 3.0), lambda g: (2 * g, 3 * g)),
    "rows for arrays": ([X, X], lambda g: g * np.array([X, 2 * X])),
    "nested": (([1.0, X], (2.0,)), lambda g: [(2 * g, [g, 2 * g, 3 * g]), np.array([g])]),
    "beside nothing": (([], [2.0]), lambda g: (onp.zeros((1, 0)), np.array([g]))),
    "in a dict": ({"b": [1.0, 2.0], "a": 3.0}, lambda g: {"b": (g, 2 * g), "a": g}),
    "a list for an array": (X[:2], lambda g: [2 * g, 3 * g]),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_rules_may_return_other_containers(name):
    point, gradient = CONTAINERS[name]
    f = primitive(lambda p: 1.0)
    defvjp(f, lambda ans, p: gradient)
    found = grad(lambda p: f(p) * 2)(point)
    assert vspace(found) == vspace(point)
    assert onp.array_equal(flatten(found)[0], flatten(gradient(2.0))[0])
    once_more = grad(lambda x: np.sum(flatten(grad(lambda p: f(p) * x**2)(point))[0]))(3.0)  # ∂/∂x x² g = 2x g
    assert once_more == 6.0 * np.sum(flatten(gradient(1.0))[0])


def test_tangents_may_be_in_other_containers():
    f = primitive(lambda x: (x, [2 * x, 3 * x]))
    defjvp(f, lambda t, ans, x: [t, np.array([2 * t, 3 * t])])
    assert make_jvp(f)(2.0)(1.0) == ((2.0, [4.0, 6.0]), (1.0, [2.0, 3.0]))


@pytest.mark.parametrize("gradient", [[1.0], [1.0, 2.0, 3.0], 1.0, {"a": 1.0, "b": 2.0}, onp.ones(3)])
def test_containers_of_another_length(gradient):
    f = primitive(lambda p: 1.0)
    defvjp(f, lambda ans, p: lambda g: gradient)
    with pytest.raises(ValueError, match="the trees differ"):
        grad(f)([1.0, 3.0])


def test_rules_that_compute_with_arguments_of_a_run():
    """Like in PennyLane: arrays stored by the program belong to the run, and the rule's result is one level lower."""
    kept = []

    @primitive
    def square(x):
        return x**2

    def rule(ans, x):
        return lambda g: g * (2 * kept[-1])._value

    defvjp(square, rule)

    def f(x):
        kept.append(x)
        return square(x)

    assert grad(f)(3.0) == 6.0
    assert grad(grad(f))(3.0) == 2.0
    assert onp.allclose(hessian(lambda x: np.sum(f(x)))(X), 2 * onp.eye(3))


def test_missing_rules():
    bare = primitive(lambda x, y: x * y)
    for operator in (grad(bare), lambda *args: make_jvp(bare)(*args)(1.0)):
        with pytest.raises(NotImplementedError, match=r"(VJP|JVP) of <lambda> wrt argnums \(0,\) not defined"):
            operator(1.0, 2.0)
    defvjp(bare, lambda ans, x, y: lambda g: g * y)
    with pytest.raises(NotImplementedError, match="VJP of <lambda> wrt argnum 1 not defined"):
        grad(bare, 1)(1.0, 2.0)
    assert bare in primitive_vjps


@pytest.mark.parametrize("function", [np.sin, np.sum, np.linalg.inv])
def test_functions_of_numpy_keep_their_rules(function):
    """Programs declare forward rules that HIPS autograd lacks, and gradients of removed NumPy functions."""
    x = np.eye(2) + 1.0
    before = grad(lambda x: np.sum(function(x)))(x)
    for declare in (
        lambda: defvjp(function, lambda ans, x: lambda g: g),
        lambda: defjvp(function, lambda t, ans, x: t),
    ):
        with pytest.warns(
            UserWarning, match=rf"{function.__name__}, which cannot be replaced.*primitive\({function.__name__}\)"
        ) as told:
            declare()
        assert told[0].filename == __file__
    np.testing.assert_array_equal(grad(lambda x: np.sum(function(x)))(x), before)
    own = primitive(function)
    defvjp(own, lambda ans, x: lambda g: np.ones((2, 2)))
    np.testing.assert_array_equal(grad(lambda x: np.sum(own(x)))(x), np.ones((2, 2)))


def test_what_cannot_be_registered():
    with pytest.raises(TypeError, match=r"Declare your rule for primitive\(sin\)"):
        register_notrace(Box, np.sin)
    for register in (Box.register, VSpace.register):
        with pytest.raises(NotImplementedError, match="register_pytree_node"):
            register(set)


def test_wrong_rules_are_found():
    wrong = primitive(lambda x: x * 2)
    defvjp(wrong, lambda ans, x: lambda g: g * 2.001)
    defjvp(wrong, lambda t, ans, x: t * 2.001)
    with pytest.raises(AssertionError, match=r"\(VJP\) check of <lambda> failed"):
        check_grads(wrong, modes=["rev"], order=1)(1.0)
    with pytest.raises(AssertionError, match="Value mismatch"):
        check_grads(wrong, modes=["fwd"], order=1)(1.0)


def test_old_methods_of_primitives():
    old = primitive(lambda x, y: x * y)
    with pytest.warns(UserWarning, match="deprecated"):
        old.defgrad(lambda ans, x, y: lambda g: g * y)
        old.defgrad(lambda ans, x, y: lambda g: g * x, argnum=1)
    assert grad(old, (0, 1))(2.0, 3.0) == (3.0, 2.0)


@pytest.mark.parametrize("value", [2.0, 1j, X, Z, [1.0, X], {"a": (X, 1.0), "b": {}}])
def test_spaces(value):
    space = vspace(value)
    basis = list(space.standard_basis())
    assert len(basis) == space.size and all(vspace(v) == space for v in [*basis, space.zeros(), space.ones()])
    total = space.zeros()
    for v in basis:
        assert [space.inner_prod(v, w) for w in basis] == [float(v is w) for w in basis]
        total = space.mut_add(total, v)
    t = space.randn()
    assert onp.isclose(space.inner_prod(t, total), space.inner_prod(t, space.ones()))
    assert onp.isclose(space.inner_prod(t, space.scalar_mul(t, 2.0)), 2 * space.inner_prod(t, t))
    assert space != vspace([value]) and repr(space).startswith("VSpace(")


def test_tracing_in_steps():
    root = VJPNode.new_root()
    box = new_box(X, 0, root)
    y = np.sin(box) * box
    assert isbox(y) and not isbox(X) and type(getval(y)) is onp.ndarray
    g = new_box(onp.array([1.0, 0.0, 0.0]), 0, VJPNode.new_root())
    found = backward_pass(g, y._node)
    assert type(found._value) is onp.ndarray  # boxes of one number have the same level
    assert onp.allclose(found._value, [onp.sin(0.5) + 0.5 * onp.cos(0.5), 0, 0])
    with pytest.raises(TypeError, match="depends on 0 inputs"):
        backward_pass(g, np.sin(Array(X, requires_grad=True))._node)
    with pytest.raises(TypeError, match="without a value"):
        backward_pass(g, VJPNode.new_root())


def test_traces_in_steps():
    with trace_stack.new_trace() as t:
        boxes = new_box((X, 2.0), t, VJPNode.new_root())
        y, z = np.sum(boxes[0]) * 2, onp.sum(X)
        assert len(boxes) == 2 and y._trace == boxes._trace == t == trace_stack.top
    assert y._trace == t and trace_stack.top == -1 and not isbox(z)
    value, node = trace(VJPNode.new_root(), lambda x: x**3, 2.0)
    assert value == 8.0 and backward_pass(1.0, node) == 12.0
    value, node = trace(JVPNode.new_root(1.0), lambda x: x**3, 2.0)
    assert (value, node.g) == (8.0, 12.0)
    with pytest.warns(UserWarning, match="independent"):
        assert trace(VJPNode.new_root(), lambda x: 1.0, 2.0) == (1.0, None)

    def gradient(x):  # a run inside another run
        box = new_box(x, 0, VJPNode.new_root())
        return backward_pass(1.0, (box**3 * box._value)._node)

    assert gradient(2.0) == 24.0 and grad(gradient)(2.0) == 9 * 2.0**2


def test_nodes_of_the_programs_own_are_refused():
    class Printed(Node):
        def initialize_root(self, name):
            self.name = name

    start = Printed.new_root("x")
    assert start.name == "x"
    with pytest.raises(NotImplementedError, match=r"x\.graph\(\) to draw"):
        trace(start, np.sin, 1.0)
