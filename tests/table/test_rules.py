"""All rules of all primitives in the table, for all samples."""

import importlib
import pkgutil
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule
import chainrule._src.table
from chainrule._src.rules import kinds
from chainrule._src.rules.batching import each_example
from chainrule._src.rules.primitive import TABLE, TableError, unsupported
from chainrule._src.table.matrix_functions import sylvester
from chainrule.testing import CHECKS, Sample, rulecheck, samples_of
from chainrule.testing.rulecheck import every_sample
from tests.table.chosen import chosen_samples

for module in pkgutil.iter_modules(chainrule._src.table.__path__):
    importlib.import_module(f"chainrule._src.table.{module.name}")

ROWS = sorted(TABLE)
ELEMENTWISE = sorted(name for name, row in TABLE.items() if row.kind == "elementwise")
REDUCTIONS = sorted(
    name
    for name, row in TABLE.items()  # (var and std have no value if a correction leaves no degrees of freedom)
    if row.kind != "discrete"
    and row.operands == ("x",)
    and {"axis", "keepdims"} <= set(row.parameters) <= {"axis", "keepdims", "dims", "ord"}
)
SCANS = sorted(
    name
    for name, row in TABLE.items()
    if row.kind != "discrete"
    and row.parameters == ("axis",)
    and row.operands == ("x",)
    and "axis" in repr(row.samples)
    and not any(isinstance(s["axis"], tuple) for s in row.samples)
)


@pytest.mark.parametrize("name", ROWS)
def test_row(name):
    rulecheck(TABLE[name], samples=chosen_samples(TABLE[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_every_sample_of_a_row(name):
    rulecheck(TABLE[name])


def test_every_row_is_sampled():
    for name in ROWS:
        assert every_sample(TABLE[name]), name


def test_the_table_is_complete():
    assert len(REDUCTIONS) >= 6 and len(SCANS) >= 5 and len(ELEMENTWISE) >= 60
    for row in TABLE.values():
        assert row.batch is not None and row.doc
        if row.differentiable:
            ruled = {name for name, rule in row.vjps.items() if not isinstance(rule, unsupported)}
            assert ruled and row.pullback is not None and row.jvp is not None and set(row.formula) >= ruled


# -- incomplete and overspecified primitives --------------------------------------------------------------------------


def thing(x):
    """A thing."""
    return x


@pytest.mark.parametrize(
    "declare, problem",
    [
        (
            kinds.elementwise(d={"x": 1}, vjp={"x": lambda g: g}, jvp={"x": lambda t: t}),
            "nothing reads the partial of 'x'",
        ),
        (kinds.elementwise(jvp={"x": lambda t: t}), "no VJP"),
        (kinds.elementwise(), "no derivative"),
        (kinds.linear(transpose={"x": lambda g: g}, formula={"y": "g"}), "a formula for 'y'"),
        (kinds.opaque(shared={"u": lambda g: g}, vjp={"x": lambda g: g}, jvp={"x": lambda t: t}), "no rule reads 'u'"),
    ],
)
def test_a_cell_that_nothing_reads_is_an_error(declare, problem):
    with pytest.raises(TableError, match=problem):
        declare(thing)
    assert "thing" not in TABLE


def test_columns_of_a_row_cannot_be_replaced():
    with pytest.raises(TableError, match="primitive exp is complete: its pullback cannot be replaced"):
        TABLE["exp"].pullback = TABLE["sin"].pullback


def test_what_rules_share_is_computed_once_and_saved_for_them():
    calls = []

    def common(g, x):
        calls.append(1)
        return g * x

    row = kinds.opaque(
        shared={"u": common},
        vjp={"x": lambda u: u, "y": lambda u, out: u * out},
        jvp={"x": lambda t: t, "y": lambda t: t},
        listed=False,
    )(lambda x, y: x + y)
    x, y = (chainrule.tensor([v], requires_grad=True) for v in (2.0, 3.0))
    out = row(x, y)
    assert (row.saves, row.reads) == (("x", "out"), {"x": ("g", "x"), "y": ("g", "x", "out")})
    out.backward(chainrule.tensor([1.0]))
    assert (x.grad.tolist(), y.grad.tolist(), len(calls)) == ([2.0], [10.0], 1)


def weighted(x, *, a, b, label="w"):
    """a·b·x"""
    return a * b * x


def test_a_rule_may_read_all_parameters_that_it_does_not_name():
    row = kinds.linear(
        transpose=lambda g, *, b, **params: weighted(g * b, b=1, **params),
        samples=[kinds.call((3,), a=2.0, b=3.0)],
    )(weighted)
    try:
        assert row.names_read(row.vjps["x"]) == ("g", "b", "a")  # except the label, which has a default
        assert row.formula == {"x": "weighted(g * b, b=1, a=a)"}
        rulecheck(row, [check for check in CHECKS if check != "formula"])
    finally:
        del TABLE["weighted"]


def test_what_is_linear_in_each_operand_needs_no_jvp():
    row = kinds.opaque(
        vjp={
            "x": lambda g, y: g * y.sum(),
            "y": lambda g, x, y: np.broadcast_to((g * x).sum(-1, keepdims=True), y.shape),
        },
        multilinear=True,
        samples=[kinds.call((2, 3), (2, 1))],
        accepts="f",
        listed=False,
        batch=each_example,
    )(lambda x, y: x * np.sum(y))
    assert TABLE["stack_mm"].jvp is not None
    tangent = row.jvp(
        (np.ones((2, 3)), np.ones((2, 1))), (np.full((2, 3), 2.0), np.full((2, 1), 5.0)), np.ones((2, 3)), {}
    )
    np.testing.assert_array_equal(tangent, np.full((2, 3), 2 * 2 + 10))


@pytest.mark.parametrize(
    "name, text",
    [
        (
            "convolution",
            "convolution_input(g, np.conjugate(weight), size=x_shape[2:], stride=stride, padding=padding, "
            "dilation=dilation, groups=groups)",
        ),
        ("tanh", "g * (1 - out ** 2)"),  # the text of the rule
        ("acos", "-g / np.sqrt(1 - x ** 2)"),  # derived from the partial
        ("exp2", "g * out * np.log(2)"),  # constants by their expression
        ("clamp_min", "g * (x >= y)"),  # a helper by its result
        ("div", "g / y"),
        ("solve", "-np.linalg.solve(H(x), g) @ H(out)"),  # declared
        ("heaviside", "0 * g"),  # a number
    ],
)
def test_formulas_are_read_off_the_rules(name, text):
    assert TABLE[name].formula["x"] == text


def test_formulas_contain_the_shared_values_of_rules():
    assert sylvester.formula["x"] == "-sylvester(H(x), H(y), g) @ H(out)"


# -- random shapes -----------------------------------------------------------------------------------------------------

bounded = settings(max_examples=25, deadline=None, derandomize=True, database=None)
dims = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@st.composite
def broadcast_shapes(draw, n):
    """Return n shapes that broadcast to one."""
    target = draw(dims)
    shapes = []
    for _ in range(n):
        shape = tuple(1 if draw(st.booleans()) and draw(st.booleans()) else k for k in target)
        shapes.append(shape[draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0 :])
    return tuple(shapes)


@bounded
@given(st.data())
def test_elementwise_rows_on_any_shapes(data):
    row = TABLE[data.draw(st.sampled_from(ELEMENTWISE))]
    pattern = data.draw(st.sampled_from(every_sample(row)[:1]))
    pattern = data.draw(st.sampled_from(every_sample(row)))
    sample = replace(
        pattern,
        shapes=data.draw(broadcast_shapes(len(row.operands))),
        layout=data.draw(st.sampled_from(["C", "F", "strided"])),
    )
    rulecheck(row, samples=[sample])


@bounded
@given(st.data())
def test_reductions_on_any_shape(data):
    row = TABLE[data.draw(st.sampled_from(REDUCTIONS))]
    low = 0 if row.name == "sum" else 1  # the others have no value for empty arrays
    shape = data.draw(st.lists(st.integers(low, 3), max_size=3).map(tuple))
    axes = tuple(sorted(data.draw(st.sets(st.sampled_from(range(-len(shape), 0)))))) if shape else ()
    pattern = data.draw(st.sampled_from(samples_of(row)))
    sample = replace(
        pattern,
        shapes=(shape,),
        params={**pattern.params, "axis": axes, "keepdims": data.draw(st.booleans())},
        layout=data.draw(st.sampled_from(["C", "F"])),
        complex=data.draw(st.booleans()) and row.name in ("sum", "mean", "prod"),
    )
    rulecheck(row, samples=[sample])


@bounded
@given(st.data())
def test_scans_on_any_shape(data):
    row = TABLE[data.draw(st.sampled_from(SCANS))]
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    axis = data.draw(st.integers(-len(shape), -1))
    rulecheck(row, samples=[Sample((shape,), {"axis": axis}, ((-2, 2),), ("normal",))])


def test_a_rule_never_sees_ordinary_warnings():
    """Sample inputs are inside every domain: a NumPy warning indicates a division by zero hidden behind a ``where``."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        for name in ROWS:
            rulecheck(TABLE[name], ["vjp"], samples=every_sample(TABLE[name])[:2])
