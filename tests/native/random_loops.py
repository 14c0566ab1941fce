"""Random programs with loops: the bodies read carried values, rows of data, and values that an earlier loop saved."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import with_strides
from chainrule._src.interpreters.rebuilt import ArrayPlaceholder, Rebuilt
from tests.compiling.recording import ProgramBuilder

UNARY = [np.negative, np.tanh, np.sin, np.absolute, np.sqrt, np.exp]
BINARY = [np.add, np.subtract, np.multiply, np.maximum, np.arctan2]


class Body:
    """A loop body: a fixed list of operations with their kinds and sources of operands."""

    def __init__(self, maker: LoopMaker, depth: int) -> None:
        rng = maker.rng
        self.ops = []
        for _ in range(rng.integers(2, 9)):
            kind = 12 if depth < maker.deepest and rng.random() < maker.nested else int(rng.choice([*range(12), 13]))
            refs = [(str(rng.choice(maker.sources)), int(rng.integers(1 << 16))) for _ in range(2)]
            inner = Body(maker, depth + 1) if kind == 12 else None
            self.ops.append((kind, int(rng.integers(1 << 16)), refs, inner, int(rng.integers(4, 12))))
        self.first, self.last = rng.random() < 0.3, rng.random() < 0.3
        self.next = [-1, int(rng.integers(1 << 16))]


class LoopMaker:
    """Makes a program of two loops. The second loop may read values that the first one saved, in reverse order.

    Args:
        nested: the probability that an operation of a body is a loop.
        deepest: the maximum number of loops around a loop.
    """

    def __init__(self, seed: int, nested: float = 0.1, deepest: int = 1) -> None:
        self.nested, self.deepest = nested, deepest
        self.rng = rng = np.random.default_rng(seed)
        self.size = int(rng.integers(4096, 6000)) if rng.random() < 0.05 else int(rng.integers(1, 12))
        self.count = int(rng.integers(3, 30))
        letter = str(rng.choice(list("ffdddD")))

        def array(*shape: int) -> np.ndarray:
            return rng.standard_normal(shape).astype(letter)

        small = self.size < 100
        most = max(self.count, 12)
        rows = array(self.size, 2 * most).T if rng.random() < 0.3 else array(2 * most, self.size)
        rows = rows[:, ::-1] if rng.random() < 0.2 else rows
        inputs = [array(self.size), rows, array(self.size, self.size) if small else array(1, 1)]
        self.program = ProgramBuilder(*inputs, constants=[array(self.size) for _ in range(most)])
        self.start, self.rows, self.matrix = self.program.inputs
        self.sources = ["carried", "carried", "made", "made", "row", "fixed", "older", "number", "constant", "saved"]
        self.saved: list[Any] = []
        self.kept: list[Any] = []

    def make(self) -> ProgramBuilder:
        rng = self.rng
        state = [self.start, self.start]
        for _ in range(rng.integers(1, 3)):
            before, self.saved = self.saved, []
            backwards, saves = rng.random() < 0.6, rng.random() < 0.7
            state = self.loop(Body(self, 0), self.count, state, before, backwards, saves)
        outputs = [*state, *[x for x in self.saved if rng.random() < 0.1], *self.kept[:2]]
        if self.saved and rng.random() < 0.3:
            outputs.append(self.program(np.stack, self.saved))
        self.program.outputs = outputs
        return self.program

    def loop(
        self, body: Body, count: int, state: list[Any], before: list[Any], backwards: bool = False, saves: bool = False
    ) -> list[Any]:
        program, older = self.program, state
        for time in range(count):
            made = [state[0]]
            at = count - 1 - time if backwards else time
            if (body.first and time == 0) or (body.last and time == count - 1):
                made.append(program(np.add, state[0], 0.25))
            for kind, choice, refs, inner, times in body.ops:
                x, y = [self.operand(source, k, made, state, older, before, at) for source, k in refs]
                made.append(self.operation(kind, choice, x, y, inner, times, made, state, before))
            older, state = state, [made[k % len(made)] for k in body.next]
            if saves:
                self.saved.append(made[-1])
            if self.rng.random() < 0.02:
                self.kept.append(made[-1])
        return state

    def operand(
        self, source: str, k: int, made: list[Any], state: list[Any], older: list[Any], before: list[Any], at: int
    ) -> Any:
        if source == "made":
            return made[-1 - k % len(made)]
        if source == "row":
            return self.program(operator.getitem, self.rows, (at, at + self.count, 2 * at, -1 - at)[k % 4])
        if source == "number":
            return (0.5, 0.1 * at, -1.5)[k % 3]
        if source == "constant":
            return self.program.constants[at if k % 2 else 0]
        if source == "saved" and len(before) > at:
            return before[(at, len(before) - 1 - at)[k % 2]]
        return {"older": older[k % 2], "fixed": self.start}.get(source, state[k % 2])

    def operation(
        self, kind: int, choice: int, x: Any, y: Any, inner: Any, times: int, made: list[Any], state: Any, before: Any
    ) -> Any:
        program = self.program
        if isinstance(x, float):
            x = state[0]
        if kind <= 2:
            return program(UNARY[choice % len(UNARY)] if x.dtype.kind == "f" else np.negative, x)
        if kind <= 6:
            return program(BINARY[choice % (5 if x.dtype.kind == "f" else 3)], x, y)
        if kind == 7:
            return program(np.add, x, program(np.add, x, method="reduce", axis=0))
        if kind == 8:
            return program(np.flip, x, 0)
        if kind == 9:
            cut = choice % (self.size + 1)
            parts = [program(operator.getitem, x, slice(cut, None)), program(operator.getitem, x, slice(None, cut))]
            return program(np.concatenate, parts, 0)
        if kind == 10:
            return program(np.matmul, self.matrix, x) if self.matrix.shape == 2 * (self.size,) else program(np.sin, x)
        if kind == 11:
            return program(np.add, x, method="accumulate", axis=0)
        if kind == 13:
            laid = program(with_strides, x, (x.dtype.itemsize * (-2, -1, 1, 3)[choice % 4],))
            values = program(np.multiply, program(operator.getitem, laid, slice(0, 3)), 0.5)
            index = np.arange(values.shape[0]) - choice % self.size
            self.program.constants.append(program.var(index))
            written = Rebuilt(
                operator.setitem, (ArrayPlaceholder(0), ArrayPlaceholder(2), ArrayPlaceholder(1)), {}, (), (), (0,)
            )
            return program(written, laid, values, self.program.constants[-1])
        return self.loop(inner, times, [x, made[-1]], before)[0]
