"""``chainrule.compile`` preserves the results of all kinds of programs."""

from __future__ import annotations

import asyncio
import collections
import copy
import math
import pickle
import random
import warnings

import numpy as np
import pytest

import chainrule as cr
import chainrule.nn.functional as F
from chainrule._src.interpreters.same_bits import same_bits
from chainrule.tree import tree_leaves

T = cr.tensor
rng = np.random.default_rng(0)
x = rng.standard_normal(6)
X = rng.standard_normal((4, 6))
f4 = x.astype(np.float32)


def assert_same(got, wanted):
    """Check that types, dtypes and bits are equal."""
    got, wanted = tree_leaves(got), tree_leaves(wanted)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert type(a) is type(b)
        a, b = (np.asarray(y.detach() if isinstance(y, cr.Tensor) else y) for y in (a, b))
        assert a.dtype == b.dtype and a.shape == b.shape
        assert same_bits(a, b)


def check(function, *calls, recordings=None, **kwargs):
    """Compare all calls with the function's own results; no call may run eagerly."""
    compiled = cr.compile(function)
    for args in (*calls, *calls):
        cr.manual_seed(0)
        wanted = function(*args, **kwargs)
        cr.manual_seed(0)
        assert_same(compiled(*args, **kwargs), wanted)
    assert not compiled._eager
    if recordings is not None:
        assert len(compiled.recordings) == recordings
    return compiled


class Square(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x


def _newton(a):
    y = a
    while np.max(np.abs(y * y - a)) > 1e-10:
        y = 0.5 * (y + a / y)
    return y


def _loss(W1, b1, W2, b2, x, y):
    h = cr.tanh(x @ W1 + b1)
    return F.mse_loss(h @ W2 + b2, y)


MLP = [rng.standard_normal(s) for s in ((4, 16), (16,), (16, 1), (1,), (8, 4), (8, 1))]


@pytest.mark.parametrize(
    "function",
    [
        cr.grad(lambda x: np.sum(np.sin(x) ** 2)),
        cr.value_and_grad(lambda x: np.sum(x**3)),
        cr.hessian(lambda x: np.sum(np.sin(x) ** 3)),
        cr.jacrev(lambda x: np.sin(x) * x[0]),
        cr.jacfwd(lambda x: np.sin(x) * x[0]),
        lambda x: cr.jvp(lambda x: np.sin(x) * x[0], (x,), (x,)),
        lambda x: cr.vjp(np.sin, x)[1](x),
        lambda x: cr.func.hvp(lambda x: np.sum(np.sin(x) ** 3), x, x) if hasattr(cr.func, "hvp") else x,
        cr.vmap(lambda a: np.sin(a) * 2),
        cr.grad(lambda x: Square.apply(x).sum()),
        cr.grad(lambda x: cr.utils.checkpoint.checkpoint(lambda y: np.sin(y) * y, x, use_reentrant=False).sum()),
        cr.compile(lambda x: cr.compile(lambda y: y * 2)(x) + 1),
    ],
)
def test_transformations(function):
    check(function, (x,), (-x,), recordings=1)


def test_a_transformation_of_a_compiled_function_sees_through_it():
    assert_same(cr.grad(cr.compile(lambda x: np.sum(x**2)))(x), 2 * x)
    assert_same(cr.vmap(cr.compile(lambda a: a * 2))(X), X * 2)
    assert_same(cr.jvp(cr.compile(np.sin), (x,), (x,))[1], x * np.cos(x))


@pytest.mark.parametrize("face", [np.asarray, T])
def test_gradients_of_a_network(face):
    arguments = tuple(map(face, MLP))
    check(cr.grad(_loss, argnums=(0, 1, 2, 3)), arguments, recordings=1)
    check(cr.vmap(cr.grad(lambda w: (w * w).sum())), (face(X),), recordings=1)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.mean(), x.std(), x.var(), x.max(), x.argmax(), x.prod(), np.median(x)),
        lambda x: np.sort(x)[np.argsort(x)],
        lambda x: np.abs(np.fft.fft(x)),
        lambda x: np.einsum("i,j->ij", x, x),
        lambda x: np.linalg.solve(np.outer(x, x) + np.eye(6), x),
        lambda x: np.concatenate([x, np.cumsum(x)]),
        lambda x: np.where(x > 0, x, -x),
        lambda x: x**2 + abs(x) ** 0.5 + x**3 + 2**x,
        lambda x: np.abs(np.exp(1j * x)).sum(),
        lambda x: np.asarray(x) * 2,
        lambda x: (x, (x * 2, {"k": x.sum(), "none": None})),
        lambda x: x,
        lambda x: np.ones(3),
        lambda x: 3,
    ],
)
@pytest.mark.parametrize("values", [x, f4])
def test_plain_numpy_code_is_recorded_as_it_is(function, values):
    check(function, (values,), (-values,))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.mean(), x.std(), x.var(), x.max(), x.argmax(), x.prod(), x.median()),
        lambda x: F.softmax(x, -1),
        lambda x: F.layer_norm(x, (6,)),
        lambda x: F.conv1d(x[None], cr.ones(2, 4, 3, dtype=cr.float64)),
        lambda q: F.scaled_dot_product_attention(q[None], q[None], q[None]),
        lambda x: F.cross_entropy(x, T([0, 1, 2, 3])),
        lambda x: cr.autograd.grad((x.detach().requires_grad_() ** 3).sum(), []) if False else x * 2,
    ],
)
def test_operations_of_tensors(function):
    check(function, (T(X),), (T(-X),), recordings=1)


def test_random_numbers_are_those_of_eager():
    check(lambda x: F.dropout(x, 0.5) + cr.randn_like(x), (T(X),), (T(-X),), recordings=1)

    def noisy(x):
        return x + cr.randn(3)

    compiled = cr.compile(noisy)
    runs = []
    for function in (noisy, compiled):
        cr.manual_seed(3)
        runs.append([function(cr.ones(3)) for _ in range(4)])
    assert all(bool((a == b).all()) for a, b in zip(*runs, strict=True))


# -- arguments -----------------------------------------------------------------------------------------------------------


def test_containers_and_keywords():
    check(lambda p: {"a": p["w"] * 2, "b": [p["b"].sum()]}, ({"w": x, "b": X},), ({"w": x + 1, "b": X},), recordings=1)
    check(lambda x, n=2: x**n, (x,), n=3, recordings=1)


def test_one_recording_for_each_shape_layout_and_dtype():
    calls = [(x,), (X,), (np.asfortranarray(X),), (X[:, ::2],), (f4,), (np.ones(0),), (np.array(2.0),)]
    check(lambda x: x * 2, *calls, recordings=len(calls))


def test_one_recording_for_each_value_of_what_is_no_array():
    check(lambda x, n: x * n, (x, 2), (x, 3), recordings=2)
    check(lambda x, how: x.sum() if how == "sum" else x.mean(), (x, "sum"), (x, "mean"), recordings=2)


@pytest.mark.parametrize("values", [x, f4, np.arange(6)])
def test_floats_are_arrays_that_take_the_dtype_of_what_they_meet(values):
    def function(x, t):
        return x * t, x > t, np.where(x > 0, t, x), x + t * 2, t * 3, t / 2 + 1, np.sin(t), x * np.sin(t), t**2 - t

    check(function, (values, 0.3), (values, 0.7), recordings=1)
    check(lambda x, t: cr.grad(lambda y: np.sum(y * t))(x * 1.0), (values, 0.3), (values, 0.7), recordings=1)
    check(lambda x, t: np.clip(x, -t, t), (values, 0.3), (values, 0.7), recordings=1)


def test_floats_alone():
    check(lambda t: t * t + 1 if t > 0.5 else t - 1, (0.3,), (0.7,), (0.2,), recordings=2)
    check(cr.grad(lambda t: np.sin(t) * t), (0.3,), (0.7,), recordings=1)
    check(lambda t: np.sin(t), (np.float64(0.3),), (np.float64(0.7),), recordings=1)


@pytest.mark.parametrize(
    "function",
    [
        lambda y: y[0] ** 2 + y[0] ** 3 + np.sum(y) ** 2,
        lambda y: 2.0 ** y[0],
        lambda y: abs(y[0]) ** 0.5 * abs(y[1]) ** y[2],
        lambda y: y[0] ** -1,
        lambda y: (y[0] + 1j * y[1]) * (y[1] - 2j) / (y[0] + 3j),
        lambda y: (np.power(y[0], 2), y**2, abs(y) ** 0.5, y**-1, 2.0**y),
        lambda y: np.array([y[1], -y[0]]),
        lambda y: np.array([[y[0], 1.0], [2, y[1]]]) @ y[:2] + np.asarray(y.sum()),
    ],
)
def test_scalars_are_computed_as_numpy_computes_them(function):
    compiled = cr.compile(function)
    for y in np.random.default_rng(1).standard_normal((200, 3)):
        assert_same(compiled(y), function(y))
    assert len(compiled.recordings) == 1 and not compiled._eager


def test_arrays_of_elements_are_not_computed_with_one_by_one():
    M = np.random.default_rng(2).standard_normal((2, 2))
    functions = [lambda x: M @ np.array([x[0], x[1]]), lambda x: np.array([x[0], x[1]]) ** 3]
    for function in functions:
        compiled = cr.compile(function)
        with pytest.warns(UserWarning, match=r"np.stack\(\[...\]\)"):
            compiled(x)
        for k in range(50):
            assert_same(compiled(x + k), function(x + k))
    check(lambda x: M @ np.stack([x[0], x[1]]), (x,), (-x,), recordings=1)


@pytest.mark.parametrize("exponent", [0.3, 2.0, 0.5, -1.0, 1.0, 0.0])
def test_powers_by_a_float(exponent):
    compiled = cr.compile(lambda x, t: x**t)
    compiled(abs(x), 0.7)
    assert_same(compiled(abs(x), exponent), abs(x) ** exponent)
    assert len(compiled.recordings) == 1


def test_a_float_that_must_be_one_is_recorded_by_value():
    def function(x, t):
        assert isinstance(t, float)
        return x * math.sin(t)

    check(function, (x, 0.3), (x, 0.7), recordings=2)


def test_a_method_and_a_decorator():
    class Model:
        def __init__(self):
            self.w = T([1.0, 2.0], requires_grad=True)

        @cr.compile
        def loss(self, x):
            "The loss."
            return ((self.w - x) ** 2).sum()

    model = Model()
    for _ in range(3):
        model.loss(cr.zeros(2)).backward()
    assert model.w.grad.tolist() == [6.0, 12.0]
    assert Model.loss.__doc__ == "The loss."


# -- control flow --------------------------------------------------------------------------------------------------------


def test_control_flow_on_values():
    check(lambda x: x * 2 if x.sum() > 0 else x - 1, (x,), (-x,), recordings=2)
    check(lambda x: x * (2 if x.sum().item() > 0 else 3), (T(x),), (T(-x),), recordings=2)
    check(lambda x: x[: int(np.sum(x > 0))], (x,), (np.abs(x),), recordings=2)
    check(lambda x: bool(np.all(x > -10)), (x,), (x - 100,), recordings=2)
    check(lambda x: x[x > 0], (x,), (-x,))
    check(lambda x: np.unique(np.round(x)), (x,), (x * 0,))
    check(lambda x: np.nonzero(x > 0)[0], (x,), (-x,))


def test_the_plan_checks_the_condition_of_a_loop():
    a = np.abs(x) + 0.1
    compiled = check(_newton, (a,), (a * 300,), (a + 1,))
    (trees,) = compiled._trees.values()
    assert len(compiled.recordings) > 1
    assert all([len(tree.root.checks) == len(tree.root.trace.guards) > 0 for tree in trees])


def test_indices_are_values_like_others():
    check(lambda x, i: x[i], (T(x), T([0, 2, 2])), (T(x), T([1, 1, 5])), recordings=1)
    check(lambda x, i: x[i], (x, np.array([0, 2, 2])), (x, np.array([1, 1, 5])), recordings=1)
    check(lambda x: (lambda y: (y.__setitem__(0, 1.0), y)[1])(x * 2), (x,), (-x,), recordings=1)


# -- wrong use -----------------------------------------------------------------------------------------------------------


def test_bad_input():
    with pytest.raises(TypeError, match="compile takes a function"):
        cr.compile(3)
    with pytest.raises(TypeError, match="returned object; a compiled function returns arrays, tensors or numbers"):
        cr.compile(lambda x: object())(x)
    compiled = cr.compile(lambda x: x.reshape(7))
    for _ in range(2):
        with pytest.raises(ValueError, match="cannot reshape array of size 6"):
            compiled(x)


async def _coroutine(x):
    return x * 2


def _generator(x):
    yield x * 2


async def _async_generator(x):
    yield x * 2


async def _first(values):
    return await anext(values)


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(
    ("function", "use", "kind"),
    [
        (_coroutine, asyncio.run, "a coroutine"),
        (lambda x: _coroutine(x), asyncio.run, "a coroutine"),
        (_generator, next, "a generator"),
        (_async_generator, lambda values: asyncio.run(_first(values)), "an async generator"),
    ],
)
def test_functions_whose_body_runs_later_run_eagerly(function, use, kind, pure):
    compiled = cr.compile(function, pure=pure)
    with pytest.warns(UserWarning, match=f"it returns {kind}, whose body runs later"):
        assert_same(use(compiled(x)), x * 2)
    assert_same(use(compiled(x)), x * 2)


def test_a_value_that_escapes_is_an_error_that_names_the_lines():
    kept = collections.deque()

    def leak(x):
        kept.append(x * 2)
        return x

    compiled = cr.compile(leak, pure=True)  # which is false
    compiled(x)
    with pytest.raises(RuntimeError, match=r"has escaped from a function that compile \(called at test_comp"):
        kept[0] + 1


def test_an_error_of_a_step_is_that_of_the_function():
    compiled = cr.compile(lambda A: np.linalg.inv(A))
    compiled(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        compiled(np.zeros((2, 2)))


def test_underflow_is_warned_of_where_that_is_asked_for_later():
    compiled = cr.compile(cr.grad(lambda x: (x * x * x).sum()))
    x = np.array([1e-200, 1.0])
    compiled(x)  # NumPy ignores underflow by default
    assert not compiled.recordings[0].ignored
    with np.errstate(under="warn"), pytest.warns(RuntimeWarning, match="underflow"):
        compiled(x)


def test_what_is_ignored_does_not_depend_on_blocks_of_errstate_before():
    x = np.array([1e-200, 1.0])
    for blocks in range(20):
        for _ in range(blocks % 4):
            with np.errstate(divide="warn"):
                cr.tensor(x) * cr.tensor(x)
        with np.errstate(over="warn"):
            compiled = cr.compile(cr.grad(lambda x: (x * x * x).sum()))
            compiled(x)
        assert not compiled.recordings[0].ignored


def test_floating_point_exceptions_follow_errstate():
    compiled = cr.compile(lambda x: np.log(x))
    compiled(np.ones(3))
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in compiled <lambda>"):
        compiled(np.zeros(3))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="invalid value"):
        compiled(-np.ones(3))
    met = []
    with np.errstate(all="call", call=lambda kind, flag: met.append(kind)):
        compiled(np.zeros(3))
    assert met == ["divide by zero"]


def test_results_are_written_into_memory_of_the_callers():
    gradient = cr.grad(lambda x: np.sum(np.tanh(x)))
    compiled, out = cr.compile(gradient), np.empty(6)
    for k in range(3):
        assert compiled.into(out, x + k) is out and np.array_equal(out, gradient(x + k))
    both = (np.empty(6), {"a": np.empty(())})
    pair = cr.compile(lambda x: (x * 2, {"a": x.sum()}))
    for k in range(3):
        pair.into(both, x + k)
        assert_same((both[0], both[1]["a"][()]), ((x + k) * 2, (x + k).sum()))
    y = x.copy()
    for _ in range(3):
        wanted = gradient(y)
        assert np.array_equal(compiled.into(y, y), wanted)  # an argument's own memory
    with pytest.raises(
        ValueError, match=r"returns TreeSpec\(\*\) with arrays of the shapes and dtypes float64\[6\]: out must"
    ):
        compiled.into(np.empty(5), x)
    tensor = T(np.zeros(6))
    cr.compile(lambda x: x * 2).into(tensor, T(x))
    assert np.array_equal(tensor, x * 2)


def test_rows_and_functions_of_the_users_own_are_steps():
    calls = []

    @cr.primitive.elementwise(d={"x": lambda x: 3 * x * x})
    def cube(x):
        calls.append(1)
        return np.array([v**3 for v in np.ravel(x)]).reshape(np.shape(x))

    cr.compile(lambda x: cube(x).sum(), pure=True)(x)  # reads less than the next recording
    compiled = check(cr.grad(lambda x: cube(x).sum()), (x,), (-x,), recordings=1)
    before = len(calls)
    compiled(x)
    assert len(calls) == before + 1  # in every call, like without compile
    assert "cube" in str(compiled.plan(x))


def test_a_function_that_returns_one_element_for_all():
    @cr.primitive.discrete()
    def peaks(x):
        return np.broadcast_to(x.max(), x.shape) if x.max() < 10 else x + 0

    compiled = cr.compile(lambda x: peaks(x) * 2)
    for values in (np.ones(3), np.zeros(3), np.arange(3.0) + 20):
        assert compiled(values).tolist() == (np.asarray(peaks(values)) * 2).tolist()


def test_hooks_run_while_recording():
    def make():
        w = T([1.0, 2.0], requires_grad=True)
        w.register_hook(lambda g: g * 2)

        def step(x):
            h = w * x
            h.register_hook(lambda g: g + 1)
            (h.sum() + (w * x).sum()).backward()
            return h.detach()

        return w, step

    (w, step), (v, plain) = make(), make()
    compiled = cr.compile(step)
    for k in range(3):
        assert_same(compiled(T([1.0, k])), plain(T([1.0, k])))
    assert w.grad.tolist() == v.grad.tolist() and not compiled._eager


@pytest.mark.parametrize("refused", [False, True], ids=["", "refused"])
@pytest.mark.parametrize("inner", [False, True], ids=["leaf", "inner"])
@pytest.mark.parametrize("given", [False, True], ids=["outside", "argument"])
def test_hooks_of_tensors_from_outside_are_registered_once_a_call(given, inner, refused):
    def make():
        leaf = T([1.0, 2.0], requires_grad=True)
        w = leaf * 1 if inner else leaf

        def step(x):
            x = w if x is None else x
            x.register_hook(lambda g: g * 0.5)
            (g,) = cr.autograd.grad((x * x).sum(), x)
            if refused:
                random.random()
            return g

        return step, w if given else None

    (step, x), (plain, y) = make(), make()
    compiled = cr.compile(step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            assert_same(compiled(x), plain(y))


@cr.compile
def doubled(x):
    return x * 2


def test_copies_and_pickles():
    doubled(x)
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert_same(copy.deepcopy(doubled)(x), x * 2)
    again = pickle.loads(pickle.dumps(cr.compile(np.sort)))
    assert_same(again(x), np.sort(x))


def test_what_a_function_ignores_itself_is_not_reported(recwarn):
    def function(x):
        with np.errstate(divide="ignore"):
            y = np.log(x)
        return np.where(x > 0, y, 0.0)

    compiled = cr.compile(function)
    for _ in range(3):
        compiled(np.zeros(3))
    assert not recwarn.list


@pytest.mark.filterwarnings("ignore:compile. <lambda> .* calls print")
def test_values_are_printed_in_each_call_or_while_recording_alone(capsys):
    out = "[0. 1.] array([0., 1.])\ntensor([0., 1.]) tensor([0., 1.])\n"
    for pure in (False, True):
        compiled = cr.compile(lambda x: (print(x, repr(x)), x * 2)[1], pure=pure)
        for _ in range(2):
            compiled(np.arange(2.0)), compiled(cr.arange(2.0))
        assert capsys.readouterr().out == (out if pure else out * 2)


@pytest.mark.parametrize(
    "loss", [lambda s, x: (s * 3).sum(), lambda s, x: (s * x).sum(), lambda s, x: (s * x + s).sum()]
)
def test_gradients_add_up(loss):
    def grads(wrap):
        s = cr.ones(2, requires_grad=True)

        def step(x):
            loss(s, x).backward()
            return x * s.grad

        called = wrap(step)
        return [called(cr.ones(2)).tolist() for _ in range(5)] + [s.grad.tolist()]

    assert grads(cr.compile) == grads(lambda f: f)


def test_a_write_into_a_dual_number_names_the_reason():
    """The trace has no variable for a value of a transformation inside of it."""

    def tangent(x):
        def f(v):
            w = np.sinh(v)
            np.modf(w * 2, out=(w, np.empty_like(w)))
            return np.sum(w) + np.sum(v)

        return cr.jvp(f, (x,), (x,))[1]

    compiled = cr.compile(tangent)
    with pytest.warns(UserWarning, match="a value of another transformation"):
        assert_same(compiled(x), tangent(x))
