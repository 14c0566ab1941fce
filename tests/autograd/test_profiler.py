"""The profiler: counts, times that add up, tables, traces."""

import contextlib
import itertools
import json
import subprocess
import sys

import pytest

import chainrule as torch
from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL
from chainrule.autograd import profiler


def step(x, w):
    return (torch.tanh(x @ w) * 2).sum()


@pytest.fixture
def prof():
    x, w = torch.randn(20, 30), torch.randn(30, 10, requires_grad=True)
    with profiler.profile(record_shapes=True, with_stack=True) as prof:
        for _ in range(3):
            step(x, w).backward()
    return prof


def test_every_operation_and_rule_is_counted(prof):
    found = {(e.key, e.phase): e.count for e in prof.key_averages()}
    assert found == {
        ("mm", "forward"): 3,
        ("tanh", "forward"): 3,
        ("mul", "forward"): 3,
        ("sum", "forward"): 3,
        ("SumBackward0", "backward"): 3,
        ("MulBackward0", "backward"): 3,
        ("TanhBackward0", "backward"): 3,
        ("MmBackward0", "backward"): 3,
    }
    assert prof.total_average().count == 24


def test_self_times_add_up_to_less_than_the_time_that_passed(prof):
    events = prof.function_events
    assert 0 < sum(e.self_cpu_time_total for e in events) == pytest.approx(prof.self_cpu_time_total)
    assert prof.self_cpu_time_total <= prof.elapsed
    assert prof.total_average().cpu_time_total == pytest.approx(prof.key_averages().self_cpu_time_total)
    for e in events:
        assert 0 <= e.self_cpu_time_total <= e.cpu_time_total and 0 <= e.start <= e.end <= prof.elapsed


def test_nested_times_are_self_plus_children(monkeypatch):
    clock = itertools.count(0, 10_000_000)  # ten milliseconds pass between two readings of the clock
    monkeypatch.setattr("chainrule._src.transforms.profiler.perf_counter_ns", lambda: next(clock))
    x = torch.ones(3, requires_grad=True)
    with profiler.profile() as prof, profiler.record_function("outer"), profiler.record_function("inner"):
        (x * x).sum().backward(create_graph=True)
    events = {e.key: e for e in prof.function_events if e.phase in ("label", "backward")}
    outer, inner = events["outer"], events["inner"]
    assert outer.depth == 0 and inner.depth == 1 and events["SumBackward0"].depth == 2
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner.cpu_time_total)
    assert 10_000 <= outer.self_cpu_time_total < outer.cpu_time_total
    inside = [e for e in prof.function_events if e.depth == 3]
    assert {e.phase for e in inside} == {"forward"}  # computations of recorded rules are recorded
    assert prof.self_cpu_time_total <= prof.elapsed
    assert prof.self_cpu_time_total == pytest.approx(outer.cpu_time_total)


def test_recursion_counts_once():
    def down(n):
        with profiler.record_function("down"):
            if n:
                down(n - 1)

    with profiler.profile() as prof:
        down(5)
    (average,) = prof.key_averages()
    assert average.count == 6 and average.cpu_time_total <= prof.elapsed
    assert average.cpu_time_total == pytest.approx(average.self_cpu_time_total)


def test_memory_is_that_of_new_outputs():
    x = torch.ones(100, 10)
    with profiler.profile() as prof, profiler.record_function("both"):
        torch.exp(x).permute(1, 0)
    found = {e.key: e for e in prof.key_averages()}
    assert found["exp"].self_cpu_memory_usage == 4000
    assert found["permute"].self_cpu_memory_usage == 0
    assert found["both"].self_cpu_memory_usage == 0 and found["both"].cpu_memory_usage == 4000


def test_shapes_and_stacks(prof, tmp_path):
    x = torch.ones(2, 3)
    with profiler.profile(record_shapes=True) as other:
        torch.exp(x), torch.exp(x), torch.exp(x.t())
    groups = [(e.key, e.input_shapes, e.count) for e in other.key_averages(group_by_input_shape=True) if e.key == "exp"]
    assert groups == [("exp", [[2, 3]], 2), ("exp", [[3, 2]], 1)]
    assert [e.key for e in other.key_averages()].count("exp") == 1
    assert len(prof.key_averages(group_by_stack_n=1)) >= len(prof.key_averages())
    prof.export_stacks(tmp_path / "stacks")
    lines = (tmp_path / "stacks").read_text().splitlines()
    assert any("test_profiler.py" in line and ":_step;mm " in line and line.split()[-1].isdigit() for line in lines)
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(tmp_path / "stacks", "self_cuda_time_total")
    with pytest.raises(ValueError, match=r"requires profile\(with_stack=True\)"):
        other.export_stacks(tmp_path / "stacks")


def test_the_printed_table_fits_80_columns(prof):
    with profiler.profile() as other, profiler.record_function("a label that is much too long to be shown in a table"):
        torch.exp(torch.ones(2))
    for text in (str(prof), str(other), str(prof.key_averages())):
        assert max(map(len, text.splitlines())) <= 80
    lines = str(prof).splitlines()
    assert lines[1].split() == ["Name", "Phase", "Calls", "Self", "Self", "%", "Total", "Output"]
    assert "forward:" in str(prof) and "backward:" in str(prof) and "elapsed:" in str(prof)
    assert "a label that is much" in str(other) and "..." in str(other)


def test_tables_are_sorted_and_limited(prof):
    def names(text):
        return [line.split()[0] for line in text.splitlines()[3:] if len(line.split()) > 5]

    averages = prof.key_averages()
    by_time = sorted(averages, key=lambda e: -e.self_cpu_time_total)
    assert names(averages.table(sort_by="self_cpu_time_total"))[:8] == [e.key for e in by_time]
    assert names(averages.table(sort_by="key"))[:2] == ["MmBackward0", "MulBackward0"]
    assert averages.table(header="HEAD").startswith("HEAD\n")
    assert "(6 more)" in averages.table(row_limit=2) and "more)" not in averages.table(row_limit=-1)
    assert "SumBa..." in averages.table(max_name_column_width=8)
    with pytest.raises(ValueError, match="cannot sort by 'cuda_time': sort_by is one of"):
        averages.table(sort_by="cuda_time")
    for sort_by in ("cpu_time", "cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "count"):
        assert "tanh" in averages.table(sort_by=sort_by)
    assert prof.table().count("tanh") == 3 and prof.table(top_level_events_only=True).count("tanh") == 3


def test_chrome_trace(prof, tmp_path):
    prof.export_chrome_trace(tmp_path / "trace.json", {"run": 3})
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace["run"] == 3 and len(trace["traceEvents"]) == len(prof.function_events)
    first = trace["traceEvents"][0]
    assert (first["name"], first["ph"], first["cat"]) == ("mm", "X", "forward") and first["dur"] > 0
    assert first["args"]["shapes"] == "[[20, 30], [30, 10]]"


def test_forward_mode_and_transformations_are_seen():
    x = torch.ones(3)
    with profiler.profile() as prof:
        torch.func.jvp(torch.exp, (x,), (x,))
        torch.func.vmap(torch.sin)(x)
    found = [(e.key, e.phase) for e in prof.key_averages()]
    assert ("exp", "forward") in found and ("exp", "tangent") in found and ("sin", "forward") in found


def test_profiles_nest_and_leave_nothing_behind():
    x = torch.ones(3)
    with profiler.profile() as outer:
        torch.exp(x)
        with profiler.profile() as inner, profiler.record_function("both"):
            torch.sin(x)
    assert [e.key for e in outer.function_events] == ["exp", "both", "sin"]
    assert [e.key for e in inner.function_events] == ["both", "sin"]
    assert LOCAL.watch is None and not ACTIVE_MODES


def test_errors_inside_end_their_events():
    x = torch.ones(3)
    with pytest.raises(RuntimeError), profiler.profile() as prof, profiler.record_function("label"):
        torch.mm(x.reshape(1, 3), x.reshape(1, 3))
    assert all(e.end >= e.start for e in prof.function_events) and prof.function_events[0].key == "label"
    assert LOCAL.watch is None and not ACTIVE_MODES


def test_record_function_without_a_profile_and_as_a_decorator():
    @profiler.record_function("work")
    def work():
        return torch.exp(torch.ones(2))

    work()
    with profiler.profile() as prof:
        work()
        work()
    assert [(e.key, e.depth) for e in prof.function_events] == [("work", 0), ("exp", 1)] * 2
    with pytest.raises(TypeError, match="record_function"):
        profiler.record_function(3)


def test_use_before_the_end_and_twice():
    prof = profiler.profile()
    assert str(prof) == "<unfinished chainrule.autograd.profiler.profile>" == repr(prof)
    for use in (prof.key_averages, prof.table, prof.total_average, lambda: prof.export_chrome_trace("x")):
        with pytest.raises(RuntimeError, match="Profiler didn't finish running"):
            use()
    with prof:
        pass
    with pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()
    with profiler.profile(enabled=False) as off:
        torch.exp(torch.ones(2))
    assert off.function_events is None


@pytest.mark.parametrize(
    "options",
    [{"use_cuda": True}, {"use_device": "cuda"}, {"with_flops": True}, {"with_modules": True}, {"use_kineto": True}],
)
def test_what_is_not_there_is_refused(options):
    with pytest.raises(NotImplementedError, match=next(iter(options))):
        profiler.profile(**options)


@pytest.mark.parametrize("name", ["emit_nvtx", "emit_itt", "load_nvprof", "parse_nvprof_trace"])
def test_tools_of_other_devices_name_the_way_out(name):
    with pytest.raises(NotImplementedError, match=rf"{name} is for GPUs.*export_chrome_trace"):
        getattr(profiler, name)()


def test_it_loads_only_when_used():
    code = "import chainrule, sys; assert 'chainrule.autograd.profiler' not in sys.modules; chainrule.autograd.profiler.profile"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_number_of_calls_of_an_event():
    with contextlib.redirect_stdout(None), profiler.profile() as profile, profiler.record_function("region"):
        torch.ones(2) * 2
    assert [e.count for e in profile.function_events if "region" in e.name] == [1]
