"""Export and import of GPU memory by DLPack. A substitute replaces CuPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

W = np.array([1.0, 2.0, 3.0])


class Producer:
    """An array of another library on a GPU, which records the request."""

    def __init__(self, array: Any, device: tuple[int, int] | None = None) -> None:
        self.array, self.device, self.asked = array, device, {}

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device or self.array.__dlpack_device__()

    def __dlpack__(self, **asked: Any) -> Any:
        self.asked = asked
        return self.array.__dlpack__(**asked)


def test_cupy_reads_the_memory_of_a_tensor(cupy: Any) -> None:
    t = cr.tensor(W, device="cuda:1")
    assert t.__dlpack_device__() == (2, 1)
    x = cupy.from_dlpack(t)
    x[0] = 5
    assert t[0].item() == 5 and x.device.id == 1
    assert t.cpu().__dlpack_device__() == (1, 0)


def test_a_tensor_has_the_memory_of_anothers_array(cupy: Any) -> None:
    x = Producer(cupy.asarray(W))
    t = cr.from_dlpack(x)
    assert t.device == cr.device("cuda:0") and "stream" in x.asked  # the consumer, CuPy, passes its stream
    x.array[0] = 5
    assert t[0].item() == 5
    apart = cr.from_dlpack(x, copy=True)
    x.array[0] = 6
    assert apart[0].item() == 5
    again = cr.from_dlpack(t.requires_grad_().detach())
    assert again.device == t.device


def test_the_consumers_stream_is_handed_on(cupy: Any) -> None:
    capsule = cr.tensor(W, device="cuda").__dlpack__(stream=7, max_version=(1, 0))
    assert capsule.stream == 7
    with pytest.raises(ValueError, match="valid stream"):
        cr.tensor(W, device="cuda").__dlpack__(stream=-3)
    with pytest.raises(BufferError, match="in no stream"):
        cr.tensor(W).__dlpack__(stream=7)


def test_what_needs_a_copy(cupy: Any) -> None:
    x = cupy.asarray(W)
    assert cr.from_dlpack(x, device="cpu").device == cr.device("cpu")
    with pytest.raises(BufferError, match="without a copy"):
        cr.from_dlpack(x, device="cpu", copy=False)
    assert cr.from_dlpack(W, device="cuda").device == cr.device("cuda:0")
    host = np.from_dlpack(cr.tensor(W, device="cuda"), device="cpu") if np.__version__ >= "2.1" else W
    np.testing.assert_array_equal(host, W)


def test_a_derivative_stays_in_the_tensor(cupy: Any) -> None:
    t = cr.tensor(W, device="cuda", requires_grad=True)
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        cupy.from_dlpack(t)


def test_memory_that_cupy_does_not_read(cupy: Any) -> None:
    with pytest.raises(BufferError, match=r"DLPack's device \(10, 0\)"):
        cr.from_dlpack(Producer(cupy.asarray(W), (10, 0)))  # ROCm's
