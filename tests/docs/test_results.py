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


def test_a_benchmark_is_recorded_work_by_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that an interrupted benchmark keeps its results."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    report, file = importlib.import_module("report"), tmp_path / "part.json"
    for count, work in enumerate("ab", 1):
        report.record(file, {work: {"ms": [1.0, 0.5, 2.0]}}, ["torch"])
        table = json.loads(file.read_text())
        assert list(table["rows"]) == list("ab"[:count]) and table["libraries"] == ["python", "numpy", "torch"]
    report.record(None, {"c": {"ms": 1.0}}, [])
    assert os.listdir(tmp_path) == ["part.json"]


PART = """
import json, pathlib, sys
file = pathlib.Path(sys.argv[sys.argv.index("--record") + 1])
file.write_text(json.dumps({"rows": {"work": {"ms": 1.5}}, "libraries": ["python", "numpy"]}))
sys.exit(pathlib.Path(__file__).stem == "second" and not pathlib.Path("repaired").exists())
"""


def test_one_run_writes_all_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run two parts of which one fails: nothing is written until it is repeated, and then both parts are of one run."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    run_all = importlib.import_module("run_all")
    results, folder = tmp_path / "benchmarks" / "results.json", tmp_path / "build"
    results.parent.mkdir()
    for name in ("first", "second"):
        (results.parent / f"{name}.py").write_text(PART)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "results.py").write_text("")
    for name, value in (("ROOT", tmp_path), ("RESULTS", results), ("FOLDER", folder), ("LIBRARIES", ("numpy",))):
        monkeypatch.setattr(run_all, name, value)
    monkeypatch.setattr(run_all, "PARTS", {"first": "--rounds 3", "second": "--rounds 2"})

    monkeypatch.setattr("sys.argv", ["run_all.py"])
    with pytest.raises(SystemExit, match=r"results\.json is unchanged: second has no result"):
        run_all.main()
    assert not results.exists()
    (tmp_path / "repaired").touch()
    monkeypatch.setattr("sys.argv", ["run_all.py", "--only", "second", "--rounds", "1"])
    assert run_all.main() == 0
    found = json.loads(results.read_text())
    assert len(found["runs"]) == 1 and set(found["runs"][0]) == {"date", "commit", "machine", "versions"}
    commands = {name: (table["run"], table["command"]) for name, table in found["tables"].items()}
    assert commands == {
        "first": (0, "python benchmarks/first.py --rounds 3"),
        "second": (0, "python benchmarks/second.py --rounds 1"),
    }

    monkeypatch.setattr(run_all, "commit", lambda: "another commit")
    with pytest.raises(SystemExit, match="first has no result"):
        run_all.main()


def test_every_part_and_option_of_a_run_exists() -> None:
    """Check the parts against the scripts, without running them."""
    text = (ROOT / "benchmarks" / "run_all.py").read_text(encoding="utf-8")
    parts = dict(re.findall(r'^    "(\w+)": "(--.*)",$', text, re.MULTILINE))
    tables = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))["tables"]
    assert list(parts) == list(tables)
    for name, arguments in parts.items():
        script = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
        assert all(f'"{option}"' in script for option in re.findall(r"--\w+", arguments)), name
        assert "record_option(parser)" in script
