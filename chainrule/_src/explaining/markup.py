"""HTML building blocks of pages: escaping of user text, colours, and the files in ``data``.

``page``, ``sections``, ``jacobian_page`` and ``notebooks`` call these functions.
"""

from __future__ import annotations

import functools
import html
import json
import re
from importlib import resources

from chainrule._src.explaining.notation import BAR

_COLOURS = {  # on a light background, on a dark background
    "paper": ("#fcfbf8", "#15181c"),
    "card": ("#ffffff", "#1c2025"),
    "ink": ("#1e2328", "#e8e5de"),
    "soft": ("#59616b", "#a7aeb8"),
    "line": ("#d9d6ce", "#373d45"),
    "faint": ("#f1efe9", "#22272d"),
    "forward": ("#1d5a99", "#8dbbf0"),
    "back": ("#a8331b", "#ffa389"),
    "back-wash": ("#fbece6", "#35211c"),
    "changed": ("#fff0b8", "#4a3d10"),
    "focus": ("#1d5a99", "#8dbbf0"),
}


def colour_properties(where: str) -> str:
    """Return the colours as CSS properties, for the colour scheme of the screen or of ``data-theme``."""
    light, dark = (
        ";".join(f"--{name}:{both[i]}" for name, both in _COLOURS.items()) + f";color-scheme:{scheme}"
        for i, scheme in enumerate(("light", "dark"))
    )
    unless = f'{where}:not([data-theme="light"])'
    return f'{where}{{{light}}}@media (prefers-color-scheme:dark){{{unless}{{{dark}}}}}{where}[data-theme="dark"]{{{dark}}}'


@functools.cache
def data_file(name: str) -> str:
    """Return the text of a file in the folder ``data``."""
    return resources.files("chainrule._src.explaining").joinpath("data", name).read_text(encoding="utf-8")


def escape(text: object) -> str:
    """Escape text for an element or a quoted attribute."""
    return html.escape(str(text), quote=True)


def scroll_box(label: str, inside: str) -> str:
    """Wrap a wide part in an element that scrolls, also by keyboard."""
    return f"<div class='scroll' role='group' tabindex='0' aria-label='{escape(label)}'>{inside}</div>"


def mark_bars(text: str) -> str:
    """Return text in which the bar of a name is drawn over the whole name, but copied as a letter."""
    return re.sub(f"(\\w+){BAR}", rf"<span class='bar'>\1<i>{BAR}</i></span>", escape(text))


def code_element(text: str) -> str:
    """Return a formula as text in a code element."""
    return f"<code>{mark_bars(text)}</code>"


def script_json(value: object) -> str:
    """Return JSON for a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def math_element(mathml: str | None, *, display: bool = False) -> str:
    """Return a MathML formula without its namespace, which HTML does not need; '' if there is none."""
    inside = (mathml or "").partition(">")[2]
    return inside and ("<math display='block'>" if display else "<math>") + inside
