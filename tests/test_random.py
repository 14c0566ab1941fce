"""Random numbers: their distributions (by moments of 20,000 draws), signatures, and zero gradients."""

from __future__ import annotations

import math

import pytest

import chainrule as cr
from behaviour import torch

N = 20_000
ONES = torch.ones(N, dtype=torch.float64)
DRAWS = {  # mean, variance
    "binomial": (lambda: torch.binomial(ONES * 10, ONES * 0.3), 3.0, 2.1),
    "poisson": (lambda: torch.poisson(ONES * 4), 4.0, 4.0),
    "bernoulli(p)": (lambda: torch.bernoulli(ONES, 0.25), 0.25, 0.1875),
    "Tensor.bernoulli": (lambda: (ONES * 0.25).bernoulli(), 0.25, 0.1875),
    "bernoulli_": (lambda: ONES.clone().bernoulli_(p=0.25), 0.25, 0.1875),
    "normal": (lambda: torch.normal(ONES * 2, ONES * 3), 2.0, 9.0),
    "normal of numbers": (lambda: torch.normal(2.0, 3.0, size=(N,), device="cpu"), 2.0, 9.0),
    "normal_": (lambda: ONES.clone().normal_(mean=2, std=3), 2.0, 9.0),
    "uniform_": (lambda: ONES.clone().uniform_(-1, 2), 0.5, 0.75),
    "uniform_ to": (lambda: ONES.clone().uniform_(to=3.0), 1.5, 0.75),
    "exponential_": (lambda: ONES.clone().exponential_(lambd=2), 0.5, 0.25),
    "geometric_": (lambda: ONES.clone().geometric_(0.5), 2.0, 2.0),
    "log_normal_": (lambda: ONES.clone().log_normal_(0, 0.5), math.exp(1 / 8), (math.exp(1 / 4) - 1) * math.exp(1 / 4)),
    "atan of cauchy_": (lambda: ONES.clone().cauchy_(median=0, sigma=1).atan(), 0.0, math.pi**2 / 12),
    "randint_like": (lambda: torch.randint_like(ONES, 6), 2.5, 35 / 12),
    "randint_like from": (lambda: torch.randint_like(ONES, 2, 8), 4.5, 35 / 12),
    "randint": (lambda: torch.randint(6, size=(N,), dtype=torch.float32), 2.5, 35 / 12),
    "random_ to": (lambda: ONES.clone().random_(6), 2.5, 35 / 12),
    "random_ from to": (lambda: ONES.clone().random_(2, 8), 4.5, 35 / 12),
    "rand": (lambda: torch.rand(size=(N,)), 0.5, 1 / 12),
    "real part of rand": (lambda: torch.rand(N, dtype=torch.complex64).real, 0.5, 1 / 12),
    "imaginary part of rand": (lambda: torch.rand(N, dtype=torch.complex64).imag, 0.5, 1 / 12),
}


@pytest.mark.parametrize("name", DRAWS)
def test_distribution(name):
    draw, mean, variance = DRAWS[name]
    torch.manual_seed(1)
    numbers = draw()
    assert numbers.shape == (N,)
    spread = math.sqrt(variance / N)
    assert numbers.double().mean().item() == pytest.approx(mean, abs=5 * spread)
    assert numbers.double().var().item() == pytest.approx(variance, rel=0.15)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64", "bool"])
def test_random_goes_as_far_as_the_dtype_is_exact(dtype):
    torch.manual_seed(0)
    most = {"uint8": 2**8, "int64": 2**63, "float32": 2**24, "float64": 2**53, "bool": 2}[dtype]
    largest = int(torch.zeros(2000, dtype=getattr(torch, dtype)).random_().max().item())
    assert 0.99 * (most - 1) <= largest <= most


@pytest.mark.parametrize(
    "sample",
    [
        lambda x: torch.normal(x, 1.0),
        lambda x: torch.normal(0.0, x),
        lambda x: torch.normal(x, x),
        torch.poisson,
        lambda x: torch.bernoulli(x / 4),
    ],
)
def test_samples_have_the_gradient_zero(sample):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    sample(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: torch.normal(ONES, -ONES),
        lambda: torch.poisson(-ONES),
        lambda: torch.randint_like(ONES, 5, 2),
        lambda: ONES.clone().random_(5, 2),
        lambda: ONES.clone().bernoulli_(2.0),
        lambda: ONES.clone().uniform_(1, 0),
        lambda: ONES.clone().normal_(0, -1),
        lambda: ONES.clone().exponential_(-1),
        lambda: ONES.clone().geometric_(1.5),
        lambda: ONES.clone().cauchy_(0, -1),
        lambda: ONES.clone().log_normal_(0, -1),
    ],
)
def test_parameters_out_of_range(mistake):
    with pytest.raises(RuntimeError):
        mistake()


def test_integers_that_have_no_such_numbers():
    for name in ("normal_", "uniform_"):
        with pytest.raises(NotImplementedError, match="Long"):
            getattr(torch.zeros(2, dtype=torch.int64), name)()


def test_fork_rng():
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    with torch.random.fork_rng():
        torch.rand(5)
    assert torch.rand(2).tolist() == expected.tolist()
    assert torch.default_generator.initial_seed() == 0


def test_generators_have_a_device():
    assert torch.Generator().device == torch.device("cpu") == torch.Generator(device="cpu").device


def test_seeding_with_a_number_has_another_name():
    with pytest.raises(TypeError, match=r"seed\(\) takes 0 positional arguments but 1 was given"):
        torch.seed(3)


BATCH = cr.tensor([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
ONE_CALL = {
    "rand": (lambda r: cr.rand(4), lambda: cr.rand(3, 4)),
    "randn, two": (lambda r: cr.randn(2) + cr.rand(2), lambda: cr.randn(3, 2) + cr.rand(3, 2)),
    "randint": (lambda r: cr.randint(0, 9, (2,)), lambda: cr.randint(0, 9, (3, 2))),
    "rand_like": (cr.rand_like, lambda: cr.rand_like(BATCH)),
    "bernoulli": (cr.bernoulli, lambda: cr.bernoulli(BATCH)),
    "normal": (lambda r: cr.normal(r, 1.0), lambda: cr.normal(BATCH, 1.0)),
    "exponential_": (lambda r: r.clone().exponential_(), lambda: BATCH.clone().exponential_()),
    "dropout": (cr.nn.functional.dropout, lambda: cr.nn.functional.dropout(BATCH)),
    "poisson": (lambda r: cr.poisson(9 * r), lambda: cr.poisson(9 * BATCH)),
    "binomial": (lambda r: cr.binomial(cr.full((2,), 5.0), r), lambda: cr.binomial(cr.full((3, 2), 5.0), BATCH)),
    "binomial, of one number": (lambda r: cr.binomial(r[0].round() + 4, r), lambda: cr.binomial(BATCH[:, :1].round() + 4, BATCH)),
    "multinomial": (lambda r: cr.multinomial(r, 2), lambda: cr.multinomial(BATCH, 2)),
    "multinomial, again": (lambda r: cr.multinomial(r, 5, True), lambda: cr.multinomial(BATCH, 5, True)),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_CALL)
def test_vmap_draws_the_numbers_of_one_call(name):
    mapped, at_once = ONE_CALL[name]
    cr.manual_seed(3)
    found = cr.vmap(mapped, randomness="different")(BATCH)
    cr.manual_seed(3)
    assert cr.equal(found, at_once())


def test_nested_vmaps_draw_the_numbers_of_one_call():
    rates = 9 * cr.rand(2, 3, 4)
    cr.manual_seed(3)
    inner = cr.vmap(cr.poisson, in_dims=1, out_dims=1, randomness="different")
    found = cr.vmap(inner, randomness="different")(rates)
    cr.manual_seed(3)
    wanted = cr.poisson(rates.transpose(1, 2)).transpose(1, 2)
    assert cr.equal(found, wanted)


@pytest.mark.parametrize("draw", [cr.poisson, lambda r: cr.binomial(r, r), lambda r: cr.multinomial(r, 1)])
def test_numbers_of_mapped_parameters_are_not_the_same(draw):
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor"):
        cr.vmap(draw, randomness="same")(BATCH)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        cr.vmap(draw)(BATCH)
    assert cr.vmap(lambda r: draw(BATCH[0]), randomness="same")(BATCH).shape[0] == 3


def test_multinomial_of_an_empty_batch():
    assert cr.multinomial(cr.ones(0, 3), 2).shape == (0, 2)
