"""The op table: all primitives, each with its value and its rules."""
