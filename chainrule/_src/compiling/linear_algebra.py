"""Lower NumPy's linear algebra to the inner loops of the gufuncs of ``np.linalg``, which call LAPACK.

``lowering`` calls the functions in ``FUNCTIONS``, which append the loops of a call to a ``CallLoops``. NumPy computes in float64 or
complex128 and converts the results back. If a matrix is singular or not positive definite, a gufunc raises the FP exception flag
"invalid"; NumPy ignores other flags. Loops that can fail are ``checked``: if one fails, the call runs eagerly and raises NumPy's error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyDType, Params
from chainrule._src.compiling.call_loops import CallLoops
from chainrule._src.compiling.factors import add_shared
from chainrule._src.compiling.iteration import dense_strides, size_of_shape
from chainrule._src.compiling.loops import Operand, Unlowered, loop_of, own_loop
from chainrule._src.compiling.products import add_core_loop, core_names
from chainrule._src.interpreters.trace_types import TracedCall, Var
from chainrule._src.table import gufuncs, triangular

DOUBLE, COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)
_GUFUNCS: Any = getattr(np.linalg, "_umath_linalg", None)


def _gufunc(name: str, operands: list[Operand]) -> tuple[np.ufunc, tuple[NumpyDType, ...], tuple[int, int]]:
    """Return a gufunc of ``np.linalg``, its dtypes, and its loop for these operands as (function address, data address)."""
    ufunc = getattr(_GUFUNCS, name, None)
    if not isinstance(ufunc, np.ufunc) or any(x.dtype.char not in "fdFD" or 0 in x.layout.shape for x in operands):
        raise Unlowered
    char = "D" if any(x.dtype.kind == "c" for x in operands) else "d"
    for types in ufunc.types:
        if types.startswith(char * ufunc.nin + "->"):
            dtypes = tuple(map(np.dtype, types.replace("->", "")))
            is_small = (
                char == "d" and operands[0].layout.shape[-1] <= gufuncs.MAX_ROWS and name in gufuncs.small_loops()
            )
            return ufunc, dtypes, (gufuncs.small_loops()[name], 0) if is_small else loop_of(ufunc, dtypes)
    raise Unlowered


def _add_gufunc_loop(loops: CallLoops, name: str, reads: list[Operand], writes: list[Operand], checked: bool) -> None:
    """Add a call of a gufunc in the dtype that NumPy computes in."""
    ufunc, dtypes, found = _gufunc(name, reads)
    inputs = [loops.converted(x, dtype) for x, dtype in zip(reads, dtypes, strict=False)]
    outputs = [_result_operand(loops, out, dtype) for out, dtype in zip(writes, dtypes[ufunc.nin :], strict=True)]
    add_core_loop(loops, name, core_names(ufunc), found, inputs, outputs, checked)
    if name in ("solve", "solve1", "inv", "det", "slogdet") and len(loops.template.loops) and inputs[0] is reads[0]:
        add_shared(loops, name, inputs, outputs)
    for x, out in zip(outputs, writes, strict=True):
        if x is not out:
            loops.copy(x, out)


def _result_operand(loops: CallLoops, out: Operand, dtype: NumpyDType) -> Operand:
    """Return a result, or a temporary of its shape in the dtype that it is computed in."""
    return out if out.dtype == dtype else _scratch_operand(loops, out.layout.shape, dtype)


def _scratch_operand(loops: CallLoops, shape: tuple[int, ...], dtype: NumpyDType) -> Operand:
    strides = dense_strides(shape, list(range(len(shape) - 1, -1, -1)), dtype.itemsize)
    return Operand(loops.template.temporary(size_of_shape(shape) * dtype.itemsize), shape, strides, dtype)


def _arguments(loops: CallLoops, call: TracedCall, count: int, options: Params) -> dict[str, bool | str]:
    """Return the options of a call whose first ``count`` arguments are its only arrays."""
    given = options | dict(zip(options, call.args[count:], strict=False)) | call.kwargs
    if len(loops.reads) != count or len(given) != len(options) or len(call.args) > count + len(options):
        raise Unlowered
    if not all([type(x) is Var for x in call.args[:count]]):
        raise Unlowered
    return given


def lower_solve(loops: CallLoops, call: TracedCall) -> None:
    _arguments(loops, call, 2, {})
    name = "solve1" if len(loops.reads[1].layout.shape) == 1 else "solve"
    _add_gufunc_loop(loops, name, loops.reads, loops.writes, True)


def lower_inv(loops: CallLoops, call: TracedCall) -> None:
    _arguments(loops, call, 1, {})
    _add_gufunc_loop(loops, "inv", loops.reads, loops.writes, True)


def lower_det(loops: CallLoops, call: TracedCall) -> None:
    _arguments(loops, call, 1, {})
    _add_gufunc_loop(loops, "det", loops.reads, loops.writes, False)


def lower_slogdet(loops: CallLoops, call: TracedCall) -> None:
    _arguments(loops, call, 1, {})
    _add_gufunc_loop(loops, "slogdet", loops.reads, loops.writes, False)


def lower_cholesky(loops: CallLoops, call: TracedCall) -> None:
    upper = _arguments(loops, call, 1, {"upper": False})["upper"]
    _add_gufunc_loop(loops, "cholesky_up" if upper else "cholesky_lo", loops.reads, loops.writes, True)


def lower_eigh(loops: CallLoops, call: TracedCall) -> None:
    triangle = _arguments(loops, call, 1, {"UPLO": "L"})["UPLO"]
    _add_gufunc_loop(loops, "eigh_lo" if triangle in ("L", "l") else "eigh_up", loops.reads, loops.writes, True)


def lower_eigvalsh(loops: CallLoops, call: TracedCall) -> None:
    triangle = _arguments(loops, call, 1, {"UPLO": "L"})["UPLO"]
    _add_gufunc_loop(loops, "eigvalsh_lo" if triangle in ("L", "l") else "eigvalsh_up", loops.reads, loops.writes, True)


def lower_svd(loops: CallLoops, call: TracedCall) -> None:
    given = _arguments(loops, call, 1, {"full_matrices": True, "compute_uv": True, "hermitian": False})
    if given["hermitian"]:
        raise Unlowered
    name = ("svd_f" if given["full_matrices"] else "svd_s") if given["compute_uv"] else "svd"
    _add_gufunc_loop(loops, name, loops.reads, loops.writes, True)


def lower_qr(loops: CallLoops, call: TracedCall) -> None:
    """Lower ``np.linalg.qr``. The Householder vectors overwrite a copy of the matrix; the triangle above them is R."""
    mode = _arguments(loops, call, 1, {"mode": "reduced"})["mode"]
    if mode not in ("reduced", "complete", "r"):
        raise Unlowered
    (x,) = loops.reads
    *stack, m, n = x.layout.shape
    ufunc, dtypes, found = _gufunc("qr_r_raw", [x])
    vectors = _scratch_operand(loops, x.layout.shape, dtypes[0])
    loops.copy(x, vectors)
    scales = _scratch_operand(loops, (*stack, min(m, n)), dtypes[1])
    add_core_loop(loops, "qr_r_raw", core_names(ufunc), found, [vectors], [scales], True, outputs=2)
    if mode != "r":
        ufunc, dtypes, found = _gufunc(
            "qr_complete" if mode == "complete" and m > n else "qr_reduced", [vectors, scales]
        )
        q = _result_operand(loops, loops.writes[0], dtypes[2])
        add_core_loop(loops, "qr", core_names(ufunc), found, [vectors, scales], [q], True)
        if q is not loops.writes[0]:
            loops.copy(q, loops.writes[0])
    out = loops.writes[-1]
    r = _result_operand(loops, out, dtypes[0])
    top = Operand(vectors.slot, out.layout.shape, vectors.layout.strides, vectors.dtype)
    lower_triangle(loops, top, r, 0, True)
    if r is not out:
        loops.copy(r, out)


def _lower_triangular_solution(loops: CallLoops, call: TracedCall) -> None:
    """Lower the solution of a small triangular system, which is computed in float64."""
    x, y = loops.reads if len(loops.reads) == 2 else (None, None)
    upper, unit = call.args[2:]
    if x is None or y is None or x.dtype != y.dtype or x.dtype.char not in "fd" or not triangular.in_c():
        raise Unlowered
    if x.layout.shape[:-2] != y.layout.shape[:-2] or 0 in x.layout.shape + y.layout.shape:
        raise Unlowered
    (out,) = loops.writes
    inputs = [loops.converted(x, DOUBLE), loops.converted(y, DOUBLE)]
    result = _result_operand(loops, out, DOUBLE)
    address, _ = own_loop("triangular")
    cores = [["m", "m"], ["m", "n"], ["m", "n"]]
    add_core_loop(loops, "triangular", cores, (address, 2 * unit + upper), inputs, [result], True)
    if result is not out:
        loops.copy(result, out)


def lower_triangle(loops: CallLoops, x: Operand, out: Operand, k: int, upper: bool) -> None:
    """Lower ``np.triu`` and ``np.tril``: the triangle on one side of a diagonal."""
    shape, itemsize = out.layout.shape, out.dtype.itemsize
    if x.layout.shape != shape or x.dtype != out.dtype or len(shape) < 2:
        raise Unlowered
    if size_of_shape(shape) == 0:
        return
    address, _ = own_loop(f"triangle{itemsize}")
    add_core_loop(loops, "triu" if upper else "tril", [["m", "n"], ["m", "n"]], (address, 2 * k + upper), [x], [out])


def _lower_triangle_call(loops: CallLoops, call: TracedCall) -> None:
    given = dict(zip(("m", "k"), call.args, strict=False)) | call.kwargs
    if len(loops.reads) != 1 or len(loops.reads[0].layout.shape) < 2 or type(given.get("k", 0)) is not int:
        raise Unlowered
    lower_triangle(loops, loops.reads[0], loops.writes[0], given.get("k", 0), call.function is np.triu)


#: the functions that lower NumPy functions
FUNCTIONS: dict[Any, Callable[[CallLoops, TracedCall], None]] = {
    np.linalg.solve: lower_solve,
    np.linalg.inv: lower_inv,
    np.linalg.det: lower_det,
    np.linalg.slogdet: lower_slogdet,
    np.linalg.cholesky: lower_cholesky,
    np.linalg.eigh: lower_eigh,
    np.linalg.eigvalsh: lower_eigvalsh,
    np.linalg.svd: lower_svd,
    np.linalg.qr: lower_qr,
    triangular.small_solution: _lower_triangular_solution,
    np.tril: _lower_triangle_call,
    np.triu: _lower_triangle_call,
}
