"""In-place operations: results, versions, errors, and gradients."""

# ruff: noqa: SIM905 -- lists of names read better as words

import tracemalloc

import numpy as np
import pytest

from behaviour import OURS, differs, leaf, torch


def test_versions_count_every_kind_of_write():
    x = torch.zeros(4)
    out = []
    for write in (
        lambda: x.add_(1),
        lambda: x.copy_(torch.ones(4)),
        lambda: x.__setitem__(0, 3.0),
        lambda: x.zero_(),
        lambda: torch.add(x, 1, out=x),
        lambda: x.index_put_((torch.tensor([0]),), torch.tensor([2.0])),
        lambda: x.masked_fill_(x > 0, 1),
        lambda: x.detach().add_(1),
        lambda: x[1:].add_(1),
        lambda: x[1:].__setitem__(0, 1),
        lambda: x.fill_(2),
        lambda: x.unsqueeze_(0).squeeze_(0),
    ):
        write()
        out.append(x._version)
    assert out == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13]
    x.data.add_(1)
    x.numpy()[0] = 3
    _ = x + 1, x.exp(), x[0], x.clone()
    assert x._version == 13


def test_a_saved_value_that_was_overwritten():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.add_(1)
    with pytest.raises(
        RuntimeError, match=r"(?s)modified by an inplace operation.*is at version 1; expected version 0"
    ):
        y.sum().backward()
    assert x.grad is None

    a, w = torch.ones(2, dtype=torch.float64), leaf(1.0, 2.0)
    z = a * w
    a[0] = 2.0
    a[1] = 4.0
    with pytest.raises(RuntimeError, match="is at version 2; expected version 0"):
        z.sum().backward()


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x.zero_(),
        lambda x: x.fill_(1),
        lambda x: x.copy_(torch.ones(3, dtype=torch.float64)),
        lambda x: x.__setitem__(slice(None), 1.0),
        lambda x: x.__setitem__(Ellipsis, 1.0),
        lambda x: x.__setitem__(torch.tensor([0]), 1.0),
        lambda x: x.index_fill_(0, torch.tensor([0]), 1.0),
        lambda x: x.__iadd__(1),
    ],
)
def test_a_leaf_that_requires_grad_may_not_be_written(write):
    x = leaf(1.0, 2.0, 3.0)
    with pytest.raises(
        RuntimeError, match=r"^a leaf Variable that requires grad is being used in an in-place operation"
    ):
        write(x)
    assert x.tolist() == [1, 2, 3]
    with torch.no_grad():
        write(x)
    assert x.is_leaf and x._version == 1


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x[0].add_(1),
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x.__setitem__(slice(1, None), 1.0),
        lambda x: x.view(3).mul_(2),
        lambda x: x[None].zero_(),
    ],
)
def test_nor_may_a_view_of_one(write):
    x = leaf(1.0, 2.0, 3.0)
    with pytest.raises(
        RuntimeError, match=r"^a view of a leaf Variable that requires grad is being used in an in-place"
    ):
        write(x)
    assert x.tolist() == [1, 2, 3]


class TestSetitem:
    @pytest.mark.parametrize(
        ("index", "value", "expected"),
        [
            (0, 9.0, [[9, 9, 9], [3, 4, 5]]),
            ((0, 1), 9.0, [[0, 9, 2], [3, 4, 5]]),
            ((slice(None), 1), [8.0, 9.0], [[0, 8, 2], [3, 9, 5]]),
            ((Ellipsis, slice(None, None, 2)), 9.0, [[9, 1, 9], [9, 4, 9]]),
            ((None, 0), [7.0, 8.0, 9.0], [[7, 8, 9], [3, 4, 5]]),
            (Ellipsis, [[[7.0, 8.0, 9.0]]], [[7, 8, 9], [7, 8, 9]]),
            (-1, [7.0, 8.0, 9.0], [[0, 1, 2], [7, 8, 9]]),
            (True, 9.0, [[9, 9, 9], [9, 9, 9]]),
            (False, 9.0, [[0, 1, 2], [3, 4, 5]]),
            (([0, 1], [2, 0]), [8.0, 9.0], [[0, 1, 8], [9, 4, 5]]),
            (np.array([[True, False, True], [False, True, False]]), [7.0, 8.0, 9.0], [[7, 1, 8], [3, 9, 5]]),
            (np.array([[True, False, True], [False, True, False]]), [7.0], [[7, 1, 7], [3, 7, 5]]),
            (np.array([True, False]), [7.0, 8.0, 9.0], [[7, 8, 9], [3, 4, 5]]),
            ((slice(None), np.array([0, 2])), [8.0, 9.0], [[8, 1, 9], [8, 4, 9]]),
        ],
    )
    def test_values_and_gradients(self, index, value, expected):
        if isinstance(index, np.ndarray):
            index = torch.from_numpy(index)
        elif isinstance(index, tuple):
            index = tuple(torch.from_numpy(i) if isinstance(i, np.ndarray) else i for i in index)
        x = leaf(*range(6))
        v = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        y = (x * 1).reshape(2, 3)
        y[index] = v
        assert y.tolist() == expected
        (y * torch.arange(1.0, 7.0, dtype=torch.float64).reshape(2, 3)).sum().backward()
        weights = np.arange(1.0, 7.0).reshape(2, 3)
        kept = np.array(expected) == np.arange(6.0).reshape(2, 3)
        np.testing.assert_allclose(x.grad.numpy(), (weights * kept).ravel())
        moved = np.array(
            [sum(weights[np.array(expected) == e]) if e in np.array(expected) else 0 for e in np.ravel(value)]
        )
        if index is not False:  # which writes nothing
            np.testing.assert_allclose(v.grad.numpy().ravel(), moved)
        plain = torch.arange(6.0).reshape(2, 3)
        plain[index] = v.detach().float()
        assert plain.tolist() == expected

    @pytest.mark.parametrize(
        ("index", "error", "text"),
        [
            (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
            ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
            (slice(None, None, -1), ValueError, "step must be greater than zero"),
            (1.5, IndexError, "only integers, slices"),
            (
                [True, False, True],
                IndexError,
                r"The shape of the mask \[3\] at index 0 does not match the shape of the",
            ),
        ],
    )
    def test_errors(self, index, error, text):
        x = torch.zeros(2, 3)
        with pytest.raises(error, match=text):
            x[torch.tensor(index) if isinstance(index, list) else index] = 1.0
        assert x.tolist() == [[0, 0, 0], [0, 0, 0]] and x._version == 0

    def test_zero_dimensional(self):
        for index in (..., (), None, torch.tensor(True)):
            x = torch.tensor(4.0)
            x[index] = 5
            assert x.item() == 5
        with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
            x[0] = 1

    def test_repeated_indices(self):
        x = torch.zeros(3)
        x[torch.tensor([0, 0, 1])] += torch.tensor([1.0, 1.0, 3.0])
        assert x.tolist() == [1, 3, 0]  # read, added, written: not accumulated
        x.index_put_((torch.tensor([0, 0]),), torch.tensor([1.0, 1.0]), accumulate=True)
        assert x.tolist() == [3, 3, 0]

    def test_augmented(self):
        x = leaf(1.0, 2.0, 3.0)
        y = x * 1
        y[1:] *= 5
        y[0] -= y[2]
        y.sum().backward()
        assert y.tolist() == [-14, 10, 15] and x.grad.tolist() == [1, 5, 0]

    def test_dtypes(self):
        x = torch.zeros(3, dtype=torch.int64)
        x[0] = 1.7
        x[1] = torch.tensor(2.7)
        assert x.tolist() == [1, 2, 0]
        with pytest.raises(
            RuntimeError, match="Index put requires the source and destination dtypes match, got Long for"
        ):
            x[torch.tensor([0])] = torch.tensor([1.5])
        with pytest.raises(RuntimeError, match=r"value cannot be converted to type .* without overflow"):
            torch.zeros(2)[0] = 1j

    @differs("PyTorch takes numbers and tensors only")
    def test_lists_and_arrays_as_values(self):
        x = torch.zeros(3)
        x[:2] = [1, 2]
        x[2:] = np.array([3.0])
        assert x.tolist() == [1, 2, 3]

    @differs("PyTorch refuses operands that overlap")
    def test_a_part_written_into_an_overlapping_one(self):
        x = leaf(1.0, 2.0, 3.0)
        y = x * 1
        y[1:] = y[:-1]
        y.sum().backward()
        assert y.tolist() == [1, 1, 2] and x.grad.tolist() == [2, 1, 0]


#: operands that share memory with a tensor x of one or two axes, by their position
SHARING = {
    "x": lambda x: x,
    "one element, expanded": lambda x: x[(0,) * x.ndim].expand_as(x),
    "last element, expanded": lambda x: x[(-1,) * x.ndim].expand_as(x),
    "first row, expanded": lambda x: x[:1].expand_as(x),
    "first column, expanded": lambda x: x[..., :1].expand_as(x),
    "first row": lambda x: x[0],
    "an axis without a step": lambda x: x.as_strided(tuple(x.shape), (1, 0)[: x.ndim]),
    "transpose": lambda x: x.T,
}


@differs("PyTorch refuses operands that overlap")
@pytest.mark.parametrize("shape", [(3,), (2, 2), (1, 3)])
@pytest.mark.parametrize("op", ["add_", "sub_", "mul_", "div_", "pow_", "copy_", "fmod_", "hypot_", "__isub__"])
def test_an_operand_that_overlaps_is_read_before_it_is_written(op, shape):
    for name, operand in SHARING.items():
        if name == "transpose" and shape[:1] != shape[-1:]:
            continue
        for recorded in (False, True):
            values = []
            for taken in (lambda y: y, torch.clone):
                x = torch.arange(3.0, 3 + np.prod(shape), dtype=torch.float64).reshape(shape)
                x = (x.requires_grad_() if recorded else x) * 1
                getattr(x, op)(taken(operand(x)))
                values.append(x.flatten().tolist())
            assert values[0] == pytest.approx(values[1], rel=1e-15), name


def test_augmented_operators_write_in_place():
    x = torch.tensor([7.0, 8.0])
    y = x
    x += 1
    x -= 2
    x *= 3
    x /= 2
    x **= 2
    x //= 4
    x %= 7
    assert x is y and x.tolist() == [6, 6] and x._version == 7
    n = torch.tensor([1, 2, 3])
    m = n
    n <<= 2
    n |= 1
    n &= 13
    n ^= 2
    n >>= 1
    n //= 2
    n **= 2
    n %= 5
    assert n is m and n.tolist() == [1, 4, 4]
    with pytest.raises(RuntimeError, match=r"result type .* can't be cast to the desired output type"):
        n /= 2
    with pytest.raises(RuntimeError, match=r"result type .* can't be cast to the desired output type"):
        n += 1.5
    assert n.tolist() == [1, 4, 4]


NAMES = """
add sub mul div pow exp log sin tanh abs neg sqrt clamp lerp addcmul remainder floor_divide cumsum cumprod tril triu
scatter scatter_add index_add index_copy index_fill index_put masked_fill masked_scatter addmm addmv addr baddbmm addbmm
swapaxes swapdims transpose t squeeze unsqueeze logical_and bitwise_left_shift gcd lcm nextafter heaviside xlogy sgn
""".split()


@pytest.mark.parametrize("name", NAMES)
def test_operations_have_their_in_place_form(name):
    assert callable(getattr(torch.Tensor, name)) and callable(getattr(torch.Tensor, name + "_"))


class TestOut:
    def test_the_result_is_written_and_returned(self):
        out = torch.empty(3, dtype=torch.float64)
        assert torch.add(torch.ones(3), 1, out=out) is out and out.tolist() == [2, 2, 2]
        part = torch.zeros(2, 3)
        torch.exp(torch.zeros(3), out=part[0])
        assert part.tolist() == [[1, 1, 1], [0, 0, 0]] and part._version == 1

    @pytest.mark.parametrize(
        ("function", "expected"),
        [
            (lambda out: torch.cumsum(torch.ones(3), 0, out=out), [1, 2, 3]),
            (lambda out: torch.diag(torch.eye(3), out=out), [1, 1, 1]),
            (lambda out: torch.hstack([torch.ones(2), torch.zeros(1)], out=out), [1, 1, 0]),
            (lambda out: torch.addmv(torch.ones(2), torch.eye(2), torch.ones(2), out=out), [2, 2]),
            (lambda out: torch.full((2,), 3.0, out=out), [3, 3]),
            (lambda out: torch.arange(3, out=out), [0, 1, 2]),
            (lambda out: torch.msort(torch.tensor([2.0, 1.0]), out=out), [1, 2]),
            (lambda out: torch.index_select(torch.arange(3.0), 0, torch.tensor([2]), out=out), [2]),
            (lambda out: torch.var(torch.tensor([[1.0, 3.0]]), 1, out=out), [2]),
        ],
    )
    def test_an_empty_tensor_is_resized(self, function, expected):
        out = torch.empty(0)
        assert function(out) is out and out.tolist() == expected and out.dtype == torch.float32

    def test_several_results(self):
        values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
        result = torch.max(torch.arange(6.0).reshape(2, 3), 1, out=(values, indices))
        assert result.values is values and values.tolist() == [2, 5] and indices.tolist() == [2, 2]
        torch.sort(torch.tensor([2.0, 1.0]), out=(values[:0].clone(), indices[:0].clone()))
        with pytest.raises(TypeError):
            torch.sort(torch.ones(3), out=torch.empty(3))

    def test_another_shape(self):
        out = torch.empty(2)
        with pytest.warns(
            UserWarning, match=r"An output with one or more elements was resized since it had shape \[2\]"
        ):
            torch.add(torch.ones(3), 1, out=out)
        assert out.tolist() == [2, 2, 2]

    def test_another_dtype(self):
        with pytest.raises(RuntimeError, match=r"result type .* can't be cast to the desired output type"):
            torch.add(torch.ones(3), 1, out=torch.empty(3, dtype=torch.int64))

    @pytest.mark.parametrize("function", [torch.exp, lambda x, out: torch.cumsum(x, 0, out=out)])
    def test_gradients(self, function):
        text = "functions with out=... arguments don't support automatic differentiation"
        with pytest.raises(RuntimeError, match=text):
            function(leaf(1.0), out=torch.empty(1, dtype=torch.float64))
        with pytest.raises(RuntimeError, match=text):
            function(torch.ones(1), out=torch.empty(1, requires_grad=True))
        with torch.no_grad():
            out = torch.empty(1, dtype=torch.float64, requires_grad=True)
            function(leaf(1.0), out=out)
        assert out.is_leaf and out.requires_grad

    def test_what_is_no_tensor(self):
        with pytest.raises(TypeError, match="argument 'out' must be Tensor, not"):
            torch.exp(torch.ones(3), out=np.ones(3))


class TestInsideTransformations:
    def f(self, x):
        y = torch.zeros(2, 2, dtype=torch.float64) + 0 * x[0]
        y[0] = x[:2]
        y[:, 1] *= x[2]
        y.diagonal().add_(x[0])
        y.t_()
        y.masked_fill_(torch.tensor([[False, False], [True, False]]), 2.0)
        return y

    def by_hand(self, x):
        return np.array([[2 * x[0], 0 * x[0]], [2.0, x[0]]])

    X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=torch.float64)

    def test_all_of_them(self):
        np.testing.assert_allclose(torch.func.vmap(self.f)(self.X).numpy(), [self.by_hand(x) for x in self.X.numpy()])
        expected = np.zeros((2, 2, 3))
        expected[0, 0, 0], expected[1, 1, 0] = 2, 1
        x = self.X[0]
        np.testing.assert_allclose(torch.func.jacrev(self.f)(x).numpy(), expected)
        np.testing.assert_allclose(torch.func.jacfwd(self.f)(x).numpy(), expected)
        per_example = torch.func.vmap(torch.func.grad(lambda x: self.f(x).sum()))(self.X)
        assert per_example.tolist() == [[3, 0, 0], [3, 0, 0]]

    def test_nested(self):
        def g(x):
            y = x.clone()
            y[0] = 2.0 * x[1]
            y.mul_(x)
            return y.sum()

        assert torch.func.hessian(g)(self.X[0]).tolist() == [[0, 2, 0], [2, 2, 0], [0, 0, 2]]

    @differs("PyTorch's vmap cannot write a mapped value into an unmapped tensor")
    def test_a_buffer_made_inside_takes_mapped_values(self):
        def g(x):
            buffer = torch.zeros(3, dtype=torch.float64)
            buffer.add_(x)
            buffer[0] = x.sum()
            return buffer

        assert torch.func.vmap(g)(self.X).tolist() == [[6, 2, 3], [15, 5, 6]]

    @differs("PyTorch refuses the write")
    def test_a_buffer_made_outside_does_not_carry_mapped_values_out(self):
        buffer = torch.zeros(3, dtype=torch.float64)

        def g(x):
            buffer.add_(x)
            return x

        torch.func.vmap(g)(self.X)
        with pytest.raises(RuntimeError, match="escaped from inside a function being vmapped"):
            buffer.tolist()


def test_hooks_belong_to_the_value_they_were_put_on():
    x = leaf(1.0, 2.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert seen == [[3, 3]] and y.grad.tolist() == [1, 1] and x.grad.tolist() == [6, 6]


def test_second_derivatives_through_writes():
    x = leaf(2.0, 3.0)
    y = torch.zeros(3, dtype=torch.float64)
    y[:2] = x**2
    y[2] = x[0] * x[1]
    y[1].mul_(x[0])
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [4 + 3 + 9, 12 + 2]
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == [2 + 1 + 6, 1 + 6 + 4]


@pytest.mark.parametrize(
    ("shape", "wrap", "filled"),
    [
        ((3, 3, 3), False, [0, 13, 26]),
        ((2, 3), False, [0, 4]),
        ((7, 2), False, [0, 3]),
        ((7, 2), True, [0, 3, 6, 9, 12]),
        ((3, 2), True, [0, 3]),
        ((0, 0), True, []),
    ],
)
def test_fill_diagonal(shape, wrap, filled):
    x = torch.zeros(shape)
    assert x.fill_diagonal_(2.0, wrap=wrap) is x
    assert x.flatten().nonzero().flatten().tolist() == filled
    leaf = torch.ones(shape, requires_grad=True)
    leaf.clone().fill_diagonal_(2.0, wrap=wrap).sum().backward()
    assert (leaf.grad.flatten() == 0).nonzero().flatten().tolist() == filled


@pytest.mark.parametrize("shape", [(3,), (2, 3, 3)])
def test_a_diagonal_that_is_none(shape):
    with pytest.raises(RuntimeError, match="dimensions"):
        torch.zeros(shape).fill_diagonal_(1.0)


def test_one_value_fits_elements_that_share_their_place():
    for x in (torch.ones(3).expand(2, 3), torch.tensor(1.0).expand(3)):
        base = x._base
        assert x.fill_(4.0).eq(4.0).all() and base.eq(4.0).all()
        assert x.zero_().eq(0.0).all() and base.eq(0.0).all()
        with pytest.raises(RuntimeError, match="more than one element"):
            x.add_(1.0)


@pytest.mark.skipif(not OURS, reason="about our words")
def test_what_was_overwritten_by_which_line_is_said():
    x = leaf(1.0, 2.0)
    y = torch.exp(x)
    y += 1
    with pytest.raises(RuntimeError, match=r"ExpBackward0(?s:.*)`y \+= 1` \(test_inplace.py:\d+\)"):
        y.sum().backward()


def test_gradients_through_a_mixture_of_writes():
    def f(x, v):
        y = x * 1
        y[1:].mul_(y[:-1].clone())
        y.view(2, 2)[0].add_(torch.sin(x[2:]))
        buffer = torch.zeros(4, dtype=torch.float64)
        buffer[torch.tensor([0, 2])] = v
        buffer[buffer > 15] = 0.0
        buffer[0] *= y[0]
        z = y.clone()
        z[0] = y[3] * y[1]
        return z.exp_() + buffer

    assert torch.autograd.gradcheck(f, (leaf(0.3, 0.7, -0.2, 0.5), leaf(10.0, 20.0)))


@pytest.mark.skipif(not OURS, reason="counts Python's memory")
def test_views_of_views_take_no_more_room_than_views():
    w = leaf(0.0, 0.0, 0.0)
    x = w * 1
    views = [x]
    tracemalloc.start()
    for _ in range(2000):
        views.append(views[-1][:])
    room = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert room < 6e6  # a tuple of all steps for each of them would need 16 MB
    last = views[-1]
    del views
    last.add_(1)
    assert len(last._view.steps) == 2000 and x.tolist() == [1, 1, 1]
    (last * 3).sum().backward()
    assert w.grad.tolist() == [3, 3, 3]


# -- retained gradients ------------------------------------------------------------------------------------------------


def test_retained_gradient_of_a_base_whose_view_is_written():
    x = leaf(1.0, 2.0).clone()
    x.retain_grad()
    view = x[:1]
    view *= 2
    x *= 2
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_retained_gradients_of_two_views():
    base = leaf(1.0).clone()
    one, two = base[:], base[:]
    one.retain_grad()
    two.retain_grad()
    one.mul_(2)
    (one + two).sum().backward()
    assert one.grad.tolist() == [1.0] and two.grad.tolist() == [1.0]


def test_retained_gradient_of_a_view_whose_base_is_written():
    base = leaf(1.0, 2.0).clone()
    view = base[:1]
    view.retain_grad()
    base.mul_(3)
    (base.sum() + view.sum()).backward()
    assert view.grad.tolist() == [1.0]


@pytest.mark.parametrize("options", [{}, {"alpha": 2}], ids=str)
@pytest.mark.parametrize("recorded", [False, True])
def test_shapes_that_do_not_fit_are_told_as_outside_of_writing(options, recorded):
    x = (torch.zeros(3, 4, requires_grad=recorded) * 1) if recorded else torch.zeros(3, 4)
    with pytest.raises(RuntimeError, match=r"tensor a \(4\) must match the size of tensor b \(33\)"):
        x.add_(torch.zeros(33), **options)
    with pytest.raises(RuntimeError, match=r"shape \[3, 4\] doesn't match the broadcast shape \[2, 3, 4\]"):
        x.add_(torch.zeros(2, 3, 4), **options)
