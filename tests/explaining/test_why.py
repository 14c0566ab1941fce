"""The answers of ``why()`` to the most frequent questions."""

import copy

import pytest

import chainrule as cr

pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")


def markers(why):
    """Return the comments at the ends of the quoted lines."""
    return [line.text.rpartition("# ")[2] for line in why.lines]


@pytest.fixture
def x():
    return cr.tensor([1.0, 2.0, 3.0], requires_grad=True)


# -- no gradient yet ----------------------------------------------------------------------------------------------------


def test_no_backward_has_reached_it():
    a = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = cr.tensor([4.0, 5.0, 6.0], requires_grad=True)
    c = a * b  # used
    why = b.why()
    assert why.reason.startswith("b.grad is None: no backward() has reached b. c = mul uses it (test_why.py:")
    assert "c.sum().backward()" in why.advice
    assert markers(why) == ["used"]
    assert str(why) == repr(why)
    assert str(why).splitlines()[-1].endswith("c = a * b  # used")
    c.sum().backward()
    assert b.why().reason.startswith("b.grad is ∂L/∂b, from 1 backward() call")


def test_backward_was_called_on_something_else():
    a = cr.ones(2, requires_grad=True)
    b = cr.ones(2, requires_grad=True)
    c = (a * b).sum()
    d = (a * 2).sum()
    d.backward()  # elsewhere
    why = b.why()
    assert "c = sum uses it" in why.reason
    assert why.advice.startswith("backward() is called on d (test_why.py:")
    assert "elsewhere" in markers(why)
    e = cr.ones(2, requires_grad=True)
    assert "which does not depend on e" in e.why().advice
    del c


def test_the_first_use_is_named_and_what_exists_is_proposed():
    w = cr.ones(2, requires_grad=True)
    y = cr.exp(
        w * 3  # first
    ).tanh()
    why = w.why()
    assert "y = tanh uses it, through mul (test_why.py:" in why.reason and markers(why) == ["first"]
    assert why.advice.startswith("Call y.sum().backward(), or")
    loss = y.sum()
    other = (w * 2).sum()
    assert w.why().advice == "Call other.backward()."
    del other
    assert w.why().advice == "Call loss.backward()."
    del loss


def test_nothing_uses_it(x):
    assert x.why().reason == "x.grad is None: no backward() has reached x."
    assert "None of your variables" in x.why().advice


def test_all_that_uses_it_was_cut_off(x):
    y = x.detach()  # cut
    why = x.why()
    assert "y was computed from it, but the path to x was cut by detach()" in why.reason
    assert "cut by detach()" in y.why().reason


def test_a_result_is_not_a_leaf(x):
    y = x * 2  # made
    y.sum().backward()
    why = y.why()
    assert why.reason.startswith("y.grad is None: y is mul's output (test_why.py:")
    assert why.reason.endswith("not a leaf.")
    assert why.advice == "Call y.retain_grad() before backward(), or use grad(L, y)."
    assert markers(why) == ["made"]


def test_a_retained_gradient(x):
    y = x * 2
    y.retain_grad()
    assert "retain_grad() was called, but no backward() has reached y since" in y.why().reason
    y.backward(cr.tensor([1.0, 2.0, 3.0]))  # passed
    why = y.why()
    assert why.reason.startswith("y.grad is ∂L/∂y, kept because of y.retain_grad().")
    assert "backward() was called on y itself" in why.reason
    assert "the gradient passed to that call" in why.reason
    assert markers(why) == ["passed"]


def test_rebound_by_a_conversion():
    x = cr.ones(3, requires_grad=True)  # the leaf
    x = x.to(cr.float64)  # rebound
    x.sum().backward()
    why = x.why()
    lines = [line.line for line in why.lines]
    assert why.reason == (
        f"x.grad is None: x was rebound by to (test_why.py:{lines[0]}); the leaf is from test_why.py:{lines[1]}."
    )
    assert markers(why) == ["rebound", "the leaf"]
    assert "x.detach().requires_grad_()" in why.advice


def test_rebound_by_a_step_of_training():
    w = cr.ones(3, requires_grad=True)  # the leaf
    (w * w).sum().backward()
    with cr.no_grad():
        w = w - 0.1 * w.grad  # rebound
    why = w.why()
    assert "w was rebound by sub" in why.reason
    assert "with gradient mode off, so it is a new tensor that does not require grad" in why.reason
    assert markers(why) == ["rebound", "the leaf"]
    assert "with no_grad(): w -= step" in why.advice


def test_a_result_that_reads_its_own_name_but_keeps_the_leaf(x):
    h = x * 2
    h = h + 1
    assert "rebound" not in h.why().reason
    assert "h is add's output" in h.why().reason


# -- the graph was cut --------------------------------------------------------------------------------------------------


def test_cut_by_an_integer_result(x):
    i = x.argmax()  # cut
    why = i.why()
    assert why.reason.startswith("i.grad is None: i does not require grad: the path")
    assert "cut by argmax" in why.reason
    assert "derivative" in why.reason
    assert markers(why) == ["cut"]


@pytest.mark.parametrize(
    ("cut", "words"),
    [
        (lambda x: x.detach(), "cut by detach()"),
        (lambda x: x > 0, "a comparison has no derivative"),
        (lambda x: cr.no_grad()(lambda: x * 2)(), "gradient mode was off"),
        (lambda x: cr.tensor(x), "cut by tensor(...)"),
    ],
)
def test_five_causes_of_one_message(x, cut, words):
    y = cut(x)
    assert "y does not require grad" in y.why().reason
    assert words in y.why().reason


def test_no_flag():
    x = cr.ones(3)
    y = x * 2
    assert "does not require grad, and it was not computed from a tensor that does" in y.why().reason
    assert "requires_grad=True" in x.why().advice


def test_integers():
    i = cr.tensor([1, 2])
    assert (
        i.why().reason
        == "i.grad is None: i is torch.int64, and only floating-point and complex tensors have gradients."
    )


def test_a_second_derivative_of_a_gradient_that_was_not_recorded(x):
    y = (x**3).sum()
    (g,) = cr.autograd.grad(y, x)
    assert "g does not require grad" in g.why().reason
    assert "create_graph=True" in g.why().reason
    (x**3).sum().backward()
    h = x.grad.sum()
    assert "create_graph=True" in h.why().reason


# -- sums of gradients --------------------------------------------------------------------------------------------------


def test_gradients_add_up(x):
    (x * 2).sum().backward()  # first
    assert x.why().reason.startswith("x.grad is ∂L/∂x, from 1 backward() call (test_why.py:")
    (x * 3).sum().backward()  # second
    why = x.why()
    assert why.reason.startswith("x.grad is the sum of 2 backward() calls (test_why.py:")
    assert markers(why) == ["first", "second"]
    assert "x.grad = None resets it" in why.advice


def test_a_loop(x):
    for _ in range(5):
        (x * 2).sum().backward()  # in the loop
    why = x.why()
    assert "the sum of 5 backward() calls" in why.reason
    assert "in a loop)" in why.reason
    assert markers(why) == ["in the loop"]


def test_reset_to_none(x):
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    x.grad = None
    assert "it was reset after 2 backward() calls wrote it" in x.why().reason
    (x * 2).sum().backward()  # after
    why = x.why()
    assert "1 backward() call" in why.reason
    assert markers(why) == ["after"]


def test_zeroed(x):
    (x * 2).sum().backward()
    x.grad.zero_()  # zeroed
    why = x.why()
    assert why.reason.startswith("x.grad is zero: zero_() set it (test_why.py:")
    assert markers(why) == ["zeroed"]
    (x * 2).sum().backward()
    assert "the sum of the backward() calls since zero_()" in x.why().reason
    assert "2 backward() calls wrote to it." in x.why().reason


def test_written_by_hand(x):
    (x * 2).sum().backward()
    x.grad.mul_(0.5)  # clipped
    why = x.why()
    assert why.reason.startswith("x.grad was also written by hand: mul_ changed it (test_why.py:")
    assert markers(why) == ["clipped"]
    x.grad = cr.ones(3)  # assigned
    why = x.why()
    assert why.reason.startswith("x.grad was also written by hand: it was assigned (test_why.py:")
    assert markers(why) == ["assigned"]
    (x * 2).sum().backward()
    assert "1 backward() call added to it since" in x.why().reason
    x.grad = None
    (x * 2).sum().backward()
    assert "by hand" not in x.why().reason


def test_a_gradient_that_came_with_a_copy(x):
    (x * 2).sum().backward()
    y = copy.deepcopy(x)
    assert "was not written by backward()" in y.why().reason


def test_a_gradient_left_from_before(x):
    (x * 2).sum().backward()
    x.requires_grad = False
    assert x.why().reason == "x.grad is left over from an earlier pass: x no longer requires grad."


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.0, 4.0, 0.0], "2 of its 3 elements are nan, first at index (0,)."),
        ([4.0, 0.0], "1 of its 2 elements is nan, first at index (1,)."),
        (0.0, "It is nan."),
        ([4.0], ""),
    ],
)
def test_a_gradient_that_is_nan(values, said):
    x = cr.tensor(values, requires_grad=True)
    cr.where(x > 0, cr.sqrt(x), 0).sum().backward()
    why = x.why()
    assert why.reason.startswith("x.grad is ∂L/∂x, from 1 backward() call")
    assert ("nan" in why.reason) is ("detect_anomaly" in why.advice) is bool(said)
    assert why.reason.endswith(said or ").")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_infinite_gradient_that_was_retained():
    x = cr.tensor([0.0, 1.0], requires_grad=True)
    y = x * 1
    y.retain_grad()
    y.sqrt().sum().backward()
    assert y.why().reason.endswith("1 of its 2 elements is inf, first at index (0,).") and not y.why().advice


# -- little information -------------------------------------------------------------------------------------------------


def test_without_names_and_without_source(x):
    assert "tensor is mul's output (test_why.py:" in (x * 2).why().reason
    scope = {"cr": cr}
    exec("a = cr.ones(2, requires_grad=True)\nb = a * 2\nwhy = a.why(), b.why()", scope)
    assert scope["why"][0].reason == "a.grad is None: no backward() has reached a. b = mul uses it."
    assert scope["why"][1].reason == "b.grad is None: b is mul's output, not a leaf."
    assert all("exec" not in line.text or line.file == __file__ for line in scope["why"][0].lines)


def test_inside_a_transformation():
    found = []

    def f(a):
        found.append(a.why().reason)
        return a * 2

    cr.vmap(f)(cr.ones(3))
    assert found == ["a.grad: inside a transformation, gradients are returned, not written to .grad."]


def test_it_takes_tensors_only():
    from chainrule._src.explaining.why import why

    with pytest.raises(TypeError, match="why"):
        why(3)


def test_it_changes_nothing(x):
    y = (x * 2).sum()
    before = x.why(), y.why()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    assert [w.reason for w in before] != [x.why().reason, y.why().reason]
