"""chainrule without compilation."""

import chainrule
from adbench_programs import Tools, derivative, works

VERSION = f"chainrule {chainrule.__version__}"
WORKS = works(Tools(), lambda program: derivative(program, chainrule.func))
