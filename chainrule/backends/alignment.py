"""Arrays that begin where a cache line does.

NumPy takes an array's memory from ``malloc``, at any multiple of 16 bytes. A vector register is as wide as a cache line
(64 bytes), so nearly every access to such an array touches two lines, and an operation on numbers that are in cache
takes twice the time it could. NumPy lets a program bring a memory handler of its own (NEP 49). The one here has NumPy's
default functions in all places but one: it gets memory from C's ``aligned_alloc``.

That call is slower than what NumPy does for small arrays, and glibc before 2.38 does not find freed aligned memory again
when it is asked for as much, so that a process of very large arrays would grow. So a backward pass whose largest
array is of middling size switches the handler on, and it stays on for the forward pass after it; others switch it off.
``CHAINRULE_KEEP_MEMORY=0`` in the environment leaves NumPy's own in place.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from chainrule import config

#: elements from which aligned memory gains more than the slower call loses, and above which it is not in cache anyway
LARGE, HUGE = 4096, 131_072
_LINE = 64  # bytes
_SET_HANDLER, _GET_HANDLER = 304, 305  # places in NumPy's table of C functions, which only ever grows
_NAME = b"mem_handler"  # what NumPy calls capsules that hold a handler


class _Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


class _Handler(ctypes.Structure):
    """NumPy's ``PyDataMem_Handler``."""

    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("allocator", _Allocator)]


def _switch() -> tuple[Callable[[Any], Any], Any, Any] | None:
    """The function that sets this thread's handler, NumPy's handler and ours; None where that is not to be had."""
    if not (config.KEEP_MEMORY and sys.platform == "linux" and sys.implementation.name == "cpython"):
        return None
    try:
        from numpy._core._multiarray_umath import _ARRAY_API  # type: ignore[attr-defined]
        from numpy._core.multiarray import get_handler_name

        aligned_alloc = ctypes.cast(ctypes.CDLL(None).aligned_alloc, ctypes.c_void_p).value
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        table = ctypes.cast(pointer(_ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
        assign = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
        usual = ctypes.PYFUNCTYPE(ctypes.py_object)(table[_GET_HANDLER])()
        theirs = _Handler.from_address(pointer(usual, _NAME))
        if theirs.name != b"default_allocator" or theirs.version != 1:
            return None  # the program has a handler of its own
        handler = _Handler.from_buffer_copy(theirs)
        handler.name = b"chainrule_aligned"
        # aligned_alloc(alignment, size) is malloc(context, size) for a context that is the alignment
        handler.allocator.context, handler.allocator.malloc = _LINE, aligned_alloc
        for kept in (handler, _NAME):  # arrays may outlive this module
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        ours = capsule(ctypes.addressof(handler), _NAME, None)
        assign(ours)
        try:
            probe = np.empty(LARGE)
        finally:
            assign(usual)
        if get_handler_name(probe) != "chainrule_aligned" or probe.ctypes.data % _LINE:
            return None
    except (ImportError, AttributeError, OSError, ValueError, IndexError):
        return None
    return assign, usual, ours


class _Alignment:
    """The handler's state: unknown until it is first asked for.

    A handler belongs to the context (see ``contextvars``) that it was set in, and so does ``here``.
    """

    def __init__(self) -> None:
        self.switch: Any = None
        self.asked = False
        self.on = False  # it has been in some context, so it is worth looking whether it is in this one
        self.here = ContextVar("aligned", default=False)
        self.lock = threading.Lock()

    def use(self) -> None:
        """From now on the arrays of this context begin at cache lines."""
        if self.here.get():
            return
        with self.lock:
            if not self.asked:
                self.switch, self.asked = _switch(), True
        if self.switch is not None:
            assign, usual, ours = self.switch
            before = assign(ours)
            if before is not usual:  # one of the program's own
                assign(before)
                return
            self.here.set(True)
            self.on = True

    def suit(self, size: int) -> None:
        """Use or leave it, as suits a program whose largest array has this many elements."""
        if size <= HUGE:
            self.use()
        elif self.on:
            self.leave()

    def leave(self) -> None:
        """From now on the arrays of this context are NumPy's again."""
        if not self.here.get():
            return
        assign, usual, ours = self.switch
        before = assign(usual)
        if before is not ours:  # the program has set one of its own since
            assign(before)
        self.here.set(False)


ALIGNMENT = _Alignment()
