"""``Term`` and ``Variable``: a structured Jacobian is a sum of terms.

A term stores for each element of a value (a *row*) the elements of the variable that it depends on (``cols``), and the derivatives
(``vals``). Both arrays have a leading axis of *slots*, followed by the value's shape. So operations that move the value's elements
(views, slices, gathers) apply to cols and vals, too, and factors multiply vals by broadcasting.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import NumpyDType

ndarray = np.ndarray
IndexArray = np.ndarray[Any, np.dtype[np.intp]]


class Variable:
    """The variable of a Jacobian, whose elements are the columns: an input, or an intermediate variable (see ``accumulate``).

    Attributes:
        seed: the flat indices of the elements, in the variable's shape; ``cols`` has a leading axis of one slot.
        terms: the Jacobian of an intermediate variable with respect to earlier variables; None for an input.
    """

    __slots__ = ("_parts", "cols", "dtype", "seed", "shape", "size", "terms")

    def __init__(self, shape: tuple[int, ...], dtype: NumpyDType, terms: list[Term] | None = None) -> None:
        self.shape = shape
        self.size = math.prod(shape)
        self.dtype = dtype
        self.seed: IndexArray = np.arange(self.size).reshape(shape)
        self.cols = self.seed[None]
        self.terms = terms
        self._parts: tuple[Variable, Variable] | None = None

    def identity(self) -> Term:
        """Return the Jacobian of the variable with respect to itself."""
        return Term(self, self.cols, 1)

    @property
    def parts(self) -> tuple[Variable, Variable]:
        """Variables of the real and the imaginary parts of complex elements."""
        if self._parts is None:
            self._parts = (self._part(), self._part())
        return self._parts

    def _part(self) -> Variable:
        part = Variable((), np.empty(0, self.dtype).real.dtype)
        part.shape, part.size, part.seed, part.cols = self.shape, self.size, self.seed, self.cols
        return part

    def start(self) -> list[Term]:
        """Return the terms of the variable's value; for a complex variable, with respect to its parts."""
        if not self.size:
            return []
        if self.dtype.kind != "c":
            return [self.identity()]
        real, imag = self.parts
        return [Term(real, self.cols, 1), Term(imag, self.cols, 1j)]


class Term:
    """One summand of a value's Jacobian.

    Slot e of row s is the entry ``vals[e, s]`` in column ``cols[e, s]``. Entries at the same position are added.

    Attributes:
        source: the variable.
        cols: integers of shape ``(slots, *S)``, often a strided view of ``source.seed``.
        vals: a number, or an array-like that broadcasts to the shape of cols, with as many axes.
        rows: None if each element of the value has a row (S is its shape); else the positions of the rows (S is
            ``(len(rows),)``), possibly with duplicates.
    """

    __slots__ = ("cols", "rows", "source", "vals")

    def __init__(self, source: Variable, cols: IndexArray, vals: Any, rows: IndexArray | None = None) -> None:
        self.source = source
        self.cols = cols
        self.vals = vals
        self.rows = rows

    @property
    def slots(self) -> int:
        return self.cols.shape[0]

    @property
    def affine(self) -> bool:
        """Whether the column is a linear function of the indices of the entry, given by the strides of cols."""
        base = self.cols.base
        own = self.source.seed
        return base is own or (own.base is not None and base is own.base)

    def full_vals(self) -> Any:
        """Return vals, broadcast to the shape of cols."""
        return np.broadcast_to(self.vals, self.cols.shape)

    def entries(self) -> tuple[IndexArray, IndexArray, Any]:
        """Return rows, columns and values of all entries, flat."""
        cols = self.cols
        count = math.prod(cols.shape[1:])
        rows = np.arange(count) if self.rows is None else self.rows
        return (
            np.broadcast_to(rows, (cols.shape[0], count)).reshape(-1),
            cols.reshape(-1),
            flatten_array(self.full_vals()),
        )

    def __repr__(self) -> str:
        where = "" if self.rows is None else f", in {len(self.rows)} rows"
        vals = self.vals if not shape_of(self.vals) else f"shape {tuple(shape_of(self.vals))}"
        return f"<term {self.cols.shape}{' affine' * self.affine}, vals {vals}{where}>"


#: for each output, for each input
TermGrid = list[list[list[Term]]]


def flatten_array(x: Any) -> Any:
    """Flatten an array-like."""
    return x.reshape(-1) if type(x) is ndarray else np.reshape(x, (-1,))


def merge_terms(terms: list[Term]) -> list[Term]:
    """Merge terms with the same rows and columns (the same array objects)."""
    if len(terms) == 1 or not terms:
        return terms
    kept: dict[Any, Term] = {}
    for term in terms:
        key = (id(term.cols), id(term.rows), id(term.source))
        other = kept.get(key)
        kept[key] = term if other is None else Term(term.source, term.cols, other.vals + term.vals, term.rows)
    return list(kept.values())


class Unstructured(Exception):
    """Terms cannot be propagated through an operation; the message has its name and the reason."""
