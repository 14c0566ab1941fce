"""Other libraries' arrays: what is to be known of a type beyond NumPy's protocols, which it implements.

A type counts as data, like an ndarray, if it answers to ``__array_ufunc__`` and ``__array_function__`` in its own way and
holds numbers: arrays of Dask, CuPy and pydata/sparse, quantities of unyt. Containers that hold arrays of others (xarray's,
pint's) are not data to us: they wrap our arrays, as they wrap everybody's.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from chainrule._src.arrays.library import Library

ndarray = np.ndarray


# -- by the module that a type comes from ------------------------------------------------------------------------------

LIBRARIES: dict[str, Library] = {}

#: package -> the module with its ``LIBRARY``
_LATER = {
    "cupy": "chainrule._src.arrays.cupy_arrays",
    "dask": "chainrule._src.arrays.dask_arrays",
    "sparse": "chainrule._src.arrays.sparse_arrays",
    "unyt": "chainrule._src.arrays.unyt_arrays",
}

#: packages whose arrays hold arrays of others, ours among them
CONTAINERS = frozenset({"xarray", "pint"})


def root_of(kind: type) -> str:
    """Return the package that a type (or what it inherits from, beside NumPy's) comes from."""
    return kind.__module__.partition(".")[0]


@functools.cache
def library_of(kind: type) -> Library:
    """What is known of a type of arrays."""
    for base in kind.__mro__:
        root = root_of(base)
        if root in _LATER and root not in LIBRARIES:
            LIBRARIES[root] = importlib.import_module(_LATER[root]).LIBRARY
        if root in LIBRARIES:
            return LIBRARIES[root]
    library = importlib.import_module("chainrule._src.arrays.library").Library
    return library(root_of(kind), np.asarray, "np.asarray({x})")


def is_foreign(kind: type) -> bool:
    """Return whether a type's instances are data of another library: arrays that answer to both of NumPy's protocols."""
    found = _FOREIGN.get(kind)
    if found is None:
        found = _FOREIGN[kind] = _is_foreign(kind)
    return found


_FOREIGN: dict[type, bool] = {ndarray: False}


def register_plain(kind: type) -> None:
    """Say that the arrays of a type are no other library's: a subclass of ndarray that computes by itself, ours by another name."""
    _FOREIGN[kind] = False


def _is_foreign(kind: type) -> bool:
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
    """Return whether a type's instances hold arrays of others, and compute with ours if they hold those."""
    found = _CONTAINERS.get(kind)
    if found is None:
        found = _CONTAINERS[kind] = any(root_of(base) in CONTAINERS for base in kind.__mro__)
    return found


_CONTAINERS: dict[type, bool] = {ndarray: False}
