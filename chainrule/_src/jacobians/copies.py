"""Copy terms: with copied numbers, with another variable, and in a form that can be pickled. ``Jacobian`` uses it."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyArray
from chainrule._src.jacobians.terms import Term, Variable
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray


def copy_vals(vals: object) -> Any:
    """Copy numbers; copy values that are repeated along an axis only once."""
    if type(vals) is ndarray:
        return vals[tuple([slice(None) if step else slice(1) for step in vals.strides])].copy()
    return vals.clone() if isinstance(vals, Tensor) else vals


def with_variable(term: Term, variable: Variable) -> Term:
    """Return a term with respect to another variable of the same shape."""
    return term if term.source is variable else decode_term(encode_columns(term), term.vals, term.rows, variable)


def encode_columns(term: Term) -> Any:
    """Return a term's columns in a form to pickle: an offset, steps and a shape if they are affine, else an array."""
    cols = term.cols
    if not term.affine or not cols.size:
        return np.ascontiguousarray(cols)
    return int(cols[(0,) * cols.ndim]), [step // cols.itemsize for step in cols.strides], cols.shape


def decode_term(columns: Any, vals: object, rows: NumpyArray | None, variable: Variable) -> Term:
    """Return the term with respect to a variable whose columns ``encode_columns`` encoded."""
    if isinstance(columns, ndarray):
        return Term(variable, columns, vals, rows)
    offset, steps, shape = columns
    seed = variable.seed if variable.seed.base is None else variable.seed.base
    size = seed.itemsize
    cols: Any = np.ndarray(shape, seed.dtype, seed, offset * size, [step * size for step in steps])
    return Term(variable, cols, vals, rows)
