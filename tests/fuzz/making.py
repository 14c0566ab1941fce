"""Generate programs by running them: the placeholders of a template are filled according to the current values.

A program runs during its generation with the reference library (PyTorch if it is available), so that statements remain that
only the other library rejects. A program is a list of statements with their kinds; a statement in a function's body is a
line of the statement that defines the function.
"""

import itertools
import math
import random
import re
from typing import Any, NamedTuple

import numpy as np

from chainrule._src.tape.protocol import memory_of

from . import numpy_templates
from .templates import EINSUMS, INPLACE, RECORD, TEMPLATES, WEIGHTS

HOLE = re.compile(r"\{(\w+)\}")
# The statements of a transformed function: nothing with a graph of its own.
PURE = [kind for kind in WEIGHTS if kind not in RECORD and kind not in INPLACE] + list(INPLACE)
# Operations that finite differences detect and gradients do not, and those that vmap rejects.
CUTS = re.compile(r"detach|\.data|nonzero|argwhere|item|tolist|torch\.where\(\{m\}\)|float32|float\(|long|bool")
SMOOTH = [kind for kind in PURE if kind not in ("comparison", "dtype", "sorting")]


class Statement(NamedTuple):
    kind: str
    text: str


class Rejected(Exception):
    """Raised if no value fits a placeholder, or the result is useless."""


def dtype_of(x: Any) -> str:
    return str(x.dtype).rpartition(".")[2]


def kind_of(x: Any) -> str:
    name = dtype_of(x)
    return {"b": "b", "f": "f", "c": "c"}.get(name[0], "i") if name != "bool" else "b"


def memory(x: Any) -> int:
    """Return an identifier that is the same for all tensors that share memory."""
    if not hasattr(x, "untyped_storage") or hasattr(x, "_raw"):
        x = np.asarray(x) if isinstance(x, np.generic) else memory_of(getattr(x, "_raw", x))
        while isinstance(x.base, np.ndarray):
            x = x.base
        return id(x)
    return x.untyped_storage().data_ptr()


def apart(x: Any) -> bool:
    """Return whether no two elements share memory."""
    return 0 not in (x.stride() if hasattr(x, "stride") else x.strides)


def largest(x: Any) -> float:
    return float(abs(x.detach() if hasattr(x, "detach") else x).max()) if count(x) and dtype_of(x) != "bool" else 0.0


def count(x: Any) -> int:
    return math.prod(x.shape)


class Maker:
    """The statements of a block, and the values that they gave when they ran."""

    templates, weights, array = TEMPLATES, WEIGHTS, "torch.tensor"

    def __init__(self, torch: Any, rng: random.Random, outer: "Maker | None" = None, kinds: Any = None, **tensors: Any):
        self.torch, self.rng, self.outer = torch, rng, outer
        self.depth = outer.depth + 1 if outer else 0
        self.count = outer.count if outer else itertools.count()
        self.env = {**outer.env} if outer else {"torch": torch, "log": []}
        self.env.update(tensors)
        self.names = [*tensors] if outer is None else [*outer.names[-6:], *tensors]
        self.own = set() if outer else None  # names that a function's body may write to; None: any
        self.kinds = kinds or [*self.weights]
        self.avoid: re.Pattern[str] | None = outer.avoid if outer else None
        self.statements: list[Statement] = []
        self.definitions: list[str] = []
        self.x = self.v = ""

    # ---- filling placeholders

    def pick(self, wanted: str = "t", fits: Any = None, named: Any = None) -> str:
        """Return a name; recent ones are more likely."""
        names = [n for n in self.names if (named is None or n in named) and self.suits(n, wanted, fits)]
        for _ in range(min(len(names), 4)):
            name = names[min(len(names) - 1, int(len(names) * self.rng.random() ** 0.6))]
            if largest(self.env[name]) < 1e3:
                return name
        raise Rejected

    def suits(self, name: str, wanted: str, fits: Any) -> bool:
        x = self.env[name]
        try:
            return (wanted == "t" or kind_of(x) == wanted) and (fits is None or fits(x))
        except RuntimeError:  # PyTorch: views created in no_grad whose base was written outside
            return False

    def broadcasts(self, y: Any) -> bool:
        return all(a == b or b == 1 for a, b in zip(self.env[self.x].shape[::-1], y.shape[::-1]))

    def hole(self, name: str) -> str:
        rng, env = self.rng, self.env
        if not self.x and name not in "tibcfgolvVknrqe":
            self.x = self.pick("f")
        x = env.get(self.x)
        match name:
            case "t" | "i" | "b" | "c":
                self.x = self.pick(name)
            case "f":
                self.x = self.pick("f" if rng.random() < 0.97 else "t")
            case "o":
                self.x = self.pick("f" if rng.random() < 0.9 else "t", apart, self.own)
            case "g":
                self.x = self.pick("f" if rng.random() < 0.97 else "t")
                return f"({self.x}.grad_fn, {self.x})[1]"
            case "l":
                return self.pick("f", lambda t: t.is_leaf and t.requires_grad)
            case "s":
                return self.pick("f", lambda t: t.shape == x.shape)
            case "w":
                return self.pick("f", self.broadcasts if rng.random() < 0.9 else None)
            case "v":
                self.v = f"v{next(self.count)}"
                return self.v
            case "V":
                return self.v
            case "k":
                return rng.choice(["2", "0.5", "-1.5", "0.3", "3", "1.0", "-2", "0.7"])
            case "n":
                return str(rng.randint(1, 3))
            case "r":
                return rng.choice(["'sum'", "'prod'", "'mean'", "'amax'", "'amin'"])
            case "q":
                return rng.choice(["'prod'", "'mean'", "'amax'", "'amin'"])
            case "d":
                return str(rng.randrange(-x.ndim, x.ndim)) if x.ndim else rng.choice(["0", "-1"])
            case "D":
                return str(tuple(rng.sample(range(x.ndim), rng.randint(min(x.ndim, 1), x.ndim))))
            case "p":
                return str(tuple(rng.sample(range(x.ndim), x.ndim)))
            case "e":
                return self.fill(rng.choice(EINSUMS))
            case "m":
                if rng.random() < 0.3:
                    return self.pick("b", lambda t: t.shape == x.shape)
                return rng.choice([f"({self.x} > 0.1)", f"({self.x} < 0)", f"({self.x}.abs() > 0.4)"])
            case "I":
                size = x.shape[0] if x is not None and x.ndim else 1
                return f"{self.array}({[rng.randrange(size or 1) for _ in range(rng.randint(1, 3))]})"
            case "J":
                least = min(x.shape, default=1) or 1
                return f"(torch.arange({count(x)}).reshape({tuple(x.shape)}) % {rng.randint(1, least)})"
            case "U":
                axis = rng.randrange(-x.ndim, x.ndim) if x.ndim else 0
                turned = rng.choice(["", f".flip({axis})"])
                return f"{axis}, torch.arange({count(x)}).reshape({tuple(x.shape)}).argsort({axis}){turned}"
            case "sh":
                return str(self.shape(x))
            case "ix":
                return self.index(x)
        return self.x

    def shape(self, x: Any) -> tuple[int, ...]:
        size, shape = count(x), []
        while size > 1 and len(shape) < 3:
            factor = self.rng.choice([k for k in range(1, size + 1) if size % k == 0])
            shape.append(factor)
            size //= factor
        shape.append(size)
        if self.rng.random() < 0.4:
            shape[self.rng.randrange(len(shape))] = -1
        return tuple(shape)

    def index(self, x: Any) -> str:
        """Return an index of slices, numbers, None, an ellipsis, lists, tensors and masks.

        Numbers and arrays are adjacent, because NumPy's rule applies otherwise (docs/compat.md).
        """
        rng, parts, axis = self.rng, [], 0
        if x.ndim == 0:
            return rng.choice(["()", "None", "...", "True"])
        advanced = rng.random() < 0.45
        while axis < x.ndim and len(parts) < 5:
            size = x.shape[axis]
            roll = rng.random()
            entry = str(rng.randrange(-size, size)) if size else ":"
            if roll < 0.25:
                start, stop, step = rng.randrange(size + 1), rng.randrange(-1, size + 2), rng.randint(1, 2)
                entry = rng.choice([":", "::2", f"{start}:", f":{stop}", f"{start}:{stop}:{step}"])
            elif roll < 0.35:
                parts.append("None")
                continue
            elif roll < 0.42 and "..." not in parts:
                parts.append("...")
                axis += rng.randint(0, x.ndim - axis)
                continue
            elif advanced and size:
                length = rng.randint(1, 2)
                chosen = [rng.randrange(-size, size) for _ in range(length)]
                ways = [str(chosen), f"{self.array}({chosen})", f"{self.array}({[chosen]})"]
                ways.append(f"{self.array}({[rng.random() < 0.6 for _ in range(size)]})")
                entry = rng.choice([*ways, ":", ":", str(chosen[0])])
            parts.append(entry)
            axis += 1
            if rng.random() < 0.3:
                break
        arrays = [k for k, part in enumerate(parts) if "[" in part]
        if arrays:
            numbers = [k for k, part in enumerate(parts) if part.lstrip("-").isdigit()]
            both = sorted(arrays + numbers)
            if both != list(range(both[0], both[-1] + 1)):
                parts = [":" if k in numbers else part for k, part in enumerate(parts)]
        return ", ".join(parts)

    def fill(self, template: str) -> str:
        return HOLE.sub(lambda hole: self.hole(hole[1]), template)

    # ---- statements

    def step(self) -> None:
        kind = self.rng.choices(self.kinds, [self.weights[k] for k in self.kinds])[0]
        self.x, self.definitions = "", []
        try:
            template = self.rng.choice(self.templates[kind]) if kind != "transformation" else ""
            if self.avoid and self.avoid.search(template):
                return
            text = self.fill(template) if template else self.transformation()
            if text.startswith("!"):
                self.attempt(kind, text[1:])
            else:
                self.attempt(kind, text, f"v{next(self.count)}")
        except (Rejected, RuntimeError):  # PyTorch: reading a view that it does not allow
            pass

    def attempt(self, kind: str, text: str, name: str = "") -> None:
        """Run a statement; keep it if it succeeds, and sometimes if it fails."""
        statement = "\n".join([*self.definitions, f"{name} = {text}" if name else text])
        before = set(self.env)
        try:
            exec(statement, self.env)
        except Exception as error:
            if (
                self.depth
                or isinstance(error, (SyntaxError, UnboundLocalError, RecursionError))
                or self.rng.random() > 0.08
            ):
                raise Rejected from None
        else:
            for new in [n for n in self.env if n not in before and n[0] == "v"]:
                self.register(new, of_old=text)
        self.statements.append(Statement(kind, statement))

    def register(self, name: str, of_old: str) -> None:
        value = self.env[name]
        if not hasattr(value, "dtype") or not hasattr(value, "sum"):  # dtypes have a shape and a dtype, too
            return
        if count(value) > 150 or value.ndim > 5:
            raise Rejected
        self.names.append(name)
        if self.own is not None and memory(value) not in self.foreign():
            self.own.add(name)

    def foreign(self) -> set[int]:
        """Return the memory that a function's body did not allocate."""
        return {memory(self.env[n]) for n in self.names if n not in self.own and n != self.names[-1]}

    # ---- functions and transformations

    def define(self, *examples: str, scalar: bool, length: int = 0, kinds: Any = None, values: Any = None) -> str:
        """Define a function of tensors like the examples and return its name. Its source precedes the current statement."""
        name = f"f{next(self.count)}"
        args = [f"a{next(self.count)}" for _ in examples]
        values = values or [self.env[e] for e in examples]
        kinds = kinds or [k for k in PURE if k != "linalg"]
        if self.depth < 3:
            kinds = [*kinds, "transformation"]
        inner = Maker(self.torch, self.rng, self, kinds, **dict(zip(args, values)))
        inner.names += args * 2  # more likely
        for _ in range(length or self.rng.randint(1, 4)):
            inner.step()
        made = [
            n for n in inner.names if n in inner.own and kind_of(inner.env[n]) == "f" and largest(inner.env[n]) < 1e3
        ]
        if not made:
            raise Rejected
        if scalar:
            ends = self.rng.sample(made, min(len(made), 3)) if length else made[-2:]
            result = " + ".join(f"{n}.{self.rng.choice(['sin', 'tanh', 'square', 'clone'])}().sum()" for n in ends)
        else:
            result = made[-1]
            if count(inner.env[result]) > 12:
                raise Rejected
        lines = [*"\n".join(s.text for s in inner.statements).split("\n"), f"return {result}"]
        self.definitions.append("\n    ".join([f"def {name}({', '.join(args)}):", *lines]))
        return name

    def transformation(self) -> str:
        rng = self.rng
        x = self.pick("f", lambda t: 0 < count(t) <= 12)
        value = self.env[x]
        ways = ["grad", "grad", "vjp", "jvp", "jacrev", "jacfwd", "vmap", "vmap", "dual"]
        if self.depth < 2:  # each of these differentiates at least twice
            ways += ["hessian", "two", "functional", "hvp"]
        match rng.choice(ways):
            case "grad":
                return f"torch.func.grad({self.define(x, scalar=True)})({x})"
            case "two":
                y = self.pick("f", lambda t: 0 < count(t) <= 12)
                f = self.define(x, y, scalar=True)
                call = rng.choice(
                    [
                        f"grad({f}, argnums=(0, 1))",
                        f"grad_and_value({f}, argnums=1)",
                        f"hessian({f}, argnums=(0, 1))",
                        f"jacrev(torch.func.grad({f}), argnums=1)",
                    ]
                )
                return f"torch.func.{call}({x}, {y})"
            case "vjp":
                return (
                    f"(lambda out, back: back(torch.sin(out)))(*torch.func.vjp({self.define(x, scalar=False)}, {x}))[0]"
                )
            case "jvp":
                return f"torch.func.jvp({self.define(x, scalar=rng.random() < 0.5)}, ({x},), (torch.cos({x}),))"
            case "jacrev" | "jacfwd" as name:
                return f"torch.func.{name}({self.define(x, scalar=False)})({x})"
            case "hessian":
                return f"torch.func.hessian({self.define(x, scalar=True)})({x})"
            case "hvp":
                return f"torch.func.jvp(torch.func.grad({self.define(x, scalar=True)}), ({x},), (torch.sin({x}),))[1]"
            case "vmap":
                if not value.ndim:
                    raise Rejected
                axis = rng.randrange(value.ndim)
                f = self.define("", scalar=False, values=[value.select(axis, 0)])
                where = rng.choice(["", f", in_dims={axis}"]) if axis == 0 else f", in_dims={axis}"
                if rng.random() < 0.3:
                    where += ", out_dims=-1"
                return f"torch.vmap({f}{where})({x})"
            case "functional":
                name = rng.choice(["jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"])
                scalar = name not in ("jacobian", "jvp")
                extra = ", torch.cos({x})" if name in ("jvp", "hvp", "vhp") else ""
                create = rng.choice(["", ", create_graph=True"]) if self.depth == 0 else ", create_graph=True"
                return (
                    f"torch.autograd.functional.{name}({self.define(x, scalar=scalar)}, {x}{extra.format(x=x)}{create})"
                )
            case "dual":
                f = self.define(x, scalar=False)
                name = f"v{next(self.count)}"
                self.definitions.append(f"with torch.autograd.forward_ad.dual_level():\n    {name} = torch.autograd.forward_ad.unpack_dual("
                    f"{f}(torch.autograd.forward_ad.make_dual({x}, torch.cos({x}))))[1]")  # fmt: skip
                return name
        raise AssertionError


# ---- complete programs


def literal(rng: random.Random, shape: tuple[int, ...], draw: Any) -> Any:
    return [literal(rng, shape[1:], draw) for _ in range(shape[0])] if shape else draw()


SHAPES = [(), (2,), (3,), (3,), (2, 3), (3, 3), (2, 2), (3, 2), (1, 3), (2, 1), (2, 2, 3), (2, 3, 2), (4,)]


def torch_program(torch: Any, seed: int) -> list[Statement]:
    """Return a PyTorch program: a few tensors, 20 to 60 statements, and gradients at the end."""
    rng = random.Random(seed)
    maker = Maker(torch, rng)
    floats = rng.choice([["float64"], ["float64"], ["float32"], ["float32", "float64"]])
    shape = rng.choice(SHAPES)
    for k in range(5):
        if k and rng.random() < 0.6:
            shape = rng.choice(SHAPES)
        what, graded = rng.choice(floats), ""
        draw: Any = lambda: round(rng.uniform(-1.2, 1.2), 4)
        if k == 3:
            what, draw = rng.choice(["int64", "int64", "int32"]), lambda: rng.randrange(3)
        elif k == 4 and rng.random() < 0.7:
            what, draw = "bool", lambda: rng.random() < 0.5
        elif k == 4:
            what, draw = "complex128", lambda: complex(round(rng.uniform(-1, 1), 3), round(rng.uniform(-1, 1), 3))
        elif k < 2 or rng.random() < 0.5:
            graded = ", requires_grad=True"
        maker.attempt(
            "input", f"torch.tensor({literal(rng, shape, draw)}, dtype=torch.{what}{graded})", f"v{next(maker.count)}"
        )
    length = rng.randint(20, 60)
    for _ in range(4 * length):
        if len(maker.statements) >= length:
            break
        maker.step()
    finish(maker)
    return maker.statements


def plain_program(lib: Any, seed: int) -> list[Statement]:
    """Return a function of one float64 tensor with nested transformations, and that tensor."""
    rng = random.Random(seed)
    maker = Maker(lib, rng)
    x = literal(rng, rng.choice(SHAPES[1:]), lambda: round(rng.uniform(-1.2, 1.2), 4))
    maker.avoid = CUTS
    maker.attempt("input", f"torch.tensor({x}, dtype=torch.float64, requires_grad=True)", "x")
    maker.names.append("x")
    while not maker.definitions:
        try:
            maker.define("x", scalar=True, length=rng.randint(5, 25), kinds=SMOOTH)
        except Rejected:
            maker.definitions = []
    return [*maker.statements, Statement("transformation", maker.definitions[-1])]


class NumpyMaker(Maker):
    templates, weights, array = numpy_templates.TEMPLATES, numpy_templates.WEIGHTS, "np.array"

    def hole(self, name: str) -> str:
        if name == "o":  # NumPy's scalars are values
            self.x = self.pick("f", lambda t: apart(t) and t.ndim, self.own)
            return self.x
        return super().hole(name)

    def index(self, x: Any) -> str:
        text = super().index(x)
        return text.replace("::2", self.rng.choice(["::2", "::-1", "::-2"]))


def numpy_program(seed: int) -> list[Statement]:
    """Return a function of one array in NumPy style, and that array."""
    rng = random.Random(seed)
    maker = NumpyMaker(None, rng)
    maker.env["np"] = np
    x = literal(rng, rng.choice(SHAPES[1:]), lambda: round(rng.uniform(-1.2, 1.2), 4))
    maker.attempt("input", f"np.array({x})", "x")
    names: list[str] = []
    while not names:
        inner = NumpyMaker(None, rng, maker, x=maker.env["x"])
        inner.names = ["x", "x"]
        length = rng.randint(4, 20)
        for _ in range(3 * length):
            if len(inner.statements) >= length:
                break
            inner.step()
        names = [n for n in inner.names if n in inner.own and inner.suits(n, "f", lambda t: largest(t) < 1e3)]
    names = rng.sample(names, min(len(names), 4))
    result = " + ".join(f"np.sum(np.{rng.choice(['sin', 'tanh', 'square', 'positive'])}({n}))" for n in names)
    lines = [*"\n".join(s.text for s in inner.statements).split("\n"), f"return {result}"]
    return [*maker.statements, Statement("numpy", "\n    ".join(["def f(x):", *lines]))]


def finish(maker: Maker) -> None:
    """Append gradients of a sum over the results, and a second derivative."""
    rng = maker.rng
    leaves = [n for n in maker.names if maker.suits(n, "f", lambda t: t.is_leaf and t.requires_grad)]
    ends = [n for n in maker.names if maker.suits(n, "f", lambda t: t.requires_grad and largest(t) < 1e3)]
    if not leaves or not ends:
        return
    ends = rng.sample(ends, min(len(ends), 6))
    total = " + ".join(f"{n}.{rng.choice(['sin', 'tanh', 'square', 'double'])}().sum()" for n in ends)
    wanted = f"[{', '.join(dict.fromkeys(leaves))}]"
    for kind, text, name in (
        ("input", total, "total"),
        ("backward", f"torch.autograd.grad(total, {wanted}, create_graph=True, allow_unused=True)", "first"),
        ("backward", "sum((g * g).sum() for g in first if g is not None).backward(retain_graph=True)", ""),
        ("backward", "log.clear(), total.backward()", ""),
        ("hooks", "sorted(round(g.sum().item(), 6) for g in log)", "logged"),
    ):
        maker.statements.append(Statement(kind, f"{name} = {text}" if name else text))


def text_of(program: list[Statement]) -> str:
    return "\n".join(s.text for s in program)
