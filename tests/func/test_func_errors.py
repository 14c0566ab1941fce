"""Errors name the user's line, the transformation, and the alternative."""

import inspect

import pytest

import chainrule as cr
from chainrule.func import grad, hvp, jvp, vjp, vmap

X = cr.ones(2, 3)


def here():
    """Return the caller's line in the form that errors use."""
    return f"test_func_errors.py:{inspect.currentframe().f_back.f_lineno}"


def test_an_escaped_tensor_names_where_it_is_from():
    kept = []
    vmap(lambda r: kept.append(r * 2) or r)(X); made = here()  # fmt: skip  # noqa: E702
    with pytest.raises(RuntimeError) as error:
        kept[0] + 1
    assert f"vmap (called at {made})" in str(error.value) and "Return it from the function" in str(error.value)
    for use in (lambda: kept[0].sum().item(), lambda: kept[0].numpy(), lambda: kept[0].tolist()):
        with pytest.raises(RuntimeError, match="escaped from inside"):
            use()


def test_an_escaped_tensor_inside_a_later_transformation():
    kept = []
    vmap(lambda r: kept.append(r) or r)(X)
    for later in (lambda: vmap(lambda r: r + kept[0])(X), lambda: jvp(lambda r: r + kept[0], (X,), (X,))):
        with pytest.raises(RuntimeError, match="escaped from inside"):
            later()


def test_control_flow_names_the_line_and_the_alternative():
    def f(r):
        lines.append(here()); return r if r.sum() > 0 else -r  # fmt: skip  # noqa: E702

    lines = []
    with pytest.raises(RuntimeError) as error:
        vmap(f)(X)
    assert lines[0] in str(error.value) and "torch.where(condition, a, b)" in str(error.value)


@pytest.mark.parametrize(
    "f, words",
    [
        (lambda r: r[r > 0], "boolean mask"),
        (lambda r: r.nonzero(), "nonzero"),
        (lambda r: r.unique(), "unique"),
        (lambda r: cr.masked_select(r, r > 0), "boolean mask"),
    ],
)
def test_results_of_unknown_size(f, words):
    with pytest.raises(RuntimeError, match=f"dynamic shape.*{words}.*torch.where"):
        vmap(f)(X)


def test_structures_name_the_place():
    with pytest.raises(
        RuntimeError, match=r"the trees differ at \[0\]\['b'\]: expected a list of length 1, got length 2"
    ):
        jvp(lambda d: d["b"][0], ({"a": X, "b": [X]},), ({"a": X, "b": [X, X]},))
    _, pull = vjp(lambda a: {"y": a}, X)
    with pytest.raises(RuntimeError, match=r"expected the keys \['y'\], got \['z'\]"):
        pull({"z": X})
    with pytest.raises(RuntimeError, match=r"size \[3\] \(primals\[0\]\['a'\]\)"):
        jvp(lambda d: d["a"], ({"a": X},), ({"a": X[0]},))
    with pytest.raises(RuntimeError, match=r"hvp\(f, primals, tangents\).*the trees differ"):
        hvp(lambda d: d["a"].sum(), {"a": X}, {"b": X})


def test_complex_for_real():
    z = X.to(cr.complex64)
    with pytest.raises(RuntimeError, match=r"the tangent .* is complex"):
        jvp(lambda a: a, (X,), (z,))
    _, pull = vjp(lambda a: a, X)
    with pytest.raises(RuntimeError, match="the cotangent is complex"):
        pull(z)


def test_the_missing_wrapper():
    with pytest.raises(RuntimeError, match="the math module return plain numbers"):
        grad(lambda a: float(a.detach().sum()))(X)


def test_levels_are_left_after_errors():
    from chainrule._src.tape.levels import STACK

    def fails(r):
        raise KeyError("inside")

    for transform in (vmap, grad, cr.func.jacfwd, cr.func.jacrev, cr.func.hessian):
        with pytest.raises(KeyError):
            transform(fails)(X)
    assert not STACK.levels
