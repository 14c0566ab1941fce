"""Explanations of backward passes and Jacobians, as text, picture and HTML page."""
