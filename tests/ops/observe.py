"""The outcome of a case as plain data: values, dtypes, shapes, the node, gradients; or the exception."""

from __future__ import annotations

from typing import Any

import cases
import numpy as np


def observe(m: Any, case: str, digits: int = 6) -> dict[str, Any]:
    """Run a case with a library (chainrule or PyTorch) and describe the outcome."""
    inputs = {k: m.from_numpy(v.copy()) for k, v in cases.arrays().items()}
    leaves = {k: t.requires_grad_() for k, t in inputs.items() if k != "i"}
    try:
        result = cases.run(m, case, inputs)
    except Exception as error:
        kind = next(k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins")
        words = case.partition(" !! ")[2]
        return {"error": kind} | ({"words": words if words in str(error) else str(error)} if words else {})
    parts = flat(result)
    tensors = [t for t in parts if isinstance(t, m.Tensor)]
    seen: dict[str, Any] = {"parts": [_part(m, t, digits) for t in parts]}
    roots = [t for t in tensors if t.requires_grad]
    if roots and not roots[0].is_leaf:
        seen["node"] = roots[0].grad_fn.name()
    roots = [t for t in roots if not t.is_leaf and not t.is_complex()]
    if roots:
        weights = [m.from_numpy(np.cos(1 + np.arange(t.numel(), dtype=float)).reshape(tuple(t.shape))) for t in roots]
        weights = [w.to(t.dtype) for w, t in zip(weights, roots, strict=True)]
        try:
            grads = m.autograd.grad(roots, list(leaves.values()), weights, allow_unused=True)
        except RuntimeError:
            return seen
        seen["grads"] = {k: _numbers(g, digits) for k, g in zip(leaves, grads, strict=True) if g is not None}
    return seen


def flat(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)) and type(result).__name__ != "Size":
        return [part for item in result for part in flat(item)]
    return [result]


def _part(m: Any, part: Any, digits: int) -> Any:
    if not isinstance(part, m.Tensor):
        return {"object": str(part).removeprefix("torch.") if isinstance(part, m.dtype) else repr(part)}
    return {
        "dtype": str(part.dtype).removeprefix("torch."),
        "shape": list(part.shape),
        "values": _numbers(part, digits),
        "requires_grad": part.requires_grad,
    }


def _numbers(tensor: Any, digits: int) -> list[Any]:
    array = tensor.detach().resolve_conj().numpy().reshape(-1)
    if array.dtype.kind == "c":
        array = array.view(array.real.dtype)
    return [float(f"{v:.{digits}g}") for v in array.tolist()] if array.dtype.kind == "f" else [int(v) for v in array]


def difference(want: dict[str, Any], got: dict[str, Any], precise: float | None = None) -> str:
    """Describe the difference between outcomes; "" if there is none."""
    if "error" in want or "error" in got:
        a, b = want.get("error", "a result"), got.get("error", "a result")
        if a != b and {a, b} != {"RuntimeError", "NotImplementedError"}:
            return f"{b} instead of {a}"
        return "" if want.get("words") == got.get("words") else f"says {got.get('words')!r}"
    if len(want["parts"]) != len(got["parts"]):
        return f"{len(got['parts'])} results instead of {len(want['parts'])}"
    for a, b in zip(want["parts"], got["parts"], strict=True):
        for key in {**a, **b}:
            if key != "values" and a.get(key) != b.get(key):
                return f"{key} {b.get(key)} instead of {a.get(key)}"
        if not _close(a.get("values", []), b.get("values", []), precise):
            return f"values {b['values'][:6]} instead of {a['values'][:6]}"
    if "node" in want and want["node"] != got.get("node"):
        return f"node {got.get('node')} instead of {want['node']}"
    for name in {**want.get("grads", {}), **got.get("grads", {})} if "grads" in want else ():
        a, b = want["grads"].get(name), got.get("grads", {}).get(name)
        n = len(a or b)
        if not _close(a or [0.0] * n, b or [0.0] * n, precise):  # no gradient equals a gradient of zeros
            return f"gradient for {name}: {b and b[:6]} instead of {a and a[:6]}"
    return ""


def _close(a: list[Any], b: list[Any], precise: float | None) -> bool:
    rtol, atol = (precise, 1e-11) if precise else (2e-5, 1e-6)
    return len(a) == len(b) and np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
