"""Made by tools/stubs.py from the declarations."""

from typing import Any
from chainrule._src.arrays.device import DeviceLike
from chainrule._src.arrays.device import layout as _layout
from chainrule._src.arrays.types import DTypeLike
from chainrule._src.arrays.types import Dims
from chainrule._src.arrays.types import ShapeLike
from chainrule._src.arrays.types import TensorLike
from chainrule._src.ops.memory import Storage
from chainrule._src.ops.random import Generator
from chainrule._src.tape.tensor import Tensor
from collections.abc import Sequence
from typing import SupportsIndex
import builtins

class Methods:
    @property
    def H(self) -> Any: ...
    @property
    def T(self) -> Any: ...
    def abs(self) -> Tensor:
        """Return the absolute value of every element. The gradient at 0 is 0."""
    def abs_(self) -> Tensor:
        """Return the absolute value of every element. The gradient at 0 is 0."""
    def absolute(self) -> Tensor:
        """Return the absolute value of every element. The gradient at 0 is 0."""
    def absolute_(self) -> Tensor:
        """Return the absolute value of every element. The gradient at 0 is 0."""
    def acos(self, *, out: Any = ...) -> Any:
        """Return the inverse cosine, in radians."""
    def acos_(self, *, out: Any = ...) -> Any:
        """Return the inverse cosine, in radians."""
    def acosh(self, *, out: Any = ...) -> Any:
        """Return the inverse hyperbolic cosine."""
    def acosh_(self, *, out: Any = ...) -> Any:
        """Return the inverse hyperbolic cosine."""
    def add(self, other: TensorLike, *old: Any, alpha: TensorLike = ...) -> Tensor:
        """Return input + alpha·other."""
    def add_(self, other: TensorLike, *old: Any, alpha: TensorLike = ...) -> Tensor:
        """Return input + alpha·other."""
    def addbmm(self, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """Return beta·input + alpha·Σ_b (batch1[b] @ batch2[b])."""
    def addbmm_(self, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """Return beta·input + alpha·Σ_b (batch1[b] @ batch2[b])."""
    def addcdiv(self, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = ...) -> Tensor:
        """Return input + value·tensor1/tensor2."""
    def addcdiv_(self, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = ...) -> Tensor:
        """Return input + value·tensor1/tensor2."""
    def addcmul(self, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = ...) -> Tensor:
        """Return input + value·tensor1·tensor2."""
    def addcmul_(self, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = ...) -> Tensor:
        """Return input + value·tensor1·tensor2."""
    def addmm(self, mat1: TensorLike, mat2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """Return beta·input + alpha·(mat1 @ mat2)."""
    def addmm_(self, mat1: TensorLike, mat2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """Return beta·input + alpha·(mat1 @ mat2)."""
    def addmv(self, mat: TensorLike, vec: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """Return beta·input + alpha·(mat @ vec)."""
    def addmv_(self, mat: TensorLike, vec: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """Return beta·input + alpha·(mat @ vec)."""
    def addr(self, vec1: TensorLike, vec2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """Return beta·input + alpha·outer(vec1, vec2)."""
    def addr_(self, vec1: TensorLike, vec2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """Return beta·input + alpha·outer(vec1, vec2)."""
    def adjoint(self) -> Tensor:
        """Return the conjugate transpose of matrices."""
    def all(self, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Return whether all elements are nonzero."""
    def allclose(self, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> builtins.bool:
        """Return whether all elements are close (see :func:`isclose`)."""
    def amax(self, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Return the maximum over ``dim``; tied elements share the gradient evenly."""
    def amin(self, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Return the minimum over ``dim``; tied elements share the gradient evenly."""
    def aminmax(self, *, dim: SupportsIndex | None = ..., keepdim: builtins.bool = ...) -> Any:
        """Return the minimum and the maximum."""
    def angle(self, *, out: Any = ...) -> Any:
        """Return the argument of every complex number (0 or π for reals)."""
    def any(self, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Return whether any element is nonzero."""
    def arccos(self, *, out: Any = ...) -> Any:
        """Return the inverse cosine, in radians."""
    def arccos_(self, *, out: Any = ...) -> Any:
        """Return the inverse cosine, in radians."""
    def arccosh(self, *, out: Any = ...) -> Any:
        """Return the inverse hyperbolic cosine."""
    def arccosh_(self, *, out: Any = ...) -> Any:
        """Return the inverse hyperbolic cosine."""
    def arcsin(self, *, out: Any = ...) -> Any:
        """Return the inverse sine, in radians."""
    def arcsin_(self, *, out: Any = ...) -> Any:
        """Return the inverse sine, in radians."""
    def arcsinh(self, *, out: Any = ...) -> Any:
        """Return the inverse hyperbolic sine."""
    def arcsinh_(self, *, out: Any = ...) -> Any:
        """Return the inverse hyperbolic sine."""
    def arctan(self, *, out: Any = ...) -> Any:
        """Return the inverse tangent, in radians."""
    def arctan2(self, other: Any, *, out: Any = ...) -> Any:
        """Return the angle of the point (y, x), in radians. The gradient at the origin is 0."""
    def arctan2_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the angle of the point (y, x), in radians. The gradient at the origin is 0."""
    def arctan_(self, *, out: Any = ...) -> Any:
        """Return the inverse tangent, in radians."""
    def arctanh(self, *, out: Any = ...) -> Any:
        """Return the inverse hyperbolic tangent."""
    def arctanh_(self, *, out: Any = ...) -> Any:
        """Return the inverse hyperbolic tangent."""
    def argmax(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Return the index of the maximum of all elements (flattened) or along ``dim``. It has no gradient."""
    def argmin(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Return the index of the minimum of all elements (flattened) or along ``dim``. It has no gradient."""
    def argsort(self, dim: builtins.int = ..., descending: builtins.bool = ..., *, stable: builtins.bool = ...) -> Tensor:
        """Return the indices that sort along ``dim``; equal elements keep their order, and NaN sorts as the largest."""
    def argwhere(self, *, as_tuple: builtins.bool = ...) -> Any:
        """Return the indices of the nonzero elements, as a matrix with one row each, or as one vector per axis."""
    def as_strided(self, size: Any, stride: Any, storage_offset: builtins.int | None = ...) -> Tensor:
        """Return a view with a given size and strides (in elements); elements may occur several times."""
    def as_strided_(self, size: Any, stride: Any, storage_offset: builtins.int | None = ...) -> Tensor:
        """Return a view with a given size and strides (in elements); elements may occur several times."""
    def as_strided_scatter(self, src: Tensor, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
        """Return a copy in which the elements of :func:`as_strided`'s view are replaced by ``src``."""
    def as_subclass(self, cls: builtins.type[Tensor]) -> Tensor:
        """The same elements and history in a tensor of a subclass."""
    def asin(self, *, out: Any = ...) -> Any:
        """Return the inverse sine, in radians."""
    def asin_(self, *, out: Any = ...) -> Any:
        """Return the inverse sine, in radians."""
    def asinh(self, *, out: Any = ...) -> Any:
        """Return the inverse hyperbolic sine."""
    def asinh_(self, *, out: Any = ...) -> Any:
        """Return the inverse hyperbolic sine."""
    def astype(self, dtype: Any, copy: Any = ...) -> Any:
        ...
    def atan(self, *, out: Any = ...) -> Any:
        """Return the inverse tangent, in radians."""
    def atan2(self, other: Any, *, out: Any = ...) -> Any:
        """Return the angle of the point (y, x), in radians. The gradient at the origin is 0."""
    def atan2_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the angle of the point (y, x), in radians. The gradient at the origin is 0."""
    def atan_(self, *, out: Any = ...) -> Any:
        """Return the inverse tangent, in radians."""
    def atanh(self, *, out: Any = ...) -> Any:
        """Return the inverse hyperbolic tangent."""
    def atanh_(self, *, out: Any = ...) -> Any:
        """Return the inverse hyperbolic tangent."""
    def backward(self, gradient: object = ..., retain_graph: builtins.bool | None = ..., create_graph: builtins.bool = ..., inputs: object = ...) -> None:
        """Compute the gradients of the leaves this tensor was computed from, and add them to their ``.grad``."""
    def baddbmm(self, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """Return beta·input + alpha·(batch1 @ batch2)."""
    def baddbmm_(self, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """Return beta·input + alpha·(batch1 @ batch2)."""
    def bernoulli(self, p: builtins.float | None = ..., *, generator: Generator | None = ...) -> Tensor:
        """Return 1 with the probability given by each element (or with probability ``p`` for all), else 0."""
    def bernoulli_(self, p: builtins.float | None = ..., *, generator: Generator | None = ...) -> Tensor:
        """Return 1 with the probability given by each element (or with probability ``p`` for all), else 0."""
    def bincount(self, weights: object = ..., minlength: builtins.int = ...) -> Tensor:
        """Return how often every non-negative integer occurs; with weights, the sum of their weights."""
    def bitwise_and(self, other: Any, *, out: Any = ...) -> Any:
        """Return the bits set in both elements."""
    def bitwise_and_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the bits set in both elements."""
    def bitwise_left_shift(self, other: Any, *, out: Any = ...) -> Any:
        """Shift the bits of x left by y."""
    def bitwise_left_shift_(self, other: Any, *, out: Any = ...) -> Any:
        """Shift the bits of x left by y."""
    def bitwise_not(self, *, out: Any = ...) -> Any:
        """Flip all bits (logical not for booleans)."""
    def bitwise_not_(self, *, out: Any = ...) -> Any:
        """Flip all bits (logical not for booleans)."""
    def bitwise_or(self, other: Any, *, out: Any = ...) -> Any:
        """Return the bits set in at least one of two elements."""
    def bitwise_or_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the bits set in at least one of two elements."""
    def bitwise_right_shift(self, other: Any, *, out: Any = ...) -> Any:
        """Shift the bits of x right by y."""
    def bitwise_right_shift_(self, other: Any, *, out: Any = ...) -> Any:
        """Shift the bits of x right by y."""
    def bitwise_xor(self, other: Any, *, out: Any = ...) -> Any:
        """Return the bits set in exactly one of two elements."""
    def bitwise_xor_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the bits set in exactly one of two elements."""
    def bmm(self, other: TensorLike) -> Tensor:
        """Return the matrix products of two stacks of matrices."""
    def bool(self, memory_format: object = ...) -> Tensor:
        """Cast the tensor to bool. Recorded."""
    def broadcast_to(self, size: Any) -> Tensor:
        """Broadcast to a shape, without copying."""
    def byte(self, memory_format: object = ...) -> Tensor:
        """Cast the tensor to uint8. Recorded."""
    def cauchy_(self, *args: object, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with random numbers (cauchy)."""
    def cdouble(self, memory_format: object = ...) -> Tensor:
        """Cast the tensor to complex128. Recorded."""
    def ceil(self, *, out: Any = ...) -> Any:
        """Return the smallest integer that is not below each element."""
    def ceil_(self, *, out: Any = ...) -> Any:
        """Return the smallest integer that is not below each element."""
    def cfloat(self, memory_format: object = ...) -> Tensor:
        """Cast the tensor to complex64. Recorded."""
    def char(self, memory_format: object = ...) -> Tensor:
        """Cast the tensor to int8. Recorded."""
    def cholesky(self, upper: builtins.bool = ...) -> Tensor:
        """Return the Cholesky factor, as :func:`linalg.cholesky` does."""
    def cholesky_inverse(self, upper: builtins.bool = ...) -> Tensor:
        """Return the inverse of the matrix whose Cholesky factor is L."""
    def cholesky_solve(self, L: Tensor, upper: builtins.bool = ...) -> Tensor:
        """Return the solution X of A @ X = B, where L is the Cholesky factor of A."""
    def chunk(self, chunks: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """Split along ``dim`` into at most ``chunks`` views of equal size; the last may be smaller."""
    def clamp(self, min: Any = ..., max: Any = ...) -> Tensor:
        """Limit the elements to [min, max]; bounds are numbers or tensors. At a bound the gradient is passed on."""
    def clamp_(self, min: Any = ..., max: Any = ...) -> Tensor:
        """Limit the elements to [min, max]; bounds are numbers or tensors. At a bound the gradient is passed on."""
    def clamp_max(self, max: TensorLike) -> Tensor:
        """Return the smaller of each element and ``max``."""
    def clamp_max_(self, max: TensorLike) -> Tensor:
        """Return the smaller of each element and ``max``."""
    def clamp_min(self, min: TensorLike) -> Tensor:
        """Return the larger of each element and ``min``."""
    def clamp_min_(self, min: TensorLike) -> Tensor:
        """Return the larger of each element and ``min``."""
    def clip(self, min: Any = ..., max: Any = ...) -> Tensor:
        """Limit the elements to [min, max]; bounds are numbers or tensors. At a bound the gradient is passed on."""
    def clip_(self, min: Any = ..., max: Any = ...) -> Tensor:
        """Limit the elements to [min, max]; bounds are numbers or tensors. At a bound the gradient is passed on."""
    def clone(self, *, memory_format: object = ...) -> Tensor:
        """Return a copy with the tensor's memory order, or (``contiguous_format``) in C order. Gradients flow through it."""
    def compute(self) -> Tensor:
        """Return the tensor with its values in memory, computed if it is lazy. ``cr.compute(x, y)`` computes several in one pass."""
    def conj(self) -> Tensor:
        """Return the complex conjugate (the tensor itself, for real dtypes)."""
    def conj_physical(self) -> Tensor:
        """Return the complex conjugate (the tensor itself, for real dtypes)."""
    def conj_physical_(self) -> Tensor:
        """Return the complex conjugate (the tensor itself, for real dtypes)."""
    def contiguous(self, memory_format: object = ...) -> Tensor:
        """Return the tensor itself if it is contiguous in C order, else a contiguous copy."""
    def copy_(self, other: Any, non_blocking: builtins.bool = ...) -> Tensor:
        """Copy another tensor's elements (broadcast and cast) into this one, in place. Gradients flow to the source."""
    def copysign(self, other: Any, *, out: Any = ...) -> Any:
        """Return the magnitude of x with the sign of y."""
    def copysign_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the magnitude of x with the sign of y."""
    def corrcoef(self) -> Tensor:
        """Return the correlation coefficients of variables: their covariances, divided by both standard deviations."""
    def cos(self, *, out: Any = ...) -> Any:
        """Return the cosine of angles in radians."""
    def cos_(self, *, out: Any = ...) -> Any:
        """Return the cosine of angles in radians."""
    def cosh(self, *, out: Any = ...) -> Any:
        """Return the hyperbolic cosine."""
    def cosh_(self, *, out: Any = ...) -> Any:
        """Return the hyperbolic cosine."""
    def count_nonzero(self, dim: Dims = ...) -> Tensor:
        """Return how many elements are nonzero."""
    def cov(self, *, correction: builtins.int = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ...) -> Tensor:
        """Return the covariances of variables."""
    def cpu(self, memory_format: object = ...) -> Tensor:
        """Return the tensor on the CPU (itself, if it is there)."""
    def cross(self, other: TensorLike, dim: builtins.int | None = ...) -> Tensor:
        """Return the vector product along ``dim`` (the first axis of length 3, by default)."""
    def cuda(self, device: DeviceLike = ..., non_blocking: builtins.bool = ..., memory_format: object = ...) -> Tensor:
        """Return the tensor on a GPU, by default on the current one (itself, if it is there)."""
    def cummax(self, dim: builtins.int) -> Any:
        """Return the running maximum along ``dim``, and its index (the last of equal ones)."""
    def cummin(self, dim: builtins.int) -> Any:
        """Return the running minimum along ``dim``, and its index (the last of equal ones)."""
    def cumprod(self, dim: builtins.int, *, dtype: DTypeLike = ...) -> Tensor:
        """Return the running product along ``dim``. The gradient is correct for elements that are zero, too."""
    def cumprod_(self, dim: builtins.int, *, dtype: DTypeLike = ...) -> Tensor:
        """Return the running product along ``dim``. The gradient is correct for elements that are zero, too."""
    def cumsum(self, dim: builtins.int, *, dtype: DTypeLike = ...) -> Tensor:
        """Return the running sum along ``dim``."""
    def cumsum_(self, dim: builtins.int, *, dtype: DTypeLike = ...) -> Tensor:
        """Return the running sum along ``dim``."""
    def deg2rad(self, *, out: Any = ...) -> Any:
        """Convert degrees to radians."""
    def deg2rad_(self, *, out: Any = ...) -> Any:
        """Convert degrees to radians."""
    def det(self) -> Tensor:
        """Return the determinant of square matrices (..., n, n)."""
    def diag(self, diagonal: builtins.int = ...) -> Tensor:
        """Return a matrix with a vector on a diagonal, or a copy of a matrix's diagonal."""
    def diag_embed(self, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """Put the last axis on a diagonal of two new axes, with zeros elsewhere."""
    def diagflat(self, offset: builtins.int = ...) -> Tensor:
        """Return a matrix with the flattened elements on a diagonal."""
    def diagonal(self, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """Return a diagonal of two axes as the last axis (a view)."""
    def diagonal_scatter(self, src: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """Return a copy with the diagonal of two axes (see ``diagonal``) replaced by ``src``."""
    def diff(self, n: builtins.int = ..., dim: builtins.int = ..., prepend: TensorLike | None = ..., append: TensorLike | None = ...) -> Tensor:
        """Return the differences of neighbours along ``dim``, applied n times."""
    def digamma(self) -> Tensor:
        """Return Γ'(x) / Γ(x), the derivative of log Γ."""
    def digamma_(self) -> Tensor:
        """Return Γ'(x) / Γ(x), the derivative of log Γ."""
    def dist(self, other: TensorLike, p: builtins.float = ...) -> Tensor:
        """Return the p-norm of input − other."""
    def div(self, other: TensorLike, *, rounding_mode: str | None = ...) -> Tensor:
        """Return input / other; ``rounding_mode`` 'floor' or 'trunc' rounds the quotient and keeps integer dtypes."""
    def div_(self, other: TensorLike, *, rounding_mode: str | None = ...) -> Tensor:
        """Return input / other; ``rounding_mode`` 'floor' or 'trunc' rounds the quotient and keeps integer dtypes."""
    def divide(self, other: TensorLike, *, rounding_mode: str | None = ...) -> Tensor:
        """Return input / other; ``rounding_mode`` 'floor' or 'trunc' rounds the quotient and keeps integer dtypes."""
    def divide_(self, other: TensorLike, *, rounding_mode: str | None = ...) -> Tensor:
        """Return input / other; ``rounding_mode`` 'floor' or 'trunc' rounds the quotient and keeps integer dtypes."""
    def dot(self, other: TensorLike) -> Tensor:
        """Return the inner product of two vectors."""
    def double(self, memory_format: object = ...) -> Tensor:
        """Cast the tensor to float64. Recorded."""
    def dsplit(self, indices_or_sections: object) -> tuple[Tensor, ...]:
        """Split along the third axis."""
    def eq(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether two elements are equal."""
    def eq_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether two elements are equal."""
    def equal(self, other: Tensor) -> builtins.bool:
        """Return whether two tensors have the same shape and elements."""
    def erf(self, *, out: Any = ...) -> Any:
        """Return the error function 2/√π ∫₀ˣ exp(−t²) dt."""
    def erf_(self, *, out: Any = ...) -> Any:
        """Return the error function 2/√π ∫₀ˣ exp(−t²) dt."""
    def erfc(self, *, out: Any = ...) -> Any:
        """Return the complementary error function 1 − erf(x), accurate where it is tiny."""
    def erfc_(self, *, out: Any = ...) -> Any:
        """Return the complementary error function 1 − erf(x), accurate where it is tiny."""
    def erfinv(self, *, out: Any = ...) -> Any:
        """Return the inverse of the error function; infinite at ±1, NaN beyond."""
    def erfinv_(self, *, out: Any = ...) -> Any:
        """Return the inverse of the error function; infinite at ±1, NaN beyond."""
    def exp(self, *, out: Any = ...) -> Any:
        """Return the exponential of every element."""
    def exp2(self, *, out: Any = ...) -> Any:
        """Return 2 to the power of every element."""
    def exp2_(self, *, out: Any = ...) -> Any:
        """Return 2 to the power of every element."""
    def exp_(self, *, out: Any = ...) -> Any:
        """Return the exponential of every element."""
    def expand(self, *sizes: ShapeLike, size: Any = ...) -> Tensor:
        """Expand axes of length 1 to the given sizes, without copying; -1 keeps a size."""
    def expand_as(self, other: Tensor) -> Tensor:
        """Expand to the shape of ``other``."""
    def expm1(self, *, out: Any = ...) -> Any:
        """Return exp(x) − 1, accurate near 0."""
    def expm1_(self, *, out: Any = ...) -> Any:
        """Return exp(x) − 1, accurate near 0."""
    def exponential_(self, *args: object, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with random numbers (exponential)."""
    def fill_(self, value: TensorLike) -> Tensor:
        """Fill with a number, in place."""
    def fill_diagonal_(self, fill_value: TensorLike, wrap: builtins.bool = ...) -> Tensor:
        """Fill the main diagonal, in place: all elements with equal indices. With ``wrap``, restart it below in tall matrices."""
    def fix(self, *, out: Any = ...) -> Any:
        """Return the integer part of each element."""
    def fix_(self, *, out: Any = ...) -> Any:
        """Return the integer part of each element."""
    def flatten(self, start_dim: builtins.int = ..., end_dim: builtins.int = ...) -> Tensor:
        """Merge the axes from ``start_dim`` to ``end_dim`` into one."""
    def flip(self, *axes: Any, dims: object = ...) -> Tensor:
        """Reverse the order of the elements along axes (a copy)."""
    def fliplr(self) -> Tensor:
        """Reverse the order of the columns."""
    def flipud(self) -> Tensor:
        """Reverse the order of the rows."""
    def float(self, memory_format: object = ...) -> Tensor:
        """Cast the tensor to float32. Recorded."""
    def float_power(self, exponent: TensorLike) -> Tensor:
        """Return ``input`` to the power ``exponent``, in float64 (or complex128)."""
    def float_power_(self, exponent: TensorLike) -> Tensor:
        """Return ``input`` to the power ``exponent``, in float64 (or complex128)."""
    def floor(self, *, out: Any = ...) -> Any:
        """Return the largest integer that is not above each element."""
    def floor_(self, *, out: Any = ...) -> Any:
        """Return the largest integer that is not above each element."""
    def floor_divide(self, other: TensorLike) -> Tensor:
        """Return the floor of the quotient."""
    def floor_divide_(self, other: TensorLike) -> Tensor:
        """Return the floor of the quotient."""
    def fmax(self, other: Any, *, out: Any = ...) -> Any:
        """Return the larger of two elements; where one is NaN, return the other."""
    def fmin(self, other: Any, *, out: Any = ...) -> Any:
        """Return the smaller of two elements; where one is NaN, return the other."""
    def fmod(self, other: TensorLike) -> Tensor:
        """Return the remainder of truncated division; it has the sign of the dividend."""
    def fmod_(self, other: TensorLike) -> Tensor:
        """Return the remainder of truncated division; it has the sign of the dividend."""
    def frac(self) -> Tensor:
        """Return the fractional part: input − trunc(input)."""
    def frac_(self) -> Tensor:
        """Return the fractional part: input − trunc(input)."""
    def frexp(self) -> Any:
        """Return mantissas in ±[0.5, 1) and exponents (int32): input = mantissa · 2**exponent. Gradients flow to mantissas."""
    def gather(self, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = ...) -> Tensor:
        """Return ``out[i][j] = input[index[i][j]][j]`` for dim 0, and so on for other dims."""
    def gcd(self, other: Any, *, out: Any = ...) -> Any:
        """Return the greatest common divisor."""
    def gcd_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the greatest common divisor."""
    def ge(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is at least y."""
    def ge_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is at least y."""
    def geometric_(self, *args: object, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with random numbers (geometric)."""
    def ger(self, vec2: TensorLike) -> Tensor:
        """Return the outer product of two vectors, of shape (n, m)."""
    def get_device(self) -> builtins.int:
        """Return the number of the tensor's GPU; −1 on the CPU."""
    def graph(self, **options: object) -> object:
        """The graph that computed this tensor, to draw: ``.to_svg()``, ``.to_dot()``."""
    def greater(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is greater than y."""
    def greater_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is greater than y."""
    def greater_equal(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is at least y."""
    def greater_equal_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is at least y."""
    def gt(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is greater than y."""
    def gt_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is greater than y."""
    def half(self, memory_format: object = ...) -> Tensor:
        """Cast the tensor to float16. Recorded."""
    def hardshrink(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def heaviside(self, values: TensorLike) -> Tensor:
        """Return 0 where input is negative, ``values`` where it is 0, else 1."""
    def heaviside_(self, values: TensorLike) -> Tensor:
        """Return 0 where input is negative, ``values`` where it is 0, else 1."""
    def histc(self, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ...) -> Tensor:
        """Return how many elements are in each of ``bins`` equal intervals from ``min`` to ``max`` (both 0: the data's range)."""
    def histogram(self, bins: Any, *, range: Any = ..., weight: Tensor | None = ..., density: builtins.bool = ...) -> Any:
        """Return how many elements (or how much ``weight``) are in each bin, and the edges of the bins."""
    def hsplit(self, indices_or_sections: object) -> tuple[Tensor, ...]:
        """Split between columns (a vector between elements)."""
    def hypot(self, other: Any, *, out: Any = ...) -> Any:
        """Return √(x² + y²), computed without overflow."""
    def hypot_(self, other: Any, *, out: Any = ...) -> Any:
        """Return √(x² + y²), computed without overflow."""
    def i0(self, *, out: Any = ...) -> Any:
        """Return the modified Bessel function I₀(x)."""
    def i0_(self, *, out: Any = ...) -> Any:
        """Return the modified Bessel function I₀(x)."""
    def igamma(self, other: Tensor) -> Tensor:
        """Compute ``scipy.special.gammainc``, by SciPy."""
    def igamma_(self, other: Tensor) -> Tensor:
        """Compute ``scipy.special.gammainc``, by SciPy."""
    def igammac(self, other: Tensor) -> Tensor:
        """Compute ``scipy.special.gammaincc``, by SciPy."""
    def igammac_(self, other: Tensor) -> Tensor:
        """Compute ``scipy.special.gammaincc``, by SciPy."""
    @property
    def imag(self) -> Any: ...
    def index_add(self, dim: builtins.int, index: Any, source: Tensor, *, alpha: TensorLike = ...) -> Tensor:
        """Return a copy with entries of ``source`` added at indices along ``dim``."""
    def index_add_(self, dim: builtins.int, index: Any, source: Tensor, *, alpha: TensorLike = ...) -> Tensor:
        """Return a copy with entries of ``source`` added at indices along ``dim``."""
    def index_copy(self, dim: builtins.int, index: Any, source: Tensor) -> Tensor:
        """Return a copy with entries of ``source`` written at indices along ``dim``."""
    def index_copy_(self, dim: builtins.int, index: Any, source: Tensor) -> Tensor:
        """Return a copy with entries of ``source`` written at indices along ``dim``."""
    def index_fill(self, dim: builtins.int, index: Any, value: TensorLike) -> Tensor:
        """Return a copy with the entries at indices along ``dim`` set to a value (a number or 0-d tensor)."""
    def index_fill_(self, dim: builtins.int, index: Any, value: TensorLike) -> Tensor:
        """Return a copy with the entries at indices along ``dim`` set to a value (a number or 0-d tensor)."""
    def index_put(self, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """Return a copy with values written (or added) at ``input[indices]``."""
    def index_put_(self, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """Return a copy with values written (or added) at ``input[indices]``."""
    def index_reduce(self, dim: builtins.int, index: Any, source: Tensor, reduce: str, *, include_self: builtins.bool = ...) -> Tensor:
        """Combine whole entries along ``dim`` as :func:`scatter_reduce` does: with "prod", "mean", "amax" or "amin"."""
    def index_reduce_(self, dim: builtins.int, index: Any, source: Tensor, reduce: str, *, include_self: builtins.bool = ...) -> Tensor:
        """Combine whole entries along ``dim`` as :func:`scatter_reduce` does: with "prod", "mean", "amax" or "amin"."""
    def index_select(self, dim: builtins.int, index: TensorLike) -> Tensor:
        """Return the entries at indices along ``dim`` (a copy; indices may repeat)."""
    def inner(self, other: TensorLike) -> Tensor:
        """Return the sums of products over the last axes of both tensors."""
    def int(self, memory_format: object = ...) -> Tensor:
        """Cast the tensor to int32. Recorded."""
    def inverse(self) -> Tensor:
        """Return the inverse of square matrices."""
    def is_conj(self) -> builtins.bool:
        """Return whether conjugation is pending: always False, because ``conj`` (like ``neg``) computes at once."""
    is_ipu: builtins.bool
    is_maia: builtins.bool
    is_meta: builtins.bool
    is_mkldnn: builtins.bool
    is_mps: builtins.bool
    is_mtia: builtins.bool
    def is_neg(self) -> builtins.bool:
        """Return whether conjugation is pending: always False, because ``conj`` (like ``neg``) computes at once."""
    is_nested: builtins.bool
    def is_nonzero(self) -> builtins.bool:
        """Return whether the only element is nonzero."""
    def is_pinned(self) -> builtins.bool:
        """Return whether conjugation is pending: always False, because ``conj`` (like ``neg``) computes at once."""
    is_quantized: builtins.bool
    def is_same_size(self, other: Tensor) -> builtins.bool:
        """Return whether two tensors have the same shape."""
    def is_shared(self) -> builtins.bool:
        """Return whether conjugation is pending: always False, because ``conj`` (like ``neg``) computes at once."""
    def is_signed(self) -> builtins.bool:
        """Return whether the dtype has negative numbers."""
    is_sparse_csr: builtins.bool
    is_vulkan: builtins.bool
    is_xla: builtins.bool
    is_xpu: builtins.bool
    def isclose(self, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> Tensor:
        """Return whether |input − other| ≤ atol + rtol·|other|, element by element."""
    def isfinite(self, *, out: Any = ...) -> Any:
        """Return whether an element is a finite number."""
    def isinf(self, *, out: Any = ...) -> Any:
        """Return whether an element is infinite."""
    def isnan(self, *, out: Any = ...) -> Any:
        """Return whether an element is NaN."""
    def isneginf(self) -> Tensor:
        """Return whether an element is −∞."""
    def isposinf(self) -> Tensor:
        """Return whether an element is +∞."""
    def isreal(self) -> Tensor:
        """Return whether an element has no imaginary part."""
    def istft(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def kron(self, other: TensorLike) -> Tensor:
        """Return the Kronecker product."""
    def kthvalue(self, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> Any:
        """Return the k-th smallest element along ``dim`` (counted from 1), and its index."""
    layout: _layout
    def lcm(self, other: Any, *, out: Any = ...) -> Any:
        """Return the least common multiple."""
    def lcm_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the least common multiple."""
    def ldexp(self, other: TensorLike) -> Tensor:
        """Return input · 2**other."""
    def ldexp_(self, other: TensorLike) -> Tensor:
        """Return input · 2**other."""
    def le(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is at most y."""
    def le_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is at most y."""
    def lerp(self, end: TensorLike, weight: TensorLike) -> Tensor:
        """Return input + weight·(end − input)."""
    def lerp_(self, end: TensorLike, weight: TensorLike) -> Tensor:
        """Return input + weight·(end − input)."""
    def less(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is less than y."""
    def less_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is less than y."""
    def less_equal(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is at most y."""
    def less_equal_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is at most y."""
    def lgamma(self) -> Tensor:
        """Return log |Γ(x)|; infinite at 0 and the negative integers."""
    def lgamma_(self) -> Tensor:
        """Return log |Γ(x)|; infinite at 0 and the negative integers."""
    def log(self, *, out: Any = ...) -> Any:
        """Return the natural logarithm."""
    def log10(self, *, out: Any = ...) -> Any:
        """Return the logarithm to base 10."""
    def log10_(self, *, out: Any = ...) -> Any:
        """Return the logarithm to base 10."""
    def log1p(self, *, out: Any = ...) -> Any:
        """Return log(1 + x), accurate near 0."""
    def log1p_(self, *, out: Any = ...) -> Any:
        """Return log(1 + x), accurate near 0."""
    def log2(self, *, out: Any = ...) -> Any:
        """Return the logarithm to base 2."""
    def log2_(self, *, out: Any = ...) -> Any:
        """Return the logarithm to base 2."""
    def log_(self, *, out: Any = ...) -> Any:
        """Return the natural logarithm."""
    def log_normal_(self, *args: object, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with random numbers (log_normal)."""
    def log_softmax(self, dim: builtins.int | None = ..., dtype: DTypeLike = ...) -> Tensor:
        """Return the logarithm of the softmax along ``dim``, computed without overflow."""
    def logaddexp(self, other: TensorLike) -> Tensor:
        """Return log(exp(input) + exp(other)), computed without overflow."""
    def logaddexp2(self, other: Any, *, out: Any = ...) -> Any:
        """Return log2(2**x + 2**y), computed without overflow."""
    def logcumsumexp(self, dim: builtins.int) -> Tensor:
        """Return the running log Σ exp along ``dim``, computed without overflow."""
    def logdet(self) -> Tensor:
        """Return the logarithm of the determinant; NaN where it is negative."""
    def logical_and(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether both elements are nonzero."""
    def logical_and_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether both elements are nonzero."""
    def logical_not(self, *, out: Any = ...) -> Any:
        """Return whether an element is zero."""
    def logical_not_(self, *, out: Any = ...) -> Any:
        """Return whether an element is zero."""
    def logical_or(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether at least one of two elements is nonzero."""
    def logical_or_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether at least one of two elements is nonzero."""
    def logical_xor(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether exactly one of two elements is nonzero."""
    def logical_xor_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether exactly one of two elements is nonzero."""
    def logit(self, eps: builtins.float | None = ...) -> Tensor:
        """Return log(x / (1 − x)), the inverse of the sigmoid; with ``eps``, x is first clamped to [eps, 1 − eps]."""
    def logit_(self, eps: builtins.float | None = ...) -> Tensor:
        """Return log(x / (1 − x)), the inverse of the sigmoid; with ``eps``, x is first clamped to [eps, 1 − eps]."""
    def logsumexp(self, dim: Any, keepdim: builtins.bool = ...) -> Tensor:
        """Return log Σ exp(x) over ``dim``, computed without overflow."""
    def long(self, memory_format: object = ...) -> Tensor:
        """Cast the tensor to int64. Recorded."""
    def lt(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is less than y."""
    def lt_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether x is less than y."""
    def lu(self, pivot: builtins.bool = ..., get_infos: builtins.bool = ...) -> Any:
        """Return :func:`linalg.lu_factor`; with ``get_infos``, :func:`linalg.lu_factor_ex`."""
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """Solve as :func:`linalg.lu_solve` does, with the right-hand side as the first argument."""
    @property
    def mH(self) -> Any: ...
    @property
    def mT(self) -> Any: ...
    def masked_fill(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """Return a copy with a value (a number or 0-d tensor) where the mask is True."""
    def masked_fill_(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """Return a copy with a value (a number or 0-d tensor) where the mask is True."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """Return a copy with the masked elements replaced, in order, by elements of ``source``; tensor and mask broadcast."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """Return a copy with the masked elements replaced, in order, by elements of ``source``; tensor and mask broadcast."""
    def masked_select(self, mask: Any) -> Tensor:
        """Return the elements where the mask is True, as a vector."""
    def matmul(self, other: Any) -> Tensor:
        """Return the matrix product ``input @ other`` of vectors, matrices, or stacks of matrices (leading axes broadcast)."""
    def matrix_exp(self) -> Tensor:
        """Return the matrix exponential of square matrices."""
    def matrix_power(self, n: builtins.int) -> Tensor:
        """Return the n-th power of square matrices; for negative n, of the inverse."""
    def max(self, dim: Any = ..., keepdim: builtins.bool = ..., *, other: Any = ...) -> Any:
        """Return the maximum of all elements; with ``dim`` (values, indices); with another tensor the elementwise maximum."""
    def maximum(self, other: Any, *, out: Any = ...) -> Any:
        """Return the larger of two elements; NaN where either is NaN."""
    def maximum_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the larger of two elements; NaN where either is NaN."""
    def mean(self, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., axis: Dims = ..., keepdims: builtins.bool | None = ...) -> Tensor:
        """Return the mean over ``dim``."""
    def median(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
        """Return the (lower) median of all elements, or along ``dim`` with its index; NaN if an element is NaN."""
    def min(self, dim: Any = ..., keepdim: builtins.bool = ..., *, other: Any = ...) -> Any:
        """Return the minimum of all elements; with ``dim`` (values, indices); with another tensor the elementwise minimum."""
    def minimum(self, other: Any, *, out: Any = ...) -> Any:
        """Return the smaller of two elements; NaN where either is NaN."""
    def minimum_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the smaller of two elements; NaN where either is NaN."""
    def mm(self, other: TensorLike) -> Tensor:
        """Return the product of two matrices."""
    def mode(self, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> Any:
        """Return the most frequent value along ``dim`` (the smallest of several), and its last index."""
    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """Move axes to other positions; the others keep their order."""
    def movedim(self, source: Any, destination: Any) -> Tensor:
        """Move axes to other positions; the others keep their order."""
    def msort(self) -> Tensor:
        """Return the sorted values along the first dimension."""
    def mul(self, other: Any, *, out: Any = ...) -> Any:
        """Return the product x · y, element by element."""
    def mul_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the product x · y, element by element."""
    def multinomial(self, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Generator | None = ...) -> Tensor:
        """Return indices drawn with probabilities proportional to each row's weights."""
    def multiply(self, other: Any, *, out: Any = ...) -> Any:
        """Return the product x · y, element by element."""
    def multiply_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the product x · y, element by element."""
    def mv(self, other: TensorLike) -> Tensor:
        """Return the product of a matrix and a vector."""
    def mvlgamma(self, p: builtins.int) -> Tensor:
        """Return the logarithm of the multivariate gamma function of dimension p: p(p − 1)/4·log π + Σ log Γ(x − j/2)."""
    def mvlgamma_(self, p: builtins.int) -> Tensor:
        """Return the logarithm of the multivariate gamma function of dimension p: p(p − 1)/4·log π + Σ log Γ(x − j/2)."""
    name: Any
    def nan_to_num(self, nan: TensorLike = ..., posinf: TensorLike | None = ..., neginf: TensorLike | None = ...) -> Tensor:
        """Replace NaN by ``nan``, and infinities by ``posinf`` and ``neginf`` (by default the largest finite numbers)."""
    def nan_to_num_(self, nan: TensorLike = ..., posinf: TensorLike | None = ..., neginf: TensorLike | None = ...) -> Tensor:
        """Replace NaN by ``nan``, and infinities by ``posinf`` and ``neginf`` (by default the largest finite numbers)."""
    def nanmean(self, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ...) -> Tensor:
        """Return the mean over ``dim`` of the elements that are not NaN."""
    def nanmedian(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
        """Return the (lower) median of the elements that are not NaN: of all, or along ``dim`` with its index."""
    def nanquantile(self, q: object, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ...) -> Tensor:
        """Return the q-quantile along ``dim`` of the elements that are not NaN; NaN if there are none."""
    def nansum(self, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ...) -> Tensor:
        """Return the sum over ``dim``, with NaN counted as 0."""
    def narrow(self, dim: builtins.int, start: TensorLike, length: builtins.int) -> Tensor:
        """Return ``length`` entries along ``dim``, from ``start`` on, as a view."""
    def narrow_copy(self, dim: builtins.int, start: TensorLike, length: builtins.int) -> Tensor:
        """Return a copy of :func:`narrow`'s result, which shares no memory with the tensor."""
    def ne(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether two elements differ."""
    def ne_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether two elements differ."""
    def neg(self, *, out: Any = ...) -> Any:
        """Return the negative of every element."""
    def neg_(self, *, out: Any = ...) -> Any:
        """Return the negative of every element."""
    def negative(self, *, out: Any = ...) -> Any:
        """Return the negative of every element."""
    def negative_(self, *, out: Any = ...) -> Any:
        """Return the negative of every element."""
    def new(self, *args: object) -> Tensor:
        """Return :func:`new_empty` of a size, or :func:`new_tensor` of data (PyTorch's old name for both)."""
    def new_empty(self, *size: ShapeLike, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """Return uninitialized memory with this tensor's dtype."""
    def new_full(self, size: ShapeLike, fill_value: object, *, dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """Return a tensor filled with one value, with this tensor's dtype."""
    def new_ones(self, *size: ShapeLike, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """Return ones with this tensor's dtype."""
    def new_tensor(self, data: object, *, dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """Return a tensor from data, with this tensor's dtype."""
    def new_zeros(self, *size: ShapeLike, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """Return zeros with this tensor's dtype."""
    def nextafter(self, other: Any, *, out: Any = ...) -> Any:
        """Return the next representable number after x in the direction of y."""
    def nextafter_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the next representable number after x in the direction of y."""
    def nonzero(self, *, as_tuple: builtins.bool = ...) -> Any:
        """Return the indices of the nonzero elements, as a matrix with one row each, or as one vector per axis."""
    def nonzero_static(self, *, size: builtins.int, fill_value: builtins.int = ...) -> Tensor:
        """Return the indices as :func:`nonzero` does, truncated or padded with ``fill_value`` to ``size`` rows."""
    def norm(self, p: Any = ..., dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ...) -> Tensor:
        """Return the p-norm over ``dim`` (all axes by default). Its gradient is 0 where it is 0."""
    def normal_(self, *args: object, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with random numbers (normal)."""
    def not_equal(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether two elements differ."""
    def not_equal_(self, other: Any, *, out: Any = ...) -> Any:
        """Return whether two elements differ."""
    def orgqr(self, tau: Tensor) -> Tensor:
        """Return the first n columns of H₁H₂…H_k, where H_i = I − tau_i·v·vᴴ and v is column i of A, with 1 on the diagonal."""
    def outer(self, vec2: TensorLike) -> Tensor:
        """Return the outer product of two vectors, of shape (n, m)."""
    def permute(self, *order: Any, dims: Dims = ...) -> Tensor:
        """Permute the axes."""
    def persist(self) -> Tensor:
        """Return the tensor with its chunks computed and kept on the workers of a cluster; itself, if it is not lazy."""
    def pinverse(self, rcond: builtins.float = ...) -> Tensor:
        """Return the pseudoinverse, as :func:`linalg.pinv` does with ``rtol=rcond``."""
    def polygamma(self, n: builtins.int) -> Tensor:
        """Return the derivative of order n of :func:`digamma`."""
    def polygamma_(self, n: builtins.int) -> Tensor:
        """Return the derivative of order n of :func:`digamma`."""
    def positive(self) -> Tensor:
        """Return the tensor itself (``+x``)."""
    def pow(self, exponent: TensorLike) -> Tensor:
        """Return ``input`` to the power ``exponent``."""
    def pow_(self, exponent: TensorLike) -> Tensor:
        """Return ``input`` to the power ``exponent``."""
    def prelu(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def prod(self, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ...) -> Tensor:
        """Return the product of all elements, or along ``dim``. The gradient is correct for elements that are zero, too."""
    def put(self, index: Any, source: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """Return a copy with elements of ``source`` written (or added) at indices into the flattened tensor."""
    def put_(self, index: Any, source: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """Return a copy with elements of ``source`` written (or added) at indices into the flattened tensor."""
    def qr(self, some: builtins.bool = ...) -> Any:
        """Return the QR decomposition, as :func:`linalg.qr` does; ``some=False`` means the mode "complete"."""
    def quantile(self, q: object, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ...) -> Tensor:
        """Return the q-quantile along ``dim`` (q between 0 and 1, a number or a 1-D tensor); NaN if an element is NaN."""
    def rad2deg(self, *, out: Any = ...) -> Any:
        """Convert radians to degrees."""
    def rad2deg_(self, *, out: Any = ...) -> Any:
        """Convert radians to degrees."""
    def random_(self, *bounds: builtins.int, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with integers from ``from`` (0) up to but excluding ``to`` (by default the dtype's exact range)."""
    def ravel(self) -> Tensor:
        """Return all elements along one axis, contiguous: a view if the tensor is contiguous, else a copy."""
    @property
    def real(self) -> Any: ...
    def reciprocal(self, *, out: Any = ...) -> Any:
        """Return one over every element."""
    def reciprocal_(self, *, out: Any = ...) -> Any:
        """Return one over every element."""
    def relu(self, *, out: Any = ...) -> Any:
        """Return max(x, 0), where -0. stays -0. The derivative at 0 is 0."""
    def relu_(self, *, out: Any = ...) -> Any:
        """Return max(x, 0), where -0. stays -0. The derivative at 0 is 0."""
    def remainder(self, other: TensorLike) -> Tensor:
        """Return the remainder of floor division; it has the sign of the divisor."""
    def remainder_(self, other: TensorLike) -> Tensor:
        """Return the remainder of floor division; it has the sign of the divisor."""
    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """Return the entries along ``dim``, each scaled down to a p-norm of ``maxnorm`` if its own is larger."""
    def renorm_(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """Return the entries along ``dim``, each scaled down to a p-norm of ``maxnorm`` if its own is larger."""
    def repeat(self, *times: Any, repeats: Any = ...) -> Tensor:
        """Repeat the tensor along every axis (``np.tile``)."""
    def repeat_interleave(self, repeats: object = ..., dim: builtins.int | None = ..., *, output_size: object = ...) -> Tensor:
        """Repeat every element (or entry along ``dim``) in place."""
    def reshape(self, *sizes: ShapeLike, shape: Any = ...) -> Tensor:
        """Return the same elements in another shape: a view if the memory layout allows, else a copy. One size may be -1."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """Reshape to the shape of ``other``."""
    def resize_(self, *size: ShapeLike, memory_format: object = ...) -> Tensor:
        """Change the shape in place, with the same elements."""
    def resize_as_(self, the_template: Tensor, *, memory_format: object = ...) -> Tensor:
        """Change the shape in place to that of another tensor, as :func:`resize_`."""
    def resolve_conj(self) -> Tensor:
        """Return the tensor itself, because no operation is ever pending."""
    def resolve_neg(self) -> Tensor:
        """Return the tensor itself, because no operation is ever pending."""
    def roll(self, shifts: object, dims: Dims = ...) -> Tensor:
        """Shift the elements cyclically along axes; without ``dims``, shift the flattened elements."""
    def rot90(self, k: builtins.int = ..., dims: Any = ...) -> Tensor:
        """Rotate by k quarter turns in the plane of two axes (a copy)."""
    def round(self, *, decimals: builtins.int = ...) -> Tensor:
        """Round to the nearest integer, ties to even, or to a number of decimals."""
    def round_(self, *, decimals: builtins.int = ...) -> Tensor:
        """Round to the nearest integer, ties to even, or to a number of decimals."""
    def rsqrt(self, *, out: Any = ...) -> Any:
        """Return one over the square root."""
    def rsqrt_(self, *, out: Any = ...) -> Any:
        """Return one over the square root."""
    def scatter(self, dim: builtins.int, index: Any, src: TensorLike | None = ..., *, value: TensorLike | None = ..., reduce: str | None = ...) -> Tensor:
        """Return a copy with the elements of ``src`` (or one ``value``) written at indices along ``dim``."""
    def scatter_(self, dim: builtins.int, index: Any, src: TensorLike | None = ..., *, value: TensorLike | None = ..., reduce: str | None = ...) -> Tensor:
        """Return a copy with the elements of ``src`` (or one ``value``) written at indices along ``dim``."""
    def scatter_add(self, dim: builtins.int, index: Any, src: Any) -> Tensor:
        """Return a copy with the elements of ``src`` added at indices along ``dim``; repeated indices accumulate."""
    def scatter_add_(self, dim: builtins.int, index: Any, src: Any) -> Tensor:
        """Return a copy with the elements of ``src`` added at indices along ``dim``; repeated indices accumulate."""
    def scatter_reduce(self, dim: builtins.int, index: Any, src: Any, reduce: str, *, include_self: builtins.bool = ...) -> Tensor:
        """Return a copy in which every element that is indexed along ``dim`` is combined with the values scattered to it."""
    def scatter_reduce_(self, dim: builtins.int, index: Any, src: Any, reduce: str, *, include_self: builtins.bool = ...) -> Tensor:
        """Return a copy in which every element that is indexed along ``dim`` is combined with the values scattered to it."""
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """Return the entry at ``index`` along ``dim`` as a view without that axis."""
    def select_scatter(self, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
        """Return a copy with the entry at ``index`` along ``dim`` (see ``select``) replaced by ``src``."""
    def set_(self, source: Tensor) -> Tensor:
        """Give the tensor the memory, shape and dtype of another one, like an assignment to ``data``."""
    def sgn(self) -> Tensor:
        """Return the sign; for complex numbers the direction z/|z| (0 at 0)."""
    def sgn_(self) -> Tensor:
        """Return the sign; for complex numbers the direction z/|z| (0 at 0)."""
    def short(self, memory_format: object = ...) -> Tensor:
        """Cast the tensor to int16. Recorded."""
    def sigmoid(self, *, out: Any = ...) -> Any:
        """Return the logistic function 1 / (1 + exp(−x)), computed without overflow."""
    def sigmoid_(self, *, out: Any = ...) -> Any:
        """Return the logistic function 1 / (1 + exp(−x)), computed without overflow."""
    def sign(self) -> Tensor:
        """Return −1, 0 or 1; booleans are returned unchanged."""
    def sign_(self) -> Tensor:
        """Return −1, 0 or 1; booleans are returned unchanged."""
    def signbit(self, *, out: Any = ...) -> Any:
        """Return whether the sign bit is set."""
    def sin(self, *, out: Any = ...) -> Any:
        """Return the sine of angles in radians."""
    def sin_(self, *, out: Any = ...) -> Any:
        """Return the sine of angles in radians."""
    def sinc(self, *, out: Any = ...) -> Any:
        """Return sin(πx) / (πx), and 1 at 0."""
    def sinc_(self, *, out: Any = ...) -> Any:
        """Return sin(πx) / (πx), and 1 at 0."""
    def sinh(self, *, out: Any = ...) -> Any:
        """Return the hyperbolic sine."""
    def sinh_(self, *, out: Any = ...) -> Any:
        """Return the hyperbolic sine."""
    def slice_scatter(self, src: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ...) -> Tensor:
        """Return a copy with every ``step``-th entry from ``start`` to ``end`` along ``dim`` replaced by those of ``src``."""
    def slogdet(self) -> Any:
        """Return sign and logarithm of the absolute value of the determinant, as ``(sign, logabsdet)``."""
    def softmax(self, dim: builtins.int | None = ..., dtype: DTypeLike = ...) -> Tensor:
        """Return exp(x) / Σ exp(x) along ``dim``: positive numbers that sum to 1."""
    def sort(self, dim: builtins.int = ..., descending: builtins.bool = ..., *, stable: builtins.bool | None = ...) -> Any:
        """Return the sorted values along ``dim`` and their indices; equal elements keep their order."""
    def split(self, split_size_or_sections: Any, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """Split along ``dim`` into views of one size (the last may be smaller), or of the listed sizes."""
    def split_with_sizes(self, split_sizes: object, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """Split along ``dim`` into views of the listed sizes."""
    def sqrt(self, *, out: Any = ...) -> Any:
        """Return the square root. The derivative at 0 is infinite."""
    def sqrt_(self, *, out: Any = ...) -> Any:
        """Return the square root. The derivative at 0 is infinite."""
    def square(self, *, out: Any = ...) -> Any:
        """Return the square of every element."""
    def square_(self, *, out: Any = ...) -> Any:
        """Return the square of every element."""
    def squeeze(self, dim: Any = ...) -> Tensor:
        """Remove axes of length 1: all of them, or those in ``dim``."""
    def squeeze_(self, dim: Any = ...) -> Tensor:
        """Remove axes of length 1: all of them, or those in ``dim``."""
    def std(self, dim: Dims = ..., unbiased: Any = ..., keepdim: builtins.bool = ..., *, correction: Any = ...) -> Tensor:
        """Return the standard deviation over ``dim``, the square root of :func:`var`. Its gradient is 0 where it is 0."""
    def stft(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def storage(self) -> Storage:
        """Return the storage of a tensor, in elements of its dtype."""
    def storage_offset(self) -> builtins.int:
        """Return how many elements of the storage precede the tensor's first."""
    def sub(self, other: TensorLike, *old: Any, alpha: TensorLike = ...) -> Tensor:
        """Return input − alpha·other."""
    def sub_(self, other: TensorLike, *old: Any, alpha: TensorLike = ...) -> Tensor:
        """Return input − alpha·other."""
    def subtract(self, other: TensorLike, *old: Any, alpha: TensorLike = ...) -> Tensor:
        """Return input − alpha·other."""
    def subtract_(self, other: TensorLike, *old: Any, alpha: TensorLike = ...) -> Tensor:
        """Return input − alpha·other."""
    def sum(self, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., axis: Dims = ..., keepdims: builtins.bool | None = ...) -> Tensor:
        """Return the sum over ``dim`` (an int, a tuple, or None for all axes). Booleans and integers are summed as int64."""
    def sum_to_size(self, *size: ShapeLike) -> Tensor:
        """Sum over the axes along which a tensor of the given size would be broadcast to this tensor's shape."""
    def svd(self, some: builtins.bool = ..., compute_uv: builtins.bool = ...) -> Any:
        """Return the singular value decomposition with V itself, not Vᴴ: input = U @ diag(S) @ Vᴴ. See :func:`linalg.svd`."""
    def swapaxes(self, dim0: object, dim1: object = ...) -> Tensor:
        """Exchange two axes; a tuple of all axes permutes them, as in NumPy."""
    def swapaxes_(self, dim0: object, dim1: object = ...) -> Tensor:
        """Exchange two axes; a tuple of all axes permutes them, as in NumPy."""
    def swapdims(self, dim0: object, dim1: object = ...) -> Tensor:
        """Exchange two axes; a tuple of all axes permutes them, as in NumPy."""
    def swapdims_(self, dim0: object, dim1: object = ...) -> Tensor:
        """Exchange two axes; a tuple of all axes permutes them, as in NumPy."""
    def t(self) -> Tensor:
        """Transpose a matrix (a vector or number is returned unchanged)."""
    def t_(self) -> Tensor:
        """Transpose a matrix (a vector or number is returned unchanged)."""
    def take(self, index: Any) -> Tensor:
        """Return the elements at indices into the flattened tensor (negative ones count from the end)."""
    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = ...) -> Tensor:
        """Return the elements at indices along ``dim``; the other axes broadcast (``np.take_along_axis``)."""
    def tan(self, *, out: Any = ...) -> Any:
        """Return the tangent of angles in radians."""
    def tan_(self, *, out: Any = ...) -> Any:
        """Return the tangent of angles in radians."""
    def tanh(self, *, out: Any = ...) -> Any:
        """Return the hyperbolic tangent."""
    def tanh_(self, *, out: Any = ...) -> Any:
        """Return the hyperbolic tangent."""
    def tensor_split(self, indices_or_sections: Any, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """Split as ``np.array_split`` does: into a number of nearly equal parts, or at indices."""
    def tile(self, *times: Any, dims: Dims = ...) -> Tensor:
        """Repeat the tensor as :func:`repeat` does, with missing repeats counted as 1."""
    def to(self, *args: object, dtype: DTypeLike = ..., device: Any = ..., non_blocking: builtins.bool = ..., copy: builtins.bool = ..., memory_format: object = ...) -> Tensor:
        """Convert the tensor to another dtype or device, or to those of another tensor; return it if nothing changes. Recorded."""
    def to_dense(self) -> Tensor:
        """Return the tensor itself, because no operation is ever pending."""
    def topk(self, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ...) -> Any:
        """Return the k largest (or smallest) elements along ``dim``, and their indices."""
    def trace(self) -> Tensor:
        """Return the sum of the diagonal of a matrix."""
    def transpose(self, dim0: object, dim1: object = ...) -> Tensor:
        """Exchange two axes; a tuple of all axes permutes them, as in NumPy."""
    def transpose_(self, dim0: object, dim1: object = ...) -> Tensor:
        """Exchange two axes; a tuple of all axes permutes them, as in NumPy."""
    def triangular_solve(self, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ...) -> Any:
        """Solve as :func:`linalg.solve_triangular` does, with the right-hand side first; return A, too."""
    def tril(self, diagonal: builtins.int = ...) -> Tensor:
        """Return the lower triangle of matrices, up to a diagonal, with zeros elsewhere."""
    def tril_(self, diagonal: builtins.int = ...) -> Tensor:
        """Return the lower triangle of matrices, up to a diagonal, with zeros elsewhere."""
    def triu(self, diagonal: builtins.int = ...) -> Tensor:
        """Return the upper triangle of matrices, from a diagonal on, with zeros elsewhere."""
    def triu_(self, diagonal: builtins.int = ...) -> Tensor:
        """Return the upper triangle of matrices, from a diagonal on, with zeros elsewhere."""
    def true_divide(self, other: Any, *, out: Any = ...) -> Any:
        """Return the quotient x / y, element by element. Integers are divided as floats of the default dtype."""
    def true_divide_(self, other: Any, *, out: Any = ...) -> Any:
        """Return the quotient x / y, element by element. Integers are divided as floats of the default dtype."""
    def trunc(self, *, out: Any = ...) -> Any:
        """Return the integer part of each element."""
    def trunc_(self, *, out: Any = ...) -> Any:
        """Return the integer part of each element."""
    def type(self, dtype: DTypeLike = ...) -> Any:
        """Return the name of the tensor's type, or cast the tensor to another dtype."""
    def type_as(self, other: Any) -> Any:
        ...
    def unbind(self, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """Return all entries along ``dim`` as views."""
    def unflatten(self, dim: builtins.int, sizes: Any) -> Tensor:
        """Split one axis into several."""
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """Return windows of ``size`` along a dimension, one every ``step``, as a new last axis (a view)."""
    def uniform_(self, *args: object, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with random numbers (uniform)."""
    def unique(self, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any:
        """Return the distinct elements, sorted. Of equal elements, the first gets the gradient."""
    def unique_consecutive(self, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any:
        """Return the elements (or entries along ``dim``) without repetitions of the one before; the first of a run gets the gradient."""
    def unsafe_chunk(self, chunks: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """Split as :func:`chunk` does into copies, which may be written to in place."""
    def unsafe_split(self, split_size: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """Split as :func:`split` does into copies, which may be written to in place."""
    def unsafe_split_with_sizes(self, split_sizes: object, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """Split as :func:`split_with_sizes` does into copies, which may be written to in place."""
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """Insert an axis of length 1 at ``dim``."""
    def unsqueeze_(self, dim: builtins.int) -> Tensor:
        """Insert an axis of length 1 at ``dim``."""
    def untyped_storage(self) -> Storage:
        """Return the storage of a tensor, in bytes."""
    def var(self, dim: Dims = ..., unbiased: Any = ..., keepdim: builtins.bool = ..., *, correction: builtins.int | None = ...) -> Tensor:
        """Return the variance over ``dim``, divided by n − correction (1 by default; 0 with ``unbiased=False``)."""
    def vdot(self, other: TensorLike) -> Tensor:
        """Return the inner product of two vectors, the first conjugated."""
    def view(self, *sizes: Any, size: Any = ...) -> Tensor:
        """Return a view with the same elements in another shape."""
    def view_as(self, other: Tensor) -> Tensor:
        """Return a view with the shape of ``other``."""
    def vsplit(self, indices_or_sections: object) -> tuple[Tensor, ...]:
        """Split between rows."""
    def where(self, condition: Tensor, other: Any) -> Tensor:
        """Return this tensor's elements where the condition holds, else ``other``'s."""
    def why(self) -> object:
        """Why this tensor's ``.grad`` is what it is, or why there is none."""
    def xlogy(self, other: Any, *, out: Any = ...) -> Any:
        """Return x·log(y), and 0 where x is 0 (unless y is NaN)."""
    def xlogy_(self, other: Any, *, out: Any = ...) -> Any:
        """Return x·log(y), and 0 where x is 0 (unless y is NaN)."""
    def zero_(self) -> Tensor:
        """Fill with zeros, in place."""
