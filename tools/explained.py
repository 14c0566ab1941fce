"""Make screenshots of explanations of example programs, docs/explained/*.webp, on a wide and on a narrow screen.

    python tools/explained.py [names]

It needs chromium, playwright (see tools/browser.sh) and Pillow. The pages quote the source of the programs below.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import chainrule as cr
from chainrule import nn

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "explained"
SCREENS = {"wide": (1280, 860, "light"), "narrow": (400, 860, "dark")}
rng = np.random.default_rng(0)
cr.manual_seed(0)


def seed() -> Any:
    X = cr.tensor([[2.0, 1, -3], [-3, 4, 2]], dtype=cr.float64, requires_grad=True)
    W = cr.tensor([[3.0, 2, 1, -1], [2, 1, 3, 2], [3, 2, 1, -2]], dtype=cr.float64, requires_grad=True)
    Y = cr.exp(X @ W)
    return cr.explain(Y, grad=[[2.0, 3, -3, 9], [-8, 1, 4, 6]])


def cnn() -> Any:
    images, labels = cr.tensor(rng.normal(size=(8, 1, 12, 12))), cr.tensor(rng.integers(0, 10, 8))
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 10)
    ).double()
    logits = model(images)
    loss = nn.functional.cross_entropy(logits, labels)
    return cr.explain(loss, wrt=list(model.parameters()))


def gaussian_process() -> Any:
    x = np.linspace(0, 1, 6)
    y = np.sin(6 * x)

    def likelihood(length: Any, scale: Any, noise: Any) -> Any:
        distance = (x[:, None] - x) / length
        K = scale**2 * np.exp(-(distance**2) / 2) + noise**2 * np.eye(6)
        L = np.linalg.cholesky(K)
        z = np.linalg.solve(L, y)
        fit = np.sum(z**2) / 2
        volume = np.sum(np.log(np.diagonal(L)))
        return fit + volume

    return cr.explain(likelihood)(0.3, 1.0, 0.1)


def pinn() -> Any:
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    for weight in net.parameters():
        weight.data.copy_(cr.tensor(rng.normal(0, 0.5, weight.shape)))
    del weight

    def field(t: Any, x: Any) -> Any:
        return net(cr.cat([t, x], dim=1))

    def residual(t: Any, x: Any) -> Any:
        u = field(t, x)
        ones = cr.ones_like(u)
        u_t, u_x = cr.autograd.grad(u, (t, x), ones, create_graph=True)
        (u_xx,) = cr.autograd.grad(u_x, x, ones, create_graph=True)
        return u_t + u * u_x - 0.05 * u_xx

    t, x = (cr.tensor(rng.uniform(low, 1, (60, 1)), requires_grad=True) for low in (0, -1))
    start = cr.tensor(np.linspace(-1, 1, 20).reshape(-1, 1))
    left, right = (cr.full_like(t, side, requires_grad=False) for side in (-1, 1))
    equation = (residual(t, x) ** 2).mean()
    initial = ((field(cr.zeros_like(start), start) + cr.sin(np.pi * start)) ** 2).mean()
    boundary = (field(t, left) ** 2).mean() + (field(t, right) ** 2).mean()
    loss = equation + 10 * initial + boundary
    return cr.explain(loss, wrt=list(net.parameters()))


def loop() -> Any:
    target = np.cos(np.linspace(0, 16, 200))

    def misfit(spring: Any, damping: Any) -> Any:
        x, v, total = 1.0, 0.0, 0.0
        for wanted in target:
            v = v - 0.08 * (spring * x + damping * v)
            x = x + 0.08 * v
            total = total + (x - wanted) ** 2
        return total

    return cr.explain(misfit)(1.2, 0.1)


def sparse_jacobian() -> Any:
    def heat(u: Any) -> Any:
        inner = u[1:-1]
        diffusion = u[2:] - 2 * inner + u[:-2]
        return 400 * diffusion + inner**3

    return cr.explain(cr.jacobian(heat, np.linspace(0, 1, 22), layout="structured"))


def plan() -> Any:
    @cr.compile
    def step(W: Any, x: Any) -> Any:
        return cr.grad(lambda W: np.sum(np.tanh(x @ W) ** 2))(W)

    step(np.ones((3, 2)), np.ones((8, 3)))
    return step


PROGRAMS: tuple[Callable[[], Any], ...] = (seed, cnn, gaussian_process, pinn, loop, sparse_jacobian, plan)


def page_of(shown: Any) -> str:
    """Return the HTML page of an explanation, or a page that contains an object's notebook representation."""
    if hasattr(shown, "to_html"):
        return str(shown.to_html())
    return (
        f"<!doctype html><meta name='color-scheme' content='light dark'><body style='margin:1rem'>{shown._repr_html_()}"
    )


def main(names: list[str]) -> None:
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHAINRULE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for program in PROGRAMS:
            if names and program.__name__ not in names:
                continue
            file = Path(folder) / f"{program.__name__}.html"
            file.write_text(page_of(program()), encoding="utf-8")
            for name, (width, height, scheme) in SCREENS.items():
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.goto(file.as_uri())
                picture = Image.open(io.BytesIO(page.screenshot(full_page=True)))
                page.close()
                picture = picture.crop((0, 0, width, min(picture.height, 2 * height)))
                picture.save(FOLDER / f"{program.__name__}-{name}.webp", quality=60, method=6)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
