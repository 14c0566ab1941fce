"""Numbers at the edge: NaN in extrema, numbers that a dtype does not have, products with NumPy's arrays."""

from __future__ import annotations

import numpy as np
import pytest

from behaviour import OURS, differs, torch

NAN = float("nan")


@pytest.mark.parametrize("name", ["max", "min", "median"])
def test_the_nans_share_the_gradient_of_an_extremum_that_is_one(name):
    x = torch.tensor([1.0, NAN, 3.0, NAN], requires_grad=True)
    getattr(x, name)().backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.0, 0.5]


@differs("NaN for all of the row")
@pytest.mark.parametrize("name", ["amax", "amin"])
def test_also_along_an_axis(name):
    x = torch.tensor([[1.0, NAN], [2.0, 2.0]], requires_grad=True)
    getattr(x, name)(1).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("numbers", "dtype"), [([300], "uint8"), ([-300], "uint8"), (2**40, "int32"), ([1e30], "int32"), ([NAN], "int64")]
)
def test_a_number_that_the_dtype_does_not_have(numbers, dtype):
    with pytest.raises(RuntimeError, match=f"cannot be converted to type {dtype} without overflow"):
        torch.tensor(numbers, dtype=getattr(torch, dtype))


def test_a_complex_number_for_a_real_tensor():
    with pytest.raises(TypeError, match="must be real number, not complex"):
        torch.tensor([1 + 2j], dtype=torch.float32)


def test_numbers_that_are_rounded_or_wrapped():
    assert torch.tensor([3.7], dtype=torch.uint8).tolist() == [3]
    assert torch.tensor(-1, dtype=torch.uint8).item() == 255
    assert torch.tensor([], dtype=torch.int8).tolist() == []
    assert torch.tensor(np.array([300]), dtype=torch.uint8).tolist() == [44]  # an array is converted
    assert torch.tensor([2, 0], dtype=torch.bool).tolist() == [True, False]


@pytest.mark.skipif(not OURS, reason="PyTorch takes no arrays here")
def test_products_with_arrays_promote_from_either_side():
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    whole = np.arange(6).reshape(3, 2)
    left, right = x @ whole, np.ones((4, 2), np.int64) @ x
    assert left.dtype == right.dtype == torch.float64
    (left.sum() + right.sum()).backward()
    assert x.grad.tolist() == [[5.0, 9.0, 13.0]] * 2
    assert (torch.ones(2, 3, dtype=torch.float32) @ whole).dtype == torch.float64  # as NumPy has it
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.ones(2, 2) @ torch.ones(2, 2).double()


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_a_quotient_by_the_number_zero(zero):
    x = torch.ones(2, requires_grad=True)
    with np.errstate(divide="ignore"):
        _, tangent = torch.func.jvp(lambda x: x / zero, (x.detach(),), (torch.ones(2),))
        (x / zero).sum().backward()
    assert tangent.tolist() == x.grad.tolist() == [float("-inf") if str(zero)[0] == "-" else float("inf")] * 2
