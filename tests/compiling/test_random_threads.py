"""The generators of Python and NumPy are shared by all threads: a function only accounts for draws by its own thread."""

import queue
import random
import threading
import warnings

import numpy as np
import pytest

import chainrule as cr
from chainrule._src.compiling import function_trace, generators

pytest.importorskip("scipy.sparse")
import scipy.sparse

X = np.ones(3)


@pytest.fixture
def other():
    """Provide a function that runs calls in another thread and returns their results."""
    asked, answers = queue.SimpleQueue(), queue.SimpleQueue()

    def work():
        while (call := asked.get()) is not None:
            answers.put(call())

    thread = threading.Thread(target=work)
    thread.start()

    def ask(call):
        asked.put(call)
        return answers.get()

    yield ask
    asked.put(None)
    thread.join()


@pytest.fixture
def drawn(other, monkeypatch):
    """Return the numbers that the other thread draws, one of each generator during each recording."""
    found, run = [], function_trace._trace_in_level

    def run_beside(*args):
        try:
            return run(*args)
        finally:
            found.append(other(lambda: (random.random(), np.random.rand())))

    monkeypatch.setattr(function_trace, "_trace_in_level", run_beside)
    monkeypatch.setattr(generators, "_changing", lambda: True)
    return found


@pytest.mark.parametrize("pure", [False, True])
def test_what_another_thread_draws_is_not_the_functions(drawn, pure):
    compiled = cr.compile(lambda x: np.sum(np.sin(x)), pure=pure)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(X) == compiled(X) == np.sum(np.sin(X))
    assert len(drawn) == 1 and compiled.plan(X)


def test_what_another_thread_drew_is_not_drawn_again(drawn):
    with pytest.warns(UserWarning, match="calls print"):
        cr.compile(lambda x: (np.sin(x), print(end=""))[0])(X)
    assert drawn and (random.random(), np.random.rand()) != drawn[-1]


DRAWING = {
    "NumPy's": lambda x: x + np.random.rand(3),
    "Python's": lambda x: x + random.gauss(0, 1),
    "a library's": lambda x: x + scipy.sparse.random(3, 3, 0.9).toarray()[0],
    "before a refusal": lambda x: (x + scipy.sparse.random(3, 3, 0.9).toarray()[0], print(end=""))[0],
}


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("function", DRAWING.values(), ids=DRAWING)
def test_beside_an_idle_thread_a_function_draws_what_it_draws_without_compile(other, function, pure):
    drawn = []
    for f in (function, cr.compile(function, pure=pure)):
        np.random.seed(0)
        random.seed(0)
        drawn.append([f(X).tolist() for _ in range(4)])
    assert drawn[0] == drawn[1]
