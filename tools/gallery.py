"""Build the gallery: run its scripts, draw their figures for light and dark pages, and insert their output into the pages.

    python tools/gallery.py [--times] [names]

A gallery script defines ``solve()``, which prints its results, ``draw(found)``, which returns the figure, and ``alternatives()``,
alternative implementations of the same work. ``--times`` measures these alternatives on one thread, in alternation. The
minimum and maximum over several rounds are written to docs/gallery/times.json, the source of the pages' tables.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "gallery"
TIMES = PAGES / "times.json"
NAMES = sorted(path.stem for path in PAGES.glob("*.md") if path.stem != "index")
COLOURS = 200
ONE_THREAD = dict.fromkeys(("CHAINRULE_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
SECONDS, ROUNDS = 5.0, 7  # the time budget of each alternative, and the maximum number of measurements

_COMMON = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "font.size": 10,
    "legend.frameon": False,
    "savefig.dpi": 110,
}


def style(paper: str, ink: str, colours: tuple[str, str, str], image: str) -> dict[str, Any]:
    """Return the Matplotlib settings for a page with these colours."""
    inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
    return (
        _COMMON
        | dict.fromkeys(inked, ink)
        | dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), paper)
        | {"axes.prop_cycle": matplotlib.cycler(color=colours), "image.cmap": image}
    )


STYLES = {  # the paper colours match the site's two colour schemes
    "light": style("#ffffff", "#303030", ("#3b62a8", "#c44e52", "#3c8d5a"), "Blues"),
    "dark": style("#1e2129", "#d6d8de", ("#82a8f0", "#f0867a", "#7fc99a"), "bone"),
}


def script(name: str) -> ModuleType:
    """Import an example script."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def solved(module: ModuleType, **sizes: Any) -> tuple[Any, str]:
    """Run a script's ``solve``; return its result and its printed output."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        found = module.solve(**sizes)
    return found, "".join(f"{line.rstrip()}\n" for line in said.getvalue().splitlines())


def pictures(module: ModuleType, found: Any, folder: Path) -> None:
    """Save the script's figure for light and dark pages."""
    for name, settings in STYLES.items():
        with plt.rc_context(settings):
            figure = module.draw(found)
            drawn = io.BytesIO()
            figure.savefig(drawn)
            plt.close(figure)
            small = Image.open(drawn).convert("RGB").quantize(COLOURS)  # reduces the file size to a third
            small.save(folder / f"{module.__name__}-{name}.png", optimize=True)


def measured(alternatives: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Return the minimum and maximum seconds of each alternative, measured after a warm-up."""
    found: dict[str, list[float]] = {name: [] for name in alternatives}
    for number in range(1 + ROUNDS):
        for name, way in alternatives.items():
            if sum(found[name]) < SECONDS:
                begin = time.perf_counter()
                way()
                seconds = time.perf_counter() - begin
                if number or seconds > SECONDS:  # a slow first call is counted: the warm-up is negligible
                    found[name].append(seconds)
    return {name: [float(f"{end(seconds):.3g}") for end in (min, max)] for name, seconds in found.items()}


def surroundings() -> dict[str, Any]:
    """Return the date, machine and versions of a measurement."""
    versions = {}
    for name in ("numpy", "scipy", "torch", "scikit-learn", "statsmodels", "dask", "dask-ml", "cyipopt", "casadi"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "versions": versions,
    }


def duration(seconds: float) -> str:
    """Format a duration with three digits: 1.23 s, 45.6 ms, 7.89 µs."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{seconds / 1e-6:#.3g}".rstrip(".") + " µs"


def table(entry: dict[str, Any]) -> str:
    """Return a Markdown table of the times of a script, followed by the measurement conditions."""
    own = next(iter(entry["seconds"].values()))[0]
    rows = [
        f"| {name} | {duration(low)} | {duration(high)} | {float(f'{low / own:.3g}'):,g} |"
        for name, (low, high) in entry["seconds"].items()
    ]
    around = entry["around"]
    versions = ", ".join(f"{name} {version}" for name, version in around["versions"].items() if name in entry["uses"])
    circumstances = (
        f'Measured on {around["date"]} by `make gallery ARGS="--times"`: one thread on {around["machine"]}, load '
        f"{around['load']}, Python {around['python']}, {versions}."
    )
    return "\n".join(["| | minimum | maximum | ratio to the first |", "|---|---:|---:|---:|", *rows, "", circumstances])


def between(text: str, mark: str, content: str) -> str:
    """Replace the text between two markers of a page."""
    pattern = rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)"
    assert re.search(pattern, text, re.DOTALL), f"the page has no <!-- {mark} -->"
    return re.sub(pattern, lambda m: f"{m[1]}\n{content}\n\n{m[2]}", text, flags=re.DOTALL)


def times() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TIMES.read_text(encoding="utf-8")) if TIMES.exists() else {}
    return found


def make(name: str, timed: bool) -> None:
    """Run one script and update its figures, its page and, if ``timed``, its times."""
    module = script(name)
    if timed:
        alternatives = module.alternatives()
        words = " ".join(alternatives).lower() + Path(str(module.__file__)).read_text(encoding="utf-8")
        uses = [
            n
            for n, word in {"torch": "pytorch", "scikit-learn": "sklearn", "dask": "dask.array"}.items()
            if word in words
        ]
        uses += [n for n in ("numpy", "scipy", "statsmodels", "dask-ml", "casadi") if n.replace("-", "_") in words]
        entry = {"seconds": measured(alternatives), "uses": uses, "around": surroundings()}
        TIMES.write_text(
            json.dumps(times() | {name: entry}, indent=1, ensure_ascii=False, sort_keys=False) + "\n", encoding="utf-8"
        )
    found, said = solved(module)
    pictures(module, found, PAGES)
    page = PAGES / f"{name}.md"
    text = between(page.read_text(encoding="utf-8"), "printed", f"```text\n{said}```")
    if name in times():
        text = between(text, "times", table(times()[name]))
    page.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="names", help=f"scripts to run (default: all): {', '.join(NAMES)}")
    parser.add_argument("--times", action="store_true", help="measure the alternatives, too")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no page docs/gallery/{sorted(unknown)[0]}.md")
    if len(options.names) == 1 and ONE_THREAD.items() <= os.environ.items():
        make(options.names[0], options.times)
        return 0
    for name in options.names or NAMES:  # in separate processes, so that they do not affect each other
        print(name, flush=True)
        command = [sys.executable, __file__, name, *(["--times"] if options.times else [])]
        subprocess.run(command, check=True, env=os.environ | ONE_THREAD)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
