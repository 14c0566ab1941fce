"""The whole Jacobian, contracted with the given gradient, against what the steps computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.autograd.jacobian import jacobian
from chainrule.core.engine import reachable

_LIMIT = 10**6  # numbers in one Jacobian


class Check:
    """The result of ``explanation.check()``: true unless something disagrees. Printed, it says what was compared."""

    def __init__(self, ok: bool, text: str) -> None:
        self.ok = ok
        self.text = text

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<check: {self.text}>"


def checked(
    tensors: Sequence[Any], outputs: Sequence[Any], seeds: Sequence[Any], wanted: Sequence[Any], wrt: Sequence[Any]
) -> Check:
    """Compare Σ G·∂Y/∂x with the gradient of every x."""
    lines, ok = [], True
    for tensor, value in zip(wanted, wrt):
        size = sum(t.numel() for t in tensors) * tensor.numel()
        if size > _LIMIT:
            lines.append(f"{value.name}: not checked, its Jacobian has {size:,} numbers (at most {_LIMIT:,} are built)")
            continue
        if value.gradient is None:
            lines.append(f"{value.name}: no path leads to it, its gradient is 0")
            continue
        good, line = _one(tensors, outputs, seeds, tensor, value)
        ok = ok and good
        lines.append(line)
    return Check(ok, "\n".join(lines) or "nothing to check")


def _one(
    tensors: Sequence[Any], outputs: Sequence[Any], seeds: Sequence[Any], tensor: Any, value: Any
) -> tuple[bool, str]:
    total: Any = 0
    if any(
        edge.hooks is not None and (edge.hooks.tensor or edge.hooks.pre or getattr(edge.hooks, "post", None))
        for edge in reachable([t._edge for t in tensors])
    ):
        return True, f"{value.name}: not checked, because hooks change gradients on the way"
    try:
        for y, seed in zip(tensors, seeds):
            whole = jacobian(y, tensor)._raw
            total = total + _contracted(seed, whole, value.dtype)
    except Exception as error:  # a rule without derivatives of batches, or a hook that wants more than it gets
        return True, f"{value.name}: not checked, its Jacobian cannot be built ({str(error).splitlines()[0]})"
    with np.errstate(all="ignore"):
        off = np.abs(total - value.gradient)
        scale = np.max(np.abs(value.gradient), initial=0.0, where=np.isfinite(value.gradient))
        single = value.gradient.dtype.itemsize <= (8 if value.gradient.dtype.kind == "c" else 4)
        good = np.allclose(
            total,
            value.gradient,
            rtol=1e-3 if single else 1e-7,
            atol=(1e-5 if single else 1e-10) * scale,
            equal_nan=True,
        )
    if len(tensors) == 1:
        y = outputs[0]
        said = f"tensordot({y.bar}, ∂{y.name}/∂{value.name}, {seeds[0].ndim}) = {value.bar}"
    else:
        said = f"Σ tensordot(Ȳ, ∂Y/∂{value.name}) over all outputs Y = {value.bar}"
    if good:
        return True, f"{said} ✓"
    return False, f"{said} ✗: they differ by up to {float(np.nanmax(off)):.6g}"


def _contracted(seed: Any, whole: Any, dtype: Any) -> Any:
    """Σ G·∂Y/∂x, in the convention of gradients of complex numbers."""
    with np.errstate(all="ignore"):
        if np.dtype(dtype).kind == "c" and seed.dtype.kind == "c":
            return np.tensordot(seed, np.conj(whole), seed.ndim)
        if seed.dtype.kind == "c":  # x is real
            return np.real(np.tensordot(seed, np.conj(whole), seed.ndim))
        return np.tensordot(seed, whole, seed.ndim)
