"""``ExplanationData``: the graph, Jacobians, contributions and lessons of an explained backward pass.

``Explanation`` inherits from it; ``page``, ``text`` and ``to_dict`` read it.
"""

from __future__ import annotations

import functools

from chainrule._src.explaining.check import Check, check_explanation
from chainrule._src.explaining.contributions import Contributions, contributions_of
from chainrule._src.explaining.graph import MOST_CARDS, Graph, graph_of
from chainrule._src.explaining.jacobian import IndexForm, jacobians_of
from chainrule._src.explaining.json_values import value_dict
from chainrule._src.explaining.lessons import Lesson
from chainrule._src.explaining.picture import arrays_of_nodes
from chainrule._src.explaining.recorded_pass import RecordedPass


class ExplanationData(RecordedPass):
    """A backward pass with everything that an explanation displays. The class ``Explanation`` describes the attributes.

    ``entry`` sets ``lessons``.
    """

    lessons: list[Lesson]

    @functools.cached_property
    def graph(self) -> Graph:
        """The graph of the pass, to draw (see ``Tensor.graph``)."""
        labels = {key: v.name for key, v in {**self._values.constants, **self._values.by_edge}.items()}
        small = len(labels) + len(self.steps) <= MOST_CARDS
        graph = graph_of(*self._tensors, names=self._values.names, labels=labels, every=small, composites=not small)
        graph.explain(self._values.all())
        graph.sideways = True
        graph._numbers = arrays_of_nodes(
            graph.nodes, {v.id: value_dict(v) for v in self._values.all()} if small else {}
        )
        return graph

    @functools.cached_property
    def _checked(self) -> Check:
        return check_explanation(self)

    @functools.cached_property
    def jacobians(self) -> list[IndexForm]:
        """The Jacobian of every output with respect to every value in ``wrt``, in index form if an exact form exists."""
        return jacobians_of(self)

    @property
    def jacobian_index(self) -> dict[tuple[str, str], str]:
        """The Jacobians that have an index form, as text, by the names of output and input.

        >>> import chainrule as cr
        >>> x = cr.tensor([1., 2., 3.], requires_grad=True)
        >>> y = cr.outer(x, x)
        >>> cr.explain(y).jacobian_index["y", "x"]
        '∂y[j,k]/∂x[i] = δ[i,j]·x[k] + δ[i,k]·x[j]'
        """
        return {(j.output.name, j.input.name): j.index for j in self.jacobians if j.index is not None}

    def contributions(self, by: str = "term") -> Contributions:
        """Divide the gradients into parts that add up to them, each with its norm and its share.

        Args:
            by: "term": by the terms of the sum that the output is, with one pass from each. A variable of the program is one
                term, and so is an expression in a loop. "line": by the lines whose operations read the leaves.
                "module": by the modules that have the leaves as parameters.

        Returns:
            :class:`Contributions`, which print as a table.

        Raises:
            ValueError: ``by`` is unknown.

        >>> import chainrule as cr
        >>> w = cr.tensor([3., 4.], requires_grad=True)
        >>> fit, size = (w - 1).square().sum(), w.square().sum()
        >>> for row in cr.explain(fit + 0.5 * size).contributions("term").rows("w"):
        ...     print(f"{row.part}: norm {row.norm:.2f}, share {row.share:.1%}, cosine {row.cosine:.3f}")
        fit: norm 7.21, share 59.1%, cosine 1.000
        0.5 * size: norm 5.00, share 40.9%, cosine 0.999
        """
        return contributions_of(self, by)

    def check(self) -> Check:
        """Build the Jacobian of every output, contract it with the given gradient, and compare with the gradients.

        Returns:
            A :class:`Check`: true if they agree. It is also true, with a remark, if a Jacobian is too large to build.
        """
        return self._checked
