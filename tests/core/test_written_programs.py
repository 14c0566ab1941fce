"""Random programs of views and writes, compared with central differences and between transformations."""

import random

import numpy as np
import pytest

import chainrule as cr

VIEWS = [
    lambda t: t[0],
    lambda t: t[..., ::2],
    lambda t: t[-1:],
    lambda t: t.transpose(0, -1),
    lambda t: t.reshape(-1),
    lambda t: t.unsqueeze(0),
    lambda t: t.diagonal() if t.ndim == 2 else t[None],
    lambda t: t.unfold(-1, 2, 2) if t.ndim and t.shape[-1] > 1 else t[...],
    lambda t: t.movedim(0, -1) if t.ndim else t[None],
    lambda t: t.expand(2, *t.shape)[1],
    lambda t: t.squeeze(),
]
WRITES = [
    lambda t, u: t.mul_(u.mean()),
    lambda t, u: t.add_(u.sum() * 0.25),
    lambda t, u: t.sin_(),
    lambda t, u: t.copy_(u.mean()),
    lambda t, u: t.mul_(t.clone()),
    lambda t, u: t.__setitem__(..., u.sum() * 0.5 + t * 0.5),
    lambda t, u: t.zero_(),
    lambda t, u: t.addcmul_(t.clone(), u.mean()),
    lambda t, u: t.__setitem__(cr.tensor([0]), 0.3) if t.ndim else t.neg_(),
    lambda t, u: t.div_(1 + u.mean() ** 2),
]
# Values that are overwritten later must not be saved: results are computed from copies.
RESULTS = [lambda t: t.clone() ** 2, lambda t: t.clone().cos(), lambda t: t + 1, lambda t: t.clone()]


def program(seed):
    """Return a function of a 3×4 array that creates tensors, takes views of them and writes into these."""
    choices = random.Random(seed)
    plan = [
        (choices.random(), choices.random(), choices.random(), choices.random()) for _ in range(choices.randint(3, 9))
    ]

    def run(x):
        tensors = [x * 1.5]
        for what, which, other, how in plan:
            t = tensors[int(which * len(tensors))]
            u = tensors[int(other * len(tensors))]
            if what < 0.45:
                tensors.append(VIEWS[int(how * len(VIEWS))](t) if t.ndim else t[None])
            elif what < 0.85:
                WRITES[int(how * len(WRITES))](t, u)
            else:
                tensors.append(RESULTS[int(how * len(RESULTS))](t))
        return sum((k + 1) * t.sum() for k, t in enumerate(tensors))

    return run


X = np.random.default_rng(5).uniform(-1, 1, (2, 3, 4))


def slope(f, x, direction, h=1e-6):
    with cr.no_grad():
        return (f(cr.tensor(x + h * direction)).item() - f(cr.tensor(x - h * direction)).item()) / (2 * h)


@pytest.mark.parametrize("seed", range(120))
def test_gradients(seed):
    f = program(seed)
    x = cr.tensor(X[0], requires_grad=True)
    y = f(x)
    y.backward()
    direction = np.random.default_rng(seed).uniform(-1, 1, (3, 4))
    assert np.sum(x.grad.numpy() * direction) == pytest.approx(slope(f, X[0], direction), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_transformations_agree(seed):
    f = program(seed)
    points = cr.tensor(X)
    grads = [np.asarray(cr.func.grad(f)(x)) for x in points]
    np.testing.assert_allclose(cr.vmap(f)(points), [f(cr.tensor(x)).item() for x in X])
    np.testing.assert_allclose(cr.vmap(cr.func.grad(f))(points), grads)
    _, tangent = cr.func.jvp(f, (points[0],), (points[1],))
    assert float(tangent) == pytest.approx(np.sum(grads[0] * X[1]))
