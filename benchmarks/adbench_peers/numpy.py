"""NumPy, and the objective alone: what a gradient is measured by."""

import numpy

from adbench_programs import Tools, works

VERSION = f"NumPy {numpy.__version__}"
WORKS = works(Tools(), lambda program: lambda *parameters: [program.f(*parameters)])
