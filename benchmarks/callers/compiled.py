"""chainrule, compiled: one native call of a recorded plan."""

import numpy as np

import calls
import chainrule

VERSION = f"chainrule {chainrule.__version__}, compiled"
WORKS = calls.works(np, chainrule.func, chainrule.compile)
