"""Made by tools/stubs.py from the declarations."""

from typing import Any
from chainrule import accelerator as accelerator
from chainrule import amp as amp
from chainrule import array_api as array_api
from chainrule import autograd as autograd
from chainrule import backends as backends
from chainrule import compat as compat
from chainrule import compiler as compiler
from chainrule import cuda as cuda
from chainrule import distributions as distributions
from chainrule import explaining as explaining
from chainrule import fft as fft
from chainrule import func as func
from chainrule import implicit as implicit
from chainrule import jacobians as jacobians
from chainrule import jit as jit
from chainrule import linalg as linalg
from chainrule import masked as masked
from chainrule import nn as nn
from chainrule import optim as optim
from chainrule import primitive as primitive
from chainrule import random as random
from chainrule import scipy as scipy
from chainrule import serialization as serialization
from chainrule import signal as signal
from chainrule import sparse as sparse
from chainrule import special as special
from chainrule import stats as stats
from chainrule import testing as testing
from chainrule import tree as tree
from chainrule import utils as utils
from chainrule._src.api.array import Array as Array
from chainrule._src.api.grad_mode import enable_grad as enable_grad
from chainrule._src.api.grad_mode import inference_mode as inference_mode
from chainrule._src.api.grad_mode import no_grad as no_grad
from chainrule._src.api.grad_mode import set_grad_enabled as set_grad_enabled
from chainrule._src.arrays.device import DeviceLike
from chainrule._src.arrays.device import device as device
from chainrule._src.arrays.device import layout as _layout
from chainrule._src.arrays.device import layout as layout
from chainrule._src.arrays.device import memory_format as _memory_format
from chainrule._src.arrays.device import memory_format as memory_format
from chainrule._src.arrays.dtype import _Named as __Named
from chainrule._src.arrays.dtype import dtype as _dtype
from chainrule._src.arrays.dtype import dtype as dtype
from chainrule._src.arrays.dtypes import finfo as finfo
from chainrule._src.arrays.dtypes import iinfo as iinfo
from chainrule._src.arrays.size import Size as Size
from chainrule._src.arrays.types import AnyFunction
from chainrule._src.arrays.types import DTypeLike
from chainrule._src.arrays.types import Dims
from chainrule._src.arrays.types import Params
from chainrule._src.arrays.types import ShapeLike
from chainrule._src.arrays.types import TensorLike
from chainrule._src.jacobians.prepared import PreparedJacobian
from chainrule._src.jacobians.strategy import Plan
from chainrule._src.ops.random import Generator as Generator
from chainrule._src.ops.random import Generator as _Generator
from chainrule._src.tape.tensor import Tensor as Tensor
from chainrule.amp import autocast as autocast
from collections.abc import Callable
from collections.abc import Sequence
from typing import SupportsIndex
import builtins
def BoolTensor(*args: object) -> Tensor:
    """Return a tensor of dtype bool from data, or zeros of given sizes (an old constructor)."""
def ByteTensor(*args: object) -> Tensor:
    """Return a tensor of dtype uint8 from data, or zeros of given sizes (an old constructor)."""
def CharTensor(*args: object) -> Tensor:
    """Return a tensor of dtype int8 from data, or zeros of given sizes (an old constructor)."""
def DoubleTensor(*args: object) -> Tensor:
    """Return a tensor of dtype float64 from data, or zeros of given sizes (an old constructor)."""
def FloatTensor(*args: object) -> Tensor:
    """Return a tensor of dtype float32 from data, or zeros of given sizes (an old constructor)."""
def HalfTensor(*args: object) -> Tensor:
    """Return a tensor of dtype float16 from data, or zeros of given sizes (an old constructor)."""
def IntTensor(*args: object) -> Tensor:
    """Return a tensor of dtype int32 from data, or zeros of given sizes (an old constructor)."""
def LongTensor(*args: object) -> Tensor:
    """Return a tensor of dtype int64 from data, or zeros of given sizes (an old constructor)."""
def ShortTensor(*args: object) -> Tensor:
    """Return a tensor of dtype int16 from data, or zeros of given sizes (an old constructor)."""
def Variable(data: object, requires_grad: builtins.bool = ..., volatile: object = ...) -> Tensor:
    """Return a leaf that shares a tensor's memory (PyTorch's old constructor of tensors that may require grad)."""
def abs(input: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the absolute value of every element. The gradient at 0 is 0."""
def absolute(input: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the absolute value of every element. The gradient at 0 is 0."""
def acos(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse cosine, in radians."""
def acosh(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse hyperbolic cosine."""
def adaptive_avg_pool1d(input: Tensor, output_size: object) -> Tensor:
    """The means of ``output_size`` windows that cover the last axis (each axis) evenly; None keeps a size."""
def adaptive_max_pool1d(input: Tensor, output_size: ShapeLike) -> tuple[Tensor, Tensor]:
    """As :func:`nn.functional.adaptive_max_pool1d` with ``return_indices=True``."""
def add(input: TensorLike, other: TensorLike, *old: Any, alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return input + alpha·other."""
def addbmm(input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return beta·input + alpha·Σ_b (batch1[b] @ batch2[b])."""
def addcdiv(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return input + value·tensor1/tensor2."""
def addcmul(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return input + value·tensor1·tensor2."""
def addmm(input: TensorLike, mat1: TensorLike, mat2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return beta·input + alpha·(mat1 @ mat2)."""
def addmv(input: TensorLike, mat: TensorLike, vec: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return beta·input + alpha·(mat @ vec)."""
def addr(input: TensorLike, vec1: TensorLike, vec2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return beta·input + alpha·outer(vec1, vec2)."""
def adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transpose of matrices."""
def alias_copy(x: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`alias`'s result, which shares no memory with the tensor."""
def all(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return whether all elements are nonzero."""
def allclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> builtins.bool:
    """Return whether all elements are close (see :func:`isclose`)."""
def alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Elements set to selu's lower limit with probability p; then scaled so that mean 0 and variance 1 stay."""
def amax(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the maximum over ``dim``; tied elements share the gradient evenly."""
def amin(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the minimum over ``dim``; tied elements share the gradient evenly."""
def aminmax(input: TensorLike, *, dim: SupportsIndex | None = ..., keepdim: builtins.bool = ..., out: Tensor | None = ...) -> Any:
    """Return the minimum and the maximum."""
def angle(input: Any, *, out: Any = ...) -> Any:
    """Return the argument of every complex number (0 or π for reals)."""
def any(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return whether any element is nonzero."""
def arange(start: Any = ..., end: Any = ..., step: Any = ..., *, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return the numbers from ``start`` (0) up to but excluding ``end``. Integers give int64, floats the default dtype."""
def arccos(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse cosine, in radians."""
def arccosh(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse hyperbolic cosine."""
def arcsin(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse sine, in radians."""
def arcsinh(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse hyperbolic sine."""
def arctan(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse tangent, in radians."""
def arctan2(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the angle of the point (y, x), in radians. The gradient at the origin is 0."""
def arctanh(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse hyperbolic tangent."""
def are_deterministic_algorithms_enabled() -> builtins.bool:
    """Return True: the same program always computes the same numbers."""
def argmax(input: TensorLike, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor:
    """Return the index of the maximum of all elements (flattened) or along ``dim``. It has no gradient."""
def argmin(input: TensorLike, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor:
    """Return the index of the minimum of all elements (flattened) or along ``dim``. It has no gradient."""
def argsort(input: TensorLike, dim: builtins.int = ..., descending: builtins.bool = ..., *, stable: builtins.bool = ...) -> Tensor:
    """Return the indices that sort along ``dim``; equal elements keep their order, and NaN sorts as the largest."""
def argwhere(input: Tensor, *, as_tuple: builtins.bool = ..., out: Tensor | None = ...) -> Any:
    """Return the indices of the nonzero elements, as a matrix with one row each, or as one vector per axis."""
def as_strided(input: TensorLike, size: Any, stride: Any, storage_offset: builtins.int | None = ...) -> Tensor:
    """Return a view with a given size and strides (in elements); elements may occur several times."""
def as_strided_copy(input: TensorLike, size: Any, stride: Any, storage_offset: builtins.int | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`as_strided`'s result, which shares no memory with the tensor."""
def as_strided_scatter(input: Tensor, src: Tensor, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
    """Return a copy in which the elements of :func:`as_strided`'s view are replaced by ``src``."""
def as_tensor(data: Any, dtype: DTypeLike = ..., device: DeviceLike = ...) -> Tensor:
    """Return a tensor that shares the data's memory where possible; a tensor is returned unchanged (with its graph)."""
def asarray(obj: Any, *, dtype: DTypeLike = ..., device: DeviceLike = ..., copy: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return a tensor from data, as :func:`as_tensor` with NumPy's arguments."""
def asin(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse sine, in radians."""
def asinh(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse hyperbolic sine."""
def atan(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse tangent, in radians."""
def atan2(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the angle of the point (y, x), in radians. The gradient at the origin is 0."""
def atanh(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse hyperbolic tangent."""
def atleast_1d(*tensors: TensorLike) -> Tensor:
    """Convert numbers to vectors of length 1; return other tensors unchanged."""
def atleast_2d(*tensors: TensorLike) -> Any:
    """Convert numbers and vectors to matrices of one row; return other tensors unchanged."""
def atleast_3d(*tensors: TensorLike) -> Tensor:
    """Add axes of length 1 so that each tensor has at least three axes."""
def avg_pool1d(input: Tensor, kernel_size: object, stride: object = ..., padding: object = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ...) -> Tensor:
    """The mean of every window along the last axis."""
def baddbmm(input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return beta·input + alpha·(batch1 @ batch2)."""
def bartlett_window(window_length: builtins.int, periodic: builtins.bool = ..., *shape: builtins.float, **options: object) -> Tensor:
    """As :func:`signal.windows.bartlett`; periodic unless the caller says otherwise."""
def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: builtins.bool, momentum: builtins.float, eps: builtins.float, cudnn_enabled: builtins.bool = ...) -> Tensor:
    """As :func:`nn.functional.batch_norm`, whose running statistics come before the weight."""
def bernoulli(input: Tensor, p: builtins.float | None = ..., *, generator: Generator | None = ..., out: Tensor | None = ...) -> Tensor:
    """Return 1 with the probability given by each element (or with probability ``p`` for all), else 0."""
bfloat16: __Named
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = ...) -> Tensor:
    """Σᵢⱼ input1ᵢ·weightₒᵢⱼ·input2ⱼ + bias, for inputs (..., in1) and (..., in2) and a weight (out, in1, in2)."""
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = ..., pos_weight: Tensor | None = ..., reduction: object = ...) -> Tensor:
    """As :func:`nn.functional.binary_cross_entropy_with_logits`."""
def bincount(input: Tensor, weights: object = ..., minlength: builtins.int = ...) -> Tensor:
    """Return how often every non-negative integer occurs; with weights, the sum of their weights."""
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = ...) -> Tensor:
    """Return how many of ``count`` trials succeed, each with probability ``prob``."""
def bitwise_and(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the bits set in both elements."""
def bitwise_left_shift(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Shift the bits of x left by y."""
def bitwise_not(input: Any, *, out: Any = ...) -> Any:
    """Flip all bits (logical not for booleans)."""
def bitwise_or(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the bits set in at least one of two elements."""
def bitwise_right_shift(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Shift the bits of x right by y."""
def bitwise_xor(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the bits set in exactly one of two elements."""
def blackman_window(window_length: builtins.int, periodic: builtins.bool = ..., *shape: builtins.float, **options: object) -> Tensor:
    """As :func:`signal.windows.blackman`; periodic unless the caller says otherwise."""
def block_diag(*tensors: Tensor) -> Tensor:
    """Return a block diagonal matrix of the given matrices."""
def bmm(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the matrix products of two stacks of matrices."""
bool: _dtype
def broadcast_shapes(*shapes: Any) -> Any:
    """Return the common shape that the given shapes broadcast to."""
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Broadcast several tensors to their common shape."""
def broadcast_to(input: TensorLike, size: Any) -> Tensor:
    """Broadcast to a shape, without copying."""
def bucketize(input: TensorLike, boundaries: Tensor, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., out: Tensor | None = ...) -> Tensor:
    """Return the index of the bucket (between sorted boundaries) of every value."""
def can_cast(from_: object, to: object) -> builtins.bool:
    """Return whether PyTorch would cast one dtype to another inside an operation."""
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of one element of each vector, as rows."""
def cat(tensors: object, dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor:
    """Concatenate tensors along ``dim``."""
def cbrt(input: Any, *, out: Any = ...) -> Any:
    """Return the cube root."""
def cdist(x1: TensorLike, x2: TensorLike, p: builtins.float = ..., compute_mode: object = ...) -> Tensor:
    """Return the p-norm distance of every row of one matrix to every row of another; leading axes broadcast."""
cdouble: _dtype
def ceil(input: Any, *, out: Any = ...) -> Any:
    """Return the smallest integer that is not below each element."""
def celu(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """x where it is positive, else alpha·(exp(x/alpha) − 1)."""
def celu_(input: Tensor, *args: object, **kwargs: object) -> Tensor:
    """In-place form of :func:`celu`."""
cfloat: _dtype
def chain_matmul(*matrices: Tensor, out: Tensor | None = ...) -> Tensor:
    """Return the product of several matrices, in the cheapest order."""
def channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """The channels (axis 1) of the groups in turns: the first of each group, then the second of each."""
def cholesky(input: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the Cholesky factor, as :func:`linalg.cholesky` does."""
def cholesky_inverse(L: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the inverse of the matrix whose Cholesky factor is L."""
def cholesky_solve(B: Tensor, L: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the solution X of A @ X = B, where L is the Cholesky factor of A."""
def chunk(input: TensorLike, chunks: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """Split along ``dim`` into at most ``chunks`` views of equal size; the last may be smaller."""
def clamp(input: TensorLike, min: Any = ..., max: Any = ..., *, out: Tensor | None = ...) -> Tensor:
    """Limit the elements to [min, max]; bounds are numbers or tensors. At a bound the gradient is passed on."""
def clamp_max(input: TensorLike, max: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the smaller of each element and ``max``."""
def clamp_min(input: TensorLike, min: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the larger of each element and ``min``."""
def clip(input: TensorLike, min: Any = ..., max: Any = ..., *, out: Tensor | None = ...) -> Tensor:
    """Limit the elements to [min, max]; bounds are numbers or tensors. At a bound the gradient is passed on."""
def clone(input: TensorLike, *, memory_format: object = ...) -> Tensor:
    """Return a copy with the tensor's memory order, or (``contiguous_format``) in C order. Gradients flow through it."""
def column_stack(tensors: object, *, out: Tensor | None = ...) -> Tensor:
    """Stack vectors as columns of a matrix; concatenate matrices along the second axis."""
def combinations(input: Tensor, r: builtins.int = ..., with_replacement: builtins.bool = ...) -> Tensor:
    """Return all combinations of r elements of a vector, as rows."""
def compile(function: Any = ..., *, pure: builtins.bool = ..., max_slowdown: builtins.float | None = ..., max_bytes: builtins.int = ..., **options: object) -> Any:
    """A function that computes what ``function`` does, faster: recorded when first called, then replayed."""
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the complex tensor real + i·imag."""
complex128: _dtype
complex64: _dtype
def compute(*trees: object) -> tuple[Any, ...]:
    """Compute all lazy arrays and tensors in containers, in one pass, and return the containers with their values in memory."""
def concat(tensors: object, dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor:
    """Concatenate tensors along ``dim``."""
def concatenate(tensors: object, dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor:
    """Concatenate tensors along ``dim``."""
def conj(input: TensorLike) -> Tensor:
    """Return the complex conjugate (the tensor itself, for real dtypes)."""
def conj_physical(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the complex conjugate (the tensor itself, for real dtypes)."""
def constant_pad_nd(input: TensorLike, pad: object, value: TensorLike = ...) -> Tensor:
    """Pad with a constant, as ``pad`` does."""
contiguous_format: _memory_format
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: object = ..., padding: object = ..., dilation: object = ..., groups: builtins.int = ...) -> Tensor:
    """A convolution along one axis (strictly, a correlation: the weight is not flipped)."""
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: object = ..., padding: object = ..., dilation: object = ..., groups: builtins.int = ...) -> Tensor:
    """As :func:`conv1d`, over the last two axes."""
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: object = ..., padding: object = ..., dilation: object = ..., groups: builtins.int = ...) -> Tensor:
    """As :func:`conv1d`, over the last three axes."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: object = ..., padding: object = ..., output_padding: object = ..., groups: builtins.int = ..., dilation: object = ...) -> Tensor:
    """The transpose of :func:`conv1d` in its input: every element spreads the weight over a window."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: object = ..., padding: object = ..., output_padding: object = ..., groups: builtins.int = ..., dilation: object = ...) -> Tensor:
    """As :func:`conv_transpose1d`, over the last two axes."""
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = ..., stride: object = ..., padding: object = ..., output_padding: object = ..., groups: builtins.int = ..., dilation: object = ...) -> Tensor:
    """As :func:`conv_transpose1d`, over the last three axes."""
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: object, padding: object, dilation: object, transposed: builtins.bool, output_padding: object, groups: builtins.int) -> Tensor:
    """As ``conv1d`` to ``conv3d`` of :mod:`nn.functional`, or ``conv_transpose1d`` to ``3d``, by the axes of ``weight``."""
def copysign(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the magnitude of x with the sign of y."""
def corrcoef(input: TensorLike) -> Tensor:
    """Return the correlation coefficients of variables: their covariances, divided by both standard deviations."""
def cos(input: Any, *, out: Any = ...) -> Any:
    """Return the cosine of angles in radians."""
def cosh(input: Any, *, out: Any = ...) -> Any:
    """Return the hyperbolic cosine."""
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: builtins.float = ..., reduction: object = ...) -> Tensor:
    """As :func:`nn.functional.cosine_embedding_loss`."""
def cosine_similarity(x1: Tensor, x2: Tensor, dim: builtins.int = ..., eps: builtins.float = ...) -> Tensor:
    """The cosine of the angle between vectors along ``dim``; norms count as at least ``eps``."""
def count_nonzero(input: TensorLike, dim: Dims = ...) -> Tensor:
    """Return how many elements are nonzero."""
def cov(input: Tensor, *, correction: builtins.int = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ...) -> Tensor:
    """Return the covariances of variables."""
def cross(input: TensorLike, other: TensorLike, dim: builtins.int | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the vector product along ``dim`` (the first axis of length 3, by default)."""
def cummax(input: TensorLike, dim: builtins.int, *, out: Tensor | None = ...) -> Any:
    """Return the running maximum along ``dim``, and its index (the last of equal ones)."""
def cummin(input: TensorLike, dim: builtins.int, *, out: Tensor | None = ...) -> Any:
    """Return the running minimum along ``dim``, and its index (the last of equal ones)."""
def cumprod(input: TensorLike, dim: builtins.int, *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return the running product along ``dim``. The gradient is correct for elements that are zero, too."""
def cumsum(input: TensorLike, dim: builtins.int, *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return the running sum along ``dim``."""
def cumulative_trapezoid(y: Any, x: TensorLike | None = ..., *, dx: TensorLike | None = ..., dim: builtins.int = ...) -> Tensor:
    """Return the running integral along ``dim`` by the trapezoidal rule, with n − 1 entries."""
default_generator: _Generator
def deg2rad(input: Any, *, out: Any = ...) -> Any:
    """Convert degrees to radians."""
def det(A: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the determinant of square matrices (..., n, n)."""
def detach(input: Tensor) -> Tensor:
    """Return a tensor with the same memory that is not recorded in the graph."""
def detach_copy(self: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`detach`'s result, which shares no memory with the tensor."""
def diag(input: TensorLike, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return a matrix with a vector on a diagonal, or a copy of a matrix's diagonal."""
def diag_embed(input: TensorLike, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """Put the last axis on a diagonal of two new axes, with zeros elsewhere."""
def diagflat(input: TensorLike, offset: builtins.int = ...) -> Tensor:
    """Return a matrix with the flattened elements on a diagonal."""
def diagonal(input: TensorLike, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """Return a diagonal of two axes as the last axis (a view)."""
def diagonal_copy(input: TensorLike, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`diagonal`'s result, which shares no memory with the tensor."""
def diagonal_scatter(input: Tensor, src: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """Return a copy with the diagonal of two axes (see ``diagonal``) replaced by ``src``."""
def diff(input: TensorLike, n: builtins.int = ..., dim: builtins.int = ..., prepend: TensorLike | None = ..., append: TensorLike | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the differences of neighbours along ``dim``, applied n times."""
def digamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return Γ'(x) / Γ(x), the derivative of log Γ."""
def dist(input: TensorLike, other: TensorLike, p: builtins.float = ...) -> Tensor:
    """Return the p-norm of input − other."""
def div(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = ..., out: Tensor | None = ...) -> Tensor:
    """Return input / other; ``rounding_mode`` 'floor' or 'trunc' rounds the quotient and keeps integer dtypes."""
def divide(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = ..., out: Tensor | None = ...) -> Tensor:
    """Return input / other; ``rounding_mode`` 'floor' or 'trunc' rounds the quotient and keeps integer dtypes."""
def dot(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the inner product of two vectors."""
double: _dtype
def dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Each element set to 0 with probability p, the others divided by 1 − p; the input itself if not ``training``."""
def dsplit(input: TensorLike, indices_or_sections: object) -> tuple[Tensor, ...]:
    """Split along the third axis."""
def dstack(tensors: object, *, out: Tensor | None = ...) -> Tensor:
    """Concatenate along the third axis."""
e: builtins.float
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Compute an Einstein summation. It is recorded as the primitives it consists of: permute, reshape and bmm."""
def embedding(weight: Tensor, indices: Tensor, padding_idx: builtins.int = ..., scale_grad_by_freq: builtins.bool = ..., sparse: builtins.bool = ...) -> Tensor:
    """As :func:`nn.functional.embedding` of ``indices`` and ``weight``; no row is the padding's with ``padding_idx=-1``."""
def empty(*size: ShapeLike, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: object = ...) -> Tensor:
    """Return uninitialized memory of a shape."""
def empty_like(input: Tensor, *, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: object = ...) -> Tensor:
    """Return uninitialized memory with another tensor's shape and dtype."""
def eq(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether two elements are equal."""
def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Return whether two tensors have the same shape and elements."""
def erf(input: Any, *, out: Any = ...) -> Any:
    """Return the error function 2/√π ∫₀ˣ exp(−t²) dt."""
def erfc(input: Any, *, out: Any = ...) -> Any:
    """Return the complementary error function 1 − erf(x), accurate where it is tiny."""
def erfinv(input: Any, *, out: Any = ...) -> Any:
    """Return the inverse of the error function; infinite at ±1, NaN beyond."""
def exp(input: Any, *, out: Any = ...) -> Any:
    """Return the exponential of every element."""
def exp2(input: Any, *, out: Any = ...) -> Any:
    """Return 2 to the power of every element."""
def expand_copy(input: TensorLike, *sizes: ShapeLike, size: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`expand`'s result, which shares no memory with the tensor."""
def explain(Y: object, grad: object = ..., wrt: object = ..., *, by: str | None = ...) -> Any:
    """Explain what ``Y.backward(grad)`` computes: every step's rule, shapes and numbers."""
def expm1(input: Any, *, out: Any = ...) -> Any:
    """Return exp(x) − 1, accurate near 0."""
def eye(n: builtins.int, m: builtins.int | None = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return the identity matrix (n rows, m columns)."""
def feature_alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """As :func:`alpha_dropout`, for whole channels (axis 1)."""
def fill(input: Tensor, value: TensorLike) -> Tensor:
    """Return a copy filled with a number or a 0-d tensor; the gradient flows to the tensor."""
def fix(input: Any, *, out: Any = ...) -> Any:
    """Return the integer part of each element."""
def flatten(input: TensorLike, start_dim: builtins.int = ..., end_dim: builtins.int = ...) -> Tensor:
    """Merge the axes from ``start_dim`` to ``end_dim`` into one."""
def flip(input: TensorLike, *axes: Any, dims: object = ...) -> Tensor:
    """Reverse the order of the elements along axes (a copy)."""
def fliplr(input: TensorLike) -> Tensor:
    """Reverse the order of the columns."""
def flipud(input: TensorLike) -> Tensor:
    """Reverse the order of the rows."""
float: _dtype
float16: _dtype
float32: _dtype
float64: _dtype
def float_power(input: TensorLike, exponent: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return ``input`` to the power ``exponent``, in float64 (or complex128)."""
def floor(input: Any, *, out: Any = ...) -> Any:
    """Return the largest integer that is not above each element."""
def floor_divide(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the floor of the quotient."""
def fmax(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the larger of two elements; where one is NaN, return the other."""
def fmin(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the smaller of two elements; where one is NaN, return the other."""
def fmod(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the remainder of truncated division; it has the sign of the dividend."""
def fori_loop(lower: TensorLike, upper: object, body_fun: Callable[[Any, Any], Any], init_val: TensorLike, *, unroll: builtins.int | builtins.bool | None = ...) -> Any:
    """``val = body_fun(i, val)`` for i from ``lower`` to ``upper - 1``: a :func:`scan` that gives the last value."""
def frac(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the fractional part: input − trunc(input)."""
def frexp(input: TensorLike) -> Any:
    """Return mantissas in ±[0.5, 1) and exponents (int32): input = mantissa · 2**exponent. Gradients flow to mantissas."""
def from_dlpack(ext_tensor: Any, *, device: DeviceLike = ..., copy: object = ...) -> Tensor:
    """Return a tensor that shares the memory of another library's array."""
def from_numpy(array: Any) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array."""
def frombuffer(buffer: object, *, dtype: DTypeLike, count: builtins.int = ..., offset: builtins.int = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return a vector that shares the memory of an object with a buffer; read-only buffers such as bytes are copied."""
def full(size: Any, fill_value: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return a tensor filled with one value. The value's kind determines the dtype: any float gives the default dtype."""
def full_like(input: Tensor, fill_value: object, *, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return a tensor filled with one value, with another tensor's shape and dtype."""
def gather(input: Tensor, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor:
    """Return ``out[i][j] = input[index[i][j]][j]`` for dim 0, and so on for other dims."""
def gcd(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the greatest common divisor."""
def ge(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether x is at least y."""
def ger(input: TensorLike, vec2: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the outer product of two vectors, of shape (n, m)."""
def get_default_device() -> device:
    """Return the device of new tensors: the CPU by default."""
def get_default_dtype() -> dtype:
    """Return the dtype that Python floats become; float32 unless it was changed."""
def get_device(input: Tensor) -> builtins.int:
    """Return the number of the tensor's GPU; −1 on the CPU."""
def get_float32_matmul_precision() -> str:
    """Return the precision of float32 matrix products: "highest"."""
def get_num_threads() -> builtins.int:
    """Return how many threads share a large step of a compiled function; by default, as many as this process may use."""
def get_printoptions() -> dict[str, Any]:
    """Return the current options, as keyword arguments for ``set_printoptions``."""
def get_rng_state() -> Params:
    """Return the state of the default generator."""
def grad(func: AnyFunction, argnums: builtins.int | tuple[builtins.int, ...] = ..., has_aux: builtins.bool = ...) -> AnyFunction:
    """The function that computes the gradient of ``func``, which must return a scalar."""
def grad_and_value(func: AnyFunction, argnums: builtins.int | tuple[builtins.int, ...] = ..., has_aux: builtins.bool = ...) -> AnyFunction:
    """As :func:`grad`, returning ``(gradient, value)`` (``(gradient, (value, aux))`` with ``has_aux``)."""
def gradient(input: TensorLike, *, spacing: Any = ..., dim: Any = ..., edge_order: builtins.int = ...) -> tuple[Tensor, ...]:
    """Return the derivative of a sampled function along each of ``dim`` (all axes by default), by second-order differences."""
def greater(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether x is greater than y."""
def greater_equal(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether x is at least y."""
def group_norm(input: Tensor, num_groups: builtins.int, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ...) -> Tensor:
    """Groups of channels minus their mean, over their standard deviation; then times weight plus bias per channel."""
def gt(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether x is greater than y."""
half: _dtype
def hamming_window(window_length: builtins.int, periodic: builtins.bool = ..., *shape: builtins.float, **options: object) -> Tensor:
    """As :func:`signal.windows.hamming`; periodic unless the caller says otherwise."""
def hann_window(window_length: builtins.int, periodic: builtins.bool = ..., *shape: builtins.float, **options: object) -> Tensor:
    """As :func:`signal.windows.hann`; periodic unless the caller says otherwise."""
def hardshrink(input: Tensor, lambd: builtins.float = ...) -> Tensor:
    """x where |x| is over lambd, else 0."""
def heaviside(input: TensorLike, values: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return 0 where input is negative, ``values`` where it is 0, else 1."""
def hessian(func: AnyFunction, x: Any = ..., *more: Any, argnums: builtins.int | tuple[builtins.int, ...] | None = ..., layout: str = ..., strategy: str | None = ..., create_graph: builtins.bool | None = ..., hstack: builtins.bool = ..., sparsity: object = ..., check: builtins.bool = ..., memory: builtins.int = ...) -> Any:
    """The Hessian of a scalar function at a point; or without a point the function that computes it."""
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: builtins.float = ..., reduction: object = ...) -> Tensor:
    """As :func:`nn.functional.hinge_embedding_loss`."""
def histc(input: Tensor, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return how many elements are in each of ``bins`` equal intervals from ``min`` to ``max`` (both 0: the data's range)."""
def histogram(input: Tensor, bins: Any, *, range: Any = ..., weight: Tensor | None = ..., density: builtins.bool = ...) -> Any:
    """Return how many elements (or how much ``weight``) are in each bin, and the edges of the bins."""
def histogramdd(input: Tensor, bins: Any, *, range: Any = ..., weight: Tensor | None = ..., density: builtins.bool = ...) -> Any:
    """Return how many points, with coordinates along the last axis, are in each cell of a grid, and the grid's edges."""
def hsplit(input: TensorLike, indices_or_sections: object) -> tuple[Tensor, ...]:
    """Split between columns (a vector between elements)."""
def hstack(tensors: object, *, out: Tensor | None = ...) -> Tensor:
    """Stack horizontally: concatenate along the second axis (vectors along the first)."""
def hvp(func: AnyFunction, primals: Any, tangents: Any) -> Any:
    """The product of the Hessian of a scalar function and a vector, at the cost of a few gradients."""
def hypot(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return √(x² + y²), computed without overflow."""
def i0(input: Any, *, out: Any = ...) -> Any:
    """Return the modified Bessel function I₀(x)."""
def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.gammainc``, by SciPy."""
def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Compute ``scipy.special.gammaincc``, by SciPy."""
def imag(input: Tensor) -> Tensor:
    """Return the imaginary part."""
def index_add(input: Tensor, dim: builtins.int, index: Any, source: Tensor, *, alpha: TensorLike = ...) -> Tensor:
    """Return a copy with entries of ``source`` added at indices along ``dim``."""
def index_copy(input: Tensor, dim: builtins.int, index: Any, source: Tensor) -> Tensor:
    """Return a copy with entries of ``source`` written at indices along ``dim``."""
def index_fill(input: Tensor, dim: builtins.int, index: Any, value: TensorLike) -> Tensor:
    """Return a copy with the entries at indices along ``dim`` set to a value (a number or 0-d tensor)."""
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
    """Return a copy with values written (or added) at ``input[indices]``."""
def index_reduce(input: Tensor, dim: builtins.int, index: Any, source: Tensor, reduce: str, *, include_self: builtins.bool = ...) -> Tensor:
    """Combine whole entries along ``dim`` as :func:`scatter_reduce` does: with "prod", "mean", "amax" or "amin"."""
def index_select(input: TensorLike, dim: builtins.int, index: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the entries at indices along ``dim`` (a copy; indices may repeat)."""
inf: builtins.float
def initial_seed() -> builtins.int:
    """Return the seed of the default generator."""
def inner(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the sums of products over the last axes of both tensors."""
def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, use_input_stats: builtins.bool, momentum: builtins.float, eps: builtins.float, cudnn_enabled: builtins.bool = ...) -> Tensor:
    """As :func:`nn.functional.instance_norm`, whose running statistics come before the weight."""
int: _dtype
int16: _dtype
int32: _dtype
int64: _dtype
int8: _dtype
def inverse(A: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the inverse of square matrices."""
def is_anomaly_check_nan_enabled() -> builtins.bool:
    """Whether anomaly mode, in this thread, looks for NaN (and not only remembers lines)."""
def is_anomaly_enabled() -> builtins.bool:
    """Whether this thread is in anomaly mode."""
def is_autocast_enabled(device_type: str | None = ...) -> builtins.bool:
    """Whether operations cast their operands: no."""
def is_complex(input: TensorLike) -> builtins.bool:
    """Return whether a tensor (or dtype) is complex."""
def is_conj(input: Tensor) -> builtins.bool:
    """Return whether conjugation is pending: always False, because ``conj`` (like ``neg``) computes at once."""
def is_floating_point(input: TensorLike) -> builtins.bool:
    """Return whether a tensor (or dtype) is real floating-point."""
def is_grad_enabled() -> builtins.bool:
    """Return whether gradient mode is on in this thread."""
def is_inference(input: Tensor) -> builtins.bool:
    """Return whether the tensor was made in ``inference_mode``."""
def is_inference_mode_enabled() -> builtins.bool:
    """Return whether this thread is inside :class:`inference_mode`."""
def is_neg(input: Tensor) -> builtins.bool:
    """Return whether conjugation is pending: always False, because ``conj`` (like ``neg``) computes at once."""
def is_nonzero(input: Tensor) -> builtins.bool:
    """Return whether the only element is nonzero."""
def is_same_size(input: Tensor, other: Tensor) -> builtins.bool:
    """Return whether two tensors have the same shape."""
def is_signed(input: Tensor) -> builtins.bool:
    """Return whether the dtype has negative numbers."""
def is_tensor(obj: object) -> builtins.bool:
    """Return whether the object is a tensor."""
def isclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> Tensor:
    """Return whether |input − other| ≤ atol + rtol·|other|, element by element."""
def isfinite(input: Any, *, out: Any = ...) -> Any:
    """Return whether an element is a finite number."""
def isin(elements: Any, test_elements: Any, *, assume_unique: builtins.bool = ..., invert: builtins.bool = ...) -> Tensor:
    """Return whether each element is (with ``invert``, is not) one of the test elements. One argument may be a number."""
def isinf(input: Any, *, out: Any = ...) -> Any:
    """Return whether an element is infinite."""
def isnan(input: Any, *, out: Any = ...) -> Any:
    """Return whether an element is NaN."""
def isneginf(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return whether an element is −∞."""
def isposinf(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return whether an element is +∞."""
def isreal(input: TensorLike) -> Tensor:
    """Return whether an element has no imaginary part."""
def istft(input: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., length: builtins.int | None = ..., return_complex: builtins.bool = ...) -> Tensor:
    """The signal that has a short-time Fourier transform: the least squares estimate from all pieces."""
def jacfwd(func: AnyFunction, argnums: builtins.int | tuple[builtins.int, ...] = ..., has_aux: builtins.bool = ..., *, randomness: str = ...) -> AnyFunction:
    """The function that computes the Jacobian of ``func`` by forward mode: best where inputs are few."""
def jacobian(y: object, x: object = ..., *more: Any, layout: str = ..., strategy: str | None = ..., create_graph: builtins.bool | None = ..., hstack: builtins.bool = ..., mode: str = ..., chunk_size: builtins.int | None = ..., sparsity: object = ..., check: builtins.bool = ..., memory: builtins.int = ...) -> Any:
    """The generalized Jacobian ∂y/∂x, of shape ``(*y.shape, *x.shape)``: of a function, or of tensors already computed."""
def jacobian_plan(function: AnyFunction, x: object, *, layout: str = ..., strategy: str | None = ..., memory: builtins.int = ...) -> Plan:
    """How ``jacobian(function, x, layout=..., strategy=...)`` goes about it, and what other ways would take. Print it."""
def jacrev(func: AnyFunction, argnums: builtins.int | tuple[builtins.int, ...] = ..., *, has_aux: builtins.bool = ..., chunk_size: builtins.int | None = ..., _preallocate_and_copy: builtins.bool = ...) -> AnyFunction:
    """The function that computes the Jacobian of ``func`` by reverse mode: best where outputs are few."""
def jvp(func: AnyFunction, primals: object, tangents: object, *, strict: builtins.bool = ..., has_aux: builtins.bool = ...) -> Any:
    """``func(*primals)`` and its directional derivative along ``tangents``, in one forward pass."""
def kaiser_window(window_length: builtins.int, periodic: builtins.bool = ..., *shape: builtins.float, **options: object) -> Tensor:
    """As :func:`signal.windows.kaiser`; periodic unless the caller says otherwise."""
def kl_div(input: Tensor, target: Tensor, reduction: object = ..., *, log_target: builtins.bool = ...) -> Tensor:
    """As :func:`nn.functional.kl_div`, without ``"batchmean"``."""
def kron(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the Kronecker product."""
def kthvalue(input: TensorLike, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """Return the k-th smallest element along ``dim`` (counted from 1), and its index."""
def layer_norm(input: Tensor, normalized_shape: object, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ...) -> Tensor:
    """(x − mean) / √(variance + eps) over the last axes, of ``normalized_shape``; then times weight plus bias."""
def lcm(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the least common multiple."""
def ldexp(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return input · 2**other."""
def le(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether x is at most y."""
def lerp(input: TensorLike, end: TensorLike, weight: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return input + weight·(end − input)."""
def less(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether x is less than y."""
def less_equal(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether x is at most y."""
def lgamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return log |Γ(x)|; infinite at 0 and the negative integers."""
def linspace(start: TensorLike, end: TensorLike, steps: builtins.int, *, dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return ``steps`` evenly spaced numbers from ``start`` to ``end``, both included."""
def load(f: Any, map_location: DeviceLike = ..., *, weights_only: builtins.bool = ..., format: str | None = ...) -> Any:
    """What was saved in a file by ``save``, ``numpy.savez`` or any writer of safetensors. Never runs code."""
def log(input: Any, *, out: Any = ...) -> Any:
    """Return the natural logarithm."""
def log10(input: Any, *, out: Any = ...) -> Any:
    """Return the logarithm to base 10."""
def log1p(input: Any, *, out: Any = ...) -> Any:
    """Return log(1 + x), accurate near 0."""
def log2(input: Any, *, out: Any = ...) -> Any:
    """Return the logarithm to base 2."""
def log_softmax(input: TensorLike, dim: builtins.int | None = ..., dtype: DTypeLike = ...) -> Tensor:
    """Return the logarithm of the softmax along ``dim``, computed without overflow."""
def logaddexp(input: Any, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return log(exp(input) + exp(other)), computed without overflow."""
def logaddexp2(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return log2(2**x + 2**y), computed without overflow."""
def logcumsumexp(input: TensorLike, dim: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """Return the running log Σ exp along ``dim``, computed without overflow."""
def logdet(input: Tensor) -> Tensor:
    """Return the logarithm of the determinant; NaN where it is negative."""
def logical_and(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether both elements are nonzero."""
def logical_not(input: Any, *, out: Any = ...) -> Any:
    """Return whether an element is zero."""
def logical_or(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether at least one of two elements is nonzero."""
def logical_xor(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether exactly one of two elements is nonzero."""
def logit(input: TensorLike, eps: builtins.float | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return log(x / (1 − x)), the inverse of the sigmoid; with ``eps``, x is first clamped to [eps, 1 − eps]."""
def logspace(start: TensorLike, end: TensorLike, steps: builtins.int, base: builtins.float = ..., *, dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return ``steps`` numbers from base**start to base**end, evenly spaced in the exponent."""
def logsumexp(input: Any, dim: Any, keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return log Σ exp(x) over ``dim``, computed without overflow."""
long: _dtype
def lt(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether x is less than y."""
def lu(A: Tensor, pivot: builtins.bool = ..., get_infos: builtins.bool = ...) -> Any:
    """Return :func:`linalg.lu_factor`; with ``get_infos``, :func:`linalg.lu_factor_ex`."""
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Solve as :func:`linalg.lu_solve` does, with the right-hand side as the first argument."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: builtins.bool = ..., unpack_pivots: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """Unpack the result of :func:`lu_factor` to ``(P, L, U)``; parts that are not requested are empty."""
def manual_seed(seed: builtins.int) -> Generator:
    """Seed the default generator."""
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: builtins.float = ..., reduction: object = ...) -> Tensor:
    """As :func:`nn.functional.margin_ranking_loss`."""
def masked_fill(input: Tensor, mask: TensorLike, value: TensorLike) -> Tensor:
    """Return a copy with a value (a number or 0-d tensor) where the mask is True."""
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy with the masked elements replaced, in order, by elements of ``source``; tensor and mask broadcast."""
def masked_select(input: Tensor, mask: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the elements where the mask is True, as a vector."""
def matmul(input: Any, other: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the matrix product ``input @ other`` of vectors, matrices, or stacks of matrices (leading axes broadcast)."""
def matrix_exp(A: Tensor) -> Tensor:
    """Return the matrix exponential of square matrices."""
def matrix_power(A: Tensor, n: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """Return the n-th power of square matrices; for negative n, of the inverse."""
def max(input: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, other: Any = ..., out: Tensor | None = ...) -> Any:
    """Return the maximum of all elements; with ``dim`` (values, indices); with another tensor the elementwise maximum."""
def max_pool1d(input: Tensor, kernel_size: Any, stride: Any | None = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The largest element of every window along the last axis. The first of several gets the gradient."""
def max_pool2d(input: Tensor, kernel_size: Any, stride: Any | None = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """As :func:`max_pool1d`, over the last two axes."""
def max_pool3d(input: Tensor, kernel_size: Any, stride: Any | None = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """As :func:`max_pool1d`, over the last three axes."""
def maximum(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the larger of two elements; NaN where either is NaN."""
def mean(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., axis: Dims = ..., keepdims: builtins.bool | None = ..., out: Tensor | None = ...) -> Tensor:
    """Return the mean over ``dim``."""
def median(input: TensorLike, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """Return the (lower) median of all elements, or along ``dim`` with its index; NaN if an element is NaN."""
def meshgrid(*tensors: Tensor, indexing: str = ...) -> tuple[Tensor, ...]:
    """Return coordinate grids: the i-th result varies along axis i (with "xy", axes 0 and 1 are exchanged)."""
def min(input: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, other: Any = ..., out: Tensor | None = ...) -> Any:
    """Return the minimum of all elements; with ``dim`` (values, indices); with another tensor the elementwise minimum."""
def minimum(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the smaller of two elements; NaN where either is NaN."""
def mm(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the product of two matrices."""
def mode(input: Any, dim: builtins.int = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """Return the most frequent value along ``dim`` (the smallest of several), and its last index."""
def moveaxis(input: TensorLike, source: Any, destination: Any) -> Tensor:
    """Move axes to other positions; the others keep their order."""
def movedim(input: TensorLike, source: Any, destination: Any) -> Tensor:
    """Move axes to other positions; the others keep their order."""
def msort(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the sorted values along the first dimension."""
def mul(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the product x · y, element by element."""
def multinomial(input: Tensor, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Generator | None = ...) -> Tensor:
    """Return indices drawn with probabilities proportional to each row's weights."""
def multiply(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the product x · y, element by element."""
def mv(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the product of a matrix and a vector."""
def mvlgamma(input: Tensor, p: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension p: p(p − 1)/4·log π + Σ log Γ(x − j/2)."""
nan: builtins.float
def nan_to_num(input: TensorLike, nan: TensorLike = ..., posinf: TensorLike | None = ..., neginf: TensorLike | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """Replace NaN by ``nan``, and infinities by ``posinf`` and ``neginf`` (by default the largest finite numbers)."""
def nanmean(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return the mean over ``dim`` of the elements that are not NaN."""
def nanmedian(input: TensorLike, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """Return the (lower) median of the elements that are not NaN: of all, or along ``dim`` with its index."""
def nanquantile(input: TensorLike, q: object, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ..., out: Tensor | None = ...) -> Tensor:
    """Return the q-quantile along ``dim`` of the elements that are not NaN; NaN if there are none."""
def nansum(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ...) -> Tensor:
    """Return the sum over ``dim``, with NaN counted as 0."""
def narrow(input: TensorLike, dim: builtins.int, start: TensorLike, length: builtins.int) -> Tensor:
    """Return ``length`` entries along ``dim``, from ``start`` on, as a view."""
def narrow_copy(input: TensorLike, dim: builtins.int, start: TensorLike, length: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`narrow`'s result, which shares no memory with the tensor."""
def ne(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether two elements differ."""
def neg(input: Any, *, out: Any = ...) -> Any:
    """Return the negative of every element."""
def negative(input: Any, *, out: Any = ...) -> Any:
    """Return the negative of every element."""
newaxis: Any
def nextafter(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the next representable number after x in the direction of y."""
def nonzero(input: Tensor, *, as_tuple: builtins.bool = ..., out: Tensor | None = ...) -> Any:
    """Return the indices of the nonzero elements, as a matrix with one row each, or as one vector per axis."""
def nonzero_static(input: Tensor, *, size: builtins.int, fill_value: builtins.int = ..., out: Tensor | None = ...) -> Tensor:
    """Return the indices as :func:`nonzero` does, truncated or padded with ``fill_value`` to ``size`` rows."""
def norm(input: TensorLike, p: Any = ..., dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return the p-norm over ``dim`` (all axes by default). Its gradient is 0 where it is 0."""
def normal(mean: Any = ..., std: Any = ..., size: ShapeLike | None = ..., *, generator: Generator | None = ..., dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return normal numbers with given mean and standard deviation (numbers with a size, or tensors)."""
def not_equal(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return whether two elements differ."""
def numel(input: Tensor) -> builtins.int:
    """Return the number of elements."""
def ones(*size: ShapeLike, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: object = ...) -> Tensor:
    """Return ones of a shape."""
def ones_like(input: Tensor, *, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: object = ...) -> Tensor:
    """Return ones with another tensor's shape and dtype."""
def orgqr(A: Tensor, tau: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the first n columns of H₁H₂…H_k, where H_i = I − tau_i·v·vᴴ and v is column i of A, with 1 on the diagonal."""
def outer(input: TensorLike, vec2: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the outer product of two vectors, of shape (n, m)."""
def pairwise_distance(x1: Tensor, x2: Tensor, p: builtins.float = ..., eps: builtins.float = ..., keepdim: builtins.bool = ...) -> Tensor:
    """The p-norm of x1 − x2 + eps along the last axis."""
def pdist(input: Tensor, p: builtins.float = ...) -> Tensor:
    """The p-norms of the differences of all pairs of rows: (0, 1), (0, 2) …, (1, 2) …."""
def permute(input: TensorLike, *order: Any, dims: Dims = ...) -> Tensor:
    """Permute the axes."""
def permute_copy(input: TensorLike, *order: Any, dims: Dims = ..., out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`permute`'s result, which shares no memory with the tensor."""
pi: builtins.float
def pinverse(input: Tensor, rcond: builtins.float = ...) -> Tensor:
    """Return the pseudoinverse, as :func:`linalg.pinv` does with ``rtol=rcond``."""
def pixel_shuffle(input: Tensor, upscale_factor: builtins.int) -> Tensor:
    """Channels as pixels: (..., c·r², h, w) becomes (..., c, h·r, w·r)."""
def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int) -> Tensor:
    """The inverse of :func:`pixel_shuffle`: (..., c, h·r, w·r) becomes (..., c·r², h, w)."""
def poisson(input: Tensor, generator: Generator | None = ...) -> Tensor:
    """Return Poisson numbers with the rate given by each element."""
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: builtins.bool, full: builtins.bool, eps: builtins.float, reduction: object) -> Tensor:
    """As :func:`nn.functional.poisson_nll_loss`."""
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the complex tensor with an absolute value and an angle."""
def polygamma(n: builtins.int, input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Return the derivative of order n of :func:`digamma`."""
def positive(input: TensorLike) -> Tensor:
    """Return the tensor itself (``+x``)."""
def pow(input: TensorLike, exponent: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return ``input`` to the power ``exponent``."""
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where it is positive, else weight·x, with one weight for all or for each channel (axis 1)."""
def prepare_jacobian(function: AnyFunction, x: object, layout: str = ..., *, hstack: builtins.bool = ..., on_change: str = ..., memory: builtins.int = ...) -> PreparedJacobian:
    """Find where the Jacobian of a function has entries, so that it can be computed faster at further points."""
preserve_format: _memory_format
def printoptions(**options: Any) -> Any[None]:
    """Set print options within a ``with`` block."""
def prod(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return the product of all elements, or along ``dim``. The gradient is correct for elements that are zero, too."""
def promote_types(type1: object, type2: object) -> dtype:
    """Return the smallest dtype, in PyTorch's order, that both dtypes convert to."""
def put(input: Tensor, index: Any, source: Tensor, accumulate: builtins.bool = ...) -> Tensor:
    """Return a copy with elements of ``source`` written (or added) at indices into the flattened tensor."""
def qr(input: Tensor, some: builtins.bool = ...) -> Any:
    """Return the QR decomposition, as :func:`linalg.qr` does; ``some=False`` means the mode "complete"."""
def quantile(input: TensorLike, q: object, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ..., out: Tensor | None = ...) -> Tensor:
    """Return the q-quantile along ``dim`` (q between 0 and 1, a number or a 1-D tensor); NaN if an element is NaN."""
def rad2deg(input: Any, *, out: Any = ...) -> Any:
    """Convert radians to degrees."""
def rand(*size: ShapeLike, generator: Generator | None = ..., dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return uniform numbers in [0, 1); for complex dtypes, both parts are uniform."""
def rand_like(input: Tensor, *bounds: builtins.int, dtype: DTypeLike = ..., **options: object) -> Tensor:
    """Return uniform numbers with another tensor's shape and dtype."""
def randint(low: Any = ..., high: Any = ..., size: ShapeLike | None = ..., *, generator: Generator | None = ..., dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return random integers from ``low`` (0) up to but excluding ``high``."""
def randint_like(input: Tensor, *bounds: builtins.int, dtype: DTypeLike = ..., **options: object) -> Tensor:
    """Return random integers from ``low`` (0) up to but excluding ``high``, with another tensor's shape and dtype."""
def randn(*size: ShapeLike, generator: Generator | None = ..., dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return standard normal numbers (complex ones have a total variance of 1)."""
def randn_like(input: Tensor, *bounds: builtins.int, dtype: DTypeLike = ..., **options: object) -> Tensor:
    """Return standard normal numbers with another tensor's shape and dtype."""
def randperm(n: builtins.int, *, generator: Generator | None = ..., dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return the integers below n in random order."""
def ravel(input: TensorLike) -> Tensor:
    """Return all elements along one axis, contiguous: a view if the tensor is contiguous, else a copy."""
def real(input: TensorLike) -> Tensor:
    """Return the real part (the tensor itself, for real dtypes)."""
def reciprocal(input: Any, *, out: Any = ...) -> Any:
    """Return one over every element."""
def relu(input: Any, *, out: Any = ...) -> Any:
    """Return max(x, 0), where -0. stays -0. The derivative at 0 is 0."""
def remainder(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the remainder of floor division; it has the sign of the divisor."""
def renorm(input: TensorLike, p: builtins.float, dim: builtins.int, maxnorm: builtins.float, *, out: Tensor | None = ...) -> Tensor:
    """Return the entries along ``dim``, each scaled down to a p-norm of ``maxnorm`` if its own is larger."""
def repeat_interleave(input: TensorLike | None = ..., repeats: object = ..., dim: builtins.int | None = ..., *, output_size: object = ...) -> Tensor:
    """Repeat every element (or entry along ``dim``) in place."""
def reshape(input: Any, *sizes: ShapeLike, shape: Any = ...) -> Tensor:
    """Return the same elements in another shape: a view if the memory layout allows, else a copy. One size may be -1."""
def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself, because no operation is ever pending."""
def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor itself, because no operation is ever pending."""
def result_type(*operands: TensorLike) -> dtype:
    """Return the dtype PyTorch would compute an operation on these operands in."""
def rms_norm(input: Tensor, normalized_shape: object, weight: Tensor | None = ..., eps: builtins.float | None = ...) -> Tensor:
    """x / √(mean(x²) + eps) over the last axes; then times weight. ``eps`` is the dtype's by default."""
def roll(input: Any, shifts: object, dims: Dims = ...) -> Tensor:
    """Shift the elements cyclically along axes; without ``dims``, shift the flattened elements."""
def rot90(input: TensorLike, k: builtins.int = ..., dims: Any = ...) -> Tensor:
    """Rotate by k quarter turns in the plane of two axes (a copy)."""
def round(input: TensorLike, *, decimals: builtins.int = ..., out: Tensor | None = ...) -> Tensor:
    """Round to the nearest integer, ties to even, or to a number of decimals."""
def row_stack(tensors: object, *, out: Tensor | None = ...) -> Tensor:
    """Stack vertically: concatenate along the first axis (vectors become rows)."""
def rrelu(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """x where it is positive, else x times a random slope between the two bounds; their mean if not ``training``."""
def rrelu_(input: Tensor, *args: object, **kwargs: object) -> Tensor:
    """In-place form of :func:`rrelu`."""
def rsqrt(input: Any, *, out: Any = ...) -> Any:
    """Return one over the square root."""
def rsub(input: TensorLike, other: TensorLike, *, alpha: TensorLike = ...) -> Tensor:
    """Return other − alpha·input."""
def save(obj: object, f: Any, *, format: str | None = ...) -> None:
    """Save a dictionary of tensors, or anything made of tensors, arrays, numbers, text, dictionaries, lists and tuples."""
def scalar_tensor(s: Any, *, dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Return a 0-d tensor of the default dtype."""
def scan(f: Callable[[Any, Any], tuple[Any, Any]], init: object, xs: object = ..., length: builtins.int | None = ..., reverse: builtins.bool = ..., unroll: builtins.int | builtins.bool = ..., *, checkpoint: builtins.bool = ...) -> tuple[Any, Any]:
    """A loop over the first axis of arrays that carries values along: ``carry, y = f(carry, x)`` for each ``x`` of ``xs``."""
def scatter(input: Tensor, dim: builtins.int, index: Any, src: TensorLike | None = ..., *, value: TensorLike | None = ..., reduce: str | None = ...) -> Tensor:
    """Return a copy with the elements of ``src`` (or one ``value``) written at indices along ``dim``."""
def scatter_add(input: Tensor, dim: builtins.int, index: Any, src: Any) -> Tensor:
    """Return a copy with the elements of ``src`` added at indices along ``dim``; repeated indices accumulate."""
def scatter_reduce(input: Tensor, dim: builtins.int, index: Any, src: Any, reduce: str, *, include_self: builtins.bool = ...) -> Tensor:
    """Return a copy in which every element that is indexed along ``dim`` is combined with the values scattered to it."""
def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., side: str | None = ..., sorter: Tensor | None = ..., out: Tensor | None = ...) -> Tensor:
    """Return the indices along the last axis at which values must be inserted to keep it sorted."""
def seed(*args: object) -> builtins.int:
    """Seed the default generator from the system's entropy; return the seed."""
def select(input: TensorLike, dim: builtins.int, index: builtins.int) -> Tensor:
    """Return the entry at ``index`` along ``dim`` as a view without that axis."""
def select_copy(input: TensorLike, dim: builtins.int, index: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`select`'s result, which shares no memory with the tensor."""
def select_scatter(input: Tensor, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    """Return a copy with the entry at ``index`` along ``dim`` (see ``select``) replaced by ``src``."""
def selu(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """The scaled elu that keeps mean 0 and variance 1 (Klambauer and others, 2017)."""
def selu_(input: Tensor, *args: object, **kwargs: object) -> Tensor:
    """In-place form of :func:`selu`."""
def set_anomaly_enabled(mode: builtins.bool, check_nan: builtins.bool = ...) -> None:
    """Switch this thread's anomaly mode on or off."""
def set_default_device(device: DeviceLike) -> None:
    """Set this thread's device for new tensors, such as "cuda"; ``device=`` and ``with device(...)`` have precedence."""
def set_default_dtype(d: object) -> None:
    """Set the dtype that Python floats become, and that ``repr`` omits."""
def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype like PyTorch's older function: by ``FloatTensor``, ``DoubleTensor`` or a name of one."""
def set_float32_matmul_precision(precision: str) -> None:
    """Do nothing: float32 matrix products always have full float32 precision, which "high" and "medium" allow, too."""
def set_num_threads(count: builtins.int) -> None:
    """Set how many threads share a large step of a compiled function; the default is ``CHAINRULE_THREADS`` in the environment."""
def set_printoptions(precision: builtins.int | None = ..., threshold: builtins.float | None = ..., edgeitems: builtins.int | None = ..., linewidth: builtins.int | None = ..., profile: str | None = ..., sci_mode: builtins.bool | None = ...) -> None:
    """Set how tensors print; omitted options stay unchanged, except ``sci_mode``."""
def set_rng_state(state: Params) -> None:
    """Restore a state of the default generator."""
def sgn(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the sign; for complex numbers the direction z/|z| (0 at 0)."""
short: _dtype
def sigmoid(input: Any, *, out: Any = ...) -> Any:
    """Return the logistic function 1 / (1 + exp(−x)), computed without overflow."""
def sign(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return −1, 0 or 1; booleans are returned unchanged."""
def signbit(input: Any, *, out: Any = ...) -> Any:
    """Return whether the sign bit is set."""
def sin(input: Any, *, out: Any = ...) -> Any:
    """Return the sine of angles in radians."""
def sinc(input: Any, *, out: Any = ...) -> Any:
    """Return sin(πx) / (πx), and 1 at 0."""
def sinh(input: Any, *, out: Any = ...) -> Any:
    """Return the hyperbolic sine."""
def slice_copy(input: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`slice`'s result, which shares no memory with the tensor."""
def slice_scatter(input: Tensor, src: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ...) -> Tensor:
    """Return a copy with every ``step``-th entry from ``start`` to ``end`` along ``dim`` replaced by those of ``src``."""
def slogdet(A: Tensor, *, out: Tensor | None = ...) -> Any:
    """Return sign and logarithm of the absolute value of the determinant, as ``(sign, logabsdet)``."""
def softmax(input: TensorLike, dim: builtins.int | None = ..., dtype: DTypeLike = ...) -> Tensor:
    """Return exp(x) / Σ exp(x) along ``dim``: positive numbers that sum to 1."""
def sort(input: TensorLike, dim: builtins.int = ..., descending: builtins.bool = ..., *, stable: builtins.bool | None = ..., out: Tensor | None = ...) -> Any:
    """Return the sorted values along ``dim`` and their indices; equal elements keep their order."""
def split(tensor: TensorLike, split_size_or_sections: Any, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """Split along ``dim`` into views of one size (the last may be smaller), or of the listed sizes."""
def split_copy(tensor: TensorLike, split_size_or_sections: Any, dim: builtins.int = ..., *, out: Tensor | None = ...) -> tuple[Tensor, ...]:
    """Return a copy of :func:`split`'s result, which shares no memory with the tensor."""
def split_with_sizes(tensor: TensorLike, split_sizes: object, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """Split along ``dim`` into views of the listed sizes."""
def split_with_sizes_copy(tensor: TensorLike, split_sizes: object, dim: builtins.int = ..., *, out: Tensor | None = ...) -> tuple[Tensor, ...]:
    """Return a copy of :func:`split_with_sizes`'s result, which shares no memory with the tensor."""
def sqrt(input: Any, *, out: Any = ...) -> Any:
    """Return the square root. The derivative at 0 is infinite."""
def square(input: Any, *, out: Any = ...) -> Any:
    """Return the square of every element."""
def squeeze(input: TensorLike, dim: Any = ...) -> Tensor:
    """Remove axes of length 1: all of them, or those in ``dim``."""
def squeeze_copy(input: TensorLike, dim: Any = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`squeeze`'s result, which shares no memory with the tensor."""
def stack(tensors: object, dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor:
    """Stack tensors of one shape along a new axis."""
def std(input: TensorLike, dim: Dims = ..., unbiased: Any = ..., keepdim: builtins.bool = ..., *, correction: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Return the standard deviation over ``dim``, the square root of :func:`var`. Its gradient is 0 where it is 0."""
def std_mean(input: TensorLike, dim: Dims = ..., unbiased: Any = ..., keepdim: builtins.bool = ..., *, correction: Any = ..., out: Tensor | None = ...) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean."""
def stft(input: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., pad_mode: str = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., return_complex: builtins.bool | None = ..., align_to_window: builtins.bool | None = ...) -> Tensor:
    """The Fourier transforms of windowed pieces of ``n_fft`` points, every ``hop_length``."""
strided: _layout
def sub(input: TensorLike, other: TensorLike, *old: Any, alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return input − alpha·other."""
def subtract(input: TensorLike, other: TensorLike, *old: Any, alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """Return input − alpha·other."""
def sum(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., axis: Dims = ..., keepdims: builtins.bool | None = ..., out: Tensor | None = ...) -> Tensor:
    """Return the sum over ``dim`` (an int, a tuple, or None for all axes). Booleans and integers are summed as int64."""
def svd(input: Tensor, some: builtins.bool = ..., compute_uv: builtins.bool = ...) -> Any:
    """Return the singular value decomposition with V itself, not Vᴴ: input = U @ diag(S) @ Vᴴ. See :func:`linalg.svd`."""
def swapaxes(input: TensorLike, dim0: object, dim1: object = ...) -> Tensor:
    """Exchange two axes; a tuple of all axes permutes them, as in NumPy."""
def swapdims(input: TensorLike, dim0: object, dim1: object = ...) -> Tensor:
    """Exchange two axes; a tuple of all axes permutes them, as in NumPy."""
def t(input: TensorLike) -> Tensor:
    """Transpose a matrix (a vector or number is returned unchanged)."""
def t_copy(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`t`'s result, which shares no memory with the tensor."""
def take(input: Tensor, index: Any, *, out: Tensor | None = ...) -> Tensor:
    """Return the elements at indices into the flattened tensor (negative ones count from the end)."""
def take_along_dim(input: Tensor, indices: Tensor, dim: builtins.int | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the elements at indices along ``dim``; the other axes broadcast (``np.take_along_axis``)."""
def tan(input: Any, *, out: Any = ...) -> Any:
    """Return the tangent of angles in radians."""
def tanh(input: Any, *, out: Any = ...) -> Any:
    """Return the hyperbolic tangent."""
def tensor(data: Any, *, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ..., pin_memory: builtins.bool = ...) -> Tensor:
    """Return a tensor with a copy of the data."""
def tensor_split(input: Tensor, indices_or_sections: Any, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """Split as ``np.array_split`` does: into a number of nearly equal parts, or at indices."""
def tensordot(a: Tensor, b: Tensor, dims: Any = ...) -> Tensor:
    """Sum products over pairs of axes: the last ``dims`` axes of a and the first of b, or two lists of axes."""
def threshold(input: Tensor, threshold: builtins.float, value: builtins.float, inplace: builtins.bool = ...) -> Tensor:
    """x where it is over the threshold, else ``value``."""
def threshold_(input: Tensor, *args: object, **kwargs: object) -> Tensor:
    """In-place form of :func:`threshold`."""
def tile(input: Tensor, *times: Any, dims: Dims = ...) -> Tensor:
    """Repeat the tensor as :func:`repeat` does, with missing repeats counted as 1."""
def topk(input: TensorLike, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """Return the k largest (or smallest) elements along ``dim``, and their indices."""
def trace(input: TensorLike) -> Tensor:
    """Return the sum of the diagonal of a matrix."""
def transpose(input: TensorLike, dim0: object, dim1: object = ...) -> Tensor:
    """Exchange two axes; a tuple of all axes permutes them, as in NumPy."""
def transpose_copy(input: TensorLike, dim0: object, dim1: object = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`transpose`'s result, which shares no memory with the tensor."""
def trapezoid(y: Any, x: TensorLike | None = ..., *, dx: TensorLike | None = ..., dim: builtins.int = ...) -> Tensor:
    """Return the integral along ``dim`` by the trapezoidal rule."""
def trapz(y: Any, x: TensorLike | None = ..., *, dx: TensorLike | None = ..., dim: builtins.int = ...) -> Tensor:
    """Return the integral along ``dim`` by the trapezoidal rule."""
def triangular_solve(b: Tensor, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """Solve as :func:`linalg.solve_triangular` does, with the right-hand side first; return A, too."""
def tril(input: TensorLike, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the lower triangle of matrices, up to a diagonal, with zeros elsewhere."""
def tril_indices(row: builtins.int, col: builtins.int, offset: builtins.int = ..., *, dtype: DTypeLike = ..., device: DeviceLike = ...) -> Tensor:
    """Return the row and column indices of the lower triangle."""
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: builtins.float = ..., p: builtins.float = ..., eps: builtins.float = ..., swap: builtins.bool = ..., reduction: object = ...) -> Tensor:
    """As :func:`nn.functional.triplet_margin_loss`."""
def triu(input: TensorLike, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
    """Return the upper triangle of matrices, from a diagonal on, with zeros elsewhere."""
def triu_indices(row: builtins.int, col: builtins.int, offset: builtins.int = ..., *, dtype: DTypeLike = ..., device: DeviceLike = ...) -> Tensor:
    """Return the row and column indices of the upper triangle."""
def true_divide(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return the quotient x / y, element by element. Integers are divided as floats of the default dtype."""
def trunc(input: Any, *, out: Any = ...) -> Any:
    """Return the integer part of each element."""
uint16: _dtype
uint32: _dtype
uint64: _dtype
uint8: _dtype
def unbind(input: TensorLike, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """Return all entries along ``dim`` as views."""
def unbind_copy(input: TensorLike, dim: builtins.int = ..., *, out: Tensor | None = ...) -> tuple[Tensor, ...]:
    """Return a copy of :func:`unbind`'s result, which shares no memory with the tensor."""
def unflatten(input: Tensor, dim: builtins.int, sizes: Any) -> Tensor:
    """Split one axis into several."""
def unfold(input: TensorLike, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
    """Return windows of ``size`` along a dimension, one every ``step``, as a new last axis (a view)."""
def unfold_copy(input: TensorLike, dimension: builtins.int, size: builtins.int, step: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`unfold`'s result, which shares no memory with the tensor."""
def unique(input: Tensor, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any:
    """Return the distinct elements, sorted. Of equal elements, the first gets the gradient."""
def unique_consecutive(input: Tensor, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any:
    """Return the elements (or entries along ``dim``) without repetitions of the one before; the first of a run gets the gradient."""
def unravel_index(indices: TensorLike, shape: Any) -> tuple[Tensor, ...]:
    """Convert indices into a flattened tensor of a shape to one tensor of indices per axis."""
def unsafe_chunk(input: TensorLike, chunks: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """Split as :func:`chunk` does into copies, which may be written to in place."""
def unsafe_split(tensor: TensorLike, split_size: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """Split as :func:`split` does into copies, which may be written to in place."""
def unsafe_split_with_sizes(tensor: TensorLike, split_sizes: object, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """Split as :func:`split_with_sizes` does into copies, which may be written to in place."""
def unsqueeze(input: TensorLike, dim: builtins.int) -> Tensor:
    """Insert an axis of length 1 at ``dim``."""
def unsqueeze_copy(input: TensorLike, dim: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`unsqueeze`'s result, which shares no memory with the tensor."""
def use_deterministic_algorithms(mode: builtins.bool, *, warn_only: builtins.bool = ...) -> None:
    """Do nothing: the same program always computes the same numbers."""
def value_and_grad(func: AnyFunction, argnums: builtins.int | tuple[builtins.int, ...] = ..., has_aux: builtins.bool = ...) -> AnyFunction:
    """As :func:`grad`, returning ``(value, gradient)``: what ``scipy.optimize.minimize(..., jac=True)`` wants."""
def vander(x: Tensor, N: builtins.int | None = ..., increasing: builtins.bool = ...) -> Tensor:
    """Return the powers of a vector's elements as columns."""
def var(input: TensorLike, dim: Dims = ..., unbiased: Any = ..., keepdim: builtins.bool = ..., *, correction: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor:
    """Return the variance over ``dim``, divided by n − correction (1 by default; 0 with ``unbiased=False``)."""
def var_mean(input: TensorLike, dim: Dims = ..., unbiased: Any = ..., keepdim: builtins.bool = ..., *, correction: Any = ..., out: Tensor | None = ...) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean."""
def vdot(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return the inner product of two vectors, the first conjugated."""
def view_as_complex(input: TensorLike) -> Tensor:
    """Return a view of pairs (real part, imaginary part) along the last axis as complex numbers."""
def view_as_complex_copy(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`view_as_complex`'s result, which shares no memory with the tensor."""
def view_as_real(input: TensorLike) -> Tensor:
    """Return a view of complex numbers as pairs (real part, imaginary part) along a new last axis."""
def view_as_real_copy(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`view_as_real`'s result, which shares no memory with the tensor."""
def view_copy(input: TensorLike, *sizes: Any, size: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Return a copy of :func:`view`'s result, which shares no memory with the tensor."""
def vjp(func: AnyFunction, *primals: object, has_aux: builtins.bool = ...) -> Any:
    """``func(*primals)`` and the function that pulls a cotangent of its output back to the primals."""
def vmap(func: AnyFunction, in_dims: object = ..., out_dims: object = ..., randomness: str = ..., *, chunk_size: builtins.int | None = ...) -> AnyFunction:
    """The function that applies ``func`` to every entry along an axis of its arguments, all at once."""
def vsplit(input: TensorLike, indices_or_sections: object) -> tuple[Tensor, ...]:
    """Split between rows."""
def vstack(tensors: object, *, out: Tensor | None = ...) -> Tensor:
    """Stack vertically: concatenate along the first axis (vectors become rows)."""
def where(condition: Any, input: Any = ..., other: Any = ..., *, out: Tensor | None = ...) -> Any:
    """Return ``input`` where the condition holds, else ``other``; with the condition only, return the indices where it holds."""
def while_loop(cond_fun: Callable[[Any], object], body_fun: Callable[[Any], object], init_val: TensorLike) -> Any:
    """``val = body_fun(val)`` as long as ``cond_fun(val)``."""
def xlogy(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Return x·log(y), and 0 where x is 0 (unless y is NaN)."""
def zeros(*size: ShapeLike, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: object = ...) -> Tensor:
    """Return zeros of a shape."""
def zeros_like(input: Tensor, *, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: object = ...) -> Tensor:
    """Return zeros with another tensor's shape and dtype."""
__version__: str
