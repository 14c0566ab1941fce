"""The C extension ``_loops``: import it, check it, and re-export the names that other packages use.

``Runner`` runs compiled programs, and ``LOOPS`` is the extension module, which
``tape.eager`` connects for eager operations and backward passes. If the extension was not built, does not fit this NumPy, or is disabled by
``CHAINRULE_NATIVE=0``, then ``AVAILABLE`` is False and ``why_not`` has the reason. All features work without the extension.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from chainrule._src import config
from chainrule._src.native.blas import blas_thread_functions
from chainrule._src.native.code import FIRST_INPUT, VERSION, kernel_step, program

__all__ = [
    "AVAILABLE",
    "LOOPS",
    "KERNELS",
    "Runner",
    "execute",
    "first_broken",
    "get_threads",
    "loop",
    "matmul",
    "MATMUL_LOOPS",
    "orders",
    "refuse",
    "set_threads",
    "slow_reason",
    "use_lapack",
    "why_not",
]


def _unavailable(*args: object) -> NoReturn:
    raise RuntimeError(f"chainrule._src.native is not available: {why_not}")


why_not = ""
LOOPS: Any = None  # the extension module; None if it is not available
try:
    if not config.NATIVE:
        raise ImportError("CHAINRULE_NATIVE=0 in the environment")
    from chainrule._src.native._loops import VERSION as BUILT

    if BUILT != VERSION:
        raise ImportError("it was built from other sources: `make native`, or install chainrule again")
    from chainrule._src.native import _loops
    from chainrule._src.native._loops import (
        KERNELS,
        Runner,
        execute,
        first_broken,
        get_threads,
        loop,
        matmul,
        orders,
        set_threads,
        use_lapack,
        use_matmul,
    )
except ModuleNotFoundError:
    why_not = "the extension was not built: there was no C compiler when chainrule was installed"
except (ImportError, AttributeError, RuntimeError) as problem:  # RuntimeError: NumPy has another binary interface
    why_not = f"the extension is not loaded: {problem}"


def _difference(ufunc: np.ufunc, types: str) -> str:
    """Return a description of the difference between a direct call of an inner loop and NumPy; "" if there is none."""
    if len(ufunc.types) != ufunc.ntypes or types not in ufunc.types:
        return f"{ufunc.__name__} of NumPy {np.__version__} has no loop {types}"
    address = loop(ufunc, ufunc.types.index(types))
    if address is None:
        return f"{ufunc.__name__} of NumPy {np.__version__} does not give the address of its loop {types}"
    fn, data = address
    x = np.linspace(-2, 2, 7, dtype=types[0])
    arrays = [x] * ufunc.nin + [np.zeros_like(x)]
    args = [(FIRST_INPUT + k, 0) for k in range(len(arrays))]
    code = program([kernel_step(fn, data, x.size, args, [a.itemsize for a in arrays])])
    execute(code, 0, code.size, np.array([0, 0, *(a.ctypes.data for a in arrays)], np.intp))
    if arrays[-1].tobytes() != ufunc(*arrays[:-1]).tobytes():
        return f"loop {types} of {ufunc.__name__} returns other values than NumPy {np.__version__}"
    return ""


if not why_not:
    why_not = _difference(np.add, "dd->d") or _difference(np.multiply, "ff->f") or _difference(np.tanh, "d->d")

AVAILABLE = not why_not
#: the characters of dtypes -> addresses of inner loops with the bits of ``np.matmul``, which are faster for small matrices
MATMUL_LOOPS: dict[str, int] = {}
if AVAILABLE:
    LOOPS = _loops
    MATMUL_LOOPS = use_matmul(np.matmul, blas_thread_functions)
    config.THREADS.follow(set_threads)
else:
    KERNELS = {}
    Runner = execute = first_broken = loop = get_threads = set_threads = _unavailable  # type: ignore[assignment, misc]
    orders = use_lapack = _unavailable
    matmul = np.matmul


def refuse(reason: str) -> None:
    """Set the reason why eager operations do not use the extension although it is available."""
    global why_not
    why_not = reason


def slow_reason() -> str:
    """Return a warning that operations run in Python; "" if C runs them, or if the user disabled the extension."""
    if not why_not or not config.NATIVE:
        return ""
    reason = why_not if len(why_not) < 200 else why_not[:200] + " …"
    return (
        f"chainrule runs without its C extension: {reason}. The results are the same, but small operations and compiled "
        "functions take many times as long. Install a C compiler, and then chainrule again. CHAINRULE_NATIVE=0 in the "
        "environment disables the extension and this warning."
    )
