"""Pad sequences of different lengths to one tensor, or pack them without padding, as in ``torch.nn.utils.rnn``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from chainrule._src.api.public_modules import show
from chainrule._src.ops import creation, joining
from chainrule._src.tape.tensor import Tensor

__all__ = [
    "PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpack_sequence",
    "unpad_sequence",
]  # fmt: skip


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


class PackedSequence(_Packed):
    """Sequences in time order without padding, which recurrent layers accept and return.

    Args:
        data: the elements ``(total, ...)``: those of the first time step, of the second, and so on.
        batch_sizes: the number of sequences that reach each time step, which does not increase.
        sorted_indices: the position of each packed sequence, the longest first, among the given ones.
        unsorted_indices: the inverse permutation.
    """

    __slots__ = ()

    def __new__(
        cls, data: Tensor, batch_sizes: Tensor, sorted_indices: Tensor | None = None, unsorted_indices: Tensor | None = None
    ) -> PackedSequence:  # fmt: skip
        if unsorted_indices is None and sorted_indices is not None:
            unsorted_indices = sorted_indices.argsort()
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def with_data(self, data: Tensor) -> PackedSequence:
        """Return other elements packed in the same order."""
        return type(self)(data, *self[1:])

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequences with their data converted by ``Tensor.to``."""
        return self.with_data(self.data.to(*args, **kwargs))

    def cpu(self) -> PackedSequence:
        """Return the sequences in CPU memory."""
        return self.to(device="cpu")

    def float(self) -> PackedSequence:
        """Return the sequences in single precision."""
        return self.with_data(self.data.float())

    def double(self) -> PackedSequence:
        """Return the sequences in double precision."""
        return self.with_data(self.data.double())

    @property
    def is_cuda(self) -> bool:
        """Return whether the data is on a GPU."""
        return self.data.is_cuda


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences ``(longest, n, ...)``.

    Args:
        input: the result of :func:`pad_sequence`.
        lengths: the length of each sequence.
        batch_first: whether the input is ``(n, longest, ...)``.
        enforce_sorted: raise if the lengths increase, instead of sorting the sequences.

    Raises:
        RuntimeError: a length is not positive, or exceeds the first axis, or increases.

    >>> import chainrule as torch
    >>> rnn = torch.nn.utils.rnn
    >>> rnn.pack_padded_sequence(torch.tensor([[1, 2], [3, 0]]), [2, 1]).data
    tensor([1, 2, 3])
    """
    steps = input.transpose(0, 1) if batch_first else input
    counts = creation.as_tensor(lengths, dtype="int64").detach()
    order = None
    if not enforce_sorted:
        order = (-counts).argsort(stable=True)
        steps, counts = steps.index_select(1, order), counts[order]
    found = counts.tolist()
    if len(found) != steps.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(found)} (batch_size={steps.shape[1]})"
        )
    if not all(0 < n <= len(steps) for n in found):
        raise RuntimeError(
            f"Length of all samples has to be greater than 0 and at most {len(steps)}, the padded length, but they are {found}"
        )
    if found != sorted(found, reverse=True):
        raise RuntimeError(
            f"`lengths` array must be sorted in decreasing order when `enforce_sorted` is True, but they are {found}. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement"
        )
    sizes = [sum(n > time for n in found) for time in range(found[0])]
    data = joining.cat([step[:size] for step, size in zip(steps, sizes, strict=False)])
    return PackedSequence(data, creation.tensor(sizes), order)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the padded sequences ``(longest, n, ...)`` and their lengths, in the order before packing.

    Args:
        sequence: the packed sequences.
        batch_first: whether the result is ``(n, longest, ...)``.
        padding_value: the value of the padding.
        total_length: the padded length, at least that of the longest sequence.
    """
    sizes = sequence.batch_sizes.tolist()
    if total_length is not None and total_length < len(sizes):
        raise ValueError(
            f"Expected total_length to be at least the length of the longest sequence in input, but got total_length={total_length} "
            f"and max sequence length being {len(sizes)}"
        )
    steps = []
    for step in sequence.data.split(sizes):
        steps.append(joining.cat([step, step.new_full((sizes[0] - len(step), *step.shape[1:]), padding_value)]))
    missing = (total_length or 0) - len(sizes)
    if missing > 0:
        steps += [steps[0].new_full(steps[0].shape, padding_value)] * missing
    padded, lengths = joining.stack(steps), creation.tensor([sum(size > i for size in sizes) for i in range(sizes[0])])
    if sequence.unsorted_indices is not None:
        padded, lengths = padded.index_select(1, sequence.unsorted_indices), lengths[sequence.unsorted_indices]
    return padded.transpose(0, 1) if batch_first else padded, lengths


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences ``(length, ...)`` of different lengths; see :func:`pack_padded_sequence`."""
    each = list(sequences)
    return pack_padded_sequence(pad_sequence(each), [len(x) for x in each], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences of which :func:`pack_sequence` returned the packed form."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


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
