"""``chainrule ops``: lists, primitives, composites."""

from __future__ import annotations

import pytest

from chainrule._src.cli.operations import names_of, numpy_names, operations, parts_of, primitive_named
from chainrule._src.rules.descriptions import description
from chainrule._src.rules.primitive import TABLE

COMPOSITES = [name for name in operations() if primitive_named(name) is None]


def test_the_list_has_every_row_once(run) -> None:
    ran = run("ops")
    assert ran.code == 0
    words = [word for line in ran.out.splitlines() if line.startswith("  ") for word in line.split()]
    assert [name for name in TABLE if name not in words] == []
    for kind in ("elementwise", "linear", "contraction", "opaque", "discrete"):
        assert f"{kind} ({sum(row.kind == kind for row in TABLE.values())})" in ran.out


def test_search(run) -> None:
    ran = run("ops", "--like", "SOFTM")
    assert ran.code == 0 and "log_softmax" in ran.out and "gumbel_softmax" in ran.out and "tanh" not in ran.out
    assert "concat" not in ran.out
    assert "  cat" in run("ops", "--like", "concat").out  # found by an alias
    only = run("ops", "--kind", "contraction").out
    assert "mm" in only and "elementwise" not in only
    assert run("ops", "--kind", "contraction", "--like", "vector").out.count("\n") < only.count("\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["softmaks"], "Did you mean softmax"),
        (["linalg.imv"], "Did you mean linalg.inv"),
        (["--like", "qqqq"], "no operation has 'qqqq'"),
        (["--like", "softmaks"], "Did you mean softmax"),
        (["--kind", "elementwse"], "Did you mean elementwise"),
        (["exp", "--like", "e"], "not both"),
        (["--formula"], "needs the name of an operation"),
        (["einsum", "--formula"], "composite"),
        (["no_grad"], "no operation is called 'no_grad'"),
        (["[bold]exp[/bold]"], "no operation is called '[bold]exp[/bold]'"),
    ],
)
def test_what_is_not_there(run, words, message) -> None:
    ran = run("ops", *words)
    assert ran.code == 2 and message in ran.err


@pytest.mark.parametrize("name", sorted(TABLE))
def test_every_row_is_described(run, name) -> None:
    ran = run("ops", name)
    row = TABLE[name]
    assert ran.code == 0 and ran.out.startswith(f"{name}  ({row.kind})\n")
    spoken = " ".join(ran.out.split())
    for formula in row.formula.values():
        assert " ".join(formula.split()) in spoken
    assert "  sample\n" in ran.out
    assert all(len(line) <= 80 for line in ran.out.splitlines())


def test_names_of_an_operation() -> None:
    assert names_of("abs") == ["abs", "absolute"] and numpy_names("abs", ["abs"])[0] == "np.absolute"
    assert set(names_of("inv")) == {"linalg.inv", "inverse"}
    assert primitive_named("concatenate") is TABLE["cat"]
    assert "np.matmul" in numpy_names("matmul", ["matmul"])


@pytest.mark.parametrize("name", ["exp", "torch.exp", "np.exp", "chainrule.exp", "Tensor.exp"])
def test_names_may_have_their_modules(run, name) -> None:
    assert run("ops", name, "--formula").out == "x: g * out\n"


def test_a_sample_shows_the_rule_at_work(run) -> None:
    out = run("ops", "square").out
    assert "∂L/∂x  2 * g * x" in out or "∂L/∂x  g * 2 * x" in out
    assert "g      [1., 2., 3.]" in out and "x      [-1.4548,  0.0542,  1.1908]" in out
    assert "∂L/∂x  [-2.9095,  0.2168,  7.1448]" in out


def test_parts_of_a_composite(run) -> None:
    ran = run("ops", "einsum")
    assert ran.code == 0 and "einsum  (composite)" in ran.out
    assert "bmm   (1, 2, 3), (1, 3, 4) → (1, 2, 4)" in ran.out
    assert "`chainrule ops view bmm`" in ran.out
    assert "histogram(rand(3), rand(3)) records nothing" in run("ops", "histogram").out


@pytest.mark.parametrize("name", COMPOSITES)
def test_every_composite_has_a_sample(name) -> None:
    found = parts_of(operations()[name])
    rows = pytest.importorskip("chainrule._src.ops.scipy_special", reason="SciPy computes some").ROWS
    assert found is not None
    assert all(part.name in TABLE or part.name in rows for part in found[1])


def test_several_at_once(run) -> None:
    out = run("ops", "exp", "einsum").out
    assert "exp  (elementwise)" in out and "einsum  (composite)" in out


@pytest.mark.parametrize("name", TABLE)
def test_descriptions_are_no_docstrings(name) -> None:
    text = description(TABLE[name].doc)
    first = text.split()[0]
    assert first != "Return" and "``" not in text and ":func:" not in text
    assert first[0].isupper() or not first.isalpha() or first in ("x", "y", "log")  # a formula


@pytest.mark.parametrize(
    ("doc", "text"),
    [
        ("Return the QR decomposition.", "The QR decomposition."),
        ("Return a copy (``+x``).\n\n    The memory is new.", "A copy (`+x`).\n\nThe memory is new."),
        ("Return whether x is in :class:`set`.", "Whether x is in `set`."),
        ("Return x·log(y), and 0 where x is 0.", "x·log(y), and 0 where x is 0."),
        ("Return log Σ exp(x).", "log Σ exp(x)."),
        ("Permute the axes; return a view.", "Permute the axes; return a view."),
        ("Returns 1.", "Returns 1."),
        ("", ""),
    ],
)
def test_a_description_says_what_is_returned(doc, text) -> None:
    assert description(doc, "`") == text
