"""NumPy's results for ``fabs`` of each dtype, and for indices of 0-d arrays."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr


@pytest.mark.parametrize("dtype", ["?", "i1", "i4", "i8", "u2", "f2", "f4", "f8"])
def test_fabs_gives_floats(dtype):
    x = np.array([1, 0, 3]).astype(dtype)
    found, wanted = np.fabs(cr.Array(x)), np.fabs(x)
    assert found.dtype == wanted.dtype and np.array_equal(found.detach(), wanted)


def test_fabs_is_not_for_complex_numbers():
    with pytest.raises(TypeError):
        np.fabs(cr.Array(np.array([1j])))


@pytest.mark.parametrize("index", [np.array([0, 0]), [0], (0,), (slice(None),), (None, np.array([0]))])
def test_an_array_without_axes_takes_no_index(index):
    with pytest.raises(IndexError):
        np.array(2.0)[index]
    with pytest.raises(IndexError):
        cr.Array(np.array(2.0))[index]
    with pytest.raises(IndexError):
        cr.compile(lambda v: v[0][index])(np.ones(3))
