"""A message never hides the original error, and a warning points at the responsible line of the program."""

from __future__ import annotations

import ast
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.explaining.diagnosis import source, tape
from chainrule._src.messages import names, reading, source_locations
from chainrule.nn import functional as F


def _backward_twice() -> None:
    y = cr.ones(2, requires_grad=True).exp().sum()
    y.backward()
    y.backward()


MISTAKES: list[tuple[Any, type[Exception], str]] = [
    (lambda: cr.ones(2) + cr.ones(3), RuntimeError, "The size of tensor a"),
    (lambda: cr.ones(2, 3) @ cr.ones(2, 3), RuntimeError, "mat1 and mat2 shapes cannot be multiplied"),
    (lambda: cr.ones(2, requires_grad=True).add_(1), RuntimeError, "a leaf Variable that requires grad"),
    (lambda: cr.ones(2, requires_grad=True).numpy(), RuntimeError, "Can't call numpy"),
    (lambda: cr.ones(2).sum().backward(), RuntimeError, "element 0 of tensors does not require grad"),
    (_backward_twice, RuntimeError, "Trying to backward through the graph a second time"),
    (lambda: cr.ones(2).nonsense, AttributeError, "'Tensor' object has no attribute 'nonsense'"),
]


def _broken(*_: Any, **__: Any) -> Any:
    raise SystemError("AST constructor recursion depth mismatch (before=93, after=62)")


@pytest.mark.parametrize(("mistake", "kind", "text"), MISTAKES, ids=[m[2][:20] for m in MISTAKES])
@pytest.mark.parametrize(
    ("module", "name"),
    [(ast, "parse"), (tape, "Names"), (names, "variables"), (reading, "running"), (source, "last_assignment")],
)
def test_where_reading_the_program_fails_the_error_is_the_same(
    mistake: Any, kind: type[Exception], text: str, module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source._parsed.cache_clear()
    unbroken = getattr(module, name)

    def broken(*args: Any, **kwargs: Any) -> Any:
        return unbroken(*args, **kwargs) if source_locations.user_frame() is None else _broken()

    monkeypatch.setattr(module, name, broken if module is not ast else _broken)
    with pytest.raises(kind) as caught:
        mistake()
    assert str(caught.value).startswith(text)
    assert source_locations.user_frame() is not None


def test_threads_that_fail_at_once_get_their_own_errors(program: Any) -> None:
    ran = program("""
from threading import Barrier, Thread
kinds, start = [], Barrier(8)
def work(n):
    start.wait()
    for i in range(5):
        try:
            cr.ones(2 + i) + cr.ones(20 + n)
        except BaseException as error:
            kinds.append(type(error))
threads = [Thread(target=work, args=(n,)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""")
    assert ran.error is None and ran.names["kinds"] == [RuntimeError] * 40


def test_a_handler_that_fails_while_another_message_is_made_does_not_wait_for_it() -> None:
    with reading._PARSER:
        done = threading.Event()
        with pytest.raises(RuntimeError, match="size of tensor a"):
            cr.ones(2) + cr.ones(3)
        done.set()
    assert done.is_set()


X = cr.ones(2, 3)
WARNINGS: list[Any] = [
    lambda: F.mse_loss(X, cr.ones(3)),
    lambda: F.kl_div(X, X),
    lambda: F.l1_loss(X, X, reduce=True),
    lambda: F.binary_cross_entropy(X, X, size_average=True),
    lambda: F.softmax(X),
    lambda: F.log_softmax(X),
    lambda: F.upsample(cr.ones(1, 1, 2, 2), 4),
    lambda: F.dropout2d(cr.ones(2, 3, 4)),
    lambda: cr.cov(cr.ones(1, 1)),
    lambda: np.cov(cr.tensor([[0.0, 1.0]]), ddof=2),
    lambda: np.polyfit(cr.ones(4), cr.ones(4), 2),
    lambda: float(cr.ones(1, requires_grad=True)),
    lambda: (cr.ones(2, requires_grad=True) * 2).grad,
    lambda: cr.add(X, 1, out=cr.ones(2)),
    lambda: cr.autograd.detect_anomaly(),
    lambda: cr.utils.checkpoint.checkpoint(lambda x: x, X),
]


@pytest.mark.parametrize("index", range(len(WARNINGS)))
def test_a_warning_points_at_the_users_line(index: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        WARNINGS[index]()
    assert caught
    line = WARNINGS[index].__code__.co_firstlineno
    assert {(w.filename, w.lineno) for w in caught} == {(__file__, line)}, caught[0]
