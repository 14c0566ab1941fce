"""Error messages: PyTorch's exception type and key words, the cause, the fix; and no side effects."""

import warnings

import numpy as np
import pytest

import chainrule as cr


def raised(kind, function):
    with pytest.raises(kind) as info:
        function()
    return str(info.value)


def test_non_scalar_backward_without_gradient():
    a = cr.tensor([1.0, 2.0, 3.0])
    b = cr.tensor([4.0, 5.0, 6.0], requires_grad=True)
    c = a * b
    text = raised(RuntimeError, c.backward)
    assert text.startswith("grad can be implicitly created only for scalar outputs")
    assert "c = mul (test_errors.py:20) has shape (3,)" in text
    assert "c.sum().backward()" in text and "jacobian(c, b)" in text
    assert b.grad is None


def test_gradient_of_the_wrong_shape():
    x = cr.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = cr.outer(x, x)
    text = raised(RuntimeError, lambda: cr.autograd.grad(y, x, grad_outputs=cr.ones_like(x)))
    assert text.startswith(
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([4]) and output[0] has a shape of torch.Size([4, 4])."
    )
    assert "ones_like(y)" in text and "(4, 4)" in text
    assert cr.autograd.grad(y, x, cr.ones_like(y))[0].tolist() == [20.0] * 4


@pytest.mark.parametrize(
    ("cut", "word"),
    [
        (lambda x: x.detach() * 2, "detach"),
        (lambda x: x.argmax().float(), "argmax"),
        (lambda x: (x > 1).float().mean(), "gt"),
        (lambda x: (x.argmax() == 1).float() * 3, "argmax"),
        (lambda x: x.long().sum(), "integer dtype"),
    ],
)
def test_no_grad_fn_names_where_the_path_was_cut(cut, word):
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    y = cut(x).sum()
    text = raised(RuntimeError, y.backward)
    assert text.startswith("element 0 of tensors does not require grad and does not have a grad_fn")
    assert word in text


def test_no_grad_is_named_with_its_line():
    x = cr.tensor([1.0], requires_grad=True)
    with cr.no_grad():
        y = x * 2
    text = raised(RuntimeError, (y + 1).sum().backward)
    assert "gradient mode was off" in text and "test_errors.py" in text


def test_nothing_requires_grad():
    text = raised(RuntimeError, cr.ones(2).sum().backward)
    assert "requires_grad=True" in text


def test_integers_cannot_require_grad():
    text = raised(RuntimeError, lambda: cr.tensor([1, 2], requires_grad=True))
    assert text.startswith("only Tensors of floating point and complex dtype can require gradients")
    assert "1." in text


def test_grad_of_a_non_leaf_warns_and_names_it():
    x = cr.tensor([1.0], requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed") as record:
        assert y.grad is None
    assert "y is the output of MulBackward0" in str(record[0].message)
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None


def test_matmul_shapes():
    X, W = cr.ones(2, 3), cr.ones(2, 3)
    text = raised(RuntimeError, lambda: X @ W)
    assert text.startswith("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)")
    assert "X @ W.T has shape (2, 2)" in text
    X.requires_grad_()
    assert raised(RuntimeError, lambda: X @ W).startswith("mat1 and mat2")


def test_broadcasting():
    text = raised(RuntimeError, lambda: cr.ones(3, requires_grad=True) + cr.ones(4))
    assert text.startswith("The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0")


def test_tensor_of_tensors():
    a = cr.tensor(1.0, requires_grad=True)
    text = raised(RuntimeError, lambda: cr.tensor([a, a * 2]))
    assert "stack" in text and "cut the graph" in text
    assert cr.tensor([cr.tensor(1.0), cr.tensor(2.0)]).tolist() == [1.0, 2.0]


def test_numpy_on_a_tensor_that_requires_grad():
    x = cr.tensor([1.0], requires_grad=True)
    for call in (x.numpy, lambda: np.asarray(x)):
        text = raised(RuntimeError, call)
        assert text.startswith("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    assert "x.detach().numpy()" in text


def test_unused_input_and_input_without_grad():
    x, z = cr.ones(1, requires_grad=True), cr.ones(1)
    text = raised(RuntimeError, lambda: cr.autograd.grad(x.sum(), z))
    assert text.startswith("One of the differentiated Tensors does not require grad")
    assert "(z)" in text


def test_wrong_types():
    x = cr.ones(2, requires_grad=True)
    y = x * 2
    assert "can be either Tensors or None" in raised(TypeError, lambda: y.backward("g"))
    assert "must be a Tensor" in raised(TypeError, lambda: cr.autograd.grad(y.sum(), [1.0]))
    assert "cannot be empty" in raised(RuntimeError, lambda: y.sum().backward(inputs=[]))
    assert "gradients" in raised(RuntimeError, lambda: cr.autograd.backward([y], [cr.ones(2), cr.ones(2)]))
    assert x.grad is None


def test_integer_gradient_is_cast():
    x = cr.ones(2, requires_grad=True)
    (x * 2).backward(cr.tensor([1, 3]))
    assert x.grad.tolist() == [2.0, 6.0]


def test_numpy_gradient_is_accepted():
    x = cr.tensor(np.ones(2), requires_grad=True)
    (x * 2).backward(np.array([1.0, 3.0]))
    assert x.grad.tolist() == [2.0, 6.0]


def test_typos_get_a_suggestion():
    x = cr.ones(2)
    assert "'reshape'" in raised(AttributeError, lambda: x.reshpe(2))


def test_an_integer_saved_by_backward_is_not_a_problem_but_a_nan_is_not_hidden():
    x = cr.tensor([0.0], requires_grad=True)
    with np.errstate(all="ignore"):
        (cr.sqrt(x) * 0).sum().backward()
    assert np.isnan(x.grad.item())


def test_escaped_tensors_name_the_transformation():
    kept = []

    def f(x):
        kept.append(x)
        return x.sum()

    cr.vmap(f)(cr.ones(2, 3))
    assert "vmap" in raised(RuntimeError, kept[0].numpy)
    assert "vmap" in raised(RuntimeError, lambda: bool(kept[0].sum() > 0))
