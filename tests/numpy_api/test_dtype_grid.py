"""NumPy's functions on Arrays of every dtype, with Python numbers and NumPy scalars: values, dtypes and errors are NumPy's."""

# ruff: noqa: SIM905 -- lists of names read better as words

import warnings

import numpy as np
import pytest

import chainrule as cr

NUMBERS = "2 2.5 True np.float32(1.5) np.float64(1.5) np.int8(2) np.uint8(3) 1j".split()
BINARY = "add divide power float_power floor_divide remainder maximum hypot logaddexp bitwise_and less ldexp".split()
CALLS = [
    *(f"np.{f}(x, {c})" for f in BINARY for c in NUMBERS),
    *(f"np.{f}({c}, x[0])" for f in BINARY for c in NUMBERS),
    *(f"x {sign} {c}" for sign in ("**", "*", "-", "//", "<") for c in NUMBERS),
    *(f"x.sum(dtype={d})" for d in ("np.float16", "complex", "int", "bool")),
    *(f"np.{f}(v, dtype={d})" for f in ("std", "nanvar", "nanmean") for d in ("np.float32", "float", "complex")),
    *(
        f"np.{f}(x, axis=0, initial={c}, where=x > 1)"
        for f in ("prod", "max", "min", "sum")
        for c in ("2.5", "np.int8(2)", "-1")
    ),
    *(f"np.{f}(v, {q})" for f in ("quantile", "nanpercentile") for q in ("0.3", "[0.1, 0.9]", "1", "np.float32(0.3)")),
    *(
        f"np.{f}(x, axis=1)"
        for f in "mean std median nanmedian cumsum cumprod ptp argmin nansum nanstd average".split()
    ),
    *"""np.average(v, weights=w, returned=True) | np.average(x, axis=0, weights=[1, 2, 3]) | np.average(v, weights=F[:5])
    np.choose([0, 1, 0, 1, 0], [v, 2.5]) | np.choose([0, 1, 0, 1, 0], [v, 2]) | np.dot(v, 2) | np.dot(2.5, v) | v.dot(2)
    np.kron(v, 2) | np.outer(v, 2.5) | np.inner(v, 2) | np.vdot(v, w) | np.vecdot(x, x) | np.cross(v[:3], [1, 2, 3])
    np.einsum("ij->i", x) | np.einsum("ij,ij", x, x) | np.einsum("ij,ij->i", x, I) | np.einsum("ij,j->ij", x, F[:4])
    np.select([x > 1, x < 1], [x, 2.5]) | np.select([v > 1], [v], default=np.float32(1)) | np.select([v > 1, v < 1], [1, 2], v)
    np.where(x > 1, x, 0.5) | np.where(x > 1, x, np.float32(1)) | np.where(x > 1, 1, x) | np.clip(x, 1, 2.5) | x.clip(1, F[:4])
    np.round(x, 1) | np.around(x, -1) | np.unwrap(v) | np.unwrap(v, period=2) | np.unwrap(v, period=np.int8(3))
    np.gradient(v) | np.gradient(v, np.float32(2)) | np.diff(v, prepend=0.5) | np.trapezoid(v, dx=2) | np.ediff1d(v)
    np.interp(1.5, [0, 1, 2], v[:3]) | np.polyfit(v, w, 1) | np.polyval(v, np.float16(2)) | np.polyval([1, 2], v) | np.vander(v)
    np.linspace(v[0], 5, 3) | np.linspace(0, v, 3) | np.logspace(0, v[:2], 3, base=np.float64(2)) | np.geomspace(1, v + 1, 3)
    np.geomspace(np.float32(1), v + 1, 3) | np.histogram(v, 3, density=True) | np.isclose(x, 2.0, atol=1) | np.isclose(v, I[0, :5] + 1)
    np.concatenate([v, [1.5]]) | np.concatenate([v, F[:2]]) | np.append(v, 1) | np.insert(v, 1, 2.5) | np.pad(v, 1, constant_values=2.5)
    np.fft.ifft(v) | np.fft.fft2(x, norm="ortho") | np.fft.irfft(v) | np.cov(x) | np.corrcoef(x) | np.convolve(v, [1, 0.5])
    np.linalg.matrix_norm(x) | np.linalg.norm(x, 1) | np.linalg.eigvals(x[:, :3] @ x[:, :3].T) | np.linalg.det(x[:, :3])
    np.linalg.solve(x[:, :3], [1, 2, 3]) | np.linalg.matrix_power(x[:, :3], 2) | np.linalg.multi_dot([x, x.T, x]) | x @ F[:4]
    np.full_like(x, 2.5) | x.astype(np.longdouble) | np.shares_memory(v[::2], v[1::2]) | np.piecewise(v, [v > 1], [2.5, 1])
    np.matvec(x, v[:4]) | np.vecmat(v[:3], x) | np.stack([v[0], 2.5]) | np.add.reduce(x) | np.logaddexp.accumulate(x)""".replace(
        "\n", "|"
    ).split("|"),
]
F = np.arange(1.0, 7.0, dtype=np.float32)
I = np.arange(12, dtype=np.int16).reshape(3, 4)[:, :4]
TOLERANCE = {"e": 2e-3, "f": 1e-5, "F": 1e-5}


def value(call, **arrays):
    """Return the parts of a result as plain arrays, or None for an error."""
    try:
        result = eval(call, {"np": np, "F": F, "I": I, **arrays})
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None
    return [np.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("dtype", "e f d g b h i q B H I Q ? F D".split())
def test_values_dtypes_and_refusals(dtype):
    random = np.random.default_rng(1)
    plain = {name: random.integers(0, 5, shape).astype(dtype) for name, shape in {"x": (3, 4), "v": 5, "w": 5}.items()}
    if np.dtype(dtype).kind in "fc":
        plain = {name: x + x.dtype.type(0.25) for name, x in plain.items()}
    differing = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for call in map(str.strip, CALLS):
            if not hasattr(np, call[3:9]) and call[3:9] in ("matvec", "vecmat"):
                continue
            if dtype in "FD" and call.startswith(("np.std(v, dtype", "np.nanvar(v, dtype")):
                continue  # a variance that ignores imaginary parts is an error here
            want, got = value(call, **plain), value(call, **{name: cr.Array(x) for name, x in plain.items()})
            if want is None or got is None:
                differing |= {} if want is got else {call: (want, got)}
                continue
            for x, y in zip(want, got, strict=True):
                close = {"rtol": TOLERANCE.get(x.dtype.char, 1e-12), "atol": TOLERANCE.get(x.dtype.char, 1e-12)}
                if x.dtype != y.dtype or x.shape != y.shape or not np.allclose(x, y, equal_nan=True, **close):
                    differing[call] = x, y
    assert not differing
