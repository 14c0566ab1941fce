"""Explanations: what a backward pass computes, as text, picture and page."""
