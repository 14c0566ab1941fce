"""``Value`` and ``Values``: the names and numbers of the arrays of an explained graph.

A node saves only the values that its rule reads, so the value of an intermediate result may be gone. ``Values.finish`` searches the
user's variables and the values saved by neighbouring nodes, and recomputes a value if all its operands are known.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, DTypeLike, NumpyArray, Saved
from chainrule._src.explaining.calls import assigned_names
from chainrule._src.explaining.diagnosis.names import Names
from chainrule._src.explaining.diagnosis.source import SourceLine
from chainrule._src.explaining.notation import bar
from chainrule._src.explaining.sweep import RuleRecord
from chainrule._src.tape.node import Edge, Leaf, Node

ndarray = np.ndarray
_KEPT = 64 * 2**20  # most bytes of values that are copied to protect an explanation from later writes
_AGAIN = 10**6  # most elements of a value that is recomputed


class Value:
    """One array of an explained graph.

    Attributes:
        id: "v0", "v1" ...: unique in its explanation.
        name: the user's variable; else "t1", "t2" ... for results, in order of creation, "c1" ... for constants, or the text
            of a plain number.
        shape, dtype: of the value.
        data: the value; None if it is no longer available.
        role: "output", "leaf", "intermediate" or "constant".
        gradient: its whole cotangent, ∂L/∂value; None for constants.
        why_constant: for a constant, the reason why no gradient flows to it.
        line: the line of the program that made it, if known.
    """

    __module__ = "chainrule.explaining"

    def __init__(self, edge: Any, role: str, shape: tuple[int, ...], dtype: DTypeLike, data: object = None) -> None:
        self.edge = edge
        self.role = role
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.data: Any = data
        self.id = self.name = self.identifier = ""
        self.gradient: Any = None
        self.why_constant: str | None = None
        self.line: SourceLine | None = None

    @property
    def bar(self) -> str:
        """The name of its cotangent: its identifier with a bar."""
        return bar(self.identifier)

    def __repr__(self) -> str:
        return f"<{self.role} {self.name}: {self.dtype} {self.shape}>"


class Values:
    """All values of one explanation: by edge; constants by edge, number or id of the array."""

    def __init__(
        self,
        names: Names,
        given: dict[Any, str],
        known: dict[Edge, AnyArray],
        stacks: Mapping[Node, tuple[object, ...]] | None = None,
    ) -> None:
        self.names = names
        self.stacks = stacks or {}  # node -> the program's frames at it, outermost first, if they were recorded
        self.given = given
        self.known = known  # edge -> data
        self.by_edge: dict[Edge, Value] = {}
        self.constants: dict[Any, Value] = {}
        self.held: set[Edge] = set()  # edges of values that a variable holds, or held when its function returned
        self.copies: dict[int, tuple[NumpyArray, NumpyArray]] = {}  # id of an array -> itself, its copy
        self.bytes = 0

    def all(self) -> list[Value]:
        return [*self.by_edge.values(), *self.constants.values()]

    def at(self, edge: Edge, shape: tuple[int, ...] = (), dtype: DTypeLike = None) -> Value:
        """Return the value of an edge, whose shape and dtype are those of its cotangent; create it on first use."""
        value = self.by_edge.get(edge)
        if value is None:
            role = "leaf" if type(edge) is Leaf else "intermediate"
            value = self.by_edge[edge] = Value(edge, role, tuple(shape), dtype)
        return value

    def constant(self, data: Any, why: str, edge: object = None) -> Value:
        """Return the value of a constant, to which no gradient flows; create it on first use."""
        plain = isinstance(data, (bool, int, float, complex))
        key = edge if edge is not None else (type(data), data) if plain else id(data)
        if key not in self.constants:
            dtype = getattr(data, "dtype", None) or np.asarray(data).dtype
            value = Value(edge, "constant", shape_of(data), dtype, data if plain else self.copy(data))
            value.why_constant = why
            name = self.names.of(edge) if edge is not None else None
            name = name or (None if plain else self.given.get(id(data)) or self.names.of(data))
            value.name = name or (
                f"{np.asarray(data).item():.6g}" if value.shape == () and dtype.kind in "biuf" else ""
            )
            self.constants[key] = value
        return self.constants[key]

    def copy(self, data: AnyArray) -> Any:
        """Return a copy of an array, so that later writes do not change it; the array itself beyond ``_KEPT`` bytes."""
        if type(data) is not ndarray:
            return data
        kept = self.copies.get(id(data))
        if kept is None:
            if self.bytes + data.nbytes > _KEPT:
                return data
            self.bytes += data.nbytes
            kept = self.copies[id(data)] = (data, data.copy())
        return kept[1]

    def finish(self, records: Sequence[RuleRecord]) -> None:
        """Find the data, and give every value its id, name and line."""
        self._recall(records)
        made = sorted(self.by_edge.values(), key=lambda v: (v.edge.seq, getattr(v.edge, "index", 0)))
        held = {e: name for e in self.by_edge if (name := self.given.get(e) or self.names.of(e))}
        leaves = [edge for edge in self.by_edge if type(edge) is Leaf]
        kept = assigned_names([record.node for record in reversed(records)], leaves, held, self.stacks)
        self.held = {*held, *(edge for edge, (_, once) in kept.items() if once)}
        for value in made:
            value.name = held.get(value.edge) or kept.get(value.edge, ("",))[0]
            value.line = self.names.line(value.edge)
        values = [*made, *self.constants.values()]
        taken, seen = {value.name for value in values}, set[str]()
        counts = {"t": itertools.count(1), "c": itertools.count(1)}
        for i, value in enumerate(values):
            value.id = f"v{i}"
            letter = "c" if value.role == "constant" else "t"
            name = value.name or next(n for k in counts[letter] if (n := f"{letter}{k}") not in taken)
            if name in seen:
                name = next(n for k in itertools.count(1) if (n := f"{name}_{k}") not in taken | seen)
            value.name = name
            value.identifier = identifier(value.name)
            seen.add(value.name)

    def _recall(self, records: Sequence[RuleRecord]) -> None:
        """Set the data of values: from the user's variables, from saved values, or by recomputation."""
        known = self.known
        for edge in self.by_edge:
            found = self.names.find(edge)
            if found is not None:
                known.setdefault(edge, found.thing._raw)
            elif type(edge) is Leaf:
                known.setdefault(edge, edge.data)
        for record in records:
            for edge, data in saved_values(record.node, record.saved):
                known.setdefault(edge, data)
        for record in reversed(records):  # oldest first
            node, size = record.node, getattr(record.g, "size", _AGAIN + 1)
            single = "_outputs" not in node.params and node.prim.name != "copy_slices"
            if single and node not in known and size <= _AGAIN:
                value = compute_value(node, operands_of(record, known))
                if value is not None and value.shape == record.g.shape:
                    known[node] = value.astype(record.g.dtype, copy=False)
        for edge, value in self.by_edge.items():
            data = known.get(edge)
            if type(data) is ndarray and data.shape == value.shape:
                value.data = self.copy(data)


def identifier(name: str) -> str:
    """Return a name as an identifier: ``params["w"]`` becomes ``params_w``."""
    found = re.sub(r"\W+", "_", name).strip("_")
    return f"c_{found}" if found[:1].isdigit() else found


def saved_operands(node: Node, saved: Saved) -> dict[int, Any]:
    """Return the operands that a node has saved, by position; empty if the saved values were freed."""
    prim = node.prim
    if prim.kind == "function" or len(saved) != len(prim.saves):
        return {}
    found = {at: data for at, data in zip(prim.save_from, saved) if at >= 0 and data is not None}
    if prim.variadic:
        found = dict(enumerate(found[0])) if type(found.get(0)) in (tuple, list) else {}
    return found


def saved_values(node: Node, saved: tuple[object, ...]) -> Iterable[tuple[Any, Any]]:
    """Yield the edges whose values a node has saved, with the values."""
    yield from ((node.edges[i], data) for i, data in saved_operands(node, saved).items() if node.edges[i] is not None)
    prim = node.prim
    if prim.kind != "function" and len(saved) == len(prim.saves):
        outputs = {prim.outputs[edge.index] if edge is not node else None: edge for edge in node_outputs(node)}
        for name, at, data in zip(prim.saves, prim.save_from, saved):
            edge = outputs.get(None) or outputs.get(name)
            if at < 0 and data is not None and edge is not None:
                yield edge, data


def node_outputs(node: Node) -> list[Any]:
    """Return the edges of a node's outputs that are still alive."""
    if "_outputs" not in node.params:
        return [node]
    found = [ref() for ref in getattr(node, "outs", {}).values()]
    return sorted((o for o in found if o is not None), key=lambda o: o.index)


def compute_value(node: Node, operands: Sequence[object]) -> Any:
    """Compute a node's value from its operands; return None if an operand is unknown or the computation fails."""
    if node.prim.kind == "function" or any(x is None for x in operands):
        return None
    try:
        with np.errstate(all="ignore"):
            return np.asarray(node.prim.value(*operands, **node.params))
    except Exception:  # an operand was reconstructed wrongly
        return None


def operands_of(record: RuleRecord, known: dict[Edge, AnyArray]) -> list[AnyArray | None]:
    """Return a node's operands, None for unknown ones."""
    kept = saved_operands(record.node, record.saved)
    known_ = (None if edge is None else known.get(edge) for edge in record.node.edges)
    return [data if kept.get(i) is None else kept[i] for i, data in enumerate(known_)]
