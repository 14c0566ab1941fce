"""jax.jit, called with NumPy arrays. It takes its threads from the processors it may use, whatever the environment says."""

import jax

import calls

jax.config.update("jax_enable_x64", True)  # else it would compute the works in float64 in float32

VERSION = f"jax.jit {jax.__version__}"
WORKS = calls.works(jax.numpy, jax, jax.jit)

jax.jit(lambda x: x + 1)(1.0)  # starts its client and compiler, which is no part of a first call
