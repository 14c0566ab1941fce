"""DLPack and the Array API on a GPU. A substitute replaces CuPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

VALUES = np.array([1.0, 2.0, 3.0])


def test_memory_of_a_gpu_is_cupys_to_hand_over(cupy: Any) -> None:
    x = cr.tensor(VALUES, device="cuda")
    assert x.__dlpack_device__() == (2, 0) == cr.Array(x).__dlpack_device__()
    taken = cupy.from_dlpack(x)
    taken[0] = 7.0
    assert x.cpu().tolist() == [7.0, 2.0, 3.0]
    with pytest.raises(BufferError, match="require gradient"):
        x.clone().requires_grad_().__dlpack__()


def test_memory_of_a_gpu_is_taken_by_cupy(cupy: Any) -> None:
    array = cupy.asarray(VALUES)
    x = cr.from_dlpack(array)
    assert x.device == cr.device("cuda:0")
    array[0] = 7.0
    apart = cr.from_dlpack(array, copy=True)
    array[1] = 8.0
    assert x.cpu().tolist() == [7.0, 8.0, 3.0] and apart.cpu().tolist() == [7.0, 2.0, 3.0]
    assert cr.from_dlpack(array, device="cpu").device == cr.device("cpu")


def test_the_array_api_makes_and_moves_arrays(cupy: Any) -> None:
    xp = cr.array_api
    x = xp.asarray(VALUES, device="cuda")
    assert x.device == "cuda:0" == xp.zeros(3, device="cuda").device == xp.zeros_like(x).device
    assert x.to_device("cpu").device == "cpu" and x.to_device("cuda:0") is x
    assert type(xp.exp(x).tensor._raw.payload) is cupy.ndarray
    assert xp.__array_namespace_info__().devices()[:2] == ["cpu", "cuda:0"]
    w = cr.Array(VALUES, requires_grad=True)
    xp.sum(xp.square(w.to_device("cuda"))).backward()
    assert w.grad.tolist() == [2.0, 4.0, 6.0]
