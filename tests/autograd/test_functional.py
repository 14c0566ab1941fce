"""torch.autograd.functional: values, structure of results, create_graph, strict, and errors."""

import pytest

from behaviour import differs, torch

functional = torch.autograd.functional
X = torch.tensor([1.0, 2.0])
Y = torch.tensor([3.0, 4.0, 5.0])


def cubes(a):
    return (a**3).sum()


def two(a, b):
    return a.sum() * b, a * 2


def mixed(a, b):
    return (a**2).sum() * b.sum()


def close(got, want):
    if isinstance(want, tuple):
        assert isinstance(got, (tuple, list)) and len(got) == len(want)
        for g, w in zip(got, want):
            close(g, w)
    else:
        want = torch.tensor(want)
        assert got.shape == want.shape, (got.shape, want.shape)
        assert torch.allclose(got, want.to(got.dtype), atol=1e-5), (got, want)


# -- values and structure --------------------------------------------------------------------------------------------


def test_vjp_of_several_inputs_and_outputs():
    outputs, products = functional.vjp(two, (X, Y), (Y, X))
    close(outputs, ([9.0, 12.0, 15.0], [2.0, 4.0]))
    close(products, ([52.0, 54.0], [9.0, 12.0, 15.0]))


def test_jvp_of_several_inputs_and_outputs():
    outputs, products = functional.jvp(two, (X, Y), (X, Y))
    close(outputs, ([9.0, 12.0, 15.0], [2.0, 4.0]))
    close(products, ([18.0, 24.0, 30.0], [2.0, 4.0]))


JACOBIAN_OF_TWO = (
    ([[3.0, 3.0], [4.0, 4.0], [5.0, 5.0]], [[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]]),
    ([[2.0, 0.0], [0.0, 2.0]], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
)


@pytest.mark.parametrize(
    "how",
    [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}],
    ids=["rows", "batched", "forward"],
)
def test_jacobian_of_several_inputs_and_outputs(how):
    close(functional.jacobian(two, (X, Y), **how), JACOBIAN_OF_TWO)


@pytest.mark.parametrize(
    "how",
    [{}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}],
    ids=["rows", "batched", "forward over reverse"],
)
def test_hessian_of_several_inputs(how):
    want = (
        ([[24.0, 0.0], [0.0, 24.0]], [[2.0, 2.0, 2.0], [4.0, 4.0, 4.0]]),
        ([[2.0, 4.0], [2.0, 4.0], [2.0, 4.0]], [[0.0] * 3] * 3),
    )
    close(functional.hessian(mixed, (X, Y), **how), want)


@pytest.mark.parametrize("product", ["hvp", "vhp"])
def test_products_with_the_hessian(product):
    output, products = getattr(functional, product)(mixed, (X, Y), (X, Y))
    close(output, 60.0)
    close(products, ([48.0, 96.0], [10.0, 10.0, 10.0]))


def test_one_input_in_a_tuple_gives_tuples():
    close(functional.jacobian(lambda a: (a * 1,), (X,)), (([[1.0, 0.0], [0.0, 1.0]],),))
    close(functional.hessian(cubes, (X,)), (([[6.0, 0.0], [0.0, 12.0]],),))
    close(functional.hvp(cubes, (X,), (X,)), (9.0, ([6.0, 24.0],)))
    close(functional.vjp(lambda a: (a.sum(),), X), ((3.0,), [1.0, 1.0]))


def test_shapes_are_the_outputs_then_the_inputs():
    w = torch.arange(6.0).reshape(2, 3)
    jacobian = functional.jacobian(lambda a: a.T @ a, w)
    assert jacobian.shape == (3, 3, 2, 3)
    assert functional.jacobian(lambda a: a * 2, torch.tensor(1.0)).shape == ()
    assert functional.jacobian(lambda a: a.sum().expand(2), torch.zeros(0)).shape == (2, 0)


def test_an_output_of_one_element_with_axes_is_enough():
    close(functional.hessian(lambda a: (a**2).sum().reshape(1), X), [[2.0, 0.0], [0.0, 2.0]])
    output, product = functional.hvp(lambda a: (a**2).sum().reshape(1), X, X)
    close((output, product), ([5.0], [2.0, 4.0]))


def test_dtypes():
    assert functional.jacobian(lambda a: a.double() * 2, X).dtype == torch.float32
    assert functional.vjp(lambda a: a * 2, X, X.double())[1].dtype == torch.float32
    assert functional.jacobian(lambda a: a * 2, X.double()).dtype == torch.float64


def test_complex_products():
    z = torch.tensor([1 + 2j])
    close(functional.vjp(lambda a: a * a, z, torch.tensor([1j])), ([-3 + 4j], [4 + 2j]))
    close(functional.jvp(lambda a: a * a, z, torch.tensor([1j])), ([-3 + 4j], [-4 + 2j]))
    close(functional.jacobian(lambda a: a.abs(), torch.tensor([3 + 4j])), [[0.6 + 0.8j]])
    close(functional.jacobian(lambda a: a * a, z, vectorize=True, strategy="forward-mode"), [[2 + 4j]])


def test_the_vector_may_be_left_out_for_one_element():
    close(functional.vjp(cubes, X), (9.0, [3.0, 12.0]))
    close(functional.jvp(lambda a: a * 2, torch.tensor([2.0])), ([4.0], [2.0]))
    close(functional.hvp(lambda a: a**3, torch.tensor(2.0)), (8.0, 12.0))
    close(functional.vhp(lambda a: a**3, torch.tensor(2.0)), (8.0, 12.0))


def test_gradient_mode_of_the_caller_does_not_matter():
    with torch.no_grad():
        close(functional.jacobian(lambda a: a * 2, X), [[2.0, 0.0], [0.0, 2.0]])
        close(functional.hessian(cubes, X), [[6.0, 0.0], [0.0, 12.0]])
        close(functional.jvp(lambda a: a * 2, X, X), ([2.0, 4.0], [2.0, 4.0]))


def test_leaves_keep_no_gradient():
    x = X.clone().requires_grad_()
    w = torch.tensor([1.0, 5.0], requires_grad=True)
    functional.jacobian(lambda a: a * w, x)
    functional.hvp(lambda a: (a**2 * w).sum(), x, X)
    assert x.grad is None and w.grad is None


# -- no path ---------------------------------------------------------------------------------------------------------


def constant(a):
    return torch.ones(2)


def one(a):
    return torch.ones(())


def test_without_a_path_derivatives_are_zeros():
    close(functional.vjp(constant, X, torch.ones(2)), ([1.0, 1.0], [0.0, 0.0]))
    close(functional.jvp(constant, X, torch.ones(2)), ([1.0, 1.0], [0.0, 0.0]))
    close(functional.jacobian(constant, X), [[0.0, 0.0], [0.0, 0.0]])
    close(functional.hessian(one, X), [[0.0, 0.0], [0.0, 0.0]])
    close(functional.hvp(one, X, X), (1.0, [0.0, 0.0]))
    close(functional.vhp(one, X, X), (1.0, [0.0, 0.0]))
    close(functional.hessian(torch.sum, X), [[0.0, 0.0], [0.0, 0.0]])
    close(functional.jacobian(lambda a: a > 1, X), [[0.0, 0.0], [0.0, 0.0]])


CALLS = {
    "vjp": lambda f, x, out: functional.vjp(f, x, out, strict=True),
    "jvp": lambda f, x, out: functional.jvp(f, x, x, strict=True),
    "jacobian": lambda f, x, out: functional.jacobian(f, x, strict=True),
}
SECOND = {
    "hessian": lambda f, x: functional.hessian(f, x, strict=True),
    "hvp": lambda f, x: functional.hvp(f, x, x, strict=True),
    "vhp": lambda f, x: functional.vhp(f, x, x, strict=True),
}


@pytest.mark.parametrize("name", CALLS)
def test_strict_refuses_outputs_that_depend_on_nothing(name):
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
        CALLS[name](constant, X, torch.ones(2))


@pytest.mark.parametrize("name", SECOND)
def test_strict_refuses_outputs_that_depend_on_nothing_in_second_order(name):
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
        SECOND[name](one, X)


@pytest.mark.parametrize("name", CALLS)
def test_strict_refuses_an_unused_input(name):
    with pytest.raises(RuntimeError, match=r"independent of input 1\. This is not allowed in strict mode"):
        CALLS[name](lambda a, b: a * 2, (X, Y), X)
    outside = X.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="independent of input 0"):
        CALLS[name](lambda a: outside * 2, X, X)


@pytest.mark.parametrize("name", SECOND)
def test_strict_refuses_a_function_that_is_linear(name):
    with pytest.raises(RuntimeError, match="jacobian of the user-provided function with respect to input 0"):
        SECOND[name](torch.sum, X)
    with pytest.raises(RuntimeError, match="input 1"):
        SECOND[name](lambda a, b: (a**2).sum(), (X, Y))


def test_strict_and_create_graph_refuse_a_constant_jacobian():
    for call in (
        lambda: functional.jacobian(lambda a: a * 2, X, strict=True, create_graph=True),
        lambda: functional.jvp(lambda a: a * 2, X, X, strict=True, create_graph=True),
        lambda: functional.vjp(lambda a: a * 2, X, X, strict=True, create_graph=True),
    ):
        with pytest.raises(RuntimeError, match="jacobian of the user-provided function is independent of input 0"):
            call()


def test_strict_passes_what_depends_on_everything():
    close(functional.jacobian(lambda a: a, X, strict=True), [[1.0, 0.0], [0.0, 1.0]])
    close(functional.hessian(cubes, X, strict=True), [[6.0, 0.0], [0.0, 12.0]])
    close(functional.hvp(cubes, X, X, strict=True), (9.0, [6.0, 24.0]))


# -- create_graph ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
def test_results_are_on_the_tape_with_create_graph_only(create_graph, tracked):
    x = X.clone().requires_grad_(tracked)
    results = [
        *functional.vjp(lambda a: a**3, x, X, create_graph=create_graph),
        *functional.jvp(lambda a: a**3, x, X, create_graph=create_graph),
        functional.jacobian(lambda a: a**3, x, create_graph=create_graph),
        functional.jacobian(lambda a: a**3, x, create_graph=create_graph, vectorize=True),
        functional.hessian(lambda a: (a**4).sum(), x, create_graph=create_graph),
        functional.hessian(lambda a: (a**4).sum(), x, create_graph=create_graph, vectorize=True),
        *functional.hvp(cubes, x, X, create_graph=create_graph),
        *functional.vhp(cubes, x, X, create_graph=create_graph),
    ]
    assert [r.requires_grad for r in results] == [create_graph] * len(results)


@pytest.mark.parametrize(
    "of",
    [
        lambda x: functional.jvp(lambda a: a**3, x, X, create_graph=True)[1],
        lambda x: functional.vjp(lambda a: a**3, x, X, create_graph=True)[1],
        lambda x: functional.jacobian(lambda a: a**3, x, create_graph=True) @ X,
        lambda x: functional.jacobian(lambda a: a**3, x, create_graph=True, vectorize=True) @ X,
    ],
    ids=["jvp", "vjp", "jacobian", "batched jacobian"],
)
def test_results_can_be_differentiated(of):
    x = X.clone().requires_grad_()
    close(torch.autograd.grad(of(x).sum(), x), ([6.0, 24.0],))


@pytest.mark.parametrize("product", ["hvp", "vhp"])
def test_third_derivatives(product):
    x = X.clone().requires_grad_()
    _, p = getattr(functional, product)(lambda a: (a**4).sum(), x, X, create_graph=True)
    close(torch.autograd.grad(p.sum(), x), ([24.0, 96.0],))
    v = X.clone().requires_grad_()
    _, p = getattr(functional, product)(cubes, X, v, create_graph=True)
    close(torch.autograd.grad(p.sum(), v), ([6.0, 12.0],))


@differs("forward mode cannot be recorded: NotImplementedError")
def test_the_forward_strategy_can_be_recorded():
    x = X.clone().requires_grad_()
    j = functional.jacobian(lambda a: a**3, x, create_graph=True, vectorize=True, strategy="forward-mode")
    close(torch.autograd.grad((j @ X).sum(), x), ([6.0, 24.0],))
    h = functional.hessian(
        lambda a: (a**4).sum(), x, create_graph=True, vectorize=True, outer_jacobian_strategy="forward-mode"
    )
    close(torch.autograd.grad(h.sum(), x), ([24.0, 48.0],))


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: functional.jacobian(cubes, 3.0), TypeError, "The inputs given to jacobian must be either a Tensor"),
        (lambda: functional.jacobian(cubes, [X]), TypeError, "the given inputs has type <class 'list'>"),
        (lambda: functional.vjp(cubes, (X, 3.0)), TypeError, "the value at index 1 has type <class 'float'>"),
        (lambda: functional.jvp(lambda a: 3.0, X, X), TypeError, "outputs of the user-provided function given to jvp"),
        (lambda: functional.vjp(lambda a: (a, 3.0), X), TypeError, "the value at index 1 has type"),
        (lambda: functional.hessian(lambda a: a**2, X), RuntimeError, "hessian should contain a single element"),
        (lambda: functional.hvp(lambda a: a**2, X, X), RuntimeError, "hvp should contain a single element"),
        (lambda: functional.vhp(lambda a: (a.sum(),), X, X), RuntimeError, "vhp should return a single Tensor"),
        (lambda: functional.vjp(lambda a: a * 2, X), RuntimeError, "can only be None if the user-provided function"),
        (lambda: functional.jvp(lambda a: a * 2, X), RuntimeError, "can only be None if the input to"),
        (lambda: functional.hvp(cubes, X), RuntimeError, "The vector v can only be None"),
        (lambda: functional.vhp(cubes, X), RuntimeError, "The vector v can only be None"),
        (lambda: functional.vjp(lambda a: a * 2, X, Y), RuntimeError, "v has invalid size: should be torch.Size"),
        (lambda: functional.jvp(two, (X, Y), (X, X)), RuntimeError, "Entry 1 in v has invalid size"),
        (lambda: functional.jvp(two, (X, Y), (X,)), RuntimeError, "invalid length: should be 2 but got 1"),
        (lambda: functional.vjp(lambda a: a, X, (X, X)), RuntimeError, "The given v should contain a single Tensor"),
        (lambda: functional.vjp(lambda a: a, X, 3.0), TypeError, "The v given to vjp must be either a Tensor"),
        (lambda: functional.jacobian(cubes, torch.tensor([1, 2])), RuntimeError, "only Tensors of floating point"),
        (lambda: functional.jacobian(cubes, X, strategy="x"), AssertionError, "Expected strategy to be either"),
        (
            lambda: functional.jacobian(cubes, X, strategy="forward-mode"),
            NotImplementedError,
            "implemented for `vectorize=True`",
        ),
        (
            lambda: functional.jacobian(cubes, X, strict=True, vectorize=True),
            RuntimeError,
            "are not supported together",
        ),
        (lambda: functional.hessian(cubes, X, strict=True, vectorize=True), RuntimeError, "not supported together"),
        (lambda: functional.hessian(cubes, X, outer_jacobian_strategy="x"), AssertionError, "Expected strategy"),
    ],
)
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@differs("jacobian of an empty output fails in stack()")
def test_empty_outputs():
    assert functional.jacobian(lambda a: a * 2, torch.zeros(0)).shape == (0, 0)
    assert functional.jacobian(lambda a: a * 2, torch.zeros(0), vectorize=True).shape == (0, 0)


# -- functions that differentiate internally --------------------------------------------------------------------------

POINT = torch.tensor([0.3, 0.7])
ONES = torch.ones(2)
func = torch.func
INNER = {
    "grad": lambda a: func.grad(lambda c: (a.sin() * c * c).sum())(ONES) / 2,
    "grad by its own": lambda a: func.grad(lambda c: -c.cos().sum())(a),
    "vjp": lambda a: func.vjp(lambda c: a.sin() * c, ONES)[1](ONES)[0],
    "vjp, value": lambda a: func.vjp(lambda c: a.sin() * c, ONES)[0],
    "jacrev": lambda a: func.jacrev(lambda c: a.sin() * c)(ONES).sum(0),
    "hessian": lambda a: func.hessian(lambda c: (a.sin() * c * c).sum())(ONES).sum(0) / 2,
    "jvp": lambda a: func.jvp(lambda c: a.sin() * c, (ONES,), (ONES,))[1],
    "grad twice": lambda a: func.grad(lambda c: func.grad(lambda d: (a.sin() * d * c).sum())(c).sum())(ONES),
    "vmap of grad": lambda a: func.vmap(func.grad(lambda c, b: b.sin() * c))(ONES, a),
}
OUTER = {  # elementwise functions of sin(a)
    "jvp": (lambda f: functional.jvp(f, POINT, ONES)[1], POINT.cos()),
    "jvp, recorded": (lambda f: functional.jvp(f, POINT, ONES, create_graph=True)[1], POINT.cos()),
    "vjp": (lambda f: functional.vjp(f, POINT, ONES)[1], POINT.cos()),
    "hvp": (lambda f: functional.hvp(lambda a: f(a).sum(), POINT, ONES)[1], -POINT.sin()),
    "vhp": (lambda f: functional.vhp(lambda a: f(a).sum(), POINT, ONES)[1], -POINT.sin()),
    "jacobian": (lambda f: functional.jacobian(f, POINT, create_graph=True).sum(0), POINT.cos()),
}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_functions_that_differentiate_something(outer, inner):
    driver, want = OUTER[outer]
    assert torch.allclose(driver(INNER[inner]), want, atol=1e-6)


@pytest.mark.parametrize("inner", [name for name in INNER if name not in ("hessian", "jvp")])
def test_forward_ad_of_functions_that_differentiate_something(inner):
    from_level = torch.autograd.forward_ad
    with from_level.dual_level():
        tangent = from_level.unpack_dual(INNER[inner](from_level.make_dual(POINT, ONES))).tangent
    assert torch.allclose(tangent, POINT.cos(), atol=1e-6)
