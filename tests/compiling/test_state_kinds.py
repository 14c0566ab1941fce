"""All kinds of state that a compiled function may read: changes are detected, or the function is not recorded."""

from __future__ import annotations

import abc
import array
import collections
import contextlib
import contextvars
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import importlib
import inspect
import io
import itertools
import math
import operator
import os
import random
import struct
import sys
import tempfile
import threading
import time
import types
import typing
import warnings
import weakref
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import scipy.interpolate
import scipy.sparse
import scipy.special
from compiling.outcomes import X, outcome

import chainrule as cr
from chainrule import nn
from chainrule._src import native
from chainrule.scipy import interpolate

FILE = os.path.join(tempfile.gettempdir(), f"chainrule_{os.getpid()}.npy")
SEEN, EAGER = "looked at again", "runs eagerly"
KINDS: dict[str, tuple] = {}


def kind(name, make, read, change, how=SEEN):
    """Register a kind of state: its creation, a function that reads it, a change, and the expected reaction."""
    assert name not in KINDS
    KINDS[name] = make, read, change, how


def put(key, value):
    return lambda s: s.__setitem__(key, value)


def attr(name, value):
    return lambda s: setattr(s, name, value)


# -- containers ----------------------------------------------------------------------------------------------------------

kind("element of a list", lambda: [2.0], lambda s: s[0], put(0, 5.0))
kind("last element of a list", lambda: [2.0, 3.0], lambda s: s[-1], lambda s: s.append(5.0))
kind("slice of a list", lambda: [2.0, 3.0], lambda s: sum(s[:1]), put(0, 5.0))
kind("sum of a list", lambda: [2.0], sum, lambda s: s.append(5.0))
kind("length of a list", lambda: [2.0], len, lambda s: s.append(5.0))
kind("truth of a list", lambda: [], lambda s: 2.0 if s else 3.0, lambda s: s.append(5.0))
kind("a list is gone through", lambda: [2.0], lambda s: sum([w * 2 for w in s]), lambda s: s.append(5.0))
kind("in a list", lambda: [2.0], lambda s: 1.0 + (5.0 in s), lambda s: s.append(5.0))
kind("list compared", lambda: [2.0], lambda s: 1.0 + (s == [2.0]), put(0, 5.0))
kind("list unpacked", lambda: [2.0, 3.0], lambda s: (lambda a, b: a - 2 * b)(*s), put(1, 5.0))
kind("list assigned to names", lambda: [2.0, 3.0], lambda s: sum(a for a, b in [s]), put(0, 5.0))
kind("list sorted", lambda: [2.0, 3.0], lambda s: sorted(s)[-1], put(0, 5.0))
kind("index in a list", lambda: [2.0, 3.0], lambda s: 1.0 + s.index(3.0), lambda s: s.insert(0, 9.0))
kind("list added", lambda: [2.0], lambda s: (s * 2)[1], put(0, 5.0))
kind("list reversed", lambda: [2.0, 3.0], lambda s: next(iter(reversed(s))), lambda s: s.append(5.0))
kind("list enumerated", lambda: [2.0], lambda s: sum(i + w for i, w in enumerate(s)), lambda s: s.append(5.0))
kind("lists zipped", lambda: [2.0], lambda s: sum(a * b for a, b in zip(s, s, strict=True)), lambda s: s.append(5.0))
kind("list mapped", lambda: [2.0], lambda s: sum(map(abs, s)), put(0, -5.0))
kind("greatest of a list", lambda: [2.0], max, lambda s: s.append(5.0))
kind("any of a list", lambda: [0.0], lambda s: 1.0 + any(s), put(0, 5.0))
kind("list copied", lambda: [2.0], lambda s: s.copy()[0], put(0, 5.0))
kind("list as a tuple", lambda: [2.0], lambda s: sum(tuple(s)), put(0, 5.0))
kind("nested list", lambda: [[2.0]], lambda s: s[0][0], lambda s: s[0].__setitem__(0, 5.0))
kind("a long list", lambda: [2.0] * 1000, lambda s: s[700], put(700, 5.0))
kind("subclass of list", lambda: type("L", (list,), {})([2.0]), lambda s: s[0], put(0, 5.0))
kind("stacked list of arrays", lambda: [X.copy()], lambda s: np.stack(s)[0], lambda s: s[0].fill(5.0))
kind("list as an array", lambda: [2.0, 3.0], lambda s: np.array(s), put(0, 5.0))
kind("value of a dictionary", lambda: {"a": 2.0}, lambda s: s["a"], put("a", 5.0))
kind("missing key", lambda: {"a": 2.0}, lambda s: s.get("b", 1.0), put("b", 5.0))
kind("key in a dictionary", lambda: {"a": 2.0}, lambda s: 1.0 + ("b" in s), put("b", 5.0))
kind("values of a dictionary", lambda: {"a": 2.0}, lambda s: sum(s.values()), put("b", 5.0))
kind("items of a dictionary", lambda: {"a": 2.0}, lambda s: sum(v * len(k) for k, v in s.items()), put("bb", 5.0))
kind("keys of a dictionary", lambda: {2.0: "a"}, sum, put(5.0, "b"))
kind("order of a dictionary", lambda: {2.0: 1, 3.0: 1}, lambda s: next(iter(s)), lambda s: s.update({2.0: s.pop(2.0)}))
kind("length of a dictionary", lambda: {"a": 2.0}, len, put("b", 5.0))
kind("dictionary unpacked", lambda: {"a": 2.0}, lambda s: (lambda a: a)(**s), put("a", 5.0))
kind("dictionary merged", lambda: {"a": 2.0}, lambda s: {**s, "b": 1.0}["a"], put("a", 5.0))
kind("dictionary joined", lambda: {"a": 2.0}, lambda s: (s | {"b": 1.0})["a"], put("a", 5.0))
kind("key that Python tries", lambda: {"a": 2.0}, lambda s: _or(lambda: s["b"], KeyError, 1.0), put("b", 5.0))
kind("nested dictionary", lambda: {"a": {"b": 2.0}}, lambda s: s["a"]["b"], lambda s: s["a"].update(b=5.0))
kind("OrderedDict", lambda: collections.OrderedDict(a=2.0), lambda s: s["a"], put("a", 5.0))
kind("values of an OrderedDict", lambda: collections.OrderedDict(a=2.0), lambda s: sum(s.values()), put("b", 5.0))
kind("defaultdict", lambda: collections.defaultdict(float, a=2.0), lambda s: s["a"], put("a", 5.0))
kind("Counter", lambda: collections.Counter(a=2), lambda s: s["a"], put("a", 5))
kind("ChainMap", lambda: collections.ChainMap({"a": 2.0}, {}), lambda s: s["a"], put("a", 5.0))
kind("UserDict", lambda: collections.UserDict(a=2.0), lambda s: s["a"], put("a", 5.0))
kind("UserList", lambda: collections.UserList([2.0]), lambda s: s[0], put(0, 5.0))
kind("subclass of dict", lambda: type("D", (dict,), {})(a=2.0), lambda s: s["a"], put("a", 5.0))
kind("deque", lambda: collections.deque([2.0]), lambda s: s[0], put(0, 5.0))
kind("deque gone through", lambda: collections.deque([2.0]), sum, lambda s: s.append(5.0))
kind("set", lambda: {2.0}, sum, lambda s: s.add(5.0))
kind("in a set", lambda: {2.0}, lambda s: 1.0 + (5.0 in s), lambda s: s.add(5.0))
kind("set compared", lambda: {2.0}, lambda s: 1.0 + (s <= {2.0}), lambda s: s.add(5.0))
kind("array.array", lambda: array.array("d", [2.0]), lambda s: s[0], put(0, 5.0))
kind("sum of an array.array", lambda: array.array("d", [2.0]), sum, put(0, 5.0))
kind("bytearray", lambda: bytearray([2]), lambda s: s[0], put(0, 5))
kind(
    "mappingproxy",
    lambda: [d := {"a": 2.0}, types.MappingProxyType(d)],
    lambda s: s[1]["a"],
    lambda s: s[0].update(a=5.0),
)
kind("iterator", lambda: iter([2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]), next, lambda s: next(s), EAGER)
kind("generator", lambda: (float(i) for i in range(99)), next, lambda s: next(s), EAGER)
kind("itertools.count", lambda: itertools.count(2), next, lambda s: next(s), EAGER)


def _or(call, error, otherwise):
    try:
        return call()
    except error:
        return otherwise


def tagged(value):
    x = cr.tensor(1.0)
    x.tag = value
    return x


kind("attribute of a tensor", lambda: tagged(2.0), lambda s: s.tag, attr("tag", 5.0))

# -- objects -------------------------------------------------------------------------------------------------------------


def made(**content):
    """Return an object of a new class, with attributes of both."""
    return type("C", (), {k: v for k, v in content.items() if not k.startswith("own_")})()


class Descriptor:
    def __get__(self, instance, owner=None):
        return instance.of


class Slotted:
    __slots__ = ("k",)

    def __init__(self):
        self.k = 2.0


@dataclasses.dataclass
class Record:
    k: float = 2.0


class Property:
    def __init__(self):
        self._k = [2.0]

    @property
    def k(self):
        return self._k[0]

    @functools.cached_property
    def once(self):
        return self._k[0]


class Getting:
    def __init__(self):
        self.inside = {"k": 2.0}

    def __getitem__(self, key):
        return self.inside[key]

    def __getattr__(self, name):
        if name == "inside":
            raise AttributeError(name)
        return self.inside[name]

    def __len__(self):
        return int(self.inside["k"])

    def __iter__(self):
        return iter(self.inside.values())

    def __contains__(self, x):
        return x in self.inside

    def __bool__(self):
        return self.inside["k"] == 2.0

    def __call__(self):
        return self.inside["k"]

    def __add__(self, other):
        return self.inside["k"] + other

    def __float__(self):
        return self.inside["k"]

    def __eq__(self, other):
        return self.inside["k"] == other

    __hash__ = None

    def __enter__(self):
        return self.inside["k"]

    def __exit__(self, *_):
        return None


class Everything:
    def __getattribute__(self, name):
        return object.__getattribute__(self, "__dict__")["_" + name]


class Base:
    k = 2.0

    def method(self):
        return self.k

    @classmethod
    def of_class(cls):
        return cls.k

    @staticmethod
    def static():
        return Base.k


def derived():
    base = type("B", (), {"k": 2.0, "method": lambda self: self.k})

    class D(base):
        def method(self):
            return super().method()

    return D()


inside = lambda s: s.inside.update(k=5.0)
kind("attribute", lambda: types.SimpleNamespace(k=2.0), lambda s: s.k, attr("k", 5.0))
kind(
    "attribute of an attribute",
    lambda: types.SimpleNamespace(o=types.SimpleNamespace(k=2.0)),
    lambda s: s.o.k,
    lambda s: setattr(s.o, "k", 5.0),
)
kind("missing attribute", lambda: made(), lambda s: getattr(s, "k", 2.0), attr("k", 5.0))
kind("hasattr", lambda: made(), lambda s: 1.0 + hasattr(s, "k"), attr("k", 5.0))
kind("attribute that Python tries", lambda: made(), lambda s: _or(lambda: s.k, AttributeError, 2.0), attr("k", 5.0))
kind("vars", lambda: types.SimpleNamespace(k=2.0), lambda s: vars(s)["k"], attr("k", 5.0))
kind("__dict__", lambda: types.SimpleNamespace(k=2.0), lambda s: s.__dict__["k"], attr("k", 5.0))
kind("__dict__ replaced", lambda: Record(), lambda s: s.k, attr("__dict__", {"k": 5.0}))
kind("slot", Slotted, lambda s: s.k, attr("k", 5.0))
kind("dataclass", Record, lambda s: s.k, attr("k", 5.0))
kind("dataclass as a dictionary", Record, lambda s: dataclasses.asdict(s)["k"], attr("k", 5.0))
kind("class attribute", lambda: made(k=2.0), lambda s: s.k, lambda s: setattr(type(s), "k", 5.0))
kind("attribute over the class's", lambda: made(k=2.0), lambda s: s.k, attr("k", 5.0))
kind("attribute of a class", lambda: type("C", (), {"k": 2.0}), lambda s: s.k, attr("k", 5.0))
kind(
    "attribute of a base class",
    lambda: type("C", (type("B", (), {"k": 2.0}),), {}),
    lambda s: s.k,
    lambda s: setattr(s.__base__, "k", 5.0),
)
kind("attribute over the base's", lambda: type("C", (type("B", (), {"k": 2.0}),), {}), lambda s: s.k, attr("k", 5.0))
kind(
    "method replaced",
    lambda: made(m=lambda self: 2.0),
    lambda s: s.m(),
    lambda s: setattr(type(s), "m", lambda self: 5.0),
)
kind("method replaced on the object", lambda: made(m=lambda self: 2.0), lambda s: s.m(), attr("m", lambda: 5.0))
kind(
    "class replaced",
    lambda: made(m=lambda self: 2.0),
    lambda s: s.m(),
    attr("__class__", type("E", (), {"m": lambda self: 5.0})),
)
kind("classmethod", lambda: type("C", (Base,), {}), lambda s: s.of_class(), attr("k", 5.0))
kind(
    "staticmethod",
    lambda: type("C", (), {"f": staticmethod(lambda: 2.0)}),
    lambda s: s.f(),
    attr("f", staticmethod(lambda: 5.0)),
)
kind("super()", derived, lambda s: s.method(), lambda s: setattr(type(s).__base__, "method", lambda self: 5.0))
kind("property", Property, lambda s: s.k, lambda s: s._k.__setitem__(0, 5.0))
kind(
    "property replaced",
    lambda: made(k=property(lambda self: 2.0)),
    lambda s: s.k,
    lambda s: setattr(type(s), "k", property(lambda self: 5.0)),
)
kind("cached_property", Property, lambda s: s.once, lambda s: s.__dict__.update(once=5.0))
kind("descriptor", lambda: made(k=Descriptor(), of=2.0), lambda s: s.k, attr("of", 5.0))
kind("__getitem__", Getting, lambda s: s["k"], inside)
kind("__getattr__", Getting, lambda s: s.k, inside)
kind("__getattribute__", lambda: _with(Everything(), _k=2.0), lambda s: s.k, lambda s: object.__setattr__(s, "_k", 5.0))
kind("__len__", Getting, len, inside)
kind("__iter__", Getting, lambda s: sum(s), inside)
kind("__contains__", Getting, lambda s: 1.0 + ("j" in s), lambda s: s.inside.update(j=1.0))
kind("__bool__", Getting, lambda s: 2.0 if s else 3.0, inside)
kind("__call__", Getting, lambda s: s(), inside)
kind("__add__", Getting, lambda s: s + 1.0, inside)
kind("__float__", Getting, lambda s: float(s), inside)
kind("__eq__", Getting, lambda s: 1.0 + (s == 2.0), inside)
kind("__enter__", Getting, lambda s: _entered(s), inside)
kind(
    "operator replaced",
    lambda: made(__mul__=lambda self, x: 2.0 * x),
    lambda s: s * 1.0,
    lambda s: setattr(type(s), "__mul__", lambda self, x: 5.0 * x),
)
kind("operator.attrgetter", lambda: types.SimpleNamespace(k=2.0), operator.attrgetter("k"), attr("k", 5.0))
kind("operator.itemgetter", lambda: {"k": 2.0}, operator.itemgetter("k"), put("k", 5.0))
kind(
    "namedtuple's array",
    lambda: collections.namedtuple("N", "w")(X.copy()),
    lambda s: np.sqrt(s.w),
    lambda s: s.w.fill(5.0),
)
kind("enum's value", lambda: enum.Enum("E", {"A": 2}), lambda s: s.A.value, lambda s: setattr(s.A, "_value_", 5))
kind(
    "weak reference",
    lambda: [r := Record(), weakref.ref(r)],
    lambda s: s[1]().k if s[1]() else 9.0,
    lambda s: setattr(s[0], "k", 5.0),
)
kind("isinstance", lambda: [2.0], lambda s: 1.0 + isinstance(s[0], int), put(0, 5))
kind("string", lambda: ["aa"], lambda s: len(s[0]) * 1.0, put(0, "aaaa"))
kind("formatted", lambda: [2.0], lambda s: float(f"{s[0]:.2f}"), put(0, 5.0))
kind("repr of a list", lambda: [2.0], lambda s: len(repr(s)) * 1.0, put(0, 5.123))
kind("deep copy", lambda: {"a": [2.0]}, lambda s: copy.deepcopy(s)["a"][0], lambda s: s["a"].__setitem__(0, 5.0))


def _with(x, **attributes):
    for name, value in attributes.items():
        object.__setattr__(x, name, value)
    return x


def _entered(s):
    with s as k:
        return k


# -- functions -----------------------------------------------------------------------------------------------------------


def function(k=2.0, *, j=1.0):
    return k * j


def fresh():
    """Return a copy of ``function`` with its own defaults."""
    made = types.FunctionType(function.__code__, globals(), "made", function.__defaults__)
    made.__kwdefaults__ = dict(function.__kwdefaults__)
    return made


def cell():
    k = 2.0

    def get():
        return k

    def set_to(value):
        nonlocal k
        k = value

    return types.SimpleNamespace(get=get, set=set_to)


def deep(levels=9):
    s = [2.0]
    f = lambda: s[0]
    for _ in range(levels):
        f = (lambda g: lambda: g())(f)
    return types.SimpleNamespace(f=f, s=s)


kind("default", fresh, lambda s: s(), attr("__defaults__", (5.0,)))
kind("keyword default", fresh, lambda s: s(), attr("__kwdefaults__", {"j": 5.0}))
kind("element of the keyword defaults", fresh, lambda s: s(), lambda s: s.__kwdefaults__.update(j=5.0))
kind("code", fresh, lambda s: s(), attr("__code__", (lambda k=1.0, *, j=1.0: k + 5.0).__code__))
kind("attribute of a function", lambda: _with(fresh(), a=2.0), lambda s: s.a, attr("a", 5.0))
kind("list as a default", lambda: _defaults([2.0]), lambda s: s(), lambda s: s.__defaults__[0].__setitem__(0, 5.0))
kind("variable of an enclosing function", cell, lambda s: s.get(), lambda s: s.set(5.0))
kind("ten functions deep", deep, lambda s: s.f(), lambda s: s.s.__setitem__(0, 5.0))
kind(
    "partial", lambda: functools.partial(lambda s: s[0], [2.0]), lambda s: s(), lambda s: s.args[0].__setitem__(0, 5.0)
)
kind(
    "keyword of a partial",
    lambda: functools.partial(lambda s: s["k"], s={"k": 2.0}),
    lambda s: s(),
    lambda s: s.keywords["s"].update(k=5.0),
)
kind("lru_cache", lambda: _cached(), lambda s: s.f(), lambda s: (s.s.__setitem__(0, 5.0), s.f.cache_clear()))
kind(
    "singledispatch",
    lambda: functools.singledispatch(lambda x: 2.0),
    lambda s: s(1.0),
    lambda s: s.register(float, lambda x: 5.0),
    EAGER,
)
kind(
    "wrapped function",
    lambda: _wrapping([2.0]),
    lambda s: s(),
    lambda s: s.__wrapped__.__defaults__[0].__setitem__(0, 5.0),
)
kind("contextmanager", lambda: [2.0], lambda s: _within(s), put(0, 5.0))
kind("generator function", lambda: [2.0], lambda s: sum(_each(s)), put(0, 5.0))


def _defaults(s):
    def f(s=s):
        return s[0]

    return f


def _cached():
    s = [2.0]
    return types.SimpleNamespace(f=functools.lru_cache(lambda: s[0]), s=s)


def _wrapping(s):
    inner = _defaults(s)

    @functools.wraps(inner)
    def outer():
        return inner()

    return outer


@contextlib.contextmanager
def _managed(s):
    yield s[0]


def _within(s):
    with _managed(s) as k:
        return k


def _each(s):
    for k in s:
        yield k * 2


# -- arrays --------------------------------------------------------------------------------------------------------------

kind("array", lambda: X.copy(), lambda s: s, lambda s: s.fill(5.0))
kind("element of an array", lambda: X.copy(), lambda s: s[0], put(0, 5.0))
kind("mask of an array", lambda: X.copy(), lambda s: s[s > 1.5].sum(), put(0, 5.0))
kind("sum of an array", lambda: X.copy(), lambda s: s.sum(), put(0, 5.0))
kind("function of an array", lambda: X.copy(), np.linalg.norm, put(0, 5.0))
kind("one element of a large array", lambda: np.ones(300_000), lambda s: s.sum(), put(123_457, 5.0))
kind("truth of an array's element", lambda: X.copy(), lambda s: 2.0 if s[0] > 1.5 else 3.0, put(0, 5.0))
kind("view of an array", lambda: np.arange(8.0), lambda s: np.sqrt(s[2:4]), put(2, 25.0))
kind("transposed array", lambda: np.eye(2), lambda s: np.exp(s.T)[0], put((1, 0), 5.0))
kind("array gone through", lambda: X.copy(), lambda s: sum(float(k) for k in s), put(0, 5.0))
kind("array as a list", lambda: X.copy(), lambda s: s.tolist()[0], put(0, 5.0))
kind("item of an array", lambda: X.copy(), lambda s: s.item(0), put(0, 5.0))
kind("array as an index", lambda: np.array([0, 1]), lambda s: (X * 3)[s], put(0, 1))
kind("shape of an array", lambda: [np.ones(2)], lambda s: s[0].shape[0] * 1.0, put(0, np.ones(3)))
kind("array in a tuple", lambda: (X.copy(),), lambda s: np.sqrt(s[0]), lambda s: s[0].fill(5.0))
kind("array replaced", lambda: [X.copy()], lambda s: s[0], put(0, X * 5))


class Subclass(np.ndarray):
    pass


def rows():
    """Return a structured array, and its first row, a view of its memory."""
    table = np.array([(2.0, 3.0), (4.0, 5.0)], [("a", float), ("b", float)])
    return types.SimpleNamespace(table=table, row=table[0])


def unpacked(s):
    a, _ = s
    return a


def with_view(make, base):
    """Return an array and an object that C made from it."""
    return types.SimpleNamespace(base=base, view=make(base))


#: operations in C that compare or compute with arrays in a list
COMPARED = {
    "sorted": lambda s: sorted(s)[0],
    "sorted by a key": lambda s: sorted([0, 1], key=lambda k: s[k])[0] + 1.0,
    "smallest of arguments": lambda s: min(*s),
}
for name, read in COMPARED.items():
    kind(f"arrays that are {name}", lambda: [np.array(1.0), np.array(2.0)], read, lambda s: s[0].fill(3.0))
kind("array as a slice", lambda: np.array(1), lambda s: sum([1.0, 2.0, 3.0][:s]), lambda s: s.fill(2))
kind(
    "array in a slice", lambda: [slice(np.array(1), None)], lambda s: (X * 2)[s[0]].sum(), lambda s: s[0].start.fill(0)
)
#: attributes of an array that can be assigned
SET = {
    "shape": attr("shape", (2, 1)),
    "strides": attr("strides", (16,)),
    "dtype": attr("dtype", np.int64),
    "byte order": lambda s: setattr(s, "dtype", s.dtype.newbyteorder()),
    "size": lambda s: s.resize(1, refcheck=False),
}
for name, change in SET.items():
    if name != "size":
        kind(f"view whose {name} is set", lambda: np.arange(9.0)[1:3], lambda s: s, change)
    if name != "strides":
        kind(f"array whose {name} is set", lambda: np.arange(1.0, 3.0), lambda s: s, change)
kind("transposed view", lambda: np.arange(4.0)[:2], lambda s: s.T, attr("shape", (2, 1)))
kind("flags of an array", X.copy, lambda s: 2.0 if s.flags.writeable else 3.0, lambda s: s.setflags(write=False))
kind("flags that are kept", lambda: with_view(lambda a: a.flags, X.copy()), lambda s: float(s.view["W"]),
    lambda s: s.base.setflags(write=False))  # fmt: skip
kind("metadata of a dtype", lambda: np.ones(2, np.dtype(float, metadata={"k": 2.0})), lambda s: s.dtype.metadata["k"],
    attr("dtype", np.dtype(float, metadata={"k": 5.0})))  # fmt: skip
kind("memory of an array", X.copy, lambda s: s.data[1], put(1, 7.0))
kind("memory of a part", lambda: np.arange(4.0), lambda s: s[1:].data.tolist()[0], put(1, 7.0))
kind("bytearray gone through", lambda: bytearray(b"ab"), lambda s: sum([w * 2 for w in s]), put(0, 5))
kind("bytearray unpacked", lambda: bytearray(b"ab"), unpacked, put(0, 5))
kind("length of a bytearray", lambda: bytearray(b"ab"), len, lambda s: s.append(1))
kind("numbers that an object shows", lambda: type("Shows", (), {"a": X.copy(), "__array__": lambda s, dtype=None, copy=None: s.a})(),
    lambda s: float(np.sum(s)), lambda s: s.a.fill(5.0))  # fmt: skip
kind("subclass of ndarray gone through", lambda: X.copy().view(Subclass), lambda s: sum(float(w) for w in s),
    lambda s: s.fill(5.0))  # fmt: skip
kind("length of a subclass of ndarray", lambda: X.copy().view(Subclass), len, attr("shape", (1, 2)))
kind("names of its fields", lambda: rows().table, lambda s: s["a"], lambda s: setattr(s.dtype, "names", ("b", "a")))
kind("names in a dtype", lambda: np.dtype([("a", "f4"), ("b", "f8")]), lambda s: np.zeros(2, s)["a"].itemsize,
    attr("names", ("b", "a")))  # fmt: skip
kind("names in a field", lambda: np.array([((2.0, 3.0), 4.0)], [("in", rows().table.dtype), ("c", float)]),
    lambda s: s[0]["in"]["a"], lambda s: setattr(s.dtype["in"], "names", ("b", "a")))  # fmt: skip
ROW = {
    "field": lambda s: s["a"],
    "item": lambda s: s.item()[0],
    "gone through": lambda s: sum([w * 2 for w in s]),
    "tuple": lambda s: sum(tuple(s)),
    "unpacked": unpacked,
    "getter": operator.itemgetter("a"),
    "array of it": lambda s: np.asarray(s)["a"],
    "text": lambda s: len(str(s)),
}
for name, read in ROW.items():
    kind(f"row, {name}", rows, lambda s, read=read: read(s.row), lambda s: s.table.__setitem__("a", -7.25))
kind("row, its names", rows, lambda s: s.row["a"], lambda s: setattr(s.table.dtype, "names", ("b", "a")))
kind("masked array", lambda: np.ma.array([1.0, 2.0], mask=[0, 1]), lambda s: s.filled(7.0), attr("mask", [1, 1]))
kind(
    "record array",
    lambda: np.rec.array([(1.0, 2.0)], dtype=[("a", "f8"), ("b", "f8")]),
    lambda s: s.a[0],
    lambda s: s.a.fill(5.0),
)
kind("matrix", lambda: np.asmatrix(X.copy()), lambda s: float(s.sum()), lambda s: s.fill(5.0))
kind("array of objects", lambda: np.array([2.0, None], object), lambda s: s[0], put(0, 5.0))
kind("poly1d", lambda: np.poly1d([1.0, 2.0]), lambda s: s(3.0), put(0, 5.0))
kind(
    "spline of ours",
    lambda: interpolate.CubicSpline(np.arange(4.0), np.arange(4.0)),
    lambda s: s(1.5),
    lambda s: s.__dict__.update(vars(interpolate.CubicSpline(np.arange(4.0), np.arange(4.0) * 5))),
)
kind(
    "SciPy's spline",
    lambda: scipy.interpolate.CubicSpline(np.arange(4.0), np.arange(4.0)),
    lambda s: s(1.5),
    lambda s: s.c.fill(5.0),
)
kind("sparse matrix", lambda: scipy.sparse.csr_array(np.eye(2)), lambda s: (s @ X)[0], lambda s: s.data.fill(5.0))
kind("table", lambda: pd.DataFrame({"a": [1.0, 2.0]}), lambda s: s.a.sum(), lambda s: s.__setitem__("a", [5.0, 6.0]))
kind("tensor", lambda: cr.tensor([1.0, 2.0], dtype=cr.float64), lambda s: cr.Array(s), lambda s: s.fill_(5.0))
kind("Array", lambda: cr.Array(X.copy()), lambda s: s, lambda s: s.__setitem__(0, 5.0))
kind(
    "tensor in a list",
    lambda: [cr.tensor([1.0, 2.0], dtype=cr.float64)],
    lambda s: cr.Array(s[0]),
    put(0, cr.zeros(2, dtype=cr.float64)),
)
kind("a compiled function's state", lambda: _compiled_inside(), lambda s: s.f(X)[0], lambda s: s.s.__setitem__(0, 5.0))


def _compiled_inside():
    s = [2.0]
    return types.SimpleNamespace(f=cr.compile(lambda x: x * s[0]), s=s)


kind(
    "subclass of ndarray", lambda: X.copy().view(Subclass), lambda s: float(np.asarray(s).sum()), lambda s: s.fill(5.0)
)
kind(
    "its numbers, computed with", lambda: X.copy().view(Subclass), lambda s: float((s * 2).sum()), lambda s: s.fill(5.0)
)
kind("list of an iterator", lambda: iter([2.0] * 9), lambda s: [*s, 1.0][0], lambda s: list(s), EAGER)
kind("sum of an iterator", lambda: iter([2.0] * 9), sum, lambda s: list(s), EAGER)
kind("a class of C's", lambda: decimal.Context(prec=3), lambda s: float(s.divide(1, 3)), attr("prec", 5), EAGER)
kind("file of NumPy's", lambda: np.save(FILE, np.ones(2)), lambda s: np.load(FILE).sum(),
    lambda s: np.save(FILE, np.ones(2) * 5), EAGER)  # fmt: skip
kind("today", lambda: None, lambda s: 2.0 + 0 * np.datetime64("today").astype(float), lambda s: None, EAGER)
kind("a warning", lambda: None, lambda s: [2.0, warnings.warn("x", stacklevel=1)][0], lambda s: None, EAGER)
kind("np.seterr", lambda: np.seterr(all="warn"), lambda s: [2.0, np.seterr(under="raise")][0], lambda s: None, EAGER)
kind(
    "gradient mode",
    lambda: cr.set_grad_enabled(True),
    lambda s: [2.0, cr.set_grad_enabled(False)][0],
    lambda s: None,
    EAGER,
)


# -- state behind objects -------------------------------------------------------------------------------------------------


class Meta(type):
    k = 2.0


class Two:
    def k(self):
        return 2.0


class Five:
    def k(self):
        return 5.0


class Grid(np.ndarray):
    k = 2.0


def referred(make):
    thing = _with(Two(), v=2.0)
    return [thing, make(thing)]


def cell():
    k = 2.0
    return lambda: k


def tried_and_ended(s):
    try:
        try:
            raise KeyError
        finally:
            k = s[0]
    except KeyError:
        return k + s[0]


def by_recursion(s, depth=3):
    return s[0] if depth == 0 else by_recursion(s, depth - 1)


def table():
    return np.array([(2.0, 3)], dtype=[("k", "f8"), ("n", "i4")])


class WithCompiled:
    k = 2.0

    @cr.compile
    def method(self, x):
        return x * self.k


kind(
    "attribute of a metaclass",
    lambda: setattr(Meta, "k", 2.0) or Meta("C", (), {}),
    lambda s: s.k,
    lambda s: setattr(Meta, "k", 5.0),
)
kind("class of an object", lambda: Two(), lambda s: s.k(), attr("__class__", Five))
kind("bases of a class", lambda: type("C", (Two,), {}), lambda s: s().k(), attr("__bases__", (Five,)))
kind("cell", cell, lambda s: s(), lambda s: setattr(s.__closure__[0], "cell_contents", 5.0))
kind(
    "state of a partial",
    lambda: functools.partial(operator.mul, 2.0),
    lambda s: s(1.0),
    lambda s: s.__setstate__((operator.mul, (5.0,), {}, {})),
)
kind(
    "function of a module", lambda: _with(types.ModuleType("m"), k=lambda: 2.0), lambda s: s.k(), attr("k", lambda: 5.0)
)
kind("field of a row of a table", table, lambda s: s[0]["k"], lambda s: s["k"].__setitem__(0, 5.0))
kind("row of a table", lambda: table()[0], lambda s: s["k"], put("k", 5.0))
kind("attribute of a subclass of arrays", lambda: np.ones(1).view(Grid), lambda s: s.k, attr("k", 5.0))
kind("memoryview", lambda: memoryview(bytearray(b"25")), lambda s: float(s[0]), put(0, 53))
kind("recursion", lambda: [2.0], by_recursion, put(0, 5.0))
kind("finally", lambda: [2.0], tried_and_ended, put(0, 5.0))
kind("arguments of an exception", lambda: ValueError(2.0), lambda s: s.args[0], attr("args", (5.0,)))
kind(
    "MappingProxyType",
    lambda: (lambda d: [d, types.MappingProxyType(d)])({"k": 2.0}),
    lambda s: s[1]["k"],
    lambda s: s[0].update(k=5.0),
)
kind("a compiled method", WithCompiled, lambda s: s.method(np.float64(1.0)), attr("k", 5.0))
kind(
    "np.geterr",
    lambda: np.seterr(over="warn"),
    lambda s: 2.0 + (np.geterr()["over"] == "warn"),
    lambda s: np.seterr(over="ignore"),
    EAGER,
)
kind("weakref of an object", lambda: referred(weakref.ref), lambda s: s[1]().v, lambda s: setattr(s[0], "v", 5.0))


# -- global state ---------------------------------------------------------------------------------------------------------

VARIABLE = contextvars.ContextVar("VARIABLE", default=2.0)
LOCALS = threading.local()
_global = 2.0


def set_global(value):
    globals()["_global"] = value


def set_builtin(value):
    if value is None:
        globals().pop("abs", None)
    else:
        globals()["abs"] = value


kind("global", lambda: set_global(2.0), lambda s: _global, lambda s: set_global(5.0))
kind("globals()", lambda: set_global(2.0), lambda s: globals()["_global"], lambda s: set_global(5.0))
kind("name over a builtin", lambda: set_builtin(None), lambda s: abs(-2.0), lambda s: set_builtin(lambda x: 5.0))
kind("attribute of a module", lambda: _with(types.ModuleType("m"), k=2.0), lambda s: s.k, attr("k", 5.0))
kind("ContextVar", lambda: VARIABLE.set(2.0), lambda s: VARIABLE.get(), lambda s: VARIABLE.set(5.0))
kind("thread-local", lambda: setattr(LOCALS, "k", 2.0), lambda s: LOCALS.k, lambda s: setattr(LOCALS, "k", 5.0))
kind(
    "environment",
    lambda: os.environ.__setitem__("CHAINRULE_K", "2"),
    lambda s: float(os.environ["CHAINRULE_K"]),
    lambda s: os.environ.__setitem__("CHAINRULE_K", "5"),
)
kind(
    "sys.argv",
    lambda: sys.argv.__setitem__(slice(None), ["x"]),
    lambda s: len(sys.argv) * 1.0,
    lambda s: sys.argv.append("y"),
)
kind("recursion limit", lambda: None, lambda s: sys.getrecursionlimit() * 1.0, lambda s: None)
kind("clock", lambda: None, lambda s: 0.0 * time.time() + 2.0, lambda s: None, EAGER)
kind("date", lambda: None, lambda s: 0.0 * datetime.datetime.now().year + 2.0, lambda s: None, EAGER)
kind(
    "file",
    lambda: io.StringIO("2\n5\n7\n9\n11\n13\n15\n17"),
    lambda s: float(s.readline()),
    lambda s: s.readline(),
    EAGER,
)
kind("random.Random", lambda: random.Random(0), lambda s: s.random(), lambda s: s.seed(5), EAGER)
kind("random.random", lambda: random.seed(0), lambda s: random.random(), lambda s: random.seed(5), EAGER)
kind("default_rng", lambda: np.random.default_rng(0), lambda s: s.normal(), lambda s: s.normal(), EAGER)
kind("RandomState", lambda: np.random.RandomState(0), lambda s: s.rand(), lambda s: s.seed(5), EAGER)
kind("np.random", lambda: np.random.seed(0), lambda s: np.random.rand(), lambda s: np.random.seed(5), EAGER)
kind("generator in a list", lambda: [np.random.default_rng(0)], lambda s: s[0].normal(), lambda s: s[0].normal(), EAGER)
kind("seeded inside", lambda: None, lambda s: np.random.default_rng(3).normal(), lambda s: None)
kind("identity", lambda: [2.0], lambda s: 0.0 * id(s) + 2.0, lambda s: None, EAGER)
kind("Decimal", lambda: [decimal.Decimal("2.5")], lambda s: float(s[0]), put(0, decimal.Decimal("5.5")))
kind("Fraction", lambda: [fractions.Fraction(5, 2)], lambda s: float(s[0]), put(0, fractions.Fraction(11, 2)))
kind(
    "default dtype",
    lambda: cr.set_default_dtype(cr.float32),
    lambda s: cr.Array(cr.tensor([1.1, 2.2])),
    lambda s: cr.set_default_dtype(cr.float64),
)


# -- names in libraries that tests replace --------------------------------------------------------------------------------


def replaced(name, target, read, *new, how=SEEN, **patch):
    """Register a kind of state: a name in a library that is rebound."""
    kind(name, lambda: mock.patch(target, *new, **patch), lambda s: read(), lambda s: s.start(), how)


LINEAR = nn.Linear(2, 2)
ARGV = list(sys.argv)
ONES = cr.ones(2)


def abstract():
    return type("Abstract", (abc.ABC,), {"__module__": __name__})


class Sized(typing.Protocol):
    def extent(self) -> float: ...


Sized = typing.runtime_checkable(Sized)


def of_ours(call):
    return lambda: cr.Array(call().detach().to(cr.float64))


def imported():
    import math as m

    from numpy.linalg import norm

    return norm(X) * m.sqrt(4.0)


replaced("function of NumPy's", "numpy.sin", lambda: np.sin(X), np.cos)
replaced("what a mock returns", "numpy.linalg.norm", lambda: np.linalg.norm(X), return_value=5.0)
replaced("constant of NumPy's", "numpy.pi", lambda: np.pi, 3.0)
replaced("function of SciPy's", "scipy.special.expit", lambda: scipy.special.expit(X), np.cos)
replaced("function of math", "math.sin", lambda: math.sin(0.5), math.cos)
replaced("function of operator", "operator.add", lambda: operator.add(1.0, 2.0), operator.mul)
replaced("a builtin", "builtins.abs", lambda: abs(-2.0), lambda x: 5.0)
replaced("function of ours", "chainrule.sin", of_ours(lambda: cr.sin(ONES)), cr.cos)
replaced(
    "function of nn.functional", "chainrule.nn.functional.linear", of_ours(lambda: LINEAR(ONES)), lambda *a: a[0] * 5
)
replaced("method of a layer", "chainrule.nn.Linear.forward", of_ours(lambda: LINEAR(ONES)), lambda self, x: x * 5)
replaced("method of its base", "chainrule.nn.Module.__call__", of_ours(lambda: LINEAR(ONES)), lambda self, x: x * 5)
replaced("method of tensors", "chainrule.Tensor.exp", of_ours(lambda: ONES.exp()), lambda self: self * 5)
replaced(
    "operator of Python's", "fractions.Fraction.__add__", lambda: float(fractions.Fraction(1, 2) + 1), lambda a, b: 5.0
)
replaced("what is imported from", "numpy.linalg.norm", imported, lambda x: 5.0)
kind("module that is imported", lambda: mock.patch.dict(sys.modules, math=types.SimpleNamespace(sqrt=lambda x: 5.0)),
    lambda s: imported(), lambda s: s.start())  # fmt: skip
kind("module that is asked for", lambda: mock.patch.dict(sys.modules, math=types.SimpleNamespace(sqrt=lambda x: 5.0)),
    lambda s: importlib.import_module("math").sqrt(4.0), lambda s: s.start())  # fmt: skip
kind("__getattr__ of a module", lambda: _with(types.ModuleType("m"), __getattr__=lambda name: 2.0), lambda s: s.k,
    attr("__getattr__", lambda name: 5.0))  # fmt: skip
kind("class of a module", lambda: types.ModuleType("m"), lambda s: getattr(s, "k", 2.0),
    attr("__class__", type("M", (types.ModuleType,), {"k": 5.0})))  # fmt: skip


def lazy():
    """Return a module of a library with a lazily loaded part."""
    module = types.ModuleType("numpy.lazy")
    module.__getattr__ = lambda name: vars(module).setdefault(name, 2.0)
    return module


kind("part of a library that is not loaded", lazy, lambda s: s.k, attr("k", 5.0))
kind("contextmanager of a library", lambda: [2.0], lambda s: printed(s), put(0, 5.0), EAGER)


def printed(s):
    with np.printoptions(precision=2):
        return s[0]


# -- strings -------------------------------------------------------------------------------------------------------------

THIRDS = np.array([1 / 3, 2.0])
for name, text in {
    "str()": str, "repr()": repr, "f-string": lambda x: f"{x}", "%": lambda x: "%s" % x, "format()": "{}".format,  # noqa: UP031
    "list": lambda x: str([x]), "map(str)": lambda x: "".join(map(str, [x])), "exception": lambda x: str(ValueError(x)),
    "np.array2string": np.array2string, "Array": lambda x: str(cr.Array(x)),
}.items():  # fmt: skip
    kind(f"NumPy's print options, {name}", lambda: None, lambda s, text=text: len(text(THIRDS)) * 1.0,
        lambda s: np.set_printoptions(precision=2))  # fmt: skip
kind("NumPy's print options, scalar", lambda: THIRDS[0], lambda s: len(f"{[s]}") * 1.0,
    lambda s: np.set_printoptions(legacy="1.25"))  # fmt: skip
kind(
    "print options of tensors", lambda: cr.tensor(THIRDS), lambda s: len(str(s)) * 1.0, lambda s: cr.set_printoptions(2)
)
kind("functions that print", lambda: np.set_printoptions(formatter={"float": "{:.9f}".format}), lambda s: len(str(THIRDS)) * 1.0,
    lambda s: np.set_printoptions(formatter={"float": lambda x: "5"}), EAGER)  # fmt: skip
kind("options of pandas", lambda: pd.DataFrame({"a": THIRDS}), lambda s: len(str(s)) * 1.0,
    lambda s: pd.set_option("display.precision", 2), EAGER)  # fmt: skip
kind("locale", lambda: 2.0, lambda s: float(f"{s:n}"), lambda s: None, EAGER)

# -- implicit lookups by Python ------------------------------------------------------------------------------------------


class Point:
    __match_args__ = ("k", "j")

    def __init__(self):
        self.k, self.j = 2.0, 3.0


def matched(s):
    match s:
        case Point(2.0, j):
            return j
        case Point(k, _):
            return k


def by_key(s):
    keys = ["a", "b"]
    keys.sort(key=s.get)
    return 1.0 + (keys[0] == "a")


def operators():
    """Return an object whose class defines no operators."""
    return type("C", (), {"__index__": lambda self: 1})()


def dropped(s):
    made = Base()
    reference, known = weakref.ref(made), isinstance(made, Base) and made.k
    del made
    return known * s[0] + (reference() is None)


def added(name, function):
    return lambda s: setattr(type(s), name, function)


kind("attribute that a pattern reads", Point, matched, attr("k", 5.0))
kind(
    "attributes that patterns stand for",
    lambda: type("P", (Point,), {})(),
    matched,
    added("__match_args__", ("j", "k")),
)
kind("__bool__ that is added", operators, lambda s: 1.0 if s else 2.0, added("__bool__", lambda self: False))
kind("__eq__ that is added", operators, lambda s: 1.0 + (s == 3), added("__eq__", lambda self, x: True))
kind("__float__ that is added", operators, lambda s: float(s), added("__float__", lambda self: 5.0))
kind("__str__ that is added", operators, lambda s: len(str(s)) * 1.0, added("__str__", lambda self: "1"))
kind("__call__ that is added", operators, lambda s: 1.0 + callable(s), added("__call__", lambda self: 1))
kind(
    "__getattribute__ that is added",
    lambda: made(k=2.0),
    lambda s: s.k,
    added("__getattribute__", lambda self, name: 5.0),
)
kind("operator of a subclass of float", lambda: type("F", (float,), {})(2.0), lambda s: float(s * 1.0),
    added("__mul__", lambda self, x: 5.0))  # fmt: skip
kind(
    "__iter__ of a subclass of list",
    lambda: type("L", (list,), {})([2.0]),
    sum,
    added("__iter__", lambda self: iter([5.0])),
)
kind("class that is registered", abstract, lambda s: 1.0 + isinstance(2.0, s), lambda s: s.register(float))
kind(
    "class that is registered, issubclass",
    abstract,
    lambda s: 1.0 + issubclass(str, s),
    lambda s: s.register(str),
)
kind(
    "method of a protocol",
    lambda: made(extent=2.0),
    lambda s: 1.0 + isinstance(s, Sized),
    lambda s: delattr(type(s), "extent"),
)
kind(
    "members of an enumeration",
    lambda: enum.Enum("E", {"A": 2}),
    lambda s: len(s) * 1.0,
    lambda s: s._member_names_.append("B"),
)
kind("name of a class", lambda: type("C", (), {}), lambda s: len(s.__name__) * 1.0, attr("__name__", "Longer"))
kind(
    "subclasses",
    lambda: type("C", (), {}),
    lambda s: 1.0 + len(s.__subclasses__()),
    lambda s: ALIVE.append(type("D", (s,), {})),
    EAGER,
)
kind("dictionary of a class", lambda: type("C", (), {"k": 2.0}), lambda s: vars(s)["k"], attr("k", 5.0))
kind(
    "view of a dictionary",
    lambda: (lambda d: [d, d.values()])({"a": 2.0}),
    lambda s: sum(s[1]),
    lambda s: s[0].update(b=5.0),
)
kind("in a view of a dictionary", lambda: (lambda d: [d, d.keys()])({"a": 2.0}), lambda s: 1.0 + ("b" in s[1]),
    lambda s: s[0].update(b=5.0))  # fmt: skip
kind("method of C's that C calls", lambda: {"a": 2.0}, lambda s: sum(map(s.get, ["a"])), put("a", 5.0))
kind("what C calls a function of C's with", lambda: [[2.0]], lambda s: sum(map(sum, s)), lambda s: s[0].append(5.0))
kind("attributes that C asks for", Record, lambda s: sum(map(getattr, [s], ["k"])), attr("k", 5.0), EAGER)
kind("lists that are sorted", lambda: [[2.0], [3.0]], lambda s: sorted(s)[0][0], lambda s: s[1].__setitem__(0, 1.0))
kind(
    "method of C's that changes a list",
    lambda: [],
    lambda s: [*map(s.append, [1.0]), len(s) * 1.0][1],
    lambda s: None,
    EAGER,
)
kind("what filter() keeps", lambda: [[], [1.0]], lambda s: len(list(filter(None, s))) * 1.0, lambda s: s[0].append(5.0))
kind("what a list is sorted by", lambda: {"a": 1.0, "b": 2.0}, by_key, put("a", 9.0))
kind(
    "array that ufunc.at writes",
    lambda: np.zeros(2),
    lambda s: [np.add.at(s, 0, 1.0), s.copy()][1],
    lambda s: None,
    EAGER,
)
kind(
    "array that ufunc.reduce writes",
    lambda: np.zeros(()),
    lambda s: [np.add.reduce([1.0, s], out=(s,)), float(s)][1],
    lambda s: None,
    EAGER,
)
kind(
    "state of a generator",
    lambda: np.random.default_rng(0),
    lambda s: s.bit_generator.state["state"]["inc"] % 7 + 1.0,
    lambda s: None,
    EAGER,
)
kind("object copied", lambda: Base(), lambda s: copy.copy(s).k, attr("k", 5.0))
kind("names of eval", lambda: {"k": 2.0}, lambda s: eval("k", {}, s), put("k", 5.0))
kind("dir()", Record, lambda s: len(dir(s)) * 1.0, attr("j", 5.0), EAGER)
kind("frames", lambda: None, lambda s: 2.0 + 0 * len(inspect.stack()), lambda s: None, EAGER)
kind(
    "signature of a function",
    fresh,
    lambda s: inspect.signature(s).parameters["k"].default,
    attr("__defaults__", (5.0,)),
)
kind("lock", threading.Lock, lambda s: 1.0 + s.locked(), lambda s: s.acquire(), EAGER)
kind(
    "weak reference to what is gone",
    lambda: weakref.ref(_kept()),
    lambda s: 1.0 + (s() is None),
    lambda s: ALIVE.clear(),
)
kind("weak reference to what the function drops", lambda: [2.0], dropped, put(0, 5.0))
kind(
    "digits of decimals",
    lambda: decimal.Decimal(1),
    lambda s: float(s / 3),
    lambda s: setattr(decimal.getcontext(), "prec", 3),
)
kind("rounding of decimals", lambda: decimal.Decimal("2.5"), lambda s: float(s.quantize(decimal.Decimal(1))),
    lambda s: setattr(decimal.getcontext(), "rounding", decimal.ROUND_UP))  # fmt: skip
kind("local time", lambda: datetime.datetime(2020, 1, 1), lambda s: s.timestamp(), lambda s: None, EAGER)
kind("history of a tensor", lambda: cr.ones(2), lambda s: 1.0 + s.requires_grad, lambda s: s.requires_grad_())
kind("shape of a tensor", lambda: cr.ones(2), lambda s: s.shape[0] * 1.0, lambda s: setattr(s, "data", cr.ones(3)))
kind("writes to a tensor", lambda: cr.ones(2), lambda s: s._version * 1.0, lambda s: s.add_(1))
kind(
    "attribute of a table",
    lambda: pd.DataFrame({"a": [1.0]}),
    lambda s: getattr(s, "k", 2.0),
    lambda s: object.__setattr__(s, "k", 5.0),
)


# -- use of arguments by C -----------------------------------------------------------------------------------------------


def refill(s):
    s.clear()
    s.update([8, 0])  # which have another order now


def arrays():
    return [X.copy(), X * 3]


def changed_arrays(s):
    s[0].fill(5.0)


class Given:
    def __init__(self):
        self.k, self.v = 2.0, [2.0]


def swallowed(s):
    """Continue where a recording stops."""
    try:
        return time.time() * 0 + s[0]
    except BaseException:
        s[0] += 10
        raise
    finally:
        s[0] += 1


class Counting:
    def __init__(self, s):
        self.s = s

    def __enter__(self):
        self.s[0] += 1

    def __exit__(self, *_):
        self.s[0] += 100


def counted(s):
    with Counting(s):
        return time.time() * 0 + s[0]


def stacked(s):
    with contextlib.ExitStack() as stack:
        stack.enter_context(LOCK)
        return time.time() * 0 + s[0]


class Deleted:
    def __init__(self, s):
        self.s = s

    def __del__(self):
        self.s[0] += 1


def deleted(s):
    Deleted(s)
    return s[0]


def told_of_the_end(s):
    x = Record()
    r = weakref.ref(x, lambda _: s.append(1.0))
    del x
    return len(s) + (r() is None) * 1.0


def assigned(name, value):
    def read(s):
        before = s() if callable(s) else s.k
        setattr(s, name, value(before))
        return before

    return read


def moved(s):
    s.move_to_end(next(iter(s)))
    return next(iter(s.values()))


def shaped(s):
    before = s.ndim
    s.shape = (2, 1) if before == 1 else (2,)
    return before * 1.0


def real_part(s):
    s.real = s.real + 1
    return s.real.sum()


def then(change, read=lambda s: s[0]):
    """Return a function that changes its state, and reads it."""
    return lambda s: [change(s), read(s) * 1.0][1]


def attributes_of_locals():
    s = threading.local()
    s.n = 0
    return s


def counting_on(s):
    s.n += 1
    return s.n * 1.0


LOCK = threading.Lock()
kind("order of a set", lambda: {0} | {8}, lambda s: next(iter(s)) + 1.0, refill)
kind("element of a set", lambda: set(range(9)), lambda s: s.pop() * 1.0, lambda s: None, EAGER)
for name, call in {
    "sum of a generator": lambda s: sum(a for a in s), "sum of an iterator": lambda s: sum(iter(s)),
    "sum of chained lists": lambda s: sum(itertools.chain(s, [s[0]])), "sum of what a function gives": lambda s: sum(map(lambda a: a, s)),
    "accumulate": lambda s: list(itertools.accumulate(s))[-1], "islice": lambda s: sum(itertools.islice(s, 1)),
    "reduce": lambda s: functools.reduce(operator.add, (a for a in s)), "map of C's": lambda s: sum(map(abs, s)),
    "accumulate, gone through": lambda s: [a for a in itertools.accumulate(s)][-1],
}.items():  # fmt: skip
    kind(f"arrays, {name}", arrays, call, changed_arrays)
kind("attribute in str.format", Given, lambda s: float("{0.k}".format(s)), attr("k", 5.0), EAGER)  # noqa: UP030, UP032
kind("element in str.format", lambda: {"k": 2.0}, lambda s: float("{0[k]}".format(s)), put("k", 5.0))  # noqa: UP030, UP032
kind("number as the locale has it, str.format", lambda: 2.0, lambda s: float("{:n}".format(s)), lambda s: None, EAGER)  # noqa: UP032
kind("number as the locale has it, format()", lambda: 2.0, lambda s: float(format(s, "n")), lambda s: None, EAGER)
kind("text of an exception", lambda: ValueError(3.0), lambda s: float(str(s)), attr("args", (5.0,)))
kind("starmap", lambda: [[1.0, 2.0]], lambda s: sum(itertools.starmap(lambda a, b: a * b, s)), lambda s: s[0].reverse())
kind("starmap of C's", lambda: [[1.0, 2.0]], lambda s: sum(itertools.starmap(pow, s)), lambda s: s[0].reverse())
kind("sorted by attrgetter", lambda: [Given(), Given()], lambda s: s.index(sorted(s, key=operator.attrgetter("k"))[0]) + 1.0,
    lambda s: setattr(s[1], "k", 1.0))  # fmt: skip
kind("methodcaller", Base, operator.methodcaller("method"), attr("k", 5.0))
kind("methodcaller that changes", lambda: [2.0], then(operator.methodcaller("append", 1.0), len), lambda s: None, EAGER)
kind("operator.setitem", lambda: [2.0], then(lambda s: operator.setitem(s, 0, s[0] + 1)), lambda s: None, EAGER)
kind("operator.delitem", lambda: [2.0] * 9, then(lambda s: operator.delitem(s, 0), len), lambda s: None, EAGER)
kind("operator.iadd", lambda: [2.0], then(lambda s: operator.iadd(s, [1.0]), len), lambda s: None, EAGER)
kind("operator.iadd of an array", lambda: X.copy(), then(lambda s: operator.iadd(s, 1.0)), lambda s: None, EAGER)
kind("pack_into", lambda: bytearray(8), then(lambda s: struct.pack_into("b", s, 0, s[0] + 1)), lambda s: None, EAGER)
kind("Counter.update", collections.Counter, then(lambda s: s.update("a"), lambda s: s["a"]), lambda s: None, EAGER)
kind("shuffle", lambda: np.arange(9.0), then(lambda s: np.random.default_rng(0).shuffle(s)), lambda s: None, EAGER)
kind("OrderedDict.move_to_end", lambda: collections.OrderedDict(a=1.0, b=2.0), moved, lambda s: None, EAGER)
if native.LOOPS is not None or sys.version_info >= (3, 12):  # see docs/guide/compile.md
    kind("effects where a recording stops", lambda: [0.0], swallowed, lambda s: None, EAGER)
kind("__exit__ where a recording stops", lambda: [0.0], counted, lambda s: None, EAGER)
kind("lock in an ExitStack", lambda: [2.0], stacked, put(0, 5.0), EAGER)
kind("__del__", lambda: [0.0], deleted, lambda s: None, EAGER)
kind("what a weak reference calls", list, told_of_the_end, lambda s: None, EAGER)
kind("__class__ that is assigned", Record, assigned("__class__", lambda k: Five), lambda s: None, EAGER)
kind("__dict__ that is assigned", Record, assigned("__dict__", lambda k: {"k": k + 1}), lambda s: None, EAGER)
kind("__defaults__ that are assigned", fresh, assigned("__defaults__", lambda k: (k + 1,)), lambda s: None, EAGER)
kind(
    "__kwdefaults__ that are assigned", fresh, assigned("__kwdefaults__", lambda k: {"j": k + 1}), lambda s: None, EAGER
)
kind("attribute of C's that is assigned", lambda: decimal.Context(prec=3), lambda s: [s.prec, setattr(s, "prec", s.prec + 1)][0] * 1.0,
    lambda s: None, EAGER)  # fmt: skip
kind("attribute of a thread's", attributes_of_locals, counting_on, lambda s: None, EAGER)
kind("shape that is assigned", lambda: np.ones(2), shaped, lambda s: None, EAGER)
kind("real part that is assigned", lambda: np.zeros(2, complex), real_part, lambda s: None, EAGER)

ALIVE = []


def _kept():
    ALIVE.append(Record())
    return ALIVE[-1]


def as_before():
    sys.argv[:] = ARGV
    set_builtin(None)
    cr.set_default_dtype(cr.float32)
    cr.set_grad_enabled(True)
    np.seterr(all="warn", under="ignore")
    mock.patch.stopall()
    np.set_printoptions(precision=8, legacy=False, formatter=None)
    cr.set_printoptions(profile="default")
    pd.reset_option("display.precision")
    decimal.setcontext(decimal.Context())


def run(name, compiled):
    """Return the results of four calls with a change after the second, and the calls of the function."""
    make, read, change, _ = KINDS[name]
    state, found = make(), []

    def f(x):
        return x * read(state)

    called = cr.compile(f) if compiled else f
    try:
        for k in range(4):
            found.append(outcome(called))
            if k == 1:
                change(state)
    finally:
        as_before()
    return found, called


@pytest.mark.parametrize("name", KINDS)
def test_state_that_changes(name):
    how = KINDS[name][-1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wanted, _ = run(name, compiled=False)
        found, compiled = run(name, compiled=True)
    for got, want in zip(found, wanted, strict=True):
        assert np.array_equal(got, want) and got.dtype == want.dtype
    told = [str(w.message) for w in caught if "compile:" in str(w.message)]
    assert bool(compiled._eager) is bool(told) is (how == EAGER), told
    assert how == SEEN or (len(told) == 1 and "test_state_kinds.py" in told[0])
