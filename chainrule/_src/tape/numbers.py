"""Numbers of Python's that are others in every call: learning rates, and what follows from how many steps were made.

Where nothing is recorded they are numbers. While a function is recorded they are tensors without axes instead, which are read and
computed again in each call, so that one recording serves for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import AnyFunction, NumpyDType, Params
from chainrule._src.rules.batching import each_example
from chainrule._src.rules.kinds import discrete
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.modes import LOCAL, SPECIAL
from chainrule._src.tape.tensor import Tensor, wrap


class Element(NamedTuple):
    """A source of an array: the number in a dictionary, or in a tuple in it (``at``), when the function is called."""

    holder: Params
    name: str
    at: int | None

    def array(self, arrays: object, leaves: Sequence[object]) -> Any:
        found: Any = self.holder.get(self.name)
        if self.at is not None:
            found = found[self.at] if type(found) is tuple and len(found) > self.at else None
        return np.asarray(float(found)) if type(found) in (int, float) else None


def beside(x: Tensor) -> NumpyDType:
    """The dtype that a number of Python's takes beside a tensor."""
    return np.zeros((), x._raw.dtype).real.dtype


def number(holder: Params, name: str, at: int | None = None) -> Any:
    """``holder[name]`` (``[at]``); while a function is recorded a tensor that stands for it, if it is a number.

    None: it is something else.
    """
    source = Element(holder, name, at)
    value = source.array((), ())
    if value is None:
        return None
    if not SPECIAL or LOCAL.recorder is None:
        return holder[name] if at is None else holder[name][at]
    return wrap(LOCAL.recorder.element(source, value))


def part(holder: Params, name: str, at: int) -> Any:
    """``holder[name][at]``, on which a recording relies, and on nothing else in it."""
    return holder[name][at]


def nonzero(holder: Params, name: str) -> bool:
    """Whether ``holder[name]`` is not zero, on which a recording relies, and not on the number."""
    return bool(holder[name])


#: what a recording asks again in each call
ASKED = (part, nonzero)


@discrete(listed=False, batch=each_example, outputs=("number", "others"))
def of_numbers(
    *given: object, function: AnyFunction, items: int, constants: tuple[float, ...], dtype: NumpyDType
) -> Any:
    """What a function of Python's numbers makes of arrays without axes."""
    numbers = [x.item() if k < items or x.dtype == np.float64 else x[()] for k, x in enumerate(map(np.asarray, given))]
    return tuple([np.asarray(x, dtype) for x in function(*numbers, *constants)])


def numbers(
    function: Callable[..., tuple[Any, ...]],
    like: Tensor,
    items: tuple[Tensor, ...],
    others: tuple[Any, ...] = (),
    *constants: float,
) -> tuple[Any, ...]:
    """A function of Python's numbers: of what lies in tensors (``items``), of others, which may be tensors, and of constants.

    While something is recorded the results are tensors without axes, of the dtype that numbers take beside ``like``, and the
    function is called again in each call.
    """
    if not SPECIAL or LOCAL.recorder is None:
        return function(*[x.item() for x in items], *others, *constants)
    given = [*items, *[x if isinstance(x, Tensor) else wrap(np.asarray(x)) for x in others]]
    params = {"function": function, "items": len(items), "constants": constants, "dtype": beside(like)}
    found: tuple[Any, ...] = bind(of_numbers, given, params)
    return found
