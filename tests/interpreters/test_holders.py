"""Tensors that share memory but not history: ``detach()`` and ``data`` inside and outside transformations."""

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jvp, vmap

X = cr.tensor(np.array([1.0, 2.0, 3.0]))
PROGRAMS = """v = z.detach(); v.mul_(2) | z.data.add_(1) | z.detach().mul_(2) | z[:2].detach().mul_(2) | v = z.detach(); z.mul_(2)
    | w = z[:2]; z.detach().mul_(2); z = z * 1; z[:2] += w | v = z.detach()[0]; z[0] = x[1]; z = z * v
    | v = z.detach(); w = v.detach(); w += 1; z = z * v | z[:2] *= x[:2]; z.data[1:].sub_(3)
    | v = z.detach(); w = v[1:]; v.mul_(x); z = z * v; z[1:] += w | v = z.detach(); v[1:] = x[:2] * 2; z = z * v
    | z.data = x.detach() * 2 | z.data = x * 2; z.detach().add_(1) | y = x.detach() * 3; z.data = y; y.add_(1)
    | v = z.detach(); z.data = x * 2; v.add_(1); z = z * v | v = z[:2].data; u = z[1:].detach(); v += u; z[1:] *= u.clone()
    | c = m.ones(3); c.detach().mul_(x); z = z * c | c = m.ones(3); v = c.detach(); c.mul_(x); z = z * v
    | c = m.ones(3, 1); v = c.detach()[1:]; c[1:].mul_(x[0]); z = z * v.sum() | x.detach().mul_(2) | x.data[1] += 1
    | v = z.reshape(3, 1).detach(); z.unsqueeze_(0); v.mul_(2); z = z[0] | v = z.detach(); w = v.t_(); w.mul_(2); z = z * v
    | v = z.detach().requires_grad_(); z.mul_(2); z = z * v | v = z.detach()\n    with m.no_grad(): v.mul_(2)"""


def function_of(program: str):
    def function(x):
        names = {"m": cr, "x": x, "z": x.clone()}
        exec(program.replace("; ", "\n"), names)
        return (names["z"] * names["x"]).sum()

    return function


CASES = [" ".join(case.split()) for case in PROGRAMS.replace("\n    with m", "; with m").split(" | ")]


@pytest.mark.parametrize("program", CASES)
def test_a_write_reaches_every_holder(program: str) -> None:
    f = function_of(program)
    value, slope = f(X.clone()).item(), grad(f)(X.clone()).detach()
    batch = cr.stack([X, 2 * X, X])
    assert vmap(f)(batch.clone())[0].item() == pytest.approx(value)
    np.testing.assert_allclose(vmap(grad(f))(batch.clone())[2].detach().numpy(), slope.numpy())
    out, tangent = jvp(f, (X.clone(),), (X,))
    assert (out.item(), tangent.item()) == pytest.approx((value, (slope * X).sum().item()))
    out, tangent = vmap(lambda x, t: jvp(f, (x,), (t,)))(batch.clone(), batch)
    assert (out[0].item(), tangent[0].item()) == pytest.approx((value, (slope * X).sum().item()))
    out, tangent = jvp(vmap(f), (batch.clone(),), (batch,))
    assert (out[0].item(), tangent[0].item()) == pytest.approx((value, (slope * X).sum().item()))


def test_data_of_another_shape_has_no_tangent_to_take() -> None:
    def f(x):
        z = x * 1
        z.data = cr.ones(2)
        return z.sum()

    with pytest.raises(RuntimeError, match=r"x = y\.detach\(\)"):
        jvp(f, (X,), (X,))
