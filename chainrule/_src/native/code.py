"""Programs of inner loops, as words that the extension reads.

An inner loop is the C function behind a ufunc: ``loop(args, dims, strides, data)`` goes along one dimension of ``n``
elements, from one pointer for each argument, by one stride for each. A program is one array of ``intp``, read front to
back, of three kinds of steps.

LOOP: a call, or one for each index of some outer dimensions.

    0       kind: 0
    1       words of the whole step
    2, 3    address of the loop, address of its data
    4       number of arguments
    5       number of core dimensions (of a gufunc)
    6       number of strides: one for each argument, then those of the arguments' core dimensions
    7       number of outer dimensions
    8       the sum of 1 if threads may share the first outer dimension, and 2 if the loop may fail: an "invalid" exception that
            it leaves says that it did, and others mean nothing
    9       n
    ...     core dimensions; strides; (base, offset) of each argument; (length, stride of each argument) of each outer
            dimension, the outermost first

GROUP: elementwise loops over the same ``rows`` rows of ``n`` elements. All of them are done for one block of rows before
the next, so that what they hand to each other stays in cache, and threads may share the blocks.

    0       kind: 1
    1       words of the whole step
    2       number of loops
    3, 4    rows, rows of a block
    5       n
    6       1 if threads may share the blocks
    7       bytes of scratch memory that a block needs
    ...     of each loop: its words; address, address of data; number of arguments; 1 if one call does all rows of a
            block (then it has rows * n elements, and strides to suit); stride of each argument within a row;
            (base, offset, advance, row) of each argument

ROLLED: whole steps that are done again and again, with bases of their own that move.

    0       kind: 2
    1       words of the whole step
    2       how often
    3       number of bases that move
    4       the number of the first of them: they come after all that there are otherwise
    ...     of each: the base that it begins at, bytes that it moves each time, length of a ring after which it is back (0: never),
            place in the ring where it begins; then the steps

An argument is at ``bases[base] + offset`` (a group's: plus ``advance`` for each row before the block, plus ``row`` for
each row within it). ``bases[0]`` is the arena of the call, ``bases[1]`` the scratch memory of the thread; the inputs, the
constants and the outputs follow, in this order. So code holds no pointers to data, and calls share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

#: of the words and of what the extension offers: it has the same number, or it was built from other sources
VERSION = 11

KERNEL, GROUP, LOOP_BODY = 0, 1, 2
ARENA, SCRATCH, FIRST_INPUT = 0, 1, 2
GROUP_ROWS = 3


def kernel_step(
    address: int,
    data: int,
    n: int,
    args: Sequence[tuple[int, int]],
    strides: Sequence[int],
    *,
    core: Sequence[int] = (),
    outer: Sequence[tuple[int, Sequence[int]]] = (),
    split: bool = False,
    checked: bool = False,
) -> list[int]:
    """A LOOP: (base, offset) and stride of each argument; of a gufunc, core dimensions, and their strides after those.

    ``split`` says that no two indices of the first outer dimension write to one place, or read what another writes.
    """
    how = split + 2 * checked
    words = [KERNEL, 0, address, data, len(args), len(core), len(strides), len(outer), how, n, *core, *strides]
    for arg in args:
        words += arg
    for length, steps in outer:
        words += [length, *steps]
    words[1] = len(words)
    return words


def group_step(
    address: int, data: int, args: Sequence[tuple[int, int, int, int]], strides: Sequence[int], *, flat: bool = True
) -> list[int]:
    """A loop of a group: (base, offset, advance, row) and stride of each argument."""
    words = [0, address, data, len(args), int(flat), *strides]
    for arg in args:
        words += arg
    words[0] = len(words)
    return words


def group(
    steps: Sequence[list[int]], *, rows: int, block: int, n: int = 1, scratch: int = 0, split: bool = False
) -> list[int]:
    """A GROUP of what ``group_step`` made."""
    words = [GROUP, 0, len(steps), rows, block, n, int(split), scratch]
    for step in steps:
        words += step
    words[1] = len(words)
    return words


def loop_body_step(
    steps: Iterable[list[int]], count: int, moves: Sequence[tuple[int, int, int, int]], first: int
) -> list[int]:
    """A ROLLED: (base, step, ring, place) of each base that moves; the number of the first of them."""
    words = [LOOP_BODY, 0, count, len(moves), first]
    for move in moves:
        words += move
    for step in steps:
        words += step
    words[1] = len(words)
    return words


def program(steps: Iterable[list[int]]) -> np.ndarray:
    """The code of some steps."""
    return np.fromiter((word for step in steps for word in step), np.intp)
