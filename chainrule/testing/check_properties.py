"""Check other properties of an op definition: dtypes, formulas, index maps, saved values, and the public function.

``rulecheck`` calls these checks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule._src.rules import kinds
from chainrule._src.rules.primitive import TABLE
from chainrule._src.tape.tensor import wrap
from chainrule._src.transforms.differences import ROUNDING_TOLERANCE, normal_like
from chainrule.testing.case import Case, as_tuple, on_tape, or_zeros, push, subsets, sweep

ndarray = np.ndarray


def check_value(case: Case) -> None:
    """Compare the op's own value rule with the ufunc that it implements."""
    if case.prim.ufunc is not None and case.prim.value is not case.prim.ufunc:
        expected = as_tuple(case.prim.ufunc(*case.operands))
        for got, wanted in zip(case.value(case.operands), expected, strict=True):
            case.agree(f"value, compared with {case.prim.ufunc.__name__}", got, wanted, ROUNDING_TOLERANCE)


def check_dtype(case: Case) -> None:
    """Check that float32 operands give float32 values and derivatives, and mixed operands gradients of their own dtypes."""
    narrow = np.complex64 if case.sample.complex else np.float32
    operands = case.sample.draw(0, np.float32)
    outs = case.value(operands)
    floats = case.differentiable_outputs()
    results = as_tuple(
        case.prim(*[wrap(x) if i in case.sample.floating else x for i, x in enumerate(operands)], **case.params)
    )
    for out, result in zip(outs, results, strict=True):
        if result.dtype != out.dtype or tuple(result.shape) != np.shape(out):
            case.fail("a tensor's dtype and shape", (result.dtype, tuple(result.shape)), (out.dtype, np.shape(out)))
    if case.sample.floating and "dtype" not in case.params:
        for k in floats:
            if outs[k].dtype not in (np.float32, np.complex64):
                case.fail(f"the value's dtype for {np.dtype(narrow)} operands", outs[k].dtype, np.dtype(narrow))
    if not case.wanted:
        return
    gs = case.cotangents(operands, 1)
    for i, r in zip(case.wanted, case.pull(operands, gs)):
        if r is not None and r.dtype != narrow:
            case.fail("the VJP's dtype", r.dtype, np.dtype(narrow), i)
    tangents = {i: case.sample.direction(i, operands[i], 3) for i in case.wanted}
    for t, k in zip(push(case, operands, tangents), floats):
        if t.dtype != outs[k].dtype:
            case.fail("the JVP's dtype", t.dtype, outs[k].dtype)
    leaves, tensors = case.run(operands, case.wanted)
    first = [r for r in sweep(leaves, tensors, gs, True) if r is not None]
    for r in sweep(leaves, first, [normal_like(np.empty(r.shape, r.dtype), 5) for r in first], False):
        if r is not None and r.dtype != narrow:
            case.fail("the second derivative's dtype", r.dtype, np.dtype(narrow))
    if len(case.wanted) > 1 and case.prim.promotion != "none":
        mixed = [x.astype(case.operands[i].dtype) if i == case.wanted[0] else x for i, x in enumerate(operands)]
        with_mixed = [normal_like(np.asarray(case.value(mixed)[k]), 1) for k in floats]
        for i, r in zip(case.wanted, case.pull(mixed, with_mixed)):
            if r is not None and r.dtype != mixed[i].dtype:
                case.fail("the VJP's dtype for operands of mixed dtypes", r.dtype, mixed[i].dtype, i)


def check_formula(case: Case) -> None:
    """Evaluate the text formula of each VJP and compare it with the rule."""
    if case.sample.complex or not case.wanted:
        return
    gs = case.cotangents(case.operands, 1)
    outs = case.value(case.operands)
    names: dict[str, Any] = {}
    for rule in case.prim.vjps.values():  # global helpers of the rule's module
        names.update(getattr(rule, "__globals__", {}))
    names.update(TABLE, np=np, unbroadcast=kinds.unbroadcast)
    names.update(zip(case.prim.outputs, outs))
    names.update(g=gs[0] if len(case.prim.outputs) == 1 else tuple(gs), out=outs[0] if len(outs) == 1 else outs)
    if case.prim.variadic:
        name = case.names[0].lstrip("*")
        shapes, dtypes = tuple(map(np.shape, case.operands)), tuple(x.dtype for x in case.operands)
        names.update({name: case.operands, name + "_shape": shapes, name + "_dtype": dtypes})
    for name, x in zip(case.prim.operands, case.operands):
        if not name.startswith("*"):
            names.update({name: x, name + "_shape": np.shape(x), name + "_dtype": getattr(x, "dtype", None)})
    names.update(case.params)
    pulled = dict(zip(case.wanted, case.pull(case.operands, gs)))
    for i in case.wanted:
        x = case.operands[i]
        text = case.prim.formula.get(case.names[i])
        if text is None:  # optional for user-defined ops
            continue
        evaluated = eval(text, names)
        if case.prim.variadic:
            evaluated = evaluated[i]
        got = kinds.unbroadcast(np.asarray(evaluated), np.shape(x), x.dtype)
        case.agree(f"formula {text!r}", got, or_zeros(pulled[i], x), ROUNDING_TOLERANCE, i)


def check_moves(case: Case) -> None:
    """Check that an op declared as ``moves`` only moves elements, by applying it to an array of positions."""
    if not case.prim.moves:
        return
    x = case.operands[0]
    positions = np.arange(x.size).reshape(x.shape)
    moved = case.prim.value(positions, *case.operands[1:], **case.params)
    case.agree("index map", case.value(case.operands)[0], x.reshape(-1)[np.asarray(moved)], 0.0)


def check_saves(case: Case) -> None:
    """Check that a node saves exactly the values that the rules of its differentiable operands read."""
    prim = case.prim
    for subset in subsets(case.wanted):
        _, outs = case.run(case.operands, subset)
        node = next((out.grad_fn for out in outs if out.grad_fn is not None), None)
        if node is None:
            continue
        read_names = {name for i in subset for name in prim.reads[case.names[i]]}
        for name, saved_value in zip(prim.saves, node.saved, strict=True):
            if saved_value is None and name in read_names:
                case.fail(f"the values saved for operands {subset}", f"no {name}", name)
            if saved_value is not None and name not in read_names:
                case.fail(f"the values saved for operands {subset}", name, f"no {name}")


def check_function(case: Case) -> None:
    """Compare the public function, which has a fast path, with the op definition."""
    if case.prim.function is None or not case.wanted or case.params:
        return
    gs = case.cotangents(case.operands, 1)
    for subset in subsets(case.wanted):
        given = [
            on_tape(x) if i in subset else wrap(x) if isinstance(x, ndarray) else x for i, x in enumerate(case.operands)
        ]
        out = case.prim.function(*given)
        case.agree("value of the public function", out._raw, case.value(case.operands)[0], ROUNDING_TOLERANCE)
        found = sweep([given[i] for i in subset], [out], gs, False)
        for i, got, expected in zip(subset, found, case.pull(case.operands, gs, subset)):
            got, expected = or_zeros(got, case.operands[i]), or_zeros(expected, case.operands[i])
            case.agree("VJP of the public function", got, expected, ROUNDING_TOLERANCE, i)
    narrow = [on_tape(x) if i in case.wanted else x for i, x in enumerate(case.sample.draw(0, np.float32))]
    out = case.prim.function(*narrow)
    leaves = [narrow[i] for i in case.wanted]
    for i, x, got in zip(case.wanted, leaves, sweep(leaves, [out], [np.ones(out.shape, out.dtype)], False)):
        if got is not None and (got.dtype, got.shape) != (x.dtype, x.shape):
            what = "dtype and shape of the VJP of the public function"
            case.fail(what, (got.dtype, got.shape), (x.dtype, x.shape), i)
