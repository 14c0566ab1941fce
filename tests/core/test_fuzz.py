"""Random graphs of operations, views and in-place writes, against central differences in float64."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr

# Every step takes the tensors so far (all of shape (3, 3)) and two indices into them, and gives a new one.
STEPS = [
    lambda a, b: a + b,
    lambda a, b: a - 0.5 * b,
    lambda a, b: a * b,
    lambda a, b: a / (2 + cr.sin(b)),
    lambda a, b: cr.tanh(a @ b),
    lambda a, b: cr.sin(a) * b[0],
    lambda a, b: cr.exp(-a * a) + b[:, 1:2],
    lambda a, b: cr.softmax(a, dim=-1) + b.mean(dim=0),
    lambda a, b: cr.cat([a[1:], b[:1]]),
    lambda a, b: a.T + b.sum() * 0.1,
    lambda a, b: a.reshape(9).flip(0).reshape(3, 3) * b.logsumexp(dim=1, keepdim=True),
    lambda a, b: cr.einsum("ij,kj->ik", a, b) * 0.3,
    lambda a, b: cr.stack([a[0], b[1], a[2]]).cumsum(dim=1),
    lambda a, b: cr.where(cr.tensor(MASK), a, b),
    lambda a, b: a[cr.tensor([2, 0, 2])] + b[:, cr.tensor([1, 1, 0])],
    lambda a, b: a.clone().mul_(b),
    lambda a, b: written(a, b),
    lambda a, b: through_view(a, b),
    lambda a, b: np.sin(a) + np.sum(b, axis=0),
    lambda a, b: a.var(dim=1, keepdim=True) + b,
]
MASK = [[True, False, True], [False, True, True], [True, True, False]]


def written(a, b):
    buffer = cr.zeros(3, 3, dtype=cr.float64)
    buffer[0] = a[1]
    buffer[1:] = b[:2] * 2
    buffer[2, 1] = a[0, 0] * b[2, 2]
    return buffer


def through_view(a, b):
    base = a * 1.0
    base.T[1].add_(b[2])
    base.view(9)[4:].mul_(0.5)
    return base


def run(program, x):
    tensors = [x, cr.cos(x)]
    for step, i, j in program:
        tensors.append(STEPS[step](tensors[i % len(tensors)], tensors[j % len(tensors)]))
    return sum((t * 0.7).tanh().sum() for t in tensors[2:])


programs = st.lists(
    st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=7
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(programs, st.integers(0, 2**31))
def test_random_graphs(program, seed):
    rng = np.random.default_rng(seed)
    data, direction = rng.uniform(-1, 1, (2, 3, 3))
    x = cr.tensor(data, requires_grad=True)
    run(program, x).backward()

    def at(step):
        with cr.no_grad():
            return run(program, cr.tensor(data + step * direction)).item()

    # Fourth-order central differences: truncation is below 1e-11 and rounding about 1e-16 / h.
    h = 1e-3
    expected = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    got = float((x.grad.numpy() * direction).sum())
    assert abs(got - expected) <= 1e-7 * max(1.0, abs(expected))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(programs, st.integers(0, 2**31))
def test_random_graphs_forward_mode_and_second_order(program, seed):
    rng = np.random.default_rng(seed)
    data, direction = rng.uniform(-1, 1, (2, 3, 3))
    _, tangent = cr.func.jvp(lambda x: run(program, x), (cr.tensor(data),), (cr.tensor(direction),))
    x = cr.tensor(data, requires_grad=True)
    (g,) = cr.autograd.grad(run(program, x), x, create_graph=True)
    slope = (g * cr.tensor(direction)).sum()
    assert abs(tangent.item() - slope.item()) <= 1e-10 * max(1.0, abs(slope.item()))
    (second,) = cr.autograd.grad(slope, x, allow_unused=True, materialize_grads=True)
    _, forward = cr.func.jvp(cr.func.grad(lambda x: run(program, x)), (cr.tensor(data),), (cr.tensor(direction),))
    np.testing.assert_allclose(second.numpy(), forward.numpy(), rtol=1e-8, atol=1e-9)
