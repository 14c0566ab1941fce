"""How a structured Jacobian came about: which operation made which of its terms.

Nothing of it is kept while a Jacobian is computed. The function is run again when an explanation is asked for, on moves that
note what goes in and what comes out; and to know which of an operand's terms a result's term came from, each of them is
carried through the operation once more, alone.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule import errors
from chainrule.diagnosis.names import Names
from chainrule.diagnosis.source import SourceLine, assigned_at, line_of, statement_at
from chainrule.errors.places import Where
from chainrule.errors.reading import expression_of
from chainrule.explaining import jacobian_page, jacobian_text, structure
from chainrule.explaining import jacobian_words as words
from chainrule.explaining.calls import calls_of, named_arguments
from chainrule.explaining.exports import mimebundle
from chainrule.interpreters.jac import Jac, Step
from chainrule.jacobians import spy
from chainrule.jacobians.accumulate import Accumulation
from chainrule.jacobians.assemble import Pattern
from chainrule.jacobians.moves import Moves, Terms
from chainrule.jacobians.products import resolve
from chainrule.jacobians.terms import Term, Variable
from chainrule.jacobians.trace import JacobianTrace, Recipe
from chainrule.tree import leaf_paths, tree_flatten
from chainrule.types.shapes import shape_of

Shape = tuple[int, ...]
#: names, by variables and origins
Called = dict[Any, str]
#: letters of an operation that is quoted as the program has it
_QUOTED = 30
#: and of a constant
_OPERAND = 12


class Told(Moves):
    """Moves that note what they did.

    Attributes:
        records: one for each step, in their order.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.records: list[Record] = []

    def through(self, step: Step, operands: Sequence[Terms]) -> list[Terms]:
        outs = super().through(step, operands)
        came: list[list[list[Origin]]] = [[[] for _ in out] for out in outs]
        for i, terms in enumerate(operands):
            for j, term in enumerate(terms):
                alone: list[Terms] = [[] for _ in operands]
                alone[i] = [term]
                for out, found, origins in zip(outs, super().through(step, alone), came, strict=True):
                    for part in found:
                        origins[_place(part, out)].append(Origin(i, j))
        self.records.append(Record(step, [list(terms) for terms in operands], outs, came))
        return outs


class Origin(NamedTuple):
    """A term of an operand: which operand, and which of its terms."""

    operand: int
    term: int


class Record(NamedTuple):
    """What one step did to terms: those of its operands, those of its outputs, and where each of the latter came from."""

    step: Step
    operands: list[Terms]
    outs: list[Terms]
    came: list[list[list[Origin]]]


def _place(part: Term, terms: Terms) -> int:
    """Which of the terms has a part's entries."""
    for same in (_is_same, _equal):
        for k, term in enumerate(terms):
            if term.source is part.source and same(term.cols, part.cols) and same(term.rows, part.rows):
                return k
    raise AssertionError("a term of one operand is in none of the result's")


def _is_same(a: Any, b: Any) -> bool:
    return a is b


def _equal(a: Any, b: Any) -> bool:
    return (a is None) == (b is None) and bool(np.array_equal(a, b))


# -- what is shown -----------------------------------------------------------------------------------------------------


class JacobianTerm(NamedTuple):
    """One term of the result.

    Attributes:
        letter: "A", "B" ...: how pictures call it.
        variable: the input, or the value that was cut, whose elements its columns are.
        columns: which of them a row reads: ``u[i+1]``.
        values: its numbers: the one that all are, or their range.
        entries: how many.
        steps: the numbers of the operations it went through.
    """

    letter: str
    variable: str
    columns: str
    values: str
    entries: int
    steps: tuple[int, ...]


class JacobianStep(NamedTuple):
    """One operation of the program, and the Jacobian after it.

    Attributes:
        number: counted from 1, in the order of the program.
        op: the row's name.
        name: what its result is called.
        text: the operation: as the program has it, where that is short, else ``mul(t1, u)``.
        line: of the program.
        local: for each operand that has a Jacobian the structure of the local one: "diagonal", "I ⊗ Wᵀ" ...
        after: the Jacobian of the result in words: "identity", "u[i], u[i+1]", "12 terms".
        in_a_row: how many entries its fullest row has.
        terms: how many terms it has.
        cut: whether the result becomes a variable of its own here, with respect to which later steps are.
        merged: whether its terms are put together as rows of entries.
        of: the letters of the terms of the whole Jacobian that came this way.
    """

    number: int
    op: str
    name: str
    text: str
    line: SourceLine | None
    local: tuple[str, ...]
    after: str
    in_a_row: int
    terms: int
    cut: bool
    merged: bool
    of: str


class Factor(NamedTuple):
    """The Jacobian of a value that was cut, or of the result, with respect to an earlier one.

    Attributes:
        value, variable: their names.
        shape: as a matrix.
        nnz: its entries.
    """

    value: str
    variable: str
    shape: tuple[int, int]
    nnz: int


class JacobianExplanation:
    """How the structured Jacobian ∂output/∂input came about. Made by :func:`chainrule.explain`.

    Attributes:
        output, input: names.
        shape: ``(*output's, *input's)``.
        matrix_shape: as a matrix.
        strategy: how it was computed.
        kind: what it is stored as.
        nnz: how many entries it has.
        steps: the operations on the way from the input to the output.
        terms: what it is the sum of, after the last of them.
        factors: what it is the product of, the last one first, where values were cut; else nothing.
        entries: the rows and columns of all entries, and for each the number of its term (the last one, if several meet).
    """

    def __init__(self, recipe: Recipe, names: Names, jacobian: Any) -> None:
        trace = JacobianTrace(recipe.function, recipe.x, False)
        result, variable = trace.results[recipe.output], trace.variables[recipe.input]
        told = Told(recipe.limit)
        final = Accumulation([result], recipe.limit, told).terms_of(result)
        story = _Story(told.records, result.origin, variable, final)
        called = _called(recipe, trace.variables, story, result)
        self.strategy = recipe.strategy
        self.shape = (*result.shape, *variable.shape)
        self.input, self.output = called[variable], called[result.origin]
        self.kind = jacobian.kind
        self.terms = _terms(story, called, result.shape)
        self.steps = _steps(story, called, names, self.terms)
        whole = resolve(story.final, result.shape).get(variable, [])
        pattern = Pattern.of(whole, result.shape, variable.size)
        self.matrix_shape = pattern.shape
        self.nnz = pattern.nnz
        was, now = _size(jacobian), _size(self)
        if was != now:
            raise errors.explained_jacobian_changed(was, now)
        self.factors = _factors(story, called, result, variable)
        self.entries = (pattern.row_numbers(), pattern.indices, _term_of_each(story, pattern))

    @property
    def density(self) -> float:
        """The share of places that have an entry."""
        m, n = self.matrix_shape
        return self.nnz / (m * n) if m and n else 0.0

    @property
    def title(self) -> str:
        return f"∂{self.output}/∂{self.input}"

    def spy(self) -> str:
        """A picture of the entries, in characters; of a small Jacobian with the letters of the terms."""
        rows, cols, term = self.entries
        return spy.text(rows, cols, self.matrix_shape, term if len(self.terms) > 1 and not self.factors else None)

    def __str__(self) -> str:
        return jacobian_text.text(self)

    def to_html(self, path: Any = None) -> str:
        """A page that needs nothing else; also written to a file, if ``path`` is given."""
        page = jacobian_page.to_html(self)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page

    def __repr__(self) -> str:
        return f"<explanation of {self.title}: {len(self.steps)} steps, {len(self.terms)} terms>"

    def _repr_html_(self) -> str:
        return jacobian_page.fragment(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return mimebundle({"text/plain": self.__str__, "text/html": self._repr_html_}, include, exclude)


def _size(jacobian: Any) -> str:
    m, n = jacobian.matrix_shape
    return f"{m:,} × {n:,} with {jacobian.nnz:,} entries"


def _terms(story: _Story, called: Called, shape: Shape) -> list[JacobianTerm]:
    return [
        JacobianTerm(
            spy.letter(k),
            called[term.source],
            words.columns(term, shape, called[term.source]),
            words.values(term),
            term.cols.size,
            tuple(sorted(steps)),
        )
        for k, (term, steps) in enumerate(zip(story.final, story.lineage, strict=True))
    ]


def _steps(story: _Story, called: Called, names: Names, terms: Sequence[JacobianTerm]) -> list[JacobianStep]:
    return [
        JacobianStep(
            index,
            line.step.prim.name,
            called[line.step, line.output],
            _text(line.step, called, names),
            line_of(Where(line.step.code, line.step.lasti)),
            _local(line, called, names),
            words.state(line.terms, line.shape, called.__getitem__),
            words.entries_in_a_row(line.terms, math.prod(line.shape)),
            len(line.terms),
            (line.step, line.output) in story.cuts.values(),
            (line.step, line.output) in story.merged,
            "".join([term.letter for term in terms if index in term.steps]),
        )
        for index, line in enumerate(story.lines, 1)
    ]


def _factors(story: _Story, called: Called, result: Jac, variable: Variable) -> list[Factor]:
    """Of the result by the values that were cut, and of these by earlier ones; newest first."""
    found = []
    values = [(called[result.origin], result.shape, story.final)]
    values += [(called[cut], cut.shape, cut.terms or []) for cut in reversed(story.cuts)]
    for name, shape, terms in values if story.cuts else ():
        for source in dict.fromkeys([term.source for term in terms if term.source in story.relevant]):
            own = [term for term in terms if term.source is source]
            pattern = Pattern.of(own, shape, source.size)
            found.append(Factor(name, called[source], pattern.shape, pattern.nnz))
    return found


def _term_of_each(story: _Story, pattern: Pattern) -> Any:
    """For each entry of the whole the number of its term; zeros where it is a product."""
    numbers = np.zeros(pattern.nnz, np.intp)
    if not story.cuts:
        for k, term in enumerate(story.final):
            rows, cols, _ = term.entries()
            numbers[np.searchsorted(pattern.places, rows * pattern.shape[1] + cols)] = k
    return numbers


# -- from the records --------------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    """A step's output, and its terms with respect to what matters."""

    step: Step
    output: int
    operands: list[Terms]
    terms: Terms

    @property
    def shape(self) -> Shape:
        return tuple(shape_of(self.step.outs[self.output]))


class _Story:
    """Which operations each term went through.

    Attributes:
        lines: the steps on the way from the variable.
        cuts: the values that became variables: what they are as such, and where they came from; oldest first.
        merged: where values came from whose terms were put together, because they were many and small.
        relevant: the variables whose Jacobians lead to the variable, and itself.
        final, lineage: the terms of the result, and for each the numbers of its steps.
    """

    def __init__(self, records: Sequence[Record], result: Any, variable: Variable, final: Terms) -> None:
        self.relevant = {variable}
        self.cuts: dict[Variable, Any] = {}
        self.merged: set[Any] = set()
        self.lines: list[_Line] = []
        self.values: dict[Any, tuple[Terms, list[frozenset[int]]]] = {}
        for record in records:
            self._add(record)
        terms, lineage = self.values.get(result, (final, [frozenset()] * len(final)))
        kept = [term.source in self.relevant and term.cols.size > 0 for term in terms]
        self.final = list(itertools.compress(terms, kept))
        self.lineage = list(itertools.compress(lineage, kept))

    def _add(self, record: Record) -> None:
        step = record.step
        before = [self._lineage(o, terms) for o, terms in zip(step.origins, record.operands, strict=True)]
        operands = [[t for t in terms if t.source in self.relevant] for terms in record.operands]
        for k, (terms, came) in enumerate(zip(record.outs, record.came, strict=True)):
            shown = [t for t in terms if t.source in self.relevant]
            own = set()
            if shown or any(operands):
                self.lines.append(_Line(step, k, operands, shown))
                own = {len(self.lines)}
            lineage = [frozenset(own.union(*[before[o.operand][o.term] for o in origins])) for origins in came]
            self.values[step, k] = (terms, lineage)

    def _lineage(self, origin: Any, terms: Terms) -> list[frozenset[int]]:
        """The steps of a value's terms; none, where it was cut since it was made."""
        made, lineage = self.values.get(origin, ([], []))
        known = {id(term): steps for term, steps in zip(made, lineage, strict=True)}
        return [known[id(t)] if id(t) in known else self._new(origin, t, made, lineage) for t in terms]

    def _new(self, origin: Any, term: Term, made: Terms, lineage: list[frozenset[int]]) -> frozenset[int]:
        """The steps of a term that an operand has and its value had not, when it was made."""
        own = term.source.terms
        if own is not None and all([other.source is not term.source for other in made]):
            if term.source not in self.cuts:
                self.cuts[term.source] = origin
                if any([other.source in self.relevant for other in own]):
                    self.relevant.add(term.source)
            return frozenset()
        if made:
            self.merged.add(origin)
        return frozenset().union(*[steps for part, steps in zip(made, lineage, strict=True) if _meet(part, term)])


def _meet(a: Term, b: Term) -> bool:
    """Whether terms have an entry at one place."""
    if a.source is not b.source:
        return False
    (rows, cols, _), (others, places, _) = a.entries(), b.entries()
    n = a.source.size
    return bool(np.isin(rows * n + cols, others * n + places).any())


# -- names and words ---------------------------------------------------------------------------------------------------


def _called(recipe: Recipe, variables: Sequence[Variable], story: _Story, result: Jac) -> Called:
    """What values are called: inputs as the function's parameters, others as the variables they are assigned to."""
    args = recipe.x if type(recipe.x) is tuple else (recipe.x,)
    inputs = []
    for name, argument in named_arguments(recipe.function, args, {}):
        _, spec = tree_flatten(argument)
        inputs += [name + path for path in leaf_paths(spec)]
    called: Called = {None: "a constant"}
    taken: set[str] = set()

    def enter(key: Any, wanted: str) -> None:
        found = wanted
        for k in itertools.count(2):
            if found not in taken:
                break
            found = f"{wanted}_{k}"
        taken.add(found)
        called[key] = found

    for variable, own in zip(variables, inputs, strict=True):
        enter(variable, own)
    keys = [(line.step, line.output) for line in story.lines]
    assigned = _assigned([line.step for line in story.lines])
    for key, own in zip(keys, assigned, strict=True):
        if own:
            enter(key, own)
    if result.origin not in called:
        enter(result.origin, "out" if recipe.name in taken | set(assigned) else recipe.name)
    number = 0
    for key in keys:
        if key not in called:
            number += 1
            enter(key, f"t{number}")
    for cut, origin in story.cuts.items():
        called[cut] = called.get(origin, "")
    return called


def _assigned(steps: Sequence[Step]) -> list[str]:
    """For each step the variable that its result is assigned to; '' if it is an intermediate one."""
    names = [""] * len(steps)
    done: dict[Any, set[int]] = {}  # statement -> the places in it, after the last result that was assigned
    for call in reversed(calls_of(steps)):
        last = steps[call.stop - 1]
        where = Where(last.code, last.lasti)
        statement = statement_at(where) if where else None
        target = assigned_at(where) if statement is not None else ""
        seen = done.setdefault(statement, set())
        if target and (not seen or last.lasti in seen):
            names[call.stop - 1] = target
            seen.clear()
        seen.add(last.lasti)
    return names


def _text(step: Step, called: Called, names: Names) -> str:
    """An operation as the program has it, if that is short and names all that it reads; else by its operands."""
    source = Where(step.code, step.lasti).expression
    tree = expression_of(source)
    if tree is not None and len(source) <= _QUOTED and "\n" not in source and _is_flat(tree):
        return source
    return f"{step.prim.name}({', '.join([_operand(step, i, called, names) for i in range(len(step.operands))])})"


def _is_flat(tree: ast.expr) -> bool:
    """Whether an expression is one operation on variables and numbers."""
    parts = [node for node in ast.walk(tree) if isinstance(node, (ast.BinOp, ast.Call, ast.Subscript, ast.Compare))]
    return len(parts) == 1


def _operand(step: Step, i: int, called: Called, names: Names) -> str:
    if step.origins[i] is not None:
        return called.get(step.origins[i], "…")
    x = step.operands[i]
    if isinstance(x, (bool, int, float, complex)) or shape_of(x) == ():
        return words.number_text(np.asarray(x).item())
    return names.of(x) or _written(step, i) or "…"


def _written(step: Step, i: int) -> str:
    """The source of an operand, if it is short."""
    tree = expression_of(Where(step.code, step.lasti).expression)
    parts = [tree.left, tree.right] if isinstance(tree, ast.BinOp) else tree.args if isinstance(tree, ast.Call) else []
    text = ast.unparse(parts[i]) if len(parts) == len(step.operands) else ""
    return text if len(text) <= _OPERAND else ""


class _Value(NamedTuple):
    """A value as ``structure.of`` asks for it."""

    name: str
    shape: Shape


class _Arrow(NamedTuple):
    """A step's result and one operand, as ``structure.of`` asks for them; the first also stands for the step."""

    prim: Any
    params: dict[str, Any]
    output: _Value
    operand_values: dict[int, _Value]
    position: int

    @property
    def step(self) -> _Arrow:
        return self

    @property
    def input(self) -> _Value:
        return self.operand_values[self.position]


def _local(line: _Line, called: Called, names: Names) -> tuple[str, ...]:
    """The structures of a step's local Jacobians, each once."""
    step = line.step
    output = _Value(called[step, line.output], line.shape)
    operands = {i: _Value(_operand(step, i, called, names), tuple(shape_of(x))) for i, x in enumerate(step.operands)}
    arrows = [_Arrow(step.prim, step.params, output, operands, i) for i, terms in enumerate(line.operands) if terms]
    return tuple(dict.fromkeys([structure.of(arrow)[0] for arrow in arrows]))
