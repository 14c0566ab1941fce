"""Classes that change after a function was recorded: all combinations of changes and uses."""

from __future__ import annotations

import abc
import collections.abc
import copy
import dataclasses
import math
import operator
import types

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.compiling.guards import classes, guards
from chainrule._src.compiling.guards.guards import GuardKind

X = np.array([1.0, 2.0])


def family():
    """Return an object ``s`` of a class with two bases, a grandparent, a metaclass and a descriptor; and other classes."""

    class Meta(type):
        pass

    class Runs:
        def __call__(self):
            return self.k

        __enter__ = __call__

        def __hash__(self):
            return 0

        def __reduce__(self):
            return type(self), ()

        def __exit__(self, *_):
            return None

    class Root(Runs):
        k = 2.0

        def method(self):
            return 2.0

    class Mixin:
        pass

    class Mid(Root):
        pass

    class Descriptor:
        value = 3.0

    class C(Mixin, Mid, metaclass=Meta):
        d = Descriptor()

    class Other(Root, metaclass=Meta):
        k = 7.0
        d = Descriptor()

    class Third(Runs):
        k = 11.0

        def method(self):
            return 12.0

    class Keeper(type):
        def __new__(cls, *args):
            return C

    class Abstract(abc.ABC):  # noqa: B024
        pass

    class BaseError(Exception):
        pass

    class SomeError(BaseError):
        pass

    s = C()
    of_classes = {
        cls.__name__: cls
        for cls in (Meta, Root, Mixin, Mid, Descriptor, C, Other, Third, Keeper, Abstract, BaseError, SomeError)
    }
    return types.SimpleNamespace(s=s, table={s: 1.0}, **of_classes)


def matched(f):
    match f.s:
        case [*rest]:
            return len(rest) + 20.0
        case f.Third():
            return 3.0
        case f.Root(k=2.0):
            return 4.0
        case f.Root(a):
            return a
    return 6.0


def caught(f):
    try:
        raise f.SomeError
    except f.BaseError as error:
        return len(str(error)) + 1.0
    except Exception:
        return 5.0


def entered(f):
    with f.s as s:
        return s


def derived(f):
    class New(f.C):
        pass

    return New().k + hasattr(New, "extra")


def assigned(f):
    new = f.C()
    new.extra = 3.0
    return getattr(new, "extra", 8.0)


def incremented(f):
    s = f.s
    s += 1.0
    return s


def dispatched(f):
    return {f.C: 1.0, f.Other: 2.0, f.Third: 3.0}[type(f.s)]


#: functions of the object; exceptions count as results
USES = {
    "attribute": lambda f: f.s.k, "missing attribute": lambda f: getattr(f.s, "extra", 1.0), "method": lambda f: f.s.method(),
    "attribute of the class": lambda f: f.C.k, "missing attribute of the class": lambda f: hasattr(f.C, "extra"),
    "descriptor": lambda f: f.s.d.value, "super()": lambda f: super(f.C, f.s).k, "attribute that is set": assigned,
    "object in containers": lambda f: sum([o.k for part in [[f.s]] for o in part]), "__dict__": lambda f: len(f.s.__dict__) + 1.0,
    "addition": lambda f: f.s + 1.0, "reflected shift": lambda f: 1 << f.s, "in-place addition": incremented,
    "divmod": lambda f: divmod(f.s, 2)[0], "comparison": lambda f: f.s < 1.0, "equality": lambda f: f.s == 1.0,
    "truth": lambda f: 2.0 if f.s else 3.0, "len": lambda f: len(f.s), "element": lambda f: f.s[0],
    "slice": lambda f: len("abcd"[: f.s]), "iteration": lambda f: sum(f.s), "reversed": lambda f: next(reversed(f.s)),
    "float": lambda f: float(f.s), "floor": lambda f: math.floor(f.s), "index": lambda f: [1.0, 2.0, 3.0][f.s],
    "bytes": lambda f: len(bytes(f.s)), "hash": lambda f: f.table.get(f.s, 2.0), "call": lambda f: f.s(), "with": entered,
    "unpacked": lambda f: (lambda *args: len(args))(*f.s), "length_hint": lambda f: operator.length_hint(f.s),
    "in a list": lambda f: 1.0 in [f.s], "text": lambda f: len(f"{f.s}"), "text of the class": lambda f: len(repr([f.C])),
    "NumPy array": lambda f: np.array(f.s).sum(), "NumPy function": lambda f: np.add(f.s, 1.0), "type()": dispatched,
    "name": lambda f: len(type(f.s).__name__), "isinstance": lambda f: isinstance(f.s, (f.Mid, f.Third)),
    "issubclass": lambda f: issubclass(f.C, f.Root), "abstract class": lambda f: isinstance(f.s, int | f.Abstract),
    "match": matched, "except": caught, "instance": lambda f: f.C().k, "class made of it": derived,
    "class that a metaclass returns": lambda f: f.Keeper("New", (), {}).k,
    "subscript of the class": lambda f: f.C[int], "operator of the metaclass": lambda f: 2.0 if f.C else 3.0,
    "copy": lambda f: copy.copy(f.s).k, "method found by C": lambda f: sum(map(float, [f.s])),
    "library": lambda f: dataclasses.is_dataclass(f.s),
}  # fmt: skip

#: special methods, and their results
SPECIAL = {
    "__add__": 9.0, "__radd__": 9.0, "__iadd__": 9.0, "__rlshift__": 9.0, "__divmod__": (9.0, 1.0), "__lt__": True, "__eq__": True,
    "__bool__": False, "__len__": 4, "__getitem__": 5.0, "__float__": 4.0, "__floor__": 9.0, "__index__": 2, "__bytes__": b"abc",
    "__hash__": 1, "__call__": 9.0, "__enter__": 9.0, "__exit__": None, "__length_hint__": 9, "__repr__": "abc", "__str__": "ab",
    "__format__": "a", "__setattr__": None, "__class_getitem__": 9.0,
    "__init__": None, "__array_ufunc__": 9.0, "__instancecheck__": True, "__subclasscheck__": True,
}  # fmt: skip


def special(name, value):
    if name == "__getitem__":
        return lambda self, key: value if key in (0, int) else [][0]
    return lambda *args, **kwargs: value


def put(owner, name, value):
    return lambda f: setattr(getattr(f, owner), name, value)


#: values of other attributes
OTHERS = {
    "k": 5.0, "extra": 5.0, "method": lambda self: 5.0, "__iter__": lambda self: iter([5.0, 6.0]), "__match_args__": ("k",),
    "__reversed__": lambda self: iter([5.0, 6.0]), "__array__": lambda self, dtype=None, copy=None: np.full(3, 9.0),
    "__getattribute__": lambda self, name: 5.0 if name == "k" else object.__getattribute__(self, name),
    "__new__": lambda cls: types.SimpleNamespace(k=5.0), "__reduce__": lambda self: (types.SimpleNamespace, ()),
    "__copy__": lambda self: types.SimpleNamespace(k=5.0),
    "__name__": "Longer", "__qualname__": "Longer" * 9, "__dataclass_fields__": {},
}  # fmt: skip
CHANGES = {
    f"{owner}.{name}": put(owner, name, special(name, value))
    for owner in ("C", "Root", "Mixin", "Meta")
    for name, value in SPECIAL.items()
}
CHANGES |= {
    f"{owner}.{name}": put(owner, name, value) for owner in ("C", "Root", "Mixin") for name, value in OTHERS.items()
}
CHANGES |= {
    "property": put("Root", "k", property(lambda self: 5.0)),
    "__get__ of the descriptor": put("Descriptor", "__get__", lambda *args: types.SimpleNamespace(value=8.0)),
    "__set__ of the descriptor": put("Descriptor", "__set__", lambda *args: None),
    "bases": lambda f: setattr(f.C, "__bases__", (f.Other,)), "bases of a base": lambda f: setattr(f.Mid, "__bases__", (f.Third,)),
    "bases of an exception": lambda f: setattr(f.SomeError, "__bases__", (type("E", (Exception,), {}),)),
    "text of an exception": put("BaseError", "__str__", lambda self: "abc"), "class": lambda f: setattr(f.s, "__class__", f.Other),
    "class of another kind": lambda f: setattr(f.s, "__class__", f.Third),
    "metaclass": lambda f: setattr(f.C, "__class__", type("M", (f.Meta,), {"__bool__": lambda cls: False, "extra": 1.0})),
    "class of the descriptor": lambda f: setattr(vars(f.C)["d"], "__class__", type("D", (), {"value": 8.0})),
    "attribute is no more": lambda f: delattr(f.Root, "k"), "object's attribute": lambda f: setattr(f.s, "k", 5.0),
    "dictionary": lambda f: setattr(f.s, "__dict__", {"k": 5.0, "a": 0, "extra": 3.0}),
    "registered": lambda f: f.Abstract.register(f.Root),
    "registered sequence": lambda f: [put("C", "__len__", lambda self: 0)(f), collections.abc.Sequence.register(f.C)],
}  # fmt: skip


def number(x):
    if isinstance(x, (bool, int, float, np.generic, np.ndarray)):
        return float(np.sum(x))
    return 1.5


def results(use, change, compiled):
    """Return the results of a function before and after a change, and the calls."""
    f = family()

    def function(x):
        try:
            value = number(USES[use](f))
        except (TypeError, AttributeError, IndexError, KeyError):
            value = 99.0
        return x * value

    called = cr.compile(function) if compiled else function
    found = [called(X).tolist(), called(X).tolist()]
    CHANGES[change](f)
    return [*found, called(X).tolist(), called(X).tolist()], called


def all_changes_are_seen(use):
    matter = 0
    for change in CHANGES:
        wanted, _ = results(use, change, compiled=False)
        if wanted[1] != wanted[2]:
            matter += 1
            found, called = results(use, change, compiled=True)
            assert found == wanted, change
            assert called.recordings, change
    assert matter


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("use", USES)
def test_changes_of_classes_are_seen(use):
    all_changes_are_seen(use)


@pytest.mark.parametrize("use", ["attribute", "addition", "isinstance", "text of the class", "class made of it"])
def test_changes_of_classes_are_seen_without_versions(use, monkeypatch):
    """Python has no version tag left after a thousand changes of a class; without the extension tags are not read."""
    monkeypatch.setattr(guards, "version_of", guards._version_in_python)
    monkeypatch.setattr(classes, "version_of", guards._version_in_python)
    all_changes_are_seen(use)


HARMLESS = {
    "counter": lambda cls, k: setattr(cls, "count", k),
    "cache of a base": lambda cls, k: setattr(cls.__base__, "cache", {k: k}),
    "attribute that is put back": lambda cls, k: [setattr(cls, "k", 5.0), setattr(cls, "k", 2.0)],
    "equal number": lambda cls, k: setattr(cls, "k", float("2.0")),
    "annotations": lambda cls, k: setattr(cls, "__annotations__", {"k": float}),
    "another subclass": lambda cls, k: type("D", (cls,), {}),
    "registered class": lambda cls, k: ABSTRACT.register(type("D", (), {})),
}
ABSTRACT = abc.ABCMeta("Abstract", (), {})


@pytest.mark.parametrize("change", HARMLESS)
def test_changes_that_do_not_matter_record_nothing_again(change):
    cls = type("C", (type("B", (), {}),), {"k": 2.0, "__mul__": lambda self, x: x * self.k, "count": 0})
    s = cls()
    compiled = cr.compile(lambda x: (s * x) * (1.0 if isinstance(s, ABSTRACT) else 2.0))
    for k in range(5):
        assert compiled(X).tolist() == [4.0, 8.0]
        HARMLESS[change](cls, k)
    (tree,) = [tree for trees in compiled._trees.values() for tree in trees]
    assert len(tree.guard_sets._sets) == len(compiled.recordings) == 1 and not compiled._eager
    assert tree.guard_sets.hold()
    assert guards._first_broken(tree.guard_sets._sets[0], 0, guards.MISSING) == -1, "guards are not renewed"


def test_one_guard_stands_for_a_class():
    f = family()
    f.C.__add__ = f.C.__mul__ = f.C.__float__ = lambda self, x=0.0: x + 1.0
    compiled = cr.compile(lambda x: x * ((f.s + 1.0) * 2.0 + float(f.s) + len([f.s]) + f.s.k))
    compiled(X)
    kinds = [guard.kind for guard in compiled.recordings[0].guard_sets.guards if guard.target in (f.C, f.Meta)]
    assert sorted(kinds) == [GuardKind.VERSION, GuardKind.VERSION, GuardKind.CLASS]


def test_branches_share_the_guard_of_a_class():
    cls = type("C", (), {"k": 2.0, "j": 3.0})
    compiled = cr.compile(lambda x: x * cls.k if x.sum() > 0 else x * cls.j)
    for k in range(2):
        assert (compiled(X).tolist(), compiled(-X).tolist()) == ([2.0, 4.0], [-3.0 - k, -6.0 - 2 * k])
        cls.j = 4.0
    assert len(compiled.recordings) == 4
    cls.k = 5.0
    assert compiled(X).tolist() == [5.0, 10.0]
