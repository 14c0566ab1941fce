"""A fixed selection of the random programs; ``make fuzz`` runs many. Programs that failed are in test_found_programs.py."""

from pathlib import Path

import pytest

from chainrule._src.tape.eager import LOOPS

from . import judging, making, modes


def starts(stop, step):
    """Return the start of each part of the seeds: the first part always runs, the others are slow tests."""
    slow = [pytest.param(first, marks=pytest.mark.slow) for first in range(step, stop, step)]
    return pytest.mark.parametrize("first", [0, *slow])


def run(mode, seeds):
    make, judge = modes.MODES[mode]()
    judged = 0
    for seed in seeds:
        program = make(seed)
        outcome = judge(program)
        if outcome.failure:
            program, failure = judging.shrunk(program, judge, outcome.failure)
            pytest.fail(f"python -m tests.fuzz {mode} --seed {seed} -n 1: {failure.what}\n{making.text_of(program)}")
        judged += len(outcome.agreed)
    return judged


@pytest.mark.filterwarnings("ignore")
@starts(40, 20)
def test_against_differences(first):
    assert run("plain", range(first, first + 20)) > 60


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@starts(60, 20)
def test_against_pytorch(first):
    pytest.importorskip("torch")
    assert run("torch", range(first, first + 20)) > 400


@pytest.mark.filterwarnings("ignore")
@starts(80, 40)
def test_numpy_programs(first):
    assert run("numpy", range(first, first + 40)) > 100


@pytest.mark.filterwarnings("ignore")
@starts(20, 10)
def test_compiled_programs(first):
    assert run("compile", range(first, first + 10)) > 5


@pytest.mark.skipif(LOOPS is None, reason="the extension is not there")
@pytest.mark.filterwarnings("ignore")
@starts(80, 40)
def test_programs_in_c(first):
    assert run("native", range(first, first + 40)) > 300


@pytest.mark.filterwarnings("ignore")
@starts(80, 20)
def test_programs_in_chunks(first):
    pytest.importorskip("dask.array")
    assert run("dask", range(first, first + 20)) > 10


@pytest.mark.filterwarnings("ignore")
@starts(80, 40)
def test_pairs_of_calls(first):
    assert run("pairs", range(first, first + 40)) > 20


@pytest.mark.filterwarnings("ignore")
def test_functions_that_return_objects():
    assert run("objects", range(40)) > 200


@pytest.mark.parametrize(
    "row", sorted({row for *_, row in judging.DOCUMENTED + judging.DOCUMENTED_BEFORE + judging.OF_NUMPY})
)
def test_every_difference_is_documented(row):
    page = Path(__file__).parents[2] / "docs" / "compat.md"
    assert f"\n| {row}" in page.read_text(encoding="utf-8")
