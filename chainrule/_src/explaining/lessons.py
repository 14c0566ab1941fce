"""What is easily misread about one call of backward, said about the very arrays that were passed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chainrule._src.arrays.types import AnyArray
from chainrule._src.tape.tensor import Tensor

if TYPE_CHECKING:
    from chainrule._src.explaining.explanation import Explanation


class Lesson(NamedTuple):
    """``kind``: "seed_is_output_grad", "ones_means_sum", "seed_is_an_input" or "wrong_shape_would"; and a text."""

    kind: str
    text: str


def lessons_of(e: Explanation, given: Sequence[object]) -> Iterator[Lesson]:
    """The lessons of an explanation, whose gradients were given so (None: not at all)."""
    if not e.steps:
        return
    for y, seed, passed in zip(e.outputs, e.seeds, given):
        meaning = f"∂{e.scalar}/∂{y.name}"
        if passed is not None:
            name = next((v.name for v in e.wrt if v is not y), "x")
            yield Lesson("seed_is_output_grad", f"{y.name}.grad = {meaning} is what you passed, not ∂{y.name}/∂{name}.")
            same = _leaf_with(e, passed, seed)
            if same is not None:
                text = (
                    f"The gradient you passed is {same.name} itself: {y.bar} = {same.name} multiplies the derivative."
                )
                yield Lesson(
                    "seed_is_an_input", f"{text} For the derivative of {y.name}.sum() alone pass ones_like({y.name})."
                )
        x = next((v for v in e.wrt if v.shape != y.shape and y.shape != () and v.gradient is not None), None)
        if x is not None:
            text = (
                f"A gradient of {x.name}'s shape {x.shape} would be refused: it is {meaning}, one number per element of"
            )
            yield Lesson("wrong_shape_would", f"{text} {y.name}, shape {y.shape}.")
    if all(seed.size and np.all(seed == 1) for seed in e.seeds) and any(seed.ndim for seed in e.seeds):
        how = "No gradient was given, so ones were taken" if given[0] is None else "Ones as the gradient"
        total = " + ".join(f"{y.name}.sum()" if y.shape else y.name for y in e.outputs)
        yield Lesson("ones_means_sum", f"{how}: they mean {e.scalar} = {total}.")


def _leaf_with(e: Explanation, passed: object, seed: AnyArray) -> Any:
    """The leaf that was passed as the gradient, or one with the same numbers."""
    data = passed._raw if isinstance(passed, Tensor) else passed
    if np.all(seed == 1) or seed.size < 2:
        return None
    alike = [value for value in e.wrt if value.shape == seed.shape and value.data is not None]
    return next((v for v in alike if e._values.known.get(v.edge) is data or np.array_equal(v.data, seed)), None)
