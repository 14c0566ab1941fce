"""Explanations of structured Jacobians, compared with the Jacobians."""

from __future__ import annotations

import re

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.explaining import jacobian_words as words
from chainrule._src.explaining.notation import BAR
from chainrule._src.explaining.text_columns import text_columns
from chainrule._src.jacobians import spy
from chainrule._src.jacobians.accumulate import Accumulation
from chainrule._src.jacobians.trace import JacobianTrace

W = np.arange(12.0).reshape(4, 3) / 10


def explained(f, x, strategy="forward terms"):
    return cr.explain(cr.jacobian(f, x, layout="structured", strategy=strategy))


def heat(u):
    lap = u[:-2] - 2 * u[1:-1] + u[2:]
    return lap + u[1:-1] ** 3


def layer(X):
    return np.exp(X @ W)


def laplacian(w):
    return np.roll(w, 1, 0) + np.roll(w, -1, 0) + np.roll(w, 1, 1) + np.roll(w, -1, 1) - 4 * w


def steps(x):
    N = x.size // 2
    for _ in range(3):
        u, v = x[:N].reshape(-1, 30), x[N:].reshape(-1, 30)
        rates = np.concatenate([(u * v + laplacian(u)).ravel(), (v * v + laplacian(v)).ravel()])
        x = x + 0.1 * rates
    return x


# -- text, compared with the columns that it describes -----------------------------------------------------------------

CASES = [
    (lambda x: x * 2, (3,), "2 × identity"),
    (lambda x: x * x, (3,), "diagonal"),
    (lambda x: x + 1, (2, 3), "identity"),
    (lambda x: x.T, (3, 4), "x[j, i]"),
    (lambda x: x.sum(), (3, 4), "x[:, :]"),
    (lambda x: x.sum(1), (3, 4), "x[i, :]"),
    (lambda x: x.sum(0), (3, 4), "x[:, i]"),
    (lambda x: x[::-1], (5,), "x[4-i]"),
    (lambda x: x[::2, 1:], (4, 4), "x[2i, j+1]"),
    (lambda x: x[2], (4, 4), "x[2, i]"),
    (lambda x: np.diagonal(x), (4, 4), "x[i, i]"),
    (lambda x: np.outer(x, x), (4,), "x[i], x[j]"),
    (lambda x: np.roll(x, 1, 0), (4, 4), "x[(i-1)%4, j]"),
    (lambda x: x.reshape(2, 6), (3, 4), "x.flat[6i+j]"),
    (lambda x: np.pad(x, 1), (3,), "x[i-1] in rows 1:4"),
    (lambda x: np.concatenate([x, x[:2]]), (4,), "x[i] in rows 0:4, x[i-4] in rows 4:6"),
    (lambda x: x @ W, (5, 4), "x[i, :]"),
    (lambda x: np.lib.stride_tricks.sliding_window_view(x, 3).sum(-1), (6,), "x[i:i+3]"),
    (lambda x: np.trace(x), (3, 3), "x.flat[0:9:4]"),
    (lambda x: x[[0, 2, 0, 1]], (3,), "one of x"),
    (lambda x: np.zeros(2) + 0 * x.shape[0], (3,), "zero"),
]


@pytest.mark.parametrize(("f", "shape", "expected"), CASES)
def test_words_of_terms(f, shape, expected):
    trace = JacobianTrace(f, np.random.default_rng(0).random(shape))
    (y,) = trace.results
    terms = Accumulation([y], 10**6).terms_of(y)
    said = words.describe_state(terms, y.shape, lambda variable: "x")
    assert said == expected or sorted(said.split(", ")) == sorted(expected.split(", "))


def read(said, name, shape, row, place):
    """Evaluate a text like ``x[2i, :]`` for a row; return the columns."""
    flat = f"{name}.flat["
    index = said.split(" in rows")[0].removeprefix(flat if said.startswith(flat) else f"{name}[").removesuffix("]")
    index = re.sub(r"(\d)([ijkr])", r"\1*\2", index)
    space = dict(zip("ijk", place, strict=False)) | {"r": row}

    def number(part):
        return eval(part.strip(), space) if part.strip() else None

    at = tuple(slice(*map(number, part.split(":"))) if ":" in part else number(part) for part in index.split(","))
    seed = np.arange(int(np.prod(shape))).reshape(-1 if said.startswith(flat) else shape)
    return seed[at].ravel()


@pytest.mark.parametrize(("f", "shape"), [case[:2] for case in CASES if "x[" in case[2] or "flat" in case[2]])
def test_words_name_the_columns(f, shape):
    trace = JacobianTrace(f, np.random.default_rng(0).random(shape))
    (y,) = trace.results
    for term in Accumulation([y], 10**6).terms_of(y):
        said = words.describe_columns(term, y.shape, "x")
        cols = term.cols.reshape(term.slots, -1)
        rows = np.arange(cols.shape[1]) if term.rows is None else term.rows
        for at, row in enumerate(rows):
            found = read(said, "x", shape, row, np.unravel_index(row, y.shape))
            assert sorted(found) == sorted(cols[:, at]), said


# -- operations and terms ----------------------------------------------------------------------------------------------


def test_steps_in_the_order_of_the_program_with_its_names():
    e = explained(heat, np.linspace(0, 1, 8))
    assert [step.op for step in e.steps] == [
        "getitem",
        "getitem",
        "mul",
        "sub",
        "getitem",
        "add",
        "getitem",
        "pow",
        "add",
    ]
    assert [step.name for step in e.steps] == ["t1", "t2", "t3", "t4", "t5", "lap", "t6", "t7", "y"]
    assert [step.text for step in e.steps][:4] == ["u[:-2]", "u[1:-1]", "mul(t2, 2)", "sub(t1, t3)"]
    assert "".join(local[0] for (local,) in [step.local for step in e.steps]) == "ssddsdsdd"  # selections, diagonals
    assert e.steps[0].line.text == "lap = u[:-2] - 2 * u[1:-1] + u[2:]"
    assert [step.after for step in e.steps][3:6] == ["u[i], u[i+1]", "u[i+2]", "u[i], u[i+1], u[i+2]"]
    assert [step.in_a_row for step in e.steps] == [1, 1, 1, 2, 1, 3, 1, 1, 3]
    assert (e.output, e.input, e.shape, e.nnz, e.density) == ("y", "u", (6, 8), 18, 18 / 48)


def test_which_term_came_from_which_operations():
    e = explained(heat, np.linspace(0, 1, 8))
    found = {term.columns: term.steps for term in e.terms}
    assert found == {"u[i]": (1, 4, 6, 9), "u[i+1]": (2, 3, 4, 6, 7, 8, 9), "u[i+2]": (5, 6, 9)}
    assert [step.of for step in e.steps] == ["A", "B", "B", "AB", "C", "ABC", "B", "B", "ABC"]
    assert [term.values for term in e.terms][::2] == ["1", "1"]


def test_a_term_is_not_from_what_only_reads_the_same_value():
    def f(x):
        y = x[1:]
        first = y + 1
        second = y * 3
        return np.concatenate([first, second])

    e = explained(f, np.ones(4))
    assert [term.steps for term in e.terms] == [(1, 2, 4), (1, 3, 4)]


def test_products_say_their_structure_and_the_constant():
    e = explained(layer, np.ones((5, 4)))
    assert [(step.text, step.local, step.after) for step in e.steps] == [
        ("X @ W", ("I ⊗ Wᵀ",), "X[i, :]"),
        ("exp(t1)", ("diagonal",), "X[i, :]"),
    ]


def test_values_that_are_cut():
    e = explained(steps, np.random.default_rng(0).random(1800))
    cut = [step for step in e.steps if step.cut]
    assert [step.name for step in cut] == ["x_2", "x_3"]
    assert all(step.terms > 10 for step in cut)
    assert [(factor.value, factor.variable) for factor in e.factors] == [("x_4", "x_3"), ("x_3", "x_2"), ("x_2", "x")]
    assert {term.variable for term in e.terms} == {"x_3"}
    assert f"cut: {cut[0].terms} terms become a variable" in str(e)


def test_only_what_the_input_leads_to():
    def f(a, b):
        return np.sin(a) + np.cos(b[::-1])

    _, J = cr.jacobian(f, (np.ones(3), np.ones(3)), layout="structured")
    e = cr.explain(J)
    assert [step.text for step in e.steps] == ["b[::-1]", "cos(t1)", "add(…, t2)"]
    assert (e.input, [term.columns for term in e.terms]) == ("b", ["b[2-i]"])


def test_containers():
    def f(p):
        return {"rates": p["k"] * p["y"][1:]}

    found = cr.jacobian(f, {"k": np.array(2.0), "y": np.ones(4)}, layout="structured")["rates"]
    assert cr.explain(found["k"]).input == "p['k']"
    assert [term.columns for term in cr.explain(found["y"]).terms] == ["p['y'][i+1]"]


@pytest.mark.parametrize("f", [heat, lambda u: np.sum(u[1:] * u[:-1])])
def test_backward(f):
    e = explained(f, np.linspace(0, 1, 8), "reverse terms")
    assert (e.start, e.end, e.backward) == ("y" + BAR, "u" + BAR, True)
    J = cr.jacobian(f, np.linspace(0, 1, 8)).reshape(-1, 8)
    rows, cols, _ = e.entries
    shown = np.zeros(J.shape, bool)
    shown[rows, cols] = True
    assert (shown == (J != 0)).all()
    assert e.steps[0].line.text in ("return lap + u[1:-1] ** 3", "") or "np.sum" in e.steps[0].line.text


def test_products_with_unit_vectors():
    e = explained(heat, np.linspace(0, 1, 8), "vjps")
    assert (len(e.steps), e.terms, e.nnz) == (9, [], 48)
    assert "computed by products with unit vectors: vjps" in str(e)
    assert "computed by products with unit vectors (vjps)" in e.to_html()


def test_hessian():
    def energy(x):
        return np.sum(np.diff(x) ** 2 * x[1:])

    e = cr.explain(cr.hessian(energy, np.linspace(1, 2, 6), layout="structured"))
    assert (e.output, e.input, e.shape, e.nnz) == ("gradient", "x", (6, 6), 16)
    assert {step.line.text for step in e.steps if step.line} == {"return np.sum(np.diff(x) ** 2 * x[1:])"}


def test_every_entry_belongs_to_its_term():
    e = explained(heat, np.linspace(0, 1, 8))
    rows, cols, term = e.entries
    assert np.array_equal(term, cols - rows)


def test_complex():
    e = explained(lambda z: abs(z[1:] * 2) ** 2, np.array([1 + 2j, 3, 1j]))
    assert (e.nnz, [term.columns for term in e.terms]) == (2, ["z.real[i+1]", "z.imag[i+1]"])
    assert explained(lambda x: x * 1j, np.ones(2)).nnz == 2


def test_check():
    e = explained(heat, np.linspace(0, 1, 8))
    assert e.check()
    e._jacobian.made_by = e._jacobian.made_by._replace(function=lambda u: heat(u) * 2)
    assert not e.check()
    assert "✗" in str(e.check())


def test_zero():
    e = explained(lambda x: np.ones(3) * x.shape[0], np.ones(2))
    assert (e.terms, e.nnz) == ([], 0)
    assert "zero" in str(e)
    assert "zero" in e.to_html()


def test_another_jacobian_is_refused():
    x = np.ones(4)
    J = cr.jacobian(lambda x: x[:-1] * x[1:], x, layout="structured")
    x[0] = 2
    with pytest.raises(RuntimeError, match="another Jacobian than before: its numbers differ"):
        cr.explain(J)
    count = [1]
    J = cr.jacobian(lambda x: x[:-1] * x[1:] if count else x[:-1] * 2, x, layout="structured")
    count.clear()
    with pytest.raises(RuntimeError, match="it has 3 entries instead of 6"):
        cr.explain(J)


def test_what_cannot_be_explained():
    J = cr.jacobian(lambda x: x * x, np.ones(4), layout="structured")
    with pytest.raises(ValueError, match="explain the results"):
        cr.explain(J @ J)
    for other in (cr.jacobian_plan(np.sin, np.ones(4)), cr.jacobian(np.sin, np.ones(4), layout="csr")):
        with pytest.raises(TypeError, match="layout='structured'"):
            cr.explain(other)
    with pytest.raises(TypeError, match="grad, wrt and by"):
        cr.explain(J, grad=np.ones(4))


def test_inside_a_transformation():
    def f(x):
        cr.explain(cr.jacobian(lambda x: x * x, x, layout="structured"))
        return x

    with pytest.raises(RuntimeError, match=r"explain\(\) was called inside a transformation"):
        cr.vmap(f)(np.ones((2, 3)))


def test_recorded():
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    e = cr.explain(cr.jacobian(lambda x: x * x, x, layout="structured", create_graph=True))
    assert [term.values for term in e.terms] == ["2 … 4"]


# -- text and page -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("f", "x"), [(heat, np.ones(40)), (layer, np.ones((5, 4))), (steps, np.ones(1800))])
def test_text_fits(f, x):
    said = str(explained(f, x)).split("\n")
    assert max(map(text_columns, said)) <= 80
    assert len(said) < 160


def test_text():
    said = str(explained(heat, np.linspace(0, 1, 5)))
    assert said.startswith("How ∂y/∂u was computed: forward terms, 9 operations\n")
    assert "\n   6 lap = add(t4, t5)  diagonal   u[i], u[i+1], u[i+2] (3 a row)\n" in said
    assert "\n  B  u[i+1]  3 entries  -1.812 … -0.3125  steps 2–4, 6–9\n" in said
    assert said.endswith("│ A B C · · │\n│ · A B C · │\n│ · · A B C │\n└───────────┘")


def test_page_has_everything_and_asks_for_nothing():
    page = explained(heat, np.linspace(0, 1, 8)).to_html()
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "{{" not in page
    assert page.count("<tr class='operation") == 9
    assert page.count('class="part-') == 3
    assert "<script" not in page


def test_pictures():
    assert spy.cell_densities([0, 5], [0, 5], (300, 300), 4).shape == (12, 12)
    assert spy.matrix_text([], [], (0, 5)) == "┌───────────┐\n└───────────┘"
    wide = spy.matrix_text(np.zeros(300, int), np.arange(300), (1, 300))
    assert wide.count("⠉") == 32
    assert spy.matrix_svg([0, 1], [0, 1], (2, 2)).count("M") == 2


def test_products_by_colours():
    pattern = np.eye(4) + np.eye(4, k=1)
    J = cr.jacobian(lambda x: x * np.append(x[1:], 1.0), np.ones(4), layout="structured", sparsity=pattern)
    assert "products by colours" in str(cr.explain(J))


def test_zeros_that_come_in_where_terms_are_put_together():
    def f(x):
        power = x @ x
        stacked = np.stack([power, power], axis=-1)
        return np.concatenate([stacked.ravel(), stacked.sum(axis=-1).ravel()])

    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    for strategy in ("forward terms", "reverse terms"):
        J = cr.jacobian(f, x, layout="structured", strategy=strategy)
        e = cr.explain(J)
        rows, cols, term = e.entries
        assert (J.to_dense().reshape(-1, 4)[rows[term < 0], cols[term < 0]] == 0).all()
        assert e.nnz == len(rows)
