"""Defects of the compiler are reported once; the function still runs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.compiling import compiled as module
from chainrule._src.compiling import loop_body, plan

X = np.array([1.0, 2.0])


def _square(x: Any) -> Any:
    return np.sum(x * x)


def _break_trace(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "Simplified", None)


def _break_replay(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f(X)
    f._clear_shortcuts()
    monkeypatch.setattr(module, "exception_reporter", None)


def _break_shortcut(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f(X)
    f._shortcut = object()


BREAKS = [_break_trace, _break_replay, _break_shortcut]


@pytest.mark.parametrize("break_compiler", BREAKS)
def test_internal_error_is_raised_under_the_filter_of_the_tests(break_compiler: Any, monkeypatch: Any) -> None:
    f = cr.compile(_square)
    break_compiler(f, monkeypatch)
    with pytest.raises(UserWarning, match=r"compile: internal error in a call of _square .*Error: .*please report"):
        f(X)


@pytest.mark.parametrize("break_compiler", BREAKS)
def test_internal_error_is_reported_once_and_the_function_runs(break_compiler: Any, monkeypatch: Any) -> None:
    f = cr.compile(_square)
    break_compiler(f, monkeypatch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [f(X), f(X)] == [5.0, 5.0]
    assert len(caught) == 1
    assert "internal error" in str(caught[0].message)
    if break_compiler is _break_trace:
        assert "internal error: TypeError" in f.explain()


def test_internal_error_in_the_body_of_a_scan_is_reported(monkeypatch: Any) -> None:
    monkeypatch.setattr(loop_body, "ProgramLoop", None)

    def body(carry: Any, x: Any) -> Any:
        return carry + x, carry

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [cr.scan(body, X[0], X)[0] for _ in range(2)] == [4.0, 4.0]
    assert [str(warning.message)[:60] for warning in caught] == [
        "compile: internal error in a call of the body of scan: TypeError"[:60]
    ]


@pytest.mark.parametrize("break_compiler", BREAKS)
def test_error_of_the_function_is_raised_instead(break_compiler: Any, monkeypatch: Any) -> None:
    fails = False

    def f(x: Any) -> Any:
        if fails:
            raise KeyError("mine")
        return np.sum(x)

    g = cr.compile(f)
    break_compiler(g, monkeypatch)
    fails = True
    with pytest.raises(KeyError, match="mine"):
        g(X)


def test_refusals_and_errors_of_recorded_calls_are_not_internal_errors() -> None:
    inverse = cr.compile(np.linalg.inv)
    inverse(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        inverse(np.zeros((2, 2)))
    powers = cr.compile(lambda n: np.ones(2, int) * 2**n)
    powers(np.array([1, 2]))
    with pytest.raises(ValueError, match="negative integer powers"):
        powers(np.array([1, -2]))
    with pytest.warns(UserWarning, match="runs eagerly in every call"):
        cr.compile(lambda x: print("", end="") or x)(X)
