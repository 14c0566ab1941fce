"""Operations without a row of their own: what they are made of, found by running them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import chainrule
from chainrule.api.declare import OPERATIONS
from chainrule.core.tensor import Tensor, wrap
from chainrule.core.watch import Watch

_TENSORS = ("rand(2, 3)", "rand(3, 3)", "rand(3)", "rand(2, 3, 4)", "rand(2, 3, 3)")

#: What to call a function with, by the names of its parameters; others are tensors.
_PARAMETERS = {
    "dim": "0",
    "exponent": "2.0",
    "index": "tensor([0, 1])",
    "k": "2",
    "mask": "tensor([[True, False, True], [False, True, False]])",
    "max": "0.5",
    "min": "0.5",
    "n": "3",
    "normalized_shape": "3",
    "q": "0.5",
    "repeats": "2",
    "sizes": "3, 2",
    "value": "1.0",
}


class Part(NamedTuple):
    """An operation that ran: its name, the shapes of its operands, and those of what it computed."""

    name: str
    operands: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        into = ", ".join(map(_shape, self.operands))
        return f"{into} → {', '.join(map(_shape, self.outputs))}"


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


class _Parts(Watch):
    """Notes what runs."""

    def __init__(self) -> None:
        self.found: list[Part] = []

    def forward(self, prim: Any, datas: Any, params: dict[str, Any]) -> Any:
        out = super().forward(prim, datas, params)
        outs = out if isinstance(out, tuple) else (out,)
        shapes = [x.shape for x in _flat(datas) if hasattr(x, "shape")]
        self.found.append(Part(prim.name, tuple(shapes), tuple(np.shape(x) for x in outs)))
        return out


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        yield from value if isinstance(value, (tuple, list)) else (value,)


def parts_of(name: str, function: Callable[..., Any]) -> tuple[str, list[Part]] | None:
    """Run an operation on a sample: the arguments as text, and what ran. None: no sample is known to fit it.

    >>> from chainrule.cli.composites import parts_of
    >>> import chainrule as cr
    >>> arguments, parts = parts_of("outer", cr.outer)
    >>> arguments, [part.name for part in parts]
    ('rand(3), rand(3)', ['unsqueeze', 'mul'])
    """
    for arguments in _candidates(name, function):
        with warnings.catch_warnings(), np.errstate(all="ignore"), _Parts() as watch:
            warnings.simplefilter("ignore")
            try:
                eval(f"function({arguments})", {"function": function, **_vocabulary()})
            except Exception:  # the sample does not fit: there may be another
                continue
        return arguments, watch.found
    return None


def _vocabulary() -> dict[str, Any]:
    rng = np.random.default_rng(0)

    def rand(*shape: int) -> Tensor:
        return wrap(0.1 + 0.8 * rng.random(shape)).requires_grad_()

    def real(make: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *shape: make(*shape, dtype=chainrule.float64)

    makers = {name: real(getattr(chainrule, name)) for name in ("zeros", "ones", "eye")}
    return {"rand": rand, "tensor": chainrule.tensor, **makers}


def _candidates(name: str, function: Callable[..., Any]) -> Iterator[str]:
    declared = OPERATIONS[name].sample
    if declared:
        yield declared
        return
    parameters = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    for tensor in _TENSORS:
        words = []
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL and p.name not in _PARAMETERS:
                words += [tensor, tensor]
            elif p.name in ("tensors", "matrices"):
                words.append(f"[{tensor}, {tensor}]")
            elif p.kind is not p.VAR_KEYWORD:
                words.append(_PARAMETERS.get(p.name, tensor))
        yield ", ".join(words)
