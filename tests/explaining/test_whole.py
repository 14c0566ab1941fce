"""Complete Jacobians in index form, evaluated for all indices and compared with the dense Jacobians."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import chainrule as cr

POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
FUNCTIONS = {
    "abs": abs, "conj": np.conj, "clip": np.clip, "sqrt": math.sqrt, "ln": math.log, "sign": np.sign, "exp": math.exp,
    "cos": math.cos, "sin": math.sin, "tanh": math.tanh, "cosh": math.cosh, "sinh": math.sinh, "log1p": math.log1p,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "erf": math.erf, "pi": math.pi, "inf": math.inf,
    "min": min, "logaddexp": np.logaddexp, "isnan": math.isnan, "isfinite": math.isfinite, "floor": math.floor,
    "truth": float, "delta": lambda i, k: float(i == k),
}  # fmt: skip


def python(text, arrays):
    """Convert an index form to Python: sums to generators, δ to a function, bracketed conditions to truth values."""
    text = text.replace("·", "*").replace("−", "-").replace("√", "sqrt").replace("π", "pi").replace("∞", "inf")
    text = re.sub(r"δ\[(\w),(\w)\]", r"delta(\1,\2)", text)
    text = re.sub("([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda m: "**" + m[1].translate(POWERS), text)
    text = (
        re.sub(r"\|([^|]*)\|", r"abs(\1)", text)
        .replace("^", "**")
        .replace(" = ", " == ")
        .replace("≥", ">=")
        .replace("≤", "<=")
    )
    text = re.sub(
        r"\[((?:\w+\[[^]]*\]|[^\[\]])*? (?:>|<|>=|<=|==|and) (?:\w+\[[^]]*\]|[^\[\]])*?)\]", r"truth(\1)", text
    )
    while "Σ" in text:
        head, tail = text.rsplit("Σ_", 1)
        letters, body = re.fullmatch(r"(\w|\{[\w,]+\}) (.*)", tail, re.DOTALL).groups()
        depths = list(itertools.accumulate({"(": 1, ")": -1}.get(c, 0) for c in body + ")"))
        end = depths.index(-1)
        sizes = sizes_in(body[:end], arrays)
        loops = " ".join(f"for {c} in range({sizes[c]})" for c in letters.strip("{}").split(","))
        text = f"{head}sum(({body[:end]}) {loops}){body[end:]}"
    return text


def sizes_in(text, arrays):
    """Return the ranges of the summation indices: the sizes of their axes."""
    found = {}
    for name, index in re.findall(r"(\w+)\[([\w,]+)\]", text):
        if name in arrays:
            for letter, n in zip(index.split(","), arrays[name].shape):
                if not letter.isdigit():
                    assert found.setdefault(letter, n) == n, text
    return found


def evaluated(text, arrays, shape, split):
    """Evaluate all elements of the Jacobian by its index form."""
    left, right = text.split(" = ", 1)
    names = re.fullmatch(r"∂(\w+)(?:\[([^]]*)\])?/∂(\w+)(?:\[([^]]*)\])?", left).groups()
    own = [i for part in (names[1], names[3]) if part for i in part.split(",")]
    assert len(own) == len(shape) and len(names[1].split(",") if names[1] else ()) == split
    code = compile(python(right, arrays), text, "eval")
    found = np.zeros(shape)
    for at in itertools.product(*map(range, shape)):
        letters = {c: i for c, i in zip(own, at) if not c.isdigit()}
        found[at] = eval(code, {**FUNCTIONS, **arrays, **letters})
    return found


def agrees(e, needed=True):
    """Compare all index forms of an explanation with the dense Jacobian; return their number."""
    arrays = {v.identifier: v.data for v in e.values.values() if v.data is not None}
    for j, tensor in itertools.product(e.jacobians, e._wanted):
        if j.input.edge is not tensor._edge:
            continue
        if j.index is None:
            assert not needed, str(e)
            assert j.latex is None and j.mathml is None
            continue
        y = next(t for t, v in zip(e._tensors, e.outputs) if v is j.output)
        want = cr.jacobian(y, tensor).numpy()
        assert j.shape == want.shape
        found = evaluated(j.index, arrays, j.shape, len(j.output.shape))
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-9, err_msg=j.index)
        assert j.latex.count("{") == j.latex.count("}") and j.latex.startswith(r"\frac{\partial ")
        ElementTree.fromstring(j.mathml)
    return len(e.jacobian_index)


def leaf(*shape, seed=0):
    data = np.random.default_rng((seed, *shape)).uniform(0.5, 2.0, shape)
    return cr.tensor(data, requires_grad=True)


def test_an_outer_product():
    x = cr.tensor([1.0, 2, 3, 4], requires_grad=True)
    y = cr.outer(x, x)
    (j,) = cr.explain(y).jacobians
    assert j.index == "∂y[j,k]/∂x[i] = δ[i,j]·x[k] + δ[i,k]·x[j]"
    assert j.latex == r"\frac{\partial y_{jk}}{\partial x_i} = \delta_{ij} x_k + \delta_{ik} x_j"
    assert (j.shape, j.paths) == ((4, 4, 4), 2)
    assert "<mi>δ</mi>" in j.mathml and "<mfrac>" in j.mathml
    assert repr(j) == f"<Jacobian {j.index}, shape (4, 4, 4)>"
    assert agrees(cr.explain(y))


def test_exp_of_a_matrix_product():
    X, W = leaf(2, 3), leaf(3, 4)
    Y = cr.exp(cr.matmul(X, W))
    e = cr.explain(Y)
    assert e.jacobian_index == {
        ("Y", "X"): "∂Y[i,j]/∂X[k,l] = δ[i,k]·Y[i,j]·W[l,j]",
        ("Y", "W"): "∂Y[i,j]/∂W[k,l] = δ[j,l]·Y[i,j]·X[i,k]",
    }
    assert agrees(e) == 2
    assert "  ∂Y[i,j]/∂X[k,l] = δ[i,k]·Y[i,j]·W[l,j]" in str(e).split("\n")[:12]
    data = e.to_dict()
    first = data["jacobians"][0]
    assert (first["output"], first["input"]) == (data["outputs"][0], data["wrt"][0])
    assert (first["shape"], first["paths"], first["index"]) == ([2, 4, 2, 3], 1, e.jacobian_index["Y", "X"])


def test_a_square():
    a = leaf(3)
    y = a * a
    (j,) = cr.explain(y).jacobians
    assert j.index == "∂y[i]/∂a[j] = δ[i,j]·2·a[i]"
    assert j.latex == r"\frac{\partial y_i}{\partial a_j} = \delta_{ij} \cdot 2 a_i"
    assert agrees(cr.explain(y))


def programs():
    x, m, w, v, s = leaf(3), leaf(2, 3), leaf(3, 4), leaf(4), leaf()
    stack, other = leaf(2, 2, 3), leaf(2, 3, 2)
    one = leaf(1, 3)
    return [
        x + x, x - x, -x / 3, x * 2.5, 0.3 * x, x / (x + 1), 1 / x, x**3, cr.sqrt(x), cr.atan(x) * cr.sin(x), s * x, x * s * s,
        cr.relu(x - 1), cr.maximum(x, x * x), cr.sigmoid(x), cr.tanh(m @ w + v), ((m @ w) ** 2).mean(), (m @ w @ v).sum(),
        m.T @ m, m @ x, x @ w, x @ x, (x @ w) @ v, stack @ other, stack @ w, cr.bmm(stack, other).sum(1),
        m.sum(0), m.mean(1, keepdim=True), m - m.mean(0), m.mean(), x.expand(2, 3).sum(),
        x.expand(2, 3).sum(1).mean(0), x.expand(2, 5, 3).sum(0).sum(0).sum(), x.unsqueeze(1) - x, one * m,
        one.squeeze(0) * x, (one + x.unsqueeze(1)).sum(0), m[1], m[:, :2], m[:, :2].diagonal(), m[:, :2].trace(), s.exp(), s * s,
        stack.permute(2, 0, 1) * 2, stack.transpose(0, 2).sum(0), m.reshape(2, 1, 3) * x, cr.outer(x, v).T * s,
        cr.nn.functional.linear(m, w.T, v), cr.exp(m).log1p() / 7, cr.where(x > 1, x * x, x), x.clamp(0.7, 1.5), abs(-x),
        cr.einsum("ij,jk,k->i", m, w, v), cr.log(x) * cr.cos(x).unsqueeze(1), x.double() * 1, x.exp().sum() * s,
    ]  # fmt: skip


@pytest.mark.parametrize("i", range(len(programs())))
def test_every_element_agrees(i):
    assert agrees(cr.explain(programs()[i]))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: cr.softmax(x, 0),
        lambda x: x.cumsum(0),
        lambda x: x.flip(0),
        lambda x: x[1:],
        lambda x: x[:2].sum(),
        lambda x: x.prod(),
        lambda x: cr.complex(x, x).abs(),
        lambda x: (x * cr.softmax(x, 0)).sum(),
        lambda x: x.view(2, 2),
        lambda x: sum((x**k / (k + 1.5) for k in range(1, 9)), x),
        lambda x: cr.sin(
            cr.sin(cr.sin(cr.sin(cr.sin(cr.sin(cr.sin(cr.sin(cr.sin(x * x) * x) * x) * x) * x) * x) * x) * x) * x
        ),
    ],
)
def test_what_has_no_short_exact_form_has_none(make):
    x = leaf(4)
    y = make(x)
    e = cr.explain(y)
    assert e.jacobian_index == {}
    (j,) = e.jacobians
    assert (j.index, j.latex, j.mathml, j.shape) == (None, None, None, (*y.shape, 4))
    assert "∂" not in "".join(line for line in str(e).split("\n")[:12] if "δ" in line)


def test_paths_are_counted():
    x = leaf(2)
    y = x
    for _ in range(20):
        y = y * y / 2
    (j,) = cr.explain(y).jacobians
    assert j.paths == 2**20 and j.index is None
    j = cr.explain(lambda a, b: a * 2)(np.ones(2), np.ones(3)).jacobians[1]
    assert j.paths == 0 and j.index.endswith("[i]/∂b[j] = 0")


def test_a_rule_that_takes_special_care_has_no_form():
    x = cr.tensor([0.0, 1.0], requires_grad=True)
    w = cr.tensor([0.0, 2.0])
    y = cr.atan2(x, w)  # w / (x² + w²) is 0 / 0 there
    with np.errstate(all="ignore"):
        assert cr.explain(y).jacobian_index == {}
    y = cr.atan2(x[1:], w[1:])
    assert cr.explain(y).jacobian_index


def test_unnamed_views_are_seen_through_and_named_ones_are_not():
    x = leaf(3)
    column = x.unsqueeze(1)
    y = column * x
    assert cr.explain(y).jacobian_index["y", "x"] == "∂y[j,k]/∂x[i] = δ[i,j]·x[k] + δ[i,k]·column[j,0]"
    assert agrees(cr.explain(y))


def test_wrt_an_intermediate_result_and_the_output_itself():
    x = leaf(3)
    h = cr.sin(x)
    y = h * h * x
    e = cr.explain(y, wrt=[h, y])
    assert agrees(e) == 2
    assert e.jacobian_index["y", "y"] == "∂y[i]/∂y[j] = δ[i,j]"


def test_writes_in_place_give_none():
    x = leaf(3)
    y = x * 2
    y[0] = 5.0
    assert cr.explain(y).jacobian_index == {}


SHAPES = ((3,), (2, 3), (1, 3), (2, 1))


@st.composite
def compositions(draw):
    """Draw a program of supported operations on two leaves."""
    x, w = leaf(*draw(st.sampled_from(SHAPES)), seed=1), leaf(*draw(st.sampled_from(SHAPES)), seed=2)
    y = x
    for _ in range(draw(st.integers(1, 4))):
        z = draw(st.sampled_from([x, w, y]))
        choices = [
            lambda y: cr.exp(y / 5),
            lambda y: cr.sin(y),
            lambda y: y * y,
            lambda y: -y * 0.25,
            lambda y: y.unsqueeze(0),
        ]
        if y.dim():
            choices += [
                lambda y: y.sum(-1),
                lambda y: y.mean(0, keepdim=True),
                lambda y: y[0],
                lambda y: y.unsqueeze(-1),
            ]
        if y.dim() > 1:
            choices += [lambda y: y.transpose(0, 1), lambda y: y.permute(*reversed(range(y.dim()))), lambda y: y @ y.mT]
        if y.dim() and z.dim() and z.dim() <= 2 and y.dim() <= 2 and y.shape[-1] == z.shape[-1]:
            choices += [lambda y, z=z: y @ z.T if z.dim() == 2 else y @ z]
        if y.dim() < 3:
            choices += [lambda y: y.expand(2, *y.shape), lambda y: y.reshape(1, *y.shape)]
        try:
            np.broadcast_shapes(y.shape, z.shape)
            choices += [lambda y, z=z: y * z, lambda y, z=z: y + z, lambda y, z=z: y / (z + 3)]
        except ValueError:
            pass
        y = draw(st.sampled_from(choices))(y)
    return y, x, w


@given(compositions())
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
def test_random_compositions(program):
    check_composition(program)


@pytest.mark.slow
@given(compositions())
@settings(max_examples=400, deadline=None, derandomize=True, database=None)
def test_more_random_compositions(program):
    check_composition(program)


def check_composition(program):
    y, x, w = program
    if y.numel() > 40:
        return
    agrees(cr.explain(y, wrt=[x, *([w] if w._edge in _below(y) else [])]), needed=False)


def _below(y):
    from chainrule._src.explaining.sweep import leaves_below

    return leaves_below([y._edge])
