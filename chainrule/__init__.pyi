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
    """A tensor of dtype bool from data, or zeros of the sizes given (an old constructor)."""
def ByteTensor(*args: object) -> Tensor:
    """A tensor of dtype uint8 from data, or zeros of the sizes given (an old constructor)."""
def CharTensor(*args: object) -> Tensor:
    """A tensor of dtype int8 from data, or zeros of the sizes given (an old constructor)."""
def DoubleTensor(*args: object) -> Tensor:
    """A tensor of dtype float64 from data, or zeros of the sizes given (an old constructor)."""
def FloatTensor(*args: object) -> Tensor:
    """A tensor of dtype float32 from data, or zeros of the sizes given (an old constructor)."""
def HalfTensor(*args: object) -> Tensor:
    """A tensor of dtype float16 from data, or zeros of the sizes given (an old constructor)."""
def IntTensor(*args: object) -> Tensor:
    """A tensor of dtype int32 from data, or zeros of the sizes given (an old constructor)."""
def LongTensor(*args: object) -> Tensor:
    """A tensor of dtype int64 from data, or zeros of the sizes given (an old constructor)."""
def ShortTensor(*args: object) -> Tensor:
    """A tensor of dtype int16 from data, or zeros of the sizes given (an old constructor)."""
def Variable(data: object, requires_grad: builtins.bool = ..., volatile: object = ...) -> Tensor:
    """PyTorch's old name for a tensor that may require grad: the same memory, as a leaf."""
def abs(input: Any, *, out: Tensor | None = ...) -> Tensor:
    """Absolute value of every element; the gradient at 0 is 0."""
def absolute(input: Any, *, out: Tensor | None = ...) -> Tensor:
    """Absolute value of every element; the gradient at 0 is 0."""
def acos(input: Any, *, out: Any = ...) -> Any:
    """Inverse cosine, in radians."""
def acosh(input: Any, *, out: Any = ...) -> Any:
    """Inverse hyperbolic cosine."""
def adaptive_avg_pool1d(input: Tensor, output_size: object) -> Tensor:
    """The means of ``output_size`` windows that cover the last axis (each axis) evenly; None keeps a size."""
def adaptive_max_pool1d(input: Tensor, output_size: ShapeLike) -> tuple[Tensor, Tensor]:
    """As :func:`nn.functional.adaptive_max_pool1d` with ``return_indices=True``."""
def add(input: TensorLike, other: TensorLike, *old: Any, alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """input + alpha·other."""
def addbmm(input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """beta·input + alpha·Σ_b (batch1[b] @ batch2[b])."""
def addcdiv(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """input + value·tensor1/tensor2."""
def addcmul(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *old: Any, value: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """input + value·tensor1·tensor2."""
def addmm(input: TensorLike, mat1: TensorLike, mat2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """beta·input + alpha·(mat1 @ mat2)."""
def addmv(input: TensorLike, mat: TensorLike, vec: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """beta·input + alpha·(mat @ vec)."""
def addr(input: TensorLike, vec1: TensorLike, vec2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """beta·input + alpha·outer(vec1, vec2)."""
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of matrices."""
def alias_copy(x: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """As :func:`alias`, but a copy that shares no memory with the tensor."""
def all(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Whether all elements are nonzero."""
def allclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> builtins.bool:
    """Whether all elements are close (see :func:`isclose`)."""
def alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Elements set to selu's lower limit with probability p; then scaled so that mean 0 and variance 1 stay."""
def amax(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Maximum over ``dim``; elements that tie share the gradient evenly."""
def amin(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Minimum over ``dim``; elements that tie share the gradient evenly."""
def aminmax(input: TensorLike, *, dim: SupportsIndex | None = ..., keepdim: builtins.bool = ..., out: Tensor | None = ...) -> Any:
    """Minimum and maximum."""
def angle(input: Any, *, out: Any = ...) -> Any:
    """The argument of every complex number (0 or π for reals)."""
def any(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """Whether any element is nonzero."""
def arange(start: Any = ..., end: Any = ..., step: Any = ..., *, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Numbers from ``start`` (0) up to and without ``end``. Integers give int64, floats the default dtype."""
def arccos(input: Any, *, out: Any = ...) -> Any:
    """Inverse cosine, in radians."""
def arccosh(input: Any, *, out: Any = ...) -> Any:
    """Inverse hyperbolic cosine."""
def arcsin(input: Any, *, out: Any = ...) -> Any:
    """Inverse sine, in radians."""
def arcsinh(input: Any, *, out: Any = ...) -> Any:
    """Inverse hyperbolic sine."""
def arctan(input: Any, *, out: Any = ...) -> Any:
    """Inverse tangent, in radians."""
def arctan2(input: Any, other: Any, *, out: Any = ...) -> Any:
    """The angle of the point (y, x), in radians; the gradient at the origin is 0."""
def arctanh(input: Any, *, out: Any = ...) -> Any:
    """Inverse hyperbolic tangent."""
def are_deterministic_algorithms_enabled() -> builtins.bool:
    """Whether the same program computes the same numbers: True."""
def argmax(input: TensorLike, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor:
    """Index of the maximum, of everything (flattened) or along ``dim``. Integers: no gradient."""
def argmin(input: TensorLike, dim: builtins.int | None = ..., keepdim: builtins.bool = ...) -> Tensor:
    """Index of the minimum, of everything (flattened) or along ``dim``. Integers: no gradient."""
def argsort(input: TensorLike, dim: builtins.int = ..., descending: builtins.bool = ..., *, stable: builtins.bool = ...) -> Tensor:
    """Indices that sort along ``dim``; equal elements keep their order, and nan counts as the largest."""
def argwhere(input: Tensor, *, as_tuple: builtins.bool = ..., out: Tensor | None = ...) -> Any:
    """Indices of the nonzero elements: a matrix with one row each, or one vector per axis."""
def as_strided(input: TensorLike, size: Any, stride: Any, storage_offset: builtins.int | None = ...) -> Tensor:
    """A view with a size and strides (in elements) of the caller's; elements may show several times."""
def as_strided_copy(input: TensorLike, size: Any, stride: Any, storage_offset: builtins.int | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """As :func:`as_strided`, but a copy that shares no memory with the tensor."""
def as_strided_scatter(input: Tensor, src: Tensor, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = ...) -> Tensor:
    """A copy in which what :func:`as_strided` shows is ``src``."""
def as_tensor(data: Any, dtype: DTypeLike = ..., device: DeviceLike = ...) -> Tensor:
    """A tensor that shares the data's memory where it can; a tensor is returned as it is (with its graph)."""
def asarray(obj: Any, *, dtype: DTypeLike = ..., device: DeviceLike = ..., copy: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """As :func:`as_tensor`, with NumPy's name."""
def asin(input: Any, *, out: Any = ...) -> Any:
    """Inverse sine, in radians."""
def asinh(input: Any, *, out: Any = ...) -> Any:
    """Inverse hyperbolic sine."""
def atan(input: Any, *, out: Any = ...) -> Any:
    """Inverse tangent, in radians."""
def atan2(input: Any, other: Any, *, out: Any = ...) -> Any:
    """The angle of the point (y, x), in radians; the gradient at the origin is 0."""
def atanh(input: Any, *, out: Any = ...) -> Any:
    """Inverse hyperbolic tangent."""
def atleast_1d(*tensors: TensorLike) -> Tensor:
    """Numbers become vectors of length 1."""
def atleast_2d(*tensors: TensorLike) -> Any:
    """Vectors become matrices of one row."""
def atleast_3d(*tensors: TensorLike) -> Tensor:
    """At least three axes."""
def avg_pool1d(input: Tensor, kernel_size: object, stride: object = ..., padding: object = ..., ceil_mode: builtins.bool = ..., count_include_pad: builtins.bool = ...) -> Tensor:
    """The mean of every window along the last axis."""
def baddbmm(input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = ..., alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """beta·input + alpha·(batch1 @ batch2)."""
def bartlett_window(window_length: builtins.int, periodic: builtins.bool = ..., *shape: builtins.float, **options: object) -> Tensor:
    """As :func:`signal.windows.bartlett`; periodic unless the caller says otherwise."""
def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: builtins.bool, momentum: builtins.float, eps: builtins.float, cudnn_enabled: builtins.bool = ...) -> Tensor:
    """As :func:`nn.functional.batch_norm`, whose running statistics come before the weight."""
def bernoulli(input: Tensor, p: builtins.float | None = ..., *, generator: Generator | None = ..., out: Tensor | None = ...) -> Tensor:
    """1 with the probability that each element gives (or with probability ``p``, whatever they are), else 0."""
bfloat16: __Named
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = ...) -> Tensor:
    """Σᵢⱼ input1ᵢ·weightₒᵢⱼ·input2ⱼ + bias, for inputs (..., in1) and (..., in2) and a weight (out, in1, in2)."""
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = ..., pos_weight: Tensor | None = ..., reduction: object = ...) -> Tensor:
    """As :func:`nn.functional.binary_cross_entropy_with_logits`."""
def bincount(input: Tensor, weights: object = ..., minlength: builtins.int = ...) -> Tensor:
    """How often every non-negative integer occurs; with weights, the sum of their weights."""
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = ...) -> Tensor:
    """How many of ``count`` trials succeed, each with probability ``prob``."""
def bitwise_and(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Bits set in both."""
def bitwise_left_shift(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Bits of x shifted left by y."""
def bitwise_not(input: Any, *, out: Any = ...) -> Any:
    """All bits flipped (logical not for booleans)."""
def bitwise_or(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Bits set in either."""
def bitwise_right_shift(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Bits of x shifted right by y."""
def bitwise_xor(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Bits set in exactly one."""
def blackman_window(window_length: builtins.int, periodic: builtins.bool = ..., *shape: builtins.float, **options: object) -> Tensor:
    """As :func:`signal.windows.blackman`; periodic unless the caller says otherwise."""
def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of a large one."""
def bmm(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """The products of two stacks of matrices."""
bool: _dtype
def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that the given ones broadcast to."""
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Several tensors broadcast to their common shape."""
def broadcast_to(input: TensorLike, size: Any) -> Tensor:
    """Broadcast to a shape, without copying."""
def bucketize(input: TensorLike, boundaries: Tensor, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., out: Tensor | None = ...) -> Tensor:
    """The index of the bucket (between sorted boundaries) that every value falls in."""
def can_cast(from_: object, to: object) -> builtins.bool:
    """Say whether PyTorch would cast one dtype to another inside an operation."""
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element of each vector, one a row."""
def cat(tensors: object, dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor:
    """Tensors one after another along ``dim``."""
def cbrt(input: Any, *, out: Any = ...) -> Any:
    """Cube root."""
def cdist(x1: TensorLike, x2: TensorLike, p: builtins.float = ..., compute_mode: object = ...) -> Tensor:
    """The p-norm distance of every row of one matrix to every row of another; leading axes broadcast."""
cdouble: _dtype
def ceil(input: Any, *, out: Any = ...) -> Any:
    """The smallest integer not below."""
def celu(input: Tensor, alpha: builtins.float = ..., inplace: builtins.bool = ...) -> Tensor:
    """x where it is positive, else alpha·(exp(x/alpha) − 1)."""
def celu_(input: Tensor, *args: object, **kwargs: object) -> Tensor:
    """In-place form of :func:`celu`."""
cfloat: _dtype
def chain_matmul(*matrices: Tensor, out: Tensor | None = ...) -> Tensor:
    """The product of several matrices, in the cheapest order."""
def channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """The channels (axis 1) of the groups in turns: the first of each group, then the second of each."""
def cholesky(input: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """As :func:`linalg.cholesky`."""
def cholesky_inverse(L: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """The inverse of the matrix whose Cholesky factor is L."""
def cholesky_solve(B: Tensor, L: Tensor, upper: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """The solution X of A @ X = B, where L is the Cholesky factor of A."""
def chunk(input: TensorLike, chunks: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """At most ``chunks`` pieces of equal size along ``dim``; the last may be smaller."""
def clamp(input: TensorLike, min: Any = ..., max: Any = ..., *, out: Tensor | None = ...) -> Tensor:
    """The elements limited to [min, max]; bounds are numbers or tensors. The gradient at a bound passes."""
def clamp_max(input: TensorLike, max: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """The elements, at most ``max``."""
def clamp_min(input: TensorLike, min: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """The elements, at least ``min``."""
def clip(input: TensorLike, min: Any = ..., max: Any = ..., *, out: Tensor | None = ...) -> Tensor:
    """The elements limited to [min, max]; bounds are numbers or tensors. The gradient at a bound passes."""
def clone(input: TensorLike, *, memory_format: object = ...) -> Tensor:
    """A copy, which lies in memory as the tensor does, or (``contiguous_format``) in row order; gradients flow through it."""
def column_stack(tensors: object, *, out: Tensor | None = ...) -> Tensor:
    """Vectors as columns of a matrix, matrices side by side."""
def combinations(input: Tensor, r: builtins.int = ..., with_replacement: builtins.bool = ...) -> Tensor:
    """All combinations of r elements of a vector, one a row."""
def compile(function: Any = ..., *, pure: builtins.bool = ..., max_slowdown: builtins.float | None = ..., max_bytes: builtins.int = ..., **options: object) -> Any:
    """A function that computes what ``function`` does, faster: recorded when first called, then replayed."""
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """The complex tensor real + i·imag."""
complex128: _dtype
complex64: _dtype
def compute(*trees: object) -> tuple[Any, ...]:
    """Arrays, tensors and containers of them with their numbers in memory: what is lazy is computed, all in one pass."""
def concat(tensors: object, dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor:
    """Tensors one after another along ``dim``."""
def concatenate(tensors: object, dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor:
    """Tensors one after another along ``dim``."""
def conj(input: TensorLike) -> Tensor:
    """The complex conjugate (the tensor itself, for real dtypes)."""
def conj_physical(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """The complex conjugate (the tensor itself, for real dtypes)."""
def constant_pad_nd(input: TensorLike, pad: object, value: TensorLike = ...) -> Tensor:
    """As ``pad`` with a constant."""
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
    """The magnitude of x with the sign of y."""
def corrcoef(input: TensorLike) -> Tensor:
    """The correlation coefficients of variables: their covariances, divided by both standard deviations."""
def cos(input: Any, *, out: Any = ...) -> Any:
    """Cosine, of radians."""
def cosh(input: Any, *, out: Any = ...) -> Any:
    """Hyperbolic cosine."""
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: builtins.float = ..., reduction: object = ...) -> Tensor:
    """As :func:`nn.functional.cosine_embedding_loss`."""
def cosine_similarity(x1: Tensor, x2: Tensor, dim: builtins.int = ..., eps: builtins.float = ...) -> Tensor:
    """The cosine of the angle between vectors along ``dim``; norms count as at least ``eps``."""
def count_nonzero(input: TensorLike, dim: Dims = ...) -> Tensor:
    """How many elements are not zero."""
def cov(input: Tensor, *, correction: builtins.int = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ...) -> Tensor:
    """The covariances of variables."""
def cross(input: TensorLike, other: TensorLike, dim: builtins.int | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """The vector product along ``dim`` (the first axis of length 3, by default)."""
def cummax(input: TensorLike, dim: builtins.int, *, out: Tensor | None = ...) -> Any:
    """Running maximum along ``dim``, and the index of it (the last, of equal ones)."""
def cummin(input: TensorLike, dim: builtins.int, *, out: Tensor | None = ...) -> Any:
    """Running minimum along ``dim``, and the index of it (the last, of equal ones)."""
def cumprod(input: TensorLike, dim: builtins.int, *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """Running product along ``dim``. The gradient is right where elements are zero, too."""
def cumsum(input: TensorLike, dim: builtins.int, *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """Running sum along ``dim``."""
def cumulative_trapezoid(y: Any, x: TensorLike | None = ..., *, dx: TensorLike | None = ..., dim: builtins.int = ...) -> Tensor:
    """The running integral along ``dim`` by the trapezoidal rule, of n − 1 entries."""
default_generator: _Generator
def deg2rad(input: Any, *, out: Any = ...) -> Any:
    """Degrees to radians."""
def det(A: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """The determinant of square matrices (..., n, n)."""
def detach(input: Tensor) -> Tensor:
    """The same memory, cut off from the graph."""
def detach_copy(self: Any, *, out: Tensor | None = ...) -> Tensor:
    """As :func:`detach`, but a copy that shares no memory with the tensor."""
def diag(input: TensorLike, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
    """A matrix with that diagonal, of a vector; a copy of the diagonal, of a matrix."""
def diag_embed(input: TensorLike, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """The last axis put on the diagonal of a new pair of axes; zeros elsewhere."""
def diagflat(input: TensorLike, offset: builtins.int = ...) -> Tensor:
    """A matrix with the flattened elements on a diagonal."""
def diagonal(input: TensorLike, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """A diagonal of two axes, as the last axis (a view)."""
def diagonal_copy(input: TensorLike, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
    """As :func:`diagonal`, but a copy that shares no memory with the tensor."""
def diagonal_scatter(input: Tensor, src: Tensor, offset: builtins.int = ..., dim1: builtins.int = ..., dim2: builtins.int = ...) -> Tensor:
    """A copy with the diagonal of two axes exchanged for ``src``: ``diagonal``, written to."""
def diff(input: TensorLike, n: builtins.int = ..., dim: builtins.int = ..., prepend: TensorLike | None = ..., append: TensorLike | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """Differences of neighbours along ``dim``, n times."""
def digamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """Γ'(x) / Γ(x), the derivative of log Γ."""
def dist(input: TensorLike, other: TensorLike, p: builtins.float = ...) -> Tensor:
    """The p-norm of input − other."""
def div(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = ..., out: Tensor | None = ...) -> Tensor:
    """input / other; with ``rounding_mode`` 'floor' or 'trunc' rounded that way, keeping integer dtypes."""
def divide(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = ..., out: Tensor | None = ...) -> Tensor:
    """input / other; with ``rounding_mode`` 'floor' or 'trunc' rounded that way, keeping integer dtypes."""
def dot(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """The inner product of two vectors."""
double: _dtype
def dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """Each element set to 0 with probability p, the others divided by 1 − p; the input itself if not ``training``."""
def dsplit(input: TensorLike, indices_or_sections: object) -> tuple[Tensor, ...]:
    """Cut along the third axis."""
def dstack(tensors: object, *, out: Tensor | None = ...) -> Tensor:
    """Along the third axis."""
e: builtins.float
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Einstein summation. In the graph it shows as what it is made of: permutes, reshapes and bmm."""
def embedding(weight: Tensor, indices: Tensor, padding_idx: builtins.int = ..., scale_grad_by_freq: builtins.bool = ..., sparse: builtins.bool = ...) -> Tensor:
    """As :func:`nn.functional.embedding` of ``indices`` and ``weight``; no row is the padding's with ``padding_idx=-1``."""
def empty(*size: ShapeLike, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: object = ...) -> Tensor:
    """Memory of a shape, with whatever is in it."""
def empty_like(input: Tensor, *, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: object = ...) -> Tensor:
    """Memory of another tensor's shape and dtype."""
def eq(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether two elements are equal."""
def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether two tensors have the same shape and elements."""
def erf(input: Any, *, out: Any = ...) -> Any:
    """The error function 2/√π ∫₀ˣ exp(−t²) dt."""
def erfc(input: Any, *, out: Any = ...) -> Any:
    """The complementary error function 1 − erf(x), accurate where that is tiny."""
def erfinv(input: Any, *, out: Any = ...) -> Any:
    """The inverse of the error function; infinite at ±1, nan beyond."""
def exp(input: Any, *, out: Any = ...) -> Any:
    """Exponential of every element."""
def exp2(input: Any, *, out: Any = ...) -> Any:
    """2 to the power of every element."""
def expand_copy(input: TensorLike, *sizes: ShapeLike, size: Any = ..., out: Tensor | None = ...) -> Tensor:
    """As :func:`expand`, but a copy that shares no memory with the tensor."""
def explain(Y: object, grad: object = ..., wrt: object = ..., *, by: str | None = ...) -> Any:
    """Explain what ``Y.backward(grad)`` computes: every step's rule, shapes and numbers."""
def expm1(input: Any, *, out: Any = ...) -> Any:
    """exp(x) − 1, accurate near 0."""
def eye(n: builtins.int, m: builtins.int | None = ..., *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """The identity matrix (n rows, m columns)."""
def feature_alpha_dropout(input: Tensor, p: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """As :func:`alpha_dropout`, for whole channels (axis 1)."""
def fill(input: Tensor, value: TensorLike) -> Tensor:
    """A copy in which every element is a number, or a 0-d tensor, to which the gradient flows."""
def fix(input: Any, *, out: Any = ...) -> Any:
    """The integer part."""
def flatten(input: TensorLike, start_dim: builtins.int = ..., end_dim: builtins.int = ...) -> Tensor:
    """The axes from ``start_dim`` to ``end_dim`` joined into one."""
def flip(input: TensorLike, *axes: Any, dims: object = ...) -> Tensor:
    """The order along axes reversed (a copy)."""
def fliplr(input: TensorLike) -> Tensor:
    """Columns in reverse order."""
def flipud(input: TensorLike) -> Tensor:
    """Rows in reverse order."""
float: _dtype
float16: _dtype
float32: _dtype
float64: _dtype
def float_power(input: TensorLike, exponent: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """input to the power exponent, in float64 (or complex128)."""
def floor(input: Any, *, out: Any = ...) -> Any:
    """The largest integer not above."""
def floor_divide(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """The floor of the quotient."""
def fmax(input: Any, other: Any, *, out: Any = ...) -> Any:
    """The larger of two; the other where one is nan."""
def fmin(input: Any, other: Any, *, out: Any = ...) -> Any:
    """The smaller of two; the other where one is nan."""
def fmod(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Remainder of truncated division: its sign is the dividend's."""
def fori_loop(lower: TensorLike, upper: object, body_fun: Callable[[Any, Any], Any], init_val: TensorLike, *, unroll: builtins.int | builtins.bool | None = ...) -> Any:
    """``val = body_fun(i, val)`` for i from ``lower`` to ``upper - 1``: a :func:`scan` that gives the last value."""
def frac(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """The fractional part: input − trunc(input)."""
def frexp(input: TensorLike) -> Any:
    """Mantissas in ±[0.5, 1) and exponents (int32): input = mantissa · 2**exponent. Gradients flow to mantissas."""
def from_dlpack(ext_tensor: Any, *, device: DeviceLike = ..., copy: object = ...) -> Tensor:
    """A tensor that shares the memory of another library's array."""
def from_numpy(array: Any) -> Tensor:
    """A tensor that shares the memory of a NumPy array."""
def frombuffer(buffer: object, *, dtype: DTypeLike, count: builtins.int = ..., offset: builtins.int = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """A vector that shares the memory of an object with a buffer (of bytes, a copy: they cannot be written to)."""
def full(size: Any, fill_value: Any, *, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """One value in a shape. Its kind gives the dtype: a float's is the default one, of NumPy's floats and of tensors, too."""
def full_like(input: Tensor, fill_value: object, *, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """One value in another tensor's shape and dtype."""
def gather(input: Tensor, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor:
    """``out[i][j] = input[index[i][j]][j]`` for dim 0, and so on for other dims."""
def gcd(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Greatest common divisor."""
def ge(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether x is at least y."""
def ger(input: TensorLike, vec2: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """All products of an element of one vector and one of another, of shape (n, m)."""
def get_default_device() -> device:
    """Where new tensors are: on the CPU, unless a program says otherwise."""
def get_default_dtype() -> dtype:
    """Return the dtype that Python floats become; float32 unless it was changed."""
def get_device(input: Tensor) -> builtins.int:
    """The number of the tensor's GPU; −1 on the CPU."""
def get_float32_matmul_precision() -> str:
    """How exact products of float32 matrices are: "highest"."""
def get_num_threads() -> builtins.int:
    """How many threads share a large step of a compiled function: what was set, or as many as this process may use."""
def get_printoptions() -> dict[str, Any]:
    """Return the options in force, as keyword arguments for ``set_printoptions``."""
def get_rng_state() -> Params:
    """The state of the default generator."""
def grad(func: AnyFunction, argnums: builtins.int | tuple[builtins.int, ...] = ..., has_aux: builtins.bool = ...) -> AnyFunction:
    """Return the function that computes the gradient of ``func``, which must return a scalar."""
def grad_and_value(func: AnyFunction, argnums: builtins.int | tuple[builtins.int, ...] = ..., has_aux: builtins.bool = ...) -> AnyFunction:
    """Return a function like that of :func:`grad` that returns ``(gradient, value)`` (with ``has_aux``: ``(gradient, (value, aux))``)."""
def gradient(input: TensorLike, *, spacing: Any = ..., dim: Any = ..., edge_order: builtins.int = ...) -> tuple[Tensor, ...]:
    """The slopes of a sampled function along each of ``dim`` (all axes by default): second-order differences."""
def greater(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether x is greater than y."""
def greater_equal(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether x is at least y."""
def group_norm(input: Tensor, num_groups: builtins.int, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ...) -> Tensor:
    """Groups of channels minus their mean, over their standard deviation; then times weight plus bias per channel."""
def gt(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether x is greater than y."""
half: _dtype
def hamming_window(window_length: builtins.int, periodic: builtins.bool = ..., *shape: builtins.float, **options: object) -> Tensor:
    """As :func:`signal.windows.hamming`; periodic unless the caller says otherwise."""
def hann_window(window_length: builtins.int, periodic: builtins.bool = ..., *shape: builtins.float, **options: object) -> Tensor:
    """As :func:`signal.windows.hann`; periodic unless the caller says otherwise."""
def hardshrink(input: Tensor, lambd: builtins.float = ...) -> Tensor:
    """x where |x| is over lambd, else 0."""
def heaviside(input: TensorLike, values: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """0 where input is negative, ``values`` where it is 0, else 1."""
def hessian(func: AnyFunction, x: Any = ..., *more: Any, argnums: builtins.int | tuple[builtins.int, ...] | None = ..., layout: str = ..., strategy: str | None = ..., create_graph: builtins.bool | None = ..., hstack: builtins.bool = ..., sparsity: object = ..., check: builtins.bool = ..., memory: builtins.int = ...) -> Any:
    """Compute the Hessian of a scalar function at a point; without a point, return the function that computes it."""
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: builtins.float = ..., reduction: object = ...) -> Tensor:
    """As :func:`nn.functional.hinge_embedding_loss`."""
def histc(input: Tensor, bins: builtins.int = ..., min: builtins.float = ..., max: builtins.float = ..., *, out: Tensor | None = ...) -> Tensor:
    """How many elements fall into each of ``bins`` equal intervals from ``min`` to ``max`` (both 0: of the data)."""
def histogram(input: Tensor, bins: Any, *, range: Any = ..., weight: Tensor | None = ..., density: builtins.bool = ...) -> Any:
    """How many elements (or how much of their ``weight``) fall into each bin, and the bins' edges."""
def histogramdd(input: Tensor, bins: Any, *, range: Any = ..., weight: Tensor | None = ..., density: builtins.bool = ...) -> Any:
    """How many points, whose coordinates are along the last axis, fall into each cell of a grid, and the grid's edges."""
def hsplit(input: TensorLike, indices_or_sections: object) -> tuple[Tensor, ...]:
    """Cut between columns (between elements, of a vector)."""
def hstack(tensors: object, *, out: Tensor | None = ...) -> Tensor:
    """Side by side: along the second axis (the first, of vectors)."""
def hvp(func: AnyFunction, primals: Any, tangents: Any) -> Any:
    """Compute the product of the Hessian of a scalar function and a vector, at the cost of a few gradients."""
def hypot(input: Any, other: Any, *, out: Any = ...) -> Any:
    """√(x² + y²) without overflow."""
def i0(input: Any, *, out: Any = ...) -> Any:
    """The modified Bessel function I₀(x)."""
def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """``scipy.special.gammainc`` on tensors; SciPy computes it."""
def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """``scipy.special.gammaincc`` on tensors; SciPy computes it."""
def imag(input: Tensor) -> Tensor:
    """The imaginary part."""
def index_add(input: Tensor, dim: builtins.int, index: Any, source: Tensor, *, alpha: TensorLike = ...) -> Tensor:
    """A copy with entries of ``source`` added at indices along ``dim``."""
def index_copy(input: Tensor, dim: builtins.int, index: Any, source: Tensor) -> Tensor:
    """A copy with entries of ``source`` written at indices along ``dim``."""
def index_fill(input: Tensor, dim: builtins.int, index: Any, value: TensorLike) -> Tensor:
    """A copy with the entries at indices along ``dim`` filled with a value (a number or 0-d tensor)."""
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: builtins.bool = ...) -> Tensor:
    """A copy with values written (or added) at ``input[indices]``."""
def index_reduce(input: Tensor, dim: builtins.int, index: Any, source: Tensor, reduce: str, *, include_self: builtins.bool = ...) -> Tensor:
    """As :func:`scatter_reduce`, with one index for a whole entry along ``dim``: "prod", "mean", "amax" or "amin"."""
def index_select(input: TensorLike, dim: builtins.int, index: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Entries at indices along ``dim`` (a copy; indices may repeat)."""
inf: builtins.float
def initial_seed() -> builtins.int:
    """The seed of the default generator."""
def inner(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Products summed over the last axis of both."""
def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, use_input_stats: builtins.bool, momentum: builtins.float, eps: builtins.float, cudnn_enabled: builtins.bool = ...) -> Tensor:
    """As :func:`nn.functional.instance_norm`, whose running statistics come before the weight."""
int: _dtype
int16: _dtype
int32: _dtype
int64: _dtype
int8: _dtype
def inverse(A: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """The inverse of square matrices."""
def is_anomaly_check_nan_enabled() -> builtins.bool:
    """Return whether anomaly mode, in this thread, checks for NaN (and does not only record lines)."""
def is_anomaly_enabled() -> builtins.bool:
    """Return whether this thread is in anomaly mode."""
def is_autocast_enabled(device_type: str | None = ...) -> builtins.bool:
    """Whether operations cast their operands: no."""
def is_complex(input: TensorLike) -> builtins.bool:
    """Whether a tensor (or dtype) is of complex numbers."""
def is_conj(input: Tensor) -> builtins.bool:
    """Whether conjugation is still to be done: never, ``conj`` computes at once (as ``neg`` does)."""
def is_floating_point(input: TensorLike) -> builtins.bool:
    """Whether a tensor (or dtype) is of real floating point numbers."""
def is_grad_enabled() -> builtins.bool:
    """Whether gradient mode is on in this thread."""
def is_inference(input: Tensor) -> builtins.bool:
    """Whether the tensor was made in ``inference_mode``."""
def is_inference_mode_enabled() -> builtins.bool:
    """Whether this thread is inside :class:`inference_mode`."""
def is_neg(input: Tensor) -> builtins.bool:
    """Whether conjugation is still to be done: never, ``conj`` computes at once (as ``neg`` does)."""
def is_nonzero(input: Tensor) -> builtins.bool:
    """Whether the only element is not zero."""
def is_same_size(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether two tensors have the same shape."""
def is_signed(input: Tensor) -> builtins.bool:
    """Whether the dtype has negative numbers."""
def is_tensor(obj: object) -> builtins.bool:
    """Whether the object is a tensor."""
def isclose(input: Tensor, other: Tensor, rtol: builtins.float = ..., atol: builtins.float = ..., equal_nan: builtins.bool = ...) -> Tensor:
    """Whether |input − other| ≤ atol + rtol·|other|, element by element."""
def isfinite(input: Any, *, out: Any = ...) -> Any:
    """Whether an element is a finite number."""
def isin(elements: Any, test_elements: Any, *, assume_unique: builtins.bool = ..., invert: builtins.bool = ...) -> Tensor:
    """Whether each element is among the test elements; with ``invert``, whether it is not. One of both may be a number."""
def isinf(input: Any, *, out: Any = ...) -> Any:
    """Whether an element is infinite."""
def isnan(input: Any, *, out: Any = ...) -> Any:
    """Whether an element is nan."""
def isneginf(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Whether an element is −∞."""
def isposinf(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Whether an element is +∞."""
def isreal(input: TensorLike) -> Tensor:
    """Whether an element has no imaginary part."""
def istft(input: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., length: builtins.int | None = ..., return_complex: builtins.bool = ...) -> Tensor:
    """The signal that has a short-time Fourier transform: the least squares estimate from all pieces."""
def jacfwd(func: AnyFunction, argnums: builtins.int | tuple[builtins.int, ...] = ..., has_aux: builtins.bool = ..., *, randomness: str = ...) -> AnyFunction:
    """Return a function that computes the Jacobian of ``func`` by forward mode: best for few inputs."""
def jacobian(y: object, x: object = ..., *more: Any, layout: str = ..., strategy: str | None = ..., create_graph: builtins.bool | None = ..., hstack: builtins.bool = ..., mode: str = ..., chunk_size: builtins.int | None = ..., sparsity: object = ..., check: builtins.bool = ..., memory: builtins.int = ...) -> Any:
    """Compute the generalized Jacobian ∂y/∂x, of shape ``(*y.shape, *x.shape)``, of a function or of computed tensors."""
def jacobian_plan(function: AnyFunction, x: object, *, layout: str = ..., strategy: str | None = ..., memory: builtins.int = ...) -> Plan:
    """Return the plan of ``jacobian(function, x, layout=..., strategy=...)`` and the costs of other strategies; print it."""
def jacrev(func: AnyFunction, argnums: builtins.int | tuple[builtins.int, ...] = ..., *, has_aux: builtins.bool = ..., chunk_size: builtins.int | None = ..., _preallocate_and_copy: builtins.bool = ...) -> AnyFunction:
    """Return a function that computes the Jacobian of ``func`` by reverse mode: best for few outputs."""
def jvp(func: AnyFunction, primals: object, tangents: object, *, strict: builtins.bool = ..., has_aux: builtins.bool = ...) -> Any:
    """Compute ``func(*primals)`` and its directional derivative along ``tangents``, in one forward pass."""
def kaiser_window(window_length: builtins.int, periodic: builtins.bool = ..., *shape: builtins.float, **options: object) -> Tensor:
    """As :func:`signal.windows.kaiser`; periodic unless the caller says otherwise."""
def kl_div(input: Tensor, target: Tensor, reduction: object = ..., *, log_target: builtins.bool = ...) -> Tensor:
    """As :func:`nn.functional.kl_div`, without ``"batchmean"``."""
def kron(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """The Kronecker product."""
def kthvalue(input: TensorLike, k: builtins.int, dim: builtins.int = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """The k-th smallest element along ``dim`` (counted from 1), and its index."""
def layer_norm(input: Tensor, normalized_shape: object, weight: Tensor | None = ..., bias: Tensor | None = ..., eps: builtins.float = ...) -> Tensor:
    """(x − mean) / √(variance + eps) over the last axes, of ``normalized_shape``; then times weight plus bias."""
def lcm(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Least common multiple."""
def ldexp(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """input · 2**other."""
def le(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether x is at most y."""
def lerp(input: TensorLike, end: TensorLike, weight: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """input + weight·(end − input)."""
def less(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether x is less than y."""
def less_equal(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether x is at most y."""
def lgamma(input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """log |Γ(x)|; infinite at 0 and the negative integers."""
def linspace(start: TensorLike, end: TensorLike, steps: builtins.int, *, dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """``steps`` numbers from ``start`` to ``end``, both included, evenly apart."""
def load(f: Any, map_location: DeviceLike = ..., *, weights_only: builtins.bool = ..., format: str | None = ...) -> Any:
    """What was saved in a file by ``save``, ``numpy.savez`` or any writer of safetensors. Never runs code."""
def log(input: Any, *, out: Any = ...) -> Any:
    """Natural logarithm."""
def log10(input: Any, *, out: Any = ...) -> Any:
    """Logarithm to base 10."""
def log1p(input: Any, *, out: Any = ...) -> Any:
    """log(1 + x), accurate near 0."""
def log2(input: Any, *, out: Any = ...) -> Any:
    """Logarithm to base 2."""
def log_softmax(input: TensorLike, dim: builtins.int | None = ..., dtype: DTypeLike = ...) -> Tensor:
    """The logarithm of the softmax along ``dim``, without overflow."""
def logaddexp(input: Any, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """log(exp(input) + exp(other)), without overflow."""
def logaddexp2(input: Any, other: Any, *, out: Any = ...) -> Any:
    """log2(2**x + 2**y) without overflow."""
def logcumsumexp(input: TensorLike, dim: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """Running log Σ exp along ``dim``, without overflow."""
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; nan where it is negative."""
def logical_and(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether both are nonzero."""
def logical_not(input: Any, *, out: Any = ...) -> Any:
    """Whether an element is zero."""
def logical_or(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether either is nonzero."""
def logical_xor(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether exactly one is nonzero."""
def logit(input: TensorLike, eps: builtins.float | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """log(x / (1 − x)), the inverse of the sigmoid; with ``eps``, x is first clamped to [eps, 1 − eps]."""
def logspace(start: TensorLike, end: TensorLike, steps: builtins.int, base: builtins.float = ..., *, dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """``steps`` numbers from base**start to base**end, evenly apart in the exponent."""
def logsumexp(input: Any, dim: Any, keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Tensor:
    """log Σ exp(x) over ``dim``, without overflow."""
long: _dtype
def lt(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether x is less than y."""
def lu(A: Tensor, pivot: builtins.bool = ..., get_infos: builtins.bool = ...) -> Any:
    """As :func:`linalg.lu_factor`; with ``get_infos`` as :func:`linalg.lu_factor_ex`."""
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """As :func:`linalg.lu_solve`, with the right side first."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: builtins.bool = ..., unpack_pivots: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """What :func:`lu_factor` returned, as ``(P, L, U)``; parts that are not asked for are empty."""
def manual_seed(seed: builtins.int) -> Generator:
    """Start the random numbers anew, from a seed."""
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: builtins.float = ..., reduction: object = ...) -> Tensor:
    """As :func:`nn.functional.margin_ranking_loss`."""
def masked_fill(input: Tensor, mask: TensorLike, value: TensorLike) -> Tensor:
    """A copy with a value (a number or 0-d tensor) where the mask is True."""
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy with the mask's places filled, in order, with elements of ``source``; tensor and mask broadcast."""
def masked_select(input: Tensor, mask: Any, *, out: Tensor | None = ...) -> Tensor:
    """The elements where the mask is True, in one vector."""
def matmul(input: Any, other: Any, *, out: Tensor | None = ...) -> Tensor:
    """The matrix product ``input @ other``: of vectors, matrices, and stacks of matrices (leading axes broadcast)."""
def matrix_exp(A: Tensor) -> Tensor:
    """The matrix exponential of square matrices."""
def matrix_power(A: Tensor, n: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """The n-th power of square matrices; of the inverse, for negative n."""
def max(input: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, other: Any = ..., out: Tensor | None = ...) -> Any:
    """Maximum of all elements; with ``dim`` a pair (values, indices); with another tensor the elementwise maximum."""
def max_pool1d(input: Tensor, kernel_size: Any, stride: Any | None = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """The largest element of every window along the last axis. The first of several gets the gradient."""
def max_pool2d(input: Tensor, kernel_size: Any, stride: Any | None = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """As :func:`max_pool1d`, over the last two axes."""
def max_pool3d(input: Tensor, kernel_size: Any, stride: Any | None = ..., padding: Any = ..., dilation: Any = ..., ceil_mode: builtins.bool = ..., return_indices: builtins.bool = ...) -> Any:
    """As :func:`max_pool1d`, over the last three axes."""
def maximum(input: Any, other: Any, *, out: Any = ...) -> Any:
    """The larger of two, element by element; nan where either is."""
def mean(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., axis: Dims = ..., keepdims: builtins.bool | None = ..., out: Tensor | None = ...) -> Tensor:
    """Mean over ``dim``."""
def median(input: TensorLike, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """The (lower) median of everything, or along ``dim`` with its index; nan where there is one."""
def meshgrid(*tensors: Tensor, indexing: str = ...) -> tuple[Tensor, ...]:
    """Coordinate grids: the i-th result varies along axis i (along the other, for the first two, with "xy")."""
def min(input: Any, dim: Any = ..., keepdim: builtins.bool = ..., *, other: Any = ..., out: Tensor | None = ...) -> Any:
    """Minimum of all elements; with ``dim`` a pair (values, indices); with another tensor the elementwise minimum."""
def minimum(input: Any, other: Any, *, out: Any = ...) -> Any:
    """The smaller of two, element by element; nan where either is."""
def mm(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """The product of two matrices."""
def mode(input: Any, dim: builtins.int = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """The most frequent value along ``dim`` (the smallest of those), and the last index of it."""
def moveaxis(input: TensorLike, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places, the others kept in order."""
def movedim(input: TensorLike, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places, the others kept in order."""
def msort(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Sorted values along the first dimension."""
def mul(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Product, element by element."""
def multinomial(input: Tensor, num_samples: builtins.int, replacement: builtins.bool = ..., *, generator: Generator | None = ...) -> Tensor:
    """Indices drawn with probabilities in proportion to each row's weights."""
def multiply(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Product, element by element."""
def mv(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """The product of a matrix and a vector."""
def mvlgamma(input: Tensor, p: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p: p(p − 1)/4·log π + Σ log Γ(x − j/2)."""
nan: builtins.float
def nan_to_num(input: TensorLike, nan: TensorLike = ..., posinf: TensorLike | None = ..., neginf: TensorLike | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """nan replaced by ``nan``, infinities by ``posinf`` and ``neginf`` (the largest finite numbers by default)."""
def nanmean(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """Mean over ``dim`` of the elements that are not nan."""
def nanmedian(input: TensorLike, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """The (lower) median of what is not nan: of everything, or along ``dim`` with its index."""
def nanquantile(input: TensorLike, q: object, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ..., out: Tensor | None = ...) -> Tensor:
    """The q-quantile along ``dim`` of what is not nan; nan where there is nothing else."""
def nansum(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ...) -> Tensor:
    """Sum over ``dim``, with nan counted as 0."""
def narrow(input: TensorLike, dim: builtins.int, start: TensorLike, length: builtins.int) -> Tensor:
    """A stretch of ``length`` entries along ``dim``, as a view."""
def narrow_copy(input: TensorLike, dim: builtins.int, start: TensorLike, length: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """As :func:`narrow`, but a copy that shares no memory with the tensor."""
def ne(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether two elements differ."""
def neg(input: Any, *, out: Any = ...) -> Any:
    """The negative of every element."""
def negative(input: Any, *, out: Any = ...) -> Any:
    """The negative of every element."""
newaxis: Any
def nextafter(input: Any, other: Any, *, out: Any = ...) -> Any:
    """The next representable number after x towards y."""
def nonzero(input: Tensor, *, as_tuple: builtins.bool = ..., out: Tensor | None = ...) -> Any:
    """Indices of the nonzero elements: a matrix with one row each, or one vector per axis."""
def nonzero_static(input: Tensor, *, size: builtins.int, fill_value: builtins.int = ..., out: Tensor | None = ...) -> Tensor:
    """As :func:`nonzero`, with exactly ``size`` rows: cut, or filled up with ``fill_value``."""
def norm(input: TensorLike, p: Any = ..., dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """The p-norm over ``dim`` (everything by default). Its gradient where it is 0 is 0."""
def normal(mean: Any = ..., std: Any = ..., size: ShapeLike | None = ..., *, generator: Generator | None = ..., dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Normal numbers of that mean and standard deviation (numbers with a size, or tensors)."""
def not_equal(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Whether two elements differ."""
def numel(input: Tensor) -> builtins.int:
    """The number of elements."""
def ones(*size: ShapeLike, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: object = ...) -> Tensor:
    """Ones of a shape."""
def ones_like(input: Tensor, *, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: object = ...) -> Tensor:
    """Ones of another tensor's shape and dtype."""
def orgqr(A: Tensor, tau: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """The first n columns of H₁H₂…H_k, where H_i = I − tau_i·v·vᴴ and v is column i of A under a 1 on the diagonal."""
def outer(input: TensorLike, vec2: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """All products of an element of one vector and one of another, of shape (n, m)."""
def pairwise_distance(x1: Tensor, x2: Tensor, p: builtins.float = ..., eps: builtins.float = ..., keepdim: builtins.bool = ...) -> Tensor:
    """The p-norm of x1 − x2 + eps along the last axis."""
def pdist(input: Tensor, p: builtins.float = ...) -> Tensor:
    """The p-norms of the differences of all pairs of rows: (0, 1), (0, 2) …, (1, 2) …."""
def permute(input: TensorLike, *order: Any, dims: Dims = ...) -> Tensor:
    """The axes in another order."""
def permute_copy(input: TensorLike, *order: Any, dims: Dims = ..., out: Tensor | None = ...) -> Tensor:
    """As :func:`permute`, but a copy that shares no memory with the tensor."""
pi: builtins.float
def pinverse(input: Tensor, rcond: builtins.float = ...) -> Tensor:
    """The pseudoinverse: as :func:`linalg.pinv`, with ``rtol=rcond``."""
def pixel_shuffle(input: Tensor, upscale_factor: builtins.int) -> Tensor:
    """Channels as pixels: (..., c·r², h, w) becomes (..., c, h·r, w·r)."""
def pixel_unshuffle(input: Tensor, downscale_factor: builtins.int) -> Tensor:
    """The inverse of :func:`pixel_shuffle`: (..., c, h·r, w·r) becomes (..., c·r², h, w)."""
def poisson(input: Tensor, generator: Generator | None = ...) -> Tensor:
    """Poisson numbers of the rate that each element gives."""
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: builtins.bool, full: builtins.bool, eps: builtins.float, reduction: object) -> Tensor:
    """As :func:`nn.functional.poisson_nll_loss`."""
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """The complex tensor with that absolute value and angle."""
def polygamma(n: builtins.int, input: Tensor, *, out: Tensor | None = ...) -> Tensor:
    """The derivative of order n of :func:`digamma`."""
def positive(input: TensorLike) -> Tensor:
    """The tensor itself (``+x``)."""
def pow(input: TensorLike, exponent: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """input to the power exponent."""
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where it is positive, else weight·x, with one weight for all or for each channel (axis 1)."""
def prepare_jacobian(function: AnyFunction, x: object, layout: str = ..., *, hstack: builtins.bool = ..., on_change: str = ..., memory: builtins.int = ...) -> PreparedJacobian:
    """Compute the sparsity pattern of a function's Jacobian, to compute the Jacobian faster at further points."""
preserve_format: _memory_format
def printoptions(**options: Any) -> Any[None]:
    """Set print options within a ``with`` block."""
def prod(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., out: Tensor | None = ...) -> Tensor:
    """Product of all elements, or along ``dim``. The gradient is right where elements are zero, too."""
def promote_types(type1: object, type2: object) -> dtype:
    """Return the smallest dtype, in PyTorch's order, that both dtypes convert to."""
def put(input: Tensor, index: Any, source: Tensor, accumulate: builtins.bool = ...) -> Tensor:
    """A copy with elements of ``source`` written (or added) at indices into the flattened tensor."""
def qr(input: Tensor, some: builtins.bool = ...) -> Any:
    """As :func:`linalg.qr`, with the mode "complete" for ``some=False``."""
def quantile(input: TensorLike, q: object, dim: builtins.int | None = ..., keepdim: builtins.bool = ..., *, interpolation: str = ..., out: Tensor | None = ...) -> Tensor:
    """The q-quantile along ``dim`` (q between 0 and 1, a number or a 1-D tensor); nan where there is one."""
def rad2deg(input: Any, *, out: Any = ...) -> Any:
    """Radians to degrees."""
def rand(*size: ShapeLike, generator: Generator | None = ..., dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Uniform numbers in [0, 1), or complex numbers with both parts there."""
def rand_like(input: Tensor, *bounds: builtins.int, dtype: DTypeLike = ..., **options: object) -> Tensor:
    """Uniform numbers of another tensor's shape and dtype."""
def randint(low: Any = ..., high: Any = ..., size: ShapeLike | None = ..., *, generator: Generator | None = ..., dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Integers from ``low`` (0) up to and without ``high``."""
def randint_like(input: Tensor, *bounds: builtins.int, dtype: DTypeLike = ..., **options: object) -> Tensor:
    """Integers from ``low`` (0) up to and without ``high``, of another tensor's shape and dtype."""
def randn(*size: ShapeLike, generator: Generator | None = ..., dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """Standard normal numbers (complex ones have variance 1 in all)."""
def randn_like(input: Tensor, *bounds: builtins.int, dtype: DTypeLike = ..., **options: object) -> Tensor:
    """Standard normal numbers of another tensor's shape and dtype."""
def randperm(n: builtins.int, *, generator: Generator | None = ..., dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """The integers below n in random order."""
def ravel(input: TensorLike) -> Tensor:
    """All elements along one axis, contiguous: a view if they are already, else a copy."""
def real(input: TensorLike) -> Tensor:
    """The real part (the tensor itself, for real dtypes)."""
def reciprocal(input: Any, *, out: Any = ...) -> Any:
    """One over every element."""
def relu(input: Any, *, out: Any = ...) -> Any:
    """max(x, 0), which of -0. is -0.; the derivative at 0 is 0."""
def remainder(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """Remainder of floor division: its sign is the divisor's."""
def renorm(input: TensorLike, p: builtins.float, dim: builtins.int, maxnorm: builtins.float, *, out: Tensor | None = ...) -> Tensor:
    """The entries along ``dim``, each scaled down to a p-norm of ``maxnorm`` if its own is larger."""
def repeat_interleave(input: TensorLike | None = ..., repeats: object = ..., dim: builtins.int | None = ..., *, output_size: object = ...) -> Tensor:
    """Every element (or entry along ``dim``) repeated in place."""
def reshape(input: Any, *sizes: ShapeLike, shape: Any = ...) -> Tensor:
    """The same elements in another shape: a view where memory allows, else a copy. One size may be -1."""
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: nothing is still to be done to its elements."""
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: nothing is still to be done to its elements."""
def result_type(*operands: TensorLike) -> dtype:
    """Return the dtype PyTorch would compute an operation on these operands in."""
def rms_norm(input: Tensor, normalized_shape: object, weight: Tensor | None = ..., eps: builtins.float | None = ...) -> Tensor:
    """x / √(mean(x²) + eps) over the last axes; then times weight. ``eps`` is the dtype's by default."""
def roll(input: Any, shifts: object, dims: Dims = ...) -> Tensor:
    """Elements shifted along axes, around the ends; without ``dims`` as if flattened."""
def rot90(input: TensorLike, k: builtins.int = ..., dims: Any = ...) -> Tensor:
    """Rotated by k quarter turns in the plane of two axes (a copy)."""
def round(input: TensorLike, *, decimals: builtins.int = ..., out: Tensor | None = ...) -> Tensor:
    """The nearest integer, ties to even; or to that many decimals."""
def row_stack(tensors: object, *, out: Tensor | None = ...) -> Tensor:
    """One above another: along the first axis (vectors become rows)."""
def rrelu(input: Tensor, lower: builtins.float = ..., upper: builtins.float = ..., training: builtins.bool = ..., inplace: builtins.bool = ...) -> Tensor:
    """x where it is positive, else x times a random slope between the two bounds; their mean if not ``training``."""
def rrelu_(input: Tensor, *args: object, **kwargs: object) -> Tensor:
    """In-place form of :func:`rrelu`."""
def rsqrt(input: Any, *, out: Any = ...) -> Any:
    """One over the square root."""
def rsub(input: TensorLike, other: TensorLike, *, alpha: TensorLike = ...) -> Tensor:
    """other − alpha·input."""
def save(obj: object, f: Any, *, format: str | None = ...) -> None:
    """Save a dictionary of tensors, or anything made of tensors, arrays, numbers, text, dictionaries, lists and tuples."""
def scalar_tensor(s: Any, *, dtype: DTypeLike = ..., device: DeviceLike = ..., requires_grad: builtins.bool = ...) -> Tensor:
    """A 0-d tensor of the default dtype."""
def scan(f: Callable[[Any, Any], tuple[Any, Any]], init: object, xs: object = ..., length: builtins.int | None = ..., reverse: builtins.bool = ..., unroll: builtins.int | builtins.bool = ..., *, checkpoint: builtins.bool = ...) -> tuple[Any, Any]:
    """A loop over the first axis of arrays that carries values along: ``carry, y = f(carry, x)`` for each ``x`` of ``xs``."""
def scatter(input: Tensor, dim: builtins.int, index: Any, src: TensorLike | None = ..., *, value: TensorLike | None = ..., reduce: str | None = ...) -> Tensor:
    """A copy with the elements of ``src`` (or one ``value``) written at indices along ``dim``."""
def scatter_add(input: Tensor, dim: builtins.int, index: Any, src: Any) -> Tensor:
    """A copy with the elements of ``src`` added at indices along ``dim``; repeated indices add up."""
def scatter_reduce(input: Tensor, dim: builtins.int, index: Any, src: Any, reduce: str, *, include_self: builtins.bool = ...) -> Tensor:
    """A copy in which every place along ``dim`` that an index names combines what is there with what is scattered there."""
def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: builtins.bool = ..., right: builtins.bool = ..., side: str | None = ..., sorter: Tensor | None = ..., out: Tensor | None = ...) -> Tensor:
    """Where the values would be inserted along the last axis to keep it sorted."""
def seed(*args: object) -> builtins.int:
    """Start the random numbers anew, from the system's entropy; returns the seed."""
def select(input: TensorLike, dim: builtins.int, index: builtins.int) -> Tensor:
    """The entry at ``index`` along ``dim``, which is removed; a view."""
def select_copy(input: TensorLike, dim: builtins.int, index: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """As :func:`select`, but a copy that shares no memory with the tensor."""
def select_scatter(input: Tensor, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
    """A copy with the entry at ``index`` along ``dim`` exchanged for ``src``: ``select``, written to."""
def selu(input: Tensor, inplace: builtins.bool = ...) -> Tensor:
    """The scaled elu that keeps mean 0 and variance 1 (Klambauer and others, 2017)."""
def selu_(input: Tensor, *args: object, **kwargs: object) -> Tensor:
    """In-place form of :func:`selu`."""
def set_anomaly_enabled(mode: builtins.bool, check_nan: builtins.bool = ...) -> None:
    """Switch this thread's anomaly mode on or off."""
def set_default_device(device: DeviceLike) -> None:
    """Have this thread's new tensors on a device, such as "cuda"; what ``device=`` or ``with device(...)`` say goes before."""
def set_default_dtype(d: object) -> None:
    """Set the dtype that Python floats become, and the one that ``repr`` leaves out."""
def set_default_tensor_type(t: Any) -> None:
    """PyTorch's old :func:`set_default_dtype`: ``FloatTensor`` or ``DoubleTensor``, or the name of one."""
def set_float32_matmul_precision(precision: str) -> None:
    """Nothing to do: products of float32 matrices are as exact as float32 is, which "high" and "medium" allow, too."""
def set_num_threads(count: builtins.int) -> None:
    """How many threads share a large step of a compiled function; the environment's ``CHAINRULE_THREADS`` says it first."""
def set_printoptions(precision: builtins.int | None = ..., threshold: builtins.float | None = ..., edgeitems: builtins.int | None = ..., linewidth: builtins.int | None = ..., profile: str | None = ..., sci_mode: builtins.bool | None = ...) -> None:
    """Set how tensors print; what is left out stays as it is, except ``sci_mode``."""
def set_rng_state(state: Params) -> None:
    """Go back to a state of the default generator."""
def sgn(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """The sign; of a complex number its direction z/|z| (0 at 0)."""
short: _dtype
def sigmoid(input: Any, *, out: Any = ...) -> Any:
    """The logistic function 1 / (1 + exp(−x)), without overflow."""
def sign(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """−1, 0 or 1; of booleans themselves."""
def signbit(input: Any, *, out: Any = ...) -> Any:
    """Whether the sign bit is set."""
def sin(input: Any, *, out: Any = ...) -> Any:
    """Sine, of radians."""
def sinc(input: Any, *, out: Any = ...) -> Any:
    """sin(πx) / (πx), and 1 at 0."""
def sinh(input: Any, *, out: Any = ...) -> Any:
    """Hyperbolic sine."""
def slice_copy(input: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
    """As :func:`slice`, but a copy that shares no memory with the tensor."""
def slice_scatter(input: Tensor, src: Tensor, dim: builtins.int = ..., start: builtins.int | None = ..., end: builtins.int | None = ..., step: builtins.int = ...) -> Tensor:
    """A copy with the entries from ``start`` to ``end`` along ``dim``, every ``step``, exchanged for those of ``src``."""
def slogdet(A: Tensor, *, out: Tensor | None = ...) -> Any:
    """Sign and logarithm of the absolute value of the determinant, as ``(sign, logabsdet)``."""
def softmax(input: TensorLike, dim: builtins.int | None = ..., dtype: DTypeLike = ...) -> Tensor:
    """exp(x) / Σ exp(x) along ``dim``: positive, and 1 in sum."""
def sort(input: TensorLike, dim: builtins.int = ..., descending: builtins.bool = ..., *, stable: builtins.bool | None = ..., out: Tensor | None = ...) -> Any:
    """Sorted values along ``dim``, and where they came from; equal elements keep their order."""
def split(tensor: TensorLike, split_size_or_sections: Any, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """Pieces along ``dim``: of a size (the last may be smaller), or of the sizes listed. Each is a view."""
def split_copy(tensor: TensorLike, split_size_or_sections: Any, dim: builtins.int = ..., *, out: Tensor | None = ...) -> tuple[Tensor, ...]:
    """As :func:`split`, but a copy that shares no memory with the tensor."""
def split_with_sizes(tensor: TensorLike, split_sizes: object, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """Pieces of the sizes listed, along ``dim``."""
def split_with_sizes_copy(tensor: TensorLike, split_sizes: object, dim: builtins.int = ..., *, out: Tensor | None = ...) -> tuple[Tensor, ...]:
    """As :func:`split_with_sizes`, but a copy that shares no memory with the tensor."""
def sqrt(input: Any, *, out: Any = ...) -> Any:
    """Square root; the derivative at 0 is infinite."""
def square(input: Any, *, out: Any = ...) -> Any:
    """The square of every element."""
def squeeze(input: TensorLike, dim: Any = ...) -> Tensor:
    """Axes of length 1 removed: all of them, or those of ``dim`` that are."""
def squeeze_copy(input: TensorLike, dim: Any = ..., *, out: Tensor | None = ...) -> Tensor:
    """As :func:`squeeze`, but a copy that shares no memory with the tensor."""
def stack(tensors: object, dim: builtins.int = ..., *, axis: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor:
    """Tensors of one shape, side by side along a new axis."""
def std(input: TensorLike, dim: Dims = ..., unbiased: Any = ..., keepdim: builtins.bool = ..., *, correction: Any = ..., out: Tensor | None = ...) -> Tensor:
    """Standard deviation over ``dim``: the square root of :func:`var`; its gradient where it is 0 is 0."""
def std_mean(input: TensorLike, dim: Dims = ..., unbiased: Any = ..., keepdim: builtins.bool = ..., *, correction: Any = ..., out: Tensor | None = ...) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean."""
def stft(input: Tensor, n_fft: builtins.int, hop_length: builtins.int | None = ..., win_length: builtins.int | None = ..., window: Tensor | None = ..., center: builtins.bool = ..., pad_mode: str = ..., normalized: builtins.bool = ..., onesided: builtins.bool | None = ..., return_complex: builtins.bool | None = ..., align_to_window: builtins.bool | None = ...) -> Tensor:
    """The Fourier transforms of windowed pieces of ``n_fft`` points, every ``hop_length``."""
strided: _layout
def sub(input: TensorLike, other: TensorLike, *old: Any, alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """input − alpha·other."""
def subtract(input: TensorLike, other: TensorLike, *old: Any, alpha: TensorLike = ..., out: Tensor | None = ...) -> Tensor:
    """input − alpha·other."""
def sum(input: TensorLike, dim: Dims = ..., keepdim: builtins.bool = ..., *, dtype: DTypeLike = ..., axis: Dims = ..., keepdims: builtins.bool | None = ..., out: Tensor | None = ...) -> Tensor:
    """Sum over ``dim`` (an int, a tuple, or None for everything). Booleans and integers are summed as int64."""
def svd(input: Tensor, some: builtins.bool = ..., compute_uv: builtins.bool = ...) -> Any:
    """As :func:`linalg.svd`, but with V itself: input = U @ diag(S) @ Vᴴ."""
def swapaxes(input: TensorLike, dim0: object, dim1: object = ...) -> Tensor:
    """Two axes exchanged; a tuple of all axes is their new order, as in NumPy."""
def swapdims(input: TensorLike, dim0: object, dim1: object = ...) -> Tensor:
    """Two axes exchanged; a tuple of all axes is their new order, as in NumPy."""
def t(input: TensorLike) -> Tensor:
    """The transpose of a matrix (a vector or number is returned as it is)."""
def t_copy(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """As :func:`t`, but a copy that shares no memory with the tensor."""
def take(input: Tensor, index: Any, *, out: Tensor | None = ...) -> Tensor:
    """Elements at indices into the flattened tensor (negative ones count from the end)."""
def take_along_dim(input: Tensor, indices: Tensor, dim: builtins.int | None = ..., *, out: Tensor | None = ...) -> Tensor:
    """Elements at indices along ``dim``; the other axes broadcast (``np.take_along_axis``)."""
def tan(input: Any, *, out: Any = ...) -> Any:
    """Tangent, of radians."""
def tanh(input: Any, *, out: Any = ...) -> Any:
    """Hyperbolic tangent."""
def tensor(data: Any, *, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ..., pin_memory: builtins.bool = ...) -> Tensor:
    """A tensor with a copy of the data."""
def tensor_split(input: Tensor, indices_or_sections: Any, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """Pieces as ``np.array_split`` makes them: so many of nearly equal size, or cut at indices."""
def tensordot(a: Tensor, b: Tensor, dims: Any = ...) -> Tensor:
    """Products summed over pairs of axes: the last ``dims`` of a with the first of b, or two lists of axes."""
def threshold(input: Tensor, threshold: builtins.float, value: builtins.float, inplace: builtins.bool = ...) -> Tensor:
    """x where it is over the threshold, else ``value``."""
def threshold_(input: Tensor, *args: object, **kwargs: object) -> Tensor:
    """In-place form of :func:`threshold`."""
def tile(input: Tensor, *times: Any, dims: Dims = ...) -> Tensor:
    """As :func:`repeat`, with missing repeats counted as 1."""
def topk(input: TensorLike, k: builtins.int, dim: builtins.int = ..., largest: builtins.bool = ..., sorted: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """The k largest (or smallest) elements along ``dim``, and their indices."""
def trace(input: TensorLike) -> Tensor:
    """The sum of the diagonal of a matrix."""
def transpose(input: TensorLike, dim0: object, dim1: object = ...) -> Tensor:
    """Two axes exchanged; a tuple of all axes is their new order, as in NumPy."""
def transpose_copy(input: TensorLike, dim0: object, dim1: object = ..., *, out: Tensor | None = ...) -> Tensor:
    """As :func:`transpose`, but a copy that shares no memory with the tensor."""
def trapezoid(y: Any, x: TensorLike | None = ..., *, dx: TensorLike | None = ..., dim: builtins.int = ...) -> Tensor:
    """The integral along ``dim`` by the trapezoidal rule."""
def trapz(y: Any, x: TensorLike | None = ..., *, dx: TensorLike | None = ..., dim: builtins.int = ...) -> Tensor:
    """The integral along ``dim`` by the trapezoidal rule."""
def triangular_solve(b: Tensor, A: Tensor, upper: builtins.bool = ..., transpose: builtins.bool = ..., unitriangular: builtins.bool = ..., *, out: Tensor | None = ...) -> Any:
    """As :func:`linalg.solve_triangular`, with the right side first; A is returned, too."""
def tril(input: TensorLike, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
    """The lower triangle of matrices, up to a diagonal; zeros elsewhere."""
def tril_indices(row: builtins.int, col: builtins.int, offset: builtins.int = ..., *, dtype: DTypeLike = ..., device: DeviceLike = ...) -> Tensor:
    """Row and column indices of the lower triangle."""
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: builtins.float = ..., p: builtins.float = ..., eps: builtins.float = ..., swap: builtins.bool = ..., reduction: object = ...) -> Tensor:
    """As :func:`nn.functional.triplet_margin_loss`."""
def triu(input: TensorLike, diagonal: builtins.int = ..., *, out: Tensor | None = ...) -> Tensor:
    """The upper triangle of matrices, from a diagonal; zeros elsewhere."""
def triu_indices(row: builtins.int, col: builtins.int, offset: builtins.int = ..., *, dtype: DTypeLike = ..., device: DeviceLike = ...) -> Tensor:
    """Row and column indices of the upper triangle."""
def true_divide(input: Any, other: Any, *, out: Any = ...) -> Any:
    """Quotient, element by element. Integers are divided as floats of the default dtype."""
def trunc(input: Any, *, out: Any = ...) -> Any:
    """The integer part."""
uint16: _dtype
uint32: _dtype
uint64: _dtype
uint8: _dtype
def unbind(input: TensorLike, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """All entries along ``dim``, each a view."""
def unbind_copy(input: TensorLike, dim: builtins.int = ..., *, out: Tensor | None = ...) -> tuple[Tensor, ...]:
    """As :func:`unbind`, but a copy that shares no memory with the tensor."""
def unflatten(input: Tensor, dim: builtins.int, sizes: Any) -> Tensor:
    """One axis split into several."""
def unfold(input: TensorLike, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
    """Windows of ``size`` along a dimension, every ``step``, as a new last axis (a view)."""
def unfold_copy(input: TensorLike, dimension: builtins.int, size: builtins.int, step: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """As :func:`unfold`, but a copy that shares no memory with the tensor."""
def unique(input: Tensor, sorted: builtins.bool = ..., return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any:
    """The distinct elements, in order. Of equal ones, the first gets the gradient."""
def unique_consecutive(input: Tensor, return_inverse: builtins.bool = ..., return_counts: builtins.bool = ..., dim: builtins.int | None = ...) -> Any:
    """The elements (or entries along ``dim``) without those that equal the one before, which gets the gradient."""
def unravel_index(indices: TensorLike, shape: Any) -> tuple[Tensor, ...]:
    """Indices into a flattened tensor of that shape, as one tensor of indices for each axis."""
def unsafe_chunk(input: TensorLike, chunks: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """As :func:`chunk`, but the pieces may be written to in place, each with a history of its own."""
def unsafe_split(tensor: TensorLike, split_size: builtins.int, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """As :func:`split`, but the pieces may be written to in place, each with a history of its own."""
def unsafe_split_with_sizes(tensor: TensorLike, split_sizes: object, dim: builtins.int = ...) -> tuple[Tensor, ...]:
    """As :func:`split_with_sizes`, but the pieces may be written to in place, each with a history of its own."""
def unsqueeze(input: TensorLike, dim: builtins.int) -> Tensor:
    """A new axis of length 1 at ``dim``."""
def unsqueeze_copy(input: TensorLike, dim: builtins.int, *, out: Tensor | None = ...) -> Tensor:
    """As :func:`unsqueeze`, but a copy that shares no memory with the tensor."""
def use_deterministic_algorithms(mode: builtins.bool, *, warn_only: builtins.bool = ...) -> None:
    """Nothing to do: the same program computes the same numbers."""
def value_and_grad(func: AnyFunction, argnums: builtins.int | tuple[builtins.int, ...] = ..., has_aux: builtins.bool = ...) -> AnyFunction:
    """Return a function like that of :func:`grad` that returns ``(value, gradient)``, as ``scipy.optimize.minimize(..., jac=True)`` needs."""
def vander(x: Tensor, N: builtins.int | None = ..., increasing: builtins.bool = ...) -> Tensor:
    """The powers of a vector's elements, as columns."""
def var(input: TensorLike, dim: Dims = ..., unbiased: Any = ..., keepdim: builtins.bool = ..., *, correction: builtins.int | None = ..., out: Tensor | None = ...) -> Tensor:
    """Variance over ``dim``, divided by n − correction (1 by default; 0 with ``unbiased=False``)."""
def var_mean(input: TensorLike, dim: Dims = ..., unbiased: Any = ..., keepdim: builtins.bool = ..., *, correction: Any = ..., out: Tensor | None = ...) -> tuple[Tensor, Tensor]:
    """Variance and mean."""
def vdot(input: TensorLike, other: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """The inner product of two vectors, the first conjugated."""
def view_as_complex(input: TensorLike) -> Tensor:
    """Pairs (real part, imaginary part) along the last axis as complex numbers: a view."""
def view_as_complex_copy(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """As :func:`view_as_complex`, but a copy that shares no memory with the tensor."""
def view_as_real(input: TensorLike) -> Tensor:
    """Complex numbers as pairs (real part, imaginary part) along a new last axis: a view."""
def view_as_real_copy(input: TensorLike, *, out: Tensor | None = ...) -> Tensor:
    """As :func:`view_as_real`, but a copy that shares no memory with the tensor."""
def view_copy(input: TensorLike, *sizes: Any, size: Any = ..., out: Tensor | None = ...) -> Tensor:
    """As :func:`view`, but a copy that shares no memory with the tensor."""
def vjp(func: AnyFunction, *primals: object, has_aux: builtins.bool = ...) -> Any:
    """Return ``func(*primals)`` and the function that pulls a cotangent of its output back to the primals."""
def vmap(func: AnyFunction, in_dims: object = ..., out_dims: object = ..., randomness: str = ..., *, chunk_size: builtins.int | None = ...) -> AnyFunction:
    """Return a function that applies ``func`` to all entries along an axis of its arguments at once."""
def vsplit(input: TensorLike, indices_or_sections: object) -> tuple[Tensor, ...]:
    """Cut between rows."""
def vstack(tensors: object, *, out: Tensor | None = ...) -> Tensor:
    """One above another: along the first axis (vectors become rows)."""
def where(condition: Any, input: Any = ..., other: Any = ..., *, out: Tensor | None = ...) -> Any:
    """``input`` where the condition holds, else ``other``; with the condition alone, the indices where it does."""
def while_loop(cond_fun: Callable[[Any], object], body_fun: Callable[[Any], object], init_val: TensorLike) -> Any:
    """``val = body_fun(val)`` as long as ``cond_fun(val)``."""
def xlogy(input: Any, other: Any, *, out: Any = ...) -> Any:
    """x·log(y), and 0 where x is 0 (unless y is nan)."""
def zeros(*size: ShapeLike, dtype: Any = ..., device: Any = ..., requires_grad: builtins.bool = ..., layout: object = ...) -> Tensor:
    """Zeros of a shape."""
def zeros_like(input: Tensor, *, dtype: DTypeLike = ..., device: Any = ..., requires_grad: builtins.bool = ..., memory_format: object = ...) -> Tensor:
    """Zeros of another tensor's shape and dtype."""
__version__: str
