"""The op table: all primitives, each with its value and its rules.

Each module defines the primitives of one subject with the decorators of ``rules.kinds``, which add them to ``TABLE``.
A rule is a NumPy expression of raw arrays or of any array-like; its parameter names select its arguments
(``rules.primitive``). The functions of ``ops`` and ``nn`` check their arguments and apply the primitives.
``tape.dispatch`` calls their values, ``tape.engine`` their pullbacks, and the interpreters their JVP and batching
rules.
"""
