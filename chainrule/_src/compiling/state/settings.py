"""Settings that code goes by which is not looked into: how numbers are printed, how many digits decimals have.

They are looked at again in each call of a recording that went by them.
"""

from __future__ import annotations

import decimal
import sys
from typing import Any

import numpy as np

from chainrule._src.arrays import printing
from chainrule._src.arrays.types import AnyFunction


def printing_of_arrays(read: AnyFunction = np.get_printoptions) -> tuple[Any, ...]:
    """How NumPy prints."""
    return tuple(read().items())


def printing_of_tensors(options: object = printing._options) -> tuple[Any, ...]:
    """How tensors print."""
    return tuple(vars(options).values())


def digits_of_decimals(read: Any = decimal.getcontext) -> tuple[Any, ...]:
    """What decimals are computed with."""
    now = read()
    return now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp, repr(now.traps)


def is_special(function: Any) -> bool:
    """Whether a ufunc is one of ``scipy.special``'s."""
    module = sys.modules.get("scipy.special")
    return module is not None and vars(module).get(function.__name__) is function


def errors_of_special_functions(function: object) -> tuple[Any, ...]:
    """What the functions of ``scipy.special`` do about errors."""
    return tuple(sys.modules["scipy.special"].geterr().values())


#: by module whose functions print: what holds the settings, and what reads them; None: they are not known
PRINTERS: dict[str, tuple[Any, Any]] = {
    "numpy._core.arrayprint": (np.get_printoptions, printing_of_arrays),
    "chainrule._src.arrays.printing": (printing._options, printing_of_tensors),
    "pandas.io.formats.format": (None, None),
}
