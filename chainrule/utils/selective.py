"""Selective checkpointing: cache some results instead of recomputing them, by a policy or within a budget of bytes.

Both use a pair of observers (``Watch``). The first run's observer stores results by the index of their operation. The
second run's observer returns the stored result instead of computing it.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any

import numpy as np

from chainrule._src.api.watch import Watch
from chainrule._src.arrays.types import AnyFunction, NumpyArray, Params
from chainrule._src.messages import errors
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.versions import CLOCK, writes_of


class CheckpointPolicy(enum.Enum):
    """The result of a policy function for an operation. (MUST and PREFER are equivalent here.)"""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


class SelectiveCheckpointContext:
    """The first argument of a policy function: ``is_recompute`` and ``op_output`` (None before it is computed)."""

    def __init__(self, *, is_recompute: bool, op_output: object = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


_SAVE = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class _ResultCache:
    """Results by the index of their operation, each with the write clock when it was stored."""

    __slots__ = ("results", "strict")

    def __init__(self, strict: bool) -> None:
        self.results: dict[int, tuple[Any, int]] = {}
        self.strict = strict

    def put(self, number: int, result: object) -> None:
        self.results[number] = (result, CLOCK.latest)

    def get(self, number: int, prim: object) -> Any:
        """Return the result, or None if there is none or it was overwritten after it was stored."""
        found = self.results.get(number)
        if found is None:
            return None
        result, time = found
        if CLOCK.latest > time:
            for array in result if isinstance(result, tuple) else (result,):
                written = writes_of(array)
                if written is not None and written.times[-1] > time:
                    if self.strict:
                        raise errors.kept_was_written(prim, array, written)
                    return None
        return result


class _OperationCounter(Watch):
    """An observer that numbers the operations of one run."""

    def __init__(self, cache: _ResultCache) -> None:
        self.cache = cache
        self.number = -1

    def __enter__(self) -> Any:
        self.number = -1
        return super().__enter__()


class _ReplayWatch(_OperationCounter):
    """The second run's observer: returns cached results."""

    def forward(self, prim: Primitive, datas: object, params: Params) -> Any:
        self.number += 1
        result = self.cache.get(self.number, prim)
        return super().forward(prim, datas, params) if result is None else result


# -- by policy -------------------------------------------------------------------------------------------------------


class _PolicyWatch(_OperationCounter):
    """The first run's observer: caches results selected by a policy."""

    def __init__(self, cache: _ResultCache, policy: Callable[..., CheckpointPolicy]) -> None:
        super().__init__(cache)
        self.policy = policy

    def forward(self, prim: Primitive, datas: Any, params: Params) -> Any:
        self.number += 1
        result = super().forward(prim, datas, params)
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        answer = self.policy(context, prim, *datas, **params)
        if isinstance(answer, bool):
            answer = CheckpointPolicy.PREFER_SAVE if answer else CheckpointPolicy.PREFER_RECOMPUTE
        if not isinstance(answer, CheckpointPolicy):
            raise TypeError(f"a policy function returns a CheckpointPolicy or a bool, not {type(answer).__name__}")
        if answer in _SAVE and not prim.view:
            self.cache.put(self.number, result)
        return result


def create_selective_checkpoint_contexts(
    policy_fn_or_list: AnyFunction | Sequence[object], allow_cache_entry_mutation: bool = False
) -> tuple[Watch, Watch]:
    """Return contexts for ``checkpoint(..., context_fn=...)`` that cache the results of some operations.

    Args:
        policy_fn_or_list: names of operations whose results are cached (such as ``'mm'``), or a function
            ``policy(ctx, op, *args, **kwargs)`` that returns a :class:`CheckpointPolicy` or a bool. ``op`` is the
            operation's primitive, ``op.name`` its name.
        allow_cache_entry_mutation: recompute overwritten results instead of raising.

    >>> import functools
    >>> import chainrule as cr
    >>> from chainrule.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep_products = functools.partial(create_selective_checkpoint_contexts, ["mm"])
    >>> x, w = cr.ones(2, 3), cr.ones(3, 4, requires_grad=True)
    >>> checkpoint(lambda x: (x @ w).tanh(), x, use_reentrant=False, context_fn=keep_products).sum().backward()
    """
    if callable(policy_fn_or_list):
        policy = policy_fn_or_list
    elif isinstance(policy_fn_or_list, (list, tuple)):
        names = {getattr(op, "name", op) if not callable(op) else op.__name__ for op in policy_fn_or_list}
        if not all(isinstance(name, str) for name in names):
            raise ValueError("Expected ops in `policy_fn_or_list` to be names of operations, such as 'mm'")

        def policy(ctx: object, op: Any, *args: object, **kwargs: object) -> bool:
            return op.name in names
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    cache = _ResultCache(strict=not allow_cache_entry_mutation)
    return _PolicyWatch(cache, policy), _ReplayWatch(cache)


# -- within a budget -------------------------------------------------------------------------------------------------


class Budget(_OperationCounter):
    """The first run's observer: caches the results that took longest for their size, up to ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(_ResultCache(strict=False))
        self.limit = limit
        self.cached_bytes = 0
        self.cheapest: list[tuple[float, int, int]] = []  # a heap of (seconds per byte, number, bytes)

    def contexts(self) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
        return self, _ReplayContext(self.cache)

    def forward(self, prim: Primitive, datas: object, params: Params) -> Any:
        self.number += 1
        start = perf_counter()
        result = super().forward(prim, datas, params)
        spent = perf_counter() - start
        if type(result) is np.ndarray and not prim.view and 0 < result.nbytes <= self.limit and result.base is None:
            # Operations with much arithmetic per element rank before elementwise ones, whatever the measured time.
            rank = spent + (1.0 if prim.kind in ("contraction", "opaque") else 0.0)
            self._consider(rank / result.nbytes, result)
        return result

    def _consider(self, seconds_per_byte: float, result: NumpyArray) -> None:
        size = result.nbytes
        free = self.limit - self.cached_bytes
        dropped = []
        while free < size and self.cheapest and self.cheapest[0][0] < seconds_per_byte:
            entry = heapq.heappop(self.cheapest)
            dropped.append(entry)
            free += entry[2]
        if free < size:
            for entry in dropped:
                heapq.heappush(self.cheapest, entry)
            return
        for _, number, nbytes in dropped:
            del self.cache.results[number]
            self.cached_bytes -= nbytes
        heapq.heappush(self.cheapest, (seconds_per_byte, self.number, size))
        self.cache.put(self.number, result)
        self.cached_bytes += size


class _ReplayContext(AbstractContextManager[None]):
    """A context with a separate observer for every second run, because several threads may run at once."""

    __slots__ = ("cache",)

    def __init__(self, cache: _ResultCache) -> None:
        self.cache = cache

    def __enter__(self) -> None:
        _ReplayWatch(self.cache).__enter__()

    def __exit__(self, *exc: object) -> None:
        LOCAL.watch.__exit__(*exc)
