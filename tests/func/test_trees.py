"""Trees: flattening, unflattening, comparison; and as arguments and results of transformations."""

import collections
import dataclasses
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.tree import (
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_map_with_path,
    tree_structure,
    tree_unflatten,
)

Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass(frozen=True)
class Layer:
    weight: Any
    bias: Any = None

    def __post_init__(self):
        assert self.weight is not None


TREES = [
    1,
    (1, 2),
    [1, (2, 3)],
    {"b": 1, "a": [2, None]},
    Pair(1, [2]),
    collections.OrderedDict(z=1, y=(2,)),
    collections.defaultdict(list, {"k": [1, 2]}),
    collections.deque([1, 2], maxlen=5),
    Layer(1, (2, 3)),
    None,
    (),
    tuple(range(30)),
    {"a": Layer([1, {"x": 2}], Pair(3, None))},
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_round_trip(tree):
    leaves, spec = tree_flatten(tree)
    assert leaves == sorted(leaves) and spec.num_leaves == len(leaves)
    again = tree_unflatten(leaves, spec)
    assert again == tree and type(again) is type(tree)
    assert tree_structure(again) == spec and hash(tree_structure(again)) == hash(spec)
    assert tree_leaves(tree_map(lambda x: x + 1, tree)) == [x + 1 for x in leaves]


def test_containers_keep_what_is_not_a_leaf():
    made = tree_map(str, collections.defaultdict(list, {"k": 1}))
    assert made.default_factory is list and made["k"] == "1"
    assert tree_map(str, collections.deque([1], maxlen=2)).maxlen == 2
    assert tree_map(str, Layer(1)) == Layer("1")


def test_is_leaf():
    assert tree_leaves([(1, 2), None], is_leaf=lambda x: x is None or isinstance(x, tuple)) == [(1, 2), None]
    assert tree_map(lambda x: x, (None, 1), is_leaf=lambda x: x is None) == (None, 1)


def test_map_of_several_trees():
    assert tree_map(lambda *xs: xs, {"a": 1, "b": [2]}, {"b": [20], "a": 10}) == {"a": (1, 10), "b": [(2, 20)]}
    assert tree_map(lambda x, y: (x, y), (1, 2), ([10, 11], 20)) == ((1, [10, 11]), (2, 20))
    assert tree_map_with_path(lambda path, x: path, {"a": [0, Pair(1, 2)]}) == {
        "a": ["['a'][0]", Pair("['a'][1].a", "['a'][1].b")]
    }


@pytest.mark.parametrize(
    "other, words",
    [
        ({"a": [1, 2]}, "at \\['a'\\]: expected a list of length 1, got length 2"),
        ({"a": (1,)}, "at \\['a'\\]: expected a list, got a tuple"),
        ({"b": [1]}, "expected the keys \\['a'\\], got \\['b'\\]"),
        ([1], "expected a dict, got a list"),
    ],
)
def test_mismatch_names_the_place(other, words):
    with pytest.raises(ValueError, match=words):
        tree_map(lambda x, y: x, {"a": [1]}, other)


def test_unflatten_counts():
    spec = tree_structure((1, [2]))
    with pytest.raises(ValueError, match="`leaves` has length 3 but the spec refers to a pytree that holds 2"):
        tree_unflatten([1, 2, 3], spec)
    with pytest.raises(TypeError, match="expected treespec to be a TreeSpec"):
        tree_unflatten([1], (1,))


def test_spec_text_and_equality():
    assert repr(tree_structure({"a": (1, [2], None)})) == "TreeSpec({'a': (*, [*], None)})"
    assert tree_structure((1, 2)) != tree_structure([1, 2])
    assert tree_structure({"a": 1}) != tree_structure({"b": 1})
    assert tree_structure(1) != "a leaf"


def test_registered_classes():
    class Box:
        def __init__(self, content, label):
            self.content, self.label = content, label

    register_pytree_node(Box, lambda b: ([b.content], b.label), lambda parts, label: Box(parts[0], label))
    made = tree_map(lambda x: x * 2, Box((1, 2), "name"))
    assert made.content == (2, 4) and made.label == "name"
    with pytest.raises(ValueError, match="already registered"):
        register_pytree_node(Box, lambda b: ([], None), lambda parts, _: None)
    with pytest.raises(ValueError, match="expected a Box with 'one', got 'two'"):
        tree_map(lambda x, y: x, Box(1, "one"), Box(1, "two"))
    with pytest.raises(TypeError):
        register_pytree_node("Box", None, None)


def test_dataclasses_through_transformations():
    layer = Layer(np.eye(2), np.array([1.0, 2.0]))
    f = lambda p, x: ((p.weight @ x + p.bias) ** 2).sum()
    x = np.array([1.0, -1.0])
    g = cr.func.grad(f)(layer, x)
    residual = x + layer.bias
    np.testing.assert_allclose(g.bias, 2 * residual)
    np.testing.assert_allclose(g.weight, 2 * np.outer(residual, x))
    j = cr.func.jacrev(lambda p: Layer(p.bias * 2, None))(layer)
    assert isinstance(j, Layer) and isinstance(j.weight, Layer)
    np.testing.assert_allclose(j.weight.bias, 2 * np.eye(2))
    _, dy = cr.func.jvp(lambda p: Pair(p.bias**2, p.weight.sum()), (layer,), (layer,))
    np.testing.assert_allclose(dy.a, 2 * layer.bias**2)
    out = cr.vmap(lambda p: Pair(p.weight @ p.bias, p), in_dims=(Layer(0, None),), out_dims=Pair(0, Layer(1, 0)))(layer)
    np.testing.assert_allclose(out.a, layer.bias)
    assert out.b.weight.shape == (2, 2) and out.b.bias.shape == (2, 2)
