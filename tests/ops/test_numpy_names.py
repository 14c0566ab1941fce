"""NumPy's names of arguments: ``axis`` for ``dim``, ``keepdims`` for ``keepdim``, ``x``, ``a`` or ``x1`` for ``input``."""

from __future__ import annotations

import pytest

from behaviour import torch

X = torch.arange(12.0).reshape(3, 4)
ROWS = torch.tensor([0, 1])
PLACES = torch.zeros(3, 4, dtype=torch.int64)
CALLS = {
    "amax": ((X,), {}),
    "argsort": ((X,), {}),
    "cat": (([X, X],), {}),
    "chunk": ((X, 2), {}),
    "cross": ((X[:, :3], X[:, 1:]), {}),
    "cumsum": ((X,), {}),
    "cumulative_trapezoid": ((X,), {}),
    "diff": ((X,), {}),
    "gather": ((X,), {"index": PLACES}),
    "gradient": ((X,), {}),
    "index_add": ((X,), {"index": ROWS, "source": X[:2]}),
    "index_copy": ((X,), {"index": ROWS, "source": X[:2]}),
    "index_fill": ((X,), {"index": ROWS, "value": 1.0}),
    "index_select": ((X,), {"index": ROWS}),
    "logcumsumexp": ((X,), {}),
    "narrow": ((X,), {"start": 0, "length": 1}),
    "quantile": ((X, 0.5), {}),
    "renorm": ((X, 2), {"maxnorm": 1}),
    "repeat_interleave": ((X, 2), {}),
    "scatter": ((X,), {"index": PLACES, "src": X}),
    "scatter_add": ((X,), {"index": PLACES, "src": X}),
    "select": ((X,), {"index": 0}),
    "select_scatter": ((X, torch.zeros(4)), {"index": 0}),
    "slice_scatter": ((X, torch.zeros(3, 4)), {}),
    "softmax": ((X,), {}),
    "split_with_sizes": ((X, [1, 2]), {}),
    "squeeze": ((X[:1],), {}),
    "squeeze_copy": ((X[:1],), {}),
    "stack": (([X, X],), {}),
    "take_along_dim": ((X, PLACES), {}),
    "tensor_split": ((X, 2), {}),
    "topk": ((X, 2), {}),
    "trapezoid": ((X,), {}),
    "trapz": ((X,), {}),
    "unbind": ((X,), {}),
    "unflatten": ((X,), {"sizes": (1, 3)}),
    "unsafe_chunk": ((X, 2), {}),
    "unsqueeze": ((X,), {}),
    "var": ((X,), {}),
}


def flat(result):
    return [t.tolist() for t in ([result] if isinstance(result, torch.Tensor) else result)]


@pytest.mark.parametrize("name", CALLS)
def test_axis(name):
    args, kwargs = CALLS[name]
    function = getattr(torch, name)
    assert flat(function(*args, **kwargs, axis=0)) == flat(function(*args, **kwargs, dim=0))
    if name in ("unflatten", "trapz", "trapezoid", "cumulative_trapezoid", "gradient", "cat", "stack", "squeeze_copy"):
        return  # not a method, or without this name
    method = getattr(args[0], name)
    assert flat(method(*args[1:], **kwargs, axis=0)) == flat(method(*args[1:], **kwargs, dim=0))


@pytest.mark.parametrize("name", ["norm", "vector_norm"])
def test_norms(name):
    norm = getattr(torch.linalg, name)
    assert norm(X, axis=0, keepdims=True).tolist() == norm(X, dim=0, keepdim=True).tolist()


def test_other_modules():
    assert torch.fft.fft(X, axis=0).tolist() == torch.fft.fft(X, dim=0).tolist()
    assert torch.linalg.vecdot(X, X, axis=0).tolist() == torch.linalg.vecdot(X, X, dim=0).tolist()
    assert torch.linalg.matrix_norm(X, axis=(0, 1), keepdims=True).shape == (1, 1)


def test_in_place():
    assert X[:1].clone().squeeze_(axis=0).shape == (4,)
    assert X.clone().unsqueeze_(axis=0).shape == (1, 3, 4)
    assert X.clone().cumsum_(axis=0).tolist() == X.cumsum(0).tolist()


def test_the_operand():
    assert torch.nansum(a=X, axis=0).tolist() == [12, 15, 18, 21]
    assert torch.diff(x=X, axis=0).tolist() == [[4.0] * 4] * 2
    assert torch.cross(x1=X[:, :3], x2=X[:, 1:], axis=0).tolist() == torch.cross(X[:, :3], X[:, 1:], dim=0).tolist()


def test_both_names_at_once():
    with pytest.raises(TypeError, match="cumsum"):
        torch.cumsum(X, dim=0, axis=1)
    with pytest.raises(TypeError, match="squeeze"):
        X.squeeze(0, axis=1)


SQUARE = torch.arange(9.0).reshape(3, 3)
OTHER_NAMES = {
    "bmm": ((SQUARE[None],), {"mat2": SQUARE[None]}),
    "dot": ((SQUARE[0],), {"tensor": SQUARE[1]}),
    "hsplit": ((SQUARE,), {"indices": [1]}),
    "index_fill": ((torch.tensor(1.0),), {"dim": 0, "index": ROWS[:1], "value": 3.0}),
    "index_reduce": ((SQUARE,), {"dim": 0, "index": ROWS, "source": SQUARE[:2], "reduce": "prod"}),
    "mm": ((SQUARE,), {"mat2": SQUARE}),
    "mv": ((SQUARE,), {"vec": SQUARE[0]}),
    "swapaxes": ((SQUARE,), {"axis0": 0, "axis1": 1}),
    "tensor_split": ((SQUARE,), {"sections": 2}),
    "vsplit": ((SQUARE,), {"indices": (1, 2)}),
}


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_other_names(name):
    (x,), kwargs = OTHER_NAMES[name]
    expected = flat(getattr(torch, name)(x, *kwargs.values()))
    assert flat(getattr(torch, name)(x, **kwargs)) == expected
    assert flat(getattr(x, name)(**kwargs)) == expected


def test_the_method_split():
    assert flat(SQUARE.split(split_size=2, dim=1)) == flat(torch.split(SQUARE, split_size_or_sections=2, dim=1))


@pytest.mark.parametrize(
    "call",
    [
        lambda m, v: torch.det(input=m), lambda m, v: torch.inverse(input=m), lambda m, v: torch.linalg.pinv(input=m),
        lambda m, v: torch.linalg.norm(input=m, ord=1), lambda m, v: torch.linalg.lstsq(input=m, b=v[:, None])[0],
        lambda m, v: torch.linalg.tensorsolve(input=m, other=v), lambda m, v: torch.triangular_solve(input=m, A=m)[0],
        lambda m, v: torch.cholesky_solve(input=v[:, None], input2=m), lambda m, v: m.cholesky_solve(input2=m),
        lambda m, v: v.clone().copy_(other=v), lambda m, v: v.view(dtype=torch.int32),
        lambda m, v: torch.nn.functional.one_hot(input=v.long()),
    ],
)  # fmt: skip
def test_names_that_pytorch_takes_beside_its_documents(call):
    m, v = torch.tensor([[2.0, 0.0], [1.0, 4.0]]), torch.tensor([1.0, 2.0])
    assert call(m, v).isfinite().all()
