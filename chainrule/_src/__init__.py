"""The implementation of chainrule. All names here are private.

``chainrule/README.md`` lists the packages from the highest level to the lowest.
"""
