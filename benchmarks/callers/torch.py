"""PyTorch without compilation: backward() where possible, because it is faster than torch.func."""

from __future__ import annotations

from typing import Any

import torch

import calls
import inputs
from works import Run

VERSION = f"torch {torch.__version__}"


def in_hand(results: calls.Arrays) -> list[Any]:
    return [result.numpy() for result in results]


def backward(loss: Any, leaves: list[torch.Tensor], *data: torch.Tensor) -> Run:
    def run() -> Any:
        loss(*leaves, *data).backward()
        gradients = []
        for leaf in leaves:
            gradients.append(leaf.grad.numpy())  # type: ignore[union-attr]
            leaf.grad = None
        return gradients

    return run


def leaf(array: Any) -> torch.Tensor:
    return torch.from_numpy(array).requires_grad_()


def chain(size: int) -> Run:
    return backward(calls.chain_loss(torch), [leaf(inputs.chain(size))])


def mlp(*sizes: int) -> Run:
    x, target, weights, biases = inputs.mlp(*sizes)
    leaves = [leaf(array) for array in (*weights, *biases)]
    return backward(calls.mlp_loss(torch), leaves, torch.from_numpy(x), torch.from_numpy(target))


def value_and_grad(x: Any) -> list[Any]:
    x = leaf(x)
    value = calls.rosenbrock(x)
    value.backward()
    return [value.detach().numpy(), x.grad.numpy()]


def rosenbrock(size: int) -> Run:
    x = inputs.rosenbrock(size)
    return lambda: value_and_grad(x)


def lbfgs(size: int) -> Run:
    return calls.lbfgs_run(value_and_grad, size)


def lotka_volterra(steps: int) -> Run:
    parameters, start, observed, h = inputs.lotka_volterra(steps)
    loss = calls.lotka_volterra_loss(torch, torch.from_numpy(start), torch.from_numpy(observed), h)
    return backward(loss, [leaf(parameters)])


WORKS = calls.works(torch, torch.func, lambda f: f, given=torch.from_numpy, taken=in_hand) | {
    "chain": chain,
    "mlp": mlp,
    "rosenbrock": rosenbrock,
    "lbfgs": lbfgs,
    "lotka_volterra": lotka_volterra,
}
