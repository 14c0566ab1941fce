"""Build the source distribution and a wheel for each Python on this machine, and try each wheel in a bare environment.

python tools/build.py DIST

The wheels are for this machine. Those of a release are built by cibuildwheel (``.github/workflows/wheels.yml``), with portable tags.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tools.pythons import pythons  # noqa: E402

TRIAL = ROOT / "tools/try_wheel.py"


def run(*command: object, **environment: str) -> str:
    """Run a command outside of the checkout. Return its output; show it if the command fails."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*map(str, command)],
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def try_wheel(python: str, source: Path, dist: Path, *options: str, **environment: str) -> Path:
    """Build a wheel, install it in a new environment and run ``TRIAL`` there. Return the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder) / "alone"
        run(python, "-m", "venv", alone)
        bare = alone / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        output = Path(folder) / "made"
        pip = [bare, "-m", "pip"]
        run(*pip, "wheel", "--no-deps", "--no-cache-dir", "--wheel-dir", output, source, CFLAGS="-g0", **environment)
        (made,) = output.glob("*.whl")
        run(*pip, "install", made)
        print(f"  {made.name}, {made.stat().st_size / 1e6:.1f} MB: {run(bare, '-I', TRIAL, *options)}", flush=True)
        run(alone / bare.parent.name / "chainrule", "--version")
        dist.mkdir(exist_ok=True)
        return made.replace(dist / made.name)


def main(dist: Path) -> int:
    print(f"building in {dist}", flush=True)
    run(sys.executable, "-m", "build", "--sdist", "--outdir", dist, ROOT)
    (source,) = dist.glob("*.tar.gz")
    print(f"  {source.name}, {source.stat().st_size / 1e6:.1f} MB")
    for python in pythons().values():
        try_wheel(python, source, dist, "--extension")
    print("without a C compiler:")
    pure = try_wheel(sys.executable, source, ROOT / "build/pure", CC="false")
    if not pure.name.endswith("-py3-none-any.whl"):
        sys.exit(f"{pure.name} has a platform tag, but no extension")
    print(run(sys.executable, "-m", "twine", "check", "--strict", *sorted(dist.iterdir())))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
