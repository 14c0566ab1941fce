"""Ourselves, through the PyTorch surface."""

import chainrule
import programs
import surface
import works

VERSION = f"chainrule {chainrule.__version__}"
WORKS = works.works(chainrule) | surface.works(chainrule) | programs.works(chainrule)
