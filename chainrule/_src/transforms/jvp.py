"""``jvp``: the value of a function and its directional derivative, by forward mode. ``chainrule.func`` exports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from chainrule._src.api.array import in_api_of_argument
from chainrule._src.arrays.tree import tree_flatten, tree_map, tree_unflatten
from chainrule._src.arrays.types import AnyFunction, R
from chainrule._src.messages import errors
from chainrule._src.transforms.arguments import (
    array_id,
    as_caller_type,
    data_if_unrecorded,
    flatten_like,
    flatten_outputs,
    has_tensor,
    is_array,
    names_keywords,
    split_aux,
    tangent_like,
)
from chainrule._src.transforms.pushforward import JvpRun, write_back_duals


@overload
def jvp(
    func: Callable[..., R], primals: object, tangents: object, *, strict: bool = False, has_aux: Literal[False] = False
) -> tuple[R, R]: ...
@overload
def jvp(func: AnyFunction, primals: object, tangents: object, *, strict: bool = False, has_aux: bool) -> Any: ...
@names_keywords
def jvp(func: AnyFunction, primals: object, tangents: object, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Compute ``func(*primals)`` and its directional derivative along ``tangents``, in one forward pass.

    Args:
        func: a function from arrays or tensors (or nested containers of them) to arrays or tensors.
        primals: a tuple of the arguments of ``func``.
        tangents: the direction, with the structure and shapes of ``primals``.
        strict: raise if an output does not depend on the primals; otherwise its tangent is zeros.
        has_aux: ``func`` returns ``(output, aux)``; only ``output`` is differentiated.

    Returns:
        ``(output, output_tangent)``, or ``(output, output_tangent, aux)``.

    Raises:
        RuntimeError: primals and tangents differ in structure or shapes; the output contains a value that has no
            derivative.
        ValueError: a primal or tangent does not have a floating point or complex dtype.

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
    directions = flatten_like(
        spec,
        tangents,
        f"{api}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of "
        "3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure {got}",
    )
    if not points:
        raise RuntimeError(f"{api}: Expected primals to contain at least one Tensor.")
    tensors = has_tensor(points) or has_tensor(tree_flatten(tangents)[0])
    directions = [tangent_like(p, t, i, spec) for i, (p, t) in enumerate(zip(points, directions, strict=True))]

    def flat(*duals: Any) -> Any:
        datas = [dual._raw for dual in duals]
        result = func(
            *tree_unflatten([in_api_of_argument(dual, p) for dual, p in zip(duals, points, strict=True)], spec)
        )
        write_back_duals("jvp", points, duals, datas)
        return result

    run = JvpRun(flat, [data_if_unrecorded(p) for p in points], [data_if_unrecorded(t) for t in directions], "jvp")
    result, aux = split_aux(run.result, api) if has_aux else (run.result, None)
    outputs, out_spec = flatten_outputs(result, api, "f(*primals)")
    values, derivatives = [], []
    foreign = {array_id(x) for x in (*points, *directions)}
    for y in outputs:
        primal, tangent = run.split(y)
        if tangent is None:
            if strict:
                raise RuntimeError(
                    "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                    "allowed with strict=True."
                )
            tangent = np.zeros(tuple(y._raw.shape), y._raw.dtype)
        values.append(as_caller_type(primal, tensors, foreign))
        derivatives.append(as_caller_type(tangent, tensors, foreign))
    pair = tree_unflatten(values, out_spec), tree_unflatten(derivatives, out_spec)
    if not has_aux:
        return pair
    return *pair, tree_map(lambda x: as_caller_type(run.primal(x), tensors, foreign) if is_array(x) else x, aux)
