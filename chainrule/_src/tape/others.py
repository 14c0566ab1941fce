"""Operands of other libraries: tables of pandas', and sparse matrices and linear operators of SciPy's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.messages import errors

ndarray = np.ndarray

#: Higher than DataFrame's 4000: pandas leaves ``series * array`` to us.
PANDAS_PRIORITY = 5000

#: (symbol, x, matrix of SciPy's) -> what the operator gives; ``ops.array`` says, which is above
SPARSE_OPERATOR: Callable[[str, object, object], object] = lambda symbol, x, A: NotImplemented  # noqa: E731


#: operators that a list has not; it has ``*``, and comparisons
_ARITHMETIC = {
    f"{side}{name}" for side in ("", "r") for name in ("add", "sub", "truediv", "floordiv", "mod", "pow", "matmul")
}


def beside(symbol: str, function: Callable[[Any, Any], Any], x: AnyArray, other: object) -> Any:
    """An operator of x (a tensor or an Array) and something of another library's; NotImplemented for what is not known.

    Args:
        symbol: "mul" for ``x * other``, "rmul" for ``other * x``.
        function: computes it for an array in the place of ``other``.

    Raises:
        TypeError: it is an array that does not answer to NumPy's functions.
    """
    numbers = numbers_of(other)
    if numbers is not None:
        return function(x, numbers)
    if is_sparse(other) or is_linear_operator(other):
        return SPARSE_OPERATOR(symbol, x, other)
    kind: Any = type(other)
    if kind in (list, tuple) and symbol in _ARITHMETIC:
        raise errors.sequence_operand(symbol, x, other)
    alone = hasattr(kind, "__array__") and not hasattr(kind, _exchanged(symbol))
    if (hasattr(kind, "__dlpack__") or alone) and not hasattr(kind, "__array_ufunc__"):
        raise errors.other_librarys_array(symbol, x, other)  # PyTorch's, JAX's: they would not know what to do, either
    return NotImplemented


def _exchanged(symbol: str) -> str:
    """The method that the other operand would have for an operator."""
    reflected = symbol.startswith("r") and symbol != "rshift"
    return f"__{symbol[1:]}__" if reflected else f"__r{symbol}__"


# -- pandas ------------------------------------------------------------------------------------------------------------


def is_table(x: object) -> bool:
    """Whether x is a Series, a DataFrame, or another of pandas' arrays."""
    return hasattr(x, "__pandas_priority__") and hasattr(x, "to_numpy")


def numbers_of(x: Any) -> NumpyArray | None:
    """The values of a Series, a DataFrame, or another of pandas' arrays, without its index; None for anything else.

    Raises:
        TypeError: these are not all numbers.
    """
    if not is_table(x):
        return None
    values: NumpyArray = x.to_numpy()
    if values.dtype.kind in "fciub":
        return values
    what = f"dtype {x.dtype}" if hasattr(x, "dtype") else f"dtypes {', '.join(sorted(set(map(str, x.dtypes))))}"
    raise TypeError(
        f"a {type(x).__name__} of {what} is no array of numbers: take the columns that are numbers, or convert them, as in "
        ".to_numpy(float), or .to_numpy(float, na_value=np.nan) where values are missing"
    )


# -- SciPy -------------------------------------------------------------------------------------------------------------


def is_sparse(x: object) -> bool:
    """Whether x is a sparse matrix or array of SciPy's."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(x)


def is_linear_operator(x: object) -> bool:
    """Whether x is a ``scipy.sparse.linalg.LinearOperator``."""
    linalg = sys.modules.get("scipy.sparse.linalg")
    return linalg is not None and isinstance(x, linalg.LinearOperator)


def raise_what_scipy_caught() -> None:
    """Raise our own error again where a constructor of ``scipy.sparse`` has caught it, to say that it does not know the operand."""
    if sys.exception() is not None and sys._getframe(2).f_globals.get("__name__", "").startswith("scipy.sparse."):
        raise  # what an except clause of SciPy's is handling


def left_to_us() -> bool:
    """Whether an operator of SciPy's sparse matrices, or of unyt's quantities, calls ``__array__``: what is no array, it
    leaves to us.
    """
    frame = sys._getframe(2)
    if frame.f_code.co_name == "_coerce_iterable_units" and frame.f_back is not None:
        return frame.f_back.f_code.co_name == "__array_ufunc__"
    return frame.f_code.co_name == "_matmul_dispatch" and frame.f_globals.get("__name__", "").startswith(
        "scipy.sparse._"
    )


def in_distributions() -> bool:
    """Whether SciPy's distributions call ``__array__``: there, objects end in errors that do not say why."""
    name = sys._getframe(2).f_globals.get("__name__", "")
    return name.startswith("scipy.stats._") and ("_distn" in name or "_multivariate" in name or "_distribution" in name)


def leave_to_us(name: str) -> None:
    """Have pydata/sparse leave ``coo @ array`` to us: it asks for a fill value first, and takes this error for no answer."""
    if name == "fill_value" and sys._getframe(2).f_code.co_name == "check_zero_fill_value":
        raise NotImplementedError(
            "functions of pydata/sparse do not take tensors; an operator does: coo @ x, or cr.as_tensor(coo) in the place of coo"
        )


def no_array() -> NumpyArray:
    """What NumPy makes of an object that is no array."""
    return np.empty((), object)
