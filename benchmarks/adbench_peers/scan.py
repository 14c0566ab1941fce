"""chainrule, compiled, with loops written as scans."""

import chainrule
from adbench_programs import Tools, derivative, works

VERSION = f"chainrule {chainrule.__version__}, compiled, with scan"
LOOPS = ("lstm", "kalman", "robertson", "lotka_volterra", "van_der_pol", "bodies", "burgers")
tools = Tools(loop=chainrule.scan)
WORKS = works(tools, lambda program: chainrule.compile(derivative(program, chainrule.func)))
WORKS = {kind: WORKS[kind] for kind in LOOPS}
