"""Frequent confusions of beginners: messages name the cause, the source location and the fix, with the program's names.

PyTorch's exception type and key words come first, so that users can search for the message; an error has no side
effects.
"""

from __future__ import annotations

import numpy as np
import pytest


def test_01_backward_from_a_vector(program):
    ran = program("""
a = cr.tensor([1., 2, 3], requires_grad=True)
b = cr.tensor([4., 5, 6], requires_grad=True)
c = a * b
c.backward()
""")
    text = ran.raised(RuntimeError, "grad can be implicitly created only for scalar outputs")
    assert "c = mul (t.py:5) has shape (3,)" in text
    assert "c.sum().backward()" in text
    assert "c.backward(g)" in text and "g = ∂L/∂c, of shape (3,); computes Σ g·∂c/∂b" in text
    assert "jacobian(c, b)" in text and "of shape (3, 3)" in text
    assert ran.names["a"].grad is None and ran.names["b"].grad is None
    ran.names["c"].sum().backward()  # nothing was freed
    assert ran.names["b"].grad.tolist() == [1, 2, 3]


def test_01_grad_of_a_vector(program):
    ran = program("""
x = cr.tensor([1., 2], requires_grad=True)
y = cr.stack([x, x, x])
cr.autograd.grad(y, x)
""")
    text = ran.raised(RuntimeError, "grad can be implicitly created only for scalar outputs")
    assert "grad(y.sum(), x)" in text and "grad(y, x, g)" in text and "of shape (3, 2, 2)" in text
    assert "backward" not in text


def test_01_backward_from_an_expression(program):
    text = program("""
a = cr.tensor([1., 2, 3], requires_grad=True)
(a * 2).backward()
""").raised(RuntimeError, "grad can be implicitly created")
    assert "(a * 2).sum().backward()" in text


def test_02_gradient_of_the_wrong_shape(program):
    ran = program("""
x = cr.tensor([1., 2., 3., 4.], requires_grad=True)
y = cr.outer(x, x)
cr.autograd.grad(y, x, grad_outputs=cr.ones_like(x))
""")
    text = ran.raised(
        RuntimeError,
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([4]) and output[0] has a shape of torch.Size([4, 4])",
    )
    assert "∂L/∂y, with one number per element of y = mul (t.py:4), so its shape is (4, 4)" in text
    assert "You passed (4,), the shape of x." in text and "ones_like(y)" in text
    assert x_grad(ran) is None


def test_02_gradient_for_a_scalar(program):
    text = program("""
x = cr.tensor([1., 2.], requires_grad=True)
loss = x.sum()
loss.backward(x)
""").raised(RuntimeError, "Mismatch in shape")
    assert "omit it" in text


def x_grad(ran):
    return ran.names["x"].grad


def test_05_no_gradient_before_backward(program):
    ran = program("""
a, b = cr.ones(3), cr.ones(3, requires_grad=True)
c = a * b
print(b.why())
""")
    assert "no backward() has reached b" in ran.printed and "c = mul uses it (t.py:4)" in ran.printed
    assert "c.sum().backward()" in ran.printed


def test_06_grad_of_a_result(program):
    ran = program("""
x = cr.tensor([1., 2.], requires_grad=True)
y = x * 2
y.sum().backward()
y.grad
""")
    (text,) = ran.warnings
    assert text.startswith("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed")
    assert "y is the output of MulBackward0, mul (t.py:4), not a leaf" in text
    assert "y.retain_grad() before backward()" in text and "grad(L, y)" in text


def test_07_the_leaf_was_rebound(program):
    ran = program("""
x = cr.tensor([1., 2.], requires_grad=True)
x = x.to(cr.float64)
x.sum().backward()
x.grad
""")
    (text,) = ran.warnings
    assert text.startswith("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed")
    assert "x was rebound by `x = x.to(cr.float64)` (t.py:4)" in text and "line t.py:3" in text


NOTHING = "element 0 of tensors does not require grad and does not have a grad_fn"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param("x = cr.ones(2)\ny = x * 2\nloss = y.sum()", ["x (t.py:3)", "x.requires_grad_()"], id="no flag"),
        pytest.param(
            "x = cr.ones(2, requires_grad=True)\nz = x.detach() * 3\nloss = (z * 2).sum()",
            ["the path to x was cut by detach() in `z = x.detach() * 3` (t.py:4)", "remove the call"],
            id="detach",
        ),
        pytest.param(
            "x = cr.ones(2, requires_grad=True)\nwith cr.no_grad():\n    z = x * 3\nloss = z.sum()",
            ["the path to x was cut because gradient mode was off, in `z = x * 3` (t.py:5)", "outside of no_grad()"],
            id="no_grad",
        ),
        pytest.param(
            "x = cr.ones(2, requires_grad=True)\nw = x * 1\nwith cr.no_grad():\n    w = w - 0.1 * w\nloss = w.sum()",
            ["`w = w - 0.1 * w` (t.py:6)", "the line makes a new tensor w. Write into the old tensor, as in w -= step"],
            id="update",
        ),
        pytest.param(
            "x = cr.ones(2, requires_grad=True)\nk = cr.argmax(x)\nloss = k.float() * 2",
            ["argmax in `k = cr.argmax(x)` (t.py:4)", "softmax"],
            id="argmax",
        ),
        pytest.param(
            "x = cr.ones(2, requires_grad=True)\nright = (x > 2).float()\nloss = right.mean()",
            [
                "the path to x was cut by gt in `right = (x > 2).float()` (t.py:4)",
                "a comparison has no derivative",
                "where",
            ],
            id="comparison",
        ),
        pytest.param(
            "x = cr.ones(2, requires_grad=True)\nloss = x.round().int().sum()",
            ["conversion to an integer dtype in `loss = x.round().int().sum()` (t.py:4)", "Use floats"],
            id="integers",
        ),
        pytest.param(
            "x = cr.ones(2, requires_grad=True)\nloss = x.data.sum()",
            [".data in `loss = x.data.sum()` (t.py:4)", "Remove .data"],
            id="data",
        ),
        pytest.param(
            "x = cr.ones(2, requires_grad=True)\nn = x.sum().item()\nloss = cr.tensor(n * 2)",
            ["`x.sum().item()` (t.py:4) is a plain number", "use only tensors"],
            id="item",
        ),
    ],
)
def test_08_nothing_requires_grad(program, lines, said):
    ran = program(lines + "\nloss.backward()")
    text = ran.raised(RuntimeError, NOTHING)
    for words in said:
        assert words in text
    assert x_grad(ran) is None


def test_08_an_input_that_does_not_require_grad(program):
    text = program("""
x = cr.ones(2)
w = cr.ones(2, requires_grad=True)
cr.autograd.grad((w * x).sum(), x)
""").raised(RuntimeError, "One of the differentiated Tensors does not require grad")
    assert "input 0 (x)" in text and "x.requires_grad_()" in text


def test_09_tensor_of_tensors(program):
    text = program("""
t = cr.tensor(1., requires_grad=True)
cosa, sina = t.cos(), t.sin()
r = cr.tensor([cosa, sina])
""").raised(RuntimeError, "tensor(...) of tensors that require grad would copy their numbers and cut the graph")
    assert "it contains cosa" in text and "stack([cosa, sina])" in text


def test_09_array_of_tensors(program):
    text = program("""
t = cr.tensor(1., requires_grad=True)
cosa, sina = t.cos(), t.sin()
r = np.array([cosa, sina])
""").raised(RuntimeError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    assert "stack([...])" in text and "gradient of cosa" in text


@pytest.mark.parametrize("call", ["x.numpy()", "np.asarray(x)"])
def test_10_arrays_of_tensors_that_require_grad(program, call):
    ran = program(f"""
x = cr.tensor([1., 2.], requires_grad=True)
y = np.sin(x)
{call}
""")
    text = ran.raised(
        RuntimeError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
    )
    assert "gradient of x" in text and "x.detach().numpy()" in text and "np.sin(x)" in text
    ran.names["y"].sum().backward()
    np.testing.assert_allclose(x_grad(ran).numpy(), np.cos([1, 2]), rtol=1e-6)


def test_11_math_functions_warn_once_for_each_line(program):
    ran = program("""
import math
x = cr.tensor(1., requires_grad=True)
for _ in range(3):
    y = math.sin(x)
z = math.atan2(x, 2)
n = float(x)
""")
    first, second, third = ran.warnings
    assert first.startswith("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior")
    assert "math.sin(x) uses float(x), a plain number that leaves the graph: np.sin(x) keeps the gradient" in first
    assert "np.arctan2(x, 2) keeps" in second and "x.item()" in third
    assert type(ran.names["y"]) is float


def test_11_looking_at_numbers_does_not_warn(program):
    ran = program("""
import math
x = cr.tensor(1., requires_grad=True)
form = "%.2f"
print(x.item(), x.tolist(), f"{x:.3f}", "{:.1f}".format(x), "%.2f" % x, form % x, "%d and %s" % (x, x), str(x), repr(x))
math.sin(x.detach()), math.sin(cr.tensor(1.)), float(cr.tensor(2.)), bool(x > 0)
""")
    assert ran.error is None and ran.warnings == []
    assert ran.printed.startswith("1.0 1.0 1.000 1.0 1.00 1.00 1 and tensor(1., requires_grad=True)")


FREED = "Trying to backward through the graph a second time"


def test_12_second_backward(program):
    ran = program("""
x = cr.tensor([1., 2.], requires_grad=True)
y = x.exp()
loss = y.sum()
loss.backward()
before = x.grad.clone()
loss.backward()
""")
    text = ran.raised(RuntimeError, FREED)
    assert "exp (t.py:4)" in text and "freed by `loss.backward()` (t.py:6)" in text
    assert "retain_graph=True to the first" in text and "Compute the output again" in text
    assert x_grad(ran).equal(ran.names["before"])


def test_12_second_round_of_a_loop(program):
    text = program("""
x = cr.tensor([1., 2.], requires_grad=True)
state = x.exp()
for _ in range(2):
    state = state * x
    state.sum().backward()
""").raised(RuntimeError, FREED)
    assert "this line, in an earlier iteration of the loop (t.py:5)" in text and "detach()" in text


def test_12_a_retained_pass_is_not_blamed(program):
    text = program("""
def train(x):
    loss = x.exp().sum()
    loss.backward(retain_graph=True)
    cr.autograd.grad(loss, x)
    loss.backward(retain_graph=True)
train(cr.tensor([1., 2.], requires_grad=True))
""").raised(RuntimeError, FREED)
    assert "`cr.autograd.grad(loss, x)` (t.py:6)" in text


OVERWRITTEN = "one of the variables needed for gradient computation has been modified by an inplace operation"


@pytest.mark.parametrize(
    ("write", "fix"),
    [
        ("y += 1", "Write `y = y + 1`."),
        ("y.mul_(3)", "Write `y = y.mul(3)`."),
        ("y[0] = 5.", "`y = y.clone()`"),
    ],
)
def test_13_overwritten_result(program, write, fix):
    ran = program(f"""
x = cr.tensor([1., 2.], requires_grad=True)
y = cr.exp(x)
{write}
loss = y.sum()
loss.backward()
""")
    text = ran.raised(RuntimeError, OVERWRITTEN)
    assert "[torch.FloatTensor [2]], which is the result of ExpBackward0, is at version 1; expected version 0" in text
    assert f"exp (t.py:4) saved y for its backward rule, and then `{write}` (t.py:5) overwrote it" in text
    assert fix in text
    assert x_grad(ran) is None


def test_13_overwritten_operand(program):
    text = program("""
x, w = cr.ones(2, requires_grad=True), cr.ones(2, requires_grad=True)
h = x * 2
y = h * w
h[0] = 5.
y.sum().backward()
""").raised(RuntimeError, OVERWRITTEN)
    assert "mul (t.py:5) saved h for its backward rule, and then `h[0] = 5.` (t.py:6) overwrote it" in text


def test_13_parameters_updated_before_backward(program):
    text = program("""
w = cr.ones(2, requires_grad=True)
loss = (w * w).sum()
with cr.no_grad():
    w -= 0.1
loss.backward()
""").raised(RuntimeError, OVERWRITTEN)
    assert "`w -= 0.1` (t.py:6)" in text and "Call backward() before you update w" in text


def test_14_leaf_in_place(program):
    ran = program("""
x = cr.tensor([1., 2.], requires_grad=True)
x += 1
""")
    text = ran.raised(RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation.")
    assert "with no_grad(): x -= lr * x.grad" in text and "`x = x + 1`" in text
    assert ran.names["x"].tolist() == [1, 2]


def test_14_part_of_a_leaf_in_place(program):
    ran = program("""
x = cr.tensor([1., 2.], requires_grad=True)
x[0] = 1
""")
    text = ran.raised(
        RuntimeError, "a view of a leaf Variable that requires grad is being used in an in-place operation."
    )
    assert "`x[0] = 1`" in text and "x = x.clone()" in text and "no_grad()" in text


def test_15_an_element_of_a_plain_array(program):
    ran = program("""
t = cr.tensor([1., 2.], requires_grad=True)
buf = np.zeros(3)
buf[0] = t[0] * 2
""")
    ran.raised(ValueError, "setting an array element with a sequence")  # NumPy raises this for all errors inside
    text = str(ran.error.__cause__)
    assert "`buf[0]` is in a plain NumPy array" in text
    assert "buf = chainrule.tensor(buf)" in text and "stack()" in text
    assert ran.names["buf"].tolist() == [0, 0, 0]


def test_15_a_part_of_a_plain_array(program):
    ran = program("""
t = cr.tensor([1., 2.], requires_grad=True)
buf = np.zeros(2)
buf[:] = t
""")
    text = ran.raised(RuntimeError, "Can't call numpy() on Tensor that requires grad")
    assert "`buf[:]` writes into a plain NumPy array" in text and "buf = chainrule.tensor(buf)" in text
    assert ran.names["buf"].tolist() == [0, 0]


def test_15_a_tensor_as_a_buffer_works(program):
    ran = program("""
t = cr.tensor([1., 2.], requires_grad=True)
buf = cr.zeros(3)
buf[0] = t[0] * 2
buf[1:] = t
numbers, plain = [0.], np.zeros(1)
numbers[0] = t[0]
plain[0] = cr.tensor(3.)
buf.sum().backward()
""")
    assert ran.error is None and ran.warnings == []
    assert ran.names["t"].grad.tolist() == [3, 1]


def test_16_gradients_add_up(program):
    ran = program("""
x = cr.ones(2, requires_grad=True)
(x * 2).sum().backward()
(x * 3).sum().backward()
print(x.why())
""")
    assert x_grad(ran).tolist() == [5, 5]
    assert "x.grad is the sum of 2 backward() calls (t.py:4, t.py:5)" in ran.printed
    assert "x.grad = None" in ran.printed


def test_17_unused_input(program):
    text = program("""
a, b = cr.ones(3, requires_grad=True), cr.ones(3, requires_grad=True)
y = (a * 2).sum()
cr.autograd.grad(y, b)
""").raised(RuntimeError, "The differentiated Tensor at index 0 appears to not have been used in the graph.")
    assert "Set allow_unused=True" in text
    assert "(b), of shape (3,), does not reach y: y ← sum ← mul ← a" in text
    assert "None" in text


def test_17_input_rebound_after_the_output(program):
    text = program("""
a = cr.ones(3, requires_grad=True)
y = (a * 2).sum()
a = a.clone()
cr.autograd.grad(y, a)
""").raised(RuntimeError, "The differentiated Tensor at index 0 appears to not have been used in the graph.")
    assert "a is the result of clone (t.py:5), a new tensor, computed after" in text


def test_18_integers_do_not_require_grad(program):
    first = program("x = cr.tensor([1, 2, 3], requires_grad=True)")
    words = "only Tensors of floating point and complex dtype can require gradients"
    text = first.raised(RuntimeError, words)
    assert "[1, 2, 3] is torch.int64" in text and "Write 1. instead of 1" in text
    text = program("x = cr.arange(9)\nx.requires_grad_()").raised(RuntimeError, words)
    assert "x is torch.int64" in text and "x = x.float()" in text


def test_19_nan_behind_a_mask(program):
    ran = program("""
x = cr.tensor([4., 0.], requires_grad=True)
with cr.autograd.detect_anomaly(), np.errstate(all="ignore"):
    y = cr.where(x > 0, cr.sqrt(x), 0)
    y.sum().backward()
""")
    text = ran.raised(RuntimeError, "Function 'SqrtBackward0' returned nan values in its 0th output.")
    assert "gradient of sqrt" in text and "at index (1,)" in text and "t.py:5" in text
    assert "0 times the infinite slope of sqrt is nan" in text
    assert "where(x > 0, sqrt(where(x > 0, x, 1.)), 0)" in text
    assert x_grad(ran) is None
    mended = program("""
x = cr.tensor([4., 0.], requires_grad=True)
with cr.autograd.detect_anomaly():
    y = cr.where(x > 0, cr.sqrt(cr.where(x > 0, x, 1.)), 0)
    y.sum().backward()
""")
    assert mended.error is None and x_grad(mended).tolist() == [0.25, 0]


def test_19_nan_in_the_users_names(program):
    text = program("""
base = cr.tensor([0., 3.], requires_grad=True)
with cr.autograd.detect_anomaly(), np.errstate(all="ignore"):
    root = base ** 0.5
    (root * 0).sum().backward()
""").raised(RuntimeError, "Function 'PowBackward0' returned nan values in its 0th output.")
    assert "base = 0.0" in text and "t.py:5" in text and "clamp" in text


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("g, = cr.autograd.grad(x ** 3, x)\ncr.autograd.grad(g, x)", "g"),
        ("g, = cr.autograd.grad(x ** 3, x)\npenalty = (g * g).sum()\npenalty.backward()", "penalty"),
        ("(x ** 3).backward()\nx.grad.backward()", "x.grad"),
    ],
)
def test_20_second_derivative_of_an_unrecorded_gradient(program, lines, name):
    ran = program("x = cr.tensor(2., requires_grad=True)\n" + lines)
    text = ran.raised(RuntimeError, NOTHING)
    assert f"{name} has no graph: it was computed from gradients" in text
    assert "grad(y, x, create_graph=True)" in text


def test_20_second_derivative_of_a_linear_function(program):
    text = program("""
x = cr.tensor(2., requires_grad=True)
g, = cr.autograd.grad(3 * x, x, create_graph=True)
cr.autograd.grad(g, x)
""").raised(RuntimeError, NOTHING)
    assert "gradient of a linear function" in text and "create_graph" not in text


def test_20_second_derivative_of_a_function_that_kept_what_has_no_history(program):
    text = program("""
class Cube(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x.detach()
        return x**3

    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.x**2

x = cr.tensor(2., requires_grad=True)
g, = cr.autograd.grad(Cube.apply(x), x, create_graph=True)
cr.autograd.grad(g, x)
""").raised(RuntimeError, NOTHING)
    assert "g has no graph: Cube.backward computed it" in text and "ctx.save_for_backward" in text
    assert "derivative is zero" not in text


def test_where_an_infinite_gradient_was_made(program):
    text = program("""
x = cr.zeros(2, requires_grad=True)
with cr.autograd.detect_anomaly():
    length = cr.sqrt((x**2).sum())
    length.backward()
""").raised(RuntimeError, "Function 'PowBackward0' returned nan")
    assert "That inf is the gradient of sqrt" in text and "length = cr.sqrt" in text
    assert "sqrt(x + eps)" in text
    assert "negative base" not in text


@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_21_losses_of_different_shapes(program, loss):
    ran = program(f"""
prediction = cr.zeros(3, 1, requires_grad=True)
target = cr.ones(3)
cr.nn.functional.{loss}(prediction, target)
""")
    (text,) = ran.warnings
    assert text.startswith(
        "Using a target size (torch.Size([3])) that is different to the input size (torch.Size([3, 1])). This will likely "
        "lead to incorrect results due to broadcasting."
    )
    assert "prediction (3, 1) and target (3,) are broadcast to (3, 3)" in text
    assert "target.reshape(prediction.shape)" in text


def test_22_jacobian_of_tensors(program):
    ran = program("""
X = cr.tensor([1., 2.], requires_grad=True)
Y = X ** 2
J = cr.jacobian(Y, X)
cr.autograd.functional.jacobian(Y, X)
""")
    text = ran.raised(TypeError, "'Tensor' object is not callable")
    assert "functional.jacobian takes a function" in text and "chainrule.jacobian(Y, x)" in text
    assert ran.names["J"].tolist() == [[2, 0], [0, 4]]


@pytest.mark.parametrize(
    "call",
    [f"cr.autograd.functional.{f}(Y, X)" for f in ("vjp", "jvp", "hessian", "vhp", "hvp")]
    + [f"cr.func.{f}(Y)" for f in ("grad", "value_and_grad", "grad_and_value", "jacrev", "jacfwd", "hessian", "vmap")]
    + ["cr.func.vjp(Y, X)", "cr.func.jvp(Y, (X,), (X,))"],
)
def test_22_a_tensor_for_a_function(program, call):
    ran = program(f"X = cr.ones(2, requires_grad=True)\nY = X ** 2\n{call}")
    text = ran.raised(TypeError, "'Tensor' object is not callable")
    assert "pass f, not its result f(x)" in text and "Y is already computed" in text


def test_23_matrix_product(program):
    text = program("""
X = cr.ones(2, 3)
W = cr.ones(2, 3, requires_grad=True)
X @ W
""").raised(RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)")
    assert "X @ W is (2, 3) @ (2, 3), inner sizes 3 ≠ 2" in text
    assert "X @ W.T has shape (2, 2)" in text and "X.T @ W has shape (3, 3)" in text


def test_23_batches_of_matrices(program):
    text = program("""
X = cr.ones(5, 2, 3)
W = cr.ones(5, 2, 3)
X @ W
""").raised(RuntimeError, "Expected size for first two dimensions of batch2 tensor")
    assert "X @ W.mT has shape (5, 2, 2)" in text


def test_23_linear(program):
    text = program("""
X = cr.ones(2, 3)
W = cr.ones(3, 4)
cr.nn.functional.linear(X, W)
""").raised(RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x3)")
    assert "linear computes X @ W.T" in text and "(out_features, 3)" in text and "W.T has that shape" in text


FUNCTION = """
class F(cr.autograd.Function):
    @staticmethod
    def forward(ctx, left, right):
        return left * right
    @staticmethod
    def backward(ctx, g):
        return {}
x = cr.tensor(1., requires_grad=True)
F.apply(x, {}).backward()
"""


def test_24_wrong_number_of_gradients(program):
    ran = program(FUNCTION.format("g", "x * 2"))
    text = ran.raised(RuntimeError, "function FBackward returned an incorrect number of gradients (expected 2, got 1)")
    assert "F.forward takes left and right" in text and "return grad_left, grad_right" in text
    assert x_grad(ran) is None


def test_24_gradient_of_what_is_no_tensor(program):
    text = program(FUNCTION.format("g, g", "2.")).raised(
        RuntimeError, "function FBackward returned a gradient different than None at position 2"
    )
    assert "right" in text


PRODUCT = """
class Product(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        {}
x, w = cr.ones(2, 3, requires_grad=True), cr.ones(3, 4, requires_grad=True)
Product.apply(x, w).sum().backward()
"""
LINES = "Product.backward returned it here: `{}` (t.py:11). Product.apply was called on line t.py:13."


@pytest.mark.parametrize(
    ("line", "words", "said"),
    [
        ("return g @ w.T, g.T @ x", "invalid gradient at index 1", "shape of w, argument 1 of Product.apply"),
        ("return g @ w.T, g.T @ x", "invalid gradient at index 1 - got [4, 3]", "Its transpose fits: x.T @ g."),
        ("return g @ w.T, (x.T @ g).T", "invalid gradient at index 1", "Its transpose fits: x.T @ g."),
        ("return x.T @ g, g @ w.T", "invalid gradient at index 0", "It has the shape of another argument"),
        ("return g @ w.T, (x.T @ g).reshape(2, 6)", "invalid gradient at index 1", "reshape it, g.reshape((3, 4))"),
        (
            "return (g @ w.T).sum(0), None",
            "invalid gradient at index 0 - got [3]",
            "The gradient must have the shape of x",
        ),
        ("return g @ w.T", "incorrect number of gradients (expected 2, got 1)", "as in `return grad_x, grad_w`"),
        (
            "return [g @ w.T, x.T @ g]",
            "incorrect number of gradients",
            "Product.backward returned a list: return a tuple.",
        ),
        ("return 1., None", "expected Variable or None (got float)", "as in g * 1.0"),
        ("return g.numpy(), None", "expected Variable or None (got ndarray)", "from_numpy(array)"),
    ],
)
def test_gradients_of_a_function_that_cannot_be(program, line, words, said):
    ran = program(PRODUCT.format(line))
    assert type(ran.error) is RuntimeError and words in str(ran.error) and said in str(ran.error), str(ran.error)
    assert LINES.format(line) in str(ran.error)
    assert x_grad(ran) is None


def test_a_backward_without_return(program):
    text = str(program(PRODUCT.format("pass")).error)
    assert ".backward returned None: is a `return` missing?" in text and "apply was called on line t.py:13" in text


@pytest.mark.parametrize(
    ("source", "kind", "note"),
    [
        (PRODUCT.replace("        ctx.save_for_backward(x, w)\n", "").format("pass"), ValueError, "Product.forward (or setup_context)"),
        (PRODUCT.replace("forward(ctx, x, w)", "forward(x, w)").format("pass"), TypeError, "The first argument of Product.forward must be"),
    ],
)  # fmt: skip
def test_what_pythons_own_error_does_not_say_is_a_note(program, source, kind, note):
    error = program(source).error
    assert type(error) is kind and any(note in text for text in error.__notes__)


def test_25_a_numpy_function_without_a_rule(program):
    text = program("""
x = cr.tensor([1., 2.], requires_grad=True)
y = 2 * np.roots(x)
""").raised(TypeError, "np.roots has no rule for tensors (x)")
    assert "np.roots(x.detach().numpy())" in text and "chainrule.primitive" in text


def test_a_function_of_a_module_has_no_receiver(program):
    ran = program("""
x = cr.ones(3)
cr.autograd.backward(x.sum())
""")
    text = ran.raised(RuntimeError, "element 0 of tensors does not require grad")
    assert "x.sum() was not computed from a tensor that requires grad" in text


def test_names_of_numpys_methods(program):
    for name, instead in (("copy", "x.clone() keeps the gradient"), ("partition", "x.detach().numpy().partition(...)")):
        ran = program(f"x = cr.ones(3)\nx.{name}()\n")
        assert instead in ran.raised(AttributeError, f"'Tensor' object has no attribute '{name}'")


def test_a_sum_into_a_plain_array(program):
    ran = program("""
x = cr.ones(3, requires_grad=True)
total = np.zeros(3)
total += 2 * x
""")
    text = ran.raised(RuntimeError, "np.add would write a tensor into total, a plain NumPy array of shape (3,)")
    assert "Write `total = total + 2 * x`." in text and "total = chainrule.tensor(total)" in text
    assert ran.names["total"].tolist() == [0, 0, 0]


def test_a_node_called_with_a_wrong_shape(program):
    ran = program("""
x = cr.ones(2, 3, requires_grad=True)
y = x @ cr.ones(3, 4)
y.grad_fn(cr.ones(4, 2))
""")
    text = ran.raised(RuntimeError, "Mismatch in shape: MmBackward0 was called with a gradient of shape (4, 2)")
    assert "which has the shape of y" in text
