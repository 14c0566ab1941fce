"""Strided views, storages, real views of complex tensors, and the copying variants of views (such as ``permute_copy``).

``op`` makes these functions public: ``chainrule.as_strided``, ``chainrule.view_as_real`` …
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule._src.api.declare import OPERATIONS, op
from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.types import Params, ShapeLike, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import shaping, splitting
from chainrule._src.ops.arguments import cast_source, takes_tensors, tensor_of
from chainrule._src.ops.reductions import sum as sum_
from chainrule._src.table import memory as primitives
from chainrule._src.table import shape as moves
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.protocol import memory_of
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.versions import owner

ndarray = np.ndarray


@op("Tensor.storage_offset")
def storage_offset_of(self: Tensor) -> int:
    """Return how many elements of the storage precede the tensor's first."""
    array = memory_of(self._raw) if is_array(self._raw) else None
    if array is None:
        return 0  # an example's elements are counted from its own first element
    start = array.__array_interface__["data"][0] - owner(array).__array_interface__["data"][0]
    return int(start // array.itemsize)


class Storage:
    """The memory of a tensor, shared with its views.

    >>> import chainrule as cr
    >>> x = cr.zeros(2, 3)
    >>> x[1].storage().size(), x[1].untyped_storage().nbytes(), x[1].storage().data_ptr() == x.data_ptr()
    (6, 24, True)
    """

    def __init__(self, tensor: Tensor, itemsize: int) -> None:
        tensor.data_ptr()  # raises if the tensor has no memory of its own
        self._bounds = np.lib.array_utils.byte_bounds(owner(tensor._raw))
        self._itemsize = itemsize

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return self._bounds[0]

    def nbytes(self) -> int:
        return self._bounds[1] - self._bounds[0]

    def element_size(self) -> int:
        """Return the bytes of an element; 1 if the storage is untyped."""
        return self._itemsize

    def size(self) -> int:
        """Return the number of elements."""
        return self.nbytes() // self._itemsize

    __len__ = size


@op("Tensor.storage")
def storage(self: Tensor) -> Storage:
    """Return the storage of a tensor, in elements of its dtype."""
    return Storage(self, self.element_size())


@op("Tensor.untyped_storage")
def untyped_storage(self: Tensor) -> Storage:
    """Return the storage of a tensor, in bytes."""
    return Storage(self, 1)


@op(method=True, in_place="view", sample="rand(4, 4), (2, 2), (4, 1)")
def as_strided(input: TensorLike, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Return a view with a given size and strides (in elements); elements may occur several times.

    Args:
        input: a tensor; strides refer to its memory, independent of its own strides.
        storage_offset: the start of the view, counted from the start of the storage (by default, input's own start).

    Raises:
        RuntimeError: the view would contain elements that are not ``input``'s. If ``input`` is a view without history, all
            elements of its base are allowed.

    >>> import chainrule as cr
    >>> cr.as_strided(cr.arange(4), (3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    x = tensor_of("as_strided", input)
    sizes, strides = tuple(size), tuple(stride)
    if len(sizes) != len(strides):
        raise RuntimeError(f"mismatch in length of strides and shape: as_strided got {list(sizes)} and {list(strides)}")
    if any(n < 0 for n in sizes):
        raise RuntimeError(f"as_strided: negative sizes are not supported, got sizes: {list(sizes)}")
    if any(s < 0 for s in strides):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}: use flip()"
        )
    start = storage_offset_of(x)
    offset = start if storage_offset is None else storage_offset
    params = {"size": sizes, "stride": strides, "offset": offset - start, "x_stride": _own_stride(x)}
    if all(sizes) and not _is_inside(x, params):
        base = x._base
        if base is not None and base is not x and x._edge is None and base._edge is None:
            return as_strided(base, sizes, strides, offset)
        raise RuntimeError(
            f"setStorage: sizes {list(sizes)}, strides {list(strides)}, storage offset {offset} are out of bounds for "
            f"the elements that are this tensor's ({x.numel()}, the first of them {start}): as_strided cannot use others"
        )
    return bind(primitives.as_strided, (x,), params)


def _own_stride(x: Tensor) -> tuple[int, ...] | None:
    """Return the strides, in elements, of a tensor that is not contiguous (inside vmap, of one example); else None."""
    array = memory_of(x._raw)
    if not array.size:
        return None
    one = array[(0,) * (array.ndim - x.ndim)]
    return None if one.flags.c_contiguous else tuple(step // one.itemsize for step in one.strides)


def _is_inside(x: Tensor, params: Params) -> bool:
    """Return whether all elements of a strided view are the tensor's own."""
    sizes, strides, offset, own = params["size"], params["stride"], params["offset"], params["x_stride"]
    last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    if own is None:
        return bool(offset >= 0 and last < x.numel())
    return bool(
        (primitives.element_indices(tuple(x.shape), own, primitives.memory_offsets(sizes, strides, offset)) >= 0).all()
    )


@op(method=True, sample="rand(4, 4), rand(2, 2), (2, 2), (4, 1)")
@takes_tensors
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Return a copy in which the elements of :func:`as_strided`'s view are replaced by ``src``."""
    part = as_strided(input.detach(), size, stride, storage_offset)
    if tuple(src.shape) != tuple(part.shape):
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
            f"{list(part.shape)}"
        )
    start = storage_offset_of(input) if storage_offset is not None else 0
    params = {"size": tuple(size), "stride": tuple(stride), "offset": (storage_offset or 0) - start}
    params["x_stride"] = _own_stride(input)
    return bind(
        moves.copy_slices,
        (input, cast_source("as_strided_scatter", src, input)),
        {"steps": ((primitives.as_strided, params),)},
    )


@op(sample="rand(2) * 1j")
def view_as_real(input: TensorLike) -> Tensor:
    """Return a view of complex numbers as pairs (real part, imaginary part) along a new last axis.

    >>> import chainrule as cr
    >>> cr.view_as_real(cr.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    x = tensor_of("view_as_real", input)
    if x.dtype.kind != "c":
        raise RuntimeError(f"view_as_real is only supported for complex tensors, but got a tensor of dtype {x.dtype}")
    return bind(primitives.view_as_real, (x,), {})


@op(sample="rand(3, 2)")
def view_as_complex(input: TensorLike) -> Tensor:
    """Return a view of pairs (real part, imaginary part) along the last axis as complex numbers.

    Raises:
        RuntimeError: the last axis does not have length 2, or its two entries are not adjacent in memory.
    """
    x = tensor_of("view_as_complex", input)
    if x.dtype.kind != "f" or x.dtype == np.float16:
        raise RuntimeError(
            "view_as_complex is only supported for float and double tensors, but got a tensor of scalar type: "
            f"{x.dtype}"
        )
    if not x.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if x.shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, but its shape is {tuple(x.shape)}")
    if is_array(x._raw) and x._raw.strides[-1] != x._raw.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1: call .contiguous() first")
    if is_array(x._raw) and any(n > 1 and s % (2 * x._raw.itemsize) for n, s in zip(x.shape[:-1], x._raw.strides)):
        raise RuntimeError(
            "Tensor must have a stride divisible by 2 for all but last dimension: call .contiguous() first"
        )
    return bind(primitives.view_as_complex, (x,), {})


@op("Tensor.sum_to_size")
def sum_to_size(self: Tensor, *size: ShapeLike) -> Tensor:
    """Sum over the axes along which a tensor of the given size would be broadcast to this tensor's shape."""
    target = shaping._ints("sum_to_size", size)
    extra = self.ndim - len(target)
    fits = extra >= 0 and all(n in (1, m) for n, m in zip(target, self.shape[max(extra, 0) :], strict=True))
    if not fits:
        raise RuntimeError(f"size {{{list(target)}}} is not expandable to size {{{list(self.shape)}}}.")
    axes = [*range(extra), *(k + extra for k, n in enumerate(target) if n == 1 and self.shape[k + extra] != 1)]
    return sum_(self, axes, True).reshape(target) if axes else self


# -- copying variants of views ---------------------------------------------------------------------------------------


def _declare_copy(name: str, view: Any, sample: str = "") -> Any:
    def one(input: TensorLike, *args: object, **kwargs: object) -> Tensor:
        return moves.clone(view(tensor_of(call.__name__, input), *args, **kwargs))

    def several(input: TensorLike, *args: object, **kwargs: object) -> tuple[Tensor, ...]:
        return tuple(moves.clone(part) for part in view(tensor_of(call.__name__, input), *args, **kwargs))

    call: Any = several if name in ("split", "split_with_sizes", "unbind") else one
    call.__name__ = call.__qualname__ = name + "_copy"
    call.__wrapped__ = view  # for its signature
    call.__doc__ = f"Return a copy of :func:`{name}`'s result, which shares no memory with the tensor."
    declared = OPERATIONS.present()
    view_operation = declared.get(name) or declared.get(f"Tensor.{name}")
    sample = sample or (view_operation.sample if view_operation else "")
    return op(method=name == "narrow", out=True, sample=sample)(call)


def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    x = tensor_of("slice", input)
    return x[(slice(None),) * errors.check_dim("slice", dim, x.ndim) + (slice(start, end, step),)]


for _view in (
    as_strided, shaping.diagonal, shaping.expand, splitting.narrow, shaping.permute, splitting.select, splitting.split,
    splitting.split_with_sizes, shaping.squeeze, shaping.t, shaping.transpose, splitting.unbind, shaping.unfold,
    shaping.unsqueeze, shaping.view, view_as_complex, view_as_real,
):  # fmt: skip
    _declare_copy(_view.__name__, _view)
_declare_copy("alias", shaping.alias, "rand(2, 3)")
_declare_copy("detach", Tensor.detach, "rand(2, 3)")
_declare_copy("slice", _slice, "rand(4, 3), 0, 1, 3")
