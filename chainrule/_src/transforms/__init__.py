"""Derivatives of functions and tensors: grad, vmap, Function, graphs of nodes."""
