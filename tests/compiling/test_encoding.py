"""The integer arrays of recorded calls: forms, signatures and Vars, with and without the extension."""

import operator

import numpy as np
import pytest
from compiling.recording import ProgramBuilder

from chainrule._src import native
from chainrule._src.compiling.encoding import EncodedCalls
from chainrule._src.compiling.fingerprints import Fingerprint
from chainrule._src.compiling.plan import LOWERER
from chainrule._src.compiling.simplify import Simplified
from chainrule._src.compiling.trace import TraceArrays
from chainrule._src.interpreters.trace_types import TracedCall, Var

X = np.array([0.5, -1.25, 2.0])
needs_extension = pytest.mark.skipif(not native.AVAILABLE, reason="the extension is not built")


@pytest.fixture(params=["C", "Python"], autouse=True)
def extension(request, monkeypatch):
    if request.param == "Python":
        monkeypatch.setattr(native, "LOOPS", None)
    elif native.LOOPS is None:
        pytest.skip("there is no extension")


def forms(calls):
    """Return the form of each call, numbered in order of first occurrence."""
    order = {}
    return [order.setdefault(form, len(order)) for form in EncodedCalls(calls).form.tolist()]


def test_numbers_of_other_types_and_signs_are_other_forms():
    p = ProgramBuilder(X)
    (x,) = p.inputs
    numbers = [1, 1.0, True, np.float64(1.0), np.float32(1.0), 0.0, -0.0, 0, 1 << 70, 1j, 1.0, -0.0, 1, 1j, 1 << 70]
    for number in numbers:
        p(np.multiply, x, number)
    p(np.multiply, 1.0, x)
    p(np.add, x, 1.0)
    assert forms(p.calls) == [*range(10), 1, 6, 0, 9, 8, 10, 11]


def test_methods_keywords_and_slices_are_parts_of_forms():
    p = ProgramBuilder(X)
    (x,) = p.inputs
    p(np.add, x, method="reduce")
    p(np.add, x, method="accumulate")
    p(np.sum, x, axis=0)
    p(np.sum, x, axis=-1)
    p(operator.getitem, x, slice(0, 2))
    p(operator.getitem, x, slice(0, 2, None))
    p(operator.getitem, x, slice(False, 2))
    assert forms(p.calls) == [0, 1, 2, 3, 4, 4, 5]


def test_calls_whose_arguments_have_no_hash_are_not_merged():
    p = ProgramBuilder(X)
    (x,) = p.inputs
    p.outputs = [p(np.sum, x, where=np.array([True, False, True])) for _ in range(3)]
    assert forms(p.calls) == [0, 1, 2]
    assert Simplified(p).merged == 0


def test_layouts_are_parts_of_signatures():
    p = ProgramBuilder(X, X.astype(np.float32), X[None], np.arange(6.0)[::2], -X)
    for x in p.inputs:
        p(np.negative, x)
    encoded = EncodedCalls(p.calls)
    assert forms(p.calls) == [0] * 5
    assert encoded.signature.tolist() == [0, 1, 2, 3, 0]
    assert encoded.first.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("numbers", [[-1, -1, -1, -1], [7, 7, 7, 7], [1 << 50, 1 << 50, 1 << 60, 0], [3, 2, 1, 0]])
def test_vars_are_told_apart_whatever_their_numbers_are(numbers):
    p = ProgramBuilder(X, X + 1)
    x, y = p.inputs
    out = p(np.add, p(np.multiply, x, y), x)
    for var, number in zip([x, y, p.calls[0].results[0], out], numbers, strict=True):
        var.number = number
    encoded = EncodedCalls(p.calls)
    assert encoded.variables == [x, y, p.calls[0].results[0], out]
    assert encoded.operands.tolist() == [0, 1, 2, 0] and encoded.starts.tolist() == [0, 2, 4]
    assert encoded.results.tolist() == [2, 3] and encoded.number.tolist() == numbers
    assert encoded.inputs() == [x, y]


def test_the_computed_vars_with_some_numbers():
    p = ProgramBuilder(X)
    results = [p(np.multiply, p.inputs[0], k) for k in range(4)]
    encoded = EncodedCalls(p.calls)
    wanted = {results[0].number, results[3].number, p.inputs[0].number, 1000, -1}
    assert encoded.computed(wanted) == {var.number: var for var in (results[0], results[3])}
    assert encoded.computed(set()) == {}
    assert EncodedCalls([]).computed({1}) == {}


def test_fingerprints_depend_on_functions_numbers_and_operands():
    def of(*calls):
        p = ProgramBuilder(X, X + 1)
        for function, i, number in calls:
            p(function, p.inputs[i], number)
        return Fingerprint(EncodedCalls(p.calls))

    assert of((np.add, 0, 1.0), (np.power, 1, 2)) == of((np.add, 0, 1.0), (np.power, 1, 2))
    for others in [
        [(np.add, 0, 1), (np.power, 1, 2)],
        [(np.add, 1, 1.0), (np.power, 1, 2)],
        [(np.power, 1, 2), (np.add, 0, 1.0)],
        [(np.subtract, 0, 1.0), (np.power, 1, 2)],
        [(np.add, 0, 1.0)],
        [],
    ]:
        assert of((np.add, 0, 1.0), (np.power, 1, 2)) != of(*others)


def test_calls_are_merged_by_the_operands_that_remain():
    p = ProgramBuilder(X, constants=[X + 1])
    (x,), (c,) = p.inputs, p.constants
    a, b = p(np.multiply, x, 2.0), p(np.multiply, x, 2.0)
    doubled = [p(np.sin, a), p(np.sin, b)]
    drawn = [p(np.cos, x, pure=False), p(np.cos, x, pure=False)]
    folded = p(np.add, p(np.exp, c), 1.0)
    p(np.tanh, x)
    p.outputs = [*doubled, *drawn, folded]
    simplified = Simplified(p)
    assert (simplified.dropped, simplified.merged, simplified.folded) == (1, 2, 2)
    assert [simplified.original(var) for var in (b, doubled[1], drawn[1], x)] == [a, doubled[0], drawn[1], x]
    assert [call.results[0] for call, _ in simplified.calls] == [a, doubled[0], *drawn]
    assert simplified.calls[1] == (p.calls[2], [a]) and simplified.calls[1:2] == [(p.calls[2], [a])]
    np.testing.assert_array_equal(simplified.constants[folded], np.exp(X + 1) + 1)


@needs_extension
@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize("copied", [(), (0,), (2,), (0, 1, 2)])
def test_copies_among_views_have_their_own_memory(count, copied):
    """Each call is a view or a copy by itself, although calls with one signature are examined together."""
    p = ProgramBuilder(np.arange(6.0), *[np.arange(6.0) + k for k in range(count)])
    views = []
    for k, x in enumerate(p.inputs[1:]):
        view = p(operator.getitem, x, slice(2, None))
        if k in copied:
            view.array = view.array.copy()
        views.append(view)
    p.outputs = [p(np.multiply, view, 2.0) for view in views]
    trace = TraceArrays(p, Simplified(p), LOWERER)
    for k, (x, view) in enumerate(zip(p.inputs[1:], views, strict=True)):
        own = trace.slot(view) if k in copied else trace.slot(x)
        assert (trace.root[trace.slot(view)], trace.offset[trace.slot(view)]) == (own, 0 if k in copied else 16)
    assert len(trace.position) == count + len(copied)


@needs_extension
def test_views_of_views_have_the_offsets_from_the_first_array():
    p = ProgramBuilder(np.arange(24.0).reshape(4, 6))
    x = p.inputs[0]
    for _ in range(3):
        x = p(operator.getitem, x, slice(1, None))
    row = p(operator.getitem, x, (0, slice(None, None, -1)))
    p.outputs = [p(np.negative, p(operator.getitem, row, 2))]
    trace = TraceArrays(p, Simplified(p), LOWERER)
    slot = trace.slot(p.calls[-2].results[0])
    assert (trace.root[slot], trace.offset[slot]) == (trace.slot(p.inputs[0]), 8 * (18 + 3))
    assert trace.index.tolist() == [-1] * 5 + [0] and trace.position.tolist() == [5]


def test_the_calls_that_return_views():
    p = ProgramBuilder(np.arange(12.0).reshape(3, 4), np.arange(3))
    x, y = p.inputs
    calls = [
        (operator.getitem, x, slice(1, None)), (operator.getitem, x, y), (operator.getitem, x, slice(3, None)), (np.negative, x),
        (np.transpose, x), (np.ravel, x), (np.split, x, 3), (np.reshape, y, (3, 1)), (np.broadcast_to, y, (2, 3)),
        (operator.getitem, x, (slice(None, None, -1), slice(None, None, -2))), (np.copy, x), (np.asarray, x),
    ]  # fmt: skip
    for function, *args in calls:
        p(function, *args)
    expected = [
        call
        for call in p.calls
        if len(call.results) == 1
        and any(np.may_share_memory(call.results[0].array, x.array) for x in call.args if type(x) is Var)
    ]
    assert EncodedCalls(p.calls).views() == expected
    assert [p.calls.index(call) for call in expected] == [0, 4, 5, 7, 8, 9, 11]
    assert EncodedCalls([]).views() == []


def test_bad_calls_and_arrays_are_refused():
    if native.LOOPS is not None:
        with pytest.raises(TypeError, match="TracedCalls"):
            EncodedCalls([1])
        with pytest.raises(TypeError, match="lacks arguments"):
            EncodedCalls([TracedCall.__new__(TracedCall)])
        calls = (np.zeros(1, np.int32),) * 4
        with pytest.raises(TypeError, match="another dtype"):
            native.LOOPS.mark_live(calls, np.zeros(0, bool), np.zeros(0, bool), np.zeros(0))
        with pytest.raises(TypeError, match="four arrays"):
            native.LOOPS.mark_live(calls[1:], np.zeros(0, bool), np.zeros(0, bool), np.zeros(0, bool))
