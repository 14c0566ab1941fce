"""Text that came from a user's program, made safe to stand in a page: escaped, or parsed again and let through element
by element."""

from __future__ import annotations

import functools
import html
import json
import re
from importlib import resources
from typing import Any
from xml.etree import ElementTree

from chainrule._src.explaining.notation import BAR

MATHML = "http://www.w3.org/1998/Math/MathML"

_ELEMENTS = re.compile(
    "math|mrow|mi|mo|mn|mtext|ms|mspace|msub|msup|msubsup|munder|mover|munderover|mfrac|msqrt|mroot|mstyle|mpadded|"
    "mphantom|mtable|mtr|mtd|menclose|mfenced|merror|semantics"
)
_ATTRIBUTES = re.compile(
    "accent|accentunder|stretchy|mathvariant|display|displaystyle|scriptlevel|form|fence|separator|lspace|rspace|"
    "width|height|depth|linethickness|columnalign|rowspacing|columnspacing|largeop|movablelimits|symmetric"
)


_COLOURS = {  # on light paper, on dark
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


def colours(where: str) -> str:
    """The colours as properties of an element, for the scheme of the screen or the one that ``data-theme`` names."""
    light, dark = (
        ";".join(f"--{name}:{both[i]}" for name, both in _COLOURS.items()) + f";color-scheme:{scheme}"
        for i, scheme in enumerate(("light", "dark"))
    )
    unless = f'{where}:not([data-theme="light"])'
    return f'{where}{{{light}}}@media (prefers-color-scheme:dark){{{unless}{{{dark}}}}}{where}[data-theme="dark"]{{{dark}}}'


@functools.cache
def data(name: str) -> str:
    """A file of the folder ``data``."""
    return resources.files("chainrule._src.explaining").joinpath("data", name).read_text(encoding="utf-8")


def escape(text: object) -> str:
    """The text, to stand between tags or in a quoted attribute."""
    return html.escape(str(text), quote=True)


def scrolling(label: str, inside: str) -> str:
    """A wide part, which can be moved by keys."""
    return f"<div class='scroll' role='group' tabindex='0' aria-label='{escape(label)}'>{inside}</div>"


def code(text: str) -> str:
    """A formula in letters. The bar of a name is drawn over all of it, and copied as the letter that it is."""
    barred = re.sub(f"(\\w+){BAR}", rf"<span class='bar'>\1<i>{BAR}</i></span>", escape(text))
    return f"<code>{barred}</code>"


def embedded(value: object) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def math(text: str, *, display: bool = False) -> str | None:
    """The formula written anew from its parsed elements, or None if it is anything but plain MathML."""
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        return None
    if _tag(root) != "math":
        return None
    try:
        inside = escape(root.text or "") + "".join(_written(child) for child in root)
    except _Foreign:
        return None
    return f"<math display='block'>{inside}</math>" if display else f"<math>{inside}</math>"


class _Foreign(Exception):
    pass


def _tag(element: Any) -> str:
    return str(element.tag).removeprefix(f"{{{MATHML}}}")


def _written(element: Any) -> str:
    tag = _tag(element)
    if not _ELEMENTS.fullmatch(tag):
        raise _Foreign(tag)
    attributes = "".join(
        f' {key}="{escape(value)}"' for key, value in element.attrib.items() if _ATTRIBUTES.fullmatch(key)
    )
    text = element.text or ""
    if tag == "mtext":
        text = text.replace(" ", "\u00a0")  # spaces at the ends would be lost
    inside = escape(text) + "".join(_written(child) for child in element)
    return f"<{tag}{attributes}>{inside}</{tag}>" + escape((element.tail or "").strip())
