"""NumPy's time for the objective, the reference for gradients."""

import numpy

from adbench_programs import Tools, works

VERSION = f"NumPy {numpy.__version__}"
WORKS = works(Tools(), lambda program: lambda *parameters: [program.f(*parameters)])
