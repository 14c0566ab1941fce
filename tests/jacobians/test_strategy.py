"""All strategies give the same Jacobian; the selected strategy, and the estimates for the selection."""

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.jacobians.accumulate import Accumulation, steps_of
from chainrule._src.jacobians.assemble import dense_of_terms
from chainrule._src.jacobians.reverse import reverse_dense, reverse_terms, transposed_jacobians
from chainrule._src.jacobians.sketches import ForwardSketches
from chainrule._src.jacobians.strategy import STRATEGIES
from chainrule._src.jacobians.terms import Variable
from chainrule._src.jacobians.trace import JacobianTrace

R = np.random.default_rng(0)
W = R.standard_normal((4, 5))
X = R.standard_normal((3, 4))


def written(x):
    y = np.zeros((3, 4)) + x
    y[1:] = y[:2] * 2
    y[:, 0] += np.sin(x[:, 1])
    return y * y


def layers(w):
    h = X
    for _ in range(3):
        h = np.tanh(h @ w)
    return h


def iterated(x):
    for _ in range(6):
        x = x + 0.1 * (np.roll(x, 1) * np.roll(x, -1) - x) + 0.01 * np.roll(x, 3) ** 2
    return x


FUNCTIONS = {
    "elementwise": (lambda x: np.exp(x) * x, (3, 4)),
    "broadcast": (lambda x: x[0] * x + x[:, :1], (3, 4)),
    "product": (lambda x: np.exp(x @ W), (3, 4)),
    "product with both": (lambda x: x @ x.T, (3, 4)),
    "weights": (layers, (4, 4)),
    "sums": (lambda x: np.sin(x).sum(0) * x[1] + (x**2).mean(), (3, 4)),
    "moves": (lambda x: np.roll(x, 1, 0)[:, ::-1] - 4 * np.pad(x, 1)[1:-1, :4], (3, 4)),
    "gathers": (lambda x: x[[0, 0, 2]] * x[:, [1, 1, 3, 0]], (3, 4)),
    "cumulative": (lambda x: np.cumsum(x, 1) * 2, (3, 4)),
    "joined": (lambda x: np.concatenate([x[0] ** 2, x[:, 1] * x[:, 2]]), (3, 4)),
    "outer": (lambda x: np.multiply.outer(x[:3], x), (4,)),
    "writes": (written, (3, 4)),
    "inverse": (lambda x: np.linalg.inv(x @ x.T + np.eye(3)), (3, 4)),
    "softmax": (lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), (3, 4)),
    "iterated": (iterated, (12,)),
    "scalar": (lambda x: (x**3).sum(), (3, 4)),
    "of a scalar": (lambda x: np.array([1.0, 2.0, 3.0]) * np.exp(x), ()),
    "constant": (lambda x: np.ones(3), (2,)),
    "empty": (lambda x: x[:0] * 2, (3,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_strategy_gives_the_same(name):
    function, shape = FUNCTIONS[name]
    x = R.standard_normal(shape)
    wanted = cr.func.jacrev(function)(x)
    for strategy in (*STRATEGIES, None):
        found = cr.jacobian(function, x, strategy=strategy)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12, err_msg=str(strategy))


@pytest.mark.parametrize("name", ["product", "moves", "gathers", "writes", "iterated", "scalar"])
def test_sparse_results_of_every_strategy(name):
    pytest.importorskip("scipy.sparse")
    function, shape = FUNCTIONS[name]
    x = R.standard_normal(shape)
    wanted = cr.func.jacrev(function)(x).reshape(-1, x.size)
    entries = {}
    for strategy in STRATEGIES:
        found = cr.jacobian(function, x, layout="csr", strategy=strategy)
        np.testing.assert_allclose(found.toarray(), wanted, rtol=1e-10, atol=1e-12)
        entries[strategy] = found.nnz
    assert entries["forward terms"] == entries["reverse terms"] <= entries["vjps"] == entries["jvps"] == wanted.size


def test_several_outputs_and_inputs():
    def function(p, t):
        return [p["a"] * t, (p["b"] @ t).sum()]

    x = ({"a": R.standard_normal(3), "b": R.standard_normal((2, 3))}, R.standard_normal(3))
    wanted = cr.jacobian(function, x, strategy="vjps")
    for strategy in STRATEGIES:
        found = cr.jacobian(function, x, strategy=strategy)
        for row, expected in zip(found, wanted, strict=True):
            for key in "ab":
                np.testing.assert_allclose(row[0][key], expected[0][key])
            np.testing.assert_allclose(row[1], expected[1])


@pytest.mark.parametrize("name", ["product", "product with both", "weights", "cumulative", "elementwise", "inverse"])
def test_transposed_terms_keep_their_axes(name):
    """Products of matrices stay strided blocks."""
    function, shape = FUNCTIONS[name]
    x = R.standard_normal(shape)
    variable = Variable(x.shape, x.dtype)
    found = transposed_jacobians(function, (x,), [variable], 10**6, False)
    ((terms,),) = reverse_terms(found, [variable])
    assert all([term.rows is None and term.affine for term in terms]) or name in ("inverse", "cumulative")
    wanted = cr.func.jacrev(function)(x)
    out_shape = wanted.shape[: wanted.ndim - x.ndim]
    np.testing.assert_allclose(dense_of_terms(terms, out_shape, shape, x.dtype), wanted, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(reverse_dense(found, [variable])[0][0], wanted, rtol=1e-10, atol=1e-12)


# -- the choice --------------------------------------------------------------------------------------------------------


def arrowhead(x):
    return np.concatenate([(x**2).sum()[None], x[1:] * x[0]])


def perceptron(w):
    h = np.ones((16, 24))
    for weights in (w, np.ones((24, 24)), np.ones((24, 24))):
        h = np.tanh(h @ weights)
    return h


CHOICES = {
    "a stencil": (lambda x: np.roll(x, 1) + np.roll(x, -1) - 2 * x + x**3, (500,), "forward terms"),
    "an arrowhead": (arrowhead, (500,), "forward terms"),
    "a layer": (lambda x: np.exp(x @ np.ones((24, 24))), (16, 24), "forward terms"),
    "the first of some layers": (perceptron, (24, 24), "reverse terms"),
    "few outputs": (lambda w: (np.tanh(np.ones((40, 40)) @ w) ** 2).sum(0)[:20], (40, 50), "reverse terms"),
    "a small one": (lambda x: x[1:] * x[:-1], (50,), "vjps"),
    "a small one of few": (lambda x: np.multiply.outer(x, x), (5,), "jvps"),
    "a loss": (lambda w: (perceptron(w) ** 2).sum(), (24, 24), "vjps"),
    "of a scalar": (lambda x: x * np.ones(500), (), "jvps"),
    "softmax of much": (lambda x: np.exp(x) / np.exp(x).sum(), (8000,), "vjps"),
}


@pytest.mark.parametrize("name", CHOICES)
def test_which_strategy_is_chosen(name):
    function, shape, strategy = CHOICES[name]
    plan = cr.jacobian_plan(function, np.ones(shape))
    assert plan.strategy == strategy, plan
    best = min([cost.seconds for cost in plan.costs.values()])
    assert plan.why != "by estimate" or plan.costs[strategy].seconds < 3 * best, plan


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sketches_have_as_many_entries_as_terms(name):
    function, shape = FUNCTIONS[name]
    trace = JacobianTrace(function, R.standard_normal(shape))
    steps = steps_of(trace.results)
    sketches = ForwardSketches(steps, trace.results, trace.variables[0].size, 10**9)
    (result,) = trace.results
    terms = Accumulation([result], 10**9).terms_of(result)
    if all([term.source.terms is None for term in terms]):
        entries = sum([term.cols.size for term in terms])
        most = (3 if name == "writes" else 1.5) * entries  # overwritten entries are counted, too
        assert entries <= sketches.nnz <= most or sketches.nnz == result.primal.size * trace.variables[0].size


def test_a_plan_can_be_read():
    plan = cr.jacobian_plan(arrowhead, np.ones(100), layout="csr")
    assert (plan.shape, plan.nnz) == ((100, 100), 298)
    text = str(plan)
    for part in ("100 × 100", "→ forward terms", "vjps", "pow", "test_strategy.py"):
        assert part in text
    forced = cr.jacobian_plan(arrowhead, np.ones(100), strategy="jvps")
    assert forced.strategy == "jvps" and "as requested" in str(forced)


# -- unsupported cases of a strategy ------------------------------------------------------------------------------------


class Square(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


def test_custom_functions_without_a_jvp():
    x = cr.tensor(R.standard_normal(5))
    found = cr.jacobian(lambda x: Square.apply(x)[1:], x, layout="csr")
    assert found.nnz == 4
    np.testing.assert_allclose(found.toarray(), np.diag(2 * x.numpy())[1:])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x: np.exp(x) / np.exp(x).sum(),
            r"400,000,000 entries\. The dense matrix has 20,000 × 20,000 numbers, 2.98 GiB",
        ),
        (lambda x: np.fft.fft(x).real, "layout='operator'"),
    ],
)
def test_too_many_entries(function, message):
    x = np.ones(20000)
    for strategy in (None, "forward terms", "vjps"):
        with pytest.raises(RuntimeError, match=message if strategy is None else "memory= allows 256 MiB"):
            cr.jacobian(function, x, layout="csr", strategy=strategy)


def test_what_terms_cannot_do_is_computed_as_a_whole_where_it_fits():
    x = R.standard_normal(300)
    function = lambda x: np.cumsum(np.sort(x)) * x
    found = cr.jacobian(function, x, layout="csr", memory=2**20)
    np.testing.assert_allclose(found.toarray(), cr.func.jacrev(function)(x), rtol=1e-10)


def test_strategies_that_there_are_none_of():
    for call in (cr.jacobian, cr.jacobian_plan):
        with pytest.raises(ValueError, match="'forward terms', 'reverse terms', 'vjps', 'jvps'"):
            call(np.sin, np.ones(2), strategy="colours")


# -- large functions, without options -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, cr.tensor], ids=["arrays", "tensors"])
def test_large_functions_are_computed_by_structure_with_the_same_face(make):
    x = make(R.standard_normal(300))
    found = cr.jacobian(lambda x: x[1:] * x[:-1], x)
    wanted = cr.jacobian(lambda x: x[1:] * x[:-1], x, strategy="vjps")
    assert type(found) is type(wanted) and found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def test_large_functions_that_are_recorded():
    x = cr.tensor(R.standard_normal(300), requires_grad=True)
    J = cr.jacobian(lambda x: x**3, x)
    assert J.requires_grad
    np.testing.assert_allclose(cr.autograd.grad(J.sum(), x)[0].numpy(), 6 * x.detach().numpy())
    w = cr.tensor(R.standard_normal(300), requires_grad=True)
    assert not cr.jacobian(lambda x: w * x, x.detach()).requires_grad
    assert type(cr.grad(lambda x: cr.jacobian(lambda x: x**3, x).sum())(np.ones(300))) is np.ndarray


def test_what_the_function_raises():
    def function(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        cr.jacobian(function, np.ones(300))


def test_sparse_results_cannot_be_differentiated_silently():
    for call in (cr.jacobian, lambda f, x, **how: cr.hessian(lambda x: f(x).sum(), x, **how)):
        with pytest.raises(ValueError, match="inside grad"):
            cr.grad(lambda x, call=call: call(lambda x: x**3, x, layout="csr").sum())(np.ones(3))
        assert call(lambda x: x**3, cr.tensor(np.ones(3), requires_grad=True), layout="csr").nnz == 3


def test_a_hessian_takes_what_a_jacobian_takes():
    def f(x):
        return (np.diff(x) ** 3).sum() + np.sin(x[0] * x[3])

    x = np.array([0.3, 1.2, -0.4, 0.8, 2.0])
    want = cr.func.hessian(f)(x)
    for strategy in ("forward terms", "reverse terms", "vjps", "jvps"):
        np.testing.assert_allclose(cr.hessian(f, x, strategy=strategy, check=True), want, rtol=1e-14, atol=1e-15)
    found = cr.hessian(f, x, sparsity=want != 0, layout="csr")
    np.testing.assert_allclose(found.toarray(), want, rtol=1e-14, atol=1e-15)
    with pytest.raises(ValueError, match="strategy is one of"):
        cr.hessian(f, x, strategy="terms")
    with pytest.raises(TypeError, match=r"a tuple: hessian\(f, \(x, y\)\)"):
        cr.hessian(f, x, x)
