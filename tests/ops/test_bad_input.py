"""Invalid input: PyTorch's exception type and key words, the operation and the fix, and no side effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

X, Y, I = cr.ones(3, 4), cr.ones(4, 5), cr.arange(6).reshape(2, 3)

WRONG: list[tuple[str, Any, type[Exception], str]] = [
    ("type", lambda: cr.exp([1.0]), TypeError, r"exp\(\): argument 'input' \(position 1\) must be Tensor, not list"),
    ("type", lambda: X - [1.0], TypeError, "unsupported operand"),
    ("type", lambda: cr.sum("a"), TypeError, r"sum\(\): argument 'input'"),
    ("type", lambda: cr.cat(X), TypeError, r"cat\(\): argument 'tensors' .* must be tuple of Tensors"),
    ("type", lambda: cr.stack([X, 1.0]), TypeError, "expected Tensor as element 1"),
    ("type", lambda: X.reshape("a"), TypeError, "reshape"),
    ("type", lambda: X.sum("a"), TypeError, r"sum\(\): argument 'dim' must be int, not str"),
    ("type", lambda: X.sum(True), TypeError, "must be int, not bool"),
    ("type", lambda: cr.zeros(2.5), TypeError, "zeros"),
    ("type", lambda: cr.from_numpy([1.0]), TypeError, r"expected np.ndarray \(got list\)"),
    ("type", lambda: cr.tensor("a"), TypeError, "invalid data type 'str'"),
    ("type", lambda: cr.tensor(None), RuntimeError, "Could not infer dtype of NoneType"),
    ("type", lambda: cr.tensor([1, [2]]), ValueError, "expected sequence"),
    ("type", lambda: cr.tensor(2**70), ValueError, "Overflow"),
    ("type", lambda: X[1.5], IndexError, "only integers, slices"),
    ("type", lambda: "a" in X, RuntimeError, "only supports Tensor or scalar"),
    ("type", lambda: cr.manual_seed("a"), TypeError, "must be int, not str"),
    ("shape", lambda: X + Y, RuntimeError, r"size of tensor a \(4\) must match .* \(5\) at non-singleton dimension 1"),
    ("shape", lambda: cr.where(X > 0, X, Y), RuntimeError, "where got shapes"),
    ("shape", lambda: X @ X, RuntimeError, r"cannot be multiplied \(3x4 and 3x4\)"),
    ("shape", lambda: X.reshape(5), RuntimeError, r"shape '\[5\]' is invalid for input of size 12"),
    ("shape", lambda: X.t().view(-1), RuntimeError, r"Use .reshape\(...\) instead"),
    ("shape", lambda: cr.cat([X, Y]), RuntimeError, "Sizes of tensors must match except in dimension 0"),
    ("shape", lambda: cr.stack([X, Y]), RuntimeError, "stack expects each tensor to be equal size"),
    ("shape", lambda: X.expand(5, 4), RuntimeError, "must match the existing size"),
    ("shape", lambda: X.gather(1, cr.tensor([0])), RuntimeError, "same number of dimensions"),
    ("shape", lambda: cr.einsum("ij,jk", X, X), RuntimeError, "does not broadcast with previously seen size"),
    ("shape", lambda: X.split([1, 1]), RuntimeError, "sum exactly to 3"),
    ("shape", lambda: X.repeat(2), RuntimeError, "Number of dimensions of repeat dims"),
    ("shape", lambda: X.item(), RuntimeError, "cannot be converted to Scalar"),
    ("shape", lambda: bool(X), RuntimeError, "is ambiguous"),
    ("shape", lambda: float(X), ValueError, "only one element tensors"),
    ("dtype", lambda: I.mean(), RuntimeError, "could not infer output dtype"),
    ("dtype", lambda: I.var(), RuntimeError, "only support floating point"),
    ("dtype", lambda: I.softmax(0), NotImplementedError, "\"softmax_cpu\" not implemented for 'Long'"),
    ("dtype", lambda: ~X, TypeError, "only implemented on integer and Boolean-type"),
    ("dtype", lambda: X & 1, NotImplementedError, "not implemented for 'Float'"),
    ("dtype", lambda: -(X > 0), RuntimeError, "Negation, the `-` operator, on a bool tensor"),
    ("dtype", lambda: (X > 0) - (X > 0), RuntimeError, "Subtraction, the `-` operator"),
    ("dtype", lambda: cr.floor(X > 0), NotImplementedError, "not implemented for 'Bool'"),
    ("dtype", lambda: X @ Y.double(), RuntimeError, "to have the same dtype"),
    ("dtype", lambda: X[cr.tensor([0.5])], IndexError, "must be long, int, byte or bool"),
    ("dtype", lambda: X.masked_fill(X, 0), RuntimeError, "only supports boolean masks"),
    ("dtype", lambda: cr.where(X, X, X), RuntimeError, "compare first"),
    ("dtype", lambda: cr.tensor([1], requires_grad=True), RuntimeError, "floating point and complex dtype"),
    ("dtype", lambda: X.to("nonsense"), TypeError, "nonsense"),
    ("empty", lambda: X[:0].max(), RuntimeError, r"max\(\): Expected reduction dim to be specified"),
    ("empty", lambda: X[:0].max(0), IndexError, "to have non-zero size"),
    ("empty", lambda: X[:0].argmax(), IndexError, "non-zero size"),
    ("empty", lambda: cr.stack([]), RuntimeError, "expects a non-empty TensorList"),
    ("empty", lambda: bool(X[:0]), RuntimeError, "no values is ambiguous"),
    ("0-d", lambda: cr.tensor(1.0)[0], IndexError, "invalid index of a 0-dim tensor"),
    ("0-d", lambda: len(cr.tensor(1.0)), TypeError, r"len\(\) of a 0-d tensor"),
    ("0-d", lambda: list(cr.tensor(1.0)), TypeError, "iteration over a 0-d tensor"),
    ("0-d", lambda: cr.tensor(1.0) @ X, RuntimeError, "at least 1D"),
    ("0-d", lambda: cr.cat([cr.tensor(1.0)]), RuntimeError, "cannot be concatenated: use stack"),
    ("type", lambda: X.histc(cr.tensor(2)), TypeError, r"histc\(\): argument 'bins' .* must be int, not Tensor"),
    ("type", lambda: cr.triangular_solve(X, "a"), TypeError, r"triangular_solve\(\): argument 'A' .* must be Tensor"),
    ("range", lambda: X.sum(2), IndexError, r"expected to be in range of \[-2, 1\], but got 2"),
    ("range", lambda: X.transpose(0, -3), IndexError, "Dimension out of range"),
    ("range", lambda: X.unsqueeze(4), IndexError, "Dimension out of range"),
    ("range", lambda: X[3], IndexError, "out of bounds"),
    ("range", lambda: X[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
    ("range", lambda: X.gather(1, cr.tensor([[4]])), RuntimeError, "index 4 is out of bounds for dimension 1"),
    ("range", lambda: X.index_select(0, cr.tensor([5])), IndexError, "out of range in self"),
    ("range", lambda: X.topk(9), RuntimeError, "topk of 9 along a dimension of length 4"),
    ("range", lambda: X[::-1], ValueError, "step must be greater than zero"),
    ("range", lambda: X.narrow(0, 2, 2), RuntimeError, "exceeds dimension size"),
    ("value", lambda: I // 0, RuntimeError, "ZeroDivisionError"),
    ("value", lambda: cr.arange(5, 1), RuntimeError, "inconsistent with step sign"),
    ("value", lambda: cr.zeros(-1), RuntimeError, "negative dimension -1"),
    ("value", lambda: X.clamp(), RuntimeError, "At least one of 'min' or 'max'"),
    ("value", lambda: cr.div(X, 2, rounding_mode="up"), RuntimeError, "rounding_mode"),
    ("value", lambda: cr.tensor(1.0, device="cuda"), RuntimeError, "computes on the CPU"),
    ("value", lambda: cr.bernoulli(cr.tensor([2.0])), RuntimeError, "p_in"),
    ("value", lambda: cr.normal(0.0, -1.0, (2,)), RuntimeError, "std >= 0"),
    ("name", lambda: X.shap, AttributeError, "Did you mean 'shape'"),
    ("name", lambda: X.Transpose(), AttributeError, "Did you mean 'transpose'"),
    ("name", lambda: cr.resahpe, AttributeError, "has no attribute 'resahpe'. Did you mean 'reshape'"),
]


@pytest.mark.parametrize(("call", "kind", "words"), [pytest.param(*w[1:], id=f"{w[0]}-{w[3][:40]}") for w in WRONG])
def test_wrong_input(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


REFUSED_WRITES: list[tuple[Any, type[Exception]]] = [
    (lambda t: t.add_(cr.ones(2)), RuntimeError),
    (lambda t: t.add_(cr.ones(5, 3, 4)), RuntimeError),
    (lambda t: t.mul_(1j), RuntimeError),
    (lambda t: t.copy_(cr.ones(5)), RuntimeError),
    (lambda t: t.__setitem__(9, 1.0), IndexError),
    (lambda t: t.__setitem__(0, cr.ones(7)), RuntimeError),
    (lambda t: t.__setitem__(0, "a"), TypeError),
    (lambda t: t.masked_fill_(t, 1.0), RuntimeError),
    (lambda t: t.scatter_(0, cr.tensor([[9]]), 1.0), RuntimeError),
    (lambda t: t.index_add_(0, cr.tensor([9]), cr.ones(1, 4)), RuntimeError),
    (lambda t: t.add_("a"), TypeError),
    (lambda t: t.fill_(cr.ones(2)), RuntimeError),
]


@pytest.mark.parametrize("write", range(len(REFUSED_WRITES)))
@pytest.mark.parametrize("tracked", [False, True])
def test_a_refused_write_changes_nothing(write: int, tracked: bool) -> None:
    call, kind = REFUSED_WRITES[write]
    t = cr.ones(3, 4, requires_grad=tracked) * 2
    node, version = t.grad_fn, t._version
    with pytest.raises(kind):
        call(t)
    assert t.tolist() == [[2.0] * 4] * 3
    assert t.grad_fn is node
    assert t._version == version


HUGE = 2**62
V = cr.tensor([0.3, 0.5, 2.0])
ENDLESS: list[tuple[Any, type[Exception], str]] = [
    (lambda: V.tensor_split(HUGE), RuntimeError, "tensor_split.*all but 3 would be empty"),
    (lambda: np.array_split(V, HUGE), RuntimeError, "array_split.*all but 3 would be empty"),
    (lambda: cr.mvlgamma(V, HUGE), ValueError, "linear in p, and the limit is 100000"),
    (lambda: V.repeat_interleave(HUGE), ValueError, "Maximum allowed dimension exceeded"),
    (lambda: V.repeat_interleave(cr.tensor([HUGE, HUGE, HUGE])), ValueError, "Maximum allowed dimension exceeded"),
    (lambda: np.repeat(cr.ones(4), HUGE), ValueError, "Maximum allowed dimension exceeded"),
    (lambda: cr.vander(V, HUGE), ValueError, "too big"),
    *[
        (lambda name=name: getattr(cr.special, name)(V, HUGE), ValueError, rf"special.{name}: degree {HUGE}")
        for name in ("chebyshev_polynomial_t", "hermite_polynomial_h", "laguerre_polynomial_l", "legendre_polynomial_p")
    ],
]


@pytest.mark.parametrize("index", range(len(ENDLESS)))
def test_orders_that_never_end_are_refused(index: int) -> None:
    call, kind, words = ENDLESS[index]
    with pytest.raises(kind, match=words):
        call()


def test_a_derivative_of_any_order_of_digamma() -> None:
    assert cr.polygamma(171, V.double()).tolist() == [float("inf")] * 3
    assert cr.polygamma(HUGE, V.double())[0].item() == -float("inf")


@pytest.mark.parametrize(
    "call",
    [
        "np.swapaxes(x, 0, 2)", "np.moveaxis(x, 5, 0)", "np.moveaxis(x, (0, 0), (0, 1))", "np.transpose(x, (0, 5))",
        "np.transpose(x, (0, 0))", "np.transpose(x, (0,))", "np.rollaxis(x, 4)", "np.expand_dims(x, 9)",
        "np.squeeze(x, 3)", "np.diagonal(x, 0, 0, 3)", "np.trace(x[0])", "np.unstack(x.sum())", "np.stack([x, x], 5)",
        "np.concatenate([x, x], 2)", "np.array_split(x, 2, 7)", "np.array_split(x, 0)", "np.matrix_transpose(x[0])",
    ],
)  # fmt: skip
def test_an_axis_that_is_not_there_is_numpys_error(call: str) -> None:
    if not hasattr(np, call[3 : call.index("(")]):
        pytest.skip("this NumPy has no such function")
    array = np.arange(6.0).reshape(2, 3)
    with pytest.raises(Exception) as expected:
        eval(call, {"np": np, "x": array})
    with pytest.raises(type(expected.value)):
        eval(call, {"np": np, "x": cr.tensor(array)})


JUNK: list[Any] = [None, "a", [1.0], {"a": 1}]
MODULES = {"": cr, "linalg": cr.linalg, "fft": cr.fft, "special": cr.special, "nn.functional": cr.nn.functional}
SETTINGS = ("manual_seed", "seed", "set_", "save", "load", "explain", "why")
PUBLIC = {
    f"{module}.{name}".lstrip("."): getattr(namespace, name)
    for module, namespace in MODULES.items()
    for name in namespace.__all__
    if callable(getattr(namespace, name)) and not isinstance(getattr(namespace, name), type)
    if not name.startswith(SETTINGS)
} | {
    f"Tensor.{name}": getattr(cr.Tensor, name) for name in dir(cr.Tensor) if not name.startswith(("_", "share_memory"))
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("letter", sorted({name.rpartition(".")[2][0] for name in PUBLIC}))
def test_junk_in_the_place_of_a_tensor_is_no_error_from_inside(letter: str) -> None:
    """The error describes the problem in terms of Python and PyTorch, and the tensors are unchanged."""
    for name, function in PUBLIC.items():
        if name.rpartition(".")[2][0] != letter or not callable(function):
            continue
        for junk in JUNK:
            t = cr.ones(2, 3, requires_grad=True) * 2
            node = t.grad_fn
            for args in ((t, junk), (t, junk, junk), *([] if name.startswith("Tensor.") else [(junk,), (junk, t)])):
                try:
                    function(*args)
                except (
                    AttributeError,
                    KeyError,
                    NameError,
                    AssertionError,
                    RecursionError,
                    ZeroDivisionError,
                ) as error:
                    raise AssertionError(f"{name}{args}: {error!r}") from error
                except Exception:
                    assert t.grad_fn is node and t.tolist() == [[2.0] * 3] * 2, (name, args)
                else:
                    t = cr.ones(2, 3, requires_grad=True) * 2
                    node = t.grad_fn
