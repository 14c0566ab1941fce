"""Messages about the arguments of operations: numbers, dtypes, dimensions, windows, matrices and transforms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainrule._src.messages.kinds import LinAlgError
from chainrule._src.messages.message_parts import dtype_word, shape_of
from chainrule._src.messages.reading import step_of_loop
from chainrule._src.messages.source_locations import bracketed, user_line, warn


def number_overflows(number: object, dtype: object) -> RuntimeError:
    return RuntimeError(
        f"value cannot be converted to type {dtype} without overflow: {dtype} cannot represent {number!r}. "
        "Choose a wider dtype, or convert afterwards: tensor(data).to(dtype) wraps around."
    )


def complex_number(array: Any, dtype: object) -> TypeError:
    return TypeError(
        f"must be real number, not complex: {dtype} cannot represent {array.flat[0].item()}. Omit dtype, or take "
        ".real of the data."
    )


def bound_type(function: str, argument: str, value: object) -> TypeError:
    return TypeError(f"{function}(): argument '{argument}' must be Number or Tensor, not {type(value).__name__}")


def not_an_int(function: str, argument: str, value: object) -> TypeError:
    return TypeError(f"{function}(): argument '{argument}' must be int, not {type(value).__name__}")


def reduction_name(given: object) -> ValueError:
    return ValueError(f"{given} is not a valid value for reduction: use 'mean', 'sum' or 'none'")


def zero_division(function: str) -> RuntimeError:
    return RuntimeError(
        f"ZeroDivisionError: {function} of integers by zero is undefined. Divide floats (x.float()) to get inf or nan."
    )


def reshape_size(function: str, shape: Iterable[object], target: Iterable[object], numel: object) -> RuntimeError:
    return RuntimeError(f"shape '{list(target)}' is invalid for input of size {numel}: {function} from {tuple(shape)}")


def no_dimensions(dim: object) -> IndexError:
    return IndexError(f"Dimension specified as {dim} but tensor has no dimensions")


def repeated_dim(dim: object) -> RuntimeError:
    return RuntimeError(f"dim {dim} appears multiple times in the list of dims")


def same_diagonal_axes(dim1: object, dim2: object) -> RuntimeError:
    return RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")


def padding_index() -> AssertionError:
    return AssertionError("Padding_idx must be within num_embeddings")


def quantile_range() -> ValueError:
    return ValueError("Quantiles must be in the range [0, 1]")


def complex_quantiles() -> TypeError:
    return TypeError("a must be an array of real numbers")


def forbidden_cast(source: object, target: object, casting: object) -> TypeError:
    return TypeError(f"Cannot cast array data from {source!r} to {target!r} according to the rule {casting!r}")


def numpy_keyword(name: str, keyword: str) -> TypeError:
    return TypeError(f"np.{name} on tensors does not take {keyword!r}")


def needs_scipy(function: str) -> ImportError:
    return ImportError(f"{function} needs SciPy, which is not installed: pip install chainrule[scipy]")


def spatial_rank(function: str, x: object, axes: int) -> RuntimeError:
    return RuntimeError(
        f"Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) input to {function}, but got input of size: "
        f"{list(shape_of(x))}. The axes are (batch,) channels, and {axes} spatial axes"
    )


def window_numbers(function: str, argument: str, value: object, axes: int) -> RuntimeError:
    return RuntimeError(
        f"{function}: {argument} must be an int or a tuple of {axes} ints, one for each axis; got {value!r}"
    )


def convolution_groups(function: str, weight: object, groups: object) -> RuntimeError:
    return RuntimeError(
        f"Given groups={groups}, expected weight to be at least {groups} at dimension 0 and divisible by it, but "
        f"got weight of size {list(shape_of(weight))} instead ({function})"
    )


def convolution_bias(function: str, weight: object, bias: object, channels: object) -> RuntimeError:
    return RuntimeError(
        f"Given weight of size {list(shape_of(weight))}, expected bias to be 1-dimensional with {channels} "
        f"elements, but got bias of size {list(shape_of(bias))} instead ({function} adds one number per output "
        "channel)"
    )


def too_small_output(function: str, x: object, counts: Iterable[object]) -> RuntimeError:
    return RuntimeError(
        f"Given input size: {shape_of(x)}. Calculated output size: {tuple(counts)}. Output size is too small: no "
        f"window of {function} fits"
    )


def pool_input(function: str, x: object, axes: int) -> RuntimeError:
    return RuntimeError(
        f"{function}: Expected {axes + 1}D or {axes + 2}D (batch mode) tensor with optional 0 dim batch size for "
        f"input, but got: {list(shape_of(x))}. The non-batch dimensions of the input must have positive length"
    )


def kernel_too_large(padded: Iterable[object], kernel: Iterable[object]) -> RuntimeError:
    return RuntimeError(
        f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
        f"({' x '.join(map(str, kernel))}). Kernel size can't be greater than actual input size; padding enlarges "
        "the input"
    )


def matrix_rank_low(function: str, x: object, name: str = "A") -> LinAlgError:
    return LinAlgError(
        f"{function}: The input tensor {name} must have at least 2 dimensions. It has shape {shape_of(x)}: the "
        "last two axes are the rows and columns of a matrix, and all axes before them are batch axes."
    )


def matrix_dtypes(function: str, a: Any, b: Any) -> RuntimeError:
    return RuntimeError(
        f"{function}: Expected A and B to have the same dtype, but found A of type {dtype_word(a.dtype)} and B of "
        f"type {dtype_word(b.dtype)} instead: convert one with .to({a.dtype}) or .to({b.dtype})"
    )


def ill_defined_phase(function: str, vectors: object) -> RuntimeError:
    return RuntimeError(
        f"{function}_backward: The {vectors} in the complex case are specified up to multiplication by e^{{i phi}}. "
        "The specified loss function depends on this quantity, so it is ill-defined. Use a loss that is invariant "
        "under a change of phase, such as a function of absolute values."
    )


def svd_extra_columns() -> RuntimeError:
    return RuntimeError(
        "svd_backward: the loss depends on the columns of U (or rows of Vh) that full_matrices=True adds. The "
        "matrix does not determine them, so they have no gradient: use full_matrices=False, or only the first "
        "min(m, n) columns."
    )


def fft_half(function: str) -> RuntimeError:
    return RuntimeError(f"Unsupported dtype Half: {function} computes in single and double precision. Use .float()")


def matrix_not_square(function: str, x: object) -> LinAlgError:
    return LinAlgError(
        f"{function}: A must be batches of square matrices, but they are "
        f"{' by '.join(map(str, shape_of(x)[-2:]))} matrices"
    )


def matrix_shapes(function: str, a: object, b: object, left: bool = True) -> LinAlgError:
    return LinAlgError(
        f"{function}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
        f"({'x'.join(map(str, shape_of(a)[-2:]))} and {'x'.join(map(str, shape_of(b)[-2:]))})"
    )


def fft_out(function: str, out: Any, real: object) -> RuntimeError:
    return RuntimeError(
        f"{function} expects a {'floating point' if real else 'complex'} output tensor, but got {dtype_word(out.dtype)}"
    )


def singular_inverse(element: object, k: object) -> LinAlgError:
    return LinAlgError(
        f"linalg.inv: {element}The diagonal element {k} is zero, the inversion could not be completed because the "
        f"input matrix is singular{bracketed(user_line())}{step_of_loop()}. pinv computes the pseudoinverse."
    )


def not_positive_definite(element: object, k: object) -> LinAlgError:
    return LinAlgError(
        f"linalg.cholesky: {element}The factorization could not be completed because the input is not "
        f"positive-definite (the leading minor of order {k} is not "
        f"positive-definite){bracketed(user_line())}{step_of_loop()}."
    )


def singular_system(name: str) -> LinAlgError:
    return LinAlgError(
        f"{name}: The solver failed because the input matrix is singular{bracketed(user_line())}{step_of_loop()}. "
        "lstsq computes the least-squares solution."
    )


def warn_out_resized(have: Iterable[object], want: Iterable[object]) -> None:
    warn(
        f"An output with one or more elements was resized since it had shape {list(have)}, which does not match "
        f"the required output shape {list(want)}. Pass out= a tensor of the right shape, or an empty tensor."
    )


def time_in_derivative(op: str, dtype: object) -> TypeError:
    return TypeError(
        f"{op}{bracketed(user_line())} returns {dtype}, an integer number of time units, which has no derivative. "
        "Divide the time by its unit first, as in x * (dt / np.timedelta64(1, 's'))."
    )


def complex_into_real(dtype: Any) -> RuntimeError:
    return RuntimeError(
        f"value cannot be converted to type {dtype_word(dtype)} without overflow: the value is complex; assign its "
        ".real part"
    )


def index_put_dtype(got: Any, want: Any) -> RuntimeError:
    return RuntimeError(
        f"Index put requires the source and destination dtypes match, got {dtype_word(want)} for the destination "
        f"and {dtype_word(got)} for the source.\n"
        "Convert the value with .to(dtype) first."
    )


def scalar_loc() -> ValueError:
    return ValueError("loc must be at least one-dimensional.")
