"""``torch._C._functorch``: what a tensor inside a transformation is."""

from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.tape.tensor import Tensor


def is_batchedtensor(tensor: object) -> bool:
    """Return whether the tensor is one example of a ``vmap``."""
    return isinstance(tensor, Tensor) and isinstance(tensor._raw, Batched)


def is_functorch_wrapped_tensor(tensor: object) -> bool:
    """Return whether the tensor is what a transformation made of the caller's."""
    return isinstance(tensor, Tensor) and isinstance(tensor._raw, (Batched, Dual))
