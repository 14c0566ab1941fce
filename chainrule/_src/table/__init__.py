"""The op table: the modules that declare all primitives, each with its value and its rules."""
