"""The tape: the graph of nodes that recorded operations build for the backward pass.

A :class:`Node` is a record, not a closure. It holds the primitive, its parameters, the raw arrays that its rule reads,
and the edges of its operands. Users see it as ``grad_fn``. A :class:`Leaf` ends a path and collects the gradient of a
user's tensor. An :class:`Output` is one output of a node that has several.

``dispatch.record`` makes nodes and ``engine.sweep`` reads them. Sequence numbers grow with time, so decreasing sequence
numbers are a topological order of the graph. In-place writes take numbers from the same counter (see ``versions``).
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable
from sys import _getframe
from types import CodeType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias, final

from chainrule._src.arrays.types import AnyFunction, Cotangents, NumpyArray, NumpyDType, Params, Saved
from chainrule._src.messages import errors
from chainrule._src.messages.source_locations import USER_FILES, Where, note_frame
from chainrule._src.tape.locks import new_lock

if TYPE_CHECKING:
    from chainrule._src.rules.primitive import Primitive

next_seq: Callable[[], int] = itertools.count(1).__next__


class Freed(tuple[object, ...]):
    """The value of ``Node.saved`` after a backward pass has freed the saved values, with the source location of the pass."""

    code: CodeType | None
    lasti: int

    @property
    def where(self) -> Where | None:
        return None if self.code is None else Where(self.code, self.lasti)


class Hooks:
    """The hooks of a node or leaf. Created when the first one is registered."""

    __slots__ = ("post", "post_accumulate", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, AnyFunction] = {}
        self.pre: dict[int, AnyFunction] = {}
        self.post: dict[int, AnyFunction] = {}
        self.post_accumulate: dict[int, AnyFunction] = {}
        self.retain: weakref.ref[Any] | None = None


class RemovableHandle:
    """A handle that every ``register_*hook`` returns: ``handle.remove()`` removes the hook."""

    __slots__ = ("hooks", "key")

    def __init__(self, hooks: dict[int, AnyFunction], hook: AnyFunction) -> None:
        if not callable(hook):
            raise errors.hook_not_callable(hook)
        self.hooks = hooks
        self.key = next_seq()
        hooks[self.key] = hook

    @property
    def id(self) -> int:
        """A unique number; later handles have larger ones."""
        return self.key

    def remove(self) -> None:
        self.hooks.pop(self.key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


_FIRST_HOOK = new_lock()


#: callbacks that run before a user's object (a hook, metadata) is attached to a node: it may close a reference cycle
ON_ATTACH: list[Callable[[], object]] = []


def hooks_of(edge: Edge) -> Hooks:
    if edge.hooks is None:
        for callback in ON_ATTACH:
            callback()
        with _FIRST_HOOK:
            if edge.hooks is None:
                edge.hooks = Hooks()
    hooks: Hooks = edge.hooks
    return hooks


class Node:
    """One recorded operation. ``tensor.grad_fn`` returns it.

    ``edges`` has one entry per operand: the Node, Output or Leaf that made it, or None for a constant. ``saved``
    holds raw arrays in the order of ``prim.saves``. ``in_avals`` holds the (shape, dtype) of each operand, or None if
    no rule needs them: an elementwise primitive broadcast no operand, none was cast, none is complex, and no rule of the
    primitive reads shapes and dtypes. The results of the rules are then the cotangents, with no broadcasting to undo.
    """

    __slots__ = (
        "__weakref__", "code", "edges", "hooks", "in_avals", "lasti", "meta", "outs", "params", "prim", "pullback", "saved", "seq",
    )  # fmt: skip

    prim: Primitive
    pullback: Pullback
    params: Params
    saved: Saved
    edges: Edges
    seq: int
    in_avals: tuple[Aval, ...] | None
    hooks: Hooks | None
    outs: dict[int, weakref.ref[Output]]
    code: CodeType | None  # the user's code that called the operation, and the offset of the instruction in it
    lasti: int

    def name(self) -> str:
        """Return the name of the operation, such as ``'ExpBackward0'``."""
        return self.prim.node_name(self.params, self)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple[tuple[Node | Leaf | None, int], ...]:
        """The next nodes towards the leaves: a pair (node, index of its output) per operand."""
        number = self.prim.number_among(self)
        return tuple(_next_function(edge) for i, edge in enumerate(self.edges) if i != number)

    @property
    def rule(self) -> dict[str, str]:
        """The VJP rule: for each operand its cotangent, as a NumPy expression (``g`` is the output's cotangent).

        >>> import chainrule as cr
        >>> cr.ones(2, requires_grad=True).exp().grad_fn.rule
        {'x': 'g * out'}
        """
        return dict(self.prim.formula)

    @property
    def metadata(self) -> dict[object, Any]:
        """A dictionary for the user's own data about this node."""
        try:
            return self.meta
        except AttributeError:
            for callback in ON_ATTACH:
                callback()
            self.meta: dict[object, Any] = {}
            return self.meta

    def _sequence_nr(self) -> int:
        return self.seq

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise errors.pickle_node(self)

    def register_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after this node's rule. A returned tuple replaces grad_inputs."""
        return RemovableHandle(hooks_of(self).post, hook)

    def register_prehook(self, hook: AnyFunction) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before this node's rule runs. A returned tuple replaces grad_outputs."""
        return RemovableHandle(hooks_of(self).pre, hook)


def new_node(
    prim: Primitive,
    params: Params,
    edges: Edges,
    saved: Saved = (),
    in_avals: tuple[Aval, ...] | None = None,
    pullback: Pullback | None = None,
    depth: int = 3,
) -> Node:
    """Return a new node. (The generated functions of ``api.functions`` fill their nodes in line, for speed.)

    The user's frame is at least ``depth`` frames up the stack.
    """
    node = Node()
    node.prim = prim
    node.pullback = prim.pullback if pullback is None else pullback
    node.params = params
    node.edges = edges
    node.saved = saved
    node.in_avals = in_avals
    node.hooks = None
    node.seq = next_seq()
    try:
        frame = _getframe(depth)
        if (code := frame.f_code).co_filename in USER_FILES:
            node.code = code
            node.lasti = frame.f_lasti
        else:
            note_frame(node, frame)
    except ValueError:  # no Python code called it
        note_frame(node, None)
    return node


@final
class Output:
    """One output of a node with several outputs. Its cotangent goes into its slot of the node's list of cotangents.

    The node has a weak reference to its Outputs, at most one per index (see ``output_of``).
    """

    __slots__ = ("__weakref__", "edges", "hooks", "index", "node", "seq")

    def __init__(self, node: Node, index: int, seq: int) -> None:
        self.node = node
        self.index = index
        self.edges = (node,)
        self.seq = seq
        self.hooks: Hooks | None = None
        outputs_of(node)[index] = weakref.ref(self)


def outputs_of(node: Node) -> dict[int, weakref.ref[Output]]:
    """Return the Outputs of a node that exist, by index."""
    try:
        return object.__getattribute__(node, "outs")  # bypasses ``Node.__getattr__``
    except AttributeError:
        node.outs = {}
        return node.outs


def output_of(node: Node, index: int) -> Output:
    """Return the Output of this index of a node, a new one if none is alive."""
    ref = outputs_of(node).get(index)
    output = None if ref is None else ref()
    return Output(node, index, node.seq + 1) if output is None else output


class HoldsArray(Protocol):
    """A ``Tensor``, whose module imports this one."""

    _raw: Any


@final
class Leaf:
    """The end of a path, which collects the gradient of a leaf tensor (``AccumulateGrad``).

    The tensor owns its Leaf and the Leaf holds a weak reference to the tensor, so there is no reference cycle. The
    collected gradient outlives the tensor as a plain array.
    """

    __slots__ = ("__weakref__", "added", "code", "data", "grad", "hooks", "lasti", "meta", "passes", "seq", "tensor")

    code: CodeType | None  # the user's code that made the leaf
    lasti: int

    edges: Edges = ()
    make_tensor: Callable[[Any, Leaf | None], Any]

    def __init__(self, tensor: HoldsArray) -> None:
        self.tensor: weakref.ref[Any] = weakref.ref(tensor)
        self.data = tensor._raw
        self.grad: NumpyArray | None = None  # the array of the tensor's ``.grad``
        self.hooks: Hooks | None = None
        self.seq = -1  # older than all nodes; an argument of a transformation has the sequence number of its start
        self.added = 0  # number of backward passes summed in ``.grad`` since it was last None
        self.passes: tuple[Freed, ...] = ()  # the latest of these passes
        try:
            note_frame(self, _getframe(2))
        except ValueError:  # no Python code called it
            note_frame(self, None)

    @property
    def variable(self) -> Any:
        """The leaf tensor."""
        tensor = self.tensor()
        if tensor is None:  # the user's tensor was freed: the graph still has its data
            tensor = Leaf.make_tensor(self.data, self)
            self.tensor = weakref.ref(tensor)
            if self.grad is not None:
                tensor._grad = Leaf.make_tensor(self.grad, None)
        return tensor

    def name(self) -> str:
        return "AccumulateGrad"

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"

    __reduce_ex__ = Node.__reduce_ex__
    next_functions: tuple[tuple[Node | Leaf | None, int], ...] = ()
    metadata = Node.metadata
    register_hook = Node.register_hook
    register_prehook = Node.register_prehook


#: the destination of a cotangent
Edge: TypeAlias = Node | Output | Leaf
#: the edge of each operand; None for constants
Edges: TypeAlias = tuple[Edge | None, ...]
#: shape and dtype of an operand
Aval: TypeAlias = tuple[tuple[int, ...], NumpyDType]
#: ``(node, g, saved, edges) -> cotangents``; g is a tuple for a node with several outputs
Pullback: TypeAlias = Callable[[Node, Any, Saved, Edges], Cotangents]
#: the sum of the cotangents so far, by edge; for a node with several outputs, a list with one sum per output
Pending: TypeAlias = dict[Edge, Any]


def _next_function(edge: Edge | None) -> tuple[Node | Leaf | None, int]:
    return (edge if type(edge) is Leaf else grad_fn_of(edge), getattr(edge, "index", 0))


def grad_fn_of(edge: Edge | None) -> Node | None:
    """Return the node of an edge as users see it: None for constants and leaves."""
    if edge is None or type(edge) is Leaf:
        return None
    node: Node = edge.node if type(edge) is Output else edge
    if type(node) is Node:
        node.__class__ = _node_class(node.name())
    return node


@functools.cache
def _node_class(name: str) -> type[Node]:
    """Return the class of the nodes of this name: PyTorch programs read ``type(y.grad_fn).__name__``."""
    return type(name, (Node,), {"__slots__": (), "__module__": "builtins", "__doc__": Node.__doc__})


Leaf.__name__ = Leaf.__qualname__ = "AccumulateGrad"


def leading_to(order: list[Edge], targets: set[Edge]) -> set[Edge]:
    """Return the members of ``order`` (oldest first) from which a target can be reached, and the targets."""
    useful = set(targets)
    for edge in order:
        if edge not in useful:
            for below in edge.edges:
                if below in useful:
                    useful.add(edge)
                    break
    return useful
