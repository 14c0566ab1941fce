"""The generators and judges of the modes."""

from collections.abc import Callable
from typing import Any

import chainrule

from . import algebra as of_algebra
from . import chunked, compiled, judging, making, returned, states
from . import native as paths
from . import pairs as of_pairs


def torch() -> tuple[Callable[[int], Any], Callable[[Any], judging.Outcome]]:
    import torch
    import torch._dynamo  # the first backward pass loads it, and the time of a program is limited

    torch.set_num_threads(1)
    return lambda seed: making.torch_program(torch, seed), lambda program: judging.against_torch(
        program, chainrule, torch
    )


def plain() -> tuple[Callable[[int], Any], Callable[[Any], judging.Outcome]]:
    return lambda seed: making.plain_program(chainrule, seed), lambda program: judging.against_differences(
        program, chainrule
    )


def numpy() -> tuple[Callable[[int], Any], Callable[[Any], judging.Outcome]]:
    return making.numpy_program, lambda program: judging.against_numpy(program, chainrule)


def compile() -> tuple[Callable[[int], Any], Callable[[Any], judging.Outcome]]:
    return compiled.program, compiled.against_eager


def native() -> tuple[Callable[[int], Any], Callable[[Any], judging.Outcome]]:
    return paths.program, paths.against_python


def objects() -> tuple[Callable[[int], Any], Callable[[Any], judging.Outcome]]:
    return returned.program, returned.against_differences


def pairs() -> tuple[Callable[[int], Any], Callable[[Any], judging.Outcome]]:
    return of_pairs.program, of_pairs.against_eager


def algebra() -> tuple[Callable[[int], Any], Callable[[Any], judging.Outcome]]:
    return of_algebra.program, of_algebra.against_eager


def state() -> tuple[Callable[[int], Any], Callable[[Any], judging.Outcome]]:
    return states.program, states.against_eager


def dask() -> tuple[Callable[[int], Any], Callable[[Any], judging.Outcome]]:
    import dask.array  # noqa: F401  # which takes a while, and a program's time is limited

    return chunked.program, chunked.against_numpy


MODES = {
    "torch": torch,
    "plain": plain,
    "numpy": numpy,
    "objects": objects,
    "compile": compile,
    "pairs": pairs,
    "algebra": algebra,
    "state": state,
    "dask": dask,
    "native": native,
}
