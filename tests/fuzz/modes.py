"""What makes the programs of a mode, and what judges them."""

from collections.abc import Callable
from typing import Any

import chainrule

from . import judging, making


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


MODES = {"torch": torch, "plain": plain}
