"""Check that ``rulecheck`` detects wrong rules: each rule of each primitive is mutated and must fail.

It uses the samples of the default test runs (``chosen_samples``).

``python -m tests.table.mutate [row ...]`` (``make mutate``) prints the rules that could be multiplied by 3 without
detection: rules that are never called, or that no sample of the primitive tests.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

import chainrule._src.table
from chainrule._src.rules.primitive import TABLE, Primitive, unsupported
from chainrule.testing.rulecheck import rulecheck
from tests.table.chosen import chosen_samples


class Mutant(NamedTuple):
    """A primitive with one wrong rule."""

    name: str
    rule: str
    row: Primitive

    def survives(self) -> bool:
        """Return whether ``rulecheck`` passes."""
        try:
            rulecheck(self.row, samples=chosen_samples(self.row))
        except Exception:  # a failed check, or an exception in the rule
            return False
        return True


def mutants(row: Primitive) -> Iterator[Mutant]:
    """Yield the primitive with each of its rules times 3 (a partial of 0: plus 1; a value: times 3 plus 1)."""
    assert row.declared is not None
    kind, function, options = row.declared

    def mutant(rule: str, **changed: Any) -> Mutant:
        value = changed.pop("function", function)
        return Mutant(row.name, rule, kind(**{**options, **changed, "listed": False})(value))

    for column in ("d", "vjp", "transpose", "shared", "jvp"):
        cells = options.get(column)
        if callable(cells):
            yield mutant(column, **{column: _wrong(cells)})
        elif isinstance(cells, Mapping):
            for name, cell in cells.items():
                if not isinstance(cell, unsupported):
                    yield mutant(f"{column}[{name}]", **{column: {**cells, name: _wrong(cell)}})
    if options.get("batch") and options["batch"].__module__ != "chainrule._src.rules.batching":
        yield mutant("batch", batch=_wrong(options["batch"]))
    if options.get("value"):
        if row.ufunc is None or options["value"] is not row.ufunc:
            yield mutant("value", value=_wrong(options["value"], 1))
    elif row.ufunc is None and row.differentiable and row.kind != "contraction" and not _is_step(options.get("d")):
        yield mutant("value", function=_wrong(function, 1))
    if row.kind == "contraction":  # the subscripts define its rules
        for i, operand in enumerate(row.operands):
            yield _with_column(mutant(f"pullback[{operand}]"), "pullback", _only(i))
        yield _with_column(mutant("jvp"), "jvp", _thrice)
        yield _with_column(mutant("batch"), "batch", _thrice)


def _is_step(partials: Any) -> bool:
    """Return whether all partials are 0, also for a wrong value: the tests of the operation check the value."""
    return bool(partials) and all(partial == 0 for partial in dict(partials).values())


def _wrong(cell: Any, more: int = 0) -> Any:
    if not callable(cell):
        return 3 * cell if cell else 1

    @functools.wraps(cell)
    def wrong(*args: Any, **params: Any) -> Any:
        return _thrice(cell(*args, **params), more)

    return wrong


def _thrice(result: Any, more: int = 0) -> Any:
    if isinstance(result, tuple):
        return tuple([_thrice(r, more) for r in result])
    if result is None:
        return None
    return np.logical_not(result) if getattr(result, "dtype", np.dtype(float)).kind == "b" else 3 * result + more


def _only(i: int) -> Callable[[Any], Any]:
    return lambda results: tuple([_thrice(r) if k == i else r for k, r in enumerate(results)])


def _with_column(mutant: Mutant, column: str, spoil: Callable[[Any], Any]) -> Mutant:
    right = getattr(mutant.row, column)
    object.__setattr__(mutant.row, column, lambda *args: spoil(right(*args)))
    return mutant


def every_mutant(names: list[str] | None = None) -> Iterator[Mutant]:
    """Yield the mutants of the named primitives, or of all."""
    for module in pkgutil.iter_modules(chainrule._src.table.__path__):
        importlib.import_module(f"chainrule._src.table.{module.name}")
    for name in names or sorted(TABLE):
        yield from mutants(TABLE[name])


def main(names: list[str]) -> int:
    """Print the survivors; return 1 if there are any."""
    start, survivors, n = time.perf_counter(), [], 0
    for mutant in every_mutant(names):
        n += 1
        if mutant.survives():
            survivors.append(mutant)
            print(f"{mutant.name:28} {mutant.rule}", flush=True)
    print(f"{len(survivors)} of {n} wrong rules found by no check, in {time.perf_counter() - start:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
