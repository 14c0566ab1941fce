"""What one element of a Jacobian is: ∂y_jk/∂x_i = δ_ij x_k + δ_ik x_j, read off its numbers.

A Jacobian is a sum over the paths from the output to the value. Along one path it is recognised if it vanishes except where
axes agree (the δ) and is otherwise one of the pass's values, indexed. What is written holds for the numbers at hand: it is
compared with all of them, and nothing is said where it does not match.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.explaining.flow import Flow
from chainrule.explaining.markup import name_math
from chainrule.explaining.tables import decimals, flat, is_real, written

PATHS = 4
_ROLES = ("leaf", "output", "constant", "intermediate")


def element(plan: dict[str, Any], output: str, value: str, parts: Sequence[np.ndarray]) -> str | None:
    """MathML of one element of the sum of `parts`, each of (output elements, value elements); None if not recognised."""
    out_shape, in_shape = plan["values"][output]["shape"], plan["values"][value]["shape"]
    if not parts or len(parts) > PATHS or len(out_shape) + len(in_shape) > 4 or not parts[0].size:
        return None
    letters = _letters(len(out_shape), len(in_shape))
    names = [letters[a] if n > 1 else "0" for a, n in enumerate([*out_shape, *in_shape])]
    terms = [_term(np.reshape(part, (*out_shape, *in_shape)), len(out_shape), names, plan) for part in parts]
    if any(term is None for term in terms):
        return None
    top = _indexed(plan["values"][output]["name"], names[: len(out_shape)])
    bottom = _indexed(plan["values"][value]["name"], names[len(out_shape) :])
    total = "<mo>+</mo>".join(sorted(str(term) for term in terms))
    return f"<math><mfrac><mrow><mi>∂</mi>{top}</mrow><mrow><mi>∂</mi>{bottom}</mrow></mfrac><mo>=</mo>{total}</math>"


def along_paths(plan: dict[str, Any], flow: Flow, output: str, value: str) -> list[np.ndarray]:
    """The Jacobians along the paths from an output to a value; none if there are more than a few."""
    size = int(np.prod(plan["values"][output]["shape"], dtype=int))
    found: dict[str, list[np.ndarray]] = {output: [np.eye(size)]}
    for at, step in enumerate(plan["steps"]):
        for j, arrow in enumerate(step["arrows"]):
            local = flow.maps.get((at, j))
            for part in found.get(step["output"], []):
                if local is None:
                    return []
                found.setdefault(arrow["input"], []).append(local.pull(part))
        if any(len(parts) > PATHS for parts in found.values()):
            return []
    return found.get(value, [])


def _letters(outs: int, ins: int) -> str:
    return ("jkl"[:outs] + "i") if ins == 1 else "ijklmn"[: outs + ins]


def _term(jacobian: np.ndarray, outs: int, names: list[str], plan: dict[str, Any]) -> str | None:
    """One path's part: deltas, and what stands behind them."""
    axes = list(names)
    deltas = []
    for b in range(outs, len(names)):
        for a in range(outs):
            if (
                names[b] != "0"
                and axes[b] == names[b]
                and jacobian.shape[a] == jacobian.shape[b]
                and _agree(jacobian, a, b)
            ):
                deltas.append(sorted((names[a], names[b])))
                jacobian = _only_diagonal(jacobian, a, b)
                axes[b] = ""
                break
    kept = [axis for axis in range(len(axes)) if axes[axis] and axes[axis] != "0"]
    rest = jacobian[tuple(slice(None) if axis in kept else 0 for axis in range(len(axes)))]
    letters = [axes[axis] for axis in kept]
    for axis in reversed(range(rest.ndim)):
        if np.array_equal(rest, np.broadcast_to(rest.take([0], axis=axis), rest.shape)):
            rest, letters = rest.take(0, axis=axis), letters[:axis] + letters[axis + 1 :]
    factor = _named(rest, letters, plan)
    if factor is None or (factor == "" and not deltas):
        return "<mn>1</mn>" if factor == "" else None
    marks = "".join(f"<msub><mi>δ</mi><mrow><mi>{a}</mi><mi>{b}</mi></mrow></msub>" for a, b in deltas)
    gap = "<mspace width='0.17em'></mspace>" if marks and factor else ""
    return f"<mrow>{marks}{gap}{factor}</mrow>"


def _agree(jacobian: np.ndarray, a: int, b: int) -> bool:
    moved = np.moveaxis(jacobian, (a, b), (0, 1))
    return not moved[~np.eye(len(moved), dtype=bool)].any()


def _only_diagonal(jacobian: np.ndarray, a: int, b: int) -> np.ndarray:
    """The same with what stands at equal indices of a and b at index 0 of b."""
    moved = np.moveaxis(jacobian, (a, b), (0, 1))
    result = np.zeros_like(moved)
    result[:, 0] = moved[range(len(moved)), range(len(moved))]
    return np.moveaxis(result, (0, 1), (a, b))


def _named(rest: np.ndarray, letters: list[str], plan: dict[str, Any]) -> str | None:
    """MathML of an array with these indices: a number, or a value of the pass; "" for one."""
    if rest.ndim == 0:
        number = float(rest)
        return "" if number == 1 else f"<mn>{written(number, decimals([number]))}</mn>"
    for value in sorted(plan["values"].values(), key=lambda v: (*_ROLES, v["role"]).index(v["role"])):
        array = value["data"]
        if array is None or array["truncated"]:
            continue
        numbers = flat(array["data"])
        if not is_real(numbers) or len(numbers) != rest.size:
            continue
        whole = np.reshape(numbers, array["shape"])
        long = [axis for axis, n in enumerate(whole.shape) if n > 1]
        if len(long) != rest.ndim:
            continue
        for order in itertools.permutations(range(rest.ndim)):
            if rest.transpose(order).shape == whole.squeeze().shape and np.allclose(
                rest.transpose(order), whole.squeeze(), rtol=1e-6, atol=0
            ):
                names = ["0"] * whole.ndim
                for axis, letter in zip(long, order):
                    names[axis] = letters[letter]
                return _indexed(value["name"], names)
    return None


def _indexed(name: str, letters: list[str]) -> str:
    symbol = name_math(name).removeprefix("<math>").removesuffix("</math>")
    if not letters:
        return symbol
    index = "".join(f"<mn>{letter}</mn>" if letter == "0" else f"<mi>{letter}</mi>" for letter in letters)
    if symbol.startswith("<msub>"):
        return f"<msub><mrow>{symbol}</mrow><mrow>{index}</mrow></msub>"
    return f"<msub>{symbol}<mrow>{index}</mrow></msub>"
