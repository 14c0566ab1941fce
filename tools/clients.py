"""Run the test suites of other projects (clients) on chainrule, and compare the number of passing tests with a baseline.

python tools/clients.py [NAME...] [--own | --write]

The script needs network access: packages come from the registry, and test suites from source distributions or, if these
contain none, from the project's repository. Clients that cannot be downloaded are skipped. All files are in build/clients;
an existing suite in build/clients/NAME is reused. tests/clients/baseline.json contains the commands, the environment
variables that select a backend, and the number of tests that pass with the client's own library (``own``) and with
chainrule (``ours``).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BASELINE = ROOT / "tests" / "clients" / "baseline.json"
BUILD = ROOT / "build" / "clients"
PYTHON = BUILD / "venv" / "bin" / "python"
OPTIONS = [
    "-q",
    "-p",
    "no:cacheprovider",
    "-W",
    "ignore",
    "--timeout",
    "300",
    "--randomly-seed=0",
    "--randomly-dont-reorganize",
]
TESTERS = ["pytest", "pytest-mock", "pytest-randomly", "pytest-rng", "pytest-benchmark", "pytest-timeout", "flaky"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="the clients to run (default: all)")
    parser.add_argument("--own", action="store_true", help="run on the clients' own library and record the counts")
    parser.add_argument("--write", action="store_true", help="record the counts on chainrule")
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
    fallen, without = False, []
    for name in options.names or clients:
        client = clients[name]
        try:
            run([*PIP, *client["needs"], *([OWN[client["library"]]] if options.own else [])])
            folder = suite(name, client["source"])
        except Unreachable as error:
            without.append(name)
            print(f"{name:16} {client.get('own', '–'):>11} {'':>8} {'–':>8}   not run: {error}", flush=True)
            continue
        passed, others = count(client, folder, options.own)
        before = client.get("own" if options.own else "ours", 0)
        fallen |= passed < before
        print(f"{name:16} {client.get('own', '–'):>11} {before:>8} {passed:>8}   {others}", flush=True)
        if options.own or options.write:
            client["own" if options.own else "ours"] = passed
            BASELINE.write_text(json.dumps(clients, indent=2, ensure_ascii=False) + "\n")
    if without:
        print(f"could not be downloaded: {', '.join(without)}; put their sources into build/clients/NAME")
    return int(fallen)


PIP = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]

#: the libraries that chainrule replaces
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OWN = {"autograd": "autograd", "torch": PROJECT["optional-dependencies"]["oracle"][0]}


class Unreachable(Exception):
    """Raised if a package or repository cannot be downloaded."""


def run(command: list[Any], **options: Any) -> None:
    """Run a pip or git command; raise Unreachable with its last line of output if it fails."""
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment, **options)
    except subprocess.TimeoutExpired:
        raise Unreachable(f"no answer in 600 seconds: {' '.join(map(str, command))}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Unreachable(said[-1] if said else f"{' '.join(map(str, command))} failed")


def suite(name: str, source: str) -> Path:
    """Download a client's sources (``name==version`` or ``address@commit``) and return their directory."""
    folder = BUILD / name
    if folder.exists():
        return folder
    if source.startswith("https://"):
        address, _, commit = source.partition("@")
        clone = BUILD / "cloned" / name
        shutil.rmtree(clone, ignore_errors=True)
        clone.mkdir(parents=True)
        for command in (["init"], ["fetch", "--depth", "1", address, commit], ["checkout", "--detach", "FETCH_HEAD"]):
            run(["git", command[0], "--quiet", *command[1:]], cwd=clone)
        return clone.rename(folder)
    run(
        [PYTHON, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--dest", BUILD / "sdists", source]
    )
    (archive,) = (BUILD / "sdists").glob(f"{name.replace('-', '[-_]')}-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(BUILD / "unpacked", filter="data")
    (BUILD / "unpacked" / archive.name.removesuffix(".tar.gz")).rename(folder)
    return folder


def count(client: dict[str, Any], folder: Path, own: bool) -> tuple[int, str]:
    """Run the tests; return the number that pass, and a summary of the others."""
    report = BUILD / "report.xml"
    report.unlink(missing_ok=True)
    library = [] if own else ["-m", f"chainrule.compat.{client['library']}"]
    one = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1")
    own_settings = client.get("environment", {})
    environment = {**os.environ, **one, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT), **own_settings}
    with (BUILD / "output.txt").open("w") as output:
        command = [PYTHON, *library, "-m", "pytest", *OPTIONS, f"--junitxml={report}", *client["tests"]]
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
