"""Watch which Python state a function reads and changes while it is traced, and guard that state in each call."""
