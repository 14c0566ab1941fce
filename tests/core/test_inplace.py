"""Writing in place: versions, views, and the gradients through them."""

import tracemalloc

import numpy as np
import pytest

import chainrule as cr


def leaf(*data):
    return cr.tensor(list(data), dtype=cr.float64, requires_grad=True)


def test_a_saved_value_that_was_overwritten_is_an_error_that_names_both_ops():
    x = leaf(1.0, 2.0)
    y = cr.exp(x)
    y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as info:
        y.sum().backward()
    text = str(info.value)
    assert "is at version 1; expected version 0" in text
    assert "ExpBackward0" in text and "`y += 1` (test_inplace.py:18)" in text
    assert x.grad is None


def test_overwriting_what_nothing_saved_is_fine():
    x = leaf(1.0, 2.0)
    y = x + 1
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_views_and_detach_share_the_version():
    x = cr.zeros(4)
    v, d = x[1:], x.detach()
    x.add_(1)
    v.mul_(2)
    assert x._version == v._version == d._version == 2


def test_a_write_through_a_view_is_seen_by_what_saved_the_base():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    y[0] = 5.0
    with pytest.raises(RuntimeError, match="inplace"):
        z.sum().backward()


def test_in_place_on_a_leaf_that_requires_grad():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        x[0] = 3.0
    assert x.item() == 1.0
    with cr.no_grad():
        x.add_(1)
    assert x.item() == 2.0


def test_assignment_into_a_buffer_routes_gradients():
    a, b = leaf(2.0), leaf(3.0)
    buffer = cr.zeros(3, dtype=cr.float64)
    buffer[0] = a[0] * b[0]
    buffer[1] = a[0]
    buffer[0] *= 2
    assert buffer.requires_grad
    buffer.sum().backward()
    assert a.grad.item() == 7.0 and b.grad.item() == 4.0


def test_assignment_cuts_the_overwritten_part():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    y[1] = 0.0
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 2.0]


def test_in_place_on_a_view_changes_the_base_and_other_views():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    first, second = y[:2], y[2:]
    first.mul_(10)
    assert y.tolist() == [10.0, 20.0, 3.0, 4.0]
    (y.sum() + second.sum()).backward()
    assert x.grad.tolist() == [10.0, 10.0, 2.0, 2.0]


def test_in_place_on_the_base_changes_existing_views():
    x = leaf(1.0, 2.0)
    y = x * 1
    v = y[0]
    y.mul_(5)
    v.backward()
    assert x.grad.tolist() == [5.0, 0.0]


def test_chains_of_views():
    x = leaf(*range(6))
    y = (x * 1).view(2, 3)
    row = y.T[1]
    row.mul_(4)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 4.0, 1.0, 1.0, 4.0, 1.0]


def test_in_place_with_a_tensor_that_requires_grad_makes_the_target_require_it():
    w = leaf(2.0, 3.0)
    x = cr.tensor([5.0, 7.0], dtype=cr.float64)
    x.mul_(w)
    x.sum().backward()
    assert w.grad.tolist() == [5.0, 7.0]


def test_shape_and_dtype_of_the_target_are_kept():
    x = cr.zeros(2)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(cr.zeros(3, 2))
    i = cr.tensor([1, 2])
    with pytest.raises(RuntimeError, match="can't be cast"):
        i.add_(1.5)
    assert i.tolist() == [1, 2]


def test_expanded_tensors_cannot_be_written():
    with pytest.raises(RuntimeError, match="more than one element"):
        cr.zeros(1).expand(3).add_(1)


def test_integer_array_assignment_and_masks():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    v = leaf(10.0, 20.0)
    y = x * 1
    y[cr.tensor([0, 2])] = v
    y[y > 15] = 0.0
    y.sum().backward()
    assert y.tolist() == [10.0, 2.0, 0.0, 4.0]
    assert x.grad.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert v.grad.tolist() == [1.0, 0.0]


def test_zero_fill_and_copy_are_recorded():
    x = leaf(1.0, 2.0)
    y = x * 3
    y.zero_()
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    a = leaf(4.0, 5.0)
    z = cr.zeros(2, dtype=cr.float64)
    z.copy_(a * a)
    z.sum().backward()
    assert a.grad.tolist() == [8.0, 10.0]


def test_out_argument():
    out = cr.empty(2)
    result = cr.exp(cr.zeros(2), out=out)
    assert result is out and out.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match=r"out=.*automatic differentiation"):
        cr.exp(cr.zeros(2, requires_grad=True), out=out)


def test_in_place_matches_finite_differences_through_a_mixture():
    def f(x):
        y = x * 1
        y[1:].mul_(y[:-1].clone())
        y.view(2, 2)[0].add_(cr.sin(x[2:]))
        z = y.clone()
        z[0] = y[3] * y[1]
        z.exp_()
        return z.sum()

    data = np.array([0.3, 0.7, -0.2, 0.5])
    x = cr.tensor(data, requires_grad=True)
    f(x).backward()
    eps = 1e-6
    for i in range(4):
        step = np.zeros(4)
        step[i] = eps
        expected = (f(cr.tensor(data + step)).item() - f(cr.tensor(data - step)).item()) / (2 * eps)
        assert abs(x.grad[i].item() - expected) < 1e-8


def test_views_of_views_take_no_more_room_than_views():
    w = leaf(0.0, 0.0, 0.0)
    x = w * 1
    views = [x]
    tracemalloc.start()
    for _ in range(2000):
        views.append(views[-1][:])
    room = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert room < 6e6  # a tuple of all its steps for each would be 16 MB
    last = views[-1]
    del views
    last.add_(1)
    assert len(last._view.steps) == 2000 and x.tolist() == [1, 1, 1]
    (last * 3).sum().backward()
    assert w.grad.tolist() == [3, 3, 3]
