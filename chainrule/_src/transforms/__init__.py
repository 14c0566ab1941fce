"""Transformations of functions and derivatives of tensors: grad, jvp, vmap, backward, Function, graphs of nodes."""
