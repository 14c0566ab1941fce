"""Functions that rearrange channels, or normalize by neighbouring channels.

``chainrule.nn.functional`` exports these functions.
"""

from __future__ import annotations

from chainrule._src.api.declare import op
from chainrule._src.messages import errors
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops import joining, shaping
from chainrule._src.ops.arguments import tensor_of
from chainrule._src.tape.tensor import Tensor
from chainrule.nn.pooling import avg_pool1d

# -- moves -----------------------------------------------------------------------------------------------------------


def _image(function: str, input: Tensor) -> Tensor:
    x = tensor_of(function, input)
    if x.ndim < 3:
        raise RuntimeError(
            f"{function} expects input to have at least 3 dimensions, but got input with {x.ndim} dimension(s)"
        )
    return x


def _factor(function: str, name: str, value: int) -> int:
    if not hasattr(value, "__index__"):
        raise errors.not_an_int(function, name, value)
    if value <= 0:
        raise RuntimeError(f"{function} expects a positive {name}, but got {value}")
    return value.__index__()


@op("nn.functional.pixel_shuffle pixel_shuffle", sample="rand(1, 4, 2, 3), 2")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Move channels to pixels: (..., c·r², h, w) becomes (..., c, h·r, w·r).

    >>> import chainrule as cr
    >>> cr.nn.functional.pixel_shuffle(cr.arange(4.).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    x, r = _image("pixel_shuffle", input), _factor("pixel_shuffle", "upscale_factor", upscale_factor)
    *lead, c, h, w = x.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={c} is not divisible by {r * r}"
        )
    parts = x.reshape(*lead, c // (r * r), r, r, h, w)
    n = len(lead)
    moved = shaping.permute(parts, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return shaping.apart(moved.reshape(*lead, c // (r * r), h * r, w * r), x)


@op("nn.functional.pixel_unshuffle pixel_unshuffle", sample="rand(1, 2, 4, 6), 2")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Return the inverse of :func:`pixel_shuffle`: (..., c, h·r, w·r) becomes (..., c·r², h, w)."""
    x, r = _image("pixel_unshuffle", input), _factor("pixel_unshuffle", "downscale_factor", downscale_factor)
    *lead, c, h, w = x.shape
    for what, n in (("height", h), ("width", w)):
        if n % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but {n} is not divisible by {r}"
            )
    parts = x.reshape(*lead, c, h // r, r, w // r, r)
    n = len(lead)
    moved = shaping.permute(parts, (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return shaping.apart(moved.reshape(*lead, c * r * r, h // r, w // r), x)


@op("nn.functional.channel_shuffle channel_shuffle", sample="rand(1, 4, 2), 2")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave the channels (axis 1) of the groups: the first of each group, then the second of each, and so on."""
    x = tensor_of("channel_shuffle", input)
    if x.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(x.shape)}")
    groups = _factor("channel_shuffle", "groups", groups)
    n, c, *rest = x.shape
    if c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    return shaping.apart(shaping.transpose(x.reshape(n, groups, c // groups, *rest), 1, 2).reshape(n, c, *rest), x)


# -- normalization ---------------------------------------------------------------------------------------------------


@op(sample="rand(1, 4, 2), 3")
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Return x / (k + alpha·mean(x² of ``size`` neighbouring channels))^beta; outside the channels there are zeros."""
    x = tensor_of("local_response_norm", input, "iuf")
    if x.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {x.ndim} dimensions)")
    if not x.numel():
        return x
    squares = joining.pad(shaping.movedim(ew.square(x), 1, -1), (size // 2, (size - 1) // 2))
    flat = squares.reshape(-1, 1, squares.shape[-1])
    means = avg_pool1d(flat, size, 1).reshape(*squares.shape[:-1], x.shape[1])
    return x / (shaping.movedim(means, -1, 1) * alpha + k) ** beta
