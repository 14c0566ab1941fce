"""Run a program written for PyTorch: ``python -m chainrule.compat.torch script.py args...``."""

import sys

from chainrule.compat import run

if __name__ == "__main__":
    run("torch", sys.argv[1:])
