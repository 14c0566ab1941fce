"""Bodies of loops that were recorded before, for functions that do the same.

The function of a loop is made anew in most calls of what is around it: the same code, closed over other arrays.
:class:`FunctionForm` says what such functions have in common; what one of them came to serves for all, each with its own arrays,
while what else it read is as it was.
"""

from __future__ import annotations

import copy
import types
import weakref
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.compiling.loop_body import Body
from chainrule._src.compiling.recording import Recording
from chainrule._src.compiling.state.guards import IMMUTABLE, Guard
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray
#: bodies that are remembered
MOST = 64
#: what is there as long as the program that it is of
_LASTING = (types.ModuleType, type, types.BuiltinFunctionType, np.ufunc, np.dtype)


class Unlike(Exception):
    """Something about a function cannot be told to be the same for another one."""


class FunctionForm:
    """What a function is but for its arrays.

    Attributes:
        parts: equal for functions that do the same with arrays that are alike.
        arrays: the tensors and arrays that it closes over, each once.
        seen: the functions and cells that were looked through, by identity.

    Raises:
        Unlike: it closes over something else that may change.
    """

    def __init__(self, function: AnyFunction) -> None:
        self.arrays: list[Any] = []
        self.seen: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._edges: dict[int, int] = {}
        self.others: list[Any] = []  # weak references to what is told by where it is; what these ids are of
        self.kept: list[Any] = []
        self.parts = self._of(function)

    def _of(self, x: Any) -> Any:
        kind = type(x)
        if kind is types.FunctionType and not x.__dict__:
            return self._of_function(x)
        if kind is Array or isinstance(x, Tensor) or (kind is ndarray and x.base is None):
            return self._of_array(x)
        if kind in IMMUTABLE or issubclass(kind, np.generic):
            return kind, repr(x)
        if kind is tuple:
            return kind, *[self._of(item) for item in x]
        if kind is types.MethodType:
            return kind, self._of(x.__func__), self._is(x.__self__)
        return self._is(x)

    def _of_function(self, function: AnyFunction) -> Any:
        if id(function) in self.seen:
            return "again", list(self.seen).index(id(function))
        self.seen[id(function)] = function
        self.kept += [function.__code__, function.__globals__]
        own = id(function.__code__), id(function.__globals__)
        given = self._of(function.__defaults__), self._of(tuple((function.__kwdefaults__ or {}).items()))
        parts = []
        for cell in function.__closure__ or ():
            self.seen[id(cell)] = cell
            try:
                parts.append(self._of(cell.cell_contents))
            except ValueError:
                parts.append("empty")
        return "function", *own, *given, *parts

    def _of_array(self, x: Any) -> Any:
        raw, edge = x, None
        if kind_of_tensor := type(x) is not ndarray:
            tensor = x._tensor if type(x) is Array else x
            raw, edge = tensor._raw, tensor._edge
        if type(raw) is not ndarray or raw.dtype.hasobject:
            raise Unlike
        number = self._numbers.setdefault(id(x), len(self.arrays))
        if number == len(self.arrays):
            self.arrays.append(x)
        place = None if edge is None else self._edges.setdefault(id(edge), len(self._edges))
        history = (type(edge), getattr(edge, "hooks", None) is None, place) if kind_of_tensor else ()
        return type(x), number, raw.shape, raw.dtype, raw.strides, *history

    def _is(self, x: object) -> Any:
        if isinstance(x, _LASTING):
            self.kept.append(x)
        else:
            try:
                self.others.append(weakref.ref(x))
            except TypeError:
                raise Unlike from None
        return "is", id(x)

    def number(self, x: object) -> int | None:
        """Which of its arrays something is, or is the tensor of."""
        for k, array in enumerate(self.arrays if x is not None else ()):
            if array is x or (type(array) is Array and array._tensor is x):
                return k
        return None


class RememberedBody:
    """A body, without the arrays of the function that it was recorded of.

    Raises:
        Unlike: it depends on more than what can be looked at again.
    """

    def __init__(self, form: FunctionForm, body: Body, recording: Recording) -> None:
        assert recording.references is not None
        read = [*[guard.value for guard in recording.references.guards], *[ref() for ref in form.others]]
        if any([type(x) is ndarray and form.number(x.base) is not None for x in read]):
            raise Unlike  # a view of what is another array for another function
        self._others, self._kept = form.others, form.kept
        self._outside: list[Any] = []
        for x in body.outside:
            k = form.number(x)
            self._outside.append(weakref.ref(x) if k is None else k)
        self._body = copy.copy(body)
        self._body.outside = []
        self._guards: list[tuple[int | None, Guard]] = []
        for guard in recording.references.guards:
            if id(guard.thing) in form.seen:
                continue  # which the form says
            k = form.number(guard.thing)
            lasting = isinstance(guard.thing, (*_LASTING, Tensor, Array))  # values are those of other guards
            lasting = lasting or (type(guard.thing) is dict and "__name__" in guard.thing)
            if k is None and not lasting:
                raise Unlike
            self._guards.append((k, guard if k is None else guard._replace(thing=None)))

    def body(self, form: FunctionForm) -> Body | None:
        """The body, for a function of the same form; None: something else that it read has changed."""
        if any([ref() is None for ref in self._others]):
            return None  # an identity may be another object's now
        for k, guard in self._guards:
            if not (guard if k is None else guard._replace(thing=form.arrays[k])).holds():
                return None
        outside = []
        for x in self._outside:
            found = form.arrays[x] if type(x) is int else x()
            if found is None:
                return None
            outside.append(found._tensor if type(found) is Array else found)
        body = copy.copy(self._body)
        body.outside = outside
        return body


_BODIES: dict[Any, RememberedBody] = {}


def form_of(function: AnyFunction) -> FunctionForm | None:
    """The form of a function; None if it has none."""
    try:
        return FunctionForm(function)
    except (Unlike, RecursionError):
        return None


def find(form: FunctionForm, how: tuple[object, ...]) -> Body | None:
    """The body that was recorded of a function of this form in the same way, if it is so still."""
    try:
        known = _BODIES.get((how, form.parts))
    except TypeError:  # a structure that has no hash
        return None
    return None if known is None else known.body(form)


def keep(form: FunctionForm, how: object, body: Body, recording: Recording) -> None:
    """Remember a body, if that can be."""
    try:
        known = RememberedBody(form, body, recording)
        if len(_BODIES) >= MOST:
            _BODIES.pop(next(iter(_BODIES)), None)
        _BODIES[how, form.parts] = known
    except (Unlike, TypeError):
        return
