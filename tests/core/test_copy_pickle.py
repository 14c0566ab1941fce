"""copy.copy, copy.deepcopy and pickle of tensors."""

import copy
import gc
import pickle
import warnings
import weakref

import numpy as np
import pytest

from behaviour import differs, torch


def through_pickle(x, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(x, protocol))


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_copy_is_another_tensor_of_the_same_memory(requires_grad):
    x = torch.tensor([1.0, 2.0], requires_grad=requires_grad)
    y = copy.copy(x)
    assert y is not x and y.requires_grad is requires_grad and y.is_leaf and y.grad is None
    assert y.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("x", [leaf(1.0, 2.0), torch.ones(2), torch.ones(2, dtype=torch.int64)])
def test_attributes_of_ones_own_are_copied(x):
    x.tag, x.held = "a", [1]
    for y, shared in ((copy.copy(x), True), (copy.deepcopy(x), False), (through_pickle(x), False)):
        assert y.__dict__ == x.__dict__ and y.__dict__ is not x.__dict__ and (y.held is x.held) is shared
    del x.tag
    assert x.__dict__ == {"held": [1]}
    with pytest.raises(AttributeError, match="no attribute 'tag'"):
        x.tag
    with pytest.raises(AttributeError):
        x.shape = (2,)


def test_attributes_of_ones_own_stay_with_their_tensor():
    x = leaf(1.0, 2.0)
    x.tag = x  # in a cycle, which the collector finds
    y = x * 2
    y.tag = 1
    for z in (x.detach(), x.data, x.clone(), y.view(2), y + 0):
        assert z.__dict__ == {}
    assert x.requires_grad_().tag is x and x.contiguous().tag is x and y.add_(1).tag == 1
    x, seen = None, weakref.ref(x)
    del y, z
    gc.collect()
    assert seen() is None


@differs("a copy of a result is a leaf there, and deepcopy of a parameter drops its attributes")
def test_attributes_of_results_and_parameters_are_copied():
    y = leaf(1.0, 2.0) * 2
    y.tag = 1
    assert copy.copy(y).tag == copy.deepcopy(y).tag == 1
    layer = torch.nn.Linear(2, 2)
    layer.weight.tag = 1
    assert copy.deepcopy(layer).weight.tag == 1


@differs("a leaf there: what is computed from the copy has no gradient for x, and nothing says so")
def test_copy_of_a_result_is_a_result():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = copy.copy(y)
    assert z.requires_grad and not z.is_leaf and z.data_ptr() == y.data_ptr()
    z.add_(1.0)  # memory and history are the same
    (y * z).sum().backward()
    assert y.tolist() == [3.0, 5.0] and x.grad.tolist() == [12.0, 20.0]


@differs("a leaf there")
def test_copies_inside_transformations_carry_derivatives():
    def f(x):
        return (copy.copy(x.sin()) * copy.copy(x)).sum()

    def g(x):
        return (copy.deepcopy({"x": x})["x"].sin() * copy.deepcopy(x)).sum()

    x = torch.tensor([0.3, 0.7])
    want = x.cos() * x + x.sin()
    for function in (f, g):
        assert torch.allclose(torch.func.grad(function)(x), want)
        assert torch.allclose(torch.func.jacfwd(function)(x), want)
        assert torch.allclose(torch.func.vmap(torch.func.grad(function))(x[None])[0], want)
    assert torch.allclose(torch.func.grad(lambda x: (copy.deepcopy(x.sin()) * x).sum())(x), want)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, through_pickle])
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
def test_a_leaf_keeps_values_dtype_and_flag(duplicate, requires_grad, dtype):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=getattr(torch, dtype), requires_grad=requires_grad)
    y = duplicate(x)
    assert type(y) is type(x) and y.dtype == x.dtype and y.is_leaf and y.requires_grad is requires_grad
    assert y.tolist() == x.tolist() and y.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, through_pickle])
@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2,)])
def test_integers_scalars_and_empty_tensors(duplicate, dtype, shape):
    x = torch.ones(shape, dtype=getattr(torch, dtype))
    y = duplicate(x)
    assert y.dtype == x.dtype and y.shape == x.shape and y.tolist() == x.tolist()


def test_deepcopy_copies_the_gradient():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    y = copy.deepcopy(x)
    assert y.grad.tolist() == [2.0, 4.0] and y.grad.data_ptr() != x.grad.data_ptr()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [5.0, 7.0] and x.grad.tolist() == [2.0, 4.0]


@differs("its pickles leave the gradient out")
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_keeps_the_gradient(protocol):
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    y = through_pickle(x, protocol)
    assert y.grad.tolist() == [2.0, 4.0] and y.requires_grad


@differs("its pickles leave the gradient out")
def test_pickle_keeps_a_recorded_gradient_without_its_graph():
    x = leaf(1.0, 2.0)
    (x**3).sum().backward(create_graph=True)
    y = through_pickle(x)
    assert y.grad.tolist() == [3.0, 12.0] and not y.grad.requires_grad
    x.grad = None


def test_the_copy_of_a_leaf_trains_on_its_own():
    x = leaf(1.0)
    y = copy.deepcopy(x)
    (y * 2).sum().backward()
    assert x.grad is None and y.grad.tolist() == [2.0]
    with torch.no_grad():
        y += 5
    assert x.tolist() == [1.0]


def test_the_same_tensor_stays_the_same():
    x = leaf(1.0)
    for duplicate in (copy.deepcopy, through_pickle):
        a, b = duplicate([x, x])
        assert a is b


def test_deepcopy_keeps_shared_memory_shared():
    base = torch.arange(6.0).reshape(2, 3)
    a, row, turned, every = copy.deepcopy([base, base[1], base.t(), base[:, ::2]])
    a[1, 2] = 9
    assert row.tolist() == [3.0, 4.0, 9.0] and turned[2, 1].item() == 9 and every[1, 1].item() == 9
    assert base[1, 2].item() == 5
    assert turned.stride() == (1, 3)


@differs("it has no views with negative strides")
def test_deepcopy_keeps_reversed_memory_shared():
    base = torch.from_numpy(np.arange(4.0))
    a, b = copy.deepcopy([base, torch.from_numpy(base.numpy()[::-1])])
    a[0] = 7
    assert b.tolist() == [3.0, 2.0, 1.0, 7.0]


@pytest.mark.parametrize("make", [lambda x: x.t(), lambda x: x[:, 1:], lambda x: x.expand(2, 2, 3)])
def test_deepcopy_keeps_strides(make):
    x = make(torch.arange(6.0).reshape(2, 3))
    y = copy.deepcopy(x)
    assert y.stride() == x.stride() and y.tolist() == x.tolist()


def test_hooks_are_not_copied():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(g))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copies = [copy.deepcopy(x), through_pickle(x)]
    for y in copies:
        y.sum().backward()
    assert seen == []


def test_pickle_warns_that_hooks_are_lost():
    x = leaf(1.0)
    x.register_hook(print)
    with pytest.warns(UserWarning, match="backward hook .*print.* on tensor will not be serialized"):
        pickle.dumps(x)


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_modes_do_not_change_what_a_copy_is(mode):
    x = leaf(1.0)
    with getattr(torch, mode)():
        assert copy.deepcopy(x).requires_grad and copy.copy(x).requires_grad and through_pickle(x).requires_grad


def test_copies_of_inference_tensors_are_ordinary():
    with torch.inference_mode():
        x = torch.ones(2)
    for y in (copy.copy(x), copy.deepcopy(x), through_pickle(x)):
        assert not y.is_inference()
        y.requires_grad_()


def test_parameters():
    p = torch.nn.Parameter(torch.ones(2))
    for q in (copy.deepcopy(p), through_pickle(p)):
        assert type(q) is type(p) and q.requires_grad and q.is_leaf and q.data_ptr() != p.data_ptr()
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    assert not copy.deepcopy(frozen).requires_grad


def test_graphs_are_not_pickled():
    with pytest.raises(TypeError, match="cannot pickle 'MulBackward0' object"):
        pickle.dumps((leaf(1.0) * 2).grad_fn)
    with pytest.raises(TypeError, match="cannot pickle 'MulBackward0' object"):
        copy.deepcopy((leaf(1.0) * 2).grad_fn)


# -- results ---------------------------------------------------------------------------------------------------------


@differs("it pickles the values of a result, which silently becomes a leaf")
def test_results_are_not_pickled():
    with pytest.raises(RuntimeError, match=r"output of MulBackward0: its graph would be lost. Pickle t.detach\(\)"):
        pickle.dumps(leaf(1.0) * 2)


graphs = differs("it refuses to deepcopy results of operations")


@graphs
def test_deepcopy_of_leaves_and_results_is_a_graph_of_its_own():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    h = torch.tanh(x * w)
    loss = (h * h + x[0]).sum()
    x2, w2, h2, loss2 = copy.deepcopy([x, w, h, loss])
    loss.backward()
    assert x2.grad is None
    loss2.backward()
    assert x2.grad.tolist() == x.grad.tolist() and w2.grad.tolist() == w.grad.tolist()
    assert (
        h2.grad_fn is not h.grad_fn and h2.grad_fn.name() == "TanhBackward0" and loss2.grad_fn.name() == "SumBackward0"
    )


@graphs
@pytest.mark.parametrize("reverse", [False, True])
def test_the_order_does_not_matter(reverse):
    x = leaf(2.0)
    y = x**3
    things = copy.deepcopy([y, x] if reverse else [x, y])
    b, a = things if reverse else reversed(things)
    (first,) = torch.autograd.grad(b, a, create_graph=True)
    (second,) = torch.autograd.grad(first, a)
    assert (first.item(), second.item()) == (12.0, 12.0)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(b, x)


@graphs
def test_operations_of_several_results_in_place_writes_and_empty_gradients():
    x = leaf(3.0, 1.0, 2.0)
    values, order = torch.sort(x)
    y = values * 2
    y[0] = 5.0
    parts = y.unbind()
    x2, order2, y2, last = copy.deepcopy((x, order, y, parts[2]))
    assert order2.tolist() == [1, 2, 0] and y2.tolist() == y.tolist()
    (y2.sum() + last).backward()
    assert x2.grad.tolist() == [4.0, 0.0, 2.0]


@graphs
def test_a_copied_graph_notices_writes_to_its_own_memory():
    x = leaf(1.0, 2.0)
    y = x * x
    x2, y2 = copy.deepcopy([x, y])
    with torch.no_grad():
        x += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y2.sum().backward()
    assert x2.grad.tolist() == [2.0, 4.0]
    x3, y3 = copy.deepcopy([x2, x2 * x2])
    with torch.no_grad():
        x3 += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y3.sum().backward()


@graphs
def test_what_cannot_be_right_is_not_copied():
    x = leaf(1.0, 2.0)
    y = x * x
    with torch.no_grad():
        x += 1
    with pytest.raises(RuntimeError, match=r"Only Tensors created explicitly by the user .*inplace operation"):
        copy.deepcopy(y)


@graphs
def test_a_used_graph_stays_used():
    y = torch.exp(leaf(1.0)).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        copy.deepcopy(y).backward()


@graphs
def test_a_result_that_retains_its_gradient():
    y = leaf(1.0) * 2
    y.retain_grad()
    (y * 3).sum().backward(retain_graph=True)
    z = copy.deepcopy(y)
    assert z.retains_grad and z.grad.tolist() == [3.0]
    z.grad = None
    (z * 4).sum().backward()
    assert z.grad.tolist() == [4.0] and y.grad.tolist() == [3.0]


@graphs
def test_a_long_chain():
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = y * 1.0
    x2, y2 = copy.deepcopy((x, y))
    y2.sum().backward()
    assert x2.grad.item() == 1.0


@graphs
def test_leaves_that_nobody_holds():
    def inner():
        return leaf(2.0) * 3

    y = inner()
    z = copy.deepcopy(y)
    z.backward()
    assert z.tolist() == [6.0]


@graphs
def test_nothing_is_kept_alive():
    x = leaf(1.0)
    y = copy.deepcopy(x * 2)
    node = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert node() is None


@graphs
def test_functions_and_packed_values_are_refused():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(RuntimeError, match=r"Only Tensors created .*TwiceBackward, a custom Function"):
        copy.deepcopy(Twice.apply(leaf(1.0)))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = torch.exp(leaf(1.0))
    with pytest.raises(RuntimeError, match="packed by saved_tensors_hooks"):
        copy.deepcopy(y)


@differs("its subclasses need new_empty() for this")
def test_subclasses_keep_type_and_attributes():
    global Named

    class Named(torch.Tensor):
        pass

    Named.__qualname__ = "Named"
    x = Named(torch.ones(2))
    x.label = ["a"]
    for duplicate in (copy.copy, copy.deepcopy, through_pickle):
        y = duplicate(x)
        assert type(y) is Named and y.label == ["a"] and y.tolist() == [1.0, 1.0]
    assert copy.deepcopy(x).label is not x.label
