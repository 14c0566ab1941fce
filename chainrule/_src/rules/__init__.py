"""Primitives: op definitions, and the rules that each kind of local Jacobian derives.

``primitive`` has the class ``Primitive`` and the op table. The decorators of ``kinds`` make a primitive from a
function and its declaration, and derive the missing rules: ``elementwise`` and ``tangents`` from partial derivatives,
``contract`` from subscripts, ``batching`` for all kinds. ``rules`` binds the arguments of a rule by its parameter
names. ``programs`` lowers a rule to ufunc calls that C runs. ``rule_text`` and ``descriptions`` turn source code and
docstrings into text for explanations.
"""
