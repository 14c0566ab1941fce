"""What is to be known of another library's arrays beyond NumPy's protocols, which they implement."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ndarray = np.ndarray


@dataclass(frozen=True)
class Library:
    """Where an array type comes from.

    Attributes:
        name: as its authors write it.
        to_numpy: from one of its arrays to an ndarray of the values.
        conversion: how a user writes that, of an array ``{x}``.
        lacks: whether it has no form of a NumPy function of its own, and would convert, warn or fail.
        shape: the shape of an array, or what is to be remembered as it.
        check: raises for an array that cannot be computed with.
        own: NumPy function -> what computes it of this library's arrays, instead of the library's own.
        by_keyword: whether its functions take axes by keyword only.
        refuses: whether an exception of its says that it does not compute something.
        elementwise: what applies a function of ndarrays to every element of its arrays.
        rows: row -> what computes it of this library's arrays, where its value writes into memory.
        like: an array, laid out as a shape (of ``shape``) remembers that another one was.
        all_to_numpy: ``to_numpy`` of several arrays that share work.
        call: what a NumPy function gives for one of its arrays, among the function's arguments.
        element: ``x[index]``.
        gpu: the number of the GPU that an array lies on; None: in the computer's memory.
        strided: a view of an array's memory with a shape and strides; None: its arrays are no memory that can be written.
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
