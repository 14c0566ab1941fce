"""Regenerate ``recorded.json`` with PyTorch (the ``oracle`` extra): ``python tests/ops/record.py``. Not a test.

It also runs chainrule, and prints and omits the cases in which the two differ: these are intended differences (mostly
input that PyTorch rejects and chainrule accepts), or defects. The name of a node is recorded if the two agree: a composite
may be recorded as its primitives instead.
"""

from __future__ import annotations

import json
import pathlib
import sys
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import cases
import observe

import chainrule


def main() -> None:
    """Record all blocks."""
    warnings.simplefilter("ignore")
    recorded: dict[str, dict[str, object]] = {}
    differing = []
    for block, items in cases.BLOCKS.items():
        recorded[block] = {}
        precise = cases.PRECISE.get(block)
        digits = 13 if precise else 6
        for case in items:
            theirs, ours = observe.observe(torch, case, digits), observe.observe(chainrule, case, digits)
            if theirs.get("node") != ours.get("node"):
                theirs.pop("node", None)
            problem = observe.difference(theirs, ours, precise)
            if theirs.get("words", "") != case.partition(" !! ")[2]:
                problem = f"PyTorch gives {theirs.get('words', 'no error')!r}"
            if problem:
                differing.append(f"{block}: {case}: {problem}")
                continue
            recorded[block][case] = theirs
    lines = []
    for block, found in recorded.items():
        body = ",\n".join(f"  {json.dumps(case)}: {json.dumps(seen)}" for case, seen in found.items())
        lines.append(f"{json.dumps(block)}: {{\n{body}\n}}")
    path = pathlib.Path(__file__).with_name("recorded.json")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(*differing, sep="\n")
    print(sum(map(len, recorded.values())), "cases recorded;", len(differing), "left out because they differ")


if __name__ == "__main__":
    main()
