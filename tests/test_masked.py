"""``torch.masked``: a masked reduction is the reduction of the other elements, and masked elements have gradient zero."""

from __future__ import annotations

import math

import numpy as np
import pytest

from behaviour import differs, torch

X = [1.5, -2.0, 0.5, 3.0, -1.0]
MASK = [True, False, True, True, False]
REDUCTIONS = {
    "sum": ({}, torch.sum),
    "prod": ({}, torch.prod),
    "amax": ({}, torch.amax),
    "amin": ({}, torch.amin),
    "mean": ({}, torch.mean),
    "var": ({}, torch.var),
    "std": ({}, torch.std),
    "norm": ({}, torch.linalg.vector_norm),
    "norm of -inf": ({"ord": -math.inf}, lambda x: torch.linalg.vector_norm(x, -math.inf)),
    "logsumexp": ({}, lambda x: torch.logsumexp(x, 0)),
    "median": ({"dim": 0}, lambda x: torch.median(x, 0).values),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name):
    options, plain = REDUCTIONS[name]
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor(MASK)
    out = getattr(torch.masked, name.split()[0])(x, mask=mask, **options)
    expected = plain(x[mask])
    assert torch.allclose(out, expected)
    (slope,) = torch.autograd.grad(out, x)
    assert torch.allclose(slope, torch.autograd.grad(expected, x)[0])


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin", "cumsum", "cumprod"])
def test_along_an_axis(name):
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor(MASK)
    plain = torch.nn.functional.softmin if name == "softmin" else getattr(torch, name)
    out, expected = getattr(torch.masked, name)(x, 0, mask=mask)[mask], plain(x[mask], 0)
    weights = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64)
    assert torch.allclose(out, expected)
    (slope,) = torch.autograd.grad((out * weights).sum(), x)
    assert torch.allclose(slope, torch.autograd.grad((expected * weights).sum(), x)[0])


@pytest.mark.filterwarnings("ignore:divide by zero encountered in log")
def test_where_nothing_is_left():
    x, mask = torch.ones(2, 3), torch.tensor([[True, True, True], [False, False, False]])
    left = {"sum": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf, "logsumexp": -math.inf, "norm": 0.0}
    for name, number in left.items():
        assert getattr(torch.masked, name)(x, dim=1, mask=mask)[1].item() == number
    assert torch.masked.amax(x.long(), 1, mask=mask)[1].item() == -(2**63)


def test_broadcast_masks_and_no_mask():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.masked.mean(x, 1, mask=torch.tensor([True, False, True])).tolist() == [1.0, 4.0]
    assert torch.masked.mean(x, 1, keepdim=True).tolist() == [[1.0], [4.0]]
    assert torch.masked.normalize(x, 1.0, 1, mask=torch.tensor([False, True, True]))[0].tolist() == pytest.approx(
        [0, 1 / 3, 2 / 3]
    )
    out = torch.masked.logaddexp(x, x, input_mask=x > 0, other_mask=x > 3)
    assert out[0, 0].item() == -math.inf and out[0, 1].item() == 1.0
    assert out[1, 2].item() == pytest.approx(5 + math.log(2))


def test_means_of_integers_are_refused():
    with pytest.raises(ValueError, match="floating-point"):
        torch.masked.mean(torch.tensor([1, 2]), mask=torch.tensor([True, False]))


@differs("it returns indices as floats")
def test_indices_are_integers():
    x, mask = torch.tensor(X), torch.tensor(MASK)
    assert torch.masked.argmax(x, 0, mask=mask).dtype == torch.int64
    assert x[torch.masked.argmin(x, 0, mask=mask)] == 0.5


@differs("masks are tensors there")
def test_masks_of_numpy_and_in_transformations():
    x = np.array(X)
    assert torch.masked.mean(torch.tensor(X), mask=np.array(MASK)).item() == pytest.approx(5 / 3)
    for name in ("sum", "mean", "std", "logsumexp"):
        reduce = getattr(torch.masked, name)
        slope = torch.func.grad(lambda x, reduce=reduce: reduce(x, mask=x > -1.5))(x)
        assert type(slope) is np.ndarray and slope[1] == 0 and slope[0] != 0
    many = torch.vmap(lambda x, mask: torch.masked.var(x, mask=mask))(torch.tensor([X, X]), torch.tensor([MASK, MASK]))
    assert many.tolist() == pytest.approx([np.var([1.5, 0.5, 3.0], ddof=1)] * 2)
