"""User-defined operations: ``chainrule.primitive``."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape.protocol import UFUNCS
from chainrule.primitive import (
    TableError,
    contraction,
    discrete,
    elementwise,
    leading_axes,
    linear,
    opaque,
    unsupported,
)
from chainrule.testing import gradcheck, gradgradcheck, rulecheck


def make_logcosh() -> Any:
    @elementwise(d={"x": lambda x: np.tanh(x)}, formula={"x": "g * np.tanh(x)"}, promotion="float", accepts="f")
    def logcosh(x: Any) -> Any:
        """log(cosh(x)), without overflow."""
        return np.logaddexp(x, -x) - float(np.log(2))

    return logcosh


def make_centered() -> Any:
    @linear(
        transpose={"x": lambda g: g - np.mean(g, axis=-1, keepdims=True)},
        formula={"x": "g - np.mean(g, axis=-1, keepdims=True)"},
        samples=[{"shapes": [(2, 3)]}, {"shapes": [(4,)]}],
        accepts="f",
    )
    def centered(x: Any) -> Any:
        """The elements, less the mean along the last axis."""
        return x - np.mean(x, axis=-1, keepdims=True)

    return centered


def make_similarity() -> Any:
    @contraction("ik,jk->ij", samples=[{"shapes": [(2, 3), (4, 3)]}])
    def similarity(x: Any, y: Any) -> Any:
        """The inner products of the rows of x with the rows of y."""

    return similarity


def make_power_sum() -> Any:
    @opaque(
        vjp={"x": lambda g, x, *, n: g[..., None] * n * x ** (n - 1)},
        jvp={"x": lambda t, x, *, n: np.sum(t * n * x ** (n - 1), axis=-1)},
        formula={"x": "g[..., None] * n * x ** (n - 1)"},
        samples=[{"shapes": [(2, 3)], "n": 3}, {"shapes": [(4,)], "n": 2}],
        accepts="f",
    )
    def power_sum(x: Any, *, n: int = 2) -> Any:
        """The sum of the n-th powers along the last axis."""
        return np.sum(x**n, axis=-1)

    return power_sum


def make_positive() -> Any:
    @discrete(samples=[{"shapes": [(2, 3)]}])
    def count_positive(x: Any) -> Any:
        """The number of positive elements along the last axis."""
        return np.sum(x > 0, axis=-1)

    return count_positive


@pytest.mark.parametrize("make", [make_logcosh, make_centered, make_similarity, make_power_sum, make_positive])
def test_every_column_of_every_kind(make: Any) -> None:
    rulecheck(make())


def make_squared_sum(**options: Any) -> Any:
    @opaque(
        vjp={"x": lambda g, x: 2 * g * np.sum(x) * np.ones_like(x)},
        jvp={"x": lambda t, x: 2 * np.sum(x) * np.sum(t)},
        samples=[{"shapes": [(3,)]}, {"shapes": [(2, 3)]}, {"shapes": [()]}],
        accepts="f",
        **options,
    )
    def squared_sum(x: Any) -> Any:
        return np.sum(x) ** 2

    return squared_sum


def make_flattened_sums() -> Any:
    @linear(
        transpose={"x": lambda g: np.reshape(np.flip(np.cumsum(np.flip(g, 0), 0), 0), (2, -1))},
        samples=[{"shapes": [(2, 3)]}],
        accepts="f",
    )
    def sums(x: Any) -> Any:
        return np.cumsum(x)

    return sums


def make_count() -> Any:
    @discrete(samples=[{"shapes": [(2, 3)]}])
    def count(x: Any) -> Any:
        return np.count_nonzero(x > 0)

    return count


def make_extremes() -> Any:
    @opaque(
        vjp={"x": lambda g, x: g[0] * (x == np.min(x)) + g[1] * (x == np.max(x))},
        jvp={"x": lambda t, x: (np.sum(t * (x == np.min(x))), np.sum(t * (x == np.max(x))))},
        samples=[{"shapes": [(4,)]}],
        outputs=("low", "high"),
        accepts="f",
    )
    def extremes(x: Any) -> Any:
        return np.min(x), np.max(x)

    return extremes


@pytest.mark.parametrize("make", [make_squared_sum, make_flattened_sums, make_count, make_extremes])
def test_functions_that_know_no_leading_axes_run_for_one_example_after_the_other(make: Any) -> None:
    f = make()
    rulecheck(f)
    x = np.random.default_rng(0).normal(size=(3, 2, 2))
    got, want = cr.vmap(f)(x), [f(example) for example in x]
    for g, w in zip(got, zip(*want)) if isinstance(got, tuple) else [(got, want)]:
        np.testing.assert_allclose(g, w)


def test_a_batch_of_which_only_some_operands_carry_the_axis() -> None:
    @opaque(
        vjp={"x": lambda g, y: g * y, "y": lambda g, x: g * x},
        jvp={"x": lambda t, y: np.sum(t * y), "y": lambda t, x: np.sum(x * t)},
        samples=[{"shapes": [(3,), (3,)]}],
        accepts="f",
    )
    def inner(x: Any, y: Any) -> Any:
        return np.sum(x * y)

    rulecheck(inner)
    x, y = np.arange(6.0).reshape(2, 3), np.ones(3)
    np.testing.assert_allclose(cr.vmap(inner, (0, None))(x, y), [3, 12])
    np.testing.assert_allclose(cr.vmap(cr.func.grad(inner, 1), (0, None))(x, y), x)


def test_leading_axes_that_are_free_are_one_call() -> None:
    calls = []

    @linear(transpose={"x": lambda g: np.flip(g, -1)}, batch=leading_axes, samples=[{"shapes": [(2, 3)]}])
    def backwards(x: Any) -> Any:
        calls.append(x.shape)
        return x[..., ::-1]

    np.testing.assert_allclose(cr.vmap(backwards)(np.eye(3)), np.eye(3)[:, ::-1])
    assert calls == [(3, 3)]
    rulecheck(backwards)
    with pytest.raises(AssertionError, match="primitive squared_sum: batch"):
        rulecheck(make_squared_sum(batch=leading_axes))


def test_neither_formula_nor_docstring_is_needed() -> None:
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    f = make_squared_sum()
    y = f(x)
    assert y.grad_fn.rule == {"x": "2 * g * np.sum(x) * np.ones_like(x)"}  # derived from the rule
    text = str(cr.explain(y))
    assert "[6. 6.]" in text and "* np.sum(x) * np.ones_like(x)" in text and "is code" not in text and "✓" in text
    assert "squared_sum" in cr.explain(y).to_html()

    def in_steps(g: Any, x: Any) -> Any:
        total = np.sum(x)
        return 2 * g * total * np.ones_like(x)

    @opaque(vjp=in_steps, jvp=lambda t, x: 2 * np.sum(x) * np.sum(t))
    def squared_sum(x: Any) -> Any:
        return np.sum(x) ** 2

    y = squared_sum(x)
    assert y.grad_fn.rule == {}
    text = str(cr.explain(y))
    assert "xˉ = [6. 6.]" in text and "the rule of squared_sum is code" in text and "✓" in text
    cube = elementwise(d={"x": lambda x: 3 * x * x})(lambda x: x * x * x)
    rulecheck(cube)
    cube(x).sum().backward()
    assert x.grad.tolist() == [3, 12]


def test_rows_are_checked_when_they_are_declared_if_the_environment_says_so() -> None:
    program = """
import numpy as np
from chainrule.primitive import elementwise, opaque

@elementwise(d={"x": lambda x: 3 * x * x})
def cube(x):
    return x * x * x

@opaque(vjp={"x": lambda g, x: g}, jvp={"x": lambda t, x: t})
def unknown(x):
    return x

@elementwise(d={"x": lambda x: 2 * x * x})
def wrong(x):
    return x * x * x
"""
    environment = {**os.environ, "CHAINRULE_CHECK_ROWS": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert "AssertionError: primitive wrong: VJP with respect to operand 'x'" in done.stderr


def test_arrays_give_arrays_and_tensors_tensors() -> None:
    f = make_logcosh()
    assert isinstance(f(np.array([1.0, 2.0])), np.ndarray)
    assert float(f(1.0)) == pytest.approx(np.log(np.cosh(1.0)))
    assert float(f(np.float64(1.0))) == pytest.approx(np.log(np.cosh(1.0)))
    y = f(cr.tensor([1.0, 2.0]))
    assert isinstance(y, cr.Tensor) and not y.requires_grad
    assert f.__name__ == "logcosh" and f.__doc__.startswith("log(cosh") and f.row.name == "logcosh"


def test_on_the_tape_it_is_a_node_of_its_name() -> None:
    f = make_logcosh()
    x = cr.tensor([0.5, -1.0], requires_grad=True, dtype=cr.float64)
    y = f(x)
    assert y.grad_fn.name() == "LogcoshBackward0"
    assert f.row.formula == {"x": "g * np.tanh(x)"}
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.tanh([0.5, -1.0]))
    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


def test_explanations_show_rules_of_one_expression() -> None:
    @elementwise(d=lambda x: 3 * x * x)
    def cube(x: Any) -> Any:
        return x * x * x

    assert cube.row.formula == {"x": "g * 3 * x ** 2"}
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    assert "* 3 * x ** 2" in str(cr.explain(cube(x).sum()))
    scale = 2.0

    @elementwise(d=lambda x: scale)
    def scaled(x: Any) -> Any:
        return scale * x

    assert scaled.row.formula == {}  # only the rule can resolve the name
    rulecheck(scaled)


def test_transformations_nest() -> None:
    f = make_logcosh()
    a = np.array([0.3, -0.7, 1.1])
    sech2 = 1 / np.cosh(a) ** 2
    np.testing.assert_allclose(cr.func.vmap(cr.func.grad(f))(a), np.tanh(a))
    np.testing.assert_allclose(cr.func.vmap(cr.func.grad(cr.func.grad(f)))(a), sech2)
    np.testing.assert_allclose(cr.func.grad(lambda x: np.sum(cr.func.vmap(f)(x)))(a), np.tanh(a))
    np.testing.assert_allclose(cr.func.jvp(f, (a,), (np.ones(3),))[1], np.tanh(a))


def test_parameters_and_their_defaults() -> None:
    f = make_power_sum()
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    assert float(f(x).detach()) == 5 and float(f(x, n=3).detach()) == 9
    np.testing.assert_allclose(cr.autograd.grad(f(x), x)[0].numpy(), [2, 4])
    np.testing.assert_allclose(cr.autograd.grad(f(x, n=3), x)[0].numpy(), [3, 12])
    assert f(np.array([1.0, 2.0])) == 5
    with pytest.raises(TypeError, match="'m'"):
        f(x, m=3)


def test_operands_are_checked() -> None:
    f, s = make_logcosh(), make_similarity()
    with pytest.raises(TypeError, match="logcosh"):
        f("text")
    with pytest.raises(TypeError, match="logcosh"):
        f([1.0, 2.0])
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        s(cr.ones(2, 3))
    with pytest.raises(TypeError, match="similarity"):
        s(cr.ones(2, 3), object())
    with pytest.raises(NotImplementedError, match="complex"):
        f(cr.ones(2, dtype=cr.complex64))


def test_a_scipy_ufunc_in_four_lines() -> None:
    special = pytest.importorskip("scipy.special")
    before = UFUNCS.get(special.jv)

    @elementwise(ufunc=special.jv, formula={"x": "g * (jv(v - 1, x) - jv(v + 1, x)) / 2"}, domain=(0.5, 4), accepts="f",
                 d={"v": unsupported("it is an infinite series"), "x": lambda v, x: (jv(v - 1, x) - jv(v + 1, x)) / 2})  # fmt: skip
    def jv(v: Any, x: Any) -> Any:
        """The Bessel function of the first kind, of order v."""

    try:
        x = cr.tensor([0.5, 2.0], requires_grad=True, dtype=cr.float64)
        y = special.jv(1.0, x)
        assert y.grad_fn.name() == "JvBackward0"
        np.testing.assert_allclose(cr.autograd.grad(y.sum(), x)[0].numpy(), special.jvp(1, [0.5, 2.0]))
        assert gradcheck(lambda x: jv(1.0, x), (x,)) and gradgradcheck(lambda x: jv(1.0, x), (x,))
        with pytest.raises(NotImplementedError, match="infinite series"):
            v = cr.ones(2, dtype=cr.float64).requires_grad_()
            jv(v, x).sum().backward()
        np.testing.assert_allclose(cr.func.vmap(lambda x: jv(0.0, x))(np.array([1.0, 2.0])), special.jv(0, [1.0, 2.0]))
    finally:
        del UFUNCS[special.jv]
        if before is not None:
            UFUNCS[special.jv] = before


def test_names_are_the_users_own() -> None:
    before = TABLE["exp"]

    def define() -> Any:
        @elementwise(d={"x": 2}, formula={"x": "g * 2"})
        def exp(x: Any) -> Any:
            """Twice the elements."""
            return x * 2

        return exp

    first, second = define(), define()  # as running a cell of a notebook again
    assert first is not second and TABLE["exp"] is before
    x = cr.tensor([1.0], requires_grad=True)
    np.testing.assert_allclose(cr.autograd.grad(second(x), x)[0].numpy(), [2])
    np.testing.assert_allclose(cr.autograd.grad(cr.exp(x), x)[0].numpy(), [np.e], rtol=1e-6)


def test_a_ufunc_of_chainrules_is_taken_and_ones_own_may_be_defined_again() -> None:
    with pytest.raises(TableError, match="has a rule for exp"):
        elementwise(ufunc=np.exp, d={"x": 1}, formula={"x": "g"})(lambda x: x)
    ours = np.frompyfunc(lambda x: x, 1, 1)
    assert isinstance(ours, np.ufunc)
    for factor in (2, 3):

        @elementwise(ufunc=ours, value=lambda x, k=factor: x * k, d={"x": factor}, formula={"x": f"g * {factor}"})
        def scaled(x: Any) -> Any:
            """The elements, scaled."""

    x = cr.tensor([1.0, 2.0], requires_grad=True)
    np.testing.assert_allclose(cr.autograd.grad(ours(x).sum(), x)[0].numpy(), [3, 3])
    del UFUNCS[ours]
    with pytest.raises(TypeError, match="NumPy ufunc"):
        elementwise(ufunc=len, d={"x": 1}, formula={"x": "g"})(lambda x: x)


def test_a_missing_cell_is_an_error_at_once() -> None:
    def thing(x: Any) -> Any:
        """A thing."""
        return x

    with pytest.raises(TableError, match="reads 'size'"):
        linear(transpose={"x": lambda g, size: g}, formula={"x": "g"})(thing)
    with pytest.raises(TableError, match="different operands"):
        opaque(vjp={"x": lambda g: g}, jvp={}, formula={"x": "g"})(thing)
    with pytest.raises(TableError, match="not an operand"):
        elementwise(d={"y": 1}, formula={"y": "g"})(thing)
    with pytest.raises(TypeError, match="decorates a function"):
        elementwise(d={"x": 1}, formula={"x": "g"})(3)
    assert "thing" not in TABLE


def test_a_wrong_rule_is_found() -> None:
    @elementwise(d={"x": lambda x: 2 * np.tanh(x)}, formula={"x": "g * 2 * np.tanh(x)"}, promotion="float", accepts="f")
    def too_steep(x: Any) -> Any:
        """log(cosh(x)), with a wrong derivative."""
        return np.logaddexp(x, -x) - float(np.log(2))

    with pytest.raises(AssertionError, match="too_steep"):
        rulecheck(too_steep)


def test_nothing_is_kept() -> None:
    f = make_logcosh()
    gone = weakref.ref(f.row.value)
    del f
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("rule", [np.cos, partial(lambda k, x: k * x, 2)])
def test_a_rule_without_parameter_names_is_refused(rule):
    with pytest.raises(TableError, match="lambda"):

        @elementwise(d={"x": rule}, formula={"x": "g"})
        def refused(x: Any) -> Any:
            """Never defined."""
            return x


def test_a_rule_that_reads_two_values_and_gives_the_first():
    @elementwise(d={"x": lambda y: y, "y": lambda y, x: y}, formula={"x": "g * y", "y": "g * y"})
    def pretending(x: Any, y: Any) -> Any:
        """A product whose second partial derivative is wrong."""
        return x * y

    x, y = cr.tensor(2.0, requires_grad=True), cr.tensor(3.0, requires_grad=True)
    assert cr.autograd.grad(pretending(x, y), (x, y)) == (cr.tensor(3.0), cr.tensor(3.0))


@pytest.mark.parametrize("run", [cr.grad, lambda f: lambda x: cr.vmap(cr.grad(f))(x[None])])
def test_a_gradient_of_the_wrong_shape_is_refused(run: Any) -> None:
    @opaque(vjp={"x": lambda g, x: (2 * g * x).T}, jvp={"x": lambda t, x: (2 * x * t).T})
    def squares(x: Any) -> Any:
        """Squares, with rules that transpose."""
        return x * x

    @linear(transpose={"x": lambda g: g[:, :2]})
    def doubled(x: Any) -> Any:
        """Twice x, with an incomplete set of rules."""
        return x * 2

    x = np.ones((2, 3))
    with pytest.raises(
        RuntimeError, match=r"squares: the VJP for 'x' returned shape \(3, 2\), .* \(2, 3\), so its transpose fits"
    ):
        run(lambda x: np.sum(squares(x)))(x)
    with pytest.raises(
        RuntimeError, match=r"doubled: the VJP for 'x' returned shape \(2, 2\), but that operand has shape \(2, 3\)"
    ):
        run(lambda x: np.sum(doubled(x)))(x)
    with pytest.raises(
        RuntimeError, match=r"squares: the JVP for 'x' returned shape \(3, 2\), but the result has shape"
    ):
        cr.jvp(squares, (x,), (x,))


def test_a_former_name_of_a_check_warns() -> None:
    with pytest.warns(DeprecationWarning, match="public_function"):
        rulecheck(TABLE["tanh"], ["face"])
    with pytest.raises(KeyError, match="faces"):
        rulecheck(TABLE["tanh"], ["faces"])
