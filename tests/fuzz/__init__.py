"""Random programs: generated from templates (`templates`, `making`), judged (`judging`), and shrunk.

``python -m tests.fuzz --help`` runs many programs; ``test_fuzz.py`` runs a fixed few and those that once failed.
"""
