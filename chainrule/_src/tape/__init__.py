"""Tensors and what they leave behind: nodes, versions, views, modes, the backward pass."""
