"""The page of an explanation in a browser: no network requests, edits recompute all numbers, and it is accessible."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil

import numpy as np
import pytest
from pages import GRADIENT, MARKUP, bushy, exp_of_product, network, outer_with_itself, poisoned, three_terms

import chainrule as torch
from chainrule._src.explaining.page import explanation_html
from chainrule.explaining import explain

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def missing():
    """Return the missing requirement for browser tests, or None."""
    for name in ("playwright", "axe_playwright_python"):
        if importlib.util.find_spec(name) is None:
            return f"{name} is not installed"
    if not (shutil.which("chromium") or shutil.which("google-chrome") or os.environ.get("CHAINRULE_CHROMIUM")):
        return "no chromium was found (install it, or name it in CHAINRULE_CHROMIUM)"
    return None


@pytest.fixture(scope="module")
def chromium():
    why = missing()
    if why:
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHAINRULE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=ARGS, timeout=0)
        yield started
        started.close()


class Tab:
    """An offline browser page, with the requests and errors since the last check."""

    def __init__(self, chromium, scripts):
        context = chromium.new_context(java_script_enabled=scripts, offline=True)
        context.set_default_timeout(0)  # a busy machine is not an error of the page
        self.page = context.new_page()
        self.fetched, self.said = [], []
        self.page.on("request", lambda request: self.fetched.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))


@pytest.fixture(scope="module")
def tab(chromium):
    """Return the tab with or without scripts: opening a tab takes as long as loading a page."""
    return functools.cache(functools.partial(Tab, chromium))


@pytest.fixture
def visit(tab, tmp_path):
    """Open a page from a file; fail at the end if there were requests or errors."""
    visited, tabs = [], set()

    def go(page_text, *, width=1366, height=768, scheme="light", scripts=True):
        file = tmp_path / f"page{len(visited)}.html"
        file.write_text(page_text, encoding="utf-8")
        visited.append(file.as_uri())
        tabs.add(tab(scripts))
        page = tab(scripts).page
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        page.goto(file.as_uri())
        return page

    yield go
    for used in tabs:
        used.page.goto("about:blank")  # errors when a page is left count, too
        fetched, said = used.fetched[:], used.said[:]
        used.fetched.clear(), used.said.clear()
        assert [url for url in fetched if url.partition("#")[0] not in visited and not url.startswith("data:")] == []
        assert said == []


@pytest.fixture(scope="module")
def product_page():
    return explanation_html(exp_of_product()[-1])


@pytest.fixture(scope="module")
def outer_page():
    return explanation_html(outer_with_itself()[-1])


@pytest.fixture(scope="module")
def terms_page():
    return explanation_html(three_terms())


@pytest.fixture(scope="module")
def network_page():
    return explanation_html(network())


NUMBERS = """() => Object.fromEntries([...document.querySelectorAll("table[data-key]")].map((table) => [
    table.dataset.key,
    [...table.tBodies[0].querySelectorAll("td")].map((cell) => (cell.firstElementChild || {}).value ?? cell.textContent),
]))"""


def numbers(page):
    return {
        key: np.array([float(cell.replace("−", "-")) for cell in cells])
        for key, cells in page.evaluate(NUMBERS).items()
    }


def near(shown, exact, rtol=2e-7):
    return np.allclose(shown, np.ravel(exact), rtol=rtol, atol=6e-5)


def agree(page, plan, rtol=2e-7):
    """Check that all tables of the page contain the numbers of the plan."""
    found = numbers(page)
    for key, array in plan["seed"].items():
        assert near(found[f"s.{key}"], array["data"], rtol), key
    for key, array in plan["gradients"].items():
        assert near(found[f"g.{key}"], array["data"], rtol), key
    for step in plan["steps"]:
        assert near(found[f"u{step['index']}"], step["upstream"]["data"], rtol), step["index"]
        for j, arrow in enumerate(step["arrows"]):
            assert near(found[f"a{step['index']}.{j}"], arrow["downstream"]["data"], rtol), (step["index"], j)


def edit(page, index, text):
    page.locator("table[data-edit] input").nth(index).fill(text)


def until(page, expression):
    """Wait until an expression is true by polling, because the page's policy forbids evaluating text."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(25)
    pytest.fail(f"never true: {expression}")


def test_tables_are_numpys_numbers(visit, product_page):
    agree(visit(product_page), exp_of_product()[-1].to_dict())


def test_graph_and_formulas_are_drawn(visit, product_page):
    page = visit(product_page)
    assert page.locator("svg.chainrule-graph .node.value").count() == 4
    assert page.locator("svg.chainrule-graph .node.op").count() == 2
    assert page.locator("svg.chainrule-graph .edge").count() == 5
    assert page.evaluate("[...document.querySelectorAll('math')].filter(m => m.checkVisibility()).every("
                         "m => m.getBoundingClientRect().height > 0)")  # fmt: skip
    assert page.locator("math").count() > 20
    boxes = page.evaluate("""[...document.querySelectorAll("svg.chainrule-graph .node rect")].map((r) => {
        const { left, top, right, bottom } = r.getBoundingClientRect(); return [left, top, right, bottom]; })""")
    for i, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[:i]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top, "cards overlap"


@pytest.mark.parametrize("make, graph_bottom", [("product_page", 768), ("outer_page", 768)])
def test_the_answer_is_on_the_first_screen(visit, request, make, graph_bottom):
    page = visit(request.getfixturevalue(make))
    for place in (".given table", ".got table", ".derived li >> nth=-1", ".check", "svg.chainrule-graph"):
        box = page.locator(place).first.bounding_box()
        assert box["y"] + box["height"] <= graph_bottom, place


def test_an_edit_recomputes_everything(visit, product_page):
    page = visit(product_page)
    edit(page, 0, "0")
    changed = GRADIENT.copy()
    changed[0, 0] = 0
    plan = exp_of_product(changed)[-1].to_dict()
    agree(page, plan)
    x_bar = page.locator(".got table").first.locator("tbody td").first
    assert x_bar.inner_text() == "−3650.8190"
    assert page.locator("output.bad").count() == 0
    assert page.locator("output.ok").count() == 2
    card = page.locator(f"svg.chainrule-graph [data-key='g.{plan['wrt'][0]}'] text").first
    assert card.text_content().split()[0] == "−3650.8190"
    assert "Xˉ[0, 0] = −3650.819" in page.locator("#said").text_content()
    one = page.locator(".one output").nth(1).text_content()
    assert one.startswith("Xˉ[0, 0] = 0 · 3 + 1.1036 · 2") and one.endswith("= −3650.819")
    bars = page.locator(".one output .bar")  # drawn above the name, like in the rule above it
    assert bars.all_text_contents() == ["Zˉ", "Xˉ", "Wˉ"] and bars.locator("i").first.bounding_box()["width"] == 0
    assert page.locator(".one select").first.locator("option").all_text_contents()[:2] == ["[0, 0]", "[0, 1]"]


def test_an_edit_is_taken_back(visit, product_page):
    page = visit(product_page)
    before = page.evaluate(NUMBERS)
    edit(page, 3, "1e3")
    assert page.evaluate(NUMBERS) != before
    page.get_by_role("button", name="Put back").click()
    assert page.evaluate(NUMBERS) == before
    assert page.locator(".changed").count() == 0


def test_what_is_no_number_changes_nothing(visit, product_page):
    page = visit(product_page)
    before = numbers(page)
    edit(page, 0, "two")
    assert page.locator("table[data-edit] input").first.get_attribute("aria-invalid") == "true"
    after = page.evaluate(NUMBERS)
    assert all(near(after_key, before[key]) for key, after_key in (
        (key, [float(cell.replace("−", "-")) for cell in cells]) for key, cells in after.items() if key[0] != "s"
    ))  # fmt: skip


def test_contributions_are_summed_again(visit, outer_page):
    page = visit(outer_page)
    edit(page, 1, "5")  # row 0, column 1
    gradient = np.ones((4, 4), np.float32)
    gradient[0, 1] = 5
    agree(page, outer_with_itself(gradient)[-1].to_dict())
    line = page.locator(".eq.sum").inner_text().replace("\n", "")
    assert line.endswith("[10, 14, 10, 10] + [18, 10, 10, 10] = [28, 24, 20, 20]")


def test_edits_pass_through_float32_and_several_steps(visit):
    def made(g):
        x = torch.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
        h = torch.tanh(x @ x)
        y = (h * x).sum(dim=0) / h[0]
        return explain(y, grad=torch.tensor(g), wrt=[x])

    page = visit(explanation_html(made([1.0, 2.0])))
    edit(page, 1, "-3.5")
    agree(page, made([1.0, -3.5]).to_dict(), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_edits_keep_the_nan_of_zero_times_infinity(visit):
    p = torch.tensor([0.0, 0.5], requires_grad=True)
    y = torch.tensor([0.0, 1.0]) * torch.log(p)
    page = visit(explanation_html(explain(y, grad=torch.tensor([1.0, 1.0]), wrt=[p])))
    key = next(key for key in numbers(page) if key.startswith("g."))
    assert page.locator("[data-check]").inner_text() == "✓"
    edit(page, 1, "3")
    assert np.array_equal(numbers(page)[key], [np.nan, 6], equal_nan=True)
    edit(page, 0, "2")
    assert np.array_equal(numbers(page)[key], [np.nan, 6], equal_nan=True)


def test_slices_of_the_jacobian(visit, outer_page):
    page = visit(outer_page)
    picker = page.locator("#whole .picker")
    picker.locator("select").select_option(label="y[1, 2]")
    cells = [float(cell) for cell in picker.locator("tbody td").all_inner_texts()]
    assert cells == [0, 3, 2, 0]  # x₁ x₂ by x
    assert picker.locator("output").inner_text().endswith("yˉ[1, 2] = 1.")
    picked = page.locator(".given td.picked input")
    assert picked.count() == 1 and picked.get_attribute("aria-label") == "y\u02c9[1, 2]"
    assert page.locator("#whole .summed").count() > 2


def test_without_scripts_all_of_it_is_there(visit, product_page):
    page = visit(product_page, scripts=False)
    assert page.locator("svg.chainrule-graph .node").count() == 6
    assert page.locator("article.step").count() == 2
    assert page.locator("table[data-key]").count() >= 9
    assert page.locator(".derived math").count() >= 4
    assert page.locator("button").count() == 0
    assert page.locator(".hint").is_hidden()
    box = page.locator("svg.chainrule-graph").bounding_box()
    assert box["height"] > 100


@pytest.fixture(scope="module")
def long_page():
    """Return a page of ten steps, each of which is opened."""
    x = torch.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
    y = x
    for k in range(2):
        y = torch.outer(torch.sin(y)[0], y[1]) * (k + 1)
    return explanation_html(explain(y, grad=torch.ones(2, 2)))


CONTRAST = "color-contrast"  # takes ten times as long as the other rules of axe
PAGES = [("product_page", "light"), ("outer_page", "dark"), ("long_page", "light"), ("terms_page", "dark")]


@pytest.mark.parametrize(
    "make, scheme, rules",
    [
        *[(*page, "others") for page in PAGES],
        ("product_page", "light", CONTRAST),
        ("product_page", "dark", CONTRAST),
        *[pytest.param(*page, CONTRAST, marks=pytest.mark.slow) for page in PAGES[1:]],
    ],
)
def test_axe_finds_nothing(visit, request, make, scheme, rules):
    from axe_playwright_python.sync_playwright import Axe

    page = visit(request.getfixturevalue(make), scheme=scheme)
    if make != "product_page":
        most = 5 if make == "terms_page" else 1000  # checks take time; all steps have the same structure
        page.evaluate(f"for (const it of [...document.querySelectorAll('details')].slice(0, {most})) it.open = true")
    edit(page, 0, "0.5")
    only = {"runOnly": [CONTRAST]} if rules == CONTRAST else {"rules": {CONTRAST: {"enabled": False}}}
    found = Axe().run(page, options={"resultTypes": ["violations"], **only})
    assert len(found.response["passes"]) > 20 or [rule["id"] for rule in found.response["passes"]] == [CONTRAST]
    assert found.violations_count == 0, found.generate_report()


SCROLLING_WITHOUT_FOCUS = """() => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
    dispatchEvent(new Event("resize"));
    return [...document.querySelectorAll("body *")].filter((box) =>
        ["auto", "scroll"].includes(getComputedStyle(box).overflowX) && box.scrollWidth > box.clientWidth + 1)
        .map((box) => [box.className || box.tagName, box.tabIndex, box.getAttribute("aria-label")]);
}"""


@pytest.mark.parametrize("make", ["product_page", "long_page", "terms_page"])
def test_every_box_that_scrolls_is_a_named_tab_stop(visit, request, make):
    """Test a width at which formulas scroll in any font."""
    scrolling = visit(request.getfixturevalue(make), width=120).evaluate(SCROLLING_WITHOUT_FOCUS)
    assert any("formula" in name for name, _, _ in scrolling)
    assert [box for box in scrolling if box[1] < 0] == []
    assert [name for name, _, label in scrolling if not label and name != "DD"] == []  # its <dt> names a <dd>


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_structured_jacobian(visit, scheme):
    """It makes no requests, is accessible, and highlights the element under the pointer."""
    from axe_playwright_python.sync_playwright import Axe

    def stencil(u):
        return u[:-2] * u[1:-1] - u[2:] ** 2

    J = torch.jacobian(stencil, np.linspace(1, 2, 30), layout="structured", strategy="forward terms")
    page = visit(explain(J).to_html(), scheme=scheme, scripts=True)
    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()
    faint = "[...document.querySelectorAll('.spy path')].filter((p) => getComputedStyle(p).opacity < 1).length"
    assert page.evaluate(faint) == 0
    page.locator("[data-term='0']").hover()
    until(page, f"{faint} === 2")


def test_dark_and_light(visit, product_page):
    page = visit(product_page, scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    page.get_by_role("button", name="Light").click()
    light = page.evaluate(paper)
    assert dark != light
    assert visit(product_page).evaluate(paper) == light


@pytest.mark.parametrize(
    "make, scripts",
    [
        ("product_page", True),
        ("product_page", False),
        ("network_page", True),
        pytest.param("network_page", False, marks=pytest.mark.slow),
        *[
            pytest.param(make, scripts, marks=pytest.mark.slow)
            for make in ("outer_page", "terms_page")
            for scripts in (True, False)
        ],
    ],
)
def test_a_narrow_window_scrolls_downward_only(visit, request, make, scripts):
    page = visit(request.getfixturevalue(make), width=320, height=640, scripts=scripts)
    page.evaluate("for (const it of document.querySelectorAll('details')) it.open = true")
    widest = page.locator("html").evaluate("(html) => html.scrollWidth")
    assert widest <= 320


def test_the_keyboard_reaches_a_step_from_the_graph(visit, product_page):
    page = visit(product_page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("svg.chainrule-graph a", has=page.locator(".node.op")).first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash").startswith("#step-")
    assert page.locator("article.step:target").count() == 1


def test_markup_in_names_comes_out_as_text(visit):
    page = visit(explanation_html(poisoned()))
    assert page.title().startswith("</script><script>")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert MARKUP in page.locator(".step .doc").first.inner_text()
    edit(page, 0, "0")
    assert page.locator("img").count() == 0


def test_a_large_graph_folds(visit):
    page = visit(explanation_html(bushy()))
    assert 1 < page.locator("svg.chainrule-graph .node").count() <= 70
    assert page.locator("html").evaluate("(html) => html.scrollWidth") <= 1366


def test_a_link_opens_what_it_leads_to(visit):
    x = torch.tensor([0.1, 0.2], requires_grad=True)
    y = x
    for k in range(10):
        y = torch.sin(y) * (k + 1)
    page = visit(explanation_html(explain(y.sum())))
    assert page.locator("article.step details[open]").count() == 0
    page.locator("a.tag").nth(3).click()
    until(page, "document.querySelector('article.step:target details').open")
    assert page.locator("article.step details[open]").count() == 1
    edit(page, 0, "2")
    assert page.locator("output.bad").count() == 0


def test_a_long_pass_is_opened_and_edited(visit):
    e = three_terms()
    page = visit(explanation_html(e))
    assert page.locator("table.shares").count() == 2
    closed = page.locator(".folds > .fold:not([open])")
    for _ in range(closed.count()):
        closed.first.locator("> summary").click()
    assert page.locator(".folds > .fold:not([open])").count() == 0
    row = page.locator("article.step summary").first
    row.click()
    assert page.locator("article.step details[open] .arrow").first.is_visible()
    edit(page, 0, "2")
    places = page.evaluate("[...document.querySelectorAll('[data-norm]')].map((p) => [p.dataset.norm, p.textContent])")
    norms = {f"u{step.index}": 2 * float(np.linalg.norm(step.upstream)) for step in e.steps}
    assert places and all(abs(float(text) - norms[key]) <= 6e-3 * norms[key] for key, text in places)
    assert page.locator("output.bad").count() == 0


def test_a_graph_is_zoomed_and_fits(visit, terms_page):
    page = visit(terms_page, width=700)
    box, svg = page.locator(".graph-box"), page.locator(".graph-box svg")
    page.get_by_role("button", name="Its own size").click()
    whole = svg.bounding_box()["height"]
    page.get_by_role("button", name="Smaller").click()
    assert svg.bounding_box()["height"] < whole
    page.get_by_role("button", name="The whole graph").click()
    inside, outside = svg.bounding_box(), box.bounding_box()
    assert inside["width"] <= outside["width"] and inside["height"] <= outside["height"] + 20
    assert page.locator("html").evaluate("(html) => html.scrollWidth") <= 700
