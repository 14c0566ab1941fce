"""Matrix and tensor products, composed of mm, bmm, mv, dot, and moves of axes.

``op`` makes these functions public: ``chainrule.matmul``, ``chainrule.vdot`` …
"""

from __future__ import annotations

import functools
import math
from typing import Any, TypeVar
from typing import cast as cast_type

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.api.functions import new
from chainrule._src.api.operands import operand
from chainrule._src.api.operations import dispatch_by_rank
from chainrule._src.arrays.shapes import shape_of
from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyDType, TensorLike
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops.arguments import takes_tensors, tensor_of
from chainrule._src.ops.shaping import expand
from chainrule._src.table import contraction
from chainrule._src.table import shape as moves
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.eager import NO_PARAMS, new_node
from chainrule._src.tape.modes import ACTIVE_MODES
from chainrule._src.tape.protocol import ArrayLike
from chainrule._src.tape.tensor import Tensor

ndarray = np.ndarray
F = TypeVar("F", bound=AnyFunction)
_mm, _bmm = contraction.mm, contraction.bmm
#: ranks of the operands -> the primitive, where one node that saves both operands suffices
BY_RANKS = {
    (2, 2): _mm,
    (2, 1): contraction.mv,
    (1, 2): contraction.vm,
    (1, 1): contraction.dot,
    (3, 3): _bmm,
    (3, 2): contraction.stack_mm,
    (4, 2): contraction.stack_mm,
}
float32, float64 = np.dtype(np.float32), np.dtype(np.float64)


def _checked(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    arrays = isinstance(x, ndarray) or isinstance(y, ndarray)
    x, y = operand(name, 0, x), operand(name, 1, y)
    for position, z in enumerate((x, y)):
        if not hasattr(z, "dtype"):
            raise errors.wrong_operand(name, position, z)
    if not isinstance(x, (Tensor, ArrayLike)) and not isinstance(y, (Tensor, ArrayLike)):
        raise errors.wrong_operand(name, 0, x)
    if x.dtype != y.dtype and arrays:  # the NumPy-style API promotes
        dtype = np.result_type(x.dtype, y.dtype)
        x, y = cast(x, dtype), cast(y, dtype)
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {_c_name(x.dtype)} != {_c_name(y.dtype)}. {name} "
            f"does not promote: convert one with .to({y.dtype}) or .to({x.dtype}) (np.matmul promotes)."
        )
    if x.dtype == np.bool_:
        raise errors.no_kernel(name, x.dtype, "iufc")
    return x, y


def _c_name(dtype: NumpyDType) -> str:
    return {"float32": "float", "float64": "double", "int64": "long int", "int32": "int"}.get(dtype.name, dtype.name)


@op("matmul linalg.matmul", method=True, out=True, sample="rand(5, 2, 3), rand(3, 4)")
def matmul(input: Any, other: Any) -> Tensor:
    """Return the matrix product ``input @ other`` of vectors, matrices, or stacks of matrices (leading axes broadcast).

    Raises:
        RuntimeError: the inner sizes differ, or the dtypes do.

    >>> import chainrule as cr
    >>> cr.matmul(cr.ones(2, 3), cr.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    if type(input) is Tensor and type(other) is Tensor and not ACTIVE_MODES:
        x, y = input._raw, other._raw
        if (
            type(x) is ndarray
            and type(y) is ndarray
            and ((dtype := x.dtype) is float32 or dtype is float64)
            and y.dtype is dtype
            and (prim := BY_RANKS.get((x.ndim, y.ndim))) is not None
        ):
            ex, ey = input._edge, other._edge
            if (ex is not None or ey is not None) and (prim is not _bmm or x.shape[0] == y.shape[0]):
                try:
                    result = x.dot(y) if y.ndim < 3 and x.ndim < 3 else prim.value(x, y)
                except ValueError:
                    raise errors.matmul_shapes("matmul", input, other) from None
                if type(result) is not ndarray:
                    result = np.asarray(result)
                saved = (None if ex is None else y, None if ey is None else x)
                tensor = new(Tensor)
                tensor._raw = result
                tensor._edge = new_node(prim, NO_PARAMS, (ex, ey), saved)
                return tensor
    return product("matmul", *_checked("matmul", input, other))


def product(name: str, x: AnyArray, y: AnyArray) -> Any:
    """Compute ``np.matmul`` of any array-likes, by the primitives for their ranks."""
    a, b = shape_of(x), shape_of(y)
    if not a or not b:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D: use * to multiply by a number"
        )
    if a[-1] != (b[-2] if len(b) > 1 else b[0]):
        raise errors.matmul_shapes(name, x, y)
    if len(a) == 1 and len(b) == 1:
        return bind(contraction.dot, (x, y), {})
    if len(a) == 1:
        if len(b) == 2:
            return bind(contraction.vm, (x, y), {})
        return _without_axis(product(name, x[None, :], y), -2)
    if len(b) == 1:
        if len(a) == 2:
            return bind(contraction.mv, (x, y), {})
        return _without_axis(product(name, x, y[:, None]), -1)
    if len(a) == 2 and len(b) == 2:
        return bind(contraction.mm, (x, y), {})
    if len(b) == 2:
        return bind(contraction.stack_mm, (x, y), {})
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise errors.matmul_shapes(name, x, y) from None
    x, y = _expand(x, (*batch, *a[-2:])), _expand(y, (*batch, *b[-2:]))
    if len(batch) == 1:
        return bind(contraction.bmm, (x, y), {})
    n = math.prod(batch)
    x, y = _reshape(x, (n, *a[-2:])), _reshape(y, (n, *b[-2:]))
    return moves.unsafe_view(bind(contraction.bmm, (x, y), {}), shape=(*batch, a[-2], b[-1]))


def _without_axis(x: AnyArray, axis: int) -> Tensor:
    """Remove an axis of length 1 from a new result, which is not recorded as a view."""
    shape = list(shape_of(x))
    del shape[axis]
    return moves.unsafe_view(x, shape=tuple(shape))


def _reshape(x: AnyArray, shape: tuple[int, ...]) -> Any:
    return x if shape_of(x) == shape else moves.view(x, shape=shape)


def _expand(x: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    return x if shape_of(x) == shape else moves.expand(x, shape=shape)


def numpy_matmul(x: AnyArray, y: AnyArray) -> AnyArray:
    """Compute ``np.matmul`` on array-likes, with NumPy's dtype promotion."""
    return product("matmul", x, y)


def _rank_checked(name: str, second: str, ranks: tuple[int, int], what: str, doc: str) -> Any:
    def function(input: TensorLike, other: TensorLike) -> Tensor:
        x, y = _checked(name, input, other)
        for position, (z, rank) in enumerate(zip((x, y), ranks, strict=True)):
            if z.ndim != rank:
                names = ("self", second if name != "dot" else "mat2")
                raise RuntimeError(
                    f"{names[position]} must be a {what.split('|')[position]}: {name} got shapes "
                    f"{tuple(x.shape)} and {tuple(y.shape)}; matmul takes any rank"
                )
        if name == "bmm" and x.shape[0] != y.shape[0]:
            raise RuntimeError(
                f"Expected size for first two dimensions of batch2 tensor to be: [{x.shape[0]}, {x.shape[2]}] but got: "
                f"[{y.shape[0]}, {y.shape[1]}]."
            )
        return product(name, x, y)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    ordinary = dispatch_by_rank({ranks: BY_RANKS[ranks]}, function)
    return op(method=True, out=True, also={second: "other"}, ordinary=ordinary)(function)


mm = _rank_checked("mm", "mat2", (2, 2), "matrix|matrix", "Return the product of two matrices.")
bmm = _rank_checked(
    "bmm", "mat2", (3, 3), "3D tensor|3D tensor", "Return the matrix products of two stacks of matrices."
)
mv = _rank_checked("mv", "vec", (2, 1), "matrix|vector", "Return the product of a matrix and a vector.")
dot = _rank_checked("dot", "tensor", (1, 1), "1D tensor|1D tensor", "Return the inner product of two vectors.")


@op(method=True, out=True)
def vdot(input: TensorLike, other: TensorLike) -> Tensor:
    """Return the inner product of two vectors, the first conjugated."""
    return dot(ew.conj(input), other)


@op(method=True, out=True)
def inner(input: TensorLike, other: TensorLike) -> Tensor:
    """Return the sums of products over the last axes of both tensors."""
    if not getattr(input, "ndim", 1) or not getattr(other, "ndim", 1):
        return ew.mul(input, other)
    x, y = _checked("inner", input, other)
    return tensordot(x, y, ([-1], [-1]))


@op("outer ger", method=True, out=True)
def outer(input: TensorLike, vec2: TensorLike) -> Tensor:
    """Return the outer product of two vectors, of shape (n, m).

    >>> import chainrule as cr
    >>> cr.outer(cr.tensor([1., 2.]), cr.tensor([1., 10.]))
    tensor([[ 1., 10.],
            [ 2., 20.]])
    """
    x, y = operand("outer", 0, input), operand("outer", 1, vec2)
    if getattr(x, "ndim", 0) != 1 or getattr(y, "ndim", 0) != 1:
        raise RuntimeError(
            f"outer: Expected 1-D argument self and vec2, but got shapes {shape_of(x)} and {shape_of(y)}: flatten() "
            "them"
        )
    return ew.mul(moves.unsqueeze(x, axis=(-1,)), y)


ger = outer


def _factors_first(function: F) -> F:
    """Wrap a function to accept the factors in the position of a deprecated signature: ``addmm(beta, input, alpha, x, y)``."""

    @functools.wraps(function)
    def call(*args: object, **options: object) -> object:
        if len(args) > 3:
            at = [i for i, x in enumerate(args) if isinstance(x, (int, float, complex))]
            if len(args) != 3 + len(at) or at not in ([0], [0, 2], [1], [1, 2]) or {"beta", "alpha"} & options.keys():
                raise TypeError(
                    f"{function.__name__}() takes 3 positional arguments but {len(args)} were given: the factors are beta=..., alpha=..."
                )
            errors.warn(
                f"This overload of {function.__name__} is deprecated: {function.__name__}(Number beta, Tensor input, Number "
                "alpha, ...). Give the factors last, as beta=..., alpha=..."
            )
            options.update(zip(("beta", "alpha"), [args[i] for i in at], strict=False))
            args = tuple([x for i, x in enumerate(args) if i not in at])
        return function(*args, **options)

    return cast_type("F", call)


@op(method=True, in_place=True, out=True, sample="rand(2, 4), rand(2, 3), rand(3, 4)")
@_factors_first
def addmm(
    input: TensorLike, mat1: TensorLike, mat2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1
) -> Tensor:
    """Return beta·input + alpha·(mat1 @ mat2)."""
    return _scaled_sum(input, mm(mat1, mat2), beta, alpha)


@op(method=True, in_place=True, out=True, sample="rand(2), rand(2, 3), rand(3)")
@_factors_first
def addmv(
    input: TensorLike, mat: TensorLike, vec: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1
) -> Tensor:
    """Return beta·input + alpha·(mat @ vec)."""
    return _scaled_sum(input, mv(mat, vec), beta, alpha)


@op(method=True, in_place=True, out=True, sample="rand(2, 3), rand(2), rand(3)")
@_factors_first
def addr(
    input: TensorLike, vec1: TensorLike, vec2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1
) -> Tensor:
    """Return beta·input + alpha·outer(vec1, vec2)."""
    pairs = outer(vec1, vec2)
    if pairs.dtype.kind in "biu" and (isinstance(beta, float) or isinstance(alpha, float)):
        which = "beta" if isinstance(beta, float) else "alpha"
        raise RuntimeError(f"For integral input tensors, argument {which} must not be a floating point number.")
    if pairs.dtype == np.bool_:
        pairs = ew.logical_and(pairs, bool(alpha))
        return ew.logical_or(ew.logical_and(input, True), pairs) if beta else pairs
    return _scaled_sum(input, pairs, beta, alpha)


@op(method=True, in_place=True, out=True, sample="rand(5, 2, 4), rand(5, 2, 3), rand(5, 3, 4)")
@_factors_first
def baddbmm(
    input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1
) -> Tensor:
    """Return beta·input + alpha·(batch1 @ batch2)."""
    return _scaled_sum(input, bmm(batch1, batch2), beta, alpha)


@op(method=True, in_place=True, out=True, sample="rand(2, 4), rand(5, 2, 3), rand(5, 3, 4)")
@_factors_first
def addbmm(
    input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1
) -> Tensor:
    """Return beta·input + alpha·Σ_b (batch1[b] @ batch2[b])."""
    products = bmm(batch1, batch2)
    return _scaled_sum(input, products.sum(0, dtype=products.dtype), beta, alpha)


def _scaled_sum(x: Any, y: Tensor, beta: Any, alpha: Any) -> Tensor:
    if shape_of(x) != (shape := shape_of(y)):
        x = expand(x, shape)  # input broadcasts to the shape of the product; the product does not broadcast
    if y.dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)  # keeps integer dtypes
    y = y if alpha == 1 else ew.mul(y, alpha)
    if beta == 0:
        return y
    return ew.add(x if beta == 1 else ew.mul(x, beta), y)


@op(out=True, sample="rand(2, 3), rand(3, 4), rand(4, 5)")
@takes_tensors
def chain_matmul(*matrices: Tensor) -> Tensor:
    """Return the product of several matrices, in the cheapest order."""
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return moves.alias(matrices[0]) if len(matrices) == 1 else multi_dot(list(matrices))


def multi_dot(tensors: Any) -> Tensor:
    """Return the product of several matrices, in the order that takes the fewest multiplications."""
    ts = [tensor_of("multi_dot", t) for t in tensors]
    if len(ts) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(len(ts)))
    for i, t in enumerate(ts):
        if t.ndim != 2 and not (t.ndim == 1 and i in (0, len(ts) - 1)):
            raise RuntimeError(
                f"multi_dot(): tensor {i} must be 2D but got {t.ndim}D: only the first and the last may be 1D"
            )
    first, last = ts[0], ts[-1]
    if first.ndim == 1:
        ts[0] = first.unsqueeze(0)
    if last.ndim == 1:
        ts[-1] = last.unsqueeze(1)
    n = len(ts)
    sizes = [t.shape[0] for t in ts] + [ts[-1].shape[1]]
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    result = _product_of(ts, split, 0, n - 1)
    if first.ndim == 1:
        result = result.squeeze(0)
    return result.squeeze(-1) if last.ndim == 1 else result


def _product_of(ts: list[Tensor], split: list[list[int]], i: int, j: int) -> Tensor:
    """Return the product of matrices i to j, split after matrix ``split[i][j]``."""
    if i == j:
        return ts[i]
    k = split[i][j]
    return matmul(_product_of(ts, split, i, k), _product_of(ts, split, k + 1, j))


@op(also={"axes": "dims"}, sample="rand(2, 3), rand(3, 4), 1")
@takes_tensors
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Sum products over pairs of axes: the last ``dims`` axes of a and the first of b, or two lists of axes."""
    x, y = operand("tensordot", 0, a), operand("tensordot", 1, b)
    if isinstance(dims, int):
        if dims < 0 or dims > min(x.ndim, y.ndim):
            raise RuntimeError(f"tensordot expects dims >= 0 and at most the operands' ranks, but got dims={dims}")
        left, right = list(range(x.ndim - dims, x.ndim)), list(range(dims))
    else:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
        left = [errors.check_dim("tensordot", d, x.ndim) for d in left]
        right = [errors.check_dim("tensordot", d, y.ndim) for d in right]
    sx, sy = shape_of(x), shape_of(y)
    if len(left) == len(right):  # an axis of length 1 broadcasts, so sum over its partner first
        alone_x = [i for i, j in zip(left, right, strict=True) if sy[j] == 1 and sx[i] > 1]
        alone_y = [j for i, j in zip(left, right, strict=True) if sx[i] == 1 and sy[j] > 1]
        x = x.sum(alone_x, keepdim=True, dtype=x.dtype) if alone_x else x
        y = y.sum(alone_y, keepdim=True, dtype=y.dtype) if alone_y else y
        sx, sy = shape_of(x), shape_of(y)
    if len(left) != len(right) or any(sx[i] != sy[j] for i, j in zip(left, right, strict=True)):
        raise RuntimeError(
            f"contracted dimensions need to match, but the axes {left} of {tuple(sx)} have sizes "
            f"{[sx[i] for i in left]} and the axes {right} of {tuple(sy)} have {[sy[j] for j in right]}"
        )
    keep_x = [i for i in range(x.ndim) if i not in left]
    keep_y = [j for j in range(y.ndim) if j not in right]
    inner_size = int(np.prod([sx[i] for i in left], dtype=int))
    flat_x = _reshape(_permute(x, keep_x + left), (int(np.prod([sx[i] for i in keep_x], dtype=int)), inner_size))
    flat_y = _reshape(_permute(y, right + keep_y), (inner_size, int(np.prod([sy[j] for j in keep_y], dtype=int))))
    return _reshape(matmul(flat_x, flat_y), tuple(sx[i] for i in keep_x) + tuple(sy[j] for j in keep_y))


def _permute(x: AnyArray, axes: list[int]) -> AnyArray:
    return x if axes == sorted(axes) else moves.permute(x, axes=tuple(axes))


@op(method=True, out=True)
def kron(input: TensorLike, other: TensorLike) -> Tensor:
    """Return the Kronecker product."""
    input, other = tensor_of("kron", input), tensor_of("kron", other)
    n = max(input.ndim, other.ndim)
    a = input.reshape((1,) * (n - input.ndim) + tuple(input.shape))
    b = other.reshape((1,) * (n - other.ndim) + tuple(other.shape))
    shape_a = [s for length in a.shape for s in (length, 1)]
    shape_b = [s for length in b.shape for s in (1, length)]
    outer_product = ew.mul(a.reshape(shape_a), b.reshape(shape_b))
    return moves.unsafe_view(outer_product, shape=tuple(p * q for p, q in zip(a.shape, b.shape, strict=True)))


@op(method=True)
def trace(input: TensorLike) -> Tensor:
    """Return the sum of the diagonal of a matrix."""
    input = tensor_of("trace", input)
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got input with dim {input.ndim}")
    return moves.diagonal(input, offset=0, axis1=-2, axis2=-1).sum()
