"""Derivatives of functions and tensors: grad, vmap, backward, Function, graphs of nodes.

``chainrule.func`` and ``chainrule.autograd`` export the public functions:

- Tensors: ``backward`` (``backward``, ``autograd.grad``), ``graph``, ``forward_ad``.
- Functions: ``grad`` (``grad``, ``vjp``), ``jvp``, ``vmap``, ``linearize``, ``functional``.
- Jacobians: ``jacrev`` (``jacrev``, ``jacfwd``, ``hessian``, ``hvp``), ``jacobian``.
- Custom rules: ``function`` (``autograd.Function``), ``context``, ``function_rule``, ``function_transforms``.
- Tools: ``gradcheck``, ``anomaly_mode``, ``profiler``.

The public functions check arguments and build results. The derivatives come from a few common parts. ``trace.Trace``
is one recorded call: the starts of its arguments on the tape, its results, and the backward pass to the starts.
``pushforward.JvpRun`` is one call on duals, along one tangent or a batch of tangents. ``dense.compute_rows`` and
``dense.compute_columns`` repeat these in batches, for the rows or the columns of a Jacobian; ``dense.Limits`` chooses
the size of a batch. ``flat_function`` flattens containers.
"""
