"""Other libraries' arrays: what is to be known of a type beyond NumPy's protocols, which it implements.

A type counts as data, like an ndarray, if it answers to ``__array_ufunc__`` and ``__array_function__`` in its own way and
holds numbers: arrays of Dask, CuPy and pydata/sparse, quantities of unyt. Containers that hold arrays of others (xarray's,
pint's) are not data to us: they wrap our arrays, as they wrap everybody's.
"""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chainrule._src.arrays import gpu
from chainrule._src.arrays.types import AnyFunction, NumpyArray

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
    to_numpy: Callable[[Any], NumpyArray]
    conversion: str
    lacks: Callable[[Any], bool] = lambda function: False
    shape: Callable[[Any], tuple[int, ...]] = lambda x: tuple(x.shape)
    check: Callable[[Any], None] = lambda x: None
    own: dict[Any, AnyFunction] = field(default_factory=dict)
    by_keyword: bool = False
    refuses: Callable[[Exception], bool] = lambda error: False
    elementwise: AnyFunction | None = None
    rows: dict[str, AnyFunction] = field(default_factory=dict)
    like: Callable[[Any, Any], Any] = lambda x, shape: x
    all_to_numpy: Callable[[list[Any]], list[NumpyArray]] | None = None
    call: AnyFunction = lambda function, x, args, kwargs: function(*args, **kwargs)
    element: Callable[[Any, Any], Any] = operator.getitem
    gpu: Callable[[Any], int | None] = lambda x: None
    strided: Callable[[Any, Any, Any], Any] | None = None


# -- by the module that a type comes from ------------------------------------------------------------------------------

LIBRARIES = {
    "cupy": Library(
        "CuPy",
        lambda x: x.get(),
        "{x}.get()",
        elementwise=gpu.elementwise,
        call=gpu.call,
        element=gpu.element,
        gpu=lambda x: int(x.device.id),
        strided=gpu.strided,
    ),
}

#: package -> the module with its ``LIBRARY``, which imports the package
_LATER = {
    "dask": "chainrule._src.arrays.dask_arrays",
    "sparse": "chainrule._src.arrays.sparse_arrays",
    "unyt": "chainrule._src.arrays.unyt_arrays",
}

#: packages whose arrays hold arrays of others, ours among them
CONTAINERS = frozenset({"xarray", "pint"})


def root_of(kind: type) -> str:
    """The package that a type (or what it inherits from, beside NumPy's) comes from."""
    return kind.__module__.partition(".")[0]


@functools.cache
def library_of(kind: Any) -> Library:
    """What is known of a type of arrays."""
    for base in kind.__mro__:
        root = root_of(base)
        if root in _LATER and root not in LIBRARIES:
            LIBRARIES[root] = importlib.import_module(_LATER[root]).LIBRARY
        if root in LIBRARIES:
            return LIBRARIES[root]
    return Library(root_of(kind), np.asarray, "np.asarray({x})")


def is_foreign(kind: type) -> bool:
    """Whether a type's instances are data of another library: arrays that answer to both of NumPy's protocols."""
    found = _FOREIGN.get(kind)
    if found is None:
        found = _FOREIGN[kind] = _is_foreign(kind)
    return found


_FOREIGN: dict[type, bool] = {ndarray: False}


def register_plain(kind: type) -> None:
    """Say that the arrays of a subclass of ndarray are ndarrays, though it computes by itself."""
    _FOREIGN[kind] = False


def _is_foreign(kind: Any) -> bool:
    if hasattr(kind, "_edge"):  # a tensor, whatever module it says it is of
        return False
    if root_of(kind) in ("chainrule", "numpy") or any(root_of(base) in CONTAINERS for base in kind.__mro__):
        return False
    if not callable(getattr(kind, "__array_ufunc__", None)) or not callable(getattr(kind, "__array_function__", None)):
        return False
    if any(root_of(base) == "chainrule" for base in kind.__mro__):
        return False
    if issubclass(kind, ndarray):  # one without a meaning of its own (a memmap) is an ndarray
        return kind.__array_ufunc__ is not ndarray.__array_ufunc__
    known = any(root_of(base) in LIBRARIES or root_of(base) in _LATER for base in kind.__mro__)
    return known or (hasattr(kind, "shape") and hasattr(kind, "dtype"))


def is_container(kind: type) -> bool:
    """Whether a type's instances hold arrays of others, and compute with ours if they hold those."""
    found = _CONTAINERS.get(kind)
    if found is None:
        found = _CONTAINERS[kind] = any(root_of(base) in CONTAINERS for base in kind.__mro__)
    return found


_CONTAINERS: dict[type, bool] = {ndarray: False}
