"""The code format of compiled programs: arrays of ``intp`` words that the extension interprets (``native/interpreter.c``).

``compiling/native_executor.py`` builds steps with the functions of this module, joins them with ``program``, and passes the words to
``Runner``.

A kernel is a C function with the signature of a ufunc inner loop: ``kernel(args, dims, strides, data)`` processes ``n`` elements along one
dimension. It gets one pointer and one stride for each argument. A program is read front to back. There are three kinds of steps.

KERNEL: one kernel call, or one for each index of the outer dimensions.

    0       kind: 0
    1       number of words of the step
    2, 3    address of the kernel, address of its data
    4       number of arguments
    5       number of core dimensions (of a gufunc)
    6       number of strides: one for each argument, then those of the arguments' core dimensions
    7       number of outer dimensions
    8       flags: 1 if threads may share the first outer dimension; 2 if the kernel reports failure by an "invalid" exception
            (its other exceptions are ignored)
    9       n
    ...     core dimensions; strides; (base, offset) of each argument; (length, stride of each argument) of each outer
            dimension, outermost first

GROUP: elementwise kernels over the same ``rows`` rows of ``n`` elements. All kernels process one block of rows before the next block, so
intermediate values stay in cache. Threads may share the blocks.

    0       kind: 1
    1       number of words of the step
    2       number of kernels
    3, 4    rows, rows of a block
    5       n
    6       1 if threads may share the blocks
    7       bytes of scratch memory for a block
    ...     for each kernel: number of its words; address, address of data; number of arguments; 1 if one call processes all rows
            of a block (with rows * n elements); elements of a call; calls of a row; stride of each argument in a call;
            (base, offset, advance, row) of each argument; stride of each argument from call to call

LOOP_BODY: steps that run several times, with moving bases.

    0       kind: 2
    1       number of words of the step
    2       trip count
    3       number of moving bases
    4       index of the first moving base; moving bases follow all other bases
    ...     for each moving base: source base, stride in bytes for each iteration, length of a ring buffer (0: none), first index in
            the ring buffer; then the steps

The address of an argument is ``bases[base] + offset``. In a group, ``advance`` is added for each row before the block, and ``row`` for each
row within the block. ``bases[0]`` is the arena of the call, ``bases[1]`` the scratch memory of the thread. The inputs, the constants and
the outputs follow. Programs contain no pointers to data, so concurrent calls can share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

#: The version of the code format and of the functions of the extension. An extension with another number was built from other sources.
VERSION = 19

KERNEL, GROUP, LOOP_BODY = 0, 1, 2
#: the maximum number of arguments of a kernel: MAX_ARGS of native/loops.h
MAX_ARGS = 32
ARENA, SCRATCH, FIRST_INPUT = 0, 1, 2


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
    """Return the words of a KERNEL step.

    Args:
        args: (base, offset) of each argument.
        strides: of each argument; for a gufunc, the strides of the core dimensions follow.
        core: the core dimensions of a gufunc.
        outer: (length, stride of each argument) of each outer dimension.
        split: threads may share the first outer dimension, because its indices are independent of each other.
        checked: the kernel reports failure by an "invalid" exception.
    """
    flags = split + 2 * checked
    words = [KERNEL, 0, address, data, len(args), len(core), len(strides), len(outer), flags, n, *core, *strides]
    for arg in args:
        words += arg
    for length, steps in outer:
        words += [length, *steps]
    words[1] = len(words)
    return words


def group_step(
    address: int,
    data: int,
    args: Sequence[tuple[int, int, int, int]],
    strides: Sequence[int],
    n: int,
    repeats: tuple[int, Sequence[int]] | None = None,
    *,
    flat: bool = True,
) -> list[int]:
    """Return the words of a kernel in a group.

    Args:
        args: (base, offset, advance, row) of each argument.
        n: the elements of a call.
        repeats: the number of calls of a row, and the stride of each argument from call to call; None for one call.
    """
    count, steps = repeats or (1, [0] * len(args))
    words = [0, address, data, len(args), int(flat), n, count, *strides]
    for arg in args:
        words += arg
    words += steps
    words[0] = len(words)
    return words


def group(
    steps: Sequence[list[int]], *, rows: int, block: int, n: int = 1, scratch: int = 0, split: bool = False
) -> list[int]:
    """Return the words of a GROUP step; ``steps`` come from ``group_step``."""
    words = [GROUP, 0, len(steps), rows, block, n, int(split), scratch]
    for step in steps:
        words += step
    words[1] = len(words)
    return words


def loop_body_step(
    steps: Iterable[list[int]], count: int, moving: Sequence[tuple[int, int, int, int]], first: int
) -> list[int]:
    """Return the words of a LOOP_BODY step.

    Args:
        steps: the words of the steps of the body.
        count: the trip count.
        moving: (source base, stride, length of the ring buffer or 0, first index in it) of each moving base.
        first: the index of the first moving base.
    """
    words = [LOOP_BODY, 0, count, len(moving), first]
    for base in moving:
        words += base
    for step in steps:
        words += step
    words[1] = len(words)
    return words


def program(steps: Iterable[list[int]]) -> np.ndarray:
    """Return a program with the given steps."""
    return np.fromiter((word for step in steps for word in step), np.intp)
