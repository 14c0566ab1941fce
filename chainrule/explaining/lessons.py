"""What is easily misread about one call of backward, said about the very arrays that were passed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.core.tensor import Tensor


class Lesson(NamedTuple):
    """``kind``: "seed_is_output_grad", "ones_means_sum", "seed_is_an_input" or "wrong_shape_would"; and a text."""

    kind: str
    text: str


def lessons_of(e: Any, given: Sequence[Any]) -> list[Lesson]:
    """The lessons of an explanation, whose gradients were given so (None: not at all)."""
    found: list[Lesson] = []
    for y, seed, passed in zip(e.outputs, e.seeds, given):
        if not e.steps:
            continue
        if passed is not None:
            found.append(
                Lesson(
                    "seed_is_output_grad",
                    f"{y.name}.grad = ∂{e.scalar}/∂{y.name} is what you passed, not ∂{y.name}/∂{_first(e, y)}.",
                )
            )
        same = None if passed is None else _same(e, passed, seed)
        if same is not None:
            found.append(
                Lesson(
                    "seed_is_an_input",
                    f"The gradient you passed is {same.name} itself: {y.bar} = {same.name} multiplies the derivative. For "
                    f"the derivative of {y.name}.sum() alone pass ones_like({y.name}).",
                )
            )
        x = next((v for v in e.wrt if v.shape != y.shape and y.shape != () and v.gradient is not None), None)
        if x is not None:
            found.append(
                Lesson(
                    "wrong_shape_would",
                    f"A gradient of {x.name}'s shape {x.shape} would be refused: it is ∂{e.scalar}/∂{y.name}, one number per element "
                    f"of {y.name}, shape {y.shape}.",
                )
            )
    if e.steps and all(seed.size and np.all(seed == 1) for seed in e.seeds) and any(seed.ndim for seed in e.seeds):
        how = "No gradient was given, so ones were taken" if given[0] is None else "Ones as the gradient"
        total = " + ".join(f"{y.name}.sum()" if y.shape else y.name for y in e.outputs)
        found.append(Lesson("ones_means_sum", f"{how}: they mean {e.scalar} = {total}."))
    return found


def _first(e: Any, y: Any) -> str:
    return next((v.name for v in e.wrt if v is not y), "x")


def _same(e: Any, passed: Any, seed: Any) -> Any:
    """The leaf that was passed as the gradient, or one with the same numbers."""
    data = passed._raw if isinstance(passed, Tensor) else passed
    for value in e.wrt:
        if value.shape != seed.shape or value.data is None or np.all(seed == 1) or seed.size < 2:
            continue
        if e._values.known.get(value.edge) is data or np.array_equal(value.data, seed):
            return value
    return None
