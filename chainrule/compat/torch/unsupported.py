"""Names of PyTorch that programs import, but whose use raises an error with the reason and a replacement."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

_SPARSE = "tensors are dense; chainrule.sparse has sparse arrays that are differentiable in their entries"
_FUTURES = "calls return when they are done; concurrent.futures runs them in threads or processes"
_FX = "modules have no graph of calls: chainrule.compile traces functions, register_forward_hook observes calls"
_MULTIPROCESSING = (
    "tensors in other processes are copies; Python's multiprocessing pickles them, multiprocessing.shared_memory shares"
)
_PARALLEL = "chainrule runs in one process: call the module itself, or data-parallel code with Dask"
_EXTENSION = "chainrule has no C++ API: chainrule.primitive makes a differentiable operation of any function, also of a C extension"
_PICKLE = "chainrule.load reads only data, so no classes are allowed or forbidden"
_SYMBOLIC = "sizes are Python's integers"

#: For each module, the names that are missing in chainrule, and why; "" is the top level.
_NAMES = {
    "": {
        _SPARSE: "dsmm sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor",
        _SYMBOLIC: "SymBool SymFloat SymInt",
    },
    "cuda.sparse": {_SPARSE: "DoubleTensor FloatTensor HalfTensor"},
    "futures": {_FUTURES: "Future collect_all wait_all"},
    "fx": {_FX: "Graph GraphModule Interpreter Node Proxy Tracer Transformer symbolic_trace wrap"},
    "multiprocessing": {
        _MULTIPROCESSING: "Lock Manager Pipe Pool Process Queue SimpleQueue get_context get_start_method "
        "set_sharing_strategy set_start_method spawn"
    },
    "nn.parallel": {_PARALLEL: "DistributedDataParallel data_parallel gather parallel_apply replicate scatter"},
    "nn.parallel.scatter_gather": {_PARALLEL: "gather scatter scatter_kwargs"},
    "serialization": {_PICKLE: "MAP_LOCATION add_safe_globals clear_safe_globals get_safe_globals safe_globals"},
    "sparse": {_SPARSE: "DoubleTensor FloatTensor HalfTensor IntTensor LongTensor"},
    "utils.cpp_extension": {_EXTENSION: "BuildExtension CUDAExtension CppExtension load load_inline"},
}


class Unsupported:
    """The base of placeholders: classes without instances, for ``isinstance``, annotations and base classes."""

    _reason: str

    def __class_getitem__(cls, item: object) -> type:
        return cls

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        raise NotImplementedError(f"{cls.__module__}.{cls.__qualname__} is not supported: {cls._reason}")


def add_placeholders(path: str, module: ModuleType) -> ModuleType:
    """Add the placeholders of a module, given by its name in ``torch``, and of its submodules; names that it has stay."""
    qualified = f"torch.{path}".removesuffix(".")
    for reason, names in _NAMES.get(path, {}).items():
        for name in names.split():
            attributes = {"_reason": reason, "__module__": qualified}
            vars(module).setdefault(name, type(name, (Unsupported,), attributes))
    for child in _NAMES:
        parent, _, last = child.rpartition(".")
        if child and parent == path and not hasattr(module, last):
            vars(module)[last] = placeholder_module(child)
    return module


@functools.cache
def placeholder_module(path: str) -> ModuleType | None:
    """Return a module that consists of placeholders, or None if the table does not contain it."""
    if path not in _NAMES:
        return None
    module = ModuleType(f"torch.{path}", f"Placeholders for ``torch.{path}``, whose use raises NotImplementedError.")
    module.__path__ = []
    return add_placeholders(path, module)
