"""The number of Python functions that common programs call: a deterministic measure of the overhead of small operations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.arrays.memory import paused_collector
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.versions import BEFORE_WRITE

pytestmark = pytest.mark.skipif(LOOPS is None, reason="without the extension operations call more of Python")

INLINED = {"<listcomp>", "<setcomp>", "<dictcomp>"}  # calls only until Python 3.11


@pytest.fixture(autouse=True)
def nobody_listens_to_writes() -> Iterator[None]:
    listening = BEFORE_WRITE[:]
    BEFORE_WRITE.clear()
    yield
    BEFORE_WRITE[:] = listening


def calls(program: Callable[[], Any]) -> int:
    """Return the number of Python function calls of a program, including nested calls."""
    count = -1  # the program

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_name not in INLINED

    with paused_collector():  # finalizers of other tests' objects are calls, too
        sys.setprofile(profile)
        try:
            program()
        finally:
            sys.setprofile(None)
    return count


def leaf(*values: float) -> cr.Tensor:
    return cr.tensor(values, requires_grad=True)


def test_a_product_and_its_backward_pass() -> None:
    x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def program() -> None:
        (x * z).sum().backward()

    program()
    assert calls(program) <= 12


def test_a_function_of_numpy() -> None:
    x = leaf(1.0, 2.0)
    np.exp(x)
    assert calls(lambda: np.exp(x)) == 0


def test_per_example_gradients() -> None:
    program = cr.func.vmap(cr.func.grad(lambda v: (v * v).sum()))
    examples = cr.ones(4, 3)
    program(examples)
    assert calls(lambda: program(examples)) <= 120


@pytest.mark.parametrize("recorded, most", [(True, 25), (False, 14)])
def test_an_addition_in_place(recorded: bool, most: int) -> None:
    first, second = [leaf(1.0, 2.0) * 2 if recorded else cr.ones(2) for _ in range(2)]
    first.add_(1)
    assert calls(lambda: second.add_(1)) <= most


def test_an_addition_in_place_to_a_part() -> None:
    first, second = [(leaf(1.0, 2.0) * 2)[:1] for _ in range(2)]
    first.add_(1)
    assert calls(lambda: second.add_(1)) <= 56
