"""Lines read in the source of random programs, against those that were recorded while they ran."""

import linecache
import random

import pytest

import chainrule as cr
from chainrule.core.engine import reachable
from chainrule.core.node import Node
from chainrule.errors.source import Names, recorded_line

HEAD = """\
x, t = cr.tensor([.1, .2], requires_grad=True), 0
f = lambda v: v * 7
class O: w = x * 11
o = O()
a, b, c, h = x * 1, x * 1.5, cr.sin(x), x
"""


class Program:
    """Random statements about a, b, c and h."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        inside = self.r.random() < 0.4
        body = [*self.block(self.r.randint(4, 9), 0), "probe()"]
        if inside:
            body = ["def main(a, b, c, h, t):", *["    " + line for line in body], "main(a, b, c, h, t)"]
        self.text = HEAD + "\n".join(body) + "\n"

    def name(self):
        return self.r.choice("abch")

    def expression(self, depth=0):
        if depth > 1 or self.r.random() < 0.25:
            return self.name()
        one, two = self.expression(depth + 1), self.expression(depth + 1)
        return self.r.choice(
            [
                f"{one} * {self.r.choice([2, 3, 5])}",
                f"({one} + {two})",
                f"({one}) * ({two})",
                f"cr.{self.r.choice(['sin', 'tanh'])}({one})",
                f"({one}).tanh()",
                f"f({one})",
                f"-({one})",
                f"({one} if t % 2 else {two})",
            ]
        )

    def block(self, size, depth):
        return [line for _ in range(size) for line in self.statement(depth)]

    def statement(self, depth):
        x, y = self.r.sample("abch", 2)
        value = self.expression()
        kind = self.r.random()
        if depth < 2 and kind < 0.25:
            inner = ["    " + line for line in self.block(self.r.randint(1, 3), depth + 1)]
            if kind < 0.15:
                return [f"for t in range({self.r.randint(0, 3)}):", *inner]
            return [f"if t % 2 == {self.r.randint(0, 1)}:", *inner, "else:", f"    {x} = {value}"]
        return self.r.choice(
            [
                *[[f"{x} = {value}"]] * 4,
                [f"{x} = {y} = {value}"],
                [f"{x}, {y} = {value}, {self.expression()}"],
                [f"{x} = ({y} := {value}) * 2"],
                [f"{x} = {y}.clone(); {x} += {self.expression(1)}"],
                [f"{x} = {y}.clone(); {x}[0] = ({self.expression(1)})[1]"],
                [f"while t < 3: t += 1; {x} = {value}"],
                [f"o.w = {value}", f"{x} = o.w * 2"],
                [f"{x} = sum([q * 2 for q in ({x}, {y})])"],
                [f"del {x}", f"{x} = {y}"],
                ["probe()"],
            ]
        )


@pytest.mark.parametrize("start", range(0, 100, 25))
def test_no_line_is_wrong(tmp_path, start):
    found = []

    def probe():
        names = Names()
        outs = [f.thing._edge for f in names.found if getattr(f.thing, "_edge", None) is not None]
        for node in [n for n in reachable(outs) if isinstance(n, Node)]:
            ran = recorded_line(node)
            if ran is not None and ran.line > 2:  # where f was called is right as well
                del node.metadata["line"]
                found.append((names.line(node), ran))
                node.metadata["line"] = ran

    for seed in range(start, start + 25):
        program = Program(seed)
        file = str(tmp_path / f"p{seed}.py")
        linecache.cache[file] = (len(program.text), None, program.text.splitlines(keepends=True), file)
        try:
            with cr.record_lines():
                exec(compile(program.text, file, "exec"), {"cr": cr, "probe": probe})
        except RuntimeError:  # written in place what is saved, or a leaf
            continue
        wrong = [pair for pair in found if pair[0] is not None and pair[0].line != pair[1].line]
        assert wrong == [], program.text
    assert sum(read is not None for read, _ in found) > 0.4 * len(found) > 50
