from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Layout = tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...]]
Arrays = list[np.ndarray[Any, Any]] | tuple[np.ndarray[Any, Any], ...]

OWN: dict[str, int]
VERSION: int

class Runner:
    scratch_bytes: int
    def __new__(
        cls,
        code: np.ndarray[Any, Any],
        arena_bytes: int,
        inputs: list[Layout],
        constants: Sequence[np.ndarray[Any, Any]],
        outputs: list[Layout],
        writes: list[int] = ...,
        commit: int = ...,
    ) -> Runner: ...
    def __call__(
        self, arrays: Arrays, report: Callable[[int], object] | None = ..., /
    ) -> list[np.ndarray[Any, Any]] | None: ...
    def run_into(
        self, arrays: Arrays, outputs: Arrays, report: Callable[[int], object] | None = ..., /
    ) -> bool | None: ...
    def low_level(self, kind: str, narguments: int, arrays: Sequence[int | np.ndarray[Any, Any]], /) -> object: ...

class SharedUfunc:
    ufunc: np.ufunc
    def __new__(cls, ufunc: np.ufunc) -> SharedUfunc: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def loop(ufunc: np.ufunc, index: int, /) -> tuple[int, int] | None: ...
def execute(code: np.ndarray[Any, Any], start: int, stop: int, bases: np.ndarray[Any, Any], /) -> int: ...
def first_broken(guards: tuple[Any, ...], begin: int, missing: Any, /) -> int: ...
def get_threads() -> int: ...
def set_threads(count: int, /) -> None: ...
