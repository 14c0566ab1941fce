"""Ordinary mistakes: misspelt names, wrong types, shapes and dimensions. The message names the mistake and the fix."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("line", "kind", "words", "said"),
    [
        # names
        ("x.requires_gard", AttributeError, "'Tensor' object has no attribute 'requires_gard'", "'requires_grad'"),
        ("cr.zero(3)", AttributeError, "module 'chainrule' has no attribute 'zero'", "'zeros'"),
        ("cr.optim.Adafactor([x], 0.1)", AttributeError, "module 'chainrule.optim' has no attribute", "update(p, grad"),
        ("cr.nn.Bilinear(2, 3, 4)", AttributeError, "module 'chainrule.nn' has no attribute", "nn.functional.bilinear"),
        ("cr.nn.functional.rleu(x)", AttributeError, "module 'chainrule.nn.functional' has no attribute", "'relu'"),
        (
            "cr.nn.InstanceNorm1d(2)",
            AttributeError,
            "module 'chainrule.nn' has no attribute 'InstanceNorm1d'",
            "nn.functional.instance_norm",
        ),
        ("cr.nn.ReLu()", AttributeError, "module 'chainrule.nn' has no attribute 'ReLu'", "Did you mean 'ReLU'"),
        (
            "cr.nn.Linaer(2, 3)",
            AttributeError,
            "module 'chainrule.nn' has no attribute 'Linaer'",
            "Did you mean 'Linear'",
        ),
        (
            "from chainrule.nn import MultiheadAttention",
            ImportError,
            "cannot import name 'MultiheadAttention' from 'chainrule.nn'",
            "scaled_dot_product_attention",
        ),
        ("cr.eigh(M)", AttributeError, "module 'chainrule' has no attribute 'eigh'", "use linalg.eigh"),
        ("cr.nn.relu(x)", AttributeError, "module 'chainrule.nn' has no attribute 'relu'", "use nn.functional.relu"),
        ("cr.svd_lowrank(M)", AttributeError, "module 'chainrule' has no attribute 'svd_lowrank'", "linalg.svd"),
        ("x.apply_(abs)", AttributeError, "'Tensor' object has no attribute 'apply_'", "x.copy_(f(x))"),
        ("cr.linalg.invv(x)", AttributeError, "module 'chainrule.linalg' has no attribute 'invv'", "'inv'"),
        (
            "from chainrule import zero",
            ImportError,
            "cannot import name 'zero' from 'chainrule'",
            "Did you mean 'zeros'?",
        ),
        (
            "from chainrule.func import functionalize",
            ImportError,
            "cannot import name 'functionalize' from 'chainrule.func'",
            "omit it",
        ),
        ("from chainrule.fft import fftt", ImportError, "cannot import name 'fftt' from 'chainrule.fft'", "'fft'"),
        ("cr.minimize", AttributeError, "module 'chainrule' has no attribute 'minimize'", "use scipy.minimize."),
        ("cr.curve_fit", AttributeError, "module 'chainrule' has no attribute 'curve_fit'", "scipy.optimize.curve_fit"),
        ("cr.tree_map", AttributeError, "module 'chainrule' has no attribute 'tree_map'", "use tree.tree_map."),
        ("cr.lax", AttributeError, "module 'chainrule' has no attribute 'lax'", "while_loop"),
        ("cr.grad(np.sum, M)(M)", RuntimeError, "argnums must be int or Tuple[int, ...]", "grad(f)(x), not grad(f, x)"),
        (
            "cr.grad(lambda w: np.einsum('ij,jk->', w, np.ones((3, 2))))(np.ones((2, 4)))",
            ValueError,
            "operands could not be broadcast together with remapped shapes",
            "j is 4 in (2, 4) and 3 in (3, 2)",
        ),
        (
            "cr.einsum('aij,jk->', cr.ones(2, 1, 4), cr.ones(3, 2))",
            RuntimeError,
            "einsum(): subscript j has size 3",
            "j is 4 in (2, 1, 4) and 3 in (3, 2)",
        ),
        (
            "cr.grad(lambda w: np.einsum('ijk,jk->', w, np.ones((3, 2))))(np.ones((2, 4)))",
            ValueError,
            "einstein sum subscripts string contains too many subscripts for operand 0",
            "'ijk' needs an array of 3 axes, and operand 0 has shape (2, 4)",
        ),
        (
            "cr.grad(lambda w: np.sum(np.concatenate([w, np.ones((2, 3))])))(np.ones(3))",
            ValueError,
            "all the input arrays must have same number of dimensions",
            "array 0 has shape (3,) (w) and array 1 has shape (2, 3). w[None] has shape (1, 3)",
        ),
        (
            "cr.grad(lambda w: np.sum(np.stack([w, w, np.ones(2)])))(np.ones(3))",
            ValueError,
            "all the input array dimensions except for the concatenation axis must match exactly",
            "array 0 has shape (3,) (w) and array 2 has shape (2,)",
        ),
        (
            "cr.grad(lambda w: np.sum(np.where(w > 0, w, np.ones(2))))(np.ones((2, 3)))",
            ValueError,
            "operands could not be broadcast together with shapes (2,3) (2,3) (2,)",
            "where got shapes (2, 3)",
        ),
        ("cr.special.errf(x)", AttributeError, "module 'chainrule.special' has no attribute 'errf'", "'erf'"),
        ("cr.ones(3, device='gpu')", RuntimeError, "Expected one of cpu, cuda", "An NVIDIA GPU is 'cuda'"),
        ("cr.grad(np.sum)(np.array(['a']))", RuntimeError, "only Tensors of floating point", "holds str_"),
        (
            "cr.grad(lambda w, z: np.sum(w + z))(np.ones(3), np.ones(4))",
            ValueError,
            "operands could not be broadcast together with shapes (3,) (4,)",
            "For all pairs: w[:, None] and z give (3, 4)",
        ),
        (
            "cr.grad(lambda w, z: np.sum(np.hypot(w, z)))(np.ones((2, 3)), np.ones(2))",
            ValueError,
            "operands could not be broadcast together with shapes (2,3) (2,)",
            "z[:, None], of shape (2, 1)",
        ),
        ("cr.grad(x.sum(), x)", TypeError, "'Tensor' object is not callable: grad takes a function", "autograd.grad("),
        (
            "x.sum().backward(retain_grph=True)",
            TypeError,
            "Tensor.backward() got an unexpected keyword argument 'retain_grph'",
            "",
        ),
        # gradients
        ("x.backward([1., 2.])", TypeError, "gradients can be either Tensors or None, but got list", "tensor(...)"),
        ("x.sum().backward(1.)", TypeError, "gradients can be either Tensors or None, but got float", "tensor(...)"),
        (
            "cr.autograd.grad(x.sum(), k)",
            RuntimeError,
            "One of the differentiated Tensors does not require grad",
            "integers have no gradient: convert it with .float()",
        ),
        ("cr.tensor([1.], requires_grad='yes')", TypeError, "requires_grad must be a bool, not str", ""),
        # shapes
        (
            "x + cr.ones(3)",
            RuntimeError,
            "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
            "x[:, None]",
        ),
        (
            "M + x[:, None][:, 0] * cr.ones(2)",
            RuntimeError,
            "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1",
            "[:, None], of shape (2, 1), lines up with the rows of M",
        ),
        (
            "cr.nn.functional.linear(M, cr.ones(4, 3), x)",
            RuntimeError,
            "The size of tensor a (4) must match the size of tensor b (2) at non-singleton dimension 1",
            "x must have shape (4,)",
        ),
        # keywords of other libraries
        ("cr.vmap(abs, in_axes=1)", TypeError, "vmap() got an unexpected keyword argument 'in_axes'", "'in_dims'?"),
        ("cr.func.vmap(abs, axis_size=1)", TypeError, "vmap() got an unexpected keyword", "from the mapped arguments"),
        ("cr.grad(abs, argnum=0)", TypeError, "grad() got an unexpected keyword argument 'argnum'", "'argnums'?"),
        ("cr.jacfwd(abs, hasaux=True)", TypeError, "jacfwd() got an unexpected keyword argument", "'has_aux'?"),
        ("cr.jvp(abs, (x,), (x,), aux=True)", TypeError, "jvp() got an unexpected keyword argument", "'has_aux'?"),
        ("cr.grad(abs, holomorphic=True)", TypeError, "grad() got an unexpected keyword", "from the dtype"),
        ("cr.jacobian(abs, x, foo=0)", TypeError, "jacobian() got an unexpected keyword argument", "it takes y, x"),
        ("cr.make_vjp", AttributeError, "module 'chainrule' has no attribute 'make_vjp'", "func.vjp(f, x)"),
        ("cr.stop_gradient", AttributeError, "module 'chainrule' has no attribute", "x.detach()"),
        ("M.to_sparse()", AttributeError, "'Tensor' object has no attribute 'to_sparse'", "sparse.csr_array((M[i, j]"),
        # kinds of arguments
        (
            "x.grad = cr.ones(3)",
            RuntimeError,
            "attempting to assign a gradient of size '[3]' to a tensor of size",
            "'[2]'",
        ),
        (
            "x.grad = x.detach().double()",
            RuntimeError,
            "attempting to assign a gradient with dtype",
            "to(tensor.dtype)",
        ),
        ("x + [1, 2]", TypeError, "unsupported operand type(s) for +: 'Tensor' and 'list'", "tensor(...)"),
        ("(1, 2) - x", TypeError, "unsupported operand type(s) for -: 'tuple' and 'Tensor'", "tensor(...)"),
        ("x @ [1, 2]", TypeError, "unsupported operand type(s) for @: 'Tensor' and 'list'", "tensor(...)"),
        ("cr.sin(1.0)", TypeError, "sin(): argument 'input' (position 1) must be Tensor, not float", "tensor(...)"),
        ("cr.explain(3.0)", TypeError, "explain(): argument 'Y' must be a Tensor or a", "requires_grad=True"),
        ("cr.autograd.backward(np.ones(2))", TypeError, "backward(): argument 'tensors' must be", "requires_grad=True"),
        ("cr.autograd.grad(abs, x)", TypeError, "grad(): argument 'outputs' must be a Tensor", "chainrule.grad(f)(x)"),
        ("x['a':]", TypeError, "slice indices must be integers or None or have an __index__ method", "str 'a'"),
        ("cr.clamp(x, 'a')", TypeError, "clamp(): argument 'min' must be Number or Tensor, not str", ""),
        ("cr.clamp(x, min=0, max='a')", TypeError, "clamp(): argument 'max' must be Number or Tensor, not str", ""),
        (
            "cr.where([True], x, x)",
            TypeError,
            "where(): argument 'condition' (position 1) must be Tensor, not list",
            "wrap it in tensor(...)",
        ),
        (
            "x * [1, 2]",
            TypeError,
            "only integer tensors of a single element can be converted to an index",
            "Convert the sequence: tensor([1, 2])",
        ),
        (
            "range(x)",
            TypeError,
            "only integer tensors of a single element can be converted to an index",
            "not x of dtype torch.float32 and shape (2,)",
        ),
        ("cr.where(x, x, x)", RuntimeError, "where expected condition to be a boolean tensor", "where(x > 0, ...)"),
        (
            "cr.nn.functional.mse_loss(x, 3.)",
            TypeError,
            "mse_loss(): argument 'target' (position 2) must be Tensor, not float",
            "tensor(...)",
        ),
        (
            "cr.nn.functional.cross_entropy(M, [0, 1])",
            TypeError,
            "cross_entropy(): argument 'target' (position 2) must be Tensor, not list",
            "tensor(...)",
        ),
        (
            "cr.nn.functional.mse_loss(x, x, reduction='avg')",
            ValueError,
            "avg is not a valid value for reduction",
            "'mean', 'sum' or 'none'",
        ),
    ],
)
def test_mistake(program, line, kind, words, said):
    ran = program(f"""
x = cr.ones(2, requires_grad=True)
k = cr.arange(2)
M = cr.ones(2, 3)
{line}
""")
    assert said in ran.raised(kind, words)
    assert ran.names["x"].grad is None


@pytest.mark.parametrize("api", ["grad", "value_and_grad", "grad_and_value"])
@pytest.mark.parametrize(("result", "words"), [("None", "return a Tensor, got <class 'NoneType'>"), ("x", "1 dims")])
def test_the_function_that_was_called_is_named(program, api, result, words):
    ran = program(f"cr.func.{api}(lambda x: {result})(np.ones(2))")
    assert words in ran.raised(RuntimeError, f"{api}(f)(*args): Expected f(*args) to return a")


def test_arrays_are_copied_with_copy_and_tensors_with_clone(program):
    source = """
from chainrule._src.messages.reading import out_of_place
x, y = np.ones(2), cr.ones(2)
print(out_of_place("x[0] = 1"), out_of_place("y[0] = 1"))
"""
    printed = program(source).printed
    assert "`x = x.copy()`" in printed and "`y = y.clone()`" in printed


def test_integers_as_a_gradient_are_accepted(program):
    ran = program("""
x = cr.ones(3, requires_grad=True)
(x * 2).backward(cr.tensor([1, 2, 3]))
""")
    assert ran.error is None and ran.names["x"].grad.tolist() == [2, 4, 6]


def test_in_place_write_seen_by_a_custom_function(program):
    text = program("""
class Square(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * g * x
h = cr.ones(2, requires_grad=True) * 2
y = Square.apply(h)
h.zero_()
y.sum().backward()
""").raised(
        RuntimeError, "one of the variables needed for gradient computation has been modified by an inplace operation"
    )
    assert "saved_tensors[0] of SquareBackward" in text
    assert "Square (t.py:13) saved it for backward, and then `h.zero_()` (t.py:14) overwrote it" in text


def test_messages_do_without_source():
    """Interactively typed programs have names, but no lines."""
    scope = {}
    exec("import chainrule as cr\nx = cr.ones(2, requires_grad=True)\ny = x * 2", scope)
    with pytest.raises(RuntimeError, match="grad can be implicitly created") as info:
        exec("y.backward()", scope)
    assert "y = mul has shape (2,)" in str(info.value)
    with pytest.raises(RuntimeError, match="does not require grad"):
        exec("(x > 1).float().sum().backward()", scope)
    with pytest.raises(RuntimeError, match="second time"):
        exec("z = x.exp().sum()\nz.backward()\nz.backward()", scope)
    with pytest.warns(UserWarning, match=r"float\(x\)"):
        exec("import math\nx = cr.tensor(1., requires_grad=True)\nmath.sin(x)", scope)
