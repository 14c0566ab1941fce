"""chainrule without compilation."""

import numpy as np

import calls
import chainrule

VERSION = f"chainrule {chainrule.__version__}"
WORKS = calls.works(np, chainrule.func, lambda f: f)
