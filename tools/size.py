"""Sizes: the table in docs/architecture.md (lines of Python by folder, of the package and of its tests), and budgets.

python tools/size.py            print the table
python tools/size.py --write    put it into the page; budgets of what has shrunk become smaller
python tools/size.py --check    fail if a total on the page is off by more than a tenth

tools/size.json has the budget of each room and each public package, in lines; tools/types.json says how often ``Any`` may stand
there, and how often a type checker may be told to ignore something. With more, both options fail, and write nothing; nothing but
an editor raises a budget.
"""

import ast
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BETWEEN = re.compile(r"(?<=<!-- size -->\n).*?(?=<!-- /size -->)", re.DOTALL)
ALLOWED = 0.1
BUDGETS = ROOT / "tools" / "size.json"
TYPES = ROOT / "tools" / "types.json"
SPARE = 0.02  # of a room's lines are left to it where a budget is set


def lines(text: str) -> int:
    return len(text.encode().splitlines())


def anys(text: str) -> int:
    """How often a file says ``Any``; its imports do not count."""
    if "Any" not in text:
        return 0
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(ast.parse(text)))


def ignores(text: str) -> int:
    """How often a file tells a type checker not to look."""
    return text.count("# type: ignore")


#: what each room has a budget of, and how it is counted
COUNTED = {"lines": lines, "Any": anys, "type: ignore": ignores}


def count(counted: str, folder: str) -> Counter[str]:
    """What is counted, in the Python under a folder, by the folder inside it, or the room."""
    found: Counter[str] = Counter()
    for path in (ROOT / folder).rglob("*.py"):
        first, *below = path.relative_to(ROOT / folder).parts
        if first == "_src" and len(below) > 1:
            first = f"_src/{below[0]}"
        found[f"{first}/" if below else "files beside them"] += COUNTED[counted](path.read_text(encoding="utf-8"))
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


def number(found: int) -> str:
    return f"{found:,}" if found else "–"


#: what to do about a room that is over a budget
CURES = {
    "lines": "shorten something there, or raise the number in size.json by hand, and let the commit say what the lines bought",
    "Any": "say what goes in and out (arrays/types.py has the words), or raise the number in types.json by hand, and let the "
    "commit say why",
    "type: ignore": "mend the types, or raise the number in types.json by hand, and let the commit say why",
}


def too_many(counted: str, package: Counter[str], budgets: dict[str, int]) -> list[str]:
    """What is wrong with the rooms that have more than their budgets; a room without one has 0."""
    return [
        f"chainrule/{name}: {found:,} {counted}, and {budgets.get(name, 0):,} is its budget: {CURES[counted]}"
        for name, found in sorted(package.items())
        if found > budgets.get(name, 0)
    ]


def lowered(counted: str, package: Counter[str], budgets: dict[str, int]) -> dict[str, int]:
    """The budgets, and what has shrunk has no more to spare than at first (of types, nothing); what is gone has none."""
    spare = SPARE if counted == "lines" else 0
    return {
        name: min(budget, math.ceil(package[name] * (1 + spare)))
        for name, budget in sorted(budgets.items())
        if package[name]
    }


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def write(path: Path, budgets: dict[str, Any]) -> None:
    path.write_text(json.dumps(budgets, indent=2) + "\n", encoding="utf-8")


def main(option: str = "") -> int:
    package, tests = count("lines", "chainrule"), count("lines", "tests")
    new = f"\n{table(package, tests)}\n\n"
    page = PAGE.read_text(encoding="utf-8")
    budgets = {"lines": read(BUDGETS), **read(TYPES)}
    if option:
        found = {counted: count(counted, "chainrule") for counted in COUNTED}
        if over := [line for counted in COUNTED for line in too_many(counted, found[counted], budgets[counted])]:
            print(*over, sep="\n")
            return 1
    if option == "--write":
        PAGE.write_text(BETWEEN.sub(lambda _: new, page), encoding="utf-8")
        less = {counted: lowered(counted, found[counted], budgets[counted]) for counted in COUNTED}
        write(BUDGETS, less.pop("lines"))
        write(TYPES, less)
    elif option == "--check":
        total = re.search(r"^\| all \| ([\d,]+) \| ([\d,]+) \|$", page, re.MULTILINE)
        written = [int(number.replace(",", "")) for number in total.groups()] if total else [0, 0]
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
