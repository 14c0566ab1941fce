"""The eager works, written once for all libraries with PyTorch's API.

Each maker prepares a work and returns `run`, which runs it once and returns the gradients (or the value, if only the
forward pass is timed), so that results can be compared before the measurement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import inputs

Run = Callable[[], Any]
Makers = dict[str, Callable[..., Run]]


def works(torch: Any) -> Makers:
    def leaf(array: inputs.Array) -> Any:
        return torch.from_numpy(array).requires_grad_()

    def take_grads(leaves: list[Any]) -> list[Any]:
        grads = [x.grad for x in leaves]
        for x in leaves:
            x.grad = None
        return grads

    def multiply(size: int, times: int) -> Run:
        x, z = map(leaf, inputs.multiply(size))
        counter = range(times)

        def run() -> Any:
            for _ in counter:
                y = x * z
            return [y.detach()]

        return run

    def chain(size: int) -> Run:
        x = leaf(inputs.chain(size))

        def run() -> Any:
            y = x
            for _ in range(20):
                y = torch.tanh(y * x)
            y.sum().backward()
            return take_grads([x])

        return run

    def mlp(batch: int, n_in: int, hidden: int, n_out: int) -> Run:
        x, target, weights, biases = inputs.mlp(batch, n_in, hidden, n_out)
        x, target = torch.from_numpy(x), torch.from_numpy(target)
        W1, W2, W3 = map(leaf, weights)
        b1, b2, b3 = map(leaf, biases)
        mse_loss = torch.nn.functional.mse_loss

        def run() -> Any:
            h = torch.tanh(x @ W1 + b1)
            h = torch.tanh(h @ W2 + b2)
            loss = mse_loss(h @ W3 + b3, target)
            loss.backward()
            return take_grads([W1, W2, W3, b1, b2, b3])

        return run

    def attention(batch: int, length: int, width: int) -> Run:
        x, Wq, Wk, Wv = map(leaf, inputs.attention(batch, length, width))
        scale = width**-0.5

        def run() -> Any:
            q, k, v = x @ Wq, x @ Wk, x @ Wv
            scores = (q @ k.transpose(-2, -1)) * scale
            out = torch.softmax(scores, dim=-1) @ v
            (out * out).mean().backward()
            return take_grads([x, Wq, Wk, Wv])

        return run

    def double(size: int) -> Run:
        x = leaf(inputs.double(size))

        def run() -> Any:
            y = (torch.sin(x) * x).sum()
            (g,) = torch.autograd.grad(y, x, create_graph=True)
            g.sum().backward()
            return take_grads([x])

        return run

    return {"multiply": multiply, "chain": chain, "mlp": mlp, "attention": attention, "double": double}
