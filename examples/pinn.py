"""Solve Burgers' equation with a physics-informed network, in PyTorch code.

The equation is u_t + u u_x = ν u_xx with u(0, x) = −sin πx. Training minimizes the residual of the network's derivatives.
`import chainrule as torch` is the only change: the functions take the library as an argument, so that PyTorch can run the
same code.

    python examples/pinn.py
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import chainrule as torch

VISCOSITY = 0.05


def network(torch: Any, width: int) -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
        nn.Linear(width, 1),
    )  # fmt: skip


def field(torch: Any, net: Any, t: Any, x: Any) -> Any:
    """Return u, which satisfies the initial and boundary conditions for all weights of the network."""
    return -torch.sin(torch.pi * x) + t * (1 - x**2) * net(torch.cat([t, x], dim=1))


def residual(torch: Any, net: Any, t: Any, x: Any) -> Any:
    """Return the residual of the equation at the points (t, x), given as two columns."""
    u = field(torch, net, t, x)
    ones = torch.ones_like(u)
    u_t, u_x = torch.autograd.grad(u, (t, x), ones, create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x, x, ones, create_graph=True)
    return u_t + u * u_x - VISCOSITY * u_xx


def problem(torch: Any, width: int = 16, points: int = 600) -> tuple[Any, Callable[[], Any]]:
    """Return a network, and a function that computes its mean squared residual and the gradient."""
    rng = np.random.default_rng(0)
    t, x = (torch.tensor(rng.uniform(low, 1, (points, 1)), requires_grad=True) for low in (0, -1))
    net = network(torch, width).double()
    for p, value in zip(net.parameters(), weights(width), strict=True):
        p.data.copy_(torch.tensor(value))

    def slope() -> Any:
        net.zero_grad()
        loss = (residual(torch, net, t, x) ** 2).mean()
        loss.backward(inputs=list(net.parameters()))
        return loss

    return net, slope


def train(torch: Any, steps: int, compiled: bool = False) -> tuple[Any, list[float]]:
    """Train the network; return it with the loss at each evaluation."""
    net, slope = problem(torch)
    run, losses = torch.compile(slope) if compiled else slope, []
    settings = {"history_size": 20, "line_search_fn": "strong_wolfe", "tolerance_change": 0.0}
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=steps, **settings)

    def closure() -> Any:
        losses.append(run().item())
        return losses[-1]

    optimizer.step(closure)
    return net, losses


def weights(width: int) -> list[Any]:
    """Return weights by Glorot's initialization, the same for every library."""
    rng, sizes = np.random.default_rng(1), (2, width, width, width, 1)
    pairs = [(rng.normal(0, np.sqrt(2 / (m + n)), (n, m)), np.zeros(n)) for m, n in pairwise(sizes)]
    return [array for pair in pairs for array in pair]


def exact(t: Any, x: Any) -> Any:
    """Return the exact solution by the Cole–Hopf transformation, with Gauss–Hermite quadrature."""
    nodes, weight = np.polynomial.hermite.hermgauss(80)
    y = x[..., None] - nodes * np.sqrt(4 * VISCOSITY * t)[..., None]
    kernel = weight * np.exp(-np.cos(np.pi * y) / (2 * np.pi * VISCOSITY))
    return -np.sum(np.sin(np.pi * y) * kernel, -1) / np.sum(kernel, -1)


def solve(steps: int = 1000) -> SimpleNamespace:
    net, losses = train(torch, steps, compiled=True)
    t, x = np.meshgrid(np.linspace(0, 1, 101), np.linspace(-1, 1, 201), indexing="ij")
    with torch.no_grad():
        u = field(torch, net, torch.tensor(t.reshape(-1, 1)), torch.tensor(x.reshape(-1, 1))).numpy().reshape(t.shape)
    error = np.max(np.abs(u - exact(t, x)))
    print(f"loss {losses[0]:.3f} → {losses[-1]:.1e} in {len(losses)} runs; u is at most {error:.1e} from the solution")
    return SimpleNamespace(net=net, losses=losses, t=t, x=x, u=u, error=error)


def draw(found: SimpleNamespace) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2))
    for share, colour in zip((0, 0.2, 0.4, 1), ("0.55", "C2", "C0", "C1"), strict=True):
        row = round(share * (len(found.t) - 1))
        left.plot(found.x[row], found.u[row], color=colour, label=f"t = {found.t[row, 0]:.1f}")
        left.plot(found.x[row, ::8], exact(found.t[row], found.x[row])[::8], ".", color=colour)
    left.set(title="The network (lines), and the solution (points)", xlabel="x", ylabel="u")
    left.legend()
    right.semilogy(found.losses, color="C0")
    right.set(title="Mean square of the residual", xlabel="runs of the loss")
    return figure


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that compute the loss and its gradient a hundred times and return the last loss."""
    fast, slow = torch.compile(problem(torch)[1]), problem(torch)[1]
    found = {
        "compiled": lambda: [fast().item() for _ in range(100)][-1],
        "not compiled": lambda: [slow().item() for _ in range(100)][-1],
    }
    try:
        theirs = problem(importlib.import_module("torch"))[1]
    except ImportError:
        return found
    return found | {"PyTorch": lambda: [theirs().item() for _ in range(100)][-1]}


if __name__ == "__main__":
    draw(solve()).savefig("pinn.png", dpi=150)
