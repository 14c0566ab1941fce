"""Compare structured Jacobians with dense ones, computed by batched VJPs without structure."""

import numpy as np

import chainrule as cr


def flattened(y):
    """Return the real numbers of all results, concatenated."""
    found = []
    for part in y if isinstance(y, (tuple, list)) else [y]:
        part = cr.as_tensor(part)
        for real in (part.real, part.imag) if part.is_complex() else (part,):
            found.append(real.reshape(-1))
    return cr.cat(found)


def matrices(blocks, xs):
    """Return the blocks of a Jacobian of one vector, as matrices."""
    return [np.asarray(block).reshape(block.shape[0], np.size(x)) for block, x in zip(blocks, xs, strict=True)]


def dense(f, xs):
    """Return a matrix for each of the inputs, by batched VJPs."""
    return matrices(cr.func.jacrev(lambda *args: flattened(f(*args)), tuple(range(len(xs))))(*map(cr.tensor, xs)), xs)


def structured(f, xs):
    """Return for each of the inputs a matrix, and its pattern."""
    blocks = cr.jacobian(
        lambda *args: flattened(f(*args)), tuple(map(cr.tensor, xs)), layout="csr", strategy="forward terms"
    )
    return [(block.toarray(), pattern_of(block)) for block in blocks]


def pattern_of(block):
    """Return the pattern of a sparse matrix."""
    pattern = block.copy()
    pattern.data = np.ones(pattern.nnz, bool)
    return pattern.toarray()


def assert_agree(f, xs, others=(), tolerance=1e-12, least=0.0):
    """Check that the structured Jacobian of f equals the dense one, with no additional entries; also at ``others``."""
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
