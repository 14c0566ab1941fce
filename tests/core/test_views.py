"""Views: tensors that share memory and history, and the effect of writes on the others."""

import numpy as np
import pytest

from behaviour import OURS, differs, torch


def leaf(*shape):
    n = int(np.prod(shape))
    return torch.arange(1.0, n + 1, dtype=torch.float64).reshape(shape).requires_grad_()


def written(take, *shape):
    """Return the gradient of the sum of a tensor, part of which was multiplied by 3 through a view of it."""
    x = leaf(*shape)
    y = x * 1
    take(y).mul_(3)
    assert "CopySlices" in y.grad_fn.name()
    y.sum().backward()
    return x.grad.tolist()


@pytest.mark.parametrize(
    ("take", "shape", "expected"),
    [
        (lambda y: y[1], (3,), [1, 3, 1]),
        (lambda y: y[::2], (3,), [3, 1, 3]),
        (lambda y: y.narrow(0, 1, 2), (3,), [1, 3, 3]),
        (lambda y: y.select(1, 0), (2, 2), [[3, 1], [3, 1]]),
        (lambda y: y.t()[1], (2, 2), [[1, 3], [1, 3]]),
        (lambda y: y.view(4)[1:3], (2, 2), [[1, 3], [3, 1]]),
        (lambda y: y.diagonal(), (2, 2), [[3, 1], [1, 3]]),
        (lambda y: y.diagonal(offset=1)[None], (2, 2), [[1, 3], [1, 1]]),
        (lambda y: y.unsqueeze(0).transpose(0, 2)[1], (2, 2), [[1, 3], [1, 3]]),
        (lambda y: y.unfold(0, 2, 3), (5,), [3, 3, 1, 3, 3]),
        (lambda y: y.expand(2, 3)[0], (1, 3), [[3, 3, 3]]),
        (lambda y: y.permute(1, 0)[:, 0].view(2)[1:], (2, 2), [[1, 3], [1, 1]]),
        (lambda y: y.flatten()[3], (2, 2), [[1, 1], [1, 3]]),
        (lambda y: y.movedim(0, -1)[0][None, :, None], (2, 2), [[3, 1], [3, 1]]),
    ],
)
def test_a_write_through_a_chain_of_views(take, shape, expected):
    assert written(take, *shape) == expected


def test_real_and_imaginary_parts_are_views():
    x = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
    y = x * 1
    y.real.mul_(3)
    y.imag[0] = 5.0
    assert y.tolist() == [3 + 5j, 9 - 1j]
    (y.real.sum() + 2 * y.imag.sum()).backward()
    assert x.grad.tolist() == [3 + 0j, 3 + 2j]


def test_base_and_is_view():
    y = leaf(2, 3) * 1
    v = y.t()[0]
    assert v._is_view() and v._base is y
    assert not y._is_view() and y._base is None
    assert not y.detach()._is_view() and y.detach()._base is None
    assert not (v + 1)._is_view() and v.clone()._base is None
    assert y.detach()[0]._is_view()


def test_a_write_into_the_base_reaches_its_views():
    x = leaf(4)
    y = x * 1
    v, w = y[:2], y.view(2, 2)
    y.mul_(2)
    assert v.tolist() == [2, 4] and w.tolist() == [[2, 4], [6, 8]]
    (v.sum() + w[1].sum()).backward()
    assert x.grad.tolist() == [2, 2, 2, 2]


def test_a_write_into_a_view_reaches_the_base_and_overlapping_views():
    x = leaf(4)
    y = x * 1
    v, w, u = y[:3], y[1:], y[3]
    v.mul_(w[:1].detach() * 5)
    assert w.tolist() == [20, 30, 4] and u.tolist() == 4
    (w.sum() + u).backward()
    assert x.grad.tolist() == [0, 10, 10, 2]


def test_a_base_that_required_no_grad_does_after_a_recorded_value_was_written():
    base = torch.zeros(4, dtype=torch.float64)
    v, other = base[1:3], base[2:]
    w = leaf(2)
    v.copy_(w * 3)
    assert base.requires_grad and v.requires_grad and other.requires_grad
    assert not base.is_leaf and not v.is_leaf
    other.sum().backward()
    assert w.grad.tolist() == [0, 3]


def test_views_taken_before_requires_grad():
    x = torch.zeros(4)
    v = x[1:3]
    x.requires_grad_()
    assert v._is_view() and v.grad_fn is None
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        v.add_(1)


def test_a_view_made_a_leaf():
    x = torch.zeros(4)
    v = x[1:3]
    v.requires_grad_()
    assert v.is_leaf and not x.requires_grad
    x.add_(1)
    assert v.tolist() == [1, 1] and v.is_leaf and v.requires_grad
    with pytest.raises(RuntimeError, match="that requires grad is being used in an in-place operation"):
        v.add_(1)


@pytest.mark.parametrize(
    ("several", "index"),
    [
        (lambda y: y.unbind(), 1),
        (lambda y: y.split(2), 0),
        (lambda y: y.chunk(2), 1),
        (lambda y: y.split_with_sizes([1, 3]), 1),
        (lambda y: list(y), 2),
    ],
)
def test_one_of_several_views_may_not_be_written(several, index):
    y = leaf(4) * 1
    part = several(y)[index]
    with pytest.raises(
        RuntimeError, match=rf"Output {index} of (Unbind|Split)\w* is a view and is being modified inplace"
    ):
        part.mul_(2)
    with torch.no_grad():
        part.mul_(2)
    several(torch.ones(4))[index].mul_(2)  # nothing is recorded, so this is allowed


@differs("PyTorch refuses to use these views after their base was written")
def test_several_views_see_a_write_into_their_base():
    x = leaf(4)
    y = x * 1
    first, _ = y.split(2)
    y.mul_(2)
    first.sum().backward()
    assert x.grad.tolist() == [2, 2, 0, 0]


def test_views_made_without_recording_may_not_be_written_while_recording():
    y = leaf(3) * 1
    with torch.no_grad():
        v = y[:2]
    with pytest.raises(
        RuntimeError, match="A view was created in no_grad mode and is being modified inplace with grad mode"
    ):
        v.mul_(2)
    with torch.no_grad():
        v.mul_(2)
    assert y.tolist() == [2, 4, 3]

    x = torch.zeros(3)
    with torch.no_grad():
        v = x[:2]
    v.mul_(2)  # nothing to record
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        v.mul_(torch.ones(2, requires_grad=True))
    assert not x.requires_grad


@differs("PyTorch says that such a view requires grad, though no gradient flows from it")
def test_a_view_made_in_no_grad_is_a_constant():
    y = leaf(3) * 1
    with torch.no_grad():
        v = y[:2]
    assert not v.requires_grad


def test_expanded_tensors_may_not_be_written():
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        (leaf(1) * 1).expand(3).mul_(2)


@differs("PyTorch computes something that depends on the order of the writes")
def test_windows_that_overlap_may_not_be_written():
    y = leaf(5) * 1
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        y.unfold(0, 2, 1).mul_(3)
    y.unfold(0, 2, 2).mul_(3)
    assert y.tolist() == [3, 6, 9, 12, 5]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        y.unfold(0, 2, 1).detach().mul_(3)
    assert y.tolist() == [3, 6, 9, 12, 5]


def test_unfold_is_a_view_with_a_gradient():
    x = leaf(5)
    windows = x.unfold(0, 3, 1)
    assert windows.tolist() == [[1, 2, 3], [2, 3, 4], [3, 4, 5]]
    assert windows.data_ptr() == x.data_ptr()
    (windows * torch.arange(9.0, dtype=torch.float64).reshape(3, 3)).sum().backward()
    assert x.grad.tolist() == [0, 4, 12, 12, 8]


def test_axes_exchanged_in_place():
    x = leaf(2, 3)
    y = x * 1
    before = y[0]
    y.t_()
    assert tuple(y.shape) == (3, 2)
    y.mul_(torch.tensor([1.0, 10.0], dtype=torch.float64))
    assert before.tolist() == [1, 2, 3] and y[0].tolist() == [1, 40]
    (y.sum() + before.sum()).backward()
    assert x.grad.tolist() == [[2, 2, 2], [10, 10, 10]]


def test_an_axis_added_in_place_to_a_view():
    x = leaf(2, 3)
    y = x * 1
    v = y[0]
    v.unsqueeze_(0)
    assert tuple(v.shape) == (1, 3) and v._base is y
    v.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [[2, 2, 2], [1, 1, 1]]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.t_(),
        lambda x: x.transpose_(0, 1),
        lambda x: x.swapaxes_(0, 1),
        lambda x: x.swapdims_(0, 1),
        lambda x: x.unsqueeze_(1),
        lambda x: x.squeeze_(),
    ],
)
def test_changes_of_shape_count_as_versions_and_are_refused_for_leaves(change):
    x = torch.ones(2, 3)
    assert change(x) is x and x._version == 1
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        change(torch.ones(2, 3, requires_grad=True))


def test_detach_in_place():
    x = leaf(3)
    y = x * 1
    y.detach_()
    assert y.is_leaf and not y.requires_grad and y.grad_fn is None
    with pytest.raises(RuntimeError, match=r"Can't detach views in-place. Use detach\(\) instead"):
        (x * 1)[:2].detach_()
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        torch.zeros(3)[:2].detach_()


def test_a_gradient_that_is_not_asked_for_any_more_is_not_collected():
    x = leaf(2)
    y = (x * 2).sum()
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None
    x.requires_grad_(True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_requires_grad_of_results():
    y = leaf(2) * 1
    assert y.requires_grad_() is y
    for tensor in (y, y[0]):
        with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
            tensor.requires_grad_(False)
        with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
            tensor.requires_grad = False
    with pytest.raises(RuntimeError, match="floating point"):
        torch.arange(3).requires_grad_()


class TestData:
    def test_writes_through_data_are_not_noticed(self):
        x = torch.ones(3, dtype=torch.float64)
        w = leaf(3)
        z = x * w
        x.data.mul_(2)
        assert x.tolist() == [2, 2, 2] and x._version == 0
        z.sum().backward()
        assert w.grad.tolist() == [2, 2, 2]

    def test_data_has_a_version_of_its_own(self):
        x = torch.zeros(2)
        x.add_(1)
        d, e = x.data, x.detach()
        assert (d._version, e._version) == (0, 1)
        d.add_(1)
        e.add_(1)
        assert (x._version, d._version, e._version) == (2, 1, 2)
        assert d[0]._version == 1 and x.data._version == 0

    def test_data_of_data(self):
        x = torch.zeros(2)
        for _ in range(50):
            x.data = x.data.add_(1)
        assert x.tolist() == [50, 50] and x._version == 0
        y = x[::2].data
        y.data.add_(1)
        assert x.tolist() == [51, 50]

    def test_assigning_data(self):
        x = leaf(3)
        x.data = torch.zeros(5, dtype=torch.float32)
        assert x.is_leaf and x.requires_grad and tuple(x.shape) == (5,) and x.dtype == torch.float32
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2] * 5
        with pytest.raises(RuntimeError, match="data set to a tensor that requires gradients must be floating point"):
            x.data = torch.zeros(3, dtype=torch.int64)
        with pytest.raises(TypeError):
            x.data = 5

    def test_data_of_a_result(self):
        x = leaf(2)
        y = x * 3
        y.data = torch.zeros(2, dtype=torch.float64)
        assert y.requires_grad and y.tolist() == [0, 0]
        y.sum().backward()
        assert x.grad.tolist() == [3, 3]

    def test_shared_memory(self):
        x, w = torch.zeros(2), torch.ones(2, requires_grad=True)
        x.data = w
        assert x.is_leaf and not x.requires_grad
        x.add_(1)
        assert w.tolist() == [2, 2]


@differs("PyTorch can")
def test_memory_does_not_grow():
    with pytest.raises(RuntimeError, match="NumPy owns the memory"):
        torch.zeros(3).resize_(5)


def test_parts_stay_alive_without_their_base():
    def part():
        return (leaf(3) * 1)[1:]

    v = part()
    v.mul_(2)
    assert v.tolist() == [4, 6] and v._base.tolist() == [1, 4, 6]
    assert OURS or v._base.requires_grad


ALIASES = {
    "pixel_shuffle": lambda x: torch.nn.functional.pixel_shuffle(x, 1),
    "pixel_unshuffle": lambda x: torch.nn.functional.pixel_unshuffle(x, 1),
    "channel_shuffle": lambda x: torch.nn.functional.channel_shuffle(x, 1),
    "pad": lambda x: torch.nn.functional.pad(x, (0, 0, 0, 0), "reflect"),
    "unfold": lambda x: torch.nn.functional.unfold(x, 1),
    "matrix_power": lambda x: torch.linalg.matrix_power(x, 1),
    "histogram": lambda x: torch.histogram(torch.ones(3), x.reshape(-1)).bin_edges,
}


@pytest.mark.parametrize("function", ALIASES.values(), ids=ALIASES)
def test_what_leaves_all_elements_in_their_places_is_a_copy_still(function):
    x = torch.arange(4.0).reshape(1, 1, 2, 2)
    function(x).zero_()
    assert x.sum() == 6


def test_what_an_index_took_is_contiguous():
    x = torch.arange(24.0).reshape(2, 3, 4)
    mask = torch.tensor([True, False, True, False])
    for y in (x[:, [2, 0]], x[:, :, [1, 3]], x[:, :, mask], x[:, [[0], [1]], [0, 1]], x[[0, 1], :, [2, 3]]):
        assert y.is_contiguous() and y.view(-1).tolist() == y.flatten().tolist()
    with pytest.raises(IndexError):
        x[:, [3]]
    with pytest.raises(IndexError):
        x[:, torch.tensor([True, False])]


def test_as_strided_of_examples_that_are_not_contiguous():
    x = torch.arange(12.0).reshape(2, 3, 2)
    for examples in (x, x.transpose(1, 2)):
        assert torch.vmap(lambda t: t.as_strided((2,), (1,)))(examples).tolist() == [[0.0, 1.0], [6.0, 7.0]]


A = torch.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (lambda: A.t().as_strided((6,), (2,)), [0, 2, 4, 6, 8, 10]),
        (lambda: A.t().as_strided((2, 3), (1, 4), 1), [[1, 5, 9], [2, 6, 10]]),
        (lambda: A[:, 1].as_strided((), ()), 1),
        (lambda: A[:, 1].as_strided((2, 3), (4, 1)), [[1, 2, 3], [5, 6, 7]]),  # beyond the column
        (lambda: A[:, 1].as_strided((2, 3), (4, 1), 0), [[0, 1, 2], [4, 5, 6]]),
        (lambda: A[1].as_strided((2, 2), (4, 1), 2), [[2, 3], [6, 7]]),
        (lambda: A[::2, 1:].as_strided((2, 3), (8, 1)), [[1, 2, 3], [9, 10, 11]]),
        (lambda: A[0].expand(3, 4).as_strided((4,), (1,)), [0, 1, 2, 3]),
        (lambda: torch.as_strided_scatter(A.t(), torch.zeros(2), (2,), (8,))[0], [0, 4, 0]),
    ],
)
def test_as_strided_counts_in_memory(shown, wanted):
    assert shown().tolist() == wanted


def test_gradients_of_as_strided_of_what_is_not_contiguous():
    w = torch.arange(6.0, requires_grad=True)
    y = (w * w).reshape(2, 3).t()
    (y.as_strided((2, 2), (3, 2)) * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert w.grad.tolist() == [0.0, 0.0, 8.0, 18.0, 0.0, 40.0]
    y = (w * w).reshape(2, 3)[:, 1]
    grads = torch.autograd.grad(y.as_strided((2,), (3,)).sum() + y.as_strided((), ()), [y, w])
    assert [g.tolist() for g in grads] == [[2, 1], [0, 4, 0, 0, 8, 0]]
    jvp = torch.func.jvp(lambda x: x.t().as_strided((3,), (2,)), (A,), (A * 10,))
    assert [t.tolist() for t in jvp] == [[0, 2, 4], [0, 20, 40]]


def test_writes_through_as_strided_of_what_is_not_contiguous():
    x = torch.zeros(2, 3)
    x.t().as_strided((2,), (4,)).fill_(7.0)
    x[:, 2].as_strided((1,), (1,), 2).fill_(5.0)
    assert x.tolist() == [[7, 0, 5], [0, 7, 0]]
    w = torch.ones(6, requires_grad=True)
    y = (w * 1).reshape(2, 3)
    y.t().as_strided((2,), (3,)).mul_(10.0)
    y.sum().backward()
    assert w.grad.tolist() == [10, 1, 1, 10, 1, 1]


@differs("PyTorch writes in an order that is not defined")
@pytest.mark.parametrize(
    "run", [lambda f, x: f(x), lambda f, x: torch.func.jvp(f, (x,), (x,)), lambda f, x: torch.vmap(f)(x)]
)
@pytest.mark.parametrize(
    "part", [lambda y: y.unfold(-1, 2, 1), lambda y: y.unfold(-1, 2, 1).unsqueeze(0), lambda y: y.expand(2, *y.shape)]
)
def test_a_write_to_elements_that_are_one_is_refused(part, run):
    def f(x):
        y = x * 1
        part(y).mul_(2)
        return y

    with pytest.raises(RuntimeError, match="single memory location"):
        run(f, torch.ones(2, 3))


@pytest.mark.parametrize(
    "name, copied",
    [
        ("repeat", lambda x: x.repeat(1, 1)),
        ("tile", lambda x: x.tile(1)),
        ("diag", lambda x: torch.diag(x)),
        ("rot90", lambda x: torch.rot90(x, 3)),
        ("ravel", lambda x: x.t().ravel()),
        ("diff", lambda x: torch.diff(x, 0)),
        ("permute_copy", lambda x: torch.permute_copy(x, (1, 0))),
        ("split_copy", lambda x: torch.split_copy(x, 1)[0]),
        ("unbind_copy", lambda x: torch.unbind_copy(x)[0]),
        ("unsafe_chunk", lambda x: x.clone().unsafe_chunk(2)[0]),
    ],
)
def test_copies_are_not_views(name, copied):
    x = torch.ones(2, 2)
    copied(x).add_(1)
    assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    with torch.enable_grad():
        y = torch.ones(2, 2, requires_grad=True)
        out = copied(y)
        out.mul_(2)
        out.sum().backward()
    assert set(y.grad.flatten().tolist()) <= {0.0, 2.0}


@differs("reaches all of the storage that the tensor lies in")
def test_as_strided_stays_within_a_tensor_with_a_history():
    x = torch.arange(6.0, requires_grad=True)
    for part in (x[:2], x.reshape(2, 3)[:, 0]):
        with pytest.raises(RuntimeError, match="cannot use others"):
            part.as_strided((3,), (1,))


@pytest.mark.parametrize("make", [
    lambda x: x.matmul(x.mT),
    lambda x: x @ x[0, 0],
    lambda x: x[0, 0] @ x,
    lambda x: x[0, 0, 0] @ x,
    lambda x: torch.kron(x[0, 0], x[0, 0]),
    lambda x: torch.nn.functional.group_norm(x, 1),
    lambda x: torch.nn.functional.max_pool2d(x, 1),
], ids=range(7))  # fmt: skip
def test_what_a_function_makes_is_nobodys_view(make):
    x = (torch.arange(16.0).reshape(1, 1, 4, 4) / 16).requires_grad_()
    y = make(x)
    assert y._base is None and not y._is_view()
    part = y[..., :1]
    y.mul_(2.0)  # only its own views share this memory
    (expected,) = torch.autograd.grad((2 * make(x))[..., :1].square().sum(), x)
    assert torch.allclose(torch.autograd.grad(part.square().sum(), x)[0], expected)
    assert not make(x).detach_().requires_grad


def test_views_have_one_storage():
    x = leaf(2, 3)
    part, other = x.detach()[1], torch.zeros(2, dtype=torch.float32)
    assert part.storage().data_ptr() == x.storage().data_ptr() == x.data_ptr() != other.storage().data_ptr()
    assert (len(part.storage()), part.storage().nbytes(), part.untyped_storage().size()) == (6, 48, 48)
    assert (len(other.storage()), other.untyped_storage().nbytes()) == (2, 8)
