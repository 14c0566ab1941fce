"""Explanations: what a backward pass computes, as text, picture and page. Loaded when first asked for."""
