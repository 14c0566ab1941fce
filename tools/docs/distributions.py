"""Generate the table of distributions in docs/guide/statistics.md from their classes.

``python tools/docs/distributions.py`` writes it into the page; a test checks that it is up to date.
"""

from __future__ import annotations

import re
from pathlib import Path

from chainrule import stats
from chainrule.stats.base import Continuous, Discrete, RandomVariable
from chainrule.stats.multivariate import Multivariate

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "statistics.md"
PLACE = re.compile(r"(<!-- distributions -->\n).*?(<!-- /distributions -->)", re.DOTALL)


def table() -> str:
    """Return a line for each distribution: its name, its shape parameters, and what it lacks."""
    lines = ["| distribution | shape parameters | limits |", "|---|---|---|"]
    vectors = ["| distribution | methods |", "|---|---|"]
    for name, distribution in sorted(vars(stats).items()):
        if isinstance(distribution, RandomVariable):
            lines.append(f"| `{name}` | {', '.join(distribution.shapes)} | {_lacks(distribution)} |")
        elif isinstance(distribution, Multivariate):
            methods = [m for m in dir(type(distribution)) if not m.startswith("_")]
            vectors.append(f"| `{name}` | {', '.join(f'`{m}`' for m in methods)} |")
    return "\n".join([*lines, "", *vectors]) + "\n"


def _lacks(distribution: RandomVariable) -> str:
    """Describe the missing methods and derivatives of a distribution."""
    kind: type = type(distribution)
    base = next(base for base in (Continuous, Discrete) if issubclass(kind, base))
    methods = ["cdf", "mean", "var", *(["ppf", "entropy"] if base is Continuous else [])]
    missing = [m for m in methods if getattr(kind, f"_{m}") is getattr(base, f"_{m}")]
    notes = [f"no {', '.join(f'`{m}`' for m in missing)}"] if missing else []
    if base is Continuous and distribution.shapes and kind._reparameterized is base._reparameterized:
        notes.append("no derivatives with respect to the shape of `cdf`, `ppf` and `rvs`")
    return "; ".join(notes)


def page() -> str:
    """Return the page with the updated table."""
    return PLACE.sub(lambda found: f"{found[1]}{table()}{found[2]}", PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
