"""``Library``: the differences between another library's arrays and NumPy's, which its NumPy protocols do not cover.

``libraries.library_of`` returns the ``Library`` of a type, and ``tape/foreign.py`` calls its functions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ndarray = np.ndarray


@dataclass(frozen=True)
class Library:
    """The array library of a type.

    Attributes:
        name: the library's name, as its authors write it.
        to_numpy: converts one of its arrays to an ndarray.
        conversion: the user's code for this conversion, for an array ``{x}``.
        lacks: returns whether the library has no implementation of a NumPy function, and would convert, warn or fail.
        shape: returns the shape of an array, possibly with more data (see ``like``).
        check: raises for an array that cannot be computed with.
        own: NumPy function -> implementation for this library's arrays, used instead of the library's own.
        by_keyword: whether its functions accept axes by keyword only.
        refuses: returns whether an exception means that the library does not implement an operation.
        elementwise: applies a function of ndarrays to every element of its arrays.
        rows: primitive -> implementation for this library's arrays, where the primitive's value writes into memory.
        like: gives an array the layout stored in a shape (of ``shape``).
        all_to_numpy: ``to_numpy`` of several arrays that share work.
        call: calls a NumPy function with one of its arrays among the arguments.
        element: computes ``x[index]``.
        gpu: returns the number of the GPU that an array is on; None: host memory.
        strided: returns a view with a shape and strides; None: its arrays are not writable memory.
    """

    name: str
    to_numpy: Callable[[Any], ndarray[Any, Any]]
    conversion: str
    lacks: Callable[[Any], bool] = lambda function: False
    shape: Callable[[Any], tuple[int, ...]] = lambda x: tuple(x.shape)
    check: Callable[[Any], None] = lambda x: None
    own: dict[Any, Callable[..., Any]] = field(default_factory=dict)
    by_keyword: bool = False
    refuses: Callable[[Exception], bool] = lambda error: False
    elementwise: Callable[..., Any] | None = None
    rows: dict[str, Callable[..., Any]] = field(default_factory=dict)
    like: Callable[[Any, Any], Any] = lambda x, shape: x
    all_to_numpy: Callable[[list[Any]], list[ndarray[Any, Any]]] | None = None
    call: Callable[..., Any] = lambda function, x, args, kwargs: function(*args, **kwargs)
    element: Callable[[Any, Any], Any] = operator.getitem
    gpu: Callable[[Any], int | None] = lambda x: None
    strided: Callable[[Any, Any, Any], Any] | None = None
