"""State that a compiled function reads in loops. The watch skips reads that it has seen; changes of the state are detected all the same.

A case makes a state and a function of it. Compiled and eager calls of the function are compared, before and after changes of the state.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import sys
import types
import warnings

import numpy as np
import pytest
from compiling.outcomes import X, outcome

import chainrule as cr


def shown(s):
    return {name: repr(value) for name, value in vars(s).items() if not callable(value) and " at 0x" not in repr(value)}


@dataclasses.dataclass
class Thing:
    k: float = 2.0

    def scaled(self, x):
        return x * self.k


class Slotted:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k


def with_thing(kind=Thing, **attributes):
    """Return a state with an object of a new class, which tests may change."""
    cls = type("Own", (kind,), {})
    s = types.SimpleNamespace(cls=cls, thing=cls())
    vars(s.thing).update(attributes)
    return s


def product(s, x):
    """Multiply by an attribute of the object in each iteration."""
    for _ in range(4):
        x = x * s.thing.k
    return x


# -- attributes ----------------------------------------------------------------------------------------------------------


def set_k(s):
    s.thing.k = 3.0


def property_on_class(s):
    del s.thing.k
    s.cls.k = property(lambda self: 5.0)


def nine_for_k(self, name):
    return 9.0 if name == "k" else object.__getattribute__(self, name)


ATTRIBUTE_CHANGES = {
    "set": set_k,
    "deleted": lambda s: vars(s.thing).pop("k"),
    "deleted, set in the class": lambda s: (vars(s.thing).pop("k"), setattr(s.cls, "k", 7.0)),
    "property": property_on_class,
    "data descriptor": lambda s: setattr(s.cls, "k", property(lambda self: 5.0)),
    "getattribute": lambda s: setattr(s.cls, "__getattribute__", nine_for_k),
    "other class": lambda s: setattr(s.thing, "__class__", type("Other", (Thing,), {"k": property(lambda self: 4.0)})),
    "other dictionary": lambda s: setattr(s.thing, "__dict__", {"k": 6.0}),
    "other object": lambda s: setattr(s, "thing", Thing(8.0)),
    "getattr": lambda s: (
        vars(s.thing).pop("k"),
        setattr(Thing, "k", 2.0),
        setattr(s.cls, "__getattr__", lambda *_: 1),
    ),
}


@pytest.mark.parametrize("change", ATTRIBUTE_CHANGES.values(), ids=ATTRIBUTE_CHANGES)
@pytest.mark.parametrize("read", ["attribute", "method", "argument"])
def test_changes_of_attributes(change, read):
    reads = {
        "attribute": product,
        "method": lambda s, x: s.thing.scaled(s.thing.scaled(s.thing.scaled(x))),
        "argument": lambda s, x: sum([x * thing.k for thing in (s.thing, Thing(1.0), s.thing)]),
    }
    compare(with_thing, reads[read], change, True)


def compare(make, f, change, recorded):
    """Compare six calls, compiled and eager, with a change after the second and the fourth. ``recorded``: whether the first call is."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for compiled in (False, True):
            s = make()
            called = cr.compile(lambda x, s=s: f(s, x)) if compiled else lambda x, s=s: f(s, x)
            found.append([])
            for k in range(6):
                found[-1] += [outcome(called), shown(s)]
                if k == 0 and compiled and recorded is not None:
                    assert bool(called.recordings) is recorded, called._eager
                if k == 1:
                    change(s)
    for want, got in zip(*found, strict=True):
        same = want == got if isinstance(want, (dict, str)) else np.array_equal(want, got)
        assert same, (want, got)


def attribute_deleted_in_loop(s, x):
    own = s.cls()
    for i in range(5):
        x = x * own.k
        if i == 2:
            del own.k
    return x


def attribute_set_in_loop(s, x):
    own = s.cls()
    for _ in range(5):
        x = x * own.k
        own.k = own.k + s.thing.k
    return x


def class_set_in_loop(s, x):
    for i in range(5):
        x = x * s.thing.k
        s.cls.j = i
    return x


def outside_attribute_set_in_loop(s, x):
    for _ in range(5):
        x = x * s.thing.k
        s.thing.k = s.thing.k + 1.0
    return x


def slots(s, x):
    for _ in range(5):
        x = x * s.slotted.k
    return x


def several_objects(s, x):
    for _ in range(3):
        for thing in s.things:
            x = x * thing.k + thing.scaled(x)
    return x


def methods(s, x):
    for _ in range(4):
        x = s.thing.scaled(x)
    return x


def with_things():
    return types.SimpleNamespace(things=[Thing(float(k)) for k in range(1, 12)])


def set_method(s):
    s.thing.scaled = lambda x: x - 1.0


def set_class_method(s):
    s.cls.scaled = lambda self, x: x - self.k


ATTRIBUTES = {
    "deleted in a loop": (with_thing, attribute_deleted_in_loop, lambda s: setattr(s.cls, "k", 5.0), True),
    "deleted in a loop, base": (with_thing, attribute_deleted_in_loop, lambda s: setattr(Thing, "k", 2.0), True),
    "set in a loop": (with_thing, attribute_set_in_loop, set_k, True),
    "class set in a loop": (with_thing, class_set_in_loop, set_k, False),
    "outside set in a loop": (with_thing, outside_attribute_set_in_loop, set_k, False),
    "slots": (
        lambda: types.SimpleNamespace(slotted=Slotted(2.0)),
        slots,
        lambda s: setattr(s.slotted, "k", 3.0),
        True,
    ),
    "several objects": (with_things, several_objects, lambda s: setattr(s.things[9], "k", 0.5), True),
    "several objects, first": (with_things, several_objects, lambda s: setattr(s.things[0], "k", 0.5), True),
    "several objects, new": (with_things, several_objects, lambda s: s.things.append(Thing(0.5)), True),
    "method in the object": (with_thing, methods, set_method, True),
    "method in the class": (with_thing, methods, set_class_method, True),
    "method, its attribute": (with_thing, methods, set_k, True),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_in_loops(name):
    compare(*ATTRIBUTES[name])


# -- lists and dictionaries ----------------------------------------------------------------------------------------------


def with_list():
    s = types.SimpleNamespace(items=[1.0, 2.0, 3.0], table={"a": 2.0, "b": 3.0}, nested=([1.0], [2.0]))
    s.default = types.FunctionType((lambda acc=[]: 0).__code__, globals(), "f", ([],))
    return s


def append(items, x):
    items.append(x)


def own_list(s, x):
    items = []
    for k in range(4):
        items.append(x * k)
        if items:
            items[-1] = items[-1] + items[0]
    first, *others = items
    return sum([first, *others]) + sum([item for item in items])


def own_dictionary(s, x):
    table = {}
    for name in s.table:
        table[name] = x * s.table[name]
    for name in s.table:
        x = x + table[name]
    return x


def own_list_that_is_stored(s, x):
    items = []
    s.kept = items
    for _ in range(3):
        items.append(1.0)
    return x * len(items)


def own_list_that_is_stored_later(s, x):
    items = []
    for _ in range(3):
        items.append(1.0)
    s.kept = items
    return x * len(items)


def own_list_in_another(s, x):
    items, outer = [], []
    outer.append(items)
    for _ in range(3):
        items.append(x)
        outer[0].append(x)
    return sum(items) + len(outer[0])


def outside_list(s, x):
    for _ in range(3):
        s.items.append(1.0)
    return x * len(s.items)


def outside_list_by_a_name(s, x):
    items = s.items
    for _ in range(3):
        items.append(1.0)
    return x * len(items)


def outside_list_by_a_function(s, x):
    for _ in range(3):
        append(s.items, 1.0)
    return x * len(s.items)


def list_taken_out(s, x):
    items = vars(s).pop("items")
    for _ in range(3):
        items.append(1.0)
        items[0] = 2.0
    s.items = items
    return x * sum(items)


def list_of_a_tuple(s, x):
    for _ in range(3):
        first, second = s.nested
        x = x * first[0] + second[0]
    return x


def list_of_a_tuple_changed(s, x):
    for items in s.nested:
        for _ in range(3):
            items[0] = items[0] + 1.0
    return x * s.nested[0][0]


def cell_with_a_list(s, x):
    items = []

    def add(y):
        items.append(y)
        return items[0]

    for _ in range(3):
        x = x + add(x)
    return x * len(items)


def iterated(s, x):
    for _ in range(3):
        for item in s.items:
            x = x * item
    return x


def unpacked(s, x):
    for _ in range(3):
        a, b, c = s.items
        x = x * a + b * c
    return x


def truth(s, x):
    for _ in range(3):
        x = x * 2.0 if s.items else x * 3.0
    return x


def elements(s, x):
    for _ in range(3):
        x = x * s.items[0] + s.table["a"]
    return x


def missing_element(s, x):
    for _ in range(3):
        try:
            x = x * s.table["c"]
        except KeyError:
            x = x + 1.0
    return x


def list_that_changes_while_it_is_read(s, x):
    items = [1.0]
    for k in range(4):
        x = x * items[0] + sum(items)
        items[0] = k + s.items[0]
    return x


def list_of_arguments(s, x, *others):
    others = list(others)
    for k in range(3):
        others.append(x * k)
    return sum(others)


def default_list(s, x, items=[]):  # noqa: B006
    for _ in range(2):
        items.append(1.0)
    return x * len(items)


def keyword_dictionary(s, x):
    def inner(**table):
        for name in ("a", "b"):
            table[name] = table[name] + 1.0
        return table["a"] * table["b"]

    for _ in range(2):
        x = x * inner(**s.table)
    return x


def with_generator():
    def numbers():
        items = [1.0]
        while True:
            items.append(items[-1] + 1.0)
            yield items[-1]

    s = types.SimpleNamespace(numbers=numbers(), items=[1.0])
    next(s.numbers)
    s.next = s.numbers.__next__
    return s


def generator_from_outside(s, x):
    for _ in range(3):
        x = x * s.next()
    return x


class Numbers:
    """An iterator from outside, written in Python, whose list only its generator refers to."""

    def __init__(self):
        self.generator = with_generator().numbers

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.generator)


def iterator_in_python(s, x):
    for k in s.numbers:
        x = x * k
        if k > 6:
            return x
    return x


LISTS = {
    "own list": (own_list, lambda s: None, True),
    "own dictionary": (own_dictionary, lambda s: s.table.update(b=7.0), True),
    "own dictionary, key": (own_dictionary, lambda s: s.table.update(c=7.0), True),
    "stored": (own_list_that_is_stored, lambda s: None, False),
    "stored later": (own_list_that_is_stored_later, lambda s: None, False),
    "in another": (own_list_in_another, lambda s: None, True),
    "outside": (outside_list, lambda s: s.items.clear(), False),
    "outside, name": (outside_list_by_a_name, lambda s: s.items.clear(), False),
    "outside, function": (outside_list_by_a_function, lambda s: s.items.clear(), False),
    "taken out": (list_taken_out, lambda s: s.items.clear() or s.items.append(1.0), False),
    "tuple": (list_of_a_tuple, lambda s: s.nested[0].__setitem__(0, 5.0), True),
    "tuple, changed": (list_of_a_tuple_changed, lambda s: s.nested[0].__setitem__(0, 5.0), False),
    "cell": (cell_with_a_list, lambda s: None, True),
    "iterated": (iterated, lambda s: s.items.__setitem__(1, 5.0), True),
    "iterated, longer": (iterated, lambda s: s.items.append(5.0), True),
    "iterated, new": (iterated, lambda s: setattr(s, "items", [5.0]), True),
    "unpacked": (unpacked, lambda s: s.items.reverse(), True),
    "truth": (truth, lambda s: s.items.clear(), True),
    "elements": (elements, lambda s: s.items.__setitem__(0, 5.0), True),
    "elements, key": (elements, lambda s: s.table.update(a=5.0), True),
    "elements, gone": (elements, lambda s: s.table.clear(), True),
    "missing": (missing_element, lambda s: s.table.update(c=5.0), True),
    "changes": (list_that_changes_while_it_is_read, lambda s: s.items.__setitem__(0, 5.0), True),
    "arguments": (lambda s, x: list_of_arguments(s, x, x, s.items[0]), lambda s: s.items.__setitem__(0, 5.0), True),
    "keywords": (keyword_dictionary, lambda s: s.table.update(a=5.0), True),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_in_loops(name):
    compare(with_list, *LISTS[name])


def test_a_default_list_that_is_changed():
    for compiled in (False, True):
        f = types.FunctionType(default_list.__code__, globals(), "f", ([],))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            called = cr.compile(lambda x, f=f: f(None, x)) if compiled else lambda x, f=f: f(None, x)
            assert [float(called(np.float64(1.0))) for _ in range(4)] == [2.0, 4.0, 6.0, 8.0]


@pytest.mark.parametrize("f", [generator_from_outside, iterator_in_python])
def test_generators_from_outside(f):
    def make():
        s = with_generator()
        s.numbers = Numbers() if f is iterator_in_python else s.numbers
        return s

    compare(make, f, lambda s: None, False)


# -- variables and calls -------------------------------------------------------------------------------------------------


def with_functions():
    def cell():
        k = 2.0

        def read():
            return k

        def change(value):
            nonlocal k
            k = value

        return read, change

    s = types.SimpleNamespace(items=[1.0, 2.0], k=2.0)
    s.read, s.change = cell()
    s.first, s.second = (lambda y: y * s.k), (lambda y: y + s.k)
    return s


def cell_read(s, x):
    for _ in range(4):
        x = x * s.read()
    return x


def cell_changed(s, x):
    for _ in range(4):
        x = x * s.read()
        s.change(s.read() + 1.0)
    return x


def functions_at_one_call(s, x):
    for f in (s.first, s.second) * 3:
        x = f(x)
    return x


def closures_made_in_a_loop(s, x):
    for k in range(4):
        x = (lambda y, k=k: y * k + s.k)(x)
    return x


class Weird:
    """An object whose conversions read state."""

    def __init__(self, s):
        self.s = s

    def __abs__(self):
        return self.s.k

    def __len__(self):
        return int(self.s.k)

    def __float__(self):
        return self.s.k

    def __gt__(self, other):
        return self.s.k > other

    def __add__(self, other):
        return self.s.k + other

    __radd__ = __add__


def on_each(function):
    """Return a program that calls a function with plain numbers, then with an object that reads state."""

    def program(s, x):
        for value in (1.5, -2.5, 3.5, 4.5, s.odd):
            x = x * function(value)
        return x

    return program


def odd_state(make):
    def state():
        s = types.SimpleNamespace(k=2.0)
        s.odd = make(s)
        return s

    return state


def set_namespace_k(s):
    s.k = 5.0


FUNCTIONS = {
    "cell": (with_functions, cell_read, lambda s: s.change(5.0), True),
    "cell that changes": (with_functions, cell_changed, lambda s: s.change(5.0), False),
    "functions": (with_functions, functions_at_one_call, set_namespace_k, True),
    "functions, other": (with_functions, functions_at_one_call, lambda s: setattr(s, "second", abs), True),
    "functions, code": (
        with_functions,
        functions_at_one_call,
        lambda s: setattr(s.second, "__code__", s.first.__code__),
        True,
    ),
    "closures": (with_functions, closures_made_in_a_loop, set_namespace_k, True),
    "abs": (odd_state(Weird), on_each(abs), set_namespace_k, True),
    "float": (odd_state(Weird), on_each(float), set_namespace_k, True),
    "max": (odd_state(Weird), on_each(lambda v: float(max(v, 3.0))), set_namespace_k, None),
    "sum": (odd_state(Weird), on_each(lambda v: sum([v, 1.0])), set_namespace_k, True),
    "len": (
        lambda: types.SimpleNamespace(odd=[1.0, 2.0]),
        lambda s, x: sum([x * len(v) for v in ("ab", (1, 2), s.odd)]),
        lambda s: s.odd.append(1.0),
        True,
    ),
    "tuple": (
        lambda: types.SimpleNamespace(odd=[1.0, 2.0]),
        lambda s, x: sum([x * sum(tuple(v)[:1]) for v in ((1.0,), (2.0,), [3.0], s.odd)]),
        lambda s: s.odd.reverse(),
        True,
    ),
    "array": (lambda: types.SimpleNamespace(odd=np.array(2.0)), on_each(float), lambda s: s.odd.fill(5.0), True),
    "np.exp": (lambda: types.SimpleNamespace(odd=np.array(2.0)), on_each(np.exp), lambda s: s.odd.fill(5.0), True),
    "np.sum": (
        lambda: types.SimpleNamespace(odd=np.array([2.0])),
        on_each(lambda v: np.sum(v, axis=-1) if np.ndim(v) else np.sum(v)),
        lambda s: s.odd.fill(5.0),
        True,
    ),
    "bound methods": (
        with_thing,
        lambda s, x: [f := s.thing.scaled, [x := f(x) for _ in range(4)]][1][-1],
        set_k,
        True,
    ),
    "is None": (
        lambda: types.SimpleNamespace(k=None),
        lambda s, x: sum([x * 2.0 if s.k is None else x * s.k for _ in range(3)]),
        set_namespace_k,
        True,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls_in_loops(name):
    compare(*FUNCTIONS[name])


# -- methods, objects that are called, modules ------------------------------------------------------------------------------


class Counter:
    """Methods, ``__getattr__`` and ``__call__`` in Python, which read state."""

    def __init__(self, k):
        self.k, self.table, self.options = k, {"a": 1.0, "b": 2.0}, {"scale": 2.0}

    def __getattr__(self, name):
        if name in self.__dict__.get("table", ()):
            return self.__dict__["table"][name]
        raise AttributeError(name)

    def __call__(self, x, *rest, scale=1.0):
        return self.step(x, *rest) * scale

    def step(self, x, *rest):
        return x * self.k + self.a + sum(rest)


def with_counters(count=3):
    def make():
        cls = type("Own", (Counter,), {})
        return types.SimpleNamespace(cls=cls, counters=[cls(1.0 + k) for k in range(count)], names=["a", "c"])

    return make


def called(s, x):
    for _ in range(4):
        for counter in s.counters:
            x = counter(x)
    return x


def called_with_unpacked_arguments(s, x):
    for _ in range(4):
        for counter in s.counters:
            x = counter(x, *(1.0, 2.0), **counter.options)
    return x


def dictionaries(s, x):
    for _ in range(4):
        for counter in s.counters:
            for name in s.names:
                x = x * 2.0 if name in counter.table else x + counter.table.get(name, 1.0)
            for name, value in counter.table.items():
                x = x + value * len(name)
            x = x + sum([*counter.table.values()]) + len([*counter.table])
    return x


def own_dictionaries(s, x):
    table = {"a": x}
    for k in range(4):
        table["b"] = table.get("b", x) * k
        for name, value in table.items():
            x = x + value if name in table else x
        table.setdefault("c", x)
    return x + table.pop("c")


def own_dictionary_of_arguments(s, x):
    def scaled(x, **options):
        for name in ("scale", "shift"):
            if name not in options:
                options[name] = 1.0
        return x * options["scale"] + options.pop("shift")

    for counter in s.counters:
        x = scaled(x, **counter.options)
    return x


def change_first(name, value):
    return lambda s: setattr(s.counters[0], name, value)


METHODS = {
    "attribute": (called, change_first("k", 5.0), True),
    "attribute by __getattr__": (called, lambda s: s.counters[0].table.update(a=5.0), True),
    "attribute of its own": (called, change_first("a", 5.0), True),
    "method": (called, lambda s: setattr(s.cls, "step", lambda self, x, *rest: x - self.k), True),
    "method of one": (called, change_first("step", lambda x, *rest: x - 1.0), True),
    "__call__": (called, lambda s: setattr(s.cls, "__call__", lambda self, x: x - self.k), True),
    "__getattr__": (called, lambda s: setattr(s.cls, "__getattr__", lambda self, name: 7.0), True),
    "class of one": (
        called,
        change_first("__class__", type("Other", (Counter,), {"step": lambda s, x: x + 1.0})),
        True,
    ),
    "another": (called, lambda s: s.counters.append(s.cls(0.5)), True),
    "code": (
        called,
        lambda s: setattr(s.cls, "step", types.FunctionType((lambda self, x: x - self.k).__code__, globals())),
        True,
    ),
    "unpacked": (called_with_unpacked_arguments, lambda s: s.counters[1].options.update(scale=5.0), True),
    "unpacked, fewer": (called_with_unpacked_arguments, lambda s: s.counters[1].options.clear(), True),
    "dictionaries": (dictionaries, lambda s: s.counters[1].table.update(b=5.0), True),
    "dictionaries, more": (dictionaries, lambda s: s.counters[1].table.update(c=5.0), True),
    "dictionaries, fewer": (dictionaries, lambda s: s.counters[1].table.pop("a"), True),
    "dictionaries, names": (dictionaries, lambda s: s.names.reverse() or s.names.append("b"), True),
    "own dictionaries": (own_dictionaries, lambda s: None, True),
    "own arguments": (own_dictionary_of_arguments, lambda s: s.counters[2].options.update(shift=3.0), True),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("count", [3, 40])
def test_methods_in_loops(name, count):
    compare(with_counters(count), *METHODS[name])


class Recurrent(cr.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.extra = cr.nn.Linear(2, 2, dtype=cr.float64), cr.nn.Tanh()
        self.register_buffer("shift", cr.tensor([0.5, 1.0], dtype=cr.float64))
        self.k = 1.0
        with cr.no_grad():
            self.hidden.weight.copy_(cr.tensor([[1.0, 0.5], [0.25, 2.0]]))
            self.hidden.bias.fill_(0.5)

    def forward(self, x):
        for _ in range(4):
            x = self.extra(self.hidden(x)) * self.k + self.shift
        return x


MODULE_CHANGES = {
    "attribute": lambda net: setattr(net, "k", 3.0),
    "weight": lambda net: net.hidden.weight.data.fill_(0.5),
    "new weight": lambda net: setattr(net.hidden, "weight", cr.nn.Parameter(cr.ones(2, 2, dtype=cr.float64))),
    "buffer": lambda net: setattr(net, "shift", cr.ones(2, dtype=cr.float64)),
    "module": lambda net: setattr(net, "extra", cr.nn.ReLU()),
    "hook": lambda net: net.hidden.register_forward_hook(lambda module, args, out: out * 2.0),
    "pre-hook": lambda net: net.extra.register_forward_pre_hook(lambda module, args: (args[0] + 1.0,)),
    "forward": lambda net: setattr(net.extra, "forward", lambda x: x * 0.5),
    "hidden by an attribute": lambda net: net.__dict__.update(hidden=lambda x: x - 1.0),
    "removed": lambda net: delattr(net, "shift"),
}


@pytest.mark.parametrize("name", MODULE_CHANGES)
def test_modules_in_loops(name):
    found = []
    for compiled in (False, True):
        net = Recurrent()
        called = cr.compile(lambda x, net=net: net(x)) if compiled else net
        found.append([])
        for k in range(4):
            try:
                found[-1].append(called(cr.tensor(X)).detach().numpy())
            except AttributeError as error:
                found[-1].append(str(error))
            if k == 0 and compiled:
                assert called.recordings
            if k == 1:
                MODULE_CHANGES[name](net)
    for want, got in zip(*found, strict=True):
        np.testing.assert_array_equal(want, got)


# -- plain arrays --------------------------------------------------------------------------------------------------------


def with_arrays():
    return types.SimpleNamespace(
        a=np.array([1.0, 2.0]), rows=np.arange(6.0).reshape(3, 2), index=np.array([0, 1, 1]), big=np.arange(200.0)
    )


def operands(s, x):
    for _ in range(4):
        x = x * s.a + s.a
    return x


def operands_of_numbers_later(s, x):
    for value in (x, x, x, x, 2.0):
        x = x + np.sum(value * s.a)
    return x


def compared(s, x):
    for _ in range(4):
        x = x * 2.0 if (s.a > 1.5).any() else x + 1.0
    return x


def rows(s, x):
    for k in range(3):
        x = x * s.rows[k] + s.rows[k, 0] + s.rows[:, 1][k] + s.rows[k, ...][0]
    return x


def rows_compared(s, x):
    for k in (0, 1, 2, 0, 1, 2):
        row = s.rows[k]
        x = x * 2.0 if row[0] > 1.0 else x + 1.0
    return x


def all_elements(s, x):
    for k in range(200):
        x = x + s.big[k]
    return x


def chosen(s, x):
    for k in range(3):
        x = x + x[s.index[k]]
    return x


def attributes_of_arrays(s, x):
    for _ in range(3):
        x = x * s.a.size + s.rows.shape[0] + s.a.sum()
    return x


def written(s, x):
    own = np.zeros(2)
    for k in range(4):
        x = x * own + 1.0
        own[0] = own[0] + k
    return x


def outside_array_written(s, x):
    for _ in range(4):
        x = x * s.a
        s.a[0] = s.a[0] + 1.0
    return x


def attributes_of_numbers(s, x):
    for value in (x, x, x, s.k):
        try:
            x = x * len(value.shape)
        except AttributeError:
            x = x + 10.0
    return x


ARRAYS = {
    "operands": (operands, lambda s: s.a.fill(5.0), True),
    "operands, new": (operands, lambda s: setattr(s, "a", np.array([5.0, 6.0])), True),
    "operands, layout": (operands, lambda s: setattr(s, "a", np.array([[5.0], [6.0]])), True),
    "numbers later": (operands_of_numbers_later, lambda s: s.a.fill(5.0), True),
    "compared": (compared, lambda s: s.a.fill(0.0), True),
    "rows": (rows, lambda s: s.rows.fill(5.0), True),
    "rows, one": (rows, lambda s: s.rows.__setitem__((2, 1), 5.0), True),
    "rows, new": (rows, lambda s: setattr(s, "rows", s.rows[::-1]), True),
    "rows compared": (rows_compared, lambda s: s.rows.fill(0.0), True),
    "all elements": (all_elements, lambda s: s.big.__setitem__(150, 5.0), True),
    "index": (chosen, lambda s: s.index.fill(0), True),
    "attributes": (attributes_of_arrays, lambda s: s.a.fill(5.0), True),
    "attributes, layout": (attributes_of_arrays, lambda s: setattr(s, "a", np.ones(3)), True),
    "written": (written, lambda s: None, None),
    "outside written": (outside_array_written, lambda s: s.a.fill(5.0), False),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_in_loops(name):
    compare(with_arrays, *ARRAYS[name])


@pytest.mark.parametrize("value", [2.0, np.float64(2.0), X])
def test_attributes_of_numbers_among_the_arguments(value):
    """A Python float has no shape."""

    def f(x, value):
        for each in (x, x, x, value):
            try:
                x = x * (1 + len(each.shape))
            except AttributeError:
                x = x + 10.0
        return x

    compiled = cr.compile(f)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X, value), f(X, value))


# -- callbacks -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring reports all instructions")
def test_instructions_of_a_loop_are_reported_once(monkeypatch):
    """The number of callbacks does not depend on the number of iterations."""
    from chainrule._src import native
    from chainrule._src.compiling.guards import watch

    if not native.AVAILABLE:
        pytest.skip("the extension filters the instructions")
    counts = collections.Counter()
    look = watch.StateWatch.look

    def counted(self, stack, i):
        counts[i.name] += 1
        return look(self, stack, i)

    monkeypatch.setattr(watch.StateWatch, "look", counted)
    s = types.SimpleNamespace(
        counter=Counter(1.5),
        net=Recurrent(),
        a=np.array([1.0, 2.0]),
        thing=Thing(1.5),
        items=[1.0, 2.0],
        rows=np.ones((60, 2)),
    )

    def program(count):
        def f(x):
            found, table = [], {}
            for k in range(count):
                first, second = s.items
                for item in s.items:
                    x = x * item
                x = s.thing.scaled(x * s.a) * s.thing.k + np.tanh(x.reshape(-1)) * first + max(second, 1.0)
                x = s.counter(x, 1.0) + s.counter.step(x, *(1.0, 2.0)) + s.net.shift.sum().item()
                x = x + np.sum([*s.counter.table.values()]) * ("a" in s.counter.table)
                pair = x[0], [y * 2.0 for y in (x, x)]
                found.append(pair)
                table[k] = x if found else None
                if s.rows[k] is None or found[-1][0] is None:
                    return x
            return x

        return f

    found = []
    for count in (10, 40):
        counts.clear()
        cr.compile(program(count))(X)
        found.append(copy.copy(counts))
    assert found[0] == found[1]
