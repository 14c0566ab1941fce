"""Operations on Arrays in C: the dispatch cache, indices, and the slow path."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.api import dispatch_cache
from chainrule._src.tape.eager import LOOPS
from tests.fuzz.native import _about

pytestmark = pytest.mark.skipif(LOOPS is None, reason="there is no extension")

RNG = np.random.default_rng(5)
V, W, K = RNG.standard_normal((3, 4))
M = RNG.standard_normal((4, 4)) + 4 * np.eye(4)


def arrays() -> dict[str, Any]:
    made = {name: cr.Array(x, requires_grad=True) for name, x in (("a", V), ("b", W), ("m", M))}
    return {**made, "k": K, "np": np, "s": cr.Array(np.array(0.5), requires_grad=True)}


SHORT = """
a * b|a * k|k - a|np.float64(2) * a|np.multiply(a, k)|a @ b|m @ a|k @ a|a[1]|a[1:]|a[::-1]|a[[0, 2]]|m[1, 2]|m[:, None]|m[..., 1]|s * a
m[np.array([[0, -1]]), :]|np.sum(a)|m.sum(axis=1)|np.mean(m, axis=0)|a.std()|np.dot(a, k)|np.stack([a, b])|np.concatenate([a, k])
np.roll(a, 1)|a.reshape(2, 2)|m.T
np.einsum('ij,j->i', m, a)|np.linalg.solve(m, a)|np.linalg.inv(m)|np.trace(m)|np.diagonal(m)
np.where(k > 0, a, b)|np.outer(a, b)
np.clip(a, -1, 1)|np.append(a, 1.5)|np.tensordot(m, m, 1)|np.linalg.norm(a)|np.cumsum(a)|np.squeeze(m[None])
""".replace("\n", "|").strip("|").split("|")  # fmt: skip


def python_calls(text: str, values: dict[str, Any]) -> list[str]:
    """Return the Python functions of chainrule that an expression calls once it is in the dispatch cache."""
    code = compile(text, "<call>", "eval")
    for _ in range(3):
        eval(code, values)
    seen = []

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and "chainrule/" in frame.f_code.co_filename and "/table/" not in frame.f_code.co_filename:
            seen.append(frame.f_code.co_qualname)

    sys.setprofile(profile)
    try:
        eval(code, values)
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize("text", SHORT)
def test_it_runs_in_c_with_the_effects_of_python(text):
    """Ops may compute their values in Python; no other Python function runs."""
    called = python_calls(text, arrays())
    assert not [
        name
        for name in called
        if name != "Array.__class__" and name.startswith(("Array.", "apply", "bind", "record", "_getitem", "_operator"))
    ]
    code = compile(text, "<call>", "eval")
    before = LOOPS.switch_on(False)
    try:
        expected = _about(eval(code, arrays()))
        LOOPS.switch_on(True)
        found = _about(eval(code, arrays()))
    finally:
        LOOPS.switch_on(before)
    assert found == expected


OTHER = [
    "np.sum(a, out=b)",
    "np.sort(a)",
    "np.linalg.slogdet(m)",
    "np.split(a, 2)",
    "np.stack([a.tensor, b])",
    "a[[0.5]]",
    "a[k > 0]",
]


@pytest.mark.parametrize("text", OTHER)
def test_calls_that_cannot_be_cached_run_in_python(text):
    code = compile(text, "<call>", "eval")
    before = LOOPS.switch_on(False)
    try:
        with np.errstate(all="ignore"):
            expected = outcome(code)
            LOOPS.switch_on(True)
            assert [outcome(code) for _ in range(3)] == [expected] * 3
    finally:
        LOOPS.switch_on(before)


def outcome(code: Any) -> Any:
    try:
        return _about(eval(code, arrays()))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


INDICES = """
0|-1|3|-5|True|None|...|()|1, 2|1, ..., None|..., ...|0, 0, 0|slice(1, None)|slice(None, None, 2)|slice(None, None, -1)|slice(0, 3, 0)
slice(3, 1)|slice(-9, 9)|slice(10**30)|10**30|slice(np.int64(1), 3)|np.int64(1)|[0, 2]|[[0, 1], [1, 0]]|[]|[True, False, True]
[4]|[10**30]|[0.5]|slice(None), [0, -1]|[0], slice(None)|[0], 1|1, [0]|..., [1]|[0, 1], [1, 0]|None, [0]
i|i, i|slice(None), i|i[0]|i[:0]|i[None]|i[::2]|j
slice(1, None, 2**62)|slice(None), j|j.astype("i4")|j + 5|i > 0|w|slice(None), slice(None), i
""".replace("\n", "|").strip("|").split("|")  # fmt: skip
LAYOUTS = {
    "rows": M,
    "columns": np.asfortranarray(M),
    "strided": np.repeat(M, 2, axis=-1)[:, ::2],
    "none": M[:0],
    "vector": V,
    "number": np.array(0.5),
}


@pytest.mark.parametrize("text", INDICES)
def test_an_index_has_the_effects_of_python(text):
    """In both APIs: bits, layouts, graphs with parameters, views, source locations, and errors."""
    code = compile(f"x[{text}]", "<index>", "eval")

    def outcome(make, x, mode):
        names = {"x": make(x), "i": cr.tensor([2, 0, 0]), "j": np.array([1, -1]), "w": make(K), "np": np}
        try:
            with mode():
                part = eval(code, names)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        tensor = getattr(part, "_tensor", part)
        node = tensor._edge
        return _about(part), repr(getattr(node, "params", None)), np.may_share_memory(tensor._raw, x)

    for make in (lambda x: cr.from_numpy(x).requires_grad_(), lambda x: cr.Array(x, requires_grad=True), cr.from_numpy):
        for x in LAYOUTS.values():
            for mode in (cr.enable_grad, cr.no_grad):
                before = LOOPS.switch_on(False)
                try:
                    expected = outcome(make, x, mode)
                    LOOPS.switch_on(True)
                    assert outcome(make, x, mode) == expected
                finally:
                    LOOPS.switch_on(before)


def test_an_entry_with_other_effects_is_not_used(monkeypatch):
    monkeypatch.setattr(dispatch_cache, "_same_history", lambda *_: False)
    a = cr.Array(np.arange(3.0), requires_grad=True)
    assert [np.tile(a, 2).shape, *[np.roll(a, 7).tensor.tolist() for _ in range(4)]] == [(6,), *[[2.0, 0.0, 1.0]] * 4]
    assert python_calls("np.roll(a, 7)", {"a": a, "np": np})


def test_entries_depend_on_layout_and_requires_grad():
    x = np.arange(6.0).reshape(2, 3)
    for data in (x, np.asfortranarray(x), x[:, ::-1], np.repeat(x, 2, 1)[:, ::2]):
        for requires_grad in (True, False):
            a = cr.Array(cr.from_numpy(data).requires_grad_(requires_grad))
            for _ in range(3):
                y = a.reshape(-1)
                assert y.requires_grad is requires_grad and np.array_equal(y.tensor.detach().numpy(), data.reshape(-1))
                assert (y.tensor._base is None) is not np.shares_memory(data.reshape(-1), data)


def test_constants_are_copied_when_they_are_saved():
    a, k = cr.Array(np.ones(3), requires_grad=True), np.arange(3.0)
    y = np.sum(a * k) + np.sum(a @ k)
    k[:] = 7
    y.backward()
    assert a.grad.tensor.tolist() == [0.0, 2.0, 4.0]


def test_gradients_are_accumulated_in_c():
    x = cr.ones(3, requires_grad=True)
    for n in range(1, 12):
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2.0 * n] * 3 and x.grad_fn is None
    assert x._edge.added == 11 and len(x._edge.passes) == 8
    held = x.grad
    before = held.detach().numpy()
    (x * 2).sum().backward()
    assert x.grad is held and before.tolist() == [24.0] * 3


def test_calls_on_read_only_views_are_not_cached():
    def last(v):  # with a shape that no other test uses
        return np.flip(v).T

    diagonal = cr.Array(np.eye(7), requires_grad=True).diagonal()
    for _ in range(3):
        with pytest.raises(ValueError, match="read-only"):
            last(diagonal)[0] = 2.0
    x = cr.Array(np.ones((7, 8)), requires_grad=True)
    for _ in range(3):
        column = (x * 1.0)[..., 0]
        last(column)[0] = 2.0
        assert column.tensor.tolist() == [1.0] * 6 + [2.0]
