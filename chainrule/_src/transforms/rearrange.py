"""``rearrange``: split, reorder and merge axes by a pattern of names: ``rearrange(x, "b (h w) c -> b c h w", h=4)``.

``chainrule.func`` exports it.
"""

from __future__ import annotations

import math
import re

from chainrule._src.ops.joining import stack
from chainrule._src.tape.tensor import Tensor

_TOKEN = re.compile(r"\s*(\.\.\.|[A-Za-z_]\w*|1|[()])")
_DOTS = "..."
_ALL = [_DOTS]  # the group of an ellipsis outside parentheses; compared by identity


def rearrange(tensor: object, pattern: str, **axes_lengths: int) -> Tensor:
    """Split, reorder and merge the axes of a tensor according to a pattern of axis names.

    Args:
        tensor: a tensor, or a list or tuple of tensors, which are stacked along a new first axis.
        pattern: ``"input axes -> output axes"``. Names in parentheses together form one axis, ``...`` stands for any
            number of axes, and ``1`` (or ``()``) for an axis of length one.
        axes_lengths: lengths of named axes that cannot be computed from the shape.

    Raises:
        ValueError: the pattern is malformed, or does not fit the shape.

    >>> import chainrule as cr
    >>> cr.func.rearrange(cr.arange(6), "(a b) -> b a", a=2)
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
    """
    if isinstance(tensor, (list, tuple)):
        tensor = stack(list(tensor))
    if not isinstance(tensor, Tensor):
        raise TypeError(f"rearrange(): expected a Tensor or a list of them, got {type(tensor).__name__}")
    if not isinstance(pattern, str) or pattern.count("->") != 1:
        raise ValueError(f"rearrange: the pattern must be 'input axes -> output axes', got {pattern!r}")
    left, right = (_groups(side, pattern) for side in pattern.split("->"))
    names, after = _names(left), _names(right)
    if set(names) != set(after):
        raise ValueError(
            f"rearrange: identifiers only on one side of {pattern!r} (should be on both): "
            f"{sorted(set(names) ^ set(after))}"
        )
    for name in axes_lengths:
        if name not in names:
            raise ValueError(f"rearrange: got {name}={axes_lengths[name]}, but {pattern!r} has no axis {name}")
    shape = tuple(tensor.shape)
    free = len(shape) - sum([group is not _ALL for group in left])
    if free < 0 or (free and not any(group is _ALL for group in left)):
        raise ValueError(f"rearrange: {pattern!r} is for {len(left)} axes, the tensor has {len(shape)}: {shape}")
    if any(_DOTS in group and group is not _ALL for group in left):
        raise ValueError(f"rearrange: an ellipsis within parentheses on the left of {pattern!r}")
    dots = [f"{_DOTS}{i}" for i in range(free)]
    left, right = _with_axes(left, dots), _with_axes(right, dots)
    lengths: dict[str, int] = {}
    for group, length in zip(left, shape, strict=True):
        _split(group, length, axes_lengths, lengths, pattern)
    names, after = _names(left), _names(right)
    moved = tensor.reshape([lengths[name] for name in names]).permute([names.index(name) for name in after])
    merged: Tensor = moved.reshape([math.prod([lengths[name] for name in group]) for group in right])
    return merged


def _with_axes(groups: list[list[str]], dots: list[str]) -> list[list[str]]:
    """Return the groups with every ellipsis replaced by the axes it stands for."""
    found: list[list[str]] = []
    for group in groups:
        if group is _ALL:
            found += [[name] for name in dots]
        else:
            found.append([axis for name in group for axis in (dots if name == _DOTS else [name])])
    return found


def _groups(side: str, pattern: str) -> list[list[str]]:
    """Parse one side of the pattern: return the list of names of each axis."""
    groups: list[list[str]] = []
    inside: list[str] | None = None
    at, end = 0, len(side.rstrip())
    while at < end:
        match = _TOKEN.match(side, at)
        if match is None:
            raise ValueError(f"rearrange: {side[at:].strip()!r} is not the name of an axis, in {pattern!r}")
        token, at = match.group(1), match.end()
        if token == "(":
            if inside is not None:
                raise ValueError(f"rearrange: parentheses within parentheses in {pattern!r}")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError(f"rearrange: unbalanced parentheses in {pattern!r}")
            groups.append(inside)
            inside = None
        elif token == "1":
            if inside is None:
                groups.append([])
        elif inside is None:
            groups.append(_ALL if token == _DOTS else [token])
        else:
            inside.append(token)
    if inside is not None:
        raise ValueError(f"rearrange: unbalanced parentheses in {pattern!r}")
    return groups


def _names(groups: list[list[str]]) -> list[str]:
    names = [name for group in groups for name in group]
    if len(set(names)) != len(names):
        raise ValueError(f"rearrange: an axis is named twice on one side: {' '.join(names)}")
    return names


def _split(group: list[str], length: int, known: dict[str, int], lengths: dict[str, int], pattern: str) -> None:
    """Compute the lengths of the names that together form one axis, and store them in ``lengths``."""
    open_names = [name for name in group if name not in known]
    product = math.prod([known[name] for name in group if name in known])
    if len(open_names) > 1:
        raise ValueError(f"rearrange: the lengths of {', '.join(open_names[1:])} are needed, as keyword arguments")
    if (not open_names and product != length) or (open_names and (product == 0 or length % product)):
        raise ValueError(f"rearrange: an axis of length {length} cannot be ({' '.join(group)}) with {known}")
    for name in group:
        lengths[name] = known.get(name, length // product if product else 0)
