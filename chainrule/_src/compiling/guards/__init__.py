"""Watch which Python state a function reads and changes while it is traced, and guard that state in each call.

- During a trace: ``watch`` runs the function and calls a handler of ``instructions`` before each bytecode instruction (``frames``).
  Handlers pass reads to ``reads`` (implicit calls: ``implicit``) and calls to ``calls`` (methods in C: ``method_calls``). These look up
  in ``effect_tables`` what code in C reads and changes, and add guards to the ``log``, or refuse the trace. ``objects`` has queries
  about objects; ``undo`` restores changed objects.
- In each later call: the guards (``guards``, ``native/guards.c``) read the state again and compare. For classes, objects that are
  passed to unwatched code, and settings, ``classes``, ``snapshots`` and ``settings`` have the content that is compared.
"""
