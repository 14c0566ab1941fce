"""The questions that users asked, answered by explain() with their numbers."""

# ruff: noqa: RUF059 -- explain() looks the names up

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

BAR = "\u02c9"


def exponential(dtype):
    X = cr.tensor([[2.0, 1.0, -3], [-3, 4, 2]], requires_grad=True, dtype=dtype)
    W = cr.tensor([[3.0, 2.0, 1.0, -1], [2, 1, 3, 2], [3, 2, 1, -2]], requires_grad=True, dtype=dtype)
    Z = cr.matmul(X, W)
    Y = cr.exp(Z)
    Y.retain_grad()
    G = cr.tensor([[2, 3, -3, 9], [-8, 1, 4, 6]])
    return X, W, Z, Y, G


X_GRAD = [[-3648.6118, 7197.7919, -7279.4709], [229369.6302, 729282.0770, 222789.8313]]


def test_seed_0_in_float64():
    X, W, Z, Y, G = exponential(cr.float64)
    e = cr.explain(Y, grad=G)
    exp, mm = e.steps
    assert (exp.op, mm.op) == ("exp", "mm")
    np.testing.assert_array_equal(mm.output.data, [[-1, -1, 2, 6], [5, 2, 11, 7]])
    np.testing.assert_array_equal(exp.upstream, G.numpy())
    (z,) = exp.arrows
    assert (z.jacobian_shape, z.jacobian_size, z.structure, z.built) == ((2, 4, 2, 4), 64, "diagonal", False)
    assert z.rule_numpy == f"Y{BAR} * Y"
    assert z.rule_latex == r"\bar{Z} = \bar{Y} \odot Y"
    assert z.numbers == f"Z{BAR}[0,0] = 2 · 0.3679 = 0.7358"
    x, w = mm.arrows
    assert (x.jacobian_shape, x.jacobian_size, x.structure) == ((2, 4, 2, 3), 48, "I ⊗ Wᵀ")
    assert (w.jacobian_shape, w.jacobian_size, w.structure) == ((2, 4, 3, 4), 96, "X ⊗ I")
    assert x.rule_index == f"X{BAR}[i,k] = Σ_j Z{BAR}[i,j]·W[k,j]"
    np.testing.assert_allclose(e.gradients["X"], X_GRAD, atol=5e-5)
    np.testing.assert_allclose(e.gradients["W"], X.detach().numpy().T @ (G.numpy() * Y.detach().numpy()))
    assert e.check() and "✓" in str(e.check())
    assert "tensordot" in str(e.check())
    assert X.grad is None and W.grad is None and Y.grad is None
    G0 = G.numpy().copy()
    G0[0, 0] = 0
    assert cr.explain(Y, grad=G0).gradients["X"][0, 0] == pytest.approx(-3650.8190, abs=5e-5)
    Y.backward(G)  # the graph still exists
    np.testing.assert_array_equal(X.grad.numpy(), e.gradients["X"])


def test_seed_0_in_float32():
    X, W, _, Y, G = exponential(cr.float32)
    e = cr.explain(Y, grad=G)
    assert e.gradients["X"].dtype == np.float32
    np.testing.assert_array_equal(
        e.gradients["X"], np.float32([[-3648.6118, 7197.7920, -7279.4707], [229369.6250, 729282.0625, 222789.8281]])
    )
    assert e.check()


def test_seed_0_is_answered_in_the_first_ten_lines():
    X, W, _, Y, G = exponential(cr.float32)
    head = "\n".join(str(cr.explain(Y, grad=G)).split("\n")[:10])
    for part in ("the gradient you passed = Y.grad", "* Y", "@ W.mT", "-3648.6118", "729282.06"):
        assert part in head
    assert "exp, step 1" in head and "mm, step 2" in head


def test_seed_0_by_steps():
    X, W, Z, Y, G = exponential(cr.float64)
    exp, mm = cr.explain(Y, grad=G, wrt=[X, W]).steps
    assert (exp.input_shapes, exp.output_shape, exp.jacobian_shape) == ({"Z": (2, 4)}, (2, 4), (2, 4, 2, 4))
    assert (exp.structure, exp.rule_numpy, exp.rule_latex) == ("diagonal", f"Y{BAR} * Y", r"\bar{Z} = \bar{Y} \odot Y")
    assert exp.rule_index == f"Z{BAR}[i,j] = Y{BAR}[i,j]·Y[i,j]"
    np.testing.assert_array_equal(exp.upstream, G.numpy())
    np.testing.assert_array_equal(exp.downstream, mm.upstream)
    assert (mm.input_shapes, mm.output_shape) == ({"X": (2, 3), "W": (3, 4)}, (2, 4))
    assert mm.jacobian_shape == {"X": (2, 4, 2, 3), "W": (2, 4, 3, 4)}
    assert mm.structure == {"X": "I ⊗ Wᵀ", "W": "X ⊗ I"}
    assert mm.rule_numpy == {"X": f"Z{BAR} @ W.mT", "W": f"X.mT @ Z{BAR}"}
    assert mm.rule_index["X"] == f"X{BAR}[i,k] = Σ_j Z{BAR}[i,j]·W[k,j]"
    assert mm.rule_latex["X"] == r"\bar{X} = \bar{Z} \, W^{\top}"
    np.testing.assert_allclose(mm.downstream["X"], X_GRAD, atol=5e-5)
    assert mm.source_line.text == "Z = cr.matmul(X, W)"  # in a function that has returned
    (_, mm) = cr.explain(Y, grad=G, wrt=X).steps  # one arrow; the other operand is a constant
    assert mm.jacobian_shape == (2, 4, 2, 3) and mm.input_shapes == {"X": (2, 3), "W": (3, 4)}
    np.testing.assert_allclose(mm.downstream, X_GRAD, atol=5e-5)


def test_seed_3_by_steps():
    x = cr.tensor([1.0, 2, 3, 4], requires_grad=True)
    y = cr.outer(x, x)
    e = cr.explain(y, grad=cr.ones_like(y))
    mul, unsqueeze = e.steps
    assert (mul.input_shapes, mul.output_shape) == ({"t1": (4, 1), "x": (4,)}, (4, 4))
    assert mul.jacobian_shape == {"t1": (4, 4, 4, 1), "x": (4, 4, 4)}
    assert unsqueeze.jacobian_shape == (4, 1, 4) and unsqueeze.structure == "selection"
    np.testing.assert_array_equal(mul.downstream["x"], [10, 10, 10, 10])
    np.testing.assert_array_equal(unsqueeze.downstream, [10, 10, 10, 10])
    assert e.jacobian_index == {("y", "x"): "∂y[j,k]/∂x[i] = δ[i,j]·x[k] + δ[i,k]·x[j]"}


def test_a_step_to_one_value_twice_says_which_operand():
    a = cr.tensor([1.0, 2, 3], requires_grad=True)
    y = a * a
    (step,) = cr.explain(y).steps
    assert step.jacobian_shape == {"x": (3, 3), "y": (3, 3)} and step.input_shapes == {"a": (3,)}
    np.testing.assert_array_equal(step.downstream["y"], [1, 2, 3])


def test_seed_0_says_what_y_grad_is():
    X, W, _, Y, G = exponential(cr.float32)
    lessons = dict(cr.explain(Y, grad=G).lessons)
    assert lessons["seed_is_output_grad"] == "Y.grad = ∂L/∂Y is what you passed, not ∂Y/∂X."
    assert "(2, 3)" in lessons["wrong_shape_would"] and "(2, 4)" in lessons["wrong_shape_would"]


def test_seed_1_the_gradient_is_the_input_itself():
    a = cr.tensor([[1.0, 2, 3], [4, 5, 6]], requires_grad=True)
    out = a * a
    e = cr.explain(out, grad=a)
    np.testing.assert_array_equal(e.gradients["a"], [[2, 8, 18], [32, 50, 72]])
    assert "ones_like(out)" in dict(e.lessons)["seed_is_an_input"]
    ones = cr.explain(out, grad=cr.ones(2, 3))
    np.testing.assert_array_equal(ones.gradients["a"], [[2, 4, 6], [8, 10, 12]])
    assert dict(ones.lessons)["ones_means_sum"] == "The gradient is ones: this differentiates L = out.sum()."
    assert "seed_is_an_input" not in dict(ones.lessons)


@pytest.mark.parametrize("dtype", [cr.float32, cr.float64])
def test_seed_3_how_twenty_came_about(dtype):
    x = cr.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True, dtype=dtype)
    y = cr.outer(x, x)
    e = cr.explain(y, grad=cr.ones_like(y))
    np.testing.assert_array_equal(e.gradients["x"], [20, 20, 20, 20])
    terms = e.terms_of(e.wrt[0])
    assert len(terms) == 2
    for _, _, term in terms:
        np.testing.assert_array_equal(term, [10, 10, 10, 10])
    assert e.check()
    assert dict(e.lessons)["ones_means_sum"] == "The gradient is ones: this differentiates L = y.sum()."
    assert "(4,)" in dict(e.lessons)["wrong_shape_would"]
    text = str(e)
    assert "because x is used 2 times" in text and text.count("[10. 10. 10. 10.]") >= 2
    with pytest.raises(RuntimeError, match=r"Mismatch in shape"):
        cr.explain(y, grad=cr.ones_like(x))


def test_seed_2_one_rule_for_the_whole_array():
    A = cr.randn(5, 5, requires_grad=True)
    B = cr.randn(5, 5, requires_grad=True)
    C = A @ B
    (step,) = cr.explain(C).steps
    assert [a.rule_numpy for a in step.arrows] == [f"C{BAR} @ B.mT", f"A.mT @ C{BAR}"]
    assert [a.jacobian_size for a in step.arrows] == [625, 625]
