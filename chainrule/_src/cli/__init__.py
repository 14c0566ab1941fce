"""The command line: ``chainrule explain``, ``ops``, ``check`` and ``demo``."""
