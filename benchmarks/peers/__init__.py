"""A module for each library, with `VERSION` and `WORKS`: makers of works, by kind."""
