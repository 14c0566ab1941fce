"""Operands of other libraries: pandas tables, and SciPy's sparse matrices and linear operators.

The operators of tensors and Arrays call ``operate_with_foreign``. ``transforms.arguments``, ``sparse`` and
``scipy`` call ``numbers_of`` and the predicates.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, NumpyArray
from chainrule._src.messages import errors

ndarray = np.ndarray

#: Higher than DataFrame's 4000: pandas defers ``series * tensor`` to the tensor.
PANDAS_PRIORITY = 5000

#: (symbol, x, SciPy matrix) -> the operator's result; ``ops.array``, a higher-level module, sets it
SPARSE_OPERATOR: Callable[[str, object, object], object] = lambda symbol, x, A: NotImplemented  # noqa: E731


#: operators that lists do not define (lists define ``*`` and comparisons)
_ARITHMETIC = {
    f"{side}{name}" for side in ("", "r") for name in ("add", "sub", "truediv", "floordiv", "mod", "pow", "matmul")
}


def operate_with_foreign(symbol: str, function: Callable[[Any, Any], Any], x: AnyArray, other: object) -> Any:
    """Return the result of an operator on x (a tensor or an Array) and an object of another library, or NotImplemented.

    Args:
        symbol: "mul" for ``x * other``, "rmul" for ``other * x``.
        function: the operator for an ndarray as ``other``.

    Raises:
        TypeError: ``other`` is an array without NumPy's protocols.
    """
    numbers = numbers_of(other)
    if numbers is not None:
        return function(x, numbers)
    if is_sparse(other) or is_linear_operator(other):
        return SPARSE_OPERATOR(symbol, x, other)
    kind: Any = type(other)
    if kind in (list, tuple) and symbol in _ARITHMETIC:
        raise errors.sequence_operand(symbol, x, other)
    only_array = hasattr(kind, "__array__") and not hasattr(kind, _exchanged(symbol))
    if (hasattr(kind, "__dlpack__") or only_array) and not hasattr(kind, "__array_ufunc__"):
        raise errors.other_librarys_array(symbol, x, other)  # PyTorch or JAX arrays, which do not accept x, either
    return NotImplemented


def _exchanged(symbol: str) -> str:
    """Return the name of the other operand's method for an operator."""
    reflected = symbol.startswith("r") and symbol != "rshift"
    return f"__{symbol[1:]}__" if reflected else f"__r{symbol}__"


# -- pandas ------------------------------------------------------------------------------------------------------------


def is_table(x: object) -> bool:
    """Return whether x is a Series, a DataFrame, or another pandas array."""
    return hasattr(x, "__pandas_priority__") and hasattr(x, "to_numpy")


def numbers_of(x: Any) -> NumpyArray | None:
    """Return the values of a Series, a DataFrame, or another pandas array without its index; None for other objects.

    Raises:
        TypeError: not all values are numbers.
    """
    if not is_table(x):
        return None
    values: NumpyArray = x.to_numpy()
    if values.dtype.kind in "fciub":
        return values
    dtypes = f"dtype {x.dtype}" if hasattr(x, "dtype") else f"dtypes {', '.join(sorted(set(map(str, x.dtypes))))}"
    raise TypeError(f"a {type(x).__name__} of {dtypes} is not numeric: {_conversion(str(getattr(x, 'dtype', '')))}")


def _conversion(dtype: str) -> str:
    """Return the advice how to convert a Series of a dtype without numbers ('' for a table)."""
    if dtype == "category":
        return "pd.factorize(x)[0] has a code for each category, pd.get_dummies(x) a column"
    if dtype.startswith(("datetime64", "timedelta64")):
        return f"{'(x - x.min())' if dtype.startswith('datetime') else 'x'} / pd.Timedelta(days=1) is a number of days"
    return (
        "select the numeric columns, or convert with .to_numpy(float), or with .to_numpy(float, na_value=np.nan) where values "
        "are missing"
    )


# -- SciPy -------------------------------------------------------------------------------------------------------------


def is_sparse(x: object) -> bool:
    """Return whether x is a SciPy sparse matrix or array."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(x)


def is_linear_operator(x: object) -> bool:
    """Return whether x is a ``scipy.sparse.linalg.LinearOperator``."""
    linalg = sys.modules.get("scipy.sparse.linalg")
    return linalg is not None and isinstance(x, linalg.LinearOperator)


def reraise_error_caught_by_scipy() -> None:
    """Raise this package's error again if a constructor of ``scipy.sparse`` is handling it: SciPy's own hides the cause."""
    if sys.exception() is not None and sys._getframe(2).f_globals.get("__name__", "").startswith("scipy.sparse."):
        raise  # the exception that SciPy's except clause is handling


def defers_to_operand() -> bool:
    """Return whether an operator of a SciPy sparse matrix or a unyt quantity calls ``__array__``.

    These operators defer to the other operand if ``__array__`` returns no numeric array (see ``no_array``).
    """
    frame = sys._getframe(2)
    if frame.f_code.co_name == "_coerce_iterable_units" and frame.f_back is not None:
        return frame.f_back.f_code.co_name == "__array_ufunc__"
    return frame.f_code.co_name == "_matmul_dispatch" and frame.f_globals.get("__name__", "").startswith(
        "scipy.sparse._"
    )


def caller_rejects_objects() -> bool:
    """Return whether SciPy's distributions or interpolators call ``__array__``.

    Their errors for object arrays do not name the cause.
    """
    frame: FrameType | None = sys._getframe(2)
    name = frame.f_globals.get("__name__", "") if frame is not None else ""
    if name.startswith("scipy.stats._"):
        return "_distn" in name or "_multivariate" in name or "_distribution" in name
    while frame is not None and name.startswith("scipy."):
        if name.startswith("scipy.interpolate."):
            return True
        frame = frame.f_back
        name = frame.f_globals.get("__name__", "") if frame is not None else ""
    return False


def raise_to_defer(name: str) -> None:
    """Raise if pydata/sparse reads ``fill_value`` of an operand of ``coo @ x``, so that it defers to ``x``."""
    if name == "fill_value" and sys._getframe(2).f_code.co_name == "check_zero_fill_value":
        raise NotImplementedError(
            "functions of pydata/sparse do not take tensors: use the operator coo @ x, or pass cr.as_tensor(coo) instead of coo"
        )


def no_array() -> NumpyArray:
    """Return a 0-d object array, as ``np.asarray`` does for an object that is no array."""
    return np.empty((), object)
