"""Make the screenshot of an explanation page that the README and the home page show.

python tools/docs/picture.py

It needs chromium, and Pillow to compress the file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
import blocks  # noqa: E402

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "assets" / "explain_page.png"
WIDTH, HEIGHT, SCALE, COLOURS = 1300, 755, 1.5, 64


def main() -> None:
    browser = os.environ.get("CHAINRULE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no chromium was found (install it, or name it in CHAINRULE_CHROMIUM)")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    with blocks.surroundings():
        _, found = blocks.run(text, "README.md")
    explanation: object = next(block.value for block in found if block.kind == "explained")
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder, "page.html"), Path(folder, "shot.png")
        page.write_text(explanation.to_html(), encoding="utf-8")  # type: ignore[attr-defined]
        subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--screenshot={shot}",
             f"--window-size={WIDTH},{HEIGHT}", f"--force-device-scale-factor={SCALE}", page.as_uri()],
            check=True, capture_output=True,
        )  # fmt: skip
        image = Image.open(shot).convert("RGB")
    image.quantize(COLOURS).save(PICTURE, optimize=True)
    print(f"{PICTURE.relative_to(ROOT)}: {image.width} × {image.height}, {PICTURE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
