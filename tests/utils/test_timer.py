"""The timer."""

import chainrule as cr
from chainrule.utils.benchmark import Measurement, Timer


def test_it_runs_the_statement():
    runs = []
    found = Timer("runs.append(1)", setup="runs.clear()", globals={"runs": runs}).timeit(50)
    assert len(runs) == 50 and found.number_per_run == 50 and len(found.times) == 1 and found.mean == found.median > 0
    found = Timer(lambda: runs.append(2), label="appending", description="twos").blocked_autorange(min_run_time=0.001)
    assert runs[-1] == 2 and sum(found.raw_times) >= 0.001 and repr(found).startswith("appending: twos\n")


def test_units():
    assert "2.50 ms\n  2 measurements, 10 runs each" in repr(Measurement(10, [0.025, 0.025]))
    assert " us\n" in repr(Measurement(1, [2e-6])) and " ns\n" in repr(Measurement(1, [2e-9]))
    assert "1.50 s" in repr(Measurement(1, [1.5]))


def test_it_loads_when_it_is_used():
    assert cr.utils.benchmark.Timer is Timer and "benchmark" in cr.utils.__all__
