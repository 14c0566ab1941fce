"""``ArrowRule``: the rule of one arrow as NumPy, LaTeX, MathML, for one element, with numbers, or as a sentence.

``ArrowRule(arrow).formula`` is the tree from which all forms are printed; ``numpy``, ``latex``, ``mathml``, ``index`` and ``numbers``
are strings, or None if the rule has no such form. ``steps.Arrow`` shows them.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import NumpyArray, Params
from chainrule._src.explaining.elements import ElementReader, index_letters, rounded_constant
from chainrule._src.explaining.formula import Formula, formula_helper, formula_text
from chainrule._src.explaining.notation import LATEX, MATHML, NUMBERS, TEXT, Alphabet, bar, index_brackets, print_tree
from chainrule._src.explaining.simplify import cotangent_name, parse_formula, simplify_formula
from chainrule._src.explaining.step_data import ArrowData, StepData
from chainrule._src.explaining.tree import NoForm, is_scalar
from chainrule._src.explaining.values import Value, identifier, node_outputs, operands_of
from chainrule._src.rules.structure import structure_of
from chainrule._src.tape.node import Node

ndarray = np.ndarray
_SMALL = 4096  # most elements of arrays whose numbers are compared eagerly
_LONG = 600  # most characters of a formula of one element


def operand_names(node: Node) -> tuple[str, ...]:
    """Return the primitive's names of a node's operands; for a custom Function, the positions of the arguments."""
    prim = node.prim
    if prim.kind == "function":
        return tuple(f"argument {i}" for i in node.params["at"])
    if prim.variadic:
        return tuple(f"{prim.operands[-1].lstrip('*')}[{i}]" for i in range(len(node.edges)))
    return tuple(prim.operands)


def set_constants(step: StepData) -> None:
    """Set a step's operands, and list those that no gradient flows to."""
    record, node, values = step.record, step.record.node, step.all_values
    step.operands = operands_of(record, values.known) if node.prim.kind != "function" else [None] * len(node.edges)
    step.operand_values = {a.position: a.input for a in step.arrows}
    for i, (edge, data) in enumerate(zip(node.edges, step.operands)):
        if i in step.operand_values:
            continue
        if edge is not None and edge in values.by_edge:
            step.operand_values[i] = values.by_edge[edge]
        elif data is not None:
            why = "requires grad, but no value in wrt depends on it" if edge is not None else "does not require grad"
            if edge is None and getattr(data, "dtype", np.dtype(float)).kind in "iub":
                why = "integers and booleans have no gradient"
            value = values.constant(data, why, edge)
            step.operand_values[i] = value
            step.constants.append(value)


def _called(step: StepData, index: int) -> str:
    """Return the program's name of an output that receives no cotangent."""
    edge = next((edge for edge in node_outputs(step.record.node) if getattr(edge, "index", 0) == index), None)
    name = None if edge is None else step.all_values.names.of(edge)
    return identifier(name or "") or f"{step.record.node.prim.outputs[index]}{step.index}"


class ArrowRule:
    """The rule of one arrow, in all forms."""

    def __init__(self, arrow: ArrowData) -> None:
        self.arrow = arrow
        self.prim = arrow.step.record.node.prim

    @functools.cached_property
    def formula(self) -> Formula | None:
        text = formula_text(self.prim, self.arrow.position)
        if text is None:
            return None
        try:
            return self._matching(text)
        except Exception:  # a user's formula that cannot be parsed
            if self.prim.listed:
                raise
            return None

    def _matching(self, text: str) -> Formula | None:
        if not self.complex:
            return self._build(text, True, ())
        for conjugated in ((), (*self.prim.operands, *self.prim.outputs), tuple(self.prim.operands)):
            formula = self._build(text, False, conjugated)
            if _close(formula, self.arrow.downstream):
                return formula
        return None

    @property
    def complex(self) -> bool:
        step = self.arrow.step
        kinds = [self.arrow.downstream, step.upstream, *step.operands]
        return any(getattr(getattr(x, "dtype", None), "kind", "") == "c" or isinstance(x, complex) for x in kinds)

    def _build(self, text: str, real: bool, conjugated: tuple[str, ...]) -> Formula:
        step, prim = self.arrow.step, self.prim
        values, names, fixed = self._names()
        scalars = {k for k, v in values.items() if is_scalar(v)}
        tree = simplify_formula(prim, text, fixed, scalars, self.arrow.position, real, conjugated)
        taken = set(names.values())
        for key, value in step.params.items():
            if key not in values:
                values[key], names[key] = value, key + "_" * (key in taken)
        down = self.arrow.downstream
        return Formula(
            tree, values, names, functools.partial(formula_helper, prim), step.upstream.shape, down.shape, down.dtype,
            prim.kind == "elementwise",
        )  # fmt: skip

    def _names(self) -> tuple[Params, dict[str, str], Params]:
        """Return the values of the names in a formula, the user's names of them, and the names replaced by literals."""
        step, prim = self.arrow.step, self.prim
        node, several = step.record.node, len(prim.outputs) > 1
        values: Params = {}
        names: dict[str, str] = {}
        fixed: Params = dict(step.params)
        gs = step.record.g if several else (step.record.g,)
        by_index = {getattr(v.edge, "index", 0): v for v in step.outputs}
        for i, (output, g) in enumerate(zip(prim.outputs, gs)):
            value = by_index.get(i)
            name = value.identifier if value is not None else _called(step, i)
            values[cotangent_name(prim, i)], names[cotangent_name(prim, i)] = g, bar(name)
            key = output if several else "out"
            data = self._output(i, value)
            if data is not None:
                values[key] = data
            names[key] = name
            for key in (output,) if several else (output, "g", "out"):
                if g is not None:
                    fixed[key + "_shape"], fixed[key + "_size"] = g.shape, g.size
        shapes = [self._about(i) for i in range(len(node.edges))]
        if prim.variadic:
            name = prim.operands[-1].lstrip("*")
            fixed[name + "_shape"], fixed[name + "_dtype"] = (tuple(about) for about in zip(*shapes))
            values[name] = tuple(step.operands)
            return values, names, fixed
        for i, name in enumerate(prim.operands[: len(node.edges)]):
            fixed[name + "_shape"], fixed[name + "_dtype"] = shapes[i]
            fixed[name + "_size"] = math.prod(shapes[i][0])
            data, value = step.operands[i], step.operand_values.get(i)
            if data is None and value is not None:
                data = step.all_values.known.get(value.edge)
            single = prim.kind == "elementwise" and type(data) is ndarray and data.ndim == 0
            unnamed = value is not None and value.role == "constant" and _unnamed(value)
            if isinstance(data, (bool, int, float)) or (single and unnamed):
                fixed[name] = data
            if data is not None:
                values[name] = step.all_values.copy(data)
            names[name] = name if value is None else value.identifier
        return values, names, fixed

    def _output(self, index: int, value: Value | None) -> Any:
        record, prim = self.arrow.step.record, self.prim
        name = prim.outputs[index] if len(prim.outputs) > 1 else "out"
        if name in prim.saves:
            data = record.saved[prim.saves.index(name)]
            if data is not None:
                return self.arrow.step.all_values.copy(data)
        return None if value is None else value.data

    def _about(self, i: int) -> tuple[Any, Any]:
        """Return shape and dtype of an operand, or those of the cotangent if unknown."""
        step = self.arrow.step
        node = step.record.node
        value = step.operand_values.get(i)
        if node.in_avals is not None:
            return node.in_avals[i]
        if value is not None:
            return value.shape, value.dtype
        data = step.operands[i]
        if data is not None:
            return shape_of(data), getattr(data, "dtype", step.upstream.dtype)
        return step.upstream.shape, step.upstream.dtype

    @functools.cached_property
    def exact(self) -> bool:
        """Whether the formula reproduces the rule's result at these numbers (compared for small arrays only)."""
        return self.formula is None or self.arrow.downstream.size > _SMALL or self.holds

    @functools.cached_property
    def holds(self) -> bool:
        """Whether the formula reproduces the rule's result, for arrays of all sizes."""
        return self.formula is not None and _close(self.formula, self.arrow.downstream)

    @property
    def left(self) -> str:
        return bar(self.arrow.input.identifier)

    @functools.cached_property
    def numpy(self) -> str | None:
        return None if self.formula is None else self.formula.numpy()

    def environment(self) -> Params:
        return {} if self.formula is None else self.formula.environment()

    def equation(self, to: Alphabet) -> str | None:
        """Return the rule for whole arrays, in an output format."""
        return None if self.formula is None else self.formula.equation(self.left, self.arrow.sign, to)

    @functools.cached_property
    def latex(self) -> str | None:
        return self.equation(LATEX)

    @functools.cached_property
    def mathml(self) -> str | None:
        return self.equation(MATHML)

    @functools.cached_property
    def words(self) -> str:
        if self.prim.kind == "function":
            return f"{self.prim.name}.backward computes it: user code without a formula"
        if self.formula is None and self.complex:
            return f"the rule of {self.prim.name} for complex numbers is code without a formula"
        if self.formula is None:
            return f"the rule of {self.prim.name} is code without a formula"
        if not self.exact:
            return (
                "at these numbers the rule handles a special case (a zero, an infinity or a tie) that the formula omits"
            )
        return ""

    @functools.cached_property
    def _letters(self) -> tuple[Any, ...]:
        structure = structure_of(self.prim, self.arrow.position, self.arrow.step.params)
        operands, product, _ = structure.partition("->")
        mine = operands.split(",")[self.arrow.position] if product else ""
        return index_letters(self.arrow.input.shape, mine)

    @functools.cached_property
    def index(self) -> str | None:
        if self.formula is None or not self.exact:
            return None
        try:
            index = self._letters
            right = print_tree(ElementReader(self._indexed, used=index).result(index), TEXT)
            return None if len(right) > _LONG else f"{self.left}{index_brackets(index)} {self.arrow.sign} {right}"
        except NoForm:
            return self._moved()

    @property
    def _indexed(self) -> Formula:
        """The formula from which the form for one element is computed."""
        f = self.formula
        assert f is not None
        if self.prim.name == "stack_mm" and self.arrow.position == 1 and set(f.values) == {"x", "g"}:
            many = "abcdefgh"[: f.values["g"].ndim - 1]
            f = Formula(
                parse_formula(f"np.einsum('{many}y,{many}z->yz', x, g)"), f.values, f.names, functools.partial(formula_helper, self.prim),
                self.arrow.step.upstream.shape, f.shape, f.dtype, False,
            )  # fmt: skip
        return f

    def _moved(self) -> str | None:
        """Return the form for one element of a primitive that only moves elements."""
        indices = self._source_indices
        if indices is None:
            return None
        x, y = self.arrow.input, self.arrow.step.output
        try:
            names = index_letters((2,) * (len(x.shape) + len(y.shape)))
        except NoForm:
            return None
        mine, other = names[: len(x.shape)], names[len(x.shape) :]
        counts = np.bincount(indices.reshape(-1), minlength=max(int(np.prod(x.shape)), 1))
        condition = f"{y.identifier}{index_brackets(other)} is {x.identifier}{index_brackets(mine)}"
        right = f"{bar(y.identifier)}{index_brackets(other)}"
        if (counts > 1).any():
            return f"{self.left}{index_brackets(mine)} {self.arrow.sign} Σ {right} over all elements where {condition}"
        elsewhere = ", else 0" if (counts == 0).any() else ""
        return f"{self.left}{index_brackets(mine)} {self.arrow.sign} {right} where {condition}{elsewhere}"

    @functools.cached_property
    def _source_indices(self) -> Any:
        """For each element of the output, the flat index of the operand's element; None unless elements only move."""
        step, x = self.arrow.step, self.arrow.input
        if not self.prim.moves or self.arrow.position != 0:
            return None
        positions = np.arange(int(np.prod(x.shape))).reshape(x.shape)
        moved = np.asarray(self.prim.value(positions, *step.operands[1:], **step.params))
        return moved if moved.shape == step.output.shape else None

    @functools.cached_property
    def numbers(self) -> str | None:
        down = self.arrow.downstream
        if down.size == 0 or self.formula is None or not self.exact:
            return None
        at = (0,) * down.ndim
        left, right = f"{self.left}{index_brackets(at)}", _four_digits(down[at])
        try:
            text = print_tree(ElementReader(self._indexed, True).result(at), NUMBERS)
        except NoForm:
            return self._moved_numbers()
        if len(text) > _LONG:
            return None
        left = f"{left} {self.arrow.sign} {text}"
        return left if text == right else f"{left} = {right}"

    def _moved_numbers(self) -> str | None:
        indices = self._source_indices
        if indices is None or not indices.size:
            return None
        first = int(indices.min())
        y, down, up = self.arrow.step.output, self.arrow.downstream, self.arrow.step.upstream
        sources = [tuple(int(i) for i in at) for at in np.argwhere(indices == first)[:5]]
        at = tuple(int(i) for i in np.unravel_index(first, down.shape))
        terms = " + ".join(f"{bar(y.identifier)}{index_brackets(s)}" for s in sources[:4]) + " + …" * (len(sources) > 4)
        several = " + ".join(_four_digits(up[s]) for s in sources[:4]) + " = " if 1 < len(sources) < 5 else ""
        return f"{self.left}{index_brackets(at)} {self.arrow.sign} {terms} = {several}{_four_digits(down[at])}"


def _four_digits(x: object) -> str:
    return print_tree(rounded_constant(x), NUMBERS)


def _unnamed(value: Value) -> bool:
    return not value.identifier or value.identifier.startswith("c_")


def _close(formula: Formula, downstream: NumpyArray) -> bool:
    loose = downstream.dtype.itemsize <= (8 if downstream.dtype.kind == "c" else 4)
    try:
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(downstream), initial=0.0, where=np.isfinite(downstream))
            tolerance = {"rtol": 1e-2 if loose else 1e-7, "atol": (1e-3 if loose else 1e-9) * scale}
            return bool(np.allclose(formula.value(), downstream, **tolerance, equal_nan=True))
    except Exception:  # the formula reads an unknown value: nothing to compare
        return True
