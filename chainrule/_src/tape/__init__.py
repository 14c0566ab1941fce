"""Tensors and the tape: nodes, versions, views, modes, the backward pass.

``dispatch.bind`` applies an operation to tensors and records a node. ``engine.sweep`` runs a backward pass over nodes. ``inplace`` and
``versions`` handle writes, ``view`` shared memory. The packages ``api``, ``ops`` and ``transforms`` call this package.
"""
