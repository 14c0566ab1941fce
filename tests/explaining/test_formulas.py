"""All formulas of the table, in all their forms, are compared with the rules that they describe."""

from __future__ import annotations

import ast
import functools
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from samples import explanations

import chainrule as cr
import chainrule.fft  # adds its primitives to the table
import chainrule.nn
from chainrule._src.explaining.notation import BAR, LATEX, MATHML, TEXT, print_tree
from chainrule._src.explaining.steps import Arrow
from chainrule._src.rules.primitive import TABLE

ROWS = [name for name, prim in TABLE.items() if prim.kind != "discrete"]
#: Complex samples for which the formula does not hold; the rule is shown as code there.
WITHOUT = {"vector_norm"}


@functools.cache
def arrows(name: str, every: bool) -> list[tuple[object, Arrow]]:
    return [(sample, a) for sample, e in explanations(TABLE[name], every) for step in e.steps for a in step.arrows]


each_row = pytest.mark.parametrize(
    "name, every",
    [*[(name, False) for name in ROWS], *[pytest.param(name, True, marks=pytest.mark.slow) for name in ROWS]],
    ids=[*ROWS, *[f"{name}-every sample" for name in ROWS]],
)


@pytest.mark.filterwarnings("ignore")
@each_row
def test_the_numpy_text_computes_the_vjp(name: str, every: bool) -> None:
    found = arrows(name, every)
    assert found
    for sample, arrow in found:
        if arrow.rule_numpy is None:
            assert name in WITHOUT and sample.complex and arrow.words
            continue
        with np.errstate(all="ignore"):
            value = np.asarray(eval(arrow.rule_numpy, arrow.environment()))
        assert (value.shape, value.dtype) == (arrow.downstream.shape, arrow.downstream.dtype), (
            sample,
            arrow.rule_numpy,
        )
        np.testing.assert_allclose(value, arrow.downstream, 1e-9, 1e-11, err_msg=f"{sample} {arrow.rule_numpy}")


@pytest.mark.filterwarnings("ignore")
@each_row
def test_numbers_come_out(name: str, every: bool) -> None:
    """The formula with substituted numbers gives the stated element, if all numbers are printed."""
    for sample, arrow in arrows(name, every):
        text = arrow.numbers
        if text is None or "…" in text or arrow.downstream.dtype.kind == "c" or arrow.step.output.dtype.kind == "c":
            continue
        right = re.split(r" \+?= ", text, maxsplit=1)[1]
        middle, _, last = right.rpartition(" = ")
        if BAR in middle:  # a move of elements: names, possibly with a sum
            middle = middle.rpartition(" = ")[2] if " = " in middle else ""
        index = tuple(int(i) for i in re.findall(r"\d+", re.search(r"\[([\d,]*)\]", text.split("=")[0] + "[]")[1]))
        expected = arrow.downstream[index]
        assert float(last.replace("−", "-")) == pytest.approx(expected, rel=1e-3, abs=1e-6), text
        if middle:
            value = eval(python(middle), FUNCTIONS)
            assert value == pytest.approx(expected, rel=3e-2, abs=3e-3), (str(sample), text)


FUNCTIONS = {
    name: getattr(np, name)
    for name in ("exp", "exp2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sign", "floor", "trunc", "isnan", "isfinite",
                 "log1p", "logaddexp", "minimum", "maximum", "clip", "sqrt", "real", "imag")
}  # fmt: skip
FUNCTIONS |= {
    name: lambda *x, row=row: float(row.value(*map(np.float64, x)))
    for name, row in TABLE.items()
    if name not in FUNCTIONS
}
FUNCTIONS |= {
    "np": np,
    "ln": np.log,
    "min": min,
    "max": max,
    "abs": abs,
    "conj": np.conj,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def python(text: str) -> str:
    """Convert mathematical notation to Python."""
    text = (
        text.replace("·", "*")
        .replace("−", "-")
        .replace("≥", ">=")
        .replace("≤", "<=")
        .replace("≠", "!=")
        .replace("∞", "np.inf")
    )
    text = re.sub(r"(?<![<>!=])=", "==", text)
    text = re.sub(r"[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda m: "**" + m[0].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")), text)
    text = text.replace("^", "**").replace("√", "sqrt").replace("[", "(").replace("]", ")")
    return re.sub(r"\|([^|]*)\|", r"abs(\1)", text)


@pytest.mark.filterwarnings("ignore")
@each_row
def test_latex_is_balanced_and_speaks_of_the_right_values(name: str, every: bool) -> None:
    for _, arrow in arrows(name, every):
        if arrow.rule_latex is None:
            continue
        text = arrow.rule_latex
        assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}"), text
        assert text.count(r"\left") == text.count(r"\right"), text
        assert text.startswith(LATEX.name(arrow.input.identifier + BAR)), text
        assert BAR not in text and "⟦" not in text and "dtype" not in text


@pytest.mark.filterwarnings("ignore")
@each_row
def test_mathml_is_well_formed_and_filled(name: str, every: bool) -> None:
    for _, arrow in arrows(name, every):
        if arrow.rule_latex is None:
            continue
        root = ElementTree.fromstring(arrow.rule_mathml)
        assert root.tag.endswith("math")
        assert "⟦" not in arrow.rule_mathml


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("X", "X"),
        ("t1", "t_{1}"),
        ("loss", r"\mathit{loss}"),
        ("loss" + BAR, r"\overline{\mathit{loss}}"),
        ("t1" + BAR, r"\bar{t}_{1}"),
        ("w_in", r"\mathit{w\_in}"),
        ("Z" + BAR, r"\bar{Z}"),
        ("β", "β"),
    ],
)
def test_symbols(name: str, expected: str) -> None:
    assert LATEX.name(name) == expected


@pytest.mark.parametrize(
    ("source", "text", "latex"),
    [
        ("a * (b @ c)", "a·b·c", r"a \odot \left(b \, c\right)"),
        ("(a * b) @ c", "a·b·c", r"\left(a \odot b\right) \, c"),
        ("a - (b - c)", "a − (b − c)", r"a - \left(b - c\right)"),
        ("a + -b", "a − b", "a - b"),
        ("a - -b", "a − (−b)", r"a - \left(-b\right)"),
        ("a * -b", "a·(−b)", r"a \odot \left(-b\right)"),
        ("a / b / c", "(a / b) / c", r"\frac{\frac{a}{b}}{c}"),
        ("a / (b * c)", "a / (b·c)", r"\frac{a}{b \odot c}"),
        ("(-a) ** 2", "(−a)²", r"\left(-a\right)^{2}"),
        ("a ** -0.5", "a^(−0.5)", "a^{-0.5}"),
        ("a * 0.5", "a·0.5", r"a \cdot 0.5"),
        ("np.conj(a.mT) @ b", "conj(aᵀ)·b", r"a^{H} \, b"),
        ("(a | b) & c", "[(a or b) and c]", r"\left[\left(a \lor b\right) \land c\right]"),
        ("a.sum(0) * b", "(Σ_axis 0 a)·b", r"\left(\sum_{\text{axis }0} a\right) \odot b"),
        ("b * a.sum(0)", "b·Σ_axis 0 a", r"b \odot \sum_{\text{axis }0} a"),
    ],
)
def test_one_tree_in_two_alphabets(source: str, text: str, latex: str) -> None:
    tree = ast.parse(source, mode="eval").body
    assert (print_tree(tree, TEXT), print_tree(tree, LATEX, frozenset())) == (text, latex)
    ElementTree.fromstring(f"<math>{print_tree(tree, MATHML, frozenset())}</math>")


def rule(function, *args):
    (step, *_) = cr.explain(function)(*args).steps
    return step.arrows


def test_forms_that_people_know_by_heart() -> None:
    x, w = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    a, b = rule(lambda X, W: X @ W, x, w)
    assert (a.rule_numpy, a.rule_index, a.rule_latex) == (
        "yˉ @ W.mT".replace("yˉ", "y" + BAR),
        f"X{BAR}[i,k] = Σ_j y{BAR}[i,j]·W[k,j]",
        r"\bar{X} = \bar{y} \, W^{\top}",
    )
    assert (b.rule_index, b.structure) == (f"W{BAR}[k,j] = Σ_i X[i,k]·y{BAR}[i,j]", "X ⊗ I")
    (mean,) = rule(lambda x: x.mean(0), x)
    assert mean.rule_index == f"x{BAR}[i,j] = y{BAR}[j] / 2"
    (square,) = rule(lambda x: x**2, x)
    assert square.rule_numpy == f"y{BAR} * (2 * x)"
    (t,) = rule(lambda x: x.T, x)
    assert (t.rule_numpy, t.rule_index) == (f"y{BAR}.T", f"x{BAR}[i,j] = y{BAR}[j,i]")
    (soft,) = rule(lambda x: cr.softmax(x, 1), x)
    assert soft.rule_index == f"x{BAR}[i,j] = (y{BAR}[i,j] − Σ_k y{BAR}[i,k]·y[i,k])·y[i,j]"
    _, bias = rule(lambda x, b: x + b, x, np.ones(3))
    assert bias.rule_numpy == f"np.sum(y{BAR}, axis=0)"
    assert bias.unbroadcast == "b was broadcast (3,) → (2, 3): its cotangent is summed over axis 0"


def test_sums_over_letters_are_what_einsum_makes_of_them() -> None:
    rng = np.random.default_rng(0)
    for arrow in rule(lambda x, w: cr.bmm(x, w), rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 5))):
        left, right = arrow.rule_index.split(" = ")
        factors = re.findall(r"(\w\u02c9?)\[([\w,]+)\]", right)
        (_, out), *_ = re.findall(r"(\w\u02c9?)\[([\w,]+)\]", left)
        spec = ",".join(letters.replace(",", "") for _, letters in factors) + "->" + out.replace(",", "")
        names = arrow.environment()
        arrays = [names[name] for name, _ in factors]
        np.testing.assert_allclose(np.einsum(spec, *arrays), arrow.downstream)


def test_names_are_escaped() -> None:
    assert MATHML.name("<b>") == "<mi>&lt;b&gt;</mi>"
    assert LATEX.name("a_$b") == r"\mathit{a\_\$b}"
