"""Derivatives of functions and tensors: grad, vmap, backward, Function, graphs of nodes."""
