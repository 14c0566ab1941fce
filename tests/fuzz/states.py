"""Random programs whose state changes between the calls of a compiled function: results and side effects equal eager ones.

A program consists of objects, functions that read (and partly write) them, and steps: calls of the last function, and
statements that change the objects.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

import chainrule

from .judging import Failure, Outcome
from .making import Statement

HEAD = """
import collections, functools, types
class Thing:
    k = 2.0
    def __init__(self, v=1.0):
        self.v, self.parts, self.table = v, [1.0, 2.0], {"a": 3.0}
    @property
    def first(self):
        return self.parts[0]
    def scaled(self, x):
        return x * self.k + self.v
    def __getitem__(self, key):
        return self.table[key]
    def __len__(self):
        return len(self.parts)
    def __call__(self, x):
        return x + self.v
class Derived(Thing):
    def scaled(self, x):
        return super().scaled(x) - self.v
class Slotted:
    __slots__ = ("v", "w")
    def __init__(self):
        self.v, self.w = 1.5, np.array([1.0, 2.0, 3.0])
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.k = torch.nn.Linear(3, 3, dtype=torch.float64), 1.0
        with torch.no_grad():
            self.layer.weight.copy_(torch.eye(3, dtype=torch.float64)); self.layer.bias.fill_(0.5)
        self.drop = torch.nn.Dropout(0.5); self.drop.eval()
    def forward(self, t):
        return self.drop(self.layer(t)) * self.k
def made(k):
    def inner(x, s=[1.0], *, j=2.0):
        return x * k + s[0] * j
    def change(value):
        nonlocal k
        k = value
    inner.change = change
    return inner
""".strip()
#: objects: their creation, expressions that read them, statements that change them
OBJECTS: dict[str, tuple[str, list[str], list[str]]] = {
    "li": (
        "[1.0, 2.0, 3.0]",
        [
            "x * {0}[0]",
            "x + sum({0})",
            "x * len({0})",
            "sum([x * w for w in {0}])",
            "x * ({0}[-1] if {0} else 7.0)",
            "x * max({0})",
            "x + np.array({0})[:1]",
            "x * (2.0 in {0})",
            "x * float(np.mean({0}))",
            "x + [w for w in reversed({0})][0]",
        ],
        [
            "{0}[0] = {f}",
            "{0}.append({f})",
            "{0}.insert(0, {f})",
            "{0}[:] = [{f}]",
            "{0}.reverse()",
            "{0} = [{f}, {f}]",
        ],
    ),
    "di": (
        '{{"a": 1.0, "b": 2.0}}',
        [
            'x * {0}["a"]',
            'x * {0}.get("c", 5.0)',
            "x + sum({0}.values())",
            "sum(x * v for k, v in {0}.items())",
            'x * ("c" in {0})',
            "x * len({0})",
            "x + next(iter({0}.values()))",
            "(lambda a=0.0, **_: x * a)(**{0})",
        ],
        ['{0}["a"] = {f}', '{0}["c"] = {f}', '{0}.pop("c", None)', "{0} = dict(a={f})", "{0}.update(b={f})"],
    ),
    "th": (
        "Thing()",
        [
            "{0}.scaled(x)",
            "x * {0}.first",
            'x * {0}["a"]',
            "x * len({0})",
            "{0}(x)",
            "x * {0}.parts[1]",
            'x * getattr({0}, "z", 3.0)',
            'x * hasattr({0}, "z")',
            "x * vars({0})['v']",
        ],
        [
            "{0}.v = {f}",
            "{0}.k = {f}",
            "Thing.k = {f}",
            "{0}.parts[0] = {f}",
            "{0}.parts.append({f})",
            '{0}.table["a"] = {f}',
            "{0}.z = {f}",
            "{0} = Thing({f})",
            "{0}.__class__ = Derived",
        ],
    ),
    "de": (
        "Derived()",
        ["{0}.scaled(x)", "x * {0}.k"],
        ["Thing.k = {f}", "Derived.k = {f}", "{0}.v = {f}", "Thing.scaled = lambda self, x: x * {f}"],
    ),
    "sl": (
        "Slotted()",
        ["x * {0}.v", "x * {0}.w[0]", "x * {0}.w", "x * np.sqrt(abs({0}.w)).sum()"],
        ["{0}.v = {f}", "{0}.w[0] = {f}", "{0}.w = np.ones(3) * {f}"],
    ),
    "ns": (
        "types.SimpleNamespace(k=2.0, o=types.SimpleNamespace(j=1.0))",
        ["x * {0}.k", "x * {0}.o.j"],
        ["{0}.k = {f}", "{0}.o.j = {f}", "{0}.o = types.SimpleNamespace(j={f})"],
    ),
    "ar": (
        "np.array([1.0, 2.0, 3.0])",
        [
            "x * {0}",
            "x * {0}[1]",
            "x + {0}.sum()",
            "x * np.linalg.norm({0})",
            "x + {0}[1:].mean()",
            "x * {0}.max()",
            "np.where({0} > 1.5, x, -x)",
            "x @ np.outer({0}, {0})",
            "x * float({0}[0])",
            "np.interp(x, np.sort({0}), {0})",
            "x + np.average(x, weights=abs({0}) + 1)",
        ],
        ["{0}[1] = {f}", "{0}[:] = {f}", "{0} = np.arange(3.0) * {f}", "{0} *= {f}"],
    ),
    "vi": (
        "np.arange(9.0)[1:4]",
        [
            "x * {0}",
            "x * {0} + {0}.sum()",
            "x * {0}[1:2] * np.max({0}[1:])",
            "x * {0}.shape[0]",
            "x * {0}.T",
            "x * {0}.data[0]",
        ],
        ["{0}[1] = {f}", "{0}.base[2] = {f}", "{0}.shape = (3, 1)", "{0}.shape = (3,)", "{0} = np.arange(6.0)[::2]"],
    ),
    "f4": (
        "np.ones(3, 'f4')",
        ["x * {0}", "x * {0} * {0}", "x + {0}[:1]", "x * np.float64({0}[0])", "[{0}, x * {0}][1]"],
        ["{0}[1] = {f}", "{0} = np.ones(3, 'f4') * {i}", "{0}.flags.writeable = False", "{0} *= 2"],
    ),
    "ro": (
        'np.array([(1.0, 2.0)] * 3, [("a", float), ("b", float)])',
        ['x * {0}["a"]', 'x * {0}[0]["a"]', "x + sum({0}[1])", "x * {0}[1].item()[0]", "x * len({0}.dtype.names[0])"],
        ['{0}["a"][0] = {f}', "{0}[1] = ({f}, {f})", "{0}.dtype.names = {0}.dtype.names[::-1]"],
    ),
    "by": (
        "bytearray(b'ab')",
        [
            "x * {0}[0]",
            "x + sum({0})",
            "x * len({0})",
            "x + [k for k in {0}][1]",
            "x + np.frombuffer({0}, np.uint8)[:1]",
        ],
        ["{0}[0] = {i}", "{0}[1] = {i}", "{0} = bytearray(b'abc')"],
    ),
    "it": (
        "np.array([0, 2, 1])",
        ["x[{0}]", "x * {0}", "x[{0}[0]]", "np.take(x, {0})"],
        ["{0}[0] = {i}", "{0} = np.array([{i}, {i}, {i}])"],
    ),
    "te": (
        "torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)",
        ["x * {0}.numpy()", "x * torch.sum({0}).item()", "x * {0}[0].item()"],
        ["{0}[0] = {f}", "{0}.mul_({f})", "{0} = torch.ones(3, dtype=torch.float64) * {f}"],
    ),
    "fu": (
        "made(1.5)",
        ["{0}(x)", "{0}(x, [{f}])"],
        [
            "{0}.change({f})",
            "{0}.__defaults__ = ([{f}],)",
            "{0}.__defaults__[0][0] = {f}",
            '{0}.__kwdefaults__["j"] = {f}',
            "{0} = made({f})",
        ],
    ),
    "pa": ("functools.partial(lambda s, x: x * s[0], [2.0])", ["{0}(x)"], ["{0}.args[0][0] = {f}"]),
    "ta": (
        "collections.deque([1.0, 2.0])",
        ["x * {0}[0]", "x + sum({0})", "x * len({0})"],
        ["{0}.append({f})", "{0}[0] = {f}", "{0}.rotate()"],
    ),
    "se": ("{{1.0, 2.0}}", ["x + sum({0})", "x * (2.0 in {0})", "x * len({0})"], ["{0}.add({f})", "{0}.discard(2.0)"]),
    "ma": (
        "np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])",
        ["x + {0}.filled(4.0)", "x * float({0}.sum())"],
        ["{0}[0] = {f}", "{0}.mask = [0, 0, 1]"],
    ),
    "ne": (
        "Net()",
        [
            "{0}(torch.from_numpy(np.ones(3))).sum().item() * x",
            "np.asarray({0}(torch.as_tensor(np.ones(3))).detach().numpy()) + x",
        ],
        [
            "{0}.k = {f}",
            "{0}.layer.bias.data.fill_({f})",
            "{0}.layer = torch.nn.Identity()",
            "{0}.drop = torch.nn.Identity()",
        ],
    ),
    "gl": ("2.5", ["x * {0}", "x + {0}"], ["{0} = {f}", "{0} = {i}", "{0} = np.float32({f})"]),
}
#: statements in the functions that change objects
WRITES = [
    "li.append(1.0)",
    "di['n'] = len(di)",
    "th.v = th.v + 1",
    "ns.k += 1",
    "ar[0] = 4.0",
    "te.add_(1)",
    "global gl; gl = 3.5",
    "ta.rotate()",
]


def program(seed: int) -> list[Statement]:
    rng = random.Random(seed)
    numbers = {"f": lambda: repr(rng.choice([0.5, -1.0, 2.0, 3.25, 1.0])), "i": lambda: str(rng.randrange(3))}

    def filled(template: str, name: str) -> str:
        return template.format(name, **{key: each() for key, each in numbers.items()})

    names = rng.sample(list(OBJECTS), rng.randrange(1, 5))
    made = [Statement("world", f"{name} = {OBJECTS[name][0].format()}") for name in names]

    def body(callee: str) -> str:
        lines = []
        if rng.random() < 0.12 and (
            possible := [w for w in WRITES if w.split(".")[0].split("[")[0].split()[-1] in names]
        ):
            lines.append(rng.choice(possible))
        for _ in range(rng.randrange(1, 4)):
            name = rng.choice(names)
            lines.append("x = " + filled(rng.choice(OBJECTS[name][1]), name))
            if rng.random() < 0.3:
                lines.append(
                    rng.choice(
                        ["x = np.sin(x)", "x = x if np.sum(x) > 0 else -x", "x = x * 0.5 + 1", "x = np.clip(x, -9, 9)"]
                    )
                )
        if callee:
            lines.insert(rng.randrange(len(lines) + 1), f"x = {callee}(x)")
        lines = sorted(lines, key=lambda line: not line.startswith("global"))
        if rng.random() < 0.4:  # reads that are repeated, perhaps of changed objects
            lines = ["for _ in range(3):", *[f"    {line}" for line in lines]]
        return "\n    ".join([*lines, "return x * 1"])

    for k in range(rng.randrange(1, 4)):
        made.append(Statement("world", f"def f{k}(x):\n    {body(f'f{k - 1}' if k else '')}"))
    last = sum(s.text.startswith("def f") for s in made) - 1
    wrapped = rng.choice(
        [f"f{last}"] * 2
        + [f"torch.grad(lambda x: np.sum(f{last}(x)))", f"torch.func.vmap(f{last})", f"functools.partial(f{last})"]
    )
    rows = ", 3" if "vmap" in wrapped else ""
    made.append(Statement("world", f"main = {wrapped}"))
    for _ in range(rng.randrange(5, 10)):
        if rng.random() < 0.5:
            name = rng.choice(names)
            made.append(Statement("step", filled(rng.choice(OBJECTS[name][2]), name)))
        made.append(
            Statement(
                "call",
                f"main(np.linspace({numbers['f']()}, 4.0, 3{' * 2' if rows else ''}){'.reshape(2, 3)' if rows else ''})",
            )
        )
    return made


def against_eager(program: list[Statement]) -> Outcome:
    """Run with and without ``compile`` and compare results, errors, and the final objects."""
    text = "\n".join(s.text for s in program)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager, compiled = _run(program, compiled=False), _run(program, compiled=True)
    for k, (a, b) in enumerate(zip(eager, compiled, strict=True)):
        if a != b:
            return Outcome([], [], Failure("state", text, f"at {k}: eager {a!r:.150}, compiled {b!r:.150}"))
    return Outcome([Statement("call", "main") for _ in eager], [])


def _run(program: list[Statement], compiled: bool) -> list[Any]:
    env: dict[str, Any] = {"np": np, "torch": chainrule}
    exec(HEAD, env)
    found: list[Any] = []
    for statement in program:
        try:
            if statement.kind == "call":
                found.append(_content(eval(statement.text, env)))
            else:
                exec(statement.text, env)
                if statement.text.startswith("main = ") and compiled:
                    env["main"] = chainrule.compile(env["main"])
        except Exception as error:
            found.append(type(error).__name__)
    return [*found, *[(name, _content(env.get(name))) for name in OBJECTS]]


def _content(x: Any, depth: int = 3) -> Any:
    """Return the contents of an object, for comparisons."""
    if isinstance(x, (np.ndarray, np.generic)):
        array = np.asarray(x)
        return type(x).__name__, array.dtype.str, array.shape, np.array2string(array, precision=17)
    if isinstance(x, chainrule.Tensor):
        return "tensor", _content(x.detach().numpy())
    if isinstance(x, dict):
        return [(key, _content(value, depth)) for key, value in x.items()]
    if isinstance(x, (list, tuple, set)) or type(x).__name__ == "deque":
        return type(x).__name__, [_content(part, depth) for part in x]
    if isinstance(x, (int, float, str, type(None))):
        return type(x).__name__, repr(x)
    inside = getattr(x, "__dict__", None)
    known = depth and inside is not None and not callable(x)
    return type(x).__name__, [(k, _content(v, depth - 1)) for k, v in inside.items() if k[0] != "_"] if known else ""
