"""``autograd.scipy.stats``: SciPy's distributions, with chainrule's differentiable methods where these exist."""

from __future__ import annotations

import sys
from typing import Any

import scipy.stats

from chainrule import stats as _ours
from chainrule._src.api.public_modules import show


class _Distribution:
    """A distribution with chainrule's methods, and SciPy's methods for those that chainrule does not have."""

    def __init__(self, name: str) -> None:
        self._differentiable = getattr(_ours, name)
        self._scipy_distribution = getattr(scipy.stats, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._differentiable, name, None) or getattr(self._scipy_distribution, name)


_names = [name for name in scipy.stats.__all__ if hasattr(_ours, name)]
globals().update({name: getattr(scipy.stats, name) for name in scipy.stats.__all__})
globals().update({name: _Distribution(name) for name in _names})
for _name in _names:  # programs import them as modules: `import autograd.scipy.stats.norm as norm`
    sys.modules[f"{__name__}.{_name}"] = globals()[_name]
__path__: list[str] = []
__all__ = [*scipy.stats.__all__]

show(globals())
