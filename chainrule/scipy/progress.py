"""Show the progress of a solver in a tqdm bar; tqdm loads on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chainrule._src.arrays.types import AnyFunction


@contextmanager
def progress_bar(
    enabled: bool, caller: str, progress_of: Callable[..., tuple[float, str]], total: float | None = None
) -> Iterator[Callable[[AnyFunction], AnyFunction]]:
    """Yield a decorator for the solver's function that advances a bar at each call (the identity if not ``enabled``).

    Args:
        progress_of: a function of the result and arguments of a call, which returns the progress and a text.
        total: the total progress, if known. Without it the bar counts calls.

    Raises:
        ModuleNotFoundError: tqdm is not installed.
    """
    if not enabled:
        yield lambda function: function
        return
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"chainrule.scipy.{caller}(progress=True) shows a tqdm bar, and tqdm is not installed: pip install tqdm",
            name="tqdm",
        ) from error
    bar_options = (
        {"unit": " calls"}
        if total is None
        else {"bar_format": "{l_bar}{bar}| {n:.4g}/{total:.4g} [{elapsed}<{remaining}]"}
    )
    with tqdm(desc=caller, total=total, **bar_options) as bar:

        def tracked(function: AnyFunction) -> AnyFunction:
            def call(*args: object) -> object:
                found = function(*args)
                amount, text = progress_of(found, *args)
                bar.set_postfix_str(text, refresh=False)
                bar.update(amount)
                return found

            return call

        yield tracked
