"""Explanations of backward passes and Jacobians, as text, picture and HTML page. Importing chainrule loads none of this.

``explain`` (``entry``) repeats the engine's backward pass with an observer that stores the inputs and outputs of each
rule (``sweep``). ``recorded_pass`` makes a ``Step`` for each operation and an ``Arrow`` for each operand (``steps``).
The text of a step is the formula of the primitive with the user's variable names: ``simplify`` specializes the
formula to the node, ``rules`` and ``elements`` rewrite it, and ``notation`` prints it. ``text``, ``page``,
``picture`` and ``to_dict`` show the result. ``graph`` draws the tape.

``jacobian_run`` and ``jacobian_terms`` do the same for structured Jacobians. ``why`` explains a missing gradient.
``diagnosis`` has the error messages that read the tape.
"""
