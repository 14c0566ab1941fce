"""Observers for ``chainrule explain``: keep freed graphs, and stop at a backward pass.

``explain`` makes the observers.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import numpy as np

from chainrule._src.api.watch import Watch
from chainrule._src.arrays.types import Cotangents, NumpyArray, Params, Saved
from chainrule._src.messages.errors import PACKAGE, user_frame
from chainrule._src.tape.modes import LOCAL
from chainrule._src.tape.node import Edge, Freed, Node
from chainrule._src.tape.tensor import Tensor


class GraphKeeper(Watch):
    """An observer that keeps the saved values that backward passes free, and records the last pass.

    The values live as long as their nodes. For the program the graphs stay freed until ``restore`` puts the values back.
    """

    def __init__(self) -> None:
        self.kept: weakref.WeakKeyDictionary[Node, tuple[Saved, object]] = weakref.WeakKeyDictionary()
        self.last: BackwardPass | None = None

    def backward(self, node: Node, g: object, saved: Saved, edges: tuple[object, ...]) -> Cotangents:
        if self not in LOCAL.sweep.notes:
            LOCAL.sweep.notes[self] = True
            self.last = BackwardPass()
        if type(node.saved) is Freed:
            self.kept[node] = saved, getattr(node.params.get("ctx"), "_kept", None)
        return super().backward(node, g, saved, edges)

    def restore(self) -> None:
        """Put the saved values back, so that the graphs can be differentiated again."""
        for node, (saved, ctx_saved) in self.kept.items():
            if type(node.saved) is Freed:
                node.saved = saved
                if ctx_saved is not None:
                    node.params["ctx"]._kept = ctx_saved


class StopScript(BaseException):
    """Stops a script after its backward pass has been explained."""


class BackwardPass:
    """A backward pass that has just started; the program is inside of its call. Holds only weak references to the graph."""

    def __init__(self) -> None:
        self._roots = [weakref.ref(root) for root in LOCAL.sweep.roots]
        self.cotangents: list[NumpyArray | None] = list(LOCAL.sweep.cotangents)

    @property
    def roots(self) -> list[Edge | None]:
        """Return the root edges of the pass; None for those that no longer exist."""
        return [root() for root in self._roots]

    def is_default(self) -> bool:
        """Return whether the pass has the default cotangent: 1 for a single scalar output."""
        (first, *others) = (getattr(g, "_raw", g) for g in self.cotangents)
        return not others and type(first) is np.ndarray and first.size == 1 and bool(first.item() == 1)

    def names(self) -> Params:
        """Return the local and global variables of all functions on the call stack; inner functions take precedence."""
        names: Params = {}
        frame = user_frame()
        while frame is not None:
            if not frame.f_code.co_filename.startswith(PACKAGE):
                for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
                    names.setdefault(name, value)
            if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__":
                break  # the script's top level, called by this command
            frame = frame.f_back
        return names

    def outputs(self) -> list[Tensor]:
        """Return the output tensors, found among the local variables on the call stack."""
        scopes: list[Params] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            scopes.append(frame.f_locals)
            frame = frame.f_back
        return self.outputs_among(scopes)

    def outputs_among(self, scopes: Sequence[Params]) -> list[Tensor]:
        """Return the output tensors among these variables."""
        roots = self.roots
        found: dict[object, Tensor] = {}
        for tensor in (tensor for scope in scopes for tensor in _tensors(scope)):
            if tensor._edge is not None and tensor._edge in roots:
                found.setdefault(tensor._edge, tensor)
        return [found[root] for root in roots if root in found]


def _tensors(scope: Params) -> Iterator[Tensor]:
    for value in list(scope.values()):
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, Tensor):
                yield item


class ExplainAtBackward(Watch):
    """An observer that calls a function when the Nth backward pass starts, then stops the program."""

    def __init__(self, count: int, explain: Callable[[BackwardPass], object]) -> None:
        self.count = count
        self.explain = explain
        self.seen = 0
        self.last: object = None
        self.explanation: object = None
        self.failure: Exception | None = None

    def backward(self, node: Node, g: object, saved: Saved, edges: tuple[object, ...]) -> Cotangents:
        if self.explanation is None:
            sweep = LOCAL.sweep
            if sweep is not self.last:
                self.last = sweep
                self.seen += 1
                if self.seen == self.count:
                    if type(node.saved) is Freed:
                        node.saved = saved
                    try:
                        self.explanation = self.explain(BackwardPass())
                    except Exception as error:  # not an error of the program
                        self.failure = error
                    raise StopScript
        return super().backward(node, g, saved, edges)
