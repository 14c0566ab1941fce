import json
import re

import pytest

import chainrule as cr
from chainrule._src.explaining.exports import bytes_text, one_line, shorten


@pytest.fixture
def graph():
    x = cr.ones(4, requires_grad=True)
    h = cr.exp(x)
    frozen = h.detach()
    y = h * h + frozen
    return y.graph()


def test_dot(graph):
    dot = graph.to_dot()
    assert dot.startswith("digraph {")
    assert dot.count("->") == len(graph.edges)
    ids = {node.label: node.id for node in graph.nodes}
    assert f'{ids["h"]} -> {ids["mul"]} [label="left"];' in dot
    assert f'{ids["h"]} -> {ids["frozen"]} [label="cut by detach()" style=dashed' in dot
    assert f'{ids["x"]} [label="x\\n(4,)" ' in dot


def spoiled(graph, text):
    graph.title = text
    for node in graph.nodes:
        node.label = node.detail = node.why = text
        node.line = None
    for edge in graph.edges:
        edge.label = edge.why = text
    return graph


NASTY = [
    '"]; evil [label="x"',
    "\\",
    'a\\"b',
    "<script>alert(1)</script>",
    "a\nb -> c;",
    "end",
    'x"]:::y',
    "{|}",
    "#quot;",
]


@pytest.mark.parametrize("text", NASTY)
def test_dot_strings_end_where_they_should(graph, text):
    dot = spoiled(graph, text).to_dot()
    string = r'"(?:[^"\\\n]|\\[\\"n])*"'
    bare = re.sub(string, '""', dot)
    assert bare.count("->") == len(graph.edges)
    for word in ("evil", "script", "<", "|", "\\"):
        assert word not in bare
    assert len(dot.splitlines()) == 4 + len(graph.nodes) + len(graph.edges)
    assert bare.count('"') % 2 == 0


def test_save_chooses_by_the_ending(graph, tmp_path):
    for ending, start in (
        (".svg", "<svg"),
        (".dot", "digraph"),
        (".gv", "digraph"),
        (".txt", "graph of y"),
    ):
        path = tmp_path / f"g{ending}"
        graph.save(path)
        assert path.read_text(encoding="utf-8").startswith(start)
    with pytest.raises(ValueError, match=r"unknown format.*\.svg"):
        graph.save(tmp_path / "g.png")
    assert not (tmp_path / "g.png").exists()


def test_as_plain_values(graph):
    plain = json.loads(json.dumps(graph.to_dict()))
    about = {"title", "operations", "leaves", "saved_bytes", "collapsed", "sideways"}
    assert set(plain) == {"nodes", "edges", "layout", *about}
    assert plain["collapsed"] is False
    assert set(plain["layout"]) == {node["id"] for node in plain["nodes"]}
    first = plain["nodes"][0]
    assert (first["id"], first["kind"], first["label"], first["shape"], first["role"]) == (
        "n0",
        "value",
        "x",
        [4],
        "leaf",
    )
    assert set(first["line"]) == {"file", "line", "text"}
    cut = [edge for edge in plain["edges"] if edge["kind"] == "cut"]
    assert len(cut) == 1
    assert "detach" in cut[0]["why"]


def test_small_words():
    assert [bytes_text(n) for n in (0, 999, 1000, 1860, 2_500_000, 7 * 10**9, 10**13)] == [
        "0 B",
        "999 B",
        "1 kB",
        "1.86 kB",
        "2.5 MB",
        "7 GB",
        "1e+04 GB",
    ]
    assert shorten("abcdefgh", 8) == "abcdefgh"
    assert shorten("abcdefghi", 8) == "abcd…ghi"
    assert one_line("a\nb\x00c") == "a b c"
