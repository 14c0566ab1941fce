"""Data sets, by index (``Dataset``) or as an iterable (``IterableDataset``), and combinations of data sets."""

from __future__ import annotations

import itertools
import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import Index
from chainrule._src.ops.random import Generator, randperm

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """The base of data sets. ``__getitem__`` returns the item of an index; ``__len__`` returns the number of items.

    A data set that can load many items at once implements ``__getitems__``, which takes a list of indices.
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """The base of data sets with an order of their own. ``__iter__`` yields the items."""

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Tensors (or arrays) of equal length; an item is the tuple of their elements at an index.

    Args:
        tensors: tensors of shape ``(n, ...)``.

    Raises:
        AssertionError: the lengths differ.
    """

    def __init__(self, *tensors: Any) -> None:
        lengths = [len(tensor) for tensor in tensors]
        if len(set(lengths)) > 1:
            raise AssertionError(f"Size mismatch between tensors: the lengths are {lengths}")
        self.tensors = tensors

    def __getitem__(self, index: Index) -> tuple[Any, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Data sets of equal length, zipped: an item is a tuple of their items, or a dictionary if they are given by name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, but both types are "
                "given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        lengths = [len(dataset) for dataset in args or kwargs.values()]
        if len(set(lengths)) > 1:
            raise ValueError(f"Size mismatch between datasets: the lengths are {lengths}")
        self._length = lengths[0]

    def _combine(self, found: Iterable[object]) -> tuple[object, ...] | dict[str, object]:
        return dict(zip(self.datasets, found, strict=True)) if isinstance(self.datasets, dict) else tuple(found)

    def _parts(self) -> list[Any]:
        return [*self.datasets.values()] if isinstance(self.datasets, dict) else [*self.datasets]

    def __getitem__(self, index: Any) -> Any:
        return self._combine([dataset[index] for dataset in self._parts()])

    def __getitems__(self, indices: list[int]) -> list[Any]:
        columns = [items_of(dataset, indices) for dataset in self._parts()]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(column)}")
        return [self._combine(items) for items in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """The concatenation of data sets."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __getitem__(self, index: int) -> Any:
        if index < -len(self):
            raise ValueError("absolute value of index should not exceed dataset length")
        index += len(self) if index < 0 else 0
        which = bisect_right(self.cumulative_sizes, index)
        if which == len(self.datasets):
            raise IndexError(f"index {index} is out of range for {len(self)} items")
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[Any]):
    """The concatenation of iterable data sets."""

    def __init__(self, datasets: Iterable[object]) -> None:
        self.datasets = datasets

    def _checked_datasets(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self._checked_datasets())

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked_datasets())


class Subset(Dataset[T]):
    """The items of a data set at some indices.

    Args:
        dataset: the full data set.
        indices: the indices of the subset.
    """

    def __init__(self, dataset: Dataset[T], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices
        if type(self).__getitem__ is not Subset.__getitem__ and type(self).__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{type(self).__name__} overrides __getitem__ but not __getitems__, which loaders call: define both, the second "
                "as [self[i] for i in indices]"
            )

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T]:
        return items_of(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def items_of(dataset: Any, indices: Sequence[object]) -> Any:
    """Return the items at several indices, by ``__getitems__`` if the data set has it."""
    many = getattr(dataset, "__getitems__", None)
    return many(indices) if callable(many) else [dataset[i] for i in indices]


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset[Any]]:
    """Split a data set at random into parts without overlap.

    Args:
        dataset: the full data set.
        lengths: the lengths of the parts, or fractions with the sum 1. Items left over by rounding go to the first
            parts, one each.
        generator: the random number generator.

    Raises:
        ValueError: the lengths do not add up to the length of the data set, or a fraction is not between 0 and 1.

    >>> from chainrule.utils.data import random_split
    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    counts: list[Any] = list(lengths)
    if math.isclose(sum(counts), 1) and sum(counts) <= 1:
        for i, fraction in enumerate(counts):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        counts = [math.floor(len(dataset) * fraction) for fraction in counts]
        for i in range(len(dataset) - sum(counts)):
            counts[i % len(counts)] += 1
        for i, count in enumerate(counts):
            if count == 0:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2
                )
    if sum(counts) != len(dataset):
        raise ValueError(
            f"Sum of input lengths does not equal the length of the input dataset! {counts} for {len(dataset)} items"
        )
    order = randperm(len(dataset), generator=generator).tolist()
    ends = itertools.accumulate(counts)
    return [Subset(dataset, order[end - count : end]) for end, count in zip(ends, counts, strict=True)]


show(globals())
