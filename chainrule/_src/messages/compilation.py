"""Messages about ``compile``."""

from __future__ import annotations

from typing import Any

from chainrule._src.messages.message_parts import layouts
from chainrule._src.messages.source_locations import Where, bracketed, user_line, warn


def compile_into(name: str, spec: object, values: Any) -> ValueError:
    return ValueError(
        f"compile: {name}{bracketed(user_line())} returns {spec} with arrays of the shapes and dtypes "
        f"{layouts(values)}: out must match it"
    )


def compile_not_pickled(name: str) -> TypeError:
    return TypeError(
        f"compile: the function {name} cannot be pickled, because pickle looks up functions by name, and {name} "
        "was made by another function (a lambda, a transformation, a nested function): pickle its inputs, and "
        "compile again"
    )


def compile_no_plan(name: str, reason: object) -> RuntimeError:
    return RuntimeError(
        f"compile: {name}{bracketed(user_line())} has no plan for these arguments, because it runs eagerly: {reason}"
    )


def warn_compile_failed(name: str, where: Where | None, reason: object) -> None:
    warn(f"compile: {name}{bracketed(where)} runs eagerly in every call: {reason}")


def warn_compile_internal_error(name: str, where: Where | None, error: str) -> None:
    warn(
        f"compile: internal error in a call of {name}{bracketed(where)}: {error}. The call did not use a trace, so its "
        "result is correct. This is a defect of chainrule: please report this message, with the function and its arguments"
    )


def warn_compile_by_python(name: str, where: Where | None, step: object, count: object) -> None:
    warn(
        f"compile: {name} runs {step}{bracketed(where)} {count} times, each as a call from Python; other steps "
        "are native. explain() of the compiled function lists such lines"
    )


def warn_compile_wasted(name: str, where: Where | None, difference: object, advice: object) -> None:
    warn(
        f"compile: {name}{bracketed(where)} runs eagerly in calls that have no trace: tracing such calls costs "
        f"more than it saves, because {difference} in nearly every call. {advice}."
    )


def compile_options(option: object) -> TypeError:
    return TypeError(
        f"compile() takes only the function, not {option}=. It traces once for each combination of shapes, dtypes "
        "and values of non-array arguments (static_argnums= is not needed). It runs functions that cannot be "
        "traced eagerly, with a warning. It has one mode, whose results are bitwise equal to those of the function."
    )


def jit_called() -> TypeError:
    return TypeError(
        "'module' object is not callable: use chainrule.compile(f), which needs no static_argnums=. (chainrule.jit has the "
        "decorators of torch.jit, which return functions unchanged.)"
    )


def compile_low_level_arguments(name: str, shapes: object) -> TypeError:
    return TypeError(
        f"as_low_level_callable: {name} must take numbers (scipy.integrate) or one 1-D array (scipy.ndimage); the "
        f"examples have the shapes {shapes}"
    )


def compile_not_low_level(name: str, reason: object) -> RuntimeError:
    return RuntimeError(f"as_low_level_callable: {name}{bracketed(user_line())} cannot run without Python: {reason}")
