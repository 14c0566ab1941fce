"""Fold the steps of a long pass by the structure of the program: terms of the loss, functions, lines, repetitions.

``to_dict`` calls ``folds_of``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import JSONObject
from chainrule._src.explaining.calls import frames_of
from chainrule._src.explaining.contributions import (
    Contributions,
    grouped_terms,
    inner_product,
    joint_norm,
)
from chainrule._src.explaining.diagnosis.source import SourceLine, line_of
from chainrule._src.explaining.folding import fold_repeats
from chainrule._src.explaining.json_values import finite_or_none
from chainrule._src.explaining.recorded_pass import RecordedPass
from chainrule._src.explaining.steps import Step
from chainrule._src.messages.source_locations import Where

_LISTED = 24  # most steps of a line before repetitions are folded
_PATTERN = 6  # most operations of a repetition in its name

Key = tuple[str, str, Any]  # "term", "function" or "line"; its name; its line


def folds_of(e: RecordedPass, by_term: Contributions) -> list[int | JSONObject]:
    """Return a nested list of step numbers, and of dicts for folds.

    A fold has ``what`` ("term", "function", "line" or "repeat"), ``name``, ``line``, ``steps`` (the count), ``first`` (its first
    step in the pass), ``shape`` and ``norm`` of that step's cotangent, ``share`` (of all gradients together), ``shares`` (of each
    leaf's gradient) and ``inside``, its contents. Shares count the cotangents that its steps send to leaves.
    """
    return _Folding(e, by_term).found


class _Folding:
    def __init__(self, e: RecordedPass, by_term: Contributions) -> None:
        self.e = e
        self.sent = _sent(e)
        self.squares = {v.name: inner_product(v.gradient, v.gradient) for v in e.wrt if v.gradient is not None}
        terms = [group for *_, group in grouped_terms(e)]
        masks = _masks(e, terms)
        names = [part.name for part in by_term.parts[: len(terms)]]
        paths = [[_term(masks[step.index], names), *_frames(e, step)][len(names) < 2 :] for step in e.steps]
        self.found = list(self._grouped([*range(len(e.steps))], paths, 0))

    def _grouped(self, members: list[int], paths: Sequence[Sequence[Key]], depth: int) -> Iterator[int | JSONObject]:
        """Group steps by the key at this depth; skip a level with a single group."""
        groups: dict[Key | None, list[int]] = {}
        while True:
            groups = {}
            for at in members:
                groups.setdefault(paths[at][depth] if depth < len(paths[at]) else None, []).append(at)
            if len(groups) > 1 or None in groups:
                break
            depth += 1
        if set(groups) == {None}:
            yield from self._repeats(members)
            return
        for key, group in groups.items():
            if key is None or len(group) == 1:
                yield from (at + 1 for at in group)
            else:
                what, name, line = key
                yield self._fold(what, name, line, group, list(self._grouped(group, paths, depth + 1)))

    def _repeats(self, members: list[int]) -> Iterator[int | JSONObject]:
        steps = [self.e.steps[at] for at in members]
        if len(steps) <= _LISTED:
            yield from (at + 1 for at in members)
            return
        for start, stop, times in fold_repeats([(step.op, step.output.shape) for step in steps], _LISTED):
            group = members[start:stop]
            if times == 1:
                yield from (at + 1 for at in group)
                continue
            pattern = [step.op for step in steps[start : start + (stop - start) // times]]
            name = ", ".join(pattern[:_PATTERN]) + ", …" * (len(pattern) > _PATTERN)
            found = self._fold("repeat", f"{times} × ({name})", None, group, [at + 1 for at in group])
            yield found | {"times": times}

    def _fold(
        self, what: str, name: str, line: SourceLine | None, group: list[int], inside: Sequence[object]
    ) -> JSONObject:
        first, sent = self.e.steps[group[0]], Counter[str]()
        for at in group:
            sent.update(self.sent.get(at + 1, {}))
        total = sum(self.squares.values())
        return {
            "what": what,
            "name": name,
            "line": None if line is None else line._asdict(),
            "steps": len(group),
            "first": first.index,
            "shape": list(first.output.shape),
            "norm": finite_or_none(joint_norm([first.upstream])),
            "share": sum(sent.values()) / total if 0 < total < np.inf else None,
            "shares": {leaf: sent[leaf] / x for leaf, x in self.squares.items() if leaf in sent and 0 < x < np.inf},
            "inside": inside,
        }


def _sent(e: RecordedPass) -> dict[int, dict[str, float]]:
    """Map (step, leaf) to the inner product of the step's contribution with the leaf's gradient."""
    found: dict[int, dict[str, float]] = {}
    for value in e.wrt:
        for index, _, g in e.terms_of(value) if value.gradient is not None else ():
            by_leaf = found.setdefault(index, {})
            by_leaf[value.name] = by_leaf.get(value.name, 0.0) + inner_product(g, value.gradient)
    return found


def _masks(e: RecordedPass, terms: Sequence[Sequence[tuple[object, object]]]) -> dict[int, frozenset[int]]:
    """Return for each step the indices of the terms that it belongs to."""
    reached: dict[object, frozenset[int]] = {}
    for k, group in enumerate(terms):
        for edge, _ in group:
            reached[edge] = reached.get(edge, frozenset()) | {k}
    found = {}
    for step in e.steps:
        ours = frozenset[int]().union(*(reached.get(value.edge, frozenset()) for value in step.outputs))
        found[step.index] = ours
        for arrow in step.arrows:
            reached[arrow.input.edge] = reached.get(arrow.input.edge, frozenset()) | ours
    return found


def _term(mask: frozenset[int], names: Sequence[str]) -> Key:
    if len(mask) == 1:
        return "term", names[min(mask)], None
    if not mask:
        return "term", "the sum of the terms", None
    return (
        "term",
        "shared by " + ("all terms" if len(mask) == len(names) else ", ".join(names[k] for k in sorted(mask))),
        None,
    )


def _frames(e: RecordedPass, step: Step) -> Iterator[Key]:
    """Yield the functions, and their lines, that were running when an operation was recorded; at least the innermost."""
    for code, at in frames_of(step.record.node, e._values.stacks):
        where = Where(code, at)
        if code is not None:
            line = line_of(where)
            name = code.co_qualname.replace("<locals>.", "")
            yield "function", name if name != "<module>" else "the script", None
            yield "line", str(where), line
