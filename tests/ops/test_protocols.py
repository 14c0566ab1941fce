"""Tensors in Python's protocols: copying, pickling, formatting, memory shared with NumPy, views, versions."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import chainrule as cr


def test_copies() -> None:
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    x.sum().backward()
    deep = copy.deepcopy({"x": x})["x"]
    assert deep.requires_grad and deep.is_leaf and deep.grad is not x.grad
    assert deep.tolist() == [1.0, 2.0] and deep.grad.tolist() == [1.0, 1.0]
    with cr.no_grad():
        deep[0] = 9.0
    assert x.tolist() == [1.0, 2.0]
    shallow = copy.copy(x)
    assert shallow.requires_grad and shallow.data_ptr() == x.data_ptr()
    leaf, result = copy.deepcopy([x, x * 2])  # a graph is copied with all that it references
    result.sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0] and x.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "tensor", [cr.tensor([1.0, 2.0], requires_grad=True), cr.arange(3), cr.zeros(2, 0), cr.tensor(1j)]
)
def test_pickle(tensor: cr.Tensor) -> None:
    back = pickle.loads(pickle.dumps(tensor))
    assert back.tolist() == tensor.tolist() and back.dtype == tensor.dtype
    assert back.requires_grad == tensor.requires_grad


def test_pickle_refuses_a_graph() -> None:
    with pytest.raises(RuntimeError, match="its graph would be lost"):
        pickle.dumps(cr.ones(2, requires_grad=True) * 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{cr.tensor(2.5):.2f}", "2.50"),
        (f"{cr.tensor(3):d}", "3"),
        (f"{cr.tensor(2.5)}", "2.5"),
        ("%.1f" % cr.tensor(2.5), "2.5"),  # noqa: UP031
        (f"{cr.tensor([1, 2])}", "tensor([1, 2])"),
        (f"{cr.tensor(2.5, requires_grad=True) * 1:.1f}", "2.5"),
        (str(round(float(cr.tensor(2.567)), 1)), "2.6"),
    ],
)
def test_format(text: str, expected: str) -> None:
    assert text == expected


def test_memory_is_shared_with_numpy() -> None:
    array = np.ones(3)
    shared, copied = cr.from_numpy(array), cr.tensor(array)
    array[0] = 5
    assert shared.tolist() == [5, 1, 1] and copied.tolist() == [1, 1, 1]
    shared.add_(1)
    assert array.tolist() == [6, 2, 2]
    assert cr.as_tensor(array).data_ptr() == shared.data_ptr()
    assert np.shares_memory(shared.numpy(), array)


def test_hash_is_identity_and_equality_is_elementwise() -> None:
    x, y = cr.ones(2), cr.ones(2)
    assert len({x, y}) == 2 and (x == y).all()
    assert (x == None).__class__ is bool and x != None  # noqa: E711


VIEWS = [
    "z[0]",
    "z.view(-1)",
    "z.t()",
    "z.squeeze()",
    "z.expand(3, 4)",
    "z.unsqueeze(0)",
    "z[:]",
    "z.reshape(4, 3)",
    "z.diagonal()",
    "z.narrow(0, 0, 3)",
    "z.transpose(0, 1)",
    "z.permute(0, 1)",
]


@pytest.mark.parametrize("make", VIEWS)
def test_a_write_into_a_view_reaches_the_base_and_its_history(make: str) -> None:
    x = cr.ones(3, 4, dtype=cr.float64, requires_grad=True)
    z = x.clone()
    view = eval(make, {"z": z})
    assert view._is_view() and view._base is z
    view.mul_(3.0)
    assert z._version == view._version == 1
    z.sum().backward()
    part = eval(make, {"z": cr.ones(3, 4, dtype=cr.float64)})
    part.mul_(3.0)
    expected = cr.ones(3, 4, dtype=cr.float64)
    eval(make, {"z": expected}).mul_(3.0)
    assert cr.equal(x.grad, expected) and cr.equal(z.detach(), expected)


def test_random_numbers_repeat_after_a_seed() -> None:
    def draw() -> list[object]:
        return [
            cr.rand(3),
            cr.randn(2, 2),
            cr.randint(9, (4,)),
            cr.randperm(5),
            cr.bernoulli(cr.full((5,), 0.5)),
            cr.normal(0.0, 1.0, (2,)),
            cr.ones(3).uniform_(),
            cr.multinomial(cr.ones(4), 2),
        ]

    cr.manual_seed(7)
    first = draw()
    cr.manual_seed(7)
    assert all(cr.equal(a, b) for a, b in zip(first, draw(), strict=True))
    state = cr.get_rng_state()
    a = cr.rand(4)
    cr.set_rng_state(state)
    assert cr.equal(a, cr.rand(4))
    own = cr.Generator().manual_seed(1)
    assert cr.equal(cr.rand(2, generator=own), cr.rand(2, generator=cr.Generator().manual_seed(1)))


def test_random_numbers_have_their_distributions() -> None:
    cr.manual_seed(0)
    assert abs(float(cr.randn(20000).mean())) < 0.03 and abs(float(cr.randn(20000).std()) - 1) < 0.03
    assert abs(float(cr.rand(20000).mean()) - 0.5) < 0.01 and cr.rand(9).dtype == cr.float32
    assert abs(float(cr.empty(20000).exponential_(2.0).mean()) - 0.5) < 0.02
    assert sorted(cr.randperm(6).tolist()) == [0, 1, 2, 3, 4, 5]
    assert set(cr.randint(2, 5, (99,)).tolist()) == {2, 3, 4}
