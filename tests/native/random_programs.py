"""Compare random compiled programs with eager execution; with tools/fence.c, access out of bounds crashes.

python -m tests.native.random_programs [NUMBER] [FIRST SEED]
"""

from __future__ import annotations

import operator
import sys
from collections import Counter
from typing import Any

import numpy as np

from chainrule._src import native
from chainrule._src.arrays.any_array import ensure_strides, with_strides
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.compiling.scan_lowering import LoopOrder, ProgramLoop
from chainrule._src.interpreters.rebuilt import ArrayPlaceholder, Rebuilt
from chainrule._src.interpreters.trace_types import Program
from tests.compiling.recording import ProgramBuilder
from tests.native.random_loops import LoopMaker

LETTERS = "fffdddFDle"
UNARY = [np.negative, np.tanh, np.exp, np.sqrt, np.square, np.absolute, np.log1p, np.sin, np.sign, np.isfinite]
BINARY = [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.arctan2, np.less]
REDUCTIONS = [np.add, np.maximum, np.multiply]


class Maker:
    """Makes a program, one call after the other."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.letter = str(self.rng.choice(list(LETTERS)))
        large = self.rng.random() < 0.2
        sizes = self.rng.integers(1, 300 if large else 12, 3)
        self.shapes = [tuple(sizes[:k]) for k in range(4)] if not large else [(), (sizes[0],), tuple(sizes[:2])]
        self.program = ProgramBuilder(*[self.array() for _ in range(self.rng.integers(1, 4))], constants=[self.array()])
        self.known: list[Any] = [*self.program.inputs, *self.program.constants]

    def array(self) -> np.ndarray:
        shape = self.shapes[self.rng.integers(len(self.shapes))]
        letter = self.letter if self.rng.random() < 0.8 else self.rng.choice(list(LETTERS))
        x = (3 * self.rng.standard_normal(shape)).astype(letter)
        if self.rng.random() < 0.3:  # strided, with a negative stride
            steps = [int(step) for step in self.rng.choice([1, 2, 3, -1, -2], len(shape))]
            wide = np.empty([n * abs(step) for n, step in zip(shape, steps, strict=True)], x.dtype)
            x = with_strides(x, wide[tuple([slice(None, None, step) for step in steps])].strides)
        return x.T.copy("K").T if self.rng.random() < 0.3 else x

    def pick(self) -> Any:
        return self.known[self.rng.integers(len(self.known))]

    def grow(self) -> None:
        x, program = self.pick(), self.program
        ndim = len(x.shape)
        axis = int(self.rng.integers(ndim)) if ndim else 0
        kind = self.rng.integers(17)
        if kind <= 2:
            new = program(UNARY[self.rng.integers(len(UNARY))], x)
        elif kind <= 5:
            new = program(BINARY[self.rng.integers(len(BINARY))], x, self.pick() if self.rng.random() < 0.8 else 1.5)
        elif kind == 6 and ndim:
            axes = tuple(int(a) for a in range(ndim) if self.rng.random() < 0.6)
            new = program(REDUCTIONS[self.rng.integers(3)], x, method="reduce", axis=axes or None)
        elif kind == 7 and ndim > 1:
            new = program(np.matmul, x, program(np.swapaxes, x, -1, -2))
        elif kind == 8 and ndim:
            new = program(np.concatenate, [x, x], axis) if self.rng.random() < 0.5 else program(np.stack, [x, x], axis)
        elif kind == 9:
            new = program(np.where, program(np.less, x, 0.0), x, 0.25)
        elif kind == 10 and ndim:
            new = program(np.flip, x, axis)
        elif kind == 11:
            new = program(np.astype, x, np.dtype(self.rng.choice(list("fdD")))) if hasattr(np, "astype") else x
        elif kind == 12 and ndim:
            new = program(np.broadcast_to, x, (2, *x.shape))
        elif kind == 13 and ndim:
            new = program(np.add, x, method="accumulate", axis=axis)
        elif kind == 14 and x.array.size:
            new = self.written(x)
        elif kind == 15:
            new = program(with_strides, x, self.pick_alike(x).array.strides)
        elif kind == 16 and ndim:
            new = program(operator.getitem, x, self.basic_index(ndim))
        else:
            new = program(np.reshape, x, (-1,))
        if new.array.size < 400_000:
            self.known.append(new)

    def pick_alike(self, x: Any) -> Any:
        """Return a value of the same shape and dtype."""
        alike = [other for other in self.known if other.shape == x.shape and other.dtype == x.dtype]
        return alike[self.rng.integers(len(alike))]

    def basic_index(self, ndim: int) -> tuple[Any, ...]:
        steps = self.rng.choice([-3, -2, -1, 1, 2, 3], ndim)
        return tuple([slice(None, None, int(step)) for step in steps[: self.rng.integers(1, ndim + 1)]])

    def written(self, x: Any) -> Any:
        """Return a copy with values written or added at integer arrays for all axes or the first ones, or at a basic index."""
        rng, shape = self.rng, x.shape
        function: Any = np.add.at if rng.random() < 0.3 else operator.setitem
        if not shape or rng.random() < 0.2:
            index: Any = self.basic_index(len(shape)) if shape else ()
            arrays = []
        else:
            axes = int(rng.integers(1, len(shape) + 1))
            common = tuple(rng.integers(1, 9, rng.integers(1, 3)))
            arrays = [self.program.var(self.positions(length, common)) for length in shape[:axes]]
            self.program.constants += arrays
            index = tuple([ArrayPlaceholder(2 + k) for k in range(axes)])
        wanted = x.array[tuple([array.array for array in arrays]) if arrays else index].shape
        values = self.pick()
        if values.dtype != x.dtype or values.shape != wanted:
            values = self.program.var(with_strides(np.ones(wanted, x.dtype), self.some_strides(wanted, x.dtype)))
            self.program.constants.append(values)
        return self.program(
            Rebuilt(function, (ArrayPlaceholder(0), index, ArrayPlaceholder(1)), {}, (), (), (0,)), x, values, *arrays
        )

    def positions(self, length: int, shape: tuple[int, ...]) -> np.ndarray:
        x = self.rng.integers(-length, length, shape)
        return with_strides(x, self.some_strides(shape, x.dtype)) if self.rng.random() < 0.3 else x

    def some_strides(self, shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
        signs = self.rng.choice([1, 1, -1], len(shape))
        return tuple([int(sign) * stride for sign, stride in zip(signs, np.empty(shape, dtype).strides, strict=True)])


def check(seed: int) -> str:
    """Compare a program with eager at other inputs. Return the executor of its plan, and whether it has loops."""
    if seed % 3 == 1:
        return check_iterated(seed)
    maker = Maker(seed)
    if seed % 3 == 0:  # has loops
        program = LoopMaker(seed).make()
        return compare(program, maker.rng, seed)
    for _ in range(maker.rng.integers(1, 25)):
        try:
            maker.grow()
        except (TypeError, ValueError):  # shapes that do not broadcast, operations that a dtype does not support
            continue
    program = maker.program
    made = maker.known[len(program.inputs) + len(program.constants) :]
    program.outputs = made[-1:] + [var for var in made[:-1] if maker.rng.random() < 0.2] or [program.inputs[0]]
    for x in program.inputs:
        if maker.rng.random() < 0.3:
            program.writes.append((x, maker.pick_alike(x)))
    return compare(program, maker.rng, seed)


def check_iterated(seed: int) -> str:
    """Compare a program as a loop body with eager, on stacks of various memory layouts."""
    maker = Maker(seed)
    program, rng = maker.program, maker.rng
    first, *others = program.inputs
    first.array = np.array(first.array, order="C")
    for _ in range(rng.integers(1, 12)):
        try:
            maker.grow()
        except (TypeError, ValueError):
            continue
    mapped, length, reverse = int(rng.integers(len(others) + 1)), int(rng.integers(1, 9)), bool(rng.random() < 0.5)
    program.outputs = [maker.pick_alike(first), *[var for var in maker.known if rng.random() < 0.3]]
    stacks = range(1, len(program.outputs))
    loop = ProgramLoop(Program(program.inputs, program.constants, program.calls, program.outputs, []), 1, mapped)
    shapes = [(length,) * (1 <= k <= mapped) + x.shape for k, x in enumerate(program.inputs)]
    arrays = [(3 * rng.standard_normal(shape)).astype(x.dtype) for shape, x in zip(shapes, program.inputs, strict=True)]
    arrays = [with_strides(x, maker.some_strides(x.shape, x.dtype)) for x in arrays]
    found = loop.run(arrays, LoopOrder(length, reverse, tuple(range(len(arrays))), (0,), tuple(stacks), (0,)), None)
    carry, *wanted = arrays[0], *[np.empty_like(x) for x in found[1:]]
    for i in range(length)[:: -1 if reverse else 1]:
        given = [carry, *[x[i, ...] if k < mapped else x for k, x in enumerate(arrays[1:])]]
        given = [ensure_strides(x, var.array.strides) for x, var in zip(given, program.inputs, strict=True)]
        made = program.eager(*given)
        for stack, x in zip(wanted, [*made[1:], carry], strict=True):
            stack[i] = x
        carry = made[0]
    for got, expected in zip(found, [carry, *wanted], strict=True):
        assert got.tobytes() == expected.tobytes(), f"seed {seed}: a loop"
    return "iterated" if loop.is_native else "iterated by Python"


def compare(program: ProgramBuilder, rng: np.random.Generator, seed: int) -> str:
    plan = ExecutionPlan(program)
    inputs = [with_strides(x.array, x.array.strides) for x in program.inputs]
    for x in inputs:
        x[...] = (3 * rng.standard_normal(x.shape)).astype(x.dtype)
    targets, values = [x for x, _ in program.writes], [value for _, value in program.writes]
    count, program.outputs = len(program.outputs), [*program.outputs, *values]
    wanted = [np.array(x) for x in program.eager(*inputs)]
    found = plan.run(inputs)
    found += [inputs[program.inputs.index(x)] for x in targets]
    assert len(found) == count + len(values)
    for got, expected in zip(found, wanted, strict=True):
        assert got.tobytes() == expected.tobytes(), f"seed {seed}:\n{plan}"
    return f"{plan.executor}, loops" if plan.loops else plan.executor


def main(count: str = "400", first: str = "0") -> None:
    try:
        import fence
    except ImportError:
        print("without fences")
    else:
        fence.install()
    assert native.AVAILABLE, native.why_not
    np.seterr(all="ignore")
    print(Counter(check(seed) for seed in range(int(first), int(first) + int(count))))


if __name__ == "__main__":
    main(*sys.argv[1:])
