"""``op``: the decorator that declares a public operation, and the registry of all declarations.

The public namespaces, the methods of Tensor, their in-place forms, ``out=``, NumPy's argument names, the editor stubs,
``chainrule ops``, the operator table in the docs and the calls made by tests are derived from the declarations.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from chainrule._src.api.array import takes_arrays
from chainrule._src.api.dispatch_cache import with_cached_dispatch
from chainrule._src.api.functions import public_function
from chainrule._src.api.in_place import DIRECT, becomes_view, store_out
from chainrule._src.api.in_place import in_place as write_in_place
from chainrule._src.api.operations import in_place_operation, with_fast_path
from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.rules.primitive import Primitive
from chainrule._src.rules.registry import DEFERRED, OpRegistry
from chainrule._src.tape.overriding import overridable
from chainrule._src.tape.tensor import Tensor

F = TypeVar("F", bound=AnyFunction)


class Operation:
    """A public operation. The functions that users call are made at first use: most programs use few operations.

    Attributes:
        names: its public names, with the namespace: ``exp``, ``linalg.inv``, ``nn.functional.relu``.
        function: the function on tensors, as the package itself calls it.
        methods: its names as a method of Tensor.
        in_place: the names of the methods that write the result into the tensor.
        sample: arguments of a sample call, as source text that is valid after ``from chainrule import *``.
        row: its primitive; None for a composite.
        module: the module that declares it.
        options: the other arguments of ``op``.
    """

    __slots__ = (
        "_method", "_public", "function", "in_place", "methods", "module", "names", "options", "row", "sample",
    )  # fmt: skip

    def __init__(
        self, names: list[str], function: AnyFunction, sample: str, row: Primitive | None, module: str, options: Params
    ) -> None:
        self.names, self.function, self.sample, self.row, self.module = names, function, sample, row, module
        self.options = options
        self.methods: list[str] = []
        self.in_place: list[str] = []
        self._public: AnyFunction | None = None
        self._method: AnyFunction | None = None

    def __repr__(self) -> str:
        return f"<operation {self.names[0]}>"

    @property
    def public(self) -> AnyFunction:
        """The function that users call: it also accepts Arrays, ``out=`` and NumPy's argument names."""
        if self._public is None:
            self._public = self._make_public()
        return self._public

    def _make_public(self) -> AnyFunction:
        function, options = self.function, self.options
        public = function
        if not hasattr(function, "takes_arrays"):  # functions of elementwise primitives accept Arrays already
            full = _with_keywords(function, _other_names(function, options["also"]), options["out"])
            public = (
                takes_arrays(function, full, lambda: self.public)
                if options["arrays"]
                else _overridable_function(full, lambda: self.public)
            )
            public = self._with_fast_path(public)
        if self.row is not None or public is not function:
            _set_home(public, self.names[0])
        return public

    def _with_fast_path(self, function: AnyFunction) -> AnyFunction:
        """Return the function with cached dispatch or the fast path of another operation, as declared."""
        options = self.options
        if options["cached"]:
            function = with_cached_dispatch(function)
        if options["ordinary"] is not None:
            factor = options["factor"]
            function = with_fast_path(options["ordinary"], function, **({} if factor is None else {"factor": factor}))
        return function

    def method(self, name: str) -> AnyFunction:
        """Return the method of Tensor with one of the operation's names."""
        if self._method is None:
            function = self.function
            method = _with_keywords(function, _other_names(function, self.options["also"]), False)
            if self.row is None:
                method = overridable(method, functools.partial(getattr, Tensor, self.methods[0]))
            self._method = self._with_fast_path(method)
        if name in self.methods:
            return self._method
        form = becomes_view if self.options["in_place"] == "view" else _in_place_form
        return form(name, self._method)


class DeferredMethod:
    """A method of Tensor that is made at first use, and then replaces this object."""

    __slots__ = ("make", "name")

    def __init__(self, name: str, make: Callable[[str], Any]) -> None:
        self.name, self.make = name, make

    def __get__(self, tensor: object, kind: type | None = None) -> Any:
        method = self.make(self.name)
        if vars(Tensor).get(self.name) is self:
            setattr(Tensor, self.name, method)
        return method.__get__(tensor, kind) if hasattr(type(method), "__get__") else method


#: Public name -> operation.
OPERATIONS: OpRegistry[Operation] = OpRegistry()

#: Name of a method of Tensor -> its operation.
METHODS: dict[str, Operation] = {}

#: The default namespaces of the operations of a module.
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
    cached: bool = False,
    ordinary: object = None,
    factor: object = None,
    sample: str = "",
) -> Callable[[F], F]:
    """Declare a public operation; decorates a function on tensors or an elementwise primitive.

    Args:
        names: its public names, separated by spaces; by default the function's own, in its module's namespace.
            ``Tensor.view`` is a method only.
        method: whether its names without a namespace are methods of Tensor, too.
        in_place: whether each method has an in-place form with ``_``; "view": a form that turns the tensor into the
            view that the function returns.
        out: whether to add an argument ``out=`` to a function that has none.
        arrays: whether it accepts Arrays. (Constructors of tensors and queries about tensors do not.)
        also: aliases of its arguments. NumPy's names for ``dim`` and related arguments are added automatically.
        cached: whether calls are dispatched through the cache: a tensor's shape and dtype and the other arguments
            determine the primitive and its parameters.
        ordinary: the operation that handles calls with tensors and numbers only (see ``api.operations.operation``).
        factor: the keyword of a number that multiplies the last operand first, and the operation that does it.
        sample: arguments of a sample call.
    """
    module = sys._getframe(1).f_globals["__name__"]
    options: Params = {
        "in_place": in_place, "out": out, "arrays": arrays, "also": also or {}, "cached": cached, "ordinary": ordinary,
        "factor": factor,
    }  # fmt: skip

    def declare(declared: F) -> F:
        row = declared if isinstance(declared, Primitive) else None
        function: Any = declared if row is None else public_function(row)
        if row is not None and names:
            function.__name__ = function.__qualname__ = names.split()[0].rpartition(".")[2]
        operation = Operation(names.split() or [_default_name(function)], function, sample, row, module, options)
        for name in operation.names:
            OPERATIONS[name] = operation
        operation.methods = [name.removeprefix("Tensor.") for name in operation.names if name.startswith("Tensor.")]
        if method:
            operation.methods += [name for name in operation.names if "." not in name]
        operation.in_place = [name + "_" for name in operation.methods] if in_place else []
        for name in [*operation.methods, *operation.in_place]:
            METHODS[name] = operation
            if module not in DEFERRED:  # ``ops.deferred`` has attached the methods of deferred modules
                setattr(Tensor, name, DeferredMethod(name, operation.method))
        return declared

    return declare


def _default_name(function: AnyFunction) -> str:
    space = next((space for module, space in _NAMESPACES.items() if function.__module__.startswith(module)), "")
    return space + function.__name__


def _in_place_form(name: str, function: AnyFunction) -> AnyFunction:
    """Return the in-place form of a function."""
    call = overridable(write_in_place(name, function), functools.partial(getattr, Tensor, name))
    return in_place_operation(name, function, call, name in DIRECT)


def _overridable_function(function: AnyFunction, public: Callable[[], Any]) -> AnyFunction:
    """Return the function with protocol dispatch on its operands, if its first argument is a tensor."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    takes_tensor = code is not None and code.co_varnames[:1] == ("input",)
    return overridable(function, public) if takes_tensor else function


def _set_home(function: AnyFunction, name: str) -> None:
    """Set the module and name of a public function to its first public name, under which pickling looks it up."""
    namespace, _, last = name.rpartition(".")
    if namespace != "Tensor":
        function.__module__ = f"chainrule.{namespace}".rstrip(".")
        function.__qualname__ = last


def declared(prefix: str) -> dict[str, Operation]:
    """Return the operations of a namespace (``""``, ``"linalg."``) that are declared so far, by their names in it."""
    found = {}
    for name, operation in OPERATIONS.present().items():
        head, _, last = name.rpartition(".")
        if head + "." * bool(head) == prefix:
            found[last] = operation
    return found


def namespace(prefix: str) -> dict[str, AnyFunction]:
    """Return the public functions of ``declared(prefix)``."""
    return {name: operation.public for name, operation in declared(prefix).items()}


# -- arguments -------------------------------------------------------------------------------------------------------


#: NumPy's argument names, accepted as aliases of PyTorch's
_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


def _other_names(function: AnyFunction, also: dict[str, str]) -> dict[str, str]:
    """Return the aliases of a function's arguments: the declared ones, and NumPy's names for ``dim`` and others."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
    if own[:1] == ("A",):  # linear algebra: PyTorch documents A, but its functions accept input
        also = {"input": "A"} | also
    if "dim" not in own or "axis" in own:
        return also
    return also | {theirs: ours for theirs, ours in _NUMPY_NAMES.items() if ours in own and theirs not in own}


def _with_keywords(function: AnyFunction, also: dict[str, str], out: bool) -> AnyFunction:
    """Wrap a function so that it accepts argument aliases and ``out=``; return it unchanged if it has neither."""
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
        call.__dict__["__signature__"] = _SignatureWithOut(function)
    return call


class _SignatureWithOut(inspect.Signature):
    """A function's signature with ``out=``, computed at first access, because hundreds of functions have one."""

    __slots__ = ("_of",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._of = function

    @property
    def whole(self) -> inspect.Signature:
        """The computed signature."""
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
    """Write one result, or several, into the tensors given as ``out``."""
    if not isinstance(result, tuple):
        return store_out(out, result)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(result)} Tensors, not {type(out).__name__}")
    written = [store_out(o, r) for o, r in zip(out, result, strict=True)]
    return type(result)(*written) if hasattr(result, "_fields") else tuple(written)


_AXES = {1: "the last axis", 2: "the last two axes", 3: "the last three axes"}


def op_each_axes(names: str, samples: tuple[str, str, str]) -> Callable[[AnyFunction], AnyFunction]:
    """Declare the three functions of a family: over the last axis, the last two and the last three axes.

    Args:
        names: the public names, with ``{}`` for the number of axes.
        samples: arguments of a sample call of each.

        The function's first argument is the number of axes. Its docstring is that of the family's first function.
    """

    def declare(function: AnyFunction) -> AnyFunction:
        signature = inspect.signature(function)
        own = signature.replace(parameters=list(signature.parameters.values())[1:])
        name_of = names.split()[0].rpartition(".")[2].format
        for axes, sample in zip(_AXES, samples, strict=True):
            member: Any = _with_axes(function, axes)
            member.__name__ = member.__qualname__ = name_of(axes)
            member.__code__ = member.__code__.replace(
                co_name=name_of(axes)
            )  # explanations read the call's name from it
            member.__module__, member.__signature__ = function.__module__, own
            member.__doc__ = function.__doc__ if axes == 1 else f"As :func:`{name_of(1)}`, over {_AXES[axes]}."
            op(names.replace("{}", str(axes)), sample=sample)(member)
        return function

    return declare


def _with_axes(function: AnyFunction, axes: int) -> AnyFunction:
    return lambda *args, **kwargs: function(axes, *args, **kwargs)
