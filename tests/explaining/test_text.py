"""Explanations as text, in notebooks, and for rich."""

from __future__ import annotations

import io
import unicodedata

import numpy as np
import pytest

import chainrule as cr
import chainrule.nn.functional as F


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

    code = "import sys, chainrule; print([m for m in sys.modules if m.startswith('chainrule._src.explaining')])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def network():
    """A small convolutional network with its loss."""
    x, target = cr.ones(2, 1, 10, 10), cr.tensor([0, 2])
    w1, b1 = cr.full((3, 1, 3, 3), 0.1, requires_grad=True), cr.zeros(3, requires_grad=True)
    w2, b2 = cr.full((4, 3, 3, 3), 0.2, requires_grad=True), cr.zeros(4, requires_grad=True)
    w3 = cr.full((3, 16), 0.1, requires_grad=True)
    h1 = F.max_pool2d(F.relu(F.conv2d(x, w1, b1)), 2)
    h2 = F.max_pool2d(F.relu(F.conv2d(h1, w2, b2, padding=1)), 2).flatten(1)
    loss = F.cross_entropy(h2 @ w3.T, target)
    return cr.explain(loss)


def test_a_network_is_told_briefly():
    text = str(network())
    lines = text.split("\n")
    assert len(lines) < 120
    assert max(columns(line) for line in lines) <= 80
    assert "w2\u02c9 = (4, 3, 3, 3); [0, 0, :, :] is [[" in text
    assert "all" in text and "Check: " in text
    assert all(f"Step {i} " in text for i in range(1, 10))


def test_parts_of_a_call_say_so():
    e = network()
    assert {step.call for step in e.steps if step.op in ("convolution", "gather")} == {"conv2d", "max_pool2d"}
    assert {step.call for step in e.steps if step.op in ("relu", "mm", "cross_entropy")} == {""}
    labels = [node.label for node in e.graph.nodes if node.kind == "op"]
    assert labels.count("conv2d") == labels.count("max_pool2d") == 2
    assert not {"convolution", "gather"} & set(labels)


def test_a_call_in_a_loop_is_as_many_calls():
    x = cr.tensor([0.5, 2.0], requires_grad=True)
    y = x
    for _ in range(3):
        y = cr.outer(y, x)[0]
        y = cr.tanh(y)
    e = cr.explain(y.sum())
    assert [step.call for step in e.steps if step.op == "mul"] == ["outer"] * 3
    assert {step.call for step in e.steps if step.op in ("tanh", "getitem")} == {""}
    first = [step for step in e.steps if step.call][:2]
    assert [step.op for step in first] == ["mul", "unsqueeze"]


def test_the_letter_is_another_where_the_program_has_an_l():
    L = cr.tensor([1.0, 2.0], requires_grad=True)
    y = L * L
    e = cr.explain(y, grad=cr.ones(2))
    assert e.scalar == "ℒ" and "y\u02c9 = ∂ℒ/∂y" in str(e) and "∂L/∂" not in str(e)
    assert cr.explain(y.sum()).scalar == "t1"


def test_the_notebook_has_the_pages_language(e):
    html = e._repr_html_()
    rules = html[html.index("<style>") : html.index("</style>")]
    assert all(".chainrule" in part for part in rules.split("}")[:-1] if "{" in part and "@" not in part)
    assert " id='" not in html and "href='#" not in html and "<input" not in html
