"""chainrule.jacobian: functions and computed tensors, both modes, in chunks under a memory limit."""

import tracemalloc

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.transforms.differences import directional_derivative

MODES = ["auto", "forward", "reverse"]
X = np.array([0.3, -1.2, 2.0])
W = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 0.25]])


def differences(f, x):
    """Return the Jacobian of a NumPy function by central differences, of shape (*f(x).shape, *x.shape)."""
    columns = [directional_derivative(f, x, e.reshape(x.shape)) for e in np.eye(x.size)]
    return np.stack(columns, -1).reshape(*np.shape(f(x)), *x.shape)


FUNCTIONS = {
    "elementwise": lambda x: np.sin(x) * x,
    "more outputs": lambda x: np.outer(x, x) + x,
    "fewer outputs": lambda x: W @ np.exp(x),
    "scalar": lambda x: np.sum(x**3),
    "no dependence": lambda x: np.zeros(2) + 0 * np.sum(x),
    "parts": lambda x: np.concatenate([x[1:], np.cumsum(x)]),
}


# -- functions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk_size", [None, 1, 2])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_differences(name, mode, chunk_size):
    f = FUNCTIONS[name]
    got = cr.jacobian(f, X, mode=mode, chunk_size=chunk_size)
    assert type(got) is np.ndarray and got.dtype == np.float64
    want = differences(f, X)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_arrays_of_any_shape(mode):
    x = np.arange(6.0).reshape(2, 3)
    got = cr.jacobian(lambda x: x.T @ x, x, mode=mode)
    assert got.shape == (3, 3, 2, 3)
    np.testing.assert_allclose(got, differences(lambda x: x.T @ x, x), atol=1e-8)


@pytest.mark.parametrize("mode", MODES)
def test_trees(mode):
    given = {"a": X, "b": np.array(2.0)}
    got = cr.jacobian(lambda d: [d["a"] * d["b"], (np.sum(d["a"]),)], given, mode=mode)
    np.testing.assert_allclose(got[0]["a"], 2 * np.eye(3))
    np.testing.assert_allclose(got[0]["b"], X)
    np.testing.assert_allclose(got[1][0]["a"], np.ones(3))
    assert got[1][0]["b"] == 0 and got[1][0]["b"].shape == ()


@pytest.mark.parametrize("mode", MODES)
def test_a_tuple_holds_arguments(mode):
    ja, jb = cr.jacobian(lambda a, b: a * b, (X, 2.0), mode=mode)
    np.testing.assert_allclose(ja, 2 * np.eye(3))
    np.testing.assert_allclose(jb, X)


@pytest.mark.parametrize("mode", MODES)
def test_tensors_in_tensors_out(mode):
    x = cr.tensor([1.0, 2.0])
    got = cr.jacobian(lambda x: x**2, x, mode=mode)
    assert isinstance(got, cr.Tensor) and got.dtype == cr.float32 and not got.requires_grad
    assert got.tolist() == [[2.0, 0.0], [0.0, 4.0]]


@pytest.mark.parametrize("mode", MODES)
def test_numbers_and_empty_arrays(mode):
    assert cr.jacobian(lambda x: x**2, 3.0, mode=mode) == 6.0
    assert cr.jacobian(lambda x: x * 2, np.zeros(0), mode=mode).shape == (0, 0)
    assert cr.jacobian(np.sum, np.zeros(0), mode=mode).shape == (0,)
    assert cr.jacobian(lambda x: x[:0], X, mode=mode).shape == (0, 3)
    assert cr.jacobian(lambda x: np.ones(2), X, mode=mode).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("mode", MODES)
def test_complex(mode):
    z = np.array([1 + 2j, 3j])
    np.testing.assert_allclose(cr.jacobian(lambda z: z * z, z, mode=mode), np.diag(2 * z))
    np.testing.assert_allclose(cr.jacobian(lambda x: x * z[0], np.array([3.0]), mode=mode), [[1 + 2j]])
    if mode != "forward":
        np.testing.assert_allclose(cr.jacobian(np.abs, np.array([3 + 4j]), mode=mode), [[0.6 + 0.8j]])
    else:
        with pytest.raises(ValueError, match="mode='reverse'"):
            cr.jacobian(np.abs, np.array([3 + 4j]), mode=mode)


def test_auto_takes_the_cheaper_mode():
    calls = []

    def wide(x):
        calls.append(type(x.tensor._raw).__name__)
        return x[0] * np.arange(1.0, 50.0) + x[1]

    cr.jacobian(wide, np.array([1.0, 2.0]))
    assert calls[-1] == "Dual"
    calls.clear()

    def narrow(x):
        calls.append(type(x.tensor._raw).__name__)
        return np.sum(x**2)

    cr.jacobian(narrow, X)
    assert calls == ["ndarray"]


@pytest.mark.parametrize("inner", ["forward", "reverse"])
@pytest.mark.parametrize("outer", ["forward", "reverse"])
def test_nested(inner, outer):
    got = cr.jacobian(lambda a: cr.jacobian(lambda b: b**3, a, mode=inner), X, mode=outer)
    want = np.zeros((3, 3, 3))
    want[range(3), range(3), range(3)] = 6 * X
    np.testing.assert_allclose(got, want)


def test_inside_other_transformations():
    got = cr.func.vmap(lambda a: cr.jacobian(lambda b: b**2, a))(cr.ones(4, 2))
    assert got.tolist() == [[[2.0, 0.0], [0.0, 2.0]]] * 4
    g = cr.func.grad(lambda a: cr.jacobian(lambda b: b**3, a).sum())(cr.tensor([1.0, 2.0]))
    assert g.tolist() == [6.0, 12.0]


@pytest.mark.parametrize("mode", MODES)
def test_recorded_results(mode):
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    got = cr.jacobian(lambda a: a**3, x, mode=mode)
    assert cr.autograd.grad(got.sum(), x)[0].tolist() == [6.0, 12.0]
    assert not cr.jacobian(lambda a: a**3, x, mode=mode, create_graph=False).requires_grad
    with cr.no_grad():
        assert not cr.jacobian(lambda a: a**3, x, mode=mode).requires_grad


# -- computed tensors ------------------------------------------------------------------------------------------------


@pytest.fixture
def computed():
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    w = cr.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    return x, w, y


@pytest.mark.parametrize("chunk_size", [None, 1])
def test_of_tensors(computed, chunk_size):
    x, w, y = computed
    for _ in range(2):  # the graph is retained
        assert cr.jacobian(y, x, chunk_size=chunk_size).tolist() == [[3.0, 0.0], [0.0, 4.0]]
    _, jw = cr.jacobian(y, (x, w), chunk_size=chunk_size)
    assert jw.tolist() == [[1.0, 0.0], [0.0, 2.0]]
    rows = cr.jacobian((y, y.sum()), (x,), chunk_size=chunk_size)
    assert rows[1][0].tolist() == [3.0, 4.0]
    assert x.grad is None and w.grad is None
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_of_tensors_that_are_not_leaves_or_not_used(computed):
    _, _, y = computed
    assert cr.jacobian((y * y).sum(), y).tolist() == [6.0, 16.0]
    assert cr.jacobian(y, cr.ones(3, requires_grad=True)).tolist() == [[0.0] * 3] * 2


def test_of_tensors_recorded(computed):
    x, w, y = computed
    assert not cr.jacobian(y, x).requires_grad
    j = cr.jacobian(y, x, create_graph=True)
    assert cr.autograd.grad(j.sum(), w)[0].tolist() == [1.0, 1.0]


def test_of_complex_tensors():
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    z = cr.tensor([1 + 2j], requires_grad=True)
    assert cr.jacobian(x * (1 + 2j), x).tolist() == [[1 + 2j, 0], [0, 1 + 2j]]
    assert cr.jacobian(z * z, z).tolist() == [[2 + 4j]]
    jx, jz = cr.jacobian(x[0] * z, (x, z))
    assert jx.tolist() == [[1 + 2j, 0]] and jz.tolist() == [[1 + 0j]]


def test_of_dual_tensors():
    forward_ad = cr.autograd.forward_ad
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, cr.ones(2))
        j = forward_ad.unpack_dual(cr.jacobian(d**3, d))
    assert j.primal.tolist() == [[3.0, 0.0], [0.0, 12.0]]
    assert j.tangent.tolist() == [[6.0, 0.0], [0.0, 12.0]]


class Plain(cr.autograd.Function):
    """x² with a rule that needs numbers, which a batch does not provide."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return cr.from_numpy(2 * x.detach().numpy() * g.detach().numpy())


def test_rules_that_cannot_be_batched_run_one_by_one():
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    y = Plain.apply(x)
    with pytest.warns(UserWarning, match="one row at a time"):
        assert cr.jacobian(y, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]


# -- memory ----------------------------------------------------------------------------------------------------------


def peak_of(call):
    tracemalloc.start()
    try:
        result = call()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_memory_stays_within_the_limit_and_the_result(mode):
    n, limit = 3000, 32 * 2**20
    w = np.full((n, n), 1 / n, np.float32)
    x = np.linspace(-1, 1, n, dtype=np.float32)

    def f(x):
        return np.tanh(w @ np.sin(x)) * 2 + x

    got, peak = peak_of(lambda: cr.jacobian(f, x, mode=mode, memory=limit))
    assert peak <= limit + got.nbytes
    h = np.tanh(w @ np.sin(x))
    np.testing.assert_allclose(got[:5], (2 * (1 - h[:5] ** 2))[:, None] * w[:5] * np.cos(x) + np.eye(n)[:5], rtol=1e-4)


def test_memory_of_computed_tensors():
    n, limit = 1500, 8 * 2**20
    x = cr.ones(n, requires_grad=True)
    y = (x.exp() * x).sin() * x.sum()
    got, peak = peak_of(lambda: cr.jacobian(y, x, memory=limit))
    assert peak <= limit + got.nbytes


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x, y: cr.jacobian(lambda a: a, np.array([1, 2])), TypeError, "x has dtype int64"),
        (lambda x, y: cr.jacobian(lambda a: a > 0, X), TypeError, "returns dtype torch.bool.*cut by gt"),
        (lambda x, y: cr.jacobian(lambda a: a > 0, X, mode="forward"), TypeError, "returns dtype torch.bool"),
        (lambda x, y: cr.jacobian(lambda a: "text", X), TypeError, "must return arrays or tensors"),
        (lambda x, y: cr.jacobian(lambda a: None, X), ValueError, "returned no array or tensor but NoneType"),
        (lambda x, y: cr.jacobian(lambda: 1.0, ()), ValueError, "x contains no tensor"),
        (lambda x, y: cr.jacobian(cr.ones(2), x), RuntimeError, "does not require grad and does not have a grad_fn"),
        (lambda x, y: cr.jacobian(y, cr.ones(2)), RuntimeError, "One of the differentiated Tensors does not require"),
        (lambda x, y: cr.jacobian(np.tanh, np.ones(200_000)), ValueError, "takes 298 GiB, .*layout='csr'"),
        (
            lambda x, y: cr.jacobian(np.multiply, X, X),
            TypeError,
            r"Pass several arguments of f as a tuple: jacobian\(f, \(x, y\)\)",
        ),
        (
            lambda x, y: cr.jacobian(np.sin, X, layout="csr", mode="reverse"),
            ValueError,
            "mode and chunk_size.*layout='csr' computes none",
        ),
        (lambda x, y: cr.jacobian(np.sin, X, memory="1 GB"), TypeError, "number of bytes"),
        (lambda x, y: cr.jacobian(3, x), TypeError, "y is of type int, which has no recorded history"),
        (lambda x, y: cr.jacobian(y, 3), TypeError, "argument 'x' must be a Tensor"),
        (lambda x, y: cr.jacobian(y, x, mode="forward"), ValueError, "needs the function"),
        (lambda x, y: cr.jacobian(y, x, mode="both"), ValueError, "'auto', 'forward' or 'reverse'"),
        (lambda x, y: cr.jacobian(y, x, chunk_size=0), ValueError, "chunk_size must be a positive int"),
    ],
)
def test_refused(computed, call, error, words):
    x, _, y = computed
    with pytest.raises(error, match=words):
        call(x, y)
    assert x.grad is None


def test_a_written_saved_value_is_an_error_in_every_chunk(computed):
    x, _, y = computed
    z = y * y
    with cr.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        cr.jacobian(z, x)
