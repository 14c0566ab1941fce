"""Keywords of functions that create tensors, devices, and attributes and settings that programs read or create."""

from __future__ import annotations

import numpy as np
import pytest

from behaviour import OURS, torch

X = torch.ones(2, 3)
SIZE = (2, 3)
MAKERS = {
    "zeros": {"size": SIZE},
    "ones": {"size": SIZE},
    "empty": {"size": SIZE},
    "full": {"size": SIZE, "fill_value": 2.0},
    "rand": {"size": SIZE},
    "randn": {"size": SIZE},
    "randint": {"high": 5, "size": SIZE},
    "randperm": {"n": 4},
    "arange": {"end": 3},
    "linspace": {"start": 0, "end": 1, "steps": 3},
    "eye": {"n": 3},
    "zeros_like": {"input": X},
    "full_like": {"input": X, "fill_value": 2.0},
    "rand_like": {"input": X},
    "randint_like": {"input": X, "high": 5},
    "normal": {"mean": 0.0, "std": 1.0, "size": SIZE},
    "scalar_tensor": {"s": 1.0},
    "tril_indices": {"row": 3, "col": 3},
    "hann_window": {"window_length": 4},
    "kaiser_window": {"window_length": 4, "periodic": False, "beta": 3.0},
}


@pytest.mark.parametrize("name", MAKERS)
def test_placement(name):
    make = getattr(torch, name)
    dtype = torch.int64 if name in ("randint", "randperm", "tril_indices") else torch.float64
    for device in ("cpu", torch.device("cpu"), None):
        out = make(**MAKERS[name], dtype=dtype, device=device, layout=torch.strided, pin_memory=False)
        assert out.dtype == dtype and out.layout is torch.strided and out.device == torch.device("cpu")
    with pytest.raises((RuntimeError, AssertionError), match=r"not available|CUDA"):
        make(**MAKERS[name], device="cuda")
    if name.endswith("_like"):
        make(**MAKERS[name], memory_format=torch.preserve_format)


@pytest.mark.parametrize("name", ["new_zeros", "new_ones", "new_empty"])
def test_new(name):
    assert getattr(X, name)(size=(4,), device="cpu", layout=torch.strided).shape == (4,)
    assert X.new(2, 5).shape == (2, 5) and X.new([1, 2]).dtype == X.dtype and X.new().shape == (0,)
    with pytest.raises((RuntimeError, AssertionError)):
        getattr(X, name)(2, device="cuda")


def test_memory_formats():
    assert X.clone(memory_format=torch.preserve_format).shape == SIZE
    assert X.contiguous(memory_format=torch.contiguous_format) is X
    assert X.is_contiguous(memory_format=torch.contiguous_format)
    assert str(torch.contiguous_format) == "torch.contiguous_format" and repr(X.layout) == "torch.strided"
    assert isinstance(torch.contiguous_format, torch.memory_format)


def test_devices_are_named_before_they_are_used():
    assert torch.device("cuda", 1).index == 1 and torch.device("cuda:1").type == "cuda"
    assert torch.device("mps") != torch.device("cpu")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        torch.device("gpu")


def test_attributes():
    assert X.is_cpu and not (X.is_cuda or X.is_meta or X.is_mps or X.is_quantized or X.is_nested or X.is_sparse_csr)
    assert X.get_device() == -1 and X.is_signed() and not X.byte().is_signed() and X.name is None
    assert X.is_same_size(X + 1) and not torch.is_same_size(X, X[0]) and not X.is_pinned() and not X.is_shared()
    assert not torch.is_inference(X) and not torch.is_conj(X) and not torch.is_neg(X) and torch.newaxis is None
    assert torch.resolve_conj(X) is X and X.resolve_neg() is X
    assert not torch.detach(X.clone().requires_grad_()).requires_grad
    assert X.type("torch.DoubleTensor").dtype == torch.float64


def test_settings():
    torch.set_default_device("cpu")
    assert torch.get_default_device() == torch.device("cpu")
    torch.set_float32_matmul_precision("highest")
    assert torch.get_float32_matmul_precision() == "highest"
    torch.use_deterministic_algorithms(True)
    assert torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    torch.set_default_tensor_type(torch.DoubleTensor)
    assert torch.get_default_dtype() == torch.float64
    torch.set_default_tensor_type("torch.FloatTensor")
    assert torch.get_default_dtype() == torch.float32
    with pytest.raises((RuntimeError, TypeError)):
        torch.set_default_tensor_type(torch.LongTensor)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    assert torch.get_num_threads() == threads + 1
    torch.set_num_threads(threads)
    for count in (0, -1):
        with pytest.raises(RuntimeError, match="positive integer"):
            torch.set_num_threads(count)
    torch.backends.cudnn.benchmark = False
    torch.cuda.manual_seed_all(0)
    torch.cuda.empty_cache()
    assert not torch.cuda.is_initialized() and torch.cuda.memory_allocated() == 0


@pytest.mark.skipif(not OURS, reason="about what is not here")
def test_settings_that_cannot_hold():
    with pytest.raises(RuntimeError, match="not available"):
        torch.set_default_device("cuda")
    with pytest.raises(RuntimeError, match="not available"), torch.device("cuda"):
        pass


def test_memory_of_others():
    buffer = bytearray(b"\0" * 8)
    x = torch.frombuffer(buffer, dtype=torch.float32)
    x[0] = 1.0
    assert buffer[:4] == b"\0\0\x80?" and torch.frombuffer(buffer, dtype=torch.uint8, offset=3, count=1).item() == 63
    y = torch.from_dlpack(x)
    y[1] = 2.0
    assert x.tolist() == [1.0, 2.0] == np.from_dlpack(x).tolist()


def test_in_place_functions():
    x = torch.tensor([-1.0, 2.0])
    assert torch.relu_(x) is x and x.tolist() == [0.0, 2.0]
    assert torch.clamp_(x, 0, 1).tolist() == [0.0, 1.0] and torch.fill_(x, 3).tolist() == [3.0, 3.0]
    assert torch.nn.functional.elu_(x.neg_()) is x
    assert x.resize_(1, 2).shape == (1, 2) and x.as_strided_((2,), (1,)).shape == (2,)
    assert torch.zeros(5).set_(x).tolist() == x.tolist()
    for change in (lambda w: w.set_(x), lambda w: w.resize_(1)):
        with pytest.raises(RuntimeError, match=r"requires? grad"):
            change(torch.ones(1, requires_grad=True))


@pytest.mark.skipif(not OURS, reason="PyTorch makes memory longer")
def test_memory_has_its_size():
    with pytest.raises(RuntimeError, match=r"shape \(2,\) has another number of elements than \(3,\)"):
        torch.ones(2).resize_(3)


def test_functions_that_are_in_nn_functional_too():
    x = torch.tensor([[-1.0, 2.0]], requires_grad=True)
    weight = torch.tensor([0.5])
    assert torch.prelu(x, weight).tolist() == x.prelu(weight).tolist() == [[-0.5, 2.0]]
    assert x.hardshrink(1.5).tolist() == torch.hardshrink(x, 1.5).tolist() == [[0.0, 2.0]]
    assert torch.layer_norm(x, (2,)).shape == torch.selu(x).shape == (1, 2)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.float64(1.5), torch.float32),
        (np.float32(1.5), torch.float32),
        (np.int32(2), torch.int64),
        (np.complex128(1j), torch.complex64),
        (torch.tensor(1.5, dtype=torch.float64), torch.float32),
        (torch.tensor(2, dtype=torch.int32), torch.int64),
        (1.5, torch.float32),
        (True, torch.bool),
    ],
)
def test_full_has_the_default_dtype_of_the_kind(value, dtype):
    filled = torch.full((2,), value)
    assert filled.dtype == dtype and filled.tolist() == [value, value]
    assert torch.full((2,), value, dtype=torch.complex128).dtype == torch.complex128


def test_the_type_of_tensors_is_the_default_one():
    mask = torch.ones(2) > 0
    for kind in (torch.Tensor, "torch.FloatTensor", torch.FloatTensor):
        assert mask.type(kind).dtype == torch.float32
    assert torch.ones(2, dtype=torch.float64).type(torch.Tensor).dtype == torch.float32
