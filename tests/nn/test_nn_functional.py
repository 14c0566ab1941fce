"""chainrule.nn.functional: nodes, modes, special cases, errors and warnings (values and derivatives: ops/cases.py)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import chainrule as cr
import chainrule.nn.functional as F


def numbers(*shape, seed=0.3, scale=1.5):
    """Return deterministic numbers in (−scale, scale)."""
    n = int(np.prod(shape))
    return np.asarray(np.sin(np.arange(n) * 1.37 + seed).reshape(shape) * scale)


CLASSES = np.array([0, 3, 1, 2, 3])
WITH_IGNORED = np.array([0, -100, 1, 2, -100])
WEIGHTS = np.array([0.2, 0.5, 0.9, 0.4])


def test_targets_batched_with_the_scores():
    scores = cr.from_numpy(numbers(3, 5, 4))
    targets = cr.from_numpy(np.array([CLASSES, WITH_IGNORED, CLASSES[::-1]]))
    for options in ({}, {"label_smoothing": 0.1}, {"reduction": "none"}, {"weight": cr.from_numpy(WEIGHTS)}):
        batched = cr.func.vmap(lambda x, t, o=options: F.cross_entropy(x, t, **o))(scores, targets)
        loop = [F.cross_entropy(scores[i], targets[i], **options).numpy() for i in range(3)]
        np.testing.assert_allclose(batched.numpy(), np.stack(loop), rtol=1e-12)


# -- graph, modes, shapes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x: F.mse_loss(x, x.detach()), "MseLossBackward0"),
        (lambda x: F.linear(x, cr.ones(5, 3), cr.ones(5)), "AddmmBackward0"),
        (F.gelu, "GeluBackward0"),
        (F.celu, "EluBackward0"),
        (lambda x: F.celu(x, 0.5), "CeluBackward0"),
        (F.logsigmoid, "LogSigmoidBackward0"),
        (lambda x: F.cross_entropy(x, cr.tensor([0, 1])), "NllLossBackward0"),
        (lambda x: F.layer_norm(x, (3,)), "NativeLayerNormBackward0"),
        (lambda x: F.huber_loss(x, x.detach()), "HuberLossBackward0"),
    ],
)
def test_node_names(call, expected):
    node = call(cr.ones(2, 3, requires_grad=True)).grad_fn
    names = {node.name(), *(f.name() for f, _ in node.next_functions if f is not None)}
    assert expected in names


def test_mse_loss_of_a_target_that_requires_grad():
    x, y = cr.tensor([1.0, 2.0], requires_grad=True), cr.tensor([3.0, 5.0], requires_grad=True)
    F.mse_loss(x, y).backward()
    assert x.grad.tolist() == [-2.0, -3.0] and y.grad.tolist() == [2.0, 3.0]


def test_losses_without_recording():
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    with cr.no_grad():
        assert not F.mse_loss(x, x * 0).requires_grad
        assert not F.linear(x, cr.ones(3, 2), cr.ones(3)).requires_grad
    assert F.mse_loss(x.detach(), x.detach() * 0).item() == 2.5


def test_losses_of_nothing():
    assert np.isnan(F.mse_loss(cr.zeros(0), cr.zeros(0)).item())
    assert np.isnan(F.cross_entropy(cr.zeros(0, 3), cr.zeros(0, dtype=cr.int64)).item())
    x = cr.zeros(2, 3, requires_grad=True)
    loss = F.cross_entropy(x, cr.tensor([-100, -100]))
    loss.backward()
    assert np.isnan(loss.item()) and not x.grad.numpy().any()


def test_large_scores_do_not_overflow():
    x = cr.tensor([[1000.0, 0.0], [0.0, 1000.0]], requires_grad=True)
    loss = F.cross_entropy(x, cr.tensor([1, 1]))
    loss.backward()
    assert loss.item() == 500.0 and np.isfinite(x.grad.numpy()).all()
    y = cr.tensor([-200.0, 200.0], requires_grad=True)
    F.binary_cross_entropy_with_logits(y, cr.tensor([1.0, 0.0])).backward()
    assert y.grad.tolist() == [-0.5, 0.5]


def test_gaussian_nll_passes_the_gradient_of_a_clamped_variance():
    v = cr.tensor([1e-3], dtype=cr.float64, requires_grad=True)
    F.gaussian_nll_loss(cr.zeros(1, dtype=cr.float64), cr.ones(1, dtype=cr.float64), v, eps=0.5).backward()
    assert v.grad.item() == pytest.approx(0.5 * (1 / 0.5 - 1 / 0.5**2))


def test_kinks_have_pytorchs_derivatives():
    def at(f, *xs):
        x = cr.tensor(list(xs), requires_grad=True)
        return cr.autograd.grad(f(x).sum(), x)[0].tolist()

    assert at(F.relu, 0.0) == [0.0]
    assert at(F.hardtanh, -1.0, 1.0) == [0.0, 0.0]
    assert at(F.relu6, 0.0, 6.0) == [0.0, 0.0]
    assert at(F.hardswish, -3.0, 3.0) == [0.0, 1.0]
    assert at(F.hardsigmoid, -3.0, 3.0) == [0.0, 0.0]
    assert at(F.hardshrink, 0.5, -0.5) == [0.0, 0.0]
    assert at(lambda x: F.l1_loss(x, x.detach()), 1.0) == [0.0]


def test_in_place():
    x = cr.tensor([-1.0, 2.0], requires_grad=True)
    y = x * 2
    z = F.relu(y, inplace=True)
    assert z is y and y.tolist() == [0.0, 4.0]
    z.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0]
    with pytest.raises(RuntimeError, match="leaf Variable"):
        F.silu(x, inplace=True)


def test_dropout():
    cr.manual_seed(0)
    x = cr.ones(10_000, requires_grad=True)
    out = F.dropout(x, 0.25)
    kept = out.detach().numpy() != 0
    assert 0.72 < kept.mean() < 0.78
    np.testing.assert_allclose(out.detach().numpy()[kept], 4 / 3, rtol=1e-6)
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), out.detach().numpy())
    assert F.dropout(x, 0.5, training=False) is x
    assert not F.dropout(x, 1.0).detach().numpy().any()
    cr.manual_seed(7)
    first = F.dropout(x, 0.5).detach().numpy()
    cr.manual_seed(7)
    np.testing.assert_array_equal(first, F.dropout(x, 0.5).detach().numpy())


def test_gumbel_softmax():
    cr.manual_seed(0)
    x = cr.zeros(2000, 3, requires_grad=True)
    hard = F.gumbel_softmax(x, hard=True)
    assert set(np.unique(hard.detach().numpy().round(6))) == {0.0, 1.0}
    np.testing.assert_allclose(hard.detach().numpy().mean(0), 1 / 3, atol=0.05)
    (hard * cr.tensor([1.0, 0.0, 0.0])).sum().backward()
    assert x.grad.numpy().any()


def test_batch_norm_moves_the_running_statistics():
    mean, var = cr.zeros(2), cr.ones(2)
    F.batch_norm(cr.tensor([[1.0, 2.0], [3.0, 6.0]]), mean, var, training=True, momentum=0.5)
    assert mean.tolist() == [1.0, 2.0] and var.tolist() == [1.5, 4.5]


def test_embedding_options():
    w = cr.tensor([[3.0, 4.0], [0.3, 0.4]], requires_grad=True)
    with cr.no_grad():
        F.embedding(cr.tensor([0, 1]), w, max_norm=1.0)
    np.testing.assert_allclose(w.detach().numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-5)
    F.embedding(cr.tensor([0, 0, 1]), w, scale_grad_by_freq=True).sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_one_hot():
    assert F.one_hot(cr.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(cr.tensor(1), 2).tolist() == [0, 1]


def test_parameter():
    data = cr.zeros(2)
    w = cr.nn.Parameter(data)
    assert w.requires_grad and w.is_leaf and type(w) is cr.Tensor
    w.data[0] = 3.0
    assert data.tolist() == [3.0, 0.0]
    assert not cr.nn.Parameter(data, requires_grad=False).requires_grad
    assert isinstance(w, cr.nn.Parameter) and not isinstance(data, cr.nn.Parameter)
    assert not isinstance(w * 2, cr.nn.Parameter) and issubclass(cr.nn.Parameter, cr.Tensor)


# -- errors and warnings ---------------------------------------------------------------------------------------------


def z(*shape):
    return cr.zeros(*shape)


@pytest.mark.parametrize(
    "kind, words, call",
    [
        (ValueError, "foo is not a valid value for reduction", lambda: F.mse_loss(z(2), z(2), reduction="foo")),
        (NotImplementedError, "not implemented for 'Long'", lambda: F.mse_loss(z(2).long(), z(2).long())),
        (NotImplementedError, "not implemented for 'Long'", lambda: F.gelu(z(2).long())),
        (NotImplementedError, "not implemented for 'Long'", lambda: F.softplus(z(2).long())),
        (IndexError, "Target 3 is out of bounds", lambda: F.cross_entropy(z(2, 3), cr.tensor([0, 3]))),
        (IndexError, "Target -1 is out of bounds", lambda: F.nll_loss(z(2, 3), cr.tensor([0, -1]))),
        (ValueError, "to match target batch_size", lambda: F.cross_entropy(z(2, 3), cr.tensor([0]))),
        (RuntimeError, "expected target dtype to be Long", lambda: F.cross_entropy(z(2, 3), z(2))),
        (RuntimeError, "Expected floating point type", lambda: F.cross_entropy(z(2, 3), z(2, 3).long())),
        (RuntimeError, "Expected target size", lambda: F.cross_entropy(z(2, 3, 4), z(2, 5).long())),
        (RuntimeError, r"got \[2, 1\]: write target.reshape\(\(2,\)\)", lambda: F.cross_entropy(z(2, 3), z(2, 1).long())),
        (ValueError, r"same size: write target.reshape\(\(2, 1\)\)", lambda: F.binary_cross_entropy(z(2, 1), z(2))),
        (RuntimeError, "either for all 3 classes", lambda: F.nll_loss(z(2, 3), cr.tensor([0, 1]), z(2))),
        (RuntimeError, "label_smoothing must", lambda: F.cross_entropy(z(2, 3), cr.tensor([0, 1]), label_smoothing=2)),
        (ValueError, "Using a target size", lambda: F.binary_cross_entropy(z(2), z(3))),
        (RuntimeError, "input should be between 0 and 1", lambda: F.binary_cross_entropy(z(2) + 2, z(2))),
        (RuntimeError, "target should be between 0 and 1", lambda: F.binary_cross_entropy(z(2), z(2) - 1)),
        (ValueError, "must be the same as input size", lambda: F.binary_cross_entropy_with_logits(z(2), z(3))),
        (ValueError, "negative entry", lambda: F.gaussian_nll_loss(z(2), z(2), z(2) - 1)),
        (ValueError, "incorrect size", lambda: F.gaussian_nll_loss(z(2, 3), z(2, 3), z(3, 3))),
        (RuntimeError, "same dimension", lambda: F.margin_ranking_loss(z(2), z(2, 1), z(2))),
        (RuntimeError, "non-positive values for delta", lambda: F.huber_loss(z(2), z(2), delta=0.0)),
        (RuntimeError, "negative values for beta", lambda: F.smooth_l1_loss(z(2), z(2), beta=-1.0)),
        (ValueError, "between 0 and 1, but got 2.0", lambda: F.dropout(z(2), 2.0)),
        (IndexError, "index out of range in self", lambda: F.embedding(cr.tensor([5]), z(2, 2))),
        (RuntimeError, "scalar types: Long, Int", lambda: F.embedding(z(1), z(2, 2))),
        (AssertionError, "Padding_idx must be within", lambda: F.embedding(cr.tensor([0]), z(2, 2), padding_idx=2)),
        (RuntimeError, "must be non-negative", lambda: F.one_hot(cr.tensor([-1]))),
        (RuntimeError, "smaller than num_classes", lambda: F.one_hot(cr.tensor([3]), 2)),
        (RuntimeError, "LongTensor", lambda: F.one_hot(z(1))),
        (RuntimeError, "Given normalized_shape", lambda: F.layer_norm(z(2, 3), (2,))),
        (RuntimeError, "same shape as normalized_shape", lambda: F.layer_norm(z(2, 3), (3,), z(2))),
        (ValueError, "more than 1 value per channel", lambda: F.batch_norm(z(1, 3), None, None, training=True)),
        (RuntimeError, "running_mean must be defined", lambda: F.batch_norm(z(2, 3), None, None)),
        (RuntimeError, "should contain 3 elements not 2", lambda: F.batch_norm(z(2, 3), z(2), z(3))),
        (RuntimeError, "divisible by num_groups", lambda: F.group_norm(z(2, 3), 2)),
        (RuntimeError, "cannot be multiplied", lambda: F.linear(z(2, 3), z(4, 2))),
        (RuntimeError, "must match the size", lambda: F.linear(z(2, 3), z(4, 3), z(3))),
        (RuntimeError, "input2 size does not match", lambda: F.bilinear(z(2, 3), z(2, 4), z(5, 3, 3))),
        (RuntimeError, "either none or tanh", lambda: F.gelu(z(2), approximate="x")),
        (ValueError, "min_val cannot be greater", lambda: F.hardtanh(z(2), 1.0, 0.0)),
        (RuntimeError, "attn_mask should not be set", lambda: F.scaled_dot_product_attention(
            z(2, 3), z(2, 3), z(2, 3), z(2, 2), is_causal=True)),
    ],
)  # fmt: skip
def test_errors(kind, words, call):
    with pytest.raises(kind, match=words):
        call()


def test_shapes_that_do_not_broadcast():
    with (
        pytest.warns(UserWarning, match="target size"),
        pytest.raises(RuntimeError, match="must match the size of tensor b"),
    ):
        F.mse_loss(z(2, 2), z(3))


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
def test_warns_of_a_target_of_another_shape(loss):
    with pytest.warns(UserWarning, match=r"target size \(torch.Size\(\[2\]\)\) that is different to the input size"):
        out = loss(cr.ones(2, 1, requires_grad=True), z(2))
    assert out.shape == ()


def test_weights_of_classes_are_constants():
    w = cr.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'weight'"):
        F.cross_entropy(z(2, 3), cr.tensor([0, 1]), w)


def test_other_warnings():
    with pytest.warns(UserWarning, match="reduction='sum' instead"):
        assert F.mse_loss(cr.ones(3), z(3), size_average=False).item() == 3.0
    with pytest.warns(UserWarning, match="batchmean"):
        F.kl_div(z(2, 2), cr.ones(2, 2))
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        F.softmax(z(2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.mse_loss(z(2), z(2))
        F.kl_div(z(2, 2), cr.ones(2, 2), reduction="batchmean")
