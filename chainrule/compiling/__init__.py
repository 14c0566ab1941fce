"""``compile``: functions recorded once and replayed as plans of NumPy's own loops."""
