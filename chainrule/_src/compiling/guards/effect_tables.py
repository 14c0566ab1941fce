"""Tables of the types and functions of Python and of libraries: the state that they read or change, and values that are constant.

``reads``, ``method_calls`` and ``calls`` use the tables. A traced function that calls a C function which is not listed is refused.
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
from chainrule._src.compiling.guards.guards import IMMUTABLE
from chainrule._src.messages.source_locations import PACKAGE


def names_in(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: packages whose Python code is not watched: their arguments are guarded instead
_LIBRARIES = names_in(
    "numpy scipy pandas chainrule importlib _frozen_importlib _frozen_importlib_external typing ast re warnings tokenize"
)
#: modules of chainrule that are watched, since they have state like user code
_WATCHED = ("chainrule.nn.", "chainrule.optim.", "chainrule._src.transforms.functional_call.")
#: top-level modules of libraries and of the standard library
CONSTANT_MODULES = _LIBRARIES | (sys.stdlib_module_names - {"sys", "os", "builtins"})

CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque, types.MappingProxyType)
MUTABLE_CONTAINERS = (list, dict, set, collections.deque)
BUFFERS = (
    bytearray,
    memoryview,
    array.array,
    np.void,
)  # np.void: an element of a structured array, which shares the memory of the array
FLAGS = type(np.empty(0).flags)
#: types that can be changed in place besides containers; of a dtype the field names
CHANGED_IN_PLACE = (*BUFFERS, np.dtype, FLAGS)
#: the methods of buffers that do not write
READ_ONLY_METHODS = names_in(
    "__getitem__ __len__ __iter__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ tobytes tolist hex count index find copy "
    "decode startswith endswith item astype getfield view"
)
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
ORDERED_VIEWS: tuple[type, ...] = tuple(
    [type(view) for d in [collections.OrderedDict[Any, Any]()] for view in (d.keys(), d.values(), d.items())]
)
#: types whose values never change
CONSTANT = (
    *IMMUTABLE, bytes, slice, np.generic, np.dtype, np.ufunc, type, types.ModuleType, types.CodeType, types.BuiltinFunctionType,
    types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.EllipsisType, types.NotImplementedType, decimal.Decimal,
    datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, property, staticmethod, classmethod, types.GenericAlias,
    types.UnionType, BaseException, weakref.ref,
)  # fmt: skip
#: by type, the methods that change the object; all other methods only read it
_CHANGING: dict[type, frozenset[str]] = {
    list: names_in("append extend insert pop remove clear sort reverse __setitem__ __delitem__ __iadd__ __imul__"),
    dict: names_in("setdefault pop popitem update clear __setitem__ __delitem__ __ior__ move_to_end"),
    set: names_in(
        "add discard remove pop clear update intersection_update difference_update symmetric_difference_update __iand__ __ior__ "
        "__isub__ __ixor__"
    ),
    collections.deque: names_in(
        "append appendleft extend extendleft insert pop popleft remove clear rotate reverse __setitem__ __delitem__ __iadd__"
    ),
    np.ndarray: names_in(
        "fill sort partition put resize itemset setflags setfield byteswap __setitem__ __iadd__ __isub__ __imul__ __itruediv__ "
        "__ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__ __imatmul__"
    ),
}
_TRANSPARENT = frozenset(
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
#: functions of libraries that do input or output, or that read or change settings
_IMPURE = names_in(
    "load save savez savez_compressed loadtxt savetxt genfromtxt fromfile fromregex memmap open_memmap tofile dump dumps "
    "set_printoptions seterr seterrcall setbufsize set_string_function show_config show_runtime loadmat savemat loadarff mmread mmwrite "
    "to_csv to_pickle to_parquet to_json to_excel to_sql to_hdf to_feather to_stata to_clipboard "
    "typing.get_type_hints typing.overload typing.get_overloads typing.clear_overloads tokenize.open "
    "geterr geterrcall getbufsize set_num_threads get_num_threads set_default_device use_deterministic_algorithms "
    "get_workers set_workers get_option set_option reset_option describe_option option_context"
)
#: modules of libraries in which all functions do so
_IMPURE_MODULES = names_in("scipy.io scipy.datasets numpy.f2py numpy.ctypeslib pandas.io.clipboard importlib")
#: descriptors of attributes that C code stores outside of ``__dict__``
C_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
#: C functions of the standard library that write into an argument
_WRITING_BUILTINS = names_in(
    "_operator.setitem _operator.delitem _operator.iadd _operator.iand _operator.iconcat _operator.ifloordiv _operator.ilshift "
    "_operator.imatmul _operator.imod _operator.imul _operator.ior _operator.ipow _operator.irshift _operator.isub "
    "_operator.itruediv _operator.ixor _struct.pack_into _collections._count_elements _heapq.heappush _heapq.heappop "
    "_heapq.heapify _heapq.heapreplace _heapq.heappushpop _heapq._heappop_max _heapq._heapreplace_max _heapq._heapify_max "
    "_bisect.insort _bisect.insort_left _bisect.insort_right"
)
#: NumPy functions that write into their first argument
NUMPY_WRITERS = frozenset({np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis})
#: C functions of the standard library, by module, that read only the contents of their arguments; None: all of the module
_CONTENT_READERS = {
    "builtins": names_in("abs all any ascii bin chr divmod format hex len max min oct ord pow repr round sorted sum"),
    "_bisect": names_in("bisect bisect_left bisect_right"),
    "_functools": names_in("cmp_to_key"),
    "_json": names_in("encode_basestring encode_basestring_ascii scanstring"),
    "_operator": names_in(
        "abs add and_ concat contains countOf eq floordiv ge getitem gt index indexOf inv invert is_ is_not le length_hint lshift lt "
        "matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor"
    ),
    "_sre": names_in("ascii_iscased ascii_tolower compile getlower unicode_iscased unicode_tolower"),
    "_statistics": names_in("_normal_dist_inv_cdf"),
    "_string": names_in("formatter_field_name_split formatter_parser"),
    "_struct": names_in("calcsize pack unpack unpack_from"),
    "_typing": names_in("_idfunc"),
    "binascii": names_in(
        "a2b_base64 a2b_hex a2b_qp a2b_uu b2a_base64 b2a_hex b2a_qp b2a_uu crc32 crc_hqx hexlify unhexlify"
    ),
    "cmath": None,
    "math": None,
    "sys": names_in("intern"),
    "unicodedata": None,
    "zlib": names_in("adler32 compress crc32 decompress"),
}
#: C functions whose results depend only on their arguments, but on more than contents: attributes, classes, functions, iterators
_ARGUMENT_READERS = {
    "builtins": names_in(
        "callable delattr eval exec getattr globals hasattr hash isinstance issubclass iter locals next setattr vars __build_class__"
    ),
    "_abc": names_in("_abc_init _abc_instancecheck _abc_subclasscheck"),
    "_functools": names_in("reduce"),
    "_operator": names_in("call"),
    "itertools": names_in("tee"),
}
# flags of classes: with attributes that cannot be set (Py_TPFLAGS_IMMUTABLETYPE), made at run time (Py_TPFLAGS_HEAPTYPE)
IMMUTABLE_TYPE, HEAP_TYPE = (
    1 << 8,
    1 << 9,
)
#: C methods of classes that depend only on their arguments
OF_CLASSES = names_in(
    "__new__ __init_subclass__ __subclasshook__ __class_getitem__ __prepare__ __instancecheck__ __subclasscheck__ mro fromkeys from_bytes "
    "fromhex fromisoformat fromordinal fromisocalendar combine from_float from_iterable maketrans"
)
#: types whose C methods read only the contents of the object and of the arguments, except the methods below
_DATA: tuple[Any, ...] = (*IMMUTABLE, *CONTAINERS, np.ndarray, np.generic, *VIEWS, *ORDERED_VIEWS)
_READING_MORE = names_in(
    "__getattribute__ __setattr__ __delattr__ __init__ __new__ __reduce__ __reduce_ex__ __format__ __mod__ __rmod__ format format_map "
    "encode decode"
)
#: C classes whose constructors depend only on their arguments
CONSTRUCTORS: tuple[Any, ...] = (
    *IMMUTABLE, list, tuple, dict, set, frozenset, bytearray, slice, super, property, staticmethod, classmethod, object, type,
    enumerate, zip, map, filter, reversed, memoryview, collections.deque, collections.OrderedDict, collections.defaultdict,
    decimal.Decimal, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, types.SimpleNamespace, types.MethodType,
    types.MappingProxyType, types.FunctionType, types.CellType, types.GenericAlias, array.array, weakref.ref,
)  # fmt: skip
ITERATOR_CONSTRUCTORS = (enumerate, zip, map, filter, reversed)
KEY_WRAPPER = type(functools.cmp_to_key(lambda x, y: 0))
_C_FUNCTIONS = (
    types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)  # fmt: skip
#: types of C functions and of functions of libraries
FUNCTIONS = (
    *_C_FUNCTIONS, types.MethodType, types.FunctionType, staticmethod, functools.partial, functools._lru_cache_wrapper, KEY_WRAPPER,
    np.ufunc, type(np.sum), operator.attrgetter, operator.itemgetter, operator.methodcaller,
)  # fmt: skip
#: classes that are constructed from the contents of their arguments
_DATA_CONSTRUCTORS = frozenset(
    {*IMMUTABLE, *CONTAINERS, bytearray, enumerate, zip, reversed, decimal.Decimal, type}
) - {types.MappingProxyType}
_LOCKS = frozenset({"lock", "RLock"})


def module_of_code(code: types.CodeType, names: Params) -> str:
    """Return the name of the module of a code object; "" for doctests, which count as user code."""
    module = names.get("__name__")
    if module is None and code.co_filename.startswith(PACKAGE):
        return "chainrule"  # a rule that chainrule has compiled, with other globals than those of its module
    return "" if code.co_filename.startswith("<doctest ") or not isinstance(module, str) else module


@functools.lru_cache(maxsize=4096)
def is_library(module: str) -> bool:
    """Return whether a module belongs to a library whose code is not watched."""
    return module.partition(".")[0] in _LIBRARIES and not f"{module}.".startswith(_WATCHED)


def is_constant_module(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in CONSTANT_MODULES


def has_numbers(cls: type) -> bool:
    """Return whether objects of a library class may have mutable numbers: tables, splines, distributions."""
    return cls.__module__.startswith(
        ("numpy", "scipy", "pandas", "chainrule.scipy", "chainrule.stats", "chainrule.sparse")
    )


def is_opaque(cls: type) -> bool:
    """Return whether a class has C methods that are not listed, whose reads cannot be seen."""
    return any(
        isinstance(part, (types.MethodDescriptorType, types.WrapperDescriptorType))
        and (part.__objclass__ is base or part.__objclass__ not in (object, *_TRANSPARENT))
        for base in cls.__mro__[:-1]
        if base not in _TRANSPARENT and base.__module__ not in ("typing", "abc")
        for part in base.__dict__.values()
    )


def has_fixed_attributes(cls: type) -> bool:
    """Return whether the attributes of a class cannot be set."""
    return not cls.__flags__ & HEAP_TYPE or bool(cls.__flags__ & IMMUTABLE_TYPE)


def is_library_class(cls: type) -> bool:
    """Return whether a class belongs to a library or to Python."""
    if cls.__module__ == "builtins":
        return not cls.__flags__ & HEAP_TYPE  # classes made by `exec` without a module have this name, too
    return is_constant_module(cls.__module__)


def method_changes(receiver: object, name: str) -> bool:
    """Return whether a method of a container or array changes it."""
    return _class_method_changes(type(receiver), name)


def _class_method_changes(cls: type, name: str) -> bool:
    return any(name in names for kind, names in _CHANGING.items() if issubclass(cls, kind))


def is_lock(x: object) -> bool:
    return type(x).__module__ == "_thread" and type(x).__name__ in _LOCKS


def writes_argument(function: Any) -> bool:
    """Return whether a C function writes into an argument."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__name__', '')}" in _WRITING_BUILTINS


def is_pure(function: Any) -> bool:
    """Return whether a C function depends only on its arguments, and changes nothing."""
    if isinstance(getattr(function, "__self__", None), type):
        return function.__name__ in OF_CLASSES or function.__self__.__module__ == "numpy"
    return _is_listed(function, _CONTENT_READERS) or _is_listed(function, _ARGUMENT_READERS)


def _is_listed(function: Any, names: Mapping[str, frozenset[str] | None]) -> bool:
    module = getattr(function, "__module__", None) or ""
    listed = names.get(module, frozenset())
    return listed is None or getattr(function, "__name__", "") in listed


def reads_contents(function: Any) -> bool:
    """Return whether a C function reads only the contents of its arguments and of the object that it is bound to."""
    if isinstance(function, operator.itemgetter):
        return True
    if isinstance(function, type):
        return function in _DATA_CONSTRUCTORS or issubclass(function, np.number)
    if not isinstance(function, _C_FUNCTIONS):
        return False
    receiver, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(receiver, type):
        return is_pure(function)
    if receiver is None or isinstance(receiver, types.ModuleType):
        owner = getattr(function, "__objclass__", None)
        if owner is None:
            return _is_listed(function, _CONTENT_READERS)
        if owner is object:
            return name in ("__eq__", "__ne__", "__hash__")
    else:
        owner = type(receiver)
        if isinstance(receiver, collections.defaultdict) and name == "__getitem__":
            return False  # it may add an element
    return issubclass(owner, _DATA) and name not in _READING_MORE and not _class_method_changes(owner, name)


def called_by(function: Any) -> list[Any]:
    """Return the functions that a ufunc of ``np.frompyfunc``, or a key of ``functools.cmp_to_key``, calls."""
    return [x for x in gc.get_referents(function) if callable(x) and not isinstance(x, type)]


def is_constructed_in_c(cls: Any) -> bool:
    """Return whether C code gets the arguments of a class's constructor."""
    new, init = getattr(cls.__new__, "__self__", object), getattr(cls.__init__, "__objclass__", object)
    return init is not object or new not in (object, *_CHANGING)


def is_impure(module: str, name: str) -> bool:
    """Return whether a library function reads or writes files, or reads or changes settings."""
    outside = any(module == m or module.startswith(f"{m}.") for m in _IMPURE_MODULES)
    reads_file = module.startswith("pandas.") and name.startswith("read_")
    return outside or reads_file or name in _IMPURE or f"{module}.{name}" in _IMPURE
