"""What is known of Python's own types and functions, and of libraries: what they read, what they change, what never changes.

What is not listed here is not known: a function that calls it is not recorded (``reads``).
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import functools
import gc
import operator
import sys
import types
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from chainrule._src.arrays.types import Params
from chainrule._src.compiling.state.guards import IMMUTABLE


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: whose Python is not looked into: what it is handed is looked at instead
_LIBRARIES = words(
    "numpy scipy pandas chainrule importlib _frozen_importlib _frozen_importlib_external typing ast re warnings tokenize"
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
READING = words(
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
    types.UnionType, BaseException, weakref.ref,
)  # fmt: skip
#: by type, the methods that change what they belong to; all others read it
_CHANGING: dict[type, frozenset[str]] = {
    list: words("append extend insert pop remove clear sort reverse __setitem__ __delitem__ __iadd__ __imul__"),
    dict: words("setdefault pop popitem update clear __setitem__ __delitem__ __ior__ move_to_end"),
    set: words(
        "add discard remove pop clear update intersection_update difference_update symmetric_difference_update __iand__ __ior__ "
        "__isub__ __ixor__"
    ),
    collections.deque: words(
        "append appendleft extend extendleft insert pop popleft remove clear rotate reverse __setitem__ __delitem__ __iadd__"
    ),
    np.ndarray: words(
        "fill sort partition put resize itemset setflags setfield byteswap __setitem__ __iadd__ __isub__ __imul__ __itruediv__ "
        "__ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__ __imatmul__"
    ),
}
_SEEN_THROUGH = frozenset(
    {
        *CONTAINERS,
        *CONSTANT,
        *BUFFERS,
        np.ndarray,
        types.SimpleNamespace,
        collections.defaultdict,
        collections.OrderedDict,
    }
)
#: functions of libraries that read or write what is outside of Python, or settings
_IMPURE = words(
    "load save savez savez_compressed loadtxt savetxt genfromtxt fromfile fromregex memmap open_memmap tofile dump dumps "
    "set_printoptions seterr seterrcall setbufsize set_string_function show_config show_runtime loadmat savemat loadarff mmread mmwrite "
    "to_csv to_pickle to_parquet to_json to_excel to_sql to_hdf to_feather to_stata to_clipboard "
    "typing.get_type_hints typing.overload typing.get_overloads typing.clear_overloads tokenize.open "
    "geterr geterrcall getbufsize set_num_threads get_num_threads set_default_device use_deterministic_algorithms "
    "get_workers set_workers get_option set_option reset_option describe_option option_context"
)
#: modules of libraries all of whose functions do
_IMPURE_MODULES = words("scipy.io scipy.datasets numpy.f2py numpy.ctypeslib pandas.io.clipboard importlib")
#: how C keeps attributes that no dictionary has
BY_C = (types.MemberDescriptorType, types.GetSetDescriptorType)
#: functions of Python's in C that write into their first argument
_PUTTERS = words(
    "_operator.setitem _operator.delitem _operator.iadd _operator.iand _operator.iconcat _operator.ifloordiv _operator.ilshift "
    "_operator.imatmul _operator.imod _operator.imul _operator.ior _operator.ipow _operator.irshift _operator.isub "
    "_operator.itruediv _operator.ixor _struct.pack_into _collections._count_elements _heapq.heappush _heapq.heappop "
    "_heapq.heapify _heapq.heapreplace _heapq.heappushpop _heapq._heappop_max _heapq._heapreplace_max _heapq._heapify_max "
    "_bisect.insort _bisect.insort_left _bisect.insort_right"
)
#: functions of NumPy's that write into their first argument
WRITERS = frozenset({np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis})
#: functions of Python's in C, by module, that read nothing but the contents of what they are given
_OF_CONTENTS = {
    "builtins": words("abs all any ascii bin chr divmod format hex len max min oct ord pow repr round sorted sum"),
    "_bisect": words("bisect bisect_left bisect_right"),
    "_functools": words("cmp_to_key"),
    "_json": words("encode_basestring encode_basestring_ascii scanstring"),
    "_operator": words(
        "abs add and_ concat contains countOf eq floordiv ge getitem gt index indexOf inv invert is_ is_not le length_hint lshift lt "
        "matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor"
    ),
    "_sre": words("ascii_iscased ascii_tolower compile getlower unicode_iscased unicode_tolower"),
    "_statistics": words("_normal_dist_inv_cdf"),
    "_string": words("formatter_field_name_split formatter_parser"),
    "_struct": words("calcsize pack unpack unpack_from"),
    "_typing": words("_idfunc"),
    "binascii": words(
        "a2b_base64 a2b_hex a2b_qp a2b_uu b2a_base64 b2a_hex b2a_qp b2a_uu crc32 crc_hqx hexlify unhexlify"
    ),
    "cmath": None,
    "math": None,
    "sys": words("intern"),
    "unicodedata": None,
    "zlib": words("adler32 compress crc32 decompress"),
}
#: others whose results depend on what they are given alone, of which more is read: attributes, classes, functions, what iterators give
_OF_ARGUMENTS = {
    "builtins": words(
        "callable delattr eval exec getattr globals hasattr hash isinstance issubclass iter locals next setattr vars __build_class__"
    ),
    "_abc": words("_abc_init _abc_instancecheck _abc_subclasscheck"),
    "_functools": words("reduce"),
    "_operator": words("call"),
    "itertools": words("tee"),
}
# Among the flags of classes: whose attributes cannot be set; that Python code made.
IMMUTABLE_TYPE, HEAP_TYPE = (
    1 << 8,
    1 << 9,
)
#: methods in C of classes that depend on what they are given alone
OF_CLASSES = words(
    "__new__ __init_subclass__ __subclasshook__ __class_getitem__ __prepare__ __instancecheck__ __subclasscheck__ mro fromkeys from_bytes "
    "fromhex fromisoformat fromordinal fromisocalendar combine from_float from_iterable maketrans"
)
#: whose methods in C read the contents of what they belong to and are given; but for those that look further
_DATA: tuple[Any, ...] = (*IMMUTABLE, *CONTAINERS, np.ndarray, np.generic, *VIEWS, *ORDERED_VIEWS)
_LOOKING_FURTHER = words(
    "__getattribute__ __setattr__ __delattr__ __init__ __new__ __reduce__ __reduce_ex__ __format__ __mod__ __rmod__ format format_map "
    "encode decode"
)
#: of Python in C, what is made of its arguments alone
MAKERS: tuple[Any, ...] = (
    *IMMUTABLE, list, tuple, dict, set, frozenset, bytearray, slice, super, property, staticmethod, classmethod, object, type,
    enumerate, zip, map, filter, reversed, memoryview, collections.deque, collections.OrderedDict, collections.defaultdict,
    decimal.Decimal, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, types.SimpleNamespace, types.MethodType,
    types.MappingProxyType, types.FunctionType, types.CellType, types.GenericAlias, array.array, weakref.ref,
)  # fmt: skip
ITERATOR_MAKERS = (enumerate, zip, map, filter, reversed)
KEY_WRAPPER = type(functools.cmp_to_key(lambda x, y: 0))
_IN_C = (
    types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)  # fmt: skip
#: what is called, in C or in a library
FUNCTIONS = (
    *_IN_C, types.MethodType, types.FunctionType, staticmethod, functools.partial, functools._lru_cache_wrapper, KEY_WRAPPER,
    np.ufunc, type(np.sum), operator.attrgetter, operator.itemgetter, operator.methodcaller,
)  # fmt: skip
#: what is made of the contents of what is given
_MAKERS_OF_DATA = frozenset({*IMMUTABLE, *CONTAINERS, bytearray, enumerate, zip, reversed, decimal.Decimal, type}) - {
    types.MappingProxyType
}
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
        and (part.__objclass__ is base or part.__objclass__ not in (object, *_SEEN_THROUGH))
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
    return _changes(type(receiver), name)


def _changes(cls: type, name: str) -> bool:
    return any(name in names for kind, names in _CHANGING.items() if issubclass(cls, kind))


def is_lock(x: object) -> bool:
    return type(x).__module__ == "_thread" and type(x).__name__ in _LOCKS


def puts(function: Any) -> bool:
    """Whether a function of C's writes into its first argument, or another one (``struct.pack_into``)."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__name__', '')}" in _PUTTERS


def is_pure(function: Any) -> bool:
    """Whether a function of C's depends on its arguments alone, and changes nothing."""
    if isinstance(getattr(function, "__self__", None), type):
        return function.__name__ in OF_CLASSES or function.__self__.__module__ == "numpy"
    return _is_listed(function, _OF_CONTENTS) or _is_listed(function, _OF_ARGUMENTS)


def _is_listed(function: Any, names: Mapping[str, frozenset[str] | None]) -> bool:
    module = getattr(function, "__module__", None) or ""
    known = names.get(module, frozenset())
    return known is None or getattr(function, "__name__", "") in known


def reads_contents(function: Any) -> bool:
    """Whether a function in C reads only the contents of its arguments, and of the data that it is bound to."""
    if isinstance(function, operator.itemgetter):
        return True
    if isinstance(function, type):
        return function in _MAKERS_OF_DATA or issubclass(function, np.number)
    if not isinstance(function, _IN_C):
        return False
    receiver, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(receiver, type):
        return is_pure(function)
    if receiver is None or isinstance(receiver, types.ModuleType):
        owner = getattr(function, "__objclass__", None)
        if owner is None:
            return _is_listed(function, _OF_CONTENTS)
        if owner is object:
            return name in ("__eq__", "__ne__", "__hash__")
    else:
        owner = type(receiver)
        if isinstance(receiver, collections.defaultdict) and name == "__getitem__":
            return False  # it makes elements
    return issubclass(owner, _DATA) and name not in _LOOKING_FURTHER and not _changes(owner, name)


def called_by(function: Any) -> list[Any]:
    """The functions that an ufunc (of ``np.frompyfunc``), or a key of ``functools.cmp_to_key``, calls."""
    return [x for x in gc.get_referents(function) if callable(x) and not isinstance(x, type)]


def takes_in_c(cls: Any) -> bool:
    """Whether code in C takes the arguments that an object of a class is made of."""
    new, init = getattr(cls.__new__, "__self__", object), getattr(cls.__init__, "__objclass__", object)
    return init is not object or new not in (object, *_CHANGING)


def is_impure(module: str, name: str) -> bool:
    """Whether a function of a library reads files, writes them, or reads or changes settings."""
    outside = any(module == m or module.startswith(f"{m}.") for m in _IMPURE_MODULES)
    reads_file = module.startswith("pandas.") and name.startswith("read_")
    return outside or reads_file or name in _IMPURE or f"{module}.{name}" in _IMPURE
