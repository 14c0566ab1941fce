"""A function's Jacobian in three ways: by central differences, by backward mode and by forward mode.

Every Jacobian here has a row per element of the input and a column per element of the output. A complex input is moved
along 1 and along i; of a complex output the real and the imaginary part are looked at one at a time (``part`` is 1 or
i), because a gradient is one of a real number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.backward import grad
from chainrule.core.tensor import Tensor, wrap
from chainrule.func import jvp

Function = Callable[..., Any]
Inputs = tuple[Any, ...]


def outputs_of(result: Any) -> tuple[Tensor, ...]:
    """What a function returned, as a tuple of tensors."""
    outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    for y in outputs:
        if not isinstance(y, Tensor):
            raise TypeError(f"gradcheck expects the function to return tensors, but it returned {type(y).__name__}")
    return outputs


def recorded(result: Any) -> tuple[Tensor, ...]:
    """The outputs that require grad."""
    return tuple(y for y in outputs_of(result) if y.requires_grad)


def parts_of(x: Any) -> tuple[Any, ...]:
    """The real, and for complex numbers the imaginary, unit."""
    return (1j, 1.0) if x.dtype.kind == "c" else (1.0,)


def array_of(x: Tensor) -> Any:
    """The values, without the graph."""
    return x.detach()._array()


def difference(
    func: Function, inputs: Inputs, i: int, direction: Any, eps: float, floating: Sequence[int]
) -> list[Any]:
    """The central difference of each floating output when input i moves along ``direction``.

    The input is moved in place, so that a function that knows it from elsewhere (a model its parameters) sees it move.
    """
    data = inputs[i]._array()
    before = data.copy()
    try:
        data[...] = before + eps * direction
        above = [array_of(y).copy() for y in outputs_of(func(*inputs))]
        data[...] = before - eps * direction
        below = [array_of(y).copy() for y in outputs_of(func(*inputs))]
    finally:
        data[...] = before
    for k in floating:
        for what in ("shape", "dtype"):
            one, two = getattr(above[k], what), getattr(below[k], what)
            if one != two:
                raise AssertionError(
                    f"Expected the function to return outputs with the same {what} when inputs are perturbed: output {k} has "
                    f"{what} {one} for a little more, and {two} for a little less of the input"
                )
    return [(above[k] - below[k]) / (2 * eps) for k in floating]


def numerical(func: Function, inputs: Inputs, i: int, eps: float, sizes: dict[int, int]) -> dict[int, dict[Any, Any]]:
    """For each floating output (``sizes`` has their numbers of elements) and each unit, the Jacobian by differences."""
    shape = tuple(inputs[i].shape)
    found: dict[int, dict[Any, Any]] = {k: {} for k in sizes}
    for unit in parts_of(inputs[i]):
        rows: dict[int, list[Any]] = {k: [] for k in sizes}
        for index in np.ndindex(shape):
            direction = np.zeros(shape, np.result_type(type(unit), np.float64))
            direction[index] = unit
            for k, row in zip(sizes, difference(func, inputs, i, direction, eps, list(sizes))):
                rows[k].append(row.reshape(-1))
        for k, size in sizes.items():
            found[k][unit] = np.array(rows[k]).reshape(len(rows[k]), size)
    return found


def as_gradient(by_unit: dict[Any, Any], x: Any, part: Any) -> Any:
    """What backward gives for the real (or imaginary) part of the output: ∂/∂Re + i ∂/∂Im."""

    def of(j: Any) -> Any:
        return j.imag if part == 1j else np.real(j)

    return of(by_unit[1.0]) + 1j * of(by_unit[1j]) if x.dtype.kind == "c" else of(by_unit[1.0])


def by_backward(y: Tensor, xs: Sequence[Tensor], part: Any) -> tuple[list[Any], bool, bool]:
    """The Jacobian of one output for each input; and whether all gradients had their inputs' dtypes and sizes."""
    columns: list[list[Any]] = [[] for _ in xs]
    dtypes = sizes = True
    for index in np.ndindex(tuple(y.shape)):
        g = np.zeros(y.shape, y.dtype)
        g[index] = part
        for n, (x, r) in enumerate(zip(xs, grad(y, list(xs), wrap(g), retain_graph=True, allow_unused=True))):
            if r is None:
                columns[n].append(np.zeros(x.numel(), x.dtype))
                continue
            dtypes = dtypes and r.dtype == x.dtype
            sizes = sizes and r.shape == x.shape
            columns[n].append(array_of(r).reshape(-1) if r.shape == x.shape else np.zeros(x.numel(), x.dtype))
    jacobians = [np.array(c).reshape(len(c), -1).T if c else np.zeros((x.numel(), 0)) for c, x in zip(columns, xs)]
    return jacobians, dtypes, sizes


def pushed(func: Function, inputs: Inputs, moving: Sequence[int], tangents: Sequence[Any]) -> tuple[Tensor, ...]:
    """The tangents of all outputs when the inputs ``moving`` have these tangents and the others none."""

    def of_moving(*moved: Any) -> tuple[Any, ...]:
        at = [x.detach().requires_grad_() if isinstance(x, Tensor) and x.requires_grad else x for x in inputs]
        for position, x in zip(moving, moved):
            at[position] = x.requires_grad_()  # the function may ask for gradients
        return outputs_of(func(*at))

    _, found = jvp(of_moving, tuple(inputs[n].detach() for n in moving), tuple(tangents))
    return found if isinstance(found, tuple) else tuple(found)


def by_forward(func: Function, inputs: Inputs, i: int, unit: Any, sizes: dict[int, int]) -> dict[int, Any]:
    """The Jacobian of each floating output by forward mode, moving input i along ``unit``."""
    x = inputs[i]
    rows: dict[int, list[Any]] = {k: [] for k in sizes}
    for index in np.ndindex(tuple(x.shape)):
        t = np.zeros(x.shape, x.dtype)
        t[index] = unit
        moved = pushed(func, inputs, [i], [wrap(t)])
        for k in sizes:
            rows[k].append(array_of(moved[k]).reshape(-1))
    return {k: np.array(rows[k]).reshape(len(rows[k]), size) for k, size in sizes.items()}
