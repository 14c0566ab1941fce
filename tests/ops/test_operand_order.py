"""The order of an operator's operands in the graph: the operand whose method is called comes first; numbers may be omitted."""

from __future__ import annotations

import numpy as np
import pytest

from behaviour import torch


def graph(node):
    """Return a node's name with those of its predecessors."""
    if node is None:
        return None
    name = node.name().removeprefix("torch::autograd::")
    return (name, *map(graph, (below for below, _ in node.next_functions))) if node.next_functions else name


LEAF = "AccumulateGrad"
NUMBERS = {
    "2 * b": ("MulBackward0", LEAF, None),
    "2 + b": ("AddBackward0", LEAF, None),
    "2 - b": ("RsubBackward1", LEAF),
    "2 / b": ("MulBackward0", ("ReciprocalBackward0", LEAF), None),
    "2 ** b": ("PowBackward2", LEAF),
    "b * 2": ("MulBackward0", LEAF, None),
    "b + 2": ("AddBackward0", LEAF, None),
    "b - 2": ("SubBackward0", LEAF, None),
    "b / 2": ("DivBackward0", LEAF, None),
    "b ** 2": ("PowBackward0", LEAF),
    "b % 2": ("RemainderBackward0", LEAF),
    "torch.fmod(b, 2)": ("FmodBackward0", LEAF),
    "torch.mul(2, b)": ("MulBackward0", None, LEAF),
    "torch.lerp(b, c, 0.5)": ("LerpBackward0", LEAF, None),
    "torch.lerp(b, c, c)": ("LerpBackward1", LEAF, None, None),
    "np.float64(2) * b": ("MulBackward0", LEAF, None),
    "np.float64(2) - b": ("RsubBackward1", LEAF),
    "c * b": ("MulBackward0", None, LEAF),
    "c - b": ("SubBackward0", None, LEAF),
    "b ** c": ("PowBackward1", LEAF, None),
    "b.__rmul__(c)": ("MulBackward0", LEAF, None),
    "s * b": ("MulBackward0", LEAF, LEAF),
}


@pytest.mark.parametrize("code", NUMBERS)
def test_graph_of_an_operator(code):
    b = torch.tensor([1.0, 2.0], requires_grad=True)
    s = torch.tensor(3.0, requires_grad=True)
    result = eval(code, {"b": b, "c": torch.tensor([3.0, 4.0]), "s": s, "np": np, "torch": torch})
    assert graph(result.grad_fn) == NUMBERS[code]


def test_a_number_over_a_tensor_is_rounded_as_in_pytorch():
    b = torch.arange(1, 200, dtype=torch.float32)
    assert torch.equal(3 / b, 3 * b.reciprocal())
    assert not torch.equal(3 / b, torch.full((199,), 3.0) / b)


VALUES = ["s * v", "v * s", "s - v", "v / s", "s / v", "s ** v", "torch.maximum(s, v)", "s * t", "torch.hypot(v, s)"]


@pytest.mark.parametrize("code", VALUES)
@pytest.mark.parametrize("constant", ["s", "v", ""])
def test_a_0d_tensor_and_a_vector(code, constant):
    """The derivative of the 0-d operand is a sum over the vector's elements."""
    start = {"s": [1.5], "v": [0.5, 1.0, 3.0], "t": [2.5]}
    leaves = {name: torch.tensor(x, dtype=torch.float64) for name, x in start.items()}
    leaves |= {"s": leaves["s"][0].clone(), "t": leaves["t"][0].clone()}
    for name, x in leaves.items():
        x.requires_grad_(name != constant)
    used = [x for name, x in leaves.items() if f"{name} " in code + " " or f"{name}," in code or f"{name})" in code]
    used = [x for x in used if x.requires_grad]
    assert torch.autograd.gradcheck(lambda *_: eval(code, {**leaves, "torch": torch}), tuple(used))


def test_a_number_of_numpy_is_weak_on_either_side():
    x = torch.ones(2, dtype=torch.float32, requires_grad=True)
    for number in (np.float64(2), np.float32(2), np.int64(2)):
        for result in (x * number, number * x, x - number, number - x, x / number, number / x, x**number, number**x):
            assert result.dtype == torch.float32 and result.requires_grad
