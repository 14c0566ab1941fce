"""The HTML page of an explanation as text: complete without a browser, safe, small."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from pages import GRADIENT, MARKUP, bushy, exp_of_product, long_chain, outer_with_itself, poisoned

import chainrule as torch
from chainrule._src.explaining.flow import flow_of
from chainrule._src.explaining.markup import script_json
from chainrule._src.explaining.page import EDITED, explanation_html
from chainrule._src.explaining.tables import decimals_of, format_number
from chainrule.explaining import explain

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Reader(HTMLParser):
    """Checks that elements nest, and collects data for tests."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.text, self.tables = [], [], [], [], {}
        self.script, self.key, self.cells = [], None, None

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag == "table":
            self.key, self.cells = attrs.get("data-key"), []
        if tag == "td" and self.cells is not None:
            self.cells.append("")
        if tag == "tbody":
            self.cells = []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"
        if tag == "table":
            self.tables.setdefault(self.key, self.cells)
            self.cells = None

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.script.append(data)
        elif self.open and self.open[-1] != "style":
            self.text.append(data.replace("\u2062", ""))  # without invisible multiplication signs
            if self.open[-1] == "td" and self.cells:
                self.cells[-1] += data


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids)), "an id stands twice"
    return reader


def shown(reader, key):
    return np.array([float(cell.replace("−", "-")) for cell in reader.tables[key]])


def near(shown, exact):
    """Return whether numbers agree within the printed precision of four decimals or seven digits."""
    return np.allclose(shown, np.ravel(exact), rtol=2e-7, atol=6e-5)


def test_numbers_of_product_and_exp():
    X, W, _Z, _Y, e = exp_of_product()
    reader = read(explanation_html(e))
    plan = e.to_dict()
    ids = {value["name"]: key for key, value in plan["values"].items()}
    z_bar = GRADIENT * np.exp(X.detach().numpy() @ W.detach().numpy())
    assert near(shown(reader, f"s.{ids['Y']}"), GRADIENT)
    assert near(shown(reader, f"g.{ids['X']}"), z_bar @ W.detach().numpy().T)
    assert near(shown(reader, f"g.{ids['W']}"), X.detach().numpy().T @ z_bar)
    assert near(shown(reader, "a1.0"), z_bar)
    text = " ".join("".join(reader.text).split())
    for said in (
        "Y.grad, as you supplied it",
        "64 numbers, diagonal",
        "48 numbers, I ⊗ Wᵀ",
        "96 numbers, X ⊗ I",
        "(2, 4) · (2, 4, 2, 3) → (2, 3)",
        "Y.grad = ∂L/∂Y is what you passed, not ∂Y/∂X.",
        "8 · 8×6 → 6",
        "∂Zij∂Xkl=δikWlj",
        "∂Yij∂Zkl=δikδjlYij",
        "✓",
    ):
        assert said in text, said
    assert "✗" not in text


def test_numbers_of_outer_with_itself():
    _x, _y, e = outer_with_itself()
    reader = read(explanation_html(e))
    text = " ".join("".join(reader.text).split())
    for said in (
        "[10, 10, 10, 10] + [10, 10, 10, 10] = [20, 20, 20, 20]",
        "L = y.sum()",
        "A gradient of x's shape (4,) would be refused",
        "(4, 4) · (4, 4, 4) → (4,)",
        "16 · 16×4 → 4",
        "∂yjk∂xi=δijxk+δikxj",
    ):
        assert said in text, said


def test_the_whole_jacobian_is_the_real_one():
    x, _y, e = outer_with_itself()
    plan = e.to_dict()
    found = flow_of(plan, detailed=EDITED).totals[plan["outputs"][0], plan["wrt"][0]]
    dense = np.zeros(found.shape)
    dense[found.outputs, found.inputs] = found.values
    assert np.array_equal(
        dense.reshape(4, 4, 4), torch.autograd.functional.jacobian(lambda x: torch.outer(x, x), x).numpy()
    )


@pytest.mark.parametrize("make", [lambda: exp_of_product()[-1], lambda: outer_with_itself()[-1], bushy])
def test_one_file_that_asks_for_nothing(make):
    page = explanation_html(make())
    reader = read(page)
    for tag, attrs in reader.tags:
        assert tag not in {"iframe", "object", "embed", "base", "form", "img"}, tag
        assert "src" not in attrs, attrs
        assert not [key for key in attrs if key.startswith("on")], attrs
        href = attrs.get("href", "#")
        assert href.startswith("#") or href == "data:,", href
        if href.startswith("#"):
            assert href == "#" or href[1:] in reader.ids, f"{href} leads nowhere"
    styles = re.findall(r"<style>(.*?)</style>", page, re.S)
    assert not any("url(" in style or "@import" in style for style in styles)


def test_policy_lets_its_own_script_run_and_nothing_else():
    page = explanation_html(exp_of_product()[-1])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    script = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert "default-src 'none'" in policy and f"script-src 'sha256-{digest}'" in policy
    assert "unsafe-eval" not in policy and "connect-src" not in policy


def test_markup_in_names_is_text():
    page = explanation_html(poisoned())
    reader = read(page)
    assert not [attrs for tag, attrs in reader.tags if tag == "img"]
    assert page.count("<script") == 2
    assert MARKUP in "".join(reader.text)
    assert MARKUP in json.dumps(json.loads("".join(reader.script).split("\n")[0])).replace('\\"', '"')


def test_json_can_not_end_its_element():
    text = script_json({"name": "</script><!--", "other": "\u2028&"})
    assert "<" not in text and "\u2028" not in text
    assert json.loads(text) == {"name": "</script><!--", "other": "\u2028&"}


@pytest.mark.parametrize(
    "numbers, text",
    [
        ([1.0, 2.0], "1"),
        ([0.5, -3.0], "0.5"),
        ([-3648.6118, 2.0], "−3648.6118"),
        ([729282.0625, 1.0], "729282.06"),
        ([1e-9, 1.0], "1.000e-9".replace("-", "−")),
        ([2.5e12], "2.500e12"),
        ([-9.47e-05, 0.3], "−9.470e−5"),
        ([5e-4, 0.1234], "0.0005"),
        ([-0.0004012, 0.3], "−4.012e−4"),
        ([0.0053412, 1.0], "5.341e−3"),
        ([0.0123456, 1.0], "0.0123"),
        ([float("nan"), 1.0], "nan"),
        ([float("-inf"), 1.0], "−inf"),
        ([-0.0, 1.0], "0"),
    ],
)
def test_numbers_are_written(numbers, text):
    assert format_number(numbers[0], decimals_of(numbers)) == text


def test_long_passes_are_listed_and_stay_small():
    page = explanation_html(long_chain(400))
    assert len(page.encode()) < 800_000
    reader = read(page)
    assert sum(found.startswith("step-") for found in reader.ids) == 800
    assert "editing is off: the pass has 800 steps" in "".join(reader.text).lower()


def test_a_seed_page_is_small():
    assert len(explanation_html(exp_of_product()[-1]).encode()) < 150_000


def test_a_long_loop_folds():
    u = k = torch.tensor([0.5, 0.25], requires_grad=True)
    for _ in range(200):
        u = u - torch.sin(u * k)
    page = explanation_html(explain(u.sum()))
    assert page.count("<details class='fold'") == 2  # the loop's line, and its repetition
    assert "<b>200 × (sub, sin, mul)</b>" in page
    assert sum(found.startswith("step-") for found in read(page).ids) == 601
    assert (
        page.count("<article class='step'") == 7
    )  # the sum, the first and the last of the repetitions; the others are omitted


def test_float32_shows_the_digits_it_has():
    assert format_number(-718534.0, 4, single=True).strip("\u2007\u2008") == "−718534.00"
    assert format_number(11.4672, 4, single=True) == "11.4672"
    assert float(format_number(12345678.0, 4, single=True)) == 12345678


def test_tall_arrays_show_their_first_rows():
    x = torch.ones(6, 5, 4, requires_grad=True)
    reader = read(explanation_html(explain((x * x).sum())))
    (shown,) = {len(cells) for key, cells in reader.tables.items() if key and key.startswith("g.")} - {1}
    assert shown == 5 * 4 + 1  # the first matrix, and a row of dots


def odd_programs():
    c = torch.tensor([1 + 2j, 3j], requires_grad=True)
    yield "complex", c * c, torch.ones(2, dtype=torch.complex64), [c], "complex"
    s = torch.tensor(3.0, requires_grad=True)
    yield "0-d", s * s, None, [s], None
    e = torch.zeros(0, 3, requires_grad=True)
    yield "empty", e * 2, torch.zeros(0, 3), [e], None
    big = torch.ones(100, 100, requires_grad=True)
    yield "big", big * 2, torch.ones(100, 100), [big], "too large to embed"
    bad = torch.tensor([0.0, 1.0], requires_grad=True)
    with np.errstate(divide="ignore"):
        logarithm = torch.log(bad)
    yield "not finite", logarithm, torch.ones(2), [bad], None
    cube = torch.ones(2, 3, 4, requires_grad=True)
    yield "three dimensions", cube.sum(dim=1), torch.ones(2, 4), [cube], None
    parts = torch.arange(6.0).requires_grad_()
    first, second = torch.split(parts * 1, 3)
    yield "several outputs", first * second, torch.ones(3), [parts], None


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("name, y, g, wrt, off", [pytest.param(*case, id=case[0]) for case in odd_programs()])
def test_odd_programs_have_a_page(name, y, g, wrt, off):
    page = explanation_html(explain(y, grad=g, wrt=wrt))
    reader = read(page)
    if off:
        text = "".join(reader.text)
        assert "diting is off" in text and off in text


def test_the_reason_why_editing_is_off_names_the_node():
    x = torch.ones(200, requires_grad=True)
    hidden = torch.tanh(x)
    total = hidden.sum()
    flow = flow_of(explain(total, wrt=[x]).to_dict(), detailed=EDITED)
    assert flow.off.startswith("editing is off: in step 2, TanhBackward0 of hidden, its Jacobian has 40,000 numbers")


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_formula_that_omits_a_special_case_says_so_beside_its_numbers():
    x = torch.tensor([-1.0, 4.0], requires_grad=True)
    page = explanation_html(explain(torch.relu(x).sqrt().sum()))
    assert page.count("at these numbers the rule handles a special case") == 2  # beside the equation and in the step
    page = explanation_html(explain(torch.maximum(x, torch.zeros(2)).sqrt().sum()))
    assert "special case" not in page


def test_what_a_hook_changed_is_not_offered_for_editing():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = x * 2
    h.register_hook(lambda g: g.clamp(max=0.5))
    y = torch.exp(h)
    plan = explain(y, grad=torch.ones(2), wrt=[x]).to_dict()
    flow = flow_of(plan, detailed=EDITED)
    assert not flow.editable
    assert "editing is off: a hook changed the gradient of h" in flow.off
