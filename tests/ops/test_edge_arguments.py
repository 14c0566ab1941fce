"""Operations at the edges that PyTorch's own operator database visits: numbers, empty tensors, booleans, bad arguments."""

import math

import pytest

from behaviour import differs, torch

NAN, INF = math.nan, math.inf


def same(x, expected, dtype=None):
    """Whether a tensor has these elements (nan where nan is expected), and this dtype."""
    assert x.tolist() == pytest.approx(expected, nan_ok=True)
    assert dtype is None or x.dtype == dtype


def listed(x):
    return [part.tolist() for part in x]


def gradients(result, weights, *inputs):
    """The gradients of a weighted sum."""
    return listed(torch.autograd.grad(result, inputs, torch.tensor(weights)))


# -- scattering ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_scatter_into_a_larger_tensor(name):
    x, src = torch.zeros(3, 4, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    out = getattr(x, name)(1, torch.tensor([[3, 0], [1, 2]]), src)
    weights = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]
    g_x, g_src = gradients(out, weights, x, src)
    assert g_src == [[4.0, 1.0], [6.0, 7.0]]
    assert g_x == (weights if name == "scatter_add" else [[0, 2, 3, 0], [5, 0, 0, 8], [9, 10, 11, 12]])


def test_scatter_of_numbers_and_of_nothing():
    x = torch.arange(5.0)
    same(x.scatter(0, torch.tensor(2), torch.tensor(9.0)), [0, 1, 9, 3, 4])
    same(torch.tensor(3.0).scatter(0, torch.tensor([0]), torch.tensor([9.0])), 9.0)
    same(x.scatter(0, torch.zeros(2, 0, dtype=torch.int64), 9.0), [0, 1, 2, 3, 4])
    with pytest.raises(RuntimeError, match="same number of dimensions as src"):
        torch.ones(3, 5).scatter(0, torch.zeros(2, 2, dtype=torch.int64), torch.ones(2, 5, 2))


@pytest.mark.filterwarnings("ignore:The reduce argument")
def test_scatter_that_multiplies():
    x = torch.full((3,), 2.0)
    same(x.scatter(0, torch.tensor([0, 0, 2]), torch.tensor([3.0, 5.0, 7.0]), reduce="multiply"), [30, 2, 14])
    same(x.scatter(0, torch.tensor([1]), 4.0, reduce="multiply"), [2, 8, 2])
    with pytest.raises(RuntimeError, match="reduce argument must be either add or multiply"):
        x.scatter(0, torch.tensor([1]), 4.0, reduce="divide")


@pytest.mark.parametrize(
    "reduce, include, expected, g_x, g_src",
    [
        ("sum", True, [7.0, 3, 6], [1.0, 2, 3], [1.0, 1, 3]),
        ("sum", False, [6.0, 3, 4], [0.0, 2, 0], [1.0, 1, 3]),
        ("prod", True, [8.0, 3, 8], [8.0, 2, 12], [4.0, 2, 6]),
        ("prod", False, [8.0, 3, 4], [0.0, 2, 0], [4.0, 2, 3]),
        ("mean", True, [7 / 3, 3, 3], [1 / 3, 2, 1.5], [1 / 3, 1 / 3, 1.5]),
        ("mean", False, [3.0, 3, 4], [0.0, 2, 0], [0.5, 0.5, 3]),
        ("amax", True, [4.0, 3, 4], [0.0, 2, 0], [0.0, 1, 3]),
        ("amin", True, [1.0, 3, 2], [1.0, 2, 3], [0.0, 0, 0]),
        ("amin", False, [2.0, 3, 4], [0.0, 2, 0], [1.0, 0, 3]),
    ],
)
def test_scatter_reduce(reduce, include, expected, g_x, g_src):
    x = torch.tensor([1.0, 3.0, 2.0], requires_grad=True)
    src = torch.tensor([2.0, 4.0, 4.0], requires_grad=True)
    out = x.scatter_reduce(0, torch.tensor([0, 0, 2]), src, reduce, include_self=include)
    same(out, expected)
    grads = gradients(out, [1.0, 2.0, 3.0], x, src)
    assert grads[0] == pytest.approx(g_x) and grads[1] == pytest.approx(g_src)


def test_scatter_reduce_shares_at_a_tie_and_survives_zeros():
    x, src = torch.zeros(2, requires_grad=True), torch.tensor([5.0, 5.0, 1.0], requires_grad=True)
    index = torch.tensor([0, 0, 1])
    assert gradients(x.scatter_reduce(0, index, src, "amax"), [2.0, 3.0], x, src) == [[0.0, 0.0], [1.0, 1.0, 3.0]]
    x, src = torch.ones(2, requires_grad=True), torch.tensor([0.0, 5.0, 0.0], requires_grad=True)
    assert gradients(x.scatter_reduce(0, index, src, "prod"), [2.0, 3.0], x, src) == [[0.0, 0.0], [10.0, 0.0, 3.0]]


def test_scatter_reduce_of_integers_and_bad_names():
    x, index, src = torch.tensor([5, 7, 9]), torch.tensor([0, 0, 1]), torch.tensor([-3, -9, 4])
    same(x.scatter_reduce(0, index, src, "mean"), [-3, 5, 9], torch.int64)
    same(x.scatter_reduce(0, index, src, "amax", include_self=False), [-3, 4, 9])
    with pytest.raises(RuntimeError, match="reduce argument must be either sum, prod, mean, amax or amin, got median"):
        x.scatter_reduce(0, index, src, "median")
    y = torch.tensor([5, 7, 9])
    y.scatter_reduce_(0, index, src, "sum")
    same(y, [-7, 11, 9])


def test_index_reduce():
    x, source = torch.ones(3, 2, requires_grad=True), torch.tensor([[2.0, 3.0], [4.0, 5.0]], requires_grad=True)
    out = x.index_reduce(0, torch.tensor([2, 2]), source, "prod")
    same(out[2], [8.0, 15.0])
    assert gradients(out.sum(), 1.0, x, source) == [[[1, 1], [1, 1], [8, 15]], [[4.0, 5.0], [2.0, 3.0]]]
    with pytest.raises(RuntimeError, match="Expected reduce to be one of prod, mean, amax or amin but got sum"):
        x.index_reduce(0, torch.tensor([0]), source[:1], "sum")


def test_index_functions_take_numbers():
    x = torch.tensor(3.0, requires_grad=True)
    same(x.index_fill(0, torch.tensor([0]), 1.0), 1.0)
    same(x.index_add(0, torch.tensor([0]), torch.ones(()), alpha=2), 5.0)
    same(x.index_copy(0, torch.tensor([0]), torch.ones(1)), 1.0)
    assert gradients(x.index_add(0, torch.tensor([0]), torch.ones(())), 2.0, x) == [2.0]


def test_index_functions_check_shapes():
    x = torch.ones(3, 2)
    with pytest.raises(RuntimeError, match="source tensor shape must match self tensor shape"):
        x.index_add(0, torch.tensor([0]), torch.ones(1, 1))
    with pytest.raises(RuntimeError):
        x.index_copy(0, torch.tensor([0]), torch.ones(1, 1))
    with pytest.raises(RuntimeError, match="complex Scalar to non-complex"):
        x.index_fill(0, torch.tensor([0]), 1j)


def test_index_fill_counts_a_repeated_index_once():
    x, value = torch.zeros(3), torch.tensor(5.0, requires_grad=True)
    out = x.index_fill(0, torch.tensor([1, 1, 2]), value)
    assert gradients(out, [1.0, 10.0, 100.0], value) == [110.0]


def test_put():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    source = torch.tensor([9.0, 8.0], requires_grad=True)
    out = x.put(torch.tensor([0, -1]), source)
    assert out.tolist() == [[9.0, 1.0, 2.0], [3.0, 4.0, 8.0]]
    weights = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert gradients(out, weights, x, source) == [[[0.0, 2.0, 3.0], [4.0, 5.0, 0.0]], [1.0, 6.0]]
    same(torch.arange(3.0).put_(torch.tensor([0, 0]), torch.tensor([9.0, 8.0]), accumulate=True), [17, 1, 2])
    with pytest.raises(IndexError, match="tried to access index 7 on a tensor of 6 elements"):
        x.put(torch.tensor([7]), torch.ones(1))
    with pytest.raises(IndexError, match="same number of elements"):
        x.put(torch.tensor([1]), torch.ones(2))


def test_masked_scatter_broadcasts_and_checks():
    mask = torch.tensor([[True, False], [True, True]])
    source = torch.tensor([7.0, 8.0, 9.0], requires_grad=True)
    out = torch.zeros(2).masked_scatter(mask, source)
    assert out.tolist() == [[7.0, 0.0], [8.0, 9.0]]
    assert gradients(out, [[1.0, 2.0], [3.0, 4.0]], source) == [[1.0, 3.0, 4.0]]
    with pytest.raises(RuntimeError, match="only supports boolean masks"):
        torch.zeros(2).masked_scatter(torch.ones(2), source)
    with pytest.raises(RuntimeError):
        torch.zeros(2).masked_scatter_(mask, source)


def test_parts_exchanged():
    x, row = torch.ones(2, 3, requires_grad=True), torch.tensor([5.0, 6.0, 7.0], requires_grad=True)
    weights = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    out = torch.select_scatter(x, row, 0, 1)
    assert out.tolist() == [[1.0, 1.0, 1.0], [5.0, 6.0, 7.0]] and x.tolist() == [[1.0] * 3] * 2
    assert gradients(out, weights, x, row) == [[[1.0, 2.0, 3.0], [0.0] * 3], [4.0, 5.0, 6.0]]
    out = torch.slice_scatter(x, torch.zeros(2, 2), 1, 0, 3, 2)
    assert gradients(out, weights, x) == [[[0.0, 2.0, 0.0], [0.0, 5.0, 0.0]]]
    out = torch.diagonal_scatter(x, torch.zeros(2), 1)
    assert gradients(out, weights, x) == [[[1.0, 0.0, 3.0], [4.0, 5.0, 0.0]]]
    with pytest.raises(RuntimeError, match="expected src to have a size equal to the slice"):
        torch.select_scatter(x, torch.zeros(2), 0, 1)


@differs("its gradient keeps what is overwritten, and drops what is kept")
def test_strided_part_exchanged():
    x, src = torch.ones(2, 3, requires_grad=True), torch.tensor([8.0, 9.0], requires_grad=True)
    out = torch.as_strided_scatter(x, src, (2,), (3,), 1)
    assert out.tolist() == [[1.0, 8.0, 1.0], [1.0, 9.0, 1.0]]
    weights = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert gradients(out, weights, x, src) == [[[1.0, 0.0, 3.0], [4.0, 0.0, 6.0]], [2.0, 5.0]]


def test_fill():
    x, value = torch.ones(2, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    out = torch.fill(x, value)
    same(out, [3.0, 3.0])
    assert gradients(out, [1.0, 2.0], x, value) == [[0.0, 0.0], 3.0]
    with pytest.raises(RuntimeError, match="only supports 0-dimension value"):
        torch.fill(x, torch.ones(2))


# -- reading ---------------------------------------------------------------------------------------------------------


def test_gather_of_numbers_and_of_nothing():
    x = torch.arange(5.0, requires_grad=True)
    same(x.gather(0, torch.tensor(2)), 2.0)
    same(torch.tensor(3.0).gather(0, torch.tensor([0, 0])), [3.0, 3.0])
    empty = x.gather(0, torch.zeros(2, 0, dtype=torch.int64))
    assert empty.shape == (2, 0) and gradients(empty, [[], []], x) == [[0.0] * 5]


def test_take_along_dim_counts_from_the_end():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.take_along_dim(x, torch.tensor([[-1]]), 1).tolist() == [[2.0], [5.0]]


def test_masked_fill_refuses_complex_numbers():
    with pytest.raises(RuntimeError, match=r"value cannot be converted to type [fF]loat without overflow"):
        torch.ones(2).masked_fill(torch.tensor([True, False]), 1j)


def test_out_that_overlaps_itself():
    out = torch.ones(1).expand(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.take(torch.arange(6.0), torch.tensor([0, 1, 2]), out=out)


def test_writing_into_an_empty_expanded_tensor():
    x = torch.ones(1, 0, 1).expand(2, 0, 3)
    assert x.exp_().shape == (2, 0, 3)


# -- searching -------------------------------------------------------------------------------------------------------


def test_searchsorted():
    rows, values = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), torch.tensor([[2.0], [7.0]])
    assert torch.searchsorted(rows, values).tolist() == [[1], [3]]
    assert torch.searchsorted(rows, values, side="right", out_int32=True).tolist() == [[2], [3]]
    down = torch.tensor([3.0, 2.0, 1.0])
    same(torch.searchsorted(down, torch.tensor([1.5]), sorter=torch.tensor([2, 1, 0])), [1])
    same(torch.searchsorted(torch.tensor([1.0, NAN]), torch.tensor([NAN])), [2])
    for kwargs, message in [
        ({"side": "middle"}, "side can only be 'left' or 'right'"),
        ({"side": "left", "right": True}, "side and right can't be set to opposites"),
        ({"sorter": torch.tensor([0, 1, 9])}, "sorter index out of range"),
        ({"sorter": torch.tensor([0, 1])}, "boundary and sorter must have the same size"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            torch.searchsorted(down, torch.tensor([1.0]), **kwargs)
    with pytest.raises(RuntimeError, match="first N-1 dimensions"):
        torch.searchsorted(rows, torch.tensor([2.0]))
    with pytest.raises(RuntimeError, match="boundaries tensor must be 1 dimension"):
        torch.bucketize(torch.tensor([2.0]), rows)


def test_unique_consecutive():
    x = torch.tensor([1, 1, 2, 2, 2, 1])
    values, inverse, counts = torch.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert listed((values, inverse, counts)) == [[1, 2, 1], [0, 0, 1, 1, 1, 2], [2, 3, 1]]
    rows = torch.tensor([[1, 2], [1, 2], [3, 2]])
    assert torch.unique_consecutive(rows, dim=0).tolist() == [[1, 2], [3, 2]]
    assert torch.unique_consecutive(torch.empty(0)).tolist() == []


def test_histograms():
    x = torch.tensor([1.0, 2.0, 2.5, 4.0, 9.0])
    same(torch.histc(x, 4, 0, 8), [1, 2, 1, 0], torch.float32)
    same(torch.histc(torch.ones(3), 3), [0, 3, 0])
    hist, edges = torch.histogram(x, 3)
    assert listed((hist, edges)) == [[3.0, 1.0, 1.0], pytest.approx([1.0, 11 / 3, 19 / 3, 9.0])]
    result = torch.histogram(x, torch.tensor([0.0, 2.0, 9.0]), weight=torch.arange(5.0))
    same(result.hist, [0.0, 10.0])
    same(result.bin_edges, [0.0, 2.0, 9.0])
    with pytest.raises(RuntimeError, match="bins must be > 0"):
        torch.histc(x, 0)


def test_bincount_weights():
    index = torch.tensor([0, 1, 1])
    same(torch.bincount(index, torch.tensor([1, 2, 3])), [1.0, 5.0], torch.float64)
    same(torch.bincount(index, torch.tensor([1.0, 2.0, 3.0])), [1.0, 5.0], torch.float32)
    with pytest.raises(RuntimeError, match="same length as input"):
        torch.bincount(index, torch.ones(2))


def test_nonzero_static_and_unravel_index():
    x = torch.tensor([[0, 1], [1, 1]])
    assert torch.nonzero_static(x, size=2).tolist() == [[0, 1], [1, 0]]
    assert torch.nonzero_static(x, size=4, fill_value=-7).tolist() == [[0, 1], [1, 0], [1, 1], [-7, -7]]
    assert listed(torch.unravel_index(torch.tensor([5, 7]), (2, 4))) == [[1, 1], [1, 3]]
    with pytest.raises(TypeError, match="integer dtype"):
        torch.unravel_index(torch.tensor(1.0), (2, 4))


# -- numbers ---------------------------------------------------------------------------------------------------------


def test_integers_to_negative_powers():
    base, exponent = torch.tensor([2, -1, 1, -1]), torch.tensor([-1, -3, -2, 2])
    same(base**exponent, [0, -1, 1, 1], torch.int64)
    same((-1) ** torch.tensor([-1, -2, 3]), [-1, 1, -1])
    same(2 ** torch.tensor([-1, 2]), [0, 4])
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
        base**-1


def test_integers_wrap_around_in_small_dtypes():
    u = torch.tensor([1, 250], dtype=torch.uint8)
    for out, expected in [
        (u + (-3), [254, 247]),
        (-1 * u, [255, 6]),
        (u - 300, [213, 206]),
        (u & -1, [1, 250]),
        (torch.add(u, u, alpha=-3), [254, 12]),
        (torch.where(u > 5, -3, u), [1, 253]),
        (u.masked_fill(u > 5, -3), [1, 253]),
        (u.scatter(0, torch.tensor([0]), -3), [253, 250]),
        (u.index_add(0, torch.tensor([0]), u[:1], alpha=-1), [0, 250]),
        (torch.full_like(u, -9), [247, 247]),
        (torch.full((1,), -9, dtype=torch.uint8), [247]),
        (u.clone().fill_(-3), [253, 253]),
        (u.clone().add_(-3), [254, 247]),
    ]:
        same(out, expected, torch.uint8)
    same(torch.tensor([1, 100], dtype=torch.int8) + 200, [-55, 44], torch.int8)
    for call in (lambda: torch.full((1,), 300, dtype=torch.uint8), lambda: u.clone().fill_(300)):
        with pytest.raises(RuntimeError, match="cannot be converted to type uint8_t without overflow"):
            call()


@differs("compares and bounds with the number wrapped around, too")
def test_comparisons_and_bounds_do_not_wrap_around():
    u = torch.tensor([1, 250], dtype=torch.uint8)
    same(u > -3, [True, True])
    same(u.clamp(min=-3, max=300), [1, 250])


def test_dtypes_of_small_integers():
    i = torch.tensor([[1, 100]], dtype=torch.uint8)
    assert torch.einsum("ij->i", i).dtype == torch.int64
    same(torch.einsum("ik,j->ij", i, i[0])[0], [101, 10100], torch.int64)
    assert torch.tril_indices(2, 2, dtype=torch.int32).dtype == torch.int32
    assert torch.unravel_index(i[0], (20, 20))[0].dtype == torch.int64
    a = torch.ones(1, 2, 2, dtype=torch.int32)
    assert torch.addbmm(a[0], a, a).dtype == torch.int32
    assert torch.nanmedian(torch.ones(3, dtype=torch.float16)).dtype == torch.float16


def test_booleans():
    x, y = torch.tensor([True, False]), torch.tensor([True, True])
    same(torch.sign(x), [True, False], torch.bool)
    same(torch.sgn(x), [True, False], torch.bool)
    same(torch.isclose(x, y), [True, False])
    same(torch.addr(torch.zeros(2, 2, dtype=torch.bool), x, y, beta=2, alpha=3)[0], [True, True], torch.bool)
    same(torch.addr(torch.ones(2, 2, dtype=torch.bool), x, y, beta=0)[1], [False, False], torch.bool)


def test_isclose_checks_tolerances():
    for name in ("rtol", "atol"):
        with pytest.raises(RuntimeError, match=f"{name} must be greater than or equal to zero, but got -1"):
            torch.isclose(torch.ones(2), torch.ones(2), **{name: -1})


@pytest.mark.parametrize("name", ["addmm", "addmv", "addbmm", "baddbmm"])
def test_integer_products_cut_their_factors(name):
    batch = name[-4:] == "dbmm" or name == "addbmm"
    one = torch.ones((1, 2, 2) if name == "baddbmm" else (2,) if name == "addmv" else (2, 2), dtype=torch.int64)
    a = torch.ones((1, 2, 2) if batch else (2, 2), dtype=torch.int64)
    b = torch.ones((1, 2, 2) if batch else (2,) if name == "addmv" else (2, 2), dtype=torch.int64)
    out = getattr(torch, name)(one, a, b, beta=2.7, alpha=1.6)
    assert out.dtype == torch.int64 and out.flatten().tolist() == [4] * out.numel()


def test_addr_of_integers_refuses_fractions():
    i = torch.ones(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="beta must not be a floating point number"):
        torch.addr(i, i, i, beta=0.5)


def test_integer_ranges():
    same(torch.arange(0.1, -7.9, -4.0, dtype=torch.int64), [0, -4], torch.int64)
    same(torch.arange(0.5, 5, 1.5, dtype=torch.int32), [0, 1, 2], torch.int32)
    same(torch.linspace(4.3, 0, 7, dtype=torch.int64), [4, 3, 2, 2, 1, 0, 0], torch.int64)
    same(torch.logspace(4.3, -3, 4, 3.0, dtype=torch.int64), [81, 6, 0, 0], torch.int64)
    with pytest.raises(RuntimeError, match="unsupported range"):
        torch.arange(INF)
    with pytest.raises(ValueError, match="step must be nonzero"):
        torch.arange(0, 5, 0.5, dtype=torch.int64)


def test_complex_logarithms_of_sums():
    x = torch.tensor([4j, 2 + 4j])
    out = torch.logsumexp(x, 0)
    assert out.imag.item() == pytest.approx(4 - 2 * math.pi) and out.real.item() == pytest.approx(2.126928)
    x = torch.tensor([1 + 0.5j], dtype=torch.complex128, requires_grad=True)
    y = torch.tensor([-1 + 0.25j], dtype=torch.complex128, requires_grad=True)
    out = torch.logaddexp(x, y)
    assert out.item() == pytest.approx((x.exp() + y.exp()).log().item())
    g = torch.autograd.grad(out, x, torch.ones(1, dtype=torch.complex128))[0]
    assert g.item() == pytest.approx(((x - out).exp()).conj().item())


def test_mantissas_and_infinities():
    x = torch.tensor([3.0, -0.75, 1e-40, 0.0])
    mantissa, exponent = torch.frexp(x)
    same(mantissa[:2], [0.75, -0.75])
    same(exponent, [2, 0, -132, 0], torch.int32)
    assert torch.ldexp(mantissa, exponent).tolist() == pytest.approx(x.tolist())
    y = torch.tensor([6.0], requires_grad=True)
    assert gradients(torch.frexp(y).mantissa, [1.0], y) == [[0.125]]
    same(torch.ldexp(torch.tensor([1, 3]), torch.tensor([3, -1])), [8.0, 1.5], torch.float32)
    z = torch.tensor([INF, -INF, NAN, 0.0])
    same(torch.isposinf(z), [True, False, False, False])
    same(torch.isneginf(z), [False, True, False, False])
    same(torch.isreal(torch.tensor([1j, 1.0])), [False, True])
    same(torch.isreal(z), [True] * 4)
    with pytest.raises(RuntimeError, match="does not support complex inputs"):
        torch.isposinf(torch.tensor([1j]))


# -- shapes ----------------------------------------------------------------------------------------------------------


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


def test_repeat_of_one_element_can_be_written_to():
    x = torch.ones(1).repeat(3)
    x[0] = 5
    same(x, [5.0, 1.0, 1.0])


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: torch.diff(x, -1), RuntimeError, "order must be non-negative but got -1"),
        (lambda x: torch.diag_embed(x, dim1=1, dim2=1), RuntimeError, "diagonal dimensions cannot be identical 1, 1"),
        (lambda x: torch.fliplr(x[0]), RuntimeError, "Input must be >= 2-d"),
        (lambda x: torch.flipud(torch.tensor(1.0)), RuntimeError, "Input must be >= 1-d"),
        (lambda x: torch.roll(x, ()), RuntimeError, "`shifts` required"),
        (lambda x: torch.roll(x, (1, 2)), RuntimeError, "shifts and dimensions must align"),
        (lambda x: torch.roll(torch.tensor(1.0), 0, 0), IndexError, "has no dimensions"),
        (lambda x: torch.rot90(x, 1, (0,)), RuntimeError, "expected total rotation dims == 2"),
        (lambda x: torch.rot90(x[0]), RuntimeError, "expected total dims >= 2"),
        (lambda x: torch.rot90(x, 1, (1, -1)), RuntimeError, "expected rotation dims to be different"),
        (lambda x: x.narrow(0, 3, 0), IndexError, r"start out of range \(expected to be in range of \[-2, 2\]"),
        (lambda x: x.narrow(0, 1, -1), RuntimeError, "length must be non-negative"),
        (lambda x: x.narrow(0, torch.tensor(True), 1), RuntimeError, "start must be an 0-dim integral Tensor"),
        (lambda x: torch.movedim(x, (0, 0), (0, 1)), RuntimeError, "repeated dim in `source`"),
        (lambda x: torch.movedim(x, (0, 1), (0, 0)), RuntimeError, "repeated dim in `destination`"),
        (lambda x: torch.tensor_split(x, torch.tensor([1.0])), RuntimeError, "dtype of long"),
        (lambda x: torch.tensor_split(torch.tensor(1.0), 2), RuntimeError, "at least a 1-dimensional tensor"),
        (lambda x: torch.hsplit(x, "ab"), TypeError, "hsplit"),
        (lambda x: torch.dsplit(x, 1), RuntimeError, "requires a tensor with at least 3 dimension"),
        (lambda x: torch.hstack([]), RuntimeError, "hstack expects a non-empty TensorList"),
        (lambda x: torch.column_stack([]), RuntimeError, "column_stack expects a non-empty TensorList"),
        (lambda x: torch.complex(x, 2), TypeError, "must be Tensor, not int"),
        (lambda x: torch.norm(x, "nuclear"), RuntimeError, "Order nuclear not supported"),
        (lambda x: torch.quantile(x, torch.tensor([0.5]).double()), RuntimeError, "same dtype as the input"),
        (lambda x: torch.quantile(x, torch.tensor([[0.5]])), RuntimeError, "must be a scalar or 1D tensor"),
        (lambda x: x.sum_to_size(2), RuntimeError, "is not expandable to size"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.arange(6.0).reshape(2, 3))


def test_sections_as_tensors():
    x = torch.arange(6.0)
    assert listed(torch.tensor_split(x, torch.tensor(2))) == [[0, 1, 2], [3, 4, 5]]
    assert listed(torch.tensor_split(x, torch.tensor([1, 4]))) == [[0], [1, 2, 3], [4, 5]]
    assert [tuple(p.shape) for p in torch.dsplit(torch.ones(1, 2, 4), 2)] == [(1, 2, 2)] * 2


def test_unfold_of_a_number():
    same(torch.tensor(3.0).unfold(0, 1, 1), [3.0])


def test_softmax_of_nothing():
    x = torch.ones(5, 0, requires_grad=True)
    for f in (torch.softmax, torch.log_softmax):
        assert f(x, -1).shape == (5, 0)
        f(x, -1).sum().backward()
    assert x.grad.shape == (5, 0)


def test_sum_to_size():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert x.sum_to_size(1, 3).tolist() == [[3.0, 5.0, 7.0]] and x.sum_to_size((3,)).tolist() == [3.0, 5.0, 7.0]
    assert gradients(x.sum_to_size(2, 1), [[1.0], [2.0]], x) == [[[1.0] * 3, [2.0] * 3]]


def test_tensordot_stretches_axes_of_length_one():
    a, b = torch.full((1, 1), 2.0, requires_grad=True), torch.arange(6.0).reshape(3, 2).requires_grad_()
    out = torch.tensordot(a, b, 1)
    assert out.tolist() == [[12.0, 18.0]]
    assert gradients(out, [[1.0, 10.0]], a, b) == [[[96.0]], [[2.0, 20.0]] * 3]


# -- memory ----------------------------------------------------------------------------------------------------------


def test_complex_numbers_as_pairs():
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    pairs = torch.view_as_real(z)
    assert pairs.tolist() == [[1.0, 2.0], [3.0, -1.0]]
    assert gradients(pairs, [[1.0, 2.0], [3.0, 4.0]], z) == [[1 + 2j, 3 + 4j]]
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    assert gradients(torch.view_as_complex(x), [5 + 6j], x) == [[[5.0, 6.0]]]
    w = torch.zeros(2, dtype=torch.complex64)
    torch.view_as_real(w)[:, 1] = 3
    assert w.tolist() == [3j, 3j]
    for bad, message in [
        (torch.ones(3), "last dimension of size 2"),
        (torch.ones(4)[::2], "last dimension with stride 1"),
        (torch.tensor(1.0), "must have one or more dimensions"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            torch.view_as_complex(bad)
    with pytest.raises(RuntimeError, match="only supported for complex tensors"):
        torch.view_as_real(torch.ones(2))


def test_writing_pairs_of_complex_numbers_is_recorded():
    x = torch.ones(2, requires_grad=True)
    z = torch.zeros(2, dtype=torch.complex64)
    torch.view_as_real(z)[:, 1] = 2 * x
    (z * z).real.sum().backward()
    same(x.grad, [-8.0, -8.0])


def test_as_strided():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    out = torch.as_strided(x, (2, 2), (1, 1), 1)
    assert out.tolist() == [[1.0, 2.0], [2.0, 3.0]]
    assert gradients(out, [[1.0, 2.0], [4.0, 8.0]], x) == [[[0.0, 1.0, 6.0], [8.0, 0.0, 0.0]]]
    y = torch.zeros(4)
    y.as_strided((2,), (2,)).add_(1)
    same(y, [1.0, 0.0, 1.0, 0.0])
    same(y[2:].as_strided((2,), (1,)), [1.0, 0.0])
    assert y[2:].storage_offset() == 2
    with pytest.raises(RuntimeError, match="out of bounds"):
        y.as_strided((3,), (2,))
    with pytest.raises(RuntimeError, match="Negative strides are not supported"):
        y.as_strided((2,), (-1,), 3)
    with pytest.raises(RuntimeError, match="mismatch in length"):
        y.as_strided((2,), (1, 1))


@differs("reaches all of the storage that the tensor lies in")
def test_as_strided_stays_within_the_tensor():
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="reaches no others"):
        x[:2].as_strided((3,), (1,))
    with pytest.raises(RuntimeError, match="not contiguous"):
        x.reshape(2, 3).t().as_strided((2,), (1,))


# -- statistics ------------------------------------------------------------------------------------------------------


def test_covariances():
    x = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 5.0]], dtype=torch.float64, requires_grad=True)
    assert torch.cov(x).tolist() == [pytest.approx([1.0, 1.5]), pytest.approx([1.5, 13 / 3])]
    f, a = torch.tensor([1, 2, 1]), torch.tensor([1.0, 0.5, 2.0], dtype=torch.float64)
    assert torch.cov(x, correction=0, fweights=f, aweights=a)[0].tolist() == pytest.approx([0.6875, 1.1875])
    assert torch.corrcoef(x)[0, 1].item() == pytest.approx(1.5 / math.sqrt(13 / 3))
    assert torch.autograd.gradcheck(lambda t: torch.cov(t, aweights=a), (x,))
    assert torch.cov(torch.tensor([3, 4, 6])).item() == pytest.approx(7 / 3)
    for kwargs, message in [
        ({"fweights": torch.ones(3)}, "expected fweights to have integral dtype"),
        ({"aweights": f}, "expected aweights to have floating point dtype"),
        ({"fweights": torch.tensor([1, -1, 2])}, "fweights cannot be negative"),
        ({"fweights": torch.tensor([1, 2])}, "same numel as there are observations"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            torch.cov(x, **kwargs)
    with pytest.raises(RuntimeError, match="two or fewer dimensions"):
        torch.cov(torch.ones(2, 2, 2))


def test_covariance_of_too_few_observations_warns():
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        out = torch.cov(torch.tensor(3.0))
    assert math.isnan(out.item())


def test_quantiles():
    x = torch.tensor([1.0, 4.0, 9.0], requires_grad=True)
    q = torch.tensor([0.25, 0.75], requires_grad=True)
    g_x, g_q = gradients(torch.quantile(x, q), [1.0, 10.0], x, q)
    assert g_x == [0.5, 5.5, 5.0] and g_q == [6.0, 100.0]
    assert math.isnan(torch.quantile(torch.tensor([1.0, NAN, 3.0]), 0.0).item())
    assert torch.quantile(torch.tensor(3.0), 0.5, dim=0, keepdim=True).shape == ()


def test_medians_and_quantiles_without_nan():
    x = torch.tensor([[1.0, NAN, 3.0, 2.0], [NAN] * 4], requires_grad=True)
    same(torch.nanmedian(x[0]), 2.0)
    result = torch.nanmedian(x, 1)
    same(result.values, [2.0, NAN])
    assert result.indices[0] == 3
    assert gradients(result.values[0], 5.0, x)[0][0] == [0.0, 0.0, 0.0, 5.0]
    out = torch.nanquantile(x, torch.tensor([0.5, 0.25]), dim=1)
    assert out[:, 0].tolist() == [2.0, 1.5] and torch.isnan(out[:, 1]).all()
    same(torch.nanquantile(torch.tensor([1.0, NAN, 5.0]), 0.5, interpolation="lower"), 1.0)


# -- integrals, slopes, distances ------------------------------------------------------------------------------------


def test_trapezoids():
    y, x = torch.tensor([1.0, 2.0, 4.0], requires_grad=True), torch.tensor([0.0, 1.0, 3.0], requires_grad=True)
    same(torch.trapezoid(y), 4.5)
    same(torch.trapz(y, dx=2), 9.0)
    same(torch.cumulative_trapezoid(y, x), [1.5, 7.5])
    assert gradients(torch.trapezoid(y, x), 1.0, y, x) == [[0.5, 1.5, 1.0], [-1.5, -1.5, 3.0]]
    with pytest.raises(RuntimeError, match="one `x` value for each sample point"):
        torch.trapezoid(y, torch.ones(4))
    with pytest.raises(RuntimeError, match="bool is not supported"):
        torch.trapezoid(torch.tensor([True, False]))
    with pytest.raises(TypeError, match="invalid combination"):
        torch.trapezoid(y, x, dx=1)


def test_gradient():
    x = torch.tensor([[0.0, 1.0, 4.0], [3.0, 4.0, 7.0]], requires_grad=True)
    assert listed(torch.gradient(x)) == [[[3.0] * 3] * 2, [[1.0, 2.0, 3.0]] * 2]
    (slope,) = torch.gradient(x, spacing=(torch.tensor([0.0, 1.0, 5.0]),), dim=1)
    assert slope[0].tolist() == pytest.approx([1.0, 0.95, 0.75])
    (slope,) = torch.gradient(x, spacing=2, dim=1, edge_order=2)
    assert slope[0].tolist() == pytest.approx([0.0, 1.0, 2.0])
    assert gradients(slope[0].sum(), 1.0, x) == [[[-0.75, 0.0, 0.75], [0.0, 0.0, 0.0]]]
    for kwargs, message in [
        ({"edge_order": 3}, "only supports edge_order=1 and edge_order=2"),
        ({"dim": (0, 0)}, "appears multiple times"),
        ({"spacing": [1.0, 2.0, 3.0]}, "list of length"),
        ({"edge_order": 2}, "at least edge_order"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            torch.gradient(x, **kwargs)


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, INF])
def test_cdist(p):
    a = torch.tensor([[0.0, 0.0], [1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([[3.0, 4.5], [0.0, 0.0], [1.0, 1.0]], dtype=torch.float64, requires_grad=True)
    out = torch.cdist(a, b, p)
    wanted = [[torch.dist(u, v, p).item() for v in b] for u in a]
    assert [row == pytest.approx(want) for row, want in zip(out.tolist(), wanted, strict=True)] == [True, True]
    if p in (1.5, 2.0):
        assert torch.autograd.gradcheck(lambda u, v: torch.cdist(u[1:], v, p), (a, b))
        assert torch.autograd.grad(out[0, 1], a)[0].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_cdist_checks():
    x = torch.ones(2, 3)
    assert torch.cdist(torch.ones(4, 2, 0), torch.ones(3, 0)).shape == (4, 2, 3)
    for call, message in [
        (lambda: torch.cdist(x, x[:, :2]), "must have the same number of columns. X1: 3 X2: 2"),
        (lambda: torch.cdist(x[0], x), "only supports at least 2D tensors, X1 got: 1D"),
        (lambda: torch.cdist(x, x, -1.0), "only supports non-negative p values"),
        (lambda: torch.cdist(x.long(), x), "only supports floating-point dtypes"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            call()


@pytest.mark.filterwarnings("ignore:Using torch.cross without specifying")
def test_cross():
    a, b = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True), torch.tensor([[0.0, 1.0, 0.0]], requires_grad=True)
    assert torch.cross(a, b, dim=1).tolist() == [[-3.0, 0.0, 1.0]] and torch.cross(a, b).tolist() == [[-3.0, 0.0, 1.0]]
    assert gradients(a.cross(b, 1), [[1.0, 2.0, 4.0]], a, b) == [[[4.0, 0.0, -1.0]], [[-2.0, 1.0, 0.0]]]
    with pytest.raises(RuntimeError, match="no dimension of size 3"):
        torch.cross(torch.ones(2), torch.ones(2))


def test_renorm():
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4]], dtype=torch.float64, requires_grad=True)
    out = torch.renorm(x, 2, 0, 1.0)
    assert out[0].tolist() == pytest.approx([0.6, 0.8], rel=1e-6) and out[1].tolist() == [0.3, 0.4]
    assert torch.autograd.gradcheck(lambda t: torch.renorm(t, 2, 0, 1.0), (x,))
    with pytest.raises(RuntimeError, match="non-positive-norm not supported"):
        torch.renorm(x, 0, 0, 1.0)
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        torch.renorm(x[0], 2, 0, 1.0)


def test_nuclear_norm():
    x = torch.tensor([[3.0, 0.0], [0.0, 4.0]], requires_grad=True)
    assert torch.norm(x, "nuc").item() == pytest.approx(7.0)
    (g,) = torch.autograd.grad(torch.norm(x, "nuc"), x)
    assert g.flatten().tolist() == pytest.approx([1.0, 0.0, 0.0, 1.0], abs=1e-6)
    assert torch.norm(torch.ones(2, 3, 3), "nuc", dim=(1, 2), keepdim=True).shape == (2, 1, 1)
