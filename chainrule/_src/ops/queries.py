"""Properties of tensors that are known without a computation.

``op`` makes these functions public: ``chainrule.numel``, ``chainrule.is_floating_point`` …
"""

from __future__ import annotations

from chainrule._src.api.array import Array
from chainrule._src.api.declare import op
from chainrule._src.arrays import dtypes
from chainrule._src.arrays.types import TensorLike
from chainrule._src.ops.arguments import tensor_of
from chainrule._src.tape.foreign import gpu_number
from chainrule._src.tape.tensor import Tensor


@op(arrays=False)  # ``__torch_function__`` is not called for it
def is_tensor(obj: object) -> bool:
    """Return whether the object is a tensor."""
    return isinstance(obj, (Tensor, Array))


@op()
def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return tensor_of("numel", input).numel()


@op()
def is_floating_point(input: TensorLike) -> bool:
    """Return whether a tensor (or dtype) is real floating-point."""
    return input.is_floating_point() if isinstance(input, Tensor) else dtypes.is_floating_point(input)


@op()
def is_complex(input: TensorLike) -> bool:
    """Return whether a tensor (or dtype) is complex."""
    return input.is_complex() if isinstance(input, Tensor) else dtypes.is_complex(input)


@op()
def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element is nonzero."""
    return bool(tensor_of("is_nonzero", input))


@op()
def is_inference(input: Tensor) -> bool:
    """Return whether the tensor was made in ``inference_mode``."""
    return tensor_of("is_inference", input).is_inference()


@op("is_conj is_neg Tensor.is_pinned Tensor.is_shared", method=True)
def is_conj(input: Tensor) -> bool:
    """Return whether conjugation is pending: always False, because ``conj`` (like ``neg``) computes at once."""
    return False


is_neg = is_conj


@op("resolve_conj resolve_neg Tensor.to_dense", method=True)
def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself, because no operation is ever pending."""
    return tensor_of("resolve_conj", input)


resolve_neg = resolve_conj


@op(method=True)
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype has negative numbers."""
    return tensor_of("is_signed", input).dtype.kind not in "bu"


@op(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape."""
    return bool(tensor_of("is_same_size", input).shape == tensor_of("is_same_size", other).shape)


@op(method=True)
def get_device(input: Tensor) -> int:
    """Return the number of the tensor's GPU; −1 on the CPU."""
    number = gpu_number(tensor_of("get_device", input))
    return -1 if number is None else number


@op()
def detach(input: Tensor) -> Tensor:
    """Return a tensor with the same memory that is not recorded in the graph."""
    return tensor_of("detach", input).detach()
