"""chainrule.nn.functional: values and gradients against numbers recorded from PyTorch 2.13, and against differences."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import chainrule as cr
import chainrule.nn.functional as F
from chainrule.testing import gradcheck, gradgradcheck


def numbers(*shape, seed=0.3, scale=1.5):
    """Deterministic numbers in (−scale, scale)."""
    n = int(np.prod(shape))
    return np.asarray(np.sin(np.arange(n) * 1.37 + seed).reshape(shape) * scale)


def between(*shape, seed=0.7):
    """Deterministic numbers in (0.1, 0.9)."""
    return 0.5 + numbers(*shape, seed=seed, scale=0.4)


def checksum(x):
    x = np.asarray(x, float).ravel()
    return float(x @ np.cos(np.arange(x.size) + 0.5))


CLASSES = np.array([0, 3, 1, 2, 3])
WITH_IGNORED = np.array([0, -100, 1, 2, -100])
MANY = np.array([[0, 1, 2], [3, 3, 1]])
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])
WEIGHTS = np.array([0.2, 0.5, 0.9, 0.4])

ACTIVATIONS = [
    "relu", "relu6", "leaky_relu", "elu", "selu", "celu", "silu", "mish", "gelu", "softplus", "softsign", "hardtanh",
    "hardsigmoid", "hardswish", "logsigmoid", "tanhshrink", "hardshrink", "softshrink", "sigmoid", "tanh", "glu",
]  # fmt: skip

#: name -> (call, operands that get gradients, constants)
CASES = {
    **{
        name: (lambda F, x, name=name: getattr(F, name)(x), [numbers(3, 4, scale=4)], [])
        for name in ACTIVATIONS
    },
    "gelu tanh": (lambda F, x: F.gelu(x, approximate="tanh"), [numbers(7, scale=4)], []),
    "celu alpha": (lambda F, x: F.celu(x, 0.6), [numbers(7)], []),
    "elu alpha": (lambda F, x: F.elu(x, 0.6), [numbers(7)], []),
    "softplus beta": (lambda F, x: F.softplus(x, beta=2.0, threshold=1.5), [numbers(7)], []),
    "prelu": (lambda F, x, w: F.prelu(x, w), [numbers(2, 3, 2), between(3)], []),
    "threshold": (lambda F, x: F.threshold(x, 0.1, 7.0), [numbers(7)], []),
    "softmax": (lambda F, x: F.softmax(x, 0), [numbers(3, 4)], []),
    "softmin": (lambda F, x: F.softmin(x, -1), [numbers(3, 4)], []),
    "log_softmax": (lambda F, x: F.log_softmax(x, 1), [numbers(3, 4)], []),
    "linear": (lambda F, x, w, b: F.linear(x, w, b), [numbers(5, 3), numbers(4, 3, seed=1), numbers(4, seed=2)], []),
    "linear 3-d": (lambda F, x, w, b: F.linear(x, w, b), [numbers(2, 5, 3), numbers(4, 3, seed=1), numbers(4)], []),
    "linear 1-d": (lambda F, x, w, b: F.linear(x, w, b), [numbers(3), numbers(4, 3, seed=1), numbers(4)], []),
    "linear no bias": (lambda F, x, w: F.linear(x, w), [numbers(5, 3), numbers(4, 3, seed=1)], []),
    "bilinear": (
        lambda F, x, y, w, b: F.bilinear(x, y, w, b),
        [numbers(5, 2), numbers(5, 3, seed=1), numbers(4, 2, 3, seed=2), numbers(4, seed=3)],
        [],
    ),
    "embedding": (lambda F, w, i: F.embedding(i, w), [numbers(4, 2)], [MANY]),
    "embedding padding": (lambda F, w, i: F.embedding(i, w, padding_idx=1), [numbers(4, 2)], [MANY]),
    "layer_norm": (
        lambda F, x, w, b: F.layer_norm(x, (4,), w, b), [numbers(3, 4), numbers(4, seed=1), numbers(4, seed=2)], [],
    ),
    "rms_norm": (lambda F, x, w: F.rms_norm(x, (4,), w), [numbers(3, 4), numbers(4, seed=1)], []),
    "batch_norm training": (
        lambda F, x, w, b: F.batch_norm(x, None, None, w, b, True),
        [numbers(4, 3, 2), numbers(3, seed=1), numbers(3, seed=2)],
        [],
    ),
    "batch_norm": (
        lambda F, x, w, b, m, v: F.batch_norm(x, m, v, w, b),
        [numbers(4, 3), numbers(3, seed=1), numbers(3, seed=2)],
        [numbers(3), between(3)],
    ),
    "instance_norm": (lambda F, x: F.instance_norm(x), [numbers(2, 3, 4)], []),
    "group_norm": (lambda F, x, w, b: F.group_norm(x, 2, w, b), [numbers(2, 4, 3), numbers(4), numbers(4, seed=1)], []),
    "normalize": (lambda F, x: F.normalize(x), [numbers(3, 4)], []),
    "normalize 3": (lambda F, x: F.normalize(x, 3.0, 0), [numbers(3, 4)], []),
    "cosine_similarity": (lambda F, x, y: F.cosine_similarity(x, y), [numbers(3, 4), numbers(3, 4, seed=1)], []),
    "pairwise_distance": (lambda F, x, y: F.pairwise_distance(x, y), [numbers(3, 4), numbers(3, 4, seed=1)], []),
    "attention": (
        lambda F, q, k, v: F.scaled_dot_product_attention(q, k, v),
        [numbers(2, 3, 4), numbers(2, 5, 4, seed=1), numbers(2, 5, 2, seed=2)],
        [],
    ),
    "attention causal": (
        lambda F, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.4),
        [numbers(2, 5, 4), numbers(2, 5, 4, seed=1), numbers(2, 5, 2, seed=2)],
        [],
    ),
    "attention mask": (
        lambda F, q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
        [numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 2, seed=2)],
        [np.array([[True, False, True], [False, False, False], [True, True, True]])],
    ),
    "mse_loss": (lambda F, x, y: F.mse_loss(x, y), [numbers(3, 4), numbers(3, 4, seed=1)], []),
    "mse_loss sum": (lambda F, x, y: F.mse_loss(x, y, reduction="sum"), [numbers(3), numbers(3, seed=1)], []),
    "mse_loss none": (lambda F, x, y: F.mse_loss(x, y, reduction="none"), [numbers(3), numbers(3, seed=1)], []),
    "mse_loss weight": (
        lambda F, x, y, w: F.mse_loss(x, y, weight=w), [numbers(3), numbers(3, seed=1)], [between(3)],
    ),
    "l1_loss": (lambda F, x, y: F.l1_loss(x, y), [numbers(3, 4), numbers(3, 4, seed=1)], []),
    "smooth_l1_loss": (lambda F, x, y: F.smooth_l1_loss(x, y, beta=0.5), [numbers(9), numbers(9, seed=1)], []),
    "huber_loss": (lambda F, x, y: F.huber_loss(x, y, delta=0.5), [numbers(9), numbers(9, seed=1)], []),
    "huber_loss weight": (
        lambda F, x, y, w: F.huber_loss(x, y, weight=w), [numbers(3), numbers(3, seed=1)], [between(3)],
    ),
    "nll_loss": (lambda F, x, t: F.nll_loss(x, t), [numbers(5, 4)], [CLASSES]),
    "nll_loss weight ignored": (
        lambda F, x, t, w: F.nll_loss(x, t, w), [numbers(5, 4)], [WITH_IGNORED, WEIGHTS],
    ),
    "cross_entropy": (lambda F, x, t: F.cross_entropy(x, t), [numbers(5, 4)], [CLASSES]),
    "cross_entropy 1-d": (lambda F, x, t: F.cross_entropy(x, t), [numbers(4)], [np.array(2)]),
    "cross_entropy 3-d": (lambda F, x, t: F.cross_entropy(x, t), [numbers(2, 4, 3)], [MANY]),
    "cross_entropy none": (lambda F, x, t: F.cross_entropy(x, t, reduction="none"), [numbers(2, 4, 3)], [MANY]),
    "cross_entropy sum": (lambda F, x, t: F.cross_entropy(x, t, reduction="sum"), [numbers(5, 4)], [CLASSES]),
    "cross_entropy ignored": (lambda F, x, t: F.cross_entropy(x, t), [numbers(5, 4)], [WITH_IGNORED]),
    "cross_entropy ignore class": (lambda F, x, t: F.cross_entropy(x, t, ignore_index=3), [numbers(5, 4)], [CLASSES]),
    "cross_entropy weight": (lambda F, x, t, w: F.cross_entropy(x, t, w), [numbers(5, 4)], [CLASSES, WEIGHTS]),
    "cross_entropy smooth": (
        lambda F, x, t: F.cross_entropy(x, t, label_smoothing=0.2), [numbers(5, 4)], [WITH_IGNORED],
    ),
    "cross_entropy smooth weight": (
        lambda F, x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.2), [numbers(5, 4)], [WITH_IGNORED, WEIGHTS],
    ),
    "cross_entropy probabilities": (
        lambda F, x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.1), [numbers(5, 4), between(5, 4)], [WEIGHTS],
    ),
    "binary_cross_entropy": (lambda F, x, y: F.binary_cross_entropy(x, y), [between(3, 4), between(3, 4, seed=1)], []),
    "binary_cross_entropy_with_logits": (
        lambda F, x, y: F.binary_cross_entropy_with_logits(x, y), [numbers(3, 4, scale=9), between(3, 4)], [],
    ),
    "binary_cross_entropy_with_logits weights": (
        lambda F, x, y, w: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=2 * w),
        [numbers(3, 4), between(3, 4)],
        [WEIGHTS],
    ),
    "kl_div": (lambda F, x, y: F.kl_div(x, y, reduction="batchmean"), [numbers(3, 4), between(3, 4)], []),
    "kl_div log": (
        lambda F, x, y: F.kl_div(x, y, reduction="sum", log_target=True), [numbers(3, 4), numbers(3, 4, seed=1)], [],
    ),
    "gaussian_nll_loss": (
        lambda F, x, y, v: F.gaussian_nll_loss(x, y, v, full=True, eps=0.3),
        [numbers(3, 4), numbers(3, 4, seed=1), between(3, 4)],
        [],
    ),
    "poisson_nll_loss": (
        lambda F, x, y: F.poisson_nll_loss(x, y, full=True), [numbers(3, 4)], [5 * between(3, 4)],
    ),
    "poisson_nll_loss no log": (
        lambda F, x, y: F.poisson_nll_loss(x, y, log_input=False), [between(3, 4), between(3, 4, seed=1)], [],
    ),
    "hinge_embedding_loss": (lambda F, x, y: F.hinge_embedding_loss(x, y), [numbers(4)], [SIGNS]),
    "margin_ranking_loss": (
        lambda F, a, b, y: F.margin_ranking_loss(a, b, y, 0.3), [numbers(4), numbers(4, seed=1)], [SIGNS],
    ),
    "soft_margin_loss": (lambda F, x, y: F.soft_margin_loss(x, y), [numbers(4)], [SIGNS]),
    "triplet_margin_loss": (
        lambda F, a, b, c: F.triplet_margin_loss(a, b, c, swap=True),
        [numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 4, seed=2)],
        [],
    ),
}  # fmt: skip

#: name -> the checksum of the value, then of each gradient of Σ cos(i + ½)·valueᵢ
RECORDED = {
    "relu": [4.72932218892, 4.3269934059],
    "relu6": [4.72932218892, 4.3269934059],
    "leaky_relu": [4.78617006269, 4.34103300961],
    "elu": [6.1256995514, 4.38030809497],
    "selu": [7.42407361398, 4.64010876357],
    "celu": [6.1256995514, 4.38030809497],
    "silu": [4.48526115294, 3.7956445093],
    "mish": [4.80572362314, 3.99639701987],
    "gelu": [4.74346125593, 4.01716742247],
    "softplus": [4.15439604379, 3.38893210686],
    "softsign": [2.40551785396, 1.33091875449],
    "hardtanh": [3.46534599405, 1.63618340182],
    "hardsigmoid": [1.27704692217, 0.467418173467],
    "hardswish": [4.44040084943, 3.56670626894],
    "logsigmoid": [6.25971352212, 2.34202166982],
    "tanhshrink": [7.13920386159, 3.92160093544],
    "hardshrink": [10.9927376378, 4.09477037485],
    "softshrink": [8.97075060481, 4.09477037485],
    "sigmoid": [1.21694482561, 0.684729033182],
    "tanh": [3.27490570432, 1.80935284123],
    "glu": [2.64420668928, -0.163204963423],
    "gelu tanh": [6.22101455791, 2.84538098027],
    "celu alpha": [2.93364666643, 2.96686263565],
    "elu alpha": [2.82763220617, 3.0115294743],
    "softplus beta": [2.21665961795, 2.43150083041],
    "prelu": [3.53838123834, 5.48995947809, -0.170348636967],
    "threshold": [-5.69592737867, 2.87292223708],
    "softmax": [0.987608358728, 1.33716677029],
    "softmin": [-1.06273414679, -0.614625006534],
    "log_softmax": [5.02964996226, 3.88956065805],
    "linear": [6.95527002268, 2.26682317774, 2.04101662636, 0.401135436465],
    "linear 3-d": [13.3303260223, 2.26174120156, 4.83810780666, 1.77740791885],
    "linear 1-d": [2.98156262534, -0.558390385232, 0.604928604788, 2.29393712454],
    "linear no bias": [7.01849450254, 2.26682317774, 2.04101662636],
    "bilinear": [-4.88982385665, -8.56092462733, 3.19056770139, 1.66021794805, 0.401135436465],
    "embedding": [2.79159448708, 2.90927121537],
    "embedding padding": [2.79159448708, 1.46210959498],
    "layer_norm": [1.1806203867, 0.20380979637, -0.233123380981, 0.381606905495],
    "rms_norm": [0.506629103493, -0.0956207076984, -0.269170139644],
    "batch_norm training": [9.91522020523, 0.0307060621441, -1.48847775088, 5.2468186167],
    "batch_norm": [1.56963721643, 3.28415729273, 0.449385833682, 0.0804292747577],
    "instance_norm": [3.36683150686, 4.00676204219],
    "group_norm": [-0.159762386634, -0.514737182796, -4.66801214542, 1.80479546098],
    "normalize": [1.93475255158, 1.95736237225],
    "normalize 3": [2.50625739963, 2.52233909449],
    "cosine_similarity": [0.185661883802, 0.592075163291, -0.367382809651],
    "pairwise_distance": [0.0825489544313, -1.76112204913, 1.76112204913],
    "attention": [0.344390883606, 0.992821696876, 2.18329451827, -0.588582129393],
    "attention causal": [1.16215323838, 1.1277902247, 1.15087373842, 6.81622433232],
    "attention mask": [1.44154521337, -0.0324056059664, -0.0231217685177, 0.891526857203],
    "mse_loss": [0.485150745152, 0.191617972977, -0.191617972977],
    "mse_loss sum": [1.63619353335, -2.60801927739, 2.60801927739],
    "mse_loss none": [-0.193874802659, 0.0230391222002, -0.0230391222002],
    "mse_loss weight": [0.466358390972, -0.725512073111, 0.725512073111],
    "l1_loss": [0.58839071193, 0.128768316036, -0.128768316036],
    "smooth_l1_loss": [0.373909405509, 0.0104140330877, -0.0104140330877],
    "huber_loss": [0.186954702755, 0.00520701654385, -0.00520701654385],
    "huber_loss weight": [0.154774507868, -0.240782145753, 0.240782145753],
    "nll_loss": [-0.376754412855, -0.117233872079],
    "nll_loss weight ignored": [-0.511288194164, 0.352405018592],
    "cross_entropy": [1.32477203171, -0.0340577907634],
    "cross_entropy 1-d": [1.62411192611, 0.765290722177],
    "cross_entropy 3-d": [2.44592034113, 0.274588804172],
    "cross_entropy none": [-1.97555385676, -1.87607134995],
    "cross_entropy sum": [6.62386015857, -0.170288953817],
    "cross_entropy ignored": [1.32309848706, -0.117055212351],
    "cross_entropy ignore class": [1.32309848706, -0.117055212351],
    "cross_entropy weight": [1.25297435952, 0.00940451286981],
    "cross_entropy smooth": [1.38826380313, -0.113789140973],
    "cross_entropy smooth weight": [1.23647955511, -0.0193271474883],
    "cross_entropy probabilities": [1.20347307192, -0.0120768741168, 0.076768291085],
    "binary_cross_entropy": [0.472545333184, 0.0747953739903, -0.324131199099],
    "binary_cross_entropy_with_logits": [1.05930035591, 0.0538825374429, -1.71360767862],
    "binary_cross_entropy_with_logits weights": [0.260542744778, 0.00485119769814, -0.11638287136],
    "kl_div": [-2.12260779728, -0.180272652313, -0.456278631467],
    "kl_div log": [3.80520847507, -2.23955857525, 1.9578536161],
    "gaussian_nll_loss": [1.02985011917, 0.210808122764, -0.210808122764, -0.00543478795366],
    "poisson_nll_loss": [1.62845925497, 0.0272992038754],
    "poisson_nll_loss no log": [0.701314875549, 0.0575909470214, -0.212456203128],
    "hinge_embedding_loss": [0.664187161152, 0.222224886273],
    "margin_ranking_loss": [0.46438947427, -0.382472869251, 0.382472869251],
    "soft_margin_loss": [0.663762082211, -0.021002365273],
    "triplet_margin_loss": [0.435371432616, 0.213810701019, -0.762380929, 0.548570227982],
}


def run(name):
    call, floats, constants = CASES[name]
    tensors = [cr.from_numpy(x.copy()).requires_grad_() for x in floats]
    out = call(F, *tensors, *[cr.from_numpy(np.array(x)) for x in constants])
    weights = cr.from_numpy(np.cos(np.arange(out.numel()) + 0.5).reshape(tuple(out.shape)))
    grads = cr.autograd.grad((out * weights).sum(), tensors)
    return [checksum(out.detach().numpy()), *[checksum(g.numpy()) for g in grads]]


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients_are_pytorchs(name):
    # PyTorch keeps 1/6 and 1/alpha as float32
    rtol = 1e-7 if name in ("hardsigmoid", "celu alpha") else 1e-9
    np.testing.assert_allclose(run(name), RECORDED[name], rtol=rtol, atol=1e-11)


#: Their gradient is on purpose not the derivative.
NOT_DERIVATIVES = {"gaussian_nll_loss", "embedding padding"}


@pytest.mark.parametrize("name", sorted(set(CASES) - NOT_DERIVATIVES))
def test_derivatives_by_differences(name):
    call, floats, constants = CASES[name]
    fixed = [cr.from_numpy(np.array(x)) for x in constants]
    tensors = tuple(cr.from_numpy(x.copy()).requires_grad_() for x in floats)
    assert gradcheck(lambda *xs: call(F, *xs, *fixed), tensors)


@pytest.mark.parametrize("name", sorted(set(CASES) - NOT_DERIVATIVES))
def test_second_derivatives_by_differences(name):
    call, floats, constants = CASES[name]
    fixed = [cr.from_numpy(np.array(x)) for x in constants]
    tensors = tuple(cr.from_numpy(x.copy()).requires_grad_() for x in floats)
    assert gradgradcheck(lambda *xs: call(F, *xs, *fixed), tensors)


@pytest.mark.parametrize("name", CASES)
def test_float32_stays_float32(name):
    call, floats, constants = CASES[name]
    tensors = [cr.from_numpy(x.astype(np.float32)).requires_grad_() for x in floats]
    fixed = [cr.from_numpy(x.astype(np.float32) if x.dtype.kind == "f" else np.array(x)) for x in constants]
    out = call(F, *tensors, *fixed)
    assert out.dtype == np.float32
    assert all(g.dtype == np.float32 for g in cr.autograd.grad(out.sum(), tensors))


@pytest.mark.parametrize("name", CASES)
def test_batch_is_a_loop(name):
    call, floats, constants = CASES[name]
    fixed = [cr.from_numpy(np.array(x)) for x in constants]
    examples = [cr.from_numpy(np.stack([x, x[::-1] if x.ndim else x, 0.9 * x])) for x in floats]

    def loss(*xs):
        out = call(F, *xs, *fixed)
        return (out * out).sum()

    batched = cr.func.vmap(cr.func.grad(loss, tuple(range(len(floats)))))(*examples)
    for i in range(3):
        one = cr.func.grad(loss, tuple(range(len(floats))))(*[x[i] for x in examples])
        for b, g in zip(batched, one, strict=True):
            np.testing.assert_allclose(b[i].numpy(), g.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", sorted(set(CASES) - NOT_DERIVATIVES))
def test_forward_mode_is_reverse_mode(name):
    call, floats, constants = CASES[name]
    fixed = [cr.from_numpy(np.array(x)) for x in constants]
    primals = tuple(cr.from_numpy(x) for x in floats)
    tangents = tuple(cr.from_numpy(numbers(*x.shape, seed=5)) for x in floats)

    def f(*xs):
        return call(F, *xs, *fixed)

    out, tangent = cr.func.jvp(f, primals, tangents)
    g = numbers(*out.shape, seed=6)
    _, pull = cr.func.vjp(f, *primals)
    back = pull(cr.from_numpy(g))
    left = float((tangent.numpy() * g).sum())
    right = sum(float((b.numpy() * t.numpy()).sum()) for b, t in zip(back, tangents, strict=True))
    assert left == pytest.approx(right, rel=1e-9, abs=1e-11)


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
