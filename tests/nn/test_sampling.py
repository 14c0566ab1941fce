"""grid_sample, embedding_bag, pdist, losses with margins, and windows for signals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from behaviour import OURS, differs, torch

F = torch.nn.functional
W = torch.signal.windows


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng((seed, *shape)).normal(size=shape))


def leaf(*shape, **options):
    return numbers(*shape, **options).requires_grad_()


def close(a, b, tolerance=1e-10):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=tolerance)


# -- grid_sample -----------------------------------------------------------------------------------------------------


def identity(n, h, w, align):
    theta = torch.eye(2, 3, dtype=torch.float64).repeat(n, 1, 1)
    return F.affine_grid(theta, (n, 1, h, w), align_corners=align)


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_the_identity_grid_gives_the_image(mode, align):
    x = numbers(2, 3, 4, 5)
    close(F.grid_sample(x, identity(2, 4, 5, align), mode, align_corners=align), x)


def test_places_between_and_outside():
    x = torch.tensor([[[[0.0, 10.0], [20.0, 30.0]]]])
    at = torch.tensor([[[[0.0, 0.0], [-1.0, 1.0], [3.0, 0.0], [0.0, -1.5]]]])

    def read(**options):
        return F.grid_sample(x, at, align_corners=True, **options).flatten().tolist()

    assert read() == [15, 20, 0, 3.75]
    assert read(padding_mode="border") == [15, 20, 20, 5]
    assert read(padding_mode="reflection") == [15, 20, 10, 10]
    assert read(mode="nearest", padding_mode="border")[1:3] == [20, 10]


def test_volumes():
    x = numbers(1, 2, 3, 4, 5)
    theta = torch.eye(3, 4, dtype=torch.float64).unsqueeze(0)
    grid = F.affine_grid(theta, (1, 2, 3, 4, 5), align_corners=False)
    assert grid.shape == (1, 3, 4, 5, 3)
    close(F.grid_sample(x, grid, align_corners=False), x)


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align", [True, False])
def test_gradients_by_image_and_grid(mode, padding_mode, align):
    x = leaf(1, 2, 3, 4)
    at = torch.from_numpy(np.random.default_rng(1).uniform(-1.3, 1.3, size=(1, 2, 3, 2))).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, at: F.grid_sample(x, at, mode, padding_mode, align), (x, at))


def test_what_grid_sample_refuses():
    with pytest.raises(ValueError, match="expected mode to be"):
        F.grid_sample(numbers(1, 1, 2, 2), numbers(1, 1, 1, 2), "linear")
    with pytest.raises(ValueError, match="expected padding_mode to be"):
        F.grid_sample(numbers(1, 1, 2, 2), numbers(1, 1, 1, 2), padding_mode="wrap")
    with pytest.raises(RuntimeError):
        F.grid_sample(numbers(1, 1, 2, 2), numbers(1, 1, 1, 3))
    with pytest.raises(RuntimeError, match="bicubic"):
        F.grid_sample(numbers(1, 1, 2, 2, 2), numbers(1, 1, 1, 1, 3), "bicubic")


# -- bags and pairs --------------------------------------------------------------------------------------------------


def test_bags():
    weight = numbers(6, 3)
    index, offsets = torch.tensor([0, 2, 2, 5, 1]), torch.tensor([0, 3, 3])
    rows = weight[index]
    empty = torch.zeros(3, dtype=torch.float64)
    for mode, reduce in (("sum", lambda x: x.sum(0)), ("mean", lambda x: x.mean(0)), ("max", lambda x: x.amax(0))):
        got = F.embedding_bag(index, weight, offsets, mode=mode)
        close(got, torch.stack([reduce(rows[:3]), empty, reduce(rows[3:])]))
        matrix = torch.tensor([[0, 2], [3, 3]])
        close(F.embedding_bag(matrix, weight, mode=mode), torch.stack([reduce(weight[r]) for r in matrix]))
        assert torch.autograd.gradcheck(lambda w, mode=mode: F.embedding_bag(index, w, offsets, mode=mode), leaf(6, 3))
    factors = numbers(5)
    close(
        F.embedding_bag(index, weight, offsets, mode="sum", per_sample_weights=factors)[2],
        (rows[3:] * factors[3:, None]).sum(0),
    )
    ends = F.embedding_bag(index, weight, torch.tensor([0, 3, 5]), mode="sum", include_last_offset=True)
    assert ends.shape == (2, 3)
    close(F.embedding_bag(index, weight, offsets, padding_idx=2)[0], weight[0])


def test_what_bags_refuse():
    weight = numbers(4, 2)
    for call, kind in (
        (lambda: F.embedding_bag(torch.tensor([1]), weight), ValueError),
        (lambda: F.embedding_bag(torch.tensor([[1]]), weight, torch.tensor([0])), ValueError),
        (lambda: F.embedding_bag(torch.tensor([[1]]), weight, mode="median"), ValueError),
        (lambda: F.embedding_bag(torch.tensor([1, 2]), weight, torch.tensor([1])), RuntimeError),
        (lambda: F.embedding_bag(torch.tensor([[1]]), weight, per_sample_weights=numbers(1, 1)), NotImplementedError),
    ):
        with pytest.raises(kind):
            call()


@pytest.mark.parametrize("p", [0, 1, 1.5, 2, math.inf])
def test_pairs(p):
    x = numbers(5, 3)
    i, j = np.triu_indices(5, 1)
    close(F.pdist(x, p), torch.from_numpy(np.linalg.norm(x.numpy()[i] - x.numpy()[j], p, axis=-1)))
    if p:
        assert torch.autograd.gradcheck(lambda x: F.pdist(x, p), leaf(4, 3))
    with pytest.raises(RuntimeError, match="2D"):
        F.pdist(numbers(3))


# -- losses ----------------------------------------------------------------------------------------------------------


def test_multi_margin_loss():
    x, y = numbers(4, 3), torch.tensor([0, 2, 1, 2])
    for p in (1, 2):
        rows = [
            sum(max(0, 0.5 - float(row[k]) + float(row[i])) ** p for i in range(3) if i != k) / 3
            for row, k in zip(x, y.tolist())
        ]
        close(F.multi_margin_loss(x, y, p, 0.5, reduction="none"), torch.tensor(rows, dtype=torch.float64))
        assert torch.autograd.gradcheck(lambda x, p=p: F.multi_margin_loss(x, y, p, 0.5), leaf(4, 3))
    weight = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    each = F.multi_margin_loss(x, y, reduction="none")
    close(F.multi_margin_loss(x, y, weight=weight, reduction="none"), each * weight[y])
    with pytest.raises(ValueError, match="only p == 1 and p == 2"):
        F.multi_margin_loss(x, y, 3)


def test_multilabel_losses():
    x, y = torch.tensor([0.1, 0.2, 0.4, 0.8]), torch.tensor([3, 0, -1, 1])
    assert F.multilabel_margin_loss(x, y).item() == pytest.approx(0.85)
    batch = F.multilabel_margin_loss(torch.stack([x, x]), torch.stack([y, y]), reduction="none")
    assert batch.tolist() == pytest.approx([0.85, 0.85])
    z = leaf(2, 4)
    assert torch.autograd.gradcheck(lambda z: F.multilabel_margin_loss(z, torch.stack([y, y])), z)
    target = torch.tensor([[1.0, 0.0, 1.0, 0.0]], dtype=torch.float64)
    close(F.multilabel_soft_margin_loss(z[:1], target), F.binary_cross_entropy_with_logits(z[:1], target))


def test_cosine_embedding_loss():
    a, b = numbers(3, 4), numbers(3, 4, seed=1)
    cosine = F.cosine_similarity(a, b)
    target = torch.tensor([1, -1, 1])
    expected = torch.stack([1 - cosine[0], (cosine[1] - 0.2).clamp(min=0), 1 - cosine[2]])
    close(F.cosine_embedding_loss(a, b, target, 0.2, reduction="none"), expected)
    assert torch.autograd.gradcheck(
        lambda a, b: F.cosine_embedding_loss(a, b, target, 0.2), (leaf(3, 4), leaf(3, 4, seed=1))
    )


def test_triplets_with_a_distance():
    a, p, n = (numbers(4, 3, seed=i) for i in range(3))
    close(F.triplet_margin_with_distance_loss(a, p, n), F.triplet_margin_loss(a, p, n))
    own = F.triplet_margin_with_distance_loss(
        a, p, n, distance_function=lambda x, y: (x - y).abs().sum(-1), margin=2.0, swap=True, reduction="none"
    )
    near, far, other = ((x - y).abs().sum(-1) for x, y in ((a, p), (a, n), (p, n)))
    close(own, (near - torch.minimum(far, other) + 2).clamp(min=0))
    with pytest.raises(ValueError, match="margin must be greater than 0"):
        F.triplet_margin_loss(a, p, n, margin=-1.0)


# -- windows ---------------------------------------------------------------------------------------------------------

NAMES = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "hamming", "hann", "kaiser", "nuttall"]


@pytest.mark.parametrize("name", NAMES)
def test_windows(name):
    window = getattr(W, name)
    for M in (0, 1, 2, 7, 8):
        w = window(M, dtype=torch.float64)
        assert w.shape == (M,) and w.dtype == torch.float64
        close(w, w.flip(0), 1e-12)
        if M > 2:
            close(window(M - 1, sym=False, dtype=torch.float64), w[:-1], 1e-12)
    assert window(5)[2].item() == pytest.approx(1.0)
    assert window(5).dtype == torch.float32 and window(5, requires_grad=True).requires_grad
    with pytest.raises(ValueError):
        window(-1)
    with pytest.raises(ValueError):
        window(3, dtype=torch.int64)


def test_windows_of_numpy():
    for name in ("bartlett", "blackman", "hamming"):
        np.testing.assert_allclose(getattr(W, name)(9, dtype=torch.float64).numpy(), getattr(np, name)(9), atol=1e-12)
    np.testing.assert_allclose(W.hann(9, dtype=torch.float64).numpy(), np.hanning(9), atol=1e-12)
    np.testing.assert_allclose(W.kaiser(9, beta=5.0, dtype=torch.float64).numpy(), np.kaiser(9, 5.0), rtol=1e-6)
    assert W.exponential(4, center=0, sym=False).log().tolist() == pytest.approx([0, -1, -2, -3])
    with pytest.raises(ValueError, match="Center must be None"):
        W.exponential(4, center=1.0)


# -- edges -----------------------------------------------------------------------------------------------------------


def test_no_examples_are_sampled():
    assert F.grid_sample(torch.ones(0, 2, 3, 3), torch.ones(0, 4, 5, 2), align_corners=False).shape == (0, 2, 4, 5)


def test_image_and_grid_have_one_dtype():
    with pytest.raises(RuntimeError):
        F.grid_sample(numbers(1, 2, 3, 3), numbers(1, 4, 5, 2).float(), align_corners=False)


def test_affine_grids_need_as_many_matrices_as_examples_floats_and_a_size():
    with pytest.raises(RuntimeError):
        F.affine_grid(numbers(2, 2, 3), (3, 1, 4, 5), False)
    with pytest.raises(ValueError, match="floating point"):
        F.affine_grid(torch.ones(2, 2, 3, dtype=torch.int64), (2, 1, 4, 5), False)
    with pytest.raises(ValueError, match="positive output size"):
        F.affine_grid(numbers(2, 2, 3), (2, 1, 0, 5), False)


BAGS = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4, 4])


def test_the_largest_rows_of_bags_in_vmap_are_those_of_each_example():
    weights = numbers(3, 10, 2)

    def bag(w):
        return F.embedding_bag(BAGS[0], w, BAGS[1], mode="max", padding_idx=4)

    if OURS:
        found = torch.func.vmap(bag)(weights)
        gradients = torch.func.vmap(torch.func.grad(lambda w: bag(w).square().sum()))(weights)
    else:
        found = torch.stack([bag(w) for w in weights])
        gradients = torch.stack(
            [torch.autograd.grad(bag(v := w.clone().requires_grad_()).square().sum(), v)[0] for w in weights]
        )
    for w, one, g in zip(weights, found, gradients):
        torch.testing.assert_close(one[0], w[[1, 2, 5]].amax(0))
        assert torch.equal(one[1], torch.zeros(2, dtype=torch.float64))
        torch.testing.assert_close(g.sum(), 2 * one.sum())


def test_bags_of_nothing_keep_the_graph():
    w = leaf(4, 2)
    out = F.embedding_bag(torch.tensor([], dtype=torch.int64), w, torch.tensor([0]), mode="max")
    assert torch.equal(torch.autograd.grad(out.sum(), w)[0], torch.zeros(4, 2, dtype=torch.float64))


def test_bad_bags():
    w = numbers(9, 3)
    with pytest.raises(RuntimeError, match="Expected idx >= 0 && idx < num_embeddings but found idx to be 9"):
        F.embedding_bag(*BAGS[:1], w, BAGS[1])
    with pytest.raises(ValueError, match="weight has to be a 2D Tensor"):
        F.embedding_bag(BAGS[0], numbers(10), BAGS[1])
    with pytest.raises(ValueError, match="max mode does not support scaling"):
        F.embedding_bag(BAGS[0], numbers(10, 2), BAGS[1], mode="max", scale_grad_by_freq=True)
    with pytest.raises(RuntimeError, match="padding_idx must be within"):
        F.embedding_bag(BAGS[0], numbers(10, 2), BAGS[1], padding_idx=10)


@differs("bags then hold what the memory between them does")
def test_offsets_do_not_decrease():
    with pytest.raises(RuntimeError, match="must not decrease"):
        F.embedding_bag(BAGS[0], numbers(10, 2), torch.tensor([0, 5, 3]))
