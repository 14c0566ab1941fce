"""Structured Jacobians: compute only the entries that can be nonzero. Implicit differentiation uses them.

``jacobian(f, x, layout=...)`` runs f once on values of a new level and then propagates the Jacobian through the
recorded steps:

1. Record (``trace``). A ``Jac`` has a value. Each operation on it computes its value and adds a ``JacStep``: the
   primitive, its operands without their Jacobians, the origins of these, and the user's line.
2. Select a strategy (``strategy``, ``sketches``, ``compute_terms``). A dry run over the steps' shapes estimates the
   cost of each strategy: forward terms, reverse terms, products with unit vectors. If one is impossible, the next is
   used.
3. Accumulate (``accumulate``, ``propagation``, ``reverse``). A ``Term`` stores the elements of a variable that each
   row depends on (``cols``), and the derivatives (``vals``). The ``structure`` of a primitive determines how it
   transforms terms. If a value has many terms and is used again, it becomes an intermediate variable, and
   ``products`` multiplies the factors at the end.
4. Assemble (``assemble``, ``layouts``, ``result``). An ``EntryPattern`` is computed from the integers alone: the
   positions of the entries, and one ``take`` that sorts the numbers of all terms. ``blocks`` recognizes blocks and
   diagonals by strides.
5. Reuse (``plan_cache``, ``trace_signature``, ``term_plans``). Later calls with an equal trace compute only the numbers of terms, by
   a compiled plan.
6. Repeat (``prepared``, ``patterns``). The numerical part consists of NumPy calls, so ``compile`` can trace it. A
   prepared Jacobian is a pattern and a plan that computes the entries.

``implicit`` makes solutions of equations differentiable: ``solution`` solves with the Jacobian of the equation, which
``factors`` factorizes once.
"""
