"""``chainrule.compile``: what users call, and which recording a call runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.api.array import Array
from chainrule.compiling.floating_point import reporter
from chainrule.compiling.recording import LOCK, Recording, record
from chainrule.compiling.tree import Missing, TooMany, Tree
from chainrule.core.levels import STACK
from chainrule.core.modes import LOCAL, SPECIAL
from chainrule.core.protocol import plain
from chainrule.core.tensor import Tensor
from chainrule.interpreters.traced import Unrecordable
from chainrule.tree import tree_flatten
from chainrule.types.dtypes import native

ndarray = np.ndarray
TREES = 64  # for one signature: states of .grad and requires_grad, and functions that are not the same twice


class Compiled:
    """A function that is recorded when it is first called, and replayed as a plan afterwards. ``chainrule.compile`` makes it.

    Attributes:
        function: what was compiled; calling it is what eager computes.
        recordings: every run that was recorded.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function = function
        self.name = name
        self._trees: dict[Any, list[Tree]] = {}
        self._eager: dict[Any, str] = {}  # signatures that are not recorded, and why
        self._alive: list[Any] = []  # objects that signatures name by identity
        functools.update_wrapper(self, function, updated=())

    def __repr__(self) -> str:
        return f"<compiled {self.name}, {len(self.recordings)} recordings>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if STACK.levels or (SPECIAL and (LOCAL.watch is not None or LOCAL.recorder is not None)):
            return self.function(*args, **kwargs)  # part of another transformation, which sees the operations
        leaves, spec = tree_flatten((args, kwargs))
        signature, arrays = self._signature(leaves, spec)
        if signature is None or signature in self._eager:
            return self.function(*args, **kwargs)
        for tree in self._trees.get(signature, ()):
            if all([state.holds(leaves) for state in tree.states]):
                return self._replay(tree, signature, leaves, spec, arrays, args, kwargs)
        return self._record(None, signature, leaves, spec, arrays, args, kwargs)

    # -- what a call is like -----------------------------------------------------------------------------------------

    def _signature(self, leaves: list[Any], spec: Any) -> tuple[Any, list[Any]]:
        """What has to be the same for a recording to serve again, and the arrays among the leaves.

        The signature is None for calls that are not to be recorded.
        """
        key: list[Any] = [spec, LOCAL.mode]
        arrays: list[Any] = []
        tensors = any(isinstance(x, Tensor) for x in leaves)
        for x in leaves:
            kind = type(x)
            if kind is ndarray:
                array = x if x.dtype.isnative and x.flags.aligned else np.array(native(x))
                if x.dtype.kind not in "fciub":
                    array = None
            elif kind is Tensor or kind is Array:
                array = x._raw if kind is Tensor else x._tensor._raw
                if type(array) is not ndarray:
                    return None, []
            elif isinstance(x, (Tensor, ndarray)):
                array = plain(x) if isinstance(x, ndarray) else x._raw
                kind = type(x)
            elif isinstance(x, np.generic) and not tensors and x.dtype.kind in "fciub":
                array = np.asarray(x)
            else:
                array = None
            arrays.append(array)
            if array is not None:
                layout = None if array.flags.c_contiguous else array.strides
                key.append((kind, array.dtype, array.shape, layout))
            else:
                key.append(self._static(x))
        return tuple(key), arrays

    def _static(self, x: Any) -> Any:
        """A leaf that is no array, as part of a signature: its value, or its identity where it has no hash."""
        try:
            hash(x)
            return type(x), x, repr(x) if type(x) in (float, complex) else None  # 0.0 == -0.0, nan != nan
        except TypeError:
            if not any(x is known for known in self._alive):
                self._alive.append(x)
            return type(x), id(x)

    # -- recording ---------------------------------------------------------------------------------------------------

    def _record(
        self, tree: Tree | None, signature: Any, leaves: Any, spec: Any, arrays: Any, args: Any, kwargs: Any
    ) -> Any:
        """Run the function once on values that are recorded: for a new tree, or as a branch of one."""
        try:
            with LOCK:
                recording = record(self.function, leaves, spec, arrays, self.name)
                trees = self._trees.setdefault(signature, [])
                if tree is None or not tree.add(recording):
                    if len(trees) >= TREES:
                        raise Unrecordable("it does something else in every call")
                    trees.append(Tree(recording))
        except TooMany as many:
            self._eager[signature] = str(many.where)
            errors.warn_compile_changing(self.name, many.where)
            return self.function(*args, **kwargs)
        except Unrecordable as reason:
            return self._run_eagerly(signature, str(reason), args, kwargs)
        except Exception as error:
            result = self.function(*args, **kwargs)  # which says what is wrong, if it is the function's
            self._eager[signature] = f"{type(error).__name__}: {error}"
            errors.warn_compile_failed(self.name, self._eager[signature])
            return result
        return recording.recorded_value(leaves)

    def _run_eagerly(self, signature: Any, reason: str, args: Any, kwargs: Any) -> Any:
        """Run what cannot be recorded, from now on."""
        self._eager[signature] = reason
        errors.warn_compile_failed(self.name, reason)
        return self.function(*args, **kwargs)

    # -- replaying ---------------------------------------------------------------------------------------------------

    def _replay(self, tree: Tree, signature: Any, leaves: Any, spec: Any, arrays: Any, args: Any, kwargs: Any) -> Any:
        before = [source.get_state() for source in tree.generators] if tree.generators else []
        try:
            recording, made = tree.run(leaves, arrays, reporter(self.name))
        except Missing:
            self._rewind(tree, before)
            return self._record(tree, signature, leaves, spec, arrays, args, kwargs)
        except FloatingPointError:
            raise
        except Exception:  # of a step in Python: eager says what and where
            self._rewind(tree, before)
            return self.function(*args, **kwargs)
        return recording.finish(made, leaves)

    def _rewind(self, tree: Tree, before: list[Any]) -> None:
        """Have the generators where they were when the call began."""
        for source, state in zip(tree.generators, before, strict=False):
            source.set_state(state)

    # -- looking at it -----------------------------------------------------------------------------------------------

    @property
    def recordings(self) -> list[Recording]:
        """Every run that was recorded."""
        return [recording for trees in self._trees.values() for tree in trees for recording in tree.recordings]

    @property
    def memory(self) -> int:
        """Bytes that the plans hold: buffers and constants."""
        return sum(tree.memory for trees in self._trees.values() for tree in trees)


def compile(function: Callable[..., Any]) -> Compiled:
    """A function that computes what ``function`` does, faster: recorded when first called, then replayed.

    Args:
        function: of arrays, tensors, numbers and containers of them; it may contain, or be, any transformation,
            ``backward()``, and control flow on values.

    Returns:
        A function of the same arguments, with results of the same bits. A recording holds for one combination of shapes,
        dtypes and values of arguments that are no arrays; others are recorded when they come.

    Raises:
        TypeError: it is not callable.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> g = cr.compile(cr.grad(lambda x: np.sum(np.tanh(x) ** 2)))
    >>> x = np.linspace(0., 1., 3)
    >>> np.array_equal(g(x), cr.grad(lambda x: np.sum(np.tanh(x) ** 2))(x))
    True
    """
    errors.check_function("compile", function)
    return Compiled(function, getattr(function, "__name__", type(function).__name__))
