"""Turn the docstring of an operation into a description of its result, for explanations and ``chainrule ops``.

``explaining.step_data`` and ``cli.ops`` call it.
"""

from __future__ import annotations

import inspect
import re

_MARKS = re.compile(r":\w+:`~?([^`]*)`|``?([^`]*)``?")  # reStructuredText markup
_RETURN = re.compile(
    r"\AReturn ((?:the|an?)(?= )|[a-z]{2,}(?= [(a-z]|, ))?"
)  # with a first word that is prose, not a formula


def description(doc: str, quote: str = "") -> str:
    """Return a docstring without reStructuredText, and without the verb if it is "Return".

    Args:
        quote: the quotation mark around names and code.

    >>> description("Return the product of two matrices.")
    'The product of two matrices.'
    >>> description("Return log(1 + x), as :func:`log1p`.", "`")
    'log(1 + x), as `log1p`.'
    """
    text = _MARKS.sub(rf"{quote}\1\2{quote}", inspect.cleandoc(doc))
    return _RETURN.sub(lambda match: (match[1] or "").capitalize(), text)
