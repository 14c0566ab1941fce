"""What ``chainrule explain`` watches a script with."""

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


class KeptGraphs(Watch):
    """Keeps what backward passes free, as long as its nodes live; ``restore`` puts it back. Notes the last pass.

    Meanwhile the program sees graphs that are freed, as it would anywhere.
    """

    def __init__(self) -> None:
        self.kept: weakref.WeakKeyDictionary[Node, tuple[Saved, object]] = weakref.WeakKeyDictionary()
        self.last: Pass | None = None

    def backward(self, node: Node, g: object, saved: Saved, edges: tuple[object, ...]) -> Cotangents:
        if self not in LOCAL.sweep.notes:
            LOCAL.sweep.notes[self] = True
            self.last = Pass()
        if type(node.saved) is Freed:
            self.kept[node] = saved, getattr(node.params.get("ctx"), "_kept", None)
        return super().backward(node, g, saved, edges)

    def restore(self) -> None:
        """Let there be backward passes again."""
        for node, (saved, of_function) in self.kept.items():
            if type(node.saved) is Freed:
                node.saved = saved
                if of_function is not None:
                    node.params["ctx"]._kept = of_function


class Stopped(BaseException):
    """Ends a script whose backward pass has been explained."""


class Pass:
    """A backward pass that begins, with the program still in the middle of its call. It keeps no graph alive."""

    def __init__(self) -> None:
        self._roots = [weakref.ref(root) for root in LOCAL.sweep.roots]
        self.cotangents: list[NumpyArray | None] = list(LOCAL.sweep.cotangents)

    @property
    def roots(self) -> list[Edge | None]:
        """Return the edges that it starts from; None for those that are gone."""
        return [root() for root in self._roots]

    def is_default(self) -> bool:
        """Return whether it starts as it would without a gradient: one output, a scalar, and 1."""
        (first, *others) = (getattr(g, "_raw", g) for g in self.cotangents)
        return not others and type(first) is np.ndarray and first.size == 1 and bool(first.item() == 1)

    def names(self) -> Params:
        """Return the variables of the functions that are running, inner ones first, and their globals."""
        names: Params = {}
        frame = user_frame()
        while frame is not None:
            if not frame.f_code.co_filename.startswith(PACKAGE):
                for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
                    names.setdefault(name, value)
            if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__":
                break  # the script itself; what called that is this command
            frame = frame.f_back
        return names

    def outputs(self) -> list[Tensor]:
        """Return the tensors it starts from: the program passed them to the functions that are running."""
        scopes: list[Params] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            scopes.append(frame.f_locals)
            frame = frame.f_back
        return self.outputs_among(scopes)

    def outputs_among(self, scopes: Sequence[Params]) -> list[Tensor]:
        """Those of these variables that it starts from."""
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


class AtBackward(Watch):
    """Calls a function as the Nth backward pass begins, and then stops the program."""

    def __init__(self, count: int, explain: Callable[[Pass], object]) -> None:
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
                        self.explanation = self.explain(Pass())
                    except Exception as error:  # it is not the program's
                        self.failure = error
                    raise Stopped
        return super().backward(node, g, saved, edges)
