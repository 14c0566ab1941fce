"""Loading the extension, and trying it against NumPy before anything relies on it."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from chainrule import config
from chainrule.native.code import FIRST_INPUT, loop_step, program

_TRIED = [(np.add, "dd->d"), (np.multiply, "ff->f"), (np.tanh, "d->d")]


def _difference(extension: ModuleType) -> str:
    """What three loops do otherwise than NumPy, "" if nothing."""
    for ufunc, types in _TRIED:
        if len(ufunc.types) != ufunc.ntypes or types not in ufunc.types:
            return f"{ufunc.__name__} of NumPy {np.__version__} has no loop {types}"
        address = extension.loop(ufunc, ufunc.types.index(types))
        if address is None:
            return f"{ufunc.__name__} of NumPy {np.__version__} does not say where its loop {types} is"
        x = np.linspace(-2, 2, 7, dtype=types[0])
        out = np.zeros_like(x)
        arrays = [x] * ufunc.nin + [out]
        args = [(FIRST_INPUT + k, 0) for k in range(len(arrays))]
        fn, data = address
        code = program([loop_step(fn, data, x.size, args, [a.itemsize for a in arrays])])
        extension.execute(code, 0, code.size, np.array([0, 0, *(a.ctypes.data for a in arrays)], np.intp))
        if out.tobytes() != ufunc(*arrays[:-1]).tobytes():
            return f"loop {types} of {ufunc.__name__} gives other values than NumPy {np.__version__}"
    return ""


try:
    if not config.NATIVE:
        raise ImportError("CHAINRULE_NATIVE=0 in the environment")
    from chainrule.native import _loops
except (ImportError, AttributeError, RuntimeError) as problem:  # the latter from a NumPy of another binary interface
    why_not = f"the extension is not loaded: {problem}"
else:
    why_not = _difference(_loops)

AVAILABLE = not why_not


def _unavailable(*args: Any) -> NoReturn:
    raise RuntimeError(f"chainrule.native is not available: {why_not}")


if AVAILABLE:
    OWN, Runner, execute, loop = _loops.OWN, _loops.Runner, _loops.execute, _loops.loop
    get_threads, set_threads = _loops.get_threads, _loops.set_threads
    config.THREADS.follow(set_threads)
else:
    OWN = {}
    Runner = execute = loop = get_threads = set_threads = _unavailable  # type: ignore[assignment]
