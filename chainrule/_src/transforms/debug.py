"""``debug_unwrap``: inspect the values inside a transformation. ``chainrule.func`` exports it."""

from __future__ import annotations

from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.tape.tensor import Tensor, tensor_of


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the content of a tensor inside a transformation: all examples under vmap, the primal under jvp.

    Args:
        tensor: any tensor.
        recurse: unwrap all surrounding transformations, not only the innermost.

    For debugging only: computations with the result are not transformed.

    >>> import chainrule as cr
    >>> seen = []
    >>> _ = cr.vmap(lambda x: (seen.append(cr.func.debug_unwrap(x)), x)[1])(cr.ones(3, 2))
    >>> seen[0].shape
    torch.Size([3, 2])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"debug_unwrap(): expected a Tensor, got {type(tensor).__name__}")
    data = tensor._raw
    if type(data) not in (Batched, Dual):
        return tensor
    inner = tensor_of(data.payload if type(data) is Batched else data.primal)
    return debug_unwrap(inner) if recurse else inner
