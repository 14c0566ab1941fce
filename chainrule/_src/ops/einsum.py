"""Einstein summation, composed of permute, reshape and bmm.

``chainrule.einsum`` and ``np.einsum`` call these functions.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from chainrule._src.api.declare import op
from chainrule._src.api.operands import operand
from chainrule._src.arrays import promotion
from chainrule._src.arrays.dtypes import as_dtype
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops.arguments import to_sum_dtype as widened
from chainrule._src.ops.products import _expand, _permute, _reshape
from chainrule._src.table import contraction, reduction
from chainrule._src.table import shape as moves
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.tensor import Tensor


@op(sample="'ij,jk->ik', rand(2, 3), rand(3, 4)")
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Compute an Einstein summation. It is recorded as the primitives it consists of: permute, reshape and bmm.

    Args:
        equation: for example ``"bij,bjk->bik"``. ``...`` stands for broadcast axes. A letter that occurs twice in one operand
            takes its diagonal. Without ``->``, the result has the letters that occur once, in alphabetical order.
        operands: tensors. Alternatively, all arguments are pairs of a tensor and the numbers of its axes, optionally followed
            by the axes of the result: ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.

    >>> import chainrule as cr
    >>> cr.einsum("ij,jk->ik", cr.ones(2, 3), cr.ones(3, 2))
    tensor([[3., 3.],
            [3., 3.]])
    """
    if not isinstance(equation, str):
        equation, operands = with_letters(equation, *operands)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    for position, x in enumerate(operands):
        if not hasattr(x, "shape"):
            raise TypeError(f"expected Tensor as element {position} in argument 1, but got {type(x).__name__}")
    joint = functools.reduce(
        promotion.promoted_dtype, [as_dtype(x.dtype) for x in operands]
    )  # 0-d operands are not weak here
    return contract_operands(equation, [cast(x, joint) for x in operands] if joint.kind in "fc" else operands)


def contract_operands(equation: str, operands: Any) -> Any:
    """Compute an Einstein summation of operands; products have the dtype that NumPy gives them."""
    terms, out = _parse(equation, operands)
    pairs = [_diagonals(operand("einsum", i, x), term) for i, (x, term) in enumerate(zip(operands, terms, strict=True))]
    while len(pairs) > 1:
        (x, a), (y, b) = pairs[0], pairs[1]
        later = set("".join(term for _, term in pairs[2:])) | set(out)
        pairs[:2] = [_pair(x, a, y, b, later)]
    x, term = pairs[0]
    summed = tuple(i for i, c in enumerate(term) if c not in out)
    if summed:
        x = bind(reduction.sum, (widened(x),), {"axis": tuple(i - len(term) for i in summed), "keepdims": False})
        term = "".join(c for c in term if c in out)
    result = _permute(x, [term.index(c) for c in out])
    return moves.alias(result) if any(result is x for x in operands) else result


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def with_letters(*pairs: Any) -> tuple[str, tuple[Any, ...]]:
    """Convert operands with lists of axes (``x, [0, 1], y, [1, 2], [0, 2]``) to an equation (``"AB,BC->AC"``) and operands.

    Raises:
        TypeError: the arguments are not such pairs.
        ValueError: an axis is not in the range 0 to 51.
    """
    n = len(pairs) // 2
    lists = [*pairs[1 : 2 * n : 2], *pairs[2 * n :]]
    if not n or not all([isinstance(axes, (list, tuple)) for axes in lists]):
        raise TypeError(
            "einsum(): an equation such as 'ij,jk->ik' comes first, or each operand is followed by a list of its axes; got "
            + ", ".join([type(x).__name__ for x in pairs])
        )

    def term(axes: Any) -> str:
        if not all([axis is ... or 0 <= axis < len(_LETTERS) for axis in axes]):
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        return "".join("..." if axis is ... else _LETTERS[axis] for axis in axes)

    equation = ",".join([term(axes) for axes in lists[:n]])
    return (f"{equation}->{term(pairs[-1])}" if len(pairs) % 2 else equation), pairs[: 2 * n : 2]


_ELLIPSIS_LETTERS = "αβγδεζηθικλμνξοπρστυφχψω"


def _parse(equation: str, operands: Any) -> tuple[list[str], str]:
    text = equation.replace(" ", "")
    left, arrow, out = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise RuntimeError(
            f"einsum(): the equation {equation!r} has {len(terms)} operands, but {len(operands)} were given"
        )
    for c in text.replace("->", "").replace(",", "").replace("...", ""):
        if not c.isalpha():
            raise RuntimeError(f"einsum(): invalid subscript given: {c!r} in {equation!r}; subscripts are letters")
    sizes: dict[str, int] = {}
    first: dict[str, Any] = {}  # the operand that determines the size of a subscript
    widest = 0
    expanded = []
    for position, (term, x) in enumerate(zip(terms, operands, strict=True)):
        shape = shape_of(x)
        named = len(term.replace("...", ""))
        if "..." in term:
            extra = len(shape) - named
            widest = max(widest, extra)
        else:
            extra = 0
        if extra < 0 or named + extra != len(shape):
            raise errors.einsum_rank(term, named, position, x)
        expanded.append((term, extra))
    filled = []
    for (term, extra), x in zip(expanded, operands, strict=True):
        full = term.replace("...", _ELLIPSIS_LETTERS[widest - extra : widest])
        own: dict[str, int] = {}
        for c, n in zip(full, shape_of(x), strict=True):
            if own.setdefault(c, n) != n:
                raise RuntimeError(
                    f"einsum(): subscript {c} is repeated in {term!r} but the sizes don't match, {n} != {own[c]}"
                )
            if sizes.setdefault(c, n) != n and 1 not in (n, sizes[c]):
                raise errors.einsum_sizes(equation, c, first[c], x, (sizes[c], n))
            if c not in first or n > sizes[c]:
                sizes[c], first[c] = n, x
        filled.append(full)
    if arrow:
        result = out.replace("...", _ELLIPSIS_LETTERS[:widest])
        for c in result:
            if c not in sizes:
                raise RuntimeError(
                    f"einsum(): output subscript {c} does not appear in the equation for any input operand"
                )
            if result.count(c) > 1:
                raise RuntimeError(f"einsum(): output subscript {c} appears more than once in the output")
    else:
        letters = "".join(filled)
        single = sorted(c for c in set(letters) if letters.count(c) == 1 and c not in _ELLIPSIS_LETTERS)
        result = _ELLIPSIS_LETTERS[:widest] + "".join(single)
    return filled, result


def _diagonals(x: AnyArray, term: str) -> tuple[AnyArray, str]:
    for c in dict.fromkeys(term):
        while term.count(c) > 1:
            i = term.index(c)
            j = term.index(c, i + 1)
            n = len(term)
            x = moves.diagonal(x, offset=0, axis1=i - n, axis2=j - n)
            term = term[:i] + term[i + 1 : j] + term[j + 1 :] + c
    return x, term


def _pair(x: AnyArray, a: str, y: AnyArray, b: str, later: set[str]) -> tuple[AnyArray, str]:
    """Contract two operands: sum axes that only one has, then permute and reshape both to stacks of matrices, and bmm."""
    x, a = _sum_out(x, a, {c for c in a if c not in b and c not in later})
    y, b = _sum_out(y, b, {c for c in b if c not in a and c not in later})
    if x.dtype != y.dtype:  # small integers: the sum above has a wider dtype
        x, y = widened(x), widened(y)
    sx, sy = dict(zip(a, shape_of(x), strict=True)), dict(zip(b, shape_of(y), strict=True))
    for c in set(a) & set(b):  # an axis of size 1 is broadcast to the other's size
        if sx[c] != sy[c]:
            if sx[c] == 1:
                sx[c] = sy[c]
                x = _expand(x, tuple(sx[k] for k in a))
            else:
                sy[c] = sx[c]
                y = _expand(y, tuple(sy[k] for k in b))
    common = [c for c in a if c in b]
    batch = [c for c in common if c in later]
    inner_ = [c for c in common if c not in later]
    left, right = [c for c in a if c not in b], [c for c in b if c not in a]
    size = {**sy, **sx}

    def total(letters: list[str]) -> int:
        return math.prod(size[c] for c in letters)

    x = _permute(x, [a.index(c) for c in batch + left + inner_])
    y = _permute(y, [b.index(c) for c in batch + inner_ + right])
    shape = tuple(size[c] for c in batch + left + right)
    if not inner_:
        x = _reshape(x, tuple(size[c] for c in batch + left) + (1,) * len(right))
        y = _reshape(y, tuple(size[c] for c in batch) + (1,) * len(left) + tuple(size[c] for c in right))
        return ew.mul(x, y), "".join(batch + left + right)
    x = _reshape(x, (total(batch), total(left), total(inner_)))
    y = _reshape(y, (total(batch), total(inner_), total(right)))
    out = bind(contraction.bmm, (x, y), {})
    return _reshape(out, shape), "".join(batch + left + right)


def _sum_out(x: AnyArray, term: str, letters: set[str]) -> tuple[AnyArray, str]:
    if not letters:
        return x, term
    axes = tuple(i - len(term) for i, c in enumerate(term) if c in letters)
    total = bind(reduction.sum, (widened(x),), {"axis": axes, "keepdims": False})
    return total, "".join(c for c in term if c not in letters)
