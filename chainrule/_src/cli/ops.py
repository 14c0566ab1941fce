"""``chainrule ops``: list and describe operations."""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections.abc import Iterable
from typing import Any

import numpy as np

from chainrule._src.api.declare import Operation
from chainrule._src.arrays.types import AnyArray, AnyFunction
from chainrule._src.cli.operations import (
    known_names,
    methods,
    names_of,
    numpy_names,
    operations,
    parts_of,
    primitive_named,
    without_module,
)
from chainrule._src.cli.outcome import OK, BadUsage, did_you_mean
from chainrule._src.cli.show import Console
from chainrule._src.rules.descriptions import description
from chainrule._src.rules.primitive import TABLE, Primitive, unsupported
from chainrule.testing.case import Case, as_tuple
from chainrule.testing.samples import samples_of

#: The kinds of operations, with a description of the local Jacobian.
KINDS = {
    "elementwise": "diagonal: an element of the result depends on the same element of each operand",
    "linear": "constant: elements are moved, summed or copied",
    "contraction": "bilinear: products summed over shared axes",
    "opaque": "anything: the rules are written by hand",
    "discrete": "none: the results are integers or booleans, without gradients",
    "composite": "composed of the operations above, and recorded as these",
}
_DTYPES = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


def run(options: Namespace) -> int:
    """List operations, or describe the named ones."""
    show = Console()
    if options.names:
        if options.like is not None or options.kind is not None:
            raise BadUsage("give names, or list operations with --like and --kind, but not both")
        for i, name in enumerate(options.names):
            if i:
                show.line()
            _describe(show, name, options.formula)
        return OK
    if options.formula:
        raise BadUsage("--formula needs the name of an operation, as in `chainrule ops exp --formula`")
    _list(show, options.like, options.kind)
    return OK


# -- lists --------------------------------------------------------------------------------------------------------------


def _list(show: Console, like: str | None, kind: str | None) -> None:
    if kind is not None and kind not in KINDS:
        raise BadUsage(f"there is no kind {kind!r}.{did_you_mean(kind, KINDS)} There are {', '.join(KINDS)}.")
    found = _by_kind(like, KINDS if kind is None else [kind])
    if not found:
        raise BadUsage(
            f"no operation {f'of the kind {kind} ' if kind else ''}has {like!r} in its name or description."
            + did_you_mean(like or "", known_names())
        )
    for each in found:
        if each != next(iter(found)):
            show.line()
        show.heading(f"{each} ({len(found[each])})")
        show.line(f"  {KINDS[each]}", "dim")
        show.line()
        if like is None and kind is None:
            show.columns(sorted(found[each]))
        else:
            show.pairs(sorted(found[each].items()))


def _by_kind(like: str | None, kinds: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return names with the first lines of their docstrings, by kind, filtered by ``like``."""
    found: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for name, prim in TABLE.items():
        if _matches(like, [name, *names_of(name)], prim.doc):
            found[prim.kind][name] = _first_line(prim.doc)
    for name, operation in operations().items():
        doc = operation.public.__doc__ or ""
        if primitive_named(name) is None and _matches(like, [name], doc):
            found["composite"][name] = _first_line(doc)
    return {kind: found[kind] for kind in kinds if found[kind]}


def _matches(like: str | None, names: list[str], doc: str) -> bool:
    return like is None or any(like.lower() in text.lower() for text in [*names, _first_line(doc)])


def _first_line(doc: str) -> str:
    return description(doc, "`").split("\n")[0]


# -- one operation --------------------------------------------------------------------------------------------------------


def _describe(show: Console, given: str, formula: bool) -> None:
    name = without_module(given)
    prim, names = primitive_named(name), names_of(name)
    if prim is None and not names:
        raise BadUsage(
            f"no operation is called {given!r}.{did_you_mean(name, known_names())} `chainrule ops` lists all, "
            "`chainrule ops --like TEXT` those with TEXT in their name or description"
        )
    if prim is None and formula:
        raise BadUsage(
            f"{name} is a composite without a formula of its own: `chainrule ops {name}` lists its primitives"
        )
    if prim is None:
        _describe_composite(show, names, operations()[names[0]])
    elif not formula:
        _describe_primitive(show, prim)
    else:
        for operand, text in prim.formula.items():
            show.line(f"{operand}: {text}")


def _describe_composite(show: Console, names: list[str], operation: Operation) -> None:
    show.heading(f"{names[0]}  (composite)")
    show.text(_first_line(operation.public.__doc__ or ""))
    show.line()
    show.pairs([("call", _signature(names[0], operation)), *_other_names(names[0], names)])
    found = parts_of(operation)
    if found is None:
        return
    arguments, parts = found
    show.line()
    call = f"{names[0]}({arguments})"
    if not parts:
        show.text(f"{call} records nothing: it returns the operand itself, or a result of NumPy without gradient.")
        return
    show.text(f"It has no rule of its own. {call} calls")
    show.pairs([(part.name, part) for part in parts], indent=4)
    few = list(dict.fromkeys(part.name for part in parts))[:4]
    show.text(f"For their rules, see `chainrule ops {' '.join(few)}`.")


def _describe_primitive(show: Console, prim: Primitive) -> None:
    names = names_of(prim.name)
    show.heading(f"{prim.name}  ({prim.kind})")
    show.text(description(prim.doc, "`"))
    show.line()
    public = "no public function: used by indexing, methods and other operations"
    facts = [
        ("call", _signature(names[0], operations()[names[0]]) if names else public),
        *_other_names(prim.name, names),
    ]
    facts.append(("operands", ", ".join(prim.operands)))
    if prim.parameters:
        facts.append(("parameters", ", ".join(prim.parameters)))
    if len(prim.outputs) > 1:
        facts.append(("outputs", ", ".join(prim.outputs)))
    facts += [("Jacobian", KINDS[prim.kind]), ("dtypes", _dtypes(prim))]
    if prim.kind != "discrete":
        facts += [("saves", ", ".join(prim.saves) or "nothing"), ("grad_fn", _grad_fn(prim)), ("rules", _rules(prim))]
    show.pairs(facts)
    _gradients(show, prim)
    _sample(show, prim)


def _signature(name: str, operation: Operation) -> str:
    signature = inspect.signature(operation.public)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return f"chainrule.{name}{signature.replace(parameters=plain, return_annotation=signature.empty)}"


def _other_names(primitive_name: str, names: list[str]) -> list[tuple[str, str]]:
    """Return other names: in chainrule's namespace, of methods, and of NumPy's functions that accept tensors."""
    others = (
        [f"chainrule.{name}" for name in names[1:]]
        + methods([*names, primitive_name])
        + numpy_names(primitive_name, names)
    )
    return [("also", ", ".join(others))] if others else []


def _dtypes(prim: Primitive) -> str:
    taken = ", ".join(_DTYPES[kind] for kind in _DTYPES if kind in prim.accepts)
    if prim.promotion == "float" and "i" in prim.accepts:
        taken += "; integers are converted to the default float dtype"
    return taken


def _grad_fn(prim: Primitive) -> str:
    try:
        return prim.node_name(dict(samples_of(prim)[0].params))
    except Exception:  # a name that depends on more than the parameters
        return "depends on the call"


def _rules(prim: Primitive) -> str:
    columns = {"JVP": prim.jvp, "batching": prim.batch}
    supported = ["value", *(["VJP"] if prim.vjps else [])]
    supported += [name for name, column in columns.items() if column is not None and not _refuses(column)]
    missing = [name for name, column in columns.items() if column is not None and _refuses(column)]
    extras = [word for word, yes in (("view", prim.view), ("index map", prim.moves)) if yes]
    text = ", ".join(supported + extras)
    return text + (f"; unsupported: {', '.join(missing)}" if missing else "")


def _refuses(column: AnyFunction) -> bool:
    return getattr(column, "__name__", "") == "raise_unsupported"


def _gradients(show: Console, prim: Primitive) -> None:
    if not prim.vjps:
        return
    show.line()
    whole = "out" if len(prim.outputs) == 1 else f"({', '.join(prim.outputs)})"
    show.line(f"  gradients, where g = ∂L/∂{whole}")
    rows = []
    for operand, rule in prim.vjps.items():
        text = f"unsupported: {rule.why}" if isinstance(rule, unsupported) else prim.formula.get(operand, "no formula")
        rows.append((f"∂L/∂{operand.lstrip('*')}", text))
    show.pairs(rows, indent=4)


# -- a sample -------------------------------------------------------------------------------------------------------------


def _sample(show: Console, prim: Primitive) -> None:
    """Print a numeric sample: operands, results, and gradients for the cotangent 1, 2, 3 ..."""
    case = _small_case(prim)
    if case is None:
        return
    outs = as_tuple(case.value(case.operands))
    facts: list[tuple[str, object]] = list(zip(_operand_names(case), map(_numbers, case.operands)))
    facts += [(name, value) for name, value in case.params.items()]
    facts += list(zip(prim.outputs, map(_numbers, outs)))
    if case.wanted:
        gs = [_numbered_cotangent(outs[i]) for i in case.differentiable_outputs()]
        facts += [("g" if len(gs) == 1 else f"g[{i}]", _numbers(g)) for i, g in enumerate(gs)]
        for i, g in zip(case.wanted, case.pull(case.operands, gs)):
            facts.append((f"∂L/∂{_operand_names(case)[i]}", "0" if g is None else _numbers(g)))
    show.line()
    show.line("  sample")
    show.pairs(facts, indent=4)


def _numbered_cotangent(out: AnyArray) -> Any:
    """Return a cotangent with distinct elements: 1, 2, 3 ..."""
    return np.arange(1, np.size(out) + 1, dtype=out.dtype).reshape(np.shape(out))


def _operand_names(case: Case) -> list[str]:
    if case.prim.variadic:
        return [f"{name.lstrip('*')}{i}" for i, name in enumerate(case.names)]
    return list(case.names)


def _small_case(prim: Primitive) -> Case | None:
    """Return the first sample with 2 to 24 numbers, otherwise the smallest sample."""
    try:
        cases = [Case(prim, sample) for sample in samples_of(prim)]
    except ValueError:
        return None
    full = [case for case in cases if all(np.size(x) for x in case.operands)]
    few = [case for case in full if max(map(np.size, case.operands)) > 1 and _size(case) <= 24]
    return few[0] if few else min(full, key=_size, default=None)


def _size(case: Case) -> int:
    return sum(map(np.size, case.operands))


def _numbers(x: object) -> str:
    if not isinstance(x, (np.ndarray, np.generic)):
        return repr(x)
    x = np.asarray(x)
    return np.array2string(x, precision=4, separator=", ", threshold=24, max_line_width=60)
