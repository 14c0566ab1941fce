import re
import xml.etree.ElementTree as ET

import pytest

import chainrule as cr
from chainrule._src.explaining.diagnosis.names import NamedArray, Names
from chainrule._src.explaining.graph import Graph, graph_of
from chainrule._src.explaining.layout import text_width
from chainrule._src.explaining.parts import GraphNode

SVG = "{http://www.w3.org/2000/svg}"
MARKUP = "</text><script>alert('x')</script>\"&<b>]]>"


def drawn(graph):
    return ET.fromstring(graph.to_svg())


@pytest.fixture
def graph():
    x = cr.ones(4, requires_grad=True)
    h = cr.exp(x)
    frozen = h.detach()
    y = h * h + frozen
    return y.graph()


def test_it_is_one_picture_with_a_description(graph):
    root = drawn(graph)
    assert root.tag == SVG + "svg"
    assert root.get("role") == "img"
    ids = root.get("aria-labelledby").split()
    assert [e.get("id") for e in root if e.tag in (SVG + "title", SVG + "desc")] == ids
    assert root.find(SVG + "title").text == "Graph of y"
    assert "3 operations and 1 leaves" in root.find(SVG + "desc").text


def test_every_node_and_every_arrow_is_there(graph):
    root = drawn(graph)
    assert [e.get("data-node") for e in root.iter(SVG + "g") if e.get("data-node")] == [n.id for n in graph.nodes]
    found = [(e.get("data-from"), e.get("data-to")) for e in root.iter(SVG + "g") if e.get("data-from")]
    assert found == [(e.source, e.target) for e in graph.edges]
    texts = [e.text for e in root.iter(SVG + "text")]
    for text in ("x", "(4,)", "exp", "mul", "left", "right", "cut by detach()", "saves 16 B"):
        assert text in texts


def test_a_gradient_of_a_long_name_has_the_last_part_of_it():
    layers = cr.nn.Sequential(cr.nn.Linear(2, 2, bias=False))
    svg = cr.explain(layers(cr.ones(1, 2)).sum()).graph.to_svg()
    assert '<g class="cotangent"><text class="sign"' in svg and ">weight</text>" in svg and ">…</text>" not in svg


def test_nothing_from_outside_and_no_scripts(graph):
    svg = graph.to_svg()
    assert "<script" not in svg
    assert not re.search(r"(href|src)\s*=|url\((?!#)|@import", svg)
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert "prefers-color-scheme:dark" in svg
    assert "var(--ink)" in svg


def test_two_pictures_on_one_page_do_not_share_ids(graph):
    first, second = (set(re.findall(r' id="([^"]*)"', graph.to_svg())) for _ in range(2))
    assert first
    assert not first & second


def test_text_fits_its_box():
    for name in ["x", "a_rather_long_name_of_a_variable_that_goes_on_and_on", "数学变量", "iiii", "WWWW"]:
        for kind in ("value", "op"):
            node = GraphNode("n0", kind, name, (1000, 20000, 3), detail="axis=(-2, -1), keepdims=True, more=3")
            node.saved_bytes = 123456789
            root = drawn(Graph([node], []))
            (rect,) = [e for e in root.iter(SVG + "rect") if e.get("class") is None]
            width, height = float(rect.get("width")), float(rect.get("height"))
            lines = {}
            for text in (t for t in root.iter(SVG + "text")):
                size = 13 if text.get("class") == "title" else 11
                lines.setdefault(float(text.get("y")), []).append(text_width(text.text, size))
            assert all(sum(line) <= width - 19.9 for line in lines.values())
            assert max(lines) < height and len(lines) == (2 if kind == "value" else 3)


def test_markup_in_names_is_text():
    class Named(Names):
        def find(self, thing):
            found = super().find(thing)
            return found and NamedArray(MARKUP, found.thing, found.scope)

    x = cr.ones(4, requires_grad=True)
    y = x * 2
    graph = graph_of(y, names=Named())
    assert graph.title == MARKUP
    root = drawn(graph)
    assert root.find(SVG + "title").text == f"Graph of {MARKUP}"
    assert all(e.tag.removeprefix(SVG) in ALLOWED for e in root.iter())


ALLOWED = {"svg", "title", "desc", "style", "defs", "marker", "path", "rect", "g", "text"}


def test_markup_in_lines_messages_and_operations(graph):
    for node in graph.nodes:
        node.label = node.detail = node.why = MARKUP
        node.line = type(graph.nodes[0].line)("<b>&.py", 3, MARKUP)
    for edge in graph.edges:
        edge.label = edge.why = MARKUP
    graph.title = MARKUP + "\x00\x08"
    root = drawn(graph)
    assert all(e.tag.removeprefix(SVG) in ALLOWED for e in root.iter())
    assert "<b>&.py:3" in next(e.find(SVG + "title").text for e in root.iter(SVG + "g") if e.get("data-node"))


def test_long_texts_are_shortened_and_whole_in_the_title():
    a_name_that_is_much_too_long_for_any_box_in_a_picture = cr.ones(3, requires_grad=True)
    y = a_name_that_is_much_too_long_for_any_box_in_a_picture * 2
    svg = y.graph().to_svg()
    assert "a_name_that_is_much…" in svg
    assert "<title>a_name_that_is_much_too_long_for_any_box_in_a_picture · " in svg


def test_the_notebook_shows_the_picture(graph):
    assert graph._repr_svg_().startswith("<svg")
    bundle = graph._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/svg+xml"}
    assert bundle["text/plain"] == str(graph)
    assert set(graph._repr_mimebundle_(include={"text/plain"})) == {"text/plain"}
    assert set(graph._repr_mimebundle_(exclude={"text/plain"})) == {"image/svg+xml"}


def test_a_cut_is_dashed_and_says_why(graph):
    root = drawn(graph)
    (cut,) = [e for e in root.iter(SVG + "g") if e.get("class") == "edge cut" and e.get("data-from")]
    assert "was cut by detach()" in cut.find(SVG + "title").text
    assert "marker-end" in cut.find(SVG + "path").attrib
