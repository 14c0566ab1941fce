"""Public operations, including composites, on a GPU: values and gradients equal the CPU's, and stay on the GPU.

Each runs with the sample in its declaration. A substitute replaces CuPy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.api.declare import OPERATIONS, Operation
from chainrule._src.cli.operations import operations

operations()  # so that all are declared
#: random numbers differ on a GPU
DRAWN = (
    "rand",
    "dropout",
    "bernoulli",
    "normal",
    "multinomial",
    "poisson",
    "binomial",
    "empty",
    "gumbel",
    "fractional",
)
#: operations that intentionally transfer to the CPU
LEAVING = {"Tensor.cpu", "from_numpy", "frombuffer"}
#: operations that CuPy does not support, which raise
REFUSED = {
    "lu", "lu_solve", "lu_unpack", "linalg.lu", "linalg.lu_factor", "linalg.lu_factor_ex", "linalg.lu_solve", "index_reduce",
    "special.airy_ai", "special.bessel_j1", "special.bessel_y1", "special.i1e", "special.modified_bessel_k1",
    "special.scaled_modified_bessel_k1",
}  # fmt: skip


def arguments(operation: Operation, device: str) -> tuple[Any, Any, list[cr.Tensor]]:
    """Return the arguments of a sample, and the tensors among them."""
    rng = np.random.default_rng(0)
    leaves: list[cr.Tensor] = []

    def rand(*size: Any, **options: Any) -> cr.Tensor:
        shape = size[0] if len(size) == 1 and isinstance(size[0], tuple) else size
        leaves.append(cr.tensor(rng.uniform(0.2, 0.9, shape), device=device, requires_grad=True))
        return leaves[-1]

    names = {name: getattr(cr, name) for name in cr.__all__} | {"rand": rand, "randn": rand}
    count = 1 if operation.row is None else len(operation.row.operands)
    text = operation.sample or ", ".join(["rand(2, 3)"] * count)
    with cr.device(device):
        args, kwargs = eval(f"(lambda *args, **kwargs: (args, kwargs))({text})", names)
    return args, kwargs, leaves


def tensors(x: Any) -> list[cr.Tensor]:
    if isinstance(x, cr.Tensor):
        return [x]
    return [t for item in x for t in tensors(item)] if isinstance(x, (tuple, list)) else []


def computed(operation: Operation, device: str) -> list[cr.Tensor | None]:
    """Return the results of an operation, and the gradients of the sum of their squares."""
    args, kwargs, leaves = arguments(operation, device)
    results = tensors(operation.public(*args, **kwargs))
    differentiable = [t for t in results if t.requires_grad]
    if not differentiable:
        return results
    loss = sum(((t * t.conj()).real.sum() for t in differentiable), start=0)
    return [*results, *cr.autograd.grad(loss, leaves, allow_unused=True)]


def own_samples() -> list[str]:
    """Return one name for every operation whose sample calls it on the CPU."""
    found = {}
    for name, operation in OPERATIONS.items():
        if id(operation) not in found and name not in LEAVING:
            try:
                if computed(operation, "cpu"):
                    found[id(operation)] = name
            except Exception:  # the sample is for another operation
                continue
    return sorted(found.values())


@pytest.mark.filterwarnings("ignore")
def test_operations_compute_on_a_gpu_what_they_do_on_the_cpu(cupy: Any) -> None:
    names = own_samples()
    assert len(names) > 350
    wrong = {name: said for name in names if (said := problem(name))}
    assert not wrong


def problem(name: str) -> str:
    operation = OPERATIONS[name]
    expected = computed(operation, "cpu")
    try:
        got = computed(operation, "cuda")
    except Exception as error:
        clear = "never converts silently" in str(error) or "converted to a NumPy array silently" in str(error)
        return "" if clear and name in REFUSED else f"{type(error).__name__}: {error}"
    if name in REFUSED:
        return "it works"
    for a, b in zip(expected, got, strict=True):
        if a is None or b is None:
            if a is not b:
                return "a gradient is missing"
        elif not b.is_cuda:
            return "a result left the GPU"
        elif (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"{b.dtype} of shape {b.shape}, not {a.dtype} of shape {a.shape}"
        elif not any(word in name for word in DRAWN):
            numbers, same = b.detach().cpu().numpy(), a.detach().numpy()
            if not np.allclose(numbers, same, 1e-9, 1e-9, equal_nan=True):
                return f"{numbers}, not {same}"
    return ""


def fit(device: str) -> tuple[float, Any]:
    """Fit a small network by hand-written steps."""
    rng = np.random.default_rng(2)
    x = cr.tensor(rng.standard_normal((40, 3)), device=device)
    y = cr.sin(x.sum(1, keepdim=True))
    weights = [cr.tensor(rng.standard_normal(s) / 2, device=device, requires_grad=True) for s in ((3, 8), (8, 1))]
    for _ in range(20):
        loss = ((cr.tanh(x @ weights[0]) @ weights[1] - y) ** 2).mean()
        loss.backward()
        with cr.no_grad():
            for w in weights:
                w -= 0.1 * w.grad
                w.grad = None
    return loss.item(), weights[0].detach().cpu().numpy()


def test_a_network_is_fitted_alike(cupy: Any) -> None:
    (loss, weights), (expected, same) = fit("cuda"), fit("cpu")
    assert math.isclose(loss, expected, rel_tol=1e-10)
    np.testing.assert_allclose(weights, same, 1e-10)


@pytest.mark.gpu
@pytest.mark.skipif(not cr.cuda.is_available(), reason="no GPU: not run on hardware (make cuda)")
def test_on_hardware() -> None:
    wrong = {name: said for name in own_samples() if (said := problem(name))}
    assert not wrong
    (loss, weights), (expected, same) = fit("cuda"), fit("cpu")
    assert math.isclose(loss, expected, rel_tol=1e-8)
    np.testing.assert_allclose(weights, same, 1e-8)
