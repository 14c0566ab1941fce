"""The tables of README and documentation are those of benchmarks/results.json, and contain all benchmark figures."""

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
#: Times with other sources: benchmarks/cluster.py, and the suite of HIPS autograd, with its limit.
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
    """Pages with other numbers, from the computations of their programs."""
    for page in sorted((ROOT / "docs" / folder).glob("*.md")):
        text = page.read_text(encoding="utf-8")
        prose = re.sub(
            r"<!-- (results|times|printed)\b.*?<!-- /\1 -->|^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE
        )
        assert page.name in TIMED_THERE or not [line for line in prose.splitlines() if TIMED.search(line)], page.name


def test_pages_stay_short() -> None:
    """The text, without the tables of results on the performance page."""
    words = {page: len((ROOT / page).read_text(encoding="utf-8").split()) for page in PAGES}
    prose = re.sub(
        r"<!-- results: .*?<!-- /results -->", "", (ROOT / PAGES[2]).read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert words["README.md"] <= 1_400 and len(prose.split()) <= 1_200


def test_a_run_is_recorded_work_by_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements before an interruption are in the file; works of one run share its entry, others keep theirs."""
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
