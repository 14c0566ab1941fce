"""Public operations by name, for the command line: their primitives, aliases, and the primitives that composites call.

``ops`` and ``check`` call these functions.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import chainrule.fft
import chainrule.nn.functional  # imports declare more operations
from chainrule._src.api.declare import OPERATIONS, Operation
from chainrule._src.api.watch import Watch
from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.rules.primitive import TABLE, Primitive
from chainrule._src.tape.protocol import UFUNCS, find, import_implementations
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
    """Return the operations on tensors by dotted name (``exp``, ``linalg.inv`` ...), including aliases."""
    return {
        name: operation
        for name, operation in OPERATIONS.items()
        if not name.startswith("Tensor.") and _module_of(operation.function) not in _NO_OPERATIONS
    }


def _module_of(function: AnyFunction) -> str:
    """Return the name of the module that defines a function."""
    return str(getattr(inspect.unwrap(function), "__globals__", {}).get("__name__", ""))


def without_module(name: str) -> str:
    """Return a name without its top-level module: ``torch.exp``, ``np.exp`` and ``Tensor.exp`` become ``exp``."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def last_part(name: str) -> str:
    """Return the last part of a dotted name."""
    return name.rpartition(".")[2]


def names_of(name: str) -> list[str]:
    """Return all public names of the operation with this dotted or last name, starting with the name itself."""
    known = operations()
    first = name if name in known else next((n for n in known if last_part(n) == name), None)
    if first is None:
        return []
    same = [n for n in known if n in known[first].names or last_part(n) == last_part(first)]
    return list(dict.fromkeys([first, *same]))


def primitive_named(name: str) -> Primitive | None:
    """Return the primitive with this name, or with a public function that has this alias."""
    if name in TABLE:
        return TABLE[name]
    aliases = {last_part(alias) for alias in names_of(name)}
    return next((TABLE[alias] for alias in sorted(aliases) if alias in TABLE), None)


def known_names() -> list[str]:
    """Return all names of operations, for suggestions after a misspelling."""
    return [*TABLE, *operations(), *map(last_part, operations())]


def numpy_names(primitive_name: str, aliases: list[str]) -> list[str]:
    """Return NumPy's names of an operation, for NumPy's functions that accept tensors."""
    list(import_implementations("numpy"))
    row = TABLE.get(primitive_name)
    found = [f"np.{ufunc.__name__}" for ufunc, ours in UFUNCS.items() if ours is row and hasattr(np, ufunc.__name__)]
    for name in [primitive_name, *map(last_part, aliases)]:
        for module, prefix in ((np, "np."), (np.linalg, "np.linalg.")):
            function = getattr(module, name, None)
            if callable(function) and (function in UFUNCS or find(function) is not None):
                found.append(prefix + name)
    return list(dict.fromkeys(found))


def methods(aliases: list[str]) -> list[str]:
    """Return the tensor methods with these names."""
    return [f"x.{name}" for name in dict.fromkeys(map(last_part, aliases)) if callable(getattr(Tensor, name, None))]


# -- primitives of composites ------------------------------------------------------------------------------------------

#: Tensor arguments to try for operations without a declared sample.
_TENSORS = ("rand(2, 3)", "rand(3, 3)", "rand(3)", "rand(2, 3, 4)", "rand(2, 3, 3)")
#: Other arguments for such operations, by parameter name.
_OTHERS = {
    "dim": "0", "exponent": "2.0", "index": "tensor([0, 1])", "k": "2", "max": "0.5", "min": "0.5", "n": "3", "q": "0.5",
    "mask": "tensor([[True, False, True], [False, True, False]])", "normalized_shape": "3", "repeats": "2",
    "sizes": "3, 2", "value": "1.0",
}  # fmt: skip


class RecordedCall(NamedTuple):
    """A call of a primitive: its name, and the shapes of its operands and results."""

    name: str
    operands: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.operands))} → {', '.join(map(str, self.outputs))}"


class _CallRecorder(Watch):
    """An observer that records the primitives called."""

    def __init__(self) -> None:
        self.found: list[RecordedCall] = []

    def forward(self, prim: Primitive, datas: object, params: Params) -> Any:
        out = super().forward(prim, datas, params)
        outs = out if isinstance(out, tuple) else (out,)
        shapes = [x.shape for x in _flat(datas) if hasattr(x, "shape")]
        self.found.append(RecordedCall(prim.name, tuple(shapes), tuple(np.shape(x) for x in outs)))
        return out


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        yield from value if isinstance(value, (tuple, list)) else (value,)


def parts_of(operation: Operation) -> tuple[str, list[RecordedCall]] | None:
    """Run an operation on a sample; return the arguments as text and the primitives called, or None without a sample.

    >>> from chainrule._src.cli.operations import operations, parts_of
    >>> arguments, parts = parts_of(operations()["outer"])
    >>> arguments, [part.name for part in parts]
    ('rand(3), rand(3)', ['unsqueeze', 'mul'])
    """
    for arguments in [operation.sample] if operation.sample else _guesses(operation):
        with warnings.catch_warnings(), np.errstate(all="ignore"), _CallRecorder() as watch:
            warnings.simplefilter("ignore")
            try:
                eval(f"function({arguments})", {"function": operation.public, **_vocabulary()})
            except Exception:  # invalid arguments: try the next sample
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
    """Return the names used in samples: ``rand`` (float64, requires grad), ``tensor``, ``zeros``, ``ones`` and ``eye``."""
    rng = np.random.default_rng(0)

    def rand(*shape: int) -> Tensor:
        return wrap(0.1 + 0.8 * rng.random(shape)).requires_grad_()

    makers = {
        name: functools.partial(getattr(chainrule, name), dtype=chainrule.float64) for name in ("zeros", "ones", "eye")
    }
    return {"rand": rand, "tensor": chainrule.tensor, **makers}
