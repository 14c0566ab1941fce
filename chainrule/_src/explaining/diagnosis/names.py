"""``Names``: the user's variable names of tensors and arrays, and the lines that made them.

``explain``, the diagnoses of errors and ``Tensor.graph`` make a ``Names`` from the caller's frames.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from chainrule._src.explaining.diagnosis.source import Assignment, Scope, SourceLine, last_assignment, line_of
from chainrule._src.messages.names import inside, scopes
from chainrule._src.messages.reading import expression_of, names_in
from chainrule._src.messages.source_locations import Where, user_frame
from chainrule._src.tape.node import Leaf, Node, Output
from chainrule._src.tape.tensor import Tensor


class NamedArray(NamedTuple):
    """A tensor or array with the name and the scope of its variable."""

    name: str
    thing: Any
    scope: Scope


def place_of(thing: Any) -> Where | None:
    """Return where the value of an edge (or tensor) was made, if recorded; for a leaf, where requires_grad was set."""
    edge = thing._edge if isinstance(thing, Tensor) else thing
    node = edge.node if type(edge) is Output else edge
    noted = isinstance(node, (Node, Leaf)) and node.code is not None
    return Where(node.code, node.lasti) if noted else None


class Names:
    """The variables of a frame and its callers that hold tensors or arrays.

    Args:
        frame: the frame to search; the innermost frame of the user's program by default. Its locals come first, then those of
            its callers (three frames in all), then their globals. One level of attributes, items and entries is searched,
            too: ``model.w``, ``params["w"]``, ``ws[0]``.

    No method raises: results that cannot be found are None.
    """

    def __init__(self, frame: Any = None) -> None:
        self.found: list[NamedArray] = []
        self._tensors: dict[int, NamedArray] = {}
        self._edges: dict[Any, NamedArray] = {}
        self._arrays: dict[int, NamedArray] = {}
        frame = user_frame() if frame is None else frame
        self.here = None if frame is None else SourceLine(frame.f_code.co_filename, frame.f_lineno or 0)
        known = [(pairs, _scope(frame, whole)) for pairs, frame, whole in scopes(frame)]
        for pairs, scope in known:
            self._enter(pairs, scope)
        for pairs, scope in known:
            for name, value in pairs:
                self._enter(inside(name, value), scope)

    def _enter(self, pairs: list[tuple[str, object]], scope: Scope) -> None:
        for name, value in pairs:
            if isinstance(value, Tensor):
                self._tensor(NamedArray(name, value, scope))
            elif type(value).__name__ == "ndarray" and id(value) not in self._arrays:
                self._arrays[id(value)] = NamedArray(name, value, scope)
                self.found.append(self._arrays[id(value)])

    def _tensor(self, found: NamedArray) -> None:
        tensor = found.thing
        if id(tensor) in self._tensors:
            return
        self.found.append(found)
        self._tensors[id(tensor)] = found
        edge, data = tensor._edge, tensor._raw
        if edge is not None:
            self._edges.setdefault(edge, found)
        before = self._arrays.get(id(data))
        if before is None or (edge is None and getattr(before.thing, "_edge", None) is not None):
            self._arrays[id(data)] = found

    def find(self, thing: object) -> NamedArray | None:
        """Return the variable that holds a tensor, the value of an edge, or a raw array."""
        if isinstance(thing, Tensor):
            found = self._tensors.get(id(thing))
            return self._edges.get(thing._edge) if found is None and thing._edge is not None else found
        if isinstance(thing, (Node, Output, Leaf)):
            return self._edges.get(thing)
        return self._arrays.get(id(thing))

    def of(self, thing: object) -> str | None:
        """Return the name of the variable that holds a tensor, the value of an edge (Node, Output, Leaf), or a raw array."""
        found = self.find(thing)
        return None if found is None else found.name

    def line(self, thing: object) -> SourceLine | None:
        """Return the line that made the value of an edge (or tensor): from its node, or from its variable's assignment."""
        where = place_of(thing)
        if where is not None:
            return line_of(where)
        found = self.find(thing)
        one = None if found is None else self.assignment(found)
        return None if one is None else one.line

    def assignment(self, found: NamedArray, before: int | None = None) -> Assignment | None:
        """Return the statement that assigned a variable's value (or its value before a line); None if ambiguous."""
        return last_assignment(found.scope, found.name, before)

    def read_at(self, where: Where | None) -> list[NamedArray]:
        """Return the variables that the expression at a source location reads."""
        read = names_in(expression_of(where.expression)) if where is not None else []
        by_name = {found.name.replace('"', "'"): found for found in reversed(self.found)}
        return list({name: by_name[name] for name in read if name in by_name}.values())


def _scope(frame: Any, whole: bool) -> Scope:
    code = frame.f_code
    if not whole or code.co_name == "<module>":
        return Scope(code.co_filename, code.co_name, code.co_firstlineno, frame.f_lineno)
    while frame is not None and (frame.f_code.co_name, frame.f_code.co_filename) != ("<module>", code.co_filename):
        frame = frame.f_back
    return Scope(code.co_filename, "<module>", 1, None if frame is None else frame.f_lineno)
