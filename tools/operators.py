"""Write docs/operators.md: every public operation, its kind, its derivatives, and the primitives that a composite calls.

``python tools/operators.py`` writes the page. With ``--check`` it only reports whether the page is out of date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from chainrule._src.cli.operations import names_of, numpy_names, operations, parts_of, primitive_named  # noqa: E402
from chainrule._src.rules.primitive import TABLE, Primitive, unsupported  # noqa: E402

PAGE = ROOT / "docs" / "operators.md"
FOREIGN = json.loads((ROOT / "tools" / "foreign.json").read_text())  # written by `make foreign`
KINDS = ("Dask", "sparse", "unyt")
HEADER = """# Operators

`tools/operators.py` generates this page from the declarations. The first table lists the primitives, which have their own
rules. In a formula, `g` is the cotangent of the result `out`. The second table lists the composites, which are recorded as
the primitives that they call. Where nothing is recorded, the result is the operand itself, or NumPy computes it without a
gradient. `chainrule ops NAME` describes an operation in more detail.

The last columns show which [other libraries' arrays](guide/arrays.md) a primitive supports. `make foreign` tests this with all samples
of the primitive, each operand alone and all of them together. "yes": value, VJP, JVP and second derivatives equal NumPy's and have the
library's type. "in part": only for some samples or some operands. "value": derivatives raise. Unsupported operations raise an
error that names the conversion.

"""


def rows() -> list[str]:
    """Return a line for each row: names, kind, columns, formula."""
    heads = ["primitive", "kind", "VJP", "JVP", "batching", "complex", "formula of the VJP", *KINDS]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, prim in sorted(TABLE.items()):
        public = names_of(name)
        names = ", ".join(f"`{n}`" for n in dict.fromkeys([name, *public, *numpy_names(name, public)]))
        columns = [prim.vjps, prim.jvp, prim.batch, "c" in prim.accepts]
        marks = " | ".join("yes" if _there(column) else "" for column in columns)
        lines.append(f"| {names} | {prim.kind} | {marks} | {_formula(prim)} | {' | '.join(_on_others(name))} |")
    return lines


def _on_others(name: str) -> list[str]:
    """Return the support of a primitive for each other library's arrays, as `make foreign` found it."""
    found = [FOREIGN.get(name, {}).get(kind, "") for kind in KINDS]
    return ["" if word == "no" else word for word in found]


def _there(column: object) -> bool:
    return bool(column) and getattr(column, "__name__", "") != "raise_unsupported"


def _formula(prim: Primitive) -> str:
    cells = []
    for operand, rule in row.vjps.items():
        text = "unsupported" if isinstance(rule, unsupported) else row.formula.get(operand)
        if text:
            cells.append(f"{operand}: `{text}`".replace("|", "\\|"))
    return "; ".join(cells)


def composites() -> list[str]:
    """Return a line for each composite: its names, a call, and the rows that ran."""
    lines = ["| composite | example call | recorded primitives |", "|---|---|---|"]
    seen = set()
    for name, operation in sorted(operations().items()):
        if primitive_named(name) is not None or operation in seen:
            continue
        seen.add(operation)
        names = ", ".join(f"`{n}`" for n in dict.fromkeys([name, *operation.names]) if not n.startswith("Tensor."))
        arguments, parts = parts_of(operation) or ("", [])
        made = ", ".join(dict.fromkeys(part.name for part in parts)) or "nothing is recorded"
        lines.append(f"| {names} | `{arguments}` | {made} |")
    return lines


def page() -> str:
    """Return the whole page."""
    return HEADER + "\n".join(["## Primitives", "", *primitives(), "", "## Composites", "", *composites()]) + "\n"


def main() -> int:
    text = page()
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    if "--check" in sys.argv:
        print("docs/operators.md is out of date: run python tools/operators.py")
        return 1
    PAGE.write_text(text)
    print("docs/operators.md written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
