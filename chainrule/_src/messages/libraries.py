"""Functions of NumPy and SciPy that make plain arrays of what they are given, and what stands in their place."""

from __future__ import annotations

import importlib
import linecache
import re
import sys
from types import FrameType
from typing import Any

from chainrule._src.messages.places import PACKAGE, calling_frame, user_frame
from chainrule._src.messages.reading import running

LIBRARIES = ("numpy", "scipy", "pandas", "matplotlib")
#: What has another name here. (What has the same is found by it.)
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
_CUT = "Where the path may be cut"
#: What to say of the functions of a module.
_GUIDES = {
    "numpy.ma": "fill the masked array first, as in m.filled(0) * x, or choose with np.where(m.mask, 0, x)",
    "matplotlib": "draw its numbers",
    "pandas.groupby": "np.bincount(codes, weights=x) sums x over groups and keeps the derivative, with "
    "codes, keys = pd.factorize(df[key]); divided by np.bincount(codes) it is the mean",
    "pandas": "take its numbers first, as in df.to_numpy() @ x",
    "scipy.stats": "chainrule.stats has SciPy's common distributions, with derivatives by the point and by all parameters "
    "(docs/guide/statistics.md); a statistic is a line of NumPy",
    "scipy.integrate.quad": "chainrule.scipy.integrate.quad has derivatives of integrals of numbers",
    "scipy.integrate": "a Function that solves the adjoint equation has a gradient (docs/guide/scipy.md, Differential equations)",
    "scipy.optimize": "chainrule.scipy has these functions for tensors and fills in derivatives (docs/guide/solvers.md); the "
    "gradient of a solution is one of chainrule.implicit (docs/guide/implicit.md)",
    "scipy.interpolate": "chainrule.scipy.interpolate has splines of that kind, and evaluate(spline, x) for one of SciPy's",
    "scipy.sparse": "A @ x keeps the derivative for SciPy's matrices, and for its linear operators "
    "chainrule.scipy.sparse.linalg.aslinearoperator(A) @ x, beside which are solvers",
}


def taken_by_library(tensor: object) -> tuple[str, str] | None:
    """The user's name of a tensor that a function of NumPy or SciPy makes an array of, and what to say about it.

    None where the user's own line does it.
    """
    frame = calling_frame()
    library = called = distribution = ""
    entered: list[str] = []  # the functions of the library, from the one that was called
    while frame is not None and (now := _library(frame)):
        library = library if now == "scipy" and library else now  # what SciPy's modules share is in private ones
        called = _public(frame, now) or called
        entered[:0] = _names(frame)
        if now == "scipy.stats":
            distribution = _distribution(frame) or distribution
        frame = frame.f_back
    if not library or frame is None:
        return None
    line = running(None if frame.f_code.co_filename.startswith(PACKAGE) else frame)
    callee = re.match(r"([\w.]+)\(.*\)$", line.text, re.DOTALL) if line.instruction != "BINARY_OP" else None
    called = callee[1] if callee else called or library
    x = next((n for n, value in frame.f_locals.items() if value is tensor and not n.startswith("_")), "")
    if not x:  # a library may have made another one of the user's
        names = dict.fromkeys(re.findall(r"\b[A-Za-z]\w*\b(?!\s*[.(=])", line.text))
        held = [n for n in names if hasattr(type(frame.f_locals.get(n)), "_edge")]
        x = held[0] if len(held) == 1 else "tensor"
    grouped = library == "pandas" and ".groupby(" in _source(frame)
    return x, _text(called, x, "pandas.groupby" if grouped else library, entered, distribution)


def instead_of_number(array: Any) -> str:
    """What to write for the user's call of a library's function that makes a number of an array; '' if that is not known."""
    taken = taken_by_library(array)
    return "" if taken is None else taken[1].partition(_CUT)[0]


def instead_of_arrays(tensor: object, x: str, detach: bool = True) -> str:
    """What to write for the user's call that makes a plain array of tensors; '' if that is not known.

    ``detach``: whether cutting the path is a way out.
    """
    taken = taken_by_library(tensor)
    if taken:
        return taken[1] if detach else taken[1].partition(_CUT)[0].rstrip()
    text = running(user_frame()).text
    if re.search(r"\(\s*[\[(]", text) or (x == "tensor" and re.search(r"array\(", text)):
        rows = " Rows of numbers: np.block([[a, b], [c, d]])." * bool(re.search(r"\[\s*\[", text))
        cuts = f"; {x}.detach().numpy() cuts the path" * detach
        return f"To put tensors together use stack([...]) (np.stack works, too){cuts}.{rows}"
    return ""


def _text(called: str, x: str, module: str, entered: list[str], distribution: str) -> str:
    """What to say of a call of the user's. (``entered``: the functions that ran; it may have another name for the first.)"""
    name = called.rpartition(".")[2]
    cut = f"{_CUT}: {x}.detach().numpy()."
    instead = distribution
    if module != "scipy.stats":
        ours = [_ours(known, module) for known in (name, *entered)]
        instead = next(filter(None, ours), "") or _instead(name, module)
        if not instead and entered[:1] == ["vectorize"]:
            called, instead = "np.vectorize", _instead("vectorize", module)
    if module == "numpy" and not instead and hasattr(getattr(sys.modules["numpy"], name, None), "_implementation"):
        return f"{called} makes an array of a list that holds tensors: np.stack([...]) of the list is a tensor. {cut}"
    if instead:
        return f"{called} takes plain arrays: {instead} keeps the derivative. {cut}"
    guide = next((text for part, text in _GUIDES.items() if f"{module}.{name}".startswith(part)), "")
    if guide:
        return f"{called} takes plain arrays: {guide}. {cut}"
    return (
        f"{called} takes plain arrays, and chainrule has nothing of that name: write it with functions that have rules, "
        f"or give it rules (chainrule.primitive). {cut}"
    )


def _source(frame: FrameType) -> str:
    """The lines of the code that a frame runs."""
    lines = [line for _, _, line in frame.f_code.co_lines() if line]
    return "".join(linecache.getlines(frame.f_code.co_filename)[min(lines) - 1 : max(lines)])


def _library(frame: FrameType) -> str:
    """The package that a frame's code is from: ``numpy``, ``numpy.ma``, ``scipy.stats``; '' for the user's own."""
    parts = _running(frame)[0].split(".")
    if parts[0] not in LIBRARIES:
        return ""
    apart = parts[0] == "scipy" or parts[:2] == ["numpy", "ma"]
    return parts[0] if not apart or len(parts) < 2 or parts[1].startswith("_") else ".".join(parts[:2])


def _running(frame: FrameType) -> tuple[str, str]:
    """The module and the name of the function that a frame runs, or of the one that it is a wrapper of."""
    inside = frame.f_locals.get("f") if frame.f_code.co_name == "wrapper" else None
    if inside is not None and hasattr(inside, "__name__"):
        return str(inside.__module__), str(inside.__name__)
    return str(frame.f_globals.get("__name__", "")), frame.f_code.co_name


def _names(frame: FrameType) -> list[str]:
    """The name of the function that a frame runs, and that of its class where it is made or called."""
    name = _running(frame)[1]
    return [name] if name not in ("__init__", "__call__") else [type(frame.f_locals.get("self")).__name__]


def _public(frame: FrameType, library: str) -> str:
    """The name by which users call the function that a frame runs; '' if it is not one of theirs."""
    if library == "numpy.ma":
        return "np.ma"
    owner = type(frame.f_locals.get("self")).__name__
    if owner in ("RClass", "CClass"):
        return f"np.{owner[0].lower()}_"
    name = _running(frame)[1]
    known = not name.startswith("_") and callable(getattr(sys.modules.get(library), name, None))
    return f"{'np' if library == 'numpy' else library}.{name}" if known else ""


#: What scipy.stats calls its newer distributions.
_NEWER = {"Binomial": "binom", "Logistic": "logistic", "Normal": "norm", "Uniform": "uniform"}


def _distribution(frame: FrameType) -> str:
    """The function of ours for the method of a distribution that a frame of scipy.stats runs; '' if there is none."""
    owner = frame.f_locals.get("self")
    owner = getattr(owner, "dist", owner)  # of a frozen one
    kind = re.sub("_(gen|frozen)$", "", type(owner).__name__)
    name = _NEWER.get(kind) or getattr(owner, "name", kind)
    ours = getattr(importlib.import_module("chainrule.stats"), str(name), None)
    method = frame.f_code.co_name
    if method in ("__call__", "__init__"):
        return f"chainrule.stats.{name}" if callable(ours) else ""
    return f"chainrule.stats.{name}.{method}" if not method.startswith("_") and hasattr(ours, method) else ""


def _instead(name: str, module: str) -> str:
    """The function for tensors that computes the same as one of a module; '' if there is none."""
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


def _ours(name: str, module: str) -> str:
    """The function for tensors by the same name as one of a module of SciPy's; '' if there is none."""
    homes = (
        [f"chainrule.{module}{part}" for part in ("", ".linalg", ".distance")] if module.startswith("scipy.") else []
    )
    if module == "scipy.sparse":
        homes.append("chainrule.sparse")
    return next((f"{home}.{name}" for home in homes if name in _names_in(home)), "")


def _names_in(module: str) -> list[str]:
    """The public names of a module of ours, if there is one."""
    try:
        return importlib.import_module(module).__all__
    except ImportError:
        return []
