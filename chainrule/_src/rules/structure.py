"""The sparsity structure of a primitive's local Jacobians, as declared by ``structure``.

``jacobians`` and ``explaining`` call ``structure_of`` and ``letters_of``.

==================  ================================================================================================
``"diagonal"``      an element of the result depends on the same element of the operand (after broadcasting)
``"selection"``     an element of the result is one element of the operand, or does not depend on the operand
``"scatter"``       the transpose of a selection: an element of the operand (after broadcasting) goes to one element of
                    the result, or to none
``"sum"``,          the result is the sum, or the mean, of the operand along the parameter ``axis``
``"mean"``
``"axis"``          an element depends on the operand's elements along the parameter ``axis`` (or ``axes``), on no others
``"ik,kj->ij"``     the product of the operands, summed over subscripts
``"ab:k,ij"``       an element depends on all elements of the operand whose axes of the same letter have the same index;
                    the axes of each result are listed after the colon
``"scan"``          an element depends on the elements up to its own position along the parameter ``axis``
``"windows"``       a product with windows, as in a convolution
``"entries"``       a product with a sparse matrix
``"dense"``         any dependence
``"zero"``          no dependence
==================  ================================================================================================

Letters stand for the last axes; axes before them broadcast. A primitive has one structure for all operands, or a mapping
with one for each. Each of these may be a function of the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainrule._src.rules.primitive import Primitive

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def structure_of(prim: Primitive, position: int, params: Mapping[str, object]) -> str:
    """Return the structure of the Jacobian with respect to the operand at a position.

    >>> from chainrule._src.rules.primitive import TABLE
    >>> structure_of(TABLE["scatter_add"], 2, {"axis": -1})
    'scatter'
    """
    structure = prim.structure
    if isinstance(structure, Mapping):
        structure = structure.get(prim.operands[min(position, len(prim.operands) - 1)], "zero")
    text: str = structure(params) if callable(structure) else structure
    return text


def letters_of(
    structure: str, position: int, params: Mapping[str, Any], ndim: int, out_ndim: int, output: int = 0
) -> tuple[str, str] | None:
    """Return letters for the last axes of operand and result that describe the dependence; None if letters cannot.

    A letter in both: these axes have the same index. A letter in the operand only: an element depends on the whole axis. A
    letter in the result only: all elements along its axis depend on the same elements of the operand.

    Args:
        position: the operand's position; only products use it.
        ndim, out_ndim: how many axes the operand and the result have.
        output: the index of the output, for operations with several.

    >>> letters_of("axis", 0, {"axis": -1}, 2, 2)
    ('ab', 'aB')
    >>> letters_of("ik,kj->ij", 1, {}, 2, 2)
    ('kj', 'ij')
    """
    if "->" in structure:
        operands, _, out = structure.partition("->")
        return operands.split(",")[position], out
    if ":" in structure:
        operand, _, outs = structure.partition(":")
        return operand, outs.split(",")[output]
    if structure in ("axis", "scan", "sum", "mean"):
        return _along(params["axes"] if "axes" in params else params["axis"], ndim, out_ndim)
    if structure == "diagonal":
        return "", ""
    return None


def _along(axes: int | tuple[int, ...], ndim: int, out_ndim: int) -> tuple[str, str] | None:
    """Return letters for all axes; the result has other letters for the given axes, or omits them."""
    if ndim > len(_LETTERS):
        return None
    mixed = {axis % ndim for axis in (axes if isinstance(axes, tuple) else (axes,))} if ndim else set()
    operand_letters = _LETTERS[:ndim]
    if out_ndim == ndim:
        return operand_letters, "".join(c.upper() if k in mixed else c for k, c in enumerate(operand_letters))
    return operand_letters, "".join(c for k, c in enumerate(operand_letters) if k not in mixed)
