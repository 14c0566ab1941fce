"""Memory for time: a checkpointed function's saved values are dropped, and computed again for the backward pass.

While the function runs, every value that its operations save is replaced by a placeholder (a pair of hooks on saved
values). The first placeholder that a backward pass asks for makes the function run again, from the same arguments and random
state; what it saves this time, in the same order, is what the placeholders stand for. With a ``budget`` the results
that take longest to compute are kept, as far as they fit, and are not computed again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from chainrule._src.api.array import Array, array_of, holds, of_arrays
from chainrule._src.api.grad_mode import enable_grad, is_grad_enabled, no_grad
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params, TensorLike
from chainrule._src.messages import errors
from chainrule._src.messages.kinds import CheckpointError
from chainrule._src.tape import saved
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import LOCAL, SPECIAL, recording
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
    """The default ``context_fn``: two contexts that do nothing."""
    return nullcontext(), nullcontext()


_CHECKS = ("default", "none")


class _Settings(threading.local):
    early_stop: bool | None = None
    debug: bool | None = None


_SETTINGS = _Settings()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Inside, whether recomputation stops once it has the last value it needs (the default), for every checkpoint."""
    before, _SETTINGS.early_stop = _SETTINGS.early_stop, enable
    try:
        yield
    finally:
        _SETTINGS.early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Inside, ``debug`` of every checkpoint, whatever it was called with; None leaves the choice to the call."""
    before, _SETTINGS.debug = _SETTINGS.debug, enabled
    try:
        yield
    finally:
        _SETTINGS.debug = before


def checkpoint(
    function: AnyFunction,
    *args: object,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    budget: int | None = None,
    **kwargs: object,
) -> Any:
    """``function(*args, **kwargs)``, without keeping what its operations save: it is computed again during backward.

    Args:
        function: must compute the same every time it is called.
        use_reentrant: False is recommended. True runs a backward pass of its own inside the outer one, which knows
            neither ``autograd.grad`` nor ``inputs=``, keyword arguments or gradients of gradients. None warns and is True
            (False if a ``budget`` is given).
        context_fn: returns two contexts, entered around the first run and around the recomputation.
        determinism_check: ``'default'`` compares number, shapes and dtypes of the values that are saved with those of the
            first run; ``'none'`` does not.
        debug: list the operations of both runs in the error.
        early_stop: end the recomputation with the last value that is needed.
        preserve_rng_state: draw the same random numbers again (of this library's generator, and NumPy's global one).
        budget: bytes of results that may be kept from the first run, so as not to be computed again: those that took
            longest for their size. Kept results stay until the graph goes.

    Returns:
        What the function returns.

    Raises:
        CheckpointError: (during backward) the second run saved other values than the first.
        RuntimeError: (during backward) an argument was overwritten since.

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
    if not recording():
        return function(*args, **kwargs)
    if _SETTINGS.early_stop is not None:
        early_stop = _SETTINGS.early_stop
    if _SETTINGS.debug is not None:
        debug = _SETTINGS.debug
    first, again = context_fn() if budget is None else Budget(budget).contexts()
    run = _Again(function, args, kwargs, again, preserve_rng_state)
    frame = Frame(run, early_stop, determinism_check == "default", debug)
    hooks = LOCAL.saved_hooks
    try:
        with first, frame.first_run():
            return function(*args, **kwargs)
    finally:
        left, LOCAL.saved_hooks = LOCAL.saved_hooks, hooks  # also where Ctrl-C came as the context was to be left
        del SPECIAL[: max(0, len(left) - len(hooks))]


class _Again:
    """The second run of a checkpointed function, as it has to be: the same arguments, random numbers, transformations."""

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
        for level in ended:  # the values of a transformation that is over are computed with again
            level.alive = True
        try:
            run() if self.randomness is None else self.randomness.again(run)
        finally:
            STACK.levels = levels
            for level in ended:
                level.alive = False

    def _run(self, args: list[Any], kwargs: Params) -> None:
        with enable_grad(), self.context:
            self.function(*args, **kwargs)


class _Argument:
    """An argument to keep until the second run: in the care of the hooks around the checkpoint, if there are any."""

    __slots__ = ("edge", "is_array", "kept", "time")

    def __init__(self, value: Any) -> None:
        self.time = CLOCK.latest
        self.edge: Any = None
        self.is_array = type(value) is Array
        if self.is_array:  # of its own: a later write to the Array leaves this memory as it is
            value = wrap(value.tensor._raw, value.tensor._edge)
        self.kept = value
        if isinstance(value, Tensor) and saved.active():
            self.kept = saved.pack_one(value._raw)
            self.edge = value._edge

    def get(self) -> Any:
        value = self._value()
        return array_of(value) if self.is_array else value

    def _value(self) -> Any:
        value = self.kept
        if type(value) is saved.PackedValue:
            return wrap(value.get(), self.edge)
        if isinstance(value, Tensor) and CLOCK.latest > self.time:
            written = writes_of(value._raw)
            if written is not None and written.times[-1] > self.time:
                raise errors.argument_was_written(value, written)
        return value


class _Reentrant(Function):
    """The older way: a node whose rule runs the function again, recorded, and a backward pass through that."""

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
            outputs = run() if ctx.randomness is None else ctx.randomness.again(run)
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
    """Run functions one after the other in ``segments`` groups, each but the last one checkpointed.

    Args:
        functions: called in turn, each with what the one before returned.
        segments: √n for n functions takes the least memory.
        budget: bytes that all segments together may keep (see :func:`checkpoint`).

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
