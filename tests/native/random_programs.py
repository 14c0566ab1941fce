"""Random programs as plans of native loops, against eager, on memory with fences (tools/fence.c) if there are any.

python -m tests.native.random_programs [NUMBER] [FIRST SEED]
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np

from chainrule._src import native
from chainrule._src.compiling.plan import Plan
from tests.compiling.recording import Written
from tests.native.random_loops import LoopMaker

LETTERS = "fffdddFDle"
UNARY = [np.negative, np.tanh, np.exp, np.sqrt, np.square, np.absolute, np.log1p, np.sin, np.sign, np.isfinite]
BINARY = [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.arctan2, np.less]
REDUCTIONS = [np.add, np.maximum, np.multiply]


class Maker:
    """Grows a program by one call after the other."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.letter = str(self.rng.choice(list(LETTERS)))
        large = self.rng.random() < 0.2
        sizes = self.rng.integers(1, 300 if large else 12, 3)
        self.shapes = [tuple(sizes[:k]) for k in range(4)] if not large else [(), (sizes[0],), tuple(sizes[:2])]
        self.program = Written(*[self.array() for _ in range(self.rng.integers(1, 4))], constants=[self.array()])
        self.known: list[Any] = [*self.program.inputs, *self.program.constants]

    def array(self) -> np.ndarray:
        shape = self.shapes[self.rng.integers(len(self.shapes))]
        letter = self.letter if self.rng.random() < 0.8 else self.rng.choice(list(LETTERS))
        x = (3 * self.rng.standard_normal(shape)).astype(letter)
        return np.asfortranarray(x) if self.rng.random() < 0.3 else x

    def pick(self) -> Any:
        return self.known[self.rng.integers(len(self.known))]

    def grow(self) -> None:
        x, program = self.pick(), self.program
        ndim = len(x.shape)
        axis = int(self.rng.integers(ndim)) if ndim else 0
        kind = self.rng.integers(14)
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
        else:
            new = program(np.reshape, x, (-1,))
        if new.array.size < 400_000:
            self.known.append(new)


def check(seed: int) -> str:
    """Compare a program with eager at other inputs; the executor of its plan, and whether it has loops."""
    maker = Maker(seed)
    if seed % 3 == 0:  # has loops
        program = LoopMaker(seed).make()
        return compare(program, maker.rng, seed)
    for _ in range(maker.rng.integers(1, 25)):
        try:
            maker.grow()
        except (TypeError, ValueError):  # shapes that do not broadcast, operations that a dtype does not have
            continue
    program = maker.program
    made = maker.known[len(program.inputs) + len(program.constants) :]
    program.outputs = made[-1:] + [var for var in made[:-1] if maker.rng.random() < 0.2] or [program.inputs[0]]
    return compare(program, maker.rng, seed)


def compare(program: Written, rng: np.random.Generator, seed: int) -> str:
    plan = Plan(program)
    inputs = [x.array.copy("K") for x in program.inputs]
    for x in inputs:
        x[...] = (3 * rng.standard_normal(x.shape)).astype(x.dtype)
    for got, wanted in zip(plan.run(inputs), program.eager(*inputs), strict=True):
        assert got.tobytes() == wanted.tobytes(), f"seed {seed}:\n{plan}"
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
