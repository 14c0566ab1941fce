"""Structured Jacobians held against dense ones, which batched VJPs compute without knowing of any structure."""

import numpy as np

import chainrule as cr


def flattened(y):
    """The real numbers of all results, one after the other."""
    found = []
    for part in y if isinstance(y, (tuple, list)) else [y]:
        part = cr.as_tensor(part)
        for real in (part.real, part.imag) if part.is_complex() else (part,):
            found.append(real.reshape(-1))
    return cr.cat(found)


def matrices(blocks, xs):
    """The blocks of a Jacobian of one vector, as matrices."""
    return [np.asarray(block).reshape(block.shape[0], np.size(x)) for block, x in zip(blocks, xs, strict=True)]


def dense(f, xs):
    """One matrix for each of the inputs, by batched VJPs."""
    return matrices(cr.func.jacrev(lambda *args: flattened(f(*args)), tuple(range(len(xs))))(*map(cr.tensor, xs)), xs)


def structured(f, xs):
    """For each of the inputs a matrix, and where it has entries."""
    blocks = cr.jacobian(
        lambda *args: flattened(f(*args)), tuple(map(cr.tensor, xs)), layout="csr", strategy="forward terms"
    )
    return [(block.toarray(), pattern_of(block)) for block in blocks]


def pattern_of(block):
    """Where a sparse matrix has entries."""
    pattern = block.copy()
    pattern.data = np.ones(pattern.nnz, bool)
    return pattern.toarray()


def assert_agree(f, xs, others=(), tolerance=1e-12, least=0.0):
    """The structured Jacobian of f has the dense one's entries, and there is none that it has not; nor at ``others``."""
    expected = dense(f, xs)
    found = structured(f, xs)
    for k, (want, (got, pattern)) in enumerate(zip(expected, found, strict=True)):
        assert got.shape == want.shape, (k, got.shape, want.shape)
        missing = (want != 0) & ~pattern
        assert not missing.any(), f"input {k} lacks {np.argwhere(missing)[:5].tolist()} of {pattern.sum()} entries"
        scale = np.abs(want[np.isfinite(want)]).max(initial=least)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale, err_msg=f"input {k}")
    for point in others:
        for k, (want, (_, pattern)) in enumerate(zip(dense(f, point), found, strict=True)):
            assert not ((want != 0) & ~pattern).any(), f"input {k} lacks an entry that it has at another point"
    return found
