# ruff: noqa: RUF005 (concatenation is what is tested)
"""Size: a tuple of ints that prints, concatenates and slices like PyTorch's."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from chainrule._src.arrays.size import Size


class Three:
    def __index__(self) -> int:
        return 3


@pytest.mark.parametrize(
    ("iterable", "text"),
    [
        ([2, 4], "torch.Size([2, 4])"),
        ((5,), "torch.Size([5])"),
        ([], "torch.Size([])"),
        ((n for n in (1, 2)), "torch.Size([1, 2])"),
        ({2: "a"}, "torch.Size([2])"),
        ([True, np.int64(3), np.array(4), Three()], "torch.Size([1, 3, 4, 3])"),
        (np.array([2, 3]), "torch.Size([2, 3])"),
        (Size([2, 3]), "torch.Size([2, 3])"),
        ([2, -3], "torch.Size([2, -3])"),
    ],
)
def test_construction(iterable: Any, text: str) -> None:
    size = Size(iterable)
    assert repr(size) == str(size) == f"{size}" == text
    assert type(size) is Size
    assert {type(n) for n in size} <= {int}


def test_no_argument_is_the_shape_of_a_scalar() -> None:
    assert repr(Size()) == "torch.Size([])"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((5,), "'int' object is not iterable"),
        ((None,), "'NoneType' object is not iterable"),
        ((2, 3), "argument"),
        (((2, 3.0),), r"torch.Size\(\) takes an iterable of 'int' \(item 1 is 'float'\)"),
        (("ab",), r"takes an iterable of 'int' \(item 0 is 'str'\)"),
        (([None],), r"\(item 0 is 'NoneType'\)"),
        (([1, np.array(3.0)],), r"\(item 1 is 'ndarray'\)"),
    ],
)
def test_construction_refuses(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Size(*arguments)


def test_is_a_tuple() -> None:
    size = Size([2, 3])
    assert isinstance(size, tuple)
    assert size == (2, 3)
    assert size != [2, 3]
    assert hash(size) == hash((2, 3))
    assert {(2, 3): "found"}[size] == "found"
    assert size < (2, 4)
    assert (size.index(3), size.count(2), len(size), 3 in size) == (1, 1, 2, True)
    rows, columns = size
    assert (rows, columns) == (2, 3)
    assert np.zeros(size).shape == size


def test_numel() -> None:
    assert [Size(s).numel() for s in ([2, 3], [2, 0], [])] == [6, 0, 1]
    assert math.prod(Size([4, 5])) == 20


def test_indexing() -> None:
    size = Size([2, 3, 4])
    assert size[0] == 2
    assert size[-1] == 4
    assert type(size[0]) is int
    for cut, expected in [
        (size[1:], "torch.Size([3, 4])"),
        (size[::-1], "torch.Size([4, 3, 2])"),
        (size[:], "torch.Size([2, 3, 4])"),
        (size[3:], "torch.Size([])"),
    ]:
        assert repr(cut) == expected
        assert type(cut) is Size
    with pytest.raises(IndexError):
        size[3]


@pytest.mark.parametrize(
    ("joined", "text"),
    [
        (Size([2, 3]) + (1,), "torch.Size([2, 3, 1])"),
        ((1,) + Size([2]), "torch.Size([1, 2])"),
        (Size([2]) + Size([3]), "torch.Size([2, 3])"),
        (Size([2, 3]) * 2, "torch.Size([2, 3, 2, 3])"),
        (2 * Size([2]), "torch.Size([2, 2])"),
        (Size([2]) * np.int64(2), "torch.Size([2, 2])"),
        (sum([Size([2]), Size([3])], ()), "torch.Size([2, 3])"),
    ],
)
def test_joining(joined: Any, text: str) -> None:
    assert repr(joined) == text
    assert type(joined) is Size


def test_joining_refuses() -> None:
    size: Any = Size([2])
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not list\) to torch.Size"):
        size + [1]
    with pytest.raises(TypeError, match="'Size' and 'int'"):
        size + 3
    with pytest.raises(TypeError, match="can only concatenate list"):
        [1] + size
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 1 is 'str'\)"):
        size + ("a",)
    with pytest.raises(TypeError, match="'Size' and 'float'"):
        size * 1.0


def test_arrays_take_it_as_numbers() -> None:
    size: Any = Size([2, 3])
    for result in (size + np.array([1, 2]), np.array([1, 2]) + size):
        np.testing.assert_array_equal(result, [3, 5])
    for result in (size * np.array([1, 2]), np.array([1, 2]) * size):
        np.testing.assert_array_equal(result, [2, 6])


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol: int) -> None:
    size = Size([2, 3])
    for twin in (pickle.loads(pickle.dumps(size, protocol)), copy.copy(size), copy.deepcopy(size)):
        assert twin == size
        assert type(twin) is Size
