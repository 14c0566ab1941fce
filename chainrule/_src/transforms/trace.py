"""Reverse mode: record one call of a function, and sweep back from its results to its arguments.

``grad``, ``jacrev``, ``linearize`` and ``jacobians/reverse.py`` make a ``Trace``.

No level is entered. The function's arguments become new leaves on the tape, and the sweep goes from the results to these
leaves only; all other values that the function used are constants. See docs/author/inside.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, in_api_of_argument
from chainrule._src.arrays.any_array import is_array as is_plain
from chainrule._src.arrays.tree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, Params, TensorLike
from chainrule._src.interpreters.dual import Dual
from chainrule._src.messages import errors
from chainrule._src.table.shape import alias
from chainrule._src.tape import engine, trace_hooks
from chainrule._src.tape.foreign import Foreign, ones_of
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL, MODES, is_recording, switch_mode
from chainrule._src.tape.node import Leaf, next_seq
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor, tensor_of, wrap
from chainrule._src.tape.versions import saveable_array
from chainrule._src.transforms.arguments import (
    array_id,
    as_caller_type,
    data_if_unrecorded,
    data_of,
    flatten_outputs,
    has_tensor,
    own_copy,
    plain_type,
    split_aux,
    tensor_in,
    without_labels,
    without_objects,
)

ndarray = np.ndarray


def fresh_leaf(x: object, linked: bool = True) -> Tensor:
    """Return a new leaf for an argument; if the argument is on the tape and ``linked`` is True, an alias of it instead.

    Inside vmap or jvp the leaf belongs to their level, even if the argument comes from outside: results combine it with
    values of that level, and the tape of a lower level ends there.
    """
    data = data_of(x)
    tensor = x if type(x) is Tensor else tensor_in(x)
    if data.dtype.kind not in "fc":
        raise errors.func_integer_argument(data)
    level = STACK.levels[-1] if STACK.levels else None
    if level is not None and getattr(data, "level", 0) < level:
        data = level.constant(data_if_unrecorded(tensor))
        leaf = wrap(data.as_variable() if isinstance(data, ArrayLike) else data)
    elif linked and isinstance(tensor, Tensor) and tensor._edge is not None:
        leaf = alias(tensor)
        if tensor is not x:  # an Array: writes to it stay inside the function
            leaf._view = None
        return leaf
    else:
        if isinstance(data, ArrayLike):
            data = data.as_variable()
        leaf = wrap(saveable_array(data) if type(data) is ndarray and isinstance(tensor, ndarray) else data)
    leaf._edge = edge = Leaf(leaf)
    edge.seq = next_seq()
    return leaf


class Trace:
    """The record of one call of a function: the starts of its arguments on the tape, and its results.

    The call is recorded even in ``no_grad`` and ``inference_mode``. There, the results don't depend on outside values,
    unless ``linked`` is True: the caller may then compute cotangents later, outside of these modes.

    Attributes:
        leaves: the leaves of the arguments to differentiate with respect to, as the caller passed them.
        specs: the structure of each of these arguments.
        starts, edges: the tensors that the function got instead of the leaves, and their edges on the tape.
        began: the sequence number at the start of the call.
        hidden: nodes that the sweeps of this trace skip; sweeps of other traces don't.
        result, aux: the results of the function.
    """

    __slots__ = ("api", "args", "aux", "began", "edges", "hidden", "leaves", "result", "specs", "starts")

    def __init__(
        self,
        api: str,
        func: AnyFunction,
        positions: Iterable[int],
        args: tuple[object, ...],
        kwargs: Params,
        has_aux: bool = False,
        linked: bool = False,
    ) -> None:
        self.api = api
        self.args = args
        self.began = next_seq()
        self.leaves: list[Any] = []
        self.starts: list[Tensor] = []
        self.edges: list[Any] = []
        self.specs: list[TreeSpec] = []
        self.hidden: Collection[Any] = ()
        self.aux = None
        if ACTIVE_MODES:
            outer, before, recorder = LOCAL.mode, LOCAL.traced, trace_hooks.current_recorder()
            try:
                if recorder is not None:
                    recorder.depth += 1
                LOCAL.traced = before or outer.inference
                linked = linked or is_recording()
                switch_mode(MODES[True, False, outer.silent])
                result = self._call(func, positions, kwargs, linked)
            finally:
                if recorder is not None:
                    recorder.depth -= 1
                left, LOCAL.mode, LOCAL.traced = LOCAL.mode, outer, before
                if left.records is not outer.records:
                    ACTIVE_MODES.pop() if outer.records else ACTIVE_MODES.append(None)
        else:
            result = self._call(func, positions, kwargs, True)
        if has_aux:
            result, self.aux = split_aux(result, api)
        plain = isinstance(result, (ndarray, np.generic)) or plain_type(result) not in (None, float)
        if plain and not has_tensor(self.leaves):
            # the result is a plain array, so it does not depend on the arguments: an Array cannot silently become one
            result = tensor_of(tensor_in(result))
        self.result = result

    def _call(self, func: AnyFunction, positions: Iterable[int], kwargs: Params, linked: bool) -> Any:
        inner = list(self.args)
        for i in positions:
            leaves, spec = tree_flatten(inner[i])
            caller_typed = []
            for x in leaves:
                start = fresh_leaf(x, linked)
                caller_typed.append(start if type(x) is Tensor else in_api_of_argument(start, x))
                self.starts.append(start)
                self.edges.append(start._edge)
            inner[i] = tree_unflatten(caller_typed, spec)
            self.leaves += leaves
            self.specs.append(spec)
        try:
            result = func(*inner, **kwargs)
            return result if type(result) is Tensor else without_objects(result)
        except Exception as error:
            errors.noted(error)
            raise

    # -- results -----------------------------------------------------------------------------------------------------

    def scalar(self) -> Tensor:
        """Return the result of the function as a 0-d tensor of a real dtype.

        Raises:
            RuntimeError: the result is anything else.
        """
        result = self.result if type(self.result) is Tensor else tensor_in(without_labels(self.result))
        if not isinstance(result, Tensor):
            raise errors.func_result_type(self.api, result)
        if result._raw.shape:
            raise errors.func_result_shape(self.api, result)
        if result._raw.dtype.kind == "c":
            raise errors.implicit_not_real(result.dtype)
        return result

    def outputs(self, call: str = "f(*primals)") -> tuple[list[Tensor], TreeSpec]:
        """Return the leaves of the result, tensors of floating point or complex dtype, and their structure."""
        outputs, spec = flatten_outputs(self.result, self.api, call)
        for y in outputs:
            if y._raw.dtype.kind not in "fc":
                raise RuntimeError(
                    f"{self.api}: All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{y.dtype}. Return it as (output, aux), with has_aux=True."
                )
        return outputs, spec

    def value(self, result: TensorLike) -> Any:
        """Return a result in the caller's type, detached from the tape unless it depends on outside values."""
        if plain_type(result) not in (None, ndarray):
            return result
        tensor = tensor_in(result)
        if not isinstance(tensor, Tensor):
            return tensor
        leaves = tree_leaves(self.args)
        tensors = not leaves or has_tensor(leaves)
        if tensor._edge is not None and is_recording() and self._reaches_outside([tensor._edge]):
            return result if type(result) is Array else as_caller_type(tensor, tensors)
        value = without_zero_tangent(tensor._raw)
        # The tape may have saved the value, or the caller may have passed it.
        return as_caller_type(value, tensors, {array_id(value)})

    # -- gradients ---------------------------------------------------------------------------------------------------

    def set_starts(self, seq: int) -> None:
        """Set the sequence number of the starts that are leaves; later traces treat smaller numbers as outside values."""
        for edge in self.edges:
            if type(edge) is Leaf:
                edge.seq = seq

    def _reaches_outside(self, roots: list[Any], own: Sequence[Any] = ()) -> bool:
        return engine.reaches_outside(roots, self.began, [*self.edges, *own])

    def sweep_to_inputs(
        self,
        outputs: list[Tensor],
        cotangents: Sequence[Any],
        keep: bool,
        create_graph: bool | None = None,
        targets: list[Any] | None = None,
        own: Sequence[object] = (),
    ) -> list[Any]:
        """Return the cotangents at the starts (or ``targets``); None for a start that the sweep does not reach.

        If ``create_graph`` is None, they are recorded if they can depend on recorded outside values (other than ``own``).
        """
        targets = self.edges if targets is None else targets
        roots: list[Any] = []
        gs: list[Any] = []
        linked = False
        for y, g in zip(outputs, cotangents, strict=True):
            if y._edge is not None:
                roots.append(y._edge)
                gs.append(g)
                linked = linked or (isinstance(g, Tensor) and g._edge is not None)
        if not roots:
            return [None] * len(targets)
        if create_graph is None:
            create_graph = is_recording() and (linked or self._reaches_outside(roots, own))
        for i, g in enumerate(gs):
            if isinstance(g, Tensor):
                if not create_graph:
                    gs[i] = g._raw
            elif create_graph and type(g) is ndarray:
                gs[i] = wrap(g)
        order = [edge for edge in engine.reachable(roots) if edge not in self.hidden] if self.hidden else None
        return engine.sweep(
            roots,
            gs,
            targets,
            retain_graph=keep or create_graph,
            create_graph=create_graph,
            accumulate=False,
            order=order,
        )

    def gradient(self, single: bool) -> Any:
        """Return the gradient of a scalar result, in the structure of the arguments."""
        y = self.scalar()
        return self.unflatten_gradients(self.sweep_to_inputs([y], [ones_of(y._raw)], False), single)

    def unflatten_gradients(
        self, gradients: Sequence[object], single: bool = False, foreign: Sequence[TensorLike] = ()
    ) -> Any:
        """Return gradients (one for each start) in the structure of the arguments, copied if they share ``foreign`` memory.

        A missing gradient becomes zeros.
        """
        taken_ids = {array_id(x._raw if isinstance(x, Tensor) else x) for x in foreign} if foreign else set()
        results = []
        for g, start, leaf in zip(gradients, self.starts, self.leaves, strict=True):
            if g is None:
                raw = start._raw
                g = np.zeros_like(raw) if type(raw) is Foreign else np.zeros(raw.shape, raw.dtype)
            elif type(g) is Foreign:
                g = g.like(start._raw)
            g = own_copy(g, taken_ids) if is_plain(g) else without_zero_tangent(g)
            results.append(as_caller_type(g, isinstance(leaf, Tensor)))
        return tree_unflatten(results, self.specs[0]) if single else tuple(unflatten_each(results, self.specs))


def unflatten_each(leaves: Iterable[AnyArray], specs: list[TreeSpec]) -> list[Any]:
    """Return a flat list of leaves as several trees."""
    rest = iter(leaves)
    return [tree_unflatten([next(rest) for _ in range(spec.num_leaves)], spec) for spec in specs]


def without_zero_tangent(x: object) -> Any:
    """Return the primal of a dual value that has no tangent; return other values unchanged."""
    while type(x) is Dual and x.tangent is None:
        x = x.primal
    return x
