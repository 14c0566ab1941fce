"""Programs on which the libraries once differed (found and shrunk by `tests/fuzz`), with PyTorch's results."""

import numpy as np
import pytest

from behaviour import torch

X = "x = torch.tensor([[1., -2., 3.], [-1., 2., -3.]], requires_grad=True)\n"
CASES = {
    # a mask that depends on the differentiated value is supported if it is not mapped
    "mask in jvp": (
        X + "result = torch.func.jvp(lambda a: a[a > 0] ** 2, (x,), (x,))[1]",
        [2.0, 18.0, 8.0],
    ),
    "mask in jacfwd": (
        X + "result = torch.func.jacfwd(lambda a: a[a > 1].sum())(x)",
        [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
    ),
    "mask in forward over reverse": (
        X + "f = lambda a: (a.masked_select(a.abs() > 2) ** 3).sum()\n"
        "result = torch.func.jvp(torch.func.grad(f), (x,), (torch.ones_like(x),))[1]",
        [[0.0, 0.0, 18.0], [0.0, 0.0, -18.0]],
    ),
    "write under a mask in jvp": (
        X + "def f(a):\n    b = a * 1\n    b[b > 1.5] = 0.5\n    return b * a\n"
        "result = torch.func.jvp(f, (x,), (torch.ones_like(x),))[1]",
        [[2.0, -4.0, 0.5], [-2.0, 0.5, -6.0]],
    ),
    "nonzero in jvp": (
        X + "result = torch.func.jvp(lambda a: a * len(a.nonzero()), (x,), (torch.ones_like(x),))[1]",
        [[6.0] * 3] * 2,
    ),
    "a mask that vmap does not map": (
        X + "c = torch.tensor([1., -2.])\n"
        "result = torch.vmap(lambda b: torch.func.grad(lambda a: a[a > 0].sum())(c) * b.sum())(x)",
        [[2.0, 0.0], [-2.0, 0.0]],
    ),
    "masked_scatter in vmap": (
        X + "result = torch.vmap(lambda a: a.masked_scatter(a > 0, torch.tensor([10., 20., 30.])))(x)",
        [[10.0, -2.0, 20.0], [-1.0, 10.0, -3.0]],
    ),
    "masked_scatter in vmap of grad": (
        X + "f = lambda a: (a.masked_scatter(a > 0, a.flip(0)) ** 2).sum()\nresult = torch.vmap(torch.func.grad(f))(x)",
        [[0.0, -8.0, 6.0], [-2.0, 0.0, -12.0]],
    ),
    "masked_scatter of a number": (
        "result = torch.tensor(1.).masked_scatter(torch.tensor(True), torch.tensor([2., 3.]))",
        2.0,
    ),
    "an empty gather is no view": (
        "x = torch.tensor([1., 2.], requires_grad=True)\ny = x.gather(0, torch.tensor([], dtype=torch.int64))\n"
        "y.add_(1)\nresult = y._is_view()",
        False,
    ),
    "a repeated tensor is contiguous": ("result = torch.tensor([1, 2]).repeat(2, 1).view(-1)", [1, 2, 1, 2]),
    "a repeated tensor is no view in vmap": (
        "x = torch.tensor([[-0.1, -0.7, 0.6]] * 2)\n"
        "def f(a):\n    b = a.repeat(2, 1)\n    b.clamp_(-0.5, 0.5)\n    return (a * b).sum()\n"
        "result = torch.vmap(torch.func.grad(f))(x)",
        [[-0.4, -1.0, 1.0]] * 2,
    ),
    "what contiguous copies is no view in jvp": (
        "x = torch.tensor([[1., 2.], [3., 4.]])\n"
        "def f(a):\n    b = a * 1\n    b.T.contiguous().mul_(3)\n    return b ** 2\n"
        "result = torch.func.jvp(f, (x,), (torch.ones_like(x),))[1]",
        [[2.0, 4.0], [6.0, 8.0]],
    ),
    "a cotangent that is not in row order, of what was written through a flat view": (
        "x = torch.tensor(-1.5, requires_grad=True)\ny = torch.eye(2) * x\ny.view(-1)[1:].mul_(0.5)\n"
        "(y.prod(0).sum() + y.sum()).backward()\nresult = x.grad",
        1.5,
    ),
    "a tiled tensor is no view in jvp": (
        "x = torch.tensor([[-0.1, -0.7, 0.6]])\n"
        "def f(a):\n    b = a * 1\n    c = b.tile(2)\n    c.T.add_(-1.5)\n    return b ** 2\n"
        "result = torch.func.jvp(f, (x,), (torch.ones_like(x),))[1]",
        [[-0.2, -1.4, 1.2]],
    ),
    "the clone of an expanded one, too": ("result = torch.tensor([1, 2]).expand(2, 2).clone().view(-1)", [1, 2, 1, 2]),
    "mT of a number": ("result = torch.tensor(1.5).mT + torch.tensor(1.).mH + torch.tensor(1.).adjoint()", 3.5),
    "mT of a number is the number": (
        "x = torch.tensor(1.5, requires_grad=True) * 1\ny = x.mT\nresult = y is x and x.adjoint() is x and x.mH is x",
        True,
    ),
    "copysign does not read the sign again": (
        "x, y = torch.tensor([1., -2.], requires_grad=True), torch.tensor([-1., -1.])\n"
        "z = torch.copysign(x, y)\ny.neg_()\nz.sum().backward()\nresult = x.grad",
        [-1.0, 1.0],
    ),
    "what all examples share can be written to": (
        "x = torch.vmap(lambda a: torch.zeros_like(a))(torch.ones(3, 2))\nx[0] += 1\nresult = x",
        [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]],
    ),
    "so can what they share that has a history": (
        "c = torch.ones(2, requires_grad=True) * 2\nx = torch.vmap(lambda a: c * 1)(torch.ones(1))\nx[x > 0] = 3.0\nresult = x",
        [[3.0, 3.0]],
    ),
    "inner promotes numbers": (
        "result = str(torch.inner(torch.tensor(1.), torch.tensor([2.], dtype=torch.float64)).dtype).split('.')[-1]",
        "float64",
    ),
    "booleans between floats": ("result = torch.tensor([True, False]).clamp(0.25, 0.5)", [0.5, 0.25]),
    "cosine_similarity of integers and floats": (
        "x = torch.tensor([[2, 0], [0, 3]], dtype=torch.int32)\n"
        "result = torch.nn.functional.cosine_similarity(x, torch.tensor([[3., 4.], [3., 4.]]))",
        [0.6, 0.8],
    ),
    "cosine_similarity of integers": (
        "torch.nn.functional.cosine_similarity(torch.ones(2, 2, dtype=torch.int64), torch.tensor([[True]]))",
        RuntimeError,
    ),
    "std of equal numbers whose mean is rounded: of the rounding": (
        "result = torch.func.grad(torch.std)(torch.full((3,), 0.1, dtype=torch.float64))",
        [-(6**-0.5)] * 3,
    ),
    "places lie in columns": ("result = torch.ones(2, 3).argwhere().stride()", (1, 6)),
    "einsum promotes numbers, too": (
        "x = torch.tensor(1., dtype=torch.float64)\nresult = str(torch.einsum('...,...', x, torch.ones(2)).dtype)[-7:]",
        "float64",
    ),
    "a scattered number is no view": (
        "x = torch.tensor(1., requires_grad=True)\ni = torch.tensor(0)\nresult = [y._is_view() for y in "
        "(x.scatter(0, i, 2.), x.scatter_add(0, i, x), x.gather(0, i), x.softmax(0), x.log_softmax(0))]",
        [False] * 5,
    ),
    "indices of topk and kthvalue have their own memory": (
        "x = torch.ones(3, 4)\nresult = [y.indices.is_contiguous() for y in (x.topk(2), x.kthvalue(2))]",
        [True, True],
    ),
    "a clone in row order": (
        "x = torch.ones(4, 3).t()\n"
        "result = [x.clone(memory_format=f).stride() for f in (torch.contiguous_format, torch.preserve_format)]",
        [(4, 1), (1, 3)],
    ),
    "what is flipped or turned lies as its operand does": (
        "x = torch.ones(2, 3, 4)\n"
        "result = [y.stride() for y in (x.permute(2, 1, 0).flip(0), torch.rot90(x), x.T.fliplr(), torch.rot90(x, 2))]",
        [(1, 4, 12), (4, 12, 1), (1, 4, 12), (12, 4, 1)],
    ),
    "einsum of a diagonal of none": ("torch.einsum('ii->i', torch.ones(1, 3))", RuntimeError),
    "meshgrid of a matrix": ("torch.meshgrid(torch.ones(1, 3), torch.ones(2), indexing='ij')", RuntimeError),
    "cartesian_prod of a matrix": ("torch.cartesian_prod(torch.ones(1, 3), torch.ones(2))", RuntimeError),
    "vander of a matrix": ("torch.vander(torch.ones(1, 3))", RuntimeError),
}


@pytest.mark.filterwarnings("ignore:.*performance drop")
@pytest.mark.parametrize("name", CASES)
def test_program(name):
    program, expected = CASES[name]
    env = {"torch": torch}
    if isinstance(expected, type):
        with pytest.raises(expected):
            exec(program, env)
        return
    exec(program, env)
    result = env["result"]
    if hasattr(result, "detach"):
        np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-6)
    else:
        assert result == expected
