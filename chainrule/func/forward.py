"""Forward mode: jvp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core.array import faced, unfaced
from chainrule.core.levels import entered, within
from chainrule.core.protocol import ArrayLike
from chainrule.core.tensor import Tensor, wrap
from chainrule.func.arguments import bare, data_of, dressed, has_tensor, is_array, outputs_of, with_aux
from chainrule.interpreters.dual import Dual
from chainrule.tree import leaf_paths, leaves_like, tree_flatten, tree_map, tree_unflatten

ndarray = np.ndarray


@within
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """``func(*primals)`` and its directional derivative along ``tangents``, in one forward pass.

    Args:
        func: from arrays or tensors (or nested containers of them) to the same.
        primals: a tuple with its arguments.
        tangents: the direction: as ``primals``, with the same shapes.
        strict: raise if an output does not depend on the primals (else its tangent is zeros).
        has_aux: ``func`` returns ``(output, aux)``; only ``output`` is differentiated.

    Returns:
        ``(output, output_tangent)``, or ``(output, output_tangent, aux)``.

    Raises:
        RuntimeError: primals and tangents differ in structure or shapes; the output holds something that has no
            derivative.
        ValueError: a primal or tangent is not of floating point or complex dtype.

    >>> import chainrule as cr
    >>> cr.func.jvp(cr.sin, (cr.zeros(2),), (cr.tensor([1., 2.]),))
    (tensor([0., 0.]), tensor([1., 2.]))
    """
    errors.check_function("jvp", func)
    api = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{api}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals): write "
            "jvp(f, (x,), (t,))."
        )
    points, spec = tree_flatten(primals)
    try:
        directions = leaves_like(spec, tangents, strict=True)
    except ValueError as error:
        raise RuntimeError(
            f"{api}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple "
            f"of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure "
            f"{tree_flatten(tangents)[1]}: {error}"
        ) from None
    if not points:
        raise RuntimeError(f"{api}: Expected primals to contain at least one Tensor.")
    tensors = has_tensor(points) or has_tensor(directions)
    directions = [tangent_like(p, t, i, spec) for i, (p, t) in enumerate(zip(points, directions, strict=True))]
    with entered("jvp", Dual) as level:
        duals = [faced(wrap(Dual(bare(p), bare(t), level)), p) for p, t in zip(points, directions, strict=True)]
        result = func(*tree_unflatten(duals, spec))
        aux = None
        if has_aux:
            result, aux = with_aux(result, api)
        outputs, out_spec = outputs_of(result, api, "f(*primals)")
        values, derivatives = [], []
        taken = {id(x) for x in (*points, *directions)}
        for y in outputs:
            primal, tangent = taken_apart(y, level)
            if tangent is None:
                if strict:
                    raise RuntimeError(
                        "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is "
                        "not allowed with strict=True."
                    )
                tangent = np.zeros(tuple(y._raw.shape), y._raw.dtype)
            values.append(dressed(primal, tensors, taken))
            derivatives.append(dressed(tangent, tensors, taken))
        if has_aux:
            aux = tree_map(lambda x: dressed(taken_apart(x, level)[0], tensors, taken) if is_array(x) else x, aux)
    value, derivative = tree_unflatten(values, out_spec), tree_unflatten(derivatives, out_spec)
    return (value, derivative, aux) if has_aux else (value, derivative)


def taken_apart(y: Any, level: int) -> tuple[Any, Any]:
    """Primal and tangent of a result; the tangent is None where it is known to be zero."""
    y = unfaced(y)
    data = y._raw if isinstance(y, Tensor) else y
    if type(data) is Dual and data.level == level:
        return data.primal, data.tangent
    return y, None


def tangent_like(primal: Any, tangent: Any, index: int, spec: Any) -> Any:
    """The tangent, of its primal's shape and dtype."""
    primal, tangent = unfaced(primal), unfaced(tangent)
    p, t = data_of(primal), data_of(tangent)
    for what, dtype in (("primal", p.dtype), ("tangent", t.dtype)):
        if dtype.kind not in "fc":
            raise ValueError(
                f"Expected {what} to be floating point or complex, but got: {dtype}{_at(spec, index)}. Use .float() or .double()."
            )
    if tuple(p.shape) != tuple(t.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(p.shape)} while the given forward gradient is of size {list(t.shape)}"
            f"{_at(spec, index)}."
        )
    if t.dtype == p.dtype:
        return tangent if is_array(tangent) else t
    if t.dtype.kind == "c" and p.dtype.kind != "c":
        raise RuntimeError(
            f"jvp: the tangent{_at(spec, index)} is complex ({t.dtype}) and its primal is real ({p.dtype})"
        )
    cast: Any = tangent if isinstance(tangent, (Tensor, ArrayLike)) else t
    return np.astype(cast, p.dtype)


def _at(spec: Any, index: int) -> str:
    return f" (primals{leaf_paths(spec)[index]})"
