"""What a recorded function reads of Python's state, and what is looked at again in each call."""
