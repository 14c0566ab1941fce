"""Explanations as text, in notebooks, and for rich."""

from __future__ import annotations

import io
import unicodedata

import numpy as np
import pytest

import chainrule as cr


@pytest.fixture
def e():
    x = cr.tensor([[2.0, 1.0, -3.0], [-3.0, 4.0, 2.0]], requires_grad=True)
    w = cr.tensor(np.ones((3, 4), np.float32), requires_grad=True)
    scale = cr.tensor([0.5, 0.25, 1.0, 2.0])
    y = cr.tanh(x @ w) * scale
    return cr.explain(y)


def columns(line):
    return sum(not unicodedata.combining(c) for c in line)


def test_text_fits_eighty_columns(e):
    assert max(columns(line) for line in str(e).split("\n")) <= 80


def test_text_has_everything(e):
    text = str(e)
    for part in (
        "Step 1",
        "tanh",
        "never built",
        "rule",
        "numbers",
        "Check:",
        "✓",
        "constant",
        "scale: does not require grad",
    ):
        assert part in text
    assert repr(e) == "<explanation of y → x, w: 3 steps>"


def test_long_names_do_not_break_the_columns():
    a_rather_long_name_for_a_tensor = cr.ones(3, requires_grad=True)
    another_name_that_is_long_as_well = a_rather_long_name_for_a_tensor * 2
    text = str(cr.explain(another_name_that_is_long_as_well.sum()))
    assert max(columns(line) for line in text.split("\n")) <= 80


def test_large_arrays_are_cut():
    x = cr.ones(300, 300, requires_grad=True)
    text = str(cr.explain((x * x).sum()))
    assert "..." in text and len(text) < 6000
    assert max(columns(line) for line in text.split("\n")) <= 80


def test_notebooks_get_html_without_scripts(e):
    bundle = e._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "image/svg+xml"}
    assert "<script" not in bundle["text/html"] and "<math" in bundle["text/html"] and "<svg" in bundle["text/html"]
    assert set(e._repr_mimebundle_(include=["text/plain"])) == {"text/plain"}
    assert "text/html" not in e._repr_mimebundle_(exclude=["text/html"])
    assert e._repr_svg_().lstrip().startswith("<svg")


def test_names_are_escaped():
    values = {"<script>": cr.ones(2, requires_grad=True)}
    e = cr.explain((values["<script>"] * 2).sum())
    assert "<script" not in e._repr_html_()


def test_rich(e):
    rich = pytest.importorskip("rich.console")
    out = io.StringIO()
    console = rich.Console(file=out, width=80, color_system="truecolor", force_terminal=True)
    console.print(e)
    assert "\x1b[" in out.getvalue()
    plain = io.StringIO()
    rich.Console(file=plain, width=80).print(e)
    assert [line.rstrip() for line in plain.getvalue().rstrip().split("\n")] == [
        line.rstrip() for line in str(e).split("\n")
    ]


def test_importing_chainrule_loads_none_of_it():
    import subprocess
    import sys

    code = "import sys, chainrule; print([m for m in sys.modules if m.startswith('chainrule.explaining')])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
