"""torch.autograd.grad and backward: arguments, edges of the graph as inputs, batches of gradients, errors."""

import gc
import weakref
from importlib import import_module

import pytest

from behaviour import differs, leaf, torch

grad, backward = torch.autograd.grad, torch.autograd.backward
ONES = torch.ones(2)


def edge_of(tensor):
    return import_module(torch.__name__ + ".autograd.graph").get_gradient_edge(tensor)


class Case:
    """z = (x·w)², with x = (1, 2) and w = (3, 4)."""

    def __init__(self):
        self.x = torch.tensor([1.0, 2.0], requires_grad=True)
        self.w = torch.tensor([3.0, 4.0], requires_grad=True)
        self.y = self.x * self.w
        self.z = self.y * self.y


@pytest.fixture
def c():
    return Case()


def values(results):
    return tuple(None if r is None else r.tolist() for r in results)


# -- grad_outputs -----------------------------------------------------------------------------------------------------


def test_gradients_and_their_forms(c):
    for given in (ONES, (ONES,), [ONES], ONES.double(), ONES.long()):
        (g,) = grad(c.z, c.x, given, retain_graph=True)
        assert g.tolist() == [18.0, 64.0] and g.dtype == torch.float32
    assert values(grad(c.z.sum(), c.x, (None,))) == ([18.0, 64.0],)


def test_outputs_that_are_inputs(c):
    assert values(grad(c.x, c.x, ONES)) == ([1.0, 1.0],)
    assert values(grad((c.y.sum(), c.y.sum()), c.x)) == ([6.0, 8.0],)


def test_inputs_given_twice(c):
    assert values(grad(c.y.sum(), (c.x, c.x))) == ([3.0, 4.0], [3.0, 4.0])


@differs("both results share their memory")
def test_inputs_given_twice_get_gradients_of_their_own(c):
    first, second = grad(c.y.sum(), (c.x, c.x))
    first.mul_(0)
    assert second.tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("gradient", "error", "words"),
    [
        (
            torch.ones(3),
            RuntimeError,
            r"grad_output\[0\] has a shape of torch.Size\(\[3\]\) and output\[0\] has a shape",
        ),
        (torch.tensor(1.0), RuntimeError, "Mismatch in shape"),
        (ONES.to(torch.complex64), RuntimeError, "For complex Tensors, both grad_output and output are required"),
        (None, RuntimeError, "grad can be implicitly created only for scalar outputs"),
        (3, TypeError, None),
    ],
)
def test_gradients_that_do_not_fit(c, gradient, error, words):
    with pytest.raises(error, match=words):
        grad(c.z, c.x, gradient)


@differs("extra gradients are ignored")
def test_too_many_gradients(c):
    with pytest.raises(RuntimeError, match="1 tensors and 2 gradients"):
        grad(c.z, c.x, (ONES, ONES))


# -- inputs ----------------------------------------------------------------------------------------------------------


def test_unused_inputs(c):
    out = (c.x * 2).sum()
    with pytest.raises(RuntimeError, match=r"at index 1 appears to not have been used in the graph\. Set allow_unused"):
        grad(out, (c.x, c.w), retain_graph=True)
    assert values(grad(out, (c.x, c.w), retain_graph=True, allow_unused=True)) == ([2.0, 2.0], None)
    for options in ({}, {"allow_unused": True}):
        found = grad(out, (c.x, c.w), retain_graph=True, materialize_grads=True, **options)
        assert values(found) == ([2.0, 2.0], [0.0, 0.0])
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed when materialize_grads=True"):
        grad(out, (c.x, c.w), materialize_grads=True, allow_unused=False)


def test_inputs_that_cannot_be(c):
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `grad\(\)` cannot be empty"):
        grad(c.z.sum(), ())
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        grad(c.z.sum(), ONES)
    with pytest.raises(TypeError):
        grad(c.z.sum(), 3)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        grad(torch.ones(()), c.x)


def test_inputs_of_backward(c):
    c.z.sum().backward(inputs=c.x, retain_graph=True)
    assert c.x.grad.tolist() == [18.0, 64.0] and c.w.grad is None
    c.z.sum().backward(inputs=[c.y, c.w], retain_graph=True)
    assert c.y.grad.tolist() == [6.0, 16.0] and c.w.grad.tolist() == [6.0, 32.0]
    assert c.x.grad.tolist() == [18.0, 64.0]
    unused = torch.ones(2, requires_grad=True)
    c.z.sum().backward(inputs=[unused])
    assert unused.grad is None
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `backward\(\)` cannot be empty"):
        c.z.sum().backward(inputs=[])
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges, but got str"):
        c.z.sum().backward(inputs="a")


def test_gradients_of_backward(c):
    with pytest.raises(RuntimeError, match=r"deprecated.*both passed to `backward"):
        backward(c.z, ONES, grad_variables=ONES)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        backward((c.z,), (torch.ones(3),))
    assert c.x.grad is None
    backward(c.z, grad_variables=ONES)
    assert c.x.grad.tolist() == [18.0, 64.0]


# -- edges of the graph ----------------------------------------------------------------------------------------------


def test_what_an_edge_is(c):
    edge = edge_of(c.y)
    assert edge.node is c.y.grad_fn and edge.output_nr == 0
    assert edge == edge_of(c.y) and edge != edge_of(c.z)
    assert isinstance(edge, tuple) and edge[:2] == (c.y.grad_fn, 0)
    assert edge_of(c.x).node.name().endswith("AccumulateGrad")
    with pytest.raises(RuntimeError, match="not possible to get the gradient edge for a Tensor that does not require"):
        edge_of(ONES)


def test_edges_as_inputs(c):
    assert values(grad(c.z.sum(), edge_of(c.y), retain_graph=True)) == ([6.0, 16.0],)
    assert values(grad(c.z.sum(), (edge_of(c.x), c.w), retain_graph=True)) == ([18.0, 64.0], [6.0, 32.0])
    out = (c.x * 2).sum()
    assert values(grad(out, (c.x, edge_of(c.w)), allow_unused=True, retain_graph=True)) == ([2.0, 2.0], None)
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when the given input is a GradientEdge"):
        grad(out, (c.x, edge_of(c.w)), materialize_grads=True, retain_graph=True)
    with pytest.raises(RuntimeError, match="at index 1 appears to not have been used"):
        grad(out, (c.x, edge_of(c.w)))


def test_edges_as_outputs(c):
    assert values(grad(edge_of(c.z), c.x, ONES, retain_graph=True)) == ([18.0, 64.0],)
    assert values(grad((edge_of(c.z), c.y), c.x, (ONES, ONES), retain_graph=True)) == ([21.0, 68.0],)
    batch = grad(edge_of(c.z), c.x, torch.eye(2), is_grads_batched=True, retain_graph=True)
    assert values(batch) == ([[18.0, 0.0], [0.0, 64.0]],)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        grad(edge_of(c.z), c.x, retain_graph=True)
    backward(edge_of(c.z), ONES)
    assert c.x.grad.tolist() == [18.0, 64.0]


def test_edges_as_inputs_of_backward(c):
    c.z.sum().backward(inputs=edge_of(c.x))
    assert c.x.grad.tolist() == [18.0, 64.0] and c.w.grad is None


def test_an_edge_outlives_its_tensor(c):
    edge = edge_of(c.y)
    out = c.z.sum()
    del c.y, c.z
    assert values(grad(out, edge)) == ([6.0, 16.0],)


def spectrum():
    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    return x, *torch.linalg.eigh(x)


def test_edges_of_a_function_with_several_outputs():
    x, v, q = spectrum()
    first, second = edge_of(v), edge_of(q)
    assert (first.output_nr, second.output_nr) == (0, 1) and first.node is second.node
    out = (v**2).sum() + (q * q * q).sum()
    gv, gq = grad(out, (first, second), retain_graph=True)
    assert torch.allclose(gv, 2 * v) and torch.allclose(gq, 3 * q * q)
    (again,) = grad(out, type(second)(second.node, 1, None), retain_graph=True)
    assert torch.allclose(again, 3 * q * q)
    assert torch.allclose(grad(first, x, ONES)[0], torch.eye(2), atol=1e-6)


def test_recorded_gradients_lead_back_to_every_output():
    x, v, q = spectrum()
    (g,) = grad((v**3).sum(), x, create_graph=True)
    for wrt, want in ((v, [0.8754, 41.1246]), (q, [[-3.7232, 108.1024], [-3.7232, 108.1024]])):
        (found,) = grad(g.sum(), wrt, retain_graph=True)
        assert torch.allclose(found.abs(), torch.tensor(want).abs(), atol=1e-3)  # eigenvectors are unique up to sign


# -- batches of gradients --------------------------------------------------------------------------------------------


def test_batches(c):
    found = grad((c.z, c.y), (c.x, c.w), (torch.eye(2), torch.eye(2)), is_grads_batched=True, retain_graph=True)
    assert values(found) == ([[21.0, 0.0], [0.0, 68.0]], [[7.0, 0.0], [0.0, 34.0]])
    (g,) = grad(c.z, c.x, torch.eye(2).double(), is_grads_batched=True, retain_graph=True)
    assert g.dtype == torch.float32
    out = c.x * 2
    found = grad(out, (c.x, c.w), torch.eye(2), is_grads_batched=True, allow_unused=True)
    assert values(found) == ([[2.0, 0.0], [0.0, 2.0]], None)


def test_a_batch_of_gradients_that_do_not_depend_on_it(c):
    (g,) = grad(c.x.sum(), c.x, torch.ones(3), is_grads_batched=True)
    assert g.shape == (3, 2) and g.sum() == 6


def test_recorded_batches(c):
    (g,) = grad(c.z, c.x, torch.eye(2), is_grads_batched=True, create_graph=True)
    assert g.requires_grad
    assert values(grad(g.sum(), (c.x, c.w))) == ([18.0, 32.0], [12.0, 32.0])


def test_batches_that_do_not_fit(c):
    with pytest.raises(
        RuntimeError, match="we interpret the first dimension of each grad_output as the batch dimension"
    ):
        grad(c.z, c.x, torch.ones(2, 3), is_grads_batched=True)
    with pytest.raises(ValueError, match="same size in the mapped dimension"):
        grad((c.z, c.y), c.x, (torch.eye(2), torch.ones(3, 2)), is_grads_batched=True)
    with pytest.raises((RuntimeError, ValueError)):
        grad(c.z.sum(), c.x, None, is_grads_batched=True)
    with pytest.raises((RuntimeError, IndexError)):
        grad(c.z.sum(), c.x, torch.tensor(1.0), is_grads_batched=True)


# -- retaining the graph ----------------------------------------------------------------------------------------------


def test_the_graph_is_kept_where_asked(c):
    grad(c.z.sum(), c.x, retain_graph=True)
    grad(c.z.sum(), c.x, create_graph=True)
    out = c.z.sum()
    grad(out, c.x)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        grad(out, c.x)


def test_a_recorded_gradient_needs_no_kept_graph(c):
    (g,) = grad(c.z.sum(), c.x, create_graph=True, retain_graph=False)
    assert g.requires_grad


def test_inputs_by_name(c):
    found = grad(c.y.sum(), {"x": c.x, "w": c.w})
    assert list(found) == ["x", "w"] and found["x"].tolist() == [3, 4] and found["w"].tolist() == [1, 2]


@differs("there may be a GPU there")
def test_the_device_that_scripts_choose():
    assert torch.device("cuda" if torch.cuda.is_available() else "cpu").type == "cpu"
    assert torch.cuda.device_count() == 0
    with pytest.raises(RuntimeError, match="computes on the CPU"):
        torch.cuda.synchronize()
    with pytest.raises(AttributeError, match="chainrule computes on the CPU"):
        torch.cuda.nvtx


# -- gradients that are constant almost everywhere -------------------------------------------------------------------

F = torch.nn.functional
PLANE = torch.linspace(-1.3, 1.7, 16).reshape(1, 1, 4, 4)
LINE = torch.linspace(-1.3, 1.7, 6).reshape(1, 1, 6)
ROWS = torch.linspace(-1.3, 1.7, 6).reshape(2, 3)

#: operations whose gradient depends on their operand according to PyTorch's metadata, although it is constant
TIED = {
    "relu": (torch.relu, ROWS),
    "Tensor.relu": (lambda x: x.relu(), ROWS),
    "relu6": (F.relu6, ROWS),
    "leaky_relu": (F.leaky_relu, ROWS),
    "prelu": (lambda x: F.prelu(x, torch.tensor([0.2])), ROWS),
    "rrelu": (F.rrelu, ROWS),
    "threshold": (lambda x: F.threshold(x, 0.1, 20.0), ROWS),
    "hardtanh": (F.hardtanh, ROWS),
    "hardshrink": (F.hardshrink, ROWS),
    "softshrink": (F.softshrink, ROWS),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), LINE),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), PLANE),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 2), LINE),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), PLANE),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), PLANE),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), PLANE),
    "pad, reflect": (lambda x: F.pad(x, (1, 1), "reflect"), LINE),
    "pad, replicate": (lambda x: F.pad(x, (1, 1), "replicate"), LINE),
    "interpolate, area": (lambda x: F.interpolate(x, 3, mode="area"), LINE),
    "nll_loss": (lambda x: F.nll_loss(x, torch.tensor([0, 2])), ROWS),
}
UNTIED = {
    "mul": (lambda x: x * 2.0, ROWS),
    "clamp": (lambda x: x.clamp(-1.0, 1.0), ROWS),
    "maximum": (lambda x: torch.maximum(x, torch.zeros(2, 3)), ROWS),
    "sort": (lambda x: x.sort().values, ROWS),
    "where": (lambda x: torch.where(x > 0, x, -x), ROWS),
    "pad, constant": (lambda x: F.pad(x, (1, 1)), LINE),
    "pad, circular": (lambda x: F.pad(x, (1, 1), "circular"), LINE),
    "adaptive_avg_pool2d to one": (lambda x: F.adaptive_avg_pool2d(x, 1), PLANE),
    "sum": (torch.sum, ROWS),
}


@pytest.mark.parametrize("name", TIED)
def test_constant_gradients_can_be_differentiated_again(name):
    operation, value = TIED[name]
    x = value.clone().requires_grad_()
    (g,) = torch.autograd.grad(operation(x).sum(), x, create_graph=True)
    assert g.requires_grad
    (second,) = torch.autograd.grad(g.sum(), x, retain_graph=True)
    assert second.shape == x.shape and not second.any()
    g.pow(2).sum().backward()
    assert x.grad.shape == x.shape and not x.grad.any()


@pytest.mark.parametrize("name", UNTIED)
def test_gradients_of_linear_operations_have_no_graph(name):
    operation, value = UNTIED[name]
    x = value.clone().requires_grad_()
    assert not torch.autograd.grad(operation(x).sum(), x, create_graph=True)[0].requires_grad


BIASES = {
    "conv1d": lambda w, b: F.conv1d(LINE, w, b),
    "conv_transpose1d": lambda w, b: F.conv_transpose1d(LINE, w, b),
    "layer_norm": lambda w, b: F.layer_norm(LINE[..., :2], (2,), w[0, 0], torch.cat([b, b])),
    "batch_norm": lambda w, b: F.batch_norm(PLANE, None, None, w[0, 0, :1], b, True),
}


@pytest.mark.parametrize("name", BIASES)
def test_gradients_of_biases_can_be_differentiated_again(name):
    w, b = torch.ones(1, 1, 2, requires_grad=True), torch.ones(1, requires_grad=True)
    (g,) = torch.autograd.grad(BIASES[name](w, b).sum(), b, create_graph=True)
    assert g.requires_grad
    g.sum().backward()
    assert w.grad is None or not w.grad.any()


def test_a_relu_network_has_no_curvature():
    x = torch.linspace(-1, 1, 5).requires_grad_()
    v, w = torch.linspace(-2, 3, 5), torch.linspace(0.5, 2, 5, requires_grad=True)
    u = torch.relu(x * v) * w
    (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), x, retain_graph=True)
    assert not curvature.any()
    slope.sum().backward()
    assert torch.equal(w.grad, v * (x * v > 0)) and not x.grad.any()


def test_a_non_leaf_that_only_ties_lead_to_gets_zeros():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    (g,) = torch.autograd.grad(torch.relu(y).sum(), x, create_graph=True)
    assert not torch.autograd.grad(g.sum(), y)[0].any()


# -- edges of the graph, and zeros -------------------------------------------------------------------------------------


def test_materialized_zeros_can_be_differentiated_again():
    x, y = leaf(0.5), leaf(1.0)
    (unused,) = grad((x * x).sum(), y, create_graph=True, materialize_grads=True)
    assert unused.tolist() == [0.0] and unused.requires_grad
    assert grad(unused.sum(), y, materialize_grads=True)[0].tolist() == [0.0]
    (plain,) = grad((x * x).sum(), y, materialize_grads=True)
    assert not plain.requires_grad


def test_gradient_edge_of_a_scalar_is_an_output():
    x = leaf(1.0, 2.0)
    edge = edge_of((x * x).sum())
    assert grad(edge, x, retain_graph=True)[0].tolist() == [2.0, 4.0]
    backward(edge)
    assert x.grad.tolist() == [2.0, 4.0]


def test_gradient_edge_knows_the_shape_of_its_tensor():
    x = leaf(1.0, 2.0)
    edge = edge_of(x * x)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar output"):
        grad(edge, x)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        grad(edge, x, grad_outputs=torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="required to have the same dtype"):
        grad(edge, x, grad_outputs=torch.ones(2, dtype=torch.complex128))
    assert grad(edge, x, grad_outputs=torch.ones(2, dtype=torch.float64))[0].tolist() == [2.0, 4.0]


def test_gradient_edge_does_not_keep_the_values():
    x = leaf(1.0, 2.0)
    y = x + 1
    edge = edge_of(y)
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None
    assert grad(edge, x, grad_outputs=torch.ones(2, dtype=torch.float64))[0].tolist() == [1.0, 1.0]
