"""Compare gradients on a GPU: chainrule on CuPy, hand-written CuPy code, and PyTorch, in milliseconds (``make cuda``).

Every work is a loss and its gradient, written three times; the results are compared before the measurement. Without a GPU
nothing is measured: the works run once at a small size on NumPy, to test this script.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import chainrule as cr

SIZES = {"products": 2048, "elementwise": 10_000_000, "layers": 4096, "reads": 200_000}
SMALL = {"products": 16, "elementwise": 100, "layers": 12, "reads": 50}
RUNS = 20


@dataclass(frozen=True)
class Work:
    """A loss as a program for tensors, with its gradients written by hand for an array module."""

    name: str
    arrays: Callable[[int, Any], list[Any]]
    loss: Callable[..., Any]
    by_hand: Callable[..., list[Any]]


def _products_by_hand(xp: Any, x: Any, w: Any) -> list[Any]:
    g = 2 * (x @ w)
    return [g @ w.T, x.T @ g]


def _elementwise_by_hand(xp: Any, x: Any) -> list[Any]:
    e = xp.exp(-x * x)
    return [xp.cos(x) * e - 2 * x * xp.sin(x) * e]


def _layers(torch: Any, x: Any, v: Any, w: Any) -> Any:
    return torch.tanh(x @ v).matmul(w).square().mean()


def _layers_by_hand(xp: Any, x: Any, v: Any, w: Any) -> list[Any]:
    h = xp.tanh(x @ v)
    y = h @ w
    g = 2 * y / y.size
    inner = (g @ w.T) * (1 - h * h)
    return [inner @ v.T, x.T @ inner, h.T @ g]


def _indices(n: int) -> Any:
    return np.random.default_rng(1).integers(0, min(n, 1000), n)


def _reads_by_hand(xp: Any, x: Any) -> list[Any]:
    places = xp.asarray(_indices(len(x)))
    out = xp.zeros_like(x)
    xp.add.at(out, places, 2 * x[places])
    return [out]


def _reads(torch: Any, x: Any) -> Any:
    places = torch.as_tensor(_indices(len(x)), device=x.device)
    return torch.index_select(x, 0, places).square().sum()


def _normal(rng: Any, *shape: int) -> Any:
    return rng.standard_normal(shape, np.float32)


WORKS = [
    Work(
        "products",
        lambda n, rng: [_normal(rng, n, n) / n**0.5, _normal(rng, n, n)],
        lambda torch, x, w: (x @ w).square().sum(),
        _products_by_hand,
    ),
    Work(
        "elementwise",
        lambda n, rng: [_normal(rng, n)],
        lambda torch, x: (torch.sin(x) * torch.exp(-x * x)).sum(),
        _elementwise_by_hand,
    ),
    Work(
        "layers",
        lambda n, rng: [_normal(rng, n, 256), _normal(rng, 256, n) / 16, _normal(rng, n, 32) / n**0.5],
        _layers,
        _layers_by_hand,
    ),
    Work("reads", lambda n, rng: [_normal(rng, n)], _reads, _reads_by_hand),
]


def backward(torch: Any, work: Work, tensors: list[Any]) -> list[Any]:
    """Return the gradients of a work by a library with PyTorch's API."""
    for tensor in tensors:
        tensor.grad = None
    work.loss(torch, *tensors).backward()
    return [tensor.grad for tensor in tensors]


def programs(work: Work, size: int, device: str) -> dict[str, tuple[Callable[[], list[Any]], Callable[[], None]]]:
    """Return for each library a function that computes the gradients and one that waits for them."""
    arrays = work.arrays(size, np.random.default_rng(0))
    found: dict[str, Any] = {}
    wait: Callable[[], None] = cr.cuda.synchronize if device == "cuda" else lambda: None
    ours = [cr.tensor(a, device=device, requires_grad=True) for a in arrays]
    found["chainrule"] = lambda: backward(cr, work, ours), wait
    if device == "cuda":
        import cupy as xp
    else:
        xp = np
    own = [xp.asarray(a) for a in arrays]
    found["CuPy by hand" if device == "cuda" else "NumPy by hand"] = lambda: work.by_hand(xp, *own), wait
    try:
        import torch
    except ImportError:
        return found
    if device == "cpu" or torch.cuda.is_available():
        theirs = [torch.tensor(a, device=device, requires_grad=True) for a in arrays]
        found["PyTorch"] = (
            lambda: backward(torch, work, theirs),
            torch.cuda.synchronize if device == "cuda" else lambda: None,
        )
    return found


def numbers(x: Any) -> Any:
    """Copy a gradient from any device to an ndarray."""
    return x.cpu().numpy() if hasattr(x, "cpu") else x.get() if hasattr(x, "get") else x


def milliseconds(run: Callable[[], Any], wait: Callable[[], None]) -> float:
    """Return the median time of synchronized runs after a warm-up."""
    taken = []
    for _ in range(RUNS + 1):
        wait()
        start = time.perf_counter()
        run()
        wait()
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken[1:])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args(arguments)
    device = "cuda" if cr.cuda.is_available() else "cpu"
    if device == "cpu":
        print("no GPU was found, or CuPy is not installed: nothing is measured; the works run once, small, on NumPy")
    else:
        print(f"{cr.cuda.get_device_name()}, float32, median of {RUNS} runs, in milliseconds")
    for work in WORKS:
        size = (SIZES if device == "cuda" else SMALL)[work.name]
        ways = programs(work, size, device)
        reference = None
        for name, (run, _) in ways.items():
            gradients = list(map(numbers, run()))
            reference = reference or gradients
            for got, expected in zip(gradients, reference, strict=True):
                np.testing.assert_allclose(
                    got, expected, 2e-3, 2e-3 * np.abs(expected).max(), err_msg=f"{work.name}: {name}"
                )
        if device == "cpu":
            print(f"{work.name}: {', '.join(ways)} agree")
        else:
            took = {name: milliseconds(*way) for name, way in ways.items()}
            print(f"{work.name} ({size:,}): " + ", ".join(f"{name} {ms:.3f}" for name, ms in took.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
