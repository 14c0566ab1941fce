"""jax.jit, called with JAX arrays."""

import jax

import calls
from callers.jax import VERSION as JAX

VERSION = f"{JAX} on its own arrays"
WORKS = calls.works(jax.numpy, jax, jax.jit, given=jax.numpy.asarray)
del WORKS["lbfgs"]  # SciPy passes NumPy arrays
