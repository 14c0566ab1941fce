"""Comparison operators of Arrays give what NumPy gives, for operands of all types."""

import operator

import numpy as np
import pytest

import chainrule as cr

ARRAYS = [
    np.array([1.0, np.nan, -0.0, 3.0]),
    np.array([1, 2, 3, 4]),
    np.array([True, False, True, True]),
    np.array(2.0),
    np.array([[1.0], [2.0]]),
    np.array([1 + 1j, 2, 3, 4]),
    np.array([1, 2], np.float32),
    np.array([1, 2, 3, 4], np.uint8),
    np.arange(8.0)[::2],
]
OTHERS = [1, 2.5, True, np.float64(1.0), np.float32(2), np.int8(3), [1, 2, 3, 4], None, "a", 2**70, 1j]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("reflected", [False, True])
def test_comparisons_are_those_of_numpy(compare, as_array, reflected):
    for x in ARRAYS:
        for y in ARRAYS + OTHERS:
            plain, wrapped = [x, y], [cr.Array(x), cr.Array(y) if as_array and isinstance(y, np.ndarray) else y]
            if reflected:
                plain, wrapped = plain[::-1], wrapped[::-1]
            try:
                expected = np.asarray(compare(*plain))
            except (TypeError, ValueError, OverflowError):
                with pytest.raises((TypeError, ValueError, OverflowError)):
                    compare(*wrapped)
                continue
            found = np.asarray(compare(*wrapped))
            assert found.dtype == expected.dtype and found.shape == expected.shape
            np.testing.assert_array_equal(found, expected)


def test_a_comparison_names_itself_where_a_derivative_is_lost():
    x = cr.Array([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="gt"):
        (x > 1.5).astype(float).sum().tensor.backward()
