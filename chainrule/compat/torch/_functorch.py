"""``torch._C._functorch``: predicates for tensors inside transformations."""

from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.tape.tensor import Tensor


def is_batchedtensor(tensor: object) -> bool:
    """Return whether the tensor is batched by ``vmap``."""
    return isinstance(tensor, Tensor) and isinstance(tensor._raw, Batched)


def is_functorch_wrapped_tensor(tensor: object) -> bool:
    """Return whether the tensor is wrapped by a transformation."""
    return isinstance(tensor, Tensor) and isinstance(tensor._raw, (Batched, Dual))
