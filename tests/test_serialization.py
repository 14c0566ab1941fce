"""save and load: round trips, errors, and untrusted files."""

import io
import json
import os
import pickle
import stat
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import chainrule as torch
from chainrule._src.arrays.safetensors import BadFile

try:
    import safetensors.numpy as official
except ImportError:
    official = None

needs_safetensors = pytest.mark.skipif(official is None, reason="the library safetensors is not installed")
FORMATS = ("npz", pytest.param("safetensors", marks=needs_safetensors))


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    else:
        assert a == b or (a != a and b != b)


def through(obj, kind):
    file = io.BytesIO()
    torch.save(obj, file, format=kind)
    file.seek(0)
    return torch.load(file)


DTYPES = [np.bool_, *map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8"))]
STATE = {
    "layer": {"weight": torch.randn(3, 2), "bias": torch.zeros(2, requires_grad=True)},
    "a.b": torch.ones(1),
    "a": {"b": torch.zeros(1), "": torch.ones(2)},
    "optimizer": {"state": {0: {"step": 3, "lr": 1e-3}, 1: None}, "betas": (0.9, 0.999), "names": ["é", "w\n", True]},
    "nan": float("nan"),
    "z": 1 + 2j,
    "array": np.arange(3),
    "scalar": np.float32(2.5),
    "empty": {},
    "none": [],
    "__chainrule__": torch.ones(1),
    "__metadata__": torch.ones(1),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_everything_comes_back(kind):
    same(through(STATE, kind), STATE)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (5,), (2, 3, 4)])
def test_every_dtype_and_shape(kind, dtype, shape):
    array = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    found = through({"x": torch.from_numpy(array)}, kind)["x"]
    same(found, torch.from_numpy(array))
    found.numpy()[...] = 0  # its memory is writable


def test_complex128_is_for_npz():
    z = {"a": {"z": torch.ones(2, dtype=torch.complex128)}}
    same(through(z, "npz"), z)
    same(through({"d": np.ones(2, np.longdouble)}, "npz"), {"d": np.ones(2, np.longdouble)})
    with pytest.raises(
        TypeError, match=r"'a.z' is complex128, which the safetensors format does not have: save it as .npz"
    ):
        through(z, "safetensors")


@pytest.mark.parametrize("kind", FORMATS)
def test_non_contiguous_and_big_endian(kind):
    x = torch.arange(12.0).reshape(3, 4)
    same(through({"x": x.t(), "y": x[:, ::2], "z": x.flip(0)}, kind), {"x": x.t(), "y": x[:, ::2], "z": x.flip(0)})
    same(through({"x": np.arange(3, dtype=">i4")}, kind)["x"].astype("i4"), np.arange(3, dtype="i4"))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_tensor_that_occurs_twice_is_one(kind):
    w = torch.ones(2)
    found = through({"a": w, "b": [w]}, kind)
    assert found["a"] is found["b"][0]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_tensor_alone_and_a_result(kind):
    x = torch.ones(2, requires_grad=True)
    y = through(x * 2, kind)
    assert y.is_leaf and y.requires_grad and y.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("kind", FORMATS)
def test_paths(tmp_path, kind):
    path = tmp_path / f"m.{kind}"
    torch.save({"w": torch.ones(2)}, path)
    torch.save({"w": torch.zeros(2)}, str(path))
    assert torch.load(path)["w"].tolist() == [0.0, 0.0]
    assert os.listdir(tmp_path) == [path.name]
    assert torch.load(os.fsencode(path), "cpu", weights_only=True)["w"].tolist() == [0.0, 0.0]


def test_a_flat_dictionary_is_a_plain_file(tmp_path):
    flat = {"layer.weight": torch.ones(2, 2), "layer.bias": torch.zeros(2)}
    torch.save(flat, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as found:
        assert sorted(found.files) == sorted(flat)
    np.savez(tmp_path / "n.npz", name=np.ones(2), b=np.zeros(1))
    assert list(torch.load(tmp_path / "n.npz")) == ["name", "b"]
    np.savez_compressed(tmp_path / "o.npz", a=np.ones(100))
    assert torch.load(tmp_path / "o.npz")["a"].sum().item() == 100


@needs_safetensors
def test_a_flat_dictionary_is_a_plain_safetensors_file(tmp_path):
    flat = {"layer.weight": torch.ones(2, 2), "layer.bias": torch.zeros(2)}
    torch.save(flat, tmp_path / "m.safetensors")
    raw = (tmp_path / "m.safetensors").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    assert length % 8 == 0 and set(header) == set(flat)
    assert header["layer.weight"] == {"dtype": "F32", "shape": [2, 2], "data_offsets": [8, 24]}


@needs_safetensors
def test_safetensors_of_earlier_versions():
    """The writers' own format: nesting, text and flags are JSON in its metadata."""
    structure = '{"dict":[["a",{"list":[{"tensor":"a.0","requires_grad":true},{"value":"é"}]}],[3,{"scalar":"3"}]]}'
    header = {"__metadata__": {"__chainrule__": structure}, "3": entry((), (0, 8), "F64"), "a.0": entry((2,), (8, 16))}
    content = raw(header, np.float64(2.5).tobytes() + np.array([1, 2], "<f4").tobytes())
    found = torch.load(io.BytesIO(content))
    same(found, {"a": [torch.tensor([1.0, 2.0], requires_grad=True), "é"], 3: np.float64(2.5)})


def test_without_the_library(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    path = tmp_path / "m.safetensors"
    with pytest.raises(ImportError, match=r"pip install chainrule\[safetensors\]"):
        torch.save({"w": torch.ones(2)}, path)
    assert os.listdir(tmp_path) == []
    path.write_bytes(raw({"w": entry()}, bytes(8)))
    with pytest.raises(ImportError, match=r"pip install chainrule\[safetensors\]"):
        torch.load(path)


@needs_safetensors
def test_the_official_package_agrees(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(True), "c": np.zeros((0, 2), np.int8)}
    torch.save({k: torch.from_numpy(v) for k, v in arrays.items()}, tmp_path / "ours.safetensors")
    found = official.load_file(tmp_path / "ours.safetensors")
    official.save_file(arrays, tmp_path / "theirs.safetensors")
    back = torch.load(tmp_path / "theirs.safetensors")
    for name, array in arrays.items():
        same(found[name], array)
        same(back[name], torch.from_numpy(array))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_failed_save_leaves_the_old_file(tmp_path, kind):
    path = tmp_path / f"m.{kind}"
    torch.save({"w": torch.ones(2)}, path)
    with pytest.raises(TypeError, match=r"obj\['f'\]\[0\] is a function: only tensors"):
        torch.save({"w": torch.zeros(2), "f": [same]}, path)
    bad = {"w\0": torch.ones(1)} if kind == "npz" else {"w": torch.ones(1, dtype=torch.complex128)}
    with pytest.raises((TypeError, ValueError)):
        torch.save(bad, path)
    assert torch.load(path)["w"].tolist() == [1.0, 1.0] and os.listdir(tmp_path) == [path.name]


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_a_replaced_file_keeps_its_mode_and_a_link_its_place(tmp_path):
    path, link = tmp_path / "m.npz", tmp_path / "link.npz"
    torch.save({"w": torch.ones(2)}, path)
    os.chmod(path, 0o640)
    link.symlink_to(path)
    torch.save({"w": torch.zeros(2)}, link)
    assert link.is_symlink() and stat.S_IMODE(os.stat(path).st_mode) == 0o640
    assert torch.load(path)["w"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "obj, error, message",
    [
        ({"a": object()}, TypeError, r"obj\['a'\] is a object"),
        ({1.5: torch.ones(1)}, TypeError, "keys of obj must be text or integers, but one is 1.5"),
        ({True: torch.ones(1)}, TypeError, "keys of obj"),
        ([np.array(["a"])], TypeError, r"obj\[0\] is a ndarray"),
        ({torch}, TypeError, "obj is a set"),
    ],
)
def test_what_cannot_be_saved(obj, error, message):
    with pytest.raises(error, match=message):
        torch.save(obj, io.BytesIO())


def test_what_contains_itself_cannot_be_saved():
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match=r"obj\[0\] contains itself"):
        torch.save(loop, io.BytesIO())


def test_suffixes():
    with pytest.raises(ValueError, match=r"'m.txt' ends in '.txt'"):
        torch.save({}, "m.txt")
    with pytest.raises(ValueError, match=r"numpy.load and from_numpy"):
        torch.load("m.npy")
    for suffix in ("pt", "pth", "pkl"):
        with pytest.raises(ValueError, match=r"Convert it where PyTorch is installed: safetensors.torch.save_file"):
            torch.load(f"m.{suffix}")
        with pytest.raises(ValueError, match=r"Name it m.safetensors, .* or m.npz") as raised:
            torch.save({}, f"m.{suffix}")
        assert "Reading" not in str(raised.value) and not os.path.exists(f"m.{suffix}")
    with pytest.raises(ValueError, match="format must be"):
        torch.save({}, io.BytesIO(), format="pt")
    with pytest.raises(ValueError, match="weights_only=False is not possible"):
        torch.load("m.npz", weights_only=False)
    with pytest.raises(RuntimeError, match="device 'mps' is not available"):
        torch.load("m.npz", map_location="mps")


class Evil:
    def __reduce__(self):
        return (os.mkdir, ("evil",))


def test_nothing_in_a_pickle_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bare = io.BytesIO(pickle.dumps(Evil()))
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Evil()))
    objects = io.BytesIO()
    np.savez(objects, a=np.array([Evil()], object))
    for file in (bare, zipped, objects):
        file.seek(0)
        with pytest.raises(ValueError):
            torch.load(file)
    (tmp_path / "m.npz").write_bytes(zipped.getvalue())
    with pytest.raises(ValueError, match=r"is a pickle, as written by torch.save"):
        torch.load("m.npz")
    assert os.listdir(tmp_path) == ["m.npz"]


def raw(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(shape=(2,), offsets=(0, 8), dtype="F32", **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


@needs_safetensors
@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "header too small"),
        (b"\x02\0\0\0\0\0\0", "header too small"),
        (raw(b"{}", length=3), "header"),
        (raw(b"{}", length=2**63), "header"),
        (raw(b"[]"), "header"),
        (raw(b'{"\xff": 1}'), "header"),
        (raw(b'{"a": '), "JSON"),
        (raw(b'{"a":' * 100_000), "JSON"),
        (raw(b'{"a": NaN}'), "JSON"),
        (raw(b'{"a": 1' + b"0" * 5000 + b"}"), "JSON"),
        (raw(b'{"a": {}, "a": {}}'), "JSON"),
        (raw({"a": 3}), "JSON"),
        (raw({"a": entry(dtype="F33")}, bytes(8)), "F33"),
        (
            raw({"a": entry(dtype="BF16", offsets=(0, 4))}, bytes(4)),
            "dtype 'BF16', which NumPy does not have: convert it to F32",
        ),
        (raw({"a": entry(dtype=["F32"])}, bytes(8)), "JSON"),
        (raw({"a": entry(shape=(-2,))}, bytes(8)), "`-2`"),
        (raw({"a": entry(shape=(2.0,))}, bytes(8)), "`2.0`"),
        (raw({"a": entry(shape=(True, 2))}, bytes(8)), "`true`"),
        (raw({"a": entry(offsets=(8, 0))}, bytes(8)), "tensor `a`"),
        (raw({"a": entry(offsets=(0, 4))}, bytes(4)), "offset for tensor"),
        (raw({"a": entry(offsets=(0, 8, 16))}, bytes(8)), "length 3"),
        (raw({"a": entry()}, bytes(4)), "not fully covered"),
        (raw({"a": entry()}, bytes(12)), "not fully covered"),
        (raw({"a": entry(), "b": entry(offsets=(4, 12))}, bytes(12)), "tensor `b`"),
        (raw({"a": entry(), "b": entry(offsets=(12, 20))}, bytes(20)), "tensor `b`"),
        (raw({"a": entry(), "b": entry()}, bytes(8)), "invalid offset"),
        (raw({"a": entry(shape=(2**62,), offsets=(0, 2**64))}), "expected usize"),
        (raw({"a": entry(shape=(2**63, 0), offsets=(0, 0))}), "dimension"),
        (raw({"a": entry(shape=(2**62, 2**62, 0), offsets=(0, 0))}), "overflow"),
        (raw({"a": entry(shape=(1,) * 65, offsets=(0, 4))}, bytes(4)), "dimension"),
        (raw({"a": entry(dtype="BOOL", offsets=(0, 2))}, b"\1\2"), "'a' has boolean elements other than 0 and 1"),
        (raw({"__metadata__": {"a": 1}}), "expected a string"),
        (raw({"__metadata__": []}), "expected a map"),
        (raw({"__metadata__": {"__chainrule__": "{"}}), "structure is invalid"),
        (raw({"__metadata__": {"__chainrule__": '{"tensor": "b"}'}}), "structure is invalid"),
        (raw({"__metadata__": {"__chainrule__": '{"code": "b"}'}}), "unknown kind 'code'"),
        (raw({"__metadata__": {"__chainrule__": '{"value": []}'}}), "its structure contains an invalid value"),
        (raw({"__metadata__": {"__chainrule__": '{"dict": [[[], {"value": 1}]]}'}}), "the key"),
        (raw({"__metadata__": {"__chainrule__": '{"list":[' * 50_000}}), "structure is invalid"),
    ],
)
def test_bad_safetensors(content, message):
    with pytest.raises(BadFile, match=f"the file is not a valid safetensors file: .*{message}"):
        torch.load(io.BytesIO(content), format="safetensors")


def test_bad_npz(tmp_path):
    path = tmp_path / "m.npz"
    torch.save({"w": torch.ones(200)}, path)
    good = path.read_bytes()
    for content in (b"", b"hello", good[:50], good[:-30], good.replace(b"NUMPY", b"NUMPI")):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"m.npz is not a valid npz file"):
            torch.load(path)
    flipped = bytearray(good)
    flipped[400] ^= 1  # detected by the checksum
    path.write_bytes(bytes(flipped))
    with pytest.raises(ValueError, match="not a valid npz file"):
        torch.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match=r"its entry 'readme.txt' is not an array"):
        torch.load(path)
    np.savez(path, words=np.array(["a"]))
    with pytest.raises(ValueError, match="'words' is an array of <U1"):
        torch.load(path)


@pytest.mark.parametrize(("content", "message"), [
    (b"", "the file is empty, or was read to its end"),
    (b"PQ" + bytes(30), "neither an .npz file, which begins with PK, nor a .safetensors file"),
    (b"text", "neither an .npz file"),
])  # fmt: skip
def test_a_file_of_no_known_format(content, message):
    with pytest.raises(BadFile, match=message):
        torch.load(io.BytesIO(content))


@pytest.mark.parametrize("header", ["(" * 3000, "'", "{", "{'descr': '<f8', 'shape': (1,)}", "\0", "[" * 90 + "]" * 90])
def test_a_header_that_is_none(header):
    with pytest.raises(BadFile, match=r"its entry 'w.npy' has an invalid header"):
        torch.load(_npz(header), format="npz")


def test_compressed_arrays_that_are_damaged():
    file = io.BytesIO()
    np.savez_compressed(file, a=np.arange(1000.0))
    for at in range(60, 200, 7):
        content = bytearray(file.getvalue())
        content[at] ^= 255
        with pytest.raises(BadFile):
            torch.load(io.BytesIO(bytes(content)))


def _npz(header, content=b""):
    """Return an .npz file with one entry and an arbitrary header."""
    text = header.encode() + b" " * (-(len(header) + 11) % 64) + b"\n"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content)
    return file


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(10, 100000000000)", "(3,)", "(1,)"])
def test_no_memory_is_taken_for_more_than_an_npz_can_hold(shape):
    file = _npz(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}", b"\0" * 16)
    with pytest.raises(BadFile, match=r"its entry 'w.npy' is declared as an array of float64 of shape"):
        torch.load(file, format="npz")
    whole = _npz("{'descr': '<f8', 'fortran_order': False, 'shape': (2000000,), }", b"\0" * 16_000_000)
    assert torch.load(whole, format="npz")["w"].shape == (2_000_000,)  # zeros are compressed


@needs_safetensors
def test_shapes_of_many_axes_are_not_multiplied():
    shape = ",".join(["999999999999999999"] * 20_000)
    header = f'{{"a":{{"dtype":"F32","shape":[{shape}],"data_offsets":[0,0]}}}}'.encode()
    with pytest.raises(BadFile):
        torch.load(io.BytesIO(len(header).to_bytes(8, "little") + header), format="safetensors")


@pytest.mark.parametrize("kind", FORMATS)
def test_streams_that_cannot_seek(kind):
    class Pipe(io.RawIOBase):
        def __init__(self, data):
            self.data = io.BytesIO(data)

        def readable(self):
            return True

        def readinto(self, buffer):
            return self.data.readinto(buffer)

    file = io.BytesIO()
    torch.save({"w": torch.ones(2)}, file, format=kind)
    assert torch.load(io.BufferedReader(Pipe(file.getvalue())))["w"].tolist() == [1.0, 1.0]


def test_it_loads_only_when_used():
    code = "import chainrule, sys; print([m for m in sys.modules if m in ('chainrule.serialization', 'zipfile')])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
