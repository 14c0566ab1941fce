"""The safetensors file format: a JSON header that says where each array's bytes are, and the bytes.

=====================  ==================================================================================
8 bytes                the header's length, little-endian
header                 ``{"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}``, UTF-8, padded
                       with spaces; ``"__metadata__"`` may hold text by name
the rest               the arrays' elements, little-endian, in C order, without gaps or overlaps
=====================  ==================================================================================

A file may come from anywhere, so nothing in a header is believed before it is checked, and no memory is taken for more
bytes than the file has.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

_MAX_HEADER = 100_000_000
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "C64": "<c8", "BOOL": "|b1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}

Arrays = dict[str, np.ndarray[Any, Any]]


class BadFile(ValueError):
    """A file is not what its name says, or damaged."""


def write(file: BinaryIO, arrays: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str]) -> None:
    """Write arrays, largest elements first so that all are aligned.

    Raises:
        TypeError: an array's dtype does not exist in the format.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    at = 0
    for name in order:
        array = arrays[name]
        word = _NAMES.get(array.dtype.newbyteorder("<"))
        if word is None:
            raise TypeError(f"{name!r} is {array.dtype}, which the safetensors format does not have: save it as .npz")
        if name == "__metadata__":
            raise ValueError("'__metadata__' is a word of the safetensors format: name the tensor otherwise")
        header[name] = {"dtype": word, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _MAX_HEADER:
        raise ValueError(
            f"the names take {len(text)} bytes, more than the {_MAX_HEADER} that a safetensors header may have"
        )
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in order:
        array = np.asarray(arrays[name], arrays[name].dtype.newbyteorder("<"), order="C")
        file.write(array.reshape(-1).view(np.uint8).data)


def read(file: BinaryIO) -> tuple[Arrays, dict[str, str]]:
    """The arrays and the metadata of a file.

    Raises:
        BadFile: the file breaks a rule of the format.
    """
    if not file.seekable():
        file = io.BytesIO(file.read())
    start = file.tell()
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    if size < 8:
        raise BadFile(f"it has {size} bytes, too few for the header's length")
    length = int.from_bytes(file.read(8), "little")
    if length > min(_MAX_HEADER, size - 8):
        raise BadFile(
            f"its header is said to have {length} bytes, but {size - 8} follow (and {_MAX_HEADER} are allowed)"
        )
    header = _header(file.read(length))
    metadata = _metadata(header.pop("__metadata__", {}))
    entries = sorted((_entry(name, about) for name, about in header.items()), key=lambda entry: entry[3:])
    end = 0
    for name, _, _, first, last in entries:
        if first != end:
            raise BadFile(
                f"the data of {name!r} begins at {first}, where {end} was expected: there is an overlap or a gap"
            )
        end = last
    if end != size - 8 - length:
        raise BadFile(f"its arrays take {end} bytes, but it has {size - 8 - length}")
    arrays = {name: _array(file, name, dtype, shape) for name, dtype, shape, _, _ in entries}
    return {name: arrays[name] for name in header}, metadata


def _header(raw: bytes) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise BadFile("a name occurs twice in its header")
        return found

    def no_constant(word: str) -> Any:
        raise BadFile(f"its header has the number {word}")

    if raw[:1] != b"{":
        raise BadFile("its header does not begin with {")
    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=unique, parse_constant=no_constant)
    except BadFile:
        raise
    except (ValueError, RecursionError) as error:  # not UTF-8, or not JSON
        raise BadFile(f"its header is not JSON in UTF-8 ({error})") from None
    return dict(header)


def _metadata(found: Any) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise BadFile("its __metadata__ is not text by name")
    return found


def _entry(name: str, about: Any) -> tuple[str, np.dtype[Any], tuple[int, ...], int, int]:
    if not isinstance(about, dict) or set(about) != {"dtype", "shape", "data_offsets"}:
        raise BadFile(f"the entry {name!r} does not have exactly dtype, shape and data_offsets")
    word, shape, offsets = about["dtype"], about["shape"], about["data_offsets"]
    if not isinstance(word, str) or word not in _DTYPES:
        raise BadFile(
            f"{name!r} has the dtype {word!r}, which NumPy does not have: convert it to F32 where it was made"
        )
    if not _naturals(shape):
        raise BadFile(f"the shape of {name!r} is {str(shape)[:80]}")
    if not _naturals(offsets) or len(offsets) != 2:
        raise BadFile(f"the data_offsets of {name!r} are {offsets!r}")
    if len(shape) > 64 or any(n >= 2**63 for n in shape):
        raise BadFile(f"NumPy has no arrays of the shape of {name!r}")
    dtype = np.dtype(_DTYPES[word])
    nbytes = dtype.itemsize * math.prod(shape)
    if nbytes != offsets[1] - offsets[0]:
        raise BadFile(f"{name!r} has {offsets[1] - offsets[0]} bytes, but its dtype and shape take {nbytes}")
    return name, dtype, tuple(shape), offsets[0], offsets[1]


def _naturals(found: Any) -> bool:
    return isinstance(found, list) and all(type(n) is int and n >= 0 for n in found)


def _array(file: BinaryIO, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    try:
        array = np.empty(shape, dtype)
    except ValueError as error:  # too many axes, or too large, though empty
        raise BadFile(f"NumPy has no arrays of the shape of {name!r}: {error}") from None
    raw = array.reshape(-1).view(np.uint8)
    raw[...] = np.frombuffer(file.read(array.nbytes), np.uint8)
    if dtype.kind == "b" and raw.max(initial=0) > 1:
        raise BadFile(f"{name!r} has boolean elements other than 0 and 1")
    return array.astype(dtype.newbyteorder("="), copy=False)
