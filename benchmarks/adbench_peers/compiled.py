"""chainrule, compiled: recorded once and replayed."""

import chainrule
from adbench_programs import Tools, derivative, works

VERSION = f"chainrule {chainrule.__version__}, compiled"
WORKS = works(Tools(), lambda program: chainrule.compile(derivative(program, chainrule.func)))
