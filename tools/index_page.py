"""The README as a package index shows it, and the project's addresses: ``setup.py`` puts both into the metadata.

An index shows the README outside of the repository, so relative links and images need the repository's address. It is the
environment variable CHAINRULE_REPOSITORY, the repository of the running GitHub workflow, or git's remote "origin", in this
order. Without any of them the text of links stays, and images are left out: an address that leads nowhere is worse than none.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(!?)\[((?:\[[^\]]*\]|[^\[\]])*)\]\(([^()\s]+)\)")
_ATTRIBUTE = re.compile(r'\b(src|srcset|href)="([^"]+)"')
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_PICTURE = re.compile(r"<picture>.*?(<img [^>]*>)</picture>", re.DOTALL)


def repository() -> str:
    """Return the address of the repository, such as ``https://host/owner/name``, or ""."""
    address = os.environ.get("CHAINRULE_REPOSITORY", "")
    if not address and "GITHUB_REPOSITORY" in os.environ:
        address = f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{os.environ['GITHUB_REPOSITORY']}"
    if not address and (ROOT / ".git").exists():
        run = subprocess.run(
            ["git", "-C", str(ROOT), "remote", "get-url", "origin"], capture_output=True, text=True, check=False
        )
        address = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", run.stdout.strip())
    address = address.removesuffix("/").removesuffix(".git")
    return address if address.startswith("https://") else ""


def project_urls(version: str) -> dict[str, str]:
    """Return the addresses for the metadata; empty if the repository's address is unknown."""
    home = repository()
    if not home:
        return {}
    files = f"{home}/blob/v{version}"
    return {
        "Repository": home,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{home}/issues",
        "Security": f"{files}/SECURITY.md",
    }


def long_description(readme: str, version: str) -> str:
    """Return the README with absolute links and images, without its comments."""
    home = repository()

    def absolute(target: str, image: bool) -> str:
        if re.match(r"[a-z]+:|#", target):
            return target
        return f"{home}/{'raw' if image else 'blob'}/v{version}/{target}" if home else ""

    def link(match: re.Match[str]) -> str:
        image, text, target = match.groups()
        text = _LINK.sub(link, text)
        found = absolute(target, bool(image))
        return f"{image}[{text}]({found})" if found else "" if image else text

    def attribute(match: re.Match[str]) -> str:
        return f'{match[1]}="{absolute(match[2], match[1] != "href")}"'

    parts = re.split(r"(^```.*?^```$)", _COMMENT.sub("", readme), flags=re.DOTALL | re.MULTILINE)
    for i in range(0, len(parts), 2):  # code blocks, at odd positions, stay unchanged
        text = _PICTURE.sub(r"\1", parts[i])  # an index shows one colour scheme
        text = _ATTRIBUTE.sub(attribute, text) if home else re.sub(r"<img [^>]*>", "", text)
        parts[i] = re.sub(r"\n{3,}", "\n\n", _LINK.sub(link, text))
    return "".join(parts)
