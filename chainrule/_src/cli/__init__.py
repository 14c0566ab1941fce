"""The command line: ``chainrule explain``, ``ops``, ``check`` and ``demo``.

``main`` parses the arguments (``options``) and calls ``run`` of the command's module. A command prints by ``show``
and returns an exit code of ``outcome``.
"""
