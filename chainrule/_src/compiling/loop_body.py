"""The body of a loop, recorded once: one plan computes every iteration, and another goes back through every one.

A :class:`Body` is a recording of ``(carry, x) -> (carry, y)`` without reads and writes. What it uses from around it are operands of
the loop, like ``init`` and ``xs``. A loop is one operation (``iterated``): it gives what was carried to its end, the ys, and an array
for each value that the way back needs, with all iterations of it. The way back (``pulled_back``) is one operation as well.

Within ``compile`` these operations are what is recorded, so that a recording has the body once, whatever the number of iterations.
"""

from __future__ import annotations; from chainrule._src.arrays.types import AnyArray, NumpyArray

import weakref
from typing import Any

import numpy as np

from chainrule._src.api.array import array_of
from chainrule._src.arrays.any_array import with_strides
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.compiling.differentiable import plan_of, start_of, starting_at
from chainrule._src.compiling.floating_point import reporter
from chainrule._src.compiling.iteration import Shape
from chainrule._src.compiling.plan import ExecutionPlan
from chainrule._src.compiling.recording import Argument, GradOf, Recording, record, rewind
from chainrule._src.interpreters.traced import Lifted, Program, Recorder, Traced, Unrecordable, Var
from chainrule._src.rules.batching import each_example
from chainrule._src.rules.kinds import discrete
from chainrule._src.tape.dispatch import bind
from chainrule._src.tape.modes import LOCAL, grad_mode
from chainrule._src.tape.modes import recording as records
from chainrule._src.tape.node import Leaf
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.backward import grad
from chainrule._src.transforms.function import Function
from chainrule._src.transforms.function_rule import in_graph

ndarray = np.ndarray


class BodyRecorder(Recorder):
    """Records the body of a loop, also inside of a recording, whose values it takes for arrays from outside.

    What the body uses is not written by it, so that each tensor is an operand of its own, views of others among them.

    Attributes:
        outer: the recorder of the recording that the loop is in.
    """

    def __init__(self, outer: Recorder | None) -> None:
        super().__init__()
        self.outer = outer

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        LOCAL.recorder = self.outer

    def bring_all(self, operands: tuple[AnyArray, ...] | list[Tensor]) -> None:
        for x in operands:
            if isinstance(x, Tensor):
                self.bring(x)

    def bring(self, tensor: Tensor) -> None:
        raw = tensor._raw
        if getattr(raw, "level", None) is self.level:
            return
        if type(raw) is Traced and self.outer is not None and raw.level is self.outer.level:
            raw = raw.var.array
        if type(raw) is not ndarray:
            raise Unrecordable("its body uses a value of another transformation")
        var = self.var_of(raw)
        self.cells[id(tensor)] = (weakref.ref(tensor), var)
        entry = self.lifted[id(tensor)] = Lifted(tensor, var)
        tensor._raw = Traced(var, self.level)
        tensor._edge = entry.here = self.start(tensor)

    def held(self, tensor: Tensor, data: AnyArray) -> Any:
        base = tensor if tensor._view is None else tensor._view.base
        cell = self.cells.get(id(base))
        own = getattr(base._raw, "level", None) is self.level
        if not own or (cell is not None and cell[0]() is base):
            raise Unrecordable("its body writes into an array that it did not make")
        return super().held(tensor, data)


class Body:
    """A recorded body.

    Attributes:
        carried, count: how many leaves are carried, and how many results there are: these, and the leaves of y.
        outside: what it uses from around it: tensors, and arrays.
        results: what the recording says of each result; spec: the structure of ``(carry, y)``.
        iteration: the shape and dtype of each result of an iteration.
        differentiable: whether gradients flow through it, and ``live`` the results that they flow from.
        lean: whether it is computed again on the way back, so that of an iteration no more is kept than what it began with.
    """

    def __init__(self, recording: Recording, carried: int, mapped: int, lean: bool) -> None:
        if recording.guards:
            raise Unrecordable("Python reads values in its body")
        if recording.writes or recording.effects or recording.drawn or recording.handled:
            raise Unrecordable("its body does more than to compute its results")
        self.carried = carried
        self.results, self.spec, self.count = recording.results, recording.spec, len(recording.results)
        self.lean = lean
        self.differentiable = recording.backward is not None
        self._report = reporter("scan", recording.ignored)
        self._mapped = mapped
        sources = [(var, source) for var, source in recording.sources.items() if type(source) is not Argument]
        if any(type(source) is GradOf for _, source in sources):
            raise Unrecordable("its body uses the .grad of a tensor")
        given = [var for var, source in recording.sources.items() if type(source) is Argument]
        self.outside = [
            source.array((), ()) if not hasattr(source, "tensor") else source.tensor for _, source in sources
        ]
        self._strides: list[Shape] = [var.array.strides for var in (*given, *[var for var, _ in sources])]
        self._operands = [*given, *[var for var, _ in sources]]
        made = [result.var for result in recording.results]
        self._made = [var for var in made if var is not None]
        self._constants: list[Any] = [None if r.var is not None else np.asarray(r.content) for r in recording.results]
        self._plan_way_back(recording)
        outputs = self._made + self._kept
        self._plan = ExecutionPlan(Program(self._operands, recording.constants, recording.calls, outputs, []))
        like = [var if var is not None else constant for var, constant in zip(made, self._constants, strict=True)]
        self.iteration = [(x.shape, x.dtype) for x in like]
        for var in (*self._operands, *[var for call in recording.calls for var in call.results]):
            var.array = None  # type: ignore[assignment]

    def _plan_way_back(self, recording: Recording) -> None:
        """What is kept of every iteration (``_kept``, and which leaves it began with), and the plan that goes back through one."""
        backward = recording.backward
        self._kept: list[Var] = []
        self._begun: list[int] = []  # the carried leaves that are kept as each iteration found them
        self.reached: list[int] = []  # the operands that gradients flow to
        self.live: list[int] = []  # the results that they flow from
        if backward is None:
            return
        numbers = {id(x): i for i, x in enumerate(self.outside)}
        first = self.carried + self._mapped
        self.live = list(backward.results)
        places = [leaf.at if leaf.held is None else first + numbers[id(leaf.held)] for leaf in backward.leaves]
        self.reached = [at for at, g in zip(places, backward.grads) if g is not None or at < self.carried]
        self._arrives = {at: k for k, at in enumerate([p for p, g in zip(places, backward.grads) if g is not None])}
        grads = [g for g in backward.grads if g is not None]
        position = {var: i for i, var in enumerate(self._operands)}
        if self.lean:
            needed = list(self._operands)
            program = Program(
                [*backward.cotangents, *needed], recording.constants, [*recording.calls, *backward.calls], grads, []
            )
            self._back = ExecutionPlan(program)
        else:
            needed = backward.residuals
            self._kept = [var for var in needed if var not in position]
            self._back = plan_of(recording)
        self._begun = sorted({position[var] for var in needed if position.get(var, self.carried) < self.carried})
        kept = {var: k for k, var in enumerate(self._kept)}
        self._needed = [("operand", position[var]) if var in position else ("kept", kept[var]) for var in needed]
        self._back_strides = [value.strides for value in self._back.inputs]

    # -- forward -----------------------------------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """How many arrays a loop gives beside its results."""
        return len(self._begun) + len(self._kept)

    def run(self, operands: tuple[object, ...], length: int, reverse: bool) -> tuple[Any, ...]:
        """The whole loop, on arrays: what is carried to the end, the ys, and what is kept of all iterations."""
        carried, mapped = self.carried, self._mapped
        first = carried + mapped
        carry = [_laid_out(np.array(x), s) for x, s in zip(operands[:carried], self._strides, strict=False)]
        xs = [np.require(x, None, ["C", "A"]) for x in operands[carried:first]]
        outside = [_laid_out(x, s) for x, s in zip(operands[first:], self._strides[first:], strict=True)]
        stacks = [np.empty((length, *shape), dtype) for shape, dtype in self.iteration[carried:]]
        begun = [np.empty((length, *carry[k].shape), carry[k].dtype) for k in self._begun]
        kept = [np.empty((length, *var.shape), var.dtype) for var in self._kept]
        into = [
            stack for stack, constant in zip(stacks, self._constants[carried:], strict=True) if constant is None
        ] + kept
        at = [k for k, constant in enumerate(self._constants[:carried]) if constant is None]
        constants = {k: c for k, c in enumerate(self._constants[:carried]) if c is not None}
        run, report, strides = self._plan.run, self._report, self._strides
        for i in range(length - 1, -1, -1) if reverse else range(length):
            for stack, k in zip(begun, self._begun, strict=True):
                stack[i] = carry[k]
            made = run([*carry, *[x[i, ...] for x in xs], *outside], report)
            for stack, array in zip(into, made[len(at) :], strict=True):
                stack[i] = array
            for k, array in zip(at, made, strict=False):
                carry[k] = array if array.strides == strides[k] else _laid_out(array, strides[k])
            for k, constant in constants.items():
                carry[k] = constant
        for stack, constant in zip(stacks, self._constants[carried:], strict=True):
            if constant is not None:
                stack[...] = constant
        return (*carry, *stacks, *begun, *kept)

    # -- and back ----------------------------------------------------------------------------------------------------

    def back(self, given: tuple[Any, ...], present: tuple[bool, ...], length: int, reverse: bool) -> tuple[Any, ...]:
        """The gradients of the operands in ``reached``, for those of the results that are ``present``; on arrays."""
        rest = iter(given)
        gs: list[Any] = [next(rest) if there else None for there in present]
        begun = [next(rest) for _ in self._begun]
        kept = [next(rest) for _ in self._kept]
        operands = list(rest)
        carried, first = self.carried, self.carried + self._mapped
        g_carry = [np.zeros(*self.iteration[k]) if g is None else g for k, g in enumerate(gs[:carried])]
        grads: dict[int, Any] = {
            at: np.zeros(operands[at].shape, operands[at].dtype) for at in self.reached if at >= carried
        }
        nothing = {k: np.zeros(*self.iteration[k]) for k in self.live if k >= carried and gs[k] is None}
        places = {at: k for k, at in enumerate(self._begun)}
        run, strides, arrives = self._back.run, self._back_strides, self._arrives
        for i in range(length) if reverse else range(length - 1, -1, -1):
            arrays = [g_carry[k] if k < carried else nothing[k] if gs[k] is None else gs[k][i, ...] for k in self.live]
            for kind, at in self._needed:
                if kind == "kept":
                    arrays.append(kept[at][i, ...])
                elif at < carried:
                    arrays.append(begun[places[at]][i, ...])
                else:
                    arrays.append(operands[at][i, ...] if at < first else operands[at])
            made = run([x if x.strides == s else _laid_out(x, s) for x, s in zip(arrays, strides, strict=True)])
            for at in self.reached:
                g = made[arrives[at]] if at in arrives else None
                if at < carried:
                    g_carry[at] = np.zeros_like(g_carry[at]) if g is None else g
                elif at < first:
                    grads[at][i] = g
                else:
                    grads[at] += g
        return tuple([g_carry[at] if at < carried else grads[at] for at in self.reached])


def record_body(
    function: AnyFunction, carry: list[Any], xs: list[Any], live: list[bool], spec: Any, lean: bool
) -> Body:
    """Record one iteration.

    Args:
        function: of the leaves ``(carry, x)`` in their faces.
        carry, xs: (array, whether it is a tensor for the user) of the leaves of an iteration.
        live: for each of these whether gradients are to flow to it.
        spec: the structure of ``((carry, x), {})``.

    Raises:
        Unrecordable: it cannot be.
    """
    outer = LOCAL.recorder
    leaves = []
    for (array, is_tensor), wanted in zip([*carry, *xs], live, strict=True):
        tensor = wrap(array)
        if wanted:
            tensor._edge = Leaf(tensor)
        leaves.append(tensor if is_tensor else array_of(tensor))
    arrays = [array for array, _ in (*carry, *xs)]
    refusal = None if outer is None else outer.refusal
    try:
        recording = record(function, leaves, spec, arrays, "scan", outer is not None, BodyRecorder(outer))
        try:
            return Body(recording, len(carry), len(xs), lean)
        except Unrecordable:
            rewind(recording.drawn)
            raise
    finally:
        if outer is not None:
            outer.refusal = refusal  # the recording around it goes on without a recorded body


def _laid_out(array: Any, strides: Shape) -> Any:
    """An array with these strides, aligned."""
    fits = all([n < 2 or a == b for n, a, b in zip(array.shape, array.strides, strides, strict=True)])
    return array if fits and array.flags.aligned else with_strides(array, strides)


# -- the two operations ------------------------------------------------------------------------------------------------


@discrete(listed=False, batch=each_example, outputs=("results", "kept"))
def iterated(*operands: object, body: Body, length: int, reverse: bool) -> Any:
    """All iterations of a loop."""
    return body.run(operands, length, reverse)


@discrete(listed=False, batch=each_example, outputs=("first", "others"))
def pulled_back(*given: object, body: Body, present: tuple[bool, ...], length: int, reverse: bool) -> tuple[NumpyArray, ...]:
    """The gradients of a loop's operands."""
    return body.back(given, present, length, reverse)


class Scan(Function):
    """A loop on the tape: one node."""

    @staticmethod
    def forward(ctx: Any, body: Body, length: int, reverse: bool, again: Any, *operands: Tensor) -> Any:
        made = bind(iterated, operands, {"body": body, "length": length, "reverse": reverse})
        ctx.body, ctx.length, ctx.reverse, ctx.again = body, length, reverse, again
        constant = [y for k, y in enumerate(made) if k >= body.carried and k not in body.live]
        ctx.mark_non_differentiable(*constant)
        ctx.save_for_backward(*made[body.count :], *operands)
        ctx.set_materialize_grads(False)
        return made

    @staticmethod
    def backward(ctx: Any, *gs: object) -> Any:
        body = ctx.body
        gs = gs[: body.count]
        saved = ctx.saved_tensors
        operands = saved[body.kept :]
        grads: list[Any] = [None] * (4 + len(operands))
        if all([g is None for g in gs]):
            return tuple(grads)
        if in_graph():  # the gradient is to be differentiated: the iterations are what it is made of
            with grad_mode(True):
                starts = [start_of(x) for x in operands]
                with starting_at(body.outside, starts[len(starts) - len(body.outside) :]):
                    results = ctx.again(starts)
            pairs = [(y, g) for y, g in zip(results, gs, strict=True) if g is not None and y.requires_grad]
            wanted = [k for k, x in enumerate(starts) if x.requires_grad]
            if pairs and wanted:
                outputs, cotangents = zip(*pairs, strict=True)
                inputs = [starts[k] for k in wanted]
                found = grad(outputs, inputs, cotangents, create_graph=True, allow_unused=True)
                for k, g in zip(wanted, found, strict=True):
                    grads[4 + k] = g
            return tuple(grads)
        present = tuple([g is not None for g in gs])
        given = [g for g in gs if g is not None]
        params = {"body": body, "present": present, "length": ctx.length, "reverse": ctx.reverse}
        made = bind(pulled_back, [*given, *saved], params)
        for at, g in zip(body.reached, made, strict=True):
            grads[4 + at] = g
        return tuple(grads)


def run_body(body: Body, operands: list[Tensor], length: int, reverse: bool, again: AnyFunction) -> tuple[Any, ...]:
    """A loop as one operation: its results, as tensors."""
    if body.differentiable and records():
        made = Scan.apply(body, length, reverse, again, *operands)
    else:
        made = bind(iterated, operands, {"body": body, "length": length, "reverse": reverse})
    return made[: body.count]
