"""Output in notebooks, and the IPython magic."""

from __future__ import annotations

import linecache
import types

import numpy as np
import pytest

import chainrule as cr
from chainrule.explaining import Contributions, Explanation


@pytest.mark.parametrize(
    "x, said",
    [
        (cr.tensor([1.5, -2.0], requires_grad=True), ["tensor", "float32", "requires_grad=True", "1.5", "−2.0"]),
        (cr.tensor([1.0, 2.0], requires_grad=True).exp(), ["grad_fn=&lt;ExpBackward0&gt;", "2.7183"]),
        (cr.array_api.asarray([[1, 2], [3, 4]]), ["Array", "int64", "(2, 2)"]),
        (cr.zeros(1000, 1000), ["(1000, 1000)", "the first numbers"]),
        (cr.tensor(True), ["bool", "()"]),
    ],
)
def test_arrays(x, said):
    shown = x._repr_html_()
    assert len(shown) < 6000 and "<script" not in shown
    for text in said:
        assert text in shown


def test_what_is_no_plain_array_is_left_to_text():
    seen = []
    cr.vmap(lambda x: (seen.append(x._repr_html_()), x)[1])(cr.ones(2))
    assert seen == [None]


def test_a_compiled_function():
    def step(x):
        return cr.sin(x) * 2

    compiled = cr.compile(step)
    assert "step" in compiled._repr_html_() and "<pre" not in compiled._repr_html_()
    compiled(cr.ones(3))
    shown = compiled._repr_html_()
    assert "sin" in shown and "steps native" in shown and "<summary>plan" in shown
    compiled.name = "<script>"
    assert "<script>" not in compiled._repr_html_()


def test_jacobians_and_explanations():
    J = cr.jacobian(lambda x: x[1:] * x[:-1], np.ones(5), layout="structured")
    assert "<svg" in J._repr_html_() and "<script" not in J._repr_html_()
    w = cr.tensor([1.0, 2.0], requires_grad=True)
    for shown in (cr.explain((w * w).sum()), cr.explain((w * w).sum() + w.sum(), by="term"), cr.explain(J)):
        assert "<script" not in shown._repr_html_() and "w" in shown._repr_html_()


class Shell:
    """The interface of IPython that the extension uses."""

    def __init__(self):
        self.user_ns, self.magics = {"cr": cr}, {}
        self.compile = types.SimpleNamespace(cache=self.cache)

    def cache(self, text):
        linecache.cache["<cell>"] = (len(text), None, text.splitlines(True), "<cell>")
        return "<cell>"

    def register_magic_function(self, function, kind, name):
        self.magics[kind, name] = function


CELL = """w = cr.tensor([1.0, 2.0], requires_grad=True)
fit = (w * w).sum()
loss = fit + 3 * w.sum()
"""


@pytest.fixture
def explain():
    shell = Shell()
    cr.load_ipython_extension(shell)
    return lambda line, cell: (shell.magics["cell", "explain"](line, cell), shell.user_ns)


@pytest.mark.parametrize("end", ["", "loss", "fit + 3 * w.sum()"])
def test_the_magic_explains_the_last_value(explain, end):
    found, names = explain("", CELL + end)
    assert isinstance(found, Explanation) and found.gradients["w"].tolist() == [5, 7]
    assert names["w"].grad is None and "__explain__" not in names
    if not end.startswith("fit"):
        assert found.steps[0].source_line.text == "loss = fit + 3 * w.sum()" and found.outputs[0].name == "loss"


def test_the_magic_divides(explain):
    found, _ = explain(" term ", CELL)
    assert isinstance(found, Contributions) and [part.name for part in found.parts] == ["fit", "3 * w.sum()"]


@pytest.mark.parametrize("line, cell", [("", "for i in range(3): pass"), ("", ""), ("layer", CELL)])
def test_the_magic_says_what_it_takes(explain, line, cell):
    with pytest.raises(ValueError, match="%%explain"):
        explain(line, cell)


NOTEBOOK = [
    ("%load_ext chainrule\nimport numpy as np\nimport chainrule as cr", None),
    ("%%explain\n" + CELL, "loss = fit + 3 * w.sum()"),
    ("w", "chainrule-array"),
    ("cr.array_api.asarray([[1, 2], [3, 4]])", "chainrule-array"),
    ("cr.jacobian(lambda x: x[1:] * x[:-1], np.ones(5), layout='structured')", "<svg"),
    ("step = cr.compile(lambda x: cr.sin(x) * 2)\nstep(np.ones(3))\nstep", "<summary>plan"),
    ("cr.explain(loss, by='term')", "3 * w.sum()"),
]


def test_in_a_notebook():
    """Cells run in a kernel, like in a notebook: the output contains HTML and text."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [nbformat.v4.new_code_cell(source) for source, _ in NOTEBOOK]
    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=60).execute()
    for cell, (source, said) in zip(cells, NOTEBOOK, strict=True):
        shown = [output.data for output in cell.outputs if output.output_type == "execute_result"]
        assert len(shown) == (source != NOTEBOOK[0][0]) and all("text/plain" in data for data in shown)
        assert said is None or said in shown[0]["text/html"], source
