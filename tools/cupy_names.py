"""Write CuPy's names and signatures to ``tests/gpu/names.txt``, for ``tests/gpu/standin.py``.

Run it with an interpreter that has CuPy; a GPU is not needed. Each line is a function with its signature, a ufunc with its
numbers of inputs and outputs, or a name with ``=`` if it is NumPy's object.
"""

from __future__ import annotations

import inspect
import pathlib
import re
from typing import Any

import cupy
import cupyx.scipy.special
import numpy as np

MODULES = {
    "cupy": cupy,
    "cupy.linalg": cupy.linalg,
    "cupy.fft": cupy.fft,
    "cupy.lib.stride_tricks": cupy.lib.stride_tricks,
    "cupyx.scipy.special": cupyx.scipy.special,
}
OUT = pathlib.Path(__file__).parent.parent / "tests" / "gpu" / "names.txt"


def signature(x: Any) -> str:
    """Return the signature without annotations, for compiled functions from the first line of their docstring."""
    try:
        found = inspect.signature(x)
    except (TypeError, ValueError):
        first = re.match(r"[\w.]*(\([^\n]*\))", x.__doc__ or "")
        return first[1] if first else "(*args, **kwargs)"
    parameters = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def lines(module: str, names: Any) -> list[str]:
    """Return the section of the file for a module."""
    found = [f"[{module}]"]
    for name in sorted(n for n in dir(names) if not n.startswith("_")):
        x = getattr(names, name)
        if isinstance(x, type):
            continue
        if hasattr(x, "nin") and hasattr(x, "nargs"):
            found.append(f"{name} ufunc {x.nin} {x.nout}")
        elif type(x).__name__ == "_GUFunc":
            found.append(f"{name} ufunc 2 1")
        elif getattr(np, name, None) is x:
            found.append(f"{name} =")
        elif callable(x):
            found.append(f"{name}{signature(x)}")
    return found


if __name__ == "__main__":
    text = [f"CuPy {cupy.__version__}, by tools/cupy_names.py"]
    for module, names in MODULES.items():
        text += lines(module, names)
    text += ["[cupy.ndarray]", *sorted(n for n in dir(cupy.ndarray) if not n.startswith("_"))]
    OUT.write_text("\n".join(text) + "\n")
