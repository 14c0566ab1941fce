"""gradcheck and gradgradcheck: all ways to pass, and all ways to fail, with wrong rules."""

import importlib
import inspect
import warnings

import numpy as np
import pytest

from behaviour import OURS, differs, leaf, torch

gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck
GradcheckError = importlib.import_module(
    f"{torch.__name__}.testing" if OURS else "torch.autograd.gradcheck"
).GradcheckError
Function = torch.autograd.Function


def custom(forward, backward, **members):
    """Return a Function of one input with these static methods."""
    names = {
        "forward": staticmethod(lambda ctx, x: (ctx.save_for_backward(x), forward(x))[1]),
        "backward": staticmethod(lambda ctx, *g: backward(ctx.saved_tensors[0], *g)),
        **members,
    }
    return type("Custom", (Function,), names).apply


right = custom(lambda x: x**3, lambda x, g: 3 * x**2 * g)
wrong = custom(lambda x: x**3, lambda x, g: 2 * x**2 * g)


def test_the_signatures():
    def names(function):
        return {name: (p.kind, p.default) for name, p in inspect.signature(function).parameters.items()}

    keyword, positional = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    empty = inspect.Parameter.empty
    assert names(gradcheck) == {
        "func": (positional, empty),
        "inputs": (positional, empty),
        "eps": (keyword, 1e-6),
        "atol": (keyword, 1e-5),
        "rtol": (keyword, 1e-3),
        "raise_exception": (keyword, True),
        "nondet_tol": (keyword, 0.0),
        "check_undefined_grad": (keyword, True),
        "check_grad_dtypes": (keyword, False),
        "check_batched_grad": (keyword, False),
        "check_batched_forward_grad": (keyword, False),
        "check_forward_ad": (keyword, False),
        "check_backward_ad": (keyword, True),
        "fast_mode": (keyword, False),
        "masked": (keyword, None),
    }
    assert names(gradgradcheck) == {
        "func": (positional, empty),
        "inputs": (positional, empty),
        "grad_outputs": (positional, None),
        "eps": (keyword, 1e-6),
        "atol": (keyword, 1e-5),
        "rtol": (keyword, 1e-3),
        "gen_non_contig_grad_outputs": (keyword, False),
        "raise_exception": (keyword, True),
        "nondet_tol": (keyword, 0.0),
        "check_undefined_grad": (keyword, True),
        "check_grad_dtypes": (keyword, False),
        "check_batched_grad": (keyword, False),
        "check_fwd_over_rev": (keyword, False),
        "check_rev_over_rev": (keyword, True),
        "fast_mode": (keyword, False),
        "masked": (keyword, False),
    }


def test_the_error_can_be_imported_from_the_module():
    from importlib import import_module

    assert issubclass(GradcheckError, RuntimeError)
    if OURS:
        from chainrule.autograd.gradcheck import GradcheckError as there
        from chainrule.autograd.gradcheck import gradcheck as function

        assert there is GradcheckError and function is import_module("chainrule.testing").gradcheck
        assert torch.autograd.gradcheck.GradcheckError is there and torch.autograd.gradcheck.gradcheck is function
    assert torch.autograd.gradcheck(torch.sin, leaf(1.0)) is True
    assert inspect.signature(torch.autograd.gradcheck) == inspect.signature(gradcheck)


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    "f",
    [right, torch.sin, lambda x: (x * x, x.sum()), lambda x: [x.prod(), x[:0]], lambda x: x, lambda x: x[:, None] * x],
)
def test_right_functions_pass_everything(f, fast_mode):
    x = leaf(0.3, -1.2)
    forward = f is not right
    every = {"check_batched_grad": True, "check_grad_dtypes": True, "fast_mode": fast_mode}
    assert gradcheck(f, x, check_forward_ad=forward, check_batched_forward_grad=forward, **every) is True
    assert gradgradcheck(f, (x,), check_fwd_over_rev=forward, **every) is True
    assert gradgradcheck(f, [x], gen_non_contig_grad_outputs=True) is True
    assert x.grad is None and x.tolist() == [0.3, -1.2]


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_wrong_backward_is_caught(fast_mode):
    with pytest.raises(
        GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0,\nnumerical:"
    ) as caught:
        gradcheck(wrong, leaf(1.0, 2.0), fast_mode=fast_mode)
    assert ("computed \nin fast mode" in str(caught.value) or "computed in fast mode" in str(caught.value)) is fast_mode
    # both Jacobians: in fast mode the message contains the slow mode's, too
    assert "[ 0.0000, 12.0000]]" in str(caught.value) and "[0., 8.]]" in str(caught.value)
    assert gradcheck(wrong, leaf(1.0, 2.0), raise_exception=False, fast_mode=fast_mode) is False


def test_a_wrong_second_derivative_is_caught():
    f = custom(lambda x: x**3, lambda x, g: 3 * x.detach() ** 2 * g)
    assert gradcheck(f, leaf(2.0))
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradgradcheck(f, leaf(2.0))


def test_a_wrong_forward_mode_is_caught():
    class Bent(Function):
        @staticmethod
        def forward(x):
            return x**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

        @staticmethod
        def jvp(ctx, t):
            return 3 * ctx.saved_tensors[0] * t

    x = leaf(1.0, 2.0)
    assert gradcheck(Bent.apply, x)
    with pytest.raises(
        GradcheckError, match="Jacobian computed with forward mode mismatch for output 0 with respect to"
    ):
        gradcheck(Bent.apply, x, check_forward_ad=True)
    with pytest.raises(GradcheckError, match="forward mode mismatch"):
        gradcheck(Bent.apply, x, check_forward_ad=True, check_backward_ad=False)


@pytest.mark.parametrize("part", ["imaginary", "real"])
def test_the_part_of_a_complex_output_is_said(part):
    z = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    cut = (lambda y: torch.complex(y.real, y.imag.detach())) if part == "imaginary" else None
    f = cut or (lambda y: torch.complex(y.real.detach(), y.imag))
    with pytest.raises(
        GradcheckError, match=f"While considering the {part} part of complex outputs only, Jacobian mismatch"
    ):
        gradcheck(lambda x: f(x * x), z)


@pytest.mark.parametrize("f", [torch.exp, lambda z: z * z.conj(), torch.abs, torch.real, lambda z: (2 * z).imag])
@pytest.mark.parametrize("fast_mode", [False, True])
def test_complex_inputs(f, fast_mode):
    z = torch.tensor([1 + 2j, -0.5 + 0.3j], dtype=torch.complex128, requires_grad=True)
    assert gradcheck(f, z, check_forward_ad=True, fast_mode=fast_mode)
    assert gradcheck(lambda x: x * (1 + 2j), leaf(1.0, 2.0), check_forward_ad=True, fast_mode=fast_mode)


def test_backward_must_be_linear():
    f = custom(lambda x: x * 2, lambda x, g: g * 0 + 2)
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(f, leaf(1.0))


def test_backward_must_give_the_same_twice():
    values = iter(range(1000))
    f = custom(lambda x: x * 2, lambda x, g: g * (2 + 1e-5 * next(values)))
    with pytest.raises(
        GradcheckError, match=r"Backward is not reentrant, i.e., running backward with .*The tolerance for"
    ):
        gradcheck(f, leaf(1.0), atol=0.1, rtol=0.1)
    assert gradcheck(f, leaf(1.0), atol=0.1, rtol=0.1, nondet_tol=0.01)


def test_a_cut_graph_is_caught():
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, leaf(1.0))
    assert gradcheck(lambda x: torch.floor(x).detach(), leaf(1.5))
    assert gradcheck(lambda x: (x * 2).long(), leaf(1.2))


def test_outputs_that_are_not_differentiable_are_left_out():
    assert gradcheck(lambda x: (x * 2, torch.floor(x * 2).detach()), leaf(1.2))


@differs("it subtracts booleans, which it cannot")
def test_boolean_outputs_are_left_out():
    assert gradcheck(lambda x: (x * 2, x > 0), leaf(1.0), check_forward_ad=True)


def test_undefined_gradients_must_be_dealt_with():
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            assert g is not None or h is not None
            return 2 * g + 3 * h

    class Careful(Both):
        @staticmethod
        def backward(ctx, g, h):
            if g is None and h is None:
                return None
            return 3 * h if g is None else 2 * g if h is None else 2 * g + 3 * h

    with pytest.raises(TypeError):
        gradcheck(Both.apply, leaf(1.0))
    assert gradcheck(Careful.apply, leaf(1.0))


def test_single_precision_is_warned_about():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradcheck(lambda n, x: x * 2, (1, leaf(1.0, dtype=torch.float32)), atol=0.5, rtol=0.5, eps=1e-2)
    assert any(
        "Input #1 requires gradient and is not a double precision floating point" in str(w.message) for w in caught
    )


def test_nothing_to_check():
    with pytest.raises(
        ValueError, match="at least one input tensor to require gradient, but none of them have requires_grad"
    ):
        gradcheck(torch.sin, torch.ones(2))


@pytest.mark.parametrize(
    "check, options, message",
    [
        (gradcheck, {"check_backward_ad": False}, "at least one of check_forward_ad or check_backward_ad to be True"),
        (
            gradcheck,
            {"check_batched_grad": True, "check_backward_ad": False, "check_forward_ad": True},
            "check_batched_grad=True requires check_backward_ad",
        ),
        (gradcheck, {"check_batched_forward_grad": True}, "check_batched_forward_grad=True requires check_forward_ad"),
        (gradgradcheck, {"check_rev_over_rev": False}, "at least one of check_fwd_over_rev or check_rev_over_rev"),
        (
            gradgradcheck,
            {"check_rev_over_rev": False, "check_fwd_over_rev": True},
            "check_undefined_grad=True requires check_rev_over_rev",
        ),
        (
            gradgradcheck,
            {
                "check_rev_over_rev": False,
                "check_fwd_over_rev": True,
                "check_undefined_grad": False,
                "check_batched_grad": True,
            },
            "check_batched_grad=True requires check_rev_over_rev",
        ),
    ],
)
def test_options_that_contradict_each_other(check, options, message):
    with pytest.raises(AssertionError, match=message):
        check(torch.sin, leaf(1.0), **options)


def test_options_are_keywords():
    with pytest.raises(TypeError):
        gradcheck(torch.sin, leaf(1.0), 1e-6)


def test_expanded_inputs_are_refused():
    with pytest.raises(
        RuntimeError, match=r"The 1th input has a dimension with stride 0. gradcheck only supports inputs that"
    ):
        gradcheck(lambda n, x: x * n, (2.0, leaf(1.0).expand(3)))


@differs("such inputs give a Jacobian mismatch there")
def test_inputs_that_overlap_are_refused():
    with pytest.raises(RuntimeError, match=r"The 0th input has elements that share memory. gradcheck only supports"):
        gradcheck(torch.sin, leaf(1.0, 2.0, 3.0, 4.0).unfold(0, 2, 1))


@differs("it counts only the inputs that require grad")
def test_inputs_are_counted_as_the_function_takes_them():
    with pytest.raises(GradcheckError, match="for output 1 with respect to input 2"):
        gradcheck(lambda n, a, x: (a * n, x * x.detach()), (torch.ones(1), leaf(1.0), leaf(2.0)))


@differs("an IndexError there")
def test_containers_of_tensors_are_refused():
    with pytest.raises(
        TypeError, match=r"input 0 is a list of tensors that require grad. Pass the tensors as separate inputs"
    ):
        gradcheck(lambda xs, y: torch.stack(xs) * y, ([leaf(1.0)], leaf(2.0)))


@differs("an AttributeError there")
def test_results_that_are_no_tensors_are_refused():
    with pytest.raises(TypeError, match="expects the function to return tensors, but it returned int"):
        gradcheck(lambda x: 3, leaf(1.0))


def test_several_inputs_and_given_grad_outputs():
    a, b = leaf(1.0, 2.0), leaf(0.5)
    assert gradcheck(lambda a, b, k: (a * b) ** k, (a, b, 2), check_forward_ad=True)
    assert gradcheck(lambda a, n: a * n, (a, torch.tensor([5.0, 6.0], dtype=torch.float64)))
    assert gradcheck(lambda _: (a**3).sum(), (a,)), "a function that knows its inputs from elsewhere"
    g = leaf(3.0, 4.0)
    assert gradgradcheck(lambda a, b: a**2 * b, (a, b), g)
    assert gradgradcheck(lambda a, b: a**2 * b, (a, b), (g,))


def test_strided_and_empty_inputs():
    x = torch.arange(1.0, 7.0, dtype=torch.float64).reshape(2, 3).t().requires_grad_()
    assert gradcheck(torch.log, x, check_forward_ad=True) and x.stride() == (1, 3)
    empty = torch.zeros(0, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: x * 2, empty, check_forward_ad=True)
    assert gradcheck(torch.exp, torch.tensor(0.5, dtype=torch.float64, requires_grad=True), check_forward_ad=True)


def test_a_function_that_raises_is_heard():
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        gradcheck(f, leaf(1.0), raise_exception=False)


@differs("its batching falls back to a loop in other places")
def test_a_backward_that_cannot_be_batched_is_caught():
    f = custom(lambda x: x * 2, lambda x, g: g * float(g.sum().item() * 0 + 2))
    assert gradcheck(f, leaf(1.0))
    with pytest.raises(GradcheckError, match="While computing batched gradients, got: "):
        gradcheck(f, leaf(1.0), check_batched_grad=True)


@pytest.mark.parametrize("fast_mode", [True, False])
@pytest.mark.parametrize(
    ("what", "other"), [("shape", lambda x: torch.cat([x, x])), ("dtype", lambda x: x.to(torch.float32))]
)
def test_gradcheck_of_a_function_whose_output_changes(fast_mode, what, other):
    def f(x):
        return other(x) if x.item() >= 1 else x * 1

    with pytest.raises(AssertionError, match=f"outputs with the same {what} when inputs are perturbed"):
        gradcheck(f, (leaf(1.0),), fast_mode=fast_mode)


@differs("PyTorch's takes tensors alone")
@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_of_arrays_alone_the_function_is_given_arrays(check):
    x = np.array([0.5, 1.0, 2.0])
    faces = set()

    def f(x, power, count):
        faces.add(type(x))
        return [np.sum(x.clip(0.2, 3.0) ** power)] * count

    assert check(f, (x, 3.0, 2)) and faces == {torch.Array}
    assert x.tolist() == [0.5, 1.0, 2.0], "copies are moved"
    with pytest.raises(GradcheckError):
        gradcheck(lambda x: wrong(x), x)
    with pytest.raises(ValueError, match="none of them have requires_grad"):
        check(f, (np.array([1, 2]), 3, 2))
