"""What programs for PyTorch ask of its private modules, and of parts that are not here: found after ``install("torch")``."""
