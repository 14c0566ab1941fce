"""The public API of primitives: declarations, functions, ``Array``, tensors from data.

``declare.op`` registers a public operation. At its first use, ``functions`` makes the function that users call from a
primitive, ``operands`` checks and promotes its operands, and ``operations`` adds the fast path in C. ``array`` has
the class ``Array``, and ``dispatch_cache`` the cache for functions that only select primitives. ``watch.Watch``
observes the operations of a thread: profilers, anomaly mode and explanations subclass it.
"""
