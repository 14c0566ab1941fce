"""``torch.utils.hooks``: the class of the handles that ``register_*hook`` methods return."""

from chainrule._src.tape.node import RemovableHandle

__all__ = ["RemovableHandle"]
