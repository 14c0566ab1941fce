"""``torch.optim``: SGD, Adam, AdamW, RMSprop and L-BFGS, with PyTorch's formulas; and schedules for their learning rates."""

from chainrule import errors
from chainrule.optim import lr_scheduler
from chainrule.optim.adam import Adam, AdamW
from chainrule.optim.lbfgs import LBFGS
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.rmsprop import RMSprop
from chainrule.optim.sgd import SGD

__all__ = ["LBFGS", "SGD", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]


def __getattr__(name: str) -> object:
    raise errors.unknown_name(name, __all__, __name__)
