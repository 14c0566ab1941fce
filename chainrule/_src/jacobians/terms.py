"""Terms: the parts that a structured Jacobian is the sum of.

A value's Jacobian with respect to a variable is a sum of terms. A term says for each element of the value (a *row*) which
elements of the variable it depends on (``cols``) and how much (``vals``). Both have an axis of *slots* in front and then
the value's shape, so that what moves the value's elements (views, slices, gathers) moves those of cols and vals in the
same way, and what scales them scales vals by broadcasting.
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
    """What columns count: the elements of one input, or of a value that the computation was cut at.

    Attributes:
        seed: the numbers of the elements, in the variable's shape; ``cols`` with an axis of one slot in front.
        terms: the Jacobian of a value that was cut, with respect to earlier variables; None for an input.
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
        """The Jacobian of the variable with respect to itself."""
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
        """The terms of the variable's value; of complex elements with respect to their parts."""
        if not self.size:
            return []
        if self.dtype.kind != "c":
            return [self.identity()]
        real, imag = self.parts
        return [Term(real, self.cols, 1), Term(imag, self.cols, 1j)]


class Term:
    """One summand of a value's Jacobian.

    Slot e of row s is the entry ``vals[e, s]`` in column ``cols[e, s]``. Entries at one place add up.

    Attributes:
        source: the variable that the columns are of.
        cols: integers of shape ``(slots, *S)``, often a strided view of ``source.seed``.
        vals: a number, or an array-like with as many axes as cols, each as long or of length 1.
        rows: None if there is a row for each element of the value (S is its shape); else the positions of the rows
            (S is ``(len(rows),)``), in which one may come more than once.
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
        """Whether a column is a linear function of the indices of its entry: then the strides of cols say which."""
        base = self.cols.base
        own = self.source.seed
        return base is own or (own.base is not None and base is own.base)

    def full_vals(self) -> Any:
        """vals in the shape of cols."""
        return np.broadcast_to(self.vals, self.cols.shape)

    def entries(self) -> tuple[IndexArray, IndexArray, Any]:
        """Rows, columns and values of all entries, each of one axis."""
        cols = self.cols
        count = math.prod(cols.shape[1:])
        rows = np.arange(count) if self.rows is None else self.rows
        return np.broadcast_to(rows, (cols.shape[0], count)).reshape(-1), cols.reshape(-1), flat(self.full_vals())

    def __repr__(self) -> str:
        where = "" if self.rows is None else f", in {len(self.rows)} rows"
        vals = self.vals if not shape_of(self.vals) else f"shape {tuple(shape_of(self.vals))}"
        return f"<term {self.cols.shape}{' affine' * self.affine}, vals {vals}{where}>"


def flat(x: Any) -> Any:
    """All elements along one axis."""
    return x.reshape(-1) if type(x) is ndarray else np.reshape(x, (-1,))


def merged(terms: list[Term]) -> list[Term]:
    """Terms in the same rows and columns, as one."""
    if len(terms) == 1 or not terms:
        return terms
    kept: dict[Any, Term] = {}
    for term in terms:
        key = (id(term.cols), id(term.rows), id(term.source))
        other = kept.get(key)
        kept[key] = term if other is None else Term(term.source, term.cols, other.vals + term.vals, term.rows)
    return list(kept.values())


class Unstructured(Exception):
    """Terms cannot be carried through an operation; the message says which, and why."""
