"""Apply in-place modifications of a transformed function's tensor arguments to the caller's tensors.

``vmap`` and ``pushforward`` call ``write_back``.

Inside a transformation, the data of an argument is immutable: an in-place operation creates new data. After the function
has returned, this module copies the new data into the caller's memory, and recomputes the argument and its views from
that memory, so that results that are views of the argument share it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule._src.arrays.types import AnyArray
from chainrule._src.tape import inplace
from chainrule._src.tape.tensor import Tensor, set_tensor_data, tensor_of


def write_back(api: str, given: AnyArray, inner: Tensor, value: AnyArray, enter: Callable[[Any], Any]) -> None:
    """Copy the modified value of an argument to the caller's tensor.

    Args:
        api: the name of the function that the user called.
        given: the caller's argument.
        inner: the tensor that the function got instead of it.
        value: the modified value, without the level of the transformation.
        enter: converts the caller's data to data for ``inner``, on the level of the transformation.

    Raises:
        RuntimeError: the caller's tensor cannot be modified.
    """
    if not isinstance(given, Tensor):  # writes to an array stay inside the function
        return
    value = tensor_of(value)
    if tuple(value._raw.shape) != tuple(given._raw.shape):  # the function replaced its data
        return
    inplace.check_writable(given, api)
    inplace.write_result(given, value, api)
    set_tensor_data(inner, enter(given if given._edge is not None else given._raw))
    inplace.refresh_views(inner)
