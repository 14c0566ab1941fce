"""Callables for SciPy's solvers: values, gradients, Jacobians and Hessians of functions of one vector.

``flat`` functions (see :func:`~chainrule.scipy.vectors.flat_function`) come in; the solvers of this package pass the objects
to SciPy as ``fun``, ``jac``, ``hess`` and ``hessp``.
"""

from __future__ import annotations

import functools
import importlib
import math
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction
from chainrule._src.compiling import compile
from chainrule._src.jacobians.api import hessian, jacobian
from chainrule._src.jacobians.layouts import SPARSE_BELOW
from chainrule._src.jacobians.prepared import prepare_hessian, prepare_jacobian
from chainrule._src.tape.foreign import in_memory
from chainrule._src.transforms.grad import value_and_grad
from chainrule._src.transforms.jacrev import hvp
from chainrule.scipy.journal import Journal
from chainrule.scipy.vectors import FloatVector, output_value, plain_vector

ndarray = np.ndarray
SPARSE_FROM = 50  # number of unknowns from which sparse matrices are tried


def scipy_module(name: str, caller: str) -> Any:
    """Import a module of SciPy.

    Raises:
        ModuleNotFoundError: SciPy is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"chainrule.scipy.{caller} calls SciPy, which is not installed: pip install chainrule[scipy]",
            name="scipy",
        ) from error


class LastCallCache:
    """A function of a vector that caches the result of the last call."""

    def __init__(self, function: AnyFunction) -> None:
        self.function = function
        self.x: FloatVector | None = None
        self.result: Any = None

    def __call__(self, x: FloatVector) -> Any:
        if self.x is None or not np.array_equal(self.x, x):
            self.result = self.function(x)
            self.x = np.array(x)
        return self.result


class Objective:
    """A scalar function of a vector with its derivatives. One run computes value and gradient, as one vector.

    Args:
        flat: a function from a vector to a 0-d array.
        what: its name in error messages.
        compiled: whether to compile the function.
        sparse: whether the Hessian may be a sparse matrix.
        journal: stores values, gradients and Hessian products in a file.
    """

    def __init__(
        self, flat: AnyFunction, what: str, compiled: bool, sparse: bool, journal: Journal | None = None
    ) -> None:
        self.flat = flat
        self.what = what
        self._both = maybe_compiled(value_and_grad(flat), compiled)
        self._products = maybe_compiled(functools.wraps(flat)(lambda x, p: hvp(flat, x, p)), compiled)
        cached = journal.cached if journal is not None else lambda function: function
        self.both = LastCallCache(cached(self._value_and_gradient))
        self.products = cached(self._hessian_product)
        self.values = cached(self._value_alone)
        self.hessian = HessianFunction(flat, what, compiled, sparse)

    def plain(self, x: FloatVector) -> float:
        """Return the value without computing the gradient."""
        return float(self.values(np.array(x))[0])

    def _value_alone(self, x: FloatVector) -> FloatVector:
        value = output_value(self.flat(x), self.what)
        if value.shape or value.dtype.kind == "c":
            kind = "a complex number" if not value.shape else f"an array of shape {value.shape}"
            raise ValueError(
                f"{self.what} returned {kind}: expected a real number, such as np.sum or np.mean of an array"
            )
        return np.array([float(value)])

    def value(self, x: FloatVector) -> float:
        return float(self.both(x)[0])

    def gradient(self, x: FloatVector) -> FloatVector:
        return self.both(x)[1:]

    def hessian_product(self, x: FloatVector, p: FloatVector) -> FloatVector:
        return self.products(np.array(x), np.array(p))

    def _value_and_gradient(self, x: FloatVector) -> FloatVector:
        value, gradient = in_memory(self._both(x))  # computes lazy arrays in one pass
        return np.concatenate([output_value(value, self.what)[None], plain_vector(gradient, self.what)])

    def _hessian_product(self, x: FloatVector, p: FloatVector) -> FloatVector:
        return plain_vector(self._products(x, p), self.what)


class MatrixDerivative:
    """A derivative of a function of one vector, as a matrix for SciPy.

    Args:
        flat: the function; arguments after the first are constants.
        what: its name in error messages.
        compiled: whether to compile the function.
        sparse: whether the matrix may be sparse. It is sparse if it is large and mostly zero at the first point.
    """

    derivative: AnyFunction  # jacobian or hessian
    prepare: AnyFunction  # prepare_jacobian or prepare_hessian

    def __init__(self, flat: AnyFunction, what: str, compiled: bool, sparse: bool) -> None:
        self.flat = flat
        self.what = what
        self.compiled = compiled
        self.prepared: Any = None  # the compiled sparse matrix
        self.sparse: bool | None = None if sparse else False
        derivative = type(self).derivative
        dense_derivative = functools.wraps(flat)(lambda x, *args: derivative(lambda x: flat(x, *args), x))
        self.dense = maybe_compiled(dense_derivative, compiled)

    def __call__(self, x: FloatVector, *args: object) -> Any:
        x = np.array(x)
        large = x.size >= SPARSE_FROM and x.dtype.kind == "f"
        if self.sparse is None and self.compiled and large:
            self.prepared = type(self).prepare(self.flat, x, args=args, on_change="record")
            self.sparse = self.prepared.nnz < SPARSE_BELOW * math.prod(self.prepared.sparsity.shape)
        if self.sparse and self.compiled:
            return self.prepared(x, *args).astype(x.dtype, copy=False)
        if self.sparse is not False and large:
            layout = "csr" if self.sparse else "auto"
            result = type(self).derivative(lambda x: self.flat(x, *args), x, layout=layout)
            self.sparse = type(result) is not ndarray
            return result.astype(x.dtype)
        return np.asarray(output_value(self.dense(x, *args), self.what), x.dtype)


class JacobianFunction(MatrixDerivative):
    """The Jacobian of a function from vector to vector."""

    derivative = staticmethod(jacobian)
    prepare = staticmethod(prepare_jacobian)


class HessianFunction(MatrixDerivative):
    """The Hessian of a scalar function of a vector."""

    derivative = staticmethod(hessian)
    prepare = staticmethod(prepare_hessian)


def maybe_compiled(function: AnyFunction, compiled: bool) -> AnyFunction:
    return compile(function) if compiled else function
