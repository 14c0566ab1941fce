"""``autograd.gradcheck``: PyTorch has a function and a module of this name, and so does this package.

``testing.gradcheck`` lives on a floor above; importing this module makes the function stand for the module as well.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

_testing: Any = importlib.import_module("chainrule.testing.gradcheck")
GradcheckError = _testing.GradcheckError
gradcheck = _testing.gradcheck
gradgradcheck = _testing.gradgradcheck

for _name in ("GradcheckError", "gradcheck", "gradgradcheck"):
    setattr(gradcheck, _name, globals()[_name])
sys.modules[__name__] = gradcheck
