"""Random programs: made from templates (`templates`, `making`), judged (`judging`), shrunk, and kept where they failed.

``python -m tests.fuzz --help`` runs many of them; ``test_fuzz.py`` a fixed few, and the kept ones.
"""
