"""``JacobianExplanation``: show the operations and terms by which a structured Jacobian was computed.

``entry.explain`` makes it of a ``Jacobian``.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.explaining.exports import mimebundle, write_text
from chainrule._src.explaining.jacobian_page import jacobian_fragment, jacobian_html
from chainrule._src.explaining.jacobian_terms import JacobianExplanationData
from chainrule._src.explaining.jacobian_text import jacobian_summary


class JacobianExplanation(JacobianExplanationData):
    """The operations and terms by which a structured Jacobian ∂output/∂input was computed. Returned by
    :func:`chainrule.explain`.

    Attributes:
        output, input: names.
        backward: whether the transpose was propagated from the output to the input. Then ``start`` and ``end`` have the names
            ``yˉ`` and ``xˉ``, and rows of terms are columns of the Jacobian.
        start, end: the names of the values at which the steps start and end.
        shape: ``(*output's, *input's)``.
        matrix_shape: the shape as a matrix.
        strategy: the strategy that computed it.
        kind: its storage format.
        nnz: number of entries.
        steps: the operations between input and output.
        terms: the terms whose sum it is, after the last operation.
        factors: the factors whose product it is, the last one first, if values were cut; else empty.
        entries: the rows and columns of all entries, and for each the number of its term (the last one if several terms have
            the entry; -1 if there is none).
    """

    __module__ = "chainrule.explaining"

    def to_html(self, path: Any = None) -> str:
        """Return a self-contained HTML page; also write it to a file if ``path`` is given."""
        return write_text(jacobian_html(self), path)

    def __str__(self) -> str:
        return jacobian_summary(self)

    def __repr__(self) -> str:
        return f"<explanation of {self.title}: {len(self.steps)} steps, {len(self.terms)} terms>"

    def _repr_html_(self) -> str:
        return jacobian_fragment(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return mimebundle({"text/plain": self.__str__, "text/html": self._repr_html_}, include, exclude)
