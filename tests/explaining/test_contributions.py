"""Contributions to gradients: they add up to ``.grad``, and each is the gradient of its term."""

from __future__ import annotations

import re

import numpy as np
import pytest

import chainrule as torch
from chainrule.explaining import explain

nn = torch.nn


def points(n=7, seed=0):
    return torch.tensor(np.random.default_rng(seed).uniform(-1, 1, (n, 1)), requires_grad=True)


def network():
    return nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1)).double()


def physics():
    """A loss whose first term contains a second derivative."""
    net, x, ends = network(), points(), torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    u = net(x)
    (slope,) = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)
    equation = ((slope + u * x) ** 2).mean()
    edge = (net(ends) ** 2).sum()
    return equation + 10 * edge - 0.1 * sum((p**2).sum() for p in net.parameters()), [*net.parameters()]


def loop():
    k, h, total = torch.tensor([0.3, 0.2], requires_grad=True), torch.ones(2), 0.0
    for _ in range(30):
        h = h + 0.1 * torch.sin(h * k)
        total = total + (h**2).sum()
    return total, [k]


def shared():
    """A sum that is used twice is not split into terms."""
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    s = w.exp().sum() + w.sum()
    return s + s * s, [w]


def stacked():
    w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    return torch.stack([w.sin().sum(), w.prod(), w[1]]).mean() / 2, [w]


def complexes():
    w = torch.tensor([1.0 + 2j, 0.5 - 1j], requires_grad=True)
    return (w * w.conj()).real.sum() + (w * (1 + 1j)).imag.sum(), [w]


def parts_of_one():
    """One operation with several results."""
    w = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64, requires_grad=True)
    values, vectors = torch.linalg.eigh(w)
    return values.exp().sum() + (vectors**3).sum() + w.sum(), [w]


PROGRAMS = [physics, loop, shared, stacked, complexes, parts_of_one]


@pytest.mark.parametrize("by", ["term", "line", "module"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_the_parts_add_up(program, by):
    loss, leaves = program()
    found = explain(loss, wrt=leaves, by=by)
    loss.backward()
    assert len(found.gradients) == len(leaves)
    for leaf, name in zip(leaves, found.gradients):
        total = sum(part.gradients[name] for part in found.parts if name in part.gradients)
        scale = np.abs(leaf.grad.numpy()).max()
        assert np.allclose(total, leaf.grad.numpy(), rtol=0, atol=scale * (1e-12 if "64" in str(leaf.dtype) else 2e-6))
        assert sum(row.share for row in found.rows(name)) == pytest.approx(1, abs=1e-5)
    assert sum(row.share for row in found.rows()) == pytest.approx(1, abs=1e-5)
    assert not any("hooks" in part.name for part in found.parts)


def test_a_term_is_the_gradient_of_that_term():
    net, x = network(), points()
    fit = ((net(x) - torch.cos(x)) ** 2).mean()
    size = sum((p**2).sum() for p in net.parameters())
    found = explain(fit + 0.5 * size, by="term", wrt=list(net.parameters()))
    assert [part.name for part in found.parts] == ["fit", "0.5 * size"]
    for part, term in zip(found.parts, (fit, 0.5 * size)):
        exact = torch.autograd.grad(term, list(net.parameters()), retain_graph=True)
        for g, ours in zip(exact, part.gradients.values(), strict=True):
            assert np.allclose(g.numpy(), ours, rtol=1e-12, atol=1e-15)


def test_norm_share_and_cosine():
    w = torch.tensor([1.0, 1.0], dtype=torch.float64, requires_grad=True)
    right, left = w[0] * 4, w[0] * -1 + w[1]  # gradients (4, 0) and (-1, 1); together (3, 1)
    found = explain(right + left, by="term")
    assert [(r.part, r.norm) for r in found.rows("w")] == [("right", 4), ("left", pytest.approx(np.sqrt(2)))]
    assert [r.share for r in found.rows("w")] == pytest.approx([12 / 10, -2 / 10])
    assert [r.cosine for r in found.rows("w")] == pytest.approx([3 / np.sqrt(10), -2 / np.sqrt(20)])


def test_terms_are_the_programs():
    names = {
        program.__name__: [part.name for part in explain(program()[0], by="term").parts]
        for program in (physics, loop, shared, stacked)
    }
    assert names["physics"] == ["equation", "10 * edge", "(p**2).sum()"]
    assert names["loop"] == ["(h**2).sum()"]
    assert names["shared"][-1] == "s * s" and len(names["shared"]) == 2
    assert names["stacked"] == ["w.sin().sum()", "w.prod()", "w[1]"]
    assert explain(loop()[0], by="term").parts[0].count == 30


def test_lines_are_those_that_read_the_leaf():
    w = torch.tensor(2.0, requires_grad=True)
    first = w * 3
    second = w * w
    found = explain(first + second, by="line")
    assert [part.line.text for part in found.parts] == ["first = w * 3", "second = w * w"]
    assert [part.gradients["w"].item() for part in found.parts] == [3, 4]
    assert "first = w * 3" in str(found)


def test_modules_are_those_of_the_parameters():
    net, scale = network(), torch.tensor(2.0, requires_grad=True)
    found = explain((net(points()) * scale).sum(), by="module")
    parts = {part.name: set(part.gradients) for part in found.parts}
    layers = {name: {f"{name}.weight", f"{name}.bias"} for name in ("net.0", "net.2")}
    assert {name: parts[name] for name in ("net.0", "net.2", "scale")} == layers | {"scale": {"scale"}}


def test_what_hooks_change_is_a_part_of_its_own():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = w * 2
    y.register_hook(lambda g: g * 3)
    calls = []
    w.register_hook(lambda g: calls.append(1))
    found = explain(y.sum() + w.sum(), by="term")
    assert len(calls) == 1  # as many as in one pass
    assert [part.name for part in found.parts][-1] == "changed by hooks"
    assert np.array_equal(sum(part.gradients["w"] for part in found.parts), [7, 7])


def test_values_written_since_do_not_matter():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x = torch.tensor([3.0, 4.0])
    e = explain((w * x).sum() + w.sum())
    x.mul_(100)
    assert [part.gradients["w"].tolist() for part in e.contributions("term").parts] == [[3, 4], [1, 1]]


def test_a_functions_and_a_gradient_of_ones_own():
    found = explain(lambda w: torch.sin(w) + w * 2, grad=np.array([1.0, 0.0]), by="term")(np.array([0.0, 0.0]))
    assert [part.gradients["w"].tolist() for part in found.parts] == [[1, 0], [2, 0]]
    zero = explain(lambda w: (w * 0).sum() + (w - w).sum(), by="term")(np.ones(2))
    assert all(np.isnan(row.share) for row in zero.table) and zero.to_dict()["table"][0]["share"] is None


def test_many_terms_are_told_briefly_and_safely():
    w = torch.tensor([1.0], requires_grad=True)
    table = {f"<b>{i}": w * i for i in range(60)}
    found = explain(sum(table.values()), by="term")
    assert len(found.parts) == 40 and sum(part.count for part in found.parts) == 60
    assert found.parts[-1].gradients["w"][0] == sum(range(39, 60))
    assert len(str(found).split("\n")) < 40 and max(map(len, str(found).split("\n"))) <= 80
    assert "<b>" not in found._repr_html_() and re.search(r"table\[.*&lt;b&gt;", found._repr_html_())


def test_there_is_no_other_way():
    w = torch.tensor(1.0, requires_grad=True)
    with pytest.raises(ValueError, match=r"by='layer' is not a way.*'term', 'line', 'module'"):
        explain(w * 2, by="layer")
