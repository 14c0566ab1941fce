import os
import subprocess
import sys
import threading

import pytest

import chainrule as cr
from chainrule.core.modes import LOCAL, SPECIAL
from chainrule.core.watch import Watch


def _line(tensor):
    return tensor.grad_fn.metadata.get("line")


@pytest.fixture
def x():
    return cr.tensor([1.0, 2.0], requires_grad=True)


def test_nothing_is_recorded_without_it(x):
    assert _line(cr.exp(x)) is None


def test_the_line_of_every_operation_is_recorded(x):
    def inner():
        return cr.exp(x)

    with cr.record_lines():
        y = inner()
        z = (y *
             2)  # fmt: skip
    first = inner.__code__.co_firstlineno
    assert _line(y) == (__file__, first + 1, "return cr.exp(x)")
    assert _line(z).file == __file__
    assert first + 5 <= _line(z).line <= first + 6
    assert str(_line(y)) == f"test_lines.py:{first + 1}"
    assert _line(cr.exp(x)) is None


def test_every_kind_of_operation_is_seen(x):
    with cr.record_lines():
        made = [x * x, x.sum(), x[0], cr.nn.functional.linear(x, cr.ones(2, 2)), cr.stack([x, x]), x.sort()[0]]
    assert all("made = [" in _line(y).text for y in made)


def test_as_a_switch(x):
    special = len(SPECIAL)
    cr.record_lines()
    try:
        assert _line(x + 1) is not None
        with cr.record_lines(False):
            assert _line(x + 1) is None
        assert _line(x + 1) is not None
    finally:
        cr.record_lines(False)
    assert _line(x + 1) is None
    assert len(SPECIAL) == special
    assert LOCAL.watch is None


def test_nested_contexts_and_other_watches(x):
    seen = []

    class Seen(Watch):
        def recorded(self, node):
            seen.append(node)
            super().recorded(node)

    with cr.record_lines():
        with cr.record_lines():
            pass
        with Seen():
            y = x * 3
            cr.record_lines(False)
            z = x * 4
        assert LOCAL.watch is None
    assert _line(y) is not None
    assert _line(z) is None
    assert seen == [y.grad_fn, z.grad_fn]
    assert LOCAL.watch is None


def test_it_is_the_threads_own(x):
    lines = []
    with cr.record_lines():
        thread = threading.Thread(target=lambda: lines.append(_line(x * 2)))
        thread.start()
        thread.join()
    assert lines == [None]


def test_the_mode_must_be_a_bool():
    with pytest.raises(TypeError, match="must be bool, not int"):
        cr.record_lines(1)


def test_from_the_environment():
    program = (
        "import threading, chainrule as cr\n"
        "x = cr.tensor(1., requires_grad=True)\n"
        "found = [(x * 2).grad_fn]\n"
        "t = threading.Thread(target=lambda: found.append((x * 2).grad_fn)); t.start(); t.join()\n"
        "print([f.metadata['line'].line for f in found])\n"
        "cr.record_lines(False)\n"
        "print((x * 2).grad_fn.metadata)\n"
    )
    for setting, expected in (("1", "[3, 4]\n{}\n"), ("0", "KeyError")):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "CHAINRULE_LINES": setting},
            capture_output=True,
            text=True,
            check=False,
        )
        assert expected in done.stdout + done.stderr
