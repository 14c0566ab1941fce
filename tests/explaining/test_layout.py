import itertools
import random

import pytest

import chainrule as cr
from chainrule._src.explaining.layout import lay_out, text_width


def overlap(a, b):
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def check(sizes, arrows, layout):
    boxes = layout.boxes
    assert set(boxes) == set(sizes)
    for name, (x, y, w, h) in boxes.items():
        assert (w, h) == sizes[name]
        assert x >= 0
        assert y >= 0
        assert x + w <= layout.width
        assert y + h <= layout.height
    for a, b in itertools.combinations([*boxes.values(), *[box for box in layout.labels if box]], 2):
        assert not overlap(a, b)
    for (source, target, label), route, box in zip(arrows, layout.routes, layout.labels):
        assert boxes[source][1] + boxes[source][3] < boxes[target][1]  # downwards
        assert route[0][1] == boxes[source][1] + boxes[source][3]
        assert route[-1][1] == boxes[target][1]
        for (x, _), end in ((route[0], boxes[source]), (route[-1], boxes[target])):
            assert end[0] <= x <= end[0] + end[2]
        assert all(above[1] <= below[1] for above, below in itertools.pairwise(route))
        assert (box is not None) == bool(label)


def middle(box):
    return box[0] + box[2] / 2


def test_a_straight_chain_is_straight():
    sizes = {"a": (40, 20), "b": (90, 20), "c": (60, 20)}
    arrows = [("a", "b", ""), ("b", "c", "")]
    layout = lay_out(sizes, arrows)
    check(sizes, arrows, layout)
    assert len({round(middle(box), 6) for box in layout.boxes.values()}) == 1
    assert all(len({round(x, 6) for x, _ in route}) == 1 for route in layout.routes)


def test_nothing_and_one():
    assert lay_out({}, []).boxes == {}
    check({"a": (10, 10)}, [], lay_out({"a": (10, 10)}, []))


def test_what_is_read_late_stands_low():
    sizes = dict.fromkeys("abcdw", (40, 20))
    arrows = [("a", "b", ""), ("b", "c", ""), ("c", "d", ""), ("w", "d", "")]
    layout = lay_out(sizes, arrows)
    check(sizes, arrows, layout)
    assert layout.boxes["w"][1] == layout.boxes["c"][1]


def test_two_arrows_between_the_same_nodes_are_apart():
    sizes = {"x": (50, 30), "mul": (60, 20)}
    arrows = [("x", "mul", "left"), ("x", "mul", "right")]
    layout = lay_out(sizes, arrows)
    check(sizes, arrows, layout)
    left, right = layout.labels
    assert left[0] + left[2] < right[0]
    assert layout.routes[0] != layout.routes[1]
    unlabelled = lay_out(sizes, [("x", "mul", ""), ("x", "mul", "")])
    assert unlabelled.routes[0] != unlabelled.routes[1]


def test_arrows_that_need_not_cross_do_not():
    sizes = dict.fromkeys("abcdef", (40, 20))
    arrows = [("a", "f", ""), ("b", "e", ""), ("c", "d", "")]
    boxes = lay_out(sizes, arrows).boxes
    order = sorted("abc", key=lambda name: boxes[name][0])
    assert sorted("def", key=lambda name: boxes[name][0]) == [{"a": "f", "b": "e", "c": "d"}[name] for name in order]


def test_a_long_arrow_goes_around_what_is_between():
    sizes = dict.fromkeys("abcd", (80, 30))
    arrows = [("a", "b", ""), ("b", "c", ""), ("c", "d", ""), ("a", "d", "")]
    layout = lay_out(sizes, arrows)
    check(sizes, arrows, layout)
    for x, y in layout.routes[3][1:-1]:
        assert not any(box[0] < x < box[0] + box[2] and box[1] <= y <= box[1] + box[3] for box in layout.boxes.values())


@pytest.mark.parametrize("seed", range(20))
def test_any_graph(seed):
    rng = random.Random(seed)
    n = rng.randrange(2, 40)
    sizes = {f"n{i}": (rng.randrange(30, 200), rng.choice([20, 40])) for i in range(n)}
    arrows = []
    for _ in range(rng.randrange(1, 2 * n)):
        i, j = sorted(rng.sample(range(n), 2))
        arrows.append((f"n{i}", f"n{j}", rng.choice(["", "", "t1 (2, 3)"])))
    layout = lay_out(sizes, arrows)
    check(sizes, arrows, layout)
    assert lay_out(sizes, arrows) == layout  # deterministic


def test_width_of_texts():
    assert text_width("abc", 10) == text_width("XYZ", 10) > 18
    assert text_width("数", 10) > text_width("a", 10) * 1.9


def test_two_thousand_nodes():
    w = cr.tensor(0.9, requires_grad=True)
    h = cr.ones(3)
    for _ in range(1000):
        h = cr.tanh(h * w)
    from chainrule._src.explaining.graph import graph_of

    graph = graph_of(h, limit=None)
    assert len(graph.layout()) == len(graph.nodes) > 2000
