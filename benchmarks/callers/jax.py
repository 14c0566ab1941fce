"""jax.jit, called with NumPy arrays. Its number of threads depends on the CPU affinity, not on the environment."""

import jax

import calls

jax.config.update("jax_enable_x64", True)  # otherwise it would compute float64 works in float32

VERSION = f"jax.jit {jax.__version__}"
WORKS = calls.works(jax.numpy, jax, jax.jit)

jax.jit(lambda x: x + 1)(1.0)  # starts its client and compiler, which are not part of a first call
