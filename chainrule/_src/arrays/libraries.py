"""The registry of other libraries' array types, and predicates for types that count as data.

``tape.foreign`` and the operations look up types here; the modules ``*_arrays`` and ``gpu`` have the entries.

A type counts as data, like an ndarray, if it implements ``__array_ufunc__`` and ``__array_function__`` and holds numbers:
arrays of Dask, CuPy and pydata/sparse, quantities of unyt. Containers of other arrays (of xarray and pint) are not data:
they wrap our arrays, as they wrap all others.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from chainrule._src.arrays.library import Library

ndarray = np.ndarray


# -- libraries by package name -----------------------------------------------------------------------------------------

LIBRARIES: dict[str, Library] = {}

#: package -> the module that defines its ``LIBRARY``
_LATER = {
    "cupy": "chainrule._src.arrays.cupy_arrays",
    "dask": "chainrule._src.arrays.dask_arrays",
    "sparse": "chainrule._src.arrays.sparse_arrays",
    "unyt": "chainrule._src.arrays.unyt_arrays",
}

#: packages whose arrays contain other arrays, including ours
CONTAINERS = frozenset({"xarray", "pint"})


def root_of(kind: type) -> str:
    """Return the name of the top-level package that defines a type."""
    return kind.__module__.partition(".")[0]


@functools.cache
def library_of(kind: type) -> Library:
    """Return the ``Library`` of an array type."""
    for base in kind.__mro__:
        root = root_of(base)
        if root in _LATER and root not in LIBRARIES:
            LIBRARIES[root] = importlib.import_module(_LATER[root]).LIBRARY
        if root in LIBRARIES:
            return LIBRARIES[root]
    library = importlib.import_module("chainrule._src.arrays.library").Library
    return library(root_of(kind), np.asarray, "np.asarray({x})")


def is_foreign(kind: type) -> bool:
    """Return whether a type's instances are data of another library: it implements both of NumPy's protocols."""
    found = _FOREIGN.get(kind)
    if found is None:
        found = _FOREIGN[kind] = _is_foreign(kind)
    return found


_FOREIGN: dict[type, bool] = {ndarray: False}


def register_plain(kind: type) -> None:
    """Register a type as not foreign: an ndarray subclass that needs no library of its own, or one of our own types."""
    _FOREIGN[kind] = False


def _is_foreign(kind: type) -> bool:
    if hasattr(kind, "_edge"):  # a tensor, regardless of its ``__module__``
        return False
    if root_of(kind) in ("chainrule", "numpy") or any(root_of(base) in CONTAINERS for base in kind.__mro__):
        return False
    if not callable(getattr(kind, "__array_ufunc__", None)) or not callable(getattr(kind, "__array_function__", None)):
        return False
    if any(root_of(base) == "chainrule" for base in kind.__mro__):
        return False
    if issubclass(kind, ndarray):  # a subclass without behaviour of its own (a memmap) counts as an ndarray
        return kind.__array_ufunc__ is not ndarray.__array_ufunc__
    is_registered = any(root_of(base) in LIBRARIES or root_of(base) in _LATER for base in kind.__mro__)
    return is_registered or (hasattr(kind, "shape") and hasattr(kind, "dtype"))


def is_container(kind: type) -> bool:
    """Return whether a type's instances are containers of arrays, such as xarray's, which may contain ours."""
    found = _CONTAINERS.get(kind)
    if found is None:
        found = _CONTAINERS[kind] = any(root_of(base) in CONTAINERS for base in kind.__mro__)
    return found


_CONTAINERS: dict[type, bool] = {ndarray: False}
