"""``chainrule check``: compare a function's gradient with finite differences, or check the rules of a primitive."""

from __future__ import annotations

import warnings
from argparse import Namespace
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction, NumpyArray
from chainrule._src.cli.inputs import inputs_for
from chainrule._src.cli.operations import names_of, primitive_named, without_module
from chainrule._src.cli.outcome import CHECK_FAILED, OK, BadUsage, ScriptRaised, did_you_mean
from chainrule._src.cli.script import importing, look_up, traceback_of
from chainrule._src.cli.show import Console
from chainrule._src.rules.primitive import TABLE, Primitive
from chainrule._src.transforms.grad_checks import recorded_outputs
from chainrule.testing import CHECKS, GradcheckError, gradcheck, gradgradcheck, rulecheck
from chainrule.testing.rulecheck import every_sample

_RTOL, _ATOL = 1e-3, 1e-5  # the tolerances of gradcheck
_WIDTH = 2 + max(map(len, CHECKS))


def run(options: Namespace) -> int:
    """Check a function of a file, or a primitive, and print a report."""
    path, separator, name = options.function.rpartition("::")
    if not separator:
        return _check_primitive(_find_primitive(options.function), options)
    with importing(path) as module:
        thing = look_up(name, vars(module), path)
        prim = getattr(thing, "row", thing)
        if isinstance(prim, Primitive):
            return _check_primitive(prim, options)
        if not callable(thing):
            raise BadUsage(f"{name} of {path} is not a function but a {type(thing).__name__}")
        return _check_function(options.function, thing, options)


def _find_primitive(name: str) -> Primitive:
    prim = primitive_named(without_module(name))
    if prim is not None:
        return prim
    if names_of(without_module(name)):
        raise BadUsage(f"{name} is a composite: check its primitives instead (`chainrule ops {name}` lists them)")
    raise BadUsage(
        f"{name!r} is neither script.py::function nor a primitive.{did_you_mean(name, TABLE)} Write the function of a "
        f"file after two colons, as in model.py::{'f' if name.endswith('.py') else name}"
    )


# -- primitives ---------------------------------------------------------------------------------------------------------


def _check_primitive(prim: Primitive, options: Namespace) -> int:
    if options.input or options.shape or options.set:
        raise BadUsage(
            f"{prim.name} is a primitive and is checked on its own samples: remove --input, --shape and --set"
        )
    show = Console()
    try:
        samples = every_sample(prim)
    except ValueError as error:
        raise BadUsage(str(error)) from None
    show.heading(f"rulecheck of {prim.name} ({prim.kind}), on {len(samples)} samples")
    failed = 0
    for check, function in CHECKS.items():
        what = (function.__doc__ or check).splitlines()[0].rstrip(".:")
        try:
            rulecheck(prim, [check], samples)
        except AssertionError as error:
            failed += 1
            _line(show, False, check, f"{what}\n{str(error).removeprefix(f'primitive {prim.name}: ')}")
        except Exception as error:
            raise ScriptRaised(f"{traceback_of(error)}(in the check {check!r} of primitive {prim.name})\n") from None
        else:
            _line(show, True, check, what)
    return _verdict(show, failed, len(CHECKS), prim.name)


# -- functions ----------------------------------------------------------------------------------------------------------


def _check_function(title: str, function: AnyFunction, options: Namespace) -> int:
    show = Console()
    inputs = inputs_for(function, options)
    show.heading(f"gradcheck of {title}")
    show.pairs((name, _format_input(x)) for name, x in inputs.named())
    f, xs = inputs.call, inputs.tensors
    forward = {"check_backward_ad": False, "check_forward_ad": True}
    checks: list[tuple[str, list[str], list[str], AnyFunction]] = [
        ("backward mode", inputs.outputs(), inputs.names, lambda: gradcheck(f, xs)),
        ("forward mode", inputs.outputs(), inputs.names, lambda: gradcheck(f, xs, **forward)),
    ]
    if options.order == 2:
        cotangents = [
            f"g{i}" if len(inputs.outputs()) > 1 else "g" for i in range(len(recorded_outputs(inputs.result)))
        ]
        slopes = [f"(∂/∂{name})" for name in inputs.names]
        checks.append(("second order", slopes, inputs.names + cotangents, lambda: gradgradcheck(f, xs)))
    failed = 0
    for what, outputs, names, check in checks:
        failed += _run_check(show, what, outputs, names, check)
    return _verdict(show, failed, len(checks), title)


def _run_check(show: Console, what: str, outputs: list[str], inputs: list[str], check: AnyFunction) -> bool:
    """Run a check and print its result; return whether it failed."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            check()
    except GradcheckError as error:
        _line(show, False, what, _first_mismatch(error, outputs, inputs))
        return True
    except NotImplementedError as error:
        show.pairs([(f"– {what}", f"not checked: {error}")], width=_WIDTH)
        return False
    except Exception as error:
        raise ScriptRaised(traceback_of(error) + f"(in the check of {what})\n") from None
    _line(show, True, what, "agrees with finite differences")
    return False


def _first_mismatch(error: GradcheckError, outputs: list[str], inputs: list[str]) -> str:
    """Describe the first wrong entry of the Jacobian."""
    mismatch = error.mismatch
    if mismatch is None:
        return str(error)
    wrong = np.argwhere(~np.isclose(mismatch.analytical, mismatch.numerical, _RTOL, _ATOL))
    row, column = (int(n) for n in wrong[0])
    y = _entry(outputs[mismatch.output] if mismatch.output < len(outputs) else "out", column, mismatch.output_shape)
    x = _entry(inputs[mismatch.input], row, mismatch.input_shape)
    return (
        f"∂{y}/∂{x} is {_number(mismatch.analytical[row, column])} by the rule and "
        f"{_number(mismatch.numerical[row, column])} by finite differences "
        f"({len(wrong)} of {mismatch.numerical.size} entries of this Jacobian differ)"
    )


def _entry(name: str, flat: int, shape: tuple[int, ...]) -> str:
    index = [int(n) for n in np.unravel_index(flat, shape)] if shape else []
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def _number(value: NumpyArray) -> str:
    return f"{value.item():.6g}"


def _format_input(x: Any) -> str:
    if not hasattr(x, "_raw"):
        return repr(x)
    array = x.detach().numpy()
    text = np.array2string(array, precision=4, separator=", ", threshold=12, max_line_width=64)
    return f"{array.dtype} {tuple(array.shape)}\n{text}" if array.ndim else f"{array.dtype} {text}"


def _line(show: Console, good: bool, what: str, text: str) -> None:
    show.pairs([(f"{'✓' if good else '✗'} {what}", text)], width=_WIDTH, style="" if good else "red")


def _verdict(show: Console, failed: int, count: int, what: str) -> int:
    if failed:
        show.line(f"{failed} of {count} checks of {what} failed", "bold red")
        return CHECK_FAILED
    show.line("ok", "bold green")
    return OK
