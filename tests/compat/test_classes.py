"""User-defined array classes, vector spaces, and the names and modules that programs use."""

import pickle
import subprocess
import sys

import numpy as onp
import pytest

import chainrule.compat.autograd as ag
import chainrule.compat.autograd.builtins as agb
import chainrule.compat.autograd.numpy as np
from chainrule import Array
from chainrule.compat.autograd.differential_operators import _make_jvp, _make_vjp
from chainrule.compat.autograd.extend import Box, VSpace, vspace
from chainrule.compat.autograd.numpy.numpy_boxes import ArrayBox
from chainrule.compat.autograd.numpy.numpy_vspaces import ArrayVSpace, ComplexArrayVSpace

X = onp.array([1.0, 2.0])


class Marked(onp.ndarray):
    """An array that computes by itself, and declares whether it may be differentiated."""

    fixed = False

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [x.view(onp.ndarray) if isinstance(x, Marked) else x for x in inputs]
        return onp.asarray(super().__array_ufunc__(ufunc, method, *plain, **kwargs)).view(Marked)


class Refused(Exception):
    pass


def box(x, *args):
    if x.fixed:
        raise Refused
    return ArrayBox(x, *args)


@pytest.fixture
def mappings(monkeypatch):
    monkeypatch.setattr(Marked, "__array_ufunc__", Marked.__array_ufunc__)
    monkeypatch.setitem(Box.type_mappings, Marked, box)
    monkeypatch.setitem(VSpace.mappings, Marked, ArrayVSpace)


@pytest.mark.usefixtures("mappings")
def test_arrays_of_a_class_of_the_programs_own():
    x = X.view(Marked)
    for f in (
        lambda y: x * y,
        lambda y: y * x,
        lambda y: np.multiply(x, y),
        lambda y: onp.add(x, y) * x,
        lambda y: x / (1 / y),
    ):
        assert onp.array_equal(ag.grad(lambda y, f=f: np.sum(f(y)))(x), X)
    assert type(vspace(x)) is ArrayVSpace and type(x * x) is Marked
    assert ag.grad(lambda y: np.sum(np.where(np.iscomplex(y * x), 0.0, y)))(X).tolist() == [1.0, 1.0]  # plain numbers
    x.fixed = True
    for operator in (
        ag.grad(np.sum),
        lambda x: ag.make_jvp(np.sum)(x)(X),
        ag.jacobian(np.sin),
        ag.elementwise_grad(np.sin),
    ):
        with pytest.raises(Refused):
            operator(x)


@pytest.mark.parametrize("mapping", [Box.type_mappings, VSpace.mappings])
def test_only_classes_of_arrays(mapping):
    with pytest.raises(NotImplementedError, match="set is not a class of arrays"):
        mapping[set] = box


def test_spaces_of_arrays():
    assert type(vspace(1.0)) is type(vspace(X)) is ArrayVSpace and type(vspace([X])) is VSpace
    assert isinstance(vspace(1j), ComplexArrayVSpace) and vspace(1j).size == 2
    assert ArrayVSpace([1.0, 2.0]) == vspace(X)


def test_containers_are_classes():
    assert agb.tuple([1, 2]) == (1, 2) and type(agb.list((1,))) is list and agb.dict(a=1) == {"a": 1}
    assert isinstance((), agb.tuple) and isinstance([], agb.list) and not isinstance((), agb.list)
    assert len({tuple, list, dict, agb.tuple, agb.list, agb.dict, agb.SequenceBox, agb.DictBox}) == 8
    assert ag.grad(lambda x: np.sum(np.array(agb.tuple([x, x * x]))))(3.0) == 7.0


def test_names_that_are_copied():
    """A program that copies the module's dictionary must find its own submodules, not NumPy's."""
    copied = dict(vars(np))
    assert "__getattr__" not in copied and np.ma is onp.ma
    with pytest.raises(AttributeError, match="no_such_name"):
        np.no_such_name


def test_operators_by_their_inner_names():
    vjp, y = _make_vjp(lambda x: x**2, 3.0)
    assert (y, vjp(1.0)) == (9.0, 6.0) and _make_jvp(lambda x: x**2, 3.0)(1.0) == (9.0, 6.0)


def test_cotangents_that_are_other_containers():
    class Foreign:
        shape, dtype = (2,), "float64"

        def __array__(self, dtype=None, copy=None):
            return X

    pull, _ = _make_vjp(lambda x: x * X, X)
    for g in (Foreign(), [1.0, 2.0], (1.0, 2.0)):
        assert onp.array_equal(pull(g), X**2)
    pull, _ = _make_vjp(lambda x: [x * X, (x,)], X)
    assert onp.array_equal(pull((X, [X])), X**2 + X)


NAMED = """
import pickle, sys
import chainrule.compat
chainrule.compat.install("autograd")
from autograd import grad
from autograd.numpy.numpy_boxes import ArrayBox
import chainrule as cr
names = []
grad(lambda x: names.append(type(x).__module__) or x)(1.0)
assert type(cr.Array([1.0])) is ArrayBox
sys.stdout.buffer.write(pickle.dumps((names, cr.Array([1.0]))))
"""


def test_boxes_say_that_they_are_autograds():
    """autoray and PennyLane check the first part of the module name; pickles can be read without installation."""
    found = subprocess.run([sys.executable, "-c", NAMED], capture_output=True, check=True).stdout
    names, array = pickle.loads(found)
    assert names == ["autograd.numpy.numpy_boxes"] and type(array) is Array and array[0] == 1.0
