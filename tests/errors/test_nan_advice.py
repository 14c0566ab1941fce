"""Programs that compute NaN, in NumPy and PyTorch style: anomaly mode names the cause and the fix."""

from __future__ import annotations

import re

import pytest

EXP = ["subtract the maximum first, exp(x - x.max())", "softmax, log_softmax or logsumexp"]
LOG = ["keep its operand positive, x.clip(min=eps)", "xlogy(x, y)"]
ROOT = ["add a small number inside, sqrt(x + eps)"]
ZERO = ["0/0 is nan", "add a small number to the denominator"]
NO_SOFTMAX = "softmax"
#: the loss in both styles, the values of x, expected texts, and texts that must not occur
PROGRAMS = {
    "softmax": ("np.exp(x) / np.exp(x).sum()", "x.exp() / x.exp().sum()", "[1000., 1.]", EXP, "denominator"),
    "softmax, by steps": ("(e := np.exp(x)) / np.sum(e)", "(e := cr.exp(x)) / e.sum(dim=0)", "[1000., 1.]", EXP, "denominator"),
    "log of a sum of exp": ("np.log(np.sum(np.exp(x)))", "x.exp().sum().log()", "[1000., 1.]", EXP, "Mask"),
    "softplus": ("np.log(1 + np.exp(x))", "cr.log(1 + cr.exp(x))", "[1000., 1.]", [*EXP, "logaddexp(0, x)"], "Mask"),
    "sigmoid": ("1 / (1 + np.exp(-x))", "1 / (1 + (-x).exp())", "[-1000., 1.]", [*EXP, "sigmoid(x)"], "Mask"),
    "log of a softmax": ("np.log(cr.softmax(x, 0))", "F.softmax(x, 0).log()", "[2000., 0.]", ["is log_softmax(x)"], "denominator"),
    "entropy": ("x * np.log(x)", "x * x.log()", "[0., 1.]", LOG, "denominator"),
    "kl": ("x * np.log(x / x)", "x * (x / x).log()", "[0., 1.]", ZERO, "clip(min=eps)"),
    "0/0": ("x / np.linalg.norm(x)", "x / x.norm()", "[0., 0.]", ZERO, NO_SOFTMAX),
    "a count of 0": (
        "np.sum(x * (x > 5)) / np.sum(x > 5)", "(x * (x > 5)).sum() / (x > 5).sum()",
        "[1., 2.]", [*ZERO, "count.clip(min=1)"], "overflow"),
    "equal numbers": ("(x - x.mean()) / x.std()", "(x - x.mean()) / x.std()", "[2., 2.]", ZERO, "overflow"),
    "norm by hand": ("np.sqrt(np.sum(x**2))", "(x**2).sum().sqrt()", "[0., 0.]", ["That inf is the gradient of sqrt", *ROOT], "clamp"),
    "a masked root": (
        "np.where(x > 0, np.sqrt(x), 0)", "cr.where(x > 0, cr.sqrt(x), 0)",
        "[0., 4.]", ["Mask the input, too: where(x > 0, sqrt(where(x > 0, x, 1.)), 0)"], NO_SOFTMAX),
    "a masked quotient": (
        "np.where(x > 0, 3 / (x + 0), 0)", "cr.where(x > 0, 3. / (x + 0), 0)",
        "[0., 4.]", ["Mask the input, too: where(x > 0, "], NO_SOFTMAX),
    "a masked denominator": (
        "np.where(c > 0, x / c, 0)", "cr.where(c > 0, x / c, 0)",
        "[1., 4.]", ["where(c > 0, x / where(c > 0, c, 1.), 0)"], NO_SOFTMAX),
    "a masked angle": (
        "np.arccos(x) * (x < 1)", "cr.acos(x) * (x < 1)",
        "[1., 0.]", ["acos(where(ok, x, 0.))", "x.clip(-1 + eps, 1 - eps)"], "clamp("),
    "a power": ("x**0.5 * x", "x**0.5 * x", "[0., 1.]", ["powers below 1 have infinite slope", "x.clip(min=eps) ** p"], NO_SOFTMAX),
    "a negative base": ("(x - 3) ** 1.5", "(x - 3) ** 1.5", "[0., 4.]", ["a negative base has no real power"], NO_SOFTMAX),
    "a cube root": ("np.cbrt(x) * 0", "cr.sign(x) * cr.abs(x) ** (1 / 3)", "[0., 1.]", ["slope"], NO_SOFTMAX),
    "inf - inf": (
        "np.exp(x) - np.exp(x)", "x.exp() - x.exp()",
        "[1000., 1.]", ["infinite gradients of several paths were added", *EXP], "denominator"),
    "a growing product": ("(x**200) * 0", "(x**200) * 0", "[1e3, 1.]", ["pow", "the largest float"], NO_SOFTMAX),
    "float16": (
        "(h := x.astype('f2')) * h / np.sum(h * h)", "(h := x.half()) * h / (h * h).sum()",
        "[1000., 1.]", ["exceeds 6.55e+04, the largest float16", "compute in float32"], "denominator"),
    "std of one number": ("np.std(x[:1], ddof=1)", "x[:1].std()", "[2., 1.]", ["correction=0 (ddof=0"], "denominator"),
    "hypot": ("np.hypot(x, x)", "cr.hypot(x, x)", "[0., 1.]", ["sqrt(x * x + y * y + eps)"], NO_SOFTMAX),
    "no element left": (
        "cr.softmax(np.where(x > 9, x, -np.inf), 0)", "F.softmax(x.masked_fill(x < 9, -np.inf), 0)",
        "[0., 1.]", ["for example, all are masked"], "denominator"),
    "a singular matrix": (
        "np.linalg.slogdet(np.outer(x, x))[1]", "cr.slogdet(cr.outer(x, x))[1]",
        "[1., 1.]", ["the matrix is singular"], "denominator"),
    "equal eigenvalues": (
        "np.linalg.eigh(np.eye(2) * x)[1]", "cr.linalg.eigh(cr.eye(2) * x)[1]",
        "[1., 1.]", ["two of them are equal"], "denominator"),
    "nan data": ("x * w", "x * cr.tensor(w)", "[1., 2.]", ["The operand of mul", "index (1,) of w"], "computed the first nan"),
    "inf data": ("v @ x * 0", "cr.tensor(v).float() @ x * 0", "[1., 2.]", ["already contained inf"], NO_SOFTMAX),
}  # fmt: skip
SETUP = """
from chainrule.nn import functional as F
w, v = np.array([1., np.nan]), np.array([np.inf, 1.])
c = {c}
"""
NUMPY = """
def f(x):
    return np.sum({loss})
with cr.autograd.detect_anomaly():
    {call}
"""
TORCH = """
x = cr.tensor({x}, requires_grad=True)
with cr.autograd.detect_anomaly():
    loss = ({loss}).sum()
    loss.backward()
"""


@pytest.mark.parametrize("style", ["numpy", "torch"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_reverse_mode(program, name, style):
    in_numpy, in_torch, x, said, unsaid = PROGRAMS[name]
    text = (
        NUMPY.format(loss=in_numpy, call=f"cr.grad(f)(np.array({x}))")
        if style == "numpy"
        else TORCH.format(loss=in_torch, x=x)
    )
    c = "np.array([0., 2.])" if style == "numpy" else "cr.tensor([0., 2.])"
    ran = program(SETUP.format(c=c) + text)
    assert ran.error is not None, ran.names.get("x")
    message = str(ran.error)
    assert re.match(r"Function '\w+' returned nan values in its \dth output\.\n", message), message
    assert "t.py:" in message and not [words for words in said if words not in message], message
    assert unsaid not in message, message


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "masked" not in name])
def test_forward_mode(program, name):
    loss, _, x, said, _ = PROGRAMS[name]
    if name in ("inf - inf", "norm by hand"):
        said = said[1:]  # there are no sums of gradients
    ran = program(SETUP.format(c="0") + NUMPY.format(loss=loss, call=f"cr.jacfwd(f)(np.array({x}))"))
    assert ran.error is not None
    message = str(ran.error)
    assert re.match(r"Function '\w+' returned nan values in its tangent, in forward mode, at index", message), message
    assert "t.py:" in message and not [words for words in said if words not in message], message
