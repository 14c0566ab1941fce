"""Linear algebra, and Fourier transforms."""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError as _NumpyLinAlgError

from chainrule.errors.words import dtype_word, shape_of


class LinAlgError(RuntimeError, _NumpyLinAlgError):
    """A matrix that has no such decomposition or inverse; NumPy's error of that name and PyTorch's at once."""


def matrix_rank_low(function: str, x: Any, name: str = "A") -> LinAlgError:
    return LinAlgError(
        f"{function}: The input tensor {name} must have at least 2 dimensions. It has shape {shape_of(x)}: the last "
        "two axes are a "
        "matrix's rows and columns, the others a batch."
    )


def matrix_not_square(function: str, x: Any) -> LinAlgError:
    rows, columns = shape_of(x)[-2:]
    return LinAlgError(f"{function}: A must be batches of square matrices, but they are {rows} by {columns} matrices")


def matrix_dtype(function: str, x: Any) -> RuntimeError:
    if x.dtype == "float16":
        return RuntimeError(f"{function}: Low precision dtypes not supported. Got Half: convert with .float() first")
    return RuntimeError(
        f"{function}: Expected a floating point or complex tensor as input. Got {dtype_word(x.dtype)}: convert with "
        ".float() or "
        ".double() first"
    )


def matrix_shapes(function: str, a: Any, b: Any, left: bool = True) -> LinAlgError:
    (m, n), (p, q) = shape_of(a)[-2:], shape_of(b)[-2:]
    return LinAlgError(
        f"{function}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} ({m}x{n} and "
        f"{p}x{q})"
    )


def matrix_dtypes(function: str, a: Any, b: Any) -> RuntimeError:
    return RuntimeError(
        f"{function}: Expected A and B to have the same dtype, but found A of type {dtype_word(a.dtype)} and B of type "
        f"{dtype_word(b.dtype)} instead: convert one with .to({a.dtype}) or .to({b.dtype})"
    )


def ill_defined_phase(function: str, vectors: str) -> RuntimeError:
    return RuntimeError(
        f"{function}_backward: The {vectors} in the complex case are specified up to multiplication by e^{{i phi}}. "
        "The specified "
        "loss function depends on this quantity, so it is ill-defined. Use a loss that a phase does not change, such "
        "as one "
        "of absolute values."
    )


def svd_extra_columns() -> RuntimeError:
    return RuntimeError(
        "svd_backward: the loss depends on the columns of U (or rows of Vh) that full_matrices=True adds. They are "
        "not determined by "
        "the matrix, so there is no gradient through them: use full_matrices=False, or only the first min(m, n) of "
        "them."
    )


# -- Fourier transforms ----------------------------------------------------------------------------------------------


def fft_norm(norm: Any, kind: type[Exception] = RuntimeError) -> Exception:
    text = f'Invalid normalization mode: "{norm}".' if kind is RuntimeError else f"Invalid norm value {norm}."
    return kind(f'{text} It is "backward" (the inverse is scaled), "forward" or "ortho" (both are)')


def fft_points(function: str, n: int, kind: type[Exception] = RuntimeError) -> Exception:
    why = ""
    if function.startswith(("irfft", "hfft")):
        why = ". Along the last, m frequencies give 2·(m − 1) points if nobody says how many"
    return kind(
        f"Invalid number of {'' if kind is RuntimeError else 'FFT '}data points ({n}) specified: {function} needs at "
        f"least 1 along every axis that it transforms{why}"
    )


def fft_half(function: str) -> RuntimeError:
    return RuntimeError(f"Unsupported dtype Half: {function} computes in single and double precision. Use .float()")


def fft_needs_real(function: str, x: Any, kind: type[Exception] = RuntimeError) -> Exception:
    word, name = dtype_word(x.dtype), function.rpartition(".")[2]
    if name == "ihfftn":
        text = f"Only supports floating-point dtypes, but found: {word} for {function}"
    else:
        text = f"{function} expects a real{'' if name.endswith('t') else '-valued'} input tensor, but got {word}"
    whole = name.replace("rfft", "fft").replace("hfft", "fft")
    return kind(f"{text}. {whole} is the transform of complex numbers; or take .real first")


def fft_out(function: str, out: Any, real: bool) -> RuntimeError:
    kind = "floating point" if real else "complex"
    return RuntimeError(f"{function} expects a {kind} output tensor, but got {dtype_word(out.dtype)}")
