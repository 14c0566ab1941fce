"""Check that the tables of measurements come from benchmarks/results.json, and that no other text contains measurements."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/index.md", "docs/performance.md"]
MEASURED = re.compile(r"\d\s?(µs|ms|MiB|GiB)\b|\b\d[\d.]*\s(times faster|milliseconds|microseconds)")
TIMED = re.compile(r"\d\s(µs|ms|s|seconds?|milliseconds|microseconds)\b|\d\stimes (faster|slower)")
#: Pages with their own measurements: of benchmarks/cluster.py, and of the tests of HIPS autograd.
TIMED_THERE = {"dask.md", "from_autograd.md"}


def test_tables_are_those_of_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("results", ROOT / "tools" / "results.py")
    assert spec is not None and spec.loader is not None
    results = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(results)
    assert results.main(check=True) == 0, capsys.readouterr().out
    shown = [page for page in PAGES if results.MARKED.search((ROOT / page).read_text(encoding="utf-8"))]
    assert shown == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_no_figure_is_typed_by_hand(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = re.sub(r"<!-- results: .*?<!-- /results -->", "", text, flags=re.DOTALL)
    assert not [line for line in prose.splitlines() if MEASURED.search(line)]


@pytest.mark.parametrize("folder", ["guide", "gallery", "explained", "questions"])
def test_no_time_is_typed_by_hand(folder: str) -> None:
    """Check pages that contain other numbers, computed by their programs."""
    for page in sorted((ROOT / "docs" / folder).glob("*.md")):
        text = page.read_text(encoding="utf-8")
        prose = re.sub(
            r"<!-- (results|times|printed)\b.*?<!-- /\1 -->|^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE
        )
        assert page.name in TIMED_THERE or not [line for line in prose.splitlines() if TIMED.search(line)], page.name


def test_the_readme_stays_short() -> None:
    """Count the words without tables of results."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(re.sub(r"<!-- results: .*?<!-- /results -->", "", text, flags=re.DOTALL).split()) <= 1_300


def test_a_run_is_recorded_work_by_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that an interrupted run keeps its results, and that only rows of the same run share its entry."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    report, file = importlib.import_module("report"), tmp_path / "results.json"
    monkeypatch.setattr(report, "RESULTS", file)
    tables = []
    for command, works in (("first", "ab"), ("second", "bc")):
        monkeypatch.setattr("sys.argv", [command])
        for work in works:
            report.record("a benchmark", {work: {"ms": [1.0, 0.5, 2.0], "by": command}}, [])
            tables.append(json.loads(file.read_text())["a benchmark"])
    assert [sorted(table["rows"]) for table in tables] == [["a"], ["a", "b"], ["a", "b"], ["a", "b", "c"]]
    commands = [run["command"].split("/")[1] for run in tables[-1]["runs"]]
    assert commands == ["first", "second"] and len(tables[1]["runs"]) == 1
    assert {work: commands[row["run"]] for work, row in tables[-1]["rows"].items()} == {
        "a": "first", "b": "second", "c": "second",
    }  # fmt: skip
    assert os.listdir(tmp_path) == ["results.json"]
