"""Determine which primitives support which libraries' arrays: ``python -m tests.foreign.checking`` (``make foreign``).

Every sample of a primitive runs with arrays of each installed library, in every operand that accepts arrays: its value, VJP,
JVP and second derivatives must equal those of ndarrays and have the library's type, without conversions. Unsupported cases
must raise an error of chainrule. Any other outcome is a defect.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import chainrule.fft
import chainrule.nn.functional  # noqa: F401  # which have rows
from chainrule._src.arrays import gpu
from chainrule._src.rules.primitive import TABLE, Primitive
from chainrule._src.tape.foreign import Foreign
from chainrule._src.tape.protocol import as_plain_array
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.differences import normal_like
from chainrule.testing.case import Case, as_tuple, duals, or_zeros, sweep
from chainrule.testing.rulecheck import every_sample
from chainrule.testing.samples import Sample

ndarray = np.ndarray
_CLEAR = (
    "nothing is converted silently",
    "never converts silently",
    "a NumPy array silently",
    "have no writable memory",
    "neither library takes the other's arrays",
)
_TOLERANCE = 1e-9
STAGES = ("value", "vjp", "jvp", "second")


@dataclass(frozen=True)
class Kind:
    """One library's arrays, for the checks.

    Attributes:
        name: the name in the table of results.
        package: the required package.
        makes: functions that convert an ndarray; several if the layout matters.
        read: converts back to an ndarray.
        guard: a context in which nothing may be computed or converted.
        own_errors: packages whose exceptions (incompatible units) count as refusals.
        dense: whether results may be ndarrays (if a sparse array meets a dense one).
        mixes: whether its arrays compute with NumPy's; if not, all operands are converted.
        why_not: the reason if the arrays are unavailable although the package is installed.
    """

    name: str
    package: str
    makes: tuple[Callable[[Any], Any], ...]
    read: Callable[[Any], Any]
    guard: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    own_errors: tuple[str, ...] = ()
    dense: bool = False
    mixes: bool = True
    why_not: Callable[[], str] = lambda: ""


class Converted(AssertionError):
    """Raised if a lazy array is computed."""


def _in_two(n: int) -> tuple[int, ...]:
    return (n // 2, n - n // 2) if n > 1 else (n,)


def _dask(cut: Callable[[int], tuple[int, ...]]) -> Callable[[Any], Any]:
    def make(x: Any) -> Any:
        import dask.array

        return dask.array.from_array(x, chunks=tuple(map(cut, x.shape)))

    return make


#: chunks of two sizes, of equal size, and a single one: Dask has different algorithms for some
_CHUNKS = (_dask(_in_two), _dask(lambda n: (1,) * n or (0,)), _dask(lambda n: (n,)))


@contextlib.contextmanager
def _nothing_computed() -> Iterator[None]:
    import dask

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise Converted("a Dask array was computed")

    with dask.config.set(scheduler=refuse):
        yield


def _cupy(x: Any) -> Any:
    return gpu.cupy_module().asarray(x)


def _sparse(x: Any) -> Any:
    import sparse

    return sparse.COO.from_numpy(x)


def _read_sparse(x: Any) -> Any:
    return x.todense() if hasattr(x, "todense") else x


def _unyt(x: Any) -> Any:
    import unyt

    return unyt.unyt_array(x, "dimensionless")


def _read_unyt(x: Any) -> Any:
    assert x.units.is_dimensionless and x.units.base_value == 1, f"a unit that is {x.units}"
    return np.asarray(x)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("Dask", "dask.array", _CHUNKS, lambda x: x.compute(scheduler="synchronous"), _nothing_computed),
        Kind("sparse", "sparse", (_sparse,), _read_sparse, dense=True),
        Kind("CuPy", "cupy", (_cupy,), lambda x: x.get(), mixes=False, why_not=gpu.why_unavailable),
        Kind("unyt", "unyt", (_unyt,), _read_unyt, own_errors=("unyt",), dense=True),
    )
}


def installed() -> list[Kind]:
    """Return the kinds whose packages are installed."""
    found = []
    for kind in KINDS.values():
        with contextlib.suppress(ImportError):
            importlib.import_module(kind.package)
            if kind.why_not():
                print(f"{kind.name} is installed, and not checked: {kind.why_not()}")
            else:
                found.append(kind)
    return found


# -- one sample --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """The outcome of a sample with some operands of a kind: "works", "refuses" or "defect", with the message and the stage."""

    result: str
    stage: str = ""
    said: str = ""


def positions(sample: Sample, kind: Kind) -> list[tuple[int, ...]]:
    """Return the operands to convert: each drawn one alone, then all of them."""
    if not kind.mixes:
        return [sample.arrays]
    drawn = [i for i, shape in enumerate(sample.shapes) if type(shape) is tuple]
    return list(dict.fromkeys([*[(i,) for i in drawn], tuple(drawn)])) if drawn else []


def check(prim: Primitive, sample: Sample, kind: Kind, foreign: tuple[int, ...], make: Any = None) -> Outcome:
    """Compare value, VJP, JVP and second derivatives with the operands ``foreign`` of a kind with those of ndarrays."""
    case = Case(prim, sample)
    run = _Run(case, kind, foreign, make or kind.makes[0])
    stage = STAGES[0]
    try:
        for stage in STAGES if case.wanted else STAGES[:1]:
            getattr(run, stage)()
    except Exception as error:
        return _judged(error, stage, kind)
    return Outcome("works")


def _judged(error: Exception, stage: str, kind: Kind) -> Outcome:
    said = traceback.format_exception_only(error)[-1].strip().split("\n")[0]
    clear = isinstance(error, TypeError) and any(words in str(error) for words in _CLEAR)
    own = type(error).__module__.partition(".")[0] in kind.own_errors
    return Outcome("refuses" if clear or own else "defect", stage, said)


class _Run:
    """A way to call a primitive: each method is a stage, and raises if a result differs from that with ndarrays."""

    def __init__(self, case: Case, kind: Kind, foreign: tuple[int, ...], make: Callable[[Any], Any]) -> None:
        self.case, self.kind, self.make = case, kind, make
        self.operands = [make(x) if i in foreign else x for i, x in enumerate(case.operands)]

    def value(self) -> None:
        expected = self.case.value(self.case.operands)
        with self.kind.guard():
            outs = as_tuple(self.case.prim(*map(_given, self.operands), **self.case.params))
        self.same(outs, expected)

    def vjp(self) -> None:
        wanted = self.case.wanted
        gs = self.case.cotangents(self.case.operands, 1)
        expected = list(map(or_zeros, self.case.pull(self.case.operands, gs), self.picked(wanted)))
        with self.kind.guard():
            got = self.pulled(gs)
        self.same(got, expected)

    def pulled(self, gs: Any) -> list[Any]:
        leaves, outs = self.run()
        return sweep(leaves, outs, [as_plain_array(self.make(g)) for g in gs], False)

    def run(self) -> tuple[list[Tensor], list[Any]]:
        return self.case.run(
            [as_plain_array(x) if i in self.case.wanted else _given(x) for i, x in enumerate(self.operands)],
            self.case.wanted,
        )

    def jvp(self) -> None:
        along = {i: normal_like(self.case.operands[i], 5 + i) for i in self.case.wanted}
        expected = _tangents(self.case, self.case.operands, along)
        with self.kind.guard():
            made = {i: as_plain_array(self.make(t)) for i, t in along.items()}
            got = _tangents(self.case, [as_plain_array(x) if hasattr(x, "shape") else x for x in self.operands], made)
        self.same(got, expected)

    def second(self) -> None:
        gs = self.case.cotangents(self.case.operands, 1)
        hs = [normal_like(x, 9 + i) for i, x in enumerate(self.picked(self.case.wanted))]
        expected = _second(*self.case.run(self.case.operands, self.case.wanted), gs, hs)
        with self.kind.guard():
            leaves, outs = self.run()
            got = _second(
                leaves, outs, [as_plain_array(self.make(g)) for g in gs], [as_plain_array(self.make(h)) for h in hs]
            )
        self.same(got, expected)

    def picked(self, wanted: tuple[int, ...]) -> list[Any]:
        return [self.case.operands[i] for i in wanted]

    def same(self, got: Any, expected: Any) -> None:
        """Check that these are arrays of the kind with the expected numbers; None stands for zeros."""
        for g, e in zip(got, expected, strict=True):
            while isinstance(g, Tensor):
                g = g._raw
            if g is None or e is None:
                assert (g is None and e is None) or not np.any(self.read(g) if e is None else e), (
                    f"got {g}, expected {e}"
                )
                continue
            numbers = self.read(g)
            assert numbers.shape == np.shape(e), f"got shape {numbers.shape}, expected {np.shape(e)}"
            assert numbers.dtype == e.dtype, f"got {numbers.dtype}, expected {e.dtype}"
            np.testing.assert_allclose(numbers, e, _TOLERANCE, _TOLERANCE, err_msg="numbers")

    def read(self, x: Any) -> Any:
        if type(x) is Foreign:
            return np.asarray(self.kind.read(x.payload))
        assert self.kind.dense and isinstance(x, (ndarray, np.generic)), f"the result is a {type(x).__name__} of NumPy"
        return np.asarray(x)


def _given(x: Any) -> Any:
    """Return an operand as users pass it: a tensor that contains another library's array, or other objects unchanged."""
    x = as_plain_array(x) if hasattr(x, "shape") else x
    return wrap(x) if type(x) is Foreign else x


def _tangents(case: Case, operands: Any, along: dict[int, Any]) -> list[Any]:
    outs = as_tuple(case.prim(*duals(operands, along), **case.params))
    return [getattr(outs[i], "tangent", None) for i in case.differentiable_outputs()]


def _second(leaves: list[Tensor], outs: Any, gs: Any, hs: Any) -> list[Any]:
    firsts = sweep(leaves, outs, gs, True)
    there = [(first, h) for first, h in zip(firsts, hs, strict=True) if first is not None]
    return sweep(leaves, [first for first, _ in there], [h for _, h in there], False)


# -- units -------------------------------------------------------------------------------------------------------------

#: functions of numbers, not of quantities: 3.7 m and 370 cm are not rounded to the same length
_OF_NUMBERS = frozenset({"ceil", "floor", "frac", "nextafter", "round", "trunc", "binary_exponent", "floor_divide"})


def check_units(prim: Primitive, sample: Sample) -> Outcome:
    """Check that the same lengths in metres and in centimetres give the same results and gradients.

    A gradient has the unit of the result divided by that of the operand. A lost unit, or a number without unit that is added
    to lengths, gives another quantity. Refusals of unyt are correct.
    """
    kind = KINDS["unyt"]
    try:
        case = Case(prim, sample)
        metres, centimetres = (_measured(case, unit, scale) for unit, scale in (("m", 1.0), ("cm", 100.0)))
        for i, (a, b) in enumerate(zip(metres, centimetres, strict=True)):
            _same_quantity(a, b, f"number {i}")
    except Exception as error:
        return _judged(error, "units", kind)
    return Outcome("works")


def _measured(case: Case, unit: str, scale: float) -> list[Any]:
    """Return outputs and gradients for lengths in a unit, each gradient multiplied by the ratio of the units."""
    import unyt

    lengths = [
        unyt.unyt_array(x * scale, unit) if i in case.sample.floating else x for i, x in enumerate(case.operands)
    ]
    leaves, outs = case.run([as_plain_array(x) if hasattr(x, "units") else x for x in lengths], case.wanted)
    values = [_payload(out) for out in outs]
    if len(values) != 1:
        return values
    gradients = [_payload(g) for g in sweep(leaves, outs, case.cotangents(case.operands, 1), False)]
    of_value = getattr(values[0], "units", unyt.dimensionless)
    for g in gradients:
        if g is not None and np.any(np.asarray(g)):
            rest = getattr(g, "units", unyt.dimensionless) * unyt.Unit(unit) / of_value
            assert rest.is_dimensionless, f"a gradient in {getattr(g, 'units', 'no unit')} of a result in {of_value}"
    return [*values, *gradients]


def _payload(x: Any) -> Any:
    while isinstance(x, Tensor):
        x = x._raw
    return x.payload if type(x) is Foreign else x


def _same_quantity(a: Any, b: Any, what: str) -> None:
    if a is None or b is None:
        assert a is b is None or not np.any(np.asarray(b if a is None else a)), what
        return
    units = getattr(a, "units", None)
    ratio = 1.0
    if units is not None and hasattr(b, "units"):
        assert units.dimensions == b.units.dimensions, f"{what}: {units} and {b.units}"
        ratio = float(b.units.base_value / units.base_value)
    numbers = np.asarray(b) * ratio
    np.testing.assert_allclose(np.asarray(a), numbers, 1e-8, 1e-8, err_msg=what)


# -- all samples of a primitive ---------------------------------------------------------------------------------------


@dataclass
class Result:
    """The result of a primitive for a kind: the outcomes of all samples and operands with a reference."""

    outcomes: list[tuple[str, Outcome]]

    @property
    def word(self) -> str:
        """ "yes", "no", "in part", or "value" if only derivatives are refused; "defect" if there is any."""
        results = {outcome.result for _, outcome in self.outcomes}
        if "defect" in results or not results:
            return "defect" if results else ""
        if results == {"works"}:
            return "yes"
        if "works" in results:
            return "in part"
        return "no" if any(outcome.stage == "value" for _, outcome in self.outcomes) else "value"

    def first(self, result: str) -> str:
        return next((f"{where}: {o.stage}: {o.said}" for where, o in self.outcomes if o.result == result), "")


def row_on(prim: Primitive, kind: Kind) -> Result:
    """Check all samples of a primitive with the arrays of a kind."""
    outcomes = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in every_sample(prim):
            for foreign, (layout, make) in itertools.product(positions(sample, kind), enumerate(kind.makes)):
                where = f"{sample} with {foreign}{f', layout {layout}' if layout else ''}"
                outcomes.append((where, check(prim, sample, kind, foreign, make)))
            if kind.name == "unyt" and sample.floating and not sample.complex and prim.name not in _OF_NUMBERS:
                units = check_units(prim, sample)
                if units.result == "defect":  # a refusal is unyt's answer for lengths, and says nothing about numbers
                    outcomes.append((f"{sample} in metres", units))
    return Result(outcomes)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.foreign.checking", description=__doc__)
    parser.add_argument("rows", nargs="*", help="names of rows; without any, all of them")
    parser.add_argument("--kind", action="append", help="one library's arrays only")
    parser.add_argument(
        "--write", metavar="FILE", help="a JSON file to keep the results in; what it has of other rows stays"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="say what was refused, too")
    chosen = parser.parse_args(arguments)
    kinds = [kind for kind in installed() if not chosen.kind or kind.name in chosen.kind]
    table: dict[str, dict[str, str]] = {}
    defects = 0
    for name in chosen.rows or sorted(TABLE):
        for kind in kinds:
            result = row_on(TABLE[name], kind)
            table.setdefault(name, {})[kind.name] = result.word
            if result.word == "defect":
                defects += 1
                print(f"{kind.name}: {name}{result.first('defect')}")
            elif chosen.verbose and result.word != "yes":
                print(f"{kind.name}: {name} {result.word} {result.first('refuses')}")
    for kind in kinds:
        words = [table[name][kind.name] for name in table]
        print(kind.name, {word: words.count(word) for word in dict.fromkeys(words)})
    if chosen.write:
        _write(Path(chosen.write), table, whole=not chosen.rows and not chosen.kind)
    return 1 if defects else 0


def _write(file: Path, table: dict[str, dict[str, str]], whole: bool) -> None:
    """Write the results: all of them, or those of some primitives or kinds merged into the file."""
    known = {} if whole or not file.exists() else json.loads(file.read_text())
    for name, found in table.items():
        known[name] = {**known.get(name, {}), **found}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known))
    file.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    sys.exit(main())
