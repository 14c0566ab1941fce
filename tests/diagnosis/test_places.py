"""Every operation records the user's source location: the line, and the expression."""

import _thread
import operator
import threading
import time

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.explaining.diagnosis.names import place_of
from chainrule.nn import functional as F


@pytest.fixture
def x():
    return cr.tensor([1.0, 2.0], requires_grad=True)


def said(tensor):
    return place_of(tensor).expression


def test_calls_on_one_line_are_told_apart(x):
    y = cr.exp(x) * x + x.sum() - np.exp(x)
    sub = y.grad_fn
    add, exp = (edge for edge, _ in sub.next_functions)
    mul, total = (edge for edge, _ in add.next_functions)
    assert [place_of(node).expression for node in (sub, add, mul, mul.next_functions[0][0], total, exp)] == [
        "cr.exp(x) * x + x.sum() - np.exp(x)",
        "cr.exp(x) * x + x.sum()",
        "cr.exp(x) * x",
        "cr.exp(x)",
        "x.sum()",
        "np.exp(x)",
    ]


def test_every_way_to_an_operation(x):
    w = cr.ones(2, 2, requires_grad=True)

    class Twice(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    assert said(x * 2.0) == "x * 2.0"
    assert said(2 - x) == "2 - x"
    assert said(x.mul(3)) == "x.mul(3)"
    assert said(w @ w) == "w @ w"
    assert said(F.linear(w, w, x)) == "F.linear(w, w, x)"
    assert said(F.mse_loss(w, cr.ones(2, 2))) == "F.mse_loss(w, cr.ones(2, 2))"
    assert said(x.std()) == "x.std()"
    assert said(cr.stack([x, x])) == "cr.stack([x, x])"
    assert said(x.sort()[0]) == "x.sort()"
    assert said(x[0]) == "x[0]"
    assert said(np.sum(x)) == "np.sum(x)"
    assert said(np.linalg.norm(x)) == "np.linalg.norm(x)"
    assert said(Twice.apply(x)) == "Twice.apply(x)"
    assert said(w.reshape(4)) == "w.reshape(4)"
    assert said(cr.vmap(lambda r: r.tanh())(w)).startswith(("r.tanh()", "cr.vmap"))


def test_in_place_writes(x):
    y = x * 1
    y += 1
    assert said(y) == "y += 1"
    y.mul_(3)
    assert said(y) == "y.mul_(3)"
    y[0] = x[1]
    assert said(y) == "y[0]"


def test_an_expression_on_several_lines(x):
    y = (x *
         2)  # fmt: skip
    assert said(y).split() == ["x", "*", "2"]


def test_leaves_gradients_and_copies(x):
    w = cr.ones(2, requires_grad=True)
    assert said(w) == "cr.ones(2, requires_grad=True)"
    (g,) = cr.autograd.grad((w**3).sum(), w, create_graph=True)
    assert said(g).startswith("cr.autograd.grad(")


def test_threads_have_their_own(x):
    found = []
    thread = threading.Thread(target=lambda: found.append(x * 5))
    thread.start()
    thread.join()
    assert said(found[0]) == "x * 5"


@pytest.mark.parametrize("function", [cr.exp, cr.sum, operator.neg])
def test_without_a_program_there_is_no_place(x, function):
    found = []
    _thread.start_new_thread(found.extend, (map(function, [x]),))  # not called by Python code
    for _ in range(1000):
        if found:
            break
        time.sleep(0.01)
    assert place_of(found[0]) is None
