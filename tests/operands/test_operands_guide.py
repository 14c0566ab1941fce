"""All lines of the table in docs/guide/operands.md: supported expressions work, the others name the alternative."""

import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import chainrule as cr
from tests.operands.checking import differences

scipy = pytest.importorskip("scipy")
pd = pytest.importorskip("pandas")
from scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, spatial, special, stats  # noqa: E402
from scipy.sparse import linalg as sparse_linalg  # noqa: E402
from scipy.spatial import distance  # noqa: E402, F401

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "operands.md"
LINES = [
    tuple(cell.strip().strip("`") for cell in line.strip("|").split(" | "))
    for line in PAGE.read_text().partition("|---|---|\n")[2].strip().splitlines()
]

rng = np.random.default_rng(0)
U = np.array([1.3, 0.7, 1.9, 1.1])
M = np.eye(4) * 3 + rng.random((4, 4)) / 4
M = (M + M.T) / 2
CONSTANTS = {
    "A": sparse.csc_array(np.where(M > 0.15, M, 0)),
    "M": M,
    "S": sparse.csr_array(M @ M),
    "x": np.array([0.5, 1.0, 1.5, 2.0]),
    "t": np.array([0.6, 0.9, 1.2, 1.7]),
    "knots": np.arange(7.0) / 3,
    "df": pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [2.0, 1, 0, 5]}),
    "s": pd.Series([1.0, 2, 3, 4]),
    "np": np,
    "chainrule": cr,
    "cr": cr.scipy,
    "implicit": cr.implicit,
    "fft": fft,
    "integrate": integrate,
    "interpolate": interpolate,
    "linalg": linalg,
    "ndimage": ndimage,
    "optimize": optimize,
    "signal": signal,
    "sparse": SimpleNamespace(linalg=sparse_linalg, csr_matrix=sparse.csr_matrix, coo_matrix=sparse.coo_matrix),
    "spatial": spatial,
    "special": special,
    "stats": stats,
}


def as_function(code):
    """Return the expression as a function of u, with one number as its value."""
    program = eval(f"lambda u: {code}", dict(CONSTANTS))

    def weighted(u):
        found = program(u)
        found = found.to_numpy() if hasattr(found, "to_numpy") else found
        return np.sum(found * np.cos(np.arange(np.size(found))).reshape(np.shape(found)))

    return weighted


@pytest.mark.parametrize(("theirs", "ours"), LINES, ids=[line[0] for line in LINES])
def test_line(theirs, ours):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = differences(as_function(theirs), U, 1e-4) if ours != "–" else None
        if ours == "unchanged":
            np.testing.assert_allclose(cr.grad(as_function(theirs))(U), expected, rtol=1e-5, atol=1e-7)
            return
        with pytest.raises(Exception) as error:  # MINPACK raises its own exception
            cr.grad(as_function(theirs))(U)
        if ours == "–":
            assert "plain arrays" in str(error.value)
            return
        np.testing.assert_allclose(as_function(ours)(U), as_function(theirs)(U), rtol=1e-6)
        np.testing.assert_allclose(cr.grad(as_function(ours))(U), expected, rtol=2e-4, atol=1e-5)
    name = re.search(r"(?:cr|chainrule|np|implicit)\.[\w.]*", ours.removeprefix("np.abs("))
    if name and name[0].startswith("cr."):
        known = name[0].replace("cr.", "chainrule.scipy.", 1) in str(error.value)
        compiled = "must be numpy.ndarray, not Array" in str(error.value)  # the message of SuperLU
        older = theirs.startswith("signal.lfilter") and isinstance(
            error.value, ValueError
        )  # the message of SciPy before 1.15
        assert known or compiled or older


def test_there_are_lines():
    assert len(LINES) > 70
