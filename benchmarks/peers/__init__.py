"""One module per peer. Each offers `VERSION` and `WORKS`: makers of works, by kind."""
