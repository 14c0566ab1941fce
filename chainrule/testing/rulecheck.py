"""``rulecheck``: check all rules of an op definition (primitive) against its value rule.

``rulecheck(primitive)`` runs the checks in ``CHECKS`` on all samples of the op (see ``samples``). Derivatives are compared
with finite differences of the values, forward mode with reverse mode, and batches with loops; no formula is repeated.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from chainrule._src.messages import errors
from chainrule._src.rules.primitive import Primitive
from chainrule.testing.case import Case
from chainrule.testing.check_batches import check_batch, check_batched_derivatives
from chainrule.testing.check_derivatives import check_adjoint, check_jvp, check_second_order, check_vjp
from chainrule.testing.check_properties import (
    check_dtype,
    check_formula,
    check_function,
    check_moves,
    check_saves,
    check_value,
)
from chainrule.testing.samples import Sample, samples_of, with_numbers

#: The checks of ``rulecheck``, by name.
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
    "public_function": check_function,
}
#: former names of checks
_RENAMED = {"face": "public_function"}


def accepts_complex(prim: Primitive) -> bool:
    """Return whether the op accepts complex numbers: by its declaration, and by calling its value rule."""
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
    """Return real and complex samples, and samples with a Python number as operand."""
    plain = samples_of(prim)
    if prim.domain == "complex":
        return [_complex(s) for s in plain]
    return [
        *plain,
        *with_numbers(prim),
        *([_complex(s) for s in plain if s.may_be_complex] if accepts_complex(prim) else []),
    ]


def rulecheck(prim: Primitive, checks: Iterable[str] | None = None, samples: Iterable[Sample] | None = None) -> None:
    """Check the rules of an op: yours, or one of chainrule's.

    Args:
        prim: a primitive, from the decorators of ``rules.kinds``, or a function from the decorators of
            ``chainrule.primitive``.
        checks: names from ``CHECKS``; by default all.
        samples: inputs to check with, instead of the op's own samples.

    Raises:
        AssertionError: a check failed; the message names the op, the operand, the sample and the two numbers.

    >>> from chainrule._src.rules.primitive import TABLE
    >>> from chainrule.testing import rulecheck
    >>> rulecheck(TABLE["tanh"])
    """
    prim = getattr(prim, "row", prim)
    chosen = [CHECKS[_current_name(name)] for name in (CHECKS if checks is None else checks)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        for sample in every_sample(prim) if samples is None else samples:
            case = Case(prim, sample)
            for check in chosen:
                check(case)


def _current_name(name: str) -> str:
    """Return the name of a check; warn for a former name."""
    if name not in _RENAMED:
        return name
    errors.warn(f"the check {name!r} of rulecheck is deprecated; use {_RENAMED[name]!r}", DeprecationWarning)
    return _RENAMED[name]
