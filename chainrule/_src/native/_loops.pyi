from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

Layout = tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...]]
Arrays = list[np.ndarray[Any, Any]] | tuple[np.ndarray[Any, Any], ...]

KERNELS: dict[str, int]
VERSION: int

class Runner:
    runs: int
    scratch_bytes: int
    def __new__(
        cls,
        code: np.ndarray[Any, Any] | list[int],
        arena_bytes: int,
        inputs: list[Layout],
        constants: Sequence[np.ndarray[Any, Any]],
        outputs: list[Layout],
        writes: list[int] = ...,
        commit: int = ...,
    ) -> Runner: ...
    def __call__(
        self, arrays: Arrays, report: Callable[[int], object] | None = ..., /
    ) -> list[np.ndarray[Any, Any]] | tuple[int, bytes | None] | None: ...
    def run_into(
        self, arrays: Arrays, outputs: Arrays, report: Callable[[int], object] | None = ..., /
    ) -> bool | tuple[int, bytes | None] | None: ...
    def memory_use(self) -> tuple[int, tuple[np.ndarray[Any, Any], ...]]: ...
    def low_level(self, kind: str, narguments: int, arrays: Sequence[int | np.ndarray[Any, Any]], /) -> object: ...

def loop(ufunc: np.ufunc, index: int, /) -> tuple[int, int] | None: ...
def execute(code: np.ndarray[Any, Any], start: int, stop: int, bases: np.ndarray[Any, Any], /) -> int: ...
def use_lapack(getrf: int, getrs: int, gesv: int, threads: int, bits: int, /) -> None: ...
def matmul(x: Any, y: Any, /) -> Any: ...
def use_matmul(ufunc: np.ufunc, find_blas_threads: Callable[[], tuple[int, int]], /) -> dict[str, int]: ...
def depthwise(x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, /) -> Any: ...
def depthwise_input(
    g: Any, weight: Any, stride: Any, padding: Any, dilation: Any, size: Any, channels: int, /
) -> Any: ...
def depthwise_weight(g: Any, x: Any, stride: Any, padding: Any, dilation: Any, kernel: Any, /) -> Any: ...
def lu(x: Any, /) -> Any: ...
def row_order(pivots: Any, rows: int, /) -> Any: ...
def triangular_solution(x: Any, y: Any, upper: bool, unit: bool, /) -> Any: ...
def use_lapack_functions(getrf: tuple[int, ...], bits: int, /) -> None: ...
def small_matrices(function: int, x: Any, y: Any = ..., /) -> Any: ...
def use_small_matrices(*loops: tuple[int, int]) -> dict[str, int]: ...
def orders(dtype: np.dtype[Any], /) -> tuple[list[int], list[int], int, int] | None: ...
def first_broken(guards: tuple[Any, ...], begin: int, missing: Any, /) -> int: ...
def class_version(cls: type, /) -> tuple[int, str, str]: ...
def enable_untraced(enable: bool, /) -> bool: ...
def mark_untraced(code: CodeType, /) -> None: ...
def trace_frames(
    callback: Callable[[FrameType], None],
    open_frame: Callable[[FrameType, Any], Any],
    watch: object,
    plain_types: frozenset[type],
    python_floats: set[int],
    receivers: dict[int, Any],
    known_code: dict[CodeType, Any],
    /,
) -> bool: ...
def drop_trace_references() -> None: ...
def get_threads() -> int: ...
def set_threads(count: int, /) -> None: ...

# Eager operations. ``tape.eager`` calls ``connect``.

#: forms of ``Operation``
ELEMENTWISE: int
BY_NDIM: int
CACHED: int
ARRAY_UFUNC: int
IN_PLACE: int
ASSIGN: int
INDEX: int
#: bits of ``Operation(discrete=...)``
DISCRETE_BOOL: int
DISCRETE_INT64: int
#: ``Op(reduction=...)``
NO_REDUCTION: int
SUM: int
MEAN: int
#: ``Op(joins=...)``
NO_JOIN: int
CONCATENATE: int
STACK: int
#: ``Op(statistic=...)``
NO_STATISTIC: int
VARIANCE: int
DEVIATION: int
NORM: int
LOG_SUM_EXP: int
SCAN_SUM: int
SCAN_PRODUCT: int
#: ``Op(batch=...)``
BATCH_IN_PYTHON: int
ALIGN: int
LEADING: int
#: the maximal number of values that an ``Op`` saves
MAX_SAVED: int

class Operation:
    python: Callable[..., Any]
    def __new__(cls, python: Callable[..., Any], form: int, /, *args: Any, **kwargs: Any) -> Operation: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def with_fallback(
        self,
        python: Callable[..., Any],
        arrays: bool = ...,
        swapped: bool = ...,
        floats: bool = ...,
        factor: tuple[str, Operation] = ...,
        constants: bool = ...,
    ) -> Operation: ...

class Op:
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
        along: bool = ...,
        joins: int = ...,
        statistic: int = ...,
        multilinear: bool = ...,
        batch: int = ...,
    ) -> Op: ...

def connect(names: dict[str, Any], /) -> None: ...
def connect_error_state(
    variable: Any, internal_error_state_of: Callable[[Any], Any], raising_error_state_of: Callable[[Any], Any], /
) -> None: ...
def connect_levels(dual: type, batched: type, level: type, primitives: tuple[Any, ...], /) -> None: ...
def call_in_error_state(function: Callable[..., Any], /, *args: Any) -> Any: ...
def connect_arrays(array: type, /) -> None: ...
def connect_dispatch_cache(make_entry: Callable[..., Any], call_with_arrays: Callable[..., Any], /) -> None: ...
def switch_on(enabled: bool, /) -> bool: ...
def register_user_object() -> None: ...
def connect_dispatch(bind: Callable[..., Any], record_unary: Callable[..., Any], /) -> None: ...
def replay(entry: tuple[Any, ...], operands: Sequence[Any], /) -> Any: ...
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
    traced: Any,
    /,
) -> dict[Any, Any] | None: ...
def set_region_size(n: int, /) -> int: ...
def reaches_outside(roots: list[Any], began: int, own: list[Any], /) -> bool | None: ...
def write_grads(arrived: dict[Any, Any], freed: Any, cut: Any, escaped: set[int], kept_passes: int, /) -> bool: ...
