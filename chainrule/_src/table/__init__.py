"""The table: a row for each operation, with its value and its rules."""
