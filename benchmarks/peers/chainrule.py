"""chainrule, with its PyTorch-style API, or its NumPy-style API for works in NumPy functions."""

import numpy as np

import adbench_peers.eager
import chainrule
import programs
import surface
import works

VERSION = f"chainrule {chainrule.__version__}"
WORKS = works.works(chainrule) | surface.works(chainrule) | programs.works(chainrule)
WORKS |= adbench_peers.eager.WORKS | programs.ten(np, chainrule.grad)
