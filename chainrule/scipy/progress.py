"""Progress of a long solver: a bar of tqdm, which loads when one is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chainrule._src.arrays.types import AnyFunction


@contextmanager
def progress_bar(
    wanted: bool, caller: str, how_far: Callable[..., tuple[float, str]], total: float | None = None
) -> Iterator[Callable[[AnyFunction], AnyFunction]]:
    """What makes a solver's function move a bar at each call; a function is left as it is where none is wanted.

    Args:
        how_far: from what the function returned and its arguments, by how much the bar moves, and what stands beside it.
        total: how far it is to the end, if that is known. Without it the bar counts calls.

    Raises:
        ModuleNotFoundError: tqdm is not installed.
    """
    if not wanted:
        yield lambda function: function
        return
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"chainrule.scipy.{caller}(progress=True) draws a bar of tqdm, which is not installed: pip install tqdm",
            name="tqdm",
        ) from error
    drawn = (
        {"unit": " calls"}
        if total is None
        else {"bar_format": "{l_bar}{bar}| {n:.4g}/{total:.4g} [{elapsed}<{remaining}]"}
    )
    with tqdm(desc=caller, total=total, **drawn) as bar:

        def shown(function: AnyFunction) -> AnyFunction:
            def moving(*args: object) -> object:
                found = function(*args)
                amount, said = how_far(found, *args)
                bar.set_postfix_str(said, refresh=False)
                bar.update(amount)
                return found

            return moving

        yield shown
