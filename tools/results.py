"""Update the benchmark tables of README.md and the documentation from benchmarks/results.json.

``python tools/results.py`` updates them; with ``--check`` it only lists the pages that are out of date. The file is written
by benchmarks/run_all.py (``make bench``). It has the date, commit, machine and versions of the run, and the tables of its
parts. Two comments in a page mark a table; by default it contains all columns and rows (a regular expression)::

    <!-- results: eager; columns: work | / torch | / by hand; rows: MLP|attention -->
    <!-- /results -->
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results.json"
MARKED = re.compile(r"(<!-- results: (?P<what>[^>]*?) -->\n).*?(<!-- /results -->)", re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def cell(value: Any) -> str:
    """Format a number, a list of median, minimum and maximum, or text."""
    if isinstance(value, list):
        middle, least, most = map(number, value)
        return f"{middle} ({least}–{most})"
    return value if isinstance(value, str) else number(value)


def number(value: float) -> str:
    """Format a number with up to three digits, or two if it is below 1."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1 else f"{value:.2g}"


def source(results: dict[str, Any], table: dict[str, Any]) -> str:
    """Return the line below a table: its command, and the date, commit, machine and versions of the run."""
    run, one = results["runs"][table["run"]], ", in one run of all tables" * (len(results["runs"]) == 1)
    versions = ", ".join(f"{name} {run['versions'][name]}" for name in table["libraries"])
    return f"`{table['command']}`{one}, on {run['date']}, commit {run['commit']}, {run['machine']}; {versions}."


def table(what: str, results: dict[str, Any]) -> str:
    """Return the Markdown table that a comment specifies."""
    name, *wishes = (part.strip() for part in what.split(";"))
    options = dict(map(str.strip, wish.split(":", 1)) for wish in wishes)  # type: ignore[misc]
    found = results["tables"][name]
    rows = {title: row for title, row in found["rows"].items() if re.search(options.get("rows", ""), title)}
    if not rows:
        raise SystemExit(f"benchmarks/results.json has no rows of {name} that match {options.get('rows')!r}")
    heads = [head.strip() for head in options["columns"].split("|")] if "columns" in options else None
    if heads is None:
        heads = ["work", *dict.fromkeys(head for row in rows.values() for head in row)]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for title, row in rows.items():
        lines.append("| " + " | ".join([title, *(cell(row[head]) if head in row else "" for head in heads[1:])]) + " |")
    return "\n".join(["", *lines, "", source(results, found), "", ""])


def written(text: str, results: dict[str, Any]) -> str:
    """Return a page with updated tables."""
    return MARKED.sub(lambda mark: mark[1] + table(mark["what"], results) + mark[3], text)


def main(check: bool) -> int:
    results, stale = json.loads(RESULTS.read_text()), []
    for page in PAGES:
        text = page.read_text()
        if (now := written(text, results)) != text:
            stale.append(page.relative_to(ROOT))
            if not check:
                page.write_text(now)
    if check and stale:
        print(f"tables out of date: {', '.join(map(str, stale))}. Run python tools/results.py")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
