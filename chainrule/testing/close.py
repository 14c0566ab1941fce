"""``assert_close``: compare tensors up to rounding, with an error message that reports the differences."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, NumpyArray, NumpyDType
from chainrule._src.ops import creation
from chainrule._src.tape.tensor import Tensor

#: (rtol, atol) by dtype; values of other dtypes must be equal.
TOLERANCES: dict[NumpyDType, tuple[float, float]] = {
    np.dtype(np.float16): (1e-3, 1e-5),
    np.dtype(np.float32): (1.3e-6, 1e-5),
    np.dtype(np.float64): (1e-7, 1e-7),
    np.dtype(np.complex64): (1.3e-6, 1e-5),
    np.dtype(np.complex128): (1e-7, 1e-7),
}


_BOOLS = (bool, np.bool_)


def default_tolerances(*dtypes: NumpyDType) -> tuple[float, float]:
    """Return the widest default (rtol, atol) of the dtypes."""
    pairs = [TOLERANCES.get(np.dtype(dtype), (0.0, 0.0)) for dtype in dtypes]
    return max(rtol for rtol, _ in pairs), max(atol for _, atol in pairs)


def assert_close(
    actual: object,
    expected: object,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that ``actual`` and ``expected`` are close: |actual − expected| ≤ atol + rtol·|expected| everywhere.

    Args:
        actual, expected: tensors, arrays or numbers, or sequences or mappings of them, compared item by item.
        allow_subclasses: allow different types if one is a subclass of the other.
        rtol, atol: give both or neither; the defaults depend on the dtype (1.3e-6 and 1e-5 for float32, 1e-7 both for
            float64).
        equal_nan: treat nan as equal to nan.
        check_dtype: require equal dtypes; otherwise both are promoted first.
        check_device, check_layout: accepted as in PyTorch; there is only one device and one layout.
        check_stride: require equal strides.
        msg: the error message, or a function that creates it from the default message.

    Raises:
        AssertionError: the values are not close, or differ in shape, dtype, length or keys.
        TypeError: the values cannot be compared.
        ValueError: only one of ``rtol`` and ``atol`` was given.

    >>> import chainrule as cr
    >>> from chainrule.testing import assert_close
    >>> assert_close(cr.tensor([1., 2.]), cr.tensor([1., 2.000001]))
    """
    if (rtol is None) is not (atol is None):
        raise ValueError(
            "Both 'rtol' and 'atol' must be either specified or omitted, "
            f"but got no {'rtol' if rtol is None else 'atol'}."
        )
    problem = _compare(actual, expected, "", (allow_subclasses, rtol, atol, equal_nan, check_dtype, check_stride))
    if problem is not None:
        raise AssertionError(problem if msg is None else msg(problem) if callable(msg) else msg)


#: The default (rtol, atol) of :func:`assert_allclose`.
_WIDER = {np.dtype(np.float16): (1e-3, 1e-3), np.dtype(np.float32): (1e-4, 1e-5), np.dtype(np.float64): (1e-5, 1e-8)}


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = ""
) -> None:  # fmt: skip
    """Assert closeness with wider tolerances (float64: 1e-5, 1e-8), equal nans, and without a check of dtypes.

    Deprecated in PyTorch: use :func:`assert_close`.
    """
    actual = actual if isinstance(actual, Tensor) else creation.tensor(actual)
    expected = expected if isinstance(expected, Tensor) else creation.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = [_WIDER.get(np.dtype(x.dtype), default_tolerances(x.dtype)) for x in (actual, expected)]
        rtol, atol = max(r for r, _ in pairs), max(a for _, a in pairs)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _compare(actual: Any, expected: Any, where: str, options: tuple[object, ...]) -> str | None:
    """Return a description of the mismatch, or None."""
    location = f"\n\nThe failure occurred for item {where}" if where else ""
    if _both(actual, expected, Sequence) and not isinstance(actual, str):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{location}"
        problems = (_compare(a, e, f"{where}[{i}]", options) for i, (a, e) in enumerate(zip(actual, expected)))
        return next((p for p in problems if p is not None), None)
    if _both(actual, expected, Mapping):
        if set(actual) != set(expected):
            missing, extra = sorted(set(expected) - set(actual), key=str), sorted(set(actual) - set(expected), key=str)
            return (
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {extra}{location}"
            )
        problems = (_compare(actual[key], expected[key], f"{where}[{key!r}]", options) for key in actual)
        return next((p for p in problems if p is not None), None)
    if actual is None or expected is None:
        return None if actual is expected else f"None mismatch: {actual} is not {expected}{location}"
    if isinstance(actual, _BOOLS) and isinstance(expected, _BOOLS):
        return None if actual == expected else f"Booleans mismatch: {actual} is not {expected}{location}"
    try:
        problem = _compare_arrays(actual, expected, options)
    except TypeError as error:
        raise TypeError(f"{error}{location}") from None
    return None if problem is None else problem + location


def _both(actual: AnyArray, expected: AnyArray, kind: type) -> bool:
    return isinstance(actual, kind) and isinstance(expected, kind)


def _compare_arrays(actual: Any, expected: Any, options: tuple[Any, ...]) -> str | None:
    allow_subclasses, rtol, atol, equal_nan, check_dtype, check_stride = options
    number = all(isinstance(x, numbers.Number) for x in (actual, expected))
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if not number and (not related or (not allow_subclasses and type(actual) is not type(expected))):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")
    if number and check_dtype and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual)} != {type(expected)}."
    a, e = _array(actual), _array(expected)
    what = "Scalars" if number or not a.ndim else "Tensor-likes"
    if a.shape != e.shape:
        return f"The values for attribute 'shape' do not match: {_size(a)} != {_size(e)}."
    if check_dtype and not number and a.dtype != e.dtype:
        return f"The values for attribute 'dtype' do not match: torch.{a.dtype.name} != torch.{e.dtype.name}."
    if check_stride and a.strides != e.strides:
        steps = [tuple(n // x.itemsize for n in x.strides) for x in (a, e)]
        return f"The values for attribute 'stride()' do not match: {steps[0]} != {steps[1]}."
    if rtol is None:
        rtol, atol = default_tolerances(a.dtype, e.dtype)
    return _difference(a, e, rtol, atol, equal_nan, what)


def _array(x: Tensor) -> NumpyArray:
    array = x._array() if isinstance(x, Tensor) else np.asarray(x)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(x)} and {type(x)}.")
    return array


def _size(x: AnyArray) -> str:
    return f"torch.Size({list(x.shape)})"


def _difference(a: NumpyArray, e: NumpyArray, rtol: float, atol: float, equal_nan: bool, what: str) -> str | None:
    """Return the differences between two arrays of equal shape as text; None if they are close."""
    common = np.promote_types(a.dtype, e.dtype)
    wide = np.complex128 if common.kind == "c" else np.float64
    exact = common.kind in "biu"
    x, y = (a.astype(common), e.astype(common)) if exact else (a.astype(wide), e.astype(wide))
    with np.errstate(all="ignore"):
        if exact:  # unsigned differences do not overflow
            error = np.maximum(x, y).astype(np.uint64) - np.minimum(x, y).astype(np.uint64)
        else:
            error = np.absolute(x - y)
        same = x == y
        close = same | (np.isfinite(y) & (error <= atol + rtol * np.absolute(y).astype(np.float64)))
        if equal_nan:
            close |= np.isnan(x) & np.isnan(y)
        if close.all():
            return None
        error = np.where(close, np.zeros_like(error), error)
        relative = np.where(close, 0.0, error / np.absolute(y).astype(np.float64))
    adjective = "equal" if rtol == atol == 0 else "close"
    allowed = ("", "") if adjective == "equal" else (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")
    if what == "Scalars":
        return (
            f"{what} are not {adjective}!\n\nExpected {e.item()} but got {a.item()}.\n"
            f"Absolute difference: {int(error.flat[0]) if exact else float(error.flat[0])}{allowed[0]}\n"
            f"Relative difference: {float(relative.flat[0])}{allowed[1]}"
        )
    wrong, total = int((~close).sum()), a.size
    return (
        f"{what} are not {adjective}!\n\nMismatched elements: {wrong} / {total} ({100 * wrong / total:.1f}%)\n"
        f"Greatest absolute difference: {_greatest(error, exact)}{allowed[0]}\n"
        f"Greatest relative difference: {_greatest(relative)}{allowed[1]}"
    )


def _greatest(error: NumpyArray, exact: bool = False) -> str:
    index = tuple(int(i) for i in np.unravel_index(int(error.argmax()), error.shape))  # (argmax prefers nan)
    return f"{int(error[index]) if exact else float(error[index])} at index {index}"
