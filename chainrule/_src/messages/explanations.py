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


def profiler_option(name: str) -> NotImplementedError:
    if name.startswith("with_") or name == "use_kineto":
        return NotImplementedError(
            f"profile({name}=True) is not supported: profile() records operations, backward rules and "
            f"record_function() labels with their times, shapes and memory; omit {name}."
        )
    return NotImplementedError(
        f"{name} is for GPUs and their vendors' tools, but chainrule runs on the CPU: use profile() without it, and "
        "export_chrome_trace(path) to view the events in a browser."
    )


def explained_result(function: object, result: object, floats: bool) -> TypeError:
    name = getattr(function, "__name__", "f")
    fix = "Return a tensor that is computed from the arguments."
    if not floats:
        fix = "Only floats, and arrays and tensors of floats, become tensors, and no argument is one. Write 3. instead of 3."
    return TypeError(f"explain({name}): the function returned {type(result).__name__}, not a tensor. {fix}")
