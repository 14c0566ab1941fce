"""Ufuncs, reductions and gufuncs as steps, bit for bit against NumPy over layouts: C, Fortran, transposed, sliced, repeated."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from numpy.linalg import _umath_linalg

from chainrule import native
from chainrule.native.code import FIRST_INPUT, program
from chainrule.native.steps import (
    Operand,
    copy_steps,
    gufunc_steps,
    iteration,
    reduce_steps,
    reduction_start,
    ufunc_steps,
)

LAYOUTS = ["C", "F", "sliced", "transposed", "padded", "reversed", "repeated"]


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


def like(x: np.ndarray) -> np.ndarray:
    """Memory for a result that lies as x does."""
    if x.size == 0:
        return np.empty_like(x)
    return np.lib.stride_tricks.as_strided(np.full(x.size, 7, x.dtype), x.shape, x.strides)


def operands(arrays: list[np.ndarray]) -> list[Operand]:
    return [Operand(FIRST_INPUT + k, 0, a.shape, a.strides) for k, a in enumerate(arrays)]


def run(steps: list[list[int]], arrays: list[np.ndarray]) -> None:
    code = program(steps)
    native.execute(code, 0, code.size, np.array([0, 0, *(a.ctypes.data for a in arrays)], np.intp))


def results(function: np.ufunc, inputs: list[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        out = function(*inputs)
    return [np.asarray(array) for array in (out if isinstance(out, tuple) else (out,))]


UFUNCS = {
    f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc) and f.signature is None and f is not np.isnat
}


@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_elementwise(name):
    ufunc, rng = UFUNCS[name], np.random.default_rng(3)
    ran = refused = 0
    for index, types in enumerate(ufunc.types):
        ins, outs = types.split("->")
        if not set(types) <= set("?bBilefdFD->"):
            continue
        for shape, how in itertools.product([(6, 7), (2, 3, 5)], LAYOUTS):
            inputs = [laid_out(values(rng, shape, c), how if k == 0 else "transposed") for k, c in enumerate(ins)]
            try:
                wanted = results(ufunc, inputs)
            except (TypeError, ValueError):  # no negative integer powers
                continue
            if ufunc.types.index(types) != index or "".join(w.dtype.char for w in wanted) != outs:
                continue
            got = [like(w) for w in wanted]
            steps = ufunc_steps(ufunc, index, operands([*inputs, *got]))
            if steps is None:
                refused += 1
                assert re.search("[efdFD]", types) and (how != "C" or len(ins) > 1)
                continue
            ran += 1
            run(steps, [*inputs, *got])
            assert all(g.tobytes() == w.tobytes() for g, w in zip(got, wanted)), (types, shape, how)
    assert ran > refused


@pytest.mark.parametrize("name", ["tanh", "exp", "multiply", "add", "power", "less"])
@pytest.mark.parametrize("letter", ["f", "d"])
def test_large_operands_go_in_blocks(name, letter):
    ufunc, rng = UFUNCS[name], np.random.default_rng(4)
    inputs = [np.abs(values(rng, (70_001,), letter)) for _ in range(ufunc.nin)]
    (wanted,) = results(ufunc, inputs)
    index = next(k for k, types in enumerate(ufunc.types) if types.startswith(letter * ufunc.nin + "->"))
    got = like(wanted)
    run(ufunc_steps(ufunc, index, operands([*inputs, got])), [*inputs, got])
    assert got.tobytes() == wanted.tobytes()


def test_in_place_has_the_same_bits():
    rng = np.random.default_rng(5)
    for ufunc in (np.tanh, np.exp, np.log1p, np.sin):
        x = np.abs(values(rng, (1001,), "f"))
        (wanted,) = results(ufunc, [x])
        run(ufunc_steps(ufunc, ufunc.types.index("f->f"), operands([x, x])), [x, x])
        assert x.tobytes() == wanted.tobytes()


def test_axes_that_one_stride_covers_are_joined():
    assert [axis.length for axis in iteration((2, 3, 4), [(96, 32, 8), (0, 0, 0)])] == [24]
    assert [axis.length for axis in iteration((2, 3, 4), [(96, 32, 8), (0, 32, 8)])] == [2, 12]
    assert [axis.strides for axis in iteration((2, 3), [(8, 16)])] == [(8,)]
    assert iteration((1, 1), [(8, 8)]) == [(1, (0,))]


def test_copies_between_layouts():
    x = np.arange(24.0).reshape(2, 3, 4)
    for view in (x, x.T, x[:, ::-1], np.broadcast_to(x[:1], x.shape)):
        out = np.empty(view.shape)
        run(copy_steps(*operands([view, out]), 8), [view, out])
        assert np.array_equal(out, view)


# ---- reductions


def reduced(ufunc: np.ufunc, x: np.ndarray, axes: tuple[int, ...]) -> bool:
    """Whether steps were found; if so, they gave the bits of ``ufunc.reduce``."""
    wanted = np.asarray(ufunc.reduce(x, axis=axes))
    got = like(wanted)
    source, target = operands([x, got])
    arrays = [x, got]
    start = reduction_start(ufunc, x.dtype)
    if start is not None:
        arrays.append(start)
    place = None if start is None else Operand(FIRST_INPUT + 2, 0, (), ())
    index = ufunc.types.index(f"{x.dtype.char * 2}->{x.dtype.char}")
    steps = reduce_steps(ufunc, index, source, axes, target, place, x.dtype)
    if steps is None:
        return False
    run(steps, arrays)
    assert got.tobytes() == wanted.tobytes(), (ufunc.__name__, x.dtype, x.shape, x.strides, axes)
    return True


SHAPES = [
    (1,),
    (7,),
    (1000,),
    (20_000,),
    (5, 300),
    (300, 5),
    (3, 9000),
    (9000, 3),
    (1, 40),
    (40, 1),
    (6, 7, 40),
    (3, 4, 5, 6),
]


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum, np.logaddexp], ids=lambda f: f.__name__)
def test_reductions(ufunc):
    rng = np.random.default_rng(6)
    found = []
    letters = "fd" if ufunc is np.logaddexp else "efdFDl" if ufunc is np.add else "fdl"
    for shape, letter, how in itertools.product(SHAPES, letters, ["C", "F", "sliced", "transposed", "padded"]):
        x = laid_out(values(rng, shape, letter), how)
        for count in range(1, x.ndim + 1):
            for axes in itertools.combinations(range(x.ndim), count):
                with np.errstate(all="ignore"):
                    found.append(reduced(ufunc, x, axes))
    assert np.mean(found) > 0.85


def test_a_reduction_of_one_axis_at_a_time():
    rng = np.random.default_rng(7)
    x = values(rng, (40, 30), "d")
    assert reduced(np.subtract, x, (0,)) and reduced(np.subtract, x, (1,))
    assert reduced(np.add, np.zeros((3, 0)), (1,)) and reduced(np.add, np.zeros((0, 3)), (0,))


def test_signs_of_zeros():
    zeros = np.array([[-0.0, -0.0], [0.0, -0.0], [-0.0, 0.0]])
    for ufunc, axis in itertools.product([np.add, np.multiply, np.maximum, np.minimum], [0, 1]):
        assert reduced(ufunc, zeros, (axis,))
    assert np.signbit(np.add.reduce(np.array([-0.0]))) == np.False_


def test_layouts_whose_order_depends_on_the_version_are_refused():
    x = np.ones((40, 60))[:, :50]
    assert not reduced(np.add, x, (0, 1))
    assert not reduced(np.add, np.broadcast_to(np.ones(3), (4, 3)), (0,))
    assert reduced(np.add, np.ones((40, 60), np.int64)[:, :50], (0, 1))


# ---- gufuncs


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
        ((3, 0), (0, 5)),
    ],
)
def test_matmul(shapes):
    rng = np.random.default_rng(8)
    for letter, how in itertools.product("fdD", itertools.product(LAYOUTS[:5], repeat=2)):
        inputs = [
            laid_out(values(rng, shape, letter), h) for shape, h in zip(shapes, how) if 0 not in shape or h == "C"
        ]
        if len(inputs) == 2:
            same_as_gufunc(np.matmul, inputs)


def test_matmul_of_a_matrix_and_its_transpose():
    x = values(np.random.default_rng(9), (30, 40), "d")
    same_as_gufunc(np.matmul, [x, x.T])
    same_as_gufunc(np.matmul, [x.T, x])
    assert (x @ x.T).tobytes() == x.dot(x.T).tobytes()


def test_other_gufuncs():
    rng = np.random.default_rng(10)
    square, vectors = values(rng, (3, 4, 4), "d"), values(rng, (3, 4), "d")
    for name in ("vecdot", "matvec", "vecmat"):
        if hasattr(np, name):
            inputs = {"vecdot": [vectors, vectors], "matvec": [square, vectors], "vecmat": [vectors, square]}[name]
            same_as_gufunc(getattr(np, name), inputs)
    same_as_gufunc(_umath_linalg.solve, [square, square])
    same_as_gufunc(_umath_linalg.inv, [square.swapaxes(1, 2)])
    same_as_gufunc(_umath_linalg.slogdet, [square])


def same_as_gufunc(ufunc: np.ufunc, inputs: list[np.ndarray]) -> None:
    wanted = results(ufunc, inputs)
    got = [like(w) for w in wanted]
    letters = "".join(a.dtype.char for a in inputs)
    index = next(k for k, types in enumerate(ufunc.types) if types.startswith(letters + "->"))
    run(gufunc_steps(ufunc, index, operands([*inputs, *got])), [*inputs, *got])
    assert all(g.tobytes() == w.tobytes() for g, w in zip(got, wanted)), [(a.shape, a.strides) for a in inputs]
