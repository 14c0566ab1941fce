"""Combine samples to a batch: corresponding elements are stacked to one tensor.

``DataLoader`` calls ``default_collate`` for each batch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.ops.creation import as_tensor, tensor
from chainrule._src.ops.joining import stack
from chainrule._src.tape.tensor import Tensor

#: Combines a list of samples to a batch.
Collate = Callable[[Any], Any]


def _unsupported(what: object) -> TypeError:
    return TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {what}: pass the loader a "
        "collate_fn that takes the list of samples"
    )


def _rebuild(container: Any, items: dict[Any, Any] | list[Any]) -> Any:
    """Return a container of the same type with other items, or ``items`` if the type cannot be constructed."""
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
    """Combine a list of samples to one sample with a leading batch axis.

    Tensors and arrays are stacked, and numbers become a tensor. Dictionaries, named tuples and sequences are combined item
    by item (tuples become lists). Strings stay in a list.

    Raises:
        TypeError: the samples have an unsupported type.
        RuntimeError: the samples are sequences of different lengths, or arrays of different shapes.

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
            raise _unsupported(first.dtype)
        return stack([as_tensor(array) for array in batch])
    if isinstance(first, (np.bool_, np.number)):
        return as_tensor(np.array(batch))
    if isinstance(first, (float, int)):
        return tensor(batch, dtype="float64" if isinstance(first, float) else None)
    if isinstance(first, Mapping):
        return _rebuild(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        if len({len(sample) for sample in batch}) > 1:
            raise RuntimeError("each element in list of batch should be of equal size")
        return _rebuild(first, [default_collate(items) for items in zip(*batch, strict=True)])
    raise _unsupported(type(first))


def default_convert(data: object) -> Any:
    """Convert arrays to tensors, also inside containers; return other data unchanged."""
    if isinstance(data, np.ndarray) and data.dtype.kind in "SUO":
        return data
    if isinstance(data, (np.ndarray, np.number, np.bool_)):
        return as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuild(data, {key: default_convert(item) for key, item in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild(data, [default_convert(item) for item in data])
    return data
