"""Compiled equals eager, bit for bit: programs with large and small arrays, including the benchmarks and examples."""

from __future__ import annotations

import importlib
import itertools
import pathlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fuzz.comparing import compare, difference
from scipy.optimize import minimize

import chainrule as cr

F, func, grad = cr.nn.functional, cr.func, cr.grad
Make = Callable[[int, Any], Any]  # (seed, dtype) -> an argument


def array(*shape: int, scale: float = 1.0) -> Make:
    return lambda seed, dtype: (np.random.default_rng(seed).normal(size=shape) * scale).astype(dtype)


def tensor(*shape: int, scale: float = 1.0) -> Make:
    return lambda seed, dtype: cr.from_numpy(array(*shape, scale=scale)(seed, dtype))


def positive(*shape: int) -> Make:
    return lambda seed, dtype: np.asarray(np.abs(array(*shape)(seed, dtype)) + np.dtype(dtype).type(0.1))


def index(high: int, *shape: int) -> Make:
    return lambda seed, dtype: np.random.default_rng(seed).integers(0, high, shape)


def classes(high: int, *shape: int) -> Make:
    return lambda seed, dtype: cr.from_numpy(index(high, *shape)(seed, dtype))


def changing(first: Make, then: Make) -> Make:
    """Return a maker with other numbers in the second call."""
    return lambda seed, dtype: (then if seed else first)(seed, dtype)


def layers(*sizes: int) -> Make:
    def make(seed: int, dtype: Any) -> Any:
        pairs = list(itertools.pairwise(sizes))
        return [
            (tensor(n, m, scale=m**-0.5)(seed + k, dtype), tensor(n)(seed, dtype)) for k, (m, n) in enumerate(pairs)
        ]

    return make


def network(parameters: Any, x: Any, labels: Any) -> Any:
    *hidden, last = parameters
    for weight, bias in hidden:
        x = F.relu(F.linear(x, weight, bias))
    return F.cross_entropy(F.linear(x, *last), labels)


def products(a: Any, b: Any) -> Any:
    return a @ b, a @ a.mT, grad(lambda a, b: np.sum(np.tanh(a @ b)), (0, 1))(a, b)


def many_paths(x: Any) -> Any:
    """Sum cotangents of several uses, of parts and of the whole."""
    whole = np.sum(x * x) + np.sum(np.sin(x)) + np.sum(np.exp(x))
    return whole + x[0] * x[5] + np.sum(x[3:] * x[:-3]) + np.sum(x[::2])


class Cubed(cr.autograd.Function):
    """A user-defined Function with a derivative computed by NumPy."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def written(x: Any) -> Any:
    """Write in place to copies and views, in NumPy style."""
    y = np.sin(x)
    y[2:5] = x[:3] * 2
    y[y > 0.5] *= 0.5
    y += 1
    row = y[::2]
    row *= x[::2]
    y[[0, 3]] = 7.0
    return np.sum(y * x)


def written_tensors(x: Any) -> Any:
    y = x.sin()
    y[2:5] = x[:3] * 2
    y.add_(1).mul_(x)
    y[0].exp_()
    y.view(-1)[3:].clamp_(max=0.4)
    y[y > 0.3] = 0.1
    y.index_add_(0, cr.tensor([0, 1, 0]), x[:3])
    return (y * x).sum()


def reading(x: Any) -> Any:
    """Branch on values."""
    steps = 0
    while np.sum(x) > 1 and steps < 5:
        x, steps = x * 0.5, steps + 1
    return np.sum(np.where(x > 0, x, np.sin(x))) * steps if x[0] > x[1] else np.sum(x[: int(abs(x[2]) * 2)] ** 2)


def stepped(parameters: Any, x: Any) -> Any:
    """Run a training step with its state as an argument."""
    w, velocity = parameters
    leaf = w.clone().requires_grad_()
    loss = (cr.tanh(x @ leaf) ** 2).sum()
    loss.backward()
    velocity.mul_(0.9).add_(leaf.grad)
    w -= 0.1 * velocity
    return loss.detach(), w.detach()


PROGRAMS: dict[str, tuple[Callable[..., Any], *tuple[Make, ...]]] = {
    "chain": (grad(lambda x: np.sum(np.tanh(np.tanh(np.tanh(x) + x) * x))), array(100_003)),
    "two operands": (grad(lambda x, y: np.sum(np.tanh(x * y) + x / (1 + y * y)), (0, 1)), array(300, 401), array(300, 401)),
    "transposed": (grad(lambda x, y: np.sum(np.tanh(x.T * y) + x.T), (0, 1)), array(300, 401), array(401, 300)),
    "sums": (lambda x: (np.sum(x, 0), np.mean(x, 0), np.sum(x), np.var(x, 0), np.sum(x.T, 0), np.sum(x.T)), array(4100, 7)),
    "bias": (grad(lambda b, x: np.sum(np.tanh(x + b) ** 2)), array(5), array(5000, 5)),
    "column": (grad(lambda b, x: np.sum(np.tanh(x + b) ** 2)), array(5000, 1), array(5000, 5)),
    "scans": (grad(lambda x: np.sum(np.cumsum(x) * np.cumprod(1 + 0.001 * x))), array(3000)),
    "products": (grad(lambda x: np.prod(x) + np.sum(np.cumprod(x))), changing(array(5), lambda s, d: np.arange(5).astype(d))),
    "softmax": (
        func.grad(lambda x: (F.softmax(x, -1) ** 2).sum() + F.log_softmax(x, -1).sin().sum()),
        changing(tensor(64, 100, scale=0.1), tensor(64, 100, scale=9)),
    ),
    "cross entropy": (func.grad(F.cross_entropy), tensor(64, 100, scale=4), classes(100, 64)),
    "network": (func.grad(network), layers(32, 64, 64, 8), tensor(16, 32), classes(8, 16)),
    "network, one example": (func.grad(network), layers(32, 64, 64, 8), tensor(1, 32), classes(8, 1)),
    "vmap of grad": (
        func.vmap(func.grad(network), in_dims=(None, 0, 0)),
        layers(20, 70, 6),
        tensor(16, 20),
        classes(6, 16),
    ),
    "vmap of products": (
        func.vmap(func.grad(lambda a, b: cr.tanh(a @ b).sum(), argnums=(0, 1)), in_dims=(0, None)),
        tensor(32, 7, 5),
        tensor(5, 9),
    ),
    "attention": (
        func.grad(lambda q, k, v: (F.scaled_dot_product_attention(q, k, v, is_causal=True) ** 2).sum(), argnums=(0, 1, 2)),
        *[tensor(2, 20, 16)] * 3,
    ),
    "layer norm": (
        func.grad(lambda x, w, b: F.layer_norm(x, (33,), w, b).sin().sum(), argnums=(0, 1, 2)),
        tensor(40, 33),
        tensor(33),
        tensor(33),
    ),
    "convolution": (
        func.grad(lambda x, w: F.conv2d(x, w, stride=2, padding=1).sin().sum(), argnums=(0, 1)),
        tensor(2, 3, 17, 17),
        tensor(4, 3, 3, 3),
    ),
    "einsum": (
        grad(lambda a, b: np.sum(np.sin(np.einsum("ijk,jl->ilk", a, b))) + np.sum(np.einsum("ijk,ijk->i", a, a) ** 2), (0, 1)),
        array(5, 6, 7),
        array(6, 8),
    ),
    "Hessian-vector product": (
        lambda x, v: func.jvp(func.grad(lambda x: (cr.tanh(x @ x.T @ x) ** 2).sum()), (x,), (v,)),
        tensor(20, 20, scale=0.2),
        tensor(20, 20),
    ),
    "Jacobian and Hessian": (
        lambda x: (cr.jacobian(lambda x: np.tanh(x @ x.T)[0])(x), cr.hessian(lambda x: np.sum(np.sin(x @ x.T)))(x)),
        array(4, 4),
    ),
    "many paths": (grad(many_paths), array(1500)),
    "many paths, large": (grad(many_paths), array(80_000)),
    "repeated indices": (grad(lambda x, i: np.sum(np.sin(x[i]) * x[i]) + np.sum(x[i][:, None] * x[:5])), array(50), index(50, 300)),
    "two indices": (
        grad(lambda x, i, j: np.sum(np.sin(x[i, j])) + np.sum(x[:, j] ** 2) + np.sum(x[2:, None, j] * x[i[0]][j])),
        array(20, 30),
        index(20, 300),
        index(20, 300),
    ),
    "mask": (grad(lambda x: np.sum(np.sin(x[x > 0]))), changing(array(50), array(50))),
    "embedding": (func.grad(lambda w, i: F.embedding(i, w).sin().sum()), tensor(10, 6), classes(10, 40, 3)),
    "powers": (
        grad(lambda x, y: np.sum(x**y + x**2 + x**3 + x**-1 + x**0.5 + 2.0**x + x**1.7 + y**0), (0, 1)),
        positive(37),
        array(37),
    ),
    "powers of one number": (
        lambda x, y: (grad(lambda x: x**y + x**2 + x**-1 + 2.0**x + x**1.7)(x), cr.hessian(lambda x: x**1.7 * y**x)(x)),
        positive(),
        positive(),
    ),
    "linear algebra": (
        grad(
            lambda a, b: (
                np.sum(np.linalg.solve(a + 5 * np.eye(6), b))
                + np.linalg.slogdet(a + 5 * np.eye(6))[1]
                + np.sum(np.linalg.svd(a)[1])
                + np.sum(np.linalg.eigvalsh(a @ a.T))
            ),
            (0, 1),
        ),
        array(6, 6),
        array(6, 3),
    ),
    "transforms": (grad(lambda x: np.sum(np.abs(np.fft.rfft(np.sin(x))) ** 2) + np.sum(np.fft.ifft(x).real)), array(48)),
    "a Function": (func.grad(lambda x: (Cubed.apply(x.sin()) * x).sum()), tensor(9)),
    "a Function under vmap": (func.vmap(func.grad(lambda x: (Cubed.apply(x.sin()) * x).sum())), tensor(3, 9)),
    "writes": (grad(written), changing(array(9), array(9))),
    "writes to tensors": (func.grad(written_tensors), changing(tensor(9), tensor(9))),
    "reads": (grad(reading), changing(array(6), array(6, scale=3))),
    "a step": (stepped, lambda s, d: [tensor(4, 3)(s, d), tensor(4, 3)(s + 1, d)], tensor(5, 4)),
    "NumPy": (
        lambda x: (np.mean(x), np.std(x), np.median(x), np.sort(x), np.percentile(x, 30), np.convolve(x, x[:3]), x @ x,
                   np.interp(0.2, np.sort(x)[:5], np.arange(5.0)), x[0] ** 3 + x[1] * x[2], np.gradient(x), x // 2, x % 0.3),
        array(40),
    ),
}  # fmt: skip
for _size in (1, 2, 17, 64):
    PROGRAMS[f"products {_size}"] = (products, array(7, _size), array(_size, 9))
    PROGRAMS[f"products 1 {_size}"] = (products, array(1, _size), array(_size, 1))
    PROGRAMS[f"stacks {_size}"] = (products, array(4, 7, _size), array(4, _size, 9))
    PROGRAMS[f"stack and matrix {_size}"] = (products, array(4, 7, _size), array(_size, 9))
for _ufunc in (
    np.exp, np.sin, np.cos, np.sqrt, np.square, np.log1p, np.arctan, np.expm1, np.abs,
    np.sinh, np.arcsinh, np.exp2, np.reciprocal, np.sign, np.cbrt, np.log, np.tan, np.arcsin,
):  # fmt: skip
    PROGRAMS[f"blocks of {_ufunc.__name__}"] = (
        grad(lambda x, ufunc=_ufunc: np.sum(ufunc(np.tanh(x) * 0.4 + 0.5) * np.sin(x) * x)),
        array(70_001),
    )


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, dtype: str) -> None:
    program, *makers = PROGRAMS[name]
    first, second = (tuple([make(seed, dtype) for make in makers]) for seed in (0, 1))
    assert not compare(program, first, second)


# -- benchmarks and examples --------------------------------------------------------------------------------------------

SIZES = {
    "multiply": (7, 3), "chain": (11,), "mlp": (4, 8, 16, 1), "attention": (2, 9, 8), "double": (30,), "cnn": (2, 16),
    "depthwise": (2, 3, 9), "rk4": (10,), "gaussian_process": (12,), "lu": (6,),
}  # fmt: skip
CALLS = {
    "chain": (50,), "mlp": (4, 8, 16, 1), "hvp": (4, 8, 16, 1), "per_sample": (4, 8, 16, 1), "rosenbrock": (10,),
    "lbfgs": (5,), "lotka_volterra": (20,),
}  # fmt: skip


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    monkeypatch.syspath_prepend(pathlib.Path(__file__).parents[2] / "benchmarks")
    return importlib.import_module


@pytest.mark.parametrize("name", SIZES)
def test_work_with_leaves_that_it_captured(name: str, benchmark: Any) -> None:
    makers = {**benchmark("works").works(cr), **benchmark("programs").works(cr)}
    eager, compiled = makers[name](*SIZES[name]), cr.compile(makers[name](*SIZES[name]))
    for _ in range(3):
        assert not difference(compiled(), eager())
    assert compiled.recordings


@pytest.mark.parametrize("name", CALLS)
def test_work_on_arrays(name: str, benchmark: Any) -> None:
    works = benchmark("calls").works
    eager, compiled = (works(np, func, way)[name](*CALLS[name]) for way in (lambda f: f, cr.compile))
    for _ in range(3):
        assert not difference(compiled(), eager())


def test_a_fit_takes_the_same_steps() -> None:
    t = np.linspace(0, 8, 200)
    data = 2 * np.exp(-0.35 * t) * np.cos(2.5 * t + 0.6) + 0.15 * np.random.default_rng(0).normal(size=t.size)

    def loss(p):
        return np.mean((p[0] * np.exp(-p[1] * t) * np.cos(p[2] * t + p[3]) - data) ** 2)

    starts = np.array([1.0, 0.1, 2.2, 0.0])
    steps: Any = SimpleNamespace(eager=[], compiled=[])
    for way, objective in (("eager", cr.value_and_grad(loss)), ("compiled", cr.compile(cr.value_and_grad(loss)))):
        minimize(
            objective, starts, jac=True, method="L-BFGS-B", callback=lambda x, way=way: getattr(steps, way).append(x)
        )
    assert len(steps.eager) > 10 and not difference(steps.compiled, steps.eager)


def test_training_goes_through_the_same_numbers() -> None:
    def trained(way: Any) -> list[Any]:
        cr.manual_seed(0)
        x, y = cr.rand(200, 8), cr.randint(0, 4, (200,))
        parameters = [p.requires_grad_() for p in (cr.randn(8, 16) / 3, cr.zeros(16), cr.randn(16, 4) / 4, cr.zeros(4))]
        first, second = ([cr.zeros_like(p) for p in parameters] for _ in range(2))
        w1, b1, w2, b2 = parameters

        def step(x, y, first_share, second_share):
            hidden = F.dropout(cr.relu(x @ w1 + b1), 0.2)
            loss = -cr.log_softmax(hidden @ w2 + b2, dim=1).gather(1, y[:, None]).mean()
            loss.backward()
            with cr.no_grad():
                for p, m, v in zip(parameters, first, second, strict=True):
                    m += 0.1 * (p.grad - m)
                    v += 0.001 * (p.grad**2 - v)
                    p -= 1e-2 * (m / first_share) / (cr.sqrt(v / second_share) + 1e-8)
                    p.grad = None
            return loss.detach()

        step = way(step)
        losses = [
            step(x[rows], y[rows], cr.tensor(1 - 0.9**k), cr.tensor(1 - 0.999**k))
            for k, rows in enumerate([*cr.randperm(200).split(25)] * 2, 1)
        ]
        return [*losses, *[p.detach() for p in parameters]]

    assert not difference(trained(cr.compile), trained(lambda f: f))
