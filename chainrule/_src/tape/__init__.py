"""Tensors and the tape: nodes, versions, views, modes, the backward pass."""
