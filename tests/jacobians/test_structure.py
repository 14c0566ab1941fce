"""The declared structure of the primitives' local Jacobians, compared with the JVPs of unit tangents."""

import numpy as np
import pytest

from chainrule._src.rules.primitive import TABLE
from chainrule._src.rules.structure import letters_of, structure_of
from chainrule.testing.case import Case, push
from chainrule.testing.rulecheck import every_sample
from tests.jacobians.test_rows import ROWS


def local_jacobian(case, i):
    """Return the dependence of each output's elements on those of operand i: (elements, elements of the operand)."""
    x, floats = case.operands[i], case.differentiable_outputs()
    found = [np.zeros((np.size(y), x.size), bool) for y in push(case, case.operands, {i: np.zeros_like(x)})]
    for j in range(x.size):
        for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
            tangent = np.zeros(x.shape, x.dtype)
            tangent.reshape(-1)[j] = unit
            for k, y in enumerate(push(case, case.operands, {i: tangent})):
                found[k][:, j] |= np.ravel(y) != 0
    assert len(found) == len(floats)
    return found


def met(letters, have, shape):
    """Return where the axes of the same letter agree, with the leading axes broadcast."""
    mine, out = letters
    at, to = (np.indices(s).reshape(len(s), np.prod(s, dtype=int)) for s in (have, shape))
    agree = np.ones((to.shape[1], at.shape[1]), bool)
    for back in range(1, min(len(have) - len(mine), len(shape) - len(out)) + 1):
        k, m = len(have) - len(mine) - back, len(shape) - len(out) - back
        if have[k] != 1:
            agree &= to[m][:, None] == at[k]
    for k, c in enumerate(mine):
        if c in out:
            agree &= to[len(shape) - len(out) + out.index(c)][:, None] == at[len(have) - len(mine) + k]
    return agree


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in ROWS if TABLE[name].kind != "elementwise"])
def test_structure(name):
    prim = TABLE[name]
    samples = every_sample(prim)
    with np.errstate(all="ignore"):
        for sample in [*samples[:6], *[s for s in samples[6:] if s.complex][:1]]:
            case = Case(prim, sample)
            outs = case.value(case.operands)
            for i in case.wanted:
                structure = structure_of(prim, i, case.params)
                for k, jacobian in zip(case.differentiable_outputs(), local_jacobian(case, i), strict=True):
                    have, shape = np.shape(case.operands[i]), outs[k].shape
                    letters = letters_of(structure, i, case.params, len(have), len(shape), k)
                    if letters is not None:
                        assert not (jacobian & ~met(letters, have, shape)).any(), (str(sample), i, structure)
                    elif structure == "selection":
                        assert jacobian.sum(1).max(initial=0) <= 1, (str(sample), i)
                    elif structure == "scatter" and 1 not in have:  # after broadcasting
                        assert jacobian.sum(0).max(initial=0) <= 1, (str(sample), i)
                    else:
                        assert structure in ("windows", "dense", "scatter"), structure


def test_structures_that_depend_on_parameters():
    put = TABLE["index_put"]
    assert structure_of(put, 1, {"accumulate": True}) == "scatter"
    assert structure_of(put, 1, {"accumulate": False}) == "selection"
    assert structure_of(TABLE["solve"], 1, {}) == "kj:ij"
    assert letters_of("ab:k,ij", 0, {}, 3, 3, 1) == ("ab", "ij")
    assert letters_of("axis", 0, {"axes": (-1, -3)}, 3, 3) == ("abc", "AbC")
    assert letters_of("sum", 0, {"axis": (-1,)}, 2, 1) == ("ab", "a")
    assert letters_of("dense", 0, {}, 2, 2) is None
