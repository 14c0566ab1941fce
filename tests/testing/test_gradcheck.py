"""gradcheck and gradgradcheck: what passes, what is caught, and what they say."""

import numpy as np
import pytest

import chainrule as torch
from chainrule.testing import GradcheckError, gradcheck, gradgradcheck


def leaf(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def half(x):
    """x², but the gradient sees only one of the two factors."""
    return x * x.detach()


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    "f",
    [
        torch.sin,
        torch.exp,
        lambda x: x.reshape(2, 1) * x,
        lambda x: x.sum(),
        lambda x: (x * 2, x.sum()),
        lambda x: [x.prod(), x[:0]],
        lambda x: torch.stack([x, x * x], 1),
        lambda x: (x * x, x > 0),
    ],
)
def test_right_gradients_pass_in_all_modes(f, fast_mode):
    x = leaf(0.3, -1.2)
    kept = x.detach().clone()
    assert gradcheck(f, (x,), check_forward_ad=True, check_batched_grad=True, fast_mode=fast_mode) is True
    assert gradgradcheck(f, x, fast_mode=fast_mode) is True
    assert gradgradcheck(f, x, check_fwd_over_rev=True, gen_non_contig_grad_outputs=True) is True
    assert x.tolist() == kept.tolist() and x.grad is None


def test_several_inputs_of_which_some_are_constants():
    w, x, n = leaf(1.0, 2.0), leaf(3.0, 4.0), torch.tensor([5.0, 6.0], dtype=torch.float64)
    assert gradcheck(lambda w, x, n, k: (w * x + n) ** k, (w, x, n, 2))
    assert gradgradcheck(lambda w, x, n, k: (w * x + n) ** k, (w, x, n, 3))


def test_zero_dimensional_and_empty():
    assert gradcheck(torch.exp, torch.tensor(0.5, dtype=torch.float64, requires_grad=True), check_forward_ad=True)
    assert gradcheck(lambda x: x * 2, torch.zeros(0, 3, dtype=torch.float64, requires_grad=True), check_forward_ad=True)


@pytest.mark.parametrize(
    "f", [torch.abs, lambda z: z * z, torch.exp, lambda z: z.conj() * z, lambda z: z.real, lambda z: (z * 2).imag]
)
def test_complex_inputs(f):
    z = torch.tensor([1 + 2j, -0.5 + 0.3j], dtype=torch.complex128, requires_grad=True)
    assert gradcheck(f, z, check_forward_ad=True)


def test_real_to_complex():
    assert gradcheck(lambda x: x * (1 + 2j), leaf(1.0, 2.0), check_forward_ad=True)


def test_a_wrong_gradient_is_caught():
    x = leaf(1.0, 3.0)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0") as caught:
        gradcheck(half, x)
    assert "numerical:tensor([[2.0000, 0.0000]" in str(caught.value) and "analytical:tensor([[1., 0.]" in str(
        caught.value
    )
    assert isinstance(caught.value, RuntimeError)
    assert gradcheck(half, x, raise_exception=False) is False
    assert gradcheck(half, x, fast_mode=True, raise_exception=False) is False


def test_a_wrong_second_derivative_is_caught():
    def first_right(x):  # d/dx is x (right), but x.detach() hides that it depends on x
        return 0.5 * x * x if False else x.detach() * x - 0.5 * x.detach() ** 2

    x = leaf(1.0, 3.0)
    assert gradcheck(first_right, x)
    with pytest.raises(GradcheckError):
        gradgradcheck(first_right, x)


def test_which_output_and_input_is_said():
    with pytest.raises(GradcheckError, match="for output 1 with respect to input 2"):
        gradcheck(lambda a, b, c: (a * b * c, c * c.detach()), (leaf(1.0), leaf(2.0), leaf(3.0)))


def test_the_part_of_complex_outputs_is_said():
    z = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    with pytest.raises(GradcheckError, match="imaginary part of complex outputs only"):
        gradcheck(half, z)


def test_a_gradient_that_was_cut_off_is_caught():
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, leaf(1.0))
    assert gradcheck(lambda x: torch.floor(x).detach(), leaf(1.5))


def test_single_precision_is_warned_about():
    with pytest.warns(UserWarning, match="Input #1 requires gradient and is not a double precision"):
        gradcheck(lambda n, x: x * 2, (1, leaf(1.0, dtype=torch.float32)), atol=0.1, rtol=0.1)


def test_nothing_to_check():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(torch.sin, torch.ones(2))
    with pytest.raises(AssertionError, match="at least one of check_forward_ad or check_backward_ad"):
        gradcheck(torch.sin, leaf(1.0), check_backward_ad=False)
    with pytest.raises(TypeError, match="returned int"):
        gradcheck(lambda x: 3, leaf(1.0))


def test_an_expanded_input_is_refused():
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(torch.sin, leaf(1.0).expand(3))


def test_a_random_backward_is_caught():
    rng = np.random.default_rng(0)

    def noisy(x):
        y = x * 1
        y.register_hook(lambda g: g * float(rng.normal(1, 1e-4)))
        return y

    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(noisy, leaf(1.0), atol=0.1, rtol=0.1)
    assert gradcheck(noisy, leaf(1.0), atol=0.1, rtol=0.1, nondet_tol=0.1)


def test_a_function_that_knows_its_inputs_from_elsewhere():
    w = leaf(1.0, 2.0)
    assert gradcheck(lambda _: (w**3).sum(), (w,))
