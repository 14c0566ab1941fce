"""Does a row of the table tell the truth? Every column of it, checked against the value column.

``rulecheck(row)`` runs the checks of ``CHECKS`` on all samples of the row (see ``samples``). What a rule says is never
compared with the same formula written again: derivatives are compared with differences of the values, the two modes
with each other, a batch with a loop.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from chainrule._src.rules.primitive import Primitive
from chainrule.testing.case import Case
from chainrule.testing.check_batches import check_batch, check_batched_derivatives
from chainrule.testing.check_columns import (
    check_dtype,
    check_face,
    check_formula,
    check_moves,
    check_saves,
    check_value,
)
from chainrule.testing.check_derivatives import check_adjoint, check_jvp, check_second_order, check_vjp
from chainrule.testing.samples import Sample, samples_of, with_numbers

#: What ``rulecheck`` checks, by name.
CHECKS: dict[str, Callable[[Case], None]] = {
    "value": check_value,
    "vjp": check_vjp,
    "jvp": check_jvp,
    "adjoint": check_adjoint,
    "second_order": check_second_order,
    "batch": check_batch,
    "batched_derivatives": check_batched_derivatives,
    "dtype": check_dtype,
    "formula": check_formula,
    "moves": check_moves,
    "saves": check_saves,
    "face": check_face,
}


def accepts_complex(prim: Primitive) -> bool:
    """Return whether the row is for complex numbers, too: it does not say otherwise, and its value function takes them."""
    if "c" not in prim.accepts or not prim.differentiable:
        return False
    for sample in samples_of(prim)[:1]:
        if not sample.floating:
            return False
        try:
            prim.value(*_complex(sample).draw(), **sample.params)
        except TypeError:
            return False
    return True


def _complex(sample: Sample) -> Sample:
    return replace(sample, complex=True)


def every_sample(prim: Primitive) -> list[Sample]:
    """Real and complex samples, and those with a Python number for an operand."""
    plain = samples_of(prim)
    if prim.domain == "complex":
        return [_complex(s) for s in plain]
    return [
        *plain,
        *with_numbers(prim),
        *([_complex(s) for s in plain if s.may_be_complex] if accepts_complex(prim) else []),
    ]


def rulecheck(prim: Primitive, checks: Iterable[str] | None = None, samples: Iterable[Sample] | None = None) -> None:
    """Check a row of the table: yours, or one of chainrule's.

    Args:
        prim: the row, as the decorators of ``rules.kinds`` return it, or a function that those of
            ``chainrule.primitive`` return.
        checks: names from ``CHECKS``; all of them without it.
        samples: inputs to check with, instead of the row's own.

    Raises:
        AssertionError: naming the row, the operand, the sample and the two numbers that differ.

    >>> from chainrule._src.rules.primitive import TABLE
    >>> from chainrule.testing import rulecheck
    >>> rulecheck(TABLE["tanh"])
    """
    prim = getattr(prim, "row", prim)
    chosen = [CHECKS[name] for name in (CHECKS if checks is None else checks)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        for sample in every_sample(prim) if samples is None else samples:
            case = Case(prim, sample)
            for check in chosen:
                check(case)
