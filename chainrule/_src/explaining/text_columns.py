"""The width of text in columns of a terminal.

``text``, ``jacobian_text`` and ``contributions`` call these functions.
"""

from __future__ import annotations

import unicodedata

#: most columns of a line
WIDTH = 80


def text_columns(s: str) -> int:
    """Return the number of columns of a text; a combining bar has width 0."""
    return sum(not unicodedata.combining(c) for c in s)


def pad_text(s: str, columns: int) -> str:
    """Append spaces up to a number of columns."""
    return s + " " * max(columns - text_columns(s), 0)
