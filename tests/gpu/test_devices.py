"""Devices: creation of tensors, transfers, and errors for mixed devices. A substitute replaces CuPy."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import chainrule as cr

W = np.array([1.0, 2.0, 3.0])


def test_without_cupy_devices_are_named_and_not_had(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    cr._src.arrays.gpu._import_cupy.cache_clear()
    try:
        assert not cr.cuda.is_available() and cr.cuda.device_count() == 0 and cr.cuda.memory_allocated() == 0
        for ask in (
            lambda: cr.zeros(2, device="cuda"),
            lambda: cr.tensor(1.0).cuda(),
            lambda: cr.tensor(1.0).to("cuda:1"),
            lambda: cr.set_default_device("cuda"),
            lambda: cr.cuda.synchronize(),
        ):
            with pytest.raises(RuntimeError, match=r"computes on the CPU with NumPy.*pip install chainrule\[cuda\]"):
                ask()
    finally:
        cr._src.arrays.gpu._import_cupy.cache_clear()


def test_cupy_is_imported_when_a_gpu_is_asked_for() -> None:
    program = "import sys, chainrule as cr; cr.ones(2, device='cpu').cpu() + 1; assert 'cupy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_tensors_on_a_gpu_are_arrays_of_cupys(cupy: Any) -> None:
    x = cr.tensor(W, device="cuda", requires_grad=True)
    assert (x.device, x.is_cuda, x.is_cpu, x.get_device()) == (cr.device("cuda:0"), True, False, 0)
    assert type(x._raw.payload) is cupy.ndarray
    (x * x).sum().backward()
    assert x.grad.device == x.device
    np.testing.assert_array_equal(x.grad.cpu().numpy(), 2 * W)
    assert repr(cr.tensor([1.0], device="cuda:1")) == "tensor([1.], device='cuda:1')"
    assert repr(x) == "tensor([1., 2., 3.], device='cuda:0', dtype=torch.float64, requires_grad=True)"


def test_a_move_is_differentiable_and_the_gradient_comes_home(cupy: Any) -> None:
    w = cr.tensor(W, requires_grad=True)
    moved = w.to("cuda", cr.float32)
    assert (moved.device, moved.dtype) == (cr.device("cuda", 0), cr.float32)
    (moved.double() ** 3).sum().backward()
    assert w.grad.device == cr.device("cpu") and w.grad.dtype == cr.float64
    np.testing.assert_array_equal(w.grad.numpy(), 3 * W**2)
    x = cr.tensor(W, device="cuda:1", requires_grad=True)
    (g,) = cr.autograd.grad((x.cpu() ** 3).sum(), x, create_graph=True)
    (h,) = cr.autograd.grad(g.sum(), x)
    assert g.device == h.device == cr.device("cuda:1")
    np.testing.assert_array_equal(h.cpu().numpy(), 6 * W)


def test_what_is_there_already_stays(cupy: Any) -> None:
    cpu, x = cr.tensor(W), cr.tensor(W, device="cuda")
    assert cpu.cpu() is cpu and cpu.to("cpu") is cpu and x.cuda() is x and x.to("cuda:0") is x and x.to(x) is x
    assert x.to("cuda", copy=True) is not x
    assert cpu.to(x).device == x.device and x.to(cpu).device == cpu.device
    assert cr.as_tensor(x._raw.payload)._raw.payload is x._raw.payload
    assert cr.as_tensor(x).device == x.device


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_makers_make_on_the_device(cupy: Any, name: str) -> None:
    made = getattr(cr, name)(2, 3, device="cuda:1", requires_grad=True)
    assert made.device == cr.device("cuda:1") and made.shape == (2, 3) and made.is_leaf and made.requires_grad
    like = getattr(cr, name + "_like")(made)
    assert like.device == made.device and like.dtype == made.dtype
    assert getattr(cr, name + "_like")(made, device="cpu").device == cr.device("cpu")


def test_other_makers(cupy: Any) -> None:
    makers = {
        "full": ((2,), 3.0), "eye": (2, 3), "arange": (5,), "linspace": (0, 1, 5), "randint": (0, 5, (4,)), "randperm": (4,),
        "tril_indices": (3, 3), "scalar_tensor": (2.0,), "tensor": ([1, 2],), "as_tensor": (W,), "asarray": (W,),
        "normal": (0.0, 1.0, (3,)),
    }  # fmt: skip
    for name, args in makers.items():
        make = getattr(cr, name)
        there = make(*args, device="cuda")
        here = make(*args)
        assert there.device == cr.device("cuda:0"), name
        assert here.device == cr.device("cpu") and (here.dtype, here.shape) == (there.dtype, there.shape), name
        if "rand" not in name and name != "normal":
            np.testing.assert_array_equal(there.cpu().numpy(), here.numpy())
    x = cr.ones(2, device="cuda")
    for made in (x.new_zeros(3), x.new_full((2,), 1.0), x.new_tensor([1.0]), cr.full_like(x, 2), cr.randint_like(x, 5)):
        assert made.device == x.device


def test_the_default_device(cupy: Any) -> None:
    cr.set_default_device("cuda:1")
    try:
        assert cr.get_default_device() == cr.device("cuda:1")
        assert cr.zeros(2).device == cr.tensor([1.0]).device == cr.rand(2).device == cr.device("cuda:1")
        assert cr.as_tensor(W).device == cr.device("cpu")  # data are not moved
        with cr.device("cpu"):
            assert cr.ones(2).device == cr.device("cpu") == cr.get_default_device()
    finally:
        cr.set_default_device(None)
    with cr.device("cuda"):
        assert cr.arange(3).device == cr.device("cuda:0")
    assert cr.zeros(2).device == cr.device("cpu")


def test_what_cuda_says(cupy: Any) -> None:
    cuda = cr.cuda
    assert cuda.is_available() and cuda.device_count() == 2 and cuda.current_device() == 0
    assert cuda.get_device_name() == "a stand-in, of NumPy" == cuda.get_device_name("cuda:1")
    assert (
        cuda.memory_allocated() == 4096 and cuda.memory_reserved(1) == 8192 and cuda.get_device_capability() == (9, 0)
    )
    cuda.synchronize()
    cuda.empty_cache()
    assert cr.device(1) == cr.device("cuda:1")
    with pytest.raises(RuntimeError, match=r"invalid device ordinal.* there are 2 GPUs"):
        cr.zeros(2, device="cuda:2")
    with pytest.raises(ValueError, match="Expected a cuda device"):
        cuda.memory_allocated("cpu")
    with pytest.raises(RuntimeError, match="'mps' is not available"):
        cr.zeros(2, device="mps")


def test_seeds_reach_the_gpu(cupy: Any) -> None:
    def drawn() -> Any:
        return cr.rand(4, device="cuda").cpu().numpy()

    cr.manual_seed(3)
    first = drawn()
    assert (drawn() != first).all()
    cr.cuda.manual_seed(3)
    np.testing.assert_array_equal(drawn(), first)
    cr.manual_seed(3)
    np.testing.assert_array_equal(drawn(), first)
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator"):
        cr.rand(2, device="cuda", generator=cr.Generator())


def test_devices_do_not_mix(cupy: Any) -> None:
    x, w = cr.tensor(W, device="cuda", requires_grad=True), cr.tensor(W)
    message = r"Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!.*w\.to\('cuda:0'\)"
    for mix in (
        lambda: x * w,
        lambda: w * x,
        lambda: cr.dot(x, w),
        lambda: cr.where(x > 0, x, w),
        lambda: cr.stack([x, w]),
    ):
        with pytest.raises(RuntimeError, match=message):
            mix()
    with pytest.raises(RuntimeError, match=r"as_tensor\(array, device='cuda:0'\)"):
        x * W
    with pytest.raises(RuntimeError, match=r"cuda:0 and cuda:1"):
        x + w.to("cuda:1")
    with pytest.raises(RuntimeError, match="same device"):
        w * cr.tensor(2.0, device="cuda")


def test_numbers_and_cpu_tensors_without_dimensions_mix(cupy: Any) -> None:
    x, s = cr.tensor(W, device="cuda"), cr.tensor(2.0, dtype=cr.float64, requires_grad=True)
    for out in (x * s, s * x, 2 * x, x / 3, cr.where(x > 0, x, s)):
        assert out.device == x.device
    (s * x).sum().backward()
    assert s.grad.device == cr.device("cpu") and s.grad.item() == 6


def test_nothing_becomes_an_array_of_numpys_silently(cupy: Any) -> None:
    x = cr.tensor(W, device="cuda")
    with pytest.raises(TypeError, match="NumPy array silently"):
        np.asarray(x)
    np.testing.assert_array_equal(x.cpu().numpy(), W)
    assert x.sum().item() == 6 and float(x[1]) == 2 and bool(x[0] > 0) and x.tolist() == [1, 2, 3]


def test_places_outside_of_an_axis_are_an_error_on_a_gpu_too(cupy: Any) -> None:
    raw = cupy.asarray(W)
    assert raw[[0, 4]].get().tolist() == [1.0, 2.0]  # to check the test
    x = cr.as_tensor(raw)
    for read in (lambda: x[[0, 4]], lambda: x[cr.tensor([-4])], lambda: cr.take(x, cr.tensor([3], device="cuda"))):
        with pytest.raises(IndexError, match="out of"):
            read()


def test_a_matrix_that_cannot_be_decomposed_is_an_error_on_a_gpu_too(cupy: Any) -> None:
    matrix = cupy.asarray(-np.eye(2))
    assert np.isnan(cupy.linalg.cholesky(matrix).get()).all()
    with pytest.raises(cr.linalg.LinAlgError):
        cr.linalg.cholesky(cr.as_tensor(matrix))


def test_functions_of_cupy_arrays_give_cupy_arrays(cupy: Any) -> None:
    x = cupy.asarray(W)
    value, gradient = cr.value_and_grad(lambda v: np.sum(np.sin(v) ** 2))(x)
    assert type(gradient) is cupy.ndarray
    np.testing.assert_allclose(gradient.get(), np.sin(2 * W))
    np.testing.assert_allclose(float(value), np.sum(np.sin(W) ** 2))


def test_indices_masks_and_writing_in_place(cupy: Any) -> None:
    x = cr.tensor([1.0, -2.0, 3.0], device="cuda", requires_grad=True)
    (x[x > 0] ** 2).sum().backward()
    assert x.grad.tolist() == [2, 0, 6]
    for index in (cr.tensor([0, 2]), cr.tensor([0, 2], device="cuda"), np.array([0, 2])):
        assert x[index].tolist() == [1, 3]
    y = x.detach().clone()
    y[0] = 5
    y[y < 0] = 0
    y.add_(1)
    assert y.tolist() == [6, 1, 4] and y.device == x.device
    y.copy_(cr.tensor([7.0, 8.0, 9.0]))  # from the CPU, as in PyTorch
    assert y.tolist() == [7, 8, 9] and y.is_cuda


def test_transformations_modules_and_copies(cupy: Any) -> None:
    x = cr.tensor(W, device="cuda")
    assert cr.func.vmap(lambda v: (v * v).sum())(cr.ones(3, 2, device="cuda")).tolist() == [2, 2, 2]
    jacobian, hessian = cr.func.jacrev(lambda v: v**2)(x), cr.func.hessian(lambda v: (v**3).sum())(x)
    np.testing.assert_allclose(jacobian.cpu().numpy(), np.diag(2 * W))
    np.testing.assert_allclose(hessian.cpu().numpy(), np.diag(6 * W))
    layer = cr.nn.Linear(3, 2).to("cuda")
    assert layer(x.float()).device == layer.weight.device == x.device
    for same in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert same.device == x.device and same.tolist() == x.tolist()


def test_files_hold_numbers_and_come_to_a_device(cupy: Any) -> None:
    file = io.BytesIO()
    cr.save({"w": cr.tensor(W, device="cuda")}, file)
    for where, device in ((None, "cpu"), ("cpu", "cpu"), ("cuda:1", "cuda:1")):
        file.seek(0)
        found = cr.load(file, map_location=where)["w"]
        assert found.device == cr.device(device) and found.tolist() == W.tolist()
