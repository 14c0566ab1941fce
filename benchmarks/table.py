"""The works of the speed table, with the goal for the ratio of chainrule's time to each peer's."""

from __future__ import annotations

from dataclasses import dataclass, field

SMALL_PEERS = {"autograd": 0.3, "mygrad": 0.3}


@dataclass(frozen=True)
class Work:
    """A work: `kind` and `sizes` identify it to a worker, `inner` is the number of operations in a run."""

    title: str
    kind: str
    sizes: tuple[int, ...]
    goals: dict[str, float] = field(default_factory=dict)
    inner: int = 1


WORKS = [
    Work("`x * z` forward, 1 element", "multiply", (1, 100), {"torch": 0.2, **SMALL_PEERS}, inner=100),
    Work("20 × tanh(y*x), 1", "chain", (1,), {"torch": 0.15, **SMALL_PEERS}),
    Work("20 × tanh(y*x), 1k", "chain", (1_000,), {"torch": 0.35, **SMALL_PEERS}),
    Work("20 × tanh(y*x), 10k", "chain", (10_000,), {"torch": 0.35, **SMALL_PEERS}),
    Work("20 × tanh(y*x), 100k", "chain", (100_000,), {"torch": 0.32, **SMALL_PEERS}),
    Work("20 × tanh(y*x), 1M", "chain", (1_000_000,), {"torch": 0.26, **SMALL_PEERS}),
    Work("MLP 8,4,16,1", "mlp", (8, 4, 16, 1), {"torch": 0.2, **SMALL_PEERS}),
    Work("MLP 32,64,64,8", "mlp", (32, 64, 64, 8), {"torch": 0.35, **SMALL_PEERS}),
    Work("MLP 128,256,256,10", "mlp", (128, 256, 256, 10), {"torch": 0.75, "numpy": 1.15}),
    Work("MLP 512,1024,1024,10", "mlp", (512, 1024, 1024, 10), {"torch": 0.8, "numpy": 1.15}),
    Work("attention 4,16,16", "attention", (4, 16, 16), {"torch": 0.35}),
    Work("attention 8,128,64", "attention", (8, 128, 64), {"torch": 1.0}),
    Work("double backward of sum(sin(x)*x), 100", "double", (100,), {"torch": 0.45}),
    Work("vmap(grad(loss)) of MLP 32,64,64,8", "per_sample", (32, 64, 64, 8), {"torch": 0.3}),
    Work("Hessian-vector product of MLP 32,64,64,8", "hvp", (32, 64, 64, 8), {"torch": 0.2}),
    Work("hessian of 50 variables", "hessian", (50,), {"torch": 0.2}),
    Work("jacrev of a tanh layer, 200 to 200", "jacobian", (200, 200), {"torch": 0.4}),
    Work("custom Function, 1 element", "function", (1,), {"torch": 0.4}),
]

#: single statements on small tensors; see ``programs.statement`` for the names
STATEMENTS = {
    "u * 2.0": 0.25, "2.0 * u": 0.25, "2 + u": 0.25, "2 - u": 0.25, "2 / u": 0.25, "2 ** u": 0.25, "u ** 2": 0.25,
    "u * f": 0.25, "f * u": 0.25, "f - u": 0.25, "s * u": 0.25, "u + c": 0.25, "B + r": 0.25, "u[0]": 0.9, "M[1, 2]": 0.9,
    "u[1:3]": 0.9, "u[None]": 0.9, "u[i]": 0.9, "M.reshape(9)": 0.9, "M.transpose(0, 1)": 0.9, "torch.stack([u, v])": 1.3,
    "torch.cat([u, v])": 1.3, "torch.sum(u)": 0.4, "torch.mean(u)": 0.4, "torch.softmax(u, 0)": 0.4, "torch.exp(u)": 0.4,
    "torch.relu(u)": 0.4, "torch.var(u)": 0.9, "torch.cumsum(u, 0)": 0.9, "u @ v": 0.8, "M @ u": 0.8, "u > 0": 1.0,
}  # fmt: skip
WORKS += [Work(f"`{code}`", code, (100,), {"torch": goal}, inner=100) for code, goal in STATEMENTS.items()]
WORKS += [
    Work("CNN, a step of 64 images of 8 × 8", "cnn", (64, 8), {"torch": 1.5}),
    Work("depthwise convolution 8,32,16,16", "depthwise", (8, 32, 16), {"torch": 1.5}),
    Work("RK4, 200 steps", "rk4", (200,), {"torch": 0.4}),
    Work("Gaussian process, 30 points", "gaussian_process", (30,), {"torch": 1.0}),
    Work("Gaussian process, 200 points", "gaussian_process", (200,), {"torch": 1.0}),
    Work("lu_factor, 200 × 200 (value alone)", "lu", (200,), {"torch": 1.0}),
    Work("np: grad of ten operations, 10 elements", "ten", (10,), {"torch": 0.3, "autograd": 0.15}),
    Work("np: Kalman filter, 2 states, 300 steps", "kalman", (2, 300), {"torch": 0.5}),
    Work("np: LSTM, 2 layers, 256 characters", "lstm", (2, 256), {"torch": 0.5}),
    Work("np: Lotka–Volterra, RK4 of 200 steps", "lotka_volterra", (200,), {"torch": 0.5}),
    Work("np: BA by vmap(jacrev), 2,000 observations", "ba", (21, 500, 2000), {"torch": 1.0}),
]

IMPORT_TITLE = "import, over NumPy's"
IMPORT_GOAL_MS = 50.0

MEMORY_NODES = 1_000_000
MEMORY_TITLES = {"multiply": "peak memory, 1M × (y * c)", "add": "peak memory, 1M × (y + 1)"}
MEMORY_GOAL = 1.0
