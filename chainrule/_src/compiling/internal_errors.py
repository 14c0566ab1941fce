"""Distinguish defects of the compiler from errors of compiled functions and of recorded calls.

``Compiled`` runs a call eagerly if its trace or its replay fails. ``is_internal`` takes the exception and returns whether
it shows a defect, which ``Compiled`` then reports once.
"""

from __future__ import annotations

from types import CodeType

import numpy as np

from chainrule._src.compiling.floating_point import NeedsEagerRun

# Plans raise NeedsEagerRun and LinAlgError for operands that eager code handles. A warning is raised if the user's filter is "error".
# RuntimeError is raised, for example, if a function uses a traced value of an earlier call.
_EXPECTED = NeedsEagerRun, np.linalg.LinAlgError, Warning, MemoryError, RuntimeError
_COMPILER = "chainrule._src.compiling.", "chainrule._src.interpreters.", "chainrule._src.native."
_RUNS_RECORDED_CALLS = "chainrule._src.compiling.python_executor"


def is_internal(error: BaseException) -> bool:
    """Return whether an exception of a call that succeeds eagerly shows a defect of the compiler.

    The innermost Python frame of such an exception belongs to the compiler. ``python_executor`` is excluded: it calls the recorded
    NumPy functions, and an exception that NumPy's C code raises has its frame as the innermost one.
    """
    _, module = _innermost_frame(error)
    return not isinstance(error, _EXPECTED) and module.startswith(_COMPILER) and module != _RUNS_RECORDED_CALLS


def describe_error(error: BaseException) -> str:
    """Return the type and the text of an exception, and the function of the library that raised it."""
    code, module = _innermost_frame(error)
    return f"{type(error).__name__}: {error} (in {getattr(code, 'co_qualname', module)} of {module})"


def _innermost_frame(error: BaseException) -> tuple[CodeType | None, str]:
    """Return the code of the innermost frame of a traceback, and the name of its module."""
    traceback = error.__traceback__
    if traceback is None:
        return None, ""
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_code, traceback.tb_frame.f_globals.get("__name__", "")
