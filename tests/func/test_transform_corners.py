"""Special cases of transformations: modes, indices and writes inside vmap, Functions with vmap rules."""

from typing import Any

import pytest

from behaviour import OURS, differs, torch

grad, vjp, jvp, vmap = torch.func.grad, torch.func.vjp, torch.func.jvp, torch.func.vmap
jacrev, jacfwd, hessian = torch.func.jacrev, torch.func.jacfwd, torch.func.hessian


@pytest.fixture
def x() -> Any:
    return torch.tensor([0.5, 1.0, -2.0])


def cubes(x: Any) -> Any:
    return (x**3).sum()


# -- modes ------------------------------------------------------------------------------------------------------------

INSIDE = {
    "grad": lambda x: grad(cubes)(x),
    "vjp": lambda x: vjp(cubes, x)[1](torch.tensor(1.0))[0],
    "jacrev": lambda x: jacrev(cubes)(x),
    "jacfwd": lambda x: jacfwd(cubes)(x),
    "jvp": lambda x: jvp(lambda x: x**3, (x,), (torch.ones(3),))[1],
    "vmap of grad": lambda x: vmap(grad(lambda x: x**3))(x),
    "grad of vmap": lambda x: grad(lambda x: vmap(lambda x: x**3)(x).sum())(x),
    "has_aux": lambda x: grad(lambda x: (cubes(x), x.cos()), has_aux=True)(x)[0],
    "grad_and_value": lambda x: torch.func.grad_and_value(cubes)(x)[0],
}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", INSIDE)
def test_derivatives_inside_modes_that_do_not_record(name: str, mode: Any, x: Any) -> None:
    with mode():
        found = INSIDE[name](x)
    assert not found.requires_grad
    torch.testing.assert_close(found, 3 * x**2)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_second_derivatives_inside_modes_that_do_not_record(mode: Any, x: Any) -> None:
    with mode():
        nested = vmap(grad(grad(lambda x: x**3)))(x)
        matrices = [hessian(cubes)(x), jacrev(grad(cubes))(x), jacfwd(jacrev(cubes))(x)]
        moved = jvp(grad(cubes), (x,), (torch.ones(3),))[1]
    for found in (nested, moved, *[m.diagonal() for m in matrices]):
        torch.testing.assert_close(found, 6 * x)


@differs("linearize returns zeros in inference mode, autograd.functional in both")
def test_more_derivatives_inside_inference_mode(x: Any) -> None:
    functional = torch.autograd.functional
    with torch.inference_mode():
        pushed = torch.func.linearize(lambda x: x**3, x)[1](torch.ones(3))
        products = [functional.vjp(cubes, x)[1], functional.jvp(lambda x: x**3, x, torch.ones(3))[1]]
        matrices = [functional.jacobian(cubes, x), torch.jacobian(cubes, x)]
        curvature = [torch.func.hvp(cubes, x, torch.ones(3)), functional.hessian(cubes, x).diagonal()]
    for found in (pushed, *products, *matrices):
        torch.testing.assert_close(found, 3 * x**2)
    for found in curvature:
        torch.testing.assert_close(found, 6 * x)


def test_what_a_function_sees_inside_inference_mode(x: Any) -> None:
    seen = []

    def f(x: Any) -> Any:
        y = x**2
        seen.append((torch.is_inference_mode_enabled(), torch.is_grad_enabled(), y.is_inference(), y.requires_grad))
        return y.sum()

    with torch.inference_mode():
        grad(f)(x)
        assert torch.is_inference_mode_enabled()
    assert seen == [(False, True, False, True)]
    assert not torch.is_inference_mode_enabled()


def test_inference_mode_inside_a_function_makes_constants(x: Any) -> None:
    def f(x: Any) -> Any:
        with torch.inference_mode():
            constant = x**2
        return (x - constant).sum()

    with torch.inference_mode():
        torch.testing.assert_close(grad(f)(x), torch.ones(3))


def test_tensors_of_inference_mode_are_captured_and_differentiated() -> None:
    with torch.inference_mode():
        x, w = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
        gradient, matrix = grad(lambda x: (x * w).sum())(x), jacrev(lambda x: x * w)(x)
    assert gradient.tolist() == [3.0, 4.0]
    assert matrix.tolist() == [[3.0, 0.0], [0.0, 4.0]]


def test_vjp_in_no_grad_goes_on_outside_of_it() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    with torch.no_grad():
        y, pull = vjp(lambda x: x**2, x)
    (gradient,) = pull(torch.tensor(1.0))
    assert not y.requires_grad
    assert gradient.item() == 6.0
    assert torch.autograd.grad(gradient, x)[0].item() == 2.0


def test_a_pullback_called_in_no_grad_is_constant() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    y, pull = vjp(lambda x: x**2, x)
    with torch.no_grad():
        (gradient,) = pull(torch.tensor(1.0))
    assert not gradient.requires_grad
    assert torch.autograd.grad(y, x)[0].item() == 6.0


def test_numpy_may_be_called_where_nothing_is_recorded() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with torch.no_grad():
        array = (x * 1).numpy()
        x.numpy()[0] = 5.0
    assert array.tolist() == [1.0, 2.0]
    assert x.tolist() == [5.0, 2.0]


# -- batched indices --------------------------------------------------------------------------------------------------

IMAGES = torch.arange(24.0).reshape(2, 3, 4)
ONE, TWO = torch.tensor([1, 2]), torch.tensor([0, 3])
PAIR, OTHER = torch.tensor([[1, 2], [0, -1]]), torch.tensor([[0, 3], [1, 1]])

READS = {
    "a number": lambda x, i, j: x[i[0]],
    "two numbers": lambda x, i, j: x[i[0], j[0]],
    "two arrays": lambda x, i, j: x[i, j],
    "arrays that broadcast": lambda x, i, j: x[i[:, None], j],
    "an array, then a slice": lambda x, i, j: x[i, 1:],
    "a slice, then an array": lambda x, i, j: x[1:, j],
    "a number and an array": lambda x, i, j: x[0, j],
    "a new axis": lambda x, i, j: x[i, None],
    "a new axis between": lambda x, i, j: x[i, None, j],
    "an ellipsis": lambda x, i, j: x[..., j],
    "an array that is shared": lambda x, i, j: x[i, torch.tensor([0, 1])],
    "a mask that is shared": lambda x, i, j: x[torch.tensor([True, False, True])][:, j],
}


@pytest.mark.parametrize("name", READS)
def test_reading_at_mapped_indices(name: str) -> None:
    f = READS[name]
    each = [f(x, i, j) for x, i, j in zip(IMAGES, PAIR, OTHER)]
    torch.testing.assert_close(vmap(f)(IMAGES, PAIR, OTHER), torch.stack(each))
    shared = [f(IMAGES[0], i, j) for i, j in zip(PAIR, OTHER)]
    torch.testing.assert_close(vmap(f, (None, 0, 0))(IMAGES[0], PAIR, OTHER), torch.stack(shared))


@pytest.mark.parametrize("name", READS)
def test_derivatives_of_reading_at_mapped_indices(name: str) -> None:
    f = READS[name]

    def gradient(x: Any, i: Any, j: Any) -> Any:
        y, pull = vjp(lambda x: f(x, i, j), x)
        return pull(torch.ones_like(y))[0]

    def plain(x: Any, i: Any, j: Any) -> Any:
        x = x.clone().requires_grad_()
        return torch.autograd.grad(f(x, i, j).sum(), x)[0]

    each = [plain(x, i, j) for x, i, j in zip(IMAGES, PAIR, OTHER)]
    if not OURS and name in ("a number", "two numbers"):
        pytest.skip("PyTorch differs: the backward of an index of numbers calls item()")
    torch.testing.assert_close(vmap(gradient)(IMAGES, PAIR, OTHER), torch.stack(each))


WRITES = {  # writes that PyTorch's vmap supports, too
    "a number": lambda i, j: i[0],
    "two numbers": lambda i, j: (i[0], j[0]),
    "two arrays": lambda i, j: (i, j),
    "arrays that broadcast": lambda i, j: (i[:, None], j),
    "an array, then a slice": lambda i, j: (i, slice(1, None)),
    "a slice, then an array": lambda i, j: (slice(1, None), j),
    "a number and an array": lambda i, j: (0, j),
    "an ellipsis": lambda i, j: (..., j),
    "an array that is shared": lambda i, j: (i, torch.tensor([0, 1])),
}


@pytest.mark.parametrize("name", WRITES)
def test_writing_at_mapped_indices(name: str) -> None:
    index = WRITES[name]

    def f(x: Any, i: Any, j: Any, v: Any) -> Any:
        y = x.clone()
        y[index(i, j)] = v
        return y

    values = torch.tensor([-1.0, -2.0])
    each = [f(x, i, j, v) for x, i, j, v in zip(IMAGES, PAIR, OTHER, values)]
    torch.testing.assert_close(vmap(f)(IMAGES, PAIR, OTHER, values), torch.stack(each))
    shared = [f(x, i, j, torch.tensor(9.0)) for x, i, j in zip(IMAGES, PAIR, OTHER)]
    torch.testing.assert_close(vmap(f, (0, 0, 0, None))(IMAGES, PAIR, OTHER, torch.tensor(9.0)), torch.stack(shared))


def test_derivatives_of_writing_at_mapped_indices() -> None:
    def f(x: Any, i: Any, v: Any) -> Any:
        y = x * x
        y[i] = v * v
        return (y * y).sum()

    rows, places = torch.randn(2, 3, 4), torch.tensor([[0, 2], [1, 2]])
    values = torch.randn(2, 2, 4)
    found = vmap(grad(f, argnums=(0, 2)))(rows, places, values)
    each = [grad(f, argnums=(0, 2))(x, i, v) for x, i, v in zip(rows, places, values)]
    for got, want in zip(found, zip(*each)):
        torch.testing.assert_close(got, torch.stack(want))


METHODS = {
    "index_add": lambda x, i: x.index_add(0, i, torch.ones(2, 4)),
    "index_copy": lambda x, i: x.index_copy(0, i, torch.ones(2, 4)),
    "index_fill": lambda x, i: x.index_fill(1, i, 7.0),
    "index_select": lambda x, i: x.index_select(0, i),
    "index_put": lambda x, i: x.index_put((i,), torch.tensor(5.0)),
    "accumulate": lambda x, i: x.index_put((i, i), torch.tensor([5.0, 6.0]), accumulate=True),
    "index_put_": lambda x, i: x.clone().index_put_((i,), torch.tensor(5.0)),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_with_mapped_indices(name: str) -> None:
    f, where = METHODS[name], torch.tensor([[1, 2], [0, 1]])
    each = [f(x, i) for x, i in zip(IMAGES, where)]
    torch.testing.assert_close(vmap(f)(IMAGES, where), torch.stack(each))
    if not OURS and name == "index_put_":
        pytest.skip("PyTorch differs: a tensor that all examples share is not written with what each has of its own")
    shared = [f(IMAGES[0], i) for i in where]
    torch.testing.assert_close(vmap(lambda i: f(IMAGES[0], i))(where), torch.stack(shared))


@differs("its backward has no batching rule for unique()")
def test_an_index_named_twice_is_filled_once() -> None:
    def f(x: Any, i: Any, v: Any) -> Any:
        return x.index_fill(0, i, v).sum()

    found = vmap(grad(f, argnums=2), (0, 0, None))(torch.randn(2, 3), torch.tensor([[1, 1], [0, 2]]), torch.tensor(5.0))
    assert found.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("f", [lambda x, i: x[i], lambda x, i: x[:, i], lambda x, i: x[i, i]])
def test_an_index_out_of_range_in_one_example(f: Any) -> None:
    with pytest.raises(IndexError, match=r"index -?\d is out of bounds for dimension \d with size"):
        vmap(f)(IMAGES, torch.tensor([[0, 1], [0, 5]]))
    with pytest.raises(IndexError, match="out of bounds"):
        vmap(lambda i: IMAGES[i])(torch.tensor([[0], [-3]]))


def test_nested_vmaps_over_an_index() -> None:
    table, where = torch.rand(7, 4), torch.tensor([[0], [1]])
    found = vmap(lambda i: vmap(lambda column: column[i], in_dims=1)(table))(where)
    torch.testing.assert_close(found, torch.stack([table[i].T for i in where]))


# -- layout, joining, random numbers ----------------------------------------------------------------------------------


def test_strides_inside_vmap() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append((x.stride(), x.is_contiguous(), x.stride(0)))
        return x

    vmap(f)(torch.randn(3, 2, 5, 7))
    vmap(f, in_dims=1)(torch.randn(2, 3, 5, 7))
    vmap(vmap(f))(torch.randn(3, 2, 5))
    assert seen == [((35, 7, 1), True, 35), ((105, 7, 1), False, 105), ((1,), True, 1)]


def test_is_contiguous_inside_vmap() -> None:
    seen = []
    for shape, dim in [((3, 2, 7), 0), ((2, 3, 7), 1), ((2, 7, 3), 2), ((3, 0, 3), 0)]:
        vmap(lambda x: (seen.append(x.is_contiguous()), x)[1], in_dims=dim)(torch.randn(shape))
    assert seen == [True, False, False, True]


def test_an_empty_vector_in_cat_gets_its_gradient() -> None:
    empty = torch.zeros(0, requires_grad=True)
    y = torch.cat([empty, torch.ones(2)])
    assert y.requires_grad
    assert torch.autograd.grad(y.sum(), empty)[0].shape == (0,)


def test_bernoulli_in_place_with_mapped_probabilities() -> None:
    probabilities = torch.stack([torch.zeros(50), torch.ones(50)])
    drawn = vmap(lambda x, p: x.clone().bernoulli_(p), randomness="different")(torch.full((2, 50), 9.0), probabilities)
    assert drawn.tolist() == probabilities.tolist()


def test_multi_dot_takes_matrices_between_its_ends() -> None:
    square = torch.eye(3)
    with pytest.raises(RuntimeError, match="tensor 1 must be 2D but got 1D"):
        torch.linalg.multi_dot((square, torch.ones(3), square))
    with pytest.raises(RuntimeError, match="tensor 1 must be 2D but got 1D"):
        vmap(lambda a, b, c: torch.linalg.multi_dot((a, b, c)))(torch.ones(3, 3, 3), square, torch.ones(3, 3, 3))


# -- jacrev -----------------------------------------------------------------------------------------------------------


def test_jacrev_in_chunks_of_one_does_not_vectorize(x: Any) -> None:
    class Counting(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            g.nonzero()  # its size depends on the numbers
            return 2 * g * ctx.saved_tensors[0]

    torch.testing.assert_close(jacrev(Counting.apply, chunk_size=1)(x), torch.diag(2 * x))
    with pytest.raises(RuntimeError, match="do not support batching operators that can output dynamic shape"):
        jacrev(Counting.apply, chunk_size=2)(x)


@pytest.mark.parametrize("chunk_size", [1, 2, 4, None])
def test_jacrev_of_several_outputs_in_chunks(chunk_size: Any, x: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return (x.sin() * y, x + 2), {"total": x.sum(), "one": x[:1]}

    found = jacrev(f, argnums=(0, 1), chunk_size=chunk_size)(x, torch.ones(3))
    assert found[0][0][0].shape == (3, 3)
    torch.testing.assert_close(found[0][0][0], torch.diag(x.cos()))
    torch.testing.assert_close(found[0][0][1], torch.diag(x.sin()))
    torch.testing.assert_close(found[1]["total"], (torch.ones(3), torch.zeros(3)))
    torch.testing.assert_close(found[1]["one"], (torch.tensor([[1.0, 0.0, 0.0]]), torch.zeros(1, 3)))


# -- autograd.functional ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
def test_strict_tells_a_cut_from_an_input_that_is_not_used(name: str) -> None:
    api = getattr(torch.autograd.functional, name)
    total = (lambda y: y) if name in ("vjp", "jvp") else (lambda y: y.sum())
    x, v = torch.rand(4), torch.rand(4)
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
        api(lambda x: total(x.detach()), x, v, strict=True)
    with pytest.raises(RuntimeError, match="The output of the user-provided function is independent of input 0"):
        api(lambda x: total(x.long().float().requires_grad_().clone()), x, v, strict=True)


# -- Functions with a vmap rule ---------------------------------------------------------------------------------------


def function_with(rule: Any) -> Any:
    class Plain(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, more: Any = None) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2, None

        vmap = staticmethod(rule)

    return Plain


def test_a_vmap_rule_gets_the_tensors_in_containers() -> None:
    seen = []

    def rule(info: Any, in_dims: Any, x: Any, more: Any) -> Any:
        seen.append((in_dims, more["a"].shape, more["b"][0].shape))
        return x + more["a"] + more["b"][0], 0

    x, shared = torch.rand(2, 3), torch.rand(3)
    found = vmap(lambda x: function_with(rule).apply(x, {"a": x, "b": [shared]}))(x)
    assert seen == [((0, {"a": 0, "b": [None]}), (2, 3), (3,))]
    torch.testing.assert_close(found, 2 * x + shared)


@pytest.mark.parametrize("out_dims", [(None,), (0,), (0, 0)])
def test_out_dims_of_one_output_are_no_tuple(out_dims: Any) -> None:
    with pytest.raises(RuntimeError, match="returned an incompatible"):
        vmap(function_with(lambda info, in_dims, x, more: (x, out_dims)).apply)(torch.rand(2, 3))


def test_keyword_only_arguments_are_refused() -> None:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, *, by: Any) -> Any:
            return x * by

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, *, by: Any) -> Any:
            return x * by, 0

    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        vmap(Scaled.apply)(torch.rand(3), by=torch.rand(3))


def test_numpy_inside_forward_of_a_function_that_is_pulled_back() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            array = x.numpy()
            return torch.tensor(array**3), array

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.array = output[1]

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            return torch.tensor(3 * ctx.array**2)

    x = torch.tensor(2.0, requires_grad=True)
    _, pull = vjp(lambda x: Cube.apply(x)[0], x)
    (gradient,) = pull(torch.ones((), requires_grad=True))
    assert gradient.item() == 12.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.backward()


# -- searching --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted_inside_vmap(right: bool) -> None:
    rows = torch.tensor([[1.0, 2.0, 2.0], [0.0, 5.0, 7.0]])
    values = torch.tensor([[2.0, 0.5, float("nan")], [5.0, 6.0, 9.0]])

    def f(row: Any, v: Any) -> Any:
        return torch.searchsorted(row, v, right=right)

    each = torch.stack([f(row, v) for row, v in zip(rows, values)])
    torch.testing.assert_close(vmap(f)(rows, values), each)
    shared = torch.stack([f(rows[0], v) for v in values])
    torch.testing.assert_close(vmap(f, (None, 0))(rows[0], values), shared)
    torch.testing.assert_close(vmap(lambda v: torch.bucketize(v, rows[0], right=right))(values), shared)
    torch.testing.assert_close(vmap(f, (None, 0))(rows[0], values[0]), shared[0])


def test_writing_into_a_shared_tensor_at_mapped_indices() -> None:
    def f(i: Any) -> Any:
        y = IMAGES[0] * 1
        y = y.index_put((i,), torch.tensor(9.0))
        return y

    torch.testing.assert_close(vmap(f)(PAIR), torch.stack([f(i) for i in PAIR]))


@differs("a tensor that all examples share is not written with what each has of its own")
def test_assigning_into_a_buffer_at_mapped_indices() -> None:
    def f(i: Any) -> Any:
        counts = torch.zeros(3)
        counts[i] = 1.0
        return counts

    assert vmap(f)(torch.tensor([[0, 1], [2, 2]])).tolist() == [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def test_bytes_are_masks_also_inside_vmap() -> None:
    with pytest.raises((RuntimeError, IndexError)):
        vmap(lambda x, i: x[i])(IMAGES, torch.tensor([[1, 0, 1], [0, 0, 1]], dtype=torch.uint8))


def test_isin_inside_vmap() -> None:
    rows, tests = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[2, 9], [4, 6]])
    expected = [[False, True, False], [True, False, True]]
    assert vmap(torch.isin)(rows, tests).tolist() == expected
    assert vmap(torch.isin, (None, 0))(rows[1], tests).tolist() == [[False] * 3, [True, False, True]]
    assert vmap(torch.isin, (0, None))(rows, tests[0]).tolist() == [[False, True, False], [False] * 3]


# -- indices that depend on values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cummax", "cummin", "mode", "median", "nanmedian", "sort", "kthvalue"])
def test_values_and_indices_inside_vmap(name: str) -> None:
    rows = torch.tensor([[3.0, 1.0, 3.0, 2.0], [0.0, 4.0, 4.0, -1.0]])
    args = (2, 0) if name == "kthvalue" else (0,)

    def f(row: Any) -> Any:
        return tuple(getattr(torch, name)(row, *args))

    values, indices = vmap(f)(rows)
    each = [f(row) for row in rows]
    torch.testing.assert_close(values, torch.stack([v for v, _ in each]))
    torch.testing.assert_close(indices, torch.stack([i for _, i in each]))
    gradient = grad(lambda rows: vmap(lambda row: f(row)[0])(rows).sin().sum())(rows)
    loop = grad(lambda rows: sum(f(row)[0].sin().sum() for row in rows))(rows)
    torch.testing.assert_close(gradient, loop)
    tangent = jvp(lambda rows: vmap(lambda row: f(row)[0])(rows), (rows,), (rows * 2,))[1]
    torch.testing.assert_close(tangent, 2 * values)
    middle = vmap(lambda row: f(row)[0], in_dims=1)(rows.T)
    torch.testing.assert_close(middle, values)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("name", ["diag", "diag_embed"])
def test_what_transformations_give_may_be_written_to(name, n):
    function, x = getattr(torch, name), torch.ones(n, dtype=torch.float64)
    cotangent = torch.ones(n, n, dtype=torch.float64)
    given = [
        torch.func.vjp(function, x)[1](cotangent)[0],
        torch.func.grad(lambda x: function(x).sum())(x),
        torch.func.jacrev(function)(x),
        torch.func.jacfwd(function)(x),
        torch.autograd.functional.vjp(function, x, cotangent)[1],
    ]
    for result in given:
        once = result.clone()
        result.unsqueeze(0).mul_(2)
        assert torch.equal(result, once * 2)
