"""Ufuncs, reductions and products as loops, compared bit for bit with NumPy for C, Fortran, transposed, sliced, repeated layouts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.native import AVAILABLE
from tests.compiling.recording import ProgramBuilder

pytestmark = [
    pytest.mark.skipif(not AVAILABLE, reason="the extension is not built"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

LAYOUTS = ["C", "F", "sliced", "transposed", "padded", "reversed", "repeated"]
UFUNCS = {f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc) and f.signature is None}
SHAPES = [(1,), (7,), (20_000,), (5, 300), (300, 5), (3, 9000), (9000, 3), (1, 40), (6, 7, 40), (3, 4, 5, 6)]


def values(rng: np.random.Generator, shape: tuple[int, ...], letter: str) -> np.ndarray:
    dtype = np.dtype(letter)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(1, 9, shape).astype(dtype)
    x = rng.standard_normal(shape) * np.exp(2 * rng.standard_normal(shape))
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def laid_out(x: np.ndarray, how: str) -> np.ndarray:
    if how == "F":
        return np.asfortranarray(x)
    if how == "sliced":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if how == "transposed":
        return np.ascontiguousarray(x.swapaxes(0, -1)).swapaxes(0, -1)
    if how == "padded":
        return np.concatenate([x, x], axis=-1)[..., : x.shape[-1]]
    if how == "reversed":
        return np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    if how == "repeated":
        return np.broadcast_to(x[..., :1], x.shape)
    return x


def same_bits(function, inputs, others=None, **parameters) -> str:
    """Return how the call is executed, after a comparison at other inputs of the same layouts."""
    program = ProgramBuilder(*inputs)
    results = program(function, *program.inputs, **parameters)
    program.outputs = list(results) if isinstance(results, tuple) else [results]
    plan = ExecutionPlan(program)
    others = inputs if others is None else others
    for got, wanted in zip(plan.run(list(others)), program.eager(*others), strict=True):
        assert got.tobytes() == wanted.tobytes(), (
            function,
            parameters,
            [(x.dtype, x.shape, x.strides) for x in inputs],
        )
    return plan.executor


@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_elementwise(name):
    ufunc, rng, executors = UFUNCS[name], np.random.default_rng(3), []
    for types in ufunc.types:
        letters = types.split("->")[0]
        if not set(types) <= set("?bBilfdFD->"):
            continue
        for shape, how in itertools.product([(6, 7), (2, 3, 5)], LAYOUTS):
            draws = [
                [laid_out(values(rng, shape, c), how if k == 0 else "transposed") for k, c in enumerate(letters)]
                for _ in range(2)
            ]
            try:
                executors.append(same_bits(ufunc, *draws))
            except (TypeError, ValueError):  # booleans cannot be subtracted
                continue
    assert "native" in executors or name == "isnat"


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum, np.logaddexp], ids=lambda f: f.__name__)
def test_reductions(ufunc):
    rng, executors = np.random.default_rng(6), []
    letters = {np.add: "fdFDl", np.logaddexp: "fd"}.get(ufunc, "fdl")
    for shape, letter, how in itertools.product(SHAPES, letters, LAYOUTS[:6]):
        draws = [laid_out(values(rng, shape, letter), how) for _ in range(2)]
        for count in range(1, len(shape) + 1):
            for axes in itertools.combinations(range(len(shape)), count):
                executors.append(same_bits(ufunc, draws[:1], draws[1:], method="reduce", axis=axes))
    assert executors.count("native") > 0.4 * len(executors)


def test_sums_of_zeros():
    zeros = np.array([[-0.0, -0.0], [0.0, -0.0], [-0.0, 0.0]])
    for ufunc, axis in itertools.product([np.add, np.multiply, np.maximum, np.minimum], [0, 1, None]):
        same_bits(ufunc, [zeros], method="reduce", axis=axis)
    for empty, axis in itertools.product([np.zeros((3, 0)), np.zeros((0, 3))], [0, 1, None]):
        same_bits(np.add, [empty], method="reduce", axis=axis)


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4), (4, 5)),
        ((4,), (4,)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((1, 4), (4, 1)),
        ((3, 1), (1, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((40, 50), (50, 30)),
    ],
)
def test_matmul(shapes):
    rng = np.random.default_rng(8)
    for letter, how in itertools.product("fdD", itertools.product(LAYOUTS[:5], repeat=2)):
        draws = [[laid_out(values(rng, s, letter), h) for s, h in zip(shapes, how)] for _ in range(2)]
        assert same_bits(np.matmul, *draws) == "native"


def test_matmul_of_a_matrix_and_its_transpose_is_another_routine():
    program = ProgramBuilder(values(np.random.default_rng(9), (30, 40), "d"))
    (x,) = program.inputs
    program.outputs = [program(np.matmul, x, program(np.transpose, x)), program(np.matmul, program(np.transpose, x), x)]
    inputs = [values(np.random.default_rng(10), (30, 40), "d")]
    for got, wanted in zip(ExecutionPlan(program).run(inputs), program.eager(*inputs), strict=True):
        assert got.tobytes() == wanted.tobytes()


def test_a_view_of_a_constant_that_is_kept_stays_one():
    program = ProgramBuilder(np.ones(()), constants=[values(np.random.default_rng(9), (263, 13), "d")])
    constant = program(np.negative, program.constants[0])
    product = program(np.matmul, constant, program(np.swapaxes, constant, 0, 1))
    program.outputs = [program(np.multiply, product, program.inputs[0])]
    (got,), (wanted,) = ExecutionPlan(program).run([np.ones(())]), program.eager(np.ones(()))
    assert got.tobytes() == wanted.tobytes()
