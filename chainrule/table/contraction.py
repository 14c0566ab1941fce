"""Products summed over a shared axis: everything about them follows from the subscripts."""

from __future__ import annotations

from chainrule.core.kinds import contraction


@contraction("ik,kj->ij", aliases={"y": "mat2"}, samples=[{"shapes": [(2, 3), (3, 4)]}, {"shapes": [(0, 3), (3, 2)]}])
def mm(x, y):
    """Matrix product of two matrices."""


@contraction(
    "ik,kj->ij",
    aliases={"y": "mat2"},
    samples=[{"shapes": [(2, 2, 3), (2, 3, 4)]}],
)
def bmm(x, y):
    """Matrix products of two stacks of matrices of equal length."""


@contraction("ik,k->i", aliases={"y": "vec"}, samples=[{"shapes": [(2, 3), (3,)]}])
def mv(x, y):
    """Product of a matrix and a vector."""


@contraction("k,kj->j", aliases={"y": "mat2"}, samples=[{"shapes": [(3,), (3, 2)]}])
def vm(x, y):
    """Product of a vector and a matrix."""


@contraction("i,i->", aliases={"y": "tensor"}, samples=[{"shapes": [(3,), (3,)]}])
def dot(x, y):
    """Inner product of two vectors."""
