"""What the local Jacobians of a row look like, from its ``structure``.

==================  ================================================================================================
``"diagonal"``      an element of the result depends on the same element of the operand (after broadcasting)
``"selection"``     it is one element of the operand, or does not depend on it
``"scatter"``       the transpose of a selection: an element of the operand (after broadcasting) goes to one place of the
                    result, or nowhere
``"sum"``,          it is the sum, or the mean, of the operand along the parameter ``axis``
``"mean"``
``"axis"``          it depends on all of the operand along the parameter ``axis`` (or ``axes``), and nothing else
``"ik,kj->ij"``     the operands' product, summed over subscripts
``"ab:k,ij"``       it depends on all elements of the operand whose axes of the same letter agree with its own; after the
                    colon stand the axes of each result
``"scan"``          it depends on the elements up to its own place along the parameter ``axis``
``"windows"``       a product with windows, as in a convolution
``"entries"``       a product with a sparse matrix
``"dense"``         anything
``"zero"``          nothing
==================  ================================================================================================

Letters stand for the last axes; axes before them broadcast. A row has one structure for all operands, or a mapping with
one for each; any of them can be a function of the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainrule._src.rules.primitive import Primitive

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def structure_of(prim: Primitive, position: int, params: Mapping[str, object]) -> str:
    """The structure of the Jacobian with respect to the operand at a position.

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
    """Letters of the operand's and of the result's last axes, which say what depends on what; None where none can.

    A letter of both: these axes agree. One of the operand alone: all of its axis counts. One of the result alone: the
    elements along its axis depend on the same elements of the operand.

    Args:
        position: the operand's, which matters to products alone.
        ndim, out_ndim: how many axes the operand and the result have.
        output: which of several results.

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
    """All axes, of which some are mixed: the result has others in their place, or none."""
    if ndim > len(_LETTERS):
        return None
    mixed = {axis % ndim for axis in (axes if isinstance(axes, tuple) else (axes,))} if ndim else set()
    mine = _LETTERS[:ndim]
    if out_ndim == ndim:
        return mine, "".join(c.upper() if k in mixed else c for k, c in enumerate(mine))
    return mine, "".join(c for k, c in enumerate(mine) if k not in mixed)
