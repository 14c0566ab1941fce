"""Handle reads of Python objects: add guards, or refuse the trace.

``instructions`` and ``calls`` call the methods of ``Reads``. Methods ``guard_…`` add guards on an object. Methods ``note_…`` handle an
object that an operator or C code uses, and choose its guards.
"""

from __future__ import annotations

import collections
import contextlib
import decimal
import functools
import gc
import operator
import sys
import types
import warnings
from abc import ABCMeta, get_cache_token
from collections.abc import Callable, Iterable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from chainrule._src.api.array import Array, has_attribute
from chainrule._src.compiling.guards.effect_tables import (
    C_DESCRIPTORS,
    CHANGED_IN_PLACE,
    CONSTANT,
    CONTAINERS,
    FUNCTIONS,
    HEAP_TYPE,
    has_fixed_attributes,
    has_numbers,
    is_constant_module,
    is_library,
    is_library_class,
    is_lock,
    is_opaque,
)
from chainrule._src.compiling.guards.guards import (
    IMMUTABLE,
    MISSING,
    GuardKind,
    abc_registration,
    as_tuples,
    attributes_of,
    class_attribute,
    elements_of,
    function_parts,
    version_of,
)
from chainrule._src.compiling.guards.implicit import ImplicitCalls, is_named, is_watched
from chainrule._src.compiling.guards.log import INSTEAD
from chainrule._src.compiling.guards.objects import (
    CHAINRULE_TYPES,
    PLAIN,
    VALUES,
    attribute_or_missing,
    classes_in,
    content_in_place,
    element_or_missing,
    flat_items,
    get_or_missing,
    given_by,
    has_class,
    is_called,
    is_iterator,
    is_library_context,
    is_python,
    random_types,
    shown_by,
)
from chainrule._src.compiling.guards.settings import digits_of_decimals, printing_of_arrays
from chainrule._src.compiling.guards.snapshots import Unknown, state_snapshot
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray
_CHANGED_BY_TRACING = frozenset({"filters", "onceregistry", "defaultaction"})


#: attributes of an array through which C code reads its numbers
_SHOWING_NUMBERS = frozenset({"data", "flat", "ctypes", "__array_interface__", "__array_struct__"})
_LAYOUT_ATTRIBUTES = frozenset(
    {"shape", "size", "dim", "ndim", "numel", "dtype", "requires_grad", "is_leaf", "grad_fn"}
)


#: attributes of values that depend on more than their type
_OF_MEMORY = frozenset({"base", "data_ptr", "_version"})
#: types of objects that have no attributes of their own, or other ones than those in their dictionary
_WITH_OTHER_ATTRIBUTES = (type, ModuleType, MethodType, super, ndarray, *CHAINRULE_TYPES, *CHANGED_IN_PLACE)
#: attributes by which objects give NumPy access to their memory
_MEMORY = ("__array_interface__", "__array_struct__")
#: types whose text contains a name
_SHOWN_BY_NAME = (FunctionType, BuiltinFunctionType, ModuleType)
#: types whose text contains the texts of their parts
_COMPOSITE = (slice, types.SimpleNamespace, MethodType, functools.partial, types.GenericAlias)


def _is_default(method: object) -> bool:
    """Return whether a method that makes texts is the default of all objects."""
    return any(method is each for each in (object.__repr__, object.__str__, object.__format__))


class Reads(ImplicitCalls):
    """A log with reads of attributes, elements, operands, and arguments of unwatched code."""

    def guard_item(self, x: dict[Any, Any], key: object) -> Any:
        """Guard and return the value of a key of a dictionary, or MISSING."""
        found = dict.get(x, key, MISSING)
        self.guard(GuardKind.ITEM, x, key, found, (GuardKind.ITEM, type(key), key))
        return found

    def guard_key(self, x: dict[Any, Any], key: object) -> Any:
        """Guard and return the value of a key that user code looks up."""
        try:
            hash(key)
        except TypeError:  # the instruction raises it, too
            return None
        return self.guard_item(x, key)

    def guard_elements(self, x: object) -> None:
        """Guard all elements of a container."""
        x = shown_by(x)
        if type(x) is not tuple:
            self.guard(GuardKind.ELEMENTS, x, None, elements_of(x))

    def guard_length(self, x: Any) -> None:
        """Guard the length of a container or array."""
        x = shown_by(x)
        self.guard_class_use(x)
        if has_class(x, ndarray):
            self.guard_array(x)
        elif not self.guard_mutable_content(x) and has_class(x, CONTAINERS) and not has_class(x, (tuple, frozenset)):
            self.guard(GuardKind.LENGTH, x, None, len(x))

    def guard_class_attribute(self, cls: type, name: str) -> Any:
        """Guard and return an attribute of a class or its bases, unbound."""
        for content in self.guard_class(cls):
            content.read(name)
        return class_attribute(cls, name)

    def guard_class_use(self, x: object) -> None:
        """Guard the class of an object that an operator or C code uses; for a class also the class itself."""
        if type(x) not in PLAIN:
            self.guard_type(x)
            self.note_special_functions(x)
            if has_class(x, type):
                self.guard_class(x)  # type: ignore[arg-type]

    def guard_isinstance(self, x: object, cls: Any) -> None:
        """Guard the result of ``isinstance``."""
        self.guard_type(x)
        self.guard_issubclass(type(x), cls)
        if has_class(x, CHAINRULE_TYPES):
            return
        for each in classes_in(cls):
            self.note_special_method(each, "__instancecheck__", x)
            for base in each.__mro__ if getattr(each, "_is_protocol", False) else ():
                for name in (*vars(base), *vars(base).get("__annotations__", ())):
                    self.guard_attribute(x, name)

    def guard_issubclass(self, kind: type, cls: Any) -> None:
        """Guard the result of ``issubclass``, which registrations with abstract classes may change."""
        for each in classes_in(cls):
            self.note_special_method(each, "__subclasscheck__", kind)
            if type(each) is not type:
                self.guard_class_use(each)
            if not has_class(each, type):
                self.guard_registrations()
            if has_class(each, ABCMeta) and not (has_fixed_attributes(kind) and issubclass(kind, each)):
                found = abc_registration(each, kind)
                self.guard(GuardKind.REGISTERED, each, kind, found, (GuardKind.REGISTERED, id(kind)))

    def note_text(self, operands: Iterable[Any], method: str = "__str__", seen: set[int] | None = None) -> None:
        """Guard the texts of objects, made by ``__str__`` or ``__repr__``."""
        seen = set() if seen is None else seen
        x: Any
        for x in map(shown_by, operands):
            if id(x) in seen:
                continue
            seen.add(id(x))
            if has_class(x, (np.generic, *CONTAINERS)):  # texts of NumPy scalars depend on the print options
                self.guard_check(np.get_printoptions, printing_of_arrays, "printing")
            if has_class(x, int):
                self.note_int_conversion(x.bit_length() // 3)
            elif has_class(x, CONTAINERS):
                self.note_text(elements_of(x), "__repr__", seen)
            elif has_class(x, BaseException):
                self.note_text(x.args, "__repr__" if len(x.args) > 1 else method, seen)
            elif has_class(x, _COMPOSITE) or (is_iterator(x) and not has_class(x, CHAINRULE_TYPES)):
                self.note_text(gc.get_referents(x), "__repr__", seen)
            elif has_class(x, type):
                self._guard_name_text(x)
            elif has_class(x, _SHOWN_BY_NAME) or all(
                _is_default(class_attribute(type(x), name)) for name in (method, "__repr__")
            ):
                self._guard_name_text(x)
                self._guard_name_text(type(x))

    def _guard_name_text(self, x: Any) -> None:
        """Guard a text that consists of the name of an object or its class."""
        if not has_class(class_attribute(type(x), "__repr__"), FunctionType):
            self.guard_check(x, repr, "repr")

    def note_int_conversion(self, digits: int) -> None:
        """Guard the limit of digits, if an integer of so many digits is converted to or from a text."""
        if digits > sys.int_info.str_digits_check_threshold:
            self.guard_check(sys.get_int_max_str_digits, operator.call, "digits")

    def guard_check(self, x: object, key: Callable[[Any], Any], name: str) -> None:
        """Guard the result of a function without effects on an object."""
        self.guard(GuardKind.CHECK, x, key, key(x), (GuardKind.CHECK, name))

    def guard_mutable_content(self, x: Any) -> bool:
        """Guard the mutable content of a buffer, dtype or flags object; return whether `x` is one."""
        if not has_class(x, CHANGED_IN_PLACE):
            return False
        if content_in_place(x) != ():
            self.guard_check(x, content_in_place, "whole")
        return True

    def guard_attribute(self, x: Any, name: str) -> None:
        """Guard an attribute that user code reads."""
        kind = type(x)
        self.guard_mutable_content(x)
        if has_class(x, ModuleType):
            self._guard_module_attribute(x, name)
        elif has_class(x, type):
            self._guard_type_attribute(x, name)
        elif kind is MethodType:
            self.guard_attribute(x.__func__, name)
        elif has_class(x, super):
            self._guard_super_attribute(x, name)
        elif has_class(x, VALUES):
            if name in ("base", "data_ptr"):
                self.refuse(f"it reads the memory location of a value ({name}), which differs in each call")
            self.check_type(x, lambda eager_type: has_attribute(name) == hasattr(eager_type, name))
            inside = attributes_of(x)
            if type(inside) is dict and name in inside:
                self.guard(GuardKind.INSTANCE, x, name, inside[name])
            self.guard_type(x)
            if has_class(x, Tensor):
                self.guard_class_attribute(kind, name)
                if name in _LAYOUT_ATTRIBUTES:
                    self.recorder.lift(x)  # then its layout and history are guarded
                if name == "_version":
                    self._guard_computed_attribute(x, name)
        elif has_class(x, ndarray):
            if name in ("dtype", "itemsize", "nbytes", "strides", "flags"):
                self.check_holder(x, "reads the layout of")
            self.guard_array(x, name in _SHOWING_NUMBERS)
            if class_attribute(kind, name) is vars(ndarray).get(name) and has_class(
                vars(ndarray)[name], types.GetSetDescriptorType
            ):
                self.guard_class_attribute(kind, name)
            elif attributes_of(x) or not is_library_class(kind):
                self._guard_instance_attribute(x, kind, name)
        elif not has_class(x, CHAINRULE_TYPES) and not (
            has_class(x, CONSTANT) and kind.__dictoffset__ == 0 and has_fixed_attributes(kind)
        ):
            self._guard_instance_attribute(x, kind, name)

    def attribute_entries(self, x: Any, name: str) -> list[tuple[Any, ...]] | None:
        """Return the entry of an attribute for which ``guard_attribute`` adds nothing more; None if it may.

        Returns:
            A list of ``(owner, type, version, name[, value])``. The attribute may be read again of the owner, or of all objects of
            the type if the owner is None, while the type has the version. With a name, the instance dictionary must still have the
            value, or still have none.
        """
        kind = type(x)
        found = class_attribute(kind, name)
        if kind is ModuleType or (kind is ndarray and not x.dtype.hasobject):
            return [(x, kind, None, None)]
        if kind is Array:
            of_all = has_attribute(name) and hasattr(ndarray, name) and hasattr(np.generic, name)  # in eager code
            return [(None, kind, None, None)] if of_all and name not in _OF_MEMORY else None
        if kind is Tensor:
            of_class = has_class(found, FunctionType) or type(found).__module__ == "chainrule._src.native._loops"
            return [(None, kind, None, name)] if of_class and name not in _OF_MEMORY | _LAYOUT_ATTRIBUTES else None
        if kind in PLAIN or (kind in CONTAINERS and has_class(found, types.MethodDescriptorType)):
            return [(None, kind, None, None)]
        if has_class(x, _WITH_OTHER_ATTRIBUTES) or has_class(x, random_types()) or has_numbers(kind):
            return None
        if has_fixed_attributes(kind):
            return [(x, kind, None, None)]
        if class_attribute(kind, "__getattribute__") is not object.__getattribute__:
            return None
        version = version_of(kind)[0]
        of_instance = not is_named(kind, "__getattr__") or is_python(x, "__getattr__")
        if version == 0 or not of_instance:
            return None
        of_c = has_class(found, types.MemberDescriptorType) or (name == "__dict__" and has_class(found, C_DESCRIPTORS))
        if of_c or (type(found) is property and is_watched(found.fget)):
            return [(x, kind, version, None)]
        inside = attributes_of(x)
        if type(inside) is not dict or not (found is MISSING or not hasattr(type(found), "__set__")):
            return None
        if name in inside:
            return [(x, kind, version, name, inside[name])]
        by_class = has_class(found, FunctionType) or not hasattr(type(found), "__get__")
        return [(x, kind, version, name)] if by_class else None

    def element_entries(self, x: Any, key: object) -> list[Any] | None:
        """Return the entry of an element for which ``guard_element`` adds nothing more; None if it may."""
        if type(x) is dict:
            return [(x, key)] if type(key) is str and key in x else None
        return [x] if type(x) is list and (GuardKind.ELEMENTS, None) in self.watched_object(x).guards else None

    def array_entries(self, operands: Sequence[object]) -> list[Any]:
        """Return the entries of the plain arrays among operands of an operator if these need no more guards; else an empty list.

        An array needs none if its numbers are guarded, or if a recorded call has read it and the other operand is a traced value.
        """
        entries: list[Any] = []
        mixed = any([has_class(x, VALUES) for x in operands])
        for x in operands:
            if type(x) in PLAIN:
                continue
            guard = self._watched_objects[id(x)].guards.get(GuardKind.ARRAY) if id(x) in self._watched_objects else None
            if type(x) is not ndarray or guard is None or x.dtype.hasobject or self.recorder.written:
                return []
            if not guard.key and not (mixed and x.dtype.kind in "fc" and self.recorder.reads(x)):
                return []
            entries.append(x if guard.key else (x,))
        return entries

    def _guard_module_attribute(self, x: ModuleType, name: str) -> None:
        """Guard a name in a module, also in library modules, which tests may patch."""
        if x is warnings and name in _CHANGED_BY_TRACING:
            self.refuse(f"it reads warnings.{name}, which differs while a function is traced: {INSTEAD}")
        if is_constant_module(x.__name__) and name not in vars(x):
            with warnings.catch_warnings(), contextlib.suppress(Exception):
                warnings.simplefilter("ignore")
                getattr(x, name)  # libraries import submodules lazily
        found = self.guard_item(vars(x), name)
        if not is_constant_module(x.__name__):
            self.guard(GuardKind.CLASS, x, None, type(x))
            own = self.guard_class_attribute(type(x), name)
            if type(x) is not ModuleType:
                self.note_descriptor_get(own, x, type(x))
                self.note_special_method(x, "__getattribute__", name)
        if found is MISSING:
            getter = self.guard_item(vars(x), "__getattr__")
            if getter is not MISSING:
                self.note_implicit_call(getter, name)
            self.note_special_method(x, "__getattr__", name)

    def _guard_type_attribute(self, x: type, name: str) -> None:
        meta = type(x)
        self.guard_type(x)
        of_meta, own = self.guard_class_attribute(meta, name), self.guard_class_attribute(x, name)
        self.guard_type(of_meta)
        self.guard_type(own)
        if name == "__flags__":
            self._guard_computed_attribute(x, name)
        if has_class(vars(type).get(name), (types.GetSetDescriptorType, types.MemberDescriptorType)):
            return
        if meta is not type and not is_library_class(meta):
            self.note_descriptor_get(of_meta, x, meta)
            self.note_special_method(x, "__getattribute__", name)
        self.note_descriptor_get(own, None, x)
        if of_meta is own is MISSING:
            self.note_special_method(x, "__getattr__", name)

    def _guard_super_attribute(self, x: Any, name: str) -> None:
        self.guard_type(x.__self__)
        self.guard_class_attribute(x.__self_class__, name)
        mro = list(x.__self_class__.__mro__)
        for cls in mro[mro.index(x.__thisclass__) + 1 :]:
            if name in cls.__dict__:
                self.note_descriptor_get(cls.__dict__[name], x.__self__, x.__self_class__)
                return

    def _guard_instance_attribute(self, x: object, kind: type, name: str) -> None:
        if has_class(x, random_types()):
            if name == "state" and id(x) not in self.made:
                self.refuse("it reads the state of a random number generator")
            return  # calls of its methods are refused
        if has_numbers(kind):
            self.note_passed_to_library(x, [])  # unwatched code computes its attributes
            return
        if kind.__module__.partition(".")[0] == "chainrule" and is_library(kind.__module__):
            return  # for example contexts of backward functions, or handles
        found = self.guard_class_attribute(kind, name)
        self.guard_type(x)
        self.guard_type(found)
        if not is_library_class(kind):
            self.guard_class_attribute(kind, "__getattribute__")
            if self.note_special_method(x, "__getattribute__", name):
                return
        if is_library_class(kind) and has_class(found, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return
        if class_attribute(kind, "__getattribute__") is not object.__getattribute__ and not has_class(
            x, (FunctionType, BuiltinFunctionType, functools.partial, *CONTAINERS)
        ):
            if not is_python(x, "__getattribute__"):  # else its instructions are watched
                self._guard_computed_attribute(x, name)
            self.note_special_method(x, "__getattr__", name)
            return
        if has_class(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            if name == "__dict__":
                self.guard(GuardKind.INSTANCE, x, None, attributes_of(x), "__dict__")
            elif name != "__class__":
                self._guard_computed_attribute(x, name)
        elif found is MISSING or not hasattr(type(found), "__set__"):
            inside = attributes_of(x)
            value = MISSING
            if has_class(inside, dict):
                value = dict.get(inside, name, MISSING)
                self.guard(GuardKind.INSTANCE, x, name, value)
            if value is MISSING:
                self.note_descriptor_get(found, x, kind)
                if not has_class(found, FunctionType):  # a descriptor may raise AttributeError
                    self.guard_class_attribute(kind, "__getattr__")
                    self.note_special_method(x, "__getattr__", name)
        elif has_class(found, property) or not is_library_class(type(found)):
            self.note_descriptor_get(found, x, kind)
            self.note_special_method(x, "__getattr__", name)
        elif not has_class(found, property) and is_library_class(type(found)) and not is_python(found, "__get__"):
            self._guard_computed_attribute(x, name)

    def _guard_computed_attribute(self, x: object, name: str) -> None:
        """Guard an attribute that C code computes, by reading it again."""
        self.guard(
            GuardKind.CHECK, x, functools.partial(attribute_or_missing, name=name), attribute_or_missing(x, name), name
        )

    def note_operand(self, x: Any, arrays: list[object], seen: set[int] | None = None) -> None:
        """Guard an operand of an operator or builtin function; append the plain arrays in it to ``arrays``."""
        x = shown_by(x)
        self.guard_class_use(x)
        if type(x) is ndarray:
            self._note_array(x, arrays, self.note_operand, seen)
        elif has_class(x, slice):
            for part in (x.start, x.stop, x.step):
                self.note_operand(part, arrays)
        elif has_class(x, CONTAINERS):
            self._note_elements(x, arrays, self.note_operand, seen)
        elif self.guard_mutable_content(x):
            return
        elif is_iterator(x):
            self.check_iterator(x)
            arrays += given_by(x)
        elif has_class(x, decimal.Decimal):
            self.guard_check(decimal.getcontext, digits_of_decimals, "digits")
        elif has_class(x, BaseException):
            self._guard_computed_attribute(x, "args")
            self.note_operand(attribute_or_missing(x, "args"), arrays, seen)
        elif has_class(x, (*CONSTANT, *CHAINRULE_TYPES, *FUNCTIONS)):
            return
        elif (
            has_class(x, ndarray)
            or is_opaque(type(x))
            or (type(x).__module__ != "builtins" and is_library_class(type(x)))
        ):
            self.note_passed_to_library(x, arrays, seen)

    def note_stored(self, x: object, arrays: list[object]) -> None:
        """Note an object whose elements are copied into a container."""
        if is_iterator(x):
            self.note_consumed(x, arrays)
        else:
            self.note_operand(x, arrays)
            inside = attributes_of(x)
            if has_class(inside, dict) and "keys" in inside:  # ``dict(x)`` looks it up
                self.guard_attribute(x, "keys")
                self.note_possible_call(inside["keys"])

    def note_consumed(self, x: object, arrays: list[object]) -> None:
        """Note an object that C code receives: an iterator is consumed, anything else is passed on."""
        if self.texts:
            self.note_text([x], "__repr__")
        if is_iterator(x):
            self.check_iterator(x)
            arrays += given_by(x, computed=True)

    def note_returned_to_c(self, x: object, arrays: list[object]) -> None:
        """Note an object that a Python function returns to C code, which computes with it or calls it."""
        if self.texts:
            self.note_text([x], "__repr__")
        if has_class(x, FUNCTIONS) or is_named(type(x), "__call__"):
            self.note_possible_call(x)
        self.note_operand(x, arrays)

    def note_passed_to_library(self, x: Any, arrays: list[object], seen: set[int] | None = None) -> None:
        """Guard an object that is passed to unwatched code."""
        x = shown_by(x)
        self._guard_whole_class(x)
        self.note_special_functions(x)
        if has_class(x, FunctionType):
            self.guard(GuardKind.FUNCTION, x, None, function_parts(x))
        if is_named(type(x), "__call__"):
            self.note_possible_call(x)
        if (
            not has_class(x, ndarray)
            and not is_library_class(type(x))
            and any(class_attribute(type(x), name) is not MISSING for name in _MEMORY)
        ):
            self.refuse(
                f"it has NumPy read the memory of a {type(x).__name__}, which compile cannot guard: use np.asarray"
            )
        if has_class(x, FUNCTIONS):
            self.note_possible_call(x)
        elif type(x) is ndarray:
            self._note_array(x, arrays, self.note_passed_to_library, seen)
        elif self.guard_mutable_content(x):
            return
        elif has_class(x, CONTAINERS):
            self._note_elements(x, arrays, self.note_passed_to_library, seen)
        elif has_class(x, (*CONSTANT, *CHAINRULE_TYPES, MethodType)) or is_library_context(x) or is_lock(x):
            return
        elif is_iterator(x):
            self.check_iterator(x)
        elif not is_called(x) and not is_named(type(x), "__call__"):
            self.guard_whole_object(x)

    def guard_whole_object(self, x: object) -> None:
        """Guard all attributes of an object, and of the objects in it, by a snapshot."""
        try:
            parts: list[Any] = []
            self.guard(GuardKind.CHECK, x, state_snapshot, state_snapshot(x, parts), "whole")
            for part in parts:
                self._guard_whole_class(part)
        except Unknown as unknown:
            a = "an" if str(unknown)[:1] in "aeiou" else "a"
            self.refuse(
                f"it uses {a} {unknown}, whose state compile cannot read: pass its content as arrays and numbers"
            )

    def _guard_whole_class(self, x: object) -> None:
        """Guard all attributes of an object's class: unwatched code may read any of them."""
        for content in (*self.guard_type(x), *(self.guard_class(x) if has_class(x, type) else ())):  # type: ignore[arg-type]
            content.whole = True
            self.guard_registrations()

    def guard_registrations(self) -> None:
        """Guard registrations with abstract classes: unwatched code may call ``isinstance``."""
        self.guard(GuardKind.REGISTERED, get_cache_token, None, abc_registration(object, None))

    def _note_array(self, x: ndarray, arrays: list[object], each: Callable[..., None], seen: set[int] | None) -> None:
        arrays.append(x)
        seen = set() if seen is None else seen
        if x.dtype.hasobject and x.dtype.names is None and id(x) not in seen:
            seen.add(id(x))
            for part in x.flat:
                if type(part) not in IMMUTABLE:
                    each(part, arrays, seen)

    def _note_elements(
        self, x: object, arrays: Sequence[object], each: Callable[..., None], seen: set[int] | None
    ) -> None:
        seen = set() if seen is None else seen
        if id(x) not in seen:
            seen.add(id(x))
            self.guard_elements(x)
            for part in elements_of(x):
                if type(part) not in IMMUTABLE:
                    each(part, arrays, seen)

    def check_iterator(self, x: object) -> None:
        """Refuse an iterator that was made outside of the function, since a call consumes it."""
        if id(x) not in self.made and not has_class(x, CHAINRULE_TYPES):
            self.refuse("it consumes an iterator that was made outside of it: pass a list, or make the iterator inside")

    def guard_array_values(self, x: Any) -> None:
        """Guard the numbers of a plain array that untraced code has read."""
        self.check_not_written(x)
        if self.guard_array(x, with_numbers=True) and x.dtype.hasobject:
            arrays: list[object] = []
            for part in flat_items((as_tuples(x.tolist()),), depth=x.ndim + 9):
                self.note_operand(part, arrays)
            for each in arrays:
                self.guard_array_values(each)

    def check_not_written(self, x: object) -> None:
        """Refuse a plain array that shares memory with an array that the trace writes."""
        for _, var in self.recorder.written.values():
            if np.may_share_memory(var.array, x):
                self.refuse(
                    "it writes memory of an array that it reads under another name, untraced: use one name for both"
                )

    def note_iteration(self, x: object) -> None:
        """Guard an object that is iterated over."""
        x = shown_by(x)
        self.guard_class_use(x)
        if has_class(x, CONTAINERS):
            self.guard_elements(x)
        elif type(x) is ndarray:
            self.check_not_written(x)
            self.guard_array(x, with_numbers=True)
        elif has_class(x, ndarray):
            self.note_passed_to_library(x, [])
        elif self.guard_mutable_content(x):
            return
        elif is_iterator(x):
            self.check_iterator(x)
            for each in given_by(x, computed=True):
                self.guard_array_values(each)
        elif (
            not has_class(x, (*CONSTANT, *CHAINRULE_TYPES))
            and is_library_class(type(x))
            and type(x).__module__ != "builtins"
        ):
            self.note_passed_to_library(x, [])

    def stored_attribute(self, x: Any, name: str) -> Any:
        """Return an attribute that is found without running code; refuse the trace if code computes it."""
        kind = type(x)
        found = class_attribute(kind, name)
        if not kind.__flags__ & HEAP_TYPE and not has_class(x, (type, ModuleType)):
            return attribute_or_missing(x, name)
        inside = vars(x) if has_class(x, type) else attributes_of(x)
        if has_class(found, FunctionType):
            return MISSING if inside is None or name not in inside else inside[name]  # a watched method
        value = MISSING if inside is None else inside.get(name, MISSING)
        if value is not MISSING and not hasattr(type(found), "__set__"):
            return value
        if has_class(found, (types.MemberDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType)):
            return attribute_or_missing(x, name)
        if found is MISSING or hasattr(type(found), "__get__"):
            self.refuse(f"it has C code read {name} of a {kind.__name__}, which code computes: read it in Python")
        return found

    def note_item_write(self, x: Any, key: object, value: object) -> None:
        """Note that one or several elements are about to be set."""
        if self.note_special_method(x, "__setitem__", key, value):
            return
        self.note_container_change(x)
        arrays: list[Any] = []
        if has_class(x, ndarray) and not has_class(value, CHAINRULE_TYPES):
            self.note_operand(key, arrays)
            self.note_operand(value, arrays)
        elif has_class(key, slice) and not has_class(x, CHAINRULE_TYPES):
            self.note_stored(value, arrays)
        for each in arrays:
            self.guard_array_values(each)

    def note_attribute_write(self, x: object, name: str, *value: object) -> None:
        """Note that an attribute is about to be set, or deleted if there is no value."""
        method = "__setattr__" if value else "__delattr__"
        if not has_class(x, CHAINRULE_TYPES):
            if self.note_special_method(x, method, name, *value) or is_python(x, method):
                return  # its instructions are watched
            if not has_numbers(type(x)) and self.note_descriptor_set(class_attribute(type(x), name), x, *value):
                return
        self.note_attribute_change(x, name)

    def guard_element(self, x: Any, key: object) -> None:
        """Guard an element that is read."""
        x = shown_by(x)
        self.note_special_functions(x)
        if has_class(x, dict):
            missing = self.guard_key(x, key) is MISSING and not self.note_special_method(x, "__missing__", key)
            if missing and has_class(x, collections.defaultdict) and x.default_factory is not None:
                self.note_container_change(x)
                self.note_implicit_call(x.default_factory)
        elif has_class(x, types.MappingProxyType):
            self.guard_check(x, functools.partial(get_or_missing, key=key), repr(key))
        elif has_class(x, (list, collections.deque)):
            if type(key) is int and len(x) > 64:
                self.guard(
                    GuardKind.CHECK, x, functools.partial(element_or_missing, key=key), element_or_missing(x, key), key
                )
            else:
                self.guard_elements(x)
