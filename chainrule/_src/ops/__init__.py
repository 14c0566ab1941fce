"""PyTorch's and NumPy's functions: they check arguments and apply primitives.

- PyTorch's functions are declared with ``@op`` (``api.declare``), which makes public functions and methods of them.
- NumPy's functions (``numpy_*.py``, ``fft`` and ``linalg``) are registered with ``implements``. NumPy calls them for
  tensors and Arrays through ``__array_function__`` (``tape.protocol``).
- ``methods`` and ``array`` attach operators and methods to ``Tensor`` and ``Array``.

``public`` imports the modules that ``import chainrule`` needs. The other modules are imported at the first use of one
of their names (``deferred``).
"""
