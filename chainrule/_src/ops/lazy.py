"""Compute lazy tensors and Arrays, and implement the protocol of Dask collections for them.

``op`` makes ``compute`` and ``persist`` methods; Dask calls the methods of its protocol.

``dask.compute(loss.detach(), w.grad)`` computes several in one pass with shared work, as for Dask's arrays.
``client.compute``, ``dask.persist``, ``dask.visualize`` and progress bars accept them, too.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, array_of
from chainrule._src.api.declare import op
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params
from chainrule._src.messages import errors
from chainrule._src.tape.foreign import Foreign, in_memory
from chainrule._src.tape.modes import is_recording
from chainrule._src.tape.tensor import Tensor, wrap


@op("compute")
def compute(*trees: object) -> tuple[Any, ...]:
    """Compute all lazy arrays and tensors in containers, in one pass, and return the containers with their values in memory.

    ``dask.compute`` accepts them, too. In contrast to it, all operations on one block of the data form a single task here,
    even if intermediate results are used more than once.

    Raises:
        RuntimeError: a tensor requires grad, outside of ``no_grad``; pass it detached.

    >>> import chainrule as cr
    >>> cr.compute({"w": cr.tensor([1., 2.])}, 3.0)
    ({'w': tensor([1., 2.])}, 3.0)
    """
    tree = importlib.import_module("chainrule._src.arrays.tree")
    leaves, spec = tree.tree_flatten(trees)
    values = list(leaves)
    for i, x in enumerate(leaves):
        tensor = x._tensor if isinstance(x, Array) else x
        if isinstance(tensor, Tensor) and type(tensor._raw) is Foreign and not tensor.is_cuda:
            _check_cut(tensor, "compute")
            values[i] = tensor._raw
    found = in_memory(values)
    for i, x in enumerate(leaves):
        if values[i] is not x:
            found[i] = array_of(wrap(found[i])) if isinstance(x, Array) else wrap(found[i])
    return tree.tree_unflatten(found, spec)


@op("Tensor.compute")
def computed(self: Tensor) -> Tensor:
    """Return the tensor with its values in memory, computed if it is lazy. ``cr.compute(x, y)`` computes several in one pass.

    Raises:
        RuntimeError: the tensor requires grad, outside of ``no_grad``; ``t.detach().compute()`` cuts the graph explicitly.
    """
    if type(self._raw) is not Foreign or self.is_cuda:
        return self
    _check_cut(self, "compute")
    return wrap(self._raw.read())


@op("Tensor.persist")
def persist(self: Tensor) -> Tensor:
    """Return the tensor with its chunks computed and kept on the workers of a cluster; itself, if it is not lazy.

    Raises:
        RuntimeError: the tensor requires grad, outside of ``no_grad``; ``t.detach().persist()`` cuts the graph explicitly.
    """
    if type(self._raw) is not Foreign or not hasattr(self._raw.payload, "persist"):
        return self
    _check_cut(self, "persist")
    return wrap(Foreign(self._raw.payload.persist()))


def _check_cut(x: Tensor, method: str) -> None:
    if x._edge is not None and is_recording():
        raise errors.lazy_requires_grad(x, method)


# -- the protocol of Dask collections ----------------------------------------------------------------------------------


def _lazy(x: Any) -> Any:
    """Return the lazy array inside x; None if there is none."""
    raw = (x._tensor if isinstance(x, Array) else x)._raw
    payload = raw.payload if type(raw) is Foreign else None
    return payload if hasattr(payload, "__dask_graph__") else None


def _rebuild_as(x: object, finish: AnyFunction) -> AnyFunction:
    """Return a function that converts Dask's result to x's type, Tensor or Array."""

    def rebuild(results: object, *args: object, **kwargs: object) -> AnyArray:
        found = finish(results, *args, **kwargs)
        tensor = wrap(Foreign(found) if hasattr(found, "__dask_graph__") else found)
        return array_of(tensor) if isinstance(x, Array) else tensor

    return rebuild


def _postcompute(x: Any) -> Any:
    _check_cut(x._tensor if isinstance(x, Array) else x, "compute")
    finish, args = _lazy(x).__dask_postcompute__()
    return _rebuild_as(x, finish), args


def _postpersist(x: Any) -> Any:
    _check_cut(x._tensor if isinstance(x, Array) else x, "persist")
    rebuild, args = _lazy(x).__dask_postpersist__()
    return _rebuild_as(x, rebuild), args


def _token(x: Any) -> Any:
    """Return a token that identifies the tensor; Dask would compute the tensor to make one.

    Raises:
        RuntimeError: the tensor carries a derivative. Dask needs a token to make a chunk or a task argument of it.
    """
    tensor = x._tensor if isinstance(x, Array) else x
    if tensor.requires_grad or (type(tensor._raw) is not np.ndarray and tensor._raw.moving):
        raise errors.lazy_function(x)
    lazy = _lazy(x)
    if lazy is not None:
        return type(x).__name__, lazy.__dask_tokenize__()
    raw = tensor._raw
    return type(x).__name__, sys.modules["dask.base"].normalize_token(raw if type(raw) is np.ndarray else id(raw))


_COLLECTION: Params = {
    "graph": lambda x: None if _lazy(x) is None else _lazy(x).__dask_graph__(),
    "keys": lambda x: _lazy(x).__dask_keys__(),
    "layers": lambda x: _lazy(x).__dask_layers__(),
    "tokenize": _token,
    "postcompute": _postcompute,
    "postpersist": _postpersist,
    "optimize": property(lambda x: _lazy(x).__dask_optimize__),
    "scheduler": property(lambda x: _lazy(x).__dask_scheduler__),
}
for _type in (Tensor, Array):
    for _name, _method in _COLLECTION.items():
        setattr(_type, f"__dask_{_name}__", _method)


def _of_array(method: Callable[[Tensor], Tensor]) -> Callable[[Array], Any]:
    def call(self: Array) -> Any:
        return array_of(method(self._tensor))

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


for _name, _method in {"compute": computed, "persist": persist}.items():
    setattr(Array, _name, _of_array(_method))
