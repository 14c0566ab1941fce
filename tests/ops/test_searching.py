"""Elements found, counted and cut apart: nan, empty and 0-d tensors, and what is refused."""

from __future__ import annotations

import math

import pytest

from behaviour import torch


def test_every_nan_is_distinct():
    values, counts = torch.unique(torch.tensor([math.nan, 1.0, math.nan]), return_counts=True)
    assert values.shape == (3,) and counts.tolist() == [1, 1, 1]


def test_the_inverse_of_a_number():
    _, inverse, counts = torch.unique_consecutive(torch.tensor(3.0), return_inverse=True, return_counts=True)
    assert inverse.shape == () and counts.tolist() == [1]


@pytest.mark.parametrize("unique", [torch.unique, torch.unique_consecutive])
def test_distinct_entries_need_an_axis_and_elements(unique):
    with pytest.raises(IndexError, match="tensor has no dimensions"):
        unique(torch.tensor(3.0), dim=0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        unique(torch.ones(2, 3), dim=5)
    with pytest.raises(RuntimeError, match="There are 0 sized dimensions"):
        unique(torch.ones(2, 0), dim=0)


def test_is_in():
    x = torch.tensor([1, 2])
    assert torch.isin(x, torch.tensor([2]), invert=True).tolist() == [True, False]
    assert torch.isin(x, torch.tensor([2]), assume_unique=True).tolist() == [False, True]
    assert torch.isin(1, x).item() is True
    assert torch.isin(x, 2).tolist() == [False, True]


def test_lists_are_no_tensors():
    with pytest.raises(TypeError, match="nonzero"):
        torch.nonzero([1, 0])
    with pytest.raises(TypeError, match="bucketize"):
        torch.bucketize(torch.tensor([1.0]), [0.0, 2.0])
    with pytest.raises(TypeError, match="bincount"):
        torch.bincount(torch.tensor([1]), [1.0])


def test_a_number_is_no_sorted_sequence():
    with pytest.raises(RuntimeError, match="positive dimension"):
        torch.searchsorted(torch.tensor(1.0), torch.tensor([2.0]))


def test_histograms_of_nothing_and_of_too_few_weights():
    assert torch.histogram(torch.tensor([]), 2).bin_edges.tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(RuntimeError, match="same shape"):
        torch.histogram(torch.ones(3), 2, weight=torch.ones(2))


def test_covariances_of_too_few_observations_have_tangents():
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    with pytest.warns(UserWarning, match="degrees of freedom"):
        value, tangent = torch.func.jvp(lambda x: torch.cov(x, correction=3), (x,), (torch.ones(2, 2),))
    assert value.isinf().all() and tangent.isnan().all()


@pytest.mark.parametrize("call", [
    lambda x: x.narrow(0, 0.5, 1), lambda x: x.narrow(0, 0, 1.5), lambda x: x.select(0, 0.5), lambda x: x.split(1.5),
    lambda x: x.chunk(1.5), lambda x: x.tensor_split(1.5),
])  # fmt: skip
def test_fractions_cut_nothing(call):
    with pytest.raises(TypeError, match=r"(narrow|select|split|chunk)\w*\("):
        call(torch.ones(3))


def test_pieces_have_no_negative_sizes():
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.ones(5).split([-1, 6])
