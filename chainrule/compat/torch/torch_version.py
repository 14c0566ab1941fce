"""``torch.torch_version``: version strings that compare as versions."""

from __future__ import annotations

import operator
import re
from typing import Any

__all__ = ["TorchVersion"]


def _comparison(name: str) -> Any:
    def compare(self: str, other: object) -> Any:
        known = isinstance(other, (str, tuple, list))
        return getattr(operator, name)(_key(self), _key(other)) if known else NotImplemented

    return compare


class TorchVersion(str):
    """A version string that compares with version strings and tuples of numbers.

    >>> TorchVersion("2.13.0") >= (2, 4), TorchVersion("2.13.0") < "2.2", TorchVersion("2.13.0") > "2.13.0rc1"
    (True, False, True)
    """

    __slots__ = ()
    __hash__ = str.__hash__
    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = map(_comparison, ("eq", "ne", "lt", "le", "gt", "ge"))


def _key(version: object) -> tuple[tuple[int, ...], bool, str]:
    """Return the release's numbers without trailing zeros, whether it is final, and the rest of the version."""
    text = str(version) if isinstance(version, str) else ".".join(map(str, version))  # type: ignore[call-overload]
    match = re.match(r"v?(\d+(?:\.\d+)*)", text)
    if match is None:
        raise ValueError(f"Invalid version: {text!r}")
    numbers, rest = [int(n) for n in match[1].split(".")], text[match.end() :].lstrip("._-")
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), not re.match(r"a|b|c|rc|dev|pre|alpha|beta", rest), rest
