"""Other people's programs on chainrule: their own test suites, counted, and held to what passes on their own library.

python tools/clients.py [NAME...] [--own | --write]

Needs a network: packages come from the registry, and suites from source distributions or, where these hold none, from the
project's repository. All of it lies in build/clients; a suite that is there already, in build/clients/NAME, is taken as it is.
tests/clients/baseline.json says what to run, and how many tests pass on their own library (``own``) and here (``ours``).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BASELINE = ROOT / "tests" / "clients" / "baseline.json"
BUILD = ROOT / "build" / "clients"
PYTHON = BUILD / "venv" / "bin" / "python"
TESTERS = ["pytest", "pytest-mock", "pytest-randomly", "pytest-rng", "pytest-benchmark", "pytest-timeout", "flaky"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="the clients to run (default: all)")
    parser.add_argument("--own", action="store_true", help="on their own library; note the counts")
    parser.add_argument("--write", action="store_true", help="note the counts here")
    options = parser.parse_args()
    clients = json.loads(BASELINE.read_text())
    unknown = set(options.names) - set(clients)
    if unknown:
        parser.error(f"no such client: {', '.join(sorted(unknown))}; there are {', '.join(clients)}")
    BUILD.mkdir(parents=True, exist_ok=True)
    if not PYTHON.exists():
        run([sys.executable, "-m", "venv", BUILD / "venv"])
        run([*PIP, "--editable", f"{ROOT}[scipy]", *TESTERS])
    print(f"{'client':16} {'own library':>11} {'before':>8} {'now':>8}   not passed", flush=True)
    fallen = False
    for name in options.names or clients:
        client = clients[name]
        run([*PIP, *client["needs"]])
        passed, others = count(client, suite(name, client["source"]), options.own)
        before = client.get("own" if options.own else "ours", 0)
        fallen |= passed < before
        print(f"{name:16} {client.get('own', '–'):>11} {before:>8} {passed:>8}   {others}", flush=True)
        if options.own or options.write:
            client["own" if options.own else "ours"] = passed
            BASELINE.write_text(json.dumps(clients, indent=2, ensure_ascii=False) + "\n")
    return int(fallen)


PIP = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def run(command: list[Any], **options: Any) -> None:
    subprocess.run(command, check=True, **options)


def suite(name: str, source: str) -> Path:
    """The folder of a client's sources: ``name==version`` from the registry, ``address@commit`` from a repository."""
    folder = BUILD / name
    if folder.exists():
        return folder
    if source.startswith("https://"):
        address, _, commit = source.partition("@")
        folder.mkdir()
        for command in (["init"], ["fetch", "--depth", "1", address, commit], ["checkout", "--detach", "FETCH_HEAD"]):
            run(["git", command[0], "--quiet", *command[1:]], cwd=folder)
        return folder
    run(
        [PYTHON, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--dest", BUILD / "sdists", source]
    )
    (archive,) = (BUILD / "sdists").glob(f"{name}-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(BUILD / "unpacked", filter="data")
    (BUILD / "unpacked" / archive.name.removesuffix(".tar.gz")).rename(folder)
    return folder


def count(client: dict[str, Any], folder: Path, own: bool) -> tuple[int, str]:
    """How many tests pass, and what else came out."""
    report = BUILD / "report.xml"
    report.unlink(missing_ok=True)
    library = [] if own else ["-m", f"chainrule.compat.{client['library']}"]
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "--timeout", "300", f"--junitxml={report}"]
    options += ["--randomly-seed=0", "--randomly-dont-reorganize"]
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)}
    with (BUILD / "output.txt").open("w") as output:
        command = [PYTHON, *library, "-m", "pytest", *options, *client["tests"]]
        subprocess.run(command, cwd=folder / client.get("folder", ""), env=environment, stdout=output, stderr=output)
    if not report.exists():
        return 0, f"see {BUILD / 'output.txt'}"
    cases = list(ET.parse(report).iter("testcase"))
    kinds = [
        next((part.tag for part in case if part.tag in ("failure", "error", "skipped")), "passed") for case in cases
    ]
    others = {kind: kinds.count(kind) for kind in ("failure", "error", "skipped")}
    return kinds.count("passed"), ", ".join(f"{n} {kind}" for kind, n in others.items() if n)


if __name__ == "__main__":
    sys.exit(main())
