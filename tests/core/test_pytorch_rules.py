"""Differences between PyTorch's and NumPy's rules: numbers with index arrays, masks, rejected shapes and dtypes, views."""

import numpy as np
import pytest

import chainrule as torch

X = torch.arange(24.0).reshape(2, 2, 2, 3)
PAIR, ONE, MASK = torch.tensor([0, 1]), torch.tensor([1]), torch.tensor([True, True])


@pytest.mark.parametrize(
    "index, steps",
    [
        ((0, slice(None), PAIR), [(0,), (slice(None), PAIR)]),
        ((0, ..., PAIR), [(0,), (..., PAIR)]),
        ((PAIR, slice(None), 0), [(slice(None), slice(None), 0), (PAIR,)]),
        ((torch.tensor(1), slice(0, 1), [0, 1]), [(1, slice(0, 1)), (slice(None), PAIR)]),
        ((None, MASK, PAIR, ..., ONE, 0), [(..., 0), (None, MASK, PAIR, ONE)]),
        ((0, PAIR, slice(None), ONE), [(0,), (PAIR, slice(None), ONE)]),
        ((MASK, ..., ONE, slice(None), PAIR), [(MASK, ONE, slice(None), PAIR)]),
    ],
)
def test_numbers_are_taken_before_arrays(index, steps):
    expected = X
    for step in steps:
        expected = expected[step]
    part = X[index]
    assert part.shape == expected.shape and part.tolist() == expected.tolist()
    x, again = X.clone().requires_grad_(), X.clone().requires_grad_()
    (x[index] * part).sum().backward()
    y = again
    for step in steps:
        y = y[step]
    (y * part).sum().backward()
    assert x.grad.tolist() == again.grad.tolist()
    written = torch.zeros(X.shape)
    written[index] = part
    region, last = written.clone().zero_(), steps[-1]
    for step in steps[:-1]:
        region = region[step]
    region[last] = part
    whole = region if region._base is None else region._base
    assert written.tolist() == whole.tolist()


def test_arrays_keep_the_rule_of_numpy():
    x = np.arange(24.0).reshape(2, 2, 2, 3)
    seen = []
    torch.func.grad(lambda a: seen.append(a[0, :, [0, 1]].shape) or np.sum(a))(x)
    assert seen == [x[0, :, [0, 1]].shape]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: torch.ones(2)[torch.zeros(0, dtype=torch.bool)], IndexError, r"mask \[0\] at index 0"),
        (lambda: torch.ones(2, 2)[torch.zeros(2, 0, dtype=torch.bool)], IndexError, r"mask \[2, 0\] at index 1"),
        (lambda: torch.addmm(torch.ones(1, 3), torch.ones(1, 3), torch.ones(3, 1)), RuntimeError, "expanded size"),
        (
            lambda: torch.baddbmm(torch.ones(2, 1, 1), torch.ones(1, 1, 1), torch.ones(1, 1, 1)),
            RuntimeError,
            "expanded",
        ),
        (lambda: torch.ones(2).index_put((ONE,), torch.tensor(3)), RuntimeError, "dtypes match"),
        (lambda: torch.tensor(1.5).index_add(0, torch.tensor([0, 0]), torch.ones(2)), RuntimeError, "must match self"),
        (lambda: torch.nn.functional.pad(torch.ones(3), (1, 1), mode="reflect"), NotImplementedError, "1D input"),
        (lambda: torch.nn.functional.linear(torch.ones(2), torch.ones(1, 2, 2)), RuntimeError, "self is 3D"),
        (lambda: torch.heaviside(torch.ones(2), torch.tensor(1)), RuntimeError, "different dtypes"),
        (lambda: torch.block_diag(torch.ones(1, 2, 2)), RuntimeError, "Input 0 has 3 dimensions"),
        (lambda: torch.combinations(torch.ones(2, 2)), RuntimeError, r"1D vector, but got shape \[2, 2\]"),
        (lambda: torch.view_as_complex(torch.ones(2, 3)[:, :2]), RuntimeError, "stride divisible by 2"),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_dtypes_of_several_operands():
    number = torch.tensor(1.0, dtype=torch.float64)
    assert torch.block_diag(torch.ones(2), number).dtype == torch.float32
    assert torch.einsum("ij,j", torch.ones(2, 2), torch.tensor([True, False])).dtype == torch.float32


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.put(ONE, torch.ones(1)),
        lambda x: x.roll(1),
        lambda x: torch.kron(x, x),
        lambda x: x[0, 0].index_add(0, torch.tensor(0), torch.tensor(2.0)),
    ],
)
def test_results_that_may_be_written(function):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    result = function(x)
    before = x.tolist()
    result.mul_(2)
    assert x.tolist() == before
    assert torch.vander(torch.tensor([2.0], requires_grad=True)).requires_grad is False


def test_results_that_examples_share_may_be_written():
    shared = torch.tensor([1.0, 2.0])
    result = torch.vmap(lambda x: shared * 2)(torch.ones(3))
    result[0] += 1
    assert result.tolist() == [[3.0, 5.0], [2.0, 4.0], [2.0, 4.0]]
    arrays = torch.vmap(lambda x: shared.numpy())(np.ones(3))
    arrays[1] = 0
    assert shared.tolist() == [1.0, 2.0]


def test_retained_gradients_outlive_a_batched_pass():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.retain_grad()
    torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True, retain_graph=True)
    torch.autograd.grad(y.sum(), x)
    assert y.grad.tolist() == [1.0, 1.0]
