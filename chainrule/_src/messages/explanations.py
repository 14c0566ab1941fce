"""Messages about ``explain`` and ``profile``."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule._src.messages.message_parts import function_name


def explained_by(by: object, known: Iterable[object]) -> ValueError:
    return ValueError(
        f"explain(): by={by!r} is not a way to divide a gradient; use one of {', '.join(map(repr, known))}"
    )


def explained_jacobian_arguments() -> TypeError:
    return TypeError(
        "explain(): grad, wrt and by apply to backward passes only: a Jacobian has one output and one input."
    )


def explained_jacobian_changed(how: object) -> RuntimeError:
    return RuntimeError(
        f"explain(): the function returned another Jacobian than before: {how}. explain() runs it again, so its "
        "arguments and the values that it reads must not change in between: compute the Jacobian again."
    )


def explained_other(value: object) -> TypeError:
    return TypeError(
        f"explain(): {type(value).__name__} has no recorded history. For a Jacobian write explain(jacobian(f, x, "
        "layout='structured')); the result of jacobian_plan() can be printed."
    )


def explained_jacobian_unknown(jacobian: object) -> ValueError:
    return ValueError(
        f"explain(): {jacobian!r} was not returned by jacobian(f, x, layout='structured') or hessian(), but made "
        "from such results (by a product, a transpose, hstack=True ...) or read from a file: explain the results "
        "themselves."
    )


def explain_inside() -> RuntimeError:
    return RuntimeError(
        "explain() was called inside a transformation (vmap, jvp or jacfwd), where a value is not a single array: "
        "call it outside, on ordinary tensors or as explain(f)(x) for the transformed function."
    )


def profiler_sort(given: object, known: Iterable[object]) -> ValueError:
    return ValueError(f"cannot sort by {given!r}: sort_by is one of {', '.join(map(repr, known))}")


def explained_parameter(function: object, name: object, known: Iterable[str]) -> ValueError:
    return ValueError(
        f"explain({function_name(function)}, wrt={name!r}): no floating-point argument has that name; the names "
        f"are {', '.join(known)}"
    )
