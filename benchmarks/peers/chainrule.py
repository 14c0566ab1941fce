"""Ourselves, through the PyTorch surface; what NumPy's functions are called in, through NumPy's."""

import numpy as np

import adbench_peers.eager
import chainrule
import programs
import surface
import works

VERSION = f"chainrule {chainrule.__version__}"
WORKS = works.works(chainrule) | surface.works(chainrule) | programs.works(chainrule)
WORKS |= adbench_peers.eager.WORKS | programs.ten(np, chainrule.grad)
