"""Watching a thread's operations: what profilers and the search for the first NaN are built on.

While a watch is entered, every operation of its thread, and every rule that a backward pass runs, goes through its
methods. Watches nest: what one does not do itself it passes on to the one that was there before.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.arrays.types import Params
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.modes import LOCAL, leave_watched, set_watched
from chainrule._src.tape.node import Node


class Watch:
    """Sees what happens, and lets it happen. Subclasses override what they want to know of.

    >>> from chainrule._src.api.watch import Watch
    >>> import chainrule as cr
    >>> class Names(Watch):
    ...     def forward(self, prim, datas, params):
    ...         print(prim.name)
    ...         return super().forward(prim, datas, params)
    >>> with Names():
    ...     y = cr.exp(cr.ones(2))
    exp
    """

    inner: Watch | None = None

    def forward(self, prim: Primitive, datas: Any, params: Params) -> Any:
        """Compute the value of an operation, from the data of its operands."""
        if self.inner is not None:
            return self.inner.forward(prim, datas, params)
        return prim.value(*datas, **params)

    def recorded(self, node: Node) -> None:
        """A node was put on the tape."""
        if self.inner is not None:
            self.inner.recorded(node)

    def backward(self, node: Node, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run a node's rule."""
        if self.inner is not None:
            return self.inner.backward(node, g, saved, edges)
        grads: tuple[Any, ...] = node.pullback(node, g, saved, edges)
        return grads

    def tangent(self, prim: Primitive, primals: Any, tangents: Any, out: Any, params: Params) -> Any:
        """Compute the tangent of an operation's output."""
        if self.inner is not None:
            return self.inner.tangent(prim, primals, tangents, out, params)
        return prim.jvp(primals, tangents, out, params)

    def leaf_gradients(self, arrived: Any) -> None:
        """Gradients arrived at leaves, at the end of a backward pass."""
        if self.inner is not None:
            self.inner.leaf_gradients(arrived)

    def result_tangent(self, tangent: Any) -> None:
        """A transformation returns the tangent of its result."""
        if self.inner is not None:
            self.inner.result_tangent(tangent)

    def jacobian_step(self, step: Any) -> None:
        """A step of a structured Jacobian was noted."""
        if self.inner is not None:
            self.inner.jacobian_step(step)

    def jacobian_terms(self, step: Any, outs: Any, origins: Any) -> None:
        """The terms of a step's outputs were computed; ``origins`` is the :class:`TermOrigins` of the run."""
        if self.inner is not None:
            self.inner.jacobian_terms(step, outs, origins)

    def __enter__(self) -> Any:
        outer = LOCAL.watch
        while outer is not None:
            if outer is self:
                raise RuntimeError("this watch is on already: make another one")
            outer = outer.inner
        self.inner = LOCAL.watch
        set_watched()
        LOCAL.watch = self
        return self

    def __exit__(self, *exc: object) -> None:
        outer = LOCAL.watch
        if outer is self:
            LOCAL.watch = self.inner
        else:  # others were entered since: leave from among them
            while outer is not None and outer.inner is not self:
                outer = outer.inner
            if outer is None:
                return
            outer.inner = self.inner
        leave_watched()
