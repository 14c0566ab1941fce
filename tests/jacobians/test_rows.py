"""The structured Jacobians of all primitives with operations before and after them, compared with batched VJPs."""

import importlib
import itertools
import pkgutil
import warnings

import numpy as np
import pytest

import chainrule as cr
import chainrule._src.table
from chainrule._src.rules.primitive import TABLE, unsupported
from chainrule.testing.rulecheck import every_sample
from tests.jacobians.comparing import assert_agree, flattened
from tests.table.chosen import chosen_samples

for module in pkgutil.iter_modules(chainrule._src.table.__path__):
    importlib.import_module(f"chainrule._src.table.{module.name}")

ROWS = [name for name in sorted(TABLE) if TABLE[name].differentiable]


# -- before the primitive: how its operand depends on the variable -----------------------------------------------------


def _slope(n):
    return np.linspace(0.5, 1.5, n)


def _as_it_is(n):
    return n, lambda v: v


def _scaled_sine(n):
    return n, lambda v: cr.sin(v) * cr.tensor(_slope(n))


def _gather_with_repeats(n):
    m = max(n // 2, 1)
    at = np.arange(n) * 5 % m
    return m, lambda v: v[at]


def _transposed(n):
    rows = next(k for k in (3, 2, 1) if n % k == 0)
    return n, lambda v: v.reshape(rows, n // rows).T.reshape(-1)


def _slice(n):
    return 2 * n + 1, lambda v: v[1::2]


def _stretched(n):
    return 1, lambda v: v.reshape(()).expand(n)


def _partly_constant(n):
    m = (n + 1) // 2
    return m, lambda v: cr.cat([v, cr.zeros(n - m, dtype=v.dtype)])


def _two_neighbours(n):
    return n, lambda v: v - 0.5 * cr.roll(v, 1) if n else v


def _matrix_product(n):
    matrix = np.cos(np.arange(3.0 * n)).reshape(n, 3)
    return 3, lambda v: cr.tensor(matrix) @ v


def _sparse_sums(n):
    at = np.arange(2 * n) * 3 % max(n, 1)
    return 2 * n, lambda v: cr.zeros(n, dtype=v.dtype).index_add(0, cr.tensor(at), v)


BEFORE = [
    _as_it_is, _scaled_sine, _gather_with_repeats, _transposed, _slice, _stretched, _partly_constant, _two_neighbours,
    _matrix_product, _sparse_sums,
]  # fmt: skip


# -- after the primitive -----------------------------------------------------------------------------------------------


def _weighted(y):
    return y * cr.tensor(_slope(y.numel())).reshape(y.shape)


def _summed(y):
    return y.sum(-1) if y.ndim else y


def _reversed(y):
    return y.reshape(-1).flip(0)


def _picked(y):
    return y.reshape(-1)[np.arange(y.numel() + 1) * 2 % y.numel()] if y.numel() else y


def _product(y):
    return y.reshape(y.numel()) @ cr.tensor(np.sin(np.arange(2.0 * y.numel()))).reshape(y.numel(), 2).to(y.dtype)


AFTER = [lambda y: y, _weighted, _summed, _reversed, _picked, cr.sin, _product]


# -- a program of all three --------------------------------------------------------------------------------------------


def program(prim, sample, operands, wanted, before, after):
    """Return a function of one variable for each selected operand (two if it is complex), and these variables."""
    makers, sizes = [], []
    for i in wanted:
        for _ in range(1 + (operands[i].dtype.kind == "c")):
            size, make = before(operands[i].size)
            sizes.append(size)
            makers.append(make)

    def f(*variables):
        given = list(operands)
        moved = iter([make(v) for make, v in zip(makers, variables, strict=True)])
        for i in wanted:
            change = next(moved)
            if operands[i].dtype.kind == "c":
                change = cr.complex(change, next(moved))
            given[i] = cr.tensor(operands[i]) + 1e-3 * change.reshape(operands[i].shape)
        out = prim(*given, **sample.params)
        outs = out if isinstance(out, tuple) else (out,)
        return [after(y) for y in outs if isinstance(y, cr.Tensor) and (y.is_floating_point() or y.is_complex())]

    def variables(seed):
        rng = np.random.default_rng(seed)
        return [rng.uniform(-0.4, 0.4, size) for size in sizes]

    return f, variables


def subsets(items):
    """Return each item alone, and all together."""
    return dict.fromkeys([*((i,) for i in items), tuple(items)]) if items else ()


def cases(prim, count):
    """Return selected samples of a primitive; fewer for the many similar elementwise ones."""
    if prim.kind != "elementwise":
        return chosen_samples(prim)
    samples = every_sample(prim)
    return samples[count % 4 :: 4] or samples


def rules_of(prim, sample):
    names = [prim.operands[-1]] * len(sample.shapes) if prim.variadic else prim.operands
    return [i for i in sample.floating if names[i] in prim.vjps and not isinstance(prim.vjps[names[i]], unsupported)]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("name", ROWS)
def test_row(name, every):
    """With one pair of operations before and after in rotation, or with all of them."""
    prim = TABLE[name]
    count = ROWS.index(name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        for sample in every_sample(prim) if every else cases(prim, count):
            operands = sample.draw()
            for wanted in subsets(rules_of(prim, sample)):
                turn = [(BEFORE[count % len(BEFORE)], AFTER[count % len(AFTER)])]
                for before, after in itertools.product(BEFORE, AFTER) if every else turn:
                    f, variables = program(prim, sample, operands, wanted, before, after)
                    try:
                        assert_agree(f, variables(0), [variables(1)] if count % 3 == 0 else [], least=1e-3)
                    except Exception as error:
                        error.add_note(f"{name} {sample}, operands {wanted}: {before.__name__}, {after.__name__}")
                        raise
                count += 1


@pytest.mark.parametrize(
    "name", ["mul", "softmax", "index_put", "mm", "convolution", "sum", "solve", "clamp", "scatter_prod"]
)
def test_single_precision(name):
    prim = TABLE[name]
    for sample in [s for s in every_sample(prim) if not s.complex and rules_of(prim, s)][:2]:
        operands = sample.draw(dtype=np.float32)
        wanted = rules_of(prim, sample)

        def f(*given, wanted=wanted, operands=operands, sample=sample):
            xs = dict(zip(wanted, given, strict=True))
            return prim(*[xs.get(i, x) for i, x in enumerate(operands)], **sample.params)

        xs = tuple([cr.tensor(operands[i]) for i in wanted])
        blocks = cr.jacobian(f, xs, layout="csr", strategy="forward terms")
        dense = cr.func.jacrev(f, tuple(range(len(xs))))(*xs)
        for got, want in zip(blocks, dense, strict=True):
            assert got.dtype == np.float32
            np.testing.assert_allclose(got.toarray(), np.asarray(want).reshape(got.shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("padding", [0, 1])
def test_convolutions_in_groups(transposed, padding):
    rng = np.random.default_rng(3)
    x, weight = rng.normal(size=(2, 4, 5)), rng.normal(size=(4, 3, 2) if transposed else (6, 2, 2))
    convolve = cr.nn.functional.conv_transpose1d if transposed else cr.nn.functional.conv1d

    def f(x, weight):
        return convolve(cr.sin(x), weight * 2, stride=2, padding=padding, groups=2)

    assert_agree(f, [x, weight])


COMPLEX = [name for name in ROWS if any(s.complex for s in every_sample(TABLE[name]))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_variables(name):
    """The complex derivative of complex results, and for real ones the gradients, like ``backward``."""
    prim = TABLE[name]
    samples = [s for s in every_sample(prim) if s.complex and s.layout == "C"]
    with np.errstate(all="ignore"):
        for sample in samples[-1:] if prim.kind == "elementwise" else samples:
            operands = sample.draw()
            for i in [i for i in rules_of(prim, sample) if operands[i].dtype.kind == "c"]:

                def f(x, i=i, operands=operands, sample=sample):
                    y = prim(*operands[:i], x, *operands[i + 1 :], **sample.params)
                    return y[0] if isinstance(y, tuple) else y

                x = cr.tensor(operands[i])
                want = np.asarray(cr.jacobian(f, x, strategy="vjps"))
                found = [cr.jacobian(f, x, layout="csr", strategy="forward terms")]
                if not i:
                    found.append(cr.prepare_jacobian(f, x)(x))
                for got in found:
                    assert got.dtype == want.dtype
                    np.testing.assert_allclose(got.toarray(), want.reshape(got.shape), rtol=1e-11, atol=1e-11)


# -- compared with differences, without rules --------------------------------------------------------------------------


def differences(f, x, step=1e-6):
    columns = []
    for k in range(x.size):
        e = np.zeros(x.size)
        e[k] = step
        high, low = (np.asarray(flattened(f(cr.tensor(p)))) for p in (x + e, x - e))
        columns.append((high - low) / (2 * step))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize(
    "name", ["mul", "index_put", "convolution", "softmax", "solve", "scatter_add", "cumprod", "vector_norm"]
)
def test_differences(name):
    prim = TABLE[name]
    for sample in [s for s in every_sample(prim) if not s.complex and rules_of(prim, s)][:3]:
        operands = sample.draw()
        for i in rules_of(prim, sample):
            f, variables = program(prim, sample, operands, (i,), _two_neighbours, _weighted)
            (x,) = variables(0)
            if x.size:
                ((got, _),) = assert_agree(f, [x], least=1e-3)
                np.testing.assert_allclose(got, differences(f, x), rtol=1e-4, atol=1e-9)
