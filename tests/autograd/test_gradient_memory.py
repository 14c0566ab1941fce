"""References to the memory of a gradient: by hooks, by saved values, by the caller, by another leaf."""

import numpy as np
import pytest

from behaviour import differs, torch


def leaf(n=3):
    return torch.ones(n, requires_grad=True)


def again(x):
    (x * 2).sum().backward()


class Keep(torch.autograd.Function):
    """The identity, whose backward stores its gradient."""

    kept = None

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        Keep.kept = g
        return g


def keep_on_leaf(x, kept):
    x.register_hook(kept.append)
    return x * 2


def keep_inside(x, kept):
    y = x + 1
    y.register_hook(kept.append)
    return y * 2


def keep_before(x, kept):
    y = x + 1
    y.grad_fn.register_prehook(lambda gs: kept.append(gs[0]))
    return y * 2


def keep_after(x, kept):
    y = x * 2
    y.grad_fn.register_hook(lambda grads, gs: kept.append(grads[0]))
    return y


def keep_next_to_a_leaf(x, kept):
    y = x.detach() * 1
    y.requires_grad_().register_hook(kept.append)
    return (x + y) * 2


def keep_view_next_to_a_leaf(x, kept):
    y = (x.detach() * 1).requires_grad_()
    z = y.reshape(3, 1)
    z.register_hook(kept.append)
    return (x + z.reshape(3)) * 2


def keep_replaced(x, kept):
    def hook(g):
        kept.append(g * 1)
        return kept[0]

    x.register_hook(hook)
    return x * 2


KEEPERS = [
    keep_on_leaf, keep_inside, keep_before, keep_after, keep_next_to_a_leaf, keep_view_next_to_a_leaf, keep_replaced,
]  # fmt: skip


@pytest.mark.parametrize("keep", KEEPERS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_what_a_hook_keeps_stays_as_it_is(keep, create_graph):
    x, kept = leaf(), []
    keep(x, kept).sum().backward(create_graph=create_graph)
    assert kept[0].flatten().tolist() == [2, 2, 2]
    again(x)
    assert x.grad.tolist() == [4, 4, 4]
    assert kept[0].flatten().tolist() == [2, 2, 2]


@pytest.mark.parametrize("beside", [False, True])
def test_what_a_backward_keeps_stays_as_it_is(beside):
    x = leaf()
    y = x + Keep.apply(leaf()) if beside else Keep.apply(x)
    (y * 2).sum().backward()
    again(x)
    assert x.grad.tolist() == [4, 4, 4]
    assert Keep.kept.tolist() == [2, 2, 2]


def test_a_hook_that_writes_into_the_gradient_changes_it():
    x = leaf()
    y = x * 1

    def hook(g):
        g.mul_(5)

    y.register_hook(hook)
    (y * 2).sum().backward()
    assert x.grad.tolist() == [10, 10, 10]


def test_a_gradient_that_was_saved_and_then_added_to():
    x, w = leaf(), leaf()
    again(x)
    loss = (w * x.grad).sum()
    again(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    assert w.grad is None


def test_views_of_a_gradient_follow_it():
    x = leaf()
    again(x)
    view, array, version = x.grad[:1], x.grad.numpy(), x.grad._version
    again(x)
    assert view.tolist() == [4] and array.tolist() == [4, 4, 4]
    assert x.grad._version == version + 1


def test_with_create_graph_leaves_do_not_share_a_gradient():
    x, y, g = leaf(), leaf(), torch.ones(3)
    (x + y).backward(g, create_graph=True)
    with torch.no_grad():
        x.grad.add_(1)
    assert y.grad.tolist() == [1, 1, 1] and g.tolist() == [1, 1, 1]


def test_a_gradient_with_a_history_keeps_it_when_a_plain_one_is_added():
    x = leaf()
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    again(x)
    assert x.grad is first and first.tolist() == [5, 5, 5]
    x.grad = None
    first.sum().backward()
    assert x.grad.tolist() == [6, 6, 6]


def test_with_create_graph_sums_are_new_tensors():
    x = leaf()
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    (x**3).sum().backward(create_graph=True)
    assert x.grad is not first and first.tolist() == [3, 3, 3] and x.grad.tolist() == [6, 6, 6]


def test_a_gradient_set_before_is_added_to_in_place():
    x = leaf()
    given = x.grad = torch.zeros(3, requires_grad=True)
    again(x)
    assert x.grad is given and given.tolist() == [2, 2, 2]


@differs("it raises for expanded gradients, and writes into read-only NumPy memory")
@pytest.mark.parametrize("kind", ["expanded", "read-only"])
def test_a_gradient_that_cannot_be_written_is_replaced(kind):
    x, y = leaf(), leaf()
    x.grad = torch.zeros(3)
    if kind == "expanded":
        y.grad = torch.zeros(1).expand(3)
    else:
        zeros = np.zeros(3, np.float32)
        zeros.flags.writeable = False
        y.grad = torch.from_numpy(zeros)
    (x * y * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [1, 2, 3] and y.grad.tolist() == [1, 2, 3]


def test_hooks_of_a_leaf_run_when_its_tensor_is_gone():
    seen = []
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    loss = (x * 2).sum()
    del x
    loss.backward()
    assert seen == [[2, 2, 2]]


@pytest.mark.parametrize("cleared", [False, True])
@pytest.mark.parametrize("held", ["by nobody", "by a cycle", "by the caller"])
def test_gradients_are_collected_when_the_tensor_is_gone(held, cleared):
    """In all cases, also tensors that only the cycle collector can free are freed."""
    x = leaf(2)
    y = x * 3
    y.sum().backward(retain_graph=True)
    g = x.grad
    if cleared:
        x.grad = None
    kept = [x] if held == "by the caller" else []
    if held == "by a cycle":
        cycle = [x]
        cycle.append(cycle)
        del cycle
    del x
    y.sum().backward()
    assert g.tolist() == ([3, 3] if cleared else [6, 6])
    variable = y.grad_fn.next_functions[0][0].variable
    assert variable.grad.tolist() == ([3, 3] if cleared else [6, 6])
    assert not kept or kept[0] is variable


@pytest.mark.parametrize("n", [3, 70_000])
def test_a_hook_that_overwrites_what_was_saved(n):
    x, w = leaf(n), leaf(n)
    y = torch.tanh(x * w) * 1

    def hook(g):
        with torch.no_grad():
            w.mul_(2)

    y.register_hook(hook)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.tanh(y).sum().backward()
    assert x.grad is None and w.grad is None


def test_a_backward_that_overwrites_what_was_saved():
    x, w = leaf(), leaf()

    class Writes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            w.mul_(2)
            return g * 2

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        Writes.apply(x * w).sum().backward()


def test_anomaly_mode_entered_twice_with_one_object_ends():
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        mode = torch.autograd.detect_anomaly()
    with mode, mode:
        pass
    assert not torch.is_anomaly_enabled()
