"""Flattening of nested arrays, optimizers, and fixed points."""

from chainrule._src.api.public_modules import show
from chainrule.compat.autograd.misc.flatten import flatten
from chainrule.compat.autograd.misc.tracers import const_graph

__all__ = ["const_graph", "flatten"]

show(globals())
