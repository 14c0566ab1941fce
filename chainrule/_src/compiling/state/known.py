"""What is known of Python's own types and functions, and of libraries: what they read, what they change, what never changes.

What is not listed here is not known: a function that calls it is not recorded (``reads``).
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import functools
import sys
import types
import weakref
from typing import Any

import numpy as np

from chainrule._src.arrays.types import Params
from chainrule._src.compiling.state.guards import IMMUTABLE


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: whose Python is not looked into: what it is handed is looked at instead
_LIBRARIES = _words(
    "numpy scipy pandas chainrule importlib _frozen_importlib _frozen_importlib_external inspect typing abc ast re dataclasses warnings "
    "tokenize types"
)
#: modules of ours that hold state as a user's would
_OPEN = ("chainrule.nn.", "chainrule.optim.", "chainrule._src.transforms.functional_call.")
#: modules that are a library's, or Python's own
CONSTANT_MODULES = _LIBRARIES | (sys.stdlib_module_names - {"sys", "os", "builtins"})

CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque, types.MappingProxyType)
WRITTEN = (list, dict, set, collections.deque)
BUFFERS = (
    bytearray,
    memoryview,
    array.array,
    np.void,
)  # np.void: a row of a structured array, in the memory of the array
FLAGS = type(np.empty(0).flags)
#: what C lets change in place; of a dtype the names of fields
CHANGED_IN_PLACE = (*BUFFERS, np.dtype, FLAGS)
#: the methods of buffers that write nothing
READING = _words(
    "__getitem__ __len__ __iter__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ tobytes tolist hex count index find copy "
    "decode startswith endswith item astype getfield view"
)
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
ORDERED_VIEWS: tuple[type, ...] = tuple(
    [type(view) for d in [collections.OrderedDict[Any, Any]()] for view in (d.keys(), d.values(), d.items())]
)
#: whose values never change
CONSTANT = (
    *IMMUTABLE, bytes, slice, np.generic, np.dtype, np.ufunc, type, types.ModuleType, types.CodeType, types.BuiltinFunctionType,
    types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.EllipsisType, types.NotImplementedType, decimal.Decimal,
    datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, property, staticmethod, classmethod, types.GenericAlias,
    types.UnionType, BaseException,
)  # fmt: skip
#: by type, the methods that change what they belong to; all others read it
_CHANGING: dict[type, frozenset[str]] = {
    list: _words("append extend insert pop remove clear sort reverse __setitem__ __delitem__ __iadd__ __imul__"),
    dict: _words("setdefault pop popitem update clear __setitem__ __delitem__ __ior__ move_to_end"),
    set: _words(
        "add discard remove pop clear update intersection_update difference_update symmetric_difference_update __iand__ __ior__ "
        "__isub__ __ixor__"
    ),
    collections.deque: _words(
        "append appendleft extend extendleft insert pop popleft remove clear rotate reverse __setitem__ __delitem__ __iadd__"
    ),
    np.ndarray: _words(
        "fill sort partition put resize itemset setflags setfield byteswap __setitem__ __iadd__ __isub__ __imul__ __itruediv__ "
        "__ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__ __imatmul__"
    ),
}
_SEEN_THROUGH = frozenset(
    {*CONTAINERS, *CONSTANT, *BUFFERS, np.ndarray, types.SimpleNamespace, collections.defaultdict}
)
#: functions of libraries that read or write what is outside of Python, or settings
IMPURE = _words(
    "load save savez savez_compressed loadtxt savetxt genfromtxt fromfile fromregex memmap open_memmap tofile dump dumps tofile "
    "set_printoptions seterr seterrcall setbufsize set_string_function show_config show_runtime read_csv read_parquet read_pickle "
    "read_json read_excel read_sql to_csv to_pickle to_parquet to_json to_excel loadmat savemat loadarff mmread mmwrite "
    "inspect.currentframe inspect.stack inspect.trace inspect.getsource inspect.getsourcelines inspect.getdoc inspect.getmembers "
    "inspect.get_annotations typing.get_type_hints "
    "geterr geterrcall getbufsize set_num_threads get_num_threads set_default_device use_deterministic_algorithms"
)
#: how C keeps attributes that no dictionary has
BY_C = (types.MemberDescriptorType, types.GetSetDescriptorType)
#: functions of Python's in C that write into their first argument
_PUTTERS = _words(
    "_operator.setitem _operator.delitem _operator.iadd _operator.iand _operator.iconcat _operator.ifloordiv _operator.ilshift "
    "_operator.imatmul _operator.imod _operator.imul _operator.ior _operator.ipow _operator.irshift _operator.isub "
    "_operator.itruediv _operator.ixor _struct.pack_into _collections._count_elements _heapq.heappush _heapq.heappop "
    "_heapq.heapify _heapq.heapreplace _heapq.heappushpop _heapq._heappop_max _heapq._heapreplace_max _heapq._heapify_max "
    "_bisect.insort _bisect.insort_left _bisect.insort_right"
)
#: functions of NumPy's that write into their first argument
WRITERS = frozenset({np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis})
#: Python's functions whose results depend on what they are given alone
_BUILTINS = _words(
    "abs all any ascii bin bool callable chr delattr divmod enumerate eval exec filter format getattr globals hasattr hash hex "
    "isinstance issubclass iter len locals map max min next oct ord pow range repr reversed round setattr sorted sum vars zip "
    "__build_class__"
)
_PURE_MODULES = frozenset(
    {
        "math", "cmath", "_operator", "operator", "itertools", "_functools", "functools", "_struct", "_bisect", "_string",
        "_sre", "unicodedata", "binascii", "zlib", "_statistics", "_json", "_collections", "collections", "_weakref", "_typing",
    }
)  # fmt: skip
# Among the flags of classes: whose attributes cannot be set; that Python code made.
IMMUTABLE_TYPE, HEAP_TYPE = (
    1 << 8,
    1 << 9,
)
# Methods of classes that look further.
_OUTSIDE = frozenset({"now", "today", "utcnow", "fromtimestamp", "__subclasses__"})
#: of Python in C, what is made of its arguments alone
MAKERS: tuple[Any, ...] = (
    *IMMUTABLE, list, tuple, dict, set, frozenset, bytearray, slice, super, property, staticmethod, classmethod, object, type,
    enumerate, zip, map, filter, reversed, memoryview, collections.deque, collections.OrderedDict, collections.defaultdict,
    decimal.Decimal, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, types.SimpleNamespace, types.MethodType,
    types.MappingProxyType, types.FunctionType, types.CellType, types.GenericAlias, array.array, weakref.ref,
)  # fmt: skip
ITERATOR_MAKERS = (enumerate, zip, map, filter, reversed)
_LOCKS = frozenset({"lock", "RLock"})


def module_of_code(code: types.CodeType, names: Params) -> str:
    """The module that code belongs to: what its globals say, but for examples in docstrings, which are their reader's."""
    module = names.get("__name__", "")
    return "" if code.co_filename.startswith("<doctest ") or not isinstance(module, str) else module


@functools.lru_cache(maxsize=4096)
def is_library(module: str) -> bool:
    """Whether the code of a module is not looked into."""
    return module.partition(".")[0] in _LIBRARIES and not f"{module}.".startswith(_OPEN)


def is_constant_module(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in CONSTANT_MODULES


def has_numbers(cls: type) -> bool:
    """Whether objects of a library's class have numbers that may change: tables, splines, distributions."""
    return cls.__module__.startswith(
        ("numpy", "scipy", "pandas", "chainrule.scipy", "chainrule.stats", "chainrule.sparse")
    )


def is_opaque(cls: type) -> bool:
    """Whether a class has methods in C that nothing is known of: what they read is not seen."""
    return any(
        isinstance(part, (types.MethodDescriptorType, types.WrapperDescriptorType))
        for base in cls.__mro__[:-1]
        if base not in _SEEN_THROUGH and base.__module__ not in ("typing", "abc")
        for part in base.__dict__.values()
    )


def is_fixed(cls: type) -> bool:
    """Whether nobody can set the attributes of a class."""
    return not cls.__flags__ & HEAP_TYPE or bool(cls.__flags__ & IMMUTABLE_TYPE)


def is_library_class(cls: type) -> bool:
    """Whether a class is one of a library's, or of Python's."""
    if cls.__module__ == "builtins":
        return not cls.__flags__ & HEAP_TYPE  # what is made by `exec` without a module says so, too
    return is_constant_module(cls.__module__)


def changes(receiver: object, name: str) -> bool:
    """Whether a method of a container or array changes it."""
    return any(name in names for kind, names in _CHANGING.items() if isinstance(receiver, kind))


def is_lock(x: object) -> bool:
    return type(x).__module__ == "_thread" and type(x).__name__ in _LOCKS


def puts(function: Any) -> bool:
    """Whether a function of C's writes into its first argument, or another one (``struct.pack_into``)."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__name__', '')}" in _PUTTERS


def is_pure(function: Any) -> bool:
    """Whether a function of C's depends on its arguments alone, and changes nothing."""
    receiver = getattr(function, "__self__", None)
    if isinstance(receiver, types.ModuleType) or receiver is None:
        module = getattr(function, "__module__", None) or ""
        if module == "builtins":
            return function.__name__ in _BUILTINS
        if module == "sys":
            return function.__name__ in ("exc_info", "exception", "intern")
        return module in _PURE_MODULES and not puts(function)
    if isinstance(receiver, type):
        return function.__name__ not in _OUTSIDE and (issubclass(receiver, MAKERS) or receiver.__module__ == "numpy")
    return False
