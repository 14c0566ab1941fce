"""``save`` and ``load`` for tensors, in files that contain only data.

PyTorch's files are pickles, which can run arbitrary code when they are read. ``save`` writes ``.npz`` (NumPy's zipped
arrays) or ``.safetensors`` (see ``arrays/safetensors.py``), which other libraries can read, too. Tensors are stored under
dotted names (``{"layer": {"weight": w}}`` as ``layer.weight``). Other information (nesting, numbers, ``requires_grad``)
is stored as JSON in the same file.
"""

from __future__ import annotations

import io
import json
import math
import os
import secrets
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np

from chainrule._src.api.making import make_tensor
from chainrule._src.api.public_modules import show
from chainrule._src.arrays import safetensors
from chainrule._src.arrays.device import DeviceLike, gpu_of
from chainrule._src.arrays.safetensors import BadFile, NamedArrays
from chainrule._src.arrays.tree import tree_map
from chainrule._src.arrays.types import NumpyArray, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.messages.kinds import TorchFile  # noqa: F401 -- load raises it
from chainrule._src.ops.arguments import placed
from chainrule._src.tape.tensor import Tensor

__all__ = ["load", "save"]

_STRUCTURE = "__chainrule__"


def save(obj: object, f: Any, *, format: str | None = None) -> None:
    """Save nested dictionaries, lists and tuples of tensors, arrays, numbers and text.

    An existing file is replaced atomically. A tensor that occurs twice is written once, and ``load`` returns one tensor
    for both. ``.grad``, hooks and the graph are not saved (``pickle`` preserves ``.grad``).

    Args:
        obj: the object to save; keys of dictionaries must be text or integers.
        f: a path with suffix ``.npz`` or ``.safetensors`` or without suffix, or a file open for writing bytes.
        format: "npz" or "safetensors", if the path has no suffix (default "npz").

    Raises:
        TypeError: ``obj`` contains an object that cannot be saved; the message gives its position. Nothing is written.
        ValueError: the path has another suffix.

    >>> import chainrule as cr, io
    >>> file = io.BytesIO()
    >>> cr.save({"w": cr.ones(2, requires_grad=True), "step": 3}, file)
    >>> _ = file.seek(0)
    >>> cr.load(file)
    {'w': tensor([1., 1.], requires_grad=True), 'step': 3}
    """
    write = {"npz": _write_npz, "safetensors": safetensors.write}[_format(f, format, True) or "npz"]
    arrays, metadata = _Packer().pack(obj)
    if hasattr(f, "write"):
        write(f, arrays, metadata)
    else:
        _replace(os.path.realpath(os.fspath(f)), lambda file: write(file, arrays, metadata))


def load(f: Any, map_location: DeviceLike = None, *, weights_only: bool = True, format: str | None = None) -> Any:
    """Load a file written by ``save``, ``numpy.savez`` or any safetensors writer, without running code from it.

    Files of other programs give a dictionary from names to tensors.

    Args:
        f: a path, or a file open for reading bytes.
        map_location: the device of the tensors; by default the CPU, wherever they were when saved.
        weights_only: accepted for compatibility; only data is loaded.
        format: "npz" or "safetensors"; by default determined from the suffix or the first bytes.

    Raises:
        ValueError: the file is damaged or has another format.
        RuntimeError: the device is not available.
    """
    if not weights_only:
        raise errors.only_weights()
    gpu = gpu_of("cpu" if map_location is None else map_location)
    if hasattr(f, "read"):
        found = _read(f, _format(f, format), getattr(f, "name", "the file"))
    else:
        kind = _format(f, format)
        with open(f, "rb") as file:
            found = _read(file, kind, os.fspath(f))
    return found if gpu is None else tree_map(lambda x: placed(x, gpu) if isinstance(x, Tensor) else x, found)


def _format(f: Any, given: str | None, writing: bool = False) -> str | None:
    """Return the format, or None for an open file or a path without suffix if ``format`` is not given."""
    if given is not None:
        if given not in ("npz", "safetensors"):
            raise ValueError(f"format must be 'npz' or 'safetensors', not {given!r}")
        return given
    if hasattr(f, "read") or hasattr(f, "write"):
        return None
    suffix = os.path.splitext(os.fsdecode(f))[1].lower()
    if not suffix:
        return None
    if suffix not in (".npz", ".safetensors"):
        raise errors.unknown_suffix(os.fsdecode(f), suffix, writing)
    return suffix[1:]


def _read(file: BinaryIO, kind: str | None, name: object) -> Any:
    if not file.seekable():
        file = io.BytesIO(file.read())
    start = file.read(9)
    file.seek(-len(start), os.SEEK_CUR)
    zipped = start[:2] == b"PK"
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise errors.torch_file(name)
    if not kind and not zipped and start[8:] != b"{":
        what = "neither an .npz file, which begins with PK, nor a .safetensors file, which begins with a length and {"
        raise BadFile(f"{name} is {what if start else 'empty, or was read to its end'}")
    try:
        arrays, metadata = (
            _read_npz(file, name) if (kind or "npz") == "npz" and (zipped or kind) else safetensors.read(file)
        )
        return _unpack(arrays, metadata)
    except BadFile as error:
        raise BadFile(f"{name} is not a valid {kind or ('npz' if zipped else 'safetensors')} file: {error}") from None


def _replace(path: str, write: Callable[[Any], None]) -> None:
    """Write a temporary file, and rename it once it is complete and on disk."""
    folder, name = os.path.split(path)
    part = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            os.chmod(part, os.stat(path).st_mode & 0o7777)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


# -- npz -------------------------------------------------------------------------------------------------------------


def _write_npz(file: BinaryIO, arrays: NamedArrays, metadata: Mapping[str, str]) -> None:
    if _STRUCTURE in metadata:
        arrays = {**arrays, _STRUCTURE: np.frombuffer(metadata[_STRUCTURE].encode(), np.uint8)}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            if "\0" in name:
                raise ValueError(f"{name!r} cannot be a name in an .npz file: it has a zero byte")
            with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


#: exceptions that ``zipfile`` and NumPy raise for damaged files
_UNREADABLE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, ValueError, EOFError, NotImplementedError, RuntimeError
)  # fmt: skip


def _read_npz(file: BinaryIO, name: object) -> tuple[NamedArrays, dict[str, str]]:
    arrays: NamedArrays = {}
    try:
        size = file.seek(0, os.SEEK_END)
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if any(entry.endswith("data.pkl") for entry in names):
                raise errors.torch_file(name)
            for entry in names:
                key = entry.removesuffix(".npy")
                if key == entry or key in arrays:
                    raise BadFile(f"its entry {entry!r} {'occurs twice' if key in arrays else 'is not an array'}")
                _check_size(archive, entry, size)
                with archive.open(entry) as member:
                    arrays[key] = np.lib.format.read_array(member, allow_pickle=False)
    except BadFile:
        raise
    except _UNREADABLE as error:
        if isinstance(error, errors.TorchFile):
            raise
        raise BadFile(str(error)) from None
    if _STRUCTURE not in arrays:
        return arrays, {}
    try:
        return arrays, {_STRUCTURE: arrays.pop(_STRUCTURE).tobytes().decode()}
    except UnicodeDecodeError:
        raise BadFile("its structure is not UTF-8") from None


def _check_size(archive: zipfile.ZipFile, entry: str, size: int) -> None:
    """Raise BadFile, before memory is allocated, if a file of this size cannot contain the array."""
    info = archive.getinfo(entry)
    with archive.open(entry) as member:
        version = np.lib.format.read_magic(member)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in header:
            raise BadFile(
                f"its entry {entry!r} has version {version} of NumPy's format, which is not used for numeric arrays"
            )
        try:
            shape, _, dtype = header[version](member)
        except Exception as error:  # NumPy uses Python's parser, which raises various exceptions
            raise BadFile(f"its entry {entry!r} has an invalid header ({type(error).__name__}: {error})") from None
        declared = math.prod(shape) * dtype.itemsize + member.tell()
    if dtype.kind in "biufc" and (declared != info.file_size or declared > _MAX_COMPRESSION * size):
        raise BadFile(
            f"its entry {entry!r} is declared as an array of {dtype} of shape {shape}, which is {declared} bytes, but the "
            f"file contains {min(info.file_size, size)} for it"
        )


_MAX_COMPRESSION = 1100  # the largest compression ratio of a zip file


# -- structure -------------------------------------------------------------------------------------------------------


class _Packer:
    """Converts an object to named arrays, and JSON for its structure."""

    def __init__(self) -> None:
        self.arrays: NamedArrays = {}
        self.names: dict[int, str] = {}
        self.saved: list[Any] = []  # references that keep the ids in ``names`` valid
        self.open: set[int] = set()

    def pack(self, obj: object) -> tuple[NamedArrays, dict[str, str]]:
        structure = self.node(obj, (), "obj")
        flat = [[name, {"tensor": name}] for name in self.arrays]
        if structure == {"dict": flat} and _STRUCTURE not in self.arrays:
            return self.arrays, {}
        return self.arrays, {_STRUCTURE: json.dumps(structure, separators=(",", ":"))}

    def node(self, obj: object, path: tuple[str, ...], where: str) -> Any:
        if isinstance(obj, Tensor):
            entry: Params = {"tensor": self.name(obj, obj._array(), path)}
            return {**entry, "requires_grad": True} if obj.requires_grad else entry
        if isinstance(obj, (np.ndarray, np.generic)):
            if obj.dtype.kind not in "biufc":
                raise errors.cannot_save(obj, where)
            return {"array" if isinstance(obj, np.ndarray) else "scalar": self.name(obj, np.asarray(obj), path)}
        if obj is None or isinstance(obj, (bool, int, float, str)):
            return {"value": obj}
        if isinstance(obj, complex):
            return {"complex": [obj.real, obj.imag]}
        if not isinstance(obj, (Mapping, list, tuple)) or hasattr(obj, "_fields"):
            raise errors.cannot_save(obj, where)
        if id(obj) in self.open:
            raise ValueError(f"{where} contains itself: it cannot be saved")
        self.open.add(id(obj))
        if isinstance(obj, Mapping):
            found = [[self.key(k, where), self.node(v, (*path, str(k)), f"{where}[{k!r}]")] for k, v in obj.items()]
        else:
            found = [self.node(v, (*path, str(i)), f"{where}[{i}]") for i, v in enumerate(obj)]
        self.open.discard(id(obj))
        return {"dict" if isinstance(obj, Mapping) else "list" if isinstance(obj, list) else "tuple": found}

    def key(self, key: int | str, where: str) -> str | int:
        if type(key) is not str and type(key) is not int:
            raise TypeError(f"save(): the keys of {where} must be text or integers, but one is {key!r}")
        return key

    def name(self, obj: object, array: NumpyArray, path: tuple[str, ...]) -> str:
        """Return the name under which the array is stored, the same one for the same object."""
        if id(obj) in self.names:
            return self.names[id(obj)]
        wanted = name = ".".join(path) or "tensor"
        n = 1
        while name in self.arrays or name == _STRUCTURE or name == "__metadata__":
            n += 1
            name = f"{wanted}~{n}"
        self.names[id(obj)] = name
        self.arrays[name] = array
        self.saved.append(obj)
        return name


def _unpack(arrays: NamedArrays, metadata: dict[str, str]) -> Any:
    for name, array in arrays.items():
        if array.dtype.kind not in "biufc":
            raise BadFile(f"{name!r} is an array of {array.dtype}, not of numbers")
    if _STRUCTURE not in metadata:
        return {name: make_tensor(array, None, False, False) for name, array in arrays.items()}
    try:
        return _build(json.loads(metadata[_STRUCTURE]), arrays, {})
    except BadFile:
        raise
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError, RuntimeError) as error:
        raise BadFile(f"its structure is invalid ({type(error).__name__}: {error})") from None


def _build(node: Any, arrays: NamedArrays, made: dict[tuple[str, str], Any]) -> Any:
    (kind,) = [key for key in node if key != "requires_grad"]
    content = node[kind]
    if kind == "dict":
        return {_key(key): _build(value, arrays, made) for key, value in content}
    if kind in ("list", "tuple"):
        items = [_build(value, arrays, made) for value in content]
        return items if kind == "list" else tuple(items)
    if kind == "value":
        if content is not None and not isinstance(content, (bool, int, float, str)):
            raise BadFile("its structure contains an invalid value")
        return content
    if kind == "complex":
        return complex(*content)
    if kind not in ("tensor", "array", "scalar"):
        raise BadFile(f"its structure has the unknown kind {kind!r}")
    if (kind, content) not in made:
        made[kind, content] = _leaf(kind, arrays[content], node.get("requires_grad") is True)
    return made[kind, content]


def _key(key: int | str) -> str | int:
    if type(key) is not str and type(key) is not int:
        raise BadFile(f"its structure has the key {key!r}")
    return key


def _leaf(kind: str, array: NumpyArray, requires_grad: bool) -> TensorLike:
    if kind == "tensor":
        return make_tensor(array, None, requires_grad, False)
    return array[()] if kind == "scalar" else array


show(globals())
