"""Functions of ``nn`` that also exist in ``torch`` itself, with arguments in another order."""

from __future__ import annotations

import pytest

from behaviour import torch

F = torch.nn.functional
X, Y = torch.linspace(-1, 2, 6).reshape(3, 2), torch.linspace(0.1, 0.9, 6).reshape(3, 2)
SIGNS, M, V = torch.tensor([1.0, -1.0, 1.0]), torch.tensor([0.1, 0.2]), torch.tensor([1.0, 2.0])
IMAGES = torch.linspace(-1, 1, 24).reshape(2, 3, 4)

SAME = {
    "embedding": (lambda: torch.embedding(X, torch.tensor([0, 2])), lambda: F.embedding(torch.tensor([0, 2]), X)),
    "batch_norm": (
        lambda: torch.batch_norm(X, M, V, M.clone(), V.clone(), False, 0.1, 1e-5, False),
        lambda: F.batch_norm(X, M.clone(), V.clone(), M, V, False, 0.1, 1e-5),
    ),
    "instance_norm": (
        lambda: torch.instance_norm(IMAGES, None, None, None, None, True, 0.1, 1e-3, False),
        lambda: F.instance_norm(IMAGES, eps=1e-3),
    ),
    "logits": (
        lambda: torch.binary_cross_entropy_with_logits(X, Y, None, M, 2),
        lambda: F.binary_cross_entropy_with_logits(X, Y, pos_weight=M, reduction="sum"),
    ),
    "kl_div": (lambda: torch.kl_div(X, Y, 0, log_target=True), lambda: F.kl_div(X, Y, reduction="none", log_target=True)),
    "poisson": (
        lambda: torch.poisson_nll_loss(X, Y, True, False, 1e-8, 1),
        lambda: F.poisson_nll_loss(X, Y),
    ),
    "hinge": (
        lambda: torch.hinge_embedding_loss(X[:, 0], SIGNS, 0.5, 1),
        lambda: F.hinge_embedding_loss(X[:, 0], SIGNS, 0.5),
    ),
    "ranking": (
        lambda: torch.margin_ranking_loss(X[:, 0], Y[:, 0], SIGNS, 0.5, 2),
        lambda: F.margin_ranking_loss(X[:, 0], Y[:, 0], SIGNS, 0.5, reduction="sum"),
    ),
    "cosine": (
        lambda: torch.cosine_embedding_loss(X, Y, SIGNS, 0.5, 0),
        lambda: F.cosine_embedding_loss(X, Y, SIGNS, 0.5, reduction="none"),
    ),
    "triplet": (
        lambda: torch.triplet_margin_loss(X, Y, -X, 1.0, 2.0, 1e-6, True, 0),
        lambda: F.triplet_margin_loss(X, Y, -X, swap=True, reduction="none"),
    ),
    "pooling": (
        lambda: torch.adaptive_max_pool1d(IMAGES, 2)[1],
        lambda: F.adaptive_max_pool1d(IMAGES, 2, return_indices=True)[1],
    ),
    "convolution": (
        lambda: torch.convolution(IMAGES, IMAGES[:, :, :2], None, [2], [1], [1], False, [0], 1),
        lambda: F.conv1d(IMAGES, IMAGES[:, :, :2], None, 2, 1),
    ),
    "transposed": (
        lambda: torch.convolution(IMAGES[:, :2], IMAGES[:, :, :2], None, [2], [0], [1], True, [1], 1),
        lambda: F.conv_transpose1d(IMAGES[:, :2], IMAGES[:, :, :2], None, 2, output_padding=1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_the_same_as_in_functional(name):
    ours, functional = SAME[name]
    assert torch.equal(ours(), functional())


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("binary_cross_entropy_with_logits", (X, Y)),
        ("kl_div", (X, Y)),
        ("hinge_embedding_loss", (X[:, 0], SIGNS)),
        ("margin_ranking_loss", (X[:, 0], Y[:, 0], SIGNS)),
        ("cosine_embedding_loss", (X, Y, SIGNS)),
        ("triplet_margin_loss", (X, Y, -X)),
    ],
)
def test_nothing_is_reduced_by_default(name, operands):
    assert torch.equal(getattr(torch, name)(*operands), getattr(F, name)(*operands, reduction="none"))


def test_padding_of_embedding():
    weight = torch.ones(3, 2, requires_grad=True)
    torch.embedding(weight, torch.tensor([0, 2, 2])).sum().backward()
    assert weight.grad.tolist() == [[1, 1], [0, 0], [2, 2]]  # -1 is no row
    weight.grad = None
    torch.embedding(weight, torch.tensor([0, 2, 2]), 2).sum().backward()
    assert weight.grad.tolist() == [[1, 1], [0, 0], [0, 0]]


def test_in_place():
    x = torch.tensor([-1.0, 2.0])
    assert torch.threshold_(x, 0.0, 5.0) is x and x.tolist() == [5.0, 2.0]
    assert torch.celu_(x) is x and torch.selu_(x) is x and torch.rrelu_(x) is x


def test_repeats_alone():
    assert torch.repeat_interleave(torch.tensor([1, 0, 2])).tolist() == [0, 2, 2]
    assert torch.repeat_interleave(torch.tensor([2, 1]), output_size=3).tolist() == [0, 0, 1]
    assert torch.repeat_interleave(repeats=torch.tensor([0, 1], dtype=torch.int32)).dtype == torch.int32
    for bad in (torch.tensor([1.0]), torch.tensor([[1]]), torch.tensor([-1])):
        with pytest.raises(RuntimeError, match=r"repeat"):
            torch.repeat_interleave(bad)
    with pytest.raises(RuntimeError, match="allocated size does not match required size"):
        torch.repeat_interleave(torch.tensor([2, 1]), output_size=5)
    with pytest.raises(RuntimeError, match="Invalid output_size, expected 4 but got 5"):
        torch.repeat_interleave(torch.tensor([5.0, 6.0]), 2, output_size=5)
    with pytest.raises(TypeError, match="argument 'repeats'"):
        torch.repeat_interleave(3)
