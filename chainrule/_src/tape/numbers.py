"""Python numbers that change between calls of a compiled function: learning rates and functions of step counts.

Optimizers read their numbers through this module. Outside of a trace they are plain numbers. In a trace they become 0-d
tensors, which are read and computed again in each call. So one trace is valid for all values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import AnyFunction, NumpyDType, Params
from chainrule._src.rules.batching import each_example
from chainrule._src.rules.kinds import discrete
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.tensor import Tensor, wrap


class Element(NamedTuple):
    """A source of a traced array: a number in a dictionary, or in a tuple in it at index ``at``, read at each call."""

    holder: Params
    name: str
    at: int | None

    def array(self, arrays: object, leaves: Sequence[object]) -> Any:
        found: Any = self.holder.get(self.name)
        if self.at is not None:
            found = found[self.at] if type(found) is tuple and len(found) > self.at else None
        return np.asarray(float(found)) if type(found) in (int, float) else None


def number_dtype_for(x: Tensor) -> NumpyDType:
    """Return the dtype to which a Python number is promoted in an operation with a tensor."""
    return np.zeros((), x._raw.dtype).real.dtype


def number_item(holder: Params, name: str, at: int | None = None) -> Any:
    """Return ``holder[name]`` (``[at]``), in a trace as a tensor; None if it is no number."""
    source = Element(holder, name, at)
    value = source.array((), ())
    if value is None:
        return None
    if not trace_hooks.is_tracing():
        return holder[name] if at is None else holder[name][at]
    return wrap(trace_hooks.current_recorder().element(source, value))


def number_part(holder: Params, name: str, at: int) -> Any:
    """Return ``holder[name][at]``. A trace guards this entry only."""
    return holder[name][at]


def is_nonzero_item(holder: Params, name: str) -> bool:
    """Return whether ``holder[name]`` is not zero. A trace guards the result, not the number."""
    return bool(holder[name])


#: functions that a compiled function calls again in each call, to check their results
RECHECKED = (number_part, is_nonzero_item)


@discrete(listed=False, batch=each_example, outputs=("number", "others"))
def of_numbers(
    *arrays: object, function: AnyFunction, items: int, constants: tuple[float, ...], dtype: NumpyDType
) -> Any:
    """Call a function of Python numbers on 0-d arrays and return its results as 0-d arrays."""
    numbers = [x.item() if k < items or x.dtype == np.float64 else x[()] for k, x in enumerate(map(np.asarray, arrays))]
    return tuple([np.asarray(x, dtype) for x in function(*numbers, *constants)])


def map_numbers(
    function: Callable[..., tuple[Any, ...]],
    like: Tensor,
    items: tuple[Tensor, ...],
    others: tuple[Any, ...] = (),
    *constants: float,
) -> tuple[Any, ...]:
    """Return the results of a function of Python numbers.

    In a trace the results are 0-d tensors, and the compiled function calls ``function`` again in each call.

    Args:
        function: gets the items of ``items``, then ``others``, then ``constants``.
        like: a tensor; in a trace, results have the dtype to which numbers are promoted in operations with it.
        items: 0-d tensors.
        others: numbers or tensors.
    """
    if not trace_hooks.is_tracing():
        return function(*[x.item() for x in items], *others, *constants)
    operands = [*items, *[x if isinstance(x, Tensor) else wrap(np.asarray(x)) for x in others]]
    params = {"function": function, "items": len(items), "constants": constants, "dtype": number_dtype_for(like)}
    found: tuple[Any, ...] = bind(of_numbers, operands, params)
    return found
