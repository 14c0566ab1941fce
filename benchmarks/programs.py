"""Single statements on small tensors, and complete programs, written once for all libraries with PyTorch's API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import inputs
from table import STATEMENTS
from works import Makers, Run


def works(torch: Any) -> Makers:
    functional = torch.nn.functional

    def leaf(array: inputs.Array) -> Any:
        return torch.from_numpy(array).requires_grad_()

    def take_grads(leaves: list[Any]) -> list[Any]:
        grads = [x.grad for x in leaves]
        for x in leaves:
            x.grad = None
        return grads

    def statement(code: str) -> Any:
        """Return a maker for a statement of u and v (3 elements), M (3 × 3), B (8 × 4), r (4), s and c (0-d).

        All of them require grad, except c.
        """

        def maker(times: int) -> Run:
            names = {name: leaf(array) for name, array in inputs.small().items()}
            names |= {"c": torch.tensor(2.0), "f": inputs.SCALAR, "i": torch.tensor([0, 2]), "torch": torch}
            names["counter"] = range(times)
            exec(f"def run():\n    for _ in counter:\n        y = {code}\n    return [y.detach()]", names)
            run: Run = names["run"]
            return run

        return maker

    def cnn(batch: int, size: int) -> Run:
        """Return a training step on small images of a network with two pooled convolutions and a linear layer."""
        images, labels, arrays = inputs.cnn(batch, size)
        x, y, parameters = torch.from_numpy(images), torch.from_numpy(labels), [leaf(array) for array in arrays]
        w1, b1, w2, b2, w3, b3 = parameters

        def run() -> Any:
            h = functional.max_pool2d(functional.relu(functional.conv2d(x, w1, b1, padding=1)), 2)
            h = functional.max_pool2d(functional.relu(functional.conv2d(h, w2, b2, padding=1)), 2)
            functional.cross_entropy(h.reshape(batch, -1) @ w3 + b3, y).backward()
            with torch.no_grad():
                for parameter in parameters:
                    parameter -= 0.0 * parameter.grad  # an update that does not change the next run
            return take_grads(parameters)

        return run

    def depthwise(batch: int, channels: int, size: int) -> Run:
        arrays = inputs.depthwise(batch, channels, size)
        x, w = map(leaf, arrays)

        def run() -> Any:
            functional.conv2d(x, w, padding=1, groups=channels).sum().backward()
            return take_grads([x, w])

        return run

    def rk4(steps: int) -> Run:
        """Return a run of the van der Pol oscillator by the classical Runge–Kutta method, with its gradients."""
        start, a, b = inputs.oscillator()
        y0, a, b = leaf(start), leaf(a), leaf(b)
        h = 0.01

        def slope(y: Any) -> Any:
            return torch.stack([y[1], a * (1 - y[0] ** 2) * y[1] - b * y[0]])

        def run() -> Any:
            y = y0
            for _ in range(steps):
                k1 = slope(y)
                k2 = slope(y + h / 2 * k1)
                k3 = slope(y + h / 2 * k2)
                k4 = slope(y + h * k3)
                y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            (y**2).sum().backward()
            return take_grads([y0, a, b])

        return run

    def gaussian_process(points: int) -> Run:
        """Return a run of a Gaussian process's negative log marginal likelihood, with its gradients."""
        where, values, logs = inputs.gaussian_process(points)
        x, y, logs = torch.from_numpy(where), torch.from_numpy(values), leaf(logs)
        one = torch.eye(points, dtype=x.dtype)

        def run() -> Any:
            length, scale, noise = torch.exp(logs)
            distance = (x[:, None] - x[None]) / length
            kernel = scale * torch.exp(-0.5 * distance**2) + noise * one
            factor = torch.linalg.cholesky(kernel)
            weights = torch.linalg.solve(kernel, y)
            loss = (
                0.5 * (y @ weights) + 0.25 * torch.linalg.slogdet(kernel)[1] + 0.5 * torch.log(factor.diagonal()).sum()
            )
            loss.backward()
            return take_grads([logs])

        return run

    def lu(size: int) -> Run:
        a = torch.from_numpy(inputs.square(size))

        def run() -> Any:
            return [torch.linalg.lu_factor(a)[0]]

        return run

    programs: Makers = {"cnn": cnn, "depthwise": depthwise, "rk4": rk4, "gaussian_process": gaussian_process, "lu": lu}
    return programs | {code: statement(code) for code in STATEMENTS}


def ten(xp: Any, grad: Callable[..., Any], given: Callable[[Any], Any] = lambda array: array) -> Makers:
    """Return the gradient of a function of ten operations, written with NumPy's functions or those of ``xp``."""

    def f(x: Any) -> Any:
        y = xp.sin(x) * x + xp.exp(-x)
        z = xp.tanh(y) / (1.0 + x * x)
        return xp.sum(xp.sqrt(z * z + 1.0))

    gradient = grad(f)

    def maker(size: int) -> Run:
        x = given(inputs.chain(size).astype("float64"))
        return lambda: [gradient(x)]

    return {"ten": maker}
