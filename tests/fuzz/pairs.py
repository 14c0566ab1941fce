"""Pairs of NumPy calls, compiled and eager: values, dtypes, layouts, memory, arguments after the call.

A program is a function of two arrays, an integer array and a float. One or two statements change or compute something that
a recording can get wrong: the order of copies, Python floats, `out=` and `where=`, writes through views, handled
exceptions, shared memory.
"""

from __future__ import annotations

import copy
import itertools
import random
import textwrap
import threading
import warnings
from typing import Any

import numpy as np

import chainrule
from chainrule._src.arrays.any_array import with_strides
from chainrule.tree import tree_flatten

from .judging import Failure, Outcome
from .making import Statement
from .pair_templates import ARGUMENTS, EXPRESSIONS, WRITES

DTYPES = ("f8", "f8", "f4", "f4", "c16", "c8", "i8", "i4", "b1", "f2")
SHAPES = ((4,), (3, 4), (2, 3, 4), (), (1,), (0,), (3, 1), (4, 4), (33,), (17, 3))
LAYOUTS = ("C", "C", "F", "every other", "backwards", "turned", "broadcast", "shared")
ERRORS: tuple[dict[str, str], ...] = ({}, {"all": "ignore"}, {"all": "raise"}, {"divide": "raise"}, {"invalid": "warn"})


#: functions that return Python numbers; values computed from these are computed once, when recorded, with their exceptions
CONSTANTS = ("np.array_equal(", "np.allclose(", "np.size(", "len(")


def _numpy_negates() -> bool:
    """Return whether NumPy negates strided numbers in place correctly: some versions mix them with existing values."""
    numbers = np.arange(64, dtype="i4")[::4]
    expected = -numbers
    return bool((np.negative(numbers, out=numbers) == expected).all())


NUMPY_NEGATES = _numpy_negates()


def program(seed: int) -> list[Statement]:
    """Return a program; its seed is a comment of the first statement and determines the arguments."""
    rng = random.Random(seed)
    body = []
    names = ["a"]
    for k in range(rng.choice((1, 2, 2, 2, 3))):
        if rng.random() < 0.35:
            body.append(_filled(rng.choice(WRITES), rng, names))
        else:
            body.append(f"v{k} = {_filled(rng.choice(EXPRESSIONS), rng, names)}")
            names.append(f"v{k}")
    results = [*[name for name in names if name != "a"], *(["a"] if rng.random() < 0.2 else [])]
    if rng.random() < 0.2:
        results.append("a.shape")
    text = "\n".join(body)
    way = rng.random()
    if way < 0.1:
        text = (
            f"with np.errstate({rng.choice(('all', 'divide', 'invalid'))}='{rng.choice(('ignore', 'raise'))}'):\n"
            + (textwrap.indent(text, "    "))
        )
    if way < 0.2:
        text = (
            "try:\n" + textwrap.indent(text, "    ") + "\nexcept (FloatingPointError, ZeroDivisionError, ValueError):\n"
            "    return a * 0 - 1"
        )
    text += f"\nreturn {', '.join(results) or 'None'}"
    head = f"def main({', '.join(ARGUMENTS)}):\n"
    return [Statement("input", f"# {seed}"), Statement("pair", head + textwrap.indent(text, "    "))]


def _filled(template: str, rng: random.Random, names: list[str]) -> str:
    while "{x}" in template:
        template = template.replace("{x}", names[-1] if rng.random() < 0.7 else rng.choice(names), 1)
    return template


def against_eager(program: list[Statement]) -> Outcome:
    """Call a function eagerly and compiled with copies of its arguments: three times, then with other layouts and errstate."""
    if len(program) < 2:
        return Outcome([], [])
    text = program[-1].text
    scope: dict[str, Any] = {"np": np, "operator": __import__("operator"), "H": np.arange(4.0) + 1}
    try:
        exec(text, scope)
    except SyntaxError:
        return Outcome([], [])
    rng = random.Random(program[0].text)
    function = scope["main"]
    calls = list(_calls(rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = chainrule.compile(function)
        wanted = [_outcome(function, call, scope, how) for call, how in calls]
        if all([isinstance(want[0], Exception) and not isinstance(want[0], ArithmeticError) for want in wanted]):
            return Outcome([], [program[-1]])  # eager execution fails always
        if not NUMPY_NEGATES and "np.negative(" in text:
            return Outcome([], [program[-1]])
        for k, ((call, how), want) in enumerate(zip(calls, wanted, strict=True)):
            if isinstance(want[0], FloatingPointError) and any(name in text for name in CONSTANTS):
                continue
            found = _difference(_outcome(compiled, call, scope, how), want)
            if found:
                return Outcome([], [], Failure("pair", text, f"call {k} {_told(call)} {how}: {found}"))
        if rng.random() < 0.05:
            found = _in_threads(chainrule.compile(function), calls, wanted, scope)
            if found:
                return Outcome([], [], Failure("pair", text, f"in threads: {found}"))
    return Outcome([program[-1]], [])


def _in_threads(compiled: Any, calls: Any, wanted: Any, scope: dict[str, Any]) -> str:
    """Describe the difference if several threads make the calls concurrently."""
    differences: list[str] = []

    def work() -> None:
        for (call, how), want in zip(calls, wanted, strict=True):
            differences.append(_difference(_outcome(compiled, call, scope, how), want))

    if any("H" in function.co_names for function in (compiled.function.__code__,)):
        return ""  # threads share it
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return next((found for found in differences if found), "")


def _calls(rng: random.Random) -> Any:
    """Return arguments and the treatment of floating-point exceptions."""
    shape, dtype, layout = rng.choice(SHAPES), rng.choice(DTYPES), rng.choice(LAYOUTS)
    other = rng.choice((dtype, dtype, rng.choice(DTYPES)))
    beside = rng.choice((layout, "C", rng.choice(LAYOUTS)))
    s = rng.choice((0.5, 2.0, -1.3, 0.7))
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    plain = rng.choice(ERRORS)
    for k in range(4):
        if k == 3 and rng.random() < 0.7:
            layout = rng.choice(LAYOUTS)
        a = _laid_out(_values(numbers, shape, dtype, k), layout)
        b = _laid_out(_values(numbers, shape, other, k + 1), beside)
        i = numbers.integers(0, max(1, shape[0] if shape else 1), 3)
        yield (a, b, i, s if k < 2 else s * 1.5), plain if k < 2 else rng.choice(ERRORS)


def _values(numbers: Any, shape: Any, dtype: str, k: int) -> Any:
    x = np.round(numbers.normal(size=shape) * 3, 1 if k % 2 else 8)
    if k > 1 and x.size:
        x.reshape(-1)[numbers.integers(x.size)] = numbers.choice([0.0, -0.0, np.inf, np.nan, 1e300])
    if dtype[0] == "c":
        x = x + 1j * numbers.normal(size=shape)
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(dtype)


def _laid_out(x: Any, layout: str) -> Any:
    """Copy numbers to other memory with another layout."""
    if not x.ndim:
        return x
    if layout == "F":
        return np.array(x, order="F")
    if layout == "every other":
        return with_strides(x, tuple(2 * stride for stride in x.strides))
    if layout == "backwards":
        return np.array(x[::-1])[::-1]
    if layout == "turned":
        return np.array(np.moveaxis(x, 0, -1), order="C").transpose(np.argsort([*range(1, x.ndim), 0]))
    if layout == "broadcast" and x.size:
        return np.broadcast_to(x[:1].copy(), x.shape)
    if layout == "shared" and x.ndim == 1 and x.size > 1:
        return np.lib.stride_tricks.as_strided(x[:1].copy(), x.shape, (0,))
    return x


def _copied(x: Any, memo: dict[int, Any]) -> Any:
    """Copy an argument with its layout."""
    if not isinstance(x, np.ndarray):
        return copy.deepcopy(x)
    if 0 in x.strides and x.size:
        lengths = [1 if stride == 0 else length for stride, length in zip(x.strides, x.shape, strict=True)]
        base = x[tuple(slice(n) for n in lengths)].copy()
        return np.lib.stride_tricks.as_strided(base, x.shape, x.strides, writeable=x.flags.writeable)
    return with_strides(x, x.strides)


def _outcome(function: Any, call: Any, scope: dict[str, Any], how: dict[str, str]) -> Any:
    """Return the result or exception of a call, the arguments after it, and the memory shared with them."""
    given = [_copied(x, {}) for x in call]
    if "H" in scope["main"].__code__.co_names:
        scope["H"][:] = np.arange(4.0) + 1
    try:
        with np.errstate(**how):
            result = function(*given)
    except Exception as error:
        result = error
    return result, given, scope["H"].copy()


def _difference(found: Any, wanted: Any) -> str:
    """Describe the difference between two outcomes; "" if there is none."""
    (result, after, held), (right, right_after, right_held) = found, wanted
    if isinstance(right, Exception) or isinstance(result, Exception):
        if type(result) is not type(right):
            return f"{result!r:.200} for {right!r:.200}"
    else:
        parts, spec = tree_flatten(result)
        right_parts, right_spec = tree_flatten(right)
        if spec != right_spec:
            return f"structure {spec} for {right_spec}"
        for k, (x, y) in enumerate(zip(parts, right_parts, strict=True)):
            told = _differ(x, y)
            if told:
                return f"result {k}: {told}"
    for name, x, y in zip([*ARGUMENTS, "H"], [*after, held], [*right_after, right_held], strict=True):
        told = _differ(x, y)
        if told:
            return f"{name} after the call: {told}"
    return ""


def _differ(x: Any, y: Any) -> str:
    if type(x) is not type(y):
        return f"{type(x).__name__} for {type(y).__name__}"
    if not isinstance(x, (np.ndarray, np.generic)):
        return "" if x == y or (x != x and y != y) else f"{x!r} for {y!r}"
    if x.dtype != y.dtype or x.shape != y.shape:
        return f"{x.dtype}{list(x.shape)} for {y.dtype}{list(y.shape)}"
    if not _same_numbers(np.asarray(x), np.asarray(y)):
        return f"{str(x)[:120]} for {str(y)[:120]}"
    return ""


def _same_numbers(x: Any, y: Any) -> bool:
    """Return whether arrays have the same bits, treating all nans as equal."""
    if x.dtype.kind == "c":
        return _same_numbers(x.real, y.real) and _same_numbers(x.imag, y.imag)
    if x.dtype.kind != "f":
        return bool(np.array_equal(x, y))
    nan = np.isnan(y)
    same = (x == y) & (np.signbit(x) == np.signbit(y))
    return bool((same | (nan & np.isnan(x))).all())


def _told(call: Any) -> str:
    return ", ".join(
        f"{x.dtype}{list(x.shape)} strides {list(x.strides)}" if isinstance(x, np.ndarray) else repr(x) for x in call
    )


def every_pair() -> itertools.product[Any]:
    """Return all pairs of statements."""
    return itertools.product([*EXPRESSIONS, *WRITES], repeat=2)
