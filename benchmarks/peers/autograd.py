"""HIPS autograd, in its style: gradients of functions."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from autograd import grad
from autograd import numpy as anp
from autograd.core import VJPNode
from autograd.tracer import new_box, trace_stack

import inputs
import programs
from works import Makers, Run

VERSION = f"autograd {version('autograd')}"


def multiply(size: int, times: int) -> Run:
    arrays = inputs.multiply(size)
    counter = range(times)

    def run() -> Any:
        with trace_stack.new_trace() as level:
            x, z = (new_box(array, level, VJPNode.new_root()) for array in arrays)
            for _ in counter:
                y = x * z
        return [y._value]

    return run


def chain(size: int) -> Run:
    array = inputs.chain(size)

    def total(x: Any) -> Any:
        y = x
        for _ in range(20):
            y = anp.tanh(y * x)
        return anp.sum(y)

    gradient = grad(total)
    return lambda: [gradient(array)]


def mlp(batch: int, n_in: int, hidden: int, n_out: int) -> Run:
    x, target, weights, biases = inputs.mlp(batch, n_in, hidden, n_out)
    params = (*weights, *biases)

    def loss(params: Any) -> Any:
        W1, W2, W3, b1, b2, b3 = params
        h = anp.tanh(x @ W1 + b1)
        h = anp.tanh(h @ W2 + b2)
        error = h @ W3 + b3 - target
        return anp.mean(error * error)

    gradient = grad(loss)
    return lambda: list(gradient(params))


WORKS: Makers = {"multiply": multiply, "chain": chain, "mlp": mlp} | programs.ten(anp, grad)
