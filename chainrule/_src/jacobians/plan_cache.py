"""Reuse the structure of a Jacobian in later calls of ``jacobian`` with the same function.

Every call runs the function and computes the signature of its trace. If a signature has occurred in two long calls, or in many
short ones, the calls that compute the numbers of the terms are recorded and compiled (``term_plans``). This takes as long as about
four calls. From then on the plan computes the numbers in calls with that signature. A function that branches, or reads other
indices or globals, has another signature, and its terms are propagated as in a first call.

``api`` and ``compute_terms`` call ``lookup_plan``. Plans belong to the code of the function, and are freed with it.
"""

from __future__ import annotations

import importlib
import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from types import CodeType
from typing import TYPE_CHECKING, Any

from chainrule._src.jacobians.strategy import FORWARD
from chainrule._src.jacobians.terms import TermGrid
from chainrule._src.jacobians.trace import JacobianTrace
from chainrule._src.jacobians.trace_signature import TraceSignature, code_of, digest_of, signature_of

if TYPE_CHECKING:
    from chainrule._src.jacobians.term_plans import TermPlan


#: A plan is recorded when the calls with its signature did this work: steps times entries, of which each call counts at most half.
WORK_BEFORE = 1 << 20
#: factor of the work before a signature is recorded again, whose plan was dropped
AGAIN = 8
#: entries that take as long as the Python code of a step
_STEP = 2000
#: most plans of one function, most signatures whose work is counted, most bytes of all plans
MOST_PLANS, MOST_COUNTED, MOST_BYTES = 8, 32, 1 << 28
#: most steps times entries of a trace that is recorded, which keeps all intermediate numbers meanwhile
_MOST_WORK = 1 << 26

#: the key of a plan: options, the key of the signature, digests of the arrays that were read
PlanKey = tuple[Hashable, Hashable, tuple[bytes, ...]]

_LOCK = threading.Lock()
_clock = itertools.count(1).__next__


class _FunctionPlans:
    """The plans of one function.

    Attributes:
        works: the work of all calls so far, by the hash of the key.
        plans: by key; None for a signature that cannot be recorded.
        reads: by the key of a signature: the indices of its arrays whose content is a part of the plan's key.
    """

    def __init__(self) -> None:
        self.works: OrderedDict[int, int] = OrderedDict()
        self.plans: OrderedDict[PlanKey, TermPlan | None] = OrderedDict()
        self.reads: dict[Hashable, tuple[int, ...]] = {}

    def key_of(self, options: Hashable, signature: TraceSignature) -> PlanKey:
        """Return the key of the plan for a signature."""
        contents = [digest_of(signature.arrays[k]) for k in self.reads.get(signature.key, ())]
        return options, signature.key, tuple(contents)

    def add(self, key: PlanKey, plan: TermPlan | None) -> None:
        """Add a plan, and drop the plan that was not used for the longest time if there are too many."""
        self.plans[key] = plan
        self.works[hash(key)] = (1 - AGAIN) * WORK_BEFORE
        while len(self.plans) > MOST_PLANS:
            (_, signature, _), _ = self.plans.popitem(last=False)
            if not any([other[1] == signature for other in self.plans]):
                self.reads.pop(signature, None)

    def count(self, key: PlanKey, work: int) -> None:
        """Count the work of a call."""
        number = hash(key)
        self.works[number] = self.works.get(number, 0) + min(work, WORK_BEFORE // 2)
        self.works.move_to_end(number)
        if len(self.works) > MOST_COUNTED:
            self.works.popitem(last=False)


#: by the code object of the function
_FUNCTIONS: weakref.WeakKeyDictionary[CodeType, _FunctionPlans] = weakref.WeakKeyDictionary()


class PlanLookup:
    """The lookup of a plan for one trace.

    Attributes:
        patterns: the patterns of the plan that computed the terms; None if there is none.
    """

    def __init__(self, trace: JacobianTrace, signature: TraceSignature, known: _FunctionPlans, memory: int) -> None:
        self.trace, self.signature, self.known, self.memory = trace, signature, known, memory
        self.patterns: dict[Any, Any] | None = None
        self.key: PlanKey = (None, None, ())

    def terms(self, options: Hashable) -> TermGrid | None:
        """Return the terms of the trace, computed by a plan; None if they must be propagated."""
        known, signature = self.known, self.signature
        with _LOCK:
            self.key = known.key_of((options, self.memory), signature)
            plan = known.plans.get(self.key)
            worked = known.works.get(hash(self.key), 0)
            records = plan is None and self.key not in known.plans and worked >= WORK_BEFORE
            if plan is not None:
                known.plans.move_to_end(self.key)
                plan.last_use = _clock()
        if (plan is None and not records) or self._is_written():
            return None
        if plan is None:
            return self._recorded()
        found = plan.terms(signature.arrays)
        if found is not None:
            self.patterns = plan.patterns
            self.trace.strategy = FORWARD
        return found

    def _is_written(self) -> bool:
        """Return whether a constant was written after its use, for which eager code raises or chooses another strategy."""
        try:
            for step in self.trace.steps:
                step.check_unwritten()
        except RuntimeError:
            return True
        return False

    def _recorded(self) -> TermGrid | None:
        """Record a plan, and return the terms that were computed meanwhile; None if they cannot be recorded."""
        module = importlib.import_module("chainrule._src.jacobians.term_plans")
        try:
            plan, found, reads = module.record_plan(self.trace, self.signature.arrays, self.memory)
        except Exception:  # a rule that reads numbers, for example; eager code raises its own errors
            plan, found, reads = None, None, ()
        known, signature = self.known, self.signature
        with _LOCK:
            if reads:
                before = known.reads.get(signature.key, ())
                known.reads[signature.key] = tuple(sorted({*before, *reads}))
                self.key = known.key_of(self.key[0], signature)
            known.add(self.key, plan)
            if plan is not None:
                plan.last_use = _clock()
                _evict_to(MOST_BYTES)
        if plan is not None:
            self.trace.strategy = FORWARD
        return found

    def note_propagated(self, found: TermGrid) -> None:
        """Count a call whose terms were propagated."""
        entries = sum([term.cols.size for row in found for terms in row for term in terms])
        work = len(self.trace.steps) * (entries + _STEP)
        if self.trace.strategy == FORWARD and work <= _MOST_WORK:
            with _LOCK:
                self.known.count(self.key, work)


def clear_plans() -> None:
    """Drop all plans, so that the next calls are first calls."""
    with _LOCK:
        _FUNCTIONS.clear()


def _evict_to(most: int) -> None:
    """Drop the plans that were not used for the longest time, until all plans take at most this number of bytes."""
    every = [
        (plan.last_use, plan.nbytes, known, key)
        for known in _FUNCTIONS.values()
        for key, plan in known.plans.items()
        if plan
    ]
    total = sum([nbytes for _, nbytes, _, _ in every])
    for _, nbytes, known, key in sorted(every, key=lambda item: item[0]):
        if total <= most:
            return
        total -= nbytes
        if nbytes > most:
            known.plans[key] = None
        else:
            del known.plans[key]


def lookup_plan(trace: JacobianTrace, memory: int) -> PlanLookup | None:
    """Return a lookup for a trace; None if its function has no code object, or the trace no signature."""
    code = code_of(trace.function)
    signature = None if code is None else signature_of(trace)
    if code is None or signature is None:
        return None
    with _LOCK:
        known = _FUNCTIONS.get(code)
        if known is None:
            known = _FUNCTIONS[code] = _FunctionPlans()
    return PlanLookup(trace, signature, known, memory)
