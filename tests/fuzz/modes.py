"""What makes the programs of a mode, and what judges them."""

from collections.abc import Callable
from typing import Any

import chainrule

from . import compiled, judging, making
from . import native as paths


def torch() -> tuple[Callable[[int], Any], Callable[[Any], judging.Outcome]]:
    import torch

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


MODES = {"torch": torch, "plain": plain, "numpy": numpy, "compile": compile, "native": native}
