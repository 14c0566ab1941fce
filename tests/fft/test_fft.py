"""torch.fft: values, dtypes and errors of all functions, and gradients compared with the adjoint of the linear map."""

from __future__ import annotations

import numpy as np
import pytest

from behaviour import differs, torch

NORMS = [None, "backward", "ortho", "forward"]
FROM_REAL = ("rfft", "rfft2", "rfftn", "ihfft", "ihfft2", "ihfftn")
OTHER = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def numbers(shape, complex=False, dtype=None, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    x = x + 1j * rng.normal(size=shape) if complex else x
    return x if dtype is None else x.astype(dtype)


def array(tensor):
    return tensor.detach().resolve_conj().numpy()


def _hfftn(x, s=None, axes=None, norm=None):
    return np.fft.irfftn(np.conj(x), s, axes, OTHER[norm])


def _ihfftn(x, s=None, axes=None, norm=None):
    return np.conj(np.fft.rfftn(x, s, axes, OTHER[norm]))


REFERENCE = {
    **{name: getattr(np.fft, name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{name: getattr(np.fft, name) for name in ("fftn", "ifftn", "rfftn", "irfftn")},
    **{name: getattr(np.fft, name) for name in ("fft2", "ifft2", "rfft2", "irfft2")},
    "hfftn": _hfftn,
    "ihfftn": _ihfftn,
    "hfft2": lambda x, s=None, axes=(-2, -1), norm=None: _hfftn(x, s, axes, norm),
    "ihfft2": lambda x, s=None, axes=(-2, -1), norm=None: _ihfftn(x, s, axes, norm),
}
ONE = [name for name in REFERENCE if name.endswith("fft")]
SEVERAL = [name for name in REFERENCE if not name.endswith("fft")]
ONE_FORMS = [
    ((4,), {}),
    ((5,), {}),
    ((2, 6), {"dim": 0}),
    ((2, 3, 4), {"dim": -2}),
    ((3, 5), {"n": 3}),
    ((3, 5), {"n": 8, "dim": 1}),
    ((3, 5), {"n": 7, "dim": 0}),
    ((4,), {"n": 1}),
    ((2, 1), {"n": 1}),
    ((1, 3), {"n": 2, "dim": 0}),
]
SEVERAL_FORMS = [
    ((3, 4), {}),
    ((2, 3, 5), {"dim": (0, 2)}),
    ((2, 3, 4), {"dim": (2, 0, 1)}),
    ((3, 4), {"s": (4, 3), "dim": (-2, -1)}),
    ((2, 3, 4), {"s": (5, 6), "dim": (1, -3)}),
    ((3, 4), {"s": (2,), "dim": (0,)}),
    ((1, 2), {}),
]


def operand(name, shape):
    return numbers(shape, name not in FROM_REAL)


def renamed(arguments):
    several = isinstance(arguments.get("dim"), tuple)
    return {("axes" if several else "axis") if key == "dim" else key: value for key, value in arguments.items()}


CASES = [(name, *form) for name in ONE for form in ONE_FORMS]
CASES += [(name, *form) for name in SEVERAL for form in SEVERAL_FORMS]
IDS = [f"{name}-{shape}-{arguments}" for name, shape, arguments in CASES]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name, shape, arguments", CASES, ids=IDS)
def test_values(name, shape, arguments, norm):
    x = operand(name, shape)
    got = array(getattr(torch.fft, name)(torch.tensor(x), **arguments, norm=norm))
    expected = REFERENCE[name](x, **renamed(arguments), norm=norm)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, 1e-12, 1e-12)


def adjoint(function, x, g):
    """Return ∂⟨g, f(x)⟩/∂Re x + i·∂⟨g, f(x)⟩/∂Im x for a linear f, from its values at a basis."""
    out = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
            e = np.zeros_like(x)
            e[index] = unit
            out[index] += unit * np.sum(np.conj(g) * array(function(torch.tensor(e)))).real
    return out


def gradient(function, x, g):
    leaf = torch.tensor(x, requires_grad=True)
    (found,) = torch.autograd.grad(function(leaf), leaf, torch.tensor(g))
    return array(found)


@pytest.mark.parametrize("name, shape, arguments", CASES, ids=IDS)
def test_gradients(name, shape, arguments):
    for norm in NORMS[1:]:
        for x in {True: [operand(name, shape)], False: [numbers(shape), numbers(shape, True)]}[name in FROM_REAL]:

            def function(t, norm=norm):
                return getattr(torch.fft, name)(t, **arguments, norm=norm)

            out = array(function(torch.tensor(x)))
            g = numbers(out.shape, out.dtype.kind == "c", seed=1)
            got = gradient(function, x, g)
            assert (got.shape, got.dtype) == (x.shape, x.dtype)
            np.testing.assert_allclose(got, adjoint(function, x, g), 1e-12, 1e-12)


@pytest.mark.parametrize("name", REFERENCE)
def test_gradcheck(name):
    shape, arguments = ((2, 5), {"n": 4}) if name in ONE else ((2, 3), {"s": (3, 2)})
    x = torch.tensor(operand(name, shape), requires_grad=True)

    def function(t):
        y = getattr(torch.fft, name)(t, **arguments, norm="ortho")
        return y * y.conj()

    assert torch.autograd.gradcheck(function, (x,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, (x,))


def test_power_spectrum_has_the_gradient_of_parseval():
    """Σ|fft(x)|² = n·Σ|x|², so its gradient is 2n·x, from the whole spectrum or a weighted half."""
    for n in (6, 7):
        x = torch.tensor(numbers((n,)), requires_grad=True)
        weights = torch.tensor([1.0] + [2.0] * ((n - 1) // 2) + [1.0] * (1 - n % 2), dtype=torch.float64)
        for loss in (
            lambda x=x: (torch.fft.fft(x).abs() ** 2).sum(),
            lambda x=x, weights=weights: (weights * torch.fft.rfft(x).abs() ** 2).sum(),
        ):
            (g,) = torch.autograd.grad(loss(), x)
            np.testing.assert_allclose(array(g), 2 * n * array(x), 1e-12)


def test_parts_that_do_not_count_have_no_gradient():
    z = torch.tensor(numbers((4,), True), requires_grad=True)
    (g,) = torch.autograd.grad(torch.fft.irfft(z, n=6), z, torch.tensor(numbers((6,), seed=2)))
    assert g[0].imag == 0 and g[3].imag == 0 and g[1].imag != 0
    (g,) = torch.autograd.grad(torch.fft.irfft(z, n=7), z, torch.tensor(numbers((7,), seed=2)))
    assert g[0].imag == 0 and g[3].imag != 0
    (g,) = torch.autograd.grad(torch.fft.irfft(z, n=3), z, torch.tensor(numbers((3,), seed=2)))
    assert g[2] == 0 and g[3] == 0  # cut off


def test_gradient_of_real_numbers_is_real():
    for name in ("fft", "ifft", "fftn", "ifft2", "rfft", "rfftn", "irfft", "hfft", "ihfft"):
        x = torch.tensor(numbers((3, 4)), requires_grad=True)
        getattr(torch.fft, name)(x).abs().sum().backward()
        assert x.grad.dtype == torch.float64 and x.grad.shape == x.shape


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize("given", ["float32", "float64", "int64", "int32", "uint8", "bool", "complex64", "complex128"])
def test_dtypes(name, given):
    if name in FROM_REAL and given.startswith("complex"):
        return
    x = torch.ones((3, 4), dtype=getattr(torch, given))
    wide = given in ("float64", "complex128")
    to_real = name.startswith(("irfft", "hfft"))
    expected = (torch.float64 if wide else torch.float32) if to_real else torch.complex128 if wide else torch.complex64
    assert getattr(torch.fft, name)(x).dtype == expected


@pytest.mark.parametrize("name, shape, arguments", CASES[::5], ids=IDS[::5])
def test_single_precision(name, shape, arguments):
    x = operand(name, shape)
    x = x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)
    function = getattr(torch.fft, name)
    leaf = torch.tensor(x, requires_grad=True)
    y = function(leaf, **arguments)
    expected = REFERENCE[name](x.astype(np.complex128 if x.dtype.kind == "c" else float), **renamed(arguments))
    np.testing.assert_allclose(array(y), expected, 1e-4, 1e-5)
    (g,) = torch.autograd.grad(y.abs().sum(), leaf)
    assert g.dtype == leaf.dtype


def test_arguments_by_position():
    x = torch.tensor(numbers((3, 4)))
    assert torch.equal(torch.fft.fft(x, 5, 0, "ortho"), torch.fft.fft(x, n=5, dim=0, norm="ortho"))
    assert torch.equal(torch.fft.fft2(x, (2, 3), (1, 0), "forward"), torch.fft.fftn(x, (2, 3), (1, 0), "forward"))
    assert torch.equal(torch.fft.fft(x, axis=0), torch.fft.fft(x, dim=0))
    assert torch.equal(torch.fft.fftn(x, s=3), torch.fft.fft(x, n=3))
    assert torch.equal(torch.fft.fftn(x, s=3, dim=0), torch.fft.fft(x, 3, 0))
    assert torch.equal(torch.fft.fftn(x, s=(-1, 3)), torch.fft.fftn(x, s=(3, 3)))
    assert torch.equal(torch.fft.irfftn(x, s=(-1, -1)), torch.fft.irfftn(x))
    assert torch.equal(torch.fft.fft2(x, dim=1), torch.fft.fft(x, dim=1))


def test_no_axes():
    x = torch.tensor(2.0, requires_grad=True)
    y = torch.fft.fftn(x)
    assert y.dtype == torch.complex64 and y.shape == ()
    y.abs().backward()
    assert x.grad == 1
    assert torch.fft.ifftn(torch.ones(2, 2, dtype=torch.complex64), dim=()).dtype == torch.complex64
    with pytest.raises(RuntimeError, match="rfftn must transform at least one axis"):
        torch.fft.rfftn(x)


def test_transposed_memory():
    x = torch.tensor(numbers((3, 4)), requires_grad=True)
    y = torch.fft.rfft(x.T)
    np.testing.assert_allclose(array(y), np.fft.rfft(array(x).T), 1e-12)
    (g,) = torch.autograd.grad(y, x, torch.ones_like(y))
    assert g.shape == (3, 4)


def test_vmap_and_jvp():
    x, t = torch.tensor(numbers((3, 2, 4))), torch.tensor(numbers((3, 2, 4), seed=5))
    for function in (
        lambda a: torch.fft.fft(a, dim=0),
        lambda a: torch.fft.rfftn(a),
        lambda a: torch.fft.irfft(a, n=5),
        lambda a: torch.fft.hfft(a, n=5, dim=-1),
        lambda a: torch.fft.fftn(a, s=(3, 3)),
    ):
        each = [function(row) for row in x]
        np.testing.assert_allclose(array(torch.func.vmap(function)(x)), array(torch.stack(each)), 1e-12, 1e-12)
        y, moved = torch.func.jvp(function, (x[0],), (t[0],))
        np.testing.assert_allclose(array(y), array(function(x[0])), 1e-12, 1e-12)
        np.testing.assert_allclose(array(moved), array(function(t[0])), 1e-12, 1e-12)

        def loss(a, function=function):
            return (function(a).abs() ** 2).sum()

        per_example = torch.func.vmap(torch.func.grad(loss))(x)
        np.testing.assert_allclose(array(per_example[1]), array(torch.func.grad(loss)(x[1])), 1e-12, 1e-12)


def test_hessian_of_a_filtered_loss():
    x = torch.tensor(numbers((5,)))
    keep = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)

    def loss(a):
        return (torch.fft.irfft(torch.fft.rfft(a) * keep, n=5) ** 4).sum()

    projection = np.real(np.fft.ifft(np.fft.fft(np.eye(5), axis=0) * np.array([1, 1, 0, 0, 1])[:, None], axis=0))
    expected = projection.T @ np.diag(12 * (projection @ array(x)) ** 2) @ projection
    np.testing.assert_allclose(array(torch.func.hessian(loss)(x)), expected, 1e-10, 1e-10)


def test_names_of_nodes():
    x = torch.tensor(numbers((4,)), requires_grad=True)
    z = torch.tensor(numbers((4,), True), requires_grad=True)
    assert torch.fft.fft(x).grad_fn.name() == "FftR2CBackward0"
    assert torch.fft.rfft(x).grad_fn.name() == "FftR2CBackward0"
    assert torch.fft.fft(z).grad_fn.name() == "FftC2CBackward0"
    assert torch.fft.irfft(z).grad_fn.name() == "FftC2RBackward0"
    assert torch.fft.fft(z, n=7).grad_fn.next_functions[0][0].name() == "ConstantPadNdBackward0"
    assert torch.fft.fft(z, n=2).grad_fn.next_functions[0][0].name() == "SliceBackward0"
    assert torch.fft.fftshift(x).grad_fn.name() == "RollBackward0"


def test_out():
    x = torch.tensor(numbers((4,)))
    out = torch.empty(0, dtype=torch.complex128)
    assert torch.fft.fft(x, out=out) is out
    assert torch.equal(out, torch.fft.fft(x))
    with pytest.raises(RuntimeError, match="fft expects a complex output tensor, but got Float"):
        torch.fft.fft(x, out=torch.empty(4))
    with pytest.raises(RuntimeError, match="irfftn expects a floating point output tensor, but got ComplexFloat"):
        torch.fft.irfft2(torch.ones(2, 2), out=torch.empty(2, 2, dtype=torch.complex64))
    with pytest.raises(RuntimeError, match=r"out=\.\.\. arguments don't support"):
        torch.fft.fft(x.clone().requires_grad_(), out=out)


def raises(kind, words, call):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)


def test_errors():
    F, real, complex = torch.fft, torch.ones(3, 4), torch.ones(3, 4, dtype=torch.complex64)
    for call in (lambda: F.rfft(complex), lambda: F.ihfft(complex)):
        raises(RuntimeError, "expects a real input tensor, but got ComplexFloat", call)
    for call in (lambda: F.rfftn(complex), lambda: F.rfft2(complex)):
        raises(RuntimeError, "rfftn expects a real-valued input tensor, but got ComplexFloat", call)
    raises(RuntimeError, "Only supports floating-point dtypes, but found: ComplexFloat", lambda: F.ihfft2(complex))
    raises(RuntimeError, "Unsupported dtype Half", lambda: F.fft(real.half()))
    for call in (lambda: F.fft(real, norm="unitary"), lambda: F.irfftn(real, norm="unitary")):
        raises(RuntimeError, 'Invalid normalization mode: "unitary"', call)
    raises(TypeError, "argument 'norm' must be str, not int", lambda: F.fft(real, norm=1))
    for call in (lambda: F.fft(real, n=0), lambda: F.fft(torch.ones(2, 0)), lambda: F.irfft(torch.ones(3, 1))):
        raises(RuntimeError, "Invalid number of data points (0) specified", call)
    raises(RuntimeError, "Invalid number of data points (-1) specified", lambda: F.hfft(real, n=-1))
    raises(RuntimeError, "Invalid number of data points (-2) specified", lambda: F.fftn(real, s=(-2, 3)))
    raises(RuntimeError, "Invalid number of data points (-2) specified", lambda: F.irfft(torch.ones(3, 0)))
    raises(IndexError, "Dimension specified as -1 but tensor has no dimensions", lambda: F.fft(torch.tensor(1.0)))
    raises(IndexError, "expected to be in range of [-2, 1], but got 2", lambda: F.fft(real, dim=2))
    raises(IndexError, "expected to be in range of [-1, 0], but got -2", lambda: F.fft2(torch.ones(3)))
    raises(RuntimeError, "FFT dims must be unique", lambda: F.fftn(real, dim=(0, -2)))
    message = "dim and shape arguments must have the same length"
    raises(RuntimeError, message, lambda: F.fft2(real, s=(2,)))
    raises(RuntimeError, message, lambda: F.fftn(real, s=(3, 2), dim=(0,)))
    message = "Got shape with 3 values but input tensor only has 2 dimensions."
    raises(RuntimeError, message, lambda: F.fftn(real, s=(3, 2, 4)))
    for name in ("rfftn", "irfftn", "hfftn", "ihfftn"):
        raises(
            RuntimeError, f"{name} must transform at least one axis", lambda name=name: getattr(F, name)(real, dim=())
        )
    raises(TypeError, "fft_fft(): argument 'input' (position 1) must be Tensor, not list", lambda: F.fft([1.0, 2.0]))
    raises(TypeError, "argument 'n' must be int, not float", lambda: F.fft(real, n=2.5))
    raises(TypeError, "argument 'n' must be int, not bool", lambda: F.fft(real, n=True))
    raises(TypeError, "argument 'dim' must be int, not tuple", lambda: F.fft(real, dim=(0,)))
    raises(TypeError, "argument 's' must be tuple of ints, not tuple", lambda: F.fftn(real, s=(2.5,)))
    raises(TypeError, "argument 'dim' must be tuple of ints, not NoneType", lambda: F.fft2(real, dim=None))


def test_frequencies():
    F = torch.fft
    for n in range(0, 8):
        for d in (1.0, 0.25, 3):
            expected = np.fft.fftfreq(n, d) if n else np.zeros(0)
            np.testing.assert_allclose(F.fftfreq(n, d, dtype=torch.float64).numpy(), expected, 1e-15)
            if n:
                np.testing.assert_allclose(
                    F.rfftfreq(n, d=d, dtype=torch.float64).numpy(), np.fft.rfftfreq(n, d), 1e-15
                )
    assert F.fftfreq(4).dtype == torch.float32 and F.rfftfreq(0).shape == (1,)
    assert F.fftfreq(4, requires_grad=True).requires_grad and not F.rfftfreq(4).requires_grad
    out = torch.empty(4, dtype=torch.float64)
    assert F.fftfreq(4, out=out) is out and out.tolist() == [0.0, 0.25, -0.5, -0.25]
    assert F.fftfreq(3, 0).tolist()[1:] == [float("inf"), float("-inf")]
    raises(RuntimeError, "fftfreq requires a floating point or complex dtype", lambda: F.fftfreq(4, dtype=torch.int64))
    raises(RuntimeError, "Trying to create tensor with negative dimension -1", lambda: F.fftfreq(-1))
    raises(TypeError, "must be int, not float", lambda: F.rfftfreq(2.5))
    raises(TypeError, "argument 'd' must be float, not str", lambda: F.fftfreq(4, d="a"))


@pytest.mark.parametrize("shape", [(4,), (5,), (3, 4), (2, 0), (1, 3)])
def test_shifts(shape):
    x = numbers(shape)
    for dim in (None, 0, -1, (0,), tuple(range(len(shape)))):
        for name in ("fftshift", "ifftshift"):
            got = getattr(torch.fft, name)(torch.tensor(x), dim)
            np.testing.assert_array_equal(array(got), getattr(np.fft, name)(x, dim))
        there = torch.fft.fftshift(torch.tensor(x), dim=dim)
        np.testing.assert_array_equal(array(torch.fft.ifftshift(there, dim=dim)), x)
    leaf = torch.tensor(x, requires_grad=True)
    (g,) = torch.autograd.grad(torch.fft.fftshift(leaf), leaf, torch.tensor(x))
    np.testing.assert_array_equal(array(g), np.fft.ifftshift(x))
    assert torch.fft.fftshift(torch.arange(3)).tolist() == [2, 0, 1]


def test_shifts_need_an_axis():
    raises(RuntimeError, "`shifts` required", lambda: torch.fft.fftshift(torch.tensor(1.0)))
    raises(
        IndexError, "expected to be in range of [-1, 0], but got 5", lambda: torch.fft.ifftshift(torch.ones(3), dim=5)
    )


@differs("its CPU library refuses a batch of no transforms")
def test_empty_batches():
    x = torch.zeros((0, 4), requires_grad=True)
    assert torch.fft.fft(x).shape == (0, 4)
    y = torch.fft.rfft(x)
    assert y.shape == (0, 3)
    y.abs().sum().backward()
    assert x.grad.shape == (0, 4)


def test_spectral_derivative():
    n = 32
    points = 2 * np.pi * np.arange(n) / n
    k = torch.fft.rfftfreq(n, 1 / n, dtype=torch.float64)
    u = torch.tensor(np.exp(np.sin(points)), requires_grad=True)
    du = torch.fft.irfft(1j * k * torch.fft.rfft(u), n=n)
    np.testing.assert_allclose(array(du), np.cos(points) * np.exp(np.sin(points)), atol=1e-10)
    g = torch.tensor(np.cos(3 * points))
    (back,) = torch.autograd.grad(du, u, g)  # differentiation is antisymmetric
    np.testing.assert_allclose(array(back), 3 * np.sin(3 * points), atol=1e-10)
