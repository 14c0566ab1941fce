"""A look behind the scenes of a transformation."""

from __future__ import annotations

from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.dual import Dual
from chainrule._src.tape.tensor import Tensor, wrapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """What a tensor holds inside a transformation: all examples under vmap, the primal under jvp.

    Args:
        tensor: any tensor.
        recurse: look through all transformations around it, not only through the innermost.

    For debugging only: computing with what this returns leaves the transformation.

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
    inner = wrapped(data.payload if type(data) is Batched else data.primal)
    return debug_unwrap(inner) if recurse else inner
