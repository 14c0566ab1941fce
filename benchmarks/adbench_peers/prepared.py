"""chainrule with prepared Jacobians, whose pattern is detected once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import chainrule
from adbench_programs import Program, Tools, works

VERSION = f"chainrule {chainrule.__version__}, prepared"


def derive(program: Program) -> Callable[..., Any]:
    if program.row:
        sparse = chainrule.prepare_jacobian(program.f, program.parameters, hstack=True)
        return lambda *parameters: [sparse(parameters).data]
    dense = chainrule.prepare_jacobian(program.f, *program.parameters, layout="dense")
    return lambda x: [dense(x)]


WORKS = works(Tools(), derive)
WORKS = {kind: WORKS[kind] for kind in ("ba", "hand")}
