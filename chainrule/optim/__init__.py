"""Optimizers and learning-rate schedulers, with the names and formulas of ``torch.optim``."""

from chainrule._src.api.public_modules import show
from chainrule.optim import lr_scheduler
from chainrule.optim.adagrad import Adadelta, Adagrad
from chainrule.optim.adam import Adam, AdamW
from chainrule.optim.adam_variants import Adamax, NAdam, RAdam
from chainrule.optim.asgd import ASGD
from chainrule.optim.lbfgs import LBFGS
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.rmsprop import RMSprop
from chainrule.optim.rprop import Rprop
from chainrule.optim.sgd import SGD

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]

show(globals())
