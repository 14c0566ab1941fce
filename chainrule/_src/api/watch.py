"""``Watch``: observe the operations of a thread; profilers and the search for the first NaN subclass it.

While a watch is active, every operation of its thread, and every rule that a backward pass runs, calls its methods. Watches
nest: the default methods call the next outer watch.
"""

from __future__ import annotations

from typing import Any

from chainrule._src.arrays.types import Params
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.modes import LOCAL, leave_watched, set_watched
from chainrule._src.tape.node import Node


class Watch:
    """Observes operations and executes them. Subclasses override the methods of the events they observe.

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
        """Compute the value of an operation from the data of its operands."""
        if self.inner is not None:
            return self.inner.forward(prim, datas, params)
        return prim.value(*datas, **params)

    def recorded(self, node: Node) -> None:
        """Handle a node that was put on the tape."""
        if self.inner is not None:
            self.inner.recorded(node)

    def backward(self, node: Node, g: Any, saved: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run a node's pullback."""
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
        """Handle the end of a backward pass, when gradients arrived at leaves."""
        if self.inner is not None:
            self.inner.leaf_gradients(arrived)

    def result_tangent(self, tangent: Any) -> None:
        """Handle the tangent of a result that a transformation returns."""
        if self.inner is not None:
            self.inner.result_tangent(tangent)

    def jacobian_step(self, step: Any) -> None:
        """Handle a recorded step of a structured Jacobian."""
        if self.inner is not None:
            self.inner.jacobian_step(step)

    def jacobian_terms(self, step: Any, outs: Any, origins: Any) -> None:
        """Handle the computed terms of a step's outputs; ``origins`` is the :class:`TermOrigins` of the run."""
        if self.inner is not None:
            self.inner.jacobian_terms(step, outs, origins)

    def __enter__(self) -> Any:
        outer = LOCAL.watch
        while outer is not None:
            if outer is self:
                raise RuntimeError("this watch is active already: create another one")
            outer = outer.inner
        self.inner = LOCAL.watch
        set_watched()
        LOCAL.watch = self
        return self

    def __exit__(self, *exc: object) -> None:
        outer = LOCAL.watch
        if outer is self:
            LOCAL.watch = self.inner
        else:  # other watches were entered later: unlink this one from the chain
            while outer is not None and outer.inner is not self:
                outer = outer.inner
            if outer is None:
                return
            outer.inner = self.inner
        leave_watched()
