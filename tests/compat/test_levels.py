"""``x._value`` in nested operators: the value without the innermost derivative, constant there and variable further out."""

import numpy as onp
import pytest

import chainrule.compat.autograd as ag
import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.extend import defjvp, defvjp, primitive
from chainrule.compat.autograd.numpy.numpy_boxes import ArrayBox
from chainrule.compat.autograd.tracer import VJPNode, new_box

POINT = onp.array([0.3, 1.2])


def lower(x):
    return x._value if isinstance(x, ArrayBox) else x


def along_ones(f):
    return lambda x: ag.make_vjp(f, 0)(x)[0](onp.ones(2))


#: operators that transform an elementwise function of a vector
OPERATORS = {
    "elementwise_grad": ag.elementwise_grad,
    "grad": lambda f: ag.grad(lambda x: np.sum(f(x))),
    "value_and_grad": lambda f: lambda x: ag.value_and_grad(lambda x: np.sum(f(x)))(x)[1],
    "grad_and_aux": lambda f: lambda x: ag.grad_and_aux(lambda x: (np.sum(f(x)), x))(x)[0],
    "make_vjp": along_ones,
    "jacobian": lambda f: lambda x: np.sum(ag.jacobian(f)(x), axis=0),
    "deriv": ag.deriv,
    "in a dict": lambda f: lambda x: ag.grad(lambda d: np.sum(f(d["x"][0])))({"x": [x]})["x"][0],
}
#: functions of a variable and of its value one level lower
FUNCTIONS = {
    "itself": lambda x, low: x * low(x),
    "of a result": lambda x, low: np.sin(x) * low(np.exp(x) * x),
    "of an element": lambda x, low: x**2 * low(x[0]),
    "inside functions": lambda x, low: np.cos(x * low(x)) + low(x) ** 3,
}


@primitive
def cube(x):
    return x**3


defvjp(cube, lambda ans, x: lambda g: g * 3 * x * lower(x))
defjvp(cube, lambda t, ans, x: t * 3 * x * lower(x))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("outer", OPERATORS)
@pytest.mark.parametrize("inner", OPERATORS)
def test_of_two_levels(inner, outer, name):
    """Take the value outside of the inner operator."""
    f, outer, inner = FUNCTIONS[name], OPERATORS[outer], OPERATORS[inner]
    by_hand = outer(lambda z: inner(lambda x: f(x, lambda y: _at(y, x, z)))(z))

    def _at(y, x, z):  # the argument of low(), computed again from z
        return {"itself": z, "of a result": np.exp(z) * z, "of an element": z[0], "inside functions": z}[name]

    found = outer(inner(lambda x: f(x, lower)))(POINT)
    onp.testing.assert_allclose(found, by_hand(POINT), rtol=1e-12)


#: a computation and its result
NUMBERS = {
    "one level": (lambda: ag.grad(lambda x: x * x._value)(2.0), 2.0),
    "two": (lambda: ag.grad(ag.grad(lambda x: x * x._value))(2.0), 1.0),
    # x³ y z: the innermost derivative is 3x²yz, where x and y are variables one level further out: 3x³z, 9x²z = 9x³, 27x²
    "three": (lambda: ag.grad(ag.grad(ag.grad(lambda x: x**3 * lower(x) * lower(lower(x)))))(2.0), 27 * 2.0**2),
    "none left": (lambda: ag.grad(ag.grad(lambda x: x * lower(lower(x))))(2.0), 0.0),
    "of the outer variable": (lambda: ag.grad(lambda x: ag.grad(lambda y: y**2 * lower(x) * x)(3.0))(2.0), 12.0),
    "of both": (lambda: ag.grad(lambda x: ag.grad(lambda y: y**2 * lower(x * y) * x)(3.0))(2.0), 72.0),
    "nothing else": (lambda: ag.grad(lambda x: x * ag.grad(lambda y: lower(y) * x)(x))(2.0), 0.0),
    "of a value that left its run": (lambda: _kept(2.0), 24.0),
    "aux": (lambda: ag.grad(lambda x: ag.grad_and_aux(lambda y: (y**2, y * x))(x)[1])(2.0), 4.0),
    "Hessian": (lambda: ag.hessian(lambda x: np.sum(x**3 * lower(x**2)))(POINT), onp.diag(12 * POINT**3)),
    "hvp": (lambda: ag.make_hvp(lambda x: np.sum(x**3 * lower(x**2)))(POINT)[0](POINT), 12 * POINT**4),
    "in rules": (lambda: ag.grad(cube)(2.0), 12.0),
    "in rules, reverse over reverse": (lambda: ag.grad(ag.grad(cube))(2.0), 6.0),
    "in rules, forward over forward": (lambda: ag.deriv(ag.deriv(cube))(2.0), 6.0),
    "in rules, forward over reverse": (lambda: ag.deriv(ag.grad(cube))(2.0), 6.0),
    "in rules, reverse over forward": (lambda: ag.grad(ag.deriv(cube))(2.0), 6.0),
    "in rules, three": (lambda: ag.grad(ag.grad(ag.grad(cube)))(2.0), 3.0),
}


def _kept(x):
    kept = []

    def f(y):
        kept.append(y * 3)
        return y**2 * lower(kept[0])

    return ag.grad(ag.grad(f))(x)


@pytest.mark.filterwarnings("ignore:Output seems independent")
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    compute, expected = NUMBERS[name]
    onp.testing.assert_allclose(compute(), expected, rtol=1e-12)


def test_the_last_value_is_plain():
    kinds = []

    def f(x):
        kinds.append([isinstance(y, ArrayBox) for y in (x, x._value, lower(x._value))])
        return x

    ag.grad(ag.grad(lambda x: f(x) ** 2))(2.0)
    assert kinds == [[True, True, False]]
    ag.deriv(ag.grad(lambda x: f(x) ** 2))(2.0)
    assert kinds[1:] == [[True, True, False]]


def test_values_of_runs_that_follow_each_other_are_one_level():
    """Collect the results of inner runs, as a program that computes a function, its Jacobian and its Hessian in one run."""
    collected = []

    def gradient(x):
        value, found = ag.value_and_grad(lambda x: np.sum(x**3))(x)
        collected.append(value)
        return found

    for x in ([1.0, 2.0], [3.0, 4.0]):
        ag.jacobian(gradient)(onp.array(x))
    stacked = np.stack(collected)
    assert isinstance(stacked, ArrayBox) and stacked._trace == 0
    values = [stacked._value, np.sum(stacked)._value, (collected[0] * collected[1])._value, collected[0]._value]
    assert not any(isinstance(value, ArrayBox) for value in values)
    onp.testing.assert_array_equal(values[0], [9.0, 91.0])
    assert values[1:] == [100.0, 819.0, 9.0]


def test_a_value_that_leaves_an_inner_run_is_the_inner_level_of_a_later_run():
    left, products = [], []
    ag.grad(lambda x: ag.grad(lambda z: left.append(z) or z * x)(3.0) + x)(2.0)
    ag.grad(lambda x: products.append(left[0] * x) or x)(5.0)
    (product,) = products
    assert product._trace == 1
    assert isinstance(product._value, ArrayBox) and product._value._trace == 0 and product._value._value == 15.0


def test_boxes_with_different_trace_numbers_are_different_levels():
    x, y = new_box(2.0, 0, VJPNode.new_root()), new_box(3.0, 1, VJPNode.new_root())
    product = x * y
    assert (product._trace, x._trace) == (1, 0)
    assert isinstance(product._value, ArrayBox) and product._value._trace == 0
    assert product._value._value == 6.0 and not isinstance(product._value._value, ArrayBox)


def test_isinstance_of_the_package_asks_the_value():
    asked = []
    ag.grad(lambda x: asked.extend([ag.isinstance(x, ArrayBox), isinstance(x, ArrayBox)]) or x)(2.0)
    assert asked == [False, True]
