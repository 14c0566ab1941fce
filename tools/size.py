"""Sizes: the table in docs/architecture.md (lines of Python by folder, of the package and of its tests), and budgets.

python tools/size.py            print the table
python tools/size.py --write    put it into the page; budgets of what has shrunk become smaller
python tools/size.py --check    fail if a total on the page is off by more than a tenth

tools/size.json has the budget of each room and each public package, in lines. With more, both options fail, and write nothing;
nothing but an editor raises a budget.
"""

import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BETWEEN = re.compile(r"(?<=<!-- size -->\n).*?(?=<!-- /size -->)", re.DOTALL)
ALLOWED = 0.1
BUDGETS = ROOT / "tools" / "size.json"
SPARE = 0.02  # of a room's lines are left to it where a budget is set


def lines(folder: str) -> Counter[str]:
    """Lines of Python under a folder, by the folder inside it, or the room."""
    found: Counter[str] = Counter()
    for path in (ROOT / folder).rglob("*.py"):
        first, *below = path.relative_to(ROOT / folder).parts
        if first == "_src" and len(below) > 1:
            first = f"_src/{below[0]}"
        found[f"{first}/" if below else "files beside them"] += len(path.read_bytes().splitlines())
    return found


def table(package: Counter[str], tests: Counter[str]) -> str:
    """Markdown, the largest part of the package first."""
    names = sorted(package.keys() | tests.keys(), key=lambda name: (-package[name], -tests[name], name))
    rows = [("", "package", "tests")]
    rows += [
        (f"`{name}`" if name.endswith("/") else name, number(package[name]), number(tests[name])) for name in names
    ]
    rows.append(("all", number(package.total()), number(tests.total())))
    return "\n".join(
        ["| {} | {} | {} |".format(*rows[0]), "|---|---:|---:|"] + ["| {} | {} | {} |".format(*row) for row in rows[1:]]
    )


def number(count: int) -> str:
    return f"{count:,}" if count else "–"


def too_long(package: Counter[str], budgets: dict[str, int]) -> list[str]:
    """What is wrong with the rooms that have more lines than their budgets; a room without one has 0."""
    return [
        f"chainrule/{name}: {count:,} lines, and {budgets.get(name, 0):,} is its budget: shorten something there, or raise the "
        f"number in {BUDGETS.name} by hand, and let the commit say what the lines bought"
        for name, count in sorted(package.items())
        if count > budgets.get(name, 0)
    ]


def lowered(package: Counter[str], budgets: dict[str, int]) -> dict[str, int]:
    """The budgets, and what has shrunk has no more to spare than at first; what is gone has none."""
    return {
        name: min(budget, math.ceil(package[name] * (1 + SPARE)))
        for name, budget in sorted(budgets.items())
        if package[name]
    }


def main(option: str = "") -> int:
    package, tests = lines("chainrule"), lines("tests")
    new = f"\n{table(package, tests)}\n\n"
    page = PAGE.read_text(encoding="utf-8")
    budgets = json.loads(BUDGETS.read_text(encoding="utf-8"))
    if option and (over := too_long(package, budgets)):
        print(*over, sep="\n")
        return 1
    if option == "--write":
        PAGE.write_text(BETWEEN.sub(lambda _: new, page), encoding="utf-8")
        BUDGETS.write_text(json.dumps(lowered(package, budgets), indent=2) + "\n", encoding="utf-8")
    elif option == "--check":
        found = re.search(r"^\| all \| ([\d,]+) \| ([\d,]+) \|$", page, re.MULTILINE)
        written = [int(total.replace(",", "")) for total in found.groups()] if found else [0, 0]
        off = [
            f"{now:,} now, {then:,} there"
            for now, then in zip((package.total(), tests.total()), written)
            if abs(now - then) > ALLOWED * now
        ]
        if off:
            print(f"{PAGE.relative_to(ROOT)}: the table of sizes is out of date ({'; '.join(off)}): make size")
            return 1
    else:
        print(new.strip())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
