"""Writes of a function to its arguments, in PyTorch style: they reach the caller's tensors, or raise."""

import numpy as np
import pytest

import chainrule as cr


def point():
    return cr.tensor([[1.0, 2.0], [3.0, 4.0]])


def part_of(x):
    x[0].fill_(7.0)
    return x.sum()


def nested(x):
    return cr.vmap(lambda v: v.mul_(2))(x)


#: a function of x, and x afterwards
WRITES = {
    "vmap": (lambda x: cr.vmap(lambda r: r.mul_(2))(x), [[2, 4], [6, 8]]),
    "vmap, a part, along the second axis": (lambda x: cr.vmap(part_of, in_dims=1)(x), [[7, 7], [3, 4]]),
    "vmap, of another argument": (
        lambda x: cr.vmap(lambda r, w: r.copy_(w[0]), in_dims=(0, None))(x, point()),
        [[1, 2], [1, 2]],
    ),
    "vmap, a value of each": (lambda x: cr.vmap(cr.Tensor.fill_)(x, cr.tensor([8.0, 9.0])), [[8, 8], [9, 9]]),
    "vmap, in chunks": (lambda x: cr.vmap(lambda r: r.mul_(2), chunk_size=1)(x), [[2, 4], [6, 8]]),
    "vmap of vmap": (lambda x: cr.vmap(nested)(x), [[2, 4], [6, 8]]),
    "vmap, its .data": (lambda x: cr.vmap(lambda r: r.data.mul_(2))(x), [[2, 4], [6, 8]]),
    "jvp": (lambda x: cr.func.jvp(lambda x: x.mul_(2), (x,), (point(),)), [[2, 4], [6, 8]]),
    "jvp, a part": (lambda x: cr.func.jvp(part_of, (x,), (point(),)), [[7, 7], [3, 4]]),
    "jacfwd": (lambda x: cr.func.jacfwd(lambda x: x.mul_(2).sum())(x), [[2, 4], [6, 8]]),
    "vmap of jvp": (lambda x: cr.vmap(lambda r: cr.func.jvp(lambda r: r.mul_(2), (r,), (r,)))(x), [[2, 4], [6, 8]]),
    "jvp of vmap": (lambda x: cr.func.jvp(cr.vmap(lambda r: r.mul_(2)), (x,), (point(),)), [[2, 4], [6, 8]]),
}


@pytest.mark.parametrize("way", WRITES)
def test_a_write_reaches_the_caller(way):
    run, wanted = WRITES[way]
    x = point()
    version = x._version
    run(x)
    assert x.tolist() == wanted
    assert x._version > version
    assert (x * 2).tolist() == [[2 * v for v in row] for row in wanted]


def test_what_is_written_has_its_derivatives():
    x = point()
    value, tangent = cr.func.jvp(lambda x: (x.mul_(x), x.sum()), (x,), (cr.ones(2, 2),))
    assert value[0].tolist() == x.tolist() == [[1, 4], [9, 16]]
    assert tangent[0].tolist() == [[2, 4], [6, 8]]
    assert tangent[1].item() == 20


def test_a_write_to_what_is_on_the_tape_is_recorded():
    w = cr.ones(2, requires_grad=True)
    x = w * 3
    cr.vmap(lambda r: r.mul_(2))(x)
    x.sum().backward()
    assert w.grad.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="leaf Variable"):
        cr.vmap(lambda r: r.mul_(2))(w)
    assert w.tolist() == [1.0, 1.0]


VIEWS = [
    lambda r: r,
    lambda r: r[:1],
    lambda r: r.T,
    lambda r: r.view(-1),
    lambda r: r.mul_(1),
    lambda r: r.mul_(1)[1:],
]


@pytest.mark.parametrize("view", VIEWS)
def test_results_that_are_views_share_memory_with_the_argument(view):
    x = cr.ones(2, 2, 2)
    cr.vmap(view)(x).zero_()
    assert (x == 0).any()
    x = cr.ones(2, 2)
    value, _ = cr.func.jvp(view, (x,), (cr.ones(2, 2),))
    value.zero_()
    assert (x == 0).any()


def test_an_argument_that_is_shared_takes_no_mapped_value():
    x = point()
    for write in (
        lambda w, r: w.fill_(r),
        lambda w, r: w.add_(r),
        lambda w, r: w[0].copy_(r.expand(2)),
        lambda w, r: w.__setitem__(0, r),
    ):
        with pytest.raises(RuntimeError, match="shared by all"):
            cr.vmap(write, (None, 0))(x, cr.tensor([1.0, 2.0]))
        assert (x + 0).tolist() == point().tolist()
    cr.vmap(lambda w, r: w.add_(1) + r, (None, 0))(x, cr.tensor([1.0, 2.0]))
    assert x.tolist() == [[2, 3], [4, 5]]


def test_nothing_is_written_by_a_function_that_raises():
    def function(x):
        x.mul_(2)
        raise KeyError("after it wrote")

    x = point()
    for run in (lambda: cr.vmap(function)(x), lambda: cr.func.jvp(function, (x,), (point(),))):
        with pytest.raises(KeyError):
            run()
        assert x.tolist() == point().tolist()
    stretched = cr.ones(1).expand(2)
    with pytest.raises(RuntimeError, match="single memory location"):
        cr.vmap(lambda r: r.mul_(2))(stretched)
    assert stretched.tolist() == [1, 1]


def test_arrays_stay_as_they_are():
    x = np.ones((2, 2))
    cr.vmap(lambda r: r.__setitem__(0, 5.0) or r)(x)
    cr.jvp(lambda r: r.__setitem__(0, 5.0) or r, (x,), (x,))
    assert x.tolist() == [[1, 1], [1, 1]]


def test_the_gradient_of_a_sum_that_is_recorded_is_expanded():
    def write(x):
        g = cr.func.grad(cr.sum)(x)
        g[cr.tensor([0, 1])] = x
        return g

    x = cr.tensor([1.0, 2.0])
    assert write(x).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match=r"single memory location.*clone\(\) it first"):
        write(x.requires_grad_())
