"""Inputs for ``chainrule check``: literals, or random numbers for which the function is finite.

``check`` calls ``inputs_for``.
"""

from __future__ import annotations

import inspect
import warnings
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.cli.outcome import BadUsage, ScriptRaised, did_you_mean
from chainrule._src.cli.script import literal, traceback_of
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.function import Function
from chainrule.testing.samples import Sample

#: Ranges of random inputs; the first one with finite function values is used.
_DOMAINS = ((-2.0, 2.0), (0.2, 2.0), (-0.9, 0.9), (0.1, 0.9), (1.1, 3.0))


class FunctionInputs:
    """A function with the inputs for its check.

    Attributes:
        call: the function of only the tensors.
        names: the names of the tensors' parameters.
        tensors: float64 or complex128 tensors that require grad.
        settings: the parameters that are not differentiated.
        result: the function's result for the inputs.
    """

    def __init__(self, function: AnyFunction, names: list[str], tensors: Sequence[Tensor], settings: Params) -> None:
        self.names = names
        self.tensors = tuple(tensors)
        self.settings = settings
        self.call: AnyFunction = (lambda *xs: function(*xs, **settings)) if settings else function
        self.result: Any = None

    def named(self) -> Iterator[tuple[str, Any]]:
        yield from zip(self.names, self.tensors)
        yield from self.settings.items()

    def outputs(self) -> list[str]:
        """Return names for the outputs."""
        if isinstance(self.result, (tuple, list)):
            return [f"out{i}" for i in range(len(self.result))]
        return ["out"]

    def evaluate(self) -> bool:
        """Call the function; return whether all of its results are finite."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            self.result = self.call(*self.tensors)
        outputs = self.result if isinstance(self.result, (tuple, list)) else [self.result]
        for y in outputs:
            if not isinstance(y, Tensor):
                raise BadUsage(
                    f"the function returned a {type(y).__name__}, not a tensor, so it has no gradient: use chainrule's or "
                    "NumPy's functions, and return their results"
                )
        return all(bool(np.isfinite(y.detach().numpy()).all()) for y in outputs)


def inputs_for(function: AnyFunction, options: Namespace) -> FunctionInputs:
    """Return the inputs from the options, or random ones.

    Raises:
        BadUsage: the inputs do not match the function's parameters.
        ScriptRaised: the function raised an exception.
    """
    settings = _parse_settings(options.set)
    names = _parameters(function, settings, len(options.input or options.shape or ()))
    function = getattr(function, "apply", function) if _is_custom(function) else function
    if options.input:
        inputs = FunctionInputs(function, names, [_tensor(text) for text in options.input], settings)
        _evaluate(inputs, "the inputs given with --input")
        return inputs
    shapes = [_shape(text) for text in options.shape] if options.shape else [(3,)] * len(names)
    for low, high in _DOMAINS:
        n = len(shapes)
        sample = Sample(tuple(shapes), {}, ((low, high),) * n, ("normal",) * n)
        inputs = FunctionInputs(
            function, names, [wrap(x).requires_grad_() for x in sample.draw(options.seed)], settings
        )
        if _evaluate(inputs, f"random inputs of shape {' and '.join(str(s) for s in dict.fromkeys(shapes))}"):
            return inputs
    raise BadUsage("the function is nan or infinite for all random inputs tried: give inputs with --input")


def _evaluate(inputs: FunctionInputs, at: str) -> bool:
    try:
        return inputs.evaluate()
    except (BadUsage, KeyboardInterrupt):
        raise
    except Exception as error:
        raise ScriptRaised(
            f"{traceback_of(error)}(the function was called with {at}; set other inputs with --shape or --input, and "
            "non-tensor parameters with --set)\n"
        ) from None


def _is_custom(function: object) -> bool:
    """Return whether the object is a subclass of ``autograd.Function``."""
    return isinstance(function, type) and issubclass(function, Function)


def _parse_settings(assignments: Sequence[str]) -> Params:
    settings = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise BadUsage(f"--set {text!r} is not NAME=LITERAL, as in --set dim=0")
        settings[name.strip()] = literal(value, f"--set {name.strip()}=")
    return settings


def _parameters(function: Any, settings: Params, count: int) -> list[str]:
    """Return the names of the parameters for ``count`` inputs (0: as many as necessary)."""
    custom = _is_custom(function)
    try:
        parameters = list(inspect.signature(function.forward if custom else function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    if custom and function.setup_context is Function.setup_context:
        parameters = parameters[1:]  # ctx
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for name in settings:
        known = [p.name for p in parameters]
        if name not in known and not anything:
            raise BadUsage(f"--set {name}: the function has no such parameter.{did_you_mean(name, known)}")
    positional = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name not in settings
    ]
    needed = [p.name for p in positional if p.default is p.empty]
    missing = [
        p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty and p.name not in settings
    ]
    if missing:
        raise BadUsage(f"the function needs {missing[0]}: set it with --set {missing[0]}=...")
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    possible = [p.name for p in positional]
    if rest is not None or not parameters:
        possible += [f"{rest or 'x'}{i}" for i in range(max(0, count - len(possible)))]
    if not count:
        if not needed and rest is None:
            needed = possible[:1]
        if not needed:
            raise BadUsage("the function takes any number of inputs: give --shape or --input once for each input")
        return needed
    if not len(needed) <= count <= len(possible):
        raise BadUsage(f"{count} inputs were given, but the function takes {', '.join(possible) or 'none'}")
    return possible[:count]


def _tensor(text: str) -> Tensor:
    value = literal(text, "--input")
    try:
        array = np.array(value)
        if array.dtype.kind not in "fcbiu":
            raise ValueError
    except ValueError:
        raise BadUsage(f"--input {text!r} is neither a number nor a list of lists of equal length") from None
    return wrap(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)).requires_grad_()


def _shape(text: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(part) for part in text.strip("() ").split(",") if part.strip())
        if min(shape, default=0) < 0:
            raise ValueError
    except ValueError:
        raise BadUsage(f"--shape {text!r} is not a shape such as 2,3") from None
    return shape
