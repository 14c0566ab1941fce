"""``autograd.graph``: nodes, edges, versions, and hooks on what the graph saves."""

import gc
import importlib
import os

import pytest

from behaviour import OURS, differs, leaf, torch

graph = importlib.import_module(torch.__name__ + ".autograd.graph")


def same(t):
    return t


# -- nodes and edges -------------------------------------------------------------------------------------------------


def test_grad_fn_is_a_node():
    y = leaf(1.0) * 2
    assert isinstance(y.grad_fn, graph.Node)
    assert issubclass(type(y.grad_fn), graph.Node)
    assert isinstance(y.grad_fn.next_functions[0][0], graph.Node)
    assert not isinstance(3, graph.Node) and not isinstance(y, graph.Node)


def test_nodes_are_not_made_by_hand():
    with pytest.raises(TypeError, match="abstract"):
        graph.Node()


def test_gradient_edges_stand_for_tensors():
    x = leaf(1.0, 2.0)
    y = x * 3
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    assert edge == graph.get_gradient_edge(y) != graph.get_gradient_edge(x)
    at_x = graph.get_gradient_edge(x)
    gx, gy = torch.autograd.grad((y * y).sum(), [at_x, edge])
    assert gy.tolist() == [6.0, 12.0]
    assert gx.tolist() == [18.0, 36.0]


def test_the_edge_of_one_of_several_outputs():
    x = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64, requires_grad=True)
    w, v = torch.linalg.eigh(x)
    edge = graph.get_gradient_edge(v)
    assert edge.output_nr == 1
    assert torch.autograd.grad(w.sum() + (v * 3).sum(), edge)[0].tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_backward_from_an_edge():
    x = leaf(1.0, 2.0)
    edge = graph.get_gradient_edge(x * 3)
    torch.autograd.backward([edge], [torch.ones(2, dtype=torch.float64)])
    assert x.grad.tolist() == [3.0, 3.0]


def test_no_edge_without_requires_grad():
    with pytest.raises(RuntimeError, match="not possible to get the gradient edge"):
        graph.get_gradient_edge(torch.ones(2))


def test_increment_version():
    x = torch.ones(2)
    graph.increment_version(x)
    assert x._version == 1
    graph.increment_version([x, x])
    assert x._version == 3
    y = leaf(1.0).exp()
    graph.increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# -- several gradients -----------------------------------------------------------------------------------------------


def test_multi_grad_hook_waits_for_all():
    x, y, z, seen = leaf(1.0), leaf(2.0), leaf(3.0), []
    inner = x * y
    graph.register_multi_grad_hook((inner, y, z), lambda grads: seen.append([g.tolist() for g in grads]))
    total = (inner * z + y).sum()
    for _ in range(2):
        total.backward(retain_graph=True)
    assert seen == [[[3.0], [4.0], [2.0]]] * 2


def test_multi_grad_hook_has_none_for_what_the_pass_does_not_reach():
    x, y, z, seen = leaf(1.0), leaf(2.0), leaf(3.0), []
    handle = graph.register_multi_grad_hook((x, y, z), lambda grads: seen.append(grads))
    total = (x * y).sum()
    total.backward(retain_graph=True)
    ((gx, gy, gz),) = seen
    assert (gx.tolist(), gy.tolist(), gz) == ([2.0], [1.0], None)
    handle.remove()
    total.backward()
    assert len(seen) == 1


def test_multi_grad_hook_any_runs_once_a_pass():
    x, y, seen = leaf(1.0), leaf(2.0), []
    graph.register_multi_grad_hook((x, y), lambda g: seen.append(g.tolist()), mode="any")
    total = (x * y).sum()
    for _ in range(2):
        total.backward(retain_graph=True)
    assert len(seen) == 2 and all(g in ([2.0], [1.0]) for g in seen)


def test_multi_grad_hook_changes_nothing():
    x, y = leaf(1.0), leaf(2.0)
    graph.register_multi_grad_hook((x, y), lambda grads: [g * 100 for g in grads])
    (x * y).sum().backward()
    assert x.grad.tolist() == [2.0] and y.grad.tolist() == [1.0]


def test_multi_grad_hook_checks_its_arguments():
    with pytest.raises(ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got some"):
        graph.register_multi_grad_hook((leaf(1.0),), print, mode="some")
    with pytest.raises((RuntimeError, AssertionError)):
        graph.register_multi_grad_hook((torch.ones(1),), print)


@differs("leaves can't be watched during autograd.grad")
def test_multi_grad_hook_during_grad():
    x, y, seen = leaf(1.0), leaf(2.0), []
    graph.register_multi_grad_hook(
        (x, y), lambda grads: seen.append([None if g is None else g.tolist() for g in grads])
    )
    torch.autograd.grad((x * y).sum(), x)
    assert seen == [[[2.0], None]]


# -- hooks on saved values -------------------------------------------------------------------------------------------


def test_pack_and_unpack():
    x, packed = leaf(1.0, 2.0), []

    def pack(t):
        packed.append(t.tolist())
        return len(packed)

    with graph.saved_tensors_hooks(pack, lambda number: torch.full((2,), float(number), dtype=torch.float64)):
        y = x * x.sin()
    y.sum().backward()
    assert len(packed) == 3  # x for sin; x and sin(x) for the product
    assert x.grad.shape == (2,)


def test_only_inside_and_the_innermost():
    x, seen = leaf(1.0), []
    with graph.saved_tensors_hooks(lambda t: seen.append("outer") or t, same):
        with graph.saved_tensors_hooks(lambda t: seen.append("inner") or t, same):
            x.exp()
        x.exp()
    x.exp()
    assert seen == ["inner", "outer"]


def test_hooks_run_unrecorded_and_are_not_hooked_themselves():
    x, modes = leaf(1.0), []

    def pack(t):
        modes.append(torch.is_grad_enabled())
        with torch.enable_grad():
            leaf(2.0).exp()
        return t

    def unpack(t):
        modes.append(torch.is_grad_enabled())
        return t

    if OURS:
        with graph.saved_tensors_hooks(pack, unpack):
            y = x.exp()
        y.sum().backward()
        assert modes == [False, False]
    else:
        with graph.saved_tensors_hooks(lambda t: modes.append(torch.is_grad_enabled()) or t, unpack):
            y = x.exp()
        y.sum().backward()
        assert modes == [False, False]


def test_values_are_unpacked_for_each_backward():
    x, count = leaf(2.0), []
    with graph.saved_tensors_hooks(same, lambda t: count.append(1) or t):
        y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    assert len(count) == 2
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_saved_attributes_are_unpacked():
    x = leaf(0.0)
    with graph.saved_tensors_hooks(lambda t: None, lambda _: torch.full((1,), 7.0, dtype=torch.float64)):
        y = x.exp()
    assert y.grad_fn._saved_result.tolist() == [7.0]


def test_double_backward_through_packed_values():
    x = leaf(1.0, 2.0)
    with graph.saved_tensors_hooks(lambda t: t.detach().numpy().copy(), torch.from_numpy):
        y = (x**3).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.tolist() == [3.0, 12.0]
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [6.0, 12.0]


@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp", "vmap of grad", "grad of grad"])
def test_hooks_inside_transformations(transform):
    if not OURS and transform in ("grad", "vmap of grad", "grad of grad"):
        pytest.skip("PyTorch: hooks are off inside torch.func.grad")
    func, count = torch.func, []

    def f(x):
        with graph.saved_tensors_hooks(lambda t: count.append(1) or t, same):
            return x.sin() * x

    def g(x):
        return x.sin() * x

    x = torch.tensor([0.3, 0.7], dtype=torch.float64)
    t = torch.tensor([1.0, -1.0], dtype=torch.float64)
    run = {
        "grad": lambda f: func.grad(lambda x: f(x).sum())(x),
        "vmap": lambda f: func.vmap(f)(x),
        "jvp": lambda f: func.jvp(f, (x,), (t,))[1],
        "vmap of grad": lambda f: func.vmap(func.grad(f))(x),
        "grad of grad": lambda f: func.grad(lambda x: func.grad(lambda x: f(x).sum())(x).sum())(x),
    }[transform]
    torch.testing.assert_close(run(f), run(g))
    assert bool(count) == ("grad" in transform)


def test_an_unpack_hook_must_return_a_tensor():
    x = leaf(1.0)
    with graph.saved_tensors_hooks(same, lambda t: 3):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.sum().backward()
    assert x.grad is None


@differs("what the rule makes of a value of another shape or dtype is taken")
def test_an_unpack_hook_must_return_the_same_shape_and_dtype():
    for bad in (lambda t: t.sum(), lambda t: t.float()):
        x = leaf(1.0, 2.0)
        with graph.saved_tensors_hooks(same, bad):
            y = x.exp()
        with pytest.raises(RuntimeError, match="return the same values"):
            y.sum().backward()
        assert x.grad is None


def test_a_pack_hook_must_not_write_into_what_it_gets():
    x = leaf(1.0)
    with (
        graph.saved_tensors_hooks(lambda t: t.mul_(2), same),
        pytest.raises(RuntimeError, match="modifying its input in place"),
    ):
        x.exp()


@differs("the gradient is wrong without a word")
def test_a_value_kept_as_it_was_given_and_overwritten_is_an_error():
    x = leaf(1.0)
    with graph.saved_tensors_hooks(same, same):
        y = x.exp()
    with torch.no_grad():
        y.mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_an_error_in_a_pack_hook_reaches_the_caller():
    x = leaf(1.0)

    def pack(t):
        raise KeyError("full")

    with graph.saved_tensors_hooks(pack, same), pytest.raises(KeyError, match="full"):
        x.exp()
    assert x.exp().requires_grad and torch.is_grad_enabled()


def test_hooks_must_be_callable():
    with pytest.raises(TypeError), graph.saved_tensors_hooks(1, 2):
        pass


def test_disabling():
    x = leaf(1.0)
    with graph.disable_saved_tensors_hooks("not here"):
        x.exp()
        with pytest.raises(RuntimeError, match="not here"), graph.saved_tensors_hooks(same, same):
            x.exp()
        with (
            graph.disable_saved_tensors_hooks("nor here"),
            pytest.raises(RuntimeError, match="nor here"),
            graph.saved_tensors_hooks(same, same),
        ):
            pass
        with pytest.raises(RuntimeError, match="not here"), graph.saved_tensors_hooks(same, same):
            pass
    with graph.saved_tensors_hooks(same, same):
        x.exp()
        with pytest.raises(RuntimeError, match="too late"), graph.disable_saved_tensors_hooks("too late"):
            pass


def test_disabling_is_a_decorator():
    @graph.disable_saved_tensors_hooks("no")
    def f():
        with graph.saved_tensors_hooks(same, same):
            pass

    with pytest.raises(RuntimeError, match="no"):
        f()
    with graph.saved_tensors_hooks(same, same):
        pass


def test_save_on_cpu():
    x = leaf(1.0, 2.0)
    with graph.save_on_cpu(pin_memory=False):
        y = x.exp()
    assert y.grad_fn._saved_result.data_ptr() == y.data_ptr()  # existing values are not copied
    y.sum().backward()
    torch.testing.assert_close(x.grad, x.detach().exp())


def test_the_memory_of_packed_values_goes_with_the_graph():
    class Thing:
        alive = 0

        def __init__(self, t):
            Thing.alive += 1
            self.t = t

        def __del__(self):
            Thing.alive -= 1

    x = leaf(1.0, 2.0)
    gc.collect()
    gc.disable()
    try:
        with graph.saved_tensors_hooks(Thing, lambda thing: thing.t):
            y = x.sin().sin().sum()
            assert Thing.alive == 2
            y.backward()
            assert Thing.alive == 0
            z = x.sin().sum()
            assert Thing.alive == 1
            del z
            assert Thing.alive == 0
    finally:
        gc.enable()


# -- overwriting saved values ----------------------------------------------------------------------------------------


def test_mutation_of_saved_values():
    x = leaf(1.0, 2.0)
    with graph.allow_mutation_on_saved_tensors():
        y = x * 2
        z = y * y
        y.mul_(0)
        y.add_(3)
        (z.sum() + y.sum()).backward()
    assert x.grad.tolist() == [8.0, 16.0]


@pytest.mark.parametrize(
    "write", ["fill_", "copy_", "setitem", "zero_", "out", pytest.param("view", marks=differs("the gradient is wrong"))]
)
def test_every_way_of_writing(write):
    x = leaf(1.0, 2.0)
    with graph.allow_mutation_on_saved_tensors():
        buffer = torch.tensor([3.0, 4.0], dtype=torch.float64)
        z = (x * buffer).sum()
        if write == "fill_":
            buffer.fill_(9)
        elif write == "copy_":
            buffer.copy_(torch.zeros(2))
        elif write == "setitem":
            buffer[0] = 9
        elif write == "zero_":
            buffer.zero_()
        elif write == "view":
            buffer.view(2, 1)[1] += 5
        else:
            with torch.no_grad():
                torch.add(buffer, 1, out=buffer)
        z.backward()
    assert x.grad.tolist() == [3.0, 4.0]


@differs("the backward pass must run inside the context")
def test_mutation_and_a_backward_after_the_context():
    x = leaf(1.0, 2.0)
    with graph.allow_mutation_on_saved_tensors(), graph.allow_mutation_on_saved_tensors():
        y = x * 2
        z = (y * y).sum()
    y.detach().zero_()
    z.backward()
    assert x.grad.tolist() == [8.0, 16.0]


@pytest.mark.skipif(not OURS, reason="an option of ours")
def test_copy_on_write_as_an_option():
    x = leaf(1.0, 2.0)
    graph.set_copy_on_write(True)
    graph.set_copy_on_write(True)
    try:
        y = x.exp()
        y += 1
        with graph.saved_tensors_hooks(same, same):
            pass
        z = y * y
        y.zero_()
        z.sum().backward()
    finally:
        graph.set_copy_on_write(False)
    e = x.detach().exp()
    torch.testing.assert_close(x.grad, 2 * (e + 1) * e)
    y = x.exp()
    y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        y.sum().backward()


@pytest.mark.skipif(not OURS, reason="an option of ours")
def test_only_what_is_overwritten_is_copied():
    x = leaf(1.0, 2.0)
    with graph.allow_mutation_on_saved_tensors():
        y = x.exp()
    kept = y.grad_fn.saved[0].handle
    assert kept.array is y._raw
    y.mul_(2)
    assert kept.array is not y._raw


# -- on disk ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not OURS, reason="ours alone")
def test_saving_to_disk(tmp_path):
    x = torch.linspace(0, 1, 1000, dtype=torch.float64).requires_grad_()
    with graph.save_to_disk(tmp_path, min_bytes=1000):
        y = x.exp()
        z = (y * y).sum()
        small = leaf(1.0).exp()
    assert len(os.listdir(tmp_path)) == 1  # exp(x), which two operations save
    z.backward(retain_graph=True)
    torch.testing.assert_close(x.grad, 2 * (2 * x.detach()).exp())
    z.backward()
    small.sum().backward()
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not OURS, reason="ours alone")
def test_files_go_with_the_graph_also_without_a_backward(tmp_path):
    x = torch.ones(1000, requires_grad=True)
    with graph.save_to_disk(tmp_path, min_bytes=1):
        y = x.exp()
        y += 0  # another value in the same memory: a file of its own
        z = y.exp()
    assert len(os.listdir(tmp_path)) == 2
    del y, z
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not OURS, reason="ours alone")
def test_a_value_on_disk_may_be_overwritten_in_memory(tmp_path):
    x = leaf(1.0, 2.0)
    with graph.save_to_disk(tmp_path, min_bytes=1):
        y = x.exp()
    y.mul_(2)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().exp())


@pytest.mark.skipif(not OURS, reason="ours alone")
def test_a_folder_must_exist(tmp_path):
    with pytest.raises(NotADirectoryError):
        graph.save_to_disk(tmp_path / "missing")


@differs("an assertion of PyTorch's own fails")
def test_leaving_saved_tensors_hooks_twice_is_harmless():
    hooks = graph.saved_tensors_hooks(same, same)
    with hooks:
        pass
    hooks.__exit__()
    x = leaf(2.0)
    with torch.no_grad():
        hooks.__exit__()
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
