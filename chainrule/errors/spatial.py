"""Convolutions, pooling and resampling."""

from __future__ import annotations

from typing import Any

from chainrule.errors.names import name_of
from chainrule.errors.words import shape_of


def spatial_rank(function: str, x: Any, axes: int) -> RuntimeError:
    return RuntimeError(
        f"Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) input to {function}, but got input of size: "
        f"{list(shape_of(x))}. The axes are (batch,) channels, and {axes} to move along"
    )


def window_numbers(function: str, argument: str, value: Any, axes: int) -> RuntimeError:
    return RuntimeError(
        f"{function}: {argument} must be an int or a tuple of {axes} ints, one for each axis; got {value!r}"
    )


def convolution_channels(function: str, x: Any, weight: Any, groups: int, transposed: bool) -> RuntimeError:
    w, shape = shape_of(weight), shape_of(x)
    expected = w[0] if transposed else w[1] * groups
    each = f" (weight.shape[1]·groups = {w[1]}·{groups})" if groups > 1 and not transposed else ""
    name = name_of(x) or "input"
    last = f" {name}.movedim(-1, 1) puts the last axis there." if shape[-1] == expected else ""
    return RuntimeError(
        f"Given {'transposed=1' if transposed else f'groups={groups}'}, weight of size {list(w)}, expected input"
        f"{list(shape)} to have {expected} channels{each}, but got {shape[1]} channels instead: {function} counts "
        f"channels along axis 1 of a batch.{last}"
    )


def convolution_groups(function: str, weight: Any, groups: int) -> RuntimeError:
    return RuntimeError(
        f"Given groups={groups}, expected weight to be at least {groups} at dimension 0 and divisible by it, but got "
        f"weight of size {list(shape_of(weight))} instead ({function})"
    )


def convolution_bias(function: str, weight: Any, bias: Any, channels: int) -> RuntimeError:
    return RuntimeError(
        f"Given weight of size {list(shape_of(weight))}, expected bias to be 1-dimensional with {channels} elements, but "
        f"got bias of size {list(shape_of(bias))} instead ({function} adds one number per output channel)"
    )


def kernel_too_large(padded: Any, kernel: Any) -> RuntimeError:
    return RuntimeError(
        f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
        f"({' x '.join(map(str, kernel))}). Kernel size can't be greater than actual input size; padding makes it larger"
    )


def too_small_output(function: str, x: Any, counts: Any) -> RuntimeError:
    return RuntimeError(
        f"Given input size: {tuple(shape_of(x))}. Calculated output size: {tuple(counts)}. Output size is too small: no "
        f"window of {function} fits"
    )


def pool_input(function: str, x: Any, axes: int) -> RuntimeError:
    return RuntimeError(
        f"{function}: Expected {axes + 1}D or {axes + 2}D (batch mode) tensor with optional 0 dim batch size for input, "
        f"but got: {list(shape_of(x))}. Expected input's non-batch dimensions to have positive length"
    )


def adaptive_rank(function: str, x: Any, axes: int, several: bool) -> Exception:
    kind = ValueError if several and len(shape_of(x)) <= axes else RuntimeError
    shape = shape_of(x)
    return kind(
        f"Input dimension should be at least {axes + 1}, got {len(shape)}: {function}: Expected {axes + 1}D or "
        f"{axes + 2}D tensor, but got {list(shape)}"
    )
