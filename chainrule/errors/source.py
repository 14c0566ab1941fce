"""What the user's program calls its tensors, and on which lines it made them.

:class:`Names` looks into the frames of the caller. It knows tensors only by their ``_edge`` and ``_raw``, so that any
message may use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from chainrule.errors.assignments import (
    Assignment,
    Call,
    assignments,
    calls_before,
    cells_before,
    holds,
    latest,
    lines_of,
    names_in,
    plain,
)
from chainrule.errors.statements import Matching, Reached, Scope
from chainrule.errors.words import PACKAGE, line_name, user_frame

_FRAMES = 3
_ITEMS = 1000
_LAST_RESULT = re.compile(r"_+\d*")  # what interactive sessions call their latest results


class SourceLine(NamedTuple):
    """A line of the user's program, with its text (empty where the source cannot be read)."""

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return line_name(self.file, self.line)


class _Place(NamedTuple):
    """A scope in which names were found: where its code is, and the line it has come to (None: past all of it)."""

    file: str
    function: str
    first: int
    line: int | None
    scope: dict[str, Any]


def _key(place: _Place) -> tuple[Any, ...]:
    return place.file, place.function, place.first, place.line


class Found(NamedTuple):
    """A tensor or array with its name and the scope of that."""

    name: str
    thing: Any
    place: _Place


def is_tensor(thing: Any) -> bool:
    kind = type(thing)
    return hasattr(kind, "_edge") and hasattr(kind, "_raw")


class Names:
    """The variables of a frame and its callers that hold tensors.

    Args:
        frame: where to look; the innermost frame of the user's program by default. Its locals come first, then those of
            its callers (three frames in all), then their globals. One level of attributes, items and entries is
            looked through, too: ``model.w``, ``params["w"]``, ``ws[0]``.

    Nothing here raises: what cannot be found is None.
    """

    def __init__(self, frame: Any = None) -> None:
        self.found: list[Found] = []
        self._tensors: dict[int, Found] = {}
        self._edges: dict[Any, Found] = {}
        self._arrays: dict[int, Found] = {}
        self._aliases: dict[int, list[Found]] = {}
        self._owners: dict[Any, Found] | None = None
        self._objects: dict[str, Any] = {}
        self._matchings: dict[Any, tuple[Matching, list[_Place]]] = {}
        self._spread: dict[Any, dict[Any, SourceLine]] = {}
        frame = user_frame() if frame is None else frame
        self.here = None if frame is None else SourceLine(frame.f_code.co_filename, frame.f_lineno or 0)
        scopes = list(_scopes(frame))
        self.places = [place for _, place in scopes]
        for variables, place in scopes:
            self._enter(variables, place)
        for variables, place in scopes:
            for name, value in variables:
                inside = _inside(name, value)
                if inside:
                    self._objects.setdefault(name, value)
                    self._enter(inside, place)

    def _enter(self, variables: list[tuple[str, Any]], place: _Place) -> None:
        for name, value in variables:
            if is_tensor(value):
                self._tensor(Found(name, value, place))
            elif type(value).__name__ == "ndarray" and id(value) not in self._arrays:
                self._arrays[id(value)] = Found(name, value, place)
                self.found.append(self._arrays[id(value)])

    def _tensor(self, found: Found) -> None:
        tensor = found.thing
        if id(tensor) in self._tensors:
            self._aliases.setdefault(id(tensor), []).append(found)
            return
        self.found.append(found)
        self._tensors[id(tensor)] = found
        edge, data = tensor._edge, tensor._raw
        if edge is not None:
            self._edges.setdefault(edge, found)
        before = self._arrays.get(id(data))
        if before is None or (edge is None and getattr(before.thing, "_edge", None) is not None):
            self._arrays[id(data)] = found

    def find(self, thing: Any) -> Found | None:
        """The variable that holds a tensor, the value of an edge, or a raw array."""
        try:
            if is_tensor(thing):
                found = self._tensors.get(id(thing))
                return self._edges.get(thing._edge) if found is None and thing._edge is not None else found
            if hasattr(type(thing), "edges"):
                return self._edges.get(thing)
            return self._arrays.get(id(thing))
        except Exception:
            return None

    def of(self, thing: Any) -> str | None:
        """The name of the variable that holds a tensor, the value of an edge (Node, Output, Leaf), or a raw array."""
        found = self.find(thing)
        return None if found is None else found.name

    def line(self, thing: Any) -> SourceLine | None:
        """The line that made the value of an edge (or tensor).

        A recorded line (see ``record_lines``) is exact. Otherwise it is the assignment, in the source, of the variable
        that holds the value; for a value without a name, that of the next named value which was computed from it.
        """
        try:
            edge = thing._edge if is_tensor(thing) else thing
            recorded = recorded_line(edge)
            if recorded is not None:
                return recorded
            found = self.find(thing)
            if found is None:
                return self._between(edge)
            one = self._made(found, follow=True)
            return None if one is None else one[1]
        except Exception:  # whatever is odd about the source, there is no line then
            return None

    def holder(self, edge: Any) -> Found | None:
        """The variable that holds the value of an edge, or the next that was computed from it."""
        return self.find(edge) or self._owner(edge)

    def assignment(self, found: Found) -> tuple[Assignment, SourceLine] | None:
        """The statement that gave a variable the value it has, and its line.

        An argument of a function was assigned by its callers, under another name; an item with the list or dict it is in.
        """
        return self._made(found)

    def _made(self, found: Found, follow: bool = False) -> tuple[Assignment, SourceLine] | None:
        """The same; ``follow``: where that only gives it another name, the statement that computed it."""
        edge = getattr(found.thing, "_edge", None)
        computed = hasattr(edge, "node") or hasattr(edge, "prim")
        for one in (found, *self._aliases.get(id(found.thing), ())):
            if computed:
                made = self._reached(one, follow)
                if made is not None:
                    return made.one, self._line_of(one.place, made)
            else:
                statement = _statement(one, one.name, "")
                if statement is not None:
                    return statement
            name = re.split(r"[.\[]", one.name)[0]
            if name == one.name:
                continue
            whole = _statement(one, name, "")
            if whole is not None and holds(whole[0].value, one.name[len(name) :], computed):
                return whole
            if whole is not None and computed and self._matching(one.place).passed(whole[0].value, edge):
                return whole
            inside = self._in_methods(name, one.name[len(name) + 1 :], edge) if computed else None
            if inside is not None:
                return inside
        return None

    def _reached(self, found: Found, follow: bool) -> Reached | None:
        """The assignment that computed the value of a variable."""
        match, edge = self._matching(found.place), found.thing._edge
        made = match.made(plain(found.name), edge, match.scope.now)
        return match.origin(made, edge) if made is not None and follow else made

    def _in_methods(self, name: str, attribute: str, edge: Any) -> tuple[Assignment, SourceLine] | None:
        """The one statement ``self.attribute = ...`` in an object's class that can have computed a value."""
        kind = type(self._objects.get(name))
        possible = []
        functions = [value for base in kind.__mro__ for value in vars(base).values() if isinstance(value, FunctionType)]
        for function in functions:
            code = function.__code__
            if not code.co_argcount or code.co_filename.startswith(PACKAGE):
                continue
            place = _Place(code.co_filename, code.co_name, code.co_firstlineno, None, function.__globals__)
            match = self._matching(place)
            target = f"{code.co_varnames[0]}.{attribute}"
            for one in match.scope.reaching(target, match.scope.now):
                if match.fits(one.one.value, edge, one.at) is not False:
                    possible.append((place, one))
        if len(possible) != 1:
            return None
        place, made = possible[0]
        return made.one, self._line_of(place, made)

    def _matching(self, place: _Place) -> Matching:
        """For comparing the expressions of a scope with what was recorded."""
        key = _key(place)
        known = self._matchings.get(key)
        if known is None:
            places = list(_texts(place))
            texts = [
                (assignments("".join(lines_of(file, scope)), function, first), line)
                for file, function, first, line, scope in places
            ]
            held: dict[str, list[Any]] = {}
            for found in [*self.found, *(alias for aliases in self._aliases.values() for alias in aliases)]:
                if found.place == place:
                    held.setdefault(plain(found.name), []).append(found.thing)

            def holding(name: str, edge: Any) -> bool | None:
                if edge is None:
                    return isinstance(place.scope.get(name), ModuleType)
                edges = [t._edge for t in held.get(name, ()) if is_tensor(t)]
                return edge in edges if edges else None

            known = self._matchings[key] = Matching(Scope(texts), holding), places
        return known[0]

    def _line_of(self, place: _Place, made: Reached) -> SourceLine:
        text = self._matchings[_key(place)][1][made.at.text]
        return line_at(text.file, made.one.first, text.scope)

    def _between(self, edge: Any) -> SourceLine | None:
        """The line of a value without a name: what the next named values that it went into were computed from."""
        owner = self._owner(edge)
        if owner is None:
            return None
        root = owner.thing._edge
        if root not in self._spread:
            lines = self._spread[root] = {}
            for one in (owner, *self._aliases.get(id(owner.thing), ())):
                made = self._reached(one, follow=True)
                if made is None:
                    continue
                steps = self._matching(one.place).below(made, root, lambda e: self.of(e) is not None or e in lines)
                lines.update((below, self._line_of(one.place, where)) for below, where in steps)
        return self._spread[root].get(edge)

    def earlier(self, found: Found) -> tuple[Assignment, SourceLine] | None:
        """The statement that gave a variable the value before the one that it has."""
        now = self.assignment(found)
        if now is None:
            return None
        return _statement(found, found.name, "", now[1])

    def calls(self, method: str, since: Found | None = None) -> list[tuple[Call, SourceLine]]:
        """The calls of a method in the scopes that are looked at, as far as they can have run.

        ``since``: in the scope of that variable, only those after it was given its value.
        """
        made = None if since is None else self.assignment(since)
        found = []
        for scope in self.places:
            texts: list[list[tuple[Call, SourceLine]]] = []
            begun = made is not None and since is not None and since.place == scope
            for file, function, first, line, variables in _texts(scope):
                lines = lines_of(file, variables)
                here = calls_before("".join(lines), function, first, method, line)
                if begun and made is not None and made[1].file == file:
                    here = [c for c in here if c.line >= made[1].line or (c.loop and made[0].loops())]
                texts.append([(call, SourceLine(file, call.line, lines[call.line - 1].strip())) for call in here])
                if begun and made is not None and made[1].file == file:
                    break
            found += [one for text in reversed(texts) for one in text]
        return found

    def read_by(self, found: Found) -> list[Found]:
        """The tensors that the assignment of a variable reads by name."""
        one = self.assignment(found)
        if one is None:
            return []
        by_name = {other.name.replace('"', "'"): other for other in reversed(self.found) if other.place == found.place}
        return list({n: by_name[n] for n in names_in(one[0].value) if n in by_name}.values())

    def _owner(self, edge: Any) -> Found | None:
        """For a value without a name: the oldest named value that it went into, with nothing named between."""
        if self._owners is None:
            self._owners = {}
            named = [found for found in self.found if getattr(found.thing, "_edge", None) is not None]
            named.sort(key=lambda found: found.thing._edge.seq)
            for found in named:
                stack = list(found.thing._edge.edges)
                while stack:
                    below = stack.pop()
                    if below is None or below in self._owners or below in self._edges:
                        continue
                    self._owners[below] = found
                    stack.extend(below.edges)
        return self._owners.get(edge)


def _statement(
    found: Found, name: str, op: str, before: SourceLine | None = None
) -> tuple[Assignment, SourceLine] | None:
    """The last assignment of a name in a scope, before a line if one is given."""
    passed = before is None
    for file, function, first, line, scope in _texts(found.place):
        if not passed and before is not None:
            if file != before.file:
                continue
            passed, line = True, before.line
        lines = lines_of(file, scope)
        one = latest(assignments("".join(lines), function, first), name, line, op)
        if one is not None and (before is None or (file, one.first) != (before.file, before.line)):
            return one, SourceLine(file, one.first, lines[one.first - 1].strip())
    return None


def recorded_line(edge: Any) -> SourceLine | None:
    """The line that ``record_lines`` noted for a node, where its source is known or can be looked up."""
    node = getattr(edge, "node", edge)
    try:
        line: SourceLine | None = object.__getattribute__(node, "meta").get("line")
    except AttributeError:
        return None
    return None if line is None or (line.file.startswith("<") and not line.text) else line


def line_at(file: str, line: int, scope: dict[str, Any] | None = None) -> SourceLine:
    """The line with its text."""
    lines = lines_of(file, scope)
    return SourceLine(file, line, lines[line - 1].strip() if 0 < line <= len(lines) else "")


def _scopes(frame: Any) -> Iterator[tuple[list[tuple[str, Any]], _Place]]:
    """The variables of the frames that are searched, each with its scope: first all locals, then the globals."""
    running = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            running.append(frame)
        frame = frame.f_back
    searched = running[:_FRAMES]
    seen: list[int] = []
    for f in searched:
        code = f.f_code
        if f.f_locals is f.f_globals or code.co_name == "<module>":
            seen.append(id(f.f_globals))
        place = _Place(code.co_filename, code.co_name, code.co_firstlineno, f.f_lineno, f.f_globals)
        yield _variables(f.f_locals), place
    for f in searched:
        if id(f.f_globals) in seen:
            continue
        seen.append(id(f.f_globals))
        module = next((m for m in running if m.f_code.co_name == "<module>" and m.f_globals is f.f_globals), None)
        file = f.f_code.co_filename if module is None else module.f_code.co_filename
        line = None if module is None else module.f_lineno
        yield _variables(f.f_globals), _Place(file, "<module>", 1, line, f.f_globals)


def _variables(scope: Any) -> list[tuple[str, Any]]:
    """Names with their values; names that begin with an underscore come last, a session's ``_`` not at all."""
    names = [(str(name), value) for name, value in list(scope.items()) if str(name).isidentifier()]
    names = [pair for pair in names if not _LAST_RESULT.fullmatch(pair[0])]
    return sorted(names, key=lambda pair: pair[0].startswith("_"))


def _inside(name: str, value: Any) -> list[tuple[str, Any]]:
    """What a variable holds, one level deep."""
    if isinstance(value, (type, ModuleType)) or is_tensor(value) or name in ("In", "Out") or name.startswith("__"):
        return []
    if isinstance(value, dict):
        if len(value) > _ITEMS:
            return []
        return [(f"{name}[{_key_text(k)}]", v) for k, v in list(value.items())]
    if isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", None)
        if isinstance(value, tuple) and isinstance(fields, tuple):
            return [(f"{name}.{field}", v) for field, v in zip(fields, value)]
        return [(f"{name}[{i}]", v) for i, v in enumerate(value[:_ITEMS])]
    if isinstance(value, FunctionType):
        return []
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    return [(f"{name}.{k}", v) for k, v in list(held.items())[:_ITEMS] if isinstance(k, str)]


def _key_text(key: Any) -> str:
    """A key as one writes it: text in double quotes, where that is simple."""
    return f'"{key}"' if isinstance(key, str) and key.isprintable() and not set(key) & set('"\\') else repr(key)


def _texts(place: _Place) -> Iterator[_Place]:
    """Where the assignments of a scope's names can stand: its own code, and what a session ran before it."""
    yield place
    if place.function == "<module>":
        for file in cells_before(place.file):
            yield _Place(file, "<module>", 1, None, place.scope)
