"""What messages are made of: the user's lines, the names of their variables, shapes, and where a path was cut."""

from __future__ import annotations

import contextlib
import functools
import importlib
import linecache
import os
import re
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from opcode import opmap
from threading import get_ident
from typing import Any

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def line_name(file: str, line: int) -> str:
    """A line in few words: ``t.py:4``, or ``In[4]:2`` for the second line of a notebook's fourth cell."""
    cell: Any = re.match(r"<ipython-input-(\d+)-", file)
    number = cell[1] if cell else None
    if os.sep + "ipykernel_" in file:
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    return f"{os.path.basename(file) if number is None else f'In[{number}]'}:{line}"


class Where:
    """A line of the user's program, kept as (file, line) and formatted only when printed.

    It is false where nobody could look it up: in a doctest, or in code that was typed or made up and is not kept.
    """

    __slots__ = ("file", "line")

    def __init__(self, file: str, line: int) -> None:
        self.file = file
        self.line = line

    def __str__(self) -> str:
        return line_name(self.file, self.line)

    def __bool__(self) -> bool:
        if self.file.startswith("<"):
            return bool(linecache.getline(self.file, self.line)) and not self.file.startswith("<doctest ")
        return True

    @property
    def text(self) -> str:
        """The code on the line, where it is short enough to be quoted; else ''."""
        text = linecache.getline(self.file, self.line).split("  #")[0].strip()
        return text if len(text) <= 70 else ""

    @property
    def quoted(self) -> str:
        """The code and the place of it: `y += 1` (t.py:4)."""
        return " ".join([*([f"`{self.text}`"] if self.text else []), *([f"({self})"] if self else [])])


def writer(op: str, where: Where | None) -> str:
    """An operation that wrote in place: its code and line, as far as they are known."""
    if where is not None and where.text:
        return where.quoted
    return f"{op} ({where})" if where else op


class Cut:
    """Why a tensor does not require grad though something it was computed from does.

    ``sources`` are the tensors that the path led to. They are held weakly, and named only when the message is printed.
    """

    __slots__ = ("kind", "leaf", "sources", "where")

    def __init__(self, kind: str, where: Where | None, sources: Sequence[Any] = ()) -> None:
        self.kind = kind
        self.where = where
        self.sources = [weakref.ref(source) for source in sources]

    @property
    def of_gradient(self) -> bool:
        """Whether it says why a gradient has no graph."""
        return self.kind in _GRADIENTS or self.kind.endswith(".backward")

    @property
    def names(self) -> list[str]:
        """The user's names of the sources that are still there."""
        alive = [source() for source in self.sources]
        return [name for name in map(name_of, alive) if name]

    def __str__(self) -> str:
        if self.kind in _GRADIENTS:
            return _GRADIENTS[self.kind]
        if self.of_gradient:
            return (
                f"{self.kind} returned it, computed from nothing that is recorded, so it counts as constant. That is right "
                "for a linear function. Otherwise let forward hand what backward reads (inputs or outputs) to "
                "ctx.save_for_backward, and take it from ctx.saved_tensors: other tensors, numbers and arrays on ctx have "
                "no history"
            )
        at = f" ({self.where})" if self.where else ""
        if self.where is not None and self.where.text:
            at = f" in {self.where.quoted}"
        if self.kind == "requires_grad":
            return f"requires_grad was set to False{at}"
        names = self.names[:2]
        of = f" to {' and '.join(names)}" if names else ""
        what, why = (
            self._rebound()
            or _CUTS.get(self.kind)
            or (
                f"was cut by {self.kind}",
                "its integer or boolean output has no derivative",
            )
        )
        return f"the path{of} {what}{at}: {why}"

    def _rebound(self) -> tuple[str, str] | None:
        """What to say of an update that made a new tensor: ``w = w - lr * w.grad`` without recording."""
        update = re.match(r"(\w+) = .*\b\1\b", self.where.text) if self.where and self.kind == "no_grad" else None
        if update is None:
            return None
        return _CUTS["no_grad"][
            0
        ], f"{update[1]} is a new tensor there. Write into the old one, as in {update[1]} -= step"


#: why gradients, and what is computed from them, may have no graph
_GRADIENTS = {
    "gradient": "it is made of gradients, and those are recorded only with create_graph=True: "
    "g, = grad(y, x, create_graph=True), or y.backward(create_graph=True)",
    "linear": "it is the gradient of a linear function, so it is constant, and its derivative is zero everywhere",
}
#: the cut of gradients that were not recorded, of recorded ones that are constant, and of ``tensor.data``. There is one
#: of each, so that making them costs nothing
GRADIENT = Cut("gradient", None)
LINEAR = Cut("linear", None)
DATA = Cut("data", None)

_STEP = "a comparison has no derivative. where(condition, a, b) keeps those of a and b; sigmoid is a smooth step"
_CUTS = {
    "detach": ("was cut by detach()", "leave it out to keep the gradient"),
    "detach_": ("was cut by detach_()", "leave it out to keep the gradient"),
    "data": ("was cut by .data", "leave it out to keep the gradient"),
    "no_grad": ("was cut because gradient mode was off,", "compute it outside of no_grad() to keep the gradient"),
    "tensor()": ("was cut by tensor(...), which copies,", "use clone() to keep the gradient"),
    "cast": ("was cut by the conversion to an integer dtype", "integers have no gradient. Stay with floats"),
    "argmax": (
        "was cut by argmax",
        "an integer position has no derivative. max() has one; softmax is a smooth relative",
    ),
    "argmin": ("was cut by argmin", "an integer position has no derivative. min() has one; softmax(-x) is smooth"),
    "argsort": ("was cut by argsort", "integer positions have no derivative. sort() gives values that have one"),
}
for _name in (
    *("eq", "ne", "lt", "le", "gt", "ge", "isclose", "isnan", "isinf", "isfinite"),
    *("logical_and", "logical_or", "logical_not", "logical_xor", "signbit"),
):
    _CUTS[_name] = (f"was cut by {_name}", _STEP)


class UnknownName(AttributeError):
    """A module or a tensor lacks a name. ``hasattr`` reads no message: what to use instead is looked up when one is read.

    ``hint`` is given the error, whose traceback knows where it was raised.
    """

    def __init__(self, text: str, hint: Callable[[BaseException], str] = lambda error: "") -> None:
        super().__init__(text)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.args[0]}{or_plain(self.hint)(self)}"

    def __reduce__(self) -> Any:
        return AttributeError, (str(self),)


UnknownName.__name__ = UnknownName.__qualname__ = "AttributeError"
UnknownName.__module__ = "builtins"


def unknown_name(name: str, known: Iterable[str], module: str) -> Exception:
    """What a module's ``__getattr__`` raises for a name that it lacks. In ``from module import name`` an ImportError.

    (Python turns an AttributeError there into an ImportError without its words. Names like ``__path__`` the import system
    asks for, and nobody reads the answer.)
    """
    if name.startswith("__"):
        return AttributeError(name)
    hint = functools.partial(_hint, name, known, module)
    frame = sys._getframe(2)
    if frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]:
        return ImportError(f"cannot import name {name!r} from {module!r}{hint(None)}", name=name)
    return UnknownName(f"module {module!r} has no attribute {name!r}", hint)


def _hint(name: str, known: Iterable[str], module: str, error: Any) -> str:
    return str(importlib.import_module("chainrule.errors.tensors").name_hint(name, known, module))


def user_line() -> Where | None:
    """The innermost line of the call stack that is not this package's."""
    frame = calling_frame()
    return None if frame is None else Where(frame.f_code.co_filename, frame.f_lineno)


_UNREAD: set[int] = set()  # the threads that make a message without looking at the user's program


@contextlib.contextmanager
def without_source() -> Iterator[None]:
    """Messages that this thread makes say nothing of the user's lines and names."""
    thread = get_ident()
    _UNREAD.add(thread)
    try:
        yield
    finally:
        _UNREAD.discard(thread)


def or_plain(message: Callable[..., Any]) -> Callable[..., Any]:
    """A message that never hides the error it is about: where reading the user's program fails, it is made without."""

    @functools.wraps(message)
    def made(*args: Any, **kwargs: Any) -> Any:
        try:
            return message(*args, **kwargs)
        except Exception:
            with without_source():
                return message(*args, **kwargs)

    return made


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning about the innermost line of the call stack that is not this package's."""
    frame: Any = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def user_frame() -> Any:
    """The innermost frame of the program that somebody writes; of installed code, where there is nothing else."""
    first = frame = calling_frame()
    while frame is not None and _INSTALLED.match(frame.f_code.co_filename):
        frame = frame.f_back
    return first if frame is None else frame


def program_line() -> Where | None:
    """The innermost line of the program that somebody writes."""
    frame = user_frame()
    return None if frame is None else Where(frame.f_code.co_filename, frame.f_lineno)


def raising_frame(error: BaseException) -> tuple[Any, int | None]:
    """The innermost frame, of the program that somebody writes, that an error passed, and the instruction it came from."""
    found: tuple[Any, int | None] = (user_frame(), None)
    if found[0] is not None:
        for frame in _frames(error):
            if not _INSTALLED.match(frame.tb_frame.f_code.co_filename):
                found = (frame.tb_frame, frame.tb_lasti)
    return found


def _frames(error: BaseException) -> Iterator[Any]:
    entry = error.__traceback__
    while entry is not None:
        yield entry
        entry = entry.tb_next


_LIBRARY = os.path.dirname(os.__file__) + os.sep  # Python's own
_INSTALLED = re.compile(rf"{re.escape(PACKAGE)}|{re.escape(_LIBRARY)}|<frozen |.*[\\/](site|dist)-packages[\\/]")


def calling_frame() -> Any:
    """The innermost frame that is not this package's."""
    if _UNREAD and get_ident() in _UNREAD:
        return None
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame


def name_of(thing: Any) -> str:
    """The name of the user's variable that holds ``thing``, or an empty string."""
    if thing is None:
        return ""
    frame = user_frame()
    for _ in range(3):
        if frame is None:
            break
        for name, value in list(frame.f_locals.items()):
            if value is thing and name.isidentifier() and not name.startswith("_"):
                return str(name)
        frame = frame.f_back
    return ""


def shape_of(x: Any) -> tuple[int, ...]:
    return tuple(getattr(x, "shape", ()))


def torch_size(shape: Any) -> str:
    return f"torch.Size({list(shape)})"


TYPE_NAMES = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}


def dtype_word(dtype: Any) -> str:
    """What PyTorch calls a dtype in its messages: Long, Float, Double ..."""
    return TYPE_NAMES.get(dtype.name, str(dtype))


def tensor_type(dtype: Any) -> str:
    """The name of PyTorch's old class for tensors of a dtype: LongTensor, FloatTensor ..."""
    return TYPE_NAMES.get(dtype.name, dtype.name.replace("uint", "UInt")) + "Tensor"
