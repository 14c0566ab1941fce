"""Utilities: gradient checkpointing (:mod:`~chainrule.utils.checkpoint`), data loaders, and a benchmark timer."""

from typing import TYPE_CHECKING

from chainrule._src.api.public_modules import show
from chainrule.utils import checkpoint

if TYPE_CHECKING:
    from chainrule.utils import benchmark, data

__all__ = ["benchmark", "checkpoint", "data"]


show(globals(), {"benchmark": "chainrule.utils.benchmark", "data": "chainrule.utils.data"})
