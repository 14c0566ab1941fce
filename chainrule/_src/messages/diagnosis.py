"""Messages that read the tape. They are implemented in ``explaining/diagnosis``, which is imported at the first call.

``explaining`` is a higher-level package, so this module imports it by name.
"""

from __future__ import annotations

import importlib
from typing import Any

IMPLEMENTATION = "chainrule._src.explaining.diagnosis"


def _implementation() -> Any:
    return importlib.import_module(IMPLEMENTATION)


def implicit_scalar(output: Any) -> RuntimeError:
    return _implementation().implicit_scalar(output)


def gradient_shape(index: int, gradient: Any, output: Any, label: str = "output") -> RuntimeError:
    return _implementation().gradient_shape(index, gradient, output, label)


def gradient_type(value: object) -> TypeError:
    return _implementation().gradient_type(value)


def gradient_numbers(value: object) -> TypeError:
    return _implementation().gradient_numbers(value)


def no_grad_fn(index: int, output: Any) -> RuntimeError:
    return _implementation().no_grad_fn(index, output)


def input_requires_no_grad(index: int, tensor: Any) -> RuntimeError:
    return _implementation().input_requires_no_grad(index, tensor)


def unused_input(index: int, tensor: object, outputs: Any = ()) -> RuntimeError:
    return _implementation().unused_input(index, tensor, outputs)


def second_backward(node: Any) -> RuntimeError:
    return _implementation().second_backward(node)


def saved_was_written(node: Any, name: str, array: Any, written: Any) -> RuntimeError:
    return _implementation().saved_was_written(node, name, array, written)


def warn_non_leaf_grad(tensor: Any) -> None:
    _implementation().warn_non_leaf_grad(tensor)


def function_saved_was_written(node: Any, index: int, array: Any, written: Any) -> RuntimeError:
    return _implementation().function_saved_was_written(node, index, array, written)


def call_stack() -> Any:
    return _implementation().call_stack()


def first_nan(prim: Any, index: object, values: dict[str, float], stack: Any, infinity: str | None = None) -> str:
    return _implementation().first_nan(prim, index, values, stack, infinity)


def nan_operand(prim: Any, array: object, index: object, stack: Any) -> str:
    return _implementation().nan_operand(prim, array, index, stack)


def infinite_operand(prim: Any, array: object, index: object, stack: Any) -> str:
    return _implementation().infinite_operand(prim, array, index, stack)


def infinite_value(prim: Any, index: object, values: dict[str, float], result: Any, stack: Any) -> str:
    return _implementation().infinite_value(prim, index, values, result, stack)


def warn_detected(node: Any) -> None:
    _implementation().warn_detected(node)


def nan_gradient(
    node: Any,
    i: int,
    index: tuple[int, ...],
    *,
    values: dict[str, float],
    upstream: float | None,
    incoming_nan: bool,
    forward_message: str | None,
    infinity: str | None,
    overflow: str | None,
) -> RuntimeError:
    return _implementation().nan_gradient(
        node,
        i,
        index,
        values=values,
        upstream=upstream,
        incoming_nan=incoming_nan,
        forward_message=forward_message,
        infinity=infinity,
        overflow=overflow,
    )


def nan_sum(leaf: Any, index: object, infinity: str | None) -> RuntimeError:
    return _implementation().nan_sum(leaf, index, infinity)


def first_infinity(node: Any, index: object, values: dict[str, float], operand: str | None) -> str:
    return _implementation().first_infinity(node, index, values, operand)


def nan_tangent(
    prim: Any,
    index: object,
    values: dict[str, float],
    operand_tangents: dict[str, float],
    stack: Any,
    forward_message: str | None,
    infinity: str | None,
    incoming_nan: bool,
    parent: Any,
) -> str:
    return _implementation().nan_tangent(
        prim, index, values, operand_tangents, stack, forward_message, infinity, incoming_nan, parent
    )


def nan_result(index: object) -> str:
    return _implementation().nan_result(index)


def infinite_tangent(prim: Any, index: object, values: dict[str, float], stack: Any) -> str:
    return _implementation().infinite_tangent(prim, index, values, stack)


def nan_terms(step: Any, output: int, forward_message: str | None, infinity: str | None) -> RuntimeError:
    return _implementation().nan_terms(step, output, forward_message, infinity)


def infinite_terms(step: Any) -> str:
    return _implementation().infinite_terms(step)
