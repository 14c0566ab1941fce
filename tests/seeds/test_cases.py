"""The cases of the five starting documents, reproduced exactly: inputs, printed text and numbers.

The matrix product under an exponential, a square with a given upstream gradient, the tensor-level rule of a product,
the meaning of ``grad_outputs``, and two ways to compute a Jacobian.
"""

from __future__ import annotations

import pytest

import chainrule as torch
from chainrule.autograd import Variable, grad
from chainrule.autograd.functional import jacobian


def matrix_product():
    x = torch.tensor([[2.0, 1.0, -3.0], [-3.0, 4.0, 2.0]], requires_grad=True)
    w = torch.tensor([[3.0, 2.0, 1.0, -1.0], [2.0, 1.0, 3.0, 2.0], [3.0, 2.0, 1.0, -2.0]], requires_grad=True)
    return x, w, x @ w


X_GRAD = """\
tensor([[ -3648.6118,   7197.7920,  -7279.4707],
        [229369.6250, 729282.0625, 222789.8281]])"""


# -- a matrix product under an exponential ---------------------------------------------------------------------------


def test_exponential_of_a_product() -> None:
    x, w, z = matrix_product()
    z.retain_grad()
    y = torch.exp(z)
    y.retain_grad()
    assert repr(y) == (
        "tensor([[3.6788e-01, 3.6788e-01, 7.3891e+00, 4.0343e+02],\n"
        "        [1.4841e+02, 7.3891e+00, 5.9874e+04, 1.0966e+03]],\n"
        "       grad_fn=<ExpBackward0>)"
    )
    g = torch.tensor([[2, 3, -3, 9], [-8, 1, 4, 6]])
    assert f"{g} {g.shape}" == "tensor([[ 2,  3, -3,  9],\n        [-8,  1,  4,  6]]) torch.Size([2, 4])"
    y.backward(g)
    assert repr(x.grad) == X_GRAD
    assert w.grad.shape == (3, 4)
    # y.grad is the given gradient, as floats: ∂L/∂y, not ∂y/∂x
    assert repr(y.grad) == "tensor([[ 2.,  3., -3.,  9.],\n        [-8.,  1.,  4.,  6.]])"
    assert repr(z.grad) == (
        "tensor([[ 7.3576e-01,  1.1036e+00, -2.2167e+01,  3.6309e+03],\n"
        "        [-1.1873e+03,  7.3891e+00,  2.3950e+05,  6.5798e+03]])"
    )


def test_the_chain_rule_by_hand() -> None:
    x, w, z = matrix_product()
    y = torch.exp(z)
    g = torch.tensor([[2.0, 3.0, -3.0, 9.0], [-8.0, 1.0, 4.0, 6.0]])
    y.backward(g)
    z_grad = g * y
    assert repr(z_grad) == (
        "tensor([[ 7.3576e-01,  1.1036e+00, -2.2167e+01,  3.6309e+03],\n"
        "        [-1.1873e+03,  7.3891e+00,  2.3950e+05,  6.5798e+03]],\n"
        "       grad_fn=<MulBackward0>)"
    )
    x_grad = z_grad @ w.T
    assert repr(x_grad) == X_GRAD[:-1] + ", grad_fn=<MmBackward0>)"
    assert torch.equal(x_grad, x.grad)


# -- a square, with an upstream gradient -----------------------------------------------------------------------------


def square():
    a = Variable(torch.FloatTensor([[1, 2, 3], [4, 5, 6]]), requires_grad=True)
    return a, a * a


def test_upstream_gradient_a_gives_two_a_squared() -> None:
    a, out = square()
    out.backward(a)
    assert repr(a.grad) == "tensor([[ 2.,  8., 18.],\n        [32., 50., 72.]])"


def test_upstream_gradient_of_ones_gives_two_a() -> None:
    a, out = square()
    out.backward(torch.ones(2, 3))
    assert repr(a.grad) == "tensor([[ 2.,  4.,  6.],\n        [ 8., 10., 12.]])"


def test_element_by_element() -> None:
    a = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.float, requires_grad=True)
    for i in range(2):
        for j in range(3):
            out = a[i, j] * a[i, j]
            out.backward()
    assert repr(a.grad) == "tensor([[ 2.,  4.,  6.],\n        [ 8., 10., 12.]])"


# -- one tensor-level rule for a product -----------------------------------------------------------------------------


def walk(node) -> list[str]:
    """Return the names of all nodes from here to the leaves, depth first."""
    return [node.name()] + [name for below, _ in node.next_functions if below is not None for name in walk(below)]


def test_a_product_is_one_node() -> None:
    torch.manual_seed(0)
    a = torch.randn(5, 5, requires_grad=True)
    b = torch.randn(5, 5, requires_grad=True)
    node = (a @ b).grad_fn
    assert node.name() == "MmBackward0"
    assert walk(node) == ["MmBackward0", "AccumulateGrad", "AccumulateGrad"]
    assert [below.variable is leaf for (below, _), leaf in zip(node.next_functions, (a, b))] == [True, True]


def test_it_keeps_its_operands() -> None:
    x, w, z = matrix_product()
    assert torch.equal(z.grad_fn._saved_self, x)
    assert torch.equal(z.grad_fn._saved_mat2, w)


def test_its_rule_can_be_called() -> None:
    x, w, z = matrix_product()
    g = torch.tensor([[2.0, 3.0, -3.0, 9.0], [-8.0, 1.0, 4.0, 6.0]])
    x_grad, w_grad = z.grad_fn(g)
    assert x_grad.tolist() == [[0.0, 16.0, -9.0], [-24.0, 9.0, -30.0]]
    assert w_grad.tolist() == [[28.0, 3.0, -18.0, 0.0], [-30.0, 7.0, 13.0, 33.0], [-22.0, -7.0, 17.0, -15.0]]
    assert torch.equal(x_grad, g @ w.T) and torch.equal(w_grad, x.T @ g)
    assert x.grad is None  # nothing was accumulated


def test_the_elementwise_product_has_one_rule_too() -> None:
    a, b = torch.ones(5, 5, requires_grad=True), torch.full((5, 5), 3.0, requires_grad=True)
    node = (a * b).grad_fn
    assert walk(node) == ["MulBackward0", "AccumulateGrad", "AccumulateGrad"]
    a_grad, b_grad = node(torch.full((5, 5), 2.0))
    assert torch.equal(a_grad, torch.full((5, 5), 6.0)) and torch.equal(b_grad, torch.full((5, 5), 2.0))


def test_einsum_is_recorded_as_what_it_is_made_of() -> None:
    a, b = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    names = set(walk(torch.einsum("ij,kj->ik", a, b).grad_fn))
    assert {"PermuteBackward0", "ViewBackward0", "BmmBackward0"} <= names
    assert names <= {"PermuteBackward0", "ViewBackward0", "UnsafeViewBackward0", "BmmBackward0", "AccumulateGrad",
                     "UnsqueezeBackward0", "ReshapeAliasBackward0"}  # fmt: skip


# -- grad_outputs ----------------------------------------------------------------------------------------------------


def outer_square():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    return x, torch.outer(x, x)


def test_grad_outputs_of_ones() -> None:
    x, y = outer_square()
    assert repr(y) == (
        "tensor([[ 1.,  2.,  3.,  4.],\n"
        "        [ 2.,  4.,  6.,  8.],\n"
        "        [ 3.,  6.,  9., 12.],\n"
        "        [ 4.,  8., 12., 16.]], grad_fn=<MulBackward0>)"
    )
    assert repr(grad(y, x, grad_outputs=torch.ones_like(y))) == "(tensor([20., 20., 20., 20.]),)"
    assert repr(2 * x.sum() * torch.ones_like(x)) == "tensor([20., 20., 20., 20.], grad_fn=<MulBackward0>)"


def test_grad_outputs_weighs_the_elements_of_the_output() -> None:
    x, y = outer_square()
    g = torch.arange(16.0).reshape(4, 4)
    (found,) = grad(y, x, grad_outputs=g, retain_graph=True)
    assert found.tolist() == [100.0, 150.0, 200.0, 250.0]  # (g + gᵀ) x
    full = jacobian(lambda x: torch.outer(x, x), x.detach())
    assert full.shape == (4, 4, 4)
    assert torch.equal(torch.tensordot(g, full, 2), found)


def test_grad_outputs_of_the_input_shape_is_refused() -> None:
    x, y = outer_square()
    with pytest.raises(RuntimeError) as caught:
        grad(y, x, grad_outputs=torch.ones_like(x))
    first, *rest = str(caught.value).splitlines()
    assert first == (
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([4]) and output[0] has a shape of "
        "torch.Size([4, 4])."
    )
    assert "∂L/∂y" in rest[0] and "ones_like(y)" in rest[0]
    (found,) = grad(y, x, grad_outputs=torch.ones_like(y))  # the error has no side effects
    assert found.tolist() == [20.0] * 4


def test_two_steps_of_the_chain_rule() -> None:
    x, y = outer_square()
    z = y**2
    ones = torch.ones_like(z)
    (y_grad,) = grad(z, y, grad_outputs=ones, retain_graph=True)
    assert torch.equal(y_grad, 2 * y)
    (in_two,) = grad(y, x, grad_outputs=y_grad, retain_graph=True)
    (in_one,) = grad(z, x, grad_outputs=ones)
    assert in_one.tolist() == in_two.tolist() == [120.0, 240.0, 360.0, 480.0]  # 4 x Σx²


# -- two ways to compute a Jacobian ----------------------------------------------------------------------------------


def product_of_vectors():
    a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = torch.tensor([4.0, 5.0, 6.0], requires_grad=True)
    return a, b, a * b


JACOBIAN = "tensor([[1., 0., 0.],\n        [0., 2., 0.],\n        [0., 0., 3.]])"


def test_backward_of_a_vector_needs_a_gradient() -> None:
    a, b, c = product_of_vectors()
    with pytest.raises(RuntimeError) as caught:
        c.backward()
    first, *rest = str(caught.value).splitlines()
    assert first == "grad can be implicitly created only for scalar outputs."
    assert "c = mul" in rest[0] and "has shape (3,)" in rest[0]
    assert {line.split()[0] for line in rest[1:]} == {"c.sum().backward()", "c.backward(g)", "jacobian(c,"}
    assert a.grad is None and b.grad is None


def test_there_is_no_gradient_before_backward() -> None:
    _, b, _ = product_of_vectors()
    assert repr(b.grad) == "None"


def rows_of_backward(y, x):
    """Run one backward pass for every element of y."""
    rows = []
    for i, element in enumerate(y.flatten()):
        if x.grad is not None:
            x.grad.zero_()
        element.backward(retain_graph=i < y.numel() - 1)
        rows.append(x.grad.clone())
    return torch.stack(rows).reshape(*y.shape, *x.shape)


def test_a_jacobian_row_by_row() -> None:
    _, b, c = product_of_vectors()
    assert repr(rows_of_backward(c, b)) == JACOBIAN
    with pytest.raises(RuntimeError, match="a second time"):
        c.sum().backward()  # the last row freed the graph


def test_a_generalized_jacobian_row_by_row() -> None:
    x, w, z = matrix_product()
    rows = rows_of_backward(z, x)
    assert rows.shape == (2, 4, 2, 3)
    assert torch.equal(rows, jacobian(lambda x: x @ w.detach(), x.detach()))


def test_a_jacobian_of_a_function() -> None:
    a, b, _ = product_of_vectors()
    assert repr(jacobian(lambda b: a.detach() * b, b)) == JACOBIAN
    assert b.grad is None


def test_several_inputs_give_a_tuple() -> None:
    a, b, _ = product_of_vectors()
    found = jacobian(lambda a, b: a * b, (a, b))
    assert type(found) is tuple
    assert repr(found[0]) == "tensor([[4., 0., 0.],\n        [0., 5., 0.],\n        [0., 0., 6.]])"
    assert repr(found[1]) == JACOBIAN


def test_one_input_in_a_tuple_gives_a_tuple_of_one() -> None:
    (found,) = jacobian(torch.exp, (torch.zeros(2),))
    assert found.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_several_outputs_give_a_tuple_of_tuples() -> None:
    a, b = torch.tensor([1.0, 2.0]), torch.tensor(3.0)
    (aa, ab), (ba, bb) = jacobian(lambda a, b: (a * b, a.sum()), (a, b))
    assert [j.shape for j in (aa, ab, ba, bb)] == [(2, 2), (2,), (2,), ()]
    assert (aa.tolist(), ab.tolist(), ba.tolist(), bb.tolist()) == ([[3, 0], [0, 3]], [1, 2], [1, 1], 0)


@pytest.mark.parametrize("vectorize", [False, True])
def test_an_input_without_influence(vectorize: bool) -> None:
    a, b = torch.ones(2), torch.ones(3)
    found = jacobian(lambda a, b: a * 2, (a, b), vectorize=vectorize)
    assert found[1].tolist() == [[0.0] * 3] * 2
    refusal = "not supported together" if vectorize else r"independent of input 1.*strict mode"
    with pytest.raises(RuntimeError, match=refusal):
        jacobian(lambda a, b: a * 2, (a, b), strict=True, vectorize=vectorize)


def test_vectorized_is_the_same() -> None:
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    one, other = (jacobian(lambda x: torch.outer(x, x), x, vectorize=v) for v in (False, True))
    assert torch.equal(one, other)


def test_a_jacobian_that_can_be_differentiated() -> None:
    b = torch.tensor([1.0, 2.0], requires_grad=True)
    jacobian(lambda b: b**3, b, create_graph=True).sum().backward()
    assert b.grad.tolist() == [6.0, 12.0]


def test_jacobian_refuses_what_is_no_tensor() -> None:
    with pytest.raises(TypeError, match="inputs given to jacobian must be either a Tensor or a tuple of Tensors"):
        jacobian(torch.exp, [1.0, 2.0])
    with pytest.raises(TypeError, match="outputs of the user-provided function given to jacobian"):
        jacobian(lambda x: x.tolist(), torch.ones(2))
    with pytest.raises(RuntimeError, match=r"does not require gradients.*\n.*cut by detach"):
        jacobian(lambda x: x.detach(), torch.ones(2), strict=True)


def test_the_transpose_of_a_generalized_jacobian() -> None:
    x, w, _ = matrix_product()
    j = jacobian(lambda x: x @ w.detach(), x.detach())
    assert j.permute(2, 3, 0, 1).shape == (2, 3, 2, 4)
    assert torch.equal(j.reshape(8, 6).T, j.permute(2, 3, 0, 1).reshape(6, 8))
