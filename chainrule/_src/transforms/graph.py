"""The graph of operations: its nodes and edges, hooks on gradients, and hooks on values saved for the backward pass.

``chainrule.autograd.graph`` exports the public names.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray
from chainrule._src.messages import errors
from chainrule._src.tape import engine, saved
from chainrule._src.tape.locks import new_lock
from chainrule._src.tape.modes import LOCAL, enter_active_mode, leave_active_mode
from chainrule._src.tape.node import Leaf, Output, RemovableHandle
from chainrule._src.tape.node import Node as _Node
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.versions import BEFORE_WRITE, note_write, owner, writes_of
from chainrule._src.transforms.backward import GradientEdge, Origin

# -- nodes and edges -------------------------------------------------------------------------------------------------


class Node(ABC):
    """The type of ``grad_fn``: the record of one operation. For ``isinstance`` only: operations make the nodes.

    >>> import chainrule as cr
    >>> y = cr.ones(2, requires_grad=True).exp()
    >>> isinstance(y.grad_fn, cr.autograd.graph.Node), y.grad_fn.name()
    (True, 'ExpBackward0')
    """

    __module__ = "chainrule.autograd.graph"

    @abstractmethod
    def name(self) -> str:
        """Return the name of the operation."""

    @property
    @abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that receive this node's gradients, each with the index of the node's output."""

    @property
    @abstractmethod
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own data."""

    @abstractmethod
    def register_hook(self, fn: AnyFunction) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after the rule runs; if it returns a tuple, that replaces ``grad_inputs``."""

    @abstractmethod
    def register_prehook(self, fn: AnyFunction) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before the rule runs; if it returns a tuple, that replaces ``grad_outputs``."""


Node.register(_Node)
Node.register(Leaf)


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the edge that receives the gradient of a tensor; ``grad`` and ``backward`` accept it instead of the tensor.

    The edge does not keep the tensor's values in memory.

    Raises:
        RuntimeError: the tensor does not require grad.

    >>> import chainrule as cr
    >>> x = cr.tensor([1., 2.], requires_grad=True)
    >>> y = x * 3
    >>> edge = cr.autograd.graph.get_gradient_edge(y)
    >>> cr.autograd.grad((y * y).sum(), edge)
    (tensor([ 6., 12.]),)
    """
    edge = tensor._edge
    if edge is None:
        raise errors.no_grad_needed(
            tensor, "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    token = Origin(tensor) if type(tensor._raw) is np.ndarray else edge
    if type(edge) is Output:
        return GradientEdge(edge.node, edge.index, token)
    return GradientEdge(edge, 0, token)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Record that tensors were modified outside of chainrule; a backward pass that needs the old values then raises.

    >>> import chainrule as cr
    >>> x = cr.ones(2)
    >>> x.numpy()[:] = 5  # chainrule does not see this write
    >>> cr.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not isinstance(each, Tensor):
            raise errors.not_a_tensor("increment_version", "tensor", each)
        note_write(each._raw, "increment_version", errors.user_line())


# -- hooks on several gradients --------------------------------------------------------------------------------------


class _MultiHandle(RemovableHandle):
    """A handle that removes the hooks of ``register_multi_grad_hook``."""

    __slots__ = ("handles",)

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)
        self.key = self.handles[0].key if self.handles else -1

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


class _Gathered:
    """The gradients received so far in one backward pass."""

    __slots__ = ("expected", "grads", "missing")

    def __init__(self, edges: Sequence[Callable[[], object]]) -> None:
        roots, useful = LOCAL.sweep.roots, LOCAL.sweep.useful
        passed = set(engine.reachable(roots))
        if useful is not None:
            passed &= useful
        self.expected = [edge() in passed for edge in edges]
        self.missing = sum(self.expected)
        self.grads: list[Any] = [None] * len(edges)


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Call ``fn`` once in every backward pass, when the gradients of several tensors are known.

    Args:
        tensors: the tensors, which must require grad.
        fn: with mode ``'all'``, called when the last gradient is known, with a list of the gradients in the order of
            ``tensors``; the gradient of a tensor that the pass does not reach is None. With ``'any'``, called with the
            first gradient as soon as it is computed. The return value is ignored.
        mode: ``'all'`` or ``'any'``.

    >>> import chainrule as cr
    >>> a, b = cr.ones(1, requires_grad=True), cr.ones(1, requires_grad=True)
    >>> handle = cr.autograd.graph.register_multi_grad_hook([a, b], lambda grads: print(len(grads)))
    >>> (a * b).sum().backward()
    2
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if not callable(fn):
        raise errors.hook_not_callable(fn)
    tensors = tuple(tensors)
    for tensor in tensors:
        get_gradient_edge(tensor)
    edges = [weakref.ref(tensor._edge) for tensor in tensors]  # weak, because the hooks of the edges refer to this list
    key = object()

    def gather(i: int, g: Tensor) -> None:
        notes = LOCAL.sweep.notes
        if mode == "any":
            if notes.setdefault(key, g) is g:
                fn(g)
            return
        gathered = notes.get(key)
        if gathered is None:
            gathered = notes[key] = _Gathered(edges)
        gathered.grads[i] = g
        gathered.missing -= 1
        if gathered.missing == 0:
            fn(gathered.grads)

    return _MultiHandle([tensor.register_hook(lambda g, i=i: gather(i, g)) for i, tensor in enumerate(tensors)])


# -- hooks on saved values -------------------------------------------------------------------------------------------


class saved_tensors_hooks:
    """A context that packs values saved for the backward pass with ``pack_hook`` and unpacks them with ``unpack_hook``.

    Args:
        pack_hook: a function of a tensor (detached; don't modify it). It can return any object.
        unpack_hook: a function of that object. It returns a tensor with the same values, shape and dtype.

    Each thread has its own hooks. In nested contexts, only the innermost hooks are used.

    >>> import chainrule as cr
    >>> x = cr.tensor([1., 2.], dtype=cr.float64, requires_grad=True)
    >>> with cr.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.double()):
    ...     y = (x * x).sum()  # saves x in half precision
    >>> y.backward()
    """

    __module__ = "chainrule.autograd.graph"

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> Any:
        saved.push_hooks(self.pack_hook, self.unpack_hook)
        return self

    def __exit__(self, *exc: object) -> None:
        saved.pop_hooks()


class save_on_cpu(saved_tensors_hooks):
    """A context that keeps saved values on the CPU; it has no effect, because all arrays are on the CPU.

    No value is copied, so the backward pass still raises if a saved value was modified. :class:`save_to_disk` moves
    values out of memory.

    Args:
        pin_memory, device_type: accepted for compatibility with PyTorch, without effect.
    """

    __module__ = "chainrule.autograd.graph"

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(_same, _same)


def _same(tensor: Tensor) -> Tensor:
    return tensor


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Return a context, also usable as a decorator, in which saved-tensor hooks raise a RuntimeError with this message.

    Raises:
        RuntimeError: saved-tensor hooks are already active.
    """
    previous = saved.disable_hooks(error_message)
    try:
        yield
    finally:
        saved.enable_hooks(previous)


# -- on disk ---------------------------------------------------------------------------------------------------------


class _OnDisk:
    """A saved value in a file. The file is deleted with this object."""

    __slots__ = ("__weakref__", "path", "source", "time")

    def __init__(self, array: NumpyArray, folder: str | None) -> None:
        descriptor, self.path = tempfile.mkstemp(".npy", "saved-", folder)
        weakref.finalize(self, _unlink, self.path)
        with os.fdopen(descriptor, "wb") as file:
            np.save(file, array, allow_pickle=False)
        self.source = weakref.ref(array)
        self.time = _last_write(array)

    def holds(self, array: NumpyArray) -> bool:
        return self.source() is array and self.time == _last_write(array)

    def load(self) -> Tensor:
        return wrap(np.load(self.path, allow_pickle=False))


def _last_write(array: AnyArray) -> int:
    written = writes_of(array)
    return written.times[-1] if written else 0


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # for example, the folder was deleted
        pass


class save_to_disk(saved_tensors_hooks):
    """A context that keeps values saved for the backward pass in ``.npy`` files instead of in memory.

    A file is deleted together with the graph that needs it. If several operations save the same value, it is written
    once.

    Args:
        directory: an existing folder; by default the system's folder for temporary files.
        min_bytes: keep values smaller than this in memory.

    >>> import chainrule as cr
    >>> x = cr.ones(1000, requires_grad=True)
    >>> with cr.autograd.graph.save_to_disk(min_bytes=1000):
    ...     y = x.exp().sum()
    >>> y.backward()
    """

    __module__ = "chainrule.autograd.graph"

    def __init__(self, directory: str | os.PathLike[str] | None = None, min_bytes: int = 1 << 16) -> None:
        self.directory = None if directory is None else os.fspath(directory)
        if self.directory is not None and not os.path.isdir(self.directory):
            raise NotADirectoryError(f"save_to_disk(): {self.directory!r} is not a folder")
        self.min_bytes = min_bytes
        self.files: weakref.WeakValueDictionary[int, _OnDisk] = weakref.WeakValueDictionary()

    def pack_hook(self, tensor: Tensor) -> Tensor | _OnDisk:
        array = tensor._raw
        if type(array) is not np.ndarray or array.nbytes < self.min_bytes:
            return tensor
        packed = self.files.get(id(array))
        if packed is None or not packed.holds(array):
            packed = self.files[id(array)] = _OnDisk(array, self.directory)
        return packed

    @staticmethod
    def unpack_hook(packed: Any) -> Tensor:
        return packed.load() if type(packed) is _OnDisk else packed


# -- copy on write ---------------------------------------------------------------------------------------------------


class _Shared:
    """A saved value that shares memory with the original array until just before that is overwritten, then a copy."""

    __slots__ = ("__weakref__", "array")

    def __init__(self, array: NumpyArray) -> None:
        self.array = array


_SHARED: dict[int, weakref.WeakSet[_Shared]] = {}
_SHARED_LOCK = new_lock()


def _share(tensor: Tensor) -> Any:
    array = tensor._raw
    if type(array) is not np.ndarray:
        return tensor
    packed = _Shared(array)
    with _SHARED_LOCK:
        if len(_SHARED) >= 64 and not len(_SHARED) & (
            len(_SHARED) - 1
        ):  # remove empty entries when the size is a power of two
            for key in [key for key, values in _SHARED.items() if not values]:
                del _SHARED[key]
        _SHARED.setdefault(id(owner(array)), weakref.WeakSet()).add(packed)
    return packed


def _unshare(packed: Any) -> Tensor:
    return wrap(packed.array) if type(packed) is _Shared else packed


def _before_write(array: NumpyArray) -> None:
    with _SHARED_LOCK:
        values = _SHARED.pop(id(owner(array)), None)
        for packed in values or ():
            packed.array = packed.array.copy()


def _protect() -> None:
    if _before_write not in BEFORE_WRITE:
        BEFORE_WRITE.append(_before_write)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """A context in which values saved for the backward pass may be modified in place: they are copied just before.

    The backward pass may run inside the context or after it. Only in-place operations on tensors are detected, not
    writes to ``t.numpy()``.

    >>> import chainrule as cr
    >>> x = cr.tensor([0., 1.], requires_grad=True)
    >>> with cr.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 2
    ...     z = (y * y).sum()
    ...     _ = y.zero_()  # without the context, z.backward() would raise, because it needs y
    >>> z.backward()
    >>> x.grad
    tensor([0., 8.])
    """

    __module__ = "chainrule.autograd.graph"

    def __init__(self) -> None:
        super().__init__(_share, _unshare)

    def __enter__(self) -> Any:
        _protect()
        return super().__enter__()


_COPIES = (_share, _unshare)


def set_copy_on_write(mode: bool) -> None:
    """Turn :class:`allow_mutation_on_saved_tensors` on or off for this thread, outside of a context.

    >>> import chainrule as cr
    >>> cr.autograd.graph.set_copy_on_write(True)
    >>> x = cr.tensor([1., 2.], requires_grad=True)
    >>> y = x.exp()
    >>> y += 1
    >>> y.sum().backward()
    >>> cr.autograd.graph.set_copy_on_write(False)
    """
    on = _COPIES in LOCAL.saved_hooks
    if mode and not on:
        _protect()
        LOCAL.saved_hooks = (_COPIES, *LOCAL.saved_hooks)  # first, so the hooks of contexts take precedence
        enter_active_mode()
    elif on and not mode:
        LOCAL.saved_hooks = tuple(pair for pair in LOCAL.saved_hooks if pair is not _COPIES)
        leave_active_mode()
