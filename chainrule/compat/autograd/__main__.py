"""Run a program written for HIPS autograd: ``python -m chainrule.compat.autograd script.py args...``."""

import sys

from chainrule.compat import run

if __name__ == "__main__":
    run("autograd", sys.argv[1:])
