"""Pad sequences of different lengths to one tensor, with the names of ``torch.nn.utils.rnn``."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule._src.api.public_modules import show
from chainrule._src.ops import joining
from chainrule._src.tape.tensor import Tensor

__all__ = ["pad_sequence", "unpad_sequence"]


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Pad sequences ``(length, ...)`` to the length of the longest and stack them: ``(longest, n, ...)``.

    Args:
        sequences: tensors whose shapes differ in the first axis only.
        batch_first: whether the result is ``(n, longest, ...)``.
        padding_value: the value of the padding.
        padding_side: ``"right"`` (after each sequence) or ``"left"``.

    Raises:
        RuntimeError: there are no sequences, or their other axes differ.

    >>> import chainrule as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(3)], batch_first=True)
    tensor([[1., 1., 0.],
            [1., 1., 1.]])
    """
    each = list(sequences)
    if not each:
        raise RuntimeError("pad_sequence(): received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"pad_sequence(): padding_side should be either 'right' or 'left', not {padding_side!r}")
    for i, x in enumerate(each):
        if x.shape[1:] != each[0].shape[1:]:
            raise RuntimeError(
                f"pad_sequence(): sequences may differ in their first axis only, but sequence 0 has the shape "
                f"{tuple(each[0].shape)} and sequence {i} {tuple(x.shape)}"
            )
    longest = max(len(x) for x in each)
    full = []
    for x in each:
        rest = x.new_full((longest - len(x), *x.shape[1:]), padding_value)
        full.append(joining.cat([x, rest] if padding_side == "right" else [rest, x]))
    return joining.stack(full, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Split the result of ``pad_sequence`` into the sequences of the given lengths."""
    each = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [x[: int(n)] for x, n in zip(each, lengths, strict=True)]


show(globals())
