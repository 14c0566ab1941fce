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
        """Absolute value of every element; the gradient at 0 is 0."""
    def abs_(self) -> Tensor:
        """Absolute value of every element; the gradient at 0 is 0."""
    def absolute(self) -> Tensor:
        """Absolute value of every element; the gradient at 0 is 0."""
    def absolute_(self) -> Tensor:
        """Absolute value of every element; the gradient at 0 is 0."""
    def acos(self, *, out: Any = ...) -> Any:
        """Inverse cosine, in radians."""
    def acos_(self, *, out: Any = ...) -> Any:
        """Inverse cosine, in radians."""
    def acosh(self, *, out: Any = ...) -> Any:
        """Inverse hyperbolic cosine."""
    def acosh_(self, *, out: Any = ...) -> Any:
        """Inverse hyperbolic cosine."""
    def add(self, other: TensorLike, *old: Any, alpha: TensorLike = ...) -> Tensor:
        """input + alpha·other."""
    def add_(self, other: TensorLike, *old: Any, alpha: TensorLike = ...) -> Tensor:
        """input + alpha·other."""
    def addbmm(self, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """beta·input + alpha·Σ_b (batch1[b] @ batch2[b])."""
    def addbmm_(self, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """beta·input + alpha·Σ_b (batch1[b] @ batch2[b])."""
    def addcdiv(self, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = ...) -> Tensor:
        """input + value·tensor1/tensor2."""
    def addcdiv_(self, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = ...) -> Tensor:
        """input + value·tensor1/tensor2."""
    def addcmul(self, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = ...) -> Tensor:
        """input + value·tensor1·tensor2."""
    def addcmul_(self, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = ...) -> Tensor:
        """input + value·tensor1·tensor2."""
    def addmm(self, mat1: TensorLike, mat2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """beta·input + alpha·(mat1 @ mat2)."""
    def addmm_(self, mat1: TensorLike, mat2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """beta·input + alpha·(mat1 @ mat2)."""
    def addmv(self, mat: TensorLike, vec: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """beta·input + alpha·(mat @ vec)."""
    def addmv_(self, mat: TensorLike, vec: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """beta·input + alpha·(mat @ vec)."""
    def addr(self, vec1: TensorLike, vec2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """beta·input + alpha·outer(vec1, vec2)."""
    def addr_(self, vec1: TensorLike, vec2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """beta·input + alpha·outer(vec1, vec2)."""
    def adjoint(self) -> Tensor:
        """The conjugate transpose of matrices."""
    def all(self, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Whether all elements are nonzero."""
    def allclose(self, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> builtins.bool:
        """Whether all elements are close (see :func:`isclose`)."""
    def amax(self, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Maximum over ``dim``; elements that tie share the gradient evenly."""
    def amin(self, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Minimum over ``dim``; elements that tie share the gradient evenly."""
    def aminmax(self, *, dim: SupportsIndex | None = ..., keepdim: builtins.bool = ...) -> Any:
        """Minimum and maximum."""
    def angle(self, *, out: Any = ...) -> Any:
        """The argument of every complex number (0 or π for reals)."""
    def any(self, dim: Dims = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Whether any element is nonzero."""
    def arccos(self, *, out: Any = ...) -> Any:
        """Inverse cosine, in radians."""
    def arccos_(self, *, out: Any = ...) -> Any:
        """Inverse cosine, in radians."""
    def arccosh(self, *, out: Any = ...) -> Any:
        """Inverse hyperbolic cosine."""
    def arccosh_(self, *, out: Any = ...) -> Any:
        """Inverse hyperbolic cosine."""
    def arcsin(self, *, out: Any = ...) -> Any:
        """Inverse sine, in radians."""
    def arcsin_(self, *, out: Any = ...) -> Any:
        """Inverse sine, in radians."""
    def arcsinh(self, *, out: Any = ...) -> Any:
        """Inverse hyperbolic sine."""
    def arcsinh_(self, *, out: Any = ...) -> Any:
        """Inverse hyperbolic sine."""
    def arctan(self, *, out: Any = ...) -> Any:
        """Inverse tangent, in radians."""
    def arctan2(self, other: Any, *, out: Any = ...) -> Any:
        """The angle of the point (y, x), in radians; the gradient at the origin is 0."""
    def arctan2_(self, other: Any, *, out: Any = ...) -> Any:
        """The angle of the point (y, x), in radians; the gradient at the origin is 0."""
    def arctan_(self, *, out: Any = ...) -> Any:
        """Inverse tangent, in radians."""
    def arctanh(self, *, out: Any = ...) -> Any:
        """Inverse hyperbolic tangent."""
    def arctanh_(self, *, out: Any = ...) -> Any:
        """Inverse hyperbolic tangent."""
    def argmax(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Index of the maximum, of everything (flattened) or along ``dim``. Integers: no gradient."""
    def argmin(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor:
        """Index of the minimum, of everything (flattened) or along ``dim``. Integers: no gradient."""
    def argsort(self, dim: builtins.int = ..., descending: builtins.bool = ..., *, stable: builtins.bool = ...) -> Tensor:
        """Indices that sort along ``dim``; equal elements keep their order, and nan counts as the largest."""
    def argwhere(self, *, as_tuple: builtins.bool = ...) -> Any:
        """Indices of the nonzero elements: a matrix with one row each, or one vector per axis."""
    def as_strided(self, size: Any, stride: Any, storage_offset: builtins.int | None = ...) -> Tensor:
        """A view with a size and strides (in elements) of the caller's; elements may show several times."""
    def as_strided_(self, size: Any, stride: Any, storage_offset: builtins.int | None = ...) -> Tensor:
        """A view with a size and strides (in elements) of the caller's; elements may show several times."""
    def as_strided_scatter(self, src: Tensor, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
        """A copy in which what :func:`as_strided` shows is ``src``."""
    def as_subclass(self, cls: builtins.type[Tensor]) -> Tensor:
        """The same elements and history in a tensor of a subclass."""
    def asin(self, *, out: Any = ...) -> Any:
        """Inverse sine, in radians."""
    def asin_(self, *, out: Any = ...) -> Any:
        """Inverse sine, in radians."""
    def asinh(self, *, out: Any = ...) -> Any:
        """Inverse hyperbolic sine."""
    def asinh_(self, *, out: Any = ...) -> Any:
        """Inverse hyperbolic sine."""
    def astype(self, dtype: Any, copy: Any = ...) -> Any:
        ...
    def atan(self, *, out: Any = ...) -> Any:
        """Inverse tangent, in radians."""
    def atan2(self, other: Any, *, out: Any = ...) -> Any:
        """The angle of the point (y, x), in radians; the gradient at the origin is 0."""
    def atan2_(self, other: Any, *, out: Any = ...) -> Any:
        """The angle of the point (y, x), in radians; the gradient at the origin is 0."""
    def atan_(self, *, out: Any = ...) -> Any:
        """Inverse tangent, in radians."""
    def atanh(self, *, out: Any = ...) -> Any:
        """Inverse hyperbolic tangent."""
    def atanh_(self, *, out: Any = ...) -> Any:
        """Inverse hyperbolic tangent."""
    def backward(self, gradient: object = ..., retain_graph: builtins.bool | None = ..., create_graph: builtins.bool = ..., inputs: object = ...) -> None:
        """Compute the gradients of the leaves that this tensor was computed from, and add them to their ``.grad``."""
    def baddbmm(self, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """beta·input + alpha·(batch1 @ batch2)."""
    def baddbmm_(self, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ...) -> Tensor:
        """beta·input + alpha·(batch1 @ batch2)."""
    def bernoulli(self, p: builtins.float | None = ..., *, generator: Generator | None = ...) -> Tensor:
        """1 with the probability that each element gives (or with probability ``p``, whatever they are), else 0."""
    def bernoulli_(self, p: builtins.float | None = ..., *, generator: Generator | None = ...) -> Tensor:
        """1 with the probability that each element gives (or with probability ``p``, whatever they are), else 0."""
    def bincount(self, weights: object = ..., minlength: builtins.int = ...) -> Tensor:
        """How often every non-negative integer occurs; with weights, the sum of their weights."""
    def bitwise_and(self, other: Any, *, out: Any = ...) -> Any:
        """Bits set in both."""
    def bitwise_and_(self, other: Any, *, out: Any = ...) -> Any:
        """Bits set in both."""
    def bitwise_left_shift(self, other: Any, *, out: Any = ...) -> Any:
        """Bits of x shifted left by y."""
    def bitwise_left_shift_(self, other: Any, *, out: Any = ...) -> Any:
        """Bits of x shifted left by y."""
    def bitwise_not(self, *, out: Any = ...) -> Any:
        """All bits flipped (logical not for booleans)."""
    def bitwise_not_(self, *, out: Any = ...) -> Any:
        """All bits flipped (logical not for booleans)."""
    def bitwise_or(self, other: Any, *, out: Any = ...) -> Any:
        """Bits set in either."""
    def bitwise_or_(self, other: Any, *, out: Any = ...) -> Any:
        """Bits set in either."""
    def bitwise_right_shift(self, other: Any, *, out: Any = ...) -> Any:
        """Bits of x shifted right by y."""
    def bitwise_right_shift_(self, other: Any, *, out: Any = ...) -> Any:
        """Bits of x shifted right by y."""
    def bitwise_xor(self, other: Any, *, out: Any = ...) -> Any:
        """Bits set in exactly one."""
    def bitwise_xor_(self, other: Any, *, out: Any = ...) -> Any:
        """Bits set in exactly one."""
    def bmm(self, other: TensorLike) -> Tensor:
        """The products of two stacks of matrices."""
    def bool(self, memory_format: object = ...) -> Tensor:
        """The tensor as bool; recorded."""
    def broadcast_to(self, size: Any) -> Tensor:
        """Broadcast to a shape, without copying."""
    def byte(self, memory_format: object = ...) -> Tensor:
        """The tensor as uint8; recorded."""
    def cauchy_(self, *args: object, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with random numbers (cauchy)."""
    def cdouble(self, memory_format: object = ...) -> Tensor:
        """The tensor as complex128; recorded."""
    def ceil(self, *, out: Any = ...) -> Any:
        """The smallest integer not below."""
    def ceil_(self, *, out: Any = ...) -> Any:
        """The smallest integer not below."""
    def cfloat(self, memory_format: object = ...) -> Tensor:
        """The tensor as complex64; recorded."""
    def char(self, memory_format: object = ...) -> Tensor:
        """The tensor as int8; recorded."""
    def cholesky(self, upper: builtins.bool = ...) -> Tensor:
        """As :func:`linalg.cholesky`."""
    def cholesky_inverse(self, upper: builtins.bool = ...) -> Tensor:
        """The inverse of the matrix whose Cholesky factor is L."""
    def cholesky_solve(self, L: Tensor, upper: builtins.bool = ...) -> Tensor:
        """The solution X of A @ X = B, where L is the Cholesky factor of A."""
    def chunk(self, chunks: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """At most ``chunks`` pieces of equal size along ``dim``; the last may be smaller."""
    def clamp(self, min: Any = ..., max: Any = ...) -> Tensor:
        """The elements limited to [min, max]; bounds are numbers or tensors. The gradient at a bound passes."""
    def clamp_(self, min: Any = ..., max: Any = ...) -> Tensor:
        """The elements limited to [min, max]; bounds are numbers or tensors. The gradient at a bound passes."""
    def clamp_max(self, max: TensorLike) -> Tensor:
        """The elements, at most ``max``."""
    def clamp_max_(self, max: TensorLike) -> Tensor:
        """The elements, at most ``max``."""
    def clamp_min(self, min: TensorLike) -> Tensor:
        """The elements, at least ``min``."""
    def clamp_min_(self, min: TensorLike) -> Tensor:
        """The elements, at least ``min``."""
    def clip(self, min: Any = ..., max: Any = ...) -> Tensor:
        """The elements limited to [min, max]; bounds are numbers or tensors. The gradient at a bound passes."""
    def clip_(self, min: Any = ..., max: Any = ...) -> Tensor:
        """The elements limited to [min, max]; bounds are numbers or tensors. The gradient at a bound passes."""
    def clone(self, *, memory_format: object = ...) -> Tensor:
        """A copy, which lies in memory as the tensor does, or (``contiguous_format``) in row order; gradients flow through it."""
    def compute(self) -> Tensor:
        """The tensor with its numbers in memory: computed, if they are lazy. ``cr.compute(x, y)`` computes several in one pass."""
    def conj(self) -> Tensor:
        """The complex conjugate (the tensor itself, for real dtypes)."""
    def conj_physical(self) -> Tensor:
        """The complex conjugate (the tensor itself, for real dtypes)."""
    def conj_physical_(self) -> Tensor:
        """The complex conjugate (the tensor itself, for real dtypes)."""
    def contiguous(self, memory_format: object = ...) -> Tensor:
        """The tensor itself if its memory is in row order, else a copy that is."""
    def copy_(self, other: Any, non_blocking: builtins.bool = ...) -> Tensor:
        """Copy another tensor's elements (broadcast, and cast) into this one; gradients flow to the source."""
    def copysign(self, other: Any, *, out: Any = ...) -> Any:
        """The magnitude of x with the sign of y."""
    def copysign_(self, other: Any, *, out: Any = ...) -> Any:
        """The magnitude of x with the sign of y."""
    def corrcoef(self) -> Tensor:
        """The correlation coefficients of variables: their covariances, divided by both standard deviations."""
    def cos(self, *, out: Any = ...) -> Any:
        """Cosine, of radians."""
    def cos_(self, *, out: Any = ...) -> Any:
        """Cosine, of radians."""
    def cosh(self, *, out: Any = ...) -> Any:
        """Hyperbolic cosine."""
    def cosh_(self, *, out: Any = ...) -> Any:
        """Hyperbolic cosine."""
    def count_nonzero(self, dim: Dims = ...) -> Tensor:
        """How many elements are not zero."""
    def cov(self, *, correction: builtins.int = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ...) -> Tensor:
        """The covariances of variables."""
    def cpu(self, memory_format: object = ...) -> Tensor:
        """The tensor on the CPU: itself, if it is there."""
    def cross(self, other: TensorLike, dim: builtins.int | None = ...) -> Tensor:
        """The vector product along ``dim`` (the first axis of length 3, by default)."""
    def cuda(self, device: DeviceLike = ..., non_blocking: builtins.bool = ..., memory_format: object = ...) -> Tensor:
        """The tensor on a GPU, by default on the current one: itself, if it is there."""
    def cummax(self, dim: builtins.int) -> Any:
        """Running maximum along ``dim``, and the index of it (the last, of equal ones)."""
    def cummin(self, dim: builtins.int) -> Any:
        """Running minimum along ``dim``, and the index of it (the last, of equal ones)."""
    def cumprod(self, dim: builtins.int, *, dtype: DTypeLike = ...) -> Tensor:
        """Running product along ``dim``. The gradient is right where elements are zero, too."""
    def cumprod_(self, dim: builtins.int, *, dtype: DTypeLike = ...) -> Tensor:
        """Running product along ``dim``. The gradient is right where elements are zero, too."""
    def cumsum(self, dim: builtins.int, *, dtype: DTypeLike = ...) -> Tensor:
        """Running sum along ``dim``."""
    def cumsum_(self, dim: builtins.int, *, dtype: DTypeLike = ...) -> Tensor:
        """Running sum along ``dim``."""
    def deg2rad(self, *, out: Any = ...) -> Any:
        """Degrees to radians."""
    def deg2rad_(self, *, out: Any = ...) -> Any:
        """Degrees to radians."""
    def det(self) -> Tensor:
        """The determinant of square matrices (..., n, n)."""
    def diag(self, diagonal: builtins.int = ...) -> Tensor:
        """A matrix with that diagonal, of a vector; a copy of the diagonal, of a matrix."""
    def diag_embed(self, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """The last axis put on the diagonal of a new pair of axes; zeros elsewhere."""
    def diagflat(self, offset: builtins.int = ...) -> Tensor:
        """A matrix with the flattened elements on a diagonal."""
    def diagonal(self, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """A diagonal of two axes, as the last axis (a view)."""
    def diagonal_scatter(self, src: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
        """A copy with the diagonal of two axes exchanged for ``src``: ``diagonal``, written to."""
    def diff(self, n: builtins.int = ..., dim: builtins.int = ..., prepend: TensorLike | None = ..., append: TensorLike | None = ...) -> Tensor:
        """Differences of neighbours along ``dim``, n times."""
    def digamma(self) -> Tensor:
        """Γ'(x) / Γ(x), the derivative of log Γ."""
    def digamma_(self) -> Tensor:
        """Γ'(x) / Γ(x), the derivative of log Γ."""
    def dist(self, other: TensorLike, p: builtins.float = ...) -> Tensor:
        """The p-norm of input − other."""
    def div(self, other: TensorLike, *, rounding_mode: str | None = ...) -> Tensor:
        """input / other; with ``rounding_mode`` 'floor' or 'trunc' rounded that way, keeping integer dtypes."""
    def div_(self, other: TensorLike, *, rounding_mode: str | None = ...) -> Tensor:
        """input / other; with ``rounding_mode`` 'floor' or 'trunc' rounded that way, keeping integer dtypes."""
    def divide(self, other: TensorLike, *, rounding_mode: str | None = ...) -> Tensor:
        """input / other; with ``rounding_mode`` 'floor' or 'trunc' rounded that way, keeping integer dtypes."""
    def divide_(self, other: TensorLike, *, rounding_mode: str | None = ...) -> Tensor:
        """input / other; with ``rounding_mode`` 'floor' or 'trunc' rounded that way, keeping integer dtypes."""
    def dot(self, other: TensorLike) -> Tensor:
        """The inner product of two vectors."""
    def double(self, memory_format: object = ...) -> Tensor:
        """The tensor as float64; recorded."""
    def dsplit(self, indices_or_sections: object) -> tuple[Tensor, ...]:
        """Cut along the third axis."""
    def eq(self, other: Any, *, out: Any = ...) -> Any:
        """Whether two elements are equal."""
    def eq_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether two elements are equal."""
    def equal(self, other: Tensor) -> builtins.bool:
        """Whether two tensors have the same shape and elements."""
    def erf(self, *, out: Any = ...) -> Any:
        """The error function 2/√π ∫₀ˣ exp(−t²) dt."""
    def erf_(self, *, out: Any = ...) -> Any:
        """The error function 2/√π ∫₀ˣ exp(−t²) dt."""
    def erfc(self, *, out: Any = ...) -> Any:
        """The complementary error function 1 − erf(x), accurate where that is tiny."""
    def erfc_(self, *, out: Any = ...) -> Any:
        """The complementary error function 1 − erf(x), accurate where that is tiny."""
    def erfinv(self, *, out: Any = ...) -> Any:
        """The inverse of the error function; infinite at ±1, nan beyond."""
    def erfinv_(self, *, out: Any = ...) -> Any:
        """The inverse of the error function; infinite at ±1, nan beyond."""
    def exp(self, *, out: Any = ...) -> Any:
        """Exponential of every element."""
    def exp2(self, *, out: Any = ...) -> Any:
        """2 to the power of every element."""
    def exp2_(self, *, out: Any = ...) -> Any:
        """2 to the power of every element."""
    def exp_(self, *, out: Any = ...) -> Any:
        """Exponential of every element."""
    def expand(self, *sizes: ShapeLike, size: Any = ...) -> Tensor:
        """Axes of length 1 stretched to the given sizes, without copying; -1 keeps a size."""
    def expand_as(self, other: Tensor) -> Tensor:
        """Expanded to the shape of ``other``."""
    def expm1(self, *, out: Any = ...) -> Any:
        """exp(x) − 1, accurate near 0."""
    def expm1_(self, *, out: Any = ...) -> Any:
        """exp(x) − 1, accurate near 0."""
    def exponential_(self, *args: object, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with random numbers (exponential)."""
    def fill_(self, value: TensorLike) -> Tensor:
        """Fill with a number, in place."""
    def fill_diagonal_(self, fill_value: TensorLike, wrap: builtins.bool = ...) -> Tensor:
        """Fill the main diagonal, in place: where all indices are equal; with ``wrap``, a tall matrix's again below it."""
    def fix(self, *, out: Any = ...) -> Any:
        """The integer part."""
    def fix_(self, *, out: Any = ...) -> Any:
        """The integer part."""
    def flatten(self, start_dim: builtins.int = ..., end_dim: builtins.int = ...) -> Tensor:
        """The axes from ``start_dim`` to ``end_dim`` joined into one."""
    def flip(self, *axes: Any, dims: object = ...) -> Tensor:
        """The order along axes reversed (a copy)."""
    def fliplr(self) -> Tensor:
        """Columns in reverse order."""
    def flipud(self) -> Tensor:
        """Rows in reverse order."""
    def float(self, memory_format: object = ...) -> Tensor:
        """The tensor as float32; recorded."""
    def float_power(self, exponent: TensorLike) -> Tensor:
        """input to the power exponent, in float64 (or complex128)."""
    def float_power_(self, exponent: TensorLike) -> Tensor:
        """input to the power exponent, in float64 (or complex128)."""
    def floor(self, *, out: Any = ...) -> Any:
        """The largest integer not above."""
    def floor_(self, *, out: Any = ...) -> Any:
        """The largest integer not above."""
    def floor_divide(self, other: TensorLike) -> Tensor:
        """The floor of the quotient."""
    def floor_divide_(self, other: TensorLike) -> Tensor:
        """The floor of the quotient."""
    def fmax(self, other: Any, *, out: Any = ...) -> Any:
        """The larger of two; the other where one is nan."""
    def fmin(self, other: Any, *, out: Any = ...) -> Any:
        """The smaller of two; the other where one is nan."""
    def fmod(self, other: TensorLike) -> Tensor:
        """Remainder of truncated division: its sign is the dividend's."""
    def fmod_(self, other: TensorLike) -> Tensor:
        """Remainder of truncated division: its sign is the dividend's."""
    def frac(self) -> Tensor:
        """The fractional part: input − trunc(input)."""
    def frac_(self) -> Tensor:
        """The fractional part: input − trunc(input)."""
    def frexp(self) -> Any:
        """Mantissas in ±[0.5, 1) and exponents (int32): input = mantissa · 2**exponent. Gradients flow to mantissas."""
    def gather(self, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = ...) -> Tensor:
        """``out[i][j] = input[index[i][j]][j]`` for dim 0, and so on for other dims."""
    def gcd(self, other: Any, *, out: Any = ...) -> Any:
        """Greatest common divisor."""
    def gcd_(self, other: Any, *, out: Any = ...) -> Any:
        """Greatest common divisor."""
    def ge(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is at least y."""
    def ge_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is at least y."""
    def geometric_(self, *args: object, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with random numbers (geometric)."""
    def ger(self, vec2: TensorLike) -> Tensor:
        """All products of an element of one vector and one of another, of shape (n, m)."""
    def get_device(self) -> builtins.int:
        """The number of the tensor's GPU; −1 on the CPU."""
    def graph(self, **options: object) -> object:
        """The graph that computed this tensor, to draw: ``.to_svg()``, ``.to_dot()``."""
    def greater(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is greater than y."""
    def greater_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is greater than y."""
    def greater_equal(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is at least y."""
    def greater_equal_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is at least y."""
    def gt(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is greater than y."""
    def gt_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is greater than y."""
    def half(self, memory_format: object = ...) -> Tensor:
        """The tensor as float16; recorded."""
    def hardshrink(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def heaviside(self, values: TensorLike) -> Tensor:
        """0 where input is negative, ``values`` where it is 0, else 1."""
    def heaviside_(self, values: TensorLike) -> Tensor:
        """0 where input is negative, ``values`` where it is 0, else 1."""
    def histc(self, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ...) -> Tensor:
        """How many elements fall into each of ``bins`` equal intervals from ``min`` to ``max`` (both 0: of the data)."""
    def histogram(self, bins: Any, *, range: Any = ..., weight: Tensor | None = ..., density: builtins.bool = ...) -> Any:
        """How many elements (or how much of their ``weight``) fall into each bin, and the bins' edges."""
    def hsplit(self, indices_or_sections: object) -> tuple[Tensor, ...]:
        """Cut between columns (between elements, of a vector)."""
    def hypot(self, other: Any, *, out: Any = ...) -> Any:
        """√(x² + y²) without overflow."""
    def hypot_(self, other: Any, *, out: Any = ...) -> Any:
        """√(x² + y²) without overflow."""
    def i0(self, *, out: Any = ...) -> Any:
        """The modified Bessel function I₀(x)."""
    def i0_(self, *, out: Any = ...) -> Any:
        """The modified Bessel function I₀(x)."""
    def igamma(self, other: Tensor) -> Tensor:
        """``scipy.special.gammainc`` on tensors; SciPy computes it."""
    def igamma_(self, other: Tensor) -> Tensor:
        """``scipy.special.gammainc`` on tensors; SciPy computes it."""
    def igammac(self, other: Tensor) -> Tensor:
        """``scipy.special.gammaincc`` on tensors; SciPy computes it."""
    def igammac_(self, other: Tensor) -> Tensor:
        """``scipy.special.gammaincc`` on tensors; SciPy computes it."""
    @property
    def imag(self) -> Any: ...
    def index_add(self, dim: builtins.int, index: Any, source: Tensor, *, alpha: TensorLike = ...) -> Tensor:
        """A copy with entries of ``source`` added at indices along ``dim``."""
    def index_add_(self, dim: builtins.int, index: Any, source: Tensor, *, alpha: TensorLike = ...) -> Tensor:
        """A copy with entries of ``source`` added at indices along ``dim``."""
    def index_copy(self, dim: builtins.int, index: Any, source: Tensor) -> Tensor:
        """A copy with entries of ``source`` written at indices along ``dim``."""
    def index_copy_(self, dim: builtins.int, index: Any, source: Tensor) -> Tensor:
        """A copy with entries of ``source`` written at indices along ``dim``."""
    def index_fill(self, dim: builtins.int, index: Any, value: TensorLike) -> Tensor:
        """A copy with the entries at indices along ``dim`` filled with a value (a number or 0-d tensor)."""
    def index_fill_(self, dim: builtins.int, index: Any, value: TensorLike) -> Tensor:
        """A copy with the entries at indices along ``dim`` filled with a value (a number or 0-d tensor)."""
    def index_put(self, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """A copy with values written (or added) at ``input[indices]``."""
    def index_put_(self, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """A copy with values written (or added) at ``input[indices]``."""
    def index_reduce(self, dim: builtins.int, index: Any, source: Tensor, reduce: str, *, include_self: builtins.bool = ...) -> Tensor:
        """As :func:`scatter_reduce`, with one index for a whole entry along ``dim``: "prod", "mean", "amax" or "amin"."""
    def index_reduce_(self, dim: builtins.int, index: Any, source: Tensor, reduce: str, *, include_self: builtins.bool = ...) -> Tensor:
        """As :func:`scatter_reduce`, with one index for a whole entry along ``dim``: "prod", "mean", "amax" or "amin"."""
    def index_select(self, dim: builtins.int, index: TensorLike) -> Tensor:
        """Entries at indices along ``dim`` (a copy; indices may repeat)."""
    def inner(self, other: TensorLike) -> Tensor:
        """Products summed over the last axis of both."""
    def int(self, memory_format: object = ...) -> Tensor:
        """The tensor as int32; recorded."""
    def inverse(self) -> Tensor:
        """The inverse of square matrices."""
    def is_conj(self) -> builtins.bool:
        """Whether conjugation is still to be done: never, ``conj`` computes at once (as ``neg`` does)."""
    is_ipu: builtins.bool
    is_maia: builtins.bool
    is_meta: builtins.bool
    is_mkldnn: builtins.bool
    is_mps: builtins.bool
    is_mtia: builtins.bool
    def is_neg(self) -> builtins.bool:
        """Whether conjugation is still to be done: never, ``conj`` computes at once (as ``neg`` does)."""
    is_nested: builtins.bool
    def is_nonzero(self) -> builtins.bool:
        """Whether the only element is not zero."""
    def is_pinned(self) -> builtins.bool:
        """Whether conjugation is still to be done: never, ``conj`` computes at once (as ``neg`` does)."""
    is_quantized: builtins.bool
    def is_same_size(self, other: Tensor) -> builtins.bool:
        """Whether two tensors have the same shape."""
    def is_shared(self) -> builtins.bool:
        """Whether conjugation is still to be done: never, ``conj`` computes at once (as ``neg`` does)."""
    def is_signed(self) -> builtins.bool:
        """Whether the dtype has negative numbers."""
    is_sparse_csr: builtins.bool
    is_vulkan: builtins.bool
    is_xla: builtins.bool
    is_xpu: builtins.bool
    def isclose(self, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> Tensor:
        """Whether |input − other| ≤ atol + rtol·|other|, element by element."""
    def isfinite(self, *, out: Any = ...) -> Any:
        """Whether an element is a finite number."""
    def isinf(self, *, out: Any = ...) -> Any:
        """Whether an element is infinite."""
    def isnan(self, *, out: Any = ...) -> Any:
        """Whether an element is nan."""
    def isneginf(self) -> Tensor:
        """Whether an element is −∞."""
    def isposinf(self) -> Tensor:
        """Whether an element is +∞."""
    def isreal(self) -> Tensor:
        """Whether an element has no imaginary part."""
    def istft(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def kron(self, other: TensorLike) -> Tensor:
        """The Kronecker product."""
    def kthvalue(self, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> Any:
        """The k-th smallest element along ``dim`` (counted from 1), and its index."""
    layout: _layout
    def lcm(self, other: Any, *, out: Any = ...) -> Any:
        """Least common multiple."""
    def lcm_(self, other: Any, *, out: Any = ...) -> Any:
        """Least common multiple."""
    def ldexp(self, other: TensorLike) -> Tensor:
        """input · 2**other."""
    def ldexp_(self, other: TensorLike) -> Tensor:
        """input · 2**other."""
    def le(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is at most y."""
    def le_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is at most y."""
    def lerp(self, end: TensorLike, weight: TensorLike) -> Tensor:
        """input + weight·(end − input)."""
    def lerp_(self, end: TensorLike, weight: TensorLike) -> Tensor:
        """input + weight·(end − input)."""
    def less(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is less than y."""
    def less_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is less than y."""
    def less_equal(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is at most y."""
    def less_equal_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is at most y."""
    def lgamma(self) -> Tensor:
        """log |Γ(x)|; infinite at 0 and the negative integers."""
    def lgamma_(self) -> Tensor:
        """log |Γ(x)|; infinite at 0 and the negative integers."""
    def log(self, *, out: Any = ...) -> Any:
        """Natural logarithm."""
    def log10(self, *, out: Any = ...) -> Any:
        """Logarithm to base 10."""
    def log10_(self, *, out: Any = ...) -> Any:
        """Logarithm to base 10."""
    def log1p(self, *, out: Any = ...) -> Any:
        """log(1 + x), accurate near 0."""
    def log1p_(self, *, out: Any = ...) -> Any:
        """log(1 + x), accurate near 0."""
    def log2(self, *, out: Any = ...) -> Any:
        """Logarithm to base 2."""
    def log2_(self, *, out: Any = ...) -> Any:
        """Logarithm to base 2."""
    def log_(self, *, out: Any = ...) -> Any:
        """Natural logarithm."""
    def log_normal_(self, *args: object, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with random numbers (log_normal)."""
    def log_softmax(self, dim: builtins.int | None = ..., dtype: DTypeLike = ...) -> Tensor:
        """The logarithm of the softmax along ``dim``, without overflow."""
    def logaddexp(self, other: TensorLike) -> Tensor:
        """log(exp(input) + exp(other)), without overflow."""
    def logaddexp2(self, other: Any, *, out: Any = ...) -> Any:
        """log2(2**x + 2**y) without overflow."""
    def logcumsumexp(self, dim: builtins.int) -> Tensor:
        """Running log Σ exp along ``dim``, without overflow."""
    def logdet(self) -> Tensor:
        """The logarithm of the determinant; nan where it is negative."""
    def logical_and(self, other: Any, *, out: Any = ...) -> Any:
        """Whether both are nonzero."""
    def logical_and_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether both are nonzero."""
    def logical_not(self, *, out: Any = ...) -> Any:
        """Whether an element is zero."""
    def logical_not_(self, *, out: Any = ...) -> Any:
        """Whether an element is zero."""
    def logical_or(self, other: Any, *, out: Any = ...) -> Any:
        """Whether either is nonzero."""
    def logical_or_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether either is nonzero."""
    def logical_xor(self, other: Any, *, out: Any = ...) -> Any:
        """Whether exactly one is nonzero."""
    def logical_xor_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether exactly one is nonzero."""
    def logit(self, eps: builtins.float | None = ...) -> Tensor:
        """log(x / (1 − x)), the inverse of the sigmoid; with ``eps``, x is first clamped to [eps, 1 − eps]."""
    def logit_(self, eps: builtins.float | None = ...) -> Tensor:
        """log(x / (1 − x)), the inverse of the sigmoid; with ``eps``, x is first clamped to [eps, 1 − eps]."""
    def logsumexp(self, dim: Any, keepdim: builtins.bool = ...) -> Tensor:
        """log Σ exp(x) over ``dim``, without overflow."""
    def long(self, memory_format: object = ...) -> Tensor:
        """The tensor as int64; recorded."""
    def lt(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is less than y."""
    def lt_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether x is less than y."""
    def lu(self, pivot: builtins.bool = ..., get_infos: builtins.bool = ...) -> Any:
        """As :func:`linalg.lu_factor`; with ``get_infos`` as :func:`linalg.lu_factor_ex`."""
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """As :func:`linalg.lu_solve`, with the right side first."""
    @property
    def mH(self) -> Any: ...
    @property
    def mT(self) -> Any: ...
    def masked_fill(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """A copy with a value (a number or 0-d tensor) where the mask is True."""
    def masked_fill_(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """A copy with a value (a number or 0-d tensor) where the mask is True."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """A copy with the mask's places filled, in order, with elements of ``source``; tensor and mask broadcast."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """A copy with the mask's places filled, in order, with elements of ``source``; tensor and mask broadcast."""
    def masked_select(self, mask: Any) -> Tensor:
        """The elements where the mask is True, in one vector."""
    def matmul(self, other: Any) -> Tensor:
        """The matrix product ``input @ other``: of vectors, matrices, and stacks of matrices (leading axes broadcast)."""
    def matrix_exp(self) -> Tensor:
        """The matrix exponential of square matrices."""
    def matrix_power(self, n: builtins.int) -> Tensor:
        """The n-th power of square matrices; of the inverse, for negative n."""
    def max(self, dim: Any = ..., keepdim: builtins.bool = ..., *, other: Any = ...) -> Any:
        """Maximum of all elements; with ``dim`` a pair (values, indices); with another tensor the elementwise maximum."""
    def maximum(self, other: Any, *, out: Any = ...) -> Any:
        """The larger of two, element by element; nan where either is."""
    def maximum_(self, other: Any, *, out: Any = ...) -> Any:
        """The larger of two, element by element; nan where either is."""
    def mean(self, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., axis: Dims = ..., keepdims: builtins.bool | None = ...) -> Tensor:
        """Mean over ``dim``."""
    def median(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
        """The (lower) median of everything, or along ``dim`` with its index; nan where there is one."""
    def min(self, dim: Any = ..., keepdim: builtins.bool = ..., *, other: Any = ...) -> Any:
        """Minimum of all elements; with ``dim`` a pair (values, indices); with another tensor the elementwise minimum."""
    def minimum(self, other: Any, *, out: Any = ...) -> Any:
        """The smaller of two, element by element; nan where either is."""
    def minimum_(self, other: Any, *, out: Any = ...) -> Any:
        """The smaller of two, element by element; nan where either is."""
    def mm(self, other: TensorLike) -> Tensor:
        """The product of two matrices."""
    def mode(self, dim: builtins.int = ..., keepdim: builtins.bool = ...) -> Any:
        """The most frequent value along ``dim`` (the smallest of those), and the last index of it."""
    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """Axes moved to other places, the others kept in order."""
    def movedim(self, source: Any, destination: Any) -> Tensor:
        """Axes moved to other places, the others kept in order."""
    def msort(self) -> Tensor:
        """Sorted values along the first dimension."""
    def mul(self, other: Any, *, out: Any = ...) -> Any:
        """Product, element by element."""
    def mul_(self, other: Any, *, out: Any = ...) -> Any:
        """Product, element by element."""
    def multinomial(self, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Generator | None = ...) -> Tensor:
        """Indices drawn with probabilities in proportion to each row's weights."""
    def multiply(self, other: Any, *, out: Any = ...) -> Any:
        """Product, element by element."""
    def multiply_(self, other: Any, *, out: Any = ...) -> Any:
        """Product, element by element."""
    def mv(self, other: TensorLike) -> Tensor:
        """The product of a matrix and a vector."""
    def mvlgamma(self, p: builtins.int) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension p: p(p − 1)/4·log π + Σ log Γ(x − j/2)."""
    def mvlgamma_(self, p: builtins.int) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension p: p(p − 1)/4·log π + Σ log Γ(x − j/2)."""
    name: Any
    def nan_to_num(self, nan: TensorLike = ..., posinf: TensorLike | None = ..., neginf: TensorLike | None = ...) -> Tensor:
        """nan replaced by ``nan``, infinities by ``posinf`` and ``neginf`` (the largest finite numbers by default)."""
    def nan_to_num_(self, nan: TensorLike = ..., posinf: TensorLike | None = ..., neginf: TensorLike | None = ...) -> Tensor:
        """nan replaced by ``nan``, infinities by ``posinf`` and ``neginf`` (the largest finite numbers by default)."""
    def nanmean(self, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ...) -> Tensor:
        """Mean over ``dim`` of the elements that are not nan."""
    def nanmedian(self, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Any:
        """The (lower) median of what is not nan: of everything, or along ``dim`` with its index."""
    def nanquantile(self, q: object, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ...) -> Tensor:
        """The q-quantile along ``dim`` of what is not nan; nan where there is nothing else."""
    def nansum(self, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ...) -> Tensor:
        """Sum over ``dim``, with nan counted as 0."""
    def narrow(self, dim: builtins.int, start: TensorLike, length: builtins.int) -> Tensor:
        """A stretch of ``length`` entries along ``dim``, as a view."""
    def narrow_copy(self, dim: builtins.int, start: TensorLike, length: builtins.int) -> Tensor:
        """As :func:`narrow`, but a copy that shares no memory with the tensor."""
    def ne(self, other: Any, *, out: Any = ...) -> Any:
        """Whether two elements differ."""
    def ne_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether two elements differ."""
    def neg(self, *, out: Any = ...) -> Any:
        """The negative of every element."""
    def neg_(self, *, out: Any = ...) -> Any:
        """The negative of every element."""
    def negative(self, *, out: Any = ...) -> Any:
        """The negative of every element."""
    def negative_(self, *, out: Any = ...) -> Any:
        """The negative of every element."""
    def new(self, *args: object) -> Tensor:
        """PyTorch's old name for :func:`new_empty` of a size, or :func:`new_tensor` of data."""
    def new_empty(self, *size: ShapeLike, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """Memory of this tensor's dtype."""
    def new_full(self, size: ShapeLike, fill_value: object, *, dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """One value in a shape, of this tensor's dtype."""
    def new_ones(self, *size: ShapeLike, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """Ones of this tensor's dtype."""
    def new_tensor(self, data: object, *, dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """A tensor of this one's dtype from data."""
    def new_zeros(self, *size: ShapeLike, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
        """Zeros of this tensor's dtype."""
    def nextafter(self, other: Any, *, out: Any = ...) -> Any:
        """The next representable number after x towards y."""
    def nextafter_(self, other: Any, *, out: Any = ...) -> Any:
        """The next representable number after x towards y."""
    def nonzero(self, *, as_tuple: builtins.bool = ...) -> Any:
        """Indices of the nonzero elements: a matrix with one row each, or one vector per axis."""
    def nonzero_static(self, *, size: builtins.int, fill_value: builtins.int = ...) -> Tensor:
        """As :func:`nonzero`, with exactly ``size`` rows: cut, or filled up with ``fill_value``."""
    def norm(self, p: Any = ..., dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ...) -> Tensor:
        """The p-norm over ``dim`` (everything by default). Its gradient where it is 0 is 0."""
    def normal_(self, *args: object, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with random numbers (normal)."""
    def not_equal(self, other: Any, *, out: Any = ...) -> Any:
        """Whether two elements differ."""
    def not_equal_(self, other: Any, *, out: Any = ...) -> Any:
        """Whether two elements differ."""
    def orgqr(self, tau: Tensor) -> Tensor:
        """The first n columns of H₁H₂…H_k, where H_i = I − tau_i·v·vᴴ and v is column i of A under a 1 on the diagonal."""
    def outer(self, vec2: TensorLike) -> Tensor:
        """All products of an element of one vector and one of another, of shape (n, m)."""
    def permute(self, *order: Any, dims: Dims = ...) -> Tensor:
        """The axes in another order."""
    def persist(self) -> Tensor:
        """The tensor with its chunks computed and kept where they are, on the workers of a cluster; itself, if it isn't lazy."""
    def pinverse(self, rcond: builtins.float = ...) -> Tensor:
        """The pseudoinverse: as :func:`linalg.pinv`, with ``rtol=rcond``."""
    def polygamma(self, n: builtins.int) -> Tensor:
        """The derivative of order n of :func:`digamma`."""
    def polygamma_(self, n: builtins.int) -> Tensor:
        """The derivative of order n of :func:`digamma`."""
    def positive(self) -> Tensor:
        """The tensor itself (``+x``)."""
    def pow(self, exponent: TensorLike) -> Tensor:
        """input to the power exponent."""
    def pow_(self, exponent: TensorLike) -> Tensor:
        """input to the power exponent."""
    def prelu(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def prod(self, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ...) -> Tensor:
        """Product of all elements, or along ``dim``. The gradient is right where elements are zero, too."""
    def put(self, index: Any, source: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """A copy with elements of ``source`` written (or added) at indices into the flattened tensor."""
    def put_(self, index: Any, source: Tensor, accumulate: builtins.bool = ...) -> Tensor:
        """A copy with elements of ``source`` written (or added) at indices into the flattened tensor."""
    def qr(self, some: builtins.bool = ...) -> Any:
        """As :func:`linalg.qr`, with the mode "complete" for ``some=False``."""
    def quantile(self, q: object, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ...) -> Tensor:
        """The q-quantile along ``dim`` (q between 0 and 1, a number or a 1-D tensor); nan where there is one."""
    def rad2deg(self, *, out: Any = ...) -> Any:
        """Radians to degrees."""
    def rad2deg_(self, *, out: Any = ...) -> Any:
        """Radians to degrees."""
    def random_(self, *bounds: builtins.int, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with integers from ``from`` (0) up to and without ``to`` (as far as the dtype is exact)."""
    def ravel(self) -> Tensor:
        """All elements along one axis, contiguous: a view if they are already, else a copy."""
    @property
    def real(self) -> Any: ...
    def reciprocal(self, *, out: Any = ...) -> Any:
        """One over every element."""
    def reciprocal_(self, *, out: Any = ...) -> Any:
        """One over every element."""
    def relu(self, *, out: Any = ...) -> Any:
        """max(x, 0), which of -0. is -0.; the derivative at 0 is 0."""
    def relu_(self, *, out: Any = ...) -> Any:
        """max(x, 0), which of -0. is -0.; the derivative at 0 is 0."""
    def remainder(self, other: TensorLike) -> Tensor:
        """Remainder of floor division: its sign is the divisor's."""
    def remainder_(self, other: TensorLike) -> Tensor:
        """Remainder of floor division: its sign is the divisor's."""
    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """The entries along ``dim``, each scaled down to a p-norm of ``maxnorm`` if its own is larger."""
    def renorm_(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """The entries along ``dim``, each scaled down to a p-norm of ``maxnorm`` if its own is larger."""
    def repeat(self, *times: Any, repeats: Any = ...) -> Tensor:
        """Copies of the tensor side by side along every axis (``np.tile``)."""
    def repeat_interleave(self, repeats: object = ..., dim: builtins.int | None = ..., *, output_size: object = ...) -> Tensor:
        """Every element (or entry along ``dim``) repeated in place."""
    def reshape(self, *sizes: ShapeLike, shape: Any = ...) -> Tensor:
        """The same elements in another shape: a view where memory allows, else a copy. One size may be -1."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """Reshaped to the shape of ``other``."""
    def resize_(self, *size: ShapeLike, memory_format: object = ...) -> Tensor:
        """Another shape for the same elements, in place."""
    def resize_as_(self, the_template: Tensor, *, memory_format: object = ...) -> Tensor:
        """As :func:`resize_`, with the shape of another tensor."""
    def resolve_conj(self) -> Tensor:
        """The tensor itself: nothing is still to be done to its elements."""
    def resolve_neg(self) -> Tensor:
        """The tensor itself: nothing is still to be done to its elements."""
    def roll(self, shifts: object, dims: Dims = ...) -> Tensor:
        """Elements shifted along axes, around the ends; without ``dims`` as if flattened."""
    def rot90(self, k: builtins.int = ..., dims: Any = ...) -> Tensor:
        """Rotated by k quarter turns in the plane of two axes (a copy)."""
    def round(self, *, decimals: builtins.int = ...) -> Tensor:
        """The nearest integer, ties to even; or to that many decimals."""
    def round_(self, *, decimals: builtins.int = ...) -> Tensor:
        """The nearest integer, ties to even; or to that many decimals."""
    def rsqrt(self, *, out: Any = ...) -> Any:
        """One over the square root."""
    def rsqrt_(self, *, out: Any = ...) -> Any:
        """One over the square root."""
    def scatter(self, dim: builtins.int, index: Any, src: TensorLike | None = ..., *, value: TensorLike | None = ..., reduce: str | None = ...) -> Tensor:
        """A copy with the elements of ``src`` (or one ``value``) written at indices along ``dim``."""
    def scatter_(self, dim: builtins.int, index: Any, src: TensorLike | None = ..., *, value: TensorLike | None = ..., reduce: str | None = ...) -> Tensor:
        """A copy with the elements of ``src`` (or one ``value``) written at indices along ``dim``."""
    def scatter_add(self, dim: builtins.int, index: Any, src: Any) -> Tensor:
        """A copy with the elements of ``src`` added at indices along ``dim``; repeated indices add up."""
    def scatter_add_(self, dim: builtins.int, index: Any, src: Any) -> Tensor:
        """A copy with the elements of ``src`` added at indices along ``dim``; repeated indices add up."""
    def scatter_reduce(self, dim: builtins.int, index: Any, src: Any, reduce: str, *, include_self: builtins.bool = ...) -> Tensor:
        """A copy in which every place along ``dim`` that an index names combines what is there with what is scattered there."""
    def scatter_reduce_(self, dim: builtins.int, index: Any, src: Any, reduce: str, *, include_self: builtins.bool = ...) -> Tensor:
        """A copy in which every place along ``dim`` that an index names combines what is there with what is scattered there."""
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """The entry at ``index`` along ``dim``, which is removed; a view."""
    def select_scatter(self, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
        """A copy with the entry at ``index`` along ``dim`` exchanged for ``src``: ``select``, written to."""
    def set_(self, source: Tensor) -> Tensor:
        """Give the tensor the memory, shape and dtype of another one, as assigning to ``data`` does."""
    def sgn(self) -> Tensor:
        """The sign; of a complex number its direction z/|z| (0 at 0)."""
    def sgn_(self) -> Tensor:
        """The sign; of a complex number its direction z/|z| (0 at 0)."""
    def short(self, memory_format: object = ...) -> Tensor:
        """The tensor as int16; recorded."""
    def sigmoid(self, *, out: Any = ...) -> Any:
        """The logistic function 1 / (1 + exp(−x)), without overflow."""
    def sigmoid_(self, *, out: Any = ...) -> Any:
        """The logistic function 1 / (1 + exp(−x)), without overflow."""
    def sign(self) -> Tensor:
        """−1, 0 or 1; of booleans themselves."""
    def sign_(self) -> Tensor:
        """−1, 0 or 1; of booleans themselves."""
    def signbit(self, *, out: Any = ...) -> Any:
        """Whether the sign bit is set."""
    def sin(self, *, out: Any = ...) -> Any:
        """Sine, of radians."""
    def sin_(self, *, out: Any = ...) -> Any:
        """Sine, of radians."""
    def sinc(self, *, out: Any = ...) -> Any:
        """sin(πx) / (πx), and 1 at 0."""
    def sinc_(self, *, out: Any = ...) -> Any:
        """sin(πx) / (πx), and 1 at 0."""
    def sinh(self, *, out: Any = ...) -> Any:
        """Hyperbolic sine."""
    def sinh_(self, *, out: Any = ...) -> Any:
        """Hyperbolic sine."""
    def slice_scatter(self, src: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ...) -> Tensor:
        """A copy with the entries from ``start`` to ``end`` along ``dim``, every ``step``, exchanged for those of ``src``."""
    def slogdet(self) -> Any:
        """Sign and logarithm of the absolute value of the determinant, as ``(sign, logabsdet)``."""
    def softmax(self, dim: builtins.int | None = ..., dtype: DTypeLike = ...) -> Tensor:
        """exp(x) / Σ exp(x) along ``dim``: positive, and 1 in sum."""
    def sort(self, dim: builtins.int = ..., descending: builtins.bool = ..., *, stable: builtins.bool | None = ...) -> Any:
        """Sorted values along ``dim``, and where they came from; equal elements keep their order."""
    def split(self, split_size_or_sections: Any, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """Pieces along ``dim``: of a size (the last may be smaller), or of the sizes listed. Each is a view."""
    def split_with_sizes(self, split_sizes: object, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """Pieces of the sizes listed, along ``dim``."""
    def sqrt(self, *, out: Any = ...) -> Any:
        """Square root; the derivative at 0 is infinite."""
    def sqrt_(self, *, out: Any = ...) -> Any:
        """Square root; the derivative at 0 is infinite."""
    def square(self, *, out: Any = ...) -> Any:
        """The square of every element."""
    def square_(self, *, out: Any = ...) -> Any:
        """The square of every element."""
    def squeeze(self, dim: Any = ...) -> Tensor:
        """Axes of length 1 removed: all of them, or those of ``dim`` that are."""
    def squeeze_(self, dim: Any = ...) -> Tensor:
        """Axes of length 1 removed: all of them, or those of ``dim`` that are."""
    def std(self, dim: Dims = ..., unbiased: Any = ..., keepdim: builtins.bool = ..., *, correction: Any = ...) -> Tensor:
        """Standard deviation over ``dim``: the square root of :func:`var`; its gradient where it is 0 is 0."""
    def stft(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def storage(self) -> Storage:
        """The memory of a tensor, in elements of its dtype."""
    def storage_offset(self) -> builtins.int:
        """How many elements of the memory come before the tensor's first."""
    def sub(self, other: TensorLike, *old: Any, alpha: TensorLike = ...) -> Tensor:
        """input − alpha·other."""
    def sub_(self, other: TensorLike, *old: Any, alpha: TensorLike = ...) -> Tensor:
        """input − alpha·other."""
    def subtract(self, other: TensorLike, *old: Any, alpha: TensorLike = ...) -> Tensor:
        """input − alpha·other."""
    def subtract_(self, other: TensorLike, *old: Any, alpha: TensorLike = ...) -> Tensor:
        """input − alpha·other."""
    def sum(self, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., axis: Dims = ..., keepdims: builtins.bool | None = ...) -> Tensor:
        """Sum over ``dim`` (an int, a tuple, or None for everything). Booleans and integers are summed as int64."""
    def sum_to_size(self, *size: ShapeLike) -> Tensor:
        """Summed over the axes that broadcasting a tensor of that size to this one's shape would stretch."""
    def svd(self, some: builtins.bool = ..., compute_uv: builtins.bool = ...) -> Any:
        """As :func:`linalg.svd`, but with V itself: input = U @ diag(S) @ Vᴴ."""
    def swapaxes(self, dim0: object, dim1: object = ...) -> Tensor:
        """Two axes exchanged; a tuple of all axes is their new order, as in NumPy."""
    def swapaxes_(self, dim0: object, dim1: object = ...) -> Tensor:
        """Two axes exchanged; a tuple of all axes is their new order, as in NumPy."""
    def swapdims(self, dim0: object, dim1: object = ...) -> Tensor:
        """Two axes exchanged; a tuple of all axes is their new order, as in NumPy."""
    def swapdims_(self, dim0: object, dim1: object = ...) -> Tensor:
        """Two axes exchanged; a tuple of all axes is their new order, as in NumPy."""
    def t(self) -> Tensor:
        """The transpose of a matrix (a vector or number is returned as it is)."""
    def t_(self) -> Tensor:
        """The transpose of a matrix (a vector or number is returned as it is)."""
    def take(self, index: Any) -> Tensor:
        """Elements at indices into the flattened tensor (negative ones count from the end)."""
    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = ...) -> Tensor:
        """Elements at indices along ``dim``; the other axes broadcast (``np.take_along_axis``)."""
    def tan(self, *, out: Any = ...) -> Any:
        """Tangent, of radians."""
    def tan_(self, *, out: Any = ...) -> Any:
        """Tangent, of radians."""
    def tanh(self, *, out: Any = ...) -> Any:
        """Hyperbolic tangent."""
    def tanh_(self, *, out: Any = ...) -> Any:
        """Hyperbolic tangent."""
    def tensor_split(self, indices_or_sections: Any, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """Pieces as ``np.array_split`` makes them: so many of nearly equal size, or cut at indices."""
    def tile(self, *times: Any, dims: Dims = ...) -> Tensor:
        """As :func:`repeat`, with missing repeats counted as 1."""
    def to(self, *args: object, dtype: DTypeLike = ..., device: Any = ..., non_blocking: builtins.bool = ..., copy: builtins.bool = ..., memory_format: object = ...) -> Tensor:
        """The tensor in another dtype, on another device, or like another tensor in both (itself, if it is so already): recorded."""
    def to_dense(self) -> Tensor:
        """The tensor itself: nothing is still to be done to its elements."""
    def topk(self, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ...) -> Any:
        """The k largest (or smallest) elements along ``dim``, and their indices."""
    def trace(self) -> Tensor:
        """The sum of the diagonal of a matrix."""
    def transpose(self, dim0: object, dim1: object = ...) -> Tensor:
        """Two axes exchanged; a tuple of all axes is their new order, as in NumPy."""
    def transpose_(self, dim0: object, dim1: object = ...) -> Tensor:
        """Two axes exchanged; a tuple of all axes is their new order, as in NumPy."""
    def triangular_solve(self, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ...) -> Any:
        """As :func:`linalg.solve_triangular`, with the right side first; A is returned, too."""
    def tril(self, diagonal: builtins.int = ...) -> Tensor:
        """The lower triangle of matrices, up to a diagonal; zeros elsewhere."""
    def tril_(self, diagonal: builtins.int = ...) -> Tensor:
        """The lower triangle of matrices, up to a diagonal; zeros elsewhere."""
    def triu(self, diagonal: builtins.int = ...) -> Tensor:
        """The upper triangle of matrices, from a diagonal; zeros elsewhere."""
    def triu_(self, diagonal: builtins.int = ...) -> Tensor:
        """The upper triangle of matrices, from a diagonal; zeros elsewhere."""
    def true_divide(self, other: Any, *, out: Any = ...) -> Any:
        """Quotient, element by element. Integers are divided as floats of the default dtype."""
    def true_divide_(self, other: Any, *, out: Any = ...) -> Any:
        """Quotient, element by element. Integers are divided as floats of the default dtype."""
    def trunc(self, *, out: Any = ...) -> Any:
        """The integer part."""
    def trunc_(self, *, out: Any = ...) -> Any:
        """The integer part."""
    def type(self, dtype: DTypeLike = ...) -> Any:
        """The name of the tensor's type, or the tensor in another dtype."""
    def type_as(self, other: Any) -> Any:
        ...
    def unbind(self, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """All entries along ``dim``, each a view."""
    def unflatten(self, dim: builtins.int, sizes: Any) -> Tensor:
        """One axis split into several."""
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """Windows of ``size`` along a dimension, every ``step``, as a new last axis (a view)."""
    def uniform_(self, *args: object, generator: Generator | None = ..., **named: object) -> Tensor:
        """Fill the tensor in place with random numbers (uniform)."""
    def unique(self, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any:
        """The distinct elements, in order. Of equal ones, the first gets the gradient."""
    def unique_consecutive(self, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any:
        """The elements (or entries along ``dim``) without those that equal the one before, which gets the gradient."""
    def unsafe_chunk(self, chunks: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """As :func:`chunk`, but the pieces may be written to in place, each with a history of its own."""
    def unsafe_split(self, split_size: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """As :func:`split`, but the pieces may be written to in place, each with a history of its own."""
    def unsafe_split_with_sizes(self, split_sizes: object, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """As :func:`split_with_sizes`, but the pieces may be written to in place, each with a history of its own."""
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """A new axis of length 1 at ``dim``."""
    def unsqueeze_(self, dim: builtins.int) -> Tensor:
        """A new axis of length 1 at ``dim``."""
    def untyped_storage(self) -> Storage:
        """The memory of a tensor, in bytes."""
    def var(self, dim: Dims = ..., unbiased: Any = ..., keepdim: builtins.bool = ..., *, correction: builtins.int | None = ...) -> Tensor:
        """Variance over ``dim``, divided by n − correction (1 by default; 0 with ``unbiased=False``)."""
    def vdot(self, other: TensorLike) -> Tensor:
        """The inner product of two vectors, the first conjugated."""
    def view(self, *sizes: Any, size: Any = ...) -> Tensor:
        """As :func:`reshape`, but never a copy."""
    def view_as(self, other: Tensor) -> Tensor:
        """A view in the shape of ``other``."""
    def vsplit(self, indices_or_sections: object) -> tuple[Tensor, ...]:
        """Cut between rows."""
    def where(self, condition: Tensor, other: Any) -> Tensor:
        """This tensor's elements where the condition holds, else ``other``'s."""
    def why(self) -> object:
        """Why this tensor's ``.grad`` is what it is, or why there is none."""
    def xlogy(self, other: Any, *, out: Any = ...) -> Any:
        """x·log(y), and 0 where x is 0 (unless y is nan)."""
    def xlogy_(self, other: Any, *, out: Any = ...) -> Any:
        """x·log(y), and 0 where x is 0 (unless y is nan)."""
    def zero_(self) -> Tensor:
        """Fill with zeros, in place."""
