"""Random functions with loops, for the fuzz tests of compiled programs, where a plan repeats the body.

A loop body consists of randomly drawn lines. They use carried values (also of the previous iteration), rows of data, the
iteration number, arrays of the program, and nested loops; the first or the last iteration may have an additional line.
"""

from __future__ import annotations

import random
import textwrap

from .making import Statement

_OPERATIONS = [
    "np.tanh({a})",
    "np.sin({a})",
    "{a} * {b}",
    "{a} + {b}",
    "{a} - 0.1 * {b}",
    "{a} * (0.1 * {k})",
    "{a} + {b} * 0.5 ** {k}",
    "{a} / (1.0 + {b} * {b})",
    "{a} ** 2",
    "np.where({a} > 0, {a}, {b})",
    "np.maximum({a}, {b})",
    "{a} * np.sum({b})",
    "{a} - np.mean({a}, keepdims=True)",
    "np.concatenate([{a}[1:], {b}[:1]])",
    "np.roll({a}, 1)",
    "{a}[::-1]",
    "np.cumsum({a})",
    "m @ {a}",
    "m @ {a}[::-1]",
    "{a}[::-1] @ m",
    "{a} @ m.T[::-1]",
    "{a} * ({a}[::-1] @ {b})",
    "np.vecdot(m, {a}[::-1])",
    "{a} @ m",
    "np.stack([{a}, {b}]).sum(0)",
    "{a} * {b}[0]",
    "{a} * ({a} @ {b})",
    "np.sqrt(1.0 + {a} * {a})",
]


def program(seed: int) -> list[Statement]:
    """Return inputs, and a function of the first one, which is also differentiated."""
    rng = random.Random(seed)
    size, count = rng.choice([1, 2, 3, 4, 7]), rng.choice([4, 5, 8, 13, 30])
    statements = [
        Statement("input", f"x = np.random.default_rng({seed}).standard_normal({size})"),
        Statement("input", f"x1 = np.random.default_rng({seed + 1}).standard_normal(({2 * max(count, 9)}, {size}))"),
    ]
    lines = [f"m = np.linspace(-0.5, 0.5, {size * size}).reshape({size}, {size})", "a = older = x", "saved = []"]
    lines += _loop(rng, "k", count, ["a", "older", "x", "x1[k]", f"x1[k + {rng.randint(0, 3)}]", f"x1[{count} - k]"])
    if rng.random() < 0.6:
        lines += ["saved.append(a)"] if rng.random() < 0.5 else []
        lines += _loop(rng, "j", count, ["a", "older", "saved[j]", "saved[-1 - j]", "x1[j]", "x"])
    lines.append(
        rng.choice(["return np.sum(a * a)", "return np.sum(np.stack(saved))", "return np.sum(a) + np.sum(older)"])
    )
    text = "def f(x):\n" + textwrap.indent("\n".join(lines), "    ")
    return [*statements, Statement("op", text)]


def _loop(rng: random.Random, k: str, count: int, sources: list[str], deep: bool = False) -> list[str]:
    """Return the lines of a loop that assigns a new ``a`` at its end."""
    names = list(sources)
    body: list[str] = []
    for i in range(rng.randint(1, 5)):
        new = f"{k}{i}"
        if not deep and rng.random() < 0.15:
            body += _loop(rng, k + k, rng.choice([4, 6, 9]), [*names, f"x1[{k + k}]"], True)
            continue
        operation = rng.choice(_OPERATIONS)
        body.append(f"{new} = " + operation.format(a=rng.choice(names), b=rng.choice(names), k=k))
        names += [new, new]
    made = [name for name in names if name not in sources] or ["a"]
    if rng.random() < 0.25:
        body += [f"if {k} == {rng.choice([0, count - 1])}:", f"    {made[-1]} = {made[-1]} + 0.5 * x"]
    if rng.random() < 0.3:  # Python reads a value in each iteration
        condition = rng.choice(["np.sum({a}) > {n}", "{a}[0] < {n}", "np.max(np.abs({a})) > 1.0 + np.abs({n})"])
        condition = condition.format(a=rng.choice(names), n=rng.choice([-0.5, 0.0, 0.3, 2.0]))
        change = f"{made[-1]} = {made[-1]} * 0.5"
        if rng.random() < 0.4:
            change = "break" if deep else f"saved += [{made[-1]}] * ({count} - len(saved)); break"
        body += [f"if {condition}:", f"    {change}"]
    body.append(f"older, a = a, np.tanh({made[-1]} * 0.5 + a)" if rng.random() < 0.7 else f"older, a = a, {made[-1]}")
    if not deep:
        body.append(f"saved.append({rng.choice(made)})")
    return [f"for {k} in range({count}):", *["    " + line for line in body]]
