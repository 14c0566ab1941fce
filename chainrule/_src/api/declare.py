"""Where users find an operation. ``op`` says it once, beside the definition; everything else reads it here.

Derived from a declaration: the public namespaces, the methods of Tensor, their in-place forms, ``out=``, NumPy's names
of arguments, the stubs that editors read, ``chainrule ops``, the table of operations in the documentation, and the
calls that tests make.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from chainrule._src.api.array import takes_arrays
from chainrule._src.api.functions import public_function
from chainrule._src.api.in_place import DIRECT, becomes_view, store_out
from chainrule._src.api.in_place import in_place as write_in_place
from chainrule._src.api.operations import instead, remembering, written
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.rules.primitive import Primitive
from chainrule._src.tape.overriding import overridable
from chainrule._src.tape.tensor import Tensor, attach

F = TypeVar("F", bound=AnyFunction)


class Operation:
    """A public operation.

    Attributes:
        names: what it is called, with the namespace: ``exp``, ``linalg.inv``, ``nn.functional.relu``.
        function: on tensors, as the package itself calls it.
        public: as users call it: on Arrays, too, with ``out=`` and NumPy's names of arguments.
        methods: its names as a method of Tensor.
        in_place: the names of the methods that write the result into the tensor.
        sample: arguments to call it with, as they are written after ``from chainrule import *``.
        row: the row of the table that it is; None for a composite.
    """

    __slots__ = ("function", "in_place", "methods", "names", "public", "row", "sample")

    def __init__(self, names: list[str], function: AnyFunction, sample: str, row: Primitive | None) -> None:
        self.names, self.function, self.public, self.sample, self.row = names, function, function, sample, row
        self.methods: list[str] = []
        self.in_place: list[str] = []

    def __repr__(self) -> str:
        return f"<operation {self.names[0]}>"


#: Public name -> operation.
OPERATIONS: dict[str, Operation] = {}

#: Where the operations of a module are found, if they don't say.
_NAMESPACES = {
    "chainrule.nn": "nn.functional.",
    "chainrule._src.ops.linalg": "linalg.",
    "chainrule._src.ops.fft": "fft.",
}


def op(
    names: str = "",
    *,
    method: bool = False,
    in_place: bool | Literal["view"] = False,
    out: bool = False,
    arrays: bool = True,
    also: dict[str, str] | None = None,
    remembered: bool = False,
    ordinary: object = None,
    factor: object = None,
    sample: str = "",
) -> Callable[[F], F]:
    """Declare a public operation: the decorator of a function on tensors, or of an elementwise row.

    Args:
        names: its public names, separated by spaces; by default the function's own, in its module's namespace.
            ``Tensor.view`` is a method only.
        method: whether its names without a namespace are methods of Tensor, too.
        in_place: whether each method has a form with ``_`` that writes into the tensor; "view": a form that makes it the
            view that the function returns.
        out: whether to give it an argument ``out=``, for functions that have none of their own.
        arrays: whether it takes Arrays. (What makes tensors from anything, and what asks about them, does not.)
        also: other names of its arguments. NumPy's names for ``dim`` and its companions need not be said.
        remembered: whether the way from a tensor's shape and the other arguments to a row is the same every time.
        ordinary: the operation that it is where it is called with tensors and numbers alone (see ``api.operations.operation``).
        factor: the keyword of a number by which its last operand is multiplied first, and the operation that does it.
        sample: arguments to call it with.
    """

    def declare(declared: F) -> F:
        row = declared if isinstance(declared, Primitive) else None
        function: Any = declared if row is None else public_function(row)
        if row is not None and names:
            function.__name__ = function.__qualname__ = names.split()[0].rpartition(".")[2]
        home = next((space for module, space in _NAMESPACES.items() if function.__module__.startswith(module)), "")
        operation = Operation(names.split() or [home + function.__name__], function, sample, row)
        for name in operation.names:
            OPERATIONS[name] = operation
        others = _other_names(function, also or {})
        more = {} if factor is None else {"factor": factor}
        if not hasattr(function, "takes_arrays"):  # the functions of elementwise rows do
            full = _with_keywords(function, others, out)
            operation.public = (
                takes_arrays(function, full, lambda: operation.public)
                if arrays
                else _asking(full, lambda: operation.public)
            )
            if remembered:
                operation.public = remembering(operation.public)
            if ordinary is not None:
                operation.public = instead(ordinary, operation.public, **more)
        operation.methods = [name.removeprefix("Tensor.") for name in operation.names if name.startswith("Tensor.")]
        if method:
            operation.methods += [name for name in operation.names if "." not in name]
        if operation.methods:
            on_tensors = _with_keywords(function, others, False)
            if row is None:
                on_tensors = overridable(on_tensors, functools.partial(getattr, Tensor, operation.methods[0]))
            if remembered:
                on_tensors = remembering(on_tensors)
            if ordinary is not None:
                on_tensors = instead(ordinary, on_tensors, **more)
            operation.in_place = [name + "_" for name in operation.methods] if in_place else []
            form = becomes_view if in_place == "view" else _writing
            attach(**dict.fromkeys(operation.methods, on_tensors))
            attach(**{name: form(name, on_tensors) for name in operation.in_place})
        return declared

    return declare


def _writing(name: str, function: AnyFunction) -> AnyFunction:
    """Return the in-place form of a function."""
    call = overridable(write_in_place(name, function), functools.partial(getattr, Tensor, name))
    return written(name, function, call, name in DIRECT)


def _asking(function: AnyFunction, public: Callable[[], Any]) -> AnyFunction:
    """Return the function, which asks its operands first if it is one of a tensor."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    about = code is not None and code.co_varnames[:1] == ("input",)
    return overridable(function, public) if about else function


def namespace(prefix: str, home: str) -> dict[str, AnyFunction]:
    """Return the public functions of a namespace (``""``, ``"linalg."``) that are declared so far.

    ``home`` is the module that shows them: a function's home is the first, as pickles need it.
    """
    found = {}
    for name, operation in list(OPERATIONS.items()):  # other threads may be declaring
        head, _, last = name.rpartition(".")
        if head + "." * bool(head) == prefix:
            found[last] = function = operation.public
            own = operation.row is None and function is operation.function
            if not own and name == operation.names[0]:  # as it is pickled
                function.__module__, function.__qualname__ = home, last
    return found


# -- arguments -------------------------------------------------------------------------------------------------------


#: NumPy's names for arguments, which PyTorch takes, too
_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


def _other_names(function: AnyFunction, also: dict[str, str]) -> dict[str, str]:
    """Return the other names of a function's arguments: those that are said, and NumPy's beside ``dim``."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
    if own[:1] == ("A",):  # of linear algebra; PyTorch's documents say A, and its functions take input
        also = {"input": "A"} | also
    if "dim" not in own or "axis" in own:
        return also
    return also | {theirs: ours for theirs, ours in _NUMPY_NAMES.items() if ours in own and theirs not in own}


def _with_keywords(function: AnyFunction, also: dict[str, str], out: bool) -> AnyFunction:
    """Return the function with other names for its arguments, and with ``out=``; itself where there is neither."""
    if not also and not out:
        return function

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if not kwargs:
            return function(*args)
        for name in also.keys() & kwargs.keys():
            if also[name] in kwargs:
                raise TypeError(f"{function.__name__}() got {also[name]!r} twice: {name!r} is another name for it")
            kwargs[also[name]] = kwargs.pop(name)
        target = kwargs.pop("out", None) if out else None
        result = function(*args, **kwargs)
        return result if target is None else store_results(function.__name__, result, target)

    if out:
        call.__dict__["__signature__"] = _WithOut(function)
    return call


class _WithOut(inspect.Signature):
    """A function's signature, and ``out=``. It is read when somebody asks: that takes long, and there are hundreds."""

    __slots__ = ("_of",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._of = function

    @property
    def whole(self) -> inspect.Signature:
        """The same as an ordinary signature."""
        signature = inspect.signature(self._of)
        parameter = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Tensor | None")
        rest = list(signature.parameters.values())
        at = len(rest) - (bool(rest) and rest[-1].kind is inspect.Parameter.VAR_KEYWORD)
        return signature.replace(parameters=[*rest[:at], parameter, *rest[at:]])

    @property
    def parameters(self) -> Any:
        return self.whole.parameters

    @property
    def return_annotation(self) -> Any:
        return self.whole.return_annotation

    def replace(self, **changes: Any) -> Any:
        return self.whole.replace(**changes)

    __replace__ = replace

    def __reduce__(self) -> Any:
        return self.whole.__reduce__()


def store_results(name: str, result: Tensor, out: Any) -> Any:
    """Write one result, or several, into the tensors that the caller gave."""
    if not isinstance(result, tuple):
        return store_out(out, result)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(result)} Tensors, not {type(out).__name__}")
    written = [store_out(o, r) for o, r in zip(out, result, strict=True)]
    return type(result)(*written) if hasattr(result, "_fields") else tuple(written)


_AXES = {1: "the last axis", 2: "the last two axes", 3: "the last three axes"}


def op_each_axes(names: str, samples: tuple[str, str, str]) -> Callable[[AnyFunction], AnyFunction]:
    """Declare the three functions of a family: over the last axis, the last two and the last three.

    Args:
        names: the public names, with ``{}`` for the number of axes.
        samples: arguments to call each with.

    The function's first argument is the number of axes; its documentation is that of the first of the family.
    """

    def declare(function: AnyFunction) -> AnyFunction:
        signature = inspect.signature(function)
        own = signature.replace(parameters=list(signature.parameters.values())[1:])
        name_of = names.split()[0].rpartition(".")[2].format
        for axes, sample in zip(_AXES, samples, strict=True):
            member: Any = _with_axes(function, axes)
            member.__name__ = member.__qualname__ = name_of(axes)
            member.__code__ = member.__code__.replace(co_name=name_of(axes))  # by which explanations name the call
            member.__module__, member.__signature__ = function.__module__, own
            member.__doc__ = function.__doc__ if axes == 1 else f"As :func:`{name_of(1)}`, over {_AXES[axes]}."
            op(names.replace("{}", str(axes)), sample=sample)(member)
        return function

    return declare


def _with_axes(function: AnyFunction, axes: int) -> AnyFunction:
    return lambda *args, **kwargs: function(axes, *args, **kwargs)
