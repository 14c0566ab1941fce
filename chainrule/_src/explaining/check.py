"""``explanation.check()``: compare the gradients of the steps with the contraction of the whole Jacobian and the seed.

``ExplanationData.check`` calls ``check_explanation``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, NumpyArray, NumpyDType
from chainrule._src.explaining.recorded_pass import RecordedPass
from chainrule._src.explaining.values import Value
from chainrule._src.tape.engine import reachable
from chainrule._src.tape.tensor import Tensor
from chainrule._src.transforms.jacobian import jacobian_of_tensors

_LIMIT = 10**6  # most entries of a Jacobian that is built


class Check:
    """The result of ``explanation.check()``: true unless a comparison fails. Printing it lists the comparisons."""

    def __init__(self, ok: bool, text: str) -> None:
        self.ok = ok
        self.text = text

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<check: {self.text}>"


def check_explanation(e: RecordedPass) -> Check:
    """Compare Σ G·∂Y/∂x with the gradient of every x."""
    with np.errstate(all="ignore"):  # the pass itself has warned
        found = [_one(e, tensor, value) for tensor, value in zip(e._wanted, e.wrt)]
    return Check(all(ok for ok, _ in found), "\n".join(line for _, line in found) or "nothing to check")


def _one(e: RecordedPass, tensor: Tensor, value: Value) -> tuple[bool, str]:
    size = sum(t.numel() for t in e._tensors) * tensor.numel()
    if size > _LIMIT:
        return True, f"{value.name}: not checked, because its Jacobian has {size:,} entries (the limit is {_LIMIT:,})"
    if value.gradient is None:
        return True, f"{value.name}: no path leads to it, so its gradient is 0"
    hooks = (edge.hooks for edge in reachable([t._edge for t in e._tensors]) if edge.hooks is not None)
    if any(h.tensor or h.pre or getattr(h, "post", None) for h in hooks):
        return True, f"{value.name}: not checked, because hooks change gradients"
    try:
        total = sum(
            _contracted(g, jacobian_of_tensors(y, tensor)._raw, value.dtype) for y, g in zip(e._tensors, e.seeds)
        )
    except Exception as error:  # a rule that does not support batches, or a hook that fails on this pass
        return True, f"{value.name}: not checked, because its Jacobian cannot be built ({str(error).splitlines()[0]})"
    said = f"Σ tensordot(Yˉ, ∂Y/∂{value.name}) over all outputs Y = {value.bar}"
    if len(e.outputs) == 1:
        y = e.outputs[0]
        said = f"tensordot({y.bar}, ∂{y.name}/∂{value.name}, {e.seeds[0].ndim}) = {value.bar}"
    if _agree(total, value.gradient):
        return True, f"{said} ✓"
    with np.errstate(all="ignore"):
        return False, f"{said} ✗: they differ by up to {float(np.nanmax(np.abs(total - value.gradient))):.6g}"


def _agree(total: Any, gradient: AnyArray) -> bool:
    single = gradient.dtype.itemsize <= (8 if gradient.dtype.kind == "c" else 4)
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(gradient), initial=0.0, where=np.isfinite(gradient))
        rtol, atol = (1e-3, 1e-5 * scale) if single else (1e-7, 1e-10 * scale)
        return bool(np.allclose(total, gradient, rtol=rtol, atol=atol, equal_nan=True))


def _contracted(seed: NumpyArray, whole: NumpyArray, dtype: NumpyDType) -> NumpyArray:
    """Return Σ G·∂Y/∂x, with PyTorch's convention for gradients of complex numbers."""
    with np.errstate(all="ignore"):
        if seed.dtype.kind != "c":
            return np.tensordot(seed, whole, seed.ndim)
        total = np.tensordot(seed, np.conj(whole), seed.ndim)
        return total if np.dtype(dtype).kind == "c" else np.real(total)
