"""Other libraries' arrays: what is to be known of a type beyond NumPy's protocols, which it implements.

A type counts as data, like an ndarray, if it answers to ``__array_ufunc__`` and ``__array_function__`` in its own way and
holds numbers: arrays of Dask, CuPy and pydata/sparse, quantities of unyt. Containers that hold arrays of others (xarray's,
pint's) are not data to us: they wrap our arrays, as they wrap everybody's.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
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
        broadcast_to: ``np.broadcast_to``, where the shape may know more than numbers (see ``Shape``).
        shape: the shape of an array, or what is to be remembered as it.
        check: raises for an array that cannot be computed with.
    """

    name: str
    to_numpy: Callable[[Any], ndarray[Any, Any]]
    conversion: str
    lacks: Callable[[Any], bool] = lambda function: False
    broadcast_to: Callable[[Any, Any], Any] = np.broadcast_to
    shape: Callable[[Any], tuple[int, ...]] = lambda x: tuple(x.shape)
    check: Callable[[Any], None] = lambda x: None


# -- Dask --------------------------------------------------------------------------------------------------------------


class Shape(tuple):  # type: ignore[type-arg]
    """A shape that remembers how the array was cut into chunks, so that what is broadcast to it is cut alike."""

    chunks: Any

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)


def _dask_shape(x: Any) -> tuple[int, ...]:
    shape = Shape(x.shape)
    shape.chunks = x.chunks
    return shape


def _dask_broadcast_to(x: Any, shape: Any) -> Any:
    return sys.modules["dask.array"].broadcast_to(x, tuple(shape), chunks=getattr(shape, "chunks", None))


@functools.cache
def _dask_lacks(function: Any) -> bool:
    """Whether Dask would compute the arrays to call NumPy's function: it looks for one of that name in ``dask.array``."""
    module: Any = sys.modules["dask.array"]
    for name in function.__module__.split(".")[1:]:
        module = getattr(module, name, None)
    own = getattr(module, function.__name__, function)
    return own is function and function not in sys.modules["dask.array.core"]._HANDLED_FUNCTIONS


def _dask_check(x: Any) -> None:
    if any(n != n for n in x.shape):
        raise ValueError(
            f"a Dask array whose chunks have unknown sizes, of shape {x.shape}: derivatives need to know them. Compute the "
            "sizes with x = x.compute_chunk_sizes(), or give them where the array is made (as meta, lengths=True)."
        )


# -- by the module that a type comes from ------------------------------------------------------------------------------

_GENERIC = Library("", np.asarray, "np.asarray({x})")
LIBRARIES = {
    "dask": Library(
        "Dask",
        lambda x: np.asarray(x.compute()),
        "{x}.compute()",
        _dask_lacks,
        _dask_broadcast_to,
        _dask_shape,
        _dask_check,
    ),
    "cupy": Library("CuPy", lambda x: x.get(), "{x}.get()"),
    "sparse": Library("sparse", lambda x: x.todense(), "{x}.todense()"),
    "unyt": Library("unyt", lambda x: np.asarray(x.value), "{x}.value"),
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
        if root_of(base) in LIBRARIES:
            return LIBRARIES[root_of(base)]
    return Library(root_of(kind), np.asarray, "np.asarray({x})")


def is_foreign(kind: type) -> bool:
    """Whether a type's instances are data of another library: arrays that answer to both of NumPy's protocols."""
    found = _FOREIGN.get(kind)
    if found is None:
        found = _FOREIGN[kind] = _is_foreign(kind)
    return found


_FOREIGN: dict[type, bool] = {ndarray: False}


def _is_foreign(kind: Any) -> bool:
    if root_of(kind) in ("chainrule", "numpy") or any(root_of(base) in CONTAINERS for base in kind.__mro__):
        return False
    if not callable(getattr(kind, "__array_ufunc__", None)) or not callable(getattr(kind, "__array_function__", None)):
        return False
    if any(root_of(base) == "chainrule" for base in kind.__mro__):
        return False
    if issubclass(kind, ndarray):  # one without a meaning of its own (a memmap) is an ndarray
        return kind.__array_ufunc__ is not ndarray.__array_ufunc__
    return hasattr(kind, "shape") and hasattr(kind, "dtype")


def is_container(kind: type) -> bool:
    """Whether a type's instances hold arrays of others, and compute with ours if they hold those."""
    return any(root_of(base) in CONTAINERS for base in kind.__mro__)
