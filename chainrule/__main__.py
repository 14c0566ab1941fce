"""``python -m chainrule``: the same as the command ``chainrule``."""

from __future__ import annotations

import sys

from chainrule._src.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
