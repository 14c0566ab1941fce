"""``torch._vmap_internals``: the deprecated vmap, from before ``func.vmap``."""

from __future__ import annotations

from chainrule._src.arrays.types import AnyFunction
from chainrule._src.transforms.vmap import vmap

__all__ = ["_vmap", "vmap"]


def _vmap(
    func: AnyFunction, in_dims: object = 0, out_dims: object = 0, allow_none_pass_through: bool = False
) -> AnyFunction:
    return vmap(func, in_dims, out_dims)
