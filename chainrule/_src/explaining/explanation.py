"""``Explanation``: a backward pass, and the methods that show it as text, page, picture or JSON.

``entry.explain`` makes it from the records of ``sweep.record_sweep``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from chainrule._src.arrays.types import JSONObject
from chainrule._src.explaining.explanation_data import ExplanationData
from chainrule._src.explaining.exports import mimebundle, write_text
from chainrule._src.explaining.page import explanation_html, notebook_fragment
from chainrule._src.explaining.text import explanation_text, rich_console
from chainrule._src.explaining.to_dict import to_dict


class Explanation(ExplanationData):
    """A backward pass, step by step. Returned by :func:`chainrule.explain`.

    Attributes:
        outputs: the values at which the pass starts.
        wrt: the values whose gradients are explained.
        seeds: for each output, the gradient ∂L/∂output at which the pass starts.
        default_seed: whether the seeds are the default, ones.
        steps: one for each operation, in the order of the backward pass.
        values: maps the name of every array in the pass to its :class:`Value`.
        gradients: maps each name in ``wrt`` to its gradient; None if the outputs do not depend on it.
        lessons: remarks on common misunderstandings that apply to this call.
    """

    __module__ = "chainrule.explaining"

    def to_dict(self) -> JSONObject:
        """Return the explanation as nested dicts and lists of plain Python values, for JSON."""
        return to_dict(self)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a self-contained HTML page; also write it to a file if ``path`` is given."""
        return write_text(explanation_html(self), path)

    def __str__(self) -> str:
        return explanation_text(self)

    def __repr__(self) -> str:
        return f"<explanation of {self.title}: {len(self.steps)} steps>"

    def __rich_console__(self, console: object, options: object) -> Iterator[object]:
        yield from rich_console(self, console, options)

    def _repr_html_(self) -> str:
        return notebook_fragment(self)

    def _repr_svg_(self) -> str:
        return str(self.graph.to_svg())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        makers = {"text/plain": self.__str__, "text/html": self._repr_html_, "image/svg+xml": self._repr_svg_}
        return mimebundle(makers, include, exclude)
