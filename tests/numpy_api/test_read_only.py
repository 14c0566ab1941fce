"""Arrays that are read-only in NumPy, such as certain views, are read-only in each transformation."""

import numpy as np
import pytest

import chainrule as cr

X = np.arange(9.0).reshape(3, 3)

READ_ONLY = {
    "broadcast_to": lambda a: np.broadcast_to(a, (2, 3, 3)),
    "a part of broadcast_to": lambda a: np.broadcast_to(a, (2, 3, 3))[0],
    "broadcast_to of its shape": lambda a: np.broadcast_to(a, a.shape),
    "transposed": lambda a: np.broadcast_to(a, a.shape).T,
    "reshaped": lambda a: np.broadcast_to(a, a.shape).reshape(-1),
    "view": lambda a: np.broadcast_to(a, a.shape).view(),
    "diagonal": np.diagonal,
    "windows": lambda a: np.lib.stride_tricks.sliding_window_view(a, (2, 2)),
    "imaginary parts of real numbers": np.imag,
    "the attribute imag": lambda a: a.imag,
    "of integers": lambda a: (a > 2).astype(int).imag,
    "a part of them": lambda a: a.imag[0],
}
WRITABLE = {
    "expand_dims": lambda a: np.expand_dims(a, 0),
    "ravel": np.ravel,
    "a copy of a diagonal": lambda a: np.diagonal(a).copy(),
    "what is computed": lambda a: np.diagonal(a) * 1,
    "a copy of imaginary parts": lambda a: a.imag.copy(),
    "imaginary parts of complex numbers": lambda a: (a + 2j).imag,
    "einsum": lambda a: np.einsum("ii->i", a),
}
WRITES = {
    "element": lambda y: y.__setitem__(0, 5.0),
    "all": lambda y: y.__setitem__(..., 5.0),
    "in place": lambda y: y.__isub__(1),
}
RUNS = {
    "NumPy": lambda f: f(X),
    "Array": lambda f: f(cr.Array(X)),
    "vjp": lambda f: cr.vjp(f, X)[0],
    "jvp": lambda f: cr.jvp(f, (X,), (X,))[0],
    "vmap": lambda f: cr.vmap(f)(np.stack([X, X]))[0],
    "compile": lambda f: [g(X) for g in [cr.compile(f)] for _ in range(2)][1],
}


def writing(view, write):
    def function(a):
        a = a + 0
        WRITES[write](view(a))
        return a * 1

    return function


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.filterwarnings("ignore:compile")
def test_what_is_read_only(run, write):
    for view in READ_ONLY.values():
        with pytest.raises((ValueError, RuntimeError), match="read-only"):
            RUNS[run](writing(view, write))
    for view in WRITABLE.values():
        function = writing(view, write)
        np.testing.assert_array_equal(RUNS[run](function), function(X))


@pytest.mark.filterwarnings("ignore:compile")
def test_a_write_that_fails_and_is_handled():
    def function(a):
        try:
            parts = np.imag(a)
            parts -= 1
        except ValueError:
            return a
        return None

    for a in (X, np.array(3, np.int32)):
        compiled = cr.compile(function)
        for _ in range(3):
            np.testing.assert_array_equal(compiled(a), a)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("write", ["np.put(d, [0], [1.0])", "np.copyto(d, 1.0)", "d[0] = 1.0", "d += 1", "d.fill(1)"])
def test_the_error_is_numpys(run, write):
    def function(a):
        a = a * 1
        exec(write, {"np": np, "d": np.diagonal(a)})
        return a

    with pytest.raises(ValueError, match="read-only"):
        RUNS[run](function)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.filterwarnings("ignore:compile")
def test_what_numpy_writes_through_them(run):
    def function(a):
        a = a + 0
        d = np.diagonal(a)
        np.add.at(d, [0, 0, 2], 3.0)
        np.copyto(d, d)
        with pytest.raises(ValueError, match="read-only"):
            d[0] = 1.0
        return a * d

    np.testing.assert_array_equal(RUNS[run](function), function(X))
    d = np.add(np.diagonal(X), [6, 0, 3])
    np.testing.assert_array_equal(
        cr.grad(lambda a: function(a).sum())(X), np.tile(d, (3, 1)) + np.diag(np.add(X.sum(0), [6, 0, 3]))
    )
