"""Which statement computed a value: the assignments that can have reached a line, compared with what was recorded.

Programs with loops, branches and reused names have several statements for a name. The graph tells them apart: ``h * 2`` cannot
have made a tanh, nor a product with 3. Where more than one is left, there is no answer rather than a wrong one.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from chainrule.errors.assignments import FOREVER, Assignment, called, covers, operations, sure

_DEPTH = 4
#: functions whose results have no history
_CREATE = frozenset([
    "zeros", "ones", "full", "empty", "eye", "arange", "linspace", "logspace", "tensor", "as_tensor", "asarray",
    "array", "rand", "randn", "randint", "normal", "zeros_like", "ones_like", "full_like", "empty_like",
    "rand_like", "randn_like", "randperm", "detach",
])  # fmt: skip
#: functions and methods that are recorded under their own name
_OWN = frozenset([
    "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sqrt", "abs", "sigmoid",
    "relu", "neg", "exp2", "expm1", "log2", "log10", "log1p", "erf", "erfc", "reciprocal", "square", "maximum",
    "minimum", "where", "clamp", "sum", "prod", "cumsum", "cumprod", "logsumexp", "sort", "outer", "cat", "stack",
    "svd", "eigh", "qr", "det", "inv",
])  # fmt: skip
_COMPOSED = frozenset(["outer", "square", "det"])  # recorded as other operations, too


class Point(NamedTuple):
    """A place in the text of a scope: before assignment ``place`` of those in it, on ``line``."""

    text: int
    place: int
    line: int


class Reached(NamedTuple):
    """An assignment that can have given a name its value, and where it stands."""

    one: Assignment
    at: Point


class Scope:
    """The assignments of one scope: those of its own text, then what a session ran before, latest first.

    Args:
        texts: the assignments of each text, and the line that it has come to (None: past all of it).
    """

    def __init__(self, texts: list[tuple[tuple[Assignment, ...], int | None]]) -> None:
        self.texts = [found for found, _ in texts]
        found, line = texts[0] if texts else ((), None)
        now = FOREVER if line is None else line
        self.now = Point(0, next((i for i, one in enumerate(found) if one.last >= now), len(found)), now)
        self._by_name: list[dict[str, list[int]]] = [{} for _ in texts]
        for ones, known in zip(self.texts, self._by_name):
            for i, one in enumerate(ones):
                known.setdefault(one.name, []).append(i)
        self.known = {name for known in self._by_name for name in known}
        self._reaching: dict[tuple[str, Point], list[Reached]] = {}

    def constant(self, name: str, since: Point) -> bool:
        """Whether a name has the value still that it had at a point."""
        if name not in self.known:
            return True
        before = self.reaching(name, since)
        return (
            sum(len(known.get(name, ())) for known in self._by_name) == len(before) == 1 and not before[0].one.loops()
        )

    def reaching(self, name: str, before: Point) -> list[Reached]:
        """The assignments that can have been the last of a name before a point, nearest first."""
        known = self._reaching.get((name, before))
        if known is not None:
            return known
        found = self._reaching[name, before] = []
        for text in range(before.text, len(self.texts)):
            at = before if text == before.text else Point(text, len(self.texts[text]), FOREVER)
            if self._in_text(name, at, found):
                break
        return found

    def _in_text(self, name: str, at: Point, found: list[Reached]) -> bool:
        """Adds those of one text; True if one of them must have run."""
        ones, places = self.texts[at.text], self._by_name[at.text].get(name, [])
        certain = None
        for i in reversed(places[: bisect_left(places, at.place)]):
            found.append(Reached(ones[i], self._start(at.text, i)))
            if sure(ones[i], at.line):
                certain = ones[i]
                break
        fresh = certain.loops() if certain is not None else []
        for i in places[bisect_left(places, at.place) :]:  # an earlier round of a loop around the point
            loops = [loop for loop in ones[i].loops() if covers(loop, at.line)]
            if loops and not (fresh and loops[-1] in fresh):
                found.append(Reached(ones[i], self._start(at.text, i)))
        return certain is not None

    def _start(self, text: int, i: int) -> Point:
        """Where a statement computes what it assigns: before all that it assigns."""
        ones = self.texts[text]
        first = i
        while first and ones[first - 1].statement is ones[i].statement:
            first -= 1
        return Point(text, first, ones[i].first)


class Matching:
    """Compares expressions with what was recorded.

    Args:
        scope: the scope of the expressions.
        holds: (name, edge) to whether a variable now holds the value of an edge; None where it holds no tensor. With None
            for the edge: whether it is a module.
    """

    def __init__(self, scope: Scope, holds: Callable[[str, Any], bool | None]) -> None:
        self.scope, self.holds = scope, holds

    def made(self, name: str, edge: Any, before: Point) -> Reached | None:
        """The assignment that gave a name the value of an edge, if it can only be one."""
        possible = [
            reached
            for reached in self.scope.reaching(name, before)
            if reached.one.value is not None and self.fits(reached.one.value, edge, reached.at) is not False
        ]
        return possible[0] if len(possible) == 1 and not isinstance(possible[0].one.value, ast.arg) else None

    def origin(self, reached: Reached, edge: Any) -> Reached | None:
        """What computed the value, where an assignment only gave it another name; None if that is not known."""
        for _ in range(_DEPTH):
            value = self._taken(reached.one.value, edge, reached.at)
            if value is None and isinstance(reached.one.value, ast.IfExp):
                return None
            if not isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)) or _operation_of(edge) in operations(
                value
            ):
                return reached
            name = ast.unparse(value)
            if name not in self.scope.known:
                return reached
            before = self.made(name, edge, reached.at)
            if before is None:
                return None
            reached = before
        return None

    def passed(self, value: ast.AST | None, edge: Any) -> bool:
        """Whether a call can have computed the value of an edge for one of its arguments: ``Model(w=x * 2)``."""
        if not isinstance(value, ast.Call) or called(value) in _OWN:
            return False
        parts = [*value.args, *(keyword.value for keyword in value.keywords)]
        now = self.scope.now
        computing = [part for part in parts if _operation_of(edge) in operations(part)]
        return len([part for part in computing if self.fits(part, edge, now) is not False]) == 1

    def fits(self, value: ast.AST | None, edge: Any, at: Point, depth: int = _DEPTH) -> bool | None:
        """Whether an expression can have the value of an edge (None: a constant). None: that cannot be told."""
        if isinstance(value, ast.Constant):
            return edge is None
        if isinstance(value, ast.IfExp):
            both = [self.fits(part, edge, at, depth) for part in (value.body, value.orelse)]
            return False if both == [False, False] else None
        if isinstance(value, ast.NamedExpr):
            return self.fits(value.value, edge, at, depth)
        if edge is None or value is None or depth == 0:
            return None
        if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
            return self._variable(value, edge, at, depth)
        if _is_leaf(edge):
            return False if isinstance(value, (ast.BinOp, ast.UnaryOp)) else None
        if isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Call)):
            return self._computed(value, edge, at, depth)
        return None

    def _variable(self, value: Any, edge: Any, at: Point, depth: int) -> bool | None:
        if not _is_leaf(edge) and _operation_of(edge) in operations(value):  # x[0] and x.T are operations
            return None
        name = ast.unparse(value)
        held = self.holds(name, edge)
        if held or self.scope.constant(name, at):
            return held
        found = [self.fits(r.one.value, edge, r.at, depth - 1) for r in self.scope.reaching(name, at)]
        return False if found and all(fits is False for fits in found) else None

    def _computed(self, value: Any, edge: Any, at: Point, depth: int) -> bool | None:
        op, name = _operation_of(edge), called(value)
        if op not in operations(value):
            if isinstance(value, ast.Call):
                return False if name in _CREATE or (name in _OWN and name not in _COMPOSED and op in _OWN) else None
            return None if isinstance(getattr(value, "op", None), ast.MatMult) else False
        fits = [
            self.fits(part, below, at, depth - 1) if below is not None else self._constant(part, edge, i)
            for i, (part, below) in enumerate(self.operands(value, edge))
        ]
        if any(one is False for one in fits):
            return False
        return True if fits and all(fits) else None

    def operands(self, value: Any, edge: Any) -> list[tuple[ast.AST, Any]]:
        """The operands of an expression, each with the edge it stands for; none where they cannot be told apart."""
        edges = _node(edge).edges
        if isinstance(value, ast.BinOp):
            parts: list[Any] = [value.left, value.right]
            if _operation_of(edge) == "rsub":
                return []
        elif isinstance(value, ast.UnaryOp):
            parts = [value.operand]
        elif isinstance(value, (ast.Subscript, ast.Attribute)):
            parts = [value.value]
        else:
            method = isinstance(value.func, ast.Attribute) and not self._is_module(value.func.value)
            parts = [value.func.value, *value.args] if method else list(value.args)
            if len(parts) == 1 and isinstance(parts[0], (ast.List, ast.Tuple)):
                parts = parts[0].elts
        if any(isinstance(part, ast.Starred) for part in parts) or len(parts) < len(edges):
            return []
        return list(zip(parts, edges))

    def _is_module(self, value: ast.AST) -> bool:
        root = value
        while isinstance(root, ast.Attribute):
            root = root.value
        return isinstance(root, ast.Name) and self.holds(root.id, None) is True

    def _constant(self, part: ast.AST, edge: Any, i: int) -> bool | None:
        """Whether a number in the source is the constant that an operation has kept."""
        number = part.value if isinstance(part, ast.Constant) else None
        if not isinstance(number, (int, float, complex)):
            return None
        node = _node(edge)
        saves = getattr(node.prim, "saves", ())
        kept = dict(zip(saves, node.saved)) if len(saves) == len(node.saved) else {}
        value = kept.get(node.prim.operands[i]) if i < len(node.prim.operands) else None
        if value is None or getattr(value, "size", 1) != 1:
            return True if value is None else None
        try:
            return bool(abs(complex(value) - number) <= 1e-3 * abs(number))
        except (TypeError, ValueError, OverflowError):
            return None

    # -- values without a name ----------------------------------------------------------------------------------------

    def below(self, reached: Reached, edge: Any, stop: Callable[[Any], bool]) -> Iterator[tuple[Any, Reached]]:
        """What an assignment computed on the way to the value of an edge, and what led there from earlier ones.

        Yields edges without a name, each with its assignment. ``stop`` says where the values have names again.
        """
        stack: list[tuple[Any, Any, Reached]] = [(edge, reached.one.value, reached)]
        seen = set()
        while stack:
            edge, value, reached = stack.pop()
            fresh = [pair for pair in self._step(edge, value, reached) if pair[0] is not None and not stop(pair[0])]
            for below, part, where in fresh:
                key = (below, id(part))
                if key in seen:
                    continue
                seen.add(key)
                made = self._resolve(below, part, where)
                if made is not None:
                    yield below, made[1]
                    stack.append((below, *made))

    def _step(self, edge: Any, value: Any, reached: Reached) -> list[tuple[Any, Any, Reached]]:
        """The operands of an expression with their edges."""
        value = self._taken(value, edge, reached.at)
        if value is None or _is_leaf(edge):
            return []
        if _operation_of(edge) in operations(value) or called(value) == "__setitem":
            return [(below, part, reached) for part, below in self.operands(value, edge)]
        if isinstance(value, (ast.Call, ast.BinOp)) and self._settled(value, reached):  # several operations in one
            return [(below, value, reached) for below in _node(edge).edges]
        return []

    def _resolve(self, edge: Any, value: Any, reached: Reached) -> tuple[Any, Reached] | None:
        """The expression that computed the value of an edge, from the one that it was used in."""
        value = self._taken(value, edge, reached.at)
        if value is None or _is_leaf(edge):
            return None
        if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)) and _operation_of(edge) not in operations(value):
            made = self.made(ast.unparse(value), edge, reached.at)
            made = None if made is None else self.origin(made, edge)
            return None if made is None else (made.one.value, made)
        if isinstance(value, (ast.Constant, ast.Lambda)) or self.fits(value, edge, reached.at) is False:
            inside = isinstance(value, (ast.Call, ast.BinOp)) and self._settled(value, reached)
            return (value, reached) if inside else None
        if isinstance(value, (ast.Call, ast.BinOp)) and _operation_of(edge) not in operations(value):
            return (value, reached) if self._settled(value, reached) else None
        return value, reached

    def _taken(self, value: Any, edge: Any, at: Point) -> Any:
        """The branch of a conditional expression that was computed; None if it can be either."""
        while isinstance(value, (ast.NamedExpr, ast.IfExp)):
            if isinstance(value, ast.NamedExpr):
                value = value.value
                continue
            both = [v for v in (value.body, value.orelse) if self.fits(v, edge, at) is not False]
            value = both[0] if len(both) == 1 else None
        return value

    def _settled(self, value: ast.AST, reached: Reached) -> bool:
        """Whether all that an expression reads still has the names it had, so that what has none was made in it."""
        for item in ast.walk(value):
            if isinstance(item, ast.Name) and item.id in self.scope.known:
                before = self.scope.reaching(item.id, reached.at)
                if (
                    item.id == reached.one.name
                    or len(before) != 1
                    or before != self.scope.reaching(item.id, self.scope.now)
                ):
                    return False
        return True


def _is_leaf(edge: Any) -> bool:
    return hasattr(type(edge), "variable")


def _node(edge: Any) -> Any:
    """The node of an edge, which is an Output or a Node."""
    return edge.node if hasattr(type(edge), "node") else edge


def _operation_of(edge: Any) -> str:
    return str(getattr(getattr(_node(edge), "prim", None), "name", ""))
