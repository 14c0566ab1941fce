"""Compare functions with SciPy's functions of the same name: values, and derivatives with differences of SciPy's values."""

import numpy as np

import chainrule as cr


def differences(f, x, step=1e-5):
    """Return the Jacobian of a function of arrays, by four-point differences."""
    units = np.eye(x.size).reshape(-1, *x.shape) * step
    columns = [(8 * (f(x + e) - f(x - e)) - (f(x + 2 * e) - f(x - 2 * e))) / (12 * step) for e in units]
    return np.moveaxis(np.array(columns), 0, -1)


def check(ours, theirs, args, by=None, *, tolerance=1e-7, orders=2, compiled=True, batched=True):
    """Compare values and derivatives up to ``orders`` by the arguments ``by``, in both modes, vmapped and compiled."""
    value = ours(*args)
    np.testing.assert_allclose(value, theirs(*args), rtol=1e-9, atol=1e-11)
    assert isinstance(value, (np.ndarray, np.generic, float)), type(value)
    for i in range(len(args)) if by is None else by:
        x = args[i]

        def at(f, x, i=i):
            return f(*args[:i], x, *args[i + 1 :])

        J = cr.jacrev(lambda x: at(ours, x))(x)
        expected = differences(lambda x: np.asarray(at(theirs, x)), x).reshape(J.shape)
        np.testing.assert_allclose(J, expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(cr.jacfwd(lambda x: at(ours, x))(x), J, atol=1e-10)
        if orders > 1:
            H = cr.jacfwd(cr.jacrev(lambda x: at(ours, x)))(x)
            expected = differences(lambda x: cr.jacrev(lambda x: at(ours, x))(x), x).reshape(H.shape)
            np.testing.assert_allclose(H, expected, rtol=100 * tolerance, atol=100 * tolerance)
        if batched:
            batch = np.stack([x, x * 0.95])
            found = cr.vmap(lambda x: at(ours, x))(batch)
            np.testing.assert_allclose(found, [at(ours, x) for x in batch], rtol=1e-9, atol=1e-11)
        if compiled:
            gradient = cr.grad(lambda x: np.sum(np.sin(at(ours, x))))
            replayed = cr.compile(gradient)
            for scale in (1.0, 0.95):
                np.testing.assert_allclose(replayed(scale * x), gradient(scale * x), rtol=1e-9, atol=1e-11)
        tensor = cr.tensor(x, requires_grad=True)
        assert isinstance(at(ours, tensor), cr.Tensor)
