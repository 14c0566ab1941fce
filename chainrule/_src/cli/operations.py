"""The public operations as the command line names them: their rows, their other names, and what composites are made of."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import chainrule.fft
import chainrule.nn.functional  # which declare more when they load, and have rows
from chainrule._src.api.declare import OPERATIONS, Operation
from chainrule._src.api.watch import Watch
from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.rules.primitive import TABLE, Primitive
from chainrule._src.tape.protocol import FUNCTIONS, UFUNCS, load
from chainrule._src.tape.tensor import Tensor, wrap

_PREFIXES = ("chainrule.", "torch.", "cr.", "np.", "numpy.", "Tensor.")
_NO_OPERATIONS = (
    "chainrule._src.ops.creation",
    "chainrule._src.ops.dlpack",
    "chainrule._src.ops.queries",
    "chainrule._src.ops.random",
)


@functools.cache
def operations() -> dict[str, Operation]:
    """What computes something from tensors, by all its dotted names: ``exp``, ``linalg.inv`` ..."""
    return {
        name: operation
        for name, operation in OPERATIONS.items()
        if not name.startswith("Tensor.") and _room(operation.function) not in _NO_OPERATIONS
    }


def _room(function: AnyFunction) -> str:
    """Return the module that a function is made in."""
    return str(getattr(inspect.unwrap(function), "__globals__", {}).get("__name__", ""))


def without_module(name: str) -> str:
    """Return the name without the module that every name has: ``torch.exp``, ``np.exp`` and ``Tensor.exp`` are ``exp``."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def last_part(name: str) -> str:
    """Return the last part of a dotted name."""
    return name.rpartition(".")[2]


def names_of(name: str) -> list[str]:
    """Return all public names of the operation that has this (dotted or last) name, that one first."""
    known = operations()
    first = name if name in known else next((n for n in known if last_part(n) == name), None)
    if first is None:
        return []
    same = [n for n in known if n in known[first].names or last_part(n) == last_part(first)]
    return list(dict.fromkeys([first, *same]))


def row_named(name: str) -> Primitive | None:
    """Return the row of that name, or the one whose function has that name for an alias."""
    if name in TABLE:
        return TABLE[name]
    aliases = {last_part(alias) for alias in names_of(name)}
    return next((TABLE[alias] for alias in sorted(aliases) if alias in TABLE), None)


def known_names() -> list[str]:
    """Every name that an operation can be asked for by, to compare a misspelt one with."""
    return [*TABLE, *operations(), *map(last_part, operations())]


def numpy_names(row_name: str, aliases: list[str]) -> list[str]:
    """What NumPy calls an operation, where its function works on tensors."""
    load("numpy")
    row = TABLE.get(row_name)
    found = [f"np.{ufunc.__name__}" for ufunc, ours in UFUNCS.items() if ours is row and hasattr(np, ufunc.__name__)]
    for name in [row_name, *map(last_part, aliases)]:
        for module, prefix in ((np, "np."), (np.linalg, "np.linalg.")):
            function = getattr(module, name, None)
            if callable(function) and (function in FUNCTIONS or function in UFUNCS):
                found.append(prefix + name)
    return list(dict.fromkeys(found))


def methods(aliases: list[str]) -> list[str]:
    """Return the tensor methods of these names."""
    return [f"x.{name}" for name in dict.fromkeys(map(last_part, aliases)) if callable(getattr(Tensor, name, None))]


# -- what composites are made of ---------------------------------------------------------------------------------------

#: What an operation whose declaration has no sample is called with: tensors of one of these shapes, and by their names ...
_TENSORS = ("rand(2, 3)", "rand(3, 3)", "rand(3)", "rand(2, 3, 4)", "rand(2, 3, 3)")
#: ... other arguments.
_OTHERS = {
    "dim": "0", "exponent": "2.0", "index": "tensor([0, 1])", "k": "2", "max": "0.5", "min": "0.5", "n": "3", "q": "0.5",
    "mask": "tensor([[True, False, True], [False, True, False]])", "normalized_shape": "3", "repeats": "2",
    "sizes": "3, 2", "value": "1.0",
}  # fmt: skip


class RowCall(NamedTuple):
    """A row that ran: its name, the shapes of its operands, and those of what it computed."""

    name: str
    operands: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.operands))} → {', '.join(map(str, self.outputs))}"


class _RowWatch(Watch):
    """Notes what runs."""

    def __init__(self) -> None:
        self.found: list[RowCall] = []

    def forward(self, prim: Primitive, datas: object, params: Params) -> Any:
        out = super().forward(prim, datas, params)
        outs = out if isinstance(out, tuple) else (out,)
        shapes = [x.shape for x in _flat(datas) if hasattr(x, "shape")]
        self.found.append(RowCall(prim.name, tuple(shapes), tuple(np.shape(x) for x in outs)))
        return out


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        yield from value if isinstance(value, (tuple, list)) else (value,)


def parts_of(operation: Operation) -> tuple[str, list[RowCall]] | None:
    """Run an operation on a sample: the arguments as text, and what ran. None: no sample is known to fit it.

    >>> from chainrule._src.cli.operations import operations, parts_of
    >>> arguments, parts = parts_of(operations()["outer"])
    >>> arguments, [part.name for part in parts]
    ('rand(3), rand(3)', ['unsqueeze', 'mul'])
    """
    for arguments in [operation.sample] if operation.sample else _guesses(operation):
        with warnings.catch_warnings(), np.errstate(all="ignore"), _RowWatch() as watch:
            warnings.simplefilter("ignore")
            try:
                eval(f"function({arguments})", {"function": operation.public, **_vocabulary()})
            except Exception:  # the sample does not fit: there may be another
                continue
        return arguments, watch.found
    return None


def _guesses(operation: Operation) -> Iterator[str]:
    parameters = [p for p in inspect.signature(operation.public).parameters.values() if p.default is p.empty]
    for tensor in _TENSORS:
        words = []
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL and p.name not in _OTHERS:
                words += [tensor, tensor]
            elif p.name in ("tensors", "matrices"):
                words.append(f"[{tensor}, {tensor}]")
            elif p.kind is not p.VAR_KEYWORD:
                words.append(_OTHERS.get(p.name, tensor))
        yield ", ".join(words)


def _vocabulary() -> Params:
    """What samples are written with: random float64 numbers that require grad, and tensors."""
    rng = np.random.default_rng(0)

    def rand(*shape: int) -> Tensor:
        return wrap(0.1 + 0.8 * rng.random(shape)).requires_grad_()

    makers = {
        name: functools.partial(getattr(chainrule, name), dtype=chainrule.float64) for name in ("zeros", "ones", "eye")
    }
    return {"rand": rand, "tensor": chainrule.tensor, **makers}
