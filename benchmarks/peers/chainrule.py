"""Ourselves, through the PyTorch surface."""

import chainrule
from works import works

VERSION = f"chainrule {chainrule.__version__}"
WORKS = works(chainrule)
