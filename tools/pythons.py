"""Find the Python interpreters on this machine that chainrule supports.

python tools/pythons.py          lists version and path of the newest release of each minor version
python tools/pythons.py 3.13     prints the path of one version; exit status 1 if there is none
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

#: the classifiers of pyproject.toml name the same versions
SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))
_PROGRAM = "import sys; print(*sys.version_info[:3], sys.implementation.name, sys.executable)"


def pythons() -> dict[tuple[int, int], str]:
    """Return the path of a CPython for each supported version: the newest release among pyenv's and those on ``PATH``."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [sys.executable, *map(str, pyenv.glob("*/bin/python"))]
    candidates += [path for major, minor in SUPPORTED if (path := shutil.which(f"python{major}.{minor}"))]
    found: dict[tuple[int, int], tuple[int, str]] = {}
    for path in candidates:
        run = subprocess.run([path, "-c", _PROGRAM], capture_output=True, text=True, check=False)
        match = re.fullmatch(r"(\d+) (\d+) (\d+) cpython (.+)\n", run.stdout)
        if run.returncode or not match:  # for example, pyenv's command for a version that is not selected
            continue
        version, release = (int(match[1]), int(match[2])), int(match[3])
        if version in SUPPORTED and release > found.get(version, (-1, ""))[0]:
            found[version] = release, match[4]
    return {version: path for version, (_, path) in sorted(found.items())}


def main(wanted: list[str]) -> int:
    for version, path in pythons().items():
        name = ".".join(map(str, version))
        if not wanted or name in wanted:
            print(path if wanted else f"{name} {path}")
            if wanted:
                return 0
    return bool(wanted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
