"""Compare libraries by installed size, import time, dtypes, coverage of NumPy's functions, and time per operation.

python benchmarks/first_touch.py [--rounds 5]

Every library runs in separate processes, which take turns. A time is the minimum over all turns, because other load can
only increase it. The table is Markdown. The script needs the packages of the extra `bench`.

NumPy's functions are not selected by hand: all functions of numpy, numpy.linalg and numpy.fft are tested that accept one
of a few argument lists of float arrays and have a nonzero derivative by finite differences. A library supports a function
if reverse mode gives that derivative.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from report import Rows, record, record_option

LIBRARIES = ["chainrule", "torch", "jax", "autograd", "mygrad"]
WITHOUT_C = "without C"  # chainrule without its C extension, of which only the times are measured
ROOT = Path(__file__).resolve().parents[1]

# -- size and import ---------------------------------------------------------------------------------------------------


def needed(name: str) -> set[str]:
    """Return a distribution and its requirements except NumPy."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        each = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if each in found or each == "numpy":
            continue
        try:
            requires = importlib.metadata.requires(each) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform
        found.add(each)
        waiting += [re.split(r"[^\w.-]", text)[0] for text in requires if "extra ==" not in text]
    return found


def megabytes(name: str) -> float:
    """Return the installed size in megabytes, without NumPy and bytecode."""
    if name == "chainrule":  # installed as a checkout
        files = [path for path in (ROOT / "chainrule").rglob("*") if path.is_file()]
    else:
        each = [importlib.metadata.files(part) or [] for part in needed(name)]
        files = [Path(str(path.locate())) for paths in each for path in paths]
    return sum(path.stat().st_size for path in set(files) if path.exists() and "__pycache__" not in path.parts) / 1e6


def seconds_to_import(name: str) -> float:
    """Return the CPU time of the import, which depends little on other load."""
    module = {"autograd": "autograd.numpy", "jax": "jax.numpy"}.get(name, name)
    code = f"from time import process_time as now; start = now(); import {module}; print(now() - start)"
    return float(python("-c", code))


# -- one interface to each library -------------------------------------------------------------------------------------


def gradient(name: str) -> Callable[[Callable[[Any], Any], Any], Any]:
    """Return `gradient(function, array)` for a library."""
    if name == "chainrule":
        import chainrule

        return lambda f, x: chainrule.func.grad(f)(x)
    if name == "torch":
        import torch

        def graph(f: Callable[[Any], Any], x: Any) -> Any:
            t = torch.from_numpy(x).requires_grad_()
            f(t).backward()
            return t.grad

        return graph
    if name == "jax":
        import jax

        return lambda f, x: jax.grad(f)(x)
    if name == "autograd":
        import autograd

        return lambda f, x: autograd.grad(f)(x)
    import mygrad

    def backward(f: Callable[[Any], Any], x: Any) -> Any:
        t = mygrad.tensor(x)
        f(t).backward()
        return t.grad

    return backward


def namespace(name: str) -> Any:
    """Return a library's replacement for NumPy."""
    return {
        "chainrule": lambda: np,
        "torch": lambda: importlib.import_module("torch"),
        "jax": lambda: importlib.import_module("jax.numpy"),
        "autograd": lambda: importlib.import_module("autograd.numpy"),
        "mygrad": lambda: importlib.import_module("mygrad"),
    }[name]()


# -- NumPy's functions -------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
MATRIX = RNG.uniform(0.2, 0.8, (3, 3)) / 4
MATRIX = MATRIX + MATRIX.T + np.diag([0.5, 0.3, 0.1])  # symmetric, positive definite, all between 0 and 1
OTHER = RNG.uniform(0.2, 0.8, (3, 3))
OTHER.flags.writeable = False  # not for out=
FORMS: list[Callable[[Any, Any], Any]] = [
    lambda f, x: f(x),
    lambda f, x: f(x + 1),  # arccosh
    lambda f, x: f(x, OTHER),
    lambda f, x: f([x, OTHER]),
    lambda f, x: f(x[0]),
    lambda f, x: f(x, OTHER[0]),
    lambda f, x: f(x[0], OTHER[0]),
    lambda f, x: f(x, 2),
    lambda f, x: f(x, 1),
    lambda f, x: f(x, 0.3),
    lambda f, x: f(x, 0, 1),
    lambda f, x: f(x, 1, 0),
    lambda f, x: f(x, [0, 2]),
    lambda f, x: f(x, (9,)),
    lambda f, x: f(x[0], (3, 3)),
    lambda f, x: f(OTHER > 0.5, x, OTHER),
    lambda f, x: f(OTHER > 0.5, x),
    lambda f, x: f([OTHER > 0.5], [x]),
    lambda f, x: f(x, [[0, 1, 2]], 1),
    lambda f, x: f(x, [OTHER > 0.5], [np.sin]),
    lambda f, x: f(x, OTHER[0], 0.1),
    lambda f, x: f(OTHER, [0.1, 0.4, 0.9], x[0]),
    lambda f, x: f("ij,jk->ik", x, OTHER),
    lambda f, x: f(np.sum, 0, x),
    lambda f, x: f(np.sum, x, [0]),
]


def parts(out: Any) -> Iterator[Any]:
    if isinstance(out, (tuple, list)):
        for each in out:
            yield from parts(each)
    else:
        yield out


def scalar(out: Any, xp: Any) -> Any:
    """Reduce a result to a number that depends on every element."""
    total = 0.0
    for part in parts(out):
        shape = tuple(getattr(part, "shape", ()))
        if "complex" in str(getattr(part, "dtype", "")):
            part = xp.real(part)
        total = total + xp.sum(part * np.cos(np.arange(int(np.prod(shape)))).reshape(shape))
    return total


def find(space: Any, name: str) -> Any:
    for word in name.split("."):
        space = getattr(space, word)
    return space


def tested_functions() -> tuple[dict[str, tuple[int, float]], Any]:
    """Return NumPy's differentiable functions with their argument form and derivative, and the direction."""
    found: dict[str, tuple[int, float]] = {}
    direction = RNG.uniform(0.5, 1.0, (3, 3))
    direction = direction + direction.T
    names = [*np.__all__, *(f"linalg.{n}" for n in np.linalg.__all__), *(f"fft.{n}" for n in np.fft.__all__)]
    for name in sorted(set(names)):
        function = find(np, name)
        if isinstance(function, type) or not callable(function) or name in ("info", "empty_like", "lookfor"):
            continue
        for number, form in enumerate(FORMS):
            try:
                high, low = (scalar(form(function, MATRIX + h * direction), np) for h in (1e-6, -1e-6))
                again, _ = (scalar(form(function, MATRIX + h * direction), np) for h in (1e-6, 0))
                slope = float((high - low) / 2e-6)
            except Exception:
                continue
            if high == again and np.isfinite(slope) and 1e-3 < abs(slope) < 1e4:
                found[name] = number, slope
                break
    return found, direction


def differentiated(library: str, plain: bool) -> list[str]:
    """Return the NumPy functions that a library differentiates, in NumPy itself (``plain``) or in its replacement."""
    own, grad = namespace(library), gradient(library)
    if library == "jax":
        importlib.import_module("jax").config.update("jax_enable_x64", True)
    names, direction = tested_functions()
    missing = []
    for name, (number, slope) in names.items():
        try:
            function = find(np if plain else own, name)
            got = grad(lambda x: scalar(FORMS[number](function, x), own), MATRIX.copy())  # noqa: B023
            right = abs(float(np.sum(np.asarray(got) * direction)) - slope) < 1e-3 * max(1, abs(slope))
        except Exception:
            right = False
        if not right:
            missing.append(name)
    return [f"{len(names) - len(missing)} of {len(names)}", *missing]


# -- time --------------------------------------------------------------------------------------------------------------


def least(run: Callable[[], Any], seconds: float = 0.5) -> float:
    run()
    best, until = float("inf"), perf_counter() + seconds
    while perf_counter() < until:
        start = perf_counter()
        run()
        best = min(best, perf_counter() - start)
    return best


def timed(library: str) -> dict[str, float]:
    own, grad = namespace(library), gradient(library)

    def small(x: Any) -> Any:
        y = x
        for _ in range(50):
            y = own.sin(y) * x + y
        return own.sum(y)

    def tensors(x: Any) -> Any:  # chainrule in PyTorch style
        y = x
        for _ in range(50):
            y = tensor_module.sin(y) * x + y
        return y.sum()

    def large(x: Any) -> Any:
        return own.sum(own.sin(x) * x + x)

    def network(w: Any) -> Any:
        h = own.tanh(batch @ w)
        return own.sum(own.tanh(h @ w))

    few, many, square = np.array([0.1, 0.2, 0.3]), RNG.normal(size=1_000_000), RNG.normal(size=(1024, 1024)) / 32
    batch: Any = RNG.normal(size=(256, 1024))
    made: dict[str, Callable[[Any], Any]] = {"": lambda f: lambda x: grad(f, x)}
    if library == "torch":
        batch = own.from_numpy(batch)
    elif library == "jax":
        import jax

        def ready(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
            return lambda x: function(x).block_until_ready()

        made = {"": lambda f: ready(lambda x: grad(f, x)), ", compiled": lambda f: ready(jax.jit(jax.grad(f)))}
    found = {}
    if library == "chainrule":
        tensor_module = importlib.import_module("chainrule")
        leaf = tensor_module.tensor(few, requires_grad=True)
        found["small, as tensors"] = least(lambda: tensors(leaf).backward())
        made[", compiled"] = lambda f: tensor_module.compile(tensor_module.func.grad(f))
    works = {"one": (large, few), "small": (small, few), "large": (large, many), "network": (network, square)}
    for key, (function, x) in works.items():
        for how, make in made.items():
            run = make(function)
            start = perf_counter()
            run(x)
            if key == "small" and how:
                found["first call, compiled"] = perf_counter() - start
            found[key + how] = least(lambda: run(x))  # noqa: B023
    return found


TIMES = {
    "one": ("gradient of `sum(sin(x) * x + x)`, 3 numbers, µs a call", 1e6),
    "one, compiled": ("the same compiled, µs a call", 1e6),
    "small": ("gradient of 150 such operations, µs a call", 1e6),
    "small, as tensors": ("the same of tensors, µs a call", 1e6),
    "small, compiled": ("150 operations compiled, µs a call", 1e6),
    "first call, compiled": ("their first call, compiled, ms", 1e3),
    "large": ("`sum(sin(x) * x + x)`, a million numbers, ms", 1e3),
    "large, compiled": ("a million numbers, compiled, ms", 1e3),
    "network": ("two layers of 1,024, ms", 1e3),
    "network, compiled": ("two layers, compiled, ms", 1e3),
}


# -- supported features ------------------------------------------------------------------------------------------------


def abilities(library: str) -> dict[str, Any]:
    """Return the result dtype for float64 data, and the supported nestings of transformations."""
    own, grad = namespace(library), gradient(library)
    dtype = str(np.asarray(grad(lambda x: own.sum(x * x), np.array([1.0, 2.0]))).dtype)
    x = np.array([0.3, 0.5])
    if library == "torch":
        x = own.from_numpy(x)
    tools: dict[str, Any] = {}
    if library in ("chainrule", "torch"):
        module = importlib.import_module(f"{library}.func")
        tools = {name: getattr(module, name) for name in ("grad", "jvp", "vmap")}
    elif library == "jax":
        module = importlib.import_module("jax")
        tools = {name: getattr(module, name) for name in ("grad", "jvp", "vmap")}
    elif library == "autograd":
        module = importlib.import_module("autograd")
        tools = {"grad": module.grad, "jvp": lambda f, xs, ts: module.make_jvp(f)(*xs)(*ts)}

    def f(x: Any) -> Any:
        return own.sum(own.sin(x) ** 2)

    def twice(x: Any) -> Any:
        return tools["grad"](lambda y: own.sum(tools["grad"](f)(y)))(x)

    def forward_over_reverse(x: Any) -> Any:
        return tools["jvp"](tools["grad"](f), (x,), (x,))[1]

    def mapped(x: Any) -> Any:
        rows = own.stack([x, x])
        return tools["vmap"](lambda v: tools["jvp"](tools["grad"](f), (x,), (v,))[1])(rows)

    nested = {}
    for name, attempt in (("grad(grad)", twice), ("jvp(grad)", forward_over_reverse), ("vmap(jvp(grad))", mapped)):
        try:
            attempt(x)
            nested[name] = True
        except Exception:
            nested[name] = False
    return {"dtype": dtype, "nested": nested}


# -- the table ---------------------------------------------------------------------------------------------------------


def python(*words: str, native: bool = True) -> str:
    """Return the last line printed by a new interpreter, which caches compiled modules like for an installed library.

    It runs in a temporary directory, because some of NumPy's functions write files.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {} if native else {"CHAINRULE_NATIVE": "0"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", *words]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    if done.returncode:
        raise SystemExit(f"{words}: {done.stderr}")
    return done.stdout.splitlines()[-1]


def ask(library: str, question: str) -> Any:
    name = "chainrule" if library == WITHOUT_C else library
    return json.loads(python(str(Path(__file__).resolve()), "--answer", name, question, native=library != WITHOUT_C))


def answer(library: str, question: str) -> Any:
    warnings.simplefilter("ignore")
    return {
        "size": lambda: megabytes(library),
        "plain": lambda: differentiated(library, True),
        "own": lambda: differentiated(library, False),
        "abilities": lambda: abilities(library),
        "time": lambda: timed(library),
    }[question]()


def main() -> None:
    parser = argparse.ArgumentParser(description="What a newcomer meets first, beside four other libraries.")
    parser.add_argument("--rounds", type=int, default=5, help="turns of every library (default: 5)")
    record_option(parser)
    parser.add_argument("--answer", nargs=2, metavar=("LIBRARY", "QUESTION"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer:
        print(json.dumps(answer(*arguments.answer)))
        return

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    imports: dict[str, list[float]] = {name: [] for name in ["numpy", *LIBRARIES]}
    times: dict[str, list[dict[str, float]]] = {name: [] for name in [*LIBRARIES, WITHOUT_C]}
    for turn in range(arguments.rounds + 1):
        say(f"round {turn} of {arguments.rounds}")
        for name in imports:
            found = seconds_to_import(name)
            if turn:  # the first turn may include writing bytecode
                imports[name].append(found)
        for name in times if turn else ():
            times[name].append(ask(name, "time"))
    say("sizes, abilities, NumPy's functions")
    rows: Rows = {}

    def tell(title: str, name: str, value: float | str) -> None:
        rows.setdefault(title, {})[name] = value if isinstance(value, str) else float(f"{value:.3g}")

    for name in LIBRARIES:
        tell("installed size without NumPy, MB", name, ask(name, "size"))
        tell("import, ms of CPU over NumPy's", name, (min(imports[name]) - min(imports["numpy"])) * 1e3)
        able = ask(name, "abilities")
        tell("dtype of the gradient of float64 arrays, by default", name, able["dtype"])
        nested = ", ".join(key for key, works in able["nested"].items() if works) or "none"
        tell("nesting", name, "any" if len(able["nested"]) == nested.count(",") + 1 else nested)
        for key, module in (("plain", "`import numpy as np`"), ("own", "the NumPy module of the library")):
            if (name == "torch" or name == "chainrule") and key == "own":
                continue
            count, *missing = ask(name, key)
            share, _, all_of_them = count.partition(" of ")
            tell(f"NumPy's functions differentiated, of {all_of_them}: {module}", name, float(share))
            say(f"{name}, {module}: lacks {' '.join(missing)}" if len(missing) < 80 else f"{name}, {module}: {count}")
    for name in times:
        best = {key: min(each[key] for each in times[name]) for key in times[name][0]}
        for key, (title, unit) in TIMES.items():
            if key in best:
                tell(title, name, best[key] * unit)
    record(arguments.record, rows, LIBRARIES)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ["numpy", *LIBRARIES])
    print(f"{versions}; Python {platform.python_version()}, {platform.machine()}\n")
    print("| | " + " | ".join(times) + " |\n|---|" + "---|" * len(times))
    for title, cells in rows.items():
        print(f"| {title} | " + " | ".join(str(cells.get(name, "–")) for name in times) + " |")


if __name__ == "__main__":
    main()
