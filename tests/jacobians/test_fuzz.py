"""Random programs, and transformations in and around them: structured Jacobians compared with batched VJPs.

``python -m tests.jacobians.test_fuzz 'forward terms' torch 1000 500`` judges programs of 500 seeds, starting at 1000.
"""

import sys
import traceback
import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.jacobians import accumulate, compaction
from chainrule._src.jacobians.propagation import Propagation
from chainrule.primitive import contraction, elementwise, linear, opaque
from tests.jacobians import programs
from tests.jacobians.comparing import flattened, matrices, pattern_of

MAKERS = {"torch": programs.torch_program, "numpy": programs.numpy_program}


class Disagreement(AssertionError):
    pass


def prepared(f, xs):
    """Compute a Jacobian with a plan from another point."""
    return cr.prepare_jacobian(f, tuple([x + 0.01 for x in xs]), on_change="record")(xs)


def prepared_hessian(f, xs):
    """Compute a Hessian with a plan from another point, and another value of a further argument."""
    scaled = lambda *args: args[-1] * f(*args[:-1]).sin().sum()
    start = tuple([x + 0.01 for x in xs])
    return cr.prepare_hessian(scaled, start, args=3.0, on_change="record")(xs, 1.0)


WAYS = {
    "forward terms": lambda f, xs: cr.jacobian(f, xs, layout="csr", strategy="forward terms"),
    "reverse terms": lambda f, xs: cr.jacobian(f, xs, layout="csr", strategy="reverse terms"),
    "chosen": lambda f, xs: cr.jacobian(f, xs, layout="csr"),
    "prepared": prepared,
    "hessian": lambda f, xs: cr.hessian(lambda *xs: f(*xs).sin().sum(), xs, layout="csr"),
    "prepared hessian": prepared_hessian,
}


def judge(way, mode, seed):
    """Return whether a program could be judged: batched VJPs must support it."""
    program = MAKERS[mode](seed)
    xs = tuple(program.xs) if mode == "numpy" else tuple(map(cr.tensor, program.xs))

    def f(*xs):
        return flattened(program(*xs))

    try:
        expected = known(way, f, xs, program.xs, cr.func.jacrev)
    except Exception:
        return False
    try:
        found = WAYS[way](f, xs)
    except Exception as error:
        told = "".join(traceback.format_exception(error)[-4:])
        raise Disagreement(f"{way} of {mode} {seed}: {told}\n{program.text}") from None
    blocks = [block for row in found for block in row] if "hessian" in way else found
    if "hessian" in way:
        assert all(
            (a != b.T).nnz == 0 or np.isnan(a.data).any() for a, b in zip(blocks, transposed(found), strict=True)
        )
    other = None
    for k, (want, block) in enumerate(zip(expected, blocks, strict=True)):
        got, pattern = block.toarray(), pattern_of(block)
        where = differing(got, want, pattern, 0, program)
        if where.size:
            other = other or known(way, f, xs, program.xs, cr.func.jacfwd)
            where = differing(got, want, pattern, 32 * np.abs(other[k] - want), program)
        if where.size:
            where = [*map(tuple, where[:5].tolist())]
            what = ", ".join(f"{at}: {got[at]} for {want[at]}" for at in where)
            raise Disagreement(f"{way} of {mode} {seed}: block {k} at {what}\n{program.text}")
    return True


def known(way, f, xs, arrays, dense):
    """Return the Jacobian's blocks as matrices by one of both modes: ``dense`` is ``jacrev`` or ``jacfwd``."""
    argnums = tuple(range(len(xs)))
    if "hessian" not in way:
        return matrices(dense(f, argnums)(*xs), arrays)
    rows = dense(cr.func.grad(lambda *xs: f(*xs).sin().sum(), argnums), argnums)(*xs)
    return [np.asarray(rows[k][j]).reshape(arrays[k].size, arrays[j].size) for k in argnums for j in argnums]


def transposed(rows):
    return [row[k] for k in range(len(rows)) for row in rows]


def differing(got, want, pattern, doubt, program):
    """Describe a missing entry or a wrong number.

    Some programs divide by differences of near numbers, and some at zero: ``doubt`` is the difference between two dense
    computations; entries that are nan in one of them are not compared.
    """
    precise = not any(word in program.text for word in ("float32", "float()", "complex64", "logcumsumexp"))
    told = np.isfinite(want)
    scale = np.abs(want[told]).max(initial=1e-3)
    told &= np.isfinite(doubt)
    doubt = np.where(told, doubt, 0)
    tolerance = (1e-12 if precise else 1e-6) * scale + doubt.max(initial=0)
    off = ~(np.abs(np.where(told, got - want, 0)) <= tolerance)
    return np.argwhere(told & (off | (~pattern & (np.abs(want) > doubt))))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MAKERS)
@pytest.mark.parametrize(
    ("way", "first"),
    [("forward terms", first) for first in (0, 20)]
    + [pytest.param("forward terms", first, marks=pytest.mark.slow) for first in range(40, 100, 20)]
    + [
        (way, 20 * k) for k, way in enumerate(["reverse terms", "chosen", "prepared", "hessian", "prepared hessian"], 5)
    ],
)
def test_programs(way, mode, first):
    with np.errstate(all="ignore"):
        assert sum(judge(way, mode, seed) for seed in range(first, first + 20)) > 10


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MAKERS)
def test_programs_that_are_cut_often(mode, monkeypatch):
    """Cut values and combine terms after nearly every step, so that small programs behave like large ones."""
    for module, name, value in (
        (compaction, "_FEW_COLUMNS", 1),
        (compaction, "_NEARLY_ALL", 2),
        *[
            (m, name, k)
            for m in (compaction, accumulate)
            for k, name in enumerate(["SMALL", "MOST_WITH_ROWS", "MOST_TERMS"])
        ],
        (accumulate, "MOST_SLOTS", 2),
    ):
        monkeypatch.setattr(module, name, value)
    with np.errstate(all="ignore"):
        assert sum(judge("forward terms", mode, seed) for seed in range(300, 325)) > 15


# -- transformations inside the function, and around its Jacobian ------------------------------------------------------


class Square(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class SquareBothWays(cr.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 2 * x * t


@elementwise(d={"x": lambda x: 3 * x * x})
def cubed(x):
    "x³"
    return x**3


@opaque(vjp={"x": lambda g, x: g * np.cos(x)}, jvp={"x": lambda t, x: t * np.cos(x)})
def sine(x):
    "sin(x)"
    return np.sin(x)


@linear(transpose=lambda g: np.flip(g, -1))
def backwards(x):
    "x from its end"
    return np.flip(x, -1)


@contraction("ik,kj->ij")
def product(x, y):
    "x @ y"


def written(x):
    y = x.clone()
    y[:2] *= x[1:]
    y.view(-1)[::2].sin_()
    return y


PROGRAMS = {
    "two parts": lambda x: cr.cat([cr.sin(x) * x.flip(0), cr.exp(x[:2]) * x.sum()]),
    "a function": lambda x: Square.apply(x) * x,
    "a function with a jvp": lambda x: SquareBothWays.apply(x) * x.flip(0),
    "an elementwise row": lambda x: cubed(x) * x.sum(),
    "an opaque row": lambda x: sine(x[1:]) * x[:2],
    "a linear row": lambda x: backwards(x) * x,
    "a contraction": lambda x: product(x[None] * 2, cr.sin(x)[:, None] * x),
    "vmap": lambda x: cr.vmap(lambda row: row.sin() * x)(x),
    "grad": lambda x: cr.func.grad(lambda v: (v * v.roll(1)).sin().sum())(x),
    "jvp": lambda x: cr.func.jvp(lambda v: v.sin() * v.sum(), (x,), (x.cos(),))[1],
    "jacrev": lambda x: cr.func.jacrev(lambda v: v.sin() * v[0])(x),
    "hessian": lambda x: cr.func.hessian(lambda v: (v**3).sum() * v[0])(x).sum(0),
    "itself": lambda x: structured(lambda v: v.sin() * v[0])(x),
    "writes": written,
    "a solution": lambda x: cr.linalg.solve(cr.eye(3, dtype=x.dtype) * 3 + cr.outer(x, x.sin()), x),
    "order": lambda x: cr.sort(x)[0] * x[cr.argsort(x)] * cr.where(x > 0, x, x.exp()),
    "a spectrum": lambda x: cr.fft.rfft(x * x.sum()).abs(),
    "running sums": lambda x: cr.cumsum(x, 0).softmax(0) * x.cumprod(0),
    "added at": lambda x: cr.zeros(2, dtype=x.dtype).index_add(0, cr.tensor([0, 1, 0]), x.sin()) ** 2,
}
X = np.array([0.3, -0.4, 0.7])


def half_written(x):
    z = cr.complex(x, x * x)
    z.imag[0].mul_(0.3)
    cr.view_as_real(z)[1:, 0] *= x[1:]
    return cr.cat([z.abs(), z.imag])


def twice(x):
    padded = cr.cat([x.sin(), cr.zeros(2, dtype=x.dtype)])
    return cr.cat([padded, padded * 2, padded])


PROGRAMS["the same twice"] = twice
PROGRAMS["half of complex numbers written"] = half_written
PROGRAMS["a rule that gives booleans"] = lambda x: (lambda y: (y + y) * x.sin())(x.nan_to_num())


def test_values_lie_in_memory_as_ever():
    """Whether ``ravel`` is a view depends on a value's layout, which depends on the layout of constants."""

    def f(x):
        y = np.choose([0, 1], [x, np.sum(x)])
        y.ravel()[:1] = 3
        return y

    x = np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(cr.jacobian(f, x, strategy="forward terms"), cr.func.jacrev(f)(x))


def structured(f):
    return lambda x: cr.jacobian(f, x, layout="dense", strategy="forward terms")


def graph(J, f):
    x = cr.tensor(X, requires_grad=True)
    y = cr.jacobian(f, x, strategy="forward terms", create_graph=True) if J is structured else J(f)(x)
    y.square().sum().backward()
    return x.grad


AROUND = {
    "nothing": lambda J, f: J(f)(cr.tensor(X)),
    "jvp": lambda J, f: cr.func.jvp(J(f), (cr.tensor(X),), (cr.tensor(X + 1),)),
    "grad": lambda J, f: cr.func.grad(lambda x: J(f)(x).sin().sum())(cr.tensor(X)),
    "vmap": lambda J, f: cr.vmap(J(f))(cr.tensor([X, X + 0.1, -X])),
    "a Jacobian": lambda J, f: J(J(f))(cr.tensor(X)),
    "a graph": graph,
    "compile": lambda J, f: [*map(cr.compile(J(f)), (cr.tensor(X), cr.tensor(2 * X)))] if f in COMPILED else [],
}
COMPILED = [f for name, f in PROGRAMS.items() if name not in ("a function", "a function with a jvp")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", PROGRAMS)
def test_transformations(name, around):
    f = PROGRAMS[name]
    if (name, around) == ("order", "vmap"):  # an index for each example
        f = lambda x: x.sin() * x.sum()
    found, expected = (AROUND[around](J, f) for J in (structured, cr.func.jacrev))
    for got, want in zip(*(x if isinstance(x, (tuple, list)) else [x] for x in (found, expected)), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-12, atol=1e-12)


DENSE = {
    "sums of scattered terms": lambda v: (lambda u: u - u.mean())(np.cumsum(v.reshape(-1, 10), 0).ravel()),
    "running sums of running sums": lambda v: np.cumsum(np.cumsum(np.cumsum(v) ** 2) ** 2),
    "gathers of dense values": lambda v: (lambda u: u - u.mean())(np.sort(v - v.mean())),
    "convolved dense values": lambda v: np.convolve(v * v.sum(), [1.0, 2.0, 1.0], "same") * v.sum(),
}


@pytest.mark.parametrize("name", DENSE)
def test_terms_do_not_outgrow_the_matrix(name, monkeypatch):
    """The work of a step, for Jacobians that are dense anyway, is a few times that of the matrix."""
    n, made = 120, [0]
    through = Propagation.through

    def counted(self, step, operands):
        outs = through(self, step, operands)
        made.append(sum(term.cols.size for terms in outs for term in terms))
        return outs

    monkeypatch.setattr(Propagation, "through", counted)
    x = np.random.default_rng(0).normal(size=n)
    found = cr.jacobian(DENSE[name], x, strategy="forward terms")
    assert max(made) <= 5 * n * n
    np.testing.assert_allclose(found, cr.func.jacrev(DENSE[name])(x), rtol=1e-10, atol=1e-10)


def test_constants_written_later():
    """Reads count; values that no derivative reads may be overwritten."""
    x, c = cr.tensor(X), cr.tensor(np.ones(3))

    def f(x):
        y = x * c + c
        c.add_(1.0)
        return y

    np.testing.assert_array_equal(np.asarray(structured(f)(x)), np.eye(3))
    np.testing.assert_array_equal(np.asarray(structured(f)(x)), 2 * np.eye(3))
    large = cr.tensor(np.ones((10000, 3)))  # too large for a copy

    def g(x, read):
        rows = large * x if read else large + x
        large.add_(1.0)
        return rows[0]

    np.testing.assert_array_equal(np.asarray(structured(lambda x: g(x, False))(x)), np.eye(3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        structured(lambda x: g(x, True))(x)


def main(way, mode, first, count):
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    judged = failed = 0
    for seed in range(first, first + count):
        try:
            judged += judge(way, mode, seed)
        except (Disagreement, AssertionError) as error:
            failed += 1
            print(error, flush=True)
    print(f"{judged} programs judged, {failed} disagree")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
