"""A cache of traced loop bodies, by the form of their functions.

The function of a loop is usually a new closure in each call: the same code with other arrays. A :class:`FunctionForm` is equal for
such functions. A body that was traced for one of them is reused for the others, with their arrays, while its guards hold.
``control_flow`` calls ``form_of``, ``find_cached_body`` and ``cache_body``.
"""

from __future__ import annotations

import copy
import types
import weakref
from typing import Any

import numpy as np

from chainrule._src.api.array import Array
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.compiling.function_trace import FunctionTrace
from chainrule._src.compiling.guards.guards import IMMUTABLE, Guard
from chainrule._src.compiling.loop_body import Body
from chainrule._src.interpreters.same_bits import number_key
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray
#: the maximum number of cached bodies
MOST = 64
#: types of objects that usually live as long as the program
_LONG_LIVED = (types.ModuleType, type, types.BuiltinFunctionType, np.ufunc, np.dtype)


class NotCacheable(Exception):
    """A function has captured state that cannot be compared with that of another function."""


class FunctionForm:
    """The form of a function: its code and captured state, without the content of arrays.

    Attributes:
        parts: a key that is equal for functions that compute the same from arrays of the same layouts.
        arrays: the tensors and arrays that the function captures, without duplicates.
        seen: the functions and cells that were visited, by id.
        weak_others: weak references to objects whose ids are in the key; kept: strong ones.

    Raises:
        NotCacheable: the function captures other mutable state.
    """

    def __init__(self, function: AnyFunction) -> None:
        self.arrays: list[Any] = []
        self.seen: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._edges: dict[int, int] = {}
        self.weak_others: list[Any] = []
        self.kept: list[Any] = []
        self.parts = self._of(function)

    def _of(self, x: Any) -> Any:
        kind = type(x)
        if kind is types.FunctionType and not x.__dict__:
            return self._of_function(x)
        if kind is Array or isinstance(x, Tensor) or (kind is ndarray and x.base is None):
            return self._of_array(x)
        if kind in IMMUTABLE or issubclass(kind, np.generic):
            return number_key(x) if isinstance(x, (float, complex, np.generic)) else (kind, repr(x))
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
        if has_tensor := type(x) is not ndarray:
            tensor = x._tensor if type(x) is Array else x
            raw, edge = tensor._raw, tensor._edge
        if type(raw) is not ndarray or raw.dtype.hasobject:
            raise NotCacheable
        number = self._numbers.setdefault(id(x), len(self.arrays))
        if number == len(self.arrays):
            self.arrays.append(x)
        edge_number = None if edge is None else self._edges.setdefault(id(edge), len(self._edges))
        history = (type(edge), getattr(edge, "hooks", None) is None, edge_number) if has_tensor else ()
        return type(x), number, raw.shape, raw.dtype, raw.strides, *history

    def _is(self, x: object) -> Any:
        if isinstance(x, _LONG_LIVED):
            self.kept.append(x)
        else:
            try:
                self.weak_others.append(weakref.ref(x))
            except TypeError:
                raise NotCacheable from None
        return "is", id(x)

    def number(self, x: object) -> int | None:
        """Return the index of a captured array or of its tensor, or None."""
        for k, array in enumerate(self.arrays if x is not None else ()):
            if array is x or (type(array) is Array and array._tensor is x):
                return k
        return None


class CachedBody:
    """A cached body, without the arrays of the function that it was traced from.

    Raises:
        NotCacheable: the trace depends on objects that cannot be guarded for other functions.
    """

    def __init__(self, form: FunctionForm, body: Body, trace: FunctionTrace) -> None:
        assert trace.guard_sets is not None
        read = [*[guard.value for guard in trace.guard_sets.guards], *[ref() for ref in form.weak_others]]
        if any([type(x) is ndarray and form.number(x.base) is not None for x in read]):
            raise NotCacheable  # a view of a captured array, which another function replaces
        self._others, self._kept = form.weak_others, form.kept
        self._outside: list[Any] = []
        for x in body.outside:
            k = form.number(x)
            self._outside.append(weakref.ref(x) if k is None else k)
        self._body = copy.copy(body)
        self._body.outside = []
        self._guards: list[tuple[int | None, Guard]] = []
        for guard in trace.guard_sets.guards:
            if id(guard.target) in form.seen:
                continue  # part of the form
            k = form.number(guard.target)
            long_lived = isinstance(guard.target, (*_LONG_LIVED, Tensor, Array))
            long_lived = long_lived or (type(guard.target) is dict and "__name__" in guard.target)
            if k is None and not long_lived:
                raise NotCacheable
            self._guards.append((k, guard if k is None else guard._replace(target=None)))

    def body(self, form: FunctionForm) -> Body | None:
        """Return the body with the arrays of a function of the same form, or None if a guard fails."""
        if any([ref() is None for ref in self._others]):
            return None  # the id of a dead object may be reused
        for k, guard in self._guards:
            if not (guard if k is None else guard._replace(target=form.arrays[k])).holds():
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


_BODIES: dict[Any, CachedBody] = {}


def form_of(function: AnyFunction) -> FunctionForm | None:
    """Return the form of a function, or None if it cannot be cached."""
    try:
        return FunctionForm(function)
    except (NotCacheable, RecursionError):
        return None


def find_cached_body(form: FunctionForm, setting: tuple[object, ...]) -> Body | None:
    """Return the cached body for a function of this form in the same setting, or None."""
    try:
        cached = _BODIES.get((setting, form.parts))
    except TypeError:  # a structure that has no hash
        return None
    return None if cached is None else cached.body(form)


def cache_body(form: FunctionForm, setting: object, body: Body, trace: FunctionTrace) -> None:
    """Cache a body if possible."""
    try:
        cached = CachedBody(form, body, trace)
        if len(_BODIES) >= MOST:
            _BODIES.pop(next(iter(_BODIES)), None)
        _BODIES[setting, form.parts] = cached
    except (NotCacheable, TypeError):
        return
