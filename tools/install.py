"""Install this checkout with an extra and print a compact list of the packages.

python tools/install.py EXTRA
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 110
ARRIVES = re.compile(
    r"\s*(?:Downloading|Using cached|Processing) (?:\S*/)?([\w.]+)-(\d[\w.]*)-\S+\.whl(?: \((\d.*)\))?"
)


def main(extra: str) -> int:
    print(f"installing chainrule[{extra}] into {sys.prefix}", flush=True)
    command = [sys.executable, "-u", "-m", "pip", "install", "--progress-bar", "off", "--editable", f"{ROOT}[{extra}]"]
    pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert pip.stdout is not None
    lines, width = [], 0
    for line in pip.stdout:
        lines.append(line)
        found = ARRIVES.match(line)
        if found and ".whl.metadata" not in line:
            name, version, size = found.groups()
            word = f"  {name} {version}" + (f" ({size})" if size else "")
        elif line.startswith("Installing collected packages"):
            word = "\n  unpacking"
        else:
            continue
        if width + len(word) > WIDTH:
            print()
            width = 0
        print(word, end="", flush=True)
        width += len(word)
    print(flush=True)
    if pip.wait():
        sys.stderr.write("".join(lines))
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
