"""Run a program that is written for HIPS autograd: ``python -m chainrule.compat.autograd script.py args...``."""

from __future__ import annotations

import os
import runpy
import sys

from chainrule.compat import install


def main(argv: list[str]) -> None:
    """Run ``script.py args...`` or ``-m module args...`` with chainrule in the place of autograd."""
    if not argv or argv == ["-m"] or argv[0] in ("-h", "--help"):
        raise SystemExit("usage: python -m chainrule.compat.autograd [-m module | script.py] [args...]")
    install("autograd")
    if argv[0] == "-m":
        sys.argv = argv[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        sys.path.insert(0, os.path.dirname(os.path.abspath(argv[0])))
        runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
