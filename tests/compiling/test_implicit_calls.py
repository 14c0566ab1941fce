"""Implicit calls of C functions by Python: compiled code detects changes of the state that they read, or runs eagerly."""

from __future__ import annotations

import bisect
import codecs
import collections
import copy
import dataclasses
import datetime
import functools
import inspect
import itertools
import operator
import sys
import types
import warnings

import numpy as np
import pytest
import scipy.integrate
import scipy.special
from compiling.outcomes import X, outcome

import chainrule as cr

DIGITS, DEPTH = sys.get_int_max_str_digits(), sys.getrecursionlimit()


def as_before():
    sys.set_int_max_str_digits(DIGITS)
    sys.setrecursionlimit(DEPTH)
    scipy.special.seterr(all="ignore")


def check(make, read, change, eager=False):
    """Compare four calls, compiled and eager, with a change after the second."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for compiled in (False, True):
            as_before()
            state = make()
            f = lambda x, state=state: x * read(state)
            called = cr.compile(f) if compiled else f
            found.append([])
            for k in range(4):
                found[-1].append(outcome(called))
                if k == 1:
                    change(state)
    as_before()
    for want, got in zip(*found, strict=True):
        assert np.array_equal(want, got), (want, got)
    assert bool(called._eager) is eager, called._eager


# -- how Python calls functions in C --------------------------------------------------------------------------------------


def calling(**content):
    """Return an object whose class has these special methods."""
    return type("C", (), content)()


class WithAttributes:
    def __init__(self, content):
        self.__dict__ = content


def cached(content):
    function = functools.lru_cache(lambda key: content[key])
    content["clear"] = function.cache_clear
    return function


CALLABLES = {
    "bound method": lambda d: d.get,
    "bound special method": lambda d: d.__getitem__,
    "partial": lambda d: functools.partial(dict.get, d),
    "partial of a partial": lambda d: functools.partial(functools.partial(operator.getitem, d)),
    "method of a builtin": lambda d: types.MethodType(operator.getitem, d),
    "its call": lambda d: d.get.__call__,
    "method of a proxy": lambda d: types.MappingProxyType(d).get,
    "object": lambda d: calling(__call__=d.get),
    "cached function": cached,
    "getattr": lambda d: functools.partial(getattr, WithAttributes(d)),
}


def of_k(function):
    """Return a C function that calls a function with "k", independent of its arguments."""
    return functools.partial(lambda function, *args: function("k"), function)


def on(make, use):
    """Return a way to call a function: an object made from it is used."""
    return lambda function: functools.partial(use, make(function))


def named(name, use, change=staticmethod):
    """Return a way to call a function: as a special method."""
    return on(lambda function: calling(**{name: change(function)}), use)


def of_k_named(name, use):
    return named(name, use, lambda function: staticmethod(of_k(function)))


def module(function):
    made = types.ModuleType("m")
    made.__getattr__ = function
    return made


def metaclass(**content):
    return type("M", (type,), {name: staticmethod(f) for name, f in content.items()})("C", (), {})


def first_of(things):
    for x in things:
        return x + "k"


HOW = {
    "call": lambda f: lambda: f("k"),
    "call with an iterator": lambda f: lambda: f(*(key for key in ["k"])),
    "operator.call": lambda f: lambda: operator.call(f, "k"),
    "map": lambda f: lambda: sum(map(f, ["k"])),
    "map over a generator": lambda f: lambda: sum(map(f, (key for key in ["k"]))),
    "starmap": lambda f: lambda: sum(itertools.starmap(f, [("k",)])),
    "groupby": lambda f: lambda: sum(key for key, _ in itertools.groupby(["k"], f)),
    "takewhile": lambda f: lambda: 1.0 + len(list(itertools.takewhile((lambda x: x < 3), map(f, ["k"])))),
    "reduce": lambda f: lambda: functools.reduce(lambda total, key: total + f(key), ["k"], 0.0),
    "key of sorted": lambda f: lambda: 1.0 + sorted(["k", 0], key=f).index(0) + f("k"),
    "key of min": lambda f: lambda: len(str(min(["k", 0], key=f))) * f(0),
    "key of bisect": lambda f: lambda: 1.0 + bisect.bisect(["k"], 3.0, key=f),
    "iter with a sentinel": lambda f: lambda: next(iter(functools.partial(f, "k"), None)),
    "default factory": lambda f: lambda: collections.defaultdict(functools.partial(f, "k"))["q"],
    "frompyfunc": lambda f: lambda: float(np.frompyfunc(f, 1, 1)(np.array([0], object))[0]),
    "vectorize": on(lambda f: np.vectorize(f, otypes=[float]), lambda g: g([0])[0]),
    "apply_along_axis": lambda f: lambda: float(np.apply_along_axis(lambda _: f("k"), 0, np.ones(2))),
    "quad": lambda f: lambda: scipy.integrate.quad(lambda _: f("k"), 0, 1)[0],
    "property": named("k", operator.attrgetter("k"), lambda f: property(of_k(f))),
    "__getattr__": named("__getattr__", lambda o: o.k),
    "__getattribute__": named("__getattribute__", lambda o: o.k),
    "__getattr__ of a module": on(module, lambda m: m.k),
    "__getattr__ of a metaclass": on(lambda f: metaclass(__getattr__=f), lambda m: m.k),
    "__get__": named("k", lambda o: o.k, lambda f: calling(__get__=staticmethod(of_k(f)))),
    "__missing__": on(lambda f: type("D", (dict,), {"__missing__": staticmethod(f)})(), lambda d: d["k"]),
    "__missing__ of names": on(lambda f: type("D", (dict,), {"__missing__": staticmethod(f)})(), lambda d: eval("k", {}, d)),
    "__getitem__": named("__getitem__", lambda o: o["k"]),
    "__class_getitem__": on(lambda f: type("C", (), {"__class_getitem__": staticmethod(f)}), lambda c: c["k"]),
    "__call__": named("__call__", lambda o: o("k")),
    "__add__": named("__add__", lambda o: o + "k"),
    "__add__ of what a loop gives": on(lambda f: calling(__iter__=lambda o: iter([calling(__add__=staticmethod(f))])), first_of),
    "__radd__ of an element": of_k_named("__radd__", lambda o: sum([o])),
    "__float__": of_k_named("__float__", lambda o: float(o)),
    "__index__": named("__index__", lambda o: float(range(9)[o]), lambda f: staticmethod(of_k(lambda key: int(f(key))))),
    "__new__": on(lambda f: type("C", (), {"__new__": of_k(f)}), lambda c: c()),
    "__call__ of a metaclass": on(lambda f: metaclass(__call__=f), lambda c: c("k")),
    "special method of a property": named("__getitem__", lambda o: o["k"], lambda f: property(lambda o: f)),
}  # fmt: skip
#: C passes unknown arguments to these, if the functions read more than contents
UNKNOWN = (
    "call with an iterator", "map", "map over a generator", "starmap", "groupby", "takewhile", "key of bisect", "frompyfunc",
    "__missing__", "__missing__ of names", "__getitem__", "__add__", "__add__ of what a loop gives", "special method of a property",
)  # fmt: skip
RUNS_EAGERLY = {(how, name) for how in UNKNOWN for name in ("cached function", "getattr")} | {
    ("vectorize", "cached function"),
    ("vectorize", "object"),
}


@pytest.mark.parametrize("how", HOW)
def test_functions_in_c(how):
    def make():
        content = {"k": 2.0, 0: 2.0}
        return HOW[how](CALLABLES[name](content)), content

    def change(state):
        content = state[1]
        content.update({"k": 5.0, 0: 5.0})
        content.get("clear", lambda: None)()

    for name in CALLABLES:
        check(make, lambda state: state[0](), change, eager=(how, name) in RUNS_EAGERLY)


# -- dictionaries of attributes -------------------------------------------------------------------------------------------


class AttrDict(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


class GetDict(dict):
    __getattr__ = dict.get


class OwnDict(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


class OrderedAttrDict(collections.OrderedDict):
    __getattr__ = collections.OrderedDict.__getitem__


class Net(cr.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def forward(self, x):
        return x * self.config.k


def matched(d):
    match d:
        case {"k": k}:
            return k


USES = {
    "attribute": lambda d: d.k,
    "getattr": lambda d: getattr(d, "k", 9.0),
    "attrgetter": operator.attrgetter("k"),
    "element": lambda d: d["k"],
    "values": lambda d: sum(d.values()),
    "keywords": lambda d: (lambda k: k)(**d),
    "copy": lambda d: dict(d)["k"],
    "names": lambda d: eval("k", {}, d),
    "text": lambda d: float(f"{d}".partition("2" if "2" in f"{d}" else "5")[1]),
    "format_map": lambda d: float("{k}".format_map(d)),
    "pattern": matched,
    "module": lambda d: cr.Array(Net(d)(cr.tensor(X))),
}


@pytest.mark.parametrize("cls", [AttrDict, GetDict, OwnDict, OrderedAttrDict])
def test_dictionaries_with_attributes_stay_compiled(cls):
    for use in USES.values():
        check(lambda: cls(k=2.0), use, lambda d: d.update(k=5.0))
    check(lambda: cls(inner=cls(k=2.0)), lambda d: d.inner.k, lambda d: d["inner"].update(k=5.0))
    check(lambda: AttrDict(k=2.0), USES["attribute"], lambda d: setattr(d, "k", 5.0))
    check(lambda: {"k": 2.0}, lambda d: AttrDict(d).k, lambda d: d.update(k=5.0))


# -- other state read by functions in C -------------------------------------------------------------------------------------


class Owner:
    k = property(operator.attrgetter("_k"))
    first = property(operator.itemgetter(0))

    def __init__(self, k=2.0):
        self._k = k

    def __getitem__(self, key):
        return self._k


class Heir(Owner):
    def inherited(self):
        return super().k


@dataclasses.dataclass
class Point:
    k: float = 2.0
    j: list = dataclasses.field(default_factory=lambda: [1.0])

    def __call__(self):
        return 1


class Slotted:
    __slots__ = ("k",)

    def __init__(self):
        self.k = 2.0


def bound(thing, **names):
    """Return a thing, and an object whose class has the thing's methods as special methods."""
    return [thing, calling(**{name: getattr(thing, method) for name, method in names.items()})]


def gives(values):
    return [values, calling(__iter__=lambda self: iter(values))]


def put(key, value):
    return lambda s: s.__setitem__(key, value)


def put_first(key, value):
    return lambda s: s[0].__setitem__(key, value)


def attr(name, value):
    return lambda s: setattr(s, name, value)


def function():
    return types.FunctionType((lambda a, b=2.0: b).__code__, {}, "f", (2.0,))


def longer(name):
    return lambda s: setattr(s, name, getattr(s, name) + "longer")


def stored(s):
    buffer = np.zeros(2)
    buffer[:] = s
    return buffer


def sliced(s):
    taken = [0.0]
    taken[:] = s
    return taken[0]


def unpacked(s):
    first, _ = s[1]
    return first


def handler(text="?"):
    codecs.register_error("chainrule", lambda error: (text, error.end))


def recursive(depth=0):
    return depth if depth > 400 else recursive(depth + 1)


def tried():
    try:
        return recursive()
    except RecursionError:
        return 2.0


def owners():
    return [Owner(2.0), Owner(3.0)]


LEAST = operator.attrgetter("k")
later = lambda s: s[0].__init__(5.0)
#: name: creation of the state, a function that reads it, a change, and whether the function runs eagerly
READS = {
    "property": (Owner, lambda s: s.k, attr("_k", 5.0)),
    "property of an item": (Owner, lambda s: s.first, attr("_k", 5.0)),
    "property that attrgetter reads": (Owner, lambda s: LEAST(s), attr("_k", 5.0)),
    "property of a super class": (Heir, lambda s: s.inherited(), attr("_k", 5.0)),
    "property of a metaclass": (lambda: type("M", (type,), {"k": Owner.__dict__["k"]})("C", (), {"_k": 2.0}), lambda s: s.k,
        attr("_k", 5.0)),
    "slot by its descriptor": (Slotted, lambda s: Slotted.k.__get__(s), attr("k", 5.0)),
    "element": (lambda: bound([2.0], __getitem__="__getitem__"), lambda s: s[1][0], put_first(0, 5.0)),
    "length": (lambda: bound([2.0], __len__="__len__"), lambda s: len(s[1]), lambda s: s[0].append(1)),
    "truth": (lambda: bound([], __len__="__len__"), lambda s: 1.0 if s[1] else 2.0, lambda s: s[0].append(1)),
    "containment": (lambda: bound({2.0}, __contains__="__contains__"), lambda s: 1.0 + (3.0 in s[1]), lambda s: s[0].add(3.0)),
    "slice": (lambda: bound([1], __index__="__len__"), lambda s: len("abcd"[: s[1]]), lambda s: s[0].append(1)),
    "iteration": (lambda: bound([2.0], __iter__="__iter__"), lambda s: sum(s[1]), lambda s: s[0].append(5.0)),
    "unpacking": (lambda: bound([2.0, 1.0], __iter__="__iter__"), unpacked, put_first(0, 5.0)),
    "array": (lambda: bound([2.0, 1.0], __getitem__="__getitem__", __len__="__len__"), lambda s: np.array(s[1]), put_first(0, 5.0)),
    "mapping": (lambda: bound({"k": 2.0}, __getitem__="__getitem__", keys="keys"), lambda s: {**s[1]}["k"], put_first("k", 5.0)),
    "translation": (lambda: bound({97: "2"}, __getitem__="__getitem__"), lambda s: float("a".translate(s[1])), put_first(97, "5")),
    "isinstance": (lambda: (lambda known: [known, metaclass(__instancecheck__=known.__contains__)])({2.0}),
        lambda s: 1.0 + isinstance(3.0, (int, (str, s[1]))), lambda s: s[0].add(3.0)),
    "ufunc of a function": (lambda: (lambda d: [d, np.frompyfunc(d.get, 1, 1)])({1.0: 2.0}), lambda s: float(s[1](1.0)),
        put_first(1.0, 5.0)),
    "iterator from outside": (lambda: gives(iter([2.0] * 9)), lambda s: next(iter(s[1])), lambda s: None, True),
    "names of a proxy": (lambda: (lambda d: [d, types.MappingProxyType(d)])({"k": 2.0}), lambda s: eval("k", {}, s[1]),
        put_first("k", 5.0)),
    "bytes gone through": (lambda: bytearray(b"ab"), lambda s: sum([b * 1.0 for b in s]), put(0, 122)),
    "list put into a slice": (lambda: [2.0], sliced, put(0, 5.0)),
    "array put into an array": (lambda: np.ones(2), stored, put(0, 5.0)),
    "argument of a method of sets": (lambda: [2.0], lambda s: sum({1.0}.union(s)), put(0, 5.0)),
    "argument of a subclass": (lambda: {"k": 2.0}, lambda s: type("D", (dict,), {})(s)["k"], put("k", 5.0)),
    "lists that a key gives": (lambda: [Point(j=[1.0]), Point(j=[2.0])], lambda s: 1.0 + s.index(min(s, key=lambda p: p.j)),
        lambda s: s[0].j.__setitem__(0, 9.0)),
    "arrays that are sorted": (lambda: [np.array(1.0), np.array(2.0)], lambda s: sorted(s)[0], lambda s: s[0].fill(5.0)),
    "key of objects": (owners, lambda s: min(s, key=LEAST)._k, later),
    "key of objects in a generator": (owners, lambda s: min((o for o in s), key=LEAST)._k, later),
    "comparison": (lambda: {2.0: 1.0, 3.0: -1.0}, lambda s: min([2.0, 3.0], key=functools.cmp_to_key(lambda a, b: s[a])),
        put(2.0, -1.0)),
    "comparison in C": (lambda: {2.0: 1.0, 3.0: -1.0}, lambda s: min([2.0, 3.0], key=functools.cmp_to_key(s.get)), put(2.0, -1.0)),
    "lists in an array": (lambda: np.array([[2.0], None], object)[:1], lambda s: s.sum()[0], lambda s: s[0].__setitem__(0, 5.0)),
    "attributes that map reads": (Owner, lambda s: sum(map(LEAST, [s])), attr("_k", 5.0), True),
    "classes that map asks for": (lambda: [Point()], lambda s: 1.0 + sum(map(isinstance, s, [Point])), put(0, None), True),
    "functions of a library that map calls": (lambda: None, lambda s: sum(map(np.load, ["nowhere.npy"])), lambda s: None, True),
    "dataclass as a dictionary": (Point, lambda s: dataclasses.asdict(s)["k"], attr("k", 5.0)),
    "list in a dataclass": (Point, lambda s: dataclasses.asdict(s)["j"][0], lambda s: s.j.__setitem__(0, 5.0)),
    "dataclass replaced": (Point, lambda s: dataclasses.replace(s, j=[]).k, attr("k", 5.0)),
    "text of a dataclass": (Point, lambda s: len(repr(s)), attr("k", 5.25)),
    "fields": (lambda: dataclasses.make_dataclass("P", ["k", "j"]), lambda s: len(dataclasses.fields(s)),
        lambda s: s.__dataclass_fields__.pop("j")),
    "deep copy": (lambda: {"a": [2.0]}, lambda s: copy.deepcopy(s)["a"][0], lambda s: s["a"].__setitem__(0, 5.0)),
    "static attribute": (Point, lambda s: inspect.getattr_static(s, "k"), attr("k", 5.0)),
    "signature": (function, lambda s: inspect.signature(s).parameters["b"].default, attr("__defaults__", (5.0,))),
    "signature of what is wrapped": (function, lambda s: len(inspect.signature(s).parameters), attr("__wrapped__", lambda: 1)),
    "text of a function": (function, lambda s: len(f"{s}"), longer("__qualname__")),
    "text of a list of functions": (function, lambda s: len(str([s])), longer("__qualname__")),
    "text of a module": (lambda: types.ModuleType("m"), lambda s: len(repr(s)), longer("__name__")),
    "text of a class": (lambda: type("C", (), {}), lambda s: len("%s" % s), longer("__qualname__")),  # noqa: UP031
    "text of a method": (function, lambda s: len(str(types.MethodType(s, 1))), longer("__qualname__")),
    "texts that map makes": (function, lambda s: len("".join(map(str, (f for f in [s])))), longer("__qualname__")),
    "digits of a text": (lambda: 10**700, lambda s: len(str(s)), lambda s: sys.set_int_max_str_digits(640)),
    "digits of a number": (lambda: "9" * 700, lambda s: int(s) % 7, lambda s: sys.set_int_max_str_digits(640)),
    "recursion limit": (lambda: None, lambda s: sys.getrecursionlimit(), lambda s: sys.setrecursionlimit(999)),
    "depth of a recursion": (lambda: None, lambda s: tried(), lambda s: sys.setrecursionlimit(300), True),
    "error handler": (handler, lambda s: len("\xe9".encode("ascii", "chainrule")), lambda s: handler("????")),
    "errors of special functions": (lambda: None, lambda s: np.nan_to_num(scipy.special.spence(-1.0)) + 1,
        lambda s: scipy.special.seterr(all="raise")),
    "name of a day": (lambda: datetime.date(2020, 1, 1), lambda s: len(f"{s:%A}"), lambda s: None, True),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_reads(name):
    check(*READS[name])


def test_an_exception_that_the_caller_handles():
    compiled = cr.compile(lambda x: x * (2.0 if sys.exc_info()[0] is None else 3.0))
    assert np.array_equal(compiled(X), 2 * X) and compiled.recordings
    with pytest.warns(UserWarning, match="the exception that its caller handles"):
        try:
            raise ValueError
        except ValueError:
            assert np.array_equal(compiled(X), 3 * X)


# -- functions in C that write -----------------------------------------------------------------------------------------------


def by_statement(text):
    code = compile(text, __file__, "exec")
    return lambda s: exec(code, {"thing": s[0], "o": s[1], "operator": operator})


def with_list(**methods):
    return lambda: bound([2.0] * 9, **methods)


def with_setter(k=2.0):
    content = {"k": k}
    return [content, calling(k=property(None, functools.partial(lambda o, value: content.update(k=value))))]


def pair(make):
    return lambda: [make(), None]


inserting = pair(lambda: collections.defaultdict(float))
#: name: creation of the state, and a function that writes to it
WRITES = {
    "element": (with_list(__setitem__="__setitem__"), by_statement("o[0] = thing[0] + 1")),
    "deleted element": (with_list(__delitem__="__delitem__"), by_statement("del o[0]")),
    "attribute": (lambda: bound({"k": 2.0}, __setattr__="__setitem__"), by_statement("o.k = thing['k'] + 1")),
    "property": (with_setter, by_statement("o.k = thing['k'] + 1")),
    "slot by its descriptor": (pair(Slotted), lambda s: Slotted.k.__set__(s[0], s[0].k + 1)),
    "in place": (with_list(__iadd__="__iadd__"), by_statement("o += [1.0]")),
    "operator.iadd": (with_list(__iadd__="__iadd__"), by_statement("operator.iadd(o, [1.0])")),
    "call": (with_list(__call__="append"), by_statement("o(1.0)")),
    "shift": (with_list(__lshift__="append"), by_statement("o << 1.0")),
    "conversion": (with_list(__float__="pop"), lambda s: float(s[1])),
    "map": (pair(list), lambda s: list(map(s[0].append, [1.0]))),
    "key": (pair(list), lambda s: sorted([1.0], key=s[0].append)),
    "frompyfunc": (pair(list), lambda s: np.frompyfunc(s[0].append, 1, 1)(X)),
    "partial with out": (pair(X.copy), lambda s: list(map(functools.partial(np.add, out=s[0]), [s[0]], [1.0]))),
    "missing element": (inserting, lambda s: operator.itemgetter(len(s[0]))(s[0])),
    "missing element by a key": (inserting, lambda s: sorted([len(s[0])], key=s[0].__getitem__)),
    "missing element by %": (inserting, lambda s: f"%({len(s[0])})s" % s[0]),
    "bytes": (pair(lambda: bytearray(b"a")), by_statement("thing += b'a'")),
    "attribute of a dictionary": (pair(lambda: AttrDict(k=2.0)), by_statement("thing.k += 1")),
    "iterator from outside": (lambda: gives(iter(range(99))), lambda s: list(zip(s[1], [1], strict=False))),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRITES)
def test_writes_happen_once_in_every_call(name):
    make, write = WRITES[name]
    found = []
    for compiled in (False, True):
        state = make()
        called = lambda x, state=state: [write(state), x][1]
        called = cr.compile(called) if compiled else called
        for _ in range(5):
            called(X)
        thing = list(state[0]) if name == "iterator from outside" else state[0]
        found.append(repr(thing.k if type(thing) is Slotted else thing))
    assert found[0] == found[1] and called._eager
