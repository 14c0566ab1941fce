from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

Layout = tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...]]
Arrays = list[np.ndarray[Any, Any]] | tuple[np.ndarray[Any, Any], ...]

OWN: dict[str, int]
VERSION: int

class Runner:
    runs: int
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
    def kept(self) -> tuple[int, tuple[np.ndarray[Any, Any], ...]]: ...
    def low_level(self, kind: str, narguments: int, arrays: Sequence[int | np.ndarray[Any, Any]], /) -> object: ...

class SharedUfunc:
    ufunc: np.ufunc
    def __new__(cls, ufunc: np.ufunc) -> SharedUfunc: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def loop(ufunc: np.ufunc, index: int, /) -> tuple[int, int] | None: ...
def execute(code: np.ndarray[Any, Any], start: int, stop: int, bases: np.ndarray[Any, Any], /) -> int: ...
def use_lapack(getrf: int, getrs: int, gesv: int, threads: int, bits: int, /) -> None: ...
def orders(dtype: np.dtype[Any], /) -> tuple[list[int], list[int], int, int] | None: ...
def first_broken(guards: tuple[Any, ...], begin: int, missing: Any, /) -> int: ...
def class_version(cls: type, /) -> tuple[int, str, str]: ...
def quieten(begin: bool, /) -> bool: ...
def mark_quiet(code: CodeType, /) -> None: ...
def tell(begin: Callable[[FrameType], None], /) -> bool: ...
def get_threads() -> int: ...
def set_threads(count: int, /) -> None: ...

# eager operations: ``tape.eager`` connects them

class Operation:
    python: Callable[..., Any]
    def __new__(
        cls,
        python: Callable[..., Any],
        form: int,
        prim: Any = ...,
        operands: int = ...,
        number_first: bool = ...,
        floating: bool = ...,
        table: dict[Any, Any] | None = ...,
        learn: Callable[..., Any] | None = ...,
    ) -> Operation: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def instead(self, python: Callable[..., Any], arrays: bool = ..., swapped: bool = ...) -> Operation: ...

class Row:
    value: Callable[..., Any]
    programs: tuple[int, int]
    value_states: tuple[int, int]
    def __new__(
        cls,
        prim: Any,
        value: Callable[..., Any],
        operands: int,
        saves: tuple[tuple[int, int], ...],
        records: bool,
        elementwise: bool,
        variadic: bool,
        needs_avals: bool,
        view: bool,
        reduction: int,
        product: int,
    ) -> Row: ...

def connect(names: dict[str, Any], /) -> None: ...
def connect_warnings(variable: Any, twin_of: Callable[[Any], Any], /) -> None: ...
def located(function: Callable[..., Any], /, *args: Any) -> Any: ...
def connect_arrays(array: type, /) -> None: ...
def switch_on(whether: bool, /) -> bool: ...
def hangs_on_node() -> None: ...
def recorders(bind: Callable[..., Any], record_unary: Callable[..., Any], /) -> None: ...
def follow(way: tuple[Any, ...], operands: tuple[Any, ...], /) -> Any: ...
def bind(prim: Any, operands: Any, params: dict[str, Any], /) -> Any: ...
def record_unary(prim: Any, x: Any, params: dict[str, Any], out: Any = ..., /) -> Any: ...
def new_node(
    prim: Any,
    params: dict[str, Any],
    edges: tuple[Any, ...],
    saved: tuple[Any, ...] = ...,
    in_avals: tuple[Any, ...] | None = ...,
    pullback: Callable[..., Any] | None = ...,
    depth: int = ...,
) -> Any: ...
def sweep(
    roots: list[Any],
    cotangents: list[Any],
    order: list[Any] | None,
    wanted: set[Any] | None,
    captured: dict[Any, Any],
    freed: Any,
    keep: bool,
    records: bool,
    check_saved: Callable[..., Any],
    visit: Callable[..., Any],
    add: Callable[..., Any],
    /,
) -> tuple[dict[Any, Any], list[Any]] | None: ...
def reaches_outside(roots: list[Any], began: int, own: list[Any], /) -> bool | None: ...
def write_plain(arrived: dict[Any, Any], freed: Any, cut: Any, escaped: set[int], /) -> bool: ...
