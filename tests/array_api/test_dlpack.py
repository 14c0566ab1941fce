"""DLPack in both directions: memory shared with NumPy, PyTorch and JAX, and memory that must not be shared."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import chainrule as cr

FACES = {"array": cr.Array, "tensor": lambda data: cr.tensor(np.asarray(data))}
both = pytest.mark.parametrize("make", FACES.values(), ids=FACES)
versioned = pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="NumPy 2.1 knows DLPack 1")


class Exporter:
    """An array of a library that supports DLPack, of a version or none, and no other protocol of NumPy."""

    def __init__(self, array, device=(1, 0), versions=True):
        self.array, self.device, self.versions = array, device, versions

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options) if self.versions else self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.device


class Old:
    """A consumer that predates DLPack 1 reads a tensor like this."""

    def __init__(self, x, **options):
        self.capsule = x.__dlpack__(**options)

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


@both
def test_numpy_takes_the_memory(make):
    x = make([1.0, 2.0])
    array = np.from_dlpack(x)
    assert array.tolist() == [1.0, 2.0] and x.__dlpack_device__() == (1, 0)
    memory = x._tensor._raw if isinstance(x, cr.Array) else x.numpy()
    assert np.shares_memory(array, memory) and np.shares_memory(np.from_dlpack(Old(x)), memory)


@both
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i1", "i8", "u1", "?"])
def test_dtypes_and_layouts(make, dtype):
    values = np.arange(12).reshape(3, 4).astype(dtype)
    for part in (values, values.T, values[::2, 1:], values[:0], values[1, 2, ...]):
        x = make(part)
        back = np.from_dlpack(x)
        assert back.dtype == values.dtype and np.array_equal(back, part)
        assert np.array_equal(cr.from_dlpack(x).numpy(), part) and np.array_equal(
            cr.from_dlpack(part.copy()).numpy(), part
        )


@both
def test_a_derivative_cannot_be_exported(make):
    x = make([1.0, 2.0])
    x.requires_grad = True
    for export in (lambda: x.__dlpack__(), lambda: np.from_dlpack(x), lambda: cr.from_dlpack(x * 2)):
        with pytest.raises(BufferError, match=r"Can't export tensors that require gradient, use tensor\.detach\(\)"):
            export()
    assert np.from_dlpack(x.detach()).tolist() == [1.0, 2.0]
    if isinstance(x, cr.Tensor):
        with pytest.raises(BufferError, match=r"np\.from_dlpack\(x\.detach\(\)\)"):
            np.from_dlpack(x)


def test_inside_a_transformation():
    for transform in (lambda f: cr.jvp(f, (np.ones(2),), (np.ones(2),)), lambda f: cr.grad(f)(np.ones(2))):
        with pytest.raises(BufferError, match="require gradient"):
            transform(lambda x: np.from_dlpack(x).sum())
    with pytest.raises(RuntimeError, match="vmap"):
        cr.vmap(lambda x: np.from_dlpack(x).sum())(np.ones((2, 2)))


@versioned
@both
def test_copies_are_made_only_where_they_must(make):
    x = make([1.0, 2.0])
    memory = np.from_dlpack(x)
    assert not np.shares_memory(np.from_dlpack(x, copy=True), memory)
    assert np.shares_memory(np.from_dlpack(x, copy=False, device="cpu"), memory)
    assert not np.shares_memory(np.from_dlpack(Old(x, copy=True)), memory)


@versioned
def test_memory_that_may_not_be_written():
    fixed = np.array([1.0, 2.0])
    fixed.flags.writeable = False
    x = cr.from_numpy(fixed)
    told = np.from_dlpack(x)
    assert np.shares_memory(told, fixed) and not told.flags.writeable
    assert not np.shares_memory(np.from_dlpack(Old(x)), fixed)  # a consumer that cannot be told gets a copy
    with pytest.raises(BufferError, match="readonly"):
        x.__dlpack__(copy=False)


def test_what_cannot_be_asked_for():
    x = cr.tensor([1.0])
    with pytest.raises(BufferError, match=r"device \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="stream"):
        x.__dlpack__(stream=1)
    assert x.__dlpack__(dl_device=(1, 0), max_version=(1, 0)) is not None


@versioned
def test_from_another_library():
    array = np.array([1.0, 2.0])
    x = cr.from_dlpack(Exporter(array))
    x.add_(1)
    assert array.tolist() == [2.0, 3.0] and type(x) is cr.Tensor
    old = cr.from_dlpack(Exporter(array, versions=False))
    assert np.shares_memory(old.numpy(), array)
    with pytest.raises(
        RuntimeError, match="read-only"
    ):  # the protocol could not express whether its memory is writable
        old.add_(1)
    for versions in (True, False):
        cr.from_dlpack(Exporter(array, versions=versions), copy=True).add_(1)
    assert array.tolist() == [2.0, 3.0]
    assert type(cr.array_api.from_dlpack(Exporter(array))) is cr.Array
    assert cr.tensor(Exporter(array)).tolist() == [2.0, 3.0]


def test_from_what_has_no_such_memory():
    with pytest.raises(TypeError, match="takes an array with __dlpack__, not list"):
        cr.from_dlpack([1.0])
    with pytest.raises(BufferError, match=r"Exporter is on DLPack's device \(2, 0\).*x\.cpu\(\)"):
        cr.from_dlpack(Exporter(np.ones(2), device=(2, 0)))
    with pytest.raises(RuntimeError, match="cuda"):
        cr.from_dlpack(np.ones(2), device="cuda")


@both
def test_an_operator_beside_another_librarys_array(make):
    x, y = make([1.0, 2.0]), Exporter(np.ones(2))
    for operation in (operator.add, operator.sub, operator.truediv, operator.matmul, operator.eq, operator.lt):
        for a, b in ((x, y), (y, x)):
            with pytest.raises(TypeError, match=r"unsupported operand type.*Exporter'.*from_dlpack\(y\), which shares"):
                operation(a, b)
    with pytest.raises(TypeError, match=r"must be Tensor, not .*Exporter \(chainrule\.from_dlpack\(x\) converts it\)"):
        cr.add(x, y)


@pytest.mark.oracle
@both
def test_pytorch(make):
    torch = pytest.importorskip("torch")
    x = make([[1.0, 2.0], [3.0, 4.0]])
    for take in (torch.tensor, torch.as_tensor, torch.asarray, torch.from_dlpack):
        assert take(x).tolist() == [[1.0, 2.0], [3.0, 4.0]] and take(x).dtype == torch.float64
    shared = torch.from_dlpack(x)
    shared.add_(1)
    assert np.from_dlpack(x).tolist() == [[2.0, 3.0], [4.0, 5.0]]
    back = cr.from_dlpack(shared)
    back.add_(1)
    assert shared.tolist() == [[3.0, 4.0], [5.0, 6.0]] and cr.tensor(shared).tolist() == shared.tolist()
    with pytest.raises(BufferError, match="require grad"):
        cr.from_dlpack(shared.clone().requires_grad_())
    with pytest.raises(TypeError, match=r"'torch\.Tensor'.*from_dlpack"):
        x * shared
    x.requires_grad = True
    for take in (torch.tensor, torch.asarray, torch.from_dlpack):
        with pytest.raises(BufferError, match="require grad"):
            take(x)


@pytest.mark.oracle
@both
def test_jax(make):
    jnp = pytest.importorskip("jax.numpy")
    x = make(np.array([1.0, 2.0], np.float32))
    for take in (jnp.asarray, jnp.array, jnp.from_dlpack):
        assert take(x).tolist() == [1.0, 2.0]
    back = cr.from_dlpack(jnp.asarray([1.0, 2.0]))  # memory of JAX is read-only
    assert back.tolist() == [1.0, 2.0] and (back * 2).tolist() == [2.0, 4.0]


def test_an_array_that_is_no_memory():
    da = pytest.importorskip("dask.array")
    x = cr.as_tensor(da.ones((4, 3), chunks=2))
    for ask in (x.__dlpack__, x.__dlpack_device__, lambda: np.from_dlpack(cr.Array(x))):
        with pytest.raises(BufferError, match=r"dask\.Array of shape \(4, 3\) has no memory.*\.compute\(\)"):
            ask()


def test_the_numbers_under_a_mask_are_not_taken():
    with pytest.raises(TypeError, match="masked"):
        cr.from_dlpack(np.ma.masked_array([1.0, 2.0], [True, False]))
