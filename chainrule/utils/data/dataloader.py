"""``DataLoader``: iterates over a data set in batches, in this process."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from chainrule._src.api.public_modules import show
from chainrule._src.ops.random import Generator
from chainrule.utils.data.collate import Collate, default_collate, default_convert
from chainrule.utils.data.dataset import IterableDataset, items_of
from chainrule.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T = TypeVar("T", covariant=True)

#: Attributes that cannot be set after construction.
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader(Generic[T]):
    """An iterable over the batches of a data set.

    Args:
        dataset: a :class:`Dataset`, an :class:`IterableDataset`, or any object with ``__getitem__`` and ``__len__``.
        batch_size: the number of samples in a batch; None for single samples without a batch axis.
        shuffle: use a new random order in each iteration.
        sampler: the indices in order.
        batch_sampler: the indices of each batch.
        num_workers: the number of PyTorch's worker processes. Here samples are always loaded in this process; the
            batches are the same, and a warning is issued.
        collate_fn: combines a list of samples to a batch (``default_collate``).
        drop_last: omit the last batch if it is smaller.
        generator: the random number generator.
        pin_memory, timeout, worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers, pin_memory_device,
            in_order: accepted and ignored.

    Raises:
        ValueError: mutually exclusive options; or an :class:`IterableDataset` with more than one worker, each of which
            would yield all data.
    """

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None, num_workers: int = 0, collate_fn: Collate | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None, multiprocessing_context: Any = None,
        generator: Generator | None = None, *, prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        is_iterable = isinstance(dataset, IterableDataset)
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, is_iterable)
        if is_iterable:
            for name, value in {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}.items():
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if is_iterable:
                sampler = itertools.repeat(None)
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self.num_workers, self.timeout, self.worker_init_fn = num_workers, timeout, worker_init_fn
        self.pin_memory, self.pin_memory_device, self.in_order = pin_memory, pin_memory_device, in_order
        self.multiprocessing_context, self.prefetch_factor = multiprocessing_context, prefetch_factor
        self.persistent_workers = persistent_workers

    def __setattr__(self, name: str, value: object) -> None:
        if name in _FIXED and "persistent_workers" in self.__dict__:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        return map(self.collate_fn, self._samples())

    def _samples(self) -> Iterator[Any]:
        """Iterate over the samples of each batch: a list, or without batches one sample."""
        if isinstance(self.dataset, IterableDataset):
            if self.batch_size is None:
                return iter(self.dataset)
            return iter(
                BatchSampler(self.dataset, self.batch_size, self.drop_last)
            )  # batches samples instead of indices
        if self.batch_sampler is None:
            return map(self.dataset.__getitem__, self.sampler)
        return (items_of(self.dataset, batch) for batch in self.batch_sampler)

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            if self.batch_size is None:
                return len(self.dataset)  # type: ignore[arg-type]
            return len(BatchSampler(self.dataset, self.batch_size, self.drop_last))
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool, is_iterable: bool
) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing: remove it, as there are no worker processes"
        )
    if num_workers == 0 and persistent_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if num_workers > 1 and is_iterable:
        raise ValueError(
            f"DataLoader with IterableDataset: num_workers={num_workers} would yield the data {num_workers} times, once from each "
            "process, and there are no worker processes here: use num_workers=0"
        )
    if num_workers:
        warnings.warn(
            f"DataLoader: samples are loaded in this process, so num_workers={num_workers} has no effect (nor have options of "
            "workers, such as worker_init_fn). Set num_workers=0 to silence this warning",
            stacklevel=3,
        )


def get_worker_info() -> None:
    """Return None: data sets are always loaded in the main process."""


show(globals())
