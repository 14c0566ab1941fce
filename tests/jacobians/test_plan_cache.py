"""Later calls of ``jacobian`` use a plan only if the function did the same operations, and compute the same bits."""

import contextlib
import gc
import threading
import warnings
import weakref

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.jacobians import plan_cache, term_plans
from chainrule._src.rules.primitive import TABLE
from chainrule.primitive import elementwise
from tests.jacobians import programs
from tests.jacobians.comparing import flattened
from tests.jacobians.test_rows import AFTER, BEFORE, ROWS, cases, program, rules_of, subsets

pytest.importorskip("scipy.sparse")
R = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def early_plans(monkeypatch):
    """Record a plan in the third call, of small functions too."""
    monkeypatch.setattr(plan_cache, "WORK_BEFORE", 2)
    monkeypatch.setattr(plan_cache, "AGAIN", 1)
    plan_cache.clear_plans()


@pytest.fixture
def runs(monkeypatch):
    """Return a list with an item for each call that a plan computed."""
    found = []
    terms = term_plans.TermPlan.terms

    def counted(plan, arrays):
        made = terms(plan, arrays)
        if made is not None:
            found.append(plan)
        return made

    monkeypatch.setattr(term_plans.TermPlan, "terms", counted)
    return found


@contextlib.contextmanager
def without_plans():
    before, plan_cache.WORK_BEFORE = plan_cache.WORK_BEFORE, 1 << 62
    known = dict(plan_cache._FUNCTIONS)
    plan_cache.clear_plans()
    try:
        yield
    finally:
        plan_cache.WORK_BEFORE = before
        plan_cache._FUNCTIONS.clear()
        plan_cache._FUNCTIONS.update(known)


def assert_same(found, wanted):
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def check(f, x, **options):
    """Check a sparse Jacobian against one that is computed without plans."""
    found = cr.jacobian(f, x, layout="csr", **options)
    with without_plans():
        assert_same(found, cr.jacobian(f, x, layout="csr", **options))
    return found


def warm(f, x, calls=3, **options):
    for _ in range(calls):
        check(f, x, **options)


def stencil(x):
    return np.sin(x[1:] * x[:-1]) + x[1:] ** 2


# -- reuse -------------------------------------------------------------------------------------------------------------


def test_the_fourth_call_runs_a_plan(runs):
    for k in range(6):
        check(stencil, R.standard_normal(9))
        assert len(runs) == max(k - 2, 0)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "dense", "structured", "auto"])
def test_layouts(runs, layout):
    def f(x):
        u = x.reshape(20, 20)
        return np.exp(u) * np.roll(u, 1, 0) + u[::-1], (u * u).sum(0)

    def dense(made):
        return [J.toarray() if hasattr(J, "toarray") else J.to_dense() if hasattr(J, "to_dense") else J for J in made]

    for _ in range(5):
        x = R.standard_normal(400)
        found = dense(cr.jacobian(f, x, layout=layout))
        for part, wanted in zip(found, cr.func.jacrev(f)(x), strict=True):
            np.testing.assert_allclose(np.reshape(part, wanted.shape), wanted, rtol=1e-13, atol=1e-13)
    assert len(runs) == 2


def test_several_inputs_side_by_side(runs):
    def f(a, b):
        return np.concatenate([a[[0, 2, 2]] * b, b**2])

    for _ in range(5):
        check(f, (R.standard_normal(4), R.standard_normal(3)), hstack=True)
    assert len(runs) == 2


def test_hessians(runs):
    def rosenbrock(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    for _ in range(6):
        x = R.standard_normal(12)
        found = cr.hessian(rosenbrock, x, layout="csr").toarray()
        np.testing.assert_allclose(found, cr.func.hessian(rosenbrock)(x), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(found, found.T)
    assert runs


def test_tensors(runs):
    w = cr.tensor([1.0, 2.0, 3.0])
    for _ in range(5):
        x = cr.rand(3)
        J = cr.jacobian(lambda x: cr.sin(x * w) + x.roll(1), x, layout="structured")
        assert isinstance(J.to_dense(), cr.Tensor)
        np.testing.assert_allclose(J.to_dense(), cr.func.jacrev(lambda x: cr.sin(x * w) + x.roll(1))(x), rtol=1e-6)
    assert len(runs) == 2


def test_complex_numbers(runs):
    for _ in range(5):
        check(lambda x: np.exp(x[1:] * 1j) * x[:-1], R.standard_normal(5) + 1j * R.standard_normal(5))
    assert len(runs) == 2


def test_results_are_independent(runs):
    for _ in range(4):
        first = cr.jacobian(stencil, np.arange(5.0), layout="csr")
        wanted = first.copy()
        first.data[:] = 7.0
        first.indices[:] = 0
        first.indptr[:] = 0
        structured = cr.jacobian(stencil, np.arange(5.0), layout="structured")
        for term in structured.terms:
            if isinstance(term.vals, np.ndarray):
                term.vals[...] = 7.0
        assert_same(cr.jacobian(stencil, np.arange(5.0), layout="csr"), wanted)
    assert runs


def test_a_jacobian_of_a_gradient_and_a_hessian_have_their_own_plans(runs):
    def f(x):
        return (x[:3] @ x[1:]) ** 2 + np.sin(x.sum())

    for _ in range(6):
        x = R.standard_normal(4)
        wanted = cr.func.hessian(f)(x)
        for found in (
            cr.hessian(f, x, layout="structured").to_scipy().toarray(),
            cr.jacobian(cr.grad(f), x, layout="structured").to_scipy().toarray(),
            cr.hessian(f, x, layout="csr").toarray(),
            cr.jacobian(cr.grad(f), x, layout="csr").toarray(),
            cr.hessian(f, x, layout="csr", hstack=True).toarray(),
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert len(set(map(id, runs))) == 2


METHODS = {
    "solve": lambda J, b: J.solve(b),
    "product": lambda J, b: J @ b,
    "transposed product": lambda J, b: b @ J,
    "transpose": lambda J, b: J.T.to_dense(),
    "normal equations": lambda J, b: (J.T @ J).to_dense(),
    "sum": lambda J, b: (J + J).to_dense(),
    "diagonal": lambda J, b: J.diagonal(),
    "bandwidth": lambda J, b: np.array(J.bandwidth),
    "dense": lambda J, b: J.to_dense(),
    "text": lambda J, b: np.array(J.spy_text()),
    "name": lambda J, b: np.array(repr(J)),
    **{
        format: lambda J, b, format=format: J.to_scipy(format).toarray()
        for format in ("csr", "csc", "coo", "bsr", "dia", "lil")
    },
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_structured_jacobians(runs, name):
    """The index arrays of a plan's Jacobians are read-only, and shared."""

    def f(x):
        y = 3 * x + 0.1 * np.sin(np.roll(x, 2)) * x
        return np.concatenate([y[:30], x[30:] * 2 + x[:10] ** 2])

    for _ in range(6):
        x, b = R.standard_normal(40), R.standard_normal(40)
        found = METHODS[name](cr.jacobian(f, x, layout="structured"), b)
        with without_plans():
            np.testing.assert_array_equal(found, METHODS[name](cr.jacobian(f, x, layout="structured"), b))
    assert len(runs) == 3


# -- other operations --------------------------------------------------------------------------------------------------


def test_branches(runs):
    def f(x):
        if x[0] > 0:
            return np.sin(x[1:]) * x[:-1]
        return np.cos(x[1:]) * x[1:] + 0 * x[:-1]

    for _ in range(5):
        for sign in (1, -1):
            check(f, sign * np.linspace(0.1, 1, 5))
    assert len(set(map(id, runs))) == 2 and len(runs) == 4


def test_indices_from_data(runs):
    def f(x):
        return x[np.argsort(x)] * x

    orders = [np.arange(6.0), np.arange(6.0)[::-1], R.permutation(6).astype(float)]
    for _ in range(5):
        for x in orders:
            np.testing.assert_allclose(check(f, x).toarray(), cr.func.jacfwd(f)(x))
    assert len(set(map(id, runs))) == 3
    runs.clear()
    check(f, R.permutation(6).astype(float) * 2 + 100)


@pytest.mark.parametrize("kind", ["where", "boolean", "take", "sort", "maximum", "nonzero"])
def test_values_that_select(kind):
    functions = {
        "where": lambda x: np.where(x > 0, x * x, x[::-1]),
        "boolean": lambda x: x[x > 0] ** 2,
        "take": lambda x: np.take(x, [np.argmax(x), np.argmin(x)]) * x[0],
        "sort": lambda x: np.sort(x) * x,
        "maximum": lambda x: np.maximum(x, x[::-1]) * x.max(),
        "nonzero": lambda x: x[np.nonzero(x < 0.2)[0][:2]] * 3,
    }
    points = [R.standard_normal(6) for _ in range(4)]
    points += [p[[1, 0, *range(2, 6)]] for p in points]
    for _ in range(4):
        for x in points:
            np.testing.assert_allclose(
                check(functions[kind], x).toarray(), cr.func.jacrev(functions[kind])(x), rtol=1e-14
            )


def test_a_captured_index_that_is_written(runs):
    at = np.array([0, 1, 2, 3])

    def f(x):
        return x[at] * x[:4]

    x = R.standard_normal(6)
    warm(f, x, 4)
    at[:] = [5, 4, 3, 3]
    assert check(f, x)[0, 5] != 0
    warm(f, x, 4)
    at[:] = [0, 1, 2, 3]
    assert check(f, x)[0, 5] == 0
    assert len(runs) == 4


def test_an_equal_index_after_the_recorded_one_was_written(runs):
    """The plan keeps its own copy of an index array that the user may write into."""
    indices = [np.array([3, 0, 1])]

    def f(x):
        return np.sin(x[indices[0]]) * x[:3]

    x = R.standard_normal(5)
    warm(f, x, 4)
    old = indices[0]
    indices[0] = old.copy()
    old[:] = 4
    check(f, x)
    assert len(runs) == 2


def test_a_mask_that_is_an_operand_is_a_number_or_is_compared():
    masks = [np.array([True, False, True, False]), np.array([False, False, True, True])]
    current = [masks[0].copy()]

    def f(x):
        return np.where(current[0], x * 2, x[::-1] ** 2)

    for turn in range(12):
        current[0][:] = masks[turn % 2]
        x = R.standard_normal(4)
        np.testing.assert_allclose(check(f, x).toarray(), cr.func.jacrev(f)(x))


def test_closures_of_one_code(runs):
    def make(power, scale, shift):
        return lambda x: scale * x**power + np.roll(x, shift)

    x = R.standard_normal(5)
    for _ in range(5):
        for given in ((2, 1.0, 1), (3, 1.0, 1), (2, 1.5, 1), (2, 1.0, 2)):
            found = check(make(*given), x).toarray()
            power, scale, shift = given
            wanted = np.diag(scale * power * x ** (power - 1)) + np.roll(np.eye(5), shift, 0)
            np.testing.assert_allclose(found, wanted, rtol=1e-13)
    assert len(set(map(id, runs))) == 4


def test_captured_numbers_change(runs):
    weights = R.standard_normal(4)
    for _ in range(5):
        weights[:] = R.standard_normal(4)
        check(lambda x: weights * x[::-1] * x, R.standard_normal(4))
    assert len(runs) == 2


GLOBAL = {"scale": 2.0, "function": np.sin}


def test_changed_globals(runs):
    def f(x):
        return GLOBAL["function"](x) * GLOBAL["scale"]

    x = R.standard_normal(4)
    warm(f, x, 4)
    GLOBAL["scale"] = 3.0
    np.testing.assert_allclose(check(f, x).toarray(), np.diag(3 * np.cos(x)))
    GLOBAL["function"] = np.exp
    np.testing.assert_allclose(check(f, x).toarray(), np.diag(3 * np.exp(x)))
    GLOBAL.update(scale=2.0, function=np.sin)
    check(f, x)
    assert len(runs) == 2


def test_zeros_of_both_signs_are_different_constants():
    for zero in (0.0, -0.0, 0.0, -0.0) * 3:
        found = check(lambda x, zero=zero: np.copysign(1.0, zero) * x[1:] * x[:-1] + zero, np.array([1.0, 2.0, 3.0]))
        assert found[0, 0] == np.copysign(2.0, zero)


def test_dtypes_shapes_and_layouts_in_memory(runs):
    x = R.standard_normal((4, 6))
    points = [
        x,
        x.astype(np.float32),
        x.T.copy(),
        np.asfortranarray(x),
        x[::-1],
        x[:, ::2],
        np.broadcast_to(x[:1], (4, 6)),
    ]
    for _ in range(5):
        for point in points:
            check(lambda x: np.exp(x)[1:] * x[:-1] + x.sum(0), point)
    assert runs


def test_in_place_writes():
    def f(x):
        y = x * 2
        y[1:3] = np.sin(y[3:5])
        y[0] += y[5] * y[1]
        return y

    def written_constant(x):
        c = np.arange(6.0)
        y = x * c
        c[:] = 100.0
        return y + c

    for _ in range(5):
        check(f, R.standard_normal(6))
        check(written_constant, R.standard_normal(6))


def test_a_constant_that_is_written_after_its_use(runs):
    """Small constants are copied, and the versions of large ones are checked."""
    large = cr.ones(10_000, 3)
    writes = [False]

    def f(x):
        y = large * x
        if writes[0]:
            large.mul_(2.0)
        return y[0] * y[1]

    x = cr.rand(3)
    for _ in range(4):
        cr.jacobian(f, x, layout="csr")
    for strategy in (None, "forward terms"):
        writes[0] = True
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            cr.jacobian(f, x, layout="csr", strategy=strategy)
        writes[0] = False
    found = cr.jacobian(f, x, layout="csr").toarray()
    np.testing.assert_allclose(found, cr.func.jacrev(f)(x), rtol=1e-6)
    assert len(runs) == 2


# -- state that is not a part of the signature -------------------------------------------------------------------------


def test_primitives_of_the_user_have_no_plans(runs):
    factor = [1.0]

    @elementwise(d={"x": lambda x: factor[0] + 0 * x})
    def scaled_by_state(x):
        return x * factor[0]

    for k in range(6):
        factor[0] = k + 1.0
        np.testing.assert_allclose(
            cr.jacobian(lambda x: scaled_by_state(x), np.ones(3), layout="csr").toarray(), (k + 1) * np.eye(3)
        )
    assert not runs


def test_custom_functions_have_no_plans(runs):
    factor = [1.0]

    class Scaled(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * factor[0]

        @staticmethod
        def backward(ctx, g):
            return g * factor[0]

    for k in range(6):
        factor[0] = k + 1.0
        J = cr.jacobian(lambda x: Scaled.apply(x), cr.ones(3), layout="csr")
        np.testing.assert_allclose(J.toarray(), (k + 1) * np.eye(3))
    assert not runs


def test_random_numbers(runs):
    for _ in range(6):
        x = cr.ones(50)
        seeds = cr.get_rng_state()
        J = cr.jacobian(lambda x: cr.nn.functional.dropout(x * x, 0.5), x, layout="csr")
        cr.set_rng_state(seeds)
        wanted = cr.nn.functional.dropout(x * x, 0.5) * 2
        np.testing.assert_allclose(J.toarray(), np.diag(np.asarray(wanted)))
        assert set(np.unique(J.diagonal())) == {0.0, 4.0}


def test_inside_other_transformations(runs):
    def f(x):
        return np.sin(x[1:]) * x[:-1]

    x = R.standard_normal(5)
    warm(f, x, 4)
    before = len(runs)

    def total(x):
        return (cr.jacobian(f, x, layout="structured").to_dense() ** 2).sum()

    found = cr.grad(total)(x)
    steps = 1e-6 * np.eye(5)
    np.testing.assert_allclose(found, [(total(x + h) - total(x - h)) / 2e-6 for h in steps], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(cr.compile(lambda x: cr.jacobian(f, x))(x), cr.func.jacrev(f)(x))
    w = cr.tensor(x, requires_grad=True)
    J = cr.jacobian(lambda v: np.sin(v[1:]) * v[:-1], w, create_graph=True, layout="structured")
    assert J.to_dense().requires_grad
    assert len(runs) >= before


def test_values_on_the_tape_have_no_plans(runs):
    w = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(5):
        J = cr.jacobian(lambda x: w * x * x, cr.ones(3), layout="structured", create_graph=True).to_dense()
        (g,) = cr.autograd.grad(J.sum(), w)
        np.testing.assert_allclose(g, [2.0, 2.0, 2.0])
    assert not runs


def test_warnings_are_those_of_a_first_call():
    def f(x):
        return np.sqrt(x) * x[::-1]

    for _ in range(4):
        check(f, np.array([1.0, 2.0]))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        found = cr.jacobian(f, np.array([0.0, 2.0]), layout="csr")
    assert np.isinf(found.toarray()).any()
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        cr.jacobian(f, np.array([0.0, 2.0]), layout="csr")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        check(f, np.array([0.0, 2.0]))


def test_exceptions(runs, monkeypatch):
    fails = [False]

    def f(x):
        y = np.sin(x)
        if fails[0]:
            raise KeyError("half-way")
        return y * x

    x = R.standard_normal(4)
    warm(f, x, 4)
    fails[0] = True
    with pytest.raises(KeyError):
        cr.jacobian(f, x, layout="csr")
    fails[0] = False
    check(f, x)
    assert len(runs) == 2

    def interrupted(*args):
        raise KeyboardInterrupt

    def g(x):
        return np.cos(x) * x

    warm(g, x, 2)
    with monkeypatch.context() as patch:
        patch.setattr(term_plans, "TermPlan", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cr.jacobian(g, x, layout="csr")
    warm(g, x, 2)
    assert len(runs) == 3


def test_what_cannot_be_recorded_is_propagated_each_time(monkeypatch):
    calls = []

    def refused(*args):
        calls.append(1)
        raise term_plans.Unrecordable("no")

    monkeypatch.setattr(term_plans, "record_plan", refused)
    warm(stencil, R.standard_normal(5), 6)
    assert len(calls) == 1


# -- memory and threads ------------------------------------------------------------------------------------------------


def test_plans_are_freed_with_their_function():
    names = {"np": np}
    exec("def f(x):\n    return np.sin(x[1:]) * x[:-1]", names)
    f = names.pop("f")
    warm(f, R.standard_normal(5), 4)
    (known,) = [known for code, known in plan_cache._FUNCTIONS.items() if code is f.__code__]
    (plan,) = map(weakref.ref, known.plans.values())
    assert plan() is not None
    del f, names, known
    gc.collect()
    assert plan() is None


def test_plans_are_freed_with_the_function_that_contains_the_differentiated_one():
    names = {"np": np, "cr": cr}
    exec("def run(x):\n    return cr.jacobian(lambda x: np.sin(x[1:]) * x[:-1], x, layout='csr')", names)
    for _ in range(4):
        names["run"](R.standard_normal(5))
    (plan,) = [weakref.ref(plan) for known in plan_cache._FUNCTIONS.values() for plan in known.plans.values()]
    del names
    gc.collect()
    assert plan() is None


def test_the_number_of_plans_is_bounded(monkeypatch):
    def f(x):
        return np.sin(x) * x[::-1]

    for n in range(2, 4 + plan_cache.MOST_PLANS):
        warm(f, R.standard_normal(n), 3)
    known = plan_cache._FUNCTIONS[f.__code__]
    assert len(known.plans) == plan_cache.MOST_PLANS and len(known.works) <= plan_cache.MOST_COUNTED
    monkeypatch.setattr(plan_cache, "MOST_BYTES", 60_000)
    for n in range(22, 25):
        warm(f, R.standard_normal(n), 3)
    assert sum(plan.nbytes for plan in known.plans.values() if plan) <= 60_000
    monkeypatch.setattr(plan_cache, "MOST_BYTES", 100)
    warm(f, R.standard_normal(30), 6)


def test_signatures_that_take_turns_are_seldom_recorded(monkeypatch):
    monkeypatch.setattr(plan_cache, "AGAIN", 8)
    recorded = []
    record = term_plans.record_plan
    monkeypatch.setattr(term_plans, "record_plan", lambda *args: recorded.append(1) or record(*args))
    for _ in range(12):
        for n in range(2, 2 + 2 * plan_cache.MOST_PLANS):
            cr.jacobian(lambda x: np.sin(x) * x[::-1], np.ones(n), layout="csr")
    assert len(recorded) == 2 * plan_cache.MOST_PLANS


def test_threads(runs):
    def f(x, mode):
        return np.sin(x[1:]) * x[:-1] if mode else np.exp(x[:-1]) * x[1:]

    found, failures = {}, []
    points = [R.standard_normal(300) for _ in range(8)]
    with without_plans():
        wanted = {
            (k, mode): cr.jacobian(lambda x, mode=mode: f(x, mode), x, layout="csr")
            for k, x in enumerate(points)
            for mode in (0, 1)
        }
    barrier = threading.Barrier(4)

    def work(number):
        try:
            barrier.wait()
            for turn in range(30):
                k, mode = (turn + number) % 8, (turn * (number + 1)) % 2
                found[number, turn] = k, mode, cr.jacobian(lambda x, mode=mode: f(x, mode), points[k], layout="csr")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for k, mode, J in found.values():
        assert_same(J, wanted[k, mode])
    assert runs


# -- all primitives, and random programs -------------------------------------------------------------------------------


def compared(f, variables, given=cr.tensor):
    """Check the bits of Jacobians that a plan computes at other points."""
    plan_cache._FUNCTIONS.clear()
    known = lambda *xs: flattened(f(*xs))
    for seed in (0, 0, 1):
        cr.jacobian(known, tuple(map(given, variables(seed))), layout="csr")
    for seed in (2, 1):
        point = tuple(map(given, variables(seed)))
        found = cr.jacobian(known, point, layout="csr")
        with without_plans():
            for part, wanted in zip(found, cr.jacobian(known, point, layout="csr"), strict=True):
                assert_same(part, wanted)


def test_all_primitives(runs):
    used = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for count, name in enumerate(ROWS):
            prim = TABLE[name]
            runs.clear()
            for sample in cases(prim, count)[:2]:
                operands = sample.draw()
                for wanted in list(subsets(rules_of(prim, sample)))[-1:]:
                    f, variables = program(
                        prim, sample, operands, wanted, BEFORE[count % len(BEFORE)], AFTER[count % len(AFTER)]
                    )
                    try:
                        compared(f, variables)
                    except Exception as error:
                        error.add_note(f"{name} {sample}")
                        raise
            used += bool(runs)
    assert used > 0.8 * len(ROWS)


@pytest.mark.parametrize("maker", [programs.torch_program, programs.numpy_program])
def test_random_programs(runs, maker):
    used = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in range(500, 540):
            made = maker(seed)

            def variables(k, made=made):
                return [x + 0.003 * k for x in made.xs]

            given = cr.tensor if maker is programs.torch_program else np.array
            try:
                with without_plans():
                    cr.jacobian(
                        lambda *xs, made=made: flattened(made(*xs)), tuple(map(given, variables(2))), layout="csr"
                    )
            except Exception:
                continue
            runs.clear()
            compared(made, variables, given)
            used += bool(runs)
    assert used > 10
