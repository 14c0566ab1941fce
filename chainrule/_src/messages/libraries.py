"""Suggest replacements for functions of NumPy, SciPy, pandas and matplotlib that convert tensors to plain arrays.

``values`` calls ``taken_by_library`` with the tensor that is being converted. It walks the call stack to find the library
function that the user called, and returns the user's name of the tensor and the text of the suggestion.
"""

from __future__ import annotations

import importlib
import linecache
import re
import sys
from types import FrameType
from typing import Any

from chainrule._src.messages.reading import running
from chainrule._src.messages.source_locations import PACKAGE, calling_frame, user_frame

LIBRARIES = ("numpy", "scipy", "pandas", "matplotlib")
#: Replacements under another name. (Functions with the same name in chainrule are looked up.)
ELSEWHERE = {
    "r_": "np.concatenate([...])",
    "c_": "np.column_stack([...])",
    "vectorize": "chainrule.vmap",
    "expm": "chainrule.linalg.matrix_exp",
    "block_diag": "chainrule.block_diag",
    "fftconvolve": "np.convolve",
    "cho_factor": "np.linalg.cholesky",
    "cho_solve": "chainrule.cholesky_solve",
    "cdist": "chainrule.cdist",
    "full": "value * np.ones(shape)",
    "full_like": "value * np.ones_like(x)",
    "fill_diagonal": "np.where(np.eye(n) == 1, value, x)",
    "pdist": "chainrule.nn.functional.pdist",
}
_CUT = "To cut the path"
#: Suggestions for all functions of a module.
_GUIDES = {
    "numpy.ma": "fill the masked array first, as in m.filled(0) * x, or select with np.where(m.mask, 0, x)",
    "matplotlib": "plot the detached values",
    "pandas.groupby": "np.bincount(codes, weights=x) sums x over groups and keeps the derivative, with "
    "codes, keys = pd.factorize(df[key]); divide by np.bincount(codes) for the mean",
    "pandas": "convert the data to an array first, as in df.to_numpy() @ x",
    "scipy.stats": "chainrule.stats has SciPy's common distributions, differentiable with respect to the point and all "
    "parameters (docs/guide/statistics.md); write statistics with NumPy",
    "scipy.integrate.quad": "chainrule.scipy.integrate.quad computes derivatives of integrals of numbers",
    "scipy.integrate": "write a Function that solves the adjoint equation (docs/guide/scipy.md, Differential equations)",
    "scipy.optimize": "chainrule.scipy has these functions for tensors and passes derivatives to them (docs/guide/solvers.md); "
    "chainrule.implicit computes the gradient of a solution (docs/guide/implicit.md)",
    "scipy.interpolate": "chainrule.scipy.interpolate has these splines, and evaluate(spline, x) for a spline of SciPy",
    "scipy.sparse": "A @ x keeps the derivative for SciPy's matrices, and "
    "chainrule.scipy.sparse.linalg.aslinearoperator(A) @ x for its linear operators; that module also has solvers",
}


def taken_by_library(tensor: object) -> tuple[str, str] | None:
    """Return the user's name of a tensor that a library function converts to an array, and the suggested replacement.

    Return None if the user's own line converts the tensor.
    """
    frame = calling_frame()
    library = called = distribution = ""
    entered: list[str] = []  # names of the running library functions, outermost first
    while frame is not None and (frame_library := _library(frame)):
        library = (
            library if frame_library == "scipy" and library else frame_library
        )  # a private module of SciPy belongs to the public module that calls it
        called = _public(frame, frame_library) or called
        entered[:0] = _names(frame)
        if frame_library == "scipy.stats":
            distribution = _distribution(frame) or distribution
        frame = frame.f_back
    if not library or frame is None:
        return None
    line = running(None if frame.f_code.co_filename.startswith(PACKAGE) else frame)
    callee = re.match(r"([\w.]+)\(.*\)$", line.text, re.DOTALL) if line.instruction != "BINARY_OP" else None
    called = callee[1] if callee else called or library
    x = next((n for n, value in frame.f_locals.items() if value is tensor and not n.startswith("_")), "")
    if not x:  # the library may have made a new tensor of the user's tensor
        names = dict.fromkeys(re.findall(r"\b[A-Za-z]\w*\b(?!\s*[.(=])", line.text))
        tensors = [n for n in names if hasattr(type(frame.f_locals.get(n)), "_edge")]
        x = tensors[0] if len(tensors) == 1 else "tensor"
    grouped = library == "pandas" and ".groupby(" in _source(frame)
    return x, _text(called, x, "pandas.groupby" if grouped else library, entered, distribution)


def instead_of_number(array: Any) -> str:
    """Return the replacement for the library call that converts an array to a number; '' if there is none."""
    taken = taken_by_library(array)
    return "" if taken is None else taken[1].partition(_CUT)[0]


def instead_of_arrays(tensor: object, x: str, detach: bool = True) -> str:
    """Return the replacement for the user's call that makes a plain array of tensors; '' if there is none.

    ``detach``: whether to suggest detach(), too.
    """
    taken = taken_by_library(tensor)
    if taken:
        return taken[1] if detach else taken[1].partition(_CUT)[0].rstrip()
    text = running(user_frame()).text
    if re.search(r"\(\s*[\[(]", text) or (x == "tensor" and re.search(r"array\(", text)):
        rows = " Rows of numbers: np.block([[a, b], [c, d]])." * bool(re.search(r"\[\s*\[", text))
        cuts = f"; {x}.detach().numpy() cuts the path" * detach
        return f"To combine tensors use stack([...]) (np.stack works, too){cuts}.{rows}"
    return ""


def _text(called: str, x: str, module: str, entered: list[str], distribution: str) -> str:
    """Return the suggestion for a call. ``entered`` lists the running library functions, outermost first.

    ``called`` may be an alias of the first.
    """
    name = called.rpartition(".")[2]
    cut = f"{_CUT}: {x}.detach().numpy()."
    instead = distribution
    if module != "scipy.stats":
        same_paths = [_same_path(known, module) for known in (name, *entered)]
        instead = next(filter(None, same_paths), "") or _replacement(name, module)
        if not instead and entered[:1] == ["vectorize"]:
            called, instead = "np.vectorize", _replacement("vectorize", module)
    if module == "numpy" and not instead and hasattr(getattr(sys.modules["numpy"], name, None), "_implementation"):
        return f"{called} converts a list of tensors to an array: np.stack([...]) of the list is a tensor. {cut}"
    if instead:
        return f"{called} takes plain arrays: {instead} keeps the derivative. {cut}"
    guide = next((text for part, text in _GUIDES.items() if f"{module}.{name}".startswith(part)), "")
    if guide:
        return f"{called} takes plain arrays: {guide}. {cut}"
    return (
        f"{called} takes plain arrays, and chainrule has no function of that name: write it with functions that have rules, "
        f"or define its rules (chainrule.primitive). {cut}"
    )


def _source(frame: FrameType) -> str:
    """Return the source of the code object of a frame."""
    lines = [line for _, _, line in frame.f_code.co_lines() if line]
    return "".join(linecache.getlines(frame.f_code.co_filename)[min(lines) - 1 : max(lines)])


def _library(frame: FrameType) -> str:
    """Return the library package of a frame's code: ``numpy``, ``numpy.ma``, ``scipy.stats``; '' for the user's code."""
    parts = _function_of(frame)[0].split(".")
    if parts[0] not in LIBRARIES:
        return ""
    apart = parts[0] == "scipy" or parts[:2] == ["numpy", "ma"]
    return parts[0] if not apart or len(parts) < 2 or parts[1].startswith("_") else ".".join(parts[:2])


def _function_of(frame: FrameType) -> tuple[str, str]:
    """Return module and name of the function that a frame runs; for a wrapper, of the wrapped function."""
    inside = frame.f_locals.get("f") if frame.f_code.co_name == "wrapper" else None
    if inside is not None and hasattr(inside, "__name__"):
        return str(inside.__module__), str(inside.__name__)
    return str(frame.f_globals.get("__name__", "")), frame.f_code.co_name


def _names(frame: FrameType) -> list[str]:
    """Return the name of the function that a frame runs; for ``__init__`` and ``__call__``, of the class."""
    name = _function_of(frame)[1]
    return [name] if name not in ("__init__", "__call__") else [type(frame.f_locals.get("self")).__name__]


def _public(frame: FrameType, library: str) -> str:
    """Return the public name of the function that a frame runs; '' if it is private."""
    if library == "numpy.ma":
        return "np.ma"
    owner = type(frame.f_locals.get("self")).__name__
    if owner in ("RClass", "CClass"):
        return f"np.{owner[0].lower()}_"
    name = _function_of(frame)[1]
    known = not name.startswith("_") and callable(getattr(sys.modules.get(library), name, None))
    return f"{'np' if library == 'numpy' else library}.{name}" if known else ""


#: Names of scipy.stats' new distribution classes, and of the classic distributions.
_NEW_CLASSES = {"Binomial": "binom", "Logistic": "logistic", "Normal": "norm", "Uniform": "uniform"}


_STATS = "chainrule.stats"


def _distribution(frame: FrameType) -> str:
    """Return the chainrule.stats function for the distribution method that a scipy.stats frame runs; '' if there is none."""
    owner = frame.f_locals.get("self")
    owner = getattr(owner, "dist", owner)  # a frozen distribution
    kind = re.sub("_(gen|frozen)$", "", type(owner).__name__)
    name = _NEW_CLASSES.get(kind) or getattr(owner, "name", kind)
    distribution = getattr(importlib.import_module(_STATS), str(name), None)
    method = frame.f_code.co_name
    if method in ("__call__", "__init__"):
        return f"{_STATS}.{name}" if callable(distribution) else ""
    return f"{_STATS}.{name}.{method}" if not method.startswith("_") and hasattr(distribution, method) else ""


def _replacement(name: str, module: str) -> str:
    """Return the function for tensors that replaces ``module.name`` under another path; '' if there is none."""
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    if module.partition(".")[0] != "scipy" or module == "scipy.sparse":
        return ""
    numpy = sys.modules["numpy"]
    transforms = ((numpy.fft, "np.fft"),) if module == "scipy.fft" else ()
    for home, spelled in (*transforms, (numpy.linalg, "np.linalg"), (numpy, "np")):
        if callable(getattr(home, name, None)):
            return f"{spelled}.{name}"
    for spelled in ("chainrule.special", "chainrule.linalg"):
        if name in importlib.import_module(spelled).__all__:
            return f"{spelled}.{name}"
    return ""


def _same_path(name: str, module: str) -> str:
    """Return the chainrule function with the path of a SciPy function; '' if there is none."""
    modules = (
        [f"chainrule.{module}{part}" for part in ("", ".linalg", ".distance")] if module.startswith("scipy.") else []
    )
    if module == "scipy.sparse":
        modules.append("chainrule.sparse")
    return next((f"{candidate}.{name}" for candidate in modules if name in _names_in(candidate)), "")


def _names_in(module: str) -> list[str]:
    """Return the public names of a chainrule module; an empty list if there is no such module."""
    try:
        return importlib.import_module(module).__all__
    except ImportError:
        return []
