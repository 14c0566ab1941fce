"""Private functions that other libraries import from ``torch.autograd.functional``."""

from __future__ import annotations

from typing import Any

from chainrule._src.tape.tensor import Tensor


def _as_tuple(inp: object, arg_name: str | None = None, fn_name: str | None = None) -> tuple[bool, tuple[Tensor, ...]]:
    """Return whether the input is a tuple, and the input as a tuple of tensors."""
    items = inp if isinstance(inp, tuple) else (inp,)
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            where = f" at index {i}" if isinstance(inp, tuple) else ""
            raise TypeError(
                f"The {arg_name} given to {fn_name} must be a Tensor or a tuple of Tensors but got {type(item)}{where}"
            )
    return isinstance(inp, tuple), items


def _tuple_postprocess(res: Any, to_unpack: Any) -> Any:
    """Unpack a tuple (of tuples) that was created by ``_as_tuple`` from a single tensor."""
    if isinstance(to_unpack, tuple):
        outer, inner = to_unpack
        res = res if inner else tuple(row[0] for row in res)
        return res if outer else res[0]
    return res if to_unpack else res[0]


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """Detach results unless ``create_graph``."""
    if isinstance(inputs, Tensor):
        return inputs if create_graph else inputs.detach()
    return tuple(_grad_postprocess(item, create_graph) for item in inputs)


def _construct_standard_basis_for(tensors: tuple[Tensor, ...], tensor_numels: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Return the identity matrix of all elements, split into column blocks: (total, n) for each tensor of n elements."""
    total, done, chunks = sum(tensor_numels), 0, []
    for tensor, numel in zip(tensors, tensor_numels, strict=True):
        chunk = tensor.new_zeros((total, numel))
        chunk[done : done + numel].fill_diagonal_(1)
        chunks.append(chunk)
        done += numel
    return tuple(chunks)
