"""Run the command ``chainrule`` as ``python -m chainrule``."""

from __future__ import annotations

import sys

from chainrule._src.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
