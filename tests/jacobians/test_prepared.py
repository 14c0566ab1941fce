"""Prepared Jacobians: the same numbers as newly computed ones, and changes that a call rejects."""

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.jacobians.compute_terms import terms_to_repeat
from chainrule._src.jacobians.strategy import FORWARD, JVPS, VJPS
from chainrule._src.jacobians.trace import JacobianTrace
from chainrule._src.native import KERNELS

pytest.importorskip("scipy.sparse")
R = np.random.default_rng(0)
W = R.standard_normal((4, 5))
AT = np.array([3, 0, 3, 2])


def stencil(x):
    u, v = x[:8].reshape(4, 2), x[8:].reshape(4, 2)
    du = u * u * v + np.roll(u, 1, 0) + np.roll(u, -1, 0) - 2 * u
    return np.concatenate([du.ravel(), (3.4 * u - u * u * v).ravel()])


def residuals(x):
    """Gathers with repeats, and entries that are summed at the same position."""
    return np.sin(x[AT]) * x[1:5] + x[AT[::-1]] * x[AT]


FUNCTIONS = {
    "stencil": (stencil, (16,)),
    "gathers": (residuals, (6,)),
    "products": (lambda x: np.exp(x @ W), (3, 4)),
    "constant": (lambda x: x.reshape(-1)[1:] - 2 * x.reshape(-1)[:-1], (2, 3)),
    "sums": (lambda x: x * x.sum(0) + (x**2).mean(1, keepdims=True), (3, 2)),
    "choices": (lambda x: np.where(x > 0, x * x, 0) + np.maximum(x, 0.1) + abs(x[::-1]), (5,)),
    "scalar": (lambda x: (x[1:] * x[:-1]).sum(), (5,)),
    "writes": (lambda x: _written(x), (6,)),
    "nothing": (lambda x: np.ones(3) + 0 * x.sum(), (2,)),
    "0-d": (lambda x: np.array([1.0, 2.0]) * x**2, ()),
    "empty": (lambda x: x[:0] * 2, (3,)),
    "matrices": (lambda x: np.linalg.inv(x + 4 * np.eye(3)), (2, 3, 3)),
}


def _written(x):
    y = x * 2
    y[1:3] = np.sin(y[3:5])
    y[0] += y[5] * y[1]
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_numbers_as_computed_anew(name):
    function, shape = FUNCTIONS[name]
    for layout in ("csr", "dense"):
        prepared = cr.prepare_jacobian(function, R.standard_normal(shape), layout)
        for _ in range(4):
            x = R.standard_normal(shape)
            found, wanted = prepared(x), cr.func.jacrev(function)(x)
            dense = found.toarray().reshape(wanted.shape) if layout == "csr" else found
            np.testing.assert_allclose(dense, wanted, rtol=1e-12, atol=1e-14)
        if layout == "csr":
            anew = cr.jacobian(function, x, layout="csr")
            assert np.array_equal(found.indptr, anew.indptr) and np.array_equal(found.indices, anew.indices)
            assert np.array_equal(found.data, anew.data)
        assert prepared.patterns == 1


@pytest.mark.skipif("gather8" not in KERNELS, reason="the extension is not built")
@pytest.mark.parametrize("name", ["stencil", "products", "constant"])
def test_a_call_is_one_call_of_native_code(name):
    function, shape = FUNCTIONS[name]
    prepared = cr.prepare_jacobian(function, R.standard_normal(shape))
    assert prepared.plan.executor == "native"


def test_constant_entries_are_copied():
    prepared = cr.prepare_jacobian(lambda x: np.diff(x) * 2, np.ones(5))
    assert {step.name for step in prepared.plan.steps} == {"copy"}


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "dense"])
def test_layouts(layout):
    x = R.standard_normal(16)
    found = cr.prepare_jacobian(stencil, x, layout)(x)
    assert getattr(found, "format", "dense") == layout
    dense = found if layout == "dense" else found.toarray()
    np.testing.assert_allclose(dense, cr.func.jacrev(stencil)(x), rtol=1e-12)


def test_structured_results():
    x = R.standard_normal((3, 4))
    prepared = cr.prepare_jacobian(lambda x: np.exp(x @ W), x, "structured")
    for _ in range(2):
        x = x + 1
        found, wanted = prepared(x), cr.func.jacrev(lambda x: np.exp(x @ W))(x)
        assert found.shape == wanted.shape and found.nnz == 60
        np.testing.assert_allclose(found.to_dense(), wanted, rtol=1e-12)
        np.testing.assert_allclose(found @ np.ones((3, 4)), wanted.sum((2, 3)), rtol=1e-12)


def test_trees_of_inputs_and_outputs():
    def function(p, t):
        return {"a": p["u"] * t, "b": [np.diff(p["v"]) ** 2]}

    x = ({"u": R.standard_normal(3), "v": R.standard_normal(4)}, R.standard_normal(3))
    prepared = cr.prepare_jacobian(function, x)
    J = prepared(x)
    assert J["a"][0]["u"].toarray().tolist() == np.diag(x[1]).tolist()
    assert J["b"][0][0]["v"].nnz == 6 and J["b"][0][1].nnz == 0
    whole = cr.prepare_jacobian(function, x, hstack=True)
    assert whole(x).shape == whole.sparsity.shape == (6, 10) and whole.nnz == 12
    rows = [np.hstack([block.toarray() for block in (a["u"], a["v"], b)]) for a, b in (J["a"], J["b"][0])]
    assert np.array_equal(whole(x).toarray(), np.vstack(rows))
    with pytest.raises(ValueError, match="structure"):
        prepared(x[0])


def test_functions_of_tensors_get_tensors():
    x = cr.tensor(R.standard_normal(4))
    prepared = cr.prepare_jacobian(lambda x: x.sin() * x.detach(), x, "dense")
    for _ in range(3):
        found = prepared(x)
        assert type(found) is cr.Tensor and not found.requires_grad
        assert np.array_equal(found.numpy(), np.diag(np.cos(x.detach()) * x.detach()).numpy())
    assert cr.prepare_jacobian(lambda x: x.sin(), x)(x).nnz == 4


def test_parameters_off_the_tape_are_read_where_they_lie():
    w = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="a prepared Jacobian would treat it as a constant"):
        cr.prepare_jacobian(lambda x: w * x**2, np.ones(3))
    many = cr.ones(70, dtype=cr.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="a prepared Jacobian would treat it as a constant"):
        cr.prepare_jacobian(lambda x: many * layers(x), np.ones(500))
    v = w.detach()
    prepared = cr.prepare_jacobian(lambda x: v * x**2, np.ones(3))
    for _ in range(2):
        assert prepared(np.array([1.0, 2.0, 3.0])).diagonal().tolist() == [2, 8, 18]
    with cr.no_grad():
        w += 1
    assert prepared(np.ones(3)).diagonal().tolist() == [4, 6, 8]


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (np.ones(5), r"float64 of shape \(5,\), and it was prepared for float64 of shape \(4,\)"),
        (np.ones(4, np.float32), r"float32 of shape \(4,\), and it was prepared for float64"),
        ([np.ones(4)], "structure"),
    ],
)
def test_other_points(point, message):
    with pytest.raises(ValueError, match=message):
        cr.prepare_jacobian(np.sin, np.ones(4))(point)


def test_nothing_is_recorded_silently():
    x = np.ones(3)
    prepared = cr.prepare_jacobian(lambda x: x**2, x, "dense")
    for call in (
        lambda: cr.grad(lambda x: prepared(x).sum())(x),
        lambda: cr.jvp(prepared, (x,), (x,)),
        lambda: cr.vmap(prepared)(np.ones((2, 3))),
        lambda: prepared(cr.tensor(x, requires_grad=True)),
        lambda: cr.jacobian(lambda x: prepared(x).sum(0), x, strategy="forward terms"),
    ):
        with pytest.raises(RuntimeError, match=r"detach\(\), or call chainrule.jacobian|stands for all|derivative"):
            call()
    with cr.no_grad():
        assert prepared(cr.tensor(x, requires_grad=True)).diagonal().tolist() == [2, 2, 2]
    with pytest.warns(UserWarning, match="not recorded, or runs|runs eagerly"):
        compiled = cr.compile(lambda x: prepared(x))
        assert [compiled(k * x).diagonal().tolist() for k in (1, 2)] == [[2, 2, 2], [4, 4, 4]]


def test_points_may_lie_anyhow_in_memory():
    prepared = cr.prepare_jacobian(lambda x: x * x.T, np.ones((3, 3)), "dense")
    x = R.standard_normal((6, 6))[::2, ::2].T
    np.testing.assert_allclose(prepared(x), cr.func.jacrev(lambda x: x * x.T)(x.copy()))
    assert len(prepared._compiled.recordings) == 1


def sorted_differences(x):
    return np.diff(np.sort(x)) ** 2


def test_another_pattern_is_an_error_or_is_recorded():
    x, y = np.array([1.0, 2.0, 4.0]), np.array([4.0, 1.0, 2.0])
    prepared = cr.prepare_jacobian(sorted_differences, x)
    assert prepared(x + 1).nnz == 4
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"reads values.*on_change='record'"):
            prepared(y)
    assert prepared(x).nnz == 4
    prepared = cr.prepare_jacobian(sorted_differences, x, on_change="record")
    for point in (x, y, x + 1, y + 1, y):
        wanted = cr.func.jacrev(sorted_differences)(point)
        np.testing.assert_allclose(prepared(point).toarray(), wanted)
    assert prepared.patterns == 2


def test_branches_that_lead_to_the_same_pattern_are_no_change():
    def function(x):
        return x**2 if x.sum() > 0 else x**3

    prepared = cr.prepare_jacobian(function, np.ones(3))
    for x in (np.ones(3), -np.ones(3), np.full(3, 2.0), np.full(3, -2.0)):
        assert prepared(x).diagonal().tolist() == (2 * x if x[0] > 0 else 3 * x**2).tolist()
    assert prepared.patterns == 1


def test_arrays_that_the_function_refers_to_may_change():
    scale, at = np.array([2.0, 3.0, 4.0]), np.array([0, 1, 2])
    prepared = cr.prepare_jacobian(lambda x: (scale * 2) * x[at] ** 2, np.ones(3), on_change="record")
    x = np.array([1.0, 2.0, 3.0])
    assert prepared(x).toarray().tolist() == np.diag([8, 24, 48]).tolist()
    scale[0] = 1
    assert prepared(x).toarray().tolist() == np.diag([4, 24, 48]).tolist()
    at[:2] = 1, 0
    assert prepared(x).toarray().tolist() == [[0, 8, 0], [12, 0, 0], [0, 0, 48]]


def test_every_element_of_an_array_of_positions_counts():
    n = 3000
    at = np.arange(n)
    x = np.arange(1.0, n + 1)
    prepared = cr.prepare_jacobian(lambda x: x[at] ** 2, x, on_change="record")
    for k in range(5, n - 1, 217):
        at[k], at[k + 1] = at[k + 1], at[k]
        found = prepared(x)
        assert np.array_equal(found.indices, at) and np.array_equal(found.data, 2 * x[at])
    turned = cr.prepare_jacobian(lambda x: x[at[::-1] - 0] ** 2, x, on_change="record")  # with its own arrays
    at[7], at[8] = at[8], at[7]
    assert np.array_equal(turned(x).indices, at[::-1])
    strict = cr.prepare_jacobian(lambda x: x[at] ** 2, x)
    at[7], at[8] = at[8], at[7]
    with pytest.raises(RuntimeError, match="on_change='record'"):
        strict(x)


def test_results_share_indices_and_nothing_else():
    prepared = cr.prepare_jacobian(stencil, R.standard_normal(16))
    x = R.standard_normal(16)
    first, second = prepared(x), prepared(x)
    first.data[:] = 0
    assert second.data.any() and np.array_equal(second.data, prepared(x).data)
    assert first.indices is second.indices
    with pytest.raises(ValueError):
        first.indices[0] = 1
    own = first.copy()
    own.indices[0] = 1


def test_what_scipy_does_with_it():
    from scipy.optimize import least_squares
    from scipy.sparse.linalg import splu, spsolve

    def function(x):
        return np.concatenate([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]])

    x = np.full(20, 0.5)
    prepared = cr.prepare_jacobian(function, x)
    assert prepared.sparsity.nnz == prepared.nnz == 57
    by_pattern = least_squares(function, x, jac_sparsity=prepared.sparsity)
    by_jacobian = least_squares(function, x, jac=prepared)
    assert by_pattern.cost < 1e-12 and by_jacobian.cost < 1e-12
    square = cr.prepare_jacobian(stencil, np.ones(16))(R.standard_normal(16))
    b = R.standard_normal(16)
    np.testing.assert_allclose(square @ spsolve(square, b), b, atol=1e-9)
    np.testing.assert_allclose(square @ splu(square.tocsc()).solve(b), b, atol=1e-9)


def test_bad_options():
    with pytest.raises(ValueError, match="'csr', 'csc', 'coo', 'dense', 'structured'"):
        cr.prepare_jacobian(np.sin, np.ones(2), "ell")
    with pytest.raises(ValueError, match="'error' or 'record'"):
        cr.prepare_jacobian(np.sin, np.ones(2), on_change="ignore")


BASE, SHARES = R.standard_normal((6, 4, 500)), R.uniform(size=(6, 1, 500))
LAYERS = [R.standard_normal(shape) / 10 for shape in ((90, 500), (90, 90), (90, 90), (90, 90), (70, 90))]


def posed(x, shift):
    """A chain of six small matrices that all move many points."""
    m = np.sin(x.reshape(6, 2, 2))
    chain = [np.concatenate([np.concatenate([m, np.cos(m)], 1)] * 2, 2)[k] for k in range(6)]
    for k in range(1, 6):
        chain[k] = chain[k - 1] @ chain[k]
    return np.sum((np.stack(chain) @ BASE) * SHARES, 0) * (2.0 if x[0] > -9 else x[1]) + shift[:, None]


def layers(x):
    for W in LAYERS:
        x = np.tanh(W @ x)
    return x


WAYS = {
    "columns": (posed, ((24,), (4,)), JVPS),
    "rows": (layers, ((500,),), VJPS),
    "terms": (lambda x: np.exp(x @ W), ((60, 4),), FORWARD),
}


@pytest.mark.parametrize("name", WAYS)
def test_what_is_repeated_has_the_same_numbers_and_pattern(name):
    function, shapes, way = WAYS[name]
    points = [tuple([R.standard_normal(shape) for shape in shapes]) for _ in range(3)]
    trace = JacobianTrace(function, points[0], False)
    terms_to_repeat(trace, api="prepare_jacobian", memory=1 << 28)
    assert trace.strategy == way
    prepared = cr.prepare_jacobian(function, points[0], hstack=True)
    blocks = cr.prepare_jacobian(function, points[0], "dense")
    for x in points:
        found, anew = prepared(x), cr.jacobian(function, x, layout="csr", hstack=True)
        assert np.array_equal(found.indptr, anew.indptr) and np.array_equal(found.indices, anew.indices)
        assert found.dtype == anew.dtype
        np.testing.assert_allclose(found.data, anew.data, rtol=1e-10, atol=1e-12)
        for block, wanted in zip(blocks(x), cr.jacobian(function, x), strict=True):
            np.testing.assert_allclose(block, wanted, rtol=1e-10, atol=1e-12)
    assert prepared.patterns == 1 and len(prepared._compiled.recordings) == 1


def test_columns_of_another_branch():
    x, shift = R.standard_normal(24), R.standard_normal(4)
    away = np.concatenate([[-10.0], x[1:]])
    prepared = cr.prepare_jacobian(posed, (x, shift), hstack=True, on_change="record")
    for point in ((x, shift), (away, shift), (x, shift)):
        wanted = cr.jacobian(posed, point, layout="csr", hstack=True)
        assert np.array_equal(prepared(point).indices, wanted.indices)
        np.testing.assert_allclose(prepared(point).data, wanted.data, rtol=1e-10, atol=1e-12)
    assert len(prepared._compiled.recordings) == 2


def test_long_programs_of_few_inputs_are_recorded():
    def orbit(x, w=0.01):
        for _ in range(110):
            x = x + w * (x * x.mean())
        return x

    prepared = cr.prepare_jacobian(orbit, np.ones(3))
    for _ in range(3):
        x = R.standard_normal(3)
        np.testing.assert_allclose(prepared(x).toarray(), cr.func.jacrev(orbit)(x), rtol=1e-12)
    assert len(prepared._compiled.recordings) == 1
    w = cr.full((3,), 0.01, dtype=cr.float64, requires_grad=True)
    for of_csr in (cr.prepare_jacobian, lambda *args: cr.jacobian(*args, layout="csr")):
        with pytest.raises(RuntimeError, match="would treat it as a constant"):
            of_csr(lambda x: orbit(x, w), np.ones(3))


def test_what_it_says_of_itself():
    prepared = cr.prepare_jacobian(stencil, np.ones(16))
    assert repr(prepared) == "<prepared Jacobian of 16 × 16: 48 entries>"
    assert "take" in str(prepared.plan)
