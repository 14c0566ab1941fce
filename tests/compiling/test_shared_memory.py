"""Writes into memory shared by two tensors after a transformation: recordings have eager results, or are refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import forward_ad


class Handed(cr.autograd.Function):
    @staticmethod
    def forward(x):
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g


def _dual(f):
    def through(x):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(f(forward_ad.make_dual(x, x)))[0]

    return through


THROUGH = {
    "vmap": cr.vmap,
    "vmap of another axis": lambda f: cr.vmap(f, in_dims=1, out_dims=-1),
    "vmap of what is shared": lambda f: lambda x: cr.vmap(lambda a, _: f(a), (None, 0), None)(x, x),
    "primal": lambda f: lambda x: cr.func.jvp(f, (x,), (x * 2,))[0],
    "tangent": lambda f: lambda x: cr.func.jvp(f, (x * 2,), (x,))[1],
    "vjp": lambda f: lambda x: cr.func.vjp(f, x)[0],
    "pulled back": lambda f: lambda x: cr.func.vjp(f, x)[1](f(x))[0],
    "linearize": lambda f: lambda x: cr.func.linearize(f, x)[1](x),
    "aux": lambda f: lambda x: cr.func.grad(lambda a: (a.sum(), f(a)), has_aux=True)(x)[1],
    "functional": lambda f: lambda x: cr.autograd.functional.jvp(f, x, x)[1],
    "forward_ad": _dual,
    "Function": lambda f: lambda x: f(Handed.apply(x)),
    "two": lambda f: lambda x: cr.func.jvp(cr.vmap(f), (x,), (x * 2,))[0],
}
TENSORS_ALONE = {"functional", "forward_ad", "Function"}
WHAT = {"all": lambda a: a, "row": lambda a: a[0], "moved": lambda a: a.reshape(-1), "new": lambda a: a * 1.5}
WRITES = {
    "multiplied": lambda y: y.__imul__(3),
    "an element": lambda y: y.__setitem__(0, 7.0),
    "by a mask": lambda y: y.__setitem__(y > 1.5, 7.0),
    "out": lambda y: (cr if isinstance(y, cr.Tensor) else np).multiply(y, 2.0, out=y),
}
CASES = [  # a result, a write to it, and whether the write goes through the result
    ("all", "multiplied", True),
    ("all", "an element", False),
    ("row", "an element", True),
    ("moved", "by a mask", False),
    ("new", "out", True),
]


def _program(through, what, write, first):
    def program(x):
        y = through(what)(x)
        write(y if first else x)
        return x * 1, y * 1

    return program


def _outcome(function, x):
    try:
        return [np.asarray(part).tolist() for part in (*function(x), x)]
    except (RuntimeError, TypeError) as error:
        return type(error)


@pytest.mark.parametrize("name", THROUGH)
def test_what_is_written_through_either_is_seen_in_both(name):
    for what, write, through_result in CASES:
        program = _program(THROUGH[name], WHAT[what], WRITES[write], through_result)
        compiled = cr.compile(program, pure=True)
        for scale in (1.0, 2.0):
            numbers = np.array([[1.0, 2.0], [1.25, 1.75]]) * scale
            for made in (cr.tensor, np.array) if name not in TENSORS_ALONE else (cr.tensor,):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    assert _outcome(compiled, made(numbers)) == _outcome(program, made(numbers)), (what, write)


RECORDED = {
    "a copy": lambda x: cr.vmap(lambda a: a)(x).clone().mul_(3) + x,
    "a new value": lambda x: cr.vmap(lambda a: a * 2)(x).mul_(3) + x,
    "gradients": lambda x: cr.func.grad(lambda a: (a * a).sum())(x).mul_(3) + x,
    "the other one is gone": lambda x: cr.vmap(lambda a: a)(x * 2).mul_(3),
    "an index": lambda x: _put(x * 2),
    "one gradient of two": lambda x: _clipped(x),
    "what a pullback gives": lambda x: cr.func.vjp(lambda a: a, x)[1](x)[0].mul_(3) + x,
}


def _put(y):
    y[cr.tensor([0])] = 1.0
    y[y > 3] = 0.0
    return y


def _clipped(x):
    w, v = x.clone().requires_grad_(), x.clone().requires_grad_()
    (w + v).backward(x * 2)
    w.grad.mul_(3)
    return w.grad + v.grad


def test_an_array_that_python_has_of_a_tensor_is_seen_to_change():
    def program(x):
        numbers = np.asarray(x)
        x.mul_(2)
        return cr.tensor(numbers) + x

    with pytest.warns(UserWarning, match="of which it has an array"):
        assert cr.compile(program)(cr.tensor([1.0])).tolist() == program(cr.tensor([1.0])).tolist() == [4.0]


@pytest.mark.parametrize("name", RECORDED)
def test_what_nobody_else_has_is_written_in_a_recording(name):
    x = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    compiled = cr.compile(RECORDED[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [compiled(x).tolist() for _ in range(3)]
    assert found == [RECORDED[name](x).tolist()] * 3


@pytest.mark.parametrize("name", [name for name in THROUGH if name not in TENSORS_ALONE])
def test_what_arrays_come_back_as_is_a_copy_in_a_recording_too(name):
    program = _program(THROUGH[name], WHAT["row"], WRITES["multiplied"], True)
    compiled, x = cr.compile(program), np.array([[1.0, 2.0], [1.25, 1.75]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _outcome(compiled, x.copy()) == _outcome(program, x.copy())
    assert compiled.recordings


SAME = {
    "asfortranarray": lambda v: np.asfortranarray(v),
    "asarray": lambda v: np.asarray(v),
    "require": lambda v: np.require(v, requirements="C"),
    "astype F": lambda v: v.astype(float, order="F", copy=False),
    "astype C": lambda v: v.astype(float, order="C", copy=False),
    "astype A": lambda v: v.astype(float, order="A", copy=False),
}


def _raised(v, power):
    v **= power


OPERATORS = {"**=": _raised, "%=": lambda v, s: np.remainder(v, s, out=v), "fill": lambda v, s: v.fill(s)}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("same", SAME)
@pytest.mark.parametrize("write", OPERATORS)
def test_what_may_be_the_same_memory_is_so_where_it_is_in_numpy(same, write, order):
    def program(x, s):
        v = x * 1
        w = SAME[same](v)
        OPERATORS[write](w, s)
        return v, w

    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], order=order)
    compiled = cr.compile(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            np.testing.assert_array_equal(compiled(x, 0.7), program(x, 0.7))


def test_a_gradient_that_accumulates_changes_its_detached_tensor():
    def program(x):
        x = x.clone().requires_grad_()
        x.sum().backward()
        seen = x.grad.detach()
        x.square().sum().backward()
        return seen

    x = cr.tensor([1.0, 2.0])
    compiled = cr.compile(program)
    for _ in range(2):
        assert compiled(x).tolist() == program(x).tolist() == [3.0, 5.0]
