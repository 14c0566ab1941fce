"""Orthogonal polynomials of ``chainrule.special``, computed by their three-term recurrences (DLMF 18.9).

``op`` makes these functions public.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.any_array import is_array
from chainrule._src.arrays.types import AnyArray, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops.arguments import constant_on_device_of, to_float
from chainrule._src.tape.tensor import Tensor


def _chebyshev(k: int, x: AnyArray, p: Tensor, before: Tensor) -> AnyArray:
    return 2 * x * p - before


#: Name -> description, polynomial of degree 1 (from x), and that of degree k + 1 (from k, x and the two before it).
_POLYNOMIALS: dict[str, tuple[str, Callable[[Any], Any], Callable[[int, Any, Any, Any], Any]]] = {
    "chebyshev_polynomial_t": ("Chebyshev polynomial of the first kind, T", lambda x: x * 1, _chebyshev),
    "chebyshev_polynomial_u": ("Chebyshev polynomial of the second kind, U", lambda x: 2 * x, _chebyshev),
    "chebyshev_polynomial_v": ("Chebyshev polynomial of the third kind, V", lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_polynomial_w": ("Chebyshev polynomial of the fourth kind, W", lambda x: 2 * x + 1, _chebyshev),
    "hermite_polynomial_h": (
        "physicists' Hermite polynomial, H", lambda x: 2 * x, lambda k, x, p, before: 2 * (x * p - k * before)
    ),
    "hermite_polynomial_he": (
        "probabilists' Hermite polynomial, He", lambda x: x * 1, lambda k, x, p, before: x * p - k * before
    ),
    "laguerre_polynomial_l": (
        "Laguerre polynomial L", lambda x: 1 - x, lambda k, x, p, before: ((2 * k + 1 - x) * p - k * before) / (k + 1)
    ),
    "legendre_polynomial_p": (
        "Legendre polynomial P", lambda x: x * 1, lambda k, x, p, before: ((2 * k + 1) * x * p - k * before) / (k + 1)
    ),
}  # fmt: skip
_MAX_DEGREE = 100_000


def _evaluated(name: str, x: Any, n: Any, shifted: bool) -> Tensor:
    if not isinstance(x, Tensor) and not isinstance(n, Tensor):
        raise errors.wrong_operand(f"special_{name}", 0, x)
    if isinstance(n, Tensor) and not is_array(n._raw):
        raise errors.data_dependent(n, f"the degrees of special.{name}")
    degrees = n._concrete("degrees") if isinstance(n, Tensor) else np.asarray(n)
    x = to_float(ew.add(x, ew.mul(n, 0)) if isinstance(n, Tensor) else x)  # one shape and dtype
    x = 2 * x - 1 if shifted else x
    degrees = np.nan_to_num(np.trunc(degrees), nan=-1, posinf=-1, neginf=-1)
    if degrees.max(initial=0) > _MAX_DEGREE:
        raise ValueError(
            f"special.{name}: degree {int(degrees.max())} is too large; the cost is linear in the degree, and the limit is {_MAX_DEGREE}"
        )
    _, first, step = _POLYNOMIALS[name]
    before, p = x * 0 + 1, first(x)
    out = before if not degrees.any() else ew.where(constant_on_device_of(x, degrees == 0), before, 0.0)
    for k in range(1, int(degrees.max(initial=0)) + 1):
        if (degrees == k).any():
            out = ew.where(constant_on_device_of(x, degrees == k), p, out)
        before, p = p, step(k, x, p, before)
    return out


def _declare(name: str, shifted: bool) -> None:
    def polynomial(input: TensorLike, n: Any) -> Tensor:
        return _evaluated(name, input, n, shifted)

    polynomial.__name__ = polynomial.__qualname__ = f"shifted_{name}" if shifted else name
    polynomial.__doc__ = (
        f"Return the {_POLYNOMIALS[name][0]} of degree n, at {'2x − 1' if shifted else 'x'}. Degrees may differ between elements; "
        "for negative degrees the result is 0."
    )
    op(f"special.{polynomial.__name__}", out=True)(polynomial)


for _name in _POLYNOMIALS:
    _declare(_name, False)
    if _name.startswith("chebyshev"):
        _declare(_name, True)
