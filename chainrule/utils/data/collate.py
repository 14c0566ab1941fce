"""Batches: what belongs together in several samples becomes one tensor."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.ops.creation import as_tensor, tensor
from chainrule._src.ops.joining import stack
from chainrule._src.tape.tensor import Tensor

#: makes a batch of a list of samples
Collate = Callable[[Any], Any]


def _refusal(what: object) -> TypeError:
    return TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {what}: give the loader a "
        "collate_fn, which takes the list of samples"
    )


def _like(container: Any, items: dict[Any, Any] | list[Any]) -> Any:
    """A container of the same type with other items; a plain one where the type can't be made so."""
    if isinstance(container, tuple):
        return type(container)(*items) if hasattr(container, "_fields") else items
    try:
        if not isinstance(container, (MutableMapping, MutableSequence)):
            return type(container)(items)
        clone: Any = copy.copy(container)
        for key, item in items.items() if isinstance(items, dict) else enumerate(items):
            clone[key] = item
        return clone
    except TypeError:
        return items


def default_collate(batch: Sequence[Any]) -> Any:
    """One sample that has an axis for the batch in front: of tensors and arrays the stack, of numbers a tensor, of dictionaries,
    named tuples and sequences one with such items (a list for a tuple). Strings stay as they are.

    Raises:
        TypeError: the samples are of another type.
        RuntimeError: they are sequences of different lengths, or arrays of different shapes.

    >>> from chainrule.utils.data import default_collate
    >>> default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': tensor([1., 2.], dtype=torch.float64), 'name': ['a', 'b']}
    """
    first = batch[0]
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Tensor):
        return stack(tuple(batch))
    if isinstance(first, Array):
        return np.stack(batch)
    if isinstance(first, np.ndarray):
        if first.dtype.kind in "SUO":
            raise _refusal(first.dtype)
        return stack([as_tensor(array) for array in batch])
    if isinstance(first, (np.bool_, np.number)):
        return as_tensor(np.array(batch))
    if isinstance(first, (float, int)):
        return tensor(batch, dtype="float64" if isinstance(first, float) else None)
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        if len({len(sample) for sample in batch}) > 1:
            raise RuntimeError("each element in list of batch should be of equal size")
        return _like(first, [default_collate(items) for items in zip(*batch, strict=True)])
    raise _refusal(type(first))


def default_convert(data: object) -> Any:
    """Arrays as tensors, in containers, too; all else as it is."""
    if isinstance(data, np.ndarray) and data.dtype.kind in "SUO":
        return data
    if isinstance(data, (np.ndarray, np.number, np.bool_)):
        return as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(item) for key, item in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, [default_convert(item) for item in data])
    return data
