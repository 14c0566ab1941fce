"""What programs ask about traced values."""

from chainrule.compat.autograd.extend import Box, notrace_primitive, primitive, register_notrace
from chainrule.compat.autograd.tracing import getval, isbox
from chainrule.compat.autograd.util import toposort

__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive", "register_notrace", "toposort"]
