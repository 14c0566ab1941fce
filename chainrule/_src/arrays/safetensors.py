"""Read and write the safetensors file format, with the library of that name (``pip install chainrule[safetensors]``).

``chainrule.serialization`` calls ``write`` and ``read``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.messages import errors

NamedArrays = dict[str, NumpyArray]


class BadFile(ValueError):
    """A file is damaged, or does not have the format of its name."""

    __module__ = "chainrule.serialization"


def _library() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise errors.needs_safetensors() from None
    return safetensors


def write(file: BinaryIO, arrays: Mapping[str, NumpyArray], metadata: Mapping[str, str]) -> None:
    """Write arrays, those with the largest elements first so that all are aligned.

    Raises:
        TypeError: an array's dtype does not exist in the format.
        ImportError: the library is not installed.
    """
    for name, array in arrays.items():
        if array.dtype.itemsize > 8:
            raise TypeError(f"{name!r} is {array.dtype}, which the safetensors format does not have: save it as .npz")
    dense = {name: np.asarray(x, x.dtype.newbyteorder("<"), order="C") for name, x in arrays.items()}
    file.write(_library().numpy.save(dense, dict(metadata) or None))


def read(file: BinaryIO) -> tuple[NamedArrays, dict[str, str]]:
    """Return the arrays and the metadata of a file.

    Raises:
        BadFile: the file violates the format, or has arrays of a dtype that NumPy lacks.
        ImportError: the library is not installed.
    """
    data = file.read()
    library = _library()
    try:
        arrays = library.numpy.load(data)
    except KeyError as error:
        raise BadFile(
            f"it has the dtype {error}, which NumPy does not have: convert it to F32 before saving the file"
        ) from None
    except (library.SafetensorError, ValueError) as error:
        raise BadFile(str(error)) from None
    for name, array in arrays.items():
        if array.dtype == bool and array.view(np.uint8).max(initial=0) > 1:
            raise BadFile(f"{name!r} has boolean elements other than 0 and 1")
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    metadata = header.pop("__metadata__", {})
    return {name: np.array(arrays[name]) for name in header}, metadata  # in the file's order; copies own their memory
