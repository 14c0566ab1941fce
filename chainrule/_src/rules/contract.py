"""Contractions of two arrays over shared subscripts, computed by one ``np.matmul`` and moves of axes.

The kind ``contraction``, batching rules and ``table.contraction`` call it.

Each letter of a subscript such as ``"ik,kj->ij"`` is summed (in both operands, not in the result), left (in the first
operand only) or right (in the second only). Extra leading axes broadcast. A subscript describes the last axes only,
so contractions need no batching rule of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.types import AnyArray
from chainrule._src.native import matmul

ndarray = np.ndarray


def cotangent_subscripts(subscripts: str) -> tuple[str, str]:
    """Return the subscripts of the two VJPs: ``"ik,kj->ij"`` gives ``"ij,kj->ik"`` and ``"ik,ij->kj"``."""
    operands, out = subscripts.split("->")
    x, y = operands.split(",")
    return f"{out},{y}->{x}", f"{x},{out}->{y}"


def matrix_product(a: AnyArray, b: AnyArray) -> AnyArray:
    """Return the product of two vectors or matrices."""
    if type(a) is ndarray and type(b) is ndarray:
        return a.dot(b)
    return np.dot(a, b) if is_array(a) and is_array(b) else matmul(a, b)


@cache
def _plan(subscripts: str) -> tuple[str, str, str, str, str]:
    operands, out = subscripts.split("->")
    x, y = operands.split(",")
    summed = "".join(c for c in x if c in y and c not in out)
    left = "".join(c for c in x if c not in y)
    right = "".join(c for c in y if c not in x)
    if len(summed) > 1 or len(left) > 1 or len(right) > 1 or any(c in x and c in y and c in out for c in x):
        raise ValueError(f"contraction {subscripts!r}: at most one subscript may be summed, left and right")
    return x, y, out, left, right


@cache
def contraction_value(subscripts: str) -> Callable[[AnyArray, AnyArray], AnyArray]:
    """Return a function of two array-likes that computes the contraction."""
    x, y, out, left, right = _plan(subscripts)
    x_first = x[:1] == left  # the left letter comes before the summed letter
    y_last = y[-1:] == right
    if not left and not right and len(x) == 1:

        def dot(a: AnyArray, b: AnyArray) -> AnyArray:
            if a.ndim == b.ndim == 1 and is_array(a) and is_array(b):
                return matrix_product(a, b)
            return matmul(a[..., None, :], b[..., :, None])[..., 0, 0]

        return dot
    if len(x) == 1 and len(y) == 1 and len(out) == 2:
        flip = out == right + left

        def outer(a: AnyArray, b: AnyArray) -> AnyArray:
            return a[..., None, :] * b[..., :, None] if flip else a[..., :, None] * b[..., None, :]

        return outer
    if len(out) == 0 or len(x) == 0 or len(y) == 0:

        def scaled(a: AnyArray, b: AnyArray) -> AnyArray:
            if len(x) == 0:
                return a[(..., *(None,) * len(y))] * b
            return a * b[(..., *(None,) * len(x))]

        return scaled

    swapped = len(out) == 2 and out == right + left
    if len(x) == len(y) == 2 and not swapped:
        transpose_a, transpose_b = not x_first, not y_last

        def matrices(a: AnyArray, b: AnyArray) -> AnyArray:
            if transpose_a:
                a = a.mT
            if transpose_b:
                b = b.mT
            return matrix_product(a, b) if a.ndim == b.ndim == 2 else matmul(a, b)

        return matrices

    def contract(a: AnyArray, b: AnyArray) -> AnyArray:
        if not x_first and len(x) == 2:
            a = a.mT
        if not y_last and len(y) == 2:
            b = b.mT
        if a.ndim == len(x) and b.ndim == len(y):
            result = matrix_product(a, b)
            return result.mT if swapped else result
        if len(x) == 1:
            a = a[..., None, :]
        if len(y) == 1:
            b = b[..., :, None]
        result = matmul(a, b)
        if len(x) == 1:
            result = result[..., 0, :]
        if len(y) == 1:
            result = result[..., 0]
        return result.mT if swapped else result

    return contract


def formula_of(subscripts: str, first: str, second: str) -> str:
    """Return the contraction as NumPy text, for explanations."""
    x, y, out, left, right = _plan(subscripts)
    if len(x) == len(y) == len(out) == 2 and out == left + right:
        return f"{first if x[0] == left else first + '.mT'} @ {second if y[-1] == right else second + '.mT'}"
    operands, result = subscripts.split("->")
    a, b = operands.split(",")
    return f"np.einsum('...{a},...{b}->...{result}', {first}, {second})"


@cache
def _fold_plan(subscripts: str, first: bool) -> tuple[Callable[[AnyArray, AnyArray], AnyArray], bool] | None:
    """Plan the contraction of a batched operand (the first or the second) and an unbatched one as one matrix product.

    The batch axis becomes the free letter of a vector, or is merged with the free letter of a matrix, which must come first.
    Return None if no such plan exists.
    """
    x, y, out, left, right = _plan(subscripts)
    batched_letters, plain_letters, free, plain_free = (x, y, left, right) if first else (y, x, right, left)
    summed = next((c for c in batched_letters if c in plain_letters and c not in out), "")
    if not summed or out != free + plain_free or len(batched_letters) > 2 or (free and batched_letters[0] != free):
        return None
    free = free or next(c for c in "zwv" if c not in x + y)
    return contraction_value(f"{free}{summed},{plain_letters}->{free}{plain_free}"), len(batched_letters) == 2


def merge_batch_into_gemm(subscripts: str, batched: Any, plain: AnyArray, first: bool) -> AnyArray | None:
    """Contract a batched operand with an unbatched one as one matrix product; return None where that is impossible."""
    plan = _fold_plan(subscripts, first)
    if plan is None:
        return None
    product, matrix = plan
    if not matrix:
        return product(batched, plain)
    size, free, summed = batched.shape
    if is_array(batched) and not batched.flags.c_contiguous:
        return None
    result = product(np.reshape(batched, (size * free, summed)), plain)
    return np.reshape(result, (size, free, *result.shape[1:]))
