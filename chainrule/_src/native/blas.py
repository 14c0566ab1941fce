"""The BLAS and LAPACK that NumPy calls: where their functions are, looked up by name in the libraries that it is linked to.

Another BLAS would round otherwise, so there is no other to fall back to: where a function is not found, Python calls NumPy.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np


class CFunction(NamedTuple):
    """A function's address, and how many bits its integers have."""

    address: int
    bits: int


@functools.cache
def blas_function(name: str) -> CFunction | None:
    """A function by its name in C (``"cblas_daxpy"``) or Fortran (``"dgetrf_"``); None if NumPy's cannot be found."""
    for library in _libraries():
        for symbol, bits in ((f"scipy_{name}64_", 64), (f"{name}64_", 64), (name, 32)):
            function = getattr(library, symbol, None)
            if function is not None and (bits == 64 or not _has_long_integers()):
                import ctypes

                address = ctypes.cast(function, ctypes.c_void_p).value
                return None if address is None else CFunction(address, bits)
    return None


class Lapack(NamedTuple):
    """A function of LAPACK's that writes into the arrays that it is called with."""

    function: Any
    bits: int

    def __call__(self, *arrays: np.ndarray[Any, Any]) -> None:
        self.function(*[x.ctypes.data for x in arrays])


@functools.cache
def lapack_function(name: str, arguments: int) -> Lapack | None:
    """A function that takes so many addresses, as Python can call it."""
    found = blas_function(name)
    if found is None:
        return None
    import ctypes

    return Lapack(ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(found.address), found.bits)


@functools.cache
def _libraries() -> list[Any]:
    """NumPy's extensions that call BLAS and LAPACK: what is looked for in them is looked for in what they are linked to."""
    try:
        import ctypes

        return [ctypes.CDLL(module.__file__) for module in (np.linalg._umath_linalg, np._core._multiarray_umath)]  # type: ignore[attr-defined]
    except (ImportError, AttributeError, OSError, TypeError):
        return []


def _has_long_integers() -> bool:
    """Whether NumPy was built for a BLAS whose integers have 64 bits, whatever its names are."""
    try:
        from numpy.linalg import lapack_lite

        return bool(lapack_lite._ilp64)
    except (ImportError, AttributeError):
        return True


def blas_name() -> str:
    """Which BLAS NumPy calls, with the kernels that it chose for this processor where it says so (OpenBLAS does)."""
    import ctypes

    said = []
    for name, kind in (("openblas_get_config", ctypes.c_char_p), ("openblas_get_num_threads", ctypes.c_int)):
        for library in _libraries():
            found = next(
                (f for s in (f"scipy_{name}64_", f"{name}64_", name) if (f := getattr(library, s, None))), None
            )
            if found is not None:
                found.restype = kind
                said.append(found())
                break
    if len(said) == 2:
        return f"{said[0].decode().strip()}, {said[1]} threads"
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas.get('name', 'not known')} {blas.get('version', '')}".strip()
