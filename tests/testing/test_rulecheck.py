"""rulecheck rejects primitives with one wrong rule, and names it."""

import numpy as np
import pytest

import chainrule.fft
import chainrule.nn.functional  # noqa: F401 -- rows that loaded later would be taken away again
from chainrule._src.rules.kinds import discrete, elementwise, linear, opaque
from chainrule._src.rules.primitive import TABLE
from chainrule.testing import CHECKS, Sample, rulecheck, samples_of


@pytest.fixture
def row():
    """Define a primitive with a decorator, and restore the table afterwards."""
    before = dict(TABLE)
    yield lambda decorator, function: decorator(function)
    TABLE.clear()
    TABLE.update(before)


def swish(x):
    """x·sigmoid(x)."""
    return x / (1 + np.exp(-x))


def right(x):
    s = 1 / (1 + np.exp(-x))
    return s * (1 + x * (1 - s))


TEXT = {"x": "g * (1 + np.exp(-x) * (1 + x)) / (1 + np.exp(-x)) ** 2"}


def test_a_right_row_passes(row):
    rulecheck(row(elementwise(d={"x": right}, formula=TEXT), swish))


@pytest.mark.parametrize(
    "check, options",
    [
        ("vjp", {"d": {"x": lambda x: 1.001 * right(x)}}),
        ("vjp", {"d": {"x": lambda x: right(x) + 1e-6}}),
        ("vjp", {"d": {"x": right}, "vjp": {"x": lambda g, x: 2 * g * right(x)}}),
        ("jvp", {"d": {"x": right}, "jvp": {"x": lambda t, x: -t * right(x)}}),
        ("adjoint", {"d": {"x": right}, "jvp": {"x": lambda t, x: 1.0001 * t * right(x)}}),
        ("formula", {"d": {"x": right}, "formula": {"x": "g * x"}}),
    ],
)
def test_a_wrong_column_is_found(row, check, options):
    broken = row(elementwise(**{"formula": TEXT, **options}), swish)
    with pytest.raises(AssertionError, match=r"primitive swish: .*operand 'x'|primitive swish: adjoint identity"):
        rulecheck(broken, [check])


def test_a_rule_that_is_a_constant_to_the_next_derivative_is_found(row):
    def frozen(x):  # right in value, but hides its dependence on x from the tape
        value = right(getattr(getattr(x, "_raw", x), "primal", getattr(x, "_raw", x)))
        return value + 0 * x

    broken = row(elementwise(d={"x": frozen}, formula=TEXT), swish)
    rulecheck(broken, ["vjp"])
    with pytest.raises(AssertionError, match="derivative of the VJP"):
        rulecheck(broken, ["second_order"])


def test_a_missing_conjugate_is_found(row):
    def exponential(x):
        """exp(x)."""
        return np.exp(x)

    broken = row(elementwise(vjp={"x": lambda g, out: g * out}, formula={"x": "g * out"}), exponential)
    with pytest.raises(AssertionError, match=r"primitive exponential: VJP.* complex at"):
        rulecheck(broken, ["vjp"])


def test_a_rule_that_widens_is_found(row):
    broken = row(elementwise(d={"x": lambda x: right(x) * np.float64(1)}, formula=TEXT), swish)
    with pytest.raises(AssertionError, match=r"VJP's dtype.*got float64, expected float32"):
        rulecheck(broken, ["dtype"])


def test_a_value_that_widens_is_found(row):
    def wide(x):
        """x·sigmoid(x), in float64."""
        return swish(np.asarray(x, np.float64))

    broken = row(elementwise(d={"x": right}, formula=TEXT, accepts="f"), wide)
    with pytest.raises(AssertionError, match=r"value's dtype.*got float64, expected float32"):
        rulecheck(broken, ["dtype"])


def test_a_wrong_batching_rule_is_found(row):
    def backwards(x, *, axis):
        """The order along an axis reversed."""
        return np.flip(x, axis)

    options = {"transpose": {"x": lambda g, *, axis: np.flip(g, axis)}, "formula": {"x": "np.flip(g, axis)"}}
    samples = [{"shapes": [(2, 3)], "axis": 0}]  # counted from the front: an extra leading axis shifts it
    broken = row(linear(**options, samples=samples), backwards)
    rulecheck(broken, ["vjp", "jvp", "adjoint", "second_order"])
    with pytest.raises(AssertionError, match=r"primitive backwards: batch over operands \(0,\)"):
        rulecheck(broken, ["batch"])
    with pytest.raises(
        AssertionError, match=r"primitive backwards: VJP of a batch|primitive backwards: JVP of a batch"
    ):
        rulecheck(broken, ["batched_derivatives"])


def test_a_row_that_does_not_move_is_found(row):
    def doubled(x):
        """Twice x."""
        return 2 * x

    broken = row(
        linear(transpose={"x": lambda g: 2 * g}, formula={"x": "2 * g"}, moves=True, samples=[{"shapes": [(3,)]}]),
        doubled,
    )
    with pytest.raises((AssertionError, IndexError)):
        rulecheck(broken, ["moves"])


def test_saving_too_much_is_found(row):
    greedy = row(elementwise(d={"x": right}, formula=TEXT), swish)
    object.__setattr__(greedy, "saves", ("x", "out"))  # rules of a primitive cannot be replaced otherwise
    object.__setattr__(greedy, "save_users", (None, None))
    with pytest.raises(AssertionError, match=r"the values saved.*got out, expected no out"):
        rulecheck(greedy, ["saves"])


def test_a_wrong_second_output_is_found(row):
    def polar(x, y):
        """Radius and angle."""
        return np.hypot(x, y), np.arctan2(y, x)

    def make(sign):
        TABLE.pop("polar", None)
        return opaque(
            outputs=("r", "phi"),
            vjp={
                "x": lambda g, x, y, r: g[0] * x / r - sign * g[1] * y / (r * r),
                "y": lambda g, x, y, r: g[0] * y / r + g[1] * x / (r * r),
            },
            jvp={
                "x": lambda t, x, y, r: (t * x / r, -sign * t * y / (r * r)),
                "y": lambda t, x, y, r: (t * y / r, t * x / (r * r)),
            },
            formula={"x": "g[0] * x / r - g[1] * y / r ** 2", "y": "g[0] * y / r + g[1] * x / r ** 2"},
            domain=((0.3, 2), (0.3, 2)),
            samples=[{"shapes": [(3,), (3,)]}],
        )(polar)

    rulecheck(make(1))
    with pytest.raises(AssertionError, match="primitive polar: VJP with respect to operand 'x'"):
        rulecheck(make(-1), ["vjp"])
    with pytest.raises(AssertionError, match="primitive polar: JVP with respect to operand 'x'"):
        rulecheck(make(-1), ["jvp"])


def test_discrete_rows_need_no_rules(row):
    def near(x, *, width):
        """Return whether elements are within a width of 0."""
        return abs(x) < width

    rulecheck(row(discrete(samples=[{"width": 0.5}]), near))


def test_a_row_that_says_nothing_about_its_operands(row):
    def spin(x, *, times):
        """Rolled along the last axis."""
        return np.roll(x, times, -1)

    mute = row(
        linear(transpose={"x": lambda g, *, times: np.roll(g, -times, -1)}, formula={"x": "np.roll(g, -times, -1)"}),
        spin,
    )
    with pytest.raises(ValueError, match=r"primitive spin: .*samples=\[\{'shapes'"):
        rulecheck(mute)
    rulecheck(mute, samples=[Sample(((2, 3),), {"times": 1}, ((-2, 2),), ("normal",))])


def test_samples_are_the_same_every_time_and_keep_their_distance():
    for name in ("mul", "amax", "where", "gather"):
        for sample in samples_of(TABLE[name]):
            first, second, other = sample.draw(0), sample.draw(0), sample.draw(1)
            assert all(np.array_equal(a, b) for a, b in zip(first, second))
            floats = [first[i] for i in sample.floating]
            values = np.concatenate([x.ravel() for x in floats]) if floats else np.zeros(0)
            assert len(np.unique(values)) == len(values)
            assert values.size == 0 or np.min(np.abs(2 * values - np.rint(2 * values))) > 0.03
            assert values.size < 2 or not all(np.array_equal(a, b) for a, b in zip(first, other))


@pytest.mark.parametrize(
    "make, holds",
    [
        ("spd", lambda a: np.allclose(a, a.mT) and np.linalg.eigvalsh(a).min() > 0.5),
        ("symmetric", lambda a: np.allclose(a, a.mT)),
        ("lower", lambda a: np.allclose(a, np.tril(a))),
        ("unit_upper", lambda a: np.allclose(a, np.triu(a)) and np.allclose(np.diagonal(a), 1)),
        ("general", lambda a: np.linalg.cond(a) < 10),
    ],
)
def test_matrices_are_what_they_are_called_and_stay_it(make, holds):
    sample = Sample(((3, 3),), {}, ((-2, 2),), (make,))
    (a,) = sample.draw()
    assert holds(a)
    for direction in sample.directions(0, a):
        moved = a + 1e-3 * direction
        assert holds(moved)


def test_check_names():
    assert {"vjp", "jvp", "adjoint", "second_order", "batch", "dtype", "formula", "moves", "saves"} <= set(CHECKS)
