"""Random tensors, drawn from ``default_generator``, which ``manual_seed`` seeds.

Inside ``vmap`` its parameter ``randomness`` decides whether numbers are drawn for each example or once for all.
"""

from chainrule._src.api.public_modules import show
from chainrule._src.ops.random import (
    Generator,
    bernoulli,
    binomial,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    multinomial,
    normal,
    poisson,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
)

__all__ = [
    "Generator",
    "bernoulli",
    "binomial",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "multinomial",
    "normal",
    "poisson",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]

show(globals())
