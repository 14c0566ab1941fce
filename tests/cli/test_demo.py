"""``chainrule demo``, and the output in a terminal."""

from __future__ import annotations

import subprocess
import sys
from unicodedata import combining

import pytest

from chainrule._src.cli.demo import TOUR


def test_the_tour(run) -> None:
    ran = run("demo")
    assert ran.code == 0 and ran.err == ""
    assert "import chainrule as cr" in ran.out and "as torch" not in ran.out
    assert "[229369.6302, 729282.0770, 222789.8313]" in ran.out  # a gradient
    assert "✓" in ran.out and "yˉ" not in ran.out  # an explanation
    assert "tensor([0., 0., 0., 0.], dtype=torch.float64)" in ran.out  # a second derivative
    assert "tensor([2.5000, 1.3000], dtype=torch.float64)" in ran.out  # a fit
    assert all(sum(not combining(c) for c in line) <= 80 for line in ran.out.splitlines())
    assert sum(len(source.splitlines()) for _, source in TOUR) <= 25


def test_it_takes_numpy_alone() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['scipy', 'rich', 'torch', 'matplotlib']))\n"
        "from chainrule._src.cli.main import main; sys.exit(main(['demo']))"
    )
    ran = subprocess.run([sys.executable, "-X", "utf8", "-c", code], capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()


@pytest.fixture
def terminal(monkeypatch):
    """Simulate a terminal."""

    def watch(**environment):
        monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        for name in ("NO_COLOR", "FORCE_COLOR", "CI"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {"TERM": "xterm-256color", **environment}.items():
            monkeypatch.setenv(name, value)

    return watch


def test_colours_in_a_terminal(run, terminal) -> None:
    pytest.importorskip("rich")
    terminal()
    out = run("ops", "exp").out
    assert out.startswith("\x1b[1mexp  (elementwise)\x1b[0m\n") and "  ∂L/∂x  g * out" in out


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_they_are_not_wanted(run, terminal, environment) -> None:
    terminal(**environment)
    assert "\x1b" not in run("ops", "exp").out


def test_colours_show_no_more_and_no_less(folder, terminal) -> None:
    pytest.importorskip("rich")
    folder.write("[red]m.py", "def f(x):\n    return x\n")
    plain = folder.run("check", "[red]m.py::f").out
    terminal()
    coloured = folder.run("check", "[red]m.py::f").out
    assert plain.startswith("gradcheck of [red]m.py::f\n")
    for code in ("\x1b[1m", "\x1b[1;32m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain
