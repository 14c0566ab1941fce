"""``grid_sample`` and ``affine_grid``, pairwise distances, and ``embedding_bag``.

``chainrule.nn.functional`` exports these functions.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.arrays.any_array import is_array, lies_within
from chainrule._src.arrays.types import AnyArray
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import gathering, products, reductions, shaping
from chainrule._src.ops.arguments import constant_on_device_of, takes_tensors, tensor_of
from chainrule._src.table.pooling import bag_argmax
from chainrule._src.tape.dispatch import bind, cast
from chainrule._src.tape.tensor import Tensor
from chainrule._src.tape.ties import tie_cotangents
from chainrule.nn.layers import embedding

# -- grid_sample -----------------------------------------------------------------------------------------------------


def _pixels(at: Tensor, size: int, align: bool) -> Tensor:
    """Convert coordinates from −1 to 1 to pixel positions."""
    scale = (size - 1) / 2 if align else size / 2
    return at * scale + (size - 1) / 2


def _clamp_to(at: Tensor, low: float, high: float) -> Tensor:
    """Clamp, with zero gradient at and beyond the bounds."""
    inside = (at > low) & (at < high)
    return ew.where(inside, at, ew.clamp(at.detach(), low, high))


def _reflect(at: Tensor, size: int, align: bool) -> Tensor:
    """Reflect positions at the borders until they are inside."""
    low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
    if span == 0:
        return at * 0
    away = ew.abs(at - low)
    turns = ew.floor(away.detach() / span)
    rest = away - turns * span
    odd = ew.remainder(turns, 2) == 1
    return ew.where(odd, span - rest, rest) + low


def _apply_padding(at: Tensor, size: int, mode: str, align: bool) -> Tensor:
    if mode == "zeros":
        return at
    if mode == "reflection":
        at = _reflect(at, size, align)
    return _clamp_to(at, 0, size - 1)


def _gather_pixels(flat: Tensor, places: list[Tensor], spatial: tuple[int, ...]) -> Tensor:
    """Gather the elements at integer positions, with zeros outside: (n, channels, …) from (n, channels, elements)."""
    inside: Any = None
    index: Any = None
    for at, n in zip(places, spatial, strict=True):
        here = (at >= 0) & (at <= n - 1)
        inside = here if inside is None else inside & here
        whole = cast(ew.clamp(ew.nan_to_num(at), 0, n - 1), np.dtype(np.int64))
        index = whole if index is None else index * n + whole
    n, channels, _ = flat.shape
    shape = tuple(index.shape[1:])
    number = math.prod(shape)
    chosen = shaping.broadcast_to(index.reshape(n, 1, number), (n, channels, number))
    return gathering.gather(flat, -1, chosen).reshape(n, channels, *shape) * cast(inside.unsqueeze(1), flat.dtype)


def _cubic_weights(t: Tensor) -> list[Tensor]:
    """Return the weights of four neighbouring elements at the distance ``t`` from the second (Keys, 1981, a = −3/4)."""
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return (x * (a + 2) - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return (((x - 5) * x + 8) * x - 4) * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


@op(sample="rand(1, 2, 3, 4), rand(1, 2, 2, 2)")
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Interpolate the input at the positions in a grid.

    Args:
        input: (n, channels, height, width), or with a depth before the height.
        grid: (n, out_height, out_width, 2): x and y (and z) from −1 to 1; or (n, depth, height, width, 3).
        mode: "bilinear", "nearest", or "bicubic" (of images only).
        padding_mode: the values outside of the input: "zeros", "border" or "reflection".
        align_corners: −1 and 1 are the centres of the first and last elements; by default their outer edges.
    """
    name = "grid_sample"
    x, grid = tensor_of(name, input, "f"), tensor_of(name, grid, "f")
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    axes = x.ndim - 2
    if axes not in (2, 3) or grid.ndim != x.ndim or grid.shape[-1] != axes or grid.shape[0] != x.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions and batch size, and "
            f"{axes} coordinates for each position, but got input with sizes {list(x.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.dtype != x.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to have one dtype, but got {x.dtype} and {grid.dtype}: convert "
            f"with .to({x.dtype})"
        )
    if mode == "bicubic" and axes != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if 0 in x.shape[2:]:
        raise RuntimeError(
            f"grid_sampler(): expected input to have non-empty spatial dimensions, but got {list(x.shape)}"
        )
    align = bool(align_corners)
    spatial = tuple(x.shape[2:])
    flat = shaping.flatten(x, 2)
    places = [_pixels(grid[..., axes - 1 - i], n, align) for i, n in enumerate(spatial)]
    if mode == "bicubic":
        return _cubic_sample(flat, places, spatial, padding_mode, align)
    places = [_apply_padding(at, n, padding_mode, align) for at, n in zip(places, spatial, strict=True)]
    if mode == "nearest":
        return _gather_pixels(flat, [ew.round(at.detach()) for at in places], spatial)
    first = [ew.floor(at.detach()) for at in places]
    total: Any = None
    for corner in itertools.product((0, 1), repeat=axes):
        weight: Any = None
        for at, low, c in zip(places, first, corner, strict=True):
            along = at - low if c else low + 1 - at
            weight = along if weight is None else weight * along
        value = _gather_pixels(flat, [low + c for low, c in zip(first, corner, strict=True)], spatial)
        term = value * weight.unsqueeze(1)
        total = term if total is None else total + term
    return total


def _cubic_sample(flat: Tensor, places: list[Tensor], spatial: tuple[int, ...], padding: str, align: bool) -> Tensor:
    first = [ew.floor(at.detach()) for at in places]
    rows, columns = (_cubic_weights(at - low) for at, low in zip(places, first, strict=True))
    total: Any = None
    for i, j in itertools.product(range(4), repeat=2):
        taps = [low + (k - 1) for low, k in zip(first, (i, j), strict=True)]
        value = _gather_pixels(
            flat, [_apply_padding(at, n, padding, align) for at, n in zip(taps, spatial, strict=True)], spatial
        )
        term = value * (rows[i] * columns[j]).unsqueeze(1)
        total = term if total is None else total + term
    return total


@op(sample="rand(1, 2, 3), (1, 1, 2, 3)")
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Return the grid for :func:`grid_sample` that maps every position of an image through a matrix.

    Args:
        theta: (n, 2, 3) for images, (n, 3, 4) for volumes.
        size: the size of the output image, (n, channels, height, width), or with a depth.
    """
    theta = tensor_of("affine_grid", theta)
    n, *_ = whole = [int(n) for n in size]
    spatial = whole[2:]
    axes = len(spatial)
    if theta.dtype.kind != "f":
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if min(whole) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(whole)}")
    if axes not in (2, 3) or tuple(theta.shape[1:]) != (axes, axes + 1):
        raise ValueError(
            f"Expected a batch of {axes}D affine matrices of shape Nx{axes}x{axes + 1} for size {list(size)}. Got {list(theta.shape)}."
        )
    if theta.shape[0] != n:
        raise RuntimeError(
            f"affine_grid: expected a matrix for each of the {n} examples of size {whole}, but got theta of size "
            f"{list(theta.shape)}"
        )
    lines = []
    for m in spatial:
        line = np.linspace(-1, 1, m) if m > 1 else np.zeros(1)
        lines.append(line if align_corners else line * (m - 1) / m)
    mesh = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*mesh[::-1], np.ones(spatial)], axis=-1).reshape(-1, axes + 1).astype(theta.dtype)
    return products.matmul(constant_on_device_of(theta, base), theta.mT).reshape(theta.shape[0], *spatial, axes)


# -- pairs and bags --------------------------------------------------------------------------------------------------


@op("nn.functional.pdist pdist")
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """Return the p-norms of the differences of all pairs of rows: (0, 1), (0, 2) …, (1, 2) ….

    >>> import chainrule as cr
    >>> cr.nn.functional.pdist(cr.tensor([[0., 0.], [3., 4.], [0., 4.]]))
    tensor([5., 4., 3.])
    """
    x = tensor_of("pdist", input, "f")
    if x.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {x.ndim}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    i, j = np.triu_indices(x.shape[0], 1)
    return tie_cotangents(reductions.norm(x[i] - x[j], p, -1))


@op(sample="tensor([[0, 2], [1, 1]]), rand(3, 4)")
@takes_tensors
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sum, mean or maximum of the rows of ``weight`` (n, width) for each bag of indices.

    Args:
        input: (bags, k): each row is a bag; or (k,) with ``offsets``, the start of each bag.
        mode: "sum", "mean" or "max"; an empty bag gives 0.
        per_sample_weights: factors of the rows, of the shape of the input; with "sum" only.
        include_last_offset: the last of ``offsets`` is the end of the last bag.
        padding_idx: an index to ignore.
    """
    name = "embedding_bag"
    index, bag, bags = _bags(name, input, offsets, include_last_offset)
    _check_rows(index, weight, padding_idx)
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    rows = embedding(index, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError(
                f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='{mode}')"
            )
        if tuple(per_sample_weights.shape) != tuple(input.shape):
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, then it must have the same "
                f"shape as the input ({list(input.shape)})"
            )
        rows = rows * per_sample_weights.reshape(-1, 1)
    counted_mask = np.ones(bag.shape, bool) if padding_idx is None else index._array() != padding_idx % weight.shape[0]
    if mode == "max":
        return _largest_of_bags(rows, bag, counted_mask, bags)
    counted = rows * constant_on_device_of(rows, counted_mask[:, None].astype(rows.dtype))
    total = weight.new_zeros((bags, weight.shape[1])).index_add(0, constant_on_device_of(rows, bag), counted)
    if mode == "sum":
        return total
    counts = np.maximum(np.bincount(bag[counted_mask], minlength=bags), 1).astype(rows.dtype)
    return total / constant_on_device_of(rows, counts[:, None])


def _check_rows(index: Tensor, weight: Tensor, padding_idx: int | None) -> None:
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    n = weight.shape[0]
    if is_array(index._raw) and not lies_within(index._raw, 0, n - 1):
        outside = index._raw[(index._raw < 0) | (index._raw >= n)]
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {outside[0]}: weight has {n} rows"
        )
    if padding_idx is not None and not -n <= padding_idx < n:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-n} through {n - 1}, but got {padding_idx}"
        )


def _bags(name: str, input: Tensor, offsets: Any, include_last: bool) -> tuple[Any, Any, int]:
    """Return the flattened indices, the bag number of each, and the number of bags."""
    index = tensor_of(name, input, "iu")
    if index.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences."
            )
        bags, k = index.shape
        return index.reshape(-1), np.repeat(np.arange(bags), k), bags
    if index.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {index.ndim}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if not (is_array(index._raw) and is_array(offsets._raw)):
        raise errors.data_dependent(offsets, f"the offsets of {name}")
    starts = offsets._concrete(f"the offsets of {name}")
    if include_last:
        starts = starts[:-1]
    if starts.size and starts[0] != 0:
        raise RuntimeError(
            f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {starts[0]}"
        )
    if (np.diff(starts) < 0).any():
        raise RuntimeError(f"{name}: offsets (the start of each bag) must not decrease, but got {starts.tolist()}")
    if starts.size and starts.max() > index.numel():
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length({index.numel()}) but got offsets[-1] of {starts.max()}"
        )
    bag = np.searchsorted(starts, np.arange(index.numel()), side="right") - 1
    return index, bag, starts.size


def _largest_of_bags(rows: Tensor, bag: AnyArray, counted_mask: AnyArray, bags: int) -> Tensor:
    """Return the maximum for each bag and column (the first of equal elements); zeros for an empty bag."""
    if not counted_mask.any():
        return shaping.broadcast_to(reductions.sum(rows, 0, True) * 0, (bags, rows.shape[1]))
    members = np.flatnonzero(counted_mask)
    ends = np.searchsorted(bag[members], np.arange(bags + 1))
    best = bind(bag_argmax, (rows.detach(),), {"members": members, "ends": ends})
    chosen = gathering.gather(rows, 0, best)
    return ew.where(constant_on_device_of(rows, (ends[1:] == ends[:-1])[:, None]), 0.0, chosen)
