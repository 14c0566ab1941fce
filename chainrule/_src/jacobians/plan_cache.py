"""Reuse the structure of a Jacobian in later calls of ``jacobian`` with the same function.

Every call runs the function and computes the signature of its trace. If a signature has occurred in two long calls, or in many
short ones, the NumPy calls that compute the numbers of the terms are recorded and compiled to a plan (``term_plans``). This takes
as long as about four calls. The plan computes the numbers in later calls with this signature. If the function takes another
branch, or reads other indices or globals, its trace has another signature, and the terms are propagated as in a first call.

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


#: the work (steps times entries) of calls with one signature after which a plan is recorded; each call counts at most half of it
WORK_BEFORE = 1 << 20
#: factor of ``WORK_BEFORE`` for a signature whose plan was recorded and dropped
AGAIN = 8
#: the number of entries whose computation takes as long as the Python code of a step
_STEP = 2000
#: maximum number of plans of one function, of signatures of one function whose work is counted, and of bytes of all plans
MOST_PLANS, MOST_COUNTED, MOST_BYTES = 8, 32, 1 << 28
#: maximum work of a trace that is recorded: recording keeps all intermediate numbers
_MOST_WORK = 1 << 26

#: the key of a plan: options, the key of the signature, digests of the arrays that were read
PlanKey = tuple[Hashable, Hashable, tuple[bytes, ...]]

_LOCK = threading.Lock()
_clock = itertools.count(1).__next__


class _FunctionPlans:
    """The plans of one function.

    Attributes:
        works: the work of the calls so far, by the hash of the plan's key.
        plans: the plans by key; None for a signature that cannot be recorded.
        reads: by the key of a signature, the indices of the arrays that rules read: their content is a part of the plan's key.
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
        """Add a plan. Drop the least recently used plan if there are too many."""
        self.plans[key] = plan
        self.works[hash(key)] = (1 - AGAIN) * WORK_BEFORE
        while len(self.plans) > MOST_PLANS:
            (_, signature, _), _ = self.plans.popitem(last=False)
            if not any([other[1] == signature for other in self.plans]):
                self.reads.pop(signature, None)

    def count(self, key: PlanKey, work: int) -> None:
        """Add the work of a call without a plan."""
        number = hash(key)
        self.works[number] = self.works.get(number, 0) + min(work, WORK_BEFORE // 2)
        self.works.move_to_end(number)
        if len(self.works) > MOST_COUNTED:
            self.works.popitem(last=False)


#: the plans by the code object of the function
_FUNCTIONS: weakref.WeakKeyDictionary[CodeType, _FunctionPlans] = weakref.WeakKeyDictionary()


class PlanLookup:
    """The lookup of a plan for one trace.

    Attributes:
        patterns: the sparsity patterns of the plan that computed the terms; None if no plan did.
    """

    def __init__(self, trace: JacobianTrace, signature: TraceSignature, cache: _FunctionPlans, memory: int) -> None:
        self.trace, self.signature, self.cache, self.memory = trace, signature, cache, memory
        self.patterns: dict[Any, Any] | None = None
        self.key: PlanKey = (None, None, ())

    def terms(self, options: Hashable) -> TermGrid | None:
        """Return the terms of the trace, computed by a plan; None if they must be propagated."""
        cache, signature = self.cache, self.signature
        with _LOCK:
            self.key = cache.key_of((options, self.memory), signature)
            plan = cache.plans.get(self.key)
            worked = cache.works.get(hash(self.key), 0)
            records = plan is None and self.key not in cache.plans and worked >= WORK_BEFORE
            if plan is not None:
                cache.plans.move_to_end(self.key)
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
        """Return whether an operand was written to after its use. Eager code then raises, or chooses another strategy."""
        try:
            for step in self.trace.steps:
                step.check_unwritten()
        except RuntimeError:
            return True
        return False

    def _recorded(self) -> TermGrid | None:
        """Record a plan, and return the terms that the recording computed; None if the calls cannot be recorded."""
        module = importlib.import_module("chainrule._src.jacobians.term_plans")
        try:
            plan, found, reads = module.record_plan(self.trace, self.signature.arrays, self.memory)
        except Exception:  # a rule that reads numbers, for example; eager code raises its own errors
            plan, found, reads = None, None, ()
        cache, signature = self.cache, self.signature
        with _LOCK:
            if reads:
                before = cache.reads.get(signature.key, ())
                cache.reads[signature.key] = tuple(sorted({*before, *reads}))
                self.key = cache.key_of(self.key[0], signature)
            cache.add(self.key, plan)
            if plan is not None:
                plan.last_use = _clock()
                _evict_to(MOST_BYTES)
        if plan is not None:
            self.trace.strategy = FORWARD
        return found

    def note_propagated(self, found: TermGrid) -> None:
        """Count the work of a call whose terms were propagated without a plan."""
        entries = sum([term.cols.size for row in found for terms in row for term in terms])
        work = len(self.trace.steps) * (entries + _STEP)
        if self.trace.strategy == FORWARD and work <= _MOST_WORK:
            with _LOCK:
                self.cache.count(self.key, work)


def clear_plans() -> None:
    """Drop all plans, so that the next calls are first calls."""
    with _LOCK:
        _FUNCTIONS.clear()


def _evict_to(most: int) -> None:
    """Drop the least recently used plans until all plans take at most this number of bytes."""
    every = [
        (plan.last_use, plan.nbytes, cache, key)
        for cache in _FUNCTIONS.values()
        for key, plan in cache.plans.items()
        if plan
    ]
    total = sum([nbytes for _, nbytes, _, _ in every])
    for _, nbytes, cache, key in sorted(every, key=lambda item: item[0]):
        if total <= most:
            return
        total -= nbytes
        if nbytes > most:
            cache.plans[key] = None
        else:
            del cache.plans[key]


def lookup_plan(trace: JacobianTrace, memory: int) -> PlanLookup | None:
    """Return a lookup for a trace; None if its function has no code object, or the trace no signature."""
    code = code_of(trace.function)
    signature = None if code is None else signature_of(trace)
    if code is None or signature is None:
        return None
    with _LOCK:
        cache = _FUNCTIONS.get(code)
        if cache is None:
            cache = _FUNCTIONS[code] = _FunctionPlans()
    return PlanLookup(trace, signature, cache, memory)
