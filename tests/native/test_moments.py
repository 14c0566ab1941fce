"""Variances, norms, log-sum-exp and scans in C have the bits and warnings of the primitives' values in NumPy."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule._src import native
from chainrule._src.rules.primitive import TABLE

pytestmark = pytest.mark.skipif(not native.AVAILABLE, reason="the extension is not built")

REDUCTIONS = {
    "var": lambda t, axis, keep, k: cr.var(t, axis, correction=k, keepdim=keep),
    "std": lambda t, axis, keep, k: cr.std(t, axis, correction=k, keepdim=keep),
    "vector_norm": lambda t, axis, keep, k: cr.linalg.vector_norm(t, float(k), axis, keepdim=keep),
    "logsumexp": lambda t, axis, keep, k: cr.logsumexp(t, axis, keepdim=keep),
}
SCANS = {"cumsum": cr.cumsum, "cumprod": cr.cumprod}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, -3e38, 1e20, 1e-20]
SHAPES = st.sampled_from(
    [(1,), (3,), (0, 2), (2, 1, 3), (4, 5), (1, 1), (129, 3), (3, 129), (9_000,), (2100, 2), (2, 3, 4, 5)]
)


def array(shape, dtype, seed, special, transposed):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=shape[::-1] if transposed else shape) * 10.0 ** rng.integers(-3, 3)).astype(dtype)
    for value in special:
        if x.size:
            x.flat[rng.integers(x.size)] = value
    return x.T if transposed else x


def outcome(run, mode):
    with warnings.catch_warnings(record=True) as caught, np.errstate(all=mode):
        warnings.simplefilter("always")
        try:
            y = run()
        except FloatingPointError as error:
            return str(error)
    y = np.asarray(y.detach().numpy() if isinstance(y, cr.Tensor) else y)
    return (
        y.shape,
        y.dtype,
        np.where(np.isnan(y), np.nan, y).astype(y.dtype).tobytes(),
        {str(w.message) for w in caught},
    )


@settings(max_examples=300, deadline=None)
@given(
    name=st.sampled_from([*REDUCTIONS, *SCANS]),
    shape=SHAPES,
    dtype=st.sampled_from([np.float32, np.float64]),
    axes=st.integers(0, 15),
    keep=st.booleans(),
    correction=st.sampled_from([0, 1, 2, 1.5, 3]),
    special=st.lists(st.sampled_from(SPECIAL), max_size=2),
    seed=st.integers(0, 1000),
    transposed=st.booleans(),
    mode=st.sampled_from(["ignore", "warn", "raise"]),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_are_those_of_numpy(name, shape, dtype, axes, keep, correction, special, seed, transposed, mode):
    x = array(shape, dtype, seed, special, transposed)
    if name in SCANS:
        axis = axes % x.ndim - x.ndim
        found = outcome(lambda: SCANS[name](cr.from_numpy(x), axis), mode)
        assert found == outcome(lambda: TABLE[name].value(x, axis=axis), mode)
        return
    axis = tuple(k - x.ndim for k in range(x.ndim) if axes >> k & 1) or tuple(range(-x.ndim, 0))
    params = {"axis": axis, "keepdims": keep}
    if name in ("var", "std"):
        params["correction"] = correction
    elif name == "vector_norm":
        params["ord"] = float(correction)
    found = outcome(lambda: REDUCTIONS[name](cr.from_numpy(x), axis, keep, correction), mode)
    expected = outcome(lambda: TABLE[name].value(x, **params), mode)
    assert found == expected


@pytest.mark.parametrize("name", [*REDUCTIONS, *SCANS])
def test_small_arrays_call_no_python(name):
    """The first call caches the operation; later ones compute their values in C."""
    t = cr.from_numpy(np.array([1.0, 2.0, 4.0], np.float32))
    call = SCANS[name] if name in SCANS else lambda t, axis: REDUCTIONS[name](t, axis, False, 2)
    call(t, 0)
    before = TABLE[name].c_op.value
    TABLE[name].c_op.value = None
    try:
        call(t, 0)
    finally:
        TABLE[name].c_op.value = before
