"""Check the page of other libraries' names: the names on the right exist, and the site's search finds the names on the left."""

from __future__ import annotations

import html
import importlib
import json
import re
from pathlib import Path

import pytest

import chainrule

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "synonyms.md"
ROWS = re.findall(r"^\| (.+?) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
OURS = sorted({name for _, here in ROWS for name in re.findall(r"(?<![\w.])(?:cr|chainrule)((?:\.\w+)+)", here)})

#: Search terms, and a page that must be among the results.
TYPED = {
    "kalman": "gallery/kalman",
    "topology optimization": "gallery/topology",
    "hamiltonian": "gallery/hmc",
    "pinn": "gallery/pinn",
    "brusselator": "gallery/brusselator",
    "gaussian process": "gallery/gaussian_process",
    "pandas": "gallery/robust_regression",
    "coo_matrix": "synonyms",
    "spsolve": "gallery/topology",
    "lax.scan": "synonyms",
    "scan": "guide/scan",
    "minimize jac": "synonyms",
    "vmap": "guide/transformations",
    "retain_graph": "synonyms",
    "checkpoint": "guide/checkpoints",
    "custom_vjp": "synonyms",
    "jit": "synonyms",
    "finite differences": "synonyms",
    "dask": "guide/dask",
    "solve_ivp": "guide/solvers",
    "jupyter": "synonyms",
    "tqdm": "guide/solvers",
    "mcmc": "synonyms",
    "confidence interval": "synonyms",
    "graph coloring": "synonyms",
    "bvp": "synonyms",
    "optimal control": "gallery/cart_pole",
    "trajectory optimization": "gallery/cart_pole",
    "constrained optimization": "guide/solvers",
    "constrained optimisation": "synonyms",
    "ipopt": "guide/solvers",
    "ode": "guide/solvers",
    "lagrangian": "guide/jacobians",
    "nlpsol": "synonyms",
    "groupby": "guide/operands",
    "random effects": "guide/statistics",
    "laplace": "guide/statistics",
    "mixed precision": "synonyms",
    "multithreading": "synonyms",
    "numerical gradient": "synonyms",
    "elementwise_grad": "guide/from_autograd",
    "stop_gradient": "synonyms",
    "while_loop": "guide/scan",
    "least_squares": "guide/solvers",
    "detect_anomaly": "synonyms",
    "hvp": "guide/transformations",
    "CubicSpline": "synonyms",
    "maximum likelihood": "guide/statistics",
    "implicit differentiation": "guide/implicit",
}


@pytest.mark.parametrize("name", OURS)
def test_names_on_the_right_exist(name: str) -> None:
    found, path = chainrule, "chainrule"
    for part in name.strip(".").split("."):
        path = f"{path}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(path)


def test_search_terms_are_on_the_pages() -> None:
    for typed, page in TYPED.items():
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").lower()
        assert all(word in text for word in typed.lower().split()), f"{page}.md does not have {typed!r}"


def check_search(site: Path) -> None:
    """Check that the search index contains all search terms, and every name on the left of the page."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    separator = re.compile(index["config"]["separator"])

    def words(text: str) -> set[str]:
        return {word.lower() for word in separator.split(html.unescape(re.sub(r"<[^>]*>", " ", text))) if word}

    entries = [(entry["location"], words(f"{entry['title']} {entry['text']}")) for entry in index["docs"]]
    for typed, page in TYPED.items():
        found = [location for location, there in entries if words(typed) <= there]
        assert any(location.startswith(f"{page}.html") for location in found), f"{typed!r} finds {found}"
    for names, _ in ROWS:
        for name in re.findall(r"`([\w.]+)", names):
            found = [location for location, there in entries if words(name) <= there]
            assert any(location.startswith("synonyms") for location in found), f"{name!r} finds {found}"
