"""Gradient checkpointing: drop a function's saved values, and recompute them in the backward pass.

While the function runs, a pair of saved-tensor hooks replaces every saved value by a placeholder. When the backward pass
unpacks the first placeholder, the function runs again with the same arguments and random state. The values it saves in
this run, in the same order, are the placeholders' values. With a ``budget``, the results that take longest to compute
are cached, up to that number of bytes, and not recomputed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from chainrule._src.api.array import Array, array_of, holds, of_arrays
from chainrule._src.api.grad_mode import enable_grad, is_grad_enabled, no_grad
from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params, R, TensorLike
from chainrule._src.messages import errors
from chainrule._src.messages.kinds import CheckpointError
from chainrule._src.tape import saved
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL, is_recording
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.versions import CLOCK, writes_of
from chainrule._src.transforms.backward import backward
from chainrule._src.transforms.function import Function
from chainrule.utils.placeholders import Frame
from chainrule.utils.randomness import Randomness
from chainrule.utils.selective import (
    Budget,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "CheckpointError",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


def noop_context_fn() -> Contexts:
    """Return the default ``context_fn``: two contexts that do nothing."""
    return nullcontext(), nullcontext()


_CHECKS = ("default", "none")


class _Settings(threading.local):
    early_stop: bool | None = None
    debug: bool | None = None


_SETTINGS = _Settings()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Set ``early_stop`` of every checkpoint in the block: stop recomputation at the last value needed (the default)."""
    before, _SETTINGS.early_stop = _SETTINGS.early_stop, enable
    try:
        yield
    finally:
        _SETTINGS.early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Override ``debug`` of every checkpoint in the block; None uses the argument of each call."""
    before, _SETTINGS.debug = _SETTINGS.debug, enabled
    try:
        yield
    finally:
        _SETTINGS.debug = before


def checkpoint(
    function: Callable[..., R],
    *args: object,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    budget: int | None = None,
    **kwargs: object,
) -> R:
    """Call ``function(*args, **kwargs)`` without keeping its saved values; the backward pass recomputes them.

    Args:
        function: a function that computes the same values in every call.
        use_reentrant: False is recommended. True runs a nested backward pass, which supports neither ``autograd.grad``,
            ``inputs=``, keyword arguments nor gradients of gradients. None warns and means True (False with a
            ``budget``).
        context_fn: returns two contexts, entered around the first run and around the recomputation.
        determinism_check: ``'default'`` compares number, shapes and dtypes of the saved values of both runs; ``'none'``
            does not.
        debug: list the operations of both runs in the error.
        early_stop: stop the recomputation after the last value needed.
        preserve_rng_state: replay the same random numbers (of this library's generator and NumPy's global one).
        budget: the number of bytes of results that may be cached in the first run and not recomputed. Results that took
            longest for their size are cached, until the graph is freed.

    Returns:
        The result of the function.

    Raises:
        CheckpointError: (during backward) the second run saved other values than the first.
        RuntimeError: (during backward) an argument was overwritten after the first run.

    >>> import chainrule as cr
    >>> from chainrule.utils.checkpoint import checkpoint
    >>> x = cr.tensor([0., 1.], requires_grad=True)
    >>> y = checkpoint(lambda x: x.exp().sin().exp(), x, use_reentrant=False)
    >>> y.grad_fn.name()
    'ExpBackward0'
    >>> y.sum().backward()
    """
    if use_reentrant is None:
        if budget is None:
            errors.warn(errors.WARN_USE_REENTRANT)
        use_reentrant = budget is None
    if determinism_check not in _CHECKS:
        raise ValueError(f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check}")
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug or budget is not None:
            raise ValueError("Passing `context_fn`, `debug` or `budget` is only supported when use_reentrant=False.")
        if is_grad_enabled() and not any(isinstance(x, (Tensor, Array)) and x.requires_grad for x in args):
            errors.warn("None of the inputs have requires_grad=True. Gradients will be None")
        if holds(args, Array) and not holds(args, Tensor):
            function = of_arrays(function)
        return _Reentrant.apply(function, preserve_rng_state, *args)
    if budget is not None:
        if context_fn is not noop_context_fn:
            raise ValueError("Passing both `context_fn` and `budget` is not supported.")
        if budget < 0:
            raise ValueError(f"budget is a number of bytes, not {budget}")
    if not is_recording():
        return function(*args, **kwargs)
    if _SETTINGS.early_stop is not None:
        early_stop = _SETTINGS.early_stop
    if _SETTINGS.debug is not None:
        debug = _SETTINGS.debug
    first, replay = context_fn() if budget is None else Budget(budget).contexts()
    run = _Recomputation(function, args, kwargs, replay, preserve_rng_state)
    frame = Frame(run, early_stop, determinism_check == "default", debug)
    hooks = LOCAL.saved_hooks
    try:
        with first, frame.first_run():
            return function(*args, **kwargs)
    finally:
        leftover_hooks, LOCAL.saved_hooks = LOCAL.saved_hooks, hooks  # also if Ctrl-C interrupted the context's exit
        del ACTIVE_MODES[: max(0, len(leftover_hooks) - len(hooks))]


class _Recomputation:
    """The second run of a checkpointed function, with the same arguments, random numbers and transformations."""

    __slots__ = ("args", "context", "function", "kwargs", "levels", "randomness")

    def __init__(
        self,
        function: AnyFunction,
        args: tuple[object, ...],
        kwargs: Params,
        context: Any,
        preserve_rng_state: bool,
    ) -> None:
        self.function = function
        self.args = tuple(_Argument(x) for x in args)
        self.kwargs = {name: _Argument(x) for name, x in kwargs.items()}
        self.context = context
        self.levels = list(STACK.levels)
        self.randomness = Randomness() if preserve_rng_state else None

    def __call__(self) -> None:
        args = [x.get() for x in self.args]
        kwargs = {name: x.get() for name, x in self.kwargs.items()}
        run = partial(self._run, args, kwargs)
        levels, STACK.levels = STACK.levels, list(self.levels)
        ended = [level for level in self.levels if not level.alive]
        for level in ended:  # reactivate transformations that have ended
            level.alive = True
        try:
            run() if self.randomness is None else self.randomness.replay(run)
        finally:
            STACK.levels = levels
            for level in ended:
                level.alive = False

    def _run(self, args: list[Any], kwargs: Params) -> None:
        with enable_grad(), self.context:
            self.function(*args, **kwargs)


class _Argument:
    """An argument stored for the second run, packed by the saved-tensor hooks around the checkpoint, if any."""

    __slots__ = ("edge", "is_array", "packed", "time")

    def __init__(self, value: Any) -> None:
        self.time = CLOCK.latest
        self.edge: Any = None
        self.is_array = type(value) is Array
        if self.is_array:  # a separate tensor: a later write to the Array leaves its memory unchanged
            value = wrap(value.tensor._raw, value.tensor._edge)
        self.packed = value
        if isinstance(value, Tensor) and saved.has_hooks():
            self.packed = saved.pack_one(value._raw)
            self.edge = value._edge

    def get(self) -> Any:
        value = self._value()
        return array_of(value) if self.is_array else value

    def _value(self) -> Any:
        value = self.packed
        if type(value) is saved.PackedValue:
            return wrap(value.get(), self.edge)
        if isinstance(value, Tensor) and CLOCK.latest > self.time:
            written = writes_of(value._raw)
            if written is not None and written.times[-1] > self.time:
                raise errors.argument_was_written(value, written)
        return value


class _Reentrant(Function):
    """The reentrant variant: a node whose rule runs the function again with recording, then a nested backward pass."""

    @staticmethod
    def forward(ctx: Any, function: AnyFunction, preserve_rng_state: bool, *args: AnyArray) -> Any:
        ctx.function = function
        ctx.randomness = Randomness() if preserve_rng_state else None
        ctx.rest = [None if isinstance(x, Tensor) else x for x in args]
        ctx.save_for_backward(*[x if isinstance(x, Tensor) else None for x in args])
        with no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if LOCAL.sweep is not None and LOCAL.sweep.useful is not None:
            raise errors.reentrant_needs_all_leaves()
        args = []
        for tensor, other in zip(ctx.saved_tensors, ctx.rest, strict=True):
            if tensor is None:
                args.append(other)
            else:
                args.append(tensor.detach().requires_grad_(tensor.requires_grad))
        run = partial(ctx.function, *args)
        with enable_grad():
            outputs = run() if ctx.randomness is None else ctx.randomness.replay(run)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [(y, g) for y, g in zip(outputs, grads, strict=True) if isinstance(y, Tensor) and y.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([y for y, _ in pairs], [g for _, g in pairs])
        return (None, None, *[x.grad if isinstance(x, Tensor) else None for x in args])


def checkpoint_sequential(
    functions: Sequence[AnyFunction] | Any,
    segments: int,
    input: TensorLike,
    use_reentrant: bool | None = None,
    *,
    preserve_rng_state: bool = True,
    budget: int | None = None,
) -> Any:
    """Run a chain of functions in ``segments`` groups, each checkpointed except the last.

    Args:
        functions: the functions; each takes the result of the previous one.
        segments: the number of groups; √n for n functions needs the least memory.
        budget: the number of bytes that all segments together may cache (see :func:`checkpoint`).

    >>> import chainrule as cr
    >>> from chainrule.utils.checkpoint import checkpoint_sequential
    >>> x = cr.ones(2, requires_grad=True)
    >>> checkpoint_sequential([cr.sin, cr.exp, cr.tanh, cr.cos], 2, x, use_reentrant=False).sum().backward()
    """
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= max(1, len(functions)):
        raise ValueError(f"segments must be between 1 and the number of functions, {len(functions)}, not {segments}")
    if use_reentrant is None:
        if budget is None:
            errors.warn(errors.WARN_USE_REENTRANT)
        use_reentrant = budget is None
    size = len(functions) // segments
    share = None if budget is None else budget // max(1, segments - 1)
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(
            _chain(functions[start : start + size]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
            budget=share,
        )
    return _chain(functions[size * (segments - 1) :])(input)


def _chain(functions: Sequence[AnyFunction]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    return run


show(globals())
