"""Show the progress of a solver in a tqdm bar; tqdm loads on first use.

``minimize``, ``least_squares``, ``root`` and ``solve_ivp`` call ``progress_bar``.

A terminal and a notebook show a bar. A file or a pipe gets one line when the solver ends.
"""

from __future__ import annotations

import importlib
import io
import sys
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
    is_live = sys.stderr.isatty() or any(base.__module__ == "tqdm.notebook" for base in tqdm.__mro__)
    if total is None:
        bar_options = {"unit": " calls"}
    elif is_live:
        bar_options = {"bar_format": "{l_bar}{bar}| {n:.4g}/{total:.4g} [{elapsed}<{remaining}]"}
    else:
        bar_options = {"bar_format": "{l_bar} {n:.4g}/{total:.4g} [{elapsed}]"}
    with tqdm(desc=caller, total=total, file=None if is_live else io.StringIO(), **bar_options) as bar:

        def tracked(function: AnyFunction) -> AnyFunction:
            def call(*args: object) -> object:
                found = function(*args)
                amount, text = progress_of(found, *args)
                bar.set_postfix_str(text, refresh=False)
                bar.update(amount)
                return found

            return call

        try:
            yield tracked
        finally:
            if not is_live:
                print(bar, file=sys.stderr)
