"""Run all benchmarks on this machine in one run, write benchmarks/results.json, and update the tables of the pages.

python benchmarks/run_all.py [--only PARTS] [--rounds N] [--try]

Each part is a script of this directory. It writes its measurements to build/bench/PART.json after each work. When all
parts have succeeded, the results file gets the measurements of all parts, with the date, the commit, the machine and the
versions of the libraries, once for the run. Without ``--only`` all parts are measured.

With ``--only``, the other parts are those that build/bench has from the same date, commit, machine and versions: a part
that failed can be repeated without the others. ``--try`` writes nothing but build/bench: it checks that each part runs.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from datetime import date
from typing import Any

from report import RESULTS, ROOT, processor, progress

FOLDER = ROOT / "build" / "bench"
LIBRARIES = ("numpy", "scipy", "chainrule", "torch", "jax", "autograd", "mygrad", "asdex", "casadi")

#: The arguments of each part. Libraries and works that no table shows are left out; the time limits of an answer are those
#: that the tables quote.
PARTS = {
    "first_touch": "--rounds 3",
    "eager": "--rounds 3 --seconds 0.05",
    "compiled": "--rounds 3 --seconds 0.1 --peers jax,numpy,eager --only 'Rosenbrock|MLP|20 ×'",
    "jacobians": "--rounds 3 --seconds 0.1 --limit 60",
    "adbench": "--rounds 2 --seconds 0.05 --limit 20 --peers numpy,compiled,scan,prepared,eager,jax,torch",
}


def this_run() -> dict[str, Any]:
    """Return the date, the commit, the machine and the versions of a run that starts now."""
    missing = [name for name in LIBRARIES if not _version(name)]
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)}. `make bench` installs them: pip install -e '.[bench]'")
    return {
        "date": date.today().isoformat(),
        "commit": commit(),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES}},
    }


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return ""


def commit() -> str:
    """Return the short hash of the checkout's commit, and whether the code of the package or the benchmarks differs."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    changed = git("status", "--porcelain", "--", "chainrule", "benchmarks", f":!{RESULTS.relative_to(ROOT)}")
    return git("rev-parse", "--short=8", "HEAD") + (" with changes" if changed else "") or "unknown"


def measured(part: str, arguments: str) -> bool:
    """Run a part and write its file; return whether it succeeded."""
    file, start = FOLDER / f"{part}.json", time.monotonic()
    file.unlink(missing_ok=True)
    command = [sys.executable, f"benchmarks/{part}.py", *shlex.split(arguments), "--record", str(file)]
    with (FOLDER / f"{part}.txt").open("w") as printed:
        code = subprocess.run(command, cwd=ROOT, stdout=printed).returncode
    progress(f"== {part}: {time.monotonic() - start:.0f} s" + (f", failed: see {printed.name}" if code else ""))
    if not code:
        table = json.loads(file.read_text())
        table["command"] = f"python benchmarks/{part}.py {arguments}"
        file.write_text(json.dumps(table))
    return not code


def complete(run: dict[str, Any]) -> dict[str, Any]:
    """Return the results of all parts, or exit if a part is missing."""
    tables = {}
    for part in PARTS:
        file = FOLDER / f"{part}.json"
        table = json.loads(file.read_text()) if file.exists() else {}
        if "command" not in table:
            raise SystemExit(f"{RESULTS.name} is unchanged: {part} has no result. Run `{sys.argv[0]} --only {part}`")
        tables[part] = {"run": 0, **table}
    return {"runs": [run], "tables": tables}


def write(results: dict[str, Any]) -> None:
    """Write the results file, with each list of numbers on one line."""
    text = json.dumps(results, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+([-\d.e,\s]+?)\s+\]", lambda numbers: f"[{' '.join(numbers[1].split())}]", text) + "\n"
    whole = RESULTS.with_suffix(".new")
    whole.write_text(text)
    whole.replace(RESULTS)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run all benchmarks in one run and update the tables of the pages.")
    parser.add_argument("--only", metavar="PARTS", default="", help=f"of {','.join(PARTS)} (default: all)")
    parser.add_argument("--rounds", type=int, help="rounds of every part (default: those of each part)")
    parser.add_argument("--try", dest="trial", action="store_true", help="do not write the results file and the pages")
    arguments = parser.parse_args()
    arguments.only = [name for name in arguments.only.split(",") if name]
    if unknown := set(arguments.only) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return arguments


def main() -> int:
    arguments, run = parse_arguments(), this_run()
    FOLDER.mkdir(parents=True, exist_ok=True)
    header = FOLDER / "run.json"
    if not arguments.only or not header.exists() or json.loads(header.read_text()) != run:
        for file in FOLDER.glob("*.json"):  # of another run
            file.unlink()
        header.write_text(json.dumps(run))
    succeeded = True
    for part in arguments.only or PARTS:
        wanted = PARTS[part]
        if arguments.rounds is not None:
            wanted = re.sub(r"--rounds \d+", f"--rounds {arguments.rounds}", wanted)
        succeeded &= measured(part, wanted)
    if arguments.trial:
        return not succeeded
    write(complete(run))
    return subprocess.run([sys.executable, str(ROOT / "tools" / "results.py")], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
