"""``chainrule check``: is the gradient of a function what its values say? And does a row of the table tell the truth?"""

from __future__ import annotations

import warnings
from argparse import Namespace
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyFunction, NumpyArray
from chainrule._src.cli.inputs import inputs_for
from chainrule._src.cli.operations import names_of, row_named, without_module
from chainrule._src.cli.outcome import CHECK_FAILED, OK, BadUsage, ScriptRaised, did_you_mean
from chainrule._src.cli.script import importing, look_up, traceback_of
from chainrule._src.cli.show import Console
from chainrule._src.rules.primitive import TABLE, Primitive
from chainrule._src.transforms.grad_checks import recorded
from chainrule.testing import CHECKS, GradcheckError, gradcheck, gradgradcheck, rulecheck
from chainrule.testing.rulecheck import every_sample

_RTOL, _ATOL = 1e-3, 1e-5  # those of gradcheck
_WIDTH = 2 + max(map(len, CHECKS))


def run(options: Namespace) -> int:
    """Check a function of a file, or a row, and print a report."""
    path, separator, name = options.function.rpartition("::")
    if not separator:
        return _row(_row_of_the_table(options.function), options)
    with importing(path) as module:
        thing = look_up(name, vars(module), path)
        row = getattr(thing, "row", thing)
        if isinstance(row, Primitive):
            return _row(row, options)
        if not callable(thing):
            raise BadUsage(f"{name} of {path} is not a function but a {type(thing).__name__}")
        return _function(options.function, thing, options)


def _row_of_the_table(name: str) -> Primitive:
    row = row_named(without_module(name))
    if row is not None:
        return row
    if names_of(without_module(name)):
        raise BadUsage(f"{name} is a composite: its parts are checked row by row (`chainrule ops {name}` shows them)")
    raise BadUsage(
        f"{name!r} is neither script.py::function nor a row of the table.{did_you_mean(name, TABLE)} The function of a "
        f"file comes after two colons, as in model.py::{'f' if name.endswith('.py') else name}"
    )


# -- rows ---------------------------------------------------------------------------------------------------------------


def _row(row: Primitive, options: Namespace) -> int:
    if options.input or options.shape or options.set:
        raise BadUsage(
            f"{row.name} is a row, which is checked on its own samples: leave out --input, --shape and --set"
        )
    show = Console()
    try:
        samples = every_sample(row)
    except ValueError as error:
        raise BadUsage(str(error)) from None
    show.heading(f"rulecheck of {row.name} ({row.kind}), on {len(samples)} samples")
    failed = 0
    for check, function in CHECKS.items():
        what = (function.__doc__ or check).splitlines()[0].rstrip(".:")
        try:
            rulecheck(row, [check], samples)
        except AssertionError as error:
            failed += 1
            _line(show, False, check, f"{what}\n{str(error).removeprefix(f'row {row.name}: ')}")
        except Exception as error:
            raise ScriptRaised(f"{traceback_of(error)}(in the check {check!r} of row {row.name})\n") from None
        else:
            _line(show, True, check, what)
    return _verdict(show, failed, len(CHECKS), row.name)


# -- functions ----------------------------------------------------------------------------------------------------------


def _function(called: str, function: AnyFunction, options: Namespace) -> int:
    show = Console()
    given = inputs_for(function, options)
    show.heading(f"gradcheck of {called}")
    show.pairs((name, _described(x)) for name, x in given.named())
    f, xs = given.call, given.tensors
    forward = {"check_backward_ad": False, "check_forward_ad": True}
    checks: list[tuple[str, list[str], list[str], AnyFunction]] = [
        ("backward mode", given.outputs(), given.names, lambda: gradcheck(f, xs)),
        ("forward mode", given.outputs(), given.names, lambda: gradcheck(f, xs, **forward)),
    ]
    if options.order == 2:
        cotangents = [f"g{i}" if len(given.outputs()) > 1 else "g" for i in range(len(recorded(given.result)))]
        slopes = [f"(∂/∂{name})" for name in given.names]
        checks.append(("second order", slopes, given.names + cotangents, lambda: gradgradcheck(f, xs)))
    failed = 0
    for what, outputs, inputs, check in checks:
        failed += _one(show, what, outputs, inputs, check)
    return _verdict(show, failed, len(checks), called)


def _one(show: Console, what: str, outputs: list[str], inputs: list[str], check: AnyFunction) -> bool:
    """Run a check and print a line about it: whether it failed."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            check()
    except GradcheckError as error:
        _line(show, False, what, _explained(error, outputs, inputs))
        return True
    except NotImplementedError as error:
        show.pairs([(f"– {what}", f"not checked: {error}")], width=_WIDTH)
        return False
    except Exception as error:
        raise ScriptRaised(traceback_of(error) + f"(in the check of {what})\n") from None
    _line(show, True, what, "agrees with differences of the values")
    return False


def _explained(error: GradcheckError, outputs: list[str], inputs: list[str]) -> str:
    """Return the first entry of the Jacobian that is wrong, in words."""
    found = error.mismatch
    if found is None:
        return str(error)
    wrong = np.argwhere(~np.isclose(found.analytical, found.numerical, _RTOL, _ATOL))
    row, column = (int(n) for n in wrong[0])
    y = _entry(outputs[found.output] if found.output < len(outputs) else "out", column, found.output_shape)
    x = _entry(inputs[found.input], row, found.input_shape)
    return (
        f"∂{y}/∂{x} is {_number(found.analytical[row, column])} by the rule and "
        f"{_number(found.numerical[row, column])} by differences of the values "
        f"({len(wrong)} of {found.numerical.size} entries of this Jacobian differ)"
    )


def _entry(name: str, flat: int, shape: tuple[int, ...]) -> str:
    index = [int(n) for n in np.unravel_index(flat, shape)] if shape else []
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def _number(value: NumpyArray) -> str:
    return f"{value.item():.6g}"


def _described(x: Any) -> str:
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
