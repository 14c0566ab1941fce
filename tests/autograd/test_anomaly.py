"""Anomaly mode: the operation that produced the first NaN, its source location, and its numbers."""

import threading
import warnings

import numpy as np
import pytest

from behaviour import differs, leaf, torch

pytestmark = [
    pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled"),
    pytest.mark.filterwarnings("ignore:Error detected in"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
autograd = torch.autograd


def error_of(function):
    with pytest.raises(RuntimeError) as caught:
        function()
    return str(caught.value)


# -- the mode --------------------------------------------------------------------------------------------------------


def test_entering_warns():
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled. This mode will increase the runtime"):
        autograd.detect_anomaly()


def test_it_is_on_inside_and_off_outside():
    assert not torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    with autograd.detect_anomaly():
        assert torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
        with autograd.detect_anomaly(check_nan=False):
            assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
            with autograd.set_detect_anomaly(False):
                assert not torch.is_anomaly_enabled()
            assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
        assert torch.is_anomaly_check_nan_enabled()
    assert not torch.is_anomaly_enabled()


def test_an_error_inside_leaves_the_mode():
    with pytest.raises(KeyError), autograd.detect_anomaly():
        raise KeyError
    assert not torch.is_anomaly_enabled()
    torch.sqrt(leaf(0.0) * 0).sum().backward()  # nan that causes no error


def test_set_detect_anomaly_as_a_function():
    autograd.set_detect_anomaly(True)
    try:
        assert torch.is_anomaly_enabled()
        with pytest.raises(RuntimeError, match="SqrtBackward0"):
            (torch.sqrt(leaf(0.0)) * 0).sum().backward()
    finally:
        autograd.set_detect_anomaly(False)
    assert not torch.is_anomaly_enabled()
    torch.set_anomaly_enabled(True, False)
    assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    torch.set_anomaly_enabled(False)
    assert not torch.is_anomaly_enabled()


def test_the_module_has_the_names():
    from importlib import import_module

    module = import_module(f"{torch.__name__}.autograd.anomaly_mode")
    assert module.detect_anomaly is autograd.detect_anomaly and module.set_detect_anomaly is autograd.set_detect_anomaly


@differs("the mode is the process's")
def test_it_is_the_threads():
    inside, left = threading.Event(), threading.Event()
    seen = []

    def other():
        inside.wait()
        try:
            seen.append(torch.is_anomaly_enabled())
            (torch.sqrt(leaf(0.0)) * 0).sum().backward()
            seen.append("no error")
        finally:
            left.set()

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    with autograd.detect_anomaly():
        inside.set()
        left.wait()
    thread.join()
    assert seen == [False, "no error"]


@differs("the mode is not made of watches there")
def test_it_can_be_switched_off_from_under_another_watch():
    autograd.set_detect_anomaly(True)
    with autograd.profiler.profile() as prof:
        autograd.set_detect_anomaly(False)
        (torch.sqrt(leaf(0.0)) * 0).sum().backward()
    assert not torch.is_anomaly_enabled() and len(prof.function_events) == 6
    (torch.sqrt(leaf(0.0)) * 0).sum().backward()
    from chainrule._src.tape.modes import ACTIVE_MODES, LOCAL

    assert LOCAL.watch is None and not ACTIVE_MODES


# -- backward --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, name, nth",
    [
        (lambda x: torch.sqrt(x) * 0, "SqrtBackward0", 0),
        (lambda x: torch.where(x > 0, x**0.5, torch.zeros_like(x)), "PowBackward0", 0),
        (lambda x: torch.where(x > 0, x / x, x), "DivBackward0", 0),
        (lambda x: torch.zeros_like(x) * torch.acos(x + 1), "AcosBackward0", 0),
    ],
)
def test_the_operation_and_the_output_are_named(make, name, nth):
    x = leaf(1.0, 0.0)
    with autograd.detect_anomaly():
        text = error_of(lambda: make(x).sum().backward())
    assert text.startswith(f"Function '{name}' returned nan values in its {nth}th output.")
    assert x.grad is None


def test_without_check_nan_nothing_is_looked_at():
    x = leaf(0.0)
    with autograd.detect_anomaly(check_nan=False):
        (torch.sqrt(x) * 0).sum().backward()
    assert x.grad.isnan().all()


def test_infinities_are_not_nan():
    x = leaf(0.0)
    with autograd.detect_anomaly():
        torch.sqrt(x).sum().backward()
    assert x.grad.tolist() == [float("inf")]


def test_the_traceback_of_the_forward_pass_is_shown():
    x = leaf(0.0)
    with autograd.detect_anomaly(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = torch.sqrt(x)  # the line to find
        with pytest.raises(RuntimeError):
            (y * 0).sum().backward()
    (text,) = [str(w.message) for w in caught if "Error detected in" in str(w.message)]
    assert text.startswith("Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n")
    assert "y = torch.sqrt(x)  # the line to find" in text and "test_anomaly.py" in text


def test_without_a_forward_pass_in_the_mode_that_is_said():
    y = (torch.sqrt(leaf(0.0)) * 0).sum()
    with autograd.detect_anomaly(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"):
            y.backward()
    (text,) = [str(w.message) for w in caught if "Error detected in" in str(w.message)]
    assert "No forward pass information available. Enable detect anomaly during forward pass" in text


def test_the_backward_pass_of_a_backward_pass_shows_both():
    x = leaf(0.0)
    with autograd.detect_anomaly(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (g,) = autograd.grad((x**1.5).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="returned nan values"):
            (g * 0).sum().backward()
    texts = [str(w.message) for w in caught if "calculation was induced" in str(w.message)]
    assert len(texts) == 1 and "Previous calculation was induced by PowBackward0" in texts[0]
    assert (
        "Traceback of forward call that induced the previous calculation:" in texts[0] and "test_anomaly.py" in texts[0]
    )


class Broken(autograd.Function):
    @staticmethod
    def forward(ctx, x, kind):
        ctx.kind = kind
        return x * 2

    @staticmethod
    def backward(ctx, g):
        if ctx.kind == "raise":
            raise ValueError("from the rule")
        return g * float("nan"), None


def test_a_function_of_the_users_is_named():
    with autograd.detect_anomaly():
        text = error_of(lambda: Broken.apply(leaf(1.0), "nan").sum().backward())
    assert text.startswith("Function 'BrokenBackward' returned nan values in its 0th output.")


def test_an_error_in_a_rule_shows_the_forward_line():
    with autograd.detect_anomaly(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = Broken.apply(leaf(1.0), "raise")  # called here
        with pytest.raises(ValueError, match="from the rule"):
            y.sum().backward()
    (text,) = [str(w.message) for w in caught if "Error detected in" in str(w.message)]
    assert text.startswith("Error detected in BrokenBackward.") and "# called here" in text


def test_nodes_remember_their_lines_only_in_the_mode():
    with autograd.detect_anomaly():
        y = leaf(1.0) * 2
    assert "traceback_" in y.grad_fn.metadata
    assert "traceback_" not in (leaf(1.0) * 2).grad_fn.metadata


def test_autograd_grad_with_inputs():
    x = leaf(0.0)
    with autograd.detect_anomaly(), pytest.raises(RuntimeError, match="SqrtBackward0"):
        autograd.grad((torch.sqrt(x) * 0).sum(), x)


# -- extensions -------------------------------------------------------------------------------------------------------

more = differs("its error has the first sentence only")


@more
def test_index_numbers_line_rule_and_remedy_are_said():
    x = leaf(4.0, 0.0)
    with autograd.detect_anomaly():
        y = torch.where(x > 0, torch.sqrt(x), 0)  # masked
        text = error_of(lambda: y.sum().backward())
    assert text.splitlines() == [
        "Function 'SqrtBackward0' returned nan values in its 0th output.",
        text.splitlines()[1],
        "The rule is g * 0.5 / out, where g is the incoming gradient. At this index, g = 0.0, out = 0.0.",
        "The incoming gradient is 0, and 0 times the infinite slope of sqrt is nan. A mask such as where(x > 0, "
        "sqrt(x), 0) masks the value, not the gradient. Mask the input, too: where(x > 0, sqrt(where(x > 0, x, 1.)), 0).",
        "To avoid it: it is not real below 0, and its slope at 0 is infinite, so add a small number inside, sqrt(x + eps).",
    ]
    assert "This is the gradient of sqrt for its operand x, at index (1,), called at test_anomaly.py:" in text
    assert "y = torch.where(x > 0, torch.sqrt(x), 0)  # masked" in text


@more
def test_the_remedy_helps():
    x = leaf(4.0, 0.0)
    with autograd.detect_anomaly():
        torch.where(x > 0, torch.sqrt(torch.where(x > 0, x, 1.0)), 0).sum().backward()
    assert x.grad.tolist() == [0.25, 0.0]


@more
def test_a_nan_born_in_the_forward_pass_is_found():
    x = leaf(2.0, 3.0, -1.0)
    with autograd.detect_anomaly():
        y = torch.log(x.reshape(1, 3))  # first NaN
        z = y.exp() * 2
        text = error_of(lambda: (z * z).sum().backward())
    assert "In the forward pass: log computed the first nan at index (0, 2), with x = -1.0 (test_anomaly.py:" in text
    assert "# first NaN" in text and "logarithm" in text


@more
@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda x: torch.log(x - 2), "log computed the first nan at index (0,), with x = -1.0"),
        (lambda x: (x * 0) / (x * 0), "div computed the first nan at index (0,), with x = 0.0, y = 0.0"),
        (lambda x: x / 0 - x / 0, "sub computed the first nan at index (0,), with x = inf, y = inf"),
        (lambda x: (x / 0).mul(0), "mul computed the first nan at index (0,), with x = inf, y = 0"),
        (lambda x: (x - 3) ** 0.5, "pow computed the first nan at index (0,), with x = -2.0, y = 0.5"),
        (
            lambda x: torch.stack([x / 0, -x / 0]).sum(0),
            "sum computed the first nan at index (0,), from operands without nan",
        ),
    ],
)
def test_forward_raises_at_once(make, expected):
    with autograd.detect_anomaly(forward=True):
        text = error_of(lambda: make(leaf(1.0)))
    assert text.startswith("Function ") and "returned nan values in the forward pass" in text
    assert expected in text
    assert not torch.is_anomaly_enabled()


@more
def test_a_nan_that_was_there_is_not_born():
    x = leaf(1.0, float("nan"))
    with autograd.detect_anomaly(forward=True):
        y = torch.exp(x) * 2 + x.sum()
        text = error_of(lambda: (y * y).sum().backward())
    assert "In the forward pass: The operand of exp" in text


@more
def test_a_nan_beside_another_is_born():
    with autograd.detect_anomaly(forward=True):
        text = error_of(lambda: torch.sqrt(leaf(float("nan"), 1.0, -4.0)))
    assert "sqrt computed the first nan at index (2,), with x = -4.0" in text


@more
def test_a_nan_that_the_user_gave_to_backward():
    x = leaf(1.0, 2.0)
    with autograd.detect_anomaly():
        text = error_of(lambda: (x * 2).backward(torch.tensor([1.0, float("nan")], dtype=torch.float64)))
    assert "The incoming gradient already contained nan: it was passed to backward()" in text


@more
def test_a_broadcast_operand():
    x, y = leaf(1.0, 2.0), leaf(0.0)
    with autograd.detect_anomaly():
        text = error_of(lambda: torch.where(y > 0, x / y, 0).sum().backward())
    assert "DivBackward0" in text and "y = 0.0" in text


@more
def test_forward_mode():
    with autograd.detect_anomaly():
        text = error_of(lambda: torch.func.jvp(torch.sqrt, (torch.tensor([1.0, 0.0]),), (torch.tensor([1.0, 0.0]),)))
    assert text.startswith("Function 'sqrt' returned nan values in its tangent, in forward mode, at index (1,)")
    assert "At this index, x = 0.0, tangent of x = 0.0." in text and "mask the input" in text


@more
def test_forward_mode_of_a_nan_value():
    def run():
        return torch.func.jvp(torch.sqrt, (torch.tensor([-1.0]),), (torch.tensor([1.0]),))

    with autograd.detect_anomaly():
        text = error_of(run)
    assert text.startswith("Function 'sqrt' returned nan values in its tangent, in forward mode, at index (0,)")
    assert "sqrt computed the first nan at index (0,), with x = -1.0" in text
    with autograd.detect_anomaly(forward=True):
        text = error_of(run)
    assert text.startswith("Function 'sqrt' returned nan values in the forward pass. sqrt computed the first nan")


@more
def test_inside_vmap_and_grad():
    f = torch.func.vmap(torch.func.grad(lambda x: torch.where(x > 0, torch.sqrt(x), 0)))
    with autograd.detect_anomaly():
        text = error_of(lambda: f(torch.tensor([1.0, 0.0])))
    assert "Function 'SqrtBackward0' returned nan values" in text and "at index (1,)" in text


def test_anomaly_mode_shows_the_operation_whose_value_was_overwritten():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with autograd.detect_anomaly():
            a = leaf(1.0, 2.0)
            b = a + 1
            c = b**2
            b += 1
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                autograd.grad(c.sum(), a)
    texts = [str(w.message) for w in caught]
    assert len(texts) == 2 and "Error detected in PowBackward0" in texts[1] and "c = b**2" in texts[1]


@differs("it never warns")
def test_a_floating_point_error_of_a_rule_names_the_operation_and_its_line():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    with (
        torch.autograd.detect_anomaly(),
        pytest.warns(UserWarning, match=r"Error detected in SqrtBackward0[^$]*test_anomaly"),
    ):
        y = torch.sqrt(x)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            y.sum().backward()
    assert x.grad is None
