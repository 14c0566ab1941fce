"""Select the samples of a primitive that are checked in every run of the tests; slow tests check all samples."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

from chainrule._src.rules.primitive import Primitive
from chainrule.testing import Sample
from chainrule.testing.rulecheck import every_sample

PART = 3  # the fraction of samples that differ only in shapes and layouts


def chosen_samples(row: Primitive) -> list[Sample]:
    """Choose samples of a primitive, from those that ``rulecheck`` uses."""
    return chosen(every_sample(row), row.name)


def chosen(samples: Sequence[Sample], name: str) -> list[Sample]:
    """Choose the largest sample of each set of parameters, real and complex, and some of the other shapes and layouts.

    Primitives of one kind have the same list of shapes: each uses other ones, so that all of them together cover the list.
    """
    largest: dict[tuple[str, bool], Sample] = {}
    for sample in samples:
        call = (repr(sample.params), sample.complex)
        if call not in largest or _size(sample) > _size(largest[call]):
            largest[call] = sample
    start = zlib.crc32(name.encode())
    taken = {id(sample) for sample in [*largest.values(), *samples[start % PART :: PART]]}
    return [sample for sample in samples if id(sample) in taken]


def _size(sample: Sample) -> int:
    return sum(math.prod(shape) for shape in sample.shapes if isinstance(shape, tuple))
