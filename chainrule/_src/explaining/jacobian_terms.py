"""``JacobianExplanationData``: the operations and terms by which a structured Jacobian was computed.

Computing a Jacobian records nothing for its explanation, which runs the function again. ``JacobianExplanation`` displays the data.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.tree import leaf_paths, tree_flatten, tree_leaves
from chainrule._src.arrays.types import NumpyArray, Params, Shape
from chainrule._src.explaining import jacobian_words as words
from chainrule._src.explaining import structure
from chainrule._src.explaining.calls import calls_of, named_arguments
from chainrule._src.explaining.check import Check
from chainrule._src.explaining.diagnosis.names import Names
from chainrule._src.explaining.diagnosis.source import SourceLine, assigned_at, line_of, statement_at
from chainrule._src.explaining.jacobian_run import JacobianRun, OutputTerms, TermHistory, complex_parts, run_call
from chainrule._src.explaining.notation import BAR
from chainrule._src.interpreters.jac import Jac, JacStep
from chainrule._src.jacobians import spy
from chainrule._src.jacobians.assemble import EntryPattern, has_plain_vals
from chainrule._src.jacobians.products import resolve_to_inputs
from chainrule._src.jacobians.result import Jacobian
from chainrule._src.jacobians.terms import Term
from chainrule._src.jacobians.trace import JacobianCall, terms_of_input
from chainrule._src.messages import errors
from chainrule._src.messages.reading import expression_of
from chainrule._src.messages.source_locations import Where
from chainrule._src.rules.primitive import Primitive
from chainrule._src.transforms.arguments import data_of
from chainrule._src.transforms.grad import vjp

#: names, by variables and origins
Labels = dict[Any, str]
#: most characters of an operation whose source is quoted
_QUOTED = 30
#: most characters of a constant whose source is quoted
_OPERAND = 12


# -- records of the explanation ----------------------------------------------------------------------------------------


class JacobianTerm(NamedTuple):
    """One term of the result.

    Attributes:
        letter: its name in pictures: "A", "B" ...
        variable: the input or intermediate variable whose elements are its columns.
        columns: the elements that a row reads: ``u[i+1]``.
        values: its numbers: a single value, or their range.
        entries: number of entries.
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
        number: counted from 1, in program order.
        op: the name of the primitive.
        name: the name of its result.
        text: the source of the operation if it is short, else ``mul(t1, u)``.
        line: the line of the program.
        local: for each operand with a Jacobian, the structure of the local Jacobian: "diagonal", "I ⊗ Wᵀ" ...
        after: a description of the result's Jacobian: "identity", "u[i], u[i+1]", "12 terms".
        in_a_row: number of entries in its fullest row.
        terms: number of its terms.
        cut: whether the result becomes an intermediate variable; the terms of later steps are with respect to it.
        merged: whether its terms are merged into rows of entries.
        of: the letters of the final terms that went through this operation.
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


class CutJacobian(NamedTuple):
    """The Jacobian of an intermediate variable, or of the result, with respect to an earlier variable.

    Attributes:
        value, variable: their names.
        shape: its shape as a matrix.
        nnz: number of entries.
    """

    value: str
    variable: str
    shape: tuple[int, int]
    nnz: int


class JacobianExplanationData:
    """The operations and terms by which a structured Jacobian was computed; ``JacobianExplanation`` adds text and page."""

    def __init__(self, jacobian: Jacobian, names: Names) -> None:
        call = jacobian.made_by
        if call is None:
            raise errors.explained_jacobian_unknown(jacobian)
        if not has_plain_vals(_off_tape(jacobian)):
            raise errors.explain_inside()
        self._jacobian = jacobian
        made = run_call(call)
        history, result, variable = made.history, made.result, made.variable
        called = _called(call, made, names)
        self.strategy = call.strategy
        self.backward = made.backward
        self.start, self.end = called[variable], called[result.origin]
        self.output, self.input = (self.start, self.end) if made.backward else (self.end, self.start)
        self.output, self.input = self.output.removesuffix(BAR), self.input.removesuffix(BAR)
        self.shape = jacobian.shape
        self.matrix_shape = jacobian.matrix_shape
        self.kind = jacobian.kind
        self.nnz = jacobian.nnz
        self.terms = _terms(history, called, result.shape)
        self.steps = _steps(made, called, names, self.terms)
        self.factors = _factors(history, called, result)
        if made.with_terms:
            whole = terms_of_input(resolve_to_inputs(history.settled, result.shape), variable, result.dtype.kind == "c")
            pattern = EntryPattern.of(whole, result.shape, variable.size)
            rows, cols = pattern.row_numbers(), pattern.indices
            if made.backward:
                rows, cols = cols, rows
            _check(jacobian, rows, cols, pattern.data(whole))
            self.entries = (rows, cols, _term_of_each(history, pattern))
        else:
            rows, cols, _ = _entries(jacobian)
            self.entries = (rows, cols, np.full(self.nnz, -1))

    @property
    def density(self) -> float:
        """The share of matrix elements that are entries."""
        m, n = self.matrix_shape
        return self.nnz / (m * n) if m and n else 0.0

    @property
    def title(self) -> str:
        return f"∂{self.output}/∂{self.input}"

    def spy(self) -> str:
        """Return a picture of the entries, as text; for a small Jacobian with the letters of the terms."""
        rows, cols, term = self.entries
        return spy.matrix_text(
            rows, cols, self.matrix_shape, term if len(self.terms) > 1 and not self.factors else None
        )

    def check(self) -> Check:
        """Compare the product of a vector and the Jacobian with the gradient that a backward pass computes.

        Returns:
            A :class:`Check`, which is true if they agree. Printing it shows the comparison.

        Raises:
            Exception: any exception of the function's backward pass.
        """
        return _checked(self._jacobian)


def _off_tape(jacobian: Jacobian) -> list[Term]:
    """Return the terms with their tensors replaced by the data."""
    return [Term(t.source, t.cols, data_of(t.vals), t.rows) for t in jacobian.terms]


def _entries(jacobian: Jacobian) -> tuple[NumpyArray, NumpyArray, NumpyArray]:
    """Return rows, columns and numbers of a Jacobian's entries, sorted by rows."""
    terms = _off_tape(jacobian)
    pattern = EntryPattern.of(terms, jacobian.out_shape, jacobian.matrix_shape[1])
    return pattern.row_numbers(), pattern.indices, pattern.data(terms)


def _check(jacobian: Jacobian, rows: NumpyArray, cols: NumpyArray, numbers: NumpyArray) -> None:
    """Raise RuntimeError if the new run has other entries or numbers: the function, or a value that it reads, has changed."""
    order = np.lexsort((cols, rows))
    have, found = _entries(jacobian), (rows[order], cols[order], numbers[order])
    if not all([np.array_equal(a, b) for a, b in zip(have[:2], found[:2], strict=True)]):
        raise errors.explained_jacobian_changed(
            f"it has {len(rows):,} entries instead of {len(have[0]):,}, or entries at other positions"
        )
    near = 1e-4 if numbers.dtype.itemsize < 8 else 1e-8  # the order of summation differs
    largest = float(np.abs(have[2]).max(initial=0.0, where=np.isfinite(have[2])))
    if not np.allclose(found[2], have[2], rtol=near, atol=near * largest, equal_nan=True):
        raise errors.explained_jacobian_changed("its numbers differ")


def _checked(jacobian: Jacobian) -> Check:
    call, J = jacobian.made_by, jacobian.detach()
    if J.dtype.kind == "c":
        return Check(True, "not compared: complex")
    g = np.cos(np.arange(J.matrix_shape[0])).astype(J.dtype)
    args = call.x if type(call.x) is tuple else (call.x,)
    _, pull = vjp(lambda *args: tree_leaves(call.function(*args))[call.output], *args)
    backward = np.asarray(tree_leaves(pull(g.reshape(J.out_shape)))[call.input]).reshape(-1)
    product = np.asarray(g @ J).reshape(-1)
    near = 1e-4 if J.dtype.itemsize < 8 else 1e-6  # intermediate values may be float32
    scale = max(1e-8, float(np.abs(backward).max(initial=0.0, where=np.isfinite(backward))))
    ok = bool(np.allclose(product, backward, rtol=near, atol=near * scale, equal_nan=True))
    return Check(ok, f"yˉ @ J = xˉ, the gradient of backward {'✓' if ok else '✗'}")


def _terms(history: TermHistory, called: Labels, shape: Shape) -> list[JacobianTerm]:
    return [
        JacobianTerm(
            spy.part_letter(k),
            called[term.source],
            words.describe_columns(term, shape, called[term.source]),
            words.describe_values(term),
            term.cols.size,
            tuple(sorted(steps)),
        )
        for k, (term, steps) in enumerate(zip(history.final, history.lineage, strict=True))
    ]


def _steps(made: JacobianRun, called: Labels, names: Names, terms: Sequence[JacobianTerm]) -> list[JacobianStep]:
    history = made.history
    alone = _alone([line.step for line in history.lines])
    return [
        JacobianStep(
            index,
            line.step.prim.name,
            called[line.step, line.output],
            _text(line.step, line.step in alone and line.step not in made.nodes, called, names),
            _line(made.place(line.step), names),
            _local(line, called, names),
            words.describe_state(line.terms, line.shape, called.__getitem__) if made.with_terms else "",
            words.entries_in_a_row(line.terms, math.prod(line.shape)),
            len(line.terms),
            (line.step, line.output) in history.cuts.values(),
            (line.step, line.output) in history.merged,
            "".join([term.letter for term in terms if index in term.steps]),
        )
        for index, line in enumerate(history.lines, 1)
    ]


def _line(where: Where, names: Names) -> SourceLine | None:
    """Return the line of an operation; None if explain itself ran it, like the sums of gradients."""
    line = line_of(where)
    here = names.here
    return None if line is None or (here is not None and line[:2] == here[:2]) else line


def _factors(history: TermHistory, called: Labels, result: Jac) -> list[CutJacobian]:
    """Return the Jacobians of the result and of the intermediate variables with respect to earlier ones; newest first."""
    found = []
    values = [(called[result.origin], result.shape, history.final)]
    values += [(called[cut], cut.shape, cut.terms or []) for cut in reversed(history.cuts)]
    for name, shape, terms in values if history.cuts else ():
        for source in dict.fromkeys([term.source for term in terms if term.source in history.relevant]):
            own = [term for term in terms if term.source is source]
            pattern = EntryPattern.of(own, shape, source.size)
            found.append(CutJacobian(name, called[source], pattern.shape, pattern.nnz))
    return found


def _term_of_each(history: TermHistory, pattern: EntryPattern) -> Any:
    """Return for each entry the number of its term; -1 for explicit zeros that were added later, and for products."""
    numbers = np.full(pattern.nnz, -1)
    if not history.cuts:
        for k, term in enumerate(history.final):
            rows, cols, _ = term.entries()
            numbers[np.searchsorted(pattern.positions, rows * pattern.shape[1] + cols)] = k
    return numbers


# -- names and source text ---------------------------------------------------------------------------------------------


def _called(call: JacobianCall, made: JacobianRun, names: Names) -> Labels:
    """Name the values: inputs after the function's parameters, others after the variables they are assigned to."""
    history, result = made.history, made.result
    called: Labels = {None: "a constant"}
    taken: set[str] = set()

    def enter(key: object, wanted: str) -> None:
        found = wanted
        for k in itertools.count(2):
            if found not in taken:
                break
            found = f"{wanted}_{k}"
        taken.add(found)
        called[key] = found

    inputs = _inputs(call)
    keys = [(line.step, line.output) for line in history.lines]
    assigned = _assigned(made, names)
    if made.backward:
        enter(made.variable, ("out" if call.name in inputs else call.name) + BAR)
        enter(result.origin, inputs[call.input] + BAR)
    else:
        for variable, own in zip(made.trace.variables, inputs, strict=True):
            enter(variable, own)
            for part, which in zip(complex_parts(variable), ("real", "imag"), strict=False):
                enter(part, f"{own}.{which}")
    for key, own in zip(keys, assigned, strict=True):
        if own and key not in called:
            enter(key, own)
    if result.origin not in called:
        enter(result.origin, "out" if call.name in taken | set(assigned) else call.name)
    number = 0
    for key in keys:
        if key not in called:
            number += 1
            enter(key, f"t{number}")
    for cut, origin in history.cuts.items():
        called[cut] = called.get(origin, "")
    return called


def _inputs(call: JacobianCall) -> list[str]:
    """Return the names of the function's arguments and of the arrays in them."""
    args = call.x if type(call.x) is tuple else (call.x,)
    inputs = []
    for name, argument in named_arguments(call.function, args, {}):
        _, spec = tree_flatten(argument)
        inputs += [name + path for path in leaf_paths(spec)]
    return inputs


def _assigned(made: JacobianRun, names: Names) -> list[str]:
    """Return for each step the variable that its result is assigned to; '' for an intermediate value."""
    steps = [line.step for line in made.history.lines]
    found = [""] * len(steps)
    done: dict[Any, set[int]] = {}  # statement -> its instructions after the last result that was assigned
    known: dict[Any, tuple[Any, str]] = {}  # location -> its statement, and the variable that it assigns
    for call in reversed(calls_of(steps)):
        last = steps[call.stop - 1]
        where = Where(last.code, last.lasti)
        if last in made.nodes or _line(where, names) is None:
            continue
        place = last.code, last.lasti
        if place not in known:
            known[place] = statement_at(where), assigned_at(where)
        statement, target = known[place]
        seen = done.setdefault(statement, set())
        if target and (not seen or last.lasti in seen):
            found[call.stop - 1] = target
            seen.clear()
        seen.add(last.lasti)
    return found


def _alone(steps: Sequence[JacStep]) -> set[JacStep]:
    """Return the steps that are the only operation of their call."""
    return {steps[call.start] for call in calls_of(steps) if call.stop == call.start + 1}


def _text(step: JacStep, alone: bool, called: Labels, names: Names) -> str:
    """Return the source of an operation if it is short and flat; else its name and operands."""
    source = Where(step.code, step.lasti).expression if alone else ""
    tree = expression_of(source)
    if tree is not None and len(source) <= _QUOTED and "\n" not in source and _is_flat(tree):
        return source
    return f"{step.prim.name}({', '.join([_operand(step, i, called, names) for i in range(len(step.operands))])})"


def _is_flat(tree: ast.expr) -> bool:
    """Return whether an expression is a single operation on variables and numbers."""
    parts = [node for node in ast.walk(tree) if isinstance(node, (ast.BinOp, ast.Call, ast.Subscript, ast.Compare))]
    return len(parts) == 1


def _operand(step: JacStep, i: int, called: Labels, names: Names) -> str:
    if step.origins[i] is not None:
        return called.get(step.origins[i], "…")
    x = step.operands[i]
    if isinstance(x, (bool, int, float, complex)) or shape_of(x) == ():
        return words.number_text(np.asarray(x).item())
    return names.of(x) or _written(step, i) or "…"


def _written(step: JacStep, i: int) -> str:
    """Return the source of an operand if it is short, else ''."""
    tree = expression_of(Where(step.code, step.lasti).expression)
    parts = [tree.left, tree.right] if isinstance(tree, ast.BinOp) else tree.args if isinstance(tree, ast.Call) else []
    text = ast.unparse(parts[i]) if len(parts) == len(step.operands) else ""
    return text if len(text) <= _OPERAND else ""


class _Value(NamedTuple):
    """A value, with the attributes that ``describe_structure`` reads."""

    name: str
    shape: Shape


class _StepOperand(NamedTuple):
    """A step's result and one operand, with the attributes that ``describe_structure`` reads of an arrow and of its step."""

    prim: Primitive
    params: Params
    output: _Value
    operand_values: dict[int, _Value]
    position: int

    @property
    def step(self) -> _StepOperand:
        return self

    @property
    def input(self) -> _Value:
        return self.operand_values[self.position]


def _local(line: OutputTerms, called: Labels, names: Names) -> tuple[str, ...]:
    """Return the distinct structures of a step's local Jacobians."""
    step = line.step
    output = _Value(called[step, line.output], line.shape)
    operands = {i: _Value(_operand(step, i, called, names), tuple(shape_of(x))) for i, x in enumerate(step.operands)}
    arrows = [
        _StepOperand(step.prim, step.params, output, operands, i) for i, terms in enumerate(line.operands) if terms
    ]
    return tuple(dict.fromkeys([structure.describe_structure(arrow)[0] for arrow in arrows]))
