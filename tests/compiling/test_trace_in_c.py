"""The extension appends calls to a trace and runs the first passes over it: the same calls, and the same arrays, as in Python."""

from __future__ import annotations

import gc
import re
import warnings

import numpy as np
import pytest
from fuzz.compiled import packing

import chainrule as cr
from chainrule._src import native
from chainrule._src.compiling import plan
from chainrule._src.compiling.encoding import EncodedCalls
from chainrule._src.compiling.fingerprints import Fingerprint
from chainrule._src.compiling.simplify import Simplified
from chainrule._src.compiling.trace import TraceArrays
from chainrule._src.interpreters import recorder, traced
from chainrule._src.interpreters.trace_types import TracedCall, Var
from chainrule._src.interpreters.traced import flat_leaves
from chainrule._src.tape import engine

pytestmark = pytest.mark.skipif(native.LOOPS is None, reason="there is no extension")

X, Y = np.array([0.5, -1.25, 2.0]), np.array([[1.0], [2.0]])


def oscillator(x):
    position, speed = x[0], x[1]
    for _ in range(4):
        force = x[2] * (1 - position * position) * speed - position
        position, speed = position + 0.1 * speed, speed + 0.1 * force
    return position * position + speed / 2


def in_a_try(x):
    try:
        y = x / 2 * x
    except FloatingPointError:
        return x.sum()
    return (y - 1).sum()


def in_error_states(x):
    with np.errstate(divide="ignore"):
        y = 1 / (x - x)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sum(np.where(np.isfinite(y), y, x) * y * 0)


def without_gradients(x):
    x = cr.tensor(x) if isinstance(x, np.ndarray) else x.tensor
    with cr.no_grad():
        scale = (x * x).sum()
    return (x * scale + x).sum()


def trained(x):
    w = cr.tensor([0.5, 0.25, 1.0], dtype=cr.float64, requires_grad=True)
    (w * cr.tensor(x) - 1).square().sum().backward()
    return w.grad * 2 + w.detach()


def trained_number(x):
    w = cr.tensor(0.5, dtype=cr.float64, requires_grad=True)
    (w * w * w).backward()
    return w.grad * cr.tensor(x)


FUNCTIONS = {
    "numbers": cr.grad(oscillator),
    "broadcast": cr.grad(lambda x: np.sum(x * Y - Y / (x + 3) + 2 * x)),
    "two dtypes": cr.grad(
        lambda x: (cr.logaddexp(cr.as_tensor(x).float(), cr.as_tensor(x)).tanh() * cr.as_tensor(x).float()).sum()
    ),
    "float32": cr.grad(lambda x: np.sum((2 * x.astype(np.float32) - 0.1) * x.astype(np.float32))),
    "ufuncs": cr.grad(lambda x: np.sum(np.sin(x) * np.exp(-x) + np.tanh(2 - x) / np.sqrt(x * x + 1))),
    "powers": cr.grad(lambda x: np.sum(x**2 + 2**x + (x * x) ** 1.5)),
    "comparisons": cr.grad(lambda x: np.sum(np.where(x > 0.1, x * 2, -x))),
    "try": cr.grad(in_a_try),
    "errstate": cr.grad(in_error_states),
    "no_grad": cr.grad(without_gradients),
    "second": cr.grad(lambda x: np.sum(cr.grad(lambda x: np.sum(x * x * x / 3))(x) * x)),
    "forward": cr.jacfwd(lambda x: x * x[0] - 1 / x),
    "vmap": cr.grad(lambda x: np.sum(cr.vmap(lambda a: a * x * 2)(X))),
    "backward": trained,
    "backward of a number": trained_number,
    "NumPy scalars": cr.grad(lambda x: np.sum(Y[1, 0] * x / np.float64(2.5) - x * np.float64(3.0))),
    "plain NumPy scalars": lambda x: Y[1, 0] * x / np.float64(2.5) - x * np.float64(3.0),
    "masks of comparisons": cr.grad(lambda x: np.sum(np.where(x > 0.5, x * x, np.where(Y[0] < x, -x, 0.0)))),
    "plain comparisons": lambda x: np.where(x > 0.5, x * x, np.where(Y[0] < x, -x, 0.0)) + (x == x) + (1.0 - x[1:2]),
    "plain": lambda x: x * 2 + 1 / x - x.sum(),
    "scalars": lambda x: (x[0] * x[1] + 2.5) * x,
    "inside": lambda x: cr.grad(lambda a: np.sum(a * (x * 2 if isinstance(x * 2, np.ndarray) else x * 3)))(x),
    "float": lambda x: float(x[0]) * x + 0.5,
    "indexing": cr.grad(lambda x: sum(x[i] * x[-1] + x[i : i + 2].sum() + x[[0, i]].prod() for i in range(3))),
    "joins": cr.grad(lambda x: np.stack([np.concatenate([x, x * i, x[:1]]) for i in range(3)], axis=1)[1:].sum()),
    "reductions": cr.grad(
        lambda x: (x * Y).mean(0).sum() * (x * Y).sum(axis=1, keepdims=True).max(0)[0] + np.var(x) + np.std(x)
    ),
    "products": cr.grad(
        lambda x: x @ np.outer(x, x + 1) @ (np.outer(x, x).T @ x) + np.dot(x, x) + np.trace(np.outer(x, 2 * x))
    ),
    "solve": cr.grad(lambda x: np.linalg.solve(np.outer(x, x) + np.eye(3) * 9, x) @ x),
    "slogdet": cr.grad(
        lambda x: np.linalg.slogdet(np.outer(x, x) + np.eye(3))[1] + np.linalg.det(np.outer(x, x) + np.eye(3))
    ),
    "cholesky": cr.grad(lambda x: np.linalg.inv(np.linalg.cholesky(np.outer(x, x) + np.eye(3))).sum()),
    "shapes": cr.grad(
        lambda x: np.broadcast_to(x.reshape(3, 1), (3, 2)).T.ravel()[::-1].reshape(2, 3)[:, None].sum(0)[0, 1]
    ),
    "scans": cr.grad(lambda x: (np.cumsum(x) * np.cumprod(x) * np.sort(x)).sum() + np.flip(x) @ np.roll(x, 1)),
    "constants": cr.grad(lambda x: np.tril(np.outer(x, x)).sum() + np.diag(np.outer(x, x)) @ x + np.pad(x, 2).sum()),
    "einsum": cr.grad(lambda x: np.einsum("i,ij,jk->k", x, np.outer(x, x), Y.repeat(3, 1)[[0, 1, 1]]).sum()),
    "complex": cr.grad(lambda x: np.abs(np.fft.fft(x * (1 + 2j)) * np.conj(x)).sum()),
    "tensors": cr.grad(lambda x: cr.logsumexp(cr.as_tensor(x).reshape(3, 1) * x, 0).softmax(0).cumsum(0)[1]),
    "second of a product": cr.grad(lambda x: np.sum(cr.grad(lambda x: x @ np.outer(x, x) @ x)(x) * x)),
    "jvp of a product": lambda x: cr.jvp(lambda x: np.linalg.solve(np.outer(x, x) + np.eye(3), x)[1:], (x,), (x,))[1],
}


@pytest.fixture
def noted(monkeypatch):
    """Return a list that gets the calls of each trace, and its sets of numbers."""
    traces = []
    end = recorder.Recorder.end

    def noting(self):
        order = {}  # number of a Var -> its index in the order of the trace: calls that were appended again skip numbers
        for call in self.calls:
            for x in (*flat_leaves(call.args), *flat_leaves(call.kwargs), *call.results):
                if type(x) is Var:
                    order.setdefault(x.number, len(order))
        state = (
            *(sorted(order[n] for n in numbers if n in order) for numbers in (self.scalars, self.weak)),
            self.narrow,
            len(self.guards),
        )
        traces.append(([_described(call, order) for call in self.calls], state))
        end(self)

    monkeypatch.setattr(recorder.Recorder, "end", noting)
    return traces


def _described(call, order):
    parts = [(order[x.number], x.shape, x.dtype) for x in call.results]
    place = call.code and (call.code.co_name, list(call.code.co_positions())[call.lasti // 2][0])
    function = getattr(call.function, "__name__", str(call.function))
    args = call.args
    if call.function in (np.add, np.multiply) and type(args[0]) is float:
        args = args[::-1]  # C code exchanges the operands of ``2 * x``
    arguments = re.sub(r"%(\d+)", lambda match: f"%{order[int(match[1])]}", repr((args, call.kwargs)))
    return function, call.method, arguments, parts, call.op_name, call.pure, call.kept, place


def compiled(function):
    return cr.compile(function)(X)


def in_python(monkeypatch):
    monkeypatch.setattr(recorder, "_TRACE_UFUNC", None)
    monkeypatch.setattr(recorder, "_TRACE_TEMPLATE", None)
    monkeypatch.setattr(engine, "TRACE_SUM", None)
    for name in ("add", "sub", "mul", "truediv", "radd", "rsub", "rmul", "rtruediv", "neg"):
        method = traced.Traced.__dict__[f"__{name}__"]
        monkeypatch.setattr(traced.Traced, f"__{name}__", method.__func__.__self__[0])
    monkeypatch.setattr(native, "LOOPS", None)


@pytest.mark.parametrize("pack_sizes", [(1 << 40, 1 << 40), (1, 1), (4, 1 << 40)], ids=["objects", "rows", "both"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_traces_are_those_of_python(name, pack_sizes, noted, monkeypatch):
    function = FUNCTIONS[name]
    monkeypatch.setattr(recorder, "clear_templates", lambda: None)
    with warnings.catch_warnings(), packing(*pack_sizes):
        warnings.simplefilter("ignore")
        found = [compiled(function) for _ in range(3)]  # the last one appends calls from templates
        on = native.LOOPS.switch_on(False)
        try:
            with monkeypatch.context() as patch:
                in_python(patch)
                expected = compiled(function)
        finally:
            native.LOOPS.switch_on(on)
    assert len(noted) == 4
    for result, trace in zip(found, noted[:3], strict=True):
        np.testing.assert_array_equal(result, expected)
        for mine, reference in zip(trace[0], noted[3][0], strict=True):
            assert mine == reference
        assert trace[1] == noted[3][1]


#: the arrays of encoded calls that do not depend on the order in which forms are numbered
ARRAYS = (
    "number", "layout", "address", "starts", "operands", "result_starts", "results", "signature", "flags", "first",
)  # fmt: skip


def _renumbered(numbers):
    """Return numbers in order of first occurrence."""
    order = {}
    return [order.setdefault(number, len(order)) for number in numbers.tolist()]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_passes_are_those_of_python(name, monkeypatch):
    monkeypatch.setattr(recorder, "clear_templates", lambda: None)
    programs = []
    make = plan.ExecutionPlan.__init__

    def keeping(self, program, *args, **kwargs):
        programs.append(program)
        make(self, program, *args, **kwargs)
        both = []
        for extension in (native.LOOPS, None):
            with monkeypatch.context() as patch:
                patch.setattr(native, "LOOPS", extension)
                encoded = EncodedCalls(program.calls)
                fingerprint = Fingerprint(encoded)
                assert fingerprint == Fingerprint(EncodedCalls(program.calls))
                assert len(program.calls) < 2 or fingerprint != Fingerprint(EncodedCalls(list(program.calls)[::-1]))
                calls = {name: getattr(encoded, name) for name in ARRAYS}
                simplified = Simplified(program, encoded)
                trace = TraceArrays(program, simplified, plan.LOWERER)
                arrays = calls | {name: x for name, x in vars(trace).items() if isinstance(x, np.ndarray)}
                counts = simplified.dropped, simplified.merged, simplified.folded
                remaining = [(id(call), used) for call, used in simplified.calls]
                forms = _renumbered(encoded.form), encoded.calls, encoded.variables, encoded.layouts
                both.append((forms, counts, remaining, {name: x.tolist() for name, x in arrays.items()}))
        assert both[0] == both[1]

    monkeypatch.setattr(plan.ExecutionPlan, "__init__", keeping)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):  # the last trace consists of calls from templates
            cr.compile(FUNCTIONS[name])(X)
    assert programs


def test_a_trace_is_freed_without_the_collector():
    """A reference cycle would keep all calls and arrays of a trace alive."""

    def repeated(x):
        for _ in range(300):
            x = np.sin(x) * 0.5 + np.roll(x, 1)
        return x.sum()

    gc.collect()
    gc.disable()
    try:
        before = sum(type(x) is TracedCall for x in gc.get_objects())
        cr.compile(cr.grad(repeated))(X)
        assert sum(type(x) is TracedCall for x in gc.get_objects()) - before < 300
    finally:
        gc.enable()
