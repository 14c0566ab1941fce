"""Look up functions of the BLAS and LAPACK that NumPy is linked to: addresses for kernels, and callables for Python.

There is no fallback to another BLAS, because its results would be rounded otherwise. If a function is not found, callers use NumPy.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


class CFunction:
    """The address of a function, and the number of bits of its integers."""

    __slots__ = ("address", "bits")

    def __init__(self, address: int, bits: int) -> None:
        self.address, self.bits = address, bits


@functools.cache
def blas_function(name: str) -> CFunction | None:
    """Return a function by its C name (``"cblas_daxpy"``) or Fortran name (``"dgetrf_"``), or None if it is not found."""
    for library in _libraries():
        for symbol, bits in ((f"scipy_{name}64_", 64), (f"{name}64_", 64), (name, 32)):
            function = getattr(library, symbol, None)
            if function is not None and (bits == 64 or not _has_long_integers()):
                import ctypes

                address = ctypes.cast(function, ctypes.c_void_p).value
                return None if address is None else CFunction(address, bits)
    return None


def blas_thread_functions() -> tuple[int, int]:
    """Return the addresses of OpenBLAS's functions that get and set the number of threads, or zeros for another BLAS."""
    get, set_number = blas_function("openblas_get_num_threads"), blas_function("openblas_set_num_threads")
    return (get.address, set_number.address) if get and set_number else (0, 0)


class Lapack:
    """A LAPACK function; a call passes the addresses of arrays."""

    __slots__ = ("bits", "function")

    def __init__(self, function: Any, bits: int) -> None:
        self.function, self.bits = function, bits

    def __call__(self, *arrays: np.ndarray[Any, Any]) -> None:
        self.function(*[x.__array_interface__["data"][0] for x in arrays])


@functools.cache
def lapack_function(name: str, arguments: int) -> Lapack | None:
    """Return a LAPACK function that takes the given number of addresses, or None if it is not found."""
    found = blas_function(name)
    if found is None:
        return None
    import ctypes

    return Lapack(ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(found.address), found.bits)


@functools.cache
def _libraries() -> list[Any]:
    """Load NumPy's extensions that call BLAS and LAPACK. Symbols are also looked up in the libraries that they are linked to."""
    try:
        import ctypes

        return [ctypes.CDLL(module.__file__) for module in (np.linalg._umath_linalg, np._core._multiarray_umath)]  # type: ignore[attr-defined]
    except (ImportError, AttributeError, OSError, TypeError):
        return []


def _has_long_integers() -> bool:
    """Return whether NumPy was built for a BLAS with 64-bit integers."""
    try:
        from numpy.linalg import lapack_lite

        return bool(lapack_lite._ilp64)
    except (ImportError, AttributeError):
        return True


def blas_name() -> str:
    """Return the name of NumPy's BLAS; for OpenBLAS, with the kernels for this processor and the number of threads."""
    import ctypes

    parts = []
    for name, kind in (("openblas_get_config", ctypes.c_char_p), ("openblas_get_num_threads", ctypes.c_int)):
        for library in _libraries():
            found = next(
                (f for s in (f"scipy_{name}64_", f"{name}64_", name) if (f := getattr(library, s, None))), None
            )
            if found is not None:
                found.restype = kind
                parts.append(found())
                break
    if len(parts) == 2:
        return f"{parts[0].decode().strip()}, {parts[1]} threads"
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas.get('name', 'not known')} {blas.get('version', '')}".strip()
