"""SciPy's finite differences, for complete optimizer runs."""

from importlib.metadata import version

import calls
from works import Makers

VERSION = f"SciPy {version('scipy')} with differences"
WORKS: Makers = {"lbfgs": lambda size: calls.lbfgs_run(None, size)}
