"""Benchmarks of transformations, custom functions and checkpoints, for libraries with PyTorch's API."""

from __future__ import annotations

from typing import Any

import inputs
from works import Makers, Run


def works(torch: Any) -> Makers:
    func, nn = torch.func, torch.nn.functional

    def forward(parameters: Any, x: Any) -> Any:
        W1, b1, W2, b2, W3, b3 = parameters
        h = torch.tanh(x @ W1 + b1)
        h = torch.tanh(h @ W2 + b2)
        return h @ W3 + b3

    def loss(parameters: Any, x: Any, target: Any) -> Any:
        return nn.mse_loss(forward(parameters, x), target)

    def squares(parameters: Any, x: Any, target: Any) -> Any:  # PyTorch has no second-order tangent of its mse_loss
        return ((forward(parameters, x) - target) ** 2).mean()

    def network(*sizes: int) -> tuple[Any, Any, tuple[Any, ...]]:
        x, target, weights, biases = inputs.mlp(*sizes)
        parameters = [array for pair in zip(weights, biases, strict=True) for array in pair]
        return torch.from_numpy(x), torch.from_numpy(target), tuple(map(torch.from_numpy, parameters))

    def per_sample(batch: int, n_in: int, hidden: int, n_out: int) -> Run:
        x, target, parameters = network(batch, n_in, hidden, n_out)
        gradients = func.vmap(func.grad(loss), in_dims=(None, 0, 0))
        return lambda: list(gradients(parameters, x, target))

    def hvp(batch: int, n_in: int, hidden: int, n_out: int) -> Run:
        x, target, parameters = network(batch, n_in, hidden, n_out)
        _, _, direction = network(batch, n_in, hidden, n_out)
        gradient = func.grad(squares)
        return lambda: list(func.jvp(lambda p: gradient(p, x, target), (parameters,), (direction,))[1])

    def hessian(size: int) -> Run:
        x = torch.from_numpy(inputs.chain(size).astype("float64"))

        def rosenbrock(x: Any) -> Any:
            return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

        matrix = func.hessian(rosenbrock)
        return lambda: [matrix(x)]

    def jacobian(n_in: int, n_out: int) -> Run:
        x, _, (W, b, *_) = network(1, n_in, n_out, 1)
        matrix = func.jacrev(lambda x: torch.tanh(x @ W + b))
        return lambda: [matrix(x[0])]

    def function(size: int) -> Run:
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x * x * x

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (x,) = ctx.saved_tensors
                return 3 * g * x * x

        x = torch.from_numpy(inputs.chain(size)).requires_grad_()
        ones = torch.ones(size)

        def run() -> Any:
            Cube.apply(x).backward(ones)
            g, x.grad = x.grad, None
            return [g]

        return run

    return {
        "per_sample": per_sample,
        "hvp": hvp,
        "hessian": hessian,
        "jacobian": jacobian,
        "function": function,
    }
