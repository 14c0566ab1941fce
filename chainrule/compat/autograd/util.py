"""The helpers that programs import from ``autograd.util``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from chainrule._src.api.public_modules import show
from chainrule._src.arrays.types import TensorLike
from chainrule.compat.autograd.test_util import check_grads
from chainrule.compat.autograd.wrap_util import subvals

__all__ = [
    "check_grads",
    "func",
    "quick_grad_check",
    "subval",
    "subvals",
    "toposort",
]


def func(f: object) -> Any:
    return f


def subval(x: Iterable[object], i: int, value: object) -> tuple[TensorLike, ...]:
    return subvals(x, [(i, value)])


def toposort(end_node: object, parents: Any = attrgetter("parents")) -> Iterator[Any]:
    """Iterate over the ancestors of a node; each node comes after all nodes that depend on it."""
    children: dict[Any, int] = {end_node: 1}
    stack = [end_node]
    while stack:
        for parent in parents(stack.pop()):
            if parent not in children:
                stack.append(parent)
            children[parent] = children.get(parent, 0) + 1
    ready = [end_node]
    while ready:
        node = ready.pop()
        yield node
        for parent in parents(node):
            children[parent] -= 1
            if not children[parent]:
                ready.append(parent)


def quick_grad_check(fun: Any, arg0: Any, extra_args: Any = (), kwargs: Any = None, **ignored: object) -> None:
    """Check first derivatives (deprecated name)."""
    check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)


show(globals())
