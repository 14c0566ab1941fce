"""jax.jit, called with NumPy arrays; loops are lax.scan."""

import jax

from adbench_programs import Tools, derivative, works

jax.config.update("jax_enable_x64", True)
jax.jit(lambda x: x + 1)(1.0)  # starts its client and compiler, which are not part of a first call

VERSION = f"jax.jit {jax.__version__}"
WORKS = works(Tools(jax.numpy, jax.numpy.asarray, jax.lax.scan), lambda program: jax.jit(derivative(program, jax)))
