"""Settings that unwatched code reads: print options, the context of decimals, error handling of ``scipy.special``.

``reads`` and ``calls`` guard a setting by its function here: each replay calls the function again and compares the results.
"""

from __future__ import annotations

import decimal
import sys
from typing import Any

import numpy as np

from chainrule._src.arrays import printing
from chainrule._src.arrays.types import AnyFunction


def printing_of_arrays(read: AnyFunction = np.get_printoptions) -> tuple[Any, ...]:
    """Return NumPy's print options."""
    return tuple(read().items())


def printing_of_tensors(options: object = printing._options) -> tuple[Any, ...]:
    """Return the print options of tensors."""
    return tuple(vars(options).values())


def digits_of_decimals(read: Any = decimal.getcontext) -> tuple[Any, ...]:
    """Return the settings of the decimal context."""
    now = read()
    return now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp, repr(now.traps)


def is_special(function: Any) -> bool:
    """Return whether a ufunc belongs to ``scipy.special``."""
    module = sys.modules.get("scipy.special")
    return module is not None and vars(module).get(function.__name__) is function


def errors_of_special_functions(function: object) -> tuple[Any, ...]:
    """Return the error handling of ``scipy.special``."""
    return tuple(sys.modules["scipy.special"].geterr().values())


#: by module that prints: the holder of the settings, and the function that reads them; None if they cannot be read
PRINTERS: dict[str, tuple[Any, Any]] = {
    "numpy._core.arrayprint": (np.get_printoptions, printing_of_arrays),
    "chainrule._src.arrays.printing": (printing._options, printing_of_tensors),
    "pandas.io.formats.format": (None, None),
}
