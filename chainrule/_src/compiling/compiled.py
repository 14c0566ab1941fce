"""``chainrule.compile``: what users call, and which recording a call runs."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, array_of
from chainrule._src.arrays.memory import collector_at_rest
from chainrule._src.arrays.tree import tree_flatten, tree_unflatten
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray, TensorLike
from chainrule._src.compiling.branched import Branched, branched_of
from chainrule._src.compiling.differentiable import CompiledFunction, Replay
from chainrule._src.compiling.direct import Direct, direct_of
from chainrule._src.compiling.floating_point import Handled, reporter
from chainrule._src.compiling.footprint import footprint
from chainrule._src.compiling.inspection import EXECUTOR, PlanOfCall, account, python_steps
from chainrule._src.compiling.keys import key_of, keys_within
from chainrule._src.compiling.low_level import arguments_of, low_level_callable
from chainrule._src.compiling.recording import LOCK, BadResult, Recording, record, rewind
from chainrule._src.compiling.state.frames import occupied
from chainrule._src.compiling.tree import Missing, TooMany, Tree
from chainrule._src.interpreters.recorded import ByValue, Unrecordable
from chainrule._src.messages import errors
from chainrule._src.native import AVAILABLE
from chainrule._src.tape.levels import STACK
from chainrule._src.tape.modes import LOCAL, SPECIAL
from chainrule._src.tape.tensor import Tensor, wrap
from chainrule._src.tape.versions import BEFORE_WRITE, about_to_write, wrote

ndarray = np.ndarray
SIGNATURES = 512  # beyond which a function is called with other arguments every time
TRIES = 3  # calls after which what a function changes for Python alone is taken for what it always does
VALUES = 16  # of a float that is no array, beyond which it is another one every time
PATIENCE = 5.0  # seconds that a call waits for a recording in another thread
TREES = 64  # for one signature: states of .grad and requires_grad, and functions that are not the same twice
REPEATED = 64  # times that a line has a step in one call, from which it is one in a loop


class Compiled:
    """A function that is recorded when it is first called, and replayed as a plan afterwards. ``chainrule.compile`` makes it.

    Attributes:
        function: what was compiled; calling it is what eager computes.
        recordings: every run that was recorded.
        pure: whether the caller has promised that it reads and changes no state of Python's.
    """

    __module__ = "chainrule.compiler"

    def __init__(self, function: AnyFunction, name: str, pure: bool = False) -> None:
        self.function = function
        self.name = name
        self.pure = pure
        code = getattr(inspect.unwrap(function), "__code__", None)
        self.where = errors.Where(code, 0) if code is not None else None
        self._trees: dict[object, list[Tree]] = {}
        self._eager: dict[object, str] = {}  # signatures that are not recorded, and why
        self._by_value: set[object] = set()  # signatures with numbers that cannot be arrays
        self._tried: dict[object, int] = {}  # how often one was not recorded that may be later
        self._values: dict[object, int] = {}  # how many recordings differ in the value of a float alone
        self._direct: Direct | Branched | None = None  # of the recording that served last
        self._warned = False  # of a step in a loop that is not native
        functools.update_wrapper(self, function, updated=())

    def __repr__(self) -> str:
        return f"<compiled {self.name}, {len(self.recordings)} recordings>"

    def _repr_html_(self) -> str:
        return importlib.import_module("chainrule._src.explaining.notebooks").compiled_html(self)

    def __reduce__(self) -> str | tuple[object, ...]:
        name = getattr(self.function, "__qualname__", "")
        found = _by_name(self.function)
        if found is self:
            return name  # a decorated function is found by its name
        if isinstance(self.function, FunctionType) and found is not self.function:
            raise errors.compile_not_pickled(self.name)
        return Compiled, (self.function, self.name, self.pure)

    def __copy__(self) -> Compiled:
        return Compiled(self.function, self.name, self.pure)

    def __deepcopy__(self, memo: dict[int, object]) -> Compiled:
        return Compiled(copy.deepcopy(self.function, memo), self.name, self.pure)

    def __get__(self, instance: object, owner: object = None) -> AnyFunction | Compiled:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        direct = self._direct
        if direct is not None and not kwargs and not SPECIAL and not STACK.levels:
            try:
                result = direct.call(args)
            except Exception:  # a floating-point exception that is more than a warning
                return self.function(*args)
            if result is not None:
                return result
        if STACK.levels or (SPECIAL and (LOCAL.watch is not None or LOCAL.recorder is not None)):
            return self.function(*args, **kwargs)  # part of another transformation, which sees the operations
        leaves, spec = tree_flatten((args, kwargs))
        signature, arrays = self._signature(leaves, spec)
        if (
            signature is None
            or signature in self._eager
            or (self._values and _without_values(signature) in self._eager)
        ):
            return self.function(*args, **kwargs)
        again = functools.partial(self.function, *args, **kwargs)
        tree, values = self._find(signature, leaves, arrays)
        if tree is None:
            if occupied() and not self.pure:
                return again()
            if not LOCK.acquire(
                timeout=PATIENCE
            ):  # a function that is being recorded waits for this call, in all likelihood
                return again()
            try:
                tree, values = self._find(signature, leaves, arrays)  # another thread may have recorded it
                if tree is None:
                    return self._record(None, signature, leaves, spec, arrays, again)
            finally:
                LOCK.release()
        if not kwargs and not SPECIAL:
            short = direct_of if tree.root.guard is None else branched_of
            self._direct = short(tree, args, reporter(self.name, tree.ignored, tree.handled))
        return self._replay(tree, values, signature, leaves, spec, arrays, again)

    def _find(
        self, signature: object, leaves: list[object], arrays: list[NumpyArray | None]
    ) -> tuple[Tree | None, dict[int, NumpyArray]]:
        """The tree whose recordings hold for a call, and the arrays that it starts from."""
        for tree in self._trees.get(signature, ()):
            values = tree.start(leaves, arrays)
            if values is not None:
                return tree, values
        return None, {}

    # -- what a call is like -----------------------------------------------------------------------------------------

    def _signature(self, leaves: list[Any], spec: object) -> tuple[Any, list[Any]]:
        """What has to be the same for a recording to serve again, and the arrays among the leaves.

        The signature is None for calls that are not to be recorded.
        """
        signature, arrays = self._described(leaves, spec, any(isinstance(x, Tensor) for x in leaves))
        if signature in self._by_value:
            return self._described(leaves, spec, True)
        return signature, arrays

    def _described(self, leaves: list[Any], spec: Any, by_value: bool) -> tuple[Any, list[Any]]:
        """``_signature``, where numbers (but integers of Python's) are arrays, or by value."""
        key: list[object] = [spec, LOCAL.mode]
        arrays: list[Any] = []
        for x in leaves:
            kind = type(x)
            if kind is ndarray:
                array = x if x.dtype.kind in "fciub" else None
                if not (x.dtype.isnative and x.flags.aligned):
                    return None, []
            elif kind is Tensor or kind is Array:
                array = x._raw if kind is Tensor else x._tensor._raw
                if type(array) is not ndarray:
                    return None, []
            elif isinstance(x, (Tensor, ndarray)):
                array = np.asarray(x) if isinstance(x, np.memmap) else getattr(x, "_raw", None)
                if type(array) is not ndarray:  # of another library's class, which computes as it likes
                    return None, []
            elif not by_value and (kind is float or (isinstance(x, np.generic) and x.dtype.kind in "fciub")):
                array = np.asarray(x)
            else:
                array = None
            arrays.append(array)
            if array is not None:
                layout = None if array.flags.c_contiguous else array.strides
                history = x.requires_grad if kind is Tensor or kind is Array else False
                key.append((kind, array.dtype, array.shape, layout, history))
            else:
                try:
                    key.append((kind, key_of(x), None))
                except TypeError:  # it may be another one without anybody noticing
                    return None, []
        key.append(keys_within(spec))
        return tuple(key), arrays

    # -- recording ---------------------------------------------------------------------------------------------------

    def _record(
        self, tree: Tree | None, signature: Any, leaves: Any, spec: object, arrays: object, again: Callable[[], Any]
    ) -> Any:
        """Run the function once on values that are recorded: for a new tree, or as a branch of one."""
        try:
            recording, new, made = self._recorded(tree, signature, leaves, spec, arrays)
        except BadResult:
            raise
        except TooMany as many:
            return self._as_it_is(signature, str(many), again, many.where)
        except Unrecordable as reason:
            if isinstance(reason, ByValue) and signature not in self._by_value:
                return self._record_by_value(signature, leaves, spec, again)
            if reason.perhaps_later and self._tried.setdefault(signature, 0) < TRIES:
                self._tried[signature] += 1
                return again()
            return self._as_it_is(signature, str(reason), again)
        except Exception as error:
            if signature not in self._by_value and any(isinstance(x, (float, np.generic)) for x in leaves):
                return self._record_by_value(signature, leaves, spec, again)
            result = again()  # which says what is wrong, if it is the function's
            self._as_it_is(signature, f"{type(error).__name__}: {error}", lambda: None)
            return result
        _about_to_write([memory for memory, _ in new])
        for memory, values in new:
            memory[...] = values
        self._warn_of_python(signature, recording)
        return _finish(recording, made, leaves, again)

    def _warn_of_python(self, signature: object, recording: Recording) -> None:
        """Say once that a line in a loop has a step that is not native."""
        if self._warned or not AVAILABLE:
            return
        paths = [path for tree in self._trees.get(signature, ()) for path in tree.paths()]
        steps = [step for path in paths if path[-1].recording is recording for step in PlanOfCall(path).steps]
        for (name, code, lasti), count in python_steps(steps).most_common(1):
            if count >= REPEATED:
                self._warned = True
                errors.warn_compile_by_python(self.name, errors.Where(code, lasti), name, count)

    def _record_by_value(self, signature: Any, leaves: list[Any], spec: object, again: Callable[[], Any]) -> Any:
        """Record a function whose numbers cannot be arrays, with what they are."""
        self._by_value.add(signature)
        signature, arrays = self._signature(leaves, spec)
        if signature is None or signature in self._eager or _without_values(signature) in self._eager:
            return again()
        tree, values = self._find(signature, leaves, arrays)
        if tree is not None:
            return self._replay(tree, values, signature, leaves, spec, arrays, again)
        return self._record(None, signature, leaves, spec, arrays, again)

    def _recorded(
        self, tree: Tree | None, signature: object, leaves: object, spec: object, arrays: object
    ) -> tuple[Recording, list[tuple[Any, Any]], list[Any]]:
        """A new recording, in its tree; memory that it writes, with the values; the arrays that it made. Its calls are gone."""
        with LOCK, collector_at_rest():  # looking through what a recording makes, again and again, is half of its time
            recording = self._added(tree, signature, leaves, spec, arrays)
            new = [(memory.array, value.array.copy("K")) for memory, value in recording.writes]
            made = [var.array.copy("K") for var in recording.outputs()]
            recording.forget()
            return recording, new, made

    def _added(self, tree: Tree | None, signature: object, leaves: Any, spec: Any, arrays: Any) -> Recording:
        """A new recording, in its tree."""
        recording = record(self.function, leaves, spec, arrays, self.name, self.pure)
        trees = self._trees.setdefault(signature, [])
        try:
            self._count_values(signature)
            at = [k for k, other in enumerate(trees) if tree is not None and other.references is tree.references]
            grown = trees[at[0]].grown(recording) if at else None
            if grown is not None:
                self._trees[signature] = [*trees[: at[0]], grown, *trees[at[0] + 1 :]]
            else:
                if len(trees) >= TREES or len(self._trees) > SIGNATURES:
                    raise Unrecordable(
                        "it is called in too many ways: with other shapes, values or functions every time"
                    )
                if not any([other.learns_from(recording) for other in trees]):
                    self._trees[signature] = [*trees, Tree(recording)]
        except Exception:
            rewind(recording.drawn)
            raise
        return recording

    def _count_values(self, signature: object) -> None:
        """Raise if a float that is taken by its value is another one in nearly every call."""
        general = _without_values(signature)
        if general == signature or len(self._trees[signature]):
            return
        self._values[general] = count = self._values.get(general, 0) + 1
        if count > VALUES:
            self._eager[general] = "a number among its arguments is another one in nearly every call"
            raise Unrecordable(f"{self._eager[general]}: pass it as a tensor or an array")

    def _as_it_is(self, signature: object, reason: str, again: Callable[[], object], where: object = None) -> Any:
        """Run what cannot be recorded, and do so from now on."""
        if not self._eager or len(self._trees) <= SIGNATURES:
            if where is None:
                errors.warn_compile_failed(self.name, self.where, reason)
            else:
                errors.warn_compile_changing(self.name, self.where, where)
        self._eager[signature] = reason
        self._trees.pop(signature, None)
        self._direct = None
        return again()

    # -- replaying ---------------------------------------------------------------------------------------------------

    def _replay(
        self,
        tree: Tree,
        values: dict[int, NumpyArray],
        signature: object,
        leaves: Any,
        spec: object,
        arrays: object,
        again: Callable[[], Any],
    ) -> Any:
        before = tree.generator_states()
        if tree.writes:
            read_only = not all([values[number].flags.writeable for number in tree.writes])
            if read_only or _overlap(tree.writes, values, tree.references.arrays):
                return again()
            _about_to_write([values[number] for number in tree.writes])
        try:
            recording, made = tree.run(values, reporter(self.name, tree.ignored, tree.handled))
        except Missing:
            rewind(before)
            return self._record_branch(tree, signature, leaves, spec, arrays, again)
        except Exception:  # of a step in Python, or a floating-point exception: eager says what and where
            rewind(before)
            return again()
        return _finish(recording, made, leaves, again)

    def _record_branch(
        self, tree: Tree, signature: Any, leaves: Any, spec: object, arrays: Any, again: Callable[[], Any]
    ) -> Any:
        """Record what a tree has not, unless another thread has done so meanwhile."""
        if not LOCK.acquire(timeout=PATIENCE):
            return again()
        try:
            grown, values = self._find(signature, leaves, arrays)
            if grown is None or grown is tree:
                return self._record(grown, signature, leaves, spec, arrays, again)
        finally:
            LOCK.release()
        return self._replay(grown, values, signature, leaves, spec, arrays, again)

    def into(self, out: object, *args: AnyArray, **kwargs: object) -> Any:
        """Call it, and have the results written into arrays of the caller's.

        Args:
            out: arrays (or tensors) of the results' shapes and dtypes, in their structure.
            args, kwargs: the function's.

        Returns:
            ``out``.

        Raises:
            ValueError: ``out`` has another structure, or an array in it another shape or dtype; nothing is written then.

        >>> import numpy as np
        >>> import chainrule as cr
        >>> g = cr.compile(cr.grad(lambda x: np.sum(x ** 2)))
        >>> memory = np.empty(2)
        >>> g.into(memory, np.array([1., 2.])) is memory, memory
        (True, array([2., 4.]))
        """
        targets, spec = tree_flatten(out)
        memories = [x._raw if isinstance(x, Tensor) else x for x in targets]
        direct = self._direct
        ordinary = not kwargs and not SPECIAL and not STACK.levels and all([type(x) is ndarray for x in targets])
        if ordinary and direct is not None and direct.spec == spec:
            with contextlib.suppress(Handled):  # eager says what it is
                if direct.into(args, memories):
                    return out
        results, found = tree_flatten(self(*args, **kwargs))
        values = [np.asarray(x._raw if isinstance(x, Tensor) else x) for x in results]
        if found != spec or any(
            (a.shape, a.dtype) != (b.shape, b.dtype) for a, b in zip(values, memories, strict=True)
        ):
            raise errors.compile_into(self.name, found, values)
        for memory, value in zip(memories, values, strict=True):
            _about_to_write([memory])
            memory[...] = value
        return out

    # -- other callers -----------------------------------------------------------------------------------------------

    def as_low_level_callable(self, *examples: object) -> Any:
        """The function as a ``scipy.LowLevelCallable``, which SciPy calls without Python in between.

        Arrays that the function captures are read where they are now, also when they are changed in place later.
        Floating-point exceptions are not reported.

        Args:
            examples: arguments of the shapes that it will have. Numbers, one for each argument, are for
                ``scipy.integrate.quad`` and its like, which pass float64; an array of one dimension is for
                ``scipy.ndimage.generic_filter`` (with a number as the result) and ``generic_filter1d`` (with an array). The
                function is called with them once.

        Raises:
            TypeError: there are no such functions of these arguments.
            RuntimeError: it takes Python to call it: Python reads a value, a step of the plan is Python's, the result is not
                one float64 array, the extension is not there.
            ImportError: SciPy is not installed.

        >>> import numpy as np
        >>> import chainrule as cr
        >>> from scipy.integrate import quad  # doctest: +SKIP
        >>> f = cr.compile(lambda x, a: np.exp(-a * x * x))
        >>> round(quad(f.as_low_level_callable(0.0, 1.0), -np.inf, np.inf, args=(1.0,))[0] ** 2, 10)  # doctest: +SKIP
        3.1415926536
        """
        arrays = arguments_of(self.name, examples)
        self(*arrays)
        leaves, spec = tree_flatten((arrays, {}))
        signature, _ = self._signature(leaves, spec)
        for tree in self._trees.get(signature, ()):
            if tree.start(leaves, list(arrays)) is not None:
                return low_level_callable(self.name, tree, arrays)
        raise errors.compile_not_low_level(self.name, self._eager.get(signature, "it was not recorded"))

    # -- looking at it -----------------------------------------------------------------------------------------------

    def plan(self, *args: AnyArray, **kwargs: object) -> PlanOfCall:
        """What is computed for such arguments, to print: one line a step, with where its result lies and your line.

        The function is recorded for them if it was not, which changes nothing outside of it.

        Raises:
            RuntimeError: calls with such arguments are not recorded; the message says why.

        >>> import numpy as np
        >>> import chainrule as cr
        >>> print(cr.compile(np.tanh).plan(np.ones(3)).executor in ("native", "python"))
        True
        """
        leaves, spec = tree_flatten((args, kwargs))
        signature, arrays = self._signature(leaves, spec)
        if signature is None or signature in self._eager:
            raise errors.compile_no_plan(self.name, self._eager.get(signature, "it is part of another transformation"))
        tree, values = self._find(signature, leaves, arrays)
        if tree is not None:
            before = tree.generator_states()
            try:
                return PlanOfCall(tree.path_to(tree.reach(values)))
            except Missing:
                pass
            finally:
                rewind(before)
        try:
            recording, _, _ = self._recorded(tree, signature, leaves, spec, arrays)
        except (Unrecordable, TooMany) as reason:
            raise errors.compile_no_plan(self.name, str(reason)) from None
        rewind(recording.drawn)
        (path,) = [path for tree in self._trees[signature] for path in tree.paths() if path[-1].recording is recording]
        return PlanOfCall(path)

    def explain(self) -> str:
        """An account of all recordings: what each holds for and reads, how it runs, and what is not recorded, and why."""
        trees = [tree for trees in self._trees.values() for tree in trees]
        return account(self.name, trees, self._eager.values())

    @property
    def recordings(self) -> list[Recording]:
        """Every run that was recorded."""
        return [recording for trees in self._trees.values() for tree in trees for recording in tree.recordings]

    @property
    def memory(self) -> int:
        """Bytes that it keeps alive: plans with their buffers, constants and code, and what is left of recordings."""
        return footprint(self._trees, self._direct)


def _by_name(function: object) -> Any:
    """What pickle finds under a function's name; None if it finds nothing."""
    found: Any = sys.modules.get(getattr(function, "__module__", ""))
    for part in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found


def _without_values(signature: Any) -> tuple[object, ...]:
    """A signature in which floats may have any value."""
    return tuple(
        [
            float if type(part) is tuple and len(part) == 3 and part[0] in (float, np.float64) else part
            for part in signature
        ]
    )


def _about_to_write(memories: list[NumpyArray]) -> None:
    """Have the tape know that these arrays are written."""
    for memory in memories:
        if BEFORE_WRITE:
            about_to_write(memory)
        wrote(memory, "compile", errors.user_line())


def _overlap(written: set[int], values: dict[int, NumpyArray], outside: list[ndarray]) -> bool:
    """Whether what is written is memory of another array, too: the recording was made where that was not so."""
    return any(
        any([k != n and np.may_share_memory(values[n], other) for k, other in values.items()])
        or any([np.may_share_memory(values[n], other) for other in outside])
        for n in written
    )


def _finish(recording: Recording, made: list[NumpyArray], leaves: list[Any], again: Callable[[], Any]) -> Any:
    """Put what a call computed in its places, and return what the function returns.

    Args:
        made: the arrays of ``recording.outputs()``, which nobody else has.
        leaves: those of the arguments.
    """
    rest = iter(made)
    results = [
        result.content if result.var is None else _faced(next(rest), result.face) for result in recording.results
    ]
    for effect in recording.effects:
        effect.apply(None if effect.var is None else next(rest), leaves)
    if recording.backward is not None:
        _record_call(recording, results, list(rest), leaves, again)
    return tree_unflatten(results, recording.spec)


def _faced(array: NumpyArray, face: str) -> TensorLike:
    """An array as the function returned it: a tensor, an array, a scalar of NumPy's, or a float."""
    if face == "tensor":
        return wrap(array)
    return array.item() if face == "float" else array[()] if face == "scalar" else array


def _record_call(
    recording: Recording, results: list[Any], residuals: list[NumpyArray], leaves: list[Any], again: Callable[[], Any]
) -> None:
    """Put a call on the tape, whose results gradients flow through."""
    backward = recording.backward
    assert backward is not None
    arrays = [results[i]._raw if isinstance(results[i], Tensor) else results[i] for i in backward.results]
    replay = Replay(recording, arrays, residuals, again)
    outputs = CompiledFunction.apply(replay, *replay.tensors(leaves))
    for i, tensor in zip(backward.results, outputs, strict=True):
        results[i] = tensor if isinstance(results[i], Tensor) else array_of(tensor)


#: what ``torch.compile`` takes, and what would change how it computes there
_OF_TORCH = ("mode", "fullgraph", "dynamic", "backend", "options")


def compile(function: Any = None, *, pure: bool = False, **options: object) -> Any:
    """A function that computes what ``function`` does, faster: recorded when first called, then replayed.

    Everything that it reads of Python's state while it is recorded is looked at again in each call: names, attributes, elements,
    contents of arrays; if something is another one, it is recorded again. What cannot be looked at again (files, clocks, other
    generators of random numbers, ``print``) or is changed (a list that grows, a counter) makes it run as it is, with a warning that
    names the line.

    Args:
        function: of arrays, tensors, numbers and containers of them; it may contain, or be, any transformation,
            ``backward()``, and control flow on values. Without it, a decorator. A module gives a module that has its parameters
            and all else.
        pure: your word that it depends on its arguments and on arrays and tensors of the surrounding program alone, and changes
            nothing else, as ``jax.jit`` takes it for granted: nothing but these is looked at, and calls cost nothing for it.
        mode, fullgraph, dynamic, backend, options: accepted, as of ``torch.compile``, and a warning says that they change
            nothing: there is one way to compute, whose bits are those of the function itself.
        disable: True gives back the function as it is.

    Returns:
        A function of the same arguments, with results of the same bits. A recording holds for one combination of shapes,
        dtypes and values of arguments that are no arrays; others are recorded when they come.

    Raises:
        TypeError: it is not callable, or there are other options: it needs none of JAX's.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> g = cr.compile(cr.grad(lambda x: np.sum(np.tanh(x) ** 2)))
    >>> x = np.linspace(0., 1., 3)
    >>> np.array_equal(g(x), cr.grad(lambda x: np.sum(np.tanh(x) ** 2))(x))
    True
    >>> scale = {"by": 2.0}
    >>> scaled = cr.compile(lambda x: x * scale["by"])
    >>> scaled(x).sum(), scale.update(by=3.0), scaled(x).sum()
    (np.float64(3.0), None, np.float64(4.5))
    """
    if function is None:
        return functools.partial(compile, pure=pure, **options)  # of a decorator with options
    if options.pop("disable", False):
        return function
    told = [f"{name}={options.pop(name)!r}" for name in _OF_TORCH if name in options]
    if options:
        raise errors.compile_options(next(iter(options)))
    if told:
        errors.warn(
            f"compile: {', '.join(told)} changes nothing: there is one way to compute, with the function's own bits"
        )
    errors.check_function("compile", function)
    compiled = Compiled(function, getattr(function, "__name__", type(function).__name__), pure)
    finish = getattr(type(function), "_of_compiled", None)  # of modules, which are above
    return compiled if finish is None else finish(compiled)


#: how plans run: "native", or "python" and why
compile.executor = EXECUTOR  # type: ignore[attr-defined]
