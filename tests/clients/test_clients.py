"""Tests of ``make clients``: clients that cannot be downloaded are reported, and the others run."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "clients.py"


@pytest.fixture
def clients(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("clients", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    baseline = tmp_path / "baseline.json"
    client = {"library": "autograd", "needs": [], "tests": ["."], "own": 2}
    there, far = ({**client, "source": f"https://example.invalid/{name}@0"} for name in ("there", "far"))
    baseline.write_text(json.dumps({"far": far, "there": {**there, "ours": 1}}))
    (tmp_path / "build" / "there").mkdir(parents=True)
    (tmp_path / "build" / "there" / "test_one.py").write_text("import autograd.numpy\ndef test_one(): pass\n")
    for name, value in {"BASELINE": baseline, "BUILD": tmp_path / "build", "PYTHON": Path(sys.executable)}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "PIP", [sys.executable, "-c", "pass"])
    monkeypatch.setattr(module, "OPTIONS", ["-q", "-p", "no:cacheprovider"])
    return module


def test_what_cannot_be_had_is_told_and_the_rest_runs(clients, monkeypatch, capsys):
    answer = subprocess.run

    def no_network(command, **options):
        if command[0] == "git":
            command = [sys.executable, "-c", "import sys; sys.exit('fatal: no such host')"]
        return answer(command, **options)

    monkeypatch.setattr(subprocess, "run", no_network)
    for names, rest in (
        (["far"], []),
        ([], [["there", "2", "1", "1"]]),
    ):  # no directory remains that would be taken for sources
        monkeypatch.setattr(sys, "argv", ["clients.py", *names])
        assert clients.main() == 0
        _, far, *others, last = capsys.readouterr().out.splitlines()
        assert "fatal: no such host" in far and [line.split() for line in others] == rest
        assert last.startswith("could not be downloaded: far")


def test_fewer_passing_tests_are_a_failure(clients, monkeypatch):
    (clients.BUILD / "there" / "test_one.py").write_text("def test_one(): assert False\n")
    monkeypatch.setattr(sys, "argv", ["clients.py", "there"])
    assert clients.main() == 1


def test_a_client_sets_environment_variables(clients, monkeypatch):
    text = "import os\ndef test_one(): assert os.environ['BACKEND'] == 'torch'\n"
    (clients.BUILD / "there" / "test_one.py").write_text(text)
    monkeypatch.setattr(sys, "argv", ["clients.py", "there"])
    monkeypatch.delenv("BACKEND", raising=False)
    assert clients.main() == 1
    baseline = json.loads(clients.BASELINE.read_text())
    baseline["there"]["environment"] = {"BACKEND": "torch"}
    clients.BASELINE.write_text(json.dumps(baseline))
    assert clients.main() == 0
