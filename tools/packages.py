"""Draw the dependencies between the subpackages of chainrule._src, and find import cycles.

python tools/packages.py            draw docs/assets/packages.svg
python tools/packages.py --check    fail if that diagram is out of date
python tools/packages.py --cycles  print import cycles, including imports in functions
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIAGRAM = ROOT / "docs" / "assets" / "packages.svg"
PRIVATE = "chainrule._src"
Edges = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """Return all modules of the package by name, with the stub of the extension module."""
    found = {}
    for path in (ROOT / "chainrule").rglob("*.py*"):
        if path.suffix == ".py" or (path.suffix == ".pyi" and not path.with_suffix(".py").exists()):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


class _Reader(ast.NodeVisitor):
    """Collects the imports of a file: at load time, in functions, and for type checkers only."""

    def __init__(self, own: str, known: dict[str, Path]) -> None:
        self.own, self.known, self.kind = own, known, "loading"
        self.found: dict[str, set[str]] = {"loading": set(), "calling": set(), "typing": set()}

    def add(self, name: str) -> None:
        if name in self.known and name != self.own:
            self.found[self.kind].add(name)

    def within(self, kind: str, node: ast.AST) -> None:
        before, self.kind = self.kind, kind
        self.generic_visit(node)
        self.kind = before

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.add(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            self.add(full if full in self.known else str(node.module))

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name.endswith("import_module") and node.args and isinstance(node.args[0], ast.Constant):
            self.add(str(node.args[0].value))
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.within("calling", node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.within("calling", node)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            self.within("typing", node)
        else:
            self.generic_visit(node)


def imports(*kinds: str) -> Edges:
    """Map each module to its imports of the given kinds: "loading", "calling" (in functions) or "typing"."""
    return {name: set().union(*(found[kind] for kind in kinds)) for name, found in _read().items()}


@functools.cache
def _read() -> dict[str, Edges]:
    """Map each module to its imports by kind."""
    known = modules()
    every = {}
    for name, path in known.items():
        reader = _Reader(name, known)
        if path.suffix == ".py":
            reader.visit(ast.parse(path.read_text(encoding="utf-8")))
        every[name] = reader.found
    return every


def cycles(edges: Edges) -> list[set[str]]:
    """Return the strongly connected sets of modules."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for after in edges.get(waiting.pop(), ()):
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
        return seen

    reached = {name: reach(name) for name in edges}
    found = {frozenset(b for b in reached[a] if a in reached[b]) for a in edges if a in reached[a]}
    return sorted(map(set, found), key=sorted)


def package_order() -> list[str]:
    """Return the subpackages from top to bottom, as in the contract of import-linter."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(c["layers"] for c in contracts if c.get("containers") == [PRIVATE])
    return [package.strip() for layer in layers for package in layer.split("|")]


def uses() -> Edges:
    """Map each subpackage to the subpackages that it imports from."""
    found: Edges = defaultdict(set)
    for name, others in imports("loading", "calling").items():
        for other in others:
            a, b = (
                x.removeprefix(PRIVATE + ".").split(".")[0] if x.startswith(PRIVATE + ".") else ""
                for x in (name, other)
            )
            if a and b and a != b:
                found[a].add(b)
    return found


def upward_imports() -> set[tuple[str, str]]:
    """Return the pairs (lower, higher) of subpackages where the lower one imports from the higher one."""
    packages = package_order()
    return {(a, b) for a, others in uses().items() for b in others if packages.index(b) < packages.index(a)}


def diagram() -> str:
    """Return an SVG with a row for each subpackage and a dot in the columns of those that it uses."""
    packages, used = package_order(), uses()
    left, cell, top, wide = 98, 22, 92, 470
    columns = {package: left + wide + cell * i for i, package in enumerate(packages)}
    rows = {package: top + cell * i for i, package in enumerate(packages)}
    width, height = left + wide + cell * len(packages) + 30, top + cell * len(packages)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        "<title>Imports between the packages of chainrule/_src: dots are right of the diagonal; a ring is an import at first use</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for package in packages:
        x, y = columns[package] + cell / 2, rows[package] + cell / 2
        parts.append(
            f'<text transform="rotate(-60 {x:g} {top - 8})" x="{x:g}" y="{top - 8}" fill="#333">{package}</text>'
        )
        parts.append(f'<rect x="0" y="{rows[package] + 1}" width="{width}" height="{cell - 2}" fill="#f1f3f7"/>')
        parts.append(f'<text x="6" y="{y + 4:g}" font-weight="bold" fill="#1f3a5f">{package}</text>')
        parts.append(f'<text x="{left}" y="{y + 4:g}" fill="#333">{_about(package)}</text>')
        parts.append(f'<rect x="{x - 8:g}" y="{y - 8:g}" width="16" height="16" fill="#c9d3e3"/>')
    for package in packages:
        for other in packages:
            if other in used[package]:
                below = packages.index(other) > packages.index(package)
                look = 'fill="#1f3a5f"' if below else 'fill="none" stroke="#c00" stroke-width="2"'
                x, y = columns[other] + cell / 2, rows[package] + cell / 2
                parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="5" {look}/>')
    return "\n".join([*parts, "</svg>", ""])


def _about(package: str) -> str:
    """Return the first sentence of a subpackage's docstring."""
    path = ROOT / "chainrule" / "_src" / package / "__init__.py"
    doc = (
        ast.get_docstring(
            ast.parse((path if path.exists() else path.parent.with_suffix(".py")).read_text(encoding="utf-8"))
        )
        or ""
    )
    first = re.split(r"(?<=\.)\s", doc.replace("\n", " "))[0].rstrip(".")
    return first.replace("`", "").replace("&", "&amp;").replace("<", "&lt;")


def main(option: str = "") -> int:
    if option == "--cycles":
        for cycle in cycles(imports("loading", "calling")):
            print(*sorted(cycle))
    elif option == "--check":
        if not DIAGRAM.exists() or DIAGRAM.read_text(encoding="utf-8") != diagram():
            print(f"{DIAGRAM.relative_to(ROOT)} is out of date: python tools/packages.py")
            return 1
    else:
        DIAGRAM.write_text(diagram(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
