"""``scan``, ``fori_loop`` and ``while_loop``: control flow functions with the signatures of ``jax.lax``.

A body is traced once if possible (:mod:`chainrule._src.compiling.loop_body`) and cached (:mod:`chainrule._src.compiling.body_cache`). The
loop is then one operation: one node on the tape, one call of a trace. Other bodies run eagerly in each iteration, with the same
results: bodies with Python branches on values or random numbers, and bodies under ``vmap`` and ``jvp``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from chainrule._src.api.array import Array, array_of
from chainrule._src.arrays.tree import TreeSpec, leaf_paths, tree_flatten, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, NumpyDType, TensorLike
from chainrule._src.compiling.body_cache import cache_body, find_cached_body, form_of
from chainrule._src.compiling.guards.frames import is_thread_traced
from chainrule._src.compiling.guards.log import TraceRefused
from chainrule._src.compiling.internal_errors import describe_error, is_internal
from chainrule._src.compiling.loop_body import NATIVE_ERRORS, Body, record_body, run_body
from chainrule._src.interpreters.batched import Batched
from chainrule._src.interpreters.recorder import Recorder
from chainrule._src.interpreters.trace_types import Unrecordable
from chainrule._src.interpreters.traced import Traced
from chainrule._src.messages import errors
from chainrule._src.ops.creation import tensor as new_tensor
from chainrule._src.ops.joining import stack
from chainrule._src.ops.random import default_generator
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL, grad_mode
from chainrule._src.tape.modes import is_recording as records
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.transforms.arguments import is_array, without_objects
from chainrule._src.transforms.function import Function

__all__ = ["fori_loop", "scan", "while_loop"]

ndarray = np.ndarray
Leaves = list[Any]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: object,
    xs: object = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    checkpoint: bool = False,
) -> tuple[Any, Any]:
    """Loop over the first axis of arrays with a carry: ``carry, y = f(carry, x)`` for each ``x`` of ``xs``.

    Args:
        f: a function from ``(carry, x)`` to ``(carry, y)``. It is traced in the first iteration and replayed as a plan. If it cannot be
            traced (it branches on values, draws random numbers), it is called in each iteration.
        init: the first carry: an array (tensor, number), or containers of them. Every carry has its structure, shapes and dtypes. A
            Python number gets the dtype that f returns for it in a trial call.
        xs: arrays ``(n, ...)``, or containers of them; f gets ``x[i]`` of each. With None, x is None.
        length: n, if ``xs`` has no arrays.
        reverse: start with the last element.
        unroll: accepted and ignored.
        checkpoint: save about √n carries for the gradient, and recompute the iterations between them. Memory grows with √n, for
            about the time of another forward pass.

    Returns:
        ``(carry, ys)``: the last carry, and the y of all iterations, stacked along a new first axis.

    Raises:
        TypeError: f does not return a pair, or the carry changes its structure, a shape or a dtype. The message names the leaf and
            both kinds.
        ValueError: the arrays have different lengths, or there are no arrays and no ``length``.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> cr.scan(lambda total, x: (total + x, total * x), 0.0, np.array([1., 2., 3.]))
    (array(6.), array([0., 2., 9.]))
    >>> decay = lambda k: cr.scan(lambda y, _: (y - 0.01 * k * y, None), 1.0, length=100)[0]
    >>> cr.grad(decay)(2.0)
    array(-0.13532608)
    """
    errors.check_function("scan", f)
    if isinstance(unroll, int) and unroll < 0:
        raise ValueError(f"scan: unroll is a number of iterations, or a bool, got {unroll}")
    loop = _Loop(f, init, xs, length, reverse)
    if checkpoint and loop.length > 3:
        return _checkpointed(f, loop)
    return loop.run()


def fori_loop(
    lower: TensorLike,
    upper: object,
    body_fun: Callable[[Any, Any], Any],
    init_val: TensorLike,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Repeat ``val = body_fun(i, val)`` for i from ``lower`` to ``upper - 1``: a :func:`scan` that returns the last value.

    Args:
        lower, upper: integers. An empty range has no iterations.
        body_fun: a function from ``(i, val)`` to the next ``val``; i is a 0-d int64 array.
        init_val: the first value: an array, or containers of them. Structure, shapes and dtypes must not change.
        unroll: accepted and ignored.

    Raises:
        TypeError: the value changes its structure, a shape or a dtype. The message names the leaf and both kinds.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> cr.fori_loop(1, 5, lambda i, product: product * i, 1.0)
    array(24.)
    """
    errors.check_function("fori_loop", body_fun)
    numbers = np.arange(_index("lower", lower), _index("upper", upper))
    return _Loop(
        lambda val, i: (body_fun(i, val), None), init_val, numbers, None, False, "fori_loop", "the value"
    ).run()[0]


def while_loop(cond_fun: Callable[[Any], object], body_fun: Callable[[Any], object], init_val: TensorLike) -> Any:
    """Repeat ``val = body_fun(val)`` while ``cond_fun(val)`` is true.

    The number of iterations is not known in advance, so nothing is saved for a gradient. As in JAX, the loop has forward-mode
    derivatives (``jvp``), but no reverse-mode ones. A :func:`scan` of a given length has gradients, and so has Python's ``while``.

    Args:
        cond_fun: a function from a value to a 0-d boolean. Under ``vmap`` the loop runs until it is false for all examples; examples
            for which it is false keep their value.
        body_fun: a function from a value to the next one.
        init_val: the first value: an array, or containers of them. Structure, shapes and dtypes must not change.

    Raises:
        TypeError: the value changes its structure, a shape or a dtype, or ``cond_fun`` returns an array with axes.
        RuntimeError: a backward pass reaches the result.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> root = lambda a: cr.while_loop(lambda x: np.abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, 1.0)
    >>> root(2.0)
    array(1.41421356)
    >>> cr.jvp(root, (2.0,), (1.0,))[1]         # 1 / (2 √2)
    array(0.35355339)
    """
    errors.check_function("while_loop", cond_fun)
    errors.check_function("while_loop", body_fun)
    loop = _Loop(lambda val, _: (body_fun(val), None), init_val, None, 1, False, "while_loop", "the value")
    return loop.run_while(cond_fun)


def _index(name: str, x: Any) -> int:
    try:
        return x.__index__()
    except AttributeError:
        raise TypeError(f"fori_loop: {name} must be an integer, got {type(x).__name__}") from None


#: code of bodies whose internal error was reported
_REPORTED: set[Any] = set()


class _Loop:
    """A loop on flattened arguments.

    Attributes:
        function: ``(carry, x) -> (carry, y)``.
        carry, carry_spec: the leaves of the first carry, and their structure; paths: the path of each leaf.
        xs, xs_spec: the leaves of xs, and their structure.
        length, reverse: the number of iterations, and whether the last element comes first.
        weak: the carried Python numbers by index, whose dtype is that of the body's result.
    """

    def __init__(
        self,
        function: AnyFunction,
        init: object,
        xs: object,
        length: int | None,
        reverse: bool,
        api: str = "scan",
        what: str = "the carry",
    ) -> None:
        self.function, self.api, self.what = function, api, what
        self.reverse = bool(reverse)
        carry, self.carry_spec = tree_flatten(init)
        mapped, self.xs_spec = tree_flatten(xs)
        self.tensors = any([isinstance(x, Tensor) for x in (*carry, *mapped)])
        self.weak = {k: x for k, x in enumerate(carry) if type(x) in (int, float, complex)}
        self.paths = leaf_paths(self.carry_spec)
        self.carry = [self._leaf(x, f"{what}{path}") for x, path in zip(carry, self.paths, strict=True)]
        names = leaf_paths(self.xs_spec)
        self.xs = [self._leaf(x, f"xs{path}") for x, path in zip(mapped, names, strict=True)]
        self.length = self._length(names, length)
        self.spec = tree_flatten(((init, xs), {}))[1]

    def _leaf(self, x: object, name: str) -> Any:
        if isinstance(x, (Tensor, ndarray)) or type(x) is Array:
            if type(x) is ndarray and x.dtype.kind not in "fciub":
                raise TypeError(f"{self.api}: {name} is an array of {x.dtype}: it must be of numbers")
            return x
        if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic):
            return new_tensor(x) if self.tensors else np.asarray(x)
        if isinstance(x, np.generic) or is_array(x):
            return np.asarray(x) if isinstance(x, np.generic) else x
        raise TypeError(f"{self.api}: {name} must be an array, a tensor or a number, got {type(x).__name__}")

    def _length(self, names: list[str], length: int | None) -> int:
        found: int | None = None
        if length is not None:
            try:
                found = length.__index__()
            except AttributeError:
                raise TypeError(f"{self.api}: length must be an integer, got {type(length).__name__}") from None
        length_name = "length"
        for x, name in zip(self.xs, names, strict=True):
            if not x.shape:
                raise ValueError(f"{self.api}: xs{name} has no axis to iterate over: its shape is ()")
            if found is not None and x.shape[0] != found:
                raise ValueError(
                    f"{self.api}: xs{name} has {x.shape[0]} elements along its first axis, and {length_name} is {found}: they must agree"
                )
            if found is None:
                found, length_name = x.shape[0], f"the length of xs{name}"
        if found is None:
            raise ValueError(f"{self.api}: there are no xs: pass the number of iterations as length=")
        if found < 0:
            raise ValueError(f"{self.api}: length is a number of iterations, got {found}")
        return found

    # -- one iteration -----------------------------------------------------------------------------------------------

    def iteration(
        self, carry: AnyArray | tuple[Array, ...] | dict[str, NumpyArray], x: AnyArray | tuple[Array, ...] | None
    ) -> tuple[Any, Any]:
        """Call the body, check its result, and return the carry, with leaves as arrays, and y."""
        result = without_objects(self.function(carry, x))
        if type(result) is not tuple or len(result) != 2:
            got = f"{len(result)} values" if type(result) is tuple else type(result).__name__
            raise TypeError(f"{self.api}: the body must return a pair (carry, y), and it returned {got}")
        carry, y = result
        leaves, spec = tree_flatten(carry)
        if spec != self.carry_spec:
            raise TypeError(
                f"{self.api}: {self.what} changes its structure in the body, from {_text(self.carry_spec)} to {_text(spec)}: it must "
                "have the same containers in every iteration"
            )
        for k, (old, new) in enumerate(zip(self.carry, leaves, strict=True)):
            leaves[k] = self._checked(k, old, new)
        return tree_unflatten(leaves, spec), y

    def _checked(self, k: int, old: AnyArray, new: Any) -> AnyArray:
        """Return a leaf of the new carry; raise if its shape or dtype changed."""
        dtype = _dtype(old)
        if type(new) in (bool, int, float, complex) and np.result_type(dtype, new) == dtype:
            new = np.asarray(new, dtype)
            return wrap(new) if isinstance(old, Tensor) else new
        new = self._leaf(new, f"{self.what}{self.paths[k]}")
        if tuple(new.shape) != tuple(old.shape) or _dtype(new) != dtype:
            raise TypeError(
                f"{self.api}: {self.what}{self.paths[k]} changes in the body, from {_kind(old)} to {_kind(new)}: it must have the same "
                f"shape and dtype in every iteration{_advice(old, new)}"
            )
        return new

    # -- all iterations ----------------------------------------------------------------------------------------------

    def run(self) -> tuple[Any, Any]:
        """Run the loop, and return the last carry and the ys."""
        if self.weak:
            self._give_dtypes()
        if not self.length:
            return self._empty()
        body = self.body()
        if body is None:
            result = self._run_eagerly(self.carry, self.xs)
            self._report_if_internal()
            return result
        try:
            results = self._run_recorded(body)
        except NATIVE_ERRORS:  # the eager run raises the error with its message
            return self._run_eagerly(self.carry, self.xs)
        carry, y = tree_unflatten(results, body.spec)
        return carry, y

    def _give_dtypes(self) -> None:
        """Give carried Python numbers the dtypes that the body returns for them in a trial call."""
        recorder, state = LOCAL.recorder, default_generator._get_state()
        calls, guards = (len(recorder.calls), len(recorder.guards)) if recorder is not None else (0, 0)
        first = -1 if self.reverse else 0
        xs = [x[first, ...] for x in self.xs] if self.length else [_zeros(x) for x in self.xs]
        carry = [self.weak.get(k, x) for k, x in enumerate(self.carry)]
        try:
            with grad_mode(False):
                result = without_objects(self.function(self._tree(carry), tree_unflatten(xs, self.xs_spec)))
            leaves, spec = tree_flatten(result[0])
        except Exception:  # the loop will raise it
            return
        finally:
            default_generator._set_state(state)
            if recorder is not None and len(recorder.guards) == guards:
                recorder.drop(calls)
        if spec == self.carry_spec:
            for k in self.weak:
                dtype = _dtype(leaves[k]) if hasattr(leaves[k], "dtype") else np.asarray(leaves[k]).dtype
                if np.can_cast(np.min_scalar_type(self.weak[k]), dtype, "same_kind"):
                    self.carry[k] = _as_dtype(self.carry[k], dtype)

    def _empty(self) -> tuple[Any, Any]:
        """Return the result of a loop without iterations. A call of the body with zeros gives the shapes and dtypes of ys."""
        x = [_zeros(leaf) for leaf in self.xs]
        with grad_mode(False):
            _, y = self.iteration(self._tree(self.carry), tree_unflatten(x, self.xs_spec))
        leaves, spec = tree_flatten(y)
        empty = [_in_form_of(np.zeros((0, *np.shape(leaf)), _dtype(self._leaf(leaf, "y"))), leaf) for leaf in leaves]
        return self._tree(self.carry), tree_unflatten(empty, spec)

    def _tree(self, leaves: Leaves) -> Any:
        return tree_unflatten(leaves, self.carry_spec)

    def _run_eagerly(self, carry: Leaves, xs: Leaves) -> tuple[Any, Any]:
        """Call the body for each iteration."""
        tree = self._tree([x.copy() if type(x) is ndarray else x for x in carry])
        ys: list[Leaves] = []
        spec: Any = None
        order = range(self.length - 1, -1, -1) if self.reverse else range(self.length)
        for i in order:
            tree, y = self.iteration(tree, tree_unflatten([x[i, ...] for x in xs], self.xs_spec))
            leaves, found = tree_flatten(y)
            if spec is not None and found != spec:
                raise TypeError(
                    f"{self.api}: y changes its structure between iterations, from {_text(spec)} to {_text(found)}"
                )
            spec = found
            ys.append(leaves)
        if self.reverse:
            ys.reverse()
        return tree, tree_unflatten([self._stacked(k, parts) for k, parts in enumerate(zip(*ys, strict=True))], spec)

    def _stacked(self, k: int, parts: tuple[TensorLike, ...]) -> AnyArray:
        """Stack one leaf of the ys of all iterations."""
        kinds = {(tuple(np.shape(x)), _dtype(x)) for x in parts if hasattr(x, "dtype")}
        if len(kinds) > 1:
            raise TypeError(
                f"{self.api}: y is not the same in all iterations: leaf {k} is {' and '.join(map(str, kinds))}"
            )
        return stack(list(parts)) if any([isinstance(x, Tensor) for x in parts]) else np.stack(parts)

    # -- tracing -----------------------------------------------------------------------------------------------------

    lean = False
    _error: Exception | None = None  # of the trace of the body

    def body(self) -> Body | None:
        """Return the traced body, or None if it cannot be traced."""
        outer = LOCAL.recorder
        if STACK.levels and (not isinstance(outer, Recorder) or STACK.levels[-1] is not outer.level):
            return None
        if outer is None and (is_thread_traced() or (ACTIVE_MODES and LOCAL.watch is not None)):
            return None
        carry, xs = [_array_of(x, outer) for x in self.carry], [_array_of(x, outer) for x in self.xs]
        if any([x is None for x in (*carry, *xs)]):
            return None
        first = -1 if self.reverse else 0
        begin = [(np.array(x, order="C"), isinstance(leaf, Tensor)) for x, leaf in zip(carry, self.carry, strict=True)]
        slices = [
            (np.require(x[first, ...], None, ["C", "A"]), isinstance(leaf, Tensor))
            for x, leaf in zip(xs, self.xs, strict=True)
        ]
        mapped = [_has_history(x) for x in self.xs]
        flows = any(mapped) or any(map(_has_history, self.carry))
        body = self._record(begin, slices, mapped, flows)
        if body is not None and body.differentiable and not flows:  # gradients flow to captured tensors
            body = self._record(begin, slices, mapped, True)
        return body

    def _record(self, carry: Leaves, xs: Leaves, mapped: list[bool], flows: bool) -> Body | None:
        live = [*[flows and x.dtype.kind in "fc" for x, _ in carry], *mapped]
        form = setting = None
        if LOCAL.recorder is None:
            leaves = [(x.shape, x.dtype, x.strides, is_tensor) for x, is_tensor in (*carry, *xs)]
            setting = self.spec, *leaves, *live, self.lean, self.api, LOCAL.mode, *np.geterr().values()
            form = form_of(self.function)
            cached = None if form is None else find_cached_body(form, setting)
            if cached is not None:
                return cached
        try:
            body, trace = record_body(self.iteration, carry, xs, live, self.spec, self.lean)
        except TraceRefused:
            raise
        except Exception as error:  # if it is the body's own error, the eager run raises it
            self._error = error
            return None
        if form is not None:
            cache_body(form, setting, body, trace)
        return body

    def _report_if_internal(self) -> None:
        """Warn once about an exception of the trace of the body that shows a defect of the compiler. The eager run has succeeded."""
        error, code = self._error, getattr(self.function, "__code__", None)
        if error is None or isinstance(error, Unrecordable) or not is_internal(error) or code in _REPORTED:
            return
        _REPORTED.add(code)
        errors.warn_compile_internal_error(f"the body of {self.api}", None, describe_error(error))

    def _run_recorded(self, body: Body) -> Leaves:
        """Run the loop as one operation, and return its results."""
        operands = [_tensor(x) for x in (*self.carry, *self.xs, *body.outside)]

        def run_eagerly(operands: list[Tensor]) -> Leaves:
            inputs = (*self.carry, *self.xs)
            leaves = [_in_form_of(t, like) for t, like in zip(operands, inputs, strict=False)]
            count = len(self.carry)
            return [_tensor(x) for x in tree_flatten(self._run_eagerly(leaves[:count], leaves[count:]))[0]]

        results = run_body(body, operands, self.length, self.reverse, run_eagerly)
        as_tensors = [isinstance(x, Tensor) for x in self.carry]
        as_tensors += [
            r.kind == "tensor" if r.var is not None else self.tensors for r in body.results[len(as_tensors) :]
        ]
        return [t if as_tensor else _plain(t) for t, as_tensor in zip(results, as_tensors, strict=True)]

    # -- while -------------------------------------------------------------------------------------------------------

    def run_while(self, condition: Callable[[Any], Any]) -> Any:
        """Run the body while the condition is true, and return the last value."""
        if self.weak:
            self._give_dtypes()
        value = self._tree([x.copy() if type(x) is ndarray else x for x in self.carry])
        linked: Leaves = []
        while True:
            batched, any_true = _condition_of(condition(value))
            if not any_true:
                break
            leaves = tree_flatten(self.iteration(value, None)[0])[0]
            if batched is not None:  # examples of vmap
                before = tree_flatten(value)[0]
                leaves = [_select(batched, new, old) for new, old in zip(leaves, before, strict=True)]
            linked = [x for x in leaves if _has_history(x)] or linked
            last, leaves = leaves, [_cut(x) for x in leaves]
            value = self._tree(leaves)
        if not linked:
            return value
        results = Irreversible.apply(len(last), *[_tensor(x) for x in (*last, *linked)])
        return self._tree([_in_form_of(t, x) for t, x in zip(results, last, strict=True)])


class Irreversible(Function):
    """The node of a ``while_loop``'s result, which raises in a backward pass."""

    @staticmethod
    def forward(ctx: Any, count: int, *values: Tensor) -> tuple[Tensor, ...]:
        ctx.count = count
        return tuple([x.clone() for x in values[:count]])

    @staticmethod
    def backward(ctx: object, *gs: Tensor) -> NoReturn:
        raise RuntimeError(
            "while_loop: a backward pass reaches its result, but its iterations are not saved, since their number is not known in "
            "advance. Use scan or fori_loop with a known number of iterations, Python's while, or forward mode (jvp, jacfwd)"
        )

    @staticmethod
    def jvp(ctx: Any, count: object, *tangents: object) -> tuple[object, ...]:
        return tuple(tangents[: ctx.count])


def _checkpointed(f: AnyFunction, loop: _Loop) -> tuple[Any, Any]:
    """Run segments of about √n iterations, each of which saves its first carry only. Then run the remaining iterations."""
    n, reverse = loop.length, loop.reverse
    inner = math.isqrt(n)
    outer = n // inner
    rest = n - inner * outer  # iterations after the last segment

    def part(x: Array, last: bool) -> Array:
        if reverse:
            return x[:rest] if last else x[rest:].reshape((outer, inner, *x.shape[1:]))
        return x[n - rest :] if last else x[: n - rest].reshape((outer, inner, *x.shape[1:]))

    def segment(carry: object, x: object) -> Any:
        return scan(f, carry, x, length=inner, reverse=reverse)

    if loop.weak:
        loop._give_dtypes()
    init = loop._tree(loop.carry)
    first = _Loop(segment, init, tree_unflatten([part(x, False) for x in loop.xs], loop.xs_spec), outer, reverse)
    first.lean = True
    carry, ys = first.run()
    leaves, spec = tree_flatten(ys)
    leaves = [y.reshape((n - rest, *y.shape[2:])) for y in leaves]
    if rest:
        xs = tree_unflatten([part(x, True) for x in loop.xs], loop.xs_spec)
        carry, others = scan(f, carry, xs, length=rest, reverse=reverse)
        more = tree_flatten(others)[0]
        pairs = zip(more, leaves, strict=True) if reverse else zip(leaves, more, strict=True)
        leaves = [np.concatenate(pair) for pair in pairs]
    return carry, tree_unflatten(leaves, spec)


# -- leaves ------------------------------------------------------------------------------------------------------------


def _tensor(x: AnyArray) -> Tensor:
    return x if isinstance(x, Tensor) else x._tensor if type(x) is Array else wrap(np.asarray(x))


def _has_history(x: AnyArray) -> bool:
    tensor = x._tensor if type(x) is Array else x
    return isinstance(tensor, Tensor) and tensor._edge is not None and records()


def _array_of(x: AnyArray, outer: Recorder | None) -> Any:
    """Return the array of a leaf, or None if it is a value of a surrounding transformation other than the trace."""
    raw = _tensor(x)._raw
    if type(raw) is Traced and outer is not None and raw.level is outer.level:
        return raw.var.array
    return raw if type(raw) is ndarray else None


def _plain(t: Tensor) -> AnyArray:
    """Return a tensor as a plain array if it has no history and is not traced, else as an Array."""
    if type(t._raw) is Traced:
        t._raw.recorder.keep_array(t._raw)  # a 0-d array, not a scalar
    return t._raw if t._edge is None and type(t._raw) is ndarray else array_of(t)


def _in_form_of(x: TensorLike, like: AnyArray) -> Any:
    """Return an array or tensor as a tensor if another one is, else as an array."""
    if isinstance(like, Tensor):
        return x if isinstance(x, Tensor) else wrap(x)
    return _plain(x) if isinstance(x, Tensor) else x


def _cut(x: AnyArray) -> AnyArray:
    """Return a leaf without its edge on the tape, but with its tangent."""
    if not _has_history(x):
        return x
    return _in_form_of(wrap(_tensor(x)._raw), x)


def _zeros(x: AnyArray) -> AnyArray:
    return _in_form_of(np.zeros(tuple(x.shape)[1:], _dtype(x)), x)


def _dtype(x: object) -> NumpyDType:
    return (
        x._raw.dtype if isinstance(x, Tensor) else np.asarray(x).dtype if not hasattr(x, "dtype") else np.dtype(x.dtype)
    )


def _as_dtype(x: AnyArray, dtype: NumpyDType) -> AnyArray:
    return wrap(x._raw.astype(dtype)) if isinstance(x, Tensor) else x.astype(dtype)


def _kind(x: AnyArray) -> str:
    return f"{_dtype(x)}{list(x.shape)}"


def _advice(old: AnyArray, new: AnyArray) -> str:
    if tuple(old.shape) == tuple(new.shape):
        return f". Begin with one of {_dtype(new)}, or convert what the body returns to {_dtype(old)}"
    return ""


def _text(spec: TreeSpec) -> str:
    return repr(spec).removeprefix("TreeSpec(")[:-1]


def _condition_of(answer: AnyArray | bool) -> tuple[Any, bool]:
    """Return a condition as (the batched condition under ``vmap``, else None; whether it is true for any example)."""
    if np.shape(answer) != ():
        raise TypeError(
            f"while_loop: the condition must give one boolean, not an array of shape {tuple(np.shape(answer))}: use np.any or np.all"
        )
    raw = getattr(getattr(answer, "_tensor", answer), "_raw", None)
    if type(raw) is not Batched:
        return None, bool(answer)
    inside: Any = raw
    while not isinstance(inside, ndarray):
        inside = inside._raw if isinstance(inside, Tensor) else inside.inside
    return answer, bool(inside.any())


def _select(condition: Array, new: Array, old: AnyArray) -> AnyArray:
    """Return the new values where the condition is true, and the old ones elsewhere."""
    return np.where(condition, new, old)
