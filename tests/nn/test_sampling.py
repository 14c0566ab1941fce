"""grid_sample at known points, windows for signals, bags in vmap, shuffled and dropped channels (others: ops/cases.py)."""

from __future__ import annotations

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


def test_places_between_and_outside():
    x = torch.tensor([[[[0.0, 10.0], [20.0, 30.0]]]])
    at = torch.tensor([[[[0.0, 0.0], [-1.0, 1.0], [3.0, 0.0], [0.0, -1.5]]]])

    def read(**options):
        return F.grid_sample(x, at, align_corners=True, **options).flatten().tolist()

    assert read() == [15, 20, 0, 3.75]
    assert read(padding_mode="border") == [15, 20, 20, 5]
    assert read(padding_mode="reflection") == [15, 20, 10, 10]
    assert read(mode="nearest", padding_mode="border")[1:3] == [20, 10]


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


@differs("bags then hold what the memory between them does")
def test_offsets_do_not_decrease():
    with pytest.raises(RuntimeError, match="must not decrease"):
        F.embedding_bag(BAGS[0], numbers(10, 2), torch.tensor([0, 5, 3]))


# -- channels ---------------------------------------------------------------------------------------------------------


def test_moves_of_channels():
    x = numbers(2, 8, 3, 2)
    up = F.pixel_shuffle(x, 2)
    assert up.shape == (2, 2, 6, 4)
    np.testing.assert_array_equal(up[:, 0, ::2, 1::2].numpy(), x[:, 1].numpy())
    np.testing.assert_array_equal(F.pixel_unshuffle(up, 2).numpy(), x.numpy())
    mixed = torch.native_channel_shuffle(x, 2) if hasattr(torch, "native_channel_shuffle") else F.channel_shuffle(x, 2)
    np.testing.assert_array_equal(mixed.numpy(), x[:, [0, 4, 1, 5, 2, 6, 3, 7]].numpy())
    assert torch.autograd.gradcheck(lambda x: F.pixel_shuffle(x, 2), leaf(1, 4, 2, 1))


def test_dropping_channels():
    torch.manual_seed(3)
    out = F.dropout2d(torch.ones(20, 10, 3, 3), 0.5)
    each = out.flatten(2)
    assert bool((each == each[..., :1]).all()) and set(each.unique().tolist()) == {0, 2}
    assert F.dropout2d(torch.ones(2, 2, 1, 1), 1.0).abs().sum() == 0
    x = torch.randn(20000)
    out = F.alpha_dropout(x, 0.2, training=True)
    assert abs(float(out.mean())) < 0.1 and abs(float(out.std()) - 1) < 0.1
    assert F.rrelu(torch.tensor([-3.0, 2.0]), 0.1, 0.3).tolist() == pytest.approx([-0.6, 2.0])
